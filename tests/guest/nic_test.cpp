// Two NICs of the PCI bus that hear each other, as DPDK drives them, in one process: MLTCP_NICS="0000:01:00.0
// 0000:02:00.0". For a guest (tests/guest/nics_test.py); the link is cut and NICs unplugged by "monitor" there, to
// which they are nic0 and nic1. Of a kind of NIC, MLTCP_NIC_TRAITS says what holds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../dpdk/port_stations.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {
namespace {

using namespace mltcp::literals;
using namespace port_stations;

std::vector<std::string> words_of(const char* variable) {
  const char* const text = std::getenv(variable);
  std::istringstream stream(text == nullptr ? "" : text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Whether the kind of NIC has it: "queues", "rss", "interrupts", "jumbo", "checksums", "vfio".
bool has(const std::string& trait) {
  const auto traits = words_of("MLTCP_NIC_TRAITS");
  return std::find(traits.begin(), traits.end(), trait) != traits.end();
}

bool monitor(const std::string& command) { return run_command("monitor " + command); }

class NicTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    nics() = words_of("MLTCP_NICS");
    if (nics().size() != 2) return;
    EalOptions options;
    options.devices = nics();
    options.memory_mb = 160;
    eal() = std::make_unique<Eal>(options);
    fmt::print("{}\n", eal()->description());
  }
  static void TearDownTestSuite() { eal().reset(); }
  void SetUp() override {
    if (!eal()) GTEST_SKIP() << "MLTCP_NICS names no two NICs; see tests/guest";
  }

  static std::vector<std::string>& nics() {
    static std::vector<std::string> all;
    return all;
  }
  static std::unique_ptr<Eal>& eal() {
    static std::unique_ptr<Eal> one;
    return one;
  }
};

/// How the two ports are opened.
struct Wish {
  std::uint32_t mtu = 0;
  std::uint16_t queues = 1;
  std::uint16_t vlan = 0;
  bool v6 = false;
  bool interrupts = false;
  Idle idle = Idle::pause;
  PortOffloads offloads{};
  std::uint32_t buffer_bytes = 0;
};

PortConfig config_for(const std::string& device, const Wish& wish) {
  return {.device = device,
          .mtu = wish.mtu,
          .queues = wish.queues,
          .descriptors = 256,
          .spare_buffers = 512,
          .buffer_bytes = wish.buffer_bytes,
          .interrupts = wish.interrupts,
          .vlan = wish.vlan,
          .offloads = wish.offloads};
}

/// Both ports with a host each, and a loop for all.
struct Bench {
  Bench(const Eal& eal, const std::vector<std::string>& nics, const Wish& wish)
      : left(eal, config_for(nics[0], wish)),
        right(eal, config_for(nics[1], wish)),
        here(eal, left, {.address = host(1, wish.v6)}),
        there(eal, right, {.address = host(2, wish.v6)}),
        to(host(2, wish.v6)),
        loop(eal.time(), wish.idle) {}

  bool run(const std::function<bool()>& done, Nanos patience = 30_s) { return loop.run(loop.now() + patience, done); }
  bool wait_for_link() {
    return run([this] { return left.link().up && right.link().up; }, 10_s);
  }
  [[nodiscard]] std::uint64_t rejected() const {
    std::uint64_t sum = 0;
    for (const PortHost* place : {&here, &there}) {
      for (std::uint16_t shard = 0; shard < place->shards(); ++shard)
        sum += total(place->io(shard).counters().rejected);
    }
    return sum;
  }
  static std::uint64_t total(const RejectCounters& rejected) {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : rejected) sum += count;
    return sum;
  }

  Port left;
  Port right;
  PortHost here;
  PortHost there;
  Address to;
  PollLoop loop;
};

/// Messages from the left to the right, each byte compared; what went wrong.
std::string transfer(Bench& bench, std::size_t count, std::size_t size) {
  if (!bench.wait_for_link()) return "no link";
  Client client(bench.here.io(), bench.to, count, size);
  Server server(bench.there.io(), count, size);
  PollLoop& loop = bench.loop;
  loop.attach(bench.here.io(), client);
  loop.attach(bench.there.io(), server);
  const bool done = bench.run([&] { return client.is_done() && server.is_done(); });
  if (!done || client.unsent != 0 || server.wrong != 0)
    return fmt::format("{} of {} sent, {} received, {} of them wrong", client.sent, count, server.received,
                       server.wrong);
  return bench.rejected() == 0 ? "" : fmt::format("{} frames were refused", bench.rejected());
}

TEST_F(NicTest, messages__arrive) {
  Bench bench(*eal(), nics(), {});
  fmt::print("{}; steering {}; by reference: {}\n", bench.left.description(), static_cast<int>(bench.left.steering()),
             bench.left.sends_by_reference());
  EXPECT_TRUE(bench.left.reads_by_dma());
  EXPECT_EQ(transfer(bench, 100, 20'000), "");
  EXPECT_EQ(bench.left.offloads().send_udp_checksum, has("checksums"));
  EXPECT_EQ(bench.right.offloads().receive_ip_checksum, has("checksums"));
}

TEST_F(NicTest, messages__arrive_over_ipv6) {
  Bench bench(*eal(), nics(), {.v6 = true});
  EXPECT_EQ(transfer(bench, 50, 20'000), "");
}

TEST_F(NicTest, checksums_in_software__are_right) {
  Bench bench(*eal(), nics(), {.offloads = {.checksums = false}});
  EXPECT_FALSE(bench.left.offloads().send_udp_checksum);
  EXPECT_FALSE(bench.right.offloads().receive_ip_checksum || bench.right.offloads().receive_udp_checksum);
  EXPECT_EQ(transfer(bench, 50, 20'000), "");
}

TEST_F(NicTest, one_end_with_and_one_without_offloads__agree) {
  Port left(*eal(), config_for(nics()[0], {.offloads = {false, false, false}}));
  Port right(*eal(), config_for(nics()[1], {}));
  PortHost here(*eal(), left, {.address = host(1)});
  PortHost there(*eal(), right, {.address = host(2)});
  PollLoop loop(eal()->time(), Idle::pause);
  loop.run(loop.now() + 10_s, [&] { return left.link().up && right.link().up; });
  Client client(here.io(), host(2), 50, 20'000);
  Server server(there.io(), 50, 20'000);
  loop.attach(here.io(), client);
  loop.attach(there.io(), server);
  EXPECT_TRUE(loop.run(loop.now() + 30_s, [&] { return client.is_done() && server.is_done(); }));
  EXPECT_EQ(server.wrong, 0);
  EXPECT_EQ(Bench::total(there.io().counters().rejected), 0);
}

TEST_F(NicTest, packets_of_a_vlan__arrive_and_others_do_not) {
  {
    Bench bench(*eal(), nics(), {.vlan = 5});
    EXPECT_EQ(transfer(bench, 50, 20'000), "");
  }
  Port left(*eal(), config_for(nics()[0], {.vlan = 5}));
  Port right(*eal(), config_for(nics()[1], {.vlan = 6}));
  PortHost here(*eal(), left, {.address = host(1)});
  PortHost there(*eal(), right, {.address = host(2)});
  PollLoop loop(eal()->time(), Idle::pause);
  loop.run(loop.now() + 10_s, [&] { return left.link().up && right.link().up; });
  Client client(here.io(), host(2), 1, 100);
  Server server(there.io(), 1, 100);
  loop.attach(here.io(), client);
  loop.attach(there.io(), server);
  loop.run(loop.now() + 3_s, [&] { return Bench::total(there.io().counters().rejected) >= 1; });
  EXPECT_EQ(server.received, 0);
  fmt::print("{} frames of another VLAN were refused here, others by the NIC\n",
             Bench::total(there.io().counters().rejected));
}

TEST_F(NicTest, jumbo_frames__arrive) {
  if (!has("jumbo")) {
    EXPECT_THROW(Port(*eal(), config_for(nics()[0], {.mtu = 9000})), InputError);
    return;
  }
  Bench bench(*eal(), nics(), {.mtu = 9000});
  EXPECT_EQ(bench.left.mtu(), 9000);
  EXPECT_EQ(transfer(bench, 50, 100'000), "");
  EXPECT_LT(bench.here.io().counters().sent_packets, 1000);  // they are long
}

/// Its frames would not fit into what it sends from.
TEST_F(NicTest, host_on_short_buffers__is_refused) {
  const auto make = [&] { return Bench(*eal(), nics(), {.mtu = 4000, .buffer_bytes = 2048}); };
  try {
    make();
    FAIL() << "it was not";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                testing::AnyOf(HasSubstr("hold no frame of 4014, which a host sends"), HasSubstr("can't scatter")));
  }
}

TEST_F(NicTest, several_shards__get_what_is_theirs) {
  if (!has("queues")) {
    try {
      const Port port(*eal(), config_for(nics()[0], {.queues = 2}));
      FAIL() << "it has two queues";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("has 1; give fewer"));
    }
    return;
  }
  constexpr std::uint16_t kQueues = 4;
  constexpr std::size_t kCount = 40;
  Bench bench(*eal(), nics(), {.queues = kQueues});
  ASSERT_TRUE(bench.wait_for_link());
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Server>> servers;
  for (std::uint16_t i = 0; i < kQueues; ++i) {
    Address to = bench.to;
    to.port = static_cast<std::uint16_t>(to.port + i);
    clients.push_back(std::make_unique<Client>(bench.here.io(i), to, kCount, 20'000));
    servers.push_back(std::make_unique<Server>(bench.there.io(i), kCount, 20'000));
    bench.loop.attach(bench.here.io(i), *clients.back());
    bench.loop.attach(bench.there.io(i), *servers.back());
  }
  const auto all_done = [&] {
    return std::ranges::all_of(clients, [](const auto& one) { return one->is_done(); }) &&
           std::ranges::all_of(servers, [](const auto& one) { return one->is_done(); });
  };
  EXPECT_TRUE(bench.run(all_done));
  EXPECT_EQ(bench.rejected(), 0);
  std::uint64_t handed_over = 0;
  std::uint64_t taken_over = 0;
  unsigned busy = 0;
  for (std::uint16_t i = 0; i < kQueues; ++i) {
    const PortIoCounters& counters = bench.there.io(i).counters();
    EXPECT_EQ(servers[i]->received, kCount);
    EXPECT_EQ(servers[i]->wrong, 0);
    EXPECT_GT(counters.received_packets, 0);
    handed_over += counters.handed_over;
    taken_over += counters.taken_over;
    fmt::print("shard {}: {} packets, {} handed over, {} taken over\n", i, counters.received_packets,
               counters.handed_over, counters.taken_over);
    // What a queue has heard itself.
    busy += counters.received_packets + counters.handed_over > counters.taken_over ? 1 : 0;
  }
  fmt::print("steering {}, {} of {} queues heard something\n", static_cast<int>(bench.there.port().steering()), busy,
             kQueues);
  if (!bench.there.is_steered()) {
    EXPECT_GT(handed_over, 0);
    EXPECT_GT(taken_over, 0);
  }
  if (has("rss")) {
    EXPECT_EQ(bench.there.port().steering(), Steering::rss);
    EXPECT_GT(busy, 1);
  }
}

TEST_F(NicTest, loop_that_sleeps__is_woken_where_there_are_interrupts) {
  Bench bench(*eal(), nics(), {.interrupts = true, .idle = Idle::sleep});
  EXPECT_EQ(bench.right.has_interrupts(), has("interrupts"));
  EXPECT_EQ(transfer(bench, 30, 20'000), "");
  const LoopCounters& before = bench.loop.counters();
  const std::uint64_t sleeps = before.sleeps;
  const std::uint64_t naps = before.naps;
  bench.run({}, 500_ms);
  fmt::print("idle for 500 ms: {} sleeps, {} naps\n", before.sleeps - sleeps, before.naps - naps);
  if (!has("interrupts")) return;
  EXPECT_GT(before.sleeps, sleeps);
  EXPECT_LT(before.naps - naps, 1000);
}

TEST_F(NicTest, closed_port__can_be_opened_again) {
  for (int round = 0; round < 3; ++round) {
    const Port left(*eal(), config_for(nics()[0], {}));
    EXPECT_THROW(Port(*eal(), config_for(nics()[0], {})), RunError);
  }
  Bench bench(*eal(), nics(), {});
  EXPECT_EQ(transfer(bench, 20, 20'000), "");
}

/// Memory of whole pages.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : size_(bytes),
        begin_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Pages() { munmap(begin_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), size_}; }

 private:
  std::size_t size_;
  void* begin_;
};

/// What a NIC reads where it lies, or not, by what docs/ports.md says of it.
TEST_F(NicTest, registered_memory__is_read_by_the_nic) {
  constexpr std::size_t kSize = 64 * 1024;
  Bench bench(*eal(), nics(), {});
  ASSERT_TRUE(bench.wait_for_link());
  const Pages pages(kSize);
  const std::vector<std::byte> wanted = message(0, kSize);
  std::copy(wanted.begin(), wanted.end(), pages.bytes().begin());
  const std::array<DmaDevice*, 1> devices{&bench.left.dma()};
  std::unique_ptr<RegisteredMemory> registered;
  try {
    registered = std::make_unique<RegisteredMemory>(pages.bytes(), devices);
  } catch (const RunError& error) {
    EXPECT_FALSE(has("vfio")) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("physical addresses"));
    return;
  }
  EXPECT_TRUE(has("vfio"));
  class Sender final : public Pollable {
   public:
    Sender(PortIo& io, Address to, std::span<const std::byte> bytes)
        : shard_(io, {.seed = 7}), to_(to), bytes_(bytes) {}
    Nanos poll(Nanos now) override {
      if (connection_ == 0) {
        connection_ = shard_.connect(to_, {}, now);
        shard_.send(connection_, bytes_, 0);
      }
      const Nanos due = shard_.poll(now);
      std::array<Completion, 16> completions;
      for (std::size_t i = 0, n = shard_.take_completions(completions); i < n; ++i)
        sent = sent || completions[i].kind == Completion::Kind::sent;
      return due;
    }
    bool sent = false;

   private:
    Shard shard_;
    Address to_;
    std::span<const std::byte> bytes_;
    ConnectionId connection_ = 0;
  };
  Sender sender(bench.here.io(), bench.to, pages.bytes());
  Server server(bench.there.io(), 1, kSize);
  bench.loop.attach(bench.here.io(), sender);
  bench.loop.attach(bench.there.io(), server);
  EXPECT_TRUE(bench.run([&] { return sender.sent && server.is_done(); }));
  EXPECT_EQ(server.wrong, 0);
  fmt::print("{} packets by reference\n", bench.here.io().counters().by_reference);
  EXPECT_EQ(bench.here.io().counters().by_reference > 0, bench.left.sends_by_reference());
  bench.here.io().release();
}

TEST_F(NicTest, link_that_goes_and_comes__is_told_and_survived) {
  for (const bool interrupts : {false, true}) {
    SCOPED_TRACE(interrupts ? "with interrupts" : "without interrupts");
    constexpr std::size_t kCount = 4000;
    Bench bench(*eal(), nics(), {.interrupts = interrupts});
    ASSERT_TRUE(bench.wait_for_link());
    EXPECT_EQ(bench.right.why_link_is_down(), "");
    Client client(bench.here.io(), bench.to, kCount, 2000);
    Server server(bench.there.io(), kCount, 2000);
    bench.loop.attach(bench.here.io(), client);
    bench.loop.attach(bench.there.io(), server);
    ASSERT_TRUE(bench.run([&] { return server.received >= 20; }));
    ASSERT_TRUE(monitor("set_link nic1 off"));
    EXPECT_TRUE(bench.run([&] { return !bench.right.link().up; }, 5_s));
    EXPECT_THAT(bench.right.why_link_is_down(), HasSubstr("its link is down; see its cable"));
    const std::size_t before = server.received;
    bench.run({}, 300_ms);
    fmt::print("{} of {} before the cut\n", before, kCount);
    EXPECT_LT(before, kCount);
    EXPECT_EQ(server.received, before);
    ASSERT_TRUE(monitor("set_link nic1 on"));
    EXPECT_TRUE(bench.run([&] { return bench.right.link().up; }, 10_s));
    EXPECT_TRUE(bench.run([&] { return client.is_done() && server.is_done(); }));
    EXPECT_EQ(client.unsent, 0);
    EXPECT_EQ(server.wrong, 0);
  }
}

/// The last one: there is no NIC any more.
TEST_F(NicTest, zz_nic_that_is_unplugged__loses_its_link_and_lets_go) {
  auto bench = std::make_unique<Bench>(*eal(), nics(), Wish{});
  ASSERT_TRUE(bench->wait_for_link());
  Client client(bench->here.io(), bench->to, 100'000, 2000);
  Server server(bench->there.io(), 100'000, 2000);
  bench->loop.attach(bench->here.io(), client);
  bench->loop.attach(bench->there.io(), server);
  ASSERT_TRUE(bench->run([&] { return server.received >= 20; }));
  ASSERT_TRUE(monitor("device_del nic1"));
  if (has("vfio")) {
    EXPECT_TRUE(bench->run([&] { return !bench->right.link().up; }, 15_s));
    EXPECT_THAT(bench->right.why_link_is_down(), HasSubstr("NIC " + nics()[1] + " is to be unplugged"));
    EXPECT_TRUE(bench->left.link().up);
  }
  bench->run({}, 1_s);  // whether it is there or not
  bench.reset();
  const auto is_there = [] { return access(("/sys/bus/pci/devices/" + nics()[1]).c_str(), F_OK) == 0; };
  for (int i = 0; i < 500 && is_there(); ++i) usleep(20'000);
  EXPECT_FALSE(is_there());
  try {
    const Port port(*eal(), config_for(nics()[1], {}));
    FAIL() << "it is still a port";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no PCI device " + nics()[1]));
  }
}

}  // namespace
}  // namespace mltcp::dpdk
