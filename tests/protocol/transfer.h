// A message that is sent from client to server, and the fate of its packets.
#pragma once

#include <cstddef>
#include <functional>

#include "../transport/test_network.h"

namespace mltcp::testing_network {

/// A pair whose server has a buffer for one message of `bytes`.
struct Transfer {
  explicit Transfer(std::size_t bytes, const ConnectionConfig& config = {}, Rate rate = {})
      : pair(config, config), message(random_bytes(bytes)), buffer(bytes) {
    pair.rate = rate;
    std::tie(c, s) = pair.connect();
    EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(10_ms);
    pair.log.clear();
  }
  /// Counts the client's data packets from 0 and decides on each.
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
