// Interface for reading the time and waiting, so that tests and simulators can substitute their own time.
#pragma once

#include <cstdint>
#include <span>

#include "mltcp/base/clock.h"
#include "mltcp/base/units.h"

namespace mltcp {

/// Enables precise sleeping for the calling thread during its lifetime: Linux then ends sleeps about 50 us less late.
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
  /// A loop begins, or ends, in the calling thread. Between the two calls its sleeps must be precise.
  virtual void begin_loop() {}
  virtual void end_loop() {}
  /// The current time; monotonic.
  virtual Nanos now() = 0;
  /// Pauses briefly in favour of the CPU's other hardware thread, without yielding the CPU.
  virtual void pause() = 0;
  /// Sleeps for `duration`, above 0 and less than a second; may end late, but not early.
  virtual void sleep(Nanos duration) = 0;
  /// Sleeps until one of `files` (sockets, eventfds and the like) is readable, for at most `most`, above 0 and less
  /// than a second.
  virtual WaitEnd wait(std::span<const int> files, Nanos most) = 0;
};

/// The system's time. Any thread may use it.
class SystemTime final : public TimeSource {
 public:
  /// `clock` must outlive this object.
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
