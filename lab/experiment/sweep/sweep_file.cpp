// Reads sweep files (see sweep_file.h).
#include "mltcp/lab/experiment/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/toml.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kSweepFile{"a sweep or an experiment file", 64U << 20};
constexpr TextFile kExperimentFile{"an experiment file", 64U << 20};
constexpr std::string_view kPage = "docs/reference/sweep-file.md";
constexpr std::size_t kMaxSeeds = 100'000;
constexpr std::size_t kMaxWarnings = 10;

// One value of a factor: its label, and the keys that it sets.
struct Level {
  std::string label;
  std::vector<Override> overrides;
};
struct Factor {
  std::string key;
  std::vector<Level> levels;
  std::unordered_set<std::string> values = {};  // values of all levels
};

// Returns a string value without its quotes, and any other value as TOML.
std::string label_of(const toml::node& value) {
  const auto* text = value.as_string();
  return text != nullptr ? one_line(text->get()) : to_toml(value);
}

std::uint32_t line_of(const toml::key& key) { return std::max<std::uint32_t>(key.source().begin.line, 1); }

class SweepReader {
 public:
  explicit SweepReader(std::string file) : file_(std::move(file)) {}

  // Reads the sweep file, but not the experiment.
  void read(const toml::table& root, Sweep& sweep) {
    check_keys(root, "", {"name", "experiment", "seeds", "policies", "vary", "case"});
    sweep.name = one_line(std::filesystem::path(file_).stem().string());
    for (const auto& [key, node] : root) {
      if (key == "name") {
        sweep.name = text(key, node, "buffers");
        const std::string wrong = objection_to_name(sweep.name);
        if (!wrong.empty()) throw InputError(fmt::format("{}: name: {}", place(line_of(key)), wrong));
      }
      if (key == "experiment") {
        experiment = text(key, node, "two-jobs.toml");
        experiment_line = line_of(key);
      }
      if (key == "seeds") read_seeds(key, node);
      // The reader of experiments uses these policies in place of the experiment's own.
      if (key == "policies") policies = Override{"policies", to_toml(node), place(line_of(key)), folder()};
      if (key == "case") read_cases(key, node);
    }
    for (const auto& [key, node] : root)
      if (key == "vary") read_vary(key, node);
    if (experiment.empty()) fail(1, "experiment", "the path is empty", "write experiment = \"two-jobs.toml\"");
  }

  // Reads one --vary option.
  void vary(const std::string& option) {
    const std::size_t equals = option.find('=');
    const auto refuse = [&](std::string_view problem) {
      throw InputError(
          one_line(fmt::format("--vary {}: {}; write for example --vary cc=reno,cubic", in_quotes(option), problem)));
    };
    if (equals == std::string::npos || equals == 0) refuse("it is not KEY=VALUE,VALUE");
    Factor factor{option.substr(0, equals), {}};
    check_factor("--vary", factor.key);
    for (const std::string_view word : words_of(std::string_view(option).substr(equals + 1))) {
      if (word.empty()) refuse("a value is empty");
      std::string value;
      try {
        value = value_from_word(word);
      } catch (const InputError& error) {
        throw InputError(one_line(fmt::format("--vary {}: {}", factor.key, error.what())));
      }
      const toml::table parsed = toml::parse("v = " + value);
      add_level(factor, "--vary", {}, *parsed.get("v"));
    }
    const auto same = std::ranges::find(factors, factor.key, &Factor::key);
    if (same != factors.end())
      *same = std::move(factor);
    else
      factors.push_back(std::move(factor));
  }

  std::string experiment;
  std::uint32_t experiment_line = 0;
  std::vector<Level> cases;
  std::vector<Factor> factors;
  std::optional<std::size_t> seeds;
  std::vector<std::uint64_t> listed_seeds;
  std::uint32_t seeds_line = 0;
  std::optional<Override> policies;

  [[nodiscard]] std::string place(std::uint32_t line) const { return fmt::format("{}:{}", file_, line); }

  [[noreturn]] void fail(std::uint32_t line, std::string_view key, std::string_view cause,
                         std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}: {}: {}; {}", place(line), key, cause, cure)));
  }

 private:
  void check_keys(const toml::table& table, std::string_view prefix, const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      const auto meant = nearest(key.str(), known);
      fail(line_of(key), std::string(prefix) + std::string(key.str()), "unknown key of a sweep",
           meant ? fmt::format("did you mean \"{}\"?", *meant)
                 : fmt::format("the keys here are {}; keys of the experiment go into [vary]", joined(known)));
    }
  }

  std::string text(const toml::key& key, const toml::node& node, std::string_view example) const {
    const auto* value = node.as_string();
    if (value == nullptr)
      fail(line_of(key), key.str(), fmt::format("a text is expected, but this is {}", type_name(node)),
           fmt::format("write \"{}\"", example));
    return value->get();
  }

  // Returns the value of a key, which must be an array with at least one element.
  const toml::array& list(const toml::key& key, std::string_view path, const toml::node& node,
                          std::string_view example) const {
    const toml::array* array = node.as_array();
    if (array == nullptr)
      fail(line_of(key), path, fmt::format("an array is expected, but this is {}", type_name(node)),
           fmt::format("write {}", example));
    if (array->empty()) fail(line_of(key), path, "the array is empty", fmt::format("write {}", example));
    return *array;
  }

  void read_seeds(const toml::key& key, const toml::node& node) {
    constexpr std::string_view cure = "write their number, such as seeds = 10, or a list, such as seeds = [1, 2, 5]";
    seeds_line = line_of(key);
    if (const auto* count = node.as_integer()) {
      if (count->get() < 1 || count->get() > static_cast<std::int64_t>(kMaxSeeds))
        fail(seeds_line, "seeds", fmt::format("{} is out of range", count->get()),
             fmt::format("write 1 to {}", kMaxSeeds));
      seeds = static_cast<std::size_t>(count->get());
      return;
    }
    for (const toml::node& element : list(key, "seeds", node, "seeds = 10")) {
      const auto* seed = element.as_integer();
      if (seed == nullptr || seed->get() < 0)
        fail(seeds_line, "seeds", fmt::format("{} is not a seed", in_quotes(to_toml(element))), cure);
      const auto value = static_cast<std::uint64_t>(seed->get());
      if (std::ranges::find(listed_seeds, value) != listed_seeds.end())
        fail(seeds_line, "seeds", fmt::format("{} appears twice", value), "write it once");
      listed_seeds.push_back(value);
      if (listed_seeds.size() > kMaxSeeds)
        fail(seeds_line, "seeds", "there are too many", fmt::format("write at most {}", kMaxSeeds));
    }
  }

  void read_vary(const toml::key& section, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      fail(line_of(section), "vary", fmt::format("a table is expected, but this is {}", type_name(node)),
           "write [vary] and below it keys of the experiment with lists of values");
    // Sorts the entries by their order in the file, which the parser does not preserve.
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, values] : *table) entries.emplace_back(&key, &values);
    std::ranges::sort(entries, [](const auto& a, const auto& b) {
      const auto at = [](const toml::key* key) {
        return std::pair(key->source().begin.line, key->source().begin.column);
      };
      return at(a.first) < at(b.first);
    });
    for (const auto& [key, values] : entries) {
      const std::string path = fmt::format("vary.{}", key->str());
      refuse_dots(*key, *values, path);
      Factor factor{std::string(key->str()), {}};
      check_factor(fmt::format("{}: vary", place(line_of(*key))), factor.key);
      for (const toml::node& value : list(*key, path, *values, "a list of values, such as cc = [\"reno\", \"cubic\"]"))
        add_level(factor, place(line_of(*key)), folder(), value);
      factors.push_back(std::move(factor));
    }
  }

  void read_cases(const toml::key& section, const toml::node& node) {
    constexpr std::string_view example = R"([[case]] and below it name = "dctcp", set = { cc = "dctcp" })";
    std::size_t number = 0;
    for (const toml::node& element : list(section, "case", node, example)) {
      const std::string prefix = fmt::format("case[{}].", ++number);
      const toml::table* table = element.as_table();
      const std::uint32_t line = std::max(element.source().begin.line, line_of(section));
      if (table == nullptr)
        fail(line, prefix.substr(0, prefix.size() - 1),
             fmt::format("a table is expected, but this is {}", type_name(element)), fmt::format("write {}", example));
      check_keys(*table, prefix, {"name", "set"});
      Level level;
      for (const auto& [key, value] : *table) {
        if (key == "name") level.label = text(key, value, "dctcp");
        if (key == "set") read_set(key, value, prefix + "set", level);
      }
      const std::string wrong = objection_to_name(level.label);
      if (!wrong.empty()) throw InputError(fmt::format("{}: {}name: {}", place(line), prefix, wrong));
      for (const Level& other : cases)
        if (other.label == level.label)
          fail(line, prefix + "name", in_quotes(level.label) + " is the name of another case too",
               "give each case a name of its own");
      cases.push_back(std::move(level));
    }
  }

  void read_set(const toml::key& section, const toml::node& node, const std::string& prefix, Level& level) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      fail(line_of(section), prefix, fmt::format("a table is expected, but this is {}", type_name(node)),
           "write set = { cc = \"dctcp\" }");
    for (const auto& [key, value] : *table) {
      refuse_dots(key, value, fmt::format("{}.{}", prefix, key.str()));
      check_key(fmt::format("{}: {}", place(line_of(key)), prefix), key.str());
      level.overrides.push_back({std::string(key.str()), to_toml(value), place(line_of(key)), folder()});
    }
  }

  // Rejects keys with dots outside quotes. TOML makes a table of such a key, which would replace a whole table of the
  // experiment.
  void refuse_dots(const toml::key& key, const toml::node& value, std::string_view path) const {
    const auto& a = key.source().begin;
    const auto& b = value.source().begin;
    if (value.is_table() && a.line == b.line && a.column == b.column)
      fail(line_of(key), path, "a key with dots has no quotes", fmt::format("write \"{}....\" in quotes", key.str()));
  }

  void check_factor(std::string_view origin, const std::string& key) const {
    check_key(origin, key);
    for (const Level& one : cases)
      for (const Override& override : one.overrides)
        if (override.key == key)
          throw InputError(one_line(fmt::format("{}: {}: case {} sets it too; leave it out in one of the two", origin,
                                                key, in_quotes(one.label))));
  }

  // Rejects the keys `seed` and `policies`, which a sweep sets for all points.
  static void check_key(std::string_view origin, std::string_view key) {
    if (key == "seed" || key == "policies")
      throw InputError(one_line(fmt::format("{}: {}: it is the same at every point; write {} of the sweep", origin, key,
                                            key == "seed" ? "seeds" : "policies")));
  }

  [[nodiscard]] std::filesystem::path folder() const { return std::filesystem::path(file_).parent_path(); }

  static void add_level(Factor& factor, const std::string& origin, const std::filesystem::path& folder,
                        const toml::node& value) {
    const Override override{factor.key, to_toml(value), origin, folder};
    if (!factor.values.insert(override.value).second)
      throw InputError(one_line(
          fmt::format("{}: {}: {} appears twice; write it once", origin, factor.key, in_quotes(override.value))));
    factor.levels.push_back({label_of(value), {override}});
  }

  // Splits at commas outside brackets and quotes.
  static std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    std::size_t begin = 0;
    int depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const char c = i < text.size() ? text[i] : ',';
      if (i == text.size() || (c == ',' && depth <= 0 && quote == 0)) {
        words.push_back(text.substr(begin, i - begin));
        begin = i + 1;
      } else if (quote != 0) {
        if (c == '\\' && quote == '"')
          ++i;
        else if (c == quote)
          quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else {
        depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
      }
    }
    return words;
  }

  std::string file_;
};

// Returns all points: each case with each combination of the factors. The last factor varies fastest.
std::vector<SweepPoint> expand(const std::vector<Level>& cases, const std::vector<Factor>& factors) {
  std::vector<SweepPoint> points(1);
  const auto multiply = [&](const std::vector<Level>& levels) {
    std::vector<SweepPoint> product;
    product.reserve(points.size() * levels.size());
    for (const SweepPoint& point : points) {
      for (const Level& level : levels) {
        product.push_back(point);
        product.back().values.push_back(level.label);
        product.back().overrides.insert(product.back().overrides.end(), level.overrides.begin(), level.overrides.end());
      }
    }
    points = std::move(product);
  };
  if (!cases.empty()) multiply(cases);
  for (const Factor& factor : factors) multiply(factor.levels);
  return points;
}

// Loads shared objects before any point is read, so that every point knows the parameters of each algorithm that any
// point uses.
void load_algorithms(const Level& level) {
  for (const Override& override : level.overrides) {
    if (override.key != "cc" && !override.key.ends_with(".cc")) continue;
    const toml::table parsed = toml::parse("v = " + override.value);
    const toml::value<std::string>* text = parsed.get_as<std::string>("v");
    if (text == nullptr || !cc::names_a_library(text->get())) continue;
    try {
      cc::algorithm_from(text->get(), override.folder);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", override.origin, override.key, error.what())));
    }
  }
}

FileOptions options_of(const Sweep& sweep, const SweepPoint& point) {
  FileOptions options = sweep.options;
  options.overrides.insert(options.overrides.end(), point.overrides.begin(), point.overrides.end());
  return options;
}

}  // namespace

namespace {

// Reads the sweep from `path` into `sweep`. After an exception, `sweep` contains the text and the path of the file that
// was read last.
void read_sweep(const std::filesystem::path& path, const SweepOptions& options, Sweep& sweep) {
  const std::string file = path.string();
  sweep.file = file;
  sweep.text = read_text_file(path, file, kSweepFile);
  SweepReader reader(file);
  const toml::table root = parse_toml(sweep.text, file, kPage);
  const bool is_sweep =
      root.contains("experiment") || root.contains("seeds") || root.contains("vary") || root.contains("case");
  if (is_sweep) {
    if (!root.contains("experiment"))
      reader.fail(1, "experiment", "the key is missing", "write experiment = \"two-jobs.toml\"");
    reader.read(root, sweep);
    const std::filesystem::path experiment = path.parent_path() / reader.experiment;
    const std::string named =
        one_line(fmt::format("{}: experiment: {}", reader.place(reader.experiment_line), experiment.string()));
    sweep.text = read_text_file(experiment, named, kExperimentFile);
    sweep.file = experiment.string();
  }
  std::set<std::string> named;
  for (const std::string& option : options.vary) {
    if (!named.insert(option.substr(0, option.find('='))).second)
      throw InputError(one_line(fmt::format("--vary {}: it is given twice; write all values into one",
                                            in_quotes(option.substr(0, option.find('='))))));
    reader.vary(option);
  }

  // Limits the number of runs before making points, since a few long lists can multiply to more points than fit into
  // memory.
  const std::size_t seeds =
      options.seeds.value_or(reader.seeds.value_or(std::max<std::size_t>(reader.listed_seeds.size(), 1)));
  std::size_t runs = seeds * std::max<std::size_t>(reader.cases.size(), 1);
  for (const Factor& factor : reader.factors) runs = std::min(runs * factor.levels.size(), kMaxSweepRuns + 1);
  if (runs > kMaxSweepRuns)
    throw InputError(one_line(
        fmt::format("{}: points times seeds are more than {} runs; leave out values or seeds", file, kMaxSweepRuns)));
  for (const Level& level : reader.cases) load_algorithms(level);
  for (const Factor& factor : reader.factors)
    for (const Level& level : factor.levels) load_algorithms(level);
  if (!reader.cases.empty()) sweep.factors.emplace_back("case");
  for (const Factor& factor : reader.factors) sweep.factors.push_back(factor.key);
  sweep.points = expand(reader.cases, reader.factors);

  sweep.options = options.files;
  sweep.options.virtual_time_only = true;
  sweep.options.policy = options.policies;
  if (reader.policies) sweep.options.overrides.push_back(*reader.policies);
  std::set<std::string> warnings;
  std::optional<std::uint64_t> base;
  for (SweepPoint& point : sweep.points) {
    const Experiment experiment = parse_experiment(sweep.text, sweep.file, options_of(sweep, point));
    if (sweep.name.empty()) sweep.name = experiment.name;
    point.fingerprint = experiment.fingerprint;
    base = experiment.seed;
    for (const std::string& warning : experiment.warnings)
      if (warnings.size() < kMaxWarnings && warnings.insert(warning).second) sweep.warnings.push_back(warning);
  }

  if (!options.seeds && !reader.listed_seeds.empty()) {
    sweep.seeds = reader.listed_seeds;
  } else {
    if (*base > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - seeds)
      throw InputError(one_line(fmt::format("{}: seed: {} seeds from {} on exceed 2^63 - 1; write a smaller seed",
                                            sweep.file, seeds, *base)));
    for (std::size_t i = 0; i < seeds; ++i) sweep.seeds.push_back(*base + i);
  }
}

}  // namespace

Sweep load_sweep(const std::filesystem::path& path, const SweepOptions& options) {
  Sweep sweep;
  try {
    read_sweep(path, options, sweep);
  } catch (const InputError&) {
    if (sweep.file == path.string())
      refuse_other_kind(sweep.text, sweep.file, kSweepFile.what, {FileKind::sweep, FileKind::experiment});
    else
      refuse_other_kind(sweep.text, sweep.file, kExperimentFile.what, {FileKind::experiment});
    throw;
  }
  return sweep;
}

Experiment experiment_of(const Sweep& sweep, const SweepPoint& point, std::uint64_t seed) {
  FileOptions options = options_of(sweep, point);
  options.seed = seed;
  return parse_experiment(sweep.text, sweep.file, options);
}

std::string describe(const Sweep& sweep, const SweepPoint& point) {
  std::string text;
  for (std::size_t i = 0; i < sweep.factors.size(); ++i)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", sweep.factors[i], point.values[i]);
  return text.empty() ? "the only point" : text;
}

}  // namespace mltcp::experiment
