// Tests unknown peers at the port for metrics: endless requests are not stored, and slow peers block nobody.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/endpoint/live/metrics.h"
#include "some_snapshot.h"

namespace mltcp::live {
namespace {

/// A connected TCP socket on the loopback, with the source address 127.0.0.`from`.
class Client {
 public:
  explicit Client(std::uint16_t port, std::uint32_t from = 1) {
    sockaddr_in own = at(from, 0);
    const sockaddr_in to = at(1, port);
    // A time limit that no operation of these tests reaches.
    const timeval patience{8, 0};
    for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO})
      setsockopt(file_, SOL_SOCKET, option, &patience, sizeof patience);
    EXPECT_EQ(bind(file_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(connect(file_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() {
    if (file_ >= 0) close(file_);
  }
  Client(Client&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;

  bool send(const std::string& text) const {
    return ::send(file_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// Returns all data received until the connection ends.
  [[nodiscard]] std::string answer() const {
    std::string answer;
    std::array<char, 4096> block{};
    for (ssize_t count = 0; (count = recv(file_, block.data(), block.size(), 0)) > 0;)
      answer.append(block.data(), static_cast<std::size_t>(count));
    return answer;
  }

 private:
  static sockaddr_in at(std::uint32_t host, std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(0x7F000000 + host);
    name.sin_port = htons(port);
    return name;
  }
  int file_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

std::uint16_t free_port() {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(file, reinterpret_cast<const sockaddr*>(&name), size);
  getsockname(file, reinterpret_cast<sockaddr*>(&name), &size);
  close(file);
  return ntohs(name.sin_port);
}

/// Returns the peak memory of this process since the last call of reset_peak().
std::size_t peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t number = 0; word == "VmHWM:" && status >> number) return number;
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct MetricsAttack : testing::Test {
  [[nodiscard]] std::string ask(const std::string& request, std::uint32_t from = 1) const {
    const Client client(port, from);
    client.send(request);
    return client.answer();
  }
  [[nodiscard]] bool is_served(std::uint32_t from = 1) const {
    const Nanos begun = monotonic_now();
    const bool is_whole = ask(whole, from).find("mltcp_answers 1") != std::string::npos;
    return is_whole && monotonic_now() - begun < Nanos(2'000'000'000);
  }

  const std::string half = "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string whole = half + "a\r\n\r\n";
  const std::uint16_t port = free_port();
  std::atomic<int> looks{0};
  const MetricsServer server{"--metrics", MetricsAddress::parse("", std::to_string(port)), [this] {
                               ++looks;
                               return std::optional(test::some_snapshot());
                             }};
};

TEST_F(MetricsAttack, requests_without_end__take_no_memory) {
  const std::string block(65'536, 'a');
  std::string headers;
  for (int i = 0; i < 1000; ++i) headers += "h" + std::to_string(i) + ": " + std::string(50, 'x') + "\r\n";
  const std::string chunked = "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string get_chunked = "GET" + chunked.substr(4);
  const struct {
    const char* what;
    std::string first;
    std::string then;
  } attacks[] = {
      {"a body in chunks", chunked, "10000\r\n" + block + "\r\n"},
      {"the length of a chunk", chunked, block},
      {"a body in chunks to GET", get_chunked, "10000\r\n" + block + "\r\n"},
      {"a body with its length", "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n", block},
      {"the request line", "GET /", block},
      {"headers", "GET /metrics HTTP/1.1\r\nHost: x\r\n", headers}};
  for (const auto& attack : attacks) {
    ASSERT_TRUE(is_served());
    reset_peak();
    const std::size_t before = peak_kilobytes();
    const Client client(port);
    client.send(attack.first);
    std::size_t sent = 0;
    while (sent < 64'000'000 && client.send(attack.then)) sent += attack.then.size();
    EXPECT_LT(sent, 16'000'000U) << attack.what;
    EXPECT_LT(peak_kilobytes() - before, 4'000U) << attack.what;
  }
  EXPECT_TRUE(is_served());
}

TEST_F(MetricsAttack, other_requests__are_refused) {
  for (const auto& [request, status] :
       {std::pair("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405 "),
        std::pair("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405 "),
        std::pair("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404 "),
        std::pair("GET /metrics/x HTTP/1.1\r\nHost: x\r\n\r\n", "404 "),
        std::pair("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", "413 "),
        std::pair("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "413 "),
        std::pair("GET /metrics?a=b HTTP/1.0\r\n\r\n", "200 ")})
    EXPECT_EQ(ask(request).find(status), sizeof("HTTP/1.x ") - 1) << request << "\n" << ask(request);
}

TEST_F(MetricsAttack, who_is_slow__does_not_block_other_peers) {
  std::vector<Client> slow;
  for (std::uint32_t i = 0; i < 100; ++i) {
    slow.emplace_back(port, 2 + i / 2).send(half);
    if (i % 10 != 0) continue;
    EXPECT_TRUE(is_served()) << i;
    EXPECT_TRUE(is_served(2 + i / 2)) << "as somebody at its address";
  }
}

TEST_F(MetricsAttack, many_connections_of_one_address__displace_only_their_own) {
  const Client honest(port, 2);
  honest.send(half);
  std::vector<Client> slow;
  for (int i = 0; i < 100; ++i) slow.emplace_back(port, 3).send(half);
  EXPECT_TRUE(is_served());
  honest.send("a\r\n\r\n");
  EXPECT_NE(honest.answer().find("mltcp_answers 1"), std::string::npos);
}

TEST_F(MetricsAttack, a_byte_now_and_then__does_not_keep_a_connection) {
  const Nanos begun = monotonic_now();
  const Client client(port);
  client.send(half);
  while (client.send("a") && monotonic_now() - begun < Nanos(12'000'000'000))
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_GT(monotonic_now() - begun, Nanos(4'000'000'000));
  EXPECT_LT(monotonic_now() - begun, Nanos(8'000'000'000));
}

TEST_F(MetricsAttack, many_requests__look_seldom) {
  const Nanos begun = monotonic_now();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_served());
  EXPECT_LE(looks, 1 + (monotonic_now() - begun).count / 100'000'000);
}

TEST_F(MetricsAttack, many_requests__wait_once_for_a_process_that_is_slow) {
  const std::uint16_t other = free_port();
  std::atomic<int> slow_looks{0};
  const MetricsServer slow("--metrics", MetricsAddress::parse("", std::to_string(other)), [&] {
    ++slow_looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return std::optional(test::some_snapshot());
  });
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 12; ++i) clients.emplace_back(other, 2 + i).send(whole);
  for (const Client& client : clients) EXPECT_NE(client.answer().find("mltcp_answers 1"), std::string::npos);
  EXPECT_LE(slow_looks, 3);
}

}  // namespace
}  // namespace mltcp::live
