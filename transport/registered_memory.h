// Registration of the program's memory for DMA, so that payloads in it are sent without a copy.
//
// A device (a NIC under DPDK, or a verbs device) reads only memory that was mapped for this device, also in the IOMMU.
// Payloads in other memory are copied. Datapaths in which the CPU reads payloads, such as sockets and shared memory,
// need no registration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mltcp {

/// A device that reads memory by DMA. Datapaths that use DMA implement it.
class DmaDevice {
 public:
  virtual ~DmaDevice() = default;
  /// Returns whether memory must be mapped before the device reads it. False if the CPU reads it for the device.
  [[nodiscard]] virtual bool needs_mapping() const = 0;
  /// Maps `memory`, which consists of whole pages, and returns the device's key for it. May take long, because the
  /// kernel pins the pages. Throws RunError with the reason if it fails. Never called concurrently within a process.
  virtual std::uint64_t map(std::span<std::byte> memory) = 0;
  virtual void unmap(std::span<std::byte> memory, std::uint64_t key) noexcept = 0;
};

class RegisteredMemory {
 public:
  static constexpr std::size_t kMaxRanges = 64;  ///< maximum number of registered ranges in a process

  /// Maps `memory` for each of `devices` that needs a mapping. The memory must begin at a page boundary and be a whole
  /// number of pages. The memory and the devices must outlive the registration. Throws InputError if the memory is not
  /// whole pages or overlaps registered memory, or if kMaxRanges ranges are registered. Throws RunError if a device
  /// cannot map it.
  RegisteredMemory(std::span<std::byte> memory, std::span<DmaDevice* const> devices);
  /// Removes the registration. All messages with bytes in the memory must have completed.
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

 private:
  struct Mapping {
    DmaDevice* device;
    std::uint64_t key;
  };
  void undo() noexcept;

  std::span<std::byte> memory_;
  std::vector<Mapping> mappings_;
};

/// Finds memory that is registered for one device. Each sender has its own object, which caches the registrations.
/// Takes a lock only if registrations have changed since the last look-up.
class RegisteredRanges {
 public:
  explicit RegisteredRanges(const DmaDevice& device) : device_(&device) {}
  /// Returns the device's key for `bytes`. Empty unless one range that is registered for the device contains all of
  /// them.
  [[nodiscard]] std::optional<std::uint64_t> find(std::span<const std::byte> bytes);

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t key = 0;
  };
  const DmaDevice* device_;
  std::uint64_t version_ = 0;
  std::size_t count_ = 0;
  std::array<Range, RegisteredMemory::kMaxRanges> ranges_{};
};

}  // namespace mltcp
