// Endpoints over queue pairs, between devices made of memory: what programs see.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fake_device.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {
namespace {

using namespace endpoint;

constexpr Nanos kPatience{30'000'000'000};
constexpr std::string_view kPrefix = "memory:";

FakeFabric& fabric() {
  static FakeFabric one;
  return one;
}

/// Ports "memory:IP" on the fabric.
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

endpoint::Completion end_of(Endpoint& program, OperationHandle operation) {
  endpoint::Completion end;
  EXPECT_EQ(program.wait(operation, end, kPatience), Code::ok);
  return end;
}

TEST(VerbsEndpoint, messages__arrive_whole_by_tag_and_in_order_with_marks_and_without) {
  Endpoint a(config_of("127.0.0.1", 47710));
  Endpoint b(config_of("127.0.0.2", 47710));
  std::vector<std::byte> message(3'000'000);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const bool marks : {false, true}) {
    fabric().marks = marks;
    for (const ConnectionKind kind : {ConnectionKind::tagged, ConnectionKind::ordered}) {
      ConnectionHandle connection = 0;
      OperationHandle connecting = 0;
      ASSERT_EQ(a.connect(b.address().bytes(), {.kind = kind, .post = {}}, connection, &connecting), Code::ok);
      ASSERT_EQ(end_of(a, connecting).code, Code::ok);
      endpoint::Completion accepted{};
      std::size_t count = 0;
      ASSERT_EQ(b.events().wait({&accepted, 1}, count, kPatience), Code::ok);
      ASSERT_EQ(accepted.kind, endpoint::Completion::Kind::accepted);
      std::vector<std::byte> buffer(message.size());
      OperationHandle sending = 0;
      OperationHandle receiving = 0;
      if (kind == ConnectionKind::tagged) {
        ASSERT_EQ(b.receive_tagged(kAnyConnection, buffer, 5, kWholeTag, {}, receiving), Code::ok);
        ASSERT_EQ(a.send_tagged(connection, message, 5, {}, sending), Code::ok);
      } else {
        ASSERT_EQ(b.receive(accepted.connection, buffer, 0, {}, receiving), Code::ok);
        ASSERT_EQ(a.send(connection, message, 0, {}, sending), Code::ok);
      }
      EXPECT_EQ(end_of(a, sending).code, Code::ok);
      EXPECT_EQ(end_of(b, receiving).bytes, message.size());
      EXPECT_EQ(buffer, message);
      EXPECT_EQ(a.close(connection), Code::ok);
      do {
        ASSERT_EQ(b.events().wait({&accepted, 1}, count, kPatience), Code::ok);
      } while (accepted.kind != endpoint::Completion::Kind::closed);
    }
  }
  fabric().marks = false;
}

}  // namespace
}  // namespace mltcp::rdma
