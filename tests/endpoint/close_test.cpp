// Ends of connections as the program at either end sees them: what was delivered is told as sent, and how a connection
// has ended is known for as long as its handle is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_pair.h"

namespace mltcp::endpoint::close_test {
namespace {

using namespace testing_pair;
using testing::HasSubstr;

class CloseTest : public EndpointPair {
 protected:
  /// A part of all packets is lost from now on, of both directions.
  void lose(std::uint64_t seed, double part) {
    random = Random(seed);
    network->loses = [this, part](const Address&, const Address&, std::span<const std::byte>) {
      return static_cast<double>(random.below(1'000)) < part * 1'000;
    };
  }
  /// What `right` receives, and closes as the last of it has come.
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
        const PostOptions told{.callback = on_received, .context = &receiver};
        std::vector<ByteVector> buffers(kMessages, ByteVector(length));
        for (ByteVector& buffer : buffers) {
          OperationHandle operation = 0;
          ASSERT_EQ(ordered ? right->receive(there, buffer, 1, told, operation)
                            : right->receive_tagged(there, buffer, 1, kWholeTag, told, operation),
                    Code::ok);
        }
        run_for(100_us);
        if (seed > 0) lose(seed, 0.25);
        const ByteVector message = bytes_of(length, seed);
        std::vector<OperationHandle> sends;
        for (std::size_t i = 0; i < kMessages; ++i)
          sends.push_back(ordered ? send(*left, here, message) : send_tagged(*left, here, message, 1));
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

}  // namespace
}  // namespace mltcp::endpoint::close_test
