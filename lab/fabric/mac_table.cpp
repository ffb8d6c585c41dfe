// Learns and finds MAC addresses (see mac_table.h).
#include "mltcp/lab/fabric/mac_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "mltcp/base/error.h"

namespace mltcp::fabric {

MacTable::MacTable(const MacTableConfig& config) : shift_(0), ageing_(config.ageing) {
  constexpr std::uint32_t max = 1U << 20;
  if (config.entries < kWays || config.entries > max)
    throw InputError(fmt::format("a table of {} MAC addresses; give {} to {}", config.entries, kWays, max));
  if (config.ageing < Nanos::from_seconds(1) || config.ageing > Nanos::from_seconds(1e6))
    throw InputError(fmt::format("an ageing time of {}; give 1 s to 1000000 s", to_text(config.ageing)));
  // Uses at least two sets, because with one set index_of() would shift by 64 bits, which is undefined.
  sets_.resize(std::bit_ceil(std::max<std::size_t>((config.entries + kWays - 1) / kWays, 2)));
  shift_ = 64 - static_cast<std::uint32_t>(std::countr_zero(sets_.size()));
}

MacTable::Learnt MacTable::learn(MacNumber mac, std::uint32_t port, Nanos now) {
  Set& set = sets_[index_of(mac)];
  std::size_t place = kWays;
  for (std::size_t way = 0; way < kWays; ++way) {
    const std::uint64_t key = set.keys[way];
    if (key >> 16 == mac) {
      const bool moved = (key & 0xFFFF) != port;
      const bool forgotten = aged(set, way, now);
      set.keys[way] = mac << 16 | port;
      set.heard[way] = now;
      return forgotten ? Learnt::added : moved ? Learnt::moved : Learnt::known;
    }
    if (key == 0 || aged(set, way, now)) place = way;
  }
  if (place == kWays) return Learnt::full;
  set.keys[place] = mac << 16 | port;
  set.heard[place] = now;
  return Learnt::added;
}

std::optional<std::uint32_t> MacTable::find(MacNumber mac, Nanos now) const {
  const Set& set = sets_[index_of(mac)];
  for (std::size_t way = 0; way < kWays; ++way)
    if (set.keys[way] >> 16 == mac && !aged(set, way, now)) return static_cast<std::uint32_t>(set.keys[way] & 0xFFFF);
  return std::nullopt;
}

void MacTable::forget(std::uint32_t port) {
  for (Set& set : sets_)
    for (std::uint64_t& key : set.keys)
      if (key != 0 && (key & 0xFFFF) == port) key = 0;
}

std::size_t MacTable::size(Nanos now) const {
  std::size_t known = 0;
  for (const Set& set : sets_)
    for (std::size_t way = 0; way < kWays; ++way)
      if (set.keys[way] != 0 && !aged(set, way, now)) ++known;
  return known;
}

}  // namespace mltcp::fabric
