// Allocates slots for packets in slabs (see packet_pool.h).
#include "mltcp/lab/sim/packet_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace mltcp::sim {

PacketPool::PacketPool(std::size_t max_length) {
  const auto slot_for = [](std::size_t length) {
    return (sizeof(Packet) + length + kAlignment - 1) / kAlignment * kAlignment;
  };
  classes_[0] = {nullptr, slot_for(kSmallLength), false};
  classes_[1] = {nullptr, slot_for(std::max(max_length, kSmallLength)), true};
}

void PacketPool::grow(Class& wanted) {
  constexpr std::size_t slab_bytes = 65536;
  const std::size_t count = std::max<std::size_t>(slab_bytes / wanted.slot_bytes, 1);
  const std::size_t bytes = count * wanted.slot_bytes;
  auto* memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
  slabs_.push_back({std::unique_ptr<std::byte, Slab::Deleter>(memory), bytes});
  for (std::size_t i = count; i-- > 0;) {
    auto* packet = new (memory + i * wanted.slot_bytes) Packet;
    packet->large = wanted.large;
    packet->next = wanted.free;
    wanted.free = packet;
    poison(packet, wanted.slot_bytes);
  }
}

Packet* PacketPool::copy(Packet* original) {
  Packet* twin = allocate(original->length);
  twin->source = original->source;
  twin->destination = original->destination;
  twin->wire_bytes = original->wire_bytes;
  twin->virtual_bytes = original->virtual_bytes;
  twin->ecn = original->ecn;
  twin->corrupted = original->corrupted;
  twin->priority = original->priority;
  twin->hops = original->hops;
  twin->path = original->path;
  twin->trimmed = original->trimmed;
  std::memcpy(twin->data(), original->data(), original->length);
  return twin;
}

std::size_t PacketPool::memory_bytes() const {
  std::size_t sum = 0;
  for (const Slab& slab : slabs_) sum += slab.bytes;
  return sum;
}

}  // namespace mltcp::sim
