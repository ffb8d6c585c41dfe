// Tests the ring dumbbell in real time, on one core and on two. The limits on time are wide, because a shared machine
// may take CPUs away. The packets that arrive must be exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>

#include "mltcp/lab/realtime/ring_dumbbell.h"
#include "ring_fixture.h"

namespace mltcp::dpdk {
namespace {

using namespace mltcp::literals;

/// Sends numbered packets as fast as the host accepts them.
class Sender final : public Pollable {
 public:
  Sender(RingHost& host, const Address& to, std::uint64_t count, std::size_t size)
      : host_(host), to_(to), count_(count), payload_(random_bytes(size, 1)) {}

  Nanos poll(Nanos now) override {
    EXPECT_GE(now, last_);
    last_ = now;
    // Returns received buffers to the pool, which would otherwise run out of buffers.
    std::array<RxPacket, 32> in;
    while (host_.receive(in) == in.size()) {
    }
    // Sends one burst per poll, so that the receiver runs between bursts even if this thread is slow.
    if (next_ < count_) {
      std::array<TxPacket, 32> burst;
      std::array<std::uint64_t, 32> numbers;
      const auto max = static_cast<std::size_t>(std::min<std::uint64_t>(32, count_ - next_));
      for (std::size_t i = 0; i < max; ++i) {
        numbers[i] = next_ + i;
        burst[i] = {&to_, std::as_bytes(std::span(&numbers[i], 1)), payload_, Ecn::ect0};
      }
      const std::size_t taken = host_.send(std::span(burst).first(max));
      next_ += taken;
      if (taken == max && next_ < count_) return now;
    }
    return Nanos::never();
  }

  [[nodiscard]] bool done() const { return next_ == count_; }

 private:
  RingHost& host_;
  Address to_;
  std::uint64_t count_;
  ByteVector payload_;
  std::uint64_t next_ = 0;
  Nanos last_;
};

class Receiver final : public Pollable {
 public:
  explicit Receiver(RingHost& host) : host_(host) {}

  Nanos poll(Nanos now) override {
    std::array<RxPacket, 32> burst;
    while (const std::size_t count = host_.receive(burst)) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t number = 0;
        std::memcpy(&number, burst[i].bytes.data(), sizeof number);
        EXPECT_GE(number, next);
        next = number + 1;
        bytes += burst[i].bytes.size() + 42;
      }
      packets += count;
      if (first.is_never()) first = now;
      last = now;
    }
    return Nanos::never();
  }

  std::uint64_t next = 0;
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Nanos first = Nanos::never();
  Nanos last;

 private:
  RingHost& host_;
};

/// Wakes at regular times and records how late each wake-up is.
class Alarm final : public Pollable {
 public:
  explicit Alarm(Nanos every) : every_(every), next_(every) {}
  Nanos poll(Nanos now) override {
    if (now >= next_) {
      late.push_back(now - next_);
      next_ += every_;
    }
    return next_;
  }
  std::vector<Nanos> late;

 private:
  Nanos every_;
  Nanos next_;
};

class RingRunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    eal_ = shared_eal(reason, 2);
    if (eal_ == nullptr) GTEST_SKIP() << reason;
  }

  const Eal* eal_ = nullptr;
};

TEST_F(RingRunTest, CarriesAFlowAtTheRateOfTheBottleneck) {
  auto config = gigabit();
  config.bottleneck.buffer_bytes = 0;
  RingOptions options;
  options.receive_slots = 8192;  // enough slots that a delayed receiver loses no packet
  RingDumbbell network(*eal_, config, options);
  constexpr std::uint64_t kPackets = 4'000;  // 6 MB, which take 48 ms
  Sender sender(network.left(0), network.right(0).address(), kPackets, 1400);
  Receiver receiver(network.right(0));
  network.attach(network.left(0), sender);
  network.attach(network.right(0), receiver);
  cpu_set_t before;
  cpu_set_t after;
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  EXPECT_TRUE(network.run(Nanos(20'000'000'000), [&] { return receiver.packets == kPackets; }));
  pthread_getaffinity_np(pthread_self(), sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(receiver.next, kPackets);
  const double gbps =
      static_cast<double>(receiver.bytes) * 8 / static_cast<double>((receiver.last - receiver.first).count);
  const auto& host_loop = network.host_loop();
  const auto& switch_loop = network.switch_loop();
  RecordProperty("gbps", std::to_string(gbps));
  RecordProperty("longest_gap_ns", std::to_string(std::max(host_loop.longest_gap, switch_loop.longest_gap).count));
  // The measured rate exceeds the link's rate only if packets accumulate in a stall at the start. Only stalls make the
  // measured rate lower than the link's rate.
  const double stalled = (host_loop.stalled + switch_loop.stalled).seconds();
  EXPECT_GT(gbps, 0.9 * 0.048 / (0.060 + stalled)) << "stalled " << stalled << " s";
  EXPECT_LT(gbps, 1.05 + 20 * stalled);
  EXPECT_GT(host_loop.rounds, 0u);
  EXPECT_EQ(switch_loop.rounds > 0, eal_->cores().size() > 1);
  EXPECT_EQ(network.drain(), 0u);
}

TEST_F(RingRunTest, CarriesFlowsBothWaysWithNoBufferLost) {
  auto config = gigabit(3);
  config.bottleneck.rate = Rate(4'000'000'000);
  config.reverse.rate = Rate(4'000'000'000);
  config.bottleneck.faults = {0.01, 0.01, 0.01, 0.0, 10_us};
  RingDumbbell network(*eal_, config);
  std::vector<std::unique_ptr<Sender>> senders;
  for (std::uint32_t pair = 0; pair < 3; ++pair) {
    senders.push_back(std::make_unique<Sender>(network.left(pair), network.right(pair).address(), 3'000, 1000));
    network.attach(network.left(pair), *senders.back());
    senders.push_back(std::make_unique<Sender>(network.right(pair), network.left(pair).address(), 3'000, 1000));
    network.attach(network.right(pair), *senders.back());
  }
  const auto all_sent = [&] {
    return std::all_of(senders.begin(), senders.end(), [](const auto& sender) { return sender->done(); });
  };
  EXPECT_TRUE(network.run(Nanos(20'000'000'000), all_sent));
  EXPECT_EQ(network.drain(), 0u);
}

TEST_F(RingRunTest, TimeStartsAtZeroStandsStillBetweenRunsAndGoesOn) {
  RingDumbbell network(*eal_, gigabit());
  EXPECT_EQ(network.now(), Nanos());
  EXPECT_FALSE(network.run(3_ms, nullptr));
  const Nanos first = network.now();
  EXPECT_GE(first, 3_ms);
  EXPECT_TRUE(network.run(Nanos::never(), [] { return true; }));
  EXPECT_LT(network.now() - first, 500_ms);
  network.run_until(first + 2_ms);
  EXPECT_GE(network.now(), first + 2_ms);
}

TEST_F(RingRunTest, SleepsWhileNothingIsDueAndWakesInTime) {
  RingDumbbell network(*eal_, gigabit());
  Alarm alarm(5_ms);
  network.attach(network.left(0), alarm);
  network.run_until(201_ms);
  ASSERT_GE(alarm.late.size(), 10u);
  std::sort(alarm.late.begin(), alarm.late.end());
  RecordProperty("median_late_ns", std::to_string(alarm.late[alarm.late.size() / 2].count));
  RecordProperty("longest_late_ns", std::to_string(alarm.late.back().count));
  RecordProperty("slept_ms", std::to_string(network.host_loop().slept.millis()));
  EXPECT_LT(alarm.late[alarm.late.size() / 2], 100_us);
  EXPECT_GT(network.host_loop().slept, 50_ms);
  EXPECT_GT(network.host_loop().sleeps, 10u);
}

TEST_F(RingRunTest, SpinsWhenToldTo) {
  RingOptions options;
  options.sleep_when_idle = false;
  RingDumbbell network(*eal_, gigabit(), options);
  network.run_until(5_ms);
  EXPECT_EQ(network.host_loop().sleeps, 0u);
  EXPECT_EQ(network.switch_loop().sleeps, 0u);
}

/// Counts its polls. If `target` is not null, wakes this host in every poll except the first.
class Waker final : public Pollable {
 public:
  Waker(RingDumbbell& network, const RingHost* target) : network_(network), target_(target) {}
  Nanos poll(Nanos now) override {
    ++polls;
    if (target_ == nullptr) return Nanos::never();
    if (polls > 1) network_.wake(*target_);
    return now + 1_ms;
  }
  int polls = 0;

 private:
  RingDumbbell& network_;
  const RingHost* target_;
};

TEST_F(RingRunTest, AHostCanWakeAnother) {
  RingDumbbell network(*eal_, gigabit());
  Waker sleeper(network, nullptr);
  Waker waker(network, &network.left(0));
  network.attach(network.left(0), sleeper);
  network.attach(network.right(0), waker);
  EXPECT_TRUE(network.run(Nanos(5'000'000'000), [&] { return sleeper.polls >= 4; }));
  network.detach(network.left(0));
  const int polls = sleeper.polls;
  network.run_until(network.now() + 3_ms);
  EXPECT_EQ(sleeper.polls, polls);
}

class Thrower final : public Pollable {
 public:
  Nanos poll(Nanos) override { throw RunError("on purpose"); }
};

TEST_F(RingRunTest, AnExceptionEndsTheRunAndTheNextOneWorks) {
  RingDumbbell network(*eal_, gigabit());
  Thrower thrower;
  network.attach(network.left(0), thrower);
  EXPECT_THROW(network.run_until(1_ms), RunError);
  network.detach(network.left(0));
  EXPECT_FALSE(network.run(network.now() + 1_ms, nullptr));
}

}  // namespace
}  // namespace mltcp::dpdk
