// Tests the transport between processes over real ports: packets that arrive, packets that are refused and counted,
// links that go down and up, peers that die, and ports that cannot be opened.
#include "mltcp/dpdk/port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/dpdk/launched_loop.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/shard.h"
#include "net_fixture.h"
#include "port_stations.h"

namespace mltcp::dpdk {
namespace {

using namespace port_stations;

/// Sends messages from the left host to the right host. The results describe failures; a result is empty if there was
/// none.
Pair move_messages(const Setting& setting, std::size_t count, std::size_t size, int interface_mtu = 1500) {
  const std::string skip = skip_without(setting.kind);
  if (!skip.empty()) return {skip, skip};
  return play(
      [&](const Channel& other) -> std::string {
        Station here(setting, "ve0", 1);
        Client client(here.place.io(), host(2, setting.v6), count, size);
        here.attach(client);
        if (!other.receives('r')) return "the other end did not start";
        if (!here.run(other, [&] { return client.is_done(); })) {
          return fmt::format("{} of {} sent", client.sent, count);
        }
        if (client.sent != count) return "not all were sent";
        if (here.place.io().counters().waited == 0) return "the first packet did not wait for its neighbour";
        return "";
      },
      [&](const Channel& other) -> std::string {
        Station here(setting, "ve1", 2);
        Server server(here.place.io(), count, size);
        here.attach(server);
        other.tell('r');
        if (!here.run(other, [&] { return server.is_done(); })) {
          return fmt::format("{} of {} received", server.received, count);
        }
        if (server.wrong != 0) return fmt::format("{} messages have other bytes", server.wrong);
        fmt::print("{}{}{}: {:.2f} Gbps of goodput, {} naps\n", setting.kind, setting.v6 ? ", IPv6" : "",
                   setting.vlan != 0 ? ", VLAN" : "", server.gbps(), here.loop.counters().sleeps);
        std::fflush(stdout);
        return "";
      },
      interface_mtu);
}

TEST(Port, af_packet__moves_messages_between_processes) { EXPECT_PLAYED(move_messages({}, 50, 1 << 20)); }
TEST(Port, af_xdp__moves_messages_between_processes) { EXPECT_PLAYED(move_messages({.kind = "af_xdp"}, 50, 1 << 20)); }
TEST(Port, af_packet__moves_messages_over_ipv6_in_a_vlan) {
  EXPECT_PLAYED(move_messages({.v6 = true, .vlan = 42}, 20, 1 << 18));
}
TEST(Port, af_xdp__moves_messages_over_ipv6_in_a_vlan) {
  EXPECT_PLAYED(move_messages({.kind = "af_xdp", .v6 = true, .vlan = 42}, 20, 1 << 18));
}
TEST(Port, af_packet__carries_jumbo_frames) { EXPECT_PLAYED(move_messages({.mtu = 9000}, 20, 1 << 20, 9000)); }
TEST(Port, af_xdp__carries_frames_of_most_of_a_page) {
  EXPECT_PLAYED(move_messages({.kind = "af_xdp", .mtu = 3400}, 20, 1 << 20, 3400));
}

TEST(NetInterface, driver__is_the_kernels_and_empty_where_there_is_none) {
  EXPECT_PLAYED(play(
      [](const Channel&) -> std::string {
        const std::string found = NetInterface("ve0").driver() + "/" + NetInterface("lo").driver();
        return found == "veth/" ? "" : found;
      },
      [](const Channel&) -> std::string { return ""; }));
}

/// A packet socket on the port's interface, which the test uses in addition to the port.
class RawSocket {
 public:
  explicit RawSocket(const char* interface) : file_(socket(AF_PACKET, SOCK_RAW, 0)) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    [[maybe_unused]] const int bound = bind(file_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  ~RawSocket() { close(file_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  void send(const std::vector<std::byte>& frame) const {
    [[maybe_unused]] const auto sent = ::send(file_, frame.data(), frame.size(), MSG_DONTWAIT);
  }

 private:
  int file_;
};

/// Returns a frame to the port's address with `payload` zero bytes.
std::vector<std::byte> frame_to(const encap::MacAddress& mac, std::size_t payload, std::uint16_t vlan = 0) {
  encap::Headers headers;
  headers.vlan = vlan;
  headers.source_mac = {2, 0, 0, 0, 0, 99};
  headers.destination_mac = mac;
  headers.source = host(99);
  headers.destination = host(2);
  std::vector<std::byte> frame(encap::header_bytes(headers.destination, vlan) + payload);
  encap::write_headers(headers, payload, 0, frame.data());
  return frame;
}

std::vector<std::byte> arp_question(std::uint8_t number) {
  std::vector<std::byte> frame(60);
  std::fill_n(frame.begin(), 6, std::byte{0xFF});
  const std::array<std::uint8_t, 32> rest{2, 0, 0, 0, 0, number, 8,  6, 0, 1,      8, 0, 6, 4, 0, 1,
                                          2, 0, 0, 0, 0, number, 10, 9, 0, number, 0, 0, 0, 0, 0, 0};
  std::memcpy(&frame[6], rest.data(), rest.size());
  const std::array<std::uint8_t, 4> target{10, 9, 0, 2};
  std::memcpy(&frame[38], target.data(), target.size());
  return frame;
}

Pair survive(const std::string& kind) {
  const std::string skip = skip_without(kind);
  if (!skip.empty()) return {skip, skip};
  const Setting setting{.kind = kind, .mtu = 1400};
  constexpr std::size_t kCount = 60;
  constexpr std::size_t kSize = 1 << 18;
  return play(
      [&](const Channel& other) -> std::string {
        Station here(setting, "ve0", 1);
        Client client(here.place.io(), host(2), kCount, kSize);
        here.attach(client);
        if (!other.receives('r')) return "the other end did not start";
        for (const Nanos give_up = here.loop.now() + kPatience; !here.place.io().resolve(host(2));) {
          if (here.loop.now() > give_up) return "the neighbour does not answer";
          std::array<RxPacket, 32> packets;
          here.place.io().receive(packets);
        }
        // The right host sets this MAC address on ve1.
        const RawSocket raw("ve0");
        const encap::MacAddress mac{2, 0, 0, 0, 0, 2};
        Random random(3);
        std::size_t polls = 0;
        enum class Step { before, down, after } step = Step::before;
        Nanos went_down;
        bool saw_down = false;
        client.each_poll = [&] {
          if (++polls % 16 == 0) {
            switch (random.next() % 8) {
              case 0:
                raw.send(arp_question(static_cast<std::uint8_t>(3 + random.next() % 200)));
                break;
              case 1: {  // broadcast
                raw.send(frame_to({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 100));
                break;
              }
              case 2: {  // a fragmented packet
                auto frame = frame_to(mac, 100);
                frame[20] |= std::byte{0x20};
                frame[24] = frame[25] = std::byte{0};
                const auto sum = static_cast<std::uint16_t>(~encap::sum(&frame[14], 20));
                std::memcpy(&frame[24], &sum, 2);
                raw.send(frame);
                break;
              }
              case 3:  // between the MTU of the port and the larger MTU of the interface
                raw.send(frame_to(mac, 1472));
                break;
              case 4: {  // a wrong IP checksum
                auto frame = frame_to(mac, 100);
                frame[24] ^= std::byte{1};
                raw.send(frame);
                break;
              }
              case 5: {  // a wrong UDP checksum
                auto frame = frame_to(mac, 100);
                frame[100] = std::byte{1};
                raw.send(frame);
                break;
              }
              case 6:  // a valid frame with another VLAN
                raw.send(frame_to(mac, 100, 9));
                break;
              default: {
                auto frame = frame_to(mac, random.next() % 64);
                for (std::size_t i = 14; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(random.next());
                raw.send(frame);
                break;
              }
            }
          }
          if (step == Step::before && client.sent >= kCount / 3) {
            run_command("ip link set ve0 down");
            went_down = here.loop.now();
            step = Step::down;
          } else if (step == Step::down && here.loop.now() - went_down > 50_ms) {
            saw_down = !here.port.link().up;
            run_command("ip link set ve0 up");
            step = Step::after;
          }
        };
        const auto is_up_again = [&] { return step == Step::after && here.port.link().up; };
        if (!here.run(other, [&] { return client.is_done() && is_up_again(); })) {
          return fmt::format("{} of {} sent, link {}", client.sent, kCount, here.port.link().up ? "up" : "down");
        }
        if (client.sent != kCount) return "not all were sent";
        if (!saw_down) return "the port did not tell that its link was down";
        return "";
      },
      [&](const Channel& other) -> std::string {
        if (!run_command("ip link set ve1 address 02:00:00:00:00:02")) return "skip: no MAC address can be set";
        Station here(setting, "ve1", 2);
        Server server(here.place.io(), kCount, kSize);
        here.attach(server);
        other.tell('r');
        if (!here.run(other, [&] { return server.is_done(); })) {
          return fmt::format("{} of {} received", server.received, kCount);
        }
        if (server.wrong != 0) return "messages have other bytes";
        const PortIoCounters& counters = here.place.io().counters();
        const auto refused = [&](encap::Reject reason) {
          return counters.rejected[static_cast<std::size_t>(reason)] != 0;
        };
        std::string missing;
        if (server.stats().foreign_packets != 0) missing += "what is not the host's came to the transport; ";
        for (const auto reason : {encap::Reject::oversized, encap::Reject::bad_ip_checksum,
                                  encap::Reject::bad_udp_checksum, encap::Reject::not_for_us, encap::Reject::not_ip}) {
          if (!refused(reason)) missing += fmt::format("no frame was refused as {}; ", encap::to_text(reason));
        }
        // With af_packet, the kernel reassembles or drops fragments before a packet socket of a fan-out group receives
        // them.
        if (kind == "af_xdp" && !refused(encap::Reject::fragment)) missing += "no fragment was refused; ";
        if (counters.neighbour_frames < 3) missing += "no questions came; ";
        if (here.place.io().neighbours().answers < 3) missing += "no questions were answered";
        return missing;
      });
}

TEST(Port, af_packet__survives_foreign_frames_and_a_link_that_goes_and_comes) { EXPECT_PLAYED(survive("af_packet")); }
TEST(Port, af_xdp__survives_foreign_frames_and_a_link_that_goes_and_comes) { EXPECT_PLAYED(survive("af_xdp")); }

Pair outlive(const std::string& kind) {
  const std::string skip = skip_without(kind);
  if (!skip.empty()) return {skip, skip};
  const Setting setting{.kind = kind};
  return play(
      [&](const Channel& other) -> std::string {
        std::string verdict;
        {
          Station here(setting, "ve0", 1);
          ConnectionConfig config;
          // This time is longer than the delay that the loss of the first question about the neighbour causes.
          config.give_up_after = 2_s;
          Client client(here.place.io(), host(2), 50, 1 << 20, config);
          here.attach(client);
          if (!other.receives('r')) return "the other end did not start";
          here.loop.run(here.loop.now() + kPatience, [&] { return client.closed; });
          if (!client.closed || client.last_status != Status::unreachable || client.sent < 5 || client.unsent == 0) {
            verdict =
                fmt::format("{} sent, {} not, status {}", client.sent, client.unsent, to_text(client.last_status));
          }
        }
        return verdict;
      },
      [&](const Channel& other) -> std::string {
        Station here(setting, "ve1", 2);
        Server server(here.place.io(), 50, 1 << 20);
        here.attach(server);
        other.tell('r');
        // The peer requires that 5 messages are sent. This host receives 8, because the last acknowledgements may be
        // lost.
        if (!here.loop.run(here.loop.now() + kPatience, [&] { return server.received >= 8; })) return "nothing came";
        // This end stops without closing, but keeps its namespace and link, like a program that hangs.
        here.loop.request_stop();
        here.loop.run(here.loop.now() + kPatience);
        for (int i = 0; i < 200 && !other.is_called(); ++i) usleep(10'000);
        return "";
      });
}

TEST(Port, af_packet__outlives_a_peer_that_dies_mid_message) { EXPECT_PLAYED(outlive("af_packet")); }
TEST(Port, af_xdp__outlives_a_peer_that_dies_mid_message) { EXPECT_PLAYED(outlive("af_xdp")); }

constexpr std::size_t kShared = 20;  // number of messages to each of the two shards

/// Sends the messages from two shards of one thread. Shard 0 sends to shard 1 of the peer, and shard 1 to shard 0.
std::string send_to_two(const Channel& other) {
  Station here({.queues = 2}, "ve0", 1);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint16_t i = 0; i < 2; ++i) {
    Address to = host(2);
    to.port = static_cast<std::uint16_t>(to.port + 1 - i);
    clients.push_back(std::make_unique<Client>(here.place.io(i), to, kShared, 1 << 18));
    here.attach(*clients.back(), i);
  }
  if (!other.receives('r')) return "the other end did not start";
  const bool done = here.run(other, [&] { return clients[0]->is_done() && clients[1]->is_done(); });
  if (done && clients[0]->sent == kShared && clients[1]->sent == kShared) return "";
  return fmt::format("{} and {} of {} sent", clients[0]->sent, clients[1]->sent, kShared);
}

Pair share() {
  return play(send_to_two, [&](const Channel& other) -> std::string {
    Station here({.queues = 2}, "ve1", 2);
    Server first(here.place.io(0), kShared, 1 << 18);
    Server second(here.place.io(1), kShared, 1 << 18);
    here.attach(first, 0);
    here.attach(second, 1);
    other.tell('r');
    if (!here.run(other, [&] { return first.is_done() && second.is_done(); })) {
      return fmt::format("{} and {} of {} received", first.received, second.received, kShared);
    }
    const auto& a = here.place.io(0).counters();
    const auto& b = here.place.io(1).counters();
    if (first.wrong + second.wrong != 0) return "messages have other bytes";
    if (a.handover_full + b.handover_full != 0) return "packets were lost between shards";
    const auto all_taken = [&] { return a.handed_over + b.handed_over == a.taken_over + b.taken_over; };
    if (!here.loop.run(here.loop.now() + 2_s, all_taken)) return "packets vanished between shards";
    // Both shards need the answers of neighbours, which arrive in one queue. One shard therefore hands some answers
    // over.
    if (a.handed_over + b.handed_over == 0) return "nothing was handed over";
    return "";
  });
}

/// Tests the same transfer as share(), but the receiver has one thread per shard. A packet in the wrong queue is handed
/// over to the right thread.
Pair share_between_threads() {
  const std::vector<unsigned> cpus = usable_cpus();
  if (cpus.size() < 2) return {"skip: threads of their own need two CPUs", "skip: threads of their own need two CPUs"};
  return play(send_to_two, [&](const Channel& other) -> std::string {
    Station here({.queues = 2, .cores = fmt::format("{},{}", cpus[0], cpus[1])}, "ve1", 2);
    PollLoop second_loop(here.eal.time(), Idle::sleep);
    Server first(here.place.io(0), kShared, 1 << 18);
    Server second(here.place.io(1), kShared, 1 << 18);
    here.attach(first, 0);
    second_loop.attach(here.place.io(1), second);
    LaunchedLoop launched(here.eal, second_loop, 1, here.loop.now() + kPatience + kPatience);
    other.tell('r');
    const bool done = here.run(other, [&] { return first.is_done(); });
    second_loop.request_stop();
    launched.wait();
    const auto& a = here.place.io(0).counters();
    const auto& b = here.place.io(1).counters();
    if (!done || !second.is_done()) {
      return fmt::format("{} and {} of {} received; {} and {} packets, {} and {} handed over, {} and {} not taken",
                         first.received, second.received, kShared, a.received_packets, b.received_packets,
                         a.handed_over, b.handed_over, a.handover_full, b.handover_full);
    }
    if (first.wrong + second.wrong != 0) return "messages have other bytes";
    if (a.handed_over + b.handed_over == 0) return "nothing was handed over";
    return "";
  });
}

TEST(Port, af_packet__gives_each_shard_its_packets) { EXPECT_PLAYED(share()); }
TEST(Port, af_packet__gives_each_shard_its_packets_across_threads) { EXPECT_PLAYED(share_between_threads()); }

std::string error_of(const Eal& eal, const PortConfig& config) {
  try {
    const Port port(eal, config);
  } catch (const InputError& error) {
    return std::string("input: ") + error.what();
  } catch (const RunError& error) {
    return std::string("run: ") + error.what();
  }
  return "no error";
}

TEST(Port, memif__moves_messages_between_processes) {
  const std::string socket = fmt::format("/tmp/mltcp-port-test-{}.sock", getpid());
  const Pair both = play(
      [&](const Channel& other) -> std::string {
        if (!other.receives('r')) return "the other end did not start";
        Station here({.kind = "memif"}, socket, 1);
        Client client(here.place.io(), host(2), 20, 1 << 20);
        here.attach(client);
        const bool done = here.run(other, [&] { return client.is_done(); });
        return done && client.sent == 20 ? "" : fmt::format("{} sent, link {}", client.sent, here.port.link().up);
      },
      [&](const Channel& other) -> std::string {
        Station here({.kind = "memif"}, socket + ",role=server", 2);
        Server server(here.place.io(), 20, 1 << 20);
        here.attach(server);
        if (here.port.link().up) return "the link is up without a peer";
        other.tell('r');
        const bool done = here.run(other, [&] { return server.is_done(); });
        if (!done || server.wrong != 0) return fmt::format("{} received, {} wrong", server.received, server.wrong);
        return "";
      });
  unlink(socket.c_str());
  EXPECT_PLAYED(both);
}

TEST(Port, says_in_one_line_why_it_can_not_be_had_and_what_to_do) {
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        run_command("ip link set lo up; ip link add vdown type veth peer name vdown1");
        const Eal eal(small_eal());
        std::string problems;
        const auto expect = [&](const PortConfig& config, const std::string& text) {
          const std::string error = error_of(eal, config);
          if (error.find(text) == std::string::npos || error.find('\n') != std::string::npos) {
            problems += fmt::format("{}: {}\n", config.device, error);
          }
        };
        expect({.device = "af_packet:nosuch0"}, "input: there is no interface \"nosuch0\"");
        expect({.device = "af_xdp:nosuch0"}, "input: there is no interface \"nosuch0\"");
        expect({.device = "af_packet:vdown"}, "run: port \"af_packet:vdown\": interface vdown is down; bring it up");
        expect({.device = "af_packet:lo"}, "no Ethernet interface");
        expect({.device = "af_packet:ve0", .mtu = 9000}, "ve0 has 1500; set it: ip link set dev ve0 mtu 9000");
        expect({.device = "af_packet:ve0", .mtu = 100}, "input: port \"af_packet:ve0\": an MTU of 100 bytes; give 576");
        expect({.device = "af_packet:ve0", .queues = 65}, "65 queues; give 1 to 64");
        expect({.device = "af_packet:ve0", .descriptors = 8}, "give 64 to 4096");
        expect({.device = "af_packet:ve0", .spare_buffers = 900'000}, "start it with");
        expect({.device = "af_packet:ve0", .vlan = 4095}, "VLAN 4095; give 1 to 4094");
        expect({.device = "af_packet:ve0", .buffer_bytes = 512}, "can't scatter");
        expect({.device = "net_nosuch0"}, "DPDK has no driver");
        expect({.device = "0000:3b:00.0"}, "there is no PCI device 0000:3b:00.0");
        expect({.device = "memif:/nosuch/folder/m,role=server"}, "the folder of /nosuch/folder/m does not exist");
        expect({.device = "memif:/tmp/nobody.sock"}, "no process listens on /tmp/nobody.sock; start the end with");
        expect({.device = "tap:ve0"}, "there is an interface ve0 already");
        expect({.device = "eth0"}, "is no kind of port");
        {
          const Port first(eal, {.device = "af_packet:ve0"});
          expect({.device = "af_packet:ve0"},
                 "this process has that device already, as af_packet:ve0; put more shards");
        }
        for (int again = 0; again < 3; ++again) expect({.device = "af_packet:ve0"}, "no error");
        if (free_ports() != max_ports()) problems += "ports were not given back";
        if (skip_without("af_xdp").empty()) {
          expect({.device = "af_xdp:ve0", .queues = 3}, "3 queues, but ve0 has 1 for AF_XDP; give 1");
          run_command("ip link add vtwo numrxqueues 2 numtxqueues 2 type veth peer name vtwo1; ip link set vtwo up");
          expect({.device = "af_xdp:vtwo"}, "vtwo receives on 2 queues, but AF_XDP would serve only 1 of them");
          expect({.device = "af_xdp:ve0", .mtu = 1600}, "ve0 has 1500");
          for (int again = 0; again < 3; ++again) expect({.device = "af_xdp:ve0"}, "no error");
        }
        return problems;
      },
      idle_part));
}

TEST(Port, af_xdp__leaves_an_interface_to_the_process_that_has_it) {
  if (const std::string skip = skip_without("af_xdp"); !skip.empty()) GTEST_SKIP() << skip;
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        const auto claim = [](const Channel& channel) -> std::string {
          if (!channel.receives('g')) return "";
          const Eal eal(small_eal());
          return error_of(eal, {.device = "af_xdp:ve0"});
        };
        const auto hold = [](const Channel& channel) -> std::string {
          const Eal eal(small_eal());
          const Port port(eal, {.device = "af_xdp:ve0"});
          channel.tell('h');
          for (;;) pause();
        };
        std::array<int, 2> ends{};
        std::array<int, 2> more{};
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return "no sockets";
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, more.data()) != 0) return "no sockets";
        Host claimant(claim, ends[1], ends[0]);
        Host holder(hold, more[1], more[0]);
        if (!Channel(more[0]).receives('h')) return "the holder has no port";
        Channel(ends[0]).tell('g');
        const std::string error = claimant.finish();
        if (error.find("uses ve0 already; end it") == std::string::npos) return error;
        if (!run_command("ip -d link show ve0 | grep -q prog/xdp")) return "the holder has lost its XDP program";
        holder.finish(0);  // killed
        const Eal eal(small_eal());
        const std::string after = error_of(eal, {.device = "af_xdp:ve0"});
        if (after != "no error") return "after the holder's death: " + after;
        return run_command("ip -d link show ve0 | grep -q prog/xdp") ? "an XDP program was left behind" : "";
      },
      idle_part));
}

TEST(Port, tells_about_itself) {
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        const Eal eal(small_eal(96));
        const Port port(eal, {.device = "af_packet:ve0", .promiscuous = true, .vlan = 7});
        if (port.driver() != "net_af_packet" || port.mtu() != 1500 || port.frame_bytes() != 1518 ||
            port.queues() != 1) {
          return port.description();
        }
        if (!port.link().up || port.link().rate.is_zero()) return "the link is not up";
        const auto statistics = port.statistics();
        const bool found = std::any_of(statistics.begin(), statistics.end(),
                                       [](const auto& entry) { return entry.first == "rx_good_packets"; });
        if (!found) return "no counter rx_good_packets";
        const Port ring(eal, {.device = "ring:loop", .mtu = 9000, .queues = 2});
        if (ring.mtu() != 9000 || ring.steering() != Steering::peer || ring.pool(1) == nullptr) return "ring";
        return "";
      },
      idle_part));
}

}  // namespace
}  // namespace mltcp::dpdk
