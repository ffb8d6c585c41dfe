// Tests both ends of `mltcp perf` in one process, over a network that loses the packets that the test selects.
#include "mltcp/lab/experiment/perf/perf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../../endpoint/loop_network.h"
#include "../../temporary_folder.h"
#include "mltcp/lab/experiment/backends/host_datapaths.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

/// Returns the number of completely received messages that the ACK in the packet reports, or 0 if the packet has no
/// ACK.
std::uint32_t whole_in(std::span<const std::byte> header) {
  wire::Reader reader;
  wire::Header parsed;
  wire::Frame frame;
  std::uint32_t whole = 0;
  if (reader.begin(header, 0, parsed) != wire::ParseError::none) return 0;
  while (reader.next(frame))
    if (frame.type == wire::FrameType::ack && frame.ack.has_whole) whole = std::max(whole, frame.ack.whole);
  return whole;
}

class PerfLossTest : public ::testing::TestWithParam<PerfTest> {
 protected:
  PerfLossTest() {
    register_datapaths_once();
    loop_network::register_datapath();
    network = loop_network::Network::make("perf", false);
    server.device = client.device = "loop:perf";
    server.ip = "10.0.0.1/24";
    client.ip = "10.0.0.2/24";
  }

  /// Runs a measurement with a new server and returns the results.
  PerfResults measure(const PerfSettings& settings) const {
    std::atomic<bool> ends{false};
    const PerfCallbacks callbacks{[](const std::string&) {}, [](const PerfPoint&) {},
                                  [&]() -> std::string { return ends ? "the test ends" : ""; }};
    const std::string address = "unix:" + (folder.path() / "s").string();
    std::thread serving([&] {
      try {
        serve_perf(address, server, true, callbacks, "1");
      } catch (const std::exception&) {  // the client reports the reason
      }
    });
    const auto join = [&] {
      ends = true;
      serving.join();
    };
    try {
      std::vector<std::unique_ptr<MessageStream>> silent;
      while (silent.size() < unknown_peers)
        silent.push_back(
            MessageStream::connect(parse_stream_address(address), Nanos::from_seconds(10), [] { return ""; }));
      PerfResults results = run_perf(address, Nanos::from_seconds(10), client, settings, callbacks, "1");
      join();
      return results;
    } catch (...) {
      join();
      throw;
    }
  }

  TemporaryFolder folder;
  std::shared_ptr<loop_network::Network> network;
  PerfPlace server;
  PerfPlace client;
  std::size_t unknown_peers = 0;  ///< number of peers that connect before the client and send nothing
};

// The receiver has received a whole batch and waits for the next message, but the sender does not know this yet.
TEST_P(PerfLossTest, the_last_acknowledgement_of_a_batch__comes_again_when_it_is_asked_for) {
  PerfSettings settings;
  settings.tests = {GetParam()};
  settings.min_bytes = settings.max_bytes = 1000;
  settings.depth = 8;
  settings.time = Nanos(10'000'000);
  const Address receiver = AddressPrefix::parse(GetParam() == PerfTest::out ? server.ip : client.ip).address;
  // The first batch has 64 messages, and one message precedes it.
  constexpr std::uint32_t messages = 64 + 1;
  bool is_lost = false;
  bool is_asked = false;
  network->loses = [&](const Address& from, const Address&, std::span<const std::byte> header) {
    if (from.ip != receiver.ip) {
      is_asked = is_asked || is_lost;
      return false;
    }
    const bool lost = !is_asked && whole_in(header) >= messages;
    is_lost = is_lost || lost;
    return lost;
  };
  PerfResults results;
  EXPECT_NO_THROW(results = measure(settings));
  EXPECT_TRUE(is_lost);
  EXPECT_TRUE(is_asked);
  EXPECT_EQ(results.points.size(), 1U);
}

using PerfPathTest = PerfLossTest;

TEST_P(PerfPathTest, what_a_path_that_loses_long_packets_costs__is_in_the_results) {
  PerfSettings settings;
  settings.tests = {GetParam()};
  settings.min_bytes = settings.max_bytes = 10'000;
  settings.depth = 8;
  settings.time = Nanos(10'000'000);
  network->longest = 1000;
  PerfResults results;
  ASSERT_NO_THROW(results = measure(settings));
  EXPECT_EQ(results.packets.black_holes, 1U);
  EXPECT_GE(results.packets.size_probes_lost, 3U);
  EXPECT_GT(results.packets.size_probes_sent, results.packets.size_probes_lost);
  EXPECT_LE(results.packet_bytes, network->longest);
  EXPECT_GT(results.agreed_packet_bytes, network->longest);
  const auto json = nlohmann::json(to_json(results));
  EXPECT_EQ(json["packet_bytes"], results.packet_bytes);
  EXPECT_EQ(json["agreed_packet_bytes"], results.agreed_packet_bytes);
  EXPECT_EQ(json["black_holes"], 1);
  EXPECT_EQ(json["size_probes_sent"], results.packets.size_probes_sent);
  EXPECT_EQ(json["size_probes_lost"], results.packets.size_probes_lost);
}

TEST_P(PerfPathTest, unknown_peers_that_say_nothing__keep_no_client_out) {
  PerfSettings settings;
  settings.tests = {GetParam()};
  settings.min_bytes = settings.max_bytes = 1000;
  settings.time = Nanos(10'000'000);
  server.key = client.key = std::make_shared<const security::JobKey>(security::JobKey::generate());
  unknown_peers = 30;
  PerfResults results;
  EXPECT_NO_THROW(results = measure(settings));
  EXPECT_EQ(results.points.size(), 1U);
}

// The number of reported errors is limited only for unknown peers. These clients have the key, so each of their errors
// is reported.
TEST_P(PerfPathTest, clients_with_the_key__are_told_of_each) {
  PerfSettings settings;
  settings.tests = {GetParam()};
  settings.min_bytes = settings.max_bytes = 1000;
  settings.time = Nanos(10'000'000);
  server.key = client.key = std::make_shared<const security::JobKey>(security::JobKey::generate());
  const std::string address = "unix:" + (folder.path() / "s").string();
  std::atomic<bool> ends{false};
  std::size_t done = 0;
  std::thread serving([&] {
    serve_perf(address, server, false,
               {[&](const std::string& line) { done += line == "done" ? 1U : 0U; }, [](const PerfPoint&) {},
                [&]() -> std::string { return ends ? "the test ends" : ""; }},
               "1");
  });
  const PerfCallbacks callbacks{[](const std::string&) {}, [](const PerfPoint&) {}, [] { return std::string(); }};
  for (int i = 0; i < 12; ++i)
    EXPECT_NO_THROW(run_perf(address, Nanos::from_seconds(10), client, settings, callbacks, "1"));
  ends = true;
  serving.join();
  EXPECT_GE(done, 11U) << "the last may have been cut off by the end";
}

INSTANTIATE_TEST_SUITE_P(Client, PerfPathTest, ::testing::Values(PerfTest::out),
                         [](const auto& test) { return to_text(test.param); });
INSTANTIATE_TEST_SUITE_P(BothEnds, PerfLossTest, ::testing::Values(PerfTest::out, PerfTest::in),
                         [](const auto& test) { return to_text(test.param); });

}  // namespace
}  // namespace mltcp::experiment
