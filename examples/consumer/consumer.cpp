// A program outside of the project that links the installed library. In each iteration, one worker of a training job
// sends its gradients to another worker with MLTCP. Here the simulator is the network. On a testbed the network would
// be a different PacketIo, and the program would not change otherwise.
#include <fmt/format.h>
#include <mltcp/base/error.h>
#include <mltcp/base/units.h>
#include <mltcp/lab/sim/dumbbell.h>
#include <mltcp/transport/shard.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace mltcp::literals;

constexpr int kIterations = 5;
constexpr mltcp::Nanos kComputeTime = 20_ms;

/// Receives all gradients into the same buffer.
struct Receiver final : mltcp::Pollable {
  Receiver(mltcp::PacketIo& io, std::size_t bytes) : shard(io, {}), gradient(bytes) { shard.listen({}); }

  mltcp::Nanos poll(mltcp::Nanos now) override {
    mltcp::Nanos next = shard.poll(now);
    mltcp::Completion done;
    while (shard.take_completions({&done, 1}) == 1) {
      if (done.kind == mltcp::Completion::Kind::received) ++received;
      if (done.kind == mltcp::Completion::Kind::closed) continue;
      if (shard.receive(done.connection, gradient, 0) == mltcp::PostResult::ok) next = shard.poll(now);
    }
    return next;
  }

  mltcp::Shard shard;
  std::vector<std::byte> gradient;
  int received = 0;
};

/// A worker. In each iteration, it computes, sends its gradients, and waits until they are delivered.
struct Worker final : mltcp::Pollable {
  Worker(mltcp::PacketIo& io, const mltcp::Address& peer, std::size_t bytes) : shard(io, {}), gradient(bytes) {
    for (std::size_t i = 0; i < bytes; ++i) gradient[i] = static_cast<std::byte>(i * 7);
    mltcp::JobConfig config;
    config.number = 1;
    config.augmentation = mltcp::cc::Augmentation::mltcp({});  // aggressiveness function F(x) = 1.75 x + 0.25
    job = shard.add_job(config);
    connection = shard.connect(peer, {}, mltcp::Nanos(0));
    if (!shard.attach(connection, job)) throw mltcp::RunError("the connection has no job: MLTCP would be off");
  }

  mltcp::Nanos poll(mltcp::Nanos now) override {
    mltcp::Nanos next = shard.poll(now);
    mltcp::Completion done;
    while (shard.take_completions({&done, 1}) == 1) {
      if (done.status != mltcp::Status::ok) throw mltcp::RunError(to_text(done.status));
      if (done.kind == mltcp::Completion::Kind::sent) {
        fmt::print("iteration {} took {:.2f} ms\n", finished++, (now - began).millis());
        if (finished == kIterations) return mltcp::Nanos::never();
      }
      began = now;
      computed_at = now + kComputeTime;
    }
    if (now >= computed_at) {
      computed_at = mltcp::Nanos::never();
      if (!shard.begin_iteration(job, gradient.size())) throw mltcp::RunError("the job is gone");
      if (shard.send(connection, gradient, 0) != mltcp::PostResult::ok)
        throw mltcp::RunError("the gradient was refused");
      next = shard.poll(now);
    }
    return std::min(next, computed_at);
  }

  mltcp::Shard shard;
  std::vector<std::byte> gradient;  // unchanged while the transport sends it
  mltcp::JobId job = 0;
  mltcp::ConnectionId connection = 0;
  mltcp::Nanos computed_at = mltcp::Nanos::never();
  mltcp::Nanos began;
  int finished = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t bytes = mltcp::parse_bytes(argc > 1 ? argv[1] : "2 MB");
  mltcp::fabric::DumbbellConfig network;
  network.bottleneck.rate = mltcp::parse_rate("1 Gbps");
  network.bottleneck.delay = network.access_delay = 10_us;
  network.reverse = network.bottleneck;
  mltcp::sim::Dumbbell dumbbell(network);

  Receiver receiver(dumbbell.right(0), bytes);
  Worker worker(dumbbell.left(0), dumbbell.right(0).address(), bytes);
  dumbbell.attach(dumbbell.right(0), receiver);
  dumbbell.attach(dumbbell.left(0), worker);
  dumbbell.run(60_s, [&] { return worker.finished == kIterations; });

  const bool intact = receiver.received == kIterations && receiver.gradient == worker.gradient;
  fmt::print("{} gradients of {} received, {}\n", receiver.received, mltcp::bytes_to_text(bytes),
             intact ? "intact" : "not intact");
  return intact ? 0 : 1;
} catch (const mltcp::InputError& error) {
  fmt::print(stderr, "consumer: {}\n", error.what());
  return 2;
}
