// Runs the processes of a testbed: switches in one namespace, a process of the jobs on each host, and the user's shell
// or command. They run in a sandbox (sandbox.h), so that nothing is left of them, whatever happens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/lab/testbed/layout.h"
#include "mltcp/lab/testbed/network.h"
#include "mltcp/lab/testbed/readiness.h"
#include "mltcp/lab/testbed/sandbox.h"

namespace mltcp::testbed {

struct TestbedOptions {
  std::uint32_t mtu = 1500;
  bool realtime = false;  ///< switches, and after them hosts, take precedence over all other processes of the machine
  std::filesystem::path folder;  ///< folder of the sandbox
  std::filesystem::path logs;    ///< folder for the output of switches and hosts
  bool output_is_error = false;  ///< whether the coordinator's output goes to standard error
  std::string log_hint;          ///< text for messages of failures that states where the logs are
  std::string secret;            ///< secret of the coordinator and the hosts (sandbox.h); empty: none
  std::function<void(const std::string& what)> stage;  ///< called with the name of each stage that begins
  /// Called with the name and the last output of a program that ended unexpectedly. A RunError follows.
  std::function<void(const std::string& program, const std::vector<std::string>& lines)> last_words;
};

/// Only for the first process in the sandbox. The members must be called in the order of their declarations. Functions
/// that wait throw Stopped if the user asks to stop, and RunError if a process ends unexpectedly or stays stopped.
class Testbed {
 public:
  using Words = std::vector<std::string>;  ///< words of a command; the first is the program

  /// Makes the network, and the script `on` in the folder of the sandbox. `layout` must outlive this object.
  Testbed(const TestbedLayout& layout, TestbedOptions options);

  /// Starts a program for each switch of the layout. Returns when all of them have reported that they are ready
  /// (readiness.h).
  void start_switches(const std::vector<Words>& commands);
  /// Runs a coordinator, and a process on each host of the layout, until the coordinator ends. Returns the
  /// coordinator's exit status.
  int run_jobs(const Words& coordinator, const std::vector<Words>& hosts);
  /// Runs a command in a shell, in the namespace of the switches. Throws RunError unless it succeeds.
  void run_command(const std::string& command);
  /// If `shell` is true, runs a shell for the user. Returns its exit status, or 128 + N if signal N ended it. If
  /// `shell` is false, waits until the user asks to stop.
  int stay(bool shell);
  /// Ends all processes, the coordinator first and the switches last. Stopped is not thrown after this.
  void end_all();

  /// Returns the path of the script by which a user enters a host.
  [[nodiscard]] std::filesystem::path script() const { return options_.folder / "on"; }

 private:
  void await_ready(Programs::Number number, Readiness& readiness);
  [[noreturn]] void fail(const Programs::End& end);
  int finish(const Programs::End& coordinator);

  const TestbedLayout& layout_;
  TestbedOptions options_;
  TestbedNetwork network_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<Programs::Number> switches_;
  std::vector<Programs::Number> hosts_;
  std::optional<Programs::Number> coordinator_;
  Programs programs_;  // declared last, so that it is destroyed first
};

/// Returns the text of a script that runs a program or a shell in a host of the testbed, or among its switches.
/// `process` is the id of the process that has their namespaces open.
std::string enter_script(const TestbedLayout& layout, const std::string& process);

}  // namespace mltcp::testbed
