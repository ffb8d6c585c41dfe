// Interfaces of the kernel; see net_interface.h.
#include "mltcp/dpdk/net_interface.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
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
        "there is no interface {} in this network namespace; `ip link` lists those that there are", in_quotes(name)));
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

}  // namespace mltcp::dpdk
