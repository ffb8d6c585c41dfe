// Tests lab/fabric/usage_meter.cpp: dividing time into bins, merging bins, and the bounds of memory.
#include "mltcp/lab/fabric/usage_meter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::fabric {
namespace {

using namespace mltcp::literals;
using Series = std::vector<Bytes>;

Bytes total(const UsageMeter& meter) {
  Bytes sum = 0;
  for (const auto& [job, series] : meter.jobs()) sum = std::accumulate(series.begin(), series.end(), sum);
  return sum;
}

TEST(UsageMeter, add__counts_into_the_bin_of_its_time) {
  UsageMeter meter(10_ns, 8);
  meter.add(1, 5, 0_ns);
  meter.add(1, 6, 9_ns);
  meter.add(1, 7, 10_ns);
  meter.add(2, 8, 35_ns);
  meter.add(1, 9, 3_ns);  // at an earlier time than the previous call
  EXPECT_EQ(meter.jobs().at(1), (Series{20, 7}));
  EXPECT_EQ(meter.jobs().at(2), (Series{0, 0, 0, 8}));
  EXPECT_EQ(meter.jobs().size(), 2U);
  EXPECT_EQ(meter.bin(), 10_ns);
}

TEST(UsageMeter, add__merges_neighbours_when_time_outgrows_the_bins) {
  UsageMeter meter(10_ns, 4);
  for (std::int64_t i = 0; i < 4; ++i) meter.add(1, static_cast<Bytes>(1 << i), Nanos(i * 10));
  meter.add(2, 100, 20_ns);
  meter.add(1, 1000, 39_ns);
  EXPECT_EQ(meter.bin(), 10_ns);
  meter.add(1, 10'000, 40_ns);
  EXPECT_EQ(meter.bin(), 20_ns);
  EXPECT_EQ(meter.jobs().at(1), (Series{3, 1012, 10'000}));
  EXPECT_EQ(meter.jobs().at(2), (Series{0, 100}));
  meter.add(2, 7, 15_ns);
  EXPECT_EQ(meter.jobs().at(2), (Series{7, 100}));
}

TEST(UsageMeter, add__merges_several_times_at_once) {
  UsageMeter meter(1_ns, 2);
  meter.add(1, 1, 0_ns);
  meter.add(1, 2, 1_ns);
  meter.add(1, 4, Nanos(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(meter.bin().count, std::int64_t{1} << 62);
  EXPECT_EQ(meter.jobs().at(1), (Series{3, 4}));
}

TEST(UsageMeter, add__keeps_every_byte_and_the_bound) {
  UsageMeter meter(1_us, 64);
  Random random(4);
  Bytes sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Bytes bytes = random.below(9000);
    sum += bytes;
    meter.add(static_cast<std::uint32_t>(random.below(40)), bytes,
              Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(i) * 10 + 1))));
  }
  EXPECT_EQ(total(meter), sum);
  EXPECT_EQ(meter.jobs().size(), 40U);
  for (const auto& [job, series] : meter.jobs()) EXPECT_LE(series.size(), 64U);
  EXPECT_EQ(meter.bin(), 16_us);
}

TEST(UsageMeter, add__pools_jobs_beyond_the_bound) {
  UsageMeter meter;
  for (std::uint32_t job = 0; job < UsageMeter::kMaxJobs + 100; ++job) meter.add(job, 1, 0_ns);
  meter.add(3, 1, 0_ns);
  EXPECT_EQ(meter.jobs().size(), UsageMeter::kMaxJobs + 1);
  EXPECT_EQ(meter.jobs().at(UsageMeter::kOtherJobs), Series{100});
  EXPECT_EQ(meter.jobs().at(3), Series{2});
}

TEST(UsageMeter, copy__is_independent) {
  UsageMeter meter(10_ns, 4);
  meter.add(1, 5, 0_ns);
  UsageMeter copy = meter;
  copy.add(1, 6, 0_ns);
  UsageMeter assigned;
  assigned.add(1, 1, 0_ns);
  assigned = meter;
  assigned.add(1, 7, 0_ns);
  meter.add(1, 8, 0_ns);
  EXPECT_EQ(meter.jobs().at(1), Series{13});
  EXPECT_EQ(copy.jobs().at(1), Series{11});
  EXPECT_EQ(assigned.jobs().at(1), Series{12});
}

TEST(UsageMeter, constructor__refuses_what_is_out_of_range) {
  EXPECT_THROW(UsageMeter(0_ns, 4), InputError);
  EXPECT_THROW(UsageMeter(Nanos(-1), 4), InputError);
  EXPECT_THROW(UsageMeter(1_ns, 0), InputError);
  EXPECT_THROW(UsageMeter(1_ns, 3), InputError);
}

}  // namespace
}  // namespace mltcp::fabric
