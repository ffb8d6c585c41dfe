// Addresses as text (see address.h).
#include "mltcp/transport/address.h"

#include <fmt/format.h>

namespace mltcp {

std::string to_text(const Address& address) {
  const auto& ip = address.ip;
  if (address.is_v4()) return fmt::format("{}.{}.{}.{}:{}", ip[12], ip[13], ip[14], ip[15], address.port);
  // RFC 5952 without the shortening of zero runs.
  std::string text = "[";
  for (std::size_t i = 0; i < 16; i += 2) text += fmt::format("{}{:x}", i == 0 ? "" : ":", ip[i] << 8 | ip[i + 1]);
  return text + fmt::format("]:{}", address.port);
}

}  // namespace mltcp
