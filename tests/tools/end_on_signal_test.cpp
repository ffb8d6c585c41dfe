// Tests how a signal ends a command. If the command handles the signal, it ends in order. If not, it ends within a
// second.
#include "end_on_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>

namespace mltcp::tools {
namespace {

constexpr int kEndedInOrder = 7;

/// Returns the status, as from wait(2), of a process that gets the signal and then runs `work`.
int status_of(int signal, const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    const EndOnSignal signals;
    raise(signal);
    work();
    _exit(kEndedInOrder);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

/// Uses the processor until `over` returns true, for at most 30 s. No test reaches this limit.
void busy_until(const std::function<bool()>& over) {
  const auto begun = std::chrono::steady_clock::now();
  while (!over() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(30)) {
  }
}

TEST(EndOnSignal, loop_that_does_not_ask__is_ended_as_by_the_signal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = status_of(signal, [] { busy_until([] { return false; }); });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(EndOnSignal, command_that_has_asked__ends_by_itself_however_long_that_takes) {
  const int status = status_of(SIGTERM, [] {
    if (!EndOnSignal::came()) return;
    const auto asked = std::chrono::steady_clock::now();
    busy_until([&] { return std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(1500); });
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), kEndedInOrder);
}

TEST(EndOnSignal, second_signal__ends_at_once) {
  const int status = status_of(SIGINT, [] {
    if (EndOnSignal::why() == "interrupted by the user") raise(SIGINT);
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

}  // namespace
}  // namespace mltcp::tools
