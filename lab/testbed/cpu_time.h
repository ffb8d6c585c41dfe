// Measures the CPU time that the hypervisor of this (virtual) machine withheld from it.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace mltcp::testbed {

/// CPU time since boot, summed over all CPUs, in ticks. `stolen` is the part of `all` that the hypervisor withheld.
struct CpuTime {
  static CpuTime now();
  /// Reads the text of /proc/stat (proc(5)).
  static CpuTime from(std::istream& stat);

  /// Returns the share, 0 to 1, of the time of all CPUs since `before` that the hypervisor withheld.
  [[nodiscard]] double stolen_since(const CpuTime& before) const;

  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};

}  // namespace mltcp::testbed
