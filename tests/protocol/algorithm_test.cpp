// Tests what rate-based and delay-based algorithms require from the transport: exact rates on the wire, a timer for the
// controller, and windows below one packet.
#include <gtest/gtest.h>

#include <memory>

#include "../transport/test_network.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/swift.h"
#include "transfer.h"

namespace mltcp::algorithm_test {
namespace {

using namespace testing_network;

constexpr std::size_t kOverhead = 42;  // bytes of headers per packet on the wire
const Rate line_rate(100'000'000);

ConnectionConfig dcqcn(const cc::DcqcnParameters& parameters = {}) {
  cc::Parameters all;
  all.edit<cc::Dcqcn>() = parameters;
  ConnectionConfig config;
  config.congestion_control = "dcqcn";
  config.parameters = std::make_shared<const cc::Parameters>(all);
  config.ecn = true;
  config.max_rate = line_rate;
  return config;
}

/// Sets a congestion mark on data packet `number`, counted from 0.
void mark(Transfer& transfer, int number) {
  transfer.on_data([=](int at, Fate& fate) {
    if (at == number) fate.ecn = Ecn::ce;
  });
}

TEST(RateBased, rate__begins_at_line_rate_and_counts_what_is_on_the_wire) {
  cc::DcqcnParameters parameters;
  parameters.increase_interval = 100_s;  // so long that no increase follows the reduction
  parameters.increase_bytes = 1'000'000'000;
  Transfer transfer(1'000'000, dcqcn(parameters));
  EXPECT_EQ(transfer.stats().pacing_rate, line_rate);
  mark(transfer, 100);
  transfer.complete();
  EXPECT_EQ(transfer.stats().pacing_rate, Rate(line_rate.bits_per_second / 2));
  // Compares the rate before the marked packet with the rate well after it.
  std::vector<const Parsed*> sent;
  for (const Parsed& packet : transfer.pair.log)
    if (packet.from == 0 && is_data(packet)) sent.push_back(&packet);
  ASSERT_GT(sent.size(), 500u);
  const auto rate_between = [&](std::size_t first, std::size_t last) {
    std::size_t bytes = 0;
    for (std::size_t i = first; i < last; ++i) bytes += sent[i]->size + kOverhead;
    return static_cast<double>(bytes) * 8 / (sent[last]->at - sent[first]->at).seconds();
  };
  EXPECT_NEAR(rate_between(10, 90), 100e6, 1e6);
  EXPECT_NEAR(rate_between(150, 500), 50e6, 0.5e6);
}

TEST(RateBased, timer__brings_the_rate_back_while_nothing_is_sent_and_then_leaves_the_shard_alone) {
  cc::DcqcnParameters parameters;
  parameters.increase_interval = 1_ms;
  Transfer transfer(1'000'000, dcqcn(parameters));
  mark(transfer, 680);  // near the end of the transfer
  transfer.complete();
  transfer.pair.run_for(100_us);
  EXPECT_LT(transfer.stats().pacing_rate, line_rate);
  EXPECT_LE(transfer.pair.host(0).deadline, transfer.pair.now() + 1_ms);
  transfer.pair.run_for(100_ms);
  EXPECT_EQ(transfer.stats().pacing_rate, line_rate);
  EXPECT_TRUE(transfer.pair.host(0).deadline.is_never());
}

TEST(WindowBelowOnePacket, is_one_packet_in_as_many_round_trips) {
  cc::Parameters parameters;
  parameters.edit<cc::Swift>().base_target = 1_ns;  // a target that is never met
  parameters.edit<cc::Swift>().flow_scaling = 0_ns;
  parameters.edit<cc::Swift>().per_hop = 0_ns;
  parameters.edit<cc::Swift>().min_window = 0.25;
  ConnectionConfig config;
  config.congestion_control = "swift";
  config.parameters = std::make_shared<const cc::Parameters>(parameters);
  Transfer transfer(100'000, config);
  transfer.complete();
  EXPECT_DOUBLE_EQ(transfer.pair.c().stats(transfer.c)->cwnd_bytes, 0.25 * PacketIo::Limits{}.max_packet_bytes);
  Nanos last;
  int packets = 0;
  for (const Parsed& packet : transfer.pair.log) {
    if (packet.from != 0 || !is_data(packet)) continue;
    if (++packets > 20) {
      EXPECT_NEAR((packet.at - last).seconds(), 4 * 100e-6, 10e-6) << "packet " << packets;
    }
    last = packet.at;
  }
  EXPECT_GT(packets, 60);
}

}  // namespace
}  // namespace mltcp::algorithm_test
