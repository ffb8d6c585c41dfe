// Attacks on the opening and closing of connections, with real packets over the loopback. Attackers fill the table of
// connections, replay recorded packets, and forge answers to a CONNECT. An attacker that is not on the path sends from
// its own address. An attacker on the path sends from another host's address and uses what it has observed, but cannot
// hold packets back.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "../random_bytes.h"
#include "attacker.h"
#include "mltcp/base/clock.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/socket/register_datapath.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/security/packet_key.h"
#include "mltcp/transport/shard.h"
#include "real_hosts.h"

namespace mltcp::attack::opening_attack_test {
namespace {

using namespace mltcp::literals;
using Kind = mltcp::Completion::Kind;

constexpr std::uint32_t kPlaces = 16;

/// Returns the first frame of an unencrypted packet, for example of a CONNECT, ACCEPT or RETRY. Returns nothing for
/// other packets.
std::optional<wire::Frame> first_frame(const ByteVector& bytes) {
  wire::Reader reader;
  wire::Header header;
  wire::Frame frame;
  if (wire::is_sealed(bytes)) {
    if ((bytes[1] & std::byte{wire::clear}) == std::byte{}) return std::nullopt;
    reader.begin_opened(std::span(bytes).subspan(wire::kHeaderBytes), {}, 0);
  } else if (reader.begin(bytes, 0, header) != wire::ParseError::none) {
    return std::nullopt;
  }
  return reader.next(frame) ? std::optional(frame) : std::nullopt;
}

class OpeningAttack : public RealHosts {
 protected:
  OpeningAttack() : RealHosts({.max_connections = 1024}, {.max_connections = kPlaces}) {}
  /// Returns the client's connection id, or 0 if the connection is not established within the time `within`.
  ConnectionId connect(Nanos within = 10_s) {
    const std::size_t before = client.count(Kind::connected);
    const ConnectionId id = client.shard->connect(server.address, config, clock.now());
    return run([&] { return client.count(Kind::connected) > before; }, within) ? id : 0;
  }
  void expect_to_talk(ConnectionId c) {
    run_for(10_ms);
    ConnectionId s = 0;
    for (const auto& completion : server.completions)
      if (completion.kind == Kind::accepted) s = completion.connection;
    const ByteVector message = random_bytes(100'000);
    ByteVector buffer(message.size());
    const std::size_t received = server.count(Kind::received);
    const std::size_t sent = client.count(Kind::sent);
    ASSERT_EQ(server.shard->receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(client.shard->send(c, message, 0), PostResult::ok);
    // The transport may read `message` until the send completes.
    ASSERT_TRUE(run([&] { return server.count(Kind::received) > received && client.count(Kind::sent) > sent; }));
    EXPECT_EQ(buffer, message);
  }
  void use_a_key() { config.keys = {security::packet_key(security::JobKey::generate())}; }

  ConnectionConfig config;
};

// ---- On the path, without the key ----

TEST_F(OpeningAttack, recorded_connects_with_their_cookies__take_no_place) {
  use_a_key();
  server.shard = std::make_unique<Shard>(server, ShardConfig{.max_connections = kPlaces, .max_half_open = 0});
  server.shard->listen(config);
  for (std::uint32_t i = 0; i < 3 * kPlaces; ++i) {
    const ConnectionId id = connect();
    ASSERT_NE(id, 0U);
    client.shard->close(id);
    run_for(1_ms);
  }
  ASSERT_TRUE(run([&] { return server.shard->stats().connections == 0; }));
  std::vector<ByteVector> recorded;
  for (const ByteVector& bytes : client.heard)
    if (const auto frame = first_frame(bytes); frame && frame->type == wire::FrameType::connect)
      recorded.push_back(bytes);
  EXPECT_GE(recorded.size(), 6 * kPlaces) << "each without and with its cookie";
  const std::size_t accepted = server.count(Kind::accepted);
  for (int round = 0; round < 3; ++round)
    for (const ByteVector& bytes : recorded) {
      client.forge(server.address, bytes);
      digest(server, 1);
      if (HasFatalFailure()) return;
    }
  EXPECT_EQ(server.count(Kind::accepted), accepted);
  EXPECT_EQ(server.shard->stats().connections, 0U);
  const Nanos begin = clock.now();
  const ConnectionId id = connect();
  EXPECT_LT(clock.now() - begin, 1_s);
  expect_to_talk(id);
}

TEST_F(OpeningAttack, recorded_connects__take_what_places_there_are_for_those_who_have_not_answered) {
  use_a_key();
  server.shard->listen(config);
  for (std::uint32_t i = 0; i < 3 * kPlaces; ++i) {
    const ConnectionId id = connect();
    ASSERT_NE(id, 0U);
    client.shard->abort(id, clock.now());
    run_for(1_ms);
  }
  ASSERT_TRUE(run([&] { return server.shard->stats().connections == 0; }));
  const std::vector<ByteVector> recorded = client.heard;
  for (const ByteVector& bytes : recorded) client.forge(server.address, bytes);
  run_for(50_ms);
  EXPECT_EQ(server.shard->stats().connections, kPlaces / 4);
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    const Nanos begin = clock.now();
    EXPECT_NE(connect(), 0U) << i;
    EXPECT_LT(clock.now() - begin, 1_s);
    for (const ByteVector& bytes : recorded) client.forge(server.address, bytes);
  }
}

/// Returns an ACCEPT that is forged by an attacker that has seen the CONNECT but has no key.
ByteVector forged_accept(ConnectionId to, std::uint64_t key_id, std::uint64_t number) {
  ByteVector buffer(200);
  wire::Writer writer(buffer);
  writer.accept({.max_packet = 1472, .source_connection = 77, .credit = 1, .tag = number});
  EndRandom random{};
  std::memcpy(random.data(), &number, sizeof number);
  writer.key({key_id, random});
  wire::Header header;
  header.flags = wire::sealed | wire::clear;
  header.connection = to;
  const auto bytes = writer.finish_unsealed(header);
  return {bytes.begin(), bytes.end()};
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

TEST_F(OpeningAttack, forged_accepts__cost_little_and_do_not_keep_the_server_s_out) {
  use_a_key();
  const std::uint64_t key = config.keys.front()->id();
  const ConnectionId c = client.shard->connect(server.address, config, clock.now());
  std::uint64_t number = 0;
  const auto flood = [&](int packets) {
    for (int i = 0; i < packets; ++i) server.forge(client.address, forged_accept(c, key, ++number));
  };
  // No server listens at first. The client limits the time that it spends on checking ACCEPTs.
  double spent = 0;
  double each_tried = 0;
  constexpr int kBursts = 400;
  constexpr int kBurst = 50;
  for (int burst = 0; burst < kBursts; ++burst) {
    flood(kBurst);
    const double before = cpu_seconds();
    const std::uint64_t until = number - kBurst / 10;  // the socket may drop a few packets
    for (int i = 0; i < 1000 && client.shard->stats().packets_received < until; ++i) poll(client);
    spent += cpu_seconds() - before;
    if (burst == 2) each_tried = spent / static_cast<double>(client.shard->stats().packets_received);
  }
  EXPECT_GT(client.shard->stats().forged_packets, kBursts * kBurst / 2);
  EXPECT_LT(spent / static_cast<double>(client.shard->stats().packets_received), each_tried / 2);
  EXPECT_EQ(client.count(Kind::connected), 0U);
  // The server now listens, and the flood of ACCEPTs continues at 4000 packets per second.
  server.shard->listen(config);
  Nanos next = clock.now();
  EXPECT_TRUE(run([&] {
    if (clock.now() >= next) {
      flood(4);
      next = clock.now() + 1_ms;
    }
    return client.count(Kind::connected) == 1;
  }));
  expect_to_talk(c);
}

TEST_F(OpeningAttack, packet_of_a_number_far_ahead__ends_nothing) {
  for (const bool has_key : {false, true}) {
    SCOPED_TRACE(has_key);
    if (has_key) use_a_key();
    server.shard->listen(config);
    client.heard.clear();
    server.heard.clear();
    const ConnectionId c = connect();
    ASSERT_NE(c, 0U);
    run_for(10_ms);
    for (Host* from : {&client, &server}) {
      Host& to = from == &client ? server : client;
      // A host sends CONNECT or ACCEPT with the id and the tag that packets to this host must contain.
      std::optional<wire::Frame> greeting;
      for (const ByteVector& bytes : to.heard)
        if (const auto frame = first_frame(bytes);
            frame && (frame->type == wire::FrameType::connect || frame->type == wire::FrameType::accept))
          greeting = frame;
      ASSERT_TRUE(greeting.has_value());
      wire::Header header;
      header.connection = greeting->connect.source_connection;
      header.tag = greeting->connect.tag;
      for (const std::uint64_t ahead : {50U, 5000U, (1U << 22) - 1000}) {
        header.packet_number = ahead;
        ByteVector ping = packet(header, [](wire::Writer& writer) { writer.ping(); });
        from->forge(to.address, ping);
        if (has_key) {
          ping[1] |= std::byte{wire::sealed};
          from->forge(to.address, ping);
        }
        digest(to, 1);
        expect_to_talk(c);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(client.count(Kind::closed) + server.count(Kind::closed), 0U);
  }
}

// ---- An unknown peer with its own address, without a key ----

/// Opens connections as a client does, and answers each ACCEPT once, after a delay.
class Sluggish {
 public:
  Sluggish(const Address& victim, Nanos after) : victim_(victim), after_(after) {}

  void begin(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ++asked_;
      attacker_.send(victim_, connect_packet(asked_, asked_));
    }
  }
  void work() {
    for (ByteVector bytes = attacker_.receive(1); !bytes.empty(); bytes = attacker_.receive()) {
      wire::Reader reader;
      wire::Header header;
      wire::Frame frame;
      if (reader.begin(bytes, 0, header) != wire::ParseError::none || !reader.next(frame)) continue;
      if (frame.type == wire::FrameType::retry)
        attacker_.send(
            victim_, packet({}, [&](wire::Writer& writer) {
              writer.connect(
                  {.max_packet = 1472, .source_connection = header.connection, .credit = 1, .tag = header.tag});
              writer.token(frame.cookie);
            }));
      if (frame.type == wire::FrameType::accept && answered_.insert({header.connection, true}).second)
        waiting_.push_back({clock_.now() + after_, header.packet_number, frame.connect});
    }
    for (; !waiting_.empty() && waiting_.front().at <= clock_.now(); waiting_.pop_front()) {
      wire::Header header;
      header.packet_number = 1;
      header.connection = waiting_.front().server.source_connection;
      header.tag = waiting_.front().server.tag;
      attacker_.send(victim_, packet(header, [&](wire::Writer& writer) {
                       acknowledge(writer, waiting_.front().number, waiting_.front().number);
                       writer.ping();
                     }));
      ++proven;
    }
  }
  [[nodiscard]] std::uint64_t sent_bytes() const { return attacker_.sent_bytes; }
  std::uint32_t proven = 0;

 private:
  struct Answer {
    Nanos at;
    std::uint64_t number;
    wire::ConnectFrame server;
  };
  Clock clock_;
  Attacker attacker_{0x7F000077};
  Address victim_;
  Nanos after_;
  std::uint32_t asked_ = 0;
  std::map<std::uint32_t, bool> answered_;
  std::deque<Answer> waiting_;
};

TEST(EndpointOpeningAttack, unknown_peer_that_stretches_round_trips__does_not_block_other_peers) {
  socket::register_datapath();
  endpoint::EndpointConfig config;
  config.datapath.device = "udp:127.0.0.1";
  config.address = Address::v4(0x7F000001, 0);
  config.max_connections = kPlaces;
  config.peer_timeout = 5_s;
  endpoint::Endpoint victim(config);
  endpoint::Endpoint honest(config);
  Sluggish unknown_peer(victim.address().base(), 1200_ms);
  const Clock clock;
  // The round trips of each wave of connections are long. Each wave replaces the entries of the previous wave in the
  // table.
  for (int wave = 0; wave < 5; ++wave) {
    unknown_peer.begin(20);
    for (const Nanos end = clock.now() + 1300_ms; clock.now() < end;) unknown_peer.work();
  }
  EXPECT_GT(unknown_peer.proven, 60U);
  EXPECT_LT(unknown_peer.sent_bytes(), 40'000U);
  for (int i = 0; i < 3; ++i) {
    const Nanos begin = clock.now();
    endpoint::ConnectionHandle connection = 0;
    endpoint::OperationHandle operation = 0;
    ASSERT_EQ(honest.connect(victim.address().bytes(), {.kind = endpoint::ConnectionKind::tagged, .post = {}},
                             connection, &operation),
              endpoint::Code::ok);
    endpoint::Completion how;
    ASSERT_EQ(honest.wait(operation, how, 20_s), endpoint::Code::ok);
    EXPECT_EQ(how.code, endpoint::Code::ok) << to_text(how);
    EXPECT_LT(clock.now() - begin, 3_s);
    honest.abort(connection);
  }
}

}  // namespace
}  // namespace mltcp::attack::opening_attack_test
