// Queues by priority class before a link (see priority_link.h).
#include "mltcp/lab/fabric/priority_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "mltcp/base/error.h"

namespace mltcp::fabric {
namespace {

/// Returns the part of `config` that applies after the queues: rate, delay and faults.
LinkConfig wire_of(LinkConfig config) {
  config.buffer_bytes = 0;
  config.ecn = {};
  return config;
}

}  // namespace

PriorityLink::PriorityLink(const LinkConfig& config, std::uint32_t classes, SwitchMemory* memory)
    : config_(config), classes_(classes), memory_(memory), wire_(wire_of(config)), marker_(config.ecn, config.seed) {
  check(config);
  if (classes < 1 || classes > kMaxClasses)
    throw InputError(fmt::format("a link has {} classes; give 1 to {}", classes, kMaxClasses));
}

PriorityLink::Admission PriorityLink::offer(Handle packet, std::uint32_t bytes, bool ecn_capable,
                                            std::uint32_t priority, std::uint32_t ingress, Nanos now) {
  Admission admission;
  ++counters_.offered_packets;
  finish(now);
  const std::uint32_t number = class_of(priority);
  Queue& queue = queues_[number];
  const bool is_admitted = memory_ != nullptr
                               ? memory_->admits(queue.bytes, bytes, ingress, number)
                               : config_.buffer_bytes == 0 || queue.bytes + bytes <= config_.buffer_bytes;
  if (!is_admitted) {
    ++counters_.dropped_packets;
    return admission;
  }
  if (memory_ != nullptr) memory_->take(bytes, ingress, number);
  admission.admitted = true;
  if (ecn_capable && marker_.marks(queue.bytes)) {
    admission.mark = true;
    ++counters_.marked_packets;
  }
  queue.packets.push({packet, bytes, ingress});
  queue.bytes += bytes;
  counters_.max_queue_bytes = std::max(counters_.max_queue_bytes, queue.bytes);
  longest_queue_ = std::max(longest_queue_, queue.bytes);
  ++counters_.sent_packets;
  counters_.sent_bytes += bytes;
  waiting_ |= 1U << number;
  return admission;
}

std::optional<PriorityLink::Start> PriorityLink::start(Nanos now) {
  apply_pauses(now);
  finish(now);
  const std::uint32_t ready = waiting_ & ~paused_;
  if (busy_ || ready == 0) return std::nullopt;
  sending_class_ = static_cast<std::uint32_t>(std::bit_width(ready)) - 1;
  Queue& queue = queues_[sending_class_];
  sending_ = queue.packets.front();
  queue.packets.pop();
  if (queue.packets.empty()) waiting_ &= ~(1U << sending_class_);
  busy_ = true;
  // The packet is offered in the whole nanosecond in which the inner link becomes free. So the inner link carries the
  // fraction of a nanosecond over to this packet.
  const Start start{sending_.packet, sending_.bytes, wire_.offer(sending_.packet, sending_.bytes, false, now)};
  const LinkCounters& faults = wire_.counters();
  counters_.lost_packets = faults.lost_packets;
  counters_.duplicated_packets = faults.duplicated_packets;
  counters_.corrupted_packets = faults.corrupted_packets;
  counters_.reordered_packets = faults.reordered_packets;
  return start;
}

void PriorityLink::apply_pauses(Nanos now) {
  for (; !pauses_.empty() && pauses_.front().at <= now; pauses_.pop()) {
    const std::uint32_t bit = 1U << pauses_.front().number;
    if (pauses_.front().on) {
      paused_ |= bit;
      ++counters_.pauses;
    } else {
      paused_ &= ~bit;
    }
  }
}

/// Releases the buffer of the packet being sent if its last bit has left by `now`.
void PriorityLink::finish(Nanos now) {
  if (!busy_ || wire_.free_at() > now) return;
  busy_ = false;
  queues_[sending_class_].bytes -= sending_.bytes;
  if (memory_ != nullptr) memory_->release(sending_.bytes, sending_.ingress, sending_class_);
}

}  // namespace mltcp::fabric
