// Reader of a network as a list of its links: CSV with a header line, columns in any order.
//
//   from,to,rate,delay,direction
//   gpu-1,rack-a,100 Gbps,500 ns,           a link is both directions of a cable
//   rack-a,core-1,400 Gbps,2 us,both
//   core-1,rack-b,200 Gbps,2 us,one-way     or one of them
//
// The columns delay and direction, or fields in them, may be omitted. The defaults are the caller's delay and "both".
// Empty lines and text after a # are ignored. Nodes are the ends of links. Shell patterns (fnmatch(3)), given
// separately, say which nodes are hosts, since such files usually describe only cables.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct LinksFileOptions {
  std::vector<std::string> hosts;  ///< shell patterns of host names
  Nanos delay;                     ///< default delay of a link
};

/// Whether `name` matches the shell pattern.
bool matches(const std::string& pattern, const std::string& name);

/// Nodes are in order of first appearance; a cable's direction from `from` to `to` comes first. Throws InputError
/// "FILE:LINE: COLUMN: cause; cure", also for duplicate links and for a host with several links in one direction.
/// Topology checks the network as a whole.
Graph load_links(const std::filesystem::path& path, const LinksFileOptions& options);
/// The same from memory; `file` is used in messages.
Graph parse_links(std::string_view text, const std::string& file, const LinksFileOptions& options);

}  // namespace mltcp::experiment
