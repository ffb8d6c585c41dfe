// The program (rank_program.h) of a job that is defined by its phases only.
//
// A communicating phase is over, for all workers at once, when all bytes that the job's workers send in it have been
// delivered; one that overlaps only delays the end of the iteration, which is over when all of its phases are. This
// holds on every datapath. Within one process the job's workers share one program, phase_program(). Ranks on separate
// hosts have one each and must synchronise: a worker knows when its own bytes have been delivered and those of its
// predecessor have arrived; with three workers or more, messages of one byte implement a dissemination barrier
// (Hensgen, Finkel and Manber, International Journal of Parallel Programming 17, 1988): in round k each rank notifies
// the one 2^k further on, and after log2 n rounds knows of all.
#pragma once

#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

/// The job as a single rank, which represents all workers: computations, and a send for each communicating phase.
RankProgram phase_program(const Job& job);

/// Number of ranks of a job, with or without a pattern.
std::uint32_t ranks_of(const Job& job);

/// The program of a rank, by the job's programs, its pattern or its phases. A job with hosts is a ring of workers, each
/// of which sends a phase's bytes to the next. A job without hosts has two ranks: 0 computes and sends, 1 receives.
/// Throws InputError for a phase without bytes, whose end could not be detected, for a program above kMaxOperations,
/// and like rank_program() of a pattern.
RankProgram rank_program(const Job& job, std::uint32_t rank);

}  // namespace mltcp::workload
