// A link whose output port has a queue for each class of packets (IEEE 802.1Q). In contrast to Link (link.h), which has
// one FIFO queue, it supports strict priorities, memory that the ports of a switch share, and pauses (PFC). Sans-IO.
// Whenever the link is free, it sends the first packet of the highest class that has packets and is not paused. An
// inner Link serialises and delays this packet and applies faults.
//
// In contrast to Link, a packet's departure is not known when the packet arrives, so each departure is an event. A
// packet that is being sent is never preempted. Its buffer is released when its last bit has left, rounded down to a
// whole nanosecond.
//
// Each class has a buffer of LinkConfig::buffer_bytes, or all classes share the memory of the switch (switch_memory.h).
// ECN marking uses the queue length of the packet's class.
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
    bool admitted = false;  ///< false if the packet was dropped because the buffer was full; the caller then frees it
    bool mark = false;      ///< the caller must set CE in the packet
  };
  /// A packet whose transmission starts now, with its faults (see Link::Admission).
  struct Start {
    Handle packet = 0;
    std::uint32_t bytes = 0;
    Link::Admission admission;
  };

  /// `classes` is 1 to 8. Priorities of `classes` and above are mapped to the last class. `memory` may be null; it must
  /// outlive the link. Throws InputError if `config` or `classes` is out of range.
  PriorityLink(const LinkConfig& config, std::uint32_t classes, SwitchMemory* memory);

  /// Offers a packet that the switch received over link `ingress`. `bytes` is the length on the wire, above 0. Call
  /// start() after each offer().
  Admission offer(Handle packet, std::uint32_t bytes, bool ecn_capable, std::uint32_t priority, std::uint32_t ingress,
                  Nanos now);
  /// Releases the buffers of packets that have left by `now`, and starts to send the next packet if the link is free.
  /// After each offer(), and at next_event(), call start() until it returns nothing.
  std::optional<Start> start(Nanos now);
  /// Adds the copy that the last start() requested (see Link::offer_copy()).
  void offer_copy(Handle packet) { wire_.offer_copy(packet); }
  /// Pauses (`on` is true) or resumes (`on` is false) the class of `priority` from time `at` on. `at` must not decrease
  /// between calls.
  void pause(std::uint32_t priority, bool on, Nanos at) { pauses_.push({at, class_of(priority), on}); }

  /// Returns the time at which start() or pop() must be called next; never() if nothing is pending.
  [[nodiscard]] Nanos next_event() const {
    Nanos next = wire_.next_delivery();
    if (busy_ && wire_.free_at() < next) next = wire_.free_at();
    if (!pauses_.empty() && pauses_.front().at < next) next = pauses_.front().at;
    return next;
  }
  /// Removes and returns the next packet that has reached the far end by `now`.
  std::optional<Link::Delivery> pop(Nanos now) { return wire_.pop(now); }

  [[nodiscard]] std::uint32_t classes() const { return classes_; }
  /// Returns the bytes that are waiting or being sent in the class of `priority`, as of the last start() or offer().
  [[nodiscard]] Bytes queue_bytes(std::uint32_t priority) const { return queues_[class_of(priority)].bytes; }
  [[nodiscard]] bool paused(std::uint32_t priority) const { return (paused_ >> class_of(priority) & 1) != 0; }
  /// Returns the class to which `priority` is mapped.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t priority) const {
    return priority < classes_ ? priority : classes_ - 1;
  }
  /// Returns counters as Link does, except that max_queue_bytes is the maximum queue of a single class.
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  /// Returns the maximum queue of any class, in bytes, since the last call of this function or, at the first call,
  /// since the link's creation.
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
    Bytes bytes = 0;  // bytes of the class, including the packet being sent
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
  Bytes longest_queue_ = 0;  // maximum queue of any class since take_longest_queue() was last called
  EcnMarker marker_;
};

}  // namespace mltcp::fabric
