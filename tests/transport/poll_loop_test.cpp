// Tests loops over datapaths in virtual time: when they poll, how they wait, and what wakes them.
#include "mltcp/transport/poll_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

namespace mltcp::poll_loop_test {
namespace {

using namespace literals;

/// A clock in virtual time. Each reading takes 100 ns, and sleeps are exact.
class TestTime final : public TimeSource {
 public:
  void begin_loop() override { ++loops; }
  void end_loop() override { --loops; }
  Nanos now() override { return time += 100_ns; }
  void pause() override { ++pauses; }
  void sleep(Nanos duration) override {
    naps.push_back(duration);
    time += duration;
  }
  WaitEnd wait(std::span<const int> files, Nanos max) override {
    waits.push_back(max);
    waited_for.assign(files.begin(), files.end());
    if (fails) return WaitEnd::failed;
    const Nanos end = std::min(arrives, time + max);
    const bool arrived = arrives <= end;
    time = std::max(time, end);
    return arrived ? WaitEnd::readable : WaitEnd::timed_out;
  }

  Nanos time;
  Nanos arrives = Nanos::never();  ///< time at which a packet arrives and ends wait()
  bool fails = false;
  int loops = 0;
  std::uint64_t pauses = 0;
  std::vector<Nanos> naps;
  std::vector<Nanos> waits;
  std::vector<int> waited_for;
};

class TestIo final : public PacketIo {
 public:
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> /*out*/) override { return 0; }
  std::size_t send(std::span<const TxPacket> /*packets*/) override { return 0; }
  [[nodiscard]] Nanos deadline() const override { return due; }
  [[nodiscard]] bool is_blocked() const override { return blocked; }
  [[nodiscard]] std::uint64_t activity() const override { return packets; }
  std::optional<Wakeup> begin_waiting() override {
    if (wakeup) ++waiting;
    return wakeup;
  }
  void end_waiting() override { --waiting; }
  void arm() override {
    armed = true;
    if (on_arm) on_arm();
  }
  void disarm() override { armed = false; }
  [[nodiscard]] std::span<PacketIo* const> feeders() const override { return fed_by; }

  Nanos due = Nanos::never();
  bool blocked = false;
  std::uint64_t packets = 0;
  std::optional<Wakeup> wakeup;
  int waiting = 0;
  bool armed = false;
  std::function<void()> on_arm;
  std::vector<PacketIo*> fed_by;

 private:
  Limits limits_;
};

class TestProgram final : public Pollable {
 public:
  Nanos poll(Nanos now) override {
    polls.push_back(now);
    if (on_poll) on_poll(now);
    return due;
  }
  [[nodiscard]] bool was_polled_within(Nanos from, Nanos to) const {
    return std::any_of(polls.begin(), polls.end(), [&](Nanos at) { return at >= from && at < to; });
  }

  std::vector<Nanos> polls;
  Nanos due = Nanos::never();
  std::function<void(Nanos)> on_poll;
};

class PollLoopTest : public testing::Test {
 protected:
  PollLoopTest() {
    io.wakeup = PacketIo::Wakeup{7, false};
    loop.attach(io, program);
  }
  TestTime time;
  TestIo io;
  TestProgram program;
  PollLoop loop{time, Idle::sleep};
};

TEST_F(PollLoopTest, run__ends_at_its_time_after_a_last_round) {
  EXPECT_FALSE(loop.run(3_ms));
  EXPECT_GT(program.polls.back(), 3_ms);
  EXPECT_LT(program.polls.back(), 3_ms + 10_us);
  EXPECT_EQ(time.loops, 0) << "what a loop's thread was prepared for is undone";
  EXPECT_EQ(io.waiting, 0);
}

TEST_F(PollLoopTest, run__sleeps_by_the_file_to_what_is_due_next) {
  program.due = 4_ms;
  program.on_poll = [&](Nanos now) {
    if (now >= 4_ms) program.due = Nanos::never();
  };
  EXPECT_FALSE(loop.run(9_ms));
  EXPECT_EQ(time.waited_for, std::vector<int>{7});
  EXPECT_TRUE(program.was_polled_within(4_ms, 4_ms + 10_us));
  EXPECT_LT(program.polls.size(), 100u) << "it slept in between";
}

TEST_F(PollLoopTest, run__does_not_sleep_over_the_datapaths_own_deadline) {
  io.due = 4_ms;  // for example, the time at which an ARP request must be repeated
  program.on_poll = [&](Nanos now) {
    if (now >= 4_ms) io.due = Nanos::never();
  };
  EXPECT_FALSE(loop.run(9_ms));
  EXPECT_TRUE(program.was_polled_within(4_ms, 4_ms + 10_us));
  EXPECT_LT(program.polls.size(), 100u);
}

TEST_F(PollLoopTest, run__is_woken_by_a_packet) {
  time.arrives = 5_ms;
  program.on_poll = [&](Nanos now) {
    if (now < 5_ms || time.arrives.is_never()) return;
    ++io.packets;
    time.arrives = Nanos::never();
  };
  EXPECT_FALSE(loop.run(9_ms));
  EXPECT_TRUE(program.was_polled_within(5_ms, 5_ms + 10_us));
}

TEST_F(PollLoopTest, run__naps_while_the_datapath_is_blocked_because_free_space_is_not_signalled) {
  io.blocked = true;
  EXPECT_FALSE(loop.run(2_ms));
  EXPECT_TRUE(time.waits.empty());
  EXPECT_GT(time.naps.size(), 20u);
  EXPECT_EQ(*std::max_element(time.naps.begin(), time.naps.end()), 50_us);
}

TEST_F(PollLoopTest, run__naps_where_a_datapath_can_not_tell_of_packets) {
  TestIo mute;
  TestProgram other;
  loop.attach(mute, other);
  EXPECT_FALSE(loop.run(2_ms));
  EXPECT_TRUE(time.waits.empty());
  EXPECT_GT(time.naps.size(), 20u);
  EXPECT_EQ(io.waiting, 0) << "what had begun has ended";
}

TEST_F(PollLoopTest, run__waits_only_if_it_polls_all_who_may_hand_packets_over) {
  TestIo other;
  other.wakeup = PacketIo::Wakeup{};  // `other` has no file: the file of `io` also reports the packets of `other`
  io.fed_by = other.fed_by = {&io, &other};
  EXPECT_FALSE(loop.run(2_ms));
  EXPECT_TRUE(time.waits.empty()) << "the other's thread would hand packets over and wake nobody";
  TestProgram second;
  loop.attach(other, second);
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_FALSE(time.waits.empty());
  EXPECT_EQ(time.waited_for, std::vector<int>{7});
}

TEST_F(PollLoopTest, run__looks_once_more_between_arming_and_sleeping) {
  io.wakeup = PacketIo::Wakeup{7, true};
  std::size_t armed_polls = 0;
  program.on_poll = [&](Nanos) { armed_polls += io.armed ? 1U : 0U; };
  io.on_arm = [&] {
    if (time.time < 1_ms) ++io.packets;  // a packet that arrived just before arming, without an interrupt
  };
  EXPECT_FALSE(loop.run(1_ms));
  EXPECT_GT(armed_polls, 0u);
  EXPECT_TRUE(time.waits.empty()) << "there was always a packet";
  EXPECT_FALSE(loop.run(3_ms));
  EXPECT_FALSE(time.waits.empty());
  EXPECT_FALSE(io.armed);
}

/// A peer that sends `each` packets at intervals of `apart`.
struct Peer {
  Peer(TestTime& time_, TestIo& io, TestProgram& program, std::uint64_t each, Nanos apart) {
    time_.arrives = apart;
    program.on_poll = [&time_, &io, each, apart](Nanos now) {
      while (now >= time_.arrives) {
        io.packets += each;
        time_.arrives += apart;
      }
    };
  }
};

TEST_F(PollLoopTest, run__is_woken_by_each_where_packets_are_few) {
  const Peer peer(time, io, program, 2, 40_us);  // a request and its answer
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_EQ(io.packets, 2U * 100);
  EXPECT_TRUE(time.naps.empty());
  EXPECT_GE(time.waits.size(), 99u);
}

TEST_F(PollLoopTest, run__naps_where_packets_are_many) {
  const Peer peer(time, io, program, 1, 12_us);  // the time of 1500 bytes at 1 Gbps
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_GT(time.naps.size(), 60u);
  EXPECT_LT(time.waits.size(), 10u);
}

TEST_F(PollLoopTest, run__naps_where_packets_come_in_crowds) {
  const Peer peer(time, io, program, 30, 80_us);
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_GT(time.naps.size(), 40u);
}

TEST_F(PollLoopTest, prompt__is_woken_by_each_of_an_exchange_of_several_packets) {
  loop.be_prompt({});
  const Peer peer(time, io, program, 6, 40_us);
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_TRUE(time.naps.empty());
  EXPECT_GE(time.waits.size(), 99u);
}

TEST_F(PollLoopTest, prompt__naps_by_turns_in_a_stream) {
  loop.be_prompt({});
  const Peer peer(time, io, program, 1, 12_us);
  EXPECT_FALSE(loop.run(4_ms));
  EXPECT_GT(time.naps.size(), 40u);
  EXPECT_LE(time.waits.size(), time.naps.size() + 8);
  EXPECT_GE(time.waits.size() + 1, time.naps.size());
}

TEST_F(PollLoopTest, prompt__looks_for_as_long_as_it_is_told_before_it_sleeps) {
  loop.be_prompt(70_us);
  const Peer peer(time, io, program, 1, 60_us);
  EXPECT_FALSE(loop.run(1_ms));
  EXPECT_LE(time.waits.size(), 1u) << "the next packet is there sooner";
  time.waits.clear();
  loop.be_prompt(20_us);
  EXPECT_FALSE(loop.run(2_ms));
  EXPECT_GT(time.waits.size(), 12u);
  EXPECT_TRUE(time.naps.empty());
}

TEST_F(PollLoopTest, run__naps_from_the_time_when_a_file_has_failed) {
  time.fails = true;
  EXPECT_FALSE(loop.run(3_ms));
  EXPECT_EQ(time.waits.size(), 1u);
  EXPECT_FALSE(time.naps.empty());
}

TEST_F(PollLoopTest, run__stops_when_asked_after_a_last_round) {
  program.on_poll = [&](Nanos) {
    if (program.polls.size() == 5) loop.request_stop();
  };
  EXPECT_TRUE(loop.run(Nanos::never()));
  EXPECT_EQ(program.polls.size(), 6u);
  EXPECT_FALSE(loop.run(time.time + 100_us)) << "the stop was for one run";
  EXPECT_TRUE(loop.run(Nanos::never(), [&] { return time.time > 1_ms; }));
}

TEST_F(PollLoopTest, run__passes_on_what_a_program_throws) {
  program.on_poll = [](Nanos) { throw std::runtime_error("enough"); };
  EXPECT_THROW(loop.run(1_ms), std::runtime_error);
  EXPECT_EQ(time.loops, 0);
  EXPECT_EQ(io.waiting, 0);
}

class TestWaker final : public Waker {
 public:
  [[nodiscard]] int file() const override { return 8; }
  void arm() override {
    armed = true;
    if (on_arm) on_arm();
  }
  void disarm() override { armed = false; }

  bool armed = false;
  std::function<void()> on_arm;
};

TEST_F(PollLoopTest, run__is_woken_by_others_too) {
  TestWaker waker;
  loop.wake_by(waker);
  std::size_t armed_polls = 0;
  program.on_poll = [&](Nanos) { armed_polls += waker.armed ? 1U : 0U; };
  EXPECT_FALSE(loop.run(3_ms));
  EXPECT_EQ(time.waited_for, (std::vector<int>{7, 8}));
  EXPECT_GT(armed_polls, 0u) << "it looks once more between arming and sleeping";
  EXPECT_FALSE(waker.armed);
}

TEST_F(PollLoopTest, run__does_not_sleep_over_what_was_left_just_before_it_armed) {
  TestWaker waker;
  loop.wake_by(waker);
  bool left = false;
  waker.on_arm = [&] { left = time.time < 1_ms; };
  program.on_poll = [&](Nanos now) {
    program.due = left ? now : Nanos::never();  // the program has work to do
    left = false;
  };
  EXPECT_FALSE(loop.run(1_ms));
  EXPECT_TRUE(time.waits.empty());
  EXPECT_FALSE(loop.run(3_ms));
  EXPECT_FALSE(time.waits.empty());
}

TEST_F(PollLoopTest, run__is_woken_by_others_also_where_it_naps) {
  TestIo mute;
  TestProgram other;
  TestWaker waker;
  loop.attach(mute, other);
  loop.wake_by(waker);
  EXPECT_FALSE(loop.run(2_ms));
  EXPECT_TRUE(time.naps.empty());
  EXPECT_EQ(time.waited_for, std::vector<int>{8});
  EXPECT_EQ(*std::max_element(time.waits.begin(), time.waits.end()), 50_us);
}

TEST(PollLoop, spin_and_pause__never_sleep) {
  for (const Idle idle : {Idle::spin, Idle::pause}) {
    TestTime time;
    TestIo io;
    TestProgram program;
    PollLoop loop(time, idle);
    loop.attach(io, program);
    EXPECT_FALSE(loop.run(1_ms));
    EXPECT_TRUE(time.naps.empty() && time.waits.empty());
    EXPECT_EQ(time.pauses > 0, idle == Idle::pause);
  }
}

}  // namespace
}  // namespace mltcp::poll_loop_test
