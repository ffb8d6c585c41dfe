// AES-128-GCM with tags of 96 bits (NIST SP 800-38D, RFC 5116), one packet at a time. As in QUIC (RFC 9001 section
// 5.3), the nonce is the iv of the traffic key, with the packet number exclusive-ored into the last 64 bits. Each
// packet number must be used only once under a key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// Seals and opens packets under many keys. Stores the contexts of recently used keys, because preparing a context
/// takes as long as a short packet. Only one thread at a time may use an Aead.
class Aead {
 public:
  static constexpr std::size_t kTagBytes = 12;
  using Tag = std::array<std::byte, kTagBytes>;

  /// A key, and a number `place` that selects the cipher context. Calls with the same `place` use the same context. Any
  /// number is valid, but each connection should use a different number. Contexts for sealing and for opening are
  /// separate.
  struct KeyUse {
    const TrafficKey& key;
    std::uint64_t serial;  ///< identifies the key: different for each key that an Aead uses
    std::size_t place;
  };

  /// Stores `contexts` contexts for sealing and as many for opening, rounded up to a power of two. Throws RunError if
  /// OpenSSL has no AES-128-GCM.
  explicit Aead(std::size_t contexts = 256);
  ~Aead();
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  using Pieces = std::span<const std::span<const std::byte>>;

  /// Encrypts the `pieces`, in order, to `out`, which must have space for all of them. Authenticates the `bound`
  /// pieces, too, without encrypting them. A piece may be encrypted in place. Returns the tag. Throws RunError if
  /// OpenSSL fails, which happens only if memory is exhausted.
  Tag seal(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, std::byte* out);
  /// Decrypts `pieces` to `out`, which must have space for all of them. Returns false if seal() did not make `tag` from
  /// these pieces, `bound`, key and `number`; the contents of `out` are then undefined.
  [[nodiscard]] bool open(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, const Tag& tag,
                          std::byte* out);

  /// Returns the number of contexts prepared so far.
  [[nodiscard]] std::uint64_t contexts_made() const { return contexts_made_; }

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  std::uint64_t contexts_made_ = 0;
};

}  // namespace mltcp::security
