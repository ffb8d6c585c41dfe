// The service thread of a datapath on verbs; see service.h.
#include "mltcp/rdma/service.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mltcp/base/clock.h"

namespace mltcp::rdma {
namespace {

/// Interval at which the port is checked, even if there are no events.
constexpr Nanos kLook{1'000'000'000};
/// Maximum number of datagrams taken from one socket in a row, so that a flood at one shard does not delay the others.
constexpr int kMaxDatagrams = 64;

constexpr std::uint8_t kUniversalBit = 2;

/// Returns a flow label, which is a hash of the packet's UDP ports. No header that switches read contains these ports.
/// Devices derive RoCEv2's UDP source port from the label, and switches choose one of several paths by that port. The
/// label is never 0, which would mean none.
std::uint32_t flow_label(std::uint16_t from, std::uint16_t to) {
  constexpr std::uint32_t bits = 20;
  const std::uint32_t mixed = (std::uint32_t{from} << 16 | to) * 0x9E3779B1U;
  return std::max<std::uint32_t>(mixed >> (32 - bits), 1);
}

}  // namespace

Address asked_at(const Address& gid, bool is_infiniband) {
  if (!is_infiniband) return gid;
  Address address;
  address.port = gid.port;
  address.ip[0] = 0xFE;
  address.ip[1] = 0x80;
  std::copy(gid.ip.begin() + 8, gid.ip.end(), address.ip.begin() + 8);
  address.ip[8] |= kUniversalBit;
  return address;
}

Service::Service(Device& device, const ServiceConfig& config, std::vector<std::unique_ptr<KernelSocket>> sockets)
    : device_(device),
      config_(config),
      resolution_(config.resolution, config.queues, [this] { return random_.next(); }),
      places_(0, KeyedHash(random_.next(), random_.next())),
      gid_index_(config.gid.index) {
  for (auto& socket : sockets) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->socket = std::move(socket);
  }
}

Service::~Service() {
  stop();
  for (auto& shard : shards_)
    for (Route& route : shard->routes) {
      free_handle(route.handle);
      free_handle(route.former);
    }
}

void Service::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "mltcp-verbs");
}

void Service::stop() {
  stops_.store(true, std::memory_order_release);
  wake_.wake();
  if (thread_.joinable()) thread_.join();
}

void Service::run() {
  std::vector<pollfd> files{{wake_.file(), POLLIN, 0}, {device_.event_file(), POLLIN, 0}};
  for (const auto& shard : shards_) files.push_back({shard->socket->file(), POLLIN, 0});
  Nanos looked_at = monotonic_now();
  while (!stops_.load(std::memory_order_acquire)) {
    const Nanos before = monotonic_now();
    const bool is_full = std::any_of(shards_.begin(), shards_.end(), [](const auto& s) { return !s->unsent.empty(); });
    const Nanos max = is_full ? Nanos(1'000'000) : std::min(kLook, std::max(resolution_.deadline() - before, Nanos()));
    // Round up, so that the thread does not wake many times shortly before a deadline.
    poll(files.data(), files.size(), static_cast<int>((max.count + 999'999) / 1'000'000));
    if ((files[0].revents & POLLIN) != 0) wake_.reset();
    const Nanos now = monotonic_now();
    if (files[1].revents != 0 || now - looked_at >= kLook) {
      looked_at = now;
      look(now);
      // A failed file yields no more events, but poll(2) would report it for ever, so ignore it from now on.
      if (device_.is_gone() || (files[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) files[1].fd = -1;
    }
    step(now);
  }
}

/// Handles the device's events, and renews handles if the index of the GID has changed.
void Service::look(Nanos now) {
  if (device_.take_events())
    for (const auto& shard : shards_) shard->mailbox->shard_wake.wake();
  if (device_.gid_index() == gid_index_) return;
  gid_index_ = device_.gid_index();
  for (std::uint16_t number = 0; number < shards_.size(); ++number)
    for (std::uint32_t route = 0; route < kRoutes; ++route)
      if (shards_[number]->routes[route].handle != nullptr) look_up({number, route}, now);
}

void Service::step(Nanos now) {
  for (std::uint16_t number = 0; number < shards_.size(); ++number) {
    take_requests(number, now);
    take_datagrams(number, now);
    // Send before the next shard's datagrams are taken, so that a flood at one shard leaves room for answers of other
    // shards.
    send_datagrams(now);
  }
  for (const Address& lost : resolution_.take_unreachable()) announce_lost(lost);
  for (const auto& shard : shards_) send_news(*shard);
}

void Service::take_datagrams(std::uint16_t number, Nanos now) {
  std::array<std::byte, Resolution::kDatagramBytes + 1> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (int left = kMaxDatagrams; left > 0; --left) {
    const auto got = shards_[number]->socket->receive(bytes);
    if (!got) break;
    if (resolution_.receive(number, got->from, std::span(bytes).first(std::min(got->bytes, bytes.size())), now))
      announce_all_of(got->from, now);
  }
}

void Service::send_datagrams(Nanos now) {
  Resolution::Outgoing out;
  while (resolution_.next(out, now)) shards_[out.shard]->socket->send(out.to, out.bytes);
}

/// Sends the shard the latest state of each changed route. Skips older states that were not sent.
void Service::send_news(Shard& shard) {
  bool has_news = false;
  for (; !shard.unsent.empty(); shard.unsent.pop_front()) {
    Route& route = shard.routes[shard.unsent.front()];
    if (route.is_used && route.announced != Resolution::State::asked &&
        !shard.mailbox->news.push({shard.unsent.front(), route.generation, route.announced, route.queue, route.handle}))
      break;
    route.is_unsent = false;
    has_news = true;
  }
  if (has_news) shard.mailbox->shard_wake.wake();
}

void Service::take_requests(std::uint16_t number, Nanos now) {
  Shard& shard = *shards_[number];
  for (std::size_t left = Mailbox::kMaxRequests; left > 0; --left) {
    const auto request = shard.mailbox->requests.pop();
    if (!request) return;
    if (request->route >= kRoutes) continue;
    const Place place{number, request->route};
    Route& route = shard.routes[request->route];
    const bool is_current = route.is_used && route.generation == request->generation;
    switch (request->kind) {
      case RouteRequest::Kind::want:
        // If the route is already in use, it was unreachable before this request. So no packet uses its handles.
        release(place);
        route.is_used = true;
        route.traffic_class = request->traffic_class;
        route.service_level = request->service_level;
        route.generation = request->generation;
        route.destination = request->destination;
        route.announced = Resolution::State::asked;
        route.queue = {};
        places_[asked(route.destination)].push_back(place);
        look_up(place, now);
        break;
      case RouteRequest::Kind::refresh:
        if (!is_current) break;
        if (request->settled != nullptr && request->settled == route.handle) free_handle(route.former);
        look_up(place, now);
        break;
      case RouteRequest::Kind::release:
        if (is_current) release(place);
        break;
    }
  }
  wake_.wake();  // there may be more requests
}

/// Looks up the peer of a route. If the state of the route has changed, tells the shard.
void Service::look_up(Place place, Nanos now) {
  const Address address = asked(route_of(place).destination);
  const Resolution::Found found = resolution_.find(place.shard, address, now);
  if (found.state == Resolution::State::known) {
    find_handle(place, found.queue);
    // The peer has answered before, but is absent now. Each further attempt would block this thread while the kernel
    // looks for the peer's MAC address. When the peer answers again, the kernel knows that address.
    if (route_of(place).handle == nullptr) resolution_.give_up(address, now);
  } else if (found.state == Resolution::State::unreachable && route_of(place).handle == nullptr) {
    announce(place, Resolution::State::unreachable, {});
  }
}

void Service::find_handle(Place place, const RemoteQueue& queue) {
  Route& route = route_of(place);
  const std::uint16_t lid = device_.facts().is_infiniband ? queue.lid : std::uint16_t{0};
  ibv_ah* made = nullptr;
  const bool is_right = route.handle != nullptr && route.gid_index == gid_index_ && route.lid == lid;
  if (!is_right && route.former == nullptr) {
    const std::uint16_t port = shards_[place.shard]->socket->port();
    made = device_.make_handle({.gid_index = gid_index_,
                                .destination = route.destination,
                                .lid = lid,
                                .traffic_class = route.traffic_class,
                                .service_level = route.service_level,
                                .flow_label = flow_label(port, route.destination.port)});
  }
  if (made != nullptr) {
    route.former = std::exchange(route.handle, made);
    route.gid_index = gid_index_;
    route.lid = lid;
    route.announced = Resolution::State::asked;  // causes news, because the handle is new
  }
  if (route.handle != nullptr)
    announce(place, Resolution::State::known, queue);
  else
    announce(place, Resolution::State::unreachable, {});
}

void Service::announce(Place place, Resolution::State state, const RemoteQueue& queue) {
  Route& route = route_of(place);
  if (state == route.announced && queue == route.queue) return;
  route.announced = state;
  route.queue = queue;
  if (!std::exchange(route.is_unsent, true)) shards_[place.shard]->unsent.push_back(place.route);
}

void Service::announce_all_of(const Address& address, Nanos now) {
  const auto found = places_.find(address);
  if (found == places_.end()) return;
  for (const Place place : found->second) look_up(place, now);
}

/// Tells shards that `address` is unreachable, because no host answers there or Resolution has removed the peer. Shards
/// may ask again later.
void Service::announce_lost(const Address& address) {
  const auto found = places_.find(address);
  if (found == places_.end()) return;
  for (const Place place : found->second)
    if (route_of(place).handle == nullptr) announce(place, Resolution::State::unreachable, {});
}

void Service::release(Place place) {
  Route& route = route_of(place);
  free_handle(route.handle);
  free_handle(route.former);
  if (!std::exchange(route.is_used, false)) return;
  const auto found = places_.find(asked(route.destination));
  std::erase_if(found->second, [&](const Place& one) { return one.shard == place.shard && one.route == place.route; });
  if (found->second.empty()) places_.erase(found);
}

void Service::free_handle(ibv_ah*& handle) {
  if (handle != nullptr) device_.free_handle(handle);
  handle = nullptr;
}

}  // namespace mltcp::rdma
