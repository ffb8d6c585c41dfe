// What a datapath that makes its own frames needs to find MAC addresses by, whatever carries the frames: Neighbours,
// the routes used lately at hand, and the frames that wait for a neighbour, as in a kernel. Sans-IO.
//
// `Frame` is the datapath's handle of a frame that is complete but for its destination MAC address: a pointer to a
// packet buffer, an index. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/ethernet/neighbours.h"
#include "mltcp/transport/address.h"

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

  /// Throws InputError for a configuration out of range. `most_waiting` frames wait at most, of all neighbours
  /// together.
  Resolver(const NeighbourConfig& config, std::size_t most_waiting)
      : neighbours_(config), waiting_(most_waiting), most_waiting_(most_waiting) {}

  /// What is known about a destination, until the next call. Of those used lately it is at hand while nothing changes
  /// among neighbours. Asks for what is not known: serve() and frame() are due then.
  const Route& route_to(const Address& destination, Nanos now) {
    std::uint64_t words[2];
    std::memcpy(words, destination.ip.data(), sizeof words);
    Route& route = routes_[((words[0] ^ words[1]) * 0x9E3779B97F4A7C15ULL) >> (64 - kRouteBits)];
    if (route.generation == neighbours_.generation() && route.destination.ip == destination.ip) [[likely]] {
      return route;
    }
    const Neighbours::Found found = neighbours_.find(destination, now);
    // Questions become due by find() of what is not known, and also of what is no longer fresh.
    control_ = true;
    route = {destination, neighbours_.generation(), found.state, found.mac};
    return route;
  }

  /// Keeps `frame` until its neighbour is known, or known not to answer: see flush(). False if too many wait.
  bool wait(const Address& destination, Frame frame) {
    if (waiting_.size() >= most_waiting_) return false;
    waiting_.push({destination, frame});
    return true;
  }

  /// Takes a frame that no transport could use, as Neighbours::receive() does.
  bool receive(std::span<const std::byte> frame, Nanos now) {
    if (!neighbours_.receive(frame, now)) return false;
    control_ = true;
    return true;
  }
  /// Has the own address announced.
  void announce() {
    neighbours_.announce();
    control_ = true;
  }

  /// Whether frame() and flush() may have something to do.
  [[nodiscard]] bool is_due() const { return control_; }
  [[nodiscard]] bool is_due(Nanos now) const { return control_ || now >= neighbours_.deadline(); }
  /// When they have something to do at the latest although nothing arrives: at once where they are due.
  [[nodiscard]] Nanos deadline() const { return control_ ? Nanos() : neighbours_.deadline(); }

  /// Writes the next frame of ARP or Neighbour Discovery that is due, as Neighbours::frame() does; to be called until
  /// it returns 0, and then flush().
  std::size_t frame(std::span<std::byte> out, Nanos now) {
    control_ = false;
    return neighbours_.frame(out, now);
  }
  /// Where no frame can be written for want of memory: it is due again.
  void postpone() { control_ = false; }
  /// Takes frames whose fate is known out of the queue: `send(frame, mac)` or `drop(frame)`.
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
  /// Gives back all that wait, by `drop(frame)`.
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
  std::size_t most_waiting_;
  std::uint64_t flushed_ = ~std::uint64_t{0};
  bool control_ = false;  ///< Neighbours may have something to send
};

}  // namespace mltcp
