// Derives iterations from gaps in the byte stream (see iteration_learner.h).
#include "mltcp/cc/iteration_learner.h"

#include <cmath>

namespace mltcp::cc {
namespace {

constexpr std::uint64_t kRemembered = 48;  // a gap is forgotten after this many later gaps of at least its length
// Gaps that are less than 1/256 of the largest burst apart are merged. The recorded size of the largest burst decays by
// 1/16 per burst.
constexpr Bytes kBurstResolution = 256;
constexpr Bytes kLargestBurstFades = 16;
// Two gaps are alike if their lengths differ by at most this factor. Compute times vary, jobs change, and congestion
// shortens the gap between two gradient buckets more than the compute gap.
constexpr std::int64_t kAlike = 4;
// An iteration that fits into a few initial windows ends before congestion control has any effect.
constexpr Bytes kSmallestIteration = 16'384;
// The compute gap must be at least 1/64 of an iteration. In a shorter gap there is no time for another job to send.
constexpr std::int64_t kSmallestGapShare = 64;
// Evidence for a period is counted in bits. In a period with n large gaps, a gap recurs by chance within a fraction
// `error` of the period with probability 2 n error. The negative binary logarithm of this probability is the number of
// bits of a recurrence. kPrice is subtracted for each recurrence, because recurrences by chance give some bits as well,
// and many periods are tried.
constexpr double kFinest = 1.0 / 16'384;
constexpr double kPrice = 3;
constexpr double kEnoughBits = 20;
constexpr std::uint32_t kMaxStrikes = 3;
// Out of this many large gaps, one need not recur, for example a pause, or a gap that congestion has closed.
constexpr std::uint32_t kAllowedMisses = 4;
constexpr std::uint32_t kBeyondStragglers = 4;
// Number of searches without result after which a period with misses may replace a proven period.
constexpr std::uint32_t kLostForLong = 64;
constexpr std::uint32_t kPatience = 512;
constexpr std::uint32_t kMaxPeriods = 20;  // maximum number of periods examined
constexpr std::uint32_t kProof = 8;        // number of iterations after which a period counts as proven
// Length that is assumed for the unknown silence before the first burst. It exceeds the length of any other gap.
constexpr Nanos kBeforeAll(std::int64_t{1} << 60);

Bytes distance(Bytes a, Bytes b) { return a > b ? a - b : b - a; }

}  // namespace

bool IterationLearner::on_send(Nanos now) {
  const bool was_tracking = tracking_;
  const std::uint64_t was_iteration = iteration_;
  const Bytes was_begin = begin_;
  const Bytes was_size = size_;
  record(now);
  const Nanos usual = gap_;
  if (tracking_) follow();
  // A gap at a predicted boundary brings nothing new. But if it is much larger than usual, it may be the true compute
  // gap of a longer period.
  const Nanos length = newest().length;
  const bool predicted = tracking_ && begin_ == position_;
  if (!tracking_ || (predicted ? length.count / kAlike >= usual.count : length * 2 >= usual)) {
    if (!tracking_ && proven_ && fits_again()) {
      begin_iteration(position_, length);
      return true;
    }
    const std::optional<Period> found = search();
    const bool surprise =
        tracking_ && bytes_sent() > tolerance(size_) && !recurs(newest(), size_) && !recurs(newest(), size_ * 2);
    // Iterations with a straggler are whole iterations apart, so a few of them can look like a longer period.
    const bool longer = found && found->bytes > size_ + tolerance(size_) && found->flawless &&
                        found->gap.count / kAlike >= usual.count &&
                        (surprise || found->recurrences >= kBeyondStragglers);
    const bool trusted = found && (found->flawless || !proven_ || futile_ >= kLostForLong);
    if (trusted && (!tracking_ || found->bytes + tolerance(size_) < size_ || longer))
      adopt(*found);
    else if (surprise)
      fail();
  }
  return tracking_ != was_tracking || iteration_ != was_iteration || begin_ != was_begin || size_ != was_size;
}

const IterationLearner::Gap& IterationLearner::record(Nanos now) {
  Nanos length = kBeforeAll;
  Nanos above(-1);
  Bytes position = position_;
  if (count_ > 0) {
    length = std::max(now - last_delivered_, Nanos(0));
    Gap& last = gaps_[count_ - 1];
    const Bytes burst = position_ - last.position;
    if (burst < largest_burst_ / kBurstResolution || burst == 0) {
      above = last.length;
      length = std::min(length + last.length, kBeforeAll);
      position = last.position;
      --count_;
    } else {
      largest_burst_ = std::max(burst, largest_burst_ - largest_burst_ / kLargestBurstFades);
    }
  }
  std::size_t kept = 0;
  std::size_t min_needed = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Gap gap = gaps_[i];
    gap.larger += gap.length > above && gap.length <= length ? 1U : 0U;
    if (gap.larger >= kRemembered) continue;
    gaps_[kept] = gap;
    if (gap.larger > gaps_[min_needed].larger) min_needed = kept;
    ++kept;
  }
  if (kept == kCapacity) {
    std::copy(gaps_.begin() + static_cast<std::ptrdiff_t>(min_needed) + 1, gaps_.end(),
              gaps_.begin() + static_cast<std::ptrdiff_t>(min_needed));
    --kept;
  }
  gaps_[kept] = {position, length, now, 0};
  count_ = kept + 1;
  return gaps_[kept];
}

// Returns the gap nearest to `position` that is at least `at_least` long and at most `within` away; null if there is
// none.
const IterationLearner::Gap* IterationLearner::nearest(Bytes position, Bytes within, Nanos at_least) const {
  const auto end = gaps_.begin() + static_cast<std::ptrdiff_t>(count_);
  const Bytes from = position - std::min(within, position);
  const Gap* best = nullptr;
  for (auto gap = std::partition_point(gaps_.begin(), end, [&](const Gap& g) { return g.position < from; });
       gap != end && gap->position <= position + within; ++gap)
    if (gap->length >= at_least &&
        (best == nullptr || distance(gap->position, position) < distance(best->position, position)))
      best = &*gap;
  return best;
}

// Searches for a period. After many searches without result, searches only at randomly selected bursts, to save time.
// The selection is random so that no traffic pattern stays in step with the searches.
std::optional<IterationLearner::Period> IterationLearner::search() {
  const bool outstanding = tracking_ && newest().length.count / kAlike >= gap_.count;
  if (futile_ >= kPatience && !outstanding && position_ * 0x9E3779B97F4A7C15ULL >> 60 != 0) return std::nullopt;
  const std::optional<Period> found = find_period();
  futile_ = found && found->flawless ? 0 : std::min(futile_ + 1, kPatience);
  return found;
}

std::optional<IterationLearner::Period> IterationLearner::find_period() const {
  std::optional<Period> flawed;
  for (std::size_t i = count_ - 1; i-- > 0;) {
    if (gaps_[i].length.count < newest().length.count / kAlike) continue;
    const std::optional<Period> period = check_period(i);
    if (period && period->flawless) return period;
    if (period && !flawed) flawed = period;
  }
  return flawed;
}

// Returns the period that leads from gap `before` to the newest gap; empty if their distance is not a period.
std::optional<IterationLearner::Period> IterationLearner::check_period(std::size_t before) const {
  const Gap& last = newest();
  const Bytes bytes = last.position - gaps_[before].position;
  if (bytes < kSmallestIteration || (last.end - gaps_[before].end).count / kSmallestGapShare > last.length.count)
    return std::nullopt;
  const Nanos large = last.length / kAlike;
  Nanos weakest = std::min(last.length, gaps_[before].length);
  const std::int64_t boundary_gaps = (last.length / kAlike + gaps_[before].length / kAlike).count;
  Bytes boundary = gaps_[before].position;  // position of the oldest boundary found so far
  std::uint32_t boundaries = 0;
  std::uint32_t matches = 0;
  std::uint32_t misses = 0;
  std::size_t per_period = 1;
  double bits = 0;
  // Collects evidence, from the second newest gap backwards: large gaps that have a similar gap one period earlier.
  // Stops where the boundary gaps no longer recur.
  for (std::size_t i = count_ - 1; i-- > 0 && boundaries < kMaxPeriods;) {
    const Gap& gap = gaps_[i];
    if (gap.length < large) continue;
    if (i > before) ++per_period;
    if (gap.position < bytes) break;
    const bool is_boundary = gap.position == boundary;
    const Gap* const like = nearest(gap.position - bytes, tolerance(bytes), gap.length / kAlike);
    if (like == nullptr) {
      if (is_boundary || gap.larger + per_period >= kRemembered) break;
      if (++misses * kAllowedMisses > matches + kAllowedMisses) return std::nullopt;
      bits -= kPrice;
      continue;
    }
    ++matches;
    const double error = std::max(
        static_cast<double>(distance(like->position + bytes, gap.position)) / static_cast<double>(bytes), kFinest);
    bits -= std::log2(2 * error * static_cast<double>(per_period)) + kPrice;
    if (is_boundary) {
      boundary = like->position;
      weakest = std::min(weakest, like->length);
      ++boundaries;
    } else if (i > before && (gap.length / kAlike + like->length / kAlike).count / 3 * 2 > boundary_gaps) {
      return std::nullopt;  // this gap is longer than the boundary gaps, so it is a likelier boundary
    }
  }
  const double needed = kEnoughBits * static_cast<double>(1U << (strikes_ + (misses > 0 ? 1 : 0)));
  if (bits < needed || misses * kAllowedMisses > matches || boundaries < (misses > 0 ? kBeyondStragglers : 2))
    return std::nullopt;
  if (boundary == gaps_[0].position && gaps_[0].length == kBeforeAll)
    boundaries = kMaxPeriods;  // the boundaries recur in the whole history
  return Period{bytes, weakest, boundaries, misses == 0};
}

bool IterationLearner::recurs(const Gap& gap, Bytes period) const {
  return gap.position >= period &&
         nearest(gap.position - period, tolerance(period), std::min(gap.length, gap_) / kAlike) != nullptr;
}

// Returns whether the latest iteration has the size of the proven period and no new large gap.
bool IterationLearner::fits_again() const {
  const Gap& last = newest();
  if (last.length * kAlike < gap_ || last.position < size_) return false;
  const Gap* const before = nearest(last.position - size_, tolerance(size_), gap_ / kAlike);
  if (before == nullptr) return false;
  for (const Gap* gap = before + 1; gap < &last; ++gap)
    if (gap->length * 2 >= gap_ && !recurs(*gap, size_)) return false;
  return true;
}

// Compares the position of the burst that begins now with the predicted boundary.
void IterationLearner::follow() {
  if (bytes_sent() > max_bytes()) {
    fail();
    return;
  }
  if (bytes_sent() + tolerance(size_) >= size_ && newest().length * kAlike >= gap_)
    begin_iteration(position_, newest().length);
}

void IterationLearner::begin_iteration(Bytes position, Nanos gap) {
  if (tracking_) {
    // Compute times vary more than bytes per iteration, so a gap counts as at most twice the usual gap.
    const auto error = static_cast<std::int64_t>(position - begin_) - static_cast<std::int64_t>(size_);
    size_ = static_cast<Bytes>(static_cast<std::int64_t>(size_) + error / 4);
    gap_ += (std::min(gap, gap_ * 2) - gap_) / 4;
    if (++matched_ >= kProof) {
      proven_ = true;
      strikes_ = 0;
    }
  }
  tracking_ = true;
  begin_ = position;
  ++iteration_;
}

void IterationLearner::adopt(const Period& period) {
  matched_ = 0;
  proven_ = false;
  size_ = period.bytes;
  gap_ = std::min(newest().length, period.gap * 2);
  tracking_ = false;
  begin_iteration(position_, newest().length);
}

void IterationLearner::fail() {
  tracking_ = false;
  if (!proven_ && strikes_ < kMaxStrikes) ++strikes_;
  futile_ = 0;
  matched_ = 0;
}

}  // namespace mltcp::cc
