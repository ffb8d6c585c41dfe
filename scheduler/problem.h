// The scheduling problem: given jobs and the links on which they compete, find a start time for the iterations of each
// job that minimises the demand in excess of the capacities of the links.
//
// Formulas (arXiv 2308.00852, sections 3 and 4; docs/explanation/scheduler.md), for a link with capacity C and
// perimeter p:
//
//   demand(t) = sum over jobs of d_j(t - shift_j),  excess(t) = max(0, demand(t) - C)
//   score     = 1 - (integral of excess over p) / (p * C),      1 = fully compatible; a very poor score is negative
//
// Periods rarely have a short common multiple. Therefore jobs run in slots whose periods are slightly stretched: job j
// has slots of period P / r_j, where P is one perimeter for all jobs and r_j is an integer. The phase gate of the
// transport keeps each job in its slots. The solution states the stretch. The perimeter of a single link is the least
// common multiple of the slot periods of its jobs, which divides P.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::scheduler {

struct Problem {
  struct ProblemJob {
    std::string name;             ///< unique within the problem
    Nanos period;                 ///< period of an iteration in isolation
    std::optional<Nanos> pinned;  ///< fixed shift of a job that must not move; no value if it may
  };
  /// The demand of a job on a link. It must have the period of the job.
  struct Use {
    std::uint32_t job = 0;  ///< index of the job in Problem::jobs
    Demand demand;
  };
  struct Link {
    std::string name;       ///< unique within the problem
    Rate capacity;          ///< above 0, at most kHighestRate
    std::vector<Use> uses;  ///< 0 to 10000 entries, at most one for each job
  };
  std::vector<ProblemJob> jobs;
  std::vector<Link> links;
};

/// Throws InputError that names the job or link if the problem has an empty or duplicate name, a period or demand out
/// of range, an unknown job, or a link without capacity. It is not an error if the demand of a single job exceeds the
/// capacity of a link, but the score is low.
void check(const Problem& problem);

struct SolveOptions {
  /// Maximum stretch of a slot, as a share of the period of its job. Among the perimeters within this maximum, the
  /// solver chooses the one with the highest score minus mean stretch. For the case that no perimeter is within this
  /// maximum, see max_repetitions.
  double max_stretch = 0.02;
  /// Maximum perimeter, in multiples of the longest period. If every perimeter up to this maximum stretches a slot by
  /// more than max_stretch, the solver chooses the one with the least stretch, and Slots::within_limit is false.
  std::uint32_t max_repetitions = 32;
  /// Number of points on the grid of shifts. With 0 there is no grid, and shifts may be any whole number of
  /// nanoseconds. With a grid, shifts are multiples of perimeter / angles, rounded down to nanoseconds and taken modulo
  /// the slot period. CASSINI uses 72 (5 degrees). The perimeter is that of all jobs connected through links. If none
  /// of these jobs is pinned, the first of them has shift 0.
  std::uint32_t angles = 0;
  /// Work limit of the search of one link or loop, in nodes. At the limit, the search returns the best solution so far,
  /// with bounds. One node is the work to try one job at up to 64 shifts where a step of its demand meets a step of
  /// another job's demand. A node takes about 2 us. A job with many bursts or repetitions takes several nodes.
  /// Regardless of the limit, a bound for five to eight jobs takes up to 20 ms in addition. The limit is not a time, so
  /// that results are the same on every machine.
  std::uint64_t node_limit = 20'000;
  /// Deviation of each job from its slot, as a share of the slot period, for which LinkSolution::drift_score is
  /// computed. With `robust`, drift_score decides between shifts with equal scores.
  double drift = 0.05;
  /// If true, the solver prefers, among shifts with equal scores, those that tolerate the largest deviations. Without
  /// excess, it maximises the smallest margin of a link, then the second smallest, and so on. With excess, it maximises
  /// drift_score. False makes the solver faster.
  bool robust = true;
  std::uint64_t seed = 1;  ///< seed of the heuristic's random restarts
  /// Share of the period that is added to the period of every slot, so that late jobs can catch up
  /// (docs/explanation/scheduler.md). 0 to kMaxSlack.
  double slack = 0;
};

/// Maximum of SolveOptions::slack, at which slots are twice as long as iterations.
inline constexpr double kMaxSlack = 1;

/// The slots of all jobs of a problem, or of one component of it.
struct Slots {
  Nanos perimeter;                         ///< P; a multiple of all slot periods
  std::vector<std::uint32_t> repetitions;  ///< r_j of each job: number of its slots on the perimeter
  std::vector<Nanos> periods;              ///< P / r_j of each job: its slot period, at least its own period
  double stretch = 0;                      ///< maximum over the jobs of slot period / own period - 1
  bool exact = false;                      ///< true if slot periods equal the periods of the jobs
  bool within_limit = true;                ///< true if stretch <= max_stretch + slack
};

struct LinkSolution {
  Nanos perimeter;         ///< perimeter of this link's jobs; 0 for a link without jobs
  double score = 1;        ///< score with the shifts of the solution
  double upper_bound = 1;  ///< upper bound of the score of this link over all shifts
  bool optimal = true;     ///< true if it is proven that no shifts give this link a higher score
  /// Each job may deviate from its slot by this time, independently and in either direction, without lowering the
  /// score. At most half of the shortest slot; 0 for a link without jobs. The margin is exact if the score is 1 or if
  /// the link has up to two jobs. Otherwise it is a lower bound: the largest deviation at which no step up can meet a
  /// step down. The margin is 0 if even the smallest deviation of some job changes the score.
  Nanos margin;
  /// Lower bound of the score if each job deviates from its slot by at most SolveOptions::drift of its slot period. It
  /// is exact for up to two jobs. With more jobs, it assumes that the demand of each job is at any time the maximum
  /// within its deviation, which actual deviations may not reach.
  double drift_score = 1;
};

struct Solution {
  Slots slots;
  std::vector<Nanos> shifts;        ///< of each job, in [0, slots.periods[j]); iterations start at shift + k * period
  std::vector<LinkSolution> links;  ///< solution of each link
  double score = 1;                 ///< mean score of the links with at least two jobs; 1 if there are none
  double upper_bound = 1;           ///< upper bound of `score` over all shifts
  bool optimal = true;
  std::uint64_t nodes = 0;  ///< work of the search; may exceed SolveOptions::node_limit if jobs have many bursts
};

/// Returns slots for jobs with the given periods. Throws InputError if `periods` is empty, or if a period or an option
/// is out of range.
Slots choose_slots(const std::vector<Nanos>& periods, const SolveOptions& options = {});

/// Solves all links jointly. The links may form loops. The result is optimal if the search completes; otherwise it is
/// the best solution found, with a bound. solve() compares the first few perimeters within max_stretch. It chooses the
/// perimeter with the highest score minus mean stretch, and the bounds hold for this perimeter only. In each connected
/// component without pinned jobs, the shift of the first job is 0. Pinned shifts are taken modulo the slot period.
/// Throws InputError like check(), and if a link has more than a million bursts on its perimeter, for example because a
/// job with a period of seconds meets one with a period of microseconds. For a whole cluster use cluster.h, which
/// splits the problem first.
Solution solve(const Problem& problem, const SolveOptions& options = {});
/// Solves all links jointly, like solve(problem, options), but with the given slots. Also throws InputError if the
/// slots do not fit the jobs.
Solution solve(const Problem& problem, const Slots& slots, const SolveOptions& options = {});

/// Returns the scores, margins and bounds of the links for given shifts. The bounds use only the areas of the demands.
/// Throws InputError like solve(), and if slots or shifts do not match the problem.
Solution evaluate(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                  const SolveOptions& options = {});

/// Returns the rotation angle of a job on a link in radians: 2 pi * shift / perimeter. If the job has r slots on the
/// perimeter, the angle is from 0 to less than 2 pi / r.
double rotation(Nanos shift, Nanos perimeter);

// ---- Analyses based on solving ----

/// Returns a matrix of scores. Entry [i][j] is the score of the jobs i and j on a link of `capacity` without other
/// jobs. Entry [i][i] is the score of job i without other jobs, which is 1 if its peak is within the capacity.
std::vector<std::vector<double>> pair_scores(const std::vector<Demand>& jobs, Rate capacity,
                                             const SolveOptions& options = {});

/// The score of a problem after `job` is removed.
struct Removal {
  std::uint32_t job = 0;
  double score = 1;
  double upper_bound = 1;
};
/// Returns the scores after the removal of each single job, the highest score first, to choose which job to remove from
/// an incompatible set.
std::vector<Removal> removals(const Problem& problem, const SolveOptions& options = {});

}  // namespace mltcp::scheduler
