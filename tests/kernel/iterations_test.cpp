// Tests plugins/kernel/iterations.h, which the BPF programs include, on the host: learning iterations from bursts, and
// gains.
#include "mltcp/plugins/kernel/iterations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/plugins/kernel/settings.h"

namespace {

using mltcp::Bytes;
using mltcp::Nanos;
using namespace mltcp::literals;

/// A job whose clock the test controls.
class KernelIterations : public ::testing::Test {
 protected:
  void silence(Nanos time) { now_ += static_cast<std::uint64_t>(time.count); }
  /// Sends data during `time`. The peer acknowledges 1448 bytes at a time.
  void send(Bytes bytes, Nanos time = 100_ms) {
    mltcp_on_burst(&job_, &settings_, now_);
    const std::uint64_t packets = (bytes + 1447) / 1448;
    for (std::uint64_t i = 0; i < packets; ++i) {
      now_ += static_cast<std::uint64_t>(time.count) / packets;
      mltcp_on_delivered(&job_, std::min<Bytes>(1448, bytes - i * 1448), now_);
    }
  }
  void iterate(int iterations, Bytes bytes, Nanos compute) {
    for (int i = 0; i < iterations; ++i) {
      silence(compute);
      send(bytes);
    }
  }
  void set(const mltcp::kernel::SettingsChange& change) { mltcp::kernel::apply(change, settings_); }
  [[nodiscard]] Bytes known() const { return mltcp_known_size(&job_, &settings_); }
  [[nodiscard]] double gain() const {
    return static_cast<double>(mltcp_gain(&job_, &settings_)) / static_cast<double>(MLTCP_GAIN_ONE);
  }

  mltcp_settings settings_ = mltcp::kernel::default_settings();
  mltcp_iterations job_{};
  std::uint64_t now_ = 1'000'000'000;
};

TEST_F(KernelIterations, equal_ones__are_known_after_three) {
  iterate(1, 300, 0_ms);  // imitates a handshake
  iterate(3, 1'000'000, 50_ms);
  EXPECT_EQ(known(), 0U);
  EXPECT_EQ(gain(), 1.0);
  silence(50_ms);
  send(500'000);
  EXPECT_EQ(known(), 1'000'000U);
  EXPECT_EQ(mltcp_sent(&job_), 500'000U);
  EXPECT_NEAR(gain(), 0.25 + 1.75 / 2, 1e-3);
  send(500'000);
  EXPECT_NEAR(gain(), 2.0, 1e-3);
  EXPECT_NEAR(static_cast<double>(job_.gap_ns), 50e6, 1e6);
}

TEST_F(KernelIterations, gradient_buckets__are_parts_of_an_iteration) {
  for (int i = 0; i < 12; ++i) {
    silence(80_ms);
    for (int bucket = 0; bucket < 10; ++bucket) {
      if (bucket > 0) silence(8_ms);
      send(100'000, 10_ms);
    }
  }
  EXPECT_EQ(known(), 1'000'000U);
  EXPECT_NEAR(static_cast<double>(job_.gap_ns), 80e6, 1e6);
}

TEST_F(KernelIterations, buckets_of_different_sizes__are_parts_of_an_iteration) {
  iterate(1, 300, 0_ms);
  silence(Nanos(47'000'000'000));  // imitates a job that loads its data
  for (int i = 0; i < 12; ++i) {
    for (const Bytes bucket : {400'000U, 90'000U, 30'000U, 250'000U, 60'000U}) {
      send(bucket, 10_ms);
      silence(8_ms);
    }
    silence(72_ms);
  }
  send(1'000, 0_ms);
  EXPECT_EQ(known(), 830'000U);
  EXPECT_EQ(mltcp_sent(&job_), 1'000U);
}

TEST_F(KernelIterations, control_messages__do_not_end_a_silence) {
  iterate(8, 1'000'000, 50_ms);
  const std::uint64_t before = job_.iterations;
  for (int i = 0; i < 4; ++i) {
    for (int beat = 0; beat < 4; ++beat) {
      silence(12_ms);
      send(64, 0_ms);
    }
    silence(12_ms);
    send(1'000'000);
  }
  EXPECT_EQ(job_.iterations, before + 4);
  EXPECT_GT(known(), 0U);
}

TEST_F(KernelIterations, jitter_of_computing__changes_nothing) {
  const std::vector<int> compute{50, 90, 40, 70, 55, 35, 80, 45};
  iterate(8, 1'000'000, 50_ms);
  for (const int ms : compute) {
    iterate(1, 1'000'000, Nanos(ms * 1'000'000LL));
    EXPECT_EQ(known(), 1'000'000U) << ms;
  }
}

TEST_F(KernelIterations, a_pause__is_forgotten_as_a_gap) {
  iterate(10, 1'000'000, 50_ms);
  iterate(1, 1'000'000, Nanos(60'000'000'000));
  EXPECT_LT(job_.gap_ns, 120'000'000U);
  const std::uint64_t before = job_.iterations;
  iterate(6, 1'000'000, 50_ms);
  EXPECT_EQ(job_.iterations, before + 6);
  EXPECT_EQ(known(), 1'000'000U);
}

TEST_F(KernelIterations, a_slow_start_up__is_forgotten_as_a_gap) {
  iterate(3, 20'000, Nanos(3'000'000'000));  // imitates a job that loads its data
  iterate(1, 30'000'000, Nanos(4'000'000'000));
  iterate(40, 1'000'000, 100_ms);
  EXPECT_EQ(known(), 1'000'000U);
  EXPECT_NEAR(static_cast<double>(job_.gap_ns), 100e6, 1e6);
}

TEST_F(KernelIterations, one_odd_iteration__is_passed_over_and_a_changed_job_learned) {
  iterate(12, 1'000'000, 50_ms);
  iterate(1, 400'000, 50_ms);
  silence(50_ms);
  send(1000, 0_ms);
  EXPECT_EQ(known(), 0U) << "the last one did not fit";
  EXPECT_EQ(gain(), 1.0);
  send(999'000);
  iterate(1, 1'000'000, 50_ms);
  EXPECT_EQ(known(), 1'000'000U);
  iterate(10, 2'000'000, 50_ms);
  EXPECT_EQ(known(), 2'000'000U);
}

TEST_F(KernelIterations, more_than_its_size__has_gain_one) {
  iterate(12, 1'000'000, 50_ms);
  silence(50_ms);
  send(1'030'000);
  EXPECT_EQ(gain(), 2.0);
  send(10'000);
  EXPECT_EQ(gain(), 1.0);
}

TEST_F(KernelIterations, traffic_without_a_period__stays_at_gain_one) {
  std::uint64_t random = 12345;
  for (int i = 0; i < 2000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    silence(Nanos(static_cast<std::int64_t>(2'000'000 + (random >> 33) % 100'000'000)));
    send(20'000 + (random >> 20) % 1'000'000, 20_ms);
  }
  EXPECT_LT(job_.alike, 4U);
}

TEST_F(KernelIterations, known_bytes__are_taken_at_once_and_buckets_do_not_matter) {
  set({.function = {}, .gap = {}, .iteration_bytes = 1'000'000});
  silence(50_ms);
  send(1000, 0_ms);
  for (int i = 0; i < 5; ++i) {
    silence(50_ms);
    send(500'000);
    EXPECT_NEAR(gain(), 0.25 + 1.75 / 2, 0.01) << i;
    silence(40_ms);
    send(500'000);
    EXPECT_EQ(gain(), 2.0) << i;
  }
}

TEST_F(KernelIterations, given_bytes_that_are_too_many__are_ignored_until_one_fits) {
  set({.function = {}, .gap = {}, .iteration_bytes = 1'050'000});
  for (int i = 0; i < 12; ++i) {
    iterate(1, 1'000'000, 50_ms);
    if (i < 6) continue;
    EXPECT_EQ(gain(), 1.0) << i;
  }
  EXPECT_EQ(known(), 0U);
  iterate(3, 1'050'000, 50_ms);
  silence(50_ms);
  send(525'000);
  EXPECT_EQ(known(), 1'050'000U);
  EXPECT_NEAR(gain(), 0.25 + 1.75 / 2, 0.01);
}

TEST_F(KernelIterations, given_bytes_that_are_somewhat_too_few__are_used) {
  set({.function = {}, .gap = {}, .iteration_bytes = 900'000});
  iterate(8, 1'000'000, 50_ms);
  EXPECT_EQ(known(), 900'000U);
  EXPECT_EQ(gain(), 2.0);
}

TEST_F(KernelIterations, half_again_of_given_bytes__has_gain_one) {
  set({.function = {}, .gap = {}, .iteration_bytes = 1'000'000});
  iterate(4, 1'000'000, 50_ms);
  silence(50_ms);
  send(1'450'000);
  EXPECT_EQ(gain(), 2.0);
  send(100'000);
  EXPECT_EQ(gain(), 1.0) << "the end was not seen";
}

TEST_F(KernelIterations, unacknowledged_bursts__do_not_lengthen_a_silence) {
  iterate(8, 1'000'000, 50_ms);
  silence(50_ms);
  send(500'000);
  const std::uint64_t before = job_.iterations;
  silence(10_ms);
  for (int i = 0; i < 3; ++i) {
    mltcp_on_burst(&job_, &settings_, now_);
    silence(4_ms);
  }
  send(500'000);
  EXPECT_EQ(job_.burst_gap_ns, 22'000'000U);
  EXPECT_EQ(job_.iterations, before) << "less than half of the usual gap";
  EXPECT_EQ(mltcp_sent(&job_), 1'000'000U);
  EXPECT_NEAR(static_cast<double>(job_.gap_ns), 50e6, 1e6);
}

TEST_F(KernelIterations, a_given_gap__decides_alone) {
  set({.function = {}, .gap = 30_ms, .iteration_bytes = {}});
  for (int i = 0; i < 8; ++i) {
    silence(40_ms);
    send(500'000);
    silence(25_ms);
    send(500'000);
  }
  EXPECT_EQ(known(), 1'000'000U);
}

TEST_F(KernelIterations, a_small_iteration__is_none) {
  iterate(20, 10'000, 50_ms);
  EXPECT_EQ(known(), 0U);
}

TEST(KernelGain, is_that_of_the_function) {
  for (const char* name : {"F1", "F2", "F3", "F4", "F5", "F6", "table 0 0.5 0.3 1 1 3"}) {
    mltcp_settings settings = mltcp::kernel::default_settings();
    mltcp::kernel::apply({.function = name, .gap = {}, .iteration_bytes = {}}, settings);
    const auto function = mltcp::cc::Aggressiveness::read(name);
    EXPECT_EQ(mltcp::kernel::function_of(settings), name);
    for (const std::uint64_t size : {1000ULL, 13'500'000ULL, 1ULL << 43})
      for (std::uint64_t i = 0; i <= 1000; ++i) {
        const std::uint64_t sent = size / 1000 * i;
        const double x = static_cast<double>(sent) / static_cast<double>(size);
        const double gain = static_cast<double>(mltcp_gain_at(&settings, sent, size)) / 65536;
        ASSERT_NEAR(gain, function(x), 5e-3 * function(x)) << name << " at " << x;
      }
  }
}

TEST(KernelGain, constants__hold_always) {
  mltcp_settings settings = mltcp::kernel::default_settings();
  mltcp_iterations job{};
  mltcp::kernel::apply({.function = "0.5", .gap = {}, .iteration_bytes = {}}, settings);
  EXPECT_EQ(mltcp_gain(&job, &settings), MLTCP_GAIN_ONE / 2);
  mltcp::kernel::apply({.function = "fair", .gap = {}, .iteration_bytes = {}}, settings);
  EXPECT_EQ(mltcp_gain(&job, &settings), MLTCP_GAIN_ONE);
}

TEST(KernelGain, what_is_no_function__is_refused_and_changes_nothing) {
  mltcp_settings settings = mltcp::kernel::default_settings();
  for (const char* wrong : {"F7", "0", "-1", "5000", "0.0001", "polynomial 1 2", "turns"})
    EXPECT_THROW(mltcp::kernel::apply({.function = wrong, .gap = 5_ms, .iteration_bytes = {}}, settings),
                 mltcp::InputError)
        << wrong;
  EXPECT_EQ(mltcp::kernel::function_of(settings), "F1");
  EXPECT_EQ(settings.gap_ns, 0U);
}

TEST(KernelGain, fractions_of_packets__are_carried) {
  __u64 carry = 0;
  std::uint64_t packets = 0;
  for (int i = 0; i < 1000; ++i) packets += mltcp_scaled(1, MLTCP_GAIN_ONE / 4 + 1, &carry);
  EXPECT_EQ(packets, 250U);
  for (int i = 0; i < 1000; ++i) packets += mltcp_scaled(3, MLTCP_GAIN_ONE * 7 / 4, &carry);
  EXPECT_EQ(packets, 250U + 5250U);
}

}  // namespace
