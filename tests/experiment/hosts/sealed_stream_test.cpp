// Streams whose ends have a job's key: who has it talks to who has it, and the others are told why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>

#include "../../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/experiment/hosts/message_stream.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using testing::HasSubstr;

StreamKey new_key() { return std::make_shared<const security::JobKey>(security::JobKey::generate()); }

class SealedStreamTest : public testing::Test {
 protected:
  /// Connects with the key, and has the listener's end look at what comes until it has the client's greeting.
  void meet(const StreamKey& listeners, const StreamKey& clients) {
    listener_ = std::make_unique<StreamListener>(parse_stream_address("unix:" + (folder_ / "s").string()),
                                                 kCoordinatorRole, listeners);
    auto connecting = std::async(std::launch::async, [&] {
      try {
        client_ = MessageStream::connect(
            listener_->address(), 10_s, [] { return ""; }, kCoordinatorRole, clients);
        return std::string();
      } catch (const RunError& error) {
        return std::string(error.what());
      }
    });
    while (server_ == nullptr) {
      wait_for({listener_->file()}, 100_ms);
      server_ = listener_->accept();
    }
    try {
      while (connecting.wait_for(std::chrono::seconds(0)) != std::future_status::ready && server_problem_.empty()) {
        static_cast<void>(server_->receive());
        server_->wait(10_ms);
      }
    } catch (const StreamError& error) {
      server_problem_ = error.what();
    }
    client_problem_ = connecting.get();
  }
  static std::string next(MessageStream& stream) {
    for (;;) {
      if (auto message = stream.receive()) return *message;
      stream.wait(100_ms);
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<StreamListener> listener_;
  std::unique_ptr<MessageStream> server_;
  std::unique_ptr<MessageStream> client_;
  std::string server_problem_;
  std::string client_problem_;
};

TEST_F(SealedStreamTest, ends_with_the_key__talk) {
  const StreamKey key = new_key();
  meet(key, key);
  ASSERT_EQ(client_problem_ + server_problem_, "");
  const std::string large(60'000, 'x');
  client_->send("question");
  client_->send(large);
  EXPECT_EQ(next(*server_), "question");
  EXPECT_EQ(next(*server_), large);
  server_->send("answer");
  EXPECT_EQ(next(*client_), "answer");
}

TEST_F(SealedStreamTest, longest_message__may_be_as_long_as_without_a_key) {
  const StreamKey key = new_key();
  meet(key, key);
  ASSERT_EQ(client_problem_ + server_problem_, "");
  server_->set_longest(1000);
  client_->send(std::string(1000, 'x'));
  EXPECT_EQ(next(*server_).size(), 1000U);
  client_->send(std::string(1001, 'x'));
  EXPECT_THROW(next(*server_), StreamError);
}

TEST_F(SealedStreamTest, other_key__is_told_at_both_ends) {
  meet(new_key(), new_key());
  EXPECT_THAT(client_problem_, testing::AllOf(HasSubstr("the coordinator at unix:"), HasSubstr("has another key")));
  EXPECT_THAT(server_problem_, HasSubstr("has another key"));
}

TEST_F(SealedStreamTest, key_at_one_end_only__is_told_at_both) {
  meet(nullptr, new_key());
  EXPECT_THAT(client_problem_, HasSubstr("speaks without a key: give it the key, too (--key FILE)"));
  EXPECT_THAT(server_problem_, HasSubstr("has a key, and this end has none"));
}

TEST_F(SealedStreamTest, client_without_a_key__is_told_when_it_speaks) {
  meet(new_key(), nullptr);
  ASSERT_EQ(client_problem_ + server_problem_, "");
  client_->send("{}");
  const auto speak = [&] { return next(*server_); };
  EXPECT_THROW(speak(), StreamError);
  // And is told why itself.
  EXPECT_THROW(next(*client_), StreamError);
}

TEST_F(SealedStreamTest, what_is_sent_before_the_greeting__waits_for_it) {
  std::array<int, 2> files{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
  const security::JobKey key = security::JobKey::generate();
  MessageStream server(files[0], std::make_shared<const security::JobKey>(key));
  MessageStream raw(files[1]);
  server.send("early");
  EXPECT_EQ(raw.receive(), std::nullopt);
  security::SealedMessages client(key, true);
  raw.send(client.greeting());
  EXPECT_EQ(server.receive(), std::nullopt);
  // It is a stream without a key for its reader, which takes a greeting for a mistake.
  std::string greeting;
  try {
    static_cast<void>(raw.receive());
  } catch (const StreamError& error) {
    greeting = error.what();
  }
  EXPECT_THAT(greeting, HasSubstr("has a key, and this end has none"));
}

TEST_F(SealedStreamTest, changed_bytes__end_the_stream) {
  const StreamKey key = new_key();
  std::array<int, 2> files{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
  MessageStream server(files[0], key);
  const auto write = [&](const std::string& text) {
    const std::string framed{'\0', '\0', '\0', static_cast<char>(text.size())};
    ASSERT_EQ(::send(files[1], (framed + text).data(), text.size() + 4, 0), static_cast<ssize_t>(text.size()) + 4);
  };
  security::SealedMessages client(*key, true);
  write(client.greeting());
  EXPECT_EQ(server.receive(), std::nullopt);
  std::array<char, 200> bytes{};
  const ssize_t count = ::recv(files[1], bytes.data(), bytes.size(), 0);
  ASSERT_GT(count, 4);
  client.meet(std::string_view(bytes.data() + 4, static_cast<std::size_t>(count) - 4));
  write(client.seal("good"));
  EXPECT_EQ(server.receive(), "good");
  std::string sealed = client.seal("good");
  sealed[14] = static_cast<char>(sealed[14] ^ 1);
  write(sealed);
  EXPECT_THROW(static_cast<void>(server.receive()), StreamError);
  close(files[1]);
}

}  // namespace
}  // namespace mltcp::experiment
