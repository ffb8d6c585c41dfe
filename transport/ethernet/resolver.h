// Address resolution for datapaths that build their own frames: Neighbours, a cache of recently used routes, and a
// queue of frames that wait for a neighbour, as in a kernel. Sans-IO.
//
// `Frame` is the datapath's handle of a frame that is complete except for its destination MAC address: a pointer to a
// packet buffer, or an index. Single-threaded.
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

  /// Throws InputError if `config` is out of range. At most `max_waiting` frames wait, for all neighbours together.
  Resolver(const NeighbourConfig& config, std::size_t max_waiting)
      : neighbours_(config), waiting_(max_waiting), max_waiting_(max_waiting) {}

  /// The route to a destination; valid until the next call. Recently used ones are cached until a neighbour changes. If
  /// it is not resolved, a request becomes due: then call frame().
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

  /// Queues `frame` until its neighbour is resolved or unreachable, see flush(). False if too many are waiting.
  bool wait(const Address& destination, Frame frame) {
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push({destination, frame});
    return true;
  }

  /// Processes a received frame that is not for the transport, like Neighbours::receive().
  bool receive(std::span<const std::byte> frame, Nanos now) {
    if (!neighbours_.receive(frame, now)) return false;
    control_ = true;
    return true;
  }
  /// Announces the own address.
  void announce() {
    neighbours_.announce();
    control_ = true;
  }

  /// Whether frame() and flush() must be called.
  [[nodiscard]] bool is_due() const { return control_; }
  [[nodiscard]] bool is_due(Nanos now) const { return control_ || now >= neighbours_.deadline(); }
  /// Latest time for the next call of frame() and flush(), if nothing arrives; 0 if they are due now.
  [[nodiscard]] Nanos deadline() const { return control_ ? Nanos() : neighbours_.deadline(); }

  /// Writes the next ARP or Neighbour Discovery frame that is due, like Neighbours::frame(). Call it until it returns
  /// 0, then call flush().
  std::size_t frame(std::span<std::byte> out, Nanos now) {
    control_ = false;
    return neighbours_.frame(out, now);
  }
  /// Call if no frame can be written for lack of memory: it becomes due again later.
  void postpone() { control_ = false; }
  /// Removes the frames whose neighbour is resolved or unreachable from the queue: `send(frame, mac)` or `drop(frame)`.
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
  /// Removes all waiting frames by `drop(frame)`.
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
  GrowableRing<Waiting> waiting_;  ///< never grows
  std::size_t max_waiting_;
  std::uint64_t flushed_ = ~std::uint64_t{0};
  bool control_ = false;  ///< Neighbours may have a frame to send
};

}  // namespace mltcp
