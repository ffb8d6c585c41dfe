// Tests rank programs made from the phases of a job.
#include "mltcp/lab/workload/phase_program.h"

#include <algorithm>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "phases.h"

namespace mltcp::workload {
namespace {

using namespace literals;
using Kind = Operation::Kind;

std::vector<std::uint32_t> waits_of(const RankProgram& program, std::size_t operation) {
  const Operation& one = program.operations[operation];
  return {program.waits.begin() + one.first_wait, program.waits.begin() + one.first_wait + one.waits};
}
using Waits = std::vector<std::uint32_t>;

TEST(phase_program, job_without_hosts__sends_one_way) {
  Job job;
  job.phases = {computes(5_ms), sends(100), computes(3_ms), sends(200, false, Rate(7))};
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

TEST(phase_program, two_workers__wait_for_both_directions) {
  Job job;
  job.hosts = {4, 8};
  job.phases = {sends(100), computes(5_ms)};
  const RankProgram program = rank_program(job, 1);
  ASSERT_EQ(program.operations.size(), 3U);
  EXPECT_EQ(program.operations[0].peer, 0U);
  EXPECT_EQ(program.operations[1].peer, 0U);
  EXPECT_EQ(waits_of(program, 2), (Waits{0, 1}));
}

TEST(phase_program, three_workers_or_more__are_a_ring_whose_phases_end_in_a_barrier) {
  Job job;
  job.hosts = {4, 8, 2, 5, 6};
  job.phases = {sends(100), computes(5_ms)};
  const RankProgram program = rank_program(job, 4);
  ASSERT_EQ(program.operations.size(), 2 + 3 * 2 + 1U) << "three rounds for five";
  EXPECT_EQ(program.operations[0].peer, 0U) << "the last sends to the first";
  EXPECT_EQ(program.operations[1].peer, 3U);
  const std::uint32_t to[] = {0, 1, 3};
  const std::uint32_t from[] = {3, 2, 0};
  for (std::uint32_t round = 0; round < 3; ++round) {
    const std::uint32_t send = 2 + 2 * round;
    EXPECT_EQ(program.operations[send].kind, Kind::send);
    EXPECT_EQ(program.operations[send].peer, to[round]);
    EXPECT_EQ(program.operations[send + 1].kind, Kind::receive);
    EXPECT_EQ(program.operations[send + 1].peer, from[round]);
    EXPECT_TRUE(program.operations[send].barrier && program.operations[send + 1].barrier);
  }
  EXPECT_EQ(waits_of(program, 4), (Waits{0, 1, 3})) << "it tells of itself and of whom it has heard";
  EXPECT_EQ(waits_of(program, 8), (Waits{0, 1, 3, 5, 7}));
  EXPECT_EQ(program.load().sent, 100U) << "not of the job's bytes";
  EXPECT_EQ(program.load().received, 100U);
}

// The peer of a rank expects each of the rank's messages in the order in which the rank sends them. A rank leaves a
// barrier only after all ranks have reached it.
TEST(phase_program, barrier__holds_everybody_until_the_last_has_come) {
  for (std::uint32_t ranks = 3; ranks <= 17; ++ranks) {
    Job job;
    job.hosts.resize(ranks);
    job.phases = {sends(100, true), computes(5_ms), sends(50), computes(5_ms)};
    std::vector<RankProgram> all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) all.push_back(rank_program(job, rank));
    const auto between = [&](std::uint32_t from, std::uint32_t to, Kind kind) {
      std::vector<std::uint64_t> tags;
      for (const Operation& operation : all[kind == Kind::send ? from : to].operations)
        if (operation.kind == kind && operation.peer == (kind == Kind::send ? to : from)) tags.push_back(operation.tag);
      return tags;
    };
    for (std::uint32_t from = 0; from < ranks; ++from)
      for (std::uint32_t to = 0; to < ranks; ++to)
        ASSERT_EQ(between(from, to, Kind::send), between(from, to, Kind::receive)) << ranks;
    // For each rank, the ranks from which it has received in the rounds of this barrier so far, directly or indirectly.
    const std::uint64_t first_tag = (std::uint64_t{1} << 32U) + 2 * 32;
    std::vector<std::vector<bool>> heard(ranks, std::vector<bool>(ranks));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) heard[rank][rank] = true;
    for (std::uint64_t tag = first_tag;; ++tag) {
      const auto before = heard;
      bool any = false;
      for (std::uint32_t rank = 0; rank < ranks; ++rank)
        for (const Operation& operation : all[rank].operations) {
          if (!operation.barrier || operation.kind != Kind::receive || operation.tag != tag) continue;
          any = true;
          for (std::uint32_t other = 0; other < ranks; ++other)
            if (before[operation.peer][other]) heard[rank][other] = true;
        }
      if (!any) break;
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(std::count(heard[rank].begin(), heard[rank].end(), true), static_cast<std::ptrdiff_t>(ranks))
          << rank << " of " << ranks;
  }
}

TEST(phase_program, job_as_one__has_its_phases_in_order) {
  Job job;
  job.phases = {computes(0_ms), sends(100, true), computes(2_ms), sends(50, false, Rate(7))};
  const RankProgram program = phase_program(job);
  ASSERT_EQ(program.operations.size(), 4U) << "one that computes for no time, too: it may be held up";
  EXPECT_EQ(program.operations[0].kind, Kind::compute);
  EXPECT_EQ(program.operations[1].kind, Kind::send);
  EXPECT_EQ(program.operations[3].bytes, 50U);
  EXPECT_EQ(program.operations[3].rate, Rate(7));
  EXPECT_EQ(waits_of(program, 2), Waits{0});
  EXPECT_EQ(waits_of(program, 3), Waits{2});
}

TEST(phase_program, overlap__lets_the_next_phase_begin_at_once) {
  Job job;
  job.phases = {computes(1_ms), sends(100, true), computes(2_ms), sends(50)};
  const RankProgram program = rank_program(job, 0);
  EXPECT_EQ(waits_of(program, 1), Waits{0});
  EXPECT_EQ(waits_of(program, 2), Waits{0}) << "not for the bytes";
  EXPECT_EQ(waits_of(program, 3), Waits{2});
}

TEST(phase_program, of_endless_phases__is_refused) {
  Job job;
  job.hosts.resize(1024);
  job.phases.assign(100'000, sends(1));
  EXPECT_THROW(rank_program(job, 0), InputError);
  job.hosts.resize(2);
  EXPECT_EQ(rank_program(job, 0).operations.size(), 200'000U);
}

TEST(phase_program, of_a_phase_without_bytes__is_refused) {
  Job job;
  job.name = "quiet";
  job.hosts = {0, 1};
  job.phases = {sends(5), sends(0)};
  EXPECT_EQ(refusal_of([&] { rank_program(job, 0); }),
            "phase 2 of \"quiet\" sends no bytes; leave it out, or give it some");
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
