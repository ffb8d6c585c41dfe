// The syntax of port names: the kind, a colon, and the interface, path or device on this machine.
//
//   af_packet:eth0                      a kernel interface through a packet socket; any interface, any kernel
//   af_xdp:eth0                         a kernel interface through AF_XDP sockets; faster, Linux 5.11 or later
//   memif:/run/m.sock,role=server,id=0  shared memory with another process; one end is the server
//   tap:mltcp0                          a new kernel interface
//   ring:loop                           a loopback within this process, for tests
//   ring:left,to=right                  a connection to the port ring:right,to=left in this process
//   pci:0000:3b:00.0                    a NIC that is bound to a DPDK driver (or to mlx4/mlx5); "pci:" is optional
//   net_null0,size=64                   DPDK's own syntax of a virtual device, for anything else
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mltcp::dpdk {

struct PortName {
  enum class Kind : std::uint8_t { af_packet, af_xdp, memif, tap, ring, pci, driver };
  Kind kind = Kind::driver;
  /// The interface, socket path, name of the ring, or DPDK's device name. For Kind::pci, the PCI address in lower case,
  /// including the domain.
  std::string target;
  /// For Kind::driver, the text after the first comma. For Kind::ring, the port at the other end, or empty for a
  /// loopback.
  std::string arguments;
  bool server = false;   ///< for memif: this end is the server
  std::uint32_t id = 0;  ///< for memif: distinguishes several ports on one socket

  bool operator==(const PortName&) const = default;
};

/// Parses a port name. If `text` is invalid, throws InputError that states the problem and the right syntax.
PortName parse_port_name(std::string_view text);

/// The forms of port names, for messages.
inline constexpr std::string_view kPortForms =
    "af_packet:IFACE, af_xdp:IFACE, memif:PATH, tap:NAME, ring:NAME, a PCI address, or DPDK's net_DRIVER,KEY=VALUE";

/// Returns whether `word` is a kind that may precede the colon of a port name, such as "af_packet".
bool is_port_kind(std::string_view word);

/// Returns the name of the kind, such as "af_packet".
std::string_view to_text(PortName::Kind kind);

}  // namespace mltcp::dpdk
