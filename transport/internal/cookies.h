// Cookies prove that a peer receives packets at its address. Instead of storing a CONNECT, a shard may answer with
// RETRY, which contains a cookie. A peer that returns the cookie has received it at the address from which it connects.
// SYN cookies (RFC 4987 section 3.6) and the Retry packet of QUIC (RFC 9000 section 8.1.2) work in the same way.
//
// A cookie is a keyed hash of the peer's address, the peer's connection id and further fields. Each time slot has its
// own random key. Cookies of the previous time slot are also accepted. Each cookie is valid for one connection: a peer
// that returns a used cookie gets a new cookie.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "mltcp/base/siphash.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/internal/shard_random.h"

namespace mltcp::transport {

/// Identifies a connection by the peer's address and the peer's id of the connection.
struct PeerKey {
  Address remote;
  std::uint32_t connection = 0;
  bool operator==(const PeerKey&) const = default;

  [[nodiscard]] std::array<std::byte, 22> bytes() const {
    std::array<std::byte, 22> all;
    std::memcpy(all.data(), remote.ip.data(), 16);
    std::memcpy(all.data() + 16, &remote.port, 2);
    std::memcpy(all.data() + 18, &connection, 4);
    return all;
  }
};

/// A keyed hash. Peers choose their ids, but cannot choose ids that share a bucket.
struct PeerKeyHash {
  SipKey key{};
  std::size_t operator()(const PeerKey& peer) const noexcept { return siphash(key, peer.bytes()); }
};

class Cookies {
 public:
  static constexpr Nanos kSlotLength{10'000'000'000};

  /// `used` is the approximate number of used cookies that are remembered. The first call of use() allocates their
  /// memory.
  explicit Cookies(std::uint32_t used) : used_count_(used) {}

  [[nodiscard]] std::uint64_t make(const PeerKey& peer, std::uint64_t tag, ShardRandom& random, Nanos now) {
    turn(random, now);
    std::uint64_t cookie = 0;
    for (std::int64_t which = 0; which < kOfEach; ++which)
      if (cookie = hash(peer, tag, slot_, which); !is_used(cookie)) break;
    return cookie;
  }
  enum class Worth : std::uint8_t {
    nothing,  ///< not made for this peer, or expired
    used,
    proof,
  };
  [[nodiscard]] Worth worth(std::uint64_t cookie, const PeerKey& peer, std::uint64_t tag, ShardRandom& random,
                            Nanos now) {
    turn(random, now);
    for (std::int64_t slot = slot_; slot >= 0 && slot + 1 >= slot_; --slot)
      for (std::int64_t which = 0; which < kOfEach; ++which) {
        const std::uint64_t made = hash(peer, tag, slot, which);
        if (cookie == made) return is_used(made) ? Worth::used : Worth::proof;
        if (!is_used(made)) break;  // later cookies of this slot have not been given out
      }
    return Worth::nothing;
  }
  void use(std::uint64_t cookie) {
    if (used_.empty()) used_.resize(std::bit_ceil(std::max<std::size_t>(used_count_ / Bucket().size(), 64)));
    Bucket& bucket = used_[cookie & (used_.size() - 1)];
    std::shift_right(bucket.begin(), bucket.end(), 1);
    bucket[0] = cookie;
  }

 private:
  static constexpr std::int64_t kOfEach = 4;  ///< maximum number of cookies for a peer's connection in one slot
  /// The latest used cookies, newest first. 0 marks an empty entry. No peer can choose its cookie's bucket.
  using Bucket = std::array<std::uint64_t, 8>;

  [[nodiscard]] bool is_used(std::uint64_t cookie) const {
    return !used_.empty() && std::ranges::count(used_[cookie & (used_.size() - 1)], cookie) > 0;
  }
  /// Draws the keys of the current and the previous time slot, unless they have been drawn.
  void turn(ShardRandom& random, Nanos now) {
    const std::int64_t slot = now.count / kSlotLength.count;
    if (slot == slot_) return;
    if (slot != slot_ + 1) key_of(slot - 1) = random.key();
    key_of(slot) = random.key();
    slot_ = slot;
  }
  SipKey& key_of(std::int64_t slot) { return keys_[static_cast<std::size_t>(slot & 1)]; }
  [[nodiscard]] std::uint64_t hash(const PeerKey& peer, std::uint64_t tag, std::int64_t slot, std::int64_t which) {
    std::array<std::byte, 38> input;
    const auto who = peer.bytes();
    std::memcpy(input.data(), who.data(), who.size());
    std::memcpy(input.data() + 22, &tag, 8);
    const std::int64_t one = slot | which << 60;
    std::memcpy(input.data() + 30, &one, 8);
    return siphash(key_of(slot), input);
  }

  std::array<SipKey, 2> keys_{};
  std::int64_t slot_ = -1;  ///< number of the current slot; -1 if no keys have been drawn
  std::uint32_t used_count_;
  std::vector<Bucket> used_;
};

}  // namespace mltcp::transport
