// The dumbbell network that both the simulator and the real-time software switch build: hosts on the left, hosts on the
// right, one switch between them. All traffic from left to right shares one output queue and link, the bottleneck; all
// traffic from right to left shares another one, the reverse link.
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
  std::uint32_t pairs = 1;    ///< hosts on each side, 1 to 1000
  LinkConfig bottleneck;      ///< left to right: rate, delay, buffer, ECN and faults
  LinkConfig reverse;         ///< right to left
  Rate access_rate;           ///< rate of each host's access link; 0 = 10 times the bottleneck's
  Nanos access_delay;         ///< one way
  std::uint32_t mtu = 1500;   ///< IP packet size, 576 to 9000
  std::uint32_t classes = 1;  ///< priority queues at the shared links, 1 to 8; simulator only
};

/// The access link of each host. Its queue has no limit in bytes: the hosts' transmit queues limit it in packets.
LinkConfig access_link(const DumbbellConfig& config);
/// The link from right to left. Its seed is derived so that equal seeds of both links still give different faults.
LinkConfig reverse_link(const DumbbellConfig& config);
/// Throws InputError if a shared link's buffer cannot hold one packet of the MTU.
void check_buffers(const DumbbellConfig& config);
/// IPv4 address of a host, in host byte order: 10.`side`.x.y; `pair` below 1000.
std::uint32_t host_ip(std::uint32_t side, std::uint32_t pair);

}  // namespace mltcp::fabric
