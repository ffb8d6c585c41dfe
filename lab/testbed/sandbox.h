// A sandbox for programs that leaves nothing behind, however it ends. It is a PID namespace whose first process dies
// with the caller, so that the kernel ends all others in it, and a folder for files, which a guard outside removes.
// Network namespaces that only these processes use disappear with them, and so do all interfaces in them.
//
// Other users than root first get a user namespace in which they are root: it gives them all rights over these
// namespaces and their interfaces, and none over anything else. If the kernel forbids that, the error says so.
//
// pid_namespaces(7), network_namespaces(7), user_namespaces(7), PR_SET_PDEATHSIG in prctl(2).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mltcp::testbed {

/// Unless the calling process is root, makes it root in a user namespace of its own, until it ends. Call it while there
/// are no other threads. Returns "cause; cure" if that is impossible, otherwise nothing.
std::string become_root_of_own();

/// Runs `work` in the first process of a sandbox, in a new network namespace, and returns its result (0 to 255).
/// `folder` exists, is empty, and is for its files. If `work` throws, that process calls `tell` and exits with status 2
/// for an InputError, otherwise 1. SIGINT, SIGTERM and SIGHUP of the caller reach it as a SIGTERM, which Programs
/// throws as Stopped; a second one ends everything at once. Call it while there are no other threads. Throws RunError
/// if a permission or a namespace is not available.
int run_sandboxed(const std::function<int(const std::filesystem::path& folder)>& work,
                  const std::function<void(const char* error)>& tell);

/// The user has asked to stop.
struct Stopped {};

struct Program {
  std::string name;                ///< for people: "host 3"
  std::vector<std::string> words;  ///< words[0] is searched in PATH
  int network = -1;                ///< an open network namespace; -1: the caller's
  std::filesystem::path log{};     ///< file for its output; empty: the caller's output
  bool output_is_error = false;    ///< without a log: standard output goes to standard error
  bool on_terminal = false;        ///< it has standard input, and gets Ctrl-C from the terminal itself
  std::string secret{};            ///< only this program can read it, from descriptor kSecretFile; up to 4096 bytes
  /// Above 0: priority of SCHED_RR, before all lower ones. For programs that leave the CPU voluntarily.
  int urgency = 0;
  int nice = 0;
  std::vector<std::pair<std::string, std::string>> environment{};
};

/// The descriptor from which a program reads its secret.
inline constexpr int kSecretFile = 3;

/// Running programs. For the first process in the sandbox only, since this reaps all its children, including orphans.
class Programs {
 public:
  using Number = std::size_t;  ///< counted from 0 as they are started
  struct End {
    Number number = 0;
    int status = 0;        ///< exit status
    int signal = 0;        ///< the signal that ended it; 0: none
    std::string text;      ///< "ended with status 1"
    bool stopped = false;  ///< it has not ended, but is stopped (SIGSTOP, ...); reported once
  };

  /// Ends all running programs.
  ~Programs() { end_all(); }
  /// A program may be stopped for `stop_limit`; one on the terminal for any time, since the user stops and continues
  /// it.
  explicit Programs(std::chrono::milliseconds stop_limit = std::chrono::seconds(1)) : stop_limit_(stop_limit) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Throws RunError if there is no such program.
  Number start(Program program);
  [[nodiscard]] const Program& program(Number number) const { return programs_[number]; }
  [[nodiscard]] bool runs(Number number) const;
  /// Returns the next program that ends within `time`, or that is stopped for too long. Throws Stopped.
  std::optional<End> wait(std::chrono::milliseconds time);
  /// Sends SIGTERM, and SIGKILL after `grace`. Returns the program's end if it was still running.
  std::optional<End> end(Number number, std::chrono::milliseconds grace);
  void end_all();
  /// Stopped is not thrown any more.
  void ignore_stop() { ignore_stop_ = true; }

 private:
  struct Stop {
    std::chrono::steady_clock::time_point since;
    int signal = 0;
    bool told = false;
  };
  std::optional<End> reap();
  std::optional<End> stopped_too_long();

  const std::chrono::milliseconds stop_limit_;
  std::vector<Program> programs_;
  std::map<pid_t, Number> running_;
  std::map<pid_t, Stop> stops_;
  bool ignore_stop_ = false;
};

/// The path at which execvp() would find a program, with the folders of add_administrators_path(); empty: none.
std::string find_program(const std::string& name);
/// Adds /usr/sbin and /sbin to PATH: iproute2 is there, and the PATH of some users lacks them.
void add_administrators_path();

/// Runs a program with `input` as its standard input. Throws RunError with its last output unless it succeeds.
void run_program(const std::vector<std::string>& words, const std::string& input);

/// The last lines of a file, at most `most`, without control characters.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most);

}  // namespace mltcp::testbed
