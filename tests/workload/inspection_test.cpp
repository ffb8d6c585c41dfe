// Tests the ideal iteration and the text form of a job. tests/experiment/files/experiment_jobs_test.cpp tests that
// reading the text gives the same job.
#include "mltcp/lab/workload/inspection.h"

#include "../matchers.h"
#include "phases.h"

namespace mltcp::workload::inspection_test {
namespace {

constexpr Rate kGbps(1'000'000'000);

TEST(Inspection, ideal_iteration__blocking) {
  const IdealIteration ideal = ideal_iteration({computes(Nanos(3000)), sends(125)}, kGbps);
  EXPECT_EQ(ideal.length, Nanos(4000));
  EXPECT_EQ(ideal.sending, Nanos(1000));
  EXPECT_DOUBLE_EQ(ideal.duty_cycle(), 0.25);
}

TEST(Inspection, ideal_iteration__overlap) {
  // The communication overlaps the next computation, which takes longer.
  EXPECT_EQ(ideal_iteration({computes(Nanos(1000)), sends(125, true), computes(Nanos(3000))}, kGbps).length,
            Nanos(4000));
  // The first communication takes longer than the computation that it overlaps. The second communication waits for the
  // first one.
  EXPECT_EQ(
      ideal_iteration({sends(250, true), computes(Nanos(500)), sends(125, true), computes(Nanos(100))}, kGbps).length,
      Nanos(3000));
  // A blocking communication waits until the overlapping communication before it has ended.
  EXPECT_EQ(ideal_iteration({sends(250, true), computes(Nanos(500)), sends(125), computes(Nanos(100))}, kGbps).length,
            Nanos(3100));
}

TEST(Inspection, ideal_iteration__slowest_rate_counts) {
  Job job;
  job.phases = {computes(Nanos(1000)), sends(125, false, Rate(100'000'000)), sends(125)};
  EXPECT_EQ(ideal_iteration(job, kGbps).length, Nanos(1000 + 10'000 + 1000));
  job.rate = Rate(500'000'000);
  EXPECT_EQ(ideal_iteration(job, kGbps).length, Nanos(1000 + 10'000 + 2000));
  EXPECT_EQ(ideal_iteration(job, Rate(50'000'000)).length, Nanos(1000 + 20'000 + 20'000));
  EXPECT_DOUBLE_EQ(ideal_iteration(std::vector<Phase>{}, kGbps).duty_cycle(), 0);
}

TEST(Inspection, ideal_transfers__follow_the_same_walk) {
  const Rate half(500'000'000);
  EXPECT_THAT(ideal_transfers({computes(Nanos(3000)), sends(125)}, kGbps),
              ElementsAre(Transfer{Nanos(3000), Nanos(4000), kGbps}));
  // The second transfer begins when the first one ends, and has a lower rate. The third transfer follows the
  // computation.
  EXPECT_THAT(
      ideal_transfers(
          {sends(250, true), computes(Nanos(500)), sends(125, true, half), computes(Nanos(9500)), sends(125)}, kGbps),
      ElementsAre(Transfer{Nanos(0), Nanos(2000), kGbps}, Transfer{Nanos(2000), Nanos(4000), half},
                  Transfer{Nanos(10'000), Nanos(11'000), kGbps}));
  // Adjacent transfers with the same rate form one interval.
  EXPECT_THAT(ideal_transfers({sends(125, true), computes(Nanos(500)), sends(125)}, kGbps),
              ElementsAre(Transfer{Nanos(0), Nanos(2000), kGbps}));
  Job job;
  job.phases = {computes(Nanos(1000)), sends(125)};
  job.rate = half;
  EXPECT_THAT(ideal_transfers(job, kGbps), ElementsAre(Transfer{Nanos(1000), Nanos(3000), half}));
}

TEST(Inspection, to_toml__numbers_are_those_of_toml) {
  Job job;
  job.phases = {computes(Nanos(1000)), sends(125)};
  job.weight = 0.00002;
  EXPECT_THAT(to_toml(job), HasSubstr("weight = 2e-05\n"));
  job.weight = 3;
  EXPECT_THAT(to_toml(job), HasSubstr("weight = 3.0\n"));
}

TEST(Inspection, to_toml__text) {
  Job job;
  job.name = "a \"b\"\\\n";
  job.flows = 3;
  job.start = Nanos(1'500'000);
  job.straggler = {0.02, 3};
  job.weight = 2;
  job.unaware = true;
  job.rate = kGbps;
  job.phases = {computes(Nanos(20'000'000)), sends(5'000'000, true, Rate(500'000'000))};
  job.phases[1].label = "layer \xc3\xa9\n1";
  EXPECT_EQ(to_toml(job),
            "[[job]]\n"
            "name = \"a \\\"b\\\"\\\\\\u000A\"\n"
            "flows = 3\n"
            "start = \"1.5 ms\"\n"
            "straggler = { probability = 0.02, factor = 3.0 }\n"
            "weight = 2.0\n"
            "rate = \"1 Gbps\"\n"
            "unaware = true\n"
            "phases = [\n"
            "  { compute = \"20 ms\" },\n"
            "  { communicate = \"5 MB\", rate = \"500 Mbps\", overlap = true },  # layer ???1\n"
            "]\n");
}

}  // namespace
}  // namespace mltcp::workload::inspection_test
