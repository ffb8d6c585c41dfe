// Tests switch_file.cpp: the meaning of files and arguments, the default values of ports, and each refusal.
#include "mltcp/lab/experiment/files/switch_file.h"

#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment {
namespace {

using namespace mltcp::literals;

constexpr std::string_view kTwo = "[[port]]\ndevice = \"ring:a\"\n[[port]]\ndevice = \"ring:b\"\n";

std::string refusal(std::string_view text, const SwitchWords& words = {}) {
  return refusal_of([&] { parse_switch(text, "s.toml", words); });
}

TEST(SwitchFile, defaults__are_those_of_the_documentation) {
  const SwitchSettings settings = parse_switch(kTwo, "s.toml", {});
  ASSERT_EQ(settings.ports.size(), 2U);
  EXPECT_EQ(settings.ports[1].device, "ring:b");
  EXPECT_EQ(settings.ports[0].config.output.rate, Rate(1'000'000'000'000'000));
  EXPECT_EQ(settings.ports[0].config.output.delay, 0_ns);
  EXPECT_EQ(settings.ports[0].config.output.buffer_bytes, 250'000U);
  EXPECT_FALSE(settings.ports[0].config.output.ecn.enabled);
  EXPECT_EQ(settings.ports[0].config.classes, 1U);
  EXPECT_EQ(settings.table.entries, 4096U);
  EXPECT_EQ(settings.table.ageing, 300_s);
  EXPECT_EQ(settings.idle, "pause");
  EXPECT_NE(settings.ports[0].config.output.seed, settings.ports[1].config.output.seed);
}

TEST(SwitchFile, values_of_all_ports__give_way_to_those_of_a_port) {
  const SwitchSettings settings = parse_switch(
      "seed = 7\nidle = \"sleep\"\nmac_entries = 64\nageing = \"10 s\"\nrate = \"1 Gbps\"\nbuffer = \"75 kB\"\n"
      "ecn = { kmin = \"30 kB\" }\nfaults = { loss = 0.1, duplication = 0.2 }\n"
      "[[port]]\ndevice = \"ring:a\"\nrate = \"2 Gbps\"\ndelay = \"10 us\"\necn = false\nfaults = { loss = 0.3 }\n"
      "[[port]]\ndevice = \"ring:b\"\nclasses = 8\nmtu = 9000\n",
      "s.toml", {});
  const fabric::LinkConfig& a = settings.ports[0].config.output;
  const fabric::LinkConfig& b = settings.ports[1].config.output;
  EXPECT_EQ(a.rate, Rate(2'000'000'000));
  EXPECT_EQ(a.delay, 10_us);
  EXPECT_FALSE(a.ecn.enabled);
  EXPECT_EQ(a.faults.loss, 0.3);
  EXPECT_EQ(a.faults.duplication, 0.2);
  EXPECT_EQ(b.rate, Rate(1'000'000'000));
  EXPECT_EQ(b.buffer_bytes, 75'000U);
  EXPECT_TRUE(b.ecn.enabled);
  EXPECT_EQ(b.ecn.kmax_bytes, 30'000U);
  EXPECT_EQ(b.faults.loss, 0.1);
  EXPECT_EQ(settings.ports[1].config.classes, 8U);
  EXPECT_EQ(settings.ports[1].mtu, 9000U);
  EXPECT_EQ(settings.idle, "sleep");
  EXPECT_EQ(settings.table.entries, 64U);
}

TEST(SwitchFile, words__say_the_same_and_stand_for_the_files) {
  SwitchWords words;
  words.values = {{"rate", "1Gbps"}, {"loss", "0.01"}, {"ecn", "10kB"}, {"idle", "spin"}, {"seed", "3"}};
  words.ports = {"memif:/run/m.sock,role=server,id=3,delay=10us",
                 "af_packet:e1,ecn=30kB,60kB,0.5,classes=2,reorder=0.1"};
  const SwitchSettings settings = parse_switch("rate = \"5 Gbps\"\n[[port]]\ndevice = \"ring:a\"\n", "s.toml", words);
  ASSERT_EQ(settings.ports.size(), 3U);
  EXPECT_EQ(settings.ports[0].config.output.rate, Rate(1'000'000'000));
  EXPECT_EQ(settings.ports[0].config.output.faults.loss, 0.01);
  EXPECT_EQ(settings.ports[1].device, "memif:/run/m.sock,role=server,id=3");
  EXPECT_EQ(settings.ports[1].config.output.delay, 10_us);
  EXPECT_EQ(settings.ports[1].config.output.ecn.kmin_bytes, 10'000U);
  const fabric::SwitchPortConfig& last = settings.ports[2].config;
  EXPECT_EQ(settings.ports[2].device, "af_packet:e1");
  EXPECT_EQ(last.output.ecn.kmin_bytes, 30'000U);
  EXPECT_EQ(last.output.ecn.kmax_bytes, 60'000U);
  EXPECT_EQ(last.output.ecn.pmax, 0.5);
  EXPECT_EQ(last.output.faults.reordering, 0.1);
  EXPECT_EQ(last.output.faults.loss, 0.01);
  EXPECT_EQ(last.classes, 2U);
  EXPECT_EQ(settings.idle, "spin");
  words.ports = {"ring:a", "ring:b,ecn=off"};
  EXPECT_FALSE(parse_switch("", "--port", words).ports[1].config.output.ecn.enabled);
}

TEST(SwitchFile, refusals__name_place_cause_and_cure) {
  EXPECT_EQ(refusal(""), "s.toml:1: port: the switch has no ports; write [[port]] or --port for each, at least two");
  EXPECT_EQ(refusal("[[port]]\ndevice = \"ring:a\"\n"), "s.toml:1: port: the switch has 1 port; write 2 to 64");
  EXPECT_EQ(refusal("rat = \"1 Gbps\"\n"), "s.toml:1: rat: unknown key; did you mean \"rate\"?");
  EXPECT_THAT(refusal("port = 3\n"), StartsWith("s.toml:1: port: an array of tables is expected"));
  EXPECT_THAT(refusal("[[port]]\nrate = \"1 Gbps\"\n"), StartsWith("s.toml:1: port[1].device: the key is missing"));
  EXPECT_THAT(refusal("[[port]]\ndevice = \"a\"\n[[port]]\ndevice = \"a\"\n"),
              StartsWith("s.toml:4: port[2].device: \"a\" appears twice"));
  EXPECT_THAT(refusal("rate = \"0 Gbps\"\n"), StartsWith("s.toml:1: rate: 0 bps is out of range"));
  EXPECT_THAT(refusal("rate = 5\n"), StartsWith("s.toml:1: rate: the number 5 has no unit"));
  EXPECT_THAT(refusal("idle = \"nap\"\n"), StartsWith("s.toml:1: idle: \"nap\" is not known"));
  EXPECT_THAT(refusal("ageing = \"1 ms\"\n"), HasSubstr("too short; write at least 1 s"));
  EXPECT_THAT(refusal("classes = 9\n"), HasSubstr("write 1 to 8"));
  EXPECT_THAT(refusal("faults = { loss = 2.0 }\n"), HasSubstr("faults.loss: 2 is not a probability"));
  EXPECT_THAT(refusal("buffer = \"1 MB\"\necn = { kmin = \"500 kB\" }\n[[port]]\ndevice = \"a\"\nbuffer = \"75 kB\"\n"),
              StartsWith("s.toml:4: port[1].device: no frame is marked"));
}

TEST(SwitchFile, refusals_of_words__name_the_option) {
  const auto of = [](const std::string& port) { return refusal(kTwo, {{}, {port}}); };
  EXPECT_EQ(of("ring:c,rat=1Gbps"),
            "--port ring:c,rat=1Gbps: \"rat=1Gbps\" is not a setting of a port; did you mean \"rate=...\"?");
  EXPECT_THAT(of("ring:c,frobnicate"), HasSubstr("write KEY=VALUE with one of rate, delay"));
  EXPECT_THAT(of("ring:c,rate=fast"), StartsWith("--port ring:c,rate=fast: port[3].rate: "));
  EXPECT_THAT(of("ring:c,ecn=1kB,2kB,0.5,7"), HasSubstr("has more than three parts"));
  EXPECT_THAT(of("ring:c,ecn=3kB,2kB"), HasSubstr("port[3].ecn.kmax: 2 kB is less than kmin"));
  EXPECT_THAT(of("ring:a"), HasSubstr("port[3].device: \"ring:a\" appears twice"));
  EXPECT_THAT(of(""), HasSubstr("--port "));
  EXPECT_EQ(refusal(kTwo, {{{"loss", "1.5"}}, {}}),
            "--loss: faults.loss: 1.5 is not a probability; write a number from 0 to 1");
  EXPECT_THAT(refusal(kTwo, {{{"buffer", "75"}}, {}}), StartsWith("--buffer: the number 75 has no unit"));
}

TEST(SwitchFile, load__needs_a_file_that_is_one) {
  EXPECT_THROW(load_switch("/nowhere/s.toml", {}), InputError);
  EXPECT_EQ(load_switch("", {{}, {"ring:a", "ring:b"}}).ports.size(), 2U);
}

}  // namespace
}  // namespace mltcp::experiment
