// Addresses whose connections were ended for a violation: they acknowledged packets that were never sent, to get more
// than their share. If such a host could connect again at once, it would get a few hundred packets at full speed before
// the next violation is detected. So no connection is opened to or from such an address for a second, and for twice as
// long after each further violation. Afterwards its connections begin with the minimum window, until there was no
// violation for kForgottenAfter.
//
// A violation is only taken from a packet with the connection's tag, or sealed with its key. Only a program that
// receives at the address, or is on the path to it, can send such a packet, so nobody else can cause an address to be
// held off. Hosts that share an address by translation, and processes of one machine, are held off together, so the
// time is bounded.
//
// A host may have any address of its IPv6 subnet of 64 bits (RFC 4862), and use a new one for each violation. Its
// neighbours may be honest, so none of them is held off. But connections of the whole subnet begin with the minimum
// window and without slow start: a connection whose violation is detected within some hundred packets then gets less
// than an honest one.
//
// The numbers of addresses and subnets are bounded: if there are too many, the one whose time ends first is forgotten.
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
  static constexpr std::uint32_t kMaxDoublings = 8;  ///< 256 s
  /// An address is forgotten after this time without a violation, counted from the end of its hold-off time.
  static constexpr Nanos kForgottenAfter{600'000'000'000};
  static constexpr std::size_t kMost = 1024;

  void add(const Address& address, Nanos now) {
    // The connection was open when the hold-off began: violations of many connections at once double the time only
    // once.
    if (holds_off(address, now)) return;
    Entry& entry = entry_of(addresses_, std::bit_cast<Key>(address.ip));
    if (entry.violations > 0 && now >= entry.until + kForgottenAfter) entry = {};
    entry.until = now + kFirstTime * (std::int64_t{1} << std::min(entry.violations, kMaxDoublings));
    ++entry.violations;
    Entry& subnet = entry_of(subnets_, AddressCounts::network_of(address));
    subnet.until = std::max(subnet.until, entry.until);
  }
  /// Whether nothing may be opened to or from the address now.
  [[nodiscard]] bool holds_off(const Address& address, Nanos now) const {
    return !addresses_.empty() && now < until(address);
  }
  /// When the hold-off ends; in the past for an address without a violation.
  [[nodiscard]] Nanos until(const Address& address) const { return until(addresses_, std::bit_cast<Key>(address.ip)); }
  /// Whether a connection must begin with the minimum window, because there was a violation in the address's subnet.
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
    if (entries.size() >= kMost && !entries.contains(key))
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
