// Eight threads post, cancel, close and connect at random over two endpoints with their own threads. Every operation
// ends exactly once. The test runs for two seconds, or for MLTCP_STRESS_SECONDS.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "endpoint_pair.h"

namespace mltcp::endpoint::stress_test {
namespace {

using namespace testing_pair;

Nanos duration() {
  const char* const seconds = std::getenv("MLTCP_STRESS_SECONDS");
  return Nanos::from_seconds(seconds != nullptr ? std::atof(seconds) : 2);
}

struct World {
  std::array<std::unique_ptr<Endpoint>, 2> endpoints;
  std::array<std::unique_ptr<CompletionQueue>, 2> queues;
  std::mutex mutex;
  std::array<std::vector<ConnectionHandle>, 2> handles;
  std::atomic<std::int64_t> callbacks_owed{0};
  std::atomic<std::int64_t> queued_owed{0};
  std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> succeeded{0};
  std::atomic<bool> stops{false};

  static void on(void* self, const Completion& completion) noexcept {
    auto& world = *static_cast<World*>(self);
    --world.callbacks_owed;
    if (completion.code == Code::ok) ++world.succeeded;
  }
};

class Player {
 public:
  Player(World& world, std::uint64_t seed) : world_(world), random_(seed), message_(30'000) {
    for (auto& side : buffers_)
      for (ByteVector& buffer : side) buffer.resize(30'000);
  }

  void play() {
    while (!world_.stops) {
      side_ = random_.below(2);
      turn();
    }
    for (const auto& [side, operation] : waited_) {
      Completion end;
      const Code code = world_.endpoints[side]->wait(operation, end, Nanos(20'000'000'000));
      EXPECT_EQ(code, Code::ok) << "an operation that never ends";
    }
  }

 private:
  Endpoint& endpoint() { return *world_.endpoints[side_]; }
  ConnectionHandle some() {
    const std::lock_guard lock(world_.mutex);
    auto& handles = world_.handles[side_];
    return handles.empty() ? 0 : handles[random_.below(handles.size())];
  }
  void connect() {
    ConnectionHandle handle = 0;
    const auto kind = random_.chance(0.5) ? ConnectionKind::ordered : ConnectionKind::tagged;
    if (endpoint().connect(world_.endpoints[1 - side_]->address().bytes(), {.kind = kind, .post = {}}, handle) !=
        Code::ok)
      return;
    keep(side_, handle);
  }
  void keep(std::size_t side, ConnectionHandle handle) {
    const std::lock_guard lock(world_.mutex);
    world_.handles[side].push_back(handle);
    if (world_.handles[side].size() > 24) world_.handles[side].erase(world_.handles[side].begin());
  }
  void look_at_events() {
    std::array<Completion, 8> out;
    const std::size_t count = endpoint().events().poll(out);
    for (std::size_t i = 0; i < count; ++i)
      if (out[i].kind == Completion::Kind::accepted) keep(side_, out[i].connection);
    const std::size_t ended = world_.queues[side_]->poll(out);
    for (std::size_t i = 0; i < ended; ++i) {
      --world_.queued_owed;
      if (out[i].code == Code::ok) ++world_.succeeded;
    }
  }
  Code post_one(ConnectionHandle handle, const PostOptions& options, OperationHandle& operation) {
    const std::size_t length = random_.chance(0.7) ? random_.below(900) : random_.below(30'000);
    // Each shard's thread writes into separate memory. Receives from any connection use the memory of shard 0.
    const std::span<std::byte> bytes = std::span(buffers_[side_][handle >> 56 & 1]).first(length);
    const std::span<std::byte> anys = std::span(buffers_[side_][0]).first(length);
    const std::span<const std::byte> message = std::span(message_).first(length);
    // A time limit is needed, because closing one connection does not end a receive from any connection.
    PostOptions limited = options;
    limited.time_limit = std::min(limited.time_limit, Nanos(20'000'000));
    switch (random_.below(5)) {
      case 0:
        return endpoint().send(handle, message, 0, options, operation);
      case 1:
        return endpoint().receive(handle, bytes, 0, options, operation);
      case 2:
        return endpoint().send_tagged(handle, message, random_.below(4), options, operation);
      case 3:
        if (random_.chance(0.3))
          return endpoint().receive_tagged(kAnyConnection, anys, random_.below(4), kWholeTag, limited, operation);
        return endpoint().receive_tagged(handle, bytes, random_.below(4), random_.chance(0.2) ? 1 : kWholeTag, options,
                                         operation);
      default:
        return endpoint().peek(handle, 0, 0, random_.chance(0.1) ? Take::yes : Take::no, options, operation);
    }
  }
  void post() {
    PostOptions options;
    const std::uint64_t way = random_.below(3);
    if (way == 0) options.callback = World::on, options.context = &world_;
    if (way == 1) options.queue = world_.queues[side_].get();
    if (random_.chance(0.95)) options.time_limit = Nanos(static_cast<std::int64_t>(1 + random_.below(20'000'000)));
    if (way == 0) ++world_.callbacks_owed;
    if (way == 1) ++world_.queued_owed;
    OperationHandle operation = 0;
    const Code code = post_one(some(), options, operation);
    if (code != Code::ok) {
      if (way == 0) --world_.callbacks_owed;
      if (way == 1) --world_.queued_owed;
      ++world_.refused;
      return;
    }
    ++world_.posted;
    if (random_.chance(0.1)) (void)endpoint().cancel(operation);
    if (way != 2) return;
    if (random_.chance(0.3))
      EXPECT_EQ(endpoint().forget(operation), Code::ok);
    else
      waited_.emplace_back(side_, operation);
  }
  void wait_for_some() {
    if (waited_.empty()) return;
    const std::size_t at = random_.below(waited_.size());
    const auto [side, operation] = waited_[at];
    Completion end;
    const Code code =
        world_.endpoints[side]->wait(operation, end, Nanos(static_cast<std::int64_t>(random_.below(100'000))));
    if (code == Code::timed_out) return;
    EXPECT_EQ(code, Code::ok);
    if (end.code == Code::ok) ++world_.succeeded;
    waited_[at] = waited_.back();
    waited_.pop_back();
  }
  void turn() {
    const std::uint64_t what = random_.below(100);
    if (what < 3)
      connect();
    else if (what < 4)
      (void)endpoint().close(some());
    else if (what < 5)
      (void)endpoint().abort(some());
    else if (what < 20)
      look_at_events();
    else if (what < 21) {
      ConnectionReport report;
      (void)endpoint().report(some(), report);
    } else if (what < 60)
      post();
    else
      wait_for_some();
  }

  World& world_;
  Random random_;
  std::size_t side_ = 0;
  ByteVector message_;
  std::array<std::array<ByteVector, 2>, 2> buffers_;
  std::vector<std::pair<std::size_t, OperationHandle>> waited_;
};

TEST(Stress, eight_threads__every_operation_ends_once) {
  loop_network::register_datapath();
  const auto network = loop_network::Network::make("stress", false);
  World world;
  for (std::uint32_t side = 0; side < 2; ++side) {
    EndpointConfig config = caller_config("stress", side + 1);
    config.driving = Driving::threads;
    config.shards = 2;
    config.max_connections = 32;
    config.max_operations = 1024;
    config.peer_timeout = 2_s;
    config.seed.reset();
    world.endpoints[side] = std::make_unique<Endpoint>(config);
    world.queues[side] = world.endpoints[side]->make_queue(64);
  }
  std::vector<std::unique_ptr<Player>> players;
  std::vector<std::thread> threads;
  const Nanos end = monotonic_now() + duration();
  for (std::uint64_t i = 0; i < 8; ++i) players.push_back(std::make_unique<Player>(world, i));
  for (auto& player : players) threads.emplace_back([&player] { player->play(); });
  while (monotonic_now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  // Operations without a time limit may wait forever, so closing the endpoints ends them.
  world.stops = true;
  for (auto& endpoint : world.endpoints) EXPECT_EQ(endpoint->close(), Code::ok);
  for (std::thread& thread : threads) thread.join();
  std::array<Completion, 16> out;
  for (auto& queue : world.queues)
    while (const std::size_t count = queue->poll(out)) world.queued_owed -= static_cast<std::int64_t>(count);
  EXPECT_EQ(world.callbacks_owed, 0);
  EXPECT_EQ(world.queued_owed, 0);
  EXPECT_GT(world.succeeded, 100U);
  RecordProperty("posted", std::to_string(world.posted));
  RecordProperty("succeeded", std::to_string(world.succeeded));
  printf("posted %llu, refused %llu, ended well %llu\n", static_cast<unsigned long long>(world.posted),
         static_cast<unsigned long long>(world.refused), static_cast<unsigned long long>(world.succeeded));
}

}  // namespace
}  // namespace mltcp::endpoint::stress_test
