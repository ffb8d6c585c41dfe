// Names of ports on UDP sockets; see udp_name.h.
#include "mltcp/socket/udp_name.h"

#include <fmt/format.h>
#include <net/if.h>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::socket {
namespace {

constexpr std::string_view kPrefix = "udp:";
constexpr std::string_view kKind = "udp";

/// Names of interfaces contain no colon, and none consists only of digits and dots. An alias such as eth0:1 is not an
/// interface.
bool looks_like_address(std::string_view text) {
  return text.find(':') != std::string_view::npos || text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

bool is_udp_name(std::string_view text) { return text == kKind || text.starts_with(kPrefix); }

UdpName parse_udp_name(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return InputError(fmt::format("port {}: {}", in_quotes(text), why));
  };
  if (!text.starts_with(kPrefix)) throw wrong(fmt::format("the colon is missing; write {}", kUdpForms));
  const std::string_view target = text.substr(kPrefix.size());
  UdpName name;
  if (target.empty()) return name;
  if (target.front() == '[')
    throw wrong("the address has brackets, but no UDP port follows it here; write it without, for example udp:fd00::1");
  if (looks_like_address(target)) {
    try {
      name.address = Address::parse(target);
    } catch (const InputError& error) {
      throw wrong(error.what());
    }
    if (name.address->port != 0)
      throw wrong(
          "the UDP port belongs to the host, not to the device; leave it out here, and give it with --udp-port");
    return name;
  }
  if (target.size() >= IFNAMSIZ)
    throw wrong(
        fmt::format("an interface's name has {} characters at most; ip link lists the existing ones", IFNAMSIZ - 1));
  name.interface = std::string(target);
  return name;
}

}  // namespace mltcp::socket
