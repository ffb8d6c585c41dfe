// Duels in virtual time: flows of real shards share one bottleneck. Each flow has its own congestion control, start
// time, size and delay. A duel records the bytes that each flow delivers in each interval.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/sim/network.h"
#include "mltcp/transport/shard.h"

namespace mltcp::sim {

struct DuelFlow {
  std::string cc = "reno";
  Nanos start{};
  Bytes bytes = ~Bytes{0};  ///< number of bytes to send; the default is unlimited
  Nanos extra_delay{};      ///< one-way delay of this flow, in addition to the delay of the duel's links
  double gain = 1.0;        ///< constant factor of the congestion control's increase step
  bool scale_decrease = false;
};

struct DuelConfig {
  Rate rate{1'000'000'000};
  Nanos delay{10'000};  ///< one-way delay of each hop
  Bytes buffer = 150'000;
  Bytes ecn_threshold = 0;          ///< queue length above which the link marks all packets; 0 turns marking off
  bool ecn_capable = false;         ///< makes packets ECN-capable, whether or not the link marks
  std::uint64_t seed = 1;           ///< seed of the shared link's random numbers
  fabric::FaultConfig faults;       ///< faults of the shared link, in both directions
  Bytes message_bytes = 64 * 1024;  ///< length of each message of a flow
  int messages = 32;                ///< number of messages that each flow has posted at any time
  Nanos interval{10'000'000};
  std::shared_ptr<const cc::Parameters> parameters;
};

class Duel {
 public:
  Duel(const DuelConfig& config, const std::vector<DuelFlow>& flows) : config_(config), network_(options()) {
    fabric::LinkConfig shared;
    shared.rate = config.rate;
    shared.delay = config.delay;
    shared.buffer_bytes = config.buffer;
    shared.faults = config.faults;
    shared.seed = config.seed * 2;
    if (config.ecn_threshold > 0) shared.ecn = {true, config.ecn_threshold, config.ecn_threshold, 1.0};
    const auto middle = network_.add_switch();
    const auto left_end = network_.add_switch();
    const auto right_end = network_.add_switch();
    forward_ = network_.add_link(right_end, shared);
    ++shared.seed;
    const auto backward = network_.add_link(left_end, shared);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      fabric::LinkConfig access;
      access.rate = Rate(config.rate.bits_per_second * 10);
      access.delay = config.delay + flows[i].extra_delay;
      access.buffer_bytes = 0;
      const auto number = static_cast<std::uint32_t>(i + 1);
      Host& sender = network_.add_host(Address::v4(10U << 24 | 1U << 16 | number, 1));
      Host& receiver = network_.add_host(Address::v4(10U << 24 | 2U << 16 | number, 1));
      network_.connect(sender, middle, access);
      network_.connect(receiver, middle, access);
      network_.route(middle, receiver, forward_);
      network_.route(middle, sender, backward);
      network_.route_to_host(right_end, receiver);
      network_.route_to_host(left_end, sender);
      receivers_.push_back(std::make_unique<Receiver>(*this, receiver, flows[i]));
      senders_.push_back(std::make_unique<Sender>(*this, sender, receiver.address(), flows[i]));
      network_.attach(receiver, *receivers_.back());
      network_.attach(sender, *senders_.back());
    }
  }

  void run_until(Nanos until) {
    while (network_.now() < until) {
      network_.run_until(std::min(until, network_.now() + config_.interval));
      for (auto& sender : senders_) sender->samples.push_back(sender->delivered);
    }
  }

  /// Returns the bytes that flow `i` delivered between two times, which must be multiples of the interval.
  [[nodiscard]] Bytes delivered(std::size_t i, Nanos from, Nanos to) const {
    const auto at = [&](Nanos time) {
      const auto index = static_cast<std::size_t>(time.count / config_.interval.count);
      return index == 0 ? Bytes{0} : senders_[i]->samples.at(index - 1);
    };
    return at(to) - at(from);
  }
  /// Returns the share of flow `i` in the bytes that all flows delivered between two times.
  [[nodiscard]] double share(std::size_t i, Nanos from, Nanos to) const {
    Bytes all = 0;
    for (std::size_t j = 0; j < senders_.size(); ++j) all += delivered(j, from, to);
    return static_cast<double>(delivered(i, from, to)) / static_cast<double>(all);
  }
  /// Returns the goodput of all flows divided by the link's rate.
  [[nodiscard]] double utilization(Nanos from, Nanos to) const {
    Bytes all = 0;
    for (std::size_t j = 0; j < senders_.size(); ++j) all += delivered(j, from, to);
    return static_cast<double>(all) / static_cast<double>(config_.rate.bytes_in(to - from));
  }
  /// Returns the time at which flow `i` had delivered all its bytes; never() if it has not delivered all of them.
  [[nodiscard]] Nanos finished(std::size_t i) const { return senders_[i]->finished; }
  [[nodiscard]] ConnectionStats stats(std::size_t i) const { return senders_[i]->stats(); }
  [[nodiscard]] const fabric::LinkCounters& bottleneck() const { return network_.link(forward_).counters(); }

 private:
  static NetworkOptions options() {
    NetworkOptions result;
    result.virtual_payload = true;
    return result;
  }
  [[nodiscard]] ConnectionConfig connection_config(const DuelFlow& flow) const {
    ConnectionConfig result;
    result.congestion_control = flow.cc;
    result.ecn = config_.ecn_capable || config_.ecn_threshold > 0;
    result.max_rate = config_.rate;
    result.parameters = config_.parameters;
    return result;
  }

  class Receiver final : public Pollable {
   public:
    Receiver(const Duel& duel, PacketIo& io, const DuelFlow& flow) : duel_(duel.config_), shard_(io, {.seed = 1}) {
      shard_.listen(duel.connection_config(flow));
    }
    Nanos poll(Nanos now) override {
      Nanos next = shard_.poll(now);
      std::array<Completion, 16> done;
      while (const std::size_t count = shard_.take_completions(done)) {
        for (std::size_t i = 0; i < count; ++i) {
          const bool accepted = done[i].kind == Completion::Kind::accepted;
          for (int n = 0; n < (accepted ? 2 * duel_.messages : 1); ++n)
            shard_.receive_virtual(done[i].connection, duel_.message_bytes, 0);
        }
        next = shard_.poll(now);
      }
      return next;
    }

   private:
    const DuelConfig& duel_;
    Shard shard_;
  };

  class Sender final : public Pollable {
   public:
    Sender(const Duel& duel, PacketIo& io, const Address& peer, const DuelFlow& flow)
        : duel_(duel.config_),
          shard_(io, {.seed = 1}),
          peer_(peer),
          flow_(flow),
          config_(duel.connection_config(flow)) {}

    Nanos poll(Nanos now) override {
      if (now < flow_.start) return flow_.start;
      if (connection_ == 0) {
        connection_ = shard_.connect(peer_, config_, now);
        JobConfig job;
        job.augmentation = cc::Augmentation::constant(flow_.gain);
        job.augmentation.scale_decrease(flow_.scale_decrease);
        if (!shard_.attach(connection_, shard_.add_job(job))) throw RunError("the flow carries no job");
        for (int i = 0; i < duel_.messages; ++i) post();
      }
      Nanos next = shard_.poll(now);
      std::array<Completion, 16> done;
      while (const std::size_t count = shard_.take_completions(done)) {
        for (std::size_t i = 0; i < count; ++i) {
          if (done[i].kind != Completion::Kind::sent) continue;
          delivered += done[i].bytes;
          if (delivered == flow_.bytes) finished = now;
          post();
        }
        next = shard_.poll(now);
      }
      return next;
    }
    [[nodiscard]] ConnectionStats stats() const { return shard_.stats(connection_).value(); }

    Bytes delivered = 0;
    Nanos finished = Nanos::never();
    std::vector<Bytes> samples;

   private:
    void post() {
      const Bytes length = std::min(duel_.message_bytes, flow_.bytes - posted_);
      if (length > 0 && shard_.send_virtual(connection_, length, 0) == PostResult::ok) posted_ += length;
    }

    const DuelConfig& duel_;
    Shard shard_;
    Address peer_;
    DuelFlow flow_;
    ConnectionConfig config_;
    ConnectionId connection_ = 0;
    Bytes posted_ = 0;
  };

  DuelConfig config_;
  Network network_;
  Network::LinkId forward_ = 0;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  std::vector<std::unique_ptr<Sender>> senders_;
};

}  // namespace mltcp::sim
