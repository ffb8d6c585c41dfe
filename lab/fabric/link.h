// One direction of a link and the output queue before it: drop-tail, ECN marking, serialisation at the link's rate,
// propagation delay, and faults. Sans-IO: time is an argument, and packets are opaque handles. The simulator and the
// real-time software switch use this model.
//
// The queue is first in, first out at a constant rate. So the departure of a packet from the queue is known when the
// packet is admitted: max(admission time, departure of the previous packet) + bytes / rate. A packet occupies the
// buffer until its last bit has left. Fractions of a nanosecond are carried over to the next packet, so that a busy
// link has exactly its configured rate even with short packets. The reported departure of a packet is rounded up to the
// next nanosecond.
//
// ECN marking (ecn_marker.h) applies to ECN-capable packets only. Packets are dropped only if the buffer is full.
//
// With `trim_bytes`, a packet that finds the buffer full is trimmed to its first bytes instead of dropped, so that its
// receiver learns of it at once. Trimmed packets have a queue of their own, which is served first. A packet in that
// queue waits for the packet that is being sent, and takes its time from packets that enter the link later, but not
// from those that already wait.
//
// Faults occur on the link, after the queue. So even a lost or damaged packet occupies the link for its serialisation
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/ecn_marker.h"

namespace mltcp::fabric {

/// Faults of a link. Each fault is decided independently for each packet, by random numbers from the link's seed.
struct FaultConfig {
  double loss = 0;         ///< probability in [0, 1] that a packet is lost
  double duplication = 0;  ///< probability in [0, 1] that a packet is duplicated
  double corruption = 0;   ///< probability in [0, 1] that bits of a packet are flipped
  /// Probability in [0, 1] that a packet is delayed by a uniformly distributed time in (0, reorder_delay]. Packets sent
  /// within this time after the delayed packet overtake it.
  double reordering = 0;
  Nanos reorder_delay{100'000};  ///< maximum delay of a reordered packet, above 0, at most 1000 s

  [[nodiscard]] bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || reordering > 0; }
};

/// From time `at` on, a link has another rate. Packets that are in its queue keep their departure times.
struct RateChange {
  Nanos at;
  Rate rate;  ///< as LinkConfig::rate; 0: the link is down, and loses all packets
};

struct LinkConfig {
  Rate rate;                     ///< rate of the link, 8 bps to 1000 Tbps
  Nanos delay;                   ///< one-way delay, 0 to 1000 s
  Bytes buffer_bytes = 250'000;  ///< maximum number of bytes that wait or are being sent; 0: unlimited
  EcnConfig ecn;
  FaultConfig faults;
  std::uint64_t seed = 1;  ///< seed of two independent random streams, one for marking and one for faults
  /// Bytes of a packet, with all headers, that are sent on if the buffer is full; 0: such packets are dropped. The
  /// queue of trimmed packets holds `buffer_bytes`, too.
  std::uint32_t trim_bytes = 0;
  std::vector<RateChange> changes{};  ///< in the order of time
};

/// Counters since the link was created. Each offered packet is either dropped or sent. The number of packets that have
/// arrived at the far end or are on their way is sent + duplicated - lost.
struct LinkCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< packets dropped because the buffer was full or the link was down
  std::uint64_t trimmed_packets = 0;  ///< packets trimmed because the buffer was full; part of sent_packets
  std::uint64_t marked_packets = 0;
  /// Packets that entered the queue, including packets that a fault then lost; without duplicates.
  std::uint64_t sent_packets = 0;
  Bytes sent_bytes = 0;  ///< wire bytes of sent_packets
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< packets lost by the loss fault
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t pauses = 0;  ///< number of times that a class was paused (see PriorityLink)
};

/// Throws InputError if `config` is out of range.
void check(const LinkConfig& config);

/// Estimates how many packets the queue and the link can hold, at 200 bytes per packet. Assumes at most 8 MiB in the
/// queue and at most 8 MiB in flight.
std::uint32_t packets_in(const LinkConfig& config);

class Link {
 public:
  /// Identifies a packet of the caller, e.g. a pointer or an index.
  using Handle = std::uint64_t;

  /// Result of offer(), with the actions that the caller must take.
  struct Admission {
    /// True if the link stores the packet until pop() returns it. False if the buffer was full or a fault lost the
    /// packet; the caller then frees it.
    bool admitted = false;
    bool lost = false;  ///< whether a fault lost the packet after it was sent; if true, `admitted` is false
    bool mark = false;  ///< the caller must set CE in the packet
    bool trim = false;  ///< the caller must shorten the packet to LinkConfig::trim_bytes, with all headers
    /// The caller must copy the packet, before it corrupts the packet, and pass the copy to offer_copy().
    bool duplicate = false;
    bool corrupt = false;            ///< the caller must flip the bits of the packet that `corrupt_bits` selects
    std::uint64_t corrupt_bits = 0;  ///< random number from which the caller derives the bits to flip
    Nanos departure;                 ///< when the last bit leaves the queue; set if `admitted` or `lost` is true
  };

  struct Delivery {
    Handle packet = 0;
    Nanos at;  ///< when the packet's last bit reaches the far end
  };

  /// Throws InputError if `config` is out of range.
  explicit Link(const LinkConfig& config);

  /// Offers a packet at time `now`, which is 0 or later and must not decrease between calls. `bytes` is the length on
  /// the wire, above 0. `is_trimmed`: whether an earlier link has trimmed the packet.
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, Nanos now, bool is_trimmed = false);
  /// Adds the copy that Admission::duplicate of the last offer() requested. The copy arrives directly after the
  /// original packet, and uses neither buffer nor time on the link.
  void offer_copy(Handle packet);

  /// Returns the time at which the next packet reaches the far end; Nanos::never() if no packet is on its way. A packet
  /// always reaches the far end later than the `now` at which it was offered.
  [[nodiscard]] Nanos next_delivery() const {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (held_.empty()) [[likely]]
      return next;
    return held_.front().at < next ? held_.front().at : next;
  }
  /// Removes and returns the next packet, in order of arrival, that has reached the far end by `now`.
  std::optional<Delivery> pop(Nanos now) {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (!held_.empty() && held_.front().at < next) [[unlikely]]
      return pop_held(now);
    if (next > now || next.is_never()) return std::nullopt;
    const Delivery delivery = flying_.front();
    flying_.pop();
    return delivery;
  }

  /// Returns the packet that pop() will most likely return next, so that the caller can prefetch it. There must be a
  /// packet on its way.
  [[nodiscard]] Handle next_packet() const { return flying_.empty() ? held_.front().packet : flying_.front().packet; }

  /// Returns the bytes waiting or being sent at `now`, which must not be before the `now` of the last offer(). A packet
  /// counts fully until its departure.
  Bytes queue_bytes(Nanos now) {
    drain(now);
    return backlog_;
  }
  /// Returns what queue_bytes(now) would return, but does not change the link. So the next offer() may have a time
  /// before this `now`.
  [[nodiscard]] Bytes queue_bytes_at(Nanos now) const {
    Bytes bytes = backlog_;
    for (std::uint64_t p = waiting_.begin(); p != waiting_.end() && waiting_[p].departure <= now; ++p)
      bytes -= waiting_[p].bytes;
    return bytes;
  }
  /// Returns the number of packets waiting or being sent at `now`, which must not be before the `now` of the last
  /// offer().
  std::size_t queue_packets(Nanos now) {
    drain(now);
    return waiting_.size();
  }
  /// Returns the earliest time, not before `now`, at which at most `packets` packets are waiting or being sent. Assumes
  /// that no more packets are offered.
  Nanos time_of_queue(std::size_t packets, Nanos now);

  /// Returns the time at which everything offered so far has been sent, rounded down to whole nanoseconds.
  [[nodiscard]] Nanos free_at() const { return free_at_; }
  /// Returns the number of packets that pop() has not yet returned, including duplicates.
  [[nodiscard]] std::size_t packets_inside() const { return flying_.size() + held_.size(); }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  [[nodiscard]] const LinkConfig& config() const { return config_; }

 private:
  struct Waiting {
    Nanos departure;
    std::uint32_t bytes = 0;
  };
  struct Held {
    Nanos at;
    std::uint64_t order = 0;  // breaks ties between packets that arrive at the same time
    Handle packet = 0;
  };

  /// Removes the packets that have left the queue by `now`. Called only when the length of the queue is needed, so that
  /// departures need no events.
  void drain(Nanos now) {
    while (!waiting_.empty() && waiting_.front().departure <= now) {
      backlog_ -= waiting_.front().bytes;
      waiting_.pop();
    }
  }
  void change_rate(Nanos now);
  Admission offer_first(Handle packet, std::uint32_t bytes, bool trim, Nanos now);
  Nanos serialise(std::uint32_t bytes, Nanos now);
  bool apply_faults(Admission& admission, Nanos& at);
  void hold(Handle packet, Nanos at);
  std::optional<Delivery> pop_held(Nanos now);

  // Packets on their way that no fault delays, in order of arrival at the far end. A packet is added when it is
  // admitted to the queue.
  GrowableRing<Delivery> flying_;
  GrowableRing<Waiting> waiting_;  // packets in the buffer, including those that a fault has lost
  Bytes backlog_ = 0;              // sum of bytes in waiting_

  // The link is free at free_at_ + free_fraction_ / rate nanoseconds.
  Nanos free_at_;
  std::uint64_t free_fraction_ = 0;
  Nanos first_free_at_;  // when the queue of trimmed packets has been sent
  // Serialisation time of a packet of latest_bytes_ bytes, in nanoseconds plus a fraction. It is stored because
  // consecutive packets often have equal sizes, and the division is the most expensive part of offer().
  std::uint32_t latest_bytes_ = 0;
  Nanos latest_time_;
  std::uint64_t latest_fraction_ = 0;

  LinkCounters counters_;
  // Packets that a reordering fault delays, and trimmed packets, as a min-heap by arrival time.
  std::vector<Held> held_;
  std::uint64_t held_order_ = 0;
  Nanos newest_at_;  // arrival time of the last offered packet, at which its copy also arrives
  bool newest_held_ = false;
  bool faulty_ = false;
  bool is_down_ = false;
  std::size_t next_change_ = 0;  // index in LinkConfig::changes
  Nanos next_change_at_ = Nanos::never();
  EcnMarker marker_;
  Random fault_random_;
  LinkConfig config_;
};

}  // namespace mltcp::fabric
