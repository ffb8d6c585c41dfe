// Signals that end a command in order (see end_on_signal.h).
#include "end_on_signal.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace mltcp::tools {
namespace {

// Which signal came, 0 for none. Read by any thread.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
std::atomic<int> ended_by = 0;
static_assert(std::atomic<int>::is_always_lock_free, "or a signal handler could not write it");

}  // namespace

EndOnSignal::EndOnSignal() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { ended_by = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

EndOnSignal::~EndOnSignal() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
}

bool EndOnSignal::came() { return ended_by != 0; }

std::string EndOnSignal::why() {
  const int signal = ended_by;
  if (signal == 0) return "";
  if (signal == SIGINT) return "interrupted by its user";
  // The testbed is the first process of its PID namespace, and says so to all that it starts (testbed/testbed.cpp).
  if (getppid() == 1 && std::getenv("MLTCP_TESTBED") != nullptr) return "ended by the testbed";
  return signal == SIGHUP ? "ended by SIGHUP" : "ended by SIGTERM";
}

}  // namespace mltcp::tools
