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

bool MessageSender::take_from_lost(std::size_t room, Chunk& chunk) {
  if (!next_lost(chunk)) return false;
  Chunk& whole = lost_.front();
  const std::uint32_t whole_end = whole.offset + whole.length;
  chunk.length = static_cast<std::uint16_t>(std::min<std::size_t>(chunk.length, room));
  const std::uint32_t sent_end = chunk.offset + chunk.length;
  // Offsets wrap only in the last chunk of a 4 GiB message, at both ends in the same way.
  const std::uint32_t rest = whole_end - sent_end;
  if (rest == 0) {
    lost_.pop();
  } else {
    whole.offset = sent_end;
    whole.length = static_cast<std::uint16_t>(rest);
  }
  return true;
}

// Every byte of the oldest message has been acknowledged, but the peer lacks some: it must have accepted a forged
// packet in our name. Which one is unknown. Packets still in flight may carry the missing bytes, so a later packet is
// sent first; if the message is not whole when that is acknowledged, all of it is retransmitted.
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
