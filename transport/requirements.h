// Checks whether the datapath has the features that a connection and its congestion control need.
#pragma once

#include "mltcp/cc/controller.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"

namespace mltcp {

/// Throws InputError if `algorithm` (cc::Capabilities) or `config` needs a feature that a datapath with `limits` lacks.
/// The message names the feature and a remedy.
void check_requirements(const ConnectionConfig& config, const cc::AlgorithmTable& algorithm,
                        const PacketIo::Limits& limits);

/// Returns the number of path values of a connection, 1 to kMaxPaths. `config` must meet check_requirements().
std::uint32_t paths_of(const ConnectionConfig& config, const PacketIo::Limits& limits);

}  // namespace mltcp
