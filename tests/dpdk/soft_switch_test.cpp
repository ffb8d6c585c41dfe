// Tests lab/realtime/soft_switch.cpp. Tests over ring ports, in virtual time, check frames behind the switch, and
// hostile frames. Tests over af_packet and af_xdp ports between network namespaces, in real time, use the kernel's TCP
// with a rate limit and marks, and a port that vanishes. The real-time tests are skipped if namespaces cannot be
// created.
#include "mltcp/lab/realtime/soft_switch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <fstream>
#include <sstream>

#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "ring_fixture.h"

namespace mltcp::dpdk {

using namespace realtime;  // NOLINT(google-build-using-namespace): the tests use most of this namespace
namespace {

using namespace mltcp::literals;

using Bursts = std::vector<ByteVector>;

constexpr std::uint32_t kLongest = 1514;

encap::MacAddress mac(std::uint8_t number) { return {2, 0, 0, 0, 0, number}; }
constexpr encap::MacAddress kEverybody{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

/// Returns a UDP packet in a frame of `bytes` bytes.
ByteVector frame(const encap::MacAddress& from, const encap::MacAddress& to, std::size_t bytes,
                 Ecn ecn = Ecn::not_ect) {
  encap::Headers headers;
  headers.source_mac = from;
  headers.destination_mac = to;
  headers.source = Address::v4(0x0A000001, 1);
  headers.destination = Address::v4(0x0A000002, 2);
  headers.ecn = ecn;
  const ByteVector payload = random_bytes(bytes - encap::kIpv4OverheadBytes, bytes);
  ByteVector result(encap::kIpv4OverheadBytes);
  encap::write_headers(headers, payload.size(), encap::sum(payload.data(), payload.size()), result.data());
  result.insert(result.end(), payload.begin(), payload.end());
  return result;
}

/// A switch with ring ports. The test holds the far ends of the rings.
class RingSwitch : public testing::Test {
 protected:
  struct End {
    explicit End(const std::string& name, const PacketPool& pool, std::uint32_t slots)
        : to_switch(name + "s", 4096),
          to_host(name + "h", slots),
          bridge(name + "b", to_switch, to_host, pool),
          host(name + "e", to_host, to_switch, pool) {}
    PacketRing to_switch;
    PacketRing to_host;
    RingPort bridge;
    RingPort host;
  };

  void SetUp() override {
    std::string reason;
    eal_ = shared_eal(reason);
    if (eal_ == nullptr) GTEST_SKIP() << reason;
    static int instances = 0;
    name_ = fmt::format("t{}", instances++);
    pool_ = std::make_unique<PacketPool>(name_, 16000, 2000);
  }
  void TearDown() override {
    if (pool_ == nullptr) return;
    bridge_.reset();
    ends_.clear();
    EXPECT_EQ(pool_->in_use(), 0U) << "frames have leaked";
  }

  void make(std::vector<fabric::SwitchPortConfig> configs, std::uint32_t slots = 4096) {
    std::vector<SoftSwitchPort> ports;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      ends_.push_back(std::make_unique<End>(fmt::format("{}p{}", name_, i), *pool_, slots));
      ports.push_back({ends_.back()->bridge.id(), kLongest, configs[i], nullptr});
    }
    bridge_ = std::make_unique<SoftSwitch>(*eal_, ports);
  }
  static fabric::SwitchPortConfig gigabit() {
    fabric::SwitchPortConfig config;
    config.output.rate = Rate(1'000'000'000);
    config.output.buffer_bytes = 0;
    return config;
  }

  void put(std::size_t port, std::span<const std::byte> bytes) {
    rte_mbuf* packet = rte_pktmbuf_alloc(pool_->get());
    ASSERT_NE(packet, nullptr);
    if (!bytes.empty()) std::memcpy(rte_pktmbuf_mtod(packet, void*), bytes.data(), bytes.size());
    packet->data_len = static_cast<std::uint16_t>(bytes.size());
    packet->pkt_len = packet->data_len;
    ASSERT_EQ(rte_eth_tx_burst(ends_[port]->host.id(), 0, &packet, 1), 1);
  }
  std::vector<ByteVector> got(std::size_t port) {
    std::vector<ByteVector> frames;
    rte_mbuf* packet = nullptr;
    while (rte_eth_rx_burst(ends_[port]->host.id(), 0, &packet, 1) == 1) {
      const auto* bytes = rte_pktmbuf_mtod(packet, const std::byte*);
      frames.emplace_back(bytes, bytes + packet->data_len);
      rte_pktmbuf_free(packet);
    }
    return frames;
  }
  /// Runs the switch up to the time `until`, in steps of 10 us.
  void run(Nanos until) {
    for (; now_ <= until; now_ += 10_us) bridge_->step(now_);
  }

  const Eal* eal_ = nullptr;
  std::string name_;
  std::unique_ptr<PacketPool> pool_;
  std::vector<std::unique_ptr<End>> ends_;
  std::unique_ptr<SoftSwitch> bridge_;
  Nanos now_;
};

TEST_F(RingSwitch, floods_and_then_knows__bytes_unchanged) {
  make({gigabit(), gigabit(), gigabit()});
  const auto hello = frame(mac(1), kEverybody, 60);
  const auto answer = frame(mac(2), mac(1), 1514, Ecn::ect0);
  put(0, hello);
  run(1_ms);
  EXPECT_EQ(got(1), Bursts{hello});
  EXPECT_EQ(got(2), Bursts{hello});
  put(1, answer);
  run(2_ms);
  EXPECT_EQ(got(0), Bursts{answer});
  EXPECT_TRUE(got(2).empty());
  EXPECT_EQ(bridge_->counters(0).sent_frames, 1U);
  EXPECT_EQ(bridge_->counters(0).sent_bytes, 1514U);
  EXPECT_EQ(bridge_->copies_in_use(), 0U);
}

TEST_F(RingSwitch, marks__are_on_the_copy_of_one_port_with_a_right_checksum) {
  auto marking = gigabit();
  marking.output.ecn = {true, 2000, 2000, 1.0};
  make({gigabit(), marking, gigabit()});
  const auto plain = frame(mac(1), kEverybody, 1000);
  const auto capable = frame(mac(1), kEverybody, 1000, Ecn::ect1);
  const auto marked = frame(mac(1), kEverybody, 1000, Ecn::ce);
  for (int i = 0; i < 4; ++i) {
    put(0, plain);
    put(0, capable);
  }
  run(1_ms);
  // The frames find 0, 1000, 2000, ... bytes in the queue. From the fourth frame on, the switch marks every frame that
  // supports ECN.
  EXPECT_EQ(got(1), (Bursts{plain, capable, plain, marked, plain, marked, plain, marked}));
  EXPECT_EQ(got(2), (Bursts{plain, capable, plain, capable, plain, capable, plain, capable}));
  EXPECT_EQ(bridge_->bridge().output(1).counters().marked_packets, 3U);
}

TEST_F(RingSwitch, damage__is_one_bit_of_one_copy) {
  auto faulty = gigabit();
  faulty.output.faults.corruption = 1;
  faulty.output.faults.duplication = 1;
  make({gigabit(), faulty, gigabit()});
  const auto sent = frame(mac(1), kEverybody, 200);
  put(0, sent);
  run(1_ms);
  EXPECT_EQ(got(2), Bursts{sent});
  const auto arrived = got(1);
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(arrived[1], sent) << "a duplicate is a copy from before the damage";
  int bits = 0;
  for (std::size_t i = 0; i < sent.size(); ++i)
    bits += std::popcount(std::to_integer<unsigned>(arrived[0][i] ^ sent[i]));
  EXPECT_EQ(bits, 1);
}

TEST_F(RingSwitch, rate__is_that_of_the_output_however_long_a_round_takes) {
  auto slow = gigabit();
  slow.output.rate = Rate(100'000'000);  // a frame of 1000 bytes takes 80 us
  slow.output.delay = 500_us;
  make({gigabit(), slow});
  for (int i = 0; i < 100; ++i) put(0, frame(mac(1), mac(2), 1000));
  bridge_->step(0_us);
  EXPECT_EQ(bridge_->step(10_us), 80_us) << "when the first has left the queue";
  bridge_->step(500_us + 80_us * 50);
  EXPECT_EQ(got(1).size(), 50U);
  bridge_->step(500_us + 80_us * 100 - 1_ns);
  EXPECT_EQ(got(1).size(), 49U);
  EXPECT_EQ(bridge_->step(500_us + 80_us * 100), Nanos::never());
  EXPECT_EQ(got(1).size(), 1U);
}

TEST_F(RingSwitch, frames_of_a_stall__count_as_if_they_had_come_evenly) {
  auto small = gigabit();
  small.output.buffer_bytes = 4000;
  make({gigabit(), small, gigabit()});
  // A frame takes 8 us at the output's rate. 500 frames arrive on two ports within 4 ms, and the switch handles them in
  // one round.
  bridge_->step(0_us);
  for (int i = 0; i < 250; ++i) {
    put(0, frame(mac(1), mac(2), 1000));
    put(2, frame(mac(3), mac(2), 1000));
  }
  bridge_->step(4_ms);
  EXPECT_EQ(bridge_->bridge().output(1).counters().dropped_packets, 0U);
  EXPECT_LE(bridge_->bridge().output(1).counters().max_queue_bytes, 2000U);
  // Frames that arrive without time between them are a burst.
  run(5_ms);
  bridge_->step(now_);
  got(1);
  for (int i = 0; i < 500; ++i) put(0, frame(mac(1), mac(2), 1000));
  bridge_->step(now_);
  EXPECT_EQ(bridge_->bridge().output(1).counters().dropped_packets, 496U) << "four have room";
}

TEST_F(RingSwitch, hostile_frames__are_counted_and_do_no_harm) {
  make({gigabit(), gigabit()});
  for (std::size_t size = 0; size < 14; ++size) put(0, random_bytes(size, size));
  run(1_ms);
  EXPECT_EQ(bridge_->counters(0).runts, 14U);
  auto bad = frame(mac(1), kEverybody, 100);
  bad[6] = std::byte{0xFF};
  put(0, bad);
  put(0, ByteVector(kLongest + 9, std::byte{2}));
  ByteVector tagged(kLongest + 8, std::byte{2});  // the longest frame the switch accepts, with two tags
  tagged[0] = std::byte{4};
  put(0, tagged);
  auto wrong = frame(mac(1), kEverybody, 100);
  wrong[16] = std::byte{0xFF};
  put(0, wrong);
  run(2_ms);
  EXPECT_EQ(bridge_->counters(0).bad_sources, 1U);
  EXPECT_EQ(bridge_->counters(0).oversized, 1U);
  EXPECT_EQ(bridge_->counters(0).cut_short, 1U);
  EXPECT_EQ(got(1).size(), 1U);
  Random random(3);
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    put(0, random_bytes(random.below(1800), random.next()));
    run(now_ + 20_us);
    got(1);
    got(0);
  }
  run(now_ + 1_s);
  const SoftSwitchCounters& in = bridge_->counters(0);
  EXPECT_EQ(in.runts + in.bad_sources + in.cut_short + in.oversized + bridge_->bridge().counters(0).received_frames,
            count + 18);
  EXPECT_GT(in.bad_sources, count / 4);
}

TEST_F(RingSwitch, jumbo_frame__is_dropped_where_it_does_not_fit) {
  ends_.push_back(std::make_unique<End>(name_ + "a", *pool_, 256));
  ends_.push_back(std::make_unique<End>(name_ + "b", *pool_, 256));
  bridge_ = std::make_unique<SoftSwitch>(
      *eal_, std::vector<SoftSwitchPort>{{ends_[0]->bridge.id(), 1900, gigabit(), nullptr},
                                         {ends_[1]->bridge.id(), kLongest, gigabit(), nullptr}});
  put(0, frame(mac(1), mac(2), 1800));
  put(0, frame(mac(1), mac(2), 1500));
  run(1_ms);
  EXPECT_EQ(got(1).size(), 1U);
  EXPECT_EQ(bridge_->counters(1).too_long, 1U);
}

TEST_F(RingSwitch, port_that_takes_no_more__holds_some_and_drops_the_rest) {
  make({gigabit(), gigabit()}, 64);
  for (int i = 0; i < 2000; ++i) put(0, frame(mac(1), mac(2), 100));
  run(10_ms);
  EXPECT_EQ(bridge_->counters(1).sent_frames, 63U);
  EXPECT_EQ(bridge_->counters(1).transmit_full, 2000U - 63 - 1024);
  std::size_t arrived = 0;
  for (int i = 0; i < 40; ++i) {
    arrived += got(1).size();
    run(now_ + 10_us);
  }
  EXPECT_EQ(arrived, 63U + 1024) << "what waited follows when the port takes frames again";
}

TEST_F(RingSwitch, checksums_left_to_a_nic__are_noticed_and_passed_on) {
  make({gigabit(), gigabit()});
  auto unfinished = frame(mac(1), mac(2), 100);
  unfinished[41] ^= std::byte{1};
  put(0, unfinished);
  put(0, frame(mac(1), mac(2), 100));
  run(1_ms);
  EXPECT_EQ(bridge_->counters(0).bad_checksums, 1U);
  EXPECT_EQ(got(1).size(), 2U);
}

TEST_F(RingSwitch, frames_inside__are_given_back_at_the_end) {
  auto far = gigabit();
  far.output.buffer_bytes = 1'000'000;
  far.output.delay = 10_ms;
  far.output.faults.duplication = 0.5;
  make({gigabit(), far, far});
  for (int i = 0; i < 500; ++i) put(0, frame(mac(1), kEverybody, 100));
  run(1_ms);
  EXPECT_GT(bridge_->copies_in_use(), 500U);
  // TearDown() checks that the original frames have returned to their pool.
}

// ---- Namespaces ----

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c)
}

/// Hosts 1 to 3. Each host is a network namespace with one end of a veth pair; the other end is in the namespace of the
/// test. A separate process holds each namespace. All namespaces are removed when the test's process ends, whatever the
/// reason.
class Hosts {
 public:
  static constexpr int count = 3;

  Hosts() {
    for (int host = 1; host <= count; ++host) {
      keep_namespace(host);
      ready = ready && keeper(host) > 0 &&
              shell(fmt::format("ip link add {} type veth peer name eth0 netns {}", interface(host), keeper(host))) &&
              shell(fmt::format("echo 1 > /proc/sys/net/ipv6/conf/{}/disable_ipv6; ip link set {} up", interface(host),
                                interface(host))) &&
              shell(fmt::format("nsenter --net={1} sh -c 'ip addr add 10.78.0.{0}/24 dev eth0 && "
                                "ip addr add fd78::{0}/64 dev eth0 nodad && ip link set lo up && ip link set eth0 up'",
                                host, path(host)));
    }
  }
  ~Hosts() {
    for (int host = 1; host <= count; ++host) {
      shell("ip link del " + interface(host));
      if (keeper(host) <= 0) continue;
      kill(keeper(host), SIGKILL);
      waitpid(keeper(host), nullptr, 0);
    }
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  [[nodiscard]] std::string path(int host) const { return fmt::format("/proc/{}/ns/net", keeper(host)); }
  [[nodiscard]] std::string interface(int host) const { return fmt::format("ms{}-{}", getpid(), host); }

  bool ready = true;

 private:
  [[nodiscard]] pid_t keeper(int host) const { return keepers_[static_cast<std::size_t>(host)]; }
  void keep_namespace(int host) {
    int ends[2];
    if (pipe(ends) != 0) return;
    const pid_t parent = getpid();
    keepers_[static_cast<std::size_t>(host)] = fork();
    if (keeper(host) == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() == parent && unshare(CLONE_NEWNET) == 0 && write(ends[1], "k", 1) == 1)
        for (;;) pause();
      _exit(1);
    }
    close(ends[1]);
    char made = 0;
    ready = ready && read(ends[0], &made, 1) == 1;
    close(ends[0]);
  }

  std::array<pid_t, count + 1> keepers_{};
};

/// Runs `work` in a separate process in a namespace. A pipe transfers the result.
class InNamespace {
 public:
  /// `path` is the file of the namespace.
  InNamespace(const std::string& path, const std::function<std::uint64_t()>& work) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      alarm(60);
      const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      const std::uint64_t found = file >= 0 && setns(file, CLONE_NEWNET) == 0 ? work() : 0;
      _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
    }
    close(ends[1]);
    result_ = ends[0];
    fcntl(result_, F_SETFL, O_NONBLOCK);
  }
  ~InNamespace() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(result_);
  }
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

  bool done() {
    if (!ended_) ended_ = read(result_, &result, sizeof result) >= 0;  // read() returns 0 if the process died
    return ended_;
  }

  std::uint64_t result = 0;

 private:
  pid_t pid_ = -1;
  int result_ = -1;
  bool ended_ = false;
};

/// Has the same effect as `ethtool -K eth0 tx off tso off gso off`.
void switch_offloads_off() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  for (const unsigned command : {unsigned{ETHTOOL_STSO}, unsigned{ETHTOOL_SGSO}, unsigned{ETHTOOL_STXCSUM}}) {
    ethtool_value value{command, 0};
    ifreq request{};
    std::strcpy(static_cast<char*>(request.ifr_name), "eth0");
    request.ifr_data = std::bit_cast<char*>(&value);
    ioctl(socket, SIOCETHTOOL, &request);
  }
  close(socket);
}

/// Enables ECN without fallback. With fallback, the kernel would repeat a SYN without ECN if a busy machine delays it.
void use_ecn() {
  std::ofstream("/proc/sys/net/ipv4/tcp_ecn") << 1;
  std::ofstream("/proc/sys/net/ipv4/tcp_ecn_fallback") << 0;
}

/// Returns the number of received IPv4 and IPv6 packets with the mark "congestion experienced".
std::uint64_t ce_packets() {
  std::uint64_t total = 0;
  std::ifstream v4("/proc/self/net/netstat");
  std::string names;
  std::string values;
  while (std::getline(v4, names) && std::getline(v4, values)) {
    std::istringstream name_words(names);
    std::istringstream value_words(values);
    std::string name;
    std::string value;
    while (name_words >> name && value_words >> value)
      if (name == "InCEPkts") total += std::stoull(value);
  }
  std::ifstream v6("/proc/self/net/snmp6");
  std::string name;
  std::string value;
  while (v6 >> name >> value)
    if (name == "Ip6InCEPkts") total += std::stoull(value);
  return total;
}

sockaddr_in6 address_of(const char* text) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(5001);
  inet_pton(AF_INET6, text, &address.sin6_addr);
  return address;
}

/// Returns the number of bytes of one connection in the upper 32 bits, and the number of marked packets in the lower 32
/// bits.
std::uint64_t receive_all() {
  switch_offloads_off();
  use_ecn();
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  const sockaddr_in6 address = address_of("::");
  const auto* generic = std::bit_cast<const sockaddr*>(&address);
  if (bind(listener, generic, sizeof address) != 0 || listen(listener, 1) != 0) return 0;
  const int connection = accept(listener, nullptr, nullptr);
  std::vector<char> buffer(1 << 16);
  std::uint64_t total = 0;
  for (ssize_t count = 0; (count = read(connection, buffer.data(), buffer.size())) > 0;)
    total += static_cast<std::uint64_t>(count);
  return total << 32 | ce_packets();
}

std::uint64_t send_all(const char* to, std::size_t bytes) {
  switch_offloads_off();
  use_ecn();
  const sockaddr_in6 address = address_of(to);
  const auto* generic = std::bit_cast<const sockaddr*>(&address);
  int connection = -1;
  // The sender tries several times, because the receiver may not be listening yet.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    connection = socket(AF_INET6, SOCK_STREAM, 0);
    if (connect(connection, generic, sizeof address) == 0) break;
    close(connection);
    usleep(10'000);
  }
  const std::vector<char> data(bytes, 'x');
  std::size_t sent = 0;
  while (sent < bytes) {
    const ssize_t count = write(connection, data.data() + sent, bytes - sent);
    if (count <= 0) return 0;
    sent += static_cast<std::size_t>(count);
  }
  shutdown(connection, SHUT_WR);
  char end = 0;
  return read(connection, &end, 1) == 0 ? 1 : 0;  // waits until the receiver has read all bytes
}

struct Ends {
  const char* kind;  ///< kind of the switch's ports
  const char* to;    ///< IP address of the second host
};

class NamespaceSwitch : public testing::TestWithParam<Ends> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    std::string reason;
    eal_ = shared_eal(reason);
    if (eal_ == nullptr) GTEST_SKIP() << reason;
    hosts_ = std::make_unique<Hosts>();
    if (!hosts_->ready) GTEST_SKIP() << "this machine makes no network namespaces (unshare -n)";
    const int xdp = socket(AF_XDP, SOCK_RAW, 0);
    if (xdp >= 0) close(xdp);
    if (xdp < 0 && GetParam().kind == std::string("af_xdp")) GTEST_SKIP() << "this kernel or user has no AF_XDP";
    std::vector<SoftSwitchPort> ports;
    for (int host = 1; host <= Hosts::count; ++host) {
      PortConfig config;
      config.device = fmt::format("{}:{}", GetParam().kind, hosts_->interface(host));
      config.promiscuous = true;
      config.interrupts = true;
      config.spare_buffers = GetParam().kind == std::string("af_xdp") ? 2048 : 4096;
      Port& port = *ports_.emplace_back(std::make_unique<Port>(*eal_, config));
      EXPECT_TRUE(port.has_interrupts());
      ports.push_back({port.id(),
                       port.frame_bytes(),
                       {},
                       [&port] { return port.link().up; },
                       port.has_interrupts(),
                       port.receive_file(0)});
      ports.back().config.output.rate = host == 2 ? kRate : Rate(1'000'000'000'000'000);
    }
    ports[1].config.output.buffer_bytes = 75'000;
    ports[1].config.output.ecn = {true, 3'000, 3'000, 1.0};
    bridge_ = std::make_unique<SoftSwitch>(*eal_, ports, SoftSwitchOptions{SwitchIdle::sleep, {}});
  }

  /// The rate is so low that the kernel's window builds a queue even if the machine delays the switch by 20 ms at a
  /// time.
  static constexpr Rate kRate{10'000'000};
  const Eal* eal_ = nullptr;
  std::unique_ptr<Hosts> hosts_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::unique_ptr<SoftSwitch> bridge_;
};

TEST_P(NamespaceSwitch, tcp_of_the_kernel__passes_at_the_rate_and_sees_every_mark) {
  constexpr std::size_t bytes = 1'000'000;
  InNamespace receiver(hosts_->path(2), receive_all);
  InNamespace sender(hosts_->path(1), [] { return send_all(GetParam().to, bytes); });
  const Nanos begun = bridge_->now();
  bridge_->run(bridge_->now() + 60_s, [&] { return receiver.done() && sender.done(); });
  const Nanos taken = bridge_->now() - begun;
  ASSERT_TRUE(receiver.done() && sender.done()) << "the transfer did not end";
  EXPECT_EQ(sender.result, 1U);
  EXPECT_EQ(receiver.result >> 32, bytes);
  const SoftSwitchCounters& out = bridge_->counters(1);
  const fabric::LinkCounters& link = bridge_->bridge().output(1).counters();
  EXPECT_LE(out.sent_bytes, kRate.bytes_in(taken));
  EXPECT_GT(out.sent_bytes, bytes);
  RecordProperty("megabits_per_second",
                 fmt::format("{:.1f}", static_cast<double>(out.sent_bytes) * 8e-6 / taken.seconds()));
  EXPECT_GT(link.marked_packets, 0U);
  EXPECT_EQ(receiver.result & 0xFFFFFFFF, link.marked_packets);
  // The queue drains in 60 ms, so the switch sleeps for short times while frames wait. Without sleep, a round takes a
  // microsecond.
  EXPECT_GT(bridge_->loop().slept * 2, taken);
  EXPECT_EQ(bridge_->counters(0).bad_checksums, 0U);
  EXPECT_EQ(bridge_->counters(0).cut_short + bridge_->counters(0).oversized, 0U);
  EXPECT_LT(bridge_->counters(2).sent_frames, 200U) << "only what is flooded reaches the third host";
}

TEST_P(NamespaceSwitch, port_that_vanishes__is_left_out_and_the_others_go_on) {
  shell("ip link del " + hosts_->interface(3));
  InNamespace receiver(hosts_->path(2), receive_all);
  InNamespace sender(hosts_->path(1), [] { return send_all(GetParam().to, 200'000); });
  bridge_->run(bridge_->now() + 60_s, [&] { return receiver.done() && sender.done(); });
  EXPECT_EQ(sender.result, 1U);
  EXPECT_EQ(receiver.result >> 32, 200'000U);
  EXPECT_FALSE(bridge_->bridge().is_up(2));
  EXPECT_TRUE(bridge_->bridge().is_up(1));
  EXPECT_EQ(bridge_->counters(2).link_changes, 1U);
}

INSTANTIATE_TEST_SUITE_P(Tcp, NamespaceSwitch,
                         testing::Values(Ends{"af_packet", "::ffff:10.78.0.2"}, Ends{"af_packet", "fd78::2"},
                                         Ends{"af_xdp", "::ffff:10.78.0.2"}, Ends{"af_xdp", "fd78::2"}),
                         [](const auto& one) {
                           return fmt::format("{}_v{}", one.param.kind, one.param.to[0] == ':' ? 4 : 6);
                         });

}  // namespace
}  // namespace mltcp::dpdk
