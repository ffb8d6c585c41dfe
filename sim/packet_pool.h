// The simulator's packets and the pool they live in: slots of two sizes, handed out from free lists that reuse the
// slot freed last, because it is the one in the processor's cache. Memory grows to the most packets that were ever
// alive at once and stays there.
//
// Under AddressSanitizer the bytes of a free slot are poisoned, so that an endpoint which reads a received packet
// after it has given it back is caught.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/transport/packet_io.h"

namespace mltcp::sim {

/// A packet on its way, followed in memory by the bytes of its UDP payload that exist.
struct Packet {
  Packet* next = nullptr;  ///< in whatever list holds the packet: free, received, lent to the receiver
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t wire_bytes = 0;  ///< all headers and a virtual payload included
  std::uint32_t virtual_bytes = 0;
  std::uint16_t length = 0;  ///< bytes that exist
  Ecn ecn = Ecn::not_ect;
  bool large = false;      ///< which free list it came from
  bool corrupted = false;  ///< a fault has flipped bits: what the bytes say about the packet isn't to be believed
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;  ///< switches that have forwarded it

  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::span<const std::byte> bytes() { return {data(), length}; }
};
static_assert(sizeof(Packet) == 32, "and its header's beginning lie in one cache line");

class PacketPool {
 public:
  /// Packets have at most `max_length` bytes.
  explicit PacketPool(std::size_t max_length);

  /// A packet with room for `length` bytes (not above max_length) and `length` set; all else is unset. It is the
  /// caller's until free().
  Packet* allocate(std::size_t length) {
    Class& wanted = classes_[length > small_length ? 1 : 0];
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
  /// A second packet with the same contents.
  Packet* copy(Packet* original);

  [[nodiscard]] std::size_t alive() const { return alive_; }
  /// Memory that the pool holds.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// What fits a small slot: headers without payload, and acknowledgements.
  static constexpr std::size_t small_length = 256 - sizeof(Packet);
  static constexpr std::size_t alignment = 64;

  struct Slab {
    struct Deleter {
      void operator()(std::byte* slab) const { ::operator delete (slab, std::align_val_t{alignment}); }
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
