// Minimises the excess of jobs on one or more links: a heuristic with restarts, and an exact best-first branch and
// bound.
//
// Which shifts must be examined. E, the total excess, is piecewise linear on the torus of shifts (circle.h). Fix one
// job at 0 (rotating all circles together changes nothing; pinned jobs take its place). Among all optimal vectors of
// shifts, let X be one with the smallest sum. Let A be any set of the other jobs and B the rest. Moving A a little to
// the left stays within the torus unless a job of A is at 0. It reduces the sum, so it must increase E. If no net step
// of A met an opposite net step of B, E would be concave along that move (circle.h); being minimal at X, it would be
// constant: a contradiction. So in X, for every such A, some job of A is at 0, or one of its steps meets an opposite
// net step of the sum of B. Hence X can be built one job at a time, each at a convex meeting with the profile of the
// jobs placed before, or at 0. These are finitely many positions. In any vertex of this kind a tree of up/down meetings
// connects the jobs.
//
// Rotating all jobs by a common multiple of the periods of the placed ones does not move these, and changes nothing
// else. So the next job must only be tried at shifts below the greatest common divisor of that multiple and its period.
// Proof: if an optimum has the placed jobs where they are, move the others to the left together, until one of them has
// such a meeting or is at 0. This is another optimum (E is concave on the way, so constant); rotate it.
//
// No configuration is examined twice: when a job has been tried at a position and its subtree is done, later branches
// of the same node must not place it there. This loses nothing: of a node's children on the way to an optimum, take the
// first with an optimum below it; no older sibling is part of any optimum that contains the node's jobs. Jobs with
// equal demands ("twins") are placed in the order of their indices, which relabels the optimum.
//
// Bounds. f(x) = max(0, x - C) is convex with f(0) = 0 and demands are not negative, so excess is supermodular: with S
// placed and R to be placed, E(S u R) >= E(S) + sum over j in R of min over shifts of [E(S u {j}) - E(S)], and the
// minima never fall as S grows, so a node's minima also hold for its children before any work on them. For pairs of R,
// the excess of the two alone is a bound for both together, so a matching of pairs adds to the sum. For all jobs
// together there are two more bounds: the area of their demands minus that of the link, and the bound by configurations
// (configuration_bound.h).
//
// On a grid of shifts there are no vertices; the next job is tried at every grid position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/internal/circle.h"

namespace mltcp::scheduler::internal {

/// Jobs connected by links, with all rates scaled to one unit of excess.
struct Model {
  struct ModelJob {
    std::int64_t period = 0;  ///< of its slot
    std::vector<Curve> curves;
    std::vector<std::int64_t> grid;  ///< allowed shifts, ascending; empty: all
    std::uint32_t twins = 0;         ///< index of the first job with the same period, curves and grid
    bool pinned = false;
    std::int64_t shift = 0;  ///< if pinned
  };
  std::int64_t perimeter = 0;
  std::vector<std::int64_t> capacities;  ///< by link
  std::vector<ModelJob> jobs;
  /// No job is pinned, so one may be placed at 0: `root` if shifts are on a grid, otherwise any.
  bool turns = true;
  std::uint32_t root = 0;

  /// A model in which each job has its highest demand within `by`, by job.
  [[nodiscard]] Model widened(std::span<const std::int64_t> by) const;
  [[nodiscard]] Model widened_on_links(std::span<const std::int64_t> by) const;  ///< by link
};

/// Sums of placed jobs, by link.
class Arrangement {
 public:
  /// Starts with the pinned jobs, or with none.
  explicit Arrangement(const Model& model, bool with_pinned = true);
  void clear();
  void place(std::uint32_t job, std::int64_t shift) { change(job, shift, 1); }
  void take_away(std::uint32_t job, std::int64_t shift) { change(job, shift, -1); }
  [[nodiscard]] const std::vector<Profile>& profiles() const { return profiles_; }
  [[nodiscard]] Int128 excess() const;
  /// Excess on the links of a job.
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
  /// Other shifts with the same excess, found by the heuristic.
  std::vector<std::vector<std::int64_t>> others;
};

struct Limits {
  std::uint64_t nodes = 0;  ///< for all work; a node is one job's sweep over the shifts of its slot
  /// Minimum and maximum restarts of the heuristic. Beyond the minimum it uses at most half of the nodes.
  std::uint32_t min_restarts = 0;
  std::uint32_t restarts = 0;
  std::uint64_t seed = 1;
  bool zero_only = false;  ///< stop as soon as it is proven that the excess is above 0
};

/// Minimises the excess. `start`: initial shifts, if any.
Found minimise(const Model& model, const Limits& limits, const std::vector<std::int64_t>* start = nullptr);

/// Moves each job to the middle of its interval of equal excess, repeatedly.
void centre(const Model& model, std::vector<std::int64_t>& shifts);

}  // namespace mltcp::scheduler::internal
