// Jobs on a cluster: which links they share, how compatible they are on these links, when each job starts, and which of
// several placements is best (CASSINI, arXiv 2308.00852, section 4, extended to loops; see affinity.h).
//
// All jobs of a component of the affinity graph have slots on one common perimeter (problem.h), so that shifts compose.
// Slot periods are chosen by their benefit: the collisions avoided minus the cost of stretching the jobs' iterations
// (internal/slot_choice.h). Each group, a link or several that form loops, is solved separately, and the groups are
// composed breadth first from one job: t_k = t_j - w(j, g) + w(k, g) mod T_k, with w the shifts in group g's solution.
//
// Groups that are too large for an exact search are improved one job at a time, with upper bounds from their links
// alone (internal/descent.h). Solutions are cached by problem (capacities, demands, slots), because many links of a
// cluster pose the same problem, and a candidate changes only some problems. Results depend neither on the number of
// threads nor on the order of the jobs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/scheduler/affinity.h"
#include "mltcp/scheduler/demand.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/scheduler/topology.h"

namespace mltcp::scheduler {

/// Parallel flows of one job from one host to another, each with the job's demand.
struct Flow {
  Topology::Host from = 0;
  Topology::Host to = 0;             ///< from == to: uses no link
  std::uint32_t multiplicity = 1;    ///< number of flows; each has its own path if the topology has several
  std::vector<Topology::Link> path;  ///< for all of these flows; empty: Topology::path()
};

struct ClusterJob {
  std::string name;  ///< unique in the cluster
  Demand demand;     ///< demand of one flow
  std::vector<Flow> flows;
};

/// The flows of a ring all-reduce over workers on these hosts: each worker sends to the next, the last to the first.
/// Flows within a host are omitted.
std::vector<Flow> ring(std::span<const Topology::Host> workers);

/// Options of a Cluster. Its constructor throws InputError for values out of range.
struct ClusterOptions {
  /// Options for each problem solved. A cluster poses many problems, so the default node_limit is lower than for a
  /// single problem. node_limit must be 1 or more.
  SolveOptions solve = {.node_limit = 10'000};
  std::uint64_t routing_seed = 1;  ///< seed of the hash that selects among equal-cost paths
  bool discard_loops = false;      ///< rank() discards candidates whose graph has a loop, as the paper does
  std::uint32_t threads = 0;       ///< maximum 1024; 0: oneTBB's default
  /// Threshold for join() and leave(); 0 or more. Running jobs are moved only if otherwise Joined::loss would exceed
  /// it. They get new slot periods only if otherwise the iterations of the component's jobs would be longer by more
  /// than this share on average.
  double join_threshold = 0.02;
  /// Slots may be stretched by up to this share of the period, instead of SolveOptions::max_stretch, if by an estimate
  /// the jobs of the component lose less by the stretch than by collisions. With 0, and in components of more than 24
  /// jobs, the slot periods depend only on the jobs' periods: the shortest perimeter within max_stretch.
  double max_slot_stretch = 0.25;
  /// Minimum score of a link, 0 to 1. If a link of a component scores less, the cluster assumes that the caller gives
  /// the component no slots, so that its slots have no value.
  double min_score = 0.98;
  /// Maximum number of bursts that the jobs of one link may have during the longest iteration of the jobs in a new
  /// job's component. rank(), preview() and join() refuse a job that would exceed it, before any search. 0: only the
  /// solver's limit applies.
  double max_bursts = 0;
};

struct ClusterSolution {
  struct SolvedJob {
    std::string name;
    Nanos period;                 ///< period of an iteration in isolation
    Nanos slot_period;            ///< never shorter than `period`
    Nanos time_shift;             ///< in [0, slot_period)
    std::uint32_t component = 0;  ///< index
  };
  /// A link used by at least two jobs.
  struct Link {
    Topology::Link link = 0;
    Rate capacity;
    std::vector<LinkUse> uses;  ///< its jobs, by index, with their numbers of flows
    /// Whether the jobs' peaks together exceed the capacity. If not, every shift is good: score 1, maximum margin, and
    /// perimeter 0.
    bool competed = false;
    std::uint32_t component = 0;  ///< index; only if `competed`
    LinkSolution solution;
  };
  /// Jobs whose shifts depend on each other: a component of the affinity graph.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;     ///< a common multiple of its jobs' slot periods
    double stretch = 0;  ///< stretch of the most stretched slot
    /// True if no slot is stretched beyond SolveOptions::max_stretch, or if none is stretched beyond
    /// ClusterOptions::max_slot_stretch and, with the current scores, the benefit exceeds the cost.
    bool within_limit = true;
    std::uint32_t loops = 0;  ///< independent loops of its graph, after merging of equal links
    /// Score lost by the links in loops: the sum of the best scores that each could have alone, minus their actual
    /// scores. After schedule() this is the cost of the loops; join() may add to it, because running jobs keep their
    /// slots. It is below 0 only if a link alone was not solved to optimality, or on a grid of shifts
    /// (SolveOptions::angles), which differs for a link alone.
    double lost = 0;
  };
  std::vector<SolvedJob> jobs;
  std::vector<Link> links;  ///< in the order of the topology
  std::vector<Component> components;
  double score = 1;  ///< mean of the links' scores; 1 if there are no links
  double upper_bound = 1;
  bool optimal = true;      ///< it is proven that no shifts in these slots give a higher score
  std::uint32_t loops = 0;  ///< loops of all components
  double lost = 0;          ///< score lost by all components
};

/// A placement to evaluate: jobs to run in addition to the running ones.
struct Candidate {
  std::vector<ClusterJob> jobs;
};

struct RankedCandidate {
  std::uint32_t candidate = 0;  ///< index
  double score = 1;             ///< ClusterSolution::score of all jobs, running and new
  double upper_bound = 1;
  bool optimal = true;  ///< as ClusterSolution::optimal
  double worst = 1;     ///< minimum score of a link
  std::uint32_t loops = 0;
  double lost = 0;
  /// The candidate is discarded because of loops, or because a link's perimeter would hold more than a million bursts.
  /// It then has no scores.
  bool discarded = false;
  std::string reason;  ///< for people: why it is discarded; empty otherwise
};

/// A change of a running job's slot.
struct Move {
  std::string job;
  Nanos from;         ///< previous time shift
  Nanos to;           ///< new time shift
  Nanos from_period;  ///< previous slot period
  Nanos to_period;    ///< new slot period
};

struct Joined {
  Nanos time_shift;   ///< time shift of the new job
  Nanos slot_period;  ///< slot period of the new job
  std::vector<Move> moves;
  /// All jobs of the component got new slots. With the slot periods of the running jobs there is no slot for the new
  /// job, or only one that lengthens iterations by more than ClusterOptions::join_threshold.
  bool new_slots = false;
  double score = 1;  ///< mean score of the links on which the new job competes
  /// Score lost because running jobs keep their slots: the gain of the sum of the scores of the component's links if
  /// all jobs could move, divided by the number of links on which the new job competes.
  double loss = 0;
};

/// The result that join() would have for a job.
struct Preview {
  Joined joined;
  ClusterSolution solution;  ///< solution for all jobs, the new one last
};

/// A job and its current slots.
struct PlacedJob {
  ClusterJob job;
  Nanos slot_period;  ///< the job's period or longer, at most kLongestPeriod
  Nanos time_shift;   ///< in [0, slot_period)
};

/// The problem of one link and its solution: the slots of its jobs and their shifts.
struct LinkProblem {
  Problem problem;
  Slots slots;
  std::vector<Nanos> shifts;
};

/// The jobs running on a topology. One thread at a time may call its functions; internally they use several threads.
class Cluster {
 public:
  /// Throws InputError that names the option out of range.
  explicit Cluster(Topology topology, const ClusterOptions& options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] std::size_t jobs() const;                        ///< number of running jobs
  [[nodiscard]] const ClusterJob& job(std::size_t index) const;  ///< `index` as in solution().jobs

  /// Replaces all running jobs by `jobs`, with the best shifts found. Throws InputError that names the job for a
  /// duplicate name, an invalid demand, an unknown host, no path, more than kHighestRate on a link, or periods so
  /// different that a link's perimeter holds more than a million bursts.
  const ClusterSolution& schedule(std::vector<ClusterJob> jobs);
  /// The current solution for the running jobs.
  [[nodiscard]] const ClusterSolution& solution() const;

  /// Evaluates candidates as if all jobs of the affected components could move. Groups that are too large to be
  /// searched start from the running jobs' shifts, so their scores may differ from schedule()'s. The best candidate
  /// comes first: by score, then by worst link, then in the order given; discarded candidates come last. Throws
  /// InputError like schedule(), except that periods that are too different only discard the candidate.
  [[nodiscard]] std::vector<RankedCandidate> rank(std::span<const Candidate> candidates);

  /// Adds a job. First it tries to keep the slots of all running jobs. If that costs more than
  /// ClusterOptions::join_threshold, it moves jobs one by one, the most useful first (up to 8), and finally all jobs of
  /// the component. Jobs of other components never move. Running jobs keep their slot periods unless none suits the new
  /// job (see Joined::new_slots). Throws like schedule(), and then nothing has changed.
  Joined join(ClusterJob job);
  /// The result of join(), without adding the job. Throws like join().
  [[nodiscard]] Preview preview(ClusterJob job);
  /// Replaces all running jobs by `jobs`, in the given slots (from solution() and job()), so that a cluster is restored
  /// without moving a job. Scores are the same; bounds may be wider, because nothing is solved again. Throws InputError
  /// like schedule(), and for slots that are out of range, or whose least common multiple with the slots of competing
  /// jobs exceeds kLongestPeriod; then nothing has changed.
  const ClusterSolution& restore(std::vector<PlacedJob> jobs);
  /// Removes a job. The others keep their slots, unless these were chosen for the removed job and new ones are better
  /// by more than ClusterOptions::join_threshold. Returns the moves. Throws InputError if no such job runs.
  std::vector<Move> leave(std::string_view name);

  /// The problem of solution().links[index], to evaluate() or to draw it. Throws InputError if no jobs compete on it.
  [[nodiscard]] LinkProblem link_problem(std::size_t index) const;

  /// Score of two jobs with one flow each on a link that no other job uses. Throws InputError like solve().
  [[nodiscard]] double pair_score(const Demand& a, const Demand& b, Rate capacity);

  /// Numbers of problems solved and of cache hits so far.
  struct Work {
    std::uint64_t solved = 0;
    std::uint64_t remembered = 0;
  };
  [[nodiscard]] Work work() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::scheduler
