// Requirements of connections on the datapath; see requirements.h.
#include "mltcp/transport/requirements.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"

namespace mltcp {

void check_requirements(const ConnectionConfig& config, const cc::AlgorithmTable& algorithm,
                        const PacketIo::Limits& limits) {
  if (algorithm.capabilities.needs_ecn && !limits.ecn)
    throw InputError(
        fmt::format("congestion control \"{}\" needs ECN, and this datapath carries none; choose one without ECN, such "
                    "as \"swift\", or another datapath",
                    algorithm.name));
  if (config.ecn && !limits.ecn) throw InputError("ecn is true, and this datapath carries none; set ecn = false");
  if (algorithm.capabilities.needs_hops && !limits.hops)
    throw InputError(
        fmt::format("congestion control \"{}\" needs the number of hops, and this datapath does not report it; choose "
                    "another of the two",
                    algorithm.name));
  if (config.priority >= limits.priorities)
    throw InputError(fmt::format("priority is {}, and the highest of this datapath is {}; set no more than that",
                                 config.priority, limits.priorities - 1));
}

}  // namespace mltcp
