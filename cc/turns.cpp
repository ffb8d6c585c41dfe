// Waiting and overtaking (see turns.h).
#include "mltcp/cc/turns.h"

namespace mltcp::cc {

void Turns::set_max_rate(Rate rate) {
  const auto given = static_cast<float>(rate.bits_per_second);
  if (given == max_rate_) return;
  max_rate_ = given;
  if (is_measured_) return;
  line_rate_ = given;
  if (state_ != State::free) release(latest_);
}

bool Turns::on_event(Nanos now, std::uint32_t iteration, Bytes iteration_bytes, bool resumes, Nanos pause) {
  // Packets of a hold may be far apart, for example after a loss.
  if (iteration == iteration_ && state_ != State::free && !resumes) {
    if (now < hold_ends_) return false;
    fail(now);
    return true;
  }
  const bool begins = ends_burst(pause) && (period_ > 0 || iteration != iteration_);
  if (begins && iteration_ != 0) end_burst(now - pause);
  if (iteration != iteration_) {
    end_iteration(now);
    iteration_ = iteration;
  }
  return begins && begin_burst(now, iteration_bytes);
}

// The rate counts from the first packet sent to the last acknowledgement, without the round trip between the two.
void Turns::end_burst(Nanos latest) {
  constexpr float forget = 0.99F;  // per burst, so that a path that has become slower is noticed
  const auto bytes = static_cast<float>(bytes_);
  const auto duration = static_cast<float>((latest - began_).seconds());
  if (state_ != State::free) {
    hold_ += duration;  // the whole burst was sent during the hold
  } else if (bytes > 0 && duration > 2 * min_rtt_) {
    line_rate_ *= forget;
    raise_line_rate(bytes * 8 / (duration - min_rtt_));
  }
  longest_ = std::max(longest_, bytes);
  if (!is_short(bytes)) long_now_ |= bit();
  if (burst_ < 255) ++burst_;
  bytes_ = 0;
}

void Turns::begin_window(Nanos now) {
  window_began_ = now;
  window_bytes_ = 0;
}

// A burst that shares the link has moments in which others send less. So one window can show the rate of the link.
void Turns::end_window(Nanos now) {
  const auto duration = static_cast<float>((now - window_began_).seconds());
  if (iteration_began_.is_never() || min_rtt_ == 0 || duration < kWindowRoundTrips * min_rtt_) return;
  raise_line_rate(window_bytes_ * 8 / duration);
  begin_window(now);
}

void Turns::raise_line_rate(float rate) {
  line_rate_ = is_measured_ ? std::max(line_rate_, rate) : rate;
  if (max_rate_ > 0) line_rate_ = std::min(line_rate_, max_rate_);
  is_measured_ = true;
}

void Turns::end_iteration(Nanos now) {
  if (!iteration_began_.is_never()) {
    // A pause such as that of a checkpoint must not make later pauses look short.
    const auto period = static_cast<float>((now - iteration_began_).seconds());
    period_ = period_ == 0 ? period : std::min(period, period_ * 2);
    if (burst_ > 0) {
      burst_bytes_ = longest_;
      long_ = long_now_;
    } else {  // no pause was long enough to end a burst
      burst_bytes_ = static_cast<float>(bytes_);
      bytes_ = 0;
      began_ = now;
    }
    is_short_ = is_short(burst_bytes_);
    std::shift_right(holds_.begin(), holds_.end(), 1);
    holds_[0] = hold_;
    if (caution_left_ > 0) --caution_left_;
    if (rest_ > 0) --rest_;
    if (trial_left_ > 0) {
      if (!overtakes_ && skips_left_ == 0) saved_ += stuck_ - hold_;
      if (--trial_left_ == 0 && saved_ < kWorthwhile * time_of(burst_bytes_)) {
        stuck_ = 0;
        rest_ = next_rest_;
        next_rest_ = static_cast<std::uint16_t>(std::min(2 * next_rest_, 1 << 15));
      }
    }
  }
  if (skips_left_ > 0) --skips_left_;
  overtakes_ = has_failed_ = has_decided_ = false;
  burst_ = 0;
  long_now_ = 0;
  longest_ = hold_ = 0;
  iteration_began_ = now;
}

bool Turns::begin_burst(Nanos now, Bytes iteration_bytes) {
  const bool was_limited = state_ != State::free;
  state_ = State::free;
  has_failed_ = false;
  hold_ends_ = Nanos::never();
  began_ = now;
  bytes_ = 0;
  begin_window(now);
  if (period_ == 0) {
    burst_bytes_ = static_cast<float>(iteration_bytes);
    is_short_ = is_short(burst_bytes_);
  }
  if (!may_wait()) return was_limited;
  if (!has_decided_) decide_to_overtake();
  if (overtakes_) return was_limited;
  state_ = State::testing;
  tested_ = 0;
  has_waited_ = false;
  constexpr float longest_hold = 10;  // in seconds
  hold_ends_ = now + Nanos::from_seconds(std::min(max_hold(), longest_hold));
  return true;
}

float Turns::max_hold() const {
  return (meets_steady_traffic() ? kSteadyShare : caution_left_ > 0 ? kCautiousShare : 1) * time_of(burst_bytes_);
}

bool Turns::may_wait() const {
  if (!waits_ || is_short_ || skips_left_ > 0 || (long_ & bit()) == 0 || line_rate_ == 0 || burst_bytes_ == 0)
    return false;
  const float test = min_rtt_ + kTestShare * kTestPackets * time_of(packet_bytes_);
  const float period = std::max(period_, 2 * time_of(burst_bytes_));
  return test <= kMaxTestShare * period;
}

void Turns::decide_to_overtake() {
  has_decided_ = true;
  if (rest_ > 0 || trial_left_ > 0) return;
  if (stuck_ == 0) {
    const auto [min, max] = std::ranges::minmax(holds_);
    overtakes_ =
        min > kStuckShare * period_ && max <= kStuckSpread * min && period_ >= kMinPeriod * time_of(burst_bytes_);
    if (overtakes_) stuck_ = (holds_[0] + holds_[1] + holds_[2]) / kStuckIterations;
  } else {
    overtakes_ = holds_[0] >= kBack * stuck_;
  }
  if (!overtakes_) return;
  trial_left_ = kTrial + 1;  // the iteration that overtakes does not count
  saved_ = 0;
}

bool Turns::look(const QueueSample& sample) {
  if (state_ == State::free) {  // in the first iteration, the round-trip time becomes known during the burst
    is_short_ = is_short(burst_bytes_);
    return false;
  }
  const bool is_over = sample.now >= hold_ends_;
  const bool is_low =
      !sample.is_marked && static_cast<float>(sample.delay.seconds()) < kQueuePackets * time_of(packet_bytes_);
  if (state_ == State::testing && is_low && !is_over) {
    tested_ = static_cast<std::uint8_t>(std::min(tested_ + sample.packets, kTestPackets));
    if (tested_ < kTestPackets) return false;
    failures_ = 0;
    release(sample.now);
  } else if (is_over) {
    fail(sample.now);
  } else if (state_ == State::testing) {
    state_ = State::holding;
    has_waited_ = true;
    low_ = 0;
  } else {
    low_ = is_low ? low_ + 1 : 0;
    if (low_ < kLowSamples) return false;
    state_ = State::testing;
    tested_ = 0;
  }
  return true;
}

void Turns::fail(Nanos now) {
  if (has_waited_) {
    has_failed_ = !meets_steady_traffic();
    caution_left_ = kCautiousIterations;
    failures_ = static_cast<std::uint8_t>(std::min(failures_ + 1, kSteadyFailures + 3));
    if (meets_steady_traffic()) {
      skips_left_ = static_cast<std::uint8_t>(kFirstSkips << (failures_ - kSteadyFailures));
      remeasure_ = true;
    }
  }
  release(now);
}

void Turns::release(Nanos now) {
  state_ = State::free;
  hold_ends_ = Nanos::never();
  hold_ += static_cast<float>((now - began_).seconds());
  began_ = now;
  bytes_ = 0;
  begin_window(now);
}

}  // namespace mltcp::cc
