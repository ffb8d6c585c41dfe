// The network of an experiment as built by a testbed on one machine: hosts and software switches connected by cables,
// and the settings of `mltcp switch` for each port. Hosts are those of host_layout.h. Of a topology, only hosts that
// take part and the switches between them are built.
//
// Rates, delays, buffers, marks and faults apply to the outputs of switches. A bottleneck is the output to the host
// that receives for all. The other outputs have its delay but no rate, since senders themselves limit a job to its
// `rate`. The link from a host to its switch is as fast as the machine.
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
    /// The switch's end of the cable, unique in the testbed: "h3", or "s0-1" of switch 0 to switch 1.
    std::string interface;
    std::optional<std::uint32_t> host;  ///< number of the host at the other end, if any
    std::string peer;                   ///< otherwise the other end's interface
    /// Name of the link behind its output, as on every other datapath: Topology::link_name() or "bottleneck". If these
    /// have no such link, "switch 0 -> host 3".
    std::string link;
    fabric::SwitchPortConfig config;  ///< rate 0: not limited
  };
  struct Switch {
    std::string name;
    std::vector<Port> ports;
  };
  std::vector<std::uint32_t> hosts;  ///< ascending
  std::vector<Switch> switches;      ///< at least one
  std::uint32_t mtu = 1500;

  /// Maximum number of hosts of a testbed, each of which is a process.
  static constexpr std::uint32_t kMaxHosts = 63;
};

/// Throws InputError "FILE: cause; cure" if a testbed cannot build the network: loops, one-way cables, memory shared by
/// the ports of a switch, or more than kMaxHosts hosts.
TestbedLayout testbed_layout(const experiment::Experiment& experiment);
/// Hosts 0 to `hosts` - 1 on one switch, whose outputs are set by the switch's options. Throws InputError unless there
/// are 2 to kMaxHosts.
TestbedLayout testbed_layout(std::uint32_t hosts, std::uint32_t mtu);

/// The port as the value of `mltcp switch --port`: "af_xdp:h0,rate=1000000000bps,delay=10000ns,...".
std::string switch_words(const TestbedLayout::Port& port, std::string_view kind);

}  // namespace mltcp::testbed
