// Memory of the program's own that devices may read by DMA, so that payloads in it are sent without a copy.
//
// A device reads only memory that it was told of, and that the IOMMU lets it reach: a NIC under DPDK, or a device of
// verbs. Payloads elsewhere are copied. Datapaths that read as the CPU does, such as sockets and shared memory, need
// none of this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mltcp {

/// What reads memory; each datapath that may read by DMA has one.
class DmaDevice {
 public:
  virtual ~DmaDevice() = default;
  /// False: it reads as the CPU does, and there is nothing to tell it.
  [[nodiscard]] virtual bool needs_mapping() const = 0;
  /// Has it read `memory`, whole pages, which may take its time, since the kernel pins them; returns what it knows the
  /// memory by. Throws RunError that says why it can't. One call at a time in a process.
  virtual std::uint64_t map(std::span<std::byte> memory) = 0;
  virtual void unmap(std::span<std::byte> memory, std::uint64_t key) noexcept = 0;
};

class RegisteredMemory {
 public:
  static constexpr std::size_t most = 64;  ///< at once in a process

  /// Has all of `devices` that need it read `memory`, whole pages: it begins at a multiple of the page size and its
  /// length is one. Memory and devices outlive it. Throws InputError if it isn't whole pages, or part of it is
  /// registered already; RunError if a device can't be given it.
  RegisteredMemory(std::span<std::byte> memory, std::span<DmaDevice* const> devices);
  /// No packet refers to it any more: all its messages are complete.
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

/// What is registered for a device, as its sender asks. Takes a lock only when something has been registered, or not
/// any more, since it was asked before.
class RegisteredRanges {
 public:
  explicit RegisteredRanges(const DmaDevice& device) : device_(&device) {}
  /// What the device knows `bytes` by; empty unless all of them lie in one piece that is registered for it.
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
  std::array<Range, RegisteredMemory::most> ranges_{};
};

}  // namespace mltcp
