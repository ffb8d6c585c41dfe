// Attacks on two shards that communicate over the kernel's UDP sockets. The attackers are cheating peers, and hosts
// that can send but cannot read the traffic of other hosts. Each attack sends real packets over the loopback.
// docs/explanation/transport.md states the cost of each attack.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "../random_bytes.h"
#include "attacker.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/random.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/shard.h"
#include "mltcp/transport/wire.h"
#include "real_hosts.h"

namespace mltcp::attack::shard_attack_test {
namespace {

using namespace mltcp::literals;
using Kind = mltcp::Completion::Kind;

constexpr std::size_t kConnectBytes = wire::kHeaderBytes + wire::kConnectFrameBytes;

class ShardAttack : public RealHosts {
 protected:
  void connect() {
    server.shard->listen({});
    c = client.shard->connect(server.address, {}, clock.now());
    ASSERT_TRUE(run([&] { return client.count(Kind::connected) == 1 && server.count(Kind::accepted) > 0; }));
    s = server.last().connection;
    ASSERT_TRUE(run([&] { return server.shard->stats().half_open == 0; }));
  }
  void expect_to_talk() {
    const ByteVector message = random_bytes(100'000);
    ByteVector buffer(message.size());
    const std::size_t received = server.count(Kind::received);
    ASSERT_EQ(server.shard->receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(client.shard->send(c, message, 0), PostResult::ok);
    EXPECT_TRUE(run([&] { return server.count(Kind::received) > received; }));
    EXPECT_EQ(buffer, message);
  }

  ConnectionId c = 0;
  ConnectionId s = 0;
};

TEST_F(ShardAttack, message_in_another_s_name__is_dropped) {
  server.shard->listen({});
  ByteVector buffer(100);
  server.on_completion = [&](const mltcp::Completion& completion) {
    if (completion.kind == Kind::accepted) {
      EXPECT_EQ(server.shard->receive(completion.connection, buffer, 0), PostResult::ok);
    }
  };
  Attacker attacker(0x7F000077);
  attacker.send(server.address, connect_packet(5, 6));
  digest(server, 1);
  ASSERT_EQ(server.count(Kind::accepted), 1U);
  // The attacker sends two kinds of packets with data. The first kind has the connection id 0 and repeats the
  // attacker's CONNECT. The second kind has the right connection id but a wrong tag.
  const auto data = [](wire::Writer& writer) {
    writer.data({.last = true, .message = 0, .offset = 0, .length = 4});
    writer.copy(random_bytes(4).data(), 4);
  };
  for (std::uint64_t number = 1; number <= 100; ++number) {
    wire::Header header;
    header.packet_number = number;
    attacker.send(server.address, packet(header, [&](wire::Writer& writer) {
                    writer.connect({.max_packet = 1472, .source_connection = 5, .credit = 1, .tag = 6});
                    data(writer);
                  }));
    header.connection = server.last().connection;
    header.tag = number;
    attacker.send(server.address, packet(header, data));
  }
  digest(server, 200);
  EXPECT_EQ(server.count(Kind::received), 0U);
  EXPECT_EQ(server.shard->stats().malformed_packets, 100U);
  EXPECT_EQ(server.shard->stats().forged_packets, 100U);
  server.shard->abort(server.last().connection, clock.now());
  run_for(10_ms);
}

TEST_F(ShardAttack, connect_in_another_s_name__sends_him_three_bytes_for_one_at_most) {
  server.shard->listen({});
  const ByteVector message = random_bytes(1'000'000);
  server.on_completion = [&](const mltcp::Completion& completion) {
    if (completion.kind == Kind::accepted) {
      EXPECT_EQ(server.shard->send(completion.connection, message, 0), PostResult::ok);
    }
  };
  // This attacker sends the forged CONNECTs, and receives the answers like the owner of the forged address.
  Attacker named(0x7F000077);
  for (int i = 0; i < 3; ++i) {
    named.send(server.address, connect_packet(5, 6, 1000));
    run_for(200_ms);
    while (!named.receive().empty()) continue;
    EXPECT_GT(named.received_bytes, 0U);
    EXPECT_LE(named.received_bytes, named.sent_bytes * 3);
  }
  server.shard->abort(server.last().connection, clock.now());
  run_for(10_ms);
}

TEST_F(ShardAttack, close_with_every_tag_that_can_be_tried__ends_nothing) {
  connect();
  Random random(1);
  for (int burst = 0; burst < 200; ++burst) {
    for (int i = 0; i < 100; ++i) {
      wire::Header header;
      header.connection = s;
      header.packet_number = random.below(100);
      header.tag = random.next();
      client.forge(server.address, packet(header, [](wire::Writer& w) { w.close(wire::CloseReason::aborted); }));
    }
    digest(server, 100);
  }
  EXPECT_EQ(server.shard->stats().forged_packets, 20'000U);
  // CLOSE packets for every id of the shard have no effect.
  for (std::uint32_t id = 1; id <= 4096; ++id) {
    client.forge(server.address, closing_packet(s ^ id << 20));
    if (id % 64 == 0) digest(server, 64);
  }
  EXPECT_EQ(server.count(Kind::closed), 0U);
  expect_to_talk();
}

TEST_F(ShardAttack, connect_under_the_victim_s_id__ends_nothing) {
  connect();
  for (std::uint64_t tag = 1; tag <= 1000; ++tag) {
    client.forge(server.address, connect_packet(c, tag));
    if (tag % 50 == 0) digest(server, 50);
  }
  EXPECT_EQ(server.shard->stats().retries_sent, 1000U);
  EXPECT_EQ(server.count(Kind::closed), 0U);
  expect_to_talk();
}

TEST_F(ShardAttack, reset_with_every_tag_that_can_be_tried__ends_nothing) {
  connect();
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    wire::Header header;
    header.tag = random.next();
    client.forge(server.address, packet(header, [&](wire::Writer& w) { w.reset(c); }));
    if (i % 50 == 49) digest(server, 50);
  }
  EXPECT_EQ(server.shard->stats().forged_resets, 5000U);
  expect_to_talk();
}

TEST_F(ShardAttack, flood_of_connects__does_not_block_other_peers) {
  server.shard->listen({});
  std::vector<std::unique_ptr<Attacker>> attackers;
  for (std::uint32_t i = 0; i < 50; ++i) attackers.push_back(std::make_unique<Attacker>(0x7F000100 + i));
  std::uint32_t asked = 0;
  const auto flood = [&] {
    for (int i = 0; i < 40; ++i, ++asked) attackers[asked % 50]->send(server.address, connect_packet(1 + asked, asked));
  };
  while (server.shard->stats().retries_sent < 1000) {
    flood();
    run_for(1_ms);
  }
  EXPECT_LE(server.shard->stats().half_open, 256U) << "a quarter of 1024";
  for (std::size_t i = 1; i <= 10; ++i) {
    const ConnectionId id = client.shard->connect(server.address, {}, clock.now());
    EXPECT_TRUE(run(
        [&] {
          flood();
          return client.count(Kind::connected) == i;
        },
        2_s))
        << id;
  }
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  for (const auto& attacker : attackers) {
    while (!attacker->receive().empty()) continue;
    received += attacker->received_bytes;
    sent += attacker->sent_bytes;
  }
  EXPECT_LE(received, sent * 3);
}

/// A client that connects from its own socket, and then sends the frames that the test selects.
struct CheatingClient {
  explicit CheatingClient(const Address& server) : to(server) { attacker.send(to, connect_packet(5, 6, 1000)); }
  /// Reads ACCEPT, and stores the server's id and tag. Returns whether ACCEPT has arrived.
  bool accept() {
    wire::Reader reader;
    wire::Header header;
    wire::Frame frame;
    const ByteVector bytes = attacker.receive();
    if (bytes.empty() || reader.begin(bytes, 0, header) != wire::ParseError::none || !reader.next(frame) ||
        frame.type != wire::FrameType::accept)
      return false;
    connection = frame.connect.source_connection;
    tag = frame.connect.tag;
    return true;
  }
  template <typename Frames>
  void say(Frames frames) {
    wire::Header header;
    header.connection = connection;
    header.tag = tag;
    header.packet_number = ++number;
    attacker.send(to, packet(header, frames));
  }

  Address to;
  Attacker attacker{0x7F000078};
  ConnectionId connection = 0;
  std::uint64_t tag = 0;
  std::uint64_t number = 0;
};

TEST_F(ShardAttack, receiver_that_acknowledges_ahead__is_sent_away) {
  server.shard->listen({});
  const ByteVector message = random_bytes(50'000'000);
  server.on_completion = [&](const mltcp::Completion& completion) {
    if (completion.kind == Kind::accepted) {
      EXPECT_EQ(server.shard->send(completion.connection, message, 0), PostResult::ok);
    }
  };
  CheatingClient attacker(server.address);
  ASSERT_TRUE(run([&] { return attacker.accept(); }));
  // The client stops reading, and acknowledges packets like a fast receiver.
  std::uint64_t last = 0;
  for (int i = 0; i < 5000 && server.count(Kind::closed) == 0; ++i, last += 2) {
    attacker.say([&](wire::Writer& writer) { acknowledge(writer, 0, last); });
    run_for(100_us);
  }
  ASSERT_EQ(server.count(Kind::closed), 1U);
  EXPECT_EQ(server.last().status, Status::violation);
  EXPECT_EQ(server.shard->stats().violations, 1U);
  EXPECT_LT(last, 1400U) << "one number in 128 to 640 is never sent, and the first might be somebody else's";
  // For a while, the server refuses every program at the attacker's address. It still accepts programs at other
  // addresses.
  const Nanos found_out = clock.now();
  CheatingClient again(server.address);
  EXPECT_FALSE(run([&] { return again.accept(); }, 500_ms));
  EXPECT_GT(server.shard->stats().held_off, 0U);
  EXPECT_EQ(again.attacker.received, 0U) << "not a word";
  client.shard->connect(server.address, {}, clock.now());
  EXPECT_TRUE(run([&] { return client.count(Kind::connected) == 1; }, 400_ms));
  run_for(found_out + 1_s - clock.now());
  again.attacker.send(server.address, connect_packet(5, 6, 1000));
  EXPECT_TRUE(run([&] { return again.accept(); }));
}

TEST_F(ShardAttack, honest_receiver__is_not_taken_for_one_that_hides_marks) {
  ConnectionConfig config;
  config.congestion_control = "dctcp";
  config.ecn = config.check_peer = true;
  server.shard->listen(config);
  c = client.shard->connect(server.address, config, clock.now());
  ASSERT_TRUE(run([&] { return client.count(Kind::connected) == 1 && server.count(Kind::accepted) > 0; }));
  s = server.last().connection;
  const ByteVector message = random_bytes(20'000'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(server.shard->receive(s, buffer, 0), PostResult::ok);
  ASSERT_EQ(client.shard->send(c, message, 0), PostResult::ok);
  EXPECT_TRUE(run([&] { return client.count(Kind::sent) == 1 || client.count(Kind::closed) == 1; }));
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(client.shard->stats().violations, 0U) << "some 35 packets were sent marked";
  EXPECT_EQ(client.shard->stats(c)->ce_packets, 0U) << "which do not count";
}

TEST_F(ShardAttack, sender_that_leaves_holes__is_given_what_is_there_for_all) {
  server.shard->listen({});
  server.on_completion = [&](const mltcp::Completion& completion) {
    for (int i = 0; completion.kind == Kind::accepted && i < 1000; ++i) {
      EXPECT_EQ(server.shard->receive_virtual(completion.connection, 1'000'000, 0), PostResult::ok);
    }
  };
  CheatingClient attacker(server.address);
  ASSERT_TRUE(run([&] { return attacker.accept(); }));
  const std::byte byte{1};
  for (std::uint32_t message = 0; message < 600; ++message) {
    for (std::uint32_t packet = 0; packet < 10; ++packet)
      attacker.say([&](wire::Writer& writer) {
        for (std::uint32_t i = 0; i < 100; ++i) {
          writer.data({.last = false, .message = message, .offset = 2 * (packet * 100 + i) + 1, .length = 1});
          writer.copy(&byte, 1);
        }
      });
    digest(server, 10);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(server.shard->stats().hole_bytes, ShardConfig{}.reassembly_bytes);
  EXPECT_GT(server.shard->stats().beyond_holes, 0U);
  server.shard->abort(server.last().connection, clock.now());
  EXPECT_EQ(server.shard->stats().hole_bytes, 0U);
}

TEST_F(ShardAttack, restarted_peer__is_noticed_at_once) {
  auto old = std::make_unique<Host>();
  const Address place = old->address;
  old->shard->listen({});
  hosts.push_back(old.get());
  const ConnectionId id = client.shard->connect(place, {}, clock.now());
  ASSERT_TRUE(run([&] { return client.count(Kind::connected) == 1 && old->shard->stats().half_open == 0; }));
  hosts.pop_back();
  old.reset();
  socket::SocketIo again({.address = place});
  Shard restarted(again, {});
  const ByteVector message(100);
  ASSERT_EQ(client.shard->send(id, message, 0), PostResult::ok);
  ASSERT_EQ(client.shard->receive_virtual(id, 10, 0), PostResult::ok);
  const Nanos begin = clock.now();
  ASSERT_TRUE(run([&] {
    restarted.poll(clock.now());
    return client.count(Kind::closed) == 1;
  }));
  EXPECT_LT(clock.now() - begin, 1_s) << "not after 30 s";
  EXPECT_EQ(restarted.stats().resets_sent, 1U);
}

}  // namespace
}  // namespace mltcp::attack::shard_attack_test
