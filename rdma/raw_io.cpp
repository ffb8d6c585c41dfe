// Datapaths on queue pairs for Ethernet frames; see raw_io.h.
#include "mltcp/rdma/raw_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/rdma/ud_packet.h"

namespace mltcp::rdma {
namespace {

std::uint32_t frame_bytes(const RawIoConfig& config) {
  return config.mtu + static_cast<std::uint32_t>(encap::kEthernetBytes);
}

/// Returns the number of unused bytes before a frame, so that its packet begins on a cache line.
std::uint32_t lead_bytes(const RawIoConfig& config) {
  return static_cast<std::uint32_t>(kCacheLine - encap::header_bytes(config.address) % kCacheLine);
}

const char* cure_of_rule(int error) {
  if (error == EPERM || error == EACCES) return "run the program as root, or with the capability CAP_NET_RAW";
  if (error == ENOMEM || error == ENOSPC || error == EBUSY || error == EEXIST)
    return "end other programs that steer its frames, or use fewer shards";
  return "use its interface (af_xdp:IFACE, udp:), or an IPv4 address if this is none";
}

}  // namespace

// ---- Set-up ----

RawIo::RawIo(Device& device, const Clock& clock, const RawIoConfig& config)
    : PairIo(device, clock, config.address, kRawRoutes,
             {.kind = PairKind::frames,
              .send_depth = config.send_depth,
              .receive_depth = config.receive_depth,
              .send_bytes = frame_bytes(config),
              .receive_bytes = frame_bytes(config) + static_cast<std::uint32_t>(encap::kVlanBytes),
              .lead_bytes = lead_bytes(config),
              .longest_bytes = kLongestFrame,
              .pieces = config.max_pieces,
              .inline_bytes = config.inline_bytes,
              .zero_copy_from = config.max_pieces >= 2 ? config.zero_copy_from : 0}),
      config_(config),
      writer_({.mac = config.mac,
               .source = config.address,
               .mtu = config.mtu,
               // ibv_post_send(3) does not promise checksums for IPv6 (IBV_SEND_IP_CSUM).
               .checksums = config.has_checksums && config.address.is_v4() ? encap::Checksums::port
                                                                           : encap::Checksums::software}),
      computes_checksums_(config.has_checksums && config.address.is_v4()) {
  limits_.max_packet_bytes = writer_.max_packet_bytes();
  limits_.overhead_bytes = static_cast<std::uint32_t>(writer_.overhead_bytes());
  limits_.paths = kMaxPaths;
  const int error = work_.pair().steer({.destination_mac = config.mac, .destination = config.address});
  if (error != 0)
    throw RunError(fmt::format("the device can't steer frames to {} into a queue pair ({}); {}",
                               to_text(config.address), std::strerror(error), cure_of_rule(error)));
}

// ---- Routes ----

Address RawIo::key_of(const Address& destination) {
  Address ip = destination;
  ip.port = 0;
  return ip;
}

bool RawIo::request(RawRoute& route, Nanos now) {
  if (!mailbox_->requests.push(
          {.route = number_of(route), .generation = generation_ + 1, .destination = route.destination}))
    return false;
  on_requested(route, now);
  return true;
}

/// Requests an unreachable route anew. For other routes, asks whether they have changed.
void RawIo::refresh(RawRoute& route, Nanos now) {
  if (route.state == KernelRoutes::State::unreachable)
    request(route, now);
  else if (mailbox_->requests.push(
               {.route = number_of(route), .generation = route.generation, .destination = route.destination}))
    on_refreshed(route, now);
}

void RawIo::apply(RawRoute& route, const WayNews& news) const {
  route.state = news.way.state;
  route.mac = news.way.mac;
}

void RawIo::send_waiting_one(const WorkQueues::Waiting& packet, const RawRoute& route) {
  std::memcpy(work_.send_buffer(packet.buffer), route.mac.data(), route.mac.size());
  add({.buffer = packet.buffer}, packet.bytes, nullptr, std::nullopt);
}

// ---- Sending ----

/// Adds a request for a frame, whose first `bytes` bytes are in the flight's buffer. If `key` is given, the device
/// reads the payload of `packet` in place.
void RawIo::add(const WorkQueues::Flight& flight, std::uint32_t bytes, const TxPacket* packet,
                std::optional<std::uint32_t> key) {
  ibv_send_wr& request = work_.add(flight, bytes);
  if (computes_checksums_) request.send_flags |= IBV_SEND_IP_CSUM;
  if (key) {
    WorkQueues::add_payload(request, packet->payload, *key);
  } else if (bytes <= work_.pair().inline_bytes) {
    request.send_flags |= IBV_SEND_INLINE;
    ++counters_.inlined;
  }
}

std::uint32_t RawIo::write_waiting(const TxPacket& packet, const RawRoute&, std::uint32_t buffer) {
  return static_cast<std::uint32_t>(writer_.write(packet, {}, work_.send_buffer(buffer), true));
}

bool RawIo::send_now(const TxPacket& packet, RawRoute& route) {
  if (!work_.has_space()) return false;
  const std::uint32_t buffer = work_.take_buffer();
  const std::optional<std::uint32_t> key = work_.key_of(packet);
  PayloadHold* const hold = key ? packet.hold : nullptr;
  if (hold != nullptr) work_.hold(*hold);
  const std::size_t bytes = writer_.write(packet, route.mac, work_.send_buffer(buffer), hold == nullptr);
  add({.buffer = buffer, .hold = hold}, static_cast<std::uint32_t>(bytes), &packet, key);
  return true;
}

// ---- Receiving ----

encap::Reject RawIo::check(std::span<const std::byte> bytes, bool is_verified, encap::Frame& frame) const {
  const encap::Reject reject = encap::parse(bytes, is_verified ? encap::VerifyUdp::no : encap::VerifyUdp::yes, frame,
                                            is_verified ? encap::VerifyIp::no : encap::VerifyIp::yes);
  if (reject != encap::Reject::none) return reject;
  if (frame.payload.size() > limits_.max_packet_bytes) return encap::Reject::oversized;
  const encap::Headers& headers = frame.headers;
  return headers.destination == config_.address && headers.destination_mac == config_.mac && headers.vlan == 0 &&
                 is_host(headers.source, config_.address)
             ? encap::Reject::none
             : encap::Reject::not_for_us;
}

/// Returns whether the frame is a packet for the transport. If so, sets `out`.
bool RawIo::accept(const ibv_wc& done, RxPacket& out) {
  const std::span<const std::byte> bytes = work_.take(done);
  if (bytes.empty()) [[unlikely]]
    return false;
  // If the device reports that both checksums are right, check() does not verify them again.
  const bool is_verified = config_.has_checksums && (done.wc_flags & IBV_WC_IP_CSUM_OK) != 0;
  encap::Frame frame;
  const encap::Reject reject = check(bytes, is_verified, frame);
  if (reject != encap::Reject::none) [[unlikely]] {
    ++counters_.rejected[static_cast<std::size_t>(reject)];
    return false;
  }
  out = encap::packet_of(frame.headers, frame.payload);
  return true;
}

}  // namespace mltcp::rdma
