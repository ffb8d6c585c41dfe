// Reader of Slurm topologies (see slurm_topology.h).
#include "mltcp/lab/experiment/files/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/host_list.h"
#include "mltcp/lab/workload/traces/yaml.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kSlurmFile{"Slurm's topology.conf or topology.yaml", 64U << 20};
// Maximum number of names of hosts and of lower switches in all lines together. A tree has at most 131071.
constexpr std::size_t kMaxLinks = 1U << 18;
// Maximum size of a YAML file. Limits memory, because the YAML parser builds a tree of the file with hundreds of bytes
// per node.
constexpr std::size_t kMaxYaml = 1U << 20;
// Name of the switch above all blocks. Names in Slurm have no spaces, so this name is unique.
constexpr std::string_view kAboveBlocks = "above the blocks";

/// A switch or a block that one line describes.
struct Switch {
  std::string name;
  std::uint32_t line = 0;
  std::vector<std::string> hosts;
  std::vector<std::string> below;
};

/// Reads lines and checks each line separately. Class Network checks all lines together.
class Lines {
 public:
  explicit Lines(const std::string& file) : file_(file) {}

  [[noreturn]] void fail(std::uint32_t line, std::string_view key, std::string_view cause,
                         std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}:{}: {}: {}; {}", file_, line, key, cause, cure)));
  }

  std::vector<Switch> read(std::string_view text) {
    if (is_yaml(text))
      read_yaml(text);
    else
      read_conf(text);
    if (switches_.empty())
      fail(1, "SwitchName", "there is no switch and no block", "give Slurm's topology.conf or topology.yaml");
    if (blocks_ && switches_.size() > 1) {
      Switch top{std::string(kAboveBlocks), switches_.front().line, {}, {}};
      for (const Switch& block : switches_) top.below.push_back(block.name);
      switches_.push_back(std::move(top));
    }
    return std::move(switches_);
  }

 private:
  using Pairs = std::map<std::string, std::string, std::less<>>;  // values by key; keys are in lower case

  static bool is_yaml(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      if (!line.empty() && line.front() != '#') return line.front() == '-';
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return false;
  }

  // ---- topology.conf ----

  void read_conf(std::string_view text) {
    std::string whole;  // a line with its continuation lines
    std::uint32_t first = 0;
    for (std::uint32_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = trimmed(line.substr(0, line.find('#')));
      if (whole.empty()) first = number;
      const bool continues = !line.empty() && line.back() == '\\';
      if (continues) line.remove_suffix(1);
      whole += line;
      if (continues && !text.empty()) {
        whole += ' ';
        continue;
      }
      if (!trimmed(whole).empty()) read_line(first, whole);
      whole.clear();
    }
  }

  void read_line(std::uint32_t line, std::string_view text) {
    Pairs pairs;
    while (!(text = trimmed(text)).empty()) {
      const std::size_t equals = text.find('=');
      const std::string_view key = trimmed(text.substr(0, equals));
      std::string small(key);
      std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
      if (small.starts_with("include") && equals == std::string_view::npos)
        fail(line, "Include", "other files are not read", "replace this line by the lines of that file");
      if (equals == std::string_view::npos || key.empty() || key.find_first_of(" \t\"") != std::string_view::npos)
        fail(line, "line", fmt::format("{} is not KEY=VALUE", in_quotes(key)), "write SwitchName=s1 Nodes=n[1-4]");
      text = trimmed(text.substr(equals + 1));
      const bool quoted = !text.empty() && text.front() == '"';
      if (quoted) text.remove_prefix(1);
      const std::size_t end = std::min(quoted ? text.find('"') : text.find_first_of(" \t"), text.size());
      if (quoted && end == text.size()) fail(line, key, "the quotation mark is not closed", "close it");
      if (!pairs.try_emplace(small, text.substr(0, end)).second)
        fail(line, key, "the key appears twice in this line", "keep one");
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    add(line, pairs);
  }

  /// Adds the switch of line `line`. The keys of `pairs` are those of topology.conf in lower case.
  void add(std::uint32_t line, const Pairs& pairs) {
    const auto value = [&](std::string_view key) {
      const auto at = pairs.find(key);
      return at == pairs.end() ? std::optional<std::string>() : at->second;
    };
    constexpr std::array<std::string_view, 6> known{"switchname", "switches",  "nodes",
                                                    "linkspeed",  "blockname", "blocksizes"};
    for (const auto& [key, unused] : pairs)
      if (std::ranges::find(known, key) == known.end())
        fail(line, key, key == "ringname" ? "a ring has no switches" : "the key is not known",
             "use SwitchName, Switches, Nodes, LinkSpeed, BlockName and BlockSizes, or write the network as a file of "
             "links");
    const auto name = value("switchname");
    const auto block = value("blockname");
    if (const auto sizes = value("blocksizes"); sizes && pairs.size() == 1) {
      check_sizes(line, *sizes);
      return;
    }
    if (!name && !block) fail(line, "SwitchName", "the key is missing", "write SwitchName=s1 Nodes=n[1-4]");
    const std::string_view key = name ? "SwitchName" : "BlockName";
    if ((name && block) || (!switches_.empty() && blocks_ != block.has_value()))
      fail(line, key, "the file has switches and blocks", "keep the lines of one of the two");
    if (block && value("switches")) fail(line, "Switches", "a block has only nodes", "leave it out");
    blocks_ = block.has_value();
    Switch& added = switches_.emplace_back();
    const std::vector<std::string> names = expanded(line, key, name ? *name : *block);
    if (names.size() != 1) fail(line, key, fmt::format("the line names {}", names.size()), "write one line for each");
    added.name = names.front();
    added.line = line;
    if (const auto nodes = value("nodes")) added.hosts = expanded(line, "Nodes", *nodes);
    if (const auto below = value("switches")) added.below = expanded(line, "Switches", *below);
    if (added.hosts.empty() && added.below.empty())
      fail(line, key, fmt::format("{} has nothing below it", in_quotes(added.name)),
           "add Nodes, or leave the line out");
  }

  [[nodiscard]] std::vector<std::string> expanded(std::uint32_t line, std::string_view key, const std::string& list) {
    std::vector<std::string> names;
    try {
      names = expand_hosts(list, Topology::kMaxHosts);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}:{}: {}: {}", file_, line, key, error.what())));
    }
    for (const std::string& name : names)
      if (one_line(name) != name)
        fail(line, key, "a name has control characters or is not UTF-8", "write printable characters only");
    links_ += names.size();
    if (links_ > kMaxLinks)
      fail(line, key, fmt::format("more than {} hosts and switches are named up to here", kMaxLinks),
           "give a smaller network");
    return names;
  }

  void check_sizes(std::uint32_t line, std::string_view sizes) const {
    if (sizes.empty() || sizes.find_first_not_of("0123456789,") != std::string_view::npos)
      fail(line, "BlockSizes", fmt::format("{} is not a list of sizes", in_quotes(sizes)), "write BlockSizes=4,16");
  }

  // ---- topology.yaml ----

  void read_yaml(std::string_view text) {
    constexpr std::string_view give = "give Slurm's topology.yaml";
    if (text.size() > kMaxYaml) fail(1, "topology", fmt::format("the file has more than {} bytes", kMaxYaml), give);
    try {
      const YAML::Node root = workload::load_yaml(text);
      read_topologies(root);
    } catch (const YAML::Exception& error) {
      fail(static_cast<std::uint32_t>(std::max(error.mark.line, 0)) + 1, "topology",
           fmt::format("not a valid topology.yaml: {}", error.msg), give);
    }
  }

  static std::uint32_t line_of(const YAML::Node& node) {
    return static_cast<std::uint32_t>(std::max(node.Mark().line, 0)) + 1;
  }

  /// Reads the topology: the only one in the file, or the default one of the cluster.
  void read_topologies(const YAML::Node& root) {
    if (!root.IsSequence())
      fail(line_of(root), "topology", "a list of topologies is expected", "begin with - topology:");
    std::optional<YAML::Node> chosen;
    for (const YAML::Node& one : root) {
      if (!one.IsMap()) fail(line_of(one), "topology", "a topology is a map of keys", "begin with - topology: NAME");
      const bool is_default = one["cluster_default"].as<bool>(false);
      if (root.size() == 1 || (is_default && !chosen)) chosen = one;
    }
    if (!chosen)
      fail(1, "cluster_default", fmt::format("none of {} topologies is the cluster's default", root.size()),
           "write cluster_default: true in the topology to read");
    const YAML::Node tree = (*chosen)["tree"];
    const YAML::Node block = (*chosen)["block"];
    if (!tree == !block)
      fail(line_of(*chosen), "topology", "the topology has neither tree nor block",
           "give one of them; for a flat network use kind = \"single-switch\"");
    for (const auto& [list, name, key] : {std::tuple(tree ? tree["switches"] : YAML::Node(), "switch", "switchname"),
                                          std::tuple(block ? block["blocks"] : YAML::Node(), "block", "blockname")}) {
      if (!list.IsDefined() || list.IsNull()) continue;
      if (!list.IsSequence()) fail(line_of(list), name, "a list is expected", fmt::format("write - {}: NAME", name));
      for (const YAML::Node& one : list) {
        if (!one.IsMap()) fail(line_of(one), name, "a map of keys is expected", fmt::format("write - {}: NAME", name));
        Pairs pairs;
        for (const auto& pair : one) {
          const auto written = pair.first.as<std::string>();
          const std::string known = written == name         ? key
                                    : written == "children" ? "switches"
                                    : written == "nodes"    ? "nodes"
                                                            : written;
          const auto value = pair.second.IsNull() ? std::string() : pair.second.as<std::string>();
          if (value.empty() && (known == "switches" || known == "nodes")) continue;
          if (!pairs.try_emplace(known, value).second)
            fail(line_of(pair.first), written, "the key appears twice", "keep one");
        }
        add(line_of(one), pairs);
      }
    }
  }

  const std::string& file_;
  std::vector<Switch> switches_;
  bool blocks_ = false;
  std::size_t links_ = 0;  ///< number of names in the lines read so far
};

/// Builds the network that all lines describe, and checks it.
class Network {
 public:
  Network(std::vector<Switch> switches, const Lines& lines, const SlurmTopologyOptions& options)
      : switches_(std::move(switches)), lines_(lines), options_(options) {}

  Graph graph() {
    find_hosts();
    find_switches();
    if (lines_of_hosts_.size() < 2)
      lines_.fail(switches_.front().line, "Nodes", "there are fewer than two hosts", "name at least two");
    check_joined();
    add_links();
    return std::move(graph_);
  }

 private:
  void find_hosts() {
    for (const Switch& one : switches_)
      for (const std::string& host : one.hosts) {
        const auto [first, is_new] = lines_of_hosts_.try_emplace(host, one.line);
        if (!is_new)
          lines_.fail(one.line, "Nodes",
                      fmt::format("{} is on the switch of line {} already", in_quotes(host), first->second),
                      "keep it on one switch");
        if (lines_of_hosts_.size() > Topology::kMaxHosts)
          lines_.fail(one.line, "Nodes", fmt::format("there are more than {} hosts", Topology::kMaxHosts),
                      "give a smaller network");
        graph_.nodes.push_back({host, true});
      }
  }

  void find_switches() {
    for (const Switch& one : switches_) {
      const auto [first, is_new] = numbers_.try_emplace(one.name, static_cast<std::uint32_t>(numbers_.size()));
      if (!is_new)
        lines_.fail(one.line, "SwitchName",
                    fmt::format("{} is in line {} too", in_quotes(one.name), switches_[first->second].line),
                    "write one line for each switch");
      if (const auto host = lines_of_hosts_.find(one.name); host != lines_of_hosts_.end())
        lines_.fail(one.line, "SwitchName",
                    fmt::format("{} is the name of a host in line {} too", in_quotes(one.name), host->second),
                    "rename the switch");
      graph_.nodes.push_back({one.name, false});
    }
    below_.resize(switches_.size());
    above_.resize(switches_.size());
    for (std::uint32_t at = 0; at < switches_.size(); ++at)
      for (const std::string& name : switches_[at].below) {
        const auto found = numbers_.find(name);
        if (found == numbers_.end())
          lines_.fail(switches_[at].line, "Switches", fmt::format("there is no switch {}", in_quotes(name)),
                      fmt::format("add a line SwitchName={} ...", name));
        below_[at].push_back(found->second);
        above_[found->second].push_back(at);
      }
    for (std::uint32_t at = 0; at < switches_.size(); ++at) {
      std::vector<std::uint32_t> sorted = below_[at];
      std::ranges::sort(sorted);
      if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
        lines_.fail(switches_[at].line, "Switches", fmt::format("{} appears twice", in_quotes(switches_[*twice].name)),
                    "write it once");
    }
  }

  void check_joined() const {
    std::vector<bool> seen(switches_.size());
    std::vector<std::uint32_t> reached{0};
    seen[0] = true;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const auto* ends : {&below_[reached[i]], &above_[reached[i]]})
        for (const std::uint32_t end : *ends) {
          if (!seen[end]) reached.push_back(end);
          seen[end] = true;
        }
    const auto other = std::ranges::find(seen, false) - seen.begin();
    if (static_cast<std::size_t>(other) == seen.size()) return;
    const auto top = [&](std::uint32_t at) {  // the limit on steps ends the loop if there is a cycle, which has no top
      for (std::size_t steps = 0; !above_[at].empty() && steps < switches_.size(); ++steps) at = above_[at].front();
      return switches_[at].name;
    };
    const std::string one = top(0);
    const std::string two = top(static_cast<std::uint32_t>(other));
    lines_.fail(switches_[static_cast<std::size_t>(other)].line, "SwitchName",
                fmt::format("no switch connects {} and {}, so no job can use both", in_quotes(one), in_quotes(two)),
                fmt::format("add one, such as SwitchName=top Switches={},{}, or write a file for each part", one, two));
  }

  // Processes switches from the hosts upwards, so that the total rate below a switch is known when its uplinks are
  // added.
  void add_links() {
    std::vector<double> down(switches_.size());  // bits per second
    std::vector<std::size_t> waiting(switches_.size());
    std::vector<std::uint32_t> order;
    for (std::uint32_t at = 0; at < switches_.size(); ++at) {
      for (const std::string& host : switches_[at].hosts) add(host, switches_[at].name, options_.host_rate);
      down[at] =
          static_cast<double>(options_.host_rate.bits_per_second) * static_cast<double>(switches_[at].hosts.size());
      waiting[at] = below_[at].size();
      if (waiting[at] == 0) order.push_back(at);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t at = order[i];
      for (const std::uint32_t up : above_[at]) {
        const double share = down[at] / options_.oversubscription / static_cast<double>(above_[at].size());
        Rate rate = options_.uplink_rate;
        if (rate.is_zero()) {
          if (share > static_cast<double>(Topology::kHighestCapacity.bits_per_second))
            lines_.fail(switches_[at].line, "SwitchName",
                        fmt::format("the link from {} to {} would have {:.0f} Tbps", in_quotes(switches_[at].name),
                                    in_quotes(switches_[up].name), share * 1e-12),
                        fmt::format("lower host_rate or raise oversubscription so that it has at most {}",
                                    to_text(Topology::kHighestCapacity)));
          rate = Rate(static_cast<std::uint64_t>(std::max(share, 1.0)));
        }
        add(switches_[at].name, switches_[up].name, rate);
        down[up] += static_cast<double>(rate.bits_per_second);
        if (--waiting[up] == 0) order.push_back(up);
      }
    }
    if (order.size() == switches_.size()) return;
    // The remaining switches are in a cycle or above one. Below each of them is another remaining switch, so following
    // these downwards leads into a cycle.
    auto at = static_cast<std::uint32_t>(std::ranges::find_if(waiting, [](std::size_t left) { return left > 0; }) -
                                         waiting.begin());
    for (std::vector<bool> seen(switches_.size()); !seen[at];) {
      seen[at] = true;
      at = *std::ranges::find_if(below_[at], [&](std::uint32_t end) { return waiting[end] > 0; });
    }
    lines_.fail(switches_[at].line, "Switches", fmt::format("{} is above itself", in_quotes(switches_[at].name)),
                "leave out the switches above it");
  }

  void add(const std::string& low, const std::string& high, Rate rate) {
    graph_.links.push_back({low, high, rate, {}, options_.delay});
    graph_.links.push_back({high, low, rate, {}, options_.delay});
  }

  std::vector<Switch> switches_;
  const Lines& lines_;
  const SlurmTopologyOptions& options_;
  Graph graph_;
  std::unordered_map<std::string, std::uint32_t> lines_of_hosts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  ///< indices in `switches_` by name
  std::vector<std::vector<std::uint32_t>> below_;           ///< by switch: indices of the switches directly below
  std::vector<std::vector<std::uint32_t>> above_;
};

}  // namespace

Graph load_slurm_topology(const std::filesystem::path& path, const SlurmTopologyOptions& options) {
  const std::string file = path.string();
  return parse_slurm_topology(read_text_file(path, file, kSlurmFile), file, options);
}

Graph parse_slurm_topology(std::string_view text, const std::string& file, const SlurmTopologyOptions& options) {
  Lines lines(file);
  std::vector<Switch> switches = lines.read(text);
  return Network(std::move(switches), lines, options).graph();
}

}  // namespace mltcp::experiment
