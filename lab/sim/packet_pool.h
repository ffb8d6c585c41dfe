// The simulator's packets and their pool. The pool has slots of two sizes, each with a LIFO free list. So it reuses the
// slot freed last, which is most likely in the CPU cache. Memory grows to the maximum number of packets that exist at
// once. The pool frees its memory only when it is destroyed.
//
// With AddressSanitizer, free slots are poisoned. So AddressSanitizer detects reads of a received packet after its
// release.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/transport/packet_io.h"

namespace mltcp::sim {

/// A packet in flight, followed in memory by the real bytes of its UDP payload.
struct Packet {
  Packet* next = nullptr;  ///< next packet in the list of free, received or lent packets
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t wire_bytes = 0;  ///< bytes on the wire, including all headers and a virtual payload
  std::uint32_t virtual_bytes = 0;
  std::uint16_t length = 0;  ///< number of real bytes that follow in memory
  Ecn ecn = Ecn::not_ect;
  bool large : 1 = false;      ///< whether the packet is in a large slot
  bool corrupted : 1 = false;  ///< whether a fault has flipped bits, so that the contents must not be trusted
  bool trimmed : 1 = false;    ///< whether a link has removed the end of the packet
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;  ///< number of switches that have forwarded the packet
  std::uint8_t path = 0;  ///< TxPacket::path

  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::span<const std::byte> bytes() { return {data(), length}; }
};
static_assert(sizeof(Packet) == 32, "and its header's beginning lie in one cache line");

class PacketPool {
 public:
  /// `max_length` is the maximum number of bytes of a packet.
  explicit PacketPool(std::size_t max_length);

  /// Returns a packet with `length` bytes, at most `max_length`. The fields other than `length` are not initialised.
  /// The caller owns the packet until free().
  Packet* allocate(std::size_t length) {
    Class& wanted = classes_[length > kSmallLength ? 1 : 0];
    if (wanted.free == nullptr) [[unlikely]]
      grow(wanted);
    Packet* packet = wanted.free;
    wanted.free = packet->next;
    ++alive_;
    unpoison(packet, wanted.slot_bytes);
    packet->length = static_cast<std::uint16_t>(length);
    return packet;
  }
  void free(Packet* packet) {
    Class& owner = classes_[packet->large ? 1 : 0];
    poison(packet, owner.slot_bytes);
    packet->next = owner.free;
    owner.free = packet;
    --alive_;
  }
  /// Returns a copy of `original`. The caller owns the copy until free().
  Packet* copy(Packet* original);

  [[nodiscard]] std::size_t alive() const { return alive_; }
  /// Returns the bytes of memory that the pool has allocated.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// Maximum length of a packet in a small slot: enough for headers without payload, and for acknowledgements.
  static constexpr std::size_t kSmallLength = 256 - sizeof(Packet);
  static constexpr std::size_t kAlignment = 64;

  struct Slab {
    struct Deleter {
      void operator()(std::byte* slab) const { ::operator delete (slab, std::align_val_t{kAlignment}); }
    };
    std::unique_ptr<std::byte, Deleter> memory;
    std::size_t bytes = 0;
  };
  struct Class {
    Packet* free = nullptr;
    std::size_t slot_bytes = 0;
    bool large = false;
  };

  void grow(Class& wanted);
  static void poison(Packet* packet, std::size_t slot_bytes);
  static void unpoison(Packet* packet, std::size_t slot_bytes);

  std::array<Class, 2> classes_;
  std::size_t alive_ = 0;
  std::vector<Slab> slabs_;
};

#if defined(__SANITIZE_ADDRESS__)
#define MLTCP_SIM_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MLTCP_SIM_POISON 1
#endif
#endif
#ifdef MLTCP_SIM_POISON
extern "C" void __asan_poison_memory_region(void const volatile* address, std::size_t size);
extern "C" void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);
inline void PacketPool::poison(Packet* packet, std::size_t slot_bytes) {
  __asan_poison_memory_region(packet->data(), slot_bytes - sizeof(Packet));
}
inline void PacketPool::unpoison(Packet* packet, std::size_t slot_bytes) {
  __asan_unpoison_memory_region(packet->data(), slot_bytes - sizeof(Packet));
}
#undef MLTCP_SIM_POISON
#else
inline void PacketPool::poison(Packet* /*packet*/, std::size_t /*slot_bytes*/) {}
inline void PacketPool::unpoison(Packet* /*packet*/, std::size_t /*slot_bytes*/) {}
#endif

}  // namespace mltcp::sim
