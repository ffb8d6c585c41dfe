// Waiting and overtaking (see turns.h).
#include "mltcp/cc/turns.h"

namespace mltcp::cc {

void Turns::set_max_rate(Rate rate) {
  const auto given = static_cast<float>(rate.bits_per_second);
  if (given == max_rate_) return;
  if (iteration_ != 0) measure_burst(latest_);  // the new maximum is that of the next burst
  // If bursts were as fast as the maximum rate allowed, the path may be faster.
  const bool was_limit = line_rate_ > 0.9F * max_rate_ && line_rate_ <= max_rate_;
  max_rate_ = given;
  if (is_measured_ && !(was_limit && (given == 0 || given > line_rate_))) return;
  is_measured_ = false;
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
void Turns::measure_burst(Nanos latest) {
  constexpr float forget = 0.99F;  // per burst, so that a path that has become slower is noticed
  const auto duration = static_cast<float>((latest - began_).seconds());
  if (state_ != State::free || is_counted_ || bytes_ == 0 || duration <= 2 * min_rtt_) return;
  is_counted_ = true;
  line_rate_ *= forget;
  raise_line_rate(static_cast<float>(bytes_) * 8 / (duration - min_rtt_));
}

void Turns::end_burst(Nanos latest) {
  const auto bytes = static_cast<float>(bytes_);
  if (state_ != State::free)
    hold_ += static_cast<float>((latest - began_).seconds());  // all of it was sent in the hold
  measure_burst(latest);
  longest_ = std::max(longest_, bytes);
  if (!is_short(bytes)) long_now_ |= bit();
  if (burst_ < 255) ++burst_;
  bytes_ = 0;
}

void Turns::begin_part(Nanos now) {
  began_ = now;
  bytes_ = 0;
  is_counted_ = false;
  begin_window(now);
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
  if (max_rate_ > 0) rate = std::min(rate, max_rate_);
  line_rate_ = is_measured_ ? std::max(line_rate_, rate) : rate;
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
      is_counted_ = false;
      if (state_ == State::free) began_ = now;
    }
    is_short_ = is_short(burst_bytes_);
    std::shift_right(holds_.begin(), holds_.end(), 1);
    holds_[0] = hold_;
    if (caution_left_ > 0) --caution_left_;
    if (rest_ > 0) --rest_;
    if (trial_left_ > 0) {
      if (!overtakes_ && skips_left_ == 0) saved_ += stuck_ - hold_;
      if (--trial_left_ == 0 && saved_ < given_->trial_saving * time_of(burst_bytes_)) {
        stuck_ = 0;
        rest_ = static_cast<std::uint16_t>(given_->trial_rest << rests_);
        if (rests_ < 5) ++rests_;
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
  begin_part(now);
  if (period_ == 0) {
    burst_bytes_ = static_cast<float>(iteration_bytes);
    is_short_ = is_short(burst_bytes_);
  }
  if (!may_wait()) return was_limited;
  if (!has_decided_) decide_to_overtake();
  if (overtakes_) return was_limited;
  state_ = State::testing;
  passed_ = 0;
  has_waited_ = false;
  constexpr float longest_hold = 10;  // in seconds
  hold_ends_ = now + Nanos::from_seconds(std::min(max_hold(), longest_hold));
  return true;
}

float Turns::max_hold() const {
  const float bursts = meets_steady_traffic() ? given_->steady_hold : caution_left_ > 0 ? given_->cautious_hold : 1;
  return bursts * time_of(burst_bytes_);
}

bool Turns::may_wait() const {
  if (!waits_ || is_short_ || skips_left_ > 0 || (long_ & bit()) == 0 || line_rate_ == 0 || burst_bytes_ == 0)
    return false;
  const float tested = static_cast<float>(given_->test_packets) * static_cast<float>(packet_bytes_);
  const float test = min_rtt_ + tested * 8 / (given_->test_rate * rate());
  const float period = period_ > 0 ? period_ : 2 * time_of(burst_bytes_);
  return test <= given_->max_test * period;
}

void Turns::decide_to_overtake() {
  has_decided_ = true;
  if (rest_ > 0 || trial_left_ > 0) return;
  if (stuck_ == 0) {
    const auto [min, max] = std::ranges::minmax(holds_);
    overtakes_ = min > given_->stuck_wait * period_ && max <= given_->stuck_spread * min &&
                 period_ >= given_->stuck_period * time_of(burst_bytes_);
    if (overtakes_) stuck_ = (holds_[0] + holds_[1] + holds_[2]) / kStuckIterations;
  } else {
    overtakes_ = holds_[0] * given_->stuck_spread >= stuck_;
  }
  if (!overtakes_) return;
  trial_left_ = static_cast<std::uint8_t>(given_->trial + 1);  // the iteration that overtakes does not count
  saved_ = 0;
}

bool Turns::look(const QueueSample& sample) {
  if (state_ == State::free) {  // in the first iteration, the round-trip time becomes known during the burst
    is_short_ = is_short(burst_bytes_);
    return false;
  }
  const bool is_over = sample.now >= hold_ends_;
  const bool is_low =
      !sample.is_marked && static_cast<float>(sample.delay.seconds()) < given_->test_queue * time_of(packet_bytes_);
  if (state_ == State::testing && is_low && !is_over) {
    passed_ = static_cast<std::uint8_t>(std::min(passed_ + sample.packets, given_->test_packets));
    if (passed_ < given_->test_packets) return false;
    failures_ = 0;
    release(sample.now);
  } else if (is_over) {
    fail(sample.now);
  } else if (state_ == State::testing) {
    state_ = State::holding;
    has_waited_ = true;
    passed_ = 0;
  } else {
    passed_ = is_low ? passed_ + 1 : 0;
    if (passed_ < given_->low_samples) return false;
    state_ = State::testing;
    passed_ = 0;
  }
  return true;
}

void Turns::fail(Nanos now) {
  if (has_waited_) {
    caution_left_ = static_cast<std::uint8_t>(given_->cautious_iterations);
    failures_ = static_cast<std::uint8_t>(std::min(failures_ + 1U, given_->steady_failures + 3));
    has_failed_ = !meets_steady_traffic();
    if (meets_steady_traffic()) {
      skips_left_ = static_cast<std::uint8_t>(given_->steady_skips << (failures_ - given_->steady_failures));
      ++measurement_;
    }
  }
  release(now);
}

void Turns::release(Nanos now) {
  state_ = State::free;
  hold_ends_ = Nanos::never();
  hold_ += static_cast<float>((now - began_).seconds());
  begin_part(now);
}

}  // namespace mltcp::cc
