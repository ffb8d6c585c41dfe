// Turns a recorded graph (execution_graph.h) into one program for each of its ranks (rank_program.h).
//
// A computation, a send or a receive becomes an operation of its kind. A collective becomes the operations of its
// algorithm on each rank. An operation waits for the operations of all nodes that its node depends on. Computations of
// a rank run one at a time. If two computations overlapped in the recording (on several streams), the later computation
// counts only from the end of the earlier one. A node may have begun after all its dependencies had ended, e.g. because
// the host launched it late. In this case the program has a delay before the node, except before a receive. The time
// from a rank's last node to the end of the last step is a delay, too. Each rank was recorded by its own clock. These
// clocks may differ by milliseconds. This file aligns the clocks by the ends of collectives, which are nearly
// simultaneous on all ranks.
//
// The operations of all ranks are written in one global order, in which each operation follows those that it waits for.
// Among the operations that can be written next, the operation with the earliest estimated time is written first. The
// estimate uses recorded computations and a nominal rate. So ranks cannot wait for each other in a circle, and a
// message between two ranks does not wait for a message that comes later in this order.
//
// A collective of 0 bytes is a barrier: its messages of one byte do not count as the job's bytes. Collectives of one
// group are serialised, as on one communicator.
//
// With islands of ranks (NVLink), a collective has up to three parts. The first part runs within each island, at the
// rate of islands. The second part runs over the network, in groups that contain one rank of each island. Each of these
// groups transfers a share of the bytes. The third part runs within each island again. Ranks of an island notify each
// other of their progress by messages of one byte over the network.
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
  Algorithm algorithm = Algorithm::ring;  ///< algorithm of collectives that support several algorithms
  /// Whether each rank sends the bytes of all steps of a ring as one message, which suits jobs of thousands of ranks.
  bool whole = false;
  Bytes chunk = 0;                   ///< chunk size of pipelined algorithms in bytes; 0: see Pattern::chunk
  std::uint32_t islands = 1;         ///< number of ranks on each island; 1: no islands
  Rate island_rate;                  ///< rate of each rank within its island; 0: transfers within islands take no time
  double compute_scale = 1;          ///< factor on computations and delays; above 0
  double bytes_scale = 1;            ///< factor on sizes of messages; above 0; a message contains at least 1 byte
  std::vector<std::uint32_t> ranks;  ///< numbers (in the trace) of the ranks to replay, ascending; empty: all ranks
  /// First and last step to replay, counted from 0. Empty: all steps. See typical_step().
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;
  bool delays = true;         ///< whether to replay delays that no dependency explains
  Rate rate{10'000'000'000};  ///< nominal rate of transfers; used only to order operations
};

inline constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

struct GraphPrograms {
  std::vector<RankProgram> ranks;
  std::vector<std::uint32_t> graph_rank;            ///< by program: number of its rank in the graph
  std::vector<std::vector<std::uint32_t>> node_of;  ///< by program and operation: index in RankGraph::nodes, or kNoNode
  /// For each program: the time by which the clock of its rank was ahead of the clocks of the other ranks in the
  /// recording. The times are estimated from the ends of collectives.
  std::vector<Nanos> clock_error;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
  /// Warnings about parts that were left out or simplified. Each is one line that begins with the name of the file.
  std::vector<std::string> warnings;
};

/// Returns the number of the step of median length, or of the middle step if steps have no lengths.
std::uint32_t typical_step(const ExecutionGraph& graph);

/// Makes programs of all ranks to be replayed. Throws InputError "FILE: cause; cure" if an option is out of range, if a
/// rank or step does not exist, if ranks wait for each other in a circle, if sends and receives do not match, if ranks
/// disagree about a collective, if nothing is sent, or if programs exceed kMaxOperations or kMaxOperationsInAll.
GraphPrograms graph_programs(const ExecutionGraph& graph, const GraphOptions& options = {});

/// Returns a job that runs these programs. Its phases summarise the programs. Copies of the job share the programs.
Job replayed_job(std::string name, const GraphPrograms& programs);

}  // namespace mltcp::workload
