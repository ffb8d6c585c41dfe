// Passes packets from the data path to the thread that writes them: a ring of bytes with one producer and one consumer.
// The producer copies and publishes a packet, or drops the packet if the ring is full. The producer never waits,
// allocates or locks.
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

/// Properties of a packet besides its bytes.
struct Record {
  Nanos time;
  std::uint32_t stored_bytes = 0;  ///< bytes that follow the record in the ring
  /// Length in bytes of the whole packet, or of the UDP payload if only the payload is captured.
  std::uint32_t original_bytes = 0;
  Address remote;  ///< address of the peer; only for UDP payloads
  Direction direction = Direction::in;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;
};

class RecordRing {
 public:
  /// Constructs an empty ring of `bytes` bytes, rounded up to a power of two.
  explicit RecordRing(std::size_t bytes);

  /// Appends a packet. Only the producer may call this function. Stores `first` followed by `second`, up to
  /// `record.stored_bytes` bytes. Returns false if the ring is full.
  bool push(const Record& record, std::span<const std::byte> first, std::span<const std::byte> second) noexcept;

  /// Returns the oldest record; null if the ring is empty. Sets `bytes` to the stored bytes of the record's packet. The
  /// record and its bytes are valid until pop(). Only the consumer may call this function.
  const Record* front(std::span<const std::byte>& bytes) noexcept;
  void pop() noexcept;
  [[nodiscard]] bool is_half_full() const noexcept {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed) > size_ / 2;
  }

 private:
  struct Entry {
    std::uint32_t bytes = 0;  ///< size of the entry, including this header and padding
    bool is_gap = false;      ///< true for the unused rest of the memory, which is no entry
    Record record;
  };
  static std::size_t entry_bytes(std::size_t stored) {
    return (sizeof(Entry) + stored + alignof(Entry) - 1) & ~(alignof(Entry) - 1);
  }

  const std::size_t size_;
  const std::unique_ptr<std::byte[]> memory_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  ///< end of the written bytes
  std::uint64_t known_tail_ = 0;                    ///< tail_ as last read by the producer
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< end of the bytes already read
};

}  // namespace mltcp::capture
