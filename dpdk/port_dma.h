// Maps memory for the DMA of a port's device (transport/registered_memory.h). Internal to this folder.
#pragma once

#include <memory>
#include <string>

#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {

/// For port `id`; `name` and `driver` are for messages. `reads_by_dma`: see Port.
std::unique_ptr<DmaDevice> make_port_dma(std::uint16_t id, bool reads_by_dma, std::string name, std::string driver);

}  // namespace mltcp::dpdk
