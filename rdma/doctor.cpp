// Examines RDMA devices; see doctor.h.
#include "mltcp/rdma/doctor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

/// Creates a queue pair similar to a port's queue pairs, to check that there is enough memory.
void try_queue_pair(Device& device) {
  constexpr std::size_t bytes = 1 << 20;
  constexpr std::size_t page = 4096;
  struct FreePages {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  const std::unique_ptr<std::byte, FreePages> memory(static_cast<std::byte*>(std::aligned_alloc(page, bytes)));
  if (memory == nullptr) throw RunError("no memory for a queue pair's buffers; end other programs");
  device.make_queue_pair({.send_depth = 128, .receive_depth = 256, .key = 1, .memory = {memory.get(), bytes}});
}

/// Splits "cause; cure" into its two parts. The error for a machine without devices has the form "cause: cure".
void tell(Examination& found, const std::string& error) {
  const std::size_t semicolon = error.rfind("; ");
  const std::size_t end = semicolon != std::string::npos ? semicolon : error.rfind(": ");
  found.detail = error.substr(0, end);
  found.cure = end == std::string::npos ? "see docs/how-to/verbs.md" : error.substr(end + 2);
}

std::string text_of(const RawPackets& raw) {
  return raw.why_not.empty() ? "raw-packet queue pairs with flow steering" : raw.why_not;
}

/// Examines whether a port can carry Ethernet frames.
Examination examine_raw(const Device& device, const RawPackets& raw) {
  const DeviceFacts& facts = device.facts();
  Examination found;
  found.has_devices = true;
  found.detail = fmt::format("{}: {}", facts.name, text_of(raw));
  if (!raw.why_not.empty()) {
    found.cure = raw.lacks_right ? "run it as root, or give the program CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM)"
                                 : "use the NIC under DPDK (pci:ADDRESS), or its interface (af_xdp:IFACE, udp:)";
    return found;
  }
  const auto network = kernel_network();
  const auto place = [&](const Address& any) { return choose_interface(facts.name, facts, any, *network); };
  RawPlace chosen;
  try {
    chosen = place(Address::v4(0, 0));
  } catch (const InputError&) {
    try {
      chosen = place({});
    } catch (const InputError& error) {
      tell(found, error.what());
      return found;
    }
  }
  const std::string down = device.why_down();
  found.works = down.empty();
  found.detail += fmt::format("; {} {}, MTU {}, checksums in {}, {}", chosen.interface.name, ip_text(chosen.address),
                              chosen.interface.mtu, facts.has_frame_checksums ? "the port" : "software",
                              down.empty() ? "up" : "down");
  if (!down.empty()) found.cure = down.substr(down.find("; ") + 2);
  return found;
}

}  // namespace

Examination examine() {
  Examination found;
  std::vector<std::string> names;
  try {
    names = device_names();
  } catch (const std::exception& error) {
    tell(found, error.what());
    return found;
  }
  found.has_devices = true;
  for (const std::string& name : names) {
    const Examination one = examine_port(fmt::format("verbs:{}", name));
    found.detail += fmt::format("{}{}", found.detail.empty() ? "" : "; ", one.detail);
    found.works = found.works || one.works;
    if (!one.cure.empty()) found.cure = one.cure;
  }
  return found;
}

Examination examine_port(const std::string& name) {
  Examination found;
  try {
    const VerbsName parsed = parse_verbs_name(name);
    const auto device = open_device(parsed);
    const DeviceFacts& facts = device->facts();
    const RawPackets raw = device->try_raw_packets();
    if (parsed.is_raw) return examine_raw(*device, raw);
    const std::string down = device->why_down();
    try_queue_pair(*device);
    std::string gids;
    for (const Gid& gid : facts.gids)
      if ((facts.is_infiniband || gid.is_roce_v2) && !is_link_local(gid.ip))
        gids += fmt::format(" {}", ip_text(gid.ip));
    found.has_devices = true;
    found.works = down.empty() && !gids.empty();
    found.detail =
        fmt::format("{}: {}, messages of {} bytes, {}{}", facts.name, facts.is_infiniband ? "InfiniBand" : "RoCEv2",
                    facts.longest_message, down.empty() ? "up" : "down", gids.empty() ? ", no address" : "," + gids) +
        (facts.is_infiniband ? "" : fmt::format("; {}", text_of(raw)));
    if (!down.empty())
      found.cure = down.substr(down.find("; ") + 2);
    else if (gids.empty())
      found.cure = fmt::format("give the interface of {} an address: ip addr add 10.0.0.1/24 dev IFACE", facts.name);
  } catch (const std::exception& error) {
    tell(found, error.what());
  }
  return found;
}

}  // namespace mltcp::rdma
