// Remembers addresses whose connections were ended for a violation: the peer acknowledged packets that were never sent,
// to get more than its share. If such a host could connect again at once, it would get a few hundred packets at full
// speed before the next violation is detected. So no connection is opened to or from its address for a second, and for
// twice as long after each further violation. After that, connections with the address begin with the minimum window,
// until there has been no violation for kForgottenAfter.
//
// A violation counts only if the packet that shows it has the connection's tag, or is sealed with the connection's key.
// Only a program that receives at the address, or is on the path to it, can send such a packet. So nobody else can
// cause an address to be held off. Hosts that share an address by translation, and processes of one machine, are held
// off together, so the hold-off time is bounded.
//
// A host may use any address of its 64-bit IPv6 subnet (RFC 4862), and a new address for each violation. Other hosts of
// the subnet may be honest, so the subnet is not held off. But all connections of the subnet begin with the minimum
// window and without slow start. A connection whose violation is detected within some hundred packets then gets less
// than an honest one.
//
// The numbers of addresses and subnets are bounded. If there are too many, the one whose hold-off ends first is
// forgotten.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>

#include "mltcp/base/units.h"
#include "mltcp/transport/internal/address_counts.h"

namespace mltcp::transport {

class Violators {
 public:
  static constexpr Nanos kFirstTime{1'000'000'000};
  static constexpr std::uint32_t kMaxDoublings = 8;  ///< the longest hold-off time is 256 s
  /// An address is forgotten after this time without a violation, counted from the end of its hold-off time.
  static constexpr Nanos kForgottenAfter{600'000'000'000};
  static constexpr std::size_t kMaxEntries = 1024;

  void add(const Address& address, Nanos now) {
    // A connection that was open when the hold-off began does not extend it. So violations of many connections at once
    // double the time only once.
    if (holds_off(address, now)) return;
    Entry& entry = entry_of(addresses_, std::bit_cast<Key>(address.ip));
    if (entry.violations > 0 && now >= entry.until + kForgottenAfter) entry = {};
    entry.until = now + kFirstTime * (std::int64_t{1} << std::min(entry.violations, kMaxDoublings));
    ++entry.violations;
    Entry& subnet = entry_of(subnets_, AddressCounts::network_of(address));
    subnet.until = std::max(subnet.until, entry.until);
  }
  /// Returns whether no connection may be opened to or from the address now.
  [[nodiscard]] bool holds_off(const Address& address, Nanos now) const {
    return !addresses_.empty() && now < until(address);
  }
  /// Returns when the hold-off of the address ends. The time is in the past if the address has no violation.
  [[nodiscard]] Nanos until(const Address& address) const { return until(addresses_, std::bit_cast<Key>(address.ip)); }
  /// Returns whether a connection must begin with the minimum window because of a violation in the address's subnet.
  [[nodiscard]] bool knows(const Address& address, Nanos now) const {
    return !subnets_.empty() && now < until(subnets_, AddressCounts::network_of(address)) + kForgottenAfter;
  }

 private:
  struct Entry {
    Nanos until{};
    std::uint32_t violations = 0;
  };
  using Key = AddressCounts::Network;
  using Entries = std::map<Key, Entry>;

  static Entry& entry_of(Entries& entries, const Key& key) {
    if (entries.size() >= kMaxEntries && !entries.contains(key))
      entries.erase(std::min_element(entries.begin(), entries.end(),
                                     [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
    return entries[key];
  }
  static Nanos until(const Entries& entries, const Key& key) {
    const auto found = entries.find(key);
    return found == entries.end() ? Nanos() - kForgottenAfter : found->second.until;
  }

  Entries addresses_;
  Entries subnets_;
};

}  // namespace mltcp::transport
