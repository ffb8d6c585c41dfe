// Compares the fluid limit of two jobs with the table of HotNets'24 (doi 10.1145/3696348.3696878), to the printed
// digits.
#include "mltcp/cc/fluid_model.h"

#include <gtest/gtest.h>

#include <array>

namespace mltcp::cc {
namespace {

constexpr double kDigits4 = 0.5e-4;
constexpr double kDigits3 = 0.5e-3;

TEST(FluidPair, trajectory__half_of_the_period_up) {
  const FluidPair pair{.period = 1, .up_fraction = 0.5, .function = {}};
  const std::array<double, 6> expected{.0100, .0702, .2832, .4563, .4941, .4993};
  const auto offsets = pair.trajectory(0.01, 5);
  ASSERT_EQ(offsets.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(offsets[i], expected[i], kDigits4) << "iteration " << i;
}

TEST(FluidPair, trajectory__a_quarter_of_the_period_up) {
  const FluidPair pair{.period = 1, .up_fraction = 0.25, .function = {}};
  const std::array<double, 6> expected{.0100, .0625, .1818, .2388, .2485, .2498};
  const auto offsets = pair.trajectory(0.01, 5);
  ASSERT_EQ(offsets.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(offsets[i], expected[i], kDigits4) << "iteration " << i;
}

TEST(FluidPair, first_job_iteration__falls_from_shared_to_alone) {
  const FluidPair pair{.period = 1, .up_fraction = 0.5, .function = {}};
  const std::array<double, 6> expected{1.430, 1.217, 1.044, 1.006, 1.001, 1.000};
  const auto offsets = pair.trajectory(0.01, 5);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(pair.first_job_iteration(offsets[i]), expected[i], kDigits3) << "iteration " << i;
}

TEST(FluidPair, fair__stays_where_it_is) {
  const FluidPair fair{.period = 1, .up_fraction = 0.5, .function = {0, 1}};
  for (const double offset : fair.trajectory(0.01, 100)) {
    EXPECT_DOUBLE_EQ(offset, 0.01);
    EXPECT_NEAR(fair.first_job_iteration(offset), 1.49, 1e-12);
  }
}

TEST(FluidPair, shift__is_none_together_and_none_apart) {
  const FluidPair pair{.period = 2, .up_fraction = 0.5, .function = {}};
  EXPECT_EQ(pair.shift(0), 0);
  EXPECT_EQ(pair.shift(1.0), 0);
  EXPECT_EQ(pair.shift(1.5), 0);
  EXPECT_EQ(pair.first_job_iteration(1.0), 2);
  EXPECT_EQ(pair.first_job_iteration(1.5), 2);
  EXPECT_GT(pair.shift(0.5), 0);
}

TEST(FluidPair, period__only_scales) {
  const FluidPair one{.period = 1, .up_fraction = 0.5, .function = {}};
  const FluidPair ten{.period = 10, .up_fraction = 0.5, .function = {}};
  const auto a = one.trajectory(0.01, 5);
  const auto b = ten.trajectory(0.1, 5);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], 10 * a[i], 1e-12);
}

TEST(FluidPair, falling_function__pulls_the_jobs_together) {
  const FluidPair falling{.period = 1, .up_fraction = 0.5, .function = {-1.75, 2}};
  const auto offsets = falling.trajectory(0.02, 3);
  for (std::size_t i = 1; i < offsets.size(); ++i) EXPECT_LT(offsets[i], offsets[i - 1]);
}

/// Returns the offsets between two identical jobs at the starts of iterations 0, 1, ... The up phase of each job takes
/// half of its period.
std::vector<double> offsets_of(const char* function, double delta, int iterations) {
  const std::array<FluidJob, 2> jobs{FluidJob{.start = 0}, FluidJob{.start = delta}};
  const auto lengths = fluid_iterations(jobs, Aggressiveness::named(function), iterations);
  std::vector<double> offsets{delta};
  for (std::size_t i = 0; i < lengths[0].size(); ++i) offsets.push_back(offsets.back() + lengths[1][i] - lengths[0][i]);
  return offsets;
}

TEST(FluidIterations, pair__agrees_with_the_closed_form) {
  const FluidPair pair;
  const auto closed = pair.trajectory(0.01, 6);
  const auto stepped = offsets_of("F1", 0.01, 6);
  ASSERT_EQ(stepped.size(), closed.size());
  for (std::size_t i = 0; i < closed.size(); ++i) EXPECT_NEAR(stepped[i], closed[i], 1e-4) << i;
}

TEST(FluidIterations, pair__rising_functions_part_and_falling_ones_join) {
  for (const char* rising : {"F2", "F3", "F4"}) {
    const auto offsets = offsets_of(rising, 0.02, 8);
    EXPECT_GT(offsets[8], 0.49) << rising;
  }
  for (const char* falling : {"F5", "F6"}) {
    const auto offsets = offsets_of(falling, 0.02, 3);
    EXPECT_LT(offsets[3], 0.003) << falling;
  }
}

TEST(FluidIterations, fair__pair_stays_at_its_offset) {
  const std::array<FluidJob, 2> jobs{FluidJob{.start = 0}, FluidJob{.start = 0.01}};
  for (const auto& lengths : fluid_iterations(jobs, {0, 1}, 20))
    for (std::size_t i = 1; i < lengths.size(); ++i) EXPECT_NEAR(lengths[i], 1.49, 1e-6);
}

TEST(FluidIterations, six_jobs__come_apart) {
  std::vector<FluidJob> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back({.compute = 257, .communicate = 43, .start = 3.0 * i});
  const auto lengths = fluid_iterations(jobs, {}, 30);
  for (const auto& job : lengths) {
    EXPECT_GT(job[0], 330);
    for (std::size_t i = 7; i < job.size(); ++i) EXPECT_NEAR(job[i], 300, 0.35) << i;
  }
}

}  // namespace
}  // namespace mltcp::cc
