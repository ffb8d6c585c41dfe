// Tests ports on the kernel's software RDMA devices (rdma_rxe): two devices on one machine, on a connected pair of
// interfaces v0 and v1. tests/guest/verbs.sh runs this test as root in a virtual machine, because the test changes
// interfaces and addresses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../endpoint/posts.h"
#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/doctor.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/transport/host_datapath.h"
#include "packet_texts.h"

namespace mltcp::rdma {
namespace {

using namespace mltcp::literals;
using testing::HasSubstr;

constexpr std::uint16_t kPort = 27610;
constexpr Nanos kPatience = 20_s;

void shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

struct Host {
  Host(const std::string& device, const std::string& ip, std::uint16_t shards = 1) {
    register_datapath();
    datapath = open_host_datapath({.device = device});
    HostPlace place;
    place.address = Address::parse(ip, kPort);
    place.shards = shards;
    address = place.address;
    datapath->take_place(place);
  }
  VerbsIo& io(std::uint16_t shard = 0) { return dynamic_cast<VerbsIo&>(datapath->io(shard)); }

  std::unique_ptr<HostDatapath> datapath;
  Address address;
};

bool holds_soon(const std::function<bool()>& what) {
  for (const Nanos end = monotonic_now() + kPatience; monotonic_now() < end;) {
    if (what()) return true;
    Clock::sleep(1_ms);
  }
  return false;
}

bool resolves(Host& from, const Address& to, std::uint16_t shard = 0) {
  return holds_soon([&] { return from.io(shard).resolve(to); });
}

class VerbsGuestPair : public testing::Test {
 protected:
  VerbsGuestPair() { EXPECT_TRUE(resolves(a, b.address)); }
  Host a{"verbs:rx0", "10.0.0.1"};
  Host b{"verbs:rx1", "10.0.0.2"};
};

TEST(VerbsGuest, packets__of_all_lengths_arrive_as_they_were_sent) {
  for (const auto& [ip_a, ip_b] : {std::pair("10.0.0.1", "10.0.0.2"), std::pair("fd00::1", "fd00::2")}) {
    Host a("verbs:rx0", ip_a);
    Host b("verbs:rx1", ip_b);
    ASSERT_TRUE(resolves(a, b.address)) << ip_a;
    const std::uint32_t max = a.io().limits().max_packet_bytes;
    EXPECT_EQ(max, 4092u);
    std::uint8_t priority = 0;
    for (const std::uint32_t length : {1U, 100U, 101U, 102U, 103U, 256U, 300U, 1000U, max - 1, max}) {
      const std::string header = std::string(1, static_cast<char>('a' + priority));
      const std::string payload(length - 1, 'p');
      const Ecn ecn = static_cast<Ecn>(priority % 3);
      const TxPacket packet{.destination = &b.address,
                            .header = bytes_of(header),
                            .payload = bytes_of(payload),
                            .ecn = ecn,
                            .priority = static_cast<std::uint8_t>(priority % kPriorities)};
      ASSERT_EQ(a.io().send({&packet, 1}), 1u);
      // The first packet of each traffic class waits until its address handle exists.
      std::vector<Text> got;
      for (const Nanos end = monotonic_now() + kPatience; got.empty() && monotonic_now() < end;) {
        std::array<RxPacket, 1> none;
        a.io().receive(none);
        got = received(b.io(), 1, 1_ms);
      }
      ASSERT_EQ(got.size(), 1u) << length;
      EXPECT_EQ(got[0].bytes, header + payload);
      EXPECT_EQ(got[0].ecn, ecn);
      EXPECT_EQ(got[0].priority, packet.priority);
      EXPECT_EQ(got[0].hops, 0);
      EXPECT_EQ(got[0].source, a.address);
      ++priority;
    }
    EXPECT_EQ(b.datapath->losses().rejected, 0u);
  }
}

TEST(VerbsGuest, shards__of_one_device_talk_to_each_other) {
  Host a("verbs:rx0:1", "10.0.0.1", 2);
  Address to = a.address;
  to.port = kPort + 1;
  ASSERT_TRUE(resolves(a, to));
  const std::string text = "to the neighbour on the same device";
  const TxPacket packet{.destination = &to, .header = bytes_of(text), .payload = {}};
  ASSERT_EQ(a.io(0).send({&packet, 1}), 1u);
  const auto got = received(a.io(1), 1);
  ASSERT_EQ(got.size(), 1u) << fmt::format("bad headers: {}", a.io(1).counters().bad_header);
  EXPECT_EQ(got[0].bytes, text);
}

TEST_F(VerbsGuestPair, payloads_in_registered_memory__are_sent_from_there) {
  const Pages memory(65536);
  const std::span<std::byte> pages = memory.span();
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::byte>(i * 7 + i / 255);
  const RegisteredMemory registration(pages, a.datapath->dma_devices());
  const std::string header = "h";
  PayloadHold hold;
  for (std::size_t at = 0; at + 4000 < pages.size(); at += 4001) {
    const TxPacket packet{
        .destination = &b.address, .header = bytes_of(header), .payload = pages.subspan(at, 4000), .hold = &hold};
    ASSERT_EQ(a.io().send({&packet, 1}), 1u);
    const auto got = received(b.io(), 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(std::memcmp(got[0].bytes.data() + 1, packet.payload.data(), 4000), 0);
  }
  EXPECT_EQ(a.io().counters().by_reference, 16u);
  EXPECT_TRUE(holds_soon([&] {
    std::array<RxPacket, 1> none;
    a.io().receive(none);
    return hold.packets.load() == 0;
  }));
}

TEST_F(VerbsGuestPair, a_sleeper__is_woken_by_a_packet) {
  std::array<RxPacket, 4> packets;
  for (int round = 0; round < 20; ++round) {
    const auto wakeup = b.io().begin_waiting();
    b.io().arm();
    pollfd file{wakeup->file, POLLIN, 0};
    EXPECT_EQ(poll(&file, 1, 0), 0) << round;
    send_text(a.io(), b.address);
    EXPECT_EQ(poll(&file, 1, 10'000), 1) << round;
    b.io().disarm();
    EXPECT_EQ(b.io().receive(packets), 1u) << round;
    b.io().end_waiting();
  }
}

TEST(VerbsGuest, foreign_datagrams__do_not_get_through) {
  Host b("verbs:rx1", "10.0.0.2");
  const auto device = open_device({.device = "rx0"});
  const Gid gid = choose_gid(device->facts(), Address::parse("10.0.0.1"), std::nullopt);
  const Pages memory(4096);
  const auto pair = device->make_queue_pair(
      {.send_depth = 16, .receive_depth = 16, .key = 5, .inline_bytes = 64, .memory = memory.span()});
  Address to = b.address;
  to.port = 0;
  ibv_ah* const handle = device->make_handle({.gid_index = gid.index, .destination = to});
  ASSERT_NE(handle, nullptr);
  const RemoteQueue target = b.io().own_queue();
  const auto send = [&](std::uint32_t key, const std::vector<std::byte>& bytes) {
    post_datagram(pair->queue, bytes, 0, handle, {.number = target.number, .key = key},
                  IBV_SEND_INLINE | IBV_SEND_SIGNALED);
  };
  const Shim right = make_shim(9, kPort);
  const Shim wrong = make_shim(9, kPort + 7);
  std::vector<std::byte> bytes(right.begin(), right.end());
  bytes.resize(20, std::byte{'x'});
  send(target.key ^ 1, bytes);                                   // the queue pair's key is wrong
  send(target.key, {wrong.begin(), wrong.end()});                // the shim names another port
  send(target.key, {std::byte{1}, std::byte{2}, std::byte{3}});  // the message is shorter than a shim
  send(target.key, bytes);                                       // the message is valid
  const auto got = received(b.io(), 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].source, Address::parse("10.0.0.1:9"));
  EXPECT_EQ(b.io().counters().not_for_us, 1u);
  EXPECT_EQ(b.io().counters().bad_header, 1u);
  EXPECT_GE(b.datapath->losses().rejected, 2u);
  fmt::print("wrong keys as the device counts them: {}\n", b.datapath->losses().rejected - 2);
  device->free_handle(handle);
}

TEST_F(VerbsGuestPair, a_queue_pair_that_has_failed__is_made_ready_again) {
  const auto device = open_device({.device = "rx1"});
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(b.io().queue_pair().queue, &state, IBV_QP_STATE), 0);
  std::array<RxPacket, 64> packets;
  std::size_t arrived = 0;
  EXPECT_TRUE(holds_soon([&] {
    send_text(a.io(), b.address);
    std::array<RxPacket, 1> none;
    a.io().receive(none);
    arrived += b.io().receive(packets);
    return arrived > 10;
  }));
  EXPECT_EQ(b.io().counters().recoveries, 1u);
  EXPECT_EQ(a.io().counters().recoveries, 0u);
}

/// Counters of the RED queue: marked packets, and packets that were dropped because the queue was full. Early drops are
/// not included. RED drops questions for queue pairs early, because questions are not ECN-capable.
struct QueueCounts {
  std::uint64_t marked = 0;
  std::uint64_t dropped = 0;
};

QueueCounts counts_of_queues(const std::string& interface) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("tc -s qdisc show dev " + interface).c_str(), "r"), pclose);
  QueueCounts counts;
  std::array<char, 256> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    const std::string_view text(line.data());
    const auto after = [&](std::string_view word) {
      const auto at = text.find(word);
      return at == std::string_view::npos ? 0 : std::strtoull(text.data() + at + word.size(), nullptr, 10);
    };
    counts.marked += after("  marked ");
    counts.dropped += after(" pdrop ");
  }
  return counts;
}

TEST(VerbsGuest, marks_of_the_kernels_queue__reach_congestion_control_and_hold_the_queue_without_drops) {
  constexpr double bottleneck_bps = 40e6;
  const auto config = [](const std::string& device, const std::string& ip, const std::string& algorithm) {
    register_datapath();
    endpoint::EndpointConfig made;
    made.datapath.device = device;
    made.address = Address::parse(ip, kPort);
    made.connection.congestion_control = algorithm;
    made.connection.ecn = true;
    made.connection.max_rate = Rate(80'000'000);  // the rate at which DCQCN starts
    return made;
  };
  for (const std::string algorithm : {"dctcp", "dcqcn"}) {
    // A sender without ECN would fill the queue of 400 kB.
    shell(
        "tc qdisc add dev v0 root handle 1: tbf rate 40mbit burst 20k limit 400k && "
        "tc qdisc add dev v0 parent 1:1 handle 2: red limit 400k min 24k max 25k avpkt 4k burst 7 probability 1 ecn "
        "bandwidth 40mbit");
    endpoint::Endpoint a(config("verbs:rx0", "10.0.0.1", algorithm));
    endpoint::Endpoint b(config("verbs:rx1", "10.0.0.2", algorithm));
    const endpoint::ConnectionHandle connection =
        endpoint::testing_pair::connection_to(b.address().bytes(), a, endpoint::ConnectionKind::tagged);
    endpoint::OperationHandle operation = 0;
    endpoint::Completion end;
    const std::vector<std::byte> message(4'000'000, std::byte{'m'});
    std::vector<std::byte> buffer(message.size());
    endpoint::OperationHandle receiving = 0;
    ASSERT_EQ(b.receive_tagged(endpoint::kAnyConnection, buffer, 1, endpoint::kWholeTag, {}, receiving),
              endpoint::Code::ok);
    const Nanos begun = monotonic_now();
    ASSERT_EQ(a.send_tagged(connection, message, 1, {}, operation), endpoint::Code::ok);
    ASSERT_EQ(b.wait(receiving, end, 60_s), endpoint::Code::ok);
    const double share = static_cast<double>(message.size()) * 8 / (monotonic_now() - begun).seconds() / bottleneck_bps;
    EXPECT_EQ(end.code, endpoint::Code::ok);
    EXPECT_EQ(buffer, message);
    ASSERT_EQ(a.wait(operation, end, kPatience), endpoint::Code::ok);
    endpoint::ConnectionReport report;
    // The send may complete before the last acknowledgements have told the sender of marks.
    ASSERT_TRUE(holds_soon(
        [&] { return a.report(connection, report) == endpoint::Code::ok && report.transport.in_flight == 0; }));
    const QueueCounts queue = counts_of_queues("v0");
    fmt::print("{}: {} packets marked of {}, {} of which the sender knows, {} dropped, {:.0f}% of the rate\n",
               algorithm, queue.marked, report.transport.packets_sent, report.transport.ce_packets, queue.dropped,
               100 * share);
    EXPECT_GT(report.transport.ce_packets, 0u) << algorithm;
    // The queue also counts packets that the sender itself has marked with CE to test the peer. These are at most one
    // packet in 128.
    EXPECT_LE(report.transport.ce_packets, queue.marked) << algorithm;
    EXPECT_GE(report.transport.ce_packets + report.transport.packets_sent / 128, queue.marked) << algorithm;
    EXPECT_EQ(queue.dropped, 0u) << algorithm;
    EXPECT_EQ(report.transport.lost_packets, 0u) << algorithm;
    EXPECT_GT(share, 0.7) << algorithm;
    shell("tc qdisc del dev v0 root");
  }
}

TEST_F(VerbsGuestPair, a_link_that_goes_down__is_told_of_and_comes_back) {
  EXPECT_EQ(a.datapath->why_link_is_down(), "");
  shell("ip link set v0 down");
  EXPECT_TRUE(holds_soon([&] {
    return a.datapath->why_link_is_down().find("rx0 is down; bring its interface up: ip link set dev v0 up") !=
           std::string::npos;
  })) << a.datapath->why_link_is_down();
  const std::string text(1000, 't');
  const std::vector<TxPacket> packets(64, {.destination = &b.address, .header = bytes_of(text), .payload = {}});
  for (int i = 0; i < 100; ++i) a.io().send(packets);  // these packets are lost, and the calls do not block
  shell("ip link set v0 up && tests_restore_network");
  EXPECT_TRUE(holds_soon([&] { return a.datapath->why_link_is_down().empty(); })) << a.datapath->why_link_is_down();
  std::array<RxPacket, 64> arrivals;
  std::size_t arrived = 0;
  EXPECT_TRUE(holds_soon([&] {
    a.io().receive(arrivals);
    a.io().send({packets.data(), 1});
    arrived += b.io().receive(arrivals);
    return arrived > 10;
  }));
}

TEST(VerbsGuest, an_address_that_is_taken_away__is_told_of) {
  Host a("verbs:rx0", "10.0.0.1");
  shell("ip addr del 10.0.0.1/24 dev v0");
  EXPECT_TRUE(holds_soon([&] {
    return a.datapath->why_link_is_down().find(
               "has lost the address 10.0.0.1; give it back: ip addr add 10.0.0.1/24 "
               "dev v0") != std::string::npos;
  })) << a.datapath->why_link_is_down();
  shell("ip addr add 10.0.0.1/24 dev v0 && tests_restore_network");
  EXPECT_TRUE(holds_soon([&] { return a.datapath->why_link_is_down().empty(); })) << a.datapath->why_link_is_down();
}

TEST_F(VerbsGuestPair, an_address_that_comes_back_while_there_are_routes__is_found_at_its_new_place) {
  // The kernel's GID table keeps the old entry as long as an address handle uses it. So the address has a new index
  // when it returns.
  shell("ip addr del 10.0.0.1/24 dev v0");
  EXPECT_TRUE(holds_soon([&] { return !a.datapath->why_link_is_down().empty(); }));
  shell("ip addr add 10.0.0.1/24 dev v0 && tests_restore_network");
  EXPECT_TRUE(holds_soon([&] { return a.datapath->why_link_is_down().empty(); })) << a.datapath->why_link_is_down();
  const std::string text = "text";
  std::array<RxPacket, 64> packets;
  // Uses existing and new routes in both directions.
  std::uint8_t priority = 0;
  for (Host* const from : {&a, &b}) {
    Host& to = from == &a ? b : a;
    std::size_t arrived = 0;
    EXPECT_TRUE(holds_soon([&] {
      const TxPacket packet{.destination = &to.address,
                            .header = bytes_of(text),
                            .payload = {},
                            .priority = static_cast<std::uint8_t>(priority++ % 2)};
      from->io().send({&packet, 1});
      from->io().receive(packets);
      arrived += to.io().receive(packets);
      return arrived > 20;
    }));
  }
}

TEST(VerbsGuest, messages_longer_than_the_buffers__are_dropped_and_break_nothing) {
  register_datapath();
  Host a("verbs:rx0", "10.0.0.1");
  const auto narrow = open_host_datapath({.device = "verbs:rx1", .mtu = 1024 + 52});
  const Address narrows = Address::parse("10.0.0.2", kPort);
  narrow->take_place({.address = narrows});
  auto& io = dynamic_cast<VerbsIo&>(narrow->io(0));
  ASSERT_TRUE(resolves(a, narrows));
  const auto device = open_device({.device = "rx0"});
  const Gid gid = choose_gid(device->facts(), Address::parse("10.0.0.1"), std::nullopt);
  const Pages memory(4096);
  const Shim shim = make_shim(9, kPort);
  std::copy(shim.begin(), shim.end(), memory.span().begin());
  const auto pair = device->make_queue_pair({.send_depth = 16, .receive_depth = 16, .key = 5, .memory = memory.span()});
  Address to = narrows;
  to.port = 0;
  ibv_ah* const handle = device->make_handle({.gid_index = gid.index, .destination = to});
  ASSERT_NE(handle, nullptr);
  for (const std::uint32_t length : {1025U, 4096U, 2000U, 1024U})
    post_datagram(pair->queue, memory.span().first(length), pair->memory_key, handle, io.own_queue(),
                  IBV_SEND_SIGNALED);
  const auto got = received(io, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].bytes, std::string(1020, 'm'));
  EXPECT_EQ(io.counters().over_long, 3u);
  EXPECT_EQ(io.counters().receive_errors, 0u);
  EXPECT_EQ(io.counters().recoveries, 0u);
  device->free_handle(handle);
}

TEST(VerbsGuest, raw_packet_queue_pairs__are_not_there_and_refused) {
  register_datapath();
  EXPECT_THAT(message_of<InputError>([] { open_host_datapath({.device = "verbs:rx0:1:raw"}); }),
              HasSubstr("the device has no raw-packet queue pairs ("));
}

TEST(VerbsGuest, an_ordinary_user_without_locked_memory__is_told_the_limit) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{4096, 4096};
    std::string said = "no child";
    if (setrlimit(RLIMIT_MEMLOCK, &none) == 0 && setgid(65534) == 0 && setuid(65534) == 0)
      said = message_of<std::exception>([] { const Host host("verbs:rx0", "10.0.0.1"); });
    [[maybe_unused]] const auto written = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 1024> text{};
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  const std::string said(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  EXPECT_THAT(said, HasSubstr("can't be registered"));
  EXPECT_THAT(said, HasSubstr("the limit of locked memory is 4 kB: raise it (ulimit -l unlimited)"));
}

TEST(VerbsGuest, doctor__names_the_devices) {
  const Examination found = examine();
  EXPECT_TRUE(found.works);
  EXPECT_THAT(found.detail, HasSubstr("rx0: RoCEv2, messages of 4096 bytes, up, "));
  for (const char* const ip : {" 10.0.0.1", " fd00:0:0:0:0:0:0:1"}) EXPECT_THAT(found.detail, HasSubstr(ip));
  EXPECT_THAT(found.detail, HasSubstr("; no raw-packet queue pairs ("));
  EXPECT_EQ(found.cure, "");
  EXPECT_THAT(message_of<InputError>([] { open_device({.device = "nosuch"}); }),
              HasSubstr("there is no such RDMA device; write verbs:DEVICE with one that there is: rx0, rx1"));
  EXPECT_THAT(message_of<InputError>([] { open_device({.device = "rx0", .port = 2}); }),
              HasSubstr("the device has 1 port; leave it out"));
}

}  // namespace
}  // namespace mltcp::rdma
