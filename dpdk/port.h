// A started DPDK Ethernet port of any kind (see port_name.h for the names), with pools of packet buffers for its
// queues. The interface or device is in use from construction to destruction.
//
// Ports are hot-plugged while DPDK runs, and unplugged when they are closed: any number of times, by any threads. A
// device can have only one port in a process.
//
// This class is for set-up only. The data path calls DPDK (rte_eth_rx_burst, rte_eth_tx_burst, see burst.h) with id(),
// a queue's number and pool(). Only one thread at a time may use a queue pair. link() and statistics() may be called
// from any thread, by one thread at a time.
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

/// Work that the port does itself if it can. Software does what the port cannot do, or what is switched off here.
struct PortOffloads {
  bool checksums = true;
  bool scatter = true;         ///< receive frames in several segments
  bool multi_segments = true;  ///< send frames in several segments
};

struct PortConfig {
  /// A port name for parse_port_name().
  std::string device;
  /// Maximum length of an IP packet in bytes, 576 to 9000. 0 selects the MTU of the kernel's interface as far as the
  /// port supports it, or 1500 if there is no interface. The MTU of an existing interface is not changed.
  std::uint32_t mtu = 0;
  /// Queue pairs, 1 to 64.
  std::uint16_t queues = 1;
  /// Capacity of each receive and transmit queue in packets, 64 to 4096; rounded up to a power of two and to the port's
  /// limits.
  std::uint32_t descriptors = 1024;
  /// Packet buffers per queue pair in addition to the capacity of its two queues.
  std::uint32_t spare_buffers = 1024;
  /// Bytes of a packet buffer, 256 to 16384. 0 selects buffers that hold a whole frame. Shorter buffers require a port
  /// that scatters frames over several buffers.
  std::uint32_t buffer_bytes = 0;
  /// Receive frames even if they are not addressed to the port's MAC address, as a switch must.
  bool promiscuous = false;
  /// Enable receive interrupts, if the port supports them, so that a loop (PollLoop) can sleep until a packet arrives.
  bool interrupts = false;
  /// AF_XDP busy polling: maximum number of packets that the kernel takes from the NIC when an empty queue is polled.
  /// Such a poll makes a system call. 0 switches busy polling off. The kernel then receives on NIC interrupts, but a
  /// poll may block for a second if a zero-copy NIC has run out of buffers. If there is no value, the driver's default
  /// applies. On veth, busy polling is then off, because veth does not support it and always copies.
  std::optional<std::uint16_t> busy_budget{};
  /// 802.1Q tag of all packets, 1 to 4094; 0 = untagged.
  std::uint16_t vlan = 0;
  PortOffloads offloads{};
};

struct LinkState {
  bool up = false;
  Rate rate;  ///< link rate; 0 if not known
};

/// How a port assigns received packets to one of several queues.
enum class Steering : std::uint8_t {
  single,  ///< there is one queue
  rss,     ///< by the port's hash of addresses and UDP ports (receive-side scaling)
  kernel,  ///< by a hash in the kernel, or as the kernel has configured the NIC
  peer,    ///< by the queue on which the other end sends (memif, ring)
};

class Port {
 public:
  /// Throws InputError if `config` is not usable here (invalid name, no such interface, unsupported MTU or number of
  /// queues). Throws RunError if the port does not start (no permission, no driver, no memory, in use). Both report
  /// cause and remedy in one line. `eal` must outlive the port.
  Port(const Eal& eal, const PortConfig& config);
  /// Stops, closes and unplugs the port. All buffers of its pools must have been freed, except those in its queues.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Returns DPDK's number of the port.
  [[nodiscard]] std::uint16_t id() const;
  /// Sets the port's user, such as "the host 10.0.0.1:62400". If another port requests the same device, the error
  /// message names this user.
  void set_user(const std::string& user);
  /// Returns the name as the user wrote it.
  [[nodiscard]] const std::string& name() const;
  /// Returns whether the port is an interface that the kernel's network stack also uses (af_packet, af_xdp).
  [[nodiscard]] bool is_of_kernel() const;
  [[nodiscard]] const encap::MacAddress& mac() const;
  [[nodiscard]] std::uint32_t mtu() const;
  /// Returns the maximum length of a frame in bytes: MTU, Ethernet header and VLAN tag.
  [[nodiscard]] std::uint32_t frame_bytes() const;
  [[nodiscard]] std::uint16_t vlan() const;
  [[nodiscard]] std::uint16_t queues() const;
  [[nodiscard]] Steering steering() const;
  /// Returns the pool of receive queue `queue`. Buffers of this pool are also best for sending on the queue, because
  /// AF_XDP then need not copy.
  [[nodiscard]] rte_mempool* pool(std::uint16_t queue) const;
  /// Returns the NUMA node of the device and the pools; 0 if there is only one node.
  [[nodiscard]] int socket() const;
  [[nodiscard]] const std::string& driver() const;
  /// Returns a description such as "af_packet:eth0: net_af_packet, MTU 1500, 1 queue, checksums in software".
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
  /// Returns whether received frames may have several segments.
  [[nodiscard]] bool receives_segments() const;
  /// Returns whether a device reads sent data by DMA (see RegisteredMemory). Also true for devices in DPDK's own
  /// syntax, because these may use DMA. If false, the CPU reads the data.
  [[nodiscard]] bool reads_by_dma() const;
  /// Returns the port's interface to RegisteredMemory.
  [[nodiscard]] DmaDevice& dma() const;
  /// Returns whether payloads may be sent by reference. The port must send several segments, and must free buffers when
  /// they are sent even if nothing more is sent afterwards.
  [[nodiscard]] bool sends_by_reference() const;
  /// Returns whether every queue can signal packets by a file descriptor: receive_file(), or DPDK's descriptor
  /// (rte_eth_dev_rx_intr_ctl_q).
  [[nodiscard]] bool has_interrupts() const;
  /// Returns the kernel socket behind a queue of af_packet or af_xdp, which is readable while packets are pending. It
  /// belongs to the driver: wait on it, but do not read it. -1 if there is none, or if PortConfig::interrupts was not
  /// set.
  [[nodiscard]] int receive_file(std::uint16_t queue) const;

  /// Returns the state of the link. The link is also down after the kernel has asked for the release of the NIC (VFIO),
  /// or if the NIC was unplugged. Queries the kernel or DPDK. DPDK asks the NIC; virtual drivers with a link interrupt
  /// notify DPDK. Takes 1 to 2 us.
  [[nodiscard]] LinkState link() const;
  /// Returns "cause; cure" for people while the link is down; empty while it is up.
  [[nodiscard]] std::string why_link_is_down() const;
  /// Returns all counters of DPDK and the driver, by DPDK's names ("rx_good_packets", "rx_missed_errors", ...). For
  /// AF_XDP adds the kernel's counters "xdp_rx_dropped", "xdp_rx_ring_full" and "xdp_rx_fill_ring_empty". DPDK's
  /// counter of missed frames includes the frames in xdp_rx_dropped.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> statistics() const;

  /// Returns the memory in MiB that a port with `config` needs, including pools. The result is a valid value of
  /// EalOptions::memory_mb. Throws InputError like the constructor. Also throws InputError if the memory exceeds DPDK's
  /// maximum.
  static std::uint32_t memory_mb(const PortConfig& config);
  /// Throws what the constructor would throw for the name, the settings and the kernel's interface, without using DPDK
  /// and without side effects. Other errors remain possible.
  static void check_config(const PortConfig& config);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
