// Tests peers that lie. A shard of the transport imitates an endpoint and sends frames that no endpoint would send. The
// attacker's connection ends with a clear error, and the connection of an honest peer continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "liar.h"
#include "mltcp/transport/wire.h"

namespace mltcp::endpoint::attack_test {
namespace {

using namespace testing_attacker;

class AttackTest : public AttackerTest {};

TEST_F(AttackTest, hello__that_is_no_hello_is_turned_away) {
  const auto refused = [&](std::span<const std::byte> bytes) {
    attacker->connect(false);
    attacker->say(attacker->control, bytes);
    const int before = attacker->closed;
    EXPECT_TRUE(run([&] { return attacker->closed > before; }, 500_ms));
  };
  HelloBuffer good;
  write(attacker->hello(false), good);
  refused({});
  refused(std::span<const std::byte>(good).first(50));
  refused(bytes_of(112));
  refused(bytes_of(4000));
  HelloBuffer other = good;
  for (const int version : {1, 9}) {
    other[4] = static_cast<std::byte>(version);
    refused(other);
  }
  other = good;
  other[5] = std::byte{3};  // kind
  refused(other);
  other = good;
  other[60] ^= std::byte{1};  // blob
  refused(other);
  Hello foreign = attacker->hello(false);
  foreign.from = left->address();  // the address of another host
  write(foreign, other);
  refused(other);
  foreign = attacker->hello(false);
  foreign.meant = {1, 2, 3};
  write(foreign, other);
  refused(other);
  EXPECT_GE(report().unintroduced, 9U);
  expect_honest_goes_on();
}

TEST_F(AttackTest, hello__that_never_comes_costs_a_place_for_a_while_only) {
  // The attacker opens more connections than the victim has places for.
  for (int i = 0; i < 60; ++i) {
    attacker->connect(false);
    run_for(1_ms);
  }
  attacker->connect(true, false);
  // A tagged connection consists of two connections of the transport. The attacker opens only one of the two.
  attacker->say(attacker->control, attacker->hello(true));
  run_for(500_ms);
  EXPECT_GE(attacker->closed, 61);
  expect_honest_goes_on();
  third = std::make_unique<Endpoint>(config(3));
  EXPECT_EQ(connected(*third, right->address(), ConnectionKind::ordered, here).code, Code::ok);
}

/// Sends CONNECTs from an address without a host, and receives nothing.
class Spoofer {
 public:
  explicit Spoofer(loop_network::Network& network) : io_(network, Address::v4(0x0A000008, 50'000)) {}
  void ask(const Address& victim) {
    ByteVector buffer(wire::kHeaderBytes + wire::kConnectFrameBytes);
    wire::Writer writer(buffer);
    ++asked_;
    writer.connect({.max_packet = 1472, .source_connection = asked_, .credit = 1, .tag = asked_});
    TxPacket packet;
    packet.destination = &victim;
    packet.header = writer.finish({}, {});
    io_.send({&packet, 1});
  }

 private:
  loop_network::LoopIo io_;
  std::uint32_t asked_ = 0;
};

TEST_F(AttackTest, questions__without_end_keep_out_neither_who_connects_nor_what_begins_here) {
  for (const bool in_others_names : {false, true}) {
    Spoofer spoofer(*network);
    std::int64_t next = 0;
    each_step = [&] {
      attacker->poll();
      if (network->time < next) return;
      // There are 24 places, and a connection holds its place for up to 1000 times the interval of 200 us.
      next = network->time + 200'000;
      if (in_others_names)
        spoofer.ask(right->address().base());
      else
        attacker->connect(false);
    };
    third = std::make_unique<Endpoint>(config(3));
    run_for(20_ms);
    // If several connections are already half-open, the transport answers a CONNECT with a cookie.
    const auto turned_away = [&] { return in_others_names ? report().packets.retries_sent : report().unintroduced; };
    const std::uint64_t unintroduced = turned_away();
    EXPECT_GT(unintroduced, 20U) << "the places of unintroduced are not taken yet";
    for (int i = 0; i < 10; ++i) {
      for (const bool outwards : {false, true}) {
        Endpoint& from = outwards ? *right : *third;
        Endpoint& to = outwards ? *third : *right;
        ConnectionHandle connection = 0;
        OperationHandle operation = 0;
        ASSERT_EQ(
            from.connect(to.address().bytes(), {.kind = ConnectionKind::tagged, .post = {}}, connection, &operation),
            Code::ok)
            << i << outwards;
        const Completion end = end_of(from, operation);
        EXPECT_EQ(end.code, Code::ok) << to_text(end);
        from.abort(connection);
        run_for(5_ms);
      }
    }
    EXPECT_GT(turned_away(), unintroduced) << "it went on";
    Completion ignored;
    while (right->events().poll({&ignored, 1}) == 1) continue;
    expect_honest_goes_on();
    third.reset();
    each_step = [this] { attacker->poll(); };
    run_for(300_ms);
    attacker.reset();
    attacker = std::make_unique<Attacker>(*network, right->address());
  }
}

TEST_F(AttackTest, questions__in_one_burst_leave_room_for_what_begins_here) {
  Spoofer spoofer(*network);
  third = std::make_unique<Endpoint>(config(3));
  // These are more CONNECTs than the transport has places for.
  for (int i = 0; i < 200; ++i) spoofer.ask(right->address().base());
  step();
  for (int i = 0; i < 7; ++i) {  // as many connections as fit in addition to the honest one
    const Completion end = connected(*right, third->address(), ConnectionKind::tagged, here);
    EXPECT_EQ(end.code, Code::ok) << to_text(end);
  }
}

TEST_F(AttackTest, questions__without_end_wash_away_no_end_of_an_earlier_connection) {
  third = std::make_unique<Endpoint>(config(3));
  ConnectionHandle ended = 0;
  OperationHandle operation = 0;
  EXPECT_EQ(connected(*right, third->address(), ConnectionKind::ordered, ended).code, Code::ok);
  third.reset();
  run_for(400_ms);
  Code end = Code::ok;
  Cause why = Cause::none;
  ASSERT_EQ(right->how_ended(ended, end, why), Code::ok);
  ASSERT_EQ(end, Code::aborted);

  Spoofer spoofer(*network);
  std::int64_t next = 0;
  each_step = [&] {
    attacker->poll();
    if (network->time < next) return;
    next = network->time + 200'000;
    spoofer.ask(right->address().base());
    attacker->connect(false);  // proves its address, but sends no hello
  };
  run_for(400_ms);
  EXPECT_GT(report().unintroduced, 100U) << "each place has been taken several times";
  EXPECT_GT(report().packets.retries_sent, 100U);
  end = Code::ok;
  EXPECT_EQ(right->how_ended(ended, end, why), Code::ok);
  EXPECT_EQ(end, Code::aborted);
  ByteVector bytes(10);
  EXPECT_EQ(right->send(ended, bytes, 0, {}, operation), Code::aborted);
  each_step = [this] { attacker->poll(); };
  run_for(400_ms);
  EXPECT_EQ(right->close(ended), Code::ok);
  EXPECT_EQ(right->how_ended(ended, end, why), Code::unknown);
}

TEST_F(AttackTest, answer__that_can_not_be_ends_the_connect_and_says_whose_it_was) {
  attacker->accept_all();
  struct Case {
    const char* what;
    std::function<void(Hello&)> fault;
    Code code;
    Cause cause;
  };
  const std::vector<Case> cases{
      {"kind", [](Hello& h) { h.kind = ConnectionKind::tagged; }, Code::protocol, Cause::malformed_frame},
      {"token", [](Hello& h) { ++h.token; }, Code::protocol, Cause::malformed_frame},
      {"not asked", [](Hello& h) { h.meant = {1}; }, Code::protocol, Cause::malformed_frame},
      {"another", [&](Hello& h) { h.from = left->address(); }, Code::wrong_peer, Cause::other_endpoint},
      {"no window", [](Hello& h) { h.unexpected_messages = 0; }, Code::protocol, Cause::malformed_frame},
      {"verdict 1", [](Hello& h) { h.verdict = Verdict::wrong_peer; }, Code::wrong_peer, Cause::other_endpoint},
      {"verdict 2", [](Hello& h) { h.verdict = Verdict::version; }, Code::version, Cause::other_version},
      {"verdict 3", [](Hello& h) { h.verdict = Verdict::no_room; }, Code::refused, Cause::peer_full},
      {"verdict 4", [](Hello& h) { h.verdict = Verdict::refused; }, Code::refused, Cause::nobody_listens},
      {"verdict 5", [](Hello& h) { h.verdict = Verdict::malformed; }, Code::protocol, Cause::malformed_frame},
      {"verdict 6", [](Hello& h) { h.verdict = Verdict{6}; }, Code::protocol, Cause::malformed_frame},
      {"nothing", nullptr, Code::unreachable, Cause::no_introduction},
  };
  for (const Case& fault : cases) {
    attacker->asked = false;
    OperationHandle operation = 0;
    ConnectionHandle connection = 0;
    ASSERT_EQ(right->connect(attacker->address().bytes(), {}, connection, &operation), Code::ok);
    ASSERT_TRUE(run([&] { return attacker->asked; }, 100_ms)) << fault.what;
    if (fault.fault) {
      Hello answer = attacker->hello(false);
      answer.token = attacker->question.token;
      fault.fault(answer);
      attacker->say(attacker->control, answer);
    }
    const Completion end = end_of(*right, operation);
    EXPECT_EQ(end.code, fault.code) << fault.what;
    EXPECT_EQ(end.cause, fault.cause) << fault.what;
    EXPECT_EQ(end.peer.v4_ip(), 0x0A000009U) << fault.what;
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, frame__that_can_not_be_ends_the_connection) {
  for (int kind = 0; kind < 6; ++kind) {
    greet();
    Frame frame{.type = FrameType::eager, .credit = 4, .tag = 1, .id = 0, .length = 10};
    switch (kind) {
      case 0:
        attacker->say(frame, 11);  // differs from the frame's length
        break;
      case 1:
        attacker->say(attacker->control, bytes_of(31));
        break;
      case 2:
        frame.length = 1500;  // a length above the eager limit
        attacker->say(frame, 1500);
        break;
      case 3:
        frame.type = FrameType{10};
        frame.length = 0;
        attacker->say(frame);
        break;
      case 4:
        frame.type = FrameType::rts;
        frame.length = (Bytes{1} << 32) + 1;
        attacker->say(frame);
        break;
      default:
        attacker->say(attacker->control, std::span<const std::byte>());
    }
    EXPECT_TRUE(ended(event(*right, 100_ms), Code::protocol, Cause::malformed_frame)) << kind;
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, messages__beyond_the_window_end_the_connection) {
  for (const FrameType type : {FrameType::eager, FrameType::rts}) {
    const ConnectionHandle connection = greet();
    const bool eager = type == FrameType::eager;
    Frame frame{.type = type, .credit = 4, .tag = 1, .id = 1, .length = eager ? Bytes{10} : Bytes{10'000}};
    for (int i = 0; i < 8; ++i) attacker->say(frame, eager ? 10 : 0);
    run_for(2_ms);
    ConnectionReport held;
    ASSERT_EQ(right->report(connection, held), Code::ok);
    EXPECT_EQ(held.unexpected_messages, 8U);
    for (int i = 0; i < 40; ++i) attacker->say(frame, eager ? 10 : 0);
    EXPECT_TRUE(ended(event(*right, 100_ms), Code::protocol, Cause::beyond_credit));
    right->close(connection);
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, cts__for_another_connections_message_ends_the_connection) {
  const ByteVector lengthy = bytes_of(20'000);
  const OperationHandle sending = send_tagged(*right, there, lengthy, 3);  // announced to the honest peer only
  run_for(1_ms);
  greet();
  attacker->say({.type = FrameType::cts, .credit = 4, .id = sending, .length = 20'000});
  expect_broken(Cause::unasked);
  ByteVector buffer(20'000);
  EXPECT_EQ(end_of(*left, receive_tagged(*left, here, buffer, 3)).code, Code::ok);
  EXPECT_EQ(end_of(*right, sending).code, Code::ok);
}

TEST_F(AttackTest, cts__that_comes_twice_or_asks_for_more_ends_the_connection) {
  for (const bool twice : {true, false}) {
    const ConnectionHandle connection = greet();
    const ByteVector lengthy = bytes_of(20'000);
    const OperationHandle sending = send_tagged(*right, connection, lengthy, 3);
    ASSERT_TRUE(run([&] { return attacker->heard(FrameType::rts); }, 100_ms));
    const std::uint64_t id = attacker->last().id;
    const Frame cts{.type = FrameType::cts, .credit = 5, .id = id, .length = twice ? Bytes{20'000} : Bytes{20'001}};
    attacker->say(cts);
    if (twice) attacker->say(cts);
    EXPECT_TRUE(ended(event(*right, 100_ms), Code::protocol, twice ? Cause::unasked : Cause::wrong_length));
    EXPECT_EQ(end_of(*right, sending).code, Code::protocol);
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, cancelled__that_was_not_requested_ends_the_connection) {
  const ConnectionHandle connection = greet();
  const ByteVector lengthy = bytes_of(20'000);
  const OperationHandle sending = send_tagged(*right, connection, lengthy, 3);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::rts); }, 100_ms));
  attacker->say({.type = FrameType::cancelled, .credit = 5, .id = attacker->last().id});
  EXPECT_EQ(end_of(*right, sending).code, Code::protocol);
  expect_broken(Cause::unasked);
}

TEST_F(AttackTest, cancel__of_anything_any_number_of_times_does_no_harm) {
  const ConnectionHandle connection = greet();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    attacker->say({.type = FrameType::cancel, .credit = 4, .id = i});
    if (i % 50 == 0) run_for(1_ms);
  }
  // The attacker announces and cancels messages. Each message uses a place until the victim has answered.
  for (std::uint64_t i = 0; i < 8; ++i) {
    attacker->say({.type = FrameType::rts, .credit = 4, .tag = 1, .id = i, .length = 5000});
    attacker->say({.type = FrameType::cancel, .credit = 4, .id = i});
  }
  run_for(2_ms);
  ConnectionReport held;
  ASSERT_EQ(right->report(connection, held), Code::ok);
  EXPECT_EQ(held.unexpected_messages, 0U);
  EXPECT_TRUE(held.open);
  EXPECT_TRUE(attacker->heard(FrameType::cancelled));
  attacker->die();
  event(*right);
  expect_honest_goes_on();
}

TEST_F(AttackTest, data__of_another_length_than_announced_ends_the_connection) {
  for (const std::size_t length : {std::size_t{4999}, std::size_t{5001}}) {
    const ConnectionHandle connection = greet();
    ByteVector buffer(5000);
    attacker->say({.type = FrameType::rts, .credit = 4, .tag = 1, .id = 77, .length = 5000});
    run_for(1_ms);
    const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
    ASSERT_TRUE(run([&] { return attacker->heard(FrameType::cts); }, 100_ms));
    EXPECT_EQ(attacker->last().id, 77U);
    attacker->say(attacker->data, bytes_of(length));
    EXPECT_TRUE(ended(end_of(*right, receiving), Code::protocol, Cause::wrong_length));
    EXPECT_EQ(event(*right).cause, Cause::wrong_length);
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, data__for_a_grant_that_is_longer_than_the_buffer_ends_the_connection_and_is_not_written) {
  const ConnectionHandle connection = greet();
  ByteVector memory(6000, std::byte{0x55});
  const OperationHandle receiving = receive_tagged(*right, connection, std::span(memory).first(5000), 1);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
  EXPECT_EQ(attacker->last().tag, 1U);
  EXPECT_EQ(attacker->last().length, 5000U);
  attacker->say(attacker->data, bytes_of(5001));
  EXPECT_TRUE(ended(end_of(*right, receiving), Code::protocol, Cause::wrong_length));
  EXPECT_TRUE(std::all_of(memory.begin() + 5000, memory.end(), [](std::byte each) { return each == std::byte{0x55}; }));
  expect_broken(Cause::wrong_length);
}

TEST_F(AttackTest, data__for_a_grant_whose_message_came_otherwise_ends_the_connection) {
  for (int way = 0; way < 3; ++way) {
    const ConnectionHandle connection = greet();
    ByteVector buffer(5000);
    const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
    ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
    if (way == 0) attacker->say({.type = FrameType::eager, .credit = 4, .tag = 1, .id = 0, .length = 10}, 10);
    if (way == 0) {
      // The operation has ended, so data that arrives now must not be written to the program's memory.
      EXPECT_EQ(end_of(*right, receiving).bytes, 10U);
      buffer.assign(5000, std::byte{0x55});
      attacker->say(attacker->data, bytes_of(3000));
      EXPECT_EQ(event(*right).cause, Cause::wrong_length);
      EXPECT_EQ(buffer, ByteVector(5000, std::byte{0x55}));
      run_for(5_ms);
      continue;
    }
    if (way == 1) attacker->say({.type = FrameType::rts, .credit = 4, .tag = 1, .id = 77, .length = 4000});
    if (way == 2) attacker->say({.type = FrameType::used, .credit = 4, .tag = 1, .id = 1, .length = 4000});
    run_for(1_ms);
    EXPECT_TRUE(is_pending(*right, receiving)) << "the transport still has the buffer";
    EXPECT_EQ(right->cancel(receiving), Code::too_late);
    attacker->say(attacker->data, bytes_of(3000));
    EXPECT_EQ(end_of(*right, receiving).code, Code::protocol) << way;
    EXPECT_EQ(event(*right).cause, Cause::wrong_length) << way;
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, credit_and_grants__that_can_not_be_end_the_connection) {
  struct Case {
    Frame frame;
    int times;
    Cause cause;
  };
  const std::vector<Case> cases{
      // The window is 4 messages and the victim has sent none, so the only valid credit is 4.
      {{.type = FrameType::credit, .credit = 4 + 1}, 1, Cause::beyond_credit},
      {{.type = FrameType::credit, .credit = 3}, 1, Cause::beyond_credit},
      // No message with this id was announced.
      {{.type = FrameType::cts, .credit = 4, .id = (std::uint64_t{70} << 32) | 1, .length = 1}, 1, Cause::unasked},
      {{.type = FrameType::grant, .credit = 4, .tag = 1, .id = 0, .length = 100}, 17, Cause::beyond_credit},
      {{.type = FrameType::grant, .credit = 4, .tag = 1, .id = 0, .length = 0}, 1, Cause::malformed_frame},
      {{.type = FrameType::grant, .credit = 4, .tag = 1, .id = 1, .length = 100}, 1, Cause::malformed_frame},
      {{.type = FrameType::withdraw, .credit = 4, .tag = 0, .id = 0, .length = 0}, 1, Cause::unasked},
      {{.type = FrameType::withdraw, .credit = 4, .tag = 0, .id = 1, .length = 0}, 1, Cause::unasked},
      {{.type = FrameType::used, .credit = 4, .tag = 1, .id = 0, .length = 10}, 1, Cause::unasked},
      {{.type = FrameType::used, .credit = 4, .tag = 1, .id = 1, .length = 10}, 1, Cause::unasked},
  };
  for (const Case& fault : cases) {
    greet();
    for (int i = 0; i < fault.times; ++i) {
      Frame frame = fault.frame;
      frame.tag += static_cast<std::uint64_t>(i);
      attacker->say(frame);
    }
    const Completion end = event(*right, 100_ms);
    EXPECT_EQ(end.kind, Completion::Kind::closed);
    EXPECT_TRUE(ended(end, Code::protocol, fault.cause)) << static_cast<int>(fault.frame.type);
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, grant__without_a_buffer_holds_up_the_attackers_own_messages_only) {
  const ConnectionHandle connection = greet();
  for (std::uint64_t i = 0; i < 16; ++i)
    attacker->say({.type = FrameType::grant, .credit = 4, .tag = i, .id = 0, .length = 30'000});
  run_for(1_ms);
  const ByteVector lengthy = bytes_of(20'000);
  const OperationHandle sending = send_tagged(*right, connection, lengthy, 3);
  EXPECT_TRUE(is_pending(*right, sending));
  expect_honest_goes_on_beside();
  attacker->die();
  EXPECT_EQ(end_of(*right, sending).code, Code::unreachable);
}

TEST_F(AttackTest, grants__that_are_given_back_at_once_are_remembered_as_long_as_they_may_be) {
  const ConnectionHandle connection = greet();
  attacker->listen(attacker->control, 200);
  // The victim sends more messages than it remembers. The grants below say that the attacker has seen none of these
  // messages, so the victim gives each grant back at once.
  const ByteVector brief = bytes_of(10);
  for (std::uint32_t sent = 0; sent < 80; sent += 4) {
    for (int i = 0; i < 4; ++i) send_tagged(*right, connection, brief, 5);
    run_for(100_us);
    attacker->say({.type = FrameType::credit, .credit = 4 + sent + 4});
    run_for(100_us);
  }
  for (int i = 0; i < 3000; ++i) {
    attacker->say({.type = FrameType::grant, .credit = 84, .tag = 1, .id = 0, .length = 100});
    if (i % 10 == 0) run_for(100_us);
  }
  expect_broken(Cause::beyond_credit);
}

TEST_F(AttackTest, empty_messages__for_grants_without_end_are_answered_a_few_times_only) {
  const ConnectionHandle connection = greet();
  attacker->listen(attacker->control, 100);
  ByteVector buffer(5000);
  const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
  for (int i = 0; i < 50; ++i) {
    attacker->say(attacker->data, std::span<const std::byte>());
    run_for(200_us);
  }
  const auto granted = std::count_if(attacker->frames.begin(), attacker->frames.end(),
                                     [](const Frame& f) { return f.type == FrameType::grant; });
  EXPECT_GE(granted, 2);
  EXPECT_LE(granted, 8);
  EXPECT_TRUE(is_pending(*right, receiving));
  expect_honest_goes_on_beside();
}

TEST_F(AttackTest, withdrawal__that_is_never_answered_ends_with_the_connection) {
  const ConnectionHandle connection = greet();
  ByteVector buffer(5000);
  const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
  EXPECT_EQ(right->cancel(receiving), Code::ok);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::withdraw); }, 100_ms));
  EXPECT_EQ(attacker->last().id, 1U);
  EXPECT_TRUE(is_pending(*right, receiving));
  attacker->die();
  EXPECT_EQ(end_of(*right, receiving).code, Code::cancelled);
}

/// A peer may ignore its obligations while it still answers keep-alives.
TEST_F(AttackTest, close__does_not_wait_without_end_for_who_takes_no_answers) {
  for (const bool many : {false, true}) {
    const ConnectionHandle connection = greet();
    attacker->listen(attacker->control, 100);
    // The victim has to give grants back, but the attacker has no buffers for these answers. The transport can store
    // one answer, but not 16.
    for (std::uint64_t n = 1; n <= (many ? 16U : 1U); ++n) {
      attacker->say({.type = FrameType::grant, .credit = 4, .tag = 1, .id = 0, .length = 100});
      attacker->say({.type = FrameType::withdraw, .credit = 4, .tag = 0, .id = n, .length = 0});
    }
    run_for(1_ms);
    const Nanos begin = right->now();
    ASSERT_EQ(right->close(connection), Code::ok);
    const Completion end = event(*right);
    EXPECT_EQ(end.kind, Completion::Kind::closed);
    EXPECT_TRUE(ended(end, Code::closed, Cause::here));
    EXPECT_LE(right->now() - begin, 210_ms) << "peer_timeout is 200 ms";
    run_for(5_ms);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, withdrawal__that_a_live_peer_never_answers_ends_the_connection) {
  const ConnectionHandle connection = greet();
  ByteVector buffer(5000);
  ByteVector other(5000);
  const OperationHandle first = receive_tagged(*right, connection, other, 2);
  const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
  EXPECT_EQ(right->cancel(receiving), Code::ok);
  // While data arrives on the data connection, the grant's message may still follow.
  run_for(150_ms);
  attacker->say(attacker->data, bytes_of(5000));
  EXPECT_EQ(end_of(*right, first).code, Code::ok);
  run_for(100_ms);
  EXPECT_TRUE(is_pending(*right, receiving));
  const Completion end = end_of(*right, receiving, 400_ms);
  EXPECT_EQ(end.code, Code::cancelled);
  EXPECT_TRUE(ended(event(*right), Code::unreachable, Cause::silence));
  expect_honest_goes_on();
}

TEST_F(AttackTest, grant__for_what_is_far_back_among_held_sends_comes_back_without_a_search) {
  const ConnectionHandle connection = greet();
  const ByteVector lengthy = bytes_of(4000);
  for (std::uint64_t tag = 1; tag <= 100; ++tag) send_tagged(*right, connection, lengthy, tag);
  run_for(1_ms);
  // There is credit to announce four sends. The search covers the first 64 of the sends that are held back.
  const auto answer = [&](std::uint64_t tag) {
    attacker->accept_data(1);
    const std::size_t before = attacker->came_as_data.size();
    attacker->say({.type = FrameType::grant, .credit = 4, .tag = tag, .id = 4, .length = 5000});
    EXPECT_TRUE(run([&] { return attacker->came_as_data.size() > before; }, 100_ms));
    return attacker->came_as_data.back();
  };
  EXPECT_EQ(answer(4 + 65), 0U);
  EXPECT_EQ(answer(4 + 64), lengthy.size());
  EXPECT_EQ(answer(4 + 65), lengthy.size()) << "the 64th now";
  expect_honest_goes_on_beside();
}

TEST_F(AttackTest, close__of_one_half_alone_ends_the_other_with_that_cause) {
  const ConnectionHandle connection = greet();
  const ByteVector lengthy = bytes_of(20'000);
  const OperationHandle sending = send_tagged(*right, connection, lengthy, 3);
  ASSERT_TRUE(run([&] { return attacker->heard(FrameType::rts); }, 100_ms));
  attacker->close(attacker->data);  // the attacker never requests the message, but still answers keep-alives
  EXPECT_TRUE(ended(end_of(*right, sending), Code::closed, Cause::peer));
  const Completion closed = event(*right);
  EXPECT_EQ(closed.code, Code::closed);
  EXPECT_EQ(closed.cause, Cause::peer);
  EXPECT_EQ(closed.peer.v4_ip(), 0x0A000009U);
  expect_honest_goes_on();
}

TEST_F(AttackTest, death__after_each_step_ends_the_operations_that_wait_for_it) {
  for (int step_of_death = 0; step_of_death < 4; ++step_of_death) {
    renew_attacker();
    const ConnectionHandle connection = greet();
    const ByteVector lengthy = bytes_of(20'000);
    ByteVector buffer(5000);
    std::vector<OperationHandle> operations{send_tagged(*right, connection, lengthy, 3)};
    if (step_of_death > 0) {
      ASSERT_TRUE(run([&] { return attacker->heard(FrameType::rts); }, 100_ms));
      operations.push_back(receive_tagged(*right, connection, buffer, 1));
    }
    if (step_of_death > 1)
      attacker->say({.type = FrameType::cts, .credit = 5, .id = attacker->last().id, .length = 20'000});
    if (step_of_death > 2) attacker->say({.type = FrameType::rts, .credit = 5, .tag = 1, .id = 77, .length = 5000});
    run_for(1_ms);
    attacker->die();
    const Nanos begin = right->now();
    for (const OperationHandle operation : operations) {
      const Completion end = end_of(*right, operation);
      EXPECT_EQ(end.code, Code::unreachable) << step_of_death;
      EXPECT_EQ(end.peer.v4_ip(), 0x0A000009U);
    }
    EXPECT_LE(right->now() - begin, 301_ms);
    EXPECT_EQ(event(*right).code, Code::unreachable);
  }
  expect_honest_goes_on();
}

TEST_F(AttackTest, frames__of_random_bytes_never_do_more_than_end_the_connection) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    renew_attacker();
    const ConnectionHandle connection = greet();
    const ByteVector lengthy = bytes_of(20'000);
    const OperationHandle sending = send_tagged(*right, connection, lengthy, 3);
    for (int i = 0; i < 20; ++i) {
      Frame frame;
      frame.type = static_cast<FrameType>(1 + random.below(9));
      frame.credit = static_cast<std::uint32_t>(4 + random.below(3));
      frame.tag = random.below(4);
      frame.id = random.chance(0.5) ? sending : random.below(3);
      frame.length = frame.type == FrameType::eager ? random.below(100) : random.below(30'000);
      attacker->say(frame, frame.type == FrameType::eager ? static_cast<std::size_t>(frame.length) : 0);
      ByteVector buffer(100);
      if (random.chance(0.3)) {
        OperationHandle operation = 0;
        static ByteVector sink(30'000);
        (void)right->receive_tagged(connection, sink, random.below(4), kWholeTag, {}, operation);
        (void)right->forget(operation);
      }
      run_for(100_us);
    }
    right->abort(connection);
    end_of(*right, sending);
    EXPECT_EQ(event(*right).kind, Completion::Kind::closed);
    right->abort(connection);  // discards the unexpected messages of the connection
    run_for(1_ms);
  }
  expect_honest_goes_on();
}

}  // namespace
}  // namespace mltcp::endpoint::attack_test
