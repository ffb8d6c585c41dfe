// AES-128-GCM with tags of 96 bits (NIST SP 800-38D, RFC 5116), one packet at a time. A packet's nonce is its traffic
// key's iv with the packet number exclusive-ored into its last 64 bits, as in QUIC (RFC 9001 section 5.3): each number
// is used once under a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// Seals and opens packets under many keys. Contexts of recently used keys are kept, because setting one up takes as
/// long as a short packet. This affects only the time. For one thread at a time.
class Aead {
 public:
  static constexpr std::size_t kTagBytes = 12;
  using Tag = std::array<std::byte, kTagBytes>;

  /// Selects a key's context: the same `place` (any number, one per connection and direction) selects the same context.
  struct KeyUse {
    const TrafficKey& key;
    std::uint64_t serial;  ///< differs for different keys, as long as an Aead lives
    std::size_t place;
  };

  /// `contexts`: contexts kept for each direction, rounded up to a power of two. Throws RunError if OpenSSL has no
  /// AES-128-GCM.
  explicit Aead(std::size_t contexts = 256);
  ~Aead();
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  using Pieces = std::span<const std::span<const std::byte>>;

  /// Authenticates the `bound` pieces, which are not encrypted, and encrypts the `pieces`, in order, to `out`, which
  /// must have room for all. A piece may be encrypted in place. Returns the tag. Throws RunError if OpenSSL fails,
  /// which only happens without memory.
  Tag seal(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, std::byte* out);
  /// Decrypts to `out`, which has room for all `pieces`. False: not sealed under this key with this number; the
  /// contents of `out` are then undefined.
  [[nodiscard]] bool open(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, const Tag& tag,
                          std::byte* out);

  /// Number of contexts set up so far.
  [[nodiscard]] std::uint64_t contexts_made() const { return contexts_made_; }

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  std::uint64_t contexts_made_ = 0;
};

}  // namespace mltcp::security
