// Memory of the program's own that ports may read by DMA, so that payloads in it are sent without a copy.
//
// A NIC reads only memory that DPDK knows (rte_extmem_register) and that the IOMMU lets it reach (rte_dev_dma_map).
// Payloads elsewhere are copied into packet buffers. Ports that read as the CPU does, such as memif, tap and ring, need
// none of this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/dpdk/port.h"

namespace mltcp::dpdk {

class RegisteredMemory {
 public:
  static constexpr std::size_t most = 64;  ///< at once in a process

  /// Has all of `ports` read `memory`, whole pages: it begins at a multiple of the page size and its length is one.
  /// Takes its time, since the kernel pins the pages. Memory and ports outlive it. Throws InputError if it isn't whole
  /// pages, or part of it is registered already; RunError if a port can't be given it.
  RegisteredMemory(std::span<std::byte> memory, std::span<const Port* const> ports);
  /// No packet refers to it any more: all its messages are complete.
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

 private:
  void undo();

  std::span<std::byte> memory_;
  std::vector<std::uint16_t> mapped_;  ///< ports
  bool known_ = false;                 ///< to DPDK
};

/// What is registered for a port, as its sender asks. Takes a lock only when something has been registered, or not any
/// more, since it was asked before.
class RegisteredRanges {
 public:
  explicit RegisteredRanges(std::uint16_t port) : port_(port) {}
  [[nodiscard]] bool contain(std::span<const std::byte> bytes);

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  std::uint16_t port_;
  std::uint64_t version_ = 0;
  std::size_t count_ = 0;
  std::array<Range, RegisteredMemory::most> ranges_{};
};

}  // namespace mltcp::dpdk
