// One direction of a link and the output queue before it: drop-tail, ECN marking, serialisation at the link's rate,
// propagation delay, and faults. Sans-IO: time is an argument, packets are opaque handles. The simulator and the
// real-time software switch use it.
//
// The queue is first in, first out at a constant rate, so the departure of a packet is known when it is
// admitted: max(arrival, departure of its predecessor) + bytes / rate. A packet occupies the buffer until its
// last bit has left. Fractions of a nanosecond are carried over from packet to packet, so that a busy link runs at
// exactly its rate even with short packets; a single departure is rounded up to the next nanosecond.
//
// ECN marking (ecn_marker.h) applies to ECN-capable packets only. Other packets pass unmarked; only a full buffer drops
// packets.
//
// Faults occur on the link, after the queue: an affected packet has used its time on the link.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/ecn_marker.h"

namespace mltcp::fabric {

/// Faults of a link, each decided independently per packet by random numbers from the link's seed.
struct FaultConfig {
  double loss = 0;         ///< probability in [0, 1] that a packet is lost
  double duplication = 0;  ///< probability in [0, 1] that a packet is duplicated
  double corruption = 0;   ///< probability in [0, 1] that bits of a packet are flipped
  /// Probability in [0, 1] that a packet is delayed by a time that is uniform in (0, reorder_delay], so that packets
  /// that follow within that time overtake it.
  double reordering = 0;
  Nanos reorder_delay{100'000};  ///< above 0, at most 1000 s

  [[nodiscard]] bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || reordering > 0; }
};

struct LinkConfig {
  Rate rate;                     ///< 8 bps to 1000 Tbps
  Nanos delay;                   ///< one way, 0 to 1000 s
  Bytes buffer_bytes = 250'000;  ///< maximum bytes waiting or being sent; 0 is unlimited
  EcnConfig ecn;
  FaultConfig faults;
  std::uint64_t seed = 1;  ///< seed of two independent random streams, for marking and for faults
};

/// Counters since the link was created. offered = dropped + sent; of these, sent + duplicated - lost have arrived at
/// the far end or are on their way.
struct LinkCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< because the buffer was full
  std::uint64_t marked_packets = 0;
  std::uint64_t sent_packets = 0;  ///< entered the queue, including those lost later; without duplicates
  Bytes sent_bytes = 0;            ///< wire bytes of the same packets
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< packets lost by the loss fault
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t pauses = 0;  ///< times that a class was paused (see PriorityLink)
};

/// Throws InputError if `config` is out of range.
void check(const LinkConfig& config);

/// Number of packets that a link can hold, at 200 bytes on average. At most 8 MiB in the queue and 8 MiB in flight are
/// counted.
std::uint32_t packets_in(const LinkConfig& config);

class Link {
 public:
  /// Identifies a packet of the caller: a pointer or an index.
  using Handle = std::uint64_t;

  /// Result of offering a packet, and the actions that the caller must take.
  struct Admission {
    /// True: the link keeps the packet until pop() returns it. False: it was dropped because the buffer was full, or it
    /// was lost; the caller frees it.
    bool admitted = false;
    bool lost = false;               ///< with admitted == false: it was sent, but a fault has lost it
    bool mark = false;               ///< set CE in the packet
    bool duplicate = false;          ///< copy the packet before corruption, and pass the copy to offer_copy()
    bool corrupt = false;            ///< flip bits of the packet selected by `corrupt_bits`
    std::uint64_t corrupt_bits = 0;  ///< random number from which the caller derives which bits to flip
    Nanos departure;                 ///< when its last bit leaves the queue; set if admitted or lost
  };

  struct Delivery {
    Handle packet = 0;
    Nanos at;  ///< when its last bit reached the far end
  };

  /// Throws InputError if `config` is out of range.
  explicit Link(const LinkConfig& config);

  /// Offers a packet of `bytes` (on the wire, above 0) at time `now`. `now` is 0 or later and must not decrease between
  /// calls.
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, Nanos now);
  /// Adds the copy that Admission::duplicate of the last offer() requested. It arrives directly after its original, and
  /// uses neither buffer nor time on the link.
  void offer_copy(Handle packet);

  /// The time at which the next packet reaches the far end; Nanos::never() if no packet is on its way. It is always
  /// later than the `now` of the offer() that sent the packet.
  [[nodiscard]] Nanos next_delivery() const {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (held_.empty()) [[likely]]
      return next;
    return held_.front().at < next ? held_.front().at : next;
  }
  /// Removes and returns the next packet that has reached the far end by `now`, in order of arrival.
  std::optional<Delivery> pop(Nanos now) {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (!held_.empty() && held_.front().at < next) [[unlikely]]
      return pop_held(now);
    if (next > now || next.is_never()) return std::nullopt;
    const Delivery delivery = flying_.front();
    flying_.pop();
    return delivery;
  }

  /// The packet that pop() will most likely return next, to be prefetched; the link must not be empty.
  [[nodiscard]] Handle next_packet() const { return flying_.empty() ? held_.front().packet : flying_.front().packet; }

  /// Bytes waiting or being sent at `now`, which must not be before the `now` of the last offer(). A packet counts
  /// fully until its departure.
  Bytes queue_bytes(Nanos now) {
    drain(now);
    return backlog_;
  }
  /// The same for observers: it does not change the link, so `now` may be later than the `now` of later offer() calls.
  [[nodiscard]] Bytes queue_bytes_at(Nanos now) const {
    Bytes bytes = backlog_;
    for (std::uint64_t p = waiting_.begin(); p != waiting_.end() && waiting_[p].departure <= now; ++p)
      bytes -= waiting_[p].bytes;
    return bytes;
  }
  /// The same in packets.
  std::size_t queue_packets(Nanos now) {
    drain(now);
    return waiting_.size();
  }
  /// The earliest time, not before `now`, at which at most `packets` are waiting or being sent if no more are offered.
  Nanos time_of_queue(std::size_t packets, Nanos now);

  /// The time at which everything offered so far has been sent, rounded to whole nanoseconds.
  [[nodiscard]] Nanos free_at() const { return free_at_; }
  /// Packets not yet returned by pop(), duplicates included.
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

  /// Removes the packets that have left the queue by `now`. It is evaluated lazily, so that departures need no events.
  void drain(Nanos now) {
    while (!waiting_.empty() && waiting_.front().departure <= now) {
      backlog_ -= waiting_.front().bytes;
      waiting_.pop();
    }
  }
  Nanos serialise(std::uint32_t bytes, Nanos now);
  bool apply_faults(Admission& admission, Nanos& at);
  void hold(Handle packet, Nanos at);
  std::optional<Delivery> pop_held(Nanos now);

  GrowableRing<Delivery> flying_;  // in the order of arrival at the far end, from the moment of admission
  GrowableRing<Waiting> waiting_;  // packets in the buffer, lost ones included
  Bytes backlog_ = 0;              // sum of bytes in waiting_

  // The link is free at free_at_ + free_fraction_ / rate nanoseconds.
  Nanos free_at_;
  std::uint64_t free_fraction_ = 0;
  // Cache of the last packet size's serialisation time, split in the same way: packets often come in runs of one size,
  // and the division is the most expensive part of offer().
  std::uint32_t latest_bytes_ = 0;
  Nanos latest_time_;
  std::uint64_t latest_fraction_ = 0;

  LinkCounters counters_;
  std::vector<Held> held_;  // min-heap by arrival time: packets delayed by a reordering fault
  std::uint64_t held_order_ = 0;
  Nanos newest_at_;  // arrival time of the last packet offered, for its copy
  bool newest_held_ = false;
  bool faulty_ = false;
  EcnMarker marker_;
  Random fault_random_;
  LinkConfig config_;
};

}  // namespace mltcp::fabric
