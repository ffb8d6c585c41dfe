// Path values of a connection (see paths.h).
#include "mltcp/transport/internal/paths.h"

#include <algorithm>

namespace mltcp::transport {

Paths::Paths(std::uint32_t values, const BalancerTable& balancer, bool by_delay, std::uint64_t seed)
    : balancer_(balancer.make(values, seed)), values_(values), by_delay_(by_delay) {}

std::uint8_t Paths::next(std::uint64_t number, std::uint32_t in_flight) {
  const std::uint8_t path = choose(in_flight);
  values_[path].latest = static_cast<std::uint32_t>(number);
  return path;
}

std::uint8_t Paths::choose(std::uint32_t in_flight) {
  const bool begins_burst = in_flight == 0;
  if (retired_ > 0 && retired_ < values_.size() && --until_probe_ == 0) [[unlikely]] {
    until_probe_ = between_probes_;
    do probed_ = static_cast<std::uint8_t>((probed_ + 1U) % values_.size());
    while (!values_[probed_].is_retired());
    return probed_;
  }
  std::uint8_t path = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    path = balancer_->next(values_, begins_burst);
    const bool is_retired = values_[path].is_retired() && retired_ < values_.size();
    if (!is_retired && !is_late(values_[path], in_flight)) [[likely]]
      return path;
  }
  const auto other = std::ranges::find_if_not(values_, &PathValue::is_retired);
  return other == values_.end() ? path : static_cast<std::uint8_t>(other - values_.begin());
}

void Paths::on_acked(std::uint8_t path, std::uint64_t number, bool is_marked) {
  PathValue& value = values_[path];
  if (value.is_retired()) {
    --retired_;
    value.penalty = value.last_penalty = 0;
    until_probe_ = between_probes_ = kMinBetweenProbes;
  }
  value.lost_in_a_row = 0;
  value.largest_acked = std::max(value.largest_acked, number);
  largest_acked_ = std::max(largest_acked_, number);
  balancer_->on_acked(values_, path, is_marked);
}

bool Paths::on_lost(std::uint8_t path) {
  PathValue& value = values_[path];
  if (value.is_retired())
    between_probes_ = std::min(between_probes_ * 2, kMaxBetweenProbes);
  else if (++value.lost_in_a_row >= PathValue::kRetiring)
    ++retired_;
  value.latest = static_cast<std::uint32_t>(value.largest_acked);  // no longer late
  balancer_->on_lost(values_, path);
  return value.is_retired() && retired_ <= values_.size() / 2;
}

}  // namespace mltcp::transport
