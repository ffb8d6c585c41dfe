// Tests the public endpoint API over UD queue pairs between emulated devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../endpoint/posts.h"
#include "../random_bytes.h"
#include "fake_device.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/random.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {
namespace {

using namespace endpoint;
using namespace endpoint::testing_pair;

constexpr std::string_view kPrefix = "memory:";

FakeFabric& fabric() {
  static FakeFabric one;
  return one;
}

/// Registers a datapath for ports named "memory:IP", whose devices are on the fabric.
void register_memory_ports() {
  register_host_datapath({.name = "memory",
                          .forms = "memory:IP",
                          .takes = [](std::string_view device) { return device.starts_with(kPrefix); },
                          .check = [](const HostDatapathConfig&, const HostPlace&) {},
                          .open =
                              [](const HostDatapathConfig& config) {
                                HostDatapathConfig inner = config;
                                inner.device = "verbs:fake0";
                                return make_datapath(inner, std::make_unique<FakeDevice>(
                                                                fabric(), config.device.substr(kPrefix.size()), 4096));
                              }});
}

EndpointConfig config_of(const std::string& ip, std::uint16_t port) {
  register_memory_ports();
  EndpointConfig config;
  config.datapath.device = std::string(kPrefix) + ip;
  config.address = Address::parse(ip, port);
  config.shards = 2;
  return config;
}

TEST(VerbsEndpoint, messages__arrive_whole_by_tag_and_in_order_with_marks_and_without) {
  Endpoint a(config_of("127.0.0.1", 47710));
  Endpoint b(config_of("127.0.0.2", 47710));
  std::vector<std::byte> message(3'000'000);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const bool marks : {false, true}) {
    fabric().marks = marks;
    for (const ConnectionKind kind : {ConnectionKind::tagged, ConnectionKind::ordered}) {
      const ConnectionHandle connection = connection_to(b.address().bytes(), a, kind);
      const endpoint::Completion accepted = next_event(b);
      ASSERT_EQ(accepted.kind, endpoint::Completion::Kind::accepted);
      std::vector<std::byte> buffer(message.size());
      const OperationHandle receiving = receive_of(kind, b, accepted.connection, buffer);
      const OperationHandle sending = send_of(kind, a, connection, message);
      EXPECT_EQ(awaited(a, sending).code, Code::ok);
      EXPECT_EQ(awaited(b, receiving).bytes, message.size());
      EXPECT_EQ(buffer, message);
      EXPECT_EQ(a.close(connection), Code::ok);
      while (next_event(b).kind != endpoint::Completion::Kind::closed) ASSERT_FALSE(HasFailure());
    }
  }
  fabric().marks = false;
}

/// Connects `a` to `b`, sends a message and aborts the connection. Returns whether the message arrived.
bool they_talk(Endpoint& a, Endpoint& b) {
  const std::vector<std::byte> message = random_bytes(20'000);
  std::vector<std::byte> buffer(message.size());
  ConnectionHandle connection = 0;
  OperationHandle operation = 0;
  OperationHandle receiving = 0;
  EXPECT_EQ(a.connect(b.address().bytes(), {.kind = ConnectionKind::tagged, .post = {}}, connection, &operation),
            Code::ok);
  if (awaited(a, operation).code != Code::ok) return false;
  EXPECT_EQ(b.receive_tagged(kAnyConnection, buffer, 5, kWholeTag, {}, receiving), Code::ok);
  EXPECT_EQ(a.send_tagged(connection, message, 5, {}, operation), Code::ok);
  const bool arrived = awaited(a, operation).code == Code::ok && awaited(b, receiving).code == Code::ok;
  a.abort(connection);
  if (!arrived) b.close();  // after this call, `b` no longer writes into the buffer
  EXPECT_EQ(buffer, message);
  return arrived;
}

TEST(VerbsEndpoint, a_hundred_thousand_messages_of_any_bytes__leave_an_endpoint_as_it_was) {
  Endpoint a(config_of("127.0.0.1", 47720));
  EndpointConfig guarded = config_of("127.0.0.2", 47720);
  guarded.max_connections = 64;
  Endpoint b(guarded);
  {
    const std::lock_guard lock(fabric().mutex);
    fabric().records = true;
  }
  ASSERT_TRUE(they_talk(a, b));
  std::vector<FakeFabric::Record> real;
  {
    const std::lock_guard lock(fabric().mutex);
    fabric().records = false;
    real.assign(fabric().recorded.begin(), fabric().recorded.end());
  }
  ASSERT_GT(real.size(), 10u);
  // The forger knows the queue pair and the key of each shard, because anybody can ask for them.
  Random random(17);
  for (int i = 0; i < 100'000; ++i) {
    const FakeFabric::Record& one = real[random.below(real.size())];
    std::vector<std::byte> bytes = one.bytes;
    // A forged route header is accepted only if its checksum is right or absent. So half of the forged headers have no
    // checksum.
    if (random.below(2) == 0) bytes[30] = bytes[31] = std::byte{0};
    for (std::uint64_t changes = random.below(6); changes > 0; --changes)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    switch (random.below(8)) {
      case 0:
        bytes.resize(random.below(bytes.size() + 1));
        break;
      case 1:
        bytes.resize(kGrhBytes + random.below(kMaxMessage + 1));
        break;
      case 2:
        std::generate(bytes.begin() + kGrhBytes, bytes.end(), [&] { return static_cast<std::byte>(random.next()); });
        break;
      default:
        break;
    }
    for (const Nanos end = monotonic_now() + kPatience; monotonic_now() < end; std::this_thread::yield()) {
      const std::lock_guard lock(fabric().mutex);
      FakeQueuePair& pair = *fabric().pairs.at(one.to);
      if (pair.posted.empty()) continue;  // the test must not lose datagrams for lack of a posted buffer
      pair.deliver(bytes, pair.key(), static_cast<std::uint32_t>(random.next()), random.below(16) != 0);
      break;
    }
    if (i % 20'000 == 19'999) {
      ASSERT_TRUE(they_talk(a, b) && they_talk(b, a)) << i;
    }
  }
  EndpointReport report;
  ASSERT_EQ(b.report(report), Code::ok);
  EXPECT_GT(report.losses.rejected, 1000u);
  EXPECT_GT(report.packets.corrupted_packets, 1000u);
  EXPECT_EQ(report.losses.errors, 0u) << "no queue pair has failed";
}

}  // namespace
}  // namespace mltcp::rdma
