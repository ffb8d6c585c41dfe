// The program (rank_program.h) of a job that is defined only by its phases.
//
// A communicating phase ends for all workers at once, when all bytes that the job's workers send in it have been
// delivered. A phase that overlaps delays only the end of the iteration. The iteration ends when all of its phases have
// ended. This holds on every datapath. Within one process, the workers of a job share one program, phase_program().
// Ranks on separate hosts have separate programs and must synchronise. A worker can observe two events: its own bytes
// have been delivered, and the bytes of the previous rank have arrived. So with three workers or more, messages of one
// byte implement a dissemination barrier (Hensgen, Finkel and Manber, International Journal of Parallel Programming 17,
// 1988). In round k, each rank notifies the rank 2^k further on. After log2 n rounds, each rank knows that all n ranks
// have reached the barrier.
#pragma once

#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

/// Returns the program of a single rank that represents all workers of the job. It contains the computations, and a
/// send for each communicating phase.
RankProgram phase_program(const Job& job);

/// Returns the number of ranks of a job, with or without a pattern.
std::uint32_t ranks_of(const Job& job);

/// Returns the program of a rank, made from the job's programs, its pattern or its phases. In a program made from
/// phases, the workers of a job with hosts form a ring: each worker sends the bytes of a phase to the next one. A job
/// without hosts has two ranks: rank 0 computes and sends, rank 1 receives. Throws InputError if a communicating phase
/// has no bytes, if the program exceeds kMaxOperations, or if rank_program() of the pattern throws. The end of a
/// communicating phase without bytes could not be detected.
RankProgram rank_program(const Job& job, std::uint32_t rank);

}  // namespace mltcp::workload
