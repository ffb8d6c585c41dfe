// Tests the packet pool (lab/sim/packet_pool.cpp): slots do not overlap, are reused, and keep their contents when
// copied.
#include "mltcp/lab/sim/packet_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::sim {
namespace {

TEST(PacketPool, allocate__slots_do_not_overlap_and_memory_stays_flat) {
  PacketPool pool(1472);
  Random random(2);
  std::vector<Packet*> packets;
  std::size_t memory = 0;
  for (int round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < 500; ++i) {
      // The sizes are around the limit between small and large slots, and at both ends of the range.
      const std::array<std::size_t, 10> sizes{0, 1, 215, 216, 217, 223, 224, 225, 1471, 1472};
      Packet* packet = pool.allocate(i < 10 ? sizes[i] : random.below(1473));
      packet->source = i;
      std::memset(packet->data(), static_cast<int>(i & 0xFF), packet->length);
      packets.push_back(packet);
    }
    EXPECT_EQ(pool.alive(), 500U);
    for (unsigned i = 0; i < 500; ++i) {
      EXPECT_EQ(packets[i]->source, i);
      for (const std::byte byte : packets[i]->bytes()) ASSERT_EQ(byte, std::byte(i & 0xFF));
      pool.free(packets[i]);
    }
    packets.clear();
    EXPECT_EQ(pool.alive(), 0U);
    if (round == 0) memory = pool.memory_bytes();
  }
  EXPECT_LE(pool.memory_bytes(), memory + std::size_t{2} * 64 * 1024);
}

TEST(PacketPool, copy__is_a_packet_of_its_own) {
  PacketPool pool(1472);
  Packet* packet = pool.allocate(300);
  packet->source = 1;
  packet->destination = 2;
  packet->wire_bytes = 1042;
  packet->virtual_bytes = 700;
  packet->ecn = Ecn::ce;
  packet->corrupted = false;
  std::memset(packet->data(), 0x5A, 300);
  Packet* copy = pool.copy(packet);
  packet->data()[0] = std::byte{0};
  EXPECT_NE(copy, packet);
  EXPECT_EQ(copy->source, 1U);
  EXPECT_EQ(copy->destination, 2U);
  EXPECT_EQ(copy->wire_bytes, 1042U);
  EXPECT_EQ(copy->virtual_bytes, 700U);
  EXPECT_EQ(copy->ecn, Ecn::ce);
  EXPECT_FALSE(copy->corrupted);
  ASSERT_EQ(copy->length, 300U);
  for (const std::byte byte : copy->bytes()) EXPECT_EQ(byte, std::byte{0x5A});
  pool.free(packet);
  pool.free(copy);
}

}  // namespace
}  // namespace mltcp::sim
