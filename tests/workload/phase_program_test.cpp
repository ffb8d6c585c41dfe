// Programs of ranks from phases.
#include "mltcp/workload/phase_program.h"

#include <gtest/gtest.h>

namespace mltcp::workload {
namespace {

using Kind = Operation::Kind;

Phase compute(std::int64_t ms) {
  Phase phase;
  phase.compute = Nanos(ms * 1'000'000);
  return phase;
}
Phase communicate(Bytes bytes, bool overlap = false, Rate rate = {}) {
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  phase.bytes = bytes;
  phase.overlap = overlap;
  phase.rate = rate;
  return phase;
}

std::vector<std::uint32_t> waits_of(const RankProgram& program, std::size_t operation) {
  const Operation& one = program.operations[operation];
  return {program.waits.begin() + one.first_wait, program.waits.begin() + one.first_wait + one.waits};
}
using Waits = std::vector<std::uint32_t>;

TEST(phase_program, job_without_hosts__sends_one_way) {
  Job job;
  job.phases = {compute(5), communicate(100), compute(3), communicate(200, false, Rate(7))};
  EXPECT_EQ(ranks_of(job), 2U);
  const RankProgram sender = rank_program(job, 0);
  ASSERT_EQ(sender.operations.size(), 4U);
  EXPECT_EQ(sender.operations[1].kind, Kind::send);
  EXPECT_EQ(sender.operations[1].peer, 1U);
  EXPECT_EQ(sender.operations[3].rate, Rate(7));
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_EQ(waits_of(sender, i), Waits{i - 1});
  const RankProgram receiver = rank_program(job, 1);
  ASSERT_EQ(receiver.operations.size(), 2U) << "it doesn't compute";
  EXPECT_EQ(receiver.operations[0].kind, Kind::receive);
  EXPECT_EQ(receiver.operations[0].peer, 0U);
  EXPECT_EQ(receiver.operations[0].tag, sender.operations[1].tag);
  EXPECT_EQ(receiver.operations[1].tag, sender.operations[3].tag);
  EXPECT_EQ(receiver.load().received, sender.load().sent);
  EXPECT_EQ(sender.rank, 0U);
  EXPECT_EQ(receiver.rank, 1U);
}

TEST(phase_program, job_with_hosts__is_a_ring_whose_phases_wait_for_both_directions) {
  Job job;
  job.hosts = {4, 8, 2};
  job.phases = {communicate(100), compute(5)};
  const RankProgram program = rank_program(job, 2);
  ASSERT_EQ(program.operations.size(), 3U);
  EXPECT_EQ(program.operations[0].peer, 0U) << "the last sends to the first";
  EXPECT_EQ(program.operations[1].peer, 1U);
  EXPECT_EQ(waits_of(program, 2), (Waits{0, 1}));
}

TEST(phase_program, overlap__lets_the_next_phase_begin_at_once) {
  Job job;
  job.phases = {compute(1), communicate(100, true), compute(2), communicate(50)};
  const RankProgram program = rank_program(job, 0);
  EXPECT_EQ(waits_of(program, 1), Waits{0});
  EXPECT_EQ(waits_of(program, 2), Waits{0}) << "not for the bytes";
  EXPECT_EQ(waits_of(program, 3), Waits{2});
}

TEST(phase_program, pattern__has_a_program_of_its_own) {
  Job job;
  job.hosts = {0, 1};
  job.pattern.emplace();
  job.pattern->size = 1000;
  EXPECT_EQ(rank_program(job, 1).operations.size(), rank_program(*job.pattern, 1).operations.size());
}

}  // namespace
}  // namespace mltcp::workload
