// Counts the connections from each address, so that one address cannot occupy all slots. Only proven addresses are
// counted: addresses at which the peer has shown that it receives packets. A host may use any address of its 64-bit
// IPv6 subnet (RFC 4862), so all addresses of a subnet count as one. Exceptions are address ranges that many hosts
// share: link-local addresses (fe80::/10) and IPv4 hosts behind a translator (64:ff9b::/96, RFC 6052).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "mltcp/base/siphash.h"
#include "mltcp/transport/address.h"

namespace mltcp::transport {

class AddressCounts {
 public:
  /// An address, or an IPv6 subnet, whose connections are counted together.
  using Network = std::array<std::byte, 16>;
  static Network network_of(const Address& address) {
    constexpr std::size_t of_subnet = 8;
    constexpr std::array<std::uint8_t, 12> translated{0x00, 0x64, 0xFF, 0x9B};
    const auto& ip = address.ip;
    const bool is_link_local = ip[0] == 0xFE && (ip[1] & 0xC0) == 0x80;
    const bool is_whole =
        address.is_v4() || is_link_local || std::equal(translated.begin(), translated.end(), ip.begin());
    Network network{};
    std::memcpy(network.data(), ip.data(), is_whole ? network.size() : of_subnet);
    return network;
  }

  /// Constructs an object without a limit. It counts nothing, and has_share() always returns false.
  AddressCounts() : counts_(0, Hash{}) {}
  /// `max` is the maximum number of connections per address, 1 or more. `key` is the secret key of the hash function.
  /// It prevents peers from choosing addresses that share a bucket.
  AddressCounts(std::uint32_t max, const SipKey& key) : max_(max), counts_(0, Hash{key}) {}

  [[nodiscard]] std::uint32_t of(const Address& address) const {
    if (max_ == 0) return 0;
    const auto found = counts_.find(network_of(address));
    return found == counts_.end() ? 0 : found->second;
  }
  /// Returns whether the address has reached its maximum number of connections. `leaving` connections are not counted,
  /// because they end to make room for a new connection.
  [[nodiscard]] bool has_share(const Address& address, std::uint32_t leaving = 0) const {
    return max_ != 0 && of(address) >= max_ + leaving;
  }
  void add(const Address& address) {
    if (max_ != 0) ++counts_[network_of(address)];
  }
  /// Removes a connection that add() has counted.
  void remove(const Address& address) {
    if (max_ == 0) return;
    const auto found = counts_.find(network_of(address));
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

 private:
  struct Hash {
    SipKey key;
    std::size_t operator()(const Network& network) const noexcept { return siphash(key, network); }
  };

  std::uint32_t max_ = 0;  ///< maximum number of connections per address; 0 if there is no limit
  std::unordered_map<Network, std::uint32_t, Hash> counts_;
};

}  // namespace mltcp::transport
