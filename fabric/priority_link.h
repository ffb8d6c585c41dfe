// A link whose output port has a queue for each class of packets (IEEE 802.1Q), for networks that need more than the
// first-in-first-out queue of link.h: strict priorities, memory shared by the ports of a switch, and pauses (PFC).
// Sans-IO like Link, and built on one: whenever the link is free, the first packet of the highest class that has one
// and isn't paused is handed to a Link, which serialises it, delays it and does its faults.
//
// Unlike there, the departure of a packet isn't known when it arrives, so each departure is an event of its own. A
// packet that is being sent is never interrupted. Its buffer is free in the whole nanosecond before its last bit has
// left.
//
// Buffer: each class has a queue of LinkConfig::buffer_bytes, or all of them take from the switch's memory
// (switch_memory.h). ECN marking goes by the queue of the packet's own class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/switch_memory.h"

namespace mltcp::fabric {

class PriorityLink {
 public:
  using Handle = Link::Handle;
  static constexpr std::uint32_t most_classes = SwitchMemory::classes;

  struct Admission {
    bool admitted = false;  ///< false: dropped for want of buffer, the caller frees it
    bool mark = false;      ///< set CE in the packet
  };
  /// A packet that begins to be sent now, and what the link does to it: see Link::Admission.
  struct Start {
    Handle packet = 0;
    std::uint32_t bytes = 0;
    Link::Admission admission;
  };

  /// With 1 to 8 `classes`; packets of a priority beyond the last class are of the last. `memory`, which outlives the
  /// link, may be null. Throws InputError if `config` or `classes` are out of range.
  PriorityLink(const LinkConfig& config, std::uint32_t classes, SwitchMemory* memory);

  /// Offers a packet of `bytes` on the wire, above 0, that came over link `ingress` of the switch. Call start() next.
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, std::uint32_t priority, std::uint32_t ingress,
                  Nanos now);
  /// Gives back the buffer of what has left by `now`, and begins to send the next packet if the link is free and there
  /// is one. To be called until it returns nothing, after each offer() and when next_event() has come.
  std::optional<Start> start(Nanos now);
  /// See Link; for the packet of the latest start().
  void offer_copy(Handle packet) { wire_.offer_copy(packet); }
  /// A pause (or its end) of class `priority` takes effect at `at`, not before that of the call before.
  void pause(std::uint32_t priority, bool on, Nanos at) { pauses_.push({at, class_of(priority), on}); }

  /// When start() or pop() has something to do; never() if not by itself.
  [[nodiscard]] Nanos next_event() const {
    Nanos next = wire_.next_delivery();
    if (busy_ && wire_.free_at() < next) next = wire_.free_at();
    if (!pauses_.empty() && pauses_.front().at < next) next = pauses_.front().at;
    return next;
  }
  /// Takes the next packet that has reached the far end by `now`.
  std::optional<Link::Delivery> pop(Nanos now) { return wire_.pop(now); }

  /// Bytes of a class that wait or are being sent, as of the latest call of start() or offer().
  [[nodiscard]] Bytes queue_bytes(std::uint32_t priority) const { return queues_[class_of(priority)].bytes; }
  [[nodiscard]] bool paused(std::uint32_t priority) const { return (paused_ >> class_of(priority) & 1) != 0; }
  /// The class of a packet.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t priority) const {
    return priority < classes_ ? priority : classes_ - 1;
  }
  /// As of a Link; max_queue_bytes is of the fullest class.
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  /// The longest queue of a class since the last call, or since the beginning.
  Bytes take_longest_queue() { return std::exchange(longest_queue_, fullest()); }
  [[nodiscard]] const LinkConfig& config() const { return config_; }

 private:
  struct Waiting {
    Handle packet = 0;
    std::uint32_t bytes = 0;
    std::uint32_t ingress = 0;
  };
  struct Queue {
    GrowableRing<Waiting> packets;
    Bytes bytes = 0;  // with the packet that is being sent
  };
  struct Pause {
    Nanos at;
    std::uint32_t number = 0;  // of the class
    bool on = false;
  };

  void apply_pauses(Nanos now);
  void finish(Nanos now);
  [[nodiscard]] Bytes fullest() const {
    Bytes bytes = 0;
    for (const Queue& queue : queues_) bytes = std::max(bytes, queue.bytes);
    return bytes;
  }

  LinkConfig config_;
  std::uint32_t classes_;
  SwitchMemory* memory_;
  Link wire_;
  std::array<Queue, most_classes> queues_;
  std::uint32_t waiting_ = 0;  // bit mask of the classes that have packets waiting
  std::uint32_t paused_ = 0;   // likewise
  GrowableRing<Pause> pauses_;
  bool busy_ = false;
  Waiting sending_;
  std::uint32_t sending_class_ = 0;
  LinkCounters counters_;
  Bytes longest_queue_ = 0;  // since take_longest_queue()
  EcnMarker marker_;
};

}  // namespace mltcp::fabric
