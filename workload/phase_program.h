// What a job does in an iteration when all that is known of it are its phases: a program as of a pattern
// (rank_program.h).
//
// When a phase is over: a phase that communicates is over when all that the job's workers send in it has been
// delivered, and so for all of them at once; one that overlaps holds nothing up but the end of the iteration, which is
// over when all of it is. It is the same on every datapath. In one process the job's workers share one program,
// phase_program(). Where ranks live on hosts of their own each has one, and they tell each other: a worker knows that
// its own bytes have been delivered, and that those of the one before it have arrived; with three workers or more,
// messages of one byte then go around, in the pattern of a barrier by dissemination (Hensgen, Finkel and Manber,
// International Journal of Parallel Programming 17, 1988): in round k each tells the one 2^k further on, and after log2
// n rounds knows of all.
#pragma once

#include "mltcp/workload/job.h"
#include "mltcp/workload/rank_program.h"

namespace mltcp::workload {

/// The job as one: its computations and, as sends, its phases that communicate, of which each stands for all workers.
RankProgram phase_program(const Job& job);

/// Ranks of a job, with a pattern or without.
std::uint32_t ranks_of(const Job& job);

/// That of the job's pattern, or of its phases. A job with hosts is a ring of its workers, each of which sends a
/// phase's bytes to the next one. A job without hosts has two ranks, of which 0 computes and sends and 1 receives.
/// Throws InputError for a phase that sends no bytes, of which nobody could tell when it is over, for a program above
/// kMostOperations, and as rank_program() of a pattern does.
RankProgram rank_program(const Job& job, std::uint32_t rank);

}  // namespace mltcp::workload
