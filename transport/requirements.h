// What a connection and its congestion control need of the datapath below, held against what that can.
#pragma once

#include "mltcp/cc/controller.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"

namespace mltcp {

/// Throws InputError that names what is missing, and the cure, if `algorithm` (cc::Capabilities) or `config` needs what
/// a datapath with `limits` doesn't have.
void check_requirements(const ConnectionConfig& config, const cc::AlgorithmTable& algorithm,
                        const PacketIo::Limits& limits);

}  // namespace mltcp
