// Ctrl-C and its like end what a command does, in order.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace mltcp::tools {

/// While it lives, signals that end a program are noted instead; a second one ends the program. Those that are ignored
/// stay so, as of nohup(1) and of shells for what they run in the background. One at a time.
class EndOnSignal {
 public:
  EndOnSignal();
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

  /// Whether one has come. Any thread may ask, here and below.
  static bool came();
  /// Who ended this, for people: "interrupted by its user", "ended by SIGTERM", or "ended by the testbed" that started
  /// it; empty as long as none has come.
  static std::string why();

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

}  // namespace mltcp::tools
