// Computes the fluid limit (see fluid_model.h).
#include "mltcp/cc/fluid_model.h"

#include <algorithm>
#include <limits>

namespace mltcp::cc {

double FluidPair::shift(double delta) const {
  const double up = up_fraction * period;
  if (delta <= 0 || delta >= up) return 0;
  return function.slope * delta * (up - delta) / (up * function.intercept + delta * function.slope);
}

double FluidPair::first_job_iteration(double delta) const {
  const double up = up_fraction * period;
  if (delta >= up) return period;
  // Under fair sharing, the first job sends alone for `delta`, and then at half the rate. So its iteration is longer
  // than the period by (up - delta). The shift is the time that the first job gains on the other job.
  return period + (up - delta) - shift(delta);
}

std::vector<double> FluidPair::trajectory(double delta, int iterations) const {
  std::vector<double> offsets{delta};
  for (int i = 0; i < iterations; ++i) {
    delta += shift(delta);
    offsets.push_back(delta);
  }
  return offsets;
}

std::vector<std::vector<double>> fluid_iterations(std::span<const FluidJob> jobs, const Aggressiveness& function,
                                                  int iterations) {
  struct State {
    double begin = 0;
    double up_at = 0;   // time when the job begins to send
    double sent = -1;   // share of the iteration's bytes; below 0 while the job computes
    double speed = 0;   // increase of `sent` per unit of time
    double middle = 0;  // `sent` after half a step
  };
  std::vector<State> states;
  double step = std::numeric_limits<double>::infinity();
  for (const FluidJob& job : jobs) {
    states.push_back({.begin = job.start, .up_at = job.start + job.compute});
    step = std::min(step, job.communicate / 2000);
  }
  // Divides the link among the sending jobs in proportion to F at each job's progress. `progress` selects the member of
  // State that contains this progress.
  const auto share = [&](double State::*progress) {
    double sum = 0;
    for (const State& s : states)
      if (s.sent >= 0) sum += function(std::min(1.0, s.*progress));
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].sent >= 0)
        states[i].speed = function(std::min(1.0, states[i].*progress)) / sum / jobs[i].communicate;
    return sum > 0;
  };
  std::vector<std::vector<double>> lengths(jobs.size());
  double now = 0;
  const auto all_done = [&] {
    return std::all_of(lengths.begin(), lengths.end(),
                       [&](const auto& l) { return l.size() >= static_cast<std::size_t>(iterations); });
  };
  while (!all_done()) {
    double next = std::numeric_limits<double>::infinity();
    for (State& s : states) {
      if (s.sent < 0 && s.up_at <= now) s.sent = 0;
      if (s.sent < 0) next = std::min(next, s.up_at);
    }
    if (!share(&State::sent)) {
      now = next;
      continue;
    }
    // A step ends early when a job begins or stops sending.
    double dt = std::min(step, next - now);
    for (State& s : states) s.middle = s.sent + s.speed * dt / 2;
    share(&State::middle);
    for (const State& s : states)
      if (s.sent >= 0) dt = std::min(dt, (1 - s.sent) / s.speed);
    now += dt;
    for (std::size_t i = 0; i < states.size(); ++i) {
      State& s = states[i];
      if (s.sent < 0) continue;
      s.sent += s.speed * dt;
      if (s.sent < 1 - 1e-12) continue;
      lengths[i].push_back(now - s.begin);
      s = {.begin = now, .up_at = now + jobs[i].compute};
    }
  }
  for (auto& l : lengths) l.resize(static_cast<std::size_t>(iterations));
  return lengths;
}

}  // namespace mltcp::cc
