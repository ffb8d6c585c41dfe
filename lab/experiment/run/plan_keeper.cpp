// The scheduler during a run (see plan_keeper.h).
#include "mltcp/lab/experiment/run/plan_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

// A late job is detected within 1/256 of its period, which is below the slack of slots. Checking more often than every
// kShortestSlice does not help hosts, whose messages take about 100 us.
constexpr std::int64_t kSlicesPerPeriod = 256;
constexpr Nanos kShortestSlice{100'000};
// Maximum cost of repairs beyond what slots save, in periods, for all jobs together. The gate's limit is similar: it
// drops a plan as a misfit after three corrections of a period each.
constexpr double kMaxDebt = 3;
// Slots are given up if iterations take longer than predicted without slots, by this many periods of each job in all.
// The correction of a single disturbance costs about one. A single iteration counts for at most kMaxExcess, because a
// pause of the program may have lengthened it.
constexpr double kMaxOverrun = 1.5;
constexpr double kMaxExcess = 0.5;

}  // namespace

PlanKeeper::PlanKeeper(const ScheduleSettings& settings, std::vector<workload::Job> jobs, std::vector<Profile> profiles,
                       PlanOptions options)
    : settings_(settings), options_(std::move(options)), jobs_(std::move(jobs)), profiles_(std::move(profiles)) {
  options_.repaired = options_.repaired && settings_.replan && settings_.correction == PhasePlan::Correction::at_once;
  schedule_ = plan_jobs(settings_, jobs_, profiles_, options_);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].start += schedule_.delays[i];
    const Nanos first = jobs_[i].start + profiles_[i].first_send;
    states_.push_back({jobs_[i].start, first + profiles_[i].period / 2});
  }
  groups_.resize(jobs_.size());
}

ScheduleSummary PlanKeeper::summary() const {
  ScheduleSummary summary = schedule_.summary;
  summary.unplanned = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (const auto& slot = schedule_.slots[i]) {
      summary.slots.push_back({jobs_[i].name, slot->period, modulo(slot->slot, slot->period), schedule_.delays[i],
                               slot->period.seconds() / profiles_[i].period.seconds() - 1});
    } else if (!jobs_[i].unaware) {
      summary.without_slots.push_back(jobs_[i].name);
      summary.reasons.push_back(schedule_.reasons[i]);
      if (schedule_.planned[schedule_.groups[i]].jobs.size() > 1) ++summary.unplanned;
    }
  }
  return summary;
}

Nanos PlanKeeper::slice() const {
  Nanos slice = kSlice;
  if (!options_.repaired) return slice;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (schedule_.slots[i] && schedule_.planned[schedule_.groups[i]].repaired)
      slice = std::min(slice, schedule_.slots[i]->period / kSlicesPerPeriod);
  return std::max(slice, kShortestSlice);
}

void PlanKeeper::follow(std::span<RunningJob* const> drivers, Nanos epoch, Nanos now) {
  for (std::size_t group = 0; group < schedule_.planned.size(); ++group) {
    if (schedule_.planned[group].jobs.empty() || !schedule_.planned[group].sharing.known || !schedule_.slots[group])
      continue;
    if (std::string reason; worth_nothing(group, drivers, reason)) give_up(group, reason, drivers);
  }
  for (std::size_t i = 0; i < drivers.size(); ++i) {
    if (!schedule_.slots[i]) continue;
    const std::size_t group = schedule_.groups[i];
    if (drivers[i]->plan_state() == PlanState::misfit) {
      if (settings_.replan && measure_again(i, *drivers[i]))
        plan_again(group, drivers, epoch, now);
      else
        give_up(group, "its slots were dropped: it kept missing them, or a job that shares a link with it did",
                drivers);
    } else if (schedule_.planned[group].repaired && drifts(i, *drivers[i], now - epoch)) {
      if (measure_again(i, *drivers[i]))
        plan_again(group, drivers, epoch, now);
      else
        repair(i, drivers, epoch, now);
    }
  }
}

/// Returns whether the job has drifted and the keeper has not yet decided on this drift. A decision holds until the job
/// is on a slot again.
bool PlanKeeper::drifts(std::size_t number, const RunningJob& driver, Nanos now) const {
  const JobState& state = states_[number];
  if (now < state.decided_until || driver.adrift_since().is_never()) return false;
  const PhasePlan& slots = *schedule_.slots[number];
  const bool early = modulo(now - slots.slot, slots.period) > slots.period / 2;
  return now >= state.joins_until || !early;
}

bool PlanKeeper::worth_nothing(std::size_t group, std::span<RunningJob* const> drivers, std::string& reason) {
  const Schedule::Group& planned = schedule_.planned[group];
  const auto jobs = static_cast<double>(planned.jobs.size());
  GroupState& state = groups_[group];
  for (const std::size_t job : planned.jobs) {
    if (drivers[job]->recorded() <= states_[job].judged) continue;
    const JobResult result = drivers[job]->result();
    for (std::size_t& i = states_[job].judged; i < result.iterations.size(); ++i) {
      // The iteration in which a job waits for its first slot does not count.
      if (result.starts[i] < state.planned_at + schedule_.slots[job]->period) continue;
      double length = result.iterations[i].seconds();
      // Subtracts compute time beyond that of the profile, because slots do not cause it.
      if (!result.iteration_compute.empty()) length -= (result.iteration_compute[i] - profiles_[job].compute).seconds();
      length /= profiles_[job].period.seconds();
      const double excess = std::min(length - planned.sharing.mean, kMaxExcess);
      state.overrun = std::max(0.0, state.overrun + excess / jobs);
      state.sum += length;
      ++state.count;
    }
  }
  if (state.overrun <= kMaxOverrun) return false;
  reason = fmt::format(
      "its slots were dropped: iterations took {:.3f} times their time alone, and without slots they would take {:.3f}",
      state.sum / static_cast<double>(state.count), planned.sharing.mean);
  return true;
}

void PlanKeeper::repair(std::size_t late, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now) {
  const Schedule::Group& group = schedule_.planned[schedule_.groups[late]];
  std::vector<Nanos> shifts;
  std::uint32_t place = 0;
  for (std::size_t i = 0; i < group.jobs.size(); ++i) {
    const std::size_t job = group.jobs[i];
    if (!schedule_.slots[job]) return;
    if (job == late) place = static_cast<std::uint32_t>(i);
    shifts.push_back(schedule_.slots[job]->slot - profiles_[job].first_send);
  }
  const scheduler::Repair repair = group.timetable->repair(shifts, place, now - epoch);
  schedule_.summary.cut_off = schedule_.summary.cut_off || !repair.complete;
  // The time saved by slots pays for repairs. Slots in which jobs overlap are given up if repairs cost more than slots
  // save.
  const Nanos period = schedule_.slots[late]->period;
  GroupState& state = groups_[schedule_.groups[late]];
  const double periods = (now - epoch - state.repaired_at).seconds() / period.seconds();
  const double saving = (group.sharing.mean - group.slots.mean) * static_cast<double>(group.jobs.size());
  state.debt = std::max(0.0, state.debt - saving * periods) + repair.delay.seconds() / period.seconds();
  state.repaired_at = now - epoch;
  if (!group.fit && state.debt > kMaxDebt) {
    give_up(schedule_.groups[late], "its slots were dropped: repairs cost more than they saved", drivers);
    return;
  }
  // After repair.wait, the job has left its gate. A drift that is seen half a period later belongs to the job's next
  // iteration.
  states_[late].decided_until = now - epoch + repair.wait + period / 2;
  if (repair.delays[place].count > 0) ++schedule_.summary.repaired;
  for (std::size_t i = 0; i < group.jobs.size(); ++i) {
    if (repair.delays[i].count == 0) continue;
    const std::size_t job = group.jobs[i];
    PhasePlan& plan = *schedule_.slots[job];
    plan.slot += repair.delays[i];
    PhasePlan slots = plan;
    slots.slot += epoch;
    drivers[job]->set_plan(slots);
  }
}

void PlanKeeper::plan_again(std::size_t group, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now) {
  // Plans only the jobs of this group, because the links that jobs use have not changed.
  std::vector<workload::Job> jobs = as_they_run(drivers, now - epoch);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    if (schedule_.groups[j] != group) jobs[j].unaware = true;
  PlanOptions options = options_;
  options.running = true;
  Schedule next = plan_jobs(settings_, jobs, profiles_, options);
  for (std::size_t j = 0; j < drivers.size(); ++j) {
    if (schedule_.groups[j] != group) continue;
    schedule_.slots[j] = next.slots[j];
    schedule_.reasons[j] = next.reasons[j];
  }
  schedule_.planned[group] = std::move(next.planned[group]);
  ++schedule_.summary.replanned;
  groups_[group] = {.planned_at = now - epoch, .repaired_at = now - epoch};
  schedule_.summary.stretch = std::max(schedule_.summary.stretch, next.summary.stretch);
  schedule_.summary.cut_off = schedule_.summary.cut_off || next.summary.cut_off;
  for (std::size_t j = 0; j < drivers.size(); ++j) {
    if (schedule_.groups[j] != group) continue;
    if (!schedule_.slots[j]) {
      if (drivers[j]->plan_state() == PlanState::active) drivers[j]->clear_plan();
      continue;
    }
    PhasePlan slots = *schedule_.slots[j];
    slots.slot += epoch;
    drivers[j]->set_plan(slots);
    // After one period, the job has been on one of its new slots.
    states_[j].decided_until = states_[j].joins_until = now - epoch + slots.period;
  }
}

void PlanKeeper::give_up(std::size_t group, const std::string& reason, std::span<RunningJob* const> drivers) {
  for (std::size_t j = 0; j < drivers.size(); ++j) {
    if (schedule_.groups[j] != group) continue;
    schedule_.slots[j].reset();
    schedule_.reasons[j] = reason;
    if (drivers[j]->plan_state() == PlanState::active) drivers[j]->clear_plan();
  }
}

bool PlanKeeper::measure_again(std::size_t number, const RunningJob& driver) {
  // The standard deviation of the median of n values is 1.25 / sqrt(n) times the standard deviation of the values. With
  // 7 values, four deviations of the median are about two deviations of the values. Fewer values would mistake chance
  // for a change, since late jobs have recently computed longer than usual.
  constexpr std::size_t few = 3;
  constexpr std::size_t many = 7;
  constexpr double deviations = 2;
  constexpr double min_change = 0.001;
  // If each rank has its own jitter, the slowest rank decides. `slowest` is about the number of standard deviations by
  // which it is later than the mean.
  const workload::Job& job = jobs_[number];
  const double slowest = job.ranked() ? std::sqrt(2 * std::log(static_cast<double>(workload::ranks_of(job)))) : 0.0;
  const double jitter = job.jitter.seconds();
  const std::size_t latest = jitter > 0 ? many : few;
  const std::vector<Nanos> computed = driver.result().iteration_compute;
  if (computed.size() < latest) return false;
  std::vector<Nanos> last(computed.end() - static_cast<std::ptrdiff_t>(latest), computed.end());
  std::ranges::sort(last);
  Profile& profile = profiles_[number];
  const double min = std::max(min_change * profile.period.seconds(), (deviations + slowest) * jitter);
  if (std::abs((last[latest / 2] - profile.compute).seconds()) < min) return false;
  // The median has changed, so more than half of the values are from after the change.
  const std::span after(computed.end() - static_cast<std::ptrdiff_t>(latest / 2 + 1), computed.end());
  const Nanos sum = std::accumulate(after.begin(), after.end(), Nanos());
  profile = with_compute(profile, sum / static_cast<std::int64_t>(after.size()));
  return true;
}

/// Returns the jobs. The start of each job is the start of its next iteration that has not begun to send, or the time
/// when that iteration would begin without slots.
std::vector<workload::Job> PlanKeeper::as_they_run(std::span<RunningJob* const> drivers, Nanos now) const {
  std::vector<workload::Job> jobs = jobs_;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobResult result = drivers[i]->result();
    if (!result.starts.empty()) jobs[i].start = result.starts.back() + result.iterations.back();
    if (!drivers[i]->adrift_since().is_never())
      jobs[i].start = now - profiles_[i].first_send;
    else if (jobs[i].start + profiles_[i].first_send < now)
      jobs[i].start += profiles_[i].period;
  }
  return jobs;
}

}  // namespace mltcp::experiment
