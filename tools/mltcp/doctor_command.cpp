// `mltcp doctor`: shows which parts of this machine are ready, and how to repair the parts that are not.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/plugins/kernel/doctor.h"
#include "mltcp/socket/doctor.h"
#if MLTCP_HAS_VERBS
#include "mltcp/rdma/doctor.h"
#include "mltcp/rdma/verbs_name.h"
#endif

#if MLTCP_HAS_DPDK
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "machine_doctor.h"
#if MLTCP_HAS_LAB
#include "experiment_doctor.h"
#endif
#include "mltcp/base/json/provenance.h"
#include "mltcp/dpdk/doctor.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct DoctorArguments {
  std::vector<std::string> ports;   ///< ports that the user wants to open and check
  std::optional<std::string> json;  ///< file for the JSON, or "-" for standard output
};

void add_options(Options& options, DoctorArguments& arguments) {
  options.add_each("--port", arguments.ports,
                   "Open this port as a test, even if another program uses it now: af_xdp:eth0, 3b:00.0, verbs:mlx5_0, "
                   "...; give the option once per port");
  options.add("--json", arguments.json, "Write the findings to this file; - is standard output");
}

constexpr const char* kAlwaysReady = MLTCP_HAS_LAB ? "datapath sim, datapath flow" : "the program";
constexpr const char* kReadyOverUdp = ", endpoints and mltcp perf over udp:";

#if MLTCP_HAS_DPDK

using Checks = std::vector<dpdk::Check>;

/// The results of all checks, in the order of the output.
struct Examination {
  Checks machine;
  Checks experiments;
  Checks ports;

  [[nodiscard]] Checks all() const {
    Checks checks = machine;
    checks.insert(checks.end(), experiments.begin(), experiments.end());
    checks.insert(checks.end(), ports.begin(), ports.end());
    return checks;
  }
  /// Returns whether datapath ring is available.
  [[nodiscard]] bool ring() const {
    const Checks checks = all();
    return std::ranges::all_of(checks, [](const dpdk::Check& check) {
      return check.name != "ring ports" || check.status == dpdk::CheckStatus::ok;
    });
  }
  /// Returns whether the kernel's UDP sockets are available.
  [[nodiscard]] bool udp() const {
    return std::ranges::any_of(machine, [](const dpdk::Check& check) {
      return check.name == kUdpCheck && check.status != dpdk::CheckStatus::missing;
    });
  }
  /// Returns whether all ports that the user named are available.
  [[nodiscard]] bool asked() const {
    return std::ranges::all_of(
        ports, [](const dpdk::Check& check) { return !check.was_asked_for || check.status == dpdk::CheckStatus::ok; });
  }
};

void write(const Examination& found, const Provenance& provenance, const std::string& file) {
  nlohmann::ordered_json all = {
      {"schema", "mltcp.doctor/1"}, {"ring", found.ring()}, {"checks", nlohmann::json::array()}};
  for (const dpdk::Check& check : found.all()) {
    all["checks"].push_back({{"name", check.name},
                             {"status", dpdk::to_text(check.status)},
                             {"detail", check.detail},
                             {"cure", check.cure}});
  }
  write_json(file, std::move(all), provenance);
}

void print(const Examination& found) {
  Table table({"", "what", "found"}, 3);
  std::vector<std::string> cures;
  for (const dpdk::Check& check : found.all()) {
    table.add({std::string(dpdk::to_text(check.status)), check.name, check.detail});
    if (!check.cure.empty()) cures.push_back(fmt::format("  {}: {}", check.name, check.cure));
  }
  fmt::print("{}", table.text());
  if (!cures.empty()) fmt::print("\nTo improve this:\n{}\n", fmt::join(cures, "\n"));
  std::string ready = kAlwaysReady;
  if (found.ring()) ready += ", datapath ring";
  if (found.udp()) ready += kReadyOverUdp;
  for (const dpdk::Check& check : found.experiments)
    if (check.status != dpdk::CheckStatus::missing) ready += ", " + check.name;
  fmt::print("\nReady here: {}. {}\n", ready,
             !found.ring()   ? "For datapath ring, see above."
             : found.asked() ? "They need no other setup."
                             : "Not ready: a port given by --port; see above.");
}

/// Prints the results of all checks. Returns 1 if one of the named ports is not available, 0 otherwise.
int doctor(const DoctorArguments& arguments) {
  if (arguments.json) check_writable(*arguments.json, "");
  const FilesRead files;
  Examination found;
  std::vector<std::string> ports = arguments.ports;
#if MLTCP_HAS_VERBS
  Checks on_verbs;
  std::erase_if(ports, [&](const std::string& port) {
    if (!rdma::is_verbs_name(port)) return false;
    on_verbs.push_back(check_verbs_port(port));
    return true;
  });
#endif
  found.machine = dpdk::examine_machine();
#if MLTCP_HAS_VERBS
  for (dpdk::Check& check : found.machine)
    if (check.name == "RDMA") check = check_verbs(check);
#endif
  found.machine.push_back(check_udp());
  found.machine.push_back(check_kernel_tcp());
  found.ports = dpdk::examine_ports(ports);
#if MLTCP_HAS_VERBS
  found.ports.insert(found.ports.end(), on_verbs.begin(), on_verbs.end());
#endif
#if MLTCP_HAS_LAB
  found.experiments = examine_experiments(found.machine, found.ports);
#endif
  if (arguments.json) write(found, provenance_of(files), *arguments.json);
  if (arguments.json != "-") print(found);
  return found.asked() ? 0 : 1;
}

#else

int doctor(const DoctorArguments& arguments) {
  if (!arguments.ports.empty())
    throw InputError("--port: built without DPDK, so there are no ports; build with -DMLTCP_DPDK=ON");
  if (arguments.json)
    throw InputError("--json: built without DPDK, so nothing is examined; build with -DMLTCP_DPDK=ON");
  fmt::print(
      "built without DPDK: no datapath ring, no mltcp switch and testbed, no ports for gen --join but udp:; build with "
      "-DMLTCP_DPDK=ON\n");
  const socket::Examination udp = socket::examine();
  fmt::print("udp: {}\n{}{}", udp.detail, udp.cure, udp.cure.empty() ? "" : "\n");
  const kernel::Examination kernel_tcp = kernel::examine();
  fmt::print("kernel TCP: {}\n{}{}", kernel_tcp.detail, kernel_tcp.cure, kernel_tcp.works ? "" : "\n");
#if MLTCP_HAS_VERBS
  const rdma::Examination verbs = rdma::examine();
  fmt::print("verbs: {}\n{}{}", verbs.detail, verbs.cure, verbs.cure.empty() ? "" : "\n");
#endif
  fmt::print("\nReady here: {}{}, mltcp gen{}. They need no other setup.\n", kAlwaysReady,
             udp.works ? kReadyOverUdp : "", udp.works ? "" : " --serve");
  return 0;
}

#endif

}  // namespace

void add_doctor_command(CommandLine& line) {
  line.add<DoctorArguments>("doctor", "Check what this machine can run, and how to enable the rest", add_options,
                            doctor);
}

}  // namespace mltcp::tools
