// Records which packets of a sealed connection have arrived, so that none is accepted twice. Uses a bitmap of the
// latest packet numbers that moves with the highest number (RFC 6479). Only a sender with the key can move it, because
// only packets that were opened are added. ReceivedPackets, the ranges to be acknowledged, cannot replace it. Those
// ranges have room for few holes, and reordered packets leave more.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace mltcp::transport {

class ReplayWindow {
 public:
  /// A packet that arrives for the first time is accepted if its number is at most this far below the highest number.
  /// This is 10 ms of full packets at 4.8 Gbit/s. On short paths a sender waits at most 10 ms for late packets
  /// (Reordering).
  static constexpr std::uint64_t kNumbers = 4096;

  /// Returns whether a packet with this number has been added, or may have been added because its number is too low to
  /// tell.
  [[nodiscard]] bool contains(std::uint64_t number) const {
    const std::uint64_t block = number / kBits;
    if (block > top_) return false;
    if (top_ - block >= kBlocks) return true;
    return (seen_[block % kBlocks] >> (number % kBits) & 1) != 0;
  }
  void add(std::uint64_t number) {
    const std::uint64_t block = number / kBits;
    if (block > top_) {
      const std::uint64_t passed = std::min<std::uint64_t>(block - top_, kBlocks);
      for (std::uint64_t i = 0; i < passed; ++i) seen_[(block - i) % kBlocks] = 0;
      top_ = block;
    } else if (top_ - block >= kBlocks) {
      return;
    }
    seen_[block % kBlocks] |= std::uint64_t{1} << (number % kBits);
  }

 private:
  static constexpr std::uint64_t kBits = 64;
  /// One block more than needed, because the highest block may be almost empty.
  static constexpr std::uint64_t kBlocks = kNumbers / kBits + 1;

  std::uint64_t top_ = 0;  ///< block that contains the highest number
  std::array<std::uint64_t, kBlocks> seen_{};
};

}  // namespace mltcp::transport
