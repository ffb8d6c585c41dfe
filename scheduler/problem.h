// The scheduling problem: given jobs and the links on which they compete, find when each job's iteration should start,
// so that the demand in excess of the links' capacity is minimal. A single link is a special case.
//
// Formulas (arXiv 2308.00852, sections 3 and 4; docs/explanation/scheduler.md), for a link with capacity C and
// perimeter p:
//
//   demand(t) = sum over jobs of d_j(t - shift_j),  excess(t) = max(0, demand(t) - C)
//   score     = 1 - (integral of excess over p) / (p * C),      1 = fully compatible; never clamped, may be negative
//
// Periods rarely have a short common multiple. Therefore jobs run in slots whose periods are slightly stretched, to
// P / r_j with one P and integers r_j. The transport's phase gate keeps each job in its slots. The solution states the
// stretch. A link's own perimeter is the least common multiple of the slot periods of its jobs, a divisor of P.
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
    std::optional<Nanos> pinned;  ///< fixed shift, for a job that is already running
  };
  /// A job's demand on a link. The demand's period is the job's.
  struct Use {
    std::uint32_t job = 0;  ///< index
    Demand demand;
  };
  struct Link {
    std::string name;       ///< unique within the problem
    Rate capacity;          ///< above 0, at most kHighestRate
    std::vector<Use> uses;  ///< each job at most once; 0 to 10000 jobs
  };
  std::vector<ProblemJob> jobs;
  std::vector<Link> links;
};

/// Throws InputError "cause; cure" that names the job or link for an empty or duplicate name, a period or demand out of
/// range, an unknown job, or a link without capacity. A single job that exceeds a link's capacity is not an error, but
/// lowers the score.
void check(const Problem& problem);

struct SolveOptions {
  /// Maximum stretch of a slot relative to its job's period, if max_repetitions allows it. From the perimeters within
  /// it, the solver takes the one with the best score minus mean stretch.
  double max_stretch = 0.02;
  /// Maximum perimeter, in multiples of the longest period. If no perimeter within it keeps max_stretch, the one with
  /// the minimum stretch is taken, and Slots::within_limit is false.
  std::uint32_t max_repetitions = 32;
  /// 0: shifts are whole nanoseconds, and the optimum is over all of them. Above 0: shifts are multiples of
  /// perimeter / angles, as in the paper (72 for its 5 degrees), rounded down to nanoseconds and taken modulo the
  /// slot's period, and the optimum is over these. The perimeter is that of the jobs connected through links; if none
  /// of them is pinned, the shift of the first is 0.
  std::uint32_t angles = 0;
  /// Work limit of the search of one link or loop, in nodes; beyond it, the result is the best solution so far, with
  /// bounds. A node is one job tried at all shifts of its slot at which up to 64 pairs of steps meet; jobs with many
  /// bursts or repetitions take several nodes. A node takes about 2 us; a bound for five to eight jobs takes up to 20
  /// ms more, whatever the limit. The limit is not a time, so that results are the same on every machine.
  std::uint64_t node_limit = 20'000;
  /// Deviation of each job from its slot, as a share of its period, for which LinkSolution::drift_score is computed. It
  /// also breaks ties between equal scores.
  double drift = 0.05;
  /// Among shifts with equal scores, prefer those that tolerate the largest deviations: without excess, the largest
  /// margin of the tightest link, then of the next, and so on; with excess, the highest drift_score. False: solves
  /// faster.
  bool robust = true;
  std::uint64_t seed = 1;  ///< seed of the heuristic's random restarts
  double slack = 0;        ///< added to every slot's period, as a share of it, so that late jobs can catch up (see
                           ///< docs/explanation/scheduler.md)
};

/// Maximum slack: slots are then twice as long as iterations.
inline constexpr double kMaxSlack = 1;

/// The common timing of all jobs of a problem, or of one of its components.
struct Slots {
  Nanos perimeter;                         ///< P; a multiple of every slot's period
  std::vector<std::uint32_t> repetitions;  ///< r_j by job
  std::vector<Nanos> periods;              ///< P / r_j by job; never shorter than the job's own period
  double stretch = 0;                      ///< maximum of slot period / own period - 1
  bool exact = false;                      ///< P is the least common multiple of the periods, so nothing is stretched
  bool within_limit = true;                ///< stretch <= max_stretch (+ slack)
};

struct LinkSolution {
  Nanos perimeter;         ///< perimeter of this link's jobs; 0 for a link without jobs
  double score = 1;        ///< with the solution's shifts
  double upper_bound = 1;  ///< no shifts can give this link a higher score
  bool optimal = true;     ///< score == upper_bound, proven
  /// Deviation that each job may have from its slot, independently and in either direction, without a lower score; at
  /// most half of the shortest slot. It is exact for a score of 1 and for links with up to two jobs. For a lower score
  /// with three or more jobs it is a lower bound: it ends where a step may meet an opposite one, and is 0 if the score
  /// changes at once with the shift of some job. 0 for a link without jobs.
  Nanos margin;
  /// Lower bound of the score if each job deviates from its slot by at most SolveOptions::drift of its slot's period.
  /// Exact for up to two jobs. For more jobs it assumes that each job's demand is at any time the maximum within its
  /// deviation, which actual deviations may not reach.
  double drift_score = 1;
};

struct Solution {
  Slots slots;
  std::vector<Nanos> shifts;        ///< by job, in [0, slots.periods[j]): iterations start at shift + k * period
  std::vector<LinkSolution> links;  ///< by link
  double score = 1;                 ///< mean score of the links with at least two jobs; 1 if there are none
  double upper_bound = 1;           ///< upper bound of that mean score
  bool optimal = true;
  std::uint64_t nodes = 0;  ///< search work done; may exceed SolveOptions::node_limit if there are many bursts
};

/// Slots for jobs with these periods. Throws InputError if there are no periods, or if periods or options are invalid.
Slots choose_slots(const std::vector<Nanos>& periods, const SolveOptions& options = {});

/// Solves all links jointly, whatever loops they form. The result is exact if the search completes, otherwise the best
/// solution found, with a bound. From the first few perimeters within max_stretch, it takes the one with the best score
/// minus mean stretch; bounds hold for that perimeter. In each connected component the first job's shift is 0, unless
/// some jobs are pinned; pinned shifts are taken modulo their slots' periods. Throws InputError like check(), and for
/// links with more than a million bursts on their perimeter, for example if periods of seconds and of microseconds
/// meet. For whole clusters see cluster.h, which decomposes them first.
Solution solve(const Problem& problem, const SolveOptions& options = {});
/// The same with given slots.
Solution solve(const Problem& problem, const Slots& slots, const SolveOptions& options = {});

/// Scores, margins and bounds of the links for given shifts. The bounds follow from the demands' areas only. Throws
/// InputError like solve(), and for slots or shifts that do not match the problem.
Solution evaluate(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                  const SolveOptions& options = {});

/// Rotation angle of a job on a link, in radians, 0 <= angle < 2 pi / r: 2 pi * shift / perimeter.
double rotation(Nanos shift, Nanos perimeter);

// ---- Analyses based on solving -------------------------------------------------------------------------------------

/// score[i][j]: the score of jobs i and j alone on a link of `capacity`; on the diagonal, of one job alone (1 if it
/// fits).
std::vector<std::vector<double>> pair_scores(const std::vector<Demand>& jobs, Rate capacity,
                                             const SolveOptions& options = {});

/// The score of a set of jobs without one of them, to choose which job to remove from an incompatible set. removals()
/// returns the best first.
struct Removal {
  std::uint32_t job = 0;
  double score = 1;
  double upper_bound = 1;
};
std::vector<Removal> removals(const Problem& problem, const SolveOptions& options = {});

}  // namespace mltcp::scheduler
