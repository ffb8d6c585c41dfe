// Jobs as text, and how a job runs in isolation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

/// An iteration of a job alone on a link, where bytes take bytes / rate and nothing else takes time: a lower bound of
/// real iterations.
struct IdealIteration {
  Nanos length;
  Nanos sending;  ///< part of `length` in which the link is busy

  /// Share of the iteration in which the link is busy, 0 to 1.
  [[nodiscard]] double duty_cycle() const {
    return length.count > 0 ? static_cast<double>(sending.count) / static_cast<double>(length.count) : 0;
  }
};

/// `link` must not be 0. Rates of the job and its phases are limits, too.
IdealIteration ideal_iteration(const Job& job, Rate link);
IdealIteration ideal_iteration(const std::vector<Phase>& phases, Rate link);

/// A part of that iteration in which the link is busy at one rate: `from` inclusive, `to` exclusive, relative to the
/// start of the iteration.
struct Transfer {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Transfer&) const = default;
};
/// When the link is busy in such an iteration, ascending and disjoint: transfers that overlap with computation are
/// queued one after the other. Adjacent transfers of equal rate are merged. Each takes `bytes / rate`, rounded up to a
/// nanosecond. `link` and limits as above.
std::vector<Transfer> ideal_transfers(const Job& job, Rate link);
std::vector<Transfer> ideal_transfers(const std::vector<Phase>& phases, Rate link);

/// For people: at most three decimals in the largest fitting unit; not exact.
std::string rounded(Bytes bytes);

/// The job, which must have no pattern, as a [[job]] block of an experiment file that gives the same job except for its
/// hosts; labels become comments.
std::string to_toml(const Job& job);

}  // namespace mltcp::workload
