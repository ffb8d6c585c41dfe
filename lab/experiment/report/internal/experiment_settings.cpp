// Reads settings from a provenance (see experiment_settings.h).
#include "mltcp/lab/experiment/report/internal/experiment_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/files/toml.h"

namespace mltcp::experiment {
namespace {

std::string value_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* decimal = node.as_floating_point()) return fmt::format("{}", decimal->get());  // writes 1.0 as 1
  std::string text;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) text += (text.empty() ? "" : ", ") + value_text(element);
    return fmt::format("[{}]", text);
  }
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, child] : *table)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key.str(), value_text(child));
    return text;
  }
  return to_toml(node);
}

// Missing values have the defaults of docs/reference/experiment-file.md.
std::string ecn_text(const toml::table& ecn) {
  const auto value = [&](std::string_view key, const std::string& otherwise) {
    const toml::node* node = ecn.get(key);
    return node == nullptr ? otherwise : value_text(*node);
  };
  const std::string kmin = value("kmin", "0 B");
  return fmt::format("kmin {}, kmax {}, pmax {}", kmin, value("kmax", kmin), value("pmax", "1"));
}

void add_keys(const toml::table& table, const std::string& prefix, std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    const toml::table* ecn = key.str() == "ecn" ? node.as_table() : nullptr;
    settings.push_back({prefix + std::string(key.str()), ecn != nullptr ? ecn_text(*ecn) : value_text(node)});
  }
}

void add_jobs(const toml::array& jobs, std::vector<Setting>& settings) {
  std::size_t number = 0;
  for (const toml::node& node : jobs) {
    ++number;
    const toml::table* job = node.as_table();
    if (job == nullptr) continue;
    const toml::node* name = job->get("name");
    add_keys(*job, fmt::format("job {}: ", name == nullptr ? fmt::format("{}", number) : value_text(*name)), settings);
  }
}

std::vector<Setting> flattened(const toml::table& experiment) {
  std::vector<Setting> settings;
  for (const auto& [key, node] : experiment) {
    const std::string name(key.str());
    if (const toml::table* table = node.as_table()) {
      add_keys(*table, name + ".", settings);
    } else if (const toml::array* jobs = node.as_array(); jobs != nullptr && name == "job") {
      add_jobs(*jobs, settings);
    } else {
      settings.push_back({name, value_text(node)});
    }
  }
  std::ranges::stable_sort(settings, [](const auto& a, const auto& b) { return a.key < b.key; });
  return settings;
}

}  // namespace

std::optional<std::vector<Setting>> settings_of(const std::optional<Provenance>& provenance) {
  if (!provenance) return std::nullopt;
  // The experiment is the first file, or the second if the first is a sweep file.
  constexpr std::size_t looked_at = 2;
  for (std::size_t n = 0; n < std::min(looked_at, provenance->files.size()); ++n) {
    const Provenance::File& file = provenance->files[n];
    if (!file.text) continue;
    try {
      const toml::table table = parse_toml(*file.text, file.path, "");
      const toml::node* jobs = table.get("job");
      if (jobs != nullptr && jobs->is_array()) return flattened(table);
    } catch (const InputError&) {
      // The file is not an experiment, but a trace, a table of links, or a file of an unknown version.
    }
  }
  return std::nullopt;
}

const std::string* find_setting(const std::vector<Setting>& settings, std::string_view key) {
  const auto at = std::ranges::find(settings, key, &Setting::key);
  return at == settings.end() ? nullptr : &at->value;
}

std::string marking_of(const std::vector<Setting>& settings) {
  for (const std::string_view key : {"bottleneck.ecn", "topology.ecn"})
    if (const std::string* ecn = find_setting(settings, key)) return *ecn;
  return "none: full buffers drop packets";
}

}  // namespace mltcp::experiment
