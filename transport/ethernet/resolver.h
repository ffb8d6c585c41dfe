// Address resolution for datapaths that build their own frames. Combines a neighbour table (Neighbours), a cache of
// recently used routes, and, as in a kernel, a queue of frames that wait until a neighbour is resolved. Performs no
// input or output itself. Single-threaded.
//
// `Frame` identifies a frame that is complete except for its destination MAC address. It is the datapath's pointer to a
// packet buffer, or an index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/neighbours.h"

namespace mltcp {

template <typename Frame>
class Resolver {
 public:
  struct Route {
    Address destination;
    std::uint64_t generation = ~std::uint64_t{0};
    Neighbours::State state = Neighbours::State::unreachable;
    encap::MacAddress mac{};
  };

  /// Throws InputError if `config` is out of range. `max_waiting` limits the number of waiting frames for all
  /// neighbours together.
  Resolver(const NeighbourConfig& config, std::size_t max_waiting)
      : neighbours_(config), waiting_(max_waiting), max_waiting_(max_waiting) {}

  /// Returns the route to a destination, valid until the next call. Recently used routes are cached until the neighbour
  /// table changes. If the neighbour is not resolved, a request becomes due, and the caller must call frame().
  const Route& route_to(const Address& destination, Nanos now) {
    std::uint64_t words[2];
    std::memcpy(words, destination.ip.data(), sizeof words);
    Route& route = routes_[((words[0] ^ words[1]) * 0x9E3779B97F4A7C15ULL) >> (64 - kRouteBits)];
    if (route.generation == neighbours_.generation() && route.destination.ip == destination.ip) [[likely]] {
      return route;
    }
    const Neighbours::Found found = neighbours_.find(destination, now);
    // find() makes requests due for unresolved entries, and also for stale ones.
    control_ = true;
    route = {destination, neighbours_.generation(), found.state, found.mac};
    return route;
  }

  /// Queues `frame` until its neighbour is resolved or unreachable; see flush(). Returns false, without queueing the
  /// frame, if `max_waiting` frames are already waiting.
  bool wait(const Address& destination, Frame frame) {
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push({destination, frame});
    return true;
  }

  /// Processes a received frame that is not for the transport. Returns the result of Neighbours::receive().
  bool receive(std::span<const std::byte> frame, Nanos now) {
    if (!neighbours_.receive(frame, now)) return false;
    control_ = true;
    return true;
  }
  /// Makes the next frame() announce this host's address.
  void announce() {
    neighbours_.announce();
    control_ = true;
  }

  /// Returns whether frame() and flush() must be called. Without `now`, requests that become due as time passes are
  /// ignored.
  [[nodiscard]] bool is_due() const { return control_; }
  [[nodiscard]] bool is_due(Nanos now) const { return control_ || now >= neighbours_.deadline(); }
  /// Returns the latest time for the next call of frame() and flush(); 0 if they are due now. An arriving frame may
  /// require an earlier call.
  [[nodiscard]] Nanos deadline() const { return control_ ? Nanos() : neighbours_.deadline(); }

  /// Writes the next due ARP or Neighbour Discovery frame to `out` and returns its length, like Neighbours::frame().
  /// Call this function until it returns 0, then call flush().
  std::size_t frame(std::span<std::byte> out, Nanos now) {
    control_ = false;
    return neighbours_.frame(out, now);
  }
  /// Postpones a due frame. Call this if there is no memory for the frame; it becomes due again at deadline().
  void postpone() { control_ = false; }
  /// Removes from the queue each frame whose neighbour is resolved or unreachable. Calls `send(frame, mac)` if the
  /// neighbour is resolved, or `drop(frame)` if it is unreachable.
  template <typename Send, typename Drop>
  void flush(Nanos now, Send send, Drop drop) {
    if (waiting_.empty() || flushed_ == neighbours_.generation()) return;
    flushed_ = neighbours_.generation();
    for (std::size_t left = waiting_.size(); left > 0; --left) {
      const Waiting next = waiting_.front();
      waiting_.pop();
      const Route& route = route_to(next.destination, now);
      if (route.state == Neighbours::State::known)
        send(next.frame, route.mac);
      else if (route.state == Neighbours::State::asked)
        waiting_.push(next);
      else
        drop(next.frame);
    }
  }
  /// Removes all waiting frames and calls `drop(frame)` for each.
  template <typename Drop>
  void clear(Drop drop) {
    for (; !waiting_.empty(); waiting_.pop()) drop(waiting_.front().frame);
  }

  [[nodiscard]] const NeighbourCounters& counters() const { return neighbours_.counters(); }

 private:
  struct Waiting {
    Address destination;
    Frame frame{};
  };
  static constexpr unsigned kRouteBits = 6;

  std::array<Route, std::size_t{1} << kRouteBits> routes_{};
  Neighbours neighbours_;
  GrowableRing<Waiting> waiting_;  ///< never grows beyond max_waiting_
  std::size_t max_waiting_;
  std::uint64_t flushed_ = ~std::uint64_t{0};
  bool control_ = false;  ///< set if Neighbours may have a frame to send
};

}  // namespace mltcp
