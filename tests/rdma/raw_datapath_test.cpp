// Tests the datapath for Ethernet frames between emulated devices: the frame format, resolution of peers, foreign and
// hostile frames, and whole exchanges between shards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../message_of.h"
#include "../random_bytes.h"
#include "fake_device.h"
#include "hosts.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/raw_io.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/shard.h"
#include "packet_texts.h"

namespace mltcp::rdma::raw_test {
namespace {

using namespace mltcp::literals;
using encap::MacAddress;
using encap::Reject;
using testing::HasSubstr;
using State = KernelRoutes::State;

using Host = RawHost;
constexpr std::uint16_t kPort = kRawPort;
TEST(RawDatapath, packets__wait_for_the_mac_address_and_arrive_in_order_with_ecn_and_priority) {
  for (const bool has_checksums : {false, true}) {
    RawNetwork network;
    network.segment.answers_late = true;
    Host a(network, "127.0.0.1", 1, {.has_checksums = has_checksums});
    Host b(network, "127.0.0.2", 2, {.has_checksums = !has_checksums});
    const std::string header = "header ";
    const std::string payload(901, 'p');
    const std::vector<TxPacket> packets = {
        {.destination = &b.address,
         .header = bytes_of(header),
         .payload = bytes_of(payload),
         .ecn = Ecn::ect0,
         .priority = 3},
        {.destination = &b.address, .header = bytes_of(header), .payload = {}, .ecn = Ecn::ect0, .priority = 3}};
    EXPECT_EQ(a.io().send(packets), 2u);
    EXPECT_EQ(a.io().counters().waited, 2u);
    EXPECT_EQ(a.io().counters().sent_packets, 0u);
    ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().sent_packets == 2; }));
    EXPECT_GE(network.segment.questions, 1u);
    const auto got = received(b.io(), 2);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].bytes, header + payload);
    EXPECT_EQ(got[1].bytes, header);
    EXPECT_EQ(got[0].ecn, Ecn::ect0);
    EXPECT_EQ(got[0].priority, 3);
    EXPECT_EQ(got[0].hops, 0);
    EXPECT_EQ(got[0].source, a.address);

    // The peer is known now, so packets leave at once. The device sends the short packet inline.
    network.fabric.marks = true;
    const auto inlined = a.pair().inlined;
    EXPECT_EQ(a.io().send(packets), 2u);
    EXPECT_EQ(a.io().counters().sent_packets, 4u);
    EXPECT_EQ(a.pair().inlined, inlined + 1);
    const auto more = received(b.io(), 2);
    ASSERT_EQ(more.size(), 2u);
    EXPECT_EQ(more[0].bytes, header + payload);
    EXPECT_EQ(more[0].ecn, Ecn::ce);
    EXPECT_EQ(more[1].bytes, header);
    EXPECT_EQ(a.io().limits().max_packet_bytes, 1472u);
    EXPECT_EQ(a.io().limits().overhead_bytes, 42u);
    EXPECT_THAT(a.datapath->description(),
                HasSubstr(fmt::format("verbs:fake0:1:raw: Ethernet frames on eth1, MTU 1500, checksums in {}, 1 queue "
                                      "pair, up to 128 bytes inline",
                                      has_checksums ? "the port" : "software")));
  }
}

class RawDatapathTest : public testing::Test {
 protected:
  RawNetwork network;
};

TEST_F(RawDatapathTest, a_rule__is_for_the_frames_of_one_udp_port_alone) {
  Host a(network, "127.0.0.1", 1, {.shards = 3});
  ASSERT_EQ(a.device->pairs.size(), 3u);
  for (std::uint16_t shard = 0; shard < 3; ++shard) {
    ASSERT_EQ(a.pair(shard).rules.size(), 1u);
    EXPECT_EQ(a.pair(shard).rules[0].destination,
              Address::parse("127.0.0.1", static_cast<std::uint16_t>(kPort + shard)));
    EXPECT_EQ(a.pair(shard).rules[0].destination_mac, mac_of(1));
  }
}

TEST_F(RawDatapathTest, frames_to_a_port_of_no_shard__are_the_kernels) {
  Host a(network, "127.0.0.1", 1, {.shards = 2});
  Host b(network, "127.0.0.2", 2, {.shards = 3});
  Address beyond = b.address;
  beyond.port += 3;
  ASSERT_TRUE(resolves(a, b.address));
  send_text(a.io(), beyond);
  EXPECT_EQ(network.fabric.frames_unmatched, 1u);
}

TEST_F(RawDatapathTest, packets_longer_than_the_mtu_or_of_another_ip_version__are_not_sent) {
  Host a(network, "127.0.0.1", 1);
  EXPECT_EQ(send_text(a.io(), Address::parse("10.0.0.9", 5000), std::string(1473, 'x')), 1u);
  EXPECT_EQ(a.io().counters().unsendable, 1u);
  EXPECT_EQ(send_text(a.io(), Address::parse("fd00::1", 5000)), 1u);
  EXPECT_EQ(a.io().counters().unsendable, 2u);
}

TEST_F(RawDatapathTest, ipv6__has_checksums_in_software) {
  Host a(network, "::1", 1, {.has_checksums = true});
  Host b(network, "::1", 1, {.has_checksums = true, .port = kPort + 10});
  ASSERT_TRUE(resolves(a, b.address));
  for (const std::size_t size : {1U, 500U, 1452U - 7}) {
    const std::string header = "header ";
    const std::string payload(size, 'v');
    const TxPacket packet{
        .destination = &b.address, .header = bytes_of(header), .payload = bytes_of(payload), .ecn = Ecn::ect1};
    ASSERT_EQ(a.io().send({&packet, 1}), 1u);
    const auto got = received(b.io(), 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].bytes, header + payload);
    EXPECT_EQ(got[0].ecn, Ecn::ect1);
    EXPECT_EQ(got[0].source, a.address);
  }
  EXPECT_EQ(a.io().limits().max_packet_bytes, 1452u);
}

TEST(RawDatapath, payloads_in_registered_memory__are_gathered_where_they_lie_and_held_until_then) {
  for (const bool has_checksums : {false, true}) {
    RawNetwork network;
    Host a(network, "127.0.0.1", 1, {.mtu = 9000, .has_checksums = has_checksums});
    Host b(network, "127.0.0.2", 2, {.mtu = 9000});
    ASSERT_TRUE(resolves(a, b.address));
    const Pages pages(16384);
    const RegisteredMemory registration(pages.span(), a.datapath->dma_devices());
    a.pair().withholds_completions = true;
    const std::string header = "odd";
    PayloadHold hold;
    const TxPacket packet{.destination = &b.address,
                          .header = bytes_of(header),
                          .payload = pages.span().subspan(100, 8001),
                          .hold = &hold};
    ASSERT_EQ(a.io().send({&packet, 1}), 1u);
    EXPECT_EQ(a.pair().from_elsewhere, 1u);
    EXPECT_EQ(hold.packets.load(), 1u);
    const auto got = received(b.io(), 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].bytes, "odd" + std::string(8001, 'm'));
    a.pair().complete_up_to(0);
    EXPECT_TRUE(runs_until(a.io(), [&] { return hold.packets.load() == 0; }));
    // The datapath copies a packet that waits for the resolution of its peer.
    const Address other = Address::parse("127.0.0.9", kPort);
    const TxPacket waiting{
        .destination = &other, .header = bytes_of(header), .payload = pages.span().first(8000), .hold = &hold};
    network.segment.set(other, {State::asked, {}});
    ASSERT_EQ(a.io().send({&waiting, 1}), 1u);
    EXPECT_EQ(hold.packets.load(), 0u);
  }
}

TEST_F(RawDatapathTest, packets_that_wait__are_bounded) {
  Host a(network, "127.0.0.1", 1);
  const Address unknown_peer = Address::parse("127.0.0.9", kPort);
  network.segment.set(unknown_peer, {State::asked, {}});
  const std::string text = "text";
  const std::vector<TxPacket> packets(RawIo::kBurst,
                                      {.destination = &unknown_peer, .header = bytes_of(text), .payload = {}});
  for (std::size_t sent = 0; sent < WorkQueues::kMaxWaiting + 100; sent += packets.size())
    EXPECT_EQ(a.io().send(packets), packets.size());
  EXPECT_EQ(a.io().counters().waited, 384u);
  EXPECT_EQ(a.io().counters().waiting_full, 384u - WorkQueues::kMaxWaiting);
  network.segment.set(unknown_peer, {});
  EXPECT_TRUE(runs_until(a.io(), [&] { return a.io().counters().unreachable == WorkQueues::kMaxWaiting; }));
}

TEST_F(RawDatapathTest, a_neighbour_with_another_mac_address__is_found) {
  Host a(network, "127.0.0.1", 1);
  const Address peer = Address::parse("127.0.0.2", kPort);
  network.segment.set(peer, {State::known, mac_of(77)});
  ASSERT_TRUE(resolves(a, peer));
  Host b(network, "127.0.0.2", 2);
  std::array<RxPacket, 8> packets;
  EXPECT_TRUE(runs_until(a.io(), [&] {
    send_text(a.io(), peer);
    return b.io().receive(packets) != 0;
  }));
  EXPECT_GT(network.fabric.frames_unmatched, 0u) << "some went to the former";
}

TEST_F(RawDatapathTest, many_destinations__are_bounded_and_wait_for_nothing) {
  Host a(network, "127.0.0.1", 1);
  Host b(network, "127.0.0.2", 2);
  ASSERT_TRUE(resolves(a, b.address));
  for (std::uint32_t i = 0; i < 2 * kRawRoutes; ++i) {
    const Address to = Address::v4(0x7F010000 + i, kPort);
    send_text(a.io(), to);
  }
  ASSERT_TRUE(resolves(a, b.address)) << "others are still found";
  ASSERT_TRUE(runs_until(a.io(), [&] {
    const RawIoCounters& counters = a.io().counters();
    return counters.unreachable + counters.waiting_full >= counters.waited;
  })) << "nothing waits for an answer that nobody was asked for";
}

// ---- Foreign and hostile frames ----

/// Returns a frame from 127.0.0.9:999 to `to`, with headers modified by `change`.
std::vector<std::byte> frame_to(const Host& to, const std::function<void(encap::Headers&)>& change = nullptr,
                                std::size_t bytes = 40) {
  encap::Headers headers;
  headers.source = Address::parse("127.0.0.9", 999);
  headers.source_mac = mac_of(9);
  headers.destination = to.address;
  headers.destination_mac = to.device->pairs[0]->rules[0].destination_mac;
  if (change) change(headers);
  std::vector<std::byte> frame(encap::header_bytes(headers.destination, headers.vlan) + bytes, std::byte{'f'});
  const std::size_t overhead = frame.size() - bytes;
  encap::write_headers(headers, bytes, encap::sum(frame.data() + overhead, bytes), frame.data());
  return frame;
}

/// Delivers `frame` to the host, as if a flow rule of the host's device had matched.
void put(RawNetwork& network, Host& to, const std::vector<std::byte>& frame) {
  const std::lock_guard lock(network.fabric.mutex);
  to.pair().deliver_frame(frame);
}

std::size_t taken(Host& host) {
  std::array<RxPacket, 64> packets;
  return host.io().receive(packets);
}

TEST(RawDatapath, foreign_frames__are_dropped_and_counted_by_what_is_wrong) {
  for (const bool has_checksums : {false, true}) {
    RawNetwork network;
    Host b(network, "127.0.0.2", 2, {.has_checksums = has_checksums});
    put(network, b, frame_to(b));
    EXPECT_EQ(taken(b), 1u);
    const auto expect = [&](const std::vector<std::byte>& frame, Reject reject) {
      const auto before = b.rejected(reject);
      put(network, b, frame);
      EXPECT_EQ(taken(b), 0u) << to_text(reject);
      EXPECT_EQ(b.rejected(reject), before + 1) << to_text(reject);
    };
    expect(frame_to(b, [](auto& h) { h.destination.port = kPort + 1; }), Reject::not_for_us);
    expect(frame_to(b, [](auto& h) { h.destination = Address::parse("127.0.0.3", kPort); }), Reject::not_for_us);
    expect(frame_to(b, [](auto& h) { h.destination_mac = mac_of(3); }), Reject::not_for_us);
    expect(frame_to(b, [](auto& h) { h.vlan = 5; }), Reject::not_for_us);
    expect(frame_to(b, [](auto& h) { h.source = Address::parse("224.0.0.1", 9); }), Reject::not_for_us);
    auto frame = frame_to(b);
    frame[encap::kEthernetBytes + 6] = std::byte{0x20};  // the "more fragments" flag is set
    fill_checksums(frame);
    expect(frame, Reject::fragment);
    frame = frame_to(b);
    frame[encap::kEthernetBytes + 7] = std::byte{1};  // the fragment offset is not 0
    fill_checksums(frame);
    expect(frame, Reject::fragment);
    frame = frame_to(b);
    frame.back() ^= std::byte{1};
    expect(frame, Reject::bad_udp_checksum);
    frame = frame_to(b);
    frame[encap::kEthernetBytes + 8] ^= std::byte{1};
    expect(frame, Reject::bad_ip_checksum);
    frame = frame_to(b);
    frame[12] = std::byte{0x86}, frame[13] = std::byte{0x07};
    expect(frame, Reject::not_ip);
    frame = frame_to(b);
    frame.resize(30);
    expect(frame, Reject::truncated);
    // Three frames are too long: the first by one byte, the second is a jumbo frame, and the third just fits the
    // buffer.
    expect(frame_to(b, nullptr, 1473), Reject::oversized);
    for (const std::size_t bytes : {8000U, RawIo::kLongestFrame - 42U}) put(network, b, frame_to(b, nullptr, bytes));
    EXPECT_EQ(taken(b), 0u);
    EXPECT_EQ(b.io().counters().over_long, 2u);
    EXPECT_EQ(b.datapath->losses().rejected, 14u);
    EXPECT_EQ(b.datapath->losses().errors, 0u) << "the queue pair is well";
    // A frame with an 802.1p priority tag whose VLAN identifier is 0.
    frame = frame_to(b, nullptr, 1472);
    const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0}, std::byte{0xE0}, std::byte{0}};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    put(network, b, frame);
    EXPECT_EQ(taken(b), 1u);
    put(network, b, frame_to(b, nullptr, 1472));
    put(network, b, frame_to(b, nullptr, 0));
    EXPECT_EQ(taken(b), 2u);
  }
}

TEST_F(RawDatapathTest, frames_of_any_bytes__leave_a_port_as_it_was) {
  Host b(network, "127.0.0.2", 2, {.config = {.device = {}, .queue_packets = 64}, .has_checksums = true});
  Random random(29);
  std::uint64_t passed = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::vector<std::byte> frame = frame_to(
        b, [&](auto& h) { h.vlan = random.below(8) == 0 ? 7 : 0; }, random.below(1500));
    switch (random.below(4)) {
      case 0:
        frame.resize(random.below(frame.size() + 1));
        break;
      case 1:
        std::generate(frame.begin() + 12, frame.end(), [&] { return static_cast<std::byte>(random.next()); });
        break;
      default:
        for (std::uint64_t changes = random.below(6); changes > 0; --changes)
          frame[random.below(std::min<std::size_t>(frame.size(), 60))] = static_cast<std::byte>(random.next());
    }
    if (frame.empty()) continue;
    put(network, b, frame);
    passed += taken(b);
  }
  EXPECT_GT(passed, 1000u) << "those without changes";
  EXPECT_GT(b.datapath->losses().rejected, 50'000u);
  EXPECT_EQ(b.datapath->losses().errors, 0u);
  put(network, b, frame_to(b));
  EXPECT_EQ(taken(b), 1u);
}

// ---- Exchanges of whole messages ----

/// Sends messages of random bytes in both directions on several connections at once. Expects every message to arrive
/// unchanged.
void exchange(RawNetwork& network, Host& a, Host& b, std::size_t bytes) {
  constexpr std::uint16_t kShards = 2;
  std::vector<std::unique_ptr<Shard>> left;
  std::vector<std::unique_ptr<Shard>> right;
  for (std::uint16_t i = 0; i < kShards; ++i) {
    left.push_back(std::make_unique<Shard>(a.io(i), ShardConfig{}));
    right.push_back(std::make_unique<Shard>(b.io(i), ShardConfig{}));
    right.back()->listen({});
  }
  struct Transfer {
    std::vector<std::byte> message;
    std::vector<std::byte> answer;
    std::vector<std::byte> got;
    std::vector<std::byte> got_answer;
    bool is_there = false;
    bool is_back = false;
  };
  std::array<Transfer, kShards> transfers;
  for (std::uint16_t i = 0; i < kShards; ++i) {
    Transfer& one = transfers[i];
    one.message = random_bytes(bytes + i);
    one.answer = random_bytes(bytes / 2 + i);
    one.got.resize(one.message.size());
    one.got_answer.resize(one.answer.size());
    Address to = b.address;
    to.port = static_cast<std::uint16_t>(to.port + i);
    const ConnectionId id = left[i]->connect(to, {}, a.datapath->time().now());
    ASSERT_EQ(left[i]->send(id, one.message, 1), PostResult::ok);
    ASSERT_EQ(left[i]->receive(id, one.got_answer, 2), PostResult::ok);
  }
  const Nanos end = monotonic_now() + 60_s;
  const auto is_done = [&] {
    return std::all_of(transfers.begin(), transfers.end(), [](const Transfer& t) { return t.is_there && t.is_back; });
  };
  while (!is_done() && monotonic_now() < end) {
    for (std::uint16_t i = 0; i < kShards; ++i) {
      Transfer& one = transfers[i];
      std::array<Completion, 16> done;
      left[i]->poll(a.datapath->time().now());
      for (std::size_t n = left[i]->take_completions(done), k = 0; k < n; ++k)
        if (done[k].kind == Completion::Kind::received) one.is_back = done[k].status == Status::ok;
      right[i]->poll(b.datapath->time().now());
      for (std::size_t n = right[i]->take_completions(done), k = 0; k < n; ++k) {
        if (done[k].kind == Completion::Kind::accepted) {
          ASSERT_EQ(right[i]->receive(done[k].connection, one.got, 1), PostResult::ok);
          ASSERT_EQ(right[i]->send(done[k].connection, one.answer, 2), PostResult::ok);
        }
        if (done[k].kind == Completion::Kind::received) one.is_there = done[k].status == Status::ok;
      }
    }
  }
  ASSERT_TRUE(is_done());
  for (const Transfer& one : transfers) {
    EXPECT_TRUE(one.got == one.message);
    EXPECT_TRUE(one.got_answer == one.answer);
  }
  EXPECT_GT(network.fabric.frames.load(), 2 * bytes / 1472);
}

TEST(RawDatapath, exchanges_between_shards__are_whole) {
  for (const bool has_checksums : {false, true}) {
    RawNetwork network;
    Host a(network, "127.0.0.1", 1, {.shards = 2, .has_checksums = has_checksums});
    Host b(network, "127.0.0.2", 2, {.shards = 2});
    exchange(network, a, b, 2'000'000);
  }
}

TEST_F(RawDatapathTest, exchanges_between_shards__are_whole_with_loss) {
  Host a(network, "127.0.0.1", 1, {.shards = 2, .has_checksums = true});
  Host b(network, "127.0.0.2", 2, {.shards = 2});
  network.fabric.loses_one_of = 30;
  exchange(network, a, b, 1'000'000);
}

// ---- Failures ----

TEST_F(RawDatapathTest, a_device_that_goes__wakes_who_sleeps_and_lets_go_of_all) {
  Host a(network, "127.0.0.1", 1);
  Host b(network, "127.0.0.2", 2);
  ASSERT_TRUE(resolves(a, b.address));
  const Pages pages(4096);
  const RegisteredMemory registration(pages.span(), a.datapath->dma_devices());
  a.pair().withholds_completions = true;
  PayloadHold hold;
  const TxPacket packet{.destination = &b.address, .header = {}, .payload = pages.span().first(1400), .hold = &hold};
  ASSERT_EQ(a.io().send({&packet, 1}), 1u);
  ASSERT_EQ(hold.packets.load(), 1u);
  a.io().arm();
  a.device->gone = true;
  a.device->tell();
  EXPECT_TRUE(wakes(a.io())) << "who sleeps is woken";
  EXPECT_EQ(taken(a), 0u);
  EXPECT_EQ(hold.packets.load(), 0u);
  EXPECT_EQ(a.io().send({&packet, 1}), 1u);
  EXPECT_EQ(a.datapath->losses().errors, 2u);
  EXPECT_FALSE(a.io().is_blocked());
}

TEST_F(RawDatapathTest, an_address_that_is_lost__is_told) {
  auto device = std::make_unique<FakeDevice>(network.fabric, "127.0.0.1");
  FakeDevice& fake = *device;
  fake.raw = {};
  fake.facts_.interfaces = {kInterface};
  auto kernel = std::make_unique<FakeNetwork>(network.segment, std::vector{interface_of("127.0.0.1", 1)});
  kernel->lost = "interface eth1 has lost the address 127.0.0.1; give it back";
  const auto datapath = make_raw_datapath({.device = "verbs:fake0:1:raw"}, std::move(device), std::move(kernel));
  datapath->take_place({.address = Address::parse("127.0.0.1", kPort)});
  fake.tell();
  for (const Nanos end = monotonic_now() + 5_s; datapath->why_link_is_down().empty() && monotonic_now() < end;)
    std::this_thread::yield();
  EXPECT_EQ(datapath->why_link_is_down(), "interface eth1 has lost the address 127.0.0.1; give it back");
}

struct Wrong {
  HostDatapathConfig config{};
  RawPackets raw{};
  std::string down{};
  int rule_error = 0;
  std::vector<KernelInterface> interfaces{interface_of("127.0.0.1", 1)};
};

std::string error_of(const std::string& ip, Wrong wrong) {
  RawNetwork network;
  wrong.config.device = "verbs:fake0:1:raw";
  auto device = std::make_unique<FakeDevice>(network.fabric, "127.0.0.1");
  device->raw = wrong.raw;
  device->down = wrong.down;
  device->rule_error = wrong.rule_error;
  device->facts_.interfaces = {kInterface, kInterface + 1};
  HostPlace place;
  place.address = Address::parse(ip, kPort);
  auto kernel = std::make_unique<FakeNetwork>(network.segment, wrong.interfaces);
  const std::string checked =
      wrong.rule_error != 0 ? ""
                            : message_of<std::exception>([&] { check_raw(wrong.config, place, *device, *kernel); });
  const std::string placed = message_of<std::exception>(
      [&] { make_raw_datapath(wrong.config, std::move(device), std::move(kernel))->take_place(place); });
  if (wrong.rule_error == 0 && wrong.config.queues == 1) {
    EXPECT_EQ(checked, placed);
  }
  return placed;
}

TEST(RawDatapath, what_is_wrong__is_told_in_a_line_with_its_cure) {
  const std::string port = "port \"verbs:fake0:1:raw\": ";
  EXPECT_EQ(error_of("127.0.0.1", {}), "no error");
  EXPECT_EQ(error_of("0.0.0.0", {}), "no error");
  EXPECT_EQ(error_of("127.0.0.9", {}), port +
                                           "none of its interface's addresses is 127.0.0.9, but eth1 127.0.0.1; give "
                                           "the host one that it has, or add it: ip addr add 127.0.0.9/24 dev eth1");
  EXPECT_EQ(error_of("::", {}), port +
                                    "its interface has no IPv6 address, but eth1 127.0.0.1; give it one: ip addr add "
                                    "fd00::1/64 dev eth1");
  EXPECT_THAT(error_of("127.0.0.1", {.interfaces = {}}),
              HasSubstr("the kernel has no Ethernet interface on that port"));
  KernelInterface vlan = interface_of("127.0.0.5", 5);
  vlan.is_vlan = true;
  EXPECT_EQ(error_of("127.0.0.5", {.interfaces = {vlan}}),
            port +
                "eth5 belongs to a VLAN, whose frames have a tag, but frames here have none; give the host an address "
                "of the port's own interface, or use af_xdp:, af_packet: or udp: of eth5");
  EXPECT_EQ(error_of("127.0.0.1", {.raw = {.why_not = "no raw-packet queue pairs (Operation not supported)"}}),
            port +
                "the device has no raw-packet queue pairs (Operation not supported); use the NIC under DPDK "
                "(pci:ADDRESS), or its interface (af_xdp:IFACE, udp:)");
  EXPECT_EQ(error_of("127.0.0.1",
                     {.raw = {.lacks_right = true,
                              .why_not = "no raw-packet queue pairs (they need root, or the capability CAP_NET_RAW)"}}),
            port +
                "the device has no raw-packet queue pairs (they need root, or the capability CAP_NET_RAW); run the "
                "program as root, or give it that (setcap cap_net_raw+ep PROGRAM)");
  EXPECT_THAT(error_of("127.0.0.1", {.config = {.device = {}, .mtu = 9000}}),
              HasSubstr("an MTU of 9000, but eth1 has 1500; set it: ip link set dev eth1 mtu 9000"));
  EXPECT_THAT(error_of("127.0.0.1", {.config = {.device = {}, .mtu = 100}}), HasSubstr("give 576 to 9000"));
  EXPECT_THAT(error_of("127.0.0.1", {.config = {.device = {}, .queues = 2}}), HasSubstr("leave their number out"));
  EXPECT_EQ(error_of("127.0.0.1", {.down = "verbs:fake0 is down; bring it up"}), "verbs:fake0 is down; bring it up");
  EXPECT_THAT(
      error_of("127.0.0.1", {.rule_error = ENOMEM}),
      HasSubstr("the device can't steer frames to 127.0.0.1:27810 into a queue pair (Cannot allocate memory); end "
                "other programs that steer"));
  EXPECT_THAT(error_of("127.0.0.1", {.rule_error = EPERM}), HasSubstr("run the program as root"));
  EXPECT_THAT(error_of("127.0.0.1", {.rule_error = EINVAL}), HasSubstr("(Invalid argument); use its interface"));
  const KernelSocket other(Address::parse("127.0.0.1", kPort), 0);
  EXPECT_THAT(error_of("127.0.0.1", {}), HasSubstr("another socket has this UDP port"));
}

}  // namespace
}  // namespace mltcp::rdma::raw_test
