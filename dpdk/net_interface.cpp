// Interfaces of the kernel; see net_interface.h.
#include "mltcp/dpdk/net_interface.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/base/text.h"

namespace mltcp::dpdk {
namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

NetInterface::NetInterface(const std::string& name) : name_(name) {
  ifreq request = request_for(name);
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) throw RunError(fmt::format("no socket can be opened ({}); close some files", std::strerror(errno)));
  if (name.empty() || name.size() >= IFNAMSIZ || ioctl(socket_, SIOCGIFINDEX, &request) != 0) {
    close(socket_);
    throw InputError(fmt::format(
        "there is no interface {} in this network namespace; `ip link` lists the existing ones", in_quotes(name)));
  }
}

NetInterface::~NetInterface() { close(socket_); }

bool NetInterface::is_ethernet() const {
  ifreq request = request_for(name_);
  return ioctl(socket_, SIOCGIFHWADDR, &request) == 0 && request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
}

unsigned NetInterface::flags() const {
  ifreq request = request_for(name_);
  return ioctl(socket_, SIOCGIFFLAGS, &request) == 0 ? static_cast<unsigned short>(request.ifr_flags) : 0U;
}

bool NetInterface::is_up() const { return (flags() & IFF_UP) != 0; }
bool NetInterface::is_running() const { return (flags() & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING); }

std::uint32_t NetInterface::mtu() const {
  ifreq request = request_for(name_);
  return ioctl(socket_, SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

bool NetInterface::set_mtu(std::uint32_t mtu) {
  ifreq request = request_for(name_);
  request.ifr_mtu = static_cast<int>(mtu);
  return ioctl(socket_, SIOCSIFMTU, &request) == 0;
}

bool NetInterface::is_promiscuous() const { return (flags() & IFF_PROMISC) != 0; }

bool NetInterface::set_promiscuous(bool on) {
  const unsigned before = flags();
  ifreq request = request_for(name_);
  request.ifr_flags = static_cast<short>(on ? before | IFF_PROMISC : before & ~unsigned{IFF_PROMISC});
  return ioctl(socket_, SIOCSIFFLAGS, &request) == 0;
}

NetInterface::Queues NetInterface::queues() const {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request = request_for(name_);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (ioctl(socket_, SIOCETHTOOL, &request) != 0) return {};
  return {std::max(channels.combined_count + channels.rx_count, 1U), std::max(channels.combined_count, 1U)};
}

Rate NetInterface::rate() const {
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_GSET;
  ifreq request = request_for(name_);
  request.ifr_data = reinterpret_cast<char*>(&settings);
  if (ioctl(socket_, SIOCETHTOOL, &request) != 0) return {};
  const std::uint32_t mbps = ethtool_cmd_speed(&settings);
  return mbps == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? Rate() : Rate(std::uint64_t{mbps} * 1'000'000);
}

std::string NetInterface::driver() const {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request = request_for(name_);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (ioctl(socket_, SIOCETHTOOL, &request) != 0) return "";
  return {std::begin(info.driver), std::find(std::begin(info.driver), std::end(info.driver), '\0')};
}

std::string NetInterface::bus() const {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request = request_for(name_);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (ioctl(socket_, SIOCETHTOOL, &request) != 0) return "";
  return {std::begin(info.bus_info), std::find(std::begin(info.bus_info), std::end(info.bus_info), '\0')};
}

namespace {

/// Calls `use` for each netlink attribute in `data`, with the attribute's type, contents and length.
template <typename Use>
void for_attributes(const void* data, std::size_t bytes, Use use) {
  const auto* attribute = static_cast<const rtattr*>(data);
  for (auto left = static_cast<int>(bytes); RTA_OK(attribute, left);) {
    use(attribute->rta_type & NLA_TYPE_MASK, reinterpret_cast<const char*>(attribute) + RTA_LENGTH(0),
        RTA_PAYLOAD(attribute));
    const auto step = static_cast<int>(RTA_ALIGN(attribute->rta_len));
    left -= step;
    attribute = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(attribute) + step);
  }
}

std::uint32_t number_in(const void* data, std::size_t bytes) {
  std::uint32_t value = 0;
  if (bytes >= sizeof value) std::memcpy(&value, data, sizeof value);
  return value;
}

std::string text_in(const void* data, std::size_t bytes) {
  return {static_cast<const char*>(data), strnlen(static_cast<const char*>(data), bytes)};
}

struct Link {
  InterfaceState state;
  int index = 0;
  int below = 0;  ///< index of the lower interface in this namespace; 0 if there is none
};

Link link_of(const ifinfomsg& info, const void* attributes, std::size_t bytes) {
  Link link;
  link.index = info.ifi_index;
  link.state.is_loopback = (info.ifi_flags & IFF_LOOPBACK) != 0;
  bool elsewhere = false;
  for_attributes(attributes, bytes, [&](int type, const void* data, std::size_t size) {
    if (type == IFLA_IFNAME) link.state.name = text_in(data, size);
    if (type == IFLA_MASTER) link.state.is_part = true;
    if (type == IFLA_LINK) link.below = static_cast<int>(number_in(data, size));
    if (type == IFLA_LINK_NETNSID) elsewhere = true;
    if (type == IFLA_XDP) {
      for_attributes(data, size, [&](int inner, const void* value, std::size_t) {
        if (inner == IFLA_XDP_ATTACHED) link.state.has_xdp = *static_cast<const std::uint8_t*>(value) != 0;
      });
    }
    if (type == IFLA_LINKINFO) {
      for_attributes(data, size, [&](int inner, const void* value, std::size_t length) {
        if (inner == IFLA_INFO_KIND) link.state.kind = text_in(value, length);
      });
    }
  });
  if (elsewhere || link.state.kind == "veth") link.below = 0;  // IFLA_LINK of a veth is its peer
  return link;
}

std::vector<Link> all_links() {
  const auto fail = [](const char* what) -> RunError {
    return RunError(
        fmt::format("the kernel does not list its interfaces ({}: {}); try as root", what, std::strerror(errno)));
  };
  const int file = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (file < 0) throw fail("socket");
  struct {
    nlmsghdr header;
    ifinfomsg info;
  } request{};
  request.header = {sizeof request, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0};
  std::vector<Link> links;
  bool more = send(file, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
  bool failed = !more;
  alignas(nlmsghdr) static thread_local char buffer[1 << 16];
  while (more) {
    const ssize_t got = recv(file, buffer, sizeof buffer, 0);
    failed = got <= 0;
    if (failed) break;
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(message, left);) {
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
        more = false;
        failed = message->nlmsg_type == NLMSG_ERROR;
        break;
      }
      const auto* info = reinterpret_cast<const ifinfomsg*>(reinterpret_cast<const char*>(message) + NLMSG_HDRLEN);
      links.push_back(link_of(*info, info + 1, message->nlmsg_len - NLMSG_LENGTH(sizeof *info)));
      const unsigned step = NLMSG_ALIGN(message->nlmsg_len);
      if (step >= left) break;
      left -= step;
      message = reinterpret_cast<const nlmsghdr*>(reinterpret_cast<const char*>(message) + step);
    }
  }
  close(file);
  if (failed) throw fail("rtnetlink");
  return links;
}

}  // namespace

std::vector<InterfaceState> list_interfaces() {
  const std::vector<Link> links = all_links();
  std::vector<InterfaceState> states;
  for (const Link& link : links) {
    states.push_back(link.state);
    states.back().has_upper =
        std::any_of(links.begin(), links.end(), [&](const Link& other) { return other.below == link.index; });
  }
  const auto with_name = [&](const std::string& name, bool InterfaceState::*what) {
    for (InterfaceState& state : states) {
      if (state.name == name) state.*what = true;
    }
  };
  std::ifstream sockets("/proc/thread-self/net/packet");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string skipped;
    int index = 0;
    if (!(words >> skipped >> skipped >> skipped >> skipped >> index)) continue;  // skips the header line
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i].index == index) states[i].has_socket = true;
    }
  }
  for (const InterfaceAddress& one : interface_addresses()) {
    const bool link_local = one.ip[0] == 0xFE && (one.ip[1] & 0xC0) == 0x80;  // RFC 4291 section 2.4
    if (!link_local) with_name(one.interface, &InterfaceState::has_address);
  }
  std::ifstream v4("/proc/thread-self/net/route");
  for (std::string line; std::getline(v4, line);)
    with_name(line.substr(0, line.find('\t')), &InterfaceState::has_route);
  std::ifstream v6("/proc/thread-self/net/ipv6_route");
  for (std::string line; std::getline(v6, line);) {
    if (line.starts_with("fe80") || line.starts_with("ff00")) continue;
    const std::size_t space = line.find_last_of(' ');
    if (space != std::string::npos) with_name(line.substr(space + 1), &InterfaceState::has_route);
  }
  return states;
}

}  // namespace mltcp::dpdk
