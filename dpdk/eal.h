// DPDK's environment abstraction layer (EAL); one per process.
//
// Uses huge pages if enough are free, otherwise ordinary pages; needs neither root nor a NIC, leaves no files behind,
// and hides DPDK's own messages: failures are reported in one line with the cure. DPDK pins the thread that starts it
// to a CPU; that is undone here.
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

/// The CPUs on which the calling thread may run, ascending.
std::vector<unsigned> usable_cpus();

/// Parses a list of CPUs such as "0", "0,1", "0-1" or "2,4-6", in the order given. Throws InputError if `text` is
/// invalid, or names a CPU twice or one that is not in `usable`.
std::vector<unsigned> parse_cores(std::string_view text, std::span<const unsigned> usable);

struct EalOptions {
  /// List of CPUs for parse_cores(). Empty: the first usable one.
  std::string cores;
  /// Memory in MiB for packets, rings and DPDK itself; from Eal::least_memory_mb to most_memory_mb.
  std::uint32_t memory_mb = 128;
  /// The same with ordinary pages, if it is larger: unused ordinary pages cost nothing.
  std::uint32_t ordinary_memory_mb = 0;
  enum class HugePages { if_free, never, required };
  HugePages huge_pages = HugePages::if_free;
  /// PCI addresses of the NICs that DPDK may use, such as "0000:3b:00.0" (or "pci:0000:3b:00.0"). It leaves others
  /// alone, and does not scan the PCI bus if there are none.
  std::vector<std::string> pci;
};

class Eal {
 public:
  static constexpr std::uint32_t least_memory_mb = 32;
  static constexpr std::uint32_t most_memory_mb = 65536;

  /// Starts DPDK; takes about 150 ms, of which DPDK spends 100 ms on calibrating the TSC. The calling thread must be
  /// the one that later runs datapaths; each other core of the list gets its own thread, which sleeps until used.
  /// Throws InputError for invalid options, RunError if DPDK cannot start, or has been started in this process before,
  /// which is possible once only.
  explicit Eal(const EalOptions& options);
  /// Stops DPDK. Its memory is released only at process exit if a NIC was allowed, or a port of any kind other than
  /// af_packet, af_xdp or ring has existed.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] bool uses_huge_pages() const;
  [[nodiscard]] std::uint32_t memory_mb() const;
  /// In the order given; the first one is the calling thread's.
  [[nodiscard]] std::span<const unsigned> cores() const;
  /// NICs that DPDK may use, in the form "0000:3b:00.0".
  [[nodiscard]] std::span<const std::string> pci() const;
  /// The calibrated clock.
  [[nodiscard]] const Clock& clock() const;
  /// The same clock as a time source for loops.
  [[nodiscard]] TimeSource& time() const;
  /// One line for people: "DPDK 22.11.11, core 0, 128 MB in ordinary pages (no huge pages are free)".
  [[nodiscard]] const std::string& description() const;

  /// Whether an Eal was ever started in this process.
  static bool was_started();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The latest lines logged by DPDK and its drivers' libraries in this process, oldest first, for error messages and bug
/// reports.
std::vector<std::string> dpdk_log();

}  // namespace mltcp::dpdk
