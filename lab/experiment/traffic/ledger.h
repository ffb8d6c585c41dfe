// What a program knows of the messages in one direction of a connection, to tell whether the transport does what it
// promises: every operation completes once, a message is received at most once, as it was sent, into the buffers in
// their order, and one that has completed as sent is there.
//
// A message says which one it is by its first 8 bytes, and the rest follows from these, so that nothing is kept of it
// but its length. Messages below 8 bytes are counted only.
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

/// What must never happen has happened. No std::exception, so that nothing takes it for an error of a program's.
struct Violation {
  std::string what;
};
inline void require(bool holds, std::string_view what) {
  if (!holds) throw Violation{std::string(what)};
}

class Ledger {
 public:
  static constexpr std::size_t kNameBytes = 8;

  /// `stream` tells directions apart: a message of another one is none of this one's.
  explicit Ledger(std::uint32_t stream) : stream_(stream) {}

  // Tags of operations are their numbers here: sends() - 1 and receives() - 1 after these two.

  /// Memory of a new message, until it has completed. The program sends it, or takes it back.
  std::span<const std::byte> make(std::size_t bytes);
  void take_back();
  /// A new buffer, filled so that it tells where it was written to.
  std::span<std::byte> make_buffer(std::size_t bytes);
  void take_back_buffer();
  /// Its receive goes on without it (Shard::discard_receive).
  void discard(std::uint64_t tag);

  void on_sent(std::uint64_t tag, Status status);
  /// Returns the bytes that were found to be right.
  Bytes on_received(std::uint64_t tag, Status status, Bytes bytes);

  /// The program of an end is gone, and its shard: what it had posted will never complete.
  void lose_sender();
  void lose_receiver();
  /// Throws Violation if something has not completed, or if a message is missing.
  void expect_all_done() const;

  [[nodiscard]] std::uint64_t sends() const { return sends_.size(); }
  [[nodiscard]] std::uint64_t receives() const { return receives_.size(); }
  [[nodiscard]] std::uint64_t sends_open() const { return sends_open_; }
  [[nodiscard]] std::uint64_t receives_open() const { return receives_open_; }
  /// Messages that are in a buffer, and their bytes.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

  /// Which message this is the beginning of; `stream` is its direction's.
  struct Name {
    std::uint32_t stream = 0;
    std::uint32_t serial = 0;
  };
  static Name name_of(std::span<const std::byte, kNameBytes> beginning);

 private:
  enum class State : std::uint8_t { open, ok, failed };
  struct Send {
    Bytes bytes = 0;
    std::uint64_t receive = 0;  ///< tag of the receive that has it, plus 1; 0: none has
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
  // Freed as soon as they are the program's again, so that a sanitizer sees whoever uses them later. What is before
  // the first that is in use has been dropped.
  std::deque<Memory> messages_;
  std::deque<Memory> buffers_;
  std::uint64_t first_message_ = 0;
  std::uint64_t first_buffer_ = 0;
  std::uint64_t sends_open_ = 0;
  std::uint64_t receives_open_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t nameless_ = 0;   ///< messages that came and are too short to say which, or in a buffer that is
  std::uint64_t discarded_ = 0;  ///< receives whose buffers were taken back: what came is not known
  bool lost_sender_ = false;
  bool lost_receiver_ = false;
};

}  // namespace mltcp::experiment
