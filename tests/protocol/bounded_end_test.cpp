// Tests that operations end within a bound that the program has set, whatever a peer or an attacker on the path does.
// Operations with a deadline end by the deadline. If the peer acknowledges nothing, operations without a deadline end
// within give_up_after plus one timeout of at most a second.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "../transport/test_network.h"

namespace mltcp::bounded_end_test {
namespace {

using namespace testing_network;

constexpr Nanos kGiveUp{1'000'000'000};
constexpr Nanos kDeadline{100'000'000};
constexpr Nanos kSlack{1'000'000};

ConnectionConfig impatient() {
  return config_with([](ConnectionConfig& config) { config.give_up_after = kGiveUp; });
}

/// A client whose packets the test answers in place of its peer.
class Victim : public Pair {
 public:
  using Answer = std::function<void(Victim&, const Parsed&)>;
  explicit Victim(Answer answer, const ConnectionConfig& config = impatient()) : Pair(config), begin(now()) {
    logging = false;
    server().dead = true;
    fate = [this, answer = std::move(answer)](const Parsed& packet, Fate&) {
      if (packet.from == 0 && answer) answer(*this, packet);
    };
    id = c().connect(server().address, config, now());
  }
  void say(const std::function<void(wire::Writer&)>& write) {
    inject(client(), server().address, forge(header_for(id, number++, 0), write));
  }
  void accept(std::uint32_t credit) {
    say([&](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 7, .credit = credit, .tag = 5}); });
  }
  /// Posts a send and a receive. Both have the deadline `until`.
  void post(Nanos until) {
    ASSERT_EQ(c().send(id, message, 1, until), PostResult::ok);
    ASSERT_EQ(c().receive(id, buffer, 2, until), PostResult::ok);
  }
  [[nodiscard]] bool ended(Kind kind) { return client().count(kind) == 1; }
  void expect_ended(Kind kind, Status status) {
    ASSERT_EQ(client().count(kind), 1u);
    EXPECT_EQ(client().of(kind)[0].status, status);
    EXPECT_EQ(client().of(kind)[0].connection, id);
  }

  ByteVector message = random_bytes(100'000);
  ByteVector buffer = ByteVector(1000);
  Nanos begin;
  ConnectionId id = 0;
  std::uint64_t number = 0;
};

// The following functions are the ways in which a peer answers a packet.

void accepts_none(Victim& victim, const Parsed& packet) {
  victim.say([&](wire::Writer& w) { acknowledge(w, packet.header.packet_number, packet.header.packet_number); });
}
void asks_for_cookies(Victim& victim, const Parsed& packet) {
  victim.say([&](wire::Writer& w) { w.retry(packet.header.packet_number + 1); });
}
void acknowledges_nothing(Victim& victim, const Parsed& packet) {
  if (packet.has(FrameType::connect)) victim.accept(10);
  victim.say([](wire::Writer& w) { w.ping(); });
}
void grants_nothing(Victim& victim, const Parsed& packet) {
  if (packet.has(FrameType::connect)) victim.accept(0);
  accepts_none(victim, packet);
}
void acknowledges_no_data(Victim& victim, const Parsed& packet) {
  if (packet.has(FrameType::connect)) victim.accept(10);
  if (!is_data(packet)) accepts_none(victim, packet);
}

struct Case {
  std::string name;
  Victim::Answer answer;
  bool gives_up = true;  ///< whether an operation without a deadline ends, because the client gives the peer up
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"nobody", nullptr},
      {"accepts none", accepts_none},
      {"asks for cookies", asks_for_cookies},
      {"acknowledges nothing", acknowledges_nothing},
      {"grants nothing", grants_nothing, false},
      {"acknowledges no data", acknowledges_no_data},
  };
  return all;
}

TEST(BoundedEnd, operations_with_a_deadline__end_by_then) {
  for (const auto& [name, answer, gives_up] : cases()) {
    SCOPED_TRACE(name);
    Victim victim(answer);
    victim.post(victim.begin + kDeadline);
    victim.run_until(victim.begin + kDeadline + kSlack);
    ASSERT_TRUE(victim.ended(Kind::sent) && victim.ended(Kind::received));
    const bool both = victim.client().of(Kind::sent)[0].status == Status::timed_out &&
                      victim.client().of(Kind::received)[0].status == Status::timed_out;
    EXPECT_TRUE(both);
  }
}

TEST(BoundedEnd, operations_without__end_with_the_connection_where_nothing_is_acknowledged) {
  for (const auto& [name, answer, gives_up] : cases()) {
    SCOPED_TRACE(name);
    Victim victim(answer);
    victim.post(Nanos::never());
    victim.run_until(victim.begin + kGiveUp + 1_s + kSlack);
    EXPECT_EQ(victim.ended(Kind::closed), gives_up);
    if (!gives_up) continue;
    victim.expect_ended(Kind::sent, Status::unreachable);
    victim.expect_ended(Kind::received, Status::unreachable);
    victim.expect_ended(Kind::closed, Status::unreachable);
  }
}

TEST(BoundedEnd, close__ends_when_the_last_send_has_by_its_deadline) {
  for (const auto& [name, answer, gives_up] : cases()) {
    SCOPED_TRACE(name);
    Victim victim(answer);
    victim.post(victim.begin + kDeadline);
    victim.run_for(1_ms);
    victim.c().close(victim.id);
    // The client waits for an answer to CLOSE, or to a repeated CONNECT, for at most give_up_after.
    victim.run_until(victim.begin + kDeadline + kGiveUp + 1_s + kSlack);
    EXPECT_TRUE(victim.ended(Kind::sent) && victim.ended(Kind::received) && victim.ended(Kind::closed));
    EXPECT_FALSE(victim.c().exists(victim.id));
  }
}

TEST(BoundedEnd, abort__ends_at_once) {
  for (const auto& [name, answer, gives_up] : cases()) {
    SCOPED_TRACE(name);
    Victim victim(answer);
    victim.post(Nanos::never());
    victim.run_for(20_ms);
    if (victim.ended(Kind::closed)) continue;
    victim.c().abort(victim.id, victim.now());
    victim.run_for(1_us);
    victim.expect_ended(Kind::sent, Status::aborted);
    victim.expect_ended(Kind::received, Status::aborted);
    victim.expect_ended(Kind::closed, Status::aborted);
  }
}

TEST(BoundedEnd, cancel__takes_back_what_has_not_begun_whoever_the_peer_is) {
  for (const auto& [name, answer, gives_up] : cases()) {
    SCOPED_TRACE(name);
    Victim victim(answer);
    victim.post(Nanos::never());
    victim.run_for(20_ms);
    const bool has_begun = name == "acknowledges nothing" || name == "acknowledges no data";
    EXPECT_EQ(victim.c().cancel_send(victim.id, 1), !has_begun);
    EXPECT_TRUE(victim.c().cancel_receive(victim.id, 2));
    victim.run_for(1_us);
    EXPECT_EQ(victim.ended(Kind::sent), !has_begun);
    victim.expect_ended(Kind::received, Status::timed_out);
  }
}

TEST(BoundedEnd, forged_packets_without_end__hold_up_neither_deadlines_nor_giving_up) {
  // The attacker sends many packets at once: with a wrong tag, to connection 0, and to unknown connections.
  for (const bool with_deadline : {true, false}) {
    Victim victim([](Victim& one, const Parsed& packet) {
      if (packet.has(FrameType::connect)) one.accept(10);
    });
    victim.run_for(1_ms);
    victim.begin = victim.now();
    victim.post(with_deadline ? victim.begin + 5_ms : Nanos::never());
    const Address& source = victim.server().address;
    wire::Header wrong = header_for(victim.id, 1, 0);
    wrong.tag = 1;
    const std::vector<ByteVector> forged{
        forge(wrong, [](wire::Writer& w) { acknowledge(w, 0, 3); }),
        forge(header_for(0), [](wire::Writer& w) { w.reset(7); }),
        forge(header_for(victim.id + 1), [](wire::Writer& w) { w.ping(); }),
        ByteVector(100),
    };
    const Nanos bound = victim.begin + (with_deadline ? 5_ms : kGiveUp + 1_s) + kSlack;
    const Nanos step = with_deadline ? 1_us : 500_us;
    while (!victim.ended(Kind::sent) && victim.now() < bound) {
      for (int i = 0; i < 4; ++i)
        for (const ByteVector& bytes : forged) victim.inject_as_it_is(victim.client(), source, bytes);
      victim.run_for(step);
    }
    victim.expect_ended(Kind::sent, with_deadline ? Status::timed_out : Status::unreachable);
    EXPECT_LE(victim.now(), bound);
    EXPECT_GT(victim.c().stats().forged_packets, 5'000u);
  }
}

TEST(BoundedEnd, receive__of_a_message_that_trickles_in_ends_by_its_deadline) {
  Victim victim(grants_nothing);
  ASSERT_EQ(victim.c().receive(victim.id, victim.buffer, 2, victim.begin + kDeadline), PostResult::ok);
  for (std::uint32_t at = 0; victim.now() < victim.begin + kDeadline + kSlack; ++at) {
    victim.say([&](wire::Writer& w) {
      w.data({.last = false, .message = 0, .offset = at % 999, .length = 1});
      w.copy(victim.message.data(), 1);
    });
    victim.run_for(1_ms);
  }
  victim.expect_ended(Kind::received, Status::timed_out);
  victim.expect_ended(Kind::closed, Status::aborted);
}

TEST(BoundedEnd, idle_limit__ends_what_waits_for_a_peer_that_is_dead_whoever_speaks_in_its_name) {
  Victim victim(grants_nothing, config_with([](ConnectionConfig& config) {
                  config.keep_alive = 100_ms;
                  config.idle_limit = 500_ms;
                }));
  victim.run_for(1_ms);
  ASSERT_EQ(victim.c().receive(victim.id, victim.buffer, 2), PostResult::ok);
  victim.fate = nullptr;  // from here on, the peer does not answer
  wire::Header wrong = header_for(victim.id, 1, 0);
  wrong.tag = 1;
  const Nanos begin = victim.now();
  while (!victim.ended(Kind::closed) && victim.now() < begin + 2_s) {
    victim.inject_as_it_is(victim.client(), victim.server().address, forge(wrong, [](wire::Writer& w) { w.ping(); }));
    victim.run_for(1_ms);
  }
  EXPECT_LE(victim.now(), begin + 500_ms + kSlack * 2);
  victim.expect_ended(Kind::received, Status::unreachable);
  victim.expect_ended(Kind::closed, Status::unreachable);
}

// ---- Round trips that the peer stretches ----

/// A server whose client acknowledged a message after 9 s and has been silent since.
struct Stretched : Pair {
  explicit Stretched(const ConnectionConfig& server_config) : Pair({}, server_config) {
    ConnectionId of_client = 0;
    std::tie(of_client, id) = connect();
    EXPECT_EQ(c().receive_virtual(of_client, 100, 1), PostResult::ok);
    run_for(1_ms);
    fate = [](const Parsed& packet, Fate& decided) {
      if (packet.from == 0) decided.extra_delay = 9_s;
    };
    EXPECT_EQ(s().send(id, message, 2), PostResult::ok);
    EXPECT_TRUE(run([&] { return server().count(Kind::sent) > 0; }, now() + 20_s));
    client().dead = true;
    run_for(10_s);  // until the client's answers to probes have arrived
    EXPECT_GT(s().stats(id)->smoothed_rtt, 1_s) << "or the test shows nothing";
  }
  ByteVector message = ByteVector(100);
  ConnectionId id = 0;
};

TEST(BoundedEnd, place_of_a_connection_that_has_ended__is_free_in_three_seconds) {
  Stretched pair({});
  EXPECT_TRUE(pair.s().abort(pair.id, pair.now()));
  const std::size_t before = pair.log.size();
  pair.run_for(3_s + kSlack);
  EXPECT_EQ(pair.s().stats().connections, 0u);
  EXPECT_EQ(pair.log.size(), before + 3) << "CLOSE, and two copies";
}

TEST(BoundedEnd, peer_that_is_silent__is_given_up_one_timeout_of_three_seconds_later) {
  Stretched pair({});
  EXPECT_EQ(pair.s().send(pair.id, pair.message, 3), PostResult::ok);
  pair.run_for(1_ms);
  const Nanos begin = pair.now();
  // The server has no credit, so it asks for credit with a PING after a second.
  EXPECT_TRUE(pair.run([&] { return pair.server().count(Kind::closed) == 1; }, begin + 60_s));
  EXPECT_LE(pair.now(), begin + 1_s + ConnectionConfig{}.give_up_after + 3_s + kSlack);
  pair.run_for(3_s + kSlack);
  EXPECT_EQ(pair.s().stats().connections, 0u);
}

}  // namespace
}  // namespace mltcp::bounded_end_test
