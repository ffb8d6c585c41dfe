// From a recorded graph (execution_graph.h) to the programs of its ranks (rank_program.h), which are what runs.
//
// A computation becomes a computation, a send a send, a collective what its algorithm makes of it on each rank. What a
// node waits for, its operations wait for. Computations of a rank run one at a time: where they overlapped in the
// recording (several streams), the later one counts from the end of the earlier. What nobody recorded a reason for,
// a node that began later than all that it waited for had ended (the host was slow to launch it), is a delay before it;
// so is the rest of the last step behind its last node. Ranks are recorded by clocks of their own, which may differ by
// milliseconds; they are brought together by the ends of collectives, which are nearly simultaneous.
//
// Operations of all ranks are written in one global order in which each comes after those that it waits for; of what is
// possible, the earliest goes first, as estimated from recorded computations and a nominal rate. So no rank waits for
// another that waits for it, and what two ranks send each other isn't held up by what comes later.
//
// A collective of no bytes is a barrier: messages of one byte that aren't the job's. Collectives of one group follow
// each other, as on one communicator.
//
// On islands of ranks (NVLink), a collective has three parts: within each island, at the islands' rate; among the ranks
// of the same place in each island, over the network, with their share of the bytes; and within islands again. Ranks of
// an island tell each other by messages of one byte over the network that they have come so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

struct GraphOptions {
  Algorithm algorithm = Algorithm::ring;  ///< of collectives that have several
  /// A ring's steps become one message of each rank: for thousands of ranks.
  bool whole = false;
  Bytes chunk = 0;                   ///< of pipelined algorithms; 0: see Pattern::chunk
  std::uint32_t islands = 1;         ///< number of ranks of an island; 1: none
  Rate island_rate;                  ///< of each rank within its island; 0: it takes no time
  double compute_scale = 1;          ///< of computations and delays, above 0
  double bytes_scale = 1;            ///< above 0; what is sent remains at least a byte
  std::vector<std::uint32_t> ranks;  ///< those that are replayed, as recorded, ascending; empty: all
  /// First and last step, from 0; empty: all of them. See typical_step().
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;
  bool delays = true;         ///< keep what no reason was recorded for
  Rate rate{10'000'000'000};  ///< nominal, for the order
};

inline constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

struct GraphPrograms {
  std::vector<RankProgram> ranks;
  std::vector<std::uint32_t> graph_rank;            ///< by program: its rank in the graph
  std::vector<std::vector<std::uint32_t>> node_of;  ///< by program and operation: index in RankGraph::nodes
  /// By program: what its clock was ahead of the others' in the recording, as ends of their collectives tell.
  std::vector<Nanos> clock_error;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
  std::vector<std::string> warnings;  ///< what was left out or simplified, one line each, which begins with the file
};

/// The step of median length; of steps without lengths, the one in the middle.
std::uint32_t typical_step(const ExecutionGraph& graph);

/// Throws InputError "FILE: cause; cure": for options out of range, ranks or steps that there are none of, ranks that
/// wait for each other in a circle, messages that are received more or less often than sent, collectives that differ
/// among their ranks, nothing to send, and for programs above kMaxOperations or kMaxOperationsInAll.
GraphPrograms graph_programs(const ExecutionGraph& graph, const GraphOptions& options = {});

/// A job of these programs: its phases summarise them. Jobs share the programs.
Job replayed_job(std::string name, const GraphPrograms& programs);

}  // namespace mltcp::workload
