// Orderly end of a command on Ctrl-C and similar signals.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace mltcp::tools {

/// During its lifetime, terminating signals are only recorded; a second one terminates the program, and so does the
/// first if nobody has asked for it (came(), why()) within a second in which the program had the processor: no loop of
/// a command keeps it alive. Uses SIGALRM. Ignored signals stay ignored, as set by nohup(1) and by shells for
/// background jobs. At most one at a time.
class EndOnSignal {
 public:
  EndOnSignal();
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

  /// Whether a signal has been received. This and why() may be called by any thread.
  static bool came();
  /// For people: "interrupted by its user", "ended by SIGTERM", or "ended by the testbed" that started it; empty if no
  /// signal has been received.
  static std::string why();

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
  struct sigaction before_alarm_ {};
};

}  // namespace mltcp::tools
