// Tests the information that the kernel gives about interfaces and neighbours. Runs in two network namespaces, which a
// pair of interfaces connects. The kernel removes the namespaces when their processes end.
#include "mltcp/rdma/kernel_routes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <string>

#include "mltcp/base/clock.h"
#include "namespaces.h"

namespace mltcp::rdma {
namespace {

using State = KernelRoutes::State;

using namespaces::between_namespaces;
using namespaces::runs;

constexpr encap::MacAddress kNear{2, 0, 0, 0, 0, 1};
constexpr encap::MacAddress kFar{2, 0, 0, 0, 0, 2};

KernelInterface find_interface(const char* name) {
  const std::array<std::uint32_t, 2> indices{if_nametoindex(name), 9999};
  const auto found = kernel_network()->interfaces(indices);
  return found.size() == 1 ? found[0] : KernelInterface{};
}

/// Returns the final state of the route to `ip`: asks for the MAC address once, then looks the route up again after
/// each kernel event.
KernelRoutes::Way settled(KernelRoutes& routes, const std::string& ip) {
  const Address to = Address::parse(ip, 0);
  KernelRoutes::Way way = routes.find(to, true);
  for (const Nanos end = monotonic_now() + Nanos(20'000'000'000); way.state == State::asked && monotonic_now() < end;) {
    pollfd file{routes.event_file(), POLLIN, 0};
    if (poll(&file, 1, 10'000) != 1) return {State::asked, {}};  // the kernel sent no event within 10 s
    routes.take_events();
    way = routes.find(to, false);
  }
  return way;
}

std::string text_of(const KernelRoutes::Way& way) {
  return fmt::format("state {}, MAC address ending in {}", static_cast<int>(way.state), way.mac[5]);
}

TEST(KernelRoutes, ways__are_those_of_the_kernel) {
  const std::string verdict = between_namespaces([]() -> std::string {
    const KernelInterface v0 = find_interface("v0");
    if (v0.name != "v0" || !v0.is_ethernet || v0.is_vlan || v0.mac != kNear || v0.mtu != 1400)
      return fmt::format("v0 is {} with an MTU of {}", v0.name, v0.mtu);
    const auto has = [&](const char* ip) {
      return std::count(v0.addresses.begin(), v0.addresses.end(), Address::parse(ip, 0)) == 1;
    };
    if (!has("10.9.0.1") || !has("fd09::1")) return "addresses are missing";
    if (find_interface("lo").is_ethernet) return "the loopback is taken for Ethernet";
    const auto v4 = kernel_network()->routes_of(v0, Address::parse("10.9.0.1", 0));
    const auto v6 = kernel_network()->routes_of(v0, Address::parse("fd09::1", 0));
    const KernelRoutes::Way far{State::known, kFar};
    if (v4->find(Address::parse("10.9.0.2", 0), false).state != State::unreachable) return "it was asked for already";
    struct Case {
      KernelRoutes& routes;
      const char* to;
      KernelRoutes::Way way;
    };
    // 10.8.0.9 is behind a router. The host's own addresses, loopback addresses and absent addresses are unreachable.
    for (const Case& one : {Case{*v4, "10.9.0.2", far}, Case{*v4, "10.8.0.9", far}, Case{*v6, "fd09::2", far},
                            Case{*v4, "10.9.0.1", {}}, Case{*v6, "fd09::1", {}}, Case{*v4, "127.0.0.1", {}},
                            Case{*v4, "10.9.0.77", {}}, Case{*v6, "fd09::77", {}}, Case{*v4, "10.9.0.255", {}}})
      if (const KernelRoutes::Way way = settled(one.routes, one.to); way != one.way)
        return fmt::format("the way to {}: {}", one.to, text_of(way));
    // The neighbour's MAC address changes.
    if (!runs("ip neigh replace 10.9.0.2 dev v0 lladdr 02:00:00:00:00:05")) return "no neighbour can be set";
    if (v4->find(Address::parse("10.9.0.2", 0), false).mac[5] != 5) return "another MAC address is not seen";
    if (v4->why_lost() != "" || v6->why_lost() != "") return "lost: " + v4->why_lost() + v6->why_lost();
    if (!runs("ip addr del 10.9.0.1/24 dev v0")) return "the address can't be taken away";
    if (v4->why_lost() != "interface v0 has lost the address 10.9.0.1; give it back: ip addr add 10.9.0.1/24 dev v0")
      return v4->why_lost();
    if (v6->why_lost() != "") return v6->why_lost();
    if (runs("ip link add link v0 name v5 type vlan id 5") && !find_interface("v5").is_vlan)
      return "v5 belongs to a VLAN";
    if (!runs("ip link del v0")) return "the interface can't be taken away";
    if (v6->why_lost() != "interface v0 no longer exists; create it again") return v6->why_lost();
    return "";
  });
  if (verdict.starts_with("skip: ")) GTEST_SKIP() << verdict.substr(6);
  EXPECT_EQ(verdict, "");
}

}  // namespace
}  // namespace mltcp::rdma
