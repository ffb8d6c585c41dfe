// Time, and waiting in it: what a loop needs of the machine that it runs on, behind an interface, so that a test or a
// simulator can put a time of its own in its place.
#pragma once

#include <cstdint>
#include <span>

#include "mltcp/base/clock.h"
#include "mltcp/base/units.h"

namespace mltcp {

/// Lets the calling thread sleep precisely while it lives: Linux ends its sleeps by 50 microseconds less late.
class PreciseSleep {
 public:
  PreciseSleep();
  ~PreciseSleep();
  PreciseSleep(const PreciseSleep&) = delete;
  PreciseSleep& operator=(const PreciseSleep&) = delete;

 private:
  int slack_ = 0;
};

/// How a wait for files ended.
enum class WaitEnd : std::uint8_t {
  timed_out,
  readable,  ///< a file is readable, or had an error, which has been taken from it
  failed,    ///< a file has failed for good: it would end every wait at once
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  /// A loop begins, or ends, in the calling thread: its sleeps in between are to be precise.
  virtual void begin_loop() {}
  virtual void end_loop() {}
  /// Does not go back.
  virtual Nanos now() = 0;
  /// Passes a moment, for the sake of the CPU's other hardware thread, without giving the CPU away.
  virtual void pause() = 0;
  /// Sleeps for `duration`, above 0 and less than a second; it may end late, but not early.
  virtual void sleep(Nanos duration) = 0;
  /// Sleeps until one of `files`, which are sockets, eventfds and the like, is readable; `most` at the longest, above 0
  /// and less than a second.
  virtual WaitEnd wait(std::span<const int> files, Nanos most) = 0;
};

/// The machine's. Used by any thread.
class SystemTime final : public TimeSource {
 public:
  /// `clock` outlives it.
  explicit SystemTime(const Clock& clock) : clock_(clock) {}
  void begin_loop() override;
  void end_loop() override;
  Nanos now() override { return clock_.now(); }
  void pause() override;
  void sleep(Nanos duration) override;
  WaitEnd wait(std::span<const int> files, Nanos most) override;

 private:
  const Clock& clock_;
};

}  // namespace mltcp
