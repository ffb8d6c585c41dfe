// How a reader puts together what one input holds: texts are kept once, nodes counted, and nodes that stand in any
// order brought into one in which they come after what they wait for.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

class GraphBuilder {
 public:
  /// `source` is the input's name, `budget` what it shares with other inputs of the job.
  GraphBuilder(std::string_view format, const std::string& source,
               std::shared_ptr<TraceBudget> budget = std::make_shared<TraceBudget>());
  GraphBuilder(std::string_view format, const TraceInput& input) : GraphBuilder(format, input.name(), input.budget()) {}

  /// Indices in the graph's lists; equal ones are the same.
  std::uint32_t name(std::string_view text) { return number(names_, text); }
  std::uint32_t lane(std::string_view text) { return number(lanes_, text); }
  /// `ranks` as recorded, in any order; `what` if they are not all. No ranks and nothing else: the whole job.
  std::uint32_t group(std::vector<std::uint32_t> ranks, PartialGraph::Group what = {});

  /// A rank of the input: its position.
  std::uint32_t rank(std::uint32_t recorded);
  /// Appends a node to the rank at that position, and what it waits for; yields its index. Throws as keep() does, and
  /// where lengths are negative or too long.
  std::uint32_t add(std::uint32_t position, GraphNode node, std::span<const std::uint32_t> waits = {});
  std::uint32_t step(std::string name, Nanos start = Nanos::never(), Nanos length = Nanos(0));

  /// Counts what is kept of the input. Throws InputError if all of the job's take more than the budget.
  void keep(std::size_t bytes) {
    if (!budget_->take(bytes)) fail_by_budget();
  }
  /// The same of what its reader keeps for itself: until take(), or until it lets go of it.
  void hold(std::size_t bytes) {
    held_ += bytes;
    keep(bytes);
  }
  void let_go(std::size_t bytes) {
    held_ -= bytes;
    budget_->give_back(bytes);
  }

  /// One line; the input's name is put before it. Beyond 20, warnings are counted.
  void warn(std::string_view text);
  /// Of `count` such things `what`, if there are any.
  void warn(std::size_t count, std::string_view noun, std::string_view what) {
    if (count > 0) warn(fmt::format("{} {}", plural(count, noun), what));
  }
  /// Throws InputError "SOURCE: cause; cure".
  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const;

  /// Sorts the nodes of a rank, which may have been added before those that they wait for; otherwise they stay as they
  /// are. Throws InputError that names two nodes if they wait in a circle.
  void sort(std::uint32_t position);
  /// The same; instead of throwing it leaves all as it is, and yields false.
  bool try_sort(std::uint32_t position);

  [[nodiscard]] const std::string& source() const { return part_.graph.sources.front(); }
  [[nodiscard]] PartialGraph& part() { return part_; }
  [[nodiscard]] const RankGraph& at(std::uint32_t position) const { return part_.graph.ranks[position]; }
  /// What was built; the last that a reader does.
  PartialGraph take();

 private:
  /// Indices of two nodes that wait in a circle, if there are any; else the nodes are sorted.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> sort_or_circle(std::uint32_t position);

  [[noreturn]] void fail_by_budget() const;

  /// Texts in the order in which they were first named.
  class Texts {
   public:
    [[nodiscard]] bool has(std::string_view text) const { return found_.find(text) != found_.end(); }
    std::uint32_t at(std::string_view text);
    std::vector<std::string> take();

   private:
    struct Hash {
      using is_transparent = void;
      std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> found_;
    std::vector<const std::string*> order_;
  };

  std::uint32_t number(Texts& texts, std::string_view text);

  std::shared_ptr<TraceBudget> budget_;
  std::size_t held_ = 0;  ///< of what is kept, by the reader for itself
  PartialGraph part_;
  Texts names_;
  Texts lanes_;
  std::map<std::tuple<std::vector<std::uint32_t>, std::uint32_t, std::string>, std::uint32_t> groups_;
  std::vector<Nanos> lengths_;  ///< of all nodes of each rank
  std::size_t warnings_ = 0;
};

/// The starts of flows, as computations of the ranks at both ends: what a rank sends or expects later waits for them.
class FlowStarts {
 public:
  /// Of ranks at positions below `ranks`.
  FlowStarts(GraphBuilder& builder, std::size_t ranks) : builder_(builder), timers_(ranks) {}

  /// What a node of the rank waits for to begin at `start`; asked for in the order of starts.
  std::vector<std::uint32_t> at(std::uint32_t position, Nanos start);
  /// All ranks that have nodes go on until `start`, the last one.
  void finish(Nanos start);

 private:
  struct Timer {
    Nanos at;
    std::optional<std::uint32_t> node;
  };
  GraphBuilder& builder_;
  std::vector<Timer> timers_;
};

}  // namespace mltcp::workload
