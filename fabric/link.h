// One direction of a link with the output queue that feeds it: drop-tail, ECN marking, serialisation at the
// link's rate, propagation delay, and faults. Sans-IO: time is an argument, packets are opaque handles. The
// simulator and the real-time software switch run this same code.
//
// The queue is first in, first out at a constant rate, so the departure of a packet is known when it is
// admitted: max(arrival, departure of its predecessor) + bytes / rate. A packet occupies the buffer until its
// last bit has left. Fractions of a nanosecond are carried from packet to packet, so that a busy link runs at
// exactly its rate however short its packets; a single departure is rounded up to the next nanosecond.
//
// ECN marking (ecn_marker.h) applies to ECN-capable packets only. Marking never drops: a packet that isn't ECN-capable
// passes unmarked wherever a capable one would be marked, and only a full buffer drops it.
//
// Faults act on the link behind the queue: whatever becomes of a packet there, it has used its time on the link.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/fabric/ecn_marker.h"

namespace mltcp::fabric {

/// Faults that a link does to packets, each decided independently per packet from the link's seed.
struct FaultConfig {
  double loss = 0;         ///< probability in [0, 1] that a packet vanishes
  double duplication = 0;  ///< probability that it arrives twice
  double corruption = 0;   ///< probability that bits of it are flipped
  /// Probability that it is held back, by a time uniform in (0, reorder_delay]; what follows closer than that
  /// overtakes it.
  double reordering = 0;
  Nanos reorder_delay{100'000};  ///< above 0, at most 1000 s

  [[nodiscard]] bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || reordering > 0; }
};

struct LinkConfig {
  Rate rate;                     ///< 8 bps to 1000 Tbps
  Nanos delay;                   ///< one way, 0 to 1000 s
  Bytes buffer_bytes = 250'000;  ///< most bytes that wait or are being sent; 0 is unlimited
  EcnConfig ecn;
  FaultConfig faults;
  std::uint64_t seed = 1;  ///< of marking and faults, which draw from streams of their own
};

/// What a link counted since it was made. offered = dropped + sent; sent + duplicated - lost have arrived at the
/// far end or are on their way.
struct LinkCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< for want of buffer
  std::uint64_t marked_packets = 0;
  std::uint64_t sent_packets = 0;  ///< passed the buffer, among them those lost later; without duplicates
  Bytes sent_bytes = 0;            ///< of the same packets, on the wire
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< by fault, like the next three
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
  std::uint64_t pauses = 0;  ///< times that a class was told to pause (see PriorityLink)
};

/// Throws InputError if `config` is out of range.
void check(const LinkConfig& config);

class Link {
 public:
  /// A packet in the caller's hands: a pointer or an index.
  using Handle = std::uint64_t;

  /// What became of an offered packet, and what the caller has to do with it.
  struct Admission {
    /// The link keeps the packet and pop() will return it. False: it was dropped for want of buffer, or lost; the
    /// caller frees it.
    bool admitted = false;
    bool lost = false;               ///< with admitted == false: it passed the buffer, used the link, and vanished
    bool mark = false;               ///< set CE in the packet
    bool duplicate = false;          ///< copy the packet, as it is before corruption, and hand the copy to offer_copy()
    bool corrupt = false;            ///< flip bits of the packet as `corrupt_bits` says
    std::uint64_t corrupt_bits = 0;  ///< random number from which the caller derives which bits to flip
    Nanos departure;                 ///< when its last bit leaves the queue; only if admitted or lost
  };

  struct Delivery {
    Handle packet = 0;
    Nanos at;  ///< when its last bit reached the far end
  };

  /// Throws InputError if `config` is out of range.
  explicit Link(const LinkConfig& config);

  /// Offers a packet of `bytes` on the wire, above 0, at time `now` (0 or later, not before the previous call's).
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, Nanos now);
  /// The copy that Admission::duplicate of the latest offer() asked for; arrives together with its original, right
  /// behind it, and takes no buffer and no time on the link.
  void offer_copy(Handle packet);

  /// When the next packet reaches the far end; Nanos::never() when none is on its way. Always later than the
  /// `now` of the offer() that sent it.
  [[nodiscard]] Nanos next_delivery() const {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (held_.empty()) [[likely]]
      return next;
    return held_.front().at < next ? held_.front().at : next;
  }
  /// Takes the next packet that has reached the far end by `now`, in order of arrival there.
  std::optional<Delivery> pop(Nanos now) {
    const Nanos next = flying_.empty() ? Nanos::never() : flying_.front().at;
    if (!held_.empty() && held_.front().at < next) [[unlikely]]
      return pop_held(now);
    if (next > now || next.is_never()) return std::nullopt;
    const Delivery delivery = flying_.front();
    flying_.pop();
    return delivery;
  }

  /// The packet that pop() will most likely return next; packets must be inside.
  [[nodiscard]] Handle next_packet() const { return flying_.empty() ? held_.front().packet : flying_.front().packet; }

  /// Bytes that wait or are being sent at `now` (not before the previous offer's). A packet counts in full until
  /// its departure, and not at all from then on.
  Bytes queue_bytes(Nanos now) {
    drain(now);
    return backlog_;
  }
  /// The same in packets.
  std::size_t queue_packets(Nanos now) {
    drain(now);
    return waiting_.size();
  }
  /// The earliest time, `now` or later, at which at most `packets` wait or are being sent if no more are offered.
  Nanos time_of_queue(std::size_t packets, Nanos now);

  /// The whole nanosecond in which all that was offered has been sent.
  [[nodiscard]] Nanos free_at() const { return free_at_; }
  /// Packets that pop() has yet to return, duplicates included.
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
    std::uint64_t order = 0;  // of packets that arrive at the same time
    Handle packet = 0;
  };

  /// Forgets what has left the queue by `now`. Done when somebody asks, so that a departure is no event.
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
  GrowableRing<Waiting> waiting_;  // what occupies the buffer, lost packets included
  Bytes backlog_ = 0;              // sum of waiting_

  // The link is free at free_at_ + free_fraction_ / rate nanoseconds.
  Nanos free_at_;
  std::uint64_t free_fraction_ = 0;
  // The serialisation time of the latest size, split likewise: packets mostly come in runs of one size, and a
  // division costs more than the rest of offer().
  std::uint32_t latest_bytes_ = 0;
  Nanos latest_time_;
  std::uint64_t latest_fraction_ = 0;

  LinkCounters counters_;
  std::vector<Held> held_;  // a heap by arrival: packets that a reordering fault holds back
  std::uint64_t held_order_ = 0;
  Nanos newest_at_;  // arrival of the packet offered last, for its copy
  bool newest_held_ = false;
  bool faulty_ = false;
  EcnMarker marker_;
  Random fault_random_;
  LinkConfig config_;
};

}  // namespace mltcp::fabric
