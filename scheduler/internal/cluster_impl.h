// Inside of Cluster (see cluster.h): what it asks the solver, what it remembers, and the steps of scheduling, ranking,
// joining and leaving.
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

/// Meetings of steps (descent.h) in one pass over the jobs up to which a question goes to solve(): about a tenth of a
/// second at most, with the default node_limit.
inline constexpr double kMaxToSearch = 5'000;
inline constexpr double kEqualScores = 1e-12;  ///< that differ by less

/// Throws InputError that names the option which is out of range.
void check(const ClusterOptions& options);

struct Answer {
  std::shared_ptr<const Solution> solution;
  bool robust = false;  ///< among equal scores it is the one that bears the largest deviations
};

/// A state and all that it asks.
struct Asking {
  ClusterState state;
  std::vector<Question> alone;                 ///< by vertex
  std::vector<std::optional<Question>> joint;  ///< by group, of those with loops

  Asking(std::vector<const RoutedJob*> jobs, const Topology& topology) : state(std::move(jobs), topology) {}
  /// Once the state has its slots. Questions that are too large to be searched begin with `shifts`, if given.
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
  std::vector<double> group_upper_bounds;  ///< by group, of the sum over its links
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
  /// What join() is about to do.
  struct Joining {
    Joined joined;
    ClusterSolution solution;
    std::unique_ptr<const RoutedJob> job;
  };
  using AskedBy = std::pair<const Question*, const ClusterState*>;
  enum class Aim { scores, shifts };  ///< for scores alone, it doesn't matter which of equal shifts are found
  /// Jobs that are free to move, and the best that they can do while all others stay.
  struct Trial {
    std::vector<std::uint32_t> free;
    std::vector<Nanos> shifts;   ///< of all jobs of the state
    double sum = 0;              ///< of the scores of the component's links
    std::vector<double> scores;  ///< by vertex
  };

  Joining joining(ClusterJob job);
  std::vector<std::unique_ptr<const RoutedJob>> routed(std::vector<ClusterJob> jobs, bool beside_running) const;
  std::vector<const RoutedJob*> with_running(const std::vector<std::unique_ptr<const RoutedJob>>& others) const;
  void choose_slots_of(std::span<Asking*> askings);
  void set_slots(ClusterState& state, const AffinityGraph::Component& component);
  /// What the state's slot periods cost the component's jobs; none if that isn't known.
  [[nodiscard]] std::optional<double> cost_of_slots(const ClusterState& state,
                                                    const AffinityGraph::Component& component) const;
  /// Slots for the last job of the state, which joins; the others have theirs. False if they all got new ones.
  bool set_slots_beside(ClusterState& state, const AffinityGraph::Component& component);
  /// Where the first jobs of the state were, and what they have got instead.
  static std::vector<Move> moves_from(const std::vector<ClusterSolution::SolvedJob>& before, const ClusterState& state,
                                      const std::vector<Nanos>& shifts);
  void solve_and_compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts);
  [[nodiscard]] bool within_limit(const Asking& asking, const AffinityGraph::Component& component, const Slots& slots,
                                  const Scores& scores) const;
  /// Questions that are not remembered, in parallel.
  void solve_all(const std::vector<AskedBy>& questions, Aim aim = Aim::shifts);
  [[nodiscard]] Solution solved_by_search_or_descent(const Question& question, const ClusterState& state,
                                                     Aim aim) const;
  void forget_if_full();
  [[nodiscard]] const Solution& answer(const Question& question) const {
    return *remembered_.at(question.key).solution;
  }
  /// Of the score of a link that was asked about alone, wherever its jobs are.
  [[nodiscard]] double bound_of(const Question& alone) const {
    // On a grid the answer is about shifts on the link's own grid: other links, and joins, put jobs between them.
    return options.solve.angles > 0 ? 1 : answer(alone).links.front().upper_bound;
  }

  void compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts) const;
  [[nodiscard]] Scores solved(const Asking& asking) const;
  /// Of any shifts.
  [[nodiscard]] Scores evaluated(const Asking& asking, const std::vector<Nanos>& shifts);
  [[nodiscard]] ClusterSolution described(const Asking& asking, const std::vector<Nanos>& shifts,
                                          const Scores& scores) const;

  /// Where the running jobs, which come first in the state, are now; none for the others.
  [[nodiscard]] std::vector<std::optional<Nanos>> shifts_in(const ClusterState& state) const;
  [[nodiscard]] std::optional<Nanos> period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const;
  [[nodiscard]] Trial tried(const Asking& asking, std::vector<std::uint32_t> free, const std::vector<Nanos>& shifts,
                            const std::vector<double>& scores, Aim aim) const;
  /// The last job of the state joins; the others of its component have their slots, and move only if it pays.
  Trial join_in_place(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                      Joined& joined);
  /// The best that there is, if all could move. Sets the scores that links had before, by vertex, and the weight of
  /// those that the new job uses.
  Trial all_free(Asking& asking, const AffinityGraph::Component& component, const std::vector<Nanos>& shifts,
                 std::vector<double>& before, double& own_links);
  /// All that matters is how the jobs lie to each other: `found`, turned as a whole so that as many as possible keep
  /// their `shifts`.
  [[nodiscard]] static std::vector<Nanos> turned(const ClusterState& state, const AffinityGraph::Component& component,
                                                 const std::vector<Nanos>& found, const std::vector<Nanos>& shifts);
  /// Jobs with the most to gain on the links that they share with jobs that may move already; the most first.
  [[nodiscard]] std::vector<std::uint32_t> worth_moving(const Asking& asking, const AffinityGraph::Component& component,
                                                        const Trial& best) const;

  std::unordered_map<std::string, Answer> remembered_;
  std::unordered_map<std::string, std::vector<Nanos>> remembered_slots_;  ///< by key_of_slots(), by place in periods()
  std::unordered_map<std::string, double> remembered_pairs_;
};

}  // namespace mltcp::scheduler
