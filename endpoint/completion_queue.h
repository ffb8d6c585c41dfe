// Where operations tell of their ends, for threads that come and look: bounded, lock-free, any number of threads on
// both sides. It never loses a completion: each operation has its place from when it is posted, and a queue without a
// place left refuses to be posted to (Code::queue_full).
//
// In an epoll loop:
//
//   add queue.file() for EPOLLIN;
//   for (;;) {
//     while ((n = queue.poll(out)) > 0) ...       // until it is empty
//     if (queue.arm() == Code::nothing) epoll_wait(...);  // `ok`: something came meanwhile, look again
//   }
//
// The file tells once: it becomes readable with the first completion after arm(), and stays so until the next arm(),
// which takes that. Without arm() it tells nothing. Edge-triggered epoll and level-triggered do alike.
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
  /// Made by Endpoint::make_queue(). It outlives the operations that name it; the endpoint may go first, which ends
  /// them: then poll() still gives what is there, and wait() no longer waits.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Moves completions to `out`, oldest first, and returns how many. Any thread. Drives nothing. 0 in a fork.
  std::size_t poll(std::span<Completion> out) noexcept;
  /// The same, and waits for the first one: for `limit`, 0 or more (0: one look; never(): as long as it takes).
  /// Code::ok with `count` above 0; timed_out; invalid if `limit` is negative or `out` empty; unsupported from a
  /// callback; destroyed if the endpoint is closed and nothing is left; forked. Where the caller drives it drives
  /// meanwhile.
  Code wait(std::span<Completion> out, std::size_t& count, Nanos limit) noexcept;

  /// For poll(2) and epoll(7), to be waited for and nothing else: neither read nor closed.
  [[nodiscard]] int file() const noexcept;
  /// Code::nothing: there is none now, and the file will tell of the next. Code::ok: there is one. forked.
  Code arm() noexcept;

 private:
  friend class Core;
  friend class Endpoint;
  /// Around a ring of its own, or around `ring`, which is the core's.
  CompletionQueue(std::shared_ptr<Core> core, std::unique_ptr<CompletionRing> own);
  CompletionQueue(std::shared_ptr<Core> core, CompletionRing& ring);
  [[nodiscard]] CompletionRing& ring() noexcept { return *ring_; }

  std::shared_ptr<Core> core_;
  std::shared_ptr<CompletionRing> own_;
  CompletionRing* ring_;
};

}  // namespace mltcp::endpoint
