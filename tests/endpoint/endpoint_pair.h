// Two endpoints that the test drives in turn, in virtual time. Nothing depends on the speed of the machine.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "../random_bytes.h"
#include "loop_network.h"
#include "mltcp/endpoint/endpoint.h"
#include "posts.h"

namespace mltcp::endpoint {

namespace testing_pair {

inline ByteVector bytes_of(std::size_t size, std::uint64_t seed = 1) { return random_bytes(size, seed); }

inline EndpointConfig caller_config(const std::string& network, std::uint32_t host) {
  EndpointConfig config;
  config.datapath.device = "loop:" + network;
  config.address = Address::v4(0x0A000000 + host, 50'000);
  config.driving = Driving::caller;
  config.peer_timeout = 200_ms;
  config.max_connections = 8;
  config.max_operations = 256;
  config.control_frames = 8;
  config.unexpected_messages = 8;
  config.eager_limit = 1024;
  config.seed = host;
  return config;
}

/// Returns success if the operation ended with `code` and `cause`.
inline testing::AssertionResult ended(const Completion& end, Code code, Cause cause) {
  if (end.code == code && end.cause == cause) return testing::AssertionSuccess();
  return testing::AssertionFailure() << to_text(end) << ", not " << code << ", " << cause;
}

class EndpointPair : public testing::Test {
 protected:
  EndpointPair() {
    loop_network::register_datapath();
    static int number = 0;
    name = "pair" + std::to_string(++number);
    network = loop_network::Network::make(name, true);
  }

  ~EndpointPair() override { network->loses = nullptr; }  // endpoints still send packets when they close

  EndpointConfig config(std::uint32_t host) const { return caller_config(name, host); }
  void open(const EndpointConfig& a, const EndpointConfig& b) {
    left = std::make_unique<Endpoint>(a);
    right = std::make_unique<Endpoint>(b);
  }
  void open() { open(config(1), config(2)); }

  void step() {
    network->time += 2'000;
    if (left != nullptr) left->progress();
    if (right != nullptr) right->progress();
    if (third != nullptr) third->progress();
    if (each_step) each_step();
  }
  /// Runs until `over()` returns true, for at most `limit` of virtual time. Returns whether `over()` returned true.
  /// While no packets are sent, virtual time advances in larger steps.
  bool run(const std::function<bool()>& over, Nanos limit = 1_s) {
    const std::int64_t end = network->time + limit.count;
    std::uint64_t packets = 0;
    for (int idle = 0; network->time < end; ++idle) {
      step();
      if (over()) return true;
      if (network->packets != packets) idle = 0;
      packets = network->packets;
      if (idle > 50) network->time += 100'000;
    }
    return false;
  }
  void run_for(Nanos time) {
    run([] { return false; }, time);
  }

  /// Returns the next event of `endpoint`. The event has kind 0 if none arrives within `limit`.
  Completion event(Endpoint& endpoint, Nanos limit = 2_s) {
    Completion next{};
    next.kind = Completion::Kind{};
    run([&] { return endpoint.events().poll({&next, 1}) == 1; }, limit);
    return next;
  }
  /// Returns the completion of an operation. If the operation has not ended within `limit`, the completion has the code
  /// `nothing` and kind 0.
  Completion end_of(Endpoint& endpoint, OperationHandle operation, Nanos limit = 2_s) {
    Completion end{};
    end.kind = Completion::Kind{};
    end.code = Code::nothing;
    Code code = Code::timed_out;
    run([&] { return (code = endpoint.test(operation, end)) != Code::timed_out; }, limit);
    EXPECT_EQ(code, Code::ok) << "the operation has not ended, or is unknown";
    return end;
  }
  bool is_pending(Endpoint& endpoint, OperationHandle operation) {
    run_for(200_us);
    Completion end;
    return endpoint.test(operation, end) == Code::timed_out;
  }

  /// Connects `from` to `to` and returns the completion. Sets `connection` to the handle.
  Completion connected(Endpoint& from, const EndpointAddress& to, ConnectionKind kind, ConnectionHandle& connection) {
    OperationHandle operation = 0;
    EXPECT_EQ(from.connect(to.bytes(), {.kind = kind, .post = {}}, connection, &operation), Code::ok);
    return end_of(from, operation);
  }
  /// Connects `left` to `right`. Sets the handles `here` of `left` and `there` of `right`.
  void connect(ConnectionKind kind) {
    const Completion end = connected(*left, right->address(), kind, here);
    ASSERT_EQ(end.code, Code::ok) << to_text(end);
    const Completion accepted = event(*right);
    ASSERT_EQ(accepted.kind, Completion::Kind::accepted);
    there = accepted.connection;
  }

  std::string name;
  std::shared_ptr<loop_network::Network> network;
  std::unique_ptr<Endpoint> left;
  std::unique_ptr<Endpoint> right;
  std::unique_ptr<Endpoint> third;
  std::function<void()> each_step;
  ConnectionHandle here = 0;
  ConnectionHandle there = 0;
};

}  // namespace testing_pair
}  // namespace mltcp::endpoint
