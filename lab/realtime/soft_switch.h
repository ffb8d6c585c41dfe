// The software switch in real time: a fabric::EthernetSwitch between given DPDK ports of any kind. One thread polls all
// ports: it receives, advances the outputs, and sends.
//
// Exact arrival times of frames are unknown, except that they are after the previous round. All frames that a port has
// received since then are assumed to have arrived evenly spaced: assuming a single instant would turn every scheduling
// delay into a burst that fills buffers and marks frames. Outputs keep their exact rates in any case. Sizes are those
// of frames without frame check sequence, preamble and inter-frame gap, as in all of this project: a rate of 1 Gbps
// corresponds to a NIC of 1.03 Gbps with frames of 1514 bytes.
//
// A port may be slower than its output: frames that it does not accept at once wait in a short queue, and are dropped
// and counted when that is full. This queue is not part of the buffer and does not mark.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/fabric/ethernet_switch.h"
#include "mltcp/transport/ethernet/frame_tap.h"

namespace mltcp::realtime {

struct SoftSwitchPort {
  std::uint16_t id = 0;             ///< DPDK's number of a started port; the switch uses its queues 0 exclusively
  std::uint32_t frame_bytes = 0;    ///< maximum frame without VLAN tags, at most 16384
  fabric::SwitchPortConfig config;  ///< of the output to this port
  /// Called when a run begins and about every 100 ms; empty: the link is always up.
  std::function<bool()> link_is_up;
  bool has_interrupts = false;     ///< Port::has_interrupts()
  int receive_file = -1;           ///< Port::receive_file(0)
  encap::FrameTap* tap = nullptr;  ///< sees frames received from and sent to the port; must outlive the switch
};

/// What the loop does when idle. A sleep ends when a frame arrives, if nothing is queued in the switch and all ports
/// have interrupts. Otherwise it is a nap of 50 us, or 1/12 of the time in which the smallest buffer drains if that is
/// less: frames are delayed by up to that, but outputs lose no capacity. If it would be below 10 us, the loop pauses
/// instead while anything is queued. All sleeps end late by the machine's wake-up latency.
enum class SwitchIdle : std::uint8_t { spin, pause, sleep };

struct SoftSwitchOptions {
  SwitchIdle idle = SwitchIdle::pause;
  fabric::MacTableConfig table;
};

/// Frame counters of a port. Received in total: received_frames of fabric::SwitchPortCounters plus runts, bad_sources,
/// cut_short and oversized. Sent by the output in total: sent_frames, transmit_full, too_long, and frames still
/// waiting.
struct SoftSwitchCounters {
  std::uint64_t runts = 0;        ///< too short; discarded
  std::uint64_t bad_sources = 0;  ///< invalid source address; discarded
  std::uint64_t cut_short = 0;    ///< longer than a buffer of the port, or with an inconsistent IP length; discarded
  std::uint64_t oversized = 0;    ///< longer than frame_bytes and two tags; discarded
  /// TCP and UDP frames with invalid checksums among those sampled (the first ones and a few later): the sender's
  /// kernel relies on checksum offload that does not exist here, and the receiver will drop them. They are forwarded
  /// nevertheless.
  std::uint64_t bad_checksums = 0;
  std::uint64_t sent_frames = 0;  ///< accepted by the port
  Bytes sent_bytes = 0;
  std::uint64_t transmit_full = 0;  ///< dropped as the port accepted no more
  std::uint64_t too_long = 0;       ///< dropped as too long for this port
  std::uint64_t link_changes = 0;
};

class SoftSwitch {
 public:
  /// `eal` and the ports must outlive it. Throws InputError if the configuration is out of range, RunError if memory is
  /// short.
  SoftSwitch(const dpdk::Eal& eal, std::vector<SoftSwitchPort> ports, const SoftSwitchOptions& options = {});
  /// Discards all frames inside.
  ~SoftSwitch();
  SoftSwitch(const SoftSwitch&) = delete;
  SoftSwitch& operator=(const SoftSwitch&) = delete;

  /// Memory in MiB (EalOptions::memory_mb) for copies of frames, in addition to ports and their buffers; and the number
  /// of spare buffers that a port needs if all frames inside may be its own.
  static std::uint32_t memory_mb(const std::vector<SoftSwitchPort>& ports);
  static std::uint32_t frames_inside(const std::vector<SoftSwitchPort>& ports);

  /// Switches until now() is `until`, or until `stop` returns true; `stop` is called about every millisecond, every 20
  /// ms of a sleep, and may be empty. Returns whether it stopped the run. The calling thread is pinned to the first
  /// core during the run.
  bool run(Nanos until, const std::function<bool()>& stop);
  /// Time since construction; continues between runs.
  [[nodiscard]] Nanos now() const;

  /// One round at time `now`, which must not decrease. Returns when the next round is due for frames inside. For tests
  /// with their own clock.
  Nanos step(Nanos now);

  [[nodiscard]] const SoftSwitchCounters& counters(std::uint32_t port) const;
  /// The switch, for its counters, queues and state of ports.
  [[nodiscard]] const fabric::EthernetSwitch& bridge() const;
  /// See fabric::PriorityLink.
  Bytes take_longest_queue(std::uint32_t port);
  [[nodiscard]] const LoopCounters& loop() const;
  /// Number of copies of frames inside.
  [[nodiscard]] std::uint32_t copies_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::realtime
