// Spaces packets in time at a rate (RFC 9002 section 7.7): a virtual clock that advances by each packet's transmission
// time. It may lag behind real time by a short burst, and by the delay of a late poll, so that late wake-ups cost no
// rate.
//
// At high rates the cost of a wake-up exceeds a packet's transmission time. Once the pacer has blocked a sender, it
// therefore releases it only when a small batch (the quantum) is due, to share that cost.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class Pacer {
 public:
  /// Rate 0 means unlimited. `burst_bytes`: bytes that may leave at once after a pause, at least a quantum's worth.
  /// `quantum`: how long packets may be gathered; a wake-up that is late by another quantum still costs no rate.
  void set(Rate rate, Bytes burst_bytes, Nanos quantum) {
    if (rate == rate_ && burst_bytes == burst_bytes_) return;
    const double before = nanos_per_byte_;
    rate_ = rate;
    burst_bytes_ = burst_bytes;
    nanos_per_byte_ = rate.is_zero() ? 0 : 8e9 / static_cast<double>(rate.bits_per_second);
    // The part of the virtual clock that lies ahead is rescaled to the new rate.
    if (before > 0 && next_ > sent_at_)
      next_ =
          sent_at_ +
          Nanos(static_cast<std::int64_t>(static_cast<double>((next_ - sent_at_).count) * (nanos_per_byte_ / before)));
    hold_ = Nanos(0);
    gather_ = quantum;
    burst_ = std::max(quantum, Nanos(static_cast<std::int64_t>(static_cast<double>(burst_bytes) * nanos_per_byte_)));
  }
  [[nodiscard]] Rate rate() const { return rate_; }

  /// When the next packet may leave: `now` or later.
  Nanos ready_at(Nanos now) {
    if (rate_.is_zero()) return now;
    if (next_ > now) {
      // Never delays a packet longer than its own time requires: at low rates every packet leaves on its own.
      hold_ = next_ + (last_ < gather_ ? gather_ - last_ : Nanos(0));
      return hold_;
    }
    return std::max(now, hold_);
  }

  /// `late`: how late the poll came, or the part of it that may be caught up: a burst may be larger by this time.
  void on_sent(Nanos now, Bytes bytes, Nanos late = {}) {
    if (rate_.is_zero()) return;
    last_ = Nanos(static_cast<std::int64_t>(static_cast<double>(bytes) * nanos_per_byte_ + 0.5));
    // While packets are gathered, the clock already lags by as much when they become due.
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
  Nanos last_;  ///< transmission time of the latest packet
};

}  // namespace mltcp::transport
