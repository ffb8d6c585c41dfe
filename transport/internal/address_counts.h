// How many connections come from each address, so that one can't take the place of all others. An address is one that a
// peer has proven to receive at; an IPv6 host has a whole /64 of them (RFC 4291 section 2.5.1), which count together.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "mltcp/base/siphash.h"
#include "mltcp/transport/address.h"

namespace mltcp {

class AddressCounts {
 public:
  /// `key`: peers may choose their addresses, but not which of them share a bucket.
  explicit AddressCounts(const SipKey& key = {}) : counts_(0, Hash{key}) {}

  [[nodiscard]] std::uint32_t of(const Address& address) const {
    const auto found = counts_.find(network_of(address));
    return found == counts_.end() ? 0 : found->second;
  }
  void add(const Address& address) { ++counts_[network_of(address)]; }
  /// Of one that was added.
  void remove(const Address& address) {
    const auto found = counts_.find(network_of(address));
    if (--found->second == 0) counts_.erase(found);
  }

 private:
  using Network = std::array<std::byte, 16>;
  struct Hash {
    SipKey key;
    std::size_t operator()(const Network& network) const noexcept { return siphash(key, network); }
  };
  static Network network_of(const Address& address) {
    constexpr std::size_t of_v6 = 8;
    Network network{};
    std::memcpy(network.data(), address.ip.data(), address.is_v4() ? network.size() : of_v6);
    return network;
  }

  std::unordered_map<Network, std::uint32_t, Hash> counts_;
};

}  // namespace mltcp
