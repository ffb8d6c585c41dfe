// Tests metrics: addresses, answers to HTTP requests, and a port that is already in use.
#include "mltcp/endpoint/live/metrics.h"
#include "mltcp/endpoint/live/describe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>
#include <sstream>
#include <string>

#include "mltcp/base/error.h"
#include "some_snapshot.h"

namespace mltcp::live {
namespace {

std::string complaint(const std::string& text) {
  try {
    MetricsAddress::parse("--metrics", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MetricsAddress, forms) {
  EXPECT_EQ(MetricsAddress::parse("", "9470").text(), "127.0.0.1:9470");
  EXPECT_EQ(MetricsAddress::parse("", "localhost:1").text(), "127.0.0.1:1");
  EXPECT_EQ(MetricsAddress::parse("", "[::1]:9470").text(), "[::1]:9470");
  EXPECT_TRUE(MetricsAddress::parse("", "[::1]:9470").is_loopback);
  EXPECT_TRUE(MetricsAddress::parse("", "127.1.2.3:9470").is_loopback);
  EXPECT_FALSE(MetricsAddress::parse("", "0.0.0.0:9470").is_loopback);
  EXPECT_FALSE(MetricsAddress::parse("", "[::]:9470").is_loopback);
}

TEST(MetricsAddress, wrong__one_line) {
  for (const char* const text : {"", "0", "70000", "9470x", "host:9470", "127.0.0.1:", "::1:9470", "1.2.3:1"})
    EXPECT_EQ(
        complaint(text).find("--metrics: \"" + std::string(text) + "\" is not a valid address for metrics; write "), 0U)
        << text;
}

/// Returns a TCP socket that listens on a free port of the loopback. Sets `port` to the number of this port.
int listening_socket(std::uint16_t& port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  bind(file, reinterpret_cast<const sockaddr*>(&name), size);
  listen(file, 1);
  getsockname(file, reinterpret_cast<sockaddr*>(&name), &size);
  port = ntohs(name.sin_port);
  return file;
}

#if MLTCP_HAS_METRICS

std::uint16_t free_port() {
  std::uint16_t port = 0;
  close(listening_socket(port));
  return port;
}

std::string get(std::uint16_t port, const std::string& path) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(port);
  std::string answer;
  if (connect(file, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    send(file, request.data(), request.size(), MSG_NOSIGNAL);
    std::array<char, 4096> block{};
    for (ssize_t count = 0; (count = recv(file, block.data(), block.size(), 0)) > 0;)
      answer.append(block.data(), static_cast<std::size_t>(count));
  }
  close(file);
  return answer;
}

TEST(Metrics, request__every_metric_with_help_and_type) {
  const std::uint16_t port = free_port();
  const MetricsServer server("--metrics", MetricsAddress::parse("", std::to_string(port)),
                             [] { return std::optional(test::some_snapshot()); });
  const std::string text = get(port, "/metrics");
  for (const char* const line : {"mltcp_answers 1",
                                 "mltcp_process_info{kind=\"gen\",name=\"host 1 at 10.0.0.2/24\",policy=\"mltcp\"} 1",
                                 "mltcp_process_up_seconds 12.5",
                                 "mltcp_job_iterations_total{job=\"vgg19-a\",rank=\"3\"} 17",
                                 "mltcp_job_last_iteration_seconds{job=\"vgg19-a\",rank=\"3\"} 0.25",
                                 "mltcp_job_gain{job=\"vgg19-a\",rank=\"3\"} 1.125",
                                 "mltcp_job_bytes_ratio{job=\"vgg19-a\",rank=\"3\"} 0.5",
                                 "mltcp_job_sent_bytes_total{job=\"vgg19-a\",rank=\"3\"} 1000000",
                                 "mltcp_connections_open{job=\"vgg19-a\"} 2",
                                 "mltcp_connections_congestion_window_bytes{job=\"vgg19-a\"} 80000",
                                 "mltcp_connections_retransmitted_packets_total{job=\"vgg19-a\"} 4",
                                 "mltcp_connections_delivery_bytes_per_second{job=\"vgg19-a\"} 2000000",
                                 "mltcp_port_up{port=\"udp:eth0\"} 0",
                                 "mltcp_connections_shortened{job=\"vgg19-a\"} 1",
                                 "mltcp_port_refused_connects_total{port=\"udp:eth0\"} 3",
                                 "mltcp_port_violations_total{port=\"udp:eth0\"} 2",
                                 "mltcp_port_black_holes_total{port=\"udp:eth0\"} 1",
                                 "mltcp_port_sent_size_probes_total{port=\"udp:eth0\"} 9",
                                 "mltcp_port_lost_size_probes_total{port=\"udp:eth0\"} 6",
                                 "mltcp_port_dropped_packets_total{port=\"udp:eth0\"} 7",
                                 "mltcp_claims_iterations_total{job=\"7\"} 60",
                                 "mltcp_claims_bytes_total{job=\"7\"} 120000000",
                                 "mltcp_claims_bytes_at_end_total{job=\"7\"} 60000000",
                                 "mltcp_claims_progress_bytes_total{job=\"7\"} 90000000.5",
                                 "mltcp_claims_overstated{job=\"7\"} 1",
                                 "# TYPE mltcp_job_gain gauge",
                                 "# TYPE mltcp_job_iterations_total counter",
                                 "# HELP mltcp_port_queue_bytes "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

/// By prometheus.io/docs/practices/naming, the names of all counters, and no other names, end in _total.
TEST(Metrics, names__by_the_conventions) {
  const std::uint16_t port = free_port();
  const MetricsServer server("--metrics", MetricsAddress::parse("", std::to_string(port)),
                             [] { return std::optional(test::some_snapshot()); });
  std::istringstream text(get(port, "/metrics"));
  std::set<std::string> names;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string type;
    std::string name;
    std::string kind;
    words >> hash >> type >> name >> kind;
    if (type != "TYPE" || !name.starts_with("mltcp_")) continue;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(kind == "counter", name.ends_with("_total")) << name;
  }
  EXPECT_GT(names.size(), 25U);
}

TEST(Metrics, no_snapshot__says_so) {
  const std::uint16_t port = free_port();
  const MetricsServer server("--metrics", MetricsAddress::parse("", std::to_string(port)),
                             [] { return std::optional<Snapshot>(); });
  EXPECT_NE(get(port, "/metrics").find("mltcp_answers 0"), std::string::npos);
}

TEST(Metrics, after_its_end__the_port_is_free) {
  const std::uint16_t port = free_port();
  for (int i = 0; i < 2; ++i) {
    const MetricsServer server("--metrics", MetricsAddress::parse("", std::to_string(port)),
                               [] { return std::optional(test::some_snapshot()); });
    EXPECT_NE(get(port, "/metrics").find("mltcp_answers 1"), std::string::npos);
  }
}

#else
TEST(Metrics, module) {
  GTEST_SKIP() << "prometheus-cpp or libmicrohttpd is missing (Debian: prometheus-cpp-dev, libmicrohttpd-dev)";
}
#endif

TEST(Metrics, busy_port__one_line_with_the_cure) {
  std::uint16_t port = 0;
  const int file = listening_socket(port);
  try {
    const MetricsServer server("--metrics", MetricsAddress::parse("", std::to_string(port)),
                               [] { return std::optional<Snapshot>(); });
    ADD_FAILURE();
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()), "--metrics: cannot listen on 127.0.0.1:" + std::to_string(port) +
                                             " (Address already in use); give another port");
  }
  close(file);
}

TEST(Describe, add_packets__of_several_shards) {
  PortView port;
  port.bad_packets = 1;
  const ShardStats stats{.packets_received = 1,
                         .packets_sent = 2,
                         .truncated_packets = 10,
                         .foreign_packets = 20,
                         .corrupted_packets = 40,
                         .malformed_packets = 80,
                         .forged_packets = 160,
                         .replayed_packets = 640,
                         .forged_resets = 320,
                         .violations = 4,
                         .half_open = 5};
  add_packets(stats, port);
  add_packets(stats, port);
  EXPECT_EQ(port.received_packets, 2U);
  EXPECT_EQ(port.sent_packets, 4U);
  EXPECT_EQ(port.bad_packets, 1U + 2 * 1270);
  EXPECT_EQ(port.transport.violations, 8U);
  EXPECT_EQ(port.transport.half_open, 10U);
}

}  // namespace
}  // namespace mltcp::live
