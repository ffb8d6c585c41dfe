// Jobs on a cluster: which links they share, how well they fit there, when each begins, and which of several placements
// is best (CASSINI, arXiv 2308.00852, section 4, and beyond it loops; see affinity.h).
//
// Every component of the affinity graph has slots of its own (problem.h): one perimeter for all of its jobs, so that
// shifts compose. Slot periods are chosen by what they are worth: the collisions that they avoid, less what their
// stretch costs the jobs (internal/slot_choice.h). Groups are solved each by itself, one link or several that form
// loops, and composed breadth first from one job, t_k = t_j - w(j, g) + w(k, g) mod T_k, with w the shifts of group g's
// solution.
//
// Groups with more jobs and links than can be searched are improved one job at a time, with bounds from their links
// alone (internal/descent.h). Solutions are remembered by what was asked (capacities, demands, slots), as many links of
// a cluster ask the same; what a candidate leaves as it was is not solved again. Results depend neither on the number
// of threads nor on the order of the jobs.
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

/// Flows of one job from one host to another, each with the job's demand.
struct Flow {
  Topology::Host from = 0;
  Topology::Host to = 0;             ///< from == to: uses no link
  std::uint32_t multiplicity = 1;    ///< so many flows, each with a path of its own where the topology chooses
  std::vector<Topology::Link> path;  ///< that all of them take; empty: Topology::path()
};

struct ClusterJob {
  std::string name;  ///< unique in the cluster
  Demand demand;     ///< of one flow
  std::vector<Flow> flows;
};

/// The flows of a ring all-reduce over workers on these hosts: each sends to the next, the last to the first. Flows
/// within a host are left out.
std::vector<Flow> ring(std::span<const Topology::Host> workers);

/// The constructor of Cluster throws InputError for values out of range.
struct ClusterOptions {
  /// Of every question. A cluster asks many of them, so that each gets less work than a single one would by default;
  /// node_limit is 1 or more.
  SolveOptions solve = {.node_limit = 10'000};
  std::uint64_t routing_seed = 1;  ///< of the hash that chooses among equal paths
  bool discard_loops = false;      ///< rank() refuses candidates whose graph has a loop, as the paper does
  std::uint32_t threads = 0;       ///< at most 1024; 0: as many as oneTBB would use
  /// join(), leave(): what may be lost before running jobs move, see Joined::loss; and for how much longer iterations,
  /// on average over the jobs of a component, running jobs keep their slot periods; 0 or more.
  double join_threshold = 0.02;
  /// Slots are stretched beyond SolveOptions::max_stretch, up to this, where by an estimate the jobs of the component
  /// lose less by it than by meeting each other; a share of the period. 0, and components of more than 24 jobs: slot
  /// periods follow from the jobs' periods alone, the shortest perimeter that keeps max_stretch.
  double most_stretch = 0.25;
  /// The caller gives no slots to components with a link that scores less: slots in which one does are worth nothing. 0
  /// to 1.
  double least_score = 0.98;
};

struct ClusterSolution {
  struct Job {
    std::string name;
    Nanos period;                 ///< of an iteration alone
    Nanos slot_period;            ///< in which it runs, never shorter
    Nanos time_shift;             ///< in [0, slot_period)
    std::uint32_t component = 0;  ///< index
  };
  /// A link that two jobs or more use.
  struct Link {
    Topology::Link link = 0;
    Rate capacity;
    std::vector<LinkUse> uses;  ///< its jobs, by index, and how many of their flows
    /// Their peaks together exceed the capacity. Otherwise every shift is good: score 1 with all the
    /// margin that there is, and perimeter 0.
    bool competed = false;
    std::uint32_t component = 0;  ///< index; of a link that is competed for
    LinkSolution solution;
  };
  /// Jobs whose shifts depend on each other.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;     ///< a multiple of its jobs' slot periods
    double stretch = 0;  ///< of the slot most stretched
    /// No slot is stretched beyond SolveOptions::max_stretch; or none beyond ClusterOptions::most_stretch, and with the
    /// links' present scores that is worth more than it costs.
    bool within_limit = true;
    std::uint32_t loops = 0;  ///< independent loops of its graph, after merging links that are alike
    /// Over the links in loops: sum of the best score that each reaches alone, less the scores that they have. After
    /// schedule() this is what the loops cost; join() may add to it, as running jobs stay where they are. Below 0 only
    /// where a link alone was not solved to optimality, or on a grid of shifts, which is the link's own when it is
    /// alone.
    double lost = 0;
  };
  std::vector<Job> jobs;
  std::vector<Link> links;  ///< in the order of the topology
  std::vector<Component> components;
  double score = 1;  ///< mean of the links' scores; 1 if there are no links
  double upper_bound = 1;
  bool optimal = true;      ///< proven: no shifts in these slots give a higher score
  std::uint32_t loops = 0;  ///< of all components
  double lost = 0;          ///< of all components
};

/// A placement to judge: jobs that would run besides the running ones.
struct Candidate {
  std::vector<ClusterJob> jobs;
};

struct RankedCandidate {
  std::uint32_t candidate = 0;  ///< index
  double score = 1;             ///< ClusterSolution::score of all jobs with it
  double upper_bound = 1;
  double worst = 1;  ///< least score of a link
  std::uint32_t loops = 0;
  double lost = 0;
  /// For its loops, or as a link's perimeter would hold more than a million bursts; has no scores.
  bool discarded = false;
  std::string reason;  ///< why it is discarded, in words; empty otherwise
};

/// A running job that got another slot.
struct Move {
  std::string job;
  Nanos from;  ///< time shift before
  Nanos to;
  Nanos from_period;  ///< slot period before
  Nanos to_period;
};

struct Joined {
  Nanos time_shift;   ///< of the new job
  Nanos slot_period;  //
  std::vector<Move> moves;
  /// No slot of the new job goes with the slot periods of the running ones, or only at the cost of iterations that are
  /// longer by ClusterOptions::join_threshold, so that all jobs of its component got new slots.
  bool new_slots = false;
  double score = 1;  ///< mean score of the links on which the new job competes
  /// What is lost because running jobs keep their slots: the sum of the scores of the component's links, below what it
  /// would be if all could move, per link on which the new job competes.
  double loss = 0;
};

/// The question that one link asks, and the answer: the slots of its jobs and their shifts.
struct LinkProblem {
  Problem problem;
  Slots slots;
  std::vector<Nanos> shifts;
};

/// Jobs that run on a topology. One thread at a time may call its methods; inside they use several.
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
  [[nodiscard]] std::size_t jobs() const;                        ///< that run
  [[nodiscard]] const ClusterJob& job(std::size_t index) const;  ///< in the order of solution().jobs

  /// These jobs run from now on, in place of all others, with the best shifts found. Throws InputError that names the
  /// job: double names, bad demands, unknown hosts, no path, more than kHighestRate on a link; or periods so different
  /// that a link's perimeter holds more than a million bursts.
  const ClusterSolution& schedule(std::vector<ClusterJob> jobs);
  /// Of the jobs that run, as they run.
  [[nodiscard]] const ClusterSolution& solution() const;

  /// What the candidates would give if all jobs of the components that they touch could move; groups too large to be
  /// searched begin where the running jobs are, so that their scores may differ from schedule()'s. Best first: by
  /// score, then by the worst link, then in the order given; discarded ones last. Throws InputError as schedule() does,
  /// but for periods too different, which discard the one candidate.
  [[nodiscard]] std::vector<RankedCandidate> rank(std::span<const Candidate> candidates);

  /// One more job. First all running jobs keep their slots; if that costs more than ClusterOptions::join_threshold, one
  /// after the other may move, the one that helps most first (up to 8), and in the end all of the component. Jobs of
  /// other components never move. Running jobs keep their slot periods, unless none goes well with the new job's (see
  /// Joined::new_slots). Throws as schedule() does, and then nothing has changed.
  Joined join(ClusterJob job);
  /// The others keep their slots, unless these were made for the one that left and new ones are better by more than
  /// ClusterOptions::join_threshold: returns who got them. Throws InputError if no such job runs.
  std::vector<Move> leave(std::string_view name);

  /// Of solution().links[index], for evaluate() or to be drawn. Throws InputError if nobody competes on it.
  [[nodiscard]] LinkProblem link_problem(std::size_t index) const;

  /// Score of two jobs that share a link alone with one flow each. Throws InputError as solve() does.
  [[nodiscard]] double pair_score(const Demand& a, const Demand& b, Rate capacity);

  /// Problems solved so far, and answers that were remembered instead.
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
