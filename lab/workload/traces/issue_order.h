// Communication as a program issues it, of traces that tell no dependencies: each one is posted when what was waited
// for before is done, and goes on until it is waited for.
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

  /// All that follows comes after it.
  void compute(GraphNode node);
  /// A communication, by the number that it is waited for with, if any.
  void post(GraphNode node, std::optional<std::int64_t> request = std::nullopt);
  /// What follows comes after the communication of that number; nothing if there is none.
  void wait(std::int64_t request);
  /// What follows comes after all communications: the parameters that a step begins with are what the last one gave.
  void next_step(std::uint32_t step);

 private:
  /// Of one stream, later ones end later: collectives of a group, messages of a direction.
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
  /// Bytes of one of them, with its place.
  static constexpr std::size_t kOfRequest = sizeof(std::pair<std::int64_t, Posted>) + 24;
};

}  // namespace mltcp::workload
