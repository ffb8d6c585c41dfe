// Reading of the tables that experiment and cluster files have in common: MLTCP, the algorithms' parameters,
// topologies, and what an iteration of a job is. Not installed.
#pragma once

#include <filesystem>

#include "mltcp/cc/registry.h"
#include "mltcp/experiment/files/internal/toml_reader.h"
#include "mltcp/workload/job_fields.h"
#include "mltcp/workload/schedule.h"

namespace mltcp::experiment {

// Bounds of values that are sound; beyond them a value is a slip of the pen.
inline constexpr Bytes kMostBufferBytes = 1'000'000'000'000;     // 1 TB
inline constexpr Bytes kMostPhaseBytes = 1'000'000'000'000'000;  // 1 PB
inline constexpr Nanos kMostDelay(10'000'000'000);               // 10 s
inline constexpr double kMostScale = 1e6;
using workload::kMostCompute;
using workload::kMostFlows;
using workload::kMostIterations;
using workload::kMostWeight;

inline constexpr std::string_view kTraceExample = "traces/resnet50.txt";

class SettingsReader : public TomlReader {
 public:
  SettingsReader(std::string file, const FileOptions& options)
      : TomlReader(std::move(file), &options.overrides), options_(options) {}

 protected:
  /// What is wrong with a value of a list of choices, and its cure; empty when it can be used.
  static std::string objection(std::string_view value, const std::vector<std::string>& known,
                               const std::vector<std::string>& available);
  /// An algorithm that reacts to marks must not run where there are none. Without an item, the option chose it: no
  /// default needs marks.
  void check_needs(const std::string& name, const std::optional<Item>& item, bool ecn) const;
  /// Slope and intercept, one of the papers' functions, or a table of points.
  void read_mltcp(const Item& item, MltcpSettings& result) const;
  bool learned(const Item& item) const;
  double bounded(const Item& item) const;
  std::vector<cc::Aggressiveness::Point> read_points(const Item& item) const;
  /// The name of the algorithm that `item` says, which may be of a shared object, and is loaded then.
  std::string algorithm(const Item& item, std::string_view example) const;
  /// The same for option --cc.
  static std::string algorithm_of_option(std::string_view text);
  /// Loads the algorithms of shared objects that the file and --cc name, so that tables of their parameters are known
  /// before they are looked at. `jobs`: the key of the list whose entries may have a congestion control of their own.
  void load_algorithms(const toml::table& root, std::string_view jobs) const;
  /// `keys` of the top level, and the tables of algorithms' parameters.
  static std::vector<std::string> with_algorithms(const std::vector<std::string>& keys);
  /// The parameters of the algorithms. All that stand in the file are checked, whichever algorithm runs.
  void read_parameters(const toml::table& root, cc::Parameters& result) const;
  void read_algorithm(const Item& item, const cc::AlgorithmTable& algorithm, cc::Parameters& result) const;
  cc::ParameterValue read_value(const Item& item, const cc::Parameter& parameter) const;
  /// A [topology], with rates times `rate_scale`; its seed is left at its default.
  sim::SwitchedNetworkConfig read_topology(const Item& item, double rate_scale = 1) const;
  /// The value of a key that `item`, a table, must have.
  Item required(const Item& item, const toml::table& keys, std::string_view key, std::string_view example) const;
  static Rate scaled(Rate rate, double scale);
  // What is each kind's own.
  Topology read_single_switch(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_leaf_spine(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_fat_tree(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_links(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  void read_memory(const Item& item, const toml::table& keys, sim::SwitchedNetworkConfig& topology) const;
  Bytes buffer(const Item& item, std::string_view example, Bytes frame) const;
  /// `buffer`: of the queue; 0 = not known.
  void read_ecn(const Item& item, fabric::EcnConfig& ecn, Bytes buffer) const;
  /// Keys that aren't there stay as they are.
  void read_faults(const Item& item, fabric::FaultConfig& faults) const;
  void read_schedule(const Item& item, ScheduleSettings& schedule) const;
  /// A number from `least` to `most`.
  double between(const Item& item, double least, double most, std::string_view example) const;
  /// Those of the keys that a list of fields has (file_key.h) which are there; the others stay as they are.
  template <typename T>
  void read_keys(const Item& item, const toml::table& keys, T& value) const {
    for_each_field<T>([&](const auto& field) { read_field(item, keys, field, value); });
  }
  /// One of them.
  template <typename T, typename M>
  void read_key(const Item& item, const toml::table& keys, M T::*member, T& value) const {
    for_each_field<T>([&](const auto& field) {
      if constexpr (std::is_same_v<decltype(field.member), M T::*>)
        if (field.member == member) read_field(item, keys, field, value);
    });
  }
  /// The names of such keys.
  template <typename T>
  static std::vector<std::string> file_keys() {
    std::vector<std::string> names;
    for_each_field<T>([&](const auto& field) {
      if constexpr (workload::is_file_key<decltype(field)>) names.emplace_back(field.name);
    });
    return names;
  }
  template <typename Field, typename T>
  void read_field(const Item& item, const toml::table& keys, const Field& field, T& value) const {
    if constexpr (workload::is_file_key<Field>)
      if (const auto found = find(keys, item.key, field.name)) read_value(*found, field.about, value.*field.member);
  }
  void read_value(const Item& item, const workload::WholeKey& key, std::uint32_t& value) const {
    value = static_cast<std::uint32_t>(whole(item, key.least, key.most));
  }
  void read_value(const Item& item, const workload::TimeKey& key, Nanos& value) const {
    value = duration(item, key.example, key.most);
  }
  void read_value(const Item& item, const workload::NumberKey& key, double& value) const {
    value = between(item, key.least, key.most, key.example);
  }
  void read_value(const Item& item, const workload::FactorKey& key, double& value) const {
    value = factor(item, key.most);
  }
  void read_value(const Item& item, const workload::ProbabilityKey& /*key*/, double& value) const {
    value = probability(item);
  }
  void read_value(const Item& item, const workload::RateKey& /*key*/, Rate& value) const { value = rate(item); }
  void read_value(const Item& item, const workload::TruthKey& /*key*/, bool& value) const { value = truth(item); }
  template <typename T>
  void read_value(const Item& item, const workload::TableKey& key, T& value) const {
    const toml::table& keys = table(item, key.example);
    const std::vector<std::string> names = file_keys<T>();
    check_keys(keys, item.key, names);
    for (const std::string& name : names)
      if (!find(keys, item.key, name))
        fail(item.line, path(item.key, name), "the key is missing", fmt::format("write {}", key.example));
    read_keys(item, keys, value);
  }
  /// An iteration is described in one of five ways: compute and communicate, phases, a trace, a measured profile, or a
  /// pattern of communication, whose number of ranks is left open and whose phases are without bytes then.
  void read_iteration(const Item& item, const toml::table& keys, workload::Job& job,
                      std::vector<std::string>& warnings) const;
  /// A collective, or what parallel ranks of a training job do.
  void read_pattern(const Item& item, const toml::table& keys, workload::Job& job) const;
  void read_collective(const Item& item, const toml::table& keys, const Item& kind, workload::Pattern& pattern) const;
  void read_training(const Item& item, const toml::table& keys, const Item& parallel, workload::Pattern& pattern) const;
  /// The same once its ranks are known. Returns how many pairs of them exchange data.
  std::size_t complete_pattern(const Item& item, const toml::table& keys, workload::Job& job) const;
  Bytes size_above_zero(const Item& item, std::string_view example) const;
  void check_iteration(const Item& item, bool traced, const workload::Job& job) const;
  struct Sums {
    Uint128 nanos = 0;
    Uint128 bytes = 0;
  };
  /// Job has such sums too, but in 64 bits.
  static Sums sums_of(const workload::Job& job);
  void read_simple(const Item& item, const toml::table& keys, workload::Job& job) const;
  static void add_compute(Nanos time, workload::Job& job);
  workload::Phase communication(const Item& item) const;
  void read_phases(const Item& item, workload::Job& job) const;
  void read_phase(const Item& item, workload::Job& job) const;
  void read_trace(const Item& item, const toml::table& keys, const Item& trace, workload::Job& job,
                  std::vector<std::string>& warnings) const;
  void read_profile(const Item& profile, workload::Job& job) const;
  /// The file that a key names, relative to this one.
  std::filesystem::path named_file(const Item& item, std::string_view example) const;
  /// What the keys of a job say about its trace, but for the workers.
  workload::MappingOptions read_mapping(const Item& item, const toml::table& keys, const Item& trace) const;
  /// An iteration of the trace at `path`; what is wrong with it is the fault of `item`.
  std::vector<workload::Phase> load_phases(const Item& item, const std::filesystem::path& path,
                                           const workload::MappingOptions& mapping, const std::string& job,
                                           std::vector<std::string>& warnings) const;

  const FileOptions& options_;
};

}  // namespace mltcp::experiment
