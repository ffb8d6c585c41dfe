// Tests hosts at the two ends of a wire in this process: payloads that are sent without a copy, the release of these
// payloads, frames in several segments, and tagged frames. The test moves packets between the hosts, so nothing depends
// on time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <sys/mman.h>

#include <cstdlib>

#include "../message_of.h"
#include "mltcp/dpdk/frame_io.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/transport/registered_memory.h"
#include "mltcp/transport/shard.h"
#include "ring_fixture.h"

namespace mltcp::dpdk {
namespace {

using namespace mltcp::literals;
using testing::HasSubstr;
using Payloads = std::vector<ByteVector>;

Address host(std::uint8_t number) { return Address::v4(0x0A090000U + number, 62400); }

class Wire : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    eal_ = shared_eal(reason);
    if (eal_ == nullptr) GTEST_SKIP() << reason;
  }
  /// Opens two ports and a host on each port.
  void make(std::uint32_t zero_copy_from, std::uint32_t mtu = 1500, std::uint16_t vlan = 0) {
    PortConfig config{.device = "ring:left,to=right", .mtu = mtu, .vlan = vlan};
    left_port_ = std::make_unique<Port>(*eal_, config);
    config.device = "ring:right,to=left";
    right_port_ = std::make_unique<Port>(*eal_, config);
    left_ = std::make_unique<PortHost>(*eal_, *left_port_,
                                       PortHostConfig{.address = host(1), .zero_copy_from = zero_copy_from});
    right_ = std::make_unique<PortHost>(*eal_, *right_port_,
                                        PortHostConfig{.address = host(2), .zero_copy_from = zero_copy_from});
  }
  void resolve() {
    for (int i = 0; i < 10 && !left_->io().resolve(host(2)); ++i) {
      receive(*right_);
      receive(*left_);
    }
    ASSERT_TRUE(left_->io().resolve(host(2)));
    receive(*left_);
    receive(*right_);
    receive(*left_);
  }
  /// Returns the bytes of all packets that have arrived.
  static Payloads receive(PortHost& place) {
    Payloads got;
    std::array<RxPacket, 32> packets;
    while (const std::size_t count = place.io().receive(packets)) {
      for (std::size_t i = 0; i < count; ++i) {
        ByteVector& bytes = got.emplace_back(packets[i].bytes.begin(), packets[i].bytes.end());
        bytes.insert(bytes.end(), packets[i].tail.begin(), packets[i].tail.end());
      }
    }
    return got;
  }
  bool send(std::span<const std::byte> payload, PayloadHold* hold) {
    const Address to = host(2);
    const TxPacket packet{&to, header_, payload, Ecn::ect0, 0, hold};
    return left_->io().send({&packet, 1}) == 1;
  }
  ByteVector with_header(const ByteVector& payload) const {
    ByteVector all = header_;
    all.insert(all.end(), payload.begin(), payload.end());
    return all;
  }
  /// Puts a frame of several segments on the wire to the right host. `cuts` contains the offsets at which the frame is
  /// cut.
  void put(const ByteVector& frame, const std::vector<std::size_t>& cuts, std::uint64_t flags = 0) {
    rte_mbuf* first = nullptr;
    rte_mbuf* last = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const std::size_t end = i < cuts.size() ? cuts[i] : frame.size();
      rte_mbuf* const segment = rte_pktmbuf_alloc(left_port_->pool(0));
      ASSERT_NE(segment, nullptr);
      std::memcpy(rte_pktmbuf_mtod(segment, std::byte*), frame.data() + at, end - at);
      segment->data_len = static_cast<std::uint16_t>(end - at);
      at = end;
      (first == nullptr ? first : last->next) = segment;
      last = segment;
    }
    first->nb_segs = static_cast<std::uint16_t>(cuts.size() + 1);
    first->pkt_len = static_cast<std::uint32_t>(frame.size());
    first->ol_flags |= flags;
    ASSERT_EQ(rte_eth_tx_burst(left_port_->id(), 0, &first, 1), 1);
  }
  [[nodiscard]] ByteVector frame_to_right(const ByteVector& payload, std::uint16_t vlan = 0) const {
    encap::Headers headers;
    headers.source_mac = left_port_->mac();
    headers.destination_mac = right_port_->mac();
    headers.source = host(1);
    headers.destination = host(2);
    headers.vlan = vlan;
    ByteVector frame(encap::header_bytes(headers.destination, vlan));
    encap::write_headers(headers, payload.size(), encap::sum(payload.data(), payload.size()), frame.data());
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
  }
  [[nodiscard]] std::uint64_t refused(encap::Reject reason) const {
    return rejected(right_->io().counters().rejected, reason);
  }
  void TearDown() override {
    if (left_ != nullptr) {
      left_->io().release();
      right_->io().release();
    }
    left_.reset();
    right_.reset();
  }

  const Eal* eal_ = nullptr;
  std::unique_ptr<Port> left_port_;
  std::unique_ptr<Port> right_port_;
  std::unique_ptr<PortHost> left_;
  std::unique_ptr<PortHost> right_;
  ByteVector header_ = random_bytes(33, 99);
};

TEST_F(Wire, payload_with_a_hold__is_read_where_it_lies_and_given_back_with_the_buffer) {
  make(1024);
  resolve();
  EXPECT_EQ(left_->io().limits().keeps_payload_from, 1024U);
  ByteVector payload = random_bytes(1200, 1);
  PayloadHold hold;
  ASSERT_TRUE(send(payload, &hold));
  EXPECT_EQ(hold.packets, 1U);
  EXPECT_EQ(left_->io().counters().by_reference, 1U);
  std::array<RxPacket, 32> packets;
  ASSERT_EQ(right_->io().receive(packets), 1U);
  EXPECT_EQ(packets[0].tail.data(), payload.data()) << "a copy was made";
  EXPECT_EQ(packets[0].tail.size(), payload.size());
  EXPECT_EQ(ByteVector(packets[0].bytes.begin(), packets[0].bytes.end()), header_);
  EXPECT_EQ(hold.packets, 1U) << "the receiver reads it";
  EXPECT_EQ(right_->io().receive(packets), 0U);
  EXPECT_EQ(hold.packets, 0U);
  // The host copies a payload that is sent without a hold.
  ASSERT_TRUE(send(payload, nullptr));
  const ByteVector before = payload;
  payload.assign(payload.size(), std::byte{0});
  EXPECT_EQ(receive(*right_), Payloads{with_header(before)});
  EXPECT_EQ(left_->io().counters().by_reference, 1U);
}

TEST_F(Wire, payload__damaged_by_its_owner_is_refused_by_its_checksum) {
  make(1024);
  resolve();
  ByteVector payload = random_bytes(1201, 1);
  PayloadHold hold;
  ASSERT_TRUE(send(payload, &hold));
  payload[700] ^= std::byte{1};
  EXPECT_TRUE(receive(*right_).empty());
  EXPECT_EQ(refused(encap::Reject::bad_udp_checksum), 1U);
  EXPECT_EQ(hold.packets, 0U);
}

TEST_F(Wire, zero_copy__can_be_switched_off) {
  make(0);
  resolve();
  EXPECT_EQ(left_->io().limits().keeps_payload_from, 0U);
  const ByteVector payload = random_bytes(1200, 1);
  PayloadHold hold;
  ASSERT_TRUE(send(payload, &hold));
  EXPECT_EQ(hold.packets, 0U);
  EXPECT_EQ(receive(*right_), Payloads{with_header(payload)});
  EXPECT_EQ(left_->io().counters().by_reference, 0U);
  // A port without multi-segment frames copies all payloads.
  const Port port(*eal_, {.device = "ring:one", .offloads = {.multi_segments = false}});
  const PortHost place(*eal_, port, {.address = host(3)});
  EXPECT_EQ(place.io().limits().keeps_payload_from, 0U);
}

TEST_F(Wire, holds__are_given_back_by_packets_that_wait_for_a_neighbour) {
  make(1024);
  const ByteVector payload = random_bytes(1200, 1);
  PayloadHold hold;
  ASSERT_TRUE(send(payload, &hold));
  EXPECT_EQ(left_->io().counters().waited, 1U);
  EXPECT_EQ(hold.packets, 1U);
  left_->io().release();
  EXPECT_EQ(hold.packets, 0U);
  // A packet releases its hold even if it leaves only after the neighbour's answer.
  ASSERT_TRUE(send(payload, &hold));
  Payloads got;
  for (int i = 0; i < 10 && got.empty(); ++i) {
    receive(*left_);
    got = receive(*right_);
  }
  EXPECT_EQ(got, Payloads{with_header(payload)});
  EXPECT_EQ(hold.packets, 0U);
}

TEST_F(Wire, holds__are_given_back_when_the_port_is_full_and_when_it_goes) {
  make(1024);
  resolve();
  const ByteVector payload = random_bytes(1200, 1);
  PayloadHold hold;
  std::size_t taken = 0;
  // The wire holds 1023 packets. When the wire is full, the host stores at most one burst of packets.
  while (taken < 3000 && send(payload, &hold)) ++taken;
  EXPECT_GT(taken, 1000U);
  EXPECT_LT(taken, 1100U);
  EXPECT_EQ(hold.packets, taken);
  left_.reset();  // destroys the host with its unsent burst
  EXPECT_LT(hold.packets, taken);
  right_.reset();
  left_port_.reset();
  EXPECT_EQ(hold.packets, 0U) << "what lay on the wire of the port that has gone";
}

TEST_F(Wire, messages__arrive_without_copies_and_in_full) {
  for (const std::uint32_t zero_copy_from : {1024U, 0U}) {
    make(zero_copy_from, 9000);
    constexpr std::size_t kCount = 12;
    constexpr std::size_t kSize = 300'001;
    Payloads messages;
    Payloads buffers(kCount, ByteVector(kSize));
    Shard sender(left_->io(), {.seed = 1});
    Shard receiver(right_->io(), {.seed = 2});
    receiver.listen({});
    const ConnectionId connection = sender.connect(host(2), {}, eal_->clock().now());
    for (std::size_t i = 0; i < kCount; ++i) messages.push_back(random_bytes(kSize, i));
    const Payloads originals = messages;
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sender.send(connection, messages[i], i), PostResult::ok);
    std::size_t sent = 0;
    std::size_t received = 0;
    for (int round = 0; round < 2'000'000 && (sent < kCount || received < kCount); ++round) {
      std::array<Completion, 16> done;
      sender.poll(eal_->clock().now());
      for (std::size_t i = 0, n = sender.take_completions(done); i < n; ++i) {
        if (done[i].kind != Completion::Kind::sent) continue;
        ++sent;
        ByteVector().swap(messages[done[i].tag]);  // frees the message, so that ASan detects a late read
      }
      receiver.poll(eal_->clock().now());
      for (std::size_t i = 0, n = receiver.take_completions(done); i < n; ++i) {
        if (done[i].kind == Completion::Kind::received) ++received;
        if (done[i].kind != Completion::Kind::accepted) continue;
        for (std::size_t k = 0; k < kCount; ++k) receiver.receive(done[i].connection, buffers[k], k);
      }
    }
    EXPECT_EQ(sent, kCount);
    EXPECT_EQ(buffers, originals);
    const PortIoCounters& counters = left_->io().counters();
    EXPECT_EQ(counters.by_reference > kCount * kSize / 9000, zero_copy_from != 0) << counters.by_reference;
    TearDown();
    left_port_.reset();
    right_port_.reset();
  }
}

TEST_F(Wire, abort__gives_memory_back_when_nothing_reads_it_any_more) {
  make(1024);
  auto message = std::make_unique<ByteVector>(random_bytes(1 << 20, 3));
  Shard sender(left_->io(), {.seed = 1});
  Shard receiver(right_->io(), {.seed = 2});
  receiver.listen({});
  ByteVector buffer(message->size());
  const ConnectionId connection = sender.connect(host(2), {}, eal_->clock().now());
  ASSERT_EQ(sender.send(connection, *message, 0), PostResult::ok);
  std::array<Completion, 16> done;
  for (int i = 0; i < 100'000 && left_->io().counters().by_reference < 100; ++i) {
    sender.poll(eal_->clock().now());
    receiver.poll(eal_->clock().now());
    for (std::size_t k = 0, n = receiver.take_completions(done); k < n; ++k)
      if (done[k].kind == Completion::Kind::accepted) receiver.receive(done[k].connection, buffer, 0);
  }
  ASSERT_GE(left_->io().counters().by_reference, 100U);
  sender.poll(eal_->clock().now());
  sender.abort(connection, eal_->clock().now());
  const auto is_back = [&] {
    sender.poll(eal_->clock().now());
    bool back = false;
    for (std::size_t k = 0, n = sender.take_completions(done); k < n; ++k)
      back = back || done[k].kind == Completion::Kind::sent;
    return back;
  };
  if (is_back()) {
    message.reset();  // no packet was on the wire; ASan detects a late read of the message
  }
  for (int i = 0; i < 1000 && message != nullptr; ++i) {
    receiver.poll(eal_->clock().now());
    if (is_back()) message.reset();
  }
  EXPECT_EQ(message, nullptr) << "the message never completed";
  for (int i = 0; i < 100; ++i) receiver.poll(eal_->clock().now());
}

TEST_F(Wire, segments__are_joined_wherever_a_frame_is_cut) {
  make(1024);
  const ByteVector payload = random_bytes(1000, 5);
  const ByteVector frame = frame_to_right(payload);
  receive(*right_);
  std::uint64_t joined = 0;
  for (const auto& cuts : std::vector<std::vector<std::size_t>>{
           {100}, {1}, {13}, {42}, {41, 43}, {20, 60, 61, 500}, {frame.size() - 1}, {0}, {42, 42}}) {
    put(frame, cuts);
    EXPECT_EQ(receive(*right_), Payloads{payload}) << "cut after " << cuts[0];
    EXPECT_EQ(right_->io().counters().linearised, ++joined);
  }
  // The host detects damage in any segment.
  ByteVector bad = frame;
  bad[600] ^= std::byte{1};
  put(bad, {50, 500});
  EXPECT_TRUE(receive(*right_).empty());
  EXPECT_EQ(refused(encap::Reject::bad_udp_checksum), 1U);
  put(frame_to_right(random_bytes(1600, 1)), {500, 1000});
  EXPECT_TRUE(receive(*right_).empty());
  EXPECT_EQ(refused(encap::Reject::oversized), 1U);
  // Without the checksum offload, the host ignores flags that claim right checksums.
  put(bad, {50}, RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
  EXPECT_TRUE(receive(*right_).empty());
  EXPECT_EQ(refused(encap::Reject::bad_udp_checksum), 2U);
}

TEST_F(Wire, news_of_neighbours__take_a_buffer_each_however_many_shards_hear_them) {
  make(0);
  constexpr std::uint16_t kShards = 200;
  constexpr unsigned kNews = 32;
  right_ = nullptr;
  right_ = std::make_unique<PortHost>(*eal_, *right_port_, PortHostConfig{.address = host(2), .shards = kShards});
  receive(*right_);
  receive(*left_);
  receive(*right_);
  const Address sender = host(1);
  ByteVector news(60);  // an ARP announcement, whose sender and target are equal
  std::fill_n(news.begin(), 6, std::byte{0xFF});
  const std::array<std::uint8_t, 10> fixed{8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
  std::memcpy(&news[6], left_port_->mac().data(), 6);
  std::memcpy(&news[12], fixed.data(), fixed.size());
  std::memcpy(&news[22], left_port_->mac().data(), 6);
  std::memcpy(&news[28], &sender.ip[12], 4);
  std::memcpy(&news[38], &sender.ip[12], 4);
  const auto out = [&] {
    return rte_mempool_in_use_count(left_port_->pool(0)) + rte_mempool_in_use_count(right_port_->pool(0));
  };
  const unsigned before = out();
  const std::uint64_t handed_before = right_->io().counters().handed_over;
  for (unsigned i = 0; i < kNews; ++i) put(news, {});
  receive(*right_);
  EXPECT_EQ(right_->io().counters().handed_over - handed_before, std::uint64_t{kNews} * (kShards - 1));
  EXPECT_EQ(right_->io().counters().no_buffer, 0U);
  EXPECT_LE(out(), before + kNews);
  std::array<RxPacket, 32> packets;
  for (int round = 0; round < 3; ++round)
    for (std::uint16_t shard = 0; shard < kShards; ++shard) right_->io(shard).receive(packets);
  EXPECT_EQ(right_->io(kShards - 1).counters().taken_over, right_->io().counters().handed_over / (kShards - 1));
  for (std::uint16_t shard = 0; shard < kShards; ++shard) right_->io(shard).release();
  receive(*left_);
  EXPECT_EQ(out(), 0U);
}

TEST_F(Wire, tag__has_room_beside_the_longest_packet) {
  make(0, 1500, 42);
  const ByteVector full = random_bytes(1472, 5);
  put(frame_to_right(full, 42), {});
  EXPECT_EQ(receive(*right_), Payloads{full});
  put(frame_to_right(random_bytes(1473, 5), 42), {});
  put(frame_to_right(full, 43), {});
  put(frame_to_right(full), {});
  EXPECT_TRUE(receive(*right_).empty());
  EXPECT_EQ(refused(encap::Reject::oversized), 1U);
  EXPECT_EQ(refused(encap::Reject::not_for_us), 2U);
}

TEST_F(Wire, ring_host__has_room_for_a_tag_too) {
  const PacketPool pool("tagged", 255, 1600);
  const PacketRing there("tagt", 64);
  const PacketRing back("tagb", 64);
  RingIo one("tag1", host(1), 1500, back, there, pool);
  RingIo two("tag2", host(2), 1500, there, back, pool);
  const auto put_tagged = [&](std::size_t bytes, std::uint16_t vlan) {
    encap::Headers headers;
    headers.source = host(1);
    headers.destination = host(2);
    headers.source_mac = {2, 0, 10, 9, 0, 1};
    headers.destination_mac = {2, 0, 10, 9, 0, 2};
    headers.vlan = vlan;
    const ByteVector payload = random_bytes(bytes, 7);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool.get());
    auto* const frame = rte_pktmbuf_mtod(mbuf, std::byte*);
    const std::size_t before = encap::write_headers(headers, bytes, encap::sum(payload.data(), bytes), frame);
    std::memcpy(frame + before, payload.data(), bytes);
    mbuf->data_len = static_cast<std::uint16_t>(before + bytes);
    mbuf->pkt_len = mbuf->data_len;
    ASSERT_EQ(rte_eth_tx_burst(one.host_port.id(), 0, &mbuf, 1), 1);
  };
  std::array<RxPacket, 32> packets;
  put_tagged(1472, 9);
  ASSERT_EQ(two.receive(packets), 1U);
  EXPECT_EQ(packets[0].bytes.size(), 1472U);
  put_tagged(1473, 9);
  put_tagged(1473, 0);
  EXPECT_EQ(two.receive(packets), 0U);
  EXPECT_EQ(rejected(two.counters().rejected, encap::Reject::oversized), 2U);
}

/// Memory pages that the test allocates.
struct Pages {
  explicit Pages(std::size_t size)
      : bytes{static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
              size} {}
  ~Pages() { munmap(bytes.data(), bytes.size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> bytes;
};

TEST_F(Wire, registered_memory__is_whole_pages_once) {
  make(1024);
  const Pages pages(1 << 16);
  const std::array<DmaDevice*, 2> ports{&left_port_->dma(), &right_port_->dma()};
  const auto error_of = [&](std::span<std::byte> bytes) {
    return message_of<InputError>([&] { const RegisteredMemory memory(bytes, ports); });
  };
  EXPECT_THAT(error_of(pages.bytes.subspan(1, 4096)), HasSubstr("whole pages of 4096 bytes; get such memory with"));
  EXPECT_THAT(error_of(pages.bytes.first(100)), HasSubstr("whole pages"));
  EXPECT_THAT(error_of({}), HasSubstr("whole pages"));
  for (int again = 0; again < 100; ++again) {  // the registration ends when `memory` is destroyed
    const RegisteredMemory memory(pages.bytes.first(8192), ports);
    EXPECT_THAT(error_of(pages.bytes.subspan(4096, 8192)), HasSubstr("are registered already"));
  }
  // No port here uses DMA. Memory therefore needs no registration, and `ranges` stays empty.
  EXPECT_FALSE(left_port_->reads_by_dma());
  RegisteredRanges ranges(left_port_->dma());
  EXPECT_FALSE(ranges.find(pages.bytes.first(10)));
}

TEST_F(Wire, dma__reads_only_registered_memory_and_the_rest_is_copied) {
  // The name of the port is the DPDK name of a driver. The device behind this driver is unknown, so the port counts as
  // a port with DMA.
  const Port port(*eal_, {.device = "net_null7"});
  EXPECT_TRUE(port.reads_by_dma());
  EXPECT_FALSE(port.sends_by_reference());
  const PortHost place(*eal_, port, {.address = host(1)});
  EXPECT_EQ(place.io().limits().keeps_payload_from, 0U);
  const Pages pages(8192);
  const std::array<DmaDevice*, 1> ports{&port.dma()};
  RegisteredRanges ranges(port.dma());
  const PacketPool pool("dma", 255, 2000);
  FrameWriter writer({.pool = pool.get(), .frame = {.source = host(1)}, .by_reference = true, .registered = &ranges});
  const Address to = host(2);
  const auto is_referred_to = [&](std::span<const std::byte> payload) {
    PayloadHold hold;
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool.get());
    const bool referred = writer.write({&to, header_, payload, Ecn::ect0, 0, &hold}, {}, mbuf);
    EXPECT_EQ(mbuf->nb_segs, referred ? 2U : 1U);
    EXPECT_EQ(hold.packets, referred ? 1U : 0U);
    if (referred) {
      EXPECT_EQ(rte_pktmbuf_iova(mbuf->next), reinterpret_cast<std::uintptr_t>(payload.data()));
    } else {
      EXPECT_EQ(std::memcmp(rte_pktmbuf_mtod_offset(mbuf, const std::byte*, 42 + 33), payload.data(), payload.size()),
                0);
    }
    rte_pktmbuf_free(mbuf);
    EXPECT_EQ(hold.packets, 0U);
    return referred;
  };
  EXPECT_FALSE(is_referred_to(pages.bytes.first(1000)));
  for (int again = 0; again < 3; ++again) {
    const RegisteredMemory memory(pages.bytes.first(4096), ports);
    EXPECT_TRUE(is_referred_to(pages.bytes.first(1000)));
    EXPECT_TRUE(is_referred_to(pages.bytes.subspan(3096, 1000)));
    EXPECT_FALSE(is_referred_to(pages.bytes.subspan(3097, 1000))) << "its end is beyond";
    EXPECT_FALSE(is_referred_to(random_bytes(1000, 1)));
  }
  EXPECT_FALSE(is_referred_to(pages.bytes.first(1000))) << "not any more";
  EXPECT_EQ(pool.in_use(), 0U);

  // The pages are already registered with DPDK, so registering them again fails.
  ASSERT_EQ(rte_extmem_register(pages.bytes.data(), pages.bytes.size(), nullptr, 0, 4096), 0);
  for (int again = 0; again < 3; ++again) {
    const std::string error = message_of<RunError>([&] { const RegisteredMemory memory(pages.bytes, ports); });
    EXPECT_THAT(error, HasSubstr("port net_null7 can't read the program's own memory: DPDK can't register it"));
    EXPECT_THAT(error, HasSubstr("send without registering it (the data is then copied)"));
  }
  EXPECT_EQ(rte_extmem_unregister(pages.bytes.data(), pages.bytes.size()), 0);
}

}  // namespace
}  // namespace mltcp::dpdk
