// Reader of topology files (see topology_file.h).
#include "mltcp/experiment/files/topology_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/files/file_kind.h"
#include "mltcp/experiment/files/internal/settings_reader.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile topology_file{"a topology file", 64U << 20};
constexpr std::size_t longest_name = 128;
constexpr std::size_t most_digits = 9;

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
    sim::SwitchedNetworkConfig network = read_topology(*topology);
    try {
      sim::check(network);
    } catch (const InputError& error) {
      rethrow(*topology, error);
    }
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
      return "it is one of an experiment or of a stream of jobs: here are hosts and [topology] alone";
    return {};
  }

  std::vector<std::string> read_names(const Item& item, const Topology& topology) const {
    const toml::array* list = item.node->as_array();
    if (list == nullptr)
      fail(item, fmt::format("an array of names is expected and this is {}", type_name(*item.node)),
           "write hosts = [\"node[01-16]\"]");
    std::vector<std::string> names;
    std::map<std::string, std::uint32_t, std::less<>> lines;
    for (const toml::node& node : *list) {
      const Item entry{&node, item.key, line_of(node, item.line)};
      std::vector<std::string> some;
      try {
        some = expand_names(text(entry, "node1"), Topology::kMostHosts);
      } catch (const InputError& error) {
        rethrow(entry, error);
      }
      for (std::string& name : some) {
        if (name.empty() || name.size() > longest_name || one_line(name) != name)
          fail(entry, fmt::format("{} is no name of a host", in_quotes(name)),
               fmt::format("write 1 to {} printable characters", longest_name));
        if (!lines.try_emplace(name, entry.line).second)
          fail(entry, fmt::format("{} stands there twice", in_quotes(name)), "give each host a name of its own");
        names.push_back(std::move(name));
      }
    }
    if (names.size() != topology.hosts())
      fail(item, fmt::format("there are {} names and the topology has {} hosts", names.size(), topology.hosts()),
           "write one name for each host, in the order of the topology's");
    return names;
  }
};

}  // namespace

std::vector<std::string> expand_names(std::string_view text, std::size_t most) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) return {std::string(text)};
  const std::size_t close = text.find(']', open);
  const auto wrong = [&](std::string_view cause) {
    return InputError(fmt::format("{} of {}; write a range of numbers, such as \"node[01-16]\" or \"node[1-4,7]\"",
                                  cause, in_quotes(text)));
  };
  if (close == std::string_view::npos) throw wrong("the bracket is not closed");
  const std::string_view before = text.substr(0, open);
  const std::string_view after = text.substr(close + 1);
  if (after.find('[') != std::string_view::npos) throw wrong("there is more than one range in the brackets");
  const auto number = [&](std::string_view digits) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || digits.size() > most_digits || error != std::errc() || end != digits.data() + digits.size())
      throw wrong("there is no number in the brackets");
    return value;
  };
  std::vector<std::string> names;
  for (std::string_view list = text.substr(open + 1, close - open - 1);;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, comma);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view first = range.substr(0, dash);
    const std::uint64_t from = number(first);
    const std::uint64_t to = dash == range.size() ? from : number(range.substr(dash + 1));
    if (to < from) throw wrong("the range runs backwards in the brackets");
    if (to - from >= most - std::min(most, names.size()))
      throw InputError(fmt::format("{} stands for more than {} names; write fewer", in_quotes(text), most));
    for (std::uint64_t i = from; i <= to; ++i)
      names.push_back(fmt::format("{}{:0{}}{}", before, i, first.size(), after));
    if (comma == list.size()) return names;
    list.remove_prefix(comma + 1);
  }
}

TopologyFile load_topology(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string text = read_text_file(path, file, topology_file);
  try {
    return parse_topology(text, file);
  } catch (const InputError&) {
    refuse_other_kind(text, file, topology_file.what, {});
    throw;
  }
}

TopologyFile parse_topology(std::string_view text, const std::string& file) {
  return TopologyReader(file).read(parse_toml(text, file, "docs/scheduler-service.md"));
}

}  // namespace mltcp::experiment
