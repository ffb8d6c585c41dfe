// One direction of a link with the output queue that feeds it: drop-tail, ECN marking, serialisation at the
// link's rate, propagation delay, and faults. Sans-IO: time is an argument, packets are opaque handles. The
// simulator and the real-time software switch run this same code.
//
// The queue is first in, first out at a constant rate, so the departure of a packet is known when it is
// admitted: max(arrival, departure of its predecessor) + bytes / rate. A packet occupies the buffer until its
// last bit has left.
//
// ECN marking is on the instantaneous queue as in DCTCP (RFC 8257 section 3.1) and in RED-like switch
// configurations: below kmin never, from kmin to kmax with a probability rising linearly to pmax, above kmax always.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"

namespace mltcp::fabric {

struct EcnConfig {
  bool enabled = false;
  Bytes kmin_bytes = 0;
  /// Not below kmin_bytes. Equal to it: a step, as DCTCP uses.
  Bytes kmax_bytes = 0;
  /// Marking probability at kmax, in [0, 1].
  double pmax = 1.0;
};

/// Faults that a link does to packets, each decided independently per packet from the link's seed.
struct FaultConfig {
  double loss = 0;         ///< probability in [0, 1] that a packet vanishes
  double duplication = 0;  ///< probability that it arrives twice
  double corruption = 0;   ///< probability that bits of it are flipped
  double reordering = 0;   ///< probability that it is held back by up to `reorder_delay`
  Nanos reorder_delay{100'000};

  [[nodiscard]] bool any() const { return loss > 0 || duplication > 0 || corruption > 0 || reordering > 0; }
};

struct LinkConfig {
  Rate rate;                    ///< 0 is refused
  Nanos delay;                  ///< one way, not negative
  Bytes buffer_bytes = 250'000; ///< most bytes that wait or are being sent; 0 is unlimited
  EcnConfig ecn;
  FaultConfig faults;
  std::uint64_t seed = 1;
};

/// What a link counted since it was made.
struct LinkCounters {
  std::uint64_t offered_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< for want of buffer
  std::uint64_t marked_packets = 0;
  std::uint64_t sent_packets = 0;  ///< admitted
  Bytes sent_bytes = 0;            ///< admitted, on the wire
  Bytes max_queue_bytes = 0;
  std::uint64_t lost_packets = 0;  ///< by fault, like the next three
  std::uint64_t duplicated_packets = 0;
  std::uint64_t corrupted_packets = 0;
  std::uint64_t reordered_packets = 0;
};

class Link {
 public:
  /// A packet in the caller's hands: a pointer or an index.
  using Handle = std::uint64_t;

  /// What became of an offered packet, and what the caller has to do with it.
  struct Admission {
    bool admitted = false;   ///< false: dropped; the caller frees the packet
    bool mark = false;       ///< set CE in the packet
    bool duplicate = false;  ///< copy the packet and hand the copy to offer_copy()
    bool corrupt = false;    ///< flip bits of the packet as `corrupt_bits` says
    std::uint64_t corrupt_bits = 0;  ///< random number from which the caller derives which bits to flip
  };

  struct Delivery {
    Handle packet = 0;
    Nanos at;  ///< when its last bit reached the far end
  };

  /// Throws InputError if `config` is out of range.
  explicit Link(const LinkConfig& config);

  /// Offers a packet of `bytes` on the wire at time `now` (not before the previous call's).
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, Nanos now);
  /// The copy that Admission::duplicate asked for; arrives together with its original, and takes no buffer.
  void offer_copy(Handle packet, Nanos now);

  /// When the next packet reaches the far end; Nanos::never() when the link is empty.
  [[nodiscard]] Nanos next_delivery() const;
  /// Takes the next packet that has reached the far end by `now`, in order of arrival there.
  std::optional<Delivery> pop(Nanos now);

  /// Bytes that wait or are being sent at `now`.
  Bytes queue_bytes(Nanos now);
  [[nodiscard]] std::size_t packets_inside() const;
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  [[nodiscard]] const LinkConfig& config() const { return config_; }

 private:
  LinkConfig config_;
  LinkCounters counters_;
};

}  // namespace mltcp::fabric
