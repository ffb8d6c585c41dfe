// A sandbox for programs that leaves nothing behind, however it ends. It consists of a PID namespace and a folder for
// files. The first process of the namespace dies with the caller, and the kernel then ends all other processes of the
// namespace. A guard process outside of the namespace removes the folder. Network namespaces that only these processes
// use disappear with them, and so do all interfaces in these namespaces.
//
// Users other than root first get a user namespace in which they are root. It gives them all rights over these
// namespaces and their interfaces, but no rights over anything else. If the kernel forbids that, the error says so.
//
// See pid_namespaces(7), network_namespaces(7), user_namespaces(7), and PR_SET_PDEATHSIG in prctl(2).
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

/// Unless the calling process is root, makes it root in its own user namespace, until it ends. Must be called while
/// there are no other threads. Returns "cause; cure" if that is impossible, or an empty text on success.
std::string become_root_of_own();

/// Runs `work` in the first process of a sandbox, in a new network namespace. Returns the result of `work` (0 to 255).
/// `folder` is an empty folder for the files of `work`. If `work` throws, the process calls `tell` and exits with
/// status 2 for an InputError and with status 1 for any other error. SIGINT, SIGTERM and SIGHUP of the caller reach the
/// process as SIGTERM, for which Programs throws Stopped. A second signal ends everything at once. Must be called while
/// there are no other threads. Throws RunError if a permission or a namespace is not available.
int run_sandboxed(const std::function<int(const std::filesystem::path& folder)>& work,
                  const std::function<void(const char* error)>& tell);

/// Thrown when the user has asked to stop.
struct Stopped {};

struct Program {
  std::string name;                ///< name for people, e.g. "host 3"
  std::vector<std::string> words;  ///< program and arguments; words[0] is searched in PATH
  int network = -1;                ///< descriptor of the program's network namespace; -1: the caller's namespace
  std::filesystem::path log{};     ///< file for the output; empty: the caller's output
  bool output_is_error = false;    ///< whether standard output goes to standard error, if there is no log
  bool on_terminal = false;        ///< whether the program has standard input, and gets Ctrl-C from the terminal
  std::string secret{};            ///< up to 4096 bytes that only this program can read, from descriptor kSecretFile
  /// If above 0, the priority of SCHED_RR: the program runs before all programs of lower priority. Only for programs
  /// that leave the CPU voluntarily.
  int urgency = 0;
  int nice = 0;
  std::vector<std::pair<std::string, std::string>> environment{};
};

/// File descriptor from which a program reads its secret.
inline constexpr int kSecretFile = 3;

/// Starts programs and waits for them. Only for the first process in the sandbox, because it reaps all children of that
/// process, including orphans.
class Programs {
 public:
  using Number = std::size_t;  ///< programs are numbered from 0 in the order of their starts
  struct End {
    Number number = 0;
    int status = 0;        ///< exit status
    int signal = 0;        ///< signal that ended the program; 0 if none did
    std::string text;      ///< for messages, e.g. "ended with status 1"
    bool stopped = false;  ///< true if the program has not ended but is stopped (SIGSTOP, ...); reported once
  };

  /// Ends all running programs.
  ~Programs() { end_all(); }
  /// `stop_limit` is the time for which a program may be stopped before wait() reports it. There is no limit for a
  /// program on the terminal, because the user stops and continues it.
  explicit Programs(std::chrono::milliseconds stop_limit = std::chrono::seconds(1)) : stop_limit_(stop_limit) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Starts a program and returns its number. Throws RunError if it cannot be started.
  Number start(Program program);
  [[nodiscard]] const Program& program(Number number) const { return programs_[number]; }
  [[nodiscard]] bool runs(Number number) const;
  /// Returns the next program that ends within `time`, or that has been stopped for too long. Returns an empty value if
  /// there is none. Throws Stopped.
  std::optional<End> wait(std::chrono::milliseconds time);
  /// Sends SIGTERM to a program, and SIGKILL after `grace`. Returns how the program ended if it was still running.
  std::optional<End> end(Number number, std::chrono::milliseconds grace);
  void end_all();
  /// From now on, wait() does not throw Stopped.
  void ignore_stop() { ignore_stop_ = true; }

 private:
  struct Stop {
    std::chrono::steady_clock::time_point since;
    int signal = 0;
    bool is_reported = false;
  };
  std::optional<End> reap();
  std::optional<End> stopped_too_long();

  const std::chrono::milliseconds stop_limit_;
  std::vector<Program> programs_;
  std::map<pid_t, Number> running_;
  std::map<pid_t, Stop> stops_;
  bool ignore_stop_ = false;
};

/// Returns the path at which execvp() would find a program, with the folders of add_administrators_path(). Returns an
/// empty text if there is none.
std::string find_program(const std::string& name);
/// Adds /usr/sbin and /sbin to PATH. They contain iproute2, and the PATH of some users lacks them.
void add_administrators_path();

/// Runs a program with `input` as its standard input, and waits until it ends. Throws RunError with the first line of
/// its output unless it succeeds.
void run_program(const std::vector<std::string>& words, const std::string& input);

/// Returns the last lines of a file that are not blank, at most `max`, without control characters.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t max);

}  // namespace mltcp::testbed
