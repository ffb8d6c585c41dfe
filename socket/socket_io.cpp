// Datapaths on UDP sockets; see socket_io.h.
#include "mltcp/socket/socket_io.h"

#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/socket/kernel_network.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/ip_address.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103  // from linux/udp.h, which cannot be included together with netinet/udp.h
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace mltcp::socket {
namespace {

/// Minimum number of segments for which a combined message is worth its cost.
constexpr std::size_t kFewestSegments = 2;
constexpr std::uint8_t kEcnBits = 3;

std::uint8_t traffic_class(const TxPacket& packet) {
  const unsigned dscp = encap::kClassSelectors.dscp(packet.priority);
  return static_cast<std::uint8_t>(dscp << 2 | static_cast<unsigned>(packet.ecn));
}

bool share_a_message(const TxPacket& a, const TxPacket& b) {
  return a.ecn == b.ecn && a.priority == b.priority &&
         (a.destination == b.destination || *a.destination == *b.destination);
}

iovec piece_of(std::span<const std::byte> bytes) {
  // The kernel only reads the bytes, but iovec has no const.
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

int int_in(const cmsghdr& control) {
  int value = 0;
  const std::size_t bytes = control.cmsg_len - CMSG_LEN(0);
  if (bytes >= sizeof value)
    std::memcpy(&value, CMSG_DATA(&control), sizeof value);
  else if (bytes >= 1)
    value = *CMSG_DATA(&control);  // IP_TOS
  return value;
}

}  // namespace

// ---- Set-up ----

SocketIo::SocketIo(const SocketIoConfig& config)
    : calls_(config.calls),
      address_(config.address),
      v4_(config.address.is_v4()),
      interface_(config.interface),
      buffers_(std::make_unique_for_overwrite<Buffers>()) {
  constexpr std::uint32_t longest_ip = 65535;
  const auto headers = static_cast<std::uint32_t>((v4_ ? encap::kIpv4Bytes : encap::kIpv6Bytes) + encap::kUdpBytes);
  limits_.max_packet_bytes = std::min(std::min(config.mtu, longest_ip) - headers, kLongestPayload);
  limits_.overhead_bytes = static_cast<std::uint32_t>(encap::kEthernetBytes) + headers;
  for (std::size_t i = 0; i < kBuffers; ++i) free_[i] = kBuffers - 1 - i;
  free_count_ = kBuffers;
  try {
    open();
    ask_for_buffers(config.buffer_bytes);
    bind_to_address();
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

SocketIo::~SocketIo() { close(file_); }

bool SocketIo::set(int level, int option, int value) const {
  return setsockopt(file_, level, option, &value, sizeof value) == 0;
}

void SocketIo::open() {
  file_ = ::socket(v4_ ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (file_ < 0) {
    throw RunError(
        errno == EAFNOSUPPORT
            ? fmt::format("the kernel has no {}; give an address of the other version", v4_ ? "IPv4" : "IPv6")
            : fmt::format("no UDP socket can be opened ({}); close some files", std::strerror(errno)));
  }
  if (v4_) {
    limits_.ecn = set(IPPROTO_IP, IP_RECVTOS, 1);
    limits_.hops = set(IPPROTO_IP, IP_RECVTTL, 1) && set(IPPROTO_IP, IP_TTL, encap::kTimeToLive);
    believe_path(true);
  } else {
    set(IPPROTO_IPV6, IPV6_V6ONLY, 1);
    limits_.ecn = set(IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    limits_.hops = set(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) && set(IPPROTO_IPV6, IPV6_UNICAST_HOPS, encap::kTimeToLive);
    believe_path(true);
    set(IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  }
  if (!limits_.ecn) limits_.priorities = 1;  // one header field contains both priority and ECN
  set(SOL_SOCKET, SO_RXQ_OVFL, 1);
  int known = 0;
  socklen_t size = sizeof known;
  gso_ = getsockopt(file_, IPPROTO_UDP, UDP_SEGMENT, &known, &size) == 0;
  gro_ = set(IPPROTO_UDP, UDP_GRO, 1);
  if (gso_) limits_.batch = std::clamp<std::uint32_t>(kLongestPayload / limits_.max_packet_bytes, 1, kMaxSegments);
  // A multiple of `batch`, so that a full burst consists of full messages.
  limits_.burst = limits_.batch > 1 ? kMaxBurst / limits_.batch * limits_.batch : kMaxSegments;
}

void SocketIo::ask_for_buffers(std::uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<std::uint32_t>(bytes, 1U << 30));
  // SO_RCVBUFFORCE needs CAP_NET_ADMIN, and may exceed net.core.rmem_max.
  if (!set(SOL_SOCKET, SO_RCVBUFFORCE, wanted)) set(SOL_SOCKET, SO_RCVBUF, wanted);
  if (!set(SOL_SOCKET, SO_SNDBUFFORCE, wanted)) set(SOL_SOCKET, SO_SNDBUF, wanted);
  int got = 0;
  socklen_t size = sizeof got;
  if (getsockopt(file_, SOL_SOCKET, SO_RCVBUF, &got, &size) == 0) receive_buffer_ = static_cast<std::uint32_t>(got);
}

void SocketIo::bind_to_address() {
  Name name{};
  socklen_t size = sizeof name.v4;
  if (v4_) {
    name.v4 = {
        .sin_family = AF_INET, .sin_port = htons(address_.port), .sin_addr = {htonl(address_.v4_ip())}, .sin_zero = {}};
  } else {
    name.v6.sin6_family = AF_INET6;
    name.v6.sin6_port = htons(address_.port);
    std::memcpy(&name.v6.sin6_addr, address_.ip.data(), address_.ip.size());
    if (is_link_local(address_)) name.v6.sin6_scope_id = interface_;
    size = sizeof name.v6;
  }
  if (bind(file_, &name.any, size) == 0) return;
  const int error = errno;
  const std::string place = to_text(address_);
  if (error == EADDRINUSE)
    throw InputError(
        fmt::format("{}: another socket uses that UDP port; end its process (ss -ulnp shows it), or give this one "
                    "another port (--udp-port of a command)",
                    place));
  if (error == EADDRNOTAVAIL)
    throw InputError(
        fmt::format("{}: this machine has no such address; it has {}", place, list_addresses(address_, "")));
  if (error == EACCES)
    throw InputError(fmt::format("{}: UDP ports below 1024 need privileges; give 49152 or more", place));
  throw RunError(fmt::format("{}: the UDP socket can't be bound ({}); check whether a sandbox forbids it", place,
                             std::strerror(error)));
}

std::uint64_t SocketIo::missed() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof info;
  if (getsockopt(file_, SOL_SOCKET, SO_MEMINFO, info.data(), &size) != 0) return counters_.missed;
  // Adds the drops since the last packet with which the kernel reported their number.
  return counters_.missed + std::uint32_t{info[SK_MEMINFO_DROPS] - overflow_};
}

// ---- Sending ----

bool SocketIo::is_sendable(const TxPacket& packet) const {
  return packet.destination->is_v4() == v4_ && packet.destination->port != 0 && packet.priority < kPriorities &&
         packet.fits(limits_.max_packet_bytes);
}

/// Sets the destination and the control data of a message.
void SocketIo::address_message(std::size_t message, const TxPacket& packet, std::size_t segment_bytes,
                               std::size_t segments) {
  Name& name = tx_names_[message];
  const Address& to = *packet.destination;
  msghdr& header = tx_headers_[message].msg_hdr;
  if (v4_) {
    name.v4.sin_family = AF_INET;
    name.v4.sin_port = htons(to.port);
    std::memcpy(&name.v4.sin_addr, to.ip.data() + 12, 4);
    header.msg_namelen = sizeof name.v4;
  } else {
    name.v6.sin6_family = AF_INET6;
    name.v6.sin6_port = htons(to.port);
    std::memcpy(&name.v6.sin6_addr, to.ip.data(), to.ip.size());
    name.v6.sin6_scope_id = is_link_local(to) ? interface_ : 0;
    header.msg_namelen = sizeof name.v6;
  }
  header.msg_name = &name;
  const int traffic = traffic_class(packet);
  if (traffic == 0 && segments < kFewestSegments) {  // the socket's defaults apply, so no control data is needed
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    return;
  }
  header.msg_control = &tx_controls_[message];
  header.msg_controllen = kSendControlBytes;
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = v4_ ? IPPROTO_IP : IPPROTO_IPV6;
  control->cmsg_type = v4_ ? IP_TOS : IPV6_TCLASS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &traffic, sizeof traffic);
  header.msg_controllen = CMSG_SPACE(sizeof(int));
  if (segments < kFewestSegments) return;
  control = reinterpret_cast<cmsghdr*>(tx_controls_[message].bytes.data() + CMSG_SPACE(sizeof(int)));
  control->cmsg_level = IPPROTO_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto length = static_cast<std::uint16_t>(segment_bytes);
  std::memcpy(CMSG_DATA(control), &length, sizeof length);
  header.msg_controllen = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof length);
  static_assert(CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof length) <= kSendControlBytes);
}

/// Makes messages of the packets before the first one that is not sendable, and returns the number of messages. If
/// `together`, several packets may share a message.
std::size_t SocketIo::write_messages(std::span<const TxPacket> packets, bool together) {
  std::size_t messages = 0;
  std::size_t pieces = 0;
  for (std::size_t i = 0; i < packets.size() && is_sendable(packets[i]); ++messages) {
    const TxPacket& first = packets[i];
    msghdr& header = tx_headers_[messages].msg_hdr;
    header.msg_iov = &tx_pieces_[pieces];
    const auto add = [&](const TxPacket& packet) {
      if (!packet.header.empty()) tx_pieces_[pieces++] = piece_of(packet.header);
      if (!packet.payload.empty()) tx_pieces_[pieces++] = piece_of(packet.payload);
    };
    add(first);
    const std::size_t segment = first.bytes();
    std::size_t total = segment;
    std::size_t count = 1;
    if (together && segment != 0) {
      for (std::size_t next = i + 1; next < packets.size() && count < kMaxSegments; ++next) {
        const TxPacket& packet = packets[next];
        const std::size_t bytes = packet.bytes();
        if (bytes == 0 || bytes > segment || total + bytes > kLongestPayload || !is_sendable(packet) ||
            !share_a_message(first, packet))
          break;
        add(packet);
        total += bytes;
        ++count;
        if (bytes < segment) break;  // a shorter packet ends the message
      }
    }
    header.msg_iovlen = static_cast<std::size_t>(tx_pieces_.data() + pieces - header.msg_iov);
    address_message(messages, first, segment, count);
    tx_packets_[messages] = static_cast<std::uint32_t>(count);
    i += count;
  }
  return messages;
}

/// Selects whether the kernel's path MTU limits packets. Sets DF in both cases.
bool SocketIo::believe_path(bool believed) const {
  return v4_ ? set(IPPROTO_IP, IP_MTU_DISCOVER, believed ? IP_PMTUDISC_DO : IP_PMTUDISC_PROBE)
             : set(IPPROTO_IPV6, IPV6_MTU_DISCOVER, believed ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_PROBE);
}

void SocketIo::note_narrow(const TxPacket& packet) {
  narrow_bytes_ = packet.bytes();
  shorter_passed_ = 0;
  narrow_path_ = *packet.destination;
  narrow_mark_.store(mark_of(narrow_path_), std::memory_order_relaxed);
}

void SocketIo::forget_narrow() {
  narrow_bytes_ = 0;
  narrow_mark_.store(0, std::memory_order_relaxed);
}

std::uint64_t SocketIo::mark_of(const Address& address) {
  Address host = address;
  host.port = 0;
  return AddressHash()(host) | 1;
}

/// Called after the kernel has accepted the packets of a message, which all have one destination. A packet as long as
/// the refused one shows that the path carries this length again.
void SocketIo::note_passed(std::span<const TxPacket> packets) {
  if (*packets.front().destination != narrow_path_) return;
  shorter_passed_ += static_cast<std::uint32_t>(packets.size());
  if (packets.front().bytes() >= narrow_bytes_ || shorter_passed_ >= kShorterPacketsToForget) forget_narrow();
}

/// Sends the messages that write_messages() made of `packets`. The first `done` packets are already handled. Adds the
/// number of packets that it handles to `done`.
SocketIo::Fate SocketIo::send_messages(std::span<const TxPacket> packets, std::size_t messages, std::size_t& done) {
  for (std::size_t first = 0; first < messages;) {
    const int sent = calls_.send(file_, &tx_headers_[first], static_cast<unsigned>(messages - first), MSG_DONTWAIT);
    if (sent > 0) [[likely]] {
      const std::size_t end = std::min(first + static_cast<std::size_t>(sent), messages);
      counters_.sent_messages += end - first;
      for (; first < end; ++first) {
        if (narrow_bytes_ != 0 && narrow_calls_left_ == 0) [[unlikely]]
          note_passed(packets.subspan(done, tx_packets_[first]));
        counters_.sent_packets += tx_packets_[first];
        done += tx_packets_[first];
      }
      continue;
    }
    const int error = sent < 0 ? errno : EAGAIN;
    if (error == EMSGSIZE && narrow_calls_left_ == 0 && believe_path(false)) {
      note_narrow(packets[done]);
      narrow_calls_left_ = kNarrowPathCalls;
      continue;
    }
    const std::uint32_t count = tx_packets_[first];
    if (count >= kFewestSegments && (error == EINVAL || error == EIO || error == EMSGSIZE)) {
      // send_alone() overwrites the following messages, so the caller must write them again.
      if (send_alone(packets.subspan(done, count), done) == Fate::blocked) return Fate::blocked;
      return Fate::taken;
    }
    if (on_refusal(error, packets.subspan(done, count), done) == Fate::blocked) return Fate::blocked;
    ++first;
  }
  return Fate::taken;
}

/// Handles the kernel's refusal of a message with `packets`. Packets that the kernel will never accept count as
/// handled.
SocketIo::Fate SocketIo::on_refusal(int error, std::span<const TxPacket> packets, std::size_t& done) {
  switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EINTR:
      return Fate::blocked;
    case EMSGSIZE:
      counters_.too_big += packets.size();
      note_narrow(packets.front());
      break;
    default:  // e.g. no route or a firewall: the packets count as lost in the network
      counters_.refused += packets.size();
  }
  done += packets.size();
  return Fate::taken;
}

/// Sends each packet of a refused message singly. The cause is either a small path MTU, or a device that does not
/// support several segments. If the first packet passes, the cause is the device.
SocketIo::Fate SocketIo::send_alone(std::span<const TxPacket> packets, std::size_t& done) {
  std::size_t dealt_with = 0;
  const std::uint64_t before = counters_.sent_packets;
  const std::uint32_t narrow_calls_before = narrow_calls_left_;
  while (dealt_with < packets.size()) {
    const auto one = packets.subspan(dealt_with, 1);
    write_messages(one, false);
    std::size_t gone = 0;
    if (send_messages(one, 1, gone) == Fate::blocked) return Fate::blocked;
    dealt_with += gone;
    done += gone;
    if (counters_.sent_packets != before && dealt_with == 1 && narrow_calls_left_ == narrow_calls_before) gso_ = false;
  }
  return Fate::taken;
}

std::size_t SocketIo::send(std::span<const TxPacket> packets) {
  packets = packets.first(std::min<std::size_t>(packets.size(), limits_.burst));
  blocked_ = false;
  if (narrow_calls_left_ != 0 && --narrow_calls_left_ == 0) [[unlikely]]
    believe_path(true);
  std::size_t done = 0;
  while (done < packets.size()) {
    const std::size_t messages = write_messages(packets.subspan(done), gso_);
    if (messages == 0) {
      ++counters_.unsendable;
      ++done;
      continue;
    }
    if (send_messages(packets, messages, done) == Fate::blocked) {
      blocked_ = true;
      ++counters_.full;
      break;
    }
  }
  return done;
}

// ---- Receiving ----

std::size_t SocketIo::receive(std::span<RxPacket> out) {
  out = out.first(std::min<std::size_t>(out.size(), limits_.burst));
  blocked_ = false;
  if (spent_count_ > 0) prepared_ = 0;  // the headers point to buffers that are no longer the next free ones
  while (spent_count_ > 0) free_[free_count_++] = spent_[--spent_count_];
  std::size_t count = first_ < end_ ? serve(out) : 0;
  if (const std::size_t free = out.size() - count; free > 0 && free_count_ > 0) {
    const std::size_t wanted = std::min({std::max<std::size_t>(free / packets_a_message_, 1), expected_, free_count_});
    const std::size_t got = fetch(wanted);
    // If messages arrive singly, e.g. responses, do not ask the kernel for a second message.
    expected_ = got == wanted ? std::min(2 * expected_, kBuffers) : std::max<std::size_t>(got, 1);
    count += serve(out.subspan(count));
  }
  counters_.received_packets += count;
  return count;
}

/// Fills `out` with packets of the fetched messages. A message's buffer counts as spent after the message's last
/// packet.
std::size_t SocketIo::serve(std::span<RxPacket> out) {
  std::size_t count = 0;
  for (; first_ < end_; ++first_) {
    Message& message = messages_[first_];
    const std::byte* const bytes = buffers_->data() + message.buffer * kBufferStride;
    do {
      if (count == out.size()) return count;
      const std::size_t length = std::min(message.segment, message.end - message.at);
      RxPacket& packet = out[count++];
      packet.source = message.source;
      packet.bytes = {bytes + message.at, length};
      packet.virtual_bytes = 0;
      packet.ecn = message.ecn;
      packet.priority = message.priority;
      packet.hops = message.hops;
      packet.tail = {};
      message.at += length;
    } while (message.at < message.end);
    spent_[spent_count_++] = message.buffer;
  }
  first_ = end_ = 0;
  return count;
}

/// Prepares headers for fetch(). The kernel changes the headers that it fills, so these need new buffers. All other
/// headers stay valid.
void SocketIo::prepare(std::size_t headers) {
  for (std::size_t i = prepared_; i < headers; ++i) {
    const std::size_t buffer = free_[free_count_ - 1 - i];
    rx_pieces_[i] = {buffers_->data() + buffer * kBufferStride, kBufferBytes};
    msghdr& header = rx_headers_[i].msg_hdr;
    header.msg_name = &rx_names_[i];
    header.msg_namelen = sizeof rx_names_[i];
    header.msg_iov = &rx_pieces_[i];
    header.msg_iovlen = 1;
    header.msg_control = &rx_controls_[i];
    header.msg_controllen = kReceiveControlBytes;
  }
  prepared_ = std::max(prepared_, headers);
}

/// Asks the kernel for up to `wanted` messages, and adds those that it gets to `messages_`. Returns their number.
/// Requires that all earlier messages have been served.
std::size_t SocketIo::fetch(std::size_t wanted) {
  prepare(wanted);
  int got = calls_.receive(file_, rx_headers_.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT, nullptr);
  // The kernel reports an ICMP error of an earlier packet once, in place of the waiting packets, so try again.
  if (got < 0 && errno != EAGAIN)
    got = calls_.receive(file_, rx_headers_.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  const std::size_t count = std::min(static_cast<std::size_t>(got), wanted);
  prepared_ = 0;
  const std::size_t before = end_;
  std::size_t packets = 0;
  for (std::size_t i = 0; i < count; ++i) {
    take(i, free_[--free_count_]);
    if (end_ > before && messages_[end_ - 1].segment != 0)
      packets += (messages_[end_ - 1].end + messages_[end_ - 1].segment - 1) / messages_[end_ - 1].segment;
  }
  counters_.received_messages += count;
  packets_a_message_ = std::clamp<std::size_t>(packets / count, 1, limits_.burst);
  return count;
}

/// Reads a message from header `number` of recvmmsg(). The message's bytes are in `buffer`.
void SocketIo::take(std::size_t number, std::size_t buffer) {
  mmsghdr& got = rx_headers_[number];
  msghdr& header = got.msg_hdr;
  Message message;
  int segment = 0;
  int time_to_live = encap::kTimeToLive;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    const int level = control->cmsg_level;
    const int type = control->cmsg_type;
    const int value = int_in(*control);
    if ((level == IPPROTO_IP && type == IP_TOS) || (level == IPPROTO_IPV6 && type == IPV6_TCLASS)) {
      message.ecn = static_cast<Ecn>(value & kEcnBits);
      message.priority = encap::kClassSelectors.priority(static_cast<std::uint8_t>(value >> 2 & 0x3F));
    } else if ((level == IPPROTO_IP && type == IP_TTL) || (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT)) {
      time_to_live = value;
    } else if (level == IPPROTO_UDP && type == UDP_GRO) {
      segment = value;
    } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
      const auto dropped = static_cast<std::uint32_t>(value);
      counters_.missed += std::uint32_t{dropped - overflow_};
      overflow_ = dropped;
    }
  }
  const Name& name = rx_names_[number];
  const bool is_whole = (header.msg_flags & MSG_TRUNC) == 0 && got.msg_len <= kBufferBytes;
  const bool has_source = name.any.sa_family == (v4_ ? AF_INET : AF_INET6);
  if (!is_whole || !has_source) [[unlikely]] {
    ++counters_.truncated;
    spent_[spent_count_++] = buffer;
    return;
  }
  if (v4_) {
    message.source = Address::v4(ntohl(name.v4.sin_addr.s_addr), ntohs(name.v4.sin_port));
  } else {
    std::memcpy(message.source.ip.data(), &name.v6.sin6_addr, message.source.ip.size());
    message.source.port = ntohs(name.v6.sin6_port);
  }
  message.hops = time_to_live > 0 && time_to_live < encap::kTimeToLive
                     ? static_cast<std::uint8_t>(encap::kTimeToLive - time_to_live)
                     : std::uint8_t{0};
  message.buffer = buffer;
  message.end = got.msg_len;
  message.segment = segment_bytes(got.msg_len, segment);
  messages_[end_++] = message;
}

}  // namespace mltcp::socket
