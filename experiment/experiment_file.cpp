// Reader of experiment files (see experiment_file.h).
#include "mltcp/experiment/experiment_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/controller.h"
#include "mltcp/experiment/internal/toml.h"
#include "mltcp/experiment/placement.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/transport/encapsulation.h"
#include "mltcp/workload/inspection.h"
#include "mltcp/workload/kineto.h"
#include "mltcp/workload/schedule.h"
#include "mltcp/workload/trace.h"

namespace mltcp::experiment {
namespace {

using namespace mltcp::literals;

// Bounds of values that are sound; beyond them a value is a slip of the pen.
constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::int64_t kMostFlows = 1000;
constexpr std::size_t kMostJobs = 1000;
constexpr std::size_t kMostConnections = 1'000'000;  // of all workers of all jobs
constexpr std::size_t kMostPhases = 100'000;
constexpr std::size_t kMostNameBytes = 100;
constexpr std::uint32_t kFirstOverrideLine = 1U << 31;  // beyond every file's lines: those of overrides, by number
constexpr TextFile kExperimentFile{"an experiment file", 64U << 20};
constexpr Bytes kMostBufferBytes = 1'000'000'000'000;     // 1 TB
constexpr Bytes kMostPhaseBytes = 1'000'000'000'000'000;  // 1 PB
constexpr Rate kLeastRate(1'000);                         // 1 kbps
constexpr Rate kMostRate(100'000'000'000'000);            // 100 Tbps
constexpr Nanos kMostDelay = 10_s;
constexpr Nanos kMostCompute(24LL * 3600 * 1'000'000'000LL);  // a day
constexpr double kMostWeight = 1000;
constexpr double kMostStraggling = 1000;
constexpr std::int64_t kMostSwitches = 1024;
constexpr std::uint32_t kMostHosts = 1U << 16;
constexpr double kMostScale = 1e6;

const std::vector<std::string>& top_level_keys() {
  static const std::vector<std::string> keys{"name",     "datapath",   "iterations", "seed",  "cc",
                                             "policies", "mltcp",      "cubic",      "dctcp", "dcqcn",
                                             "swift",    "bottleneck", "topology",   "job"};
  return keys;
}

bool is_top_level(std::string_view key) {
  return std::find(top_level_keys().begin(), top_level_keys().end(), key) != top_level_keys().end();
}

// A value with its place, for messages.
struct Item {
  const toml::node* node = nullptr;
  std::string key;
  std::uint32_t line = 0;
};

class Reader {
 public:
  Reader(std::string file, const FileOptions& options) : file_(std::move(file)), options_(options) {}

  Experiment read(const toml::table& root) {
    if (root.empty()) fail(1, "experiment", "the file is empty", "describe a bottleneck and at least one job");
    check_keys(root, "", top_level_keys());
    Experiment experiment;
    experiment.file = file_;
    experiment.name = one_line(std::filesystem::path(file_).stem().string());
    if (const auto item = find(root, "", "name")) experiment.name = name_text(*item);
    if (const auto item = find(root, "", "iterations"))
      experiment.iterations = static_cast<std::uint32_t>(whole(*item, 1, kMostIterations));
    if (options_.iterations) experiment.iterations = *options_.iterations;
    if (const auto item = find(root, "", "seed"))
      experiment.seed = static_cast<std::uint64_t>(whole(*item, 0, std::numeric_limits<std::int64_t>::max()));
    if (options_.seed) experiment.seed = *options_.seed;
    experiment.datapath =
        choice(root, "datapath", "--datapath", options_.datapath, known_datapaths(), options_.datapaths, "sim");
    if (options_.virtual_time_only && experiment.datapath != "sim")
      fail(*find(root, "", "datapath"),
           fmt::format("{} runs one experiment at a time, as it has the machine's time for a clock, and a sweep many",
                       in_quotes(experiment.datapath)),
           "write \"sim\", or use mltcp run");
    experiment.cc = choice(root, "cc", "--cc", options_.cc, known_ccs(), options_.ccs, "reno");
    read_policies(root, experiment);
    check_priorities(root, experiment);
    if (const auto item = find(root, "", "mltcp")) read_mltcp(*item, experiment.mltcp);
    read_parameters(root, experiment.parameters);
    const auto bottleneck = find(root, "", "bottleneck");
    const auto topology = find(root, "", "topology");
    if (bottleneck && topology) fail(*topology, "the file has a bottleneck too", "keep one of the two");
    if (!bottleneck && !topology)
      fail(1, "bottleneck", "the table is missing",
           "add [bottleneck] with at least rate = \"1 Gbps\", or a [topology]");
    if (bottleneck) read_bottleneck(*bottleneck, experiment);
    if (topology) read_topology(*topology, experiment);
    experiment.bottleneck.seed = experiment.seed;
    ecn_ = experiment.bottleneck.ecn.enabled;
    check_needs(experiment.cc, options_.cc ? std::nullopt : find(root, "", "cc"), ecn_);
    const auto jobs = find(root, "", "job");
    if (!jobs) fail(1, "job", "there is no job", "add at least one [[job]]");
    read_jobs(*jobs, experiment);
    if (topology) check_topology(*topology, experiment);
    check_length(root, experiment);
    warn_if_overbooked(experiment);
    warn_of_equal_priorities(experiment);
    return experiment;
  }

 private:
  [[noreturn]] void fail(std::uint32_t line, std::string_view key, std::string_view cause,
                         std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}: {}: {}; {}", place(line), key, cause, cure)));
  }
  [[noreturn]] void fail(const Item& item, std::string_view cause, std::string_view cure) const {
    fail(item.line, item.key, cause, cure);
  }

  // Where a line stands: in the file, or where the override comes from that stands for it.
  std::string place(std::uint32_t line) const {
    if (line >= kFirstOverrideLine) return options_.overrides[line - kFirstOverrideLine].origin;
    return fmt::format("{}:{}", file_, line);
  }

  // ---- Values ----

  static std::string path(std::string_view prefix, std::string_view key) {
    return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
  }

  static std::optional<Item> find(const toml::table& table, std::string_view prefix, std::string_view key) {
    for (const auto& [name, node] : table)
      if (name.str() == key)
        return Item{&node, path(prefix, key), std::max<std::uint32_t>(name.source().begin.line, 1)};
    return std::nullopt;
  }

  void check_keys(const toml::table& table, std::string_view prefix, const std::vector<std::string>& known) const {
    for (const auto& [name, node] : table) {
      if (std::find(known.begin(), known.end(), name.str()) != known.end()) continue;
      const auto meant = nearest(name.str(), known);
      fail(std::max<std::uint32_t>(name.source().begin.line, 1),
           path(prefix, one_line(name.str().substr(0, kMostNameBytes))), "unknown key",
           prefix.empty() && (name == "experiment" || name == "vary" || name == "seeds" || name == "case")
               ? "it is one of a sweep: use mltcp sweep"
           : !prefix.empty() && is_top_level(name.str())
               ? "it belongs to the top level: write it above the first [table] of the file"
           : meant ? fmt::format("did you mean \"{}\"?", *meant)
                   : "the keys here are " + joined(known));
    }
  }

  const toml::table& table(const Item& item, std::string_view example) const {
    const toml::table* result = item.node->as_table();
    if (result == nullptr)
      fail(item, fmt::format("a table is expected and this is {}", type_name(*item.node)),
           fmt::format("write {}", example));
    return *result;
  }

  const std::string& text(const Item& item, std::string_view example) const {
    const toml::value<std::string>* result = item.node->as_string();
    if (result == nullptr)
      fail(item, fmt::format("a text is expected and this is {}", type_name(*item.node)),
           fmt::format("write \"{}\"", example));
    return result->get();
  }

  std::string name_text(const Item& item) const {
    const std::string& result = text(item, "two-jobs");
    const std::string wrong = objection_to_name(result);
    if (!wrong.empty()) throw_objection(item, wrong);
    return result;
  }

  std::int64_t whole(const Item& item, std::int64_t least, std::int64_t most) const {
    const toml::value<std::int64_t>* result = item.node->as_integer();
    if (result == nullptr)
      fail(item, fmt::format("a whole number is expected and this is {}", type_name(*item.node)),
           fmt::format("write a number from {} to {}, without quotes", least, most));
    if (result->get() < least || result->get() > most)
      fail(item, fmt::format("{} is out of range", result->get()), fmt::format("write {} to {}", least, most));
    return result->get();
  }

  double decimal(const Item& item, std::string_view example) const {
    double result = 0;
    if (const auto* value = item.node->as_floating_point())
      result = value->get();
    else if (const auto* integer = item.node->as_integer())
      result = static_cast<double>(integer->get());
    else
      fail(item, fmt::format("a number is expected and this is {}", type_name(*item.node)),
           fmt::format("write a number without quotes, such as {}", example));
    if (!std::isfinite(result)) fail(item, "the number is not finite", fmt::format("write one such as {}", example));
    return result;
  }

  double probability(const Item& item) const {
    const double result = decimal(item, "0.01");
    if (result < 0 || result > 1) fail(item, fmt::format("{} is no probability", result), "write a number from 0 to 1");
    return result;
  }

  double factor(const Item& item, double most) const {
    const double result = decimal(item, "1.0");
    if (result <= 0 || result > most)
      fail(item, fmt::format("{} is out of range", result), fmt::format("write a number above 0 and at most {}", most));
    return result;
  }

  bool truth(const Item& item) const {
    const toml::value<bool>* result = item.node->as_boolean();
    if (result == nullptr)
      fail(item, fmt::format("true or false is expected and this is {}", type_name(*item.node)),
           "write true or false, without quotes");
    return result->get();
  }

  // A text with a unit. A bare number gets a hint of its own, as it is the likely slip.
  template <typename Parse>
  auto with_unit(const Item& item, std::string_view example, Parse parse) const {
    const auto* integer = item.node->as_integer();
    const auto* floating = item.node->as_floating_point();
    if (integer != nullptr || floating != nullptr)
      fail(item,
           integer != nullptr ? fmt::format("the number {} has no unit", integer->get())
                              : fmt::format("the number {} has no unit", floating->get()),
           fmt::format("write a text with a unit, such as \"{}\"", example));
    const std::string& written = text(item, example);
    try {
      return parse(written);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, error.what())));
    }
  }

  Nanos duration(const Item& item, std::string_view example, Nanos most) const {
    const Nanos result = with_unit(item, example, parse_duration);
    if (result > most) fail(item, fmt::format("{} is too long", to_text(result)), "write at most " + to_text(most));
    return result;
  }

  Rate rate(const Item& item) const {
    const Rate result = with_unit(item, "1 Gbps", parse_rate);
    if (result < kLeastRate || result > kMostRate)
      fail(item, fmt::format("{} is out of range", to_text(result)),
           fmt::format("write {} to {}", to_text(kLeastRate), to_text(kMostRate)));
    return result;
  }

  Bytes bytes(const Item& item, std::string_view example, Bytes most) const {
    const Bytes result = with_unit(item, example, parse_bytes);
    if (result > most)
      fail(item, fmt::format("{} is too much", bytes_to_text(result)), "write at most " + bytes_to_text(most));
    return result;
  }

  // ---- Choices ----

  static bool contains(const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }

  // What is wrong with a value of a list of choices, and its cure; empty when it can be used.
  static std::string objection(std::string_view value, const std::vector<std::string>& known,
                               const std::vector<std::string>& available) {
    if (!contains(known, value)) {
      const auto meant = nearest(value, known);
      return fmt::format("{} is not known; {}", in_quotes(value),
                         meant ? fmt::format("did you mean \"{}\"?", *meant) : "write one of " + joined(known));
    }
    if (available.empty() || contains(available, value)) return {};
    return fmt::format("{} is not available{}; this version has: {}", in_quotes(value),
                       value.starts_with("schedule") || value.ends_with("schedule") ? " as it needs the scheduler" : "",
                       joined(available));
  }

  std::string choice(const toml::table& root, std::string_view key, std::string_view option,
                     const std::optional<std::string>& override_value, const std::vector<std::string>& known,
                     const std::vector<std::string>& available, std::string_view by_default) const {
    const auto item = find(root, "", key);
    if (item) {
      // A value that is overridden must still be one that the format knows.
      const std::string& value = text(*item, by_default);
      const std::string wrong = objection(value, known, override_value ? known : available);
      if (!wrong.empty()) throw_objection(*item, wrong);
      if (!override_value) return value;
    }
    if (!override_value) return std::string(by_default);
    const std::string wrong = objection(*override_value, known, available);
    if (!wrong.empty()) throw InputError(one_line(fmt::format("{}: {}", option, wrong)));
    return *override_value;
  }

  [[noreturn]] void throw_objection(const Item& item, std::string_view wrong) const {
    throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, wrong)));
  }

  // An algorithm that reacts to marks must not run where there are none. Without an item, the option chose it: no
  // default needs marks.
  void check_needs(const std::string& name, const std::optional<Item>& item, bool ecn) const {
    for (const cc::AlgorithmTable* algorithm : cc::algorithms()) {
      if (algorithm->name != name || !algorithm->capabilities.needs_ecn || ecn) continue;
      const std::string cause = fmt::format("{} needs ECN and the link marks no packets", name);
      const std::string_view cure = "add ecn = { kmin = \"60 kB\" } to it, or choose another congestion control";
      if (!item) throw InputError(fmt::format("--cc: {}; {}", cause, cure));
      fail(*item, cause, cure);
    }
  }

  void read_policies(const toml::table& root, Experiment& experiment) const {
    if (const auto item = find(root, "", "policies")) {
      const toml::array* list = item->node->as_array();
      if (list == nullptr)
        fail(*item, fmt::format("an array of texts is expected and this is {}", type_name(*item->node)),
             "write [\"fair\", \"mltcp\"]");
      if (list->empty()) fail(*item, "the array is empty", "write [\"fair\", \"mltcp\"]");
      experiment.policies.clear();
      for (const toml::node& node : *list) {
        const Item entry{&node, item->key, line_of(node, item->line)};
        const std::string& value = text(entry, "fair");
        const std::string wrong =
            objection(value, known_policies(), options_.policy.empty() ? options_.policies : known_policies());
        if (!wrong.empty()) throw_objection(entry, wrong);
        if (contains(experiment.policies, value))
          fail(entry, in_quotes(value) + " stands there twice", "write it once");
        experiment.policies.push_back(value);
      }
    }
    if (options_.policy.empty()) return;
    experiment.policies.clear();
    for (const std::string& value : options_.policy) {
      const std::string wrong = objection(value, known_policies(), options_.policies);
      if (!wrong.empty()) throw InputError(one_line("--policy: " + wrong));
      if (!contains(experiment.policies, value)) experiment.policies.push_back(value);
    }
  }

  void check_priorities(const toml::table& root, const Experiment& experiment) const {
    if (experiment.datapath == "sim" || !contains(experiment.policies, "priority")) return;
    const std::string cause = fmt::format("the switch of datapath {} has no priority queues", experiment.datapath);
    const std::string_view cure = "leave policy \"priority\" out, or use datapath sim";
    if (!options_.policy.empty()) throw InputError(fmt::format("--policy: {}; {}", cause, cure));
    fail(*find(root, "", "policies"), cause, cure);
  }

  static std::uint32_t line_of(const toml::node& node, std::uint32_t otherwise) {
    const std::uint32_t line = node.source().begin.line;
    return line > 0 ? line : otherwise;
  }

  // ---- Tables ----

  // Slope and intercept, one of the papers' functions, or a table of points.
  void read_mltcp(const Item& item, MltcpSettings& result) const {
    const toml::table& keys = table(item, "[mltcp] and below it slope = 1.75");
    check_keys(keys, item.key, {"slope", "intercept", "function", "points", "decrease", "iterations"});
    const auto function = find(keys, item.key, "function");
    const auto points = find(keys, item.key, "points");
    const auto slope = find(keys, item.key, "slope");
    const auto intercept = find(keys, item.key, "intercept");
    if (int{function.has_value()} + int{points.has_value()} + int{slope || intercept} > 1)
      fail(function ? *function : *points, "the aggressiveness function is given twice",
           "write either function, or points, or slope and intercept");
    const Item& last = function ? *function : points ? *points : intercept ? *intercept : slope ? *slope : item;
    const std::string name = function ? text(*function, "F1") : "";
    const std::vector<cc::Aggressiveness::Point> table_points =
        points ? read_points(*points) : std::vector<cc::Aggressiveness::Point>{};
    result.function = {slope ? bounded(*slope) : 1.75, intercept ? bounded(*intercept) : 0.25};
    try {
      if (function) result.function = cc::Aggressiveness::named(name);
      if (points) result.function = cc::Aggressiveness::table(table_points);
      result.function.validate();
    } catch (const InputError& error) {
      rethrow(last, error);
    }
    if (const auto decrease = find(keys, item.key, "decrease")) result.scale_decrease = truth(*decrease);
    if (const auto from = find(keys, item.key, "iterations")) result.learn_iterations = learned(*from);
  }
  bool learned(const Item& item) const {
    const std::string& value = text(item, "exact");
    if (value != "exact" && value != "learned")
      fail(item, fmt::format("{} is not known", in_quotes(value)), "write \"exact\" or \"learned\"");
    return value == "learned";
  }
  double bounded(const Item& item) const {
    const double value = decimal(item, "1.75");
    if (std::abs(value) > kMostWeight)
      fail(item, fmt::format("{} is out of range", value), fmt::format("write -{0} to {0}", kMostWeight));
    return value;
  }
  std::vector<cc::Aggressiveness::Point> read_points(const Item& item) const {
    constexpr std::string_view example = "points = [[0, 0.25], [1, 2.0]]";
    const toml::array* list = item.node->as_array();
    if (list == nullptr)
      fail(item, fmt::format("an array of points is expected and this is {}", type_name(*item.node)),
           fmt::format("write {}", example));
    std::vector<cc::Aggressiveness::Point> points;
    for (const toml::node& node : *list) {
      const Item point{&node, item.key, line_of(node, item.line)};
      const toml::array* pair = node.as_array();
      if (pair == nullptr || pair->size() != 2) fail(point, "a point is not a pair", fmt::format("write {}", example));
      points.push_back({bounded({&(*pair)[0], item.key, point.line}), bounded({&(*pair)[1], item.key, point.line})});
    }
    return points;
  }

  // The parameters of the algorithms. All that stand in the file are checked, whichever algorithm runs.
  void read_parameters(const toml::table& root, cc::Parameters& result) const {
    read_algorithm(root, "cubic", result,
                   {number("c", result.cubic.c), number("beta", result.cubic.beta),
                    flag("fast_convergence", result.cubic.fast_convergence), flag("hystart", result.cubic.hystart)});
    read_algorithm(root, "dctcp", result,
                   {number("g", result.dctcp.g), number("initial_alpha", result.dctcp.initial_alpha)});
    cc::DcqcnParameters& dcqcn = result.dcqcn;
    read_algorithm(
        root, "dcqcn", result,
        {number("g", dcqcn.g),
         time("notification_interval", dcqcn.notification_interval),
         time("alpha_interval", dcqcn.alpha_interval),
         time("increase_interval", dcqcn.increase_interval),
         {"increase_bytes", [&](const Item& i) { dcqcn.increase_bytes = bytes(i, "10 MB", kMostPhaseBytes); }},
         {"fast_recovery_steps",
          [&](const Item& i) { dcqcn.fast_recovery_steps = static_cast<std::uint32_t>(whole(i, 1, 1000)); }},
         speed("additive_increase", dcqcn.additive_increase),
         speed("hyper_increase", dcqcn.hyper_increase),
         speed("min_rate", dcqcn.min_rate)});
    cc::SwiftParameters& swift = result.swift;
    read_algorithm(root, "swift", result,
                   {time("base_target", swift.base_target), time("per_hop", swift.per_hop),
                    time("flow_scaling", swift.flow_scaling), number("flow_min_window", swift.flow_min_window),
                    number("flow_max_window", swift.flow_max_window), time("endpoint_target", swift.endpoint_target),
                    number("additive_increase", swift.additive_increase), number("beta", swift.beta),
                    number("max_decrease", swift.max_decrease), number("min_window", swift.min_window),
                    number("max_window", swift.max_window)});
  }

  struct Setting {
    std::string_view key;
    std::function<void(const Item&)> read;
  };
  Setting number(std::string_view key, double& value) const {
    return {key, [this, &value](const Item& item) { value = decimal(item, "0.5"); }};
  }
  Setting flag(std::string_view key, bool& value) const {
    return {key, [this, &value](const Item& item) { value = truth(item); }};
  }
  Setting time(std::string_view key, Nanos& value) const {
    return {key, [this, &value](const Item& item) { value = duration(item, "50 us", kMostDelay); }};
  }
  Setting speed(std::string_view key, Rate& value) const {
    return {key, [this, &value](const Item& item) { value = rate(item); }};
  }

  void read_algorithm(const toml::table& root, std::string_view name, const cc::Parameters& parameters,
                      const std::vector<Setting>& settings) const {
    const auto item = find(root, "", name);
    if (!item) return;
    const toml::table& keys = table(*item, fmt::format("[{}] and below it its parameters", name));
    std::vector<std::string> known;
    for (const Setting& setting : settings) known.emplace_back(setting.key);
    check_keys(keys, name, known);
    // Some bound others, so all are read before they are checked. What is out of range is named first, and may be a
    // default, with what bounds it named later.
    std::vector<Item> given;
    for (const Setting& setting : settings) {
      const auto key = find(keys, name, setting.key);
      if (!key) continue;
      setting.read(*key);
      given.push_back(*key);
    }
    try {
      parameters.validate(name);
    } catch (const InputError& error) {
      const std::string words = std::string(error.what()) + ",";
      const auto called = [&](std::string_view mark) {
        return std::find_if(given.begin(), given.end(), [&](const Item& key) {
          return words.find(fmt::format(" {}{}", std::string_view(key.key).substr(name.size() + 1), mark)) !=
                 std::string::npos;
        });
      };
      const auto first = called(" of ");
      const auto later = called(",");
      rethrow(first != given.end() ? *first : later != given.end() ? *later : *item, error);
    }
  }

  [[noreturn]] void rethrow(const Item& item, const InputError& error) const {
    throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, error.what())));
  }

  void read_bottleneck(const Item& item, Experiment& experiment) const {
    const toml::table& keys = table(item, "[bottleneck] and below it rate = \"1 Gbps\"");
    check_keys(keys, item.key, {"rate", "delay", "buffer", "mtu", "ecn", "faults"});
    fabric::LinkConfig& link = experiment.bottleneck;
    link.delay = 10_us;
    if (const auto value = find(keys, item.key, "mtu"))
      experiment.mtu = static_cast<std::uint32_t>(whole(*value, 576, 9000));
    const auto given_rate = find(keys, item.key, "rate");
    if (!given_rate)
      fail(line_of(*item.node, item.line), path(item.key, "rate"), "the key is missing", "write rate = \"1 Gbps\"");
    link.rate = rate(*given_rate);
    if (const auto delay = find(keys, item.key, "delay")) link.delay = duration(*delay, "10 us", kMostDelay);
    if (const auto value = find(keys, item.key, "buffer"))
      link.buffer_bytes = buffer(*value, "250 kB", experiment.mtu + encap::kEthernetBytes);
    if (const auto ecn = find(keys, item.key, "ecn")) read_ecn(*ecn, link.ecn, link.buffer_bytes);
    if (const auto faults = find(keys, item.key, "faults")) read_faults(*faults, link.faults);
  }

  void read_topology(const Item& item, Experiment& experiment) const {
    const toml::table& keys = table(item, "[topology] and below it kind = \"leaf-spine\"");
    check_keys(keys, item.key,
               {"kind", "leaves", "spines", "hosts_per_leaf", "host_rate", "uplink_rate", "delay", "buffer",
                "shared_buffer", "alpha", "pfc", "ecn", "mtu"});
    if (experiment.datapath != "sim")
      fail(item, fmt::format("datapath {} has one switch and no topology", experiment.datapath), "use datapath sim");
    const auto required = [&](std::string_view key, std::string_view example) {
      const auto found = find(keys, item.key, key);
      if (!found)
        fail(line_of(*item.node, item.line), path(item.key, key), "the key is missing",
             fmt::format("write {} = {}", key, example));
      return *found;
    };
    const Item kind = required("kind", "\"leaf-spine\"");
    if (text(kind, "leaf-spine") != "leaf-spine")
      fail(kind, in_quotes(text(kind, "")) + " is not known", "write \"leaf-spine\"");
    sim::LeafSpineConfig& topology = experiment.topology.emplace();
    topology.seed = experiment.seed;
    for (const auto& [key, count] : {std::pair{"leaves", &topology.leaves}, std::pair{"spines", &topology.spines},
                                     std::pair{"hosts_per_leaf", &topology.hosts_per_leaf}})
      *count = static_cast<std::uint32_t>(whole(required(key, "4"), 1, kMostSwitches));
    if (topology.hosts() < 2 || topology.hosts() > kMostHosts)
      fail(*find(keys, item.key, "hosts_per_leaf"), fmt::format("the network has {} hosts", topology.hosts()),
           fmt::format("write leaves and hosts_per_leaf for 2 to {}", kMostHosts));
    topology.host_rate = rate(required("host_rate", "\"100 Gbps\""));
    topology.uplink_rate = topology.host_rate;
    if (const auto value = find(keys, item.key, "uplink_rate")) topology.uplink_rate = rate(*value);
    if (const auto value = find(keys, item.key, "delay")) topology.delay = duration(*value, "1 us", kMostDelay);
    if (const auto value = find(keys, item.key, "mtu"))
      topology.mtu = static_cast<std::uint32_t>(whole(*value, 576, 9000));
    if (const auto value = find(keys, item.key, "buffer"))
      topology.buffer_bytes = buffer(*value, "1 MB", topology.mtu + encap::kEthernetBytes);
    read_memory(item, keys, topology);
    if (const auto value = find(keys, item.key, "ecn"))
      read_ecn(*value, topology.ecn, find(keys, item.key, "shared_buffer") ? 0 : topology.buffer_bytes);
    experiment.bottleneck.rate = topology.host_rate;
    experiment.bottleneck.delay = topology.delay;
    experiment.bottleneck.buffer_bytes = topology.memory.bytes == 0 ? topology.buffer_bytes : topology.memory.bytes;
    experiment.bottleneck.ecn = topology.ecn;
  }

  // What only the network as a whole can tell: with the queues of policy priority, if it is asked for.
  void check_topology(const Item& item, const Experiment& experiment) const {
    sim::LeafSpineConfig network = *experiment.topology;
    if (contains(experiment.policies, "priority")) network.classes = kPriorities;
    try {
      sim::check(network);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, error.what())));
    }
  }

  void read_memory(const Item& item, const toml::table& keys, sim::LeafSpineConfig& topology) const {
    const auto shared = find(keys, item.key, "shared_buffer");
    const auto alpha = find(keys, item.key, "alpha");
    const auto pfc = find(keys, item.key, "pfc");
    if (shared) {
      if (find(keys, item.key, "buffer")) fail(*shared, "each port has a buffer of its own too", "keep one of the two");
      topology.memory.bytes = buffer(*shared, "16 MB", topology.mtu + encap::kEthernetBytes);
    }
    for (const auto& [value, what] : {std::pair{&alpha, "alpha"}, std::pair{&pfc, "pfc"}})
      if (*value && !shared)
        fail(**value, fmt::format("{} is about the memory that ports share", what), "add shared_buffer = \"16 MB\"");
    if (alpha) topology.memory.alpha = factor(*alpha, kMostWeight);
    if (!pfc) return;
    if (alpha) fail(*alpha, "with pfc no queue is bounded, and alpha is a bound", "keep one of the two");
    const toml::table& limits = table(*pfc, "pfc = { xoff = \"100 kB\", xon = \"80 kB\" }");
    check_keys(limits, pfc->key, {"xoff", "xon", "headroom"});
    const auto xoff = find(limits, pfc->key, "xoff");
    if (!xoff) fail(pfc->line, path(pfc->key, "xoff"), "the key is missing", "write xoff = \"100 kB\"");
    topology.memory.pfc.enabled = true;
    topology.memory.pfc.xoff_bytes = bytes(*xoff, "100 kB", kMostBufferBytes);
    if (topology.memory.pfc.xoff_bytes == 0) fail(*xoff, "it is 0", "write a size above 0");
    topology.memory.pfc.xon_bytes = topology.memory.pfc.xoff_bytes / 2;
    if (const auto xon = find(limits, pfc->key, "xon")) {
      topology.memory.pfc.xon_bytes = bytes(*xon, "80 kB", kMostBufferBytes);
      if (topology.memory.pfc.xon_bytes >= topology.memory.pfc.xoff_bytes)
        fail(*xon, fmt::format("{} is not below xoff", bytes_to_text(topology.memory.pfc.xon_bytes)),
             "write less than " + bytes_to_text(topology.memory.pfc.xoff_bytes));
    }
    if (const auto headroom = find(limits, pfc->key, "headroom"))
      topology.pfc_headroom_bytes = buffer(*headroom, "40 kB", topology.mtu + encap::kEthernetBytes);
  }

  Bytes buffer(const Item& item, std::string_view example, Bytes frame) const {
    const Bytes result = bytes(item, example, kMostBufferBytes);
    if (result < frame)
      fail(item, fmt::format("{} is less than one packet in its Ethernet frame", bytes_to_text(result)),
           fmt::format("write at least {} B", frame));
    return result;
  }

  // `buffer`: of the queue; 0 = not known.
  void read_ecn(const Item& item, fabric::EcnConfig& ecn, Bytes buffer) const {
    const toml::table& keys = table(item, "ecn = { kmin = \"60 kB\", kmax = \"60 kB\", pmax = 1.0 }");
    check_keys(keys, item.key, {"kmin", "kmax", "pmax"});
    const auto kmin = find(keys, item.key, "kmin");
    if (!kmin) fail(item.line, path(item.key, "kmin"), "the key is missing", "write kmin = \"60 kB\"");
    ecn.enabled = true;
    ecn.kmin_bytes = bytes(*kmin, "60 kB", kMostBufferBytes);
    ecn.kmax_bytes = ecn.kmin_bytes;
    if (const auto kmax = find(keys, item.key, "kmax")) {
      ecn.kmax_bytes = bytes(*kmax, "60 kB", kMostBufferBytes);
      if (ecn.kmax_bytes < ecn.kmin_bytes)
        fail(*kmax, fmt::format("{} is less than kmin", bytes_to_text(ecn.kmax_bytes)),
             fmt::format("write at least {}", bytes_to_text(ecn.kmin_bytes)));
    }
    if (const auto pmax = find(keys, item.key, "pmax")) ecn.pmax = probability(*pmax);
    if (buffer > 0 && ecn.kmin_bytes >= buffer)
      fail(*kmin, fmt::format("no packet is marked, as the buffer holds {} at most", bytes_to_text(buffer)),
           "write a kmin below the buffer");
  }

  void read_faults(const Item& item, fabric::FaultConfig& faults) const {
    const toml::table& keys = table(item, "faults = { loss = 0.01 }");
    check_keys(keys, item.key, {"loss", "duplication", "corruption", "reordering", "reorder_delay"});
    if (const auto value = find(keys, item.key, "loss")) faults.loss = probability(*value);
    if (const auto value = find(keys, item.key, "duplication")) faults.duplication = probability(*value);
    if (const auto value = find(keys, item.key, "corruption")) faults.corruption = probability(*value);
    if (const auto value = find(keys, item.key, "reordering")) faults.reordering = probability(*value);
    if (const auto value = find(keys, item.key, "reorder_delay")) {
      faults.reorder_delay = duration(*value, "100 us", kMostDelay);
      if (faults.reorder_delay.count == 0) fail(*value, "it is 0", "write a duration above 0");
    }
  }

  // ---- Jobs ----

  void read_jobs(const Item& item, Experiment& experiment) {
    const toml::array* list = item.node->as_array();
    if (list == nullptr)
      fail(item, fmt::format("an array of tables is expected and this is {}", type_name(*item.node)),
           "write [[job]] above each job");
    if (list->empty()) fail(item, "there is no job", "add at least one [[job]]");
    check_number(item, *list, kMostJobs, false, "", fmt::format("write at most {}", kMostJobs));
    if (experiment.datapath == "ring" && options_.most_ring_jobs)
      check_number(item, *list, *options_.most_ring_jobs, true,
                   fmt::format(" and datapath ring has ports for {}", *options_.most_ring_jobs),
                   "take jobs out, or use datapath sim");
    std::map<std::string, std::uint32_t, std::less<>> names;
    std::size_t number = 0;
    std::size_t connections = 0;
    for (const toml::node& node : *list) {
      const Item item_of_job{&node, fmt::format("job[{}]", ++number), line_of(node, item.line)};
      workload::Job job = read_job(item_of_job, experiment.warnings);
      read_hosts(item_of_job, experiment.topology, job);
      const Item name = *find(*node.as_table(), item_of_job.key, "name");
      for (workload::Job& copy : copies_of(item_of_job, std::move(job))) {
        const auto [first, is_new] = names.try_emplace(copy.name, name.line);
        if (!is_new)
          fail(name,
               first->second < kFirstOverrideLine
                   ? fmt::format("{} is the name of the job of line {} too", in_quotes(copy.name), first->second)
                   : fmt::format("{} is the name of another job too", in_quotes(copy.name)),
               "give each job a name of its own");
        connections += std::max<std::size_t>(copy.hosts.size(), 1) * copy.flows;
        if (connections > kMostConnections)
          fail(item_of_job, fmt::format("the jobs up to this one have more than {} connections", kMostConnections),
               "lower count, hosts or flows");
        experiment.jobs.push_back(std::move(copy));
        numbers_.push_back(number);
      }
    }
  }

  // Copies counted, before any is made: refuses more than `most`, at the job with which they are more.
  void check_number(const Item& item, const toml::array& list, std::size_t most, bool at_job, std::string_view limit,
                    std::string_view cure) const {
    std::size_t total = 0;
    std::uint32_t line = 0;
    for (const toml::node& node : list) {
      const toml::table* keys = node.as_table();
      const auto* count = keys != nullptr ? keys->get_as<std::int64_t>("count") : nullptr;
      // What is no count is refused when the job is read.
      total +=
          count != nullptr ? static_cast<std::size_t>(std::clamp<std::int64_t>(count->get(), 1, kMostJobs + 1)) : 1;
      if (total > most && line == 0) line = at_job || count != nullptr ? line_of(node, item.line) : item.line;
    }
    if (total > most) fail(line, item.key, fmt::format("there are {} jobs{}", total, limit), cure);
  }

  // A job with a count stands for several that differ in name and start.
  std::vector<workload::Job> copies_of(const Item& item, workload::Job job) const {
    const toml::table& keys = *item.node->as_table();
    const auto count = find(keys, item.key, "count");
    const auto step = find(keys, item.key, "start_step");
    const std::size_t copies =
        count ? static_cast<std::size_t>(whole(*count, 1, static_cast<std::int64_t>(kMostJobs))) : 1;
    if (step && !count) fail(*step, "the job has no count", "add count = 2 or more, or leave start_step out");
    if (copies == 1) {
      if (step) static_cast<void>(duration(*step, "3 ms", kMostCompute));
      return {std::move(job)};
    }
    const Nanos apart = step ? duration(*step, "3 ms", kMostCompute) : Nanos();
    if (job.start + apart * static_cast<std::int64_t>(copies - 1) > kMostCompute)
      fail(*step, fmt::format("the last of {} jobs starts after more than {}", copies, to_text(kMostCompute)),
           "write a shorter step");
    std::vector<workload::Job> result(copies, job);
    for (std::size_t i = 0; i < copies; ++i) {
      result[i].name = fmt::format("{}-{}", job.name, i + 1);
      result[i].start += apart * static_cast<std::int64_t>(i);
    }
    const std::string wrong = objection_to_name(result.back().name);
    if (!wrong.empty()) throw_objection(*find(keys, item.key, "name"), wrong);
    return result;
  }

  workload::Job read_job(const Item& item, std::vector<std::string>& warnings) const {
    const toml::table& keys = table(item, "[[job]] above each job");
    check_keys(keys, item.key,
               {"name",       "count",        "compute", "communicate", "flows",         "start",
                "start_step", "start_jitter", "jitter",  "straggler",   "weight",        "priority",
                "hosts",      "rate",         "phases",  "trace",       "iterations",    "cc",
                "unaware",    "workers",      "network", "gather_size", "compute_scale", "bytes_scale"});
    workload::Job job;
    const auto name = find(keys, item.key, "name");
    if (!name) fail(item.line, path(item.key, "name"), "the key is missing", "write name = \"vgg19\"");
    job.name = name_text(*name);
    if (const auto value = find(keys, item.key, "flows"))
      job.flows = static_cast<std::uint32_t>(whole(*value, 1, kMostFlows));
    if (const auto value = find(keys, item.key, "start")) job.start = duration(*value, "0 ms", kMostCompute);
    if (const auto value = find(keys, item.key, "start_jitter"))
      job.start_jitter = duration(*value, "5 ms", kMostCompute);
    if (const auto value = find(keys, item.key, "jitter")) job.jitter = duration(*value, "1 ms", kMostCompute);
    if (const auto value = find(keys, item.key, "straggler")) read_straggler(*value, job.straggler);
    if (const auto value = find(keys, item.key, "weight")) job.weight = factor(*value, kMostWeight);
    if (const auto value = find(keys, item.key, "priority"))
      job.priority = static_cast<std::uint32_t>(whole(*value, 0, kPriorities - 1));
    if (const auto value = find(keys, item.key, "rate")) job.rate = rate(*value);
    if (const auto value = find(keys, item.key, "iterations"))
      job.iterations = static_cast<std::uint32_t>(whole(*value, 1, kMostIterations));
    if (const auto value = find(keys, item.key, "unaware")) job.unaware = truth(*value);
    if (const auto value = find(keys, item.key, "cc")) {
      job.cc = text(*value, "cubic");
      const std::string wrong = objection(job.cc, known_ccs(), options_.ccs);
      if (!wrong.empty()) throw_objection(*value, wrong);
      check_needs(job.cc, value, ecn_);
    }
    read_iteration(item, keys, job, warnings);
    return job;
  }

  void read_hosts(const Item& item, const std::optional<sim::LeafSpineConfig>& topology, workload::Job& job) const {
    const auto hosts = find(*item.node->as_table(), item.key, "hosts");
    if (!hosts) return;
    if (!topology) fail(*hosts, "a bottleneck has no hosts to choose from", "leave the key out, or use a [topology]");
    const toml::array* list = hosts->node->as_array();
    if (list == nullptr)
      fail(*hosts, fmt::format("an array of host numbers is expected and this is {}", type_name(*hosts->node)),
           "write hosts = [0, 4, 8]");
    if (list->size() < 2) fail(*hosts, "a ring has two workers or more", "write at least two hosts, or leave it out");
    std::vector<bool> taken(topology->hosts());
    for (const toml::node& node : *list) {
      const Item entry{&node, hosts->key, line_of(node, hosts->line)};
      const auto host = static_cast<std::uint32_t>(whole(entry, 0, topology->hosts() - 1));
      if (taken[host]) fail(entry, fmt::format("host {} stands there twice", host), "write each host once");
      taken[host] = true;
      job.hosts.push_back(host);
    }
  }

  void read_straggler(const Item& item, workload::Job::Straggler& straggler) const {
    constexpr std::string_view example = "straggler = { probability = 0.02, factor = 3.0 }";
    const toml::table& keys = table(item, example);
    check_keys(keys, item.key, {"probability", "factor"});
    for (const std::string_view key : {"probability", "factor"})
      if (!find(keys, item.key, key))
        fail(item.line, path(item.key, key), "the key is missing", fmt::format("write {}", example));
    straggler.probability = probability(*find(keys, item.key, "probability"));
    const Item value = *find(keys, item.key, "factor");
    straggler.factor = decimal(value, "3.0");
    if (straggler.factor < 1 || straggler.factor > kMostStraggling)
      fail(value, fmt::format("{} is out of range", straggler.factor), fmt::format("write 1 to {}", kMostStraggling));
  }

  // An iteration is described in one of three ways: compute and communicate, phases, or a trace.
  void read_iteration(const Item& item, const toml::table& keys, workload::Job& job,
                      std::vector<std::string>& warnings) const {
    const auto phases = find(keys, item.key, "phases");
    const auto trace = find(keys, item.key, "trace");
    if (phases && trace) fail(*trace, "the job has phases too", "keep one of the two");
    for (const std::string_view key : {"compute", "communicate"}) {
      const auto value = find(keys, item.key, key);
      if (value && (phases || trace))
        fail(*value, phases ? "the job has phases too" : "the job has a trace too", "keep one of the two");
    }
    if (!trace)
      for (const std::string_view key : {"workers", "network", "gather_size", "compute_scale", "bytes_scale"})
        if (const auto value = find(keys, item.key, key))
          fail(*value, "the key belongs to a trace and the job has none", "add trace = \"FILE\" or leave the key out");
    if (trace)
      read_trace(item, keys, *trace, job, warnings);
    else if (phases)
      read_phases(*phases, job);
    else
      read_simple(item, keys, job);
    check_iteration(trace ? *trace : phases ? *phases : item, trace.has_value(), job);
  }

  void check_iteration(const Item& item, bool traced, const workload::Job& job) const {
    const auto [compute, bytes] = sums_of(job);
    if (compute <= static_cast<std::uint64_t>(kMostCompute.count) && bytes <= kMostPhaseBytes) return;
    fail(item,
         fmt::format("an iteration computes for {:.6g} s and sends {:.6g} B", static_cast<double>(compute) * 1e-9,
                     static_cast<double>(bytes)),
         fmt::format("{} at most {} and {}", traced ? "scale it by compute_scale and bytes_scale to" : "write",
                     to_text(kMostCompute), bytes_to_text(kMostPhaseBytes)));
  }

  struct Sums {
    Uint128 nanos = 0;
    Uint128 bytes = 0;
  };
  // Job has such sums too, but in 64 bits.
  static Sums sums_of(const workload::Job& job) {
    Sums sums;
    for (const workload::Phase& phase : job.phases) {
      sums.nanos += static_cast<std::uint64_t>(phase.compute.count);
      sums.bytes += phase.bytes;
    }
    return sums;
  }

  static void warn_of_equal_priorities(Experiment& experiment) {
    const auto& jobs = experiment.jobs;
    const bool equal = std::all_of(jobs.begin(), jobs.end(),
                                   [&](const workload::Job& job) { return job.priority == jobs.front().priority; });
    if (equal && jobs.size() > 1 && contains(experiment.policies, "priority"))
      experiment.warnings.emplace_back("the jobs have one priority: under policy priority they share as under fair");
  }

  // No order of bursts helps jobs that need more than the link has.
  static void warn_if_overbooked(Experiment& experiment) {
    double needed = 0;
    if (experiment.topology) {
      // Of the links of hosts only: what crosses the spines depends on the paths that flows will take.
      std::vector<double> of_host(std::size_t{2} * experiment.topology->hosts());
      for (const Placement& placement : mltcp::experiment::place(experiment.jobs, experiment.topology->hosts())) {
        const double duty =
            workload::ideal_iteration(experiment.jobs[placement.job], experiment.bottleneck.rate).duty_cycle();
        for (const WorkerHosts& worker : placement.workers) {
          of_host[std::size_t{2} * worker.from] += duty;
          of_host[std::size_t{2} * worker.to + 1] += duty;
        }
      }
      const auto fullest = std::max_element(of_host.begin(), of_host.end());
      if (*fullest > 1)
        experiment.warnings.push_back(
            fmt::format("the jobs together need {:.0f}% of the link of host {}: whatever the policy, they slow each "
                        "other down",
                        *fullest * 100, (fullest - of_host.begin()) / 2));
      return;
    }
    for (const workload::Job& job : experiment.jobs)
      needed += workload::ideal_iteration(job, experiment.bottleneck.rate).duty_cycle();
    if (needed > 1)
      experiment.warnings.push_back(fmt::format(
          "the jobs together need {:.0f}% of the link: whatever the policy, they slow each other down", needed * 100));
  }

  // Refuses what would run beyond the times that a result file can hold, or that anybody would wait for.
  void check_length(const toml::table& root, const Experiment& experiment) const {
    for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
      const workload::Job& job = experiment.jobs[i];
      const double straggling = 1 + job.straggler.probability * (job.straggler.factor - 1);  // on average
      const std::uint32_t iterations = job.iterations > 0 ? job.iterations : experiment.iterations;
      double iteration = 0;
      for (const workload::Phase& phase : job.phases) {
        Rate rate = experiment.bottleneck.rate;
        for (const Rate other : {job.rate, phase.rate})
          if (!other.is_zero()) rate = std::min(rate, other);
        iteration += static_cast<double>(phase.compute.count) * straggling +
                     static_cast<double>(phase.bytes) * 8e9 / static_cast<double>(rate.bits_per_second);
      }
      const double all = static_cast<double>((job.start + job.start_jitter).count) + iteration * iterations;
      if (all <= static_cast<double>(kLongestRun.count)) continue;
      const std::string cause =
          fmt::format("{} iterations of job[{}] take {:.6g} days or more", iterations, numbers_[i], all / 86'400e9);
      const std::string cure = fmt::format("lower them, or what an iteration computes and sends, to {:.0f} days",
                                           static_cast<double>(kLongestRun.count) / 86'400e9);
      if (job.iterations > 0) {
        const toml::table& keys = *root.get_as<toml::array>("job")->get(numbers_[i] - 1)->as_table();
        fail(*find(keys, fmt::format("job[{}]", numbers_[i]), "iterations"), cause, cure);
      }
      if (options_.iterations) throw InputError(fmt::format("--iterations: {}; {}", cause, cure));
      const auto item = find(root, "", "iterations");
      fail(item ? item->line : 1, "iterations", cause, cure);
    }
  }

  void read_simple(const Item& item, const toml::table& keys, workload::Job& job) const {
    const auto compute = find(keys, item.key, "compute");
    const auto communicate = find(keys, item.key, "communicate");
    if (!communicate)
      fail(item.line, path(item.key, "communicate"), "the key is missing, so the job sends nothing",
           "write communicate = \"13.5 MB\", or phases, or a trace");
    if (compute) add_compute(duration(*compute, "150 ms", kMostCompute), job);
    job.phases.push_back(communication(*communicate));
  }

  static void add_compute(Nanos time, workload::Job& job) {
    if (time.count == 0) return;
    workload::Phase phase;
    phase.compute = time;
    job.phases.push_back(std::move(phase));
  }

  workload::Phase communication(const Item& item) const {
    workload::Phase phase;
    phase.kind = workload::Phase::Kind::communicate;
    phase.bytes = bytes(item, "13.5 MB", kMostPhaseBytes);
    if (phase.bytes == 0) fail(item, "the phase sends nothing", "write a size above 0");
    return phase;
  }

  void read_phases(const Item& item, workload::Job& job) const {
    const toml::array* list = item.node->as_array();
    if (list == nullptr)
      fail(item, fmt::format("an array of tables is expected and this is {}", type_name(*item.node)),
           "write [ { compute = \"20 ms\" }, { communicate = \"5 MB\" } ]");
    if (list->size() > kMostPhases)
      fail(item, fmt::format("there are {} phases", list->size()), fmt::format("write at most {}", kMostPhases));
    std::size_t number = 0;
    for (const toml::node& node : *list) {
      const Item phase{&node, fmt::format("{}[{}]", item.key, ++number), line_of(node, item.line)};
      read_phase(phase, job);
    }
    if (sums_of(job).bytes == 0)
      fail(item, "no phase communicates, so the job sends nothing", "add { communicate = \"13.5 MB\" }");
  }

  void read_phase(const Item& item, workload::Job& job) const {
    const toml::table& keys = table(item, "{ compute = \"20 ms\" } or { communicate = \"5 MB\" }");
    check_keys(keys, item.key, {"compute", "communicate", "rate", "overlap"});
    const auto compute = find(keys, item.key, "compute");
    const auto communicate = find(keys, item.key, "communicate");
    if (!compute && !communicate)
      fail(item, "the phase neither computes nor communicates", "write compute or communicate");
    if (compute && communicate) fail(item, "the phase computes and communicates", "write a phase for each");
    const auto limit = find(keys, item.key, "rate");
    const auto overlap = find(keys, item.key, "overlap");
    if (compute) {
      if (limit) fail(*limit, "a phase that computes has no rate", "leave it out");
      if (overlap) fail(*overlap, "a phase that computes can't overlap", "set it on the communication before it");
      add_compute(duration(*compute, "20 ms", kMostCompute), job);
      return;
    }
    workload::Phase phase = communication(*communicate);
    if (limit) phase.rate = rate(*limit);
    if (overlap) phase.overlap = truth(*overlap);
    job.phases.push_back(std::move(phase));
  }

  void read_trace(const Item& item, const toml::table& keys, const Item& trace, workload::Job& job,
                  std::vector<std::string>& warnings) const {
    workload::MappingOptions mapping;
    if (const auto value = find(keys, item.key, "workers"))
      mapping.workers = static_cast<std::uint32_t>(whole(*value, 2, 1'000'000));
    if (const auto value = find(keys, item.key, "network")) {
      const auto network = workload::network_from(text(*value, "weight-gradient"));
      if (!network)
        fail(*value, fmt::format("{} is not known", in_quotes(text(*value, ""))),
             "write \"weight-gradient\", \"inter-server\" or \"all\"");
      mapping.network = *network;
    }
    if (const auto value = find(keys, item.key, "gather_size")) {
      const std::string& written = text(*value, "total");
      if (written != "total" && written != "shard")
        fail(*value, fmt::format("{} is not known", in_quotes(written)), "write \"total\" or \"shard\"");
      mapping.gather_size = written == "total" ? workload::GatherSize::total : workload::GatherSize::shard;
    }
    if (const auto value = find(keys, item.key, "compute_scale")) mapping.compute_scale = factor(*value, kMostScale);
    if (const auto value = find(keys, item.key, "bytes_scale")) mapping.bytes_scale = factor(*value, kMostScale);
    const std::string& written = text(trace, "traces/resnet50.txt");
    if (written.empty()) fail(trace, "the path is empty", "write the path of a trace, relative to this file");
    const std::filesystem::path path = std::filesystem::path(file_).parent_path() / written;
    for (const std::string_view key : {"network", "gather_size"})
      if (const auto value = find(keys, item.key, key); value && workload::is_kineto(path))
        fail(*value, "a trace of PyTorch's profiler tells what was sent", "leave the key out");
    try {
      if (workload::is_kineto(path)) {
        const workload::KinetoTrace loaded = workload::load_kineto(path);
        job.phases = workload::to_job(loaded, job.name, mapping).phases;
        warnings.insert(warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
        return;
      }
      const workload::Trace loaded = workload::load_trace(path);
      job.phases = workload::to_job(loaded, job.name, mapping).phases;
      warnings.insert(warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", place(trace.line), trace.key, error.what())));
    }
  }

  bool ecn_ = false;  // of the link that the jobs share
  std::string file_;
  const FileOptions& options_;
  std::vector<std::size_t> numbers_;  // of the experiment's jobs in the file, from 1
};

}  // namespace

const std::vector<std::string>& known_datapaths() {
  static const std::vector<std::string> names{"sim", "ring"};
  return names;
}
const std::vector<std::string>& known_ccs() {
  static const std::vector<std::string> names{"reno", "cubic", "dctcp", "dcqcn", "swift"};
  return names;
}
const std::vector<std::string>& known_policies() {
  static const std::vector<std::string> names{"fair", "static", "priority", "mltcp", "schedule", "mltcp+schedule"};
  return names;
}

std::string objection_to_name(std::string_view name) {
  if (name.empty()) return "the name is empty; write a name";
  if (name.size() > kMostNameBytes)
    return fmt::format("the name has {} bytes; write at most {}", name.size(), kMostNameBytes);
  if (one_line(name) != name) return "the name has control characters or is not UTF-8; write printable characters only";
  return {};
}

Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options) {
  const std::string file = path.string();
  return parse_experiment(read_text_file(path, file + ":1: file", kExperimentFile), file, options);
}

namespace {

void apply_overrides(toml::table& root, const std::vector<Override>& overrides) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const Override& override = overrides[i];
    try {
      const toml::table value = toml::parse("v = " + override.value);
      set_value(root, override.key, *value.get("v"), kFirstOverrideLine + static_cast<std::uint32_t>(i));
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", override.origin, override.key, error.what())));
    }
  }
}

// What the command line may replace counts as it is used; everything else as it is written, whatever keys there are.
std::string fingerprint_of(const Experiment& experiment, toml::table root) {
  for (const std::string_view key : {"name", "seed", "datapath", "iterations", "cc", "policies"}) root.erase(key);
  Fingerprint result;
  result.add(fmt::format("{} {} {} {}\n{}\n", experiment.datapath, experiment.iterations, experiment.cc,
                         joined(experiment.policies), to_toml(root)));
  // Those of traces stand in other files.
  for (const workload::Job& job : experiment.jobs)
    for (const workload::Phase& phase : job.phases)
      result.add(fmt::format("{} {} {} {} {}\n", phase.kind == workload::Phase::Kind::communicate, phase.compute.count,
                             phase.bytes, phase.rate.bits_per_second, phase.overlap));
  return result.text();
}

}  // namespace

Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options) {
  toml::table root = parse_toml(text, file, "docs/experiment-file.md");
  apply_overrides(root, options.overrides);
  Experiment experiment = Reader(file, options).read(root);
  experiment.fingerprint = fingerprint_of(experiment, std::move(root));
  return experiment;
}

}  // namespace mltcp::experiment
