// What a trace holds, summed up for a reader; a job written as text; and how a job runs when it is alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/workload/job.h"
#include "mltcp/workload/schedule.h"
#include "mltcp/workload/trace.h"

namespace mltcp::workload {

/// An iteration of a job that has a link for itself, where bytes take bytes / rate and nothing else takes time: a
/// lower bound of every real iteration.
struct IdealIteration {
  Nanos length;
  Nanos sending;  ///< of it: how long the link is busy

  /// Part of the iteration in which the link is busy, 0 to 1.
  [[nodiscard]] double duty_cycle() const {
    return length.count > 0 ? static_cast<double>(sending.count) / static_cast<double>(length.count) : 0;
  }
};

/// `link` is not 0. The rates of job and phases bound it further.
IdealIteration ideal_iteration(const Job& job, Rate link);
IdealIteration ideal_iteration(const std::vector<Phase>& phases, Rate link);

/// A stretch of that iteration in which the link is busy at one rate: `from` inclusive, `to` exclusive, from the
/// beginning of the iteration on.
struct Transfer {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Transfer&) const = default;
};
/// When the link is busy in such an iteration, in order and disjoint: transfers that overlap with computation queue
/// behind each other. Neighbours of one rate are one stretch. A stretch is `bytes / rate` long, rounded up to a
/// nanosecond. Same `link` and bounds as above.
std::vector<Transfer> ideal_transfers(const Job& job, Rate link);
std::vector<Transfer> ideal_transfers(const std::vector<Phase>& phases, Rate link);

struct CollectiveSum {
  std::size_t count = 0;
  Bytes size = 0;  ///< sum of the sizes in the trace; the largest number when it does not fit
  Bytes sent = 0;  ///< what one worker sends for them over the shared link, scaled
};

struct Inspection {
  std::string file;
  Parallelism parallelism = Parallelism::unspecified;
  std::size_t layers = 0;
  Nanos compute;   ///< per iteration, scaled
  Bytes sent = 0;  ///< per iteration by one worker over the shared link, scaled
  std::array<CollectiveSum, kPasses> passes;
  std::map<Collective, CollectiveSum> collectives;  ///< without Collective::none
  std::vector<Phase> phases;                        ///< of one iteration
  std::vector<std::size_t> largest;                 ///< indices into phases: those that send most, the largest first
  std::vector<std::string> warnings;
};

/// Sums up `trace` under `options`; `largest` bounds Inspection::largest. Recomputed forward passes count in compute,
/// sent and phases but not again in passes and collectives. Throws InputError as to_phases() does.
Inspection inspect(const Trace& trace, const MappingOptions& options = {}, std::size_t largest = 5);

/// The inspection as lines of text for a terminal, with iteration time and duty cycle alone on a link of rate `link`.
std::string describe(const Inspection& inspection, Rate link);

/// For people: three decimals at most of the largest unit that fits, which need not read back exactly.
std::string rounded(Bytes bytes);

/// The job, which has no pattern, as a [[job]] block of an experiment file that reads back as the same job but for its
/// hosts; labels become comments.
std::string to_toml(const Job& job);

}  // namespace mltcp::workload
