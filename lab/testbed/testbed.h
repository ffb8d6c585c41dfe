// The processes of a testbed: switches in a namespace, on each host what a job runs there, and what a user does with
// them. It lives in a sandbox (sandbox.h), so that nothing is left of it whatever happens.
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
  bool realtime = false;         ///< switches, and below them hosts, take precedence over all else on the machine
  std::filesystem::path folder;  ///< of the sandbox
  std::filesystem::path logs;    ///< a folder for what switches and hosts say
  bool output_is_error = false;  ///< the coordinator's output goes to standard error
  std::string log_hint;          ///< where logs are, for the message that something failed
  std::string secret;            ///< that the coordinator and hosts are given (sandbox.h); empty: none
  std::function<void(const std::string& what)> stage;  ///< told what begins
  /// Told the last of what a program said that ended when it should not have; a RunError follows.
  std::function<void(const std::string& program, const std::vector<std::string>& lines)> last_words;
};

/// For the first process in the sandbox, in the order of its members. What waits throws RunError when a process ends
/// that should not, or is stopped and does not go on, and Stopped.
class Testbed {
 public:
  using Words = std::vector<std::string>;  ///< of a command; the first is the program

  /// Makes the network, and in the folder the script `on`. The layout outlives it.
  Testbed(const TestbedLayout& layout, TestbedOptions options);

  /// Starts one for each switch of the layout, and returns when all have said that they are ready (readiness.h).
  void start_switches(const std::vector<Words>& commands);
  /// Runs a coordinator, and a process on each host of the layout, until the coordinator ends; its exit status.
  int run_jobs(const Words& coordinator, const std::vector<Words>& hosts);
  /// Runs it in a shell among the switches. Throws RunError unless it succeeds.
  void run_command(const std::string& command);
  /// Waits for a shell of the user's, if there is to be one, or for ever. Returns the exit status of the shell: 128 and
  /// its number if a signal ended it, as shells have it.
  int stay(bool shell);
  /// Ends all, the coordinator first and the switches last. Stopped is not thrown any more.
  void end_all();

  /// The script by which a user enters a host.
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
  Programs programs_;  // ends first
};

/// The text of a script that runs a program, or a shell, in a host of the testbed or among its switches. `process` is
/// the number of the process that has their namespaces open.
std::string enter_script(const TestbedLayout& layout, const std::string& process);

}  // namespace mltcp::testbed
