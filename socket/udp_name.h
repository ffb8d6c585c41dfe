// How a user writes a port on the kernel's UDP sockets.
//
//   udp:            whatever interface of this machine has the host's address
//   udp:eth0        the same, and it must be this interface
//   udp:127.0.0.1   the same, and it must be this address
//   udp:fd00::1     (IPv6 without brackets: no UDP port follows, as that is the host's)
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

/// Whether `text` is written as such a name, be it right or wrong.
bool is_udp_name(std::string_view text);

/// The forms of names, for messages.
inline constexpr std::string_view kUdpForms = "udp:, udp:IFACE, udp:IP";

}  // namespace mltcp::socket
