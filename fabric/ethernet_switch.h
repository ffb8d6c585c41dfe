// A learning Ethernet switch (transparent bridge, IEEE 802.1D-2004 clause 7). Sans-IO: time is an argument, frames are
// opaque handles of which the caller tells the facts. It learns from source addresses (mac_table.h); a frame to a known
// address leaves by its port, others by every port but the one they came from. Each port has an output with queues by
// class, rate, delay, ECN marking and faults: a PriorityLink.
//
// There is no spanning tree: a loop of switches would carry a flooded frame round for ever. Tags of VLANs are carried,
// and their priority heeded, but they don't part the network. Frames to the reserved addresses 01:80:C2:00:00:00 to 0F
// (pause frames, spanning tree, LLDP, LACP) are link-local and are not forwarded.
//
// A frame that goes out by several ports is copied for all but one: marks and damage are of one copy's bytes alone, and
// a driver that transmits in place never meets a buffer that two ports share.
//
// Each output has a time of its own: all that is due happens at its exact time, however late the caller comes. So
// uneven calls delay frames but don't change an output's rate.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/mac_table.h"
#include "mltcp/fabric/priority_link.h"

namespace mltcp::fabric {

/// What a switch has to know of a frame.
struct FrameFacts {
  MacNumber destination = 0;
  MacNumber source = 0;     ///< not 0, not a group
  std::uint32_t bytes = 0;  ///< above 0; what rates and buffers count
  std::uint8_t priority = 0;
  bool ecn_capable = false;
};

struct SwitchPortConfig {
  LinkConfig output;
  std::uint32_t classes = 1;  ///< 1 to 8: see PriorityLink
};

/// What a port received, and what became of it before it reached an output; LinkCounters tell the rest.
struct SwitchPortCounters {
  std::uint64_t received_frames = 0;
  Bytes received_bytes = 0;
  std::uint64_t flooded_frames = 0;   ///< to every other port: to a group, or to nobody known
  std::uint64_t filtered_frames = 0;  ///< not forwarded: reserved, or the destination is where they came from
  std::uint64_t learnt = 0;           ///< addresses; those that aged count again when they are heard again
  std::uint64_t moved = 0;            ///< addresses that were learnt on another port before
  std::uint64_t table_full = 0;       ///< frames whose source found no place in the table
  std::uint64_t no_copy = 0;          ///< copies to this port's output that did not happen for want of memory
};

/// The caller's frames.
template <typename T>
concept SwitchFrames = requires(T frames, Link::Handle frame, std::uint32_t port, std::uint64_t bits, Nanos at) {
  /// Another frame with the same bytes; 0 if there is no memory.
  { frames.copy(frame) } -> std::same_as<Link::Handle>;
  frames.mark(frame);          // sets CE; only of ECN-capable frames
  frames.damage(frame, bits);  // flips bits of it that the random number `bits` chooses
  frames.discard(frame);
  frames.deliver(port, frame, at);  // the last bit has crossed the output's link at time `at`
};

class EthernetSwitch {
 public:
  using Handle = Link::Handle;
  /// Bit n is port n.
  using PortSet = std::uint64_t;
  static constexpr std::uint32_t most_ports = 64;

  /// All ports are up. Throws InputError for fewer than 2 or more than most_ports ports, or a configuration out of
  /// range; of a port's, the message begins with "port N: ".
  EthernetSwitch(std::span<const SwitchPortConfig> ports, const MacTableConfig& table);

  /// Takes a frame that came in by port `ingress` at `now`, not before the time of any call before. It is the switch's
  /// until it hands it to frames.deliver() or frames.discard().
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

  /// Does what is due at the output of `port` by `now`: frames leave the queue, and reach the far end of the link.
  template <SwitchFrames Frames>
  void advance(std::uint32_t port, Nanos now, Frames& frames) {
    PriorityLink& output = *outputs_[port];
    for (Nanos at = output.next_event(); at <= now && !at.is_never(); at = output.next_event()) {
      while (const auto delivery = output.pop(at)) frames.deliver(port, delivery->packet, delivery->at);
      start(port, at, frames);
    }
  }

  /// When advance() has something to do at `port`; never() if not by itself.
  [[nodiscard]] Nanos next_event(std::uint32_t port) const { return outputs_[port]->next_event(); }

  /// A port that is down takes part in nothing: no frame is sent to it, and what was learnt there is forgotten. What is
  /// in its output goes on.
  void set_up(std::uint32_t port, bool up);
  [[nodiscard]] bool is_up(std::uint32_t port) const { return (up_ >> port & 1) != 0; }

  /// Hands all frames inside to frames.discard(). The switch is of no use then.
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
  /// See PriorityLink.
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
