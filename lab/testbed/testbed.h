// Runs the processes of a testbed: all switches in one network namespace, one process on each host that runs the host's
// part of the jobs, and the user's shell or command. All processes run in a sandbox (sandbox.h), which leaves nothing
// behind, however the testbed ends.
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
  /// Whether switches and hosts run before all other processes of the machine, and switches before hosts.
  bool realtime = false;
  std::filesystem::path folder;  ///< folder of the sandbox
  std::filesystem::path logs;    ///< folder for the logs of switches and hosts
  bool output_is_error = false;  ///< whether the coordinator's output goes to standard error
  std::string log_hint;          ///< text that states where the logs are, for messages of failures
  std::string secret;            ///< secret that the coordinator and the hosts can read (sandbox.h); empty: none
  /// Called at the beginning of each stage, with the name of the stage.
  std::function<void(const std::string& what)> stage;
  /// Called with the name and the last output of a program that ended unexpectedly. After the call, Testbed throws
  /// RunError.
  std::function<void(const std::string& program, const std::vector<std::string>& lines)> last_words;
};

/// Only the first process of the sandbox may use this class. Member functions must be called in the order of their
/// declarations. Functions that wait throw Stopped if the user asks to stop, and RunError if a process ends
/// unexpectedly or stays stopped.
class Testbed {
 public:
  using Words = std::vector<std::string>;  ///< words of a command; the first is the program

  /// Makes the network. Writes the script `on`, with which a user enters a host, to the folder of the sandbox. `layout`
  /// must outlive this object.
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
  /// Ends the coordinator, then the hosts, and then the switches. No function throws Stopped after this call.
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

/// Returns the text of a script that runs a program or a shell in the network namespace of a host or of the switches.
/// `process` is the id of a process that has these namespaces open.
std::string enter_script(const TestbedLayout& layout, const std::string& process);

}  // namespace mltcp::testbed
