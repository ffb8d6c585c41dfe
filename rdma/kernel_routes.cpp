// The kernel's routes and neighbours; see kernel_routes.h.
//
// To make the kernel ask for a neighbour, KernelRoutes sends a datagram to the discard port of the destination (RFC
// 863). The kernel asks for the neighbour before it sends the datagram. It also checks neighbours that were silent for
// long. Asking through rtnetlink would need CAP_NET_ADMIN.
#include "mltcp/rdma/kernel_routes.h"

#include <fmt/format.h>
#include <linux/if_vlan.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

constexpr std::uint16_t kDiscard = 9;

/// A file descriptor that the destructor closes.
class File {
 public:
  explicit File(int file) : file_(file) {}
  ~File() {
    if (file_ >= 0) close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

[[noreturn]] void no_socket(const char* kind) {
  throw RunError(
      fmt::format("cannot open a {} socket ({}); raise the limit of open files (ulimit -n), and check whether e.g. a "
                  "sandbox forbids it",
                  kind, std::strerror(errno)));
}

int netlink_file(std::uint32_t groups) {
  const int file = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_groups = groups;
  if (file < 0 || bind(file, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (file >= 0) close(file);
    no_socket("rtnetlink");
  }
  return file;
}

/// Returns the bytes of an IP address in the kernel's form: 4 for IPv4, 16 for IPv6.
std::span<const std::uint8_t> ip_bytes(const Address& address) {
  return std::span(address.ip).subspan(address.is_v4() ? 12 : 0);
}
unsigned char family_of(const Address& address) { return address.is_v4() ? AF_INET : AF_INET6; }

std::optional<Address> address_of(std::span<const std::byte> bytes) {
  Address address = Address::v4(0, 0);
  if (bytes.size() != 4 && bytes.size() != address.ip.size()) return std::nullopt;
  std::memcpy(address.ip.data() + address.ip.size() - bytes.size(), bytes.data(), bytes.size());
  return address;
}

/// An rtnetlink request. It consists of the netlink header, a header of type `Kind`, and attributes.
template <typename Kind>
class Question {
 public:
  Question(std::uint16_t type, const Kind& kind) {
    head().nlmsg_type = type;
    head().nlmsg_flags = NLM_F_REQUEST;
    head().nlmsg_len = NLMSG_LENGTH(sizeof kind);
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &kind, sizeof kind);
  }
  void add(std::uint16_t type, std::span<const std::uint8_t> value) {
    rtattr attribute{};
    attribute.rta_type = type;
    attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(value.size()));
    std::byte* const at = bytes_.data() + NLMSG_ALIGN(head().nlmsg_len);
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), value.data(), value.size());
    head().nlmsg_len = NLMSG_ALIGN(head().nlmsg_len) + RTA_ALIGN(attribute.rta_len);
  }
  void add(std::uint16_t type, std::uint32_t value) {
    std::array<std::uint8_t, sizeof value> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    add(type, std::span<const std::uint8_t>(bytes));
  }
  [[nodiscard]] nlmsghdr& head() { return *reinterpret_cast<nlmsghdr*>(bytes_.data()); }

 private:
  alignas(nlmsghdr) std::array<std::byte, 256> bytes_{};
};

/// The kernel's answer to a Question.
template <typename Kind>
struct Answer {
  alignas(nlmsghdr) std::array<std::byte, 8192> bytes;
  std::size_t size = 0;

  [[nodiscard]] const nlmsghdr& head() const { return *reinterpret_cast<const nlmsghdr*>(bytes.data()); }
  [[nodiscard]] const Kind& kind() const { return *reinterpret_cast<const Kind*>(bytes.data() + NLMSG_HDRLEN); }
  /// Returns the value of an attribute; empty if it is missing.
  [[nodiscard]] std::span<const std::byte> attribute(std::uint16_t type) const {
    std::size_t at = NLMSG_ALIGN(NLMSG_LENGTH(sizeof(Kind)));
    const std::size_t end = std::min<std::size_t>(size, head().nlmsg_len);
    rtattr one{};
    while (at + sizeof one <= end) {
      std::memcpy(&one, bytes.data() + at, sizeof one);
      if (one.rta_len < RTA_LENGTH(0) || at + one.rta_len > end) break;
      if ((one.rta_type & NLA_TYPE_MASK) == type)
        return std::span(bytes).subspan(at + RTA_LENGTH(0), one.rta_len - RTA_LENGTH(0));
      at += RTA_ALIGN(one.rta_len);
    }
    return {};
  }
};

class RealRoutes final : public KernelRoutes {
 public:
  RealRoutes(KernelInterface interface, const Address& address)
      : interface_(std::move(interface)),
        address_(address),
        questions_(netlink_file(0)),
        events_(netlink_file(RTMGRP_NEIGH)),
        prompts_(::socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (prompts_.get() < 0) no_socket("UDP");
    const std::string& name = interface_.name;
    if (setsockopt(prompts_.get(), SOL_SOCKET, SO_BINDTODEVICE, name.data(), static_cast<socklen_t>(name.size())) != 0)
      throw RunError(fmt::format("a UDP socket can't be bound to {} ({}); run the program as root, or with CAP_NET_RAW",
                                 name, std::strerror(errno)));
  }

  Way find(const Address& destination, bool may_ask) override {
    const std::optional<Address> hop = next_hop(destination);
    if (!hop) return {};
    Answer<ndmsg> answer;
    const bool is_there = look_up(*hop, answer);
    const std::uint16_t state = is_there ? answer.kind().ndm_state : std::uint16_t{NUD_NONE};
    constexpr std::uint16_t valid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
    const std::span<const std::byte> mac = is_there ? answer.attribute(NDA_LLADDR) : std::span<const std::byte>();
    Way way;
    if ((state & valid) != 0 && mac.size() == way.mac.size()) {
      way.state = State::known;
      std::memcpy(way.mac.data(), mac.data(), mac.size());
      if ((state & NUD_STALE) != 0) prompt(destination);
      return way;
    }
    if ((state & NUD_INCOMPLETE) != 0) return {State::asked, {}};
    if (!may_ask) return {};
    prompt(destination);
    return {State::asked, {}};
  }

  [[nodiscard]] int event_file() const override { return events_.get(); }
  void take_events() override {
    // find() asks for the present state, so events may be ignored, and the kernel may drop some (ENOBUFS).
    std::array<std::byte, 4096> ignored;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (int left = 64; left > 0; --left)
      if (recv(events_.get(), ignored.data(), ignored.size(), MSG_DONTWAIT) < 0 && errno != ENOBUFS) return;
  }

  [[nodiscard]] std::string why_lost() const override {
    const auto cure = [&] {
      return fmt::format("give it back: ip addr add {}/{} dev {}", ip_text(address_), address_.is_v4() ? 24 : 64,
                         interface_.name);
    };
    const std::array<std::uint32_t, 1> index{interface_.index};
    const auto found = kernel_network()->interfaces(index);
    if (found.empty()) return fmt::format("interface {} no longer exists; create it again", interface_.name);
    const auto has = [&](const Address& one) { return one.ip == address_.ip; };
    if (std::none_of(found[0].addresses.begin(), found[0].addresses.end(), has))
      return fmt::format("interface {} has lost the address {}; {}", interface_.name, ip_text(address_), cure());
    if (found[0].mac != interface_.mac)
      return fmt::format("the MAC address of interface {} has changed; start the program again", interface_.name);
    return "";
  }

 private:
  /// Sends a question and receives its answer. Returns false if the kernel refuses or does not answer.
  template <typename Kind>
  bool ask(Question<Kind>& question, Answer<Kind>& answer) {
    question.head().nlmsg_seq = ++sequence_;
    if (::send(questions_.get(), &question.head(), question.head().nlmsg_len, 0) < 0) return false;
    // The kernel answers within send(). Skip older answers, which interrupted calls have left.
    for (;;) {
      const ssize_t got = recv(questions_.get(), answer.bytes.data(), answer.bytes.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < static_cast<ssize_t>(NLMSG_LENGTH(0))) return false;
      if (answer.head().nlmsg_seq != sequence_) continue;
      answer.size = static_cast<std::size_t>(got);
      return answer.head().nlmsg_type != NLMSG_ERROR && answer.size >= NLMSG_LENGTH(sizeof(Kind));
    }
  }

  /// Returns the next hop of frames to `destination` on this interface; empty if there is no route.
  std::optional<Address> next_hop(const Address& destination) {
    rtmsg kind{};
    kind.rtm_family = family_of(destination);
    kind.rtm_dst_len = static_cast<unsigned char>(8 * ip_bytes(destination).size());
    kind.rtm_src_len = kind.rtm_dst_len;
    Question<rtmsg> question(RTM_GETROUTE, kind);
    question.add(RTA_DST, ip_bytes(destination));
    question.add(RTA_SRC, ip_bytes(address_));
    question.add(RTA_OIF, interface_.index);
    Answer<rtmsg> answer;
    if (!ask(question, answer) || answer.kind().rtm_type != RTN_UNICAST) return std::nullopt;
    std::uint32_t by = 0;
    if (const auto index = answer.attribute(RTA_OIF); index.size() == sizeof by)
      std::memcpy(&by, index.data(), sizeof by);
    if (by != interface_.index) return std::nullopt;
    if (const auto gateway = answer.attribute(RTA_GATEWAY); !gateway.empty()) return address_of(gateway);
    // This attribute is for a gateway whose IP version is not that of the destination (RFC 5549). It contains the
    // address family, then the address.
    if (const auto via = answer.attribute(RTA_VIA); via.size() > sizeof(std::uint16_t))
      return address_of(via.subspan(sizeof(std::uint16_t)));
    return destination;
  }

  bool look_up(const Address& neighbour, Answer<ndmsg>& answer) {
    ndmsg kind{};
    kind.ndm_family = family_of(neighbour);
    kind.ndm_ifindex = static_cast<int>(interface_.index);
    Question<ndmsg> question(RTM_GETNEIGH, kind);
    question.add(NDA_DST, ip_bytes(neighbour));
    return ask(question, answer);
  }

  void prompt(const Address& destination) const {
    const std::byte nothing{};
    if (destination.is_v4()) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(kDiscard);
      to.sin_addr.s_addr = htonl(destination.v4_ip());
      sendto(prompts_.get(), &nothing, 0, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to);
      return;
    }
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(kDiscard);
    std::memcpy(&to.sin6_addr, destination.ip.data(), destination.ip.size());
    if (is_link_local(destination)) to.sin6_scope_id = interface_.index;
    sendto(prompts_.get(), &nothing, 0, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }

  const KernelInterface interface_;
  const Address address_;
  const File questions_;
  const File events_;
  const File prompts_;  ///< socket for datagrams that make the kernel ask for neighbours
  std::uint32_t sequence_ = 0;
};

class RealNetwork final : public KernelNetwork {
 public:
  std::vector<KernelInterface> interfaces(std::span<const std::uint32_t> indices) override {
    std::vector<KernelInterface> all;
    const File file(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (file.get() < 0) no_socket("UDP");
    const std::vector<InterfaceAddress> addresses = interface_addresses();
    for (const std::uint32_t index : indices) {
      KernelInterface one{.index = index, .name = {}, .addresses = {}};
      ifreq request{};
      request.ifr_ifindex = static_cast<int>(index);
      if (ioctl(file.get(), SIOCGIFNAME, &request) != 0) continue;
      one.name = request.ifr_name;
      if (ioctl(file.get(), SIOCGIFHWADDR, &request) != 0) continue;
      one.is_ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
      std::memcpy(one.mac.data(), request.ifr_hwaddr.sa_data, one.mac.size());
      if (ioctl(file.get(), SIOCGIFMTU, &request) == 0) one.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
      vlan_ioctl_args vlan{};
      vlan.cmd = GET_VLAN_VID_CMD;
      one.name.copy(vlan.device1, sizeof vlan.device1 - 1);
      one.is_vlan = ioctl(file.get(), SIOCGIFVLAN, &vlan) == 0;
      for (const InterfaceAddress& own : addresses)
        if (own.interface == one.name) one.addresses.push_back({.ip = own.ip});
      all.push_back(std::move(one));
    }
    return all;
  }
  std::unique_ptr<KernelRoutes> routes_of(const KernelInterface& interface, const Address& address) override {
    return std::make_unique<RealRoutes>(interface, address);
  }
};

}  // namespace

std::unique_ptr<KernelNetwork> kernel_network() { return std::make_unique<RealNetwork>(); }

}  // namespace mltcp::rdma
