// Summarises an execution graph: the steps of one rank, its computation and communication in each step, how much of
// both overlaps, how certain the period is, and one step as the phases of a job.
//
// Times are those recorded, if the trace has a start for every node of the rank. Otherwise nodes are laid out as early
// as their dependencies allow: one computation at a time, and one communication at a time, at the rate of the link.
//
// The period. If the trace marks steps, they are the iterations. Otherwise the shortest sequence of communications
// (kind, bytes, group) that repeats is the period. At least nine in ten of all pairs of communications at that distance
// must be equal, and the sequence must contain two different ones, or any run of equal ones would be periodic.
// Confidence is from 0 to 1:
//
//   marked      1 / (1 + v), or 0.5 if there is only one step; v: standard deviation / mean of the steps' lengths
//   repeated    m (1 - 1/k) / (1 + v) for k repetitions and a share m of equal pairs; v: of the repetitions' lengths
//   single      0: the whole trace is taken as one iteration
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
  /// Only if nodes are laid out: the phases are for links of any rate, so a communication is placed when it is ready,
  /// not when `link` would be free.
  bool any_link = false;
};

struct GraphSummary {
  struct Step {
    std::string name;
    Nanos length;
    Nanos compute;      ///< time in which the rank computes
    Nanos communicate;  ///< time in which it communicates
    Nanos both;         ///< time in which it does both
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
  std::uint32_t rank = 0;  ///< the rank summarised, as numbered in the trace
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

/// Whether the trace has 12 columns. Such a trace does not say which collectives cross the network, or among how many
/// workers.
bool is_training_loop(const GraphSummary& summary);

/// A job of the typical step. Throws InputError if it sends nothing.
Job to_job(const GraphSummary& summary, const std::string& job_name);

/// The summary as text for a terminal, with iteration time and duty cycle alone on a link of rate `link`, and when in
/// an iteration the link is busy.
std::string describe(const GraphSummary& summary, Rate link);

}  // namespace mltcp::workload
