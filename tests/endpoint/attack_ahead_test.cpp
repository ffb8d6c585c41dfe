// Tests peers that lie about receives granted ahead (endpoint/internal/worker_ahead.cpp). Whatever they send, each
// operation ends once. Memory that was returned to the program is neither written nor read, and the state that is
// stored for such peers is bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "liar.h"

namespace mltcp::endpoint::attack_ahead_test {
namespace {

using namespace testing_attacker;

constexpr auto kUntouched = std::byte{0x55};  // content of receive buffers that were returned to the program
constexpr auto kPosted = std::byte{0x11};     // content of posted messages
constexpr auto kGone = std::byte{0xEE};       // content of message buffers whose operations have ended

bool is_all(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte each) { return each == value; });
}

class AttackAheadTest : public AttackerTest {
 protected:
  Frame grant(std::uint64_t tag, Bytes length, std::uint64_t seen = 0, std::uint32_t credit = 4) const {
    return {.type = FrameType::grant, .credit = credit, .tag = tag, .id = seen, .length = length};
  }
};

// A send that is held back uses the first grant of its tag. A second unused grant of the same tag is therefore an
// error.
TEST_F(AttackAheadTest, grants__of_one_tag_twice_end_the_connection_and_lose_no_send) {
  const ConnectionHandle connection = greet();
  const ByteVector brief = bytes_of(10);
  const ByteVector lengthy = bytes_of(4000);
  for (int i = 0; i < 4; ++i) end_of(*right, send_tagged(*right, connection, brief, 9));  // uses all the credit
  for (int i = 0; i < 2; ++i) attacker->say(grant(1, 100, 4));
  run_for(1_ms);
  OperationHandle sending = 0;
  const Code posted = right->send_tagged(connection, lengthy, 1, {}, sending);
  attacker->say(grant(1, 5000, 4));
  run_for(1_ms);
  if (posted == Code::ok) {
    EXPECT_EQ(end_of(*right, sending).code, Code::protocol);
  }
  expect_broken(Cause::malformed_frame);
}

TEST_F(AttackAheadTest, receive_from_any__is_for_the_first_peer_alone) {
  Attacker second(*network, right->address(), 10);
  each_step = [&] {
    attacker->poll();
    second.poll();
  };
  std::array<ConnectionHandle, 2> connections{};
  const std::array<Attacker*, 2> attackers{attacker.get(), &second};
  for (std::size_t i = 0; i < 2; ++i) {
    attackers[i]->greet_tagged();
    connections[i] = accept();
  }
  ByteVector buffer(5000);
  const OperationHandle receiving = receive_tagged(*right, kAnyConnection, buffer, 1);
  run_for(1_ms);
  EXPECT_FALSE(attacker->heard(FrameType::grant) || second.heard(FrameType::grant)) << "it could be used twice";
  for (Attacker* const each : attackers) {
    each->say({.type = FrameType::rts, .credit = 4, .tag = 1, .id = 1, .length = 4000});
    each->say(each->data, ByteVector(4000, kPosted));  // the message, whether or not the victim has requested it
  }
  const Completion end = end_of(*right, receiving);
  EXPECT_EQ(end.code, Code::ok);
  EXPECT_EQ(end.connection, connections[0]);
  EXPECT_TRUE(is_all(std::span(buffer).first(4000), kPosted));
  buffer.assign(5000, kUntouched);
  EXPECT_FALSE(second.heard(FrameType::cts));
  run_for(5_ms);
  EXPECT_TRUE(is_all(buffer, kUntouched)) << "written by the second";
  // The next receive gets the second peer's message.
  ByteVector next(5000);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, kAnyConnection, next, 1)).connection, connections[1]);
  EXPECT_TRUE(is_all(buffer, kUntouched));
  expect_honest_goes_on_beside();
  each_step = [this] { attacker->poll(); };
}

// When the whole message arrives as EAGER, a part of it has already arrived for the grant. The transport still holds
// the buffer at that time.
TEST_F(AttackAheadTest, message__that_comes_half_and_then_another_way_ends_once_and_is_not_written_afterwards) {
  for (const bool rest_comes : {true, false}) {
    const ConnectionHandle connection = greet();
    ByteVector buffer(5000);
    const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
    ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
    int packets = 0;
    // Packets of a message have a short header. Only the first of these packets arrives.
    network->loses = [&](const Address& from, const Address&, std::span<const std::byte> header) {
      return from.v4_ip() == 0x0A000009 && header.size() < 60 && ++packets > 1;
    };
    attacker->say(attacker->data, ByteVector(5000, kPosted));
    run_for(100_us);
    ConnectionReport report;
    ASSERT_EQ(right->report(connection, report), Code::ok);
    ASSERT_GT(report.transport.end_of_next, 0U) << "a part has come";
    attacker->say({.type = FrameType::eager, .credit = 4, .tag = 1, .id = 0, .length = 10}, 10);
    run_for(100_us);
    EXPECT_TRUE(is_pending(*right, receiving));
    EXPECT_EQ(right->cancel(receiving), Code::too_late);
    if (rest_comes)
      network->loses = nullptr;
    else
      right->abort(connection);
    EXPECT_EQ(end_of(*right, receiving).code, rest_comes ? Code::protocol : Code::ok) << rest_comes;
    buffer.assign(5000, kUntouched);
    network->loses = nullptr;
    event(*right);
    run_for(20_ms);
    EXPECT_TRUE(is_all(buffer, kUntouched));
  }
  expect_honest_goes_on();
}

TEST_F(AttackAheadTest, floods__of_withdrawals_and_of_grants_used_up_cost_nothing_that_lasts) {
  const ConnectionHandle connection = greet();
  attacker->listens_on = true;
  for (std::uint64_t n = 1; n <= 2000; ++n) {
    attacker->accept_data(1);
    attacker->say(grant(n, 100));
    for (int i = 0; i < 3; ++i)
      attacker->say({.type = FrameType::withdraw, .credit = 4, .tag = 0, .id = n, .length = 0});
    if (n % 4 == 0) run_for(100_us);
  }
  run_for(5_ms);
  EXPECT_EQ(std::count(attacker->came_as_data.begin(), attacker->came_as_data.end(), 0), 2000)
      << "each came back, and once";
  ConnectionReport report;
  ASSERT_EQ(right->report(connection, report), Code::ok);
  EXPECT_TRUE(report.open);
  expect_honest_goes_on_beside();
}

// If a peer requests an announced message whose time limit has passed, the endpoint answers with an empty message.
TEST_F(AttackAheadTest, messages__asked_for_after_their_end_without_a_buffer_are_not_remembered_without_end) {
  const ConnectionHandle connection = greet();
  attacker->listens_on = true;
  const ByteVector lengthy = bytes_of(4000);
  std::uint32_t credit = 4;
  std::size_t asked = 0;
  Completion closed{};
  closed.kind = Completion::Kind{};
  while (asked < 20'000 && right->events().poll({&closed, 1}) == 0) {
    std::array<OperationHandle, 4> sends{};
    for (OperationHandle& sending : sends)
      if (right->send_tagged(connection, lengthy, 1, {.time_limit = 20_us}, sending) != Code::ok) sending = 0;
    for (int i = 0; i < 30; ++i) step();
    for (const OperationHandle sending : sends)
      if (sending != 0) end_of(*right, sending);
    for (; asked < attacker->frames.size(); ++asked)
      if (attacker->frames[asked].type == FrameType::rts)
        attacker->say({.type = FrameType::cts, .credit = ++credit, .id = attacker->frames[asked].id, .length = 4000});
    for (int i = 0; i < 5; ++i) step();
  }
  EXPECT_EQ(closed.kind, Completion::Kind::closed);
  EXPECT_EQ(closed.code, Code::unreachable);
  EXPECT_EQ(closed.cause, Cause::silence);
  expect_honest_goes_on();
}

TEST_F(AttackAheadTest, frames__while_the_connection_closes_do_not_hold_it_up) {
  for (const FrameType type : {FrameType::grant, FrameType::withdraw, FrameType::used, FrameType::rts}) {
    const ConnectionHandle connection = greet();
    attacker->listens_on = true;
    ByteVector buffer(5000);
    const OperationHandle receiving = receive_tagged(*right, connection, buffer, 1);
    attacker->say(grant(1, 100));
    ASSERT_TRUE(run([&] { return attacker->heard(FrameType::grant); }, 100_ms));
    ASSERT_EQ(right->close(connection), Code::ok);
    const Nanos begin = right->now();
    std::uint64_t number = 1;
    Completion closed{};
    closed.kind = Completion::Kind{};
    ASSERT_TRUE(run(
        [&] {
          ++number;
          if (type == FrameType::grant && number < 12) attacker->say(grant(number, 100));
          if (type == FrameType::withdraw) attacker->say({.type = type, .credit = 4, .tag = 0, .id = 1, .length = 0});
          if (type == FrameType::used) attacker->say({.type = type, .credit = 4, .tag = 1, .id = 1, .length = 10});
          if (type == FrameType::rts && number < 8)
            attacker->say({.type = type, .credit = 4, .tag = 1, .id = number, .length = 10'000});
          return right->events().poll({&closed, 1}) == 1;
        },
        1_s));
    EXPECT_EQ(closed.kind, Completion::Kind::closed);
    EXPECT_LE(right->now() - begin, 410_ms) << "peer_timeout is 200 ms, for each half";
    EXPECT_NE(end_of(*right, receiving).code, Code::ok);
    buffer.assign(5000, kUntouched);
    run_for(5_ms);
    EXPECT_TRUE(is_all(buffer, kUntouched));
  }
  expect_honest_goes_on();
}

/// Sends random false frames that are plausible enough for the connection to continue for a while. Meanwhile the
/// program posts, cancels and lets time limits pass, and packets are lost.
class Round {
 public:
  Round(Endpoint& victim, Attacker& attacker, ConnectionHandle connection, std::uint64_t seed)
      : victim_(victim), attacker_(attacker), connection_(connection), random_(seed) {
    attacker_.listens_on = true;
    attacker_.listen(attacker_.control, 100);
    attacker_.on_bytes = [this](std::span<const std::byte> bytes) { look_at(bytes); };
  }
  ~Round() { attacker_.on_bytes = nullptr; }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  void post() {
    const bool sends = random_.chance(0.5);
    Posted& posted = posted_.emplace_back();
    posted.sends = sends;
    std::size_t length = 1 + random_.below(random_.chance(0.6) ? 4000 : 1024);
    if (length == Hello::bytes) ++length;
    posted.memory = std::make_unique<ByteVector>(length, kPosted);
    PostOptions options;
    if (random_.chance(0.2)) options.time_limit = Nanos(static_cast<std::int64_t>(1 + random_.below(3'000'000)));
    const std::uint64_t tag = random_.below(3);
    Code code = Code::ok;
    if (sends) {
      code = victim_.send_tagged(connection_, *posted.memory, tag, options, posted.operation);
    } else {
      const bool any = random_.chance(0.15);
      const std::uint64_t mask = random_.chance(0.1) ? 1 : kWholeTag;
      code = victim_.receive_tagged(any ? kAnyConnection : connection_, *posted.memory, tag, mask, options,
                                    posted.operation);
    }
    if (code != Code::ok) posted_.pop_back();
  }
  void cancel_one() {
    if (!posted_.empty()) (void)victim_.cancel(posted_[random_.below(posted_.size())].operation);
  }
  void cancel_all() {
    for (const Posted& posted : posted_) (void)victim_.cancel(posted.operation);
  }
  /// Collects ended operations, whose memory belongs to the program again. Half of this memory is freed, so that a
  /// sanitizer detects an access.
  void take_ends() {
    for (std::size_t i = 0; i < posted_.size();) {
      Completion end;
      if (victim_.test(posted_[i].operation, end) == Code::timed_out) {
        ++i;
        continue;
      }
      ++ended[end.code];
      Posted over = std::move(posted_[i]);
      posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(i));
      const std::byte fill = over.sends ? kGone : kUntouched;
      std::fill(over.memory->begin(), over.memory->end(), fill);
      if (random_.chance(0.5)) continue;
      gone_.push_back(std::move(over));
    }
  }
  void fault() {
    const std::uint64_t tag = random_.below(3);
    const std::uint64_t came = messages_;
    switch (random_.below(12)) {
      case 0:
      case 1: {
        const std::uint64_t seen = came - std::min<std::uint64_t>(came, random_.below(3));
        if (at_hand_[tag] != 0 && random_.chance(0.99)) {
          say({.type = FrameType::withdraw, .id = at_hand_[tag]});
          at_hand_[tag] = 0;
          return;
        }
        say({.type = FrameType::grant, .tag = tag, .id = seen, .length = 1 + random_.below(5000)});
        at_hand_[tag] = ++said_grants_;
        return;
      }
      case 2:
        if (said_grants_ > 0) say({.type = FrameType::withdraw, .id = 1 + random_.below(said_grants_)});
        return;
      case 3:
        if (!granted_.empty()) {
          const Frame& grant = granted_[random_.below(granted_.size())];
          say({.type = FrameType::used,
               .tag = random_.chance(0.9) ? grant.tag : tag,
               .id = 1 + random_.below(granted_.size()),
               .length = random_.chance(0.9) ? grant.length : 1 + random_.below(5000)});
        }
        return;
      case 4:
      case 5:
      case 6: {
        // The message is for the oldest buffer that the victim has posted. Rarely, there is no such buffer.
        if (asked_for_.empty() && random_.chance(0.98)) return;
        const Bytes wanted = asked_for_.empty() ? 100 : asked_for_.front();
        if (!asked_for_.empty()) asked_for_.pop_front();
        const Bytes length = random_.chance(0.4) ? 0 : random_.chance(0.97) ? wanted : random_.below(2 * wanted + 2);
        attacker_.say(attacker_.data, ByteVector(length, std::byte{0x77}));
        return;
      }
      case 7: {
        const std::size_t length = random_.below(1024);
        if (said_messages_++ < credit_heard_)
          attacker_.say(framed({.type = FrameType::eager, .tag = tag, .length = length}), length);
        return;
      }
      case 8:
        if (said_messages_++ < credit_heard_)
          say({.type = FrameType::rts, .tag = tag, .id = said_messages_, .length = 1 + random_.below(6000)});
        return;
      case 9:
        if (!announced_.empty()) {
          const std::size_t at = random_.below(announced_.size());
          const Frame rts = announced_[at];
          announced_.erase(announced_.begin() + static_cast<std::ptrdiff_t>(at));
          say({.type = FrameType::cts,
               .id = rts.id,
               .length = random_.chance(0.8) ? rts.length : random_.below(rts.length + 1)});
        }
        return;
      case 10:
        say({.type = FrameType::cancel, .id = random_.below(said_messages_ + 1)});
        return;
      default:
        if (random_.chance(0.02)) {
          // Sends truncated frames, frames of an unknown type, or answers without a request.
          if (random_.chance(0.3)) attacker_.say(attacker_.control, ByteVector(random_.below(32), kPosted));
          say({.type = static_cast<FrameType>(random_.below(12)), .tag = tag, .id = random_.below(9), .length = 10});
        } else {
          attacker_.accept_data(1);
          say({.type = FrameType::credit});
        }
    }
  }
  [[nodiscard]] bool is_done() const { return posted_.empty(); }
  void expect_untouched() const {
    for (const Posted& each : gone_)
      EXPECT_TRUE(is_all(*each.memory, each.sends ? kGone : kUntouched)) << "of an operation that had ended";
    EXPECT_FALSE(has_read_gone) << "of a message that had ended";
  }

  std::map<Code, int> ended;
  bool has_read_gone = false;

 private:
  struct Posted {
    OperationHandle operation = 0;
    std::unique_ptr<ByteVector> memory;
    bool sends = false;
  };

  Frame framed(Frame frame) {
    frame.credit = static_cast<std::uint32_t>(4 + messages_);
    return frame;
  }
  void say(const Frame& frame) { attacker_.say(framed(frame)); }
  /// Checks what the victim sends. Each byte of its messages must come from a posted buffer.
  void look_at(std::span<const std::byte> bytes) {
    Frame frame;
    const bool is_frame = parse(bytes, frame);
    const auto payload = is_frame ? bytes.subspan(Frame::kHeaderBytes) : bytes;
    if (bytes.size() != Hello::bytes) has_read_gone = has_read_gone || !is_all(payload, kPosted);
    if (!is_frame) return;
    credit_heard_ = frame.credit;
    if (frame.type == FrameType::eager || frame.type == FrameType::rts) ++messages_;
    if (frame.type == FrameType::rts) announced_.push_back(frame);
    if (frame.type == FrameType::grant) granted_.push_back(frame);
    if (frame.type == FrameType::grant || frame.type == FrameType::cts) asked_for_.push_back(frame.length);
  }

  Endpoint& victim_;
  Attacker& attacker_;
  const ConnectionHandle connection_;
  Random random_;
  std::vector<Posted> posted_;
  std::vector<Posted> gone_;
  std::vector<Frame> announced_;
  std::vector<Frame> granted_;
  std::deque<Bytes> asked_for_;
  /// By tag, the number of the latest grant that was not withdrawn; 0 if there is none.
  std::array<std::uint64_t, 3> at_hand_{};
  std::uint64_t said_grants_ = 0;
  std::uint64_t said_messages_ = 0;
  std::uint64_t credit_heard_ = 8;
  std::uint64_t messages_ = 0;
};

TEST_F(AttackAheadTest, random_false_frames__touch_no_memory_that_has_gone_back_and_leave_no_operation_without_end) {
  const char* const more = std::getenv("MLTCP_LIAR_ROUNDS");
  const std::uint64_t rounds = more != nullptr ? std::strtoull(more, nullptr, 10) : 150;
  std::map<Code, int> ended;
  Random random(7);
  for (std::uint64_t seed = 1; seed <= rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    renew_attacker();
    const ConnectionHandle connection = greet();
    Round round(*right, *attacker, connection, seed);
    if (seed % 2 == 0)
      network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return random.chance(0.03); };
    const std::uint64_t closes = random.chance(0.3) ? random.below(300) : ~std::uint64_t{0};
    for (std::uint64_t i = 0; i < 300; ++i) {
      if (random.chance(0.4)) round.post();
      if (random.chance(0.1)) round.cancel_one();
      if (random.chance(0.8)) round.fault();
      if (random.chance(0.5)) step();
      if (random.chance(0.05)) run_for(1_ms);
      if (i == closes) (void)right->close(connection);
      round.take_ends();
    }
    round.cancel_all();
    (void)right->abort(connection);
    network->loses = nullptr;
    EXPECT_TRUE(run(
        [&] {
          round.take_ends();
          return round.is_done();
        },
        2_s))
        << "an operation has not ended";
    run_for(5_ms);
    round.expect_untouched();
    for (const auto& [code, count] : round.ended) ended[code] += count;
    Completion ignored;
    while (right->events().poll({&ignored, 1}) == 1) continue;
    (void)right->close(connection);
  }
  // These numbers show that most rounds continued for long enough.
  EXPECT_GT(ended[Code::ok], static_cast<int>(rounds) * 10);
  EXPECT_GT(ended[Code::cancelled], static_cast<int>(rounds));
  EXPECT_GT(ended[Code::timed_out], static_cast<int>(rounds) / 2);
  EXPECT_GT(ended[Code::protocol], 0);
  for (const auto& [code, count] : ended) printf("%s: %d\n", std::string(name_of(code)).c_str(), count);
  expect_honest_goes_on();
}

}  // namespace
}  // namespace mltcp::endpoint::attack_ahead_test
