// The pairs of one group, and what they share: the lock, receives from any rank, and which rank failed first.
//
// One mutex guards all of a context, its pairs' and buffers' state included: the endpoint has one thread that calls
// back, and programs wait far more than they post. Lock order: the device's, then the context's.
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

/// Throws EnforceNotMet with `text` unless `holds`: for what the caller has wrong.
void enforce(bool holds, const std::string& text);

class Context final : public ::gloo::transport::Context, public std::enable_shared_from_this<Context> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Context(std::shared_ptr<OpenDevice> device, int own_rank, int ranks);
  /// Lets what was posted arrive, for a second at most, and waits until nothing refers to it.
  ~Context() override;

  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory, std::size_t bytes) override;

  [[nodiscard]] OpenDevice& device() { return *device_; }
  /// Its number among those of the device.
  [[nodiscard]] std::uint32_t group() const { return group_; }
  /// How long a wait looks before it sleeps.
  [[nodiscard]] std::chrono::nanoseconds spin() const;
  [[nodiscard]] std::mutex& mutex() { return guard_; }
  /// Told of whatever changes but for buffers, which have their own.
  [[nodiscard]] std::condition_variable& changed() { return changed_; }

  // With the lock held.

  /// Has who waits look, at once or, while there are Wakes, as they go: just before the lock is given up. Who is woken
  /// needs the lock, and would sleep again for as long as it is held.
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

  /// Throws EnforceNotMet where there is none.
  Pair& pair_to(int peer);
  void receive_from_any(UnboundBuffer& buffer, std::vector<int> ranks, std::uint64_t slot, std::size_t offset,
                        std::size_t bytes);
  /// A send waits at `pair` on `slot`: a receive from any may take it.
  void on_available(Pair& pair, std::uint64_t slot);
  /// Numbers what comes, over all pairs.
  std::uint64_t next_arrival() { return ++arrivals_; }
  /// Receives that could only come from this pair fail; the others are told of its failure.
  void on_pair_failed(Pair& pair, bool tell_others);
  /// What another rank says.
  void note(const std::string& text);
  /// "; before that ..." or nothing.
  [[nodiscard]] std::string noted() const;
  /// " with rank 1 (10.0.0.1:62400) on slot 7", and so on: what `buffer` has under way.
  [[nodiscard]] std::string awaited_by(const UnboundBuffer& buffer) const;
  /// After a time that is over: all pairs end, as those of Gloo's TCP do.
  void fail_all(const std::string& cause);
  /// Nothing of this context refers to `buffer` when it returns.
  void release(UnboundBuffer& buffer, Lock& lock);
  /// "MLTCP, rank 3".
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
  std::list<AnyReceive> any_;  ///< as they were posted
  std::uint64_t arrivals_ = 0;
  std::string note_;  ///< the first failure that is known
  bool wakes_late_ = false;
  std::vector<std::condition_variable*> woken_;
};

}  // namespace gloo::transport::mltcp
