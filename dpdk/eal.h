// DPDK's environment abstraction layer (EAL). The first user in a process starts it, and all later users share it until
// the process ends, because DPDK cannot be started again.
//
// Uses huge pages if enough are free, otherwise ordinary pages. Needs neither root nor a NIC, and leaves no files
// behind. Hides DPDK's own messages, and reports failures in one line with a remedy. DPDK pins the thread that starts
// DPDK to a CPU. A separate thread (service.h) starts DPDK, so the program's threads keep their affinity.
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

/// Returns the CPUs on which the calling thread may run, in ascending order.
std::vector<unsigned> usable_cpus();

/// Parses a list of CPUs such as "0", "0,1", "0-1" or "2,4-6". Returns them in the order given. Throws InputError if
/// `text` is invalid, names a CPU twice, or names a CPU that is not in `usable`.
std::vector<unsigned> parse_cores(std::string_view text, std::span<const unsigned> usable);

/// The memory and the devices matter when DPDK is started. A DPDK that is already running keeps its memory, and adds a
/// device when a port of the device is opened.
struct EalOptions {
  /// List of CPUs for parse_cores(); empty for the first usable CPU.
  std::string cores;
  /// Memory in MiB for packets, rings and DPDK itself, for all ports of the process together. From Eal::kMinMemoryMb to
  /// kMaxMemoryMb. Huge pages are added later if needed and free. Memory in ordinary pages cannot grow.
  std::uint32_t memory_mb = 128;
  /// Memory in MiB if ordinary pages are used, unless memory_mb is larger. Unused ordinary pages cost next to nothing.
  std::uint32_t ordinary_memory_mb = 0;
  /// Minimum memory in MiB of a running DPDK that cannot grow. With less memory the constructor of Eal throws RunError.
  /// 0 if any memory is accepted.
  std::uint32_t min_shared_mb = 0;
  enum class HugePages { if_free, never, required };
  HugePages huge_pages = HugePages::if_free;
  /// The names (port_name.h) of the ports that will be opened. The NICs among them determine how DPDK addresses memory.
  /// A NIC that is not named here can be opened later if it supports virtual addresses (an IOMMU, mlx4, mlx5). At its
  /// start, DPDK uses no NIC that is not named here.
  std::vector<std::string> devices;
};

class CoreThread;

class Eal {
 public:
  static constexpr std::uint32_t kMinMemoryMb = 32;
  static constexpr std::uint32_t kMaxMemoryMb = 65536;

  /// Starts DPDK, or shares the DPDK that runs in this process. The start takes about 150 ms, of which calibrating the
  /// TSC takes 100 ms. Any number of Eals may exist at a time, created by any threads. The calling thread gets its own
  /// caches in pools, and should be the thread that later runs datapaths. Each core of the list except the first gets
  /// its own thread, which sleeps until it is used. Throws InputError for invalid options. Throws RunError if DPDK
  /// cannot start, or if it already runs in this process with settings that contradict `options`. Also throws RunError
  /// in a forked child whose parent has started DPDK.
  explicit Eal(const EalOptions& options);
  /// Ends the threads of its cores. DPDK and its memory stay until the process ends.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] bool uses_huge_pages() const;
  [[nodiscard]] std::uint32_t memory_mb() const;
  /// Returns the cores in the order of EalOptions::cores. The first core is for the thread that created this Eal.
  [[nodiscard]] std::span<const unsigned> cores() const;
  /// Returns the thread of the core with index `core` in cores(), 1 or higher.
  [[nodiscard]] CoreThread& core_thread(std::size_t core) const;
  /// Returns whether DPDK was already running when this Eal was created.
  [[nodiscard]] bool is_shared() const;
  /// Returns the calibrated clock.
  [[nodiscard]] const Clock& clock() const;
  /// Returns the calibrated clock as a time source for loops.
  [[nodiscard]] TimeSource& time() const;
  /// Returns one line for people, such as "DPDK 22.11.11, core 0, 128 MB in huge pages".
  [[nodiscard]] const std::string& description() const;

  /// Returns whether DPDK was started in this process, or in the process from which it was forked.
  static bool was_started();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the latest lines logged by DPDK and its drivers' libraries in this process, oldest first, for error messages
/// and bug reports.
std::vector<std::string> dpdk_log();

}  // namespace mltcp::dpdk
