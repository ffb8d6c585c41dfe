// What each rank of a job does in an iteration when all that is known of the job are its phases: a program as of a
// pattern (rank_program.h), for datapaths whose ranks live on separate hosts.
//
// A job with hosts is a ring of its workers, each of which sends a phase's bytes to the next one; a phase is over for a
// worker when its own bytes have been delivered and those of the one before have arrived. A job without hosts has two
// ranks, of which 0 computes and sends and 1 receives.
#pragma once

#include "mltcp/workload/job.h"
#include "mltcp/workload/rank_program.h"

namespace mltcp::workload {

/// Ranks of a job, with a pattern or without.
std::uint32_t ranks_of(const Job& job);

/// That of the job's pattern, or of its phases. Throws as rank_program() of a pattern does.
RankProgram rank_program(const Job& job, std::uint32_t rank);

}  // namespace mltcp::workload
