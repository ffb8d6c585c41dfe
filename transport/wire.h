// The wire format: the one place where bytes from the network are parsed and bytes for it are written.
//
// A packet is one UDP payload: a fixed header, then frames. All integers are little-endian.
//
//   packet header, 32 bytes
//   offset size
//        0    1  magic and version: 0xA1
//        1    1  flags: 1 full integrity (the checksum covers the payload too), 2 acknowledge at once,
//                8 the packet carries data of a job (job, iteration and progress are set)
//        2    2  length of what the header checksum always covers: this header and all frames but the bytes of
//                a last DATA frame
//        4    4  CRC-32C of the covered bytes, taken with this field as zero
//        8    4  destination connection id (0: none yet, CONNECT)
//       12    4  span: packet number minus the oldest packet number that the sender still keeps (saturated)
//       16    8  packet number
//       24    4  job
//       28    2  iteration, low 16 bits
//       30    2  progress: bytes_ratio of the iteration in 1/65535
//
// The job tag sits at a fixed place so that a switch or a receiver can see which job a packet belongs to, and how
// far its iteration is, without knowing connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mltcp::wire {

/// Whose packet it is and how far its job's iteration has got.
struct JobTag {
  std::uint32_t job = 0;
  std::uint16_t iteration = 0;  ///< low 16 bits
  std::uint16_t progress = 0;   ///< bytes_ratio in 1/65535
};

/// The job tag of a UDP payload, for switches: checks magic, length and the flag, not the checksum.
std::optional<JobTag> peek_job_tag(std::span<const std::byte> packet);

}  // namespace mltcp::wire
