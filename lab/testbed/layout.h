// The network of an experiment as a testbed on one machine builds it: hosts and software switches joined by cables, and
// what `mltcp switch` does at each of its ports. Hosts are those of host_layout.h; of a topology only those that take
// part are built, and only the switches between them.
//
// Rates, delays, buffers, marks and faults are those of switches' outputs. A bottleneck is the output towards the host
// that receives for all; the other outputs have its delay and no rate, as the sender's NIC does what a job's `rate`
// says. A host's way to its switch is as fast as the machine.
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
    std::optional<std::uint32_t> host;  ///< its number, if that is the other end
    std::string peer;                   ///< otherwise the other end's interface
    /// Of the link behind its output, as on every other datapath: Topology::link_name() or "bottleneck", or "switch 0
    /// -> host 3" where these have no such link.
    std::string link;
    fabric::SwitchPortConfig config;  ///< the rate is 0 where it has none
  };
  struct Switch {
    std::string name;
    std::vector<Port> ports;
  };
  std::vector<std::uint32_t> hosts;  ///< ascending
  std::vector<Switch> switches;      ///< at least one
  std::uint32_t mtu = 1500;

  /// Most hosts of a testbed, each of which is a process.
  static constexpr std::uint32_t kMaxHosts = 63;
};

/// Throws InputError "FILE: cause; cure" for what a testbed can't be: networks with loops or one-way cables, memory
/// that a switch's ports share, more than kMaxHosts hosts.
TestbedLayout testbed_layout(const experiment::Experiment& experiment);
/// Hosts 0 to `hosts` - 1 on one switch whose outputs are left to the switch's options. Throws InputError unless there
/// are 2 to kMaxHosts.
TestbedLayout testbed_layout(std::uint32_t hosts, std::uint32_t mtu);

/// The port in the words of `mltcp switch --port`: "af_xdp:h0,rate=1000000000bps,delay=10000ns,...".
std::string switch_words(const TestbedLayout::Port& port, std::string_view kind);

}  // namespace mltcp::testbed
