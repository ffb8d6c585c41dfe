// Describes jobs as text, and computes how a job runs on a link without other traffic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

/// An iteration of a job on a link without other traffic. Sending takes bytes / rate, and has no other cost. So
/// `length` is a lower bound for the length of a real iteration.
struct IdealIteration {
  Nanos length;
  Nanos sending;  ///< part of `length` in which the link is busy

  /// Returns the share of the iteration in which the link is busy, from 0 to 1.
  [[nodiscard]] double duty_cycle() const {
    return length.count > 0 ? static_cast<double>(sending.count) / static_cast<double>(length.count) : 0;
  }
};

/// Returns the ideal iteration. `link` must be above 0. The rate of the job and the rates of its phases limit
/// transfers, too, unless they are 0.
IdealIteration ideal_iteration(const Job& job, Rate link);
IdealIteration ideal_iteration(const std::vector<Phase>& phases, Rate link);

/// A part of an ideal iteration in which the link is busy at one rate. `from` is inclusive, `to` is exclusive; both are
/// relative to the start of the iteration.
struct Transfer {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Transfer&) const = default;
};
/// Returns when the link is busy in an ideal iteration, as disjoint transfers in ascending order. Transfers that
/// overlap with computation are queued one after the other. Adjacent transfers of equal rate are merged. Each transfer
/// takes `bytes / rate`, rounded up to a nanosecond. `link` and limits are as for ideal_iteration().
std::vector<Transfer> ideal_transfers(const Job& job, Rate link);
std::vector<Transfer> ideal_transfers(const std::vector<Phase>& phases, Rate link);

/// Returns a size for people, e.g. "1.500 MB". Uses the largest unit, from B to PB, in which the size is 1 or more. The
/// text is rounded to three decimals, or has no decimals if the unit is B.
std::string rounded(Bytes bytes);

/// Returns the job as a [[job]] block of an experiment file. The block defines the same job, except for its hosts.
/// Labels become comments. The job must have no pattern.
std::string to_toml(const Job& job);

}  // namespace mltcp::workload
