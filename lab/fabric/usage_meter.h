// Counts the use of a link over time: bytes per job in time bins of equal width. If a run exceeds the maximum number of
// bins, the bin width doubles and neighbouring bins are merged. So memory is limited, and the bins cover the whole run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "mltcp/base/recent.h"
#include "mltcp/base/units.h"

namespace mltcp::fabric {

class UsageMeter {
 public:
  /// Maximum number of jobs that are counted separately. Job numbers come from packets, and corrupted packets may
  /// contain arbitrary numbers.
  static constexpr std::size_t kMaxJobs = 4096;
  /// Job number under which the bytes of all jobs after the first kMaxJobs are counted.
  static constexpr std::uint32_t kOtherJobs = 0xFFFFFFFF;

  /// `bin` must be above 0; `max_bins` must be even and above 0. Throws InputError if they are not.
  explicit UsageMeter(Nanos bin = Nanos(1'000'000), std::size_t max_bins = 16384);

  /// Counts `bytes` of job `job` that left the queue at `now`, which is 0 or later. Calls need not be in order of time.
  /// Allocates memory when a job is new and, increasingly rarely, when the job's series grows.
  void add(std::uint32_t job, Bytes bytes, Nanos now);

  /// Returns the current bin width: the initial width times a power of two.
  [[nodiscard]] Nanos bin() const { return bin_; }
  /// Returns the bytes per bin from time 0 on, by job. Each vector ends at the last bin in which the job had traffic.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Bytes>>& jobs() const { return jobs_; }

 private:
  void move_to_bin_of(Nanos now);
  std::vector<Bytes>& series_of(std::uint32_t job);

  Nanos bin_;
  std::size_t max_bins_;
  // Number and start of the bin of the last add(). Most calls of add() are for the same bin as the last call, so they
  // need no division.
  Nanos present_start_;
  std::size_t present_ = 0;
  std::map<std::uint32_t, std::vector<Bytes>> jobs_;
  Recent<std::vector<Bytes>> recent_;
};

}  // namespace mltcp::fabric
