// Jobs at flow level (see flow_level.h).
#include "mltcp/lab/experiment/backends/flow_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/internal/flow_ranks.h"
#include "mltcp/lab/experiment/engine/iteration_engine.h"
#include "mltcp/lab/sim/event_queue.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using Network = sim::FlowNetwork;

}  // namespace

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

  JobId add_job(JobSpec spec);
  void remove(JobId id);
  PlanState set_plan(JobId id, const PhasePlan& plan);
  void clear_plan(JobId id);
  GateStats gate_stats(JobId id) {
    const FlowRanks* const ranks = ranks_of(id);
    return ranks != nullptr ? ranks->gate_stats() : job(id).gate.stats();
  }
  JobResult result(JobId id);
  std::size_t recorded(JobId id) {
    const FlowRanks* const ranks = ranks_of(id);
    return ranks != nullptr ? ranks->recorded() : job(id).engine.recorded();
  }
  bool done(JobId id) {
    const FlowRanks* const ranks = ranks_of(id);
    return ranks != nullptr ? ranks->done() : job(id).engine.done();
  }

  bool run(Nanos until, const std::function<bool()>& stop);

  const FlowFabric& fabric() const { return fabric_; }
  Network& network() { return network_; }
  std::size_t jobs() const { return alive_; }
  std::size_t jobs_on(std::uint32_t link) const { return jobs_on_[link]; }

  void record(SeriesRecorder& recorder);
  void finish_record();

  OnIteration on_iteration;

 private:
  /// Connections of a worker that share a path.
  struct Flow {
    Network::FlowId id = 0;
    std::vector<std::uint32_t> connections;
    double rate = 0;  ///< bytes per nanosecond that the path carries
    Nanos round_trip;
    Nanos last_end = Nanos(std::numeric_limits<std::int64_t>::min() / 2);
    Bytes finished = 0;  ///< bytes of all transfers that are over
  };
  struct Worker {
    Network::GroupId group = 0;
    std::vector<Flow> flows;
    std::optional<Network::LinkId> limit;  ///< of its rate, where a link doesn't bound it already
    Rate unlimited;
  };
  /// What an operation of a job sends.
  struct Transfer {
    Bytes undelivered = 0;  ///< all workers together
    Nanos delivered;        ///< the latest of what is delivered
  };
  struct Job final : IterationEngine::Carrier {
    Job(State& cluster, JobSpec given)
        : all(cluster),
          spec(std::move(given)),
          program(workload::phase_program(spec.job)),
          engine(program, spec.job, {.iterations = spec.iterations, .seed = spec.seed, .stream = spec.number}),
          slow_start(!cc::find_algorithm(spec.connection.congestion_control).capabilities.rate_based),
          transfers(program.operations.size()) {}
    void begin_iteration(Nanos /*now*/) override { all.begin_iteration(*this); }
    void begin(std::uint32_t operation, Nanos /*now*/) override {
      if (program.operations[operation].bytes == 0) return engine.finish(operation);
      transfers[operation] = {program.operations[operation].bytes * workers.size(), {}};
      held.push_back(operation);
      all.ask_gate(*this);
    }

    State& all;
    const JobSpec spec;
    const workload::RankProgram program;
    IterationEngine engine;
    const bool slow_start;  ///< its bursts begin with it; other algorithms begin at their rate
    std::vector<Worker> workers;
    PhaseGate gate;
    std::vector<Transfer> transfers;    ///< by operation
    std::vector<std::uint32_t> held;    ///< operations that wait for the gate
    Nanos gate_opens = Nanos::never();  ///< if some wait for that
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
  /// Of a job with programs; null for others.
  [[nodiscard]] FlowRanks* ranks_of(JobId id) { return id < ranked_.size() ? ranked_[id].get() : nullptr; }
  JobId add_ranks(JobSpec spec);
  void advance_ranks(JobId id);
  void add_workers(JobId id, Job& job);
  /// By worker. Throws InputError for paths that can't be.
  [[nodiscard]] std::vector<std::vector<FlowPath>> routes_of(const JobSpec& spec) const;
  /// What a byte of the job takes of each link that its data uses: acknowledgements are paid for by its data on the
  /// same link.
  [[nodiscard]] std::map<std::uint32_t, double> costs_of(const std::vector<std::vector<FlowPath>>& routes) const;
  [[nodiscard]] double header_cost() const {
    return static_cast<double>(frame_bytes(fabric_.mtu)) / payload_bytes(fabric_.mtu);
  }
  /// Gives the worker a link of its own for its rate, where its uplink doesn't bound it already.
  void limit(Worker& worker, const std::vector<FlowPath>& paths, Rate lowest);
  void schedule(JobId id, const Job& job) { timers_.set(id, std::min(job.engine.wake(), job.gate_opens)); }
  void on_finished(const Network::Finished& finished);
  void advance(JobId id);
  void begin_iteration(Job& of);
  /// Records what is due up to `time`, until which nothing happens.
  void sample_until(Nanos time);
  void read_states(Nanos at);
  /// Sends what the gate lets go.
  void ask_gate(Job& of);
  void send(Job& of, std::uint32_t operation);
  Nanos slow_start(const Job& of, const Flow& flow, Bytes bytes, Rate limit) const;

  FlowFabric fabric_;
  FlowLevelOptions options_;
  Network network_;
  sim::EventQueue timers_;  // by job
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<FlowRanks>> ranked_;  ///< likewise; a job is in one of the two
  std::size_t alive_ = 0;
  std::vector<std::size_t> jobs_on_;
  std::vector<Owner> owners_;                  // by flow of the network
  std::vector<Network::LinkId> spare_limits_;  // of jobs that are gone
  std::vector<Network::Finished> finished_;
  SeriesRecorder* recorder_ = nullptr;
  std::vector<const Job*> recorded_;  // jobs, each flow of which is recorded
};

FlowLevelCluster::JobId FlowLevelCluster::State::add_job(JobSpec spec) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("job \"{}\": {}", spec.job.name, why));
  };
  if (spec.workers.empty()) refuse("it has no workers; give it at least one");
  if (spec.job.flows == 0) refuse("it has no flows; give it at least one");
  if (spec.job.bytes_per_iteration() == 0) refuse("it sends nothing; give it a phase that communicates");
  if (spec.job.ranked()) return add_ranks(std::move(spec));
  auto made = std::make_unique<Job>(*this, std::move(spec));
  const auto id = static_cast<JobId>(jobs_.size());
  add_workers(id, *made);
  made->engine.start(std::max(network_.now(), made->spec.job.start));
  jobs_.push_back(std::move(made));
  ranked_.emplace_back();
  timers_.add(id);
  schedule(id, *jobs_[id]);
  ++alive_;
  return id;
}

FlowLevelCluster::JobId FlowLevelCluster::State::add_ranks(JobSpec spec) {
  const Nanos start = spec.job.start;
  auto made = std::make_unique<FlowRanks>(network_, fabric_, options_.burst_latency, std::move(spec));
  const auto id = static_cast<JobId>(jobs_.size());
  for (const std::uint32_t link : made->links()) ++jobs_on_[link];
  const std::vector<Network::FlowId> flows = made->flows();
  for (std::uint32_t channel = 0; channel < flows.size(); ++channel) {
    if (owners_.size() <= flows[channel]) owners_.resize(flows[channel] + 1);
    owners_[flows[channel]] = {id, 0, channel};
  }
  made->start(std::max(network_.now(), start));
  jobs_.emplace_back();
  ranked_.push_back(std::move(made));
  timers_.add(id);
  timers_.set(id, ranked_[id]->wake());
  ++alive_;
  return id;
}

void FlowLevelCluster::State::advance_ranks(JobId id) {
  FlowRanks& at = *ranked_[id];
  struct Ended {
    std::uint32_t iteration;
    Nanos start;
    Nanos length;
  };
  std::vector<Ended> ended;  // told behind it: whoever is told may remove the job
  at.advance([&](std::uint32_t iteration, Nanos start, Nanos length) { ended.push_back({iteration, start, length}); });
  const bool done = at.done();
  timers_.set(id, at.wake());
  for (std::size_t i = 0; i < ended.size() && on_iteration; ++i)
    on_iteration(id, {ended[i].iteration, ended[i].start, ended[i].length, done && i + 1 == ended.size()});
}

std::vector<std::vector<FlowPath>> FlowLevelCluster::State::routes_of(const JobSpec& spec) const {
  std::vector<std::vector<FlowPath>> routes;
  for (std::uint32_t worker = 0; worker < spec.workers.size(); ++worker) {
    routes.push_back(fabric_.route(spec, worker));
    if (routes.back().size() != spec.job.flows)
      throw InputError(fmt::format("job \"{}\": worker {} has {} paths for {} flows; give one for each", spec.job.name,
                                   worker, routes.back().size(), spec.job.flows));
    for (const FlowPath& path : routes.back()) {
      for (const std::uint32_t link : path.data)
        if (link >= fabric_.links.size())
          throw InputError(fmt::format("job \"{}\": a path has link {}; the network has {}", spec.job.name, link,
                                       fabric_.links.size()));
      if (path.data.empty())
        throw InputError(fmt::format("job \"{}\": a path has no links; name at least one", spec.job.name));
    }
  }
  return routes;
}

std::map<std::uint32_t, double> FlowLevelCluster::State::costs_of(
    const std::vector<std::vector<FlowPath>>& routes) const {
  struct Load {
    std::size_t data = 0;
    std::size_t acknowledgements = 0;
  };
  std::map<std::uint32_t, Load> loads;
  for (const std::vector<FlowPath>& paths : routes)
    for (const FlowPath& path : paths) {
      for (const std::uint32_t link : path.data) ++loads[link].data;
      for (const std::uint32_t link : path.acknowledgements) ++loads[link].acknowledgements;
    }
  const double acknowledgement_cost =
      static_cast<double>(kAcknowledgementBytes) / (ConnectionConfig{}.ack_every * payload_bytes(fabric_.mtu));
  std::map<std::uint32_t, double> costs;
  for (const auto& [link, load] : loads)
    if (load.data > 0)
      costs[link] = header_cost() +
                    acknowledgement_cost * static_cast<double>(load.acknowledgements) / static_cast<double>(load.data);
  return costs;
}

void FlowLevelCluster::State::limit(Worker& worker, const std::vector<FlowPath>& paths, Rate lowest) {
  bool one_uplink = true;
  for (const FlowPath& path : paths) {
    one_uplink &= path.data.front() == paths.front().data.front();
    worker.unlimited = std::max(worker.unlimited, fabric_.links[path.data.front()].rate);
  }
  if (lowest.is_zero() || (one_uplink && lowest >= worker.unlimited)) return;
  if (spare_limits_.empty()) spare_limits_.push_back(network_.add_link(lowest));
  worker.limit = spare_limits_.back();
  spare_limits_.pop_back();
}

void FlowLevelCluster::State::add_workers(JobId id, Job& job) {
  const JobSpec& spec = job.spec;
  const std::vector<std::vector<FlowPath>> routes = routes_of(spec);
  const std::map<std::uint32_t, double> costs = costs_of(routes);
  for (const auto& [link, cost] : costs) ++jobs_on_[link];

  Rate lowest;  // of what limits a phase; 0: nothing does
  for (const workload::Phase& phase : spec.job.phases)
    for (const Rate rate : {phase.rate, spec.job.rate})
      if (phase.kind == workload::Phase::Kind::communicate && !rate.is_zero())
        lowest = lowest.is_zero() ? rate : std::min(lowest, rate);
  for (std::uint32_t number = 0; number < spec.workers.size(); ++number) {
    Worker& worker = job.workers.emplace_back();
    worker.group = network_.add_group(spec.number, spec.augmentation);
    limit(worker, routes[number], lowest);
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
        hops.push_back({link, costs.at(link)});
        flow.rate = std::min(flow.rate, static_cast<double>(fabric_.links[link].rate.bits_per_second) / 8e9 /
                                            hops.back().wire_bytes_per_byte);
      }
      if (worker.limit) hops.push_back({*worker.limit, header_cost()});
      flow.id = network_.add_flow(worker.group, hops, static_cast<std::uint32_t>(flow.connections.size()));
      if (owners_.size() <= flow.id) owners_.resize(flow.id + 1);
      owners_[flow.id] = {id, number, static_cast<std::uint32_t>(index)};
    }
  }
}

void FlowLevelCluster::State::remove(JobId id) {
  if (ranks_of(id) != nullptr) {
    timers_.set(id, Nanos::never());
    ranked_[id].reset();
    --alive_;
    return;
  }
  for (const Worker& worker : job(id).workers) {
    network_.remove_group(worker.group);
    if (worker.limit) spare_limits_.push_back(*worker.limit);
  }
  timers_.set(id, Nanos::never());
  jobs_[id].reset();
  --alive_;
}

PlanState FlowLevelCluster::State::set_plan(JobId id, const PhasePlan& plan) {
  if (FlowRanks* const ranks = ranks_of(id)) {
    const PlanState state = ranks->set_plan(plan);
    timers_.set(id, ranks->wake());
    return state;
  }
  Job& held = job(id);
  const PlanState state = held.gate.set(plan, network_.now());
  ask_gate(held);
  schedule(id, held);
  return state;
}

void FlowLevelCluster::State::clear_plan(JobId id) {
  if (FlowRanks* const ranks = ranks_of(id)) {
    ranks->clear_plan();
    timers_.set(id, ranks->wake());
    return;
  }
  Job& held = job(id);
  if (held.gate.stats().state != PlanState::active) return;
  held.gate.clear(PlanState::removed, network_.now());
  ask_gate(held);
  schedule(id, held);
}

JobResult FlowLevelCluster::State::result(JobId id) {
  if (const FlowRanks* const ranks = ranks_of(id)) return ranks->result();
  const Job& of = job(id);
  JobResult result;
  result.name = of.spec.job.name;
  result.iterations = of.engine.times();
  result.starts = of.engine.starts();
  result.bytes = of.delivered;
  const GateStats& gate = of.engine.done() ? of.gate_in_the_end : of.gate.stats();
  result.gate_waited = gate.waited;
  result.gate_corrections = gate.corrections;
  if (gate.state != PlanState::none && gate.state != PlanState::active) result.plan_dropped = to_text(gate.state);
  result.iteration_compute = of.engine.computes();
  result.compute = of.spec.job.compute_per_iteration();
  result.bytes_per_iteration = of.spec.job.bytes_per_iteration() * of.workers.size();
  return result;
}

bool FlowLevelCluster::State::run(Nanos until, const std::function<bool()>& stop) {
  for (;;) {
    const Nanos next = std::min(network_.next_event(), timers_.empty() ? Nanos::never() : timers_.time());
    if (recorder_ != nullptr) [[unlikely]]
      sample_until(std::min(next, until));
    if (next > until || next.is_never()) break;
    network_.advance(std::max(next, network_.now()));
    finished_.assign(network_.finished().begin(), network_.finished().end());
    for (const Network::Finished& finished : finished_) on_finished(finished);
    while (!timers_.empty() && timers_.time() <= network_.now()) {
      const JobId id = timers_.source();
      timers_.set(id, Nanos::never());
      if (ranks_of(id) != nullptr)
        advance_ranks(id);
      else
        advance(id);
    }
    if (stop && stop()) return true;
  }
  if (!until.is_never()) network_.advance(std::max(until, network_.now()));
  return false;
}

void FlowLevelCluster::State::record(SeriesRecorder& recorder) {
  std::vector<SeriesConnection> connections;
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (!job) continue;
    recorded_.push_back(job.get());
    for (std::uint32_t worker = 0; worker < job->workers.size(); ++worker)
      for (std::uint32_t flow = 0; flow < job->workers[worker].flows.size(); ++flow)
        connections.push_back({job->spec.job.name, worker, worker, flow});
  }
  std::vector<SeriesLink> links;
  for (const FlowFabric::Link& link : fabric_.links) links.push_back({link.name, link.rate});
  recorder.begin(network_.now(), std::move(connections), std::move(links));
  recorder_ = &recorder;
}

void FlowLevelCluster::State::read_states(Nanos at) {
  const SeriesRecorder::States states = recorder_->states();
  auto state = states.connections.begin();
  for (const Job* job : recorded_)
    for (const Worker& worker : job->workers)
      for (const Flow& flow : worker.flows) {
        state->gain = network_.gain(worker.group);
        state->bytes_ratio = network_.bytes_ratio_at(worker.group, at);
        state->iteration = job->engine.running() ? static_cast<std::int64_t>(job->engine.iteration()) : -1;
        // Rounded sums may step back by a byte, and totals don't.
        state->sent_bytes =
            std::max(state->sent_bytes, flow.finished + static_cast<Bytes>(network_.sent_at(flow.id, at)));
        ++state;
      }
  for (std::uint32_t link = 0; link < states.links.size(); ++link)
    states.links[link].sent_bytes =
        std::max(states.links[link].sent_bytes, static_cast<Bytes>(network_.wire_bytes_at(link, at)));
}

void FlowLevelCluster::State::sample_until(Nanos time) {
  if (time.is_never()) return;
  while (recorder_->next() <= time) {
    read_states(recorder_->next());
    recorder_->sample();
  }
}

void FlowLevelCluster::State::finish_record() {
  read_states(network_.now());
  recorder_->finish(network_.now());
}

void FlowLevelCluster::State::on_finished(const Network::Finished& finished) {
  const Owner& owner = owners_[finished.flow];
  if (FlowRanks* const ranks = ranks_of(owner.job)) {
    ranks->on_finished(owner.flow, finished);
    timers_.set(owner.job, ranks->wake());
    return;
  }
  Job& of = *jobs_[owner.job];
  Flow& flow = of.workers[owner.worker].flows[owner.flow];
  flow.last_end = network_.now();
  flow.finished += finished.bytes;
  Transfer& transfer = of.transfers[finished.tag];
  transfer.undelivered -= finished.bytes;
  transfer.delivered = std::max(transfer.delivered, network_.now() + options_.burst_latency.value_or(flow.round_trip));
  if (!of.engine.done()) of.delivered += finished.bytes;
  if (transfer.undelivered > 0) return;
  of.engine.finish(static_cast<std::uint32_t>(finished.tag), network_.now(), transfer.delivered);
  timers_.set(owner.job, network_.now());
}

/// Moves the job on as far as possible.
void FlowLevelCluster::State::advance(JobId id) {
  const Nanos now = network_.now();
  Job& at = *jobs_[id];
  if (at.gate_opens <= now) ask_gate(at);
  for (;;) {
    const IterationEngine::Step step = at.engine.advance(now, at);
    if (step == IterationEngine::Step::waiting || step == IterationEngine::Step::advanced) return schedule(id, at);
    if (step == IterationEngine::Step::unrecorded) continue;
    const bool last = at.engine.done();
    if (last) at.gate_in_the_end = at.gate.stats();
    if (!on_iteration) continue;
    on_iteration(id, {static_cast<std::uint32_t>(at.engine.recorded() - 1), at.engine.iteration_start(),
                      at.engine.times().back(), last});
    if (!jobs_[id]) return;
  }
}

void FlowLevelCluster::State::begin_iteration(Job& of) {
  of.gate.begin_iteration();
  for (const Worker& worker : of.workers) network_.begin_iteration(worker.group, of.spec.job.bytes_per_iteration());
}

void FlowLevelCluster::State::ask_gate(Job& of) {
  of.gate_opens = Nanos::never();
  if (of.held.empty()) return;
  const Nanos opens = of.gate.opens_at(network_.now());
  if (opens > network_.now()) {
    of.gate_opens = opens;
    return;
  }
  for (const std::uint32_t operation : of.held) send(of, operation);
  of.held.clear();
}

void FlowLevelCluster::State::send(Job& of, std::uint32_t number) {
  const workload::Operation& operation = of.program.operations[number];
  Rate limit = of.spec.job.rate;
  if (limit.is_zero() || (!operation.rate.is_zero() && operation.rate < limit)) limit = operation.rate;
  const Bytes share = operation.bytes / of.spec.job.flows;
  const Bytes left_over = operation.bytes % of.spec.job.flows;
  for (Worker& worker : of.workers) {
    if (worker.limit) network_.set_rate(*worker.limit, limit.is_zero() ? worker.unlimited : limit);
    for (Flow& flow : worker.flows) {
      Bytes bytes = 0;
      for (const std::uint32_t connection : flow.connections) bytes += share + (connection < left_over ? 1 : 0);
      if (bytes == 0) continue;
      network_.send(flow.id, bytes, number, network_.now() + slow_start(of, flow, bytes, limit));
    }
  }
}

/// What a burst of `bytes` that begins now loses in slow start.
Nanos FlowLevelCluster::State::slow_start(const Job& of, const Flow& flow, Bytes bytes, Rate limit) const {
  if (options_.burst_latency || !of.slow_start) return {};
  if (!network_.idle(flow.id) || !restarts_after(network_.now() - flow.last_end, flow.round_trip)) return {};
  return slow_start_loss({flow.rate, flow.round_trip, flow.connections.size(), bytes, limit}, fabric_.mtu);
}

FlowLevelCluster::FlowLevelCluster(FlowFabric fabric, const FlowLevelOptions& options)
    : state_(std::make_unique<State>(std::move(fabric), options)) {}
FlowLevelCluster::~FlowLevelCluster() = default;

FlowLevelCluster::JobId FlowLevelCluster::add_job(JobSpec spec) { return state_->add_job(std::move(spec)); }
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
void FlowLevelCluster::record(SeriesRecorder& recorder) { state_->record(recorder); }
void FlowLevelCluster::finish_record() { state_->finish_record(); }
const sim::FlowNetwork::Counters& FlowLevelCluster::counters() const { return state_->network().counters(); }

}  // namespace mltcp::experiment
