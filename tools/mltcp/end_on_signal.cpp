// Records terminating signals, so that commands end in order (see end_on_signal.h).
#include "end_on_signal.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace mltcp::tools {
namespace {

// The received signal; 0 if none. Any thread may read it.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler reaches nothing else
std::atomic<int> ended_by = 0;
static_assert(std::atomic<int>::is_always_lock_free, "or a signal handler could not write it");
// Whether came() or why() was called after a signal.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> noticed = false;

// After a signal, came() or why() must be called within 1 second. While the process has used less than kMinWork since
// the signal, for example because other programs use the processor, this limit grows to at most kMaxSeconds.
constexpr unsigned kMaxSeconds = 5;
constexpr double kMinWork = 0.5;        // seconds of processor time
std::atomic<unsigned> seconds = 0;      // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<double> worked_before = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<double>::is_always_lock_free);

double seconds_worked() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void on_signal(int signal) {
  ended_by = signal;
  worked_before = seconds_worked();
  alarm(1);
}

// Ends the program like the signal's default action, unless the command has called came() or why(). Async-signal-safe.
void on_alarm(int /*signal*/) {
  if (noticed) return;
  if (seconds_worked() - worked_before < kMinWork && ++seconds < kMaxSeconds) {
    alarm(1);
    return;
  }
  constexpr std::string_view text =
      "mltcp: ended by a signal before its work was complete; results written before are kept\n";
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);  // a failure cannot be reported in any other way
  kill(getpid(), ended_by);    // SA_RESETHAND has restored the default action
  _exit(128 + ended_by);       // kill() does not end the first process of a PID namespace, for example of a container
}

}  // namespace

EndOnSignal::EndOnSignal() {
  noticed = false;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;  // the alarm must not interrupt a write of results
  sigaction(SIGALRM, &action, &before_alarm_);
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

EndOnSignal::~EndOnSignal() {
  alarm(0);
  sigaction(SIGALRM, &before_alarm_, nullptr);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

bool EndOnSignal::came() {
  if (ended_by != 0) noticed = true;
  return ended_by != 0;
}

std::string EndOnSignal::why() {
  if (!came()) return "";
  const int signal = ended_by;
  if (signal == SIGINT) return "interrupted by the user";
  // The testbed is the first process of its PID namespace, and sets this variable for all processes that it starts
  // (lab/testbed/testbed.cpp).
  if (getppid() == 1 && std::getenv("MLTCP_TESTBED") != nullptr) return "ended by the testbed";
  return signal == SIGHUP ? "ended by SIGHUP" : "ended by SIGTERM";
}

}  // namespace mltcp::tools
