// A host's datapath of any kind, as a program opens it by name: a place on a network with one IP address, a PacketIo
// for each shard, and what the people who run it want to know of it. Kinds are registered once, at the start of the
// program that links them; whoever opens a datapath needs to know none of them.
//
//   dpdk::register_datapath();                                       // or another folder's
//   auto datapath = open_host_datapath({.device = "af_packet:eth0"});
//   datapath->take_place({.address = Address::parse("10.0.0.1:62400"), .shards = 2});
//   Shard shard(datapath->io(0), {});
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/time_source.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp {

struct HostDatapathConfig {
  /// As a kind reads it: "af_packet:eth0".
  std::string device;
  std::uint32_t mtu = 0;               ///< longest IP packet; 0: the interface's
  std::uint16_t queues = 1;            ///< of the device
  std::uint32_t queue_packets = 1024;  ///< that wait in a queue, each way
  std::uint32_t shards = 1;            ///< that there will be, as far as it is known: see take_place()
  /// Of a datapath that takes its memory at the start: the most shards that take_place() may ask for, usually, and at
  /// the highest where memory that isn't used costs nothing.
  std::uint32_t usual_shards = 1;
  std::uint32_t most_shards = 1;
  bool sleeps = false;                       ///< its loop will wait for packets asleep (Idle::sleep)
  std::string cores{};                       ///< the CPU of the thread that polls; empty: as the kind has it
  std::optional<std::uint32_t> memory_mb{};  ///< for packets; empty: what is needed
};

/// Where a host is on its network.
struct HostPlace {
  Address address;                 ///< with the UDP port of shard 0; shard i has the i-th after it
  std::uint32_t prefix_bits = 24;  ///< of the network that it is on
  Address gateway{};               ///< all zero: none
  std::uint16_t shards = 1;
};

/// Packets that a host has lost itself, since its datapath was opened.
struct DatapathLosses {
  std::uint64_t missed = 0;         ///< there was no room: nobody took them in time
  std::uint64_t errors = 0;         ///< the device says that they were damaged, sent or received
  std::uint64_t handover_full = 0;  ///< between shards
  std::uint64_t rejected = 0;       ///< not for its shards, or damaged
  std::uint64_t unsent = 0;         ///< no way there, or a neighbour that does not answer
};

class HostDatapath {
 public:
  virtual ~HostDatapath() = default;

  /// "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;
  /// For its loop and its shards.
  [[nodiscard]] virtual TimeSource& time() = 0;
  /// "cause; cure" for people while the link is down; empty while it is up, or not known. A microsecond or two.
  [[nodiscard]] virtual std::string why_link_is_down() const = 0;

  /// Gives it an address and makes its shards' PacketIos; once. Where `place.shards` are more than it was opened for it
  /// may close and open what it has. Throws InputError for a place that it can't have, RunError if it fails.
  virtual void take_place(const HostPlace& place) = 0;
  [[nodiscard]] virtual std::uint16_t shards() const = 0;  ///< 0 before take_place()
  /// Each used by one thread at a time.
  [[nodiscard]] virtual PacketIo& io(std::uint16_t shard) = 0;
  /// Whether it is known how to reach `destination` on the network, as far as `shard` knows; asks if it is not.
  virtual bool resolve(std::uint16_t shard, const Address& destination) = 0;
  [[nodiscard]] virtual DatapathLosses losses() const = 0;
};

/// A kind of datapaths, by which programs open them.
struct HostDatapathKind {
  std::string_view name;  ///< "dpdk"
  /// How its devices are written, for messages: "af_packet:IFACE, memif:PATH".
  std::string_view forms;
  /// Whether `device` is written as one of its own, be it right or wrong.
  bool (*takes)(std::string_view device);
  /// Throws what open() and take_place() would for what is wrong with the configuration and the address, as far as can
  /// be told without changing anything.
  void (*check)(const HostDatapathConfig& config, const HostPlace& place);
  /// Throws InputError or RunError: one line, with cause and cure.
  std::unique_ptr<HostDatapath> (*open)(const HostDatapathConfig& config);
};

/// From the program's first thread, before others look for kinds. One of the same name takes the other's place.
void register_host_datapath(const HostDatapathKind& kind);
/// All that were registered.
const std::vector<HostDatapathKind>& host_datapaths();

/// By the kind that takes `config.device`. Throws InputError that lists what there is if none does.
void check_host_datapath(const HostDatapathConfig& config, const HostPlace& place);
std::unique_ptr<HostDatapath> open_host_datapath(const HostDatapathConfig& config);

}  // namespace mltcp
