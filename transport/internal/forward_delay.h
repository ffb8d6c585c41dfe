// The time that packets of a connection spend in queues on their way to the peer, from the arrival times that the peer
// reports in acknowledgements. A round-trip time would also contain the queues on the way back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class ForwardDelay {
 public:
  /// Returns how long a packet was in queues; 0 while this is not known. `arrival` is the packet's arrival in ns on the
  /// peer's clock, modulo 2^32, and `sent` its departure on this end's clock. `is_full`: whether the packet has the
  /// connection's maximum size. Shorter packets take less time on the way, so they do not change the minimum. If
  /// `measurement` changes, the minimum is measured again (cc::Turns::measurement()).
  Nanos queue(std::uint32_t arrival, Nanos sent, bool is_full, std::uint8_t measurement) {
    if (measurement != measurement_) reset();
    measurement_ = measurement;
    // Time on the way plus the constant difference of the clocks. The smallest value is that without queues. It rises
    // by 2^-17 of the time, so that a peer's clock that is up to 7.6 ppm faster than this end's does not look like a
    // queue. If it is faster than that, the job notices that queues do not go away.
    const auto transit = arrival - static_cast<std::uint32_t>(sent.count);
    const auto tick = static_cast<std::uint32_t>(sent.count >> 17);
    min_ += tick - tick_;
    tick_ = tick;
    if (is_full && (!is_known_ || beyond(transit) < 0)) {
      min_ = transit;
      is_known_ = true;
    }
    return Nanos(is_known_ ? std::max(beyond(transit), 0) : 0);
  }
  /// Forgets the minimum. Call this function when full packets get another size.
  void reset() { is_known_ = false; }

 private:
  [[nodiscard]] std::int32_t beyond(std::uint32_t transit) const { return static_cast<std::int32_t>(transit - min_); }

  std::uint32_t min_ = 0;
  std::uint32_t tick_ = 0;  ///< departure of the latest packet, in 2^17 ns
  std::uint8_t measurement_ = 0;
  bool is_known_ = false;
};

}  // namespace mltcp::transport
