// Recognises kinds of IP addresses, and writes IP addresses without a port, for datapaths.
#pragma once

#include <string>

#include "mltcp/transport/address.h"

namespace mltcp {

/// Returns whether `address` is in fe80::/10 (RFC 4291 section 2.4).
inline bool is_link_local(const Address& address) {
  return !address.is_v4() && address.ip[0] == 0xFE && (address.ip[1] & 0xC0) == 0x80;
}

/// Returns whether `address` is 0.0.0.0 or ::.
inline bool is_unspecified(const Address& address) {
  return address.ip == decltype(address.ip){} || (address.is_v4() && address.v4_ip() == 0);
}

/// Returns text such as "10.0.0.1" or "fd00:0:0:0:0:0:0:1".
inline std::string ip_text(const Address& address) {
  const std::string text = to_text(address);
  const std::string ip = text.substr(0, text.rfind(':'));
  return ip.front() == '[' ? ip.substr(1, ip.size() - 2) : ip;
}

}  // namespace mltcp
