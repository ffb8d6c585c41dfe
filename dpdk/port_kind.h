// What is particular about a kind of ports: one strategy for each kind, or family of kinds, and all that port.cpp has
// to know of it. Internal to this folder. A new kind is a file with a strategy, a line in port_kind.cpp and one in
// port_name.cpp.
//
// A strategy belongs to one port and lives as long. What it says before find() and plug() needs no DPDK.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_name.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/ethernet/encapsulation.h"

namespace mltcp::dpdk {

/// What follows from a configuration before there is a port.
struct PortPlan {
  std::uint32_t mtu = 0;
  std::uint32_t room = 0;         ///< bytes of a frame in one buffer
  std::uint32_t buffers = 0;      ///< per queue pair
  std::uint32_t descriptors = 0;  ///< per queue, a power of two

  /// Longest frame that may come, with a tag.
  [[nodiscard]] std::uint32_t frame() const {
    return mtu + static_cast<std::uint32_t>(encap::kEthernetBytes + encap::kVlanBytes);
  }
};

/// What DPDK and the libraries of its drivers have logged since it was made.
class PortLog {
 public:
  PortLog();
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] bool has(std::string_view text) const;
  /// " (DPDK says: ...)" with the first complaint, which is nearest to the cause; or nothing.
  [[nodiscard]] std::string words() const;

 private:
  std::uint64_t mark_;
};

class PortKind {
 public:
  PortKind(PortName name, const PortConfig& config) : name_(std::move(name)), config_(config) {}
  virtual ~PortKind() = default;
  PortKind(const PortKind&) = delete;
  PortKind& operator=(const PortKind&) = delete;

  [[nodiscard]] const PortName& name() const { return name_; }
  [[nodiscard]] std::string quoted() const;

  // Before there is a port.

  /// Finds the kernel's interface that the port is, if it is one. Throws InputError if there is none of that name.
  virtual void find_interface() {}
  /// Does that, and looks at what the driver would refuse without saying why: the interface, its state, the sockets
  /// that the driver opens. Changes nothing on the machine. Throws InputError or RunError like Port's constructor.
  virtual void look() {}
  /// Takes what a port has for itself alone. Throws RunError if another has it.
  virtual void claim() {}
  /// The kernel's interface that the port is, or makes (then once it has started); null: none.
  [[nodiscard]] virtual NetInterface* interface() const { return nullptr; }
  /// What the kind makes of a plan. Throws InputError for what it can't have.
  virtual void adapt(PortPlan& /*plan*/) {}
  /// NUMA node of what is behind the port; -1 if it has none, or none is known yet.
  [[nodiscard]] virtual int numa_node() const { return -1; }
  virtual std::unique_ptr<PacketPool> make_pool(const std::string& pool, const PortPlan& plan, int node) const;
  [[nodiscard]] virtual std::uint64_t pool_bytes(const PortPlan& plan) const;

  // The device.

  /// Finds a device that DPDK has already, or may take. Empty: there is none, and it has to be plugged.
  virtual std::optional<std::uint16_t> find(const Eal& /*eal*/) { return std::nullopt; }
  /// DPDK's name of the device. To be constant from here on.
  [[nodiscard]] virtual const std::string& device() = 0;
  /// Makes the device. 0, or an error as DPDK's functions return it.
  virtual int plug(const PortPlan& plan);
  /// Closes and removes the device that find() found or plug() made.
  virtual void unplug(std::uint16_t id);
  /// The driver that plug() needs, as DPDK calls it.
  [[nodiscard]] virtual std::string driver_wanted();
  /// What plug() and the start of the port mean by an error, for people, beyond what holds for all kinds; empty:
  /// nothing.
  [[nodiscard]] virtual std::string why_not_plugged(int /*error*/, const PortLog& /*log*/) { return {}; }
  [[nodiscard]] virtual std::string why_not_started(const PortLog& /*log*/) { return {}; }

  // Around plug() and the start, each try of them.

  /// Once, before the first try.
  virtual void prepare() {}
  virtual void before_try() {}
  /// Whether it succeeded or failed.
  virtual void after_try() {}
  /// How long to wait, in microseconds, before what has failed is tried again; empty: it has failed.
  virtual std::optional<unsigned> pause_before_retry() { return std::nullopt; }
  /// Once the port has started.
  virtual void after_start(const PortPlan& /*plan*/) {}
  /// The port's address, where that is not the device's.
  virtual void adjust_mac(encap::MacAddress& /*mac*/) const {}
  /// The kernel's sockets behind the queues, in their order; empty: none.
  [[nodiscard]] virtual std::vector<int> receive_files() const { return {}; }

  // What it is like.

  /// Another process's end, or DPDK's words, may be any device: it may read by DMA, and its limits are as the driver
  /// tells them. Else the CPU reads, and the MTU is what the configuration says.
  [[nodiscard]] virtual bool may_be_hardware() const { return false; }
  /// Eal can give its memory back after it.
  [[nodiscard]] virtual bool gives_memory_back() const { return false; }
  /// Frames may come in several segments although the device doesn't say so, since the other end chooses the buffers.
  [[nodiscard]] virtual bool peer_chooses_segments() const { return false; }
  /// How packets get to queues where the device doesn't hash.
  [[nodiscard]] virtual Steering steering() const { return Steering::peer; }
  /// The device starts when it is asked for receive interrupts that it doesn't have.
  [[nodiscard]] virtual bool starts_with_interrupts() const { return false; }
  /// The kernel's stack sends and receives over the same interface.
  [[nodiscard]] virtual bool is_of_kernel() const { return false; }
  /// Counters that DPDK's driver leaves out.
  virtual void add_statistics(std::vector<std::pair<std::string, std::uint64_t>>& /*all*/) const {}

 protected:
  [[nodiscard]] const PortConfig& config() const { return config_; }
  /// The words of DPDK for the device, for plug().
  [[nodiscard]] virtual std::string arguments(const PortPlan& /*plan*/) { return {}; }

 private:
  PortName name_;
  const PortConfig& config_;
};

/// The strategy for `config.device`; `config` outlives it. Throws InputError if that is no port's name.
std::unique_ptr<PortKind> make_port_kind(const PortConfig& config);

// One a kind.
std::unique_ptr<PortKind> make_af_packet_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_af_xdp_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_memif_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_tap_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_ring_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_pci_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_driver_kind(PortName name, const PortConfig& config);

}  // namespace mltcp::dpdk
