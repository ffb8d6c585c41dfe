// Tests the content of capture files, which this test reads without another tool. Also tests the report of what is
// missing from a file.
#include "mltcp/transport/capture/capture.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/transport/capture/captured_io.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "tshark.h"

namespace mltcp::capture::capture_test {
namespace {

using test::Folder;

struct Block {
  std::uint32_t type = 0;
  std::vector<std::byte> body;
  template <typename T>
  [[nodiscard]] T at(std::size_t offset) const {
    T value{};
    std::memcpy(&value, body.data() + offset, sizeof value);
    return value;
  }
  /// Returns the value of the option with the code `code`. Searches the options that begin at `offset`. Returns an
  /// empty vector if this option is absent.
  [[nodiscard]] std::vector<std::byte> option(std::size_t offset, std::uint16_t code) const {
    while (offset + 4 <= body.size()) {
      const auto found = at<std::uint16_t>(offset);
      const auto length = at<std::uint16_t>(offset + 2);
      if (found == 0) break;
      if (found == code)
        return {body.begin() + static_cast<std::ptrdiff_t>(offset + 4),
                body.begin() + static_cast<std::ptrdiff_t>(offset + 4 + length)};
      offset += 4 + ((length + 3U) & ~3U);
    }
    return {};
  }
};

std::vector<std::byte> contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns the blocks of a file. Checks that the two lengths of each block agree.
std::vector<Block> blocks(const std::string& file) {
  const auto bytes = contents(file);
  std::vector<Block> result;
  for (std::size_t at = 0; at + 12 <= bytes.size();) {
    std::uint32_t length = 0;
    std::uint32_t end = 0;
    std::memcpy(&length, &bytes[at + 4], 4);
    if (length < 12 || length % 4 != 0 || at + length > bytes.size()) {
      ADD_FAILURE() << "a block of " << length << " bytes at " << at;
      break;
    }
    std::memcpy(&end, &bytes[at + length - 4], 4);
    EXPECT_EQ(length, end);
    Block& block = result.emplace_back();
    std::memcpy(&block.type, &bytes[at], 4);
    block.body.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at + 8),
                      bytes.begin() + static_cast<std::ptrdiff_t>(at + length - 4));
    at += length;
  }
  return result;
}

std::vector<Block> of_type(const std::vector<Block>& all, std::uint32_t type) {
  std::vector<Block> result;
  for (const Block& block : all)
    if (block.type == type) result.push_back(block);
  return result;
}

constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kStatistics = 5;
constexpr std::uint32_t kPacket = 6;

const Address kOwn = Address::v4(0x0A000001, 62400);
const Address kPeer = Address::v4(0x0A000002, 62401);

TxPacket outgoing(std::span<const std::byte> header, std::span<const std::byte> payload = {}) {
  TxPacket packet;
  packet.destination = &kPeer;
  packet.header = header;
  packet.payload = payload;
  packet.ecn = Ecn::ect0;
  packet.priority = 3;
  return packet;
}

RxPacket incoming(std::span<const std::byte> bytes) {
  RxPacket packet;
  packet.source = kPeer;
  packet.bytes = bytes;
  packet.ecn = Ecn::ce;
  packet.hops = 2;
  return packet;
}

class CaptureTest : public testing::Test {
 protected:
  const Folder folder;
  const std::string file = folder.file("a.pcapng");
};

TEST_F(CaptureTest, both_ways__headers_as_on_the_wire) {
  const std::vector<std::byte> header(40, std::byte{1});
  const std::vector<std::byte> payload(60, std::byte{2});
  Capture capture({.file = file}, [] { return Nanos(5'000'000'123); });
  Tap& tap = capture.add("job a", "sender", kOwn);
  capture.start();
  tap.sent(outgoing(header, payload), tap.now());
  RxPacket split = incoming(header);
  split.tail = payload;
  tap.received(split, tap.now());
  const Capture::Summary summary = capture.finish();
  EXPECT_EQ(summary.seen, 2U);
  EXPECT_EQ(summary.dropped, 0U);

  const auto all = blocks(file);
  ASSERT_EQ(of_type(all, kInterface).size(), 1U);
  const Block interface = of_type(all, kInterface)[0];
  EXPECT_EQ(interface.at<std::uint16_t>(0), 101U);
  const auto name = interface.option(8, 2);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(name.data()), name.size()), "job a");
  EXPECT_EQ(interface.option(8, 9), std::vector<std::byte>{std::byte{9}});
  const auto packets = of_type(all, kPacket);
  ASSERT_EQ(packets.size(), 2U);
  for (int number = 0; number < 2; ++number) {
    const Block& packet = packets[static_cast<std::size_t>(number)];
    EXPECT_EQ(std::uint64_t{packet.at<std::uint32_t>(4)} << 32 | packet.at<std::uint32_t>(8), 5'000'000'123U);
    ASSERT_EQ(packet.at<std::uint32_t>(12), 128U);
    EXPECT_EQ(packet.at<std::uint32_t>(16), 128U);
    // An Ethernet header followed by the captured packet must be a valid frame.
    std::vector<std::byte> frame(14);
    frame[12] = std::byte{8};
    frame.insert(frame.end(), packet.body.begin() + 20, packet.body.begin() + 20 + 128);
    encap::Frame parsed;
    ASSERT_EQ(encap::parse(frame, encap::VerifyUdp::yes, parsed), encap::Reject::none);
    EXPECT_EQ(parsed.headers.source, number == 0 ? kOwn : kPeer);
    EXPECT_EQ(parsed.headers.destination, number == 0 ? kPeer : kOwn);
    EXPECT_EQ(parsed.headers.ecn, number == 0 ? Ecn::ect0 : Ecn::ce);
    EXPECT_EQ(parsed.headers.priority, number == 0 ? 3 : 0);
    EXPECT_EQ(parsed.headers.time_to_live, number == 0 ? 64 : 62);
    ASSERT_EQ(parsed.payload.size(), 100U);
    EXPECT_EQ(parsed.payload[39], std::byte{1});
    EXPECT_EQ(parsed.payload[40], std::byte{2});
    const auto flags = packet.option(20 + 128, 2);
    ASSERT_EQ(flags.size(), 4U);
    EXPECT_EQ(flags[0], number == 0 ? std::byte{2} : std::byte{1});
  }
  ASSERT_EQ(of_type(all, kStatistics).size(), 1U);
}

TEST_F(CaptureTest, ipv6__is_captured_too) {
  const Address own = Address::parse("[fd00::1]:62400");
  const Address peer = Address::parse("[fd00::2]:62400");
  const std::vector<std::byte> bytes(40);
  Capture capture({.file = file}, [] { return Nanos(1); });
  Tap& tap = capture.add("a", "", own);
  capture.start();
  TxPacket packet = outgoing(bytes);
  packet.destination = &peer;
  tap.sent(packet, tap.now());
  capture.finish();
  const auto packets = of_type(blocks(file), kPacket);
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].at<std::uint32_t>(12), 40U + 8U + 40U);
}

TEST_F(CaptureTest, snap__fewer_bytes_and_the_true_length) {
  const std::vector<std::byte> bytes(1000);
  Capture capture({.file = file, .snap_bytes = 64}, [] { return Nanos(1); });
  Tap& tap = capture.add("a", "", kOwn);
  capture.start();
  tap.received(incoming(bytes), tap.now());
  TxPacket without_bytes = outgoing(std::span(bytes).first(44), {static_cast<const std::byte*>(nullptr), 956});
  tap.sent(without_bytes, tap.now());
  capture.finish();
  for (const Block& packet : of_type(blocks(file), kPacket)) {
    EXPECT_EQ(packet.at<std::uint32_t>(12), 64U);
    EXPECT_EQ(packet.at<std::uint32_t>(16), 1028U);
  }
}

TEST_F(CaptureTest, size__stops_and_tells) {
  const std::vector<std::byte> bytes(1000);
  Capture capture({.file = file, .file_bytes = 64'000}, [] { return Nanos(1); });
  Tap& tap = capture.add("a", "", kOwn);
  capture.start();
  for (int i = 0; i < 100; ++i) tap.received(incoming(bytes), tap.now());
  const Capture::Summary summary = capture.finish();
  EXPECT_TRUE(summary.is_full);
  EXPECT_LE(std::filesystem::file_size(file), 64'000U);
  EXPECT_EQ(of_type(blocks(file), kPacket).size(), summary.seen - summary.dropped);
  EXPECT_GT(summary.seen - summary.dropped, 50U);
  const auto statistics = of_type(blocks(file), kStatistics);
  ASSERT_EQ(statistics.size(), 1U);
  const auto dropped = statistics[0].option(12, 5);
  ASSERT_EQ(dropped.size(), 8U);
  std::uint64_t count = 0;
  std::memcpy(&count, dropped.data(), 8);
  EXPECT_EQ(count, summary.dropped);
  bool is_complete = true;
  const std::string text = Capture::to_text(summary, is_complete);
  EXPECT_FALSE(is_complete);
  EXPECT_NE(text.find("it is full, and "), std::string::npos) << text;
}

TEST_F(CaptureTest, files__the_latest_stay) {
  const std::vector<std::byte> bytes(1000);
  Capture capture({.file = folder.file("a.pcapng"), .file_bytes = 64'000, .files = 2}, [] { return Nanos(1); });
  Tap& tap = capture.add("a", "", kOwn);
  capture.start();
  for (int i = 0; i < 300; ++i) tap.received(incoming(bytes), tap.now());
  const Capture::Summary summary = capture.finish();
  EXPECT_EQ(summary.dropped, 0U);
  EXPECT_FALSE(std::filesystem::exists(folder.file("a-00001.pcapng")));
  EXPECT_EQ(summary.file, folder.file("a-00006.pcapng"));
  EXPECT_EQ(of_type(blocks(folder.file("a-00005.pcapng")), kInterface).size(), 1U);
  EXPECT_GT(of_type(blocks(folder.file("a-00005.pcapng")), kPacket).size(), 50U);
  EXPECT_GT(of_type(blocks(folder.file("a-00006.pcapng")), kPacket).size(), 1U);
}

TEST(Capture, unwritable__one_line_at_once) {
  try {
    const Capture capture({.file = "/nonexistent/a.pcapng"});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(),
                 "\"/nonexistent/a.pcapng\" cannot be written (No such file or directory); name a file in a folder "
                 "where you may write");
  }
}

TEST_F(CaptureTest, size_that_has_no_room_for_a_packet__refused) {
  Capture capture({.file = folder.file("a.pcapng"), .file_bytes = 64'000}, [] { return Nanos(1); });
  for (int i = 0; i < 600; ++i) capture.add("interface " + std::to_string(i), "", kOwn);
  EXPECT_THROW(capture.start(), RunError);
}

TEST_F(CaptureTest, pipe_without_a_reader__refused_at_once) {
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(Capture({.file = pipe}), RunError);
}

TEST_F(CaptureTest, file__is_this_user_s_alone_and_no_unknown_peer_s) {
  const auto mode_of = [&](const std::string& name) {
    struct stat found {};
    return stat(folder.file(name).c_str(), &found) == 0 ? found.st_mode & 07777U : 0U;
  };
  const mode_t before = umask(0);
  { const Capture capture({.file = folder.file("a.pcapng")}); }
  umask(before);
  EXPECT_EQ(mode_of("a.pcapng"), 0600U);
  chmod(folder.file("a.pcapng").c_str(), 0640);
  std::filesystem::create_symlink("a.pcapng", folder.file("link.pcapng"));
  { const Capture capture({.file = folder.file("link.pcapng")}); }
  EXPECT_EQ(mode_of("a.pcapng"), 0640U) << "what its owner has said";
  if (geteuid() != 0) GTEST_SKIP() << "files of another user are root's to make";
  const std::string shared = std::filesystem::path(folder.file("link.pcapng")).parent_path();
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  for (const char* const planted : {"link.pcapng", "a.pcapng"}) {
    ASSERT_EQ(lchown(folder.file(planted).c_str(), 65'534, 65'534), 0);
    const auto size = std::filesystem::file_size(folder.file("a.pcapng"));
    EXPECT_THROW(Capture({.file = folder.file(planted)}), RunError) << planted;
    EXPECT_EQ(std::filesystem::file_size(folder.file("a.pcapng")), size);
  }
}

TEST_F(CaptureTest, written_by_another__refused_and_left_alone) {
  const Capture first({.file = file});
  EXPECT_THROW(Capture({.file = file}), RunError);
}

TEST(Capture, full_disk__the_data_path_goes_on_and_the_end_tells) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const std::vector<std::byte> bytes(1000);
  Capture capture({.file = "/dev/full"});
  Tap& tap = capture.add("a", "", kOwn);
  capture.start();
  for (int i = 0; i < 1000; ++i) tap.received(incoming(bytes), tap.now());
  const Capture::Summary summary = capture.finish();
  EXPECT_EQ(summary.seen, 1000U);
  EXPECT_EQ(summary.dropped, 1000U);
  bool is_complete = true;
  EXPECT_EQ(Capture::to_text(summary, is_complete),
            "0 packets in /dev/full; \"/dev/full\" cannot be written any more (No space left on device); make room, or "
            "write fewer bytes of each packet (snap=)");
}

TEST_F(CaptureTest, real_time__two_interfaces_in_order_of_time) {
  const std::vector<std::byte> bytes(100);
  Capture capture({.file = file});
  Tap& one = capture.add("a", "", kOwn);
  Tap& two = capture.add("b", "", kOwn);
  capture.start();
  for (int i = 0; i < 2000; ++i) (i % 3 == 0 ? two : one).received(incoming(bytes), one.now());
  const Capture::Summary summary = capture.finish();
  EXPECT_EQ(summary.dropped, 0U);
  std::uint64_t before = 0;
  const auto packets = of_type(blocks(file), kPacket);
  EXPECT_EQ(packets.size(), 2000U);
  for (const Block& packet : packets) {
    const std::uint64_t time = std::uint64_t{packet.at<std::uint32_t>(4)} << 32 | packet.at<std::uint32_t>(8);
    EXPECT_GE(time, before);
    before = time;
  }
}

TEST_F(CaptureTest, faster_than_written__counted_in_the_file) {
  const std::vector<std::byte> bytes(60'000);
  Capture capture({.file = file});
  Tap& tap = capture.add("a", "", kOwn);
  // These are more packets than the ring can store before the writer runs.
  for (int i = 0; i < 2000; ++i) tap.received(incoming(bytes), tap.now());
  capture.start();
  const Capture::Summary summary = capture.finish();
  EXPECT_EQ(summary.seen, 2000U);
  EXPECT_GT(summary.dropped, 1000U);
  EXPECT_LT(summary.dropped, 2000U);
  EXPECT_EQ(of_type(blocks(file), kPacket).size(), summary.seen - summary.dropped);
  const auto statistics = of_type(blocks(file), kStatistics);
  ASSERT_EQ(statistics.size(), 1U);
  std::uint64_t seen = 0;
  std::uint64_t dropped = 0;
  std::memcpy(&seen, statistics[0].option(12, 4).data(), 8);
  std::memcpy(&dropped, statistics[0].option(12, 5).data(), 8);
  EXPECT_EQ(seen, summary.seen);
  EXPECT_EQ(dropped, summary.dropped);
}

/// A datapath that receives and sends the packets that the test selects.
class FakeIo final : public PacketIo {
 public:
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override {
    const std::size_t count = std::min(out.size(), arriving.size());
    std::copy_n(arriving.begin(), count, out.begin());
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override { return std::min(packets.size(), takes); }
  std::vector<RxPacket> arriving;
  std::size_t takes = 1;

 private:
  Limits limits_;
};

TEST(CapturedIo, what_is_not_accepted__is_not_captured) {
  const Folder folder;
  const std::vector<std::byte> bytes(40);
  Capture capture({.file = folder.file("a.pcapng")}, [] { return Nanos(1); });
  Tap& tap = capture.add("a", "", kOwn);
  capture.start();
  FakeIo io;
  CapturedIo captured(io, tap);
  const std::vector<TxPacket> packets(3, outgoing(bytes));
  EXPECT_EQ(captured.send(packets), 1U);
  EXPECT_EQ(tap.seen(), 1U);
  io.arriving.assign(2, incoming(bytes));
  std::vector<RxPacket> out(8);
  EXPECT_EQ(captured.receive(out), 2U);
  EXPECT_EQ(tap.seen(), 3U);
  EXPECT_EQ(&captured.limits(), &io.limits());
}

}  // namespace
}  // namespace mltcp::capture::capture_test
