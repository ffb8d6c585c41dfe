// Tests two connected NICs on the PCI bus, driven by DPDK in one process. Runs in a guest (tests/guest/nics_test.py),
// whose command "monitor" cuts the link and unplugs the NICs nic0 and nic1. MLTCP_NICS contains the PCI addresses, for
// example "0000:01:00.0 0000:02:00.0". MLTCP_NIC_TRAITS contains the traits of this kind of NIC.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "../dpdk/port_stations.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {
namespace {

using namespace mltcp::literals;
using namespace port_stations;

/// A long limit, because QEMU may interpret the guest's processors on a busy machine.
constexpr Nanos kLongPatience = 60_s;

std::vector<std::string> words_of(const char* variable) {
  const char* const text = std::getenv(variable);
  std::istringstream stream(text == nullptr ? "" : text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Returns whether this kind of NIC has the trait: "queues" (four), "two_queues", "rss", "interrupts", "jumbo",
/// "checksums", "vfio", or "wide" (an IOMMU that accepts all addresses of a process).
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
    options.memory_mb = 96;
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

/// Settings with which a test opens a port.
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

/// Opens both ports, with one host on each port. One loop drives both hosts.
struct Bench {
  Bench(const Eal& eal, const std::vector<std::string>& nics, const Wish& wish) : Bench(eal, nics, wish, wish) {}
  Bench(const Eal& eal, const std::vector<std::string>& nics, const Wish& of_left, const Wish& of_right)
      : left(eal, config_for(nics[0], of_left)),
        right(eal, config_for(nics[1], of_right)),
        here(eal, left, {.address = host(1, of_left.v6)}),
        there(eal, right, {.address = host(2, of_right.v6)}),
        loop(eal.time(), of_left.idle) {}

  bool run(const std::function<bool()>& done, Nanos patience = kLongPatience) {
    return loop.run(loop.now() + patience, done);
  }
  bool wait_for_link() {
    return run([this] { return left.link().up && right.link().up; });
  }
  /// Lets shard `shard` of the left host send `count` messages of `size` bytes to the shard with the same number on the
  /// right host.
  void send(std::size_t count, std::size_t size, std::uint16_t shard = 0, ConnectionConfig config = {}) {
    clients.push_back(
        std::make_unique<Client>(here.io(shard), there.io(shard).address(), count, size, std::move(config)));
    loop.attach(here.io(shard), *clients.back());
    receive(count, size, shard);
  }
  void receive(std::size_t count, std::size_t size, std::uint16_t shard = 0) {
    servers.push_back(std::make_unique<Server>(there.io(shard), count, size));
    loop.attach(there.io(shard), *servers.back());
  }
  /// Runs until all messages have arrived. Returns the error, or "" if there is none.
  std::string finish() {
    const bool done = run([this] {
      return std::ranges::all_of(clients, [](const auto& one) { return one->is_done(); }) &&
             std::ranges::all_of(servers, [](const auto& one) { return one->is_done(); });
    });
    std::string wrong;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (!done || clients[i]->unsent != 0 || servers[i]->wrong != 0)
        wrong += fmt::format("{}: {} sent, {} not, {} received, {} of them wrong; ", i, clients[i]->sent,
                             clients[i]->unsent, servers[i]->received, servers[i]->wrong);
    }
    if (rejected() != 0) wrong += fmt::format("{} frames were refused; ", rejected());
    if (!wrong.empty()) print_counters();
    return wrong;
  }
  /// Prints the packet counters, which help to find the cause of an error.
  void print_counters() const {
    for (const PortHost* place : {&here, &there}) {
      for (std::uint16_t shard = 0; shard < place->shards(); ++shard) {
        const PortIoCounters& c = place->io(shard).counters();
        fmt::print(
            "{} shard {}: sent {}, received {}, port full {}, no buffer {}, waited {}, unreachable {}, handed over "
            "{}, taken over {}, handover full {}, rejected {}, blocked {}\n",
            place->port().name(), shard, c.sent_packets, c.received_packets, c.port_full, c.no_buffer, c.waited,
            c.unreachable, c.handed_over, c.taken_over, c.handover_full, total(c.rejected),
            place->io(shard).is_blocked());
      }
      for (const auto& [name, value] : place->port().statistics()) {
        if (value != 0) fmt::print("{}: {} {}\n", place->port().name(), name, value);
      }
    }
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
  PollLoop loop;
  // The loop polls the clients and servers whenever it runs.
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Server>> servers;
};

/// Sends `count` messages from the left to the right host and compares each byte. Returns the error, or "".
std::string transfer(Bench& bench, std::size_t count, std::size_t size) {
  if (!bench.wait_for_link()) return "no link";
  bench.send(count, size);
  return bench.finish();
}

TEST_F(NicTest, messages__arrive) {
  Bench bench(*eal(), nics(), {});
  fmt::print("{}; steering {}; by reference: {}\n", bench.left.description(), static_cast<int>(bench.left.steering()),
             bench.left.sends_by_reference());
  EXPECT_TRUE(bench.left.reads_by_dma());
  EXPECT_EQ(transfer(bench, 40, 20'000), "");
  const Port::OffloadsInUse& sends = bench.left.offloads();
  const Port::OffloadsInUse& receives = bench.right.offloads();
  fmt::print("sends checksums of IP: {}, of UDP: {}; looks at those of IP: {}, of UDP: {}\n", sends.send_ip_checksum,
             sends.send_udp_checksum, receives.receive_ip_checksum, receives.receive_udp_checksum);
  EXPECT_EQ(sends.send_ip_checksum && sends.send_udp_checksum, has("checksums"));
  EXPECT_EQ(receives.receive_ip_checksum && receives.receive_udp_checksum, has("checksums"));
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
  Bench bench(*eal(), nics(), {.offloads = {false, false, false}}, {});
  EXPECT_EQ(transfer(bench, 50, 20'000), "");
}

TEST_F(NicTest, packets_of_a_vlan__arrive_and_others_do_not) {
  {
    Bench bench(*eal(), nics(), {.vlan = 5});
    EXPECT_EQ(transfer(bench, 50, 20'000), "");
  }
  Bench bench(*eal(), nics(), {.vlan = 5}, {.vlan = 6});
  ASSERT_TRUE(bench.wait_for_link());
  const auto left = [&] {
    for (const auto& [name, value] : bench.left.statistics())
      if (name == "tx_good_packets") return value;
    return std::uint64_t{0};
  };
  const std::uint64_t before = left();
  bench.send(1, 100);
  ASSERT_TRUE(bench.run([&] { return left() > before; })) << "it does not even ask for its neighbour";
  bench.run([&] { return bench.rejected() >= 1; }, 1500_ms);
  EXPECT_EQ(bench.servers[0]->received, 0);
  fmt::print("{} frames of another VLAN were refused here, others by the NIC\n", bench.rejected());
}

TEST_F(NicTest, jumbo_frames__arrive) {
  if (!has("jumbo")) {
    EXPECT_THROW(Port(*eal(), config_for(nics()[0], {.mtu = 9000})), InputError);
    return;
  }
  Bench bench(*eal(), nics(), {.mtu = 9000});
  EXPECT_EQ(bench.left.mtu(), 9000);
  EXPECT_EQ(transfer(bench, 20, 100'000), "");
  EXPECT_LT(bench.here.io().counters().sent_packets, 400);  // 2 MB in few packets, because the packets are long
}

/// Frames of a host with an MTU of 4000 bytes do not fit into the port's send buffers of 2048 bytes.
TEST_F(NicTest, host_on_short_buffers__is_refused) {
  const auto make = [&] { return Bench(*eal(), nics(), {.mtu = 4000, .buffer_bytes = 2048}); };
  try {
    make();
    FAIL() << "it was not";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                testing::AnyOf(HasSubstr("can't hold a host's frames of 4014"), HasSubstr("can't scatter")));
  }
}

TEST_F(NicTest, several_shards__get_what_is_theirs) {
  // A kind of NIC without the trait "queues" has at most two queues.
  const std::uint16_t queues = has("queues") ? 4 : has("two_queues") ? 2 : 1;
  if (queues < 4) {
    try {
      const Port port(*eal(), config_for(nics()[0], {.queues = static_cast<std::uint16_t>(queues + 1)}));
      FAIL() << "it has more queues";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("has {}; give fewer", queues)));
    }
  }
  if (queues == 1) return;
  constexpr std::size_t kCount = 40;
  // All packets in flight must fit into one queue of 256 packets. After a queue of the tap has been full, QEMU's
  // software RSS never again delivers packets from that queue (docs/reference/ports.md).
  ConnectionConfig config;
  config.max_packets_in_flight = 32;
  Bench bench(*eal(), nics(), {.queues = queues});
  ASSERT_TRUE(bench.wait_for_link());
  for (std::uint16_t i = 0; i < queues; ++i) bench.send(kCount, 20'000, i, config);
  EXPECT_EQ(bench.finish(), "");
  std::uint64_t handed_over = 0;
  std::uint64_t taken_over = 0;
  unsigned busy = 0;
  for (std::uint16_t i = 0; i < queues; ++i) {
    const PortIoCounters& counters = bench.there.io(i).counters();
    EXPECT_GT(counters.received_packets, 0);
    handed_over += counters.handed_over;
    taken_over += counters.taken_over;
    fmt::print("shard {}: {} packets, {} handed over, {} taken over\n", i, counters.received_packets,
               counters.handed_over, counters.taken_over);
    // Counts the queue as busy if the queue itself received packets.
    busy += counters.received_packets + counters.handed_over > counters.taken_over ? 1 : 0;
  }
  fmt::print("steering {}, {} of {} queues heard something\n", static_cast<int>(bench.there.port().steering()), busy,
             queues);
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

/// Memory that consists of whole pages. `place` is the address. If `place` is 0, the kernel chooses an address.
class Pages {
 public:
  explicit Pages(std::size_t bytes, std::uintptr_t place = 0)
      : size_(bytes),
        begin_(mmap(reinterpret_cast<void*>(place), bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Pages() { munmap(begin_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), size_}; }

 private:
  std::size_t size_;
  void* begin_;
};

/// Sends one message directly from the given memory.
class Sender final : public Pollable {
 public:
  Sender(PortIo& io, Address to, std::span<const std::byte> bytes) : shard_(io, {.seed = 7}), to_(to), bytes_(bytes) {}

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

/// Returns the reason why `memory` cannot be registered for direct reads by the NIC, or "" if it can.
std::string why_not_registered(std::span<std::byte> memory, DmaDevice& nic) {
  const std::array<DmaDevice*, 1> devices{&nic};
  try {
    const RegisteredMemory registered(memory, devices);
    return "";
  } catch (const RunError& error) {
    return error.what();
  }
}

/// Tests which memory the NIC reads directly, as docs/reference/ports.md describes.
TEST_F(NicTest, registered_memory__is_read_by_the_nic) {
  constexpr std::size_t kSize = 64 * 1024;
  constexpr std::uintptr_t kWithin39Bits = std::uintptr_t{0x70} << 32;
  Bench bench(*eal(), nics(), {});
  ASSERT_TRUE(bench.wait_for_link());
  DmaDevice& nic = bench.left.dma();
  const Pages anywhere(kSize);
  const std::string refused = why_not_registered(anywhere.bytes(), nic);
  if (!has("vfio")) {
    EXPECT_THAT(refused, HasSubstr("physical addresses"));
    return;
  }
  // With vfio, the address range of the IOMMU decides.
  if (has("wide")) {
    EXPECT_EQ(refused, "");
  } else {
    EXPECT_THAT(refused, HasSubstr("its IOMMU reaches addresses of 39 bits"));
    EXPECT_THAT(refused, HasSubstr("map it below 0x8000000000 with the first argument"));
  }
  const Pages pages(kSize, kWithin39Bits);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(pages.bytes().data()), kWithin39Bits);
  const std::vector<std::byte> wanted = message(0, kSize);
  std::copy(wanted.begin(), wanted.end(), pages.bytes().begin());
  const std::array<DmaDevice*, 1> devices{&nic};
  const RegisteredMemory registered(pages.bytes(), devices);
  Sender sender(bench.here.io(), bench.there.io().address(), pages.bytes());
  bench.loop.attach(bench.here.io(), sender);
  bench.receive(1, kSize);
  EXPECT_TRUE(bench.run([&] { return sender.sent && bench.servers[0]->is_done(); }));
  EXPECT_EQ(bench.servers[0]->wrong, 0);
  fmt::print("{} packets by reference\n", bench.here.io().counters().by_reference);
  EXPECT_EQ(bench.here.io().counters().by_reference > 0, bench.left.sends_by_reference());
  bench.here.io().release();
}

TEST_F(NicTest, link_that_goes_and_comes__is_told_and_survived) {
  for (const bool interrupts : {false, true}) {
    SCOPED_TRACE(interrupts ? "with interrupts" : "without interrupts");
    constexpr std::size_t kCount = 1000;
    Bench bench(*eal(), nics(), {.interrupts = interrupts});
    ASSERT_TRUE(bench.wait_for_link());
    EXPECT_EQ(bench.right.why_link_is_down(), "");
    bench.send(kCount, 2000);
    const Server& server = *bench.servers[0];
    ASSERT_TRUE(bench.run([&] { return server.received >= 20; }));
    ASSERT_TRUE(monitor("set_link nic1 off"));
    EXPECT_TRUE(bench.run([&] { return !bench.right.link().up; }));
    EXPECT_THAT(bench.right.why_link_is_down(), HasSubstr("its link is down; check its cable"));
    bench.run({}, 100_ms);  // lets packets arrive that were sent before the cut
    const std::size_t before = server.received;
    bench.run({}, 300_ms);
    fmt::print("{} of {} before the cut\n", before, kCount);
    EXPECT_LT(before, kCount);
    EXPECT_EQ(server.received, before);
    ASSERT_TRUE(monitor("set_link nic1 on"));
    EXPECT_TRUE(bench.run([&] { return bench.right.link().up; }));
    EXPECT_EQ(bench.finish(), "");
  }
}

/// Sends or receives messages without end.
class Stream final : public Pollable {
 public:
  /// Sends to `to`, or receives if `to` is not given.
  explicit Stream(PortIo& io, std::optional<Address> to = {}) : shard_(io, {.seed = 9}), to_(to) {
    if (!to_) shard_.listen({});
  }

  Nanos poll(Nanos now) override {
    if (to_ && connection_ == 0) {
      ConnectionConfig config;
      config.give_up_after = 3_s;
      connection_ = shard_.connect(*to_, config, now);
      post();
    }
    const Nanos due = shard_.poll(now);
    std::array<Completion, 64> completions;
    const std::size_t count = shard_.take_completions(completions);
    for (const Completion& done : std::span(completions).first(count)) {
      if (done.kind == Completion::Kind::closed) {
        end = done.status;
      } else if (done.kind == Completion::Kind::accepted) {
        connection_ = done.connection;
        post();
      } else if (done.status == Status::ok) {
        ++messages;
        --posted_;
      }
    }
    if (count == 0) return due;
    if (!end) post();
    return now;
  }
  std::size_t messages = 0;
  std::optional<Status> end;

 private:
  static constexpr std::size_t kAtATime = 16;
  void post() {
    if (connection_ == 0) return;
    for (; posted_ < kAtATime; ++posted_) {
      if (to_) {
        shard_.send(connection_, bytes_, 0);
      } else {
        shard_.receive(connection_, bytes_, 0);
      }
    }
  }

  Shard shard_;
  std::optional<Address> to_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(4000);
  std::size_t posted_ = 0;
  ConnectionId connection_ = 0;
};

/// This must be the last test, because it removes the NIC.
TEST_F(NicTest, zz_nic_that_is_unplugged__works_on_or_is_gone) {
  const Port left(*eal(), config_for(nics()[0], {}));
  const PortHost here(*eal(), left, {.address = host(1)});
  auto right = std::make_unique<Port>(*eal(), config_for(nics()[1], {}));
  auto there = std::make_unique<PortHost>(*eal(), *right, PortHostConfig{.address = host(2)});
  Stream client(here.io(), host(2));
  auto server = std::make_unique<Stream>(there->io());
  {
    PollLoop loop(eal()->time(), Idle::pause);
    loop.attach(here.io(), client);
    loop.attach(there->io(), *server);
    const auto run = [&](const std::function<bool()>& done) { return loop.run(loop.now() + kLongPatience, done); };
    ASSERT_TRUE(run([&] { return right->link().up && server->messages >= 20; }));
    ASSERT_TRUE(monitor("device_del nic1"));
    ASSERT_TRUE(run([&] { return !right->link().up; }));
    EXPECT_TRUE(left.link().up);
    const std::size_t before = server->messages;
    fmt::print("{} messages before\n", before);
    if (has("vfio")) {
      EXPECT_THAT(right->why_link_is_down(), HasSubstr("NIC " + nics()[1] + " is being unplugged"));
      EXPECT_TRUE(run([&] { return server->messages >= before + 20; }));
      EXPECT_FALSE(client.end);
    } else {
      EXPECT_TRUE(run([&] { return right->why_link_is_down().find("was unplugged; plug it in") != std::string::npos; }))
          << right->why_link_is_down();
      // Sends packets through the removed NIC, which are lost.
      std::uint8_t number = 100;
      loop.run(loop.now() + 1_s, [&] {
        there->io().resolve(host(number = number < 200 ? number + 1 : 100));
        return right->link().up;
      });
      EXPECT_TRUE(run([&] { return client.end.has_value(); }));
    }
  }
  server.reset();
  there.reset();
  right.reset();
  const auto is_there = [] { return access(("/sys/bus/pci/devices/" + nics()[1]).c_str(), F_OK) == 0; };
  for (int i = 0; i < 3000 && is_there(); ++i) usleep(20'000);
  EXPECT_FALSE(is_there());
  PollLoop loop(eal()->time(), Idle::pause);
  loop.attach(here.io(), client);
  EXPECT_TRUE(loop.run(loop.now() + kLongPatience, [&] { return client.end.has_value(); }));
  EXPECT_EQ(client.end, Status::unreachable);
  try {
    const Port port(*eal(), config_for(nics()[1], {}));
    FAIL() << "it is still a port";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no PCI device " + nics()[1]));
  }
}

}  // namespace
}  // namespace mltcp::dpdk
