// The transport's keys and seals (transport/packet_seal.h), derived from a job's key by the schedule of key_schedule.h,
// with AES-128-GCM. RFC 9001 section 6.6 limits the use of a key to 2^23 packets. So after 2^22 packets in one
// direction, the sender changes to the keys of the next epoch. A receiver distinguishes epochs by a packet's epoch bit,
// and stores the keys of the previous epoch for late packets.
#pragma once

#include <memory>

#include "mltcp/transport/packet_seal.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {

/// Returns the packet key of a job. Two ends have a common key if their job keys and `protection` are the same. The
/// packet key's id is JobKey::id() for Protection::encrypt, and another number for Protection::authenticate. Throws
/// InputError unless `packets_an_epoch` is from 1 to 2^23.
std::shared_ptr<const PacketKey> packet_key(const JobKey& key, Protection protection = Protection::encrypt,
                                            std::uint64_t packets_an_epoch = std::uint64_t{1} << 22);

}  // namespace mltcp::security
