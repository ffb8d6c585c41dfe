// What is derived from a job's key, by HKDF with SHA-256 (RFC 5869). The shape is QUIC's and TLS 1.3's (RFC 9001,
// RFC 8446) without certificates: a job's key makes a secret for each connection and direction, from random bytes of
// both ends, and each secret makes the traffic keys of its epochs. A NIC that is given a connection's secrets, or in
// PSP's manner the job's key and both ends' random bytes, can derive the rest by itself.
//
//   extracted = HKDF-Extract(salt "mltcp 3", job key)
//               HKDF-Extract(salt "mltcp 3 authenticate", job key)     of packets that are not encrypted, so that ends
//               of
//                                                                      which one encrypts have no key in common
//   key id    = HKDF-Expand(extracted, "id")                                       8 bytes
//   greeting  = HKDF-Expand(extracted, "greeting" + client's random)               traffic secret of CONNECT
//   client    = HKDF-Expand(extracted, "client" + client's random + server's random)
//   server    = HKDF-Expand(extracted, "server" + client's random + server's random)
//   control   = HKDF-Expand(extracted, "control client" or "control server" + client's random + server's random)
//   restarted = HKDF-Expand(extracted, "restarted" + tag of a packet + connection it was sent to)    12 bytes
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
/// Of one direction of a connection, in one epoch.
using TrafficSecret = Secret<32>;
struct TrafficKey {
  Secret<16> key;
  Secret<12> iv;
};

enum class Protection : unsigned char {
  encrypt,       ///< nobody without the key reads, changes or adds anything
  authenticate,  ///< nobody without the key changes or adds anything; all can read
};

/// What all keys of packets are derived from. Kept, as extracting it takes as long as deriving one of them.
struct ExtractedKey {
  Secret<32> secret;
};

struct ConnectionSecrets {
  TrafficSecret client;  ///< of packets that the client sends
  TrafficSecret server;
};

// None of these fails but for want of memory, which is std::bad_alloc, or an OpenSSL without SHA-256: RunError.

ExtractedKey extracted_key(const JobSecret& job_key, Protection protection = Protection::encrypt);
std::uint64_t key_id(const ExtractedKey& key);
TrafficSecret greeting_secret(const ExtractedKey& key, const EndRandom& client);
ConnectionSecrets connection_secrets(const ExtractedKey& key, const EndRandom& client, const EndRandom& server);
/// Of a stream of messages between processes (sealed_messages.h), so that none of its bytes means anything as a packet.
ConnectionSecrets control_secrets(const JobSecret& job_key, const EndRandom& client, const EndRandom& server);
/// What tells the sender of a packet that its receiver has the key, and knows nothing of the connection.
PacketSeal::Tag restarted_answer(const ExtractedKey& key, const PacketSeal::Tag& answered, std::uint32_t connection);
TrafficSecret next_epoch(const TrafficSecret& secret);
TrafficKey traffic_key(const TrafficSecret& secret);

}  // namespace mltcp::security
