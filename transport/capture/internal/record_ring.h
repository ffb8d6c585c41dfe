// Passes packets from the data path to the thread that writes them: a ring of bytes with one producer and one consumer.
// The producer copies and publishes a packet, or counts it if there is no room; it never waits, allocates or locks.
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

/// A packet's properties besides its bytes.
struct Record {
  Nanos time;
  std::uint32_t stored_bytes = 0;    ///< bytes that follow the record in the ring
  std::uint32_t original_bytes = 0;  ///< length of the packet, or of its UDP payload
  Address remote;                    ///< peer's address, for a UDP payload
  Direction direction = Direction::in;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;
};

class RecordRing {
 public:
  /// `bytes` is rounded up to a power of two.
  explicit RecordRing(std::size_t bytes);

  /// For the producer. Keeps the first `record.stored_bytes` of both pieces together. False: no room.
  bool push(const Record& record, std::span<const std::byte> first, std::span<const std::byte> second) noexcept;

  /// For the consumer. The oldest record, and its bytes; null if there is none. Both are valid until pop().
  const Record* front(std::span<const std::byte>& bytes) noexcept;
  void pop() noexcept;
  [[nodiscard]] bool is_half_full() const noexcept {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed) > size_ / 2;
  }

 private:
  struct Entry {
    std::uint32_t bytes = 0;  ///< including this header and padding
    bool is_gap = false;      ///< an unused rest of the ring
    Record record;
  };
  static std::size_t entry_bytes(std::size_t stored) {
    return (sizeof(Entry) + stored + alignof(Entry) - 1) & ~(alignof(Entry) - 1);
  }

  const std::size_t size_;
  const std::unique_ptr<std::byte[]> memory_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  ///< end of the written bytes
  std::uint64_t known_tail_ = 0;                    ///< the tail as last read by the producer
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< end of the bytes already read
};

}  // namespace mltcp::capture
