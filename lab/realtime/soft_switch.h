// The software switch in real time: a fabric::EthernetSwitch between given DPDK ports of any kind. One thread polls all
// ports. It receives frames, advances the outputs, and sends frames.
//
// The exact arrival times of frames are unknown; only the round in which the switch receives them is known. The switch
// assumes that the frames of a port arrived evenly spaced since the previous round. If it assumed that all arrived at
// one instant, every scheduling delay would become a burst that fills buffers and marks frames. Outputs have their
// exact rates in any case.
//
// Frame sizes do not include frame check sequence, preamble and inter-frame gap, as everywhere in this project. So a
// rate of 1 Gbps corresponds to a NIC of 1.02 Gbps with frames of 1514 bytes.
//
// A port may be slower than its output. Frames that it does not accept at once wait in a short queue. When this queue
// is full, frames are dropped and counted. The queue is not part of the buffer and does not mark frames.
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
  /// DPDK's number of a started port; no other code may use receive queue 0 and transmit queue 0 of this port.
  std::uint16_t id = 0;
  std::uint32_t frame_bytes = 0;    ///< maximum bytes of a frame, VLAN tags not counted; at most 16384
  fabric::SwitchPortConfig config;  ///< configuration of the output to this port
  /// Returns whether the link is up. Called when a run begins and about every 100 ms. If empty, the link is always up.
  std::function<bool()> link_is_up;
  bool has_interrupts = false;     ///< value of Port::has_interrupts()
  int receive_file = -1;           ///< value of Port::receive_file(0)
  encap::FrameTap* tap = nullptr;  ///< called for frames received from and sent to the port; must outlive the switch
};

/// What the loop does when it is idle. With `sleep`, if nothing is queued in the switch and all ports have interrupts,
/// a sleep ends when a frame arrives. If not, the loop naps: it sleeps for 50 us, or for 1/12 of the time in which the
/// smallest buffer drains if this is less. A nap delays frames by up to its duration, but outputs lose no capacity. If
/// naps would be shorter than 10 us, the loop pauses, instead of napping, while anything is queued. All sleeps end late
/// by the wake-up latency of the machine.
enum class SwitchIdle : std::uint8_t { spin, pause, sleep };

struct SoftSwitchOptions {
  SwitchIdle idle = SwitchIdle::pause;
  fabric::MacTableConfig table;
};

/// Frame counters of a port. The port has received received_frames (fabric::SwitchPortCounters) + runts + bad_sources +
/// cut_short + oversized frames. The output has sent sent_frames + transmit_full + too_long frames, and the frames that
/// still wait for the port.
struct SoftSwitchCounters {
  std::uint64_t runts = 0;        ///< frames that are too short; discarded
  std::uint64_t bad_sources = 0;  ///< frames with an invalid source address; discarded
  /// Frames longer than a buffer of the port, or with an inconsistent IP length; discarded.
  std::uint64_t cut_short = 0;
  std::uint64_t oversized = 0;  ///< frames longer than frame_bytes plus two VLAN tags; discarded
  /// TCP and UDP frames with invalid checksums, e.g. because the sender's kernel relies on checksum offload, which does
  /// not exist here. Only the first frames and a sample of the later frames are verified. The switch forwards these
  /// frames, but the receivers will drop them.
  std::uint64_t bad_checksums = 0;
  std::uint64_t sent_frames = 0;  ///< frames accepted by the port
  Bytes sent_bytes = 0;
  std::uint64_t transmit_full = 0;  ///< frames dropped because the port accepted no more
  std::uint64_t too_long = 0;       ///< frames dropped because they are too long for this port
  std::uint64_t link_changes = 0;
};

class SoftSwitch {
 public:
  /// `eal` and the ports must outlive the switch. Throws InputError if the configuration is out of range, and RunError
  /// if memory is short.
  SoftSwitch(const dpdk::Eal& eal, std::vector<SoftSwitchPort> ports, const SoftSwitchOptions& options = {});
  /// Discards all frames inside the switch.
  ~SoftSwitch();
  SoftSwitch(const SoftSwitch&) = delete;
  SoftSwitch& operator=(const SoftSwitch&) = delete;

  /// memory_mb() returns the memory in MiB (EalOptions::memory_mb) for copies of frames. It does not include ports and
  /// their buffers. frames_inside() returns the number of spare buffers that each port needs, because all frames inside
  /// the switch may be in buffers of one port.
  static std::uint32_t memory_mb(const std::vector<SoftSwitchPort>& ports);
  static std::uint32_t frames_inside(const std::vector<SoftSwitchPort>& ports);

  /// Runs the switch until now() is `until`, or until `stop` returns true. `stop` may be empty; it is called about
  /// every millisecond while the switch is awake, and every 20 ms while it sleeps. Returns whether `stop` ended the
  /// run. Pins the calling thread to the first core during the run.
  bool run(Nanos until, const std::function<bool()>& stop);
  /// Returns the time since construction, which also passes between runs.
  [[nodiscard]] Nanos now() const;

  /// Runs one round at time `now`, which must not decrease. Returns when the next round is due for the frames inside
  /// the switch. For tests with their own clock.
  Nanos step(Nanos now);

  [[nodiscard]] const SoftSwitchCounters& counters(std::uint32_t port) const;
  /// Returns the switch, to read its counters, its queues and the state of its ports.
  [[nodiscard]] const fabric::EthernetSwitch& bridge() const;
  /// Returns PriorityLink::take_longest_queue() of the output of `port`.
  Bytes take_longest_queue(std::uint32_t port);
  [[nodiscard]] const LoopCounters& loop() const;
  /// Returns the number of copies of frames inside the switch.
  [[nodiscard]] std::uint32_t copies_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::realtime
