// Orderly end of a command on Ctrl-C and similar signals.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace mltcp::tools {

/// During its lifetime, terminating signals are only recorded. A second one terminates the program. So does the first,
/// if came() or why() is not called within a second of processor time, so that no loop of a command can block it. Uses
/// SIGALRM. Ignored signals stay ignored, as set by nohup(1) and by shells for background jobs. At most one object at a
/// time.
class EndOnSignal {
 public:
  EndOnSignal();
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

  /// Whether a signal has been received. This and why() may be called by any thread.
  static bool came();
  /// For people: "interrupted by the user", "ended by SIGTERM", or "ended by the testbed" that started it; empty if no
  /// signal has been received.
  static std::string why();

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
  struct sigaction before_alarm_ {};
};

}  // namespace mltcp::tools
