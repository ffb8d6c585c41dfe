// The work of a job's ranks as a graph: computations, collectives, sends and receives, each with the nodes that it
// depends on. Readers of recorded traces (lab/workload/traces/) create the graph. So replay, summary and drawing of a
// trace do not depend on its format.
//
// The model is that of execution traces (Sridharan et al., Chakra, 2023, arXiv 2305.14516): nodes of a rank, with
// dependencies among them. Only collectives and messages connect ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// Value of ExecutionGraph::format for traces in 12 columns. These traces are not recordings; they describe a training
/// loop.
inline constexpr std::string_view kTwelveColumns = "ASTRA-sim text";

struct GraphNode {
  enum class Kind : std::uint8_t {
    compute,     ///< runs for `length`; computations of a rank run one at a time
    collective,  ///< runs together with the other ranks of `group`
    send,        ///< sends `bytes` to `peer`
    receive,     ///< receives `bytes` from `peer`
  };
  Kind kind = Kind::compute;
  /// Kind of collective, if `kind` is collective; a collective of 0 bytes is a barrier.
  Collective collective = Collective::none;
  std::uint32_t name = 0;  ///< index in ExecutionGraph::names
  /// Index in ExecutionGraph::lanes: the stream or thread on which the node was recorded.
  std::uint32_t lane = 0;
  std::uint32_t step = 0;   ///< index in ExecutionGraph::steps; never decreases within a rank
  std::uint32_t group = 0;  ///< for a collective: index in ExecutionGraph::groups
  /// For a send or receive: the rank at its other end; for a broadcast: the root, a rank of the group.
  std::uint32_t peer = 0;
  std::uint32_t first_wait = 0;  ///< index of the node's first wait in RankGraph::waits
  std::uint32_t waits = 0;
  /// For a send or receive: size of the message, above 0. For a collective: S of collective.h. For an all-gather, this
  /// is the total size that each rank holds at the end.
  Bytes bytes = 0;
  /// For a send or receive: the n-th receive with a tag from a peer matches the peer's n-th send with this tag.
  std::uint64_t tag = 0;
  Nanos start;  ///< recorded start, relative to the graph's beginning; never() if unknown
  /// Recorded duration; for a communication, it includes the wait for other ranks; 0 if unknown.
  Nanos length;
};

/// A node depends only on nodes before it in the list. All ranks of a group run its collectives in the same order.
struct RankGraph {
  std::vector<GraphNode> nodes;
  /// For each node in turn, the indices of the nodes for which it waits, in one array.
  std::vector<std::uint32_t> waits;
};

struct ExecutionGraph {
  /// An iteration of training, as marked in the trace. If the trace marks no iterations, the whole trace is one step.
  struct Step {
    std::string name;  ///< name in the trace, e.g. "ProfilerStep#10"; may be empty
    Nanos start;       ///< earliest start on any rank, relative to the graph's beginning; never() if unknown
    Nanos length;      ///< time from `start` to the latest end on any rank; 0 if unknown
  };

  std::string format;                              ///< name of the format for people, e.g. "Kineto"
  std::vector<std::string> sources;                ///< names of the trace files, as the user gave them
  std::vector<RankGraph> ranks;                    ///< one graph for each rank
  std::vector<Step> steps;                         ///< steps in order; at least one
  std::vector<std::vector<std::uint32_t>> groups;  ///< by group: its ranks, ascending; no two groups are equal
  std::vector<std::string> names;                  ///< names of nodes
  std::vector<std::string> lanes;
  /// For each rank of the graph, its number in the trace. Empty if all ranks have the same numbers in the graph and in
  /// the trace. The numbers differ if the graph contains only some ranks of a larger job.
  std::vector<std::uint32_t> recorded_ranks;
  /// Which parts of the trace were left out, guessed or simplified. Each warning is one line that begins with the name
  /// of the file.
  std::vector<std::string> warnings;
};

inline constexpr std::size_t kMaxGraphNodes = 16'000'000;  ///< maximum number of nodes of all ranks together

/// Throws InputError "SOURCE: cause; cure" if the graph is not as described above. Indices must be in range. Nodes must
/// depend only on nodes before them. The group of a collective must contain the collective's rank. All ranks of a group
/// must run the same collectives (kind, bytes, step) in the same order. Between two ranks, sends and receives of each
/// tag must match.
void check(const ExecutionGraph& graph);

}  // namespace mltcp::workload
