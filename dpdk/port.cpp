// Ports of all kinds; see port.h.
//
// What a driver would refuse without saying why is looked at before: the interface, its state, MTU and queues, the
// sockets that the driver opens. What is left is explained from what the drivers log.
#include "mltcp/dpdk/port.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/eal_exit.h"
#include "mltcp/dpdk/interface_claim.h"
#include "mltcp/dpdk/log.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/ring_port.h"

namespace mltcp::dpdk {
namespace {

using Kind = PortName::Kind;

constexpr std::uint32_t kShortestMtu = 576;
constexpr std::uint32_t kLongestMtu = 9000;
constexpr std::uint32_t kUsualMtu = 1500;
constexpr std::uint32_t kTagBytes = 4;
/// Room for something longer than allowed, so that it can be seen and refused.
constexpr std::uint32_t kSlack = 64;
/// Longest frame of AF_XDP in a buffer that is a page (PacketPool::Pages): less what DPDK has in it, 64 bytes for the
/// pool, and what the kernel puts before a received frame (XDP_PACKET_HEADROOM).
constexpr std::uint32_t kXdpFrame =
    4096 - 64 - static_cast<std::uint32_t>(sizeof(rte_mbuf)) - RTE_PKTMBUF_HEADROOM - 256;
/// Buffers that the AF_XDP driver keeps in the fill ring of a queue.
constexpr std::uint32_t kXdpFill = 2048;
/// Of a slot in a packet socket's ring: its header before a frame that is received, and before one that is sent.
constexpr std::uint32_t kSlotReceive = 96;
constexpr std::uint32_t kSlotSend = 32;

bool uses_interface(Kind kind) { return kind == Kind::af_packet || kind == Kind::af_xdp; }

/// What follows from a configuration before there is a port.
struct Plan {
  std::uint32_t mtu = 0;
  std::uint32_t slot_bytes = 0;  ///< of a packet socket's ring
  std::uint32_t room = 0;        ///< bytes of a frame in one buffer
  std::uint32_t buffers = 0;     ///< per queue pair
  std::uint32_t descriptors = 0;
};

void check(const PortConfig& config) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(fmt::format("port {}: {}", in_quotes(config.device), what));
  };
  if (config.mtu != 0 && (config.mtu < kShortestMtu || config.mtu > kLongestMtu)) {
    refuse(fmt::format("an MTU of {} bytes; give {} to {}", config.mtu, kShortestMtu, kLongestMtu));
  }
  if (config.queues < 1 || config.queues > 64) refuse(fmt::format("{} queues; give 1 to 64", config.queues));
  if (config.descriptors < 64 || config.descriptors > 4096) {
    refuse(fmt::format("queues of {} packets; give 64 to 4096", config.descriptors));
  }
  if (config.spare_buffers < 256 || config.spare_buffers > (1U << 20)) {
    refuse(fmt::format("{} spare buffers; give 256 to {}", config.spare_buffers, 1U << 20));
  }
  if (config.vlan > 4094) refuse(fmt::format("VLAN {}; give 1 to 4094, or 0 for none", config.vlan));
  if (config.buffer_bytes != 0 && (config.buffer_bytes < 256 || config.buffer_bytes > 16384)) {
    refuse(fmt::format("buffers of {} bytes; give 256 to 16384, or 0 for as long as a frame", config.buffer_bytes));
  }
}

Plan plan_for(const PortName& name, const PortConfig& config, const NetInterface* interface) {
  Plan plan;
  plan.mtu = config.mtu != 0 ? config.mtu : kUsualMtu;
  if (interface != nullptr) {
    const std::uint32_t has = interface->mtu();
    if (config.mtu > has) {
      throw InputError(fmt::format("port {0}: an MTU of {1}, but {2} has {3}; set it: ip link set dev {2} mtu {1}",
                                   in_quotes(config.device), config.mtu, name.target, has));
    }
    if (config.mtu == 0) plan.mtu = std::clamp(has, kShortestMtu, kLongestMtu);
  }
  const auto frame = [&] { return plan.mtu + static_cast<std::uint32_t>(encap::kEthernetBytes) + kTagBytes; };
  if (name.kind == Kind::af_xdp && frame() > kXdpFrame) {
    const std::uint32_t most = plan.mtu - (frame() - kXdpFrame);
    if (config.mtu != 0) {
      throw InputError(
          fmt::format("port {}: an MTU of {}, but AF_XDP carries {} at most (a frame lives in one page); "
                      "use that, or af_packet:{}",
                      in_quotes(config.device), plan.mtu, most, name.target));
    }
    plan.mtu = most;
  }
  if (config.buffer_bytes != 0 && uses_interface(name.kind)) {
    throw InputError(fmt::format("port {}: {} can't scatter frames over short buffers; leave their length out",
                                 in_quotes(config.device), to_text(name.kind)));
  }
  plan.descriptors = std::bit_ceil(config.descriptors);
  plan.buffers = 2 * plan.descriptors + config.spare_buffers;
  plan.room = config.buffer_bytes != 0 ? config.buffer_bytes : frame() + kSlack;
  if (name.kind == Kind::af_packet) {
    plan.slot_bytes = std::bit_ceil(std::max(frame() + kSlack + kSlotReceive, 2048U));
    plan.room = plan.slot_bytes - kSlotSend;
    plan.buffers = config.spare_buffers + 512;  // the slots hold no buffers
  } else if (name.kind == Kind::af_xdp) {
    plan.buffers = kXdpFill + plan.descriptors + config.spare_buffers;
  } else if (name.kind == Kind::memif) {
    plan.buffers = config.spare_buffers + 512;
  }
  return plan;
}

/// NUMA node of the device behind an interface; -1 if it has none.
int node_of(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/device/numa_node");
  int node = -1;
  file >> node;
  return file ? node : -1;
}

/// Opens the kind of socket that the driver opens, to tell what stands in its way.
void check_socket(const PortName& name) {
  const bool xdp = name.kind == Kind::af_xdp;
  const int socket = ::socket(xdp ? AF_XDP : AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  const int error = errno;
  if (socket >= 0) {
    close(socket);
    return;
  }
  const std::string_view what = xdp ? "AF_XDP" : "packet";
  if (error == EPERM || error == EACCES) {
    throw RunError(fmt::format("port \"{}:{}\": no permission to open {} sockets; run it as root, or give it {}",
                               to_text(name.kind), name.target, what,
                               xdp ? "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF" : "CAP_NET_RAW"));
  }
  throw RunError(fmt::format(
      "port \"{}:{}\": the kernel has no {} sockets ({}); {}", to_text(name.kind), name.target, what,
      std::strerror(error),
      xdp ? "use af_packet:" + name.target + ", or a kernel with CONFIG_XDP_SOCKETS" : "build it with CONFIG_PACKET"));
}

/// Tells libxdp where Debian keeps its BPF programs, unless the user has.
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

/// Number of the XDP program that an interface runs; 0 if it runs none or libbpf does not tell.
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

/// Open sockets of this process, of AF_XDP or AF_PACKET, in the order of their numbers.
std::vector<int> sockets_of(int family) {
  std::vector<int> sockets;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int file = std::atoi(entry.path().filename().c_str());
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == family) sockets.push_back(file);
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

/// Whether a socket is bound to that queue of the interface, of whatever process.
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

/// DPDK makes one port after the other.
std::mutex& set_up_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// For devices that have none. DPDK's own are the same in processes that were forked before DPDK started.
std::string random_mac() {
  std::random_device source;
  std::string text = "02";
  for (int i = 0; i < 5; ++i) text += fmt::format(":{:02x}", source() & 0xFF);
  return text;
}

std::uint64_t only_if(bool wanted, std::uint64_t offloads) { return wanted ? offloads : 0; }

}  // namespace

struct Port::Impl {
  explicit Impl(const PortConfig& config_) : config(config_), name(parse_port_name(config_.device)) { check(config); }
  ~Impl() {
    const std::lock_guard lock(set_up_mutex());
    release();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// What of it was done when it throws, the destructor undoes.
  void open(const Eal& eal) {
    const std::lock_guard lock(set_up_mutex());
    log_mark = log_count();
    if (!uses_interface(name.kind) && name.kind != Kind::ring) leave_memory_to_exit();
    if (uses_interface(name.kind)) {
      look_at_interface();
      claim_interface();
    }
    if (name.kind == Kind::tap) look_at_tap();
    plan = plan_for(name, config, interface.get());
    if (name.kind == Kind::pci) {
      find_pci(eal);
      make_pools(rte_eth_dev_socket_id(id));
    } else {
      make_pools(uses_interface(name.kind) ? node_of(name.target) : -1);
    }
    start();
    after_start();
  }

  [[nodiscard]] std::string quoted() const { return in_quotes(config.device); }

  /// The kernel gives an AF_XDP queue free some time after its socket was closed (it waits for other CPUs, in a worker
  /// thread), also when its process was killed: what is busy now may be free in a moment. Trying too often keeps it
  /// busy: so five pauses, 1.24 s in all, until nobody has it, and as many more to open it. The first ones may all be
  /// gone by then, and what asked about the queue had it itself.
  void start() {
    constexpr unsigned kFirstPause = 40'000;  // microseconds
    constexpr unsigned kLongestPause = 640'000;
    unsigned pause = kFirstPause;
    const bool xdp = name.kind == Kind::af_xdp;
    // The driver, when it fails, takes the XDP program of whoever has the interface away. So ask first.
    if (xdp && xdp_program(name.target) != 0) {
      while (queue_is_taken()) {
        if (pause > kLongestPause) throw RunError(why_taken());
        usleep(pause);
        pause *= 2;
      }
      usleep(std::min(pause, kLongestPause));
    }
    for (pause = kFirstPause;; pause *= 2) {
      const int family = xdp ? AF_XDP : AF_PACKET;
      const bool looks = uses_interface(name.kind) && (xdp || config.interrupts);
      const auto others = looks ? sockets_of(family) : std::vector<int>();
      const auto new_sockets = [&] {
        const auto all = sockets_of(family);
        std::vector<int> made;
        std::set_difference(all.begin(), all.end(), others.begin(), others.end(), std::back_inserter(made));
        return made;
      };
      // The driver of AF_XDP forgets to close some: all but the first queue's, and those that it failed with.
      const auto note_sockets = [&] {
        if (!xdp) return;
        const auto made = new_sockets();
        sockets.insert(sockets.end(), made.begin(), made.end());
      };
      try {
        if (name.kind != Kind::pci) plug();
        configure();
        note_sockets();
        // Drivers make one for each queue, in their order, and the kernel gives each the lowest number that is free.
        if (config.interrupts && uses_interface(name.kind)) receive_files = new_sockets();
        if (receive_files.size() != config.queues) receive_files.clear();
        return;
      } catch (const RunError&) {
        if (!xdp || !plugged) throw;
        note_sockets();
        release();
        if (pause > kLongestPause) {
          if (queue_is_taken()) throw RunError(why_taken());
          throw;
        }
      }
      usleep(pause);
    }
  }

  [[nodiscard]] bool queue_is_taken() const {
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      if (xdp_queue_is_taken(name.target, queue)) return true;
    }
    return false;
  }

  [[nodiscard]] std::string why_taken() const {
    return fmt::format(
        "port {}: {} is in use with AF_XDP, by another process or another port of this one; end it, or "
        "use another interface",
        quoted(), name.target);
  }

  // Before there is a port.

  void look_at_interface() {
    interface = std::make_unique<NetInterface>(name.target);
    if (!interface->is_ethernet()) {
      throw InputError(fmt::format("port {}: {} is no Ethernet interface; use one, or make a pair: ip link add {}",
                                   quoted(), name.target, "mltcp0 type veth peer name mltcp1"));
    }
    if (!interface->is_up()) {
      throw RunError(fmt::format("port {}: interface {} is down; bring it up: ip link set dev {} up", quoted(),
                                 name.target, name.target));
    }
    check_socket(name);
    if (name.kind != Kind::af_xdp) return;
    const NetInterface::Queues has = interface->queues();
    if (config.queues > has.pairs) {
      throw InputError(
          fmt::format("port {0}: {1}, but {2} has {3} for AF_XDP; give {3}, or add some: ethtool -L {2} "
                      "combined {4}",
                      quoted(), plural(config.queues, "queue"), name.target, has.pairs, config.queues));
    }
    if (config.queues < has.receive) {
      throw InputError(
          fmt::format("port {0}: {1} receives on {2} queues, and AF_XDP would hear {3} of them; give as many, "
                      "or take some away: ethtool -L {1} {4}",
                      quoted(), name.target, has.receive, config.queues,
                      has.pairs > 1 ? fmt::format("combined {}", config.queues) : "rx 1 tx 1"));
    }
    point_libxdp_to_its_programs();
    capture_xdp_log();
  }

  /// Two processes that share an interface would not hear each other, as it sends nothing back to itself.
  void claim_interface() {
    claim = std::make_unique<InterfaceClaim>(name.target);
    if (claim->is_ours()) return;
    if (claim->holder() == getpid())
      throw RunError(fmt::format("port {}: this process has that port already; give each its own", quoted()));
    throw RunError(fmt::format("port {}: {} uses {} already; end it, or use another interface", quoted(),
                               claim->holder_text(), name.target));
  }

  void look_at_tap() const {
    if (if_nametoindex(name.target.c_str()) != 0) {
      throw InputError(
          fmt::format("port {}: there is an interface {} already; choose another name, or use af_packet:{}", quoted(),
                      name.target, name.target));
    }
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {
      const int error = errno;
      throw RunError(fmt::format("port {}: /dev/net/tun can't be opened ({}); {}", quoted(), std::strerror(error),
                                 error == ENOENT ? "load it: modprobe tun" : "run it as root"));
    }
  }

  void make_pools(int node) {
    static std::atomic<unsigned> instances{0};
    const std::string prefix = fmt::format("port{}q", instances++);
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      const auto make = [&](int where) {
        const std::string pool = fmt::format("{}{}", prefix, queue);
        pools.push_back(name.kind == Kind::af_xdp
                            ? std::make_unique<PacketPool>(pool, plan.buffers, PacketPool::Pages{}, where)
                            : std::make_unique<PacketPool>(pool, plan.buffers, plan.room, where));
      };
      try {
        make(node);
      } catch (const RunError&) {
        if (node <= 0) throw;
        make(-1);  // DPDK may have no memory on the port's own socket
      }
    }
  }

  void find_pci(const Eal& eal) {
    const auto allowed = eal.pci();
    if (std::find(allowed.begin(), allowed.end(), name.target) == allowed.end()) {
      throw InputError(
          fmt::format("port {}: DPDK was not allowed to take NIC {}; name it when DPDK starts", quoted(), name.target));
    }
    device = name.target;
    // DPDK takes what it is allowed when it starts; a port of this process that was closed, only now.
    if (rte_eth_dev_get_port_by_name(device.c_str(), &id) == 0) {
      plugged = true;
      return;
    }
    const int error = rte_dev_probe(device.c_str());
    if (error == 0 && rte_eth_dev_get_port_by_name(device.c_str(), &id) == 0) {
      plugged = true;
      return;
    }
    const bool exists = access(("/sys/bus/pci/devices/" + device).c_str(), F_OK) == 0;
    throw RunError(fmt::format(
        "port {}: {}{}", quoted(),
        exists
            ? fmt::format("DPDK has no driver that takes NIC {0}; bind it to vfio-pci: dpdk-devbind.py -b vfio-pci {0}",
                          device)
            : "there is no PCI device " + device + "; `lspci -D` lists those that there are",
        words()));
  }

  void plug() {
    int error = 0;
    const auto refuse_another = [&] {
      if (rte_eth_dev_get_port_by_name(device.c_str(), &id) == 0) {
        throw RunError(fmt::format("port {}: this process has that port already; give each its own", quoted()));
      }
    };
    if (name.kind == Kind::ring) {
      device = "net_ring_" + name.target;
      refuse_another();
      error = make_ring_port();
    } else {
      std::string arguments;
      switch (name.kind) {
        case Kind::af_packet:
          device = "net_af_packet_" + name.target;
          // A block holds whole slots, and the kernel wants blocks of whole pages.
          arguments = fmt::format("iface={},qpairs={},blocksz={},framesz={},framecnt={}", name.target, config.queues,
                                  std::max(plan.slot_bytes, static_cast<std::uint32_t>(getpagesize())), plan.slot_bytes,
                                  plan.descriptors);
          break;
        case Kind::af_xdp:
          device = "net_af_xdp_" + name.target;
          arguments = fmt::format("iface={},start_queue=0,queue_count={}", name.target, config.queues);
          if (config.busy_budget || interface->driver() == "veth") {
            arguments += fmt::format(",busy_budget={}", config.busy_budget.value_or(0));
          }
          break;
        case Kind::memif: {
          static std::atomic<unsigned> instances{0};
          device = fmt::format("net_memif{}", instances++);
          arguments = fmt::format("role={},id={},socket={},socket-abstract=no,bsize={},rsize={},mac={}",
                                  name.server ? "server" : "client", name.id, name.target, (plan.room + 63) / 64 * 64,
                                  std::countr_zero(plan.descriptors), random_mac());
          break;
        }
        case Kind::tap:
          device = "net_tap_" + name.target;
          arguments = "iface=" + name.target;
          break;
        default:
          device = name.target;
          arguments = name.arguments;
          break;
      }
      refuse_another();
      error = rte_vdev_init(device.c_str(), arguments.c_str());
    }
    if (error != 0) throw RunError(why_not_plugged(error));
    plugged = true;
    if (rte_eth_dev_get_port_by_name(device.c_str(), &id) != 0) {
      throw InputError(fmt::format("port {}: DPDK's device {} is no Ethernet port; name one", quoted(), device));
    }
  }

  int make_ring_port() {
    std::vector<rte_ring*> receive;
    std::vector<rte_ring*> send;
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      receive.push_back(ring(name.target, queue));
      send.push_back(name.arguments.empty() ? receive.back() : ring(name.arguments, queue));
    }
    const int port = rte_eth_from_rings(name.target.c_str(), receive.data(), config.queues, send.data(), config.queues,
                                        rte_socket_id());
    return port < 0 ? -rte_errno : 0;
  }

  /// A ring of a wire, which the ports at both its ends own.
  rte_ring* ring(const std::string& end, std::uint16_t queue) {
    static std::map<std::string, std::weak_ptr<PacketRing>> all;
    const std::string called = fmt::format("{}{}", end, queue);
    std::shared_ptr<PacketRing> shared = all[called].lock();
    if (shared == nullptr) all[called] = shared = std::make_shared<PacketRing>(called, plan.descriptors);
    rings.push_back(shared);
    return shared->get();
  }

  /// " (DPDK says: ...)" with the first complaint since the port was begun, which is nearest to the cause; or nothing.
  [[nodiscard]] std::string words() const {
    for (const std::string& line : log_since(log_mark)) {
      // What memif says wherever there are no secondary processes.
      if (line.find("mp action callback") == std::string::npos) return fmt::format(" (DPDK says: {})", one_line(line));
    }
    return {};
  }

  [[nodiscard]] bool log_has(std::string_view text) const {
    const auto lines = log_since(log_mark);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  [[nodiscard]] std::string why_not_plugged(int error) const {
    if (free_ports() == 0) {
      return fmt::format("port {}: DPDK allows {} ports and all are in use; close one", quoted(), max_ports());
    }
    // A driver that fails says why; DPDK itself fails so without a word where none is.
    if (error == -1 && log_since(log_mark).empty()) {
      const std::string wanted =
          uses_interface(name.kind) ? fmt::format("net_{}", to_text(name.kind)) : device.substr(0, device.find('_', 4));
      return fmt::format(
          "port {}: DPDK has no driver {} on this machine; install Debian's librte-net-* package of that "
          "name, or a DPDK that was built with it",
          quoted(), wanted);
    }
    if (error == -EEXIST) {
      return fmt::format("port {}: this process has that port already; give each its own", quoted());
    }
    if (name.kind == Kind::memif && log_has("socket directory")) {
      return fmt::format("port {}: the folder of {} is not there or can't be written to; make it, or choose another",
                         quoted(), name.target);
    }
    if (name.kind == Kind::memif && name.server) {
      return fmt::format("port {0}: DPDK can't listen on {1}{2}; if no process uses it, remove it: rm {1}", quoted(),
                         name.target, words());
    }
    if (name.kind == Kind::tap) {
      return fmt::format("port {}: the kernel does not make interface {}{}; run it as root or with CAP_NET_ADMIN",
                         quoted(), name.target, words());
    }
    if (name.kind == Kind::af_packet && log_has("PACKET_FANOUT")) {
      // The driver numbers its group by process and interface, and has no option for it.
      return fmt::format(
          "port {}: the kernel puts its packet sockets into no group{}; a process on another interface here may have "
          "the same number for its own, by chance: start this one again",
          quoted(), words());
    }
    if (log_has("PACKET_RX_RING") || log_has("PACKET_TX_RING") || log_has("mmap")) {
      return fmt::format(
          "port {}: the kernel has no room for rings of {} packets{}; ask for fewer descriptors, or raise "
          "the limit of locked memory: ulimit -l unlimited",
          quoted(), plan.descriptors, words());
    }
    return fmt::format("port {}: DPDK can't make it: {}{}; `mltcp doctor` tells what this machine lacks", quoted(),
                       rte_strerror(-error), words());
  }

  // From plugging to the start.

  void configure() {
    rte_eth_dev_info info{};
    if (const int error = rte_eth_dev_info_get(id, &info); error != 0) {
      throw RunError(
          fmt::format("port {}: the device does not answer ({}); plug it in again", quoted(), rte_strerror(-error)));
    }
    driver = info.driver_name == nullptr ? "unknown" : info.driver_name;
    const std::uint16_t most = std::min(info.max_rx_queues, info.max_tx_queues);
    if (config.queues > most) {
      throw InputError(fmt::format("port {}: {}, but {} has {}; give fewer", quoted(), plural(config.queues, "queue"),
                                   driver, most));
    }
    const bool ours = name.kind != Kind::pci && name.kind != Kind::driver;
    const std::uint32_t longest = std::min<std::uint32_t>(
        info.max_mtu, info.max_rx_pktlen - static_cast<std::uint32_t>(encap::kEthernetBytes) - kTagBytes);
    if (!ours && plan.mtu > longest) {
      throw InputError(
          fmt::format("port {}: an MTU of {}, but {} carries {}; give that", quoted(), plan.mtu, driver, longest));
    }
    if (config.buffer_bytes != 0 && name.kind != Kind::memif &&
        (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) == 0) {
      throw InputError(
          fmt::format("port {}: {} can't scatter frames over short buffers; leave their length out", quoted(), driver));
    }

    rte_eth_conf conf{};
    // Drivers of virtual ports name a limit that their rings and buffers don't have; the MTU is theirs by their words.
    conf.rxmode.mtu = ours ? std::min(plan.mtu, std::min(longest, kUsualMtu)) : plan.mtu;
    const auto& want = config.offloads;
    conf.rxmode.offloads =
        info.rx_offload_capa & (only_if(want.checksums, RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM) |
                                only_if(want.scatter || config.buffer_bytes != 0, RTE_ETH_RX_OFFLOAD_SCATTER));
    conf.txmode.offloads =
        info.tx_offload_capa & (only_if(want.checksums, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM) |
                                only_if(want.multi_segments, RTE_ETH_TX_OFFLOAD_MULTI_SEGS));
    conf.intr_conf.lsc = *info.dev_flags & RTE_ETH_DEV_INTR_LSC ? 1 : 0;
    conf.intr_conf.rxq = config.interrupts ? 1 : 0;
    conf.rx_adv_conf.rss_conf.rss_hf =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
    const bool rss = config.queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0;
    if (rss) {
      conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    } else {
      conf.rx_adv_conf.rss_conf.rss_hf = 0;
    }
    if (config.queues == 1) {
      steering = Steering::single;
    } else if (rss) {
      steering = Steering::rss;
    } else {
      steering = uses_interface(name.kind) ? Steering::kernel : Steering::peer;
    }

    int error = set_up(conf);
    // Some drivers have no receive interrupts and don't start when asked for them.
    if (error != 0 && config.interrupts && !uses_interface(name.kind)) {
      conf.intr_conf.rxq = 0;
      error = set_up(conf);
    }
    if (error != 0) throw RunError(why_not_started(error));
    started = true;

    const auto rx = conf.rxmode.offloads;
    const auto tx = conf.txmode.offloads;
    constexpr std::uint64_t kReceiveSums = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
    offloads.receive_checksums = (rx & kReceiveSums) == kReceiveSums;
    offloads.scatter = (rx & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
    offloads.send_ip_checksum = (tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
    offloads.send_udp_checksum = (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
    offloads.multi_segments = (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  }

  int set_up(const rte_eth_conf& conf) {
    const auto promiscuous_before = interface != nullptr && interface->is_promiscuous();
    auto receive = static_cast<std::uint16_t>(plan.descriptors);
    std::uint16_t send = receive;
    int error = rte_eth_dev_configure(id, config.queues, config.queues, &conf);
    if (error == 0) error = rte_eth_dev_adjust_nb_rx_tx_desc(id, &receive, &send);
    const auto node = static_cast<unsigned>(rte_eth_dev_socket_id(id));
    for (std::uint16_t queue = 0; queue < config.queues && error == 0; ++queue) {
      error = rte_eth_rx_queue_setup(id, queue, receive, node, nullptr, pools[queue]->get());
      if (error == 0) error = rte_eth_tx_queue_setup(id, queue, send, node, nullptr);
    }
    if (error == 0) error = rte_eth_dev_start(id);
    if (error != 0) return error;
    if (config.promiscuous) {
      rte_eth_promiscuous_enable(id);
    } else if (promiscuous_before) {
      interface->set_promiscuous(true);  // DPDK's start has switched it off
    }
    restore_promiscuous = config.promiscuous && interface != nullptr && !promiscuous_before;
    return 0;
  }

  [[nodiscard]] std::string why_not_started(int error) const {
    if (name.kind == Kind::af_xdp) {
      if (log_has("xdp-dispatcher") || log_has("xsk_def_xdp_prog") || log_has("No such file")) {
        return fmt::format(
            "port {}: libxdp does not find its BPF programs; install libxdp1, or set LIBXDP_OBJECT_PATH "
            "to the folder that has xdp-dispatcher.o{}",
            quoted(), words());
      }
      return fmt::format(
          "port {}: AF_XDP does not start on {}{}; it needs CAP_NET_ADMIN, CAP_BPF and locked memory "
          "(ulimit -l unlimited), and a lower MTU on some interfaces; af_packet:{} needs less",
          quoted(), name.target, words(), name.target);
    }
    if (name.kind == Kind::memif && !name.server) {
      return fmt::format("port {0}: nobody listens on {1}; start the end with memif:{1},role=server,id={2} first",
                         quoted(), name.target, name.id);
    }
    return fmt::format("port {}: {} does not start: {}{}; `mltcp doctor` tells what this machine lacks", quoted(),
                       driver, rte_strerror(-error), words());
  }

  void after_start() {
    if (name.kind == Kind::tap) {
      interface = std::make_unique<NetInterface>(name.target);
      if (!interface->set_mtu(plan.mtu)) {
        throw InputError(
            fmt::format("port {}: the kernel refuses an MTU of {} on a tap interface; give less", quoted(), plan.mtu));
      }
    }
    rte_ether_addr address{};
    rte_eth_macaddr_get(id, &address);
    std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac.begin());
    if (name.kind == Kind::tap) mac[5] ^= 1;  // the kernel's end has DPDK's
    if (std::all_of(mac.begin(), mac.end(), [](std::uint8_t byte) { return byte == 0; })) {
      mac = {0x02, 0, 0, 0, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id)};
    }
    if (!config.interrupts) return;
    interrupts = true;
    if (!receive_files.empty()) return;
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      // Where the queue is a file of the kernel's, there is nothing to enable.
      const int enabled = rte_eth_dev_rx_intr_enable(id, queue);
      interrupts =
          interrupts && rte_eth_dev_rx_intr_ctl_q_get_fd(id, queue) >= 0 && (enabled == 0 || enabled == -ENOTSUP);
      if (enabled == 0) rte_eth_dev_rx_intr_disable(id, queue);
    }
  }

  void release() {
    if (!plugged) return;
    if (started) rte_eth_dev_stop(id);
    rte_device* hardware = nullptr;
    rte_eth_dev_info info{};
    if (name.kind == Kind::pci && rte_eth_dev_info_get(id, &info) == 0) hardware = info.device;
    if (rte_eth_dev_is_valid_port(id) != 0) rte_eth_dev_close(id);
    if (hardware != nullptr) {
      rte_dev_remove(hardware);
    } else if (name.kind != Kind::pci) {
      rte_vdev_uninit(device.c_str());
    }
    if (!sockets.empty()) {
      for (const int socket : sockets_of(AF_XDP)) {
        if (std::find(sockets.begin(), sockets.end(), socket) != sockets.end()) close(socket);
      }
      sockets.clear();
    }
    for (const auto& ring : rings) ring->drain();  // buffers of this port's pools, in both
    if (restore_promiscuous) interface->set_promiscuous(false);
    plugged = started = restore_promiscuous = false;
  }

  const PortConfig config;
  const PortName name;
  std::uint64_t log_mark = 0;
  std::unique_ptr<NetInterface> interface;  ///< the kernel's end, if the port has one
  std::unique_ptr<InterfaceClaim> claim;    ///< af_packet and af_xdp
  Plan plan;
  std::vector<std::unique_ptr<PacketPool>> pools;
  std::vector<std::shared_ptr<PacketRing>> rings;  ///< Kind::ring
  std::vector<int> sockets;                        ///< Kind::af_xdp: the driver's
  std::string device;
  std::string driver;
  std::uint16_t id = 0;
  encap::MacAddress mac{};
  Steering steering = Steering::single;
  OffloadsInUse offloads;
  bool plugged = false;
  bool started = false;
  bool interrupts = false;
  std::vector<int> receive_files;  ///< of each queue, or none
  bool restore_promiscuous = false;
};

Port::Port(const Eal& eal, const PortConfig& config) : impl_(std::make_unique<Impl>(config)) { impl_->open(eal); }
Port::~Port() = default;

void Port::check_config(const PortConfig& config) {
  Impl port(config);
  if (uses_interface(port.name.kind)) port.look_at_interface();
  if (port.name.kind == Kind::tap) port.look_at_tap();
  plan_for(port.name, config, port.interface.get());
}

std::uint16_t Port::id() const { return impl_->id; }
const std::string& Port::name() const { return impl_->config.device; }
PortName::Kind Port::kind() const { return impl_->name.kind; }
const encap::MacAddress& Port::mac() const { return impl_->mac; }
std::uint32_t Port::mtu() const { return impl_->plan.mtu; }
std::uint32_t Port::frame_bytes() const {
  return mtu() + static_cast<std::uint32_t>(encap::kEthernetBytes) + (vlan() != 0 ? kTagBytes : 0);
}
std::uint16_t Port::vlan() const { return impl_->config.vlan; }
std::uint16_t Port::queues() const { return impl_->config.queues; }
Steering Port::steering() const { return impl_->steering; }
rte_mempool* Port::pool(std::uint16_t queue) const { return impl_->pools.at(queue)->get(); }
int Port::socket() const { return std::max(rte_eth_dev_socket_id(impl_->id), 0); }
const std::string& Port::driver() const { return impl_->driver; }
const Port::OffloadsInUse& Port::offloads() const { return impl_->offloads; }
bool Port::reads_by_dma() const { return impl_->name.kind == Kind::pci || impl_->name.kind == Kind::driver; }
bool Port::sends_by_reference() const {
  return impl_->offloads.multi_segments && (!reads_by_dma() || rte_eth_tx_done_cleanup(id(), 0, 0) >= 0);
}
bool Port::has_interrupts() const { return impl_->interrupts; }
int Port::receive_file(std::uint16_t queue) const {
  return queue < impl_->receive_files.size() ? impl_->receive_files[queue] : -1;
}

std::string Port::description() const {
  const OffloadsInUse& has = impl_->offloads;
  const bool send = has.send_ip_checksum && has.send_udp_checksum;
  return fmt::format("{}: {}, MTU {}, {}, checksums {}", name(), driver(), mtu(), plural(queues(), "queue"),
                     send && has.receive_checksums ? "in the port"
                                                   : (send                    ? "in the port when sending"
                                                      : has.receive_checksums ? "in the port when receiving"
                                                                              : "in software"));
}

LinkState Port::link() const {
  if (impl_->interface != nullptr) return {impl_->interface->is_running(), impl_->interface->rate()};
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(impl_->id, &link) != 0) return {};
  LinkState state;
  state.up = link.link_status == RTE_ETH_LINK_UP;
  if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN && link.link_speed != RTE_ETH_SPEED_NUM_NONE) {
    state.rate = Rate(std::uint64_t{link.link_speed} * 1'000'000);
  }
  return state;
}

std::string Port::why_link_is_down() const {
  if (impl_->interface == nullptr)
    return link().up ? "" : "its link is down; see its cable, and the port at the other end";
  const NetInterface& interface = *impl_->interface;
  if (interface.is_running()) return "";  // to ask for its rate too could take long
  if (interface.mtu() == 0)
    return fmt::format("interface {} is gone; make it anew, with its other end if it is a pair (veth)",
                       interface.name());
  if (!interface.is_up())
    return fmt::format("interface {0} is down; bring it up: ip link set dev {0} up", interface.name());
  return fmt::format("interface {} has no carrier; see its cable, or bring the interface at its other end up",
                     interface.name());
}

std::vector<std::pair<std::string, std::uint64_t>> Port::statistics() const {
  const int count = rte_eth_xstats_get(impl_->id, nullptr, 0);
  if (count <= 0) return {};
  std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
  std::vector<rte_eth_xstat> values(names.size());
  if (rte_eth_xstats_get_names(impl_->id, names.data(), static_cast<unsigned>(count)) != count ||
      rte_eth_xstats_get(impl_->id, values.data(), static_cast<unsigned>(count)) != count) {
    return {};
  }
  std::vector<std::pair<std::string, std::uint64_t>> result;
  for (const auto& value : values) {
    if (value.id < names.size()) result.emplace_back(static_cast<const char*>(names[value.id].name), value.value);
  }
  // DPDK's driver counts one reason for which the kernel drops a frame, and leaves out the ring that was full.
  if (impl_->sockets.empty()) return result;
  xdp_statistics all{};
  for (const int socket : impl_->sockets) {
    xdp_statistics one{};
    socklen_t size = sizeof one;
    if (getsockopt(socket, SOL_XDP, XDP_STATISTICS, &one, &size) != 0) continue;
    all.rx_dropped += one.rx_dropped;
    all.rx_ring_full += one.rx_ring_full;
    all.rx_fill_ring_empty_descs += one.rx_fill_ring_empty_descs;
  }
  result.emplace_back("xdp_rx_dropped", all.rx_dropped);
  result.emplace_back("xdp_rx_ring_full", all.rx_ring_full);
  result.emplace_back("xdp_rx_fill_ring_empty", all.rx_fill_ring_empty_descs);
  return result;
}

std::uint32_t Port::memory_mb(const PortConfig& config) {
  check(config);
  const PortName name = parse_port_name(config.device);
  std::unique_ptr<NetInterface> interface;
  if (uses_interface(name.kind)) interface = std::make_unique<NetInterface>(name.target);
  const Plan plan = plan_for(name, config, interface.get());
  const std::uint64_t rings = std::uint64_t{8} * plan.descriptors * sizeof(void*);
  const std::uint64_t pool = name.kind == Kind::af_xdp ? PacketPool::memory_bytes(plan.buffers, PacketPool::Pages{})
                                                       : PacketPool::memory_bytes(plan.buffers, plan.room);
  const std::uint64_t bytes = config.queues * (pool + rings);
  // DPDK's own tables, and what alignment costs.
  const std::uint64_t needed = std::max<std::uint64_t>(24 + (bytes >> 20) + (bytes >> 24), Eal::least_memory_mb);
  if (needed > Eal::most_memory_mb) {
    throw InputError(fmt::format(
        "port {}: {} with {} spare buffers each need {} MB, and DPDK takes {} at most; give "
        "fewer queues, or fewer buffers",
        in_quotes(config.device), plural(config.queues, "queue"), config.spare_buffers, needed, Eal::most_memory_mb));
  }
  return static_cast<std::uint32_t>(needed);
}

}  // namespace mltcp::dpdk
