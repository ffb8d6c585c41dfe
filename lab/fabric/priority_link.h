// A link whose output port has a queue for each class of packets (IEEE 802.1Q). It has strict priorities, memory shared
// by the ports of a switch, and pauses (PFC), which the FIFO queue of link.h lacks. Sans-IO. Whenever the link is free,
// it passes the first packet of the highest non-empty class that is not paused to an inner Link, which serialises and
// delays the packet and applies faults.
//
// Unlike in Link, a packet's departure is not known when the packet arrives, so each departure is an event. A packet
// that is being sent is never preempted. Its buffer is released at the whole nanosecond before its last bit has left.
//
// Buffer: each class has a queue of LinkConfig::buffer_bytes, or all share the switch's memory (switch_memory.h). ECN
// marking uses the queue of the packet's own class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/switch_memory.h"

namespace mltcp::fabric {

class PriorityLink {
 public:
  using Handle = Link::Handle;
  static constexpr std::uint32_t kMaxClasses = SwitchMemory::kClasses;

  struct Admission {
    bool admitted = false;  ///< false: the packet was dropped because the buffer was full; the caller frees it
    bool mark = false;      ///< set CE in the packet
  };
  /// A packet whose transmission starts now, and its faults: see Link::Admission.
  struct Start {
    Handle packet = 0;
    std::uint32_t bytes = 0;
    Link::Admission admission;
  };

  /// `classes`: 1 to 8; higher priorities are mapped to the last class. `memory` may be null and must outlive the link.
  /// Throws InputError if `config` or `classes` are out of range.
  PriorityLink(const LinkConfig& config, std::uint32_t classes, SwitchMemory* memory);

  /// Offers a packet of `bytes` on the wire, above 0, received over link `ingress` of the switch. Call start() next.
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, std::uint32_t priority, std::uint32_t ingress,
                  Nanos now);
  /// Releases the buffer of packets that have left by `now`, and starts to send the next packet if the link is free.
  /// Call it until it returns nothing, after each offer() and at next_event().
  std::optional<Start> start(Nanos now);
  /// Like Link::offer_copy(), for the packet of the last start().
  void offer_copy(Handle packet) { wire_.offer_copy(packet); }
  /// Pauses class `priority` at time `at`, or resumes it. `at` must not decrease between calls.
  void pause(std::uint32_t priority, bool on, Nanos at) { pauses_.push({at, class_of(priority), on}); }

  /// The time at which start() or pop() must be called next; never() if nothing is pending.
  [[nodiscard]] Nanos next_event() const {
    Nanos next = wire_.next_delivery();
    if (busy_ && wire_.free_at() < next) next = wire_.free_at();
    if (!pauses_.empty() && pauses_.front().at < next) next = pauses_.front().at;
    return next;
  }
  /// Removes and returns the next packet that has reached the far end by `now`.
  std::optional<Link::Delivery> pop(Nanos now) { return wire_.pop(now); }

  [[nodiscard]] std::uint32_t classes() const { return classes_; }
  /// Bytes of a class that are waiting or being sent, as of the last start() or offer().
  [[nodiscard]] Bytes queue_bytes(std::uint32_t priority) const { return queues_[class_of(priority)].bytes; }
  [[nodiscard]] bool paused(std::uint32_t priority) const { return (paused_ >> class_of(priority) & 1) != 0; }
  /// The class to which a packet's priority is mapped.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t priority) const {
    return priority < classes_ ? priority : classes_ - 1;
  }
  /// Counters as for a Link; max_queue_bytes is the maximum of a single class.
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  /// The maximum queue of any class since the last call, or since the link was created.
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
    Bytes bytes = 0;  // including the packet being sent
  };
  struct Pause {
    Nanos at;
    std::uint32_t number = 0;  // class
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
  std::array<Queue, kMaxClasses> queues_;
  std::uint32_t waiting_ = 0;  // bit mask of the classes that have packets waiting
  std::uint32_t paused_ = 0;   // bit mask of the paused classes
  GrowableRing<Pause> pauses_;
  bool busy_ = false;
  Waiting sending_;
  std::uint32_t sending_class_ = 0;
  LinkCounters counters_;
  Bytes longest_queue_ = 0;  // since take_longest_queue()
  EcnMarker marker_;
};

}  // namespace mltcp::fabric
