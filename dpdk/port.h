// A started DPDK Ethernet port of any kind (see port_name.h for the names), with pools of packet buffers for its
// queues. The interface or device is in use from construction to destruction.
//
// Ports are hot-plugged while DPDK runs, and unplugged when they are closed: any number of times, by any threads. A
// device has one port in a process.
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
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/registered_memory.h"

struct rte_mempool;

namespace mltcp::dpdk {

/// Work that the port does itself if it can; otherwise, or if switched off here, software does it.
struct PortOffloads {
  bool checksums = true;
  bool scatter = true;         ///< receive frames in several segments
  bool multi_segments = true;  ///< send frames in several segments
};

struct PortConfig {
  /// A port name for parse_port_name().
  std::string device;
  /// Longest IP packet in bytes, 576 to 9000. 0: that of the kernel's interface as far as the port supports it, or 1500
  /// if there is none. The MTU of an existing interface is not changed.
  std::uint32_t mtu = 0;
  /// Queue pairs, 1 to 64.
  std::uint16_t queues = 1;
  /// Capacity of each receive and transmit queue in packets, 64 to 4096; rounded up to a power of two and to the port's
  /// limits.
  std::uint32_t descriptors = 1024;
  /// Packet buffers per queue pair in addition to the capacity of its two queues.
  std::uint32_t spare_buffers = 1024;
  /// 0: a frame fits into one buffer. Smaller buffers require a port that scatters frames over several.
  std::uint32_t buffer_bytes = 0;
  /// Receive frames to other MAC addresses, too, as a switch must.
  bool promiscuous = false;
  /// Enable receive interrupts, so that a loop (PollLoop) can sleep until a packet arrives, if the port supports it.
  bool interrupts = false;
  /// AF_XDP busy polling: maximum number of packets that the kernel takes from the NIC when an empty queue is polled,
  /// which costs a system call. 0: off; the kernel then receives on NIC interrupts, but a poll may block for a second
  /// if a zero-copy NIC has run out of buffers. Empty: the driver's default, but 0 on veth, which does not support it
  /// and always copies.
  std::optional<std::uint16_t> busy_budget{};
  /// 802.1Q tag of all packets, 1 to 4094; 0 = untagged.
  std::uint16_t vlan = 0;
  PortOffloads offloads{};
};

struct LinkState {
  bool up = false;
  Rate rate;  ///< 0 = not known
};

/// How received packets are assigned to one of several queues.
enum class Steering : std::uint8_t {
  single,  ///< there is one queue
  rss,     ///< by the port's hash of addresses and UDP ports (receive-side scaling)
  kernel,  ///< by a hash in the kernel, or by the kernel's setting of the NIC
  peer,    ///< the other end's transmit queue (memif, ring)
};

class Port {
 public:
  /// Throws InputError if `config` is not usable here (invalid name, no such interface, unsupported MTU or number of
  /// queues), RunError if the port does not start (no permission, no driver, no memory, in use): one line with cause
  /// and cure. `eal` must outlive the port.
  Port(const Eal& eal, const PortConfig& config);
  /// Stops, closes and unplugs the port. All buffers of its pools must have been freed, except those in its queues.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// DPDK's number of the port.
  [[nodiscard]] std::uint16_t id() const;
  /// Sets the port's user, "the host 10.0.0.1:62400", for the error message of others that request its device.
  void set_user(const std::string& user);
  /// The name as the user wrote it.
  [[nodiscard]] const std::string& name() const;
  /// Whether it is an interface that the kernel's network stack uses as well (af_packet, af_xdp).
  [[nodiscard]] bool is_of_kernel() const;
  [[nodiscard]] const encap::MacAddress& mac() const;
  [[nodiscard]] std::uint32_t mtu() const;
  /// Maximum frame in bytes: MTU, Ethernet header and VLAN tag.
  [[nodiscard]] std::uint32_t frame_bytes() const;
  [[nodiscard]] std::uint16_t vlan() const;
  [[nodiscard]] std::uint16_t queues() const;
  [[nodiscard]] Steering steering() const;
  /// Buffers for receive queue `queue`; also best for sending on it, because AF_XDP then need not copy.
  [[nodiscard]] rte_mempool* pool(std::uint16_t queue) const;
  /// NUMA node of the device and the pools; 0 if there is only one.
  [[nodiscard]] int socket() const;
  [[nodiscard]] const std::string& driver() const;
  /// "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
  [[nodiscard]] std::string description() const;

  struct OffloadsInUse {
    bool send_ip_checksum = false;
    bool send_udp_checksum = false;
    // Received frames carry the result of checksum verification.
    bool receive_ip_checksum = false;
    bool receive_udp_checksum = false;
    bool scatter = false;
    bool multi_segments = false;
  };
  [[nodiscard]] const OffloadsInUse& offloads() const;
  /// Whether received frames may have several segments.
  [[nodiscard]] bool receives_segments() const;
  /// Whether a device reads sent data by DMA (see RegisteredMemory), or may do so, as for drivers given in DPDK's own
  /// syntax; otherwise the CPU reads it.
  [[nodiscard]] bool reads_by_dma() const;
  /// The port's interface to RegisteredMemory.
  [[nodiscard]] DmaDevice& dma() const;
  /// Whether payloads may be sent by reference: the port sends several segments, and frees buffers when they are sent
  /// even if nothing more is sent afterwards.
  [[nodiscard]] bool sends_by_reference() const;
  /// Whether every queue can signal packets by a file descriptor: receive_file(), or DPDK's
  /// (rte_eth_dev_rx_intr_ctl_q).
  [[nodiscard]] bool has_interrupts() const;
  /// The kernel socket behind a queue of af_packet or af_xdp, readable while packets are pending. It belongs to the
  /// driver: wait on it, but do not read it. -1: none, or PortConfig::interrupts was not set.
  [[nodiscard]] int receive_file(std::uint16_t queue) const;

  /// The link is also down once the kernel asks for a NIC that is to be unplugged (VFIO), or has lost it. Queries the
  /// kernel or DPDK. DPDK asks the NIC; virtual drivers with an interrupt for it notify DPDK. Takes 1 to 2 us.
  [[nodiscard]] LinkState link() const;
  /// "cause; cure" for people while the link is down; empty while it is up.
  [[nodiscard]] std::string why_link_is_down() const;
  /// All counters of DPDK and the driver, by DPDK's names ("rx_good_packets", "rx_missed_errors", ...); for AF_XDP the
  /// kernel's, too: "xdp_rx_ring_full" and "xdp_rx_dropped" frames, of which DPDK counts the latter as missed.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> statistics() const;

  /// Memory in MiB (for EalOptions::memory_mb, within its limits) that such a port needs, pools included. Throws
  /// InputError like the constructor, and if it exceeds DPDK's maximum.
  static std::uint32_t memory_mb(const PortConfig& config);
  /// Throws what the constructor would throw for the name, the settings and the kernel's interface, without DPDK and
  /// without side effects. Other errors remain possible.
  static void check_config(const PortConfig& config);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
