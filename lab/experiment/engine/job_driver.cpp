// The job driver (see job_driver.h).
#include "mltcp/lab/experiment/engine/job_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/engine/internal/connection_state.h"
#include "mltcp/lab/experiment/engine/internal/known.h"
#include "mltcp/lab/experiment/engine/iteration_engine.h"
#include "mltcp/lab/workload/phase_program.h"
#include "mltcp/transport/crc32c.h"
#include "mltcp/transport/shard.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint32_t kReceivesPerConnection = 8;

[[noreturn]] void fail(const workload::Job& job, Status status) {
  throw RunError(fmt::format("job \"{}\": a connection ended before the job did: {}", job.name, to_text(status)));
}

}  // namespace

// ---- a receiving host -----------------------------------------------------------------------------------------------

class JobDriver::Receiver final : public Pollable {
 public:
  Receiver(JobNetwork& network, const JobSpec& spec, std::uint32_t worker, Payload* payload)
      : spec_(spec),
        payload_(payload),
        shard_(network.host({JobNetwork::Side::receiver, spec.number, worker}),
               shard_config(spec.seed, spec.number, worker, spec.job.flows)) {
    ConnectionConfig config = spec.connection;
    config.max_receives = 4 * kReceivesPerConnection;
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
      flow.buffers.resize(kReceivesPerConnection);
      for (std::uint64_t buffer = 0; buffer < kReceivesPerConnection; ++buffer) {
        if (spec_.real_payload) flow.buffers[buffer].resize(kSegmentBytes);
        flow.free.push_back(buffer);
      }
      post(completion.connection, flow);
    } else if (completion.kind == Completion::Kind::received && completion.status == Status::ok) {
      Flow& flow = flows_[completion.connection];
      if (payload_ != nullptr) verify(flow, completion);
      flow.free.push_back(completion.tag % kReceivesPerConnection);
      post(completion.connection, flow);
    } else if (completion.kind == Completion::Kind::closed || completion.status != Status::ok) {
      fail(spec_.job, completion.status);
    }
  }

  void post(ConnectionId connection, Flow& flow) {
    while (!flow.free.empty()) {
      // The n-th receive that is posted gets the n-th message: the tag tells its number and where its bytes are.
      const std::uint64_t buffer = flow.free.back();
      const std::uint64_t tag = flow.next_message * kReceivesPerConnection + buffer;
      const PostResult result = spec_.real_payload ? shard_.receive(connection, flow.buffers[buffer], tag)
                                                   : shard_.receive_virtual(connection, kSegmentBytes, tag);
      // While an early message waits for a lost packet, later ones may fill the window: posted with the next
      // completion.
      if (result == PostResult::queue_full) return;
      if (result != PostResult::ok) fail(spec_.job, Status::closed);
      flow.free.pop_back();
      ++flow.next_message;
    }
  }

  void verify(const Flow& flow, const Completion& completion) {
    const std::uint64_t number = completion.tag / kReceivesPerConnection;
    const auto& buffer = flow.buffers[completion.tag % kReceivesPerConnection];
    ++verified;
    if (crc32c(0, std::span(buffer).first(completion.bytes)) != payload_->checksum(number, completion.bytes)) ++errors;
  }

  const JobSpec& spec_;
  Payload* payload_;
  Shard shard_;
  std::array<Completion, 16> completions_;
  std::map<ConnectionId, Flow> flows_;
};

// ---- the job and its sending hosts ----------------------------------------------------------------------------------

class JobDriver::Sender final : public Pollable {
 public:
  Sender(JobNetwork& network, const JobSpec& spec, std::uint32_t worker, Payload* payload, Workers& workers)
      : network_(network),
        end_{JobNetwork::Side::sender, spec.number, worker},
        spec_(spec),
        payload_(payload),
        workers_(workers),
        shard_(network.host(end_), shard_config(spec.seed, spec.number, worker, spec.job.flows)) {
    job_ = shard_.add_job(spec.job_config());
    const Address& peer = network.address({JobNetwork::Side::receiver, spec.number, worker});
    for (std::uint32_t i = 0; i < spec.job.flows; ++i) {
      Flow flow;
      flow.connection = shard_.connect(peer, spec.connection, network.now());
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
  /// Sends `bytes`, at most at `rate`; their deliveries count for `operation`.
  void send(Bytes bytes, Rate rate, std::size_t operation) {
    expect_known(shard_.set_job_rate(job_, rate), "set_job_rate()");
    const Bytes share = bytes / flows_.size();
    const Bytes left_over = bytes % flows_.size();
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const Bytes part = share + (i < left_over ? 1 : 0);
      if (part > 0) flows_[i].to_post.emplace_back(operation, part);
      post(flows_[i]);
    }
  }
  [[nodiscard]] std::uint64_t retransmitted_packets() const {
    std::uint64_t packets = 0;
    for (const Flow& flow : flows_)
      if (const auto stats = shard_.stats(flow.connection)) packets += stats->retransmitted_packets;
    return packets;
  }
  void read_states(std::span<ConnectionState> states) const {
    for (std::size_t i = 0; i < flows_.size(); ++i) read_state(shard_, flows_[i].connection, job_, states[i]);
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
    /// Bytes to post, by operation, in order.
    std::deque<std::pair<std::size_t, Bytes>> to_post;
  };

  bool take_completions();

  void post(Flow& flow) {
    while (!flow.to_post.empty()) {
      auto& [operation, bytes] = flow.to_post.front();
      const Bytes length = std::min(bytes, kSegmentBytes);
      const PostResult result =
          payload_ != nullptr ? shard_.send(flow.connection, payload_->message(flow.next_message, length), operation)
                              : shard_.send_virtual(flow.connection, length, operation);
      if (result == PostResult::queue_full) return;
      if (result != PostResult::ok) fail(spec_.job, Status::closed);
      ++flow.next_message;
      bytes -= length;
      if (bytes == 0) flow.to_post.pop_front();
    }
  }

  JobNetwork& network_;
  const JobNetwork::End end_;
  const JobSpec& spec_;
  Payload* payload_;
  Workers& workers_;
  Shard shard_;
  std::array<Completion, 32> completions_;
  JobId job_ = 0;
  std::vector<Flow> flows_;
  std::size_t connected_ = 0;
};

/// The iterations of the job, which all workers go through together.
class JobDriver::Workers final : public IterationEngine::Carrier {
 public:
  explicit Workers(const JobSpec& spec)
      : spec_(spec),
        program_(workload::phase_program(spec.job)),
        engine_(program_, spec.job,
                {.iterations = spec.iterations,
                 .stop_when_done = spec.stop_when_done,
                 .seed = spec.seed,
                 .stream = spec.number}),
        undelivered_(program_.operations.size()) {}

  void add(Sender& sender) { senders_.push_back(&sender); }

  void start(Nanos epoch) {
    epoch_ = epoch;
    engine_.start(epoch + spec_.job.start);
    senders_.front()->wake();
  }
  /// The sender that called advance() last asks to be polled when the engine wants it.
  [[nodiscard]] const IterationEngine& engine() const { return engine_; }

  [[nodiscard]] JobResult result() const {
    JobResult result;
    result.name = spec_.job.name;
    result.iterations = engine_.times();
    result.starts = engine_.starts();
    for (Nanos& start : result.starts) start -= epoch_;
    result.bytes = delivered_;
    result.retransmitted_packets = engine_.done() ? retransmitted_packets_ : retransmitted_packets();
    const GateStats gate = engine_.done() ? gate_ : gate_stats();
    result.gate_waited = gate.waited;
    result.gate_corrections = gate.corrections;
    if (gate.state != PlanState::none && gate.state != PlanState::active) result.plan_dropped = to_text(gate.state);
    result.iteration_compute = engine_.computes();
    result.compute = spec_.job.compute_per_iteration();
    result.bytes_per_iteration = spec_.job.bytes_per_iteration() * senders_.size();
    return result;
  }

  void on_delivered(std::size_t operation, Bytes bytes) {
    undelivered_[operation] -= bytes;
    if (undelivered_[operation] == 0) engine_.finish(static_cast<std::uint32_t>(operation));
    if (!engine_.done()) delivered_ += bytes;
  }

  /// Moves on as far as possible at `now`, in the poll of `caller`; false if it is waiting for time or delivery.
  bool advance(Nanos now, const Sender* caller) {
    caller_ = caller;
    for (bool moved = false;; moved = true) {
      switch (engine_.advance(now, *this)) {
        case IterationEngine::Step::waiting:
          return moved;
        case IterationEngine::Step::advanced:
          return true;
        case IterationEngine::Step::unrecorded:
          break;
        case IterationEngine::Step::recorded:
          if (!engine_.done()) break;
          retransmitted_packets_ = retransmitted_packets();
          gate_ = gate_stats();
          break;
      }
    }
  }

 private:
  void begin_iteration(Nanos /*now*/) override {
    if (spec_.learn_iterations) return;
    for (Sender* sender : senders_) sender->begin_iteration(spec_.job.bytes_per_iteration());
  }

  void begin(std::uint32_t number, Nanos /*now*/) override {
    const workload::Operation& operation = program_.operations[number];
    const Rate limit = spec_.job.rate;
    undelivered_[number] = operation.bytes * senders_.size();
    if (operation.bytes == 0) engine_.finish(number);
    for (Sender* sender : senders_) {
      sender->send(operation.bytes, operation.rate.is_zero() ? limit : std::min(operation.rate, limit), number);
      if (sender != caller_) sender->wake();
    }
  }

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

  const JobSpec& spec_;
  const workload::RankProgram program_;
  IterationEngine engine_;
  std::vector<Bytes> undelivered_;  ///< by operation, of all workers together
  std::vector<Sender*> senders_;
  const Sender* caller_ = nullptr;
  Nanos epoch_;
  Bytes delivered_ = 0;
  std::uint64_t retransmitted_packets_ = 0;  ///< as of the end of the last recorded iteration
  GateStats gate_;
};

Nanos JobDriver::Sender::poll(Nanos now) {
  Nanos next = shard_.poll(now);
  for (;;) {
    const bool completed = take_completions();
    const bool advanced = workers_.advance(now, this);
    if (!completed && !advanced) break;
    next = shard_.poll(now);
  }
  return std::min(next, workers_.engine().wake());
}

bool JobDriver::Sender::take_completions() {
  bool any = false;
  while (const std::size_t count = shard_.take_completions(completions_)) {
    any = true;
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& completion = completions_[i];
      if (completion.status != Status::ok || completion.kind == Completion::Kind::closed)
        fail(spec_.job, completion.status);
      if (completion.kind == Completion::Kind::connected) ++connected_;
      if (completion.kind == Completion::Kind::sent) workers_.on_delivered(completion.tag, completion.bytes);
    }
  }
  if (any)
    for (Flow& flow : flows_) post(flow);
  return any;
}

// ---------------------------------------------------------------------------------------------------------------------

JobDriver::JobDriver(JobNetwork& network, const JobSpec& spec)
    : spec_(spec), workers_(std::make_unique<Workers>(spec_)) {
  if (spec.real_payload) payload_ = std::make_unique<Payload>(spec.seed + spec.number, kSegmentBytes);
  for (std::uint32_t worker = 0; worker < spec.workers.size(); ++worker) {
    receivers_.push_back(std::make_unique<Receiver>(network, spec_, worker, payload_.get()));
    senders_.push_back(std::make_unique<Sender>(network, spec_, worker, payload_.get(), *workers_));
    workers_->add(*senders_.back());
    network.attach({JobNetwork::Side::receiver, spec.number, worker}, *receivers_.back());
    network.attach({JobNetwork::Side::sender, spec.number, worker}, *senders_.back());
  }
}

JobDriver::~JobDriver() = default;

bool JobDriver::connected() const {
  return std::all_of(senders_.begin(), senders_.end(), [](const auto& sender) { return sender->connected(); });
}
void JobDriver::start(Nanos epoch) { workers_->start(epoch); }
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
bool JobDriver::done() const { return workers_->engine().done(); }
std::size_t JobDriver::recorded() const { return workers_->engine().recorded(); }
std::vector<SeriesConnection> JobDriver::connections() const {
  std::vector<SeriesConnection> connections;
  for (std::uint32_t worker = 0; worker < senders_.size(); ++worker)
    for (std::uint32_t flow = 0; flow < spec_.job.flows; ++flow)
      connections.push_back({spec_.job.name, worker, worker, flow});
  return connections;
}
void JobDriver::read_states(std::span<ConnectionState> states) const {
  for (std::size_t worker = 0; worker < senders_.size(); ++worker)
    senders_[worker]->read_states(states.subspan(worker * spec_.job.flows, spec_.job.flows));
}
std::uint64_t JobDriver::marked_packets() const {
  std::uint64_t packets = 0;
  for (const auto& sender : senders_) packets += sender->marked_packets();
  return packets;
}

JobResult JobDriver::result() const {
  JobResult result = workers_->result();
  for (const auto& receiver : receivers_) {
    result.verified_messages += receiver->verified;
    result.checksum_errors += receiver->errors;
  }
  return result;
}

}  // namespace mltcp::experiment
