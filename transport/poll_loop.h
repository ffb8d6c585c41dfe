// Drives programs of the transport (Pollables, such as shards) on datapaths of any kind, one thread a loop: the one
// that calls run(). It polls each as it wants to be called, and decides when to look again, when to pass the time and
// when to sleep, by what the datapaths tell (PacketIo). Sans-IO: it reads clocks and sleeps by the TimeSource that it
// is given.
//
// A program with its own loop needs none of this: it calls Shard::poll() again at the time that this returned at the
// latest, sooner when packets arrive, and soon while PacketIo::is_blocked().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/time_source.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp {

/// What a loop does while there is nothing to do.
enum class Idle : std::uint8_t {
  spin,   ///< looks again at once: least delay, a whole CPU
  pause,  ///< the same with the CPU's pause instruction in between, for the sake of its other hardware thread
  /// Sleeps until a packet or the next deadline comes, where all datapaths tell of packets (PacketIo::begin_waiting)
  /// and no datapath of another loop can hand a packet over; else it looks every 50 microseconds, and so it does for a
  /// while where packets are many and files need no arming, as sockets don't. For shared machines. See be_prompt().
  sleep,
};

/// How other threads wake a loop that sleeps, after they have left something for one of its Pollables. They look
/// whether it is armed after they have left it; the loop looks at its Pollables after it has armed. With a full fence
/// in between on both sides one of the two sees the other.
class Waker {
 public:
  virtual ~Waker() = default;
  /// Readable from the first wake-up after arm() on, until disarm().
  [[nodiscard]] virtual int file() const = 0;
  virtual void arm() = 0;
  virtual void disarm() = 0;
};

class PollLoop {
 public:
  /// `time` outlives it.
  PollLoop(TimeSource& time, Idle idle) : time_(time), idle_(idle) {}
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;
  ~PollLoop() = default;

  /// Has `pollable`, which uses `io`, polled from now on. They outlive the loop. Not while it runs.
  void attach(PacketIo& io, Pollable& pollable);

  /// Who sleeps is woken by it, too. It outlives the loop. Not while it runs.
  void wake_by(Waker& waker) { waker_ = &waker; }

  /// For programs that wait for answers: it naps only where several sleeps in a row were ended at once, and then by
  /// turns with them, and before it sleeps looks for as long as `spin` after the latest packet. Not while it runs.
  void be_prompt(Nanos spin) {
    is_prompt_ = true;
    spin_ = spin;
  }

  /// Runs until the time is `until`, request_stop() was called, or `stop` is true: it is asked in every round, at least
  /// every 20 ms, and not at all if it is empty. All are polled once more then: what is due, such as the
  /// acknowledgement of the message that `stop` waited for, still leaves. Returns whether it was stopped. Passes on
  /// what a Pollable throws.
  bool run(Nanos until, const std::function<bool()>& stop = nullptr);

  /// Ends the run that is under way, or the next. From any thread, and from signal handlers.
  void request_stop() noexcept { stop_requested_.store(true, std::memory_order_release); }

  /// That of all times here.
  [[nodiscard]] Nanos now() const { return time_.now(); }
  /// Not while it runs.
  [[nodiscard]] const LoopCounters& counters() const { return loop_.counters; }

 private:
  struct Entry {
    PacketIo* io;
    Pollable* pollable;
    Nanos due;
    std::uint64_t activity = 0;  ///< as of the round before
  };
  class Waiting;

  [[nodiscard]] bool is_stopped(const std::function<bool()>& stop);
  [[nodiscard]] bool has_nothing_before(Nanos next);

  TimeSource& time_;
  const Idle idle_;
  Waker* waker_ = nullptr;
  bool is_prompt_ = false;
  Nanos spin_;
  std::vector<Entry> entries_;
  BasicLoopTime<TimeSource> loop_;
  std::atomic<bool> stop_requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

}  // namespace mltcp
