// Examines the machine; see doctor.h.
//
// The facts come from /proc and /sys, and from trials: opening sockets of each kind, and sending a packet through a
// pair of ring ports. The trial of DPDK runs in a child process, with and without huge pages.
#include "mltcp/dpdk/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <rte_config.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "mltcp/base/clock.h"
#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/udp_port.h"

namespace mltcp::dpdk {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTrialMb = 32;

std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

Check check_cpus() {
  const auto cpus = usable_cpus();
  const std::string isolated = first_line("/sys/devices/system/cpu/isolated");
  const std::string detail = fmt::format("{} usable ({}), isolated: {}", cpus.size(), fmt::join(cpus, ","),
                                         isolated.empty() ? "none" : isolated);
  if (cpus.size() < 2) {
    return warn(
        "CPUs", detail,
        "with one CPU, hosts and switch run in turn; for more speed give the process two CPUs (taskset, cpuset)");
  }
  if (isolated.empty()) {
    return warn("CPUs", detail, "for steady timing boot with isolcpus=1 (or a range) and give those CPUs with --cores");
  }
  return ok("CPUs", detail);
}

Check check_tsc() {
  const std::string source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (has_invariant_tsc()) return ok("clock", fmt::format("invariant TSC, kernel clock source {}", source));
  return warn("clock", fmt::format("the TSC is not invariant, kernel clock source {}", source),
              "the slower CLOCK_MONOTONIC is used; on a virtual machine have the host expose invtsc");
}

Check check_huge_pages() {
  std::vector<std::string> found;
  std::uint64_t free_mb = 0;
  for (const auto& entry : entries("/sys/kernel/mm/hugepages")) {
    const fs::path folder = fs::path("/sys/kernel/mm/hugepages") / entry;
    const std::uint64_t kb = std::strtoull(entry.c_str() + std::min<std::size_t>(entry.size(), 10), nullptr, 10);
    const std::uint64_t total = number_in(folder / "nr_hugepages").value_or(0);
    const std::uint64_t free = number_in(folder / "free_hugepages").value_or(0);
    free_mb += free * kb / 1024;
    found.push_back(fmt::format("{}: {} of {} free",
                                kb >= 1048576 ? fmt::format("{} GB", kb >> 20) : fmt::format("{} MB", kb >> 10), free,
                                total));
  }
  std::ifstream mounts("/proc/mounts");
  std::string mount;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device;
    std::string folder;
    std::string type;
    words >> device >> folder >> type;
    if (type == "hugetlbfs") mount = folder;
  }
  const std::string detail =
      fmt::format("{}; {}", found.empty() ? "the kernel has none" : fmt::format("{}", fmt::join(found, ", ")),
                  mount.empty() ? "no hugetlbfs mounted (not needed)" : "hugetlbfs on " + mount);
  if (free_mb >= 128) return ok("huge pages", detail);
  return warn("huge pages", detail,
              "as root: echo 256 > /proc/sys/vm/nr_hugepages (512 MB); otherwise ordinary pages are used");
}

Check check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return ok("locked memory", "unlimited");
  const std::string detail = fmt::format("{} MB may be locked", limit.rlim_cur >> 20);
  if (limit.rlim_cur >= (rlim_t{256} << 20)) return ok("locked memory", detail);
  return warn("locked memory", detail,
              "ring ports need none; for AF_XDP and RDMA raise it: ulimit -l unlimited (as root)");
}

Check check_permissions() {
  std::uint64_t effective = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  struct Capability {
    const char* name;
    unsigned bit;
  };
  // Bit numbers from linux/capability.h. CAP_BPF is missing in the headers of older kernels.
  constexpr std::array<Capability, 5> wanted = {
      {{"CAP_NET_ADMIN", 12}, {"CAP_NET_RAW", 13}, {"CAP_IPC_LOCK", 14}, {"CAP_SYS_ADMIN", 21}, {"CAP_BPF", 39}}};
  std::vector<std::string> have;
  std::vector<std::string> lack;
  for (const auto& capability : wanted) {
    ((effective >> capability.bit & 1) != 0 ? have : lack).emplace_back(capability.name);
  }
  const std::string detail = fmt::format("{}; has {}{}", geteuid() == 0 ? "root" : "not root",
                                         have.empty() ? "no capability" : fmt::format("{}", fmt::join(have, " ")),
                                         lack.empty() ? "" : fmt::format(", lacks {}", fmt::join(lack, " ")));
  if (lack.empty()) return ok("permissions", detail);
  return warn("permissions", detail,
              "ring ports need none of them; for real ports run as root, or use setcap on the program");
}

/// Sends one frame through two ring ports that are connected to each other. Returns the problem, or an empty string if
/// the frame arrived. Throws if a port cannot be made.
std::string try_ring_ports() {
  const PacketPool pool("trialp", 511, 2048);
  const PacketRing there("trial1", 64);
  const PacketRing back("trial2", 64);
  const RingPort a("trial1", back, there, pool);
  const RingPort b("trial2", there, back, pool);
  rte_mbuf* packet = rte_pktmbuf_alloc(pool.get());
  if (packet == nullptr) return "no packet buffer";
  std::memset(rte_pktmbuf_append(packet, 60), 0x5A, 60);
  if (rte_eth_tx_burst(a.id(), 0, &packet, 1) != 1) return "the ring port does not send";
  rte_mbuf* arrived = nullptr;
  if (rte_eth_rx_burst(b.id(), 0, &arrived, 1) != 1) return "the ring port does not receive";
  rte_pktmbuf_free(arrived);
  return pool.in_use() == 0 ? "" : "a packet buffer is lost";
}

/// Starts DPDK in a child process. The result begins with 'o' for success, 'r' if DPDK starts but ring ports fail, or
/// 'e' for an error.
std::string try_dpdk(EalOptions::HugePages huge_pages) {
  return in_child('e', [huge_pages] {
    EalOptions options;
    options.memory_mb = kTrialMb;
    options.huge_pages = huge_pages;
    try {
      const Eal eal(options);
      std::string trouble;
      try {
        trouble = try_ring_ports();
      } catch (const std::exception& error) {
        trouble = error.what();
      }
      return trouble.empty() ? fmt::format("o{}", eal.description()) : fmt::format("r{}", trouble);
    } catch (const std::exception& error) {
      return std::string("e") + error.what();
    }
  });
}

void check_dpdk(std::vector<Check>& checks) {
  const std::string huge = try_dpdk(EalOptions::HugePages::required);
  const std::string ordinary = try_dpdk(EalOptions::HugePages::never);
  const auto text = [](const std::string& result) { return result.substr(1); };
  const bool huge_starts = huge[0] != 'e';
  const bool ordinary_starts = ordinary[0] != 'e';
  checks.push_back(ordinary_starts ? ok("DPDK", fmt::format("starts with ordinary pages ({})", rte_version()))
                                   : missing("DPDK", text(ordinary),
                                             "use the simulator, or reserve huge pages; report DPDK's line"));
  checks.push_back(huge_starts ? ok("DPDK, huge pages", "starts with huge pages")
                               : warn("DPDK, huge pages", text(huge),
                                      "reserve huge pages as above; ordinary pages work, but are somewhat slower"));
  if (ordinary[0] == 'o' || huge[0] == 'o') {
    checks.push_back(
        ok("ring ports",
           fmt::format("a pool of packet buffers was made and a packet passed from port to port; {} ports at most",
                       max_ports())));
  } else {
    checks.push_back(missing("ring ports", ordinary_starts ? text(ordinary) : "not tried, DPDK does not start",
                             "install DPDK's drivers (Debian: librte-net-ring23 and librte-mempool-ring23)"));
  }
}

/// Tries to open a socket with these arguments. Returns 0 on success, or errno on failure.
int try_socket(int family, int type, int protocol) {
  const int descriptor = socket(family, type | SOCK_CLOEXEC, protocol);
  if (descriptor < 0) return errno;
  close(descriptor);
  return 0;
}

Check check_af_xdp() {
  const std::string name = "AF_XDP";
  utsname kernel{};
  uname(&kernel);
  const int error = try_socket(AF_XDP, SOCK_RAW, 0);
  if (error == EAFNOSUPPORT) {
    return missing(name, fmt::format("kernel {} is built without it", kernel.release),
                   "use a kernel with CONFIG_XDP_SOCKETS=y");
  }
  if (error != 0) {
    return missing(name, fmt::format("the kernel refuses a socket: {}", std::strerror(error)),
                   "run as root or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF");
  }
  const bool driver = std::ranges::any_of(
      entries(RTE_EAL_PMD_PATH), [](const std::string& file) { return file.rfind("librte_net_af_xdp.so", 0) == 0; });
  if (!driver) {
    return missing(name, fmt::format("kernel {} has it, DPDK's driver is not installed", kernel.release),
                   "install DPDK's AF_XDP driver (Debian: librte-net-af-xdp23)");
  }
  // libxdp loads this BPF object when a socket takes over a queue.
  std::string object;
  for (const char* const folder : {"/usr/lib", "/usr/lib64", "/usr/local/lib"}) {
    for (const fs::path& base : {fs::path(folder), fs::path(folder) / "x86_64-linux-gnu"}) {
      const fs::path candidate = base / "bpf" / "xsk_def_xdp_prog.o";
      std::error_code ignored;
      if (fs::exists(candidate, ignored)) object = candidate.string();
    }
  }
  if (object.empty()) {
    return missing(name, "kernel and driver are there, libxdp's BPF program is not",
                   "install libxdp (Debian: libxdp1)");
  }
  return ok(name, fmt::format("kernel {}, DPDK driver, {}", kernel.release, object));
}

Check check_af_packet() {
  const int error = try_socket(AF_PACKET, SOCK_RAW, __builtin_bswap16(ETH_P_ALL));
  if (error == 0) return ok("AF_PACKET", "a raw socket opens");
  return missing("AF_PACKET", fmt::format("the kernel refuses a raw socket: {}", std::strerror(error)),
                 "run as root or with CAP_NET_RAW");
}

Check check_drivers() {
  std::vector<std::string> have;
  std::vector<std::string> lack;
  std::vector<std::string> packages;
  const auto files = entries(RTE_EAL_PMD_PATH);
  for (const std::string_view driver : {"af_packet", "af_xdp", "memif", "tap", "ring"}) {
    const bool found = std::ranges::any_of(
        files, [&](const std::string& file) { return file.starts_with(fmt::format("librte_net_{}.so.", driver)); });
    (found ? have : lack).emplace_back(driver);
    if (found) continue;
    std::string package = fmt::format("librte-net-{}23", driver);
    std::replace(package.begin(), package.end(), '_', '-');
    packages.push_back(package);
  }
  const std::string found =
      fmt::format("in {}: {}", RTE_EAL_PMD_PATH,
                  have.empty() ? "none that this project names" : fmt::format("{}", fmt::join(have, ", ")));
  if (lack.empty()) return ok("drivers", found);
  return warn("drivers", fmt::format("{}; not there: {}", found, fmt::join(lack, ", ")),
              fmt::format("for ports of these kinds install them (Debian: {})", fmt::join(packages, " ")));
}

Check check_vfio() {
  std::error_code error;
  const bool device = fs::exists("/dev/vfio/vfio", error);
  const std::size_t groups = entries("/sys/kernel/iommu_groups").size();
  const std::string detail =
      fmt::format("{}, {} IOMMU groups", device ? "/dev/vfio/vfio is there" : "no /dev/vfio/vfio", groups);
  if (device && groups > 0) return ok("vfio", detail);
  return warn("vfio", detail,
              device ? "turn the IOMMU on (firmware, and intel_iommu=on or amd_iommu=on) to bind NICs to DPDK"
                     : "to bind NICs to DPDK load the module: modprobe vfio-pci; ring ports don't need it");
}

Check check_steadiness() {
  // Measures the CPU time taken by the hypervisor, and the interruptions of a spinning thread.
  const auto steal = [] {
    std::istringstream words(first_line("/proc/stat"));
    std::string cpu;
    std::array<std::uint64_t, 8> ticks{};
    words >> cpu;
    for (auto& value : ticks) words >> value;
    std::uint64_t total = 0;
    for (const auto value : ticks) total += value;
    return std::pair{ticks[7], total};
  };
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  const Nanos start = monotonic_now();
  Nanos last = start;
  Nanos longest;
  while (last - start < Nanos(200'000'000)) {
    const Nanos now = monotonic_now();
    longest = std::max(longest, now - last);
    last = now;
  }
  const auto [stolen, total] = steal();
  const double percent = total == 0 ? 0.0 : 100.0 * static_cast<double>(stolen) / static_cast<double>(total);
  const std::string detail = fmt::format(
      "a busy thread was interrupted for {:.0f} us at most in 200 ms; {:.1f}% of CPU time stolen since boot{}",
      static_cast<double>(longest.count) * 1e-3, percent, governor.empty() ? "" : "; frequency governor " + governor);
  if (!governor.empty() && governor != "performance") {
    return warn("steadiness", detail, "as root: cpupower frequency-set -g performance");
  }
  if (longest > Nanos(1'000'000) || percent > 1.0) {
    return warn("steadiness", detail,
                "stop other load, isolate CPUs or use a dedicated machine; results report the stalls");
  }
  return ok("steadiness", detail);
}

}  // namespace

Check check_rdma(const fs::path& folder) {
  std::vector<std::string> devices;
  bool roce = false;
  for (const std::string& device : entries(folder)) {
    bool ethernet = false;
    for (const std::string& port : entries(folder / device / "ports"))
      ethernet = ethernet || first_line(folder / device / "ports" / port / "link_layer") == "Ethernet";
    // An iWARP device uses TCP, not RoCE.
    if (first_line(folder / device / "node_type").starts_with("4")) ethernet = false;
    devices.push_back(ethernet ? device + " (RoCE)" : device);
    roce = roce || ethernet;
  }
  if (devices.empty())
    return warn("RDMA", "no device",
                "for tests without an RDMA NIC: modprobe rdma_rxe, then rdma link add rxe0 type rxe netdev eth0");
  std::string detail = fmt::format("{}", fmt::join(devices, ", "));
  if (roce)
    detail += fmt::format("; RoCE uses UDP port {} itself: give mltcp gen --udp-port another one", kRoceUdpPort);
  return ok("RDMA", detail);
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string in_child(char otherwise, const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return fmt::format("{}a pipe for a trial can't be made: {}", otherwise, std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) {
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
    }
    std::string result;
    try {
      result = work();
    } catch (const std::exception& error) {
      result = otherwise + std::string(error.what());
    }
    _exit(write(ends[1], result.data(), result.size()) == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return fmt::format("{}a process for a trial can't be started: {}", otherwise, std::strerror(errno));
  }
  std::string result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{ends[0], POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    std::array<char, 1024> buffer{};
    const ssize_t size = ready > 0 ? read(ends[0], buffer.data(), buffer.size()) : -1;
    if (size > 0) {
      result.append(buffer.data(), static_cast<std::size_t>(size));
      continue;
    }
    if (ready == 0) result = fmt::format("{}the trial did not end within 20 s", otherwise);
    break;
  }
  close(ends[0]);
  kill(child, SIGKILL);  // the child may still run, but its result is no longer needed
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (result.empty()) {
    result = WIFSIGNALED(status) ? fmt::format("{}the trial was ended by signal {}", otherwise, WTERMSIG(status))
                                 : fmt::format("{}the trial exited without a result", otherwise);
  }
  return result;
}

std::string_view to_text(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "ok";
    case CheckStatus::warn:
      return "warn";
    case CheckStatus::missing:
      return "missing";
  }
  return "unknown";
}

std::vector<Check> examine_machine() {
  std::vector<Check> checks{check_cpus(), check_tsc(), check_huge_pages(), check_locked_memory(), check_permissions()};
  if (Eal::was_started()) {
    checks.push_back(ok("DPDK", fmt::format("is running in this process ({})", rte_version())));
  } else {
    check_dpdk(checks);
  }
  for (auto* const check : {check_af_xdp, check_af_packet, check_drivers, check_vfio}) checks.push_back(check());
  checks.push_back(check_rdma("/sys/class/infiniband"));
  checks.push_back(check_steadiness());
  return checks;
}

}  // namespace mltcp::dpdk
