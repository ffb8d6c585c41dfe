// Tests that an algorithm registered by a program works like a built-in one. Its name and parameters appear in
// experiment and sweep files, help, lists, results and the hosts' protocol.

#include <nlohmann/json.hpp>
#include <sstream>

#include "../../message_of.h"
#include "../written.h"
#include "algorithm_lists.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/reno.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/files/changed_parameters.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment {
namespace {

struct PushyParameters {
  double push = 2;
  Nanos rest{70'000};
};

/// A variant of Reno whose growth is multiplied by `push`.
class Pushy : public cc::Reno {
 public:
  static constexpr std::string_view name = "pushy";
  using Parameters = PushyParameters;
  static constexpr std::array parameters{
      cc::parameter<&PushyParameters::push>("push", cc::above(0).at_most(9), "how fast it grows", "packets per window"),
      cc::parameter<&PushyParameters::rest>("rest", cc::at_least(Nanos(1'000)), "between two pushes"),
  };
  void start(const cc::PathInfo& path, cc::Output& out) {
    push_ = path.parameters->of<Pushy>().push;
    Reno::start(path, out);
  }
  void on_ack(const cc::AckSample& ack, cc::Output& out) {
    cc::AckSample more = ack;
    more.gain *= push_;
    Reno::on_ack(more, out);
  }

 private:
  double push_ = 0;
};

class Algorithms : public testing::Test {
 protected:
  static void SetUpTestSuite() { cc::register_algorithm<Pushy>(); }

  static std::string file(const std::string& top, const std::string& tables = {}) {
    return top + "\niterations = 12\n[bottleneck]\nrate = \"1 Gbps\"\ndelay = \"10 us\"\nbuffer = \"75 kB\"\n" +
           tables +
           "\n[[job]]\nname = \"a\"\ncompute = \"15 ms\"\ncommunicate = \"1.35 MB\"\n"
           "[[job]]\nname = \"b\"\ncompute = \"15 ms\"\ncommunicate = \"1.35 MB\"\nstart = \"1 ms\"\n";
  }
  static Experiment read(const std::string& text) { return parse_experiment(text, "e.toml"); }
  static std::string refusal(const std::string& text) {
    return message_of<InputError>([&] { read(text); });
  }
};

TEST_F(Algorithms, file__takes_its_name_and_its_parameters) {
  const Experiment experiment = read(file("cc = \"pushy\"", "[pushy]\npush = 3.5\nrest = \"2 ms\""));
  EXPECT_EQ(experiment.cc, "pushy");
  EXPECT_EQ(experiment.parameters.of<Pushy>().push, 3.5);
  EXPECT_EQ(experiment.parameters.of<Pushy>().rest, Nanos(2'000'000));
  EXPECT_EQ(read(file("cc = \"pushy\"")).parameters.of<Pushy>().push, 2);
  EXPECT_EQ(refusal(file("pushy = { push = 10 }")),
            "e.toml:1: pushy.push: pushy push of 10 is out of range; give a value above 0 and at most 9");
  EXPECT_THAT(refusal(file("pushy = { rest = 3 }")),
              HasSubstr("e.toml:1: pushy.rest: the number 3 has no unit; write a text with a unit, such as \"70 us\""));
  EXPECT_EQ(refusal(file("pushy = { psuh = 3 }")), "e.toml:1: pushy.psuh: unknown key; did you mean \"push\"?");
  EXPECT_EQ(refusal(file("cc = \"pusy\"")),
            "e.toml:1: cc: there is no congestion control \"pusy\"; did you mean \"pushy\"?");
  EXPECT_THAT(refusal(file("reno = { x = 1 }")), HasSubstr("unknown key")) << "it has no parameters";
}

TEST_F(Algorithms, option_and_override__take_it) {
  FileOptions options;
  options.cc = "pushy";
  options.overrides.push_back({"pushy.push", "1.5", "--vary"});
  const Experiment experiment = parse_experiment(file("cc = \"reno\""), "e.toml", options);
  EXPECT_EQ(experiment.cc, "pushy");
  EXPECT_EQ(experiment.parameters.of<Pushy>().push, 1.5);
  EXPECT_NE(experiment.fingerprint, read(file("cc = \"pushy\"")).fingerprint);
  options.cc = "pusy";
  EXPECT_EQ(message_of<InputError>([&] { parse_experiment(file("cc = \"reno\""), "e.toml", options); }),
            "--cc: there is no congestion control \"pusy\"; did you mean \"pushy\"?");
}

TEST_F(Algorithms, cluster_file__takes_it) {
  const ClusterExperiment cluster = parse_cluster(
      "cc = \"pushy\"\n[pushy]\npush = 4\n[topology]\nkind = \"single-switch\"\nhosts = 4\nhost_rate = \"1 Gbps\"\n"
      "[arrivals]\njobs = 2\nload = 0.5\nworkers = 2\niterations = 10\n[[type]]\nname = \"a\"\nmodel = \"vgg16\"\n",
      "c.toml");
  EXPECT_EQ(cluster.cc, "pushy");
  EXPECT_EQ(cluster.parameters.of<Pushy>().push, 4);
}

TEST_F(Algorithms, help_and_lists__name_it) {
  EXPECT_THAT(tools::algorithm_choices(), HasAll("nscc, pushy", "FILE.so:NAME"));
  const std::string text = tools::parameters_text(tools::tables_named({}));
  EXPECT_THAT(text, HasAll("pushy: needs nothing of the network\n  pushy.push = 2\n      how fast it grows; packets "
                           "per window, above 0 and at most 9\n  pushy.rest = \"70 us\"\n",
                           "dcqcn: needs links that mark packets (ecn) and the sender's rate\n"));
  EXPECT_THAT(tools::parameters_markdown(tools::tables_named({})),
              HasSubstr("| `pushy.rest` | `\"70 us\"` | of 1 us or more | between two pushes |\n"));
  std::ostringstream out;
  tools::write_parameters_json(tools::tables_named({}), out);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["algorithms"].size(), cc::algorithms().size());
  const auto& last = json["algorithms"].back();
  EXPECT_EQ(last["name"], "pushy");
  EXPECT_EQ(last["parameters"][0]["name"], "push");
  EXPECT_EQ(last["parameters"][0]["type"], "number");
  EXPECT_EQ(last["parameters"][0]["default"], "2");
  EXPECT_EQ(last["parameters"][1]["default"], "70 us");
  EXPECT_EQ(json["policies"][0]["name"], "turns");
  EXPECT_THAT(text, HasSubstr("turns: needs packets"));
}

TEST_F(Algorithms, results__say_what_was_set) {
  Experiment experiment =
      read(file("cc = \"pushy\"", "[pushy]\nrest = \"2 ms\"\n[swift]\nbeta = 0.5\n[turns]\nhold_rate = 0.1"));
  EXPECT_THAT(changed_parameters(experiment, false), ElementsAre(testing::Pair("pushy.rest", "2 ms")))
      << "of those that jobs use";
  EXPECT_THAT(changed_parameters(experiment, true),
              ElementsAre(testing::Pair("pushy.rest", "2 ms"), testing::Pair("turns.hold_rate", "0.1")));
  const auto sim = make_sim_datapath(false);
  experiment.policies = {"fair"};
  experiment.iterations = 2;
  const Results results = run_experiment(experiment, *sim, [](double, const std::string&) {}, {});
  const std::string text = written(results);
  EXPECT_EQ(nlohmann::json::parse(text)["runs"][0]["cc_parameters"], (nlohmann::json{{"pushy.rest", "2 ms"}}));
  EXPECT_EQ(parse_json(text, "r.json").runs[0].cc_parameters, results.runs[0].cc_parameters);
}

protocol::RunSetup setup_of(const Experiment& experiment) {
  RunPlan plan;
  plan.policy = "mltcp";
  plan.jobs = experiment.jobs;
  plan.iterations = 5;
  protocol::RunSetup setup;
  setup.policy = plan.policy;
  for (const JobSpec& settings : job_specs(experiment, plan, true, true)) {
    protocol::JobSetup& job = setup.jobs.emplace_back();
    job.spec = settings;
    // Each rank of a host has its own port.
    const auto first = static_cast<std::uint16_t>(2 * setup.jobs.size());
    job.ports = {first, static_cast<std::uint16_t>(first + 1)};
    job.addresses = {Address::v4(0x0A000001, static_cast<std::uint16_t>(62400 + job.ports[0])),
                     Address::v4(0x0A000002, static_cast<std::uint16_t>(62400 + job.ports[1]))};
    job.hosts = {3, 1};
  }
  return setup;
}

TEST_F(Algorithms, hosts__get_all_its_parameters) {
  const protocol::Json json = protocol::to_json(setup_of(read(file("cc = \"pushy\"", "[pushy]\npush = 3.5"))));
  EXPECT_EQ(json["parameters"]["pushy"], (protocol::Json{{"push", 3.5}, {"rest", 70'000}}));
  EXPECT_EQ(json["parameters"]["turns"]["hold_rate"], 0.02);
  EXPECT_EQ(json["parameters"].size(), 2U) << "no other algorithms";
  const protocol::RunSetup got = protocol::setup_from(protocol::Json::parse(json.dump()));
  EXPECT_EQ(got.jobs[0].spec.connection.congestion_control, "pushy");
  EXPECT_EQ(got.jobs[0].spec.connection.parameters->of<Pushy>().push, 3.5);

  protocol::Json bad = json;
  bad["parameters"]["pushy"]["more"] = 1;
  EXPECT_THAT(message_of<InputError>([&] { protocol::setup_from(bad); }),
              HasSubstr("has other parameters than on this host"));
  bad = json;
  bad["parameters"]["pushy"]["push"] = 100;
  EXPECT_THAT(message_of<InputError>([&] { protocol::setup_from(bad); }),
              HasSubstr("pushy push of 100 is out of range"));
  bad = json;
  bad["jobs"][1]["spec"]["connection"]["cc"] = "mine";
  EXPECT_EQ(message_of<RunError>([&] { protocol::setup_from(bad); }),
            "congestion control \"mine\" is not known on this host; start mltcp gen with --load FILE.so:mine here");
}

// Two jobs use different algorithms, and the hosts get the parameters of both.
TEST_F(Algorithms, hosts__get_those_of_every_job) {
  Experiment experiment = read(file("cc = \"swift\"", "[pushy]\npush = 3\n[swift]\nbeta = 0.5"));
  experiment.jobs[1].cc = "pushy";
  const protocol::Json json = protocol::to_json(setup_of(experiment));
  EXPECT_EQ(json["parameters"]["swift"]["beta"], 0.5);
  EXPECT_EQ(json["parameters"]["pushy"]["push"], 3);
  EXPECT_FALSE(json["parameters"].contains("cubic"));
}

// The registered algorithm gets the gain like built-in algorithms.
TEST_F(Algorithms, mltcp__slides_its_jobs_apart) {
  Experiment experiment = read(file("cc = \"pushy\"\npolicies = [\"fair\", \"mltcp\"]", "[pushy]\npush = 1"));
  experiment.iterations = 40;
  const auto mean = [&](const experiment::Run& run) {
    double sum = 0;
    for (const JobResult& job : run.jobs) sum += job.mean.seconds();
    return sum;
  };
  const auto sim = make_sim_datapath(false);
  const Results pushy = run_experiment(experiment, *sim, [](double, const std::string&) {}, {});
  EXPECT_LT(mean(pushy.runs[1]), 0.97 * mean(pushy.runs[0]));
  // With push = 1, the algorithm behaves like Reno.
  experiment.cc = "reno";
  const Results reno = run_experiment(experiment, *sim, [](double, const std::string&) {}, {});
  EXPECT_EQ(mean(pushy.runs[1]), mean(reno.runs[1]));
  experiment.cc = "pushy";
  experiment.parameters.edit<Pushy>().push = 4;
  const Results faster = run_experiment(experiment, *sim, [](double, const std::string&) {}, {});
  EXPECT_NE(mean(faster.runs[0]), mean(pushy.runs[0])) << "the parameter counts";
}

}  // namespace
}  // namespace mltcp::experiment
