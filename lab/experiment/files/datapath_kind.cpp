// The table of datapaths (see datapath_kind.h).
#include "mltcp/lab/experiment/files/datapath_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::experiment {
namespace {

constexpr std::array kKinds{
    DatapathKind{.name = "sim", .summary = "virtual time", .priorities = true},
    DatapathKind{
        .name = "flow", .summary = "virtual time, flows instead of packets: for large networks", .packets = false},
    DatapathKind{
        .name = "ring", .summary = "DPDK, real time", .real_time = true, .topologies = false, .patterns = false},
    DatapathKind{.name = "hosts",
                 .summary = "across hosts, real time",
                 .in_files = false,
                 .real_time = true,
                 .links_measured = false,
                 .repairs = false},
};

}  // namespace

std::span<const DatapathKind> datapath_kinds() { return kKinds; }

const DatapathKind& datapath_kind(std::string_view name) {
  const auto at = std::ranges::find(kKinds, name, &DatapathKind::name);
  if (at == kKinds.end())
    throw InputError(
        fmt::format("there is no datapath {}; choose one of {}", in_quotes(name), fmt::join(datapath_names(), ", ")));
  return *at;
}

const std::vector<std::string>& datapath_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const DatapathKind& kind : kKinds)
      if (kind.in_files) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

}  // namespace mltcp::experiment
