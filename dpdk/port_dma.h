// How a port's device is told of memory that it may read (transport/registered_memory.h). Internal to this folder.
#pragma once

#include <memory>
#include <string>

#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {

/// For port `id`, which `name` and `driver` are for messages of. `reads_by_dma` as Port tells it.
std::unique_ptr<DmaDevice> make_port_dma(std::uint16_t id, bool reads_by_dma, std::string name, std::string driver);

}  // namespace mltcp::dpdk
