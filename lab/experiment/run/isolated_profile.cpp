// Measures jobs that run alone (see isolated_profile.h).
#include "mltcp/lab/experiment/run/isolated_profile.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <span>

#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/demand.h"
#include "mltcp/lab/experiment/run/internal/side_by_side.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {
namespace {

// Maximum number of iterations of a profile; enough for a median.
constexpr std::uint32_t kMaxIterations = 7;
// A bin of a meter is short compared with an iteration, so that bins show bursts. It is long compared with a packet, so
// that single bunches of packets do not count as demand.
constexpr std::int64_t kBinsPerIteration = 512;
constexpr std::int64_t kPacketsPerBin = 16;

/// Returns for each job the number of the first job that is identical to it. On a topology no two jobs are identical,
/// since hosts and paths differ.
std::vector<std::size_t> representatives(const Experiment& experiment) {
  std::vector<std::size_t> all(experiment.jobs.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
    for (std::size_t j = 0; j < i && all[i] == i; ++j)
      if (!experiment.topology && alike(experiment.jobs[i], experiment.jobs[j])) all[i] = j;
  }
  return all;
}

/// Delays all bursts by `shift`, and removes parts that are then beyond the period.
scheduler::Demand moved(scheduler::Demand demand, Nanos shift) {
  for (scheduler::Burst& burst : demand.bursts) {
    burst.from += shift;
    burst.to = std::min(burst.to + shift, demand.period);
  }
  std::erase_if(demand.bursts, [](const scheduler::Burst& burst) { return burst.from >= burst.to; });
  return demand;
}

/// Returns the demand with period `period`. The silence is scaled, and every burst is delayed by the increase of the
/// silence before it.
scheduler::Demand stretched(const scheduler::Demand& demand, Nanos period) {
  scheduler::Demand result;
  result.period = period;
  const double silence = (demand.period - scheduler::busy_time(demand)).seconds();
  const double scale = silence > 0 ? 1 + (period - demand.period).seconds() / silence : 1;
  Nanos before;  // silence
  Nanos last;
  Nanos end;
  for (const scheduler::Burst& burst : demand.bursts) {
    before += burst.from - last;
    const Nanos shift = Nanos::from_seconds(before.seconds() * (scale - 1));
    const Nanos from = std::max(end, burst.from + shift);
    end = std::min(period, burst.to + shift);
    last = burst.to;
    if (from < end) result.bursts.push_back({from, end, burst.rate});
  }
  return result;
}

/// Bytes sent on a link in each bin since the epoch.
struct Metered {
  std::vector<Bytes> bytes;
  Nanos bin;  ///< width of a bin; meters widen their bins when they are full
};

/// Returns how job `number` used the links. Adds an entry to `profile.uses` for each used link, without the demand.
std::vector<Metered> usage_of(std::uint32_t number, std::span<const JobNetwork::LinkView> links, Nanos epoch,
                              Profile& profile) {
  std::vector<Metered> usage;
  for (std::size_t link = 0; link < links.size(); ++link) {
    if (links[link].usage == nullptr) continue;
    const auto found = links[link].usage->jobs().find(number);
    if (found == links[link].usage->jobs().end()) continue;
    // The epoch is on an edge of the meter's initial bins. It is rounded to an edge of the current bins, which may be
    // wider.
    const Nanos bin = links[link].usage->bin();
    const auto skip = static_cast<std::size_t>((epoch.count + bin.count / 2) / bin.count);
    if (found->second.size() <= skip) continue;
    usage.push_back({{found->second.begin() + static_cast<std::ptrdiff_t>(skip), found->second.end()}, bin});
    profile.uses.push_back({link, std::string(links[link].name), links[link].config->rate, {}});
  }
  return usage;
}

/// Returns the demand of an iteration that began at `start` and took `period`.
scheduler::Demand demand_in(const Metered& usage, Nanos start, Nanos period) {
  const auto& [bytes, bin] = usage;
  // Starts at the next bin edge, since the bin before this edge contains the end of the previous iteration.
  const Nanos edge((start.count + bin.count - 1) / bin.count * bin.count);
  if (period > bin * 2) return moved(scheduler::fold(bytes, bin, edge, period), edge - start);
  // For an iteration of at most two bins, only the mean rate is known.
  const double sent = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  const double mean = 8 * sent / (bin.seconds() * static_cast<double>(bytes.size()));
  return {period, {{Nanos(0), period, Rate(static_cast<std::uint64_t>(std::ceil(mean)))}}};
}

double deviation_from(Nanos period, std::span<const Nanos> times) {
  double squares = 0;
  for (const Nanos time : times) {
    const double off = static_cast<double>((time - period).count) / static_cast<double>(period.count);
    squares += off * off;
  }
  return std::sqrt(squares / static_cast<double>(times.size()));
}

Profile profile_job(const Experiment& experiment, std::uint32_t number, Datapath& datapath,
                    const std::function<void(double)>& tick) {
  RunPlan plan;
  plan.policy = kBaselinePolicy;
  plan.has_faults = false;
  workload::Job job = experiment.jobs[number];
  job.start = {};
  job.jitter = {};
  job.straggler = {};
  job.pause = {};
  job.change = {};
  job.iterations = 0;
  plan.iterations = profile_iterations(experiment);
  plan.first_number = experiment.topology ? number : 0;
  const Nanos ideal = workload::ideal_iteration(job, experiment.bottleneck.rate).length;
  plan.usage_bin =
      std::max(ideal / kBinsPerIteration, experiment.bottleneck.rate.time_for(experiment.mtu) * kPacketsPerBin);
  plan.jobs = {job};

  Profile profile;
  profile.compute = job.compute_per_iteration();
  profile.first_send = time_to_first_send(job);
  std::vector<Metered> usage;  // in the order of profile.uses
  bool measured = false;
  plan.finished = [&](std::span<const JobNetwork::LinkView> links, Nanos epoch) {
    measured = !links.empty();
    usage = usage_of(plan.first_number, links, epoch, profile);
  };
  const Run run = datapath.run(experiment, plan, tick);

  const JobResult& result = run.jobs.front();
  const auto times = std::span(result.iterations).subspan(1);
  profile.period = iteration_stats(times).p50;
  // If the bottleneck was not measured, assumes the job's ideal demand. If the iteration took longer than ideal, the
  // last burst is extended by the difference.
  if (!measured && !experiment.topology) {
    if (job.rate.is_zero()) job.rate = experiment.bottleneck.rate;
    scheduler::Demand demand = demand_of(job, experiment.bottleneck.rate);
    if (!demand.bursts.empty() && profile.period > demand.period) {
      demand.bursts.back().to += profile.period - demand.period;
      demand.period = profile.period;
    }
    profile.uses.push_back({0, "bottleneck", experiment.bottleneck.rate, stretched(demand, profile.period)});
  }
  profile.deviation = deviation_from(profile.period, times);
  // Takes the demand from the iteration whose length is the median.
  const auto median = static_cast<std::size_t>(std::ranges::find(times, profile.period) - times.begin());
  for (std::size_t i = 0; i < usage.size(); ++i) {
    scheduler::Demand& demand = profile.uses[i].demand;
    demand = demand_in(usage[i], result.starts[median + 1], profile.period);
    // A packet that began in the previous bin can raise the rate above the capacity.
    for (scheduler::Burst& burst : demand.bursts) burst.rate = std::min(burst.rate, profile.uses[i].capacity);
  }
  return profile;
}

}  // namespace

Profile with_compute(const Profile& profile, Nanos compute) {
  Profile result = profile;
  // The period cannot become shorter than the bursts.
  Nanos least(1);
  for (const Profile::Use& use : profile.uses) least = std::max(least, scheduler::busy_time(use.demand));
  result.period = std::max(profile.period + compute - profile.compute, least);
  result.compute = compute;
  if (profile.compute.count > 0)
    result.first_send =
        Nanos::from_seconds(profile.first_send.seconds() * (compute.seconds() / profile.compute.seconds()));
  for (Profile::Use& use : result.uses) use.demand = stretched(use.demand, result.period);
  return result;
}

std::uint32_t profile_iterations(const Experiment& experiment) {
  return std::min(kMaxIterations, std::max(experiment.iterations, 2U));
}

double profile_work(const Experiment& experiment, bool real_time) {
  const std::vector<std::size_t> all = representatives(experiment);
  double work = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == i) work += profile_iterations(experiment) * work_of(experiment.jobs[i], experiment, real_time);
  return work;
}

std::vector<Profile> profile_jobs(const Experiment& experiment, Datapath& datapath, const ProfileProgress& progress,
                                  std::uint32_t threads) {
  const bool real_time = datapath.real_time();
  const std::vector<std::size_t> all = representatives(experiment);
  std::vector<std::size_t> measured;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == i) measured.push_back(i);
  const double total = profile_work(experiment, real_time);
  std::vector<Profile> profiles(all.size());
  std::mutex mutex;  // protects `done`, and serialises `progress` calls
  double done = 0;
  side_by_side(real_time ? 1 : threads, measured.size(), [&](std::size_t place) {
    const std::size_t i = measured[place];
    const double work = profile_iterations(experiment) * work_of(experiment.jobs[i], experiment, real_time);
    double reported = 0;
    const auto tick = [&](double fraction) {
      if (!progress) return;
      const std::lock_guard lock(mutex);
      done += work * fraction - reported;
      reported = work * fraction;
      progress(done / total, experiment.jobs[i].name);
    };
    tick(0);
    profiles[i] = profile_job(experiment, static_cast<std::uint32_t>(i), datapath, tick);
    const std::lock_guard lock(mutex);
    done += work - reported;
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != i) profiles[i] = profiles[all[i]];
  return profiles;
}

}  // namespace mltcp::experiment
