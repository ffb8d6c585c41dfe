// DPDK ports as datapaths of hosts; see register_datapath.h.
#include "mltcp/dpdk/register_datapath.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/base/text.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::dpdk {
namespace {

/// Number of buffers that each shard holds: packets just received, and packets that wait for neighbours or other
/// shards.
constexpr std::uint32_t kHeldByShard = 256;
/// If the program does not set the memory size, ordinary pages are allocated for this many further datapaths, each like
/// the first datapath.
constexpr std::uint32_t kFurtherDatapaths = 7;

/// Returns the number of shards: at least one for each queue.
std::uint32_t shards_on(const HostDatapathConfig& config, std::uint32_t shards) {
  return std::max<std::uint32_t>(shards, config.queues);
}

PortConfig port_config(const HostDatapathConfig& config, std::uint32_t shards) {
  PortConfig port;
  port.device = config.device;
  port.mtu = config.mtu;
  port.queues = config.queues;
  port.interrupts = config.sleeps;
  port.descriptors = config.queue_packets;
  port.spare_buffers += shards * kHeldByShard;
  return port;
}

/// Returns the memory in MiB for DPDK itself and for a port with `shards` shards.
std::uint32_t memory_for(const HostDatapathConfig& config, std::uint32_t shards) {
  constexpr std::uint32_t base_mb = 32;
  constexpr std::uint32_t shards_per_mb = 32;
  const std::uint32_t all = shards_on(config, shards);
  return std::min(base_mb + Port::memory_mb(port_config(config, all)) + all / shards_per_mb, Eal::kMaxMemoryMb);
}

EalOptions eal_options(const HostDatapathConfig& config) {
  EalOptions options;
  options.cores = config.cores;
  options.memory_mb = config.memory_mb.value_or(memory_for(config, std::max(config.usual_shards, config.shards)));
  options.min_shared_mb = config.memory_mb.value_or(0);
  // Memory in ordinary pages cannot grow, so it must also be enough for further datapaths of the process.
  if (!config.memory_mb)
    options.ordinary_memory_mb =
        memory_for(config, std::max(config.max_shards, config.shards)) +
        kFurtherDatapaths * Port::memory_mb(port_config(config, shards_on(config, config.shards)));
  options.devices = {config.device};
  return options;
}

/// Binds the calling thread to `cpu`. The thread that opens a host's datapath also polls it.
void keep_on(unsigned cpu) {
  if (const int error = keep_thread_on(cpu); error != 0)
    throw RunError(
        fmt::format("this thread can't be bound to CPU {} ({}); leave the CPU out", cpu, std::strerror(error)));
}

class PortDatapath final : public HostDatapath {
 public:
  explicit PortDatapath(const HostDatapathConfig& config) : config_(config), eal_(eal_options(config)) {
    open(shards_on(config, config.shards));
    port_->set_user("a host that has no address yet");
    if (!config.cores.empty()) keep_on(parse_cores(config.cores, usable_cpus()).front());
  }

  [[nodiscard]] std::string description() const override { return port_->description(); }
  [[nodiscard]] std::uint32_t mtu() const override { return port_->mtu(); }
  [[nodiscard]] TimeSource& time() override { return eal_.time(); }
  [[nodiscard]] std::string why_link_is_down() const override { return port_->why_link_is_down(); }

  void take_place(const HostPlace& place) override {
    const std::uint32_t shards = shards_on(config_, place.shards);
    if (shards > opened_for_) {
      port_.reset();
      open(shards);
    }
    PortHostConfig host;
    host.address = place.address;
    host.prefix_bits = place.prefix_bits;
    host.gateway = place.gateway;
    host.shards = static_cast<std::uint16_t>(shards);
    // Another host of this process may read sent data after this host has been destroyed.
    if (parse_port_name(config_.device).kind == PortName::Kind::ring) host.zero_copy_from = 0;
    host_ = std::make_unique<PortHost>(eal_, *port_, host);
    port_->set_user(fmt::format("the host {}", to_text(place.address)));
  }
  [[nodiscard]] std::uint16_t shards() const override { return host_ == nullptr ? std::uint16_t{0} : host_->shards(); }
  [[nodiscard]] PacketIo& io(std::uint16_t shard) override { return host_->io(shard); }
  bool resolve(std::uint16_t shard, const Address& destination) override {
    return host_->io(shard).resolve(destination);
  }

  [[nodiscard]] std::span<DmaDevice* const> dma_devices() override {
    dma_ = {&port_->dma()};
    return dma_;
  }

  [[nodiscard]] DatapathLosses losses() const override {
    DatapathLosses losses;
    for (const auto& [name, count] : port_->statistics()) {
      if (name == "rx_missed_errors" || name == "xdp_rx_ring_full") losses.missed += count;
      if (name == "rx_errors" || name == "tx_errors") losses.errors += count;
    }
    for (std::uint16_t shard = 0; shard < shards(); ++shard) {
      const PortIoCounters& counters = host_->io(shard).counters();
      losses.handover_full += counters.handover_full;
      losses.rejected += std::accumulate(counters.rejected.begin(), counters.rejected.end(), std::uint64_t{0});
      losses.unsent += counters.unsendable + counters.waiting_full + counters.unreachable;
    }
    return losses;
  }

 private:
  void open(std::uint32_t shards) {
    try {
      port_ = std::make_unique<Port>(eal_, port_config(config_, shards));
    } catch (const MemoryError& error) {
      const std::uint32_t needed = memory_for(config_, shards);
      if (!eal_.is_shared())
        throw RunError(fmt::format("{}: with {} it needs {} MB of memory in all; give as much (--memory {})",
                                   error.what(), plural(shards, "shard"), needed, needed));
      const std::string what = error.what();
      throw RunError(
          fmt::format("{}: all ports of the process share its {} MB; open the first port with {} MB (memory_mb)",
                      what.substr(0, what.find("; ")), eal_.memory_mb(),
                      std::min(eal_.memory_mb() + error.missing_mb(), Eal::kMaxMemoryMb)));
    }
    opened_for_ = shards;
  }

  const HostDatapathConfig config_;
  Eal eal_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<PortHost> host_;
  std::array<DmaDevice*, 1> dma_{};
  std::uint32_t opened_for_ = 0;  ///< number of shards for which the port has buffers
};

/// Returns whether `device` looks like a port name. Checks only the kind; parse_port_name() validates the whole name.
bool takes(std::string_view device) {
  const std::string_view word = device.substr(0, device.find(':'));
  if (device.find(':') == std::string_view::npos) return device.starts_with("net_");
  const std::string_view hexadecimal = "0123456789abcdefABCDEF";
  return is_port_kind(word) || word.find_first_not_of(hexadecimal) == std::string_view::npos;
}

void check(const HostDatapathConfig& config, const HostPlace& place) {
  // If the kernel also had the address, both the kernel and this port would reply to requests for it.
  for (const InterfaceAddress& one : interface_addresses()) {
    if (one.ip == place.address.ip)
      throw InputError(
          fmt::format("{}: this host's kernel has that address on {}; give the port another address of that network",
                      to_text(place.address), one.interface));
  }
  Port::check_config(port_config(config, 1));
  if (!config.cores.empty() && parse_cores(config.cores, usable_cpus()).size() > 1)
    throw InputError(fmt::format("cores {}: a host polls its port on one core; give one", config.cores));
}

std::unique_ptr<HostDatapath> open(const HostDatapathConfig& config) { return std::make_unique<PortDatapath>(config); }

}  // namespace

void register_datapath() {
  register_host_datapath({.name = "dpdk", .forms = kPortForms, .takes = takes, .check = check, .open = open});
}

}  // namespace mltcp::dpdk
