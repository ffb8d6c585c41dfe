// Reader of a network as a list of its links: CSV with a header line, columns in any order.
//
//   from,to,rate,delay,direction
//   gpu-1,rack-a,100 Gbps,500 ns,           both directions of a cable (the default)
//   rack-a,core-1,400 Gbps,2 us,both        both directions of a cable
//   core-1,rack-b,200 Gbps,2 us,one-way     only the direction from core-1 to rack-b
//
// The columns delay and direction, or fields in them, may be omitted. The defaults are the caller's delay and "both".
// The reader ignores empty lines and text after a #. The names in columns from and to are the nodes. Because most files
// of links describe only cables, the caller gives shell patterns (fnmatch(3)) that select which nodes are hosts.
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

/// Returns whether `name` matches the shell pattern `pattern`.
bool matches(const std::string& pattern, const std::string& name);

/// Reads a network from a file. Nodes are in order of first appearance; of a cable's two links, the one from `from` to
/// `to` comes first. Throws InputError "FILE:LINE: COLUMN: cause; cure", also for duplicate links and for a host with
/// several links in one direction. Class Topology then checks the network as a whole.
Graph load_links(const std::filesystem::path& path, const LinksFileOptions& options);
/// Parses the text of a file of links. Messages name `file`.
Graph parse_links(std::string_view text, const std::string& file, const LinksFileOptions& options);

}  // namespace mltcp::experiment
