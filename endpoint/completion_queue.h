// A bounded, lock-free queue of completions. Any number of threads may add to it and read from it. It never loses a
// completion: posting an operation reserves its place, and fails with Code::queue_full if none is free.
//
// In an epoll loop:
//
//   add queue.file() for EPOLLIN;
//   for (;;) {
//     while ((n = queue.poll(out)) > 0) ...               // until it is empty
//     if (queue.arm() == Code::nothing) epoll_wait(...);  // Code::ok: a completion came meanwhile, poll again
//   }
//
// The file becomes readable with the first completion after arm(), and stays readable until the next arm(). Without
// arm() it does not become readable. Edge-triggered and level-triggered epoll behave alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/result.h"
#include "mltcp/endpoint/types.h"

namespace mltcp::endpoint {

class CompletionRing;
class Core;

class CompletionQueue {
 public:
  /// Endpoint::make_queue() creates queues. A queue must outlive the operations that name it. It may outlive the
  /// endpoint, which ends its operations: poll() then returns the remaining completions, and wait() no longer waits.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Moves completions to `out`, oldest first, and returns their number; 0 in a fork. Any thread may call it. Does not
  /// drive shards.
  std::size_t poll(std::span<Completion> out) noexcept;
  /// Like poll(), but waits for the first completion, for up to `limit`: 0 looks once, never() has no limit. Code::ok
  /// with `count` above 0; timed_out; invalid if `limit` is negative or `out` is empty; unsupported from a callback
  /// if it would wait; destroyed if the endpoint is closed and the queue is empty; forked. With Driving::caller it
  /// drives the shards meanwhile.
  Code wait(std::span<Completion> out, std::size_t& count, Nanos limit) noexcept;

  /// A file descriptor to wait on with poll(2) or epoll(7). Do not read or close it.
  [[nodiscard]] int file() const noexcept;
  /// Code::nothing: the queue is empty, and file() becomes readable with the next completion. Code::ok: it is not
  /// empty; poll first. Code::forked.
  Code arm() noexcept;

 private:
  friend class Core;
  friend class Endpoint;
  /// A queue with a ring of its own, or one that uses `ring`, which belongs to the core.
  CompletionQueue(std::shared_ptr<Core> core, std::unique_ptr<CompletionRing> own);
  CompletionQueue(std::shared_ptr<Core> core, CompletionRing& ring);
  [[nodiscard]] CompletionRing& ring() noexcept { return *ring_; }

  std::shared_ptr<Core> core_;
  std::shared_ptr<CompletionRing> own_;
  CompletionRing* ring_;
};

}  // namespace mltcp::endpoint
