// Tests ECN: codepoints on the wire, the exact echo of marks, one decrease per round, and paths that rewrite the field.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "transfer.h"

namespace mltcp::ecn_test {
namespace {

using namespace testing_network;

ConnectionConfig with_ecn() {
  ConnectionConfig config;
  config.ecn = true;
  return config;
}

/// A transfer over a link of 1 Gbps. complete() also waits for the last acknowledgements.
struct EcnTransfer : Transfer {
  explicit EcnTransfer(std::size_t bytes, const ConnectionConfig& config = with_ecn())
      : Transfer(bytes, config, Rate(1'000'000'000)) {}
  void complete() {
    Transfer::complete();
    pair.run_for(10_ms);
  }
};

TEST(EcnUse, packets__are_capable_if_asked_for_and_pure_acknowledgements_never) {
  EcnTransfer on(100'000);
  on.complete();
  for (const Parsed& packet : on.pair.log) EXPECT_EQ(packet.ecn, packet.eliciting() ? Ecn::ect0 : Ecn::not_ect);
  EcnTransfer off(100'000, {});
  off.complete();
  for (const Parsed& packet : off.pair.log) EXPECT_EQ(packet.ecn, Ecn::not_ect);
}

TEST(EcnUse, marks__are_echoed_exactly) {
  EcnTransfer transfer(1'000'000);
  std::uint64_t marked = 0;
  std::uint64_t marked_bytes = 0;
  std::uint64_t capable = 0;
  Random random(1);
  transfer.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from != 0 || packet.ecn != Ecn::ect0) return;
    ++capable;
    if (!random.chance(0.1)) return;
    fate.ecn = Ecn::ce;
    ++marked;
    marked_bytes += packet.size;
  };
  transfer.complete();
  ASSERT_GT(marked, 20u);
  EXPECT_EQ(transfer.stats().ce_packets, marked);
  EXPECT_EQ(transfer.stats().lost_packets, 0u);
  const Parsed* last = nullptr;
  for (const Parsed& packet : transfer.pair.log)
    if (packet.from == 1 && packet.has(FrameType::ack)) last = &packet;
  ASSERT_NE(last, nullptr);
  const wire::EcnCounts counts = last->find(FrameType::ack)->ack.ecn;
  EXPECT_EQ(counts.ce_packets, marked);
  EXPECT_EQ(counts.ce_bytes, marked_bytes);
  EXPECT_EQ(counts.ect1_packets, 0u);
  EXPECT_GE(counts.ect0_packets, capable - marked);  // the count also includes packets sent before the transfer
  EXPECT_LE(counts.ect0_packets, capable - marked + 4);
}

TEST(EcnUse, duplicated_packets__are_counted_once) {
  EcnTransfer transfer(200'000);
  std::uint64_t marked = 0;
  transfer.on_data([&](int number, Fate& fate) {
    fate.copies = 2;
    if (number % 3 == 0) {
      fate.ecn = Ecn::ce;
      ++marked;
    }
  });
  transfer.complete();
  EXPECT_EQ(transfer.stats().ce_packets, marked);
}

TEST(EcnUse, one_mark__halves_the_window_once) {
  EcnTransfer transfer(300'000);
  double before = 0;
  double after = 0;
  transfer.on_data([&](int number, Fate& fate) {
    if (number == 100) fate.ecn = Ecn::ce;
  });
  ASSERT_EQ(transfer.pair.c().send(transfer.c, transfer.message, 0), PostResult::ok);
  transfer.pair.run(
      [&] {
        if (transfer.stats().congestion_events == 0)
          before = transfer.stats().cwnd_bytes;
        else if (after == 0)
          after = transfer.stats().cwnd_bytes;
        return transfer.pair.server().count(Kind::received) == 1;
      },
      transfer.pair.now() + 10_s);
  EXPECT_EQ(transfer.stats().congestion_events, 1u);
  EXPECT_NEAR(after, before / 2, 1500);
}

TEST(EcnUse, many_marks_in_a_round__halve_it_once) {
  EcnTransfer transfer(300'000);
  transfer.on_data([&](int number, Fate& fate) {
    if (number >= 100 && number < 110) fate.ecn = Ecn::ce;
  });
  transfer.complete();
  EXPECT_EQ(transfer.stats().ce_packets, 10u);
  EXPECT_EQ(transfer.stats().congestion_events, 1u);
}

TEST(EcnUse, marks_in_every_round__halve_it_each_time) {
  EcnTransfer transfer(2'000'000);
  transfer.on_data([&](int, Fate& fate) { fate.ecn = Ecn::ce; });
  transfer.complete();
  EXPECT_GT(transfer.stats().congestion_events, 20u);
  EXPECT_LE(transfer.stats().cwnd_bytes, 3 * 1472.0);
}

TEST(EcnUse, loss_and_mark_in_one_round__are_one_event) {
  EcnTransfer transfer(300'000);
  transfer.on_data([&](int number, Fate& fate) {
    if (number == 100) fate.drop = true;
    if (number >= 101 && number < 106) fate.ecn = Ecn::ce;
  });
  transfer.complete();
  EXPECT_EQ(transfer.stats().congestion_events, 1u);
  EXPECT_EQ(transfer.stats().ce_packets, 5u);
}

// The persistent congestion sets the slow start threshold. If the mark reduced the window again, the threshold would
// fall to the minimum window.
TEST(EcnUse, mark_that_ends_persistent_congestion__is_the_same_event) {
  for (const char* name : {"reno", "cubic", "dctcp"}) {
    ConnectionConfig config = with_ecn();
    config.congestion_control = name;
    EcnTransfer transfer(4'000'000, config);
    const Nanos begin = transfer.pair.now() + 2_ms;
    const Nanos end = begin + 1_s;
    transfer.pair.fate = [&, first = true](const Parsed& packet, Fate& fate) mutable {
      if (packet.from != 0 || packet.at < begin) return;
      fate.drop = packet.at < end;
      if (packet.at >= end && std::exchange(first, false)) fate.ecn = Ecn::ce;
    };
    transfer.complete();
    EXPECT_EQ(transfer.stats().persistent_congestions, 1u) << name;
    EXPECT_EQ(transfer.stats().ce_packets, 1u) << name;
    EXPECT_EQ(transfer.stats().congestion_events, 1u) << name;
  }
}

TEST(EcnUse, bleached_or_rewritten_field__ends_its_use) {
  for (const Ecn rewritten : {Ecn::not_ect, Ecn::ect1}) {
    EcnTransfer transfer(300'000);
    transfer.on_data([=](int, Fate& fate) { fate.ecn = rewritten; });
    transfer.complete();
    EXPECT_LT(transfer.pair.count([](const Parsed& p) { return p.from == 0 && p.ecn == Ecn::ect0; }), 50u)
        << "about the first window";
    EXPECT_EQ(transfer.stats().congestion_events, 0u);
  }
}

TEST(EcnUse, one_field_that_was_cleared__turns_it_off_for_a_while_only) {
  EcnTransfer transfer(4'000'000);
  transfer.on_data([](int number, Fate& fate) {
    if (number == 100) fate.ecn = Ecn::not_ect;
    if (number == 2600) fate.ecn = Ecn::ce;
  });
  transfer.complete();
  EXPECT_EQ(transfer.stats().ce_packets, 1u);
  int without = 0;
  for (const Parsed& packet : transfer.pair.log)
    if (packet.from == 0 && is_data(packet) && packet.ecn == Ecn::not_ect) ++without;
  EXPECT_GE(without, 1000);
  EXPECT_LT(without, 2100) << "the window doubles meanwhile";
}

TEST(EcnUse, losses_and_reordering__do_not_look_like_bleaching) {
  EcnTransfer transfer(3'000'000);
  Random random(7);
  std::uint64_t marked = 0;
  transfer.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (random.chance(0.03))
      fate.drop = true;
    else if (random.chance(0.05))
      fate.extra_delay = Nanos(static_cast<std::int64_t>(random.below(300'000)));
    else if (packet.from == 0 && packet.ecn == Ecn::ect0 && random.chance(0.02)) {
      fate.ecn = Ecn::ce;
      ++marked;
    }
  };
  transfer.complete();
  const Parsed* last = nullptr;
  for (const Parsed& packet : transfer.pair.log)
    if (packet.from == 0 && is_data(packet)) last = &packet;
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->ecn, Ecn::ect0);
  EXPECT_LE(transfer.stats().ce_packets, marked);
  EXPECT_GE(transfer.stats().ce_packets, marked * 9 / 10);
}

}  // namespace
}  // namespace mltcp::ecn_test
