// Jobs at flow level (see flow_level.h).
#include "mltcp/experiment/backends/flow_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/backends/link_results.h"
#include "mltcp/experiment/backends/topology_network.h"
#include "mltcp/experiment/engine/compute_times.h"
#include "mltcp/experiment/engine/job_driver.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/files/algorithms.h"
#include "mltcp/experiment/files/policy.h"
#include "mltcp/sim/event_queue.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

using Network = sim::FlowNetwork;

constexpr std::uint32_t ip_udp_bytes = encap::kIpv4Bytes + encap::kUdpBytes;
constexpr Bytes acknowledgement_bytes = encap::kIpv4OverheadBytes + wire::header_bytes + wire::ack_frame_bytes;
constexpr double initial_window_packets = 10;  // RFC 6928

/// Of a full packet.
double payload_bytes(std::uint32_t mtu) {
  return static_cast<double>(mtu - ip_udp_bytes - wire::header_bytes - wire::data_frame_bytes);
}
Bytes frame_bytes(std::uint32_t mtu) { return Bytes{mtu} + encap::kEthernetBytes; }

/// Of a packet and its acknowledgement over links of those rates; `delay`: of all of them.
Nanos round_trip(std::span<const Rate> there, std::span<const Rate> back, Nanos delay, std::uint32_t mtu) {
  Nanos sum = delay;
  for (const Rate rate : there) sum += rate.time_for(frame_bytes(mtu));
  for (const Rate rate : back) sum += rate.time_for(acknowledgement_bytes);
  return sum;
}

}  // namespace

FlowFabric flow_fabric(const fabric::DumbbellConfig& config) {
  FlowFabric fabric;
  fabric.links.push_back({"bottleneck", config.bottleneck.rate});
  fabric.mtu = config.mtu;
  const fabric::LinkConfig access = fabric::access_link(config);
  const std::array there = {access.rate, config.bottleneck.rate};
  const std::array back = {access.rate, config.reverse.rate};
  const FlowPath path{{0},
                      {},
                      round_trip(there, back, Nanos(0), config.mtu) + (access.delay + access.delay) +
                          config.bottleneck.delay + config.reverse.delay};
  fabric.route = [path](const FlowJob& job, std::uint32_t /*worker*/) {
    return std::vector<FlowPath>(job.job.flows, path);
  };
  return fabric;
}

FlowFabric flow_fabric(const sim::SwitchedNetworkConfig& config) {
  const auto map = std::make_shared<const sim::SwitchedNetworkMap>(config);
  FlowFabric fabric;
  const Topology& topology = map->topology();
  for (Topology::Link link = 0; link < topology.links(); ++link)
    fabric.links.push_back({topology.link_name(link), topology.capacity(link)});
  fabric.mtu = config.mtu;
  fabric.route = [map](const FlowJob& job, std::uint32_t worker) {
    const auto [from, to] = job.workers[worker];
    const std::uint16_t from_port = sender_port(job.number);
    const std::uint16_t to_port = receiver_port(job.number);
    Nanos delay;
    const auto rates = [&](const std::vector<std::uint32_t>& links) {
      std::vector<Rate> found;
      for (const std::uint32_t link : links) {
        found.push_back(map->topology().capacity(link));
        delay += map->topology().delay(link);
      }
      return found;
    };
    std::vector<FlowPath> paths;
    // Both shards make their connections in the same order, with the same ids.
    for (const ConnectionId id :
         Shard::first_connections(JobDriver::shard_config(job.seed, job.number, worker, job.job.flows))) {
      // NOLINTNEXTLINE(readability-suspicious-call-argument): there and back
      FlowPath path{map->path(from, from_port, to, to_port, id), map->path(to, to_port, from, from_port, id), {}};
      delay = Nanos();
      const std::vector<Rate> there = rates(path.data);
      const std::vector<Rate> back = rates(path.acknowledgements);
      path.round_trip = round_trip(there, back, delay, map->config().mtu);
      paths.push_back(std::move(path));
    }
    return paths;
  };
  return fabric;
}

// ---- jobs -----------------------------------------------------------------------------------------------------------

class FlowLevelCluster::State {
 public:
  State(FlowFabric fabric, const FlowLevelOptions& options)
      : fabric_(std::move(fabric)), options_(options), network_(Network::Options{options.weight_steps}) {
    if (fabric_.links.empty()) throw InputError("the network has no links; give it at least one");
    if (fabric_.mtu < 576 || fabric_.mtu > 9000)
      throw InputError(fmt::format("the MTU is {}; give 576 to 9000 bytes", fabric_.mtu));
    for (const FlowFabric::Link& link : fabric_.links) {
      try {
        network_.add_link(link.rate);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", link.name, error.what()));
      }
    }
    jobs_on_.resize(fabric_.links.size());
  }

  JobId add_job(FlowJob spec);
  void remove(JobId id);
  PlanState set_plan(JobId id, const PhasePlan& plan);
  void clear_plan(JobId id);
  GateStats gate_stats(JobId id) { return job(id).gate.stats(); }
  JobResult result(JobId id);
  std::size_t recorded(JobId id) { return job(id).lengths.size(); }
  bool done(JobId id) { return job(id).done(); }

  bool run(Nanos until, const std::function<bool()>& stop);

  const FlowFabric& fabric() const { return fabric_; }
  Network& network() { return network_; }
  std::size_t jobs() const { return alive_; }
  std::size_t jobs_on(std::uint32_t link) const { return jobs_on_[link]; }

  OnIteration on_iteration;

 private:
  enum class Step { waiting, computing, sending, draining };

  /// Connections of a worker that share a path.
  struct Flow {
    Network::FlowId id = 0;
    std::vector<std::uint32_t> connections;
    double rate = 0;  ///< bytes per nanosecond that the path carries
    Nanos round_trip;
    Nanos last_end = Nanos(std::numeric_limits<std::int64_t>::min() / 2);
  };
  struct Worker {
    Network::GroupId group = 0;
    std::vector<Flow> flows;
    std::optional<Network::LinkId> limit;  ///< of its rate, where a link doesn't bound it already
    Rate unlimited;
  };
  struct Transfer {
    Bytes bytes = 0;
    Bytes undelivered = 0;  ///< all workers together
    Nanos delivered;        ///< the latest of what is delivered
    const workload::Phase* phase = nullptr;
  };
  struct Job {
    explicit Job(FlowJob given) : spec(std::move(given)), compute_times(spec.job, spec.seed, spec.number) {}
    [[nodiscard]] bool done() const { return spec.iterations > 0 && lengths.size() >= spec.iterations; }

    FlowJob spec;
    ComputeTimes compute_times;
    std::vector<Worker> workers;
    PhaseGate gate;
    Step step = Step::waiting;
    std::size_t phase = 0;
    Nanos wake;                         ///< when the step is over, as far as that is known
    Nanos gate_opens = Nanos::never();  ///< if `held` wait for that
    std::vector<Transfer> transfers;    ///< of this iteration
    std::size_t held = 0;               ///< the first of them that waits for the gate
    Nanos start;
    Nanos computed;
    std::vector<Nanos> starts;
    std::vector<Nanos> lengths;
    std::vector<Nanos> computes;
    Bytes delivered = 0;
    GateStats gate_in_the_end;  ///< of the last iteration to record
  };
  struct Owner {  // of a flow of the network
    JobId job = 0;
    std::uint32_t worker = 0;
    std::uint32_t flow = 0;
  };

  Job& job(JobId id) {
    if (id >= jobs_.size() || !jobs_[id]) throw InputError(fmt::format("there is no job {} in the cluster", id));
    return *jobs_[id];
  }
  void add_workers(JobId id, Job& job);
  void schedule(JobId id, const Job& job) { timers_.set(id, std::min(job.wake, job.gate_opens)); }
  void on_finished(const Network::Finished& finished);
  void advance(JobId id);
  void begin_iteration(Job& of);
  bool begin_phase(Job& of);
  void ask_gate(Job& of);
  void send(Job& of, std::size_t transfer);
  Nanos slow_start(const Job& of, const Flow& flow, Bytes bytes, Rate limit) const;

  FlowFabric fabric_;
  FlowLevelOptions options_;
  Network network_;
  sim::EventQueue timers_;  // by job
  std::vector<std::unique_ptr<Job>> jobs_;
  std::size_t alive_ = 0;
  std::vector<std::size_t> jobs_on_;
  std::vector<Owner> owners_;                  // by flow of the network
  std::vector<Network::LinkId> spare_limits_;  // of jobs that are gone
  std::vector<Network::Finished> finished_;
};

FlowLevelCluster::JobId FlowLevelCluster::State::add_job(FlowJob spec) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("job \"{}\": {}", spec.job.name, why));
  };
  if (spec.workers.empty()) refuse("it has no workers; give it at least one");
  if (spec.job.flows == 0) refuse("it has no flows; give it at least one");
  if (spec.job.bytes_per_iteration() == 0) refuse("it sends nothing; give it a phase that communicates");
  if (spec.plan)
    if (const std::string wrong = objection_to(*spec.plan); !wrong.empty()) refuse("its plan: " + wrong);
  auto made = std::make_unique<Job>(std::move(spec));
  const auto id = static_cast<JobId>(jobs_.size());
  add_workers(id, *made);
  if (made->spec.plan) made->gate.set(*made->spec.plan, network_.now());
  made->wake = std::max(network_.now(), made->spec.job.start);
  jobs_.push_back(std::move(made));
  timers_.add(id);
  schedule(id, *jobs_[id]);
  ++alive_;
  return id;
}

void FlowLevelCluster::State::add_workers(JobId id, Job& job) {
  const FlowJob& spec = job.spec;
  // What all connections of the job use of each link: acknowledgements are paid for by its data on the same link.
  struct Load {
    std::size_t data = 0;
    std::size_t acknowledgements = 0;
  };
  std::map<std::uint32_t, Load> loads;
  std::vector<std::vector<FlowPath>> routes;
  for (std::uint32_t worker = 0; worker < spec.workers.size(); ++worker) {
    routes.push_back(fabric_.route(spec, worker));
    if (routes.back().size() != spec.job.flows)
      throw InputError(fmt::format("job \"{}\": worker {} has {} paths for {} flows; give one for each", spec.job.name,
                                   worker, routes.back().size(), spec.job.flows));
    for (const FlowPath& path : routes.back()) {
      for (const std::uint32_t link : path.data) {
        if (link >= fabric_.links.size())
          throw InputError(fmt::format("job \"{}\": a path has link {}; the network has {}", spec.job.name, link,
                                       fabric_.links.size()));
        ++loads[link].data;
      }
      if (path.data.empty())
        throw InputError(fmt::format("job \"{}\": a path has no links; name at least one", spec.job.name));
      for (const std::uint32_t link : path.acknowledgements) ++loads[link].acknowledgements;
    }
  }
  const double payload = payload_bytes(fabric_.mtu);
  const double header_cost = static_cast<double>(frame_bytes(fabric_.mtu)) / payload;
  const double acknowledgement_cost =
      static_cast<double>(acknowledgement_bytes) / (ConnectionConfig{}.ack_every * payload);
  const auto cost = [&](std::uint32_t link) {
    const Load& load = loads.at(link);
    return header_cost +
           acknowledgement_cost * static_cast<double>(load.acknowledgements) / static_cast<double>(load.data);
  };
  for (const auto& [link, load] : loads)
    if (load.data > 0) ++jobs_on_[link];

  Rate lowest;  // of what limits a phase; 0: nothing does
  for (const workload::Phase& phase : spec.job.phases)
    for (const Rate rate : {phase.rate, spec.job.rate})
      if (phase.kind == workload::Phase::Kind::communicate && !rate.is_zero())
        lowest = lowest.is_zero() ? rate : std::min(lowest, rate);
  for (std::uint32_t number = 0; number < spec.workers.size(); ++number) {
    Worker& worker = job.workers.emplace_back();
    worker.group = network_.add_group(spec.number, spec.augmentation);
    bool one_uplink = true;
    for (const FlowPath& path : routes[number]) {
      one_uplink &= path.data.front() == routes[number].front().data.front();
      worker.unlimited = std::max(worker.unlimited, fabric_.links[path.data.front()].rate);
    }
    if (!lowest.is_zero() && !(one_uplink && lowest >= worker.unlimited)) {
      if (spare_limits_.empty()) spare_limits_.push_back(network_.add_link(lowest));
      worker.limit = spare_limits_.back();
      spare_limits_.pop_back();
    }
    std::map<std::vector<std::uint32_t>, std::size_t> by_path;
    for (std::uint32_t connection = 0; connection < spec.job.flows; ++connection) {
      const FlowPath& path = routes[number][connection];
      const auto [at, is_new] = by_path.try_emplace(path.data, worker.flows.size());
      if (is_new) worker.flows.emplace_back();
      Flow& flow = worker.flows[at->second];
      flow.connections.push_back(connection);
      flow.round_trip = std::max(flow.round_trip, path.round_trip);
    }
    for (const auto& [path, index] : by_path) {
      Flow& flow = worker.flows[index];
      std::vector<Network::Hop> hops;
      flow.rate = std::numeric_limits<double>::infinity();
      for (const std::uint32_t link : path) {
        hops.push_back({link, cost(link)});
        flow.rate = std::min(flow.rate, static_cast<double>(fabric_.links[link].rate.bits_per_second) / 8e9 /
                                            hops.back().wire_bytes_per_byte);
      }
      if (worker.limit) hops.push_back({*worker.limit, header_cost});
      flow.id = network_.add_flow(worker.group, hops, static_cast<std::uint32_t>(flow.connections.size()));
      if (owners_.size() <= flow.id) owners_.resize(flow.id + 1);
      owners_[flow.id] = {id, number, static_cast<std::uint32_t>(index)};
    }
  }
}

void FlowLevelCluster::State::remove(JobId id) {
  for (const Worker& worker : job(id).workers) {
    network_.remove_group(worker.group);
    if (worker.limit) spare_limits_.push_back(*worker.limit);
  }
  timers_.set(id, Nanos::never());
  jobs_[id].reset();
  --alive_;
}

PlanState FlowLevelCluster::State::set_plan(JobId id, const PhasePlan& plan) {
  Job& held = job(id);
  const PlanState state = held.gate.set(plan, network_.now());
  ask_gate(held);
  schedule(id, held);
  return state;
}

void FlowLevelCluster::State::clear_plan(JobId id) {
  Job& held = job(id);
  if (held.gate.stats().state != PlanState::active) return;
  held.gate.clear(PlanState::removed, network_.now());
  ask_gate(held);
  schedule(id, held);
}

JobResult FlowLevelCluster::State::result(JobId id) {
  const Job& of = job(id);
  JobResult result;
  result.name = of.spec.job.name;
  result.iterations = of.lengths;
  result.starts.assign(of.starts.begin(), of.starts.begin() + static_cast<std::ptrdiff_t>(of.lengths.size()));
  result.bytes = of.delivered;
  const GateStats& gate = of.done() ? of.gate_in_the_end : of.gate.stats();
  result.gate_waited = gate.waited;
  result.gate_corrections = gate.corrections;
  if (gate.state != PlanState::none && gate.state != PlanState::active) result.plan_dropped = to_text(gate.state);
  result.iteration_compute = of.computes;
  result.compute = of.spec.job.compute_per_iteration();
  result.bytes_per_iteration = of.spec.job.bytes_per_iteration() * of.workers.size();
  return result;
}

bool FlowLevelCluster::State::run(Nanos until, const std::function<bool()>& stop) {
  for (;;) {
    const Nanos next = std::min(network_.next_event(), timers_.empty() ? Nanos::never() : timers_.time());
    if (next > until || next.is_never()) break;
    network_.advance(std::max(next, network_.now()));
    finished_.assign(network_.finished().begin(), network_.finished().end());
    for (const Network::Finished& finished : finished_) on_finished(finished);
    while (!timers_.empty() && timers_.time() <= network_.now()) {
      const JobId id = timers_.source();
      timers_.set(id, Nanos::never());
      advance(id);
    }
    if (stop && stop()) return true;
  }
  if (!until.is_never()) network_.advance(std::max(until, network_.now()));
  return false;
}

void FlowLevelCluster::State::on_finished(const Network::Finished& finished) {
  const Owner& owner = owners_[finished.flow];
  Job& of = *jobs_[owner.job];
  Flow& flow = of.workers[owner.worker].flows[owner.flow];
  flow.last_end = network_.now();
  Transfer& transfer = of.transfers[finished.tag];
  transfer.undelivered -= finished.bytes;
  transfer.delivered = std::max(transfer.delivered, network_.now() + options_.burst_latency.value_or(flow.round_trip));
  if (!of.done()) of.delivered += finished.bytes;
  if (transfer.undelivered == 0) timers_.set(owner.job, network_.now());
}

/// Moves the job on as far as possible.
void FlowLevelCluster::State::advance(JobId id) {
  const Nanos now = network_.now();
  Job& at = *jobs_[id];
  if (at.gate_opens <= now) ask_gate(at);
  for (;;) {
    switch (at.step) {
      case Step::waiting:
        if (now < at.wake) return schedule(id, at);
        begin_iteration(at);
        break;
      case Step::computing:
        if (now < at.wake) return schedule(id, at);
        ++at.phase;
        break;
      case Step::sending:
      case Step::draining: {
        // Of the phase that is sent, or of all that overlapped.
        bool all = true;
        Nanos delivered = now;
        for (const Transfer& transfer : at.transfers) {
          if (at.step == Step::sending && &transfer != &at.transfers.back()) continue;
          all &= transfer.undelivered == 0;
          delivered = std::max(delivered, transfer.delivered);
        }
        at.wake = all ? delivered : Nanos::never();
        if (now < at.wake) return schedule(id, at);
        if (at.step == Step::sending) {
          ++at.phase;
          break;
        }
        const bool record = !at.done();
        if (record) {
          at.lengths.push_back(now - at.start);
          if (at.spec.job.compute_varies()) at.computes.push_back(at.computed);
          if (at.done()) at.gate_in_the_end = at.gate.stats();
          if (on_iteration) {
            on_iteration(id,
                         {static_cast<std::uint32_t>(at.lengths.size() - 1), at.start, at.lengths.back(), at.done()});
            if (!jobs_[id]) return;
          }
        }
        begin_iteration(at);
        break;
      }
    }
    while (!begin_phase(at)) ++at.phase;
  }
}

void FlowLevelCluster::State::begin_iteration(Job& of) {
  of.phase = 0;
  of.transfers.clear();
  of.held = 0;
  of.start = network_.now();
  of.computed = {};
  if (!of.done()) of.starts.push_back(of.start);
  of.gate.begin_iteration();
  for (const Worker& worker : of.workers) network_.begin_iteration(worker.group, of.spec.job.bytes_per_iteration());
  of.compute_times.begin_iteration();
}

/// Begins the phase that the job has come to; false if it is over already.
bool FlowLevelCluster::State::begin_phase(Job& of) {
  if (of.phase == of.spec.job.phases.size()) {
    of.step = Step::draining;
    return true;
  }
  const workload::Phase& phase = of.spec.job.phases[of.phase];
  if (phase.kind == workload::Phase::Kind::compute) {
    of.step = Step::computing;
    const Nanos compute = of.compute_times.of(phase);
    of.computed += compute;
    of.wake = network_.now() + compute;
    return true;
  }
  of.transfers.push_back({phase.bytes, phase.bytes * of.workers.size(), {}, &phase});
  ask_gate(of);
  of.step = Step::sending;
  return !phase.overlap;
}

/// Sends what the gate lets go.
void FlowLevelCluster::State::ask_gate(Job& of) {
  of.gate_opens = Nanos::never();
  if (of.held == of.transfers.size()) return;
  const Nanos opens = of.gate.opens_at(network_.now());
  if (opens > network_.now()) {
    of.gate_opens = opens;
    return;
  }
  for (; of.held < of.transfers.size(); ++of.held) send(of, of.held);
}

void FlowLevelCluster::State::send(Job& of, std::size_t transfer) {
  const workload::Phase& phase = *of.transfers[transfer].phase;
  Rate limit = of.spec.job.rate;
  if (limit.is_zero() || (!phase.rate.is_zero() && phase.rate < limit)) limit = phase.rate;
  const Bytes share = phase.bytes / of.spec.job.flows;
  const Bytes left_over = phase.bytes % of.spec.job.flows;
  for (Worker& worker : of.workers) {
    if (worker.limit) network_.set_rate(*worker.limit, limit.is_zero() ? worker.unlimited : limit);
    for (Flow& flow : worker.flows) {
      Bytes bytes = 0;
      for (const std::uint32_t connection : flow.connections) bytes += share + (connection < left_over ? 1 : 0);
      if (bytes == 0) continue;
      network_.send(flow.id, bytes, transfer, network_.now() + slow_start(of, flow, bytes, limit));
    }
  }
}

/// What a burst of `bytes` that begins now loses in slow start.
Nanos FlowLevelCluster::State::slow_start(const Job& of, const Flow& flow, Bytes bytes, Rate limit) const {
  if (options_.burst_latency || !of.spec.slow_start) return {};
  // A probe timeout (RFC 9002 section 6.2.1) where delays don't vary.
  static const ConnectionConfig config;
  const Nanos probe_timeout = flow.round_trip + config.timer_granularity + config.max_ack_delay;
  if (!network_.idle(flow.id) || network_.now() - flow.last_end <= probe_timeout) return {};
  const double payload = payload_bytes(fabric_.mtu);
  double rate = flow.rate;
  if (!limit.is_zero())
    rate = std::min(rate, static_cast<double>(limit.bits_per_second) / 8e9 * payload /
                              static_cast<double>(frame_bytes(fabric_.mtu)));
  const auto round_trip = static_cast<double>(flow.round_trip.count);
  double window = initial_window_packets * payload * static_cast<double>(flow.connections.size());
  double sent = 0;
  double lost = 0;
  while (window < rate * round_trip && sent + window < static_cast<double>(bytes)) {
    lost += round_trip - window / rate;
    sent += window;
    window *= 2;
  }
  return Nanos(static_cast<std::int64_t>(lost));
}

FlowLevelCluster::FlowLevelCluster(FlowFabric fabric, const FlowLevelOptions& options)
    : state_(std::make_unique<State>(std::move(fabric), options)) {}
FlowLevelCluster::~FlowLevelCluster() = default;

FlowLevelCluster::JobId FlowLevelCluster::add_job(FlowJob job) { return state_->add_job(std::move(job)); }
void FlowLevelCluster::remove(JobId job) { state_->remove(job); }
PlanState FlowLevelCluster::set_plan(JobId job, const PhasePlan& plan) { return state_->set_plan(job, plan); }
void FlowLevelCluster::clear_plan(JobId job) { state_->clear_plan(job); }
GateStats FlowLevelCluster::gate_stats(JobId job) const { return state_->gate_stats(job); }
JobResult FlowLevelCluster::result(JobId job) const { return state_->result(job); }
std::size_t FlowLevelCluster::recorded(JobId job) const { return state_->recorded(job); }
bool FlowLevelCluster::done(JobId job) const { return state_->done(job); }
std::size_t FlowLevelCluster::jobs() const { return state_->jobs(); }
void FlowLevelCluster::on_iteration(OnIteration callback) { state_->on_iteration = std::move(callback); }
bool FlowLevelCluster::run(Nanos until, const std::function<bool()>& stop) { return state_->run(until, stop); }
Nanos FlowLevelCluster::now() const { return state_->network().now(); }
const FlowFabric& FlowLevelCluster::fabric() const { return state_->fabric(); }
sim::FlowNetwork::LinkUse FlowLevelCluster::use(std::uint32_t link) { return state_->network().use(link); }
std::size_t FlowLevelCluster::jobs_on(std::uint32_t link) const { return state_->jobs_on(link); }
void FlowLevelCluster::meter(std::uint32_t link, fabric::UsageMeter* meter) { state_->network().meter(link, meter); }
const sim::FlowNetwork::Counters& FlowLevelCluster::counters() const { return state_->network().counters(); }

// ---- experiments ----------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t usage_bins = 16384;
constexpr std::size_t topology_usage_bins = 4096;  // of each link: there are many

void refuse_what_flows_lack(const Experiment& experiment, const RunPlan& plan) {
  const auto refuse = [](std::string_view what, std::string_view cure) {
    throw InputError(fmt::format("datapath flow has no {}; {}, or use datapath sim", what, cure));
  };
  if (policy_named(plan.policy).priorities)
    refuse("priority queues", fmt::format("leave policy \"{}\" out", plan.policy));
  if (experiment.bottleneck.faults.any()) refuse("packets that a fault could hit", "leave bottleneck.faults out");
  if (experiment.mltcp.scale_decrease) refuse("windows that decrease", "leave mltcp.decrease out");
  if (experiment.mltcp.learn_iterations)
    refuse("packets to learn iterations from", "let mltcp.iterations be \"exact\"");
}

}  // namespace

namespace {

class ClusterJob final : public RunningJob {
 public:
  ClusterJob(FlowLevelCluster& cluster, FlowLevelCluster::JobId id) : cluster_(cluster), id_(id) {}
  PlanState set_plan(const PhasePlan& plan) override { return cluster_.set_plan(id_, plan); }
  void clear_plan() override { cluster_.clear_plan(id_); }
  [[nodiscard]] PlanState plan_state() const override { return cluster_.gate_stats(id_).state; }
  [[nodiscard]] Nanos adrift_since() const override { return cluster_.gate_stats(id_).adrift_since; }
  [[nodiscard]] JobResult result() const override { return cluster_.result(id_); }

 private:
  FlowLevelCluster& cluster_;
  FlowLevelCluster::JobId id_;
};

class FlowDatapath final : public Datapath {
 public:
  Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick) override {
    return run_at_flow_level(experiment, plan, tick);
  }
  [[nodiscard]] const DatapathKind& kind() const override { return datapath_kind("flow"); }
  [[nodiscard]] bool real_payload() const override { return false; }
  [[nodiscard]] std::string description() const override { return "virtual time, flows in place of packets"; }
};

}  // namespace

std::unique_ptr<Datapath> make_flow_datapath() { return std::make_unique<FlowDatapath>(); }

std::vector<std::string> warnings_at_flow_level(const Experiment& experiment) {
  const auto& policies = experiment.policies;
  if (std::find(policies.begin(), policies.end(), "mltcp") == policies.end()) return {};
  const std::vector<workload::Job>& jobs = experiment.jobs;
  const auto regular = [](const workload::Job& job) {
    return !job.unaware && !job.compute_varies() && job.start_jitter.count == 0;
  };
  const auto together = [&](const workload::Job& a, const workload::Job& b) {
    return regular(a) && regular(b) && a.start == b.start && a.hosts.size() == b.hosts.size() && alike(a, b);
  };
  // By job: its links, of a topology; a dumbbell has one.
  std::vector<std::set<std::uint32_t>> links(jobs.size(), {0});
  if (experiment.topology) {
    const FlowFabric fabric = flow_fabric(*experiment.topology);
    for (const Placement& placement : place(jobs, experiment.topology->hosts())) {
      FlowJob job;
      job.job = jobs[placement.job];
      job.number = placement.job;
      job.workers = placement.workers;
      job.seed = experiment.seed;
      links[placement.job].clear();
      for (std::uint32_t worker = 0; worker < job.workers.size(); ++worker)
        for (const FlowPath& path : fabric.route(job, worker))
          links[placement.job].insert(path.data.begin(), path.data.end());
    }
  }
  const auto meet = [&](std::size_t a, std::size_t b) {
    return std::any_of(links[a].begin(), links[a].end(), [&](std::uint32_t link) { return links[b].contains(link); });
  };
  constexpr std::size_t most = 4;  // names of a line
  std::vector<std::string> warnings;
  std::vector<bool> named(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (named[i]) continue;
    std::vector<std::string> names{in_quotes(jobs[i].name)};
    std::size_t count = 1;
    for (std::size_t j = i + 1; j < jobs.size(); ++j) {
      if (named[j] || !together(jobs[i], jobs[j]) || !meet(i, j)) continue;
      named[j] = true;
      if (++count <= most) names.push_back(in_quotes(jobs[j].name));
    }
    if (count == 1) continue;
    warnings.push_back(fmt::format(
        "jobs {}{} are alike and start together: a fluid has no noise that parts them, so that they collide for ever "
        "under policy mltcp; give them different starts, or a jitter or start_jitter",
        fmt::join(names, ", "), count > most ? fmt::format(" and {} more", count - most) : ""));
  }
  return warnings;
}

Run run_at_flow_level(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick,
                      const FlowLevelOptions& options) {
  refuse_what_flows_lack(experiment, plan);
  fabric::DumbbellConfig dumbbell = network_of(experiment);
  dumbbell.pairs = static_cast<std::uint32_t>(plan.jobs.size());
  FlowLevelCluster cluster(experiment.topology ? flow_fabric(*experiment.topology) : flow_fabric(dumbbell), options);
  std::vector<Placement> placements;
  if (experiment.topology) placements = place(experiment.jobs, experiment.topology->hosts());

  std::size_t unfinished = plan.jobs.size();
  std::vector<double> work;  // of an iteration, by job
  double total = 0;
  Nanos first_start = Nanos::never();
  std::map<std::uint32_t, std::string> names;
  std::vector<ClusterJob> jobs;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    FlowJob job;
    job.job = plan.jobs[index];
    if (job.job.rate.is_zero()) job.job.rate = experiment.bottleneck.rate;
    job.number = plan.first_number + index;
    job.workers = experiment.topology ? placements[job.number].workers : std::vector<WorkerHosts>(1);
    job.iterations = plan.iterations_of(job.job);
    job.seed = experiment.seed;
    job.augmentation = augmentation_of(policy_named(plan.policy), experiment, job.job);
    job.slow_start = !cc::find_algorithm(job.job.cc.empty() ? experiment.cc : job.job.cc).capabilities.rate_based;
    work.push_back(work_of(job.job, experiment, false));
    total += job.iterations * work.back();
    first_start = std::min(first_start, job.job.start);
    names[job.number] = job.job.name;
    if (!plan.slots.empty()) job.plan = plan.slots[index];
    jobs.emplace_back(cluster, cluster.add_job(std::move(job)));
  }
  std::vector<RunningJob*> running;
  running.reserve(jobs.size());
  for (ClusterJob& job : jobs) running.push_back(&job);

  // Who used them when is kept for the links that jobs share; if there are none, for all in use.
  const std::vector<FlowFabric::Link>& links = cluster.fabric().links;
  const auto used_by = [&](std::size_t least) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t link = 0; link < links.size(); ++link)
      if (cluster.jobs_on(link) >= least) found.push_back(link);
    return found;
  };
  std::vector<std::uint32_t> metered = used_by(2);
  if (metered.empty()) metered = used_by(1);
  std::map<std::uint32_t, fabric::UsageMeter> meters;
  const Nanos bin = plan.usage_bin.count > 0 ? plan.usage_bin : experiment.topology ? Nanos(100'000) : Nanos(1'000'000);
  for (const std::uint32_t link : metered) {
    const auto at = meters.try_emplace(link, bin, experiment.topology ? topology_usage_bins : usage_bins).first;
    cluster.meter(link, &at->second);
  }

  double recorded = 0;
  double told = 0;
  cluster.on_iteration([&](FlowLevelCluster::JobId job, const FlowLevelCluster::Iteration& iteration) {
    recorded += work[job];
    if (iteration.last) --unfinished;
    if (!tick || recorded / total < told) return;
    tick(recorded / total);
    told += 0.01;
  });
  if (plan.between) plan.between(running, Nanos(0), Nanos(0));
  while (!cluster.run(plan.between ? cluster.now() + plan.slice : Nanos::never(), [&] { return unfinished == 0; }))
    if (plan.between) plan.between(running, Nanos(0), cluster.now());

  Run run;
  run.policy = plan.policy;
  run.cc = experiment.cc;
  run.cc_parameters = changed_parameters(experiment);
  run.datapath = "flow";
  run.seed = experiment.seed;
  run.duration = cluster.now() - first_start;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    run.jobs.push_back(cluster.result(index));
    run.jobs.back().cc = plan.jobs[index].cc;
    run.jobs.back().unaware = plan.jobs[index].unaware;
  }

  const fabric::LinkCounters none;
  std::vector<fabric::LinkConfig> configs(links.size());
  std::vector<JobNetwork::LinkView> views;
  std::vector<Carried> carried;
  for (std::uint32_t link = 0; link < links.size(); ++link) {
    configs[link].rate = links[link].rate;
    const auto meter = meters.find(link);
    views.push_back({links[link].name, &configs[link], &none, meter == meters.end() ? nullptr : &meter->second});
    carried.push_back({static_cast<Bytes>(std::llround(cluster.use(link).wire_bytes)), cluster.jobs_on(link)});
  }
  const auto contend = [&](std::size_t link, auto& result) {
    const sim::FlowNetwork::LinkUse use = cluster.use(static_cast<std::uint32_t>(link));
    result.contended = use.contended;
    result.contended_bytes = static_cast<Bytes>(std::llround(use.contended_wire_bytes));
  };
  contend(record_links(views, Nanos(0), names, run, carried), run.bottleneck);
  for (std::size_t link = 0; link < run.links.size(); ++link) contend(link, run.links[link]);
  if (plan.finished) plan.finished(views, Nanos(0));
  return run;
}

}  // namespace mltcp::experiment
