// AES-128-GCM with tags of 96 bits (NIST SP 800-38D, RFC 5116), one packet at a time. A packet's nonce is its traffic
// key's iv with the packet number exclusive-ored into its last 64 bits, as in QUIC (RFC 9001 section 5.3): a number is
// used once under a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// Seals and opens packets under many keys. Contexts of the keys used of late are kept, as setting one up takes as long
/// as a short packet; which those are changes nothing but time. For one thread at a time.
class Aead {
 public:
  static constexpr std::size_t kTagBytes = 12;
  using Tag = std::array<std::byte, kTagBytes>;

  /// Which context a key has: `place` of the same connection and direction yields the same one. Any number.
  struct KeyUse {
    const TrafficKey& key;
    std::uint64_t serial;  ///< differs for different keys, as long as an Aead lives
    std::size_t place;
  };

  /// `contexts`: how many are kept for either direction, rounded up to a power of two. Throws RunError if OpenSSL has
  /// no AES-128-GCM.
  explicit Aead(std::size_t contexts = 256);
  ~Aead();
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  using Pieces = std::span<const std::span<const std::byte>>;

  /// Authenticates the `bound` pieces, which stay as they are, and encrypts the `pieces`, one after the other, to
  /// `out`, which has room for them all; a piece may be where its ciphertext goes. Returns the tag. Throws RunError if
  /// OpenSSL fails, which it does for want of memory only.
  Tag seal(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, std::byte* out);
  /// Decrypts to `out`, which has room for all `pieces`. False: not sealed under this key with this number, and then
  /// what `out` holds means nothing.
  [[nodiscard]] bool open(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, const Tag& tag,
                          std::byte* out);

  /// How often a key's context had to be set up.
  [[nodiscard]] std::uint64_t contexts_made() const { return contexts_made_; }

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  std::uint64_t contexts_made_ = 0;
};

}  // namespace mltcp::security
