// A learning Ethernet switch (transparent bridge, IEEE 802.1D-2004 clause 7). Sans-IO: time is an argument, and frames
// are opaque handles whose properties the caller states. The switch learns source addresses (mac_table.h). If the port
// of a destination address is known, the switch sends the frame to this port. If not, the switch sends the frame to all
// ports except the ingress port. The output of each port is a PriorityLink with priority queues, rate, delay, ECN
// marking and faults.
//
// There is no spanning tree: in a loop of switches a flooded frame would circulate for ever. The switch preserves VLAN
// tags and uses the priorities in them, but does not separate VLANs. Frames to the reserved addresses 01:80:C2:00:00:00
// to 0F (pause frames, spanning tree, LLDP, LACP) are link-local and are not forwarded.
//
// A frame for n ports is copied n - 1 times. A copy is needed because each port marks and damages its frame separately.
// Besides, a driver that transmits in place must not share a buffer between ports.
//
// Events of an output take effect at their exact times, even if the caller is late. So a late call delays frames but
// does not change the rate of an output.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/mac_table.h"
#include "mltcp/lab/fabric/priority_link.h"

namespace mltcp::fabric {

/// The properties of a frame that the switch needs.
struct FrameFacts {
  MacNumber destination = 0;
  MacNumber source = 0;     ///< must be neither 0 nor a group address
  std::uint32_t bytes = 0;  ///< length in bytes for rates and buffers; above 0
  std::uint8_t priority = 0;
  bool ecn_capable = false;
};

struct SwitchPortConfig {
  LinkConfig output;
  std::uint32_t classes = 1;  ///< number of priority classes, 1 to 8: see PriorityLink
};

/// Counters of frames from their reception until they enter output queues. From there on, the LinkCounters of each
/// output count them.
struct SwitchPortCounters {
  std::uint64_t received_frames = 0;
  Bytes received_bytes = 0;
  /// Frames sent to all other ports, because the destination is a group address or unknown.
  std::uint64_t flooded_frames = 0;
  /// Frames not forwarded, because the destination is a reserved address, or is on the ingress port or on a port that
  /// is down.
  std::uint64_t filtered_frames = 0;
  std::uint64_t learnt = 0;  ///< addresses learnt; an address counts again if it is learnt after it expired
  /// Number of times that an address moved to this port from a port on which it had been learnt.
  std::uint64_t moved = 0;
  std::uint64_t table_full = 0;  ///< frames whose source address did not fit into the table
  std::uint64_t no_copy = 0;     ///< copies for this port that could not be made for lack of memory
};

/// Operations on frames that the caller implements.
template <typename T>
concept SwitchFrames = requires(T frames, Link::Handle frame, std::uint32_t port, std::uint64_t bits, Nanos at) {
  /// Returns a copy of the frame, or 0 if no memory is available.
  { frames.copy(frame) } -> std::same_as<Link::Handle>;
  frames.mark(frame);          // sets CE; called for ECN-capable frames only
  frames.damage(frame, bits);  // flips bits selected by the random number `bits`
  frames.discard(frame);
  frames.deliver(port, frame, at);  // the last bit reaches the far end of the output's link at time `at`
};

class EthernetSwitch {
 public:
  using Handle = Link::Handle;
  /// A set of ports: bit n stands for port n.
  using PortSet = std::uint64_t;
  static constexpr std::uint32_t kMaxPorts = 64;

  /// Creates a switch with all ports up. Throws InputError if the number of ports is not from 2 to kMaxPorts, or if a
  /// configuration is out of range. If a port's configuration is wrong, the message begins with "port N: ".
  EthernetSwitch(std::span<const SwitchPortConfig> ports, const MacTableConfig& table);

  /// Processes a frame received on port `ingress` at `now`, which must not decrease between calls. The switch owns the
  /// frame until it calls frames.deliver() or frames.discard().
  template <SwitchFrames Frames>
  void receive(std::uint32_t ingress, Handle frame, const FrameFacts& facts, Nanos now, Frames& frames) {
    PortSet out = forward(ingress, facts, now);
    if (out == 0) {
      frames.discard(frame);
      return;
    }
    while (!std::has_single_bit(out)) {
      const auto port = static_cast<std::uint32_t>(std::countr_zero(out));
      out &= out - 1;
      const Handle copy = frames.copy(frame);
      if (copy == 0)
        ++counters_[port].no_copy;
      else
        enter(port, ingress, copy, facts, now, frames);
    }
    enter(static_cast<std::uint32_t>(std::countr_zero(out)), ingress, frame, facts, now, frames);
  }

  /// Processes all events of the output of `port` up to `now`: frames leave the queue or reach the far end of the link.
  template <SwitchFrames Frames>
  void advance(std::uint32_t port, Nanos now, Frames& frames) {
    PriorityLink& output = *outputs_[port];
    for (Nanos at = output.next_event(); at <= now && !at.is_never(); at = output.next_event()) {
      while (const auto delivery = output.pop(at)) frames.deliver(port, delivery->packet, delivery->at);
      start(port, at, frames);
    }
  }

  /// Returns the time at which advance() must be called for `port`; never() if nothing is pending.
  [[nodiscard]] Nanos next_event(std::uint32_t port) const { return outputs_[port]->next_event(); }

  /// Sets whether `port` is up. While a port is down, no frames enter its output, but frames inside the output
  /// continue. When a port goes down, the switch forgets the addresses learnt on it.
  void set_up(std::uint32_t port, bool up);
  [[nodiscard]] bool is_up(std::uint32_t port) const { return (up_ >> port & 1) != 0; }

  /// Passes all frames inside the switch to frames.discard(). The switch must not be used afterwards.
  template <SwitchFrames Frames>
  void drain(Frames& frames) {
    struct Discard {
      Handle copy(Handle) { return 0; }
      void mark(Handle) {}
      void damage(Handle, std::uint64_t) {}
      void discard(Handle frame) { frames.discard(frame); }
      void deliver(std::uint32_t, Handle frame, Nanos) { frames.discard(frame); }
      Frames& frames;
    } discard{frames};
    for (std::uint32_t port = 0; port < ports(); ++port) advance(port, Nanos(Nanos::never().count - 1), discard);
  }

  [[nodiscard]] std::uint32_t ports() const { return static_cast<std::uint32_t>(outputs_.size()); }
  [[nodiscard]] const SwitchPortCounters& counters(std::uint32_t port) const { return counters_[port]; }
  [[nodiscard]] const PriorityLink& output(std::uint32_t port) const { return *outputs_[port]; }
  /// Returns PriorityLink::take_longest_queue() of the output of `port`.
  Bytes take_longest_queue(std::uint32_t port) { return outputs_[port]->take_longest_queue(); }
  [[nodiscard]] const MacTable& table() const { return table_; }

 private:
  PortSet forward(std::uint32_t ingress, const FrameFacts& facts, Nanos now);

  template <SwitchFrames Frames>
  void enter(std::uint32_t port, std::uint32_t ingress, Handle frame, const FrameFacts& facts, Nanos now,
             Frames& frames) {
    advance(port, now, frames);
    const auto admission = outputs_[port]->offer(frame, facts.bytes, facts.ecn_capable, facts.priority, ingress, now);
    if (!admission.admitted) {
      frames.discard(frame);
      return;
    }
    if (admission.mark) frames.mark(frame);
    start(port, now, frames);
  }

  template <SwitchFrames Frames>
  void start(std::uint32_t port, Nanos now, Frames& frames) {
    PriorityLink& output = *outputs_[port];
    while (const auto begun = output.start(now)) {
      if (!begun->admission.admitted) {
        frames.discard(begun->packet);
        continue;
      }
      if (begun->admission.duplicate) {
        const Handle copy = frames.copy(begun->packet);
        if (copy == 0)
          ++counters_[port].no_copy;
        else
          output.offer_copy(copy);
      }
      if (begun->admission.corrupt) frames.damage(begun->packet, begun->admission.corrupt_bits);
    }
  }

  std::vector<std::unique_ptr<PriorityLink>> outputs_;
  std::vector<SwitchPortCounters> counters_;
  MacTable table_;
  PortSet up_;
};

}  // namespace mltcp::fabric
