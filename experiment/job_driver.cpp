// The job driver (see job_driver.h).
#include "mltcp/experiment/job_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "mltcp/base/error.h"
#include "mltcp/transport/crc32c.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint32_t receives_per_connection = 8;

ShardConfig shard_config(const JobDriver::Settings& settings) {
  ShardConfig config;
  config.max_connections = settings.job.flows;
  config.max_jobs = 1;
  config.seed = settings.seed * 1000 + settings.number;
  return config;
}

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

// ---- the receiving host ---------------------------------------------------------------------------------------------

class JobDriver::Receiver final : public Pollable {
 public:
  Receiver(Testbed& testbed, const Settings& settings, Payload* payload)
      : settings_(settings),
        payload_(payload),
        shard_(testbed.host(Testbed::Side::receiver, settings.number), shard_config(settings)) {
    ConnectionConfig config = settings.connection;
    config.max_receives = 4 * receives_per_connection;
    shard_.listen(config);
  }

  Nanos poll(Nanos now) override {
    Nanos next = shard_.poll(now);
    std::array<Completion, 16> completions;
    while (const std::size_t count = shard_.take_completions(completions)) {
      for (std::size_t i = 0; i < count; ++i) on_completion(completions[i]);
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

  const Settings settings_;
  Payload* payload_;
  Shard shard_;
  std::map<ConnectionId, Flow> flows_;
};

// ---- the sending host -----------------------------------------------------------------------------------------------

class JobDriver::Sender final : public Pollable {
 public:
  Sender(Testbed& testbed, const Settings& settings, Payload* payload)
      : testbed_(testbed),
        settings_(settings),
        payload_(payload),
        shard_(testbed.host(Testbed::Side::sender, settings.number), shard_config(settings)),
        random_(Random::stream(settings.seed, settings.number)) {
    JobConfig job;
    job.number = settings.number;
    job.augmentation = settings.augmentation;
    job.max_rate = settings.job.rate;
    job_ = shard_.add_job(job);
    for (std::uint32_t i = 0; i < settings.job.flows; ++i) {
      Flow flow;
      flow.connection =
          shard_.connect(testbed.address(Testbed::Side::receiver, settings.number), settings.connection, testbed.now());
      shard_.attach(flow.connection, job_);
      flows_.push_back(std::move(flow));
    }
  }

  Nanos poll(Nanos now) override {
    Nanos next = shard_.poll(now);
    for (;;) {
      const bool completed = take_completions();
      const bool advanced = advance(now);
      if (!completed && !advanced) break;
      next = shard_.poll(now);
    }
    return std::min(next, wake_);
  }

  [[nodiscard]] bool connected() const { return connected_ == flows_.size(); }
  void start(Nanos epoch) {
    epoch_ = epoch;
    wake_ = epoch + settings_.job.start;
    state_ = State::waiting;
    testbed_.wake(Testbed::Side::sender, settings_.number);
  }
  [[nodiscard]] bool done() const { return times_.size() >= settings_.iterations; }

  [[nodiscard]] JobResult result() const {
    JobResult result;
    result.name = settings_.job.name;
    result.iterations = times_;
    result.starts.assign(starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(times_.size()));
    for (Nanos& start : result.starts) start -= epoch_;
    result.bytes = delivered_;
    result.retransmitted_packets = done() ? retransmitted_packets_ : retransmitted_packets();
    result.iteration_compute = computes_;
    result.compute = settings_.job.compute_per_iteration();
    result.bytes_per_iteration = settings_.job.bytes_per_iteration();
    return result;
  }
  [[nodiscard]] std::size_t recorded() const { return times_.size(); }

 private:
  [[nodiscard]] std::uint64_t retransmitted_packets() const {
    std::uint64_t packets = 0;
    for (const Flow& flow : flows_) packets += shard_.stats(flow.connection).retransmitted_packets;
    return packets;
  }

  enum class State { connecting, waiting, computing, sending, draining };

  /// What one phase still has to deliver.
  struct Transfer {
    Bytes undelivered = 0;
  };
  struct Flow {
    ConnectionId connection = 0;
    std::uint64_t next_message = 0;
    /// Bytes to post, per transfer, in order.
    std::deque<std::pair<std::size_t, Bytes>> to_post;
  };

  bool take_completions() {
    std::array<Completion, 32> completions;
    bool any = false;
    while (const std::size_t count = shard_.take_completions(completions)) {
      any = true;
      for (std::size_t i = 0; i < count; ++i) {
        const Completion& completion = completions[i];
        if (completion.status != Status::ok || completion.kind == Completion::Kind::closed)
          fail(settings_.job, completion.status);
        if (completion.kind == Completion::Kind::connected) ++connected_;
        if (completion.kind == Completion::Kind::sent) {
          transfers_[completion.tag].undelivered -= completion.bytes;
          undelivered_ -= completion.bytes;
          if (!done()) delivered_ += completion.bytes;
        }
      }
    }
    if (any)
      for (Flow& flow : flows_) post(flow);
    return any;
  }

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

  /// Moves on as far as possible at `now`; false if it is waiting for time or delivery.
  bool advance(Nanos now) {
    bool moved = false;
    for (;;) {
      switch (state_) {
        case State::connecting:
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
          begin_iteration(now);
          break;
      }
      moved = true;
      while (!begin_phase(now)) ++phase_;
    }
  }

  void begin_iteration(Nanos now) {
    phase_ = 0;
    transfers_.clear();
    iteration_start_ = now;
    computed_ = {};
    if (!done()) starts_.push_back(now);
    shard_.begin_iteration(job_, settings_.job.bytes_per_iteration());
    compute_scale_ = 1.0;
    const Nanos compute = settings_.job.compute_per_iteration();
    if (settings_.job.jitter.count > 0 && compute.count > 0)
      compute_scale_ = std::max(0.0, 1.0 + random_.normal() * static_cast<double>(settings_.job.jitter.count) /
                                               static_cast<double>(compute.count));
  }

  void end_iteration(Nanos now) {
    if (done()) return;
    times_.push_back(now - iteration_start_);
    if (settings_.job.jitter.count > 0) computes_.push_back(computed_);
    if (done()) retransmitted_packets_ = retransmitted_packets();
  }

  /// Begins the phase that `phase_` names; false if it is over already.
  bool begin_phase(Nanos now) {
    if (phase_ == settings_.job.phases.size()) {
      state_ = State::draining;
      return true;
    }
    const workload::Phase& phase = settings_.job.phases[phase_];
    if (phase.kind == workload::Phase::Kind::compute) {
      state_ = State::computing;
      const Nanos compute(static_cast<std::int64_t>(static_cast<double>(phase.compute.count) * compute_scale_ + 0.5));
      computed_ += compute;
      wake_ = now + compute;
      return true;
    }
    const Rate limit = settings_.job.rate;
    shard_.set_job_rate(job_, phase.rate.is_zero() ? limit : std::min(phase.rate, limit));
    transfers_.push_back({phase.bytes});
    undelivered_ += phase.bytes;
    const Bytes share = phase.bytes / flows_.size();
    const Bytes left_over = phase.bytes % flows_.size();
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const Bytes bytes = share + (i < left_over ? 1 : 0);
      if (bytes > 0) flows_[i].to_post.emplace_back(transfers_.size() - 1, bytes);
      post(flows_[i]);
    }
    state_ = State::sending;
    return !phase.overlap;
  }

  Testbed& testbed_;
  const Settings settings_;
  Payload* payload_;
  Shard shard_;
  Random random_;
  JobId job_ = 0;
  std::vector<Flow> flows_;
  std::size_t connected_ = 0;

  State state_ = State::connecting;
  std::size_t phase_ = 0;
  Nanos wake_ = Nanos::never();
  Nanos epoch_;
  Nanos iteration_start_;
  double compute_scale_ = 1.0;
  std::vector<Transfer> transfers_;
  Bytes undelivered_ = 0;

  std::vector<Nanos> starts_;
  std::vector<Nanos> times_;
  Nanos computed_;               ///< in this iteration
  std::vector<Nanos> computes_;  ///< beside times_, where there is jitter
  Bytes delivered_ = 0;
  std::uint64_t retransmitted_packets_ = 0;  ///< when the last recorded iteration ended
};

// ---------------------------------------------------------------------------------------------------------------------

JobDriver::JobDriver(Testbed& testbed, const Settings& settings) {
  if (settings.real_payload) payload_ = std::make_unique<Payload>(settings.seed + settings.number, segment_bytes);
  receiver_ = std::make_unique<Receiver>(testbed, settings, payload_.get());
  sender_ = std::make_unique<Sender>(testbed, settings, payload_.get());
  testbed.attach(Testbed::Side::receiver, settings.number, *receiver_);
  testbed.attach(Testbed::Side::sender, settings.number, *sender_);
}

JobDriver::~JobDriver() = default;

bool JobDriver::connected() const { return sender_->connected(); }
void JobDriver::start(Nanos epoch) { sender_->start(epoch); }
bool JobDriver::done() const { return sender_->done(); }
std::size_t JobDriver::recorded() const { return sender_->recorded(); }

JobResult JobDriver::result() const {
  JobResult result = sender_->result();
  result.verified_messages = receiver_->verified;
  result.checksum_errors = receiver_->errors;
  return result;
}

}  // namespace mltcp::experiment
