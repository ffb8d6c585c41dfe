// Least excess of jobs on one or more links: a heuristic with restarts, and an exact best-first branch and bound.
//
// Which shifts need to be looked at. E, the total excess, is piecewise linear on the torus of shifts (circle.h). Fix
// one job at 0 (turning all circles together changes nothing; jobs that are pinned take its place), and among all
// optimal shifts take the vector X that is least in the sum of its shifts. Let A be any set of the other jobs and
// B the rest. Moving A a little to the left stays within the torus unless a job of A is at 0, and it lessens the sum,
// so it must raise E. If no net step of A met an opposite net step of B, E would be concave along that move (circle.h),
// and being least at X it would be constant: a contradiction. So in X, for every such A, some job of A either is at 0
// or one of its steps meets an opposite net step of the sum of B. Hence X is built up one job at a time, each one put
// at a convex meeting with the profile of the jobs placed before, or at 0. Those are finitely many positions. For any
// vertex of this kind the jobs hang together in a tree of up/down meetings.
//
// Turning all jobs by a common multiple of the periods of those placed leaves these where they are, and changes nothing
// else. So the next job need only be tried at shifts below the greatest common divisor of that multiple and its period:
// if some optimum has the jobs placed where they are, then slide the others to the left, all together, until one of
// them has such a meeting or is at 0, which is another optimum (E is concave, so constant, along that way), and turn
// it.
//
// No configuration is looked at twice: when a job has been tried at a position and its subtree is done, later branches
// of the same node may not put it there. Of the children of a node on the way to an optimum take the first that has one
// below it: none of its older siblings is part of any optimum that contains the node's jobs, so nothing is lost. Jobs
// with equal demands ("twins") are placed in the order of their indices, which relabels the optimum.
//
// Bounds. f(x) = max(0, x - C) is convex with f(0) = 0 and demands are not negative, so excess is supermodular:
// with S placed and R to be placed, E(S u R) >= E(S) + sum over j in R of min over shifts of [E(S u {j}) - E(S)], and
// the minima never fall as S grows, so that those of the parent serve for its children before any work is done on them.
// For pairs of R, the excess of the two alone is a bound for both together: a matching of pairs adds to the sum. For
// all jobs there are the area of their demands beyond the link's, and the bound by configurations
// (configuration_bound.h).
//
// On a grid of shifts there are no vertices; a job that is to be placed next is tried at every grid position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/internal/circle.h"

namespace mltcp::scheduler::internal {

/// Jobs that hang together through links, all of whose numbers are scaled to one unit of excess.
struct Model {
  struct ModelJob {
    std::int64_t period = 0;  ///< of its slot
    std::vector<Curve> curves;
    std::vector<std::int64_t> grid;  ///< the shifts allowed, ascending; all if empty
    std::uint32_t twins = 0;         ///< the first job with the same period, curves and grid
    bool pinned = false;
    std::int64_t shift = 0;  ///< if pinned
  };
  std::int64_t perimeter = 0;
  std::vector<std::int64_t> capacities;  ///< by link
  std::vector<ModelJob> jobs;
  /// No job is pinned, so that one may be put at 0: `root`, if shifts are on a grid, and any otherwise.
  bool turns = true;
  std::uint32_t root = 0;

  /// With the demand of each job at its highest within `by`, by job.
  [[nodiscard]] Model widened(std::span<const std::int64_t> by) const;
  [[nodiscard]] Model widened_on_links(std::span<const std::int64_t> by) const;  ///< by link
};

/// Sums of placed jobs, by link.
class Arrangement {
 public:
  /// With the pinned jobs, or with none.
  explicit Arrangement(const Model& model, bool with_pinned = true);
  void clear();
  void place(std::uint32_t job, std::int64_t shift) { change(job, shift, 1); }
  void take_away(std::uint32_t job, std::int64_t shift) { change(job, shift, -1); }
  [[nodiscard]] const std::vector<Profile>& profiles() const { return profiles_; }
  [[nodiscard]] Int128 excess() const;
  /// Of the links of a job.
  [[nodiscard]] Int128 excess(std::uint32_t job) const;

 private:
  void change(std::uint32_t job, std::int64_t shift, std::int64_t sign);

  const Model* model_;
  bool with_pinned_;
  std::vector<Profile> profiles_;
  Profile scratch_;
};

struct Found {
  std::vector<std::int64_t> shifts;  ///< by job
  Int128 excess = 0;
  Int128 bound = 0;  ///< no shifts have less excess
  std::uint64_t nodes = 0;
  /// Other shifts with the same excess that the heuristic came across.
  std::vector<std::vector<std::int64_t>> others;
};

struct Limits {
  std::uint64_t nodes = 0;  ///< all work together; a node is one job's sweep over the shifts of its slot
  /// The heuristic's, at least and at most; beyond the least ones it leaves half of the nodes.
  std::uint32_t min_restarts = 0;
  std::uint32_t restarts = 0;
  std::uint64_t seed = 1;
  bool zero_only = false;  ///< give up as soon as it is proven that some excess is left
};

/// Minimises the excess. `start`, if any, are shifts to begin with.
Found minimise(const Model& model, const Limits& limits, const std::vector<std::int64_t>* start = nullptr);

/// Moves each job into the middle of the interval in which it changes nothing, over and over.
void centre(const Model& model, std::vector<std::int64_t>& shifts);

}  // namespace mltcp::scheduler::internal
