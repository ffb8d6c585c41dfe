// The specifics of each kind of port (strategy pattern), as used by port.cpp. Internal to this folder. A new kind is a
// file with a strategy, a line in port_kind.cpp and one in port_name.cpp.
//
// A strategy belongs to one port and has its lifetime. Functions called before find() and plug() do not need DPDK.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_name.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::dpdk {

/// Values derived from a configuration before the port exists.
struct PortPlan {
  std::uint32_t mtu = 0;
  std::uint32_t room = 0;         ///< bytes available for a frame in one buffer
  std::uint32_t buffers = 0;      ///< per queue pair
  std::uint32_t descriptors = 0;  ///< per queue, a power of two

  /// Maximum received frame in bytes, with a VLAN tag.
  [[nodiscard]] std::uint32_t frame() const {
    return mtu + static_cast<std::uint32_t>(encap::kEthernetBytes + encap::kVlanBytes);
  }
};

/// Messages that DPDK and its drivers' libraries have logged since construction.
class PortLog {
 public:
  PortLog();
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] bool has(std::string_view text) const;
  /// " (DPDK says: ...)" with the first error, which is closest to the cause; empty if there is none.
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

  // Before the port exists.

  /// Looks up the kernel's interface for the port, if it is one. Throws InputError if there is no such interface.
  virtual void find_interface() {}
  /// Calls find_interface(), and checks conditions under which the driver would fail without a reason: the interface,
  /// its state, and permission for the driver's sockets. Without side effects. Throws InputError or RunError like
  /// Port's constructor.
  virtual void look() {}
  /// A unique name of the device, of which a process may have one port; call after look().
  [[nodiscard]] virtual std::string identity() const;
  /// The cure if the process already has a port of it.
  [[nodiscard]] virtual std::string cure_if_taken() const {
    return "put more shards on that port, or use another device for this one";
  }
  /// Claims everything that the port needs exclusively. Throws RunError if another process has it.
  virtual void claim() {}
  /// The kernel's interface that the port uses, or creates (available once started); null: none.
  [[nodiscard]] virtual NetInterface* interface() const { return nullptr; }
  /// Adapts the plan to the kind. Throws InputError for what it does not support.
  virtual void adapt(PortPlan& /*plan*/) {}
  /// NUMA node of the device behind the port; -1 if there is none or it is not known yet.
  [[nodiscard]] virtual int numa_node() const { return -1; }
  virtual std::unique_ptr<PacketPool> make_pool(const std::string& pool, const PortPlan& plan, int node) const;
  [[nodiscard]] virtual std::uint64_t pool_bytes(const PortPlan& plan) const;

  // The device.

  /// Finds a device that DPDK can use as it is. Empty: there is none, and it must be plugged.
  virtual std::optional<std::uint16_t> find() { return std::nullopt; }
  /// DPDK's name of the device; must not change from here on.
  [[nodiscard]] virtual const std::string& device() = 0;
  /// Creates the device. Returns 0 or an error code of DPDK's functions.
  virtual int plug(const PortPlan& plan);
  /// Closes and removes the device that find() found or plug() made.
  virtual void unplug(std::uint16_t id);
  /// Called after that with the port's pools; takes those whose buffers may still be in use elsewhere.
  virtual void keep_pools(std::vector<std::unique_ptr<PacketPool>>& /*pools*/) {}
  /// DPDK's name of the driver that plug() needs.
  [[nodiscard]] virtual std::string driver_wanted();
  /// Kind-specific meaning of a failure of plug() or of the port's start, for people; empty: none.
  [[nodiscard]] virtual std::string why_not_plugged(int /*error*/, const PortLog& /*log*/) { return {}; }
  [[nodiscard]] virtual std::string why_not_started(const PortLog& /*log*/) { return {}; }

  // Called around each attempt of plug() and start.

  /// Called once, before the first attempt.
  virtual void prepare() {}
  virtual void before_try() {}
  /// Called whether the attempt succeeded or failed.
  virtual void after_try() {}
  /// Delay in microseconds before a failed attempt is repeated; empty: do not repeat.
  virtual std::optional<unsigned> pause_before_retry() { return std::nullopt; }
  /// Called once the port has started.
  virtual void after_start(const PortPlan& /*plan*/) {}
  /// Replaces the MAC address if the port's differs from the device's.
  virtual void adjust_mac(encap::MacAddress& /*mac*/) const {}
  /// The kernel's sockets behind the queues, by queue; empty: none.
  [[nodiscard]] virtual std::vector<int> receive_files() const { return {}; }

  // Properties.

  /// The device may be hardware, for example used through another process or a driver in DPDK's own syntax: it may use
  /// DMA, and the driver states its limits. Otherwise the CPU reads data, and the MTU is the configured one.
  [[nodiscard]] virtual bool may_be_hardware() const { return false; }
  /// Frames may have several segments even if the device does not report it, because the other end chooses the buffers.
  [[nodiscard]] virtual bool peer_chooses_segments() const { return false; }
  /// How packets are assigned to queues if the device does not hash.
  [[nodiscard]] virtual Steering steering() const { return Steering::peer; }
  /// Whether the device starts even if receive interrupts are requested that it lacks.
  [[nodiscard]] virtual bool starts_with_interrupts() const { return false; }
  /// Whether the kernel's network stack uses the same interface.
  [[nodiscard]] virtual bool is_of_kernel() const { return false; }
  /// "cause; cure" once the device is to be unplugged, or was; empty before.
  [[nodiscard]] virtual std::string why_unplugged() const { return {}; }
  /// Adds counters that DPDK's driver omits.
  virtual void add_statistics(std::vector<std::pair<std::string, std::uint64_t>>& /*all*/) const {}

 protected:
  [[nodiscard]] const PortConfig& config() const { return config_; }
  /// DPDK's arguments for plug().
  [[nodiscard]] virtual std::string arguments(const PortPlan& /*plan*/) { return {}; }

 private:
  PortName name_;
  const PortConfig& config_;
};

/// The strategy for `config.device`; `config` must outlive it. Throws InputError if that is not a port name.
std::unique_ptr<PortKind> make_port_kind(const PortConfig& config);

// One function per kind.
std::unique_ptr<PortKind> make_af_packet_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_af_xdp_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_memif_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_tap_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_ring_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_pci_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_driver_kind(PortName name, const PortConfig& config);

}  // namespace mltcp::dpdk
