// Learns addresses and forwards frames (see ethernet_switch.h).
#include "mltcp/lab/fabric/ethernet_switch.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"

namespace mltcp::fabric {
namespace {

/// Addresses that no bridge forwards (IEEE 802.1D-2004 table 7-10): 01:80:C2:00:00:00 to 0F.
constexpr bool is_reserved(MacNumber mac) { return mac >> 4 == 0x0180C2000000 >> 4; }

}  // namespace

EthernetSwitch::EthernetSwitch(std::span<const SwitchPortConfig> ports, const MacTableConfig& table)
    : counters_(ports.size()), table_(table), up_(0) {
  if (ports.size() < 2 || ports.size() > kMaxPorts)
    throw InputError(fmt::format("a switch with {} ports; give it 2 to {}", ports.size(), kMaxPorts));
  for (const SwitchPortConfig& port : ports) {
    try {
      outputs_.push_back(std::make_unique<PriorityLink>(port.output, port.classes, nullptr));
    } catch (const InputError& error) {
      throw InputError(fmt::format("port {}: {}", outputs_.size(), error.what()));
    }
    up_ = up_ << 1 | 1;
  }
}

/// Learns the source address and determines the egress ports of a frame.
EthernetSwitch::PortSet EthernetSwitch::forward(std::uint32_t ingress, const FrameFacts& facts, Nanos now) {
  SwitchPortCounters& counters = counters_[ingress];
  ++counters.received_frames;
  counters.received_bytes += facts.bytes;
  switch (table_.learn(facts.source, ingress, now)) {
    case MacTable::Learnt::known:
      break;
    case MacTable::Learnt::added:
      ++counters.learnt;
      break;
    case MacTable::Learnt::moved:
      ++counters.moved;
      break;
    case MacTable::Learnt::full:
      ++counters.table_full;
      break;
  }
  const PortSet others = up_ & ~(PortSet{1} << ingress);
  if (!is_group(facts.destination)) {
    if (const auto port = table_.find(facts.destination, now)) {
      const PortSet out = others & PortSet{1} << *port;
      if (out == 0) ++counters.filtered_frames;
      return out;
    }
  } else if (is_reserved(facts.destination)) {
    ++counters.filtered_frames;
    return 0;
  }
  ++counters.flooded_frames;
  return others;
}

void EthernetSwitch::set_up(std::uint32_t port, bool up) {
  const PortSet bit = PortSet{1} << port;
  if (up) {
    up_ |= bit;
  } else {
    up_ &= ~bit;
    table_.forget(port);
  }
}

}  // namespace mltcp::fabric
