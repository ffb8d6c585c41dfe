// Ports of all kinds; see port.h. Code that is specific to a kind is in port_kind.h and the files that implement it.
//
// Conditions under which a driver would fail without stating a reason are checked first: the interface, its state, MTU
// and queues, and the driver's sockets. Other failures are explained by what the drivers log.
#include "mltcp/dpdk/port.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/device_claim.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port_dma.h"
#include "mltcp/dpdk/port_kind.h"
#include "mltcp/dpdk/service.h"

namespace mltcp::dpdk {
namespace {

constexpr std::uint32_t kShortestMtu = 576;
constexpr std::uint32_t kLongestMtu = 9000;
constexpr std::uint32_t kUsualMtu = 1500;
/// Extra bytes in each buffer, so that frames longer than allowed can be detected and rejected.
constexpr std::uint32_t kSlack = 64;

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

/// Plans the port's MTU, queues and buffers. Must be called after `kind` has found its interface.
PortPlan plan_for(PortKind& kind, const PortConfig& config) {
  PortPlan plan;
  plan.mtu = config.mtu != 0 ? config.mtu : kUsualMtu;
  if (const NetInterface* const interface = kind.interface()) {
    const std::uint32_t has = interface->mtu();
    if (config.mtu > has) {
      throw InputError(fmt::format("port {0}: an MTU of {1}, but {2} has {3}; set it: ip link set dev {2} mtu {1}",
                                   kind.quoted(), config.mtu, interface->name(), has));
    }
    if (config.mtu == 0) plan.mtu = std::clamp(has, kShortestMtu, kLongestMtu);
  }
  plan.descriptors = std::bit_ceil(config.descriptors);
  plan.buffers = 2 * plan.descriptors + config.spare_buffers;
  kind.adapt(plan);
  if (plan.data_bytes == 0) plan.data_bytes = config.buffer_bytes != 0 ? config.buffer_bytes : plan.frame() + kSlack;
  return plan;
}

/// Returns whether a driver accepts receive interrupts but never delivers them. net_e1000_em does not route the
/// interrupts of NICs with MSI-X (82574).
bool has_deaf_interrupts(std::string_view driver) { return driver == "net_e1000_em"; }

std::uint64_t only_if(bool wanted, std::uint64_t offloads) { return wanted ? offloads : 0; }

}  // namespace

struct Port::Impl {
  explicit Impl(const PortConfig& config_) : config(config_), kind(make_port_kind(config)) { check(config); }
  ~Impl() {
    if (!claim) return;  // no device was opened
    end_on_service([this] {
      release();
      kind->keep_pools(pools);
      pools.clear();
      kind.reset();
      claim.reset();
    });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Opens the port. Runs on the service thread, after look(). If open() throws, the destructor undoes what was done so
  /// far.
  void open() {
    log = PortLog();
    claim = std::make_unique<DeviceClaim>(kind->identity(), config.device);
    if (!claim->is_ours()) throw RunError(why_taken(claim->holder()));
    kind->claim();
    plan = plan_for(*kind, config);
    if (const auto found = kind->find()) {
      id = *found;
      is_found = plugged = true;
    }
    make_pools(is_found ? rte_eth_dev_socket_id(id) : kind->numa_node());
    start();
    after_start();
    dma = make_port_dma(id, kind->may_be_hardware(), config.device, driver);
  }

  [[nodiscard]] std::string quoted() const { return kind->quoted(); }

  void start() {
    kind->prepare();
    for (;;) {
      kind->before_try();
      try {
        if (!is_found) plug();
        configure();
        if (config.interrupts) receive_files = kind->receive_files();
        if (receive_files.size() != config.queues) receive_files.clear();
        kind->after_try();
        return;
      } catch (const RunError&) {
        kind->after_try();
        if (!plugged) throw;
        const std::optional<unsigned> pause = kind->pause_before_retry();
        if (!pause) throw;
        release();
        usleep(*pause);
      }
    }
  }

  void make_pools(int node) {
    static std::atomic<unsigned> instances{0};
    const std::string prefix = fmt::format("port{}q", instances++);
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      const std::string pool = fmt::format("{}{}", prefix, queue);
      try {
        pools.push_back(kind->make_pool(pool, plan, node));
      } catch (const RunError&) {
        if (node <= 0) throw;
        pools.push_back(kind->make_pool(pool, plan, -1));  // DPDK may have no memory on the port's NUMA node
      }
    }
  }

  void plug() {
    const std::string& device = kind->device();
    if (rte_eth_dev_get_port_by_name(device.c_str(), &id) == 0) {
      throw RunError(why_taken(fmt::format("as {}", device)));
    }
    if (const int error = kind->plug(plan); error != 0) throw RunError(why_not_plugged(error));
    plugged = true;
    if (rte_eth_dev_get_port_by_name(device.c_str(), &id) != 0) {
      throw InputError(fmt::format("port {}: DPDK's device {} is no Ethernet port; name one", quoted(), device));
    }
  }

  [[nodiscard]] std::string why_taken(const std::string& holder) const {
    return fmt::format("port {}: this process has that device already, {}; {}", quoted(), holder,
                       kind->cure_if_taken());
  }

  [[nodiscard]] std::string why_not_plugged(int error) const {
    if (free_ports() == 0) {
      return fmt::format("port {}: DPDK allows {} ports and all are in use; close one", quoted(), max_ports());
    }
    // A driver that fails logs the reason. If there is no driver for the device, DPDK fails without a message.
    if (error == -1 && log.is_empty()) {
      return fmt::format(
          "port {}: DPDK has no driver {} on this machine; install Debian's librte-net-* package of that "
          "name, or a DPDK that was built with it",
          quoted(), kind->driver_wanted());
    }
    if (error == -EEXIST) return why_taken(fmt::format("as {}", kind->device()));
    if (const std::string why = kind->why_not_plugged(error, log); !why.empty()) return why;
    if (log.has("PACKET_RX_RING") || log.has("PACKET_TX_RING") || log.has("mmap")) {
      return fmt::format(
          "port {}: the kernel has no room for rings of {} packets{}; ask for fewer descriptors, or raise "
          "the limit of locked memory: ulimit -l unlimited",
          quoted(), plan.descriptors, log.words());
    }
    return fmt::format("port {}: DPDK can't open it: {}{}; `mltcp doctor` shows what this machine lacks", quoted(),
                       rte_strerror(-error), log.words());
  }

  [[nodiscard]] std::string why_not_started(int error) const {
    if (const std::string why = kind->why_not_started(log); !why.empty()) return why;
    return fmt::format("port {}: {} does not start: {}{}; `mltcp doctor` shows what this machine lacks", quoted(),
                       driver, rte_strerror(-error), log.words());
  }

  // Configuration of the port, from plug() to the start.

  void configure() {
    rte_eth_dev_info info{};
    if (const int error = rte_eth_dev_info_get(id, &info); error != 0) {
      throw RunError(
          fmt::format("port {}: the device does not answer ({}); plug it in again", quoted(), rte_strerror(-error)));
    }
    driver = info.driver_name == nullptr ? "unknown" : info.driver_name;
    const std::uint16_t max = std::min(info.max_rx_queues, info.max_tx_queues);
    if (config.queues > max) {
      throw InputError(
          fmt::format("port {}: {}, but {} has {}; give fewer", quoted(), plural(config.queues, "queue"), driver, max));
    }
    const bool ours = !kind->may_be_hardware();
    const std::uint32_t longest =
        std::min<std::uint32_t>(info.max_mtu, info.max_rx_pktlen - static_cast<std::uint32_t>(encap::kEthernetBytes) -
                                                  static_cast<std::uint32_t>(encap::kVlanBytes));
    if (!ours && plan.mtu > longest) {
      throw InputError(fmt::format("port {}: an MTU of {}, but {} carries {} at most; give that", quoted(), plan.mtu,
                                   driver, longest));
    }
    if (config.buffer_bytes != 0 && !kind->peer_chooses_segments() &&
        (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) == 0) {
      throw InputError(
          fmt::format("port {}: {} can't scatter frames over short buffers; leave their length out", quoted(), driver));
    }

    if (config.buffer_bytes != 0 && config.buffer_bytes < info.min_rx_bufsize) {
      throw InputError(
          fmt::format("port {}: buffers of {} bytes, but {} takes none below {}; give that, or leave their length out",
                      quoted(), config.buffer_bytes, driver, info.min_rx_bufsize));
    }

    rte_eth_conf conf{};
    // The MTU limit that virtual drivers report does not apply to their rings and buffers. Arguments set their MTU.
    conf.rxmode.mtu = ours ? std::min(plan.mtu, std::min(longest, kUsualMtu)) : plan.mtu;
    const auto& want = config.offloads;
    conf.rxmode.offloads =
        info.rx_offload_capa & (only_if(want.checksums, RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM) |
                                only_if(want.scatter || config.buffer_bytes != 0, RTE_ETH_RX_OFFLOAD_SCATTER));
    // A NIC that can filter VLANs may drop packets of VLANs that were not configured.
    if (config.vlan != 0) conf.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
    conf.txmode.offloads =
        info.tx_offload_capa & (only_if(want.checksums, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM) |
                                only_if(want.multi_segments, RTE_ETH_TX_OFFLOAD_MULTI_SEGS));
    // The link state of a NIC is polled, because its link interrupts share a vector with queue interrupts, or never
    // arrive (82574).
    conf.intr_conf.lsc = ours && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0 ? 1 : 0;
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
      steering = kind->steering();
    }

    int error = set_up(conf);
    // Some drivers have no receive interrupts, and do not start if the program requests such interrupts.
    if (error != 0 && config.interrupts && !kind->starts_with_interrupts()) {
      conf.intr_conf.rxq = 0;
      error = set_up(conf);
    }
    if (error != 0) throw RunError(why_not_started(error));
    started = true;

    const auto rx = conf.rxmode.offloads;
    const auto tx = conf.txmode.offloads;
    offloads.receive_ip_checksum = (rx & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
    offloads.receive_udp_checksum = (rx & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) != 0;
    offloads.scatter = (rx & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
    offloads.send_ip_checksum = (tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
    offloads.send_udp_checksum = (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
    offloads.multi_segments = (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  }

  int set_up(const rte_eth_conf& conf) {
    NetInterface* const interface = kind->interface();
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
    if ((conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0)
      error = rte_eth_dev_vlan_filter(id, config.vlan, 1);
    if (error != 0) return error;
    // Neighbour Discovery sends requests to multicast addresses, which NICs drop by default.
    if (kind->may_be_hardware()) rte_eth_allmulticast_enable(id);
    if (config.promiscuous) {
      rte_eth_promiscuous_enable(id);
    } else if (promiscuous_before) {
      interface->set_promiscuous(true);  // DPDK switched promiscuous mode off at the start
    }
    restore_promiscuous = config.promiscuous && interface != nullptr && !promiscuous_before;
    return 0;
  }

  void after_start() {
    kind->after_start(plan);
    rte_ether_addr address{};
    rte_eth_macaddr_get(id, &address);
    std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac.begin());
    kind->adjust_mac(mac);
    if (std::all_of(mac.begin(), mac.end(), [](std::uint8_t byte) { return byte == 0; })) {
      mac = {0x02, 0, 0, 0, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id)};
    }
    if (!config.interrupts || has_deaf_interrupts(driver)) return;
    interrupts = true;
    if (!receive_files.empty()) return;
    for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
      // Queues with a kernel socket need no interrupts enabled.
      const int enabled = rte_eth_dev_rx_intr_enable(id, queue);
      interrupts =
          interrupts && rte_eth_dev_rx_intr_ctl_q_get_fd(id, queue) >= 0 && (enabled == 0 || enabled == -ENOTSUP);
      if (enabled == 0) rte_eth_dev_rx_intr_disable(id, queue);
    }
  }

  void release() {
    if (!plugged) return;
    if (started) rte_eth_dev_stop(id);
    kind->unplug(id);
    if (restore_promiscuous) kind->interface()->set_promiscuous(false);
    plugged = started = restore_promiscuous = false;
  }

  const PortConfig config;
  std::unique_ptr<PortKind> kind;
  std::unique_ptr<DeviceClaim> claim;  ///< null if no device was opened
  std::unique_ptr<DmaDevice> dma;
  PortLog log;
  PortPlan plan;
  std::vector<std::unique_ptr<PacketPool>> pools;
  std::string driver;
  std::uint16_t id = 0;
  encap::MacAddress mac{};
  Steering steering = Steering::single;
  OffloadsInUse offloads;
  bool is_found = false;  ///< find() has found the device, so plug() must not make it
  bool plugged = false;
  bool started = false;
  bool interrupts = false;
  std::vector<int> receive_files;  ///< kernel sockets, indexed by queue; empty if the port has none
  bool restore_promiscuous = false;
};

Port::Port(const Eal& /*eal*/, const PortConfig& config) : impl_(std::make_unique<Impl>(config)) {
  impl_->kind->look();  // runs on the caller's thread, because the permissions of this thread count
  run_on_service([this] { impl_->open(); });
}
Port::~Port() = default;

void Port::set_user(const std::string& user) { impl_->claim->set_user(user); }

void Port::check_config(const PortConfig& config) {
  const Impl port(config);
  port.kind->look();
  plan_for(*port.kind, config);
}

std::uint16_t Port::id() const { return impl_->id; }
const std::string& Port::name() const { return impl_->config.device; }
bool Port::is_of_kernel() const { return impl_->kind->is_of_kernel(); }
const encap::MacAddress& Port::mac() const { return impl_->mac; }
std::uint32_t Port::mtu() const { return impl_->plan.mtu; }
std::uint32_t Port::frame_bytes() const {
  return mtu() + static_cast<std::uint32_t>(encap::kEthernetBytes) +
         static_cast<std::uint32_t>(vlan() != 0 ? encap::kVlanBytes : 0);
}
std::uint16_t Port::vlan() const { return impl_->config.vlan; }
std::uint16_t Port::queues() const { return impl_->config.queues; }
Steering Port::steering() const { return impl_->steering; }
rte_mempool* Port::pool(std::uint16_t queue) const { return impl_->pools.at(queue)->get(); }
int Port::socket() const { return std::max(rte_eth_dev_socket_id(impl_->id), 0); }
const std::string& Port::driver() const { return impl_->driver; }
const Port::OffloadsInUse& Port::offloads() const { return impl_->offloads; }
bool Port::reads_by_dma() const { return impl_->kind->may_be_hardware(); }
DmaDevice& Port::dma() const { return *impl_->dma; }
bool Port::receives_segments() const { return impl_->offloads.scatter || impl_->kind->peer_chooses_segments(); }
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
  const bool receive = has.receive_ip_checksum && has.receive_udp_checksum;
  return fmt::format("{}: {}, MTU {}, {}, checksums {}", name(), driver(), mtu(), plural(queues(), "queue"),
                     send && receive ? "in the port"
                                     : (send      ? "in the port when sending"
                                        : receive ? "in the port when receiving"
                                                  : "in software"));
}

LinkState Port::link() const {
  if (const NetInterface* const interface = impl_->kind->interface())
    return {interface->is_running(), interface->rate()};
  if (!impl_->kind->why_unplugged().empty()) return {};
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
  if (std::string why = impl_->kind->why_unplugged(); !why.empty()) return why;
  if (impl_->kind->interface() == nullptr)
    return link().up ? "" : "its link is down; check its cable and the port at the other end";
  const NetInterface& interface = *impl_->kind->interface();
  if (interface.is_running()) return "";  // link() also queries the rate, which could take long
  if (interface.mtu() == 0)
    return fmt::format("interface {} no longer exists; create it again, with its other end if it is a pair (veth)",
                       interface.name());
  if (!interface.is_up())
    return fmt::format("interface {0} is down; bring it up: ip link set dev {0} up", interface.name());
  return fmt::format("interface {} has no carrier; check its cable, or bring the interface at its other end up",
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
  impl_->kind->add_statistics(result);
  return result;
}

std::uint32_t Port::memory_mb(const PortConfig& config) {
  const std::unique_ptr<PortKind> kind = make_port_kind(config);
  check(config);
  kind->find_interface();
  const PortPlan plan = plan_for(*kind, config);
  const std::uint64_t rings = std::uint64_t{8} * plan.descriptors * sizeof(void*);
  const std::uint64_t pool = kind->pool_bytes(plan);
  const std::uint64_t bytes = config.queues * (pool + rings);
  // DPDK's own tables and alignment losses need 24 MiB plus a sixteenth of `bytes`.
  const std::uint64_t needed = std::max<std::uint64_t>(24 + (bytes >> 20) + (bytes >> 24), Eal::kMinMemoryMb);
  if (needed > Eal::kMaxMemoryMb) {
    throw InputError(fmt::format(
        "port {}: {} with {} spare buffers each need {} MB, and DPDK takes {} at most; give "
        "fewer queues, or fewer buffers",
        in_quotes(config.device), plural(config.queues, "queue"), config.spare_buffers, needed, Eal::kMaxMemoryMb));
  }
  return static_cast<std::uint32_t>(needed);
}

}  // namespace mltcp::dpdk
