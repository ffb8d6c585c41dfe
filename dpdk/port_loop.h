// Drives programs of the transport (Pollables, such as shards) on ports in real time, one thread a loop: the calling
// thread, which keeps its affinity, or that of one of the Eal's cores.
//
// A program with its own loop needs none of this: it calls poll() itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/loop_time.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::dpdk {

/// What a loop does while there is nothing to do.
enum class Idle : std::uint8_t {
  spin,   ///< looks again at once: least delay, a whole CPU
  pause,  ///< the same with the CPU's pause instruction in between, for the sake of its other hardware thread
  /// Sleeps until a packet or the next deadline comes, where all ports have receive interrupts (PortConfig::interrupts)
  /// and no shard of another loop can hand a packet over; else it looks every 50 microseconds, and where these are
  /// sockets (af_packet, af_xdp) for 200 microseconds after each packet, too. For shared machines.
  sleep,
};

class PortLoop {
 public:
  /// `eal` outlives it.
  PortLoop(const Eal& eal, Idle idle);
  ~PortLoop();
  PortLoop(const PortLoop&) = delete;
  PortLoop& operator=(const PortLoop&) = delete;

  /// Has `pollable`, which uses `io` of `host`, polled from now on. They outlive the loop. Not while it runs.
  void attach(const PortHost& host, PortIo& io, Pollable& pollable);

  /// Runs until the time is `until`, request_stop() was called, or `stop` is true: it is asked in every round, at least
  /// every 20 ms, and not at all if it is empty. All are polled once more then: what is due, such as the
  /// acknowledgement of the message that `stop` waited for, still leaves. Returns whether it was stopped. Passes on
  /// what a Pollable throws.
  bool run(Nanos until, const std::function<bool()>& stop = nullptr);
  /// The same on core `core` of the Eal's list, 1 or higher, without waiting for its end. Throws InputError if there is
  /// no such core, RunError if it is busy.
  void launch(unsigned core, Nanos until);
  /// Waits for the end of what launch() began, and returns or throws what run() would. False if nothing was launched.
  bool wait();

  /// Ends the run that is under way, or the next. From any thread, and from signal handlers.
  void request_stop() noexcept;

  /// The Eal's clock: that of all times here.
  [[nodiscard]] Nanos now() const;
  /// Not while it runs.
  [[nodiscard]] const LoopCounters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
