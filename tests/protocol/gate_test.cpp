// Tests the phase gate on the wire: which packets of an iteration wait for the slot of this iteration, and which
// packets never wait.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lone_connection.h"

namespace mltcp::gate_test {
namespace {

using namespace testing_network;

constexpr Bytes kIterationBytes = 20'000;

// A client with one job that has several connections. The slots of its plan begin at 100 ms + k * 100 ms.
class Gate : public testing::Test {
 protected:
  Gate() {
    job = pair.c().add_job({.number = 5, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
    add_connection();
    plan.slot = 100_ms;
    plan.period = 100_ms;
  }
  void add_connection() {
    connections.push_back(pair.connect());
    EXPECT_TRUE(pair.c().attach(connections.back().first, job));
    for (int i = 0; i < 16; ++i)
      ASSERT_EQ(pair.s().receive_virtual(connections.back().second, kIterationBytes, 0), PostResult::ok);
    pair.run_for(1_ms);
  }
  void begin_iteration() { EXPECT_TRUE(pair.c().begin_iteration(job, kIterationBytes * connections.size())); }
  void begin_iteration_with_plan() {
    ASSERT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::active);
    begin_iteration();
  }
  void send(std::size_t connection = 0, Bytes bytes = kIterationBytes) {
    ASSERT_EQ(pair.c().send(connections[connection].first, std::span(message).first(bytes), 0), PostResult::ok);
  }
  /// Returns when the client first sent data of message `number`, or never() if it has not sent any.
  [[nodiscard]] Nanos sent_at(std::uint32_t number) const {
    for (const Parsed& packet : pair.log)
      if (packet.from == 0 && is_data(packet))
        for (const wire::Frame& frame : packet.frames)
          if (frame.type == FrameType::data && frame.data.message == number) return packet.at;
    return Nanos::never();
  }

  Pair pair;
  JobId job = 0;
  std::vector<std::pair<ConnectionId, ConnectionId>> connections;
  PhasePlan plan;
  const ByteVector message = random_bytes(kIterationBytes);
};

TEST_F(Gate, first_bytes_of_an_iteration__wait_and_the_rest_does_not) {
  begin_iteration_with_plan();
  send();
  EXPECT_EQ(pair.c().poll(pair.now()), 100_ms) << "the gate's opening is the shard's next deadline";
  pair.run_until(150_ms);
  EXPECT_EQ(sent_at(0), 100_ms);
  send();  // begins another up phase of the same iteration
  pair.run_until(151_ms);
  EXPECT_EQ(sent_at(1), 150_ms);
  begin_iteration();
  pair.run_until(160_ms);
  send();
  pair.run_until(250_ms);
  EXPECT_EQ(sent_at(2), 200_ms);
  EXPECT_EQ(pair.client().count(Kind::sent), 3U);
  const GateStats stats = pair.c().gate_stats(job);
  EXPECT_EQ(stats.state, PlanState::active);
  EXPECT_EQ(stats.on_slot, 2U);
  EXPECT_EQ(stats.corrections, 0U);
}

TEST_F(Gate, bursts_under_turns__do_not_test_the_link_if_slots_are_disjoint) {
  auto parameters = std::make_shared<cc::Parameters>();
  cc::set_from_text(*parameters, "turns.short_round_trips=0,turns.max_test=1");
  JobConfig config;
  config.augmentation = cc::Augmentation::turns({});
  config.max_rate = Rate(100'000'000);
  config.parameters = parameters;
  const auto time_of_five_packets = [&](bool is_disjoint) {
    job = pair.c().add_job(config);
    EXPECT_TRUE(pair.c().attach(connections.back().first, job));
    plan.is_disjoint = is_disjoint;
    begin_iteration_with_plan();
    send();
    pair.log.clear();
    pair.run_for(150_ms);
    std::vector<Nanos> times;
    for (const Parsed& packet : pair.log)
      if (packet.from == 0 && is_data(packet)) times.push_back(packet.at);
    EXPECT_TRUE(pair.c().remove_job(job));
    return times.at(5) - times.at(0);
  };
  EXPECT_GT(time_of_five_packets(false), time_of_five_packets(true) * 3);
}

TEST_F(Gate, all_connections__open_together) {
  add_connection();
  add_connection();
  begin_iteration_with_plan();
  for (std::size_t i = 0; i < 3; ++i) send(i);
  pair.log.clear();
  pair.run_until(101_ms);
  std::set<std::uint32_t> opened;
  for (const Parsed& packet : pair.log) {
    if (packet.from != 0 || !is_data(packet)) continue;
    ASSERT_GE(packet.at, 100_ms);
    if (packet.at == 100_ms) opened.insert(packet.header.connection);
  }
  EXPECT_EQ(opened.size(), 3U);
}

// Two workers of a job on separate hosts have the same plan, and must choose the same slot.
TEST_F(Gate, workers__decide_alike) {
  TestHost& other = pair.add();
  const ConnectionId second = other.shard->connect(pair.server().address, {}, pair.now());
  pair.run_for(10_ms);
  const JobId second_job = other.shard->add_job({.number = 5, .augmentation = {}, .max_rate = {}});
  EXPECT_TRUE(other.shard->attach(second, second_job));
  ASSERT_EQ(pair.s().receive_virtual(pair.server().of(Kind::accepted).back().connection, 1000, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::active);
  ASSERT_EQ(other.shard->set_plan(second_job, plan, pair.now()), PlanState::active);
  pair.run_until(142_ms);  // both workers are equally late
  begin_iteration();
  EXPECT_TRUE(other.shard->begin_iteration(second_job, 1000));
  send();
  ASSERT_EQ(other.shard->send(second, std::span(message).first(1000), 0), PostResult::ok);
  pair.run_until(210_ms);
  std::map<std::size_t, Nanos> first;
  for (const Parsed& packet : pair.log)
    if (is_data(packet)) first.try_emplace(packet.from, packet.at);
  EXPECT_EQ(first.at(0), 200_ms);
  EXPECT_EQ(first.at(2), 200_ms);
}

TEST_F(Gate, acknowledgements_and_credit__flow_while_data_is_held) {
  begin_iteration_with_plan();
  send();
  ASSERT_EQ(pair.c().receive_virtual(connections[0].first, 1000, 0), PostResult::ok);
  pair.wake_all();
  pair.run_for(1_ms);
  const Nanos asked = pair.now();
  ASSERT_EQ(pair.s().send(connections[0].second, std::span(message).first(1000), 0), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::sent) == 1; }, 99_ms));
  EXPECT_LT(pair.now() - asked, 1_ms);
  EXPECT_TRUE(sent_at(0).is_never());
}

TEST_F(Gate, retransmissions_and_messages_of_before__are_not_held) {
  ASSERT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::active);
  pair.run_until(99_ms);
  begin_iteration();
  bool lost = false;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (lost || packet.from != 0 || !is_data(packet) || packet.find(FrameType::data)->data.offset == 0) return;
    fate.drop = lost = true;
  };
  send();
  pair.run_until(100_ms);  // the first packets leave, and one of them is lost
  send();                  // posted before the next iteration begins, and sent during it
  begin_iteration();
  send();
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::sent) == 2; }, 190_ms));
  EXPECT_TRUE(lost);
  EXPECT_GT(pair.c().stats(connections[0].first)->retransmitted_packets, 0U);
  EXPECT_LT(pair.now(), 150_ms);
  EXPECT_TRUE(sent_at(2).is_never());
  pair.run_until(210_ms);
  EXPECT_EQ(sent_at(2), 200_ms);
}

// The last packets of an iteration are lost while packets of the next one wait. The probe must send the lost packets
// again.
TEST_F(Gate, probes__do_not_carry_what_is_held) {
  begin_iteration();
  send();
  ASSERT_TRUE(pair.transfer(1, 1));
  begin_iteration_with_plan();
  pair.run_until(100_ms);
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 0; };
  send(0, 5000);  // less than a window of data
  pair.run_until(100_ms + 10_us);
  pair.fate = nullptr;
  begin_iteration();
  send();
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::sent) == 2; }, 150_ms));
  EXPECT_TRUE(sent_at(2).is_never());
  pair.run_until(210_ms);
  EXPECT_EQ(sent_at(2), 200_ms);
}

// The sender has credit, so it must not ask for credit while it waits for its slot.
TEST_F(Gate, long_wait__is_silent) {
  plan.slot = 5_s;
  plan.period = 10_s;
  begin_iteration_with_plan();
  pair.log.clear();
  send();
  pair.run_until(5_s - 1_ns);
  EXPECT_TRUE(pair.log.empty());
  pair.run_until(5_s);
  EXPECT_EQ(sent_at(0), 5_s);
}

TEST_F(Gate, plan_that_goes__lets_go_what_it_holds) {
  begin_iteration_with_plan();
  send();
  pair.run_until(40_ms);
  EXPECT_TRUE(sent_at(0).is_never());
  pair.c().clear_plan(job, pair.now());
  pair.run_until(41_ms);
  EXPECT_EQ(sent_at(0), 40_ms);
  EXPECT_EQ(pair.c().gate_stats(job).state, PlanState::removed);
  // The first plan holds back the iteration. The second plan is invalid, so that the gate opens.
  begin_iteration_with_plan();
  send();
  pair.run_until(50_ms);
  plan.period = Nanos(0);
  EXPECT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::invalid);
  pair.run_until(51_ms);
  EXPECT_EQ(sent_at(1), 50_ms);
}

TEST_F(Gate, stale_plan__holds_nothing) {
  plan.valid_until = 60_ms;
  begin_iteration_with_plan();
  const Nanos posted = pair.now();
  send();
  pair.run_for(1_ms);
  EXPECT_EQ(sent_at(0), posted) << "the slot comes when the plan counts no more";
  EXPECT_EQ(pair.c().gate_stats(job).state, PlanState::stale);
  EXPECT_EQ(pair.c().gate_stats(job).plans_dropped, 1U);
}

TEST_F(Gate, jobs__that_do_not_tell_their_iterations_get_no_plan) {
  JobConfig config;
  config.learn_iterations = true;
  const JobId learned = pair.c().add_job(config);
  EXPECT_EQ(pair.c().set_plan(learned, plan, pair.now()), PlanState::no_iterations);
  EXPECT_TRUE(pair.c().begin_iteration(learned, 1000));
  EXPECT_EQ(pair.c().set_plan(learned, plan, pair.now()), PlanState::active);
  EXPECT_EQ(pair.c().set_plan(77, plan, pair.now()), PlanState::unknown_job);
  EXPECT_EQ(pair.c().gate_stats(77).state, PlanState::unknown_job);
  pair.c().clear_plan(77, pair.now());
  // This job has not stated any iteration yet, so the gate must not hold back its packets.
  ASSERT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::active);
  const Nanos posted = pair.now();
  send();
  pair.run_for(1_ms);
  EXPECT_EQ(sent_at(0), posted);
}

TEST_F(Gate, messages_of_another_job__do_not_wait_for_its_slots) {
  ASSERT_EQ(pair.c().set_plan(job, plan, pair.now()), PlanState::active);
  const JobId other = pair.c().add_job({.number = 6, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  ASSERT_EQ(pair.c().set_plan(other, plan, pair.now()), PlanState::active);
  // Both jobs are in their first iteration.
  begin_iteration();
  EXPECT_TRUE(pair.c().begin_iteration(other, kIterationBytes));
  send();
  EXPECT_TRUE(pair.c().attach(connections[0].first, other));
  send();
  pair.run_until(50_ms);
  EXPECT_LT(sent_at(0), 50_ms) << "it was posted before the connection was the other job's";
  EXPECT_TRUE(sent_at(1).is_never());
  pair.run_until(101_ms);
  EXPECT_EQ(sent_at(1), 100_ms);
}

TEST(GateRounds, message_posted_before_its_connection_was_the_job_s__waits_for_no_slot_and_opens_none) {
  LoneConnection alone({.window = LoneConnection::kPacket});
  alone.send(2, 1000);
  ASSERT_EQ(alone.sent.size(), 2u) << "ACCEPT and one";
  alone.connection.attach(0);
  PhaseGate& gate = alone.job().gate;
  PhasePlan plan;
  plan.slot = alone.now + 500_us;
  plan.period = 100_ms;
  ASSERT_EQ(gate.set(plan, alone.now), PlanState::active);
  gate.begin_iteration();
  alone.answer({{1, 1}});
  EXPECT_EQ(alone.sent.size(), 3u);
  EXPECT_TRUE(gate.pending());
  EXPECT_EQ(alone.connection.next_deadline(), alone.now + 1'100_us) << "not the slot";
}

}  // namespace
}  // namespace mltcp::gate_test
