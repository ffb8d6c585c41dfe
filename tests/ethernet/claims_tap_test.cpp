// Tests transport/ethernet/claims_tap.cpp: which frames count, and with how many bytes.
#include "mltcp/transport/ethernet/claims_tap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/wire.h"

namespace mltcp::encap {
namespace {

using Bytes8 = std::vector<std::byte>;

constexpr std::size_t kDataBytes = 500;

/// Returns a UDP payload with data of job 7 in its iteration 3.
Bytes8 packet(std::uint8_t flags = wire::has_job, std::uint16_t progress = 65'535) {
  Bytes8 bytes(wire::kHeaderBytes + wire::kDataFrameBytes);
  wire::Writer writer(bytes);
  writer.data({.last = false, .message = 1, .offset = 0, .length = kDataBytes});
  wire::Header header;
  header.flags = flags;
  header.connection = 5;
  header.job = {7, 3, progress};
  const std::vector<std::byte> data(kDataBytes);
  writer.finish(header, data);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes8 frame_of(const Bytes8& payload, std::uint16_t vlan = 0, bool v6 = false) {
  Headers headers;
  headers.source_mac = {2, 0, 0, 0, 0, 1};
  headers.destination_mac = {2, 0, 0, 0, 0, 2};
  headers.source = v6 ? Address::parse("[fd00::1]:4793") : Address::parse("10.0.0.1:4793");
  headers.destination = v6 ? Address::parse("[fd00::2]:4793") : Address::parse("10.0.0.2:4793");
  headers.vlan = vlan;
  Bytes8 frame(header_bytes(headers.destination, vlan) + payload.size());
  const std::size_t size = write_headers(headers, payload.size(), sum(payload.data(), payload.size()), frame.data());
  std::ranges::copy(payload, frame.begin() + static_cast<std::ptrdiff_t>(size));
  return frame;
}

std::optional<JobClaim> seen_of(std::span<const std::byte> first, std::size_t frame_bytes) {
  JobClaims claims;
  const bool counted = ClaimsTap::count_claims(first, frame_bytes, claims) == ClaimsTap::Found::claim;
  const auto all = claims.report();
  EXPECT_EQ(counted, all.size() == 1);
  return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
}
std::optional<JobClaim> seen_of(const Bytes8& frame) { return seen_of(frame, frame.size()); }

TEST(ClaimsTap, count_claims__reads_tag_and_bytes_of_each_kind_of_frame) {
  for (const bool v6 : {false, true})
    for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{100}}) {
      const auto seen = seen_of(frame_of(packet(), vlan, v6));
      ASSERT_TRUE(seen) << vlan << v6;
      EXPECT_EQ(seen->job, 7U);
      EXPECT_EQ(seen->bytes, wire::kDataFrameBytes + kDataBytes);
      EXPECT_EQ(seen->bytes_at_end, seen->bytes);
    }
  Bytes8 padded = frame_of(packet());
  padded.resize(padded.size() + 20);
  EXPECT_EQ(seen_of(padded)->bytes, wire::kDataFrameBytes + kDataBytes) << "padding is not the job's";
  Bytes8 bad_sum = frame_of(packet());
  bad_sum[kEthernetBytes + 10] ^= std::byte{1};
  EXPECT_TRUE(seen_of(bad_sum)) << "of IPv4: a switch doesn't look";
}

TEST(ClaimsTap, count_claims__leaves_out_what_is_no_data_of_a_job) {
  EXPECT_FALSE(seen_of(frame_of(packet(0))));
  Bytes8 damaged = packet();
  damaged[30] ^= std::byte{1};  // job
  EXPECT_FALSE(seen_of(frame_of(damaged)));
  Bytes8 foreign = packet();
  foreign[0] = std::byte{0xA1};
  EXPECT_FALSE(seen_of(frame_of(foreign)));
  Bytes8 like_one(200, std::byte{0x0B});
  like_one[0] = std::byte{wire::magic};
  like_one[1] = std::byte{wire::has_job};
  EXPECT_FALSE(seen_of(frame_of(like_one))) << "of another protocol";
  for (std::size_t size = 0; size < wire::kHeaderBytes; ++size) {
    Bytes8 shorter = packet();
    shorter.resize(size);
    EXPECT_FALSE(seen_of(frame_of(shorter))) << size;
  }
  Bytes8 arp(60, std::byte{0});
  arp[12] = std::byte{8};
  arp[13] = std::byte{6};
  EXPECT_FALSE(seen_of(arp));
}

TEST(ClaimsTap, count_claims__uses_headers_of_sealed_and_of_cut_packets) {
  Bytes8 sealed = packet();
  sealed[1] |= std::byte{wire::sealed};
  EXPECT_EQ(seen_of(frame_of(sealed))->bytes_at_end, wire::kDataFrameBytes + kDataBytes);
  sealed[3] = std::byte{0xFF};  // claims to cover more bytes than the packet has
  EXPECT_FALSE(seen_of(frame_of(sealed)));
  const Bytes8 whole = frame_of(packet());
  const auto cut = seen_of(std::span(whole).first(128), whole.size());
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->bytes, wire::kDataFrameBytes + kDataBytes) << "as long as it was";
  Bytes8 damaged = packet();
  damaged[30] ^= std::byte{1};
  damaged = frame_of(damaged);
  EXPECT_FALSE(seen_of(std::span(damaged).first(128), damaged.size())) << "what the checksum covers is there";
  EXPECT_TRUE(seen_of(std::span(damaged).first(42 + wire::kHeaderBytes), damaged.size())) << "and is not";
  const Bytes8 covered = frame_of(packet(wire::has_job | wire::full_integrity));
  EXPECT_TRUE(seen_of(std::span(covered).first(128), covered.size()));
}

TEST(ClaimsTap, count_claims__stands_any_bytes) {
  JobClaims claims;
  Random random(5);
  const std::array frames{frame_of(packet()), frame_of(packet(), 7), frame_of(packet(), 0, true)};
  for (int i = 0; i < 30'000; ++i) {
    Bytes8 frame = frames[static_cast<std::size_t>(i) % frames.size()];
    for (int flips = 0; flips < 1 + i % 4; ++flips) frame[random.next() % 100] = static_cast<std::byte>(random.next());
    frame.resize(random.next() % (frame.size() + 1));
    frame.shrink_to_fit();  // frees unused memory, so that a sanitizer detects reads beyond the end
    ClaimsTap::count_claims(frame, i % 2 == 0 ? frame.size() : frame.size() + random.next() % 70'000, claims);
  }
  for (const JobClaim& claim : claims.report()) EXPECT_LE(claim.bytes, claim.packets * 70'000);
}

TEST(ClaimsTap, frame__counts_what_comes_in_and_shows_all_to_the_next) {
  struct Next final : FrameTap {
    void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override {
      EXPECT_EQ(first.size(), frame_bytes);
      ++(way == Way::in ? in : out);
    }
    int in = 0;
    int out = 0;
  } next;
  JobClaims claims;
  ClaimsTap tap(claims, &next);
  ClaimsTap last(claims);
  const Bytes8 frame = frame_of(packet());
  tap.frame(FrameTap::Way::in, frame, frame.size());
  tap.frame(FrameTap::Way::out, frame, frame.size());
  tap.frame(FrameTap::Way::out, frame, frame.size());
  last.frame(FrameTap::Way::in, frame, frame.size());
  EXPECT_EQ(next.in, 1);
  EXPECT_EQ(next.out, 2);
  EXPECT_EQ(claims.report().at(0).packets, 2U);
}

}  // namespace
}  // namespace mltcp::encap
