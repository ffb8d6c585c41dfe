// Tests a value that one thread writes while another thread reads it.
#include "mltcp/rdma/internal/versioned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace mltcp::rdma {
namespace {

/// A value of several cache lines, so that a read takes as long as a write.
struct Value {
  std::array<std::uint64_t, 64> words{};
};

TEST(Versioned, load__is_what_was_stored_last) {
  Versioned<Value> versioned;
  EXPECT_EQ(versioned.load().words[63], 0u);
  Value value;
  value.words.fill(7);
  versioned.store(value);
  EXPECT_EQ(versioned.load().words, value.words);
}

TEST(Versioned, load__is_whole_while_another_thread_stores) {
  constexpr int kReads = 200;
  Versioned<Value> versioned;
  std::atomic<bool> is_done{false};
  std::thread writer([&] {
    Value value;
    for (std::uint64_t i = 1; !is_done; ++i) {
      value.words.fill(i);
      versioned.store(value);
      // Some of these pauses are longer than a read.
      for (std::uint64_t pause = i % 16 * 100; pause > 0 && !is_done;) --pause;
    }
  });
  int torn = 0;
  int backwards = 0;
  std::uint64_t last = 0;
  for (int values = 0; values < kReads;) {
    const Value value = versioned.load();
    const auto [least, most] = std::minmax_element(value.words.begin(), value.words.end());
    torn += *least != *most ? 1 : 0;
    backwards += *least < last ? 1 : 0;
    values += *least != last ? 1 : 0;
    last = *least;
  }
  is_done = true;
  writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace mltcp::rdma
