// Tests the transport over the simulated dumbbell: a message of 4 GiB, full use of the link, and a large window with a
// loss.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/transport/shard.h"

namespace mltcp::simulation_test {
namespace {

using namespace mltcp::literals;

/// Runs a shard, stores its completions, and calls on_completion for each of them.
class Runner final : public Pollable {
 public:
  Runner(sim::Host& host, const ShardConfig& config = {.seed = 1}) : shard(host, config) {}

  Nanos poll(Nanos now) override {
    Nanos next = shard.poll(now);
    std::array<Completion, 16> taken;
    while (const std::size_t count = shard.take_completions(taken)) {
      for (const Completion& completion : std::span(taken).first(count)) {
        completions.push_back(completion);
        if (on_completion) on_completion(completion);
      }
      next = shard.poll(now);
    }
    return next;
  }

  Shard shard;
  std::vector<Completion> completions;
  std::function<void(const Completion&)> on_completion;
};

sim::DumbbellOptions dumbbell_options() {
  sim::DumbbellOptions options;
  options.virtual_payload = true;
  options.transmit_queue_packets = 4096;
  return options;
}

struct Transfer {
  explicit Transfer(const fabric::DumbbellConfig& config, const ConnectionConfig& connection = {})
      : network(config, dumbbell_options()), client(network.left(0)), server(network.right(0)) {
    server.shard.listen(connection);
    id = client.shard.connect(network.right(0).address(), connection, network.now());
    network.attach(network.left(0), client);
    network.attach(network.right(0), server);
  }
  /// Sends one message of `bytes`. Returns the duration, or never() if the message is not sent within `limit`.
  Nanos run(Bytes bytes, Nanos limit) {
    bool done = false;
    server.on_completion = [&](const Completion& completion) {
      if (completion.kind == Completion::Kind::accepted) {
        EXPECT_EQ(server.shard.receive_virtual(completion.connection, bytes, 5), PostResult::ok);
      }
      if (completion.kind == Completion::Kind::received) {
        EXPECT_EQ(completion.status, Status::ok);
        EXPECT_EQ(completion.bytes, bytes);
      }
    };
    client.on_completion = [&](const Completion& completion) {
      done = done || completion.kind == Completion::Kind::sent;
    };
    EXPECT_EQ(client.shard.send_virtual(id, bytes, 4), PostResult::ok);
    const Nanos begin = network.now();
    if (!network.run(limit, [&] { return done; })) return Nanos::never();
    EXPECT_EQ(client.completions.back().bytes, bytes);
    EXPECT_EQ(client.completions.back().status, Status::ok);
    return network.now() - begin;
  }

  sim::Dumbbell network;
  Runner client;
  Runner server;
  ConnectionId id = 0;
};

fabric::DumbbellConfig dumbbell(Rate rate, Nanos delay, std::uint32_t mtu, Bytes buffer) {
  fabric::DumbbellConfig config;
  config.mtu = mtu;
  config.bottleneck.rate = config.reverse.rate = rate;
  config.bottleneck.delay = config.reverse.delay = delay;
  config.bottleneck.buffer_bytes = config.reverse.buffer_bytes = buffer;
  return config;
}

TEST(Simulation, message_of_4_GiB__arrives_whole) {
  Transfer transfer(dumbbell(Rate(100'000'000'000), 5_us, 9000, 2'000'000));
  constexpr Bytes bytes = Bytes{1} << 32;
  const Nanos time = transfer.run(bytes, 100_s);
  ASSERT_FALSE(time.is_never());
  EXPECT_LT(time, 600_ms) << "344 ms at the full rate";
  const ConnectionStats stats = transfer.client.shard.stats(transfer.id).value();
  EXPECT_GE(stats.bytes_sent, bytes);
  EXPECT_EQ(transfer.client.shard.send_virtual(transfer.id, bytes + 1, 0), PostResult::too_long);
}

TEST(Simulation, one_connection__fills_the_link) {
  Transfer transfer(dumbbell(Rate(1'000'000'000), 20_us, 1500, 250'000));
  const Nanos time = transfer.run(50'000'000, 100_s);
  ASSERT_FALSE(time.is_never());
  // 1500 of the 1514 bytes on the wire are the IP packet. The IP packet contains 60 bytes of headers of IP, UDP and the
  // transport, and 12 bytes of the header of the DATA frame.
  EXPECT_GT(50e6 * 8 / time.seconds(), 0.9e9);
}

TEST(Simulation, more_packets_than_may_be_in_flight__survive_a_loss) {
  // The path holds more packets than the default limit. One packet is lost while the window is full.
  fabric::DumbbellConfig config = dumbbell(Rate(100'000'000'000), 3_ms, 1500, 100'000'000);
  config.bottleneck.faults.loss = 1e-5;
  Transfer transfer(config);
  const Nanos time = transfer.run(Bytes{600'000'000}, 100_s);
  EXPECT_FALSE(time.is_never()) << "stalled";
}

}  // namespace
}  // namespace mltcp::simulation_test
