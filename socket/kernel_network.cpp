// The kernel's interfaces and addresses; see kernel_network.h.
#include "mltcp/socket/kernel_network.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/base/text.h"

namespace mltcp::socket {
namespace {

constexpr std::uint32_t kLoopbackNetwork = 127;  // first octet of 127.0.0.0/8 (RFC 1122 section 3.2.1.3)

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

std::vector<KernelAddress> kernel_addresses() {
  std::vector<KernelAddress> all;
  for (const InterfaceAddress& one : interface_addresses()) all.push_back({one.interface, {.ip = one.ip}});
  return all;
}

std::string interface_of(const Address& address) {
  const auto all = kernel_addresses();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const KernelAddress& one) { return one.address.ip == address.ip; });
  if (found != all.end()) return found->interface;
  if (!address.is_v4() || address.v4_ip() >> 24 != kLoopbackNetwork) return "";
  const auto loopback = std::find_if(all.begin(), all.end(), [](const KernelAddress& one) {
    return one.address.is_v4() && one.address.v4_ip() >> 24 == kLoopbackNetwork;
  });
  return loopback == all.end() ? "" : loopback->interface;
}

std::string list_addresses(const Address& like, const std::string& interface) {
  std::string list;
  for (const KernelAddress& one : kernel_addresses()) {
    if (one.address.is_v4() != like.is_v4() || (!interface.empty() && one.interface != interface)) continue;
    std::string text = to_text(one.address);
    text.resize(text.rfind(':'));  // removes the port from the text
    if (text.front() == '[') text = text.substr(1, text.size() - 2);
    list += fmt::format("{}{}{}", list.empty() ? "" : ", ", interface.empty() ? one.interface + " " : "", text);
  }
  return list;
}

Interface::Interface(std::string name) : name_(std::move(name)) {
  ifreq request = request_for(name_);
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 && errno == EAFNOSUPPORT) socket_ = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) throw RunError(fmt::format("no socket can be opened ({}); close some files", std::strerror(errno)));
  if (name_.empty() || name_.size() >= IFNAMSIZ || ioctl(socket_, SIOCGIFINDEX, &request) != 0) {
    close(socket_);
    throw InputError(fmt::format(
        "there is no interface {} in this network namespace; `ip link` lists the existing ones", in_quotes(name_)));
  }
  index_ = static_cast<std::uint32_t>(request.ifr_ifindex);
}

Interface::~Interface() { close(socket_); }

std::uint32_t Interface::mtu() const {
  ifreq request = request_for(name_);
  return ioctl(socket_, SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

std::string Interface::why_down() const { return why_without(IFF_UP | IFF_RUNNING); }
std::string Interface::why_unusable() const { return why_without(IFF_UP); }

std::string Interface::why_without(unsigned flags) const {
  ifreq request = request_for(name_);
  if (ioctl(socket_, SIOCGIFFLAGS, &request) != 0)
    return fmt::format("interface {} no longer exists; create it again, with its other end if it is a pair (veth)",
                       name_);
  const unsigned lacking = flags & ~unsigned{static_cast<unsigned short>(request.ifr_flags)};
  if ((lacking & IFF_UP) != 0) return fmt::format("interface {0} is down; bring it up: ip link set dev {0} up", name_);
  if (lacking != 0)
    return fmt::format("interface {} has no carrier; check its cable, or bring the interface at its other end up",
                       name_);
  return "";
}

}  // namespace mltcp::socket
