// Tests connections of unknown peers. They do not keep out other peers, and do not fill the listener's tables and
// messages.
#include "mltcp/lab/experiment/hosts/pending_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace mltcp::experiment {
namespace {

using namespace literals;

TEST(BoundedLines, beyond_some_a_minute__are_counted) {
  std::vector<std::string> shown;
  BoundedLines lines([&](const std::string& line) { shown.push_back(line); });
  lines.tell("before", 1_s);
  for (int i = 0; i < 1000; ++i) lines.tell("flood", 59_s);
  EXPECT_EQ(shown.size(), BoundedLines::kMax);
  lines.update(60_s);
  EXPECT_EQ(shown.size(), BoundedLines::kMax) << "the minute is not over";
  lines.update(61_s);
  EXPECT_EQ(shown.back(), "981 more lines like these are left out");
  lines.update(200_s);
  lines.tell("later", 200_s);
  EXPECT_EQ(shown.size(), BoundedLines::kMax + 2);
  EXPECT_EQ(shown.back(), "later");
}

class PendingStreamsTest : public testing::Test {
 protected:
  std::unique_ptr<MessageStream> connect(const StreamAddress& to) const {
    return MessageStream::connect(to, 5_s, [] { return ""; });
  }
  [[nodiscard]] std::string next_message() {
    const auto first = pending_.next();
    return first ? first->message : "";
  }

  StreamListener listener_{parse_stream_address("127.0.0.1:0")};
  std::vector<std::string> shown_;
  PendingStreams pending_{listener_, "client", [this](const std::string& line) { shown_.push_back(line); }};
};

TEST_F(PendingStreamsTest, silent_ones__do_not_block_other_peers) {
  std::vector<std::unique_ptr<MessageStream>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(connect(listener_.address()));
    EXPECT_EQ(next_message(), "");
  }
  const auto honest = connect(listener_.address());
  honest->send("hello");
  EXPECT_EQ(next_message(), "hello");
  std::vector<int> files;
  pending_.add_files(files);
  EXPECT_EQ(files.size(), 1 + PendingStreams::kMaxOfAddress - 1) << "the oldest of the address have given way";
}

TEST_F(PendingStreamsTest, who_sends_no_message__is_told_of_in_few_lines) {
  for (int i = 0; i < 100; ++i) {
    connect(listener_.address());
    EXPECT_EQ(next_message(), "");
  }
  EXPECT_EQ(shown_.size(), BoundedLines::kMax);
  EXPECT_EQ(shown_.front(), "a peer that is not a client closed the connection");
}

TEST_F(PendingStreamsTest, messages_of_several__come_one_at_a_time_and_the_first_first) {
  std::vector<std::unique_ptr<MessageStream>> streams;
  for (const char* const message : {"a", "b", "c"}) {
    streams.push_back(connect(listener_.address()));
    streams.back()->send(message);
  }
  EXPECT_EQ(next_message(), "a");
  EXPECT_EQ(next_message(), "b");
  EXPECT_EQ(next_message(), "c");
  EXPECT_EQ(next_message(), "");
}

}  // namespace
}  // namespace mltcp::experiment
