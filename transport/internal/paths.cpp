// Path values of a connection (see paths.h).
#include "mltcp/transport/internal/paths.h"

#include <algorithm>

namespace mltcp::transport {

Paths::Paths(std::uint32_t values, const BalancerTable& balancer, bool by_delay, std::uint64_t seed)
    : balancer_(balancer.make(values, seed)), values_(values), by_delay_(by_delay) {}

std::uint8_t Paths::next(bool begins_burst) {
  if (retired_ == 0 || retired_ == values_.size()) [[likely]]
    return balancer_->next(values_, begins_burst);
  if (--until_probe_ == 0) {
    until_probe_ = between_probes_;
    do probed_ = static_cast<std::uint8_t>((probed_ + 1U) % values_.size());
    while (!values_[probed_].is_retired());
    return probed_;
  }
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (const std::uint8_t path = balancer_->next(values_, begins_burst); !values_[path].is_retired()) return path;
  const auto other = std::ranges::find_if_not(values_, &PathValue::is_retired);
  return static_cast<std::uint8_t>(other - values_.begin());
}

void Paths::on_acked(std::uint8_t path, std::uint64_t number, bool is_marked) {
  PathValue& value = values_[path];
  if (value.is_retired()) {
    --retired_;
    until_probe_ = between_probes_ = kMinBetweenProbes;
  }
  value.lost_in_a_row = 0;
  value.largest_acked = std::max(value.largest_acked, number);
  balancer_->on_acked(values_, path, is_marked);
}

void Paths::on_lost(std::uint8_t path) {
  PathValue& value = values_[path];
  if (value.is_retired())
    between_probes_ = std::min(between_probes_ * 2, kMaxBetweenProbes);
  else if (++value.lost_in_a_row >= PathValue::kRetiring)
    ++retired_;
  balancer_->on_lost(values_, path);
}

}  // namespace mltcp::transport
