// DPDK's environment abstraction layer (EAL): started once in a process, by its first user, and shared by all others
// until the process ends, because DPDK cannot be started again.
//
// Uses huge pages if enough are free, otherwise ordinary pages; needs neither root nor a NIC, leaves no files behind,
// and hides DPDK's own messages: failures are reported in one line with the cure. DPDK pins the thread that starts it
// to a CPU; that is a separate thread here (service.h), so the program's threads keep their affinity.
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

/// Memory and devices apply when DPDK is started. If it is already running, it keeps its memory, and further devices
/// are plugged when their ports are opened.
struct EalOptions {
  /// List of CPUs for parse_cores(). Empty: the first usable one.
  std::string cores;
  /// Memory in MiB for packets, rings and DPDK itself, of all ports of the process; from Eal::kMinMemoryMb to
  /// kMaxMemoryMb. Huge pages are added later if needed and free; memory in ordinary pages cannot grow.
  std::uint32_t memory_mb = 128;
  /// The same with ordinary pages, if it is larger: unused ordinary pages cost next to nothing.
  std::uint32_t ordinary_memory_mb = 0;
  /// A running DPDK is refused if it has less memory than this, in MiB, and cannot grow. 0: any memory is accepted.
  std::uint32_t min_shared_mb = 0;
  enum class HugePages { if_free, never, required };
  HugePages huge_pages = HugePages::if_free;
  /// The ports that will be opened, by their names (port_name.h): the NICs among them choose how DPDK addresses memory.
  /// A NIC that is not named here may be opened later if it takes virtual addresses (an IOMMU, mlx4, mlx5). Others on
  /// the PCI bus are left alone.
  std::vector<std::string> devices;
};

class CoreThread;

class Eal {
 public:
  static constexpr std::uint32_t kMinMemoryMb = 32;
  static constexpr std::uint32_t kMaxMemoryMb = 65536;

  /// Starts DPDK, or shares the one that runs in this process. The start takes about 150 ms, 100 ms of them for
  /// calibrating the TSC. Any number of Eals may exist at a time, created by any threads. The calling thread gets its
  /// own caches in pools, and should be the one that later runs datapaths. Each other core of the list gets its own
  /// thread, which sleeps until used. Throws InputError for invalid options, RunError if DPDK cannot start, runs in
  /// this process with settings that contradict these, or was started by the parent of a forked process.
  explicit Eal(const EalOptions& options);
  /// Ends the threads of its cores. DPDK and its memory stay until the process ends.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] bool uses_huge_pages() const;
  [[nodiscard]] std::uint32_t memory_mb() const;
  /// The cores in the given order; the first one is the calling thread's.
  [[nodiscard]] std::span<const unsigned> cores() const;
  /// The thread of core `core`, an index in that list from 1 on.
  [[nodiscard]] CoreThread& core_thread(std::size_t core) const;
  /// Whether DPDK was running already.
  [[nodiscard]] bool is_shared() const;
  /// The calibrated clock.
  [[nodiscard]] const Clock& clock() const;
  /// The same clock as a time source for loops.
  [[nodiscard]] TimeSource& time() const;
  /// One line for people: "DPDK 22.11.11, core 0, 128 MB in ordinary pages (no huge pages are free)".
  [[nodiscard]] const std::string& description() const;

  /// Whether DPDK was started in this process, or in the one that it was forked from.
  static bool was_started();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The latest lines logged by DPDK and its drivers' libraries in this process, oldest first, for error messages and bug
/// reports.
std::vector<std::string> dpdk_log();

}  // namespace mltcp::dpdk
