// Reader of networks as lists of links (see links_file.h).
#include "mltcp/lab/experiment/files/links_file.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "mltcp/base/csv.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/toml_reader.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kLinksFile{"a file of links", 64U << 20};
constexpr std::array<std::string_view, 5> kKnownColumns{"from", "to", "rate", "delay", "direction"};
constexpr std::size_t kNeeded = 3;  // number of required columns, which are the first in `kKnownColumns`

class LinksReader {
 public:
  LinksReader(std::string_view text, const std::string& file, const LinksFileOptions& options)
      : csv_(text, file), options_(options) {}

  Graph read() {
    if (!csv_.next()) csv_.fail("columns", "the file is empty", "begin it with from,to,rate");
    csv_.read_columns(kKnownColumns, kNeeded, "the columns are from, to, rate, delay and direction");
    while (csv_.next()) read_row();
    if (graph_.links.empty()) csv_.fail("from", "there is no link", "add a line such as host-1,switch-1,100 Gbps");
    return std::move(graph_);
  }

 private:
  void read_row() {
    const auto& fields = csv_.fields();
    const auto& columns = csv_.columns();
    Graph::Link link;
    link.delay = options_.delay;
    bool both = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view field = fields[i];
      if (columns[i] == "from" || columns[i] == "to") {
        check_name(columns[i], field);
        (columns[i] == "from" ? link.from : link.to) = field;
      } else if (columns[i] == "rate") {
        link.capacity = csv_.parsed("rate", field, parse_rate);
        if (link.capacity < kMinRate || link.capacity > Topology::kHighestCapacity)
          csv_.fail("rate", fmt::format("{} is out of range", to_text(link.capacity)),
                    fmt::format("write {} to {}", to_text(kMinRate), to_text(Topology::kHighestCapacity)));
      } else if (columns[i] == "delay" && !field.empty()) {
        link.delay = csv_.parsed("delay", field, parse_duration);
        if (link.delay > Topology::kLongestDelay)
          csv_.fail("delay", fmt::format("{} is too long", to_text(link.delay)),
                    "write at most " + to_text(Topology::kLongestDelay));
      } else if (columns[i] == "direction" && !field.empty()) {
        if (field != "both" && field != "one-way")
          csv_.fail("direction", fmt::format("{} is not known", in_quotes(field)), "write both or one-way");
        both = field == "both";
      }
    }
    if (link.from == link.to)
      csv_.fail("to", fmt::format("the link leads from {} to itself", in_quotes(link.from)), "leave it out");
    add(link);
    std::swap(link.from, link.to);
    if (both) add(std::move(link));
  }

  void check_name(std::string_view column, std::string_view name) const {
    if (name.empty()) csv_.fail(column, "the name is empty", "write the name of a host or a switch");
    if (name.size() > kMaxNameBytes)
      csv_.fail(column, fmt::format("the name has {} bytes", name.size()),
                fmt::format("write at most {}", kMaxNameBytes));
    if (one_line(name) != name)
      csv_.fail(column, "the name has control characters or is not UTF-8", "write printable characters only");
  }

  struct Node {
    std::uint32_t number = 0;
    // If this node is a host: the lines of its two links; 0 if not read yet.
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };

  Node& node(const std::string& name) {
    const auto [found, is_new] = nodes_.try_emplace(name);
    if (is_new) {
      found->second.number = static_cast<std::uint32_t>(graph_.nodes.size());
      const auto& patterns = options_.hosts;
      graph_.nodes.push_back(
          {name, std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, name); })});
    }
    return found->second;
  }

  void add(Graph::Link link) {
    if (graph_.links.size() == Topology::kMaxLinks)
      csv_.fail("from", fmt::format("there are more than {} links, with each direction counted", Topology::kMaxLinks),
                "give a smaller network");
    Node& from = node(link.from);
    Node& to = node(link.to);
    const auto [first, is_new] = lines_.try_emplace(std::uint64_t{from.number} << 32U | to.number, csv_.line());
    if (!is_new)
      csv_.fail("from",
                fmt::format("the link from {} to {} is in line {} too", in_quotes(link.from), in_quotes(link.to),
                            first->second),
                "keep one; write parallel cables as one link with their total rate");
    claim(from, from.sends);
    claim(to, to.receives);
    graph_.links.push_back(std::move(link));
  }

  void claim(const Node& of, std::uint32_t& line) const {
    const Graph::Node& host = graph_.nodes[of.number];
    if (!host.host) return;
    if (line != 0)
      csv_.fail("from", fmt::format("host {} has a link in line {} already", in_quotes(host.name), line),
                "a host has one link: write one link with the total rate, or several hosts");
    line = csv_.line();
  }

  CsvReader csv_;
  const LinksFileOptions& options_;
  Graph graph_;
  std::unordered_map<std::string, Node> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> lines_;  ///< line of each link, by the numbers of its two nodes
};

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

Graph load_links(const std::filesystem::path& path, const LinksFileOptions& options) {
  const std::string file = path.string();
  return parse_links(read_text_file(path, file, kLinksFile), file, options);
}

Graph parse_links(std::string_view text, const std::string& file, const LinksFileOptions& options) {
  return LinksReader(text, file, options).read();
}

}  // namespace mltcp::experiment
