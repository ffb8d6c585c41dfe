// Whether a machine had its CPUs for itself.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace mltcp::testbed {

/// Of all CPUs since the machine began, in ticks.
struct CpuTime {
  static CpuTime now();
  /// From the text of /proc/stat (proc(5)).
  static CpuTime from(std::istream& stat);

  /// What a hypervisor kept from the CPUs when they had something to do, as a share of all time.
  [[nodiscard]] double stolen_since(const CpuTime& before) const;

  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};

}  // namespace mltcp::testbed
