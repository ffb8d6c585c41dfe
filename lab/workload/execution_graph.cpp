// Checks an ExecutionGraph (see execution_graph.h).
//
// Runs the graph without simulating time, to check that all nodes complete (Kahn, CACM 5(11), 1962). If some nodes
// never become ready, they wait for each other in a circle of dependencies, collectives or messages.
#include "mltcp/lab/workload/execution_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

using Kind = GraphNode::Kind;

class Checker {
 public:
  explicit Checker(const ExecutionGraph& graph) : graph_(graph) {}

  void run() {
    check_lists();
    std::size_t nodes = 0;
    for (const RankGraph& rank : graph_.ranks) {
      first_.push_back(nodes);
      nodes += rank.nodes.size();
    }
    if (nodes > kMaxGraphNodes)
      fail(fmt::format("the ranks have {} nodes, more than {}", nodes, kMaxGraphNodes),
           "take fewer steps, or fewer ranks");
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) check_rank(rank);
    check_collectives();
    check_messages();
    check_end(nodes);
  }

 private:
  /// Number of a node's rank, and index of the node in this rank.
  using Place = std::pair<std::uint32_t, std::uint32_t>;

  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const {
    std::string source = graph_.sources.empty() ? "a graph" : graph_.sources.front();
    if (graph_.sources.size() > 1) source += fmt::format(" and {} more", graph_.sources.size() - 1);
    throw InputError(fmt::format("{}: {}; {}", source, cause, cure));
  }
  static constexpr std::string_view kReadAgain = "the trace is damaged, or its reader is wrong";

  [[nodiscard]] std::string shown(std::uint32_t rank) const {
    return fmt::format("rank {}", rank < graph_.recorded_ranks.size() ? graph_.recorded_ranks[rank] : rank);
  }
  [[nodiscard]] std::string shown(std::uint32_t rank, std::uint32_t index) const {
    const GraphNode& node = graph_.ranks[rank].nodes[index];
    return fmt::format("{} of {}", in_quotes(graph_.names[node.name]), shown(rank));
  }
  [[nodiscard]] const GraphNode& at(const Place& place) const { return graph_.ranks[place.first].nodes[place.second]; }

  void check_lists() const {
    if (graph_.ranks.empty()) fail("it has no ranks", "give a trace with at least one");
    if (graph_.steps.empty()) fail("it has no steps", "a graph without any is one step");
    if (!graph_.recorded_ranks.empty() && graph_.recorded_ranks.size() != graph_.ranks.size())
      fail("the recorded numbers are not those of its ranks", kReadAgain);
    for (const auto& group : graph_.groups) {
      if (group.empty() || group.back() >= graph_.ranks.size() ||
          std::ranges::adjacent_find(group, std::greater_equal<>()) != group.end())
        fail("a group is not a list of its ranks in ascending order", kReadAgain);
    }
    auto sorted = graph_.groups;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("a group is given twice", kReadAgain);
  }

  void check_rank(std::uint32_t number) const {
    const RankGraph& rank = graph_.ranks[number];
    std::uint32_t step = 0;
    for (std::uint32_t index = 0; index < rank.nodes.size(); ++index) {
      const GraphNode& node = rank.nodes[index];
      const auto wrong = [&](std::string_view cause) {
        fail(fmt::format("node {} of {}: {}", index, shown(number), cause), kReadAgain);
      };
      if (node.name >= graph_.names.size() || node.lane >= graph_.lanes.size() || node.step >= graph_.steps.size())
        wrong("its name, lane or step does not exist");
      if (node.step < step) wrong("it belongs to an earlier step than the node before it");
      step = node.step;
      if (node.length.count < 0 || node.length.is_never()) wrong("its length is negative or infinite");
      if (node.first_wait > rank.waits.size() || node.waits > rank.waits.size() - node.first_wait)
        wrong("it waits for a node that does not exist");
      for (std::uint32_t wait = 0; wait < node.waits; ++wait)
        if (rank.waits[node.first_wait + wait] >= index) wrong("it waits for itself or a later one");
      if ((node.kind == Kind::collective) != (node.collective != Collective::none))
        wrong("a collective without a kind, or a kind without a collective");
      if (node.kind == Kind::collective) {
        if (node.group >= graph_.groups.size()) wrong("its group does not exist");
        const auto& group = graph_.groups[node.group];
        if (!std::ranges::binary_search(group, number)) wrong("its rank is not in its group");
        if (node.collective == Collective::broadcast && !std::ranges::binary_search(group, node.peer))
          wrong("the root of a broadcast is not in its group");
      } else if (node.kind != Kind::compute) {
        if (node.peer >= graph_.ranks.size() || node.peer == number) wrong("a message to a rank that does not exist");
        if (node.bytes == 0) wrong("a message without bytes");
      }
    }
  }

  // Throws InputError unless the ranks of each group run the same collectives in the same order.
  void check_collectives() {
    std::vector<std::map<std::uint32_t, std::vector<std::uint32_t>>> of_group(graph_.groups.size());
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      for (std::uint32_t index = 0; index < graph_.ranks[rank].nodes.size(); ++index) {
        const GraphNode& node = graph_.ranks[rank].nodes[index];
        if (node.kind == Kind::collective) of_group[node.group][rank].push_back(index);
      }
    for (std::size_t group = 0; group < of_group.size(); ++group) {
      const auto& lists = of_group[group];
      if (lists.empty()) continue;
      const auto& [leader, list] = *lists.begin();
      for (const std::uint32_t rank : graph_.groups[group]) {
        const auto other = lists.find(rank);
        const std::size_t count = other == lists.end() ? 0 : other->second.size();
        if (count != list.size())
          fail(fmt::format("{} runs {} with its group, and {} runs {}", shown(leader),
                           plural(list.size(), "collective"), shown(rank), count),
               "give traces of the same steps of all ranks");
        for (std::size_t i = 0; i < count; ++i) check_alike({leader, list[i]}, {rank, other->second[i]});
      }
      for (std::size_t i = 0; i < list.size(); ++i) {
        std::vector<Place> all;
        for (const auto& [rank, indices] : lists) all.emplace_back(rank, indices[i]);
        together_.push_back(std::move(all));
      }
    }
  }

  void check_alike(const Place& a, const Place& b) const {
    const GraphNode& one = at(a);
    const GraphNode& other = at(b);
    if (one.collective != other.collective || one.bytes != other.bytes || one.step != other.step ||
        (one.collective == Collective::broadcast && one.peer != other.peer))
      fail(fmt::format("{}, {} of {} bytes, does not fit {}, {} of {} bytes", shown(a.first, a.second),
                       name(one.collective), one.bytes, shown(b.first, b.second), name(other.collective), other.bytes),
           "ranks of a group run the same collectives in the same order");
  }

  void check_messages() {
    using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // sender, receiver and tag
    std::map<Channel, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> channels;
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      for (std::uint32_t index = 0; index < graph_.ranks[rank].nodes.size(); ++index) {
        const GraphNode& node = graph_.ranks[rank].nodes[index];
        if (node.kind == Kind::send) channels[{rank, node.peer, node.tag}].first.push_back(index);
        if (node.kind == Kind::receive) channels[{node.peer, rank, node.tag}].second.push_back(index);
      }
    for (const auto& [channel, ends] : channels) {
      const auto [from, to, tag] = channel;
      const auto& [sends, receives] = ends;
      if (sends.size() != receives.size())
        fail(fmt::format("{} sends {} of tag {} to {}, which receives {}", shown(from), plural(sends.size(), "message"),
                         tag, shown(to), receives.size()),
             "give traces of the same steps of all ranks");
      for (std::size_t i = 0; i < sends.size(); ++i) {
        const Place send{from, sends[i]};
        const Place receive{to, receives[i]};
        if (at(send).bytes != at(receive).bytes)
          fail(fmt::format("{} is of {} bytes, and {}, which gets it, of {}", shown(from, sends[i]), at(send).bytes,
                           shown(to, receives[i]), at(receive).bytes),
               kReadAgain);
        messages_.emplace_back(send, receive);
      }
    }
  }

  // Throws InputError if some nodes wait for each other in a circle. A unit is a node, or all nodes of a collective.
  void check_end(std::size_t nodes) {
    std::vector<std::uint32_t> unit(nodes, 0);
    std::vector<Place> place;  // by unit: one of its nodes
    for (const auto& all : together_) {
      for (const Place& one : all) unit[number(one)] = static_cast<std::uint32_t>(place.size());
      place.push_back(all.front());
    }
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      for (std::uint32_t index = 0; index < graph_.ranks[rank].nodes.size(); ++index)
        if (graph_.ranks[rank].nodes[index].kind != Kind::collective) {
          unit[number({rank, index})] = static_cast<std::uint32_t>(place.size());
          place.emplace_back(rank, index);
        }
    const std::size_t units = place.size();
    std::vector<std::uint32_t> blocked(units, 0);
    std::vector<std::size_t> first(units + 1, 0);
    const auto each_edge = [&](const auto& call) {
      for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
        const RankGraph& of = graph_.ranks[rank];
        for (std::uint32_t index = 0; index < of.nodes.size(); ++index)
          for (std::uint32_t wait = 0; wait < of.nodes[index].waits; ++wait)
            call(unit[number({rank, of.waits[of.nodes[index].first_wait + wait]})], unit[number({rank, index})]);
      }
      for (const auto& [send, receive] : messages_) call(unit[number(send)], unit[number(receive)]);
    };
    each_edge([&](std::uint32_t before, std::uint32_t after) {
      ++first[before + 1];
      ++blocked[after];
    });
    for (std::size_t i = 0; i < units; ++i) first[i + 1] += first[i];
    std::vector<std::uint32_t> followers(first[units]);
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    each_edge([&](std::uint32_t before, std::uint32_t after) { followers[next[before]++] = after; });
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < units; ++i)
      if (blocked[i] == 0) ready.push_back(i);
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::uint32_t one = ready.back();
      ready.pop_back();
      ++done;
      for (std::size_t i = first[one]; i < first[one + 1]; ++i)
        if (--blocked[followers[i]] == 0) ready.push_back(followers[i]);
    }
    if (done < units) fail_by_circle(blocked, first, followers, place);
  }

  /// Every remaining unit waits for another remaining unit. So following these waits from any unit leads to a circle.
  [[noreturn]] void fail_by_circle(const std::vector<std::uint32_t>& blocked, const std::vector<std::size_t>& first,
                                   const std::vector<std::uint32_t>& followers, const std::vector<Place>& place) const {
    constexpr std::uint32_t none = ~std::uint32_t{0};
    std::vector<std::uint32_t> before(blocked.size(), none);
    std::uint32_t at = none;
    for (std::uint32_t i = 0; i < blocked.size(); ++i) {
      if (blocked[i] == 0) continue;
      at = i;
      for (std::size_t j = first[i]; j < first[i + 1]; ++j) before[followers[j]] = i;
    }
    for (std::size_t i = 0; i < blocked.size(); ++i) at = before[at];
    fail(fmt::format("{} and {} wait for each other", shown(place[at].first, place[at].second),
                     shown(place[before[at]].first, place[before[at]].second)),
         "ranks must run their collectives and messages in an order that can end");
  }

  [[nodiscard]] std::size_t number(const Place& at) const { return first_[at.first] + at.second; }

  const ExecutionGraph& graph_;
  /// By rank: number of the rank's first node, if the nodes of all ranks are numbered consecutively.
  std::vector<std::size_t> first_;
  std::vector<std::vector<Place>> together_;       ///< the nodes of each collective
  std::vector<std::pair<Place, Place>> messages_;  ///< send node and receive node of each message
};

}  // namespace

void check(const ExecutionGraph& graph) { Checker(graph).run(); }

}  // namespace mltcp::workload
