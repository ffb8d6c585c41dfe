// Examines what this machine offers to datapaths, by reading its state and by trials. Each reported problem includes a
// remedy.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::dpdk {

enum class CheckStatus {
  ok,
  warn,     ///< works, but more slowly or less precisely than possible
  missing,  ///< is missing; features that depend on it do not work
};
/// Returns "ok", "warn" or "missing".
std::string_view to_text(CheckStatus status);

struct Check {
  std::string name;  ///< what was checked, such as "huge pages"
  CheckStatus status = CheckStatus::ok;
  std::string detail;  ///< what was found, one line
  std::string cure;    ///< what the user can do, one line; empty if and only if the status is ok
  /// The check concerns an interface or NIC that can be a port as it is, perhaps shared with the kernel.
  bool is_port = false;
  bool is_interface = false;   ///< the check concerns an interface of the kernel
  bool was_asked_for = false;  ///< the check concerns a port that the caller named
};

/// Examines the machine. This takes a second or two. Tests DPDK in child processes, so that the caller's process does
/// not change. Call it before other threads are started. Changes nothing on the machine, and never throws because of a
/// finding.
std::vector<Check> examine_machine();

/// Examines the ports of this machine. Returns one check for each interface of this network namespace except loopback,
/// such as "interface eth0", and one for each network device on the PCI bus, such as "NIC 0000:3b:00.0". PCI devices
/// whose interfaces are in other namespaces are left out.
///
/// Opens unused interfaces in a child process, as af_packet and as af_xdp, but sends nothing. Does not open interfaces
/// with an address, a route, an XDP program, or another interface on top, because AF_XDP would take their traffic away.
///
/// Also returns one check for each of `devices`. These are port names for parse_port_name(), and are opened in any
/// case.
///
/// Takes up to two seconds for each port. Throws InputError if a device name is invalid, before anything is opened.
std::vector<Check> examine_ports(std::span<const std::string> devices);

}  // namespace mltcp::dpdk
