// A place for programs that leaves nothing behind, however it ends: a PID namespace whose first process dies with the
// caller, whereupon the kernel ends all others in it, and a folder for files that a guard outside of it removes.
// Network namespaces that only processes in there know go with them, and with the namespaces all interfaces.
//
// Who isn't root gets a user namespace first, in which he is: it gives him all rights over these namespaces and their
// interfaces, and none over anything else. Where the kernel keeps users from making one, that is told.
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

/// Has the calling process be root in a user namespace of its own, where it has the rights of no root yet. It stays so:
/// for who makes namespaces and ends. Call it without threads. Returns "cause; cure" if that can't be, else nothing.
std::string become_root_of_own();

/// Runs `work` in a process of its own as above, in a new network namespace, and returns its result (0 to 255), with
/// `folder`, which exists and is empty, as its place for files. What it throws is told to `tell`, there, and becomes
/// the exit status: 2 for an InputError, 1 for the rest. SIGINT, SIGTERM and SIGHUP of the caller reach it as a
/// SIGTERM, which Programs throws as Stopped; a second one ends everything at once. Call it without threads. Throws
/// RunError where there is no permission or no namespace to be had.
int run_sandboxed(const std::function<int(const std::filesystem::path& folder)>& work,
                  const std::function<void(const char* error)>& tell);

/// The user has had enough.
struct Stopped {};

struct Program {
  std::string name;                ///< for people: "host 3"
  std::vector<std::string> words;  ///< words[0] is looked for in PATH
  int network = -1;                ///< an open network namespace; -1: the caller's
  std::filesystem::path log{};     ///< takes its output; empty: it is the caller's
  bool output_is_error = false;    ///< without a log: standard output goes to standard error
  bool on_terminal = false;        ///< it has standard input, and is told of Ctrl-C by the terminal itself
  std::string secret{};  ///< it reads this from descriptor kSecretFile, and nobody else does; up to 4096 bytes
  /// Above 0: of SCHED_RR, runs before all that has less. For what leaves the CPU by itself.
  int urgency = 0;
  int nice = 0;
  std::vector<std::pair<std::string, std::string>> environment{};
};

/// Of a program that is given a secret.
inline constexpr int kSecretFile = 3;

/// Programs that are running. For the one process in the sandbox that starts them: it reaps all children there.
class Programs {
 public:
  using Number = std::size_t;  ///< counted from 0 as they are started
  struct End {
    Number number = 0;
    int status = 0;        ///< of exit, or
    int signal = 0;        ///< that ended it
    std::string text;      ///< "ended with status 1"
    bool stopped = false;  ///< it has not ended, and does not go on either (SIGSTOP, ...); told once
  };

  /// Ends those that run.
  ~Programs() { end_all(); }
  /// A program may be stopped for `stop_limit`, unless it is on the terminal, whose user stops and continues it.
  explicit Programs(std::chrono::milliseconds stop_limit = std::chrono::seconds(1)) : stop_limit_(stop_limit) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Throws RunError if there is no such program.
  Number start(Program program);
  [[nodiscard]] const Program& program(Number number) const { return programs_[number]; }
  [[nodiscard]] bool runs(Number number) const;
  /// The next program that ends within `time`, or has been stopped for too long. Throws Stopped.
  std::optional<End> wait(std::chrono::milliseconds time);
  /// Asks it to end, waits for `grace`, and makes it end. The end, if it was still running.
  std::optional<End> end(Number number, std::chrono::milliseconds grace);
  void end_all();
  /// Nobody is interested in Stopped any more.
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

/// Where execvp() would find a program, with the folders of add_administrators_path(); empty: nowhere.
std::string find_program(const std::string& name);
/// Adds /usr/sbin and /sbin to PATH: iproute2 is there, where some users have no path to.
void add_administrators_path();

/// Runs it, and throws RunError with its last words unless it succeeds. `input` is its standard input.
void run_program(const std::vector<std::string>& words, const std::string& input);

/// The last lines of a file, at most so many, without control characters.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most);

}  // namespace mltcp::testbed
