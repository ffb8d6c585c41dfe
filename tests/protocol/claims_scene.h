// Runs jobs that state correct or false sizes of their iterations, over real shards in virtual time. The jobs share one
// link. The switch before this link and the receivers observe the jobs (transport/job_claims.h). The same settings
// always give the same result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/transport/job_claims.h"
#include "mltcp/transport/shard.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

/// How a program states the size of its iterations.
enum class Stating : std::uint8_t {
  each,      ///< the program states `stated` times the bytes that it sends, before each iteration
  previous,  ///< the program states the bytes of the previous iteration
  once,      ///< the program states a size before the first iteration only
  learned,   ///< the program states nothing, and the transport learns the size
  never,     ///< the program begins iterations with size 0
};

struct ClaimsScene {
  std::string name;
  Stating stating = Stating::each;
  double stated = 1;          ///< stated size as a fraction of the sent bytes
  Bytes bytes = 2'000'000;    ///< mean bytes per iteration and worker
  double spread = 0;          ///< sizes are uniform from 1 - spread to 1 + spread times `bytes`
  double elsewhere = 0;       ///< share of an iteration that goes to a second host, before the rest
  std::size_t messages = 16;  ///< messages per iteration
  std::size_t connections = 1;
  std::uint32_t workers = 1;  ///< number of workers, each on a host; workers do not wait for each other
  std::uint32_t rivals = 1;   ///< number of honest jobs that also use the link
  std::string cc = "reno";
  fabric::FaultConfig faults{};
  std::uint32_t iterations = 60;
};

struct ClaimsSeen {
  JobClaim link;      ///< what the switch before the shared link observes, including packets that the link loses
  JobClaim receiver;  ///< what the receivers observe
};

namespace claims {

inline constexpr std::uint32_t kJobNumber = 7;

/// Counts the packets that a host sends to one address, as a switch does.
class Watched final : public PacketIo {
 public:
  Watched(sim::Host& host, JobClaims& claims, const Address& of) : host_(host), claims_(claims), of_(of) {}
  [[nodiscard]] const Limits& limits() const override { return host_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override { return host_.receive(out); }
  std::size_t send(std::span<const TxPacket> packets) override {
    const std::size_t count = host_.send(packets);
    for (const TxPacket& packet : packets.first(count))
      if (const auto tag = wire::peek_job_tag(packet.header); tag && *packet.destination == of_)
        claims_.add(*tag, packet.header.size() + packet.payload.size() - wire::kHeaderBytes);
    return count;
  }

 private:
  sim::Host& host_;
  JobClaims& claims_;
  const Address of_;
};

inline ConnectionConfig connection_of(const ClaimsScene& scene) {
  ConnectionConfig config;
  config.congestion_control = scene.cc;
  config.max_rate = Rate(1'000'000'000);
  return config;
}

class Receiver final : public Pollable {
 public:
  Receiver(const ClaimsScene& scene, PacketIo& io) : shard(io, {.count_job_claims = true, .seed = 1}) {
    shard.listen(connection_of(scene));
  }
  Nanos poll(Nanos now) override {
    Nanos next = shard.poll(now);
    std::array<Completion, 16> done;
    while (const std::size_t count = shard.take_completions(done)) {
      for (const Completion& one : std::span(done).first(count))
        for (int i = 0; i < (one.kind == Completion::Kind::accepted ? 64 : 1); ++i)
          (void)shard.receive_virtual(one.connection, 1'000'000'000, 0);
      next = shard.poll(now);
    }
    return next;
  }
  Shard shard;
};

class Worker final : public Pollable {
 public:
  Worker(const ClaimsScene& scene, PacketIo& io, const Address& peer, const Address& elsewhere, std::uint32_t number,
         std::uint64_t seed, Nanos start)
      : scene_(scene), shard_(io, {.seed = seed}), random_(seed), next_at_(start) {
    job_ = shard_.add_job({.number = number,
                           .augmentation = cc::Augmentation::mltcp({}),
                           .max_rate = {},
                           .learn_iterations = scene.stating == Stating::learned});
    for (std::size_t i = 0; i < scene.connections; ++i) here_.push_back(connect(peer));
    if (scene.elsewhere > 0) elsewhere_ = connect(elsewhere);
  }
  Nanos poll(Nanos now) override {
    Nanos next = shard_.poll(now);
    std::array<Completion, 16> done;
    while (const std::size_t count = shard_.take_completions(done)) {
      for (const Completion& one : std::span(done).first(count)) {
        if (one.kind != Completion::Kind::sent) continue;
        if (one.status != Status::ok) throw RunError(to_text(one.status));
        if (one.tag == kElsewhereTag) post_here();
        if (--open_ == 0 && begun < scene_.iterations) next_at_ = now + Nanos(10'000'000);  // 10 ms of computing
      }
      next = shard_.poll(now);
    }
    if (now >= next_at_) {
      next_at_ = Nanos::never();
      begin();
      next = shard_.poll(now);
    }
    return std::min(next, next_at_);
  }
  [[nodiscard]] bool is_done() const { return begun == scene_.iterations && open_ == 0; }

  std::uint32_t begun = 0;

 private:
  static constexpr std::uint64_t kElsewhereTag = 1;

  ConnectionId connect(const Address& peer) {
    const ConnectionId id = shard_.connect(peer, connection_of(scene_), Nanos());
    if (!shard_.attach(id, job_)) throw RunError("the connection has no job");
    return id;
  }
  void send(ConnectionId id, Bytes bytes, std::uint64_t tag) {
    if (shard_.send_virtual(id, bytes, tag) != PostResult::ok) throw RunError("a message was refused");
    ++open_;
  }
  void begin() {
    const double times = 1 + scene_.spread * (2 * random_.uniform() - 1);
    bytes_ = static_cast<Bytes>(static_cast<double>(scene_.bytes) * times);
    const auto true_bytes = static_cast<double>(bytes_);
    Bytes stated = 0;
    if (scene_.stating == Stating::each || scene_.stating == Stating::once)
      stated = static_cast<Bytes>(true_bytes * scene_.stated);
    if (scene_.stating == Stating::previous) stated = before_ > 0 ? before_ : bytes_;
    before_ = bytes_;
    const bool begins = scene_.stating != Stating::learned && (scene_.stating != Stating::once || begun == 0);
    if (begins && !shard_.begin_iteration(job_, stated)) throw RunError("the job is gone");
    ++begun;
    const auto first = static_cast<Bytes>(true_bytes * scene_.elsewhere);
    bytes_ -= first;
    if (first > 0)
      send(elsewhere_, first, kElsewhereTag);
    else
      post_here();
  }
  void post_here() {
    const Bytes piece = bytes_ / scene_.messages;
    for (std::size_t i = 0; i < scene_.messages; ++i)
      send(here_[i % here_.size()], i == 0 ? bytes_ - piece * (scene_.messages - 1) : piece, 0);
  }

  const ClaimsScene scene_;
  Shard shard_;
  Random random_;
  JobId job_ = 0;
  std::vector<ConnectionId> here_;
  ConnectionId elsewhere_ = 0;
  Nanos next_at_;
  Bytes bytes_ = 0;
  Bytes before_ = 0;
  std::size_t open_ = 0;
};

}  // namespace claims

/// Runs the jobs until the workers have finished all iterations. The link has 1 Gbit/s, 4 x 20 us of delay and a buffer
/// of 100 kB. Each worker sends to a separate receiver. The rivals send over the same link.
inline ClaimsSeen look_at(const ClaimsScene& scene) {
  fabric::DumbbellConfig config;
  config.pairs = 2 * scene.workers + scene.rivals;
  config.bottleneck.rate = Rate(1'000'000'000);
  config.bottleneck.delay = config.access_delay = Nanos(20'000);
  config.bottleneck.buffer_bytes = 100'000;
  config.bottleneck.faults = scene.faults;
  config.bottleneck.seed = 1;
  config.reverse = config.bottleneck;
  sim::DumbbellOptions options;
  options.virtual_payload = true;
  sim::Dumbbell network(config, options);
  ClaimsScene rival;
  rival.name = "rival";
  rival.cc = scene.cc;
  rival.iterations = ~0U;
  JobClaims link;
  std::vector<std::unique_ptr<claims::Watched>> watched;
  std::vector<std::unique_ptr<claims::Receiver>> receivers;
  std::vector<std::unique_ptr<claims::Worker>> workers;
  for (std::uint32_t i = 0; i < config.pairs; ++i) {
    receivers.push_back(std::make_unique<claims::Receiver>(scene, network.right(i)));
    network.attach(network.right(i), *receivers.back());
  }
  for (std::uint32_t i = 0; i < scene.workers + scene.rivals; ++i) {
    const bool is_own = i < scene.workers;
    const Address& peer = network.right(is_own ? i : scene.workers + i).address();
    watched.push_back(std::make_unique<claims::Watched>(network.left(i), link, peer));
    workers.push_back(std::make_unique<claims::Worker>(
        is_own ? scene : rival, *watched.back(), peer,
        network.right(scene.workers + std::min(i, scene.workers - 1)).address(), is_own ? claims::kJobNumber : 100 + i,
        i + 1, Nanos(1'000'000 + 3'000'000 * std::int64_t{i})));
    network.attach(network.left(i), *workers.back());
  }
  const auto done = [&] {
    return std::all_of(workers.begin(), workers.begin() + scene.workers,
                       [](const auto& worker) { return worker->is_done(); });
  };
  network.run(Nanos(600'000'000'000), done);
  if (!done()) throw RunError("the job of \"" + scene.name + "\" did not end");
  ClaimsSeen seen;
  const auto add = [](const JobClaims& claims, JobClaim& sum) {
    for (const JobClaim& claim : claims.report())
      if (claim.job == claims::kJobNumber) sum += claim;
  };
  add(link, seen.link);
  for (std::uint32_t i = 0; i < scene.workers; ++i) add(*receivers[i]->shard.job_claims(), seen.receiver);
  return seen;
}

/// Returns jobs that state the true number of bytes, an estimate of it, or nothing.
inline std::vector<ClaimsScene> honest_scenes() {
  return {
      {.name = "alone", .rivals = 0},
      {.name = "beside another job"},
      {.name = "the same, CUBIC", .cc = "cubic"},
      {.name = "one message an iteration", .messages = 1},
      {.name = "iterations of 200 kB", .bytes = 200'000},
      {.name = "iterations of 20 kB", .bytes = 20'000},
      {.name = "256 messages of 100 bytes", .bytes = 25'600, .messages = 256},
      {.name = "8 connections", .messages = 64, .connections = 8},
      {.name = "loss of 3%", .faults = {.loss = 0.03}},
      {.name = "5% held back for up to 1 ms", .faults = {.reordering = 0.05, .reorder_delay = Nanos(1'000'000)}},
      {.name = "5% come twice", .faults = {.duplication = 0.05}},
      {.name = "4 workers", .workers = 4},
      {.name = "sizes vary by 80%", .spread = 0.8},
      {.name = "sizes vary by 20%, the one before is stated", .stating = Stating::previous, .spread = 0.2},
      {.name = "sizes vary by 50%, the one before is stated", .stating = Stating::previous, .spread = 0.5},
      {.name = "sizes are learned", .stating = Stating::learned},
      {.name = "sizes vary by 3% and are learned", .stating = Stating::learned, .spread = 0.03},
      {.name = "sizes are not stated", .stating = Stating::never},
  };
}

/// Returns jobs that claim to be further in their iterations than they are.
inline std::vector<ClaimsScene> overstating_scenes() {
  return {
      {.name = "states 3/4", .stated = 0.75},
      {.name = "states half", .stated = 0.5},
      {.name = "the same, 4 workers", .stated = 0.5, .workers = 4},
      {.name = "the same, 8 connections, loss of 3%", .stated = 0.5, .connections = 8, .faults = {.loss = 0.03}},
      {.name = "states a tenth", .stated = 0.1},
  };
}

/// Returns jobs about which an observer at one point of the network cannot decide.
inline std::vector<ClaimsScene> other_scenes() {
  return {
      {.name = "honest, the first half goes elsewhere", .elsewhere = 0.5},
      {.name = "states half, the first half goes elsewhere", .stated = 0.5, .elsewhere = 0.5},
      {.name = "first sends 20 MB elsewhere that nobody needs",
       .bytes = 22'000'000,
       .elsewhere = 10.0 / 11,
       .iterations = 15},
      {.name = "states 9/10", .stated = 0.9},
      {.name = "states the size of its first iteration, and begins no other", .stating = Stating::once},
      {.name = "states half of iterations of 200 kB", .stated = 0.5, .bytes = 200'000},
      {.name = "states half of iterations of 20 kB", .stated = 0.5, .bytes = 20'000},
  };
}

}  // namespace mltcp
