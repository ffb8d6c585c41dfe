// Orderly end of a command on Ctrl-C and similar signals.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace mltcp::tools {

/// While an object of this class exists, terminating signals are only recorded. A second signal terminates the program.
/// The first signal also terminates the program if the command calls neither came() nor why() within 1 second, so that
/// no loop can block the signal. This limit grows to up to 5 seconds if the process gets little processor time. Uses
/// SIGALRM. Signals that the process ignored before stay ignored, because nohup(1) and shells with background jobs need
/// this. At most one object may exist at a time.
class EndOnSignal {
 public:
  EndOnSignal();
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

  /// Returns whether a signal has been received. came() and why() may be called from any thread.
  static bool came();
  /// Returns the reason for people: "interrupted by the user", "ended by SIGTERM", or "ended by the testbed" if a
  /// testbed started the command. Empty if no signal has been received.
  static std::string why();

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
  struct sigaction before_alarm_ {};
};

}  // namespace mltcp::tools
