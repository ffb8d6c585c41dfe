// Tests the datapath on the kernel's UDP sockets, opened by name: its errors on opening, and its reports. Tests that
// need interfaces run in network namespaces, which the kernel removes with their process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/socket/doctor.h"
#include "mltcp/socket/register_datapath.h"
#include "mltcp/socket/socket_io.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::socket {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint16_t kPort = 27410;

HostPlace place(const std::string& ip, std::uint16_t shards = 1, std::uint16_t port = kPort) {
  HostPlace made;
  made.address = Address::parse(ip);
  made.address.port = port;
  made.shards = shards;
  return made;
}

std::string error_of(const HostDatapathConfig& config, const HostPlace& at) {
  register_datapath();
  return message_of<InputError>([&] { check_host_datapath(config, at); });
}

/// Runs `part` in a new network namespace with a pair of interfaces, v0 and v1. v0 has 10.9.0.1, fd09::1 and an MTU of
/// 1400. Returns the result of `part`, or "skip: ..." if the namespace cannot be created.
std::string in_namespace(const std::function<std::string()>& part) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string verdict =
        "skip: no network namespace with a pair of interfaces can be made; run as root, with iproute2";
    const char* const setup =
        "(ip link set lo up && ip link add v0 mtu 1400 type veth peer name v1 mtu 1400 && ip addr add 10.9.0.1/24 dev "
        "v0 "
        "&& ip addr add fd09::1/64 dev v0 nodad && ip link set v1 up && ip link set v0 up) >/dev/null 2>&1";
    try {
      if (unshare(CLONE_NEWNET) == 0 && std::system(setup) == 0) verdict = part();
    } catch (const std::exception& error) {
      verdict = error.what();
    }
    [[maybe_unused]] const auto written = write(ends[1], verdict.data(), verdict.size());
    _exit(0);
  }
  close(ends[1]);
  std::string verdict;
  std::array<char, 4096> text{};
  for (ssize_t got = 0; (got = read(ends[0], text.data(), text.size())) > 0;)
    verdict.append(text.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return verdict;
}

bool is_skipped(const std::string& verdict) { return verdict.starts_with("skip: "); }

TEST(UdpDatapath, check__tells_what_is_wrong_with_the_device_or_the_place) {
  EXPECT_THAT(error_of({.device = "udp:nosuch0"}, place("127.0.0.1")),
              HasSubstr("there is no interface \"nosuch0\" in this network namespace"));
  EXPECT_THAT(error_of({.device = "udp:"}, place("203.0.113.9")),
              AllOf(HasSubstr("this machine does not have 203.0.113.9, but "), HasSubstr("lo 127.0.0.1"),
                    HasSubstr("ip addr add 203.0.113.9/24 dev IFACE")));
  EXPECT_THAT(error_of({.device = "udp:lo"}, place("203.0.113.9")),
              HasSubstr("lo does not have 203.0.113.9, but 127.0.0.1; give the host one that it has"));
  EXPECT_THAT(error_of({.device = "udp:127.0.0.1"}, place("127.0.0.2")),
              HasSubstr("the host's address is 127.0.0.2; give the same in both, or write udp:"));
  EXPECT_EQ(error_of({.device = "udp:"}, place("127.0.0.1", 2, 65535)),
            "UDP port 65535 for the first of 2 shards; give 1 to 65534");
  EXPECT_EQ(error_of({.device = "udp:"}, place("127.0.0.1", 1, 0)),
            "UDP port 0 for the first of 1 shard; give 1 to 65535");
  EXPECT_THAT(error_of({.device = "udp:", .mtu = 100}, place("127.0.0.1")), HasSubstr("an MTU of 100 bytes; give 576"));
  EXPECT_THAT(error_of({.device = "udp:", .queues = 2}, place("127.0.0.1")), HasSubstr("leave their number out"));
  EXPECT_THAT(error_of({.device = "udp:", .cores = "0,1"}, place("127.0.0.1")), HasSubstr("give one, such as 0"));
  EXPECT_THAT(error_of({.device = "udp:", .cores = "9999"}, place("127.0.0.1")), HasSubstr("may not use that CPU"));
  HostPlace routed = place("127.0.0.1");
  routed.gateway = Address::parse("10.0.0.254");
  EXPECT_THAT(error_of({.device = "udp:"}, routed), HasSubstr("ip route add default via 10.0.0.254"));
  EXPECT_EQ(error_of({.device = "udp:"}, place("127.0.0.1")), "no error");
  EXPECT_EQ(error_of({.device = "udp:lo", .mtu = 9000}, place("127.0.0.77", 3)), "no error");
}

TEST(UdpDatapath, check__tells_of_a_port_that_another_has) {
  const SocketIo other({.address = Address::v4(0x7F000001, kPort + 1)});
  EXPECT_EQ(error_of({.device = "udp:"}, place("127.0.0.1", 1)), "no error");
  EXPECT_THAT(error_of({.device = "udp:"}, place("127.0.0.1", 2)),
              HasSubstr("127.0.0.1:27411: another socket uses that UDP port; end its process (ss -ulnp shows it), or "
                        "give this one another port (--udp-port of a command)"));
}

TEST(UdpDatapath, shards__have_a_socket_and_a_port_each) {
  register_datapath();
  const auto datapath = open_host_datapath({.device = "udp:lo", .mtu = 1500, .queue_packets = 16});
  EXPECT_EQ(datapath->shards(), 0);
  EXPECT_EQ(datapath->mtu(), 1500u);
  datapath->take_place(place("127.0.0.1", 2));
  ASSERT_EQ(datapath->shards(), 2);
  EXPECT_EQ(datapath->io(1).limits().max_packet_bytes, 1472u);
  EXPECT_EQ(datapath->why_link_is_down(), "");
  const Address to = place("127.0.0.1", 1, kPort + 1).address;
  EXPECT_TRUE(datapath->resolve(0, to));
  std::array<std::byte, 50> bytes{};
  const TxPacket packet{&to, bytes, {}, Ecn::ect0, 3, nullptr};
  EXPECT_EQ(datapath->io(0).send({&packet, 1}), 1u);
  RxPacket got;
  while (datapath->io(1).receive({&got, 1}) == 0) continue;
  EXPECT_EQ(got.source, place("127.0.0.1").address);
  EXPECT_EQ(got.ecn, Ecn::ect0);
  EXPECT_THAT(datapath->description(),
              AllOf(HasSubstr("udp:lo: kernel UDP sockets on lo, MTU 1500, GSO"), HasSubstr("receive buffers of ")));
}

TEST(UdpDatapath, losses__are_counted_by_what_became_of_packets) {
  register_datapath();
  const auto datapath = open_host_datapath({.device = "udp:", .mtu = 1500});
  datapath->take_place(place("127.0.0.1"));
  const Address to = Address::parse("::1", 7);
  std::array<std::byte, 50> bytes{};
  const TxPacket packet{&to, bytes, {}, Ecn::not_ect, 0, nullptr};
  EXPECT_EQ(datapath->io(0).send({&packet, 1}), 1u);
  EXPECT_EQ(datapath->losses().unsent, 1u);
  EXPECT_EQ(datapath->losses().missed, 0u);
}

TEST(UdpDatapath, mtu__is_that_of_the_interface_that_has_the_address) {
  const std::string verdict = in_namespace([] {
    register_datapath();
    for (const char* const device : {"udp:", "udp:v0", "udp:10.9.0.1"}) {
      const auto datapath = open_host_datapath({.device = device});
      datapath->take_place(place("10.9.0.1"));
      if (datapath->mtu() != 1400) return fmt::format("{}: MTU {}", device, datapath->mtu());
      if (datapath->io(0).limits().max_packet_bytes != 1372) return std::string("another length");
    }
    const auto v6 = open_host_datapath({.device = "udp:fd09::1"});
    v6->take_place(place("fd09::1"));
    if (v6->io(0).limits().max_packet_bytes != 1352) return std::string("another length over IPv6");
    const auto any = open_host_datapath({.device = "udp:v0"});  // the port uses the interface's address
    any->take_place(place("0.0.0.0", 1, kPort + 1));
    if (any->description().find("on v0, MTU 1400") == std::string::npos) return any->description();
    const auto all = open_host_datapath({.device = "udp:"});
    all->take_place(place("::", 1, kPort + 1));
    if (all->mtu() != 1400) return fmt::format("of all interfaces: {}", all->mtu());
    return error_of({.device = "udp:v0", .mtu = 1500}, place("10.9.0.1", 1, kPort + 5));
  });
  if (is_skipped(verdict)) GTEST_SKIP() << verdict;
  EXPECT_THAT(verdict, "port \"udp:v0\": an MTU of 1500, but v0 has 1400; set it: ip link set dev v0 mtu 1500");
}

TEST(UdpDatapath, link_that_goes__is_told_with_the_cure) {
  const std::string verdict = in_namespace([] {
    register_datapath();
    const auto datapath = open_host_datapath({.device = "udp:"});
    datapath->take_place(place("10.9.0.1"));
    // The kernel reports a lost carrier with a delay.
    const auto changes_from = [&](const std::string& before) {
      for (int i = 0; i < 300 && datapath->why_link_is_down() == before; ++i) usleep(10'000);
      return datapath->why_link_is_down();
    };
    std::string last =
        changes_from("interface v0 has no carrier; check its cable, or bring the interface at its other end up");
    std::string said = last + "|";
    for (const char* const what : {"ip link set v1 down", "ip link set v0 down", "ip link del v0"}) {
      if (std::system(what) != 0) return std::string("ip fails");
      last = changes_from(last);
      said += last + "|";
    }
    return said + error_of({.device = "udp:v0"}, place("10.9.0.1"));
  });
  if (is_skipped(verdict)) GTEST_SKIP() << verdict;
  EXPECT_THAT(
      verdict,
      "|interface v0 has no carrier; check its cable, or bring the interface at its other end up|interface v0 is down; "
      "bring it up: ip link set dev v0 up|interface v0 no longer exists; create it again, with its other end if it is "
      "a pair (veth)|there is no interface \"v0\" in this network namespace; `ip link` lists the existing ones");
}

TEST(UdpDatapath, path_that_is_said_to_be_too_narrow__is_told_with_the_cure_and_used) {
  const std::string verdict = in_namespace([] {
    register_datapath();
    if (std::system("ip route add 10.8.0.0/24 via 10.9.0.2 mtu lock 1000") != 0) return std::string("ip fails");
    const auto datapath = open_host_datapath({.device = "udp:v0"});
    datapath->take_place(place("10.9.0.1"));
    const Address to = Address::parse("10.8.0.1", 7);
    std::vector<std::byte> bytes(1372);
    const std::vector<TxPacket> packets(
        3, {&to, std::span(bytes).first(32), std::span(bytes).subspan(32), Ecn::not_ect, 0, nullptr});
    std::string said;
    for (std::uint32_t i = 0; i < 2 * SocketIo::kNarrowPathCalls + 10; ++i) {
      if (datapath->io(0).send(packets) != 3) return std::string("it was not taken");
      if (i % SocketIo::kNarrowPathCalls < 2) said += datapath->why_silent(to) + "|";
    }
    said += datapath->why_link_is_down() + datapath->why_silent(Address::parse("10.9.0.2", 7));
    // When the link is down, the datapath reports this and no longer the narrow path.
    if (std::system("ip link set v0 down") != 0) return std::string("ip fails");
    for (int i = 0; i < 300 && datapath->why_link_is_down().empty(); ++i) usleep(10'000);
    return fmt::format("{} unsent, {}{}", datapath->losses().unsent, said, datapath->why_silent(to));
  });
  if (is_skipped(verdict)) GTEST_SKIP() << verdict;
  // The packets are still sent, because anybody can forge the kernel's information about the path MTU.
  std::string expected = "0 unsent, ";
  for (int i = 0; i < 6; ++i)
    expected +=
        "packets of 1400 bytes are too long for the path to 10.8.0.1; give all hosts a lower MTU (--mtu), or raise the "
        "MTU of the interfaces between|";
  EXPECT_EQ(verdict, expected + "interface v0 is down; bring it up: ip link set dev v0 up");
}

TEST(UdpDatapath, neighbour_that_does_not_answer__is_not_resolved) {
  const std::string verdict = in_namespace([] {
    register_datapath();
    const auto datapath = open_host_datapath({.device = "udp:v0"});
    datapath->take_place(place("10.9.0.1"));
    if (datapath->resolve(0, Address::parse("10.250.0.1", 7))) return std::string("known, and there is no way");
    const Address to = Address::parse("10.9.0.77", 7);
    std::array<std::byte, 50> bytes{};
    const TxPacket packet{&to, bytes, {}, Ecn::not_ect, 0, nullptr};
    datapath->io(0).send({&packet, 1});
    return std::string(datapath->resolve(0, to) ? "known" : "asked for");
  });
  if (is_skipped(verdict)) GTEST_SKIP() << verdict;
  EXPECT_THAT(verdict, "asked for");
}

TEST(UdpDatapath, examine__tells_what_sockets_give_here) {
  const Examination found = examine();
  EXPECT_TRUE(found.works) << found.detail;
  EXPECT_THAT(found.detail, AllOf(HasSubstr("no privileges needed"), HasSubstr("receive buffers of up to ")));
}

TEST(UdpDatapath, examine__tells_of_the_buffers_that_a_port_gets) {
  register_datapath();
  // The MTU of the loopback is so large that a port requests the largest permitted buffers.
  const auto datapath = open_host_datapath({.device = "udp:lo"});
  datapath->take_place(place("127.0.0.1"));
  const std::string said = datapath->description();
  const std::string words = "receive buffers of ";
  const std::size_t at = said.find(words);
  ASSERT_NE(at, std::string::npos) << said;
  const std::string size = said.substr(at + words.size(), said.find(" MB", at) - at - words.size());
  EXPECT_THAT(examine().detail, HasSubstr("receive buffers of up to " + size + " MB"));
}

TEST(UdpDatapath, description__names_the_device_once) {
  register_datapath();
  const auto datapath = open_host_datapath({.device = "udp:"});
  datapath->take_place(place("127.0.0.1"));
  EXPECT_THAT(datapath->description(), StartsWith("udp: kernel UDP sockets"));
}

}  // namespace
}  // namespace mltcp::socket
