// Who used a link when: bytes per job in time bins of equal width. When a run outgrows the bound on bins, the
// bin width doubles and neighbours are merged, so that memory stays bounded and the whole run stays covered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::fabric {

class UsageMeter {
 public:
  /// Most jobs that are told apart. Job numbers come from packets, where damage can make any of them.
  static constexpr std::size_t max_jobs = 4096;
  /// Bytes of all jobs beyond max_jobs are counted under this one number.
  static constexpr std::uint32_t other_jobs = 0xFFFFFFFF;

  /// `bin` is above 0; `max_bins` is even and above 0. Throws InputError otherwise.
  explicit UsageMeter(Nanos bin = Nanos(1'000'000), std::size_t max_bins = 16384);

  /// `bytes` of job `job` left the queue at `now` (0 or later, not sorted). Allocates when a job is new and, ever
  /// more rarely, when a job's series grows.
  void add(std::uint32_t job, Bytes bytes, Nanos now);

  /// Width of a bin at present: the one given at first, times a power of two.
  [[nodiscard]] Nanos bin() const { return bin_; }
  /// Bytes of each bin from time 0 on, per job; vectors end at the job's last bin with traffic.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Bytes>>& jobs() const { return jobs_; }

 private:
  /// Series of jobs seen lately, by the low bits of the job number. The pointers are to nodes of the owner's map,
  /// which live as long as the map; a copied meter starts with none.
  struct Recent {
    struct Entry {
      std::uint32_t job = 0;
      std::vector<Bytes>* series = nullptr;
    };
    std::array<Entry, 16> entries{};

    Recent() = default;
    ~Recent() = default;
    Recent(const Recent& /*other*/) {}
    Recent& operator=(const Recent& /*other*/) {
      entries = {};
      return *this;
    }
  };

  void move_to_bin_of(Nanos now);
  std::vector<Bytes>& series_of(std::uint32_t job);

  Nanos bin_;
  std::size_t max_bins_;
  // The bin that was used last: traffic mostly stays in it, which saves the division.
  Nanos present_start_;
  std::size_t present_ = 0;
  std::map<std::uint32_t, std::vector<Bytes>> jobs_;
  Recent recent_;
};

}  // namespace mltcp::fabric
