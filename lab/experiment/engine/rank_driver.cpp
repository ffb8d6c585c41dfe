// The rank driver (see rank_driver.h).
#include "mltcp/lab/experiment/engine/rank_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/engine/internal/connection_state.h"
#include "mltcp/lab/experiment/engine/internal/known.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using workload::Operation;
using workload::RankProgram;

// Maximum number of receives posted on a connection: 4 MiB of segments, enough for 100 Gbit/s with a delay of 300 us.
constexpr std::size_t kMaxReceives = 16;
constexpr std::size_t kMinReceives = 2;
constexpr std::size_t kReceivesOfWorker = 8;
// Maximum size of receive buffers per rank. A rank that would need more posts fewer receives.
constexpr Bytes kMaxBufferBytes = Bytes{256} << 20;
// Number of entries for unknown peers in the connection table. Covers the two limits below, and the connections that
// arrive during one poll.
constexpr std::uint32_t kSpareConnections = 16;
constexpr std::size_t kMaxExcess = 6;  // maximum number of pending connections beyond those that ranks need
constexpr std::size_t kMaxLeaving = 6;
constexpr Nanos kConnectAgainAfter{10'000'000};
constexpr std::uint64_t kHello = ~std::uint64_t{0};  // tag of the first message on a connection

workload::Job job_of(const workload::Job& job, std::uint32_t rank) {
  workload::Job result = job;
  // Only the first rank pauses. The pause of the others never comes, so that all ranks record compute times.
  if (rank > 0 && job.ranked()) result.pause.iteration = std::numeric_limits<std::uint32_t>::max();
  return result;
}

/// Returns whether the job's communication is a single collective that follows all computation.
bool is_collective(const workload::Job& job) { return job.pattern && workload::bus_factor(*job.pattern) > 0; }

/// Adds the times of each rank to `result`. If the job is a single collective, also adds the mean duration and the
/// bandwidths of the collective.
void add_rank_times(const workload::Job& job, std::span<const RankResult> ranks, std::size_t recorded,
                    JobResult& result) {
  if (recorded == 0) return;
  const bool collective = is_collective(job) && std::ranges::all_of(ranks, [&](const RankResult& rank) {
                            return rank.communications.size() == rank.times.size();
                          });
  double all = 0;  // sum of the ranks' mean communication times, in nanoseconds
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const IterationStats stats = iteration_stats(std::span(ranks[rank].times).first(recorded));
    RankTimes& times = result.ranks.emplace_back();
    times.rank = rank;
    times.mean = stats.mean;
    times.p50 = stats.p50;
    times.p99 = stats.p99;
    if (collective) times.communication = iteration_stats(std::span(ranks[rank].communications).first(recorded)).mean;
    all += static_cast<double>(times.communication.count);
  }
  const double mean = all / static_cast<double>(ranks.size());
  if (!collective || mean < 1) return;
  result.communication = Nanos(std::llround(mean));
  const double bits_per_second = static_cast<double>(job.pattern->size) * 8e9 / mean;
  result.algorithm_bandwidth = Rate(static_cast<std::uint64_t>(bits_per_second));
  result.bus_bandwidth = Rate(static_cast<std::uint64_t>(bits_per_second * workload::bus_factor(*job.pattern)));
}

}  // namespace

void RankResult::add(const RankResult& other) {
  bytes_per_iteration += other.bytes_per_iteration;
  retransmitted_packets += other.retransmitted_packets;
  verified_messages += other.verified_messages;
  checksum_errors += other.checksum_errors;
  if (first_error.empty()) first_error = other.first_error;
  if (other.gate.waited > gate.waited) gate = other.gate;
}

JobResult merge_ranks(const workload::Job& job, std::span<const RankResult> ranks, Nanos epoch) {
  JobResult result;
  result.name = job.name;
  result.compute = job.compute_per_iteration();
  std::size_t recorded = ranks.front().times.size();
  for (const RankResult& rank : ranks) recorded = std::min(recorded, rank.times.size());
  const bool all_alone = std::ranges::all_of(ranks, [](const RankResult& rank) { return rank.alone; });
  for (std::size_t i = 0; i < recorded; ++i) {
    const RankResult* slowest = &ranks.front();
    Nanos start = Nanos::never();
    for (const RankResult& rank : ranks) {
      if (all_alone || !rank.alone) start = std::min(start, rank.starts[i]);
      if (rank.times[i] > slowest->times[i]) slowest = &rank;
    }
    result.starts.push_back(start - epoch);
    result.iterations.push_back(slowest->times[i]);
    if (!slowest->computes.empty()) result.iteration_compute.push_back(slowest->computes[i]);
  }
  add_rank_times(job, ranks, recorded, result);
  if (job.timeline > 0)
    for (const RankResult& rank : ranks) {
      std::vector<TimeSpan>& own = result.timelines.emplace_back();
      for (const OperationTimes& times : rank.timeline) own.push_back({times.begin - epoch, times.end - epoch});
    }
  RankResult sums;
  sums.gate = ranks.front().gate;
  for (const RankResult& rank : ranks) sums.add(rank);
  result.bytes_per_iteration = sums.bytes_per_iteration;
  result.bytes = sums.bytes_per_iteration * recorded;
  result.retransmitted_packets = sums.retransmitted_packets;
  result.verified_messages = sums.verified_messages;
  result.checksum_errors = sums.checksum_errors;
  result.first_error = sums.first_error;
  result.gate_waited = sums.gate.waited;
  result.gate_corrections = sums.gate.corrections;
  if (sums.gate.state != PlanState::none && sums.gate.state != PlanState::active)
    result.plan_dropped = to_text(sums.gate.state);
  return result;
}

std::optional<Nanos> time_to_first_send(const RankProgram& program) {
  // Time at which each operation is done; never() if it depends on other ranks.
  std::vector<Nanos> done(program.operations.size(), Nanos::never());
  Nanos computed;
  Nanos first = Nanos::never();
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    Nanos ready;
    for (std::uint32_t wait = 0; wait < operation.waits; ++wait)
      ready = std::max(ready, done[program.waits[operation.first_wait + wait]]);
    if (ready.is_never()) continue;
    if (operation.kind == Operation::Kind::compute)
      done[i] = computed = std::max(computed, ready) + operation.compute;
    else if (operation.kind == Operation::Kind::delay)
      done[i] = ready + operation.compute;
    else if (operation.kind == Operation::Kind::send)
      first = std::min(first, ready);
  }
  return first.is_never() ? std::nullopt : std::optional(first);
}

Nanos time_to_first_send(const workload::Job& job) {
  if (!job.ranked()) return job.compute_before_sending();
  Nanos first = Nanos::never();
  for (std::uint32_t rank = 0; rank < workload::ranks_of(job); ++rank)
    if (const auto own = time_to_first_send(workload::rank_program(job, rank))) first = std::min(first, *own);
  return first.is_never() ? Nanos() : first;
}

Iterations::Iterations(const JobSpec& spec, std::optional<std::uint32_t> rank)
    : program(rank ? workload::rank_program(spec.job, *rank) : workload::phase_program(spec.job)),
      load(program.load()),
      job(job_of(spec.job, rank.value_or(0))),
      lead(time_to_first_send(program)),
      engine(program, job,
             {.iterations = spec.iterations,
              .stop_when_done = spec.stop_when_done,
              .seed = spec.seed,
              // The ranks of a job with a pattern use separate random number streams, with numbers above those of all
              // jobs.
              .stream = spec.number + (spec.job.ranked() ? std::uint64_t{rank.value_or(0)} << 33U : 0),
              .timeline = spec.job.timeline}) {}

RankResult Iterations::result() const {
  RankResult result;
  result.starts = engine.starts();
  result.times = engine.times();
  result.computes = engine.computes();
  result.alone = !program.communicates();
  result.bytes_per_iteration = load.sent;
  result.timeline = engine.timeline();
  return result;
}

class RankDriver::Team final : public Iterations, private IterationEngine::Carrier {
 public:
  Team(const JobSpec& spec, std::optional<std::uint32_t> rank)
      : Iterations(spec, rank),
        learned_(spec.learn_iterations),
        limit_(spec.job.rate),
        own_rates_(std::ranges::any_of(program.operations,
                                       [](const Operation& operation) { return !operation.rate.is_zero(); })) {
    for (std::vector<Bytes>& undelivered : undelivered_) undelivered.resize(program.operations.size());
  }
  /// Adds a member, which must not be a receiver.
  void add(RankDriver& member) {
    members_.push_back(&member);
    for (std::vector<Bytes>& undelivered : undelivered_) refill(undelivered);
  }

  /// Advances the engine as far as possible, in the poll of member `caller`. Returns false if the engine waits for a
  /// time or a delivery. The last caller requests to be polled at engine.wake().
  bool advance(Nanos now, const RankDriver& caller) {
    caller_ = &caller;
    for (bool moved = false;; moved = true) {
      const IterationEngine::Step step = engine.advance(now, *this);
      if (step == IterationEngine::Step::waiting) return moved;
      if (step == IterationEngine::Step::advanced) return true;
      if (step == IterationEngine::Step::recorded)
        for (RankDriver* member : members_) member->on_recorded(now);
      // Entries alternate between iterations, so the entry of the ended iteration now serves the iteration after the
      // next. No message of that iteration can have arrived.
      refill(undelivered_[engine.iteration() % 2]);
    }
  }
  void on_sent(std::uint32_t operation, Bytes bytes) {
    Bytes& undelivered = undelivered_[engine.iteration() % 2][operation];
    undelivered -= bytes;
    if (undelivered == 0) engine.finish(operation);
  }
  void on_received(std::uint32_t operation, std::uint64_t iteration, Bytes bytes) {
    Bytes& undelivered = undelivered_[iteration % 2][operation];
    undelivered -= bytes;
    if (undelivered == 0 && engine.running() && iteration == engine.iteration() && engine.has_begun(operation))
      engine.finish(operation);
  }

 private:
  void begin_iteration(Nanos /*now*/) override {
    for (RankDriver* member : members_) member->begin_iteration(learned_ ? 0 : load.sent);
  }
  void begin(std::uint32_t number, Nanos /*now*/) override {
    if (undelivered_[engine.iteration() % 2][number] == 0) return engine.finish(number);
    const Operation& operation = program.operations[number];
    if (operation.kind == Operation::Kind::receive) return;
    std::optional<Rate> rate;
    if (own_rates_ && !operation.barrier) rate = operation.rate.is_zero() ? limit_ : std::min(operation.rate, limit_);
    for (RankDriver* member : members_) {
      member->send(number, rate);
      if (member != caller_) member->wake_();
    }
  }
  void refill(std::vector<Bytes>& undelivered) {
    for (std::size_t i = 0; i < undelivered.size(); ++i) undelivered[i] = program.operations[i].bytes * members_.size();
  }

  const bool learned_;
  const Rate limit_;
  const bool own_rates_;  ///< whether some sends have their own rate limits
  std::vector<RankDriver*> members_;
  const RankDriver* caller_ = nullptr;
  std::array<std::vector<Bytes>, 2> undelivered_;  ///< undelivered bytes: [iteration % 2][operation]
};

// ---- Set-up ----

std::shared_ptr<const Payload> RankDriver::make_payload(const JobSpec& spec) {
  return std::make_shared<const Payload>(spec.seed + spec.number, kSegmentBytes);
}

std::size_t RankDriver::connections_of(const JobSpec& spec, const RankProgram& program) {
  // Number of connections to each rank; 1 if the ranks exchange only barriers.
  std::vector<std::uint32_t> flows(program.ranks);
  for (const Operation& operation : program.operations)
    if (operation.communicates())
      flows[operation.peer] = std::max(flows[operation.peer], operation.barrier ? 1 : spec.job.flows);
  return std::accumulate(flows.begin(), flows.end(), std::size_t{0});
}

ShardConfig RankDriver::shard_config(const JobSpec& spec, const RankProgram& program) {
  const auto all = static_cast<std::uint32_t>(connections_of(spec, program));
  ShardConfig config = mltcp::experiment::shard_config(spec.seed, spec.number, program.rank, all + kSpareConnections);
  if (spec.unpredictable) config.seed.reset();
  return config;
}

RankDriver::RankDriver(PacketIo& io, const JobSpec& spec, std::uint32_t rank, std::span<const Address> addresses,
                       std::shared_ptr<const Payload> payload, Nanos now)
    : spec_(spec),
      rank_(rank),
      receiver_(false),
      team_(std::make_shared<Team>(spec, rank)),
      payload_(std::move(payload)),
      shard_(io, shard_config(spec, team_->program)),
      connection_config_(spec.connection) {
  job_id_ = shard_.add_job(spec.job_config());
  team_->add(*this);
  if (is_collective(spec.job)) communications_.reserve(spec.iterations);
  make_channels(addresses, now);
}

RankDriver::RankDriver(PacketIo& io, const JobSpec& spec, Worker worker, std::shared_ptr<Team> team,
                       std::shared_ptr<const Payload> payload, Nanos now)
    : spec_(spec),
      rank_(worker.number),
      receiver_(!worker.to),
      wake_(std::move(worker.wake)),
      team_(std::move(team)),
      payload_(std::move(payload)),
      shard_(io, mltcp::experiment::shard_config(spec.seed, spec.number, worker.number, spec.job.flows)),
      connection_config_(spec.connection) {
  connection_config_.max_receives = 4 * kReceivesOfWorker;
  connections_ = spec.job.flows;
  Channel& channel = channels_.emplace_back();
  channel.peer = rank_;
  channel.flows.resize(connections_);
  if (receiver_) {
    make_slots();
    shard_.listen(connection_config_);
    return;
  }
  job_id_ = shard_.add_job(spec.job_config());
  team_->add(*this);
  channel_of_.resize(team_->program.operations.size());
  for (std::uint32_t i = 0; i < channel_of_.size(); ++i)
    if (team_->program.operations[i].communicates()) channel.sends.push_back(i);
  addresses_.push_back(*worker.to);
  connect(0, now);
}

void RankDriver::make_channels(std::span<const Address> addresses, Nanos now) {
  const std::vector<Operation>& operations = team_->program.operations;
  std::map<std::uint32_t, std::uint32_t> channels;  // channel number by peer
  channel_of_.resize(operations.size());
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    if (!operation.communicates()) continue;
    const auto [at, is_new] = channels.try_emplace(operation.peer, static_cast<std::uint32_t>(channels_.size()));
    channel_of_[i] = at->second;
    if (is_new) {
      Channel& channel = channels_.emplace_back();
      channel.peer = operation.peer;
      channel.flows.resize(spec_.job.flows);
    }
    Channel& channel = channels_[at->second];
    (operation.kind == Operation::Kind::send ? channel.sends : channel.receives).push_back(i);
  }
  const auto barriers_only = [&](const std::vector<std::uint32_t>& list) {
    return std::ranges::all_of(list, [&](std::uint32_t i) { return operations[i].barrier; });
  };
  for (Channel& channel : channels_) {
    if (barriers_only(channel.sends) && barriers_only(channel.receives)) channel.flows.resize(1);
    connections_ += channel.flows.size();
  }
  // If a packet is lost, receive operations after it may complete before the packet is retransmitted.
  connection_config_.max_receives = 4 * kMaxReceives;
  shard_.listen(connection_config_);
  give_up_connecting_ = now + connection_config_.give_up_after;
  pending_.reserve(connections_ + kSpareConnections);
  leaving_.reserve(connections_ + kSpareConnections);
  for (const Channel& channel : channels_) addresses_.push_back(addresses[channel.peer]);
  for (const auto& [peer, number] : channels) {
    if (peer < rank_) {
      channels_at_.emplace(addresses[peer], number);
      continue;
    }
    connect(number, now);
  }
  places_.reserve(connections_);
  make_slots();
}

void RankDriver::connect(std::uint32_t number, Nanos now) {
  std::vector<Flow>& flows = channels_[number].flows;
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    flows[i].connection = shard_.connect(addresses_[number], connection_config_, now);
    places_.emplace(flows[i].connection, Place{number, i});
  }
}

void RankDriver::make_slots() {
  const auto longest_of = [&](const Channel& channel) {
    if (receiver_) return kSegmentBytes;
    Bytes longest = 0;
    for (const std::uint32_t receive : channel.receives)
      longest = std::max(longest, share_of(team_->program.operations[receive], channel, channel.flows.front()));
    return std::min(longest, kSegmentBytes);
  };
  Bytes all = 0;  // size of buffers for one receive on each connection
  for (const Channel& channel : channels_) all += longest_of(channel) * channel.flows.size();
  const std::size_t depth =
      receiver_ ? kReceivesOfWorker
                : std::clamp<std::size_t>(kMaxBufferBytes / std::max<Bytes>(all, 1), kMinReceives, kMaxReceives);
  if (payload_ != nullptr) buffers_.resize(all * depth);
  std::byte* buffer = buffers_.data();
  for (std::uint32_t number = 0; number < channels_.size(); ++number) {
    Channel& channel = channels_[number];
    if (channel.receives.empty() && !receiver_) continue;
    for (std::uint32_t flow = 0; flow < channel.flows.size(); ++flow)
      for (std::size_t i = 0; i < depth; ++i) {
        channel.flows[flow].free.push_back(static_cast<std::uint32_t>(slots_.size()));
        Slot& slot = slots_.emplace_back();
        slot.channel = number;
        slot.flow = flow;
        slot.length = kSegmentBytes;
        if (payload_ == nullptr) continue;
        slot.buffer = buffer;
        buffer += longest_of(channel);
      }
  }
}

std::string RankDriver::about(const std::string& what, const char* preposition, std::uint32_t peer) const {
  if (receiver_ || wake_) return fmt::format("job \"{}\": {}", spec_.job.name, what);
  return fmt::format("job \"{}\": rank {}: {}, {} rank {}", spec_.job.name, rank_, what, preposition, peer);
}

void RankDriver::fail_connection(std::uint32_t peer, std::optional<Status> status) const {
  const std::string why = status ? fmt::format(" ({})", to_text(*status)) : "";
  throw ConnectionLost(about("a connection ended before the job did" + why, "to", peer), spec_.number, peer,
                       status == Status::unreachable);
}

// ---- Completions ----

bool RankDriver::take_completions(Nanos now) {
  bool any = false;
  while (const std::size_t count = shard_.take_completions(completions_)) {
    any = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& completion = completions_[i];
      if (completion.kind == Completion::Kind::accepted) {
        on_accepted(completion.connection, now);
        continue;
      }
      const auto known = places_.find(completion.connection);
      if (known == places_.end()) {
        on_first_message(completion, now);
        continue;
      }
      Channel& channel = channels_[known->second.channel];
      Flow& flow = channel.flows[known->second.flow];
      if (completion.status == Status::truncated)
        fail(channel.peer, "a message is longer than the pattern defines; use the same pattern on all hosts");
      if (completion.status != Status::ok || completion.kind == Completion::Kind::closed) {
        on_ended(channel, flow, completion, now);
      } else if (completion.tag == kHello || (completion.kind == Completion::Kind::connected && wake_)) {
        on_open(channel, flow);
      } else if (completion.kind == Completion::Kind::connected) {
        const Bytes length = known->second.flow + Bytes{1};
        if (payload_ != nullptr)
          shard_.send(completion.connection, payload_->message(0, length), kHello);
        else
          shard_.send_virtual(completion.connection, length, kHello);
      } else if (completion.kind == Completion::Kind::received) {
        on_received(completion);
      } else {
        on_sent(channel, flow, completion);
      }
    }
  }
  return any;
}

void RankDriver::on_open(Channel& channel, Flow& flow) {
  flow.open = true;
  // If attach() fails because the connection has ended, the next completion reports the end.
  if (!receiver_) expect_known(shard_.attach(flow.connection, job_id_) || !shard_.exists(flow.connection), "attach()");
  ++open_;
  channel.open = std::ranges::all_of(channel.flows, [](const Flow& other) { return other.open; });
  if (receiver_)
    post_receives(channel, flow);
  else if (channel.open)
    for (Flow& each : channel.flows) post_receives(channel, each);
}

void RankDriver::on_ended(const Channel& channel, Flow& flow, const Completion& completion, Nanos now) {
  // Either the peer's connection table was full of unknown peers, or the peer mistook this rank for an unknown peer.
  // The rank retries, because the peer closes unknown connections.
  const bool crowded_out = completion.status == Status::full || completion.status == Status::aborted;
  if (flow.open || !crowded_out || now >= give_up_connecting_) fail_connection(channel.peer, completion.status);
  if (completion.kind != Completion::Kind::closed) return;
  places_.erase(flow.connection);
  flow.connection = 0;
  flow.connect_at = now + kConnectAgainAfter;
  connect_at_ = std::min(connect_at_, flow.connect_at);
}

void RankDriver::connect_again(Nanos now) {
  if (now < connect_at_) return;
  connect_at_ = Nanos::never();
  for (std::uint32_t number = 0; number < channels_.size(); ++number) {
    std::vector<Flow>& flows = channels_[number].flows;
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      Flow& flow = flows[i];
      if (now >= flow.connect_at) {
        try {
          flow.connection = shard_.connect(addresses_[number], connection_config_, now);
          flow.connect_at = Nanos::never();
          places_.emplace(flow.connection, Place{number, i});
        } catch (const RunError&) {  // unknown peers filled the table; the next poll closes their connections
          flow.connect_at = now + kConnectAgainAfter;
        }
      }
      connect_at_ = std::min(connect_at_, flow.connect_at);
    }
  }
}

// ---- Accepted connections ----

void RankDriver::on_accepted(ConnectionId connection, Nanos now) {
  if (receiver_ && open_ < connections_) {
    Flow& flow = channels_[0].flows[open_];
    flow.connection = connection;
    places_.emplace(connection, Place{0, static_cast<std::uint32_t>(open_)});
    return on_open(channels_[0], flow);
  }
  const Address* from = shard_.remote(connection);
  const auto peer = from != nullptr ? channels_at_.find(*from) : channels_at_.end();
  if (peer == channels_at_.end()) {
    ++unknown_peers_;
    shard_.abort(connection, now);
    leave(connection, now);
    return;
  }
  pending_.push_back({connection, peer->second});
  ++channels_[peer->second].accepted;
  shard_.receive_virtual(connection, channels_[peer->second].flows.size(), kHello);
  limit_pending(now);
}

void RankDriver::on_first_message(const Completion& completion, Nanos now) {
  const auto pending = std::ranges::find(pending_, completion.connection, &PendingConnection::connection);
  if (pending == pending_.end()) return;  // the connection is already closed
  const std::uint32_t number = pending->channel;
  Channel& channel = channels_[number];
  const bool says_hello = completion.kind == Completion::Kind::received && completion.status == Status::ok &&
                          completion.bytes > 0 && completion.bytes <= channel.flows.size() &&
                          channel.flows[completion.bytes - 1].connection == 0;
  if (says_hello) {
    pending_.erase(pending);
    Flow& flow = channel.flows[completion.bytes - 1];
    flow.connection = completion.connection;
    places_.emplace(flow.connection, Place{number, static_cast<std::uint32_t>(completion.bytes - 1)});
    on_open(channel, flow);
    return;
  }
  drop_pending(pending);
  // If a rank has a different number of flows, an orderly close tells that rank not to retry.
  shard_.close(completion.connection);
  leave(completion.connection, now);
}

void RankDriver::limit_pending(Nanos now) {
  std::size_t all = 0;
  const Channel* max = &channels_.front();
  for (const Channel& channel : channels_) {
    all += excess(channel);
    if (excess(channel) > excess(*max)) max = &channel;
  }
  if (all <= kMaxExcess) return;
  const auto oldest = std::ranges::find_if(
      pending_, [&](const PendingConnection& pending) { return &channels_[pending.channel] == max; });
  const ConnectionId connection = oldest->connection;
  drop_pending(oldest);
  shard_.abort(connection, now);
  leave(connection, now);
}

void RankDriver::drop_pending(std::vector<PendingConnection>::iterator pending) {
  ++unknown_peers_;
  --channels_[pending->channel].accepted;
  pending_.erase(pending);
}

void RankDriver::leave(ConnectionId connection, Nanos now) {
  std::erase_if(leaving_, [&](ConnectionId other) { return shard_.remote(other) == nullptr; });
  leaving_.push_back(connection);
  if (leaving_.size() <= kMaxLeaving) return;
  // Frees the table entry at once if the peer already knows that the connection has ended.
  shard_.abort(leaving_.front(), now);
  leaving_.erase(leaving_.begin());
}

void RankDriver::on_received(const Completion& completion) {
  const Slot slot = slots_[completion.tag];
  Channel& channel = channels_[slot.channel];
  if (!receiver_ && completion.bytes != slot.length)
    fail(channel.peer, "a message is shorter than the pattern defines; use the same pattern on all hosts");
  const bool barrier = !receiver_ && team_->program.operations[slot.operation].barrier;
  if (payload_ != nullptr) {
    if (!barrier) ++verified_;
    const auto expected = bytes_of(channel.peer, slot.flow, slot.number, completion.bytes);
    if (std::memcmp(slot.buffer, expected.data(), completion.bytes) != 0 && errors_++ == 0)
      first_error_ = fmt::format("{}{} bytes{} differ from the bytes that were sent (message {} of connection {})",
                                 receiver_ ? "" : fmt::format("rank {}: ", rank_), completion.bytes,
                                 receiver_ ? "" : fmt::format(" from rank {}", channel.peer), slot.number, slot.flow);
  }
  if (!barrier) received_ += completion.bytes;
  Flow& flow = channel.flows[slot.flow];
  flow.free.push_back(static_cast<std::uint32_t>(completion.tag));
  if (!receiver_) team_->on_received(slot.operation, slot.iteration, slot.length);
  post_receives(channel, flow);
}

void RankDriver::on_sent(Channel& channel, Flow& flow, const Completion& completion) {
  const auto operation = static_cast<std::uint32_t>(completion.tag);
  if (!team_->program.operations[operation].barrier) sent_ += completion.bytes;
  team_->on_sent(operation, completion.bytes);
  post_sends(channel, flow);
}

// ---- Messages ----

Bytes RankDriver::share_of(const Operation& operation, const Channel& channel, const Flow& flow) {
  const Bytes flows = channel.flows.size();
  return operation.bytes / flows + (number_of(channel, flow) < operation.bytes % flows ? 1 : 0);
}

std::span<const std::byte> RankDriver::bytes_of(std::uint32_t from, std::size_t flow, std::uint64_t number,
                                                Bytes length) const {
  return payload_->message(from * std::uint64_t{7} + flow * 17 + number, length);
}

void RankDriver::post_sends(Channel& channel, Flow& flow) {
  while (flow.send < channel.sends.size()) {
    const std::uint32_t number = channel.sends[flow.send];
    if (!team_->engine.has_begun(number)) return;
    const Bytes left = share_of(team_->program.operations[number], channel, flow) - flow.send_offset;
    if (left == 0) {
      flow.send_offset = 0;
      ++flow.send;
      continue;
    }
    const Bytes length = std::min(left, kSegmentBytes);
    const PostResult result =
        payload_ != nullptr
            ? shard_.send(flow.connection, bytes_of(rank_, number_of(channel, flow), flow.sent, length), number)
            : shard_.send_virtual(flow.connection, length, number);
    if (result == PostResult::queue_full) return;  // post_sends() runs again with the next completion
    if (result != PostResult::ok) fail_connection(channel.peer);
    flow.send_offset += length;
    ++flow.sent;
  }
}

void RankDriver::post_receives(Channel& channel, Flow& flow) {
  while (!flow.free.empty()) {
    Slot& slot = slots_[flow.free.back()];
    if (!receiver_) {
      if (channel.receives.empty() || flow.receive_iteration > team_->engine.iteration() + 1) return;
      slot.operation = channel.receives[flow.receive];
      slot.iteration = flow.receive_iteration;
      const Bytes left = share_of(team_->program.operations[slot.operation], channel, flow) - flow.receive_offset;
      slot.length = std::min(left, kSegmentBytes);
      if (left == 0) {
        flow.receive_offset = 0;
        if (++flow.receive < channel.receives.size()) continue;
        flow.receive = 0;
        ++flow.receive_iteration;
        continue;
      }
    }
    const PostResult result = payload_ != nullptr
                                  ? shard_.receive(flow.connection, {slot.buffer, slot.length}, flow.free.back())
                                  : shard_.receive_virtual(flow.connection, slot.length, flow.free.back());
    if (result == PostResult::queue_full) return;  // post_receives() runs again with the next completion
    if (result != PostResult::ok) fail_connection(channel.peer);
    slot.number = flow.receives++;
    flow.receive_offset += slot.length;
    flow.free.pop_back();
  }
}

// ---- Iterations ----

Nanos RankDriver::poll(Nanos now) {
  connect_again(now);
  Nanos next = shard_.poll(now);
  for (;;) {
    const bool completed = take_completions(now);
    const bool advanced = !receiver_ && team_->advance(now, *this);
    if (!completed && !advanced) break;
    next = shard_.poll(now);
  }
  return receiver_ ? next : std::min({next, team_->engine.wake(), connect_at_});
}

void RankDriver::on_recorded(Nanos now) {
  if (is_collective(spec_.job)) {
    const Nanos waited = gate().waited - waited_before_;  // time waited for the slot
    communications_.push_back(std::max(now - team_->engine.computed_at() - waited, Nanos()));
  }
  if (!done()) return;
  retransmitted_packets_ = retransmitted_packets();
  gate_ = gate();
}

void RankDriver::begin_iteration(Bytes bytes) {
  waited_before_ = gate().waited;
  if (bytes > 0) expect_known(shard_.begin_iteration(job_id_, bytes), "begin_iteration()");
  for (Channel& channel : channels_)
    for (Flow& flow : channel.flows) {
      flow.send = 0;
      post_receives(channel, flow);
    }
}

void RankDriver::send(std::uint32_t operation, std::optional<Rate> rate) {
  if (rate) expect_known(shard_.set_job_rate(job_id_, *rate), "set_job_rate()");
  Channel& channel = channels_[channel_of_[operation]];
  for (Flow& flow : channel.flows) post_sends(channel, flow);
}

// ---- Results ----

std::uint64_t RankDriver::retransmitted_packets() const {
  std::uint64_t packets = 0;
  for (const Channel& channel : channels_)
    for (const Flow& flow : channel.flows)
      if (const auto stats = shard_.stats(flow.connection)) packets += stats->retransmitted_packets;
  return packets;
}

void RankDriver::start(Nanos at) { team_->engine.start(at); }
bool RankDriver::done() const { return team_->engine.done(); }
std::size_t RankDriver::recorded() const { return team_->engine.recorded(); }
bool RankDriver::sends() const { return team_->load.sent > 0; }
bool RankDriver::begins() const { return !receiver_ && team_->lead.has_value(); }

Nanos RankDriver::lead() const { return *team_->lead; }

Nanos RankDriver::mean_time() const {
  const std::vector<Nanos>& times = team_->engine.times();
  Nanos sum;
  for (const Nanos time : times) sum += time;
  return times.empty() ? Nanos() : sum / static_cast<std::int64_t>(times.size());
}

void RankDriver::visit_connections(
    const std::function<void(std::uint32_t peer, const ConnectionStats& stats)>& visit) const {
  for (const Channel& channel : channels_)
    for (const Flow& flow : channel.flows)
      if (const auto stats = shard_.stats(flow.connection)) visit(channel.peer, *stats);
}

RankDriver::Progress RankDriver::progress() const {
  Progress progress;
  progress.iteration = team_->engine.iteration();
  progress.operations = static_cast<std::uint32_t>(team_->program.operations.size());
  progress.done = team_->engine.running() ? progress.operations - team_->engine.left() : 0;
  progress.sent = sent_;
  progress.received = received_;
  if (team_->engine.recorded() > 0) progress.last = team_->engine.times().back();
  return progress;
}

std::optional<std::uint32_t> RankDriver::unreached() const {
  const auto closed = std::ranges::find_if(channels_, [](const Channel& channel) { return !channel.open; });
  return closed != channels_.end() ? std::optional(closed->peer) : std::nullopt;
}

RankResult RankDriver::result() const {
  RankResult result = team_->result();
  if (receiver_) result.bytes_per_iteration = 0;
  result.communications = communications_;
  result.retransmitted_packets = done() ? retransmitted_packets_ : retransmitted_packets();
  result.verified_messages = verified_;
  result.checksum_errors = errors_;
  result.first_error = first_error_;
  result.gate = done() ? gate_ : gate();
  return result;
}

PlanState RankDriver::set_plan(const PhasePlan& plan, Nanos now, std::optional<Nanos> job_lead) {
  if (!begins()) return PlanState::active;
  PhasePlan own = plan;
  if (spec_.job.ranked()) own.slot += *team_->lead - (job_lead ? *job_lead : time_to_first_send(spec_.job));
  return shard_.set_plan(job_id_, own, now);
}

std::vector<SeriesConnection> RankDriver::flows() const {
  std::vector<SeriesConnection> flows;
  for (const Channel& channel : channels_)
    for (std::uint32_t flow = 0; flow < channel.flows.size(); ++flow)
      flows.push_back({spec_.job.name, rank_, channel.peer, flow});
  return flows;
}

void RankDriver::read_states(std::span<ConnectionState> states) const {
  std::size_t number = 0;
  for (const Channel& channel : channels_)
    for (const Flow& flow : channel.flows) read_state(shard_, flow.connection, job_id_, states[number++]);
}

// ---- Within one process ----

JobDriver::JobDriver(JobNetwork& network, const JobSpec& spec, bool apart) : network_(network), spec_(spec) {
  const auto payload = spec.real_payload ? RankDriver::make_payload(spec_) : nullptr;
  if (spec.job.ranked() || apart) {
    std::vector<Address> addresses;
    const std::uint32_t ranks = workload::ranks_of(spec.job);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) addresses.push_back(network.address(end(rank)));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(
          std::make_unique<RankDriver>(network.host(end(rank)), spec_, rank, addresses, payload, network.now()));
      network.attach(end(rank), *ranks_.back());
    }
    return;
  }
  const auto team = std::make_shared<RankDriver::Team>(spec_, std::nullopt);
  for (std::uint32_t number = 0; number < spec.workers.size(); ++number) {
    const JobNetwork::End to{JobNetwork::Side::receiver, spec.number, number};
    const auto add = [&](auto& list, const JobNetwork::End& end, const RankDriver::Worker& worker) {
      list.push_back(std::make_unique<RankDriver>(network.host(end), spec_, worker, team, payload, network.now()));
      network.attach(end, *list.back());
    };
    add(receivers_, to, {number});
    add(ranks_, end(number), {number, network.address(to), [this, number] { network_.wake(end(number)); }});
  }
}

JobNetwork::End JobDriver::end(std::uint32_t rank) const {
  // Without a list of hosts, the two ranks are the sender and the receiver of a dumbbell.
  if (receivers_.empty() && spec_.job.hosts.empty() && rank == 1) return {JobNetwork::Side::receiver, spec_.number, 0};
  return {JobNetwork::Side::sender, spec_.number, rank};
}

bool JobDriver::connected() const {
  return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->connected(); });
}

void JobDriver::start(Nanos epoch) {
  epoch_ = epoch;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank]->start(epoch + spec_.job.start);
    network_.wake(end(rank));
    if (!receivers_.empty()) return;  // the workers share one engine, which this call has started
  }
}

bool JobDriver::done() const {
  while (done_ranks_ < ranks_.size() && ranks_[done_ranks_]->done()) ++done_ranks_;
  return done_ranks_ == ranks_.size();
}

std::size_t JobDriver::recorded() const {
  std::size_t min = ranks_.front()->recorded();
  if (!receivers_.empty()) return min;  // the number is equal for all workers
  for (const auto& rank : ranks_) min = std::min(min, rank->recorded());
  return min;
}

PlanState JobDriver::set_plan(const PhasePlan& plan) {
  Nanos lead = Nanos::never();
  for (const auto& rank : ranks_)
    if (rank->begins()) lead = std::min(lead, rank->lead());
  PlanState state = PlanState::none;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    state = ranks_[rank]->set_plan(plan, network_.now(), lead);
    network_.wake(end(rank));
  }
  return state;
}

void JobDriver::clear_plan() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank]->clear_plan(network_.now());
    network_.wake(end(rank));
  }
}

PlanState JobDriver::plan_state() const {
  PlanState state = PlanState::none;
  for (const auto& rank : ranks_) {
    if (!rank->begins()) continue;
    const PlanState own = rank->gate().state;
    if (own == PlanState::misfit) return own;
    if (state == PlanState::none) state = own;
  }
  return state;
}

Nanos JobDriver::adrift_since() const {
  Nanos since = Nanos::never();
  for (const auto& rank : ranks_) since = std::min(since, rank->gate().adrift_since);
  return since;
}

std::uint64_t JobDriver::marked_packets() const {
  std::uint64_t packets = 0;
  for (const auto& rank : ranks_)
    rank->visit_connections([&](std::uint32_t, const ConnectionStats& stats) { packets += stats.ce_packets; });
  return packets;
}

std::vector<SeriesConnection> JobDriver::connections() const {
  std::vector<SeriesConnection> connections;
  for (const auto& rank : ranks_) {
    const std::vector<SeriesConnection> flows = rank->flows();
    connections.insert(connections.end(), flows.begin(), flows.end());
  }
  return connections;
}

void JobDriver::read_states(std::span<ConnectionState> states) const {
  for (const auto& rank : ranks_) {
    rank->read_states(states);
    states = states.subspan(rank->connections());
  }
}

JobResult JobDriver::result() const {
  std::vector<RankResult> results;
  for (const auto& rank : ranks_)
    if (results.empty() || receivers_.empty())
      results.push_back(rank->result());
    else
      results.front().add(rank->result());
  for (const auto& receiver : receivers_) results.front().add(receiver->result());
  JobResult result = merge_ranks(spec_.job, results, epoch_);
  if (!receivers_.empty()) result.ranks.clear();  // all workers have the same times
  return result;
}

}  // namespace mltcp::experiment
