// Spreads packets over time at a rate (RFC 9002 section 7.7): a virtual clock that runs ahead by the time of each
// packet sent. It may lag behind real time by a short burst, and by as much as whoever drives the sender came late, so
// that a late wake-up costs no rate.
//
// At high rates a packet's time is shorter than it takes to look after it. Once the pacer has stopped a sender, it
// therefore lets it go on only when a small batch is due (the quantum), so that the costs of a wake-up are shared.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp {

class Pacer {
 public:
  /// Rate 0 means unlimited. `burst_bytes`: how much may leave at once after a pause, or what a quantum holds if that
  /// is more. `quantum`: how long packets may be gathered; a wake-up that is as late again still costs no rate.
  void set(Rate rate, Bytes burst_bytes, Nanos quantum) {
    if (rate == rate_ && burst_bytes == burst_bytes_) return;
    const double before = nanos_per_byte_;
    rate_ = rate;
    burst_bytes_ = burst_bytes;
    nanos_per_byte_ = rate.is_zero() ? 0 : 8e9 / static_cast<double>(rate.bits_per_second);
    // What was sent but not yet waited for is waited for at the new rate.
    if (before > 0 && next_ > sent_at_)
      next_ =
          sent_at_ +
          Nanos(static_cast<std::int64_t>(static_cast<double>((next_ - sent_at_).count) * (nanos_per_byte_ / before)));
    hold_ = Nanos(0);
    gather_ = quantum;
    burst_ = std::max(quantum, Nanos(static_cast<std::int64_t>(static_cast<double>(burst_bytes) * nanos_per_byte_)));
  }
  [[nodiscard]] Rate rate() const { return rate_; }

  /// When the next packet may leave: `now`, or later.
  Nanos ready_at(Nanos now) {
    if (rate_.is_zero()) return now;
    if (next_ > now) {
      // A single packet's time is not stretched: at low rates every packet leaves at its own.
      hold_ = next_ + (last_ < gather_ ? gather_ - last_ : Nanos(0));
      return hold_;
    }
    return std::max(now, hold_);
  }

  /// `late`: how long after the time that was asked for the sender was looked after, or as much of it as may be made up
  /// for: so much more may leave at once.
  void on_sent(Nanos now, Bytes bytes, Nanos late = {}) {
    if (rate_.is_zero()) return;
    last_ = Nanos(static_cast<std::int64_t>(static_cast<double>(bytes) * nanos_per_byte_ + 0.5));
    // Where packets are gathered the clock lags by as much already when their time has come.
    next_ = std::max(next_, now - burst_ - late - (last_ < gather_ ? gather_ - last_ : Nanos(0))) + last_;
    sent_at_ = now;
  }

 private:
  Rate rate_;
  Bytes burst_bytes_ = 0;
  double nanos_per_byte_ = 0;
  Nanos burst_;
  Nanos gather_;
  Nanos next_;
  Nanos sent_at_;
  Nanos hold_;
  Nanos last_;  ///< time of the packet sent last
};

}  // namespace mltcp
