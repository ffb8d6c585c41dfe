// The claims about iterations in the packets of jobs, summed so that a third party can check them: a switch, a
// receiver, or a reader of captures.
//
// MLTCP's gain F(bytes_ratio) rises with the progress that the sender itself computes from the bytes_per_iteration that
// its program has stated. Every packet with data of a job carries that progress (wire::JobTag). If the size of an
// iteration is stated truly, progress rises linearly over its bytes from 0 to 1, and so
//   - its mean over bytes is 1/2, less the share of the iteration that is in flight: progress counts delivered bytes;
//   - progress is full (65535) in no packet, because the last packets are sent before the last acknowledgement.
// If only a share s of the bytes is stated, progress is full in a share 1 - s of them, and the mean is 1 - s/2.
//
// Both sums are over bytes, packet by packet, so order, losses, retransmissions and the number of connections or
// workers do not matter: each packet carries the progress of its own sender at the time when it was sent. A part of an
// iteration that is not seen here does matter: if its first half takes another path, the mean here is 3/4 although the
// claims are true; bytes at full progress remain 0.
//
// This detects programs that state too few bytes to a transport that computes progress like this one. A modified
// transport can claim any progress and send at any rate.
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

/// Whether the claims of a job fit the bytes that it sends.
enum class ClaimVerdict : std::uint8_t {
  too_few,      ///< fewer than JobClaim::kMinIterations: no verdict
  unstated,     ///< no packet claims any progress: the job states no sizes, or sends each iteration at once
  consistent,   ///< the claims fit the bytes
  understated,  ///< states fewer bytes than it sends: more than kMaxAtEnd of them at full progress
  ahead,        ///< mean progress above kMaxMeanProgress: false claims, or parts of its iterations are not seen here
};
/// "too few iterations", "unstated", "consistent", "understated", "ahead".
std::string_view to_text(ClaimVerdict verdict);

/// The sums of one job. Bytes are counted after the packet header, and include frame headers and retransmissions.
struct JobClaim {
  /// A job that is first seen in the middle of an iteration has a mean above 1/2 for that one; after this many
  /// iterations the mean is below 0.52.
  static constexpr std::uint64_t kMinIterations = 8;
  static constexpr double kMaxAtEnd = 0.2;         ///< see docs/reference/checks.md for the values of honest jobs
  static constexpr double kMaxMeanProgress = 0.6;  ///< the mean of a job that states 0.8 of its bytes

  std::uint32_t job = 0;
  /// Iterations begun, at least 1. Workers whose counts are at most 16 iterations apart count once; others are counted
  /// separately.
  std::uint64_t iterations = 0;
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Bytes bytes_at_end = 0;     ///< bytes of packets whose progress is full (65535)
  double progress_bytes = 0;  ///< sum of progress, in [0, 1], times bytes

  [[nodiscard]] double bytes_per_iteration() const {
    return iterations == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(iterations);
  }
  /// In [0, 1].
  [[nodiscard]] double share_at_end() const { return share(static_cast<double>(bytes_at_end)); }
  /// Mean of progress over bytes, in [0, 1].
  [[nodiscard]] double mean_progress() const { return share(progress_bytes); }
  [[nodiscard]] ClaimVerdict verdict() const;
  /// `understated` or `ahead`.
  [[nodiscard]] bool is_overstated() const {
    const ClaimVerdict found = verdict();
    return found == ClaimVerdict::understated || found == ClaimVerdict::ahead;
  }
  /// Adds the sums of the same job over other packets, for example of another shard.
  JobClaim& operator+=(const JobClaim& other);

 private:
  [[nodiscard]] double share(double part) const { return bytes == 0 ? 0 : part / static_cast<double>(bytes); }
};

/// Adds up claims of the same job, and sorts by bytes, most first.
void add_up(std::vector<JobClaim>& claims);
/// The job's number, or "others" (JobClaims::kOtherJobs).
std::string name_of(const JobClaim& claim);

class JobClaims {
 public:
  /// Maximum number of jobs counted separately. Job numbers come from packets and may be invented.
  static constexpr std::size_t kMaxJobs = 4096;
  /// Job number under which all further jobs are counted.
  static constexpr std::uint32_t kOtherJobs = 0xFFFFFFFF;

  /// Adds a packet with data of a job: its tag, and its bytes after the header. Packets may come in any order.
  /// Allocates only for a new job, which is counted among the others if there is no memory.
  ///
  /// Beyond kMaxJobs a new job replaces the smallest, whose sums are added to the others (space-saving: Metwally,
  /// Agrawal, El Abbadi, ICDT 2005). The smallest job has the fewest bytes, including the bytes of the jobs that it has
  /// replaced. A job that has sent more than 1/kMaxJobs of all bytes is never replaced.
  void add(const wire::JobTag& tag, Bytes bytes) noexcept {
    recent_.get(tag.job, [&]() -> CountedJob& { return find(tag.job); }).add(tag, bytes);
  }

  /// All jobs, those with the most bytes first.
  [[nodiscard]] std::vector<JobClaim> report() const;
  /// Appends the jobs in the order of their numbers, up to the capacity of `out`; does not allocate.
  void append_to(std::vector<JobClaim>& out) const noexcept;

 private:
  struct CountedJob {
    /// Workers of a job count their iterations separately, and may have restarted: number of counts that are followed.
    static constexpr std::size_t kMaxCounts = 4;
    /// Iterations between workers that follow one count, or between a packet and one that has overtaken it.
    static constexpr int kMaxApart = 16;

    JobClaim sums;
    Bytes before = 0;                                ///< bytes of the jobs that it has replaced
    std::array<std::uint16_t, kMaxCounts> latest{};  ///< iteration of each count
    std::uint8_t counts = 0;
    std::uint8_t next = 0;  ///< the count that a new one replaces

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
  /// A job, and a weight that it had at some time: weights only grow.
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
  std::vector<Place> places_;  ///< min-heap, used once all places are taken
  Recent<CountedJob> recent_;
};

}  // namespace mltcp
