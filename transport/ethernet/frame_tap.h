// An observer, such as a capture, of the frames at a forwarding port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp::encap {

class FrameTap {
 public:
  enum class Way : std::uint8_t { in, out };

  virtual ~FrameTap() = default;
  /// Called on the data path, in the port's thread. `first` has the first bytes of a frame of `frame_bytes` bytes, and
  /// is valid only during the call.
  virtual void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept = 0;
};

}  // namespace mltcp::encap
