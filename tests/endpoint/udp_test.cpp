// Tests two processes over the kernel's UDP sockets. They connect with address blobs, exchange data, sleep when there
// is none, and detect each other's death.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "endpoint_pair.h"
#include "mltcp/socket/register_datapath.h"

namespace mltcp::endpoint::udp_test {
namespace {

using namespace testing_pair;

constexpr std::size_t kLong = 3'000'000;

EndpointConfig udp_config() {
  socket::register_datapath();
  EndpointConfig config;
  config.datapath.device = "udp:127.0.0.1";
  config.address = Address::v4(0x7F000001, 0);
  config.shards = 2;
  config.peer_timeout = 1_s;
  return config;
}

Nanos cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Nanos((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * std::int64_t{1'000'000'000} +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * std::int64_t{1000});
}

/// A process that runs `what` with an endpoint, and passes the endpoint's address blob to the process of the test.
class Peer {
 public:
  explicit Peer(const std::function<void(Endpoint&)>& what) {
    EXPECT_EQ(pipe(files_.data()), 0);
    process_ = fork();
    if (process_ != 0) {
      blob_.resize(EndpointAddress::kMaxBytes);
      const ssize_t size = read(files_[0], blob_.data(), blob_.size());
      blob_.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
      return;
    }
    {
      Endpoint endpoint(udp_config());
      const auto blob = endpoint.address().bytes();
      if (write(files_[1], blob.data(), blob.size()) < 0) _exit(2);
      what(endpoint);
    }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ~Peer() {
    kill();
    close(files_[0]);
    close(files_[1]);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  [[nodiscard]] const ByteVector& blob() const { return blob_; }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  int wait() {
    int status = -1;
    waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::array<int, 2> files_{};
  pid_t process_ = 0;
  ByteVector blob_;
};

#if !defined(__SANITIZE_THREAD__)  // TSan does not support a fork of a process that has had threads

TEST(Udp, two_processes__exchange_messages_of_both_kinds) {
  Peer peer([](Endpoint& endpoint) {
    for (int i = 0; i < 2; ++i) {
      const Completion accepted = next_event(endpoint);
      ByteVector buffer(kLong);
      const ConnectionKind kind = accepted.connection_kind;
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(awaited(endpoint, receive_of(kind, endpoint, accepted.connection, buffer)).bytes, kLong);
        EXPECT_EQ(awaited(endpoint, send_of(kind, endpoint, accepted.connection, buffer)).code, Code::ok);
      }
      EXPECT_EQ(next_event(endpoint).kind, Completion::Kind::closed);
    }
  });
  Endpoint endpoint(udp_config());
  const ByteVector message = bytes_of(kLong);
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    const ConnectionHandle connection = connection_to(peer.blob(), endpoint, kind);
    for (int round = 0; round < 3; ++round) {
      ByteVector buffer(kLong);
      const OperationHandle receiving = receive_of(kind, endpoint, connection, buffer);
      const OperationHandle sending = send_of(kind, endpoint, connection, message);
      EXPECT_EQ(awaited(endpoint, sending).code, Code::ok);
      EXPECT_EQ(awaited(endpoint, receiving).code, Code::ok);
      EXPECT_EQ(buffer, message);
    }
    EXPECT_EQ(endpoint.close(connection), Code::ok);
    EXPECT_EQ(next_event(endpoint).kind, Completion::Kind::closed);
  }
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Udp, two_processes__sleep_while_there_is_nothing_to_do) {
  const auto idle_share = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const Nanos begin = monotonic_now();
    const Nanos before = cpu_time();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return static_cast<double>((cpu_time() - before).count) / static_cast<double>((monotonic_now() - begin).count);
  };
  Peer peer([&](Endpoint& endpoint) {
    next_event(endpoint);
    EXPECT_LT(idle_share(), 0.01);
  });
  Endpoint endpoint(udp_config());
  connection_to(peer.blob(), endpoint, ConnectionKind::tagged);
  const double share = idle_share();
  RecordProperty("idle_share", std::to_string(share));
  EXPECT_LT(share, 0.01);
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Udp, a_killed_process__ends_what_waits_for_it_in_time) {
  Peer peer([](Endpoint& endpoint) {
    for (;;) next_event(endpoint);
  });
  Endpoint endpoint(udp_config());
  const ByteVector message = bytes_of(kLong);
  ByteVector buffer(10);
  std::vector<OperationHandle> operations(4);
  const ConnectionHandle ordered = connection_to(peer.blob(), endpoint, ConnectionKind::ordered);
  const ConnectionHandle tagged = connection_to(peer.blob(), endpoint, ConnectionKind::tagged);
  EXPECT_EQ(endpoint.send(ordered, message, 0, {}, operations[0]), Code::ok);
  EXPECT_EQ(endpoint.receive(ordered, buffer, 0, {}, operations[1]), Code::ok);
  EXPECT_EQ(endpoint.send_tagged(tagged, message, 1, {}, operations[2]), Code::ok);
  EXPECT_EQ(endpoint.receive_tagged(tagged, buffer, 1, kWholeTag, {}, operations[3]), Code::ok);
  peer.kill();
  const Nanos begin = monotonic_now();
  for (const OperationHandle operation : operations) {
    const Completion end = awaited(endpoint, operation);
    EXPECT_TRUE(end.code == Code::unreachable || end.code == Code::closed) << to_text(end);
    EXPECT_THAT(to_text(end), testing::HasSubstr("127.0.0.1:"));
  }
  EXPECT_LE(monotonic_now() - begin, 1700_ms) << "peer_timeout is 1 s";
}

#endif

TEST(Udp, several_endpoints__of_one_process_find_ports_and_each_other) {
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (int i = 0; i < 4; ++i) endpoints.push_back(std::make_unique<Endpoint>(udp_config()));
  for (auto& from : endpoints) {
    for (auto& to : endpoints) {
      connection_to(to->address().bytes(), *from, ConnectionKind::ordered);
    }
  }
}

// The test opens so many groups of three consecutive ports that randomly chosen groups would often collide.
TEST(Udp, ports__are_the_kernel_s_choice_and_in_a_row) {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> min >> max;
  ASSERT_GT(min, 0U);
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (int i = 0; i < 24; ++i) {
    EndpointConfig config = udp_config();
    config.shards = 3;
    config.driving = Driving::caller;
    config.max_connections = 4;
    config.max_operations = 16;
    endpoints.push_back(std::make_unique<Endpoint>(config));
    const std::uint16_t port = endpoints.back()->address().base().port;
    EXPECT_TRUE(min <= port && port <= max) << port;
    HostPlace place{.address = endpoints.back()->address().base(), .prefix_bits = 8, .gateway = {}};
    for (std::uint16_t shard = 0; shard < 3; ++shard, ++place.address.port)
      EXPECT_THROW(check_host_datapath(config.datapath, place), InputError) << "it is held";
  }
}

TEST(Udp, ports__that_can_t_be_had_are_told_in_one_line) {
  EndpointConfig config = udp_config();
  config.datapath.device = "udp:";
  config.address = Address::parse("192.0.2.77", 0);
  try {
    const Endpoint endpoint(config);
    ADD_FAILURE() << "this machine has no such address";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("this machine does not have 192.0.2.77, but"));
  }
}

}  // namespace
}  // namespace mltcp::endpoint::udp_test
