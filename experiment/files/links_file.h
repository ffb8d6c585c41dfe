// Reader of a network as a list of its links: CSV with a line of column names, in any order of columns.
//
//   from,to,rate,delay,direction
//   gpu-1,rack-a,100 Gbps,500 ns,           a link is both directions of a cable
//   rack-a,core-1,400 Gbps,2 us,both
//   core-1,rack-b,200 Gbps,2 us,one-way     or one of them
//
// Column delay, or a field of it, may be left out: the delay is then that of the caller; so may direction. Empty lines
// and what follows a # are skipped. Nodes are what links lead from and to. Which of them are hosts is said by shell
// patterns (fnmatch(3)): the file is about cables, as a site's records are.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct LinksFileOptions {
  std::vector<std::string> hosts;  ///< patterns of their names
  Nanos delay;                     ///< of links without one
};

/// Whether a shell pattern is about that name.
bool matches(const std::string& pattern, const std::string& name);

/// Nodes in the order in which the file names them; of a cable the direction from `from` to `to` comes first. Throws
/// InputError "FILE:LINE: COLUMN: cause; cure", also for links that are there twice and for a host with several links
/// in one direction; what only the network as a whole can tell is left to Topology.
Graph load_links(const std::filesystem::path& path, const LinksFileOptions& options);
/// The same from memory; `file` stands in messages.
Graph parse_links(std::string_view text, const std::string& file, const LinksFileOptions& options);

}  // namespace mltcp::experiment
