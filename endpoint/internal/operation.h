// An operation from its post to its end, and the pool of a shard's operations. The posting thread fills in an operation
// and passes it to the thread that drives the shard. That thread owns the operation until it has ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/internal/bounded_ring.h"
#include "mltcp/endpoint/internal/intrusive.h"
#include "mltcp/endpoint/types.h"

namespace mltcp::endpoint {

// A handle contains the shard in its 8 highest bits, the slot in the next 24 bits, and the generation (never 0) in the
// lower 32 bits.
struct HandleParts {
  std::uint32_t shard = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
};
inline HandleParts parts_of(std::uint64_t handle) {
  return {static_cast<std::uint32_t>(handle >> 56), static_cast<std::uint32_t>(handle >> 32) & 0xFFFFFFU,
          static_cast<std::uint32_t>(handle)};
}
inline std::uint64_t handle_of(std::uint32_t shard, std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{shard} << 56 | std::uint64_t{slot} << 32 | generation;
}

struct Link;
struct Unexpected;
class CompletionRing;

struct alignas(64) Operation {
  enum class Kind : std::uint8_t { connect, send, receive, send_tagged, receive_tagged, peek, receive_message };
  /// Progress of the operation, as its shard knows it.
  enum class Stage : std::uint8_t {
    queued,      ///< posted, not yet handled
    held,        ///< waits in a list for the connection to open, or for room, credit or frames
    posted,      ///< tagged: a receive that waits for its message
    announced,   ///< tagged: RTS was sent
    taken_back,  ///< tagged: CANCEL was sent
    granted,     ///< tagged: the peer has requested the message, which waits for room on the data connection
    matched,     ///< tagged: a receive whose CTS waits for a frame or for room
    reserved,    ///< tagged: a receive granted ahead; its message is known, but perhaps will not use the grant
    flowing,     ///< passed to the transport
    ended,
  };
  enum class Reporting : std::uint8_t { callback, queue, handle };
  /// State of a tagged operation that is granted ahead.
  struct Ahead {
    bool is_withdrawn : 1;     ///< receive: cancel() was called, and WITHDRAW is queued or sent
    bool is_here : 1;          ///< reserved receive: its message arrived as EAGER and is in the buffer
    bool is_rts_received : 1;  ///< announced send: the peer has received its RTS
    /// Announced send: the peer sent the GRANT before it received the RTS. The data must wait until is_rts_received.
    bool waits_for_rts_received : 1;
    bool is_marked : 1;      ///< send without an announcement: USED was sent
    std::uint8_t skips : 3;  ///< receive: number of times that its grant was given back
  };
  static_assert(sizeof(Ahead) == 1);

  // State that threads share. The upper half is the generation, and the lower half is one of these values.
  static constexpr std::uint64_t kPending = 1;
  static constexpr std::uint64_t kAwaited = 2;  ///< pending, and a thread waits for the end
  static constexpr std::uint64_t kDone = 3;     ///< `end` can be read
  static constexpr std::uint64_t kForgotten = 4;
  std::atomic<std::uint64_t> state{std::uint64_t{1} << 32};

  // Matching a message touches three cache lines, however long ago its receive was posted. The first cache line
  // contains the members from `state` to `link`.
  Kind kind = Kind::send;
  Stage stage = Stage::ended;  ///< only for the driving thread, even while the operation is free
  Reporting reporting = Reporting::handle;
  Take take = Take::no;
  bool has_deadline = false;
  bool is_cancelled = false;  ///< given up by cancel(), or by the time limit of a tagged operation
  bool has_job = false;
  Ahead ahead{};
  std::uint32_t slot = 0;
  std::uint32_t job = 0;
  std::byte* data = nullptr;
  Bytes length = 0;  ///< length of the message, or of the buffer
  std::uint64_t tag = 0;
  ConnectionHandle connection = 0;  ///< connection that the post named
  Link* link = nullptr;             ///< connection that has this operation in a list, or carries it

  // The second cache line is the one that the hash reads.
  alignas(64) HashHook<Operation> in_exact;

  // The third cache line contains what a completion needs.
  alignas(64) Callback callback = nullptr;
  void* context = nullptr;
  CompletionRing* queue = nullptr;
  std::uint64_t order = 0;        ///< number of the receive, in posting order
  std::uint64_t message_tag = 0;  ///< tag of the message that a receive has matched
  /// Length of the matched message; for an announced send, the length that the peer requests.
  Bytes message_bytes = 0;
  /// Before the operation starts, its time limit; afterwards, the time at which the limit expires.
  Nanos time_limit = Nanos::never();
  /// Number of the operation's GRANT; 0 if it has none. The buffer of a receive with a GRANT is in use by the
  /// transport.
  std::uint64_t grant = 0;

  std::uint64_t mask = 0;
  std::uint64_t peer_id = 0;  ///< tagged: the sender's number; for a withdrawn receive, an earlier data_progress()
  MessageHandle message = 0;  ///< message of receive_message, or message that peek() took
  std::uint16_t iteration = 0;
  ListHook<Operation> in_link;
  ListHook<Operation> in_masked;
  Completion end;  ///< result for test() and wait()

  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(state.load(std::memory_order_relaxed) >> 32);
  }
};

static_assert(offsetof(Operation, in_exact) == 64 && offsetof(Operation, callback) == 128);

using OperationList = List<Operation, &Operation::in_link>;

/// A pool of operations. Some free operations are reserved for the driving thread, which takes them without atomic
/// instructions. All threads share the remaining operations.
class OperationPool {
 public:
  OperationPool(std::uint32_t shard, std::uint32_t count)
      : shard_(shard),
        operations_(std::make_unique<Operation[]>(count + kAtHand)),
        count_(count + kAtHand),
        free_(count_) {
    at_hand_.reserve(kAtHand);
    for (std::uint32_t slot = 0; slot < count_; ++slot) {
      operations_[slot].slot = slot;
      if (slot < kAtHand)
        at_hand_.push_back(slot);
      else
        free_.push(slot);
    }
  }

  /// May be called from any thread. Returns null if no operation is free.
  Operation* take() noexcept {
    std::uint32_t slot = 0;
    return free_.pop(slot) ? &operations_[slot] : nullptr;
  }
  /// Only for the driving thread. Returns null if no operation is free.
  Operation* take_at_hand() noexcept {
    if (at_hand_.empty()) return take();
    Operation& operation = operations_[at_hand_.back()];
    at_hand_.pop_back();
    return &operation;
  }
  /// Frees an operation, whose handle is invalid from now on. May be called from any thread.
  void give_back(Operation& operation) noexcept {
    retire(operation);
    free_.push(operation.slot);
  }
  void give_back_at_hand(Operation& operation) noexcept {
    retire(operation);
    if (at_hand_.size() < kAtHand)
      at_hand_.push_back(operation.slot);
    else
      free_.push(operation.slot);
  }

  [[nodiscard]] OperationHandle handle(const Operation& operation) const {
    return handle_of(shard_, operation.slot, operation.generation());
  }
  /// Returns the operation, or null if the handle was not given out or the operation no longer exists.
  [[nodiscard]] Operation* find(const HandleParts& parts) noexcept {
    if (parts.slot >= count_) return nullptr;
    Operation& operation = operations_[parts.slot];
    const std::uint64_t state = operation.state.load(std::memory_order_acquire);
    return state >> 32 == parts.generation && (state & 0xFFFFFFFFU) != 0 ? &operation : nullptr;
  }
  [[nodiscard]] Operation& at(std::uint32_t slot) noexcept { return operations_[slot]; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

 private:
  static constexpr std::uint32_t kAtHand = 64;

  static void retire(Operation& operation) noexcept {
    const std::uint32_t next = operation.generation() + 1;
    operation.state.store(std::uint64_t{next == 0 ? 1U : next} << 32, std::memory_order_release);
  }

  const std::uint32_t shard_;
  const std::unique_ptr<Operation[]> operations_;
  const std::uint32_t count_;
  BoundedRing<std::uint32_t> free_;
  std::vector<std::uint32_t> at_hand_;
};

}  // namespace mltcp::endpoint
