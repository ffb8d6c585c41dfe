// The specifics of each kind of port (strategy pattern), as used by port.cpp. Internal to this folder. A new kind needs
// a file with a strategy, a line in port_kind.cpp and a line in port_name.cpp.
//
// A strategy belongs to one port and has the port's lifetime. Functions that are called before find() and plug() do not
// need DPDK.
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
  std::uint32_t data_bytes = 0;   ///< bytes available for a frame in one buffer
  std::uint32_t buffers = 0;      ///< number of buffers per queue pair
  std::uint32_t descriptors = 0;  ///< descriptors per queue, a power of two

  /// Returns the maximum length of a received frame in bytes, with a VLAN tag.
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
  /// Returns " (DPDK says: ...)" with the first error, which is closest to the cause; empty if there is no error.
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

  // Functions that are called before the port exists.

  /// Looks up the kernel's interface if the port uses one. Throws InputError if there is no such interface.
  virtual void find_interface() {}
  /// Calls find_interface(), and checks conditions under which the driver would fail without stating a reason: the
  /// interface, its state, and permission for the driver's sockets. Has no side effects. Throws InputError or RunError
  /// like Port's constructor.
  virtual void look() {}
  /// Returns a unique name of the device. A process may have only one port of a device. Call it after look().
  [[nodiscard]] virtual std::string identity() const;
  /// Returns what the user can do if the process already has a port of this device.
  [[nodiscard]] virtual std::string cure_if_taken() const {
    return "put more shards on that port, or use another device for this one";
  }
  /// Claims everything that the port needs exclusively. Throws RunError if another process has it already.
  virtual void claim() {}
  /// Returns the kernel's interface that the port uses. Null if there is none, or if the port creates it and has not
  /// started yet.
  [[nodiscard]] virtual NetInterface* interface() const { return nullptr; }
  /// Adapts the plan to the kind. Throws InputError if the kind does not support the plan.
  virtual void adapt(PortPlan& /*plan*/) {}
  /// Returns the NUMA node of the device behind the port. -1 if there is none or it is not known yet.
  [[nodiscard]] virtual int numa_node() const { return -1; }
  virtual std::unique_ptr<PacketPool> make_pool(const std::string& pool, const PortPlan& plan, int node) const;
  [[nodiscard]] virtual std::uint64_t pool_bytes(const PortPlan& plan) const;

  // Functions that make and remove the device.

  /// Returns DPDK's number of the device if DPDK can use the device without plug(). Empty if plug() must make the
  /// device.
  virtual std::optional<std::uint16_t> find() { return std::nullopt; }
  /// Returns DPDK's name of the device. From the first call on the name must not change.
  [[nodiscard]] virtual const std::string& device() = 0;
  /// Creates the device. Returns 0 or an error code of DPDK's functions.
  virtual int plug(const PortPlan& plan);
  /// Closes and removes the device that find() has found or plug() has made.
  virtual void unplug(std::uint16_t id);
  /// Called after unplug() with the port's pools. Moves pools out of `pools` if their buffers may still be in use
  /// elsewhere.
  virtual void keep_pools(std::vector<std::unique_ptr<PacketPool>>& /*pools*/) {}
  /// Returns DPDK's name of the driver that plug() needs.
  [[nodiscard]] virtual std::string driver_wanted();
  /// why_not_plugged() explains a failure of plug(), and why_not_started() a failure of the port's start, for people.
  /// Both return an empty text if the kind has no special explanation.
  [[nodiscard]] virtual std::string why_not_plugged(int /*error*/, const PortLog& /*log*/) { return {}; }
  [[nodiscard]] virtual std::string why_not_started(const PortLog& /*log*/) { return {}; }

  // Functions that are called around each attempt to plug and start the port.

  /// Called once, before the first attempt.
  virtual void prepare() {}
  virtual void before_try() {}
  /// Called after each attempt, whether it succeeded or failed.
  virtual void after_try() {}
  /// Returns the delay in microseconds before a failed attempt is repeated. Empty if it is not to be repeated.
  virtual std::optional<unsigned> pause_before_retry() { return std::nullopt; }
  /// Called once the port has started.
  virtual void after_start(const PortPlan& /*plan*/) {}
  /// Corrects `mac`, the MAC address that DPDK reports, if the port uses a different one.
  virtual void adjust_mac(encap::MacAddress& /*mac*/) const {}
  /// Returns the kernel's sockets behind the queues, indexed by queue; empty if there are none.
  [[nodiscard]] virtual std::vector<int> receive_files() const { return {}; }

  // Properties.

  /// Returns whether the device may be hardware, for example behind another process or a driver in DPDK's own syntax.
  /// Hardware may use DMA, and its driver states its limits. If false, the CPU reads data, and the MTU is the
  /// configured MTU.
  [[nodiscard]] virtual bool may_be_hardware() const { return false; }
  /// Returns whether frames may have several segments even if the device does not report it, because the peer chooses
  /// the buffers.
  [[nodiscard]] virtual bool peer_chooses_segments() const { return false; }
  /// Returns how packets are assigned to queues if the device does not hash.
  [[nodiscard]] virtual Steering steering() const { return Steering::peer; }
  /// Returns whether a device without receive interrupts starts even if receive interrupts are requested.
  [[nodiscard]] virtual bool starts_with_interrupts() const { return false; }
  /// Returns whether the kernel's network stack also uses the port's interface.
  [[nodiscard]] virtual bool is_of_kernel() const { return false; }
  /// Returns "cause; cure" if the device is to be unplugged, or was unplugged. Otherwise returns an empty string.
  [[nodiscard]] virtual std::string why_unplugged() const { return {}; }
  /// Adds counters that DPDK's driver omits.
  virtual void add_statistics(std::vector<std::pair<std::string, std::uint64_t>>& /*all*/) const {}

 protected:
  [[nodiscard]] const PortConfig& config() const { return config_; }
  /// Returns DPDK's arguments for plug().
  [[nodiscard]] virtual std::string arguments(const PortPlan& /*plan*/) { return {}; }

 private:
  PortName name_;
  const PortConfig& config_;
};

/// Returns the strategy for `config.device`. `config` must outlive it. Throws InputError if `config.device` is not a
/// port name.
std::unique_ptr<PortKind> make_port_kind(const PortConfig& config);

// Each function makes the strategy of one kind.
std::unique_ptr<PortKind> make_af_packet_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_af_xdp_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_memif_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_tap_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_ring_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_pci_kind(PortName name, const PortConfig& config);
std::unique_ptr<PortKind> make_driver_kind(PortName name, const PortConfig& config);

}  // namespace mltcp::dpdk
