// The transport's keys and seals (transport/packet_seal.h), made of a job's key by the schedule of key_schedule.h and
// AES-128-GCM. Epochs: a direction's keys are replaced by the next epoch's after 2^22 packets, as RFC 9001 section 6.6
// bounds the use of a key at 2^23; a receiver tells epochs by a packet's epoch bit and keeps the keys of the one
// before, for packets that come late.
#pragma once

#include <memory>

#include "mltcp/transport/packet_seal.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// Ends have a key in common if the job's key and `protection` are the same; its id is JobKey::id() where it encrypts.
/// `packets_an_epoch`: 1 to 2^23.
std::shared_ptr<const PacketKey> packet_key(const JobKey& key, Protection protection = Protection::encrypt,
                                            std::uint64_t packets_an_epoch = std::uint64_t{1} << 22);

}  // namespace mltcp::security
