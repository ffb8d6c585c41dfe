// Datapaths on queue pairs for Ethernet frames; see raw_io.h.
#include "mltcp/rdma/raw_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/rdma/ud_packet.h"

namespace mltcp::rdma {
namespace {

constexpr std::size_t kLine = 64;
/// Bursts without packets for the transport that one call of receive() passes over.
constexpr int kMostIdleBursts = 8;

KeyedHash random_hash() {
  SystemRandom random;
  const std::uint64_t start = random.next();
  return {start, random.next()};
}

std::uint32_t frame_bytes(const RawIoConfig& config) {
  return config.mtu + static_cast<std::uint32_t>(encap::kEthernetBytes);
}

/// So that the packet begins on a line of the cache.
std::uint32_t lead_bytes(const RawIoConfig& config) {
  return static_cast<std::uint32_t>(kLine - encap::header_bytes(config.address) % kLine);
}

const char* cure_of_rule(int error) {
  if (error == EPERM || error == EACCES) return "run the program as root, or with the capability CAP_NET_RAW";
  if (error == ENOMEM || error == ENOSPC || error == EBUSY || error == EEXIST)
    return "end other programs that steer frames of it, or ask for fewer shards";
  return "use its interface (af_xdp:IFACE, udp:), or an IPv4 address if this is none";
}

Address without_port(const Address& address) {
  Address ip = address;
  ip.port = 0;
  return ip;
}

}  // namespace

// ---- Set-up ----

RawIo::RawIo(Device& device, const Clock& clock, const RawIoConfig& config)
    : clock_(clock),
      device_(device),
      config_(config),
      writer_({.mac = config.mac,
               .source = config.address,
               .mtu = config.mtu,
               // Of IPv6 the verb promises nothing (ibv_post_send(3), IBV_SEND_IP_CSUM).
               .checksums = config.has_checksums && config.address.is_v4() ? encap::Checksums::port
                                                                           : encap::Checksums::software}),
      hash_(random_hash()),
      routes_(kRawRoutes),
      work_(device,
            {.kind = PairKind::frames,
             .send_depth = config.send_depth,
             .receive_depth = config.receive_depth,
             .send_bytes = frame_bytes(config),
             .receive_bytes = frame_bytes(config) + static_cast<std::uint32_t>(encap::kVlanBytes),
             .lead_bytes = lead_bytes(config),
             .longest_bytes = longest_frame,
             .pieces = config.most_pieces,
             .inline_bytes = config.inline_bytes,
             .zero_copy_from = config.most_pieces >= 2 ? config.zero_copy_from : 0},
            counters_),
      computes_checksums_(config.has_checksums && config.address.is_v4()) {
  limits_.max_packet_bytes = writer_.max_packet_bytes();
  limits_.overhead_bytes = static_cast<std::uint32_t>(writer_.overhead_bytes());
  limits_.burst = burst;
  limits_.keeps_payload_from = config.most_pieces >= 2 ? config.zero_copy_from : 0;
  const int error = work_.pair().steer({.destination_mac = config.mac, .destination = config.address});
  if (error != 0)
    throw RunError(fmt::format("the device can't steer frames to {} into a queue pair ({}); {}",
                               to_text(config.address), std::strerror(error), cure_of_rule(error)));
}

void RawIo::attach(const RawService& service, RawMailbox& mailbox) {
  service_ = &service;
  mailbox_ = &mailbox;
  work_.wait_for(mailbox.shard_wake.file());
}

void RawIo::disarm() {
  work_.disarm();
  mailbox_->shard_wake.reset();
}

// ---- Routes ----

/// Null: all places are busy, the service does not keep up, or nobody can have that address.
RawIo::Route* RawIo::route_to(const Address& destination, Nanos now) {
  // Most packets of a burst go where the one before them went.
  if (Route& last = routes_[last_route_]; last.destination.ip == destination.ip && last.is_used && now < last.ask_at)
      [[likely]] {
    last.used_at = now;
    return &last;
  }
  const Address ip = without_port(destination);
  const auto set = static_cast<std::uint32_t>(hash_.of(ip, 0) % kSets);
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (route.destination != ip || !route.is_used) continue;
    route.used_at = now;
    // One without a way begins again; of one that has a way it is asked whether it is still right.
    if (now >= route.ask_at) [[unlikely]]
      request(route, route.state == KernelRoutes::State::unreachable, now);
    last_route_ = number_of(route);
    return &route;
  }
  if (!is_host(destination, config_.address)) return nullptr;
  Route* const place = find_place(set);
  if (place == nullptr) return nullptr;
  *place = {.destination = ip, .used_at = now};
  // One that the service does not know of would have packets wait for nothing.
  if (!request(*place, true, now)) return nullptr;
  place->is_used = true;
  return place;
}

/// Of its set the place that is free, or was not used for longest. Null: packets wait for all of them.
RawIo::Route* RawIo::find_place(std::uint32_t set) {
  Route* oldest = nullptr;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Route& route = routes_[set * kWays + way];
    if (!route.is_used) return &route;
    if (route.busy == 0 && (oldest == nullptr || route.used_at < oldest->used_at)) oldest = &route;
  }
  if (oldest != nullptr) oldest->is_used = false;
  return oldest;
}

/// False if the mailbox is full; the next packet tries again.
bool RawIo::request(Route& route, bool is_new, Nanos now) {
  const std::uint32_t generation = is_new ? generation_ + 1 : route.generation;
  if (!mailbox_->requests.push({.route = number_of(route), .generation = generation, .destination = route.destination}))
    return false;
  if (is_new) {
    route.generation = ++generation_;
    route.state = KernelRoutes::State::asked;
  }
  route.ask_at = now + refresh_after;
  service_->wake();
  return true;
}

void RawIo::take_news() {
  const Nanos now = clock_.now();
  while (const auto news = mailbox_->news.pop()) {
    ++news_;
    Route& route = routes_[news->route];
    if (!route.is_used || route.generation != news->generation) continue;
    route.state = news->way.state;
    route.mac = news->way.mac;
    route.ask_at = now + refresh_after;
  }
  send_waiting();
}

/// Those whose route is decided, in order.
void RawIo::send_waiting() {
  using Verdict = WorkQueues::Verdict;
  work_.settle_waiting(
      [this](const WorkQueues::Waiting& packet) {
        switch (routes_[packet.route].state) {
          case KernelRoutes::State::known:
            return Verdict::send;
          case KernelRoutes::State::asked:
            return Verdict::wait;
          case KernelRoutes::State::unreachable:
            break;
        }
        ++counters_.unreachable;
        return Verdict::drop;
      },
      [this](const WorkQueues::Waiting& packet) {
        const encap::MacAddress& mac = routes_[packet.route].mac;
        std::memcpy(work_.send_buffer(packet.buffer), mac.data(), mac.size());
        add({.buffer = packet.buffer}, packet.bytes, nullptr, std::nullopt);
      });
}

bool RawIo::resolve(const Address& destination) {
  if (!mailbox_->news.is_empty()) take_news();
  const Route* const route = route_to(destination, clock_.now());
  return route != nullptr && route->state == KernelRoutes::State::known;
}

// ---- Sending ----

/// A request for the frame in the flight's buffer, of which `bytes` are there, and the payload of `packet` where it
/// lies if there is a key.
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

void RawIo::wait(const TxPacket& packet, Route& route) {
  work_.make_room_to_wait();
  const std::uint32_t buffer = work_.take_buffer();
  const std::size_t bytes = writer_.write(packet, {}, work_.send_buffer(buffer), true);
  work_.wait({buffer, number_of(route), static_cast<std::uint32_t>(bytes), &route.busy});
}

RawIo::Fate RawIo::send_one(const TxPacket& packet, Nanos now) {
  if (!writer_.is_sendable(packet) || packet.destination->port == 0 || packet.priority >= kPriorities) [[unlikely]] {
    ++counters_.unsendable;
    return Fate::taken;
  }
  Route* const found = route_to(*packet.destination, now);
  if (found == nullptr) [[unlikely]] {
    ++(is_host(*packet.destination, config_.address) ? counters_.no_route : counters_.unsendable);
    return Fate::taken;
  }
  Route& route = *found;
  if (route.state != KernelRoutes::State::known) [[unlikely]] {
    if (route.state == KernelRoutes::State::asked)
      wait(packet, route);
    else
      ++counters_.unreachable;
    return Fate::taken;
  }
  if (!work_.has_room()) return Fate::blocked;
  const std::uint32_t buffer = work_.take_buffer();
  const std::optional<std::uint32_t> key = work_.key_of(packet);
  PayloadHold* const hold = key ? packet.hold : nullptr;
  if (hold != nullptr) work_.hold(*hold);
  const std::size_t bytes = writer_.write(packet, route.mac, work_.send_buffer(buffer), hold == nullptr);
  add({.buffer = buffer, .hold = hold}, static_cast<std::uint32_t>(bytes), &packet, key);
  return Fate::taken;
}

std::size_t RawIo::send(std::span<const TxPacket> packets) {
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

/// Whether the frame is a packet for the transport, which is then in `out`.
bool RawIo::accept(const ibv_wc& done, RxPacket& out) {
  const std::span<const std::byte> bytes = work_.take(done);
  if (bytes.empty()) [[unlikely]]
    return false;
  // What says that both are right; with neither, or one that is wrong, it is found out here.
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

std::size_t RawIo::receive(std::span<RxPacket> out) {
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
