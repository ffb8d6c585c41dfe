// Turns recorded graphs into programs of ranks (see graph_program.h).
#include "mltcp/lab/workload/graph_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/internal/program_writer.h"

namespace mltcp::workload {
namespace {

using internal::both;
using internal::Group;
using internal::Members;
using internal::ProgramWriter;
using internal::Slice;
using internal::tag_of;
using internal::Waits;
using Kind = GraphNode::Kind;

// maximum sum over all ranks: of times in nanoseconds, and of bytes
constexpr std::int64_t kMaxInAll = std::int64_t{1} << 60U;

// Clock differences below this are ignored, because the ends of a collective differ by up to this much even if clocks
// agree.
constexpr Nanos kMinClockError{100'000};

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

Nanos end_of(const GraphNode& node) { return node.start.is_never() ? Nanos::never() : node.start + node.length; }

Nanos scaled(Nanos time, double scale) {
  constexpr double max = 0x1p60;
  return Nanos(std::llround(std::min(static_cast<double>(time.count) * scale, max)));
}

/// Two subgroups of a collective's group, as one rank sees them. `locals` contains the members on the rank's island.
/// `peers` contains one member of each island: the one with the same index on its island as the rank.
struct Split {
  Group locals;
  Group peers;
  std::uint32_t islands = 0;
};

/// Lists of the programs of a group's ranks, in ascending order. All ranks of the group share these lists, because
/// separate lists for each rank would need memory quadratic in the number of ranks.
struct GroupMembers {
  Members all;
  /// Islands of the group, ascending. Empty if the islands contain different numbers of the group's ranks.
  std::vector<std::uint32_t> islands;
  std::vector<Members> locals;  ///< by island: the group's ranks on the island
  std::vector<Members> peers;   ///< by index on an island: the group's ranks that have this index on their islands
};

Members shared(std::vector<std::uint32_t> ranks) {
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(ranks));
}
/// Returns the index of `value` in an ascending list that contains it.
std::uint32_t place_in(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(list, value) - list.begin());
}

class Maker {
 public:
  Maker(const ExecutionGraph& graph, const GraphOptions& options) : graph_(graph), options_(options) {
    check_options();
    choose_ranks();
    choose_steps();
  }

  GraphPrograms make() {
    collect_nodes();
    find_clock_errors();
    find_delays();
    sum_up_bytes();
    connect_nodes();
    write_in_order();
    finish();
    return std::move(result_);
  }

 private:
  /// Nodes that run together: one node, or all nodes of a collective.
  struct Joint {
    std::uint32_t rank = 0;  ///< number of the rank's program; for a collective, the program of its first member
    std::uint32_t node = 0;
    std::uint32_t waits = 0;
    std::uint32_t collective = kNone;  ///< index in collectives_; kNone if the joint is no collective
    std::uint32_t begin = kNone;       ///< index in begins_; kNone if the joint contains nodes
    Nanos ready;
  };
  /// The beginning of a step on a rank, after the end of the previous step. Nodes of the step that depend on no other
  /// node wait for this beginning.
  struct Begin {
    std::vector<std::uint32_t> ends;  ///< nodes that end the previous step
    Waits done;
  };
  struct Collective {
    std::uint32_t group = 0;
    /// Program and node of each member, in the order of programs.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
  };
  /// A message between two ranks.
  struct Message {
    std::uint32_t receiver_node = kNone;  ///< index of the receive node on the rank that receives the message
    Waits arrived;
  };
  struct Sequence {
    std::vector<std::uint32_t> next;    ///< by member of the group: number of the member's next collective
    std::vector<std::uint32_t> joints;  ///< joints of the group's collectives, in order
  };
  struct OfNode {
    std::uint32_t joint = kNone;    ///< index in joints_; kNone if the node is not replayed
    std::uint32_t message = kNone;  ///< index in messages_, for a send or receive
    bool dropped = false;           ///< whether the peer is not replayed; the node then sends and receives nothing
    Nanos delay;                    ///< delay before the node, multiplied by compute_scale
    Nanos compute;                  ///< compute time of the node, multiplied by compute_scale
    Waits done;
  };

  [[nodiscard]] std::string from() const {
    if (graph_.sources.empty()) return graph_.format.empty() ? "trace" : graph_.format;
    return graph_.sources.size() == 1
               ? graph_.sources.front()
               : fmt::format("{} and {} more", graph_.sources.front(), graph_.sources.size() - 1);
  }
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(fmt::format("{}: {}", from(), why)); }
  void warn(const std::string& what) { result_.warnings.push_back(fmt::format("{}: {}", from(), what)); }
  [[nodiscard]] const GraphNode& node(std::uint32_t rank, std::uint32_t index) const {
    return graph_.ranks[result_.graph_rank[rank]].nodes[index];
  }
  [[nodiscard]] std::string called(std::uint32_t rank, std::uint32_t index) const {
    const std::uint32_t name = node(rank, index).name;
    return fmt::format("node {}{} of rank {}", index,
                       name < graph_.names.size() && !graph_.names[name].empty()
                           ? fmt::format(" {}", in_quotes(graph_.names[name]))
                           : "",
                       recorded(result_.graph_rank[rank]));
  }
  /// Returns the number of a rank in the trace, given its number in the graph.
  [[nodiscard]] std::uint32_t recorded(std::uint32_t graph_rank) const {
    return graph_rank < graph_.recorded_ranks.size() ? graph_.recorded_ranks[graph_rank] : graph_rank;
  }
  /// Returns the island of a program's rank. The island depends on the rank's number in the trace, so that it is the
  /// same if only a subset of the ranks is replayed.
  [[nodiscard]] std::uint32_t island_of(std::uint32_t program) const {
    return recorded(result_.graph_rank[program]) / options_.islands;
  }

  void check_options() const {
    const auto positive = [](double scale) { return std::isfinite(scale) && scale > 0; };
    if (!positive(options_.compute_scale))
      refuse("the scale of compute times is not above 0; give a factor such as 0.5");
    if (!positive(options_.bytes_scale)) refuse("the scale of bytes is not above 0; give a factor such as 0.5");
    if (options_.islands == 0) refuse("islands have 0 ranks; give the number of ranks that share one, such as 8");
  }

  void choose_ranks() {
    const auto all = static_cast<std::uint32_t>(graph_.ranks.size());
    program_of_.assign(all, kNone);
    if (options_.ranks.empty())
      for (std::uint32_t rank = 0; rank < all; ++rank) result_.graph_rank.push_back(rank);
    // maps the number of a rank in the trace to its number in the graph
    std::map<std::uint32_t, std::uint32_t> index_of;
    for (std::uint32_t rank = 0; rank < all && !options_.ranks.empty(); ++rank) index_of.emplace(recorded(rank), rank);
    std::optional<std::uint32_t> before;
    for (const std::uint32_t rank : options_.ranks) {
      const auto place = index_of.find(rank);
      if (place == index_of.end())
        refuse(fmt::format("there is no rank {}; the trace has {}, from {} to {}", rank,
                           plural(index_of.size(), "rank"), index_of.empty() ? 0 : index_of.begin()->first,
                           index_of.empty() ? 0 : index_of.rbegin()->first));
      if (before && rank <= *before)
        refuse(fmt::format("rank {} is not above the one before it; name ranks in ascending order", rank));
      before = rank;
      result_.graph_rank.push_back(place->second);
    }
    for (std::uint32_t program = 0; program < result_.graph_rank.size(); ++program)
      program_of_[result_.graph_rank[program]] = program;
    ranks_ = static_cast<std::uint32_t>(result_.graph_rank.size());
    if (ranks_ < 2)
      refuse(fmt::format("{} of the trace is replayed, and nothing is sent; give the traces of two ranks or more",
                         plural(ranks_, "rank")));
  }

  void choose_steps() {
    const auto all = static_cast<std::uint32_t>(graph_.steps.size());
    const auto [first, last] = options_.steps.value_or(std::pair(0U, std::max(all, 1U) - 1));
    if (first > last || last >= all)
      refuse(fmt::format("there are no steps {} to {}; the trace has {}, numbered from 0", first, last,
                         plural(all, "step")));
    result_.first_step = first;
    result_.last_step = last;
  }

  // ---- Nodes to run ----

  void collect_nodes() {
    nodes_.resize(ranks_);
    std::uint64_t to_others = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const RankGraph& of_rank = graph_.ranks[result_.graph_rank[rank]];
      nodes_[rank].resize(of_rank.nodes.size());
      for (std::uint32_t i = 0; i < of_rank.nodes.size(); ++i) {
        const GraphNode& node = of_rank.nodes[i];
        if (node.step < result_.first_step || node.step > result_.last_step) continue;
        OfNode& own = nodes_[rank][i];
        if (node.kind == Kind::collective) {
          add_collective(rank, i);
          continue;
        }
        own.joint = add_joint(rank, i);
        if (node.kind == Kind::compute) continue;
        if (node.peer >= program_of_.size())
          refuse(fmt::format("{} has peer {}; there are {} ranks", called(rank, i), node.peer, program_of_.size()));
        own.dropped = program_of_[node.peer] == kNone;
        to_others += own.dropped ? 1 : 0;
      }
    }
    check_collectives();
    match_messages();
    if (to_others > 0)
      warn(fmt::format("{} to and from ranks that are not replayed {} left out", plural(to_others, "message"),
                       to_others == 1 ? "is" : "are"));
    if (narrowed_ > 0)
      warn(fmt::format("{} run{} among fewer ranks than recorded, as the others are not replayed",
                       plural(narrowed_, "collective"), narrowed_ == 1 ? "s" : ""));
    if (alone_ > 0)
      warn(fmt::format("{} with a single replayed rank {} left out", plural(alone_, "collective"),
                       alone_ == 1 ? "is" : "are"));
  }

  std::uint32_t add_joint(std::uint32_t rank, std::uint32_t index) {
    joints_.push_back({rank, index, 0, kNone, kNone, {}});
    return static_cast<std::uint32_t>(joints_.size() - 1);
  }

  std::uint32_t add_begin(std::uint32_t rank, std::vector<std::uint32_t> ends) {
    const std::uint32_t joint = add_joint(rank, kNone);
    joints_[joint].begin = static_cast<std::uint32_t>(begins_.size());
    for (const std::uint32_t end : ends) connect(nodes_[rank][end].joint, joint);
    begins_.push_back({std::move(ends), {}});
    return joint;
  }

  /// The n-th collectives of a group on all of its ranks are the same collective.
  void add_collective(std::uint32_t rank, std::uint32_t index) {
    const GraphNode& node = this->node(rank, index);
    if (node.group >= graph_.groups.size())
      refuse(fmt::format("{} has group {}; there are {}", called(rank, index), node.group, graph_.groups.size()));
    Sequence& sequence = sequences_[node.group];
    const std::vector<std::uint32_t>& group = graph_.groups[node.group];
    const auto member = std::ranges::lower_bound(group, result_.graph_rank[rank]);
    if (member == group.end() || *member != result_.graph_rank[rank])
      refuse(fmt::format("{} has a group that its rank is not in; the trace is damaged, record it again",
                         called(rank, index)));
    if (sequence.next.empty()) sequence.next.resize(group.size());
    const std::uint32_t number = sequence.next[static_cast<std::size_t>(member - group.begin())]++;
    if (number == sequence.joints.size()) {
      const std::uint32_t joint = add_joint(rank, index);
      joints_[joint].collective = static_cast<std::uint32_t>(collectives_.size());
      collectives_.push_back({node.group, {}});
      sequence.joints.push_back(joint);
    }
    const std::uint32_t joint = sequence.joints[number];
    nodes_[rank][index].joint = joint;
    collectives_[joints_[joint].collective].members.emplace_back(rank, index);
  }

  void check_collectives() {
    for (const Collective& collective : collectives_) {
      const std::vector<std::uint32_t>& group = graph_.groups[collective.group];
      const auto [first_rank, first_index] = collective.members.front();
      const GraphNode& first = node(first_rank, first_index);
      for (const auto& [rank, index] : collective.members) {
        const GraphNode& other = node(rank, index);
        if (other.collective != first.collective || other.bytes != first.bytes || other.peer != first.peer)
          refuse(
              fmt::format("{} is {} of {} bytes and {} is {} of {}; both are the same collective of their group, "
                          "so record all ranks in the same run",
                          called(first_rank, first_index), name(first.collective), first.bytes, called(rank, index),
                          name(other.collective), other.bytes));
      }
      std::size_t replayed = 0;
      for (const std::uint32_t rank : group)
        if (rank < program_of_.size() && program_of_[rank] != kNone) ++replayed;
      if (collective.members.size() != replayed)
        refuse(fmt::format("{} of the {} ranks of its group take part in {}; record all ranks for the same steps",
                           collective.members.size(), replayed, called(first_rank, first_index)));
      if (replayed < group.size()) ++(replayed > 1 ? narrowed_ : alone_);
    }
  }

  /// Matches the n-th receive of a tag with the n-th send of this tag between the same ranks.
  void match_messages() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> sends;  // messages
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      for (std::uint32_t i = 0; i < nodes_[rank].size(); ++i) {
        OfNode& own = nodes_[rank][i];
        if (own.joint == kNone || own.dropped || node(rank, i).kind != Kind::send) continue;
        own.message = static_cast<std::uint32_t>(messages_.size());
        messages_.emplace_back();
        senders_.emplace_back(rank, i);
        sends[{rank, program_of_[node(rank, i).peer], node(rank, i).tag}].push_back(own.message);
      }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::size_t> taken;
    std::size_t matched = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      for (std::uint32_t i = 0; i < nodes_[rank].size(); ++i) {
        OfNode& own = nodes_[rank][i];
        const GraphNode& given = node(rank, i);
        if (own.joint == kNone || own.dropped || given.kind != Kind::receive) continue;
        const std::tuple key(program_of_[given.peer], rank, given.tag);
        const auto found = sends.find(key);
        const std::size_t number = taken[key]++;
        if (found == sends.end() || number >= found->second.size())
          refuse(
              fmt::format("{} receives a message with tag {} that rank {} doesn't send; record all ranks for the "
                          "same steps",
                          called(rank, i), given.tag, recorded(given.peer)));
        own.message = found->second[number];
        messages_[own.message].receiver_node = i;
        const auto [sender, sent] = senders_[own.message];
        if (node(sender, sent).bytes != given.bytes)
          refuse(fmt::format("{} sends {} bytes and {} receives {} of them; record all ranks in the same run",
                             called(sender, sent), node(sender, sent).bytes, called(rank, i), given.bytes));
        ++matched;
      }
    if (matched == messages_.size()) return;
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (messages_[i].receiver_node == kNone)
        refuse(
            fmt::format("{} sends a message with tag {} that rank {} doesn't receive; record all ranks for the same "
                        "steps",
                        called(senders_[i].first, senders_[i].second), node(senders_[i].first, senders_[i].second).tag,
                        recorded(node(senders_[i].first, senders_[i].second).peer)));
  }

  // ---- Delays and clocks ----

  /// Returns whether a collective of this kind ends on all ranks at about the same time.
  static bool ends_together(workload::Collective kind) {
    using workload::Collective;
    return kind == Collective::all_reduce || kind == Collective::all_gather || kind == Collective::reduce_scatter ||
           kind == Collective::all_to_all || kind == Collective::all_reduce_all_to_all;
  }

  /// Compares the clocks of a group's members. Returns for each member the median time by which collectives end later
  /// on the member's clock than on the first member's clock. Omits members for which the times are unknown.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Nanos>> compare_clocks(const Sequence& sequence) const {
    constexpr std::size_t max = 1'000;  // maximum number of collectives to compare
    std::map<std::uint32_t, std::vector<Nanos>> later;
    const std::size_t stride = sequence.joints.size() / max + 1;
    for (std::size_t i = 0; i < sequence.joints.size(); i += stride) {
      const auto& members = collectives_[joints_[sequence.joints[i]].collective].members;
      const GraphNode& first = node(members.front().first, members.front().second);
      if (!ends_together(first.collective) || first.start.is_never() || first.length.count <= 0) continue;
      for (const auto& [rank, index] : members) {
        const GraphNode& other = node(rank, index);
        if (!other.start.is_never() && other.length.count > 0) later[rank].push_back(end_of(other) - end_of(first));
      }
    }
    std::vector<std::pair<std::uint32_t, Nanos>> result;
    for (auto& [rank, all] : later) {
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
      std::nth_element(all.begin(), middle, all.end());
      result.emplace_back(rank, *middle);
    }
    return result;
  }

  /// Estimates clock errors. Collectives end at nearly the same time on all ranks, so systematic differences are errors
  /// of the hosts' clocks.
  void find_clock_errors() {
    result_.clock_error.resize(ranks_);
    // For each rank, the ranks with which it is compared, and by how much their clocks are ahead of its clock.
    std::vector<std::vector<std::pair<std::uint32_t, Nanos>>> known(ranks_);
    for (const auto& [group, sequence] : sequences_) {
      const auto clocks = compare_clocks(sequence);
      for (std::size_t i = 1; i < clocks.size(); ++i) {
        known[clocks[0].first].emplace_back(clocks[i].first, clocks[i].second - clocks[0].second);
        known[clocks[i].first].emplace_back(clocks[0].first, clocks[0].second - clocks[i].second);
      }
    }
    std::vector<bool> seen(ranks_);
    std::uint64_t wrong = 0;
    std::uint32_t worst = 0;
    std::vector<Nanos>& error = result_.clock_error;
    for (std::uint32_t root = 0; root < ranks_; ++root) {
      if (seen[root]) continue;
      seen[root] = true;
      std::vector<std::uint32_t> together{root};
      for (std::size_t i = 0; i < together.size(); ++i)
        for (const auto& [other, later] : known[together[i]]) {
          if (seen[other]) continue;
          seen[other] = true;
          error[other] = error[together[i]] + later;
          together.push_back(other);
        }
      std::vector<Nanos> sorted;
      for (const std::uint32_t rank : together) sorted.push_back(error[rank]);
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
      std::nth_element(sorted.begin(), middle, sorted.end());
      for (const std::uint32_t rank : together) {
        error[rank] -= *middle;
        if (magnitude(error[rank]) < kMinClockError) error[rank] = Nanos();
        if (error[rank].count != 0) ++wrong;
        if (magnitude(error[rank]) > magnitude(error[worst])) worst = rank;
      }
    }
    if (wrong == 0) return;
    warn(
        fmt::format("the clock of rank {} is {} {} the others', according to the ends of their collectives; the clocks "
                    "of {} are corrected",
                    recorded(result_.graph_rank[worst]), to_text(magnitude(error[worst])),
                    error[worst].count > 0 ? "ahead of" : "behind", plural(wrong, "rank")));
  }

  static Nanos magnitude(Nanos time) { return Nanos(std::abs(time.count)); }

  /// Returns the time, by corrected clocks, at which the first step begins. This is the corrected start of the earliest
  /// node, minus the recorded time from the beginning of the step to its earliest node.
  [[nodiscard]] Nanos find_origin() const {
    const Nanos step_start = graph_.steps[result_.first_step].start;
    Nanos as_recorded = Nanos::never();
    Nanos corrected = Nanos::never();
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      for (std::uint32_t i = 0; i < nodes_[rank].size(); ++i) {
        if (nodes_[rank][i].joint == kNone || node(rank, i).start.is_never()) continue;
        as_recorded = std::min(as_recorded, node(rank, i).start);
        corrected = std::min(corrected, node(rank, i).start - result_.clock_error[rank]);
      }
    if (as_recorded.is_never() || step_start >= as_recorded) return corrected;
    return corrected - (as_recorded - step_start);
  }

  /// Computes for each rank the recorded time from the end of the rank's last node to the end of the last step.
  void find_rests(const std::vector<Nanos>& last_ends) {
    rests_.assign(ranks_, Nanos());
    const ExecutionGraph::Step& step = graph_.steps[result_.last_step];
    if (!options_.delays || step.start.is_never()) return;
    std::optional<Nanos> as_recorded;
    std::optional<Nanos> corrected;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (last_ends[rank].is_never()) continue;
      as_recorded = std::max(as_recorded.value_or(last_ends[rank]), last_ends[rank]);
      const Nanos end = last_ends[rank] - result_.clock_error[rank];
      corrected = std::max(corrected.value_or(end), end);
    }
    if (!corrected) return;
    const Nanos common = std::max(step.start + step.length - *as_recorded, Nanos());
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      if (!last_ends[rank].is_never())
        rests_[rank] = common + (*corrected - (last_ends[rank] - result_.clock_error[rank]));
  }

  /// Determines the compute times, in which overlapping computations count once, and the delays that no dependency
  /// explains.
  void find_delays() {
    const Nanos first_origin = find_origin();
    // By rank: recorded end of the rank's last step; never() if no times are recorded for the rank.
    std::vector<Nanos> last_ends(ranks_, Nanos::never());
    Nanos overlapped;
    Nanos delayed;
    Nanos replayed;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const RankGraph& of_rank = graph_.ranks[result_.graph_rank[rank]];
      std::vector<OfNode>& own = nodes_[rank];
      std::vector<std::uint32_t> order;  // nodes with a recorded start, in order of start
      for (std::uint32_t i = 0; i < own.size(); ++i) {
        if (own[i].joint == kNone) continue;
        if (of_rank.nodes[i].kind == Kind::compute) own[i].compute = of_rank.nodes[i].length;
        if (!of_rank.nodes[i].start.is_never()) order.push_back(i);
      }
      std::ranges::stable_sort(
          order, [&](std::uint32_t a, std::uint32_t b) { return of_rank.nodes[a].start < of_rank.nodes[b].start; });
      // Beginning of the first step by the rank's own clock, with which all times of the rank are recorded.
      const Nanos origin = first_origin.is_never() ? first_origin : first_origin + result_.clock_error[rank];
      std::vector<Nanos> step_ends(graph_.steps.size(), origin);
      for (const std::uint32_t i : order)
        step_ends[of_rank.nodes[i].step] = std::max(step_ends[of_rank.nodes[i].step], end_of(of_rank.nodes[i]));
      Nanos computed = origin;
      std::map<std::uint32_t, Nanos> last;  // maps a group to the end of its latest collective
      for (const std::uint32_t i : order) {
        const GraphNode& given = of_rank.nodes[i];
        Nanos ready = origin;
        for (std::uint32_t k = 0; k < given.waits; ++k) {
          const std::uint32_t wait = of_rank.waits[given.first_wait + k];
          if (own[wait].joint != kNone && !end_of(of_rank.nodes[wait]).is_never())
            ready = std::max(ready, end_of(of_rank.nodes[wait]));
        }
        if (given.waits == 0 && given.step > result_.first_step) ready = std::max(ready, step_ends[given.step - 1]);
        if (given.kind == Kind::compute) {
          ready = std::max(ready, computed);
          const Nanos from = std::max(given.start, computed);
          own[i].compute = std::max(end_of(given) - from, Nanos());
          sum_up(overlapped, given.length - own[i].compute);
          computed = std::max(computed, end_of(given));
        } else if (given.kind == Kind::collective) {
          Nanos& before = last.try_emplace(given.group, origin).first->second;
          ready = std::max(ready, before);
          before = std::max(before, end_of(given));
        }
        if (options_.delays && given.kind != Kind::receive && given.start > ready) own[i].delay = given.start - ready;
        sum_up(delayed, own[i].delay);
      }
      if (!order.empty()) last_ends[rank] = step_ends[result_.last_step];
      for (OfNode& of_node : own) {
        of_node.delay = scaled(of_node.delay, options_.compute_scale);
        of_node.compute = scaled(of_node.compute, options_.compute_scale);
        sum_up(replayed, of_node.delay);
        sum_up(replayed, of_node.compute);
      }
    }
    find_rests(last_ends);
    for (Nanos& rest : rests_) {
      sum_up(delayed, rest);
      rest = scaled(rest, options_.compute_scale);
      sum_up(replayed, rest);
    }
    if (overlapped.count > 0)
      warn(fmt::format("computations of a rank run one at a time; {} in which they overlapped count once",
                       to_text(Nanos(overlapped.count / ranks_))));
    if (delayed.count > 0)
      warn(fmt::format("each rank waits {} in total for reasons that no dependency explains, as recorded",
                       to_text(Nanos(delayed.count / ranks_))));
  }

  /// Adds a time to a sum over all ranks. Throws InputError if the sum would exceed kMaxInAll, so that no later
  /// computation with these times can overflow.
  void sum_up(Nanos& sum, Nanos time) const {
    if (time.count > kMaxInAll - sum.count)
      refuse("its times are more than 36 years in all; give a trace with times in its format's unit, or a lower scale");
    sum += time;
  }
  void sum_up_bytes() const {
    constexpr auto max = static_cast<Bytes>(kMaxInAll);
    Bytes sum = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      for (std::uint32_t i = 0; i < nodes_[rank].size(); ++i) {
        if (nodes_[rank][i].joint == kNone || node(rank, i).kind == Kind::compute) continue;
        const Bytes bytes = bytes_of(node(rank, i));
        if (bytes > max - sum)
          refuse("its messages and collectives have more than 2^60 bytes in all; replay fewer steps, or scale bytes");
        sum += bytes;
      }
  }

  void connect(std::uint32_t before, std::uint32_t after) {
    if (before == after) return;
    edges_.emplace_back(before, after);
    ++joints_[after].waits;
  }

  void connect_nodes() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const RankGraph& of_rank = graph_.ranks[result_.graph_rank[rank]];
      std::vector<OfNode>& own = nodes_[rank];
      std::vector<bool> awaited(own.size());
      for (std::uint32_t i = 0; i < own.size(); ++i) {
        if (own[i].joint == kNone) continue;
        for (std::uint32_t k = 0; k < of_rank.nodes[i].waits; ++k) {
          const std::uint32_t wait = of_rank.waits[of_rank.nodes[i].first_wait + k];
          if (wait >= i) refuse(fmt::format("{} waits for a later one; give nodes in their order", called(rank, i)));
          awaited[wait] = true;
        }
      }
      // Nodes without dependencies wait for the end of the previous step.
      std::vector<std::uint32_t> ends;
      std::vector<std::uint32_t> ends_before;
      std::uint32_t begin = kNone;  // joint of the beginning of the current step
      std::uint32_t step = result_.first_step;
      begin_of_.emplace_back();
      for (std::uint32_t i = 0; i < own.size(); ++i) {
        if (own[i].joint == kNone) continue;
        const GraphNode& given = of_rank.nodes[i];
        if (given.step > step) {
          if (!ends.empty()) {
            ends_before = std::exchange(ends, {});
            begin = kNone;
          }
          step = given.step;
        }
        if (given.waits == 0 && given.step > result_.first_step && given.kind != Kind::receive) {
          if (begin == kNone && !ends_before.empty()) begin = add_begin(rank, ends_before);
          if (begin != kNone) {
            begin_of_[rank][i] = joints_[begin].begin;
            connect(begin, own[i].joint);
          }
        }
        for (std::uint32_t k = 0; k < given.waits; ++k) {
          const std::uint32_t wait = of_rank.waits[given.first_wait + k];
          if (own[wait].joint != kNone) connect(own[wait].joint, own[i].joint);
        }
        if (given.kind == Kind::receive && !own[i].dropped) {
          const auto [sender, sent] = senders_[own[i].message];
          connect(nodes_[sender][sent].joint, own[i].joint);
        }
        if (!awaited[i]) ends.push_back(i);
      }
      ends_.push_back(std::move(ends));
    }
    for (const auto& [group, sequence] : sequences_)
      for (std::size_t i = 1; i < sequence.joints.size(); ++i) connect(sequence.joints[i - 1], sequence.joints[i]);
    std::ranges::sort(edges_);
  }

  /// Returns a rough estimate of the duration of a send or collective.
  [[nodiscard]] Nanos guess(const GraphNode& node) const {
    return options_.rate.time_for(std::min(bytes_of(node), std::numeric_limits<Bytes>::max() / 16));
  }
  [[nodiscard]] Bytes bytes_of(const GraphNode& node) const {
    if (node.bytes == 0 || options_.bytes_scale == 1) return node.bytes;
    constexpr double max = 0x1p53;
    const double bytes = std::clamp(static_cast<double>(node.bytes) * options_.bytes_scale, 1.0, max);
    return static_cast<Bytes>(std::llround(bytes));
  }

  void write_in_order() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      writers_.emplace_back(options_.algorithm, options_.chunk, rank, ranks_);
      result_.node_of.emplace_back();
    }
    groups_.resize(ranks_);
    using Entry = std::pair<Nanos, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> possible;
    for (std::uint32_t joint = 0; joint < joints_.size(); ++joint)
      if (joints_[joint].waits == 0) possible.emplace(joints_[joint].ready, joint);
    std::vector<Nanos> computed(ranks_);
    std::size_t written = 0;
    for (; !possible.empty(); ++written) {
      const std::uint32_t number = possible.top().second;
      possible.pop();
      const Joint& joint = joints_[number];
      Nanos end = joint.ready;
      if (joint.begin == kNone) {
        const GraphNode& given = node(joint.rank, joint.node);
        const OfNode& own = nodes_[joint.rank][joint.node];
        end += own.delay;
        if (given.kind == Kind::compute)
          end = computed[joint.rank] = std::max(end, computed[joint.rank]) + own.compute;
        else if (given.kind != Kind::receive)
          end += guess(given);
      }
      write(number);
      for (auto edge = std::lower_bound(edges_.begin(), edges_.end(), std::pair(number, 0U));
           edge != edges_.end() && edge->first == number; ++edge) {
        Joint& after = joints_[edge->second];
        after.ready = std::max(after.ready, end);
        if (--after.waits == 0) possible.emplace(after.ready, edge->second);
      }
    }
    if (written == joints_.size()) return;
    for (const Joint& joint : joints_)
      if (joint.waits > 0 && joint.begin == kNone)
        refuse(
            fmt::format("{} and nodes of other ranks wait for each other in a circle; record all ranks in the same "
                        "run",
                        called(joint.rank, joint.node)));
  }

  // ---- Programs ----

  void write(std::uint32_t number) {
    const Joint& joint = joints_[number];
    if (joint.collective != kNone) return write_collective(joint.collective, number);
    if (joint.begin != kNone) return write_begin(joint);
    const GraphNode& given = node(joint.rank, joint.node);
    OfNode& own = nodes_[joint.rank][joint.node];
    ProgramWriter& writer = writers_[joint.rank];
    const Waits waits = waits_of(joint.rank, joint.node);
    if (own.dropped) {
      own.done = waits;
    } else if (given.kind == Kind::compute) {
      own.done = writer.compute(own.compute, waits);
    } else if (given.kind == Kind::send) {
      write_message(joint.rank, joint.node, number, waits);
    } else {
      own.done = both(messages_[own.message].arrived, waits);
    }
    note(joint.rank, joint.node);
  }

  void write_begin(const Joint& joint) {
    Begin& begin = begins_[joint.begin];
    Waits ends;
    for (const std::uint32_t end : begin.ends) {
      const Waits& done = nodes_[joint.rank][end].done;
      ends.insert(ends.end(), done.begin(), done.end());
    }
    begin.done = writers_[joint.rank].joined(std::move(ends));
    result_.node_of[joint.rank].resize(writers_[joint.rank].operations(), kNone);
  }

  void write_message(std::uint32_t rank, std::uint32_t index, std::uint32_t number, const Waits& waits) {
    const GraphNode& given = node(rank, index);
    OfNode& own = nodes_[rank][index];
    Message& message = messages_[own.message];
    const std::uint32_t peer = program_of_[given.peer];
    const Slice slice{0, bytes_of(given)};
    const std::uint64_t tag = tag_of(number, 0);
    if (rank == peer) refuse(fmt::format("{} sends to its own rank; leave it out", called(rank, index)));
    if (options_.islands > 1 && island_of(rank) == island_of(peer)) {
      own.done = writers_[rank].signal(peer, tag, waits);
      message.arrived = writers_[peer].await_signal(rank, tag, {});
      note(peer, message.receiver_node);
      if (!options_.island_rate.is_zero())
        message.arrived = writers_[peer].delay(options_.island_rate.time_for(slice.bytes), message.arrived);
    } else {
      own.done = writers_[rank].send(peer, slice, tag, waits);
      message.arrived = writers_[peer].receive(rank, slice, tag, false, {});
    }
    note(peer, message.receiver_node);
  }

  /// Writes the delay before the node. Returns the operations that the node's own operations must wait for.
  Waits waits_of(std::uint32_t rank, std::uint32_t index) {
    const RankGraph& of_rank = graph_.ranks[result_.graph_rank[rank]];
    const GraphNode& given = of_rank.nodes[index];
    Waits waits;
    const auto add = [&](const Waits& done) { waits.insert(waits.end(), done.begin(), done.end()); };
    for (std::uint32_t k = 0; k < given.waits; ++k) add(nodes_[rank][of_rank.waits[given.first_wait + k]].done);
    if (const auto begin = begin_of_[rank].find(index); begin != begin_of_[rank].end())
      add(begins_[begin->second].done);
    waits = writers_[rank].delay(nodes_[rank][index].delay, writers_[rank].joined(std::move(waits)));
    waiting_until_[rank] = writers_[rank].operations();
    return waits;
  }

  /// Assigns to node `index` the operations that were written since the last call of note() for this rank.
  void note(std::uint32_t rank, std::uint32_t index) {
    std::vector<std::uint32_t>& of = result_.node_of[rank];
    const auto delayed_until = waiting_until_.find(rank);
    // Delays and joins before the node do not belong to the node.
    if (delayed_until != waiting_until_.end())
      of.resize(std::max<std::size_t>(of.size(), delayed_until->second), kNone);
    of.resize(writers_[rank].operations(), index);
    total_ = total_ + of.size() - counted_[rank];
    counted_[rank] = of.size();
    if (total_ > kMaxOperationsInAll)
      refuse(fmt::format(
          "its ranks have more than {} operations; replay fewer steps or ranks, or whole rings instead of their steps",
          kMaxOperationsInAll));
  }

  void write_collective(std::uint32_t number, std::uint32_t joint) {
    const Collective& collective = collectives_[number];
    for (const auto& [rank, index] : collective.members) {
      Waits waits = waits_of(rank, index);
      OfNode& own = nodes_[rank][index];
      if (collective.members.size() == 1) {
        own.done = std::move(waits);
      } else {
        Group& group = group_of(rank, collective.group);
        group.sequence = joint;
        own.done = collect(writers_[rank], group, node(rank, index), waits);
      }
      note(rank, index);
    }
  }

  Group& group_of(std::uint32_t rank, std::uint32_t number) {
    const auto [at, is_new] = groups_[rank].try_emplace(number);
    Group& group = at->second;
    if (!is_new) return group;
    group.members = members_of(number).all;
    group.me = place_in(*group.members, rank);
    if (!options_.whole && group.size() > kMaxRanks)
      refuse(
          fmt::format("a group has {} ranks, and collectives in steps have at most {}; replay whole rings, or fewer "
                      "ranks",
                      group.size(), kMaxRanks));
    return group;
  }

  const GroupMembers& members_of(std::uint32_t number) {
    const auto [at, is_new] = members_.try_emplace(number);
    GroupMembers& members = at->second;
    if (!is_new) return members;
    std::vector<std::uint32_t> all;
    for (const std::uint32_t member : graph_.groups[number])
      if (program_of_[member] != kNone) all.push_back(program_of_[member]);
    std::map<std::uint32_t, std::vector<std::uint32_t>> islands;
    if (options_.islands > 1)
      for (const std::uint32_t rank : all) islands[island_of(rank)].push_back(rank);
    members.all = shared(std::move(all));
    const bool even = std::ranges::all_of(
        islands, [&](const auto& island) { return island.second.size() == islands.begin()->second.size(); });
    if (islands.empty() || !even) return members;
    for (std::size_t place = 0; place < islands.begin()->second.size(); ++place) {
      std::vector<std::uint32_t> peers;
      for (const auto& [island, ranks] : islands) peers.push_back(ranks[place]);
      members.peers.push_back(shared(std::move(peers)));
    }
    for (auto& [island, ranks] : islands) {
      members.islands.push_back(island);
      members.locals.push_back(shared(std::move(ranks)));
    }
    return members;
  }

  /// Returns the subgroups of `group` for the rank group.me. Returns nothing if the group's islands contain different
  /// numbers of its ranks.
  [[nodiscard]] std::optional<Split> split(const Group& group, std::uint32_t number) {
    const GroupMembers& members = members_of(number);
    if (members.islands.empty()) return std::nullopt;
    const std::uint32_t rank = group.rank(group.me);
    Split result;
    result.islands = static_cast<std::uint32_t>(members.islands.size());
    result.peers.me = place_in(members.islands, island_of(rank));
    result.locals.members = members.locals[result.peers.me];
    result.locals.me = place_in(*result.locals.members, rank);
    result.peers.members = members.peers[result.locals.me];
    result.locals.sequence = result.peers.sequence = group.sequence;
    return result;
  }

  Waits collect(ProgramWriter& writer, Group& group, const GraphNode& given, const Waits& waits) {
    const Bytes bytes = bytes_of(given);
    if (bytes == 0) {
      const Waits at = writer.barrier(group, ProgramWriter::begin(group, waits));
      return writer.end(group, at);
    }
    if (options_.islands > 1) {
      if (auto parts = split(group, given.group)) {
        if (parts->locals.size() > 1) {
          const Waits at = collect_on_islands(writer, *parts, group, given, bytes, ProgramWriter::begin(group, waits));
          return writer.end(group, at);
        }
      } else {
        uneven_.insert(group.sequence);
      }
    }
    return writer.end(group, flat(writer, group, given.collective, bytes, root_in(group, given), waits));
  }

  [[nodiscard]] std::uint32_t root_in(const Group& group, const GraphNode& given) const {
    if (given.collective != workload::Collective::broadcast || given.peer >= program_of_.size()) return 0;
    const std::uint32_t root = program_of_[given.peer];
    return std::ranges::binary_search(*group.members, root) ? place_in(*group.members, root) : 0;
  }

  /// Writes a collective in which all ranks of `group` communicate over the network. Ignores islands.
  Waits flat(ProgramWriter& writer, Group& group, workload::Collective collective, Bytes bytes, std::uint32_t root,
             const Waits& waits) {
    using workload::Collective;
    const bool halving = options_.algorithm == Algorithm::halving_doubling;
    if (halving && !std::has_single_bit(group.size()) && collective != Collective::broadcast &&
        collective != Collective::all_to_all) {
      ++not_halved_;
      writer.use(Algorithm::ring);
    }
    const Waits done = by_algorithm(writer, group, collective, bytes, root, waits);
    writer.use(options_.algorithm);
    return done;
  }

  Waits by_algorithm(ProgramWriter& writer, Group& group, workload::Collective collective, Bytes bytes,
                     std::uint32_t root, const Waits& waits) {
    using workload::Collective;
    const bool whole = options_.whole && writer.algorithm() != Algorithm::halving_doubling;
    switch (collective) {
      case Collective::all_reduce:
        if (whole && writer.algorithm() == Algorithm::ring) return writer.whole_ring(group, true, true, bytes, waits);
        return writer.all_reduce(group, bytes, waits);
      case Collective::reduce_scatter:
        if (whole) return writer.whole_ring(group, true, false, bytes, waits);
        return writer.reduce_scatter(group, bytes, waits);
      case Collective::all_gather:
        if (whole) return writer.whole_ring(group, false, true, bytes, waits);
        return writer.all_gather(group, bytes, waits);
      case Collective::all_to_all:
        return writer.all_to_all(group, bytes, waits);
      case Collective::broadcast:
        return writer.broadcast(group, bytes, waits, root);
      case Collective::all_reduce_all_to_all: {
        const Waits reduced = by_algorithm(writer, group, Collective::all_reduce, bytes, 0, waits);
        // gives the all-to-all tags that differ from the tags of the all-reduce
        group.sequence += std::uint64_t{1} << 31U;
        return writer.all_to_all(group, bytes, reduced);
      }
      case Collective::none:
        break;
    }
    refuse("a collective has no kind; give it one");
  }

  Waits collect_on_islands(ProgramWriter& writer, Split& parts, const Group& group, const GraphNode& given, Bytes bytes,
                           const Waits& waits) {
    using workload::Collective;
    const std::uint32_t locals = parts.locals.size();
    const Collective kind = given.collective;
    const auto within = [&](Bytes all, Waits at, std::uint32_t barrier) {
      at = writer.barrier(parts.locals, at, barrier);
      if (options_.island_rate.is_zero()) return at;
      return writer.delay(options_.island_rate.time_for(internal::blocks({0, all}, locals, 1, locals).bytes), at);
    };
    const bool shares =
        kind == Collective::all_reduce || kind == Collective::broadcast || kind == Collective::all_reduce_all_to_all;
    const bool before = kind != Collective::all_gather;
    const bool after = shares || kind == Collective::all_gather;
    Waits at = before ? within(bytes, waits, 0) : waits;
    if (parts.islands > 1) {
      const bool split_bytes = kind != Collective::all_to_all;
      const Bytes share = split_bytes ? internal::block({0, bytes}, locals, parts.locals.me).bytes : bytes;
      std::uint32_t root = 0;
      if (kind == Collective::broadcast) root = island_index(parts, group.rank(root_in(group, given)));
      if (share > 0) at = flat(writer, parts.peers, kind, share, root, at);
    }
    return after ? within(bytes, at, 1) : at;
  }

  [[nodiscard]] std::uint32_t island_index(const Split& parts, std::uint32_t rank) const {
    for (std::uint32_t i = 0; i < parts.peers.size(); ++i)
      if (island_of(parts.peers.rank(i)) == island_of(rank)) return i;
    return 0;
  }

  void finish() {
    if (!uneven_.empty())
      warn(fmt::format("{} of ranks that are spread unevenly over islands go over the network alone",
                       plural(uneven_.size(), "collective")));
    if (not_halved_ > 0)
      warn(
          "halving-doubling is for powers of two; collectives of other numbers of ranks are rings, in one message of "
          "each rank");
    if (options_.islands > 1) warn("ranks of an island synchronise by messages of one byte over the network");
    bool sends = false;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rests_[rank].count > 0) {
        Waits ends;
        for (const std::uint32_t end : ends_[rank]) {
          const Waits& done = nodes_[rank][end].done;
          ends.insert(ends.end(), done.begin(), done.end());
        }
        writers_[rank].delay(rests_[rank], writers_[rank].joined(std::move(ends)));
        result_.node_of[rank].resize(writers_[rank].operations(), kNone);
      }
      result_.ranks.push_back(writers_[rank].take());
      sends = sends || result_.ranks.back().load().sent > 0;
    }
    if (sends) return;
    const auto why = std::ranges::find_if(graph_.warnings, [](const std::string& warning) {
      return warning.ends_with("left out") && warning.find("communication") != std::string::npos;
    });
    refuse(fmt::format("nothing is sent in what is replayed{}; give steps and ranks that communicate",
                       why == graph_.warnings.end() ? "" : fmt::format(" ({})", *why)));
  }

  const ExecutionGraph& graph_;
  const GraphOptions& options_;
  GraphPrograms result_;
  std::uint32_t ranks_ = 0;  ///< number of replayed ranks
  /// By rank of the graph: number of its program; kNone if the rank is not replayed.
  std::vector<std::uint32_t> program_of_;
  std::vector<std::vector<OfNode>> nodes_;
  std::vector<Begin> begins_;
  /// By program: maps each node that waits for the beginning of its step to the index of this beginning in begins_.
  std::vector<std::map<std::uint32_t, std::uint32_t>> begin_of_;
  /// By program: time from the end of the last node to the end of the last step, multiplied by compute_scale.
  std::vector<Nanos> rests_;
  std::vector<std::vector<std::uint32_t>> ends_;  ///< by program: nodes of the last step that no other node waits for
  std::vector<Joint> joints_;
  std::vector<Collective> collectives_;
  std::map<std::uint32_t, Sequence> sequences_;  ///< collectives of each group, by number of the group
  std::vector<Message> messages_;
  /// Program and send node of each message, in the order of messages_.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> senders_;
  /// Sorted pairs of joints; the second joint of a pair waits for the first.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<ProgramWriter> writers_;
  std::vector<std::map<std::uint32_t, Group>> groups_;  ///< groups of each program, by number of the group
  std::map<std::uint32_t, GroupMembers> members_;       ///< members of each group, by number of the group
  /// By program: number of operations written up to and including the delay before the current node.
  std::map<std::uint32_t, std::size_t> waiting_until_;
  std::map<std::uint32_t, std::size_t> counted_;
  std::uint64_t total_ = 0;
  std::uint64_t narrowed_ = 0;
  std::uint64_t alone_ = 0;
  /// Sequence numbers of the collectives whose islands contain different numbers of ranks.
  std::set<std::uint64_t> uneven_;
  std::uint64_t not_halved_ = 0;
};

}  // namespace

std::uint32_t typical_step(const ExecutionGraph& graph) {
  std::vector<std::uint32_t> order(graph.steps.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return graph.steps[a].length < graph.steps[b].length; });
  return order.empty() ? 0 : order[(order.size() - 1) / 2];
}

GraphPrograms graph_programs(const ExecutionGraph& graph, const GraphOptions& options) {
  return Maker(graph, options).make();
}

Job replayed_job(std::string name, const GraphPrograms& programs) {
  Job job;
  job.name = std::move(name);
  auto shared = std::make_shared<Programs>();
  shared->ranks = programs.ranks;
  Nanos compute;
  Bytes bytes = 0;
  for (const RankProgram& program : programs.ranks) {
    const RankProgram::Load load = program.load();
    compute = std::max(compute, load.compute);
    bytes = std::max({bytes, load.sent, load.received});
  }
  if (compute.count > 0) {
    Phase phase;
    phase.compute = compute;
    job.phases.push_back(phase);
  }
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  phase.bytes = bytes;
  job.phases.push_back(phase);
  job.programs = std::move(shared);
  return job;
}

}  // namespace mltcp::workload
