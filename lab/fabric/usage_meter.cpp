// Counts bytes per job and time bin (see usage_meter.h).
#include "mltcp/lab/fabric/usage_meter.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"

namespace mltcp::fabric {

UsageMeter::UsageMeter(Nanos bin, std::size_t max_bins) : bin_(bin), max_bins_(max_bins) {
  if (bin <= Nanos(0))
    throw InputError(fmt::format("the bin of a usage meter is {} ns; give a bin above 0", bin.count));
  if (max_bins == 0 || max_bins % 2 != 0)
    throw InputError(fmt::format("max_bins of a usage meter is {}; give an even number above 0", max_bins));
}

void UsageMeter::add(std::uint32_t job, Bytes bytes, Nanos now) {
  if (now < present_start_ || now - present_start_ >= bin_) move_to_bin_of(now);
  std::vector<Bytes>& series = recent_.get(job, [&]() -> std::vector<Bytes>& { return series_of(job); });
  if (series.size() <= present_) series.resize(present_ + 1);
  series[present_] += bytes;
}

void UsageMeter::move_to_bin_of(Nanos now) {
  if (now < Nanos(0)) now = Nanos(0);
  // This does not overflow: because max_bins is at least 2, the width stays below 2^63 for all possible times.
  while (static_cast<std::uint64_t>(now.count / bin_.count) >= max_bins_) {
    bin_ = bin_ * 2;
    for (auto& [job, series] : jobs_) {
      const std::size_t merged = (series.size() + 1) / 2;
      for (std::size_t i = 0; i < merged; ++i)
        series[i] = series[2 * i] + (2 * i + 1 < series.size() ? series[2 * i + 1] : 0);
      series.resize(merged);
    }
  }
  present_ = static_cast<std::size_t>(now.count / bin_.count);
  present_start_ = Nanos(static_cast<std::int64_t>(present_) * bin_.count);
}

std::vector<Bytes>& UsageMeter::series_of(std::uint32_t job) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) return found->second;
  return jobs_[jobs_.size() < kMaxJobs ? job : kOtherJobs];
}

}  // namespace mltcp::fabric
