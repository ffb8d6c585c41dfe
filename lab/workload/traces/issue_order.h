// Dependencies for traces without any, from the order in which the program issued operations: a communication is posted
// when all that the program waited for before has ended, and continues until the program waits for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "mltcp/lab/workload/traces/graph_builder.h"

namespace mltcp::workload {

class IssueOrder {
 public:
  /// Nodes are added to the rank at that position.
  IssueOrder(GraphBuilder& builder, std::uint32_t position) : builder_(&builder), position_(position) {}

  /// Everything that follows depends on it.
  void compute(GraphNode node);
  /// Posts a communication; `request` is the number for wait(), if any.
  void post(GraphNode node, std::optional<std::int64_t> request = std::nullopt);
  /// Everything that follows depends on the communication of that number. Does nothing if there is none.
  void wait(std::int64_t request);
  /// Everything that follows depends on all communications so far: a step begins with the parameters from the last one.
  void next_step(std::uint32_t step);

 private:
  /// Communications of one stream end in order: collectives of a group, or messages in one direction.
  using Stream = std::pair<std::uint32_t, std::uint32_t>;
  struct Posted {
    std::uint32_t node = 0;
    Stream stream;
  };
  void require(const Posted& posted);
  std::vector<std::uint32_t> waits() const;

  GraphBuilder* builder_;
  std::uint32_t position_;
  std::uint32_t step_ = 0;
  std::optional<std::uint32_t> computed_;
  std::map<Stream, std::uint32_t> required_;
  std::map<Stream, std::uint32_t> last_;
  std::map<std::int64_t, Posted> requests_;
  /// Bytes of one entry of requests_.
  static constexpr std::size_t kOfRequest = sizeof(std::pair<std::int64_t, Posted>) + 24;
};

}  // namespace mltcp::workload
