// Reader of a network as a list of its links: CSV with a header line, columns in any order.
//
//   from,to,rate,delay,direction
//   gpu-1,rack-a,100 Gbps,500 ns,           a link is both directions of a cable
//   rack-a,core-1,400 Gbps,2 us,both
//   core-1,rack-b,200 Gbps,2 us,one-way     or one of them
//
// Column delay, or a field in it, may be omitted, and the caller's delay is used; so may direction ("both"). Empty
// lines and text after a # are ignored. Nodes are the ends of links; which of them are hosts is given separately by
// shell patterns (fnmatch(3)), since such files usually describe cables only.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct LinksFileOptions {
  std::vector<std::string> hosts;  ///< shell patterns of host names
  Nanos delay;                     ///< of links without a delay of their own
};

/// Whether `name` matches the shell pattern.
bool matches(const std::string& pattern, const std::string& name);

/// Nodes are in order of first appearance; of a cable the direction from `from` to `to` comes first. Throws InputError
/// "FILE:LINE: COLUMN: cause; cure", also for duplicate links and for a host with several links in one direction.
/// Checks of the network as a whole are left to Topology.
Graph load_links(const std::filesystem::path& path, const LinksFileOptions& options);
/// The same from memory; `file` is used in messages.
Graph parse_links(std::string_view text, const std::string& file, const LinksFileOptions& options);

}  // namespace mltcp::experiment
