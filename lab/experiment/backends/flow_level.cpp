// Jobs at flow level (see flow_level.h).
#include "mltcp/lab/experiment/backends/flow_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/sim/event_queue.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using Network = sim::FlowNetwork;
using workload::Operation;

constexpr std::uint32_t kIpUdpBytes = encap::kIpv4Bytes + encap::kUdpBytes;
constexpr double kInitialWindowPackets = 10;  // initial congestion window (RFC 6928)

/// Returns the number of application bytes in a full packet.
double payload_bytes(std::uint32_t mtu) {
  return static_cast<double>(mtu - kIpUdpBytes - wire::kHeaderBytes - wire::kDataFrameBytes);
}

/// Returns whether a connection restarts in slow start after it was idle for `silence`.
bool restarts_after(Nanos silence, Nanos round_trip) {
  // Compares with a probe timeout (RFC 9002 section 6.2.1) for round-trip times that do not vary.
  static const ConnectionConfig config;
  return silence > round_trip + config.timer_granularity + config.max_ack_delay;
}

}  // namespace

class FlowLevelCluster::State {
  struct FlowJob;

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
  FlowJob& job(JobId id) {
    if (id >= jobs_.size() || !jobs_[id]) throw InputError(fmt::format("there is no job {} in the cluster", id));
    return *jobs_[id];
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
  /// Those connections of a channel that use the same path.
  struct Flow {
    Network::FlowId id = 0;
    /// Connection numbers; empty if all connections of the channel use this path.
    std::vector<std::uint32_t> connections;
    double rate = 0;  ///< capacity of the path in application bytes per nanosecond
    Nanos round_trip;
    Nanos last_end = Nanos(std::numeric_limits<std::int64_t>::min() / 2);
    Bytes finished = 0;  ///< bytes of all finished transfers
  };
  struct Team;
  /// Traffic from a worker to its receiver, or from one rank to another rank.
  struct Channel {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Team* team = nullptr;      ///< the sender's team
    std::uint32_t member = 0;  ///< index of the sender in `team->members`
    std::vector<Flow> flows;
    std::uint32_t among = 0;  ///< index of this channel in the sender's Member::channels
    /// The receiving rank's receive operations, in order; empty for a worker's receiver.
    std::vector<std::uint32_t> receives;
    std::size_t next = 0;         ///< index of the next send in this iteration
    std::uint64_t arrived = 0;    ///< number of messages received in all iterations
    std::vector<Nanos> arrivals;  ///< ring buffer with the arrival times of messages, for two iterations
  };
  /// A worker or a rank. Each member has its own progress for MLTCP.
  struct Member {
    Network::GroupId group = 0;
    std::vector<std::uint32_t> channels;  ///< channels on which this member sends
    /// An artificial link that limits this member's rate; empty if no such limit is needed.
    std::optional<Network::LinkId> limit;
    Rate unlimited;
  };
  /// Progress of an operation that sends data.
  struct Transfer {
    Bytes undelivered = 0;  ///< undelivered bytes of all members together
    Nanos delivered;        ///< time at which the latest part was delivered
  };
  /// A group of members with common iterations: a single rank, or all workers of a job without a pattern.
  struct Team final : Iterations, IterationEngine::Carrier {
    Team(State& cluster, FlowJob& its_job, std::uint32_t its_timer, std::optional<std::uint32_t> rank)
        : Iterations(its_job.spec, rank),
          all(cluster),
          job_of(its_job),
          timer(its_timer),
          members(rank ? 1 : its_job.spec.workers.size()),
          transfers(rank ? 0 : program.operations.size()),
          channel_of(rank ? program.operations.size() : 0),
          place(channel_of.size()) {}
    void begin_iteration(Nanos /*now*/) override {
      gate.begin_iteration();
      for (const Member& member : members) {
        all.network_.begin_iteration(member.group, load.sent);
        for (const std::uint32_t channel : member.channels) job_of.channels[channel].next = 0;
      }
    }
    void begin(std::uint32_t operation, Nanos now) override;

    State& all;
    FlowJob& job_of;
    const std::uint32_t timer;
    std::vector<Member> members;
    PhaseGate gate;
    /// By operation; empty for a rank, because each operation of a rank sends on one flow only.
    std::vector<Transfer> transfers;
    /// For each index in Member::channels: the send operations on this channel, in order.
    std::vector<std::vector<std::uint32_t>> sends;
    std::vector<std::uint32_t> channel_of;  ///< if the team is a rank: channel of each operation
    /// If the team is a rank: index of each operation among the channel's sends or receives.
    std::vector<std::uint32_t> place;
    Nanos gate_opens = Nanos::never();  ///< time from which held sends may start; never() if no send is held
    GateStats gate_in_the_end;          ///< statistics of the gate at the end of the last iteration to record
  };
  struct FlowJob final : RunningJob {
    FlowJob(State& cluster, JobSpec given)
        : all(cluster),
          spec(std::move(given)),
          slow_start(!cc::find_algorithm(spec.connection.congestion_control).capabilities.rate_based) {}
    PlanState set_plan(const PhasePlan& plan) override;
    void clear_plan() override;
    [[nodiscard]] PlanState plan_state() const override;
    [[nodiscard]] Nanos adrift_since() const override;
    [[nodiscard]] bool done() const override { return spec.iterations > 0 && recorded_iterations >= spec.iterations; }
    [[nodiscard]] std::size_t recorded() const override { return recorded_iterations; }
    [[nodiscard]] JobResult result() const override;

    State& all;
    const JobSpec spec;
    /// Whether bursts begin with slow start. False for rate-based algorithms, whose bursts begin at the algorithm's
    /// rate.
    const bool slow_start;
    std::vector<std::unique_ptr<Team>> teams;
    std::vector<Channel> channels;
    std::size_t recorded_iterations = 0;  ///< number of iterations that all teams have recorded
    std::size_t behind = 0;  ///< number of teams that have not yet recorded iteration `recorded_iterations`
  };
  struct Owner {  // the owner of a flow in `network_`
    JobId job = 0;
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
  };

  using Paths = std::vector<std::vector<FlowPath>>;
  static std::uint32_t connections_of(const FlowJob& job, const Flow& flow) {
    return flow.connections.empty() ? job.spec.job.flows : static_cast<std::uint32_t>(flow.connections.size());
  }
  static void add_channels(FlowJob& job);
  /// Returns the paths of a job's connections, indexed by channel and connection. Channels of ranks have one path.
  /// Throws InputError for invalid paths.
  [[nodiscard]] Paths paths_of(const FlowJob& job) const;
  /// Returns the wire bytes per application byte, for each link that the job's data uses. Includes the job's
  /// acknowledgements on this link.
  [[nodiscard]] std::map<std::uint32_t, double> costs_of(const FlowJob& job, const Paths& paths) const;
  [[nodiscard]] double header_cost() const {
    return static_cast<double>(frame_bytes(fabric_.mtu)) / payload_bytes(fabric_.mtu);
  }
  /// If the member's uplink does not enforce the job's rate limit, adds an artificial link that enforces the limit.
  void limit(const Team& team, Member& member, const Paths& paths);
  void add_flows(JobId id, FlowJob& job, const Paths& paths);
  void schedule(const Team& team) { timers_.set(team.timer, std::min(team.engine.wake(), team.gate_opens)); }
  void on_finished(const Network::Finished& finished);
  void advance(JobId id, Team& team);
  /// Reports iterations that all teams have recorded. Returns false if a callback has removed the job.
  bool tell(JobId id);
  /// Records the samples due up to `time`. No event may be pending before `time`.
  void sample_until(Nanos time);
  void read_states(Nanos at);
  /// Starts those pending sends that the gate does not hold.
  void post(Team& team);
  void post(Team& team, const Member& member, Channel& channel);
  void send(const Team& team, const Member& member, Channel& channel, std::uint32_t number);
  /// Returns the time that a burst of `bytes` loses in slow start if it begins now (see flow_level.h). `limit` is the
  /// sender's rate limit; 0 if unlimited.
  [[nodiscard]] Nanos slow_start(const FlowJob& of, const Flow& flow, Bytes bytes, Rate limit) const;

  FlowFabric fabric_;
  FlowLevelOptions options_;
  Network network_;
  sim::EventQueue timers_;                              // one timer per team
  std::vector<std::pair<JobId, std::uint32_t>> teams_;  // by timer: the job, and the team's index in the job
  std::vector<std::unique_ptr<FlowJob>> jobs_;
  std::size_t alive_ = 0;
  std::vector<std::size_t> jobs_on_;
  std::vector<Owner> owners_;                  // owner of each flow, by flow number in `network_`
  std::vector<Network::LinkId> spare_limits_;  // artificial links of removed jobs, for reuse
  std::vector<Network::Finished> finished_;
  SeriesRecorder* recorder_ = nullptr;
  std::vector<const FlowJob*> recorded_;  // the jobs whose flows are recorded
};

// ---- Set-up ----

FlowLevelCluster::JobId FlowLevelCluster::State::add_job(JobSpec spec) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("job \"{}\": {}", spec.job.name, why));
  };
  if (spec.workers.empty()) refuse("it has no workers; give it at least one");
  if (spec.job.flows == 0) refuse("it has no flows; give it at least one");
  if (spec.job.bytes_per_iteration() == 0) refuse("it sends nothing; give it a phase that communicates");
  if (spec.job.ranked() && (!fabric_.between || spec.workers.size() != workload::ranks_of(spec.job)))
    refuse("its ranks need hosts of their own at flow level; give a topology");
  auto made = std::make_unique<FlowJob>(*this, std::move(spec));
  FlowJob& added = *made;
  const auto id = static_cast<JobId>(jobs_.size());
  auto timer = static_cast<std::uint32_t>(teams_.size());
  const auto add_team = [&](std::optional<std::uint32_t> rank) {
    added.teams.push_back(std::make_unique<Team>(*this, added, timer++, rank));
  };
  if (added.spec.job.ranked())
    for (std::uint32_t rank = 0; rank < added.spec.workers.size(); ++rank) add_team(rank);
  else
    add_team({});
  add_channels(added);
  add_flows(id, added, paths_of(added));
  added.behind = added.teams.size();
  jobs_.push_back(std::move(made));
  ++alive_;
  for (const auto& team : added.teams) {
    timers_.add(team->timer);
    teams_.emplace_back(id, team->timer - added.teams.front()->timer);
    team->engine.start(std::max(network_.now(), added.spec.job.start));
    schedule(*team);
  }
  return id;
}

void FlowLevelCluster::State::add_channels(FlowJob& job) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;  // channel number by (from, to)
  const auto channel_between = [&](std::uint32_t from, std::uint32_t to) {
    const auto [at, is_new] = numbers.try_emplace({from, to}, static_cast<std::uint32_t>(job.channels.size()));
    if (is_new) {
      Channel& channel = job.channels.emplace_back();
      channel.from = from;
      channel.to = to;
      const bool ranked = job.spec.job.ranked();
      channel.team = job.teams[ranked ? from : 0].get();
      channel.member = ranked ? 0 : from;
      std::vector<std::uint32_t>& own = channel.team->members[channel.member].channels;
      channel.among = static_cast<std::uint32_t>(own.size());
      own.push_back(at->second);
      channel.team->sends.resize(std::max(channel.team->sends.size(), own.size()));
    }
    return at->second;
  };
  if (!job.spec.job.ranked()) {
    Team& team = *job.teams.front();
    for (std::uint32_t worker = 0; worker < team.members.size(); ++worker) channel_between(worker, worker);
    for (std::uint32_t i = 0; i < team.program.operations.size(); ++i)
      if (team.program.operations[i].communicates()) team.sends.front().push_back(i);
    return;
  }
  for (std::uint32_t rank = 0; rank < job.teams.size(); ++rank) {
    Team& team = *job.teams[rank];
    for (std::uint32_t i = 0; i < team.program.operations.size(); ++i) {
      const Operation& operation = team.program.operations[i];
      if (!operation.communicates()) continue;
      const bool sends = operation.kind == Operation::Kind::send;
      const std::uint32_t number =
          sends ? channel_between(rank, operation.peer) : channel_between(operation.peer, rank);
      Channel& channel = job.channels[number];
      std::vector<std::uint32_t>& list = sends ? team.sends[channel.among] : channel.receives;
      team.channel_of[i] = number;
      team.place[i] = static_cast<std::uint32_t>(list.size());
      list.push_back(i);
    }
  }
  for (Channel& channel : job.channels) {
    const std::size_t sends = channel.team->sends[channel.among].size();
    if (sends != channel.receives.size())
      throw InputError(fmt::format(
          "job \"{}\": rank {} sends rank {} {} messages, but that rank receives {}; give programs that match",
          job.spec.job.name, channel.from, channel.to, sends, channel.receives.size()));
    channel.arrivals.resize(2 * channel.receives.size());
  }
}

FlowLevelCluster::State::Paths FlowLevelCluster::State::paths_of(const FlowJob& job) const {
  Paths all;
  all.reserve(job.channels.size());
  for (const Channel& channel : job.channels) {
    const bool ranked = job.spec.job.ranked();
    const std::vector<FlowPath>& paths =
        all.emplace_back(ranked ? std::vector{fabric_.between(job.spec, channel.from, channel.to)}
                                : fabric_.route(job.spec, channel.from));
    if (!ranked && paths.size() != job.spec.job.flows)
      throw InputError(fmt::format("job \"{}\": worker {} has {} paths for {} flows; give one for each",
                                   job.spec.job.name, channel.from, paths.size(), job.spec.job.flows));
    for (const FlowPath& path : paths) {
      for (const std::uint32_t link : path.data)
        if (link >= fabric_.links.size())
          throw InputError(
              fmt::format("job \"{}\": a path has link {}, but the network has {} links; name links of the network",
                          job.spec.job.name, link, fabric_.links.size()));
      if (path.data.empty())
        throw InputError(fmt::format("job \"{}\": a path has no links; name at least one", job.spec.job.name));
    }
  }
  return all;
}

std::map<std::uint32_t, double> FlowLevelCluster::State::costs_of(const FlowJob& job, const Paths& paths) const {
  struct Load {
    double data = 0;
    double acknowledgements = 0;
  };
  std::map<std::uint32_t, Load> loads;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    double sent = job.spec.job.ranked() ? 0 : 1;  // all workers send the same number of bytes
    if (job.spec.job.ranked())
      for (const std::uint32_t operation : job.channels[i].team->sends[job.channels[i].among])
        sent += static_cast<double>(job.channels[i].team->program.operations[operation].bytes);
    for (const FlowPath& path : paths[i]) {
      for (const std::uint32_t link : path.data) loads[link].data += sent;
      for (const std::uint32_t link : path.acknowledgements) loads[link].acknowledgements += sent;
    }
  }
  const double acknowledgement_cost =
      static_cast<double>(kAcknowledgementBytes) / (ConnectionConfig{}.ack_every * payload_bytes(fabric_.mtu));
  std::map<std::uint32_t, double> costs;
  for (const auto& [link, load] : loads)
    if (load.data > 0) costs[link] = header_cost() + acknowledgement_cost * load.acknowledgements / load.data;
  return costs;
}

void FlowLevelCluster::State::limit(const Team& team, Member& member, const Paths& paths) {
  Rate lowest;  // lowest rate limit of any send; 0 if unlimited
  for (const Operation& operation : team.program.operations)
    for (const Rate rate : {operation.rate, team.job_of.spec.job.rate})
      if (operation.kind == Operation::Kind::send && !rate.is_zero())
        lowest = lowest.is_zero() ? rate : std::min(lowest, rate);
  std::optional<std::uint32_t> uplink;
  bool one_uplink = true;
  for (const std::uint32_t channel : member.channels)
    for (const FlowPath& path : paths[channel]) {
      if (!uplink) uplink = path.data.front();
      one_uplink &= path.data.front() == *uplink;
      member.unlimited = std::max(member.unlimited, fabric_.links[path.data.front()].rate);
    }
  if (!uplink || lowest.is_zero() || (one_uplink && lowest >= member.unlimited)) return;
  if (spare_limits_.empty()) spare_limits_.push_back(network_.add_link(lowest));
  member.limit = spare_limits_.back();
  spare_limits_.pop_back();
}

void FlowLevelCluster::State::add_flows(JobId id, FlowJob& job, const Paths& paths) {
  const std::map<std::uint32_t, double> costs = costs_of(job, paths);
  for (const auto& [link, cost] : costs) ++jobs_on_[link];
  for (const auto& team : job.teams)
    for (Member& member : team->members) {
      member.group = network_.add_group(job.spec.number, job.spec.augmentation);
      limit(*team, member, paths);
    }
  for (std::uint32_t number = 0; number < job.channels.size(); ++number) {
    Channel& channel = job.channels[number];
    const Member& member = channel.team->members[channel.member];
    const std::vector<FlowPath>& own = paths[number];
    const auto path_of = [&](const Flow& flow) -> const std::vector<std::uint32_t>& {
      return own[flow.connections.front()].data;
    };
    for (std::uint32_t connection = 0; connection < own.size(); ++connection) {
      auto flow = std::ranges::find_if(channel.flows,
                                       [&](const Flow& other) { return path_of(other) == own[connection].data; });
      if (flow == channel.flows.end()) flow = channel.flows.emplace(flow);
      flow->connections.push_back(connection);
      flow->round_trip = std::max(flow->round_trip, own[connection].round_trip);
    }
    std::vector<std::uint32_t> order(channel.flows.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, [&](auto a, auto b) { return path_of(channel.flows[a]) < path_of(channel.flows[b]); });
    for (const std::uint32_t index : order) {
      Flow& flow = channel.flows[index];
      const std::vector<std::uint32_t>& path = path_of(flow);
      if (order.size() == 1) flow.connections = {};
      std::vector<Network::Hop> hops;
      flow.rate = std::numeric_limits<double>::infinity();
      for (const std::uint32_t link : path) {
        hops.push_back({link, costs.at(link)});
        flow.rate = std::min(flow.rate, static_cast<double>(fabric_.links[link].rate.bits_per_second) / 8e9 /
                                            hops.back().wire_bytes_per_byte);
      }
      if (member.limit) hops.push_back({*member.limit, header_cost()});
      flow.id = network_.add_flow(member.group, hops, connections_of(job, flow));
      if (owners_.size() <= flow.id) owners_.resize(flow.id + 1);
      owners_[flow.id] = {id, number, index};
    }
  }
}

void FlowLevelCluster::State::remove(JobId id) {
  for (const auto& team : job(id).teams) {
    for (const Member& member : team->members) {
      network_.remove_group(member.group);
      if (member.limit) spare_limits_.push_back(*member.limit);
    }
    timers_.set(team->timer, Nanos::never());
  }
  jobs_[id].reset();
  --alive_;
}

// ---- Plans and results ----

PlanState FlowLevelCluster::State::FlowJob::set_plan(const PhasePlan& plan) {
  Nanos lead = Nanos::never();
  for (const auto& team : teams) lead = std::min(lead, team->lead.value_or(lead));
  PlanState state = PlanState::none;
  for (const auto& team : teams) {
    if (!team->lead) continue;
    PhasePlan own = plan;
    own.slot += *team->lead - lead;
    state = team->gate.set(own, all.network_.now());
    all.post(*team);
    all.schedule(*team);
  }
  return state;
}

void FlowLevelCluster::State::FlowJob::clear_plan() {
  for (const auto& team : teams) {
    if (team->gate.stats().state != PlanState::active) continue;
    team->gate.clear(PlanState::removed, all.network_.now());
    all.post(*team);
    all.schedule(*team);
  }
}

PlanState FlowLevelCluster::State::FlowJob::plan_state() const {
  PlanState state = PlanState::none;
  for (const auto& team : teams) {
    if (!team->lead) continue;
    const PlanState own = team->gate.stats().state;
    if (own == PlanState::misfit || state == PlanState::none) state = own;
  }
  return state;
}

Nanos FlowLevelCluster::State::FlowJob::adrift_since() const {
  Nanos since = Nanos::never();
  for (const auto& team : teams) since = std::min(since, team->gate.stats().adrift_since);
  return since;
}

JobResult FlowLevelCluster::State::FlowJob::result() const {
  std::vector<RankResult> results;
  for (const auto& team : teams) {
    RankResult& result = results.emplace_back(team->result());
    result.bytes_per_iteration *= team->members.size();
    result.gate = team->engine.done() ? team->gate_in_the_end : team->gate.stats();
  }
  JobResult result = merge_ranks(spec.job, results, Nanos(0));
  if (!spec.job.ranked()) result.ranks.clear();
  return result;
}

// ---- Time ----

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
      const std::uint32_t timer = timers_.source();
      timers_.set(timer, Nanos::never());
      const auto [id, number] = teams_[timer];
      advance(id, *jobs_[id]->teams[number]);
    }
    if (stop && stop()) return true;
  }
  if (!until.is_never()) network_.advance(std::max(until, network_.now()));
  return false;
}

void FlowLevelCluster::State::record(SeriesRecorder& recorder) {
  std::vector<SeriesConnection> connections;
  for (const std::unique_ptr<FlowJob>& job : jobs_) {
    if (!job) continue;
    recorded_.push_back(job.get());
    for (const Channel& channel : job->channels)
      for (std::uint32_t flow = 0; flow < channel.flows.size(); ++flow)
        connections.push_back({job->spec.job.name, channel.from, channel.to, flow});
  }
  std::vector<SeriesLink> links;
  for (const FlowFabric::Link& link : fabric_.links) links.push_back({link.name, link.rate});
  recorder.begin(network_.now(), std::move(connections), std::move(links));
  recorder_ = &recorder;
}

void FlowLevelCluster::State::read_states(Nanos at) {
  const SeriesRecorder::States states = recorder_->states();
  auto state = states.connections.begin();
  for (const FlowJob* job : recorded_)
    for (const Channel& channel : job->channels)
      for (const Flow& flow : channel.flows) {
        const IterationEngine& engine = channel.team->engine;
        const Network::GroupId group = channel.team->members[channel.member].group;
        state->gain = network_.gain(group);
        state->bytes_ratio = network_.bytes_ratio_at(group, at);
        state->iteration = engine.running() ? static_cast<std::int64_t>(engine.iteration()) : -1;
        // Without std::max, rounding could decrease a total by one byte.
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
  const Nanos now = network_.now();
  const Owner& owner = owners_[finished.flow];
  FlowJob& of = *jobs_[owner.job];
  Channel& channel = of.channels[owner.channel];
  Flow& flow = channel.flows[owner.flow];
  flow.last_end = now;
  flow.finished += finished.bytes;
  const Nanos round_trip = options_.burst_latency.value_or(flow.round_trip);
  const auto operation = static_cast<std::uint32_t>(finished.tag);
  Nanos delivered = now + round_trip;
  if (!channel.team->transfers.empty()) {
    Transfer& transfer = channel.team->transfers[operation];
    transfer.undelivered -= finished.bytes;
    delivered = transfer.delivered = std::max(transfer.delivered, delivered);
    if (transfer.undelivered > 0) return;
  }
  channel.team->engine.finish(operation, now, delivered);
  schedule(*channel.team);
  if (channel.receives.empty()) return;
  const Nanos at = now + round_trip / 2;
  const std::size_t count = channel.receives.size();
  const std::uint64_t message = channel.arrived++;
  channel.arrivals[message % (2 * count)] = at;
  Team& receiver = *of.teams[channel.to];
  const std::uint32_t receive = channel.receives[message % count];
  if (!receiver.engine.running() || receiver.engine.iteration() != message / count ||
      !receiver.engine.has_begun(receive))
    return;
  receiver.engine.finish(receive, now, at);
  schedule(receiver);
}

/// Advances the team's operations until nothing more can happen at the current time.
void FlowLevelCluster::State::advance(JobId id, Team& team) {
  if (team.gate_opens <= network_.now()) post(team);
  for (;;) {
    const IterationEngine::Step step = team.engine.advance(network_.now(), team);
    if (step == IterationEngine::Step::waiting || step == IterationEngine::Step::advanced) return schedule(team);
    if (step == IterationEngine::Step::unrecorded) continue;
    if (team.engine.done()) team.gate_in_the_end = team.gate.stats();
    FlowJob& job = team.job_of;
    if (team.engine.recorded() == job.recorded_iterations + 1 && --job.behind == 0 && !tell(id)) return;
  }
}

bool FlowLevelCluster::State::tell(JobId id) {
  while (jobs_[id] && jobs_[id]->behind == 0) {
    FlowJob& job = *jobs_[id];
    Iteration iteration{static_cast<std::uint32_t>(job.recorded_iterations), Nanos::never(), {}, false};
    for (const auto& team : job.teams) {
      if (team->program.communicates())
        iteration.start = std::min(iteration.start, team->engine.start_of(job.recorded_iterations));
      iteration.length = std::max(iteration.length, team->engine.times()[job.recorded_iterations]);
    }
    ++job.recorded_iterations;
    job.behind = static_cast<std::size_t>(std::ranges::count_if(
        job.teams, [&](const auto& team) { return team->engine.recorded() == job.recorded_iterations; }));
    iteration.last = job.done();
    if (on_iteration) on_iteration(id, iteration);
  }
  return jobs_[id] != nullptr;
}

void FlowLevelCluster::State::Team::begin(std::uint32_t operation, Nanos now) {
  const Bytes bytes = program.operations[operation].bytes;
  if (program.operations[operation].kind == Operation::Kind::send) {
    if (bytes == 0) engine.finish(operation);
    if (!transfers.empty()) transfers[operation] = {bytes * members.size(), {}};
    for (const Member& member : members)
      all.post(*this, member, job_of.channels[transfers.empty() ? channel_of[operation] : member.channels.front()]);
    return;
  }
  const Channel& channel = job_of.channels[channel_of[operation]];
  const std::size_t count = channel.receives.size();
  const std::uint64_t message = engine.iteration() * count + place[operation];
  if (channel.arrived <= message) return;
  engine.finish(operation, now, std::max(now, channel.arrivals[message % (2 * count)]));
}

void FlowLevelCluster::State::post(Team& team) {
  team.gate_opens = Nanos::never();
  for (const Member& member : team.members)
    for (const std::uint32_t channel : member.channels) post(team, member, team.job_of.channels[channel]);
}

void FlowLevelCluster::State::post(Team& team, const Member& member, Channel& channel) {
  const Nanos now = network_.now();
  const std::vector<std::uint32_t>& sends = team.sends[channel.among];
  while (team.engine.running() && channel.next < sends.size() && team.engine.has_begun(sends[channel.next])) {
    const std::uint32_t number = sends[channel.next];
    const Operation& operation = team.program.operations[number];
    // Barriers do not count towards an iteration's bytes, and the gate never holds them.
    const bool held = operation.bytes > 0 && !operation.barrier;
    if (const Nanos opens = held ? team.gate.opens_at(now) : now; opens > now) {
      team.gate_opens = opens;
      return;
    }
    ++channel.next;
    if (operation.bytes > 0) send(team, member, channel, number);
  }
}

void FlowLevelCluster::State::send(const Team& team, const Member& member, Channel& channel, std::uint32_t number) {
  const Operation& operation = team.program.operations[number];
  const JobSpec& spec = team.job_of.spec;
  Rate limit = spec.job.rate;
  if (limit.is_zero() || (!operation.rate.is_zero() && operation.rate < limit)) limit = operation.rate;
  if (member.limit) network_.set_rate(*member.limit, limit.is_zero() ? member.unlimited : limit);
  const Bytes share = operation.bytes / spec.job.flows;
  const Bytes left_over = operation.bytes % spec.job.flows;
  for (Flow& flow : channel.flows) {
    Bytes bytes = flow.connections.empty() ? operation.bytes : 0;
    for (const std::uint32_t connection : flow.connections) bytes += share + (connection < left_over ? 1 : 0);
    if (bytes == 0) continue;
    network_.send(flow.id, bytes, number, network_.now() + slow_start(team.job_of, flow, bytes, limit));
  }
}

Nanos FlowLevelCluster::State::slow_start(const FlowJob& of, const Flow& flow, Bytes bytes, Rate limit) const {
  if (options_.burst_latency || !of.slow_start) return {};
  if (!network_.idle(flow.id) || !restarts_after(network_.now() - flow.last_end, flow.round_trip)) return {};
  const double payload = payload_bytes(fabric_.mtu);
  double rate = flow.rate;
  if (!limit.is_zero())
    rate = std::min(rate, static_cast<double>(limit.bits_per_second) / 8e9 * payload /
                              static_cast<double>(frame_bytes(fabric_.mtu)));
  const auto round_trip = static_cast<double>(flow.round_trip.count);
  double window = kInitialWindowPackets * payload * connections_of(of, flow);
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

FlowLevelCluster::JobId FlowLevelCluster::add_job(JobSpec spec) { return state_->add_job(std::move(spec)); }
RunningJob& FlowLevelCluster::job(JobId job) { return state_->job(job); }
void FlowLevelCluster::remove(JobId job) { state_->remove(job); }
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
