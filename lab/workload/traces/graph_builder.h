// Builds the graph of one input for a reader: keeps each text once, counts nodes against the budget, and sorts nodes so
// that each comes after those that it waits for.
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
  /// `source` is the input's name; `budget` is shared with the other inputs of the job.
  GraphBuilder(std::string_view format, const std::string& source,
               std::shared_ptr<TraceBudget> budget = std::make_shared<TraceBudget>());
  GraphBuilder(std::string_view format, const TraceInput& input) : GraphBuilder(format, input.name(), input.budget()) {}

  /// Indices in the graph's lists; equal texts have the same index.
  std::uint32_t name(std::string_view text) { return number(names_, text); }
  std::uint32_t lane(std::string_view text) { return number(lanes_, text); }
  /// `ranks` as recorded, in any order; `what` if they are not complete. Without ranks and `what`: the whole job.
  std::uint32_t group(std::vector<std::uint32_t> ranks, PartialGraph::Group what = {});

  /// Returns the position of a rank of the input.
  std::uint32_t rank(std::uint32_t recorded);
  /// Appends a node to the rank at that position, with the nodes that it waits for. Returns its index. Throws as keep()
  /// does, and for lengths that are negative or too long.
  std::uint32_t add(std::uint32_t position, GraphNode node, std::span<const std::uint32_t> waits = {});
  std::uint32_t step(std::string name, Nanos start = Nanos::never(), Nanos length = Nanos(0));

  /// Counts bytes kept of the input. Throws InputError if all inputs of the job together take more than the budget.
  void keep(std::size_t bytes) {
    if (!budget_->take(bytes)) fail_by_budget();
  }
  /// The same for memory of the reader itself, until take() or let_go().
  void hold(std::size_t bytes) {
    held_ += bytes;
    keep(bytes);
  }
  void let_go(std::size_t bytes) {
    held_ -= bytes;
    budget_->give_back(bytes);
  }

  /// Adds a warning of one line, after the input's name. After 20 warnings, further ones are only counted.
  void warn(std::string_view text);
  /// Warns "COUNT NOUN WHAT" if `count` is not 0.
  void warn(std::size_t count, std::string_view noun, std::string_view what) {
    if (count > 0) warn(fmt::format("{} {}", plural(count, noun), what));
  }
  /// Throws InputError "SOURCE: cause; cure".
  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const;

  /// Sorts the nodes of a rank if some were added before those that they wait for. Throws InputError that names two
  /// nodes if they wait in a circle.
  void sort(std::uint32_t position);
  /// The same, but if nodes wait in a circle it changes nothing and returns false.
  bool try_sort(std::uint32_t position);

  [[nodiscard]] const std::string& source() const { return part_.graph.sources.front(); }
  [[nodiscard]] PartialGraph& part() { return part_; }
  [[nodiscard]] const RankGraph& at(std::uint32_t position) const { return part_.graph.ranks[position]; }
  /// Returns the graph; the last call of a reader.
  PartialGraph take();

 private:
  /// Sorts the nodes, unless some wait in a circle: then returns the indices of two of them.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> sort_or_circle(std::uint32_t position);

  [[noreturn]] void fail_by_budget() const;

  /// Texts, by the order of their first use.
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
  std::size_t held_ = 0;  ///< bytes kept by the reader itself
  PartialGraph part_;
  Texts names_;
  Texts lanes_;
  std::map<std::tuple<std::vector<std::uint32_t>, std::uint32_t, std::string>, std::uint32_t> groups_;
  std::vector<Nanos> lengths_;  ///< sum over the nodes of each rank
  std::size_t warnings_ = 0;
};

/// The starts of flows as computations on the ranks at both ends. Later sends and receives of a rank wait for them.
class FlowStarts {
 public:
  /// For ranks at positions below `ranks`.
  FlowStarts(GraphBuilder& builder, std::size_t ranks) : builder_(builder), timers_(ranks) {}

  /// Nodes for which a node of the rank must wait to begin at `start`. Call in the order of starts.
  std::vector<std::uint32_t> at(std::uint32_t position, Nanos start);
  /// Extends all ranks that have nodes until `start`, the last start.
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
