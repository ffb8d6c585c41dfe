// What an execution graph says about its job: the steps of one rank, what it computes and sends in them, how much of
// both goes on at once, how sure the period is, and a step as the phases of a job.
//
// Times are those recorded, if the trace has a start for every node of the rank. Else nodes are laid out as early as
// their dependencies allow, computations one at a time, communications one at a time too, at the rate of the link.
//
// The period. Steps that the trace marks are iterations. A trace that marks none is searched for the shortest sequence
// of communications (kind, bytes, group) that repeats itself: of all pairs that are that far apart nine in ten have to
// be the same, and it has to have two different ones, or every sequence of equal ones would be a period. Confidence is
// from 0 to 1:
//
//   marked      1 / (1 + v), v being the standard deviation of the steps' lengths by their mean; half, if there is one
//   only repeated    m (1 - 1/k) / (1 + v) with k repetitions, a share m of pairs the same, v of the repetitions'
//   lengths single      0: the whole trace is taken as one iteration
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

struct PhaseOptions {
  std::uint32_t rank = 0;  ///< of the graph; must have nodes
  Rate link{100'000'000'000};
  double compute_scale = 1;   ///< factor on recorded times of computations
  double bytes_scale = 1;     ///< factor on bytes sent
  std::uint32_t workers = 0;  ///< of each collective; 0: those of its group
  /// Where nodes are laid out: whether phases are for links of any rate, so that what waits for `link` goes where it is
  /// ready, and not where `link` would be free.
  bool any_link = false;
};

struct GraphSummary {
  struct Step {
    std::string name;
    Nanos length;
    Nanos compute;      ///< in which the rank computes
    Nanos communicate;  ///< in which it communicates
    Nanos both;         ///< in which it does both
    Bytes sent = 0;     ///< by the rank, as in collective.h
    std::size_t communications = 0;
  };
  struct Sum {
    std::size_t count = 0;
    Bytes size = 0;  ///< as in GraphNode::bytes, saturated
    Bytes sent = 0;
  };
  enum class Period { marked, repeated, single };

  std::string format;
  std::vector<std::string> sources;
  std::size_t ranks = 0;
  std::uint32_t rank = 0;  ///< that was looked at, as recorded
  bool recorded = false;   ///< whether times are those of the trace
  bool computes = false;   ///< whether the trace has computations that take time
  Period period = Period::single;
  double confidence = 0;
  std::vector<Step> steps;                    ///< at least one
  std::size_t typical = 0;                    ///< index of the step of median length
  std::map<std::string, Sum> communications;  ///< of the typical step, by kind
  std::vector<Phase> phases;                  ///< of the typical step
  std::vector<std::string> warnings;
};

/// "marked by the trace" and so on.
std::string_view name(GraphSummary::Period period);
/// In files: "marked", "repeated" or "single".
std::string_view key_of(GraphSummary::Period period);

/// Throws InputError if the rank has no nodes.
GraphSummary summarise(const ExecutionGraph& graph, const PhaseOptions& options = {});

/// Whether it is of a trace in 12 columns, which leaves open what crosses the network, and among how many workers.
bool is_training_loop(const GraphSummary& summary);

/// A job of the typical step. Throws InputError if it sends nothing.
Job to_job(const GraphSummary& summary, const std::string& job_name);

/// The summary as text for a terminal, with iteration time and duty cycle alone on a link of rate `link`, and where on
/// the circle of an iteration the link is busy.
std::string describe(const GraphSummary& summary, Rate link);

}  // namespace mltcp::workload
