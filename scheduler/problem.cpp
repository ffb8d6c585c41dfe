// Checks problems and options, and implements the analyses based on solving (see problem.h).
#include "mltcp/scheduler/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <numeric>
#include <unordered_set>

#include "mltcp/base/error.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {

namespace {

/// Maximum number of jobs on one link. The sum of their rates then fits into 63 bits.
constexpr std::size_t kMaxUses = 10'000;

}  // namespace

void check(const Problem& problem) {
  std::unordered_set<std::string_view> names;
  for (const Problem::ProblemJob& job : problem.jobs) {
    if (job.name.empty()) throw InputError("a job has no name; give each job one");
    if (!names.insert(job.name).second)
      throw InputError(fmt::format("two jobs are named \"{}\"; give each its own name", job.name));
    if (job.period.count <= 0 || job.period > kLongestPeriod)
      throw InputError(fmt::format("job \"{}\" has a period of {} ns; give one above 0 and at most {}", job.name,
                                   job.period.count, to_text(kLongestPeriod)));
    if (job.pinned && job.pinned->count < 0)
      throw InputError(
          fmt::format("job \"{}\" is pinned at {} ns; give a shift of 0 or more", job.name, job.pinned->count));
  }
  names.clear();
  std::vector<bool> seen;
  for (const Problem::Link& link : problem.links) {
    if (link.name.empty()) throw InputError("a link has no name; give each link one");
    if (!names.insert(link.name).second)
      throw InputError(fmt::format("two links are named \"{}\"; give each its own name", link.name));
    if (link.capacity.is_zero() || link.capacity > kHighestRate)
      throw InputError(fmt::format("link \"{}\" has a capacity of {} bit/s; give one above 0 and at most {}", link.name,
                                   link.capacity.bits_per_second, to_text(kHighestRate)));
    if (link.uses.size() > kMaxUses)
      throw InputError(
          fmt::format("link \"{}\" is used by {} jobs; give at most {}", link.name, link.uses.size(), kMaxUses));
    seen.assign(problem.jobs.size(), false);
    for (const Problem::Use& use : link.uses) {
      if (use.job >= problem.jobs.size())
        throw InputError(fmt::format("link \"{}\" is used by job number {}, and there are {} jobs; give a number below",
                                     link.name, use.job, problem.jobs.size()));
      const Problem::ProblemJob& job = problem.jobs[use.job];
      if (seen[use.job])
        throw InputError(
            fmt::format("link \"{}\" is used twice by job \"{}\"; add the demands up", link.name, job.name));
      seen[use.job] = true;
      if (use.demand.period != job.period)
        throw InputError(
            fmt::format("job \"{}\" has a period of {} ns, its demand on link \"{}\" one of {} ns; give "
                        "the same",
                        job.name, job.period.count, link.name, use.demand.period.count));
      try {
        check(use.demand);
      } catch (const InputError& error) {
        throw InputError(fmt::format("job \"{}\" on link \"{}\": {}", job.name, link.name, error.what()));
      }
    }
  }
}

double rotation(Nanos shift, Nanos perimeter) {
  return 2 * std::numbers::pi * static_cast<double>(shift.count) / static_cast<double>(perimeter.count);
}

std::vector<std::vector<double>> pair_scores(const std::vector<Demand>& jobs, Rate capacity,
                                             const SolveOptions& options) {
  std::vector<std::vector<double>> scores(jobs.size(), std::vector<double>(jobs.size(), 1));
  SolveOptions quick = options;
  quick.robust = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Problem problem{{{"a", jobs[i].period, {}}}, {{"link", capacity, {{0, jobs[i]}}}}};
    scores[i][i] = solve(problem, quick).links[0].score;
    problem.jobs.push_back({});
    problem.links[0].uses.push_back({});
    for (std::size_t k = i + 1; k < jobs.size(); ++k) {
      problem.jobs[1] = {"b", jobs[k].period, {}};
      problem.links[0].uses[1] = {1, jobs[k]};
      scores[i][k] = scores[k][i] = solve(problem, quick).score;
    }
  }
  return scores;
}

std::vector<Removal> removals(const Problem& problem, const SolveOptions& options) {
  check(problem);
  SolveOptions quick = options;
  quick.robust = false;
  std::vector<Removal> result;
  for (std::uint32_t gone = 0; gone < problem.jobs.size(); ++gone) {
    Problem rest = problem;
    rest.jobs.erase(rest.jobs.begin() + gone);
    for (Problem::Link& link : rest.links) {
      std::erase_if(link.uses, [gone](const Problem::Use& use) { return use.job == gone; });
      for (Problem::Use& use : link.uses) use.job -= use.job > gone ? 1 : 0;
    }
    if (rest.jobs.empty()) {
      result.push_back({gone, 1, 1});
      continue;
    }
    const Solution solution = solve(rest, quick);
    result.push_back({gone, solution.score, solution.upper_bound});
  }
  std::ranges::stable_sort(result, [](const Removal& a, const Removal& b) { return a.score > b.score; });
  return result;
}

namespace internal {

void check(const SolveOptions& options) {
  // The conditions are negated so that NaN is refused.
  if (!(options.max_stretch >= 0 && options.max_stretch <= 1))
    throw InputError(fmt::format("max_stretch is {}; give a share from 0 to 1", options.max_stretch));
  if (options.max_repetitions < 1 || options.max_repetitions > 1'000'000)
    throw InputError(fmt::format("max_repetitions is {}; give 1 to 1000000", options.max_repetitions));
  if (options.angles > 1'000'000)
    throw InputError(fmt::format("angles is {}; give at most 1000000, or 0 for exact shifts", options.angles));
  if (!(options.drift >= 0 && options.drift <= 0.5))
    throw InputError(fmt::format("drift is {}; give a share of the period from 0 to 0.5", options.drift));
  if (!(options.slack >= 0 && options.slack <= kMaxSlack))
    throw InputError(fmt::format("slack is {}; give a share from 0 to {}", options.slack, kMaxSlack));
}

std::int64_t perimeter_of(const Slots& slots, const std::vector<std::uint32_t>& jobs) {
  // lcm(P / r_j) = P / gcd(r_j)
  std::uint32_t common = 0;
  for (const std::uint32_t job : jobs) common = std::gcd(common, slots.repetitions[job]);
  return common == 0 ? 0 : slots.perimeter.count / common;
}

}  // namespace internal
}  // namespace mltcp::scheduler
