// The filtering database of a learning bridge (IEEE 802.1D-2004 section 7.9): maps MAC addresses to ports. Entries are
// learnt from source addresses and expire when no frame from the address arrives for the ageing time. A 4-way
// set-associative hash table of fixed size: if all four ways are occupied by unexpired entries, an address is not
// learnt and frames to it are flooded, so that a flood of invented addresses cannot evict those in use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::fabric {

/// A MAC address as a number, its first octet in bits 47 to 40.
using MacNumber = std::uint64_t;

/// Whether it is a group address: multicast, or broadcast.
constexpr bool is_group(MacNumber mac) { return (mac >> 40 & 1) != 0; }

struct MacTableConfig {
  std::uint32_t entries = 4096;   ///< 4 to 2^20; rounded up to a power of two
  Nanos ageing{300'000'000'000};  ///< 1 s to 1'000'000 s, as the standard allows
};

class MacTable {
 public:
  enum class Learnt : std::uint8_t { known, added, moved, full };

  /// Throws InputError if `config` is out of range.
  explicit MacTable(const MacTableConfig& config);

  /// Records that a frame from `mac` (not 0) arrived on `port` (below 2^16).
  Learnt learn(MacNumber mac, std::uint32_t port, Nanos now);
  /// The port of `mac`; empty if it is unknown or has expired.
  [[nodiscard]] std::optional<std::uint32_t> find(MacNumber mac, Nanos now) const;
  /// Removes all addresses learnt on `port`.
  void forget(std::uint32_t port);
  /// Number of unexpired addresses. Scans the whole table.
  [[nodiscard]] std::size_t size(Nanos now) const;

 private:
  static constexpr std::size_t kWays = 4;
  struct alignas(64) Set {
    std::array<std::uint64_t, kWays> keys{};  // address and port: mac << 16 | port; 0: free
    std::array<Nanos, kWays> heard{};
  };
  static_assert(sizeof(Set) == 64);

  [[nodiscard]] std::size_t index_of(MacNumber mac) const { return (mac * 0x9E3779B97F4A7C15) >> shift_; }
  [[nodiscard]] bool aged(const Set& set, std::size_t way, Nanos now) const { return now - set.heard[way] > ageing_; }

  std::vector<Set> sets_;
  std::uint32_t shift_;
  Nanos ageing_;
};

}  // namespace mltcp::fabric
