// Tests the Ethernet-frame datapath against the kernel's UDP. Frames of an emulated device pass through a packet socket
// and a pair of interfaces into another network namespace, where a host on kernel UDP sockets (udp:) answers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../random_bytes.h"
#include "fake_device.h"
#include "mltcp/base/clock.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/shard.h"
#include "namespaces.h"

namespace mltcp::rdma::raw_kernel_test {
namespace {

constexpr std::uint16_t kPort = 27910;
constexpr std::size_t kBytes = 300'001;
constexpr std::uint32_t kMtu = 1400;
constexpr Nanos kPatience{30'000'000'000};

ConnectionConfig with_ecn() {
  ConnectionConfig config;
  config.ecn = true;
  return config;
}

/// Returns each received message to its sender, in an endless loop.
void echo() {
  struct End {
    explicit End(const std::string& ip) : io({.address = Address::parse(ip, kPort), .mtu = kMtu}), shard(io, {}) {
      shard.listen(with_ecn());
    }
    socket::SocketIo io;
    Shard shard;
    std::vector<std::byte> buffer = std::vector<std::byte>(kBytes);
  };
  std::array<End, 2> ends{End("10.9.0.2"), End("fd09::2")};
  for (;;) {
    for (End& end : ends) {
      std::array<Completion, 16> done;
      end.shard.poll(monotonic_now());
      for (std::size_t count = end.shard.take_completions(done), i = 0; i < count; ++i) {
        if (done[i].kind == Completion::Kind::accepted) end.shard.receive(done[i].connection, end.buffer, 1);
        if (done[i].kind == Completion::Kind::received && done[i].status == Status::ok)
          end.shard.send(done[i].connection, end.buffer, 2);
      }
    }
    std::this_thread::yield();
  }
}

/// Emulates a NIC's port and its cable: passes frames between the fabric and an interface.
class Wire {
 public:
  Wire(FakeFabric& fabric, std::uint32_t interface)
      : fabric_(fabric), file_(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL))) {
    name_.sll_family = AF_PACKET;
    name_.sll_protocol = htons(ETH_P_ALL);
    name_.sll_ifindex = static_cast<int>(interface);
    if (file_ < 0 || bind(file_, reinterpret_cast<const sockaddr*>(&name_), sizeof name_) != 0)
      throw std::runtime_error("no packet socket can be had");
    fabric_.wire = [this](const std::vector<std::byte>& frame) {
      if (::send(file_, frame.data(), frame.size(), 0) < 0) ++lost;
    };
  }
  ~Wire() { close(file_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void pass_what_has_come() {
    std::vector<std::byte> frame(65536);
    sockaddr_ll from{};
    for (;;) {
      frame.resize(65536);
      socklen_t size = sizeof from;
      const ssize_t got = recvfrom(file_, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) return;
      if (from.sll_pkttype == PACKET_OUTGOING) continue;
      frame.resize(static_cast<std::size_t>(got));
      const std::lock_guard lock(fabric_.mutex);
      FakeQueuePair::arrive(fabric_, frame);
    }
  }

  std::uint64_t lost = 0;

 private:
  FakeFabric& fabric_;
  int file_;
  sockaddr_ll name_{};
};

/// Sends a message to a host that uses kernel sockets and echoes each message. Returns an error message, or an empty
/// string on success.
std::string talk(const std::string& own, const std::string& peer) {
  FakeFabric fabric;
  Wire wire(fabric, if_nametoindex("v0"));
  auto device = std::make_unique<FakeDevice>(fabric, own);
  device->raw = {};
  device->facts_.interfaces = {if_nametoindex("v0")};
  const auto datapath = make_raw_datapath({.device = "verbs:fake0:1:raw"}, std::move(device), kernel_network());
  HostPlace place;
  place.address = Address::parse(own, kPort);
  datapath->take_place(place);
  if (datapath->mtu() != kMtu) return fmt::format("the MTU is {}", datapath->mtu());
  Shard shard(datapath->io(0), {});
  const Nanos begin = datapath->time().now();
  const ConnectionId id = shard.connect(Address::parse(peer, kPort), with_ecn(), begin);
  const std::vector<std::byte> message = random_bytes(kBytes);
  std::vector<std::byte> back(kBytes);
  shard.send(id, message, 1);
  shard.receive(id, back, 2);
  while (datapath->time().now() - begin < kPatience) {
    wire.pass_what_has_come();
    shard.poll(datapath->time().now());
    std::array<Completion, 16> done;
    for (std::size_t count = shard.take_completions(done), i = 0; i < count; ++i) {
      if (done[i].kind == Completion::Kind::closed) return "the connection has ended";
      if (done[i].kind != Completion::Kind::received) continue;
      const DatapathLosses losses = datapath->losses();
      if (losses.errors + losses.rejected != 0)
        return fmt::format("{} errors, {} rejected", losses.errors, losses.rejected);
      return done[i].status == Status::ok && back == message ? "" : "other bytes have come back";
    }
    std::this_thread::yield();
  }
  return fmt::format("no answer; {} frames sent, {} of them not taken", fabric.frames.load(), wire.lost);
}

TEST(RawDatapath, hosts_on_the_kernels_sockets__are_talked_with_over_ipv4_and_ipv6) {
  const std::string verdict = namespaces::between_namespaces(
      []() -> std::string {
        std::string why = talk("10.9.0.1", "10.9.0.2");
        return why.empty() ? talk("fd09::1", "fd09::2") : why;
      },
      echo);
  if (verdict.starts_with("skip: ")) GTEST_SKIP() << verdict.substr(6);
  EXPECT_EQ(verdict, "");
}

}  // namespace
}  // namespace mltcp::rdma::raw_kernel_test
