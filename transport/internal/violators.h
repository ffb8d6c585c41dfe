// Addresses whose connections were ended for a violation: they acknowledged what was never sent, to be
// sent more than their share. Who connects again at once would be sent the next few hundred packets at full speed
// before it is found out again. So nothing is opened to or from such an address for a second, twice as long after each
// further violation after that time, and afterwards its connections begin with the least window, until it has been
// honest for long.
//
// A violation is what a packet with the connection's tag, or sealed with its key, says. Only who receives at the
// address, or is on the path to it, can have sent that: nobody else can have an address held off. Hosts that share one,
// by address translation or as processes of one machine, are held off together, so the time is bounded. So are the
// addresses: where there are too many, the one that is held off for the shortest time is forgotten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "mltcp/base/units.h"
#include "mltcp/transport/internal/address_counts.h"

namespace mltcp {

class Violators {
 public:
  static constexpr Nanos first_time{1'000'000'000};
  static constexpr std::uint32_t most_doublings = 8;  ///< 256 s
  /// Without a violation, so long after the time is over.
  static constexpr Nanos forgotten_after{600'000'000'000};
  static constexpr std::size_t most = 1024;

  void add(const Address& address, Nanos now) {
    const auto network = AddressCounts::network_of(address);
    // Of a connection that was open when the time began: what many lied at once doubles it once.
    if (holds_off(address, now)) return;
    if (entries_.size() >= most && !entries_.contains(network))
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
    Entry& entry = entries_[network];
    if (entry.violations > 0 && now >= entry.until + forgotten_after) entry = {};
    entry.until = now + first_time * (std::int64_t{1} << std::min(entry.violations, most_doublings));
    ++entry.violations;
  }
  /// Whether nothing may be opened to or from the address now.
  [[nodiscard]] bool holds_off(const Address& address, Nanos now) const {
    return !entries_.empty() && now < until(address);
  }
  /// When that is over; long ago for an address that has done nothing.
  [[nodiscard]] Nanos until(const Address& address) const {
    const auto found = entries_.find(AddressCounts::network_of(address));
    return found == entries_.end() ? Nanos() - forgotten_after : found->second.until;
  }
  /// Whether a connection has to begin with the least window.
  [[nodiscard]] bool knows(const Address& address, Nanos now) const {
    return !entries_.empty() && now < until(address) + forgotten_after;
  }

 private:
  struct Entry {
    Nanos until{};
    std::uint32_t violations = 0;
  };

  std::map<AddressCounts::Network, Entry> entries_;
};

}  // namespace mltcp
