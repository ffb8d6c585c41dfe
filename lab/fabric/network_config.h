// Configuration of networks and their machines, for the simulator and for experiment files.
#pragma once

#include <cstdint>
#include <memory>

#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/switch_memory.h"

namespace mltcp::fabric {

/// The model of a polling loop (lab/sim/loop_model.h). Each time is from 0 to kLongestLoopTime.
struct LoopModel {
  /// Maximum sleep while packets arrive; 0: loops are not modelled, so packets are processed at once.
  Nanos nap;
  Nanos late_min;     ///< minimum time by which a sleep ends late
  Nanos late_mean;    ///< mean time by which a sleep ends late; at least late_min
  Nanos stall_every;  ///< mean time between two stalls of the loop; 0: no stalls
  Nanos stall_mean;   ///< mean duration of a stall

  [[nodiscard]] bool on() const { return nap.count > 0; }
};

inline constexpr Nanos kLongestLoopTime{1'000'000'000};

/// The polling loops of all hosts and switches of a network.
struct MachineModel {
  LoopModel host;
  LoopModel network_switch;  ///< loop of each switch; it sleeps at most `nap` at a time and never blocks
  std::uint64_t seed = 1;

  [[nodiscard]] bool on() const { return host.on() || network_switch.on(); }
};

/// A change of the rate of a topology's link.
struct LinkFault {
  Topology::Link link = 0;
  RateChange change;
};

struct SwitchedNetworkConfig {
  /// Nodes and links with their rates and delays. Each host has exactly one link in each direction.
  std::shared_ptr<const Topology> topology;
  Bytes buffer_bytes = 1'000'000;  ///< buffer of each port of a switch; 0: unlimited
  std::uint32_t trim_bytes = 0;    ///< LinkConfig::trim_bytes of each port of a switch
  EcnConfig ecn;                   ///< ECN marking at each port of a switch
  std::vector<LinkFault> faults{};
  std::uint32_t mtu = 1500;   ///< maximum size of an IP packet in bytes, 576 to 9000
  std::uint64_t seed = 1;     ///< seed of flow hashing and of marking
  std::uint32_t classes = 1;  ///< number of priority queues at each port, 1 to 8
  /// Shared memory of each switch, in place of buffer_bytes. Unused if `bytes` is 0. With PFC, the memory must hold
  /// xoff bytes and the headroom for each class of each incoming link, so that no packet is dropped.
  SwitchMemoryConfig memory;
  /// PFC headroom of each class and link in bytes; 0: the value of pfc_headroom(), which prevents loss.
  Bytes pfc_headroom_bytes = 0;

  [[nodiscard]] std::uint32_t hosts() const { return topology->hosts(); }
  /// Returns the maximum rate of a host's outgoing link.
  [[nodiscard]] Rate host_rate() const { return topology->fastest_host(); }
  /// Returns twice the delay of the path with the longest delay. The delay of a path is the sum of its links' delays.
  [[nodiscard]] Nanos round_trip_delay() const { return topology->longest_delay() * 2; }
};

/// Throws InputError if `config` is out of range or contains no topology. Throws also unless each host has one link in
/// each direction and a path to every other host. Does not check rates and delays, which are checked when links are
/// created.
void check(const SwitchedNetworkConfig& config);

/// Returns the time from the decision to pause a link until the sender of the link stops sending.
Nanos pause_time(const LinkConfig& config);
/// Returns the headroom in bytes with which PFC on a link loses no packet. The headroom holds the packet that triggered
/// the pause, all packets that arrive before the pause takes effect, and the packet that is being sent when the pause
/// takes effect. Packets have at most `frame_bytes`.
Bytes pfc_headroom(const LinkConfig& config, std::uint32_t frame_bytes);
/// Returns the headroom of each class of a link, in the memory of the switch at the far end of the link.
Bytes pfc_headroom(const SwitchedNetworkConfig& config, Topology::Link link);

}  // namespace mltcp::fabric
