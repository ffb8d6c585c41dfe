// Tests that the transport allocates no memory after a warm-up. Counts the calls of operator new during a long, lossy
// exchange.
#include <gtest/gtest.h>

#include <array>

#include "../lossy_io.h"
#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/transport/shard.h"

namespace mltcp {
namespace {

using namespace mltcp::literals;

class Counted final : public Pollable {
 public:
  explicit Counted(sim::Host& host) : io(host, host.number() + 1), shard(io, {.seed = 1}) {}

  Nanos poll(Nanos now) override {
    counting = armed;
    Nanos next = shard.poll(now);
    std::array<Completion, 16> taken;
    while (const std::size_t count = shard.take_completions(taken)) {
      for (const Completion& completion : std::span(taken).first(count)) on_completion(completion);
      next = shard.poll(now);
    }
    counting = false;
    return next;
  }

  void on_completion(const Completion& completion) {
    if (completion.kind == Completion::Kind::accepted || completion.kind == Completion::Kind::connected) {
      for (int i = 0; i < 8; ++i) post(completion.connection);
    } else if (completion.status == Status::ok) {
      if (completion.kind == Completion::Kind::received) {
        ++received;
        EXPECT_EQ(shard.receive_virtual(completion.connection, 1'000'000, 0), PostResult::ok);
      } else {
        EXPECT_EQ(shard.send_virtual(completion.connection, next_length(), 0), PostResult::ok);
      }
    }
  }
  void post(ConnectionId connection) {
    EXPECT_EQ(shard.receive_virtual(connection, 1'000'000, 0), PostResult::ok);
    EXPECT_EQ(shard.send_virtual(connection, next_length(), 0), PostResult::ok);
  }
  Bytes next_length() { return random_.chance(0.5) ? random_.below(300) : random_.below(200'000); }

  LossyIo io;
  Shard shard;
  bool armed = false;
  std::uint64_t received = 0;

 private:
  Random random_{5};
};

TEST(Allocation, data_path__makes_none_after_the_warm_up) {
  fabric::DumbbellConfig config;
  for (fabric::LinkConfig* link : {&config.bottleneck, &config.reverse}) {
    link->rate = Rate(1'000'000'000);
    link->delay = 100_us;
    link->faults.duplication = 0.01;
    link->faults.reordering = 0.01;
  }
  sim::DumbbellOptions options;
  options.virtual_payload = true;
  sim::Dumbbell network(config, options);
  Counted client(network.left(0));
  Counted server(network.right(0));
  server.shard.listen({});
  client.shard.connect(network.right(0).address(), {}, network.now());
  network.attach(network.left(0), client);
  network.attach(network.right(0), server);
  // The network loses more packets during the warm-up than while allocations are counted. So no structure needs to grow
  // after the warm-up.
  for (int second = 0; second < 40; ++second) {
    client.io.loss = server.io.loss = second % 4 == 3 ? 0 : 0.02 * (1 + second % 4);
    network.run_until(network.now() + 1_s);
  }
  const std::uint64_t warm = server.received;
  EXPECT_GT(warm, 1000u);
  client.armed = server.armed = true;
  client.io.loss = server.io.loss = 0.005;
  network.run_until(network.now() + 5_s);
  const std::uint64_t messages = server.received - warm;
  EXPECT_GT(messages, 1000u);
  EXPECT_EQ(allocations.load(), 0u) << "in " << messages << " messages";
}

}  // namespace
}  // namespace mltcp
