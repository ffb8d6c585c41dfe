// Sums of the claims of jobs (see job_claims.h).
#include "mltcp/transport/job_claims.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

namespace mltcp {

std::string_view to_text(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::too_few:
      return "too few iterations";
    case ClaimVerdict::unstated:
      return "unstated";
    case ClaimVerdict::consistent:
      return "consistent";
    case ClaimVerdict::understated:
      return "understated";
    case ClaimVerdict::ahead:
      return "ahead";
  }
  return "?";
}

ClaimVerdict JobClaim::verdict() const {
  if (job == JobClaims::kOtherJobs) return ClaimVerdict::too_few;  // each of these jobs may have too few iterations
  if (progress_bytes == 0) return ClaimVerdict::unstated;
  if (iterations < kMinIterations) return ClaimVerdict::too_few;
  if (share_at_end() > kMaxAtEnd) return ClaimVerdict::understated;
  return mean_progress() > kMaxMeanProgress ? ClaimVerdict::ahead : ClaimVerdict::consistent;
}

JobClaim& JobClaim::operator+=(const JobClaim& other) {
  // All shards of a job run the same iterations, so their counts are not added.
  iterations = std::max(iterations, other.iterations);
  packets += other.packets;
  bytes += other.bytes;
  bytes_at_end += other.bytes_at_end;
  progress_bytes += other.progress_bytes;
  return *this;
}

std::string name_of(const JobClaim& claim) {
  return claim.job == JobClaims::kOtherJobs ? "others" : std::to_string(claim.job);
}

void add_up(std::vector<JobClaim>& claims) {
  std::sort(claims.begin(), claims.end(), [](const JobClaim& a, const JobClaim& b) { return a.job < b.job; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (kept > 0 && claims[kept - 1].job == claims[i].job)
      claims[kept - 1] += claims[i];
    else
      claims[kept++] = claims[i];
  }
  claims.resize(kept);
  std::stable_sort(claims.begin(), claims.end(),
                   [](const JobClaim& a, const JobClaim& b) { return a.bytes > b.bytes; });
}

void JobClaims::append_to(std::vector<JobClaim>& out) const noexcept {
  const auto append = [&](std::uint32_t number, const CountedJob& job) {
    if (out.size() == out.capacity()) return;
    out.push_back(job.sums);
    out.back().job = number;
  };
  for (const auto& [number, job] : jobs_) append(number, job);
  if (others_.sums.packets > 0) append(kOtherJobs, others_);
}

std::vector<JobClaim> JobClaims::report() const {
  std::vector<JobClaim> all;
  all.reserve(jobs_.size() + 1);
  append_to(all);
  add_up(all);
  return all;
}

// Iteration numbers are modulo 2^16. They are compared with serial number arithmetic (RFC 1982).
void JobClaims::CountedJob::see(std::uint16_t iteration) {
  for (std::uint8_t i = 0; i < counts; ++i) {
    const int ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(iteration - latest[i]));
    if (std::abs(ahead) > kMaxApart) continue;
    if (ahead > 0) {
      latest[i] = iteration;
      ++sums.iterations;
    }
    return;
  }
  latest[next] = iteration;
  counts = std::max<std::uint8_t>(counts, next + 1);
  next = (next + 1) % kMaxCounts;
  ++sums.iterations;
}

// A packet makes the weight of at most one Place out of date. So the updates here take constant time per packet on
// average.
JobClaims::CountedJob& JobClaims::replace_least(std::uint32_t number) {
  if (places_.empty()) {
    places_.reserve(kMaxJobs);
    for (const auto& [job, sums] : jobs_) places_.push_back({sums.weight(), job});
    std::ranges::make_heap(places_, std::greater());
  }
  auto min = jobs_.end();
  for (;;) {
    std::ranges::pop_heap(places_, std::greater());
    Place& place = places_.back();
    min = jobs_.find(place.job);
    if (place.weight == min->second.weight()) break;
    place.weight = min->second.weight();
    std::ranges::push_heap(places_, std::greater());
  }
  auto node = jobs_.extract(min);
  CountedJob& job = node.mapped();
  others_.sums += job.sums;
  const Bytes before = job.weight();
  job = CountedJob();
  job.before = before;
  node.key() = number;
  jobs_.insert(std::move(node));
  places_.back() = {before, number};
  std::ranges::push_heap(places_, std::greater());
  recent_ = Recent<CountedJob>();  // recent_ may point to the replaced job
  return job;
}

JobClaims::CountedJob& JobClaims::find(std::uint32_t number) noexcept {
  const auto found = jobs_.find(number);
  if (found != jobs_.end()) return found->second;
  if (number == kOtherJobs) return others_;
  try {
    return jobs_.size() < kMaxJobs ? jobs_[number] : replace_least(number);
  } catch (const std::bad_alloc&) {
    return others_;
  }
}

}  // namespace mltcp
