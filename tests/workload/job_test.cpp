// Tests the sums over all phases of a job.
#include "mltcp/lab/workload/job.h"

#include <gtest/gtest.h>

#include "phases.h"

namespace mltcp::workload::job_test {
namespace {

TEST(Job, sums__by_kind) {
  Job job;
  job.phases = {computes(Nanos(5)), sends(100), computes(Nanos(7)), sends(6'000'000'000)};
  EXPECT_EQ(job.compute_per_iteration(), Nanos(12));
  EXPECT_EQ(job.bytes_per_iteration(), 6'000'000'100U);
}

TEST(Job, sums__without_phases) {
  const Job job;
  EXPECT_EQ(job.compute_per_iteration(), Nanos(0));
  EXPECT_EQ(job.bytes_per_iteration(), 0U);
}

}  // namespace
}  // namespace mltcp::workload::job_test
