// Values that all builders of a dumbbell derive from its configuration (see dumbbell.h).
#include "mltcp/lab/fabric/dumbbell.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::fabric {
namespace {

constexpr std::uint64_t kAccessSpeedup = 10;
constexpr std::uint32_t kEthernetBytes = 14;

}  // namespace

LinkConfig access_link(const DumbbellConfig& config) {
  LinkConfig link;
  link.rate =
      config.access_rate.is_zero() ? Rate(config.bottleneck.rate.bits_per_second * kAccessSpeedup) : config.access_rate;
  link.delay = config.access_delay;
  link.buffer_bytes = 0;
  return link;
}

LinkConfig reverse_link(const DumbbellConfig& config) {
  LinkConfig link = config.reverse;
  link.seed = Random::stream(config.reverse.seed, 0x7265766572736520).next();
  return link;
}

void check_buffers(const DumbbellConfig& config) {
  const Bytes min = Bytes{config.mtu} + kEthernetBytes;
  for (const auto& [link, name] : {std::pair{&config.bottleneck, std::string_view("bottleneck")},
                                   std::pair{&config.reverse, std::string_view("reverse")}})
    if (link->buffer_bytes != 0 && link->buffer_bytes < min)
      throw InputError(fmt::format("the buffer of the {} link, {}, can't hold a packet of the MTU; give at least {} B",
                                   name, bytes_to_text(link->buffer_bytes), min));
}

std::uint32_t host_ip(std::uint32_t side, std::uint32_t pair) {
  return 10U << 24 | side << 16 | (pair / 250) << 8 | (pair % 250 + 1);
}

}  // namespace mltcp::fabric
