// A shard's pool of payload holds, for messages that the datapath reads in place (TxPacket::hold). A completion is
// delayed until the datapath has released the message's hold, because only then does the memory belong to the user
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"

namespace mltcp::transport {

class PayloadHolds {
 public:
  using Number = std::uint16_t;
  static constexpr Number kNone = 0;

  explicit PayloadHolds(std::uint32_t count);
  /// Deliberately leaks the holds that the datapath still uses.
  ~PayloadHolds();
  PayloadHolds(const PayloadHolds&) = delete;
  PayloadHolds& operator=(const PayloadHolds&) = delete;

  /// Returns a free hold that counts no packets; `kNone` if all holds are in use.
  Number take() {
    if (free_.empty()) return kNone;
    const Number number = free_.back();
    free_.pop_back();
    return number;
  }
  PayloadHold* operator[](Number number) { return number == kNone ? nullptr : &holds_[number]; }
  [[nodiscard]] bool in_use(Number number) const {
    return number != kNone && holds_[number].packets.load(std::memory_order_acquire) != 0;
  }

  /// As soon as `hold` counts no packets, possibly at once, passes `completion` to `out` and frees `hold`. A `closed`
  /// completion also waits until no other completion of its connection is waiting.
  void complete(const Completion& completion, Number hold, GrowableRing<Completion>& out) {
    if (in_use(hold) || (completion.kind == Completion::Kind::closed && waits(completion.connection))) {
      waiting_.push_back({completion, hold});
      if (completion.kind == Completion::Kind::closed) ++ends_waiting_;
      return;
    }
    if (hold != kNone) free_.push_back(hold);
    out.push(completion);
  }
  /// Passes to `out`, in order, the waiting completions whose holds have been released.
  void poll(GrowableRing<Completion>& out) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting entry = waiting_[i];
      const bool stays = entry.completion.kind == Completion::Kind::closed ? waits(entry.completion.connection, kept)
                                                                           : in_use(entry.hold);
      if (stays) {
        waiting_[kept++] = entry;
        continue;
      }
      if (entry.hold != kNone) free_.push_back(entry.hold);
      if (entry.completion.kind == Completion::Kind::closed) --ends_waiting_;
      out.push(entry.completion);
    }
    waiting_.resize(kept);
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  /// Returns the number of waiting completions that end a connection.
  [[nodiscard]] std::uint32_t ends_waiting() const { return ends_waiting_; }

 private:
  struct Waiting {
    Completion completion;
    Number hold = kNone;
  };

  [[nodiscard]] bool waits(ConnectionId connection) const { return waits(connection, waiting_.size()); }
  /// Returns whether one of the first `count` entries belongs to `connection`. A connection's `closed` completion must
  /// come after its other completions.
  [[nodiscard]] bool waits(ConnectionId connection, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (waiting_[i].completion.connection == connection) return true;
    return false;
  }

  std::unique_ptr<PayloadHold[]> holds_;  // NOLINT(modernize-avoid-c-arrays): fixed size; indices from 1
  std::size_t total_ = 0;
  std::vector<Number> free_;
  std::vector<Waiting> waiting_;
  std::uint32_t ends_waiting_ = 0;
};

}  // namespace mltcp::transport
