// A program that a test starts, observes and signals. The program ends with the test, even if the test is killed.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "temporary_folder.h"

namespace mltcp {

/// Returns whether the condition becomes true within the given time. Intended for conditions that depend on other
/// processes.
inline bool soon(const std::function<bool()>& is_true, std::chrono::seconds within = std::chrono::seconds(20)) {
  const auto give_up = std::chrono::steady_clock::now() + within;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

class StartedProgram {
 public:
  /// Runs `words` in `folder`, in a new process group, as a shell does. The output goes to NAME.out and NAME.err in
  /// `folder`, or all of it to NAME.out if `in_one`.
  StartedProgram(std::vector<std::string> words, const std::filesystem::path& folder, const std::string& name,
                 bool in_one = false)
      : out_(folder / (name + ".out")), err_(in_one ? out_ : folder / (name + ".err")) {
    std::vector<char*> raw;
    for (std::string& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    for (const auto& file : {out_, err_}) std::filesystem::remove(file);  // removes the output of an earlier program
    process_ = fork();
    if (process_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    dup2(open("/dev/null", O_RDONLY), 0);  // NOLINT(android-cloexec-*): the program inherits these files
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644), 1);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644), 2);
    if (chdir(folder.c_str()) == 0) execvp(raw[0], raw.data());
    _exit(127);
  }
  ~StartedProgram() {
    signal(SIGKILL);
    finish();
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] std::string out() const { return content(out_); }
  [[nodiscard]] std::string err() const { return content(err_); }
  /// Returns the output so far.
  [[nodiscard]] std::string said() const { return err_ == out_ ? out() : out() + err(); }
  void signal(int number) const {
    if (!status_) kill(process_, number);
  }
  [[nodiscard]] bool runs() {
    int status = 0;
    if (!status_ && waitpid(process_, &status, WNOHANG) == process_)
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return !status_;
  }
  /// Waits until the program has printed `text` or has ended. Returns whether it has printed `text`.
  bool says(const std::string& text, std::chrono::seconds within = std::chrono::seconds(200)) {
    const auto has_said = [&] { return said().find(text) != std::string::npos; };
    soon([&] { return has_said() || !runs(); }, within);
    return has_said();
  }
  /// Waits until the program has ended and returns its exit status. If a signal killed the program, returns the
  /// signal's number as a negative number. Returns -1000 if the program does not end in time.
  int finish(std::chrono::seconds within = std::chrono::seconds(200)) {
    return soon([&] { return !runs(); }, within) ? *status_ : -1000;
  }

 private:
  std::filesystem::path out_;
  std::filesystem::path err_;
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace mltcp
