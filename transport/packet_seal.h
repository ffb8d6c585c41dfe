// The interface through which a shard protects packets with a key that both ends of a connection have. It is
// implemented in transport/security/, so that the transport contains no cryptography. A sealed packet has an
// authentication tag over the whole packet in place of the checksum and the connection tag (wire.h). Everything after
// its header is encrypted, unless the packet is marked as clear.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/base/units.h"

namespace mltcp {

/// The random bytes that one end contributes to the keys of a connection. They are never used twice.
using EndRandom = std::array<std::byte, 16>;

/// A packet to be sealed or opened. Its parts consist of pieces, which may be empty.
struct SealedPacket {
  std::uint64_t number = 0;
  bool epoch = false;  ///< lowest bit of the number of the sender's epoch, as in the header
  bool clear = false;  ///< authenticated, but not encrypted
  /// The parts of the header that the authentication tag covers.
  std::array<std::span<const std::byte>, 2> header;
  /// The bytes after the header, in order.
  std::array<std::span<const std::byte>, 2> body;
};

/// The keys of one end of a connection. Only the thread of the shard may use this object.
class PacketSeal {
 public:
  using Tag = std::array<std::byte, 12>;

  virtual ~PacketSeal() = default;

  /// own() returns the random bytes that this end contributes. key_id() returns the id of the job's key
  /// (PacketKey::id()).
  [[nodiscard]] virtual const EndRandom& own() const = 0;
  [[nodiscard]] virtual std::uint64_t key_id() const = 0;
  [[nodiscard]] virtual bool encrypts() const = 0;
  /// Only at the client: derives the keys from the random bytes of the server. If open() then fails, the packet did not
  /// come from the server. In that case call meet() again with the random bytes of the next packet.
  virtual void meet(const EndRandom& server) = 0;
  struct Epoch {
    bool bit = false;      ///< lowest bit of the epoch's number, as in the header
    bool overdue = false;  ///< the epoch should have ended, but none of its packets has been acknowledged
  };
  /// Returns the epoch of the next packet, whose number will be `number`. Begins a new epoch if one is due and a packet
  /// of the current epoch has been acknowledged. `acked` is the highest number acknowledged so far, or all ones if
  /// there is none.
  [[nodiscard]] virtual Epoch next_epoch(std::uint64_t number, std::uint64_t acked) = 0;
  /// Encrypts the pieces of the body into `out`, one after the other, and returns the authentication tag. The pieces
  /// may already be at their positions in `out`. A clear packet is not encrypted.
  virtual Tag seal(const SealedPacket& packet, std::byte* out) = 0;
  /// Seals a CONNECT, which is a clear packet, at the client. opens_greeting() accepts the packet only with the job's
  /// key and this end's random bytes.
  virtual Tag seal_greeting(const SealedPacket& packet) = 0;
  /// Only at the server: returns whether this connection's client sealed this clear packet by seal_greeting(). Returns
  /// false if `key_id` or `client` is not the value of this connection.
  [[nodiscard]] virtual bool opens_greeting(std::uint64_t key_id, const EndRandom& client, const SealedPacket& packet,
                                            const Tag& tag) = 0;
  /// Verifies the packet, and decrypts the body into `out`, which has room for it. Returns false if the peer did not
  /// seal the packet, or if the packet was changed on its way.
  [[nodiscard]] virtual bool open(const SealedPacket& packet, const Tag& tag, std::byte* out) = 0;
  /// Like SealEngine::answer_of_restarted(), with this connection's key.
  [[nodiscard]] virtual Tag answer_of_restarted(const Tag& answered, std::uint32_t connection) const = 0;
};

class SealEngine;

/// A key that the hosts of a job share (transport/security/job_key.h). Any number of shards and threads may use it.
class PacketKey {
 public:
  virtual ~PacketKey() = default;

  /// Returns a number that identifies the key without revealing it. The number depends on whether the key encrypts, so
  /// two ends have no key in common if only one of them encrypts.
  [[nodiscard]] virtual std::uint64_t id() const = 0;
  /// Returns true if packets are encrypted and authenticated, false if they are only authenticated.
  [[nodiscard]] virtual bool encrypts() const = 0;
  /// Makes the engine for a shard that uses keys of this kind.
  [[nodiscard]] virtual std::unique_ptr<SealEngine> make_engine() const = 0;
};

/// Makes the seals of a shard's connections. Only the thread of the shard may use this object. It must outlive the
/// seals. A key need only exist during the call that uses it.
class SealEngine {
 public:
  virtual ~SealEngine() = default;

  /// Returns whether this process was copied (process_copies() in base/system_random.h) since the engine was made or
  /// since the latest call. If so, another process has the keys of all seals, and no further packet may be sealed with
  /// them. The shard calls this function in each poll.
  [[nodiscard]] virtual bool was_copied(Nanos now) = 0;
  /// Returns the tag of the answer that a restarted end sends to a packet for `connection` with tag `answered`. The
  /// returned tag proves that an end with the key does not know the connection.
  [[nodiscard]] virtual PacketSeal::Tag answer_of_restarted(const PacketKey& key, const PacketSeal::Tag& answered,
                                                            std::uint32_t connection) const = 0;
  [[nodiscard]] virtual std::unique_ptr<PacketSeal> connect(const PacketKey& key, const EndRandom& client) = 0;
  [[nodiscard]] virtual std::unique_ptr<PacketSeal> accept(const PacketKey& key, const EndRandom& client,
                                                           const EndRandom& server) = 0;
  /// Returns whether PacketSeal::seal_greeting() of a client with these random bytes sealed this clear packet.
  [[nodiscard]] virtual bool opens_greeting(const PacketKey& key, const EndRandom& client, const SealedPacket& packet,
                                            const PacketSeal::Tag& tag) = 0;
};

}  // namespace mltcp
