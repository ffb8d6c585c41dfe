// A started Ethernet port of DPDK, of any kind (port_name.h tells how a user writes one), with pools of packet buffers
// for its queues. The interface or device is used from construction to destruction, and free for others at once after.
//
// Ports come and go while DPDK runs (hot-plug), so that Eal knows nothing of them; but a NIC on the PCI bus must have
// been allowed when DPDK started (EalOptions::pci).
//
// Set-up only: the data path calls DPDK (rte_eth_rx_burst, rte_eth_tx_burst, see burst.h) with id(), a queue's number
// and pool(). A queue pair is used by one thread at a time; link() and statistics() may be called by any one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port_name.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/transport/registered_memory.h"

struct rte_mempool;

namespace mltcp::dpdk {

/// What a port does itself if it can; what is switched off, or what it can't, is done in software.
struct PortOffloads {
  bool checksums = true;
  bool scatter = true;         ///< receive into several segments
  bool multi_segments = true;  ///< send from several segments
};

struct PortConfig {
  /// As parse_port_name() reads it.
  std::string device;
  /// Longest IP packet, 576 to 9000. 0: what the kernel's interface has now, as far as the port can carry it, and 1500
  /// where there is none. The MTU of an interface that exists already is not changed.
  std::uint32_t mtu = 0;
  /// Queue pairs, 1 to 64.
  std::uint16_t queues = 1;
  /// Packets that wait in a queue, each way, 64 to 4096; rounded up to a power of two, and to what the port can.
  std::uint32_t descriptors = 1024;
  /// Packet buffers per queue pair beyond those that wait in its two queues.
  std::uint32_t spare_buffers = 1024;
  /// 0: a frame fits into one buffer. Shorter ones need a port that scatters frames over several.
  std::uint32_t buffer_bytes = 0;
  /// Take frames for other MAC addresses too, as a switch must.
  bool promiscuous = false;
  /// Prepare for a loop's sleep (PollLoop) until a packet comes, if the port can.
  bool interrupts = false;
  /// AF_XDP: packets that the kernel takes from the NIC when a look at an empty queue asks it to, by a system call
  /// (busy polling); 0: looks ask for nothing, and the kernel takes packets when the NIC interrupts, but a look may
  /// block for a second where a zero-copy NIC has run out of buffers. Without a number: the driver's, but 0 on veth,
  /// which doesn't hear the question and always copies.
  std::optional<std::uint16_t> busy_budget{};
  /// 802.1Q tag of all packets, 1 to 4094; 0 = untagged.
  std::uint16_t vlan = 0;
  PortOffloads offloads{};
};

struct LinkState {
  bool up = false;
  Rate rate;  ///< 0 = not known
};

/// How received packets get to a queue when there are several.
enum class Steering : std::uint8_t {
  single,  ///< there is one queue
  rss,     ///< by a hash of addresses and UDP ports (receive-side scaling), in the port
  kernel,  ///< by a hash, in the kernel or by its setting of the NIC
  peer,    ///< as the other end chose the queue it sent on (memif, ring)
};

class Port {
 public:
  /// Throws InputError if `config` can't be used here (a bad name, no such interface, an MTU or number of queues that
  /// the port can't have), RunError if the port does not start (no permission, no driver, no memory, used by
  /// another): one line each, with cause and cure. `eal` outlives the port.
  Port(const Eal& eal, const PortConfig& config);
  /// Stops, closes and unplugs the port. Buffers of its pools have been given back, but for those in its queues.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// DPDK's number of the port.
  [[nodiscard]] std::uint16_t id() const;
  /// As the user wrote it.
  [[nodiscard]] const std::string& name() const;
  /// It is an interface of the kernel's, over which that sends and receives as well (af_packet, af_xdp).
  [[nodiscard]] bool is_of_kernel() const;
  [[nodiscard]] const encap::MacAddress& mac() const;
  [[nodiscard]] std::uint32_t mtu() const;
  /// Longest frame: MTU, Ethernet header and tag.
  [[nodiscard]] std::uint32_t frame_bytes() const;
  [[nodiscard]] std::uint16_t vlan() const;
  [[nodiscard]] std::uint16_t queues() const;
  [[nodiscard]] Steering steering() const;
  /// Buffers for what queue `queue` receives, best used for what it sends too: AF_XDP then need not copy.
  [[nodiscard]] rte_mempool* pool(std::uint16_t queue) const;
  /// NUMA socket of the device and the pools; 0 where there is but one.
  [[nodiscard]] int socket() const;
  [[nodiscard]] const std::string& driver() const;
  /// "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
  [[nodiscard]] std::string description() const;

  struct OffloadsInUse {
    bool send_ip_checksum = false;
    bool send_udp_checksum = false;
    bool receive_checksums = false;  ///< frames carry a verdict
    bool scatter = false;
    bool multi_segments = false;
  };
  [[nodiscard]] const OffloadsInUse& offloads() const;
  /// Whether a frame may come in several segments.
  [[nodiscard]] bool receives_segments() const;
  /// Whether a device reads what is sent, by addresses of its own (RegisteredMemory), or may: who knows what lies
  /// behind a driver that was asked for in DPDK's words. Else it is the CPU that reads.
  [[nodiscard]] bool reads_by_dma() const;
  /// What RegisteredMemory has to be told of the port by.
  [[nodiscard]] DmaDevice& dma() const;
  /// Whether send() may leave payloads where they lie: several segments are sent, and buffers are given back when they
  /// are through, be there more to send or not.
  [[nodiscard]] bool sends_by_reference() const;
  /// Whether all queues tell of a packet by a file that can be waited for: receive_file(), or DPDK's
  /// (rte_eth_dev_rx_intr_ctl_q).
  [[nodiscard]] bool has_interrupts() const;
  /// The kernel's socket behind a queue of af_packet or af_xdp, readable while packets are there; it is the driver's,
  /// to be waited for and nothing else. -1: none, or PortConfig::interrupts wasn't set.
  [[nodiscard]] int receive_file(std::uint16_t queue) const;

  /// Asks the kernel or DPDK, which hears of changes by an interrupt where the driver has one: a microsecond or two.
  [[nodiscard]] LinkState link() const;
  /// "cause; cure" for people while the link is down; empty while it is up.
  [[nodiscard]] std::string why_link_is_down() const;
  /// All counters that DPDK and the driver keep, by DPDK's names ("rx_good_packets", "rx_missed_errors", ...); of
  /// AF_XDP the kernel's, too: "xdp_rx_ring_full" and "xdp_rx_dropped" frames, of which DPDK counts the latter as
  /// missed.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> statistics() const;

  /// Memory (EalOptions::memory_mb, within its limits) that such a port needs, pools included. Throws InputError like
  /// the constructor, and for a port that needs more than DPDK takes.
  static std::uint32_t memory_mb(const PortConfig& config);
  /// Throws what opening it would for its name, its settings and the kernel's interface, without DPDK and without
  /// changing anything. Other things can still be wrong.
  static void check_config(const PortConfig& config);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
