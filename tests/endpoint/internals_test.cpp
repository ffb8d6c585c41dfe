// Tests parts of endpoints: the ring, the matcher against a plain model, and frames of random bytes.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "endpoint_pair.h"
#include "mltcp/endpoint/internal/bounded_ring.h"
#include "mltcp/endpoint/internal/frames.h"
#include "mltcp/endpoint/internal/matcher.h"

namespace mltcp::endpoint::internals_test {
namespace {

using testing_pair::bytes_of;

TEST(BoundedRing, push_and_pop__are_first_in_first_out_and_bounded) {
  BoundedRing<int> ring(3);
  EXPECT_EQ(ring.capacity(), 4U);
  int value = 0;
  for (int round = 0; round < 10; ++round) {
    EXPECT_FALSE(ring.pop(value));
    EXPECT_FALSE(ring.has_some());
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(round * 10 + i));
    EXPECT_FALSE(ring.push(99));
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(ring.has_some());
      ASSERT_TRUE(ring.pop(value));
      EXPECT_EQ(value, round * 10 + i);
    }
  }
}

TEST(BoundedRing, four_threads__lose_and_double_nothing) {
  BoundedRing<std::uint32_t> ring(64);
  constexpr std::uint32_t each = 20'000;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint32_t> taken{0};
  std::vector<std::thread> threads;
  for (std::uint32_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (std::uint32_t i = 0; i < each; ++i)
        while (!ring.push(writer * each + i)) std::this_thread::yield();
    });
    threads.emplace_back([&] {
      std::array<std::uint32_t, 2> last{};
      std::uint32_t value = 0;
      while (taken < 2 * each) {
        if (!ring.pop(value)) {
          std::this_thread::yield();
          continue;
        }
        ++taken;
        sum += value;
        std::uint32_t& before = last[value / each];
        EXPECT_GE(value % each + 1, before) << "what one thread has written comes in its order";
        before = value % each + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, std::uint64_t{2 * each} * (2 * each - 1) / 2);
}

bool fits(const Operation& receive, ConnectionHandle from, std::uint64_t tag) {
  return (receive.connection == kAnyConnection || receive.connection == from) &&
         ((receive.tag ^ tag) & receive.mask) == 0;
}

void prepare(std::array<Link, 3>& links) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].handle = 100 + i;
    links[i].tagged = std::make_unique<Tagged>(EndpointConfig(), links[i]);
  }
}

// Compares random receives and messages with plain lists that are searched from the front, as MPI specifies.
TEST(Matcher, receives_and_messages__meet_as_in_a_plain_list) {
  Random random(5);
  for (int round = 0; round < 30; ++round) {
    Matcher matcher;
    matcher.reset(16, 16, random.next());  // few buckets, so that the chains of the hash table are long
    std::array<Link, 3> links;
    prepare(links);
    std::deque<Operation> operations;
    std::deque<Unexpected> messages;
    std::deque<Operation*> posted;
    std::deque<Unexpected*> held;
    for (int turn = 0; turn < 400; ++turn) {
      Link& link = links[random.below(links.size())];
      const std::uint64_t tag = random.below(6);
      if (random.chance(0.1) && !posted.empty()) {  // cancelled
        const auto at = posted.begin() + static_cast<std::ptrdiff_t>(random.below(posted.size()));
        matcher.erase(**at);
        posted.erase(at);
      } else if (random.chance(0.5)) {
        Operation& receive = operations.emplace_back();
        const bool any = random.chance(0.3);
        receive.connection = any ? kAnyConnection : link.handle;
        receive.tag = tag;
        receive.mask = random.chance(0.3) ? random.below(8) : kWholeTag;
        const auto expected = std::find_if(held.begin(), held.end(), [&](const Unexpected* message) {
          return fits(receive, message->link->handle, message->tag);
        });
        Unexpected* const found = matcher.message_for(any ? nullptr : &link, receive.tag, receive.mask);
        ASSERT_EQ(found, expected == held.end() ? nullptr : *expected);
        if (found == nullptr) {
          matcher.post(receive);
          posted.push_back(&receive);
          continue;
        }
        matcher.erase(*found);
        found->link->tagged->unexpected.erase(*found);
        held.erase(expected);
      } else {
        const auto expected = std::find_if(posted.begin(), posted.end(),
                                           [&](const Operation* receive) { return fits(*receive, link.handle, tag); });
        Operation* const found = matcher.receive_for(link.handle, tag);
        ASSERT_EQ(found, expected == posted.end() ? nullptr : *expected);
        if (found != nullptr) {
          matcher.erase(*found);
          posted.erase(expected);
          continue;
        }
        Unexpected& message = messages.emplace_back();
        message.link = &link;
        message.tag = tag;
        link.tagged->unexpected.push(message);
        matcher.hold(message, link.handle);
        held.push_back(&message);
      }
    }
  }
}

TEST(Frames, parse__reads_what_was_written_and_survives_any_bytes) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = bytes_of(random.below(60), random.next());
    if (bytes.size() >= 4 && random.chance(0.7)) {
      bytes[0] = static_cast<std::byte>(random.below(8));
      bytes[1] = bytes[2] = bytes[3] = std::byte{0};
    }
    Frame frame;
    if (!parse(bytes, frame)) continue;
    std::array<std::byte, Frame::kHeaderBytes> again{};
    write(frame, again);
    EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin()));
    Hello hello;
    EXPECT_NE(parse(std::span<const std::byte>(bytes), hello), Verdict::fine);
  }
  Frame frame{.type = FrameType::eager, .credit = 7, .tag = ~std::uint64_t{1}, .id = 0x0102030405060708, .length = 3};
  std::vector<std::byte> bytes(Frame::kHeaderBytes + 3);
  write(frame, std::span<std::byte, Frame::kHeaderBytes>(bytes.data(), Frame::kHeaderBytes));
  Frame read;
  ASSERT_TRUE(parse(bytes, read));
  EXPECT_EQ(read.tag, frame.tag);
  EXPECT_EQ(read.id, frame.id);
  EXPECT_EQ(peek_tag(bytes), frame.tag);
  EXPECT_EQ(peek_tag({}), 0U);
  bytes.pop_back();
  EXPECT_FALSE(parse(bytes, read));
}

TEST(Texts, codes__have_a_name_and_a_cure_each) {
  for (std::uint8_t code = 0; code < kCodes; ++code) {
    EXPECT_FALSE(name_of(static_cast<Code>(code)).empty());
    if (code == 0) continue;
    EXPECT_NE(to_text(static_cast<Code>(code)).find(';'), std::string_view::npos) << int{code};
  }
  EXPECT_EQ(name_of(static_cast<Code>(200)), "unknown code");
}

}  // namespace
}  // namespace mltcp::endpoint::internals_test
