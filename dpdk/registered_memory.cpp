// Registered memory; see registered_memory.h.
#include "mltcp/dpdk/registered_memory.h"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "mltcp/base/error.h"

namespace mltcp::dpdk {
namespace {

struct Entry {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::vector<std::uint16_t> ports;
};

/// All that is registered in the process.
struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::atomic<std::uint64_t> version{1};
};

Registry& registry() {
  static Registry all;
  return all;
}

rte_device* device_of(std::uint16_t port) {
  rte_eth_dev_info info{};
  return rte_eth_dev_info_get(port, &info) == 0 ? info.device : nullptr;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

RegisteredMemory::RegisteredMemory(std::span<std::byte> memory, std::span<const Port* const> ports) : memory_(memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = address_of(memory.data());
  const std::uintptr_t end = begin + memory.size();
  if (memory.empty() || begin % page != 0 || memory.size() % page != 0) {
    throw InputError(
        fmt::format("{} bytes at {:#x} can't be registered: whole pages of {} bytes can; get them with "
                    "mmap or aligned_alloc({}, ...)",
                    memory.size(), begin, page, page));
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (std::any_of(all.entries.begin(), all.entries.end(),
                  [&](const Entry& entry) { return entry.begin < end && begin < entry.end; })) {
    throw InputError(
        fmt::format("some of the {} bytes at {:#x} are registered already; register them once, for all "
                    "ports",
                    memory.size(), begin));
  }
  if (all.entries.size() == most) {
    throw InputError(fmt::format("{} pieces of memory are registered, and no more can be; register larger ones", most));
  }
  Entry entry{begin, end, {}};
  for (const Port* const port : ports) {
    if (!port->reads_by_dma()) continue;
    const auto refuse = [&](const std::string& what) {
      undo();
      throw RunError(
          fmt::format("port {} can't read memory of the program's own: {}; send without registering it, "
                      "then it is copied",
                      port->name(), what));
    };
    if (rte_eal_iova_mode() != RTE_IOVA_VA) {
      refuse("DPDK uses physical addresses here; turn the IOMMU on and bind the NIC to vfio-pci");
    }
    if (!known_) {
      if (rte_extmem_register(memory.data(), memory.size(), nullptr, 0, page) != 0) {
        refuse(fmt::format("DPDK does not take it ({})", rte_strerror(rte_errno)));
      }
      known_ = true;
    }
    rte_device* const device = device_of(port->id());
    if (device == nullptr || rte_dev_dma_map(device, memory.data(), begin, memory.size()) != 0) {
      refuse(
          fmt::format("{} does not map it ({}); if it can at all, raise the limit of locked memory: "
                      "ulimit -l unlimited",
                      port->driver(), rte_strerror(rte_errno)));
    }
    mapped_.push_back(port->id());
    entry.ports.push_back(port->id());
  }
  all.entries.push_back(std::move(entry));
  all.version.fetch_add(1, std::memory_order_release);
}

RegisteredMemory::~RegisteredMemory() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [&](const Entry& entry) { return entry.begin == address_of(memory_.data()); });
  all.version.fetch_add(1, std::memory_order_release);
  undo();
}

void RegisteredMemory::undo() {
  for (const std::uint16_t port : mapped_) {
    if (rte_device* const device = device_of(port); device != nullptr) {
      rte_dev_dma_unmap(device, memory_.data(), address_of(memory_.data()), memory_.size());
    }
  }
  if (known_) rte_extmem_unregister(memory_.data(), memory_.size());
}

bool RegisteredRanges::contain(std::span<const std::byte> bytes) {
  Registry& all = registry();
  if (all.version.load(std::memory_order_acquire) != version_) [[unlikely]] {
    const std::lock_guard lock(all.mutex);
    version_ = all.version.load(std::memory_order_relaxed);
    count_ = 0;
    for (const Entry& entry : all.entries) {
      if (std::find(entry.ports.begin(), entry.ports.end(), port_) != entry.ports.end())
        ranges_[count_++] = {entry.begin, entry.end};
    }
  }
  const std::uintptr_t begin = address_of(bytes.data());
  for (std::size_t i = 0; i < count_; ++i) {
    if (ranges_[i].begin <= begin && begin + bytes.size() <= ranges_[i].end) return true;
  }
  return false;
}

}  // namespace mltcp::dpdk
