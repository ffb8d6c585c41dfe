// Hostile hosts against running endpoints, with real packets over the kernel's UDP sockets: replayed conversations,
// floods of CONNECTs from unproven addresses, and random bytes. tests/endpoint/attack_test.cpp tests invalid frames
// within a connection, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "../random_bytes.h"
#include "attacker.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/random.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/endpoint/internal/frames.h"
#include "mltcp/socket/register_datapath.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/shard.h"

namespace mltcp::attack {
namespace {

using namespace mltcp::literals;
using endpoint::Code;
using endpoint::ConnectionHandle;
using endpoint::ConnectionKind;
using endpoint::Endpoint;
using endpoint::EndpointConfig;
using endpoint::OperationHandle;

constexpr Nanos kPatience{20'000'000'000};

EndpointConfig udp_config(std::uint16_t port = 0) {
  socket::register_datapath();
  EndpointConfig config;
  config.datapath.device = "udp:127.0.0.1";
  config.address = Address::v4(0x7F000001, port);
  config.max_connections = 16;
  config.peer_timeout = 5_s;
  return config;
}

/// Waits for the operation. Returns false, and fails the test, if the operation does not end with Code::ok in time.
bool ends_well(Endpoint& endpoint, OperationHandle operation) {
  endpoint::Completion how;
  const Code code = endpoint.wait(operation, how, kPatience);
  EXPECT_EQ(code, Code::ok);
  EXPECT_EQ(how.code, Code::ok) << to_text(how);
  return code == Code::ok && how.code == Code::ok;
}

/// Connects `from` to `to` and sends a message of three packets. Returns false if the message does not arrive
/// unchanged.
bool they_talk(Endpoint& from, Endpoint& to) {
  const ByteVector message = random_bytes(4000);
  ByteVector buffer(message.size());
  ConnectionHandle connection = 0;
  OperationHandle operation = 0;
  const Code code =
      from.connect(to.address().bytes(), {.kind = ConnectionKind::tagged, .post = {}}, connection, &operation);
  EXPECT_EQ(code, Code::ok) << to_text(code);
  if (code != Code::ok || !ends_well(from, operation)) return false;
  OperationHandle receiving = 0;
  EXPECT_EQ(to.receive_tagged(endpoint::kAnyConnection, buffer, 3, endpoint::kWholeTag, {}, receiving), Code::ok);
  EXPECT_EQ(from.send_tagged(connection, message, 3, {}, operation), Code::ok);
  const bool arrived = ends_well(from, operation) && ends_well(to, receiving);
  from.abort(connection);
  if (!arrived) to.close();  // no operation writes into the buffer after this
  EXPECT_EQ(buffer, message);
  return arrived;
}

endpoint::EndpointReport report_of(Endpoint& endpoint) {
  endpoint::EndpointReport report;
  EXPECT_EQ(endpoint.report(report), Code::ok);
  return report;
}

/// Sends packets to a victim that has no other peers. Sends no faster than the victim reads, so that no buffer
/// overflows.
class Throttle {
 public:
  Throttle(Attacker& attacker, Endpoint& victim) : attacker_(attacker), victim_(victim) {}
  void send(std::span<const std::byte> packet) {
    attacker_.send(victim_.address().base(), packet);
    if (++sent_ % 32 == 0) catch_up();
  }
  /// Waits until the victim has read all packets.
  void catch_up() {
    const Clock clock;
    const Nanos end = clock.now() + kPatience;
    while (seen() < before_ + sent_ && clock.now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(seen(), before_ + sent_);
  }

 private:
  [[nodiscard]] std::uint64_t seen() const { return report_of(victim_).packets.packets_received; }

  Attacker& attacker_;
  Endpoint& victim_;
  std::uint64_t sent_ = 0;
  std::uint64_t before_ = seen();
};

/// A datapath that keeps a copy of all packets that it sends, like an attacker on the wire.
class Wiretap final : public PacketIo {
 public:
  explicit Wiretap(const Address& address) : io_({.address = address}) {}
  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override { return io_.receive(out); }
  std::size_t send(std::span<const TxPacket> packets) override {
    const std::size_t sent = io_.send(packets);
    for (const TxPacket& packet : packets.first(sent)) {
      ByteVector& copy = heard.emplace_back(packet.header.begin(), packet.header.end());
      copy.insert(copy.end(), packet.payload.begin(), packet.payload.end());
    }
    return sent;
  }
  std::vector<ByteVector> heard;

 private:
  socket::SocketIo io_;
};

/// Runs an honest client that sends a hello and an unencrypted message to `victim`, and then closes. Returns the
/// packets that the client sent.
std::vector<ByteVector> conversation(const Address& own, Endpoint& victim, const ByteVector& message) {
  Wiretap tap(own);
  Shard shard(tap, {});
  const Clock clock;
  const ConnectionId connection = shard.connect(victim.address().base(), {}, clock.now());
  endpoint::Hello hello;
  hello.meant = victim.address().id();
  hello.token = 1;
  hello.unexpected_messages = 1;
  hello.from = endpoint::EndpointAddress(own, 1, {7});
  endpoint::HelloBuffer question;
  endpoint::HelloBuffer answer;
  write(hello, question);
  shard.receive(connection, answer, 1);
  shard.send(connection, question, 2);
  shard.send(connection, message, 3);
  bool over = false;
  for (const Nanos end = clock.now() + kPatience; !over && clock.now() < end;) {
    shard.poll(clock.now());
    Completion completion;
    while (shard.take_completions({&completion, 1}) == 1) {
      EXPECT_EQ(completion.status, Status::ok);
      if (completion.kind == Completion::Kind::sent && completion.tag == 3) shard.close(connection);
      over = over || completion.kind == Completion::Kind::closed;
    }
  }
  EXPECT_TRUE(over);
  return tap.heard;
}

/// The victim's part of conversation(): accepts the connection and receives the message.
void take_conversation(Endpoint& victim, ByteVector& buffer) {
  endpoint::Completion event;
  std::size_t count = 0;
  ASSERT_EQ(victim.events().wait({&event, 1}, count, kPatience), Code::ok);
  ASSERT_EQ(event.kind, endpoint::Completion::Kind::accepted);
  OperationHandle receiving = 0;
  ASSERT_EQ(victim.receive(event.connection, buffer, 1, {}, receiving), Code::ok);
  endpoint::Completion how;
  ASSERT_EQ(victim.wait(receiving, how, kPatience), Code::ok);
  EXPECT_EQ(how.code, Code::ok) << to_text(how);
  ASSERT_EQ(victim.events().wait({&event, 1}, count, kPatience), Code::ok);
  EXPECT_EQ(event.kind, endpoint::Completion::Kind::closed);
}

/// Replays the packets in order, in reverse order, and in random order.
void play(Throttle& out, std::vector<ByteVector> packets) {
  for (const ByteVector& packet : packets) out.send(packet);
  std::reverse(packets.begin(), packets.end());
  for (const ByteVector& packet : packets) out.send(packet);
  Random random(5);
  for (int i = 0; i < 500; ++i) out.send(packets[random.below(packets.size())]);
  out.catch_up();
}

TEST(UdpAttack, conversation__played_again_is_dropped) {
  auto victim = std::make_unique<Endpoint>(udp_config());
  const Address place = victim->address().base();
  const ByteVector message = random_bytes(5000);
  ByteVector buffer(message.size());
  const Address own = Attacker().address();  // address with a port that is free again
  std::thread program([&] { take_conversation(*victim, buffer); });
  const std::vector<ByteVector> heard = conversation(own, *victim, message);
  program.join();
  ASSERT_EQ(buffer, message);
  ASSERT_GT(heard.size(), 5U);
  for (const bool restarted : {false, true}) {
    if (restarted) {
      victim.reset();
      victim = std::make_unique<Endpoint>(udp_config(place.port));
      ASSERT_EQ(victim->address().base(), place);
    }
    Attacker attacker(own.v4_ip(), own.port);
    Throttle out(attacker, *victim);
    play(out, heard);
    endpoint::Completion event;
    EXPECT_EQ(victim->events().poll({&event, 1}), 0U) << to_text(event);
    const endpoint::EndpointReport report = report_of(*victim);
    EXPECT_EQ(report.connections, 0U);
    if (restarted) {
      EXPECT_GT(report.packets.unknown_connection, 100U) << "what was played is not what was to be played";
    }
    Endpoint honest(udp_config());
    EXPECT_TRUE(they_talk(honest, *victim));
    while (victim->events().poll({&event, 1}) == 1) continue;
  }
}

TEST(UdpAttack, questions__from_everywhere_keep_out_neither_who_connects_nor_what_begins_here) {
  Endpoint victim(udp_config());
  Endpoint honest(udp_config());
  std::atomic<bool> over{false};
  // The flood sends up to 2000 CONNECTs a second, from 50 addresses that never answer. They fill the table of half-open
  // connections, so that the victim answers all other CONNECTs with a cookie.
  std::thread flood([&] {
    std::vector<std::unique_ptr<Attacker>> attackers;
    for (std::uint32_t i = 0; i < 50; ++i) attackers.push_back(std::make_unique<Attacker>(0x7F000100 + i));
    for (std::uint32_t i = 1; !over.load(); ++i) {
      attackers[i % 50]->send(victim.address().base(), connect_packet(i, i));
      if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  while (report_of(victim).packets.retries_sent < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i)
    if (!they_talk(honest, victim) || !they_talk(victim, honest)) break;
  over = true;
  flood.join();
  EXPECT_LE(report_of(victim).connections, 16U);
}

TEST(UdpAttack, bytes__of_any_kind_are_counted_and_nothing_else) {
  Endpoint victim(udp_config());
  Endpoint honest(udp_config());
  Attacker attacker;
  Random random(1);
  const ByteVector good = connect_packet(9, 9);
  Throttle out(attacker, victim);
  for (int i = 0; i < 400; ++i) {
    ByteVector packet = good;
    if (i % 4 == 0)
      packet.resize(random.below(good.size()));  // truncated, possibly to 0 bytes
    else if (i % 4 == 1)
      packet = random_bytes(i == 1 ? 65'507 : 1 + random.below(9000), random.next());
    else if (i % 4 == 2)
      packet[random.below(packet.size())] ^= std::byte{1};
    else
      packet = closing_packet(static_cast<std::uint32_t>(random.next()) | 1U);
    out.send(packet);
  }
  out.catch_up();
  EXPECT_TRUE(attacker.receive().empty()) << "an answer to what is no question";
  const endpoint::EndpointReport report = report_of(victim);
  const ShardStats& packets = report.packets;
  EXPECT_EQ(packets.packets_received, packets.rejected_packets() + packets.unknown_connection);
  EXPECT_EQ(packets.resets_sent, 0U) << "CLOSE is too short to be answered";
  EXPECT_EQ(report.connections, 0U);
  EXPECT_EQ(report.unintroduced, 0U);
  EXPECT_TRUE(they_talk(honest, victim));
}

}  // namespace
}  // namespace mltcp::attack
