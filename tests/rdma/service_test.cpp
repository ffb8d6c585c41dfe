// Tests the service thread's work, one step at a time in virtual time. Datagrams pass over the loopback, and each peer
// is a socket that sends what the test tells it to.
#include "mltcp/rdma/service.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <vector>

#include "fake_device.h"
#include "mltcp/base/clock.h"
#include "mltcp/rdma/kernel_sockets.h"

namespace mltcp::rdma::service_test {
namespace {

using namespace mltcp::literals;
using State = Resolution::State;
using Datagram = Resolution::Datagram;

constexpr RemoteQueue kOwn{.number = 77, .key = 5, .lid = 0, .longest = 1024};

/// A program at a loopback address that sends questions and answers.
struct Peer {
  explicit Peer(std::uint32_t ip, std::uint16_t port = 0) : socket(Address::v4(ip, port), 0) {
    address = Address::v4(ip, socket.port());
  }
  /// Returns the next datagram, or nullopt if none arrives within `milliseconds`.
  std::optional<Datagram> receive(int milliseconds = 500) {
    pollfd file{socket.file(), POLLIN, 0};
    if (poll(&file, 1, milliseconds) != 1) return std::nullopt;
    Datagram bytes{};
    const auto got = socket.receive(bytes);
    return got && got->bytes == bytes.size() ? std::optional(bytes) : std::nullopt;
  }
  /// Answers `question` with `queue`.
  void answer(const Address& to, Datagram question, const RemoteQueue& queue) {
    const auto put = [&](std::size_t at, std::uint32_t value, int bytes) {
      for (int i = 0; i < bytes; ++i)
        question[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
    };
    put(5, 2, 1);
    put(6, queue.longest, 2);
    put(16, queue.number, 4);
    put(20, queue.key, 4);
    put(24, queue.lid, 2);
    socket.send(to, question);
  }

  KernelSocket socket;
  Address address;
};

struct Harness {
  explicit Harness(std::uint16_t shards = 1, bool infiniband = false, ResolutionConfig resolution = {})
      : device(fabric, "127.0.0.1", 1024, infiniband) {
    std::vector<std::unique_ptr<KernelSocket>> sockets;
    for (std::uint16_t i = 0; i < shards; ++i) {
      sockets.push_back(std::make_unique<KernelSocket>(Address::v4(0x7F000001, 0), 0));
      own.push_back(Address::v4(0x7F000001, sockets.back()->port()));
    }
    service = std::make_unique<Service>(
        device,
        ServiceConfig{.gid = {.index = 1}, .queues = std::vector<RemoteQueue>(shards, kOwn), .resolution = resolution},
        std::move(sockets));
  }

  void want(std::uint32_t route, const Address& destination, std::uint8_t traffic_class = 0, std::uint16_t shard = 0) {
    generation = next_generation++;
    ASSERT_TRUE(service->mailbox(shard).requests.push({.kind = RouteRequest::Kind::want,
                                                       .traffic_class = traffic_class,
                                                       .route = route,
                                                       .generation = generation,
                                                       .destination = destination}));
  }
  void refresh(std::uint32_t route, const ibv_ah* settled = nullptr) {
    ASSERT_TRUE(service->mailbox(0).requests.push({.kind = RouteRequest::Kind::refresh,
                                                   .route = route,
                                                   .generation = generation,
                                                   .destination = {},
                                                   .settled = settled}));
  }
  /// Steps the service until it has news for the shard. Returns nullopt if no news arrives within half a second.
  std::optional<RouteNews> news(std::uint16_t shard = 0) {
    for (const Nanos end = monotonic_now() + 500_ms; monotonic_now() < end;) {
      service->step(now);
      if (const auto item = service->mailbox(shard).news.pop()) return item;
    }
    return std::nullopt;
  }
  /// Performs one more step. Returns the news from this step; nullopt if there is no news.
  std::optional<RouteNews> other_news() {
    service->step(now);
    return service->mailbox(0).news.pop();
  }
  /// Lets the service ask `peer`, lets the peer answer with `queue`, and returns the news for the shard.
  std::optional<RouteNews> resolve(Peer& peer, const RemoteQueue& queue) {
    service->step(now);
    const auto question = peer.receive();
    EXPECT_TRUE(question);
    if (question) peer.answer(own[0], *question, queue);
    return news();
  }

  FakeFabric fabric;
  FakeDevice device;
  std::vector<Address> own;
  std::unique_ptr<Service> service;
  Nanos now = 100_s;
  std::uint32_t generation = 0;
  std::uint32_t next_generation = 1;
};

class VerbsServiceTest : public testing::Test {
 protected:
  Harness host;
  Peer peer{0x7F000002};
};

TEST_F(VerbsServiceTest, a_route__is_told_of_once_its_peer_answers) {
  host.want(3, peer.address, 0x62);
  const RemoteQueue queue{.number = 9, .key = 8, .lid = 0, .longest = 4096};
  const auto item = host.resolve(peer, queue);
  ASSERT_TRUE(item);
  EXPECT_EQ(item->route, 3u);
  EXPECT_EQ(item->state, State::known);
  EXPECT_EQ(item->queue, queue);
  ASSERT_NE(item->handle, nullptr);
  EXPECT_EQ(reinterpret_cast<FakeHandle*>(item->handle)->config.traffic_class, 0x62);
  EXPECT_EQ(reinterpret_cast<FakeHandle*>(item->handle)->config.gid_index, 1);
  EXPECT_FALSE(host.other_news());
}

TEST_F(VerbsServiceTest, a_peer_that_answers_otherwise_each_time__has_one_handle) {
  host.want(0, peer.address);
  ASSERT_TRUE(host.resolve(peer, {.number = 9, .key = 8, .lid = 0, .longest = 1024}));
  for (std::uint16_t i = 1; i < 100; ++i) {
    host.now += 1_s;
    host.refresh(0);
    const auto item = host.resolve(peer, {.number = 9, .key = 8, .lid = i, .longest = 1024});
    ASSERT_TRUE(item) << i;
  }
  EXPECT_EQ(host.device.handles_made, 1u) << "local identifiers are InfiniBand's";
}

TEST_F(VerbsServiceTest, a_former_handle__stays_until_the_shard_has_the_new_one) {
  const RemoteQueue queue{.number = 9, .key = 8, .lid = 0, .longest = 1024};
  host.want(0, peer.address);
  const auto first = host.resolve(peer, queue);
  ASSERT_TRUE(first);
  host.device.gid_at = 2;
  host.service->look(host.now);
  const auto second = host.news();
  ASSERT_TRUE(second);
  EXPECT_NE(second->handle, first->handle);
  EXPECT_EQ(reinterpret_cast<FakeHandle*>(second->handle)->config.gid_index, 2);
  EXPECT_EQ(host.device.handles.size(), 2u);
  host.refresh(0, first->handle);  // the shard requests this refresh before it has read the news
  host.service->step(host.now);
  EXPECT_EQ(host.device.handles.size(), 2u);
  host.device.gid_at = 3;
  host.service->look(host.now);
  EXPECT_FALSE(host.other_news()) << "there is no third";
  host.refresh(0, second->handle);
  const auto third = host.news();
  ASSERT_TRUE(third);
  EXPECT_EQ(reinterpret_cast<FakeHandle*>(third->handle)->config.gid_index, 3);
  EXPECT_EQ(host.device.handles.size(), 2u) << "the second and the third";
}

TEST_F(VerbsServiceTest, a_neighbour_that_is_off__is_asked_before_another_handle_is_tried) {
  const RemoteQueue queue{.number = 9, .key = 8, .lid = 0, .longest = 1024};
  host.want(0, peer.address);
  ASSERT_TRUE(host.resolve(peer, queue));
  // The kernel needs a second or more for each handle that it cannot create. During that time, the service cannot
  // answer any peer.
  host.device.has_no_handles = true;
  const std::uint64_t before = host.device.handles_wanted;
  for (std::uint32_t route = 1; route < 30; ++route) host.want(route, peer.address, static_cast<std::uint8_t>(route));
  for (int i = 0; i < 29; ++i) {
    const auto item = host.news();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->state, State::unreachable);
  }
  EXPECT_EQ(host.device.handles_wanted, before + 1);
  host.now += 1_s;
  for (std::uint32_t route = 1; route < 30; ++route) host.want(route, peer.address, static_cast<std::uint8_t>(route));
  for (int i = 0; i < 40; ++i, host.now += 50_ms) host.service->step(host.now);
  EXPECT_EQ(host.device.handles_wanted, before + 1) << "it did not answer";
  while (peer.receive(0)) {
  }
  host.device.has_no_handles = false;
  while (host.service->mailbox(0).news.pop()) {
  }
  host.now += 1_s;
  host.want(1, peer.address, 1);
  const auto item = host.resolve(peer, queue);
  ASSERT_TRUE(item);
  EXPECT_EQ(item->state, State::known);
}

TEST_F(VerbsServiceTest, unread_news__is_not_piled_up) {
  std::vector<std::uint32_t> generations;
  for (std::uint32_t route = 0; route < 600; ++route) {
    host.want(route, peer.address, static_cast<std::uint8_t>(route));
    generations.push_back(host.generation);
    if (route % 200 == 199) host.service->step(host.now);
  }
  auto question = peer.receive();
  ASSERT_TRUE(question);
  for (std::uint32_t number = 1; number < 20; ++number) {
    peer.answer(host.own[0], *question, {.number = number, .key = 8, .lid = 0, .longest = 1024});
    for (int i = 0; i < 50; ++i) host.service->step(host.now);
    host.now += 1_s;
    host.generation = generations[5];
    host.refresh(5);
    host.service->step(host.now);
    question = peer.receive();
    ASSERT_TRUE(question) << number;
  }
  std::vector<std::uint32_t> last(600);
  std::size_t count = 0;
  while (const auto item = host.news()) {
    last[item->route] = item->queue.number;
    ++count;
  }
  EXPECT_EQ(last, std::vector<std::uint32_t>(600, 19)) << "what holds now";
  EXPECT_LE(count, 600u + 256) << "and little of what was between";
}

TEST(VerbsService, more_peers_than_the_table_holds__are_not_asked_in_a_circle) {
  Harness host(1, false, {.max_peers = 8});
  for (std::uint32_t route = 0; route < 100; ++route) host.want(route, Address::v4(0x7F010000 + route, 9));
  for (int i = 0; i < 50; ++i) host.service->step(host.now);
  EXPECT_EQ(host.service->counters().questions, 8u) << "to those that are left; the others made room before";
  EXPECT_EQ(host.service->counters().displaced, 92u);
  std::size_t unreachable = 0;
  while (const auto item = host.other_news()) unreachable += item->state == State::unreachable;
  EXPECT_EQ(unreachable, 92u);
}

TEST(VerbsService, a_flood_at_some_shards__leaves_the_others_their_answers) {
  Harness host(8);
  Datagram question{std::byte{'M'}, std::byte{'L'}, std::byte{'V'}, std::byte{'B'}, std::byte{1}, std::byte{1}};
  Peer flooder(0x7F000066);
  Peer honest(0x7F000002);
  for (std::size_t shard = 0; shard < 7; ++shard)
    for (int i = 0; i < 100; ++i) flooder.socket.send(host.own[shard], question);
  question[15] = std::byte{9};
  honest.socket.send(host.own[7], question);
  host.service->step(host.now);
  const auto answer = honest.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)[5], std::byte{2});
  EXPECT_EQ((*answer)[15], std::byte{9});
  EXPECT_EQ((*answer)[19], std::byte{77});
}

TEST_F(VerbsServiceTest, datagrams_of_any_length__are_answered_or_not_by_what_they_are) {
  Datagram question{std::byte{'M'}, std::byte{'L'}, std::byte{'V'}, std::byte{'B'}, std::byte{1}, std::byte{1}};
  for (const std::size_t bytes : {0UL, 1UL, 31UL, 33UL, 64UL, 1472UL, 9000UL, 65'507UL}) {
    std::vector<std::byte> datagram(question.begin(), question.end());
    datagram.resize(bytes);
    peer.socket.send(host.own[0], datagram);
    host.service->step(host.now);
    EXPECT_FALSE(peer.receive(0)) << bytes;
  }
  EXPECT_EQ(host.service->counters().malformed, 8u);
  peer.socket.send(host.own[0], question);
  host.service->step(host.now);
  EXPECT_TRUE(peer.receive());
}

}  // namespace
}  // namespace mltcp::rdma::service_test
