// Minimises the excess of jobs on one or more links by a heuristic with restarts, followed by an exact best-first
// branch and bound.
//
// Which shifts must be examined. The total excess E is piecewise linear on the torus of shifts (circle.h). One job can
// be fixed at shift 0, because rotating all jobs together does not change E. If there are pinned jobs, these are fixed
// instead. Let X be the optimal vector of shifts with the smallest sum. Let A be any set of jobs that are not fixed,
// and B all other jobs. Suppose that no job of A is at 0, and that no net step of A meets an opposite net step of B.
// Then all jobs of A can move a little to the left, and E is concave along this move (circle.h). Since E is minimal at
// X, it is constant along the move, so the move leads to an optimum with a smaller sum. This contradicts the choice of
// X. So for every A, some job of A is at 0, or a step of A meets an opposite net step of B. Hence X can be built one
// job at a time: each job is at 0, or at a convex meeting with the profile of the jobs placed before it. These are
// finitely many positions.
//
// Let M be a common multiple of the periods of the placed jobs. Rotating all jobs by M does not move the placed jobs
// and does not change E. So the next job needs to be tried only at shifts below the greatest common divisor of M and
// its period. Proof: take an optimum in which the placed jobs have their shifts. Move all other jobs together to the
// left until one of them is at 0 or at a convex meeting. E is concave along this move, so it is constant, and the
// result is another optimum. Rotate this optimum by a multiple of M.
//
// No configuration is examined twice. After a child of a node has placed a job at a position, later children of this
// node and their subtrees must not place the job there. This loses no optimum: of all children of the node that have an
// optimum in their subtree, take the first one. No older sibling of this child belongs to an optimum that contains the
// jobs of the node. Jobs with equal demands ("twins") are placed in the order of their indices, because exchanging
// twins does not change E.
//
// Bounds. f(x) = max(0, x - C) is convex with f(0) = 0, and demands are not negative, so excess is supermodular. If the
// jobs S are placed and the jobs R are not, E(S u R) >= E(S) + sum over j in R of min over shifts of
// [E(S u {j}) - E(S)]. These minima never decrease when S grows, so the minima of a node are also bounds for its
// children. For two jobs of R, the excess of this pair alone is a bound for both jobs, so a matching of R into pairs
// increases the sum. For all jobs together there are two more bounds: the area of their demands minus the area of the
// link, and the bound by configurations (configuration_bound.h).
//
// On a grid of shifts, the proof about which shifts must be examined does not apply. So the next job is tried at every
// position of the grid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/internal/circle.h"

namespace mltcp::scheduler::internal {

/// Jobs that are connected by links. Rates are scaled so that all links have the same capacity.
struct Model {
  struct ModelJob {
    std::int64_t period = 0;  ///< slot period of the job
    std::vector<Curve> curves;
    std::vector<std::int64_t> grid;  ///< allowed shifts, ascending; empty if all shifts are allowed
    std::uint32_t twins = 0;         ///< index of the first job with the same period, curves and grid
    bool pinned = false;
    std::int64_t shift = 0;  ///< shift of a pinned job
  };
  std::int64_t perimeter = 0;
  std::vector<std::int64_t> capacities;  ///< capacity of each link
  std::vector<ModelJob> jobs;
  /// True if no job is pinned, so that one job can be fixed at shift 0. If shifts are on a grid, this job is `root`;
  /// otherwise it may be any job.
  bool turns = true;
  std::uint32_t root = 0;

  /// Returns a model in which the demand of job j is at each time the maximum of its demand within by[j] of this time.
  [[nodiscard]] Model widened(std::span<const std::int64_t> by) const;
  /// Does the same as widened(), but the distance is by[l] for all demands on link l.
  [[nodiscard]] Model widened_on_links(std::span<const std::int64_t> by) const;
};

/// The sum of the demands of the placed jobs on each link.
class Arrangement {
 public:
  /// Places the pinned jobs if `with_pinned` is true; otherwise places no jobs.
  explicit Arrangement(const Model& model, bool with_pinned = true);
  void clear();
  void place(std::uint32_t job, std::int64_t shift) { change(job, shift, 1); }
  void take_away(std::uint32_t job, std::int64_t shift) { change(job, shift, -1); }
  [[nodiscard]] const std::vector<Profile>& profiles() const { return profiles_; }
  [[nodiscard]] Int128 excess() const;
  /// Returns the excess on the links of `job`.
  [[nodiscard]] Int128 excess(std::uint32_t job) const;

 private:
  void change(std::uint32_t job, std::int64_t shift, std::int64_t sign);

  const Model* model_;
  bool with_pinned_;
  std::vector<Profile> profiles_;
  Profile scratch_;
};

struct Found {
  std::vector<std::int64_t> shifts;  ///< shift of each job
  Int128 excess = 0;
  Int128 bound = 0;  ///< lower bound of the excess over all shifts
  std::uint64_t nodes = 0;
  /// Up to 8 other vectors of shifts with the same excess, which the heuristic found.
  std::vector<std::vector<std::int64_t>> others;
};

struct Limits {
  std::uint64_t nodes = 0;  ///< limit of all work; one node is one sweep over the shifts of a job
  /// Minimum and maximum number of restarts of the heuristic. After the minimum number, the heuristic stops when it has
  /// used half of `nodes`. If more than 6 jobs are not pinned, it stops after three quarters of `nodes`.
  std::uint32_t min_restarts = 0;
  std::uint32_t restarts = 0;
  std::uint64_t seed = 1;
  bool zero_only = false;  ///< true: stop as soon as the excess is proven to be above 0
};

/// Minimises the excess. If `start` is not null, it contains the initial shift of each job.
Found minimise(const Model& model, const Limits& limits, const std::vector<std::int64_t>* start = nullptr);

/// Moves each job repeatedly to the middle of the interval of shifts over which the excess is minimal.
void centre(const Model& model, std::vector<std::int64_t>& shifts);

}  // namespace mltcp::scheduler::internal
