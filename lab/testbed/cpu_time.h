// Measures the CPU time that a hypervisor withheld from this machine.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace mltcp::testbed {

/// Time of all CPUs since boot, in ticks.
struct CpuTime {
  static CpuTime now();
  /// From the text of /proc/stat (proc(5)).
  static CpuTime from(std::istream& stat);

  /// Time that the hypervisor withheld from busy CPUs, as a share of all time since `before`.
  [[nodiscard]] double stolen_since(const CpuTime& before) const;

  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};

}  // namespace mltcp::testbed
