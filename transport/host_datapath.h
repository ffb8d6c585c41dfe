// A host's datapath, opened by the name of its device: one IP address on a network, a PacketIo for each shard, and
// information for operators. The program registers each kind of datapath once at its start; code that opens a datapath
// depends on none of the kinds.
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
  /// Name of the device in the syntax of its kind, for example "af_packet:eth0".
  std::string device;
  std::uint32_t mtu = 0;               ///< maximum IP packet in bytes; 0: the interface's MTU
  std::uint16_t queues = 1;            ///< receive and transmit queues of the device
  std::uint32_t queue_packets = 1024;  ///< capacity of each queue, in packets
  std::uint32_t shards = 1;            ///< expected number of shards; the final number is given to take_place()
  /// For datapaths that reserve memory when they open: the usual and the maximum number of shards that take_place()
  /// will request.
  std::uint32_t usual_shards = 1;
  std::uint32_t max_shards = 1;
  bool sleeps = false;                       ///< the loop will sleep while it waits for packets (Idle::sleep)
  std::string cores{};                       ///< CPU for the polling thread; empty: the kind decides
  std::optional<std::uint32_t> memory_mb{};  ///< MiB for all datapaths of the kind together; empty: the kind decides
};

/// A host's address on its network.
struct HostPlace {
  Address address;                 ///< IP address, and UDP port of shard 0; shard i uses this port plus i
  std::uint32_t prefix_bits = 24;  ///< prefix length of the host's network
  Address gateway{};               ///< default router; all zero: none
  std::uint16_t shards = 1;
};

/// Packets lost within the host since its datapath was opened.
struct DatapathLosses {
  std::uint64_t missed = 0;         ///< received, but dropped because the receive queue was full
  std::uint64_t errors = 0;         ///< damaged packets, sent or received, as reported by the device
  std::uint64_t handover_full = 0;  ///< dropped because the queue between two shards was full
  std::uint64_t rejected = 0;       ///< received, but damaged or not addressed to one of the shards
  std::uint64_t unsent = 0;         ///< not sent: no route, or the neighbour's address could not be resolved
};

class HostDatapath {
 public:
  virtual ~HostDatapath() = default;

  /// A description for people, for example "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;
  /// The clock for the datapath's loop and its shards.
  [[nodiscard]] virtual TimeSource& time() = 0;
  /// "cause; cure" for people while the link is down; empty while it is up or its state is unknown. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_link_is_down() const = 0;
  /// "cause; cure" for people if no packet arrives from `peer`: the link is down, or another problem that the network
  /// has reported about the path to `peer`, which may be wrong. Empty if nothing is known. Takes 1 to 2 us.
  [[nodiscard]] virtual std::string why_silent(const Address& /*peer*/) const { return why_link_is_down(); }

  /// Assigns the address and creates the shards' PacketIos. Call it once. If `place.shards` exceeds
  /// HostDatapathConfig::shards, it may close and reopen the device. Throws InputError if `place` is invalid, RunError
  /// on failure.
  virtual void take_place(const HostPlace& place) = 0;
  [[nodiscard]] virtual std::uint16_t shards() const = 0;  ///< 0 before take_place()
  /// The PacketIo of a shard. It belongs to the datapath; one thread at a time may use it.
  [[nodiscard]] virtual PacketIo& io(std::uint16_t shard) = 0;
  /// Whether `shard` knows the link-layer address of the next hop to `destination`; if not, starts to resolve it.
  virtual bool resolve(std::uint16_t shard, const Address& destination) = 0;
  [[nodiscard]] virtual DatapathLosses losses() const = 0;
  /// The devices that may read payloads by DMA: payloads in memory that is registered with them (RegisteredMemory) are
  /// sent without a copy. Empty if only the CPU reads payloads.
  [[nodiscard]] virtual std::span<DmaDevice* const> dma_devices() { return {}; }
};

/// A registered kind of datapath.
struct HostDatapathKind {
  std::string_view name;  ///< for example "dpdk"
  /// The syntax of the kind's devices, for messages: "af_packet:IFACE, memif:PATH".
  std::string_view forms;
  /// Whether `device` has the syntax of this kind, even if it is invalid.
  bool (*takes)(std::string_view device);
  /// Throws the errors that open() and take_place() would throw for this configuration and address, as far as it can
  /// check without side effects.
  void (*check)(const HostDatapathConfig& config, const HostPlace& place);
  /// Opens the datapath. Throws InputError or RunError with one line that names cause and cure.
  std::unique_ptr<HostDatapath> (*open)(const HostDatapathConfig& config);
  /// The first of `place.shards` consecutive UDP ports that are free now; ignores `place.address.port`. Another process
  /// may take them before take_place() does. Throws like check(), and RunError if there are none. Null: the kind does
  /// not know which ports are free.
  std::uint16_t (*free_ports)(const HostDatapathConfig& config, const HostPlace& place) = nullptr;
};

/// Registers a kind, or replaces the kind of the same name. Call it from the program's first thread, before any
/// look-up.
void register_host_datapath(const HostDatapathKind& kind);
/// All registered kinds.
const std::vector<HostDatapathKind>& host_datapaths();

/// These functions call the kind that takes `config.device`. They throw InputError that lists the registered kinds if
/// there is none.
void check_host_datapath(const HostDatapathConfig& config, const HostPlace& place);
std::unique_ptr<HostDatapath> open_host_datapath(const HostDatapathConfig& config);
/// Calls HostDatapathKind::free_ports of that kind; 0 if the kind does not know.
std::uint16_t free_host_ports(const HostDatapathConfig& config, const HostPlace& place);

}  // namespace mltcp
