// Tests the protocol by which hosts ask each other for queue pairs, in virtual time.
#include "mltcp/rdma/resolution.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::rdma {
namespace {

using State = Resolution::State;
using namespace mltcp::literals;

const Address kA = Address::parse("10.0.0.1:5000");
const Address kB = Address::parse("10.0.0.2:5000");
constexpr RemoteQueue kQueueA{.number = 17, .key = 0x1234567, .lid = 0, .longest = 1024};
constexpr RemoteQueue kQueueB{.number = 0xFFFFFF, .key = 0x7FFFFFFF, .lid = 3, .longest = 4096};

std::function<std::uint64_t()> numbers(std::uint64_t seed) {
  return [state = seed]() mutable { return state = state * 6364136223846793005ULL + 1442695040888963407ULL; };
}

/// Two hosts, A and B, with one shard each, and the datagrams between them.
struct Pair {
  explicit Pair(ResolutionConfig config = {}) : a(config, {kQueueA}, numbers(1)), b(config, {kQueueB}, numbers(2)) {}

  /// Returns the question that A sends for B's address.
  Resolution::Outgoing question() {
    Resolution::Outgoing asked;
    a.find(0, kB, now);
    EXPECT_TRUE(a.next(asked, now));
    return asked;
  }
  /// Delivers all datagrams that are due. If `loses` is set, the network loses every datagram that A sends.
  void carry(bool loses = false) {
    Resolution::Outgoing out;
    for (bool more = true; more;) {
      more = false;
      while (a.next(out, now)) {
        sent.push_back(out);
        more = true;
        if (!loses && out.to == kB) b.receive(0, kA, out.bytes, now);
      }
      while (b.next(out, now)) {
        more = true;
        if (out.to == kA) a.receive(0, kB, out.bytes, now);
      }
    }
  }

  Nanos now = 1_s;
  Resolution a;
  Resolution b;
  std::vector<Resolution::Outgoing> sent;  ///< datagrams that A sent
};

TEST(Resolution, find__asks_the_address_itself_and_learns_what_it_answers) {
  Pair pair;
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::asked);
  EXPECT_LE(pair.a.deadline(), pair.now);
  pair.carry();
  const auto found = pair.a.find(0, kB, pair.now);
  EXPECT_EQ(found.state, State::known);
  EXPECT_EQ(found.queue, kQueueB);
  EXPECT_EQ(pair.sent.size(), 1u);
  EXPECT_EQ(pair.sent[0].to, kB);
  EXPECT_EQ(pair.b.counters().answers, 1u);
  EXPECT_TRUE(pair.a.deadline().is_never());
}

TEST(Resolution, next__asks_again_at_growing_intervals_and_gives_up) {
  Pair pair;
  pair.a.find(0, kB, pair.now);
  std::vector<std::int64_t> at;
  const Nanos start = pair.now;
  while (!pair.a.deadline().is_never() && at.size() < 6) {
    pair.now = std::max(pair.a.deadline(), pair.now);
    const std::size_t before = pair.sent.size();
    pair.carry(true);
    if (pair.sent.size() > before) at.push_back((pair.now - start).count / 1'000'000);
  }
  EXPECT_EQ(at, (std::vector<std::int64_t>{0, 50, 150, 350, 750}));
  EXPECT_EQ(pair.a.take_unreachable(), std::vector<Address>{kB});
  EXPECT_EQ(pair.now - start, 1550_ms);
  EXPECT_EQ(pair.a.find(0, kB, pair.now + 999_ms).state, State::unreachable);
  EXPECT_TRUE(pair.a.deadline().is_never());
  pair.now += 1_s;
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::asked) << "it may be there by now";
  pair.carry();
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::known);
}

TEST(Resolution, find__asks_a_known_peer_again_while_it_is_in_use_and_finds_its_new_queue_pair) {
  Pair pair;
  pair.a.find(0, kB, pair.now);
  pair.carry();
  pair.now += 999_ms;
  pair.a.find(0, kB, pair.now);
  EXPECT_TRUE(pair.a.deadline().is_never()) << "it is fresh";
  pair.now += 1_ms;
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::known) << "and used as it is meanwhile";
  EXPECT_FALSE(pair.a.deadline().is_never());
  Resolution anew({}, {kQueueA}, numbers(3));  // B after a restart
  Resolution::Outgoing out;
  ASSERT_TRUE(pair.a.next(out, pair.now));
  anew.receive(0, kA, out.bytes, pair.now);
  ASSERT_TRUE(anew.next(out, pair.now));
  EXPECT_TRUE(pair.a.receive(0, kB, out.bytes, pair.now)) << "news";
  EXPECT_EQ(pair.a.find(0, kB, pair.now).queue, kQueueA);
  EXPECT_EQ(pair.a.counters().learnt, 2u);
}

TEST(Resolution, find__keeps_what_is_known_of_a_peer_that_no_longer_answers) {
  Pair pair;
  pair.a.find(0, kB, pair.now);
  pair.carry();
  pair.now += 2_s;
  pair.a.find(0, kB, pair.now);
  for (; !pair.a.deadline().is_never(); pair.now = std::max(pair.a.deadline(), pair.now + 1_ns)) pair.carry(true);
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::known);
  EXPECT_TRUE(pair.a.take_unreachable().empty());
}

TEST(Resolution, receive__accepts_only_answers_of_the_peer_that_received_the_question) {
  Pair pair;
  const Resolution::Outgoing question = pair.question();
  pair.b.receive(0, kA, question.bytes, pair.now);
  Resolution::Outgoing answer;
  ASSERT_TRUE(pair.b.next(answer, pair.now));

  EXPECT_FALSE(pair.a.receive(0, Address::parse("10.0.0.3:5000"), answer.bytes, pair.now)) << "from elsewhere";
  EXPECT_FALSE(pair.a.receive(0, Address::parse("10.0.0.2:5001"), answer.bytes, pair.now)) << "from another port";
  auto forged = answer.bytes;
  forged[8] ^= std::byte{1};
  EXPECT_FALSE(pair.a.receive(0, kB, forged, pair.now)) << "with another nonce";
  EXPECT_EQ(pair.a.counters().unasked, 3u);
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::asked);
  EXPECT_TRUE(pair.a.receive(0, kB, answer.bytes, pair.now));
  auto late = answer.bytes;
  late[19] ^= std::byte{1};
  EXPECT_FALSE(pair.a.receive(0, kB, late, pair.now)) << "a second one, after the first";
  EXPECT_EQ(pair.a.find(0, kB, pair.now).queue, kQueueB);
}

TEST(Resolution, receive__drops_what_is_malformed) {
  Pair pair;
  const Resolution::Outgoing question = pair.question();
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    auto bytes = question.bytes;
    bytes[at] = std::byte{value};
    const auto before = pair.b.counters().malformed;
    pair.b.receive(0, kA, bytes, pair.now);
    return pair.b.counters().malformed == before + 1;
  };
  EXPECT_TRUE(refused(0, 'X'));
  EXPECT_TRUE(refused(4, 2)) << "a later version";
  EXPECT_TRUE(refused(5, 3)) << "neither question nor answer";
  EXPECT_TRUE(refused(5, 2)) << "an answer with queue pair 0";
  Resolution narrow({}, {{.number = 5, .key = 1, .lid = 0, .longest = 255}}, numbers(6));
  narrow.receive(0, kA, question.bytes, pair.now);
  Resolution::Outgoing answer;
  ASSERT_TRUE(narrow.next(answer, pair.now));
  EXPECT_FALSE(pair.a.receive(0, kB, answer.bytes, pair.now)) << "no queue pair takes so little";
  EXPECT_EQ(pair.a.counters().malformed, 1u);
  for (std::size_t length = 0; length < question.bytes.size(); ++length) {
    const auto before = pair.b.counters().malformed;
    pair.b.receive(0, kA, std::span(question.bytes).first(length), pair.now);
    EXPECT_EQ(pair.b.counters().malformed, before + 1) << length;
  }
  Resolution::Outgoing out;
  EXPECT_FALSE(pair.b.next(out, pair.now)) << "none of it was answered";
}

TEST(Resolution, receive__answers_one_host_so_many_a_second_and_no_longer_than_the_question) {
  Pair pair({.answers_per_second = 10});
  const Resolution::Outgoing question = pair.question();
  const auto answered = [&] {
    int count = 0;
    Resolution::Outgoing out;
    for (int i = 0; i < 100; ++i) {
      pair.b.receive(0, kA, question.bytes, pair.now);
      while (pair.b.next(out, pair.now)) {
        ++count;
        EXPECT_EQ(out.bytes.size(), question.bytes.size());
      }
    }
    return count;
  };
  EXPECT_EQ(answered(), 10);
  EXPECT_EQ(answered(), 0);
  pair.now += 500_ms;
  EXPECT_EQ(answered(), 5);
  pair.now += 1_s * 3600;
  EXPECT_EQ(answered(), 10) << "a second's worth is the most that is saved";
}

TEST(Resolution, receive__answers_others_while_one_host_floods) {
  Pair pair({.answers_per_second = 10});
  const Resolution::Outgoing question = pair.question();
  const auto answers_to = [&](const Address& asker, int questions) {
    int count = 0;
    Resolution::Outgoing out;
    for (int i = 0; i < questions; ++i) {
      pair.b.receive(0, asker, question.bytes, pair.now);
      while (pair.b.next(out, pair.now)) ++count;
    }
    return count;
  };
  int flooded = 0;
  for (std::uint16_t port = 1; port <= 1000; ++port) flooded += answers_to(Address::v4(0x0A000063, port), 1);
  EXPECT_EQ(flooded, 10) << "one host, whatever its ports";
  EXPECT_EQ(answers_to(kA, 5), 5);
  EXPECT_EQ(pair.b.counters().unanswered, 990u);
}

// A host cannot distinguish a peer's own questions from questions that others forge in the peer's name. Both kinds
// count towards the peer's limit of answers.
TEST(Resolution, receive__answers_whom_a_flood_is_forged_in_the_name_of_by_his_share) {
  Pair pair({.answers_per_second = 100});
  const Resolution::Outgoing question = pair.question();
  Random random(5);
  int asked = 0;
  int answered = 0;
  // A thousand questions arrive per second, ten times the limit. One question in a hundred comes from the peer itself.
  for (int i = 0; i < 100'000; ++i) {
    pair.now += Nanos(static_cast<std::int64_t>(random.below(2'000'000)));
    const bool is_own = random.below(100) == 0;
    pair.b.receive(0, kA, question.bytes, pair.now);
    Resolution::Outgoing out;
    const bool is_answered = pair.b.next(out, pair.now);
    asked += is_own ? 1 : 0;
    answered += is_own && is_answered ? 1 : 0;
  }
  EXPECT_GT(answered, asked / 20) << "a tenth on the average";
  EXPECT_LT(answered, asked / 5);
}

TEST(Resolution, find__forgets_the_peer_that_was_not_used_for_longest) {
  Pair pair({.max_peers = 2});
  pair.a.find(0, kB, pair.now);
  pair.carry();
  pair.now += 1_ms;
  pair.a.find(0, Address::parse("10.0.0.3:1"), pair.now);
  pair.now += 1_ms;
  // One of the two entries waits for an answer, which exceeds the permitted share of a quarter. So the new peer
  // replaces the waiting entry, and the entry of B stays.
  EXPECT_EQ(pair.a.find(0, Address::parse("10.0.0.4:1"), pair.now).state, State::asked);
  EXPECT_EQ(pair.a.take_unreachable(), std::vector<Address>{Address::parse("10.0.0.3:1")}) << "whom packets wait for";
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::known);
  EXPECT_EQ(pair.a.counters().displaced, 1u);

  Pair known({.max_peers = 2});
  Resolution c({}, {kQueueB}, numbers(4));
  const Address addresses[] = {Address::parse("10.0.0.3:1"), Address::parse("10.0.0.4:1"), kB};
  for (const Address& address : addresses) {
    Resolution::Outgoing out;
    EXPECT_EQ(known.a.find(0, address, known.now).state, State::asked);
    ASSERT_TRUE(known.a.next(out, known.now));
    c.receive(0, kA, out.bytes, known.now);
    ASSERT_TRUE(c.next(out, known.now));
    EXPECT_TRUE(known.a.receive(0, address, out.bytes, known.now));
    known.now += 1_ms;
    known.a.find(0, addresses[0], known.now);
  }
  EXPECT_EQ(known.a.find(0, addresses[0], known.now).state, State::known);
  EXPECT_EQ(known.a.find(0, addresses[2], known.now).state, State::known);
  EXPECT_EQ(known.a.find(0, addresses[1], known.now).state, State::asked) << "it was not used";
}

TEST(Resolution, find__gets_through_a_flood_of_peers_that_never_answer) {
  Pair pair;
  std::uint32_t unknown_peer = 0x0B000000;
  const auto flood = [&](int peers) {
    for (int i = 0; i < peers; ++i) pair.a.find(0, Address::v4(unknown_peer++, 9), pair.now);
  };
  pair.a.find(0, kB, pair.now);
  pair.carry();
  std::uint64_t others = 0;
  for (int round = 0; round < 50; ++round) {
    flood(1000);
    // Each round looks up one more peer, which answers after 1 ms. Before the answer arrives, A looks up a thousand
    // other peers.
    const Address peer = Address::v4(0x0C000000U + static_cast<std::uint32_t>(round), 5000);
    Resolution other({}, {kQueueB}, numbers(7));
    Resolution::Outgoing out;
    std::optional<Resolution::Outgoing> question;
    ASSERT_EQ(pair.a.find(0, peer, pair.now).state, State::asked);
    while (pair.a.next(out, pair.now))
      if (out.to == peer) question = out;
    ASSERT_TRUE(question);
    pair.now += 1_ms;
    flood(1000);
    other.receive(0, kA, question->bytes, pair.now);
    ASSERT_TRUE(other.next(out, pair.now));
    others += pair.a.receive(0, peer, out.bytes, pair.now);
    ASSERT_EQ(pair.a.find(0, kB, pair.now).state, State::known) << "whom we knew before";
  }
  EXPECT_EQ(others, 50u);
}

TEST(Resolution, next__repeats_so_many_questions_a_second_to_all_together) {
  Pair pair({.max_peers = 1000, .repeats_per_second = 100});
  for (std::uint32_t i = 0; i < 500; ++i) pair.a.find(0, Address::v4(0x0B000000 + i, 9), pair.now);
  pair.carry(true);
  EXPECT_EQ(pair.sent.size(), 500u) << "each once";
  pair.now += 50_ms;
  pair.carry(true);
  EXPECT_EQ(pair.sent.size(), 600u);
  EXPECT_EQ(pair.a.counters().unrepeated, 400u);
  for (int i = 0; i < 200; ++i) {
    pair.now += 10_ms;
    pair.carry(true);
  }
  EXPECT_LE(pair.sent.size(), 600u + 150);
  EXPECT_EQ(pair.a.counters().unreachable, 500u) << "in time, all the same";
}

TEST(Resolution, give_up__is_as_if_there_were_no_answer) {
  Pair pair;
  pair.a.find(0, kB, pair.now);
  pair.carry();
  pair.a.give_up(kB, pair.now);
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::unreachable);
  EXPECT_TRUE(pair.a.deadline().is_never());
  pair.now += 1_s;
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::asked);
  pair.carry();
  EXPECT_EQ(pair.a.find(0, kB, pair.now).state, State::known);
  pair.a.give_up(Address::parse("10.9.9.9:9"), pair.now);
}

TEST(Resolution, receive__rejects_a_hundred_thousand_forgeries) {
  Random random(11);
  Pair pair;
  pair.a.find(0, kB, pair.now);
  pair.carry();
  std::uint64_t answers = 0;
  Resolution::Datagram last = pair.sent.back().bytes;
  for (int i = 0; i < 100'000; ++i) {
    pair.now += Nanos(static_cast<std::int64_t>(random.below(20'000'000)));
    pair.a.find(0, kB, pair.now);
    Resolution::Outgoing out;
    while (pair.a.next(out, pair.now)) last = out.bytes;
    std::vector<std::byte> bytes(last.begin(), last.end());  // a copy of the real question
    bytes[5] = std::byte{static_cast<std::uint8_t>(random.below(4))};
    bytes[6] = std::byte{4};
    bytes[19] = std::byte{1};
    // At least one byte of the nonce is wrong. All other fields may be right.
    bytes[8 + random.below(8)] ^= std::byte{static_cast<std::uint8_t>(1 + random.below(255))};
    for (std::uint64_t changes = random.below(4); changes > 0; --changes)
      bytes[16 + random.below(16)] = std::byte{static_cast<std::uint8_t>(random.below(256))};
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 1));
    if (random.below(16) == 0) bytes.resize(bytes.size() + random.below(3000));
    const Address from = random.below(2) == 0 ? kB : Address::v4(random.below(3) == 0 ? 0 : 0x0A000002, 5000);
    EXPECT_FALSE(pair.a.receive(static_cast<std::uint16_t>(random.below(3)), from, bytes, pair.now));
    while (pair.a.next(out, pair.now)) answers += out.bytes[5] == std::byte{2};
    ASSERT_EQ(pair.a.find(0, kB, pair.now).queue, kQueueB) << i;
  }
  EXPECT_EQ(pair.a.find(0, kB, pair.now).queue, kQueueB);
  EXPECT_GT(pair.a.counters().malformed, 1000u);
  EXPECT_GT(pair.a.counters().unasked, 1000u);
  EXPECT_GT(answers, 1000u) << "some were questions";
}

TEST(Resolution, find__sends_no_question_without_a_port) {
  Pair pair;
  EXPECT_EQ(pair.a.find(0, Address::parse("10.0.0.2"), pair.now).state, State::unreachable);
  EXPECT_TRUE(pair.a.deadline().is_never());
}

TEST(Resolution, shards__answer_for_themselves) {
  Resolution host({}, {kQueueA, kQueueB}, numbers(5));
  Pair pair;
  const Address second = Address::parse("10.0.0.9:5001");
  pair.a.find(0, second, pair.now);
  Resolution::Outgoing out;
  ASSERT_TRUE(pair.a.next(out, pair.now));
  host.receive(1, kA, out.bytes, pair.now);
  ASSERT_TRUE(host.next(out, pair.now));
  EXPECT_EQ(out.shard, 1);
  pair.a.receive(0, second, out.bytes, pair.now);
  EXPECT_EQ(pair.a.find(0, second, pair.now).queue, kQueueB);
}

}  // namespace
}  // namespace mltcp::rdma
