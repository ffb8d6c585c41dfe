// Tests transfers over a network that loses, duplicates, damages and reorders packets. Every message of several
// connections must arrive byte-exact in both directions, and the same seed must give the same run.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/transport/shard.h"

namespace mltcp {
namespace {

using namespace mltcp::literals;

struct Faults {
  const char* name;
  fabric::FaultConfig config;
};
void PrintTo(const Faults& faults, std::ostream* out) { *out << faults.name; }

fabric::FaultConfig faults_of(double loss, double duplication, double corruption, double reordering) {
  fabric::FaultConfig config;
  config.loss = loss;
  config.duplication = duplication;
  config.corruption = corruption;
  config.reordering = reordering;
  config.reorder_delay = 200_us;
  return config;
}

/// Returns message `number` of one direction of a connection. The sender and the receiver compute the same bytes.
std::vector<std::byte> message_of(std::uint64_t seed, std::uint64_t direction, std::uint64_t number) {
  Random random = Random::stream(seed * 16 + direction, number);
  const std::uint64_t kind = random.below(4);
  const std::size_t length = kind == 0 ? random.below(3) : kind == 1 ? random.below(600) : random.below(40'000);
  std::vector<std::byte> result(length);
  for (auto& byte : result) byte = static_cast<std::byte>(random.next());
  return result;
}

/// Sends and receives `count` messages on each connection of its shard.
class Endpoint final : public Pollable {
 public:
  static constexpr std::uint64_t kWindow = 6;  // number of receives that are posted at a time

  Endpoint(sim::Host& host, std::uint64_t seed, std::uint64_t count)
      : shard(host, {.seed = seed}), seed_(seed), count_(count) {}

  Nanos poll(Nanos now) override {
    Nanos next = shard.poll(now);
    std::array<Completion, 8> taken;
    while (const std::size_t count = shard.take_completions(taken)) {
      for (const Completion& completion : std::span(taken).first(count)) on_completion(completion);
      next = shard.poll(now);
    }
    return next;
  }

  /// Starts the transfers of connection `id`. `sends` and `receives` are the directions of its messages.
  void begin(ConnectionId id, std::uint64_t sends, std::uint64_t receives) {
    Flow& flow = flows_[id];
    flow.send_direction = sends;
    flow.receive_direction = receives;
    for (std::uint64_t i = 0; i < kWindow; ++i) post_receive(id, flow);
    while (flow.next_send < std::min(count_, std::uint64_t{4})) post_send(id, flow);
  }

  [[nodiscard]] bool done(std::size_t connections) const {
    if (flows_.size() < connections) return false;
    for (const auto& [id, flow] : flows_)
      if (flow.sent < count_ || flow.received < count_) return false;
    return true;
  }
  [[nodiscard]] std::string progress() const {
    std::string text;
    for (const auto& [id, flow] : flows_) text += std::to_string(flow.sent) + "/" + std::to_string(flow.received) + " ";
    return text;
  }

  Shard shard;
  std::uint64_t wrong = 0;
  std::uint64_t ended = 0;
  std::uint64_t accepted = 0;

 private:
  struct Flow {
    std::uint64_t send_direction = 0;
    std::uint64_t receive_direction = 0;
    std::uint64_t next_send = 0;
    std::uint64_t next_receive = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::map<std::uint64_t, std::vector<std::byte>> sends;
    std::map<std::uint64_t, std::vector<std::byte>> receives;
  };

  void on_completion(const Completion& completion) {
    switch (completion.kind) {
      case Completion::Kind::connected:
        break;
      case Completion::Kind::accepted:
        begin(completion.connection, 2 * accepted + 1, 2 * accepted);
        ++accepted;
        break;
      case Completion::Kind::closed:
        ++ended;
        break;
      case Completion::Kind::sent: {
        Flow& flow = flows_[completion.connection];
        if (completion.status != Status::ok) break;
        ++flow.sent;
        flow.sends.erase(completion.tag);  // frees the memory, so that a sanitizer detects reads after the completion
        if (flow.next_send < count_) post_send(completion.connection, flow);
        break;
      }
      case Completion::Kind::received: {
        Flow& flow = flows_[completion.connection];
        if (completion.status != Status::ok) break;
        ++flow.received;
        const auto expected = message_of(seed_base(), flow.receive_direction, completion.tag);
        const auto& buffer = flow.receives[completion.tag];
        if (completion.bytes != expected.size() || !std::equal(expected.begin(), expected.end(), buffer.begin()))
          ++wrong;
        flow.receives.erase(completion.tag);
        // While a message waits for a lost packet, the maximum number of receives may be posted. A later completion
        // then posts the next ones.
        while (flow.next_receive < std::min(count_, flow.received + kWindow)) post_receive(completion.connection, flow);
        break;
      }
    }
  }
  void post_receive(ConnectionId id, Flow& flow) {
    if (flow.next_receive >= count_) return;
    auto& buffer = flow.receives[flow.next_receive];
    buffer.assign(40'000, std::byte{});
    EXPECT_EQ(shard.receive(id, buffer, flow.next_receive), PostResult::ok);
    ++flow.next_receive;
  }
  void post_send(ConnectionId id, Flow& flow) {
    auto& message = flow.sends[flow.next_send] = message_of(seed_base(), flow.send_direction, flow.next_send);
    EXPECT_EQ(shard.send(id, message, flow.next_send), PostResult::ok);
    ++flow.next_send;
  }
  /// Returns the base from which both hosts derive their seeds. The client has seed 2 * base, and the server has seed 2
  /// * base + 1.
  [[nodiscard]] std::uint64_t seed_base() const { return seed_ / 2; }

  std::uint64_t seed_;
  std::uint64_t count_;
  std::map<ConnectionId, Flow> flows_;
};

struct Outcome {
  bool done = false;
  std::uint64_t wrong = 0;
  Nanos time;
  std::vector<std::uint64_t> counters;
  std::string progress;
  std::uint64_t corrupted = 0;
};

Outcome run(const fabric::FaultConfig& faults, std::uint64_t seed, std::uint64_t messages, std::size_t connections,
            Nanos limit) {
  fabric::DumbbellConfig config;
  for (fabric::LinkConfig* link : {&config.bottleneck, &config.reverse}) {
    link->rate = Rate(1'000'000'000);
    link->delay = 20_us;
    link->buffer_bytes = 100'000;
    link->faults = faults;
    link->seed = seed;
  }
  ConnectionConfig connection;
  connection.full_integrity = true;
  sim::Dumbbell network(config);
  Endpoint client(network.left(0), 2 * seed, messages);
  Endpoint server(network.right(0), 2 * seed + 1, messages);
  server.shard.listen(connection);
  network.attach(network.left(0), client);
  network.attach(network.right(0), server);
  std::vector<ConnectionId> ids;
  for (std::size_t i = 0; i < connections; ++i) {
    ids.push_back(client.shard.connect(network.right(0).address(), connection, network.now()));
    client.begin(ids.back(), 2 * i, 2 * i + 1);
    network.wake(network.left(0));
    // Opens one connection at a time, so that both hosts number connections in the same order.
    network.run(network.now() + 100_s, [&] { return server.accepted == i + 1; });
  }
  Outcome outcome;
  const Nanos begin = network.now();
  network.run(begin + limit, [&] { return client.done(connections) && server.done(connections); });
  outcome.done = client.done(connections) && server.done(connections);
  outcome.time = network.now() - begin;
  outcome.wrong = client.wrong + server.wrong;
  outcome.progress = client.progress() + "; " + server.progress();
  for (const Endpoint* endpoint : {&client, &server}) {
    const ShardStats& stats = endpoint->shard.stats();
    outcome.counters.insert(outcome.counters.end(),
                            {stats.packets_received, stats.packets_sent, stats.truncated_packets, stats.foreign_packets,
                             stats.corrupted_packets, stats.malformed_packets, stats.unknown_connection,
                             stats.beyond_credit, endpoint->ended});
    outcome.corrupted += stats.rejected_packets() + stats.unknown_connection;
    EXPECT_EQ(stats.beyond_credit, 0u);
    EXPECT_EQ(endpoint->ended, 0u) << "a connection has ended";
  }
  for (const ConnectionId id : ids) {
    const ConnectionStats stats = client.shard.stats(id).value();
    outcome.counters.insert(
        outcome.counters.end(),
        {stats.packets_sent, stats.bytes_sent, stats.packets_received, stats.retransmitted_packets, stats.lost_packets,
         stats.spurious_losses, stats.duplicate_packets, stats.congestion_events, stats.persistent_congestions,
         static_cast<std::uint64_t>(stats.smoothed_rtt.count)});
  }
  return outcome;
}

class FaultyNetwork : public testing::TestWithParam<std::tuple<Faults, std::uint64_t>> {};

TEST_P(FaultyNetwork, every_message__arrives_byte_exact_on_every_connection_both_ways) {
  const auto& [faults, seed] = GetParam();
  const Outcome outcome = run(faults.config, seed, 60, 3, 200_s);
  EXPECT_TRUE(outcome.done) << outcome.progress;
  EXPECT_EQ(outcome.wrong, 0u);
  if (faults.config.corruption > 0) {
    EXPECT_GT(outcome.corrupted, 0u);
  } else {
    EXPECT_EQ(outcome.corrupted, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    kinds, FaultyNetwork,
    testing::Combine(
        testing::Values(
            Faults{"none", {}}, Faults{"loss_1", faults_of(0.01, 0, 0, 0)},
            Faults{"duplication_1", faults_of(0, 0.01, 0, 0)}, Faults{"corruption_1", faults_of(0, 0, 0.01, 0)},
            Faults{"reordering_1", faults_of(0, 0, 0, 0.01)}, Faults{"all_1", faults_of(0.01, 0.01, 0.01, 0.01)},
            Faults{"loss_10", faults_of(0.1, 0, 0, 0)}, Faults{"duplication_10", faults_of(0, 0.1, 0, 0)},
            Faults{"corruption_10", faults_of(0, 0, 0.1, 0)}, Faults{"reordering_10", faults_of(0, 0, 0, 0.1)},
            Faults{"all_10", faults_of(0.1, 0.1, 0.1, 0.1)}, Faults{"loss_30", faults_of(0.3, 0, 0, 0)}),
        testing::Range<std::uint64_t>(1, 6)),
    [](const auto& param_info) {
      return std::string(std::get<0>(param_info.param).name) + "_seed_" + std::to_string(std::get<1>(param_info.param));
    });

TEST(Determinism, same_seed__gives_the_same_run) {
  for (const std::uint64_t seed : {11U, 12U}) {
    const Outcome first = run(faults_of(0.02, 0.02, 0.02, 0.02), seed, 40, 2, 100_s);
    const Outcome second = run(faults_of(0.02, 0.02, 0.02, 0.02), seed, 40, 2, 100_s);
    EXPECT_EQ(first.counters, second.counters);
    EXPECT_EQ(first.time, second.time);
  }
}

TEST(Determinism, other_seed__gives_another_run) {
  const Outcome first = run(faults_of(0.02, 0.02, 0.02, 0.02), 11, 40, 2, 100_s);
  const Outcome second = run(faults_of(0.02, 0.02, 0.02, 0.02), 12, 40, 2, 100_s);
  EXPECT_NE(first.counters, second.counters);
}

}  // namespace
}  // namespace mltcp
