// Requirements of connections on the datapath; see requirements.h.
#include "mltcp/transport/requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/transport/balancers.h"

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
  find_balancer(config.balance);
  const bool is_spread = config.balance != balancers().front().name;
  if (!is_spread && config.paths > 1)
    throw InputError(
        fmt::format("paths is {}, and balance \"{}\" uses one path; choose another balancer, such as \"reps\"",
                    config.paths, config.balance));
  if (is_spread && limits.paths == 1)
    throw InputError(
        fmt::format("balance is \"{}\", and this datapath has one path; set balance = \"one\", or choose "
                    "another datapath",
                    config.balance));
  if (config.paths > limits.paths)
    throw InputError(
        fmt::format("paths is {}, and this datapath has {}; set no more than that", config.paths, limits.paths));
}

std::uint32_t paths_of(const ConnectionConfig& config, const PacketIo::Limits& limits) {
  constexpr std::uint32_t usual = 128;
  if (config.balance == balancers().front().name) return 1;
  return config.paths > 0 ? config.paths : std::min({limits.paths, usual, kMaxPaths});
}

}  // namespace mltcp
