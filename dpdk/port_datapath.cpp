// Ports by name; see register_datapath.h.
#include "mltcp/dpdk/register_datapath.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::dpdk {
namespace {

/// Buffers that each shard holds: what it has just received, and the packets that wait for neighbours or shards.
constexpr std::uint32_t kHeldByShard = 256;

/// Shards share queues, and there is one for each queue at least.
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

/// In MB, if there are so many shards.
std::uint32_t memory_for(const HostDatapathConfig& config, std::uint32_t shards) {
  constexpr std::uint32_t base_mb = 32;
  constexpr std::uint32_t shards_per_mb = 32;
  const std::uint32_t all = shards_on(config, shards);
  return std::min(base_mb + Port::memory_mb(port_config(config, all)) + all / shards_per_mb, Eal::most_memory_mb);
}

EalOptions eal_options(const HostDatapathConfig& config) {
  EalOptions options;
  options.cores = config.cores;
  options.memory_mb = config.memory_mb.value_or(memory_for(config, std::max(config.usual_shards, config.shards)));
  if (!config.memory_mb) options.ordinary_memory_mb = memory_for(config, std::max(config.most_shards, config.shards));
  if (parse_port_name(config.device).kind == PortName::Kind::pci) options.pci.push_back(config.device);
  return options;
}

class PortDatapath final : public HostDatapath {
 public:
  explicit PortDatapath(const HostDatapathConfig& config) : config_(config), eal_(eal_options(config)) {
    open(shards_on(config, config.shards));
  }

  [[nodiscard]] std::string description() const override { return port_->description(); }
  [[nodiscard]] std::uint32_t mtu() const override { return port_->mtu(); }
  [[nodiscard]] TimeSource& time() override { return eal_.time(); }
  [[nodiscard]] std::string why_link_is_down() const override { return port_->why_link_is_down(); }

  void take_place(const HostPlace& place) override {
    const std::uint32_t shards = shards_on(config_, place.shards);
    if (shards > opened_for_) {
      port_.reset();
      try {
        open(shards);
      } catch (const RunError& error) {
        throw RunError(fmt::format("{}: for {} shards it needs {} MB of memory; give it that (--memory {})",
                                   error.what(), shards, memory_for(config_, shards), memory_for(config_, shards)));
      }
    }
    PortHostConfig host;
    host.address = place.address;
    host.prefix_bits = place.prefix_bits;
    host.gateway = place.gateway;
    host.shards = static_cast<std::uint16_t>(shards);
    host_ = std::make_unique<PortHost>(eal_, *port_, host);
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
    port_ = std::make_unique<Port>(eal_, port_config(config_, shards));
    opened_for_ = shards;
  }

  const HostDatapathConfig config_;
  Eal eal_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<PortHost> host_;
  std::array<DmaDevice*, 1> dma_{};
  std::uint32_t opened_for_ = 0;  ///< shards that the port has buffers for
};

/// Whatever is written: the last word on what a port's name is has parse_port_name().
bool takes(std::string_view device) {
  const std::string_view word = device.substr(0, device.find(':'));
  if (device.find(':') == std::string_view::npos) return device.starts_with("net_");
  const std::string_view hexadecimal = "0123456789abcdefABCDEF";
  return is_port_kind(word) || word.find_first_not_of(hexadecimal) == std::string_view::npos;
}

void check(const HostDatapathConfig& config, const HostPlace& place) {
  // Kernel and port would both answer for it.
  for (const auto& [interface, address] : kernel_addresses()) {
    if (address.ip == place.address.ip)
      throw InputError(
          fmt::format("{}: the kernel of this host has that address on {}; give the port another one of the network",
                      to_text(place.address), interface));
  }
  Port::check_config(port_config(config, 1));
  if (!config.cores.empty() && parse_cores(config.cores, usable_cpus()).size() > 1)
    throw InputError(fmt::format("cores {}: a host polls its port on one core; give one", config.cores));
}

std::unique_ptr<HostDatapath> open(const HostDatapathConfig& config) {
  if (Eal::was_started())
    throw RunError(fmt::format(
        "port {}: DPDK was started in this process before, for another port, and starts once only; have one "
        "endpoint on it, with as many shards as are needed, or use another datapath for this one, such as udp:",
        config.device));
  return std::make_unique<PortDatapath>(config);
}

}  // namespace

void register_datapath() {
  register_host_datapath({.name = "dpdk", .forms = kPortForms, .takes = takes, .check = check, .open = open});
}

}  // namespace mltcp::dpdk
