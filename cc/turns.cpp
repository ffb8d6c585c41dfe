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

bool Turns::on_event(Nanos now, std::uint32_t iteration, Bytes iteration_bytes, bool resumes, bool has_slot,
                     Nanos pause) {
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
  return begins && begin_burst(now, iteration_bytes, has_slot);
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
  if (burst_ < kMaxBurst) ++burst_;
  bytes_ = 0;
}

void Turns::begin_part(Nanos now) {
  began_ = now;
  bytes_ = 0;
  is_counted_ = false;
  window_began_ = window_bytes_ = 0;
}

// A burst that shares the link has moments in which others send less. So one window can show the rate of the link.
void Turns::end_window(Nanos now) {
  const auto end = static_cast<float>((now - began_).seconds());
  const float duration = end - window_began_;
  if (iteration_began_.is_never() || min_rtt_ == 0 || duration < kWindowRoundTrips * min_rtt_) return;
  raise_line_rate(window_bytes_ * 8 / duration);
  window_began_ = end;
  window_bytes_ = 0;
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
      const Nanos began = began_;
      begin_part(now);
      if (state_ != State::free) began_ = began;
    }
    is_short_ = is_short(burst_bytes_);
    std::shift_right(holds_.begin(), holds_.end(), 1);
    holds_[0] = hold_;
    if (pause_left_ > 0) --pause_left_;
  }
  overtakes_ = may_overtake();
  has_failed_ = false;
  burst_ = 0;
  long_now_ = 0;
  longest_ = hold_ = 0;
  iteration_began_ = now;
}

bool Turns::begin_burst(Nanos now, Bytes iteration_bytes, bool has_slot) {
  const bool was_limited = state_ != State::free;
  state_ = State::free;
  has_failed_ = false;
  hold_ends_ = Nanos::never();
  begin_part(now);
  if (period_ == 0) {
    burst_bytes_ = static_cast<float>(iteration_bytes);
    is_short_ = is_short(burst_bytes_);
  }
  if (has_slot || overtakes_ || !may_wait()) return was_limited;
  begin_test();
  has_waited_ = false;
  constexpr float longest_hold = 10;  // in seconds
  const float max_hold = (is_cautious_ ? given_->cautious_hold : 1) * time_of(burst_bytes_);
  hold_ends_ = now + Nanos::from_seconds(std::min(max_hold, longest_hold));
  return true;
}

void Turns::begin_test() {
  state_ = State::testing;
  passed_ = 0;
  highest_ = 0;
}

bool Turns::may_wait() const {
  if (!waits_ || is_short_ || (long_ & bit()) == 0 || line_rate_ == 0 || burst_bytes_ == 0) return false;
  const float tested = static_cast<float>(given_->test_packets) * static_cast<float>(packet_bytes_);
  const float test = min_rtt_ + tested * 8 / (given_->test_rate * rate());
  const float period = period_ > 0 ? period_ : 2 * time_of(burst_bytes_);
  return test <= given_->max_test * period;
}

bool Turns::may_overtake() {
  if (pause_left_ > 0 || period_ < given_->stuck_period * time_of(burst_bytes_)) return false;
  if (stuck_ == 0) {
    const auto [min, max] = std::ranges::minmax(holds_);
    if (min <= given_->stuck_wait * period_ || max > given_->stuck_spread * min) return false;
    stuck_ = (holds_[0] + holds_[1] + holds_[2]) / kStuckIterations;
  } else if (holds_[0] * given_->stuck_spread < stuck_) {
    return false;
  }
  pause_left_ = static_cast<std::uint8_t>(given_->overtaking_pause + 1);
  return true;
}

bool Turns::look(const QueueSample& sample) {
  if (state_ == State::free) {  // in the first iteration, the round-trip time becomes known during the burst
    is_short_ = is_short(burst_bytes_);
    return false;
  }
  const bool is_over = sample.now >= hold_ends_;
  const auto delay = static_cast<float>(sample.delay.seconds());
  const bool is_low = delay < std::max(test_queue(), noise_) && (!sample.is_marked || noise_ > test_queue());
  highest_ = std::max(highest_, delay);
  if (state_ == State::testing && is_low && !is_over) {
    passed_ = static_cast<std::uint8_t>(std::min(passed_ + sample.packets, given_->test_packets));
    if (passed_ < given_->test_packets) return false;
    failures_ = 0;
    lowest_ = kUnknown;
    lower_noise();
    release(sample.now);
  } else if (is_over) {
    fail(sample.now);
  } else if (state_ == State::testing) {
    state_ = State::holding;
    has_waited_ = true;
    passed_ = samples_ = 0;
    highest_ = 0;
  } else {
    if (++samples_ >= given_->test_packets) {
      lowest_ = std::min(lowest_, highest_);
      highest_ = 0;
      samples_ = 0;
    }
    passed_ = is_low ? passed_ + 1 : 0;
    if (passed_ < given_->low_samples) return false;
    begin_test();
  }
  return true;
}

// Delays of few packets vary. So a single test changes little.
void Turns::lower_noise() {
  constexpr float share = 1 / 4.0F;
  noise_ += share * std::min(given_->noise_margin * highest_ - noise_, 0.0F);
}

void Turns::fail(Nanos now) {
  if (has_waited_) {
    is_cautious_ = true;
    failures_ = static_cast<std::uint8_t>(std::min(failures_ + 1U, given_->steady_failures));
    has_failed_ = failures_ < given_->steady_failures;
    if (!has_failed_) {
      ++measurement_;
      noise_ = given_->noise_margin * std::max({lowest_ < kUnknown ? lowest_ : 0, test_queue(), noise_});
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
