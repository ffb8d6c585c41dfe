// Chunks: frames that must arrive. A chunk is recorded until its packet is acknowledged. If the packet is lost, the
// connection gets the chunk back and sends it again if necessary.
#pragma once

#include <cstdint>

namespace mltcp::transport {

enum class ChunkKind : std::uint8_t { data, connect, accept, credit, ping, close, size_probe };

/// A frame that must be acknowledged.
struct Chunk {
  /// For data: number of the message; the frame carries its bytes [offset, offset + length).
  std::uint64_t message = 0;
  std::uint32_t offset = 0;  ///< for size_probe: the value of PathMtu::round()
  std::uint16_t length = 0;  ///< for size_probe: the size of the packet in bytes
  ChunkKind kind = ChunkKind::data;
};
static_assert(sizeof(Chunk) == 16);

}  // namespace mltcp::transport
