// Spreads packets over time at a rate (RFC 9002 section 7.7): a virtual clock that runs ahead by the time of each
// packet sent. It may lag behind real time by a short burst, so that a late wake-up costs no rate.
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp {

class Pacer {
 public:
  /// Rate 0 means unlimited. `burst_bytes`: how much may leave at once after a pause.
  void set(Rate rate, Bytes burst_bytes) {
    if (rate == rate_ && burst_bytes == burst_bytes_) return;
    rate_ = rate;
    burst_bytes_ = burst_bytes;
    nanos_per_byte_ = rate.is_zero() ? 0 : 8e9 / static_cast<double>(rate.bits_per_second);
    burst_ = Nanos(static_cast<std::int64_t>(static_cast<double>(burst_bytes) * nanos_per_byte_));
  }
  [[nodiscard]] Rate rate() const { return rate_; }

  /// When the next packet may leave; at or before `now` means at once.
  [[nodiscard]] Nanos next_send() const { return rate_.is_zero() ? Nanos(0) : next_; }

  void on_sent(Nanos now, Bytes bytes) {
    if (rate_.is_zero()) return;
    next_ = std::max(next_, now - burst_) +
            Nanos(static_cast<std::int64_t>(static_cast<double>(bytes) * nanos_per_byte_ + 0.5));
  }

 private:
  Rate rate_;
  Bytes burst_bytes_ = 0;
  double nanos_per_byte_ = 0;
  Nanos burst_;
  Nanos next_;
};

}  // namespace mltcp
