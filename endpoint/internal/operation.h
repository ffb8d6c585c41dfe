// An operation from post to end, and the pool of a shard's operations. The posting thread fills in an operation and
// passes it to the thread that drives the shard, which owns it until it has ended.
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

// A handle: the shard in the 8 highest bits, the slot in the next 24, the generation (never 0) in the lower 32.
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
    held,        ///< in a list of its connection; waits until that opens, or for room, credit or frames
    posted,      ///< tagged: a receive that waits for its message
    announced,   ///< tagged: RTS sent, or requested by a GRANT
    taken_back,  ///< tagged: CANCEL sent
    granted,     ///< tagged: the peer has requested it; waits for room on the data connection
    matched,     ///< tagged: a receive whose CTS waits for a frame or for room
    reserved,    ///< tagged: a receive granted ahead; its message is known, but may not use the grant
    flowing,     ///< passed to the transport
    ended,
  };
  enum class Telling : std::uint8_t { callback, queue, handle };
  /// State of a tagged operation that is granted ahead.
  struct Ahead {
    bool is_withdrawn : 1;    ///< receive: cancel() was called, and WITHDRAW is queued or sent
    bool is_here : 1;         ///< reserved receive: its message arrived as EAGER and is in the buffer
    bool is_told : 1;         ///< announced send: the peer has received its RTS
    bool waits_for_told : 1;  ///< ... and granted it before that: the data must wait until is_told
    bool is_marked : 1;       ///< send without an announcement: USED was sent
    std::uint8_t skips : 3;   ///< receive: how often its grant was given back
  };
  static_assert(sizeof(Ahead) == 1);

  // Shared between threads: the generation in the upper half, one of these in the lower.
  static constexpr std::uint64_t kPending = 1;
  static constexpr std::uint64_t kAwaited = 2;  ///< ... and a thread waits for it
  static constexpr std::uint64_t kDone = 3;     ///< `end` can be read
  static constexpr std::uint64_t kForgotten = 4;
  std::atomic<std::uint64_t> state{std::uint64_t{1} << 32};

  // Matching a message touches three cache lines, however long ago its receive was posted: this one,
  Kind kind = Kind::send;
  Stage stage = Stage::ended;  ///< for the driving thread alone, also while the operation is free
  Telling telling = Telling::handle;
  Take take = Take::no;
  bool has_deadline = false;
  bool is_cancelled = false;  ///< given up here: by cancel(), or (tagged) by its time limit
  bool has_job = false;
  Ahead ahead{};
  std::uint32_t slot = 0;
  std::uint32_t job = 0;
  std::byte* data = nullptr;
  Bytes length = 0;  ///< of the message, or of the buffer
  std::uint64_t tag = 0;
  ConnectionHandle connection = 0;  ///< as named in the post
  Link* link = nullptr;             ///< that has it in a list, or carries it

  // where the hash finds it,
  alignas(64) HashHook<Operation> in_exact;

  // and the one of its completion.
  alignas(64) Callback callback = nullptr;
  void* context = nullptr;
  CompletionRing* queue = nullptr;
  std::uint64_t order = 0;            ///< of posted receives
  std::uint64_t message_tag = 0;      ///< of the message that a receive has matched
  Bytes message_bytes = 0;            ///< its length; announced send: the length that the peer requests
  Nanos time_limit = Nanos::never();  ///< once started: the time at which it ends
  std::uint64_t grant = 0;  ///< number of its GRANT, 0: none. A receive with one: the transport has its buffer

  std::uint64_t mask = 0;
  std::uint64_t peer_id = 0;  ///< tagged: the sender's number; while withdrawn: data_progress() at that time
  MessageHandle message = 0;  ///< of receive_message, or taken by peek()
  std::uint16_t iteration = 0;
  ListHook<Operation> in_link;
  ListHook<Operation> in_masked;
  Completion end;  ///< for test() and wait()

  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(state.load(std::memory_order_relaxed) >> 32);
  }
};

static_assert(offsetof(Operation, in_exact) == 64 && offsetof(Operation, callback) == 128);

using OperationList = List<Operation, &Operation::in_link>;

/// Some free operations are reserved for the driving thread, without atomic operations; the others are for all threads.
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

  /// Any thread. Null if none is free.
  Operation* take() noexcept {
    std::uint32_t slot = 0;
    return free_.pop(slot) ? &operations_[slot] : nullptr;
  }
  /// Driving thread only. Null if none is free.
  Operation* take_at_hand() noexcept {
    if (at_hand_.empty()) return take();
    Operation& operation = operations_[at_hand_.back()];
    at_hand_.pop_back();
    return &operation;
  }
  /// Any thread. Its handle is invalid from now on.
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
  /// Null unless the handle was given out and its operation still exists.
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
