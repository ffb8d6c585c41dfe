// Tests how connections end, as the program at either end sees it. Delivered messages are reported as sent. The reason
// why a connection ended is known as long as the handle exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_pair.h"

namespace mltcp::endpoint::close_test {
namespace {

using namespace testing_pair;
using testing::HasSubstr;

class CloseTest : public EndpointPair {
 protected:
  /// Makes the network lose the fraction `part` of all further packets, in both directions.
  void lose(std::uint64_t seed, double part) {
    random = Random(seed);
    network->loses = [this, part](const Address&, const Address&, std::span<const std::byte>) {
      return static_cast<double>(random.below(1'000)) < part * 1'000;
    };
  }
  /// The receives that an endpoint has posted. The endpoint closes the connection when the last receive completes.
  struct Receiver {
    Endpoint* endpoint = nullptr;
    ConnectionHandle connection = 0;
    std::size_t left = 0;
    std::vector<Code> codes;
  };
  static void on_received(void* context, const Completion& completion) noexcept {
    Receiver& receiver = *static_cast<Receiver*>(context);
    receiver.codes.push_back(completion.code);
    if (--receiver.left == 0) receiver.endpoint->close(receiver.connection);
  }

  Random random{1};
};

TEST_F(CloseTest, receiver__that_closes_as_its_last_receive_ends_leaves_every_send_done) {
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    for (const std::size_t length : {10U, 20'000U}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        EndpointConfig a = config(1);
        EndpointConfig b = config(2);
        a.peer_timeout = b.peer_timeout = 5_s;
        open(a, b);
        connect(kind);
        const bool ordered = kind == ConnectionKind::ordered;
        constexpr std::size_t kMessages = 3;
        Receiver receiver{right.get(), there, kMessages, {}};
        const PostOptions options{.callback = on_received, .context = &receiver};
        std::vector<ByteVector> buffers(kMessages, ByteVector(length));
        for (ByteVector& buffer : buffers) receive_of(kind, *right, there, buffer, options);
        run_for(100_us);
        if (seed > 0) lose(seed, 0.25);
        const ByteVector message = bytes_of(length, seed);
        std::vector<OperationHandle> sends;
        for (std::size_t i = 0; i < kMessages; ++i) sends.push_back(send_of(kind, *left, here, message));
        for (const OperationHandle operation : sends) {
          const Completion end = end_of(*left, operation, 60_s);
          EXPECT_EQ(end.code, Code::ok) << to_text(end) << " " << ordered << " " << length << " seed " << seed;
        }
        EXPECT_THAT(receiver.codes, testing::ElementsAre(Code::ok, Code::ok, Code::ok));
        EXPECT_EQ(event(*left, 60_s).code, Code::closed);
        network->loses = nullptr;
        left.reset();
        right.reset();
      }
    }
  }
}

TEST_F(CloseTest, sender__that_closes_at_once_has_everything_arrive) {
  for (const std::size_t length : {10U, 20'000U}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      EndpointConfig a = config(1);
      EndpointConfig b = config(2);
      a.peer_timeout = b.peer_timeout = 5_s;
      open(a, b);
      connect(ConnectionKind::tagged);
      constexpr std::size_t kMessages = 6;
      std::vector<ByteVector> buffers(kMessages, ByteVector(length));
      std::vector<OperationHandle> receives;
      std::vector<OperationHandle> sends;
      for (ByteVector& buffer : buffers) receives.push_back(receive_tagged(*right, there, buffer, 1));
      run_for(100_us);
      if (seed > 0) lose(seed, 0.25);
      const ByteVector message = bytes_of(length, seed);
      for (std::size_t i = 0; i < kMessages; ++i) sends.push_back(send_tagged(*left, here, message, 1));
      ASSERT_EQ(left->close(here), Code::ok);
      for (const OperationHandle operation : receives)
        EXPECT_EQ(end_of(*right, operation, 60_s).code, Code::ok) << length << " seed " << seed;
      for (const OperationHandle operation : sends) EXPECT_EQ(end_of(*left, operation, 60_s).code, Code::ok);
      for (const ByteVector& buffer : buffers) EXPECT_EQ(buffer, message);
      network->loses = nullptr;
      left.reset();
      right.reset();
    }
  }
}

class EndTest : public CloseTest {
 protected:
  /// Posts every kind of operation to the connection and expects the same error from each operation.
  void expect_posts_end(Endpoint& endpoint, ConnectionHandle connection, ConnectionKind kind, Code code, Cause cause) {
    ByteVector bytes(10);
    OperationHandle operation = 0;
    const bool ordered = kind == ConnectionKind::ordered;
    EXPECT_EQ(ordered ? endpoint.send(connection, bytes, 0, {}, operation)
                      : endpoint.send_tagged(connection, bytes, 0, {}, operation),
              code);
    EXPECT_EQ(ordered ? endpoint.receive(connection, bytes, 0, {}, operation)
                      : endpoint.receive_tagged(connection, bytes, 0, kWholeTag, {}, operation),
              code);
    if (!ordered) {
      EXPECT_EQ(endpoint.peek(connection, 0, 0, Take::no, {}, operation), code);
    }
    Code end = Code::ok;
    Cause why = Cause::none;
    EXPECT_EQ(endpoint.how_ended(connection, end, why), Code::ok);
    EXPECT_EQ(end, code);
    EXPECT_EQ(why, cause);
    ConnectionReport report;
    EXPECT_EQ(endpoint.report(connection, report), Code::ok);
    EXPECT_TRUE(report.has_ended && !report.open);
    EXPECT_EQ(report.end_code, code);
    EXPECT_EQ(report.end_cause, cause);
    EXPECT_EQ(report.kind, kind);
  }
  void expect_forgotten(Endpoint& endpoint, ConnectionHandle connection) {
    Code end = Code::ok;
    Cause why = Cause::none;
    EXPECT_EQ(endpoint.how_ended(connection, end, why), Code::unknown);
    EXPECT_EQ(endpoint.close(connection), Code::unknown);
    ByteVector bytes(10);
    OperationHandle operation = 0;
    EXPECT_EQ(endpoint.send(connection, bytes, 0, {}, operation), Code::unknown);
  }
};

TEST_F(EndTest, posts__get_what_the_connection_has_ended_with_until_it_is_closed) {
  open();
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    connect(kind);
    Code end = Code::ok;
    Cause why = Cause::none;
    EXPECT_EQ(right->how_ended(there, end, why), Code::nothing);
    ASSERT_EQ(left->abort(here), Code::ok);
    EXPECT_EQ(event(*right).code, Code::aborted);
    for (int i = 0; i < 2; ++i) expect_posts_end(*right, there, kind, Code::aborted, Cause::peer);
    EXPECT_EQ(event(*left).code, Code::aborted);
    expect_posts_end(*left, here, kind, Code::aborted, Cause::here);
    EXPECT_EQ(left->close(here), Code::ok);
    expect_forgotten(*left, here);
    EXPECT_EQ(right->abort(there), Code::ok);
    expect_forgotten(*right, there);
  }
}

TEST_F(EndTest, closed__is_told_alike_by_whom) {
  open();
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    connect(kind);
    ByteVector buffer(10);
    const OperationHandle ours = receive_of(kind, *left, here, buffer);
    ASSERT_EQ(left->close(here), Code::ok);
    EXPECT_EQ(left->close(here), Code::ok) << "once more, while it closes";
    EXPECT_EQ(end_of(*left, ours).cause, Cause::here);
    EXPECT_EQ(event(*right).cause, Cause::peer);
    EXPECT_EQ(event(*left).cause, Cause::here);
    expect_posts_end(*right, there, kind, Code::closed, Cause::peer);
    expect_posts_end(*left, here, kind, Code::closed, Cause::here);
    EXPECT_EQ(left->close(here), Code::ok);
    EXPECT_EQ(right->close(there), Code::ok);
    expect_forgotten(*left, here);
  }
}

// The endpoint holds one receive back until the receive before it completes. When it posts the receive that it held
// back, the transport's connection has already ended.
TEST_F(EndTest, receive__that_finds_the_transport_gone_gets_the_code_of_the_end) {
  EndpointConfig few = config(2);
  few.connection.max_receives = 1;
  open(config(1), few);
  connect(ConnectionKind::ordered);
  constexpr std::size_t kMany = 40;
  std::vector<ByteVector> buffers(kMany, ByteVector(10));
  std::vector<OperationHandle> receives;
  for (ByteVector& buffer : buffers) receives.push_back(receive(*right, there, buffer));
  run_for(100_us);
  const ByteVector message(10);
  const OperationHandle sending = send(*left, here, message);
  left->progress();
  left->abort(here);
  left->progress();
  const Completion first = end_of(*right, receives[0]);
  EXPECT_EQ(first.code, Code::ok) << "the message and the abort came in one burst";
  for (std::size_t i = 1; i < kMany; ++i) EXPECT_EQ(end_of(*right, receives[i]).code, Code::aborted) << i;
  EXPECT_EQ(end_of(*left, sending).code, Code::aborted);
}

TEST_F(EndTest, connect__without_an_operation_reports_why_it_failed) {
  open();
  const EndpointAddress old = right->address();
  right.reset();
  EndpointConfig again = config(2);
  again.seed = 77;
  right = std::make_unique<Endpoint>(again);
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    ASSERT_EQ(left->connect(old.bytes(), {.kind = kind, .post = {}}, here), Code::ok);
    const Completion end = event(*left);
    EXPECT_EQ(end.kind, Completion::Kind::closed);
    EXPECT_EQ(end.connection, here);
    EXPECT_EQ(end.code, Code::wrong_peer);
    EXPECT_THAT(to_text(end), HasSubstr("get the peer's new address (it is not the endpoint"));
    expect_posts_end(*left, here, kind, Code::wrong_peer, Cause::other_endpoint);
    EXPECT_EQ(left->close(here), Code::ok);
    expect_forgotten(*left, here);
    // The connect operation reports the failure, so the endpoint reports no event for it.
    EXPECT_EQ(connected(*left, old, kind, here).code, Code::wrong_peer);
    EXPECT_EQ(event(*left, 1_ms).kind, Completion::Kind{});
    expect_posts_end(*left, here, kind, Code::wrong_peer, Cause::other_endpoint);
  }
}

TEST_F(EndTest, handle__of_an_ended_connection_goes_with_its_place_and_not_sooner) {
  open();
  connect(ConnectionKind::ordered);
  const ConnectionHandle first = here;
  left->abort(here);
  run_for(1_ms);
  const std::uint32_t min = left->config().max_connections;
  for (std::uint32_t i = 0; i < 4 * min; ++i) {
    Code end = Code::ok;
    Cause why = Cause::none;
    if (i <= min) {
      EXPECT_EQ(left->how_ended(first, end, why), Code::ok) << i;
    }
    Completion next;
    while (left->events().poll({&next, 1}) == 1) {
    }
    while (right->events().poll({&next, 1}) == 1) {
    }
    connect(ConnectionKind::ordered);
    left->abort(here);
    run_for(1_ms);
  }
  expect_forgotten(*left, first);
}

}  // namespace
}  // namespace mltcp::endpoint::close_test
