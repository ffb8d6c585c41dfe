// A host's datapath, opened by the name of its device. Provides one IP address on a network, a PacketIo for each shard,
// and information for operators. When a program starts, it registers the kinds of datapath that it needs. Code that
// opens a datapath does not depend on any kind.
//
//   dpdk::register_datapath();                                       // or another kind's
//   auto datapath = open_host_datapath({.device = "af_packet:eth0"});
//   datapath->take_place({.address = Address::parse("10.0.0.1:62400"), .shards = 2});
//   Shard shard(datapath->io(0), {});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/time_source.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp {

struct HostDatapathConfig {
  /// Name of the device, in the syntax of the datapath's kind, for example "af_packet:eth0".
  std::string device;
  std::uint32_t mtu = 0;               ///< maximum size of IP packets in bytes; 0 for the interface's MTU
  std::uint16_t queues = 1;            ///< number of receive queues, and number of transmit queues
  std::uint32_t queue_packets = 1024;  ///< capacity of each queue, in packets
  std::uint32_t shards = 1;            ///< expected number of shards; the final number is given to take_place()
  /// The usual and the maximum number of shards that take_place() will request. A datapath that reserves memory when it
  /// opens needs both.
  std::uint32_t usual_shards = 1;
  std::uint32_t max_shards = 1;
  bool sleeps = false;  ///< whether the loop will sleep while it waits for packets (Idle::sleep)
  std::string cores{};  ///< CPU for the polling thread; if empty, the kind chooses
  /// Memory in MiB for all datapaths of the kind together; if empty, the kind chooses.
  std::optional<std::uint32_t> memory_mb{};
};

/// A host's address on its network.
struct HostPlace {
  Address address;                 ///< IP address, and UDP port of shard 0; shard i uses this port plus i
  std::uint32_t prefix_bits = 24;  ///< prefix length of the host's network
  Address gateway{};               ///< address of the default router; all zero if there is none
  std::uint16_t shards = 1;
};

/// Packets lost within the host since its datapath was opened.
struct DatapathLosses {
  std::uint64_t missed = 0;         ///< received packets that were dropped because the receive queue was full
  std::uint64_t errors = 0;         ///< damaged packets, sent or received, as reported by the device
  std::uint64_t handover_full = 0;  ///< packets dropped because the queue between two shards was full
  std::uint64_t rejected = 0;       ///< received packets that were damaged or not addressed to one of the shards
  /// Packets not sent because there was no route or the neighbour's address could not be resolved.
  std::uint64_t unsent = 0;
};

class HostDatapath {
 public:
  virtual ~HostDatapath() = default;

  /// Returns a description for people, for example "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in
  /// software".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;
  /// Returns the clock for the datapath's loop and its shards.
  [[nodiscard]] virtual TimeSource& time() = 0;
  /// Returns a message "cause; cure" for people while the link is down. Returns an empty string while the link is up or
  /// its state is unknown. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_link_is_down() const = 0;
  /// Returns a message "cause; cure" for people that explains why no packet arrives from `peer`: the link is down, or
  /// the network has reported a problem on the path to `peer`. Such a report may be wrong. Returns an empty string if
  /// no cause is known. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_silent(const Address& /*peer*/) const { return why_link_is_down(); }

  /// Assigns the address and creates the shards' PacketIos. Call this function once. May close and reopen the device if
  /// `place.shards` exceeds HostDatapathConfig::shards. Throws InputError if `place` is invalid, and RunError on
  /// failure.
  virtual void take_place(const HostPlace& place) = 0;
  [[nodiscard]] virtual std::uint16_t shards() const = 0;  ///< number of shards; 0 before take_place()
  /// Returns the PacketIo of a shard. It is owned by the datapath. Only one thread at a time may use it.
  [[nodiscard]] virtual PacketIo& io(std::uint16_t shard) = 0;
  /// Returns whether `shard` knows the link-layer address of the next hop to `destination`. If not, starts to resolve
  /// the address.
  virtual bool resolve(std::uint16_t shard, const Address& destination) = 0;
  [[nodiscard]] virtual DatapathLosses losses() const = 0;
  /// Returns the devices that may read payloads by DMA. Payloads in memory that is registered with these devices
  /// (RegisteredMemory) are sent without a copy. The result is empty if only the CPU reads payloads.
  [[nodiscard]] virtual std::span<DmaDevice* const> dma_devices() { return {}; }
};

/// A registered kind of datapath.
struct HostDatapathKind {
  std::string_view name;  ///< name of the kind, for example "dpdk"
  /// The syntax of the kind's devices, for messages: "af_packet:IFACE, memif:PATH".
  std::string_view forms;
  /// Returns whether `device` has this kind's syntax. The device name may still be invalid.
  bool (*takes)(std::string_view device);
  /// Throws the errors that open() and take_place() would throw for this configuration and address, as far as they can
  /// be detected without side effects.
  void (*check)(const HostDatapathConfig& config, const HostPlace& place);
  /// Opens the datapath. Throws InputError or RunError with a one-line message that names cause and cure.
  std::unique_ptr<HostDatapath> (*open)(const HostDatapathConfig& config);
  /// Returns the first of `place.shards` consecutive UDP ports that are free now. Ignores `place.address.port`. Another
  /// process may occupy these ports before take_place() does. Throws the errors of check(), and RunError if there are
  /// no such ports. This pointer is null if the kind cannot find free ports.
  std::uint16_t (*free_ports)(const HostDatapathConfig& config, const HostPlace& place) = nullptr;
};

/// Registers a kind, or replaces the registered kind with the same name. Call this function from the program's first
/// thread, before any other function of this file.
void register_host_datapath(const HostDatapathKind& kind);
/// Returns all registered kinds.
const std::vector<HostDatapathKind>& host_datapaths();

/// Calls `check` of the kind to which `config.device` belongs. Throws InputError that lists the registered kinds if
/// there is no such kind.
void check_host_datapath(const HostDatapathConfig& config, const HostPlace& place);
std::unique_ptr<HostDatapath> open_host_datapath(const HostDatapathConfig& config);
/// Calls HostDatapathKind::free_ports of the kind to which `config.device` belongs. Returns 0 if the kind has no
/// function `free_ports`.
std::uint16_t free_host_ports(const HostDatapathConfig& config, const HostPlace& place);

}  // namespace mltcp
