// The work of a job's ranks as a graph: computations, collectives, sends and receives, each with the nodes that it
// depends on. Readers of recorded traces (lab/workload/traces/) make it; it is then replayed, summarised as phases and
// drawn in the same way for all formats.
//
// The model is that of execution traces (Sridharan et al., Chakra, 2023, arXiv 2305.14516): nodes of a rank with
// dependencies among them. Ranks are connected by collectives and messages only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// ExecutionGraph::format of traces in 12 columns, which describe a training loop and are not recordings.
inline constexpr std::string_view kTwelveColumns = "ASTRA-sim text";

struct GraphNode {
  enum class Kind : std::uint8_t {
    compute,     ///< takes `length`; computations of a rank run one at a time
    collective,  ///< with the other ranks of `group`
    send,        ///< `bytes` to `peer`
    receive,     ///< `bytes` from `peer`
  };
  Kind kind = Kind::compute;
  Collective collective = Collective::none;  ///< kind collective: not none; a barrier if of 0 bytes
  std::uint32_t name = 0;                    ///< index in ExecutionGraph::names
  std::uint32_t lane = 0;        ///< index in ExecutionGraph::lanes: the stream or thread that it was recorded on
  std::uint32_t step = 0;        ///< index in ExecutionGraph::steps; ascending in a rank
  std::uint32_t group = 0;       ///< collective: index in ExecutionGraph::groups
  std::uint32_t peer = 0;        ///< send, receive: the other rank. Broadcast: its root, a rank of the group
  std::uint32_t first_wait = 0;  ///< index in RankGraph::waits
  std::uint32_t waits = 0;
  /// Send and receive: size of the message, above 0. Collective: S of collective.h; for an all-gather, the total that
  /// each rank holds at its end.
  Bytes bytes = 0;
  std::uint64_t tag = 0;  ///< send, receive: a rank's n-th receive of a tag matches the n-th send of that tag to it
  Nanos start;            ///< as recorded, relative to the graph's beginning; never() if unknown
  Nanos length;           ///< as recorded; for a communication, including the wait for others; 0 if unknown
};

/// Nodes depend on earlier ones in the list only. Collectives of one group are in the same order in all of its ranks.
struct RankGraph {
  std::vector<GraphNode> nodes;
  std::vector<std::uint32_t> waits;  ///< indices of nodes depended on
};

struct ExecutionGraph {
  /// An iteration of training as the trace marks it. A trace that marks none is one step.
  struct Step {
    std::string name;  ///< "ProfilerStep#10"; may be empty
    Nanos start;       ///< the earliest of any rank, relative to the graph's beginning; never() if unknown
    Nanos length;      ///< to the latest end of any rank; 0 if unknown
  };

  std::string format;                              ///< "Kineto" and so on, for people
  std::vector<std::string> sources;                ///< the files, as they were named
  std::vector<RankGraph> ranks;                    ///< by rank
  std::vector<Step> steps;                         ///< in order; at least one
  std::vector<std::vector<std::uint32_t>> groups;  ///< ranks that run collectives together, ascending; no two are equal
  std::vector<std::string> names;                  ///< of nodes
  std::vector<std::string> lanes;
  /// The ranks' numbers in the trace, by rank, if they differ (a subset of a larger job).
  std::vector<std::uint32_t> recorded_ranks;
  /// Parts of the trace that were left out, guessed or simplified: one line each, which begins with the file.
  std::vector<std::string> warnings;
};

inline constexpr std::size_t kMaxGraphNodes = 16'000'000;  ///< of all ranks together; the limit of a replay

/// Throws InputError "SOURCE: cause; cure" unless the graph is as described above: indices in range, nodes that depend
/// on earlier ones, groups that list their node's rank, collectives that agree among their ranks in kind, bytes and
/// order, and as many receives as sends of each tag between two ranks.
void check(const ExecutionGraph& graph);

}  // namespace mltcp::workload
