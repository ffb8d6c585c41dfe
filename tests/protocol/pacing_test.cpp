// Tests pacing on the wire: the rate of a connection, and the rate of a job, which its connections share evenly.
#include <gtest/gtest.h>

#include <utility>

#include "../transport/test_network.h"

namespace mltcp::pacing_test {
namespace {

using namespace testing_network;

/// Returns the largest number of bytes on the wire that left `host` in any interval of `width`.
Bytes densest(const TestNetwork& network, std::size_t host, Nanos width) {
  Bytes max = 0;
  Bytes inside = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < network.log.size(); ++i) {
    const Parsed& packet = network.log[i];
    if (packet.from != host) continue;
    inside += packet.size + 42;
    while (network.log[first].at + width <= packet.at) {
      if (network.log[first].from == host) inside -= network.log[first].size + 42;
      ++first;
    }
    max = std::max(max, inside);
  }
  return max;
}

TEST(Pacing, max_rate__holds_in_every_interval) {
  ConnectionConfig config;
  config.max_rate = Rate(100'000'000);
  Pair pair(config);
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(2'000'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(10_ms);
  pair.log.clear();
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  const double rate = 2'000'000.0 * 8 / (pair.now() - begin).seconds();
  EXPECT_GT(rate, 0.9e8);
  EXPECT_LT(rate, 1.0e8);
  for (const Nanos width : {1_ms, 10_ms, 50_ms})
    EXPECT_LE(densest(pair, 0, width), config.max_rate.bytes_in(width) + 34 * 1514) << width.count;
  EXPECT_EQ(pair.c().stats(c)->pacing_rate, config.max_rate);
}

TEST(Pacing, window__is_spread_over_the_round_trip) {
  Pair pair({}, {}, 1_ms);
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(3'000'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(10_ms);
  pair.log.clear();
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  // In a round trip of 2 ms, a connection sends at most twice the window. In 0.2 ms, it may send a tenth of these bytes
  // and a small burst.
  const double window = pair.c().stats(c)->cwnd_bytes;
  EXPECT_LE(static_cast<double>(densest(pair, 0, 200_us)), 0.2 * window * 1.1 + 40 * 1514);
}

/// Returns by how many bytes the window grows in 100 ms if polls are up to `late` too late.
double window_with(Nanos late) {
  Pair pair({}, {}, 250_us, {.virtual_payload = true});
  const auto [c, s] = pair.connect();
  EXPECT_EQ(pair.s().receive_virtual(s, 1U << 30, 0), PostResult::ok);
  pair.run_for(5_ms);
  bool once = true;
  pair.fate = [&](const Parsed& packet, auto& fate) {  // one loss, so that slow start ends with a small window
    if (packet.from == 0 && packet.has(FrameType::data) && std::exchange(once, false)) fate.drop = true;
  };
  pair.logging = false;
  EXPECT_EQ(pair.c().send_virtual(c, 1U << 30, 0), PostResult::ok);
  pair.run_for(3_ms);
  const double before = pair.c().stats(c)->cwnd_bytes;
  for (const Nanos end = pair.now() + 100_ms; pair.now() < end;) {
    pair.run_for(20_us);
    pair.stand_still(late);
  }
  return pair.c().stats(c)->cwnd_bytes - before;
}

TEST(Pacing, late_polls__do_not_hold_the_window_back) {
  const double in_time = window_with({});
  EXPECT_GT(in_time, 100 * 1458.0);
  EXPECT_GT(window_with(150_us), 0.6 * in_time) << "paced below its window it would hardly grow";
}

TEST(Pacing, acknowledgements__are_not_held_back) {
  ConnectionConfig server;
  server.max_rate = Rate(100'000);  // 12.5 kB/s, or one packet in 120 ms
  Pair pair({}, server);
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(pair.delivers(c, s, random_bytes(1'000'000), 1_s));
}

struct SharedJob {
  SharedJob(Rate rate, std::size_t flows, Nanos quantum = {}, Nanos catch_up = {}) {
    job = pair.c().add_job(
        JobConfig{.number = 3, .augmentation = {}, .max_rate = rate, .pacing_quantum = quantum, .catch_up = catch_up});
    for (std::size_t i = 0; i < flows; ++i) {
      const auto [client, server] = pair.connect();
      EXPECT_TRUE(pair.c().attach(client, job));
      ids.push_back(client);
      servers.push_back(server);
    }
  }
  void post(Bytes bytes) {
    for (const ConnectionId server : servers) ASSERT_EQ(pair.s().receive_virtual(server, bytes, 0), PostResult::ok);
    pair.run_for(5_ms);
    pair.log.clear();
    for (const ConnectionId id : ids) ASSERT_EQ(pair.c().send_virtual(id, bytes, 0), PostResult::ok);
  }
  [[nodiscard]] std::vector<Bytes> sent() {
    std::vector<Bytes> result;
    for (const ConnectionId id : ids) result.push_back(pair.c().stats(id)->bytes_sent);
    return result;
  }

  Pair pair{{}, {}, 50_us, {.virtual_payload = true}};
  JobId job = 0;
  std::vector<ConnectionId> ids;
  std::vector<ConnectionId> servers;
};

TEST(JobRate, flows__share_it_evenly_and_none_starves) {
  const Rate rate(500'000'000);
  SharedJob shared(rate, 4);
  shared.post(100'000'000);
  std::vector<Bytes> before = shared.sent();
  for (int i = 0; i < 20; ++i) {
    shared.pair.run_for(10_ms);
    const std::vector<Bytes> now = shared.sent();
    for (std::size_t flow = 0; flow < 4; ++flow)
      EXPECT_NEAR(static_cast<double>(now[flow] - before[flow]), static_cast<double>(rate.bytes_in(10_ms)) / 4,
                  static_cast<double>(rate.bytes_in(10_ms)) / 40 + 8 * 1514)
          << "flow " << flow << " in interval " << i;
    before = now;
  }
  for (const Nanos width : {1_ms, 10_ms, 50_ms})
    EXPECT_LE(densest(shared.pair, 0, width), rate.bytes_in(width) + 15'140) << width.count;
  EXPECT_GE(densest(shared.pair, 0, 10_ms), rate.bytes_in(10_ms) * 98 / 100) << "and uses all of it";
}

TEST(JobRate, flow_that_comes_later__gets_its_share) {
  SharedJob shared(Rate(500'000'000), 4);
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_EQ(shared.pair.s().receive_virtual(shared.servers[i], 1u << 30, 0), PostResult::ok);
  shared.pair.run_for(5_ms);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_EQ(shared.pair.c().send_virtual(shared.ids[i], 1u << 30, 0), PostResult::ok);
  shared.pair.run_for(50_ms);
  ASSERT_EQ(shared.pair.c().send_virtual(shared.ids[3], 1u << 30, 0), PostResult::ok);
  shared.pair.run_for(1_ms);
  const std::vector<Bytes> before = shared.sent();
  shared.pair.run_for(50_ms);
  const std::vector<Bytes> after = shared.sent();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(after[i] - before[i]), 781'250, 60'000) << "flow " << i;
}

TEST(JobRate, finished_flows__leave_theirs_to_the_others) {
  const Rate rate(500'000'000);
  SharedJob shared(rate, 2);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_EQ(shared.pair.s().receive_virtual(shared.servers[i], 10'000'000, 0), PostResult::ok);
  shared.pair.run_for(5_ms);
  const Nanos begin = shared.pair.now();
  ASSERT_EQ(shared.pair.c().send_virtual(shared.ids[0], 1'000'000, 0), PostResult::ok);
  ASSERT_EQ(shared.pair.c().send_virtual(shared.ids[1], 10'000'000, 0), PostResult::ok);
  ASSERT_TRUE(shared.pair.transfer(2, 2));
  EXPECT_LT((shared.pair.now() - begin).seconds(), 11e6 * 8 / 5e8 * 1.08);
}

/// Polls no shard for 0.2 ms of every millisecond. Returns the rate of the job as a fraction of its configured rate.
double share_of_rate(Nanos catch_up) {
  const Rate rate(500'000'000);
  SharedJob shared(rate, 1, {}, catch_up);
  shared.post(100'000'000);
  const Bytes before = shared.sent()[0];
  const Nanos begin = shared.pair.now();
  for (int i = 0; i < 100; ++i) {
    shared.pair.run_for(800_us);
    shared.pair.stand_still(200_us);
  }
  return static_cast<double>(shared.sent()[0] - before) * 8 / (shared.pair.now() - begin).seconds() / 5e8;
}

TEST(JobRate, catch_up__makes_up_for_the_time_that_a_program_is_held_up) {
  EXPECT_LT(share_of_rate({}), 0.90);
  EXPECT_LT(share_of_rate(50_us), 0.96) << "for no more than it says, beyond the 100 us of four packets";
  EXPECT_GT(share_of_rate(250_us), 0.97);
  EXPECT_LE(share_of_rate(250_us), 1.00);
}

TEST(JobRate, catch_up__is_for_late_polls_and_not_for_pauses) {
  const Rate rate(500'000'000);
  SharedJob shared(rate, 4, {}, 1_ms);
  for (int i = 0; i < 3; ++i) {
    shared.post(200'000);
    ASSERT_TRUE(shared.pair.transfer(4, 4));
    EXPECT_LE(densest(shared.pair, 0, 100_us), rate.bytes_in(100_us) + 6 * 1514) << "after pause " << i;
  }
}

TEST(JobRate, late_poll__sends_the_packets_of_the_flows_in_turn) {
  SharedJob shared(Rate(500'000'000), 4, {}, 1_ms);
  shared.post(100'000'000);
  shared.pair.run_for(20_ms);
  shared.pair.stand_still(400_us);  // at the configured rate, 16 packets may leave in this time
  shared.pair.log.clear();
  const Nanos late = shared.pair.now();
  shared.pair.run_for(1_us);
  std::vector<std::uint32_t> sent;
  for (const Parsed& packet : shared.pair.log)
    if (packet.from == 0 && packet.at == late) sent.push_back(packet.header.connection);
  ASSERT_GE(sent.size(), 12U);
  ASSERT_LE(sent.size(), 24U);
  for (std::size_t i = 0; i + 1 < 12; ++i) EXPECT_NE(sent[i], sent[i + 1]) << "packet " << i << " of those of one time";
}

TEST(JobRate, pacing_quantum__lets_packets_leave_together_and_costs_no_rate) {
  const Rate rate(500'000'000);
  const auto count = [&](Nanos quantum) {
    SharedJob shared(rate, 2, quantum);
    shared.post(100'000'000);
    shared.pair.run_for(20_ms);
    EXPECT_GE(densest(shared.pair, 0, 10_ms), rate.bytes_in(10_ms) * 98 / 100) << quantum.count;
    EXPECT_LE(densest(shared.pair, 0, 1_ms), rate.bytes_in(1_ms) + rate.bytes_in(quantum) + 15'140) << quantum.count;
    std::size_t times = 0;
    Nanos last = Nanos::never();
    for (const Parsed& packet : shared.pair.log) {
      if (packet.from != 0 || packet.at == last) continue;
      last = packet.at;
      ++times;
    }
    return times;
  };
  // At this rate, one packet takes 24 us.
  EXPECT_GT(count({}), 700U);
  EXPECT_LT(count(100_us), 250U);
}

TEST(JobRate, whatever_ends_it__takes_effect_at_once) {
  const std::vector<std::pair<const char*, std::function<bool(SharedJob&)>>> changes{
      {"another rate", [](SharedJob& shared) { return shared.pair.c().set_job_rate(shared.job, Rate(1'000'000'000)); }},
      {"no rate", [](SharedJob& shared) { return shared.pair.c().set_job_rate(shared.job, Rate(0)); }},
      {"no job", [](SharedJob& shared) { return shared.pair.c().remove_job(shared.job); }},
      {"another job",
       [](SharedJob& shared) {
         const JobId fast = shared.pair.c().add_job({});
         return std::ranges::all_of(shared.ids, [&](ConnectionId id) { return shared.pair.c().attach(id, fast); });
       }},
  };
  for (const auto& [name, change] : changes) {
    SharedJob shared(Rate(1'000), 4);  // one packet in twelve seconds
    shared.post(1'000'000);
    shared.pair.run_for(100_ms);
    EXPECT_EQ(shared.pair.client().count(Kind::sent), 0u);
    EXPECT_TRUE(change(shared)) << name;
    EXPECT_TRUE(shared.pair.transfer(4, 4, 500_ms)) << name << ": waits for the time of the old rate";
  }
}

TEST(JobRate, waiting_connections_that_end__do_not_block_the_others) {
  SharedJob shared(Rate(20'000'000), 4);
  shared.post(200'000);
  shared.pair.run_for(1_ms);
  shared.pair.c().abort(shared.ids[0], shared.pair.now());
  shared.pair.c().abort(shared.ids[2], shared.pair.now());
  const auto ok = [&] {
    std::size_t count = 0;
    for (const Completion& completion : shared.pair.client().of(Kind::sent))
      count += completion.status == Status::ok ? 1 : 0;
    return count;
  };
  EXPECT_TRUE(shared.pair.run([&] { return ok() == 2; }, shared.pair.now() + 1_s));
}

}  // namespace
}  // namespace mltcp::pacing_test
