// The common part of datapaths on queue pairs, whose packets are datagrams (verbs_io.h) or Ethernet frames (raw_io.h).
// Routes to destinations are stored in sets of four. Packets whose route is not known yet wait while the service thread
// finds it. Packets are sent and received in bursts.
//
// `Self`, the class that derives from PairIo, must have these functions:
//   is_sendable(packet)                   returns whether the packet can be sent at all
//   traffic_class_of(packet)              returns the traffic class, by which routes to one destination can differ
//   key_of(destination)                   returns the destination in the form that routes store
//   leads_to(route, destination, class)   returns whether packets with this destination and traffic class use the route
//   request(route, now)                   requests a new route; returns false if the mailbox is full
//   refresh(route, now)                   repeats the request for a route in use
//   vacate(route)                         returns whether another route may replace `route`
//   write_waiting(packet, route, buffer)  writes a packet that must wait; returns the number of bytes
//   fits(route, bytes)                    returns whether the peer accepts this length; if not, counts the packet
//   send_waiting_one(packet, route)       posts a packet that has waited
//   send_now(packet, route)               posts a packet; returns false if the queue is full
//   apply(route, news)                    updates a route
//   accept(completion, packet)            returns whether an arrival is a packet for the transport
// `Route` must have the members destination, traffic_class, is_used, state, generation, busy, ask_at and used_at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/system_random.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/rdma/internal/work_queues.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

inline constexpr std::size_t kCacheLine = 64;

template <typename Self, typename Route, typename Counters, typename Service, typename Mailbox>
class PairIo : public PacketIo {
 public:
  static constexpr std::uint32_t kBurst = WorkQueues::kBurst;
  /// Interval at which the shard repeats its request for a route in use.
  static constexpr Nanos kRefreshAfter{1'000'000'000};

  ~PairIo() override = default;
  PairIo(const PairIo&) = delete;
  PairIo& operator=(const PairIo&) = delete;
  /// Must be called before the first packet. `service` and `mailbox` must outlive this object.
  void attach(const Service& service, Mailbox& mailbox) {
    service_ = &service;
    mailbox_ = &mailbox;
    work_.wait_for(mailbox.shard_wake.file());
  }

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  [[nodiscard]] bool is_blocked() const override { return blocked_ || work_.is_waiting_for_space(); }
  [[nodiscard]] std::uint64_t activity() const override {
    return counters_.received_packets + counters_.sent_packets + counters_.waited + news_;
  }
  [[nodiscard]] Nanos deadline() const override { return work_.deadline(); }
  std::optional<Wakeup> begin_waiting() override { return Wakeup{work_.wait_file(), true}; }
  void arm() override { work_.arm(blocked_); }
  void disarm() override {
    work_.disarm();
    mailbox_->shard_wake.reset();
  }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const QueuePair& queue_pair() const { return work_.pair(); }

  /// Returns whether packets to `destination` can be sent at once. If not, requests the route.
  bool resolve(const Address& destination) {
    if (!mailbox_->news.is_empty()) take_news();
    const Route* const route = route_to(destination, 0, clock_.now());
    return route != nullptr && route->state == State::known;
  }

  std::size_t send(std::span<const TxPacket> packets) override {
    packets = packets.first(std::min<std::size_t>(packets.size(), kBurst));
    blocked_ = false;
    if (device_.is_gone()) [[unlikely]] {
      work_.finish_for_good();
      counters_.send_errors += packets.size();
      return packets.size();
    }
    work_.reap_if_half_full();
    const Nanos now = clock_.now();
    std::size_t done = 0;
    while (done < packets.size() && send_one(packets[done], now)) ++done;
    work_.post();
    if (done < packets.size()) {
      blocked_ = true;
      ++counters_.full;
    }
    return done;
  }

  std::size_t receive(std::span<RxPacket> out) override {
    blocked_ = false;
    if (device_.is_gone()) [[unlikely]] {
      work_.finish_for_good();
      return 0;
    }
    if (!mailbox_->news.is_empty()) [[unlikely]]
      take_news();
    else if (work_.is_waiting_for_space()) [[unlikely]]
      send_waiting();
    work_.reap_holds();
    work_.recover_if_failed(clock_);
    const std::size_t max = std::min<std::size_t>(out.size(), kBurst);
    std::size_t count = 0;
    for (int bursts = 0; bursts < kMaxIdleBursts && count == 0; ++bursts) {
      const std::span<const ibv_wc> got = work_.poll(max);
      if (got.empty()) break;
      for (const ibv_wc& one : got) count += self().accept(one, out[count]) ? 1U : 0U;
    }
    // Only some sends are signalled. When there is time, look for completions, so that errors are noticed soon.
    if (count == 0 && !work_.is_idle()) work_.reap();
    counters_.received_packets += count;
    return count;
  }

 protected:
  using State = decltype(Route::state);

  /// Creates the queue pair. Throws RunError if the device refuses.
  PairIo(Device& device, const Clock& clock, const Address& own, std::uint32_t routes, const WorkConfig& work)
      : clock_(clock),
        device_(device),
        own_(own),
        routes_(routes),
        sets_(routes / kWays),
        work_(device, work, counters_) {
    limits_.burst = kBurst;
    limits_.keeps_payload_from = work.zero_copy_from;
  }

  /// Returns the route, which may be new. Returns null if all entries of its set are busy, the mailbox is full, or no
  /// host can have the address.
  Route* route_to(const Address& destination, std::uint8_t traffic_class, Nanos now) {
    // Most packets of a burst have the destination of the previous one.
    if (Route& last = routes_[last_route_];
        last.is_used && now < last.ask_at && self().leads_to(last, destination, traffic_class)) [[likely]] {
      last.used_at = now;
      return &last;
    }
    const Address key = self().key_of(destination);
    const auto set = static_cast<std::uint32_t>(hash_.of(key, traffic_class) % sets_);
    for (std::uint32_t way = 0; way < kWays; ++way) {
      Route& route = routes_[set * kWays + way];
      if (route.destination != key || route.traffic_class != traffic_class || !route.is_used) continue;
      route.used_at = now;
      if (now >= route.ask_at) [[unlikely]]
        self().refresh(route, now);
      last_route_ = number_of(route);
      return &route;
    }
    if (!is_host(destination, own_)) return nullptr;
    Route* const place = find_place(set);
    if (place == nullptr) return nullptr;
    *place = {};
    place->destination = key;
    place->traffic_class = traffic_class;
    place->used_at = now;
    // Packets must not wait for a route that was never requested.
    if (!self().request(*place, now)) return nullptr;
    place->is_used = true;
    return place;
  }
  [[nodiscard]] std::uint32_t number_of(const Route& route) const {
    return static_cast<std::uint32_t>(&route - routes_.data());
  }
  /// Must be called after the request for a new route was put into the mailbox.
  void on_requested(Route& route, Nanos now) {
    route.generation = ++generation_;
    route.state = State::asked;
    on_refreshed(route, now);
  }
  void on_refreshed(Route& route, Nanos now) {
    route.ask_at = now + kRefreshAfter;
    service_->wake();
  }

  const Clock& clock_;
  Device& device_;
  const Address own_;
  Limits limits_;
  Counters counters_;
  const KeyedHash hash_ = random_hash();
  std::vector<Route> routes_;  ///< outlives work_, which updates `busy` of the routes
  const std::uint32_t sets_;
  std::uint32_t last_route_ = 0;
  std::uint32_t generation_ = 0;
  WorkQueues work_;
  const Service* service_ = nullptr;
  Mailbox* mailbox_ = nullptr;
  bool blocked_ = false;
  std::uint64_t news_ = 0;

 private:
  static constexpr std::uint32_t kWays = 4;
  /// Maximum number of bursts without a packet for the transport that one call of receive() skips.
  static constexpr int kMaxIdleBursts = 8;

  static KeyedHash random_hash() {
    SystemRandom random;
    const std::uint64_t start = random.next();
    return {start, random.next()};
  }
  Self& self() { return static_cast<Self&>(*this); }

  /// Returns a free entry of the set. If none is free, frees and returns the least recently used entry that is not
  /// busy. Returns null if packets of every entry wait or are in flight, or if the mailbox is full.
  Route* find_place(std::uint32_t set) {
    Route* oldest = nullptr;
    for (std::uint32_t way = 0; way < kWays; ++way) {
      Route& route = routes_[set * kWays + way];
      if (!route.is_used) return &route;
      if (route.busy == 0 && (oldest == nullptr || route.used_at < oldest->used_at)) oldest = &route;
    }
    if (oldest == nullptr) {
      work_.reap();  // completions of sent packets may not have been taken yet
      return nullptr;
    }
    if (!self().vacate(*oldest)) return nullptr;
    oldest->is_used = false;
    return oldest;
  }

  void take_news() {
    const Nanos now = clock_.now();
    while (const auto news = mailbox_->news.pop()) {
      ++news_;
      Route& route = routes_[news->route];
      if (!route.is_used || route.generation != news->generation) continue;
      self().apply(route, *news);
      route.ask_at = now + kRefreshAfter;
    }
    send_waiting();
  }

  /// Sends or drops, in order, the waiting packets whose route is now known or unreachable.
  void send_waiting() {
    using Verdict = WorkQueues::Verdict;
    work_.settle_waiting(
        [this](const WorkQueues::Waiting& packet) {
          const Route& route = routes_[packet.route];
          if (route.state == State::asked) return Verdict::wait;
          if (route.state == State::unreachable) {
            ++counters_.unreachable;
            return Verdict::drop;
          }
          return self().fits(route, packet.bytes) ? Verdict::send : Verdict::drop;
        },
        [this](const WorkQueues::Waiting& packet) { self().send_waiting_one(packet, routes_[packet.route]); });
  }

  /// Returns false if the queue is full and the packet was not taken.
  bool send_one(const TxPacket& packet, Nanos now) {
    if (!self().is_sendable(packet) || packet.destination->port == 0 || packet.priority >= kPriorities) [[unlikely]] {
      ++counters_.unsendable;
      return true;
    }
    Route* const found = route_to(*packet.destination, self().traffic_class_of(packet), now);
    if (found == nullptr) [[unlikely]] {
      ++(is_host(*packet.destination, own_) ? counters_.no_route : counters_.unsendable);
      return true;
    }
    Route& route = *found;
    if (route.state == State::known) [[likely]]
      return self().send_now(packet, route);
    if (route.state == State::asked) {
      work_.limit_waiting();
      const std::uint32_t buffer = work_.take_buffer();
      work_.wait({buffer, number_of(route), self().write_waiting(packet, route, buffer), &route.busy});
    } else {
      ++counters_.unreachable;
    }
    return true;
  }
};

}  // namespace mltcp::rdma
