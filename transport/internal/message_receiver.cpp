// Rarely used functions of MessageReceiver (see message_receiver.h).
#include "mltcp/transport/internal/message_receiver.h"

namespace mltcp::transport {

void MessageReceiver::on_question(Nanos now) {
  if (messages_.empty()) return;
  if (asked_at_ != messages_.begin()) {
    asked_at_ = messages_.begin();
    asked_since_ = now;
  }
  if (now - asked_since_ >= kPatience) credit_known_ = false;
}

std::uint64_t MessageReceiver::untouched_from() const {
  std::uint64_t from = messages_.end();
  while (from > messages_.begin() && !messages_[from - 1].done && messages_[from - 1].received.empty()) --from;
  return from;
}

}  // namespace mltcp::transport
