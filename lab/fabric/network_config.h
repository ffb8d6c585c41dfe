// Configuration of networks and their machines, for the simulator and for experiment files.
#pragma once

#include <cstdint>
#include <memory>

#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/switch_memory.h"

namespace mltcp::fabric {

/// The model of a polling loop (lab/sim/loop_model.h). All times are from 0 to kLongestLoopTime.
struct LoopModel {
  Nanos nap;          ///< maximum sleep while packets arrive; 0: no model, everything is processed at once
  Nanos late_min;     ///< minimum lateness of every sleep
  Nanos late_mean;    ///< mean lateness; at least late_min
  Nanos stall_every;  ///< mean time between two stalls; 0: none
  Nanos stall_mean;   ///< mean duration of a stall

  [[nodiscard]] bool on() const { return nap.count > 0; }
};

inline constexpr Nanos kLongestLoopTime{1'000'000'000};

/// The models of all hosts and switches of a network.
struct MachineModel {
  LoopModel host;
  LoopModel network_switch;  ///< always naps, never blocks
  std::uint64_t seed = 1;

  [[nodiscard]] bool on() const { return host.on() || network_switch.on(); }
};

struct SwitchedNetworkConfig {
  /// Nodes and links with their rates and delays; each host has one link in each direction.
  std::shared_ptr<const Topology> topology;
  Bytes buffer_bytes = 1'000'000;  ///< buffer of every port of a switch; 0: unlimited
  EcnConfig ecn;                   ///< marking at every port of a switch
  std::uint32_t mtu = 1500;        ///< IP packet size, 576 to 9000
  std::uint64_t seed = 1;          ///< seed of flow hashing and marking
  std::uint32_t classes = 1;       ///< priority queues at every port, 1 to 8
  /// Shared memory of every switch, instead of buffer_bytes; none if bytes = 0. With PFC it must hold xoff and headroom
  /// of every class and link, so that nothing is dropped.
  SwitchMemoryConfig memory;
  /// PFC headroom of each class and link; 0: as much as necessary (pfc_headroom()). With less, packets may be lost.
  Bytes pfc_headroom_bytes = 0;

  [[nodiscard]] std::uint32_t hosts() const { return topology->hosts(); }
  /// Maximum rate of a host's outgoing link.
  [[nodiscard]] Rate host_rate() const { return topology->fastest_host(); }
  /// Sum of the link delays of the longest path, both ways.
  [[nodiscard]] Nanos round_trip_delay() const { return topology->longest_delay() * 2; }
};

/// Throws InputError if `config` is out of range or has no topology, or if in the topology a host has several links in
/// one direction or no path to another host. Rates and delays are checked when links are created.
void check(const SwitchedNetworkConfig& config);

/// Time from the decision to pause a link until its sender reacts.
Nanos pause_time(const LinkConfig& config);
/// The headroom in bytes that a link needs for PFC without loss: for the packets of up to `frame_bytes` that arrive
/// after the pause was triggered and before it takes effect, the packet that is being sent then, and the packet that
/// triggered the pause.
Bytes pfc_headroom(const LinkConfig& config, std::uint32_t frame_bytes);
/// The headroom of each class of a link, in the memory of the switch at its far end.
Bytes pfc_headroom(const SwitchedNetworkConfig& config, Topology::Link link);

}  // namespace mltcp::fabric
