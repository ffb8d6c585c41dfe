// Ports that create a kernel interface (tap).
#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {
namespace {

class TapKind final : public PortKind {
 public:
  TapKind(PortName name, const PortConfig& config)
      : PortKind(std::move(name), config), device_("net_tap_" + this->name().target) {}

  void look() override {
    if (if_nametoindex(name().target.c_str()) != 0) {
      throw InputError(
          fmt::format("port {}: there is an interface {} already; choose another name, or use af_packet:{}", quoted(),
                      name().target, name().target));
    }
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {
      const int error = errno;
      throw RunError(fmt::format("port {}: /dev/net/tun can't be opened ({}); {}", quoted(), std::strerror(error),
                                 error == ENOENT ? "load it: modprobe tun" : "run it as root"));
    }
  }
  [[nodiscard]] const std::string& device() override { return device_; }
  std::string why_not_plugged(int /*error*/, const PortLog& log) override {
    return fmt::format("port {}: the kernel does not make interface {}{}; run it as root or with CAP_NET_ADMIN",
                       quoted(), name().target, log.words());
  }

  void after_start(const PortPlan& plan) override {
    interface_ = std::make_unique<NetInterface>(name().target);
    if (!interface_->set_mtu(plan.mtu)) {
      throw InputError(fmt::format("port {}: the kernel refuses an MTU of {} on a tap interface; give a lower one",
                                   quoted(), plan.mtu));
    }
  }
  [[nodiscard]] NetInterface* interface() const override { return interface_.get(); }
  // DPDK reports the MAC address of the kernel interface. The port needs a different address.
  void adjust_mac(encap::MacAddress& mac) const override { mac[5] ^= 1; }

 protected:
  std::string arguments(const PortPlan& /*plan*/) override { return "iface=" + name().target; }

 private:
  std::string device_;
  std::unique_ptr<NetInterface> interface_;
};

}  // namespace

std::unique_ptr<PortKind> make_tap_kind(PortName name, const PortConfig& config) {
  return std::make_unique<TapKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
