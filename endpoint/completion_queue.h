// A bounded, lock-free queue of completions. Any number of threads may add to it and read from it. It never loses a
// completion: posting an operation reserves a place in the queue, and fails with Code::queue_full if none is free.
//
// Use in an epoll loop:
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
  /// Endpoint::make_queue() creates queues. A queue must outlive the operations that name it. A queue may outlive the
  /// endpoint. All operations end with the endpoint. After that, poll() returns the remaining completions, and wait()
  /// no longer waits.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Moves completions to `out`, oldest first, and returns their number. Returns 0 in a forked child. Does not drive
  /// shards. May be called from any thread.
  std::size_t poll(std::span<Completion> out) noexcept;
  /// Like poll(), but waits for the first completion for at most `limit`. If `limit` is 0, does not wait; never() waits
  /// without limit. With Driving::caller, drives the shards during the wait. Returns Code::ok if `count` is above 0,
  /// Code::timed_out after the limit, and Code::invalid if `limit` is negative or `out` is empty. Returns
  /// Code::unsupported if it would have to wait in a callback. Returns Code::destroyed if the endpoint is closed and
  /// the queue is empty, Code::forked in a forked child.
  Code wait(std::span<Completion> out, std::size_t& count, Nanos limit) noexcept;

  /// Returns a file descriptor to wait on with poll(2) or epoll(7). Programs must not read or close it.
  [[nodiscard]] int file() const noexcept;
  /// Returns Code::nothing if the queue is empty; file() then becomes readable with the next completion. Returns
  /// Code::ok if the queue is not empty; the program must then call poll() first. Returns Code::forked in a forked
  /// child.
  Code arm() noexcept;

 private:
  friend class Core;
  friend class Endpoint;
  /// The first constructor creates a queue with its own ring. The second constructor creates a queue for `ring`, which
  /// belongs to the core.
  CompletionQueue(std::shared_ptr<Core> core, std::unique_ptr<CompletionRing> own);
  CompletionQueue(std::shared_ptr<Core> core, CompletionRing& ring);
  [[nodiscard]] CompletionRing& ring() noexcept { return *ring_; }

  std::shared_ptr<Core> core_;
  std::shared_ptr<CompletionRing> own_;
  CompletionRing* ring_;
};

}  // namespace mltcp::endpoint
