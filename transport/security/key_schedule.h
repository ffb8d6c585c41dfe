// Derivation of keys from a job's key, by HKDF with SHA-256 (RFC 5869). The derivation follows QUIC and TLS 1.3 (RFC
// 9001, RFC 8446), without certificates. The job's key and random bytes of both ends give a secret for each connection
// and direction. Each secret gives the traffic keys of its epochs. A NIC can derive all keys of a connection itself if
// it has the connection's secrets. As in PSP, the job's key and the random bytes of both ends are sufficient, too.
//
//   extracted = HKDF-Extract(salt "mltcp 3", job key)                              encrypted packets
//               HKDF-Extract(salt "mltcp 3 authenticate", job key)                 authenticated packets. The salts
//                                                                                  differ. So an encrypting end has no
//                                                                                  key in common with an end that only
//                                                                                  authenticates
//   key id    = HKDF-Expand(extracted, "id")                                       8 bytes
//   greeting  = HKDF-Expand(extracted, "greeting" + client's random)               traffic secret of CONNECT
//   client    = HKDF-Expand(extracted, "client" + client's random + server's random)
//   server    = HKDF-Expand(extracted, "server" + client's random + server's random)
//   control   = HKDF-Expand(extracted, "control client" or "control server" + client's random + server's random)
//   restarted = HKDF-Expand(extracted, "restarted" + tag of a packet + its destination connection)   12 bytes
//   secret of the next epoch = HKDF-Expand(secret, "epoch")
//   key, iv   = HKDF-Expand(secret, "key"), HKDF-Expand(secret, "iv")              AES-128-GCM: 16 and 12 bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "mltcp/transport/packet_seal.h"
#include "mltcp/transport/security/secret.h"

namespace mltcp::security {

using JobSecret = Secret<32>;
/// The secret of one direction of a connection, in one epoch.
using TrafficSecret = Secret<32>;
struct TrafficKey {
  Secret<16> key;
  Secret<12> iv;
};

enum class Protection : unsigned char {
  encrypt,       ///< without the key, packets cannot be read, changed or added
  authenticate,  ///< without the key, packets cannot be changed or added, but they can be read
};

/// The key from which all packet keys are derived. It is stored, because extracting it takes as long as deriving a
/// packet key.
struct ExtractedKey {
  Secret<32> secret;
};

struct ConnectionSecrets {
  TrafficSecret client;  ///< secret of the packets that the client sends
  TrafficSecret server;  ///< secret of the packets that the server sends
};

// These functions throw std::bad_alloc if memory is exhausted, and RunError if OpenSSL has no HKDF with SHA-256.

ExtractedKey extracted_key(const JobSecret& job_key, Protection protection = Protection::encrypt);
std::uint64_t key_id(const ExtractedKey& key);
TrafficSecret greeting_secret(const ExtractedKey& key, const EndRandom& client);
ConnectionSecrets connection_secrets(const ExtractedKey& key, const EndRandom& client, const EndRandom& server);
/// Returns the secrets of a stream of messages between processes (sealed_messages.h). They differ from the secrets of
/// connections, so that no part of the stream is valid as a packet.
ConnectionSecrets control_secrets(const JobSecret& job_key, const EndRandom& client, const EndRandom& server);
/// Returns the tag of the answer to a packet with tag `answered`. The returned tag proves to the packet's sender that
/// the receiver has the key and does not know `connection`.
PacketSeal::Tag restarted_answer(const ExtractedKey& key, const PacketSeal::Tag& answered, std::uint32_t connection);
TrafficSecret next_epoch(const TrafficSecret& secret);
TrafficKey traffic_key(const TrafficSecret& secret);

}  // namespace mltcp::security
