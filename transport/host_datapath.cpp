// Registration and selection of datapath kinds by name (see host_datapath.h).
#include "mltcp/transport/host_datapath.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

std::vector<HostDatapathKind>& kinds() {
  static std::vector<HostDatapathKind> all;
  return all;
}

const HostDatapathKind& kind_of(const std::string& device) {
  if (kinds().empty())
    throw InputError(
        fmt::format("port {}: this program was built without any datapath; build it with DPDK: "
                    "-DMLTCP_DPDK=ON",
                    in_quotes(device)));
  const auto found =
      std::find_if(kinds().begin(), kinds().end(), [&](const HostDatapathKind& kind) { return kind.takes(device); });
  if (found != kinds().end()) return *found;
  std::string forms;
  for (const HostDatapathKind& kind : kinds()) forms += fmt::format("{}{}", forms.empty() ? "" : ", ", kind.forms);
  const std::string_view word = std::string_view(device).substr(0, device.find(':'));
  throw InputError(fmt::format("port {}: {}; write {}", in_quotes(device),
                               device.empty() ? "it is empty" : fmt::format("{} is no kind of port", in_quotes(word)),
                               forms));
}

}  // namespace

void register_host_datapath(const HostDatapathKind& kind) {
  const auto known = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const HostDatapathKind& other) { return other.name == kind.name; });
  if (known != kinds().end())
    *known = kind;
  else
    kinds().push_back(kind);
}

const std::vector<HostDatapathKind>& host_datapaths() { return kinds(); }

void check_host_datapath(const HostDatapathConfig& config, const HostPlace& place) {
  kind_of(config.device).check(config, place);
}

std::unique_ptr<HostDatapath> open_host_datapath(const HostDatapathConfig& config) {
  return kind_of(config.device).open(config);
}

std::uint16_t free_host_ports(const HostDatapathConfig& config, const HostPlace& place) {
  const HostDatapathKind& kind = kind_of(config.device);
  return kind.free_ports != nullptr ? kind.free_ports(config, place) : 0;
}

}  // namespace mltcp
