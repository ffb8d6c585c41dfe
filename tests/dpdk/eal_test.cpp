// Tests the start of DPDK: core lists and their errors, that a start leaves nothing behind, and that DPDK starts once
// for all users in the process.
#include "mltcp/dpdk/eal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/ring_port.h"

namespace mltcp::dpdk {
namespace {

using testing::AllOf;
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
    EXPECT_FALSE(eal.is_shared());
    for (const char* base : {"/var/run/dpdk", "/tmp/dpdk"}) {
      std::error_code ignored;
      EXPECT_FALSE(std::filesystem::exists(std::string(base) + "/mltcp-" + std::to_string(getpid()), ignored));
    }

    // Requests more than the available memory. The error contains a cure, and no memory leaks.
    const std::string error = message_of<RunError>([] { const PacketPool pool("big", 2'000'000, 2048); });
    if (!eal.uses_huge_pages()) {
      EXPECT_THAT(error, HasSubstr("MB more"));
    }
    for (int round = 0; round < 40; ++round) {  // shows that all memory of ports and pools is returned
      const PacketPool pool("again", 4095, 2048);
      const PacketRing there("there", 64);
      const PacketRing back("back", 64);
      const RingPort a("a", back, there, pool);
      const RingPort b("b", there, back, pool);
      ASSERT_EQ(free_ports(), max_ports() - 2);
    }
    EXPECT_EQ(free_ports(), max_ports());
  }
}

EalOptions small(std::uint32_t memory_mb = 64) {
  EalOptions options;
  options.memory_mb = memory_mb;
  options.huge_pages = EalOptions::HugePages::never;
  return options;
}

cpu_set_t affinity_of_this_thread() {
  cpu_set_t set;
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  return set;
}

TEST(Eal, is_shared__by_all_in_the_process_and_after_the_first_has_gone) {
  const Clock* clock = nullptr;
  {
    const Eal first(small());
    clock = &first.clock();
    EalOptions options = small(128);  // ignored, because the first Eal determines the memory
    options.cores = std::to_string(usable_cpus().back());
    const Eal second(options);
    EXPECT_TRUE(second.is_shared());
    EXPECT_EQ(second.memory_mb(), first.memory_mb());
    EXPECT_EQ(&second.clock(), &first.clock());
    EXPECT_THAT(second.cores(), ElementsAre(usable_cpus().back()));
    const PacketPool pool("second", 255, 2048);
    const PacketRing there("there", 64);
    const RingPort port("a", there, there, pool);
  }
  const Eal third(small());
  EXPECT_TRUE(third.is_shared());
  EXPECT_EQ(&third.clock(), clock);
  const PacketPool pool("third", 255, 2048);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Eal, contradictions__are_refused_with_the_cure) {
  const Eal first(small());
  EalOptions options = small();
  options.huge_pages = EalOptions::HugePages::required;
  EXPECT_THAT(message_of<RunError>([&] { const Eal eal(options); }),
              AllOf(HasSubstr("in ordinary pages, but huge ones are requested here"), HasSubstr("; ")));
  options = small();
  const std::uint32_t memory_mb = first.memory_mb();  // an earlier test may have determined this value
  options.min_shared_mb = memory_mb + 1;
  EXPECT_THAT(message_of<RunError>([&] { const Eal eal(options); }),
              AllOf(HasSubstr("with " + std::to_string(memory_mb) + " MB in ordinary pages"),
                    HasSubstr("but " + std::to_string(memory_mb + 1) + " MB are requested here; request that")));
  options.min_shared_mb = memory_mb;
  EXPECT_TRUE(Eal(options).is_shared());
  options.huge_pages = EalOptions::HugePages::if_free;  // accepts any kind of pages
  EXPECT_TRUE(Eal(options).is_shared());
}

TEST(Eal, threads__keep_their_affinity_and_may_end) {
  std::optional<Eal> first;
  cpu_set_t pinned;
  CPU_ZERO(&pinned);
  CPU_SET(usable_cpus().back(), &pinned);
  // The thread that starts DPDK is pinned and ends. Other threads continue to use DPDK.
  std::thread([&] {
    pthread_setaffinity_np(pthread_self(), sizeof pinned, &pinned);
    first.emplace(small());
    const cpu_set_t after = affinity_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&after, &pinned));
  }).join();
  for (int round = 0; round < 300; ++round) {  // more threads in total than DPDK supports at the same time
    std::thread([&] {
      const cpu_set_t before = affinity_of_this_thread();
      const Eal eal(small());
      const cpu_set_t after = affinity_of_this_thread();
      EXPECT_TRUE(CPU_EQUAL(&before, &after));
      EXPECT_NE(rte_lcore_id(), LCORE_ID_ANY) << round;
    }).join();
  }
}

TEST(Eal, threads__open_ports_at_once) {
  const std::size_t before = [] {
    const Eal eal(small());
    return free_ports();
  }();
  std::vector<std::thread> threads;
  std::atomic<int> opened{0};
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&opened, number] {
      for (int round = 0; round < 10; ++round) {
        const Eal eal(small());
        const Port port(eal, {.device = "ring:t" + std::to_string(number), .descriptors = 64, .spare_buffers = 256});
        ++opened;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened, 40);
  EXPECT_EQ(free_ports(), before);
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not support a fork of a process with threads
TEST(Eal, child_of_a_fork__is_told_that_DPDK_is_its_parents) {
  const Eal eal(small());
  const auto pool = std::make_unique<PacketPool>("parents", 255, 2048);
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = message_of<RunError>([] { const Eal own(small()); });
    _exit(error.find("belongs to the parent; open ports in the child before") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  for (int wait = 0; wait < 1000 && waitpid(child, &status, WNOHANG) == 0; ++wait) Clock::sleep(Nanos(10'000'000));
  if (status == -1) kill(child, SIGKILL);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace mltcp::dpdk
