// The use of a link over time: bytes per job in time bins of equal width. When a run exceeds the maximum number of
// bins, the bin width doubles and neighbouring bins are merged. So memory is limited, and the whole run is covered.
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
  /// Maximum number of jobs counted separately. Job numbers come from packets and may be corrupted.
  static constexpr std::size_t kMaxJobs = 4096;
  /// Job number under which the bytes of all further jobs are counted.
  static constexpr std::uint32_t kOtherJobs = 0xFFFFFFFF;

  /// `bin` is above 0; `max_bins` is even and above 0. Throws InputError otherwise.
  explicit UsageMeter(Nanos bin = Nanos(1'000'000), std::size_t max_bins = 16384);

  /// Counts `bytes` of job `job` that left the queue at `now`, 0 or later; times may come in any order. Allocates only
  /// for a new job, and increasingly rarely as a job's series grows.
  void add(std::uint32_t job, Bytes bytes, Nanos now);

  /// Current bin width: the initial one times a power of two.
  [[nodiscard]] Nanos bin() const { return bin_; }
  /// Bytes per bin from time 0 on, by job; each vector ends at the job's last bin with traffic.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Bytes>>& jobs() const { return jobs_; }

 private:
  void move_to_bin_of(Nanos now);
  std::vector<Bytes>& series_of(std::uint32_t job);

  Nanos bin_;
  std::size_t max_bins_;
  // The last bin used: most calls are for the same one, which saves a division.
  Nanos present_start_;
  std::size_t present_ = 0;
  std::map<std::uint32_t, std::vector<Bytes>> jobs_;
  Recent<std::vector<Bytes>> recent_;
};

}  // namespace mltcp::fabric
