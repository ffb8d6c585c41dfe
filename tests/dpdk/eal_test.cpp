// Starting DPDK: core lists and their errors, what start-up leaves behind, and that it happens once.
#include "mltcp/dpdk/eal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/dpdk/ring_port.h"

namespace mltcp::dpdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array<unsigned, 4> kUsable{0, 1, 2, 5};

std::string error_of(const char* text) {
  return message_of<InputError>([&] { parse_cores(text, kUsable); });
}

TEST(ParseCores, ReadsNumbersListsAndRanges) {
  EXPECT_THAT(parse_cores("0", kUsable), ElementsAre(0u));
  EXPECT_THAT(parse_cores("0,1", kUsable), ElementsAre(0u, 1u));
  EXPECT_THAT(parse_cores("0-1", kUsable), ElementsAre(0u, 1u));
  EXPECT_THAT(parse_cores("5, 0 - 2", kUsable), ElementsAre(5u, 0u, 1u, 2u));
}

TEST(ParseCores, NamesTheBadCoreWhatIsAvailableAndWhatToWrite) {
  const std::string error = error_of("0,3");
  EXPECT_THAT(error, HasSubstr("CPU 3"));
  EXPECT_THAT(error, HasSubstr("0,1,2,5"));
  EXPECT_THAT(error, HasSubstr("write for example 0,1"));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_THAT(error_of("2-5"), HasSubstr("CPU 3"));
}

TEST(ParseCores, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "0,", "a", "-1", "1-", "0x1", "1.5", "99999999999", "0;1", "65536"}) {
    EXPECT_THAT(error_of(text), HasSubstr("not a CPU number")) << text;
  }
  EXPECT_THAT(error_of("1-0"), HasSubstr("runs backwards; write 0-1"));
  EXPECT_THAT(error_of("1,1"), HasSubstr("named twice"));
  EXPECT_THAT(error_of("0-1,1"), HasSubstr("named twice"));
}

TEST(Eal, RefusesBadOptionsWithoutStarting) {
  EalOptions options;
  options.memory_mb = 8;
  EXPECT_THAT(message_of<InputError>([&] { const Eal eal(options); }), HasSubstr("32 to 65536 MB"));
  options.memory_mb = 64;
  options.cores = "4095";
  EXPECT_THAT(message_of<InputError>([&] { const Eal eal(options); }), HasSubstr("CPU 4095"));
}

TEST(Eal, SaysHowToGetHugePagesWhenTheyAreRequired) {
  std::ifstream meminfo("/proc/meminfo");
  const std::string text{std::istreambuf_iterator<char>(meminfo), std::istreambuf_iterator<char>()};
  if (text.find("HugePages_Total:       0\n") == std::string::npos) GTEST_SKIP() << "this machine has huge pages";
  EalOptions options;
  options.huge_pages = EalOptions::HugePages::required;
  EXPECT_THAT(message_of<RunError>([&] { const Eal eal(options); }), HasSubstr("/proc/sys/vm/nr_hugepages"));
  EXPECT_FALSE(Eal::was_started());
}

TEST(Eal, StartsOnceKeepsTheAffinityAndLeavesNothingBehind) {
  cpu_set_t before;
  cpu_set_t after;
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  EalOptions options;
  options.memory_mb = 64;
  options.ordinary_memory_mb = 96;
  {
    const Eal eal(options);
    pthread_getaffinity_np(pthread_self(), sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    EXPECT_THAT(eal.cores(), ElementsAre(usable_cpus().front()));
    EXPECT_THAT(eal.description(), HasSubstr(eal.uses_huge_pages() ? "in huge pages" : "in ordinary pages"));
    EXPECT_EQ(eal.memory_mb(), eal.uses_huge_pages() ? 64U : 96U);
    EXPECT_TRUE(Eal::was_started());
    EXPECT_THAT(message_of<RunError>([&] { const Eal second(options); }), HasSubstr("can't be started twice"));
    for (const char* base : {"/var/run/dpdk", "/tmp/dpdk"}) {
      std::error_code ignored;
      EXPECT_FALSE(std::filesystem::exists(std::string(base) + "/mltcp-" + std::to_string(getpid()), ignored));
    }

    // More than there is memory for: an error with a cure, and nothing lost.
    const std::string error = message_of<RunError>([] { const PacketPool pool("big", 2'000'000, 2048); });
    if (!eal.uses_huge_pages()) {
      EXPECT_THAT(error, HasSubstr("MB more"));
    }
    for (int round = 0; round < 40; ++round) {  // ports and pools are given back in full
      const PacketPool pool("again", 4095, 2048);
      const PacketRing there("there", 64);
      const PacketRing back("back", 64);
      const RingPort a("a", back, there, pool);
      const RingPort b("b", there, back, pool);
      ASSERT_EQ(free_ports(), max_ports() - 2);
    }
    EXPECT_EQ(free_ports(), max_ports());
  }
  EXPECT_THAT(message_of<RunError>([&] { const Eal third(options); }), HasSubstr("can't be started twice"));
}

}  // namespace
}  // namespace mltcp::dpdk
