// A loop that drives Pollables, such as shards, on datapaths of any kind, in the thread that calls run(). It polls them
// in rounds, and decides from the state of the datapaths (PacketIo) when to poll again, pause or sleep. Sans-IO: it
// reads the time and sleeps through its TimeSource.
//
// A program with its own loop does not need this class. That loop must call Shard::poll() again when packets arrive, at
// the latest at the time that the previous call returned, and soon while PacketIo::is_blocked() is true.
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

/// How a loop spends idle time.
enum class Idle : std::uint8_t {
  spin,   ///< polls again at once; the delay is minimal, but the loop uses a whole CPU
  pause,  ///< polls again after the CPU's pause instruction, which favours the core's other hardware thread
  /// Sleeps until the next packet or deadline, if all datapaths signal packets (PacketIo::begin_waiting) and none
  /// receives packets from a datapath of another loop. Otherwise polls every 50 us. Also polls every 50 us for a while
  /// when many packets arrive, if the datapaths' descriptors need no arming (sockets). Suited to shared machines. See
  /// be_prompt().
  sleep,
};

/// Lets other threads wake a sleeping loop after they have given work to one of its Pollables. A thread first gives the
/// work, then checks whether the waker is armed. The loop first arms the waker, then polls its Pollables. With a full
/// fence between its two steps, either the thread sees the armed waker, or the loop sees the work, or both.
class Waker {
 public:
  virtual ~Waker() = default;
  /// Returns a file descriptor that is readable from the first wake-up after arm() until disarm().
  [[nodiscard]] virtual int file() const = 0;
  virtual void arm() = 0;
  virtual void disarm() = 0;
};

class PollLoop {
 public:
  /// `time` must outlive the loop.
  PollLoop(TimeSource& time, Idle idle) : time_(time), idle_(idle) {}
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;
  ~PollLoop() = default;

  /// Polls `pollable`, which uses `io`, from now on. Both must outlive the loop. Do not call this function while the
  /// loop runs.
  void attach(PacketIo& io, Pollable& pollable);

  /// Lets `waker` end the loop's sleeps. `waker` must outlive the loop. Do not call this function while the loop runs.
  void wake_by(Waker& waker) { waker_ = &waker; }

  /// Reduces the delay of answers with Idle::sleep. The loop keeps polling for `spin` after the latest packet before it
  /// sleeps. Many packets alone do not make the loop poll every 50 us (nap). It naps only after packets have ended
  /// several sleeps in a row almost at once. Then it alternates naps and sleeps. Do not call this function while the
  /// loop runs.
  void be_prompt(Nanos spin) {
    is_prompt_ = true;
    spin_ = spin;
  }

  /// Runs until the time is `until`, request_stop() is called, or `stop` returns true. `stop` is called in every round,
  /// at least every 20 ms; it may be empty. At the end, polls all Pollables once more to send packets that are due,
  /// such as the acknowledgement of the message for which `stop` waited. Returns true if request_stop() or `stop` ended
  /// the run, false if its time was over. Passes on exceptions of a Pollable.
  bool run(Nanos until, const std::function<bool()>& stop = nullptr);

  /// Ends the current run, or the next run if the loop is not running. Any thread and signal handlers may call it.
  void request_stop() noexcept { stop_requested_.store(true, std::memory_order_release); }

  /// Returns the current time, on the clock of run()'s `until`.
  [[nodiscard]] Nanos now() const { return time_.now(); }
  /// Returns the loop's counters. Do not call it while the loop runs.
  [[nodiscard]] const LoopCounters& counters() const { return loop_.counters; }

 private:
  struct Entry {
    PacketIo* io;
    Pollable* pollable;
    Nanos due;
    std::uint64_t activity = 0;  ///< PacketIo::activity() after the previous round
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
