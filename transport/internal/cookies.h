// Cookies: what a shard that keeps nothing of a CONNECT asks for by RETRY. Who brings one back has received it at the
// address from which it connects (like SYN cookies, RFC 4987 section 3.6, and the Retry of RFC 9000 section 8.1.2). A
// cookie is a keyed hash of all that it stands for, with a random key of its own for each slot of time; that of the
// slot before is taken as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mltcp/base/siphash.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/internal/shard_random.h"

namespace mltcp {

/// A connection of a peer: its address, and its id there.
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

/// Keyed, as peers choose their ids: those of one bucket can't be chosen.
struct PeerKeyHash {
  SipKey key{};
  std::size_t operator()(const PeerKey& peer) const noexcept { return siphash(key, peer.bytes()); }
};

class Cookies {
 public:
  static constexpr Nanos slot_length{10'000'000'000};

  [[nodiscard]] std::uint64_t make(const PeerKey& peer, std::uint64_t tag, ShardRandom& random, Nanos now) {
    turn(random, now);
    return hash(peer, tag, slot_);
  }
  [[nodiscard]] bool holds(std::uint64_t cookie, const PeerKey& peer, std::uint64_t tag, ShardRandom& random,
                           Nanos now) {
    turn(random, now);
    return cookie == hash(peer, tag, slot_) || (slot_ > 0 && cookie == hash(peer, tag, slot_ - 1));
  }

 private:
  /// Draws the keys of the slots that have begun; those of slots in which nobody asked are never known to anybody.
  void turn(ShardRandom& random, Nanos now) {
    const std::int64_t slot = now.count / slot_length.count;
    if (slot == slot_) return;
    if (slot != slot_ + 1) key_of(slot - 1) = random.key();
    key_of(slot) = random.key();
    slot_ = slot;
  }
  SipKey& key_of(std::int64_t slot) { return keys_[static_cast<std::size_t>(slot & 1)]; }
  [[nodiscard]] std::uint64_t hash(const PeerKey& peer, std::uint64_t tag, std::int64_t slot) {
    std::array<std::byte, 38> input;
    const auto who = peer.bytes();
    std::memcpy(input.data(), who.data(), who.size());
    std::memcpy(input.data() + 22, &tag, 8);
    std::memcpy(input.data() + 30, &slot, 8);
    return siphash(key_of(slot), input);
  }

  std::array<SipKey, 2> keys_{};
  std::int64_t slot_ = -1;  ///< of the keys; none yet
};

}  // namespace mltcp
