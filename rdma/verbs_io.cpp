// Datapaths on queue pairs; see verbs_io.h.
#include "mltcp/rdma/verbs_io.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "mltcp/base/system_random.h"

namespace mltcp::rdma {
namespace {

constexpr std::size_t kLine = 64;
/// Before the route header, so that the packet begins on a line of the cache.
constexpr std::size_t kLead = kLine - (kGrhBytes + kShimBytes) % kLine;
/// Bursts without packets for the transport that one call of receive() passes over.
constexpr int kMostIdleBursts = 8;

std::size_t bytes_of(const TxPacket& packet) { return packet.header.size() + packet.payload.size(); }

KeyedHash random_hash() {
  SystemRandom random;
  const std::uint64_t start = random.next();
  return {start, random.next()};
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

// ---- Set-up ----

VerbsIo::VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config)
    : clock_(clock),
      device_(device),
      config_(config),
      hash_(random_hash()),
      routes_(kRoutes),
      work_(device,
            {.send_depth = config.send_depth,
             .receive_depth = config.receive_depth,
             .send_bytes = config.longest_message,
             .receive_bytes = static_cast<std::uint32_t>(kGrhBytes) + config.longest_message,
             .lead_bytes = kLead,
             .longest_bytes = static_cast<std::uint32_t>(kGrhBytes) + kMostMessage,
             .pieces = config.most_pieces,
             .key = config.key,
             .inline_bytes = config.inline_bytes,
             .zero_copy_from = config.most_pieces >= 2 ? config.zero_copy_from : 0},
            counters_) {
  limits_.max_packet_bytes = config.longest_message - static_cast<std::uint32_t>(kShimBytes);
  limits_.overhead_bytes = wire_overhead(config.network);
  limits_.burst = burst;
  limits_.ecn = config.network != Network::infiniband;
  limits_.hops = limits_.ecn;
  limits_.keeps_payload_from = config.most_pieces >= 2 ? config.zero_copy_from : 0;
}

void VerbsIo::attach(const Service& service, Mailbox& mailbox) {
  service_ = &service;
  mailbox_ = &mailbox;
  work_.wait_for(mailbox.shard_wake.file());
}

RemoteQueue VerbsIo::own_queue() const {
  return {.number = work_.pair().number,
          .key = config_.key,
          .lid = device_.facts().lid,
          .longest = static_cast<std::uint16_t>(config_.longest_message)};
}

void VerbsIo::disarm() {
  work_.disarm();
  mailbox_->shard_wake.reset();
}

// ---- Routes ----

/// Null: all places are busy, the service does not keep up, or nobody can have that address.
VerbsIo::Route* VerbsIo::route_to(const Address& destination, std::uint8_t traffic_class, Nanos now) {
  // Most packets of a burst go where the one before them went.
  if (Route& last = routes_[last_route_]; last.traffic_class == traffic_class && last.destination == destination &&
                                          last.is_used && now < last.ask_at) [[likely]] {
    last.used_at = now;
    return &last;
  }
  const auto set = static_cast<std::uint32_t>(hash_.of(destination, traffic_class) % kSets);
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (route.destination != destination || route.traffic_class != traffic_class || !route.is_used) continue;
    route.used_at = now;
    if (now >= route.ask_at) [[unlikely]]
      refresh(route, now);
    last_route_ = number_of(route);
    return &route;
  }
  if (!is_host(destination, config_.address)) return nullptr;
  Route* const place = find_place(set);
  if (place == nullptr) return nullptr;
  *place = {.destination = destination,
            .traffic_class = traffic_class,
            .shim = make_shim(config_.address.port, destination.port),
            .used_at = now};
  // One that the service does not know of would have packets wait for nothing.
  if (!request(*place, now)) return nullptr;
  place->is_used = true;
  return place;
}

/// Of its set the place that is free, or was not used for longest. Null: all are busy.
VerbsIo::Route* VerbsIo::find_place(std::uint32_t set) {
  Route* oldest = nullptr;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (!route.is_used) return &route;
    if (route.busy == 0 && (oldest == nullptr || route.used_at < oldest->used_at)) oldest = &route;
  }
  if (oldest == nullptr) {
    // Those that have left need not be seen to have.
    work_.reap();
    return nullptr;
  }
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::release,
                                .route = number_of(*oldest),
                                .generation = oldest->generation,
                                .destination = {}}))
    return nullptr;
  oldest->is_used = false;
  return oldest;
}

/// False if the mailbox is full; the next packet tries again.
bool VerbsIo::request(Route& route, Nanos now) {
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::want,
                                .traffic_class = route.traffic_class,
                                .service_level = static_cast<std::uint8_t>(route.traffic_class >> 5),
                                .route = number_of(route),
                                .generation = generation_ + 1,
                                .destination = route.destination}))
    return false;
  route.generation = ++generation_;
  route.state = Resolution::State::asked;
  route.handle = nullptr;
  route.ask_at = now + refresh_after;
  service_->wake();
  return true;
}

/// A route that is known, or being asked for, is asked for anew; one to a peer that was unreachable begins again.
void VerbsIo::refresh(Route& route, Nanos now) {
  if (route.state == Resolution::State::unreachable) {
    if (route.busy == 0) request(route, now);
    return;
  }
  if (!mailbox_->requests.push({.kind = RouteRequest::Kind::refresh,
                                .route = number_of(route),
                                .generation = route.generation,
                                .destination = {},
                                .settled = work_.begin() >= route.handle_from ? route.handle : nullptr}))
    return;
  route.ask_at = now + refresh_after;
  service_->wake();
}

void VerbsIo::take_news() {
  const Nanos now = clock_.now();
  while (const auto news = mailbox_->news.pop()) {
    ++news_;
    Route& route = routes_[news->route];
    if (!route.is_used || route.generation != news->generation) continue;
    route.state = news->state;
    route.queue = news->queue;
    if (route.handle != news->handle) route.handle_from = work_.end();
    route.handle = news->handle;
    route.ask_at = now + refresh_after;
  }
  send_waiting();
}

/// Those whose route is decided, in order.
void VerbsIo::send_waiting() {
  using Verdict = WorkQueues::Verdict;
  work_.settle_waiting(
      [this](const WorkQueues::Waiting& packet) {
        const Route& route = routes_[packet.route];
        if (route.state == Resolution::State::asked) return Verdict::wait;
        if (route.state == Resolution::State::unreachable) {
          ++counters_.unreachable;
          return Verdict::drop;
        }
        if (packet.bytes <= route.queue.longest) return Verdict::send;
        note_narrow(route);
        return Verdict::drop;
      },
      [this](const WorkQueues::Waiting& packet) {
        Route& route = routes_[packet.route];
        address(work_.add({.buffer = packet.buffer, .busy = &route.busy}, packet.bytes), route);
      });
}

/// A message is too long for that peer.
void VerbsIo::note_narrow(const Route& route) {
  ++counters_.too_long;
  narrow_.store({route.destination, clock_.now() + narrow_for});
}

std::optional<Address> VerbsIo::narrow_peer() const {
  const Narrow narrow = narrow_.load();
  if (clock_.now() >= narrow.until) return std::nullopt;
  return narrow.peer;
}

bool VerbsIo::resolve(const Address& destination) {
  if (!mailbox_->news.is_empty()) take_news();
  const Route* const route = route_to(destination, 0, clock_.now());
  return route != nullptr && route->state == Resolution::State::known;
}

// ---- Sending ----

bool VerbsIo::is_sendable(const TxPacket& packet) const {
  return (config_.network == Network::infiniband || packet.destination->is_v4() == config_.address.is_v4()) &&
         packet.destination->port != 0 && packet.priority < kPriorities &&
         bytes_of(packet) <= limits_.max_packet_bytes && (packet.payload.data() != nullptr || packet.payload.empty());
}

/// Writes shim and header, and the payload if it is wanted, into a buffer; returns the bytes written.
std::uint32_t VerbsIo::copy(const TxPacket& packet, const Route& route, bool with_payload, std::uint32_t buffer) const {
  std::byte* const begin = work_.send_buffer(buffer);
  std::byte* out = std::copy(route.shim.begin(), route.shim.end(), begin);
  out = std::copy(packet.header.begin(), packet.header.end(), out);
  if (with_payload && !packet.payload.empty()) {
    std::memcpy(out, packet.payload.data(), packet.payload.size());
    out += packet.payload.size();
  }
  return static_cast<std::uint32_t>(out - begin);
}

/// Has the request go to the route's queue pair.
ibv_send_wr& VerbsIo::address(ibv_send_wr& request, const Route& route) const {
  request.wr.ud.ah = route.handle;
  request.wr.ud.remote_qpn = route.queue.number;
  request.wr.ud.remote_qkey = route.queue.key;
  return request;
}

void VerbsIo::wait(const TxPacket& packet, Route& route) {
  work_.make_room_to_wait();
  const std::uint32_t buffer = work_.take_buffer();
  work_.wait({buffer, number_of(route), copy(packet, route, true, buffer), &route.busy});
}

VerbsIo::Fate VerbsIo::send_one(const TxPacket& packet, Nanos now) {
  if (!is_sendable(packet)) [[unlikely]] {
    ++counters_.unsendable;
    return Fate::taken;
  }
  Route* const found = route_to(*packet.destination, traffic_class(packet), now);
  if (found == nullptr) [[unlikely]] {
    ++(is_host(*packet.destination, config_.address) ? counters_.no_route : counters_.unsendable);
    return Fate::taken;
  }
  Route& route = *found;
  if (route.state != Resolution::State::known) [[unlikely]] {
    if (route.state == Resolution::State::asked)
      wait(packet, route);
    else
      ++counters_.unreachable;
    return Fate::taken;
  }
  const std::size_t bytes = kShimBytes + bytes_of(packet);
  if (bytes > route.queue.longest) [[unlikely]] {
    note_narrow(route);
    return Fate::taken;
  }
  if (!work_.has_room()) return Fate::blocked;
  if (bytes <= work_.pair().inline_bytes && config_.most_pieces >= kPieces) {
    ibv_send_wr& request = address(work_.add({.busy = &route.busy}), route);
    ibv_sge* piece = request.sg_list;
    *piece++ = {address_of(route.shim.data()), static_cast<std::uint32_t>(kShimBytes), 0};
    *piece++ = {address_of(packet.header.data()), static_cast<std::uint32_t>(packet.header.size()), 0};
    if (!packet.payload.empty())
      *piece++ = {address_of(packet.payload.data()), static_cast<std::uint32_t>(packet.payload.size()), 0};
    request.num_sge = static_cast<int>(piece - request.sg_list);
    request.send_flags = IBV_SEND_INLINE;
    ++counters_.inlined;
    return Fate::taken;
  }
  const std::uint32_t buffer = work_.take_buffer();
  const std::optional<std::uint32_t> key = work_.key_of(packet);
  PayloadHold* const hold = key ? packet.hold : nullptr;
  if (hold != nullptr) work_.hold(*hold);
  const std::uint32_t copied = copy(packet, route, hold == nullptr, buffer);
  ibv_send_wr& request = address(work_.add({.buffer = buffer, .busy = &route.busy, .hold = hold}, copied), route);
  if (key) WorkQueues::add_payload(request, packet.payload, *key);
  return Fate::taken;
}

std::size_t VerbsIo::send(std::span<const TxPacket> packets) {
  packets = packets.first(std::min<std::size_t>(packets.size(), burst));
  blocked_ = false;
  if (device_.is_gone()) [[unlikely]] {
    work_.finish_for_good();
    counters_.send_errors += packets.size();
    return packets.size();
  }
  work_.reap_if_half_full();
  const Nanos now = clock_.now();
  std::size_t done = 0;
  while (done < packets.size() && send_one(packets[done], now) == Fate::taken) ++done;
  work_.post();
  if (done < packets.size()) {
    blocked_ = true;
    ++counters_.full;
  }
  return done;
}

// ---- Receiving ----

/// Whether the message is a packet for the transport, which is then in `out`.
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

std::size_t VerbsIo::receive(std::span<RxPacket> out) {
  blocked_ = false;
  if (device_.is_gone()) [[unlikely]] {
    work_.finish_for_good();
    return 0;
  }
  if (!mailbox_->news.is_empty()) [[unlikely]]
    take_news();
  else if (work_.is_waiting_for_room()) [[unlikely]]
    send_waiting();
  work_.reap_holds();
  work_.recover_if_failed(clock_);
  const std::size_t most = std::min<std::size_t>(out.size(), burst);
  std::size_t count = 0;
  for (int bursts = 0; bursts < kMostIdleBursts && count == 0; ++bursts) {
    const std::span<const ibv_wc> got = work_.poll(most);
    if (got.empty()) break;
    for (const ibv_wc& one : got) count += accept(one, out[count]) ? 1U : 0U;
  }
  // Nothing tells of what has been sent; but where there is time to look, an error is seen soon.
  if (count == 0 && !work_.is_idle()) work_.reap();
  counters_.received_packets += count;
  return count;
}

}  // namespace mltcp::rdma
