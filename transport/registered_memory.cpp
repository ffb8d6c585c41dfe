// Registered memory; see registered_memory.h.
#include "mltcp/transport/registered_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "mltcp/base/error.h"

namespace mltcp {
namespace {

struct Entry {
  struct Known {
    const DmaDevice* device;
    std::uint64_t key;
  };
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::vector<Known> known;
};

/// All registrations of the process.
struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::atomic<std::uint64_t> version{1};
};

Registry& registry() {
  static Registry all;
  return all;
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

RegisteredMemory::RegisteredMemory(std::span<std::byte> memory, std::span<DmaDevice* const> devices) : memory_(memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = address_of(memory.data());
  const std::uintptr_t end = begin + memory.size();
  if (memory.empty() || begin % page != 0 || memory.size() % page != 0) {
    throw InputError(
        fmt::format("{} bytes at {:#x} can't be registered, as they are not whole pages of {} bytes; get such memory "
                    "with mmap or aligned_alloc({}, ...)",
                    memory.size(), begin, page, page));
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (std::any_of(all.entries.begin(), all.entries.end(),
                  [&](const Entry& entry) { return entry.begin < end && begin < entry.end; })) {
    throw InputError(
        fmt::format("some of the {} bytes at {:#x} are registered already; register them once, for all "
                    "devices",
                    memory.size(), begin));
  }
  if (all.entries.size() == kMaxRanges) {
    throw InputError(fmt::format(
        "{} pieces of memory are registered, which is the limit; register fewer and larger ones", kMaxRanges));
  }
  Entry entry{begin, end, {}};
  for (DmaDevice* const device : devices) {
    if (!device->needs_mapping()) continue;
    try {
      mappings_.push_back({device, device->map(memory)});
    } catch (...) {
      undo();
      throw;
    }
    entry.known.push_back({device, mappings_.back().key});
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

void RegisteredMemory::undo() noexcept {
  for (const Mapping& mapping : mappings_) mapping.device->unmap(memory_, mapping.key);
  mappings_.clear();
}

std::optional<std::uint64_t> RegisteredRanges::find(std::span<const std::byte> bytes) {
  Registry& all = registry();
  if (all.version.load(std::memory_order_acquire) != version_) [[unlikely]] {
    const std::lock_guard lock(all.mutex);
    version_ = all.version.load(std::memory_order_relaxed);
    count_ = 0;
    for (const Entry& entry : all.entries) {
      const auto known = std::find_if(entry.known.begin(), entry.known.end(),
                                      [&](const Entry::Known& one) { return one.device == device_; });
      if (known != entry.known.end()) ranges_[count_++] = {entry.begin, entry.end, known->key};
    }
  }
  const std::uintptr_t begin = address_of(bytes.data());
  for (std::size_t i = 0; i < count_; ++i) {
    if (ranges_[i].begin <= begin && begin + bytes.size() <= ranges_[i].end) return ranges_[i].key;
  }
  return std::nullopt;
}

}  // namespace mltcp
