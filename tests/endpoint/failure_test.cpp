// Tests failures. Whatever dies, every operation ends in time, and its completion names the peer and the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_pair.h"

namespace mltcp::endpoint::failure_test {
namespace {

using namespace testing_pair;
using testing::HasSubstr;

class FailureTest : public EndpointPair {
 protected:
  /// Makes the network lose all further packets.
  void cut() {
    network->loses = [](const Address&, const Address&, std::span<const std::byte>) { return true; };
  }
};

TEST_F(FailureTest, connect__to_no_peer_ends_in_time) {
  open();
  const EndpointAddress nobody(Address::v4(0x0A000063, 50'000), 1, {1});
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    OperationHandle operation = 0;
    ASSERT_EQ(left->connect(nobody.bytes(), {.kind = kind, .post = {}}, here, &operation), Code::ok);
    const ByteVector message = bytes_of(10);
    const OperationHandle sending = send_of(kind, *left, here, message);
    const Nanos begin = left->now();
    const Completion end = end_of(*left, operation);
    EXPECT_LE(left->now() - begin, 301_ms);
    EXPECT_EQ(end.code, Code::unreachable);
    EXPECT_THAT(to_text(end), HasSubstr("10.0.0.99:50000"));
    EXPECT_EQ(end_of(*left, sending).code, Code::unreachable);
    run_for(1_ms);
    EXPECT_EQ(left->close(here), Code::ok);
    EXPECT_EQ(left->close(here), Code::unknown);
  }
}

TEST_F(FailureTest, own_port__is_asked_why_it_carries_nothing) {
  open();
  EXPECT_EQ(left->why_link_is_down(), "");
  network->why_link_is_down = "the cable is out; put it in";
  EXPECT_EQ(left->why_link_is_down(), "the cable is out; put it in");
  const Address peer = Address::v4(0x0A000007, 9);
  EXPECT_EQ(left->why_silent(peer), "the cable is out; put it in");
  network->why_silent = "too long for ";
  EXPECT_EQ(left->why_silent(peer), "too long for 10.0.0.7:9");
  left->close();
  EXPECT_EQ(left->why_silent(peer), "");
  EXPECT_EQ(left->why_link_is_down(), "");
}

TEST_F(FailureTest, connect__to_an_endpoint_that_accepts_no_peer) {
  EndpointConfig deaf = config(2);
  deaf.accepts = false;
  open(config(1), deaf);
  const Completion end = connected(*left, right->address(), ConnectionKind::ordered, here);
  EXPECT_EQ(end.code, Code::refused);
  EXPECT_EQ(end.cause, Cause::nobody_listens);
}

TEST_F(FailureTest, connect__to_a_restarted_endpoint_is_told_so) {
  open();
  const EndpointAddress old = right->address();
  right.reset();
  EndpointConfig again = config(2);
  again.seed = 77;
  right = std::make_unique<Endpoint>(again);
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    const Completion end = connected(*left, old, kind, here);
    EXPECT_EQ(end.code, Code::wrong_peer);
    EXPECT_THAT(to_text(end), HasSubstr("get the peer's new address"));
  }
  EndpointReport report;
  ASSERT_EQ(right->report(report), Code::ok);
  EXPECT_EQ(report.connections, 0U);
  EXPECT_GE(report.unintroduced, 2U);
}

TEST_F(FailureTest, connect__beyond_what_there_is_room_for) {
  EndpointConfig few = config(2);
  few.max_connections = 2;
  open(config(1), few);
  connect(ConnectionKind::tagged);
  connect(ConnectionKind::ordered);
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    ConnectionHandle more = 0;
    OperationHandle operation = 0;
    ASSERT_EQ(left->connect(right->address().bytes(), {.kind = kind, .post = {}}, more, &operation), Code::ok);
    EXPECT_TRUE(ended(end_of(*left, operation), Code::refused, Cause::peer_full));
  }
  ConnectionHandle more = 0;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(left->connect(right->address().bytes(), {}, more), Code::ok);
  EXPECT_EQ(left->connect(right->address().bytes(), {}, more), Code::no_room);
  run_for(10_ms);
  right->close(there);
  run_for(10_ms);
  ASSERT_EQ(event(*right).kind, Completion::Kind::closed);
  connect(ConnectionKind::ordered);
}

TEST_F(FailureTest, silence__ends_everything_outstanding_at_both_ends) {
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    open();
    connect(kind);
    ByteVector buffer(10);
    const ByteVector lengthy = bytes_of(20'000);
    const bool ordered = kind == ConnectionKind::ordered;
    const OperationHandle sending = ordered ? send(*left, here, lengthy) : send_tagged(*left, here, lengthy, 1);
    const OperationHandle receiving =
        ordered ? receive(*right, there, buffer) : receive_tagged(*right, there, buffer, 2);
    const OperationHandle idle = ordered ? receive(*left, here, buffer) : receive_tagged(*left, here, buffer, 2);
    if (!ordered) run_for(1_ms);
    cut();
    const Nanos begin = left->now();
    for (const OperationHandle operation : {sending, idle}) {
      const Completion end = end_of(*left, operation);
      EXPECT_EQ(end.code, Code::unreachable);
      EXPECT_THAT(to_text(end), HasSubstr("10.0.0.2"));
    }
    EXPECT_EQ(end_of(*right, receiving).code, Code::unreachable);
    EXPECT_LE(left->now() - begin, 301_ms);
    EXPECT_EQ(event(*left).code, Code::unreachable);
    EXPECT_EQ(event(*right).code, Code::unreachable);
    network->loses = nullptr;
    left.reset();
    right.reset();
  }
}

// One endpoint dies silently after a number of packets. The test tries many numbers, and so covers every point of a
// connection's life.
TEST_F(FailureTest, death__after_any_packet_ends_everything_in_time) {
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    for (int survives = 0; survives < 60; survives += 1) {
      open();
      int left_to_pass = survives;
      network->loses = [&](const Address& from, const Address&, std::span<const std::byte>) {
        const bool of_right = from.v4_ip() == 0x0A000002;
        return of_right ? left_to_pass == 0 || --left_to_pass < 0 : left_to_pass == 0;
      };
      OperationHandle connecting = 0;
      ASSERT_EQ(left->connect(right->address().bytes(), {.kind = kind, .post = {}}, here, &connecting), Code::ok);
      const ByteVector lengthy = bytes_of(20'000);
      ByteVector buffer(20'000);
      ByteVector peers_buffer(20'000);
      const bool ordered = kind == ConnectionKind::ordered;
      std::vector<OperationHandle> operations{connecting};
      operations.push_back(ordered ? send(*left, here, lengthy) : send_tagged(*left, here, lengthy, 1));
      operations.push_back(ordered ? receive(*left, here, buffer) : receive_tagged(*left, here, buffer, 2));
      bool accepted = false;
      std::vector<OperationHandle> peers;
      Completion next;
      const auto answer = [&] {
        if (accepted || right->events().poll({&next, 1}) == 0 || next.kind != Completion::Kind::accepted) return;
        accepted = true;
        there = next.connection;
        peers.push_back(ordered ? receive(*right, there, peers_buffer)
                                : receive_tagged(*right, there, peers_buffer, 1));
        peers.push_back(ordered ? send(*right, there, lengthy) : send_tagged(*right, there, lengthy, 2));
        right->close(there);
      };
      each_step = answer;
      for (const OperationHandle operation : operations) end_of(*left, operation, 700_ms);
      for (const OperationHandle operation : peers) end_of(*right, operation, 700_ms);
      each_step = nullptr;
      network->loses = nullptr;
      left.reset();
      right.reset();
    }
  }
}

TEST_F(FailureTest, address__that_is_cut_off_damaged_or_foreign_is_refused) {
  open();
  const auto blob = right->address().bytes();
  ByteVector bytes(blob.begin(), blob.end());
  EXPECT_LE(bytes.size(), EndpointAddress::kMaxBytes);
  EndpointAddress read;
  ASSERT_EQ(EndpointAddress::parse(bytes, read), Code::ok);
  EXPECT_EQ(read, right->address());
  std::string why;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(EndpointAddress::parse(std::span(bytes).first(length), read, &why), Code::bad_address) << length;
    EXPECT_THAT(why, HasSubstr("; "));
    EXPECT_EQ(left->connect(std::span(bytes).first(length), {}, here), Code::bad_address);
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      ByteVector damaged = bytes;
      damaged[at] ^= static_cast<std::byte>(1U << bit);
      const Code code = EndpointAddress::parse(damaged, read);
      EXPECT_EQ(code, at == 4 ? Code::version : Code::bad_address) << at;
    }
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(EndpointAddress::parse(bytes, read), Code::bad_address);

  const EndpointAddress other(Address::parse("[fd00::1]:50000"), 1, {1, 2, 3});
  EXPECT_EQ(left->connect(other.bytes(), {}, here), Code::bad_address);
  EXPECT_THAT(left->failure(), AllOf(HasSubstr("fd00:"), HasSubstr("one has IPv4 and the other IPv6; give both")));
}

TEST_F(FailureTest, endpoint__says_what_is_wrong_with_its_settings) {
  const auto error_of = [](const EndpointConfig& wrong) -> std::string {
    try {
      const Endpoint endpoint(wrong);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EndpointConfig wrong = config(1);
  wrong.shards = 0;
  EXPECT_EQ(error_of(wrong), "shards is 0; give a value from 1 to 256");
  wrong = config(1);
  wrong.address = Address::v4(0, 50'000);
  EXPECT_THAT(error_of(wrong), HasSubstr("names no interface; give"));
  wrong = config(1);
  wrong.connection.congestion_control = "none";
  EXPECT_THAT(error_of(wrong), HasSubstr("none"));
  wrong.driving = Driving::threads;
  EXPECT_THAT(error_of(wrong), HasSubstr("none")) << "also from a thread of its own";
  wrong = config(1);
  wrong.datapath.device = "pigeon:post";
  EXPECT_THAT(error_of(wrong), HasSubstr("write loop:NAME"));
  wrong = config(1);
  wrong.peer_timeout = 1_ms;
  EXPECT_THAT(error_of(wrong), HasSubstr("10 ms to 1 h"));
}

TEST_F(FailureTest, endpoint__asks_its_datapath_for_a_free_port) {
  EndpointConfig free = config(1);
  free.address.port = 0;
  network->free_port = 4321;
  network->takes_ports_once = true;  // another program has just taken the port
  left = std::make_unique<Endpoint>(free);
  EXPECT_EQ(left->address().base().port, 4321);
}

TEST_F(FailureTest, endpoint__finds_a_port_by_itself) {
  EndpointConfig free = config(1);
  free.address.port = 0;
  network->takes_ports_once = true;  // the first request for a port fails
  left = std::make_unique<Endpoint>(free);
  EXPECT_GE(left->address().base().port, 49'152);
  right = std::make_unique<Endpoint>(config(2));
  connect(ConnectionKind::ordered);
}

}  // namespace
}  // namespace mltcp::endpoint::failure_test
