// Tests the UD datapath between emulated devices: how packets arrive, how peers are found, and what happens to packets
// after errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../message_of.h"
#include "fake_device.h"
#include "hosts.h"
#include "mltcp/base/error.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/transport/host_datapath.h"
#include "packet_texts.h"

namespace mltcp::rdma {
namespace {

using namespace mltcp::literals;
using testing::HasSubstr;

using Host = VerbsHost;
constexpr std::uint16_t kPort = kVerbsPort;

class VerbsDatapathTest : public testing::Test {
 protected:
  FakeFabric fabric;
};

/// Two hosts, `a` and `b`. Host `a` already knows the queue pair of `b`.
class VerbsPair : public VerbsDatapathTest {
 protected:
  explicit VerbsPair(std::uint32_t longest = 1024)
      : a(fabric, "127.0.0.1", {}, 1, longest), b(fabric, "127.0.0.2", {}, 1, longest) {
    EXPECT_TRUE(resolves(a, b.address));
  }
  Host a;
  Host b;
};

/// Two hosts, and registered memory from which the device of `a` reads payloads.
class VerbsMemory : public VerbsPair {
 protected:
  VerbsMemory() : VerbsPair(4096) {}
  const Pages pages{4096};
  const RegisteredMemory registration{pages.span(), a.datapath->dma_devices()};
  PayloadHold hold;
};

TEST_F(VerbsDatapathTest, packets__wait_for_their_peers_queue_pair_and_arrive_in_order_with_ecn_and_priority) {
  Host a(fabric, "127.0.0.1");
  Host b(fabric, "127.0.0.2");
  const std::string header = "header ";
  const std::string payload(900, 'p');
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
  const auto got = received(b.io(), 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].bytes, header + payload);
  EXPECT_EQ(got[1].bytes, header);
  EXPECT_EQ(got[0].ecn, Ecn::ect0);
  EXPECT_EQ(got[0].priority, 3);
  EXPECT_EQ(got[0].source, a.address);

  // The peer is known now, so packets leave at once. The device sends the short packet inline.
  EXPECT_EQ(a.io().send(packets), 2u);
  EXPECT_EQ(a.io().counters().sent_packets, 4u);
  EXPECT_EQ(a.io().counters().inlined, 1u);
  const auto more = received(b.io(), 2);
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[0].bytes, header + payload);
  EXPECT_EQ(more[1].bytes, header);
  EXPECT_EQ(a.io().limits().max_packet_bytes, 1020u);
  EXPECT_TRUE(a.io().limits().ecn);
}

TEST_F(VerbsDatapathTest, congestion_marks__are_read_from_the_header_that_arrived) {
  fabric.marks = true;
  Host a(fabric, "127.0.0.1");
  Host b(fabric, "127.0.0.2");
  const std::string text = "text";
  ASSERT_TRUE(resolves(a, b.address));
  for (const Ecn ecn : {Ecn::ect0, Ecn::ect1, Ecn::not_ect}) {
    const TxPacket packet{.destination = &b.address, .header = bytes_of(text), .payload = {}, .ecn = ecn};
    a.io().send({&packet, 1});
    ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().sent_packets >= 1; }));
  }
  ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().sent_packets == 3; }));
  std::multiset<Ecn> marks;
  for (const Text& one : received(b.io(), 3)) marks.insert(one.ecn);
  EXPECT_EQ(marks, (std::multiset<Ecn>{Ecn::not_ect, Ecn::ce, Ecn::ce}));
}

TEST_F(VerbsDatapathTest, receive_buffers__are_posted_again_for_ever) {
  Host a(fabric, "127.0.0.1");
  Host b(fabric, "127.0.0.2", {.device = {}, .queue_packets = 64});
  ASSERT_TRUE(resolves(a, b.address));
  for (int i = 0; i < 1000; ++i) {
    const std::string text = fmt::format("number {} of {}", i, std::string(300, 'x'));
    const TxPacket packet{.destination = &b.address, .header = bytes_of(text), .payload = {}};
    ASSERT_EQ(a.io().send({&packet, 1}), 1u);
    const auto got = received(b.io(), 1);
    ASSERT_EQ(got.size(), 1u) << i;
    ASSERT_EQ(got[0].bytes, text);
  }
}

TEST_F(VerbsDatapathTest, payloads_in_registered_memory__are_gathered_where_they_lie_and_held_until_then) {
  Host a(fabric, "127.0.0.1", {}, 1, 4096);
  Host b(fabric, "127.0.0.2", {}, 1, 4096);
  ASSERT_TRUE(resolves(a, b.address));
  ASSERT_EQ(a.datapath->dma_devices().size(), 1u);
  const Pages pages(8192);
  const RegisteredMemory registration(pages.span(), a.datapath->dma_devices());
  a.pair().withholds_completions = true;
  const std::string header = "h";
  PayloadHold hold;
  const TxPacket packet{
      .destination = &b.address, .header = bytes_of(header), .payload = pages.span().subspan(100, 4000), .hold = &hold};
  ASSERT_EQ(a.io().send({&packet, 1}), 1u);
  EXPECT_EQ(a.pair().from_elsewhere, 1u);
  EXPECT_EQ(a.io().counters().by_reference, 1u);
  EXPECT_EQ(hold.packets.load(), 1u);
  const auto got = received(b.io(), 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, "h" + std::string(4000, 'm'));
  a.pair().complete_up_to(0);
  std::array<RxPacket, 8> none;
  a.io().receive(none);
  EXPECT_EQ(hold.packets.load(), 0u);

  // The datapath copies a payload that is not registered or has no hold.
  const std::vector<std::byte> elsewhere(4000);
  const TxPacket copied{.destination = &b.address, .header = bytes_of(header), .payload = elsewhere, .hold = &hold};
  ASSERT_EQ(a.io().send({&copied, 1}), 1u);
  EXPECT_EQ(hold.packets.load(), 0u);
  EXPECT_EQ(a.io().counters().by_reference, 1u);
}

TEST_F(VerbsDatapathTest, a_hold__ends_with_the_datapath) {
  PayloadHold hold;
  const Pages pages(4096);
  Host b(fabric, "127.0.0.2", {}, 1, 4096);
  auto a = std::make_unique<Host>(fabric, "127.0.0.1", HostDatapathConfig{}, std::uint16_t{1}, 4096U);
  ASSERT_TRUE(resolves(*a, b.address));
  {
    const RegisteredMemory registration(pages.span(), a->datapath->dma_devices());
    a->pair().withholds_completions = true;
    const TxPacket packet{.destination = &b.address, .header = {}, .payload = pages.span().first(2000), .hold = &hold};
    ASSERT_EQ(a->io().send({&packet, 1}), 1u);
    ASSERT_EQ(hold.packets.load(), 1u);
  }
  a.reset();
  EXPECT_EQ(hold.packets.load(), 0u);
}

TEST_F(VerbsDatapathTest, packets_that_wait__are_bounded) {
  Host a(fabric, "127.0.0.1");
  const Address unknown_peer = Address::parse(fmt::format("127.0.0.9:{}", kPort));
  const std::string text = "text";
  const std::vector<TxPacket> packets(VerbsIo::kBurst,
                                      {.destination = &unknown_peer, .header = bytes_of(text), .payload = {}});
  for (std::size_t sent = 0; sent < VerbsIo::kMaxWaiting + 100; sent += packets.size())
    EXPECT_EQ(a.io().send(packets), packets.size());
  EXPECT_EQ(a.io().counters().waited, 384u);
  EXPECT_EQ(a.io().counters().waiting_full, 384u - VerbsIo::kMaxWaiting);
  // If the waiting list is full, a packet to another host replaces the oldest packet.
  Host b(fabric, "127.0.0.2");
  const TxPacket packet{.destination = &b.address, .header = bytes_of(text), .payload = {}};
  EXPECT_EQ(a.io().send({&packet, 1}), 1u);
  EXPECT_TRUE(runs_until(a.io(), [&] { return a.io().counters().sent_packets == 1; }));
  EXPECT_EQ(received(b.io(), 1).size(), 1u);
  EXPECT_TRUE(runs_until(a.io(), [&] { return a.io().counters().unreachable == VerbsIo::kMaxWaiting - 1; }));
}

TEST_F(VerbsDatapathTest, a_peer_that_starts_again__is_found_by_its_new_queue_pair) {
  Host a(fabric, "127.0.0.1");
  auto b = std::make_unique<Host>(fabric, "127.0.0.2");
  const Address address = b->address;
  ASSERT_TRUE(resolves(a, address));
  b.reset();
  b = std::make_unique<Host>(fabric, "127.0.0.2");
  std::array<RxPacket, 8> packets;
  std::size_t arrived = 0;
  for (const Nanos end = monotonic_now() + 5_s; monotonic_now() < end && arrived == 0;) {
    send_text(a.io(), address);
    a.io().receive(packets);
    arrived = b->io().receive(packets);
    std::this_thread::yield();
  }
  EXPECT_GT(arrived, 0u);
}

TEST_F(VerbsPair, foreign_messages__are_dropped_and_counted) {
  const auto send = [&] { ASSERT_EQ(send_text(a.io(), b.address), 1u); };

  fabric.leaves_out_route = true;
  send();
  fabric.leaves_out_route = false;
  fabric.spoils_checksum = true;
  send();
  fabric.spoils_checksum = false;
  // Both datagrams are for the right queue pair, but name a wrong destination port. The first datagram also has a wrong
  // key.
  const Shim shim = make_shim(kPort, kPort + 1);
  ibv_ah* const handle = a.device->make_handle({.destination = b.address});
  RemoteQueue target = b.io().own_queue();
  for (const std::uint32_t wrong : {1U, 0U}) {
    target.key = b.io().own_queue().key ^ wrong;
    post_datagram(a.pair().queue, shim, 0, handle, target, IBV_SEND_INLINE);
  }
  send();
  EXPECT_EQ(received(b.io(), 1).size(), 1u);
  EXPECT_EQ(b.io().counters().no_header, 1u);
  EXPECT_EQ(b.io().counters().bad_header, 1u);
  EXPECT_EQ(b.io().counters().not_for_us, 1u);
  EXPECT_EQ(b.datapath->losses().rejected, 4u);
  a.device->free_handle(handle);
}

TEST_F(VerbsDatapathTest, a_peer_with_a_shorter_mtu__is_told_of) {
  Host a(fabric, "127.0.0.1", {}, 1, 2048);
  Host b(fabric, "127.0.0.2", {}, 1, 1024);
  ASSERT_TRUE(resolves(a, b.address));
  EXPECT_EQ(send_text(a.io(), b.address, std::string(1500, 'x')), 1u);
  EXPECT_EQ(a.io().counters().too_long, 1u);
  EXPECT_EQ(a.datapath->why_link_is_down(), "");
  EXPECT_EQ(a.datapath->why_silent(Address::parse("127.0.0.3", 27610)), "");
  EXPECT_THAT(a.datapath->why_silent(b.address),
              HasSubstr("messages of 2048 bytes are too long for 127.0.0.2:27610; give all hosts the same MTU"));
  // The report ends if the host sends no further packets that are too long.
  EXPECT_TRUE(runs_until(
      a.io(), [&] { return a.datapath->why_silent(b.address).empty(); }, 20_s));
}

TEST_F(VerbsDatapathTest, a_message_longer_than_any_buffer__is_dropped_and_breaks_nothing) {
  Host b(fabric, "127.0.0.2", {}, 1, 1024);
  FakeDevice unknown_peer(fabric, "127.0.0.9", 4096);
  std::vector<std::byte> memory(4096, std::byte{'x'});
  const auto pair = unknown_peer.make_queue_pair({.memory = memory});
  const auto handle = std::unique_ptr<ibv_ah, std::function<void(ibv_ah*)>>(
      unknown_peer.make_handle({.destination = b.address}), [&](ibv_ah* one) { unknown_peer.free_handle(one); });
  const Shim shim = make_shim(9, kPort);
  std::copy(shim.begin(), shim.end(), memory.begin());
  for (const std::uint32_t bytes : {1025U, 4096U, 1024U})
    post_datagram(pair->queue, std::span(memory).first(bytes), pair->memory_key, handle.get(), b.io().own_queue());
  const auto got = received(b.io(), 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, std::string(1020, 'x'));
  EXPECT_EQ(b.io().counters().over_long, 2u);
  EXPECT_EQ(b.io().counters().receive_errors, 0u);
  EXPECT_EQ(b.datapath->losses().rejected, 2u);
}

TEST_F(VerbsPair, a_queue_pair_that_fails__is_made_ready_without_a_send) {
  std::array<RxPacket, 8> packets;
  EXPECT_TRUE(b.io().deadline().is_never());
  for (int round = 0; round < 2; ++round) {
    b.pair().break_down();
    for (int i = 0; i < 2; ++i) b.io().receive(packets);
  }
  EXPECT_EQ(b.io().counters().recoveries, 1u) << "the second time comes too soon";
  // A sleeping thread must wake in time for the next recovery.
  EXPECT_LE(b.io().deadline(), monotonic_now() + VerbsIo::kRecoverAfter);
  ASSERT_TRUE(runs_until(b.io(), [&] { return b.io().counters().recoveries == 2; }));
  EXPECT_TRUE(b.io().deadline().is_never());
  b.pair().refuses_recoveries = 2;
  b.pair().break_down();
  ASSERT_TRUE(runs_until(b.io(), [&] { return b.io().counters().recoveries == 3; })) << "after two in vain";

  // There is no completion: only the device's event reports the failure.
  b.pair().break_down_silently();
  b.io().arm();
  b.pair().has_failed = true;
  b.device->tell();
  EXPECT_TRUE(wakes(b.io())) << "who sleeps is woken";
  ASSERT_TRUE(runs_until(b.io(), [&] { return b.io().counters().recoveries == 4; }));
  ASSERT_EQ(send_text(a.io(), b.address), 1u);
  EXPECT_EQ(received(b.io(), 1).size(), 1u);
}

TEST_F(VerbsMemory, a_device_that_goes__lets_go_of_payloads_and_of_what_waits) {
  a.pair().withholds_completions = true;
  const TxPacket packet{.destination = &b.address, .header = {}, .payload = pages.span().first(2000), .hold = &hold};
  ASSERT_EQ(a.io().send({&packet, 1}), 1u);
  const Address unknown_peer = Address::parse(fmt::format("127.0.0.9:{}", kPort));
  const std::string text = "text";
  const TxPacket waiting{.destination = &unknown_peer, .header = bytes_of(text), .payload = {}};
  ASSERT_EQ(a.io().send({&waiting, 1}), 1u);
  ASSERT_EQ(hold.packets.load(), 1u);
  a.io().arm();
  a.device->gone = true;
  a.device->tell();
  EXPECT_TRUE(wakes(a.io())) << "who sleeps is woken";
  std::array<RxPacket, 8> none;
  EXPECT_EQ(a.io().receive(none), 0u);
  EXPECT_TRUE(a.pair().is_stopped) << "before anybody writes where it reads";
  EXPECT_EQ(hold.packets.load(), 0u);
  EXPECT_EQ(a.datapath->losses().errors, 2u);
  EXPECT_FALSE(a.io().is_blocked());
  EXPECT_TRUE(a.io().deadline().is_never());
  EXPECT_EQ(a.io().send({&packet, 1}), 1u);
  EXPECT_EQ(hold.packets.load(), 0u);
}

TEST_F(VerbsMemory, a_list_refused_in_its_middle__lets_go_of_the_payloads_before) {
  const std::vector<TxPacket> packets(
      10, {.destination = &b.address, .header = {}, .payload = pages.span().first(2000), .hold = &hold});
  a.pair().refuses_after = 6;
  EXPECT_EQ(a.io().send(packets), packets.size());
  a.pair().refuses_after = -1;
  EXPECT_EQ(hold.packets.load(), 6u);
  // None of the six accepted packets gets a completion, because only the last packet of a list requests one.
  ASSERT_TRUE(runs_until(a.io(), [&] { return hold.packets.load() == 0; }));
  EXPECT_EQ(a.io().counters().recoveries, 1u);
  EXPECT_EQ(a.io().send(packets), packets.size());
  ASSERT_TRUE(runs_until(a.io(), [&] { return hold.packets.load() == 0; }));
  EXPECT_EQ(received(b.io(), 16).size(), 16u);
  // The device does not report which packets it has accepted.
  a.pair().refuses_silently = true;
  a.pair().refuses_after = 0;
  EXPECT_EQ(a.io().send(packets), packets.size());
  a.pair().refuses_after = -1;
  EXPECT_EQ(hold.packets.load(), 10u);
  ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().recoveries == 2; }));
  EXPECT_EQ(hold.packets.load(), 0u);
}

TEST_F(VerbsMemory, a_list_refused_without_saying_where__is_left_as_it_is_until_the_reset) {
  const std::string first(500, '1');
  const std::string second(500, '2');
  const auto list = [&](const std::string& text, PayloadHold* of) {
    std::vector<TxPacket> packets(8, {.destination = &b.address, .header = bytes_of(text), .payload = {}});
    if (of != nullptr) packets[0].payload = pages.span().first(2000), packets[0].hold = of;
    return packets;
  };
  // The device accepts half of the list, but reads this half only after the host has built the next list.
  a.pair().takes_late = true;
  a.pair().refuses_silently = true;
  a.pair().refuses_after = 4;
  EXPECT_EQ(a.io().send(list(first, &hold)), 8u);
  EXPECT_EQ(hold.packets.load(), 1u);
  a.pair().refuses_after = -1;
  EXPECT_EQ(a.io().send(list(second, nullptr)), 8u);
  EXPECT_EQ(hold.packets.load(), 1u) << "the device may still read the payload";
  EXPECT_EQ(a.io().counters().send_errors, 0u);
  a.pair().refuses_recoveries = 1;
  std::array<RxPacket, 8> none;
  a.io().receive(none);
  EXPECT_EQ(hold.packets.load(), 1u) << "it has not been reset";
  ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().recoveries == 1; }));
  EXPECT_EQ(hold.packets.load(), 0u);
  EXPECT_EQ(a.io().counters().send_errors, 16u) << "none of them was completed";
  EXPECT_EQ(a.io().counters().sent_packets, 0u);
  const auto got = received(b.io(), 12);
  ASSERT_EQ(got.size(), 12u);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].bytes, (i < 4 ? first : second) + std::string(i == 0 ? 2000 : 0, 'm')) << i;
  a.pair().takes_late = false;
  EXPECT_EQ(a.io().send(list(second, &hold)), 8u);
  ASSERT_TRUE(runs_until(a.io(), [&] { return hold.packets.load() == 0; }));
  EXPECT_EQ(a.io().counters().send_errors, 16u);
}

TEST_F(VerbsPair, an_address_that_comes_back_elsewhere_in_the_table__has_its_routes_follow) {
  for (int move = 2; move < 6; ++move) {
    a.device->gid_at = static_cast<std::uint8_t>(move);
    a.device->tell();
    // While packets use the route, the host refreshes the route each second and frees the previous address handle.
    const auto has_moved = [&] {
      send_text(a.io(), b.address, std::string(500, 'x'));
      const std::lock_guard lock(fabric.mutex);
      return a.device->handles.size() == 1 && (*a.device->handles.begin())->config.gid_index == move;
    };
    ASSERT_TRUE(runs_until(a.io(), has_moved)) << move;
  }
  EXPECT_LE(a.device->max_handles, 2u);
}

TEST_F(VerbsDatapathTest, shards__may_take_different_paths) {
  Host a(fabric, "127.0.0.1", {}, 2);
  Host b(fabric, "127.0.0.2");
  for (std::uint16_t shard = 0; shard < 2; ++shard)
    ASSERT_TRUE(runs_until(a.io(shard), [&] { return a.io(shard).resolve(b.address); }));
  std::set<std::uint32_t> labels;
  for (const FakeHandle* const handle : a.device->handles) labels.insert(handle->config.flow_label);
  EXPECT_EQ(labels.size(), 2u);
  EXPECT_GT(*labels.begin(), 0u);
  EXPECT_LT(*labels.rbegin(), 1u << 20);
}

TEST_F(VerbsPair, a_device_that_goes__drops_packets_and_blocks_no_caller) {
  a.device->gone = true;
  a.device->down = "verbs:fake0:1: the device is gone";
  const std::string text(500, 'x');
  const std::vector<TxPacket> packets(VerbsIo::kBurst,
                                      {.destination = &b.address, .header = bytes_of(text), .payload = {}});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.io().send(packets), packets.size());
  EXPECT_EQ(a.datapath->losses().errors, 100u * VerbsIo::kBurst);
  EXPECT_THAT(a.datapath->why_link_is_down(), HasSubstr("the device is gone"));
}

TEST_F(VerbsDatapathTest, a_device_that_refuses_requests__loses_them_and_their_holds) {
  Host a(fabric, "127.0.0.1", {.device = {}, .queue_packets = 64});
  Host b(fabric, "127.0.0.2");
  ASSERT_TRUE(resolves(a, b.address));
  const std::string text(500, 'x');
  const std::vector<TxPacket> packets(VerbsIo::kBurst,
                                      {.destination = &b.address, .header = bytes_of(text), .payload = {}});
  for (const int taken : {0, 10, 63}) {
    a.pair().refuses_after = taken;
    EXPECT_EQ(a.io().send(packets), packets.size());
    EXPECT_EQ(received(b.io(), static_cast<std::size_t>(taken)).size(), static_cast<std::size_t>(taken));
  }
  a.pair().refuses_after = -1;
  EXPECT_EQ(a.io().counters().send_errors, 3 * packets.size() - 73);
  EXPECT_EQ(a.io().send(packets), packets.size());
  EXPECT_EQ(received(b.io(), packets.size()).size(), packets.size());
}

TEST_F(VerbsPair, routes__are_bounded_and_their_handles_given_back) {
  for (std::uint32_t i = 0; i < 2 * kRoutes; ++i) {
    const Address to = Address::v4(0x7F010000 + i, kPort);
    send_text(a.io(), to);
  }
  EXPECT_GT(a.io().counters().no_route, 0u) << "the service has not kept up";
  ASSERT_TRUE(resolves(a, b.address)) << "others are still found";
  ASSERT_TRUE(runs_until(a.io(), [&] {
    const VerbsIoCounters& counters = a.io().counters();
    return counters.unreachable + counters.waiting_full == counters.waited;
  })) << "and nothing waits for an answer that nobody was asked for";
}

TEST_F(VerbsDatapathTest, a_neighbour_without_a_handle__is_unreachable) {
  Host a(fabric, "127.0.0.1");
  Host b(fabric, "127.0.0.2");
  a.device->has_no_handles = true;
  send_text(a.io(), b.address);
  ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().unreachable == 1; }));
  a.device->has_no_handles = false;
  EXPECT_TRUE(resolves(a, b.address)) << "later";
}

// ---- Reports ----

std::string place_error(const std::string& address, HostDatapathConfig config = {}, const std::string& down = "") {
  FakeFabric fabric;
  config.device = config.device.empty() ? "verbs:fake0" : config.device;
  auto device = std::make_unique<FakeDevice>(fabric, "127.0.0.1");
  device->down = down;
  HostPlace place;
  place.address = Address::parse(address, kPort);
  return message_of<std::exception>([&] { make_datapath(config, std::move(device))->take_place(place); });
}

TEST(VerbsDatapath, take_place__tells_what_is_wrong) {
  EXPECT_EQ(place_error("127.0.0.1"), "no error");
  EXPECT_EQ(place_error("0.0.0.0"), "no error");
  EXPECT_THAT(place_error("127.0.0.9"),
              HasSubstr("port verbs:fake0: none of its GIDs is 127.0.0.9, but 1 127.0.0.1; give the host one that it "
                        "has, or add it: ip addr add 127.0.0.9/24 dev IFACE"));
  EXPECT_THAT(place_error("::"), HasSubstr("it has no IPv6 GID, but 1 127.0.0.1"));
  EXPECT_THAT(place_error("127.0.0.1", {.device = "verbs:fake0:1:0"}), HasSubstr("GID 0 is of RoCE version 1"));
  EXPECT_THAT(place_error("127.0.0.1", {.device = "verbs:fake0:1:7"}),
              HasSubstr("no GID of index 7; the port has 1 127.0.0.1"));
  EXPECT_THAT(place_error("127.0.0.2", {.device = "verbs:fake0:1:1"}),
              HasSubstr("GID 1 is 127.0.0.1, but the host's address is 127.0.0.2"));
  EXPECT_THAT(place_error("127.0.0.1", {.device = {}, .mtu = 1500}),
              HasSubstr("messages of 1024 bytes, which allows 1076"));
  EXPECT_THAT(place_error("127.0.0.1", {.device = {}, .mtu = 200}), HasSubstr("an MTU of 200 bytes; give 308 to 1076"));
  EXPECT_THAT(place_error("127.0.0.1", {.device = {}, .queues = 2}), HasSubstr("leave their number out"));
  EXPECT_EQ(place_error("127.0.0.1", {}, "verbs:fake0:1 is down; bring its interface up"),
            "verbs:fake0:1 is down; bring its interface up");
  const KernelSocket other(Address::parse(fmt::format("127.0.0.1:{}", kPort)), 0);
  EXPECT_THAT(place_error("127.0.0.1"), HasSubstr("another socket has this UDP port"));
}

TEST_F(VerbsDatapathTest, infiniband__has_no_ecn_and_no_hops) {
  VerbsIoConfig config;
  config.network = Network::infiniband;
  FakeDevice device(fabric, "127.0.0.1", 2048, true);
  const Clock clock;
  const VerbsIo io(device, clock, config);
  EXPECT_FALSE(io.limits().ecn);
  EXPECT_FALSE(io.limits().hops);
}

TEST(VerbsDatapath, asked_at__is_the_link_local_address_of_ip_over_infiniband) {
  const Address gid = Address::parse("[fe80::1:0002:c903:0009:5f31]:7");
  EXPECT_EQ(asked_at(gid, false), gid);
  EXPECT_EQ(asked_at(Address::parse("[fec0::2:c903:9:5f31]:7"), true), Address::parse("[fe80::202:c903:9:5f31]:7"));
}

}  // namespace
}  // namespace mltcp::rdma
