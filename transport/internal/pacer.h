// Spaces packets in time at a given rate (RFC 9002 section 7.7). A virtual clock advances by the transmission time of
// each packet. The clock may lag behind real time by a short burst and by the delay of a late poll, so that late
// wake-ups do not reduce the rate.
//
// At high rates a wake-up costs more time than the transmission of a packet. So once the pacer has blocked a sender, it
// releases the sender only when a small batch (the quantum) is due, whose packets share this cost.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class Pacer {
 public:
  /// Sets the rate; 0 means unlimited. After a pause, `burst_bytes` bytes may be sent at once, or the bytes of one
  /// quantum if these are more. `quantum` is the time for which packets may be gathered. A wake-up that is late by up
  /// to one quantum does not reduce the rate.
  void set(Rate rate, Bytes burst_bytes, Nanos quantum) {
    if (rate == rate_ && burst_bytes == burst_bytes_) return;
    const double before = nanos_per_byte_;
    rate_ = rate;
    burst_bytes_ = burst_bytes;
    nanos_per_byte_ = rate.is_zero() ? 0 : 8e9 / static_cast<double>(rate.bits_per_second);
    // Rescale the part of the virtual clock that is ahead of the latest packet to the new rate.
    if (before > 0 && next_ > sent_at_)
      next_ =
          sent_at_ +
          Nanos(static_cast<std::int64_t>(static_cast<double>((next_ - sent_at_).count) * (nanos_per_byte_ / before)));
    hold_ = Nanos(0);
    gather_ = quantum;
    burst_ = std::max(quantum, Nanos(static_cast<std::int64_t>(static_cast<double>(burst_bytes) * nanos_per_byte_)));
  }
  [[nodiscard]] Rate rate() const { return rate_; }

  /// Returns when the next packet may be sent: `now` or later.
  Nanos ready_at(Nanos now) {
    if (rate_.is_zero()) return now;
    if (next_ > now) {
      // At low rates every packet is sent on its own, because its transmission time already exceeds the quantum.
      hold_ = next_ + (last_ < gather_ ? gather_ - last_ : Nanos(0));
      return hold_;
    }
    return std::max(now, hold_);
  }

  /// Charges a packet of `bytes` bytes. `late` is the part of the poll's delay that pacing may catch up on. A burst may
  /// be longer by this time.
  void on_sent(Nanos now, Bytes bytes, Nanos late = {}) {
    if (rate_.is_zero()) return;
    last_ = Nanos(static_cast<std::int64_t>(static_cast<double>(bytes) * nanos_per_byte_ + 0.5));
    // When gathered packets become due, the clock already lags by the time for which they were gathered.
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
