// The network of an experiment as a testbed on one machine builds it: hosts and software switches connected by cables,
// and the settings of `mltcp switch` for each port. The hosts are the hosts of host_layout.h. If the experiment has a
// topology, the testbed builds only the hosts that run jobs, and the switches between them.
//
// Rates, delays, buffers, marks and faults apply to the outputs of switches. Without a topology, the bottleneck is the
// output to the host that receives for all senders. The outputs to the senders have the delay of the bottleneck but no
// rate limit, because senders themselves limit each job to its `rate`. No rate limit applies to the link from a host to
// its switch.
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
    /// Name of the switch's interface to the cable, unique in the testbed: "h3" for the cable to host 3, or "s0-1" at
    /// switch 0 for the cable to switch 1.
    std::string interface;
    std::optional<std::uint32_t> host;  ///< number of the host at the far end; empty if a switch is there
    /// Name of the interface at the far end if a switch is there; empty if a host is there.
    std::string peer;
    /// Name of the link behind the output: Topology::link_name() or "bottleneck", as on all datapaths. A link that
    /// other datapaths do not have is called, for example, "switch 0 -> host 3".
    std::string link;
    fabric::SwitchPortConfig config;  ///< configuration of the output; an output.rate of 0 means no limit
  };
  struct Switch {
    std::string name;
    std::vector<Port> ports;
  };
  std::vector<std::uint32_t> hosts;  ///< numbers of the hosts, ascending
  std::vector<Switch> switches;      ///< at least one switch
  std::uint32_t mtu = 1500;

  /// Maximum number of hosts of a testbed. Each host is a process.
  static constexpr std::uint32_t kMaxHosts = 63;
};

/// Returns the network of an experiment. Throws InputError "FILE: cause; cure" if a testbed cannot build the network:
/// if it has loops, links in only one direction, switches whose ports share memory, or more than kMaxHosts hosts.
TestbedLayout testbed_layout(const experiment::Experiment& experiment);
/// Returns a network of hosts 0 to `hosts` - 1 on one switch. It does not configure the outputs of the switch, which
/// the options of `mltcp switch` configure. Throws InputError unless `hosts` is from 2 to kMaxHosts.
TestbedLayout testbed_layout(std::uint32_t hosts, std::uint32_t mtu);

/// Returns the port as a value of `mltcp switch --port`, e.g. "af_xdp:h0,rate=1000000000bps,delay=10000ns,...". `kind`
/// is the kind of device.
std::string switch_words(const TestbedLayout::Port& port, std::string_view kind);

}  // namespace mltcp::testbed
