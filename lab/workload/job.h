// The job model: a training job repeats an iteration of phases.
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
  Nanos compute;    ///< kind compute: duration
  Bytes bytes = 0;  ///< kind communicate: application bytes that one worker sends over all flows; above 0
  Rate rate;        ///< kind communicate: maximum sending rate; 0 = the job's rate
  /// kind communicate: the next phase starts at once, while the bytes are in transit (a weight-gradient collective that
  /// overlaps with the rest of the backward pass). An iteration ends when all its bytes have been delivered.
  bool overlap = false;
  std::string label;  ///< origin in a trace (layer and pass), for people; may be empty
};

struct Job {
  std::string name;
  std::vector<Phase> phases;  ///< in order; at least one sends
  std::uint32_t flows = 1;    ///< connections among which each phase's bytes are divided
  Nanos start;
  Nanos start_jitter;  ///< maximum random delay of the start; 0 = exactly at `start`
  Nanos jitter;        ///< standard deviation of the compute time of an iteration
  struct Straggler {
    double probability = 0;  ///< of an iteration, from 0 to 1
    double factor = 1;       ///< its compute time is multiplied by this; 1 or more
  } straggler;
  /// A pause of the host: in one iteration the first compute phase takes longer by `time`. Time 0: none.
  struct Pause {
    std::uint32_t iteration = 0;  ///< from 0 on
    Nanos time;
  } pause;
  /// From one iteration on, compute times are multiplied by `compute_scale`.
  struct Change {
    std::uint32_t iteration = 0;  ///< from 0 on
    double compute_scale = 1;     ///< above 0; 1 = no change
  } change;
  double weight = 1.0;           ///< for policy static: gain of the increase step
  Rate rate;                     ///< maximum sending rate (its NIC); 0 = the link's rate
  std::uint32_t iterations = 0;  ///< number to record; 0 = the experiment's
  std::string cc;                ///< congestion control; empty = the experiment's
  bool unaware = false;  ///< legacy traffic: policies do not apply, and it is ignored when interleaving is determined
  /// On a topology, host numbers of its workers, two or more without duplicates: each sends to the next, the last to
  /// the first. Empty: one sending worker, on hosts derived from the job's position in the file.
  std::vector<std::uint32_t> hosts;
  /// Communication pattern of its ranks, one on each of `hosts`. `phases` then only summarise it: maximum compute time,
  /// and maximum bytes sent or received, of any rank.
  std::optional<Pattern> pattern{};
  /// The recorded programs of its ranks, in place of a pattern (graph_program.h); `phases` summarise them likewise.
  std::shared_ptr<const Programs> programs{};
  /// Number of the latest recorded iterations of which drivers keep the begin and the end of each operation.
  std::uint32_t timeline = 0;
  std::uint32_t priority = 0;  ///< for policy priority: priority of its packets, 0 to 7, higher first

  /// Whether its ranks have programs of their own, in place of its phases.
  [[nodiscard]] bool ranked() const { return pattern || programs; }
  /// Whether compute times differ between iterations.
  [[nodiscard]] bool compute_varies() const {
    return jitter.count > 0 || straggler.probability > 0 || pause.time.count > 0 || change.compute_scale != 1;
  }
  [[nodiscard]] Nanos compute_per_iteration() const;
  /// Time from the start of an iteration to its first bytes, without jitter.
  [[nodiscard]] Nanos compute_before_sending() const;
  [[nodiscard]] Bytes bytes_per_iteration() const;
};

/// Whether two jobs behave identically when each runs alone on a link, except for their random parts.
bool alike(const Job& a, const Job& b);

}  // namespace mltcp::workload
