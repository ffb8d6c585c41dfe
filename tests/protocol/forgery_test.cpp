// Tests packets that are forged by an attacker on the path who knows the tags. The forged packets have false spans, or
// higher numbers than the packets of the real peer. They arrive before packets that the real peer sends next.
//
// The rule under test: a message that a sender reports as `ok` has arrived, whatever packet numbers arrived before, and
// the connection continues. docs/reference/checks.md lists the forgeries that only sealing prevents (the bytes of a
// DATA, a CLOSE, an ACK). tag_test.cpp tests attackers who do not know the tags.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp::forgery_test {
namespace {

using namespace testing_network;

constexpr std::array kJumps{std::uint64_t{1},       std::uint64_t{3},       std::uint64_t{20},     std::uint64_t{100},
                            std::uint64_t{1} << 16, std::uint64_t{1} << 22, std::uint64_t{1} << 31};
constexpr std::array kSpans{std::uint32_t{0}, std::uint32_t{1}, std::uint32_t{50}, ~std::uint32_t{0}};

/// A connection over which a test sends messages one after another. When a message completes as `ok`, checks that it
/// has arrived.
class Victim {
 public:
  explicit Victim(ConnectionConfig config = {}) : pair(config) {
    std::tie(c, s) = pair.connect();
    pair.client().on_completion = [this](const Completion& completion) {
      if (completion.kind != Kind::sent || completion.status != Status::ok) return;
      EXPECT_EQ(received(completion.tag), true) << "told ok for bytes that are missing, message " << completion.tag;
      ++sent_ok;
    };
  }

  /// Returns the next packet number that host `from` will use.
  [[nodiscard]] std::uint64_t next_number(std::size_t from) const {
    std::uint64_t next = 0;
    for (const Parsed& packet : pair.log)
      if (packet.from == from && packet.header.connection != 0) next = std::max(next, packet.header.packet_number + 1);
    return next;
  }
  void forge_to_server(std::uint64_t ahead, std::uint32_t span, const std::function<void(wire::Writer&)>& write) {
    pair.inject(pair.server(), pair.client().address, forge(header_for(s, next_number(0) + ahead - 1, span), write));
  }
  void forge_to_client(std::uint64_t ahead, std::uint32_t span, const std::function<void(wire::Writer&)>& write) {
    pair.inject(pair.client(), pair.server().address, forge(header_for(c, next_number(1) + ahead - 1, span), write));
  }

  void post(std::size_t size) {
    messages.push_back(random_bytes(size, messages.size() + 1));
    buffers.push_back(ByteVector(size));
    ASSERT_EQ(pair.s().receive(s, buffers.back(), buffers.size() - 1), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, messages.back(), messages.size() - 1), PostResult::ok);
  }
  /// Expects that all posted messages arrive. Then posts another message, and expects that it arrives.
  void expect_to_go_on(const std::string& after) {
    pair.run([this] { return finished(); }, pair.now() + 20_s);
    post(30'000);
    EXPECT_TRUE(pair.run([this] { return finished(); }, pair.now() + 20_s)) << after;
    EXPECT_EQ(buffers, messages) << after;
    EXPECT_TRUE(pair.c().exists(c)) << after;
    EXPECT_TRUE(pair.s().exists(s)) << after;
  }
  [[nodiscard]] bool finished() const { return sent_ok == messages.size() && pair_received() == messages.size(); }

  Pair pair;
  ConnectionId c = 0;
  ConnectionId s = 0;
  std::deque<ByteVector> messages;
  std::deque<ByteVector> buffers;
  std::size_t sent_ok = 0;

 private:
  [[nodiscard]] std::size_t pair_received() const {
    return static_cast<std::size_t>(
        std::count_if(server_completions().begin(), server_completions().end(), [](const Completion& completion) {
          return completion.kind == Kind::received && completion.status == Status::ok;
        }));
  }
  [[nodiscard]] const std::vector<Completion>& server_completions() const {
    return const_cast<Pair&>(pair).server().completions;
  }
  [[nodiscard]] bool received(std::uint64_t tag) const { return buffers[tag] == messages[tag]; }
};

/// Returns a DATA frame of `bytes` bytes that the peer has not sent.
auto garbage(std::uint32_t message, std::uint32_t offset, std::uint32_t bytes, bool last) {
  return [=](wire::Writer& w) {
    w.data({.last = last, .message = message, .offset = offset, .length = bytes});
    const ByteVector what(bytes, std::byte{0xEE});
    w.copy(what.data(), what.size());
  };
}

struct Forgery {
  const char* name;
  std::function<void(wire::Writer&)> write;
};
/// Returns frames that do not change the bytes of messages in flight. `delivered` is the number of a complete message,
/// and `beyond` the number of a message without a posted buffer.
std::vector<Forgery> forgeries(std::uint32_t delivered, std::uint32_t beyond) {
  return {
      {"PING", [](wire::Writer& w) { w.ping(); }},
      {"DATA of a message that is complete", garbage(delivered, 0, 5, true)},
      {"DATA of a message without a buffer", garbage(beyond, 0, 5, true)},
      {"CREDIT", [](wire::Writer& w) { w.credit({.messages = 1}); }},
      {"ACK",
       [](wire::Writer& w) {
         acknowledge(w, 0, 0);
         w.ping();
       }},
      {"nothing", [](wire::Writer&) {}},
  };
}

TEST(Forgery, number_that_was_never_sent__ends_nothing) {
  // The receiver acknowledges the forged number, because it cannot detect the forgery.
  for (const bool to_server : {true, false})
    for (const std::uint64_t jump : kJumps)
      for (const Forgery& forgery : forgeries(0, 9)) {
        if (!to_server && std::string(forgery.name).starts_with("DATA")) continue;  // no message was sent to the client
        Victim victim;
        victim.post(5000);
        ASSERT_TRUE(victim.pair.run([&] { return victim.finished(); }, victim.pair.now() + 1_s));
        if (to_server)
          victim.forge_to_server(jump, 0, forgery.write);
        else
          victim.forge_to_client(jump, 0, forgery.write);
        victim.pair.run_for(10_us);
        // After a forged PING, sends so many packets that the receiver no longer remembers the forged number.
        victim.post(std::string(forgery.name) == "PING" ? 2'000'000 : 30'000);
        const Nanos begin = victim.pair.now();
        victim.expect_to_go_on(forgery.name);
        EXPECT_LT(victim.pair.now() - begin, 1_s) << forgery.name << jump;
        EXPECT_EQ(victim.pair.c().stats().violations + victim.pair.s().stats().violations, 0u);
      }
}

TEST(Forgery, number_that_was_skipped__ends_nothing_the_first_time) {
  Victim victim;
  // An attacker on the path observes that the peer skipped a packet number, and sends a packet with this number.
  std::uint64_t next = 0;
  int forged = 0;
  victim.pair.fate = [&](const Parsed& packet, Fate&) {
    if (packet.from != 0) return;
    if (next != 0 && packet.header.packet_number == next + 1 && forged++ == 0)
      victim.pair.inject(victim.pair.server(), victim.pair.client().address,
                         forge(header_for(victim.s, next), [](wire::Writer& w) { w.ping(); }));
    next = std::max(next, packet.header.packet_number + 1);
  };
  for (int i = 0; i < 10; ++i) victim.post(300'000);
  victim.expect_to_go_on("skipped");
  EXPECT_GT(forged, 2) << "or the test shows nothing";
}

TEST(Forgery, number_of_a_packet_under_way__the_real_packet_still_counts) {
  for (const std::uint64_t jump : {1U, 3U})
    for (const std::uint32_t span : kSpans)
      for (const Forgery& forgery : forgeries(0, 9)) {
        Victim victim;
        victim.post(5000);
        ASSERT_TRUE(victim.pair.run([&] { return victim.finished(); }, victim.pair.now() + 1_s));
        victim.post(300'000);
        victim.pair.run_for(170_us);
        // `arrived` is the largest packet number that has arrived. The forged number is larger by `jump`.
        std::uint64_t arrived = 0;
        for (const Parsed& packet : victim.pair.log)
          if (packet.from == 0 && packet.at + TestNetwork::kDefaultDelay <= victim.pair.now())
            arrived = std::max(arrived, packet.header.packet_number);
        ASSERT_LT(arrived + 4, victim.next_number(0));
        victim.pair.inject(victim.pair.server(), victim.pair.client().address,
                           forge(header_for(victim.s, arrived + jump, span), forgery.write));
        victim.expect_to_go_on(std::string(forgery.name) + " ahead by " + std::to_string(jump) + ", span " +
                               std::to_string(span));
      }
}

TEST(Forgery, number_of_a_packet_that_is_lost__its_bytes_are_sent_again) {
  // The worst case: the receiver counts the forged packet, and the real packet with the same number never arrives.
  for (const std::uint64_t which : {0U, 1U, 7U, 20U, 35U}) {
    for (const bool full_integrity : {false, true}) {
      Victim victim(config_with([&](ConnectionConfig& config) { config.full_integrity = full_integrity; }));
      victim.pair.run_for(1_ms);
      const std::uint64_t number = victim.next_number(0) + which;
      victim.pair.fate = [&](const Parsed& packet, Fate& fate) {
        // The forged packet arrives before all packets that are now sent.
        if (packet.from != 0 || packet.header.packet_number != number) return;
        fate.drop = true;
        victim.pair.inject(victim.pair.server(), victim.pair.client().address,
                           forge(header_for(victim.s, number, 0), [](wire::Writer& w) { w.ping(); }));
      };
      for (int i = 0; i < 8; ++i) victim.post(which == 35 ? 6000 : 3000);
      victim.expect_to_go_on("packet " + std::to_string(which) + " lost");
      EXPECT_GE(victim.pair.c().stats(victim.c)->repaired_messages, 1u) << which;
      EXPECT_LE(victim.pair.c().stats(victim.c)->repaired_messages, 2u) << "a packet has bytes of two messages at most";
    }
  }
}

TEST(Forgery, numbers_of_many_lost_packets__all_is_sent_again) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Victim victim;
    Random random(seed);
    bool attacked = true;
    victim.pair.fate = [&](const Parsed& packet, Fate& fate) {
      if (!attacked || packet.from != 0 || !random.chance(0.05)) return;
      fate.drop = true;
      victim.pair.inject(victim.pair.server(), victim.pair.client().address,
                         forge(header_for(victim.s, packet.header.packet_number, packet.header.span),
                               [](wire::Writer& w) { w.ping(); }));
    };
    for (int i = 0; i < 30; ++i) {
      victim.post(random.below(20'000));
      victim.pair.run_for(300_us);
    }
    victim.pair.run_for(100_ms);
    attacked = false;
    victim.expect_to_go_on("seed " + std::to_string(seed));
    EXPECT_GT(victim.pair.c().stats(victim.c)->repaired_messages, 0u);
  }
}

TEST(Forgery, garbage_where_real_bytes_come_later__is_written_over) {
  Victim victim;
  victim.post(100'000);
  // The forged packet arrives before all real data packets, and has the number of the last packet in flight.
  victim.pair.run_for(20_us);
  victim.forge_to_server(0, 0, garbage(0, 50'000, 1000, false));
  victim.expect_to_go_on("garbage");
}

TEST(Forgery, same_number_with_other_bytes__is_counted_and_acknowledged) {
  Victim victim;
  victim.post(50'000);
  victim.pair.run_for(70_us);
  ASSERT_GT(victim.pair.c().stats(victim.c)->in_flight, 3000u);
  for (const std::uint64_t ahead : {0U, 1U, 2U})  // numbers of packets that are in flight
    victim.pair.inject(
        victim.pair.server(), victim.pair.client().address,
        forge(header_for(victim.s, victim.next_number(0) - 1 - ahead, 0), [](wire::Writer& w) { w.ping(); }));
  victim.expect_to_go_on("pings");
  EXPECT_GT(victim.pair.s().stats(victim.s)->conflicting_packets, 0u);
}

TEST(Forgery, real_packets_that_come_twice__are_no_conflict) {
  Victim victim;
  victim.pair.fate = [](const Parsed&, Fate& fate) { fate.copies = 2; };
  victim.post(300'000);
  victim.expect_to_go_on("copies");
  const ConnectionStats stats = victim.pair.s().stats(victim.s).value();
  EXPECT_GT(stats.duplicate_packets, 200u);
  EXPECT_EQ(stats.conflicting_packets, 0u);
  EXPECT_EQ(victim.pair.c().stats(victim.c)->repaired_messages, 0u);
}

TEST(Forgery, close_far_ahead__ends_without_ok_for_what_is_missing) {
  // Without sealing, a host cannot detect a forged CLOSE. Even so, a message may complete as ok only if it has arrived.
  for (const auto reason : {wire::CloseReason::done, wire::CloseReason::aborted, wire::CloseReason::idle})
    for (const std::uint64_t jump : kJumps)
      for (const bool to_server : {false, true}) {
        // This jump is near the bound, where the result depends on the packets in flight.
        if (jump == std::uint64_t{1} << 22) continue;
        Victim victim;
        victim.post(300'000);
        victim.pair.run_for(170_us);
        const auto write = [&](wire::Writer& w) { w.close(reason); };
        if (to_server)
          victim.forge_to_server(jump, 0, write);
        else
          victim.forge_to_client(jump, 0, write);
        victim.pair.run_for(60_s);
        // The host ignores a CLOSE if its packet number is higher than any sender can have reached.
        EXPECT_EQ(victim.sent_ok, jump > std::uint64_t{1} << 22 ? 1u : 0u) << jump;
        EXPECT_EQ(victim.pair.c().exists(victim.c), jump > std::uint64_t{1} << 22) << jump;
      }
}

TEST(Forgery, credit_beyond_all_that_can_be_posted__is_a_violation) {
  Victim victim;
  const std::uint64_t malformed = victim.pair.c().stats().malformed_packets;
  victim.forge_to_client(0, 0, [](wire::Writer& w) { w.credit({.messages = 70'000}); });
  victim.pair.run_for(1_ms);
  EXPECT_EQ(victim.pair.c().stats().malformed_packets, malformed + 1);
  std::byte byte{};
  ASSERT_EQ(victim.pair.c().send(victim.c, {&byte, 1}, 0), PostResult::ok);
  victim.pair.run_for(100_ms);
  EXPECT_EQ(victim.pair.count([](const Parsed& p) { return is_data(p); }), 0u);
}

TEST(Forgery, credit_whose_number_was_taken__is_told_when_asked_for) {
  Pair pair;
  const auto [c, s] = pair.connect();
  std::byte in{};
  const std::byte out{0x11};
  int left = 1;
  pair.fate = [&, client = c](const Parsed& packet, Fate& fate) {
    if (!packet.has(FrameType::credit) || left-- <= 0) return;
    fate.drop = true;
    pair.inject(pair.client(), pair.server().address,
                forge(header_for(client, packet.header.packet_number, 0), [](wire::Writer& w) { w.ping(); }));
  };
  ASSERT_EQ(pair.s().receive(s, {&in, 1}, 0), PostResult::ok);
  pair.run_for(100_ms);
  ASSERT_EQ(left, 0);
  ASSERT_EQ(pair.c().send(c, {&out, 1}, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1, 5_s));
  EXPECT_EQ(in, out);
}

TEST(Forgery, abort_that_the_peer_does_not_hear_of__acknowledges_no_byte_more) {
  // Data that arrives after the abort has no buffer. An acknowledgement would let the peer report this data as ok.
  Pair pair;
  const auto [c, s] = pair.connect();
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::close); };
  const auto message = random_bytes(20'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(20_us);
  pair.s().abort(s, pair.now());
  pair.run_for(100_s);
  EXPECT_EQ(pair.client().statuses(Kind::sent), Statuses{Status::unreachable});
}

// ---- One forged packet: no lasting effect ----

const auto ping = [](wire::Writer& w) { w.ping(); };

TEST(Forgery, data_beyond_the_end__the_message_comes_once_more) {
  for (const bool last : {false, true})
    for (const bool early : {false, true}) {
      Victim victim;
      victim.post(100'000);
      if (!early) victim.pair.run_for(170_us);
      victim.forge_to_server(0, 0, garbage(0, 2'000'000, 5, last));
      victim.expect_to_go_on("beyond the end");
      EXPECT_EQ(victim.pair.c().stats(victim.c)->repaired_messages, 1u);
    }
}

TEST(Forgery, end_before_data_that_has_come__the_message_comes_once_more) {
  Victim victim;
  victim.post(300'000);
  ASSERT_TRUE(victim.pair.run([&] { return victim.buffers[0][5000] != std::byte{}; }, victim.pair.now() + 1_s));
  victim.forge_to_server(0, 0, garbage(0, 0, 50, true));
  victim.expect_to_go_on("end");
  EXPECT_EQ(victim.pair.c().stats(victim.c)->repaired_messages, 1u);
}

TEST(Forgery, last_word_on_credit__is_disproved_by_more) {
  Victim victim;
  victim.forge_to_client(0, 0, [](wire::Writer& w) { w.credit({.messages = 0, .final = true}); });
  victim.pair.run_for(1_ms);
  victim.post(1000);
  victim.expect_to_go_on("last word");
}

TEST(Forgery, message_that_was_not_sent__does_not_end_those_before_it) {
  Victim victim;
  for (const std::size_t size : {1000U, 5U}) {
    victim.messages.push_back(random_bytes(size));
    victim.buffers.push_back(ByteVector(size));
    ASSERT_EQ(victim.pair.s().receive(victim.s, victim.buffers.back(), 0), PostResult::ok);
  }
  victim.pair.run_for(1_ms);
  victim.forge_to_server(0, 0, garbage(1, 0, 5, true));
  victim.pair.run_for(1_ms);
  ASSERT_EQ(victim.pair.c().send(victim.c, victim.messages[0], 0), PostResult::ok);
  victim.pair.run_for(5_s);
  EXPECT_EQ(victim.sent_ok, 1u);
  EXPECT_TRUE(victim.pair.c().exists(victim.c));
  EXPECT_TRUE(victim.pair.s().exists(victim.s));
  EXPECT_EQ(victim.pair.c().stats(victim.c)->repaired_messages, 0u);
}

TEST(Forgery, accept_that_is_lost_and_acknowledged__is_sent_for_the_next_connect) {
  Pair pair;
  pair.lose_first(1, FrameType::accept);
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(60_us);
  ASSERT_EQ(pair.server().count(Kind::accepted), 1u);
  const ConnectionId s = pair.server().of(Kind::accepted)[0].connection;
  pair.inject(pair.server(), pair.client().address,
              forge(header_for(s, 1), [](wire::Writer& w) { acknowledge(w, 0, 0); }));
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
  EXPECT_TRUE(pair.c().exists(c));
  EXPECT_TRUE(pair.s().exists(s));
}

TEST(Forgery, credit_for_a_thousand__ends_both_ends_alike) {
  // The server has no buffers for the forged credit. Both hosts end the connection after give_up_after.
  Victim victim;
  victim.forge_to_client(0, 0, [](wire::Writer& w) { w.credit({.messages = 1000}); });
  victim.pair.run_for(1_ms);
  const std::byte byte{};
  ASSERT_EQ(victim.pair.c().send(victim.c, {&byte, 1}, 0), PostResult::ok);
  victim.pair.run_for(100_s);
  victim.pair.expect_both_closed(Status::unreachable);
}

/// A client whose server is played by the test.
struct ForgingServer {
  ForgingServer() {
    pair.server().dead = true;
    message = random_bytes(20'000);
    c = pair.c().connect(pair.server().address, {}, pair.now());
    EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    pair.run_for(1_us);
    answer([](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 7, .credit = 1}); });
  }
  void answer(const std::function<void(wire::Writer&)>& write) {
    pair.inject(pair.client(), pair.server().address, forge(header_for(c, number++, 0), write));
    pair.run_for(1_ms);
  }
  /// Acknowledges all packets. If `report_whole`, the acknowledgement also states that no message is complete.
  void acknowledge(bool report_whole) {
    answer([&](wire::Writer& w) {
      wire::AckFrame ack{};
      ack.range_count = 1;
      std::uint64_t largest = 0;
      for (const Parsed& packet : pair.log) largest = std::max(largest, packet.header.packet_number);
      ack.ranges[0] = {0, largest};
      ack.has_whole = report_whole;
      w.ack(ack);
    });
  }

  Pair pair;
  ByteVector message;
  ConnectionId c = 0;
  std::uint64_t number = 0;
};

TEST(Forgery, peer_that_acknowledges_and_never_has_it__is_given_up) {
  ForgingServer server;
  for (int i = 0; i < 300 && server.pair.c().exists(server.c); ++i) server.acknowledge(true);
  EXPECT_FALSE(server.pair.c().exists(server.c));
  EXPECT_EQ(server.pair.client().statuses(Kind::sent), Statuses{Status::aborted});
}

TEST(Forgery, peer_that_does_not_report_whole_messages__is_accepted) {
  ForgingServer server;
  for (int i = 0; i < 10; ++i) server.acknowledge(false);
  EXPECT_EQ(server.pair.client().statuses(Kind::sent), Statuses{Status::ok});
}

TEST(Forgery, acknowledgement_that_does_not_tell__is_not_of_a_peer_that_did) {
  ForgingServer server;
  server.acknowledge(true);
  for (int i = 0; i < 3; ++i) server.acknowledge(false);
  EXPECT_TRUE(server.pair.c().exists(server.c));
  EXPECT_EQ(server.pair.client().count(Kind::sent), 0u);
}

}  // namespace
}  // namespace mltcp::forgery_test
