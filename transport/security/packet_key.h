// The transport's keys and seals (transport/packet_seal.h), derived from a job's key by the schedule of key_schedule.h,
// with AES-128-GCM. Epochs: after 2^22 packets in one direction, the keys of its next epoch are used, because RFC 9001
// section 6.6 limits the use of a key to 2^23 packets. A receiver distinguishes epochs by a packet's epoch bit, and
// keeps the keys of the previous epoch for late packets.
#pragma once

#include <memory>

#include "mltcp/transport/packet_seal.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// The packet key of a job. Two ends have a key in common if the job's key and `protection` are the same. The id is
/// JobKey::id() for Protection::encrypt, another one for Protection::authenticate. `packets_an_epoch`: 1 to 2^23;
/// InputError otherwise.
std::shared_ptr<const PacketKey> packet_key(const JobKey& key, Protection protection = Protection::encrypt,
                                            std::uint64_t packets_an_epoch = std::uint64_t{1} << 22);

}  // namespace mltcp::security
