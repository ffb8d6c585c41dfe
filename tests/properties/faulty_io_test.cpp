// Tests that each kind of fault has its intended effect, and that the effect of every counted fault is visible.
#include "mltcp/lab/experiment/traffic/faulty_io.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "mltcp/lab/experiment/traffic/ledger.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

using ByteVector = std::vector<std::byte>;

/// A datapath that receives the packets in `arrived` and counts the packets that are sent.
class TestIo final : public PacketIo {
 public:
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override {
    std::size_t count = 0;
    for (; count < out.size() && !arrived.empty(); ++count) {
      lent_.push_back(std::move(arrived.front()));
      arrived.pop_front();
      out[count] = {.source = Address::v4(1, 1), .bytes = lent_.back(), .ecn = Ecn::ect0};
    }
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override {
    sent += packets.size();
    for (const TxPacket& packet : packets) EXPECT_EQ(packet.hold, nullptr);
    return packets.size();
  }
  std::deque<ByteVector> arrived;
  std::size_t sent = 0;

 private:
  Limits limits_;
  std::deque<ByteVector> lent_;
};

class FaultyIoTest : public ::testing::Test {
 protected:
  static constexpr int kMany = 1000;

  FaultyIoTest() : io_(below_, below_.limits(), Random(3)) {}
  static ByteVector packet() {
    ByteVector bytes(200);
    wire::Writer writer(bytes);
    writer.ping();
    wire::Header header;
    header.connection = 5;
    const auto written = writer.finish(header, {});
    return {written.begin(), written.end()};
  }
  struct Came {
    ByteVector bytes;
    Ecn ecn;
  };
  std::vector<Came> receive() {
    std::vector<Came> all;
    std::array<RxPacket, 32> out;
    while (const std::size_t count = io_.receive(out))
      for (const RxPacket& one : std::span(out).first(count))
        all.push_back({{one.bytes.begin(), one.bytes.end()}, one.ecn});
    return all;
  }
  std::vector<Came> receive_many() {
    for (int i = 0; i < kMany; ++i) below_.arrived.push_back(packet());
    return receive();
  }
  TestIo below_;
  FaultyIo io_;
};

TEST_F(FaultyIoTest, well__all_comes_as_it_was) {
  const auto came = receive_many();
  ASSERT_EQ(came.size(), std::size_t{kMany});
  for (const Came& one : came) {
    EXPECT_EQ(one.bytes, packet());
    EXPECT_EQ(one.ecn, Ecn::ect0);
  }
  EXPECT_TRUE(io_.deadline().is_never());
}

TEST_F(FaultyIoTest, faults__are_as_many_as_are_counted) {
  io_.set_faults({.loss = 0.3});
  std::size_t came = receive_many().size();
  EXPECT_EQ(came, kMany - io_.counts().lost);
  EXPECT_NEAR(static_cast<double>(io_.counts().lost), 300, 60);

  io_.set_faults({.marking = 0.3});
  std::size_t marked = 0;
  for (const Came& one : receive_many()) marked += one.ecn == Ecn::ce ? 1 : 0;
  EXPECT_EQ(marked, io_.counts().marked);
  EXPECT_NEAR(static_cast<double>(marked), 300, 60);

  io_.set_faults({.forgery = 1});
  came = receive_many().size();
  EXPECT_EQ(came, kMany + io_.counts().forged);
  EXPECT_GT(io_.counts().forged, 10U);
}

TEST_F(FaultyIoTest, damage__is_never_right) {
  io_.set_faults({.corruption = 1});
  const auto came = receive_many();
  ASSERT_EQ(came.size(), std::size_t{kMany});
  for (const Came& one : came) {
    EXPECT_NE(one.bytes, packet());
    wire::Reader reader;
    wire::Header header;
    EXPECT_NE(reader.begin(one.bytes, 0, header), wire::ParseError::none);
  }
}

TEST_F(FaultyIoTest, late_and_doubled__come_in_time) {
  io_.set_faults({.delaying = 1, .max_delay = Nanos(1'000'000)});
  EXPECT_TRUE(receive_many().empty());
  EXPECT_LE(io_.deadline(), Nanos(1'000'000));
  io_.set_time(Nanos(500'000));
  const std::size_t early = receive().size();
  EXPECT_NEAR(static_cast<double>(early), 500, 80);
  io_.set_time(Nanos(1'000'000));
  EXPECT_EQ(early + receive().size(), std::size_t{kMany});
  EXPECT_TRUE(io_.deadline().is_never());

  io_.set_faults({.duplication = 1});
  std::size_t count = receive_many().size();
  io_.set_time(Nanos(60'000'000));
  count += receive().size();
  EXPECT_EQ(count, 2 * std::size_t{kMany});
}

TEST_F(FaultyIoTest, standing_still__keeps_what_comes) {
  below_.arrived.push_back(packet());
  io_.absorb();
  EXPECT_TRUE(below_.arrived.empty());
  EXPECT_EQ(io_.deadline(), Nanos(0));
  EXPECT_EQ(receive().size(), 1U);
}

TEST_F(FaultyIoTest, payloads__are_read_late_and_must_not_change) {
  PayloadHold hold;
  ByteVector payload(500);
  const ByteVector header = packet();
  const Address to = Address::v4(2, 2);
  const TxPacket sending{.destination = &to, .header = header, .payload = payload, .hold = &hold};
  ASSERT_EQ(io_.send(std::span(&sending, 1)), 1U);
  EXPECT_EQ(hold.packets, 1U);
  io_.set_time(Nanos(1'000'000));
  EXPECT_EQ(hold.packets, 0U);

  ASSERT_EQ(io_.send(std::span(&sending, 1)), 1U);
  payload[77] = std::byte{1};
  EXPECT_THROW(io_.set_time(Nanos(2'000'000)), Violation);
}

TEST_F(FaultyIoTest, full__takes_the_first_ones) {
  io_.set_faults({.refusal = 1});
  const ByteVector header = packet();
  const Address to = Address::v4(2, 2);
  const std::vector<TxPacket> sending(10, {.destination = &to, .header = header, .payload = {}});
  const std::size_t taken = io_.send(sending);
  EXPECT_LT(taken, sending.size());
  EXPECT_EQ(below_.sent, taken);
  EXPECT_TRUE(io_.is_blocked());
  EXPECT_FALSE(io_.deadline().is_never());
  io_.set_faults({});
  EXPECT_EQ(io_.send(sending), sending.size());
  EXPECT_FALSE(io_.is_blocked());
}

}  // namespace
}  // namespace mltcp::experiment
