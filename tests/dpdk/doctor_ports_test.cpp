// Tests the doctor's reports on ports, in network namespaces that the test creates.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/doctor.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "net_fixture.h"

namespace mltcp::dpdk {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

bool has_af_xdp() {
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

/// The doctor's checks. Each must be one line, and must contain a cure if and only if its status is not ok.
class Findings {
 public:
  explicit Findings(const std::vector<std::string>& devices = {}) : checks_(examine_ports(devices)) {
    for (const Check& check : checks_) {
      if (check.cure.empty() != (check.status == CheckStatus::ok) ||
          (check.name + check.detail + check.cure).find('\n') != std::string::npos || check.detail.empty()) {
        problems += fmt::format("the form of {}: {} / {}\n", check.name, check.detail, check.cure);
      }
    }
  }
  void expect(const std::string& name, CheckStatus status, const std::string& detail, const std::string& cure = "") {
    for (const Check& check : checks_) {
      if (check.name != name) continue;
      if (check.status != status || check.detail.find(detail) == std::string::npos ||
          check.cure.find(cure) == std::string::npos) {
        problems += fmt::format("{}: {}: {} / {}\n", name, to_text(check.status), check.detail, check.cure);
      }
      return;
    }
    problems += name + " is not there\n";
  }
  std::string problems;

 private:
  std::vector<Check> checks_;
};

/// Runs `part` in a network namespace with the interface ve0.
void play_alone(const std::function<std::string()>& part) {
  const Pair played = play([&](const Channel& /*other*/) { return part(); },
                           [](const Channel& other) -> std::string {
                             for (int i = 0; i < 2 && !other.is_called(); ++i) {
                               [[maybe_unused]] const bool heard = other.receives('e');
                             }
                             return "";
                           });
  if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right;
  EXPECT_EQ(played.left, "");
}

TEST(DoctorPorts, unused_interface__is_opened) {
  if (!has_af_xdp()) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  play_alone([] {
    run_command("ip link add vdown type veth peer name vdown1");
    Findings found;
    found.expect("interface ve0", CheckStatus::ok,
                 "veth, MTU 1500, 1 queue pair of 1 receive queue; af_packet works; af_xdp works with 1 queue");
    found.expect("interface vdown", CheckStatus::warn, "it is down", "ip link set dev vdown up");
    if (run_command("ip -d link show ve0 | grep -q prog/xdp")) found.problems += "an XDP program was left behind";
    return found.problems;
  });
}

TEST(DoctorPorts, mtu_above_what_af_xdp_carries__is_told) {
  if (!has_af_xdp()) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  play_alone([] {
    run_command(
        "ip link set ve0 down; ip link add vbig mtu 9000 type veth peer name vbig1 mtu 9000; ip link set vbig up");
    Findings found;
    found.expect("interface vbig", CheckStatus::warn, "af_packet works; af_xdp", "vbig");
    return found.problems;
  });
}

TEST(DoctorPorts, several_queues__are_all_heard_or_it_says_so) {
  if (!has_af_xdp()) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  play_alone([] {
    run_command(
        "ip link set ve0 down; ip link add vtwo numrxqueues 2 numtxqueues 2 type veth peer name vtwo1; ip link set "
        "vtwo up");
    const auto queues = NetInterface("vtwo").queues();
    Findings found;
    if (queues.pairs == 2) {
      found.expect("interface vtwo", CheckStatus::ok, "af_xdp works with 2 queues");
    } else {
      found.expect("interface vtwo", CheckStatus::warn, "of 2 receive queues AF_XDP can use only 1",
                   "ethtool -L vtwo rx 1 tx 1");
    }
    return found.problems;
  });
}

TEST(DoctorPorts, interface_in_use__is_only_looked_at_unless_it_is_named) {
  play_alone([] {
    run_command(
        "ip address add 10.9.0.1/24 dev ve0;"
        "ip link add v6 type veth peer name v6b; ip address add fd09::1/64 dev v6 nodad; ip link set v6 up;"
        "ip link add br0 type bridge; ip link set br0 up;"
        "ip link add vpart type veth peer name vpart1; ip link set vpart master br0; ip link set vpart up;"
        "ip link add vunder type veth peer name vunder1; ip link set vunder up;"
        "ip link add vroute type veth peer name vroute1; ip link set vroute up; ip route add 10.77.0.0/16 dev vroute");
    run_command("ip link add vheard type veth peer name vheard1; ip link set vheard up");
    const bool tap = run_command("ip tuntap add vtap mode tap && ip link set vtap up");
    const int sniffer = socket(AF_PACKET, SOCK_RAW, 0);
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_ALL);
    place.sll_ifindex = static_cast<int>(if_nametoindex("vheard"));
    bind(sniffer, reinterpret_cast<const sockaddr*>(&place), sizeof place);
    // Adds an interface of the first kind that the kernel supports.
    const bool upper = run_command("ip link add link vunder name vunder.5 type vlan id 5") ||
                       run_command("ip link add link vunder name vunder.5 type macvlan") ||
                       run_command("ip link add link vunder name vunder.5 type ipvlan");
    std::vector<std::string> devices{"af_packet:ve0", "ring:loop", "tap:ve0"};
    if (has_af_xdp()) devices.emplace_back("af_xdp:ve0");
    Findings found(devices);
    found.expect("interface ve0", CheckStatus::warn, "not tried, since it has an address", "--port af_xdp:ve0");
    found.expect("interface v6", CheckStatus::warn, "not tried, since it has an address");
    found.expect("interface vpart", CheckStatus::warn, "not tried, since it is part of a bridge");
    if (upper) found.expect("interface vunder", CheckStatus::warn, "not tried, since other interfaces are built on it");
    found.expect("interface vroute", CheckStatus::warn, "not tried, since it has a route");
    if (tap) found.expect("interface vtap", CheckStatus::warn, "not tried, since a program uses its other end");
    found.expect("interface vheard", CheckStatus::warn, "not tried, since a program listens on it");
    close(sniffer);
    found.expect("port af_packet:ve0", CheckStatus::ok, "net_af_packet, MTU 1500, 1 queue");
    found.expect("port ring:loop", CheckStatus::ok, "net_ring");
    found.expect("port tap:ve0", CheckStatus::missing, "there is an interface ve0 already", "choose another name");
    if (has_af_xdp()) found.expect("port af_xdp:ve0", CheckStatus::ok, "net_af_xdp, MTU 1500, 1 queue");
    return found.problems;
  });
}

TEST(DoctorPorts, interface_that_another_has_with_af_xdp__is_left_to_it) {
  if (!has_af_xdp()) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  play_alone([]() -> std::string {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return "no sockets";
    Host holder(
        [](const Channel& channel) -> std::string {
          const Eal eal(small_eal());
          const Port port(eal, {.device = "af_xdp:ve0"});
          channel.tell('h');
          for (;;) pause();
        },
        ends[1], ends[0]);
    if (!Channel(ends[0]).receives('h')) return "the holder has no port";
    Findings found({"af_xdp:ve0"});
    found.expect("interface ve0", CheckStatus::warn, "it runs an XDP program");
    found.expect("port af_xdp:ve0", CheckStatus::missing, ") uses ve0 already", "end it");
    if (!run_command("ip -d link show ve0 | grep -q prog/xdp")) found.problems += "the holder has lost its XDP program";
    return found.problems;
  });
}

TEST(DoctorPorts, without_permission__says_so) {
  play_alone([]() -> std::string {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    if (syscall(SYS_capset, &header, none.data()) != 0) return "capabilities can't be dropped";
    Findings found({"af_packet:ve0"});
    found.expect("interface ve0", CheckStatus::missing, "no permission to open packet sockets", "CAP_NET_RAW");
    found.expect("port af_packet:ve0", CheckStatus::missing, "no permission to open packet sockets", "run it as root");
    const auto checks = examine_machine();
    const auto permissions =
        std::find_if(checks.begin(), checks.end(), [](const Check& check) { return check.name == "permissions"; });
    if (permissions->detail.find("lacks CAP_NET_ADMIN CAP_NET_RAW") == std::string::npos) {
      found.problems += permissions->detail;
    }
    return found.problems;
  });
}

TEST(DoctorPorts, nics__are_told_by_the_driver_that_is_bound_to_them) {
  play_alone([]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/sys/bus/pci/devices", "tmpfs", 0, nullptr) != 0) {
      return "skip: the PCI bus can't be made up";
    }
    const fs::path bus = "/sys/bus/pci/devices";
    const auto make = [&](const std::string& address, const std::string& driver, const std::string& interface,
                          bool group = false, const char* type = "0x020000") {
      fs::create_directories(bus / address);
      std::ofstream(bus / address / "class") << type << '\n';
      if (!driver.empty()) fs::create_symlink("/nowhere/" + driver, bus / address / "driver");
      if (!interface.empty()) fs::create_directories(bus / address / "net" / interface);
      if (group) fs::create_directories(bus / address / "iommu_group");
    };
    Findings none;
    none.expect("NICs", CheckStatus::warn, "no network device on the PCI bus", "add a NIC");
    run_command("ip link add nic0 type veth peer name nic1; ip address add 10.9.1.1/24 dev nic0; ip link set nic0 up");
    make("0000:01:00.0", "", "", true);
    make("0000:02:00.0", "vfio-pci", "", true);
    make("0000:03:00.0", "vfio-pci", "");
    make("0000:04:00.0", "mlx5_core", "ve0");
    make("0000:05:00.0", "ixgbe", "ve0");
    make("0000:06:00.0", "virtio-pci", "");
    fs::create_directories(bus / "0000:06:00.0" / "virtio3" / "net" / "nic0");
    make("0000:07:00.0", "nvme", "", false, "0x010802");
    make("0000:08:00.0", "virtio-pci", "");
    fs::create_directories(bus / "0000:08:00.0" / "virtio4");
    make("0000:09:00.0", "e1000e", "");
    make("0000:0a:00.0", "ixgbe", "");
    // The folder is empty, because the interface is in another network namespace.
    fs::create_directories(bus / "0000:0a:00.0" / "net");
    Findings found({"0000:01:00.0"});
    found.expect("NIC 0000:01:00.0", CheckStatus::warn, "no driver is bound to it",
                 "dpdk-devbind.py -b vfio-pci 0000:01:00.0");
    found.expect("NIC 0000:02:00.0", CheckStatus::ok, "driver vfio-pci: DPDK can take it as 0000:02:00.0");
    found.expect("NIC 0000:03:00.0", CheckStatus::warn, "but no IOMMU group", "turn the IOMMU on");
    const bool mlx5 = fs::exists("/usr/lib/x86_64-linux-gnu/librte_net_mlx5.so.23");
    found.expect("NIC 0000:04:00.0", mlx5 ? CheckStatus::ok : CheckStatus::missing, "driver mlx5_core, interface ve0");
    found.expect("NIC 0000:05:00.0", CheckStatus::warn, "driver ixgbe, interface ve0: the kernel has it",
                 "or take it from the kernel");
    found.expect("NIC 0000:06:00.0", CheckStatus::warn, "the kernel uses it", "leave it alone");
    found.expect("NIC 0000:08:00.0", CheckStatus::warn, "driver virtio-pci is bound to it, but it has no interface",
                 "to get an interface, load virtio's driver (modprobe virtio_net); for DPDK: ");
    found.expect("NIC 0000:09:00.0", CheckStatus::warn, "driver e1000e is bound to it, but it has no interface",
                 "to get an interface, load its driver again; for DPDK: ");
    found.expect("NICs elsewhere", CheckStatus::warn, "1 network device on the PCI bus", "nsenter --net=");
    found.expect("port 0000:01:00.0", CheckStatus::missing, "", "");
    return none.problems + found.problems;
  });
}

TEST(DoctorPorts, device_that_can_not_be_read__is_the_users_mistake) {
  const std::vector<std::string> devices{"eth0"};
  EXPECT_THROW(examine_ports(devices), InputError);
}

}  // namespace
}  // namespace mltcp::dpdk
