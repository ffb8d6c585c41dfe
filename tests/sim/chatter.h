// Test helper that sends random traffic between all ports of a network until no packet is in flight, and reports the
// result.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/lab/sim/network.h"

namespace mltcp::sim {

struct ChatterRun {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::vector<std::uint64_t> digests;  ///< a digest of each port's received packets and their arrival times
  bool operator==(const ChatterRun&) const = default;
};

struct ChatterSettings {
  /// Sends one random packet. Returns whether the port accepted it.
  std::function<bool(Host&, Random&)> send;
  Nanos max_gap;  ///< upper limit of the time between two bursts of a port
  Nanos until;    ///< time after which ports send no more packets
  std::uint64_t seed = 1;
  Nanos step{1'000'000};  ///< length of the steps in which the simulation runs
};

/// Sends bursts of random packets at random times, and computes a digest of the received packets.
class Chatter : public Pollable {
 public:
  Chatter(Host& host, const ChatterSettings& settings, std::uint64_t seed)
      : host_(host), settings_(settings), random_(seed) {}

  Nanos poll(Nanos now) override {
    std::array<RxPacket, 32> in;
    while (const std::size_t count = host_.receive(in)) {
      received += count;
      for (const RxPacket& packet : std::span(in).first(count)) {
        mix(static_cast<std::uint64_t>(now.count));
        mix(packet.source.v4_ip() + packet.virtual_bytes + static_cast<std::uint64_t>(packet.ecn) + packet.hops);
        for (const std::byte byte : packet.bytes) mix(static_cast<std::uint64_t>(byte));
      }
    }
    if (now >= settings_.until) return Nanos::never();
    if (now >= next_) {
      for (std::uint64_t i = 1 + random_.below(20); i > 0; --i)
        if (settings_.send(host_, random_)) ++sent;
      next_ =
          now + Nanos(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(settings_.max_gap.count))));
    }
    return next_;
  }

  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t digest = 0;

 private:
  void mix(std::uint64_t value) { digest = (digest ^ value) * 0x100000001B3ULL; }

  Host& host_;
  const ChatterSettings& settings_;
  Random random_;
  Nanos next_;
};

/// Runs random traffic over `ports`. Expects that the network's counters account for every packet that the ports sent
/// or received.
inline ChatterRun chatter(Network& net, const std::vector<Host*>& ports, const ChatterSettings& settings) {
  std::vector<std::unique_ptr<Chatter>> all;
  for (Host* port : ports) {
    all.push_back(std::make_unique<Chatter>(*port, settings, Random::stream(settings.seed, all.size()).next()));
    net.attach(*port, *all.back());
  }
  for (Nanos now; now < settings.until; now += settings.step) net.run_until(now);
  net.run(Nanos::never(), nullptr);
  ChatterRun result;
  for (const auto& one : all) {
    result.sent += one->sent;
    result.received += one->received;
    result.digests.push_back(one->digest);
  }
  EXPECT_EQ(result.sent, net.counters().sent_packets);
  EXPECT_EQ(result.received, net.counters().received_packets);
  EXPECT_EQ(net.packets_inside(), 0U);
  EXPECT_EQ(net.counters().invalid_packets + net.counters().unknown_destination + net.counters().unattached_host, 0U);
  return result;
}

}  // namespace mltcp::sim
