// One run of an experiment's jobs (see packet_run.h).
#include "mltcp/experiment/backends/packet_run.h"
#include "mltcp/experiment/backends/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"
#include "mltcp/experiment/backends/link_results.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/rank_driver.h"
#include "mltcp/experiment/files/algorithms.h"
#include "mltcp/experiment/files/policy.h"
#include "mltcp/workload/inspection.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

// A run is given up when no iteration ends for this many times what those of all jobs, one after the other, would take
// with a loss in each phase.
constexpr double patience = 50;
constexpr std::int64_t round_trips_per_phase = 24;  // slow start from the initial window, and a recovery
constexpr double jitters_per_iteration = 4;         // standard deviations
constexpr std::int64_t round_trips_for_connecting = 20;
constexpr Nanos shortest_setup_limit = 10_s;
constexpr Nanos most_initial_rtt = 60_s;

/// How long an iteration of `job` takes at most, when it has the network to itself.
double longest_alone_ns(const workload::Job& job, Rate rate, Nanos rtt) {
  std::int64_t transfers = 0;
  for (const workload::Phase& phase : job.phases) transfers += phase.kind == workload::Phase::Kind::communicate ? 1 : 0;
  return static_cast<double>(workload::ideal_iteration(job, rate).length.count) +
         static_cast<double>(rtt.count) * static_cast<double>(transfers * round_trips_per_phase) +
         static_cast<double>(job.jitter.count) * jitters_per_iteration +
         static_cast<double>(job.compute_per_iteration().count) *
             (job.straggler.factor * std::max(job.change.compute_scale, 1.0) - 1) +
         static_cast<double>(job.pause.time.count);
}

/// The network of one run, and how many workers each job of the plan has there.
std::unique_ptr<JobNetwork> make_network(const Experiment& experiment, const RunPlan& plan, PacketDatapath& factory,
                                         std::vector<std::uint32_t>& workers) {
  const std::uint32_t classes = policy_named(plan.policy).priorities ? kPriorities : 1;
  if (!experiment.topology) {
    fabric::DumbbellConfig network = network_of(experiment);
    network.pairs = static_cast<std::uint32_t>(plan.jobs.size());
    network.classes = classes;
    workers.assign(plan.jobs.size(), 1);
    return factory.make(network, experiment.machines, plan.usage_bin);
  }
  const std::vector<Placement> all = place(experiment.jobs, experiment.topology->hosts());
  const auto placements = std::span(all).subspan(plan.first_number, plan.jobs.size());
  for (const Placement& placement : placements) workers.push_back(static_cast<std::uint32_t>(placement.workers.size()));
  sim::SwitchedNetworkConfig network = *experiment.topology;
  network.classes = classes;
  return factory.make(network, placements, plan.usage_bin);
}

/// The algorithms' parameters, with what one network has in common for all its flows. In real time the loops of the
/// hosts are part of the delay, which only measuring tells.
cc::Parameters parameters_of(const Experiment& experiment, Nanos round_trip_delay, bool real_time) {
  constexpr std::int64_t packets_per_round_trip = 2;  // at the rate of the slowest link; the others add little
  cc::Parameters parameters = experiment.parameters;
  if (!real_time) {
    const std::uint32_t mtu = experiment.topology ? experiment.topology->mtu : experiment.mtu;
    Rate slowest = experiment.bottleneck.rate;
    if (experiment.topology)
      for (Topology::Link link = 0; link < experiment.topology->topology->links(); ++link)
        slowest = std::min(slowest, experiment.topology->topology->capacity(link));
    const Nanos unloaded = round_trip_delay + slowest.time_for(mtu) * packets_per_round_trip;
    parameters.fit({std::min(unloaded, most_initial_rtt)});
  }
  return parameters;
}

Nanos round_trip_delay_of(const Experiment& experiment) {
  return experiment.topology ? experiment.topology->round_trip_delay() : experiment.bottleneck.delay * 4;
}

/// Before the first measurement, a round trip with a full buffer is the safe guess.
Nanos initial_rtt_of(const Experiment& experiment) {
  const fabric::LinkConfig& link = experiment.bottleneck;
  const Nanos delay = round_trip_delay_of(experiment);
  return std::clamp(delay + link.rate.time_for(link.buffer_bytes), 1_ms, most_initial_rtt + delay);
}

/// In real time threads are held up now and then. What a job makes up for at once fits into half of an empty buffer.
Nanos catch_up_of(Rate rate, const fabric::LinkConfig& link) {
  constexpr Nanos most{300'000};
  return link.buffer_bytes == 0 ? most : std::min(most, rate.time_for(link.buffer_bytes / 2));
}

}  // namespace

std::vector<JobDriver::Settings> driver_settings(const Experiment& experiment, const RunPlan& plan, bool real_time,
                                                 bool real_payload) {
  const fabric::LinkConfig& link = experiment.bottleneck;
  const Policy& policy = policy_named(plan.policy);
  const Nanos initial_rtt = initial_rtt_of(experiment);
  const auto parameters =
      std::make_shared<const cc::Parameters>(parameters_of(experiment, round_trip_delay_of(experiment), real_time));
  std::vector<JobDriver::Settings> result;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    JobDriver::Settings& settings = result.emplace_back();
    settings.job = plan.jobs[index];
    if (settings.job.rate.is_zero()) settings.job.rate = link.rate;
    settings.number = plan.first_number + index;
    settings.iterations = plan.iterations_of(settings.job);
    settings.seed = experiment.seed;
    settings.real_payload = real_payload;
    settings.connection.congestion_control = settings.job.cc.empty() ? experiment.cc : settings.job.cc;
    settings.connection.ecn = link.ecn.enabled;
    settings.connection.parameters = parameters;
    if (cc::find_algorithm(settings.connection.congestion_control).capabilities.rate_based)
      settings.connection.max_rate = settings.job.rate;
    // A link that damages packets damages some beyond what UDP's 16-bit sum finds.
    settings.connection.full_integrity = link.faults.corruption > 0;
    settings.connection.initial_rtt = initial_rtt;
    if (policy.priorities && !settings.job.unaware)
      settings.connection.priority = static_cast<std::uint8_t>(settings.job.priority);
    if (real_time) settings.catch_up = catch_up_of(settings.job.rate, link);
    settings.augmentation = augmentation_of(policy, experiment, settings.job);
    settings.learn_iterations = experiment.mltcp.learn_iterations;
  }
  return result;
}

Nanos patience_with(const Experiment& experiment, std::span<const JobDriver::Settings> settings) {
  double longest_ns = 0;
  for (const JobDriver::Settings& job : settings)
    longest_ns += longest_alone_ns(job.job, experiment.bottleneck.rate, initial_rtt_of(experiment));
  return Nanos(static_cast<std::int64_t>(std::min(longest_ns * patience, 1e18)));
}

std::string lost_patience(const RunPlan& plan, Nanos limit) {
  return fmt::format(
      "policy {}: no job has finished an iteration for {}, {} times what all of them need one after the "
      "other; {}",
      plan.policy, to_text(limit), patience,
      policy_named(plan.policy).priorities
          ? "give the jobs of higher priority less to send, or the link a higher rate"
          : "give the link a higher rate, a larger buffer or fewer faults, and parameters of algorithms "
            "and of [host_model], where there are any, that leave time to send");
}

Run run_once(const Experiment& experiment, const RunPlan& plan, PacketDatapath& factory,
             const std::function<void(double)>& tick) {
  std::vector<std::uint32_t> workers;
  const std::unique_ptr<JobNetwork> network = make_network(experiment, plan, factory, workers);

  // Hosts that are modelled have the settings of real ones that sleep.
  const bool modelled = !factory.real_time() && experiment.machines.host.on();
  std::vector<JobDriver::Settings> settings =
      driver_settings(experiment, plan, factory.real_time() || modelled, factory.real_payload());
  if (modelled)
    for (JobDriver::Settings& job : settings) job.pacing_quantum = job.connection.pacing_quantum = kRealPacingQuantum;
  std::vector<std::unique_ptr<DrivenJob>> drivers;
  Nanos last_start;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    JobDriver::Settings own = settings[index];
    own.workers = workers[index];
    last_start = std::max(last_start, own.job.start);
    if (own.job.pattern)
      drivers.push_back(std::make_unique<RankJob>(*network, own));
    else
      drivers.push_back(std::make_unique<JobDriver>(*network, own));
  }

  const auto all = [&](auto&& predicate) {
    return std::all_of(drivers.begin(), drivers.end(), [&](const auto& driver) { return predicate(*driver); });
  };
  const Nanos setup_limit = std::max(shortest_setup_limit, initial_rtt_of(experiment) * round_trips_for_connecting);
  if (!network->run(network->now() + setup_limit,
                    [&] { return all([](const DrivenJob& d) { return d.connected(); }); }))
    throw RunError(fmt::format("the jobs' connections were not open after {}; is the link losing almost everything?",
                               to_text(setup_limit)));
  // Time 0 of the experiment falls on the edge of a bin of the usage meter.
  const Nanos bin = network->links().front().usage->bin();
  const Nanos epoch((network->now().count / bin.count + 2) * bin.count);
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (!plan.slots[i]) continue;
    PhasePlan slots = *plan.slots[i];
    slots.slot += epoch;
    drivers[i]->set_plan(slots);
  }
  std::vector<RunningJob*> running;
  for (const auto& driver : drivers) running.push_back(driver.get());
  if (plan.between) plan.between(running, epoch, epoch);
  for (const auto& driver : drivers) driver->start(epoch);

  const auto all_done = [&] { return all([](const DrivenJob& d) { return d.done(); }); };
  std::size_t recorded = 0;
  Nanos last_progress = epoch;
  std::vector<double> work;  // of an iteration
  double total = 0;
  Nanos first_start = Nanos::never();
  for (const workload::Job& job : plan.jobs) {
    work.push_back(work_of(job, experiment, factory.real_time()));
    total += plan.iterations_of(job) * work.back();
    first_start = std::min(first_start, job.start);
  }
  const Nanos pause_limit = patience_with(experiment, settings);
  while (!network->run(network->now() + plan.slice, all_done)) {
    std::size_t now_recorded = 0;
    double done = 0;
    for (std::size_t i = 0; i < drivers.size(); ++i) {
      now_recorded += drivers[i]->recorded();
      done += static_cast<double>(drivers[i]->recorded()) * work[i];
    }
    if (now_recorded != recorded) last_progress = network->now();
    recorded = now_recorded;
    if (tick) tick(done / total);
    if (plan.between) plan.between(running, epoch, network->now());
    if (network->now() > std::max(last_progress, epoch + last_start) + pause_limit)
      throw RunError(lost_patience(plan, pause_limit));
  }

  Run run;
  run.policy = plan.policy;
  run.cc = experiment.cc;
  run.cc_parameters = changed_parameters(experiment);
  run.datapath = factory.datapath();
  run.seed = experiment.seed;
  run.duration = network->now() - epoch - first_start;
  run.stalls = network->stalls();
  for (std::size_t i = 0; i < drivers.size(); ++i) {
    run.jobs.push_back(drivers[i]->result());
    run.jobs.back().cc = plan.jobs[i].cc;
    run.jobs.back().unaware = plan.jobs[i].unaware;
  }

  std::map<std::uint32_t, std::string> names;
  for (const workload::Job& job : plan.jobs)
    names[plan.first_number + static_cast<std::uint32_t>(names.size())] = job.name;
  record_links(network->links(), epoch, names, run);
  if (plan.finished) plan.finished(network->links(), epoch);
  return run;
}

Run PacketDatapath::run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick) {
  return run_once(experiment, plan, *this, tick);
}

}  // namespace mltcp::experiment
