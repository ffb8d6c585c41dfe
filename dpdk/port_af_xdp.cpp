// Ports that use AF_XDP sockets, on Linux 5.11 or later.
#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/log.h"
#include "mltcp/dpdk/port_kernel.h"

namespace mltcp::dpdk {
namespace {

/// Maximum frame in a buffer of one page (PacketPool::Pages): the page minus DPDK's data, 64 bytes of the pool, and the
/// kernel's headroom for received frames (XDP_PACKET_HEADROOM).
constexpr std::uint32_t kXdpFrame =
    4096 - 64 - static_cast<std::uint32_t>(sizeof(rte_mbuf)) - RTE_PKTMBUF_HEADROOM - 256;
/// Number of buffers that the driver keeps in a queue's fill ring.
constexpr std::uint32_t kXdpFill = 2048;
/// Shortest and longest delay between attempts to open a port, in microseconds.
constexpr unsigned kShortestPause = 40'000;
constexpr unsigned kLongestPause = 640'000;

/// Tells libxdp the folder of its BPF programs on Debian, unless the user has set it.
void point_libxdp_to_its_programs() {
  constexpr const char* kVariable = "LIBXDP_OBJECT_PATH";
  if (std::getenv(kVariable) != nullptr) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib", ignored)) {
    const auto folder = entry.path() / "bpf";
    if (!std::filesystem::exists(folder / "xdp-dispatcher.o", ignored)) continue;
    setenv(kVariable, folder.c_str(), 0);
    return;
  }
}

/// Returns the id of the XDP program attached to an interface; 0 if there is none or libbpf fails.
std::uint32_t xdp_program(const std::string& interface) {
  using Query = int (*)(int, int, std::uint32_t*);
  void* const handle = dlopen("libbpf.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  std::uint32_t program = 0;
  if (void* const query = dlsym(handle, "bpf_xdp_query_id")) {
    const auto index = static_cast<int>(if_nametoindex(interface.c_str()));
    if (reinterpret_cast<Query>(query)(index, 0, &program) != 0) program = 0;
  }
  dlclose(handle);
  return program;
}

/// Returns whether a socket of any process is bound to queue `queue` of the interface.
bool xdp_queue_is_taken(const std::string& interface, std::uint16_t queue) {
  constexpr std::uint32_t kChunk = 4096;
  constexpr std::size_t kBytes = 16 * kChunk;
  constexpr int kSlots = 64;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const int socket = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  xdp_umem_reg umem{};
  umem.addr = std::bit_cast<std::uintptr_t>(memory);
  umem.len = kBytes;
  umem.chunk_size = kChunk;
  bool ready = setsockopt(socket, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) == 0;
  for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING}) {
    ready = ready && setsockopt(socket, SOL_XDP, ring, &kSlots, sizeof kSlots) == 0;
  }
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_COPY;
  address.sxdp_ifindex = if_nametoindex(interface.c_str());
  address.sxdp_queue_id = queue;
  const bool taken =
      ready && bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == EBUSY;
  if (socket >= 0) close(socket);
  munmap(memory, kBytes);
  return taken;
}

class AfXdpKind final : public KernelPortKind {
 public:
  AfXdpKind(const PortName& name, const PortConfig& config)
      : KernelPortKind(name, config,
                       {AF_XDP, "AF_XDP", "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
                        "use af_packet:" + name.target + ", or a kernel with CONFIG_XDP_SOCKETS"}) {}

  void look() override {
    KernelPortKind::look();
    const std::string& target = name().target;
    const NetInterface::Queues has = interface()->queues();
    if (config().queues > has.pairs) {
      throw InputError(
          fmt::format("port {0}: {1}, but {2} has {3} for AF_XDP; give {3}, or add some: ethtool -L {2} "
                      "combined {4}",
                      quoted(), plural(config().queues, "queue"), target, has.pairs, config().queues));
    }
    if (config().queues < has.receive) {
      throw InputError(
          fmt::format("port {0}: {1} receives on {2} queues, but AF_XDP would serve only {3} of them; give as many "
                      "queues, or remove some: ethtool -L {1} {4}",
                      quoted(), target, has.receive, config().queues,
                      has.pairs > 1 ? fmt::format("combined {}", config().queues) : "rx 1 tx 1"));
    }
    point_libxdp_to_its_programs();
    capture_xdp_log();
  }

  void adapt(PortPlan& plan) override {
    if (plan.frame() > kXdpFrame) {
      const std::uint32_t max = plan.mtu - (plan.frame() - kXdpFrame);
      if (config().mtu != 0) {
        throw InputError(
            fmt::format("port {}: an MTU of {}, but AF_XDP carries {} at most (a frame must fit in one page); use "
                        "that, or af_packet:{}",
                        quoted(), plan.mtu, max, name().target));
      }
      plan.mtu = max;
    }
    KernelPortKind::adapt(plan);
    plan.buffers = kXdpFill + plan.descriptors + config().spare_buffers;
  }
  std::unique_ptr<PacketPool> make_pool(const std::string& pool, const PortPlan& plan, int node) const override {
    return std::make_unique<PacketPool>(pool, plan.buffers, PacketPool::Pages{}, node);
  }
  [[nodiscard]] std::uint64_t pool_bytes(const PortPlan& plan) const override {
    return PacketPool::memory_bytes(plan.buffers, PacketPool::Pages{});
  }

  /// The kernel frees a queue some time after its socket was closed, because a kernel thread first waits for other
  /// CPUs. The same happens if the process was killed. So a busy queue may soon be free. Frequent attempts would keep
  /// the queue busy, because the query itself binds a socket. Therefore this function waits for free queues with five
  /// increasing delays, 1.24 s in total. start() repeats the opening with the same delays. The query comes before the
  /// opening, because a driver that fails detaches the XDP program of another user of the interface.
  void prepare() override {
    if (xdp_program(name().target) == 0) return;
    unsigned pause = kShortestPause;
    while (queue_is_taken()) {
      if (pause > kLongestPause) throw RunError(why_taken());
      usleep(pause);
      pause *= 2;
    }
    usleep(std::min(pause, kLongestPause));
  }
  /// Records the sockets of this attempt, so that unplug() can close the sockets that the driver leaks. After success,
  /// the driver closes only the first queue's socket. After a failed attempt, it closes no socket.
  void after_try() override {
    const auto made = new_sockets();
    sockets_.insert(sockets_.end(), made.begin(), made.end());
  }
  std::optional<unsigned> pause_before_retry() override {
    if (pause_ > kLongestPause) {
      if (queue_is_taken()) throw RunError(why_taken());
      return std::nullopt;
    }
    const unsigned pause = pause_;
    pause_ *= 2;
    return pause;
  }
  void unplug(std::uint16_t id) override {
    KernelPortKind::unplug(id);
    for (const int socket : all_sockets()) {
      if (std::find(sockets_.begin(), sockets_.end(), socket) != sockets_.end()) close(socket);
    }
    sockets_.clear();
  }

  std::string why_not_plugged(int /*error*/, const PortLog& /*log*/) override { return {}; }
  std::string why_not_started(const PortLog& log) override {
    if (log.has("xdp-dispatcher") || log.has("xsk_def_xdp_prog") || log.has("No such file")) {
      return fmt::format(
          "port {}: libxdp does not find its BPF programs; install libxdp1, or set LIBXDP_OBJECT_PATH "
          "to the folder that has xdp-dispatcher.o{}",
          quoted(), log.words());
    }
    return fmt::format(
        "port {}: AF_XDP does not start on {}{}; it needs CAP_NET_ADMIN, CAP_BPF and locked memory "
        "(ulimit -l unlimited), and a lower MTU on some interfaces; af_packet:{} needs less",
        quoted(), name().target, log.words(), name().target);
  }

  /// Adds the kernel's counters of dropped frames. DPDK's driver counts only one of the reasons for drops, and never
  /// counts frames that a full receive ring dropped.
  void add_statistics(std::vector<std::pair<std::string, std::uint64_t>>& statistics) const override {
    xdp_statistics all{};
    for (const int socket : sockets_) {
      xdp_statistics one{};
      socklen_t size = sizeof one;
      if (getsockopt(socket, SOL_XDP, XDP_STATISTICS, &one, &size) != 0) continue;
      all.rx_dropped += one.rx_dropped;
      all.rx_ring_full += one.rx_ring_full;
      all.rx_fill_ring_empty_descs += one.rx_fill_ring_empty_descs;
    }
    statistics.emplace_back("xdp_rx_dropped", all.rx_dropped);
    statistics.emplace_back("xdp_rx_ring_full", all.rx_ring_full);
    statistics.emplace_back("xdp_rx_fill_ring_empty", all.rx_fill_ring_empty_descs);
  }

 protected:
  std::string arguments(const PortPlan& /*plan*/) override {
    std::string words = fmt::format("iface={},start_queue=0,queue_count={}", name().target, config().queues);
    if (config().busy_budget || interface()->driver() == "veth") {
      words += fmt::format(",busy_budget={}", config().busy_budget.value_or(0));
    }
    return words;
  }

 private:
  [[nodiscard]] bool queue_is_taken() const {
    for (std::uint16_t queue = 0; queue < config().queues; ++queue) {
      if (xdp_queue_is_taken(name().target, queue)) return true;
    }
    return false;
  }
  [[nodiscard]] std::string why_taken() const {
    return fmt::format(
        "port {}: {} is in use with AF_XDP, by another process or another port of this one; end it, or use another "
        "interface",
        quoted(), name().target);
  }

  unsigned pause_ = kShortestPause;
  std::vector<int> sockets_;  ///< sockets that the driver has opened
};

}  // namespace

std::unique_ptr<PortKind> make_af_xdp_kind(PortName name, const PortConfig& config) {
  return std::make_unique<AfXdpKind>(name, config);
}

}  // namespace mltcp::dpdk
