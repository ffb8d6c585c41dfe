// Who looks at the frames of a port that forwards them, such as a capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp::encap {

class FrameTap {
 public:
  enum class Way : std::uint8_t { in, out };

  virtual ~FrameTap() = default;
  /// On the data path, in the thread of the port. `first` are the first bytes of a frame of `frame_bytes` bytes, and
  /// stay the caller's.
  virtual void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept = 0;
};

}  // namespace mltcp::encap
