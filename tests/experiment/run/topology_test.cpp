// Tests jobs on a topology: its keys in the experiment file, the placement of jobs, and whole runs.

#include <filesystem>
#include <map>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "../written.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::experiment::topology_test {
namespace {

const std::string kFabric = R"([topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
host_rate = "10 Gbps"
delay = "1 us"
buffer = "250 kB"
mtu = 9000
)";
const std::string kRing = R"([[job]]
name = "a"
compute = "15 ms"
communicate = "13.5 MB"
hosts = [0, 4]
)";

Experiment parse(const std::string& text) { return parse_experiment(text, "e.toml", FileOptions{}); }

std::string refusal(const std::string& text, const FileOptions& options = {}) {
  return refusal_of([&] { parse_experiment(text, "e.toml", options); });
}

/// Returns the text of kFabric with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kFabric;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Topology, parse__count_times_hosts_times_flows_has_a_bound) {
  std::string hosts = "0";
  for (int i = 1; i < 1000; ++i) hosts.append(",").append(std::to_string(i));
  const std::string fabric = changed("hosts_per_leaf = 4", "hosts_per_leaf = 500");
  const std::string job = "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\nhosts = [" + hosts + "]\n";
  EXPECT_EQ(refusal(fabric + job + "count = 1000\n"), "no error");
  EXPECT_THAT(refusal(fabric + job + "count = 501\nflows = 2\n"),
              HasSubstr("e.toml:10: job[1]: the jobs up to this one have more than 1000000 connections; "));
}

// With this little headroom, no packet fits beyond xoff, so that PFC would never pause a sender. An explicit 0 is
// refused: it does not mean the default.
TEST(Topology, parse__refuses_headroom_for_less_than_a_packet) {
  for (const std::string headroom : {"0 B", "1 B", "9013 B"})
    EXPECT_THAT(
        refusal(changed("buffer = \"250 kB\"",
                        "shared_buffer = \"20 MB\"\npfc = { xoff = \"30 kB\", headroom = \"" + headroom + "\" }") +
                kRing),
        HasAll("topology.pfc.headroom: ", "less than one packet with its Ethernet frame"));
  EXPECT_EQ(refusal(changed("buffer = \"250 kB\"",
                            "shared_buffer = \"20 MB\"\npfc = { xoff = \"30 kB\", headroom = \"9014 B\" }") +
                    kRing),
            "no error");
}

TEST(Topology, parse__reads_every_key) {
  const Experiment experiment =
      parse("seed = 9\n" + kFabric + "uplink_rate = \"40 Gbps\"\necn = { kmin = \"30 kB\" }\n" + kRing);
  ASSERT_TRUE(experiment.topology.has_value());
  const LeafSpineShape shape = experiment.topology->topology->leaf_spine_shape().value();
  EXPECT_EQ(shape.leaves, 2U);
  EXPECT_EQ(shape.spines, 1U);
  EXPECT_EQ(shape.hosts_per_leaf, 4U);
  EXPECT_EQ(shape.host_rate, Rate::from_gbps(10));
  EXPECT_EQ(shape.uplink_rate, Rate::from_gbps(40));
  EXPECT_EQ(shape.delay, Nanos(1'000));
  EXPECT_EQ(experiment.topology->buffer_bytes, 250'000U);
  EXPECT_TRUE(experiment.topology->ecn.enabled);
  EXPECT_EQ(experiment.topology->mtu, 9000U);
  EXPECT_EQ(experiment.topology->seed, 9U);
  EXPECT_EQ(experiment.bottleneck.rate, Rate::from_gbps(10));
  EXPECT_THAT(experiment.jobs[0].hosts, ElementsAre(0U, 4U));
  EXPECT_EQ(parse(kFabric + kRing).topology->topology->leaf_spine_shape()->uplink_rate, Rate::from_gbps(10));
}

TEST(Topology, parse__refuses_what_does_not_fit) {
  const std::string link = "[bottleneck]\nrate = \"1 Gbps\"\n";
  EXPECT_EQ(refusal(kRing),
            "e.toml:1: bottleneck: the table is missing; add [bottleneck] with at least rate = \"1 "
            "Gbps\", or a [topology]");
  EXPECT_EQ(refusal(link + kFabric + kRing), "e.toml:3: topology: the file has a bottleneck too; keep one of the two");
  EXPECT_EQ(refusal(link + kRing),
            "e.toml:7: job[1].hosts: a bottleneck has no hosts to choose from; leave the key out, or use a [topology]");
  FileOptions ring;
  ring.datapaths = {"sim", "ring"};
  ring.datapath = "ring";
  EXPECT_EQ(refusal(kFabric + kRing, ring),
            "e.toml:1: topology: datapath ring has one switch and no topology; use datapath sim");
  EXPECT_EQ(refusal(changed("leaf-spine", "torus") + kRing),
            "e.toml:2: topology.kind: \"torus\" is not known; write \"leaf-spine\", \"single-switch\", \"fat-tree\", "
            "\"file\" or \"slurm\"");
  EXPECT_EQ(refusal(changed("spines = 1\n", "") + kRing),
            "e.toml:1: topology.spines: the key is missing; write spines = 4");
  EXPECT_THAT(refusal(changed("spines = 1", "spines = 0") + kRing), HasSubstr("topology.spines: 0 is out of range"));
  EXPECT_THAT(refusal(changed("hosts_per_leaf = 4", "hosts_per_leaf = 1024") + kRing), HasSubstr("no error"));
  EXPECT_THAT(refusal(changed("leaves = 2", "leaves = 16385") + kRing), HasSubstr("topology.leaves: 16385"));
  EXPECT_THAT(
      refusal(changed("leaves = 2\nspines = 1\nhosts_per_leaf = 4", "leaves = 65\nspines = 1\nhosts_per_leaf = 1024") +
              kRing),
      HasSubstr("topology.hosts_per_leaf: the network has 66560 hosts"));
  EXPECT_THAT(refusal(changed("mtu = 9000", "mtu = 9001") + kRing), HasSubstr("topology.mtu: 9001 is out of range"));
  EXPECT_THAT(refusal(changed("250 kB", "9 kB") + kRing), HasSubstr("topology.buffer: 9 kB is less than one packet"));
  EXPECT_THAT(refusal(changed("delay", "dleay") + kRing), HasSubstr("did you mean \"delay\"?"));
  const auto hosts = [](const std::string& list) {
    std::string text = kRing;
    return kFabric + text.replace(text.find("[0, 4]"), 6, list);
  };
  EXPECT_THAT(refusal(hosts("[0]")), HasSubstr("job[1].hosts: a ring has at least two workers"));
  EXPECT_THAT(refusal(hosts("[0, 8]")), HasSubstr("job[1].hosts: 8 is out of range; write 0 to 7"));
  EXPECT_THAT(refusal(hosts("[0, 4, 0]")), HasSubstr("host 0 appears twice"));
  EXPECT_THAT(refusal(hosts("4")), HasSubstr("an array of host numbers is expected"));
}

TEST(Topology, parse__reads_shared_memory_and_pfc) {
  const auto with = [](const std::string& keys) { return changed("buffer = \"250 kB\"\n", keys) + kRing; };
  const auto shared = parse(with("shared_buffer = \"4 MB\"\nalpha = 2\n")).topology.value();
  EXPECT_EQ(shared.memory.bytes, 4'000'000U);
  EXPECT_EQ(shared.memory.alpha, 2.0);
  EXPECT_FALSE(shared.memory.pfc.enabled);
  const auto lossless = parse(with("shared_buffer = \"4 MB\"\npfc = { xoff = \"100 kB\", xon = \"80 kB\" }\n"));
  EXPECT_TRUE(lossless.topology->memory.pfc.enabled);
  EXPECT_EQ(lossless.topology->memory.pfc.xoff_bytes, 100'000U);
  EXPECT_EQ(lossless.topology->memory.pfc.xon_bytes, 80'000U);
  EXPECT_EQ(lossless.topology->pfc_headroom_bytes, 0U);
  const auto given =
      parse(with("shared_buffer = \"4 MB\"\npfc = { xoff = \"100 kB\", headroom = \"30 kB\" }\n")).topology.value();
  EXPECT_EQ(given.memory.pfc.xon_bytes, 50'000U);
  EXPECT_EQ(given.pfc_headroom_bytes, 30'000U);

  EXPECT_EQ(refusal(kFabric + "shared_buffer = \"4 MB\"\n" + kRing),
            "e.toml:10: topology.shared_buffer: buffer gives each port its own memory too; keep one of the two");
  EXPECT_EQ(refusal(with("alpha = 2\n")),
            "e.toml:8: topology.alpha: alpha needs memory that ports share; add shared_buffer = \"16 MB\"");
  EXPECT_THAT(refusal(with("pfc = { xoff = \"1 kB\" }\n")),
              HasSubstr("topology.pfc: pfc needs memory that ports share"));
  EXPECT_THAT(refusal(with("shared_buffer = \"4 MB\"\nalpha = 1\npfc = { xoff = \"1 kB\" }\n")),
              HasSubstr("topology.alpha: alpha bounds queues, but with pfc no queue is bounded"));
  EXPECT_THAT(refusal(with("shared_buffer = \"4 MB\"\nalpha = 0\n")), HasSubstr("topology.alpha: 0 is out of range"));
  EXPECT_THAT(refusal(with("shared_buffer = \"4 MB\"\npfc = { xon = \"1 kB\" }\n")),
              HasSubstr("topology.pfc.xoff: the key is missing"));
  EXPECT_THAT(refusal(with("shared_buffer = \"4 MB\"\npfc = { xoff = \"0 B\" }\n")), HasSubstr("it is 0"));
  EXPECT_THAT(refusal(with("shared_buffer = \"4 MB\"\npfc = { xoff = \"1 kB\", xon = \"1 kB\" }\n")),
              HasSubstr("topology.pfc.xon: 1 kB is not below xoff"));
  // The switch reserves xoff and headroom for each of its 5 ports (four hosts and a spine). Policy priority reserves
  // both for each of 8 queues per port.
  const std::string small = with("shared_buffer = \"1 MB\"\npfc = { xoff = \"100 kB\" }\n");
  EXPECT_EQ(refusal(small), "no error");
  EXPECT_THAT(refusal("policies = [\"priority\"]\n" + small),
              HasSubstr("e.toml:2: topology: switches of 1 MB can't keep xoff and headroom"));
}

TEST(Topology, parse__priorities) {
  const auto job = [](const std::string& keys) { return kFabric + kRing + keys; };
  EXPECT_EQ(parse(job("priority = 7\n")).jobs[0].priority, 7U);
  EXPECT_EQ(parse(job("")).jobs[0].priority, 0U);
  EXPECT_THAT(refusal(job("priority = 8\n")), HasSubstr("job[1].priority: 8 is out of range; write 0 to 7"));
  FileOptions ring;
  ring.datapaths = {"sim", "ring"};
  const std::string file = "policies = [\"priority\"]\ndatapath = \"ring\"\n[bottleneck]\nrate = \"1 Gbps\"\n" + kRing;
  EXPECT_EQ(refusal(file, ring),
            "e.toml:1: policies: datapath ring has no priority queues; leave policy \"priority\" out, or "
            "use datapath sim");
  const std::string two = "policies = [\"priority\"]\n" + kFabric + kRing +
                          "[[job]]\nname = \"b\"\ncompute = \"9 ms\"\ncommunicate = \"1 MB\"\n";
  EXPECT_THAT(parse(two).warnings, ElementsAre(HasSubstr("the same priority")));
  EXPECT_THAT(parse(two + "priority = 1\n").warnings, IsEmpty());
}

TEST(Topology, parse__warns_of_a_host_link_that_is_too_full) {
  // 13.5 MB at 10 Gbps take 10.8 ms of an iteration of 25.8 ms. Three jobs need 126% of the link that they share.
  std::string text = kFabric;
  for (const std::string name : {"a", "b", "c"})
    text += "[[job]]\nname = \"" + name + "\"\ncompute = \"15 ms\"\ncommunicate = \"13.5 MB\"\nhosts = [6, 2]\n";
  EXPECT_THAT(parse(text).warnings, ElementsAre(HasSubstr("126% of the link of host 2")));
  EXPECT_THAT(parse(kFabric + kRing).warnings, IsEmpty());
}

TEST(Topology, place__rings_and_single_workers) {
  std::vector<workload::Job> jobs(4);
  jobs[1].hosts = {5, 0, 3};
  const std::vector<workload::Placement> placements = workload::place(jobs, 6);
  EXPECT_THAT(placements[0].workers, ElementsAre(workload::WorkerHosts{0, 3}));
  EXPECT_THAT(placements[1].workers,
              ElementsAre(workload::WorkerHosts{5, 0}, workload::WorkerHosts{0, 3}, workload::WorkerHosts{3, 5}));
  EXPECT_THAT(placements[2].workers, ElementsAre(workload::WorkerHosts{1, 4}));
  EXPECT_THAT(placements[3].workers, ElementsAre(workload::WorkerHosts{2, 5}));
  EXPECT_EQ(placements[3].job, 3U);
}

const std::string kTwoRings = "name = \"t\"\niterations = 24\npolicies = [\"fair\", \"mltcp\"]\n" + kFabric + kRing +
                              R"([[job]]
name = "b"
compute = "15 ms"
communicate = "13.5 MB"
start = "300 us"
hosts = [1, 5]
)";

Results run(const std::string& text, bool real_payload = false) {
  return run_experiment(parse(text), *make_sim_datapath(real_payload));
}

TEST(Topology, mltcp__interleaves_two_rings_on_an_oversubscribed_uplink) {
  const Results results = run(kTwoRings);
  ASSERT_EQ(results.runs.size(), 2U);
  const auto& mltcp = results.runs[1];
  for (const JobResult& job : mltcp.jobs) {
    EXPECT_NEAR(job.isolated.millis(), 15 + 10.9, 0.3);
    EXPECT_LE(static_cast<double>(job.second_half_mean.count), 1.01 * static_cast<double>(job.isolated.count));
    EXPECT_EQ(job.bytes, 24 * 2 * 13'500'000U);
    EXPECT_EQ(job.bytes_per_iteration, 2 * 13'500'000U);
  }
  EXPECT_THAT(mltcp.bottleneck.name, AnyOf("leaf 0 -> spine 0", "leaf 1 -> spine 0"));
  EXPECT_EQ(mltcp.bottleneck.usage.jobs.size(), 2U);
  ASSERT_EQ(mltcp.links.size(), 8U + 2 + 8 + 2);
  for (const LinkResult& link : mltcp.links) EXPECT_LE(link.utilization, mltcp.bottleneck.utilization) << link.name;
  EXPECT_EQ(mltcp.links[0].name, "host 0 -> leaf 0");
  EXPECT_NEAR(mltcp.links[0].utilization, mltcp.bottleneck.utilization / 2, 0.02);
}

/// Returns the slow-down of each of two jobs that start together on one link under policy priority. The second job has
/// the higher priority.
std::vector<double> slowdowns_by_priority(const std::string& network, const std::string& hosts_a,
                                          const std::string& hosts_b) {
  const std::string job = "compute = \"5 ms\"\ncommunicate = \"5 MB\"\n";
  const Results results =
      run("name = \"t\"\niterations = 10\npolicies = [\"priority\"]\n" + network + "[[job]]\nname = \"a\"\n" + job +
          hosts_a + "[[job]]\nname = \"b\"\npriority = 3\n" + job + hosts_b);
  return {results.runs[0].jobs[0].slowdown, results.runs[0].jobs[1].slowdown};
}

TEST(Topology, priority__the_higher_job_is_as_if_alone) {
  const std::string dumbbell = "[bottleneck]\nrate = \"10 Gbps\"\nbuffer = \"100 kB\"\n";
  for (const auto& slowdowns : {slowdowns_by_priority(dumbbell, "", ""),
                                slowdowns_by_priority(kFabric, "hosts = [0, 4]\n", "hosts = [1, 5]\n")}) {
    EXPECT_LT(slowdowns[1], 1.01);
    EXPECT_GT(slowdowns[0], 1.02);
  }
}

TEST(Topology, pfc__a_run_loses_nothing) {
  std::string file = kTwoRings;
  file.replace(file.find("iterations = 24"), 15, "iterations = 3");
  const Results lossy = run(file);
  file.replace(file.find("buffer = \"250 kB\""), 17, "shared_buffer = \"2 MB\"\npfc = { xoff = \"100 kB\" }");
  const Results lossless = run(file);
  const auto sum = [](const auto& links, auto member) {
    std::uint64_t all = 0;
    for (const LinkResult& link : links) all += link.*member;
    return all;
  };
  EXPECT_GT(sum(lossy.runs[0].links, &LinkResult::dropped_packets), 0U);
  EXPECT_EQ(sum(lossy.runs[0].links, &LinkResult::pauses), 0U);
  EXPECT_EQ(sum(lossless.runs[0].links, &LinkResult::dropped_packets), 0U);
  EXPECT_GT(sum(lossless.runs[0].links, &LinkResult::pauses), 0U);
  for (const JobResult& job : lossless.runs[0].jobs) EXPECT_EQ(job.retransmitted_packets, 0U);
}

// Four jobs, each from a host of one leaf to a host of the other, over four uplinks: hashes put several on one.
TEST(Topology, parse__reads_trimming_and_faults_of_links) {
  const std::string faults =
      "trim = \"128 B\"\nfaults = [{ links = \"leaf 0 -> *\", at = \"2 ms\", until = \"3 ms\", "
      "share = 0.1 }, { links = \"spine 0 -> leaf 1\", share = 0 }]\n";
  const Experiment read =
      parse_experiment(changed("spines = 1\n", "spines = 1\n" + faults) + kRing, "e.toml", FileOptions{});
  const fabric::SwitchedNetworkConfig& network = *read.topology;
  EXPECT_EQ(network.trim_bytes, 128U);
  std::size_t of_spine = 0;
  for (const fabric::LinkFault& fault : network.faults)
    if (network.topology->link_name(fault.link) == "spine 0 -> leaf 1") {
      ++of_spine;
      EXPECT_TRUE(fault.change.rate.is_zero());
      EXPECT_EQ(fault.change.at, Nanos(0));
    } else if (fault.change.at == Nanos(2'000'000)) {
      EXPECT_EQ(fault.change.rate.bits_per_second * 10, network.topology->capacity(fault.link).bits_per_second);
    } else {
      EXPECT_EQ(fault.change.at, Nanos(3'000'000));
      EXPECT_EQ(fault.change.rate, network.topology->capacity(fault.link));
    }
  EXPECT_EQ(of_spine, 1U);
  EXPECT_GT(network.faults.size(), 4U);
}

TEST(Topology, parse__refuses_wrong_trimming_and_faults) {
  const auto with = [](const std::string& keys) {
    return refusal(changed("spines = 1\n", "spines = 1\n" + keys + "\n") + kRing);
  };
  EXPECT_THAT(with("trim = \"80 B\""), HasSubstr("topology.trim: a trimmed packet must keep the headers of its data"));
  EXPECT_THAT(with("faults = [{ links = \"leaf 9 -> *\", share = 0 }]"), HasSubstr("no link matches \"leaf 9 -> *\""));
  EXPECT_THAT(with("faults = [{ links = \"*\", share = 2 }]"), HasSubstr("2 is out of range"));
  EXPECT_THAT(with("faults = [{ links = \"*\" }]"), HasSubstr("share"));
  EXPECT_THAT(with("faults = [{ links = \"*\", share = 0, at = \"2 ms\", until = \"1 ms\" }]"),
              HasSubstr("the fault ends before it begins"));
}

// From the second iteration on, one of four spines is down in one direction. Its paths are retired after two losses
// each.
TEST(Topology, dead_spine__costs_little_with_several_paths) {
  std::string file = "iterations = 6\ncc = \"dctcp\"\npolicies = [\"fair\"]\n" +
                     changed("spines = 1\n",
                             "spines = 4\nfaults = [{ links = \"leaf 0 -> spine 1\", at = \"12 ms\", share = 0 }]\n"
                             "ecn = { kmin = \"60 kB\" }\n");
  for (const char* const hosts : {"[0, 4]", "[1, 5]"})
    file += std::string("[[job]]\nname = \"") + hosts[1] +
            "\"\ncompute = \"5 ms\"\ncommunicate = \"6 MB\"\nhosts = " + hosts + "\n";
  const Results results = run("balance = \"mixed\"\n" + file);
  EXPECT_GT(results.runs[0].jobs[0].retransmitted_packets, 0U);
  for (const JobResult& job : results.runs[0].jobs) {
    const auto later = static_cast<double>(job.second_half_mean.count) / static_cast<double>(job.isolated.count);
    EXPECT_LT(later, 1.03) << job.name;
  }
}

TEST(Topology, balance__spreads_jobs_over_all_uplinks) {
  std::string file = "iterations = 4\npolicies = [\"fair\"]\n" + changed("spines = 1", "spines = 4");
  for (const char* const hosts : {"[0, 4]", "[1, 5]", "[2, 6]", "[3, 7]"})
    file += std::string("[[job]]\nname = \"") + hosts[1] +
            "\"\ncompute = \"5 ms\"\ncommunicate = \"6 MB\"\nhosts = " + hosts + "\n";
  const auto slowest = [&](const std::string& keys) {
    const Results results = run(keys + file);
    double max = 0;
    for (const JobResult& job : results.runs[0].jobs)
      max = std::max(max, static_cast<double>(job.mean.count) / static_cast<double>(job.isolated.count));
    return max;
  };
  EXPECT_GT(slowest(""), 1.3);
  for (const std::string balance : {"spray", "reps", "bitmap", "mixed"})
    EXPECT_LT(slowest("balance = \"" + balance + "\"\n"), 1.12) << balance;
}

TEST(Topology, ring__waits_for_its_slowest_worker) {
  // Worker 0 sends across the spine, at a tenth of the rate. Worker 1 finishes early and waits.
  const Results results = run(R"(name = "t"
iterations = 3
policies = ["fair"]
)" + changed("buffer = \"250 kB\"", "buffer = \"2 MB\"") +
                                  R"(uplink_rate = "1 Gbps"
[[job]]
name = "a"
compute = "1 ms"
communicate = "1 MB"
flows = 3
hosts = [0, 1, 4]
)",
                              true);
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_EQ(job.checksum_errors, 0U);
  EXPECT_EQ(job.bytes, 3 * 3 * 1'000'000U);
  // 1 MB with headers takes 8.1 ms on the uplink. The buffer holds all of it, because losses would cost a random time.
  for (const Nanos time : job.iterations) EXPECT_NEAR(time.millis(), 1 + 8.1, 0.3);
}

TEST(Topology, job_without_hosts__sends_across_the_spine) {
  const Results results = run(R"(name = "t"
iterations = 3
policies = ["fair"]
)" + kFabric + R"([[job]]
name = "a"
communicate = "1 MB"
)");
  const auto& only = results.runs[0];
  EXPECT_EQ(only.jobs[0].bytes, 3 * 1'000'000U);
  for (const LinkResult& link : only.links)
    EXPECT_EQ(link.utilization > 0, link.name == "host 0 -> leaf 0" || link.name == "leaf 0 -> spine 0" ||
                                        link.name == "spine 0 -> leaf 1" || link.name == "leaf 1 -> host 4")
        << link.name;
}

TEST(Topology, virtual_time__is_the_same_bit_for_bit_from_the_same_seed) {
  const auto text = [&](const std::string& seed) {
    std::string file = kTwoRings;
    file.replace(file.find("iterations = 24"), 15, "seed = " + seed + "\niterations = 3");
    file.replace(file.find("spines = 1"), 10, "spines = 3");
    file += "flows = 4\njitter = \"1 ms\"\n";
    return written(run(file));
  };
  const std::string first = text("1");
  EXPECT_EQ(first, text("1"));
  EXPECT_NE(first, text("2"));
  EXPECT_EQ(parse_json(first, "t.json").runs[0].links.size(), 8U + 6 + 8 + 6);
}

// ---- Every kind of topology ----

constexpr const char* kMixedLinks =
    "from,to,rate,delay,direction\n"
    "gpu-1,rack-a,10 Gbps,,\n"
    "gpu-2,rack-a,10 Gbps,,\n"
    "rack-b,gpu-3,10 Gbps,500 ns,\n"
    "gpu-4,rack-b,5 Gbps,500 ns,\n"
    "rack-a,core-1,10 Gbps,2 us,\n"
    "rack-a,core-2,10 Gbps,2 us,\n"
    "rack-b,core-1,10 Gbps,2 us,\n"
    "core-2,rack-b,10 Gbps,2 us,one-way\n"
    "rack-b,core-2,5 Gbps,2 us,one-way\n";

/// Fixture for experiments whose [topology] table may name a file of links.
class Kinds : public testing::Test {
 protected:
  void SetUp() override { write("net.csv", kMixedLinks); }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  [[nodiscard]] Experiment load(const std::string& text) const {
    return parse_experiment(text, (folder_ / "e.toml").string(), FileOptions{});
  }
  [[nodiscard]] std::string refused(const std::string& text) const {
    try {
      static_cast<void>(load(text));
    } catch (const InputError& error) {
      std::string what = error.what();
      for (std::size_t at = 0; (at = what.find(folder_.string() + "/")) != std::string::npos;)
        what.erase(at, folder_.string().size() + 1);
      return what;
    }
    return "no error";
  }
  /// Returns a [topology] table for each kind of network, each with four or more hosts.
  static const std::map<std::string, std::string>& tables() {
    static const std::map<std::string, std::string> all{
        {"single-switch", "kind = \"single-switch\"\nhosts = 4\nhost_rate = \"10 Gbps\"\n"},
        {"leaf-spine", "kind = \"leaf-spine\"\nleaves = 2\nspines = 3\nhosts_per_leaf = 2\nhost_rate = \"10 Gbps\"\n"},
        {"fat-tree", "kind = \"fat-tree\"\nk = 4\nrate = \"10 Gbps\"\n"},
        {"file", "kind = \"file\"\nfile = \"net.csv\"\nhosts = \"gpu-*\"\n"}};
    return all;
  }
  static std::string table(const std::string& kind) { return "[topology]\n" + tables().at(kind); }

  TemporaryFolder folder_;
};

const std::string kTwoJobs =
    "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"3 MB\"\nhosts = [0, 2]\nflows = 5\nrate = \"2 Gbps\"\n"
    "[[job]]\nname = \"b\"\ncompute = \"5 ms\"\ncommunicate = \"3 MB\"\nhosts = [3, 1]\nflows = 4\nrate = \"2 Gbps\"\n"
    "start = \"3 ms\"\n";

TEST_F(Kinds, parse__reads_every_kind) {
  const Experiment single = load(table("single-switch") + kTwoJobs);
  EXPECT_EQ(single.topology->hosts(), 4U);
  EXPECT_EQ(single.topology->topology->switches(), 1U);
  EXPECT_EQ(single.topology->round_trip_delay(), Nanos(4'000));
  const Experiment fat = load(table("fat-tree") + "delay = \"3 us\"\n" + kTwoJobs);
  EXPECT_EQ(fat.topology->hosts(), 16U);
  EXPECT_EQ(fat.topology->topology->switches(), 20U);
  EXPECT_EQ(fat.topology->round_trip_delay(), Nanos(36'000));
  EXPECT_EQ(load(table("leaf-spine") + kTwoJobs).topology->round_trip_delay(), Nanos(8'000));

  const Experiment file = load(table("file") + "delay = \"4 us\"\nmtu = 9000\necn = { kmin = \"60 kB\" }\n" + kTwoJobs);
  const Topology& topology = *file.topology->topology;
  EXPECT_EQ(topology.hosts(), 4U);
  EXPECT_EQ(topology.host_name(2), "gpu-3");
  EXPECT_EQ(topology.switches(), 4U);
  EXPECT_EQ(topology.links(), 16U);
  EXPECT_EQ(topology.delay(topology.find_link("gpu-1 -> rack-a")), Nanos(4'000));
  EXPECT_EQ(topology.delay(topology.find_link("gpu-3 -> rack-b")), Nanos(500));
  EXPECT_EQ(topology.capacity(topology.find_link("core-2 -> rack-b")), Rate::from_gbps(10));
  EXPECT_EQ(topology.capacity(topology.find_link("rack-b -> core-2")), Rate::from_gbps(5));
  EXPECT_EQ(file.topology->mtu, 9000U);
  EXPECT_TRUE(file.topology->ecn.enabled);
  EXPECT_EQ(file.topology->host_rate(), Rate::from_gbps(10));
}

TEST_F(Kinds, parse__jobs_name_hosts_and_send_as_fast_as_the_slowest) {
  const Experiment experiment =
      load(table("file") +
           "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\nhosts = [\"gpu-2\", 2]\n"
           "[[job]]\nname = \"b\"\ncommunicate = \"1 MB\"\nhosts = [\"gpu-4\", \"gpu-1\"]\n"
           "[[job]]\nname = \"c\"\ncommunicate = \"1 MB\"\nrate = \"1 Gbps\"\nhosts = [3, 0]\n");
  EXPECT_THAT(experiment.jobs[0].hosts, ElementsAre(1, 2));
  EXPECT_THAT(experiment.jobs[1].hosts, ElementsAre(3, 0));
  EXPECT_EQ(experiment.jobs[0].rate, Rate());
  EXPECT_EQ(experiment.jobs[1].rate, Rate::from_gbps(5));
  EXPECT_EQ(experiment.jobs[2].rate, Rate::from_gbps(1));
  EXPECT_EQ(refused(table("file") + "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\nhosts = [\"gpu-1\", \"core-1\"]\n"),
            "e.toml:8: job[1].hosts: there is no host \"core-1\"; the first host is \"gpu-1\"");
}

TEST_F(Kinds, parse__fingerprint_is_of_the_links_too) {
  const std::string before = load(table("file") + kTwoJobs).fingerprint;
  EXPECT_EQ(load(table("file") + kTwoJobs).fingerprint, before);
  std::string links = kMixedLinks;
  write("net.csv", links.replace(links.find("2 us"), 4, "3 us"));
  EXPECT_NE(load(table("file") + kTwoJobs).fingerprint, before);
}

TEST_F(Kinds, parse__one_clear_error) {
  const auto file = [&](const std::string& links, const std::string& hosts = "\"h*\"") {
    write("bad.csv", links);
    return refused("[topology]\nkind = \"file\"\nfile = \"bad.csv\"\nhosts = " + hosts + "\n" + kTwoJobs);
  };
  const auto topology = [&](const std::string& keys) { return refused("[topology]\n" + keys + kTwoJobs); };
  EXPECT_EQ(topology("kind = \"fat-tree\"\nrate = \"1 Gbps\"\n"),
            "e.toml:1: topology.k: the key is missing; write k = 4");
  EXPECT_EQ(topology("kind = \"fat-tree\"\nrate = \"1 Gbps\"\nk = 5\n"),
            "e.toml:4: topology.k: switches with 5 ports cannot have half of their ports up and half down; write an "
            "even number, such as 6");
  EXPECT_EQ(topology("kind = \"fat-tree\"\nrate = \"1 Gbps\"\nk = 128\n"),
            "e.toml:4: topology.k: 128 is out of range; write 2 to 64");
  EXPECT_EQ(topology("kind = \"single-switch\"\nhosts = 1000000\nhost_rate = \"1 Gbps\"\n"),
            "e.toml:3: topology.hosts: 1000000 is out of range; write 2 to 65536");
  EXPECT_THAT(topology("kind = \"single-switch\"\nhosts = 4\nhost_rate = \"1 Gbps\"\nspines = 1\n"),
              StartsWith("e.toml:5: topology.spines: unknown key; the keys here are kind, hosts, host_rate, "));
  EXPECT_EQ(topology("kind = \"file\"\nhosts = \"h*\"\n"),
            "e.toml:1: topology.file: the key is missing; write file = \"network.csv\"");
  EXPECT_EQ(topology("kind = \"file\"\nfile = \"none.csv\"\nhosts = \"h*\"\n"),
            "e.toml:3: topology.file: none.csv: there is no such file; give the path of a file of links");
  EXPECT_EQ(file("from,to,rate\nh1,s,1 Gbps\nh2,t,1 Gbps\n"),
            "e.toml:3: topology.file: bad.csv: \"h1\" and \"h2\" are in parts of the network that no link joins; add "
            "links between them");
  EXPECT_EQ(file("from,to,rate,direction\nh1,s,1 Gbps,\nh2,t,1 Gbps,\ns,t,1 Gbps,one-way\n"),
            "e.toml:3: topology.file: bad.csv: no path leads from \"h2\" to \"h1\"; add links in this direction");
  EXPECT_EQ(file("from,to,rate\nh1,s,1 Gbps\nh1,t,1 Gbps\n"),
            "e.toml:3: topology.file: bad.csv:3: from: host \"h1\" has a link in line 2 already; a host has one link: "
            "write one link with the total rate, or several hosts");
  EXPECT_EQ(file("from,to,rate\na1,s,1 Gbps\n"),
            "e.toml:4: topology.hosts: no node of \"bad.csv\" matches \"h*\"; write a pattern of the hosts' names; the "
            "first node is \"a1\"");
  EXPECT_THAT(file("from,to,rate\nh1,s,1 Gbps\n", "[\"h*\", \"x\"]"), HasSubstr("matches \"x\"; "));
  EXPECT_THAT(file("from,to,rate\nh1,s,1 Gbps\n"), HasSubstr("e.toml:4: topology.hosts: 1 of 2 nodes is matched; "));
  EXPECT_THAT(file("from,to,rate\nh1,s,1 Gbps\n", "[]"), HasSubstr("topology.hosts: 0 of 2 nodes are matched; "));
  EXPECT_THAT(file("from,to,rate\nh1,s,1 Gbps\n", "[5]"), HasSubstr("topology.hosts: a text is expected"));
}

// On every kind of network, each connection of each worker uses the same links at packet level and at flow level.
TEST_F(Kinds, run__flows_take_the_paths_of_packets) {
  for (const auto& [kind, keys] : tables()) {
    SCOPED_TRACE(kind);
    Experiment experiment = load("seed = 5\niterations = 3\npolicies = [\"fair\"]\n[topology]\n" + keys + kTwoJobs);
    const auto packets = run_experiment(experiment, *make_sim_datapath()).runs.at(0);
    experiment.datapath = "flow";
    const auto flows = run_experiment(experiment, *make_flow_datapath()).runs.at(0);
    ASSERT_EQ(packets.links.size(), experiment.topology->topology->links());
    ASSERT_EQ(flows.links.size(), packets.links.size());
    std::size_t used = 0;
    for (std::size_t i = 0; i < packets.links.size(); ++i) {
      EXPECT_EQ(packets.links[i].name, flows.links[i].name);
      // A flow uses at least 0.02 of a link. At flow level, acknowledgements count only on links that carry data of
      // their job.
      EXPECT_NEAR(flows.links[i].utilization, packets.links[i].utilization, 0.007 + 0.04 * packets.links[i].utilization)
          << flows.links[i].name;
      used += flows.links[i].utilization > 0.007 ? 1U : 0U;
    }
    EXPECT_GE(used, kind == "single-switch" ? 8U : 12U);
    for (std::size_t job = 0; job < 2; ++job)
      EXPECT_NEAR(static_cast<double>(flows.jobs[job].isolated.count),
                  static_cast<double>(packets.jobs[job].isolated.count), 0.01 * 17e6);
  }
}

// Two jobs fill the links of a host that both use. Slots keep the jobs apart on every kind of network.
TEST_F(Kinds, run__jobs_interleave) {
  std::string links = kMixedLinks;
  links.replace(links.find("core-2,5 Gbps"), 13, "core-2,10 Gbps");
  write("net.csv", links);
  for (const auto& [kind, keys] : tables()) {
    SCOPED_TRACE(kind);
    const std::string ring = "[[job]]\ncompute = \"20 ms\"\ncommunicate = \"10 MB\"\nrate = \"9.6 Gbps\"\n";
    const std::string jobs = ring + "name = \"a\"\nhosts = [0, 2]\n" + ring + "name = \"b\"\nhosts = [1, 2]\n";
    const Experiment experiment = load("iterations = 12\npolicies = [\"fair\", \"schedule\"]\n[topology]\n" + keys +
                                       "buffer = \"100 kB\"\n" + jobs);
    const auto runs = run_experiment(experiment, *make_sim_datapath()).runs;
    for (std::size_t job = 0; job < 2; ++job) {
      const JobResult& planned = runs[1].jobs[job];
      EXPECT_LT(planned.mean, runs[0].jobs[job].mean);
      EXPECT_NEAR(static_cast<double>(planned.mean.count) / static_cast<double>(planned.isolated.count), 1, 0.02);
    }
  }
}

TEST(Topology, load__example_of_a_file_of_links) {
  const Experiment experiment =
      load_experiment(std::filesystem::path(MLTCP_EXAMPLES) / "network-from-file.toml", FileOptions{});
  EXPECT_THAT(experiment.warnings, IsEmpty());
  EXPECT_EQ(experiment.topology->hosts(), 12U);
  EXPECT_EQ(experiment.topology->topology->racks(), 3U);
  EXPECT_EQ(experiment.topology->topology->oversubscription(), 4.0);
}

// Ranks send and receive at the same time, in many short bursts and one long one, on links that they share. Nothing of
// this is another job's queue.
TEST(Topology, turns__lone_pipeline_does_not_wait) {
  const Results results =
      run("policies = [\"fair\", \"turns\"]\niterations = 6\n" + kFabric +
          "[[job]]\nname = \"a\"\ncompute = \"40 ms\"\ngradients = \"29 MB\"\nactivations = \"50 kB\"\n"
          "micro_batches = 4\nparallel = { data = 2, pipeline = 2 }\nhosts = [0, 1, 4, 5]\n");
  const auto mean = [&](std::size_t i) { return static_cast<double>(results.runs.at(i).jobs.at(0).mean.count); };
  EXPECT_LT(mean(1), 1.02 * mean(0));
}

// The acknowledgements of a ring wait behind data, so a round-trip time shows queues that do not delay the data.
TEST(Topology, turns__rings_separate_within_three_iterations) {
  std::string text = "policies = [\"turns\"]\niterations = 10\nseed = 100\n" + kFabric;
  for (const std::string name : {"a", "b"})
    text += "[[job]]\nname = \"" + name + "\"\ncompute = \"60 ms\"\ngradients = \"27 MB\"\nparallel = { data = 2 }\n" +
            (name == "a" ? "hosts = [0, 4]\n" : "hosts = [1, 5]\nstart = \"5 ms\"\n");
  for (const JobResult& job : run(text).runs.at(0).jobs) {
    ASSERT_TRUE(job.interleaved_from.has_value());
    EXPECT_LE(*job.interleaved_from, 4U);
  }
}

}  // namespace
}  // namespace mltcp::experiment::topology_test
