// Two hosts on the kernel's UDP sockets over the loopback, in real time, that exchange messages during attacks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "attacker.h"
#include "mltcp/base/clock.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/shard.h"

namespace mltcp::attack {

using namespace mltcp::literals;

/// A shard with its socket and a copy of all packets that it sent. forge() sends a packet that the test has made, from
/// the address of this socket.
class Host final : public PacketIo {
 public:
  explicit Host(const ShardConfig& config = {}) : address(Attacker().address()), io_({.address = address}) {
    shard = std::make_unique<Shard>(*this, config);
  }
  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override { return io_.receive(out); }
  std::size_t send(std::span<const TxPacket> packets) override {
    const std::size_t sent = io_.send(packets);
    for (const TxPacket& packet : packets.first(sent)) heard.emplace_back(packet.header.begin(), packet.header.end());
    return sent;
  }
  void forge(const Address& to, const ByteVector& bytes) {
    TxPacket packet;
    packet.destination = &to;
    packet.header = bytes;
    io_.send({&packet, 1});
  }
  [[nodiscard]] std::size_t count(mltcp::Completion::Kind kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(completions, [kind](const auto& completion) { return completion.kind == kind; }));
  }
  [[nodiscard]] const mltcp::Completion& last() const { return completions.back(); }

  Address address;  ///< loopback address with a free port
  std::unique_ptr<Shard> shard;
  std::vector<mltcp::Completion> completions;
  std::function<void(const mltcp::Completion&)> on_completion;
  std::vector<ByteVector> heard;  ///< packets that this host sent, as an attacker on the path sees them

 private:
  socket::SocketIo io_;
};

class RealHosts : public ::testing::Test {
 protected:
  explicit RealHosts(const ShardConfig& of_client = {}, const ShardConfig& of_server = {})
      : client(of_client), server(of_server) {}
  void poll(Host& host) {
    host.shard->poll(clock.now());
    mltcp::Completion completion;
    while (host.shard->take_completions({&completion, 1}) == 1) {
      host.completions.push_back(completion);
      if (host.on_completion) host.on_completion(completion);
    }
  }
  /// Runs all hosts until `stop()` returns true. Returns false if this does not happen within the time `within`.
  bool run(const std::function<bool()>& stop, Nanos within = 10_s) {
    const Nanos end = clock.now() + within;
    while (!stop()) {
      if (clock.now() > end) return false;
      for (Host* host : hosts) poll(*host);
    }
    return true;
  }
  void run_for(Nanos duration) {
    run([] { return false; }, duration);
  }
  /// Runs all hosts until the victim has received `packets` more packets.
  void digest(Host& victim, std::uint64_t packets) {
    const std::uint64_t until = victim.shard->stats().packets_received + packets;
    ASSERT_TRUE(run([&] { return victim.shard->stats().packets_received >= until; }));
  }

  Clock clock;
  Host client;
  Host server;
  std::vector<Host*> hosts{&client, &server};
};

}  // namespace mltcp::attack
