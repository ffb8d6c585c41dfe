// Examines what this machine offers to datapaths, by reading its state and by tests. Each problem comes with its cure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::dpdk {

enum class CheckStatus {
  ok,
  warn,     ///< works, but slower or less precisely
  missing,  ///< the features that need it do not work
};
/// "ok", "warn", "missing".
std::string_view to_text(CheckStatus status);

struct Check {
  std::string name;  ///< "huge pages"
  CheckStatus status = CheckStatus::ok;
  std::string detail;          ///< what was found, one line
  std::string cure;            ///< what to do, one line; empty if and only if the status is ok
  bool is_port = false;        ///< an interface or NIC that can be a port as it is, perhaps shared with the kernel
  bool is_interface = false;   ///< an interface of the kernel
  bool was_asked_for = false;  ///< a port that the caller named
};

/// Examines the machine; takes a second or two. Tests DPDK in child processes, so the caller's process does not change;
/// call it before other threads are started. Changes nothing on the machine and never throws because of a finding.
std::vector<Check> examine_machine();

/// Examines the ports of this machine: a check for each interface of this network namespace except loopback, "interface
/// eth0", and each network device on the PCI bus, "NIC 0000:3b:00.0", except those whose interfaces are in other
/// namespaces. Unused interfaces are opened in a child process, as af_packet and as af_xdp; nothing is sent. Those with
/// an address, a route, an XDP program, or an interface above them, are not opened, because AF_XDP would take their
/// traffic away. Then a check for each of `devices`, written as for parse_port_name(), that is opened in any case.
/// Takes up to two seconds for each. Throws InputError if a device name is invalid, before anything is opened.
std::vector<Check> examine_ports(std::span<const std::string> devices);

}  // namespace mltcp::dpdk
