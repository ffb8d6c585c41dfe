// A piece of a packet's contents: recorded until the packet is acknowledged, and retransmitted if it is lost.
#pragma once

#include <cstdint>

namespace mltcp::transport {

enum class ChunkKind : std::uint8_t { data, connect, accept, credit, ping, close, size_probe };

/// A frame that must be acknowledged.
struct Chunk {
  std::uint64_t message = 0;  ///< data: bytes [offset, offset + length) of this message
  std::uint32_t offset = 0;   ///< size_probe: PathMtu::round()
  std::uint16_t length = 0;   ///< size_probe: length of the packet
  ChunkKind kind = ChunkKind::data;
};
static_assert(sizeof(Chunk) == 16);

}  // namespace mltcp::transport
