// Common base of ports on interfaces of the kernel, with any kind of sockets. Internal to this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/dpdk/interface_claim.h"
#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {

class KernelPortKind : public PortKind {
 public:
  /// Describes the sockets that the driver opens.
  struct Sockets {
    int family = 0;
    std::string_view what;        ///< name of the sockets, such as "packet"
    std::string_view permission;  ///< the permission needed to open them
    std::string cure;             ///< what the user can do if the kernel has none of these sockets
  };
  KernelPortKind(PortName name, const PortConfig& config, Sockets sockets);

  void find_interface() override;
  void look() override;
  /// Returns a unique name of the interface, which is the same for all kinds of sockets.
  [[nodiscard]] std::string identity() const override;
  void claim() override;
  [[nodiscard]] NetInterface* interface() const override { return interface_.get(); }
  void adapt(PortPlan& plan) override;
  [[nodiscard]] int numa_node() const override;
  [[nodiscard]] const std::string& device() override { return device_; }
  [[nodiscard]] std::string driver_wanted() override;
  [[nodiscard]] std::string why_not_plugged(int error, const PortLog& log) override;
  void before_try() override;
  [[nodiscard]] std::vector<int> receive_files() const override;
  [[nodiscard]] Steering steering() const override { return Steering::kernel; }
  [[nodiscard]] bool starts_with_interrupts() const override { return true; }
  [[nodiscard]] bool is_of_kernel() const override { return true; }

 protected:
  /// Returns the sockets of the driver's family that were opened since before_try(), in ascending order.
  [[nodiscard]] std::vector<int> new_sockets() const;
  [[nodiscard]] std::vector<int> all_sockets() const;

 private:
  void check_socket() const;

  Sockets kind_;
  std::unique_ptr<NetInterface> interface_;
  std::unique_ptr<InterfaceClaim> claim_;
  std::vector<int> others_;  ///< sockets that were already open in before_try()
  std::string device_;
};

}  // namespace mltcp::dpdk
