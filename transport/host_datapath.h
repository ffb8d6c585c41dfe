// A host's datapath, opened by the name of its device: one IP address on a network, a PacketIo for each shard, and what
// operators want to know of it. Each kind of datapath is registered once at program start; code that opens one depends
// on none of them.
//
//   dpdk::register_datapath();                                       // or another folder's
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
  /// In the syntax of its kind, for example "af_packet:eth0".
  std::string device;
  std::uint32_t mtu = 0;               ///< longest IP packet in bytes; 0: the interface's
  std::uint16_t queues = 1;            ///< receive and transmit queues of the device
  std::uint32_t queue_packets = 1024;  ///< capacity of each queue, in packets
  std::uint32_t shards = 1;            ///< expected number of shards; the final number is given to take_place()
  /// For datapaths that reserve memory when opened: number of shards that take_place() usually asks for, and the
  /// maximum that it may ask for.
  std::uint32_t usual_shards = 1;
  std::uint32_t max_shards = 1;
  bool sleeps = false;                       ///< the loop will sleep while it waits for packets (Idle::sleep)
  std::string cores{};                       ///< CPU for the polling thread; empty: the kind decides
  std::optional<std::uint32_t> memory_mb{};  ///< for all datapaths of the kind; empty: it decides
};

/// A host's address on its network.
struct HostPlace {
  Address address;                 ///< its UDP port is shard 0's; shard i uses the port plus i
  std::uint32_t prefix_bits = 24;  ///< prefix length of the host's network
  Address gateway{};               ///< default router; all zero: none
  std::uint16_t shards = 1;
};

/// Packets lost within the host since its datapath was opened.
struct DatapathLosses {
  std::uint64_t missed = 0;         ///< received, but dropped since the receive queue was full
  std::uint64_t errors = 0;         ///< damaged packets, sent or received, as reported by the device
  std::uint64_t handover_full = 0;  ///< dropped since the queue between two shards was full
  std::uint64_t rejected = 0;       ///< not addressed to its shards, or damaged
  std::uint64_t unsent = 0;         ///< no route, or the neighbour's address could not be resolved
};

class HostDatapath {
 public:
  virtual ~HostDatapath() = default;

  /// For people, for example "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;
  /// The clock for its loop and its shards.
  [[nodiscard]] virtual TimeSource& time() = 0;
  /// While the link is down: "cause; cure" for people. Empty while it is up or its state is unknown. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_link_is_down() const = 0;
  /// For whoever has heard nothing of `peer`: that the link is down, or what else the datapath has been told of the way
  /// there, which may be wrong; "cause; cure" for people, or empty. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_silent(const Address& /*peer*/) const { return why_link_is_down(); }

  /// Assigns the address and creates the shards' PacketIos; call once. If `place.shards` exceeds what the datapath was
  /// opened for, it may close and reopen its device. Throws InputError if `place` is impossible, RunError on failure.
  virtual void take_place(const HostPlace& place) = 0;
  [[nodiscard]] virtual std::uint16_t shards() const = 0;  ///< 0 before take_place()
  /// The PacketIo of a shard, owned by the datapath; to be used by one thread at a time.
  [[nodiscard]] virtual PacketIo& io(std::uint16_t shard) = 0;
  /// Whether the link-layer address on the way to `destination` is known to `shard`; if not, starts to resolve it.
  virtual bool resolve(std::uint16_t shard, const Address& destination) = 0;
  [[nodiscard]] virtual DatapathLosses losses() const = 0;
  /// What has to be told of memory before it reads payloads there without a copy (RegisteredMemory); none where it
  /// reads as the CPU does.
  [[nodiscard]] virtual std::span<DmaDevice* const> dma_devices() { return {}; }
};

/// A kind of datapath, as registered.
struct HostDatapathKind {
  std::string_view name;  ///< for example "dpdk"
  /// The syntax of its devices, for messages: "af_packet:IFACE, memif:PATH".
  std::string_view forms;
  /// Whether `device` has the syntax of this kind, even if it is invalid.
  bool (*takes)(std::string_view device);
  /// Throws what open() and take_place() would throw for this configuration and address, as far as that can be found
  /// out without side effects.
  void (*check)(const HostDatapathConfig& config, const HostPlace& place);
  /// Throws InputError or RunError with one line that names cause and cure.
  std::unique_ptr<HostDatapath> (*open)(const HostDatapathConfig& config);
  /// The first of `place.shards` UDP ports in a row that nobody has now; `place.address.port` is not looked at.
  /// Somebody may take them before take_place() does. Throws as check(), and RunError if there are none. Null: the kind
  /// can't tell.
  std::uint16_t (*free_ports)(const HostDatapathConfig& config, const HostPlace& place) = nullptr;
};

/// Call from the program's first thread before any look-up. Replaces a kind of the same name.
void register_host_datapath(const HostDatapathKind& kind);
/// All registered kinds.
const std::vector<HostDatapathKind>& host_datapaths();

/// All use the kind that takes `config.device`, and throw InputError that lists the registered kinds if there is none.
void check_host_datapath(const HostDatapathConfig& config, const HostPlace& place);
std::unique_ptr<HostDatapath> open_host_datapath(const HostDatapathConfig& config);
/// HostDatapathKind::free_ports of that kind; 0 if it can't tell.
std::uint16_t free_host_ports(const HostDatapathConfig& config, const HostPlace& place);

}  // namespace mltcp
