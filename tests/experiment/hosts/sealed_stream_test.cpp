// Tests streams with a job's key at their ends. Two ends with the same key connect. If the keys differ or one is
// missing, both ends get the reason for the refusal.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../matchers.h"
#include "../../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

StreamKey new_key() { return std::make_shared<const security::JobKey>(security::JobKey::generate()); }

class SealedStreamTest : public testing::Test {
 protected:
  /// Connects a client and a listener with the given keys. The listener's end reads until it has the client's greeting.
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
  EXPECT_THAT(client_problem_, HasAll("the coordinator at unix:", "has another key"));
  EXPECT_THAT(server_problem_, HasSubstr("has another key"));
}

TEST_F(SealedStreamTest, key_at_one_end_only__is_told_at_both) {
  meet(nullptr, new_key());
  EXPECT_THAT(client_problem_, HasSubstr("uses no key: give it the key, too (--key FILE)"));
  EXPECT_THAT(server_problem_, HasSubstr("has a key, but this end has none"));
}

TEST_F(SealedStreamTest, client_without_a_key__is_told_when_it_speaks) {
  meet(new_key(), nullptr);
  ASSERT_EQ(client_problem_ + server_problem_, "");
  client_->send("{}");
  const auto speak = [&] { return next(*server_); };
  EXPECT_THROW(speak(), StreamError);
  // The client also gets the reason for the refusal.
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
  // The raw stream has no key, so it reports the server's greeting as an error.
  std::string greeting;
  try {
    static_cast<void>(raw.receive());
  } catch (const StreamError& error) {
    greeting = error.what();
  }
  EXPECT_THAT(greeting, HasSubstr("has a key, but this end has none"));
}

/// An attacker in the middle of a stream that forwards all bytes and stores a copy.
class OnTheWay {
 public:
  OnTheWay() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, clients_.data()), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, servers_.data()), 0);
  }
  ~OnTheWay() {
    close(clients_[1]);
    close(servers_[1]);
  }
  OnTheWay(const OnTheWay&) = delete;
  OnTheWay& operator=(const OnTheWay&) = delete;

  // The callers own these two files and close them.
  [[nodiscard]] int client() const { return clients_[0]; }
  [[nodiscard]] int server() const { return servers_[0]; }

  void pass_on() {
    move(clients_[1], servers_[1], to_server);
    move(servers_[1], clients_[1], to_client);
  }
  void say_to_server(const std::string& bytes) const {
    ASSERT_EQ(::send(servers_[1], bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }

  std::vector<std::string> to_server;  ///< one element for each read; the same holds for `to_client`
  std::vector<std::string> to_client;

 private:
  static void move(int from, int to, std::vector<std::string>& kept) {
    std::string bytes(100'000, '\0');
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) return;
    bytes.resize(static_cast<std::size_t>(count));
    ASSERT_EQ(::send(to, bytes.data(), bytes.size(), 0), count);
    kept.push_back(std::move(bytes));
  }

  std::array<int, 2> clients_{};
  std::array<int, 2> servers_{};
};

/// A bare client of the protocol, a stream at the server's end, and an attacker between them.
class StreamOnTheWay : public testing::Test {
 protected:
  void say(const std::string& bytes) {
    const std::string framed{'\0', '\0', '\0', static_cast<char>(bytes.size())};
    ASSERT_EQ(::send(way_.client(), (framed + bytes).data(), bytes.size() + 4, 0), std::ssize(bytes) + 4);
    way_.pass_on();
  }
  void meet() {
    say(client_.greeting());
    EXPECT_EQ(server_.receive(), std::nullopt);
    way_.pass_on();
    std::array<char, 200> greeting{};
    const ssize_t count = ::recv(way_.client(), greeting.data(), greeting.size(), 0);
    ASSERT_GT(count, 4);
    client_.meet(std::string_view(greeting.data() + 4, static_cast<std::size_t>(count) - 4));
  }
  ~StreamOnTheWay() override { close(way_.client()); }

  OnTheWay way_;
  const StreamKey key_ = new_key();
  security::SealedMessages client_{*key_, true};
  MessageStream server_{way_.server(), key_};
};

TEST_F(StreamOnTheWay, messages__are_not_read) {
  const std::string secret = "policy mltcp of the job";
  meet();
  say(client_.seal(secret));
  EXPECT_EQ(server_.receive(), secret);
  server_.send(secret);
  way_.pass_on();
  ASSERT_EQ(way_.to_server.size() + way_.to_client.size(), 4U);
  for (const auto& bytes : {way_.to_server.back(), way_.to_client.back()}) {
    EXPECT_GE(bytes.size(), secret.size());
    for (std::size_t at = 0; at + 4 <= secret.size(); ++at)
      EXPECT_EQ(bytes.find(secret.substr(at, 4)), std::string::npos) << at;
  }
}

TEST_F(StreamOnTheWay, message_that_was_seen__is_not_taken_again) {
  meet();
  say(client_.seal("collect"));
  EXPECT_EQ(server_.receive(), "collect");
  way_.say_to_server(way_.to_server.back());
  EXPECT_THROW(static_cast<void>(server_.receive()), StreamError);
}

TEST_F(StreamOnTheWay, message_of_its_own__is_not_taken) {
  meet();
  way_.say_to_server(std::string{'\0', '\0', '\0', 14} + R"({"type":"end"})");
  EXPECT_THROW(static_cast<void>(server_.receive()), StreamError);
}

TEST_F(StreamOnTheWay, conversation_that_was_seen__is_not_had_again) {
  meet();
  say(client_.seal("join"));
  EXPECT_EQ(server_.receive(), "join");
  const OnTheWay again;
  MessageStream server(again.server(), key_);
  for (const std::string& bytes : way_.to_server) again.say_to_server(bytes);
  EXPECT_THROW(static_cast<void>(server.receive()), StreamError);
  close(again.client());
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
