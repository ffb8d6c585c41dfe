// Tests the ring between the datapath and the writer.
#include "mltcp/transport/capture/internal/record_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::capture::ring_test {
namespace {

std::vector<std::byte> bytes_of(std::size_t size, std::uint64_t number) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 31 + i);
  return bytes;
}

bool push(RecordRing& ring, std::uint64_t number, std::size_t size, std::size_t split = 0) {
  const auto bytes = bytes_of(size, number);
  Record record;
  record.time = Nanos(static_cast<std::int64_t>(number));
  record.stored_bytes = static_cast<std::uint32_t>(size);
  const std::span<const std::byte> all(bytes);
  return ring.push(record, all.first(split), all.subspan(split));
}

/// Removes the oldest record. Returns its number, or -1 if the ring is empty.
std::int64_t take(RecordRing& ring) {
  std::span<const std::byte> bytes;
  const Record* const record = ring.front(bytes);
  if (record == nullptr) return -1;
  const std::int64_t number = record->time.count;
  const auto expected = bytes_of(record->stored_bytes, static_cast<std::uint64_t>(number));
  EXPECT_EQ(bytes.size(), expected.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin()));
  ring.pop();
  return number;
}

TEST(RecordRing, empty__nothing) {
  RecordRing ring(1024);
  EXPECT_EQ(take(ring), -1);
}

TEST(RecordRing, two_pieces__come_out_as_one) {
  RecordRing ring(1024);
  EXPECT_TRUE(push(ring, 7, 100, 33));
  EXPECT_EQ(take(ring), 7);
  EXPECT_EQ(take(ring), -1);
}

TEST(RecordRing, full__refuses_and_goes_on_after_a_pop) {
  RecordRing ring(1024);
  std::int64_t in = 0;
  while (push(ring, static_cast<std::uint64_t>(in), 100)) ++in;
  EXPECT_GE(in, 4);
  EXPECT_FALSE(push(ring, 99, 100));
  EXPECT_TRUE(ring.is_half_full());
  EXPECT_EQ(take(ring), 0);
  EXPECT_TRUE(push(ring, static_cast<std::uint64_t>(in), 100));
  for (std::int64_t number = 1; number <= in; ++number) EXPECT_EQ(take(ring), number);
  EXPECT_EQ(take(ring), -1);
}

TEST(RecordRing, longer_than_the_ring__refused) {
  RecordRing ring(1024);
  EXPECT_FALSE(push(ring, 0, 2000));
  EXPECT_TRUE(push(ring, 1, 10));
  EXPECT_EQ(take(ring), 1);
}

TEST(RecordRing, random_sizes_over_many_turns__all_come_out_whole_and_in_order) {
  RecordRing ring(4096);
  Random random(5);
  std::uint64_t in = 0;
  std::int64_t out = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random.below(2) == 0) {
      const std::size_t size = random.below(400);
      in += push(ring, in, size, random.below(size + 1)) ? 1U : 0U;
    } else if (const std::int64_t number = take(ring); number >= 0) {
      ASSERT_EQ(number, out);
      ++out;
    }
  }
  EXPECT_GT(out, 5000);
  while (take(ring) >= 0) ++out;
  EXPECT_EQ(static_cast<std::uint64_t>(out), in);
}

TEST(RecordRing, two_threads__what_was_taken_comes_out_in_order) {
  RecordRing ring(8192);
  constexpr std::uint64_t max = 50'000;
  std::thread producer([&] {
    for (std::uint64_t number = 0; number < max;)
      if (push(ring, number, number % 211)) ++number;
  });
  for (std::uint64_t number = 0; number < max;) {
    const std::int64_t got = take(ring);
    if (got < 0) continue;
    EXPECT_EQ(static_cast<std::uint64_t>(got), number);
    ++number;
  }
  producer.join();
}

}  // namespace
}  // namespace mltcp::capture::ring_test
