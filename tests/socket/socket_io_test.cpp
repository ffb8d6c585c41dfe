// Tests the datapath of a shard on UDP sockets, over the loopback: packets that are sent as one message and arrive as
// separate packets, and packets that the kernel refuses.
#include "mltcp/socket/socket_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "../count_allocations.h"
#include "../message_of.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/time_source.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/shard.h"

namespace mltcp::socket {
namespace {

using namespace literals;
using testing::HasSubstr;

constexpr std::uint16_t kFirstPort = 27310;

Address loopback(bool v6, std::uint16_t port) {
  Address address = v6 ? Address::parse("::1") : Address::v4(0x7F000001, 0);
  address.port = port;
  return address;
}

/// One call of sendmmsg(): the number of messages, and the segment length and size of the first message. The segment
/// length is 0 if that message is a single packet.
struct Sent {
  unsigned messages = 0;
  std::uint16_t segment = 0;
  std::size_t bytes = 0;
};
std::vector<Sent> calls_of_send;                                    // NOLINT: global, as C callbacks have no context
std::function<int(const Sent& call)> refusal;                       // NOLINT: returns the errno of a refused call, or 0
std::function<int(mmsghdr* headers, unsigned count)> made_receive;  // NOLINT: replaces the kernel's recvmmsg()

Sent look_at(const mmsghdr* headers, unsigned count) {
  Sent call{count, 0, 0};
  const msghdr& header = headers[0].msg_hdr;
  for (std::size_t i = 0; i < header.msg_iovlen; ++i) call.bytes += header.msg_iov[i].iov_len;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&header), control))
    if (control->cmsg_level == IPPROTO_UDP) std::memcpy(&call.segment, CMSG_DATA(control), sizeof call.segment);
  return call;
}

int watched_send(int file, mmsghdr* headers, unsigned count, int flags) {
  // Behaves like the kernel: sends the messages before the refused one. The next call returns the error.
  for (unsigned i = 0; i < count; ++i) {
    const Sent one = look_at(headers + i, count - i);
    const int error = refusal ? refusal(one) : 0;
    if (i == 0) calls_of_send.push_back(one);
    if (error == 0) continue;
    if (i > 0) return ::sendmmsg(file, headers, i, flags);
    errno = error;
    return -1;
  }
  return ::sendmmsg(file, headers, count, flags);
}

int replaced_receive(int file, mmsghdr* headers, unsigned count, int flags, timespec* limit) {
  return made_receive ? made_receive(headers, count) : ::recvmmsg(file, headers, count, flags, limit);
}

/// A packet to send.
struct Made {
  Address to;
  std::vector<std::byte> header;
  std::vector<std::byte> payload;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;

  [[nodiscard]] TxPacket packet() const { return {&to, header, payload, ecn, priority, nullptr}; }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    auto all = header;
    all.insert(all.end(), payload.begin(), payload.end());
    return all;
  }
};

Made make(const Address& to, std::size_t bytes, unsigned number) {
  Made made;
  made.to = to;
  made.header.resize(std::min<std::size_t>(bytes, 32));
  made.payload.resize(bytes - made.header.size());
  for (std::size_t i = 0; i < made.header.size(); ++i) made.header[i] = static_cast<std::byte>(number * 7 + i);
  for (std::size_t i = 0; i < made.payload.size(); ++i) made.payload[i] = static_cast<std::byte>(number * 31 + i * 3);
  return made;
}

/// A received packet, with a copy of its bytes.
struct Got {
  RxPacket packet;
  std::vector<std::byte> bytes;
};

class SocketIoTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    calls_of_send.clear();
    refusal = nullptr;
    made_receive = nullptr;
    if (GetParam()) {
      const int file = ::socket(AF_INET6, SOCK_DGRAM, 0);
      sockaddr_in6 own{};
      own.sin6_family = AF_INET6;
      own.sin6_addr = in6addr_loopback;
      const bool able = file >= 0 && bind(file, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
      close(file);
      if (!able) GTEST_SKIP() << "this machine has no IPv6 on its loopback (ip -6 addr add ::1/128 dev lo)";
    }
  }
  [[nodiscard]] SocketIoConfig config(std::uint16_t number, std::uint32_t mtu = 1500) const {
    SocketIoConfig made;
    made.address = loopback(GetParam(), static_cast<std::uint16_t>(kFirstPort + number));
    made.mtu = mtu;
    made.calls = {watched_send, replaced_receive};
    return made;
  }
  /// Returns the packets that `io` receives. Stops after `count` packets or after half a second.
  static std::vector<Got> receive(SocketIo& io, std::size_t count, std::size_t capacity = SocketIo::kMaxBurst) {
    std::vector<Got> all;
    std::vector<RxPacket> out(capacity);
    const Nanos end = monotonic_now() + 500_ms;
    while (all.size() < count && monotonic_now() < end) {
      const std::size_t got = io.receive(out);
      for (std::size_t i = 0; i < got; ++i) all.push_back({out[i], {out[i].bytes.begin(), out[i].bytes.end()}});
      if (got == 0) std::this_thread::yield();
    }
    return all;
  }
  static std::size_t send(SocketIo& io, const std::vector<Made>& made) {
    std::vector<TxPacket> packets;
    for (const Made& one : made) packets.push_back(one.packet());
    return io.send(packets);
  }
  static void expect_equal(const std::vector<Got>& got, const std::vector<Made>& made) {
    ASSERT_EQ(got.size(), made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(got[i].bytes, made[i].bytes()) << "packet " << i;
      EXPECT_EQ(got[i].packet.ecn, made[i].ecn) << "packet " << i;
      EXPECT_EQ(got[i].packet.priority, made[i].priority) << "packet " << i;
    }
  }
  /// Sends `bytes` bytes of zeros from a plain socket, which the receiver does not know.
  [[nodiscard]] bool unknown_peer_sends(std::uint16_t number, std::size_t bytes, int time_to_live = 64) const {
    const int file = ::socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(file, GetParam() ? IPPROTO_IPV6 : IPPROTO_IP, GetParam() ? IPV6_UNICAST_HOPS : IP_TTL, &time_to_live,
               sizeof time_to_live);
    const std::vector<std::byte> data(bytes);
    const auto port = htons(static_cast<std::uint16_t>(kFirstPort + number));
    ssize_t sent = -1;
    if (GetParam()) {
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      to.sin6_port = port;
      to.sin6_addr = in6addr_loopback;
      sent = sendto(file, data.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    } else {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = port;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      sent = sendto(file, data.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    close(file);
    return sent == static_cast<ssize_t>(bytes);
  }
  /// Makes packets with the given lengths for one destination.
  [[nodiscard]] std::vector<Made> run_of(const Address& to, std::initializer_list<std::size_t> lengths) const {
    std::vector<Made> all;
    for (const std::size_t bytes : lengths) all.push_back(make(to, bytes, static_cast<unsigned>(all.size())));
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Versions, SocketIoTest, testing::Bool(),
                         [](const auto& given) { return given.param ? "IPv6" : "IPv4"; });

TEST_P(SocketIoTest, send__gathers_a_run_into_one_message_that_ends_with_a_shorter_packet) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  if (!one.segments()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  const auto made = run_of(config(1).address, {1000, 1000, 1000, 400});
  EXPECT_EQ(send(one, made), 4u);
  ASSERT_EQ(calls_of_send.size(), 1u);
  EXPECT_EQ(calls_of_send[0].messages, 1u);
  EXPECT_EQ(calls_of_send[0].segment, 1000u);
  EXPECT_EQ(calls_of_send[0].bytes, 3400u);
  EXPECT_EQ(one.counters().sent_messages, 1u);
  EXPECT_EQ(one.counters().sent_packets, 4u);
  const auto got = receive(two, 4);
  expect_equal(got, made);
  for (const Got& packet : got) EXPECT_EQ(packet.packet.source, config(0).address);
  EXPECT_EQ(two.counters().received_messages, two.coalesces() ? 1u : 4u) << "over loopback the kernel never cuts it";
}

TEST_P(SocketIoTest, send__begins_a_new_message_where_packets_differ) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  SocketIo three(config(2));
  auto made = run_of(config(1).address, {500, 500, 600, 600, 100, 100, 1472 - 20U * GetParam(), 32, 0, 0, 33});
  made[1].ecn = Ecn::ect0;
  made[3].priority = made[4].priority = 5;  // messages: 500 | 500 | 600 | 600 100 | 100 | 1472 32 | 0 | 0 | 33
  EXPECT_EQ(send(one, made), made.size());
  EXPECT_EQ(one.counters().sent_messages, 9u);
  expect_equal(receive(two, made.size()), made);

  // Packets alternate between two destinations. Each destination gets its packets in order, and no packets are
  // combined.
  auto turns = run_of(config(1).address, {700, 700, 700, 700});
  turns[1].to = turns[3].to = config(2).address;
  EXPECT_EQ(send(one, turns), 4u);
  EXPECT_EQ(one.counters().sent_messages, 13u);
  expect_equal(receive(two, 2), {turns[0], turns[2]});
  expect_equal(receive(three, 2), {turns[1], turns[3]});
}

TEST_P(SocketIoTest, send__keeps_to_the_longest_message_and_most_segments) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  if (!one.segments()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  std::vector<Made> made;
  const std::size_t longest = one.limits().max_packet_bytes;
  for (unsigned i = 0; i < 64; ++i) made.push_back(make(config(1).address, longest, i));
  EXPECT_EQ(send(one, made), 64u);
  EXPECT_EQ(one.counters().sent_messages, 2u);
  ASSERT_EQ(calls_of_send.size(), 1u);
  EXPECT_EQ(calls_of_send[0].bytes, 65507 / longest * longest);
  expect_equal(receive(two, 64), made);

  made.clear();
  for (unsigned i = 0; i < 64; ++i) made.push_back(make(config(1).address, 40, i));
  EXPECT_EQ(send(one, made), 64u);
  EXPECT_EQ(one.counters().sent_messages, 3u) << "64 of them are one";
  expect_equal(receive(two, 64), made);
}

TEST_P(SocketIoTest, ecn_priority_and_hops__arrive_as_they_were_sent) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  std::vector<Made> made;
  for (unsigned i = 0; i < 32; ++i) {
    made.push_back(make(config(1).address, 100, i));
    made.back().ecn = static_cast<Ecn>(i % 4);
    made.back().priority = static_cast<std::uint8_t>(i / 4);
  }
  EXPECT_EQ(send(one, made), 32u);
  const auto got = receive(two, 32);
  expect_equal(got, made);
  for (const Got& packet : got) EXPECT_EQ(packet.packet.hops, 0) << "loopback forwards nothing";
  EXPECT_TRUE(one.limits().ecn);
  EXPECT_TRUE(one.limits().hops);
  EXPECT_EQ(one.limits().priorities, kPriorities);

  for (const auto& [ttl, hops] : {std::pair(61, 3), std::pair(1, 63), std::pair(64, 0), std::pair(255, 0)}) {
    ASSERT_TRUE(unknown_peer_sends(1, 50, ttl));
    const auto received = receive(two, 1);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].packet.hops, hops) << "TTL " << ttl;
  }
}

TEST_P(SocketIoTest, receive__hands_out_leftovers_in_order_and_leaves_bytes_alone_until_the_next_call) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  std::vector<Made> made;
  for (unsigned i = 0; i < 50; ++i) made.push_back(make(config(1).address, 900, i));
  EXPECT_EQ(send(one, made), 50u);
  made.push_back(make(config(1).address, 800, 99));
  EXPECT_EQ(send(one, {made.back()}), 1u);
  std::vector<RxPacket> out(7);
  std::size_t at = 0;
  const Nanos end = monotonic_now() + 500_ms;
  while (at < made.size() && monotonic_now() < end) {
    const std::size_t got = two.receive(out);
    // These packets arrive while the test still uses received packets, whose bytes must not change.
    send(one, {make(config(1).address, 64, 200)});
    for (std::size_t i = 0; i < got && at < made.size(); ++i, ++at) {
      ASSERT_EQ(std::vector(out[i].bytes.begin(), out[i].bytes.end()), made[at].bytes()) << "packet " << at;
    }
  }
  EXPECT_EQ(at, made.size());
}

TEST_P(SocketIoTest, receive__gives_each_message_an_unused_buffer) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  std::vector<RxPacket> out(30);
  for (unsigned round = 0; round < 20; ++round) {
    std::vector<Made> made;
    for (unsigned i = 0; i < 50; ++i) made.push_back(make(config(1).address, 900, round * 50 + i));
    EXPECT_EQ(send(one, made), 50u);
    ASSERT_EQ(two.receive(out), 30u);
    ASSERT_EQ(two.receive(out), 20u) << "leftovers, and a look at an empty socket";
    const auto next = run_of(config(1).address, {round + 1, 70, 1200});
    EXPECT_EQ(send(one, {next[0]}), 1u);
    EXPECT_EQ(send(one, {next[1]}), 1u);
    EXPECT_EQ(send(one, {next[2]}), 1u);
    expect_equal(receive(two, 3), next);
  }
}

TEST_P(SocketIoTest, receive__is_right_with_room_for_one) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  const auto made = run_of(config(1).address, {300, 300, 300, 100, 1200, 1200, 1});
  EXPECT_EQ(send(one, made), made.size());
  expect_equal(receive(two, made.size(), 1), made);
  EXPECT_EQ(two.receive({}), 0u);
}

TEST_P(SocketIoTest, send__drops_and_counts_what_can_never_be_sent) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  auto made = run_of(config(1).address, {100, 1473, 100, 100, 100});
  made[2].to = loopback(!GetParam(), kFirstPort + 1);
  made[3].to.port = 0;
  EXPECT_EQ(send(one, made), made.size());
  EXPECT_EQ(one.counters().unsendable, 3u);
  EXPECT_FALSE(one.is_blocked());
  expect_equal(receive(two, 2), {made[0], made[4]});
}

TEST_P(SocketIoTest, send__drops_and_counts_what_is_longer_than_the_path_carries) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  const std::size_t longest = one.limits().max_packet_bytes;
  // The path carries packets of up to 1200 bytes. The kernel refuses a message with longer segments, and then refuses
  // each of the longer packets.
  refusal = [](const Sent& call) {
    return std::max<std::size_t>(call.segment, call.segment ? 0 : call.bytes) > 1200 ? EMSGSIZE : 0;
  };
  const auto made = run_of(config(1).address, {longest, longest, longest, 1000, 1000});
  EXPECT_EQ(send(one, made), made.size());
  EXPECT_EQ(one.counters().too_big, 3u);
  EXPECT_FALSE(one.is_blocked());
  EXPECT_TRUE(one.segments()) << "it is not segmentation's fault";
  EXPECT_TRUE(one.is_narrow(config(1).address));
  EXPECT_FALSE(one.is_narrow(Address::v4(0x0A000001, 1)));
  expect_equal(receive(two, 2), {made[3], made[4]});

  refusal = nullptr;  // the path carries long packets again
  for (std::uint32_t i = 1; i < SocketIo::kNarrowPathCalls; ++i) EXPECT_EQ(send(one, {made[0]}), 1u);
  EXPECT_TRUE(one.is_narrow(config(1).address)) << "the kernel has not been asked";
  EXPECT_EQ(send(one, {made[0]}), 1u);
  EXPECT_FALSE(one.is_narrow(config(1).address));
}

TEST_P(SocketIoTest, narrow_path__is_forgotten_once_shorter_packets_have_passed) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  refusal = [](const Sent& call) { return call.bytes > 1200 ? EMSGSIZE : 0; };
  const auto made = run_of(config(1).address, {one.limits().max_packet_bytes, 1000});
  EXPECT_EQ(send(one, {made[0]}), 1u);
  for (std::uint32_t i = 1; i < SocketIo::kNarrowPathCalls; ++i) EXPECT_EQ(send(one, {made[1]}), 1u);
  for (std::uint32_t i = 1; i < SocketIo::kShorterPacketsToForget; ++i) {
    EXPECT_EQ(send(one, {made[1]}), 1u);
    ASSERT_TRUE(one.is_narrow(config(1).address)) << i;
  }
  // The kernel also refuses a second long packet. After this, the count of shorter packets starts again.
  EXPECT_EQ(send(one, {made[0]}), 1u);
  for (std::uint32_t i = 2; i < SocketIo::kShorterPacketsToForget + SocketIo::kNarrowPathCalls; ++i)
    EXPECT_EQ(send(one, {made[1]}), 1u);
  EXPECT_TRUE(one.is_narrow(config(1).address));
  EXPECT_EQ(send(one, {made[1]}), 1u);
  EXPECT_FALSE(one.is_narrow(config(1).address));
}

TEST_P(SocketIoTest, send__does_without_segments_where_they_are_refused_and_packets_pass) {
  for (const int error : {EINVAL, EIO}) {
    SocketIo one(config(0));
    SocketIo two(config(1));
    if (!one.segments()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
    refusal = [&](const Sent& call) { return call.segment != 0 ? error : 0; };
    const auto made = run_of(config(1).address, {600, 600, 600, 200, 900, 900, 100});
    EXPECT_EQ(send(one, made), made.size());
    EXPECT_FALSE(one.segments());
    expect_equal(receive(two, made.size()), made);
    calls_of_send.clear();
    EXPECT_EQ(send(one, made), made.size());
    EXPECT_EQ(calls_of_send.size(), 1u) << "for good: nothing is tried again";
    EXPECT_EQ(calls_of_send[0].messages, made.size());
    expect_equal(receive(two, made.size()), made);
  }
}

TEST_P(SocketIoTest, send__does_without_segments_on_a_socket_whose_kernel_refuses_them) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  if (!one.segments()) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  const int on = 1;  // disables UDP checksums, without which UDP_SEGMENT does not work
  ASSERT_EQ(setsockopt(one.begin_waiting()->file, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  if (GetParam()) setsockopt(one.begin_waiting()->file, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on);
  if (GetParam()) setsockopt(two.begin_waiting()->file, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on);
  const auto made = run_of(config(1).address, {600, 600, 600, 200});
  EXPECT_EQ(send(one, made), made.size());
  EXPECT_FALSE(one.segments());
  expect_equal(receive(two, made.size()), made);
}

TEST_P(SocketIoTest, send__takes_a_prefix_when_it_is_full) {
  for (const int error : {EAGAIN, ENOBUFS, ENOMEM}) {
    SocketIo one(config(0));
    SocketIo two(config(1));
    int left = 2;  // number of messages that the kernel still accepts
    refusal = [&](const Sent&) { return left-- > 0 ? 0 : error; };
    const auto made = run_of(config(1).address, {600, 200, 700, 300, 800, 800});
    const std::size_t taken = send(one, made);
    EXPECT_EQ(taken, one.counters().sent_packets);
    EXPECT_EQ(taken, 4u);
    EXPECT_TRUE(one.is_blocked());
    EXPECT_EQ(one.counters().full, 1u);
    refusal = nullptr;
    EXPECT_EQ(send(one, {made[4], made[5]}), 2u);
    EXPECT_FALSE(one.is_blocked());
    expect_equal(receive(two, 6), made);
  }
}

TEST_P(SocketIoTest, send__goes_on_behind_what_is_refused) {
  for (const int error : {EPERM, ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EACCES, EINVAL, ENETDOWN, EFAULT}) {
    SocketIo one(config(0));
    SocketIo two(config(1));
    refusal = [&](const Sent& call) { return call.bytes < 700 ? error : 0; };
    const auto made = run_of(config(1).address, {600, 700, 650, 800});
    EXPECT_EQ(send(one, made), 4u) << std::strerror(error);
    EXPECT_EQ(one.counters().refused, 1u) << std::strerror(error);
    EXPECT_FALSE(one.is_blocked());
    expect_equal(receive(two, 3), {made[1], made[2], made[3]});  // packets of 700 and 650 bytes are one message
    refusal = [&](const Sent&) { return error; };
    EXPECT_EQ(send(one, made), 4u) << "it ends, whatever is refused";
  }
}

TEST_P(SocketIoTest, send__goes_on_to_a_peer_that_is_closed) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  const auto nowhere = make(loopback(GetParam(), kFirstPort + 9), 100, 1);
  const auto here = make(config(1).address, 100, 2);
  // the kernel reports "port unreachable" (ICMP) to the socket
  for (int i = 0; i < 20; ++i) EXPECT_EQ(send(one, {nowhere, here}), 2u);
  EXPECT_EQ(receive(two, 20).size(), 20u);
  EXPECT_EQ(receive(one, 0).size(), 0u);
  EXPECT_EQ(one.begin_waiting()->needs_arming, false);
  // The pending error must not wake a sleeping thread again and again.
  Clock clock;
  SystemTime time(clock);
  const int file = one.begin_waiting()->file;
  EXPECT_EQ(time.wait({&file, 1}, 5_ms), WaitEnd::timed_out);
}

TEST_P(SocketIoTest, receive__counts_what_had_no_room) {
  SocketIo one(config(0));
  auto small = config(1);
  small.buffer_bytes = 4096;
  SocketIo two(small);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(send(one, {make(small.address, 1000, i)}), 1u);
  EXPECT_EQ(two.counters().missed, 0u) << "nothing was told yet";
  EXPECT_GT(two.missed(), 50u);
  const std::size_t got = receive(two, 100).size();
  EXPECT_EQ(two.missed() + got, 100u);
  EXPECT_EQ(send(one, {make(small.address, 1000, 0)}), 1u);
  EXPECT_EQ(receive(two, 1).size(), 1u);
  EXPECT_EQ(two.counters().missed + got, 100u) << "the next packet tells (SO_RXQ_OVFL)";
  EXPECT_EQ(two.missed() + got, 100u) << "once";
  // The counter is the sum of all reports.
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(send(one, {make(small.address, 1000, i)}), 1u);
  const std::size_t more = receive(two, 100).size();
  EXPECT_EQ(send(one, {make(small.address, 1000, 0)}), 1u);
  EXPECT_EQ(receive(two, 1).size(), 1u);
  EXPECT_EQ(two.counters().missed + got + more, 200u);
}

TEST_P(SocketIoTest, receive__takes_whatever_an_unknown_peer_sends) {
  SocketIo two(config(1, 1500));
  for (const std::size_t bytes : {0U, 1U, 31U, 1472U, 9000U, 65507U}) {
    ASSERT_TRUE(unknown_peer_sends(1, bytes));
    const auto got = receive(two, 1);
    ASSERT_EQ(got.size(), 1u) << bytes;
    EXPECT_EQ(got[0].bytes.size(), bytes);
  }
  EXPECT_EQ(two.counters().truncated, 0u);
}

TEST_P(SocketIoTest, receive__ignores_impossible_lengths) {
  SocketIo io(config(1));
  struct Case {
    unsigned bytes;
    int segment;
    int flags;
    std::size_t packets;
  };
  const bool v6 = GetParam();
  for (const Case& one : std::vector<Case>{{1000, 0, 0, 1},
                                           {1000, -1, 0, 1},
                                           {1000, INT_MIN, 0, 1},
                                           {1000, INT_MAX, 0, 1},
                                           {1000, 1000, 0, 1},
                                           {1000, 999, 0, 2},
                                           {0, 5, 0, 1},
                                           {65536, 1, 0, 65536},
                                           {65537, 1000, 0, 0},
                                           {UINT_MAX, 1000, 0, 0},
                                           {1000, 100, MSG_TRUNC, 0}}) {
    bool done = false;
    made_receive = [&](mmsghdr* headers, unsigned) {
      if (std::exchange(done, true)) {
        errno = EAGAIN;
        return -1;
      }
      headers[0].msg_len = one.bytes;
      msghdr& header = headers[0].msg_hdr;
      header.msg_flags = one.flags;
      static_cast<sockaddr*>(header.msg_name)->sa_family = v6 ? AF_INET6 : AF_INET;
      header.msg_controllen = CMSG_SPACE(sizeof(int));
      cmsghdr* const control = CMSG_FIRSTHDR(&header);
      *control = {CMSG_LEN(sizeof(int)), IPPROTO_UDP, 104};
      std::memcpy(CMSG_DATA(control), &one.segment, sizeof one.segment);
      return 1;
    };
    std::vector<RxPacket> out(SocketIo::kMaxBurst);
    std::size_t packets = 0;
    std::size_t bytes = 0;
    for (std::size_t got = 0; (got = io.receive(out)) > 0; packets += got)
      for (std::size_t i = 0; i < got; ++i) bytes += out[i].bytes.size();
    EXPECT_EQ(packets, one.packets) << one.bytes << " in segments of " << one.segment;
    EXPECT_EQ(bytes, packets > 0 ? one.bytes : 0);
  }
  EXPECT_EQ(io.counters().truncated, 3u);
  // The next 200 receives succeed only if truncated messages return their buffers.
  for (int i = 0; i < 200; ++i) {
    made_receive = [](mmsghdr* headers, unsigned) {
      headers[0].msg_len = 10;
      headers[0].msg_hdr.msg_flags = MSG_TRUNC;
      return 1;
    };
    RxPacket out;
    EXPECT_EQ(io.receive({&out, 1}), 0u);
  }
  made_receive = nullptr;
  SocketIo one(config(0));
  for (int round = 0; round < 5; ++round) {
    std::vector<Made> made;
    for (unsigned i = 0; i < 64; ++i) made.push_back(make(config(1).address, 100 + i, i));
    EXPECT_EQ(send(one, made), 64u);
    EXPECT_EQ(receive(io, 64).size(), 64u);
  }
}

TEST_P(SocketIoTest, receive__goes_on_behind_an_error) {
  SocketIo io(config(1));
  int calls = 0;
  made_receive = [&](mmsghdr*, unsigned) {
    ++calls;
    errno = ECONNREFUSED;
    return -1;
  };
  std::vector<RxPacket> out(4);
  EXPECT_EQ(io.receive(out), 0u);
  EXPECT_LE(calls, 8) << "it ends";
  made_receive = nullptr;
  ASSERT_TRUE(unknown_peer_sends(1, 10));
  EXPECT_EQ(receive(io, 1).size(), 1u);
}

TEST_P(SocketIoTest, limits__follow_the_mtu) {
  const std::uint32_t headers = GetParam() ? 48 : 28;
  EXPECT_EQ(SocketIo(config(0, 1500)).limits().max_packet_bytes, 1500 - headers);
  EXPECT_EQ(SocketIo(config(0, 9000)).limits().max_packet_bytes, 9000 - headers);
  EXPECT_EQ(SocketIo(config(0, 65536)).limits().max_packet_bytes, GetParam() ? 65487u : 65507u);
  EXPECT_EQ(SocketIo(config(0)).limits().overhead_bytes, 14 + headers);
  if (SocketIo(config(0)).segments()) {  // each burst consists of whole messages
    EXPECT_EQ(SocketIo(config(0, 1500)).limits().batch, GetParam() ? 45u : 44u);
    EXPECT_EQ(SocketIo(config(0, 1500)).limits().burst, GetParam() ? 90u : 88u);
    EXPECT_EQ(SocketIo(config(0, 9000)).limits().batch, 7u);
    EXPECT_EQ(SocketIo(config(0, 9000)).limits().burst, 126u);
    EXPECT_EQ(SocketIo(config(0, 576)).limits().batch, 64u);
  }
  EXPECT_EQ(SocketIo(config(0, 65536)).limits().batch, 1u);

  SocketIo one(config(0, 65536));
  SocketIo two(config(1, 65536));
  const std::size_t longest = one.limits().max_packet_bytes;
  const auto made = run_of(config(1).address, {longest, longest, 20});
  EXPECT_EQ(send(one, made), 3u);
  expect_equal(receive(two, 3), made);
}

TEST_P(SocketIoTest, port_in_use__is_told_with_the_cure) {
  const SocketIo one(config(0));
  EXPECT_THAT(message_of<InputError>([&] { SocketIo two(config(0)); }),
              testing::AllOf(HasSubstr("another socket uses that UDP port"), HasSubstr("--udp-port")));
}

TEST_P(SocketIoTest, data_path__allocates_nothing) {
  SocketIo one(config(0));
  SocketIo two(config(1));
  std::vector<Made> made;
  for (unsigned i = 0; i < 64; ++i) made.push_back(make(config(1).address, 1000 + i / 8, i));
  std::vector<TxPacket> packets;
  for (const Made& each : made) packets.push_back(each.packet());
  std::vector<RxPacket> out(SocketIo::kMaxBurst);
  calls_of_send.reserve(1 << 12);
  allocations = 0;
  counting = true;
  std::size_t got = 0;
  for (int round = 0; round < 20; ++round) {
    one.send(packets);
    for (std::size_t count = 0; (count = two.receive(out)) > 0;) got += count;
  }
  counting = false;
  EXPECT_GT(got, 64u * 10);
  EXPECT_EQ(allocations, 0u);
}

// ---- Exchanges of whole messages ----

std::vector<std::byte> message(std::size_t number, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i + number) * 131 + i / 251);
  return bytes;
}

struct End : Pollable {
  explicit End(PacketIo& io, std::uint64_t seed) : shard(io, {.seed = seed}) {}
  Nanos poll(Nanos now) override {
    ++polls;
    const Nanos due = shard.poll(now);
    Completion done;
    bool any = false;
    while (shard.take_completions({&done, 1}) == 1) {
      any = true;
      on(done);
    }
    return any ? now : due;
  }
  void on(const Completion& done) {
    using Kind = Completion::Kind;
    if (done.kind == Kind::accepted)
      for (std::size_t i = 0; i < buffers.size(); ++i) shard.receive(done.connection, buffers[i], i);
    if (done.kind == Kind::received && done.status == Status::ok)
      good += buffers[done.tag] == message(done.tag, buffers[done.tag].size()) ? 1U : 0U;
    if (done.kind == Kind::sent && done.status == Status::ok) ++sent;
  }

  Shard shard;
  std::vector<std::vector<std::byte>> buffers;
  std::size_t good = 0;
  std::size_t sent = 0;
  std::size_t polls = 0;
};

class SocketExchange : public SocketIoTest {
 protected:
  /// Sends `count` messages from one host's shards to those of another host. One thread drives all shards.
  void exchange(std::size_t shards, std::size_t count, std::size_t bytes, Idle idle, std::uint32_t mtu) {
    Clock clock;
    SystemTime time(clock);
    PollLoop loop(time, idle);
    std::vector<std::unique_ptr<SocketIo>> ios;
    std::vector<std::unique_ptr<End>> ends;
    std::vector<std::vector<std::byte>> messages;
    for (std::size_t i = 0; i < count; ++i) messages.push_back(message(i, bytes));
    for (std::size_t i = 0; i < 2 * shards; ++i) {
      ios.push_back(std::make_unique<SocketIo>(config(static_cast<std::uint16_t>(i), mtu)));
      ends.push_back(std::make_unique<End>(*ios.back(), i + 1));
      loop.attach(*ios.back(), *ends.back());
    }
    for (std::size_t i = 0; i < shards; ++i) {
      ends[shards + i]->buffers.assign(count, std::vector<std::byte>(bytes));
      ends[shards + i]->shard.listen({});
      const auto id = ends[i]->shard.connect(config(static_cast<std::uint16_t>(shards + i)).address, {}, loop.now());
      for (std::size_t k = 0; k < count; ++k) ends[i]->shard.send(id, messages[k], k);
    }
    const auto is_over = [&] {
      for (std::size_t i = 0; i < shards; ++i)
        if (ends[i]->sent < count || ends[shards + i]->good < count) return false;
      return true;
    };
    EXPECT_TRUE(loop.run(loop.now() + 20_s, is_over));
    for (std::size_t i = 0; i < shards; ++i) {
      EXPECT_EQ(ends[i]->sent, count) << "shard " << i;
      EXPECT_EQ(ends[shards + i]->good, count) << "shard " << i;
      EXPECT_GT(ios[i]->counters().sent_packets, 3 * ios[i]->counters().sent_messages) << "runs went as one";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Versions, SocketExchange, testing::Bool(),
                         [](const auto& given) { return given.param ? "IPv6" : "IPv4"; });

TEST_P(SocketExchange, shards__exchange_messages_whose_content_is_right) {
  exchange(1, 20, 1'000'000, Idle::pause, 1500);
}
TEST_P(SocketExchange, two_shards__have_a_port_each) { exchange(2, 10, 300'000, Idle::sleep, 1500); }

TEST_P(SocketExchange, sleeper__is_woken_by_a_packet) {
  Clock clock;
  SystemTime time(clock);
  PollLoop loop(time, Idle::sleep);
  SocketIo io(config(1));
  End end(io, 1);
  end.shard.listen({});
  loop.attach(io, end);
  std::thread unknown_peer([&] {
    Clock::sleep(100_ms);
    [[maybe_unused]] const bool sent = unknown_peer_sends(1, 40);
  });
  const Nanos began = loop.now();
  Nanos woken = Nanos::never();
  loop.run(began + 5_s, [&] {
    if (io.counters().received_packets == 0) return false;
    woken = loop.now();
    return true;
  });
  unknown_peer.join();
  EXPECT_GE(woken - began, 99_ms);
  EXPECT_LT(woken - began, 600_ms);
  EXPECT_LT(end.polls, 500u) << "it slept";
}

}  // namespace
}  // namespace mltcp::socket
