// A hash of addresses by a random key, so that an attacker who chooses addresses (e.g. forged senders) cannot choose
// which of them collide. Both halves of each product are used: in the lower half a difference of the highest bits would
// stay in place, whatever the key, and another word could cancel it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"

namespace mltcp::rdma {

class KeyedHash {
 public:
  KeyedHash(std::uint64_t start, std::uint64_t factor) : start_(start), factor_(factor | 1) {}

  std::size_t operator()(const Address& address) const noexcept { return of(address, 0); }
  /// For an address and another number that distinguishes entries.
  [[nodiscard]] std::size_t of(const Address& address, std::uint32_t more) const noexcept {
    std::uint64_t words[2];
    std::memcpy(words, address.ip.data(), sizeof words);
    std::uint64_t hash = start_;
    for (const std::uint64_t word : {words[0], words[1], std::uint64_t{more} << 16 | address.port}) {
      const Uint128 product = static_cast<Uint128>(hash ^ word) * factor_;
      hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    return static_cast<std::size_t>(hash);
  }

 private:
  std::uint64_t start_;
  std::uint64_t factor_;
};

}  // namespace mltcp::rdma
