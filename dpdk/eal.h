// DPDK's environment abstraction layer (EAL), started once in a process and stopped with it.
//
// It takes memory from huge pages when enough of them are free, and from ordinary pages otherwise, needs neither
// root nor a NIC, leaves no files behind, and keeps DPDK's own messages to itself: what goes wrong is told in one
// line with its cure. DPDK pins the thread that starts it to a CPU; that is undone here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/time_source.h"

namespace mltcp::dpdk {

/// The CPUs that the calling thread may use, ascending.
std::vector<unsigned> usable_cpus();

/// "0", "0,1", "0-1", "2,4-6": a list of CPUs in the order given. Throws InputError if `text` can't be read, or names a
/// CPU twice or one that is not in `usable`.
std::vector<unsigned> parse_cores(std::string_view text, std::span<const unsigned> usable);

struct EalOptions {
  /// CPUs to use, as parse_cores() reads them. Empty: the first usable one.
  std::string cores;
  /// Memory for packets, rings and DPDK itself; Eal::least_memory_mb to most_memory_mb.
  std::uint32_t memory_mb = 128;
  /// The same where pages are ordinary ones, if that is more: what isn't used of these costs nothing.
  std::uint32_t ordinary_memory_mb = 0;
  enum class HugePages { if_free, never, required };
  HugePages huge_pages = HugePages::if_free;
  /// PCI addresses of the NICs that DPDK may take ("0000:3b:00.0"; a "pci:" before it is allowed). Others it leaves
  /// alone, and without any it does not look at the PCI bus.
  std::vector<std::string> pci;
};

class Eal {
 public:
  static constexpr std::uint32_t least_memory_mb = 32;
  static constexpr std::uint32_t most_memory_mb = 65536;

  /// Starts DPDK. Takes about 150 ms, of which DPDK spends 100 on measuring the TSC. The calling thread is the one
  /// that later runs datapaths; every other core of the list gets a thread of its own that sleeps until it is used.
  /// Throws InputError on bad options, RunError if DPDK can't start or was started in this process before: it can't
  /// be started twice.
  explicit Eal(const EalOptions& options);
  /// Ends DPDK. Its memory is given back only at the end of the process if it was allowed a NIC, or there was a port of
  /// a kind other than af_packet, af_xdp and ring.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] bool uses_huge_pages() const;
  [[nodiscard]] std::uint32_t memory_mb() const;
  /// As given; the first is the calling thread's.
  [[nodiscard]] std::span<const unsigned> cores() const;
  /// NICs that DPDK may take, in the form "0000:3b:00.0".
  [[nodiscard]] std::span<const std::string> pci() const;
  /// Calibrated.
  [[nodiscard]] const Clock& clock() const;
  /// By that clock, for loops.
  [[nodiscard]] TimeSource& time() const;
  /// One line for people: "DPDK 22.11.11, core 0, 128 MB in ordinary pages (no huge pages are free)".
  [[nodiscard]] const std::string& description() const;

  /// Whether an Eal is, or ever was, started in this process.
  static bool was_started();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The latest lines that DPDK, and the libraries that its drivers use, logged in this process, oldest first, for error
/// messages and bug reports.
std::vector<std::string> dpdk_log();

}  // namespace mltcp::dpdk
