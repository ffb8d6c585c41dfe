// Measures the CPU time that a hypervisor withheld from this machine.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace mltcp::testbed {

/// Time of all CPUs since boot, in ticks. `stolen` is the time that the hypervisor withheld.
struct CpuTime {
  static CpuTime now();
  /// Reads the text of /proc/stat (proc(5)).
  static CpuTime from(std::istream& stat);

  /// Returns the time that the hypervisor withheld from busy CPUs, as a share of the time of all CPUs since `before`.
  [[nodiscard]] double stolen_since(const CpuTime& before) const;

  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};

}  // namespace mltcp::testbed
