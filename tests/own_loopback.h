// A loopback address for each process, so that parallel tests can use the same port.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>

namespace mltcp {

/// Returns an address in 127.0.0.0/8 (RFC 1122 section 3.2.1.3), such as "127.64.18.23", that is different in each
/// process.
inline std::string own_loopback() {
  const auto id = static_cast<unsigned>(getpid());  // Linux process IDs are below 2^22
  return fmt::format("127.{}.{}.{}", 64 + (id >> 16), id >> 8 & 0xFF, id & 0xFF);
}

}  // namespace mltcp
