// See issue_order.h.
#include "mltcp/lab/workload/traces/issue_order.h"

#include <algorithm>

namespace mltcp::workload {

void IssueOrder::compute(GraphNode node) {
  node.step = step_;
  computed_ = builder_->add(position_, node, waits());
  required_.clear();
}

void IssueOrder::post(GraphNode node, std::optional<std::int64_t> request) {
  node.step = step_;
  Stream stream{0, node.group};
  if (node.kind == GraphNode::Kind::send) stream = {1, node.peer};
  if (node.kind == GraphNode::Kind::receive) stream = {2, node.peer};
  const Posted posted{builder_->add(position_, node, waits()), stream};
  last_[stream] = posted.node;
  if (request && requests_.insert_or_assign(*request, posted).second) builder_->hold(kOfRequest);
}

void IssueOrder::wait(std::int64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  require(found->second);
  requests_.erase(found);
  builder_->let_go(kOfRequest);
}

void IssueOrder::next_step(std::uint32_t step) {
  step_ = step;
  for (const auto& [stream, node] : last_) require({node, stream});
}

void IssueOrder::require(const Posted& posted) {
  std::uint32_t& node = required_.try_emplace(posted.stream, posted.node).first->second;
  node = std::max(node, posted.node);
}

std::vector<std::uint32_t> IssueOrder::waits() const {
  std::vector<std::uint32_t> result;
  if (computed_) result.push_back(*computed_);
  for (const auto& [stream, node] : required_) result.push_back(node);
  return result;
}

}  // namespace mltcp::workload
