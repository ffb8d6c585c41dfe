// Summarises an execution graph: the steps of one rank, computation, communication and their overlap in each step, a
// confidence in the period of the steps, and one step as the phases of a job.
//
// If the trace contains a start for every node of the rank, the recorded times are used. If not, the times are
// computed: each node starts as early as its dependencies allow. One computation runs at a time, and one communication
// runs at a time, at the rate of the link.
//
// If the trace marks steps, these are the iterations. If not, an iteration is the shortest sequence of communications
// (kind, bytes, group) that repeats; its length is the period. At least nine in ten of all pairs of communications that
// are one period apart must be equal. The sequence must contain two different communications, because without this rule
// any run of equal communications would be periodic. The confidence in the period is from 0 to 1:
//
//   marked      1 / (1 + v), or 0.5 for a single step; v: standard deviation / mean of the lengths of steps
//   repeated    m (1 - 1/k) / (1 + v); k: number of repetitions; m: share of equal pairs; v: as above, of repetitions
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
  std::uint32_t rank = 0;  ///< number of the rank in the graph; the rank must have nodes
  Rate link{100'000'000'000};
  double compute_scale = 1;   ///< factor by which the recorded times of computations are multiplied
  double bytes_scale = 1;     ///< factor by which the bytes sent are multiplied
  std::uint32_t workers = 0;  ///< number of workers in each collective; 0: size of the collective's group
  /// If true, a communication begins as soon as its dependencies allow, even while `link` is busy, so that the phases
  /// suit links of any rate. Ignored if recorded times are used.
  bool any_link = false;
};

struct GraphSummary {
  struct Step {
    std::string name;
    Nanos length;
    Nanos compute;      ///< time in which the rank computes
    Nanos communicate;  ///< time in which the rank communicates
    Nanos both;         ///< time in which the rank computes and communicates at once
    Bytes sent = 0;     ///< bytes that the rank sends, as defined in collective.h
    std::size_t communications = 0;
  };
  struct Sum {
    std::size_t count = 0;
    Bytes size = 0;  ///< sum of GraphNode::bytes, at most 2^62
    Bytes sent = 0;
  };
  enum class Period { marked, repeated, single };

  std::string format;
  std::vector<std::string> sources;
  std::size_t ranks = 0;
  std::uint32_t rank = 0;  ///< number of the summarised rank in the trace
  bool recorded = false;   ///< whether times are the recorded times of the trace
  bool computes = false;   ///< whether the trace contains computations that take time
  Period period = Period::single;
  double confidence = 0;
  std::vector<Step> steps;                    ///< at least one step
  std::size_t typical = 0;                    ///< index in `steps` of the step of median length, the typical step
  std::map<std::string, Sum> communications;  ///< communications of the typical step, by kind
  std::vector<Phase> phases;                  ///< the typical step as phases
  std::vector<std::string> warnings;
};

/// Returns a description for people, e.g. "marked by the trace".
std::string_view name(GraphSummary::Period period);
/// Returns the name in files: "marked", "repeated" or "single".
std::string_view key_of(GraphSummary::Period period);

/// Summarises a rank of `graph`. Throws InputError if the rank has no nodes.
GraphSummary summarise(const ExecutionGraph& graph, const PhaseOptions& options = {});

/// Returns whether the trace has 12 columns. Such a trace does not state which collectives cross the network, nor among
/// how many workers.
bool is_training_loop(const GraphSummary& summary);

/// Returns a job with the phases of the typical step. Throws InputError if the step sends nothing.
Job to_job(const GraphSummary& summary, const std::string& job_name);

/// Returns the summary as text for a terminal. It includes the iteration time and the duty cycle that the job has in
/// isolation on a link of rate `link`, and the times within an iteration at which the link is busy.
std::string describe(const GraphSummary& summary, Rate link);

}  // namespace mltcp::workload
