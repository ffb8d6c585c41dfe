// The send side of a connection's messages: the posted messages, how much of each has been sent and acknowledged, the
// data to be retransmitted, and the credit granted by the peer.
//
// A message is complete when all of its bytes have been acknowledged and the peer has reported the message as whole.
// The report is necessary because an acknowledged packet may have been forged in this end's name. The report is not
// required from a peer that never sends such reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/internal/chunk.h"
#include "mltcp/transport/internal/operation_deadlines.h"
#include "mltcp/transport/internal/payload_holds.h"
#include "mltcp/transport/internal/range_set.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class MessageSender {
 public:
  /// Maximum number of receives that a peer may have posted at once.
  static constexpr std::uint64_t kMaxReceives = 65'536;
  static constexpr std::uint32_t kMaxRepairs = 8;  ///< maximum number of retransmissions of one whole message

  // Each message occupies one cache line, because there may be many messages.
  struct alignas(64) Message {
    const std::byte* data = nullptr;  ///< null for a virtual payload
    Bytes length = 0;
    Bytes next_offset = 0;  ///< offset of the first byte that has not been sent yet
    std::uint64_t tag = 0;
    RangeSet acked;
    std::uint32_t round = 0;  ///< round of the job's phase gate in which the message was posted
    PayloadHolds::Number hold = PayloadHolds::kNone;
    bool done : 1 = false;  ///< completed, or ended out of order
    /// All bytes are acknowledged; the message completes, in order, once the peer has reported it as whole.
    bool all_acked : 1 = false;
    std::uint8_t uncharged = 0;  ///< bytes still to be acknowledged that are not charged to the job
  };
  static_assert(sizeof(Message) == 64);

  // Posted messages.

  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  [[nodiscard]] std::uint64_t begin() const { return messages_.begin(); }
  [[nodiscard]] std::uint64_t end() const { return messages_.end(); }
  /// Returns the number of messages posted and not completed.
  [[nodiscard]] std::int64_t open() const { return open_; }
  [[nodiscard]] bool outstanding(std::uint64_t number) const {
    return number >= messages_.begin() && number < messages_.end() && !messages_[number].done;
  }
  Message& operator[](std::uint64_t number) { return messages_[number]; }

  void post(const std::byte* data, Bytes length, std::uint64_t tag, std::uint32_t round, std::uint8_t uncharged = 0) {
    Message& message = messages_.push_reused();
    message.data = data;
    message.length = length;
    message.next_offset = 0;
    message.done = false;
    message.all_acked = false;
    message.uncharged = uncharged;
    message.hold = PayloadHolds::kNone;
    message.round = round;
    message.tag = tag;
    message.acked.clear_to(RangeSet::kFirstHoles);
    ++open_;
  }
  /// Counts a completed message. Call this function once for each message that completes.
  void on_completed() { --open_; }

  // Credit.

  /// Processes the peer's report that it has posted `messages` buffers since the connection began, modulo 2^32. Returns
  /// false if the number is impossible. `may_rise`: whether to accept more credit than the final report granted. More
  /// credit shows that the final report was forged.
  bool raise_credit(std::uint32_t messages, bool may_rise) {
    const std::uint64_t said = wire::widen(messages, credit_);
    if (said > max_credit()) return false;
    // More credit after the final report means that the report was forged. But if messages beyond the credit have been
    // ended because of the report, the report stays final.
    if (said > credit_ && may_rise && !ended_beyond_) credit_final_ = false;
    if (!credit_final_) credit_ = std::max(credit_, said);
    return true;
  }
  /// Returns the credit. Messages with lower numbers may be sent.
  [[nodiscard]] std::uint64_t credit() const { return credit_; }
  /// Sets the initial credit, from CONNECT or ACCEPT.
  void begin_credit(std::uint32_t messages) { credit_ = std::min<std::uint64_t>(messages, max_credit()); }
  /// Processes the peer's final report: the peer has posted `messages` buffers since the connection began, modulo 2^32,
  /// and will post no more. The number may be lower than in earlier reports, because the peer may have withdrawn
  /// buffers. Returns false if the number is impossible.
  bool end_credit(std::uint32_t messages) {
    const std::uint64_t said = wire::widen(messages, credit_);
    if (said > max_credit()) return false;
    credit_ = credit_final_ ? std::min(credit_, said) : said;
    credit_final_ = true;
    return true;
  }
  [[nodiscard]] bool credit_ended() const { return credit_final_; }
  /// Returns whether bytes have been sent of a message for which the peer no longer has a buffer.
  [[nodiscard]] bool has_begun_beyond_credit() const { return unsent_from() > credit_; }

  // Data to be sent.

  /// Returns whether there is data to be retransmitted.
  [[nodiscard]] bool has_lost() const { return !lost_.empty(); }
  /// Returns whether there are unsent bytes of a message for which the peer has a buffer.
  [[nodiscard]] bool has_credited() const { return next_ < messages_.end() && next_ < credit_; }
  /// Returns the number of unsent bytes of the first message that has any. Requires that there is such a message.
  [[nodiscard]] Bytes next_unsent() const { return messages_[next_].length - messages_[next_].next_offset; }
  /// Returns whether there are unsent bytes, but no credit for them.
  [[nodiscard]] bool waits_for_credit() const { return next_ < messages_.end() && next_ >= credit_; }
  /// Returns the phase gate's round to which the first unsent bytes belong. Requires that there are unsent bytes.
  [[nodiscard]] std::uint32_t next_round() const { return messages_[next_].round; }
  /// Sets the round of all messages with unsent bytes.
  void set_rounds(std::uint32_t round) {
    for (auto number = next_; number < messages_.end(); ++number) messages_[number].round = round;
  }
  /// Returns the number of the first message of which nothing has been sent.
  [[nodiscard]] std::uint64_t unsent_from() const {
    return next_ + (next_ < messages_.end() && messages_[next_].next_offset > 0 ? 1 : 0);
  }

  /// Takes the next piece to retransmit, at most `free_bytes` bytes. Returns false if there is none.
  bool take_lost(std::size_t free_bytes, Chunk& chunk) { return !lost_.empty() && take_from_lost(free_bytes, chunk); }
  /// Takes the next unsent piece, at most `free_bytes` bytes. Requires has_credited().
  Chunk take_new(std::size_t free_bytes) {
    Message& message = messages_[next_];
    const Bytes offset = message.next_offset;
    const Bytes length = std::min<Bytes>(message.length - offset, free_bytes);
    const Chunk chunk{
        .message = next_, .offset = static_cast<std::uint32_t>(offset), .length = static_cast<std::uint16_t>(length)};
    message.next_offset = offset + length;
    if (message.next_offset == message.length) ++next_;
    return chunk;
  }

  // Results of sending.

  /// Processes the acknowledgement of a piece of an outstanding message. Returns the number of newly acknowledged bytes
  /// without the uncharged bytes. The message's bytes that are acknowledged first count as the uncharged bytes.
  Bytes on_acked(const Chunk& chunk) {
    Message& message = messages_[chunk.message];
    const Bytes newly = message.acked.add(chunk.offset, Bytes{chunk.offset} + chunk.length);
    message.all_acked = message.length == 0 || message.acked.is(0, message.length);
    if (message.uncharged == 0) [[likely]]
      return newly;
    const Bytes free = std::min<Bytes>(newly, message.uncharged);
    message.uncharged = static_cast<std::uint8_t>(message.uncharged - free);
    return newly - free;
  }
  /// Queues a lost piece for retransmission, unless its message has ended.
  void on_lost(const Chunk& chunk) {
    if (outstanding(chunk.message)) lost_.push(chunk);
  }
  /// Processes the peer's report of the number of whole messages, modulo 2^32.
  void on_whole(std::uint32_t messages) {
    reports_whole_ = true;
    const std::uint64_t whole = wire::widen(messages, whole_);
    // A report of more messages than were sent includes messages that somebody else has forged.
    if (whole > whole_ && whole <= std::max(credit_, next_)) whole_ = std::min(whole, next_);
  }
  /// Returns whether all of the oldest message has been acknowledged.
  [[nodiscard]] bool front_acked() const { return !messages_.empty() && messages_.front().all_acked; }
  /// Returns whether the peer has reported the oldest message as whole, or never sends such reports.
  [[nodiscard]] bool front_whole() const { return !reports_whole_ || messages_.begin() < whole_; }
  /// Returns whether the peer has reported the oldest message as whole.
  [[nodiscard]] bool front_reported() const {
    return reports_whole_ && !messages_.empty() && messages_.begin() < whole_;
  }
  [[nodiscard]] const Message& front() const { return messages_.front(); }
  /// Removes the oldest message, and the messages after it that ended out of order.
  void pop_front() {
    messages_.pop();
    pop_done();
  }

  /// Next step for the oldest message, which is acknowledged but not reported as whole.
  enum class FrontStep : std::uint8_t {
    ask,       ///< send a packet that must be acknowledged
    wait,      ///< the acknowledgement is still outstanding
    repaired,  ///< the message has been queued for retransmission
    failed,    ///< repeated retransmissions have not helped: fail the connection
  };
  /// Returns the next step. `next_packet` is the number of the next packet to send, and `largest_acked` the highest
  /// acknowledged number.
  FrontStep check_front(std::uint64_t next_packet, std::uint64_t largest_acked);

  // Messages that this end finishes early, because of a deadline or a closed connection.

  /// Marks an outstanding message as ended. The message keeps its position in the ring.
  const Message& finish(std::uint64_t number) {
    messages_[number].done = true;
    return messages_[number];
  }
  /// Removes the ended messages from `from` on, as if they had never been posted. No bytes of these messages have been
  /// sent. Later messages move up, together with their entries in `deadlines`.
  void close_up(std::uint64_t from, OperationDeadlines& deadlines) {
    transport::close_up(messages_, from, deadlines.heap,
                        [&](std::uint64_t number) { return deadlines.of_send(number); });
  }
  /// Ends all messages beyond the credit. Call this function when no more credit will come. Calls `ended(std::uint64_t
  /// number, const Message&)` for each message that was outstanding.
  template <typename Ended>
  void end_beyond_credit(Ended ended) {
    ended_beyond_ = true;
    for (std::uint64_t number = std::max(credit_, messages_.begin()); number < messages_.end(); ++number)
      if (!messages_[number].done) ended(number, finish(number));
    pop_done();
  }
  /// Ends all messages. Calls `ended(std::uint64_t number, const Message&)` for each message that was outstanding.
  template <typename Ended>
  void end_all(Ended ended) {
    for (; !messages_.empty(); messages_.pop())
      if (!messages_.front().done) ended(messages_.begin(), static_cast<const Message&>(messages_.front()));
    lost_.clear();
    next_ = messages_.end();
  }

  void prefetch() const { messages_.prefetch(); }

 private:
  bool take_from_lost(std::size_t free_bytes, Chunk& chunk);
  bool next_lost(Chunk& chunk);
  /// Returns the upper bound of plausible credit: the number of messages sent, plus the maximum number of posted
  /// buffers.
  [[nodiscard]] std::uint64_t max_credit() const { return next_ + kMaxReceives; }
  void pop_done() {
    while (!messages_.empty() && messages_.front().done) messages_.pop();
    next_ = std::max(next_, messages_.begin());
  }

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  GrowableRing<Message> messages_;  ///< index = message number
  std::uint64_t next_ = 0;          ///< first message with unsent bytes
  std::uint64_t credit_ = 0;        ///< messages with lower numbers may be sent
  std::uint64_t whole_ = 0;         ///< messages with lower numbers are complete, as reported by the peer
  std::int64_t open_ = 0;
  GrowableRing<Chunk> lost_;  ///< pieces to be retransmitted
  // State of the oldest message while it is acknowledged but not reported as whole.
  /// Number of the message that was last checked; kNone if no message was checked.
  std::uint64_t checked_front_ = kNone;
  /// Number of the packet whose acknowledgement will contain a current report; kNone if there is none.
  std::uint64_t asked_at_ = kNone;
  std::uint32_t repairs_ = 0;
  bool credit_final_ = false;   ///< the peer has said that it will post no more buffers
  bool ended_beyond_ = false;   ///< messages have ended because of credit_final_, so the credit no longer rises
  bool reports_whole_ = false;  ///< the peer sends reports of whole messages
};

static_assert(sizeof(MessageSender) == 120, "two cache lines of a connection but for eight bytes");

}  // namespace mltcp::transport
