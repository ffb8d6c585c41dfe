// Tests ordered connections in virtual time: hellos, messages and closing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_pair.h"

namespace mltcp::endpoint::ordered_test {
namespace {

using namespace testing_pair;
using testing::HasSubstr;

class OrderedTest : public EndpointPair {};
class ConnectedTest : public OrderedTest {
 protected:
  ConnectedTest() {
    open();
    connect(ConnectionKind::ordered);
  }
};

TEST_F(ConnectedTest, connect__tells_both_ends_who_the_other_is) {
  EndpointAddress peer;
  ASSERT_EQ(left->peer(here, peer), Code::ok);
  EXPECT_EQ(peer, right->address());
  ASSERT_EQ(right->peer(there, peer), Code::ok);
  EXPECT_EQ(peer, left->address());
}

TEST_F(ConnectedTest, messages__land_in_the_buffers_in_their_order) {
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  std::vector<OperationHandle> sends;
  std::vector<OperationHandle> receives;
  for (std::size_t i = 0; i < 20; ++i) {
    messages.push_back(bytes_of(i * 1000, i));
    buffers.emplace_back(20'000);
  }
  for (std::size_t i = 0; i < 20; ++i) {
    sends.push_back(send(*left, here, messages[i], i));
    receives.push_back(receive(*right, there, buffers[i], 100 + i));
  }
  for (std::size_t i = 0; i < 20; ++i) {
    const Completion received = end_of(*right, receives[i]);
    EXPECT_EQ(received.code, Code::ok);
    EXPECT_EQ(received.bytes, i * 1000);
    EXPECT_EQ(received.tag, 100 + i);
    EXPECT_EQ(received.connection, there);
    buffers[i].resize(i * 1000);
    EXPECT_EQ(buffers[i], messages[i]);
    const Completion sent = end_of(*left, sends[i]);
    EXPECT_EQ(sent.code, Code::ok);
    EXPECT_EQ(sent.tag, i);
  }
}

TEST_F(OrderedTest, post__is_taken_before_the_connection_is_open) {
  open();
  OperationHandle connecting = 0;
  ASSERT_EQ(left->connect(right->address().bytes(), {}, here, &connecting), Code::ok);
  const ByteVector message = bytes_of(5000);
  const OperationHandle sending = send(*left, here, message);
  const Completion accepted = event(*right);
  ByteVector buffer(5000);
  const OperationHandle receiving = receive(*right, accepted.connection, buffer);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  EXPECT_EQ(buffer, message);
}

TEST_F(ConnectedTest, receive__of_a_longer_message_is_truncated) {
  const ByteVector message = bytes_of(100);
  ByteVector buffer(40);
  const OperationHandle receiving = receive(*right, there, buffer);
  send(*left, here, message);
  const Completion received = end_of(*right, receiving);
  EXPECT_EQ(received.code, Code::truncated);
  EXPECT_EQ(received.bytes, 100U);
  EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(), message.begin()));
}

TEST_F(OrderedTest, post__beyond_what_the_transport_has_room_for_waits) {
  EndpointConfig small = config(1);
  small.connection.max_sends = 16;
  open(small, config(2));
  connect(ConnectionKind::ordered);
  const ByteVector message = bytes_of(10);
  std::vector<OperationHandle> sends;
  for (int i = 0; i < 200; ++i) sends.push_back(send(*left, here, message));
  std::vector<ByteVector> buffers(200, ByteVector(10));
  for (auto& buffer : buffers) receive(*right, there, buffer);
  for (const OperationHandle operation : sends) EXPECT_EQ(end_of(*left, operation).code, Code::ok);
}

TEST_F(ConnectedTest, post__says_at_once_when_the_pool_is_empty) {
  ByteVector buffer(10);
  OperationHandle operation = 0;
  Code code = Code::ok;
  int taken = 0;
  for (; taken < 10'000 && (code = left->receive(here, buffer, 0, {}, operation)) == Code::ok; ++taken) {
  }
  EXPECT_EQ(code, Code::queue_full);
  EXPECT_GE(taken, 256);
  EXPECT_LE(taken, 256 + 64 + 1) << "the pool, and those at hand";
}

TEST_F(ConnectedTest, close__lets_what_was_posted_arrive_and_tells_both_ends) {
  const ByteVector message = bytes_of(50'000);
  ByteVector buffer(50'000);
  const OperationHandle sending = send(*left, here, message);
  ByteVector never(10);
  const OperationHandle forever = receive(*left, here, never);
  ASSERT_EQ(left->close(here), Code::ok);
  OperationHandle late = 0;
  EXPECT_EQ(left->send(here, message, 0, {}, late), Code::closed);
  const OperationHandle receiving = receive(*right, there, buffer);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  EXPECT_EQ(end_of(*left, forever).code, Code::closed);
  const Completion closed = event(*left);
  EXPECT_EQ(closed.kind, Completion::Kind::closed);
  EXPECT_EQ(closed.cause, Cause::here);
  const Completion peers = event(*right);
  EXPECT_EQ(peers.kind, Completion::Kind::closed);
  EXPECT_EQ(peers.cause, Cause::peer);
  run_for(1_ms);
  EXPECT_EQ(right->send(there, message, 0, {}, late), Code::closed);
  EXPECT_EQ(left->close(here), Code::ok) << "it has ended";
  EXPECT_EQ(left->close(here), Code::unknown) << "and is forgotten";
}

TEST_F(ConnectedTest, abort__ends_everything_at_both_ends) {
  const ByteVector message = bytes_of(50'000);
  const OperationHandle sending = send(*left, here, message);
  ByteVector buffer(10);
  const OperationHandle receiving = receive(*left, here, buffer);
  const OperationHandle peers = send(*right, there, message);
  ASSERT_EQ(left->abort(here), Code::ok);
  const Completion end = end_of(*left, sending);
  EXPECT_EQ(end.code, Code::aborted);
  EXPECT_THAT(to_text(end), HasSubstr("10.0.0.2"));
  EXPECT_THAT(to_text(end), HasSubstr("by this end"));
  EXPECT_EQ(end_of(*left, receiving).code, Code::aborted);
  EXPECT_EQ(end_of(*right, peers).code, Code::aborted);
}

TEST_F(ConnectedTest, cancel__of_what_has_not_begun_leaves_no_trace) {
  const ByteVector first = bytes_of(100, 1);
  const ByteVector second = bytes_of(100, 2);
  const OperationHandle cancelled = send(*left, here, first);
  const OperationHandle kept = send(*left, here, second);
  EXPECT_EQ(left->cancel(cancelled), Code::ok);
  const Completion end = end_of(*left, cancelled);
  EXPECT_EQ(end.code, Code::cancelled);
  ByteVector dropped(100);
  const OperationHandle not_wanted = receive(*right, there, dropped);
  EXPECT_EQ(right->cancel(not_wanted), Code::ok);
  EXPECT_EQ(end_of(*right, not_wanted).code, Code::cancelled);
  EXPECT_EQ(right->cancel(not_wanted), Code::unknown);
  ByteVector buffer(100);
  const OperationHandle receiving = receive(*right, there, buffer);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(buffer, second);
  EXPECT_EQ(end_of(*left, kept).code, Code::ok);
}

TEST_F(ConnectedTest, time_limit__ends_what_the_peer_does_not_take) {
  const ByteVector message = bytes_of(100);
  const OperationHandle sending = send(*left, here, message, 0, {.time_limit = 20_ms});
  const Nanos begin = left->now();
  EXPECT_EQ(end_of(*left, sending).code, Code::timed_out);
  EXPECT_GE(left->now() - begin, 20_ms);
  EXPECT_LE(left->now() - begin, 25_ms);
  ByteVector buffer(100);
  const OperationHandle receiving = receive(*right, there, buffer);
  const OperationHandle next = send(*left, here, message);
  EXPECT_EQ(end_of(*left, next).code, Code::ok);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
}

TEST_F(ConnectedTest, callback__may_post_cancel_and_close) {
  struct Echo {
    Endpoint* endpoint = nullptr;
    ConnectionHandle connection = 0;
    ByteVector buffer = ByteVector(100);
    int rounds = 0;
    static void on(void* self, const Completion& completion) noexcept {
      auto& echo = *static_cast<Echo*>(self);
      if (completion.kind != Completion::Kind::received || completion.code != Code::ok) return;
      OperationHandle operation = 0;
      if (++echo.rounds == 10) {
        echo.endpoint->close(echo.connection);
        return;
      }
      echo.endpoint->receive(echo.connection, echo.buffer, 0, {.callback = on, .context = self}, operation);
      echo.endpoint->send(echo.connection, echo.buffer, 0, {.callback = on, .context = self}, operation);
    }
  };
  Echo a{left.get(), here};
  Echo b{right.get(), there};
  OperationHandle operation = 0;
  left->receive(here, a.buffer, 0, {.callback = Echo::on, .context = &a}, operation);
  right->receive(there, b.buffer, 0, {.callback = Echo::on, .context = &b}, operation);
  left->send(here, a.buffer, 0, {.callback = Echo::on, .context = &a}, operation);
  EXPECT_EQ(event(*right).kind, Completion::Kind::closed);
  EXPECT_EQ(b.rounds, 10);
  EXPECT_EQ(a.rounds, 9);
}

TEST_F(ConnectedTest, callback__may_destroy_the_endpoint) {
  struct Ends {
    std::unique_ptr<Endpoint>* endpoint = nullptr;
    std::vector<Code> codes;
    static void on(void* self, const Completion& completion) noexcept {
      auto& ends = *static_cast<Ends*>(self);
      ends.codes.push_back(completion.code);
      ends.endpoint->reset();
    }
  };
  Ends ends{&left, {}};
  ByteVector buffer(100);
  ByteVector other(100);
  OperationHandle operation = 0;
  left->receive(here, buffer, 0, {.callback = Ends::on, .context = &ends}, operation);
  left->receive(here, other, 0, {.callback = Ends::on, .context = &ends}, operation);
  const ByteVector message = bytes_of(10);
  send(*right, there, message);
  run([&] { return ends.codes.size() == 2; }, 10_ms);
  EXPECT_THAT(ends.codes, testing::ElementsAre(Code::ok, Code::destroyed));
  EXPECT_EQ(left, nullptr);
  EXPECT_EQ(event(*right).code, Code::aborted);
}

TEST_F(ConnectedTest, close_of_the_endpoint__ends_every_operation) {
  ByteVector buffer(100);
  const OperationHandle waited = receive(*left, here, buffer);
  auto queue = left->make_queue(4);
  const OperationHandle queued = receive(*left, here, buffer, 9, {.queue = queue.get()});
  EXPECT_EQ(left->close(), Code::ok);
  Completion end;
  EXPECT_EQ(left->wait(waited, end, Nanos::never()), Code::ok);
  EXPECT_EQ(end.code, Code::destroyed);
  ASSERT_EQ(queue->poll({&end, 1}), 1U);
  EXPECT_EQ(end.operation, queued);
  EXPECT_EQ(end.code, Code::destroyed);
  OperationHandle operation = 0;
  EXPECT_EQ(left->receive(here, buffer, 0, {}, operation), Code::destroyed);
  left.reset();
  std::size_t count = 0;
  EXPECT_EQ(queue->wait({&end, 1}, count, Nanos::never()), Code::destroyed);
}

TEST_F(ConnectedTest, handles__of_nothing_are_refused) {
  ByteVector buffer(10);
  OperationHandle operation = 0;
  Completion end;
  ConnectionReport report;
  for (const std::uint64_t handle : {std::uint64_t{0}, here + 1, here ^ (std::uint64_t{1} << 56), ~std::uint64_t{0},
                                     here ^ (std::uint64_t{7} << 40)}) {
    EXPECT_EQ(left->send(handle, buffer, 0, {}, operation), Code::unknown) << handle;
    EXPECT_EQ(left->close(handle), Code::unknown);
    EXPECT_EQ(left->report(handle, report), Code::unknown);
    EXPECT_EQ(left->cancel(handle), Code::unknown);
    EXPECT_EQ(left->wait(handle, end, 0_ns), Code::unknown);
    EXPECT_EQ(left->forget(handle), Code::unknown);
  }
  EXPECT_EQ(left->send_tagged(here, buffer, 0, {}, operation), Code::unsupported);
  EXPECT_EQ(left->send(here, buffer, 0, {.time_limit = 0_ns}, operation), Code::invalid);
  EXPECT_EQ(left->send(here, std::span<const std::byte>(static_cast<std::byte*>(nullptr), 5), 0, {}, operation),
            Code::invalid);
}

TEST_F(ConnectedTest, wait__drives_and_looks_and_refuses) {
  ByteVector buffer(10);
  Completion end;
  const OperationHandle receiving = receive(*left, here, buffer);
  EXPECT_EQ(left->wait(receiving, end, Nanos(-1)), Code::invalid);
  EXPECT_EQ(left->wait(receiving, end, 0_ns), Code::timed_out);
  const Nanos begin = left->now();
  EXPECT_EQ(left->wait(receiving, end, 5_ms), Code::timed_out);
  EXPECT_GE(left->now() - begin, 5_ms);
  const ByteVector message = bytes_of(10);
  send(*right, there, message);
  run_for(100_us);
  EXPECT_EQ(left->wait(receiving, end, Nanos::never()), Code::ok);
  EXPECT_EQ(end.code, Code::ok);
  EXPECT_EQ(left->wait(receiving, end, Nanos::never()), Code::unknown);
}

TEST_F(OrderedTest, shards__both_ends_spread_connections) {
  EndpointConfig a = config(1);
  EndpointConfig b = config(2);
  a.shards = 2;
  b.shards = 4;
  open(a, b);
  std::map<std::uint16_t, int> here_on;
  std::map<std::uint16_t, int> there_on;
  for (int i = 0; i < 16; ++i) {
    connect(ConnectionKind::ordered);
    ConnectionReport report;
    ASSERT_EQ(left->report(here, report), Code::ok);
    ++here_on[report.shard];
    ASSERT_EQ(right->report(there, report), Code::ok);
    ++there_on[report.shard];
  }
  EXPECT_EQ(here_on, (std::map<std::uint16_t, int>{{0, 8}, {1, 8}}));
  EXPECT_EQ(there_on.size(), 4U);
  for (const auto& [shard, count] : there_on) EXPECT_EQ(count, 4) << shard;
}

TEST_F(OrderedTest, parameters__of_the_congestion_control_are_those_of_the_settings) {
  EndpointConfig a = config(1);
  EndpointConfig b = config(2);
  a.connection.congestion_control = b.connection.congestion_control = "swift";
  const auto parameters = [](std::string_view text) {
    cc::Parameters read;
    cc::set_from_text(read, text);
    return std::make_shared<const cc::Parameters>(std::move(read));
  };
  a.connection.parameters = parameters("swift.max_window=3");
  b.connection.parameters = parameters("swift.max_window=5");
  open(a, b);
  connect(ConnectionKind::ordered);
  const ByteVector message = bytes_of(300'000);
  ByteVector buffer(300'000);
  end_of(*left, (receive(*right, there, buffer), send(*left, here, message)));
  end_of(*right, (receive(*left, here, buffer), send(*right, there, message)));
  ConnectionReport report;
  ASSERT_EQ(left->report(here, report), Code::ok);
  const double packets_of_left = report.transport.cwnd_bytes;
  ASSERT_EQ(right->report(there, report), Code::ok);
  EXPECT_NEAR(report.transport.cwnd_bytes / packets_of_left, 5.0 / 3, 1e-6) << "who connects and who accepts";
}

}  // namespace
}  // namespace mltcp::endpoint::ordered_test
