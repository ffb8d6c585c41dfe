// The question that the scheduler answers: jobs, the links on which they meet, and when each job's iteration should
// begin so that the demand beyond the links' capacity is least. One link is the special case.
//
// Formulas (arXiv 2308.00852, sections 3 and 4; DESIGN "Scheduler"), for a link with capacity C and perimeter p:
//
//   demand(t) = sum over jobs of d_j(t - shift_j),  excess(t) = max(0, demand(t) - C)
//   score     = 1 - (integral of excess over p) / (p * C),      1 = fully compatible; never clamped, may be negative
//
// Periods rarely have a short common multiple. So the jobs of a problem run in slots whose periods are stretched a
// little to P / r_j, for one P and whole r_j: the transport's phase gate holds a job to its slot. The solution says how
// much. A link's own perimeter is the least common multiple of the slot periods of its jobs, a divisor of P.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::scheduler {

struct Problem {
  struct Job {
    std::string name;             ///< unique within the problem
    Nanos period;                 ///< of an iteration that has the network to itself
    std::optional<Nanos> pinned;  ///< its shift is this one, as it runs already
  };
  /// What a job asks of a link. The demand's period is the job's.
  struct Use {
    std::uint32_t job = 0;  ///< index
    Demand demand;
  };
  struct Link {
    std::string name;       ///< unique within the problem
    Rate capacity;          ///< above 0, at most kHighestRate
    std::vector<Use> uses;  ///< each job at most once; a link may have none, and 10000 at most
  };
  std::vector<Job> jobs;
  std::vector<Link> links;
};

/// Throws InputError "cause; cure" that names the job or link: an empty or double name, a period or demand out of
/// range, an unknown job, a link without capacity. What a link can't carry even for one job alone is no error; it
/// lowers the score.
void check(const Problem& problem);

struct SolveOptions {
  /// A slot's period is at most this much longer than the job's, as a share of it, where the limit on the perimeter
  /// allows; of the perimeters that keep it, the solver takes the one with the best score less mean stretch.
  double max_stretch = 0.02;
  /// The perimeter is at most so many times the longest period. When no perimeter within it keeps max_stretch, the one
  /// with the least stretch is taken, and Slots::within_limit is false.
  std::uint32_t max_repetitions = 32;
  /// 0: shifts are any whole nanosecond, and the optimum is over all of them. Otherwise shifts are multiples of
  /// perimeter / angles, as in the paper (72 for its 5 degrees), rounded down to nanoseconds and taken modulo the
  /// slot's period, and the optimum is over those. The perimeter is that of the jobs that hang together through links;
  /// where none of them is pinned, the first is at 0.
  std::uint32_t angles = 0;
  /// Work after which the search of one link or loop gives up and reports bounds, in nodes: a node is one job tried at
  /// all shifts of its slot at which up to 64 pairs of steps meet, so that jobs with many bursts or repetitions take
  /// several. About 2 us each, and up to some 20 ms besides, whatever the limit, for a bound on five to eight jobs.
  /// Not a time, so that results are the same on every machine.
  std::uint64_t node_limit = 20'000;
  /// Deviation of each job from its slot, as a share of its period, for which LinkSolution::drift_score is given and
  /// which decides among equal scores.
  double drift = 0.05;
  /// Among shifts with equal scores, look for those that bear the largest deviations: with no excess, the largest
  /// margin of the tightest link, then of the next; with some, the highest drift_score. Without, solving is faster.
  bool robust = true;
  std::uint64_t seed = 1;  ///< of the heuristic's restarts
  double slack = 0;        ///< added to every slot's period, as a share: room to catch up (see docs/scheduler.md)
};

/// The rhythm in which all jobs of a problem (or of one of its components) run.
struct Slots {
  Nanos perimeter;                         ///< P; a multiple of every slot's period
  std::vector<std::uint32_t> repetitions;  ///< r_j by job
  std::vector<Nanos> periods;              ///< P / r_j by job; never below the job's own
  double stretch = 0;                      ///< largest of periods / own period - 1
  bool exact = false;                      ///< P is the least common multiple, and nothing is stretched
  bool within_limit = true;                ///< stretch <= max_stretch (+ slack)
};

struct LinkSolution {
  Nanos perimeter;         ///< of this link's jobs; 0 for a link without jobs
  double score = 1;        ///< of the shifts in the solution
  double upper_bound = 1;  ///< no shifts give this link a higher score
  bool optimal = true;     ///< score == upper_bound, proven
  /// A deviation that each job may have from its slot, independently and either way, without the score falling; at most
  /// half of the shortest slot. It is the largest one for scores of 1 and for links with up to two jobs. For a lower
  /// score with three jobs or more it may be less than that, as it ends where a step may meet an opposite one, and is 0
  /// where some job's score depends on its shift at once. 0 for a link without jobs.
  Nanos margin;
  /// The score is at least this when each job is off its slot by at most SolveOptions::drift of its slot's period. For
  /// up to two jobs it is the least score that occurs. For more it is what is left when each job asks, at every time,
  /// for the most that it asks for within its deviation: a guarantee that no deviations may reach.
  double drift_score = 1;
};

struct Solution {
  Slots slots;
  std::vector<Nanos> shifts;        ///< by job, in [0, slots.periods[j]): its iterations begin at shift + k * period
  std::vector<LinkSolution> links;  ///< by link
  double score = 1;                 ///< mean of the links' scores; of links with two jobs or more, 1 if there are none
  double upper_bound = 1;           ///< of that mean
  bool optimal = true;
  std::uint64_t nodes = 0;  ///< that the search took; more than SolveOptions::node_limit where bursts are many
};

/// Slots for jobs with these periods. Throws InputError for no or bad periods or options.
Slots choose_slots(const std::vector<Nanos>& periods, const SolveOptions& options = {});

/// All links together, whatever loops they form: exact where the search comes to an end, otherwise the best found, with
/// a bound. Of the first few perimeters that keep max_stretch the one with the best score less mean stretch is taken;
/// bounds are for that perimeter. The first job of those that hang together is at 0, unless some are pinned, whose
/// shifts are taken modulo their slots' periods. Throws InputError as check() does, and for links on whose perimeter
/// there are more than a million bursts, as where periods of seconds meet those of microseconds. For whole clusters see
/// cluster.h, which takes them apart first.
Solution solve(const Problem& problem, const SolveOptions& options = {});
/// The same in given slots.
Solution solve(const Problem& problem, const Slots& slots, const SolveOptions& options = {});

/// What the links' scores, margins and bounds are for given shifts. Bounds are those of the demands' areas. Throws
/// InputError as solve() does, and for slots or shifts that don't fit the problem.
Solution evaluate(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                  const SolveOptions& options = {});

/// Rotation angle of a job on a link, in radians, 0 <= angle < 2 pi / r: 2 pi * shift / perimeter.
double rotation(Nanos shift, Nanos perimeter);

// ---- What follows from solving -------------------------------------------------------------------------------------

/// score[i][j] of jobs i and j alone on a link of `capacity`; 1 on the diagonal where a job fits by itself.
std::vector<std::vector<double>> pair_scores(const std::vector<Demand>& jobs, Rate capacity,
                                             const SolveOptions& options = {});

/// Which job to move away when a set is not compatible: the scores of the set without each of its jobs, best first.
struct Removal {
  std::uint32_t job = 0;
  double score = 1;
  double upper_bound = 1;
};
std::vector<Removal> removals(const Problem& problem, const SolveOptions& options = {});

}  // namespace mltcp::scheduler
