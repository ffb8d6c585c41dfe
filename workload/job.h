// The job model: a training job is an iteration of phases, repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/workload/rank_program.h"

namespace mltcp::workload {

/// One step of an iteration: the worker computes, or it sends.
struct Phase {
  enum class Kind { compute, communicate };
  Kind kind = Kind::compute;
  Nanos compute;    ///< kind compute: how long
  Bytes bytes = 0;  ///< kind communicate: application bytes that one worker sends, all flows together; above 0
  Rate rate;        ///< kind communicate: the most it is sent at; 0 = the job's rate
  /// kind communicate: the next phase starts at once while the bytes travel (a weight-gradient collective that
  /// overlaps with the rest of the backward pass). An iteration ends when all its bytes have been delivered.
  bool overlap = false;
  std::string label;  ///< where it comes from (layer and pass of a trace); may be empty
};

struct Job {
  std::string name;
  std::vector<Phase> phases;  ///< in order; at least one sends
  std::uint32_t flows = 1;    ///< connections that share the bytes of each phase
  Nanos start;
  Nanos start_jitter;  ///< the job starts up to this much later, drawn from the seed; 0 = at `start`
  Nanos jitter;        ///< standard deviation of the compute time of an iteration
  struct Straggler {
    double probability = 0;  ///< that an iteration straggles, from 0 to 1
    double factor = 1;       ///< it then computes so many times as long; 1 or more
  } straggler;
  /// The host stands still in one iteration: its first compute phase takes that much longer. Time 0: never.
  struct Pause {
    std::uint32_t iteration = 0;  ///< from 0 on
    Nanos time;
  } pause;
  /// From one iteration on, compute takes so many times as long.
  struct Change {
    std::uint32_t iteration = 0;  ///< from 0 on
    double compute_scale = 1;     ///< above 0; 1 = no change
  } change;
  double weight = 1.0;           ///< for policy static: gain of the increase step
  Rate rate;                     ///< the most it sends (its NIC); 0 = the rate of the link
  std::uint32_t iterations = 0;  ///< to record; 0 = as many as the experiment says
  std::string cc;                ///< its congestion control; empty = the experiment's
  bool unaware = false;          ///< legacy traffic: no policy applies, and nobody waits for it to interleave
  /// On a topology, numbers of the hosts of its workers: each sends to the next one in the list, the last to the first.
  /// Two or more, each once; empty: one worker that sends, on hosts that follow from the job's place in the file.
  std::vector<std::uint32_t> hosts;
  /// What its ranks, one on each of `hosts`, say to each other. `phases` are then its outline: the longest that a rank
  /// computes, and the most that one sends or receives.
  std::optional<Pattern> pattern{};
  std::uint32_t priority = 0;  ///< for policy priority: of its packets, 0 to 7, higher first

  /// Iterations differ in how long they compute.
  [[nodiscard]] bool compute_varies() const {
    return jitter.count > 0 || straggler.probability > 0 || pause.time.count > 0 || change.compute_scale != 1;
  }
  [[nodiscard]] Nanos compute_per_iteration() const;
  /// From the begin of an iteration to its first bytes, without jitter.
  [[nodiscard]] Nanos compute_before_sending() const;
  [[nodiscard]] Bytes bytes_per_iteration() const;
};

/// Whether two jobs do the same when each runs alone on one link, but for what is random about them.
bool alike(const Job& a, const Job& b);

}  // namespace mltcp::workload
