// The queue and link model (see link.h). The hot path is offer() and pop(). To be fast, they use two rings, divide only
// when the packet size changes, and draw random numbers only for probabilities above 0.
#include "mltcp/lab/fabric/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"

namespace mltcp::fabric {
namespace {

constexpr Rate kMinRate(8);  // limits the serialisation time of a packet of 4 GiB to less than 2^62 ns
constexpr Rate kMaxRate(1'000'000'000'000'000);
constexpr Nanos kMaxDelay(1'000'000'000'000);
// Maximum departure time, 146 years. Below it, the sum of a departure time, a delay and a serialisation time cannot
// overflow.
constexpr Nanos kHorizon(std::int64_t{1} << 62);

void check_probability(double p, const char* what) {
  if (!(p >= 0 && p <= 1)) throw InputError(fmt::format("{} of a link is {}; give a probability from 0 to 1", what, p));
}

/// Heap order of held packets: the packet that arrives first is at the front. If several arrive at the same time, the
/// packet that was held first is at the front.
constexpr auto kLater = [](const auto& a, const auto& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; };

}  // namespace

void check(const LinkConfig& config) {
  if (config.rate.is_zero()) throw InputError("the rate of a link is 0; give it a rate such as \"1 Gbps\"");
  if (config.rate < kMinRate || config.rate > kMaxRate)
    throw InputError(fmt::format("the rate of a link is {}; give a rate from {} to {}", to_text(config.rate),
                                 to_text(kMinRate), to_text(kMaxRate)));
  if (config.delay < Nanos(0) || config.delay > kMaxDelay)
    throw InputError(
        fmt::format("the delay of a link is {} ns; give a delay from 0 to {}", config.delay.count, to_text(kMaxDelay)));
  if (config.ecn.enabled) {
    if (config.ecn.kmax_bytes < config.ecn.kmin_bytes)
      throw InputError(fmt::format("ECN kmax of a link, {}, is below its kmin, {}; give a kmax of at least kmin",
                                   bytes_to_text(config.ecn.kmax_bytes), bytes_to_text(config.ecn.kmin_bytes)));
    check_probability(config.ecn.pmax, "ECN pmax");
  }
  for (const RateChange& change : config.changes)
    if (!change.rate.is_zero() && (change.rate < kMinRate || change.rate > kMaxRate))
      throw InputError(fmt::format("the rate of a link changes to {}; give a rate from {} to {}, or 0",
                                   to_text(change.rate), to_text(kMinRate), to_text(kMaxRate)));
  if (!std::ranges::is_sorted(config.changes, {}, &RateChange::at))
    throw InputError("the changes of a link's rate are not in the order of time; sort them");
  check_probability(config.faults.loss, "fault loss");
  check_probability(config.faults.duplication, "fault duplication");
  check_probability(config.faults.corruption, "fault corruption");
  check_probability(config.faults.reordering, "fault reordering");
  if (config.faults.reordering > 0 &&
      (config.faults.reorder_delay <= Nanos(0) || config.faults.reorder_delay > kMaxDelay))
    throw InputError(fmt::format("the reorder delay of a link is {} ns; give a delay above 0 and up to {}",
                                 config.faults.reorder_delay.count, to_text(kMaxDelay)));
}

std::uint32_t packets_in(const LinkConfig& config) {
  constexpr Bytes kMaxBytes = Bytes{8} << 20;
  const Bytes waiting = config.buffer_bytes == 0 ? kMaxBytes : std::min(config.buffer_bytes, kMaxBytes);
  const Bytes flying = std::min(config.rate.bytes_in(config.delay), kMaxBytes);
  return static_cast<std::uint32_t>((waiting + flying) / 200);
}

Link::Link(const LinkConfig& config)
    : marker_(config.ecn, config.seed), fault_random_(Random::stream(config.seed, 1)), config_(config) {
  check(config);
  faulty_ = config.faults.any();
  if (!config.changes.empty()) next_change_at_ = config.changes.front().at;
}

void Link::change_rate(Nanos now) {
  for (; next_change_ < config_.changes.size() && config_.changes[next_change_].at <= now; ++next_change_) {
    const Rate rate = config_.changes[next_change_].rate;
    is_down_ = rate.is_zero();
    if (is_down_) continue;
    config_.rate = rate;
    free_fraction_ = 0;
    latest_bytes_ = 0;
  }
  next_change_at_ = next_change_ < config_.changes.size() ? config_.changes[next_change_].at : Nanos::never();
}

Link::Admission Link::offer(Handle packet, std::uint32_t bytes, bool ecn_capable, Nanos now, bool is_trimmed) {
  Admission admission;
  ++counters_.offered_packets;
  if (now >= next_change_at_) [[unlikely]]
    change_rate(now);
  drain(now);
  const bool full = config_.buffer_bytes != 0 && backlog_ + bytes > config_.buffer_bytes;
  if (config_.trim_bytes != 0 && (full || is_trimmed) && free_at_ < kHorizon && !is_down_) [[unlikely]]
    return offer_first(packet, std::min(bytes, config_.trim_bytes), bytes > config_.trim_bytes, now);
  if (full || free_at_ >= kHorizon || is_down_) [[unlikely]] {
    ++counters_.dropped_packets;
    return admission;
  }
  if (ecn_capable && marker_.marks(backlog_)) {
    admission.mark = true;
    ++counters_.marked_packets;
  }
  const Nanos departure = serialise(bytes, now);
  admission.departure = departure;
  waiting_.push({departure, bytes});
  backlog_ += bytes;
  if (backlog_ > counters_.max_queue_bytes) counters_.max_queue_bytes = backlog_;
  ++counters_.sent_packets;
  counters_.sent_bytes += bytes;

  Nanos at = departure + config_.delay;
  if (faulty_) [[unlikely]] {
    const bool held = apply_faults(admission, at);
    if (admission.lost) return admission;
    newest_at_ = at;
    newest_held_ = held;
    if (held) {
      hold(packet, at);
      admission.admitted = true;
      return admission;
    }
  }
  flying_.push({packet, at});
  admission.admitted = true;
  return admission;
}

/// Admits a packet to the queue that is served first, or drops it if that queue is full.
Link::Admission Link::offer_first(Handle packet, std::uint32_t bytes, bool trim, Nanos now) {
  Admission admission;
  const Nanos in_service = waiting_.empty() ? now : waiting_.front().departure;
  const Nanos start = std::max(first_free_at_, in_service);
  if (config_.buffer_bytes != 0 && config_.rate.bytes_in(start - in_service) + bytes > config_.buffer_bytes) {
    ++counters_.dropped_packets;
    return admission;
  }
  serialise(bytes, now);  // later packets wait for it
  first_free_at_ = start + latest_time_ + Nanos(latest_fraction_ == 0 ? 0 : 1);
  admission.admitted = true;
  admission.trim = trim;
  admission.departure = first_free_at_;
  counters_.trimmed_packets += trim ? 1 : 0;
  ++counters_.sent_packets;
  counters_.sent_bytes += bytes;
  hold(packet, first_free_at_ + config_.delay);
  return admission;
}

/// Computes the departure of a packet admitted at `now`, and advances the time at which the link is free.
Nanos Link::serialise(std::uint32_t bytes, Nanos now) {
  const std::uint64_t rate = config_.rate.bits_per_second;
  if (bytes != latest_bytes_) {
    latest_bytes_ = bytes;
    if (bytes < (std::uint32_t{1} << 31)) [[likely]] {
      const std::uint64_t bit_nanos = bytes * 8'000'000'000ULL;
      latest_time_ = Nanos(static_cast<std::int64_t>(bit_nanos / rate));
      latest_fraction_ = bit_nanos % rate;
    } else {
      const Uint128 bit_nanos = static_cast<Uint128>(bytes) * 8'000'000'000ULL;
      latest_time_ = Nanos(static_cast<std::int64_t>(bit_nanos / rate));
      latest_fraction_ = static_cast<std::uint64_t>(bit_nanos % rate);
    }
  }
  // The link becomes free at free_at_ plus a fraction of a nanosecond. So at `now` equal to free_at_ the link is free
  // only if the fraction is 0.
  if (now > free_at_ || (now == free_at_ && free_fraction_ == 0)) {
    free_at_ = now;
    free_fraction_ = 0;
  }
  free_at_ += latest_time_;
  free_fraction_ += latest_fraction_;
  if (free_fraction_ >= rate) {
    free_fraction_ -= rate;
    free_at_ += Nanos(1);
  }
  return free_fraction_ == 0 ? free_at_ : free_at_ + Nanos(1);
}

/// Draws the faults of a packet that would arrive at `at` without faults. If the packet is reordered, adds its extra
/// delay to `at` and returns true.
bool Link::apply_faults(Admission& admission, Nanos& at) {
  const FaultConfig& faults = config_.faults;
  if (fault_random_.chance(faults.loss)) {
    admission.lost = true;
    ++counters_.lost_packets;
    return false;
  }
  if (fault_random_.chance(faults.duplication)) {
    admission.duplicate = true;
    ++counters_.duplicated_packets;
  }
  if (fault_random_.chance(faults.corruption)) {
    admission.corrupt = true;
    admission.corrupt_bits = fault_random_.next();
    ++counters_.corrupted_packets;
  }
  if (!fault_random_.chance(faults.reordering)) return false;
  ++counters_.reordered_packets;
  const auto longest = static_cast<std::uint64_t>(faults.reorder_delay.count);
  at += Nanos(1 + static_cast<std::int64_t>(fault_random_.below(longest)));
  return true;
}

void Link::offer_copy(Handle packet) {
  if (newest_held_) {
    hold(packet, newest_at_);
  } else {
    flying_.push({packet, newest_at_});
  }
}

void Link::hold(Handle packet, Nanos at) {
  held_.push_back({at, held_order_++, packet});
  std::push_heap(held_.begin(), held_.end(), kLater);
}

std::optional<Link::Delivery> Link::pop_held(Nanos now) {
  if (held_.front().at > now) return std::nullopt;
  const Delivery delivery{held_.front().packet, held_.front().at};
  std::pop_heap(held_.begin(), held_.end(), kLater);
  held_.pop_back();
  return delivery;
}

Nanos Link::time_of_queue(std::size_t packets, Nanos now) {
  drain(now);
  if (waiting_.size() <= packets) return now;
  return waiting_[waiting_.end() - packets - 1].departure;
}

}  // namespace mltcp::fabric
