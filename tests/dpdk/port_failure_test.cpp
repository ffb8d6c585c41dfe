// Tests everything that can prevent DPDK or a port from starting, and the line that the user then sees. The test
// produces each failure for real if it can. The lines of docs/reference/port-failures.md are this program's output:
//
//   dpdk_port_failure_test --gtest_brief=1 | grep '^|'
#include <gmock/gmock.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/dpdk/ring_port.h"
#include "net_fixture.h"

namespace mltcp::dpdk {
namespace {

constexpr std::string_view kInput = "input: ";
constexpr std::string_view kRun = "run: ";

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return std::string(kInput) + error.what();
  } catch (const RunError& error) {
    return std::string(kRun) + error.what();
  }
  return "no error";
}

/// Prints each failure, and collects the failures that differ from the expected ones.
class Table {
 public:
  /// The error must begin with `expected`: the kind of the error and the beginning of its line. The line must also
  /// contain `cure`.
  template <typename Call>
  void row(const std::string& what, const std::string& expected, const std::string& cure, Call call) {
    const std::string error = error_of(call);
    const std::string line = error.substr(error.find(' ') + 1);
    fmt::print("| {} | `{}` |\n", what, line);
    std::fflush(stdout);
    if (error.rfind(expected, 0) != 0 || line.find(cure) == std::string::npos || line.find('\n') != std::string::npos) {
      problems += fmt::format("{}: {}\n", what, error);
    }
  }
  void port(const std::string& what, const Eal& eal, const PortConfig& config, std::string_view kind,
            const std::string& text, const std::string& cure) {
    row(what, fmt::format("{}port \"{}\": {}", kind, config.device, text), cure, [&] { const Port port(eal, config); });
  }
  /// Checks that the port opens, which shows that earlier failures have left nothing behind.
  void fine(const Eal& eal, const PortConfig& config) {
    const std::string error = error_of([&] { const Port port(eal, config); });
    if (error != "no error") problems += fmt::format("{} then: {}\n", config.device, error);
  }
  std::string problems;
};

std::string idle_part(const Channel& other) {
  [[maybe_unused]] const bool heard = other.receives('e');
  return "";
}

/// Runs `part` in a separate network namespace with the interface ve0.
void play_alone(const std::function<void(Table&)>& part) {
  const Pair played = play(
      [&](const Channel& /*other*/) {
        Table table;
        part(table);
        return table.problems;
      },
      idle_part);
  if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right;
  EXPECT_EQ(played.left, "");
}

bool has_af_xdp() {
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

TEST(PortFailure, configuration) {
  play_alone([](Table& table) {
    run_command("ip link set lo up; ip link add vdown type veth peer name vdown1");
    const Eal eal(small_eal(96));
    const auto port = [&](const std::string& what, const PortConfig& config, std::string_view kind,
                          const std::string& text,
                          const std::string& cure) { table.port(what, eal, config, kind, text, cure); };
    port("a name that can't be read", {.device = "eth0"}, kInput, "\"eth0\" is no kind of port",
         "write af_packet:IFACE");
    table.row("no such interface", "input: there is no interface \"eth9\"", "`ip link` lists",
              [&] { const Port none(eal, {.device = "af_packet:eth9"}); });
    port("interface down", {.device = "af_packet:vdown"}, kRun, "interface vdown is down", "ip link set dev vdown up");
    port("no Ethernet", {.device = "af_packet:lo"}, kInput, "lo is no Ethernet interface", "make a pair: ip link add");
    port("MTU above the interface's", {.device = "af_packet:ve0", .mtu = 9000}, kInput, "an MTU of 9000, but ve0 has",
         "ip link set dev ve0 mtu 9000");
    port("MTU that none has", {.device = "af_packet:ve0", .mtu = 100}, kInput, "an MTU of 100 bytes", "give 576");
    port("too many queues for any port", {.device = "af_packet:ve0", .queues = 65}, kInput, "65 queues",
         "give 1 to 64");
    port("descriptors", {.device = "af_packet:ve0", .descriptors = 8}, kInput, "queues of 8 packets",
         "give 64 to 4096");
    port("VLAN", {.device = "af_packet:ve0", .vlan = 4095}, kInput, "VLAN 4095", "give 1 to 4094");
    port("short buffers on a port that can't scatter", {.device = "af_packet:ve0", .buffer_bytes = 512}, kInput,
         "af_packet can't scatter", "leave their length out");
    table.row("no memory", "run: DPDK has no memory for 900512 packet buffers", "MB more",
              [&] { const Port big(eal, {.device = "af_packet:ve0", .spare_buffers = 900'000}); });
    port("no driver library", {.device = "net_nosuch0"}, kRun, "DPDK has no driver net_nosuch", "install Debian's");
    port("no such NIC, where DPDK was started without one", {.device = "0000:3d:00.0"}, kRun,
         "there is no PCI device 0000:3d:00.0", "`lspci -D` lists");
    table.row("memif: path too long", "input: port \"memif:/xxx", "and a socket's has 107 at most; write a shorter one",
              [&] { const Port long_path(eal, {.device = "memif:/" + std::string(119, 'x')}); });
    port("memif: no such folder", {.device = "memif:/nosuch/m,role=server"}, kRun,
         "the folder of /nosuch/m does not exist", "make it");
    port("memif: no server", {.device = "memif:/tmp/nobody.sock"}, kRun, "no process listens on /tmp/nobody.sock",
         "role=server,id=0 first");
    port("tap: name taken", {.device = "tap:ve0"}, kInput, "there is an interface ve0 already", "af_packet:ve0");
    {
      const Port first(eal, {.device = "af_packet:ve0"});
      port("used by this process", {.device = "af_packet:ve0"}, kRun,
           "this process has that device already, as af_packet:ve0", "put more shards on that port");
      if (has_af_xdp())
        port("the same with other sockets", {.device = "af_xdp:ve0"}, kRun,
             "this process has that device already, as af_packet:ve0", "or use another device for this one");
      const Port ring(eal, {.device = "ring:loop"});
      port("ring: name taken", {.device = "ring:loop"}, kRun, "this process has that device already, as ring:loop",
           "put more shards on that port");
      const std::string memif = fmt::format("memif:/tmp/mltcp-failure-test-ends-{}.sock", getpid());
      const Port server(eal, {.device = memif + ",role=server"});
      port("memif: both ends in one process", {.device = memif}, kRun,
           fmt::format("this process has that device already, as {},role=server", memif), "use ring:left,to=right");
    }
    for (const std::uint16_t udp : {std::uint16_t{0}, std::uint16_t{65535}}) {
      const Port two(eal, {.device = "ring:two", .queues = 2});
      table.row("UDP port", fmt::format("input: UDP port {} for the first of 2 shards", udp), "give 1 to 65534",
                [&] { const PortHost host(eal, two, {.address = Address::v4(0x0A090001, udp)}); });
    }
    {
      std::vector<std::unique_ptr<Port>> all;
      while (free_ports() > 0) {
        all.push_back(std::make_unique<Port>(
            eal, PortConfig{.device = fmt::format("ring:r{}", all.size()), .descriptors = 64, .spare_buffers = 256}));
      }
      port("too many ports", {.device = "af_packet:ve0"}, kRun,
           fmt::format("DPDK allows {} ports and all are in use", max_ports()), "close one");
    }
    for (int again = 0; again < 3; ++again) table.fine(eal, {.device = "af_packet:ve0"});
    if (free_ports() != max_ports()) table.problems += "ports were not given back";
  });
}

TEST(PortFailure, start_of_dpdk) {
  play_alone([](Table& table) {
    // The mount namespace is created before DPDK starts threads, so that these threads use the same mounts.
    const bool has_own_mounts =
        unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    const auto start = [&](const std::string& what, const EalOptions& options, const std::string& text,
                           const std::string& cure) { table.row(what, text, cure, [&] { const Eal eal(options); }); };
    EalOptions options = small_eal();
    options.cores = "0;1";
    start("a core list that can't be read", options, "input: core list \"0;1\": \"0;1\" is not a CPU number",
          "such as 0 or 0,1");
    options.cores = "4095";
    start("a core that the process may not use", options, "input: core list \"4095\": CPU 4095 is not among",
          "write for example");
    options.cores = "0,0";
    start("a core twice", options, "input: core list \"0,0\": CPU 0 is named twice", "name each once");
    options = small_eal(8);
    start("too little memory asked for", options, "input: DPDK memory of 8 MB", "give 32 to 65536");
    options = small_eal(65536);
    options.huge_pages = EalOptions::HugePages::required;
    start("no huge pages", options, "run: 65536 MB of huge pages are not free", "/proc/sys/vm/nr_hugepages");
    options = small_eal();
    options.devices = {"eth0"};
    start("NIC without an address", options, "input: port \"eth0\"", "a PCI address");
    options.devices = {"af_packet:eth0", "0000:3b:00.0", "0000:3c:00.0"};
    const Eal eal(options);
    options.huge_pages = EalOptions::HugePages::required;
    start("another kind of pages than DPDK runs with", options,
          "run: all ports of a process share one DPDK, which already runs in ordinary pages, but huge ones are "
          "requested here",
          "before the first port is opened");
    options = small_eal();
    options.min_shared_mb = 256;
    start("more memory than DPDK runs with", options,
          "run: all ports of a process share one DPDK, which already runs with 64 MB in ordinary pages, which can't "
          "grow, but 256 MB are requested here",
          "request that when opening the first port");
    table.port("no such NIC", eal, {.device = "0000:3b:00.0"}, kRun, "there is no PCI device 0000:3b:00.0",
               "`lspci -D` lists");
    // In this file system, the NIC has no driver.
    if (!has_own_mounts || mount("none", "/sys/bus/pci/devices", "tmpfs", 0, nullptr) != 0 ||
        !std::filesystem::create_directories("/sys/bus/pci/devices/0000:3c:00.0/iommu_group")) {
      return;
    }
    table.port("NIC without a driver", eal, {.device = "3c:00.0"}, kRun,
               "DPDK has no driver that takes NIC 0000:3c:00.0", "dpdk-devbind.py -b vfio-pci 0000:3c:00.0");
  });
}

TEST(PortFailure, nic_that_comes_after_the_start_of_dpdk) {
  play_alone([](Table& table) {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/sys/bus/pci/devices", "tmpfs", 0, nullptr) != 0) {
      return;
    }
    const Eal eal(small_eal());  // starts while the file system shows no NIC
    table.fine(eal, {.device = "ring:loop"});
    if (!std::filesystem::create_directories("/sys/bus/pci/devices/0000:3c:00.0/iommu_group")) return;
    table.port("the same, after DPDK was started without one", eal, {.device = "3c:00.0"}, kRun,
               "DPDK has no driver that takes NIC 0000:3c:00.0", "dpdk-devbind.py -b vfio-pci 0000:3c:00.0");
  });
}

/// Removes all capabilities of the process.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  return syscall(SYS_capset, &header, none.data()) == 0;
}

TEST(PortFailure, without_permission) {
  play_alone([](Table& table) {
    if (!drop_capabilities()) {
      table.problems = "capabilities can't be dropped";
      return;
    }
    const Eal eal(small_eal());
    const auto row = [&](const std::string& what, const std::string& device, const std::string& text,
                         const std::string& cure) {
      table.row(what, fmt::format("run: {}", text), cure, [&] { const Port port(eal, {.device = device}); });
    };
    row("no permission", "af_packet:ve0", "port \"af_packet:ve0\": no permission to open packet sockets",
        "CAP_NET_RAW");
    if (has_af_xdp() || errno == EPERM) {
      row("no permission", "af_xdp:ve0", "port \"af_xdp:ve0\": no permission to open AF_XDP sockets",
          "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF");
    }
    if (access("/dev/net/tun", R_OK | W_OK) == 0) {
      row("tap: no permission", "tap:mltcp0", "port \"tap:mltcp0\": the kernel does not make interface mltcp0",
          "CAP_NET_ADMIN");
    }
    table.fine(eal, {.device = "ring:loop"});
  });
}

TEST(PortFailure, short_of_what_the_kernel_gives) {
  play_alone([](Table& table) {
    const Eal eal(small_eal());
    {
      // Limits the address space to its current size and 8 MiB for the pools.
      std::ifstream file("/proc/self/statm");
      std::uint64_t pages = 0;
      file >> pages;
      rlimit before{};
      getrlimit(RLIMIT_AS, &before);
      const rlimit tight{(pages << 12) + (std::uint64_t{8} << 20), before.rlim_max};
      setrlimit(RLIMIT_AS, &tight);
      table.port("no room for the kernel's rings", eal, {.device = "af_packet:ve0", .descriptors = 4096}, kRun,
                 "the kernel has no room for rings of 4096 packets", "ask for fewer descriptors");
      setrlimit(RLIMIT_AS, &before);
    }
    table.fine(eal, {.device = "af_packet:ve0"});
    {
      // The driver computes the number of its fan-out group. A group on another interface already has this number.
      const int other = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
      sockaddr_ll address{};
      address.sll_family = AF_PACKET;
      address.sll_protocol = htons(ETH_P_ALL);
      address.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
      ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      const unsigned number = (static_cast<unsigned>(getpid()) ^ if_nametoindex("ve0")) & 0xFFFFU;
      const int group = static_cast<int>(number | unsigned{PACKET_FANOUT_HASH} << 16U);
      ASSERT_EQ(setsockopt(other, SOL_PACKET, PACKET_FANOUT, &group, sizeof group), 0) << std::strerror(errno);
      table.port("number of the kernel's group taken", eal, {.device = "af_packet:ve0"}, kRun,
                 "the kernel does not group its packet sockets", "start this program again");
      close(other);
    }
    table.fine(eal, {.device = "af_packet:ve0"});
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    table.row("no file can be opened", "run: no socket can be opened", "close some files",
              [&] { const Port port(eal, {.device = "af_packet:ve0"}); });
    setrlimit(RLIMIT_NOFILE, &before);
    table.fine(eal, {.device = "af_packet:ve0"});
  });
}

/// Makes the kernel report that it does not support AF_XDP.
bool hide_af_xdp() {
  constexpr auto at = [](std::size_t offset) { return static_cast<std::uint32_t>(offset); };
  std::array<sock_filter, 6> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at(offsetof(seccomp_data, args))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_XDP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{code.size(), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(PortFailure, af_xdp) {
  if (!has_af_xdp()) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  play_alone([](Table& table) {
    run_command(
        "ip link add vtwo numrxqueues 2 numtxqueues 2 type veth peer name vtwo1; ip link set vtwo up;"
        "ip link add vbig mtu 9000 type veth peer name vbig1 mtu 9000; ip link set vbig up");
    const Eal eal(small_eal());
    table.port("too many queues", eal, {.device = "af_xdp:ve0", .queues = 3}, kInput,
               "3 queues, but ve0 has 1 for AF_XDP", "ethtool -L ve0 combined 3");
    table.port("AF_XDP would miss queues", eal, {.device = "af_xdp:vtwo"}, kInput,
               "vtwo receives on 2 queues, but AF_XDP would serve only 1", "ethtool -L vtwo");
    table.port("MTU above what AF_XDP carries", eal, {.device = "af_xdp:vbig", .mtu = 9000}, kInput,
               "an MTU of 9000, but AF_XDP carries 3502 at most", "af_packet:vbig");
    for (int again = 0; again < 2; ++again) table.fine(eal, {.device = "af_xdp:ve0"});
    if (!hide_af_xdp()) return;
    table.row("kernel without AF_XDP", "run: port \"af_xdp:ve0\": the kernel has no AF_XDP sockets",
              "use af_packet:ve0", [&] { const Port port(eal, {.device = "af_xdp:ve0"}); });
  });
  play_alone([](Table& table) {
    setenv("LIBXDP_OBJECT_PATH", "/nosuch", 1);
    const Eal eal(small_eal());
    table.port("libxdp lacks its BPF programs", eal, {.device = "af_xdp:ve0"}, kRun,
               "libxdp does not find its BPF programs", "set LIBXDP_OBJECT_PATH");
  });
}

TEST(PortFailure, used_by_another) {
  const std::string socket = fmt::format("/tmp/mltcp-failure-test-{}.sock", getpid());
  const Pair both = play(
      [&](const Channel& other) -> std::string {
        if (!other.receives('r')) return "the other end did not start";
        const Eal eal(small_eal());
        Table table;
        table.port("memif: two servers", eal, {.device = fmt::format("memif:{},role=server", socket)}, kRun,
                   "DPDK can't listen on " + socket, "rm " + socket);
        other.tell('e');
        return table.problems;
      },
      [&](const Channel& other) -> std::string {
        const Eal eal(small_eal());
        const Port port(eal, {.device = fmt::format("memif:{},role=server", socket)});
        other.tell('r');
        return other.receives('e') ? "" : "the claimant did not end";
      });
  unlink(socket.c_str());
  if (both.skipped()) GTEST_SKIP() << both.left << " / " << both.right;
  EXPECT_EQ(both.left, "");
  EXPECT_EQ(both.right, "");
}

// If two processes used one interface, each process would lose packets to the other.
TEST(PortFailure, interface_of_another_process) {
  play_alone([](Table& table) {
    std::array<int, 2> ready{};
    std::array<int, 2> ended{};
    if (pipe(ready.data()) != 0 || pipe(ended.data()) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      char word = 'n';
      try {
        const Eal eal(small_eal());
        const Port port(eal, {.device = "af_packet:ve0"});
        word = 'y';
        [[maybe_unused]] auto done = write(ready[1], &word, 1);
        done = read(ended[0], &word, 1);
      } catch (const std::exception&) {
        [[maybe_unused]] const auto done = write(ready[1], &word, 1);
      }
      _exit(0);
    }
    char word = 'n';
    if (read(ready[0], &word, 1) != 1 || word != 'y') table.problems += "the other process has no port\n";
    const Eal eal(small_eal());
    for (const char* const kind : {"af_packet", "af_xdp"}) {
      if (std::string(kind) == "af_xdp" && !has_af_xdp()) continue;
      table.port(fmt::format("{}: used by another process", kind), eal, {.device = fmt::format("{}:ve0", kind)}, kRun,
                 fmt::format("process {} (", child), "uses ve0 already; end it, or use another interface");
    }
    if (write(ended[1], &word, 1) != 1) table.problems += "the other process can't be told to end\n";
    waitpid(child, nullptr, 0);
    table.fine(eal, {.device = "af_packet:ve0"});
  });
}

TEST(PortFailure, memory_that_is_asked_for_is_what_dpdk_takes) {
  // This is the smallest possible port.
  EXPECT_EQ(Port::memory_mb({.device = "ring:r", .descriptors = 64, .spare_buffers = 256}), Eal::kMinMemoryMb);
  EXPECT_GT(Port::memory_mb({.device = "ring:r", .spare_buffers = 100'000}), 200U);
  const std::string error =
      error_of([] { Port::memory_mb({.device = "ring:r", .queues = 64, .spare_buffers = 1U << 20}); });
  EXPECT_THAT(error, testing::AllOf(
                         testing::StartsWith("input: port \"ring:r\": 64 queues with 1048576 spare buffers each need"),
                         testing::EndsWith("give fewer queues, or fewer buffers")));
}

}  // namespace
}  // namespace mltcp::dpdk
