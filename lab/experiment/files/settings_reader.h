// Reader of tables that experiment files and cluster files have in common: MLTCP, parameters of algorithms, topologies,
// and a job's iteration. Not installed.
#pragma once

#include <filesystem>

#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/files/toml_reader.h"
#include "mltcp/lab/workload/job_fields.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace mltcp::experiment {

// Limits of plausible values. A value beyond its limit is assumed to be a mistake.
inline constexpr Bytes kMaxBufferBytes = 1'000'000'000'000;     // 1 TB
inline constexpr Bytes kMaxPhaseBytes = 1'000'000'000'000'000;  // 1 PB
inline constexpr Nanos kMaxDelay(10'000'000'000);               // 10 s
inline constexpr double kMaxScale = 1e6;
using workload::kMaxCompute;
using workload::kMaxFlows;
using workload::kMaxIterations;
using workload::kMaxWeight;

inline constexpr std::string_view kTraceExample = "traces/resnet50.txt";

class SettingsReader : public TomlReader {
 public:
  SettingsReader(std::string file, const FileOptions& options)
      : TomlReader(std::move(file), &options.overrides), options_(options) {}

 protected:
  /// Returns "cause; cure" if `value` is not in a list of choices; empty if it is valid.
  static std::string objection(std::string_view value, const std::vector<std::string>& known,
                               const std::vector<std::string>& available);
  /// Refuses an algorithm that needs ECN marks if `ecn` is false. If `item` is empty, the error names option --cc,
  /// because no default algorithm needs marks.
  void check_needs(const std::string& name, const std::optional<Item>& item, bool ecn) const;
  /// Returns the words in `given`, which come from option `option`. If `given` is empty, returns the words of key
  /// `key`, or `by_default` if the key is missing. Refuses duplicates, and words for which `objection` returns "cause;
  /// cure".
  std::vector<std::string> words(const toml::table& root, std::string_view key, std::string_view example,
                                 std::string_view option, const std::vector<std::string>& given,
                                 const std::vector<std::string>& by_default,
                                 const std::function<std::string(const std::string&)>& objection) const;
  /// Reads MLTCP's function: slope and intercept, a function from the papers, or a table of points.
  void read_mltcp(const Item& item, MltcpSettings& result) const;
  bool learned(const Item& item) const;
  double bounded(const Item& item) const;
  std::vector<cc::Aggressiveness::Point> read_points(const Item& item) const;
  /// Returns the name of the algorithm in `item`. Loads the algorithm if it is in a shared object.
  std::string algorithm(const Item& item, std::string_view example) const;
  /// Returns the name of the algorithm in option --cc. Loads the algorithm if it is in a shared object.
  static std::string algorithm_of_option(std::string_view text);
  /// Loads all algorithms in shared objects that the file or --cc names, so that their parameters are known before
  /// tables are validated. `jobs` is the key of the list whose entries may set a congestion control.
  void load_algorithms(const toml::table& root, std::string_view jobs) const;
  /// Returns `keys` and the keys of all parameter tables.
  static std::vector<std::string> with_parameters(const std::vector<std::string>& keys);
  /// Reads all parameter tables in the file, including those of algorithms that no job uses.
  void read_parameters(const toml::table& root, cc::Parameters& result) const;
  void read_table(const Item& item, const cc::ParameterTable& algorithm, cc::Parameters& result) const;
  cc::ParameterValue read_value(const Item& item, const cc::Parameter& parameter) const;
  /// Reads a [topology], and multiplies its rates by `rate_scale`. Leaves the seed at its default.
  fabric::SwitchedNetworkConfig read_topology(const Item& item, double rate_scale = 1) const;
  static Rate scaled(Rate rate, double scale);
  // Each of the next functions reads one kind of topology.
  Topology read_single_switch(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_leaf_spine(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_fat_tree(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_links(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  Topology read_slurm(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const;
  /// Builds a topology from `graph`, which was read from file `name`, and scales its rates. Errors refer to `item`,
  /// which names the file.
  Topology built(const Item& item, const std::filesystem::path& name, Graph graph, double rate_scale) const;
  void read_link_faults(const Item& item, fabric::SwitchedNetworkConfig& network) const;
  void read_memory(const Item& item, const toml::table& keys, fabric::SwitchedNetworkConfig& topology) const;
  Bytes buffer(const Item& item, std::string_view example, Bytes frame) const;
  /// Reads ECN settings. `buffer` is the size of the queue in bytes; 0 if unknown.
  void read_ecn(const Item& item, fabric::EcnConfig& ecn, Bytes buffer) const;
  /// Reads faults. Fields whose keys are missing do not change.
  void read_faults(const Item& item, fabric::FaultConfig& faults) const;
  void read_schedule(const Item& item, ScheduleSettings& schedule) const;
  /// Returns a number, which must be from `min` to `max`.
  double between(const Item& item, double min, double max, std::string_view example) const;
  /// Reads those keys of a list of fields (file_key.h) that are present. Other members do not change.
  template <typename T>
  void read_keys(const Item& item, const toml::table& keys, T& value) const {
    for_each_field<T>([&](const auto& field) { read_field(item, keys, field, value); });
  }
  /// Reads the key of one member, if the key is present.
  template <typename T, typename M>
  void read_key(const Item& item, const toml::table& keys, M T::*member, T& value) const {
    for_each_field<T>([&](const auto& field) {
      if constexpr (std::is_same_v<decltype(field.member), M T::*>)
        if (field.member == member) read_field(item, keys, field, value);
    });
  }
  /// Returns the names of the keys in a list of fields.
  template <typename T>
  static std::vector<std::string> file_keys() {
    std::vector<std::string> names;
    for_each_field<T>([&](const auto& field) {
      if constexpr (workload::kIsFileKey<decltype(field)>) names.emplace_back(field.name);
    });
    return names;
  }
  template <typename Field, typename T>
  void read_field(const Item& item, const toml::table& keys, const Field& field, T& value) const {
    if constexpr (workload::kIsFileKey<Field>)
      if (const auto found = find(keys, item.key, field.name)) read_value(*found, field.about, value.*field.member);
  }
  void read_value(const Item& item, const workload::WholeKey& key, std::uint32_t& value) const {
    value = count(item, key.min, key.max);
  }
  void read_value(const Item& item, const workload::TimeKey& key, Nanos& value) const {
    value = duration(item, key.example, key.max);
  }
  void read_value(const Item& item, const workload::NumberKey& key, double& value) const {
    value = between(item, key.min, key.max, key.example);
  }
  void read_value(const Item& item, const workload::FactorKey& key, double& value) const {
    value = factor(item, key.max);
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
  /// Reads an iteration, which is defined in one of six ways: compute and communicate, phases, a trace, a measured
  /// profile, a replayed trace, or a communication pattern. For a pattern, call complete_pattern() afterwards: its
  /// number of ranks and the bytes of its phases are not set yet.
  void read_iteration(const Item& item, const toml::table& keys, workload::Job& job,
                      std::vector<std::string>& warnings) const;
  /// Reads recorded traces whose ranks are replayed.
  void read_replay(const Item& replay, workload::Job& job, std::vector<std::string>& warnings) const;
  /// Reads a pattern: a collective, or a training job with parallel ranks.
  void read_pattern(const Item& item, const toml::table& keys, workload::Job& job) const;
  workload::Algorithm collective_algorithm(const Item& item) const;
  void read_collective(const Item& item, const toml::table& keys, const Item& kind, workload::Pattern& pattern) const;
  void read_training(const Item& item, const toml::table& keys, const Item& parallel, workload::Pattern& pattern) const;
  /// Completes the pattern after its ranks are known. Returns the number of pairs of ranks that exchange data.
  std::size_t complete_pattern(const Item& item, const toml::table& keys, workload::Job& job) const;
  Bytes size_above_zero(const Item& item, std::string_view example) const;
  void check_iteration(const Item& item, bool traced, const workload::Job& job) const;
  struct Sums {
    Uint128 nanos = 0;
    Uint128 bytes = 0;
  };
  /// Returns the total compute time and bytes of the phases. Unlike the sums of Job, these 128-bit sums cannot
  /// overflow.
  static Sums sums_of(const workload::Job& job);
  void read_simple(const Item& item, const toml::table& keys, workload::Job& job) const;
  static void add_compute(Nanos time, workload::Job& job);
  workload::Phase communication(const Item& item) const;
  void read_phases(const Item& item, workload::Job& job) const;
  void read_phase(const Item& item, workload::Job& job) const;
  void read_trace(const Item& item, const toml::table& keys, const Item& trace, workload::Job& job,
                  std::vector<std::string>& warnings) const;
  void read_profile(const Item& profile, workload::Job& job) const;
  /// Returns the path of a file that a key names. Relative paths start from the folder of the file being read.
  std::filesystem::path named_file(const Item& item, std::string_view example) const;
  /// The settings of the keys that accompany key `trace`, except the number of workers.
  struct TraceKeys {
    workload::TraceView view{.one_worker = true};
    std::vector<Item> of_loops;  ///< keys that are valid only if the trace describes a training loop
  };
  TraceKeys read_trace_keys(const Item& item, const toml::table& keys) const;
  /// Returns the typical iteration of the trace at `path`. Errors refer to `item`.
  std::vector<workload::Phase> load_phases(const Item& item, const std::filesystem::path& path, const TraceKeys& keys,
                                           const std::string& job, std::vector<std::string>& warnings) const;

  const FileOptions& options_;
};

}  // namespace mltcp::experiment
