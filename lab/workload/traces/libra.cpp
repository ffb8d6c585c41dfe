// See libra.h.
#include "mltcp/lab/workload/traces/libra.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/yaml.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 16;
constexpr std::uint64_t kMaxRanks = 10'000'000;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::array<std::string_view, 9> kKeys{"Forward",       "InputGrad", "WeightGrad", "Topology",  "NpusCount",
                                                "CostDimension", "Inter",     "topology",   "npus_count"};

class LibraReader {
 public:
  LibraReader(std::string_view text, const std::string& name) : name_(name), root_(load(text)) {}

  LibraFile read() const {
    LibraFile file;
    if (root_["Forward"] || root_["WeightGrad"]) {
      file.model = product("Forward");
      file.data = product("WeightGrad");
      if (const auto gradient = root_["InputGrad"]; gradient && product("InputGrad") != file.model)
        fail(gradient, fmt::format("InputGrad is of {} ranks and Forward of {}", product("InputGrad"), file.model),
             "give both the same groups");
      if (std::uint64_t{file.model} * file.data > kMaxRanks)
        fail(root_, "it has too many ranks", fmt::format("give at most {}", kMaxRanks));
    } else if (root_["NpusCount"] || root_["npus_count"]) {
      file.kind = LibraFile::Kind::network;
      file.ranks = product(root_["NpusCount"] ? "NpusCount" : "npus_count");
    } else {
      file.kind = LibraFile::Kind::costs;
    }
    return file;
  }

 private:
  [[noreturn]] void fail(int line, std::string_view cause, std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}:{}: {}; {}", name_, line, cause, cure)));
  }
  [[noreturn]] void fail(const YAML::Node& node, std::string_view cause, std::string_view cure) const {
    fail(node.Mark().line + 1, cause, cure);
  }

  YAML::Node load(std::string_view text) const {
    if (text.size() > kMaxText)
      fail(1, fmt::format("it has more than {} bytes", kMaxText), "give a file of LIBRA or ASTRA-sim");
    try {
      YAML::Node root = load_yaml(text);
      if (!root.IsMap()) fail(1, "it is not a list of keys and values", "give a file of LIBRA or ASTRA-sim");
      return root;
    } catch (const YAML::Exception& error) {
      fail(error.mark.line + 1, fmt::format("no YAML: {}", error.msg), "give a file of LIBRA or ASTRA-sim");
    }
  }

  /// Returns the product of the numbers in the list `key`, one number per dimension; -1 counts as one rank.
  std::uint32_t product(const char* key) const {
    const YAML::Node list = root_[key];
    if (!list) fail(1, fmt::format("there is no \"{}\"", key), "give a list with a number for each dimension");
    if (!list.IsSequence() || list.size() > kMaxDimensions)
      fail(list, fmt::format("\"{}\" is not a list of at most {} numbers", key, kMaxDimensions),
           "write one for each dimension of the network");
    std::uint64_t all = 1;
    for (const YAML::Node& each : list) {
      std::int64_t value = 0;
      try {
        value = each.as<std::int64_t>();
      } catch (const YAML::Exception&) {
        fail(each, fmt::format("\"{}\" has an element that is not a whole number", key),
             "write numbers of ranks, or -1");
      }
      if (value == -1) continue;
      if (value < 1 || static_cast<std::uint64_t>(value) > kMaxRanks)
        fail(each, fmt::format("{} of \"{}\" is not from 1 to {}", value, key, kMaxRanks),
             "write a number of ranks, or -1");
      all *= static_cast<std::uint64_t>(value);
      if (all > kMaxRanks) fail(each, fmt::format("\"{}\" has more than {} ranks", key, kMaxRanks), "give fewer");
    }
    return static_cast<std::uint32_t>(all);
  }

  const std::string& name_;
  YAML::Node root_;
};

LibraFile parsed(TraceInput& input) {
  std::string text(kMaxText + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t read = input.read(text.data() + length, text.size() - length);
    if (read == 0) break;
    length += read;
  }
  text.resize(length);
  return parse_libra(text, input.name());
}

}  // namespace

bool is_libra(std::string_view beginning) {
  while (!beginning.empty()) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    const std::string_view line = trimmed(beginning.substr(0, end));
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
    if (line.empty() || line.starts_with('#')) continue;
    for (const std::string_view key : kKeys)
      if (line.starts_with(key) && line.find(':') != std::string_view::npos) return true;
    return false;
  }
  return false;
}

LibraFile parse_libra(std::string_view text, const std::string& name) { return LibraReader(text, name).read(); }

std::optional<std::string> communicator_beside(const std::filesystem::path& workload) {
  constexpr std::size_t max = 1000;  // maximum number of folder entries to examine
  std::optional<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(workload.has_parent_path() ? workload.parent_path() : ".", error);
  for (std::size_t i = 0; !error && i < max && entry != std::filesystem::directory_iterator();
       entry.increment(error), ++i) {
    const std::filesystem::path path = workload.parent_path() / entry->path().filename();
    std::error_code unknown;
    if ((path.extension() != ".yml" && path.extension() != ".yaml") || !entry->is_regular_file(unknown)) continue;
    try {
      for_each_input(path, [&](TraceInput& input) {
        if (is_libra(input.beginning()) && parsed(input).kind == LibraFile::Kind::communicator &&
            (!found || path.string() < *found))
          found = path.string();
      });
    } catch (const InputError&) {
      continue;  // the file is not a communicator file
    }
  }
  return found;
}

void read_libra(TraceInput& input, TraceOptions& options) {
  const LibraFile file = parsed(input);
  if (file.kind == LibraFile::Kind::communicator) {
    options.model_ranks = file.model;
    options.data_ranks = file.data;
  } else if (file.kind == LibraFile::Kind::network && options.ranks == 0) {
    options.ranks = file.ranks;
  }
}

}  // namespace mltcp::workload
