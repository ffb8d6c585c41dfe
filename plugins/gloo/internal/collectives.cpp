#include "mltcp/plugins/gloo/internal/collectives.h"

#include <algorithm>

namespace gloo::transport::mltcp {
namespace {

// A slot, as gloo/types.h builds it, has 8 bits for the kind of collective, 32 bits for the number of the collective in
// its group, and the rest for the collective's own operations.
constexpr int kKindShift = 56;
constexpr int kNumberShift = 24;
constexpr std::uint64_t kSmall = 256;     ///< collectives below 1/256 of the largest recent one are ignored
constexpr std::uint32_t kLately = 128;    ///< number of latest symbols whose silences are compared
constexpr std::int64_t kSilences = 8;     ///< silences between iterations differ by at most this factor
constexpr std::uint64_t kSizeError = 32;  ///< sizes that differ by more than 1/32 count as different
/// The iterations count as unknown after this many iterations in a row that follow a too short silence.
constexpr std::uint32_t kShort = 3;
/// The beginning moves after this many iterations in a row with a longer silence at the same inner position.
constexpr std::uint32_t kRivals = 3;

/// Hash that spreads every bit over all bits: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

}  // namespace

bool CollectiveIterations::is_new(std::uint32_t group, std::uint64_t number) {
  const std::uint64_t id = mixed(number) ^ mixed(~std::uint64_t{group});
  if (std::find(open_.begin(), open_.end(), id) != open_.end()) return false;
  open_[next_open_++ % open_.size()] = id;
  return true;
}

CollectiveIterations::Advice CollectiveIterations::on_send(std::int64_t now, std::uint32_t group, std::uint64_t slot,
                                                           std::uint64_t buffer, std::uint64_t bytes) {
  Advice advice;
  const std::uint64_t kind = slot >> kKindShift;
  // The number is cut to 32 bits, so it wraps around.
  const auto number = static_cast<std::uint32_t>(slot >> kNumberShift);
  // Sends that are not part of a collective use the program's tag, which may be the same each time.
  const bool begins = kind == 0 || is_new(group, slot >> kNumberShift);
  const bool counts = begins && buffer > 0 && buffer >= largest_ / kSmall;
  if (counts) {
    largest_ = std::max(largest_ - largest_ / kSmall, buffer);
    const Seen seen{mixed(buffer) ^ mixed(kind << 32 | group), sent_, std::max<std::int64_t>(0, now - last_)};
    const bool was_sure = sure_;
    // If two neighbours begin in reverse order, the collective with the lower number is compared first.
    if (held_.there && held_.group == group && kind != 0 && held_.number - number < kLately) {
      commit(seen);
    } else {
      if (held_.there) commit(held_.seen);
      // A send outside collectives has no number. It is placed before the next collective.
      held_ = {seen, group, kind != 0 ? number : held_.number, true};
      if (!sure_ && period_ > 0) try_to_be_sure();
    }
    if (sure_) follow(seen, advice);
    if (was_sure && !sure_) advice.kind = Advice::Kind::learn;
  }
  sent_ += bytes;
  last_ = now;
  if (sure_ && in_iteration_ && !ended_ && sent_ - start_ >= size_) advice.ends = ended_ = true;
  return advice;
}

/// Handles the beginning of a collective while the iterations are known.
void CollectiveIterations::follow(const Seen& seen, Advice& advice) {
  if (!in_iteration_) {
    if (--left_ > 0) return;
  } else if (begun_ < period_) {
    if (seen.silence > longest_inside_) {
      longest_inside_ = seen.silence;
      longest_at_ = begun_;
    }
    ++begun_;
    return;
  } else {
    const std::uint64_t size = sent_ - start_;
    const std::uint64_t error = size_ / kSizeError;
    if (size > size_ + error || size + error < size_) {
      fail();
      return;
    }
    size_ = size;
    // Detects that the assumed beginning now looks like the inside of an iteration.
    short_count_ = seen.silence < separating_silence() / kSilences ? short_count_ + 1 : 0;
    if (short_count_ == kShort) {
      fail();
      return;
    }
    // The assumed beginning may be wrong, if bursts stalled when it was chosen.
    if (longest_inside_ <= seen.silence) {
      rival_count_ = 0;
    } else {
      rival_count_ = rival_ == longest_at_ ? rival_count_ + 1 : 1;
      rival_ = longest_at_;
    }
    if (rival_count_ == kRivals) {
      rival_count_ = 0;
      left_ = rival_;
      in_iteration_ = false;
      return;
    }
  }
  in_iteration_ = true;
  ended_ = false;
  begun_ = 1;
  longest_inside_ = 0;
  start_ = sent_;
  advice.kind = Advice::Kind::begin;
  advice.bytes = size_;
}

/// Appends a symbol to the sequence.
void CollectiveIterations::commit(const Seen& seen) {
  const std::uint64_t index = count_++;
  seen_[index % kMemory] = seen;
  if (period_ > 0) {
    if (at(index - period_).symbol == seen.symbol) {
      ++matched_;
    } else {
      fail();
    }
  }
  look_up();
}

/// Stores the position of the latest kGram symbols. If there is no period yet, the distance to their previous position
/// becomes the period.
void CollectiveIterations::look_up() {
  if (count_ < kGram) return;
  std::uint64_t hash = 0;
  for (std::size_t back = kGram; back > 0; --back) hash = mixed(hash ^ at(count_ - back).symbol);
  Place& place = places_[hash % places_.size()];
  if (period_ == 0 && place.at != 0 && place.hash == hash) {
    const std::uint64_t distance = count_ - place.at;
    bool same = distance > 0 && distance <= kMemory / 3;
    for (std::size_t back = 1; same && back <= kGram; ++back)
      same = count_ >= distance + back && at(count_ - back).symbol == at(count_ - distance - back).symbol;
    if (same) {
      period_ = distance;
      matched_ = kGram;
    }
  }
  place = {hash, count_};
}

/// Returns the fifth longest of the latest silences. Rare pauses, e.g. for an evaluation, are longer, but they do not
/// separate iterations.
std::int64_t CollectiveIterations::separating_silence() const {
  std::array<std::int64_t, 5> longest{};
  const std::uint64_t from = count_ > kLately ? count_ - kLately : 0;
  for (std::uint64_t index = from; index < count_; ++index) {
    std::int64_t silence = at(index).silence;
    for (std::int64_t& each : longest)
      if (silence > each) std::swap(silence, each);
  }
  return longest.back();
}

void CollectiveIterations::try_to_be_sure() {
  const std::uint64_t periods = period_ == proven_ ? 1 : 2;
  const std::uint64_t needed = std::max<std::uint64_t>(periods * period_, kMinMatched);
  // Checked once per period, because the check reads all symbols of the last two periods.
  if (matched_ < needed || (matched_ - needed) % period_ != 0) return;
  if (count_ < 2 * period_) return;
  std::uint64_t first = count_;
  std::int64_t longest = -1;
  for (std::uint64_t index = count_ - period_; index < count_; ++index) {
    const std::int64_t silence = std::min(at(index).silence, at(index - period_).silence);
    if (silence <= longest) continue;
    longest = silence;
    first = index;
  }
  if (longest < separating_silence() / kSilences) return;
  const std::uint64_t size = at(first).before - at(first - period_).before;
  if (size == 0) return;
  size_ = size;
  // The symbol with the number count_ is the one that begins now.
  left_ = first + period_ - count_ + 1;
  in_iteration_ = false;
  rival_count_ = 0;
  short_count_ = 0;
  sure_ = true;
  proven_ = period_;
}

void CollectiveIterations::fail() {
  sure_ = false;
  period_ = 0;
  matched_ = 0;
}

}  // namespace gloo::transport::mltcp
