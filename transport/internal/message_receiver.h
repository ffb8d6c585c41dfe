// The messages that a connection receives: the buffers that the program has posted, what of each has come, and the
// credit that the peer is given for them. The n-th message lands in the n-th buffer.
//
// Credit counts all buffers posted since the connection began. The peer is told in acknowledgements where it can be,
// and otherwise in CREDIT frames, which are repeated until they are acknowledged.
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

namespace mltcp {

class MessageReceiver {
 public:
  /// Holes and one of a message that is being received; what would make more is not taken.
  static constexpr std::size_t max_reassembly_ranges = 1024;
  /// A peer that has asked for so long waits for something.
  static constexpr Nanos patience{500'000'000};

  // A cache line each, as there are many.
  struct alignas(64) Message {
    std::byte* buffer = nullptr;  ///< null: bytes that nobody wants
    Bytes capacity = 0;
    Bytes total = 0;  ///< its length, if total_known
    std::uint64_t tag = 0;
    RangeSet received;
    bool total_known = false;
    bool done = false;  ///< completed, whole or not
  };
  static_assert(sizeof(Message) == 64);

  /// What became of a DATA frame. What is refused must not be acknowledged: to the sender it is a lost packet.
  enum class Taken : std::uint8_t {
    malformed,      ///< refused: impossible, or not what was said of the message before
    beyond_credit,  ///< refused: there is no buffer
    no_room,        ///< refused: too many holes
    nothing_new,
    news,
    oldest_whole,  ///< news: the oldest message, and perhaps others, have left
  };
  [[nodiscard]] static bool refused(Taken taken) { return taken < Taken::nothing_new; }

  // The program's buffers.

  /// Buffers posted and not completed, or completed and not the oldest.
  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  /// Messages below are complete here; this is the oldest that is not.
  [[nodiscard]] std::uint64_t whole() const { return messages_.begin(); }
  /// The credit: buffers posted since the connection began.
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

  // What arrives.

  /// `completed(const Message&)` is called for the message that the frame has made whole.
  template <typename Completed>
  Taken on_data(const wire::DataFrame& frame, Completed completed) {
    const std::uint64_t number = wire::widen(frame.message, messages_.begin());
    if (number < messages_.begin()) return Taken::nothing_new;  // completed long ago: acknowledge once more
    if (number >= messages_.end()) return Taken::beyond_credit;
    if (number + 1 == messages_.end()) credit_known_ = true;  // the peer uses the last of it
    Message& message = messages_[number];
    if (message.done) return Taken::nothing_new;
    const Bytes begin = frame.offset;
    const Bytes end = begin + frame.length;
    const bool possible = end <= wire::max_message_bytes && (frame.length > 0 || (frame.last && begin == 0));
    const bool consistent = (!message.total_known || (frame.last ? end == message.total : end < message.total)) &&
                            (!frame.last || message.received.empty() || message.received.back().end <= end);
    if (!possible || !consistent) [[unlikely]] {
      if (possible) forget(message);
      return Taken::malformed;
    }
    if (message.received.size() >= max_reassembly_ranges && message.received.would_grow(begin, end))
      return Taken::no_room;
    if (frame.last) {
      message.total = end;
      message.total_known = true;
    }
    if (frame.bytes != nullptr && message.buffer != nullptr && begin < message.capacity)
      std::memcpy(message.buffer + begin, frame.bytes, std::min<Bytes>(frame.length, message.capacity - begin));
    const Bytes added = message.received.add(begin, end);
    if (!message.total_known || (message.total != 0 && !message.received.is(0, message.total)))
      return added > 0 ? Taken::news : Taken::nothing_new;
    message.done = true;
    completed(static_cast<const Message&>(message));
    const std::uint64_t whole_before = messages_.begin();
    while (!messages_.empty() && messages_.front().done) messages_.pop();
    credit_due_ = credit_due_ || advertised_ != messages_.end();
    return messages_.begin() != whole_before ? Taken::oldest_whole : Taken::news;
  }
  /// The peer asks for something, again and again, with no message in between although there is a buffer: it waits,
  /// perhaps for credit that was taken for told.
  void on_question(Nanos now);

  // Credit.

  [[nodiscard]] bool credit_due() const { return credit_due_; }
  /// The peer certainly knows all of it: told in what is repeated until acknowledged, or used.
  [[nodiscard]] bool credit_known() const { return credit_known_; }
  /// The peer knows, or is being told, that no more comes.
  [[nodiscard]] bool final_told() const { return final_told_; }
  /// News of credit don't wait for a packet that takes them along: the peer is told at once when it has nothing left to
  /// send into, and otherwise when half of the buffers are news.
  [[nodiscard]] bool credit_urgent() const {
    if (!credit_due_) return false;
    const std::uint64_t news = messages_.end() - std::min(advertised_, messages_.end());
    return credit_lost_ || advertised_ <= messages_.begin() || news * 2 >= messages_.size();
  }
  /// The credit goes out in CONNECT or ACCEPT, or in an ACK, which nobody repeats, or in a CREDIT frame.
  void on_told_in_greeting() { advertised_ = messages_.end(); }
  void on_told_in_ack() {
    advertised_ = messages_.end();
    credit_due_ = credit_lost_ = false;
  }
  void on_told_in_credit(bool final) {
    on_told_in_ack();
    credit_known_ = true;
    final_told_ = final;
  }
  /// A CREDIT frame was lost: nobody knows what the peer knows.
  void on_credit_lost() {
    credit_due_ = credit_lost_ = true;
    credit_known_ = false;
    final_told_ = false;
  }

  // Ends that are not the peer's doing.

  [[nodiscard]] bool outstanding(std::uint64_t number) const {
    return number >= messages_.begin() && number < messages_.end() && !messages_[number].done;
  }
  [[nodiscard]] std::uint64_t tag(std::uint64_t number) const { return messages_[number].tag; }
  /// Ends an outstanding message, which stays in its place: for those that end before their turn.
  const Message& finish(std::uint64_t number) {
    messages_[number].done = true;
    return messages_[number];
  }
  /// From here on nothing has come of any message.
  [[nodiscard]] std::uint64_t untouched_from() const;
  /// Those that have ended from `from` on were never posted; their deadlines are in `deadlines`.
  void close_up(std::uint64_t from, OperationDeadlines& deadlines) {
    mltcp::close_up(messages_, from, deadlines.heap,
                    [&](std::uint64_t number) { return deadlines.of_receive(number); });
  }
  /// Ends all, as if they had never been posted: what still comes for them is not taken. `ended(const Message&)` is
  /// called for each that was outstanding.
  template <typename Ended>
  void end_all(Ended ended) {
    for (std::uint64_t number = messages_.begin(); number != messages_.end(); ++number)
      if (const Message& message = messages_[number]; !message.done) ended(message);
    messages_.truncate(messages_.begin());
  }

  void prefetch() const { messages_.prefetch(); }

 private:
  // A peer says one thing of a message's end. What was taken for its may be a lie as well as this: neither counts. It
  // sends again what is not acknowledged, this, and what it sees to be missing at the end, the whole message.
  static void forget(Message& message) {
    message.received.clear();
    message.total_known = false;
  }

  GrowableRing<Message> messages_;  ///< position = message number
  std::uint64_t advertised_ = 0;    ///< credit of which the peer was told last
  bool credit_due_ = false;
  bool credit_known_ = false;
  bool credit_lost_ = false;
  bool final_told_ = false;
  std::uint64_t asked_at_ = ~std::uint64_t{0};  ///< whole messages when the first of several questions came
  Nanos asked_since_;
};

static_assert(sizeof(MessageReceiver) == 64, "a cache line of a connection");

}  // namespace mltcp
