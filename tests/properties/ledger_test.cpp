// Tests that the ledger detects each way in which messages can go wrong. If the ledger missed errors, tests that rely
// on it would prove nothing.
#include "mltcp/lab/experiment/traffic/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace mltcp::experiment {
namespace {

std::string violation_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Violation& violation) {
    return violation.what;
  }
  return "";
}

class LedgerTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 3000;

  /// Makes the next message and the next buffer, and copies the message into the buffer. Returns the buffer.
  std::span<std::byte> deliver(std::size_t bytes = kSize, std::size_t capacity = kSize) {
    const auto message = ledger_.make(bytes);
    const auto buffer = ledger_.make_buffer(capacity);
    std::copy_n(message.begin(), std::min(bytes, capacity), buffer.begin());
    return buffer;
  }
  std::string received(std::uint64_t tag, Bytes bytes = kSize, Status status = Status::ok) {
    return violation_of([&] { ledger_.on_received(tag, status, bytes); });
  }
  std::string sent(std::uint64_t tag, Status status = Status::ok) {
    return violation_of([&] { ledger_.on_sent(tag, status); });
  }
  std::string end() {
    return violation_of([&] { ledger_.expect_all_done(); });
  }
  Ledger ledger_{7};
};

TEST_F(LedgerTest, what_is_right__passes) {
  for (std::uint64_t tag = 0; tag < 50; ++tag) {
    deliver(tag * 40);
    EXPECT_EQ(received(tag, tag * 40), "");
    EXPECT_EQ(sent(tag), "");
  }
  deliver(kSize, 100);
  EXPECT_EQ(received(50, kSize, Status::truncated), "");
  EXPECT_EQ(sent(50), "");
  EXPECT_EQ(end(), "");
  EXPECT_EQ(ledger_.delivered(), 50U);  // 51 messages, one of which is too short to contain a name
}

TEST_F(LedgerTest, contents__are_compared) {
  for (const std::size_t at : {std::size_t{8}, kSize / 2, kSize - 1}) {
    const auto buffer = deliver();
    buffer[at] ^= std::byte{1};
    EXPECT_EQ(received(ledger_.receives() - 1), "a message with wrong contents") << at;
  }
  deliver()[0] ^= std::byte{1};  // changes the name to the name of another message
  EXPECT_NE(received(ledger_.receives() - 1), "");
  deliver()[7] ^= std::byte{1};  // changes the name to the name of a message in the opposite direction
  EXPECT_EQ(received(ledger_.receives() - 1), "a message that was not sent, or with a different beginning");
}

TEST_F(LedgerTest, lengths__are_compared) {
  deliver();
  EXPECT_EQ(received(0, kSize - 1), "a message with a wrong length");
  deliver();
  EXPECT_EQ(received(1, kSize, Status::truncated), "a message that fits is truncated, or one that does not fit is not");
  deliver(kSize, kSize + 10)[kSize] = std::byte{1};
  EXPECT_EQ(received(2), "bytes are written beyond the end of the message");
}

TEST_F(LedgerTest, what_comes_twice__is_noticed) {
  const auto first = deliver();
  const auto second = ledger_.make_buffer(kSize);
  std::copy(first.begin(), first.end(), second.begin());
  EXPECT_EQ(received(0), "");
  EXPECT_EQ(received(0), "a receive completes twice");
  EXPECT_EQ(received(1), "a message is delivered twice");
  EXPECT_EQ(sent(0), "");
  EXPECT_EQ(sent(0), "a send completes twice");
  EXPECT_EQ(sent(1), "a send completes that was never posted");
  EXPECT_EQ(received(2), "a receive completes that was never posted");
}

TEST_F(LedgerTest, what_is_missing__is_noticed) {
  deliver();
  EXPECT_EQ(sent(0), "");
  EXPECT_EQ(end(), "a receive never completes");
  EXPECT_EQ(received(0, 0, Status::closed), "");
  EXPECT_EQ(end(), "a message completed as sent but did not arrive");
  ledger_.lose_receiver();
  EXPECT_EQ(end(), "");
  ledger_.make(kSize);
  EXPECT_EQ(end(), "a send never completes");
  ledger_.lose_sender();
  EXPECT_EQ(end(), "");
}

TEST_F(LedgerTest, order_of_buffers__is_that_of_messages) {
  const auto first = ledger_.make(kSize);
  const auto second = ledger_.make(kSize);
  const auto early = ledger_.make_buffer(kSize);
  const auto late = ledger_.make_buffer(kSize);
  std::copy(first.begin(), first.end(), late.begin());
  std::copy(second.begin(), second.end(), early.begin());
  for (const std::uint64_t tag : {0U, 1U}) {
    EXPECT_EQ(received(tag), "");
    EXPECT_EQ(sent(tag), "");
  }
  EXPECT_EQ(end(), "messages in buffers in a wrong order");
}

}  // namespace
}  // namespace mltcp::experiment
