// Names of ports on the kernel's UDP sockets, as users write them.
//
//   udp:            the interface of this machine that has the host's address
//   udp:eth0        this interface, which must have the host's address
//   udp:127.0.0.1   this address, which must be the host's
//   udp:fd00::1     (IPv6 without brackets; the UDP port is part of the host's address, not of this name)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mltcp/transport/address.h"

namespace mltcp::socket {

struct UdpName {
  std::string interface;           ///< empty: any
  std::optional<Address> address;  ///< port 0

  bool operator==(const UdpName&) const = default;
};

/// Throws InputError that says what is wrong with `text` and how to write it.
UdpName parse_udp_name(std::string_view text);

/// Whether `text` has the form of such a name, valid or not.
bool is_udp_name(std::string_view text);

/// The forms of names, for messages.
inline constexpr std::string_view kUdpForms = "udp:, udp:IFACE, udp:IP";

}  // namespace mltcp::socket
