// Reader of topology files (see topology_file.h).
#include "mltcp/lab/experiment/files/topology_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>

#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/host_list.h"
#include "mltcp/lab/experiment/files/settings_reader.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kTopologyFile{"a topology file", 64U << 20};
constexpr std::size_t kLongestName = 128;

class TopologyReader : public SettingsReader {
 public:
  explicit TopologyReader(std::string file) : SettingsReader(std::move(file), no_options()) {}

  TopologyFile read(const toml::table& root) {
    if (root.empty()) fail(1, "topology", "the file is empty", "describe a topology");
    check_keys(root, "", {"hosts", "topology"});
    TopologyFile result;
    result.file = file_;
    const auto topology = find(root, "", "topology");
    if (!topology)
      fail(1, "topology", "the table is missing", "add [topology] with kind = \"leaf-spine\" and its rates");
    fabric::SwitchedNetworkConfig network = read_topology(*topology);
    at(*topology, [&] { fabric::check(network); });
    result.topology = std::move(network.topology);
    if (const auto hosts = find(root, "", "hosts"))
      result.host_names = read_names(*hosts, *result.topology);
    else
      for (Topology::Host host = 0; host < result.topology->hosts(); ++host)
        result.host_names.push_back(result.topology->host_name(host));
    return result;
  }

 private:
  static const FileOptions& no_options() {
    static const FileOptions options;
    return options;
  }
  [[nodiscard]] std::string hint(std::string_view prefix, std::string_view key) const override {
    if (!prefix.empty()) return {};
    if (key == "job" || key == "bottleneck" || key == "policies" || key == "arrivals" || key == "type")
      return "the key belongs to an experiment or cluster file: a topology file has only hosts and [topology]";
    return {};
  }

  std::vector<std::string> read_names(const Item& item, const Topology& topology) const {
    std::vector<std::string> names;
    std::map<std::string, std::uint32_t, std::less<>> lines;
    for (const Item& entry : elements(item, "names", "hosts = [\"node[01-16]\"]")) {
      for (std::string& name : at(entry, [&] { return expand_hosts(text(entry, "node1"), Topology::kMaxHosts); })) {
        if (name.empty() || name.size() > kLongestName || one_line(name) != name)
          fail(entry, fmt::format("{} is not a name of a host", in_quotes(name)),
               fmt::format("write 1 to {} printable characters", kLongestName));
        if (!lines.try_emplace(name, entry.line).second)
          fail(entry, fmt::format("{} appears twice", in_quotes(name)), "give each host a name of its own");
        names.push_back(std::move(name));
      }
    }
    if (names.size() != topology.hosts())
      fail(item, fmt::format("there are {} names, but the topology has {} hosts", names.size(), topology.hosts()),
           "write one name for each host, in the order of the topology's");
    return names;
  }
};

}  // namespace

TopologyFile load_topology(const std::filesystem::path& path) {
  return load_as(path, kTopologyFile, {}, parse_topology);
}

TopologyFile parse_topology(std::string_view text, const std::string& file) {
  return TopologyReader(file).read(parse_toml(text, file, "docs/how-to/scheduler-service.md"));
}

}  // namespace mltcp::experiment
