// Tests the share of CPU time that a hypervisor took from this machine (steal time).
#include "mltcp/lab/testbed/cpu_time.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace mltcp::testbed {
namespace {

CpuTime of(const std::string& text) {
  std::istringstream stat(text);
  return CpuTime::from(stat);
}

TEST(cpu_time, from__adds_up_the_first_eight_fields_of_all_cpus) {
  const CpuTime time = of("cpu  10 20 30 400 5 6 7 8 99 99\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  EXPECT_EQ(time.all, 486U);
  EXPECT_EQ(time.stolen, 8U);
}

TEST(cpu_time, from__what_is_not_there_is_nothing) {
  EXPECT_EQ(of("").all, 0U);
  EXPECT_EQ(of("cpu 10 20").stolen, 0U);
}

TEST(cpu_time, stolen_since__is_a_share_of_what_has_passed) {
  const CpuTime before = of("cpu 0 0 0 100 0 0 0 10");
  EXPECT_DOUBLE_EQ(of("cpu 50 0 0 125 0 0 0 35").stolen_since(before), 0.25);
  EXPECT_DOUBLE_EQ(before.stolen_since(before), 0);
  // The steal time may go backwards after a hypervisor has moved the machine to another host.
  EXPECT_DOUBLE_EQ(of("cpu 200 0 0 200 0 0 0 5").stolen_since(before), 0);
}

TEST(cpu_time, now__has_passed) { EXPECT_GT(CpuTime::now().all, 0U); }

}  // namespace
}  // namespace mltcp::testbed
