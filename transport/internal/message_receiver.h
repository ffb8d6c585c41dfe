// The receive side of a connection's messages: the buffers that the program has posted, what has arrived in each
// buffer, and the credit granted to the peer. The n-th message is written to the n-th buffer.
//
// Credit is the number of buffers posted since the connection began. It is sent in acknowledgements where possible. If
// not, it is sent in CREDIT frames, which are repeated until acknowledged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/internal/operation_deadlines.h"
#include "mltcp/transport/internal/range_set.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

/// The memory used for the holes in all messages of a shard, in bytes; see ShardConfig::reassembly_bytes.
struct HoleLedger {
  std::uint64_t& used;
  Bytes limit;
  std::uint64_t& own;  ///< the connection's part of `used`
};

class MessageReceiver {
 public:
  /// Number of holes per message that the shard's ledger does not count.
  static constexpr std::size_t kOwnHoles = RangeSet::kFirstHoles;
  /// Maximum number of ranges of a partly received message. Data that would create more ranges is refused.
  static constexpr std::size_t kMaxReassemblyRanges = 1024;
  /// A peer that has sent PINGs for this long may not know its credit.
  static constexpr Nanos kPatience{500'000'000};

  // Each message occupies one cache line, because there may be many messages.
  struct alignas(64) Message {
    std::byte* buffer = nullptr;  ///< null if the bytes are discarded
    Bytes capacity = 0;
    Bytes total = 0;  ///< length of the message in bytes, if total_known
    std::uint64_t tag = 0;
    RangeSet received;
    bool total_known = false;
    bool done = false;  ///< completed, with or without all of its bytes
  };
  static_assert(sizeof(Message) == 64);

  /// Result of a DATA frame. Refused data must not be acknowledged, so that the sender regards it as lost.
  enum class Taken : std::uint8_t {
    malformed,       ///< refused: invalid, or contradicts an earlier frame of the message
    beyond_credit,   ///< refused: no buffer is posted for the message
    too_many_holes,  ///< refused: too many holes in this message, or in all messages of the shard
    nothing_new,
    news,
    oldest_whole,  ///< new data; the oldest message, and perhaps later messages, have completed
  };
  [[nodiscard]] static bool refused(Taken taken) { return taken < Taken::nothing_new; }

  // Posted buffers.

  /// Returns the number of buffers that are not completed, or that completed out of order.
  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  /// Returns the number of the oldest message that is not complete. All messages with lower numbers are complete.
  [[nodiscard]] std::uint64_t whole() const { return messages_.begin(); }
  /// Returns the credit, which is the number of buffers posted since the connection began.
  [[nodiscard]] std::uint64_t posted() const { return messages_.end(); }
  void post(std::byte* buffer, Bytes capacity, std::uint64_t tag) {
    Message& message = messages_.push_reused();
    message.buffer = buffer;
    message.capacity = capacity;
    message.total = 0;
    message.total_known = false;
    message.done = false;
    message.tag = tag;
    message.received.clear();
    credit_due_ = true;
    credit_known_ = false;
  }

  // Received data.

  /// Processes a DATA frame. Calls `completed(const Message&)` if the frame has completed its message.
  template <typename Completed>
  Taken on_data(const wire::DataFrame& frame, HoleLedger& holes, Completed completed) {
    const std::uint64_t number = wire::widen(frame.message, messages_.begin());
    if (number < messages_.begin())
      return Taken::nothing_new;  // completed earlier; the peer has not received the acknowledgement
    if (number >= messages_.end()) return Taken::beyond_credit;
    // The peer has used the last buffer, so it knows the credit.
    if (number + 1 == messages_.end()) credit_known_ = true;
    Message& message = messages_[number];
    if (message.done) return Taken::nothing_new;
    const Bytes begin = frame.offset;
    const Bytes end = begin + frame.length;
    const bool possible = end <= wire::kMaxMessageBytes && (frame.length > 0 || (frame.last && begin == 0));
    const bool consistent = (!message.total_known || (frame.last ? end == message.total : end < message.total)) &&
                            (!frame.last || message.received.empty() || message.received.back().end <= end);
    if (!possible || !consistent) [[unlikely]] {
      if (possible) forget(message, holes);
      return Taken::malformed;
    }
    if (message.received.size() > kOwnHoles && message.received.would_grow(begin, end) && !make_room(message, holes))
        [[unlikely]]
      return Taken::too_many_holes;
    if (frame.last) {
      message.total = end;
      message.total_known = true;
    }
    if (frame.bytes != nullptr && message.buffer != nullptr && begin < message.capacity)
      std::memcpy(message.buffer + begin, frame.bytes, std::min<Bytes>(frame.length, message.capacity - begin));
    const Bytes added =
        message.received.has_had_holes() ? add_counted(message, begin, end, holes) : message.received.add(begin, end);
    if (!message.total_known || (message.total != 0 && !message.received.is(0, message.total)))
      return added > 0 ? Taken::news : Taken::nothing_new;
    message.done = true;
    completed(static_cast<const Message&>(message));
    if (message.received.has_had_holes()) [[unlikely]]
      release(message, holes);
    const std::uint64_t whole_before = messages_.begin();
    while (!messages_.empty() && messages_.front().done) messages_.pop();
    credit_due_ = credit_due_ || advertised_ != messages_.end();
    return messages_.begin() != whole_before ? Taken::oldest_whole : Taken::news;
  }
  /// Processes a PING. If the peer has sent PINGs for kPatience although a buffer is posted, and no message has
  /// completed in this time, the peer may not know the credit. The next ACK then contains the credit again.
  void on_question(Nanos now);

  // Credit.

  [[nodiscard]] bool credit_due() const { return credit_due_; }
  /// Returns whether the peer certainly knows the current credit: it was sent reliably, or the peer has used it.
  [[nodiscard]] bool credit_known() const { return credit_known_; }
  /// Returns whether the final credit has been sent or is being sent.
  [[nodiscard]] bool final_sent() const { return final_sent_; }
  /// Returns whether credit must be sent at once, without waiting for a packet with data. Credit is urgent if it was
  /// lost, if the peer has no credit left, or if at least half of the buffers are new to the peer.
  [[nodiscard]] bool credit_urgent() const {
    if (!credit_due_) return false;
    const std::uint64_t news = messages_.end() - std::min(advertised_, messages_.end());
    return credit_lost_ || advertised_ <= messages_.begin() || news * 2 >= messages_.size();
  }
  /// Records that credit was sent: in CONNECT or ACCEPT, in an ACK (unreliable), or in a CREDIT frame (reliable).
  void on_sent_in_greeting() { advertised_ = messages_.end(); }
  void on_sent_in_ack() {
    advertised_ = messages_.end();
    credit_due_ = credit_lost_ = false;
  }
  void on_sent_in_credit(bool final) {
    on_sent_in_ack();
    credit_known_ = true;
    final_sent_ = final;
    credit_in_flight_ = true;
  }
  void on_credit_acked() { credit_in_flight_ = false; }
  /// Returns whether a CREDIT frame has been sent that is neither acknowledged nor lost.
  [[nodiscard]] bool credit_in_flight() const { return credit_in_flight_; }
  /// Makes the credit due again. Call this function if a CREDIT frame was lost, or if the peer shows that it does not
  /// know the contents of the frame.
  void on_credit_lost() {
    credit_due_ = credit_lost_ = true;
    credit_known_ = false;
    final_sent_ = false;
    credit_in_flight_ = false;
  }

  // Messages that this end finishes early, because of a deadline or a closed connection.

  [[nodiscard]] bool outstanding(std::uint64_t number) const {
    return number >= messages_.begin() && number < messages_.end() && !messages_[number].done;
  }
  [[nodiscard]] std::uint64_t tag(std::uint64_t number) const { return messages_[number].tag; }
  /// Marks an outstanding message as ended. The message keeps its position in the ring if it ends out of order.
  const Message& finish(std::uint64_t number) {
    messages_[number].done = true;
    return messages_[number];
  }
  /// Removes the buffer of an outstanding message of which nothing has arrived. The message's data will be discarded.
  /// Returns false, without effect, if part of the message has arrived.
  bool discard(std::uint64_t number, std::uint64_t new_tag) {
    Message& message = messages_[number];
    if (!message.received.empty()) return false;
    message.buffer = nullptr;
    message.tag = new_tag;
    return true;
  }
  /// Returns the offset after the last received byte of the oldest incomplete message; 0 if there is no such message.
  [[nodiscard]] Bytes end_of_oldest() const {
    return messages_.empty() ? 0 : messages_[messages_.begin()].received.back().end;
  }
  /// Returns the lowest message number such that no data has arrived for this message or any later one.
  [[nodiscard]] std::uint64_t untouched_from() const;
  /// Removes the ended messages from `from` on, as if they had never been posted. Later messages move up, together with
  /// their entries in `deadlines`.
  void close_up(std::uint64_t from, OperationDeadlines& deadlines) {
    transport::close_up(messages_, from, deadlines.heap,
                        [&](std::uint64_t number) { return deadlines.of_receive(number); });
  }
  /// Ends all messages as if they had never been posted, so late data for them is refused. Calls `ended(const
  /// Message&)` for each message that was outstanding.
  template <typename Ended>
  void end_all(HoleLedger holes, Ended ended) {
    for (std::uint64_t number = messages_.begin(); number != messages_.end(); ++number) {
      Message& message = messages_[number];
      if (!message.done) ended(static_cast<const Message&>(message));
      release(message, holes);
    }
    messages_.truncate(messages_.begin());
  }

  void prefetch() const { messages_.prefetch(); }

 private:
  // Forgets the received bytes of a message whose frames contradict each other about the message's end. Each frame may
  // be forged, so the message is received again. The sender retransmits the data that is not acknowledged. If the
  // receiver still does not report the message as whole, the sender retransmits all of the message.
  static void forget(Message& message, HoleLedger& holes) {
    release(message, holes);
    message.total_known = false;
  }
  /// Forgets the received bytes of a message. Keeps memory for at most kOwnHoles holes.
  static void release(Message& message, HoleLedger& holes) {
    const std::size_t freed = message.received.bytes_beyond(kOwnHoles);
    holes.used -= freed;
    holes.own -= freed;
    message.received.clear_to(kOwnHoles);
  }
  /// Adds a range to a message that has memory for holes, and counts the memory by which the message grows.
  static Bytes add_counted(Message& message, Bytes begin, Bytes end, HoleLedger& holes) {
    const std::size_t before = message.received.bytes_beyond(kOwnHoles);
    const Bytes added = message.received.add(begin, end);
    const std::size_t grown = message.received.bytes_beyond(kOwnHoles) - before;
    holes.used += grown;
    holes.own += grown;
    return added;
  }
  /// Returns whether a message with more than kOwnHoles holes may get another hole. A connection may use half of the
  /// memory that other connections have left free, so that no connection uses all of that memory.
  static bool make_room(const Message& message, const HoleLedger& holes) {
    if (message.received.size() >= kMaxReassemblyRanges) return false;
    if (!message.received.is_full()) return true;
    const std::size_t growth =
        message.received.bytes_beyond_if_grown(kOwnHoles) - message.received.bytes_beyond(kOwnHoles);
    const std::uint64_t others = holes.used - holes.own;
    return others < holes.limit && (holes.own + growth) * 2 <= holes.limit - others;
  }

  GrowableRing<Message> messages_;  ///< index = message number
  std::uint64_t advertised_ = 0;    ///< credit that was sent last
  bool credit_due_ = false;
  bool credit_known_ = false;
  bool credit_lost_ = false;
  bool final_sent_ : 1 = false;
  bool credit_in_flight_ : 1 = false;
  std::uint64_t asked_at_ = ~std::uint64_t{0};  ///< value of whole() when the first of several PINGs arrived
  Nanos asked_since_;
};

static_assert(sizeof(MessageReceiver) == 64, "a cache line of a connection");

}  // namespace mltcp::transport
