// The bytes of messages whose payload is real (see payload.h).
#include "mltcp/lab/experiment/engine/payload.h"

#include "mltcp/base/random.h"
#include "mltcp/transport/crc32c.h"

namespace mltcp::experiment {

Payload::Payload(std::uint64_t seed, Bytes longest) : pattern_(longest + kStep * kTurns) {
  Random random = Random::stream(seed, 0xB17E5);
  for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random.next() >> 56);
}

std::uint32_t Payload::checksum(std::uint64_t number, Bytes length) {
  const auto [at, is_new] = known_.try_emplace({number % kTurns, length}, 0);
  if (is_new) at->second = crc32c(0, message(number, length));
  return at->second;
}

}  // namespace mltcp::experiment
