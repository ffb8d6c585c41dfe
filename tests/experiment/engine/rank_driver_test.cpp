// Tests ranks in virtual time over a network of switches.
#include "mltcp/lab/experiment/engine/rank_driver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "../../message_of.h"
#include "../../workload/phases.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/topology_network.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/workload/worker_hosts.h"
#include "mltcp/transport/security/packet_key.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using workload::Algorithm;
using workload::Pattern;
using Kind = Pattern::Kind;

struct Network {
  Rate rate{10'000'000'000};
  Nanos delay{1'000};
  Bytes buffer = 4'000'000;
  std::uint32_t mtu = 9000;
};

JobSpec settings_of(const Pattern& pattern, std::uint32_t iterations = 4) {
  JobSpec settings;
  settings.job.name = "a";
  settings.job.pattern = pattern;
  const workload::Outline outline = workload::outline(pattern);
  settings.job.phases = {workload::computes(outline.compute), workload::sends(outline.bytes)};
  settings.job.rate = Network().rate;
  for (std::uint32_t rank = 0; rank < pattern.ranks; ++rank) settings.job.hosts.push_back(rank);
  settings.workers.resize(pattern.ranks);
  settings.iterations = iterations;
  settings.connection.initial_rtt = 1_ms;
  return settings;
}

/// Flips a bit in the last byte of one long payload after the checksums were verified, so that the transport does not
/// detect the change.
class FlippingIo final : public PacketIo {
 public:
  explicit FlippingIo(PacketIo& io) : io_(io) {}
  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t send(std::span<const TxPacket> packets) override { return io_.send(packets); }
  std::size_t receive(std::span<RxPacket> out) override {
    const std::size_t count = io_.receive(out);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].bytes.size() < 1000 || ++long_ones_ != 20) continue;
      copy_.assign(out[i].bytes.begin(), out[i].bytes.end());
      copy_.back() ^= std::byte{1};
      out[i].bytes = copy_;
    }
    return count;
  }

 private:
  PacketIo& io_;
  int long_ones_ = 0;
  std::vector<std::byte> copy_;
};

/// One switch, with a rank on each of its hosts. Optionally, one host receives flipped bytes.
class OneSwitch final : public JobNetwork {
 public:
  OneSwitch(const Network& network, std::uint32_t hosts, bool real_payload, std::optional<std::uint32_t> flipped = {})
      : inner_(config(network, hosts), {.virtual_payload = !real_payload}), flipped_(flipped) {
    std::vector<workload::WorkerHosts> workers;
    for (std::uint32_t host = 0; host < hosts; ++host) workers.push_back({host, (host + 1) % hosts});
    inner_.add(0, workers);
  }
  PacketIo& host(const End& end) override {
    if (end.worker != flipped_) return inner_.host(end);
    flipping_ = std::make_unique<FlippingIo>(inner_.host(end));
    return *flipping_;
  }
  const Address& address(const End& end) override { return inner_.address(end); }
  void attach(const End& end, Pollable& pollable) override { inner_.attach(end, pollable); }
  void wake(const End& end) override { inner_.wake(end); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return inner_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return inner_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override { return inner_.links(); }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return std::nullopt; }

 private:
  static fabric::SwitchedNetworkConfig config(const Network& network, std::uint32_t hosts) {
    fabric::SwitchedNetworkConfig config;
    config.topology = std::make_shared<const Topology>(Topology::single_switch(hosts, network.rate, network.delay));
    config.buffer_bytes = network.buffer;
    config.mtu = network.mtu;
    return config;
  }
  TopologyNetwork inner_;
  std::optional<std::uint32_t> flipped_;
  std::unique_ptr<FlippingIo> flipping_;
};

struct Ran {
  JobResult result;
  std::vector<RankResult> ranks;
};

Ran run(JobSpec settings, const Network& network = {}, bool real_payload = false,
        std::optional<std::uint32_t> flipped = {}, const std::function<void(const JobDriver&)>& look = {}) {
  settings.real_payload = real_payload;
  settings.job.rate = network.rate;
  const std::uint32_t ranks = settings.job.pattern->ranks;
  OneSwitch testbed(network, ranks, real_payload, flipped);
  JobDriver job(testbed, settings);
  EXPECT_TRUE(testbed.run(1_s, [&] { return job.connected(); }));
  job.start(testbed.now());
  while (!testbed.run(testbed.now() + 1_ms, [&] { return job.done(); })) {
    if (look) look(job);
    if (testbed.now() > 100_s) {
      ADD_FAILURE() << "it hangs";
      break;
    }
  }
  Ran ran{job.result(), {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ran.ranks.push_back(job.rank(rank).result());
  return ran;
}

Pattern pattern(Kind kind, std::uint32_t ranks, Bytes size, Algorithm algorithm = Algorithm::ring) {
  Pattern result;
  result.kind = kind;
  result.ranks = ranks;
  result.size = size;
  result.algorithm = algorithm;
  return result;
}

Pattern training(std::uint32_t data, std::uint32_t tensor, std::uint32_t pipeline, Nanos compute) {
  Pattern result = pattern(Kind::training, data * tensor * pipeline, data > 1 ? 10'000'000 : 0);
  result.compute = compute;
  result.training.tensor = tensor;
  result.training.pipeline = pipeline;
  result.training.activations = tensor * pipeline > 1 ? 50'000 : 0;
  return result;
}

double ratio(Nanos a, Nanos b) { return static_cast<double>(a.count) / static_cast<double>(b.count); }

/// Returns the time of a transfer on an idle path of two links, in packets of 9000 bytes at 10 Gbit/s.
Nanos transfer(Bytes bytes) {
  constexpr Bytes payload = 8900;  // each packet also has 100 bytes of headers, or 114 bytes with the Ethernet header
  const Rate rate = Network().rate;
  return rate.time_for(bytes * (payload + 114) / payload) + rate.time_for(9014) + Network().delay * 2;
}

TEST(RankDriver, ring__takes_as_long_as_theory_says) {
  constexpr Bytes size = 80'000'000;
  const Ran ran = run(settings_of(pattern(Kind::all_reduce, 8, size)));
  ASSERT_EQ(ran.result.iterations.size(), 4U);
  const Nanos theory = transfer(size / 8) * 14;
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(ratio(ran.result.iterations[i], theory), 1, 0.015) << i;
  EXPECT_EQ(ran.result.bytes_per_iteration, 14 * size);
  EXPECT_EQ(ran.result.bytes, 4 * 14 * size);
}

TEST(RankDriver, halving_doubling__takes_as_long_as_theory_says) {
  constexpr Bytes size = 80'000'000;
  const Ran ran = run(settings_of(pattern(Kind::all_reduce, 8, size, Algorithm::halving_doubling)));
  const Nanos theory = (transfer(size / 2) + transfer(size / 4) + transfer(size / 8)) * 2;
  EXPECT_NEAR(ratio(ran.result.iterations.back(), theory), 1, 0.02);
}

// The factors of nccl-tests give the bus bandwidth of a collective. It equals the rate of the links if the algorithm
// fills the links.
TEST(RankDriver, bus_bandwidth__is_what_links_carry) {
  struct Case {
    Kind kind;
    double factor;
  };
  for (const auto& [kind, factor] :
       {Case{Kind::all_reduce, 1.75}, Case{Kind::reduce_scatter, 0.875}, Case{Kind::all_gather, 0.875},
        Case{Kind::all_to_all, 0.875}, Case{Kind::point_to_point, 1}}) {
    Pattern of = pattern(kind, 8, 80'000'000);
    of.compute = 30_ms;
    const JobResult result = run(settings_of(of)).result;
    const double carried = static_cast<double>(Network().rate.bits_per_second) * 8900 / 9014;
    EXPECT_NEAR(static_cast<double>(result.bus_bandwidth.bits_per_second) / carried, 1, 0.02) << name(kind);
    EXPECT_NEAR(static_cast<double>(result.bus_bandwidth.bits_per_second) /
                    static_cast<double>(result.algorithm_bandwidth.bits_per_second),
                factor, 1e-6)
        << name(kind);
    EXPECT_NEAR(static_cast<double>(result.algorithm_bandwidth.bits_per_second) * result.communication.seconds() / 8,
                80e6, 10)
        << name(kind);
  }
}

TEST(RankDriver, bus_bandwidth__is_unknown_where_a_pattern_is_no_collective) {
  for (const Pattern& of : {training(4, 1, 1, 10_ms), pattern(Kind::parameter_server, 3, 1'000'000)}) {
    const JobResult result = run(settings_of(of)).result;
    EXPECT_TRUE(result.bus_bandwidth.is_zero()) << name(of.kind);
    EXPECT_EQ(result.communication, 0_ms) << name(of.kind);
    EXPECT_EQ(result.ranks.size(), of.ranks) << name(of.kind);
  }
}

// A rank that ends its computation early waits for the other ranks when it communicates.
TEST(RankDriver, ranks__have_times_of_their_own) {
  Pattern of = pattern(Kind::all_reduce, 4, 400'000);
  of.compute = 20_ms;
  JobSpec settings = settings_of(of, 20);
  settings.job.jitter = 4_ms;
  const Ran ran = run(settings);
  ASSERT_EQ(ran.result.ranks.size(), 4U);
  double all = 0;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const RankTimes& times = ran.result.ranks[rank];
    const IterationStats stats = iteration_stats(ran.ranks[rank].times);
    EXPECT_EQ(times, (RankTimes{rank, {}, stats.mean, stats.p50, stats.p99, times.communication}));
    const Nanos computed = iteration_stats(ran.ranks[rank].computes).mean;
    EXPECT_NEAR(times.communication.millis(), (stats.mean - computed).millis(), 1e-5);
    all += times.communication.millis() / 4;
  }
  EXPECT_NEAR(ran.result.communication.millis(), all, 1e-5);
  EXPECT_NE(ran.result.ranks[0].communication, ran.result.ranks[1].communication);
}

// Together, the two trees use each link in both directions. An all-reduce of S bytes takes as long as the transfer of 2
// S bytes, plus the time to fill the pipeline.
TEST(RankDriver, tree__takes_about_twice_the_transfer) {
  constexpr Bytes size = 80'000'000;
  const Ran ran = run(settings_of(pattern(Kind::all_reduce, 8, size, Algorithm::tree)));
  const double times = ratio(ran.result.iterations.back(), transfer(size));
  EXPECT_GT(times, 1.7);
  EXPECT_LT(times, 2.6);
}

// The bubble of a pipeline with p stages and m micro-batches is (p-1)/m of a stage's compute time.
TEST(RankDriver, pipeline__has_the_bubble_of_theory) {
  for (const std::uint32_t micro_batches : {1U, 4U, 8U}) {
    Pattern of = training(1, 1, 4, 80_ms);
    of.training.micro_batches = micro_batches;
    const Ran ran = run(settings_of(of));
    const double bubble = 3.0 / micro_batches;
    EXPECT_NEAR(ratio(ran.result.iterations.back(), of.compute), 1 + bubble, 0.02 * (1 + bubble)) << micro_batches;
  }
}

TEST(RankDriver, buckets__hide_behind_the_backward_pass) {
  Pattern of = training(4, 1, 1, 60_ms);
  of.size = 20'000'000;  // the all-reduce takes 24 ms in a ring of four ranks, less than the backward pass
  of.training.layers = of.training.buckets = 10;
  const Nanos together = run(settings_of(of)).result.iterations.back();
  of.training.overlap = false;
  const Nanos apart = run(settings_of(of)).result.iterations.back();
  EXPECT_NEAR(apart.millis(), 60 + 24.6, 1.5);
  EXPECT_NEAR(together.millis(), 60 + 2.46, 1);  // only the last bucket does not overlap
}

TEST(RankDriver, every_pattern__brings_every_byte) {
  std::vector<Pattern> all{
      pattern(Kind::all_reduce, 5, 3'000'001),
      pattern(Kind::all_reduce, 8, 3'000'001, Algorithm::halving_doubling),
      pattern(Kind::all_reduce, 7, 3'000'001, Algorithm::tree),
      pattern(Kind::reduce_scatter, 5, 3'000'001),
      pattern(Kind::all_gather, 5, 3'000'001),
      pattern(Kind::all_to_all, 6, 3'000'001),
      pattern(Kind::broadcast, 5, 3'000'001),
      pattern(Kind::broadcast, 5, 3'000'001, Algorithm::tree),
      pattern(Kind::point_to_point, 3, 3'000'001),
      pattern(Kind::parameter_server, 5, 3'000'001),
      training(2, 2, 2, 5_ms),
  };
  all.back().training.micro_batches = 4;
  all.back().training.experts = 40'000;
  for (const Pattern& of : all) {
    JobSpec settings = settings_of(of, 3);
    settings.job.flows = 3;
    const Ran ran = run(settings, {}, true);
    EXPECT_EQ(ran.result.iterations.size(), 3U) << name(of.kind);
    EXPECT_GT(ran.result.verified_messages, 0U) << name(of.kind);
    EXPECT_EQ(ran.result.checksum_errors, 0U) << name(of.kind);
  }
}

TEST(RankDriver, flows__share_the_bytes_of_each_message) {
  JobSpec settings = settings_of(pattern(Kind::point_to_point, 2, 100'000), 100);
  settings.job.flows = 3;
  std::vector<Bytes> sent;
  run(settings, {}, false, {}, [&](const JobDriver& job) {
    sent.clear();
    job.rank(0).visit_connections(
        [&](std::uint32_t, const ConnectionStats& stats) { sent.push_back(stats.bytes_sent); });
  });
  ASSERT_EQ(sent.size(), 3U);
  for (const Bytes each : sent)
    EXPECT_LT(std::max(each, sent[0]) - std::min(each, sent[0]), 50'000U) << "a message of less than a segment, too";
}

// All workers push at the same time, into a queue of a few packets.
TEST(RankDriver, loss__does_not_break_it) {
  Network network;
  network.buffer = 60'000;
  const Ran ran = run(settings_of(pattern(Kind::parameter_server, 8, 2'000'000)), network, true);
  EXPECT_EQ(ran.result.iterations.size(), 4U);
  EXPECT_GT(ran.result.retransmitted_packets, 0U);
  EXPECT_GT(ran.result.verified_messages, 0U);
  EXPECT_EQ(ran.result.checksum_errors, 0U);
}

TEST(RankDriver, verification__finds_a_flipped_byte) {
  const JobSpec settings = settings_of(pattern(Kind::all_reduce, 4, 4'000'000));
  EXPECT_EQ(run(settings, {}, true).result.checksum_errors, 0U);
  const Ran ran = run(settings, {}, true, 2);
  EXPECT_EQ(ran.result.checksum_errors, 1U);
  EXPECT_THAT(ran.ranks[2].first_error, HasSubstr("rank 2: 262144 bytes from rank 1"));
}

TEST(RankDriver, runs__are_the_same_every_time_and_with_real_bytes) {
  Pattern of = training(2, 1, 2, 5_ms);
  of.training.micro_batches = 3;
  JobSpec settings = settings_of(of, 6);
  settings.job.jitter = 1_ms;
  const Ran first = run(settings);
  const Ran second = run(settings);
  const Ran real = run(settings, {}, true);
  EXPECT_EQ(first.result.iterations, second.result.iterations);
  EXPECT_EQ(first.result.iterations, real.result.iterations);
  EXPECT_EQ(first.result.starts, second.result.starts);
  settings.seed = 2;
  EXPECT_NE(first.result.iterations, run(settings).result.iterations);
}

// Each rank has its own jitter. The job is as slow as its slowest rank.
TEST(RankDriver, result__is_that_of_the_slowest_rank) {
  Pattern of = pattern(Kind::all_reduce, 4, 400'000);
  of.compute = 20_ms;
  JobSpec settings = settings_of(of, 20);
  settings.job.jitter = 4_ms;
  const Ran ran = run(settings);
  ASSERT_EQ(ran.result.iteration_compute.size(), 20U);
  Nanos compute;
  for (std::size_t i = 0; i < 20; ++i) {
    Nanos slowest;
    for (const RankResult& rank : ran.ranks) {
      EXPECT_LE(rank.times[i], ran.result.iterations[i]);
      slowest = std::max(slowest, rank.computes[i]);
    }
    EXPECT_GE(ran.result.iterations[i], slowest);
    compute += slowest / 20;
  }
  // The expected maximum of four values is one standard deviation above the mean.
  EXPECT_GT(compute, 22_ms);
}

// A rank posts no receives beyond the end of its next iteration.
TEST(RankDriver, credit__lets_no_rank_run_away) {
  Pattern of = pattern(Kind::broadcast, 3, 100'000);
  JobSpec settings = settings_of(of, 40);
  settings.job.pattern->compute = 2_ms;
  settings.job.phases[0].compute = 2_ms;
  settings.job.straggler = {0.3, 20};
  std::uint64_t widest = 0;
  run(settings, {}, false, {}, [&](const JobDriver& job) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::uint64_t ahead = job.rank(rank).progress().iteration;
      const std::uint64_t behind = job.rank(rank + 1).progress().iteration;
      if (ahead > behind) widest = std::max(widest, ahead - behind);
      EXPECT_GE(ahead + 1, behind);
    }
  });
  // The faster rank may begin an iteration two ahead of the slower rank, but the sends of this iteration wait.
  EXPECT_EQ(widest, 2U);
}

TEST(RankDriver, progress__counts) {
  std::vector<RankDriver::Progress> seen;
  run(settings_of(pattern(Kind::all_reduce, 4, 20'000'000)), {}, false, {},
      [&](const JobDriver& job) { seen.push_back(job.rank(1).progress()); });
  ASSERT_GT(seen.size(), 20U);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].iteration, seen[i - 1].iteration);
    EXPECT_GE(seen[i].sent, seen[i - 1].sent);
    EXPECT_GE(seen[i].received, seen[i - 1].received);
    EXPECT_LE(seen[i].done, seen[i].operations);
  }
  EXPECT_EQ(seen.back().operations, 12U);
  EXPECT_GE(seen.back().sent, 3 * 30'000'000U);
}

// Every rank has a gate, which holds the rank's first bytes until the job's slot.
TEST(RankDriver, time_to_first_send__is_of_ranks_that_do_not_wait) {
  Pattern ring = pattern(Kind::all_reduce, 3, 3'000'000);
  ring.compute = 5_ms;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(time_to_first_send(workload::rank_program(ring, rank)), 5_ms);
  EXPECT_EQ(time_to_first_send(settings_of(ring).job), 5_ms);

  Pattern broadcast = ring;
  broadcast.kind = Kind::broadcast;
  EXPECT_EQ(time_to_first_send(workload::rank_program(broadcast, 0)), 5_ms);
  EXPECT_EQ(time_to_first_send(workload::rank_program(broadcast, 1)), std::nullopt) << "it passes on what it gets";

  Pattern pipeline = training(1, 1, 2, 12_ms);
  pipeline.training.micro_batches = 4;
  EXPECT_EQ(time_to_first_send(workload::rank_program(pipeline, 0)), 1_ms) << "a forward pass of a micro-batch";
  EXPECT_EQ(time_to_first_send(workload::rank_program(pipeline, 1)), std::nullopt);
  EXPECT_EQ(time_to_first_send(settings_of(pipeline).job), 1_ms);
}

TEST(RankDriver, plan__holds_iterations_to_slots) {
  Pattern of = pattern(Kind::all_reduce, 4, 4'000'000);
  of.compute = 10_ms;
  JobSpec settings = settings_of(of, 12);
  OneSwitch testbed({}, 4, false);
  JobDriver job(testbed, settings);
  testbed.run(1_s, [&] { return job.connected(); });
  PhasePlan plan;
  plan.slot = testbed.now() + 15_ms;
  plan.period = 20_ms;
  EXPECT_EQ(job.set_plan(plan), PlanState::active);
  job.start(testbed.now());
  ASSERT_TRUE(testbed.run(testbed.now() + 1_s, [&] { return job.done(); }));
  EXPECT_EQ(job.plan_state(), PlanState::active);
  const JobResult result = job.result();
  EXPECT_GT(result.gate_waited, 10_ms);
  for (std::size_t i = 1; i < 12; ++i) EXPECT_NEAR(result.iterations[i].millis(), 20, 0.05);
  job.clear_plan();
  EXPECT_EQ(job.plan_state(), PlanState::removed);
}

// If the peer runs another pattern, the rank reports this at once.
TEST(RankDriver, another_pattern__ends_in_one_clear_error) {
  const auto with_sizes = [](Bytes first, Bytes second) {
    OneSwitch testbed({}, 2, false);
    const JobSpec a = settings_of(pattern(Kind::point_to_point, 2, first));
    const JobSpec b = settings_of(pattern(Kind::point_to_point, 2, second));
    const JobNetwork::End ends[] = {{JobNetwork::Side::sender, 0, 0}, {JobNetwork::Side::sender, 0, 1}};
    const std::vector<Address> addresses{testbed.address(ends[0]), testbed.address(ends[1])};
    RankDriver one(testbed.host(ends[0]), a, 0, addresses, nullptr, testbed.now());
    RankDriver two(testbed.host(ends[1]), b, 1, addresses, nullptr, testbed.now());
    testbed.attach(ends[0], one);
    testbed.attach(ends[1], two);
    testbed.run(1_s, [&] { return one.connected() && two.connected(); });
    one.start(testbed.now());
    two.start(testbed.now());
    testbed.wake(ends[0]);
    testbed.wake(ends[1]);
    return message_of<RunError>([&] { testbed.run(testbed.now() + 1_s, [&] { return one.done() && two.done(); }); });
  };
  EXPECT_EQ(with_sizes(1000, 1000), "no error");
  EXPECT_EQ(with_sizes(2000, 1000),
            "job \"a\": rank 1: a message is longer than the pattern defines; use the same pattern on all hosts, from "
            "rank 0");
  EXPECT_THAT(with_sizes(500, 500'000), HasSubstr("use the same pattern on all hosts, from rank"));
}

// A peer may send messages of the first and the second iteration before this rank begins. The rank counts each message
// for the iteration that it belongs to.
TEST(RankDriver, late_start__loses_nothing) {
  OneSwitch testbed({}, 2, false);
  const JobSpec settings = settings_of(pattern(Kind::broadcast, 2, 700'000));
  const JobNetwork::End ends[] = {{JobNetwork::Side::sender, 0, 0}, {JobNetwork::Side::sender, 0, 1}};
  const std::vector<Address> addresses{testbed.address(ends[0]), testbed.address(ends[1])};
  RankDriver one(testbed.host(ends[0]), settings, 0, addresses, nullptr, testbed.now());
  RankDriver two(testbed.host(ends[1]), settings, 1, addresses, nullptr, testbed.now());
  testbed.attach(ends[0], one);
  testbed.attach(ends[1], two);
  testbed.run(1_s, [&] { return one.connected() && two.connected(); });
  one.start(testbed.now());
  two.start(testbed.now() + 100_ms);
  testbed.wake(ends[0]);
  testbed.wake(ends[1]);
  testbed.run(testbed.now() + 50_ms, [] { return false; });
  EXPECT_EQ(two.progress().received, 1'400'000U);
  EXPECT_EQ(one.recorded(), 2U);
  EXPECT_TRUE(testbed.run(testbed.now() + 1_s, [&] { return one.done() && two.done(); }));
}

TEST(RankDriver, peer_that_refuses__ends_in_one_clear_error) {
  OneSwitch testbed({}, 2, false);
  JobSpec settings = settings_of(pattern(Kind::point_to_point, 2, 1000));
  settings.number = 3;
  const JobNetwork::End ends[] = {{JobNetwork::Side::sender, 0, 0}, {JobNetwork::Side::sender, 0, 1}};
  const std::vector<Address> addresses{testbed.address(ends[0]), testbed.address(ends[1])};
  RankDriver one(testbed.host(ends[0]), settings, 0, addresses, nullptr, testbed.now());
  Shard two(testbed.host(ends[1]), {.seed = 1});
  testbed.attach(ends[0], one);
  testbed.attach(ends[1], two);
  try {
    testbed.run(1_s, [&] { return one.connected(); });
    FAIL();
  } catch (const ConnectionLost& error) {
    EXPECT_STREQ(error.what(), "job \"a\": rank 0: a connection ended before the job did (refused), to rank 1");
    EXPECT_EQ(error.job, settings.number);
    EXPECT_EQ(error.peer, 1U);
  }
}

// ---- Unknown peers ----

/// Several datapaths on one host, which all send from the host's address. A received packet goes to the datapath that
/// has the packet's connection. If no datapath has this connection, the packet goes to all datapaths.
class SharedHost {
 public:
  SharedHost(PacketIo& io, std::size_t count) : io_(io) {
    for (std::size_t i = 0; i < count; ++i) ends_.push_back(std::make_unique<End>(*this));
  }
  PacketIo& end(std::size_t number) { return *ends_[number]; }

 private:
  struct Packet {
    RxPacket packet;
    std::vector<std::byte> bytes;
  };
  class End final : public PacketIo {
   public:
    explicit End(SharedHost& all) : all_(all) {}
    [[nodiscard]] const Limits& limits() const override { return all_.io_.limits(); }
    std::size_t send(std::span<const TxPacket> packets) override {
      for (const TxPacket& packet : packets) all_.learn(packet.header, *this);
      return all_.io_.send(packets);
    }
    std::size_t receive(std::span<RxPacket> out) override {
      all_.take();
      read_.erase(read_.begin(), read_.begin() + static_cast<std::ptrdiff_t>(given_));
      given_ = std::min(out.size(), read_.size());
      for (std::size_t i = 0; i < given_; ++i) out[i] = read_[i].packet, out[i].bytes = read_[i].bytes;
      return given_;
    }
    std::vector<Packet> read_;

   private:
    SharedHost& all_;
    std::size_t given_ = 0;
  };
  void take() {
    std::array<RxPacket, 32> in;
    while (const std::size_t count = io_.receive(in))
      for (std::size_t i = 0; i < count; ++i) {
        const auto owner = owners_.find(tag_of(in[i].bytes));
        // If a datapath has the connection, only this datapath gets the packet. Another datapath would answer the
        // unknown connection with RESET.
        for (const auto& end : ends_)
          if (owner == owners_.end() || owner->second == end.get())
            end->read_.push_back({in[i], {in[i].bytes.begin(), in[i].bytes.end()}});
      }
  }
  static std::uint64_t tag_of(std::span<const std::byte> packet) {
    std::uint64_t tag = 0;
    if (packet.size() >= wire::kHeaderBytes) std::memcpy(&tag, packet.data() + 8, sizeof tag);
    return tag;
  }
  /// Records which datapath has a connection, by the tag in the datapath's CONNECT or ACCEPT.
  void learn(std::span<const std::byte> packet, End& end) {
    wire::Reader reader;
    wire::Header header;
    wire::Frame frame;
    if (reader.begin(packet, 0, header) != wire::ParseError::none || !reader.next(frame)) return;
    if (frame.type == wire::FrameType::connect || frame.type == wire::FrameType::accept)
      owners_[frame.connect.tag] = &end;
  }

  PacketIo& io_;
  std::vector<std::unique_ptr<End>> ends_;
  std::map<std::uint64_t, End*> owners_;
};

/// Polls all shards of a host together.
class All final : public Pollable {
 public:
  explicit All(std::vector<Pollable*> all) : all_(std::move(all)) {}
  Nanos poll(Nanos now) override {
    Nanos next = Nanos::never();
    for (Pollable* one : all_) next = std::min(next, one->poll(now));
    return next;
  }

 private:
  std::vector<Pollable*> all_;
};

/// Rank 0 sends to rank 1. There are unknown peers on the host of rank 0 and on a separate host.
class UnknownPeers : public testing::Test {
 protected:
  UnknownPeers() {
    settings_.iterations = 20;
    for (std::uint32_t host = 0; host < 3; ++host) {
      ends_.push_back({JobNetwork::Side::sender, 0, host});
      addresses_.push_back(testbed_.address(ends_.back()));
    }
    unknown_peer_config_.max_connections = 2048;
    unknown_peer_config_.seed = 77;
    shared_.emplace(testbed_.host(ends_[0]), 2);
    near_.emplace(shared_->end(1), unknown_peer_config_);
    far_.emplace(testbed_.host(ends_[2]), unknown_peer_config_);
    testbed_.attach(ends_[2], *far_);
  }
  void make_listener() {
    ranks_[1] = std::make_unique<RankDriver>(testbed_.host(ends_[1]), settings_, 1, addresses_, nullptr, now());
    testbed_.attach(ends_[1], *ranks_[1]);
    host0_.emplace(std::vector<Pollable*>{&*near_});
    testbed_.attach(ends_[0], *host0_);
  }
  void make_connector() {
    ranks_[0] = std::make_unique<RankDriver>(shared_->end(0), settings_, 0, addresses_, nullptr, now());
    host0_.emplace(std::vector<Pollable*>{&*ranks_[0], &*near_});
    testbed_.attach(ends_[0], *host0_);
  }
  ConnectionId connect(Shard& unknown_peer) {
    const ConnectionId connection = unknown_peer.connect(addresses_[1], {}, now());
    wake();
    return connection;
  }
  void wake() {
    for (const JobNetwork::End& end : ends_) testbed_.wake(end);
  }
  void run_for(Nanos time) {
    testbed_.run(now() + time, [] { return false; });
  }
  bool connected(Nanos limit) {
    return testbed_.run(now() + limit, [&] { return ranks_[0]->connected() && ranks_[1]->connected(); });
  }
  bool done() {
    return testbed_.run(now() + 100_s, [&] { return ranks_[0]->done() && ranks_[1]->done(); });
  }
  void start() {
    for (const auto& rank : ranks_) rank->start(now());
    wake();
  }
  [[nodiscard]] Nanos now() const { return testbed_.now(); }

  OneSwitch testbed_{{}, 3, false};
  JobSpec settings_ = settings_of(pattern(Kind::point_to_point, 2, 20'000'000));
  std::vector<JobNetwork::End> ends_;
  std::vector<Address> addresses_;
  ShardConfig unknown_peer_config_;
  std::optional<SharedHost> shared_;
  std::optional<Shard> near_;  ///< unknown peer with the address of rank 0
  std::optional<Shard> far_;
  std::array<std::unique_ptr<RankDriver>, 2> ranks_;
  std::optional<All> host0_;
};

TEST_F(UnknownPeers, whatever_they_do__the_job_goes_on) {
  make_listener();
  make_connector();
  ASSERT_TRUE(connected(1_s));
  start();
  run_for(20_ms);
  const ConnectionId aborts = connect(*near_);
  const ConnectionId closes = connect(*near_);
  const ConnectionId says_too_much = connect(*near_);
  const ConnectionId says_nothing = connect(*near_);
  const ConnectionId says_what_another_said = connect(*near_);
  const ConnectionId says_two_things = connect(*near_);
  connect(*near_);  // this peer sends nothing
  connect(*far_);
  near_->send_virtual(says_too_much, 1'000'000, 0);
  near_->send_virtual(says_nothing, 0, 0);
  near_->send_virtual(says_what_another_said, 1, 0);
  near_->send_virtual(says_two_things, 3, 0);
  near_->send_virtual(says_two_things, 1, 0);
  run_for(1_ms);
  near_->abort(aborts, now());
  near_->close(closes);
  wake();
  run_for(20_ms);
  EXPECT_EQ(ranks_[1]->unknown_peers(), 7U) << "all but the silent one";
  ASSERT_TRUE(done());
  EXPECT_EQ(ranks_[0]->result().times.size(), 20U);
  EXPECT_EQ(ranks_[0]->unknown_peers(), 0U);
  for (const ConnectionId gone : {aborts, closes, says_too_much, says_nothing, says_what_another_said, says_two_things})
    EXPECT_FALSE(near_->exists(gone));
}

// The process of a peer dies without closing. The transport detects this after 30 s.
TEST_F(UnknownPeers, one_that_falls_silent_in_the_middle__does_not_end_the_job) {
  Pattern of = pattern(Kind::point_to_point, 2, 1000);
  of.compute = 2_s;
  settings_ = settings_of(of, 20);
  make_listener();
  make_connector();
  ASSERT_TRUE(connected(1_s));
  start();
  connect(*near_);
  run_for(1_us);
  host0_.emplace(std::vector<Pollable*>{&*ranks_[0]});
  testbed_.attach(ends_[0], *host0_);
  run_for(35_s);
  EXPECT_EQ(ranks_[1]->unknown_peers(), 1U);
  EXPECT_TRUE(done());
}

TEST_F(UnknownPeers, a_crowd_from_everywhere__leaves_room_for_ranks) {
  settings_.job.flows = 3;
  make_listener();
  for (int i = 0; i < 200; ++i) {
    connect(*near_);
    connect(*far_);
    if (i % 8 == 0) run_for(10_us);
  }
  run_for(1_ms);
  EXPECT_GT(ranks_[1]->unknown_peers(), 380U);
  make_connector();
  EXPECT_TRUE(connected(1_s));
  start();
  EXPECT_TRUE(done());
}

// Peers without the job's key take no place, even if they connect before the rank, from the rank's address and with the
// rank's greeting.
TEST_F(UnknownPeers, without_the_job_s_key__take_no_place) {
  settings_.connection.keys = {security::packet_key(security::JobKey::generate())};
  ConnectionConfig other;
  other.keys = {security::packet_key(security::JobKey::generate())};
  make_listener();
  for (int i = 0; i < 50; ++i) {
    for (const ConnectionConfig& config : {ConnectionConfig(), other})
      near_->send_virtual(near_->connect(addresses_[1], config, now()), 1, 0);
    wake();
    run_for(10_us);
  }
  make_connector();
  ASSERT_TRUE(connected(1_s));
  start();
  EXPECT_TRUE(done());
  EXPECT_EQ(ranks_[1]->unknown_peers(), 0U);
  EXPECT_GE(ranks_[1]->shard_stats().refused_connects, 100U);
}

/// A datapath that stores the first packet that is sent through it.
class FirstPacket final : public PacketIo {
 public:
  explicit FirstPacket(PacketIo& io) : io_(io) {}
  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t send(std::span<const TxPacket> packets) override {
    if (!packets.empty() && bytes.empty()) bytes.assign(packets[0].header.begin(), packets[0].header.end());
    return packets.size();
  }
  std::size_t receive(std::span<RxPacket> /*out*/) override { return 0; }
  std::vector<std::byte> bytes;

 private:
  PacketIo& io_;
};

// The first packet contains the number and the tag of the connection.
TEST_F(UnknownPeers, who_know_the_seed__know_no_tag_of_what_is_unpredictable) {
  const auto connect_packet = [&](bool unpredictable) {
    settings_.unpredictable = unpredictable;
    FirstPacket io(testbed_.host(ends_[0]));
    RankDriver rank(io, settings_, 0, addresses_, nullptr, now());
    rank.poll(now());
    EXPECT_FALSE(io.bytes.empty());
    return io.bytes;
  };
  EXPECT_EQ(connect_packet(false), connect_packet(false));
  EXPECT_NE(connect_packet(true), connect_packet(true));
}

TEST_F(UnknownPeers, a_crowd_that_keeps_coming__does_not_keep_ranks_out) {
  settings_.job.flows = 3;
  make_listener();
  bool in = false;
  for (int i = 0; i < 200 && !in; ++i) {
    if (i == 20) make_connector();
    for (int k = 0; k < 3; ++k) connect(*near_);
    for (int k = 0; k < 30; ++k) connect(*far_);
    if (i < 20)
      run_for(10_us);
    else
      in = connected(10_us);
  }
  EXPECT_TRUE(in);
}

/// Rank 0, and a peer of the test at the address of rank 1.
class Alone : public UnknownPeers {
 protected:
  explicit Alone(std::uint32_t capacity = 1) {
    ShardConfig config;
    config.max_connections = capacity;
    config.seed = 5;
    peer_.emplace(testbed_.host(ends_[1]), config);
    testbed_.attach(ends_[1], *peer_);
  }
  void listen() {
    peer_->listen({});
    make_connector();
  }
  /// Returns the number of the next connection that the peer accepts, or 0 if it accepts none within `limit`.
  ConnectionId accepted(Nanos limit) {
    std::array<Completion, 1> completion;
    ConnectionId connection = 0;
    testbed_.run(now() + limit, [&] {
      if (peer_->take_completions(completion) == 1 && completion[0].kind == Completion::Kind::accepted)
        connection = completion[0].connection;
      return connection != 0;
    });
    return connection;
  }
  void say_hello_to(ConnectionId connection) {
    peer_->receive_virtual(connection, 1, 0);
    testbed_.wake(ends_[1]);
  }
  std::string ends_with(Nanos limit) {
    return message_of<ConnectionLost>([&] { testbed_.run(now() + limit, [&] { return ranks_[0]->connected(); }); });
  }

  std::optional<Shard> peer_;
};

TEST_F(Alone, peer_without_room__is_tried_again_until_it_has_some) {
  peer_->listen({});
  const ConnectionId other = connect(*far_);
  ASSERT_NE(accepted(1_s), 0U);
  make_connector();
  run_for(500_ms);
  EXPECT_FALSE(ranks_[0]->connected());
  far_->abort(other, now());
  wake();
  const ConnectionId rank = accepted(1_s);
  ASSERT_NE(rank, 0U);
  say_hello_to(rank);
  EXPECT_TRUE(testbed_.run(now() + 1_s, [&] { return ranks_[0]->connected(); }));
}

TEST_F(Alone, peer_without_room_for_ever__ends_in_one_clear_error) {
  peer_->listen({});
  connect(*far_);
  ASSERT_NE(accepted(1_s), 0U);
  make_connector();
  EXPECT_EQ(ends_with(29_s), "no error");
  EXPECT_EQ(ends_with(2_s), "job \"a\": rank 0: a connection ended before the job did (full), to rank 1");
}

TEST_F(Alone, rank_that_is_dropped_before_it_has_said_hello__tries_again) {
  listen();
  const ConnectionId first = accepted(1_s);
  ASSERT_NE(first, 0U);
  peer_->abort(first, now());
  testbed_.wake(ends_[1]);
  const ConnectionId second = accepted(1_s);
  ASSERT_NE(second, 0U);
  EXPECT_NE(first, second);
  say_hello_to(second);
  EXPECT_TRUE(testbed_.run(now() + 1_s, [&] { return ranks_[0]->connected(); }));
}

TEST_F(Alone, connection_that_ends_after_hello__ends_the_job) {
  listen();
  const ConnectionId connection = accepted(1_s);
  say_hello_to(connection);
  ASSERT_TRUE(testbed_.run(now() + 1_s, [&] { return ranks_[0]->connected(); }));
  peer_->abort(connection, now());
  testbed_.wake(ends_[1]);
  EXPECT_THROW(run_for(1_ms), ConnectionLost);
}

}  // namespace
}  // namespace mltcp::experiment
