// Implementation of Cluster (see cluster.h): creates questions for the solver, caches the answers, and contains the
// steps of scheduling, ranking, joining and leaving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mltcp/scheduler/cluster.h"
#include "mltcp/scheduler/internal/cluster_state.h"

namespace mltcp::scheduler {

/// solve() answers a question if Question::meetings is at most this number. Descent (descent.h) answers larger
/// questions. With the default node_limit, solve() takes at most about 0.1 s for a question of this size.
inline constexpr double kMaxToSearch = 5'000;
inline constexpr double kEqualScores = 1e-12;  ///< two scores are equal if their difference is below this value

/// Throws InputError that names the option if an option is out of range.
void check(const ClusterOptions& options);

struct Answer {
  std::shared_ptr<const Solution> solution;
  bool robust = false;  ///< true if solved for Aim::shifts, where SolveOptions::robust applies
};

/// A state and its questions for the solver.
struct Asking {
  ClusterState state;
  std::vector<Question> alone;                 ///< for each vertex: a question with only this vertex
  std::vector<std::optional<Question>> joint;  ///< for each group: a question with all vertices; empty without loops

  Asking(std::vector<const RoutedJob*> jobs, const Topology& topology) : state(std::move(jobs), topology) {}
  /// Creates the questions. Call it after the slot periods of the state are set. If `shifts` is not empty, joint
  /// questions that are too large for an exact search start from these shifts.
  void ask(const std::vector<std::optional<Nanos>>& shifts = {}) {
    for (std::uint32_t vertex = 0; vertex < state.graph.vertices.size(); ++vertex)
      alone.emplace_back(state, std::vector{vertex});
    for (const AffinityGraph::Group& group : state.graph.groups) {
      joint.emplace_back();
      if (group.loops == 0) continue;
      joint.back().emplace(state, group.vertices);
      if (!shifts.empty() && joint.back()->meetings > kMaxToSearch) joint.back()->begin_with(shifts);
    }
  }
  [[nodiscard]] const Question& of_group(std::uint32_t group) const {
    return joint[group] ? *joint[group] : alone[state.graph.groups[group].vertices.front()];
  }
  [[nodiscard]] double weight(std::uint32_t vertex) const {
    return static_cast<double>(state.graph.vertices[vertex].links.size());
  }
};

/// The scores of a state's links.
struct Scores {
  std::vector<LinkSolution> links;         ///< solution of each vertex
  std::vector<double> group_upper_bounds;  ///< for each group: upper bound of the sum of its scores
  std::vector<bool> group_optimal;
};
class Cluster::Impl {
 public:
  Impl(Topology topology_given, const ClusterOptions& options_given)
      : topology(std::move(topology_given)), options(options_given) {
    check(options);
  }

  const ClusterSolution& schedule(std::vector<ClusterJob> jobs);
  std::vector<RankedCandidate> rank(std::span<const Candidate> candidates);
  Joined join(ClusterJob job);
  Preview preview(ClusterJob job);
  const ClusterSolution& restore(std::vector<PlacedJob> jobs);
  std::vector<Move> leave(std::string_view name);
  LinkProblem link_problem(std::size_t index) const;
  double pair_score(const Demand& a, const Demand& b, Rate capacity);

  Topology topology;
  ClusterOptions options;
  std::vector<std::unique_ptr<const RoutedJob>> running;
  ClusterSolution solution;
  Work work;

 private:
  /// The result of a join that the cluster has not applied yet.
  struct Joining {
    Joined joined;
    ClusterSolution solution;
    std::unique_ptr<const RoutedJob> job;
  };
  using AskedBy = std::pair<const Question*, const ClusterState*>;
  /// `scores`: any shifts with the best score are sufficient. `shifts`: the shifts must also be robust.
  enum class Aim { scores, shifts };
  /// A set of jobs that may move, and the best shifts if all other jobs keep their shifts.
  struct Trial {
    std::vector<std::uint32_t> free;
    std::vector<Nanos> shifts;   ///< shifts of all jobs of the state
    double sum = 0;              ///< sum of the scores of the component's links
    std::vector<double> scores;  ///< score of each vertex
  };

  Joining joining(ClusterJob job);
  std::vector<std::unique_ptr<const RoutedJob>> routed(std::vector<ClusterJob> jobs, bool beside_running) const;
  std::vector<const RoutedJob*> with_running(const std::vector<std::unique_ptr<const RoutedJob>>& others) const;
  void choose_slots_of(std::span<Asking*> askings);
  void set_slots(ClusterState& state, const AffinityGraph::Component& component);
  /// Returns the cost of the slot periods in `state` for the jobs of the component (slot_choice.h). Returns no value if
  /// the component is too large to compute the cost.
  [[nodiscard]] std::optional<double> cost_of_slots(const ClusterState& state,
                                                    const AffinityGraph::Component& component) const;
  /// Sets the slot period of the last job of the state, which joins. Returns true if all other jobs keep their slot
  /// periods. Returns false if all jobs of the component get new slot periods.
  bool set_slots_beside(ClusterState& state, const AffinityGraph::Component& component);
  /// Returns the moves of the running jobs, which come first in the state: the differences between `before` and the new
  /// slot periods and shifts.
  static std::vector<Move> moves_from(const std::vector<ClusterSolution::SolvedJob>& before, const ClusterState& state,
                                      const std::vector<Nanos>& shifts);
  void solve_and_compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts);
  [[nodiscard]] bool within_limit(const Asking& asking, const AffinityGraph::Component& component, const Slots& slots,
                                  const Scores& scores) const;
  /// Solves the questions that have no cached answer, in parallel.
  void solve_all(const std::vector<AskedBy>& questions, Aim aim = Aim::shifts);
  [[nodiscard]] Solution solved_by_search_or_descent(const Question& question, const ClusterState& state,
                                                     Aim aim) const;
  void forget_if_full();
  [[nodiscard]] const Solution& answer(const Question& question) const {
    return *remembered_.at(question.key).solution;
  }
  /// Returns an upper bound of the score of one link that holds for all shifts of its jobs.
  [[nodiscard]] double bound_of(const Question& alone) const {
    // If shifts are on a grid, the bound in the answer holds only on the grid of this link. Because of other links or
    // joins, jobs may have shifts between the points of this grid.
    return options.solve.angles > 0 ? 1 : answer(alone).links.front().upper_bound;
  }

  void compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts) const;
  [[nodiscard]] Scores solved(const Asking& asking) const;
  /// Returns the scores of the links with the given shifts.
  [[nodiscard]] Scores evaluated(const Asking& asking, const std::vector<Nanos>& shifts);
  [[nodiscard]] ClusterSolution described(const Asking& asking, const std::vector<Nanos>& shifts,
                                          const Scores& scores) const;

  /// Returns the current shifts of the running jobs, which come first in the state. Jobs that do not run have no value.
  [[nodiscard]] std::vector<std::optional<Nanos>> shifts_in(const ClusterState& state) const;
  [[nodiscard]] std::optional<Nanos> period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const;
  [[nodiscard]] Trial tried(const Asking& asking, std::vector<std::uint32_t> free, const std::vector<Nanos>& shifts,
                            const std::vector<double>& scores, Aim aim) const;
  /// Adds the last job of the state to a component whose other jobs keep their slot periods. The other jobs get new
  /// shifts only if new shifts gain more than ClusterOptions::join_threshold.
  Trial join_in_place(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                      Joined& joined);
  /// Returns the best solution if all jobs of the component may move. Sets `before` to the current score of each vertex
  /// without the new job, and `own_links` to the number of links on which the new job competes.
  Trial all_free(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                 std::vector<double>& before, double& own_links);
  /// Returns the shifts `found`, all moved by the same time, so that as many running jobs as possible keep their
  /// current `shifts`. Scores do not change, because they depend only on relative shifts.
  [[nodiscard]] static std::vector<Nanos> turned(const ClusterState& state, const AffinityGraph::Component& component,
                                                 const std::vector<Nanos>& found, const std::vector<Nanos>& shifts);
  /// Returns up to 16 jobs that could be the next to move: those that share links with the jobs in best.free, in
  /// descending order of the possible gain on these links.
  [[nodiscard]] std::vector<std::uint32_t> worth_moving(const Asking& asking, const AffinityGraph::Component& component,
                                                        const Trial& best) const;

  std::unordered_map<std::string, Answer> remembered_;
  /// Slot periods by key_of_slots(), in the order of ClusterState::periods().
  std::unordered_map<std::string, std::vector<Nanos>> remembered_slots_;
  std::unordered_map<std::string, double> remembered_pairs_;
};

}  // namespace mltcp::scheduler
