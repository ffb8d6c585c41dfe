// The filtering database of a learning bridge (IEEE 802.1D-2004 section 7.9): maps MAC addresses to ports. Entries are
// learnt from source addresses. An entry expires if no frame from its address arrives within the ageing time. The table
// is a 4-way set-associative hash table of fixed size. If all four ways of a set hold unexpired entries, a new address
// is not learnt and frames to it are flooded. So a flood of invented addresses cannot evict addresses in use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::fabric {

/// A MAC address as a number. Its first octet is in bits 47 to 40.
using MacNumber = std::uint64_t;

/// Returns whether `mac` is a group address (multicast or broadcast).
constexpr bool is_group(MacNumber mac) { return (mac >> 40 & 1) != 0; }

struct MacTableConfig {
  std::uint32_t entries = 4096;  ///< number of entries, 4 to 2^20; rounded up to a power of two
  /// Time after which an unused entry expires; 1 s to 1'000'000 s, as the standard allows.
  Nanos ageing{300'000'000'000};
};

class MacTable {
 public:
  enum class Learnt : std::uint8_t { known, added, moved, full };

  /// Throws InputError if `config` is out of range.
  explicit MacTable(const MacTableConfig& config);

  /// Records that a frame from `mac` arrived on `port`. `mac` must not be 0; `port` must be below 2^16.
  Learnt learn(MacNumber mac, std::uint32_t port, Nanos now);
  /// Returns the port of `mac`; nothing if `mac` is unknown or has expired.
  [[nodiscard]] std::optional<std::uint32_t> find(MacNumber mac, Nanos now) const;
  /// Removes all addresses learnt on `port`.
  void forget(std::uint32_t port);
  /// Returns the number of unexpired addresses. Scans the whole table.
  [[nodiscard]] std::size_t size(Nanos now) const;

 private:
  static constexpr std::size_t kWays = 4;
  struct alignas(64) Set {
    std::array<std::uint64_t, kWays> keys{};  // address and port of each entry as mac << 16 | port; 0: no entry
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
