// Tests the network that a testbed builds for an experiment.
#include "mltcp/lab/testbed/layout.h"

#include <gmock/gmock.h>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/switch_file.h"

namespace mltcp::testbed {
namespace {

using experiment::parse_experiment;
using testing::HasSubstr;
using Numbers = std::vector<std::uint32_t>;

const std::string pair_of_jobs = R"(
  [[job]]
  name = "a"
  communicate = "1 MB"
  [[job]]
  name = "b"
  communicate = "1 MB"
)";
const std::string ring = R"(
  [[job]]
  name = "ring"
  hosts = [1, 2, 4, 5]
  communicate = "1 MB"
)";

TestbedLayout layout(const std::string& text) { return testbed_layout(parse_experiment(text, "x.toml")); }

std::string refusal(const std::string& text) {
  try {
    layout(text);
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<std::string> words(const TestbedLayout::Switch& made) {
  std::vector<std::string> result;
  for (const auto& port : made.ports) result.push_back(switch_words(port, "af_packet"));
  return result;
}

TEST(testbed_layout, bottleneck__is_the_port_of_the_host_that_receives) {
  const TestbedLayout made = layout(R"(
    [bottleneck]
    rate = "1 Gbps"
    delay = "10 us"
    buffer = "75 kB"
    mtu = 3000
    ecn = { kmin = "20 kB", kmax = "60 kB", pmax = 0.5 }
    faults = { loss = 0.01, reordering = 0.2, reorder_delay = "50 us" }
  )" + pair_of_jobs);
  EXPECT_EQ(made.hosts, (Numbers{0, 1, 2}));
  EXPECT_EQ(made.mtu, 3000U);
  ASSERT_EQ(made.switches.size(), 1U);
  EXPECT_EQ(words(made.switches[0]),
            (std::vector<std::string>{
                "af_packet:h0,delay=10000ns", "af_packet:h1,delay=10000ns",
                "af_packet:h2,rate=1000000000bps,buffer=75000B,delay=10000ns,ecn=20000B,60000B,0.5,loss=0.01,"
                "reorder=0.2,reorder-delay=50000ns"}));
}

TEST(testbed_layout, words__are_read_by_the_switch_as_they_are_meant) {
  const TestbedLayout made = layout(R"(
    policies = ["priority"]
    [bottleneck]
    rate = "999999999 bps"
    delay = "1234567 ns"
    buffer = "75001 B"
    ecn = { kmin = "20001 B", kmax = "60003 B", pmax = 0.123456789012345 }
    faults = { loss = 1e-9, duplication = 0.25, corruption = 0.125, reordering = 0.5 }
  )" + pair_of_jobs);
  const experiment::SwitchSettings read = experiment::parse_switch("", "x", {{}, words(made.switches[0])});
  ASSERT_EQ(read.ports.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const fabric::SwitchPortConfig& meant = made.switches[0].ports[i].config;
    const fabric::SwitchPortConfig& is = read.ports[i].config;
    EXPECT_EQ(read.ports[i].device, "af_packet:h" + std::to_string(i));
    EXPECT_EQ(is.output.delay, meant.output.delay);
    EXPECT_EQ(is.classes, 8U);
    if (i < 2) continue;
    EXPECT_EQ(is.output.rate, meant.output.rate);
    EXPECT_EQ(is.output.buffer_bytes, meant.output.buffer_bytes);
    EXPECT_EQ(is.output.ecn.kmin_bytes, meant.output.ecn.kmin_bytes);
    EXPECT_EQ(is.output.ecn.kmax_bytes, meant.output.ecn.kmax_bytes);
    EXPECT_EQ(is.output.ecn.pmax, meant.output.ecn.pmax);
    EXPECT_EQ(is.output.faults.loss, 1e-9);
    EXPECT_EQ(is.output.faults.duplication, 0.25);
    EXPECT_EQ(is.output.faults.corruption, 0.125);
    EXPECT_EQ(is.output.faults.reordering, 0.5);
  }
}

TEST(testbed_layout, single_switch__has_the_hosts_that_take_part) {
  const TestbedLayout made = layout(R"(
    [topology]
    kind = "single-switch"
    hosts = 12
    host_rate = "1 Gbps"
    delay = "5 us"
    buffer = "100 kB"
  )" + ring);
  EXPECT_EQ(made.hosts, (Numbers{1, 2, 4, 5}));
  ASSERT_EQ(made.switches.size(), 1U);
  EXPECT_EQ(words(made.switches[0])[3], "af_packet:h5,rate=1000000000bps,buffer=100000B,delay=5000ns");
  EXPECT_EQ(made.switches[0].ports[3].host, 5U);
}

TEST(testbed_layout, tree__has_the_switches_between_the_hosts) {
  const TestbedLayout made = layout(R"(
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 1
    hosts_per_leaf = 4
    host_rate = "1 Gbps"
    uplink_rate = "2 Gbps"
  )" + ring);  // the jobs are on the first two leaves
  ASSERT_EQ(made.switches.size(), 3U);
  EXPECT_EQ(made.switches[0].name, "leaf 0");
  ASSERT_EQ(made.switches[1].ports.size(), 3U);
  std::size_t cables = 0;
  for (const auto& one : made.switches) {
    for (const auto& port : one.ports) {
      if (port.host) continue;
      EXPECT_EQ(port.config.output.rate.bits_per_second, 2'000'000'000);
      for (const auto& other : made.switches)
        for (const auto& end : other.ports)
          cables += end.interface == port.peer && end.peer == port.interface ? 1U : 0U;
    }
  }
  EXPECT_EQ(cables, 4U) << "two, seen from both ends";
}

TEST(testbed_layout, fat_tree__is_one_switch_for_hosts_of_one) {
  const TestbedLayout made = layout(R"(
    [topology]
    kind = "fat-tree"
    k = 4
    rate = "1 Gbps"
    [[job]]
    name = "a"
    hosts = [2, 3]
    communicate = "1 MB"
  )");
  ASSERT_EQ(made.switches.size(), 1U);
  EXPECT_EQ(made.switches[0].ports.size(), 2U);
}

TEST(testbed_layout, what_it_cannot_be__is_refused_with_the_cure) {
  const std::string spines = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n";
  EXPECT_THAT(refusal(spines + "host_rate = \"1 Gbps\"\n" + ring),
              HasSubstr("x.toml: its switches have several paths"));
  EXPECT_THAT(refusal("[topology]\nkind = \"single-switch\"\nhosts = 6\nhost_rate = \"1 Gbps\"\n"
                      "shared_buffer = \"1 MB\"\n" +
                      ring),
              HasSubstr("give buffer instead of shared_buffer"));
  EXPECT_THAT(refusal("[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\ncount = 63\n"),
              HasSubstr("64 hosts, but a testbed has at most 63"));
  EXPECT_THROW(testbed_layout(1, 1500), InputError);
  EXPECT_THROW(testbed_layout(64, 1500), InputError);
  EXPECT_EQ(switch_words(testbed_layout(63, 1500).switches[0].ports[62], "af_xdp"), "af_xdp:h62");
}

}  // namespace
}  // namespace mltcp::testbed
