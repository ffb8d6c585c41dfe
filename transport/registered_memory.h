// Registration of the program's memory for DMA, so that payloads in it are sent without a copy.
//
// A device reads only memory that was mapped for it, also in the IOMMU: a NIC under DPDK, or a verbs device. Payloads
// in other memory are copied. Datapaths in which the CPU reads payloads, such as sockets and shared memory, need no
// registration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mltcp {

/// A device that reads memory by DMA; implemented by each datapath that may do so.
class DmaDevice {
 public:
  virtual ~DmaDevice() = default;
  /// False if the device reads through the CPU, so that nothing needs mapping.
  [[nodiscard]] virtual bool needs_mapping() const = 0;
  /// Maps `memory`, which consists of whole pages, and returns the device's key for it. May take long, as the kernel
  /// pins the pages. Throws RunError with the reason if it fails. Never called concurrently within a process.
  virtual std::uint64_t map(std::span<std::byte> memory) = 0;
  virtual void unmap(std::span<std::byte> memory, std::uint64_t key) noexcept = 0;
};

class RegisteredMemory {
 public:
  static constexpr std::size_t kMost = 64;  ///< maximum number of registered ranges in a process

  /// Maps `memory` for all of `devices` that need it. It must begin at a page boundary and be a whole number of pages;
  /// it and the devices must outlive the registration. Throws InputError if it is not whole pages or overlaps
  /// registered memory; RunError if a device cannot map it.
  RegisteredMemory(std::span<std::byte> memory, std::span<DmaDevice* const> devices);
  /// All messages with bytes in the memory must have completed.
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

/// Look-up of the memory registered for one device, cached for one sender. Takes a lock only if registrations have
/// changed since the last look-up.
class RegisteredRanges {
 public:
  explicit RegisteredRanges(const DmaDevice& device) : device_(&device) {}
  /// The device's key for `bytes`; empty unless all of them lie within one range registered for it.
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
  std::array<Range, RegisteredMemory::kMost> ranges_{};
};

}  // namespace mltcp
