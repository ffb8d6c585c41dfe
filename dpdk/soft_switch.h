// The software switch in real time: a fabric::EthernetSwitch between the DPDK ports that it is given, of any kind. One
// thread polls them all: it takes what they received, lets the outputs do what is due, and sends.
//
// When a frame arrived, nobody tells; it is known to be after the round before. What a port has received since then
// counts as having come evenly: if all of it counted as of one instant, every time that the machine has other things to
// do would be a burst that fills buffers and marks frames. Outputs keep their rates exactly all the same. Sizes are of
// frames without the frame check sequence, preamble and gap between frames, as in all of this project: a rate of 1 Gbps
// is what a NIC of 1.03 Gbps would carry in frames of 1514 bytes.
//
// A port may be slower than its output: what it doesn't take at once waits in a short queue of its own, and what finds
// that queue full is dropped and counted. It is no part of the buffer, and nothing is marked there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/fabric/ethernet_switch.h"

namespace mltcp::dpdk {

struct SoftSwitchPort {
  std::uint16_t id = 0;             ///< DPDK's number of a started port, whose queues 0 are the switch's alone
  std::uint32_t frame_bytes = 0;    ///< of the longest frame that it carries, tags not counted; at most 16384
  fabric::SwitchPortConfig config;  ///< what is sent here
  /// Asked when a run begins and about every 100 ms of it; empty: the link is always up.
  std::function<bool()> link_is_up;
  bool has_interrupts = false;  ///< Port::has_interrupts()
  int receive_file = -1;        ///< Port::receive_file(0)
};

/// What the loop does when there is nothing to do. A sleep ends when a frame comes, if nothing waits in the switch and
/// all ports have interrupts. Else it is a nap of 50 us, or of a twelfth of the time in which the smallest buffer
/// empties if that is less: frames that come or leave in between are that late, though no output loses time by it.
/// Below 10 us it isn't worth it, and the loop pauses while anything waits. All end late by what the machine takes to
/// wake a thread.
enum class SwitchIdle : std::uint8_t { spin, pause, sleep };

struct SoftSwitchOptions {
  SwitchIdle idle = SwitchIdle::pause;
  fabric::MacTableConfig table;
};

/// What became of the frames of a port. All that was received: received_frames of fabric::SwitchPortCounters and the
/// next four. All that left the output: sent_frames, transmit_full, too_long, and those still waiting.
struct SoftSwitchCounters {
  std::uint64_t runts = 0;        ///< frames received that are no frames, like the next; discarded
  std::uint64_t bad_sources = 0;  ///< from a source address that no station has
  std::uint64_t cut_short = 0;    ///< longer than a buffer of the port, or with an IP length that lies
  std::uint64_t oversized = 0;    ///< longer than frame_bytes and two tags
  /// Of TCP and UDP, of those frames that were looked at (the first ones and a few later): their sender's kernel leaves
  /// checksums to a NIC that there is not, and their receiver will drop them. They are passed on all the same.
  std::uint64_t bad_checksums = 0;
  std::uint64_t sent_frames = 0;  ///< handed to the port
  Bytes sent_bytes = 0;
  std::uint64_t transmit_full = 0;  ///< the port took no more
  std::uint64_t too_long = 0;       ///< for this port, though not for the one that they came from
  std::uint64_t link_changes = 0;
};

class SoftSwitch {
 public:
  /// `eal` and the ports outlive it. Throws InputError for a configuration out of range, RunError if memory is short.
  SoftSwitch(const Eal& eal, std::vector<SoftSwitchPort> ports, const SoftSwitchOptions& options = {});
  /// Discards the frames inside.
  ~SoftSwitch();
  SoftSwitch(const SoftSwitch&) = delete;
  SoftSwitch& operator=(const SoftSwitch&) = delete;

  /// EalOptions::memory_mb for its copies of frames; ports and their buffers come on top. A port whose frames may all
  /// be inside needs frames_inside() buffers to spare.
  static std::uint32_t memory_mb(const std::vector<SoftSwitchPort>& ports);
  static std::uint32_t frames_inside(const std::vector<SoftSwitchPort>& ports);

  /// Switches until now() is `until`, or `stop` is true: it is asked about every millisecond, every 20 of a sleep, and
  /// not at all if it is empty. Returns whether it stopped the run. The calling thread is pinned to the first core for
  /// that time.
  bool run(Nanos until, const std::function<bool()>& stop);
  /// Time since construction. It goes on between runs, but nothing is switched then.
  [[nodiscard]] Nanos now() const;

  /// One round at time `now`, not before that of the round before; returns when the next is due for what is inside. For
  /// tests that keep time themselves.
  Nanos step(Nanos now);

  [[nodiscard]] const SoftSwitchCounters& counters(std::uint32_t port) const;
  /// The switch, for its counters, queues and state of ports.
  [[nodiscard]] const fabric::EthernetSwitch& bridge() const;
  /// See fabric::PriorityLink.
  Bytes take_longest_queue(std::uint32_t port);
  [[nodiscard]] const LoopCounters& loop() const;
  /// Copies of frames that are inside.
  [[nodiscard]] std::uint32_t copies_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
