// Reader of switch configurations (see switch_file.h). Converts command-line arguments to values in the file's tree, so
// that the same reader checks arguments and files.
#include "mltcp/lab/experiment/files/switch_file.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "mltcp/base/file.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/settings_reader.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kSwitchFile{"a switch file", 1U << 20};
constexpr std::string_view kPage = "docs/how-to/switch.md";

/// The name of a command-line setting and the key that the setting changes, for one port or for all ports.
struct Word {
  std::string_view word;
  std::string_view key;
};
constexpr std::array<Word, 11> kPortWords{{{"rate", "rate"},
                                           {"delay", "delay"},
                                           {"buffer", "buffer"},
                                           {"ecn", "ecn"},
                                           {"loss", "faults.loss"},
                                           {"duplicate", "faults.duplication"},
                                           {"corrupt", "faults.corruption"},
                                           {"reorder", "faults.reordering"},
                                           {"reorder-delay", "faults.reorder_delay"},
                                           {"classes", "classes"},
                                           {"mtu", "mtu"}}};
constexpr std::array<Word, 4> kSwitchWords{
    {{"seed", "seed"}, {"idle", "idle"}, {"mac-entries", "mac_entries"}, {"ageing", "ageing"}}};

template <typename Words>
std::optional<std::string> key_of(const Words& words, std::string_view word) {
  for (const Word& known : words)
    if (known.word == word) return std::string(known.key);
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> pieces = parts_of(text, ',');
  for (std::string_view& piece : pieces) piece = trimmed(piece);
  return pieces;
}

/// Converts an ecn setting such as "30kB,60kB,0.5" to a TOML table, and other settings to TOML values.
std::string value_of(std::string_view key, std::string_view word) {
  if (key == "ecn" && word == "off") return "false";
  if (key != "ecn" || word.starts_with('{')) return value_from_word(word);
  constexpr std::array<std::string_view, 3> names{"kmin", "kmax", "pmax"};
  const auto pieces = split(word);
  if (pieces.size() > names.size())
    throw InputError(
        fmt::format("ecn: {} has more than three parts; write KMIN, KMIN,KMAX or KMIN,KMAX,PMAX", in_quotes(word)));
  std::string table;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    table += fmt::format("{}{} = {}", i == 0 ? "" : ", ", names[i], value_from_word(pieces[i]));
  return "{ " + table + " }";
}

/// Converts the settings of one port to values in the table that `place` names, such as "port[1]".
void read_port_words(std::string_view text, const std::string& place, std::vector<Override>& values) {
  const std::string origin = fmt::format("--port {}", one_line(text));
  std::string device;
  std::vector<std::pair<std::string, std::string>> settings;
  bool first = true;
  for (const std::string_view piece : split(text)) {
    const std::size_t equals = piece.find('=');
    const std::string_view word = piece.substr(0, equals);
    const auto key = equals == std::string_view::npos ? std::nullopt : key_of(kPortWords, word);
    if (std::exchange(first, false)) {
      device = piece;
    } else if (key) {
      settings.emplace_back(*key, piece.substr(equals + 1));
    } else if (equals == std::string_view::npos && !settings.empty() && settings.back().first == "ecn") {
      settings.back().second += fmt::format(",{}", piece);
    } else if (settings.empty() && (device.starts_with("memif:") || device.starts_with("net_"))) {
      device += fmt::format(",{}", piece);  // the names of these devices include comma-separated settings
    } else {
      std::vector<std::string> known;
      for (const Word& one : kPortWords) known.emplace_back(one.word);
      const auto meant = nearest(word, known);
      throw InputError(fmt::format(
          "{}: {} is not a setting of a port; {}", origin, in_quotes(piece),
          meant ? fmt::format("did you mean \"{}=...\"?", *meant) : "write KEY=VALUE with one of " + joined(known)));
    }
  }
  values.push_back({place + ".device", value_from_word(device), origin});
  for (const auto& [key, word] : settings)
    values.push_back({fmt::format("{}.{}", place, key), value_of(key, word), origin});
}

std::vector<Override> values_of(const SwitchWords& words, std::size_t ports_in_file) {
  std::vector<Override> values;
  for (const auto& [word, value] : words.values) {
    auto key = key_of(kPortWords, word);
    if (!key) key = key_of(kSwitchWords, word);
    if (key) values.push_back({*key, value_of(*key, value), "--" + word});
  }
  for (std::size_t i = 0; i < words.ports.size(); ++i)
    read_port_words(words.ports[i], fmt::format("port[{}]", ports_in_file + i + 1), values);
  return values;
}

class SwitchReader : public SettingsReader {
 public:
  SwitchReader(std::string file, const FileOptions& options) : SettingsReader(std::move(file), options) {}

  SwitchSettings read(const toml::table& root) const {
    std::vector<std::string> keys{"port", "seed", "idle", "mac_entries", "ageing"};
    keys.insert(keys.end(), port_keys.begin(), port_keys.end());
    check_keys(root, "", keys);
    SwitchSettings settings;
    if (const auto value = find(root, "", "idle")) {
      settings.idle = text(*value, "pause");
      if (!contains({"spin", "pause", "sleep"}, settings.idle))
        fail(*value, fmt::format("{} is not known", in_quotes(settings.idle)), "write spin, pause or sleep");
    }
    if (const auto value = find(root, "", "mac_entries")) settings.table.entries = count(*value, 4, 1 << 20);
    if (const auto value = find(root, "", "ageing")) {
      settings.table.ageing = duration(*value, "300 s", Nanos::from_seconds(1e6));
      if (settings.table.ageing < Nanos::from_seconds(1))
        fail(*value, fmt::format("{} is too short", to_text(settings.table.ageing)), "write at least 1 s");
    }
    const auto seed = find(root, "", "seed");
    const auto first_seed = seed ? static_cast<std::uint64_t>(whole(*seed, 0, INT64_MAX)) : 1;
    SwitchSettings::Port usual;
    usual.config.output.rate = Rate(1'000'000'000'000'000);
    read_port(root, "", usual);
    const auto list = find(root, "", "port");
    if (!list) fail(1, "port", "the switch has no ports", "write [[port]] or --port for each, at least two");
    const toml::array* ports = list->node->as_array();
    if (ports == nullptr) fail(*list, "an array of tables is expected", "write [[port]] above each port");
    for (const toml::node& node : *ports) {
      const Item item{&node, fmt::format("port[{}]", settings.ports.size() + 1), line_of(node, list->line)};
      const toml::table& values = table(item, "[[port]] and below it device = \"af_packet:eth0\"");
      std::vector<std::string> known = port_keys;
      known.emplace_back("device");
      check_keys(values, item.key, known);
      const Item device = required(item, values, "device", "\"af_packet:eth0\"");
      SwitchSettings::Port port = usual;
      port.device = text(device, "af_packet:eth0");
      if (port.device.empty()) fail(device, "it is empty", "write a port such as \"af_packet:eth0\"");
      for (const SwitchSettings::Port& other : settings.ports)
        if (other.device == port.device)
          fail(device, fmt::format("{} appears twice", in_quotes(port.device)), "give each port a device of its own");
      read_port(values, item.key, port);
      const fabric::LinkConfig& output = port.config.output;
      if (output.ecn.enabled && output.buffer_bytes > 0 && output.ecn.kmin_bytes >= output.buffer_bytes)
        fail(device,
             fmt::format("no frame is marked, because the buffer holds {} and kmin is {}",
                         bytes_to_text(output.buffer_bytes), bytes_to_text(output.ecn.kmin_bytes)),
             "write a kmin below the buffer");
      port.config.output.seed = Random::stream(first_seed, settings.ports.size()).next();
      settings.ports.push_back(std::move(port));
    }
    if (settings.ports.size() < 2 || settings.ports.size() > fabric::EthernetSwitch::kMaxPorts)
      fail(*list, fmt::format("the switch has {}", plural(settings.ports.size(), "port")),
           fmt::format("write 2 to {}", fabric::EthernetSwitch::kMaxPorts));
    return settings;
  }

 private:
  /// Reads the keys of a port. Values in `keys` replace the values in `port`.
  void read_port(const toml::table& keys, std::string_view prefix, SwitchSettings::Port& port) const {
    fabric::LinkConfig& output = port.config.output;
    if (const auto value = find(keys, prefix, "rate")) output.rate = rate(*value);
    if (const auto value = find(keys, prefix, "delay")) output.delay = duration(*value, "10 us", kMaxDelay);
    if (const auto value = find(keys, prefix, "buffer")) output.buffer_bytes = buffer(*value, "75 kB", 64);
    if (const auto value = find(keys, prefix, "ecn")) {
      output.ecn = {};
      if (value->node->as_boolean() == nullptr || truth(*value)) read_ecn(*value, output.ecn, output.buffer_bytes);
    }
    if (const auto value = find(keys, prefix, "faults")) read_faults(*value, output.faults);
    if (const auto value = find(keys, prefix, "classes"))
      port.config.classes = count(*value, 1, fabric::PriorityLink::kMaxClasses);
    if (const auto value = find(keys, prefix, "mtu")) port.mtu = count(*value, 576, 9000);
  }

  const std::vector<std::string> port_keys{"rate", "delay", "buffer", "ecn", "faults", "classes", "mtu"};
};

}  // namespace

SwitchSettings load_switch(const std::filesystem::path& path, const SwitchWords& words) {
  if (path.empty()) return parse_switch("", "--port", words);
  return load_as(path, kSwitchFile, {FileKind::ethernet_switch},
                 [&](const std::string& text, const std::string& file) { return parse_switch(text, file, words); });
}

SwitchSettings parse_switch(std::string_view text, const std::string& file, const SwitchWords& words) {
  toml::table root = parse_toml(text, file, kPage);
  if (!words.ports.empty() && root.get("port") == nullptr) root.insert("port", toml::array());
  toml::array* const ports = root["port"].as_array();
  FileOptions options;
  options.overrides = values_of(words, ports == nullptr ? 0 : ports->size());
  if (ports != nullptr)
    for (std::size_t i = 0; i < words.ports.size(); ++i) ports->push_back(toml::table());
  apply_overrides(root, options.overrides);
  return SwitchReader(file, options).read(root);
}

}  // namespace mltcp::experiment
