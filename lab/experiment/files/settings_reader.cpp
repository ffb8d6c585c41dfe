// Reads the tables common to experiment and cluster files (see settings_reader.h).
#include "mltcp/lab/experiment/files/settings_reader.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "mltcp/cc/controller.h"
#include "mltcp/lab/experiment/files/links_file.h"
#include "mltcp/lab/experiment/files/slurm_topology.h"
#include "mltcp/lab/experiment/files/trace_files.h"
#include "mltcp/lab/workload/graph_program.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/lab/workload/replay_choice.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kMaxPhases = 100'000;
// Ethernet, IP and UDP headers, and the headers of a packet with data.
constexpr Bytes kMinTrimBytes = 42 + wire::kHeaderBytes + wire::kDataFrameBytes;
constexpr double kMinOversubscription = 0.01;

const std::vector<std::string>& keys_of_collectives() {
  static const std::vector<std::string> keys{"size", "servers"};
  return keys;
}
const std::vector<std::string>& keys_of_training() {
  static const std::vector<std::string> keys{"gradients", "activations", "experts", "micro_batches",
                                             "layers",    "buckets",     "overlap"};
  return keys;
}

}  // namespace

std::string SettingsReader::objection(std::string_view value, const std::vector<std::string>& known,
                                      const std::vector<std::string>& available) {
  if (!contains(known, value)) {
    const auto meant = nearest(value, known);
    return fmt::format("{} is not known; {}", in_quotes(value),
                       meant ? fmt::format("did you mean \"{}\"?", *meant) : "write one of " + joined(known));
  }
  if (available.empty() || contains(available, value)) return {};
  return fmt::format("{} is not available; this version has: {}", in_quotes(value), joined(available));
}

void SettingsReader::check_needs(const std::string& name, const std::optional<Item>& item, bool ecn) const {
  if (ecn || !cc::find_algorithm(name).capabilities.needs_ecn) return;
  const std::string cause = fmt::format("{} needs ECN, but the link marks no packets", name);
  const std::string_view cure = "add ecn = { kmin = \"60 kB\" } to the link, or choose another congestion control";
  if (!item) throw InputError(fmt::format("--cc: {}; {}", cause, cure));
  fail(*item, cause, cure);
}

std::vector<std::string> SettingsReader::words(const toml::table& root, std::string_view key, std::string_view example,
                                               std::string_view option, const std::vector<std::string>& given,
                                               const std::vector<std::string>& by_default,
                                               const std::function<std::string(const std::string&)>& objection) const {
  std::vector<std::string> result;
  const auto add = [&](const std::string& word, const auto& refuse) {
    if (const std::string wrong = objection(word); !wrong.empty()) refuse(wrong);
    if (contains(result, word)) refuse(fmt::format("{} appears twice; write it once", in_quotes(word)));
    result.push_back(word);
  };
  if (const auto item = find(root, "", key)) {
    const std::vector<Item> entries = elements(*item, "texts", example);
    if (entries.empty()) fail(*item, "the array is empty", fmt::format("write {}", example));
    for (const Item& entry : entries)
      add(text(entry, by_default.front()), [&](const std::string& wrong) { throw_objection(entry, wrong); });
  }
  if (given.empty()) return result.empty() ? by_default : result;
  result.clear();
  for (const std::string& word : given)
    add(word, [&](const std::string& wrong) { throw InputError(one_line(fmt::format("{}: {}", option, wrong))); });
  return result;
}

void SettingsReader::read_mltcp(const Item& item, MltcpSettings& result) const {
  const toml::table& keys = table(item, "[mltcp] and below it slope = 1.75");
  check_keys(keys, item.key, {"slope", "intercept", "function", "points", "decrease", "iterations"});
  const auto function = find(keys, item.key, "function");
  const auto points = find(keys, item.key, "points");
  const auto slope = find(keys, item.key, "slope");
  const auto intercept = find(keys, item.key, "intercept");
  const bool line = slope || intercept;
  if ((function && points) || (function && line) || (points && line))
    fail(function ? *function : *points, "the aggressiveness function is given twice",
         "write either function, or points, or slope and intercept");
  const Item& last = function ? *function : points ? *points : intercept ? *intercept : slope ? *slope : item;
  const std::string name = function ? text(*function, "F1") : "";
  const std::vector<cc::Aggressiveness::Point> table_points =
      points ? read_points(*points) : std::vector<cc::Aggressiveness::Point>{};
  result.function = {slope ? bounded(*slope) : 1.75, intercept ? bounded(*intercept) : 0.25};
  at(last, [&] {
    if (function) result.function = cc::Aggressiveness::named(name);
    if (points) result.function = cc::Aggressiveness::table(table_points);
    result.function.validate();
  });
  if (const auto decrease = find(keys, item.key, "decrease")) result.scale_decrease = truth(*decrease);
  if (const auto from = find(keys, item.key, "iterations")) result.learn_iterations = learned(*from);
}

bool SettingsReader::learned(const Item& item) const {
  return one_of<bool>(item, {{"exact", false}, {"learned", true}});
}

double SettingsReader::bounded(const Item& item) const {
  const double value = decimal(item, "1.75");
  if (std::abs(value) > kMaxWeight)
    fail(item, fmt::format("{} is out of range", value), fmt::format("write -{0} to {0}", kMaxWeight));
  return value;
}

std::vector<cc::Aggressiveness::Point> SettingsReader::read_points(const Item& item) const {
  constexpr std::string_view example = "points = [[0, 0.25], [1, 2.0]]";
  std::vector<cc::Aggressiveness::Point> points;
  for (const Item& point : elements(item, "points", example)) {
    const toml::array* pair = point.node->as_array();
    if (pair == nullptr || pair->size() != 2) fail(point, "a point is not a pair", fmt::format("write {}", example));
    points.push_back({bounded({&(*pair)[0], item.key, point.line}), bounded({&(*pair)[1], item.key, point.line})});
  }
  return points;
}

std::string SettingsReader::algorithm(const Item& item, std::string_view example) const {
  const std::string& written = text(item, example);
  const std::filesystem::path folder = item.line >= kFirstOverrideLine
                                           ? options_.overrides[item.line - kFirstOverrideLine].folder
                                           : std::filesystem::path(file_).parent_path();
  return at(item, [&] { return std::string(cc::algorithm_from(written, folder).name); });
}

std::string SettingsReader::algorithm_of_option(std::string_view text) {
  try {
    return std::string(cc::algorithm_from(text).name);
  } catch (const InputError& error) {
    throw InputError(one_line(fmt::format("--cc: {}", error.what())));
  }
}

void SettingsReader::load_algorithms(const toml::table& root, std::string_view jobs) const {
  if (options_.cc && cc::names_a_library(*options_.cc)) algorithm_of_option(*options_.cc);
  const auto load = [&](const toml::table& keys, std::string_view prefix) {
    const auto item = find(keys, prefix, "cc");
    // Values that do not name a shared object are checked later, when the key is read.
    if (item && item->node->is_string() && cc::names_a_library(text(*item, "reno"))) algorithm(*item, "reno");
  };
  load(root, "");
  const toml::array* list = root.get_as<toml::array>(jobs);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i)
    if (const toml::table* keys = list->get_as<toml::table>(i)) load(*keys, fmt::format("{}[{}]", jobs, i + 1));
}

std::vector<std::string> SettingsReader::with_parameters(const std::vector<std::string>& keys) {
  std::vector<std::string> all = keys;
  for (const cc::ParameterTable* algorithm : cc::parameter_tables()) {
    if (algorithm->parameters.empty()) continue;
    if (contains(keys, algorithm->name))
      throw InputError(
          fmt::format("congestion control {} has parameters, but files have another key of that name; give the "
                      "algorithm another name",
                      in_quotes(algorithm->name)));
    all.emplace_back(algorithm->name);
  }
  return all;
}

void SettingsReader::read_parameters(const toml::table& root, cc::Parameters& result) const {
  for (const cc::ParameterTable* parameters : cc::parameter_tables())
    if (parameters->parameters.empty())
      continue;
    else if (const auto item = find(root, "", parameters->name))
      read_table(*item, *parameters, result);
}

void SettingsReader::read_table(const Item& item, const cc::ParameterTable& algorithm, cc::Parameters& result) const {
  const toml::table& keys = table(item, fmt::format("[{}] and below it its parameters", algorithm.name));
  std::vector<std::string> known;
  known.reserve(algorithm.parameters.size());
  for (const cc::Parameter& parameter : algorithm.parameters) known.emplace_back(parameter.name);
  check_keys(keys, item.key, known);
  // The bounds of some parameters depend on other parameters, so all are read before they are checked.
  for (const cc::Parameter& parameter : algorithm.parameters)
    if (const auto key = find(keys, item.key, parameter.name))
      result.set(algorithm, parameter, read_value(*key, parameter));
  const cc::Parameters::Objection wrong = result.objection(algorithm);
  if (wrong.parameter.empty()) return;
  // If the value out of range is a default, the error names the parameter that limits it.
  auto culprit = find(keys, item.key, wrong.parameter);
  if (!culprit && !wrong.bound_by.empty()) culprit = find(keys, item.key, wrong.bound_by);
  throw_objection(culprit ? *culprit : item, wrong.text);
}

cc::ParameterValue SettingsReader::read_value(const Item& item, const cc::Parameter& parameter) const {
  const std::string example = cc::value_text(parameter.by_default);
  return std::visit(
      [&](const auto& by_default) -> cc::ParameterValue {
        using T = std::remove_cvref_t<decltype(by_default)>;
        if constexpr (std::is_same_v<T, bool>)
          return truth(item);
        else if constexpr (std::is_same_v<T, std::uint32_t>)
          return static_cast<T>(whole(item, 0, std::numeric_limits<T>::max()));
        else if constexpr (std::is_same_v<T, Nanos>)
          return duration(item, example, kMaxCompute);
        else if constexpr (std::is_same_v<T, Rate>)
          return with_unit(item, example, parse_rate).is_zero() ? Rate() : rate(item);
        else if constexpr (std::is_same_v<T, Bytes>)
          return bytes(item, example, kMaxPhaseBytes);
        else
          return decimal(item, example);
      },
      parameter.by_default);
}

fabric::SwitchedNetworkConfig SettingsReader::read_topology(const Item& item, double rate_scale) const {
  const toml::table& keys = table(item, "[topology] and below it kind = \"leaf-spine\"");
  const Item kind = required(item, keys, "kind", "\"leaf-spine\"");
  struct Kind {
    std::vector<std::string> keys;
    Topology (SettingsReader::*read)(const Item&, const toml::table&, Nanos, double) const;
  };
  const Kind known = one_of<Kind>(
      kind, {{"leaf-spine",
              {{"leaves", "spines", "hosts_per_leaf", "host_rate", "uplink_rate"}, &SettingsReader::read_leaf_spine}},
             {"single-switch", {{"hosts", "host_rate"}, &SettingsReader::read_single_switch}},
             {"fat-tree", {{"k", "rate"}, &SettingsReader::read_fat_tree}},
             {"file", {{"file", "hosts"}, &SettingsReader::read_links}},
             {"slurm", {{"file", "host_rate", "uplink_rate", "oversubscription"}, &SettingsReader::read_slurm}}});
  std::vector<std::string> all{"kind",  "delay", "buffer", "trim", "shared_buffer",
                               "alpha", "pfc",   "ecn",    "mtu",  "faults"};
  all.insert(all.begin() + 1, known.keys.begin(), known.keys.end());
  check_keys(keys, item.key, all);
  Nanos delay(1'000);
  if (const auto value = find(keys, item.key, "delay")) delay = duration(*value, "1 us", kMaxDelay);
  fabric::SwitchedNetworkConfig topology;
  topology.topology = std::make_shared<const Topology>((this->*known.read)(item, keys, delay, rate_scale));
  if (const auto value = find(keys, item.key, "mtu")) topology.mtu = count(*value, 576, 9000);
  if (const auto value = find(keys, item.key, "buffer"))
    topology.buffer_bytes = buffer(*value, "1 MB", topology.mtu + encap::kEthernetBytes);
  read_memory(item, keys, topology);
  if (const auto value = find(keys, item.key, "faults")) read_link_faults(*value, topology);
  if (const auto value = find(keys, item.key, "trim")) {
    if (topology.memory.bytes > 0)
      fail(*value, "switches whose ports share memory don't trim packets", "leave one of trim and shared_buffer out");
    const Bytes size = bytes(*value, "128 B", topology.mtu);
    if (size < kMinTrimBytes)
      fail(*value, "a trimmed packet must keep the headers of its data",
           fmt::format("write at least {} B", kMinTrimBytes));
    topology.trim_bytes = static_cast<std::uint32_t>(size);
  }
  if (const auto value = find(keys, item.key, "ecn"))
    read_ecn(*value, topology.ecn, find(keys, item.key, "shared_buffer") ? 0 : topology.buffer_bytes);
  return topology;
}

void SettingsReader::read_link_faults(const Item& item, fabric::SwitchedNetworkConfig& network) const {
  constexpr std::string_view example =
      R"(faults = [{ links = "leaf 0 -> *", at = "20 ms", until = "40 ms", share = 0 }])";
  const Topology& topology = *network.topology;
  for (const Item& fault : elements(item, "tables", example)) {
    const toml::table& keys = table(fault, example);
    check_keys(keys, fault.key, {"links", "at", "until", "share"});
    const Item links = required(fault, keys, "links", "\"leaf 0 -> *\"");
    const std::string& pattern = text(links, "leaf 0 -> *");
    Nanos at;
    if (const auto value = find(keys, fault.key, "at")) at = duration(*value, "20 ms", kMaxDelay);
    const double share = between(required(fault, keys, "share", "0"), 0, 1, "0");
    Nanos until = Nanos::never();
    if (const auto value = find(keys, fault.key, "until")) {
      until = duration(*value, "40 ms", kMaxDelay);
      if (until <= at) fail(*value, "the fault ends before it begins", "write a time after at");
    }
    const std::size_t before = network.faults.size();
    for (Topology::Link link = 0; link < topology.links(); ++link) {
      if (!matches(pattern, topology.link_name(link))) continue;
      const Rate rate = topology.capacity(link);
      network.faults.push_back({link, {at, share == 0 ? Rate() : scaled(rate, share)}});
      if (!until.is_never()) network.faults.push_back({link, {until, rate}});
    }
    if (network.faults.size() == before)
      fail(links, fmt::format("no link matches {}", in_quotes(pattern)),
           fmt::format("write a name or a pattern, such as {}", in_quotes(topology.link_name(0))));
  }
}

Rate SettingsReader::scaled(Rate rate, double scale) {
  return Rate(static_cast<std::uint64_t>(std::max(1.0, std::round(static_cast<double>(rate.bits_per_second) * scale))));
}

Topology SettingsReader::read_single_switch(const Item& item, const toml::table& keys, Nanos delay,
                                            double rate_scale) const {
  const auto hosts = whole(required(item, keys, "hosts", "8"), 2, Topology::kMaxHosts);
  const Rate host_rate = rate(required(item, keys, "host_rate", "\"100 Gbps\""));
  return Topology::single_switch(static_cast<std::uint32_t>(hosts), scaled(host_rate, rate_scale), delay);
}

Topology SettingsReader::read_leaf_spine(const Item& item, const toml::table& keys, Nanos delay,
                                         double rate_scale) const {
  LeafSpineShape shape;
  for (const auto& [key, number] : {std::pair{"leaves", &shape.leaves}, std::pair{"spines", &shape.spines},
                                    std::pair{"hosts_per_leaf", &shape.hosts_per_leaf}})
    *number = count(required(item, keys, key, "4"), 1, Topology::kMaxInTier);
  if (shape.hosts() < 2 || shape.hosts() > Topology::kMaxHosts)
    fail(*find(keys, item.key, "hosts_per_leaf"), fmt::format("the network has {} hosts", shape.hosts()),
         fmt::format("write leaves and hosts_per_leaf for 2 to {}", Topology::kMaxHosts));
  const Rate host_rate = rate(required(item, keys, "host_rate", "\"100 Gbps\""));
  shape.host_rate = shape.uplink_rate = scaled(host_rate, rate_scale);
  if (const auto value = find(keys, item.key, "uplink_rate")) shape.uplink_rate = scaled(rate(*value), rate_scale);
  shape.delay = delay;
  return Topology::leaf_spine(shape);
}

Topology SettingsReader::read_fat_tree(const Item& item, const toml::table& keys, Nanos delay,
                                       double rate_scale) const {
  const Item ports = required(item, keys, "k", "4");
  const auto k = count(ports, 2, Topology::kMaxPorts);
  if (k % 2 != 0)
    fail(ports, fmt::format("switches with {} ports cannot have half of their ports up and half down", k),
         fmt::format("write an even number, such as {}", k + 1));
  return Topology::fat_tree(k, scaled(rate(required(item, keys, "rate", "\"100 Gbps\"")), rate_scale), delay);
}

Topology SettingsReader::read_links(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const {
  const Item file = required(item, keys, "file", "\"network.csv\"");
  const Item hosts = required(item, keys, "hosts", "\"host*\"");
  LinksFileOptions options;
  options.delay = delay;
  if (const toml::array* list = hosts.node->as_array())
    for (const toml::node& node : *list) options.hosts.push_back(text({&node, hosts.key, hosts.line}, "host*"));
  else
    options.hosts.push_back(text(hosts, "host*"));
  const std::filesystem::path name = named_file(file, "network.csv");
  Graph graph = at(file, [&] { return load_links(name, options); });
  for (const std::string& pattern : options.hosts)
    if (std::ranges::none_of(graph.nodes, [&](const Graph::Node& node) { return matches(pattern, node.name); }))
      fail(hosts, fmt::format("no node of {} matches {}", in_quotes(name.string()), in_quotes(pattern)),
           fmt::format("write a pattern of the hosts' names; the first node is {}", in_quotes(graph.nodes[0].name)));
  const auto found = std::ranges::count_if(graph.nodes, [](const Graph::Node& node) { return node.host; });
  if (found < 2 || found > Topology::kMaxHosts)
    fail(hosts, fmt::format("{} of {} nodes {} matched", found, graph.nodes.size(), found == 1 ? "is" : "are"),
         fmt::format("write a pattern of the names of 2 to {} hosts", Topology::kMaxHosts));
  return built(file, name, std::move(graph), rate_scale);
}

Topology SettingsReader::read_slurm(const Item& item, const toml::table& keys, Nanos delay, double rate_scale) const {
  const Item file = required(item, keys, "file", "\"/etc/slurm/topology.conf\"");
  SlurmTopologyOptions options;
  options.delay = delay;
  options.host_rate = rate(required(item, keys, "host_rate", "\"100 Gbps\""));
  const auto uplink = find(keys, item.key, "uplink_rate");
  const auto ratio = find(keys, item.key, "oversubscription");
  if (uplink && ratio) fail(*ratio, "uplink_rate is given too", "keep one of the two");
  if (!uplink && !ratio)
    fail(line_of(*item.node, item.line), path(item.key, "oversubscription"), "Slurm's file has no rates of links",
         "write oversubscription = 1 if no tier of switches slows hosts down, else uplink_rate = \"400 Gbps\"");
  if (uplink) options.uplink_rate = rate(*uplink);
  if (ratio) options.oversubscription = between(*ratio, kMinOversubscription, 1 / kMinOversubscription, "2");
  const std::filesystem::path name = named_file(file, "topology.conf");
  return built(file, name, at(file, [&] { return load_slurm_topology(name, options); }), rate_scale);
}

Topology SettingsReader::built(const Item& item, const std::filesystem::path& name, Graph graph,
                               double rate_scale) const {
  for (Graph::Link& link : graph.links) link.capacity = scaled(link.capacity, rate_scale);
  try {
    Topology topology(graph);
    topology.check_all_paths();
    return topology;
  } catch (const InputError& error) {
    throw_objection(item, fmt::format("{}: {}", name.string(), error.what()));
  }
}

void SettingsReader::read_memory(const Item& item, const toml::table& keys,
                                 fabric::SwitchedNetworkConfig& topology) const {
  const auto shared = find(keys, item.key, "shared_buffer");
  const auto alpha = find(keys, item.key, "alpha");
  const auto pfc = find(keys, item.key, "pfc");
  if (shared) {
    if (find(keys, item.key, "buffer"))
      fail(*shared, "buffer gives each port its own memory too", "keep one of the two");
    topology.memory.bytes = buffer(*shared, "16 MB", topology.mtu + encap::kEthernetBytes);
  }
  for (const auto& [value, what] : {std::pair{&alpha, "alpha"}, std::pair{&pfc, "pfc"}})
    if (*value && !shared)
      fail(**value, fmt::format("{} needs memory that ports share", what), "add shared_buffer = \"16 MB\"");
  if (alpha) topology.memory.alpha = factor(*alpha, kMaxWeight);
  if (!pfc) return;
  if (alpha) fail(*alpha, "alpha bounds queues, but with pfc no queue is bounded", "keep one of the two");
  const toml::table& limits = table(*pfc, "pfc = { xoff = \"100 kB\", xon = \"80 kB\" }");
  check_keys(limits, pfc->key, {"xoff", "xon", "headroom"});
  const Item xoff = required(*pfc, limits, "xoff", "\"100 kB\"");
  topology.memory.pfc.enabled = true;
  topology.memory.pfc.xoff_bytes = bytes(xoff, "100 kB", kMaxBufferBytes);
  if (topology.memory.pfc.xoff_bytes == 0) fail(xoff, "it is 0", "write a size above 0");
  topology.memory.pfc.xon_bytes = topology.memory.pfc.xoff_bytes / 2;
  if (const auto xon = find(limits, pfc->key, "xon")) {
    topology.memory.pfc.xon_bytes = bytes(*xon, "80 kB", kMaxBufferBytes);
    if (topology.memory.pfc.xon_bytes >= topology.memory.pfc.xoff_bytes)
      fail(*xon, fmt::format("{} is not below xoff", bytes_to_text(topology.memory.pfc.xon_bytes)),
           "write less than " + bytes_to_text(topology.memory.pfc.xoff_bytes));
  }
  if (const auto headroom = find(limits, pfc->key, "headroom"))
    topology.pfc_headroom_bytes = buffer(*headroom, "40 kB", topology.mtu + encap::kEthernetBytes);
}

Bytes SettingsReader::buffer(const Item& item, std::string_view example, Bytes frame) const {
  const Bytes result = bytes(item, example, kMaxBufferBytes);
  if (result < frame)
    fail(item, fmt::format("{} is less than one packet with its Ethernet frame", bytes_to_text(result)),
         fmt::format("write at least {} B", frame));
  return result;
}

void SettingsReader::read_ecn(const Item& item, fabric::EcnConfig& ecn, Bytes buffer) const {
  const toml::table& keys = table(item, "ecn = { kmin = \"60 kB\", kmax = \"60 kB\", pmax = 1.0 }");
  check_keys(keys, item.key, {"kmin", "kmax", "pmax"});
  const Item kmin = required(item, keys, "kmin", "\"60 kB\"");
  ecn.enabled = true;
  ecn.kmin_bytes = bytes(kmin, "60 kB", kMaxBufferBytes);
  ecn.kmax_bytes = ecn.kmin_bytes;
  if (const auto kmax = find(keys, item.key, "kmax")) {
    ecn.kmax_bytes = bytes(*kmax, "60 kB", kMaxBufferBytes);
    if (ecn.kmax_bytes < ecn.kmin_bytes)
      fail(*kmax, fmt::format("{} is less than kmin", bytes_to_text(ecn.kmax_bytes)),
           fmt::format("write at least {}", bytes_to_text(ecn.kmin_bytes)));
  }
  if (const auto pmax = find(keys, item.key, "pmax")) ecn.pmax = probability(*pmax);
  if (buffer > 0 && ecn.kmin_bytes >= buffer)
    fail(kmin, fmt::format("no packet is marked, because the buffer holds at most {}", bytes_to_text(buffer)),
         "write a kmin below the buffer");
}

void SettingsReader::read_faults(const Item& item, fabric::FaultConfig& faults) const {
  const toml::table& keys = table(item, "faults = { loss = 0.01 }");
  check_keys(keys, item.key, {"loss", "duplication", "corruption", "reordering", "reorder_delay"});
  for (const auto& [key, share] : {std::pair{"loss", &faults.loss},
                                   {"duplication", &faults.duplication},
                                   {"corruption", &faults.corruption},
                                   {"reordering", &faults.reordering}})
    if (const auto value = find(keys, item.key, key)) *share = probability(*value);
  if (const auto value = find(keys, item.key, "reorder_delay")) {
    faults.reorder_delay = duration(*value, "100 us", kMaxDelay);
    if (faults.reorder_delay.count == 0) fail(*value, "it is 0", "write a duration above 0");
  }
}

double SettingsReader::between(const Item& item, double min, double max, std::string_view example) const {
  const double value = decimal(item, example);
  if (!(value >= min && value <= max))
    fail(item, fmt::format("{} is out of range", value), fmt::format("write {} to {}", min, max));
  return value;
}

void SettingsReader::read_schedule(const Item& item, ScheduleSettings& schedule) const {
  const toml::table& keys = table(item, "[schedule] and below it tolerance = 0.05");
  check_keys(keys, item.key,
             {"tolerance", "correction", "gradual_step", "clock_bound", "max_stretch", "slack", "replan"});
  if (const auto value = find(keys, item.key, "tolerance")) schedule.tolerance = between(*value, 0.001, 0.5, "0.05");
  if (const auto value = find(keys, item.key, "correction"))
    schedule.correction = one_of<PhasePlan::Correction>(
        *value, {{"at-once", PhasePlan::Correction::at_once}, {"gradual", PhasePlan::Correction::gradual}});
  if (const auto value = find(keys, item.key, "gradual_step")) schedule.gradual_step = between(*value, 0.001, 1, "0.1");
  if (const auto value = find(keys, item.key, "clock_bound"))
    schedule.clock_bound = duration(*value, "10 us", kMaxDelay);
  if (const auto value = find(keys, item.key, "max_stretch")) schedule.max_stretch = between(*value, 0, 1, "0.02");
  if (const auto value = find(keys, item.key, "replan")) schedule.replan = truth(*value);
  if (const auto value = find(keys, item.key, "slack")) {
    const auto* word = value->node->as_string();
    if (word != nullptr && word->get() != "auto")
      fail(*value, in_quotes(word->get()) + " is not known", "write \"auto\", or a share such as 0.02");
    if (word == nullptr) schedule.slack = between(*value, 0, 1, "0.02");
  }
}

void SettingsReader::read_iteration(const Item& item, const toml::table& keys, workload::Job& job,
                                    std::vector<std::string>& warnings) const {
  if (const auto replay = find(keys, item.key, "replay")) {
    for (const std::string_view key : {"phases", "trace", "profile", "compute", "communicate", "pattern", "parallel"})
      if (const auto value = find(keys, item.key, key))
        fail(*value, "the job has a replayed trace too", "keep one of the two");
    for (const std::string_view key : {"workers", "network", "gather_size", "compute_scale", "bytes_scale"})
      if (const auto value = find(keys, item.key, key))
        fail(*value, "the key belongs to trace",
             "leave it out; replay = { files = \"FILE\", ... } has keys of its own");
    read_replay(*replay, job, warnings);
    check_iteration(*replay, true, job);
    return;
  }
  if (find(keys, item.key, "pattern") || find(keys, item.key, "parallel")) {
    read_pattern(item, keys, job);
    return;
  }
  for (const auto& list : {keys_of_collectives(), keys_of_training(), {"collective", "chunk"}})
    for (const std::string& key : list)
      if (const auto value = find(keys, item.key, key))
        fail(*value, "the key belongs to a pattern of communication, but the job has none",
             "add pattern = \"all-reduce\" or parallel = { data = 4 }, or leave the key out");
  const auto phases = find(keys, item.key, "phases");
  const auto trace = find(keys, item.key, "trace");
  const auto profile = find(keys, item.key, "profile");
  const std::string_view first = phases ? "phases" : trace ? "a trace" : "a profile";
  for (const auto& [key, other] :
       {std::pair("trace", phases.has_value()), std::pair("profile", phases || trace),
        std::pair("compute", phases || trace || profile), std::pair("communicate", phases || trace || profile)})
    if (const auto value = find(keys, item.key, key); value && other)
      fail(*value, fmt::format("the job has {} too", first), "keep one of the two");
  if (!trace)
    for (const std::string_view key : {"workers", "network", "gather_size", "compute_scale", "bytes_scale"})
      if (const auto value = find(keys, item.key, key))
        fail(*value, "the key belongs to a trace, but the job has none", "add trace = \"FILE\" or leave the key out");
  if (trace)
    read_trace(item, keys, *trace, job, warnings);
  else if (phases)
    read_phases(*phases, job);
  else if (profile)
    read_profile(*profile, job);
  else
    read_simple(item, keys, job);
  check_iteration(trace ? *trace : phases ? *phases : profile ? *profile : item, trace.has_value(), job);
}

void SettingsReader::read_replay(const Item& replay, workload::Job& job, std::vector<std::string>& warnings) const {
  constexpr std::string_view example = "traces/rank0.json";
  workload::GraphOptions options;
  workload::TraceOptions reading;
  workload::StepChoice steps;
  Item files = replay;
  if (const toml::table* keys = replay.node->as_table()) {
    check_keys(*keys, replay.key,
               {"files", "steps", "ranks", "trace_ranks", "algorithm", "whole", "chunk", "islands", "island_rate",
                "compute_scale", "bytes_scale", "delays"});
    files = required(replay, *keys, "files", "\"traces/rank0.json\"");
    if (const auto value = find(*keys, replay.key, "steps"))
      steps = at(*value, [&] { return workload::StepChoice::from_text(text(*value, "typical")); });
    if (const auto value = find(*keys, replay.key, "ranks"))
      options.ranks = at(*value, [&] { return workload::ranks_from_text(text(*value, "0-3")); });
    if (const auto value = find(*keys, replay.key, "trace_ranks"))
      reading.ranks = count(*value, 2, Topology::kMaxHosts);
    if (const auto value = find(*keys, replay.key, "algorithm")) options.algorithm = collective_algorithm(*value);
    if (const auto value = find(*keys, replay.key, "whole")) options.whole = truth(*value);
    if (const auto value = find(*keys, replay.key, "chunk")) options.chunk = size_above_zero(*value, "256 KiB");
    if (const auto value = find(*keys, replay.key, "islands")) options.islands = count(*value, 1, workload::kMaxRanks);
    if (const auto value = find(*keys, replay.key, "island_rate")) options.island_rate = rate(*value);
    if (const auto value = find(*keys, replay.key, "compute_scale")) options.compute_scale = factor(*value, kMaxScale);
    if (const auto value = find(*keys, replay.key, "bytes_scale")) options.bytes_scale = factor(*value, kMaxScale);
    if (const auto value = find(*keys, replay.key, "delays")) options.delays = truth(*value);
  }
  std::vector<std::filesystem::path> paths;
  if (files.node->is_array()) {
    for (const Item& file : elements(files, "paths", example)) paths.push_back(named_file(file, example));
    if (paths.empty()) fail(files, "there is no file", "name the traces of the job's ranks");
  } else {
    paths.push_back(named_file(files, example));
  }
  at(replay, [&] {
    const workload::ExecutionGraph graph = read_job_traces(paths, reading);
    options.steps = steps.of(graph);
    const workload::GraphPrograms programs = workload::graph_programs(graph, options);
    warnings.insert(warnings.end(), graph.warnings.begin(), graph.warnings.end());
    warnings.insert(warnings.end(), programs.warnings.begin(), programs.warnings.end());
    workload::Job replayed = workload::replayed_job(job.name, programs);
    job.phases = std::move(replayed.phases);
    job.programs = std::move(replayed.programs);
  });
}

void SettingsReader::read_pattern(const Item& item, const toml::table& keys, workload::Job& job) const {
  const auto kind = find(keys, item.key, "pattern");
  const auto parallel = find(keys, item.key, "parallel");
  const std::string_view first = kind ? "a pattern" : "parallel ranks";
  for (const std::string_view key : {"phases", "trace", "profile", "communicate", "parallel"})
    if (const auto value = find(keys, item.key, key); value && (kind || key != "parallel"))
      fail(*value, fmt::format("the job has {} too", first), "keep one of the two");
  for (const std::string_view key : {"workers", "network", "gather_size", "compute_scale", "bytes_scale"})
    if (const auto value = find(keys, item.key, key))
      fail(*value, fmt::format("the key belongs to a trace, but the job has {}", first), "leave it out");
  for (const std::string& key : kind ? keys_of_training() : keys_of_collectives())
    if (const auto value = find(keys, item.key, key))
      fail(*value,
           kind ? "the key belongs to parallel ranks, but the job has a pattern"
                : "the key belongs to a pattern, but the job has parallel ranks",
           "leave it out");
  workload::Pattern& pattern = job.pattern.emplace();
  if (const auto value = find(keys, item.key, "compute")) pattern.compute = duration(*value, "150 ms", kMaxCompute);
  if (const auto value = find(keys, item.key, "collective")) pattern.algorithm = collective_algorithm(*value);
  if (kind)
    read_collective(item, keys, *kind, pattern);
  else
    read_training(item, keys, *parallel, pattern);
  if (const auto value = find(keys, item.key, "chunk")) {
    if (pattern.algorithm != workload::Algorithm::tree && pattern.kind != workload::Pattern::Kind::broadcast)
      fail(*value, "only trees and broadcasts send chunks", "add collective = \"tree\", or leave it out");
    pattern.chunk = size_above_zero(*value, "256 KiB");
  }
  add_compute(pattern.compute, job);
}

workload::Algorithm SettingsReader::collective_algorithm(const Item& item) const {
  using workload::Algorithm;
  std::vector<std::pair<std::string_view, Algorithm>> known;
  for (const Algorithm one : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling})
    known.emplace_back(name(one), one);
  return one_of(item, known);
}

void SettingsReader::read_collective(const Item& item, const toml::table& keys, const Item& kind,
                                     workload::Pattern& pattern) const {
  using Kind = workload::Pattern::Kind;
  const auto all = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,      Kind::all_to_all,
                    Kind::broadcast,  Kind::point_to_point, Kind::parameter_server};
  std::vector<std::string> names;
  for (const Kind one : all) names.emplace_back(name(one));
  const std::string& written = text(kind, "all-reduce");
  const std::string wrong = objection(written, names, {});
  if (!wrong.empty()) throw_objection(kind, wrong);
  pattern.kind = *std::ranges::find_if(all, [&](Kind one) { return name(one) == written; });
  pattern.size = size_above_zero(required(item, keys, "size", "\"100 MB\""), "100 MB");
  if (const auto value = find(keys, item.key, "collective");
      value && (pattern.kind == Kind::all_to_all || pattern.kind == Kind::point_to_point ||
                pattern.kind == Kind::parameter_server))
    fail(*value, fmt::format("there is one algorithm for pattern {}", written), "leave it out");
  if (const auto value = find(keys, item.key, "servers")) {
    if (pattern.kind != Kind::parameter_server)
      fail(*value, fmt::format("pattern {} has no servers", written), "leave it out, or use \"parameter-server\"");
    pattern.servers = count(*value, 1, workload::kMaxRanks - 1);
  }
}

void SettingsReader::read_training(const Item& item, const toml::table& keys, const Item& parallel,
                                   workload::Pattern& pattern) const {
  pattern.kind = workload::Pattern::Kind::training;
  workload::Pattern::Training& training = pattern.training;
  const toml::table& groups = table(parallel, "parallel = { data = 4, tensor = 1, pipeline = 1 }");
  check_keys(groups, parallel.key, {"data", "tensor", "pipeline"});
  std::uint32_t data = 1;
  for (const auto& [key, number] :
       {std::pair{"data", &data}, std::pair{"tensor", &training.tensor}, std::pair{"pipeline", &training.pipeline}})
    if (const auto value = find(groups, parallel.key, key)) *number = count(*value, 1, workload::kMaxRanks);
  const std::uint64_t ranks = std::uint64_t{data} * training.tensor * training.pipeline;
  if (ranks < 2 || ranks > workload::kMaxRanks)
    fail(parallel, fmt::format("data times tensor times pipeline is {}", ranks),
         fmt::format("write numbers whose product is 2 to {}", workload::kMaxRanks));
  pattern.ranks = static_cast<std::uint32_t>(ranks);
  for (const auto& [key, bytes] :
       {std::pair{"gradients", &pattern.size}, std::pair{"activations", &training.activations},
        std::pair{"experts", &training.experts}})
    if (const auto value = find(keys, item.key, key)) *bytes = size_above_zero(*value, "100 MB");
  const auto buckets = find(keys, item.key, "buckets");
  constexpr std::int64_t max = workload::kMaxOperations;
  for (const auto& [key, number] :
       {std::pair{"micro_batches", &training.micro_batches}, std::pair{"buckets", &training.buckets}})
    if (const auto value = find(keys, item.key, key)) *number = count(*value, 1, max);
  training.layers = training.buckets;
  if (const auto value = find(keys, item.key, "layers")) training.layers = count(*value, 1, max);
  if (buckets && training.buckets > training.layers)
    fail(*buckets, fmt::format("{} buckets are more than the {} layers", training.buckets, training.layers),
         "write at most as many");
  if (const auto value = find(keys, item.key, "overlap")) training.overlap = truth(*value);
  for (const std::string_view key : {"gradients", "buckets", "overlap", "experts"})
    if (const auto value = find(keys, item.key, key); value && data == 1)
      fail(*value, "there is only one data-parallel rank, so no gradients are exchanged",
           "leave it out, or raise data");
  if (data > 1 && pattern.size == 0)
    fail(item.line, path(item.key, "gradients"), "the key is missing, but data-parallel ranks exchange gradients",
         "write gradients = \"100 MB\"");
  const bool split = training.tensor > 1 || training.pipeline > 1;
  if (const auto value = find(keys, item.key, "activations"); value && !split)
    fail(*value, "there are no tensor ranks or pipeline stages to exchange them",
         "leave it out, or raise tensor or pipeline");
  if (split && training.activations == 0)
    fail(item.line, path(item.key, "activations"),
         "the key is missing, but tensor ranks and pipeline stages exchange activations",
         "write activations = \"4 MB\"");
}

std::size_t SettingsReader::complete_pattern(const Item& item, const toml::table& keys, workload::Job& job) const {
  const auto kind = find(keys, item.key, "pattern");
  const Item given = kind ? *kind : *find(keys, item.key, "parallel");
  workload::Pattern& pattern = *job.pattern;
  const auto hosts = static_cast<std::uint32_t>(job.hosts.size());
  if (hosts == 0)
    fail(given, "each rank runs on a host of a topology, but the job names no hosts", "add hosts = [0, 1, 2, 3]");
  if (!kind && hosts != pattern.ranks)
    fail(given, fmt::format("data times tensor times pipeline is {}, but the job has {} hosts", pattern.ranks, hosts),
         "write as many hosts");
  pattern.ranks = hosts;
  const workload::Outline outline = at(given, [&] { return workload::outline(pattern); });
  workload::Phase& phase = job.phases.emplace_back();
  phase.kind = workload::Phase::Kind::communicate;
  phase.bytes = outline.bytes;
  check_iteration(given, false, job);
  return outline.pairs;
}

Bytes SettingsReader::size_above_zero(const Item& item, std::string_view example) const {
  const Bytes size = bytes(item, example, kMaxPhaseBytes);
  if (size == 0) fail(item, "it is 0", "write a size above 0");
  return size;
}

void SettingsReader::check_iteration(const Item& item, bool traced, const workload::Job& job) const {
  const auto [compute, bytes] = sums_of(job);
  if (compute <= static_cast<std::uint64_t>(kMaxCompute.count) && bytes <= kMaxPhaseBytes) return;
  fail(item,
       fmt::format("an iteration computes for {:.6g} s and sends {:.6g} B", static_cast<double>(compute) * 1e-9,
                   static_cast<double>(bytes)),
       fmt::format("{} at most {} and {}", traced ? "lower compute_scale and bytes_scale to get" : "write",
                   to_text(kMaxCompute), bytes_to_text(kMaxPhaseBytes)));
}

SettingsReader::Sums SettingsReader::sums_of(const workload::Job& job) {
  Sums sums;
  for (const workload::Phase& phase : job.phases) {
    sums.nanos += static_cast<std::uint64_t>(phase.compute.count);
    sums.bytes += phase.bytes;
  }
  return sums;
}

void SettingsReader::read_simple(const Item& item, const toml::table& keys, workload::Job& job) const {
  const auto compute = find(keys, item.key, "compute");
  const auto communicate = find(keys, item.key, "communicate");
  if (!communicate)
    fail(item.line, path(item.key, "communicate"), "the key is missing, so the job sends nothing",
         "write communicate = \"13.5 MB\", or phases, or a trace, or a profile");
  if (compute) add_compute(duration(*compute, "150 ms", kMaxCompute), job);
  job.phases.push_back(communication(*communicate));
}

void SettingsReader::add_compute(Nanos time, workload::Job& job) {
  if (time.count == 0) return;
  workload::Phase phase;
  phase.compute = time;
  job.phases.push_back(std::move(phase));
}

workload::Phase SettingsReader::communication(const Item& item) const {
  workload::Phase phase;
  phase.kind = workload::Phase::Kind::communicate;
  phase.bytes = bytes(item, "13.5 MB", kMaxPhaseBytes);
  if (phase.bytes == 0) fail(item, "the phase sends nothing", "write a size above 0");
  return phase;
}

void SettingsReader::read_phases(const Item& item, workload::Job& job) const {
  std::vector<Item> phases = elements(item, "tables", "[ { compute = \"20 ms\" }, { communicate = \"5 MB\" } ]");
  if (phases.size() > kMaxPhases)
    fail(item, fmt::format("there are {} phases", phases.size()), fmt::format("write at most {}", kMaxPhases));
  std::size_t number = 0;
  for (Item& phase : phases) {
    phase.key += fmt::format("[{}]", ++number);
    read_phase(phase, job);
  }
  if (sums_of(job).bytes == 0)
    fail(item, "no phase communicates, so the job sends nothing", "add { communicate = \"13.5 MB\" }");
}

void SettingsReader::read_phase(const Item& item, workload::Job& job) const {
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
    if (overlap) fail(*overlap, "a phase that computes cannot overlap", "set overlap on the communication before it");
    add_compute(duration(*compute, "20 ms", kMaxCompute), job);
    return;
  }
  workload::Phase phase = communication(*communicate);
  if (limit) phase.rate = rate(*limit);
  if (overlap) phase.overlap = truth(*overlap);
  job.phases.push_back(std::move(phase));
}

void SettingsReader::read_trace(const Item& item, const toml::table& keys, const Item& trace, workload::Job& job,
                                std::vector<std::string>& warnings) const {
  TraceKeys beside = read_trace_keys(item, keys);
  if (const auto value = find(keys, item.key, "workers")) beside.view.workers = count(*value, 2, 1'000'000);
  job.phases = load_phases(trace, named_file(trace, kTraceExample), beside, job.name, warnings);
}

SettingsReader::TraceKeys SettingsReader::read_trace_keys(const Item& item, const toml::table& keys) const {
  TraceKeys result;
  workload::TraceView& view = result.view;
  if (const auto value = find(keys, item.key, "network")) {
    view.network = workload::network_from(text(*value, "weight-gradient"));
    if (!view.network)
      fail(*value, fmt::format("{} is not known", in_quotes(text(*value, ""))),
           "write \"weight-gradient\", \"inter-server\" or \"all\"");
    result.of_loops.push_back(*value);
  }
  if (const auto value = find(keys, item.key, "gather_size")) {
    view.gather_size = one_of<workload::GatherSize>(
        *value, {{"total", workload::GatherSize::total}, {"shard", workload::GatherSize::shard}});
    result.of_loops.push_back(*value);
  }
  if (const auto value = find(keys, item.key, "compute_scale")) view.compute_scale = factor(*value, kMaxScale);
  if (const auto value = find(keys, item.key, "bytes_scale")) view.bytes_scale = factor(*value, kMaxScale);
  return result;
}

std::vector<workload::Phase> SettingsReader::load_phases(const Item& item, const std::filesystem::path& path,
                                                         const TraceKeys& keys, const std::string& job,
                                                         std::vector<std::string>& warnings) const {
  workload::GraphSummary summary;
  std::vector<workload::Phase> phases;
  at(item, [&] {
    summary = summarise_job_traces(std::span(&path, 1), keys.view);
    phases = workload::to_job(summary, job).phases;
  });
  if (!keys.of_loops.empty() && !workload::is_training_loop(summary))
    fail(keys.of_loops.front(), "the trace records what was sent", "leave the key out");
  warnings.insert(warnings.end(), summary.warnings.begin(), summary.warnings.end());
  return phases;
}

void SettingsReader::read_profile(const Item& profile, workload::Job& job) const {
  job.phases = at(
      profile, [&] { return workload::to_phases(workload::load_profile(named_file(profile, "profiles/bert.csv"))); });
}

std::filesystem::path SettingsReader::named_file(const Item& item, std::string_view example) const {
  const std::string& written = text(item, example);
  if (written.empty()) fail(item, "the path is empty", "write the path of a file, relative to this one");
  return std::filesystem::path(file_).parent_path() / written;
}

}  // namespace mltcp::experiment
