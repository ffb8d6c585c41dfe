// What this machine offers the datapaths, found out by looking and trying, each lack with its cure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::dpdk {

enum class CheckStatus {
  ok,
  warn,     ///< works, but slower or less precisely
  missing,  ///< what needs it does not work
};
/// "ok", "warn", "missing".
std::string_view to_text(CheckStatus status);

struct Check {
  std::string name;  ///< "huge pages"
  CheckStatus status = CheckStatus::ok;
  std::string detail;          ///< what was found, one line
  std::string cure;            ///< what to do, one line; empty if and only if the status is ok
  bool is_port = false;        ///< of an interface or NIC: it can be a port as it is, perhaps beside the kernel
  bool is_interface = false;   ///< of an interface of the kernel
  bool was_asked_for = false;  ///< of a port that the caller named
};

/// Examines the machine; takes a second or two. DPDK is tried in child processes, so the caller's stays as it is; call
/// it before other threads are started. Changes nothing on the machine and never throws for what it finds.
std::vector<Check> examine_machine();

/// Examines the ports of this machine: a check for each interface of this network namespace but loopback, "interface
/// eth0", and each network device on the PCI bus, "NIC 0000:3b:00.0", but for those whose interfaces are in
/// other namespaces. Interfaces that nobody uses are opened in a child
/// process, as af_packet and as af_xdp; nothing is sent. Those with an address, a route, an XDP program, or an
/// interface above them, are only looked at, since AF_XDP would take their traffic away. Then a check for each of
/// `devices`, written as for parse_port_name(), that is opened in any case. Takes up to two seconds for each. Throws
/// InputError if a device can't be read, before anything is opened.
std::vector<Check> examine_ports(std::span<const std::string> devices);

}  // namespace mltcp::dpdk
