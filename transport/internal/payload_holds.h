// The holds that a shard gives to messages whose bytes the datapath may read where they lie (TxPacket::hold), and the
// completions that wait until the datapath has let go of them: the bytes are the user's again only then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"

namespace mltcp {

class PayloadHolds {
 public:
  using Number = std::uint16_t;
  static constexpr Number none = 0;

  explicit PayloadHolds(std::uint32_t count);
  /// What the datapath still counts in lives on.
  ~PayloadHolds();
  PayloadHolds(const PayloadHolds&) = delete;
  PayloadHolds& operator=(const PayloadHolds&) = delete;

  /// A hold without packets; none if all are taken.
  Number take() {
    if (free_.empty()) return none;
    const Number number = free_.back();
    free_.pop_back();
    return number;
  }
  PayloadHold* operator[](Number number) { return number == none ? nullptr : &holds_[number]; }
  [[nodiscard]] bool in_use(Number number) const {
    return number != none && holds_[number].packets.load(std::memory_order_acquire) != 0;
  }

  /// Passes `completion` of a message to `out` once its hold, which is free again then, has no packets; at once if so
  /// now.
  void complete(const Completion& completion, Number hold, GrowableRing<Completion>& out) {
    if (in_use(hold) || (completion.kind == Completion::Kind::closed && waits(completion.connection))) {
      waiting_.push_back({completion, hold});
      return;
    }
    if (hold != none) free_.push_back(hold);
    out.push(completion);
  }
  /// Passes on what need not wait any more, in order.
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
      if (entry.hold != none) free_.push_back(entry.hold);
      out.push(entry.completion);
    }
    waiting_.resize(kept);
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Completion completion;
    Number hold = none;
  };

  [[nodiscard]] bool waits(ConnectionId connection) const { return waits(connection, waiting_.size()); }
  /// Among the first `count`. A connection's last completion comes after all others.
  [[nodiscard]] bool waits(ConnectionId connection, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (waiting_[i].completion.connection == connection) return true;
    return false;
  }

  std::unique_ptr<PayloadHold[]> holds_;  // NOLINT(modernize-avoid-c-arrays): of a set size; from 1 on
  std::size_t total_ = 0;
  std::vector<Number> free_;
  std::vector<Waiting> waiting_;
};

}  // namespace mltcp
