// Packets on their way from the data path to the thread that writes them: a ring of bytes with one producer and one
// consumer. The producer copies and publishes, or finds no room and counts; it never waits, allocates or locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/capture/internal/pcapng.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::capture {

/// What is known of a packet beside its bytes.
struct Record {
  Nanos time;
  std::uint32_t stored_bytes = 0;    ///< that follow it in the ring
  std::uint32_t original_bytes = 0;  ///< of the packet, or of its UDP payload
  Address remote;                    ///< of a UDP payload
  Direction direction = Direction::in;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;
};

class RecordRing {
 public:
  /// `bytes` is rounded up to a power of two.
  explicit RecordRing(std::size_t bytes);

  /// Producer. Of both pieces together the first `record.stored_bytes` are kept. False: there is no room.
  bool push(const Record& record, std::span<const std::byte> first, std::span<const std::byte> second) noexcept;

  /// Consumer. The oldest, and its bytes; null if there is none. Both stay until pop().
  const Record* front(std::span<const std::byte>& bytes) noexcept;
  void pop() noexcept;
  [[nodiscard]] bool is_half_full() const noexcept {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed) > size_ / 2;
  }

 private:
  struct Entry {
    std::uint32_t bytes = 0;  ///< with this header and padding
    bool is_gap = false;      ///< nothing but the rest of the ring
    Record record;
  };
  static std::size_t entry_bytes(std::size_t stored) {
    return (sizeof(Entry) + stored + alignof(Entry) - 1) & ~(alignof(Entry) - 1);
  }

  const std::size_t size_;
  const std::unique_ptr<std::byte[]> memory_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  ///< written up to here
  std::uint64_t known_tail_ = 0;                    ///< the producer's latest look
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< read up to here
};

}  // namespace mltcp::capture
