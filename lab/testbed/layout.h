// The network of an experiment as a testbed on one machine builds it: hosts and software switches connected by cables,
// and the settings of `mltcp switch` for each port. The hosts are those of host_layout.h. Of a topology, only hosts
// that take part and the switches between them are built.
//
// Rates, delays, buffers, marks and faults apply to the outputs of switches. Without a topology, the bottleneck is the
// output to the host that receives for all senders. The outputs to the senders have its delay but no rate, because the
// senders themselves limit a job to its `rate`. The link from a host to its switch is as fast as the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/fabric/ethernet_switch.h"

namespace mltcp::testbed {

struct TestbedLayout {
  struct Port {
    /// Interface at the switch's end of the cable, unique in the testbed: "h3" to host 3, or "s0-1" from switch 0 to
    /// switch 1.
    std::string interface;
    std::optional<std::uint32_t> host;  ///< number of the host at the far end; empty if a switch is there
    std::string peer;                   ///< interface of the switch at the far end; empty if a host is there
    /// Name of the link behind the output, as on all datapaths: Topology::link_name() or "bottleneck". If other
    /// datapaths have no such link, the name is "switch 0 -> host 3".
    std::string link;
    fabric::SwitchPortConfig config;  ///< a rate of 0 means no limit
  };
  struct Switch {
    std::string name;
    std::vector<Port> ports;
  };
  std::vector<std::uint32_t> hosts;  ///< numbers of the hosts, ascending
  std::vector<Switch> switches;      ///< at least one
  std::uint32_t mtu = 1500;

  /// Maximum number of hosts of a testbed. Each host is a process.
  static constexpr std::uint32_t kMaxHosts = 63;
};

/// Returns the network of an experiment. Throws InputError "FILE: cause; cure" if a testbed cannot build the network:
/// for loops, one-way cables, memory shared by the ports of a switch, or more than kMaxHosts hosts.
TestbedLayout testbed_layout(const experiment::Experiment& experiment);
/// Returns a network of hosts 0 to `hosts` - 1 on one switch. The switch's options set its outputs. Throws InputError
/// unless `hosts` is from 2 to kMaxHosts.
TestbedLayout testbed_layout(std::uint32_t hosts, std::uint32_t mtu);

/// Returns the port as a value of `mltcp switch --port`, e.g. "af_xdp:h0,rate=1000000000bps,delay=10000ns,...". `kind`
/// is the kind of device.
std::string switch_words(const TestbedLayout::Port& port, std::string_view kind);

}  // namespace mltcp::testbed
