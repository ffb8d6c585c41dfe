// The messages that a connection sends: what the program has posted, how far each has been sent and acknowledged, what
// goes out again, and the credit that the peer has given.
//
// A message is complete when all of its bytes have been acknowledged and the peer, if it tells that at all, has said
// that it is whole. Both are needed: an acknowledgement may be of a packet that somebody else has sent in our name.
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

namespace mltcp {

class MessageSender {
 public:
  static constexpr std::uint64_t most_receives = 65'536;  ///< that a peer may have posted at once
  static constexpr std::uint32_t max_repairs = 8;         ///< of one message

  // A cache line each, as there are many.
  struct alignas(64) Message {
    const std::byte* data = nullptr;  ///< null: a virtual payload
    Bytes length = 0;
    Bytes next_offset = 0;  ///< from here on nothing has been sent yet
    std::uint64_t tag = 0;
    RangeSet acked;
    std::uint32_t round = 0;  ///< of the job's phase gate, when it was posted
    PayloadHolds::Number hold = PayloadHolds::none;
    bool done = false;       ///< completed, or ended before its turn
    bool all_acked = false;  ///< completes in its turn, when the peer has said that it is whole
  };
  static_assert(sizeof(Message) == 64);

  // The program's messages.

  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  [[nodiscard]] std::uint64_t begin() const { return messages_.begin(); }
  [[nodiscard]] std::uint64_t end() const { return messages_.end(); }
  /// Posted and not completed.
  [[nodiscard]] std::int64_t open() const { return open_; }
  [[nodiscard]] bool outstanding(std::uint64_t number) const {
    return number >= messages_.begin() && number < messages_.end() && !messages_[number].done;
  }
  Message& operator[](std::uint64_t number) { return messages_[number]; }

  void post(const std::byte* data, Bytes length, std::uint64_t tag, std::uint32_t round) {
    Message& message = messages_.push_reused();
    message.data = data;
    message.length = length;
    message.next_offset = 0;
    message.done = false;
    message.all_acked = false;
    message.hold = PayloadHolds::none;
    message.round = round;
    message.tag = tag;
    message.acked.clear();
    ++open_;
  }
  /// A message of the program has come to its end: call it with each.
  void on_completed() { --open_; }

  // Credit.

  /// The peer has posted `messages` buffers since the connection began, modulo 2^32. False if that cannot be.
  /// `may_rise`: the peer may post more although it has said that it won't, as that was somebody else's word.
  bool raise_credit(std::uint32_t messages, bool may_rise) {
    const std::uint64_t said = wire::widen(messages, credit_);
    if (said > most_credit()) return false;
    // After the peer's last word, it says no more: that word was somebody else's. Once it has been acted on, it stays
    // the last, as messages beyond may have been given up.
    if (said > credit_ && may_rise) credit_final_ = false;
    if (!credit_final_) credit_ = std::max(credit_, said);
    return true;
  }
  /// Messages below this may be sent.
  [[nodiscard]] std::uint64_t credit() const { return credit_; }
  /// The first that the peer says of it.
  void begin_credit(std::uint32_t messages) { credit_ = std::min<std::uint64_t>(messages, most_credit()); }
  /// The peer will post no more.
  void end_credit() { credit_final_ = true; }
  [[nodiscard]] bool credit_ended() const { return credit_final_; }

  // What is to be sent.

  /// Something of a lost packet.
  [[nodiscard]] bool has_lost() const { return !lost_.empty(); }
  /// Bytes that have not been sent yet, of a message that the peer has a buffer for.
  [[nodiscard]] bool has_credited() const { return next_ < messages_.end() && next_ < credit_; }
  /// Bytes that have not been sent yet, but no buffer of the peer's.
  [[nodiscard]] bool waits_for_credit() const { return next_ < messages_.end() && next_ >= credit_; }
  /// The phase gate's round of the first bytes that have not been sent yet; there are some.
  [[nodiscard]] std::uint32_t next_round() const { return messages_[next_].round; }
  /// Of all messages from there on.
  void set_rounds(std::uint32_t round) {
    for (auto number = next_; number < messages_.end(); ++number) messages_[number].round = round;
  }
  /// The first message of which nothing has been sent.
  [[nodiscard]] std::uint64_t unsent_from() const {
    return next_ + (next_ < messages_.end() && messages_[next_].next_offset > 0 ? 1 : 0);
  }

  /// The next piece of what was lost, of at most `room` bytes; false if there is nothing.
  bool take_lost(std::size_t room, Chunk& chunk) { return !lost_.empty() && take_from_lost(room, chunk); }
  /// The next piece of what has not been sent yet; has_credited().
  Chunk take_new(std::size_t room) {
    Message& message = messages_[next_];
    const Bytes offset = message.next_offset;
    const Bytes length = std::min<Bytes>(message.length - offset, room);
    const Chunk chunk{
        .message = next_, .offset = static_cast<std::uint32_t>(offset), .length = static_cast<std::uint16_t>(length)};
    message.next_offset = offset + length;
    if (message.next_offset == message.length) ++next_;
    return chunk;
  }

  // What becomes of it.

  /// A piece of an outstanding message has been acknowledged; returns how many bytes of it had not been before.
  Bytes on_acked(const Chunk& chunk) {
    Message& message = messages_[chunk.message];
    const Bytes newly = message.acked.add(chunk.offset, Bytes{chunk.offset} + chunk.length);
    message.all_acked = message.length == 0 || message.acked.is(0, message.length);
    return newly;
  }
  /// A piece is to be sent again, unless its message has come to its end.
  void on_lost(const Chunk& chunk) {
    if (outstanding(chunk.message)) lost_.push(chunk);
  }
  /// The peer says how many messages are whole, modulo 2^32.
  void on_whole(std::uint32_t messages) {
    tells_whole_ = true;
    const std::uint64_t whole = wire::widen(messages, whole_);
    // Beyond, in buffers that it told of, are somebody else's messages.
    if (whole > whole_ && whole <= std::max(credit_, next_)) whole_ = std::min(whole, next_);
  }
  /// All of the oldest message has been acknowledged.
  [[nodiscard]] bool front_acked() const { return !messages_.empty() && messages_.front().all_acked; }
  /// ... and the peer does not deny that it has it. A peer that never tells is believed as it is.
  [[nodiscard]] bool front_whole() const { return !tells_whole_ || messages_.begin() < whole_; }
  [[nodiscard]] const Message& front() const { return messages_.front(); }
  /// The oldest message is done, and those after it that ended before their turn.
  void pop_front() {
    messages_.pop();
    pop_done();
  }

  /// What is to be done for the oldest message, which is acknowledged but not whole.
  enum class Doubt : std::uint8_t {
    ask,       ///< send something that asks for an acknowledgement
    wait,      ///< until that has come
    repaired,  ///< nothing: it is sent once more
    hopeless,  ///< the peer says so whatever it gets
  };
  /// `next_packet`: the number of the packet to be sent next; `largest_acked`: the highest that was acknowledged.
  Doubt doubt_front(std::uint64_t next_packet, std::uint64_t largest_acked);

  // Ends that are not the peer's doing.

  /// Ends an outstanding message, which stays in its place.
  const Message& finish(std::uint64_t number) {
    messages_[number].done = true;
    return messages_[number];
  }
  /// Those that have ended from `from` on, of which nothing has been sent, were never posted; their deadlines are in
  /// `deadlines`.
  void close_up(std::uint64_t from, OperationDeadlines& deadlines) {
    mltcp::close_up(messages_, from, deadlines.heap, [&](std::uint64_t number) { return deadlines.of_send(number); });
  }
  /// Ends all for which no buffer was posted, and none will be. `ended(const Message&)` is called for each that was
  /// outstanding.
  template <typename Ended>
  void end_beyond_credit(Ended ended) {
    for (std::uint64_t number = std::max(credit_, messages_.begin()); number < messages_.end(); ++number)
      if (!messages_[number].done) ended(finish(number));
    pop_done();
  }
  /// Ends all. `ended(std::uint64_t number, const Message&)` is called for each that was outstanding.
  template <typename Ended>
  void end_all(Ended ended) {
    for (; !messages_.empty(); messages_.pop())
      if (!messages_.front().done) ended(messages_.begin(), static_cast<const Message&>(messages_.front()));
    lost_.clear();
    next_ = messages_.end();
  }

  void prefetch() const { messages_.prefetch(); }

 private:
  bool take_from_lost(std::size_t room, Chunk& chunk);
  bool next_lost(Chunk& chunk);
  /// The peer can't have more whole messages than were sent, nor more buffers beyond them than any end may post.
  [[nodiscard]] std::uint64_t most_credit() const { return next_ + most_receives; }
  void pop_done() {
    while (!messages_.empty() && messages_.front().done) messages_.pop();
    next_ = std::max(next_, messages_.begin());
  }

  static constexpr std::uint64_t none = ~std::uint64_t{0};

  GrowableRing<Message> messages_;  ///< position = message number
  std::uint64_t next_ = 0;          ///< first message with unsent bytes
  std::uint64_t credit_ = 0;        ///< messages below this may be sent
  std::uint64_t whole_ = 0;         ///< messages below are complete at the peer, as it said
  std::int64_t open_ = 0;
  GrowableRing<Chunk> lost_;  ///< pieces to be sent again
  // Of a message that the peer has acknowledged and does not have.
  std::uint64_t doubted_ = none;   ///< its number
  std::uint64_t asked_at_ = none;  ///< the packet whose acknowledgement tells for certain
  std::uint32_t repairs_ = 0;
  bool credit_final_ = false;  ///< the peer said that no more comes
  bool tells_whole_ = false;   ///< the peer has said how many messages are whole: it always does
};

static_assert(sizeof(MessageSender) == 120, "two cache lines of a connection but for eight bytes");

}  // namespace mltcp
