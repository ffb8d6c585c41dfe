#include "mltcp/endpoint/collective_sequence.h"

#include <algorithm>

namespace mltcp::endpoint {

CollectiveSequence::CollectiveSequence() {
  before_.reserve(kMaxCollectives);
  current_.reserve(kMaxCollectives);
}

Nanos CollectiveSequence::longest_pause() const { return *std::ranges::max_element(pauses_); }

void CollectiveSequence::forget() {
  following_ = false;
  whole_ = false;
  before_.clear();
  current_.clear();
  longer_ = 0;
}

CollectiveSequence::Step CollectiveSequence::on_collective(std::uint64_t signature, Nanos now) {
  const Nanos pause = first_ ? Nanos(0) : now - last_;
  first_ = false;
  last_ = now;
  const Nanos longest = longest_pause();
  pauses_[next_pause_] = pause;
  next_pause_ = (next_pause_ + 1) % kPauses;
  return following_ ? follow(signature, pause) : learn(signature, pause, longest);
}

CollectiveSequence::Step CollectiveSequence::learn(std::uint64_t signature, Nanos pause, Nanos longest) {
  const bool ends_segment = pause > Nanos(0) && pause.count * 2 >= longest.count;
  if (!ends_segment) {
    if (current_.size() == kMaxCollectives) forget();
    current_.push_back(signature);
    return Step::within;
  }
  if (whole_ && !before_.empty() && current_ == before_ && signature == before_.front()) {
    following_ = true;
    length_ = before_.size();
    position_ = 1;
    usual_pause_ = pause;
    longer_ = 0;
    return Step::begins;
  }
  before_.clear();
  if (whole_) std::swap(before_, current_);
  current_.clear();
  current_.push_back(signature);
  whole_ = true;
  return Step::candidate;
}

CollectiveSequence::Step CollectiveSequence::follow(std::uint64_t signature, Nanos pause) {
  const bool longer = pause.count > 4 * usual_pause_.count;
  if (longer) ++longer_;
  if (longer_ >= 2 || signature != before_[position_ % length_]) {
    forget();
    return Step::lost;
  }
  if (position_ < length_) {
    ++position_;
    return Step::within;
  }
  position_ = 1;
  if (!longer) usual_pause_ = std::max(usual_pause_, pause);
  return Step::begins;
}

}  // namespace mltcp::endpoint
