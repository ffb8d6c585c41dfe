// Sums the claims about iterations in the packets of jobs, so that a third party can check the claims: a switch, a
// receiver, or a reader of captures.
//
// MLTCP's gain F(bytes_ratio) rises with progress. The sender computes its progress from the bytes_per_iteration that
// its program has stated. Every packet with data of a job contains this progress (wire::JobTag). If the stated size of
// an iteration is true, progress rises linearly from 0 to 1 over the bytes of the iteration. Then
// - the mean of progress over bytes is 1/2, minus the share of the iteration that is in flight, because progress counts
//   delivered bytes;
// - no packet has full progress (65535), because the last packets are sent before the last acknowledgement arrives.
// If only a share s of the bytes is stated, progress is full in a share 1 - s of the bytes, and the mean is 1 - s/2.
//
// The mean and the share at full progress are computed over bytes, packet by packet. Each packet contains the progress
// of its own sender at the time when it was sent. So order, losses, retransmissions and the number of connections or
// workers do not matter. But packets that are not seen here do matter. If the first half of each iteration takes
// another path, the mean here is 3/4 although the claims are true. The number of bytes at full progress remains 0.
//
// This comparison detects programs that state too few bytes, if their transport computes progress in this way. A
// modified transport can claim any progress and send at any rate.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/recent.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

/// Result of comparing the claims of a job with the bytes that it sends.
enum class ClaimVerdict : std::uint8_t {
  too_few,      ///< fewer iterations than JobClaim::kMinIterations, so there is no verdict
  unstated,     ///< no packet claims any progress: the job states no sizes, or sends each iteration at once
  consistent,   ///< the claims fit the bytes
  understated,  ///< more than kMaxAtEnd of the bytes have full progress: the job states fewer bytes than it sends
  /// Mean progress above kMaxMeanProgress: the claims are false, or parts of the iterations are not seen here.
  ahead,
};
/// Returns "too few iterations", "unstated", "consistent", "understated" or "ahead".
std::string_view to_text(ClaimVerdict verdict);

/// The sums of one job. Bytes are counted after the packet header, and include frame headers and retransmissions.
struct JobClaim {
  /// A job that is first seen in the middle of an iteration has a mean above 1/2 for that iteration. After this many
  /// iterations the mean over all of them is below 0.52.
  static constexpr std::uint64_t kMinIterations = 8;
  /// Maximum share of bytes at full progress; see docs/reference/checks.md for the values of honest jobs.
  static constexpr double kMaxAtEnd = 0.2;
  /// Maximum mean progress. A job that states only 80% of its bytes has this mean.
  static constexpr double kMaxMeanProgress = 0.6;

  std::uint32_t job = 0;
  /// Number of iterations begun, at least 1. An iteration counts once for all workers whose iteration numbers differ by
  /// at most 16, and separately for workers that differ more.
  std::uint64_t iterations = 0;
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Bytes bytes_at_end = 0;     ///< bytes of packets whose progress is full (65535)
  double progress_bytes = 0;  ///< sum of progress, in [0, 1], times bytes

  [[nodiscard]] double bytes_per_iteration() const {
    return iterations == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(iterations);
  }
  /// Returns the share of bytes at full progress, in [0, 1].
  [[nodiscard]] double share_at_end() const { return share(static_cast<double>(bytes_at_end)); }
  /// Returns the mean of progress over bytes, in [0, 1].
  [[nodiscard]] double mean_progress() const { return share(progress_bytes); }
  [[nodiscard]] ClaimVerdict verdict() const;
  /// Returns whether the verdict is `understated` or `ahead`.
  [[nodiscard]] bool is_overstated() const {
    const ClaimVerdict found = verdict();
    return found == ClaimVerdict::understated || found == ClaimVerdict::ahead;
  }
  /// Adds the sums of this job over packets that were counted elsewhere, for example by another shard.
  JobClaim& operator+=(const JobClaim& other);

 private:
  [[nodiscard]] double share(double part) const { return bytes == 0 ? 0 : part / static_cast<double>(bytes); }
};

/// Merges the entries of `claims` that belong to the same job, and sorts the jobs by bytes in descending order.
void add_up(std::vector<JobClaim>& claims);
/// Returns the job's number, or "others" for JobClaims::kOtherJobs.
std::string name_of(const JobClaim& claim);

class JobClaims {
 public:
  /// Maximum number of jobs counted separately. Job numbers come from packets and may be invented.
  static constexpr std::size_t kMaxJobs = 4096;
  /// Job number for the sums of all jobs that are not counted separately.
  static constexpr std::uint32_t kOtherJobs = 0xFFFFFFFF;

  /// Adds a packet with data of a job: its tag, and its number of bytes after the header. Packets may be added in any
  /// order. Allocates memory only for a new job. If there is no memory, the job is counted under kOtherJobs.
  ///
  /// If kMaxJobs jobs are counted separately, a new job replaces the smallest job, whose sums are added to kOtherJobs
  /// (space-saving: Metwally, Agrawal, El Abbadi, ICDT 2005). The smallest job has the fewest bytes, including the
  /// bytes of the jobs that it has replaced. A job that has sent more than 1/kMaxJobs of all bytes is never replaced.
  void add(const wire::JobTag& tag, Bytes bytes) noexcept {
    recent_.get(tag.job, [&]() -> CountedJob& { return find(tag.job); }).add(tag, bytes);
  }

  /// Returns all jobs, those with the most bytes first.
  [[nodiscard]] std::vector<JobClaim> report() const;
  /// Appends the jobs in the order of their numbers, up to the capacity of `out`. Does not allocate memory.
  void append_to(std::vector<JobClaim>& out) const noexcept;

 private:
  struct CountedJob {
    /// Maximum number of iteration counts of a job that are followed. Workers of a job count their iterations
    /// separately, and may have restarted.
    static constexpr std::size_t kMaxCounts = 4;
    /// Maximum difference in iterations between workers that follow one count, or between a packet and another packet
    /// that has overtaken it.
    static constexpr int kMaxApart = 16;

    JobClaim sums;
    Bytes before = 0;                                ///< bytes of the jobs that this job has replaced
    std::array<std::uint16_t, kMaxCounts> latest{};  ///< latest iteration of each count
    std::uint8_t counts = 0;
    std::uint8_t next = 0;  ///< index of the count that a new count replaces

    void add(const wire::JobTag& tag, Bytes bytes) {
      if (counts == 0 || tag.iteration != latest[0]) see(tag.iteration);
      ++sums.packets;
      sums.bytes += bytes;
      if (tag.progress == kFull) sums.bytes_at_end += bytes;
      sums.progress_bytes += static_cast<double>(tag.progress) * static_cast<double>(bytes) * (1.0 / kFull);
    }
    void see(std::uint16_t iteration);
    [[nodiscard]] Bytes weight() const { return before + sums.bytes; }
  };
  /// A job, and its weight at some time. Weights only grow, so the weight is a lower bound.
  struct Place {
    Bytes weight;
    std::uint32_t job;
    auto operator<=>(const Place&) const = default;
  };
  static constexpr std::uint16_t kFull = std::numeric_limits<std::uint16_t>::max();

  CountedJob& find(std::uint32_t number) noexcept;
  CountedJob& replace_least(std::uint32_t number);

  std::map<std::uint32_t, CountedJob> jobs_;
  CountedJob others_;
  std::vector<Place> places_;  ///< min-heap of jobs by weight; empty until a job is first replaced
  Recent<CountedJob> recent_;
};

}  // namespace mltcp
