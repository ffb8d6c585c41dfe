// Tests the messages that Gloo's pairs exchange, and bytes that are not valid messages.
#include "mltcp/plugins/gloo/internal/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gloo/common/error.h"
#include "mltcp/plugins/gloo/internal/buffers.h"
#include "mltcp/plugins/gloo/internal/open_device.h"

namespace gloo::transport::mltcp {
namespace {

TEST(GlooProtocol, records__come_out_as_they_went_in) {
  std::vector<std::byte> bytes;
  const std::vector<std::byte> data(13, std::byte{7});
  append_record(bytes, {Record::Kind::write_inline, 0, 1, 2, 13, 4}, data);
  append_record(bytes, {Record::Kind::receive_ready, 0, 5, 6, 7, 8});
  EXPECT_EQ(whole_records(bytes), bytes.size());
  std::span<const std::byte> in(bytes);
  Record record;
  std::span<const std::byte> inside;
  ASSERT_TRUE(take_record(in, record, inside));
  EXPECT_EQ(record.offset, 4U);
  EXPECT_TRUE(std::equal(inside.begin(), inside.end(), data.begin(), data.end()));
  ASSERT_TRUE(take_record(in, record, inside));
  EXPECT_EQ(record.kind, Record::Kind::receive_ready);
  EXPECT_EQ(record.id, 6U);
  EXPECT_TRUE(in.empty());
}

TEST(GlooProtocol, frames__hold_whole_records) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 1000; ++i) append_record(bytes, {Record::Kind::send_ready, 0, 1, 0, 0, 0});
  EXPECT_EQ(whole_records(bytes), kFrameBytes / kRecordBytes * kRecordBytes);
}

TEST(GlooProtocol, random_bytes__are_read_within_their_bounds) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random() % 8 == 0 ? random() : random() % 8);
    std::span<const std::byte> in(bytes);
    Record record;
    std::span<const std::byte> inside;
    while (take_record(in, record, inside)) {
      EXPECT_LE(inside.size(), bytes.size());
      EXPECT_GE(record.kind, Record::Kind::receive_ready);
    }
    EXPECT_FALSE(parse_hello(bytes));
    const std::vector<char> address(bytes.size(), 'M');
    EXPECT_THROW((void)parse_pair_address(address), ::gloo::InvalidOperationException);
  }
}

TEST(GlooProtocol, addresses__come_out_as_they_went_in) {
  const std::vector<std::byte> blob(48, std::byte{9});
  const auto bytes = to_bytes(PairAddress{77, 3, GLOO_VERSION, blob});
  EXPECT_EQ(bytes.size(), kPairAddressBytes);
  const PairAddress out = parse_pair_address(bytes);
  EXPECT_EQ(out.id, 77U);
  EXPECT_EQ(out.rank, 3U);
  EXPECT_EQ(out.endpoint, blob);
}

TEST(GlooEnvironment, settings__win_over_it_and_it_over_what_is_usual) {
  ::mltcp::endpoint::Environment environment;
  attr out = with_environment({}, environment);
  EXPECT_EQ(out.device, "udp:");
  EXPECT_EQ(out.cc, "reno");
  EXPECT_EQ(out.job_function, "F1");
  EXPECT_EQ(out.peer_timeout, std::chrono::seconds(10));
  environment.device = "udp:eth7";
  environment.address = "10.0.0.7";
  environment.job = 12;
  environment.job_function = "fair";
  environment.spin = ::mltcp::Nanos(30'000);
  environment.peer_timeout = ::mltcp::Nanos(20'000'000);
  out = with_environment({}, environment);
  EXPECT_EQ(out.device, "udp:eth7");
  EXPECT_EQ(out.hostname, "10.0.0.7");
  EXPECT_EQ(out.job, 12U);
  EXPECT_EQ(out.job_function, "fair");
  EXPECT_EQ(out.peer_timeout, std::chrono::milliseconds(20));
  EXPECT_EQ(out.spin, std::chrono::microseconds(30));
  attr given;
  given.iface = "eth1";
  given.job = 3;
  given.cc = "swift";
  given.spin = std::chrono::microseconds(5);
  out = with_environment(given, environment);
  EXPECT_EQ(out.device, "udp:eth1");
  EXPECT_EQ(out.job, 3U);
  EXPECT_EQ(out.cc, "swift");
  EXPECT_EQ(out.spin, std::chrono::microseconds(5));
}

TEST(GlooOrderedEnds, ends__are_told_as_posted_with_each_peer_and_slot) {
  OrderedEnds ends;
  const std::uint64_t first = ends.begin(1, 7);
  const std::uint64_t second = ends.begin(1, 7);
  const std::uint64_t other_rank = ends.begin(2, 7);
  const std::uint64_t third = ends.begin(1, 7);
  const std::uint64_t other_slot = ends.begin(1, 8);
  const auto ended = [&](std::uint64_t number) {
    int count = 0;
    ends.end(number, [&] { ++count; });
    return count;
  };
  EXPECT_EQ(ended(second), 0) << "the first is under way";
  EXPECT_EQ(ended(third), 0);
  EXPECT_EQ(ended(other_slot), 1) << "waits for nobody else's";
  EXPECT_EQ(ended(other_rank), 1);
  EXPECT_EQ(ended(first), 3) << "and those that waited for it";
  EXPECT_EQ(ended(first), 0) << "told once";
  const std::uint64_t fourth = ends.begin(1, 7);
  EXPECT_EQ(ended(fourth), 1);
}

}  // namespace
}  // namespace gloo::transport::mltcp
