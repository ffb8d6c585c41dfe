// The implementation of a shard: connection table, jobs, and the work of one poll (see shard_core.h).
#include "mltcp/transport/internal/shard_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/transport/requirements.h"

namespace mltcp::transport {
namespace {

// Limits of the work in one poll, so that receiving and sending alternate.
constexpr std::size_t kRxBurstsPerPoll = 8;
constexpr std::size_t kPacketsPerTurn = 8;      // packets that a connection may send before the next connection's turn
constexpr std::size_t kTxPacketsPerPoll = 256;  // rounded to a multiple of a burst

constexpr std::uint32_t kMaxConnections = (1U << 20) - 1;
constexpr std::uint32_t kMaxZeroCopySends = 65'535;

// Limits for CONNECTs and RESETs that no key opens, because each of these costs as much time as several packets. 2000
// CONNECTs and 2000 RESETs per second are allowed. CONNECTs from proven addresses have another 2000 per second, divided
// into kProvenBudgets parts by address. So a peer with one address can only use up one part.
constexpr Nanos kEachFailed{500'000};
constexpr std::int64_t kProvenBudgets = 16;
// If no slot is free, a new client may get the slot of a client that has not answered. A client with the new client's
// address is preferred if there is one among this many candidates.
constexpr int kSlotsLookedAt = 64;
constexpr Nanos kLookAtHoldsAfter{20'000};

// Upper bound of times, so that adding a few durations does not overflow.
constexpr Nanos kLatestTime = Nanos::never() / 4;
// Upper bound of durations that are multiplied, so that the products do not overflow.
constexpr Nanos kLongestRoundTrip{3'600'000'000'000};

// Returns the id of a slot's first connection in a shard with a seed. The highest 12 bits are drawn from the seed, and
// do not depend on the number of slots. Networks that hash ids onto paths (wire::peek_connection) therefore choose the
// same paths in all simulations with the same seed.
ConnectionId seeded_id(Random& random, std::uint32_t index) {
  constexpr std::uint32_t bits = 12;
  const auto drawn = static_cast<std::uint32_t>(random.below(1U << bits) + 1) << (32 - bits);
  return (drawn | index) != 0 ? drawn | index : 1U << (32 - bits);
}

void check(std::string_view key, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  if (value < min || value > max)
    throw InputError(fmt::format("{} is {}; it has to be from {} to {}", key, value, min, max));
}

const cc::AlgorithmTable& checked_algorithm(const ConnectionConfig& config, const PacketIo::Limits& limits) {
  check("max_sends", config.max_sends, 1, 65'536);
  check("max_receives", config.max_receives, 1, 65'536);
  check("max_packets_in_flight", config.max_packets_in_flight, 16, 1U << 20);
  check("ack_every", config.ack_every, 1, 64);
  check("priority", config.priority, 0, kPriorities - 1);
  for (const auto& [key, value] :
       {std::pair{"initial_rtt", config.initial_rtt}, std::pair{"max_ack_delay", config.max_ack_delay},
        std::pair{"timer_granularity", config.timer_granularity}})
    if (value.count <= 0 || value > kLongestRoundTrip)
      throw InputError(fmt::format("{} is {} ns; it has to be above 0, and an hour at most", key, value.count));
  if (config.give_up_after.count <= 0 || config.give_up_after > kLatestTime)
    throw InputError(
        fmt::format("give_up_after is {} ns; it has to be above 0, and 73 years at most", config.give_up_after.count));
  for (const auto& [key, value] :
       {std::pair{"keep_alive", config.keep_alive}, std::pair{"idle_limit", config.idle_limit}})
    if (value.count < 0 || value > kLatestTime)
      throw InputError(fmt::format("{} is {} ns; it has to be from 0 (never) to 73 years", key, value.count));
  if (config.idle_limit.count > 0 && config.idle_limit <= config.keep_alive)
    throw InputError(
        fmt::format("idle_limit is {} and keep_alive {}; give an idle_limit above keep_alive, so that a keep-alive "
                    "precedes the idle timeout",
                    to_text(config.idle_limit), to_text(config.keep_alive)));
  const cc::AlgorithmTable& algorithm = cc::find_algorithm(config.congestion_control);
  check_requirements(config, algorithm, limits);
  if (algorithm.capabilities.needs_ecn && !config.ecn)
    throw InputError(fmt::format("congestion control \"{}\" needs ECN; set ecn = true", algorithm.name));
  if (algorithm.capabilities.rate_based && config.max_rate.is_zero())
    throw InputError(
        fmt::format("congestion control \"{}\" starts at the sender's rate; set max_rate", algorithm.name));
  if (config.parameters != nullptr)
    for (const std::string_view name : {algorithm.name, cc::Turns::name}) config.parameters->validate(name);
  for (const auto& key : config.keys)
    if (key == nullptr) throw InputError("keys: one of them is null; leave it out");
  return algorithm;
}

}  // namespace

ShardCore::ShardCore(PacketIo& io, const ShardConfig& config)
    : io_(io),
      config_(config),
      limits_(io.limits()),
      random_(config.seed),
      cookies_(config.max_connections * 4),
      failed_unproven_(kEachFailed),
      failed_proven_(kProvenBudgets, WorkBudget(kEachFailed * kProvenBudgets)),
      // With a seed, the key is not drawn from the seeded numbers, because that would change the packets.
      budget_key_(config.seed ? SipKey{*config.seed, 0} : random_.key()),
      failed_resets_(kEachFailed),
      resets_(Nanos(std::max<std::int64_t>(1'000'000'000 / std::max<std::uint32_t>(config.resets_per_second, 1), 1))),
      holds_(limits_.keeps_payload_from == 0 ? 0 : std::min(config.max_zero_copy_sends, kMaxZeroCopySends)) {
  check("max_connections", config.max_connections, 1, kMaxConnections);
  check("kept_for_connect", config.kept_for_connect, 0, config.max_connections);
  if (config.max_half_open) check("max_half_open", *config.max_half_open, 0, config.max_connections);
  if (config.max_accepted_per_address)
    check("max_accepted_per_address", *config.max_accepted_per_address, 1, kMaxConnections);
  check("max_jobs", config.max_jobs, 0, 1U << 16);
  check("max_completions", config.max_completions, 1, 1U << 24);
  check("max_zero_copy_sends", config.max_zero_copy_sends, 0, kMaxZeroCopySends);
  if (limits_.max_packet_bytes < wire::kSmallestPacket)
    throw InputError(fmt::format("the datapath sends at most {} bytes a packet; the transport needs {}",
                                 limits_.max_packet_bytes, wire::kSmallestPacket));
  limits_.burst = std::max<std::uint32_t>(limits_.burst, 1);
  limits_.priorities = std::clamp<std::uint32_t>(limits_.priorities, 1, kPriorities);
  limits_.overhead_bytes = std::min<std::uint32_t>(limits_.overhead_bytes, 65'535);
  index_mask_ = std::bit_ceil(config.max_connections) - 1;
  max_half_open_ = config.max_half_open.value_or(std::max<std::uint32_t>(config.max_connections / 4, 1));
  slots_.resize(config.max_connections);
  for (std::uint32_t i = config.max_connections; i-- > 0;)
    slots_[i].id = random_.seeded() != nullptr ? seeded_id(*random_.seeded(), i) : draw_id(i, 0);
  by_peer_ = decltype(by_peer_)(0, PeerKeyHash{random_.key()});
  if (config.max_accepted_per_address) accepted_from_ = {*config.max_accepted_per_address, random_.key()};
  free_slots_.reserve(config.max_connections);
  for (std::uint32_t i = 0; i < config.max_connections; ++i) free_slots_.push(i);
  jobs_.resize(config.max_jobs);
  deadlines_.reserve(std::size_t{config.max_connections} * 2 + config.max_jobs);
  active_.reserve(64);
  completions_.reserve(256);
  touched_.reserve(limits_.burst);
  answers_.reserve(kRxBurstsPerPoll * limits_.burst);
  acks_.batches.resize(limits_.burst);
  links_ = {.completions = &completions_,
            .tx = &tx_,
            .holds = &holds_,
            .acks = &acks_,
            .jobs = jobs_,
            .stats = &stats_,
            .frame = &frame_,
            .limits = limits_,
            .late = {},
            .packets_wait = false,
            .random = &random_,
            .reassembly_bytes = config.reassembly_bytes,
            .claims = config.count_job_claims ? &claims_.emplace() : nullptr,
            .violators = &violators_,
            .index_mask = index_mask_};
  rx_.resize(limits_.burst);
  fetches_.resize(limits_.burst);
  tx_.packets.resize(limits_.burst);
  tx_.messages.resize(limits_.burst);
  tx_buffers_.resize(std::size_t{limits_.burst} * limits_.max_packet_bytes);
}

std::vector<ConnectionId> ShardCore::first_connections(const ShardConfig& config) {
  if (!config.seed) throw InputError("the connection ids of a shard without a seed are not known; set seed");
  // Draw in the same order as the constructor.
  Random random(*config.seed);
  std::vector<ConnectionId> ids(config.max_connections);
  for (std::uint32_t i = config.max_connections; i-- > 0;) ids[i] = seeded_id(random, i);
  return ids;
}

ConnectionId ShardCore::draw_id(std::uint32_t index, ConnectionId last) {
  for (;;) {
    const ConnectionId id = (static_cast<ConnectionId>(random_.next() >> 32) & ~index_mask_) | index;
    if (id != 0 && id != last) return id;
  }
}

Nanos ShardCore::advance(Nanos now) {
  latest_ = std::max(latest_, std::min(now, kLatestTime));
  return latest_;
}

void ShardCore::listen(const ConnectionConfig& config) {
  checked_algorithm(config, limits_);
  listen_config_ = std::make_shared<const ConnectionConfig>(config);
  listening_ = true;
}

Connection* ShardCore::find(ConnectionId id) const {
  const std::uint32_t index = index_of(id);
  if (index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  if (slot.id != id || slot.connection == nullptr || slot.connection->is_over()) return nullptr;
  return slot.connection.get();
}

ShardCore::Slot* ShardCore::take_slot(Nanos now) {
  if (free_slots_.empty()) return nullptr;
  Slot& slot = slots_[free_slots_.front()];
  free_slots_.pop();
  ++stats_.connections;
  // The time makes the tag differ after the program restarts with the same seed.
  slot.tag = random_.fresh() ^ static_cast<std::uint64_t>(now.count) * 0x9E3779B97F4A7C15ULL;
  return &slot;
}

Connection* ShardCore::make_connection(Slot& slot, const Address& remote,
                                       const std::shared_ptr<const ConnectionConfig>& config, Nanos now) {
  slot.connection = std::make_unique<Connection>(slot.id, remote, config,
                                                 cc::find_algorithm(config->congestion_control), links_, now);
  if (violators_.knows(remote, now)) slot.connection->start_at_min_window(now);
  return slot.connection.get();
}

void ShardCore::free_connection(std::uint32_t index) {
  Slot& slot = slots_[index];
  Connection& connection = *slot.connection;
  if (!tx_.empty()) tx_.drop_destination(&connection.remote());
  const auto known = by_peer_.find({connection.remote(), connection.peer_connection()});
  if (known != by_peer_.end() && known->second == index) by_peer_.erase(known);
  deadlines_.set(index, Nanos::never());
  deadlines_.set(watch_deadline(index), Nanos::never());
  if (!connection.is_proven())
    --stats_.half_open;
  else if (connection.was_accepted())
    accepted_from_.remove(connection.remote());
  keep(index, Kept::taken);
  slot.id = draw_id(index, slot.id);
  slot.connection.reset();
  free_slots_.push(index);
  --stats_.connections;
}

void ShardCore::keep(std::uint32_t index, Kept kept) {
  Slot& slot = slots_[index];
  if (slot.kept == kept) return;
  if (slot.kept != Kept::taken) {
    Queue& old = queue(slot.kept);
    (slot.before == kNoSlot ? old.first : slots_[slot.before].after) = slot.after;
    (slot.after == kNoSlot ? old.last : slots_[slot.after].before) = slot.before;
  }
  slot.kept = kept;
  slot.before = slot.after = kNoSlot;
  if (kept == Kept::taken) return;
  Queue& entered = queue(kept);
  slot.before = entered.last;
  (entered.last == kNoSlot ? entered.first : slots_[entered.last].after) = index;
  entered.last = index;
}

std::uint32_t ShardCore::first_of(Kept kept, const Address* like) {
  std::uint32_t first = kNoSlot;
  std::uint32_t index = queue(kept).first;
  for (int i = 0; i < kSlotsLookedAt && index != kNoSlot; ++i, index = slots_[index].after) {
    const Connection& connection = *slots_[index].connection;
    if (connection.active || connection.touched) continue;  // lists of this poll contain this slot
    if (like == nullptr || AddressCounts::network_of(connection.remote()) == AddressCounts::network_of(*like))
      return index;
    if (first == kNoSlot) first = index;
  }
  return first;
}

// No peer that has answered is displaced. A peer that floods a shard from its own address displaces its own
// connections.
bool ShardCore::make_room(const Address& remote, bool is_proven) {
  if (free_slots_.size() > config_.kept_for_connect) return true;
  std::uint32_t index = first_of(Kept::ended);
  if (is_proven && index == kNoSlot) {
    index = first_of(Kept::unproven);
    if (index == kNoSlot) index = first_of(Kept::unanswered, &remote);
    if (index != kNoSlot) ++stats_.unproven_ended;
  }
  if (index == kNoSlot) return false;
  slots_[index].connection->fail(Status::unreachable);
  free_connection(index);
  return true;
}

ConnectionId ShardCore::connect(const Address& remote, const ConnectionConfig& config, Nanos now) {
  now = advance(now);
  if (latest_config_ == nullptr || *latest_config_ != config) {
    checked_algorithm(config, limits_);
    if (config.keys.size() > 1)
      throw InputError(fmt::format("keys: connect() takes one and {} are given", config.keys.size()));
    latest_config_ = std::make_shared<const ConnectionConfig>(config);
  }
  // The seal is created before a slot is taken, because creating it may throw.
  std::unique_ptr<PacketSeal> seal;
  if (!config.keys.empty()) {
    const PacketKey& key = *config.keys.front();
    if (engine_ != nullptr) give_up_copied_keys(now);
    seal = engine(key).connect(key, draw_random());
  }
  if (free_slots_.empty()) {
    std::uint32_t ended = first_of(Kept::ended_own);
    if (ended == kNoSlot) ended = first_of(Kept::ended);
    if (ended != kNoSlot) free_connection(ended);
  }
  Slot* const slot = take_slot(now);
  if (slot == nullptr)
    throw RunError(fmt::format("all {} connections of the shard are in use; raise max_connections or close some",
                               config_.max_connections));
  Connection* connection = make_connection(*slot, remote, latest_config_, now);
  if (seal != nullptr) connection->set_seal(std::move(seal));
  connection->start_connect(slot->tag);
  if (violators_.holds_off(remote, now)) ++stats_.held_off;
  watch(*connection);
  activate(*connection);
  return connection->id();
}

PostResult ShardCore::send(ConnectionId id, const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline,
                           std::uint8_t uncharged) {
  Connection* connection = find(id);
  if (connection == nullptr) return PostResult::closed;
  if (completions_full()) return PostResult::queue_full;
  const PostResult result = connection->send(data, length, tag, deadline, uncharged);
  if (result != PostResult::ok) return result;
  activate(*connection);
  if (!deadline.is_never()) [[unlikely]]
    watch(*connection);
  return result;
}

PostResult ShardCore::receive(ConnectionId id, std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline) {
  Connection* connection = find(id);
  if (connection == nullptr) return PostResult::closed;
  if (completions_full()) return PostResult::queue_full;
  const PostResult result = connection->receive(buffer, capacity, tag, deadline);
  if (result != PostResult::ok) return result;
  activate(*connection);
  if (!deadline.is_never()) [[unlikely]]
    watch(*connection);
  return result;
}

bool ShardCore::cancel(ConnectionId id, std::uint64_t tag, bool is_send) {
  Connection* connection = find(id);
  if (connection == nullptr || !(is_send ? connection->cancel_send(tag) : connection->cancel_receive(tag)))
    return false;
  activate(*connection);
  return true;
}

bool ShardCore::discard_receive(ConnectionId id, std::uint64_t tag, std::uint64_t new_tag) {
  Connection* connection = find(id);
  return connection != nullptr && connection->discard_receive(tag, new_tag);
}

bool ShardCore::close(ConnectionId id) {
  Connection* connection = find_alive(id);
  if (connection == nullptr) return false;
  connection->close();
  activate(*connection);
  return true;
}

bool ShardCore::abort(ConnectionId id, Nanos now) {
  Connection* connection = find(id);
  if (connection == nullptr) return false;
  now = advance(now);
  connection->abort(now);
  activate(*connection);
  deadlines_.set(index_of(id), now);
  return true;
}

JobId ShardCore::add_job(const JobConfig& config) {
  const cc::Parameters& parameters = config.parameters != nullptr ? *config.parameters : cc::default_parameters;
  parameters.validate(cc::Turns::name);
  for (JobId id = 0; id < jobs_.size(); ++id) {
    JobState& job = jobs_[id];
    if (job.used) continue;
    job = JobState{};
    job.used = true;
    job.number = config.number;
    job.augmentation = config.augmentation;
    job.parameters = config.parameters;
    if (config.augmentation.takes_turns()) {
      forward_delays_.resize(slots_.size());
      links_.forward_delays = forward_delays_;
    }
    if (config.augmentation.iteration_aware())
      job.turns =
          std::make_unique<cc::Turns>(config.augmentation.takes_turns(), config.max_rate, parameters.view<cc::Turns>());
    if (config.learn_iterations) job.learner = std::make_unique<cc::IterationLearner>();
    constexpr Nanos longest{1'000'000'000};
    job.pacing_quantum = std::clamp(config.pacing_quantum, Nanos(), longest);
    job.catch_up = std::clamp(config.catch_up, Nanos(), longest);
    pace(job, config.max_rate);
    return id;
  }
  throw RunError(fmt::format("all {} jobs of the shard are in use; raise max_jobs or remove some", jobs_.size()));
}

bool ShardCore::remove_job(JobId id) {
  if (find_job(id) == nullptr) return false;
  for (Slot& slot : slots_) {
    if (slot.connection == nullptr || slot.connection->job() != id) continue;
    slot.connection->attach(Connection::kNoJob);
    slot.connection->waits_for_job = false;
    activate(*slot.connection);
  }
  deadlines_.set(job_deadline(id), Nanos::never());
  jobs_[id] = JobState{};
  return true;
}

bool ShardCore::attach(ConnectionId id, JobId job) {
  Connection* connection = find_alive(id);
  if (connection == nullptr || find_job(job) == nullptr) return false;
  connection->attach(job);
  connection->waits_for_job = false;
  activate(*connection);
  return true;
}

bool ShardCore::begin_iteration(JobId job, Bytes bytes) {
  JobState* state = find_job(job);
  if (state == nullptr) return false;
  state->augmentation.tracker.begin_iteration(bytes);
  // The gate may still hold data of the previous iteration. This data is released.
  if (state->gate.pending()) activate_all(job);
  state->gate.begin_iteration();
  return true;
}

bool ShardCore::learn_iterations(JobId job) {
  JobState* state = find_job(job);
  if (state == nullptr) return false;
  if (!state->augmentation.tracker.exact()) return true;
  state->augmentation.tracker.learn_again();
  // The learner saw no traffic while the application stated the sizes of iterations. What the learner had learned
  // before is outdated.
  if (state->learner != nullptr) *state->learner = {};
  state->in_burst = false;
  return true;
}

PlanState ShardCore::set_plan(JobId job, const PhasePlan& plan, Nanos now) {
  JobState* state = find_job(job);
  if (state == nullptr) return PlanState::unknown_job;
  now = advance(now);
  if (state->learner != nullptr && !state->augmentation.tracker.exact())
    state->gate.clear(PlanState::no_iterations, now);
  else
    state->gate.set(plan, now);
  activate_all(job);
  return state->gate.stats().state;
}

bool ShardCore::clear_plan(JobId job, Nanos now) {
  JobState* state = find_job(job);
  if (state == nullptr || state->gate.stats().state != PlanState::active) return false;
  state->gate.clear(PlanState::removed, advance(now));
  activate_all(job);
  return true;
}

void ShardCore::activate_all(JobId job) {
  for (Slot& slot : slots_)
    if (slot.connection != nullptr && slot.connection->job() == job) activate(*slot.connection);
}

bool ShardCore::set_job_rate(JobId job, Rate rate) {
  JobState* state = find_job(job);
  if (state == nullptr) return false;
  pace(*state, rate);
  // Connections that wait at the old rate must check again.
  if (!state->waiting.empty()) deadlines_.set(job_deadline(job), Nanos(0));
  return true;
}

void ShardCore::pace(JobState& job, Rate rate) const {
  // A burst of four packets is far smaller than a switch's buffer.
  job.max_rate_burst = Bytes{4} * (limits_.max_packet_bytes + limits_.overhead_bytes);
  job.max_rate = rate;
  if (job.turns != nullptr) job.turns->set_max_rate(rate);
  job.pace();
}

std::size_t ShardCore::take_completions(std::span<Completion> out) {
  std::size_t count = 0;
  for (; count < out.size() && !completions_.empty(); completions_.pop()) out[count++] = completions_.front();
  return count;
}

// ---- The work of one poll ----

Nanos ShardCore::poll(Nanos at) {
  const Nanos now = advance(at);
  links_.late = std::max(now - due_, Nanos());
  due_ = work(now);
  const Nanos due = std::min(due_, io_.deadline());
  return due <= now ? at : due;  // `at` is the current time on the caller's clock
}

Nanos ShardCore::work(Nanos now) {
  bool more = false;
  if (engine_ != nullptr) give_up_copied_keys(now);
  if (holds_.waiting() > 0) [[unlikely]]
    holds_.poll(completions_);
  if (!tx_.empty()) flush();
  const bool answers = !answers_.empty();
  for (const std::uint32_t index : answers_)
    if (Connection* connection = slots_[index].connection.get(); connection != nullptr) activate(*connection);
  answers_.clear();
  // Send replies before receiving, because receiving takes as much time as sending them. Timers wait as well, because a
  // packet that prevents a timeout may not have been received yet.
  if (answers && limits_.batch > 1) {
    more = true;
  } else {
    receive_bursts(now, more);
    links_.packets_wait = more;
    fire_timers(now);
  }
  transmit(now, more);
  stats_.ends_held = holds_.ends_waiting();
  if (more || !answers_.empty()) return now;
  // Poll the holds again soon, because nothing signals that the datapath has released bytes.
  return holds_.waiting() > 0 ? std::min(deadlines_.next(), now + kLookAtHoldsAfter) : deadlines_.next();
}

void ShardCore::activate(Connection& connection) {
  if (connection.active) return;
  connection.active = true;
  active_.push(index_of(connection.id()));
}

void ShardCore::receive_bursts(Nanos now, bool& more) {
  for (std::size_t burst = 0; burst < kRxBurstsPerPoll; ++burst) {
    const std::size_t count = io_.receive(rx_);
    if (config_.prefetch && count > 1) prefetch_burst(std::span(rx_).first(count));
    for (std::size_t i = 0; i < count; ++i) on_packet(rx_[i], now);
    for (const std::uint32_t index : touched_) {
      Connection* connection = slots_[index].connection.get();
      connection->touched = false;
      connection->end_of_batch(now);
      if (connection->awaits_answer())
        answers_.push_back(index);
      else
        activate(*connection);
    }
    touched_.clear();
    acks_.used = 0;
    if (count < rx_.size()) return;
  }
  more = true;
}

// The state for a packet is a pointer chain: slot, connection, rings of the connection. If one link of all chains in a
// burst is prefetched at a time, the burst costs about one memory latency per link instead of one per packet. Batched
// hash table look-ups use the same method, and eRPC (NSDI 2019, section 4.4) likewise works on bursts.
void ShardCore::prefetch_burst(std::span<const RxPacket> packets) {
  std::size_t count = 0;
  std::uint32_t latest = ~std::uint32_t{0};
  for (const RxPacket& packet : packets) {
    const std::uint32_t index = index_of(wire::peek_connection(packet.bytes));
    if (index == latest || index >= slots_.size()) continue;
    latest = index;
    fetches_[count++] = {nullptr, index, wire::peek_ack(packet.bytes)};
    __builtin_prefetch(&slots_[index]);
    deadlines_.prefetch(index);
  }
  if (count < 2) return;
  const std::span fetches = std::span(fetches_).first(count);
  for (Fetch& fetch : fetches) {
    fetch.connection = slots_[fetch.index].connection.get();
    if (fetch.connection != nullptr) fetch.connection->prefetch(fetch.acknowledges);
  }
  for (const Fetch& fetch : fetches)
    if (fetch.connection != nullptr) fetch.connection->prefetch_rings(fetch.acknowledges);
}

void ShardCore::prefetch(std::span<const ConnectionId> ids) const {
  if (!config_.prefetch) return;
  const auto each = [&](auto visit) {
    for (const ConnectionId id : ids)
      if (index_of(id) < slots_.size()) visit(slots_[index_of(id)]);
  };
  each([this](const Slot& slot) {
    __builtin_prefetch(&slot);
    deadlines_.prefetch(static_cast<std::uint32_t>(&slot - slots_.data()));
  });
  each([](const Slot& slot) {
    if (slot.connection != nullptr) slot.connection->prefetch(true);
  });
  each([](const Slot& slot) {
    if (slot.connection != nullptr) slot.connection->prefetch_rings(true);
  });
}

// Nothing shows who has sent a sealed packet without its end. So its sender detects the loss as usual.
void ShardCore::on_trimmed(const RxPacket& packet) {
  wire::Header header;
  if (wire::is_sealed(packet.bytes)) {
    ++stats_.trimmed_packets;
    return;
  }
  if (const wire::ParseError error = wire::Reader::trimmed_header(packet.bytes, header);
      error != wire::ParseError::none) {
    count(error);
    return;
  }
  const std::uint32_t index = index_of(header.connection);
  if (index >= slots_.size() || slots_[index].id != header.connection || slots_[index].connection == nullptr) {
    ++stats_.unknown_connection;
    return;
  }
  Connection& connection = *slots_[index].connection;
  if (slots_[index].tag != header.tag) {
    ++stats_.forged_packets;
    return;
  }
  if (connection.is_over() || !connection.may_come_from(packet.source)) {
    ++stats_.unknown_connection;
    return;
  }
  ++stats_.trimmed_packets;
  connection.on_trimmed_packet(header);
  activate(connection);
}

void ShardCore::on_packet(const RxPacket& packet, Nanos now) {
  ++stats_.packets_received;
  if (packet.is_trimmed) [[unlikely]] {
    on_trimmed(packet);
    return;
  }
  if (wire::is_sealed(packet.bytes)) [[unlikely]] {
    on_sealed(packet, now);
    return;
  }
  wire::Reader reader;
  wire::Header header;
  const wire::ParseError error = reader.begin(packet.bytes, packet.tail, packet.virtual_bytes, header);
  if (error == wire::ParseError::foreign) {
    on_foreign(packet);
    return;
  }
  if (error != wire::ParseError::none) {
    count(error);
    return;
  }
  if (header.connection == 0) {
    on_unknown_connection(packet, header, reader, now);
    return;
  }
  const std::uint32_t index = index_of(header.connection);
  if (index >= slots_.size() || slots_[index].id != header.connection || slots_[index].connection == nullptr) {
    on_unknown(packet, header, now);
    return;
  }
  if (slots_[index].tag != header.tag) {
    // The packet was forged, or was sent before a restart to a connection whose id now belongs to another connection.
    ++stats_.forged_packets;
    send_reset(packet, header, now);
    return;
  }
  Connection& connection = *slots_[index].connection;
  if (connection.is_over() || !connection.may_come_from(packet.source)) {
    ++stats_.unknown_connection;
    return;
  }
  deliver(connection, packet, header, reader, now);
}

void ShardCore::count(wire::ParseError error) {
  if (error == wire::ParseError::truncated)
    ++stats_.truncated_packets;
  else if (error == wire::ParseError::checksum)
    ++stats_.corrupted_packets;
  else
    ++stats_.malformed_packets;
}

void ShardCore::on_sealed(const RxPacket& packet, Nanos now) {
  wire::Header header;
  if (const wire::ParseError error = wire::Reader::sealed_header(packet.bytes, header);
      error != wire::ParseError::none) {
    count(error);
    return;
  }
  wire::Reader reader;
  if (header.connection == 0) {
    if ((header.flags & wire::clear) == 0) {
      ++stats_.malformed_packets;
      return;
    }
    reader.begin_opened(packet.bytes.subspan(wire::kHeaderBytes), packet.tail, packet.virtual_bytes);
    on_unknown_connection(packet, header, reader, now);
    return;
  }
  const std::uint32_t index = index_of(header.connection);
  if (index >= slots_.size() || slots_[index].id != header.connection || slots_[index].connection == nullptr) {
    on_unknown_sealed(packet, header, now);
    return;
  }
  Connection& connection = *slots_[index].connection;
  if (connection.is_over() || !connection.may_come_from(packet.source)) {
    ++stats_.unknown_connection;
    return;
  }
  if (!connection.is_sealed()) {
    ++stats_.forged_packets;
    return;
  }
  const std::size_t size = packet.bytes.size() + packet.tail.size();
  if (opened_.size() < size) opened_.resize(std::max<std::size_t>(size, limits_.max_packet_bytes));
  if (connection.open(packet, header, opened_, reader, now)) deliver(connection, packet, header, reader, now);
}

SealEngine& ShardCore::engine(const PacketKey& key) {
  if (engine_ == nullptr) engine_ = key.make_engine();
  return *engine_;
}

// These bytes come from the system even if the shard has a seed, because they do not influence which packets are sent.
EndRandom ShardCore::draw_random() {
  EndRandom random;
  draw_system_random(random);
  return random;
}

// Ends sealed connections without sending anything. Any further packet, even a notification, might reuse a packet
// number that a copy of this process uses with the same key.
void ShardCore::give_up_copied_keys(Nanos now) {
  if (!engine_->was_copied(now)) return;
  for (const Slot& slot : slots_) {
    if (slot.connection == nullptr || !slot.connection->is_sealed()) continue;
    slot.connection->fail(Status::aborted);
    activate(*slot.connection);
  }
}

SealedPacket ShardCore::as_greeting(const RxPacket& packet, const wire::Header& header) {
  return {.number = header.packet_number,
          .clear = true,
          .header = wire::sealed_parts(packet.bytes),
          .body = {packet.bytes.subspan(wire::kHeaderBytes), packet.tail}};
}

const PacketKey* ShardCore::key_of(const RxPacket& packet, const wire::Header& header, const Greeting& greeting,
                                   WorkBudget& failed, Nanos now) {
  if (!greeting.has_key || (header.flags & wire::sealed) == 0) return nullptr;
  for (const auto& key : listen_config_->keys) {
    if (key->id() != greeting.key.id) continue;
    if (engine(*key).opens_greeting(*key, greeting.key.random, as_greeting(packet, header),
                                    wire::seal_of(packet.bytes)))
      return key.get();
    failed.pay(now);
  }
  return nullptr;
}

void ShardCore::deliver(Connection& connection, const RxPacket& packet, const wire::Header& header,
                        wire::Reader& reader, Nanos now) {
  const std::uint32_t index = index_of(connection.id());
  const bool was_proven = connection.is_proven();
  const bool is_settled = connection.state() != Connection::State::connecting && !connection.is_half_open();
  connection.on_packet(header, reader, packet, now);
  if (!is_settled) [[unlikely]] {
    if (!connection.is_half_open() && slots_[index].kept > Kept::ended_own) keep(index, Kept::taken);
    if (!was_proven && connection.is_proven()) {
      // Several connections from this address may have been waiting for proof.
      if (accepted_from_.has_share(connection.remote())) {
        connection.abort(now);
        activate(connection);
      }
      accepted_from_.add(connection.remote());
    }
    if (connection.peer_connection() != 0) enter_peer(connection);
    watch(connection);  // the time limits of a connection change when its handshake ends
  }
  if (connection.touched) return;
  connection.touched = true;
  touched_.push_back(index);
}

// A peer has at most one connection with a given id. An older connection with this id is from before the peer's
// restart.
void ShardCore::enter_peer(Connection& connection) {
  const std::uint32_t index = index_of(connection.id());
  const auto [known, is_new] = by_peer_.try_emplace({connection.remote(), connection.peer_connection()}, index);
  if (is_new || known->second == index) return;
  Connection& old = *slots_[known->second].connection;
  if (!may_replace(old, connection.is_sealed() ? std::optional(connection.key_id()) : std::nullopt)) return;
  old.on_forgotten();
  activate(old);
  known->second = index;
}

void ShardCore::on_foreign(const RxPacket& packet) {
  const std::uint32_t source = wire::source_of_version_2_connect(packet.bytes);
  if (source == 0 || !packet.tail.empty()) {
    ++stats_.foreign_packets;
    return;
  }
  ++stats_.refused_connects;
  const auto bytes = wire::version_2_close(source);
  TxPacket reply;
  reply.destination = &packet.source;
  reply.header = bytes;
  stats_.packets_sent += io_.send({&reply, 1});
}

// Answers a packet of a connection that this program does not know, for example after a restart. RESET informs the
// peer, so that it need not wait. The answer is not longer than the packet. It repeats the tag, which only the packet's
// sender and its intended receiver know.
void ShardCore::on_unknown(const RxPacket& packet, const wire::Header& header, Nanos now) {
  ++stats_.unknown_connection;
  send_reset(packet, header, now);
}

void ShardCore::send_reset(const RxPacket& packet, const wire::Header& header, Nanos now) {
  constexpr std::size_t size = wire::kHeaderBytes + wire::kResetFrameBytes;
  if (packet.bytes.size() + packet.tail.size() + packet.virtual_bytes < size || !may_reset(now)) return;
  answer(packet.source, 0, header.tag, [&](wire::Writer& writer) { writer.reset(header.connection); });
}

bool ShardCore::may_reset(Nanos now) {
  if (config_.resets_per_second == 0) return false;
  if (resets_.is_spent(now)) {
    ++stats_.resets_withheld;
    return false;
  }
  resets_.pay(now);
  ++stats_.resets_sent;
  return true;
}

// Answers a sealed packet of an unknown connection. The connection's key is not known, so this shard sends one RESET
// for each of its keys. Together the RESETs are not longer than the packet. If this leaves out keys, the next sealed
// packet of an unknown connection is answered with the keys that follow.
void ShardCore::on_unknown_sealed(const RxPacket& packet, const wire::Header& header, Nanos now) {
  ++stats_.unknown_connection;
  constexpr std::size_t size = wire::kHeaderBytes + wire::kResetFrameBytes;
  const auto& keys = listen_config_ != nullptr && !listen_config_->keys.empty() ? listen_config_ : latest_config_;
  if (keys == nullptr || keys->keys.empty()) return;
  const std::size_t count = std::min(keys->keys.size(), (packet.bytes.size() + packet.tail.size()) / size);
  for (std::size_t i = 0; i < count && may_reset(now); ++i) {
    const PacketKey& key = *keys->keys[next_reset_key_++ % keys->keys.size()];
    std::array<std::byte, size> buffer{};
    wire::Writer writer(buffer);
    writer.reset(header.connection);
    const std::span<std::byte> bytes = writer.finish_unsealed(wire::Header{wire::sealed | wire::clear, 0, 0, 0, {}, 0});
    const PacketSeal::Tag tag = engine(key).answer_of_restarted(key, wire::seal_of(packet.bytes), header.connection);
    std::memcpy(bytes.data() + wire::kSealOffset, tag.data(), tag.size());
    TxPacket reply;
    reply.destination = &packet.source;
    reply.header = bytes;
    stats_.packets_sent += io_.send({&reply, 1});
  }
}

void ShardCore::on_unknown_connection(const RxPacket& packet, const wire::Header& header, wire::Reader& reader,
                                      Nanos now) {
  // Peek without consuming, because the connection reads the packet from its first frame.
  wire::Reader look = reader;
  wire::Frame frame;
  if (!look.next(frame)) {
    ++stats_.malformed_packets;
    return;
  }
  if (frame.type == wire::FrameType::reset) {
    const std::uint32_t connection = frame.reset;
    if (look.next(frame) || look.error() != wire::ParseError::none)
      ++stats_.malformed_packets;
    else
      on_reset(packet, header, connection, now);
    return;
  }
  Greeting greeting;
  greeting.connect = frame.connect;
  bool is_greeting = frame.type == wire::FrameType::connect && wire::is_plausible(frame.connect);
  bool more = is_greeting && look.next(frame);
  if (more && frame.type == wire::FrameType::key) {
    greeting.has_key = true;
    greeting.key = frame.key;
    more = look.next(frame);
  }
  if (more) {
    greeting.has_cookie = frame.type == wire::FrameType::token;
    greeting.cookie = frame.cookie;
    is_greeting = greeting.has_cookie && !look.next(frame);
  }
  // Only the seal authenticates the contents of a sealed packet.
  is_greeting = is_greeting && ((header.flags & wire::sealed) == 0 || greeting.has_key);
  if (!is_greeting || look.error() != wire::ParseError::none)
    ++stats_.malformed_packets;
  else
    on_connect(packet, header, reader, greeting, now);
}

void ShardCore::on_reset(const RxPacket& packet, const wire::Header& header, std::uint32_t connection, Nanos now) {
  const auto known = by_peer_.find({packet.source, connection});
  const auto is_valid = [&](const Connection& known_here) {
    if (!known_here.is_sealed()) return (header.flags & wire::sealed) == 0 && known_here.peer_tag() == header.tag;
    if ((header.flags & wire::sealed) == 0 || failed_resets_.is_spent(now)) return false;
    const bool is_answer = known_here.is_answer_of_restarted(wire::seal_of(packet.bytes));
    if (!is_answer) failed_resets_.pay(now);
    return is_answer;
  };
  if (known == by_peer_.end() || !is_valid(*slots_[known->second].connection)) {
    ++stats_.forged_resets;
    return;
  }
  Connection& reset = *slots_[known->second].connection;
  if (!reset.is_over() && !reset.is_sealed()) ++stats_.resets_taken;
  reset.on_reset(now);
  watch(reset);
  activate(reset);
}

wire::CloseReason ShardCore::why_refused(const wire::ConnectFrame& connect) const {
  if (!listening_) return wire::CloseReason::refused;
  if (wire::chosen_version(connect) == 0) return wire::CloseReason::version;
  const bool has_space =
      free_slots_.size() > config_.kept_for_connect || has(Kept::ended) || has(Kept::unproven) || has(Kept::unanswered);
  if (!has_space || completions_full()) return wire::CloseReason::full;
  return wire::CloseReason::done;
}

// An attacker on the path can send packets back to their sender. This end's own CONNECT, sealed with the right key,
// would then connect this end to itself instead of its peer.
bool ShardCore::is_turned_back(const RxPacket& packet, const Greeting& greeting) const {
  if (!greeting.has_key) return false;
  const Connection* const own = find(greeting.connect.source_connection);
  if (own == nullptr || !own->is_sealed() || own->was_accepted() || own->own_random() != greeting.key.random)
    return false;
  const bool is_meant =
      config_.own_address && own->remote() == *config_.own_address && packet.source == *config_.own_address;
  return !is_meant;
}

bool ShardCore::is_of_client(const Connection& connection, const RxPacket& packet, const wire::Header& header,
                             const Greeting& greeting) {
  return greeting.has_key && (header.flags & wire::sealed) != 0 &&
         connection.opens_greeting(greeting.key, as_greeting(packet, header), wire::seal_of(packet.bytes));
}

// Only the key decides whether a peer may replace a connection. A cookie or an ACCEPT proves that a peer receives
// packets at an address, not that it has the key.
bool ShardCore::may_replace(const Connection& old, std::optional<std::uint64_t> key) {
  return !old.is_sealed() || key == old.key_id();
}

void ShardCore::on_connect(const RxPacket& packet, const wire::Header& header, wire::Reader& reader,
                           const Greeting& greeting, Nanos now) {
  const wire::ConnectFrame& peer = greeting.connect;
  if (is_turned_back(packet, greeting)) {
    ++stats_.forged_packets;
    return;
  }
  const PeerKey key{packet.source, peer.source_connection};
  const auto known = by_peer_.find(key);
  if (known != by_peer_.end()) {
    Connection& connection = *slots_[known->second].connection;
    if (connection.was_accepted() && connection.peer_tag() == peer.tag) {
      if (connection.is_replay(header)) return;  // check this before any cryptography
      if (connection.is_sealed() && !is_of_client(connection, packet, header, greeting))
        ++stats_.forged_packets;
      else if (!connection.is_over())
        deliver(connection, packet, header, reader, now);
      return;
    }
  }
  // Send no answer. An honest peer that shares the violator's address is only delayed, because it repeats its CONNECT.
  if (violators_.holds_off(packet.source, now)) {
    ++stats_.held_off;
    return;
  }
  const auto refuse = [&](wire::CloseReason reason) {
    ++stats_.refused_connects;
    answer(packet.source, peer.source_connection, peer.tag, [&](wire::Writer& writer) { writer.close(reason); });
  };
  if (const wire::CloseReason refusal = why_refused(peer); refusal != wire::CloseReason::done) return refuse(refusal);
  // A peer that connects with the id of a live connection claims to have restarted. Such a peer must prove its address.
  const Cookies::Worth cookie =
      greeting.has_cookie ? cookies_.worth(greeting.cookie, key, peer.tag, random_, now) : Cookies::Worth::nothing;
  const bool is_proven = cookie == Cookies::Worth::proof;
  // After many CONNECTs with a wrong seal, no key is tried before the address is proven. After many from proven
  // addresses, no key is tried until the budget allows another attempt. The peer gets a RETRY in both cases.
  WorkBudget& failed =
      is_proven ? failed_proven_[siphash(budget_key_, AddressCounts::network_of(packet.source)) % kProvenBudgets]
                : failed_unproven_;
  const bool is_costly = greeting.has_key && failed.is_spent(now);
  // A restarted peer may replace its counted connection by a new one.
  const bool replaces_counted = known != by_peer_.end() && slots_[known->second].connection->was_accepted() &&
                                slots_[known->second].connection->is_proven();
  const bool is_crowd = accepted_from_.has_share(packet.source, replaces_counted ? 1 : 0);
  const bool has_space = free_slots_.size() > config_.kept_for_connect || is_proven || has(Kept::ended);
  if (is_costly || !has_space ||
      (!is_proven &&
       (known != by_peer_.end() || cookie == Cookies::Worth::used || stats_.half_open >= max_half_open_ || is_crowd))) {
    ++stats_.retries_sent;
    const std::uint64_t next = cookies_.make(key, peer.tag, random_, now);
    answer(packet.source, peer.source_connection, peer.tag, [&](wire::Writer& writer) { writer.retry(next); });
    return;
  }
  if (is_crowd) return refuse(wire::CloseReason::full);
  const PacketKey* const key_used = key_of(packet, header, greeting, failed, now);
  if (key_used == nullptr && (greeting.has_key || !listen_config_->keys.empty())) return refuse(wire::CloseReason::key);
  if (known != by_peer_.end() && !may_replace(*slots_[known->second].connection,
                                              key_used != nullptr ? std::optional(key_used->id()) : std::nullopt)) {
    ++stats_.forged_packets;
    return;
  }
  if (!make_room(packet.source, is_proven)) return;  // the peer repeats its CONNECT, and may then find room
  std::unique_ptr<PacketSeal> seal;
  if (key_used != nullptr) seal = engine(*key_used).accept(*key_used, greeting.key.random, draw_random());
  if (const auto still = by_peer_.find(key); still != by_peer_.end()) {
    Connection& old = *slots_[still->second].connection;
    old.on_forgotten();
    activate(old);
    by_peer_.erase(still);
  }
  Slot& slot = *take_slot(now);
  Connection* connection = make_connection(slot, packet.source, listen_config_, now);
  if (seal != nullptr) connection->set_seal(std::move(seal));
  connection->start_accept(peer, slot.tag, is_proven, now);
  keep(index_of(slot.id), is_proven ? Kept::unanswered : Kept::unproven);
  if (is_proven) {
    ++stats_.cookies_accepted;
    cookies_.use(greeting.cookie);
    accepted_from_.add(packet.source);
  } else {
    ++stats_.half_open;
  }
  watch(*connection);
  by_peer_[key] = index_of(slot.id);
  completions_.push({.kind = Completion::Kind::accepted, .connection = slot.id});
  deliver(*connection, packet, header, reader, now);
}

template <typename Frames>
void ShardCore::answer(const Address& remote, std::uint32_t connection, std::uint64_t tag, Frames frames) {
  std::array<std::byte, wire::kHeaderBytes + wire::kConnectFrameBytes> buffer{};
  wire::Writer writer(buffer);
  frames(writer);
  wire::Header header;
  header.connection = connection;
  header.tag = tag;
  TxPacket packet;
  packet.destination = &remote;
  packet.header = writer.finish(header, {});
  stats_.packets_sent += io_.send({&packet, 1});
}

void ShardCore::fire_timers(Nanos now) {
  while (deadlines_.next() <= now) {
    const std::uint32_t id = deadlines_.top();
    deadlines_.set(id, Nanos::never());
    if (id < config_.max_connections) {
      Connection* connection = slots_[id].connection.get();
      connection->on_timer(now);
      activate(*connection);
    } else if (id < watch_deadline(0)) {
      activate_waiting(jobs_[id - config_.max_connections], now);
    } else {
      Connection* connection = slots_[id - watch_deadline(0)].connection.get();
      connection->on_watch(now);
      watch(*connection);
      activate(*connection);
    }
  }
}

void ShardCore::activate_waiting(JobState& job, Nanos now) {
  while (!job.waiting.empty() && job.pacer.ready_at(now) <= now) {
    const std::uint32_t index = job.waiting.front();
    job.waiting.pop();
    Connection* connection = slots_[index].connection.get();
    if (connection == nullptr || !connection->waits_for_job || &jobs_[connection->job()] != &job) continue;
    connection->waits_for_job = false;
    activate(*connection);
    return;  // activate one connection at a time: the next one continues when this one has sent
  }
  if (!job.waiting.empty()) {
    const auto number = static_cast<std::uint32_t>(&job - jobs_.data());
    deadlines_.set(job_deadline(number), job.pacer.ready_at(now));
  }
}

void ShardCore::transmit(Nanos now, bool& more) {
  std::size_t budget = std::max(kTxPacketsPerPoll / limits_.burst, std::size_t{1}) * limits_.burst;
  while (!active_.empty()) {
    if (budget == 0) {
      more = true;
      break;
    }
    const std::uint32_t index = active_.front();
    Connection& connection = *slots_[index].connection;
    // If polls are on time, pacing interleaves the packets of a job's flows. Late packets must be interleaved here,
    // because consecutive bursts of single flows would share a full queue unevenly.
    const bool in_turn = links_.late > Nanos() && connection.job() != Connection::kNoJob;
    const std::size_t turns = in_turn ? 1 : kPacketsPerTurn;
    auto blocked = Connection::Blocked::no;
    bool datapath_full = false;
    for (std::size_t turn = 0; turn < turns && budget > 0; ++turn) {
      if (tx_.end == tx_.packets.size() && !flush()) {
        datapath_full = true;
        break;
      }
      BuiltPacket packet;
      blocked = connection.build(now, std::span(tx_buffers_).subspan(tx_.used, limits_.max_packet_bytes), packet);
      if (blocked != Connection::Blocked::no) break;
      tx_.used += packet.header.size();
      tx_.messages[tx_.end] = packet.message;
      tx_.packets[tx_.end++] = {&connection.remote(),  packet.header, packet.payload, packet.ecn,
                                connection.priority(), packet.hold,   packet.path};
      ++stats_.packets_sent;
      --budget;
    }
    if (datapath_full) break;  // the connection stays first until the datapath has room
    active_.pop();
    connection.active = false;
    const std::uint32_t job = connection.job();
    if (blocked == Connection::Blocked::no) {
      activate(connection);
    } else {
      if (blocked == Connection::Blocked::job_pacing && !connection.waits_for_job) {
        connection.waits_for_job = true;
        jobs_[job].waiting.push(index);
      }
      if (connection.state() >= Connection::State::draining) [[unlikely]]
        keep(index, connection.was_accepted() ? Kept::ended : Kept::ended_own);
      if (connection.state() == Connection::State::dead)
        free_connection(index);
      else
        deadlines_.set(index, connection.next_deadline());
    }
    if (job != Connection::kNoJob) activate_waiting(jobs_[job], now);
  }
  flush();
}

bool ShardCore::flush() {
  while (tx_.begin < tx_.end) {
    if (tx_.packets[tx_.begin].destination == nullptr) {  // this packet was dropped while it was queued
      ++tx_.begin;
      continue;
    }
    std::size_t end = tx_.begin + 1;
    while (end < tx_.end && tx_.packets[end].destination != nullptr) ++end;
    const std::size_t sent = io_.send(std::span(tx_.packets).subspan(tx_.begin, end - tx_.begin));
    tx_.begin += sent;
    if (tx_.begin < end) return false;
  }
  tx_.begin = tx_.end = tx_.used = 0;
  return true;
}

}  // namespace mltcp::transport
