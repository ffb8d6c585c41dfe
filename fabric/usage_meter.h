// Who used a link when: bytes per job in time bins of equal width. When a run outgrows the bound on bins, the
// bin width doubles and neighbours are merged, so that memory stays bounded and the whole run stays covered.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::fabric {

class UsageMeter {
 public:
  /// `bin` is above 0; `max_bins` is even and above 0.
  explicit UsageMeter(Nanos bin = Nanos(1'000'000), std::size_t max_bins = 16384);

  /// `bytes` of job `job` left the queue at `now` (0 or later, not sorted).
  void add(std::uint32_t job, Bytes bytes, Nanos now);

  [[nodiscard]] Nanos bin() const { return bin_; }
  /// Bytes of each bin from time 0 on, per job; vectors end at the job's last bin with traffic.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Bytes>>& jobs() const { return jobs_; }

 private:
  Nanos bin_;
  std::size_t max_bins_;
  std::map<std::uint32_t, std::vector<Bytes>> jobs_;
};

}  // namespace mltcp::fabric
