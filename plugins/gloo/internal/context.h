// The pairs of one group and their shared state: the lock, receives from any rank, and the rank that failed first.
//
// One mutex guards a whole context, including its pairs and buffers. This is enough, because the endpoint calls back
// from one thread, and programs wait far longer than they post. Lock the device's mutex before a context's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "mltcp/plugins/gloo/device.h"

namespace gloo::transport::mltcp {

class OpenDevice;
class Pair;
class UnboundBuffer;

/// Throws EnforceNotMet with `text` unless `holds` is true. Used for errors of the caller.
void enforce(bool holds, const std::string& text);

class Context final : public ::gloo::transport::Context, public std::enable_shared_from_this<Context> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Context(std::shared_ptr<OpenDevice> device, int own_rank, int ranks);
  /// Lets posted operations finish for at most one second. Waits until nothing refers to the context.
  ~Context() override;

  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory, std::size_t bytes) override;

  [[nodiscard]] OpenDevice& device() { return *device_; }
  /// Returns the context's number in its device.
  [[nodiscard]] std::uint32_t group() const { return group_; }
  /// Returns how long a wait polls before it sleeps.
  [[nodiscard]] std::chrono::nanoseconds spin() const;
  [[nodiscard]] std::mutex& mutex() { return guard_; }
  /// The condition variable for all changes of the context. A buffer has its own variable for changes of the buffer.
  [[nodiscard]] std::condition_variable& changed() { return changed_; }

  // Call the following functions only with the lock held.

  /// Wakes the threads that wait on `waiting`. If a Wakes object exists, its destructor wakes the threads, just before
  /// the lock is released. A thread that is woken earlier would sleep again until it gets the lock.
  void wake(std::condition_variable& waiting);
  class Wakes {
   public:
    explicit Wakes(Context& context) : context_(context) { context.wakes_late_ = true; }
    ~Wakes();
    Wakes(const Wakes&) = delete;
    Wakes& operator=(const Wakes&) = delete;

   private:
    Context& context_;
  };

  /// Returns the pair to rank `peer`. Throws EnforceNotMet if there is none.
  Pair& pair_to(int peer);
  void receive_from_any(UnboundBuffer& buffer, std::vector<int> ranks, std::uint64_t slot, std::size_t offset,
                        std::size_t bytes);
  /// Called when a send is available at `pair` on `slot`. A receive from any rank may take this send.
  void on_available(Pair& pair, std::uint64_t slot);
  /// Returns the next number for arrivals, which are counted over all pairs.
  std::uint64_t next_arrival() { return ++arrivals_; }
  /// Fails the receives that only this pair could serve. If `notify_others` is true, reports the failure to the other
  /// ranks.
  void on_pair_failed(Pair& pair, bool notify_others);
  /// Records a failure that another rank has reported.
  void note(const std::string& text);
  /// Returns "; before that ..." with the first known failure, or an empty text.
  [[nodiscard]] std::string noted() const;
  /// Describes the operations of `buffer` in progress, such as " with rank 1 (10.0.0.1:62400) on slot 7".
  [[nodiscard]] std::string awaited_by(const UnboundBuffer& buffer) const;
  /// Fails all pairs after a timeout, as Gloo's TCP transport does.
  void fail_all(const std::string& cause);
  /// Waits until nothing in this context refers to `buffer`.
  void release(UnboundBuffer& buffer, Lock& lock);
  /// Returns this rank's name for messages, such as "MLTCP, rank 3".
  [[nodiscard]] std::string who() const;

 private:
  struct AnyReceive {
    UnboundBuffer* buffer;
    std::uint64_t slot;
    std::size_t offset;
    std::size_t bytes;
    std::vector<int> ranks;
  };
  [[nodiscard]] Pair* find(int peer) const;

  const std::shared_ptr<OpenDevice> device_;
  const std::uint32_t group_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::list<AnyReceive> any_;  ///< in posting order
  std::uint64_t arrivals_ = 0;
  std::string note_;  ///< first known failure; empty if there is none
  bool wakes_late_ = false;
  std::vector<std::condition_variable*> woken_;
};

}  // namespace gloo::transport::mltcp
