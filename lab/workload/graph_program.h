// Turns a recorded graph (execution_graph.h) into programs of its ranks (rank_program.h), which can run.
//
// Computations, sends and receives become operations of the same kind; a collective becomes the operations of its
// algorithm on each rank. Operations wait for whatever their node waits for. Computations of a rank run one at a time:
// if they overlapped in the recording (several streams), the later one counts from the end of the earlier. If a node
// began after everything it waited for had ended (the host was slow to launch it), a delay is put before it. The rest
// of the last step after its last node is a delay, too. Each rank was recorded by its own clock; clocks may differ by
// milliseconds and are aligned by the ends of collectives, which are nearly simultaneous.
//
// Operations of all ranks are written in one global order, in which each comes after those that it waits for. Among the
// possible ones the earliest goes first, as estimated from recorded computations and a nominal rate. So ranks cannot
// wait for each other in a circle, and messages between two ranks are not held up by later ones.
//
// A collective of 0 bytes is a barrier: messages of one byte, which do not count as the job's. Collectives of one group
// are serialised, as on one communicator.
//
// With islands of ranks (NVLink), a collective has three parts: within each island, at the islands' rate; over the
// network, among the ranks of the same place in each island, with their share of the bytes; and within islands again.
// Ranks of an island notify each other of their progress by messages of one byte over the network.
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
  Algorithm algorithm = Algorithm::ring;  ///< for collectives that have several
  /// Each rank sends all steps of a ring as one message; for thousands of ranks.
  bool whole = false;
  Bytes chunk = 0;                   ///< of pipelined algorithms; 0: see Pattern::chunk
  std::uint32_t islands = 1;         ///< number of ranks of an island; 1: none
  Rate island_rate;                  ///< of each rank within its island; 0: it takes no time
  double compute_scale = 1;          ///< of computations and delays, above 0
  double bytes_scale = 1;            ///< above 0; a message keeps at least 1 byte
  std::vector<std::uint32_t> ranks;  ///< ranks to replay, as recorded, ascending; empty: all
  /// First and last step, from 0; empty: all steps. See typical_step().
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;
  bool delays = true;         ///< keep delays that no dependency explains
  Rate rate{10'000'000'000};  ///< nominal, to order operations
};

inline constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

struct GraphPrograms {
  std::vector<RankProgram> ranks;
  std::vector<std::uint32_t> graph_rank;            ///< by program: its rank in the graph
  std::vector<std::vector<std::uint32_t>> node_of;  ///< by program and operation: index in RankGraph::nodes
  /// By program: how far its clock was ahead of the others' in the recording, according to the ends of collectives.
  std::vector<Nanos> clock_error;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
  std::vector<std::string> warnings;  ///< on parts left out or simplified; one line each, which begins with the file
};

/// The step of median length; if steps have no lengths, the middle one.
std::uint32_t typical_step(const ExecutionGraph& graph);

/// Throws InputError "FILE: cause; cure": for options out of range, ranks or steps that do not exist, ranks that wait
/// for each other in a circle, messages that are received more or less often than sent, collectives that differ among
/// their ranks, nothing to send, and for programs above kMaxOperations or kMaxOperationsInAll.
GraphPrograms graph_programs(const ExecutionGraph& graph, const GraphOptions& options = {});

/// A job that runs these programs; its phases summarise them. Copies of the job share the programs.
Job replayed_job(std::string name, const GraphPrograms& programs);

}  // namespace mltcp::workload
