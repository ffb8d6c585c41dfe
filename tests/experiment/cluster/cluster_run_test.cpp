// Tests runs of clusters: the properties of all schemes, at packet level and at flow level.
#include "mltcp/lab/experiment/cluster/cluster_run.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "../../workload/phases.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/run/demand.h"

namespace mltcp::experiment {
namespace {

using workload::computes;
using workload::sends;

const std::string kAll =
    "schemes = [\"random\", \"random+mltcp\", \"locality\", \"locality+schedule+mltcp\", \"compatible\", "
    "\"compatible+schedule\", \"ideal\"]\n";

// Returns a topology of three racks with two hosts each. The uplinks carry half of what the hosts can send.
std::string topology(int racks = 3) {
  return "[topology]\nkind = \"leaf-spine\"\nleaves = " + std::to_string(racks) +
         "\nspines = 1\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\nuplink_rate = \"10 Gbps\"\n"
         "buffer = \"250 kB\"\necn = { kmin = \"30 kB\" }\n";
}

ClusterExperiment mixed(const std::string& level, const std::string& top = kAll) {
  return parse_cluster("level = \"" + level + "\"\n" + top + topology(4) +
                           "[arrivals]\njobs = 9\nat_start = 3\nload = 1.2\nworkers = [2, 3, 5]\niterations = [4, 12]\n"
                           "jitter = 0.02\n"
                           "[[type]]\nname = \"a\"\ncompute = \"2 ms\"\ncommunicate = \"1 MB\"\n"
                           "[[type]]\nname = \"b\"\nphases = [{ compute = \"1 ms\" }, { communicate = \"500 kB\" }, "
                           "{ compute = \"1 ms\" }, { communicate = \"1 MB\" }]\n",
                       "c.toml");
}

/// Returns two jobs of three workers on three racks. Both jobs have workers in the middle rack, and both send for 40%
/// of their iterations.
ClusterExperiment pair(const std::string& level, const std::string& schemes, double jitter = 0) {
  return parse_cluster(
      "level = \"" + level + "\"\nschemes = [" + schemes + "]\n" + topology() +
          "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 40\njitter = " + std::to_string(jitter) +
          "\n[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 MB\"\n",
      "c.toml");
}

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Levels : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ClusterRun, Levels, ::testing::Values("packet", "flow"),
                         [](const auto& level) { return level.param; });

TEST_P(Levels, run_cluster__every_job_ends_with_all_its_iterations) {
  const ClusterExperiment experiment = mixed(GetParam());
  const auto arrivals = arrivals_of(experiment, 1);
  const ClusterResults results = run_cluster(experiment);
  ASSERT_EQ(results.runs.size(), experiment.schemes.size());
  std::size_t iterations = 0;
  for (const auto& arrival : arrivals) iterations += arrival.iterations;
  for (const ClusterRun& run : results.runs) {
    ASSERT_EQ(run.jobs.size(), arrivals.size()) << run.scheme;
    EXPECT_EQ(run.slowdowns.size(), iterations) << run.scheme;
    EXPECT_TRUE(std::is_sorted(run.slowdowns.begin(), run.slowdowns.end()));
    EXPECT_GT(run.slowdowns.front(), 0.9) << run.scheme;
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      const ClusterJobResult& job = run.jobs[i];
      EXPECT_EQ(job.number, i);
      EXPECT_EQ(job.hosts.size(), arrivals[i].workers);
      EXPECT_GE(job.start, job.arrival);
      // The run time of a job is the sum of its iterations and a few round trips to connect.
      const double ran = (job.end - job.start).seconds();
      const double sum = job.mean.seconds() * job.iterations;
      EXPECT_GE(ran, sum * 0.999) << run.scheme << " " << i;
      EXPECT_LE(ran, sum * 1.01 + 1e-3) << run.scheme << " " << i;
      EXPECT_LE(job.end, run.makespan);
    }
    EXPECT_GT(run.busy_hosts, 0.2);
    EXPECT_LE(run.busy_hosts, 1.0);
  }
}

// There are two hosts with four GPUs each. Jobs wait in order until one host has enough free GPUs. Only one job uses
// the network.
TEST_P(Levels, run_cluster__jobs_of_a_table_share_the_gpus_of_hosts) {
  const TemporaryFolder folder;
  folder.write("t.csv",
               "submit_time,start_time,end_time,gpu_num,state,vc\n"
               "2020-06-01 00:00:00,2020-06-01 00:00:00,2020-06-01 00:00:10,3,COMPLETED,a\n"
               "2020-06-01 00:00:00,2020-06-01 00:00:00,2020-06-01 00:00:05,2,COMPLETED,a\n"
               "2020-06-01 00:00:01,2020-06-01 00:00:00,2020-06-01 00:00:04,4,COMPLETED,a\n"
               "2020-06-01 00:00:02,2020-06-01 00:00:00,2020-06-01 00:00:20,8,COMPLETED,a\n"
               "2020-06-01 00:00:03,2020-06-01 00:00:00,2020-06-01 00:00:01,1,COMPLETED,a\n");
  const ClusterExperiment experiment = parse_cluster(
      "level = \"" + GetParam() +
          "\"\nschemes = [\"random\", \"locality\", \"compatible+schedule\", \"ideal\"]\n"
          "[topology]\nkind = \"single-switch\"\nhosts = 2\nhost_rate = \"10 Gbps\"\necn = { kmin = \"30 kB\" }\n"
          "[arrivals]\nfile = \"t.csv\"\ngpus_per_host = 4\n"
          "[[type]]\nname = \"a\"\ncompute = \"199.8 ms\"\ncommunicate = \"250 kB\"\n",
      folder / "c.toml");
  const ClusterResults results = run_cluster(experiment);
  EXPECT_THAT(headline(results), HasAll("2 hosts of 4 GPUs", "5 jobs (4 on one host each)"));
  ASSERT_EQ(results.runs.size(), 4U);
  for (const ClusterRun& run : results.runs) {
    const auto start = [&](std::size_t job) { return run.jobs[job].start.seconds(); };
    const auto end = [&](std::size_t job) { return run.jobs[job].end.seconds(); };
    EXPECT_EQ(start(0), 0) << run.scheme;
    EXPECT_EQ(end(0), 10);
    EXPECT_EQ(start(1), 0);
    EXPECT_EQ(end(1), 5);
    EXPECT_NE(run.jobs[0].hosts, run.jobs[1].hosts);
    EXPECT_EQ(start(2), 5);  // before this time, three GPUs are free, but no host has four free GPUs
    EXPECT_EQ(end(2), 9);
    EXPECT_EQ(run.jobs[2].hosts, run.jobs[1].hosts);
    EXPECT_EQ(start(3), 10);  // this job needs both hosts
    EXPECT_EQ(run.jobs[3].hosts.size(), 2U);
    EXPECT_EQ(run.jobs[3].iterations, 100U);
    EXPECT_NEAR(end(3), 30, 0.3);
    EXPECT_EQ(start(4), end(3));  // this job waits behind job 3 in the queue
    EXPECT_EQ(run.jobs[4].completion(), run.jobs[3].end + Nanos(1'000'000'000) - Nanos(3'000'000'000));
    EXPECT_EQ(run.slowdowns.size(), 100U);
    const double gpu_seconds = 3 * 10 + 2 * 5 + 4 * 4 + 8 * (end(3) - 10) + 1;
    EXPECT_NEAR(run.busy_hosts, gpu_seconds / (8 * run.makespan.seconds()), 1e-9);
    const std::vector<std::uint32_t> gpus{3, 2, 4, 8, 1};
    for (std::size_t job = 0; job < gpus.size(); ++job) EXPECT_EQ(run.jobs[job].gpus, gpus[job]);
  }
  const auto json = nlohmann::json::parse(to_json(results));
  EXPECT_EQ(json["gpus_per_host"], 4);
  EXPECT_EQ(json["runs"][0]["jobs"][3]["gpus"], 8);
  EXPECT_EQ(json["runs"][0]["jobs"][3]["workers"], 2);
  EXPECT_EQ(json["runs"][0]["jobs"][0]["iterations"], 0);
}

// With these jobs, no result depends on the network, and no statistic is computed from an empty set.
TEST_P(Levels, run_cluster__a_table_of_jobs_on_one_host_each) {
  const TemporaryFolder folder;
  folder.write("t.csv",
               "submit_time,start_time,end_time,gpu_num,state,vc\n"
               "2020-06-01,2020-06-01,2020-06-02,3,COMPLETED,a\n");
  const ClusterResults results =
      run_cluster(parse_cluster("level = \"" + GetParam() + "\"\n" + kAll + topology() +
                                    "[arrivals]\nfile = \"t.csv\"\ngpus_per_host = 4\nlength_scale = 0.5\n"
                                    "[[type]]\nname = \"a\"\ncommunicate = \"2 MB\"\n",
                                folder / "c.toml"));
  for (const SchemeSummary& scheme : summarize(results)) {
    EXPECT_EQ(scheme.completion_mean, 43'200) << scheme.scheme;
    EXPECT_EQ(scheme.iterations, 0U);
    EXPECT_EQ(scheme.marks_per_iteration, 0);
    EXPECT_EQ(scheme.slowdown_mean, 0);
    EXPECT_NEAR(scheme.busy_hosts, 3.0 / 24, 1e-9);
  }
}

TEST_P(Levels, run_cluster__schemes_see_the_same_jobs) {
  const ClusterResults results = run_cluster(mixed(GetParam()));
  const ClusterRun& first = results.runs.front();
  for (const ClusterRun& run : results.runs)
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      EXPECT_EQ(run.jobs[i].type, first.jobs[i].type);
      EXPECT_EQ(run.jobs[i].workers, first.jobs[i].workers);
      EXPECT_EQ(run.jobs[i].iterations, first.jobs[i].iterations);
      EXPECT_EQ(run.jobs[i].arrival, first.jobs[i].arrival);
      EXPECT_EQ(run.jobs[i].isolated, first.jobs[i].isolated);
    }
}

// Without competitors, the compute time of each iteration of a job does not depend on the job's placement.
TEST_P(Levels, run_cluster__compute_times_are_the_same_under_every_scheme) {
  const ClusterExperiment experiment = parse_cluster(
      "level = \"" + GetParam() +
          "\"\nschemes = [\"locality\", \"compatible\", \"compatible+schedule\", \"ideal\", \"random\"]\n" +
          topology() +
          "[arrivals]\njobs = 1\nat_start = 1\nworkers = 3\niterations = 12\njitter = 0.2\n"
          "[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 MB\"\n",
      "c.toml");
  const ClusterResults results = run_cluster(experiment);
  const ClusterRun& first = results.runs.front();
  EXPECT_GT(first.slowdowns.back(), 1.1);
  EXPECT_NE(results.runs.back().jobs[0].hosts, first.jobs[0].hosts);
  for (const ClusterRun& run : results.runs)
    for (std::size_t i = 0; i < run.slowdowns.size(); ++i)
      EXPECT_NEAR(run.slowdowns[i], first.slowdowns[i], run.scheme == "random" ? 0.005 : 0) << run.scheme;
}

TEST_P(Levels, run_cluster__no_host_runs_two_jobs_and_the_queue_is_first_come_first_served) {
  const ClusterResults results = run_cluster(mixed(GetParam()));
  for (const ClusterRun& run : results.runs) {
    std::map<std::uint32_t, std::vector<std::pair<Nanos, Nanos>>> times;
    for (const ClusterJobResult& job : run.jobs)
      for (const std::uint32_t host : job.hosts) times[host].emplace_back(job.start, job.end);
    for (auto& [host, spans] : times) {
      EXPECT_LT(host, 8U);
      std::sort(spans.begin(), spans.end());
      for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second) << run.scheme;
    }
    for (std::size_t i = 1; i < run.jobs.size(); ++i) EXPECT_GE(run.jobs[i].start, run.jobs[i - 1].start);
    // At least one job had to wait. If not, this test would prove nothing.
    EXPECT_TRUE(std::any_of(run.jobs.begin(), run.jobs.end(), [](const auto& job) { return job.start > job.arrival; }));
  }
}

TEST_P(Levels, run_cluster__ideal_is_each_job_alone) {
  const ClusterResults results = run_cluster(pair(GetParam(), "\"ideal\", \"locality\""));
  const ClusterRun& ideal = results.runs[0];
  EXPECT_NEAR(ideal.slowdowns[ideal.slowdowns.size() / 2], 1, 0.001);
  EXPECT_NEAR(mean(ideal.slowdowns), 1, 0.01);
  EXPECT_EQ(ideal.contended, 0);
  // This shows that the jobs slow each other down if they share the network.
  EXPECT_GT(mean(results.runs[1].slowdowns), 1.1);
}

// Two compatible jobs share one uplink.
TEST_P(Levels, run_cluster__slots_keep_compatible_jobs_apart) {
  const ClusterResults results = run_cluster(pair(GetParam(), "\"locality\", \"locality+schedule\"", 0.005));
  const ClusterRun& fair = results.runs[0];
  const ClusterRun& slots = results.runs[1];
  EXPECT_EQ(fair.jobs[0].hosts, slots.jobs[0].hosts);
  EXPECT_NEAR(slots.mean_score, 1, 0.001);
  EXPECT_GT(slots.competed_links, 0.5);
  EXPECT_GT(mean(fair.slowdowns), 1.1);
  EXPECT_LT(mean(slots.slowdowns), 1.04);
  if (GetParam() == "packet") {
    EXPECT_GT(fair.marked_packets, 5'000U);
    EXPECT_LT(slots.marked_packets * 20, fair.marked_packets);
    EXPECT_GT(fair.jobs[0].marked_packets, 0U);
  } else {
    EXPECT_LT(slots.contended * 20, fair.contended);
  }
}

// Only the first bytes of an iteration wait for the slot of this iteration.
TEST_P(Levels, run_cluster__slots_are_for_iterations_of_several_phases) {
  const ClusterExperiment experiment =
      parse_cluster("level = \"" + GetParam() + "\"\nschemes = [\"locality+schedule\"]\n" + topology() +
                        "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 40\n"
                        "[[type]]\nname = \"a\"\nphases = [{ communicate = \"1 MB\" }, { compute = \"1 ms\" }, { "
                        "communicate = \"2 MB\" }, "
                        "{ compute = \"6 ms\" }]\n",
                    "c.toml");
  const ClusterResults results = run_cluster(experiment);
  EXPECT_GT(results.runs[0].mean_score, 0.98);
  EXPECT_LT(mean(results.runs[0].slowdowns), 1.06);
}

// Two jobs that send for 71% of their iterations cannot keep separate slots, even if slots are longer by a quarter.
TEST_P(Levels, run_cluster__jobs_that_do_not_fit_get_no_slots) {
  const auto with = [&](const std::string& top) {
    return run_cluster(parse_cluster("level = \"" + GetParam() +
                                         "\"\nschemes = [\"locality\", \"locality+schedule\"]\n" + top + topology() +
                                         "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 40\n"
                                         "[[type]]\nname = \"a\"\ncompute = \"3 ms\"\ncommunicate = \"9 MB\"\n",
                                     "c.toml"));
  };
  const ClusterResults results = with("");
  EXPECT_LT(results.runs[1].mean_score, 0.98);
  EXPECT_EQ(results.runs[1].slowdowns, results.runs[0].slowdowns);
  EXPECT_NE(with("min_score = 0\n").runs[1].slowdowns, results.runs[0].slowdowns);
}

TEST_P(Levels, run_cluster__mltcp_parts_jobs_without_a_schedule) {
  ClusterExperiment experiment = pair(GetParam(), "\"locality\", \"locality+mltcp\"", 0.005);
  // The two jobs begin at the same moment. Jitter separates them after 10 to more than 40 iterations. With this seed,
  // they separate early.
  experiment.seed = 4;
  const ClusterResults results = run_cluster(experiment);
  EXPECT_LT(mean(results.runs[1].slowdowns), mean(results.runs[0].slowdowns) - 0.1);
}

TEST_P(Levels, run_cluster__follows_from_the_seed_alone) {
  ClusterExperiment experiment = mixed(GetParam(), "seeds = 2\nschemes = [\"random\", \"compatible+schedule\"]\n");
  ClusterRunSettings one;
  one.threads = 1;
  ClusterRunSettings two;
  two.threads = 2;
  double last = 0;
  std::size_t reported = 0;
  std::vector<std::string> what;
  two.progress = [&](double fraction, const std::string& now) {
    EXPECT_GE(fraction, last - 1e-9) << now;
    last = fraction;
    ++reported;
    what.push_back(now);
  };
  const ClusterResults results = run_cluster(experiment, two);
  EXPECT_NEAR(last, 1, 1e-6);
  EXPECT_THAT(what.front(), MatchesRegex("0 of [0-9]+ kinds of jobs measured alone"));
  EXPECT_EQ(what.back(), "4 of 4 runs");
  // Progress is reported while jobs run, and not only when they start or end.
  std::size_t events = 0;
  for (const ClusterRun& run : results.runs) events += 2 * run.jobs.size();
  if (GetParam() == std::string("packet")) {
    EXPECT_GT(reported, 2 * events);
  }
  EXPECT_EQ(to_json(run_cluster(experiment, one)), to_json(results));
  EXPECT_NE(results.runs[0].slowdowns, results.runs[1].slowdowns);  // another seed gives other jobs
  experiment.seed = 2;
  experiment.seeds = 1;
  EXPECT_EQ(run_cluster(experiment).runs[0].jobs[0].hosts, results.runs[1].jobs[0].hosts);
}

TEST(ClusterRun, run_cluster__flow_level_is_close_to_packet_level) {
  // The scheme "random" is not compared, because its jobs separate by chance, which differs between packets and flows.
  for (const char* schemes : {"\"locality\"", "\"locality+schedule\""}) {
    const double packet = mean(run_cluster(pair("packet", schemes, 0.01)).runs[0].slowdowns);
    const double flow = mean(run_cluster(pair("flow", schemes, 0.01)).runs[0].slowdowns);
    EXPECT_NEAR(packet, flow, 0.1) << schemes;
  }
}

// The periods of the two jobs differ by 6%. Slots with a common period make the iterations of one job 6% longer.
// Collisions would cost more.
TEST(ClusterRun, run_cluster__slots_are_stretched_where_it_pays) {
  const auto with = [&](const std::string& top) {
    ClusterExperiment experiment =
        parse_cluster("level = \"flow\"\nschemes = [\"locality\", \"locality+schedule\"]\n" + top + topology() +
                          "[arrivals]\njobs = 2\nat_start = 2\nworkers = 3\niterations = 40\n"
                          "[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"5 MB\"\n"
                          "[[type]]\nname = \"b\"\ncompute = \"6.6 ms\"\ncommunicate = \"5 MB\"\n",
                      "c.toml");
    experiment.arriving = 0;
    experiment.listed = {{Nanos(0), 0, 3, 0, 40}, {Nanos(0), 1, 3, 0, 40}};  // one job of each type
    return run_cluster(experiment);
  };
  const ClusterResults results = with("");
  EXPECT_GT(mean(results.runs[0].slowdowns), 1.1);
  EXPECT_LT(mean(results.runs[1].slowdowns), 1.06);
  EXPECT_NEAR(results.runs[1].mean_score, 1, 0.001);
  EXPECT_EQ(with("max_slot_stretch = 0\n").runs[1].slowdowns, results.runs[0].slowdowns);
}

// Jobs of very different models share links now and then. Sharing costs them little, so that slots which stretch their
// iterations, or in which they have to wait, would harm them.
TEST(ClusterRun, run_cluster__slots_hardly_harm_a_job) {
  const ClusterResults results = run_cluster(parse_cluster(
      "level = \"flow\"\ncc = \"dctcp\"\ntime_scale = 1\nrate_scale = 0.2\n"
      "schemes = [\"locality\", \"locality+schedule\", \"random\", \"random+schedule\"]\n"
      "[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 1\nhosts_per_leaf = 4\nhost_rate = \"100 Gbps\"\n"
      "uplink_rate = \"200 Gbps\"\nbuffer = \"500 kB\"\nmtu = 9000\necn = { kmin = \"65 kB\" }\n"
      "[arrivals]\njobs = 40\nat_start = 7\nload = 1.3\nworkers = [3, 5, 6, 7]\niterations = [40, 150]\n"
      "jitter = 0.01\n"
      "[[type]]\nmodel = \"VGG19\"\n[[type]]\nmodel = \"ResNet50\"\n[[type]]\nmodel = \"BERT\"\n"
      "[[type]]\nmodel = \"GPT-2\"\n[[type]]\nmodel = \"DLRM\"\n",
      "c.toml"));
  for (const std::size_t scheme : {0U, 2U}) {
    for (std::size_t job = 0; job < results.runs[scheme].jobs.size(); ++job)
      EXPECT_LT(results.runs[scheme + 1].jobs[job].mean.seconds(), 1.04 * results.runs[scheme].jobs[job].mean.seconds())
          << results.runs[scheme].scheme << ", job " << job;
    EXPECT_LT(mean(results.runs[scheme + 1].slowdowns), 1.005 * mean(results.runs[scheme].slowdowns));
  }
}

TEST(ClusterRun, run_cluster__several_spines_have_known_paths) {
  const ClusterResults results = run_cluster(parse_cluster(
      "level = \"flow\"\nschemes = [\"random+schedule\"]\n"
      "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\n"
      "uplink_rate = \"5 Gbps\"\necn = { kmin = \"65 kB\" }\n"
      "[arrivals]\njobs = 4\nat_start = 4\nworkers = 2\niterations = 20\nflows = 2\n"
      "[[type]]\nname = \"a\"\ncompute = \"6 ms\"\ncommunicate = \"3 MB\"\n",
      "c.toml"));
  EXPECT_EQ(results.runs[0].slowdowns.size(), 80U);
}

// Jobs run on every kind of network, with equal results at both levels. A job without competitors is not slowed down.
TEST(ClusterRun, run_cluster__every_kind_of_topology) {
  const TemporaryFolder folder;
  std::ofstream(folder / "net.csv") << "from,to,rate,delay\n"
                                       "h1,a,10 Gbps,\nh2,a,10 Gbps,\nh3,b,10 Gbps,\nh4,b,10 Gbps,\nh5,c,10 Gbps,\n"
                                       "h6,c,10 Gbps,\nh7,d,10 Gbps,\nh8,d,10 Gbps,\na,b,10 Gbps,3 us\n"
                                       "b,c,10 Gbps,3 us\nc,d,10 Gbps,3 us\nd,a,10 Gbps,3 us\n";
  const std::map<std::string, double> kinds{
      // Each kind of network, and its oversubscription.
      {"kind = \"single-switch\"\nhosts = 8\nhost_rate = \"10 Gbps\"\n", 1},
      {"kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\n", 1},
      {"kind = \"fat-tree\"\nk = 4\nrate = \"10 Gbps\"\n", 1},
      {"kind = \"file\"\nfile = \"net.csv\"\nhosts = \"h*\"\n", 1}};
  for (const auto& [kind, oversubscription] : kinds) {
    SCOPED_TRACE(kind);
    std::vector<double> ideal;
    for (const std::string level : {"packet", "flow"}) {
      const ClusterExperiment experiment = parse_cluster(
          "level = \"" + level + "\"\nschemes = [\"random+mltcp\", \"compatible+schedule\", \"ideal\"]\n[topology]\n" +
              kind +
              "buffer = \"250 kB\"\necn = { kmin = \"30 kB\" }\n"
              "[arrivals]\njobs = 5\nat_start = 3\nload = 1.2\nworkers = [2, 3]\niterations = [4, 12]\n"
              "[[type]]\nname = \"a\"\ncompute = \"2 ms\"\ncommunicate = \"1 MB\"\nflows = 2\n",
          (folder / "c.toml").string());
      const ClusterResults results = run_cluster(experiment);
      EXPECT_EQ(results.oversubscription, oversubscription);
      EXPECT_EQ(results.hosts, experiment.topology.hosts());
      for (const ClusterRun& run : results.runs)
        for (const ClusterJobResult& job : run.jobs) EXPECT_GT(job.end, job.start);
      EXPECT_GE(results.runs[0].slowdowns.front(), 0.98);
      ideal.push_back(mean(results.runs[2].slowdowns));
    }
    EXPECT_NEAR(ideal[0], 1, 0.12);
    EXPECT_NEAR(ideal[1], ideal[0], 0.12);
  }
}

TEST(ClusterRun, run_cluster__jobs_that_outlast_the_clock_are_refused) {
  const ClusterExperiment experiment =
      parse_cluster("level = \"flow\"\nschemes = [\"locality\"]\n" + topology(2) +
                        "[arrivals]\njobs = 20000\nat_start = 20000\nworkers = 4\niterations = 100\n"
                        "[[type]]\nname = \"a\"\ncompute = \"1440 min\"\ncommunicate = \"1 MB\"\n",
                    "c.toml");
  EXPECT_THAT(refusal_of([&] { return run_cluster(experiment); }), AllOf(StartsWith("c.toml: "), HasSubstr("years")));
}

// ---- Input of the scheduler ----

TEST(ClusterRun, demand_of__phases_become_bursts) {
  workload::Job job;
  job.rate = Rate(8'000'000'000);  // 1 MB per millisecond
  const Nanos ms(1'000'000);
  job.phases = {computes(ms * 3), sends(1'000'000), computes(ms * 2), sends(4'000'000)};
  const scheduler::Demand alone = demand_of(job, ms * 10);
  EXPECT_EQ(alone.period, ms * 10);
  EXPECT_THAT(alone.bursts,
              ElementsAre(scheduler::Burst{ms * 3, ms * 4, job.rate}, scheduler::Burst{ms * 6, ms * 10, job.rate}));
  const scheduler::Demand stretched = demand_of(job, ms * 20);
  EXPECT_THAT(stretched.bursts,
              ElementsAre(scheduler::Burst{ms * 6, ms * 8, job.rate}, scheduler::Burst{ms * 12, ms * 20, job.rate}));
}

TEST(ClusterRun, demand_of__what_overlaps_waits_for_the_link) {
  workload::Job job;
  job.rate = Rate(8'000'000'000);
  const Nanos ms(1'000'000);
  job.phases = {computes(ms), sends(3'000'000, true), computes(ms), sends(2'000'000, true), computes(ms * 4)};
  EXPECT_THAT(demand_of(job, ms * 6).bursts, ElementsAre(scheduler::Burst{ms, ms * 6, job.rate}));
  job.phases = {computes(ms), sends(1'000'000, true), computes(ms * 4), sends(1'000'000)};
  job.phases[3].rate = Rate(4'000'000'000);
  EXPECT_THAT(demand_of(job, ms * 7).bursts, ElementsAre(scheduler::Burst{ms, ms * 2, job.rate},
                                                         scheduler::Burst{ms * 5, ms * 7, Rate(4'000'000'000)}));
}

// ---- Results ----

ClusterResults by_hand() {
  ClusterResults results;
  results.name = "hand";
  results.level = "packet";
  results.cc = "dctcp";
  results.hosts = 8;
  for (const auto& [scheme, slow] :
       {std::pair<std::string, float>{"random", 3.0F}, {"locality", 2.0F}, {"ideal", 1.0F}})
    for (const std::uint64_t seed : {1U, 2U}) {
      ClusterRun run;
      run.scheme = scheme;
      run.seed = seed;
      for (std::uint32_t i = 0; i < 50; ++i) {
        ClusterJobResult job;
        job.number = i;
        job.start = job.arrival = Nanos(1'000'000'000);
        job.end = job.arrival +
                  Nanos((i == 49 && seed == 2 ? 10'000'000'000 : 1'000'000'000)) * static_cast<std::int64_t>(slow);
        run.makespan = std::max(run.makespan, job.end);
        run.jobs.push_back(job);
        run.slowdowns.push_back(slow);
      }
      run.marked_packets = scheme == "ideal" ? 0 : static_cast<std::uint64_t>(100 * slow);
      results.runs.push_back(run);
    }
  return results;
}

TEST(ClusterRun, interrupted__keeps_the_runs_that_are_complete) {
  const ClusterExperiment experiment = pair("flow", "\"locality\", \"random\", \"ideal\"");
  const ClusterResults whole = run_cluster(experiment);
  ASSERT_EQ(whole.runs.size(), 3U);
  EXPECT_TRUE(whole.unfinished.empty());
  ClusterRunSettings settings;
  settings.threads = 1;
  std::vector<std::size_t> kept;
  std::string stop;
  settings.interrupted = [&] { return stop; };
  settings.finished = [&](const std::function<const ClusterResults&()>& so_far) {
    kept.push_back(so_far().runs.size());
    stop = "ended by a test";
  };
  const ClusterResults results = run_cluster(experiment, settings);
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(kept, std::vector<std::size_t>{1});
  const auto same = std::find_if(whole.runs.begin(), whole.runs.end(),
                                 [&](const ClusterRun& run) { return run.scheme == results.runs[0].scheme; });
  ASSERT_NE(same, whole.runs.end());
  EXPECT_EQ(results.runs[0].slowdowns, same->slowdowns);
  EXPECT_EQ(results.unfinished.size(), 2U);
  const auto json = nlohmann::json::parse(to_json(results));
  EXPECT_EQ(json["unfinished"].size(), 2U);
  EXPECT_EQ(json["runs"].size(), 1U);

  EXPECT_EQ(message_of<RunError>([&] { run_cluster(experiment, settings); }),
            "ended by a test; no run was complete, so no results are written");
}

TEST(ClusterResults, summarize__pools_the_seeds) {
  const std::vector<SchemeSummary> summaries = summarize(by_hand());
  ASSERT_EQ(summaries.size(), 3U);
  EXPECT_EQ(summaries[0].jobs, 100U);
  EXPECT_NEAR(summaries[0].completion_mean, 3 * 1.09, 1e-9);
  EXPECT_NEAR(summaries[0].completion_p99, 3, 1e-9);
  EXPECT_NEAR(summaries[0].slowdown_mean, 3, 1e-9);
  EXPECT_NEAR(summaries[0].marks_per_iteration, 600.0 / 100, 1e-9);
  EXPECT_NEAR(summaries[2].makespan, (2.0 + 11.0) / 2, 1e-9);
}

TEST(ClusterResults, cells_of__gains_are_over_locality) {
  const Cells cells = cells_of(by_hand());
  ASSERT_EQ(cells.rows.size(), 4U);
  EXPECT_EQ(cells.rows[1][0], "random");
  EXPECT_EQ(cells.rows[1][2], "0.67x");
  EXPECT_EQ(cells.rows[2][2], "1.00x");
  EXPECT_EQ(cells.rows[3][2], "2.00x");
  EXPECT_EQ(cells.rows[1][11], "0.67x");  // marks
  EXPECT_EQ(cells.rows[3][11], "-");      // no packet was marked
  for (const auto& row : cells.rows) EXPECT_EQ(row.size(), cells.rows[0].size());
}

TEST(ClusterResults, to_json__reads_back) {
  const auto json = nlohmann::json::parse(to_json(run_cluster(pair("flow", "\"locality+schedule\""))));
  EXPECT_EQ(json["schema"], "mltcp.cluster/1");
  ASSERT_EQ(json["runs"].size(), 1U);
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["scheme"], "locality+schedule");
  EXPECT_EQ(run["jobs"].size(), 2U);
  EXPECT_EQ(run["slowdown_percentiles"].size(), 101U);
  EXPECT_EQ(run["jobs"][0]["hosts"].size(), 3U);
  EXPECT_EQ(json["schemes"][0]["iterations"], 80);
}

}  // namespace
}  // namespace mltcp::experiment
