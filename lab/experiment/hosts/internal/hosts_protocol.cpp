// Messages between the coordinator and the hosts (see hosts_protocol.h).
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/fields.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/cc/turns.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/job_spec_fields.h"
#include "mltcp/lab/experiment/engine/rank_driver_fields.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/results/results_fields.h"
#include "mltcp/lab/experiment/series/series_fields.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment::protocol {
namespace {

template <typename T>
Json value_of(const T& value);
/// Reads `value` from `json`. `key` is the name of the value in error messages.
template <typename T>
void take(const Json& json, T& value, const char* key);

template <typename T>
Json value_of(const T& value) {
  if constexpr (std::is_same_v<T, Nanos>) {
    return value.count;
  } else if constexpr (std::is_same_v<T, Rate>) {
    return value.bits_per_second;
  } else if constexpr (std::is_same_v<T, Address>) {
    return to_hex(value);
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<int>(value);
  } else if constexpr (kIsList<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(value_of(element));
    return list;
  } else if constexpr (kIsMaybe<T>) {
    return value ? value_of(*value) : Json();
  } else if constexpr (HasFields<T>) {
    Json json = Json::object();
    for_each_field<T>([&](const auto& field) { json[field.name] = value_of(value.*field.member); });
    return json;
  } else {
    return value;
  }
}

/// Returns whether `value` is in the range that experiment files allow for `key`. `unset` is the value of an omitted
/// key, and is always in range.
bool sound(const workload::WholeKey& key, std::uint32_t value, std::uint32_t unset) {
  return value == unset || (value >= key.min && value <= key.max);
}
bool sound(const workload::TimeKey& key, Nanos value, Nanos /*unset*/) {
  return value.count >= 0 && value <= key.max * 2;  // up to twice `key.max`, because a start time may include jitter
}
// The comparisons in the functions below are false for NaN.
bool sound(const workload::NumberKey& key, double value, double /*unset*/) {
  return value >= key.min && value <= key.max;
}
bool sound(const workload::FactorKey& key, double value, double /*unset*/) { return value > 0 && value <= key.max; }
bool sound(const workload::ProbabilityKey& /*key*/, double value, double /*unset*/) { return value >= 0 && value <= 1; }
template <typename Key, typename T>
bool sound(const Key& /*key*/, const T& /*value*/, const T& /*unset*/) {
  return true;
}

template <typename T>
void take(const Json& json, T& value, const char* key) {
  if constexpr (std::is_same_v<T, Nanos>) {
    // Limits the value so that sums and differences of times cannot overflow.
    value = Nanos(whole_value<std::int64_t>(json, key, -kMaxTime.count));
    if (value > kMaxTime && !value.is_never()) throw InputError(fmt::format("\"{}\" is a time beyond 2^60 ns", key));
  } else if constexpr (std::is_same_v<T, Rate>) {
    take(json, value.bits_per_second, key);
  } else if constexpr (std::is_same_v<T, Address>) {
    value = address_from(json.get<std::string>());
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(whole_value<std::uint32_t>(json, key, 0, static_cast<std::uint32_t>(last_of(T()))));
  } else if constexpr (kIsList<T>) {
    if (!json.is_array()) throw InputError(fmt::format("\"{}\" is not a list", key));
    value.clear();
    value.reserve(json.size());
    for (const Json& element : json) take(element, value.emplace_back(), key);
  } else if constexpr (kIsMaybe<T>) {
    if (json.is_null())
      value.reset();
    else
      take(json, value.emplace(), key);
  } else if constexpr (HasFields<T>) {
    for_each_field<T>([&](const auto& field) {
      take(json.at(field.name), value.*field.member, field.name);
      if (!sound(field.about, value.*field.member, T{}.*field.member))
        throw InputError(fmt::format("\"{}\" is {}, which is out of range for a job", field.name,
                                     in_quotes(json.at(field.name).dump())));
    });
  } else if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || std::is_same_v<T, std::string>) {
    json.get_to(value);
  } else {
    value = whole_value<T>(json, key);
  }
}

// ---- Parameters of the congestion control algorithms that jobs use, by name ----

// Throws RunError if this host does not have an algorithm that the coordinator has loaded.
void check_algorithm(const std::string& name) {
  const auto all = cc::algorithms();
  if (std::ranges::none_of(all, [&](const cc::AlgorithmTable* table) { return table->name == name; }))
    throw RunError(one_line(fmt::format(
        "congestion control \"{0}\" is not known on this host; start mltcp gen with --load FILE.so:{0} here", name)));
}

/// Returns the tables of all parameters that the jobs use: those of their algorithms, and of policy `turns`.
std::vector<const cc::ParameterTable*> tables_of(const std::vector<JobSetup>& jobs) {
  std::vector<const cc::ParameterTable*> used{&cc::find_parameters(cc::Turns::name)};
  for (const JobSetup& job : jobs) {
    const cc::ParameterTable* table = &cc::find_algorithm(job.spec.connection.congestion_control);
    if (std::ranges::find(used, table) == used.end()) used.push_back(table);
  }
  return used;
}

Json to_json(const cc::Parameters& parameters, const std::vector<const cc::ParameterTable*>& tables) {
  Json json = Json::object();
  for (const cc::ParameterTable* table : tables) {
    Json& values = json[std::string(table->name)] = Json::object();
    for (const cc::Parameter& parameter : table->parameters)
      values[std::string(parameter.name)] =
          std::visit([](const auto& value) { return value_of(value); }, parameters.get(*table, parameter));
  }
  return json;
}

cc::Parameters parameters_from(const Json& json, const std::vector<const cc::ParameterTable*>& tables) {
  cc::Parameters parameters;
  for (const cc::ParameterTable* table : tables) {
    const Json& values = json.at(std::string(table->name));
    // Without this check, a parameter that this host does not know would silently have no effect.
    if (!values.is_object() || values.size() != table->parameters.size())
      throw InputError(fmt::format("\"{}\" has other parameters than on this host", table->name));
    for (const cc::Parameter& parameter : table->parameters) {
      const std::string name(parameter.name);
      cc::ParameterValue value = parameter.by_default;
      std::visit([&](auto& typed) { take(values.at(name), typed, name.c_str()); }, value);
      parameters.set(*table, parameter, value);
    }
    if (const auto wrong = parameters.objection(*table); !wrong.parameter.empty()) throw InputError(wrong.text);
  }
  return parameters;
}

/// Returns the number of ranks in the job's programs.
std::uint32_t ranks_in(const workload::Job& job) { return job.pattern ? job.pattern->ranks : workload::ranks_of(job); }

bool is_time(Nanos time) { return time <= kMaxTime; }  // false for never()

/// Maximum of a counter. A double represents it exactly, and sums over all ranks cannot overflow.
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 53U;

template <HasFields T>
void check_counts(const T& counts) {
  for_each_field<T>([&](const auto& field) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(counts.*field.member)>, std::uint64_t>)
      if (counts.*field.member > kMaxCount)
        throw InputError(fmt::format("\"{}\" is {}, which is above the maximum", field.name, counts.*field.member));
  });
}

/// Returns a cell of a series. Throws InputError if the value is out of its column's range.
template <typename T>
T cell_from(const Json& json, const char* key) {
  if constexpr (std::is_same_v<T, Nanos>) {
    return Nanos(whole_value<std::int64_t>(json, key, 0, kMaxTime.count));
  } else if constexpr (std::is_same_v<T, Rate>) {
    // Maximum pacing rate of window-based algorithms (cc/pacing.h).
    constexpr std::uint64_t max = 1'000'000'000'000'000'000;
    return Rate(whole_value<std::uint64_t>(json, key, 0, max));
  } else if constexpr (std::is_same_v<T, std::int64_t>) {  // -1 if there is no value
    return whole_value<std::int64_t>(json, key, -1, static_cast<std::int64_t>(kMaxCount));
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto value = json.get<T>();
    if (!(value >= 0 && value <= static_cast<T>(kMaxCount)))  // NaN fails the comparisons
      throw InputError(fmt::format("\"{}\" of series is {}, which is not a number from 0 to 2^53", key, value));
    return value;
  } else {
    return whole_value<T>(json, key, 0, kMaxCount);
  }
}

}  // namespace

Json to_json(const RunSetup& setup) {
  Json json{{"type", "setup"},
            {"policy", setup.policy},
            {"function", setup.mltcp.function.text()},
            {"scale_decrease", setup.mltcp.scale_decrease},
            {"learn_iterations", setup.mltcp.learn_iterations},
            {"series", setup.series},
            {"jobs", value_of(setup.jobs)}};
  // All jobs have the same parameters, so the message contains the parameters only once.
  if (!setup.jobs.empty())
    json["parameters"] = to_json(*setup.jobs.front().spec.connection.parameters, tables_of(setup.jobs));
  return json;
}

RunSetup setup_from(const Json& json) {
  RunSetup setup;
  take(json.at("policy"), setup.policy, "policy");
  setup.mltcp.function = cc::Aggressiveness::from_text(json.at("function").get<std::string>());
  take(json.at("scale_decrease"), setup.mltcp.scale_decrease, "scale_decrease");
  take(json.at("learn_iterations"), setup.mltcp.learn_iterations, "learn_iterations");
  take(json.at("series"), setup.series, "series");
  take(json.at("jobs"), setup.jobs, "jobs");
  for (const JobSetup& job : setup.jobs) check_algorithm(job.spec.connection.congestion_control);
  const auto shared = std::make_shared<const cc::Parameters>(
      setup.jobs.empty() ? cc::Parameters() : parameters_from(json.at("parameters"), tables_of(setup.jobs)));
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;  // pairs of host and shard that have a rank
  for (JobSetup& job : setup.jobs) {
    const std::size_t ranks = job.addresses.size();
    if (ranks < 2 || ranks > workload::kMaxRanks || job.ports.size() != ranks || job.hosts.size() != ranks ||
        job.spec.job.flows == 0 || job.spec.iterations == 0 || job.spec.job.rate.is_zero() ||
        (!job.programmed && ranks != ranks_in(job.spec.job)) || (job.programmed && job.spec.job.pattern))
      throw InputError("an invalid job");
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!places.emplace(job.hosts[rank], job.ports[rank]).second) throw InputError("two ranks on one port of a host");
    Nanos computes;
    for (const workload::Phase& phase : job.spec.job.phases) {
      if (phase.compute.count < 0 || phase.compute > workload::kMaxCompute - computes)
        throw InputError("phases that compute for a negative time, or for more than a day");
      computes += phase.compute;
    }
    // Creates the program of rank 0 as a check. An error in the pattern or phases concerns the programs of all ranks.
    if (!job.programmed) static_cast<void>(workload::rank_program(job.spec.job, 0));
    job.spec.connection.parameters = shared;
    job.spec.real_payload = true;
    job.spec.augmentation = augmentation_of(policy_named(setup.policy), setup.mltcp, job.spec.job);
  }
  return setup;
}

Nanos time_from(const Json& json, const char* key) {
  return Nanos(whole_field(json, key, -kMaxTime.count, kMaxTime.count));
}

PlanState plan_state_from(const Json& json, const char* key) {
  PlanState state{};
  take(json.at(key), state, key);
  return state;
}

Json to_json(const RankResult& result) { return value_of(result); }

RankResult result_from(const Json& json, const RankLimits& limits) {
  RankResult result;
  take(json, result, "result");
  const std::size_t count = result.times.size();
  const auto fits = [&](const std::vector<Nanos>& list) { return list.empty() || list.size() == count; };
  if (count > limits.iterations || result.starts.size() != count || !fits(result.computes) ||
      !fits(result.communications))
    throw InputError("lists of iterations that do not match");
  Nanos before = limits.from;  // earliest start time of the next iteration
  for (std::size_t i = 0; i < count; ++i) {
    const Nanos start = result.starts[i];
    const Nanos time = result.times[i];
    if (time.count < 0 || !is_time(time) || start < before || !is_time(start) || start + time > limits.until)
      throw InputError(fmt::format("iteration {} has an impossible time or duration; check that host's clock", i));
    // An iteration cannot take 0 ns, because sending and acknowledgements take time.
    if (time.count == 0 && limits.bytes_per_iteration > 0)
      throw InputError(fmt::format("iteration {} of 0 ns, in which {} bytes were sent; check that host's clock", i,
                                   limits.bytes_per_iteration));
    before = start + time;
    for (const std::vector<Nanos>* part : {&result.computes, &result.communications})
      if (!part->empty() && ((*part)[i].count < 0 || (*part)[i] > time))
        throw InputError(fmt::format("a part of iteration {} that is longer than the iteration", i));
  }
  if (result.gate.waited.count < 0 || result.gate.waited > std::max(limits.until - limits.from, Nanos()))
    throw InputError("a waiting time that is longer than the run");
  if (result.bytes_per_iteration != limits.bytes_per_iteration)
    throw InputError(
        fmt::format("it sends {} bytes in an iteration of {}", result.bytes_per_iteration, limits.bytes_per_iteration));
  check_counts(result);
  check_counts(result.gate);
  return result;
}

Json to_json(const SeriesOrder& order) {
  return {{"epoch", order.epoch.count}, {"interval", order.interval.count}, {"rows", order.rows}};
}
SeriesOrder series_order_from(const Json& json) {
  return {time_from(json, "epoch"), Nanos(whole_field(json, "interval", std::int64_t{1}, kMaxTime.count)),
          whole_field<std::size_t>(json, "rows", 1, kMaxSeriesRows)};
}

Json rows_to_json(const RunSeries& series) {
  return {{"type", "rows"},
          {"rows", series.times.size()},
          {"interval", series.interval.count},
          {"sampled_every", series.sampled_every.count},
          {"last", series.times.empty() ? 0 : series.times.back().count},
          {"connections", series.connections.size()}};
}

void rows_from(const Json& json, const SeriesOrder& order, const SeriesLimits& limits, RunSeries& series) {
  const auto rows = whole_field<std::size_t>(json, "rows", 0, order.rows + 1);
  const auto connections = whole_field<std::size_t>(json, "connections", 0, limits.connections);
  if (rows == 0) {  // no rank on that host sends
    series = {};
    return;
  }
  const Nanos last = time_from(json, "last");
  if (last > limits.last)
    throw InputError(
        fmt::format("a last row of series at {} ns, but the run has lasted {}", last.count, to_text(limits.last)));
  series.sampled_every = time_from(json, "sampled_every");
  series.interval = time_from(json, "interval");
  // When a recorder is full, it drops every second row and doubles the interval. So intervals are the requested
  // interval times a power of two.
  const auto is_doubled = [](Nanos wide, Nanos narrow) {
    const std::int64_t times = wide.count / narrow.count;
    return wide.count % narrow.count == 0 && times > 0 && (times & (times - 1)) == 0;
  };
  if (!is_doubled(series.sampled_every, order.interval) || !is_doubled(series.interval, series.sampled_every) ||
      series.interval.count / series.sampled_every.count > SeriesRecorder::kMaxSamplesOfARow)
    throw InputError("rows of series at an interval that was not requested");
  if (series.interval > order.interval && rows < (order.rows + 1) / 2)
    throw InputError("too few rows of series for their interval");
  const auto before_last = static_cast<std::int64_t>(std::max<std::size_t>(rows, 2) - 2);
  if (before_last > kMaxTime.count / series.interval.count || last.count < 0 ||
      (rows > 1 && last <= series.interval * before_last))
    throw InputError("a last row of series before the others");
  series.times.clear();
  for (std::size_t row = 0; row < rows; ++row)
    series.times.push_back(row + 1 < rows ? series.interval * static_cast<std::int64_t>(row) : last);
  series.connections.assign(connections, {});
  series.connection_states.assign(rows * connections, {});
}

Json piece_to_json(const RunSeries& series, std::size_t connection, std::size_t first) {
  const SeriesConnection& key = series.connections[connection];
  const std::size_t rows = std::min(kSeriesPiece, series.times.size() - first);
  Json columns = Json::object();
  for_each_field<ConnectionState>([&](const auto& field) {
    Json& column = columns[field.name] = Json::array();
    for (std::size_t row = first; row < first + rows; ++row)
      column.push_back(value_of(series.connection(row, connection).*field.member));
  });
  return {{"type", "series"},
          {"worker", key.worker},
          {"peer", key.peer},
          {"flow", key.flow},
          {"columns", std::move(columns)}};
}

std::size_t piece_from(const Json& json, std::size_t connection, std::size_t first, RunSeries& series) {
  SeriesConnection& key = series.connections[connection];
  key.worker = whole_field<std::uint32_t>(json, "worker");
  key.peer = whole_field<std::uint32_t>(json, "peer");
  key.flow = whole_field<std::uint32_t>(json, "flow");
  const std::size_t rows = std::min(kSeriesPiece, series.times.size() - first);
  const Json& columns = json.at("columns");
  const auto state = [&](std::size_t row) -> ConnectionState& {
    return series.connection_states[row * series.connections.size() + connection];
  };
  for_each_field<ConnectionState>([&](const auto& field) {
    const Json& column = columns.at(field.name);
    if (!column.is_array() || column.size() != rows)
      throw InputError(fmt::format("\"{}\" of series without a value for each row", field.name));
    for (std::size_t row = first; row < first + rows; ++row) {
      auto& value = state(row).*field.member;
      using Value = std::remove_cvref_t<decltype(value)>;
      value = cell_from<Value>(column[row - first], field.name);
      if constexpr (std::is_same_v<Value, std::uint64_t>)
        if (field.about.counts && row > 0 && value < state(row - 1).*field.member)
          throw InputError(fmt::format("\"{}\" of series decreases, but it is a total", field.name));
    }
  });
  for (std::size_t row = first; row < first + rows; ++row)
    if (const double ratio = state(row).bytes_ratio; ratio > 1)
      throw InputError(fmt::format("\"bytes_ratio\" of series is {}, which is above 1", ratio));
  return rows;
}

std::size_t longest_of_host(std::size_t iterations, std::size_t ranks, bool series) {
  constexpr std::size_t rest = std::size_t{64} << 10U;
  // A piece has 14 columns. A value and its comma have at most 25 characters; the limit assumes 32.
  constexpr std::size_t piece = kSeriesPiece * 14 * 32;
  // Length of an iteration's values in the 4 lists of a result: 19 digits, a sign and a comma per value.
  constexpr std::size_t iteration = 4 * 21;
  // Maximum length of a rank's entry in a progress message, including the reason why the rank is not connected.
  constexpr std::size_t rank = 1024;
  return std::min(kLongest, rest + iteration * iterations + rank * ranks + (series ? piece : 0));
}

std::string words_from(const Json& json, const char* key) {
  constexpr std::size_t max = 2000;
  const std::string& text = json.at(key).get_ref<const std::string&>();
  return text.size() <= max ? one_line(text) : one_line(text.substr(0, max)) + "...";
}

Json to_json(const HostLosses& losses) { return value_of(losses); }
HostLosses losses_from(const Json& json) {
  HostLosses losses;
  take(json, losses, "losses");
  check_counts(losses);
  return losses;
}

Json to_json(const PhasePlan& plan) { return value_of(plan); }
PhasePlan plan_from(const Json& json) {
  PhasePlan plan;
  take(json, plan, "plan");
  return plan;
}

std::string to_hex(const Address& address) {
  std::string text;
  for (const std::uint8_t byte : address.ip) text += fmt::format("{:02x}", byte);
  return text + fmt::format("{:04x}", address.port);
}

Address address_from(const std::string& hex) {
  constexpr std::size_t digits = 36;
  if (hex.size() != digits || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw InputError("an invalid address");
  Address address;
  for (std::size_t i = 0; i < address.ip.size(); ++i)
    address.ip[i] = static_cast<std::uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  address.port = static_cast<std::uint16_t>(std::stoul(hex.substr(32), nullptr, 16));
  return address;
}

std::optional<Json> receive(MessageStream& stream) {
  const std::optional<std::string> text = stream.receive();
  return text ? std::optional(message_from(*text)) : std::nullopt;
}

Json message_from(const std::string& text) {
  if (const std::string wrong = beyond_limits(text, kLimits); !wrong.empty())
    throw StreamError(fmt::format("sends a message that is not from mltcp gen: it {}", wrong));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("type") || !json["type"].is_string())
    throw StreamError("sends a message that is not from mltcp gen");
  return json;
}

}  // namespace mltcp::experiment::protocol
