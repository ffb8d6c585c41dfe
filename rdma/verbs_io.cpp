// Datapaths on datagram queue pairs; see verbs_io.h.
#include "mltcp/rdma/verbs_io.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mltcp::rdma {
namespace {

/// Unused bytes before the route header, so that the packet begins on a cache line.
constexpr std::size_t kLead = kCacheLine - (kGrhBytes + kShimBytes) % kCacheLine;

}  // namespace

// ---- Set-up ----

VerbsIo::VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config)
    : PairIo(device, clock, config.address, kRoutes,
             {.send_depth = config.send_depth,
              .receive_depth = config.receive_depth,
              .send_bytes = config.longest_message,
              .receive_bytes = static_cast<std::uint32_t>(kGrhBytes) + config.longest_message,
              .lead_bytes = kLead,
              .longest_bytes = static_cast<std::uint32_t>(kGrhBytes) + kMaxMessage,
              .pieces = config.max_pieces,
              .key = config.key,
              .inline_bytes = config.inline_bytes,
              .zero_copy_from = config.max_pieces >= 2 ? config.zero_copy_from : 0}),
      config_(config) {
  limits_.max_packet_bytes = config.longest_message - static_cast<std::uint32_t>(kShimBytes);
  limits_.overhead_bytes = wire_overhead(config.network);
  limits_.ecn = config.network != Network::infiniband;
  limits_.hops = limits_.ecn;
}

RemoteQueue VerbsIo::own_queue() const {
  return {.number = work_.pair().number,
          .key = config_.key,
          .lid = device_.facts().lid,
          .longest = static_cast<std::uint16_t>(config_.longest_message)};
}

// ---- Routes ----

bool VerbsIo::request(VerbsRoute& route, Nanos now) {
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::want,
                                .traffic_class = route.traffic_class,
                                .service_level = static_cast<std::uint8_t>(route.traffic_class >> 5),
                                .route = number_of(route),
                                .generation = generation_ + 1,
                                .destination = route.destination}))
    return false;
  route.shim = make_shim(config_.address.port, route.destination.port);
  route.handle = nullptr;
  on_requested(route, now);
  return true;
}

/// Requests a route to an unreachable peer anew. For other routes, asks whether they have changed.
void VerbsIo::refresh(VerbsRoute& route, Nanos now) {
  if (route.state == Resolution::State::unreachable) {
    if (route.busy == 0) request(route, now);
    return;
  }
  if (mailbox_->requests.push({.kind = RouteRequest::Kind::refresh,
                               .route = number_of(route),
                               .generation = route.generation,
                               .destination = {},
                               .settled = work_.begin() >= route.handle_from ? route.handle : nullptr}))
    on_refreshed(route, now);
}

/// Returns false if the mailbox is full.
bool VerbsIo::vacate(const VerbsRoute& route) {
  return mailbox_->requests.push({.kind = RouteRequest::Kind::release,
                                  .route = number_of(route),
                                  .generation = route.generation,
                                  .destination = {}});
}

void VerbsIo::apply(VerbsRoute& route, const RouteNews& news) const {
  route.state = news.state;
  route.queue = news.queue;
  if (route.handle != news.handle) route.handle_from = work_.end();
  route.handle = news.handle;
}

void VerbsIo::send_waiting_one(const WorkQueues::Waiting& packet, VerbsRoute& route) {
  address(work_.add({.buffer = packet.buffer, .busy = &route.busy}, packet.bytes), route);
}

bool VerbsIo::fits(const VerbsRoute& route, std::size_t bytes) {
  if (bytes <= route.queue.longest) [[likely]]
    return true;
  ++counters_.too_long;
  narrow_.store({route.destination, clock_.now() + kNarrowFor});
  return false;
}

std::optional<Address> VerbsIo::narrow_peer() const {
  const Narrow narrow = narrow_.load();
  if (clock_.now() >= narrow.until) return std::nullopt;
  return narrow.peer;
}

// ---- Sending ----

bool VerbsIo::is_sendable(const TxPacket& packet) const {
  return (config_.network == Network::infiniband || packet.destination->is_v4() == config_.address.is_v4()) &&
         packet.fits(limits_.max_packet_bytes);
}

/// Writes the shim, the header and, if `with_payload`, the payload into a buffer. Returns the number of bytes.
std::uint32_t VerbsIo::copy(const TxPacket& packet, const VerbsRoute& route, bool with_payload,
                            std::uint32_t buffer) const {
  std::byte* const begin = work_.send_buffer(buffer);
  std::byte* out = std::copy(route.shim.begin(), route.shim.end(), begin);
  out = std::copy(packet.header.begin(), packet.header.end(), out);
  if (with_payload && !packet.payload.empty()) {
    std::memcpy(out, packet.payload.data(), packet.payload.size());
    out += packet.payload.size();
  }
  return static_cast<std::uint32_t>(out - begin);
}

/// Addresses the request to the route's queue pair.
ibv_send_wr& VerbsIo::address(ibv_send_wr& request, const VerbsRoute& route) const {
  request.wr.ud.ah = route.handle;
  request.wr.ud.remote_qpn = route.queue.number;
  request.wr.ud.remote_qkey = route.queue.key;
  return request;
}

bool VerbsIo::send_now(const TxPacket& packet, VerbsRoute& route) {
  const std::size_t bytes = kShimBytes + packet.bytes();
  if (!fits(route, bytes)) [[unlikely]]
    return true;
  if (!work_.has_space()) return false;
  if (bytes <= work_.pair().inline_bytes && config_.max_pieces >= kPieces) {
    ibv_send_wr& request = address(work_.add({.busy = &route.busy}), route);
    ibv_sge* piece = request.sg_list;
    *piece++ = {address_of(route.shim.data()), static_cast<std::uint32_t>(kShimBytes), 0};
    *piece++ = {address_of(packet.header.data()), static_cast<std::uint32_t>(packet.header.size()), 0};
    if (!packet.payload.empty())
      *piece++ = {address_of(packet.payload.data()), static_cast<std::uint32_t>(packet.payload.size()), 0};
    request.num_sge = static_cast<int>(piece - request.sg_list);
    request.send_flags = IBV_SEND_INLINE;
    ++counters_.inlined;
    return true;
  }
  const std::uint32_t buffer = work_.take_buffer();
  const std::optional<std::uint32_t> key = work_.key_of(packet);
  PayloadHold* const hold = key ? packet.hold : nullptr;
  if (hold != nullptr) work_.hold(*hold);
  const std::uint32_t copied = copy(packet, route, hold == nullptr, buffer);
  ibv_send_wr& request = address(work_.add({.buffer = buffer, .busy = &route.busy, .hold = hold}, copied), route);
  if (key) WorkQueues::add_payload(request, packet.payload, *key);
  return true;
}

// ---- Receiving ----

/// Returns whether the message is a packet for the transport. If so, sets `out`.
bool VerbsIo::accept(const ibv_wc& done, RxPacket& out) {
  const std::span<const std::byte> message = work_.take(done);
  if (message.empty()) [[unlikely]]
    return false;
  if ((done.wc_flags & IBV_WC_GRH) == 0) [[unlikely]] {
    ++counters_.no_header;
    return false;
  }
  Arrival arrival;
  if (!read_arrival(message, config_.network, config_.address, arrival)) [[unlikely]] {
    ++counters_.bad_header;
    return false;
  }
  if (arrival.destination_port != config_.address.port) [[unlikely]] {
    ++counters_.not_for_us;
    return false;
  }
  out.source = arrival.source;
  out.bytes = message.subspan(kGrhBytes + kShimBytes);
  out.virtual_bytes = 0;
  out.ecn = arrival.ecn;
  out.priority = arrival.priority;
  out.hops = arrival.hops;
  out.tail = {};
  return true;
}

}  // namespace mltcp::rdma
