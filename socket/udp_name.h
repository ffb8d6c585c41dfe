// Names of ports on the kernel's UDP sockets, as users write them.
//
//   udp:            the interface of this machine that has the host's address
//   udp:eth0        interface eth0, which must have the host's address
//   udp:127.0.0.1   address 127.0.0.1, which must be the host's address
//   udp:fd00::1     an IPv6 address, without brackets
//
// The UDP port is part of the host's address, not of this name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mltcp/transport/address.h"

namespace mltcp::socket {

struct UdpName {
  std::string interface;           ///< interface in the name; empty if there is none
  std::optional<Address> address;  ///< address in the name, with port 0; none if there is no address

  bool operator==(const UdpName&) const = default;
};

/// Parses a name. Throws InputError that describes the error in `text` and shows the right form.
UdpName parse_udp_name(std::string_view text);

/// Returns whether `text` is "udp" or begins with "udp:". The rest may be invalid.
bool is_udp_name(std::string_view text);

/// Forms of "udp:" names, for error messages.
inline constexpr std::string_view kUdpForms = "udp:, udp:IFACE, udp:IP";

}  // namespace mltcp::socket
