// How a thread that must not wait shows what it has to others that may: when somebody asks, it takes a snapshot the
// next time that it looks, and hands it over. While nobody asks, a look is one load.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

class Exchange {
 public:
  // The thread that is looked at.

  /// Somebody waits for publish().
  [[nodiscard]] bool is_asked() const noexcept { return state_.load(std::memory_order_acquire) == State::asked; }
  /// Only while is_asked().
  void publish(Snapshot snapshot) {
    snapshot_ = std::move(snapshot);
    state_.store(State::ready, std::memory_order_release);
  }

  // Any other thread.

  /// Waits for a snapshot; none if there was none in time.
  std::optional<Snapshot> ask(Nanos limit);

 private:
  enum class State : int { idle, asked, ready };
  std::atomic<State> state_{State::idle};
  Snapshot snapshot_;
  std::mutex askers_;
};

}  // namespace mltcp::live
