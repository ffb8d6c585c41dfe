// A hash of addresses with a random key. An attacker who chooses addresses (e.g. forged senders) cannot choose which of
// them collide, because the key is secret.
//
// The hash uses both halves of each product. In the lower half, a difference in the highest bits would stay in the
// highest bits whatever the key is, and another word could cancel it.
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
  /// Hashes an address together with `more`, a number that distinguishes entries with the same address.
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
