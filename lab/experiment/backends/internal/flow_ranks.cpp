// Ranks at flow level (see flow_ranks.h).
#include "mltcp/lab/experiment/backends/internal/flow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using workload::Operation;

constexpr std::uint32_t kIpUdpBytes = encap::kIpv4Bytes + encap::kUdpBytes;
constexpr double kInitialWindowPackets = 10;  // RFC 6928

double header_cost(std::uint32_t mtu) { return static_cast<double>(frame_bytes(mtu)) / payload_bytes(mtu); }

/// As at packet level: a pause holds up the first rank only.
workload::Job job_of(const workload::Job& job, std::uint32_t rank) {
  workload::Job result = job;
  if (rank > 0) result.pause = {};
  return result;
}

}  // namespace

double payload_bytes(std::uint32_t mtu) {
  return static_cast<double>(mtu - kIpUdpBytes - wire::kHeaderBytes - wire::kDataFrameBytes);
}

bool restarts_after(Nanos silence, Nanos round_trip) {
  // A probe timeout (RFC 9002 section 6.2.1) where delays don't vary.
  static const ConnectionConfig config;
  return silence > round_trip + config.timer_granularity + config.max_ack_delay;
}

Nanos slow_start_loss(const FlowBurst& burst, std::uint32_t mtu) {
  const double payload = payload_bytes(mtu);
  double rate = burst.rate;
  if (!burst.limit.is_zero())
    rate = std::min(
        rate, static_cast<double>(burst.limit.bits_per_second) / 8e9 * payload / static_cast<double>(frame_bytes(mtu)));
  const auto round_trip = static_cast<double>(burst.round_trip.count);
  double window = kInitialWindowPackets * payload * static_cast<double>(burst.connections);
  double sent = 0;
  double lost = 0;
  while (window < rate * round_trip && sent + window < static_cast<double>(burst.bytes)) {
    lost += round_trip - window / rate;
    sent += window;
    window *= 2;
  }
  return Nanos(static_cast<std::int64_t>(lost));
}

struct FlowRanks::Rank final : IterationEngine::Carrier {
  Rank(FlowRanks& its_job, std::uint32_t its_number)
      : all(its_job),
        number(its_number),
        program(workload::rank_program(all.spec_.job, number)),
        load(program.load()),
        alone(!program.communicates()),
        job(job_of(all.spec_.job, number)),
        lead(time_to_first_send(program)),
        engine(program, job,
               {.iterations = all.spec_.iterations,
                .seed = all.spec_.seed,
                .stream = all.spec_.number + (std::uint64_t{number} << 33U),
                .timeline = all.spec_.job.timeline}),
        channel_of(program.operations.size()),
        place(program.operations.size()) {}

  void begin_iteration(Nanos /*now*/) override {
    gate.begin_iteration();
    all.network_.begin_iteration(group, load.sent);
    for (const std::uint32_t channel : sending) all.channels_[channel].next = 0;
  }
  void begin(std::uint32_t operation, Nanos now) override {
    Channel& channel = all.channels_[channel_of[operation]];
    if (program.operations[operation].kind == Operation::Kind::send) return all.post(*this, channel);
    const std::size_t count = channel.receives.size();
    const std::uint64_t message = engine.iteration() * count + place[operation];
    if (channel.arrived <= message) return;
    engine.finish(operation, now, std::max(now, channel.arrivals[message % (2 * count)]));
  }

  FlowRanks& all;
  const std::uint32_t number;
  const workload::RankProgram program;
  const workload::RankProgram::Load load;
  const bool alone;         ///< see RankResult::alone
  const workload::Job job;  ///< for its compute times
  const std::optional<Nanos> lead;
  IterationEngine engine;
  std::vector<std::uint32_t> channel_of;  ///< by operation
  std::vector<std::uint32_t> place;       ///< by operation: number among the channel's
  std::vector<std::uint32_t> sending;     ///< channels
  Network::GroupId group = 0;
  std::optional<Network::LinkId> limit;  ///< of its rate, where its uplink doesn't bound it already
  PhaseGate gate;
  Nanos gate_opens = Nanos::never();  ///< if something waits for it
  GateStats gate_in_the_end;
};

FlowRanks::FlowRanks(Network& network, const FlowFabric& fabric, std::optional<Nanos> burst_latency, JobSpec spec)
    : network_(network),
      fabric_(fabric),
      burst_latency_(burst_latency),
      spec_(std::move(spec)),
      slow_start_(!cc::find_algorithm(spec_.connection.congestion_control).capabilities.rate_based) {
  const std::uint32_t ranks = workload::ranks_of(spec_.job);
  if (!fabric_.between || spec_.workers.size() != ranks)
    throw InputError(
        fmt::format("job \"{}\": its ranks need hosts of their own at flow level; give a topology", spec_.job.name));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>(*this, rank));
    timers_.add(rank);
  }
  add_channels();
}

FlowRanks::~FlowRanks() {
  for (const auto& rank : ranks_) network_.remove_group(rank->group);
}

void FlowRanks::add_channels() {
  const auto channel_between = [&](std::uint32_t from, std::uint32_t to) {
    const auto [at, is_new] = channel_of_.try_emplace({from, to}, static_cast<std::uint32_t>(channels_.size()));
    if (is_new) {
      Channel& channel = channels_.emplace_back();
      channel.from = from;
      channel.to = to;
      channel.last_end = Nanos(std::numeric_limits<std::int64_t>::min() / 2);
      ranks_[from]->sending.push_back(at->second);
    }
    return at->second;
  };
  std::vector<Bytes> bytes;  // by channel
  for (const auto& rank : ranks_)
    for (std::uint32_t i = 0; i < rank->program.operations.size(); ++i) {
      const Operation& operation = rank->program.operations[i];
      if (!operation.communicates()) continue;
      const bool sends = operation.kind == Operation::Kind::send;
      const std::uint32_t number =
          sends ? channel_between(rank->number, operation.peer) : channel_between(operation.peer, rank->number);
      std::vector<std::uint32_t>& list = sends ? channels_[number].sends : channels_[number].receives;
      rank->channel_of[i] = number;
      rank->place[i] = static_cast<std::uint32_t>(list.size());
      list.push_back(i);
      bytes.resize(channels_.size());
      if (sends) bytes[number] += operation.bytes;
    }
  // What a byte takes of each link: acknowledgements are paid for by data on the same link.
  std::vector<FlowPath> paths;
  std::map<std::uint32_t, std::pair<double, double>> loads;  // by link: data, and data that is acknowledged there
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    if (channel.sends.size() != channel.receives.size())
      throw InputError(
          fmt::format("job \"{}\": rank {} sends rank {} {} messages, and that receives {}; take programs "
                      "that fit together",
                      spec_.job.name, channel.from, channel.to, channel.sends.size(), channel.receives.size()));
    channel.arrivals.resize(2 * channel.receives.size());
    paths.push_back(fabric_.between(spec_, channel.from, channel.to));
    const double sent = static_cast<double>(bytes[i]);
    for (const std::uint32_t link : paths[i].data) loads[link].first += sent;
    for (const std::uint32_t link : paths[i].acknowledgements) loads[link].second += sent;
  }
  const double acknowledgement_cost =
      static_cast<double>(kAcknowledgementBytes) / (ConnectionConfig{}.ack_every * payload_bytes(fabric_.mtu));
  std::map<std::uint32_t, double> costs;
  for (const auto& [link, load] : loads)
    if (load.first > 0) {
      costs[link] = header_cost(fabric_.mtu) + acknowledgement_cost * load.second / load.first;
      links_.insert(link);
    }
  for (const auto& rank : ranks_) {
    rank->group = network_.add_group(spec_.number, spec_.augmentation);
    if (rank->sending.empty()) continue;
    const Rate uplink = fabric_.links[paths[rank->sending.front()].data.front()].rate;
    if (!spec_.job.rate.is_zero() && spec_.job.rate < uplink) rank->limit = network_.add_link(spec_.job.rate);
  }
  for (std::size_t i = 0; i < channels_.size(); ++i) add_flow(channels_[i], costs, paths[i]);
}

void FlowRanks::add_flow(Channel& channel, const std::map<std::uint32_t, double>& costs, const FlowPath& path) {
  std::vector<Network::Hop> hops;
  channel.rate = std::numeric_limits<double>::infinity();
  channel.round_trip = path.round_trip;
  for (const std::uint32_t link : path.data) {
    hops.push_back({link, costs.at(link)});
    channel.rate = std::min(channel.rate, static_cast<double>(fabric_.links[link].rate.bits_per_second) / 8e9 /
                                              hops.back().wire_bytes_per_byte);
  }
  const Rank& rank = *ranks_[channel.from];
  if (rank.limit) hops.push_back({*rank.limit, header_cost(fabric_.mtu)});
  channel.flow = network_.add_flow(rank.group, hops, spec_.job.flows);
}

std::vector<FlowRanks::Network::FlowId> FlowRanks::flows() const {
  std::vector<Network::FlowId> result;
  for (const Channel& channel : channels_) result.push_back(channel.flow);
  return result;
}

void FlowRanks::start(Nanos at) {
  for (const auto& rank : ranks_) {
    rank->engine.start(at);
    schedule(*rank);
  }
}

void FlowRanks::schedule(const Rank& rank) { timers_.set(rank.number, std::min(rank.engine.wake(), rank.gate_opens)); }

void FlowRanks::advance(const std::function<void(std::uint32_t, Nanos, Nanos)>& recorded) {
  const Nanos now = network_.now();
  while (!timers_.empty() && timers_.time() <= now) {
    Rank& rank = *ranks_[timers_.source()];
    timers_.set(rank.number, Nanos::never());
    if (rank.gate_opens <= now) post(rank);
    for (;;) {
      const IterationEngine::Step step = rank.engine.advance(now, rank);
      if (step == IterationEngine::Step::waiting || step == IterationEngine::Step::advanced) break;
      if (step == IterationEngine::Step::unrecorded) continue;
      if (rank.engine.done()) rank.gate_in_the_end = rank.gate.stats();
      const std::size_t iteration = rank.engine.recorded() - 1;
      if (ranks_done_.size() <= iteration) {
        ranks_done_.resize(iteration + 1);
        spans_.resize(iteration + 1, {Nanos::never(), Nanos()});
      }
      auto& [first, length] = spans_[iteration];
      if (!rank.alone) first = std::min(first, rank.engine.iteration_start());
      length = std::max(length, rank.engine.times().back());
      if (++ranks_done_[iteration] < ranks_.size()) continue;
      ++recorded_;
      recorded(static_cast<std::uint32_t>(iteration), first, length);
    }
    schedule(rank);
  }
}

void FlowRanks::post(Rank& rank) {
  rank.gate_opens = Nanos::never();
  for (const std::uint32_t channel : rank.sending) post(rank, channels_[channel]);
}

void FlowRanks::post(Rank& rank, Channel& channel) {
  while (rank.engine.running() && channel.next < channel.sends.size() &&
         rank.engine.has_begun(channel.sends[channel.next])) {
    const Nanos now = network_.now();
    const std::uint32_t number = channel.sends[channel.next];
    const Operation& operation = rank.program.operations[number];
    // Barriers belong to no iteration's bytes and are never held.
    if (const Nanos opens = operation.barrier ? now : rank.gate.opens_at(now); opens > now) {
      rank.gate_opens = opens;
      return;
    }
    ++channel.next;
    Nanos lost;
    if (slow_start_ && !burst_latency_ && network_.idle(channel.flow) &&
        restarts_after(now - channel.last_end, channel.round_trip))
      lost = slow_start_loss({channel.rate, channel.round_trip, spec_.job.flows, operation.bytes, spec_.job.rate},
                             fabric_.mtu);
    network_.send(channel.flow, operation.bytes, number, now + lost);
  }
}

void FlowRanks::on_finished(std::uint32_t number, const Network::Finished& finished) {
  const Nanos now = network_.now();
  Channel& channel = channels_[number];
  channel.last_end = now;
  const Nanos round_trip = burst_latency_.value_or(channel.round_trip);
  Rank& sender = *ranks_[channel.from];
  sender.engine.finish(static_cast<std::uint32_t>(finished.tag), now, now + round_trip);
  schedule(sender);
  const Nanos at = now + round_trip / 2;
  const std::size_t count = channel.receives.size();
  const std::uint64_t message = channel.arrived++;
  channel.arrivals[message % (2 * count)] = at;
  Rank& receiver = *ranks_[channel.to];
  const std::uint32_t operation = channel.receives[message % count];
  if (!receiver.engine.running() || receiver.engine.iteration() != message / count ||
      !receiver.engine.has_begun(operation))
    return;
  receiver.engine.finish(operation, now, at);
  schedule(receiver);
}

PlanState FlowRanks::set_plan(const PhasePlan& plan) {
  if (!lead_) lead_ = time_to_first_send(spec_.job);
  PlanState state = PlanState::none;
  for (const auto& rank : ranks_) {
    if (!rank->lead) continue;
    PhasePlan own = plan;
    own.slot += *rank->lead - *lead_;
    state = rank->gate.set(own, network_.now());
    post(*rank);
    schedule(*rank);
  }
  return state;
}

void FlowRanks::clear_plan() {
  for (const auto& rank : ranks_) {
    if (rank->gate.stats().state != PlanState::active) continue;
    rank->gate.clear(PlanState::removed, network_.now());
    post(*rank);
    schedule(*rank);
  }
}

GateStats FlowRanks::gate_stats() const {
  GateStats result = ranks_.front()->gate.stats();
  for (const auto& rank : ranks_) {
    if (!rank->lead) continue;
    const GateStats& own = rank->gate.stats();
    if (own.state == PlanState::misfit || result.state == PlanState::none) result.state = own.state;
    result.adrift_since = std::min(result.adrift_since, own.adrift_since);
  }
  return result;
}

JobResult FlowRanks::result() const {
  std::vector<RankResult> results;
  for (const auto& rank : ranks_) {
    RankResult& result = results.emplace_back();
    result.starts = rank->engine.starts();
    result.times = rank->engine.times();
    result.computes = rank->engine.computes();
    result.alone = rank->alone;
    result.bytes_per_iteration = rank->load.sent;
    result.gate = rank->engine.done() ? rank->gate_in_the_end : rank->gate.stats();
    result.timeline = rank->engine.timeline();
  }
  return merge_ranks(spec_.job, results, Nanos(0));
}

}  // namespace mltcp::experiment
