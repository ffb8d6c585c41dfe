// Tests messages over stream sockets.
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "../../temporary_folder.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

struct Pair {
  Pair() {
    std::array<int, 2> files{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
    raw = files[0];
    stream = std::make_unique<MessageStream>(files[1]);
  }
  ~Pair() {
    if (raw >= 0) close(raw);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  void write(std::string_view bytes) const {
    EXPECT_EQ(::send(raw, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  int raw = -1;
  std::unique_ptr<MessageStream> stream;
};

TEST(stream_address, forms__are_told_apart_and_written_as_read) {
  EXPECT_EQ(parse_stream_address("unix:/run/x").path, "/run/x");
  const StreamAddress v6 = parse_stream_address("[fd00::1]:5000");
  EXPECT_EQ(v6.host, "fd00::1");
  EXPECT_EQ(v6.port, "5000");
  for (const char* text : {"unix:/run/x", "[fd00::1]:5000", "node-1:0", "10.0.0.1:65535"})
    EXPECT_EQ(to_text(parse_stream_address(text)), text);
}

TEST(stream_address, what_is_none__is_refused_with_the_forms) {
  for (const std::string& text : {std::string(), std::string("host"), std::string("host:"), std::string(":5000"),
                                  std::string("host:65536"), std::string("host:-1"), std::string("host:x"),
                                  std::string("fd00::1:5000"), std::string("unix:"), "unix:/" + std::string(200, 'x')})
    EXPECT_THAT(message_of<InputError>([&] { parse_stream_address(text); }),
                HasSubstr("; write HOST:PORT, [IPv6]:PORT or unix:/path"))
        << text;
}

TEST(message_stream, messages__arrive_whole_however_they_are_cut) {
  const Pair pair;
  EXPECT_EQ(pair.stream->receive(), std::nullopt);
  const std::string bytes("\0\0\0\3one\0\0\0\0\0\0\0\3two", 18);
  for (const char byte : bytes.substr(0, 6)) pair.write({&byte, 1});
  EXPECT_EQ(pair.stream->receive(), std::nullopt);
  pair.write(std::string_view(bytes).substr(6));
  EXPECT_EQ(pair.stream->receive(), "one");
  EXPECT_EQ(pair.stream->receive(), "");
  EXPECT_EQ(pair.stream->receive(), "two");
  EXPECT_EQ(pair.stream->receive(), std::nullopt);
}

TEST(message_stream, too_long_a_message__is_refused_before_it_is_read) {
  const Pair pair;
  pair.write(std::string_view("\0\1\0\1", 4));
  EXPECT_THAT(message_of<StreamError>([&] { pair.stream->receive(); }),
              HasSubstr("sends a message of 65537 bytes, but the maximum is 65536"));
  const Pair larger;
  larger.stream->set_longest(65537);
  larger.write(std::string_view("\0\1\0\1", 4));
  EXPECT_EQ(larger.stream->receive(), std::nullopt);
}

TEST(message_stream, end_of_the_other__is_an_error_after_its_last_message) {
  Pair pair;
  pair.write(std::string_view("\0\0\0\3one\0\0", 9));
  close(std::exchange(pair.raw, -1));
  EXPECT_EQ(pair.stream->receive(), "one");
  EXPECT_EQ(message_of<StreamError>([&] { pair.stream->receive(); }), "closed the connection");
  EXPECT_EQ(message_of<StreamError>([&] { pair.stream->send("x"); }), "closed the connection");
}

TEST(message_stream, listener__is_found_over_tcp_and_unix) {
  const TemporaryFolder folder;
  const std::string path = folder / "socket";
  for (const std::string& where : {std::string("127.0.0.1:0"), std::string("unix:") + path}) {
    StreamListener listener(parse_stream_address(where));
    EXPECT_EQ(listener.accept(), nullptr);
    EXPECT_NE(listener.address().port, "0");
    const auto client = MessageStream::connect(listener.address(), 10_s, [] { return std::string(); });
    wait_for({listener.file()}, 1_s);
    const auto server = listener.accept();
    ASSERT_NE(server, nullptr);
    server->set_longest(std::size_t{1} << 20U);
    const std::string message(100'000, 'm');
    client->send(message);
    std::optional<std::string> received;
    for (int i = 0; i < 1000 && !received; ++i) {
      server->wait(100_ms);
      received = server->receive();
    }
    EXPECT_EQ(received, message);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(message_stream, address_in_use__is_an_error_that_says_so) {
  const StreamListener first(parse_stream_address("127.0.0.1:0"));
  EXPECT_THAT(message_of<RunError>([&] { const StreamListener second(first.address()); }),
              HasSubstr("end the program that listens there, or choose another address"));
}

TEST(message_stream, listener_at_a_path__is_not_made_where_another_user_leads) {
  if (geteuid() != 0) GTEST_SKIP() << "files of another user are root's to make";
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "victim");
  std::filesystem::create_symlink("victim", folder / "way");
  ASSERT_EQ(lchown((folder / "way").c_str(), 65'534, 65'534), 0);
  std::filesystem::permissions(folder / ".", std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  EXPECT_THAT(message_of<InputError>(
                  [&] { const StreamListener listener(parse_stream_address("unix:" + (folder / "way/s").string())); }),
              HasSubstr("way: the link belongs to another user"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "victim"));
}

TEST(message_stream, listener_at_a_path__replaces_a_socket_that_was_left_but_no_file) {
  const TemporaryFolder folder;
  const std::string path = folder / "socket";
  std::ofstream(path) << "precious";
  EXPECT_THAT(message_of<RunError>([&] { const StreamListener listener(parse_stream_address("unix:" + path)); }),
              HasSubstr("choose another address"));
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "precious");
  std::filesystem::remove(path);

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(left);
  EXPECT_NO_THROW(StreamListener(parse_stream_address("unix:" + path)));
}

TEST(message_stream, peer_whose_machine_has_gone__is_noticed) {
  StreamListener listener(parse_stream_address("127.0.0.1:0"));
  const auto client = MessageStream::connect(listener.address(), 10_s, [] { return std::string(); });
  int on = 0;
  socklen_t size = sizeof on;
  ASSERT_EQ(getsockopt(client->file(), SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
  EXPECT_NE(on, 0);
}

TEST(message_stream, no_listener__is_an_error_that_says_where) {
  const auto error = message_of<RunError>(
      [] { MessageStream::connect(parse_stream_address("unix:/nowhere/at/all"), 0_s, [] { return std::string(); }); });
  EXPECT_THAT(error, HasSubstr("no coordinator at unix:/nowhere/at/all"));
}

TEST(message_stream, waiting_for_somebody__ends_when_it_is_asked_to) {
  const auto error = message_of<RunError>([] {
    MessageStream::connect(parse_stream_address("unix:/nowhere/at/all"), 100_s,
                           [] { return std::string("ended by the test"); });
  });
  EXPECT_THAT(error, HasSubstr("ended by the test before the coordinator was reached"));
}

}  // namespace
}  // namespace mltcp::experiment
