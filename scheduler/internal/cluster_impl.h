// Implementation of Cluster (see cluster.h): its questions to the solver, its cache of answers, and the steps of
// scheduling, ranking, joining and leaving.
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

/// A question goes to solve() if one pass over its jobs takes at most this many meetings of steps (descent.h): about
/// 0.1 s at most with the default node_limit.
inline constexpr double kMaxToSearch = 5'000;
inline constexpr double kEqualScores = 1e-12;  ///< scores that differ by less are equal

/// Throws InputError that names an option out of range.
void check(const ClusterOptions& options);

struct Answer {
  std::shared_ptr<const Solution> solution;
  bool robust = false;  ///< of all solutions with equal scores, it tolerates the largest deviations
};

/// A state and its questions to the solver.
struct Asking {
  ClusterState state;
  std::vector<Question> alone;                 ///< by vertex
  std::vector<std::optional<Question>> joint;  ///< by group; only groups with loops

  Asking(std::vector<const RoutedJob*> jobs, const Topology& topology) : state(std::move(jobs), topology) {}
  /// Call it when the state has its slots. Questions that are too large for the search begin with `shifts`, if given.
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
  std::vector<LinkSolution> links;         ///< by vertex
  std::vector<double> group_upper_bounds;  ///< by group: upper bound of the sum over its links
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
  /// A join that has been computed and not yet been made.
  struct Joining {
    Joined joined;
    ClusterSolution solution;
    std::unique_ptr<const RoutedJob> job;
  };
  using AskedBy = std::pair<const Question*, const ClusterState*>;
  enum class Aim { scores, shifts };  ///< scores: any shifts of the best score will do
  /// Jobs that are free to move, and their best shifts while all others stay.
  struct Trial {
    std::vector<std::uint32_t> free;
    std::vector<Nanos> shifts;   ///< of all jobs of the state
    double sum = 0;              ///< sum of the scores of the component's links
    std::vector<double> scores;  ///< by vertex
  };

  Joining joining(ClusterJob job);
  std::vector<std::unique_ptr<const RoutedJob>> routed(std::vector<ClusterJob> jobs, bool beside_running) const;
  std::vector<const RoutedJob*> with_running(const std::vector<std::unique_ptr<const RoutedJob>>& others) const;
  void choose_slots_of(std::span<Asking*> askings);
  void set_slots(ClusterState& state, const AffinityGraph::Component& component);
  /// The cost of the state's slot periods for the component's jobs; empty if unknown.
  [[nodiscard]] std::optional<double> cost_of_slots(const ClusterState& state,
                                                    const AffinityGraph::Component& component) const;
  /// Sets slots for the last job of the state, which joins; the others have theirs. False if all got new ones.
  bool set_slots_beside(ClusterState& state, const AffinityGraph::Component& component);
  /// The changes from `before` for the first jobs of the state.
  static std::vector<Move> moves_from(const std::vector<ClusterSolution::SolvedJob>& before, const ClusterState& state,
                                      const std::vector<Nanos>& shifts);
  void solve_and_compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts);
  [[nodiscard]] bool within_limit(const Asking& asking, const AffinityGraph::Component& component, const Slots& slots,
                                  const Scores& scores) const;
  /// Solves the questions that have no answer yet, in parallel.
  void solve_all(const std::vector<AskedBy>& questions, Aim aim = Aim::shifts);
  [[nodiscard]] Solution solved_by_search_or_descent(const Question& question, const ClusterState& state,
                                                     Aim aim) const;
  void forget_if_full();
  [[nodiscard]] const Solution& answer(const Question& question) const {
    return *remembered_.at(question.key).solution;
  }
  /// Upper bound of the score of one link, whatever its jobs' shifts are.
  [[nodiscard]] double bound_of(const Question& alone) const {
    // On a grid the answer only holds for shifts on the link's own grid; other links, and joins, may place jobs
    // between.
    return options.solve.angles > 0 ? 1 : answer(alone).links.front().upper_bound;
  }

  void compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts) const;
  [[nodiscard]] Scores solved(const Asking& asking) const;
  /// Scores with any given shifts.
  [[nodiscard]] Scores evaluated(const Asking& asking, const std::vector<Nanos>& shifts);
  [[nodiscard]] ClusterSolution described(const Asking& asking, const std::vector<Nanos>& shifts,
                                          const Scores& scores) const;

  /// Current shifts of the running jobs, which come first in the state; empty for the others.
  [[nodiscard]] std::vector<std::optional<Nanos>> shifts_in(const ClusterState& state) const;
  [[nodiscard]] std::optional<Nanos> period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const;
  [[nodiscard]] Trial tried(const Asking& asking, std::vector<std::uint32_t> free, const std::vector<Nanos>& shifts,
                            const std::vector<double>& scores, Aim aim) const;
  /// The last job of the state joins; the others of its component have their slots, and move only if that is worth it.
  Trial join_in_place(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                      Joined& joined);
  /// The best solution if all jobs could move. Sets the links' scores before, by vertex, and the weight of the new
  /// job's links.
  Trial all_free(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                 std::vector<double>& before, double& own_links);
  /// Only relative shifts matter: returns `found`, rotated as a whole so that as many jobs as possible keep their
  /// `shifts`.
  [[nodiscard]] static std::vector<Nanos> turned(const ClusterState& state, const AffinityGraph::Component& component,
                                                 const std::vector<Nanos>& found, const std::vector<Nanos>& shifts);
  /// Jobs with the largest gain on links that they share with jobs that may move already; largest gain first.
  [[nodiscard]] std::vector<std::uint32_t> worth_moving(const Asking& asking, const AffinityGraph::Component& component,
                                                        const Trial& best) const;

  std::unordered_map<std::string, Answer> remembered_;
  std::unordered_map<std::string, std::vector<Nanos>> remembered_slots_;  ///< by key_of_slots(), by place in periods()
  std::unordered_map<std::string, double> remembered_pairs_;
};

}  // namespace mltcp::scheduler
