// Rare paths of the record of sent packets (see sent_packets.h).
#include "mltcp/transport/internal/sent_packets.h"

#include <limits>

namespace mltcp {

void SentPackets::skip_number(ShardRandom& random) {
  if (skip_at_ != 0) {
    last_skipped_ = packets_.end();
    ++skipped_in_all_;
    if (packets_.empty()) {
      packets_.skip();
    } else {
      Packet record;
      record.sent = Nanos::never();
      packets_.push(record);
    }
  }
  skip_at_ = packets_.end() + least_between_skips + (random.next() >> 32) % between_skips;
}

SentPackets::Losses SentPackets::judge(std::uint32_t lost, std::uint64_t largest, Nanos longest_run,
                                       const ConnectionConfig& config) {
  Losses found;
  lost_in_all_ += lost;
  if (responds_to(largest)) {
    episode_begin_ = recovery_until_;
    begin_recovery();
    episode_lost_ = lost;
    episode_spurious_ = 0;
    found.congestion = true;
  } else if (episode_lost_ > 0) {
    episode_lost_ += lost;
  }
  if (longest_run <= probe_timeout(config) * 3) return found;
  episode_lost_ = 0;
  recovery_until_ = 0;
  found.persistent = true;
  return found;
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

}  // namespace mltcp
