// Checks the transport's guarantees for the messages in one direction of a connection. Every operation completes once.
// A message is received at most once and unchanged. Messages fill the buffers in the order in which both were posted. A
// message that completed as sent has been received.
//
// The first 8 bytes of a message identify it and determine its other bytes. So the ledger stores only the length of a
// message. A message of less than 8 bytes cannot be identified, so it is only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/types.h"

namespace mltcp::experiment {

/// Thrown if a guarantee is violated. Not a std::exception, so that no code handles it as an ordinary error.
struct Violation {
  std::string what;
};
inline void require(bool holds, std::string_view what) {
  if (!holds) throw Violation{std::string(what)};
}

class Ledger {
 public:
  static constexpr std::size_t kNameBytes = 8;

  /// `stream` identifies the direction. Receiving a message of another stream is a violation.
  explicit Ledger(std::uint32_t stream) : stream_(stream) {}

  // The tag of an operation is its number from 0: sends() - 1 after make(), or receives() - 1 after make_buffer().

  /// make() returns the memory of a new message, valid until its send has completed. The program then sends the
  /// message, or calls take_back().
  std::span<const std::byte> make(std::size_t bytes);
  void take_back();
  /// make_buffer() returns a new buffer that is filled with a constant, so that on_received() detects writes beyond the
  /// end of a message.
  std::span<std::byte> make_buffer(std::size_t bytes);
  void take_back_buffer();
  /// Called when the program takes back the buffer of a receive, which then discards its message
  /// (Shard::discard_receive).
  void discard(std::uint64_t tag);

  void on_sent(std::uint64_t tag, Status status);
  /// Checks a completed receive. Returns the number of received bytes; 0 if the receive failed or was discarded.
  Bytes on_received(std::uint64_t tag, Status status, Bytes bytes);

  /// Called when the shard of the sender (or of the receiver) has been destroyed, so that open operations of this side
  /// never complete.
  void lose_sender();
  void lose_receiver();
  /// Throws Violation if an operation has not completed, if a message is missing, or if messages are out of order.
  void expect_all_done() const;

  [[nodiscard]] std::uint64_t sends() const { return sends_.size(); }
  [[nodiscard]] std::uint64_t receives() const { return receives_.size(); }
  [[nodiscard]] std::uint64_t sends_open() const { return sends_open_; }
  [[nodiscard]] std::uint64_t receives_open() const { return receives_open_; }
  /// Returns the number of received messages that could be identified.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

  /// Identifies a message. `stream` identifies its direction, `serial` is its number in this direction.
  struct Name {
    std::uint32_t stream = 0;
    std::uint32_t serial = 0;
  };
  static Name name_of(std::span<const std::byte, kNameBytes> beginning);

 private:
  enum class State : std::uint8_t { open, ok, failed };
  struct Send {
    Bytes bytes = 0;
    std::uint64_t receive = 0;  ///< tag of the receive that received this message, plus 1; 0 if no receive has
    State state = State::open;
  };
  struct Receive {
    State state = State::open;
    bool discarded = false;
  };
  using Memory = std::vector<std::byte>;

  std::uint32_t stream_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  // Memory of each operation, which is freed when the operation completes, so that a sanitizer detects later uses. The
  // elements before the first element in use have been removed.
  std::deque<Memory> messages_;
  std::deque<Memory> buffers_;
  std::uint64_t first_message_ = 0;
  std::uint64_t first_buffer_ = 0;
  std::uint64_t sends_open_ = 0;
  std::uint64_t receives_open_ = 0;
  std::uint64_t delivered_ = 0;
  /// Number of received messages that cannot be identified, because the message or the buffer is too short.
  std::uint64_t nameless_ = 0;
  /// Number of receives whose buffers the program took back. Which messages they received is unknown.
  std::uint64_t discarded_ = 0;
  bool lost_sender_ = false;
  bool lost_receiver_ = false;
};

}  // namespace mltcp::experiment
