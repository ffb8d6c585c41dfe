// A sandbox in which programs run, and which leaves nothing behind, however it ends. It consists of a PID namespace and
// a folder for files. The first process of the namespace dies with the caller, and the kernel then ends all other
// processes of the namespace. A guard process outside of the namespace removes the folder. Network namespaces that only
// these processes use disappear with the processes, as do all interfaces in these namespaces.
//
// A user other than root first gets a user namespace in which the user is root. This gives the user all rights over the
// sandbox's namespaces and interfaces, but no rights over anything else. If the kernel forbids user namespaces, the
// error says so.
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

/// If the calling process is not root, makes it root in a new user namespace until the process ends. Must be called
/// while there are no other threads. Returns an empty text on success, or "cause; cure" on failure.
std::string become_root_of_own();

/// Runs `work` in the first process of a sandbox, in a new network namespace. Returns the result of `work` (0 to 255).
/// `folder` is an empty folder for the files of `work`. If `work` throws, the first process calls `tell`, and exits
/// with status 2 for an InputError and with status 1 for any other error. If the caller gets SIGINT, SIGTERM or SIGHUP,
/// the first process gets SIGTERM, and Programs throws Stopped. A second signal kills the whole sandbox at once. Must
/// be called while there are no other threads. Throws RunError if a permission or a namespace is not available.
int run_sandboxed(const std::function<int(const std::filesystem::path& folder)>& work,
                  const std::function<void(const char* error)>& tell);

/// Thrown when the user has asked to stop.
struct Stopped {};

struct Program {
  std::string name;                ///< name for people, e.g. "host 3"
  std::vector<std::string> words;  ///< program and arguments; words[0] is searched in PATH
  int network = -1;                ///< descriptor of the program's network namespace; -1: the caller's namespace
  std::filesystem::path log{};     ///< file for the output; empty: the caller's output
  bool output_is_error = false;    ///< if `log` is empty: whether standard output goes to standard error
  /// Whether the program has the caller's standard input, and gets Ctrl-C from the terminal.
  bool on_terminal = false;
  std::string secret{};  ///< up to 4096 bytes that only this program can read, from descriptor kSecretFile
  /// If above 0, the real-time priority under SCHED_RR: the program runs before all programs of lower priority. Use it
  /// only for programs that release the CPU voluntarily. 0: no real-time priority.
  int urgency = 0;
  int nice = 0;
  std::vector<std::pair<std::string, std::string>> environment{};
};

/// File descriptor from which a program reads its secret.
inline constexpr int kSecretFile = 3;

/// Starts programs and waits for them. Only the first process of the sandbox may use this class, because the class
/// reaps all children of the process, including orphans.
class Programs {
 public:
  using Number = std::size_t;  ///< number of a program, from 0 in the order in which programs were started
  struct End {
    Number number = 0;
    int status = 0;    ///< exit status of the program; 0 if a signal ended it
    int signal = 0;    ///< signal that ended the program; 0 if none did
    std::string text;  ///< how the program ended, for messages, e.g. "ended with status 1"
    /// True if the program has not ended but has been stopped (by SIGSTOP, ...) for too long; reported once per stop.
    bool stopped = false;
  };

  /// Ends all running programs.
  ~Programs() { end_all(); }
  /// `stop_limit` is the time for which a program may be stopped before wait() reports it. The limit does not apply to
  /// a program on the terminal, because its user may stop and continue it.
  explicit Programs(std::chrono::milliseconds stop_limit = std::chrono::seconds(1)) : stop_limit_(stop_limit) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Starts a program and returns its number. Throws RunError if it cannot be started.
  Number start(Program program);
  [[nodiscard]] const Program& program(Number number) const { return programs_[number]; }
  [[nodiscard]] bool runs(Number number) const;
  /// Waits up to `time` until a program ends or has been stopped for too long, and returns which. Returns an empty
  /// value if none does. Throws Stopped.
  std::optional<End> wait(std::chrono::milliseconds time);
  /// Sends SIGTERM to a program and, if it still runs after `grace`, SIGKILL. Returns how the program ended. Returns an
  /// empty value if it had ended before the call.
  std::optional<End> end(Number number, std::chrono::milliseconds grace);
  void end_all();
  /// After this call, wait() no longer throws Stopped.
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

/// Returns the path of program `name`. Searches PATH as execvp() does after add_administrators_path(). Returns an empty
/// text if there is no such program.
std::string find_program(const std::string& name);
/// Adds /usr/sbin and /sbin to PATH. They contain iproute2, and the PATH of some users lacks them.
void add_administrators_path();

/// Runs a program with `input` as its standard input, and waits until it ends. If the program fails, throws RunError
/// with the first line of the program's output.
void run_program(const std::vector<std::string>& words, const std::string& input);

/// Returns the last `max` (or fewer) lines of a file. Leaves out blank lines and control characters.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t max);

}  // namespace mltcp::testbed
