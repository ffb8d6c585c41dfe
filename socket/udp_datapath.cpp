// The kernel's UDP sockets as a host's datapath, with one socket per shard; see register_datapath.h and udp_name.h.
//
// The host's address belongs to the kernel. The kernel also chooses routes and resolves neighbours.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/base/time_source.h"
#include "mltcp/socket/internal/buffer_limits.h"
#include "mltcp/socket/kernel_network.h"
#include "mltcp/socket/register_datapath.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/socket/udp_name.h"
#include "mltcp/transport/ethernet/ip_address.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::socket {
namespace {

constexpr std::uint32_t kMinMtu = 576;  // every host accepts packets of this length (RFC 791 section 3.1)
constexpr std::uint32_t kMaxMtu = 65535;
constexpr std::uint32_t kUsualMtu = 1500;
/// Minimum time between the two readings that measure the TSC's frequency. The result is then accurate to a few parts
/// per million.
constexpr Nanos kCalibration{50'000'000};
/// Bytes by which the requested socket buffer grows per packet, to cover the kernel's own data of the packet.
constexpr std::uint64_t kOverheadOfPacket = 1024;

[[noreturn]] void refuse(const HostDatapathConfig& config, const std::string& why) {
  throw InputError(fmt::format("port {}: {}", in_quotes(config.device), why));
}

/// Checks everything in `config` that does not depend on a HostPlace.
UdpName check_config(const HostDatapathConfig& config) {
  UdpName name = parse_udp_name(config.device);
  if (config.mtu != 0 && (config.mtu < kMinMtu || config.mtu > kMaxMtu))
    refuse(config, fmt::format("an MTU of {} bytes; give {} to {}", config.mtu, kMinMtu, kMaxMtu));
  if (config.queues > 1)
    refuse(config, fmt::format("{} queues, but each shard has a socket of its own here; leave their number out",
                               config.queues));
  if (!name.interface.empty())
    if (const std::string down = Interface(name.interface).why_unusable(); !down.empty()) refuse(config, down);
  return name;
}

/// The address and interface of a host's sockets.
struct Site {
  Address address;        ///< with the UDP port of shard 0
  std::string interface;  ///< empty if there are several, or if it is not known
  std::uint32_t mtu = 0;
};

/// Returns the smallest MTU of all interfaces except lo that have an address of the same IP version as `like`. Returns
/// kUsualMtu if there are none.
std::uint32_t common_mtu(const Address& like) {
  std::uint32_t min = 0;
  for (const KernelAddress& one : kernel_addresses()) {
    if (one.address.is_v4() != like.is_v4() || one.interface == "lo") continue;
    const std::uint32_t mtu = Interface(one.interface).mtu();
    min = min == 0 ? mtu : std::min(min, mtu);
  }
  return min != 0 ? min : kUsualMtu;
}

Address address_of_interface(const HostDatapathConfig& config, const std::string& interface, const Address& like) {
  std::optional<Address> found;
  for (const KernelAddress& one : kernel_addresses()) {
    if (one.interface != interface || one.address.is_v4() != like.is_v4()) continue;
    if (!found || (is_link_local(*found) && !is_link_local(one.address))) found = one.address;
  }
  if (!found)
    refuse(config, fmt::format("{0} has no IPv{1} address; give it one: ip addr add {2} dev {0}", interface,
                               like.is_v4() ? 4 : 6, like.is_v4() ? "10.0.0.1/24" : "fd00::1/64"));
  return *found;
}

/// Returns the address, interface and MTU of the sockets. Throws for every error in `place` that can be found without
/// binding a socket.
Site site_of(const HostDatapathConfig& config, const HostPlace& place) {
  const UdpName name = check_config(config);
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  if (place.address.port == 0 || place.address.port + shards - 1 > 65535)
    throw InputError(fmt::format("UDP port {} for the first of {}; give 1 to {}", place.address.port,
                                 plural(shards, "shard"), 65536 - shards));
  if (!is_unspecified(place.gateway))
    refuse(config, fmt::format("the kernel chooses the route here and would not use {}; leave the gateway out, and add "
                               "it to the kernel: ip route add default via {}",
                               ip_text(place.gateway), ip_text(place.gateway)));
  Site site{place.address, name.interface, 0};
  if (name.address) {
    if (is_unspecified(place.address))
      site.address = *name.address;
    else if (name.address->ip != place.address.ip)
      refuse(config,
             fmt::format("the host's address is {}; give the same in both, or write udp:", ip_text(place.address)));
    site.address.port = place.address.port;
  }
  if (is_unspecified(site.address)) {
    if (name.interface.empty()) {
      site.mtu = common_mtu(site.address);
    } else {
      site.address = address_of_interface(config, name.interface, place.address);
      site.address.port = place.address.port;
    }
  }
  if (site.mtu == 0) {
    const std::string has = interface_of(site.address);
    if (!name.interface.empty() && has != name.interface) {
      const std::string own = list_addresses(site.address, name.interface);
      refuse(config, fmt::format("{0} does not have {1}{2}; give the host one that it has, or add it: ip addr add "
                                 "{1}/{3} dev {0}",
                                 name.interface, ip_text(site.address),
                                 own.empty() ? std::string(", and no other of that version") : ", but " + own,
                                 place.prefix_bits));
    }
    if (has.empty())
      refuse(config, fmt::format("this machine does not have {0}, but {2}; give the host one of these, or add it: ip "
                                 "addr add {0}/{1} dev IFACE",
                                 ip_text(site.address), place.prefix_bits, list_addresses(site.address, "")));
    const Interface interface(has);
    if (const std::string down = interface.why_unusable(); !down.empty()) refuse(config, down);
    site.interface = has;
    site.mtu = interface.mtu();
  }
  site.mtu = std::min(site.mtu, kMaxMtu);
  if (config.mtu > site.mtu)
    refuse(config, site.interface.empty()
                       ? fmt::format("an MTU of {}, but the interfaces here have {}", config.mtu, site.mtu)
                       : fmt::format("an MTU of {0}, but {1} has {2}; set it: ip link set dev {1} mtu {0}", config.mtu,
                                     site.interface, site.mtu));
  if (config.mtu != 0) site.mtu = config.mtu;
  return site;
}

std::uint32_t buffer_for(const HostDatapathConfig& config, std::uint32_t mtu) {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(config.queue_packets * (mtu + kOverheadOfPacket), kMinBuffer, kMaxBuffer));
}

SocketIoConfig io_config(const HostDatapathConfig& config, const Site& site, std::uint16_t shard) {
  SocketIoConfig io;
  io.address = site.address;
  io.address.port = static_cast<std::uint16_t>(io.address.port + shard);
  io.mtu = site.mtu;
  io.interface = site.interface.empty() ? 0 : Interface(site.interface).index();
  io.buffer_bytes = buffer_for(config, site.mtu);
  return io;
}

/// Returns whether the kernel's ARP table has an unanswered request for this address (proc_pid_net(5)).
bool is_asked_for_in_vain(const Address& address) {
  std::ifstream table("/proc/thread-self/net/arp");
  const std::string ip = ip_text(address);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string entry;
    std::string type;
    std::string flags;
    if (words >> entry >> type >> flags && entry == ip) return flags == "0x0";
  }
  return false;
}

class UdpDatapath final : public HostDatapath {
 public:
  explicit UdpDatapath(const HostDatapathConfig& config) : config_(config), time_(clock_) {
    const UdpName name = check_config(config);
    site_.interface = name.interface;
    if (!name.interface.empty()) {
      interface_ = std::make_unique<Interface>(name.interface);
      site_.mtu = std::min(interface_->mtu(), kMaxMtu);
    }
    if (config.mtu != 0 || site_.mtu == 0) site_.mtu = config.mtu != 0 ? config.mtu : kUsualMtu;
    const int cpu = named_cpu(config.cores);
    if (cpu < 0) return;
    if (const int error = keep_thread_on(static_cast<unsigned>(cpu)); error != 0)
      throw RunError(
          fmt::format("this thread can't be bound to CPU {} ({}); leave the CPU out", cpu, std::strerror(error)));
  }

  [[nodiscard]] std::string description() const override {
    std::string text =
        fmt::format("{}{} kernel UDP sockets{}, MTU {}", config_.device, config_.device.ends_with(':') ? "" : ":",
                    site_.interface.empty() ? "" : " on " + site_.interface, mtu());
    if (ios_.empty()) return text;
    const SocketIo& io = *ios_.front();
    text += fmt::format(", {}, {}", io.segments() ? "GSO" : "no GSO", io.coalesces() ? "GRO" : "no GRO");
    if (!io.limits().ecn) text += ", no ECN";
    const double got = io.receive_buffer() * 1e-6;
    const double wanted = 2e-6 * buffer_for(config_, site_.mtu);
    text += fmt::format(", receive buffers of {:.1f} MB", got);
    if (got < 0.99 * wanted) text += fmt::format(" ({:.1f} MB requested, see net.core.rmem_max)", wanted);
    return text;
  }
  [[nodiscard]] std::uint32_t mtu() const override { return site_.mtu; }
  [[nodiscard]] TimeSource& time() override { return time_; }

  [[nodiscard]] std::string why_link_is_down() const override {
    return interface_ == nullptr ? "" : interface_->why_down();
  }
  [[nodiscard]] std::string why_silent(const Address& peer) const override {
    if (std::string down = why_link_is_down(); !down.empty()) return down;
    for (const auto& io : ios_)
      if (io->is_narrow(peer))
        return fmt::format(
            "packets of {} bytes are too long for the path to {}; give all hosts a lower MTU (--mtu), or raise the MTU "
            "of the interfaces between",
            site_.mtu, ip_text(peer));
    return {};
  }

  void take_place(const HostPlace& place) override {
    Site site = site_of(config_, place);
    // Calibrate the TSC, because the loop reads the time in each round.
    if (const Nanos since = clock_.now() - opened_; since < kCalibration) Clock::sleep(kCalibration - since);
    clock_.calibrate();
    std::vector<std::unique_ptr<SocketIo>> ios;
    for (std::uint16_t shard = 0; shard < std::max<std::uint16_t>(place.shards, 1); ++shard)
      ios.push_back(std::make_unique<SocketIo>(io_config(config_, site, shard)));
    if (!site.interface.empty()) interface_ = std::make_unique<Interface>(site.interface);
    site_ = std::move(site);
    ios_ = std::move(ios);
  }
  [[nodiscard]] std::uint16_t shards() const override { return static_cast<std::uint16_t>(ios_.size()); }
  [[nodiscard]] PacketIo& io(std::uint16_t shard) override { return *ios_.at(shard); }

  /// Returns whether there is a route to `destination` and no unanswered ARP request for it. The kernel itself resolves
  /// neighbours when there is a packet for them.
  bool resolve(std::uint16_t /*shard*/, const Address& destination) override {
    const int file = ::socket(destination.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file < 0) return false;
    int result = -1;
    if (destination.is_v4()) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(destination.port);
      to.sin_addr.s_addr = htonl(destination.v4_ip());
      result = connect(file, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    } else {
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      to.sin6_port = htons(destination.port);
      std::memcpy(&to.sin6_addr, destination.ip.data(), destination.ip.size());
      if (is_link_local(destination) && interface_ != nullptr) to.sin6_scope_id = interface_->index();
      result = connect(file, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    close(file);
    return result == 0 && !(destination.is_v4() && is_asked_for_in_vain(destination));
  }

  [[nodiscard]] DatapathLosses losses() const override {
    DatapathLosses losses;
    for (const auto& io : ios_) {
      const SocketIoCounters& counters = io->counters();
      losses.missed += io->missed();
      losses.errors += counters.truncated;
      losses.unsent += counters.unsendable + counters.too_big + counters.refused;
    }
    return losses;
  }

 private:
  const HostDatapathConfig config_;
  Clock clock_;
  const Nanos opened_ = monotonic_now();
  SystemTime time_;
  Site site_;
  std::unique_ptr<Interface> interface_;
  std::vector<std::unique_ptr<SocketIo>> ios_;
};

void check(const HostDatapathConfig& config, const HostPlace& place) {
  const Site site = site_of(config, place);
  named_cpu(config.cores);
  // Binding a socket shows whether its UDP port is in use.
  for (std::uint16_t shard = 0; shard < std::max<std::uint16_t>(place.shards, 1); ++shard)
    const SocketIo trial(io_config(config, site, shard));
}

/// Occupies a UDP port during the object's lifetime.
class HeldPort {
 public:
  /// If the port of `address` is 0, the kernel chooses a port.
  HeldPort(Address address, std::uint32_t interface)
      : file_(::socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (file_ < 0)
      throw RunError(
          fmt::format("no socket can be opened ({}); raise the limit of open files (ulimit -n)", std::strerror(errno)));
    sockaddr_storage name{};
    socklen_t size = 0;
    if (address.is_v4()) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      own.sin_port = htons(address.port);
      own.sin_addr.s_addr = htonl(address.v4_ip());
      size = sizeof own;
      std::memcpy(&name, &own, size);
    } else {
      sockaddr_in6 own{};
      own.sin6_family = AF_INET6;
      own.sin6_port = htons(address.port);
      std::memcpy(&own.sin6_addr, address.ip.data(), address.ip.size());
      if (is_link_local(address)) own.sin6_scope_id = interface;
      size = sizeof own;
      std::memcpy(&name, &own, size);
    }
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    if (bind(file_, reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
        getsockname(file_, reinterpret_cast<sockaddr*>(&name), &size) != 0)
      return;
    in_port_t port = 0;
    std::memcpy(&port, reinterpret_cast<const std::byte*>(&name) + offsetof(sockaddr_in, sin_port), sizeof port);
    port_ = ntohs(port);
  }
  ~HeldPort() { close(file_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  /// Returns 0 if the port is not available.
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int file_;
  std::uint16_t port_ = 0;
};

/// Returns the first of consecutive free UDP ports, one per shard. The kernel chooses the first port. The function
/// tries again until the ports after it are free.
std::uint16_t free_ports(const HostDatapathConfig& config, const HostPlace& place) {
  constexpr int kTries = 256;
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  HostPlace any = place;
  any.address.port = 1;
  const Site site = site_of(config, any);
  const std::uint32_t interface = site.interface.empty() ? 0 : Interface(site.interface).index();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Address address = site.address;
    address.port = 0;
    std::vector<std::unique_ptr<HeldPort>> held;
    held.push_back(std::make_unique<HeldPort>(address, interface));
    const std::uint16_t first = held.front()->port();
    if (first == 0 || first + shards - 1 > 65'535) continue;
    while (held.size() < shards && held.back()->port() != 0) {
      address.port = static_cast<std::uint16_t>(first + held.size());
      held.push_back(std::make_unique<HeldPort>(address, interface));
    }
    if (held.back()->port() != 0) return first;
  }
  throw RunError(fmt::format("{} does not have {} free in a row; use fewer shards, or choose the first port",
                             ip_text(site.address), plural(shards, "UDP port")));
}

std::unique_ptr<HostDatapath> open(const HostDatapathConfig& config) { return std::make_unique<UdpDatapath>(config); }

}  // namespace

void register_datapath() {
  register_host_datapath({.name = "socket",
                          .forms = kUdpForms,
                          .takes = is_udp_name,
                          .check = check,
                          .open = open,
                          .free_ports = free_ports});
}

}  // namespace mltcp::socket
