// The dumbbell network that the simulator and the real-time software switch build: hosts on the left, hosts on the
// right, and one switch between them. All traffic from left to right shares one output queue and one link, the
// bottleneck. All traffic from right to left shares the reverse link and its output queue.
//
//   left 0 --access--\                       /--> right 0
//   left 1 --access---[switch]==bottleneck==+---> right 1
//
// A packet takes two hops: the access link of its host, then the shared link of its direction.
#pragma once

#include <cstdint>

#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"

namespace mltcp::fabric {

struct DumbbellConfig {
  std::uint32_t pairs = 1;   ///< number of hosts on the left and, equally, on the right; 1 to 1000
  LinkConfig bottleneck;     ///< link from left to right: rate, delay, buffer, ECN and faults
  LinkConfig reverse;        ///< link from right to left
  Rate access_rate;          ///< rate of each host's access link; 0: 10 times the bottleneck's rate
  Nanos access_delay;        ///< one-way delay of each access link
  std::uint32_t mtu = 1500;  ///< maximum size of an IP packet in bytes, 576 to 9000
  /// Number of priority queues at each shared link, 1 to 8; only the simulator supports more than 1.
  std::uint32_t classes = 1;
};

/// Returns the access link of each host. Its queue has no limit in bytes, because the hosts' transmit queues limit it
/// in packets.
LinkConfig access_link(const DumbbellConfig& config);
/// Returns the link from right to left. Derives the seed of this link so that both shared links have different faults
/// even if their configured seeds are equal.
LinkConfig reverse_link(const DumbbellConfig& config);
/// Throws InputError if the buffer of a shared link cannot hold one packet of the MTU.
void check_buffers(const DumbbellConfig& config);
/// Returns the IPv4 address of a host in host byte order: 10.`side`.x.y. `pair` must be below 1000.
std::uint32_t host_ip(std::uint32_t side, std::uint32_t pair);

}  // namespace mltcp::fabric
