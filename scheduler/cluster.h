// Schedules the jobs of a cluster: finds the links that jobs share, scores how compatible the jobs are on each link,
// chooses when each job starts, and ranks placements. The method is that of CASSINI (arXiv 2308.00852, section 4),
// extended to loops in the affinity graph (affinity.h).
//
// All jobs of a component of the affinity graph have slots on one common perimeter (problem.h), so that shifts compose.
// Slot periods are chosen by their benefit: the collisions avoided minus the cost of stretching the jobs' iterations
// (internal/slot_choice.h). A group is one link, or several links that form loops. Each group is solved separately. The
// groups are then composed breadth first from one job: t_k = t_j - w(j, g) + w(k, g) mod T_k, where t is the shift of a
// job, T its slot period, and w(j, g) its shift in the solution of group g.
//
// Groups that are too large for an exact search are improved one job at a time, with upper bounds from their links
// alone (internal/descent.h). A cache stores the solution of each problem (capacities, demands, slots), because many
// links of a cluster pose the same problem, and adding one job changes only some problems. Results depend neither on
// the number of threads nor on the order of the jobs.
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
  Topology::Host to = 0;  ///< if equal to `from`, the flow uses no link
  /// Number of flows. If the topology has several paths between the hosts, each flow gets a path of its own by hash.
  std::uint32_t multiplicity = 1;
  std::vector<Topology::Link> path;  ///< path of all these flows; if empty, Topology::path() chooses
};

struct ClusterJob {
  std::string name;  ///< unique in the cluster
  Demand demand;     ///< demand of one flow
  std::vector<Flow> flows;
};

/// Returns the flows of a ring all-reduce. `workers` holds the host of each worker. Each worker sends to the next one,
/// and the last worker sends to the first. Flows within a host are omitted.
std::vector<Flow> ring(std::span<const Topology::Host> workers);

/// Options of a Cluster. Its constructor throws InputError for values out of range.
struct ClusterOptions {
  /// Options of the solver for each problem. A cluster poses many problems, so the default node_limit is lower than the
  /// default in SolveOptions. node_limit must be 1 or more.
  SolveOptions solve = {.node_limit = 10'000};
  std::uint64_t routing_seed = 1;  ///< seed of the hash that selects among equal-cost paths
  bool discard_loops = false;      ///< rank() discards candidates whose affinity graph has a loop, as CASSINI does
  std::uint32_t threads = 0;       ///< number of threads, at most 1024; 0 for the default of oneTBB
  /// Threshold of join() and leave(); 0 or more. join() moves running jobs only if Joined::loss would exceed the
  /// threshold without moves. Running jobs get new slot periods only if these shorten the iterations of the component's
  /// jobs by more than this share on average.
  double join_threshold = 0.02;
  /// Slots may be stretched by up to this share of the period, instead of SolveOptions::max_stretch, if the stretch is
  /// estimated to cost the jobs of the component less than collisions. If this is 0 or the component has more than 24
  /// jobs, slot periods follow only from the periods of the jobs, with the shortest perimeter within max_stretch.
  double max_slot_stretch = 0.25;
  /// Minimum score of a link, 0 to 1. If any link of a component scores less, the cluster assumes that the caller does
  /// not enforce the slots of that component. In that case the cluster counts these slots as worthless when it chooses
  /// slot periods.
  double min_score = 0.98;
  /// Maximum number of bursts of all jobs on one link, counted over the longest iteration in the component of a new
  /// job. rank(), preview() and join() refuse a job that would exceed this maximum, before any search. If it is 0, only
  /// the limit of the solver applies.
  double max_bursts = 0;
};

struct ClusterSolution {
  struct SolvedJob {
    std::string name;
    Nanos period;                 ///< period of an iteration in isolation
    Nanos slot_period;            ///< never shorter than `period`
    Nanos time_shift;             ///< in [0, slot_period)
    std::uint32_t component = 0;  ///< index of the component of the job
  };
  /// A link used by at least two jobs.
  struct Link {
    Topology::Link link = 0;
    Rate capacity;
    std::vector<LinkUse> uses;  ///< indices of the jobs on the link, with their numbers of flows
    /// True if the peak demands of the jobs together exceed the capacity. If false, all shifts are equally good:
    /// `solution` has score 1, the maximum margin, and perimeter 0.
    bool competed = false;
    std::uint32_t component = 0;  ///< index of the component; valid only if `competed`
    LinkSolution solution;
  };
  /// Jobs whose shifts depend on each other: a component of the affinity graph.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;     ///< common multiple of the slot periods of the jobs
    double stretch = 0;  ///< stretch of the most stretched slot
    /// True if no slot is stretched beyond SolveOptions::max_stretch. Also true if no slot is stretched beyond
    /// ClusterOptions::max_slot_stretch and the slots, with the current scores, cost less than running without slots.
    bool within_limit = true;
    /// Number of independent loops in the graph of the component, counted after equal links are merged.
    std::uint32_t loops = 0;
    /// Sum over all links in loops: the best score of the link in isolation, minus its actual score. After schedule()
    /// this is the cost of the loops. join() may increase it, because running jobs keep their slots. The sum can be
    /// below 0 in two cases: the search for the best score of a link in isolation stopped at its limit, or shifts are
    /// on a grid (SolveOptions::angles), which is different for a link in isolation.
    double lost = 0;
  };
  std::vector<SolvedJob> jobs;
  std::vector<Link> links;  ///< links with at least two jobs, in the order of the topology
  std::vector<Component> components;
  double score = 1;  ///< mean of the links' scores; 1 if there are no links
  double upper_bound = 1;
  bool optimal = true;      ///< true if no shifts in these slots can give a higher score
  std::uint32_t loops = 0;  ///< number of independent loops in all components
  double lost = 0;          ///< sum of Component::lost over all components
};

/// A placement to evaluate: new jobs in addition to the running jobs.
struct Candidate {
  std::vector<ClusterJob> jobs;
};

struct RankedCandidate {
  std::uint32_t candidate = 0;  ///< index of the candidate in the argument of rank()
  double score = 1;             ///< ClusterSolution::score of all jobs, running and new
  double upper_bound = 1;
  bool optimal = true;  ///< true if no shifts can give a higher `score`
  double worst = 1;     ///< lowest score of a link
  std::uint32_t loops = 0;
  double lost = 0;
  /// True if the candidate is discarded: because of loops, or because too many bursts would share a link. A discarded
  /// candidate has no scores.
  bool discarded = false;
  std::string reason;  ///< text for people: why the candidate is discarded; empty if it is not
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
  /// True if all jobs of the component got new slots. This happens if no slot for the new job is compatible with the
  /// slot periods of the running jobs, or if all compatible slots lengthen iterations by more than
  /// ClusterOptions::join_threshold.
  bool new_slots = false;
  double score = 1;  ///< mean score of the links on which the new job competes
  /// Score lost because running jobs keep their slots. It is the amount by which the sum of the scores in the component
  /// would grow if all jobs could move, divided by the number of links on which the new job competes.
  double loss = 0;
};

/// The result that join() would have for a job.
struct Preview {
  Joined joined;
  ClusterSolution solution;  ///< solution for all jobs; the new job is the last one
};

/// A job and its current slots.
struct PlacedJob {
  ClusterJob job;
  Nanos slot_period;  ///< at least the period of the job, at most kLongestPeriod
  Nanos time_shift;   ///< in [0, slot_period)
};

/// The problem of one link, with the slots of the jobs on the link and their shifts in the solution.
struct LinkProblem {
  Problem problem;
  Slots slots;
  std::vector<Nanos> shifts;
};

/// The jobs running on a topology. One thread at a time may call its functions; internally they use several threads.
class Cluster {
 public:
  /// Throws InputError that names the option if an option is out of range.
  explicit Cluster(Topology topology, const ClusterOptions& options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] std::size_t jobs() const;                        ///< number of running jobs
  [[nodiscard]] const ClusterJob& job(std::size_t index) const;  ///< the job of solution().jobs[index]

  /// Replaces all running jobs by `jobs`, with the best shifts found. Throws InputError that names the job for an empty
  /// or duplicate name, an invalid demand, an unknown host, hosts without a path, or more than kHighestRate on a link.
  /// Also throws InputError if periods differ so much that the perimeter of a link holds more than a million bursts.
  const ClusterSolution& schedule(std::vector<ClusterJob> jobs);
  /// The current solution for the running jobs.
  [[nodiscard]] const ClusterSolution& solution() const;

  /// Evaluates candidates as if all jobs of the affected components could move. Returns the candidates in descending
  /// order of `score`, then of `worst`, then in the given order. Discarded candidates come last. For groups too large
  /// for an exact search, descent starts from the shifts of the running jobs, so scores may differ from those of
  /// schedule(). Throws InputError like schedule(), except that periods that differ too much only discard a candidate.
  [[nodiscard]] std::vector<RankedCandidate> rank(std::span<const Candidate> candidates);

  /// Adds a job. First it tries to keep the slots of all running jobs. If that costs more than
  /// ClusterOptions::join_threshold, it moves up to 8 jobs one by one, each time the job whose move gains most. If that
  /// is not enough, all jobs of the component may move. Jobs of other components never move. Running jobs keep their
  /// slot periods unless Joined::new_slots is true. Throws InputError like schedule(), and then changes nothing.
  Joined join(ClusterJob job);
  /// Returns the result that join() would have, and does not add the job. Throws InputError like join().
  [[nodiscard]] Preview preview(ClusterJob job);
  /// Restores a cluster from saved results of solution() and job(): replaces all running jobs by `jobs` in the given
  /// slots. Scores are those of the saved cluster. Bounds may be wider, because jointly solved groups are not solved
  /// again. Throws InputError like schedule(), for slots out of range, and for competing jobs whose slot periods have a
  /// least common multiple above kLongestPeriod. If it throws, nothing has changed.
  const ClusterSolution& restore(std::vector<PlacedJob> jobs);
  /// Removes the job `name`. The remaining jobs keep their slots unless new slot periods shorten their iterations by
  /// more than ClusterOptions::join_threshold on average. Returns the moves of the remaining jobs. Throws InputError if
  /// no job of that name runs.
  std::vector<Move> leave(std::string_view name);

  /// Returns the problem of solution().links[index], for evaluate() or for a drawing. Throws InputError if no jobs
  /// compete on that link.
  [[nodiscard]] LinkProblem link_problem(std::size_t index) const;

  /// Returns the score of two jobs with one flow each on a link of `capacity` without other jobs; 0 if they have more
  /// than ClusterOptions::max_bursts bursts. Throws InputError like solve().
  [[nodiscard]] double pair_score(const Demand& a, const Demand& b, Rate capacity);

  /// Work since the cluster was created: numbers of solved problems and of solutions that came from the cache.
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
