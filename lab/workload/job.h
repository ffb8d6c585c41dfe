// The job model: a training job repeats an iteration, which consists of phases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

/// A step of an iteration: the worker computes or communicates.
struct Phase {
  enum class Kind { compute, communicate };
  Kind kind = Kind::compute;
  Nanos compute;    ///< for kind compute: duration
  Bytes bytes = 0;  ///< for kind communicate: application bytes that one worker sends over all flows; above 0
  Rate rate;        ///< for kind communicate: maximum sending rate; 0: the job's rate
  /// For kind communicate: whether the next phase starts at once, while the bytes are in transit. An example is the
  /// collective of weight gradients, which overlaps with the rest of the backward pass. An iteration ends when all its
  /// bytes have been delivered.
  bool overlap = false;
  std::string label;  ///< origin in a trace, e.g. layer and pass, for people; may be empty
};

struct Job {
  std::string name;
  std::vector<Phase> phases;  ///< phases in order; at least one phase sends
  std::uint32_t flows = 1;    ///< number of connections among which the bytes of each phase are divided
  Nanos start;
  Nanos start_jitter;  ///< maximum random delay of the start; 0: the job starts exactly at `start`
  Nanos jitter;        ///< standard deviation of the compute time of an iteration
  struct Straggler {
    double probability = 0;  ///< probability that an iteration straggles, from 0 to 1
    double factor = 1;       ///< factor on the compute time of a straggling iteration; 1 or more
  } straggler;
  /// A pause of the host: in one iteration, the first compute phase takes longer by `time`. No pause if `time` is 0.
  struct Pause {
    std::uint32_t iteration = 0;  ///< number of the iteration, from 0
    Nanos time;
  } pause;
  /// From iteration `iteration` on, compute times are multiplied by `compute_scale`.
  struct Change {
    std::uint32_t iteration = 0;  ///< number of the iteration, from 0
    double compute_scale = 1;     ///< factor on compute times, above 0; 1: no change
  } change;
  double weight = 1.0;           ///< for policy static: gain of the increase step
  Rate rate;                     ///< maximum sending rate (the NIC's rate); 0: the link's rate
  std::uint32_t iterations = 0;  ///< number of iterations to record; 0: the experiment's number
  bool stop = false;             ///< whether the job stops after `iterations`, in place of continuing unrecorded
  std::string cc;                ///< congestion control; empty: the experiment's congestion control
  bool unaware = false;          ///< legacy traffic: policies do not apply, and interleaving ignores the job
  /// On a topology: host numbers of the job's workers, two or more without duplicates. Each worker sends to the next
  /// one, and the last to the first. If empty, one worker sends, and the job's position in the file determines its
  /// hosts.
  std::vector<std::uint32_t> hosts;
  /// Communication pattern of the job's ranks, one rank on each of `hosts`. With a pattern, `phases` are a summary: the
  /// maximum compute time of any rank, and the maximum bytes that any rank sends or receives.
  std::optional<Pattern> pattern{};
  /// Recorded programs of the job's ranks (graph_program.h), in place of a pattern. With programs, `phases` are their
  /// summary.
  std::shared_ptr<const Programs> programs{};
  /// Number of iterations at the end of the recording for which drivers store the begin and end of each operation.
  std::uint32_t timeline = 0;
  std::uint32_t priority = 0;  ///< for policy priority: priority of the job's packets, 0 to 7; 7 is the highest

  /// Returns whether a pattern or programs define what the job's ranks do, in place of its phases.
  [[nodiscard]] bool ranked() const { return pattern || programs; }
  /// Returns whether compute times differ between iterations.
  [[nodiscard]] bool compute_varies() const {
    return jitter.count > 0 || straggler.probability > 0 || pause.time.count > 0 || change.compute_scale != 1;
  }
  [[nodiscard]] Nanos compute_per_iteration() const;
  /// Returns the time from the start of an iteration to its first bytes, without jitter.
  [[nodiscard]] Nanos compute_before_sending() const;
  [[nodiscard]] Bytes bytes_per_iteration() const;
};

/// Returns whether two jobs behave identically, apart from random variation, if each has a link without other traffic.
bool alike(const Job& a, const Job& b);

}  // namespace mltcp::workload
