// Tests connections whose packets are sealed with a job's key: whole exchanges, and peers that have no key or another
// key, and attackers that only know packets from the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "../transport/test_network.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::seal_test {
namespace {

using namespace testing_network;
using security::JobKey;
using security::packet_key;
using security::Protection;
using Key = std::shared_ptr<const PacketKey>;

/// A pair that stores all packets that were sent.
class SealedPair : public Pair {
 public:
  SealedPair(const Key& client, const std::vector<Key>& server, const PacketIo::Limits& limits = {})
      : Pair(client == nullptr ? ConnectionConfig{} : keyed({client}), keyed(server), kDefaultDelay, limits) {
    raw = [this](std::size_t from, const ByteVector& bytes) { sent.emplace_back(from, bytes); };
  }
  [[nodiscard]] bool saw(const ByteVector& text) const {
    return std::any_of(sent.begin(), sent.end(), [&](const auto& one) {
      return std::search(one.second.begin(), one.second.end(), text.begin(), text.end()) != one.second.end();
    });
  }
  std::vector<std::pair<std::size_t, ByteVector>> sent;
};

ByteVector letters(std::size_t count) {
  ByteVector text(count);
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<std::byte>('a' + i % 23 + i / 1000 % 3);
  return text;
}

bool exchange(Pair& pair, ConnectionId c, ConnectionId s, const ByteVector& message) {
  ByteVector there(message.size());
  ByteVector back(message.size());
  EXPECT_EQ(pair.s().receive(s, there, 1), PostResult::ok);
  EXPECT_EQ(pair.c().receive(c, back, 2), PostResult::ok);
  EXPECT_EQ(pair.c().send(c, message, 3), PostResult::ok);
  EXPECT_EQ(pair.s().send(s, message, 4), PostResult::ok);
  const bool done =
      pair.transfer(1, 1) && pair.run([&] { return !pair.client().of(Kind::received).empty(); }, pair.now() + 60_s);
  return done && there == message && back == message;
}

Status how_it_ended(Pair& pair, Nanos within = 60_s) {
  const ConnectionConfig config;
  EXPECT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) > 0; }, pair.now() + within));
  const auto closed = pair.client().of(Kind::closed);
  return closed.empty() ? Status::ok : closed.front().status;
}

class SealTest : public ::testing::TestWithParam<Protection> {
 protected:
  JobKey job_ = JobKey::generate();
  Key key_ = packet_key(job_, GetParam());
};
INSTANTIATE_TEST_SUITE_P(both, SealTest, ::testing::Values(Protection::encrypt, Protection::authenticate));

TEST_P(SealTest, messages__arrive_and_are_read_by_those_with_the_key_alone) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  const ByteVector message = letters(100'000);
  EXPECT_TRUE(exchange(pair, c, s, message));
  const ByteVector part(message.begin() + 50'000, message.begin() + 50'040);
  EXPECT_EQ(pair.saw(part), GetParam() == Protection::authenticate);
  EXPECT_TRUE(
      std::all_of(pair.sent.begin(), pair.sent.end(), [](const auto& one) { return wire::is_sealed(one.second); }));
  EXPECT_EQ(pair.c().stats().forged_packets + pair.s().stats().forged_packets, 0u);
  EXPECT_EQ(pair.c().stats().malformed_packets + pair.s().stats().malformed_packets, 0u);
}

TEST_P(SealTest, loss_reordering_and_doubles__are_mended) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  std::uint64_t count = 0;
  pair.fate = [&](const Parsed&, Fate& fate) {
    ++count;
    fate.drop = count % 7 == 0;
    fate.copies = count % 5 == 0 ? 2 : 1;
    if (count % 11 == 0) fate.extra_delay = 400_us;
  };
  EXPECT_TRUE(exchange(pair, c, s, letters(200'000)));
  EXPECT_GT(pair.s().stats().replayed_packets, 0u);
}

TEST_P(SealTest, epochs__end_while_messages_are_under_way) {
  const Key often = packet_key(job_, GetParam(), 16);
  SealedPair pair(often, {often});
  const auto [c, s] = pair.connect();
  std::uint64_t count = 0;
  pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = ++count % 13 == 0; };
  EXPECT_TRUE(exchange(pair, c, s, letters(300'000)));
  int changes = 0;
  bool before = false;
  for (const auto& [from, bytes] : pair.sent) {
    if (from != 0) continue;
    const bool epoch = (bytes[1] & std::byte{wire::epoch}) != std::byte{};
    changes += epoch != before ? 1 : 0;
    before = epoch;
  }
  EXPECT_GT(changes, 5);
}

TEST_P(SealTest, virtual_payloads__go_as_sealed_packets) {
  PacketIo::Limits limits;
  limits.virtual_payload = true;
  SealedPair pair(key_, {key_}, limits);
  const auto [c, s] = pair.connect();
  ASSERT_EQ(pair.s().receive_virtual(s, 1'000'000, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send_virtual(c, 1'000'000, 2), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(pair.server().of(Kind::received).front().bytes, 1'000'000u);
}

TEST_P(SealTest, listener_with_several_keys__serves_each) {
  const Key other = packet_key(JobKey::generate(), GetParam());
  SealedPair pair(key_, {other, key_});
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(exchange(pair, c, s, letters(5000)));
}

TEST_P(SealTest, close__is_sealed_and_orderly) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(pair.c().close(c));
  EXPECT_EQ(how_it_ended(pair), Status::ok);
  pair.run_for(1_s);
  EXPECT_EQ(pair.server().of(Kind::closed).size(), 1u);
}

TEST_P(SealTest, changed_packet__changes_nothing) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(exchange(pair, c, s, letters(3000)));
  pair.run_for(10_ms);
  const ConnectionStats before = pair.s().stats(s).value();
  const auto seen = pair.sent;
  std::uint64_t forged = 0;
  for (const auto& [from, bytes] : seen) {
    wire::Header header;
    ASSERT_EQ(wire::Reader::sealed_header(bytes, header), wire::ParseError::none);
    if (from != 0 || header.connection == 0) continue;
    for (std::size_t at = 0; at < bytes.size(); at += at < 64 ? 1 : 37) {
      // Such a change makes the packet one of another protocol or connection.
      if (at == 0 || (at >= 16 && at < 20)) continue;
      ByteVector changed = bytes;
      changed[at] ^= std::byte{0x20};
      pair.inject_as_it_is(pair.server(), pair.client().address, changed);
      ++forged;
    }
  }
  pair.run_for(10_ms);
  EXPECT_GT(forged, 100u);
  const ShardStats& stats = pair.s().stats();
  EXPECT_EQ(stats.forged_packets + stats.truncated_packets + stats.malformed_packets, forged);
  EXPECT_EQ(pair.s().stats(s)->packets_received, before.packets_received);
  pair.client().forget_completions();
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST_P(SealTest, whatever_was_seen_and_is_sent_again__is_not_taken) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(exchange(pair, c, s, letters(30'000)));
  const ConnectionStats before = pair.s().stats(s).value();
  const auto seen = pair.sent;
  for (const auto& [from, bytes] : seen) {
    TestHost& to = from == 0 ? pair.server() : pair.client();
    pair.inject_as_it_is(to, (from == 0 ? pair.client() : pair.server()).address, bytes);
  }
  pair.run_for(1_s);
  EXPECT_GT(pair.s().stats().replayed_packets, 10u);
  EXPECT_EQ(pair.s().stats(s)->messages_received, before.messages_received);
  // CONNECT also arrived a second time, but must not open a second connection.
  EXPECT_EQ(pair.server().of(Kind::accepted).size(), 1u);
  pair.client().forget_completions();
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST_P(SealTest, packet_without_a_seal__is_not_taken_though_its_tag_be_right) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  // CONNECT and ACCEPT contain the tags without encryption.
  for (const auto& [from, bytes] : std::vector(pair.sent)) {
    // Skips encrypted packets, whose bytes may look like CONNECT or ACCEPT by chance.
    if ((bytes[1] & std::byte{wire::clear}) == std::byte{}) continue;
    wire::Reader reader;
    reader.begin_opened(std::span<const std::byte>(bytes).subspan(wire::kHeaderBytes), {}, 0);
    wire::Frame frame;
    if (!reader.next(frame) || (frame.type != FrameType::connect && frame.type != FrameType::accept)) continue;
    wire::Header header = header_for(from == 0 ? c : s, 50);
    header.tag = frame.connect.tag;
    pair.inject_as_it_is(from == 0 ? pair.client() : pair.server(), (from == 0 ? pair.server() : pair.client()).address,
                         forge(header, [](wire::Writer& w) { w.close(wire::CloseReason::aborted); }));
  }
  pair.run_for(1_s);
  EXPECT_EQ(pair.c().stats().forged_packets, 1u);
  EXPECT_EQ(pair.s().stats().forged_packets, 1u);
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST_P(SealTest, packet_without_a_seal__proves_no_address) {
  // An attacker repeats a CONNECT from another address, and reads the tag in the ACCEPT that the server sends there.
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  const ByteVector connect = pair.sent.front().second;
  const Address unknown_peer = Address::v4(0x0A010001, 9);
  const std::size_t before = pair.sent.size();
  pair.inject_as_it_is(pair.server(), unknown_peer, connect);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.s().stats().half_open, 1u);
  ASSERT_GT(pair.sent.size(), before);
  wire::Reader reader;
  reader.begin_opened(std::span<const std::byte>(pair.sent[before].second).subspan(wire::kHeaderBytes), {}, 0);
  wire::Frame frame;
  ASSERT_TRUE(reader.next(frame) && frame.type == FrameType::accept);
  wire::Header header = header_for(frame.connect.source_connection, 50);
  header.tag = frame.connect.tag;
  pair.inject_as_it_is(pair.server(), unknown_peer, forge(header, [](wire::Writer& w) { w.ping(); }));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().forged_packets, 1u);
  EXPECT_EQ(pair.s().stats().half_open, 1u);
  pair.run_for(4_s);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST(Seal, greeting_that_claims_to_be_sealed__and_names_no_key_is_not_taken) {
  Pair pair;
  ByteVector connect = forge(header_for(0), [](wire::Writer& w) {
    w.connect({.max_packet = 1472, .source_connection = 7, .credit = 1, .tag = 8});
  });
  connect[1] |= std::byte{wire::sealed | wire::clear};
  pair.inject_as_it_is(pair.server(), Address::v4(0x0A010001, 9), connect);
  pair.run_for(1_ms);
  EXPECT_EQ(pair.server().count(Kind::accepted), 0u);
  EXPECT_EQ(pair.s().stats().malformed_packets, 1u);
}

TEST_P(SealTest, client_without_the_key__is_told_so) {
  const Key other = packet_key(JobKey::generate(), GetParam());
  for (const Key& clients : {Key(), other}) {
    SealedPair pair(clients, {key_});
    static_cast<void>(pair.c().connect(pair.server().address,
                                       clients == nullptr ? ConnectionConfig{} : keyed({clients}), pair.now()));
    EXPECT_EQ(how_it_ended(pair, 10_s), Status::no_key);
    EXPECT_TRUE(pair.server().completions.empty());
    EXPECT_GT(pair.s().stats().refused_connects, 0u);
  }
}

TEST_P(SealTest, server_without_a_key__tells_so) {
  SealedPair pair(key_, {});
  static_cast<void>(pair.c().connect(pair.server().address, keyed({key_}), pair.now()));
  EXPECT_EQ(how_it_ended(pair, 10_s), Status::no_key);
  EXPECT_TRUE(pair.server().completions.empty());
}

TEST_P(SealTest, refusal_of_somebody_without_the_key__does_not_outrun_the_server) {
  SealedPair pair(key_, {key_});
  // An attacker on the path sees CONNECT, and answers before the server does.
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    wire::Reader reader;
    reader.begin_opened(std::span<const std::byte>(bytes).subspan(wire::kHeaderBytes), {}, 0);
    wire::Frame frame;
    if (from != 0 || !reader.next(frame) || frame.type != FrameType::connect) return;
    wire::Header header = header_for(frame.connect.source_connection);
    header.tag = frame.connect.tag;
    for (const auto reason : {wire::CloseReason::key, wire::CloseReason::refused, wire::CloseReason::full})
      pair.inject_as_it_is(pair.client(), pair.server().address,
                           forge(header, [&](wire::Writer& w) { w.close(reason); }));
    pair.inject_as_it_is(pair.client(), pair.server().address, forge(header, [](wire::Writer& w) {
                           w.accept({.max_packet = 1472, .source_connection = 77, .credit = 1000, .tag = 5});
                         }));
  };
  const auto [c, s] = pair.connect();
  EXPECT_GT(pair.c().stats().forged_packets, 0u);
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST_P(SealTest, reset_of_a_restarted_server__is_accepted_if_it_has_the_key) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(exchange(pair, c, s, letters(3000)));
  ShardConfig config;
  config.seed = 99;
  pair.server().shard = std::make_unique<Shard>(pair.server(), config);
  pair.server().shard->listen(keyed({packet_key(JobKey::generate()), key_}));
  const Nanos began = pair.now();
  const std::byte message{1};
  ASSERT_EQ(pair.c().send(c, {&message, 1}, 9), PostResult::ok);
  // The client has no credit, so it sends requests for credit.
  EXPECT_EQ(how_it_ended(pair, 10_s), Status::unreachable);
  EXPECT_LT((pair.now() - began).count,
            (3_s).count);  // the server tries its two keys in turn, so it answers the second request with the right key
  EXPECT_EQ(pair.c().stats().resets_taken, 1u);
  EXPECT_GT(pair.c().stats().forged_resets, 0u);
}

TEST_P(SealTest, reset_without_the_key__ends_nothing) {
  SealedPair pair(key_, {key_});
  const auto [c, s] = pair.connect();
  wire::Header header;
  for (const auto& [from, bytes] : std::vector(pair.sent)) {
    std::memcpy(&header.tag, bytes.data() + 8, 8);
    pair.inject_as_it_is(pair.client(), pair.server().address,
                         forge(header, [&, id = s](wire::Writer& w) { w.reset(id); }));
    ByteVector sealed(wire::kHeaderBytes + wire::kResetFrameBytes);
    wire::Writer writer(sealed);
    writer.reset(s);
    wire::Header flags;
    flags.flags = wire::sealed | wire::clear;
    static_cast<void>(writer.finish_unsealed(flags));
    std::memcpy(sealed.data() + 4, bytes.data() + 4, 12);
    pair.inject_as_it_is(pair.client(), pair.server().address, sealed);
  }
  pair.run_for(1_s);
  EXPECT_EQ(pair.c().stats().forged_resets, 2 * pair.sent.size());
  EXPECT_TRUE(exchange(pair, c, s, letters(3000)));
}

TEST(Seal, settings__are_refused_with_the_cause) {
  Pair pair;
  const Key key = packet_key(JobKey::generate());
  EXPECT_THROW(pair.c().connect(pair.server().address, keyed({key, key}), pair.now()), std::exception);
  EXPECT_THROW(pair.s().listen(keyed({nullptr})), std::exception);
}

}  // namespace
}  // namespace mltcp::seal_test
