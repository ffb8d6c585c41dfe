// What protects packets under a key that both ends of a connection have: a shard asks, transport/security/ does it, so
// that the transport sees no cryptography. Sealed packets have in place of checksum and tag (wire.h) an authentication
// tag over all of the packet; what follows the header is encrypted, unless the packet is clear.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/base/units.h"

namespace mltcp {

/// What an end adds to the keys of a connection: random bytes, never used twice.
using EndRandom = std::array<std::byte, 16>;

/// A packet as it lies before or behind its cipher. Pieces may be empty.
struct SealedPacket {
  std::uint64_t number = 0;
  bool epoch = false;  ///< lowest bit of the sender's epoch, as the header has it
  bool clear = false;  ///< authenticated only
  /// Of the header, what the authentication tag covers.
  std::array<std::span<const std::byte>, 2> header;
  /// Of what follows the header: in what order, and from where.
  std::array<std::span<const std::byte>, 2> body;
};

/// The keys of one end of a connection. For the thread of its shard.
class PacketSeal {
 public:
  using Tag = std::array<std::byte, 12>;

  virtual ~PacketSeal() = default;

  /// What this end adds to the keys, and which key of the job it is.
  [[nodiscard]] virtual const EndRandom& own() const = 0;
  [[nodiscard]] virtual std::uint64_t key_id() const = 0;
  [[nodiscard]] virtual bool encrypts() const = 0;
  /// Client: what the server adds, from a packet that open() may show not to be the server's; then the next one's
  /// counts.
  virtual void meet(const EndRandom& server) = 0;
  struct Epoch {
    bool bit = false;      ///< lowest bit of its number, as the header has it
    bool overdue = false;  ///< should have ended, but none of its packets has been acknowledged
  };
  /// Of the next packet, whose number will be `number`. Begins a new epoch where one is due, which takes that packets
  /// of this one have been acknowledged: `acked` is the highest number that has been.
  [[nodiscard]] virtual Epoch next_epoch(std::uint64_t number, std::uint64_t acked) = 0;
  /// Encrypts the body to `out`, where its pieces may lie already, one after the other.
  virtual Tag seal(const SealedPacket& packet, std::byte* out) = 0;
  /// Client: seals a clear packet that only the job's key and this end's random bytes open: CONNECT.
  virtual Tag seal_greeting(const SealedPacket& packet) = 0;
  /// Server: whether a clear packet was sealed by seal_greeting() of this connection's client, that is with this key
  /// and these random bytes of it, and no others.
  [[nodiscard]] virtual bool opens_greeting(std::uint64_t key_id, const EndRandom& client, const SealedPacket& packet,
                                            const Tag& tag) = 0;
  /// Decrypts the body to `out`, which has room for it. False: not sealed by the peer, or changed.
  [[nodiscard]] virtual bool open(const SealedPacket& packet, const Tag& tag, std::byte* out) = 0;
  /// As SealEngine::answer_of_restarted(), with this connection's key.
  [[nodiscard]] virtual Tag answer_of_restarted(const Tag& answered, std::uint32_t connection) const = 0;
};

class SealEngine;

/// A key that hosts of a job share (transport/security/job_key.h), for any number of shards and threads.
class PacketKey {
 public:
  virtual ~PacketKey() = default;

  /// Says which key it is without telling it, and whether it encrypts: ends that differ in that have no key in common.
  [[nodiscard]] virtual std::uint64_t id() const = 0;
  /// Whether packets are encrypted, too, and not only authenticated.
  [[nodiscard]] virtual bool encrypts() const = 0;
  /// For a shard that uses keys of this kind.
  [[nodiscard]] virtual std::unique_ptr<SealEngine> make_engine() const = 0;
};

/// Makes the seals of a shard's connections. For the thread of that shard; outlives the seals. Keys outlive a call
/// only.
class SealEngine {
 public:
  virtual ~SealEngine() = default;

  /// Whether this process has become a copy since the engine was made, or since the latest call: another process then
  /// has the keys of all seals, and nothing more may be sealed with them. Asked in each poll.
  [[nodiscard]] virtual bool was_copied(Nanos now) = 0;
  /// What only those can know who have the key, about a packet that has just been sent, by its tag, to a connection of
  /// theirs: so that who has been restarted can say, and be believed, that it knows nothing of it.
  [[nodiscard]] virtual PacketSeal::Tag answer_of_restarted(const PacketKey& key, const PacketSeal::Tag& answered,
                                                            std::uint32_t connection) const = 0;
  [[nodiscard]] virtual std::unique_ptr<PacketSeal> connect(const PacketKey& key, const EndRandom& client) = 0;
  [[nodiscard]] virtual std::unique_ptr<PacketSeal> accept(const PacketKey& key, const EndRandom& client,
                                                           const EndRandom& server) = 0;
  /// Whether a clear packet was sealed by PacketSeal::seal_greeting() of a client with these random bytes.
  [[nodiscard]] virtual bool opens_greeting(const PacketKey& key, const EndRandom& client, const SealedPacket& packet,
                                            const PacketSeal::Tag& tag) = 0;
};

}  // namespace mltcp
