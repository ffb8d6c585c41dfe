// Path values of a connection (see paths.h).
#include "mltcp/transport/internal/paths.h"

#include <algorithm>

#include "mltcp/transport/internal/sent_packets.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

Paths::Paths(std::uint32_t values, const BalancerTable& balancer, bool by_delay, std::uint64_t seed)
    : balancer_(balancer.make(values, seed)), values_(values), by_delay_(by_delay) {}

std::uint8_t Paths::next(const SentPackets& sent) {
  const std::uint8_t path = choose(sent);
  values_[path].latest = static_cast<std::uint32_t>(sent.next_number());
  return path;
}

std::uint8_t Paths::choose(const SentPackets& sent) {
  if (retired_ > 0 && retired_ < values_.size() && --until_probe_ == 0) [[unlikely]] {
    until_probe_ = between_probes_;
    do probed_ = static_cast<std::uint8_t>((probed_ + 1U) % values_.size());
    while (!values_[probed_].is_retired());
    return probed_;
  }
  std::uint8_t path = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    path = balancer_->next(values_, sent.in_flight_packets() == 0);
    const bool is_retired = values_[path].is_retired() && retired_ < values_.size();
    if (!is_retired && !is_late(values_[path], sent)) [[likely]]
      return path;
  }
  const auto other = std::ranges::find_if_not(values_, &PathValue::is_retired);
  return other == values_.end() ? path : static_cast<std::uint8_t>(other - values_.begin());
}

bool Paths::is_late(const PathValue& value, const SentPackets& sent) const {
  constexpr std::uint32_t min = 8;
  const std::uint64_t latest = wire::widen(value.latest, sent.next_number());
  return latest + min + sent.in_flight_packets() / 2 < sent.largest_acked() && sent.is_in_flight(latest);
}

void Paths::revive(PathValue& value) {
  if (value.is_retired()) {
    --retired_;
    value.penalty = value.last_penalty = 0;
    until_probe_ = between_probes_ = kMinBetweenProbes;
  }
  value.lost_in_a_row = 0;
}

void Paths::on_acked(std::uint8_t path, std::uint64_t number, bool is_marked) {
  PathValue& value = values_[path];
  revive(value);
  value.largest_acked = std::max(value.largest_acked, number);
  balancer_->on_acked(values_, path, is_marked);
}

void Paths::on_trimmed(std::uint8_t path) {
  revive(values_[path]);
  balancer_->on_acked(values_, path, true);
}

bool Paths::on_lost(std::uint8_t path) {
  PathValue& value = values_[path];
  if (value.is_retired())
    between_probes_ = std::min(between_probes_ * 2, kMaxBetweenProbes);
  else if (++value.lost_in_a_row >= PathValue::kRetiring)
    ++retired_;
  balancer_->on_lost(values_, path);
  return value.is_retired() && retired_ <= values_.size() / 2;
}

}  // namespace mltcp::transport
