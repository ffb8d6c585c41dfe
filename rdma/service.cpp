// The service thread; see service.h.
#include "mltcp/rdma/service.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mltcp/base/clock.h"

namespace mltcp::rdma {
namespace {

/// How often the port is looked at, whatever events there are.
constexpr Nanos kLook{1'000'000'000};
/// Datagrams of one socket in a row, so that a flood at one shard does not keep the others waiting.
constexpr int kMostDatagrams = 64;

constexpr std::uint8_t kUniversalBit = 2;

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
      resolution_(config.resolution, config.queues, [this] { return random_.next(); }) {
  for (auto& socket : sockets) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->socket = std::move(socket);
  }
}

Service::~Service() {
  stop();
  for (auto& shard : shards_)
    for (Route& route : shard->routes) free_handle(route);
  for (ibv_ah* const handle : retired_) device_.free_handle(handle);
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
    const Nanos most = is_full ? Nanos(1'000'000) : std::min(kLook, std::max(resolution_.deadline() - before, Nanos()));
    // Rounded up: a deadline is not waited for in many short waits.
    poll(files.data(), files.size(), static_cast<int>((most.count + 999'999) / 1'000'000));
    if ((files[0].revents & POLLIN) != 0) wake_.reset();
    const Nanos now = monotonic_now();
    if (files[1].revents != 0 || now - looked_at >= kLook) {
      looked_at = now;
      device_.take_events();
      if (device_.is_gone()) files[1].fd = -1;
    }
    step(now);
  }
}

void Service::step(Nanos now) {
  for (std::uint16_t number = 0; number < shards_.size(); ++number) {
    take_requests(number, now);
    std::array<std::byte, Resolution::datagram_bytes + 1> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (int left = kMostDatagrams; left > 0; --left) {
      const auto got = shards_[number]->socket->receive(bytes);
      if (!got) break;
      if (resolution_.receive(number, got->from, std::span(bytes).first(std::min(got->bytes, bytes.size())), now))
        tell_all_of(got->from, now);
    }
  }
  Resolution::Outgoing out;
  while (resolution_.next(out, now)) shards_[out.shard]->socket->send(out.to, out.bytes);
  for (const Address& lost : resolution_.take_unreachable()) tell_all_of(lost, now);
  for (const auto& shard : shards_) {
    bool has_news = false;
    while (!shard->unsent.empty() && shard->mailbox->news.push(shard->unsent.front())) {
      shard->unsent.pop_front();
      has_news = true;
    }
    if (has_news) shard->mailbox->shard_wake.wake();
  }
}

void Service::take_requests(std::uint16_t number, Nanos now) {
  Shard& shard = *shards_[number];
  while (const auto request = shard.mailbox->requests.pop()) {
    if (request->route >= kRoutes) continue;
    Route& route = shard.routes[request->route];
    switch (request->kind) {
      case RouteRequest::Kind::want:
        // A route that is wanted anew, as it was unreachable, has no handle.
        free_handle(route);
        route = {.is_used = true,
                 .traffic_class = request->traffic_class,
                 .service_level = request->service_level,
                 .generation = request->generation,
                 .destination = request->destination};
        look_up(number, request->route, now);
        break;
      case RouteRequest::Kind::refresh:
        if (route.is_used && route.generation == request->generation) look_up(number, request->route, now);
        break;
      case RouteRequest::Kind::release:
        if (!route.is_used || route.generation != request->generation) break;
        free_handle(route);
        route.is_used = false;
        break;
    }
  }
}

/// Tells the shard what has changed for a route.
void Service::look_up(std::uint16_t number, std::uint32_t place, Nanos now) {
  Shard& shard = *shards_[number];
  Route& route = shard.routes[place];
  const Address asked = asked_at(route.destination, device_.facts().is_infiniband);
  const Resolution::Found found = resolution_.find(number, asked, now);
  if (found.state == Resolution::State::known) {
    if (route.handle == nullptr || route.queue.lid != found.queue.lid) {
      // The shard may still send by the former one. Local identifiers change by a subnet manager, hardly ever.
      if (route.handle != nullptr) retired_.push_back(route.handle);
      route.handle = device_.make_handle({.gid_index = config_.gid.index,
                                          .destination = route.destination,
                                          .lid = found.queue.lid,
                                          .traffic_class = route.traffic_class,
                                          .service_level = route.service_level});
    }
    tell(shard, place, route.handle == nullptr ? Resolution::State::unreachable : Resolution::State::known,
         found.queue);
  } else if (found.state == Resolution::State::unreachable) {
    tell(shard, place, Resolution::State::unreachable, {});
  }
}

void Service::tell(Shard& shard, std::uint32_t place, Resolution::State state, const RemoteQueue& queue) {
  Route& route = shard.routes[place];
  if (state == route.told && queue == route.queue) return;
  route.told = state;
  route.queue = queue;
  shard.unsent.push_back({place, route.generation, state, queue, route.handle});
}

void Service::tell_all_of(const Address& address, Nanos now) {
  for (std::uint16_t number = 0; number < shards_.size(); ++number)
    for (std::uint32_t place = 0; place < kRoutes; ++place) {
      const Route& route = shards_[number]->routes[place];
      if (route.is_used && asked_at(route.destination, device_.facts().is_infiniband) == address)
        look_up(number, place, now);
    }
}

void Service::free_handle(Route& route) {
  if (route.handle != nullptr) device_.free_handle(route.handle);
  route.handle = nullptr;
}

}  // namespace mltcp::rdma
