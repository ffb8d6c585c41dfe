// Tests cluster files: the values read, the defaults, and that every error names its line and key.
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "../../temporary_folder.h"

#include <fstream>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/models.h"

namespace mltcp::experiment {
namespace {

// kTopology has 7 lines, kArrivals has 3 and kType has 4.
const std::string kTopology =
    "[topology]\nkind = \"leaf-spine\"\nleaves = 12\nspines = 1\nhosts_per_leaf = 2\n"
    "host_rate = \"50 Gbps\"\necn = { kmin = \"100 kB\" }\n";
const std::string kArrivals = "[arrivals]\njobs = 20\nload = 0.8\n";
const std::string kType = "[[type]]\nmodel = \"VGG16\"\nworkers = [2, 4]\niterations = [100, 400]\n";

std::string refusal(const std::string& text, const ClusterFileOptions& options = {}) {
  return refusal_of([&] { return parse_cluster(text, "c.toml", options); });
}

TEST(ClusterFile, parse__defaults) {
  const ClusterExperiment cluster = parse_cluster(kTopology + kArrivals + kType, "some/c.toml");
  EXPECT_EQ(cluster.name, "c");
  EXPECT_EQ(cluster.level, ClusterExperiment::Level::packet);
  EXPECT_EQ(cluster.seed, 1U);
  EXPECT_EQ(cluster.seeds, 1U);
  EXPECT_EQ(cluster.time_scale, 1);
  EXPECT_EQ(cluster.cc, "dctcp");
  ASSERT_THAT(cluster.schemes, SizeIs(5));
  EXPECT_EQ(cluster.schemes[0].name, "locality");
  EXPECT_EQ(cluster.topology.hosts(), 24U);
  ASSERT_THAT(cluster.types, SizeIs(1));
  EXPECT_EQ(cluster.types[0].name, "VGG16");
  EXPECT_EQ(cluster.types[0].source, "model VGG16");
  EXPECT_EQ(cluster.types[0].jobs.size(), 2U);
  EXPECT_EQ(cluster.arriving, 20U);
  EXPECT_THAT(cluster.warnings, IsEmpty());
}

TEST(ClusterFile, parse__everything) {
  const std::string text =
      "name = \"big\"\nlevel = \"flow\"\nseed = 7\nseeds = 3\ntime_scale = 0.5\nrate_scale = 0.2\ncc = \"reno\"\n"
      "max_slot_stretch = 0.1\n"
      "schemes = [\"random\", \"compatible+schedule+mltcp\", \"ideal\"]\n"
      "candidates = 5\n[schedule]\nslack = 0.02\ntolerance = 0.1\n"
      "[gpu]\ntflops = 312\nutilisation = 0.5\nbytes_per_parameter = 2\n" +
      kTopology +
      "[arrivals]\njobs = 20\nat_start = 5\nevery = \"4 s\"\nworkers = [2, 3]\niterations = 50\njitter = 0.1\nflows = "
      "2\n"
      "[[type]]\nname = \"a\"\nmodel = \"vgg16\"\nbatch = [32, 64]\nweight = 3\ncc = \"cubic\"\n"
      "[[type]]\nname = \"b\"\ncompute = \"10 ms\"\ncommunicate = \"8 MB\"\nworkers = 4\niterations = [1, 9]\n"
      "jitter = 0\nflows = 1\nstraggler = { probability = 0.1, factor = 2 }\n"
      "[[type]]\nname = \"c\"\nphases = [{ compute = \"4 ms\" }, { communicate = \"2 MB\", overlap = true }, "
      "{ compute = \"2 ms\" }]\n";
  const ClusterExperiment cluster = parse_cluster(text, "c.toml");
  EXPECT_EQ(cluster.name, "big");
  EXPECT_EQ(cluster.level, ClusterExperiment::Level::flow);
  EXPECT_EQ(cluster.seeds, 3U);
  EXPECT_EQ(cluster.cc, "reno");
  EXPECT_EQ(cluster.max_slot_stretch, 0.1);
  ASSERT_THAT(cluster.schemes, SizeIs(3));
  EXPECT_EQ(cluster.schemes[1].placement, Scheme::Placement::compatible);
  EXPECT_EQ(cluster.schemes[0].policy->name, "fair");
  EXPECT_EQ(cluster.schemes[1].policy->name, "mltcp+schedule");
  EXPECT_EQ(cluster.schemes[2].policy->name, "fair");
  EXPECT_EQ(cluster.schemes[2].placement, Scheme::Placement::ideal);
  EXPECT_EQ(cluster.candidates, 5U);
  EXPECT_EQ(cluster.schedule.slack, 0.02);
  EXPECT_EQ(cluster.schedule.tolerance, 0.1);
  EXPECT_EQ(cluster.gap, Nanos(2'000'000'000));
  EXPECT_EQ(cluster.at_start, 5U);

  ASSERT_THAT(cluster.types, SizeIs(3));
  const JobType& a = cluster.types[0];
  EXPECT_EQ(a.cc, "cubic");
  EXPECT_EQ(a.jobs.size(), 4U);
  workload::ModelOptions gpu;
  gpu.peak_flops = 312e12;
  gpu.utilisation = 0.5;
  gpu.bytes_per_parameter = 2;
  gpu.workers = 3;
  gpu.batch = 64;
  const workload::Job whole = workload::make_job(workload::find_model("VGG16"), gpu);
  const workload::Job& half = a.jobs.at({3, 64});
  EXPECT_EQ(half.phases[0].compute, whole.phases[0].compute / 2);
  EXPECT_EQ(half.phases[1].bytes, whole.phases[1].bytes / 10);
  EXPECT_EQ(cluster.topology.host_rate(), Rate(10'000'000'000));
  EXPECT_EQ(cluster.topology.topology->leaf_spine_shape()->uplink_rate, Rate(10'000'000'000));
  EXPECT_NEAR(half.jitter.seconds(), half.phases[0].compute.seconds() / 10, 1e-9);
  EXPECT_EQ(half.flows, 2U);
  EXPECT_EQ(half.rate, cluster.topology.host_rate());

  const workload::Job& b = cluster.types[1].jobs.at({4, 0});
  EXPECT_EQ(b.phases[0].compute, Nanos(5'000'000));
  EXPECT_EQ(b.phases[1].bytes, 800'000U);
  EXPECT_EQ(b.jitter, Nanos());
  EXPECT_EQ(b.straggler.factor, 2);
  EXPECT_EQ(cluster.types[1].choices.max_iterations, 9U);
  EXPECT_EQ(cluster.types[2].jobs.at({2, 0}).phases.size(), 3U);
}

// If each job ran alone, all jobs together would use the fraction `load` of the hosts' time.
TEST(ClusterFile, arrivals_of__keeps_the_load) {
  const ClusterExperiment cluster =
      parse_cluster("time_scale = 0.01\n" + kTopology + "[arrivals]\njobs = 20000\nload = 0.7\n" + kType +
                        "[[type]]\nname = \"b\"\ncompute = \"90 ms\"\ncommunicate = \"400 MB\"\nworkers = 3\n"
                        "iterations = [10, 20]\nweight = 2\n",
                    "c.toml");
  double work = 0;
  const auto arrivals = arrivals_of(cluster, 5);
  for (const workload::Arrival& arrival : arrivals) {
    const workload::Job& job = cluster.types[arrival.type].jobs.at({arrival.workers, arrival.batch});
    work += workload::ideal_iteration(job, cluster.topology.host_rate()).length.seconds() * arrival.iterations *
            arrival.workers;
  }
  EXPECT_NEAR(work / (arrivals.back().at.seconds() * 24), 0.7, 0.02);
}

TEST(ClusterFile, parse__arrivals_from_a_file) {
  const TemporaryFolder folder;
  folder.write("a.csv",
               "arrival,job,workers,iterations,batch\n"
               "2 s,mine,4,30,\n"
               "1 s,ResNet50,2,10,64\n"
               "4 s,t.txt,3,20,\n");
  folder.write("t.txt", "DATA\n1\nlayer -1 1000000 NONE 0 500000 NONE 0 500000 ALLREDUCE 3000000 10\n");
  const std::string text = "time_scale = 0.1\n" + kTopology +
                           "[arrivals]\nfile = \"a.csv\"\njitter = 0.05\n[[type]]\nname = \"mine\"\n"
                           "communicate = \"1 MB\"\n";
  const ClusterExperiment cluster = parse_cluster(text, folder / "c.toml");
  EXPECT_EQ(cluster.arriving, 0U);
  ASSERT_THAT(cluster.types, SizeIs(3));
  EXPECT_EQ(cluster.types[1].source, "model ResNet50");
  EXPECT_EQ(cluster.types[2].source, "trace t.txt");
  EXPECT_EQ(cluster.types[2].jobs.at({3, 0}).bytes_per_iteration(), 400'000U);  // a tenth of 4/3 of 3 MB
  const auto arrivals = arrivals_of(cluster, 9);
  ASSERT_THAT(arrivals, SizeIs(3));
  EXPECT_EQ(arrivals[0], (workload::Arrival{Nanos(100'000'000), 1, 2, 64, 10}));
  EXPECT_EQ(arrivals[1], (workload::Arrival{Nanos(200'000'000), 0, 4, 0, 30}));

  const auto refused = [&](const std::string& row) {
    folder.write("a.csv", "arrival,job,workers,iterations,batch\n" + row + "\n");
    return refusal_of([&] { return parse_cluster(text, folder / "c.toml"); });
  };
  EXPECT_THAT(refused("1 s,VGG13,2,10,"), HasSubstr("a.csv:2: job: \"VGG13\" is not a known model; "));
  EXPECT_THAT(refused("1 s,VGG11,25,10,"), HasSubstr("a.csv:2: workers: 25 workers do not fit on 24 hosts; "));
  EXPECT_THAT(refused("1 s,mine,2,10,5"), HasSubstr("a.csv:2: batch: only a model has a batch; "));
  // Errors are reported in the order of the file. Each message has one cause and one cure.
  const std::string csv = (folder.path() / "a.csv").string();
  const std::string trace = (folder.path() / "t.txt").string();
  EXPECT_THAT(refused("1 s,none.txt,2,10,"),
              StartsWith(csv + ":2: job: " + (folder.path() / "none.txt").string() + ": there is no such file; "));
  folder.write("t.txt", "BROKEN 1 2\n");
  EXPECT_THAT(refused("1 s,t.txt,2,10,"), StartsWith(csv + ":2: job: " + trace + ": it begins with \"BROKEN 1 2"));
  folder.write("t.txt", "DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 3 10\n");
  EXPECT_THAT(refused("1 s,t.txt,2,10,"),
              StartsWith(csv + ":2: job: " + trace + ": rank 0 sends nothing in an iteration; "));
  EXPECT_THAT(refused("1 s,GPT-3,2,10,1000000"), StartsWith(csv + ":2: job: an iteration computes for "));
  EXPECT_THAT(refused("1 s,VGG11,1,10,"), HasSubstr("a.csv:2: workers: "));
}

TEST(ClusterFile, parse__recordings_as_jobs) {
  const TemporaryFolder folder;
  folder.write("a.csv", "arrival,job,workers,iterations,batch\n1 s,k.json,2,10,\n2 s,k.json,4,10,\n");
  folder.write("k.json",
               R"({"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 1000,)"
               R"( "dur": 20000}, {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "tid": 7,)"
               R"( "ts": 9000, "dur": 500, "args": {"Collective name": "allreduce", "In msg nelems": 250000,)"
               R"( "Group size": 8, "dtype": "Float"}}]})");
  folder.write("f.cm", "Nodes 2\nConnections 1\n0->1 start 0 size 90000\n");
  const std::string text = kTopology + "[arrivals]\nfile = \"a.csv\"\n[[type]]\n";
  const ClusterExperiment cluster =
      parse_cluster(text + "name = \"f\"\ntrace = \"f.cm\"\nworkers = 2\niterations = 5\n", folder / "c.toml");
  ASSERT_THAT(cluster.types, SizeIs(2));
  EXPECT_EQ(cluster.types[1].jobs.at({2, 0}).bytes_per_iteration(), 1'000'000U);
  EXPECT_EQ(cluster.types[1].jobs.at({4, 0}).bytes_per_iteration(), 1'500'000U);
  EXPECT_EQ(cluster.types[0].source, "trace f.cm");
}

const std::string kHelios = "submit_time,start_time,end_time,gpu_num,state,vc\n";

TEST(ClusterFile, parse__a_table_of_jobs) {
  const TemporaryFolder folder;
  const auto row = [](const std::string& submitted, const std::string& end, int gpus) {
    return "2020-06-01 " + submitted + ",2020-06-01 12:00:00,2020-06-01 " + end + "," + std::to_string(gpus) +
           ",COMPLETED,a\n";
  };
  folder.write("t.csv", kHelios + row("08:01:00", "14:00:00", 16) + row("08:00:00", "13:00:00", 4) +
                            row("08:02:00", "12:00:01", 12) + row("08:02:00", "12:00:01", 0) +
                            row("08:02:00", "12:00:01", 24 * 8 + 1) + row("08:03:00", "12:00:01", 24 * 8));
  const std::string top = "level = \"flow\"\ntime_scale = 0.1\n" + kTopology + "[arrivals]\nfile = \"t.csv\"\n";
  const std::string types =
      "[[type]]\nname = \"a\"\ncompute = \"100 ms\"\ncommunicate = \"100 MB\"\nweight = 3\n"
      "[[type]]\nname = \"b\"\nmodel = \"VGG16\"\nbatch = [32, 64]\n";
  const ClusterExperiment cluster =
      parse_cluster(top + "gpus_per_host = 8\nlength_scale = 0.01\n" + types, folder / "c.toml");
  EXPECT_EQ(cluster.gpus_per_host, 8U);
  EXPECT_THAT(
      cluster.warnings,
      ElementsAre(HasSubstr("t.csv: 1 of 6 jobs are left out: no GPU (1, first line 5)"),
                  HasSubstr("t.csv: 1 of 5 jobs are left out: they need more than the 24 hosts of the topology")));
  const auto arrivals = arrivals_of(cluster, 1);
  ASSERT_THAT(arrivals, SizeIs(4));
  // Arrivals are sorted by time of submission, and times are scaled to 1/1000. A job on one host has no iterations.
  EXPECT_EQ(arrivals[0].at, Nanos());
  EXPECT_EQ(arrivals[0].workers, 1U);
  EXPECT_EQ(arrivals[0].gpus_per_worker(), 4U);
  EXPECT_EQ(arrivals[0].length, Nanos(3'600'000'000));
  EXPECT_EQ(arrivals[0].iterations, 0U);
  EXPECT_EQ(arrivals[1].at, Nanos(60'000'000));
  EXPECT_EQ(arrivals[1].workers, 2U);
  EXPECT_EQ(arrivals[1].gpus_per_worker(), 8U);
  const auto alone = [&](const workload::Arrival& arrival) {
    return workload::ideal_iteration(cluster.types[arrival.type].jobs.at({arrival.workers, arrival.batch}),
                                     cluster.topology.host_rate())
        .length.seconds();
  };
  EXPECT_NEAR(arrivals[1].iterations, 7.2 / alone(arrivals[1]), 0.5);
  EXPECT_EQ(arrivals[2].workers, 2U);
  EXPECT_EQ(arrivals[2].gpus_per_worker(), 6U);
  // In the trace, this job runs for one second, which is scaled to a millisecond.
  EXPECT_EQ(arrivals[2].iterations, 1U);
  EXPECT_EQ(arrivals[3].workers, 24U);
  EXPECT_EQ(arrivals_of(cluster, 1), arrivals);
  std::size_t of_a = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    for (const workload::Arrival& arrival : arrivals_of(cluster, seed)) of_a += arrival.type == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(of_a) / 4000, 0.75, 0.03);

  const auto refused = [&](const std::string& text) {
    return refusal_of([&] { return parse_cluster(text, folder / "c.toml"); });
  };
  const std::string given = top + "gpus_per_host = 8\n";
  EXPECT_THAT(refused(top + types), HasSubstr("arrivals.gpus_per_host: the key is missing; write gpus_per_host = 8"));
  EXPECT_THAT(refused(given + "workers = 4\n" + types),
              HasSubstr("type \"a\" has workers or iterations, but they follow from the table"));
  EXPECT_THAT(refused(given), HasSubstr("c.toml:11: arrivals.file: the table does not say what jobs compute and send"));
  EXPECT_THAT(refused(given + "from = \"1 June\"\n" + types),
              HasSubstr("arrivals.from: \"1 June\" is not a time in the years 2000 to 2099"));
  EXPECT_THAT(refused(given + "from = \"2020-06-02\"\nto = \"2020-06-01\"\n" + types),
              HasSubstr("arrivals.to: the time is not after from"));
  EXPECT_THAT(refused(given + "from = \"2020-06-02\"\n" + types),
              HasSubstr("t.csv: no job is left of 6: submitted outside from and to (6, "));
  EXPECT_THAT(refused(given + "vc = [\"b\"]\n" + types),
              HasSubstr("t.csv: no job is left of 6: other virtual cluster (6, "));
  EXPECT_THAT(
      refused(given + "[[type]]\nname = \"a\"\ncommunicate = \"1 kB\"\n"),
      HasAll("a job of 2 hosts runs for ", "lower length_scale so that the job has at most 1000000 iterations"));
  folder.write("t.csv", kHelios + row("08:00:00", "13:00:00", 4) + "2020-12-01,2020-12-01,2020-12-02,8,COMPLETED,a\n");
  EXPECT_THAT(refused("[topology]" + given.substr(given.find("\nkind")) + types),
              HasSubstr("arrivals.file: the table covers more than 104 days; set from and to, or lower length_scale"));
  folder.write("t.csv", kHelios + row("08:00:00", "13:00:00", 1000));
  EXPECT_THAT(refused(given + types),
              HasSubstr("arrivals.file: 0 of 1 jobs fit into the topology; set from, to and vc so that 1 to 20000 do"));
  folder.write("t.csv", "arrival,job,workers,iterations\n0 s,a,2,10\n");
  EXPECT_THAT(refused(given + types), HasSubstr("arrivals.gpus_per_host: the key belongs to a table of jobs"));
  EXPECT_THAT(refusal(kTopology + kArrivals + "vc = \"a\"\n" + kType),
              HasSubstr("c.toml:11: arrivals.vc: the key belongs to a table"));
}

TEST(ClusterFile, parse__a_listed_model_in_small_letters_is_the_type_of_that_name) {
  const TemporaryFolder folder;
  folder.write("a.csv",
               "arrival,job,workers,iterations\n0 s,vgg16,2,10\n1 s,VGG16,2,10\n2 s,bert,2,10\n3 s,BERT,2,10\n");
  const ClusterExperiment cluster = parse_cluster(
      kTopology + "[arrivals]\nfile = \"a.csv\"\n[[type]]\nmodel = \"VGG16\"\njitter = 0.03\n", folder / "c.toml");
  ASSERT_THAT(cluster.types, SizeIs(2));
  EXPECT_EQ(cluster.types[1].name, "BERT");
  const auto arrivals = arrivals_of(cluster, 1);
  EXPECT_EQ(arrivals[0].type, arrivals[1].type);
  EXPECT_EQ(arrivals[2].type, arrivals[3].type);
}

TEST(ClusterFile, parse__a_type_from_a_measured_profile) {
  const TemporaryFolder folder;
  folder.write("p.csv", "time_ms,rate_bps\n0,0\n60,8000000000\n100,0\n");
  const ClusterExperiment cluster = parse_cluster(
      kTopology + kArrivals + "[[type]]\nname = \"p\"\nprofile = \"p.csv\"\nworkers = 2\niterations = [5, 9]\n",
      folder / "c.toml");
  EXPECT_EQ(cluster.types.at(0).jobs.at({2, 0}).bytes_per_iteration(), 40'000'000U);
}

TEST(ClusterFile, parse__options_in_place_of_the_file) {
  ClusterFileOptions options;
  options.level = ClusterExperiment::Level::flow;
  options.schemes = {"random+mltcp"};
  options.seed = 9;
  options.seeds = 2;
  const ClusterExperiment cluster = parse_cluster(kTopology + kArrivals + kType, "c.toml", options);
  EXPECT_EQ(cluster.level, ClusterExperiment::Level::flow);
  ASSERT_THAT(cluster.schemes, SizeIs(1));
  EXPECT_EQ(cluster.schemes[0].name, "random+mltcp");
  EXPECT_EQ(cluster.seed, 9U);
  EXPECT_EQ(cluster.seeds, 2U);
  options.schemes = {"nearest"};
  EXPECT_THAT(refusal(kTopology + kArrivals + kType, options), StartsWith("--scheme: \"nearest\" is not a scheme; "));
}

TEST(ClusterFile, scheme__is_driven_by_the_policy_of_the_table) {
  for (const auto& [text, policy] :
       {std::pair{"random", "fair"}, std::pair{"locality+schedule", "schedule"}, std::pair{"compatible+mltcp", "mltcp"},
        std::pair{"random+schedule+mltcp", "mltcp+schedule"}, std::pair{"ideal", "fair"}}) {
    EXPECT_EQ(objection_to_scheme(text), "");
    EXPECT_EQ(scheme_from(text).policy, &policy_named(policy)) << text;
    EXPECT_EQ(scheme_from(text).name, text);
  }
  for (const char* text : {"", "+mltcp", "random+", "random+mltcp+schedule", "random+static", "random+mltcp+mltcp",
                           "randomschedule", "random+schedulemltcp", "ideal+schedule"})
    EXPECT_EQ(objection_to_scheme(text),
              "\"" + std::string(text) +
                  "\" is not a scheme; write random, locality or compatible, with +schedule, +mltcp or +schedule+mltcp "
                  "after it if you like, or write ideal");
  for (const std::string& name : default_schemes()) EXPECT_EQ(objection_to_scheme(name), "");
}

TEST(ClusterFile, parse__warns_of_what_tells_little) {
  EXPECT_THAT(parse_cluster("time_scale = 0.0001\n" + kTopology + kArrivals + kType, "c.toml").warnings,
              ElementsAre(HasSubstr("round trips: too few")));
}

// At flow level there are no packets to mark.
TEST(ClusterFile, parse__needs_no_marks_at_level_flow) {
  const std::string unmarked = std::string(kTopology).replace(kTopology.find("ecn"), 26, "") + kArrivals + kType;
  EXPECT_EQ(parse_cluster("level = \"flow\"\n" + unmarked, "c.toml").cc, "dctcp");
  EXPECT_EQ(parse_cluster("level = \"flow\"\n" + unmarked + "cc = \"dctcp\"\n", "c.toml").cc, "dctcp");
  ClusterFileOptions options;
  options.level = ClusterExperiment::Level::packet;
  EXPECT_THROW(parse_cluster("level = \"flow\"\n" + unmarked, "c.toml", options), InputError);
}

TEST(ClusterFile, parse__refuses_with_line_and_key) {
  struct Case {
    std::string text;
    std::string start;
  };
  const std::string all = kTopology + kArrivals + kType;
  const auto top = [&](const std::string& line) { return line + "\n" + all; };
  const auto arrivals = [&](const std::string& lines) { return kTopology + "[arrivals]\n" + lines + "\n" + kType; };
  const auto type = [&](const std::string& lines) { return kTopology + kArrivals + "[[type]]\n" + lines + "\n"; };
  const std::vector<Case> cases{
      {"", "c.toml:1: cluster: the file is empty"},
      {kArrivals + kType, "c.toml:1: topology: the table is missing"},
      {kTopology + kType, "c.toml:1: arrivals: the table is missing"},
      {kTopology + kArrivals, "c.toml:8: type: there is no type of job"},
      {top("levle = \"flow\""), "c.toml:1: levle: unknown key; did you mean \"level\"?"},
      {top("job = 1"), "c.toml:1: job: unknown key; the key belongs to an experiment file"},
      {top("level = \"fluid\""), "c.toml:1: level: \"fluid\" is not known"},
      {top("time_scale = 2"), "c.toml:1: time_scale: 2 is out of range"},
      {top("rate_scale = 0"), "c.toml:1: rate_scale: 0 is out of range"},
      {top("seeds = 0"), "c.toml:1: seeds: 0 is out of range"},
      {top("cc = \"bbr\""), "c.toml:1: cc: there is no congestion control \"bbr\""},
      {top("schemes = []"), "c.toml:1: schemes: the array is empty"},
      {top("schemes = [\"locality+schedul\"]"), "c.toml:1: schemes: \"locality+schedul\" is not a scheme"},
      {top("schemes = [\"ideal+mltcp\"]"), "c.toml:1: schemes: \"ideal+mltcp\" is not a scheme"},
      {top("schemes = [\"random\", \"random\"]"), "c.toml:1: schemes: \"random\" appears twice"},
      {"cc = \"dctcp\"\n" + std::string(kTopology).replace(kTopology.find("ecn"), 26, "") + kArrivals + kType,
       "c.toml:1: cc: dctcp needs ECN"},
      {std::string(kTopology).replace(kTopology.find("ecn"), 26, "") + kArrivals + kType,
       "c.toml:1: topology: dctcp needs ECN"},
      {top("candidates = 0"), "c.toml:1: candidates: 0 is out of range"},
      {top("min_score = 1.5"), "c.toml:1: min_score: 1.5 is out of range"},
      {top("max_slot_stretch = 1.5"), "c.toml:1: max_slot_stretch: 1.5 is out of range"},
      {top("schedule = { slack = -0.1 }"), "c.toml:1: schedule.slack: -0.1 is out of range"},
      {"level = \"flow\"\nmltcp = { decrease = true }\n" + all,
       "c.toml:2: mltcp.decrease: level flow has no congestion windows"},
      {"level = \"flow\"\nschemes = [\"random\"]\nmltcp = { iterations = \"learned\" }\n" + all,
       "c.toml:3: mltcp.iterations: level flow has no packets"},
      {top("mltcp = { iterations = \"learned\" }"), "c.toml:1: mltcp.iterations: a schedule needs jobs that announce"},
      {top("gpu = { tflops = 0 }"), "c.toml:1: gpu.tflops: 0 is out of range"},
      {top("gpu = { utilisation = 1.5 }"), "c.toml:1: gpu.utilisation: 1.5 is out of range"},
      {arrivals("load = 1"), "c.toml:8: arrivals.jobs: the key is missing"},
      {arrivals("jobs = 5"), "c.toml:8: arrivals.load: the key is missing"},
      {arrivals("jobs = 5\nload = 1\nevery = \"1 s\""), "c.toml:11: arrivals.every: load is given too"},
      {arrivals("jobs = 5\nat_start = 5\nload = 1"), "c.toml:11: arrivals.load: all jobs arrive at the start"},
      {arrivals("jobs = 5\nat_start = 6"), "c.toml:10: arrivals.at_start: 6 is out of range"},
      {arrivals("jobs = 5\nevery = \"0 s\""), "c.toml:10: arrivals.every: it is 0"},
      {arrivals("jobs = 20000\nevery = \"1440 min\""),
       "c.toml:10: arrivals.every: the last job would arrive after 2e+04"},
      {arrivals("jobs = 20000\nload = 1e-7"), "c.toml:10: arrivals.load: a job would arrive every"},
      {arrivals("jobs = 5\nload = 0"), "c.toml:10: arrivals.load: 0 is out of range"},
      {arrivals("file = \"a.csv\"\njobs = 5"), "c.toml:10: arrivals.jobs: the arrivals come from a file"},
      {arrivals("file = \"no-such.csv\""), "c.toml:9: arrivals.file: no-such.csv"},
      {arrivals("file = \"\""), "c.toml:9: arrivals.file: the path is empty"},
      {type("workers = 2\niterations = 5"), "c.toml:11: type[1].name: the key is missing"},
      {type("name = \"a\"\nworkers = 2\niterations = 5"), "c.toml:11: type[1].communicate: the key is missing"},
      {type("model = \"VGG\"\nworkers = 2\niterations = 5"), "c.toml:12: type[1].model: \"VGG\" is not a known model"},
      {type("model = \"VGG11\"\ntrace = \"a\""), "c.toml:13: type[1].trace: the type has a model too"},
      {type("model = \"VGG11\"\ncompute = \"1 s\""), "c.toml:13: type[1].compute: the type has a model too"},
      {type("trace = \"none.txt\"\nworkers = 2\niterations = 5"), "c.toml:12: type[1].trace: "},
      {type("trace = \"t\"\nphases = []"), "c.toml:13: type[1].phases: the type has a trace too"},
      {type("model = \"VGG11\"\nbytes_scale = 2"), "c.toml:13: type[1].bytes_scale: the key belongs to a trace"},
      {type("model = \"VGG11\"\niterations = 5"), "c.toml:11: type[1].workers: the key is missing"},
      {type("model = \"VGG11\"\nworkers = 2"), "c.toml:11: type[1].iterations: the key is missing"},
      {type("model = \"VGG11\"\nworkers = 1"), "c.toml:13: type[1].workers: 1 is out of range"},
      {type("model = \"VGG11\"\nworkers = [2, 25]"), "c.toml:13: type[1].workers: 25 is out of range"},
      {type("model = \"VGG11\"\nworkers = []"), "c.toml:13: type[1].workers: the list has 0 numbers"},
      {type("model = \"VGG11\"\niterations = [9, 3]"), "c.toml:13: type[1].iterations: it is neither"},
      {type("model = \"VGG11\"\niterations = [1, 2, 3]"), "c.toml:13: type[1].iterations: it is neither"},
      {type("name = \"a\"\ncommunicate = \"1 MB\"\nbatch = 4"), "c.toml:14: type[1].batch: only a model has a batch"},
      {type("model = \"VGG11\"\njitter = 2"), "c.toml:13: type[1].jitter: 2 is out of range"},
      {type("model = \"VGG11\"\nworkers = 2\niterations = 2\n" + kType.substr(0, kType.find("workers")))
           .append("name = \"VGG11\"\nworkers = 2\niterations = 2\n"),
       "c.toml:15: type[2]: \"VGG11\" is the name of another type too"},
      {kTopology + "[arrivals]\njobs = 2\nat_start = 2\n[[type]]\nname = \"a\"\ncompute = \"24 min\"\n"
                   "communicate = \"1 MB\"\nworkers = 2\niterations = 1000000\n",
       "c.toml:11: type: a job of type \"a\" runs for"},
  };
  for (const Case& one : cases) {
    const std::string message = refusal(one.text);
    EXPECT_THAT(message, AllOf(StartsWith(one.start), HasSubstr("; "), Not(HasSubstr("\n")))) << one.text;
  }
}

TEST(ClusterFile, topology__of_links_is_scaled_and_its_hosts_are_alike) {
  const TemporaryFolder folder;
  const std::string head =
      "rate_scale = 0.1\n[topology]\nkind = \"file\"\nfile = \"net.csv\"\nhosts = \"h*\"\necn = { kmin = \"9 kB\" }\n";
  const auto parse_with = [&](const std::string& links) {
    std::ofstream(folder / "net.csv") << "from,to,rate\n" << links;
    return parse_cluster(head + kArrivals + kType, (folder / "c.toml").string());
  };
  const ClusterExperiment cluster = parse_with("h1,a,10 Gbps\nh2,a,10 Gbps\nh3,b,10 Gbps\nh4,b,10 Gbps\na,b,40 Gbps\n");
  const Topology& topology = *cluster.topology.topology;
  EXPECT_EQ(topology.capacity(topology.find_link("h1 -> a")), Rate::from_gbps(1));
  EXPECT_EQ(topology.capacity(topology.find_link("b -> a")), Rate::from_gbps(4));
  EXPECT_EQ(cluster.types[0].jobs.begin()->second.rate, Rate::from_gbps(1));
  EXPECT_THAT(
      refusal_of([&] { return parse_with("h1,a,10 Gbps\nh2,a,10 Gbps\nh3,b,10 Gbps\nh4,b,25 Gbps\na,b,40 Gbps\n"); }),
      HasSubstr("c.toml:2: topology: link \"h1 -> a\" is slower than the link of another host; give all hosts of the "
                "cluster links of the same rate"));
}

}  // namespace
}  // namespace mltcp::experiment
