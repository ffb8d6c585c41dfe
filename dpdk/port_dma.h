// Maps memory for the DMA of a port's device (transport/registered_memory.h). Internal to this folder.
#pragma once

#include <memory>
#include <string>

#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {

/// Returns the DMA device of port `id`. `reads_by_dma` is true if hardware reads the memory (see Port). Error messages
/// contain `name` and `driver`.
std::unique_ptr<DmaDevice> make_port_dma(std::uint16_t id, bool reads_by_dma, std::string name, std::string driver);

}  // namespace mltcp::dpdk
