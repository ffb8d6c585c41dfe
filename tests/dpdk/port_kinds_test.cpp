// Tests ports of all kinds in one process: behind one switch, and opened and closed in any order while frames are in
// flight.
#include <arpa/inet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/prctl.h>

#include <bit>
#include <chrono>
#include <memory>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/lab/realtime/soft_switch.h"
#include "net_fixture.h"

namespace mltcp::dpdk {

using namespace realtime;  // NOLINT(google-build-using-namespace): the tests use most of this namespace
namespace {

using namespace mltcp::literals;

Address host(unsigned number) { return Address::v4(0x0A090000U + number, 62400); }

bool has_af_xdp() {
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file >= 0) close(file);
  return file >= 0;
}
bool has_tap() { return access("/dev/net/tun", R_OK | W_OK) == 0; }

/// A process that returns every datagram that arrives at UDP port 9000.
class Echo {
 public:
  explicit Echo(const char* address_text) {
    const int file = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9000);
    inet_pton(AF_INET, address_text, &address.sin_addr);
    works = bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    process_ = fork();
    if (process_ != 0) {
      close(file);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      std::array<char, 2048> bytes{};
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto got = recvfrom(file, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) _exit(0);
      sendto(file, bytes.data(), static_cast<std::size_t>(got), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }
  ~Echo() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  bool works = false;

 private:
  pid_t process_ = -1;
};

/// A host behind a memif port and a kernel behind a tap port communicate through a switch that sleeps when idle.
TEST(PortKinds, memif_and_tap__are_ports_of_a_switch) {
  if (!has_tap()) GTEST_SKIP() << "/dev/net/tun is not to be had";
  const std::string path = fmt::format("/tmp/mltcp-kinds-test-{}.sock", getpid());
  constexpr std::uint64_t kCount = 200;
  const Pair played = play(
      [&](const Channel& other) -> std::string {
        const Eal eal(small_eal(96));
        PortConfig config{.device = "tap:sw0", .promiscuous = true, .interrupts = true};
        Port tap(eal, config);
        config.device = "memif:" + path + ",role=server";
        Port memif(eal, config);
        if (!run_command("ip address add 10.9.0.1/24 dev sw0")) return "no address";
        const Echo echo("10.9.0.1");
        if (!echo.works) return "no echo";
        std::vector<SoftSwitchPort> ports;
        for (Port* port : {&tap, &memif}) {
          ports.push_back(
              {port->id(), port->frame_bytes(), {}, [port] { return port->link().up; }, port->has_interrupts()});
          ports.back().config.output.rate = Rate(10'000'000'000);
        }
        SoftSwitch bridge(eal, ports, SoftSwitchOptions{SwitchIdle::sleep, {}});
        other.tell('r');
        bridge.run(bridge.now() + 15_s, [&] { return other.is_called(); });
        if (bridge.counters(0).sent_frames < kCount || bridge.counters(1).sent_frames < kCount) {
          return fmt::format("{} frames to tap, {} to memif", bridge.counters(0).sent_frames,
                             bridge.counters(1).sent_frames);
        }
        return bridge.counters(0).bad_checksums + bridge.counters(1).bad_checksums != 0 ? "wrong checksums" : "";
      },
      [&](const Channel& other) -> std::string {
        if (!other.receives('r')) return "the switch did not start";
        const Eal eal(small_eal(96));
        const Port port(eal, {.device = "memif:" + path});
        PortHostConfig settings;
        settings.address = host(2);
        settings.zero_copy_from = 1024;
        const PortHost place(eal, port, settings);
        Address to = host(1);
        to.port = 9000;
        std::uint64_t next = 1;
        Nanos sent_at;
        std::vector<std::byte> payload(1200, std::byte{7});
        PayloadHold hold;
        for (const Nanos end = eal.clock().now() + 12_s; next <= kCount && eal.clock().now() < end;) {
          std::array<RxPacket, 32> packets;
          for (std::size_t i = 0, count = place.io().receive(packets); i < count; ++i) {
            std::uint64_t number = 0;
            std::memcpy(&number, packets[i].bytes.data(), sizeof number);
            if (number != next || packets[i].bytes.size() != 1208) continue;
            ++next;
            sent_at = {};
          }
          if (next > kCount || (sent_at != Nanos() && eal.clock().now() - sent_at < 200_ms)) continue;
          const TxPacket packet{&to, std::as_bytes(std::span(&next, 1)), payload, Ecn::ect0, 0, &hold};
          place.io().send({&packet, 1});
          sent_at = eal.clock().now();
        }
        other.tell('d');
        if (next <= kCount) return fmt::format("{} of {} came back", next - 1, kCount);
        if (place.io().counters().by_reference < kCount) return "payloads were copied";
        place.io().release();
        return hold.packets == 0 ? "" : "memif has kept a payload";
      });
  unlink(path.c_str());
  if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right;
  EXPECT_EQ(played.left, "");
  EXPECT_EQ(played.right, "");
}

/// Ports of one kind with their hosts. Each host sends to the next one.
class Group {
 public:
  Group(const Eal& eal, const std::vector<PortConfig>& configs, std::uint32_t zero_copy_from) : eal_(eal) {
    for (const PortConfig& config : configs) {
      ports_.push_back(std::make_unique<Port>(eal, config));
      PortHostConfig place;
      place.address = host(static_cast<unsigned>(ports_.size()));
      place.zero_copy_from = zero_copy_from;
      hosts_.push_back(std::make_unique<PortHost>(eal, *ports_.back(), place));
    }
  }
  ~Group() {
    for (const auto& place : hosts_) {
      for (std::uint16_t queue = 0; queue < place->port().queues(); ++queue) place->io(queue).release();
    }
    hosts_.clear();
    ports_.clear();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Sends and receives in `rounds` rounds. Frames that are in flight at the end remain in the ports.
  void traffic(int rounds, PayloadHold& hold) {
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < hosts_.size(); ++i) {
        Address to = host(static_cast<unsigned>((i + 1) % hosts_.size()) + 1);
        for (std::uint16_t queue = 0; queue < hosts_[i]->port().queues(); ++queue) {
          to.port = static_cast<std::uint16_t>(62400 + (round + queue) % hosts_[i]->port().queues());
          std::array<TxPacket, 8> burst;
          burst.fill({&to, std::span(bytes_).first(20), std::span(bytes_).last(1100), Ecn::ect0, 0, &hold});
          hosts_[i]->io(queue).send(burst);
          std::array<RxPacket, 32> packets;
          for (std::size_t k = 0, count = hosts_[i]->io(queue).receive(packets); k < count; ++k) {
            received += packets[k].bytes.size() + packets[k].tail.size() == 1120 ? 1U : 0U;
          }
        }
      }
    }
  }
  std::uint64_t received = 0;

 private:
  const Eal& eal_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::unique_ptr<PortHost>> hosts_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1120, std::byte{3});
};

/// An AF_XDP socket that is bound to queue 0 of an interface. The kernel keeps such a binding for a moment after a port
/// is closed.
class HeldQueue {
 public:
  explicit HeldQueue(const char* interface) : socket_(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    constexpr int slots = 64;
    xdp_umem_reg umem{};
    umem.addr = std::bit_cast<std::uintptr_t>(memory_.data());
    umem.len = sizeof memory_;
    umem.chunk_size = 4096;
    bool ready = setsockopt(socket_, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) == 0;
    for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING})
      ready = ready && setsockopt(socket_, SOL_XDP, ring, &slots, sizeof slots) == 0;
    sockaddr_xdp address{};
    address.sxdp_family = AF_XDP;
    address.sxdp_flags = XDP_COPY;
    address.sxdp_ifindex = if_nametoindex(interface);
    works = ready && bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~HeldQueue() { close(socket_); }
  HeldQueue(const HeldQueue&) = delete;
  HeldQueue& operator=(const HeldQueue&) = delete;

  bool works = false;

 private:
  alignas(4096) std::array<std::byte, 65536> memory_{};
  int socket_;
};

TEST(PortKinds, af_xdp__tells_of_a_queue_that_is_in_use) {
  const Pair played = play(
      [](const Channel& /*other*/) -> std::string {
        if (!has_af_xdp()) return "skip: the kernel has no AF_XDP";
        if (!run_command("ip link add va type veth peer name vb && ip link set va up && ip link set vb up"))
          return "skip: no veth pairs";
        const Eal eal(small_eal(128));
        const PortConfig config{.device = "af_xdp:va", .descriptors = 64, .spare_buffers = 256};
        const HeldQueue held("va");
        if (!held.works) return "skip: AF_XDP takes no queue of a veth";
        std::string problems;
        const auto begun = std::chrono::steady_clock::now();
        try {
          const Port port(eal, config);
          problems += "a queue that is in use was taken; ";
        } catch (const RunError& error) {
          if (std::string(error.what()).find("va is in use with AF_XDP") == std::string::npos) problems += error.what();
        }
        if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(20)) problems += "tried for too long; ";
        return problems;
      },
      [](const Channel& /*other*/) -> std::string { return ""; });
  if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right;
  EXPECT_EQ(played.left, "");
}

/// Opens and closes ports in a random order. To try other seeds:
///   dpdk_port_kinds_test --gtest_filter=*any_order* --gtest_shuffle --gtest_repeat=100
TEST(PortKinds, all__come_and_go_in_any_order_with_frames_on_their_way) {
  const std::string path = fmt::format("/tmp/mltcp-kinds-stress-{}.sock", getpid());
  const auto seed = static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  const Pair played = play(
      [&](const Channel& /*other*/) -> std::string {
        if (!run_command("ip link add va type veth peer name vb && ip link set va up && ip link set vb up") ||
            !run_command(
                "ip link add vc numrxqueues 2 numtxqueues 2 type veth peer name vd numrxqueues 2 numtxqueues 2 "
                "&& ip link set vc up && ip link set vd up")) {
          return "skip: no veth pairs";
        }
        const Eal eal(small_eal(256));
        Random random(seed + 17);
        struct Kind {
          std::string name;
          std::vector<std::string> devices;
          std::uint16_t queues;
          bool moves;  ///< whether the two devices transfer frames to each other
        };
        std::vector<Kind> kinds{{"af_packet", {"af_packet:va", "af_packet:vb"}, 1, true},
                                {"af_packet, 2 queues", {"af_packet:vc", "af_packet:vd"}, 2, true},
                                {"ring", {"ring:l,to=r", "ring:r,to=l"}, 1, true},
                                {"ring, 2 queues", {"ring:m,to=n", "ring:n,to=m"}, 2, true},
                                {"memif", {"memif:" + path + ",role=server"}, 1, false},
                                {"memif without a server", {"memif:/tmp/nobody.sock"}, 1, false},
                                {"null", {"net_null3"}, 2, false}};
        if (has_af_xdp()) {
          kinds.push_back({"af_xdp", {"af_xdp:va", "af_xdp:vb"}, 1, true});
          kinds.push_back({"af_xdp, 2 queues", {"af_xdp:vc", "af_xdp:vd"}, 2, true});
        }
        if (has_tap()) {
          kinds.push_back({"tap", {"tap:t0"}, 1, false});
          kinds.push_back({"tap, 2 queues", {"tap:t1"}, 2, false});
        }
        PayloadHold hold;
        std::vector<std::unique_ptr<Group>> open(kinds.size());
        std::vector<std::uint64_t> received(kinds.size());
        std::vector<int> opened(kinds.size());
        const Nanos end = eal.clock().now() + 6_s;
        constexpr int kSteps = 40;
        for (int step = 0; step < kSteps && eal.clock().now() < end; ++step) {
          const std::size_t which = random.below(kinds.size());
          const Kind& kind = kinds[which];
          if (open[which] != nullptr) {
            open[which]->traffic(static_cast<int>(random.below(3)), hold);
            received[which] += open[which]->received;
            open[which].reset();
            continue;
          }
          std::vector<PortConfig> configs;
          for (const std::string& device : kind.devices) {
            configs.push_back({.device = device,
                               .queues = kind.queues,
                               .descriptors = 64U << random.below(4),
                               .spare_buffers = 512,
                               .promiscuous = random.chance(0.5),
                               .interrupts = random.chance(0.5)});
          }
          try {
            open[which] = std::make_unique<Group>(eal, configs, random.chance(0.5) ? 512 : 0);
            ++opened[which];
          } catch (const InputError&) {  // AF_XDP does not support two queues, or the device is in use
          } catch (const RunError&) {
          }
          for (const auto& group : open) {
            if (group != nullptr) group->traffic(static_cast<int>(1 + random.below(30)), hold);
          }
        }
        for (std::size_t i = 0; i < kinds.size(); ++i) {
          if (open[i] != nullptr) received[i] += open[i]->received;
          open[i].reset();
        }
        std::string problems;
        for (std::size_t i = 0; i < kinds.size(); ++i) {
          fmt::print("{}: opened {} times, {} packets\n", kinds[i].name, opened[i], received[i]);
          if (kinds[i].name == "ring" && opened[i] > 0 && received[i] == 0) problems += "nothing passed over rings; ";
        }
        std::fflush(stdout);
        if (hold.packets != 0) problems += fmt::format("{} payloads are still held; ", hold.packets.load());
        // At the end, all devices are free again.
        for (const Kind& kind : kinds) {
          if (kind.name == "memif without a server" || kind.name == "af_xdp, 2 queues") continue;
          for (const std::string& device : kind.devices) {
            try {
              const Port port(eal, {.device = device, .queues = kind.queues, .descriptors = 64, .spare_buffers = 256});
            } catch (const std::exception& error) {
              problems += error.what();
            }
          }
        }
        return problems;
      },
      [](const Channel& other) -> std::string {
        for (int i = 0; i < 3 && !other.receives('e'); ++i) {
        }
        return "";
      });
  unlink(path.c_str());
  if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right;
  EXPECT_EQ(played.left, "") << "seed " << seed;
}

}  // namespace
}  // namespace mltcp::dpdk
