// Tests transport/capture/capture_claims.cpp, which reads claims from captures of this program and of other programs.
// Some captures are damaged.
#include "mltcp/transport/capture/capture_claims.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/capture/internal/pcapng.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/wire.h"

namespace mltcp::capture::claims_test {
namespace {

using Buffer = std::vector<std::byte>;

constexpr std::size_t kDataBytes = 300;
constexpr Bytes kCountedBytes = wire::kDataFrameBytes + kDataBytes;

/// Returns a UDP payload with data of job 7.
Buffer packet(std::uint16_t iteration, std::uint16_t progress, std::uint8_t flags = wire::has_job) {
  Buffer bytes(wire::kHeaderBytes + wire::kDataFrameBytes);
  wire::Writer writer(bytes);
  writer.data({.last = false, .message = 1, .offset = 0, .length = kDataBytes});
  wire::Header header;
  header.flags = flags;
  header.job = {7, iteration, progress};
  const std::vector<std::byte> data(kDataBytes);
  writer.finish(header, data);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Buffer frame_of(const Buffer& payload, const Address& source, const Address& destination) {
  encap::Headers headers;
  headers.source = source;
  headers.destination = destination;
  Buffer frame(encap::header_bytes(destination) + payload.size());
  const std::size_t size =
      encap::write_headers(headers, payload.size(), encap::sum(payload.data(), payload.size()), frame.data());
  std::copy(payload.begin(), payload.end(), frame.begin() + static_cast<std::ptrdiff_t>(size));
  return frame;
}

const Address v4_here = Address::parse("10.0.0.1:4793");
const Address v4_there = Address::parse("10.0.0.2:4793");
const Address v6_here = Address::parse("[fd00::1]:4793");
const Address v6_there = Address::parse("[fd00::2]:4793");

CaptureClaims claims_of(const Buffer& file) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  return read_claims(in, "x.pcapng");
}
std::string refusal(const Buffer& file) {
  try {
    static_cast<void>(claims_of(file));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Returns a file with two interfaces. The first has one frame in each direction, the second an incoming IP packet.
Buffer some_file(bool v6 = false) {
  const Address& here = v6 ? v6_here : v4_here;
  const Address& there = v6 ? v6_there : v4_there;
  Buffer file;
  append_section(file, "test", "a comment");
  append_interface(file, {.name = "eth", .description = "", .link = LinkType::ethernet}, 0);
  append_interface(file, {.name = "ip", .description = "", .link = LinkType::ip}, 0);
  const Buffer in = frame_of(packet(1, 65'535), here, there);
  const Buffer out = frame_of(packet(1, 0), here, there);
  append_packet(file, 0, Nanos(1), Direction::in, {}, in, static_cast<std::uint32_t>(in.size()));
  append_packet(file, 0, Nanos(2), Direction::out, {}, out, static_cast<std::uint32_t>(out.size()));
  const auto ip = std::span(in).subspan(encap::kEthernetBytes);
  append_packet(file, 1, Nanos(3), Direction::in, {}, ip, static_cast<std::uint32_t>(ip.size()));
  append_statistics(file, 0, {});
  return file;
}

TEST(CaptureClaims, read__tells_received_from_sent_on_any_interface) {
  for (const bool v6 : {false, true}) {
    const CaptureClaims claims = claims_of(some_file(v6));
    EXPECT_EQ(claims.packets, 3U);
    EXPECT_FALSE(claims.is_cut);
    ASSERT_EQ(claims.received.report().size(), 1U) << v6;
    EXPECT_EQ(claims.received.report()[0].packets, 2U);
    EXPECT_EQ(claims.received.report()[0].bytes_at_end, 2 * kCountedBytes);
    ASSERT_EQ(claims.sent.report().size(), 1U);
    EXPECT_EQ(claims.sent.report()[0].bytes, kCountedBytes);
    EXPECT_EQ(claims.sent.report()[0].bytes_at_end, 0U);
  }
}

TEST(CaptureClaims, read__takes_what_a_capture_wrote) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.pcapng").string();
  {
    Capture capture({.file = file, .snap_bytes = 96}, [] { return Nanos(5); });
    Tap& tap = capture.add("job", "", v4_here);
    capture.start();
    for (std::uint16_t i = 0; i < 20; ++i) {
      const Buffer bytes = packet(static_cast<std::uint16_t>(i / 2), i % 2 == 0 ? 0 : 65'535);
      RxPacket received;
      received.source = v4_there;
      received.bytes = bytes;
      tap.received(received, Nanos(i));
    }
    capture.finish();
  }
  EXPECT_TRUE(is_capture(file));
  std::ifstream in(file, std::ios::binary);
  const CaptureClaims claims = read_claims(in, file);
  ASSERT_EQ(claims.received.report().size(), 1U);
  const JobClaim claim = claims.received.report()[0];
  EXPECT_EQ(claim.packets, 20U);
  EXPECT_EQ(claim.iterations, 10U);
  EXPECT_EQ(claim.bytes, 20 * kCountedBytes) << "what was cut counts, too";
  EXPECT_EQ(claim.verdict(), ClaimVerdict::understated);
}

TEST(CaptureClaims, read__counts_what_it_can_not_look_at) {
  for (const bool v6 : {false, true}) {
    const Buffer frame = frame_of(packet(1, 0), v6 ? v6_here : v4_here, v6 ? v6_there : v4_there);
    const std::size_t needed = encap::kEthernetBytes + (v6 ? 40 : 20) + 8 + wire::kHeaderBytes;
    ASSERT_LE(needed, kMinCaptured);
    Buffer file;
    append_section(file, "test", "a comment");
    append_interface(file, {.name = "eth", .description = "", .link = LinkType::ethernet}, 0);
    append_interface(file, {.name = "ip", .description = "", .link = LinkType::ip}, 0);
    append_interface(file, {.name = "any", .description = "", .link = static_cast<LinkType>(113)}, 0);
    const auto append = [&](std::uint32_t interface, std::size_t from, std::size_t end) {
      append_packet(file, interface, Nanos(1), Direction::in, {}, std::span(frame).subspan(from, end - from),
                    static_cast<std::uint32_t>(frame.size() - from));
    };
    append(0, 0, needed);
    append(1, encap::kEthernetBytes, needed);
    EXPECT_EQ(claims_of(file).cut_packets, 0U) << "no more is looked at";
    for (const std::size_t end : {needed - 1, encap::kEthernetBytes, std::size_t{2}}) append(0, 0, end);
    append(1, encap::kEthernetBytes, needed - 1);
    append(2, 0, frame.size());
    // An ARP packet may have any length.
    Buffer arp = frame;
    arp[12] = std::byte{0x08}, arp[13] = std::byte{0x06};
    append_packet(file, 0, Nanos(1), Direction::in, {}, std::span(arp).first(30), 60);
    const CaptureClaims claims = claims_of(file);
    EXPECT_EQ(claims.cut_packets, 4U) << v6;
    EXPECT_EQ(claims.other_packets, 1U);
    EXPECT_EQ(claims.other_link, 113U);
    ASSERT_EQ(claims.received.report().size(), 1U);
    EXPECT_EQ(claims.received.report()[0].packets, 2U);
  }
}

Buffer hex(const std::string& digits) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Returns the claims in a file with one Ethernet interface and `frame`, of which `captured` bytes are stored.
CaptureClaims claims_of_frame(const Buffer& frame, std::size_t captured = 1U << 20) {
  Buffer file;
  append_section(file, "test", "a comment");
  append_interface(file, {.name = "eth", .description = "", .link = LinkType::ethernet}, 0);
  append_packet(file, 0, Nanos(1), Direction::in, {}, std::span(frame).first(std::min(captured, frame.size())),
                static_cast<std::uint32_t>(frame.size()));
  return claims_of(file);
}
/// Returns `frame` with `more` inserted before its Ethernet type and IP packet.
Buffer behind(Buffer frame, const std::string& more) {
  const Buffer bytes = hex(more);
  frame.erase(frame.begin() + 12, frame.begin() + 14);
  frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
  return frame;
}

TEST(CaptureClaims, read__looks_behind_tags_labels_and_sessions) {
  for (const bool v6 : {false, true}) {
    const Buffer frame = frame_of(packet(1, 0), v6 ? v6_here : v4_here, v6 ? v6_there : v4_there);
    const std::string type = v6 ? "86dd" : "0800";
    for (const std::string& more :
         {type, "8100000a" + type, "88a8000a8100000b" + type, "88a8000a88a8000c910000018100000b" + type,
          std::string("8847000641ff"), std::string("8847") + "000640ff000641ff",
          "88a8000a8847" + std::string("000641ff"), std::string("886411000001") + "0000" + (v6 ? "0057" : "0021"),
          "8100000a886411000001" + std::string("0000") + (v6 ? "0057" : "0021")}) {
      const Buffer wrapped = behind(frame, more);
      const CaptureClaims claims = claims_of_frame(wrapped);
      ASSERT_EQ(claims.received.report().size(), 1U) << more;
      EXPECT_EQ(claims.received.report()[0].bytes, kCountedBytes) << more;
      EXPECT_EQ(claims.cut_packets + claims.deep_packets + claims.fragments + claims.extended, 0U) << more;
      // Each truncation of the frame ends before the claim does.
      const std::size_t needed = wrapped.size() - kDataBytes - wire::kDataFrameBytes;
      EXPECT_EQ(claims_of_frame(wrapped, needed).cut_packets, 0U) << more;
      for (std::size_t size = 0; size < needed; ++size)
        EXPECT_EQ(claims_of_frame(wrapped, size).cut_packets, 1U) << more << " " << size;
    }
  }
}

TEST(CaptureClaims, read__counts_what_it_does_not_look_behind) {
  const Buffer frame = frame_of(packet(1, 0), v4_here, v4_there);
  std::string tags;
  for (std::size_t i = 0; i < kMaxTags; ++i) tags += "8100000a";
  EXPECT_EQ(claims_of_frame(behind(frame, tags + "0800")).received.report().size(), 1U);
  EXPECT_EQ(claims_of_frame(behind(frame, tags + "8100000a0800")).deep_packets, 1U);
  std::string labels;
  for (std::size_t i = 0; i <= kMaxTags; ++i) labels += "000640ff";
  EXPECT_EQ(claims_of_frame(behind(frame, "8847" + labels + "000641ff")).deep_packets, 1U);
  EXPECT_EQ(claims_of_frame(behind(frame, "88a8000a0806")).deep_packets, 0U)
      << "ARP is none of ours, however it is tagged";
  Buffer fragment = frame;
  fragment[encap::kEthernetBytes + 6] = std::byte{0x20};
  EXPECT_EQ(claims_of_frame(fragment).fragments, 1U);
  EXPECT_EQ(claims_of_frame(behind(fragment, "88a8000a8100000b0800")).fragments, 1U);
  const Buffer v6 = frame_of(packet(1, 0), v6_here, v6_there);
  for (const auto& [next, fragments, extended] : {std::tuple{44, 1U, 0U}, {0, 0U, 1U}, {60, 0U, 1U}, {6, 0U, 0U}}) {
    Buffer other = v6;
    other[encap::kEthernetBytes + 6] = static_cast<std::byte>(next);
    EXPECT_EQ(claims_of_frame(other).fragments, fragments) << next;
    EXPECT_EQ(claims_of_frame(other).extended, extended) << next;
  }
}

TEST(CaptureClaims, is_classic_capture__by_its_first_word) {
  const TemporaryFolder folder;
  const auto begins = [&](std::string_view bytes) {
    const std::string file = (folder.path() / "x").string();
    std::ofstream(file, std::ios::binary) << bytes;
    return is_classic_capture(file);
  };
  EXPECT_TRUE(begins("\xd4\xc3\xb2\xa1"));
  EXPECT_TRUE(begins("\xa1\xb2\x3c\x4d"));
  EXPECT_FALSE(begins("\x0a\x0d\x0d\x0a"));
  EXPECT_FALSE(begins("\xd4"));
  EXPECT_FALSE(is_classic_capture(folder.path().string()));
}

TEST(CaptureClaims, read__refuses_what_it_can_not_read) {
  EXPECT_EQ(refusal(Buffer(40, std::byte{'a'})).find("x.pcapng: block 1 is no pcapng file; write one with "), 0U);
  Buffer swapped = some_file();
  std::reverse(swapped.begin() + 8, swapped.begin() + 12);
  EXPECT_NE(refusal(swapped).find("block 1 is of another byte order"), std::string::npos);
  Buffer two_lengths = some_file();
  two_lengths[two_lengths.size() - 4] ^= std::byte{4};
  EXPECT_NE(refusal(two_lengths).find("has two different lengths"), std::string::npos);
  Buffer nowhere;
  append_section(nowhere, "", "");
  append_packet(nowhere, 0, Nanos(), Direction::in, {}, {}, 0);
  EXPECT_NE(refusal(nowhere).find("block 2 is a packet that contradicts its block; "), std::string::npos);
  EXPECT_FALSE(is_capture("/nowhere"));
  EXPECT_FALSE(is_capture("/dev/null"));
  const TemporaryFolder folder;
  EXPECT_FALSE(is_capture(folder.string()));
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int file = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  const std::uint32_t section = 0x0A0D0D0A;
  ASSERT_EQ(write(file, &section, sizeof section), 4);
  EXPECT_FALSE(is_capture(pipe)) << "and nothing is taken out of it";
  std::uint32_t left = 0;
  EXPECT_EQ(read(file, &left, sizeof left), 4);
  close(file);
}

TEST(CaptureClaims, read__takes_what_there_is_of_a_file_that_is_cut) {
  const Buffer file = some_file();
  for (std::size_t size = 1; size < file.size(); ++size) {
    const CaptureClaims claims = claims_of(Buffer(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_LE(claims.packets, 3U);
  }
  EXPECT_TRUE(claims_of(Buffer(file.begin(), file.end() - 1)).is_cut);
  EXPECT_EQ(claims_of(Buffer(file.begin(), file.end() - 1)).packets, 3U);
}

TEST(CaptureClaims, read__stands_any_bytes) {
  Random random(9);
  const Buffer whole = some_file();
  for (int i = 0; i < 20'000; ++i) {
    Buffer file = whole;
    for (int flips = 0; flips < 1 + i % 6; ++flips)
      file[random.next() % file.size()] = static_cast<std::byte>(random.next());
    file.shrink_to_fit();
    static_cast<void>(refusal(file));
  }
}

}  // namespace
}  // namespace mltcp::capture::claims_test
