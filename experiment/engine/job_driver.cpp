// The job driver (see job_driver.h).
#include "mltcp/experiment/engine/job_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "mltcp/base/error.h"
#include "mltcp/experiment/engine/compute_times.h"
#include "mltcp/experiment/engine/internal/known.h"
#include "mltcp/transport/crc32c.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint32_t receives_per_connection = 8;

[[noreturn]] void fail(const workload::Job& job, Status status) {
  throw RunError(fmt::format("job \"{}\": a connection ended before the job did: {}", job.name, to_text(status)));
}

}  // namespace

Payload::Payload(std::uint64_t seed, Bytes longest) : pattern_(longest + step * turns) {
  Random random = Random::stream(seed, 0xB17E5);
  for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random.next() >> 56);
}

std::uint32_t Payload::checksum(std::uint64_t number, Bytes length) {
  const auto [at, is_new] = known_.try_emplace({number % turns, length}, 0);
  if (is_new) at->second = crc32c(0, message(number, length));
  return at->second;
}

// ---- a receiving host -----------------------------------------------------------------------------------------------

class JobDriver::Receiver final : public Pollable {
 public:
  Receiver(JobNetwork& network, const Settings& settings, std::uint32_t worker, Payload* payload)
      : settings_(settings),
        payload_(payload),
        shard_(network.host({JobNetwork::Side::receiver, settings.number, worker}),
               shard_config(settings.seed, settings.number, worker, settings.job.flows)) {
    ConnectionConfig config = settings.connection;
    config.max_receives = 4 * receives_per_connection;
    shard_.listen(config);
  }

  Nanos poll(Nanos now) override {
    Nanos next = shard_.poll(now);
    while (const std::size_t count = shard_.take_completions(completions_)) {
      for (std::size_t i = 0; i < count; ++i) on_completion(completions_[i]);
      next = shard_.poll(now);  // what was posted is told to the sender at once
    }
    return next;
  }

  std::uint64_t verified = 0;
  std::uint64_t errors = 0;

 private:
  struct Flow {
    std::uint64_t next_message = 0;
    std::vector<std::vector<std::byte>> buffers;
    std::vector<std::uint64_t> free;  ///< buffers to post
  };

  void on_completion(const Completion& completion) {
    if (completion.kind == Completion::Kind::accepted) {
      Flow& flow = flows_[completion.connection];
      flow.buffers.resize(receives_per_connection);
      for (std::uint64_t buffer = 0; buffer < receives_per_connection; ++buffer) {
        if (settings_.real_payload) flow.buffers[buffer].resize(segment_bytes);
        flow.free.push_back(buffer);
      }
      post(completion.connection, flow);
    } else if (completion.kind == Completion::Kind::received && completion.status == Status::ok) {
      Flow& flow = flows_[completion.connection];
      if (payload_ != nullptr) verify(flow, completion);
      flow.free.push_back(completion.tag % receives_per_connection);
      post(completion.connection, flow);
    } else if (completion.kind == Completion::Kind::closed || completion.status != Status::ok) {
      fail(settings_.job, completion.status);
    }
  }

  void post(ConnectionId connection, Flow& flow) {
    while (!flow.free.empty()) {
      // The n-th receive that is posted gets the n-th message: the tag tells its number and where its bytes are.
      const std::uint64_t buffer = flow.free.back();
      const std::uint64_t tag = flow.next_message * receives_per_connection + buffer;
      const PostResult result = settings_.real_payload ? shard_.receive(connection, flow.buffers[buffer], tag)
                                                       : shard_.receive_virtual(connection, segment_bytes, tag);
      // While an early message waits for a lost packet, later ones may fill the window: posted with the next
      // completion.
      if (result == PostResult::queue_full) return;
      if (result != PostResult::ok) fail(settings_.job, Status::closed);
      flow.free.pop_back();
      ++flow.next_message;
    }
  }

  void verify(const Flow& flow, const Completion& completion) {
    const std::uint64_t number = completion.tag / receives_per_connection;
    const auto& buffer = flow.buffers[completion.tag % receives_per_connection];
    ++verified;
    if (crc32c(0, std::span(buffer).first(completion.bytes)) != payload_->checksum(number, completion.bytes)) ++errors;
  }

  const Settings& settings_;
  Payload* payload_;
  Shard shard_;
  std::array<Completion, 16> completions_;
  std::map<ConnectionId, Flow> flows_;
};

// ---- the job and its sending hosts ----------------------------------------------------------------------------------

class JobDriver::Sender final : public Pollable {
 public:
  Sender(JobNetwork& network, const Settings& settings, std::uint32_t worker, Payload* payload, Iterations& iterations)
      : network_(network),
        end_{JobNetwork::Side::sender, settings.number, worker},
        settings_(settings),
        payload_(payload),
        iterations_(iterations),
        shard_(network.host(end_), shard_config(settings.seed, settings.number, worker, settings.job.flows)) {
    job_ = shard_.add_job(settings.job_config());
    const Address& peer = network.address({JobNetwork::Side::receiver, settings.number, worker});
    for (std::uint32_t i = 0; i < settings.job.flows; ++i) {
      Flow flow;
      flow.connection = shard_.connect(peer, settings.connection, network.now());
      expect_known(shard_.attach(flow.connection, job_), "attach()");
      flows_.push_back(std::move(flow));
    }
  }

  Nanos poll(Nanos now) override;

  [[nodiscard]] bool connected() const { return connected_ == flows_.size(); }
  void wake() { network_.wake(end_); }
  void begin_iteration(Bytes bytes) { expect_known(shard_.begin_iteration(job_, bytes), "begin_iteration()"); }
  PlanState set_plan(const PhasePlan& plan) {
    const PlanState state = shard_.set_plan(job_, plan, network_.now());
    wake();
    return state;
  }
  void clear_plan() {
    shard_.clear_plan(job_, network_.now());
    wake();
  }
  [[nodiscard]] GateStats gate() const { return shard_.gate_stats(job_); }
  /// Sends `bytes`, at most at `rate`; their deliveries count for transfer number `transfer`.
  void send(Bytes bytes, Rate rate, std::size_t transfer) {
    expect_known(shard_.set_job_rate(job_, rate), "set_job_rate()");
    const Bytes share = bytes / flows_.size();
    const Bytes left_over = bytes % flows_.size();
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const Bytes part = share + (i < left_over ? 1 : 0);
      if (part > 0) flows_[i].to_post.emplace_back(transfer, part);
      post(flows_[i]);
    }
  }
  [[nodiscard]] std::uint64_t retransmitted_packets() const {
    std::uint64_t packets = 0;
    for (const Flow& flow : flows_)
      if (const auto stats = shard_.stats(flow.connection)) packets += stats->retransmitted_packets;
    return packets;
  }
  [[nodiscard]] std::uint64_t marked_packets() const {
    std::uint64_t packets = 0;
    for (const Flow& flow : flows_)
      if (const auto stats = shard_.stats(flow.connection)) packets += stats->ce_packets;
    return packets;
  }

 private:
  struct Flow {
    ConnectionId connection = 0;
    std::uint64_t next_message = 0;
    /// Bytes to post, per transfer, in order.
    std::deque<std::pair<std::size_t, Bytes>> to_post;
  };

  bool take_completions();

  void post(Flow& flow) {
    while (!flow.to_post.empty()) {
      auto& [transfer, bytes] = flow.to_post.front();
      const Bytes length = std::min(bytes, segment_bytes);
      const PostResult result =
          payload_ != nullptr ? shard_.send(flow.connection, payload_->message(flow.next_message, length), transfer)
                              : shard_.send_virtual(flow.connection, length, transfer);
      if (result == PostResult::queue_full) return;
      if (result != PostResult::ok) fail(settings_.job, Status::closed);
      ++flow.next_message;
      bytes -= length;
      if (bytes == 0) flow.to_post.pop_front();
    }
  }

  JobNetwork& network_;
  const JobNetwork::End end_;
  const Settings& settings_;
  Payload* payload_;
  Iterations& iterations_;
  Shard shard_;
  std::array<Completion, 32> completions_;
  JobId job_ = 0;
  std::vector<Flow> flows_;
  std::size_t connected_ = 0;
};

/// The job's clock: its phases, which all workers go through together.
class JobDriver::Iterations {
 public:
  explicit Iterations(const Settings& settings)
      : settings_(settings), compute_times_(settings_.job, settings.seed, settings.number) {}

  void add(Sender& sender) { senders_.push_back(&sender); }

  void start(Nanos epoch) {
    epoch_ = epoch;
    wake_ = epoch + settings_.job.start;
    state_ = State::waiting;
    senders_.front()->wake();
  }
  [[nodiscard]] bool done() const { return times_.size() >= settings_.iterations; }
  [[nodiscard]] std::size_t recorded() const { return times_.size(); }
  /// When advance() has something to do by itself. The sender that called advance() last asks to be polled then.
  [[nodiscard]] Nanos wake() const { return wake_; }

  [[nodiscard]] JobResult result() const {
    JobResult result;
    result.name = settings_.job.name;
    result.iterations = times_;
    result.starts.assign(starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(times_.size()));
    for (Nanos& start : result.starts) start -= epoch_;
    result.bytes = delivered_;
    result.retransmitted_packets = done() ? retransmitted_packets_ : retransmitted_packets();
    const GateStats gate = done() ? gate_ : gate_stats();
    result.gate_waited = gate.waited;
    result.gate_corrections = gate.corrections;
    if (gate.state != PlanState::none && gate.state != PlanState::active) result.plan_dropped = to_text(gate.state);
    result.iteration_compute = computes_;
    result.compute = settings_.job.compute_per_iteration();
    result.bytes_per_iteration = settings_.job.bytes_per_iteration() * senders_.size();
    return result;
  }

  void on_delivered(std::size_t transfer, Bytes bytes) {
    transfers_[transfer].undelivered -= bytes;
    undelivered_ -= bytes;
    if (!done()) delivered_ += bytes;
  }

  /// Moves on as far as possible at `now`, in the poll of `caller`; false if it is waiting for time or delivery.
  bool advance(Nanos now, const Sender* caller) {
    bool moved = false;
    for (;;) {
      switch (state_) {
        case State::connecting:
        case State::ended:
          return moved;
        case State::waiting:
        case State::computing:
          if (now < wake_) return moved;
          wake_ = Nanos::never();
          if (state_ == State::waiting)
            begin_iteration(now);
          else
            ++phase_;
          break;
        case State::sending:
          if (transfers_.back().undelivered > 0) return moved;
          ++phase_;
          break;
        case State::draining:
          if (undelivered_ > 0) return moved;
          end_iteration(now);
          if (settings_.stop_when_done && done()) {
            state_ = State::ended;
            return true;
          }
          begin_iteration(now);
          break;
      }
      moved = true;
      while (!begin_phase(now, caller)) ++phase_;
    }
  }

 private:
  enum class State { connecting, waiting, computing, sending, draining, ended };

  /// What one phase still has to deliver, all workers together.
  struct Transfer {
    Bytes undelivered = 0;
  };

  [[nodiscard]] std::uint64_t retransmitted_packets() const {
    std::uint64_t packets = 0;
    for (const Sender* sender : senders_) packets += sender->retransmitted_packets();
    return packets;
  }

  /// Workers decide alike; where clocks made them differ, the one that waited most.
  [[nodiscard]] GateStats gate_stats() const {
    GateStats most;
    for (const Sender* sender : senders_)
      if (const GateStats gate = sender->gate(); sender == senders_.front() || gate.waited > most.waited) most = gate;
    return most;
  }

  void begin_iteration(Nanos now) {
    phase_ = 0;
    transfers_.clear();
    iteration_start_ = now;
    computed_ = {};
    if (!done()) starts_.push_back(now);
    if (!settings_.learn_iterations)
      for (Sender* sender : senders_) sender->begin_iteration(settings_.job.bytes_per_iteration());
    compute_times_.begin_iteration();
  }

  void end_iteration(Nanos now) {
    if (done()) return;
    times_.push_back(now - iteration_start_);
    if (settings_.job.compute_varies()) computes_.push_back(computed_);
    if (!done()) return;
    retransmitted_packets_ = retransmitted_packets();
    gate_ = gate_stats();
  }

  /// Begins the phase that `phase_` names; false if it is over already.
  bool begin_phase(Nanos now, const Sender* caller) {
    if (phase_ == settings_.job.phases.size()) {
      state_ = State::draining;
      return true;
    }
    const workload::Phase& phase = settings_.job.phases[phase_];
    if (phase.kind == workload::Phase::Kind::compute) {
      state_ = State::computing;
      const Nanos compute = compute_times_.of(phase);
      computed_ += compute;
      wake_ = now + compute;
      return true;
    }
    const Rate limit = settings_.job.rate;
    const Bytes bytes = phase.bytes * senders_.size();
    transfers_.push_back({bytes});
    undelivered_ += bytes;
    for (Sender* sender : senders_) {
      sender->send(phase.bytes, phase.rate.is_zero() ? limit : std::min(phase.rate, limit), transfers_.size() - 1);
      if (sender != caller) sender->wake();
    }
    state_ = State::sending;
    return !phase.overlap;
  }

  const Settings& settings_;
  std::vector<Sender*> senders_;
  ComputeTimes compute_times_;

  State state_ = State::connecting;
  std::size_t phase_ = 0;
  Nanos wake_ = Nanos::never();
  Nanos epoch_;
  Nanos iteration_start_;
  std::vector<Transfer> transfers_;
  Bytes undelivered_ = 0;

  std::vector<Nanos> starts_;
  std::vector<Nanos> times_;
  Nanos computed_;               ///< in this iteration
  std::vector<Nanos> computes_;  ///< beside times_, where there is jitter
  Bytes delivered_ = 0;
  std::uint64_t retransmitted_packets_ = 0;  ///< when the last recorded iteration ended, like the next
  GateStats gate_;
};

Nanos JobDriver::Sender::poll(Nanos now) {
  Nanos next = shard_.poll(now);
  for (;;) {
    const bool completed = take_completions();
    const bool advanced = iterations_.advance(now, this);
    if (!completed && !advanced) break;
    next = shard_.poll(now);
  }
  return std::min(next, iterations_.wake());
}

bool JobDriver::Sender::take_completions() {
  bool any = false;
  while (const std::size_t count = shard_.take_completions(completions_)) {
    any = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& completion = completions_[i];
      if (completion.status != Status::ok || completion.kind == Completion::Kind::closed)
        fail(settings_.job, completion.status);
      if (completion.kind == Completion::Kind::connected) ++connected_;
      if (completion.kind == Completion::Kind::sent) iterations_.on_delivered(completion.tag, completion.bytes);
    }
  }
  if (any)
    for (Flow& flow : flows_) post(flow);
  return any;
}

// ---------------------------------------------------------------------------------------------------------------------

JobConfig JobDriver::Settings::job_config() const {
  JobConfig config;
  config.number = number;
  config.augmentation = augmentation;
  config.max_rate = job.rate;
  config.pacing_quantum = pacing_quantum;
  config.catch_up = catch_up;
  config.learn_iterations = learn_iterations;
  return config;
}

ShardConfig JobDriver::shard_config(std::uint64_t seed, std::uint32_t number, std::uint32_t worker,
                                    std::uint32_t flows) {
  ShardConfig config;
  config.max_connections = flows;
  config.max_jobs = 1;
  config.seed = seed * 1000 + number + (std::uint64_t{worker} << 32);
  return config;
}

JobDriver::JobDriver(JobNetwork& network, const Settings& settings)
    : settings_(settings), iterations_(std::make_unique<Iterations>(settings_)) {
  if (settings.real_payload) payload_ = std::make_unique<Payload>(settings.seed + settings.number, segment_bytes);
  for (std::uint32_t worker = 0; worker < settings.workers; ++worker) {
    receivers_.push_back(std::make_unique<Receiver>(network, settings_, worker, payload_.get()));
    senders_.push_back(std::make_unique<Sender>(network, settings_, worker, payload_.get(), *iterations_));
    iterations_->add(*senders_.back());
    network.attach({JobNetwork::Side::receiver, settings.number, worker}, *receivers_.back());
    network.attach({JobNetwork::Side::sender, settings.number, worker}, *senders_.back());
  }
}

JobDriver::~JobDriver() = default;

bool JobDriver::connected() const {
  return std::all_of(senders_.begin(), senders_.end(), [](const auto& sender) { return sender->connected(); });
}
void JobDriver::start(Nanos epoch) { iterations_->start(epoch); }
PlanState JobDriver::set_plan(const PhasePlan& plan) {
  PlanState state = PlanState::none;
  for (const auto& sender : senders_) state = sender->set_plan(plan);
  return state;
}
void JobDriver::clear_plan() {
  for (const auto& sender : senders_) sender->clear_plan();
}
PlanState JobDriver::plan_state() const { return senders_.front()->gate().state; }
Nanos JobDriver::adrift_since() const {
  Nanos since = Nanos::never();
  for (const auto& sender : senders_) since = std::min(since, sender->gate().adrift_since);
  return since;
}
bool JobDriver::done() const { return iterations_->done(); }
std::size_t JobDriver::recorded() const { return iterations_->recorded(); }
std::uint64_t JobDriver::marked_packets() const {
  std::uint64_t packets = 0;
  for (const auto& sender : senders_) packets += sender->marked_packets();
  return packets;
}

JobResult JobDriver::result() const {
  JobResult result = iterations_->result();
  for (const auto& receiver : receivers_) {
    result.verified_messages += receiver->verified;
    result.checksum_errors += receiver->errors;
  }
  return result;
}

}  // namespace mltcp::experiment
