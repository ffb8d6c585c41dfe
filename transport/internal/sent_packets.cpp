// Rarely used functions of SentPackets (see sent_packets.h).
#include "mltcp/transport/internal/sent_packets.h"

#include <limits>

namespace mltcp::transport {

Nanos SentPackets::longest_patience(const ConnectionConfig& config) {
  const RttEstimator initial(config.initial_rtt);
  return std::max(kMaxPatience, initial.probe_timeout(config.timer_granularity, config.max_ack_delay));
}

void SentPackets::skip_number(ShardRandom& random) {
  if (packets_.end() != 0) {
    ++skipped_in_all_;
    if (packets_.empty()) {
      forgotten_skip_ = static_cast<std::uint32_t>(packets_.end());
      packets_.skip();
    } else {
      Packet record;
      record.sent = Nanos::never();
      packets_.push(record);
    }
  }
  draw_skip(random);
}

void SentPackets::draw_skip(ShardRandom& random) {
  until_skip_ = static_cast<std::uint16_t>(kMinBetweenSkips + (random.next() >> 32) % kBetweenSkips);
  if (packets_.end() - widened(withheld_) > std::numeric_limits<std::uint32_t>::max() / 2) withheld_ = 0;
}

void SentPackets::on_withheld(std::uint16_t chunk_count, ShardRandom& random, Nanos now) {
  if (const std::uint64_t before = widened(withheld_); withheld_ != 0 && before >= packets_.begin()) {
    packets_[before].state = State::ignored;  // the number counts as skipped from now on
    packets_[before].sent = Nanos::never();
  }
  withheld_ = static_cast<std::uint32_t>(packets_.end());
  ++skipped_in_all_;
  on_sent(0, chunk_count, 0, now);
  draw_skip(random);
}

std::uint32_t SentPackets::longest_in_flight() const {
  std::uint32_t longest = 0;
  for (std::uint64_t number = std::max(loss_cursor_, packets_.begin()); number < packets_.end(); ++number)
    if (packets_[number].state == State::in_flight) longest = std::max<std::uint32_t>(longest, packets_[number].bytes);
  return longest;
}

SentPackets::Verdict SentPackets::judge(const Losses& losses, bool congestion, const ConnectionConfig& config) {
  Verdict verdict;
  lost_in_all_ += losses.packets;
  verdict.persistent = losses.longest_run > probe_timeout(config) * 3;
  if (!responds_to(losses.largest)) {
    if (episode_lost_ > 0) episode_lost_ += losses.packets;
  } else if (congestion || verdict.persistent) {
    verdict.congestion = true;
    episode_begin_ = losses.first;
    episode_lost_ = losses.packets;
    episode_spurious_ = 0;
    recovery_until_ = packets_.end();
    reduced_from_ = static_cast<std::uint32_t>(losses.in_flight_before);
    reduced_delivered_ = static_cast<std::uint32_t>(delivered_);
    reduced_sent_ = sent_total();
  }
  if (verdict.persistent) {
    episode_lost_ = 0;
    recovery_until_ = 0;
  }
  return verdict;
}

// A lost packet keeps its record for a while, because it may still arrive late. But after two round trips no
// acknowledgement of it can still be on its way, so the peer need not repeat acknowledgements that old.
void SentPackets::pass_over_lost(const ConnectionConfig& config, Nanos now) {
  const Nanos recent = now - rtt_.smoothed() * 2 - config.timer_granularity;
  oldest_of_use_ = std::max(oldest_of_use_, packets_.begin());
  for (; oldest_of_use_ != packets_.end(); ++oldest_of_use_) {
    const Packet& packet = packets_[oldest_of_use_];
    if (packet.state == State::in_flight || (packet.state == State::lost && packet.sent > recent)) break;
  }
  acked_.remove_below(oldest_of_use_);
}

void SentPackets::give_up(const ConnectionConfig& config, Nanos now) {
  in_flight_ = 0;
  in_flight_packets_ = 0;
  loss_time_ = Nanos::never();
  for (std::uint64_t number = packets_.begin(); number != packets_.end(); ++number)
    packets_[number].state = State::ignored;
  forget_finished(config, now);
}

bool SentPackets::on_probe_timeout(const ConnectionConfig& config, Nanos now) {
  if (probe_count_ >= 2 && now - last_progress_ >= config.give_up_after) return false;
  if (probe_count_ < std::numeric_limits<std::uint8_t>::max()) ++probe_count_;
  probes_due_ = 2;
  last_eliciting_sent_ = now;  // restart the timeout even if the datapath is full and no probe can be sent
  return true;
}

}  // namespace mltcp::transport
