// The service thread for Ethernet frames; see raw_service.h.
#include "mltcp/rdma/raw_service.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mltcp/base/clock.h"

namespace mltcp::rdma {
namespace {

constexpr Nanos kSecond{1'000'000'000};
/// Interval at which pending neighbours are looked up, even if the kernel reports no events.
constexpr Nanos kPendingLook{100'000'000};

}  // namespace

RawService::RawService(Device& device, std::unique_ptr<KernelRoutes> routes, std::uint16_t shards)
    : device_(device), routes_(std::move(routes)) {
  for (std::uint16_t shard = 0; shard < shards; ++shard) shards_.push_back(std::make_unique<Shard>());
}

RawService::~RawService() { stop(); }

void RawService::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "mltcp-verbs");
}

void RawService::stop() {
  stops_.store(true, std::memory_order_release);
  wake_.wake();
  if (thread_.joinable()) thread_.join();
}

std::string RawService::why_lost() const {
  const std::lock_guard lock(lost_mutex_);
  return why_lost_;
}

void RawService::run() {
  std::array<pollfd, 3> files{pollfd{wake_.file(), POLLIN, 0}, pollfd{device_.event_file(), POLLIN, 0},
                              pollfd{routes_->event_file(), POLLIN, 0}};
  Nanos looked_at = monotonic_now();
  while (!stops_.load(std::memory_order_acquire)) {
    const bool is_full = std::any_of(shards_.begin(), shards_.end(), [](const auto& s) { return !s->unsent.empty(); });
    const Nanos max = is_full ? Nanos(1'000'000) : pending_.empty() ? kSecond : kPendingLook;
    poll(files.data(), files.size(), static_cast<int>(max.count / 1'000'000));
    if ((files[0].revents & POLLIN) != 0) wake_.reset();
    const bool has_news = files[2].revents != 0;
    if (has_news) routes_->take_events();
    const Nanos now = monotonic_now();
    if (files[1].revents != 0 || now - looked_at >= kSecond) {
      looked_at = now;
      look();
    }
    // A failed file yields no more events, but poll(2) would report it for ever, so ignore it from now on.
    for (std::size_t i = 1; i < files.size(); ++i)
      if ((files[i].revents & (POLLHUP | POLLNVAL)) != 0) files[i].fd = -1;
    if (device_.is_gone() || (files[1].revents & POLLERR) != 0) files[1].fd = -1;
    step(has_news, now);
  }
}

void RawService::look() {
  if (device_.take_events())
    for (const auto& shard : shards_) shard->mailbox.shard_wake.wake();
  std::string why = routes_->why_lost();
  const std::lock_guard lock(lost_mutex_);
  why_lost_ = std::move(why);
}

void RawService::step(bool has_news, Nanos now) {
  // Look up pending routes before new requests, for which the kernel cannot have an answer yet.
  if (has_news || now - pending_at_ >= kPendingLook) look_up_pending(now);
  for (std::uint16_t number = 0; number < shards_.size(); ++number) take_requests(number, now);
  for (const auto& shard : shards_) send_news(*shard);
}

void RawService::take_requests(std::uint16_t number, Nanos now) {
  Shard& shard = *shards_[number];
  for (std::size_t left = RawMailbox::kMaxRequests; left > 0; --left) {
    const auto request = shard.mailbox.requests.pop();
    if (!request) return;
    if (request->route >= kRawRoutes) continue;
    Route& route = shard.routes[request->route];
    if (!route.is_used || route.generation != request->generation) {
      // If `unsent` or `pending_` contains this number, the entry now stands for the new route.
      route = {.is_used = true,
               .is_unsent = route.is_unsent,
               .is_pending = route.is_pending,
               .generation = request->generation,
               .destination = request->destination};
      route.asked_at = now;  // even if the number is pending: the time limit begins with the new destination
    }
    if (!route.is_pending) route.asked_at = now;
    look_up({number, request->route}, true, now);
  }
  wake_.wake();  // there may be more requests
}

/// Returns whether the kernel may be asked for one more neighbour in this second. Counts the question.
bool RawService::has_question(Nanos now) {
  if (now - second_begin_ >= kSecond) {
    second_begin_ = now;
    questions_ = 0;
  }
  return questions_++ < kMaxQuestions;
}

void RawService::look_up(Place place, bool may_ask, Nanos now) {
  Route& route = shards_[place.shard]->routes[place.route];
  KernelRoutes::Way way = routes_->find(route.destination, false);
  if (way.state == KernelRoutes::State::unreachable && may_ask && has_question(now))
    way = routes_->find(route.destination, true);
  if (way.state == KernelRoutes::State::asked) {
    // Until the time limit, keep using a known route, because the peer may be absent only for a moment.
    if (now - route.asked_at < kGiveUpAfter) {
      if (!std::exchange(route.is_pending, true)) pending_.push_back(place);
      return;
    }
    announce(place, {});
    return;
  }
  announce(place, way);
}

void RawService::look_up_pending(Nanos now) {
  pending_at_ = now;
  std::vector<Place> places;
  places.swap(pending_);
  for (const Place place : places) {
    shards_[place.shard]->routes[place.route].is_pending = false;
    look_up(place, false, now);
  }
}

void RawService::announce(Place place, const KernelRoutes::Way& way) {
  Route& route = shards_[place.shard]->routes[place.route];
  if (route.is_announced && way == route.way) return;
  route.is_announced = true;
  route.way = way;
  if (!std::exchange(route.is_unsent, true)) shards_[place.shard]->unsent.push_back(place.route);
}

/// Sends the shard the latest state of each changed route. Skips older states that were not sent.
void RawService::send_news(Shard& shard) {
  bool has_news = false;
  for (; !shard.unsent.empty(); shard.unsent.pop_front()) {
    Route& route = shard.routes[shard.unsent.front()];
    if (route.is_announced && !shard.mailbox.news.push({shard.unsent.front(), route.generation, route.way})) break;
    route.is_unsent = false;
    has_news = true;
  }
  if (has_news) shard.mailbox.shard_wake.wake();
}

}  // namespace mltcp::rdma
