// The processes of a testbed (see testbed.h).
#include "mltcp/lab/testbed/testbed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <system_error>

#include "mltcp/base/error.h"

namespace mltcp::testbed {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

void write_script(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw RunError(fmt::format("{} cannot be written; free some space, or set TMPDIR", file.string()));
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

std::string enter_script(const TestbedLayout& layout, const std::string& process) {
  std::string script =
      "#!/bin/sh\n# Runs a program, or a shell, in a host of the testbed or among its switches.\n"
      "usage() { echo 'usage: on HOST|switch [COMMAND...]' >&2; exit 2; }\n[ $# -gt 0 ] || usage\ncase $1 in\n";
  for (std::size_t i = 0; i < layout.hosts.size(); ++i)
    script += fmt::format("  {}) file={} ;;\n", layout.hosts[i], TestbedNetwork::host(i));
  script += fmt::format(
      "  switch) file={0} ;;\n  *) echo \"on: there is no host $1\" >&2; usage ;;\nesac\nshift\n"
      "user=\n"
      "own=$(readlink /proc/self/ns/user) && testbed=$(readlink /proc/{1}/ns/user) && [ \"$own\" != \"$testbed\" ] &&\n"
      "  user=\"--user=/proc/{1}/ns/user --preserve-credentials\"\n"
      "exec nsenter $user --net=/proc/{1}/fd/$file \"${{@:-${{SHELL:-/bin/sh}}}}\"\n",
      TestbedNetwork::switches(), process);
  return script;
}

Testbed::Testbed(const TestbedLayout& layout, TestbedOptions options)
    : layout_(layout), options_(std::move(options)), network_(layout, options_.mtu) {
  const char* path = std::getenv("PATH");
  const std::string folder = options_.folder.string();
  environment_ = {{"PATH", fmt::format("{}:{}:/usr/sbin:/sbin", folder, path != nullptr ? path : "/usr/bin:/bin")},
                  {"MLTCP_TESTBED", folder},
                  {"RUNTIME_DIRECTORY", folder}};  // folder for DPDK's runtime files
  // The script needs the id of this process in the PID namespace of the mounted /proc. This id differs from the
  // process's id in the sandbox.
  std::error_code unknown;
  write_script(script(), enter_script(layout_, fs::read_symlink("/proc/self", unknown).string()));
}

void Testbed::start_switches(const std::vector<Words>& commands) {
  std::deque<Readiness> ready;  // a deque, because its elements must not move
  for (std::size_t number = 0; number < commands.size(); ++number) {
    const std::string& name = layout_.switches[number].name;
    options_.stage(fmt::format("start {}", name));
    auto environment = environment_;
    environment.push_back(ready.emplace_back(fmt::format("mltcp-testbed/switch-{}", number)).environment());
    switches_.push_back(programs_.start({.name = name,
                                         .words = commands[number],
                                         .network = TestbedNetwork::switches(),
                                         .log = options_.logs / fmt::format("switch-{}.log", number),
                                         // Without priority, a switch may run late, and a late switch does not behave
                                         // like a real network.
                                         .urgency = options_.realtime ? 2 : 0,
                                         .nice = -15,
                                         .environment = std::move(environment)}));
  }
  for (std::size_t number = 0; number < commands.size(); ++number) await_ready(switches_[number], ready[number]);
}

void Testbed::await_ready(Programs::Number number, Readiness& readiness) {
  const auto until = steady_clock::now() + std::chrono::seconds(30);
  while (!readiness.reported()) {
    if (const auto end = programs_.wait(milliseconds(20))) fail(*end);
    if (steady_clock::now() > until)
      throw RunError(fmt::format("{} is not ready after 30 s", programs_.program(number).name));
  }
}

void Testbed::fail(const Programs::End& end) {
  const Program& program = programs_.program(end.number);
  constexpr std::size_t max_lines = 10;
  options_.last_words(program.name,
                      program.log.empty() ? std::vector<std::string>() : last_lines(program.log, max_lines));
  throw RunError(fmt::format("{} {}, so the testbed was taken down; {}", program.name, end.text, options_.log_hint));
}

int Testbed::run_jobs(const Words& coordinator, const std::vector<Words>& hosts) {
  options_.stage("start the coordinator and the hosts");
  const Programs::Number coordinating = programs_.start({.name = "the coordinator (mltcp gen)",
                                                         .words = coordinator,
                                                         .log = {},
                                                         .output_is_error = options_.output_is_error,
                                                         .secret = options_.secret,
                                                         .environment = environment_});
  coordinator_ = coordinating;
  for (std::size_t i = 0; i < layout_.hosts.size(); ++i) {
    const std::uint32_t host = layout_.hosts[i];
    hosts_.push_back(programs_.start({.name = fmt::format("host {}", host),
                                      .words = hosts[i],
                                      .network = TestbedNetwork::host(i),
                                      .log = options_.logs / fmt::format("host-{}.log", host),
                                      .secret = options_.secret,
                                      .urgency = options_.realtime ? 1 : 0,
                                      .nice = -10,
                                      .environment = environment_}));
  }
  for (;;) {
    const auto end = programs_.wait(std::chrono::hours(1));
    if (!end) continue;
    if (end->stopped) fail(*end);
    if (end->number == coordinating) return finish(*end);
    // Another process ended first. Waits for the coordinator, which normally ends a moment after its hosts. If the
    // coordinator does not succeed, reports the process that ended first.
    const auto until = steady_clock::now() + std::chrono::seconds(end->status == 0 && end->signal == 0 ? 10 : 2);
    while (steady_clock::now() < until) {
      const auto next = programs_.wait(milliseconds(100));
      if (next && next->number == coordinating && !next->stopped) {
        if (next->status == 0) return finish(*next);
        break;
      }
    }
    fail(*end);
  }
}

int Testbed::finish(const Programs::End& coordinator) {
  if (coordinator.status == 0 && coordinator.signal == 0) return 0;
  if (coordinator.signal != 0) fail(coordinator);
  // The coordinator has reported why it failed, but it does not know whether a signal ended a host. So check this here.
  const auto until = steady_clock::now() + milliseconds(500);
  while (coordinator.status != 2 && steady_clock::now() < until) {
    const auto host = programs_.wait(milliseconds(50));
    if (host && host->signal != 0) fail(*host);
    if (std::ranges::none_of(hosts_, [&](const auto number) { return programs_.runs(number); })) break;
  }
  return coordinator.status;
}

void Testbed::run_command(const std::string& command) {
  options_.stage("run the command");
  const auto number = programs_.start({.name = "the command",
                                       .words = {"/bin/sh", "-c", command},
                                       .network = TestbedNetwork::switches(),
                                       .log = {},
                                       .on_terminal = true,
                                       .environment = environment_});
  for (;;) {
    const auto end = programs_.wait(std::chrono::hours(1));
    if (!end) continue;
    if (end->number != number) fail(*end);
    if (end->status != 0 || end->signal != 0) throw RunError(fmt::format("the command {}", end->text));
    return;
  }
}

int Testbed::stay(bool shell) {
  std::optional<Programs::Number> staying;
  if (shell) {
    const char* name = std::getenv("SHELL");
    staying = programs_.start({.name = "the shell",
                               .words = {name != nullptr ? name : "/bin/sh"},
                               .network = TestbedNetwork::switches(),
                               .log = {},
                               .on_terminal = true,
                               .environment = environment_});
  }
  for (;;) {
    const auto end = programs_.wait(std::chrono::hours(1));
    if (!end) continue;
    if (staying && end->number == *staying) return end->signal != 0 ? 128 + end->signal : end->status;
    if (std::ranges::find(hosts_, end->number) == hosts_.end()) fail(*end);
  }
}

void Testbed::end_all() {
  programs_.ignore_stop();
  if (coordinator_) programs_.end(*coordinator_, milliseconds(5000));
  for (const auto number : hosts_) programs_.end(number, milliseconds(3000));
  for (const auto number : switches_) programs_.end(number, milliseconds(5000));
}

}  // namespace mltcp::testbed
