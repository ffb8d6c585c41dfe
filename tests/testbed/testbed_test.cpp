// Tests how a testbed runs its processes, without privileges. tests/tools/testbed_test.cpp tests the other parts with
// the command.
#include "mltcp/lab/testbed/testbed.h"
#include "../temporary_folder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace mltcp::testbed {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

/// Returns the next program that ends, or nullopt if none ends within 20 s.
std::optional<Programs::End> next(Programs& programs) {
  std::optional<Programs::End> end;
  for (const auto until = steady_clock::now() + std::chrono::seconds(20); !end && steady_clock::now() < until;)
    end = programs.wait(milliseconds(5));
  return end;
}

/// Blocks SIGCHLD as a sandbox does, so that Programs::wait() wakes when a program ends.
class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, &before_);
  }
  ~ProgramsTest() override { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

TEST_F(ProgramsTest, stopped_and_not_going_on__is_told_once_and_ends_in_order) {
  Programs programs(milliseconds(20));
  const auto number = programs.start(
      {.name = "a", .words = {"sh", "-c", "trap 'exit 7' TERM; kill -STOP $$; while :; do sleep 0.01; done"}});
  const auto end = next(programs);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->number, number);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->text, "was stopped by signal 19 and has not continued for 20 ms");
  EXPECT_TRUE(programs.runs(number));
  EXPECT_FALSE(programs.wait(milliseconds(50))) << "once is enough";
  const auto last = programs.end(number, std::chrono::seconds(20));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->status, 7) << "it is asked, and hears it";
}

TEST_F(ProgramsTest, stopped_for_a_moment_or_by_its_user__is_nothing) {
  Programs programs(std::chrono::seconds(10));
  const std::string stops = "(sleep 0.05; kill -CONT $$) & kill -STOP $$; exit 3";
  const auto number = programs.start({.name = "a", .words = {"sh", "-c", stops}});
  auto end = next(programs);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->number, number);
  EXPECT_FALSE(end->stopped);
  EXPECT_EQ(end->status, 3);
  Programs hasty(milliseconds(0));
  hasty.start({.name = "the shell", .words = {"sh", "-c", stops}, .log = {}, .on_terminal = true});
  end = next(hasty);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 3);
}

TEST_F(ProgramsTest, secret__is_in_a_file_of_its_own_and_in_no_other_program) {
  const TemporaryFolder folder;
  Programs programs;
  // /proc/PID/cmdline and /proc/PID/environ show all words and environment variables that a program gets.
  programs.start({.name = "a",
                  .words = {"sh", "-c", "cat <&3; cat /proc/$$/cmdline /proc/$$/environ | tr -d '\\0' >&2"},
                  .log = folder / "a",
                  .secret = "mltcp-key-1 00\n"});
  programs.start({.name = "b", .words = {"sh", "-c", "cat <&3"}, .log = folder / "b"});
  for (int i = 0; i < 2; ++i) {
    const auto end = next(programs);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status == 0, end->number == 0);
  }
  const auto content = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string said = content(folder / "a");
  EXPECT_TRUE(said.starts_with("mltcp-key-1 00\n")) << said;
  EXPECT_EQ(said.find("mltcp-key", 1), std::string::npos) << said;
  EXPECT_THAT(content(folder / "b"), testing::Not(HasSubstr("mltcp-key")));
}

TEST(enter_script, hosts__have_the_files_of_their_namespaces) {
  TestbedLayout layout;
  layout.hosts = {0, 7};
  const std::string script = enter_script(layout, "4711");
  EXPECT_THAT(script, HasSubstr("  0) file=101 ;;\n  7) file=102 ;;\n  switch) file=100 ;;\n"));
  EXPECT_THAT(script, HasSubstr("exec nsenter $user --net=/proc/4711/fd/$file \"${@:-${SHELL:-/bin/sh}}\"\n"));
}

TEST(enter_script, no_such_host__is_wrong_usage) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "on";
  TestbedLayout layout;
  layout.hosts = {0};
  std::ofstream(file) << enter_script(layout, "1");
  for (const char* const arguments : {"", " 3 true"}) {
    const int status = std::system(("sh " + file.string() + arguments + " 2>/dev/null").c_str());  // NOLINT(cert-*)
    EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
  }
}

}  // namespace
}  // namespace mltcp::testbed
