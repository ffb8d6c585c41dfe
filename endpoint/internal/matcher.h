// Matches messages and receives by tag. A hash of connection and tag finds the receives that compare a whole tag.
// Receives with a mask are in a list in posting order. If several receives match, the oldest is taken. Unexpected
// messages are found by connection and tag, by tag, or in order of arrival. The time to match a message depends only on
// the number of receives with a mask. The time to match a receive with a mask depends on the number of unexpected
// messages.
#pragma once

#include <cstdint>

#include "mltcp/endpoint/internal/intrusive.h"
#include "mltcp/endpoint/internal/link.h"
#include "mltcp/endpoint/internal/operation.h"

namespace mltcp::endpoint {

class Matcher {
 public:
  void reset(std::size_t receives, std::size_t messages, std::uint64_t seed) {
    exact_.reset(receives, seed);
    by_source_.reset(messages, seed * 3);
    by_tag_.reset(messages, seed * 5);
  }

  // Receives.

  void post(Operation& receive) {
    receive.order = ++order_;
    if (receive.mask == kWholeTag)
      exact_.push(receive, receive.connection, receive.tag);
    else
      masked_.push(receive);
  }
  void erase(Operation& receive) {
    if (exact_.holds(receive))
      exact_.erase(receive);
    else
      masked_.erase(receive);
  }
  // Hints for a batch of messages of one connection. Call each of the following three functions for all messages before
  // the next function.
  [[nodiscard]] std::size_t prefetch(ConnectionHandle connection, std::uint64_t tag) const {
    return exact_.prefetch(connection, tag);
  }
  void prefetch_hook(std::size_t place) const { exact_.prefetch_first(place); }
  void prefetch_receive(std::size_t place) const {
    const Operation* const receive = exact_.first_of(place);
    if (receive == nullptr) return;
    __builtin_prefetch(receive, 1);
    __builtin_prefetch(&receive->callback, 1);
  }

  /// Returns the oldest receive that matches a message. The receive stays posted.
  [[nodiscard]] Operation* receive_for(ConnectionHandle connection, std::uint64_t tag) const {
    Operation* best = exact_.find(connection, tag);
    if (Operation* const any = exact_.find(kAnyConnection, tag);
        any != nullptr && (best == nullptr || any->order < best->order))
      best = any;
    for (Operation* at = masked_.first(); at != nullptr && (best == nullptr || at->order < best->order);
         at = masked_.next(*at)) {
      const bool fits =
          (at->connection == kAnyConnection || at->connection == connection) && ((at->tag ^ tag) & at->mask) == 0;
      if (fits) return at;
    }
    return best;
  }

  // Unexpected messages.

  void hold(Unexpected& message, ConnectionHandle connection) {
    by_source_.push(message, connection, message.tag);
    by_tag_.push(message, kAnyConnection, message.tag);
    all_.push(message);
  }
  void erase(Unexpected& message) {
    by_source_.erase(message);
    by_tag_.erase(message);
    all_.erase(message);
  }
  [[nodiscard]] bool holds(const Unexpected& message) const { return all_.holds(message); }
  /// Returns the oldest message that a receive matches. The message comes from connection `link`, or from any
  /// connection if `link` is null.
  [[nodiscard]] Unexpected* message_for(Link* link, std::uint64_t tag, std::uint64_t mask) const {
    if (mask == kWholeTag)
      return link == nullptr ? by_tag_.find(kAnyConnection, tag) : by_source_.find(link->handle, tag);
    if (link == nullptr) {
      for (Unexpected* at = all_.first(); at != nullptr; at = all_.next(*at))
        if (((at->tag ^ tag) & mask) == 0) return at;
      return nullptr;
    }
    const auto& of_link = link->tagged->unexpected;
    for (Unexpected* at = of_link.first(); at != nullptr; at = of_link.next(*at))
      if (!at->claimed && ((at->tag ^ tag) & mask) == 0) return at;
    return nullptr;
  }

 private:
  std::uint64_t order_ = 0;
  FifoHash<Operation, &Operation::in_exact> exact_;
  List<Operation, &Operation::in_masked> masked_;
  FifoHash<Unexpected, &Unexpected::by_source> by_source_;
  FifoHash<Unexpected, &Unexpected::by_tag> by_tag_;
  List<Unexpected, &Unexpected::in_all> all_;
};

}  // namespace mltcp::endpoint
