// An interface for reading the time and for waiting, so that tests and simulators can substitute simulated time.
#pragma once

#include <cstdint>
#include <span>

#include "mltcp/base/clock.h"
#include "mltcp/base/units.h"

namespace mltcp {

/// During its lifetime, sleeps of the calling thread end closer to the requested time: about 50 us earlier than with
/// Linux's default timer slack.
class PreciseSleep {
 public:
  PreciseSleep();
  ~PreciseSleep();
  PreciseSleep(const PreciseSleep&) = delete;
  PreciseSleep& operator=(const PreciseSleep&) = delete;

 private:
  int slack_ = 0;
};

/// Result of waiting for file descriptors.
enum class WaitEnd : std::uint8_t {
  timed_out,
  readable,  ///< a descriptor is readable, or had a pending error, which has been cleared
  failed,    ///< a descriptor has failed permanently, and would end every wait at once
};

class TimeSource {
 public:
  virtual ~TimeSource() = default;
  /// Called at the beginning and at the end of a loop, in the thread of the loop. Between the two calls, sleeps of this
  /// thread must be precise.
  virtual void begin_loop() {}
  virtual void end_loop() {}
  /// Returns the current time, which never decreases.
  virtual Nanos now() = 0;
  /// Pauses briefly in favour of other hardware threads of the same core, without giving up the CPU.
  virtual void pause() = 0;
  /// Sleeps for `duration`, which must be above 0 and less than a second. The sleep may end late.
  virtual void sleep(Nanos duration) = 0;
  /// Sleeps until one of `files` (sockets, eventfds and the like) is readable, but not longer than `max`, which must
  /// be above 0 and less than a second.
  virtual WaitEnd wait(std::span<const int> files, Nanos max) = 0;
};

/// The time of the system. May be used from any thread.
class SystemTime final : public TimeSource {
 public:
  /// `clock` must outlive this object.
  explicit SystemTime(const Clock& clock) : clock_(clock) {}
  void begin_loop() override;
  void end_loop() override;
  Nanos now() override { return clock_.now(); }
  void pause() override;
  void sleep(Nanos duration) override;
  WaitEnd wait(std::span<const int> files, Nanos max) override;

 private:
  const Clock& clock_;
};

}  // namespace mltcp
