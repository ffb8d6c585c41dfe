// Retransmission of messages (see message_sender.h).
#include "mltcp/transport/internal/message_sender.h"

#include <limits>

namespace mltcp::transport {

bool MessageSender::next_lost(Chunk& chunk) {
  for (; !lost_.empty(); lost_.pop()) {
    chunk = lost_.front();
    if (!outstanding(chunk.message)) continue;
    const Message& message = messages_[chunk.message];
    if (chunk.length == 0) return true;  // an empty message
    bool found = false;
    Chunk missing = chunk;
    message.acked.for_gaps(chunk.offset, Bytes{chunk.offset} + chunk.length, [&](Bytes begin, Bytes end) {
      if (found) return;
      found = true;
      missing.offset = static_cast<std::uint32_t>(begin);
      missing.length = static_cast<std::uint16_t>(end - begin);
    });
    if (found) {
      chunk = missing;
      return true;
    }
  }
  return false;
}

bool MessageSender::take_from_lost(std::size_t free_bytes, Chunk& chunk) {
  if (!next_lost(chunk)) return false;
  Chunk& whole = lost_.front();
  const std::uint32_t whole_end = whole.offset + whole.length;
  chunk.length = static_cast<std::uint16_t>(std::min<std::size_t>(chunk.length, free_bytes));
  const std::uint32_t sent_end = chunk.offset + chunk.length;
  // whole_end and sent_end are modulo 2^32. They wrap only in the last chunk of a 4 GiB message, and their difference
  // is correct.
  const std::uint32_t rest = whole_end - sent_end;
  if (rest == 0) {
    lost_.pop();
  } else {
    whole.offset = sent_end;
    whole.length = static_cast<std::uint16_t>(rest);
  }
  return true;
}

// Every byte of the oldest message has been acknowledged, but the peer lacks some bytes. So the peer must have accepted
// a packet that was forged in this end's name. Which packet this was is unknown. Packets still in flight may contain
// the missing bytes, so another packet is sent first. If the message is not whole when that packet is acknowledged, the
// whole message is retransmitted.
MessageSender::FrontStep MessageSender::check_front(std::uint64_t next_packet, std::uint64_t largest_acked) {
  const std::uint64_t number = messages_.begin();
  if (checked_front_ != number) {
    checked_front_ = number;
    repairs_ = 0;
    asked_at_ = kNone;
  }
  if (asked_at_ == kNone) {
    asked_at_ = next_packet;
    return FrontStep::ask;
  }
  if (largest_acked < asked_at_) return FrontStep::wait;
  asked_at_ = kNone;
  if (++repairs_ > kMaxRepairs) return FrontStep::failed;
  Message& message = messages_.front();
  message.all_acked = false;
  message.acked.clear();
  Bytes offset = 0;
  do {
    const Bytes length = std::min<Bytes>(message.length - offset, std::numeric_limits<std::uint16_t>::max());
    lost_.push({.message = number,
                .offset = static_cast<std::uint32_t>(offset),
                .length = static_cast<std::uint16_t>(length)});
    offset += length;
  } while (offset < message.length);
  return FrontStep::repaired;
}

}  // namespace mltcp::transport
