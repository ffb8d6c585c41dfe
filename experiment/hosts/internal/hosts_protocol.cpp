// Messages between coordinator and hosts (see hosts_protocol.h).
#include "mltcp/experiment/hosts/internal/hosts_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/experiment/backends/packet_run.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/files/policy.h"
#include "mltcp/experiment/results/internal/json_values.h"
#include "mltcp/workload/phase_program.h"

namespace mltcp::experiment::protocol {
namespace {

// One list of a structure's fields serves both directions.

class Writer;
class Reader;

template <typename T>
Json value_of(const T& value);
/// `key` is for messages: what the value is called.
template <typename T>
void take(const Json& json, T& value, const char* key);

class Writer {
 public:
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value_of(value);
  }
  Json json = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* key, T& value) {
    take(json_.at(key), value, key);
  }

 private:
  const Json& json_;
};

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, workload::Phase>
void fields(Archive& archive, T& phase) {
  archive("kind", phase.kind);
  archive("compute", phase.compute);
  archive("bytes", phase.bytes);
  archive("rate", phase.rate);
  archive("overlap", phase.overlap);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, workload::Pattern>
void fields(Archive& archive, T& pattern) {
  archive("kind", pattern.kind);
  archive("ranks", pattern.ranks);
  archive("algorithm", pattern.algorithm);
  archive("size", pattern.size);
  archive("chunk", pattern.chunk);
  archive("compute", pattern.compute);
  archive("servers", pattern.servers);
  archive("tensor", pattern.training.tensor);
  archive("pipeline", pattern.training.pipeline);
  archive("micro_batches", pattern.training.micro_batches);
  archive("layers", pattern.training.layers);
  archive("buckets", pattern.training.buckets);
  archive("overlap", pattern.training.overlap);
  archive("activations", pattern.training.activations);
  archive("experts", pattern.training.experts);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, workload::Job>
void fields(Archive& archive, T& job) {
  archive("name", job.name);
  archive("phases", job.phases);
  archive("flows", job.flows);
  archive("start", job.start);
  archive("jitter", job.jitter);
  archive("straggler_probability", job.straggler.probability);
  archive("straggler_factor", job.straggler.factor);
  archive("pause_iteration", job.pause.iteration);
  archive("pause_time", job.pause.time);
  archive("change_iteration", job.change.iteration);
  archive("change_compute_scale", job.change.compute_scale);
  archive("weight", job.weight);
  archive("rate", job.rate);
  archive("unaware", job.unaware);
  archive("hosts", job.hosts);
  archive("pattern", job.pattern);
}

// What job_specs() sets, and no default of the transport.
template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, ConnectionConfig>
void fields(Archive& archive, T& connection) {
  archive("cc", connection.congestion_control);
  archive("ecn", connection.ecn);
  archive("full_integrity", connection.full_integrity);
  archive("max_rate", connection.max_rate);
  archive("initial_rtt", connection.initial_rtt);
  archive("priority", connection.priority);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, JobSetup>
void fields(Archive& archive, T& setup) {
  archive("job", setup.spec.job);
  archive("number", setup.spec.number);
  archive("iterations", setup.spec.iterations);
  archive("seed", setup.spec.seed);
  archive("salt", setup.spec.salt);
  archive("connection", setup.spec.connection);
  archive("catch_up", setup.spec.catch_up);
  archive("learn_iterations", setup.spec.learn_iterations);
  archive("addresses", setup.addresses);
  archive("ports", setup.ports);
  archive("hosts", setup.hosts);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, RankResult>
void fields(Archive& archive, T& result) {
  archive("starts", result.starts);
  archive("times", result.times);
  archive("computes", result.computes);
  archive("communications", result.communications);
  archive("bytes_per_iteration", result.bytes_per_iteration);
  archive("retransmitted_packets", result.retransmitted_packets);
  archive("verified_messages", result.verified_messages);
  archive("checksum_errors", result.checksum_errors);
  archive("first_error", result.first_error);
  archive("gate_state", result.gate.state);
  archive("gate_waited", result.gate.waited);
  archive("gate_corrections", result.gate.corrections);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, HostLosses>
void fields(Archive& archive, T& losses) {
  archive("missed_packets", losses.missed_packets);
  archive("port_errors", losses.port_errors);
  archive("handover_full_packets", losses.handover_full_packets);
  archive("rejected_packets", losses.rejected_packets);
  archive("unsent_packets", losses.unsent_packets);
}

template <typename Archive, typename T>
requires std::is_same_v<std::remove_const_t<T>, PhasePlan>
void fields(Archive& archive, T& plan) {
  archive("slot", plan.slot);
  archive("period", plan.period);
  archive("tolerance", plan.tolerance);
  archive("correction", plan.correction);
  archive("gradual_step", plan.gradual_step);
  archive("valid_until", plan.valid_until);
  archive("clock_bound", plan.clock_bound);
}

template <typename T>
concept HasFields = requires(Reader& reader, T& value) {
  fields(reader, value);
};
template <typename T>
inline constexpr bool is_list = false;
template <typename T>
inline constexpr bool is_list<std::vector<T>> = true;
template <typename T>
inline constexpr bool is_maybe = false;
template <typename T>
inline constexpr bool is_maybe<std::optional<T>> = true;

/// The highest value of an enumeration.
template <typename T>
constexpr T last_of() {
  if constexpr (std::is_same_v<T, workload::Phase::Kind>) return workload::Phase::Kind::communicate;
  if constexpr (std::is_same_v<T, workload::Pattern::Kind>) return workload::Pattern::Kind::training;
  if constexpr (std::is_same_v<T, workload::Algorithm>) return workload::Algorithm::halving_doubling;
  if constexpr (std::is_same_v<T, PlanState>) return PlanState::unknown_job;
  if constexpr (std::is_same_v<T, PhasePlan::Correction>) return PhasePlan::Correction::gradual;
}

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
  } else if constexpr (is_list<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(value_of(element));
    return list;
  } else if constexpr (is_maybe<T>) {
    return value ? value_of(*value) : Json();
  } else if constexpr (HasFields<T>) {
    Writer writer;
    fields(writer, value);
    return std::move(writer.json);
  } else {
    return value;
  }
}

template <typename T>
void take(const Json& json, T& value, const char* key) {
  if constexpr (std::is_same_v<T, Nanos>) {
    // Sums and differences of such times don't overflow.
    value = Nanos(whole_value<std::int64_t>(json, key, -kMostTime.count));
    if (value > kMostTime && !value.is_never()) throw InputError(fmt::format("\"{}\" is a time beyond 2^60 ns", key));
  } else if constexpr (std::is_same_v<T, Rate>) {
    take(json, value.bits_per_second, key);
  } else if constexpr (std::is_same_v<T, Address>) {
    value = address_from(json.get<std::string>());
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(whole_value<std::uint32_t>(json, key, 0, static_cast<std::uint32_t>(last_of<T>())));
  } else if constexpr (is_list<T>) {
    if (!json.is_array()) throw InputError(fmt::format("\"{}\" is no list", key));
    value.clear();
    value.reserve(json.size());
    for (const Json& element : json) take(element, value.emplace_back(), key);
  } else if constexpr (is_maybe<T>) {
    if (json.is_null())
      value.reset();
    else
      take(json, value.emplace(), key);
  } else if constexpr (HasFields<T>) {
    Reader reader(json);
    fields(reader, value);
  } else if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || std::is_same_v<T, std::string>) {
    json.get_to(value);
  } else {
    value = whole_value<T>(json, key);
  }
}

// ---- Parameters of congestion control, by name: of the algorithms that jobs use, all ----

// A host's program may lack what the coordinator's has loaded.
void check_algorithm(const std::string& name) {
  const auto all = cc::algorithms();
  if (std::none_of(all.begin(), all.end(), [&](const cc::AlgorithmTable* table) { return table->name == name; }))
    throw RunError(one_line(fmt::format(
        "congestion control \"{0}\" is not known on this host; start mltcp gen with --load FILE.so:{0} here", name)));
}

std::vector<const cc::AlgorithmTable*> algorithms_of(const std::vector<JobSetup>& jobs) {
  std::vector<const cc::AlgorithmTable*> used;
  for (const JobSetup& job : jobs) {
    const cc::AlgorithmTable* table = &cc::find_algorithm(job.spec.connection.congestion_control);
    if (std::find(used.begin(), used.end(), table) == used.end()) used.push_back(table);
  }
  return used;
}

Json to_json(const cc::Parameters& parameters, const std::vector<const cc::AlgorithmTable*>& algorithms) {
  Json json = Json::object();
  for (const cc::AlgorithmTable* algorithm : algorithms) {
    Json& values = json[std::string(algorithm->name)] = Json::object();
    for (const cc::Parameter& parameter : algorithm->parameters)
      values[std::string(parameter.name)] =
          std::visit([](const auto& value) { return value_of(value); }, parameters.get(*algorithm, parameter));
  }
  return json;
}

cc::Parameters parameters_from(const Json& json, const std::vector<const cc::AlgorithmTable*>& algorithms) {
  cc::Parameters parameters;
  for (const cc::AlgorithmTable* algorithm : algorithms) {
    const Json& values = json.at(std::string(algorithm->name));
    // One that is not known here would silently not count.
    if (!values.is_object() || values.size() != algorithm->parameters.size())
      throw InputError(fmt::format("congestion control \"{}\" has other parameters there", algorithm->name));
    for (const cc::Parameter& parameter : algorithm->parameters) {
      const std::string name(parameter.name);
      cc::ParameterValue value = parameter.by_default;
      std::visit([&](auto& typed) { take(values.at(name), typed, name.c_str()); }, value);
      parameters.set(*algorithm, parameter, value);
    }
    if (const auto wrong = parameters.objection(*algorithm); !wrong.parameter.empty()) throw InputError(wrong.text);
  }
  return parameters;
}

/// Ranks that the job's programs speak of.
std::uint32_t ranks_in(const workload::Job& job) { return job.pattern ? job.pattern->ranks : workload::ranks_of(job); }
bool sends_nothing(const workload::Phase& phase) {
  return phase.kind == workload::Phase::Kind::communicate && phase.bytes == 0;
}

bool is_time(Nanos time) { return time <= kMostTime; }  // and no never()

}  // namespace

Json to_json(const RunSetup& setup) {
  Json json{{"type", "setup"},
            {"policy", setup.policy},
            {"function", setup.mltcp.function.text()},
            {"scale_decrease", setup.mltcp.scale_decrease},
            {"learn_iterations", setup.mltcp.learn_iterations},
            {"jobs", value_of(setup.jobs)}};
  // Those of all jobs are the same.
  if (!setup.jobs.empty())
    json["parameters"] = to_json(*setup.jobs.front().spec.connection.parameters, algorithms_of(setup.jobs));
  return json;
}

RunSetup setup_from(const Json& json) {
  RunSetup setup;
  Reader fields(json);
  fields("policy", setup.policy);
  Experiment experiment;
  experiment.mltcp.function = cc::Aggressiveness::from_text(json.at("function").get<std::string>());
  fields("scale_decrease", experiment.mltcp.scale_decrease);
  fields("learn_iterations", experiment.mltcp.learn_iterations);
  setup.mltcp = experiment.mltcp;
  fields("jobs", setup.jobs);
  for (const JobSetup& job : setup.jobs) check_algorithm(job.spec.connection.congestion_control);
  const auto shared = std::make_shared<const cc::Parameters>(
      setup.jobs.empty() ? cc::Parameters() : parameters_from(json.at("parameters"), algorithms_of(setup.jobs)));
  for (JobSetup& job : setup.jobs) {
    const std::size_t ranks = job.addresses.size();
    if (ranks < 2 || job.ports.size() != ranks || job.hosts.size() != ranks || job.spec.job.flows == 0 ||
        job.spec.iterations == 0 || job.spec.job.rate.is_zero() || ranks != ranks_in(job.spec.job) ||
        std::any_of(job.spec.job.phases.begin(), job.spec.job.phases.end(), sends_nothing))
      throw InputError("a job that can't be");
    job.spec.connection.parameters = shared;
    job.spec.real_payload = true;
    job.spec.augmentation = augmentation_of(policy_named(setup.policy), experiment, job.spec.job);
  }
  return setup;
}

Nanos time_from(const Json& json, const char* key) {
  return Nanos(whole_field(json, key, -kMostTime.count, kMostTime.count));
}

PlanState plan_state_from(const Json& json, const char* key) {
  PlanState state{};
  take(json.at(key), state, key);
  return state;
}

Json to_json(const RankResult& result) { return value_of(result); }

RankResult result_from(const Json& json, std::size_t most) {
  RankResult result;
  take(json, result, "result");
  const std::size_t count = result.times.size();
  const auto fits = [&](const std::vector<Nanos>& list) { return list.empty() || list.size() == count; };
  if (count > most || result.starts.size() != count || !fits(result.computes) || !fits(result.communications))
    throw InputError("lists of iterations that don't go together");
  for (std::size_t i = 0; i < count; ++i)
    if (result.times[i].count < 0 || !is_time(result.times[i]) || !is_time(result.starts[i]))
      throw InputError("a time that can't be");
  for (const Nanos compute : result.computes)
    if (compute.count < 0 || !is_time(compute)) throw InputError("a time that can't be");
  if (result.gate.waited.count < 0 || !is_time(result.gate.waited)) throw InputError("a time that can't be");
  for (std::size_t i = 0; i < result.communications.size(); ++i)
    if (result.communications[i].count < 0 || result.communications[i] > result.times[i])
      throw InputError("a time that can't be");
  return result;
}

Json to_json(const HostLosses& losses) { return value_of(losses); }
HostLosses losses_from(const Json& json) {
  HostLosses losses;
  take(json, losses, "losses");
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
    throw InputError("an address that is none");
  Address address;
  for (std::size_t i = 0; i < address.ip.size(); ++i)
    address.ip[i] = static_cast<std::uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  address.port = static_cast<std::uint16_t>(std::stoul(hex.substr(32), nullptr, 16));
  return address;
}

std::optional<Json> receive(MessageStream& stream) {
  const std::optional<std::string> text = stream.receive();
  if (!text) return std::nullopt;
  if (const std::string wrong = beyond_limits(*text, kLimits); !wrong.empty())
    throw StreamError(fmt::format("sends what is no message of mltcp gen: it {}", wrong));
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("type") || !json["type"].is_string())
    throw StreamError("sends what is no message of mltcp gen");
  return json;
}

}  // namespace mltcp::experiment::protocol
