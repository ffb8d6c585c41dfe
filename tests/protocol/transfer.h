// Test helper that transfers one message from client to server and lets the test decide the fate of each packet.
#pragma once

#include <cstddef>
#include <functional>

#include "../transport/test_network.h"

namespace mltcp::testing_network {

/// A pair of connections with one message of `bytes` to send and a receive buffer for it at the server.
struct Transfer {
  explicit Transfer(std::size_t bytes, const ConnectionConfig& config = {}, Rate rate = {})
      : pair(config, config), message(random_bytes(bytes)), buffer(bytes) {
    pair.rate = rate;
    std::tie(c, s) = pair.connect();
    EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(10_ms);
    pair.log.clear();
  }
  /// Calls `decide` with the index (from 0) and the fate of each data packet of the client.
  void on_data(const std::function<void(int, Fate&)>& decide) {
    pair.fate = [decide, next = 0](const Parsed& packet, Fate& fate) mutable {
      if (packet.from == 0 && is_data(packet)) decide(next++, fate);
    };
  }
  void send() { ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok); }
  void complete(Nanos within = 10_s) {
    send();
    ASSERT_TRUE(pair.transfer(1, 1, within));
    EXPECT_EQ(buffer, message);
  }
  ConnectionStats stats() { return pair.c().stats(c).value(); }

  Pair pair;
  ByteVector message;
  ByteVector buffer;
  ConnectionId c = 0;
  ConnectionId s = 0;
};

}  // namespace mltcp::testing_network
