// See graph_builder.h.
#include "mltcp/lab/workload/traces/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kMaxWarnings = 20;

}  // namespace

std::uint32_t GraphBuilder::Texts::at(std::string_view text) {
  const auto found = found_.find(text);
  if (found != found_.end()) return found->second;
  const auto added = found_.emplace(std::string(text), static_cast<std::uint32_t>(order_.size())).first;
  order_.push_back(&added->first);
  return added->second;
}

std::vector<std::string> GraphBuilder::Texts::take() {
  std::vector<std::string> texts;
  texts.reserve(order_.size());
  for (const std::string* text : order_) texts.push_back(*text);
  found_.clear();
  order_.clear();
  return texts;
}

GraphBuilder::GraphBuilder(std::string_view format, const std::string& source, std::shared_ptr<TraceBudget> budget)
    : budget_(std::move(budget)) {
  part_.graph.format = format;
  part_.graph.sources.push_back(source);
}

std::uint32_t GraphBuilder::number(Texts& texts, std::string_view text) {
  constexpr std::size_t place = 96;  // memory per stored text in bytes, beyond its characters
  if (!texts.has(text)) keep(place + text.size());
  return texts.at(text);
}

void GraphBuilder::fail_by_budget() const {
  fail(fmt::format("this trace and those before it need more than {} MiB", budget_->max() >> 20U),
       "give traces of fewer steps, or of fewer ranks");
}

std::uint32_t GraphBuilder::group(std::vector<std::uint32_t> ranks, PartialGraph::Group what) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  const auto index = static_cast<std::uint32_t>(part_.graph.groups.size());
  const auto [at, added] = groups_.try_emplace({ranks, what.size, what.id}, index);
  if (added) {
    keep(2 * (sizeof(at->first) + ranks.size() * sizeof(ranks.front()) + what.id.size()));
    part_.graph.groups.push_back(std::move(ranks));
    part_.groups.push_back(std::move(what));
  }
  return at->second;
}

std::uint32_t GraphBuilder::rank(std::uint32_t recorded) {
  part_.graph.ranks.emplace_back();
  part_.rank_of.push_back(recorded);
  lengths_.emplace_back();
  return static_cast<std::uint32_t>(part_.rank_of.size() - 1);
}

std::uint32_t GraphBuilder::add(std::uint32_t position, GraphNode node, std::span<const std::uint32_t> waits) {
  keep(sizeof(GraphNode) + waits.size_bytes());
  Nanos& lengths = lengths_[position];
  if (node.length < Nanos(0) || node.length > kLongestTrace - lengths)
    fail(fmt::format("node {} lasts {} ns, {}", part_.graph.ranks[position].nodes.size() + 1, node.length.count,
                     node.length < Nanos(0) ? "less than nothing" : "and the rank's in all more than 115 days"),
         "its times are damaged, or of another unit; record it again");
  lengths += node.length;
  RankGraph& rank = part_.graph.ranks[position];
  node.first_wait = static_cast<std::uint32_t>(rank.waits.size());
  node.waits = static_cast<std::uint32_t>(waits.size());
  if (rank.waits.size() + waits.size() > std::numeric_limits<std::uint32_t>::max())
    fail("its nodes wait for too many others", "record fewer steps");
  rank.waits.insert(rank.waits.end(), waits.begin(), waits.end());
  rank.nodes.push_back(node);
  return static_cast<std::uint32_t>(rank.nodes.size() - 1);
}

std::uint32_t GraphBuilder::step(std::string name, Nanos start, Nanos length) {
  keep(sizeof(ExecutionGraph::Step) + name.size());
  part_.graph.steps.push_back({std::move(name), start, length});
  return static_cast<std::uint32_t>(part_.graph.steps.size() - 1);
}

void GraphBuilder::warn(std::string_view text) {
  if (++warnings_ <= kMaxWarnings)
    part_.graph.warnings.push_back(fmt::format("{}: {}", part_.graph.sources.front(), text));
}

void GraphBuilder::fail(std::string_view cause, std::string_view cure) const {
  throw InputError(fmt::format("{}: {}; {}", part_.graph.sources.front(), cause, cure));
}

void GraphBuilder::sort(std::uint32_t position) {
  const auto circle = sort_or_circle(position);
  if (!circle) return;
  const std::vector<std::string> names = names_.take();
  const auto shown = [&](std::uint32_t index) {
    return fmt::format("node {} of the file, {},", index + 1, in_quotes(names[at(position).nodes[index].name]));
  };
  fail(fmt::format("{} and {} wait for each other", shown(circle->first), shown(circle->second)),
       "dependencies must not go round in a circle; record it again");
}

bool GraphBuilder::try_sort(std::uint32_t position) { return !sort_or_circle(position); }

std::optional<std::pair<std::uint32_t, std::uint32_t>> GraphBuilder::sort_or_circle(std::uint32_t position) {
  RankGraph& rank = part_.graph.ranks[position];
  const auto count = static_cast<std::uint32_t>(rank.nodes.size());
  const auto waits_of = [&](std::uint32_t index) {
    return std::span(rank.waits).subspan(rank.nodes[index].first_wait, rank.nodes[index].waits);
  };
  bool sorted = true;
  for (std::uint32_t i = 0; i < count && sorted; ++i)
    for (const std::uint32_t wait : waits_of(i)) sorted = sorted && wait < i;
  if (sorted) return std::nullopt;
  std::vector<std::uint32_t> blocked(count, 0);
  std::vector<std::uint32_t> first(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    blocked[i] = rank.nodes[i].waits;
    for (const std::uint32_t wait : waits_of(i)) ++first[wait + 1];
  }
  for (std::uint32_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> followers(rank.waits.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i)
    for (const std::uint32_t wait : waits_of(i)) followers[next[wait]++] = i;
  // Among the ready nodes, chooses the one that comes first in the file.
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i)
    if (blocked[i] == 0) ready.push(i);
  std::vector<std::uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::uint32_t one = ready.top();
    ready.pop();
    order.push_back(one);
    for (std::uint32_t i = first[one]; i < first[one + 1]; ++i)
      if (--blocked[followers[i]] == 0) ready.push(followers[i]);
  }
  if (order.size() < count) {
    // Every remaining node waits for another remaining node. Following these waits from any node therefore leads into a
    // cycle.
    const auto left_of = [&](std::uint32_t index) {
      const auto waits = waits_of(index);
      return *std::ranges::find_if(waits, [&](std::uint32_t wait) { return blocked[wait] > 0; });
    };
    auto left = static_cast<std::uint32_t>(std::ranges::find_if(blocked, [](std::uint32_t n) { return n > 0; }) -
                                           blocked.begin());
    std::vector<bool> seen(count, false);  // marks visited nodes, so that the waits of each node are searched once
    for (; !seen[left]; left = left_of(left)) seen[left] = true;
    return std::pair(left, left_of(left));
  }
  std::vector<std::uint32_t> place(count);
  for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;
  std::vector<GraphNode> nodes;
  nodes.reserve(count);
  for (const std::uint32_t index : order) nodes.push_back(rank.nodes[index]);
  for (std::uint32_t& wait : rank.waits) wait = place[wait];
  rank.nodes = std::move(nodes);
  return std::nullopt;
}

PartialGraph GraphBuilder::take() {
  if (warnings_ > kMaxWarnings)
    part_.graph.warnings.push_back(
        fmt::format("{}: {} more of that kind", part_.graph.sources.front(), warnings_ - kMaxWarnings));
  part_.graph.names = names_.take();
  part_.graph.lanes = lanes_.take();
  let_go(held_);
  return std::move(part_);
}

std::vector<std::uint32_t> FlowStarts::at(std::uint32_t position, Nanos start) {
  Timer& timer = timers_[position];
  std::vector<std::uint32_t> waits;
  if (timer.node) waits.push_back(*timer.node);
  if (start <= timer.at) return waits;
  GraphNode node;
  node.name = builder_.name("start");
  node.lane = builder_.lane("flows");
  node.start = Nanos::never();  // the node represents a planned start, which has no recorded time
  node.length = start - timer.at;
  timer = {start, builder_.add(position, node, waits)};
  return {*timer.node};
}

void FlowStarts::finish(Nanos start) {
  for (std::uint32_t position = 0; position < timers_.size(); ++position)
    if (!builder_.at(position).nodes.empty()) at(position, start);
}

}  // namespace mltcp::workload
