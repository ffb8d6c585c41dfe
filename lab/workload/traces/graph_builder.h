// GraphBuilder builds the graph of one input for a trace reader. It stores equal texts once, charges memory to the
// job's budget, and sorts the nodes of a rank so that each node comes after the nodes for which it waits.
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
  /// `source` is the name of the input. All inputs of the job share `budget`.
  GraphBuilder(std::string_view format, const std::string& source,
               std::shared_ptr<TraceBudget> budget = std::make_shared<TraceBudget>());
  GraphBuilder(std::string_view format, const TraceInput& input) : GraphBuilder(format, input.name(), input.budget()) {}

  /// Returns the index of `text` in the graph's list of names or lanes. Equal texts have the same index.
  std::uint32_t name(std::string_view text) { return number(names_, text); }
  std::uint32_t lane(std::string_view text) { return number(lanes_, text); }
  /// Returns the index of a group in the graph's list of groups. `ranks` are recorded ranks in any order. `what` gives
  /// the size or the identifier if `ranks` does not list all members. If both arguments are empty, the group is the
  /// whole job.
  std::uint32_t group(std::vector<std::uint32_t> ranks, PartialGraph::Group what = {});

  /// Adds a rank with the number `recorded`. Returns its position in the graph's list of ranks.
  std::uint32_t rank(std::uint32_t recorded);
  /// Appends `node` to the rank at `position`. `waits` are the indices of the nodes for which it waits. Returns the
  /// index of the new node. Throws InputError if the memory budget is exceeded, or if the node's length or the sum of
  /// the rank's lengths is out of range.
  std::uint32_t add(std::uint32_t position, GraphNode node, std::span<const std::uint32_t> waits = {});
  std::uint32_t step(std::string name, Nanos start = Nanos::never(), Nanos length = Nanos(0));

  /// Charges `bytes` to the job's memory budget. Throws InputError if all inputs of the job together exceed the budget.
  void keep(std::size_t bytes) {
    if (!budget_->take(bytes)) fail_by_budget();
  }
  /// Charges memory that only the reader uses, until let_go() or take() returns it.
  void hold(std::size_t bytes) {
    held_ += bytes;
    keep(bytes);
  }
  void let_go(std::size_t bytes) {
    held_ -= bytes;
    budget_->give_back(bytes);
  }

  /// Adds a one-line warning that begins with the input's name. Counts warnings after the 20th without storing them.
  void warn(std::string_view text);
  /// Warns "COUNT NOUN WHAT" if `count` is not 0.
  void warn(std::size_t count, std::string_view noun, std::string_view what) {
    if (count > 0) warn(fmt::format("{} {}", plural(count, noun), what));
  }
  /// Throws InputError "SOURCE: cause; cure".
  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const;

  /// Sorts the nodes of the rank at `position`, if necessary, so that each node comes after the nodes for which it
  /// waits. Throws InputError with the names of two nodes if nodes wait in a cycle.
  void sort(std::uint32_t position);
  /// Sorts like sort(), but returns false and changes nothing if nodes wait in a cycle.
  bool try_sort(std::uint32_t position);

  [[nodiscard]] const std::string& source() const { return part_.graph.sources.front(); }
  [[nodiscard]] PartialGraph& part() { return part_; }
  [[nodiscard]] const RankGraph& at(std::uint32_t position) const { return part_.graph.ranks[position]; }
  /// Returns the graph. Must be the reader's last call to this builder.
  PartialGraph take();

 private:
  /// Sorts like sort(). If nodes wait in a cycle, changes nothing and returns the indices of two of them.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> sort_or_circle(std::uint32_t position);

  [[noreturn]] void fail_by_budget() const;

  /// Distinct texts, numbered in the order of their first use.
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
  std::size_t held_ = 0;  ///< bytes charged by hold() and not yet returned
  PartialGraph part_;
  Texts names_;
  Texts lanes_;
  std::map<std::tuple<std::vector<std::uint32_t>, std::uint32_t, std::string>, std::uint32_t> groups_;
  std::vector<Nanos> lengths_;  ///< by rank: sum of the lengths of its nodes
  std::size_t warnings_ = 0;
};

/// Represents the start times of flows by computations on the sender and the receiver. The sends and receives of a rank
/// wait for these computations.
class FlowStarts {
 public:
  /// The ranks are at positions 0 to `ranks` - 1.
  FlowStarts(GraphBuilder& builder, std::size_t ranks) : builder_(builder), timers_(ranks) {}

  /// Returns the nodes for which a send or receive of the rank must wait so that it begins at `start`. `start` must not
  /// decrease from one call to the next.
  std::vector<std::uint32_t> at(std::uint32_t position, Nanos start);
  /// Extends every rank that has nodes with a computation that ends at `start`, the last start of all flows.
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
