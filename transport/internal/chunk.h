// What a packet carries, piece by piece: recorded until the packet is acknowledged, and brought back if it is lost.
#pragma once

#include <cstdint>

namespace mltcp {

enum class ChunkKind : std::uint8_t { data, connect, accept, credit, ping, close };

/// A frame of a packet that asks for an acknowledgement.
struct Chunk {
  std::uint64_t message = 0;  ///< data: bytes [offset, offset + length) of this message
  std::uint32_t offset = 0;
  std::uint16_t length = 0;
  ChunkKind kind = ChunkKind::data;
};
static_assert(sizeof(Chunk) == 16);

}  // namespace mltcp
