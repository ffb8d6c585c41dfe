// Derives dependencies for traces that record none, from the order in which the program issued its operations. A
// communication begins when everything for which the program has waited so far has ended. Later operations depend on
// the communication only once the program waits for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "mltcp/lab/workload/traces/graph_builder.h"

namespace mltcp::workload {

class IssueOrder {
 public:
  /// Adds nodes to the rank at `position` of `builder`.
  IssueOrder(GraphBuilder& builder, std::uint32_t position) : builder_(&builder), position_(position) {}

  /// Adds a computation. All later operations depend on it.
  void compute(GraphNode node);
  /// Adds a communication. `request`, if given, is the number by which wait() identifies the communication.
  void post(GraphNode node, std::optional<std::int64_t> request = std::nullopt);
  /// Makes all later operations depend on the communication with the number `request`. Does nothing if no communication
  /// has this number.
  void wait(std::int64_t request);
  /// Begins a step. All its operations depend on all earlier communications, because a step begins with the parameters
  /// that the step before it computed.
  void next_step(std::uint32_t step);

 private:
  /// Identifies communications that end in the order in which they were posted: the collectives of one group, the
  /// messages sent to one peer, or the messages received from one peer.
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
  /// Memory of one entry of requests_, in bytes.
  static constexpr std::size_t kOfRequest = sizeof(std::pair<std::int64_t, Posted>) + 24;
};

}  // namespace mltcp::workload
