// A sandbox that leaves nothing behind (see sandbox.h).
#include "mltcp/lab/testbed/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"

namespace mltcp::testbed {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string reason() { return std::strerror(errno); }

constexpr std::array<int, 3> kEndingSignals{SIGINT, SIGTERM, SIGHUP};

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a signal handler can only use global variables
volatile pid_t supervisor = 0;
volatile std::sig_atomic_t asked = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void pass_on(int /*signal*/) {
  const int before = errno;
  if (supervisor > 0) kill(supervisor, asked == 0 ? SIGTERM : SIGKILL);
  asked = 1;
  errno = before;
}

bool write_to(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(file);
  errno = error;
  return written;
}

/// While an object exists, it passes the caller's SIGINT, SIGTERM and SIGHUP on to the first process of the sandbox.
class PassOn {
 public:
  PassOn() {
    struct sigaction action {};
    action.sa_handler = pass_on;
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) sigaction(kEndingSignals[i], &action, &before_[i]);
  }
  ~PassOn() {
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) sigaction(kEndingSignals[i], &before_[i], nullptr);
  }
  PassOn(const PassOn&) = delete;
  PassOn& operator=(const PassOn&) = delete;

 private:
  std::array<struct sigaction, kEndingSignals.size()> before_{};
};

void set_handlers(void (*handler)(int)) {
  for (const int signal : kEndingSignals) std::signal(signal, handler);
}

sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  return signals;
}

/// Removes a folder. Tries for one second, because killed processes may still write to the folder for a moment.
void remove_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::filesystem::remove_all(folder, ignored);
    if (!std::filesystem::exists(folder, ignored)) return;
    poll(nullptr, 0, 10);
  }
}

/// Starts the guard, a process that removes `folder` when all other processes have closed `other_end` of the pipe. The
/// guard has its own session, so that signals to the caller's process group (e.g. on Ctrl-C or a closed terminal) do
/// not end it.
pid_t start_guard(const std::filesystem::path& folder, int leash, int other_end) {
  const pid_t guard = fork();
  if (guard != 0) return guard;
  setsid();
  set_handlers(SIG_IGN);
  prctl(PR_SET_NAME, "mltcp-guard");
  close(other_end);
  // the guard must not hold the caller's output open, or its readers would wait for the guard
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file = 0; file <= 2 && null >= 0; ++file) dup2(null, file);
  char byte = 0;
  while (read(leash, &byte, 1) != 0 && errno == EINTR) continue;
  remove_folder(folder);
  _exit(0);
}

/// Runs `work` as the first process in the PID namespace, and exits.
[[noreturn]] void supervise(const std::function<int(const std::filesystem::path&)>& work,
                            const std::function<void(const char*)>& tell, const std::filesystem::path& folder,
                            int leash) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd caller{leash, POLLIN, 0};
  if (poll(&caller, 1, 0) == 1) _exit(1);  // the caller ended before prctl()
  // Replaces the signal handlers of the caller. SIGTERM gets SIG_DFL, not SIG_IGN, because SIG_IGN would discard a
  // pending SIGTERM.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  int status = 1;
  try {
    if (unshare(CLONE_NEWNET) != 0)
      throw RunError(
          fmt::format("the kernel refuses network namespaces ({}); use one with CONFIG_NET_NS, and raise "
                      "/proc/sys/user/max_net_namespaces",
                      reason()));
    status = work(folder);
  } catch (const Stopped&) {
    std::fputs("mltcp: stopped; the testbed is removed\n", stderr);
  } catch (const InputError& error) {
    tell(error.what());
    status = 2;
  } catch (const std::exception& error) {
    tell(error.what());
  }
  if (std::fflush(stdout) != 0 && status == 0) status = 1;
  _exit(status);
}

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw RunError(fmt::format("cannot create a pipe: {}", reason()));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t end) {
    if (ends[end] >= 0) close(std::exchange(ends[end], -1));
  }

  std::array<int, 2> ends{-1, -1};
};

}  // namespace

std::string become_root_of_own() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (user == 0) return "";
  if (unshare(CLONE_NEWUSER) != 0) {
    const int error = errno;
    const std::string why = std::strerror(error);
    if (error == ENOSPC)
      return fmt::format(
          "users may not create user namespaces here ({}); allow it as root: sysctl user.max_user_namespaces=1000; or "
          "run it with sudo",
          why);
    if (error == EINVAL || error == ENOSYS)
      return fmt::format(
          "the kernel has no user namespaces ({}); run it with sudo, or use a kernel with "
          "CONFIG_USER_NS=y",
          why);
    return fmt::format(
        "users may not create user namespaces here ({}); allow it as root: sysctl kernel.unprivileged_userns_clone=1 "
        "where there is such a setting, and outside of containers that forbid it; or run it with sudo",
        why);
  }
  // A process may always map its own user. It may map its own group only after it has given up setgroups(2). See
  // user_namespaces(7).
  if (!write_to("/proc/self/setgroups", "deny") || !write_to("/proc/self/uid_map", fmt::format("0 {} 1", user)) ||
      !write_to("/proc/self/gid_map", fmt::format("0 {} 1", group)))
    return fmt::format(
        "the user cannot be mapped in a user namespace ({}); run it with sudo, and check that /proc is mounted",
        reason());
  // AppArmor may let users make a user namespace, but deny all rights in it. So try whether one of these rights is
  // granted.
  if (unshare(CLONE_NEWUTS) != 0)
    return fmt::format(
        "a user namespace gives no rights here ({}); allow it as root: sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0; or run it with sudo",
        reason());
  return "";
}

int run_sandboxed(const std::function<int(const std::filesystem::path&)>& work,
                  const std::function<void(const char*)>& tell) {
  std::error_code no_folder;
  std::string pattern = (std::filesystem::temp_directory_path(no_folder) / "mltcp-testbed-XXXXXX").string();
  if (no_folder || mkdtemp(pattern.data()) == nullptr)
    throw RunError(fmt::format("cannot create a folder for temporary files ({}); free some space, or set TMPDIR",
                               no_folder ? no_folder.message() : reason()));
  const std::filesystem::path folder = pattern;
  std::fflush(nullptr);
  // one end is open in the caller and in the first process of the sandbox; the guard waits until both have closed it
  Pipe held;
  const pid_t guard = start_guard(folder, held.ends[0], held.ends[1]);
  Pipe alive;  // the caller holds one end open as long as it runs, so that the child can detect its end
  asked = 0;
  const PassOn pass;
  if (const std::string why = become_root_of_own(); !why.empty()) {
    remove_folder(folder);
    throw RunError(why);
  }
  if (guard < 0 || unshare(CLONE_NEWPID) != 0) {
    remove_folder(folder);
    throw RunError(fmt::format(
        "the kernel refuses a PID namespace ({}); run it as root, outside of containers that forbid it", reason()));
  }
  // The child is the first process of its PID namespace. The kernel discards signals that the first process neither
  // handles nor blocks, so block the signals for which it waits.
  const sigset_t signals = awaited_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = fork();
  if (child == 0) {
    alive.close_end(1);
    held.close_end(0);
    supervise(work, tell, folder, alive.ends[0]);
  }
  supervisor = child;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (asked != 0 && child > 0) kill(child, SIGTERM);
  int status = 0;
  if (child > 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  }
  supervisor = 0;
  remove_folder(folder);
  held.close_end(1);
  while (waitpid(guard, nullptr, 0) < 0 && errno == EINTR) continue;
  if (child < 0) throw RunError(fmt::format("cannot start a process: {}", reason()));
  if (WIFSIGNALED(status))
    throw RunError(asked != 0 ? std::string("stopped at once; the testbed is removed")
                              : fmt::format("the testbed was ended by signal {}; its hosts and links are removed",
                                            WTERMSIG(status)));
  return WEXITSTATUS(status);
}

Programs::Number Programs::start(Program program) {
  std::vector<char*> words;
  for (auto& word : program.words) words.push_back(word.data());
  words.push_back(nullptr);
  Pipe failure;
  Pipe secret;
  if (!program.secret.empty() &&
      write(secret.ends[1], program.secret.data(), program.secret.size()) != std::ssize(program.secret))
    throw RunError(fmt::format("{} cannot be given its input: {}", program.name, reason()));
  const pid_t child = fork();
  if (child < 0) throw RunError(fmt::format("{} cannot be started: {}", program.name, reason()));
  if (child == 0) {
    int failure_pipe = failure.ends[1];
    const auto fail = [&] {
      const int error = errno;
      [[maybe_unused]] const auto written = write(failure_pipe, &error, sizeof error);
      _exit(127);
    };
    set_handlers(SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (!program.on_terminal) {
      setsid();
      const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (null < 0 || dup2(null, 0) < 0) fail();
    }
    if (!program.log.empty()) {
      const int log = open(program.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
      if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) fail();
    } else if (program.output_is_error) {
      dup2(2, 1);
    }
    if (program.network >= 0 && setns(program.network, CLONE_NEWNET) != 0) fail();
    // Ignores errors, because priorities are not needed for correctness.
    if (program.nice != 0) {
      setpriority(PRIO_PROCESS, 0, program.nice);
      // If the kernel groups processes by session (sched(7), "The autogroup feature"), the following sets the priority
      // among sessions.
      if (const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC); group >= 0) {
        std::array<char, 16> text{};
        const int length = std::snprintf(text.data(), text.size(), "%d", program.nice);
        [[maybe_unused]] const auto set = write(group, text.data(), static_cast<std::size_t>(length));
        close(group);
      }
    }
    if (const sched_param urgency{.sched_priority = program.urgency}; program.urgency > 0)
      sched_setscheduler(0, SCHED_RR, &urgency);
    for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
    if (!program.secret.empty()) {
      // Frees descriptor kSecretFile for the secret: moves the two files that are still needed to higher descriptors.
      failure_pipe = fcntl(failure_pipe, F_DUPFD_CLOEXEC, kSecretFile + 1);
      const int file = fcntl(secret.ends[0], F_DUPFD_CLOEXEC, kSecretFile + 1);
      if (failure_pipe < 0 || file < 0 || dup2(file, kSecretFile) < 0) fail();
    }
    execvp(words[0], words.data());
    fail();
  }
  failure.close_end(1);
  int error = 0;
  ssize_t got = 0;
  while ((got = read(failure.ends[0], &error, sizeof error)) < 0 && errno == EINTR) continue;
  if (got == sizeof error) {
    waitpid(child, nullptr, 0);
    throw RunError(
        fmt::format("{} cannot be started ({}): {}", program.name, one_line(program.words[0]), std::strerror(error)));
  }
  programs_.push_back(std::move(program));
  running_.emplace(child, programs_.size() - 1);
  return programs_.size() - 1;
}

bool Programs::runs(Number number) const {
  for (const auto& [process, running] : running_)
    if (running == number) return true;
  return false;
}

std::optional<Programs::End> Programs::reap() {
  int status = 0;
  for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    const auto found = running_.find(process);
    if (found == running_.end()) continue;  // the process was started by a program that has ended
    if (WIFSTOPPED(status)) {
      if (!programs_[found->second].on_terminal)
        stops_.insert_or_assign(process, Stop{steady_clock::now(), WSTOPSIG(status)});
      continue;
    }
    stops_.erase(process);
    if (WIFCONTINUED(status)) continue;
    End end;
    end.number = found->second;
    end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.text = end.signal != 0 ? fmt::format("was ended by signal {}", end.signal)
                               : fmt::format("ended with status {}", end.status);
    running_.erase(found);
    return end;
  }
  return stopped_too_long();
}

std::optional<Programs::End> Programs::stopped_too_long() {
  for (auto& [process, stop] : stops_) {
    if (stop.is_reported || steady_clock::now() < stop.since + stop_limit_) continue;
    stop.is_reported = true;
    End end;
    end.number = running_.at(process);
    end.text = fmt::format("was stopped by signal {} and has not continued for {}", stop.signal,
                           to_text(Nanos(std::chrono::nanoseconds(stop_limit_).count())));
    end.stopped = true;
    return end;
  }
  return std::nullopt;
}

std::optional<Programs::End> Programs::wait(milliseconds time) {
  const sigset_t signals = awaited_signals();
  const auto end_of_wait = steady_clock::now() + time;
  for (;;) {
    if (auto end = reap()) return end;
    auto until = end_of_wait;
    for (const auto& [process, stop] : stops_)
      if (!stop.is_reported) until = std::min(until, stop.since + stop_limit_);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - steady_clock::now()).count();
    const timespec patience{std::max<std::int64_t>(left, 0) / 1'000'000'000,
                            std::max<std::int64_t>(left, 0) % 1'000'000'000};
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal == SIGTERM && !ignore_stop_) throw Stopped();
    if (signal < 0 && errno == EAGAIN && steady_clock::now() >= end_of_wait) return reap();
  }
}

std::optional<Programs::End> Programs::end(Number number, milliseconds grace) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const auto& [process, running] : running_) {
      if (running != number) continue;
      kill(process, signal);
      kill(process, SIGCONT);  // a stopped process does not handle signals
    }
    const auto until = steady_clock::now() + grace;
    while (runs(number)) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
      if (left.count() <= 0 && signal == SIGTERM) break;
      if (auto ended = wait(std::max(left, milliseconds(10))); ended && ended->number == number && !ended->stopped)
        return ended;
    }
  }
  return std::nullopt;
}

void Programs::end_all() {
  ignore_stop();
  for (const auto& [process, number] : running_) kill(process, SIGTERM);
  for (Number number = 0; number < programs_.size(); ++number)
    if (runs(number)) end(number, milliseconds(2000));
}

namespace {

std::string administrators_path() {
  const char* path = std::getenv("PATH");
  return fmt::format("{}:/usr/sbin:/sbin", path != nullptr ? path : "/usr/bin:/bin");
}

}  // namespace

std::string find_program(const std::string& name) {
  std::istringstream folders(administrators_path());
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

void add_administrators_path() { setenv("PATH", administrators_path().c_str(), 1); }

void run_program(const std::vector<std::string>& words, const std::string& input) {
  Pipe in;
  Pipe out;
  const pid_t child = fork();
  if (child < 0) throw RunError(fmt::format("{} cannot be started: {}", words[0], reason()));
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(in.ends[0], 0);
    dup2(out.ends[1], 1);
    dup2(out.ends[1], 2);
    std::vector<char*> arguments;
    for (const auto& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execvp(3) does not change it
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    dprintf(1, "%s", std::strerror(errno));
    _exit(127);
  }
  in.close_end(0);
  out.close_end(1);
  // Writes all input before reading output. This cannot block for ever, because the program prints little and so its
  // output fits into the pipe.
  for (std::size_t at = 0; at < input.size();) {
    const ssize_t count = write(in.ends[1], input.data() + at, input.size() - at);
    if (count <= 0) break;
    at += static_cast<std::size_t>(count);
  }
  in.close_end(1);
  std::string said;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(out.ends[0], buffer.data(), buffer.size())) > 0;)
    said.append(buffer.data(), static_cast<std::size_t>(count));
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return;
  const bool missing = WIFEXITED(status) && WEXITSTATUS(status) == 127;
  throw RunError(fmt::format("{} failed: {}{}", words[0], one_line(trimmed(said.substr(0, said.find('\n')))),
                             missing ? "; install Debian's package iproute2" : ""));
}

std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t max) {
  std::ifstream in(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (trimmed(line).empty()) continue;
    lines.push_back(one_line(line));
    if (lines.size() > max) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

}  // namespace mltcp::testbed
