// Runs the jobs of an experiment at packet level (see packet_run.h).
#include "mltcp/lab/experiment/backends/packet_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/internal/captured_network.h"
#include "mltcp/lab/experiment/backends/link_results.h"
#include "mltcp/lab/experiment/backends/live_run.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

// A run is given up if no iteration ends within this many times the sum of the jobs' iteration times. Each iteration
// time assumes that the job runs alone and has a loss in each phase.
constexpr double patience = 50;
constexpr std::int64_t kRoundTripsPerPhase = 24;  // covers slow start from the initial window, and one loss recovery
constexpr double kJittersPerIteration = 4;        // assumed jitter in standard deviations
constexpr std::int64_t kRoundTripsForConnecting = 20;
constexpr Nanos kShortestSetupLimit = 10_s;
constexpr Nanos kMaxInitialRtt = 60_s;

/// Returns an upper estimate of an iteration's duration if `job` runs alone, in nanoseconds.
double longest_alone_ns(const workload::Job& job, Rate rate, Nanos rtt) {
  std::int64_t transfers = 0;
  for (const workload::Phase& phase : job.phases) transfers += phase.kind == workload::Phase::Kind::communicate ? 1 : 0;
  return static_cast<double>(workload::ideal_iteration(job, rate).length.count) +
         static_cast<double>(rtt.count) * static_cast<double>(transfers * kRoundTripsPerPhase) +
         static_cast<double>(job.jitter.count) * kJittersPerIteration +
         static_cast<double>(job.compute_per_iteration().count) *
             (job.straggler.factor * std::max(job.change.compute_scale, 1.0) - 1) +
         static_cast<double>(job.pause.time.count);
}

/// Returns the placements of the plan's jobs in the topology.
std::vector<workload::Placement> placements_of(const Experiment& experiment, const RunPlan& plan) {
  const std::vector<workload::Placement> all = workload::place(experiment.jobs, experiment.topology->hosts());
  const auto first = all.begin() + plan.first_number;
  return {first, first + static_cast<std::ptrdiff_t>(plan.jobs.size())};
}

/// Creates the network of one run.
std::unique_ptr<JobNetwork> make_network(const Experiment& experiment, const RunPlan& plan, PacketDatapath& factory) {
  const std::uint32_t classes = policy_named(plan.policy).priorities ? kPriorities : 1;
  if (!experiment.topology) {
    fabric::DumbbellConfig network = network_of(experiment);
    network.pairs = static_cast<std::uint32_t>(plan.jobs.size());
    network.classes = classes;
    return factory.make(network, experiment.machines, plan.usage_bin);
  }
  fabric::SwitchedNetworkConfig network = *experiment.topology;
  network.classes = classes;
  if (!plan.has_faults) network.faults.clear();
  return factory.make(network, placements_of(experiment, plan), plan.usage_bin);
}

/// Returns the algorithms' parameters. In virtual time, fits them to the network's unloaded round-trip time. In real
/// time this time is not known in advance, because the loops of the hosts add a delay.
cc::Parameters parameters_of(const Experiment& experiment, Nanos round_trip_delay, bool real_time) {
  // One packet and its acknowledgement on the slowest link. The transmission times on other links are small.
  constexpr std::int64_t packets_per_round_trip = 2;
  cc::Parameters parameters = experiment.parameters;
  if (!real_time) {
    const std::uint32_t mtu = experiment.topology ? experiment.topology->mtu : experiment.mtu;
    Rate slowest = experiment.bottleneck.rate;
    if (experiment.topology)
      for (Topology::Link link = 0; link < experiment.topology->topology->links(); ++link)
        slowest = std::min(slowest, experiment.topology->topology->capacity(link));
    const Nanos unloaded = round_trip_delay + slowest.time_for(mtu) * packets_per_round_trip;
    parameters.fit({std::min(unloaded, kMaxInitialRtt), experiment.bottleneck.rate});
  }
  return parameters;
}

Nanos round_trip_delay_of(const Experiment& experiment) {
  return experiment.topology ? experiment.topology->round_trip_delay() : experiment.bottleneck.delay * 4;
}

/// Returns the round-trip time to assume before the first measurement. Includes the delay of a full buffer, to avoid
/// spurious timeouts.
Nanos initial_rtt_of(const Experiment& experiment) {
  const fabric::LinkConfig& link = experiment.bottleneck;
  const Nanos delay = round_trip_delay_of(experiment);
  return std::clamp(delay + link.rate.time_for(link.buffer_bytes), 1_ms, kMaxInitialRtt + delay);
}

/// Returns how much time a job may catch up at once after its thread was delayed. Data sent at the job's rate in this
/// time fills at most half of a buffer.
Nanos catch_up_of(Rate rate, const fabric::LinkConfig& link) {
  constexpr Nanos max{300'000};
  return link.buffer_bytes == 0 ? max : std::min(max, rate.time_for(link.buffer_bytes / 2));
}

}  // namespace

std::vector<JobSpec> job_specs(const Experiment& experiment, const RunPlan& plan, bool real_time, bool real_payload) {
  const fabric::LinkConfig& link = experiment.bottleneck;
  const Policy& policy = policy_named(plan.policy);
  const Nanos initial_rtt = initial_rtt_of(experiment);
  const auto parameters =
      std::make_shared<const cc::Parameters>(parameters_of(experiment, round_trip_delay_of(experiment), real_time));
  std::vector<workload::Placement> placements;
  if (experiment.topology) placements = placements_of(experiment, plan);
  std::vector<JobSpec> result;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    JobSpec& spec = result.emplace_back();
    spec.job = plan.jobs[index];
    if (spec.job.rate.is_zero()) spec.job.rate = link.rate;
    spec.number = plan.first_number + index;
    if (experiment.topology) spec.workers = placements[index].workers;
    spec.iterations = plan.iterations_of(spec.job);
    spec.stop_when_done = spec.job.stop;
    spec.seed = experiment.seed;
    spec.real_payload = real_payload;
    spec.connection.congestion_control = spec.job.cc.empty() ? experiment.cc : spec.job.cc;
    spec.connection.balance = experiment.balance;
    spec.connection.paths = experiment.paths;
    spec.connection.ecn = link.ecn.enabled;
    spec.connection.parameters = parameters;
    if (cc::find_algorithm(spec.connection.congestion_control).capabilities.rate_based)
      spec.connection.max_rate = spec.job.rate;
    // UDP's 16-bit checksum does not detect all damaged packets.
    spec.connection.full_integrity = link.faults.corruption > 0;
    spec.connection.initial_rtt = initial_rtt;
    if (policy.priorities && !spec.job.unaware) spec.connection.priority = static_cast<std::uint8_t>(spec.job.priority);
    if (real_time) spec.catch_up = catch_up_of(spec.job.rate, link);
    spec.augmentation = augmentation_of(policy, experiment.mltcp, spec.job);
    spec.learn_iterations = experiment.mltcp.learn_iterations;
  }
  return result;
}

Nanos patience_with(const Experiment& experiment, std::span<const JobSpec> specs) {
  double longest_ns = 0;
  for (const JobSpec& job : specs)
    longest_ns += longest_alone_ns(job.job, experiment.bottleneck.rate, initial_rtt_of(experiment));
  return Nanos(static_cast<std::int64_t>(std::min(longest_ns * patience, 1e18)));
}

std::string lost_patience(const RunPlan& plan, Nanos limit) {
  return fmt::format(
      "policy {}: no job has finished an iteration for {}, {} times the time that all jobs need one after the other; "
      "{}",
      plan.policy, to_text(limit), patience,
      policy_named(plan.policy).priorities
          ? "give the jobs of higher priority less to send, or the link a higher rate"
          : "give the link a higher rate, a larger buffer or fewer faults; if the file has parameters of algorithms or "
            "[host_model], change them so that hosts have time to send");
}

namespace {

class PacketRun final : public LiveRun {
 public:
  PacketRun(const Experiment& experiment, const RunPlan& plan, PacketDatapath& factory)
      : experiment_(experiment), plan_(plan), network_(make_network(experiment, plan, factory)) {
    if (plan.capture) {
      auto captured =
          std::make_unique<CapturedNetwork>(std::move(network_), names_of(plan), *plan.capture, factory.real_time());
      captured_ = captured.get();
      network_ = std::move(captured);
    }
    // Modelled hosts use the settings of real hosts whose threads sleep.
    const bool modelled = !factory.real_time() && experiment.machines.host.on();
    std::vector<JobSpec> specs = job_specs(experiment, plan, factory.real_time() || modelled, factory.real_payload());
    if (modelled)
      for (JobSpec& spec : specs) spec.pacing_quantum = spec.connection.pacing_quantum = kRealPacingQuantum;
    patience_ = patience_with(experiment, specs);
    for (const JobSpec& spec : specs) {
      drivers_.push_back(std::make_unique<JobDriver>(*network_, spec));
      pointers_.push_back(drivers_.back().get());
    }
    if (captured_ != nullptr) captured_->start();
  }

  [[nodiscard]] std::span<RunningJob* const> jobs() const override { return pointers_; }

  void connect() override {
    const Nanos limit = std::max(kShortestSetupLimit, initial_rtt_of(experiment_) * kRoundTripsForConnecting);
    if (!network_->run(network_->now() + limit, [&] {
          on_event();
          return all([](const JobDriver& job) { return job.connected(); });
        }))
      throw RunError(
          fmt::format("the jobs' connections were not open after {}; lower the loss of the link", to_text(limit)));
  }
  /// Places the epoch at the edge of a bin of the usage meter.
  Nanos choose_epoch() override {
    const Nanos bin = network_->links().front().usage->bin();
    epoch_ = Nanos((network_->now().count / bin.count + 2) * bin.count);
    return epoch_;
  }
  void start(Nanos epoch) override {
    for (const auto& driver : drivers_) driver->start(epoch);
  }
  void record(SeriesRecorder& recorder, Nanos epoch) override {
    std::vector<SeriesConnection> connections;
    for (const auto& driver : drivers_) {
      const std::vector<SeriesConnection> of_job = driver->connections();
      connections.insert(connections.end(), of_job.begin(), of_job.end());
      connections_.push_back(of_job.size());
    }
    links_ = network_->links();
    std::vector<SeriesLink> links;
    for (const JobNetwork::LinkView& link : links_) links.push_back({std::string(link.name), link.config->rate});
    recorder.begin(epoch, std::move(connections), std::move(links));
    recorder_ = &recorder;
  }
  bool run(Nanos until) override {
    const std::function<bool()> done = [&] {
      on_event();
      return all([](const JobDriver& job) { return job.done(); });
    };
    while (recorder_ != nullptr && recorder_->next() <= until) {
      if (network_->run(recorder_->next(), done)) return true;
      read_states();
      recorder_->sample();
    }
    return network_->run(until, done);
  }
  [[nodiscard]] Nanos now() const override { return network_->now(); }
  [[nodiscard]] Nanos patience() const override { return patience_; }

  std::vector<JobNetwork::LinkView> finish(Run& run) override {
    if (recorder_ != nullptr) {
      read_states();
      recorder_->finish(network_->now());
    }
    run.stalls = network_->stalls();
    record_jobs(pointers_, plan_, run);
    std::vector<JobNetwork::LinkView> links = network_->links();
    record_links(links, epoch_, names_of(plan_), run);
    report_captured();
    return links;
  }

 private:
  void report_captured() {
    if (captured_ == nullptr || !plan_.captured) return;
    bool is_complete = false;
    const std::string line = capture::Capture::to_text(captured_->finish(), is_complete);
    plan_.captured(line, is_complete);
  }
  template <typename Predicate>
  [[nodiscard]] bool all(Predicate&& predicate) const {
    return std::ranges::all_of(drivers_, [&](const auto& driver) { return predicate(*driver); });
  }

  /// Fills in the states of connections and links for `recorder_`.
  void read_states() {
    const SeriesRecorder::States states = recorder_->states();
    std::span<ConnectionState> connections = states.connections;
    for (std::size_t i = 0; i < drivers_.size(); ++i) {
      drivers_[i]->read_states(connections.first(connections_[i]));
      connections = connections.subspan(connections_[i]);
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const fabric::LinkCounters& counters = *links_[i].counters;
      LinkState& link = states.links[i];
      link.queue_bytes = network_->queue_bytes(i);
      link.sent_bytes = counters.sent_bytes;
      link.sent_packets = counters.sent_packets;
      link.marked_packets = counters.marked_packets;
      link.dropped_packets = counters.dropped_packets;
      link.pauses = counters.pauses;
    }
  }

  const Experiment& experiment_;
  const RunPlan& plan_;
  std::unique_ptr<JobNetwork> network_;
  CapturedNetwork* captured_ = nullptr;  ///< `network_` if packets are captured; null if not
  SeriesRecorder* recorder_ = nullptr;
  std::vector<std::size_t> connections_;     ///< by job: number of recorded connections
  std::vector<JobNetwork::LinkView> links_;  ///< links whose series are recorded
  Nanos patience_;
  std::vector<std::unique_ptr<JobDriver>> drivers_;
  std::vector<RunningJob*> pointers_;
  Nanos epoch_;
};

}  // namespace

std::unique_ptr<LiveRun> PacketDatapath::prepare(const Experiment& experiment, const RunPlan& plan) {
  return std::make_unique<PacketRun>(experiment, plan, *this);
}

}  // namespace mltcp::experiment
