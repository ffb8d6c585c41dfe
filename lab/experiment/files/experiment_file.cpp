// Reader of experiment files (see experiment_file.h).
#include "mltcp/lab/experiment/files/experiment_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/files/datapath_kind.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/files/settings_reader.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/worker_hosts.h"
#include "mltcp/transport/balancers.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::experiment {
namespace {

using namespace mltcp::literals;

// Limits of plausible values. A value beyond its limit is assumed to be a mistake.
constexpr std::size_t kMaxJobs = 4096;
constexpr std::size_t kMaxConnections = 1'000'000;  // maximum for all workers of all jobs together
constexpr TextFile kExperimentFile{"an experiment file", 64U << 20};
constexpr TextFile kLibraryFile{"a shared object", 1U << 30};

// The keys at the top level of a file, except the tables of algorithms' parameters.
const std::vector<std::string>& top_level_keys() {
  static const std::vector<std::string> keys{"name",       "datapath", "iterations", "seed",  "cc",
                                             "balance",    "paths",    "policies",   "mltcp", "schedule",
                                             "bottleneck", "topology", "host_model", "job"};
  return keys;
}

static_assert(workload::kMaxPriority == kPriorities - 1);

// The keys of a job that are not in the list of fields of workload::Job (job_fields.h).
const std::vector<std::string>& other_keys_of_jobs() {
  static const std::vector<std::string> keys{"name",    "count",       "start_step",    "cc",          "hosts",
                                             "compute", "communicate", "phases",        "trace",       "workers",
                                             "network", "gather_size", "compute_scale", "bytes_scale", "profile",
                                             "pattern", "parallel",    "collective",    "chunk",       "size",
                                             "servers", "gradients",   "activations",   "experts",     "micro_batches",
                                             "layers",  "buckets",     "overlap",       "replay"};
  return keys;
}

class Reader final : public SettingsReader {
 public:
  using SettingsReader::SettingsReader;

  Experiment read(const toml::table& root) {
    if (root.empty()) fail(1, "experiment", "the file is empty", "describe a bottleneck and at least one job");
    load_algorithms(root, "job");
    check_keys(root, "", with_parameters(top_level_keys()));
    Experiment experiment;
    experiment.file = file_;
    experiment.name = one_line(std::filesystem::path(file_).stem().string());
    if (const auto item = find(root, "", "name")) experiment.name = name_text(*item);
    if (const auto item = find(root, "", "iterations")) experiment.iterations = count(*item, 1, kMaxIterations);
    if (options_.iterations) experiment.iterations = *options_.iterations;
    if (const auto item = find(root, "", "seed"))
      experiment.seed = static_cast<std::uint64_t>(whole(*item, 0, std::numeric_limits<std::int64_t>::max()));
    if (options_.seed) experiment.seed = *options_.seed;
    experiment.datapath =
        choice(root, "datapath", "--datapath", options_.datapath, datapath_names(), options_.datapaths, "sim");
    if (options_.virtual_time_only && datapath_kind(experiment.datapath).real_time)
      fail(*find(root, "", "datapath"),
           fmt::format("{} runs in real time, one experiment at a time, but a sweep runs many at once",
                       in_quotes(experiment.datapath)),
           "write \"sim\", or use mltcp run");
    experiment.cc = read_cc(root);
    experiment.balance = choice(root, "balance", "--balance", options_.balance, balancer_names(), balancer_names(),
                                balancers().front().name);
    if (const auto item = find(root, "", "paths")) experiment.paths = count(*item, 1, kMaxPaths);
    if (options_.paths) experiment.paths = *options_.paths;
    experiment.policies =
        words(root, "policies", "[\"fair\", \"mltcp\"]", "--policy", options_.policy, experiment.policies,
              [](const std::string& value) { return objection(value, policy_names(), policy_names()); });
    check_policies(root, experiment);
    check_paths(root, experiment);
    if (const auto item = find(root, "", "mltcp")) read_mltcp(*item, experiment.mltcp);
    if (const auto item = find(root, "", "schedule")) read_schedule(*item, experiment.schedule);
    check_schedule(root, experiment);
    read_parameters(root, experiment.parameters);
    const auto bottleneck = find(root, "", "bottleneck");
    const auto topology = find(root, "", "topology");
    if (bottleneck && topology) fail(*topology, "the file has a bottleneck too", "keep one of the two");
    if (!bottleneck && !topology)
      fail(1, "bottleneck", "the table is missing",
           "add [bottleneck] with at least rate = \"1 Gbps\", or a [topology]");
    if (bottleneck) read_bottleneck(*bottleneck, experiment);
    if (topology) read_network(*topology, experiment);
    if (const auto model = find(root, "", "host_model")) read_machines(*model, experiment, topology.has_value());
    experiment.bottleneck.seed = experiment.seed;
    experiment.machines.seed = experiment.seed;
    ecn_ = experiment.bottleneck.ecn.enabled;
    check_needs(experiment.cc, options_.cc ? std::nullopt : find(root, "", "cc"), ecn_);
    const auto jobs = find(root, "", "job");
    if (!jobs) fail(1, "job", "there is no job", "add at least one [[job]]");
    read_jobs(*jobs, experiment);
    if (topology) {
      check_topology(*topology, experiment);
      limit_rates(experiment);
    }
    if (!datapath_kind(experiment.datapath).packets) check_flow_level(root, experiment);
    check_patterns(root, experiment);
    check_length(root, experiment);
    warn_if_overbooked(experiment);
    warn_of_equal_priorities(experiment);
    return experiment;
  }

 private:
  [[nodiscard]] std::string hint(std::string_view prefix, std::string_view key) const override {
    if (prefix.starts_with("job[") && key == "accumulate")
      return "write micro_batches instead: their gradients are accumulated and reduced once";
    if (prefix.empty() && (key == "experiment" || key == "vary" || key == "seeds" || key == "case"))
      return "the key belongs to a sweep file: use mltcp sweep";
    if (prefix.empty() && (key == "arrivals" || key == "type" || key == "schemes" || key == "level" || key == "gpu"))
      return "the key belongs to a cluster file: use mltcp cluster";
    if (!prefix.empty() && contains(with_parameters(top_level_keys()), key))
      return "the key belongs to the top level: write it above the first [table] of the file";
    return {};
  }

  std::string choice(const toml::table& root, std::string_view key, std::string_view option,
                     const std::optional<std::string>& override_value, const std::vector<std::string>& known,
                     const std::vector<std::string>& available, std::string_view by_default) const {
    const auto item = find(root, "", key);
    if (item) {
      // A value in the file must be known even if an option overrides it.
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

  std::string read_cc(const toml::table& root) const {
    const auto item = find(root, "", "cc");
    // An algorithm named in the file must exist even if an option overrides it.
    const std::string written = item ? algorithm(*item, "reno") : "reno";
    return options_.cc ? algorithm_of_option(*options_.cc) : written;
  }

  static std::vector<std::string> balancer_names() {
    std::vector<std::string> names;
    for (const BalancerTable& balancer : balancers()) names.emplace_back(balancer.name);
    return names;
  }

  void check_paths(const toml::table& root, const Experiment& experiment) const {
    const bool one = experiment.balance == balancers().front().name;
    const auto refuse = [&](std::string_view key, const std::string& cause, std::string_view cure) {
      if (const auto item = find(root, "", key)) fail(*item, cause, cure);
      throw InputError(fmt::format("--{}: {}; {}", key, cause, cure));
    };
    if (one && experiment.paths > 1)
      refuse("paths", fmt::format("balance {} uses one path", in_quotes(experiment.balance)),
             "choose a balancer, such as \"reps\"");
    if (!one && experiment.datapath != "sim")
      refuse("balance", fmt::format("datapath {} has one path", in_quotes(experiment.datapath)),
             "leave the balancer out, or choose datapath \"sim\"");
    if (const std::string slots = first_policy(experiment, &Policy::slots); !one && !slots.empty())
      refuse("balance", fmt::format("policy {} computes slots for connections of one path", in_quotes(slots)),
             "leave out the balancer or the policy");
  }

  // Returns the first of the experiment's policies, in the order of the table, with property `what`; empty if no policy
  // has it.
  static std::string first_policy(const Experiment& experiment, bool Policy::*what) {
    for (const Policy& policy : policies())
      if (policy.*what && contains(experiment.policies, policy.name)) return std::string(policy.name);
    return {};
  }

  // Refuses policies that need what the datapath does not have.
  void check_policies(const toml::table& root, const Experiment& experiment) const {
    const DatapathKind& kind = datapath_kind(experiment.datapath);
    const auto check = [&](bool has, bool Policy::*needs, std::string_view what) {
      const std::string policy = has ? "" : first_policy(experiment, needs);
      if (policy.empty()) return;
      const std::string cause = fmt::format("datapath {} has no {}", experiment.datapath, what);
      const std::string cure = fmt::format("leave policy \"{}\" out, or use datapath sim", policy);
      if (!options_.policy.empty()) throw InputError(fmt::format("--policy: {}; {}", cause, cure));
      fail(*find(root, "", "policies"), cause, cure);
    };
    check(kind.priorities, &Policy::priorities, "priority queues");
    check(kind.packets, &Policy::turns, kWhatTurnsNeed);
  }

  // Refuses slots if the transport learns iterations, because slots require jobs to report when an iteration begins.
  void check_schedule(const toml::table& root, const Experiment& experiment) const {
    if (!experiment.mltcp.learn_iterations) return;
    if (const std::string policy = first_policy(experiment, &Policy::slots); !policy.empty()) {
      const std::string cause = fmt::format(
          "policy {} holds iterations until their slots, but the transport learns of an iteration only after it has "
          "begun",
          in_quotes(policy));
      fail(*find(*root.get_as<toml::table>("mltcp"), "mltcp", "iterations"), cause,
           "write \"exact\", or leave the policy out");
    }
  }

  // Refuses patterns on datapaths that do not support them: in a pattern, ranks depend on each other's messages.
  void check_patterns(const toml::table& root, const Experiment& experiment) const {
    for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
      const workload::Job& job = experiment.jobs[i];
      if (!job.pattern) continue;
      const toml::table& keys = *root.get_as<toml::array>("job")->get(numbers_[i] - 1)->as_table();
      const std::string prefix = fmt::format("job[{}]", numbers_[i]);
      const auto pattern = find(keys, prefix, "pattern");
      const Item item = pattern ? *pattern : *find(keys, prefix, "parallel");
      if (!datapath_kind(experiment.datapath).patterns)
        fail(item, fmt::format("datapath {} has no patterns of communication", experiment.datapath),
             "use datapath sim");
    }
  }

  // Refuses settings about packets, which have no effect at flow level.
  void check_flow_level(const toml::table& root, const Experiment& experiment) const {
    const auto refuse = [&](std::string_view table_key, std::string_view key, std::string_view cause) {
      const Item item = *find(root, "", table_key);
      fail(*find(*item.node->as_table(), item.key, key),
           fmt::format("datapath {} has no {}", experiment.datapath, cause), "leave the key out, or use datapath sim");
    };
    if (experiment.bottleneck.faults.any()) refuse("bottleneck", "faults", "packets for faults to act on");
    if (experiment.topology && !experiment.topology->faults.empty())
      refuse("topology", "faults", "packets for faults to act on");
    if (experiment.topology && experiment.topology->trim_bytes > 0) refuse("topology", "trim", "packets to trim");
    if (experiment.mltcp.scale_decrease) refuse("mltcp", "decrease", "congestion windows to decrease");
    if (experiment.mltcp.learn_iterations) refuse("mltcp", "iterations", "traffic to learn iterations from");
  }

  // ---- Tables ----

  void read_bottleneck(const Item& item, Experiment& experiment) const {
    const toml::table& keys = table(item, "[bottleneck] and below it rate = \"1 Gbps\"");
    check_keys(keys, item.key, {"rate", "delay", "buffer", "mtu", "ecn", "faults"});
    fabric::LinkConfig& link = experiment.bottleneck;
    link.delay = 10_us;
    if (const auto value = find(keys, item.key, "mtu")) experiment.mtu = count(*value, 576, 9000);
    link.rate = rate(required(item, keys, "rate", "\"1 Gbps\""));
    if (const auto delay = find(keys, item.key, "delay")) link.delay = duration(*delay, "10 us", kMaxDelay);
    if (const auto value = find(keys, item.key, "buffer"))
      link.buffer_bytes = buffer(*value, "250 kB", experiment.mtu + encap::kEthernetBytes);
    if (const auto ecn = find(keys, item.key, "ecn")) read_ecn(*ecn, link.ecn, link.buffer_bytes);
    if (const auto faults = find(keys, item.key, "faults")) read_faults(*faults, link.faults);
  }

  /// Reads the model of how the loops of real hosts and of a real switch poll for packets
  /// (docs/explanation/simulator.md).
  void read_machines(const Item& item, Experiment& experiment, bool has_topology) const {
    const toml::table& keys = table(item, "[host_model] and below it look = \"50 us\"");
    check_keys(keys, item.key, {"look", "late", "stalls", "switch"});
    if (has_topology)
      fail(item, "hosts can be modelled only around a bottleneck", "leave the table out, or use a [bottleneck]");
    if (!datapath_kind(experiment.datapath).packets)
      fail(item, fmt::format("datapath {} has no packets for a host to handle", experiment.datapath),
           "leave the table out, or use datapath sim");
    if (const std::string policy = first_policy(experiment, &Policy::priorities); !policy.empty())
      fail(item, "the switch of the model has no priorities",
           fmt::format("leave the table out, or run policy {} without", policy));
    read_loop(item, keys, experiment.machines.host);
    if (const auto own = find(keys, item.key, "switch")) {
      const toml::table& switch_keys = table(*own, "switch = { look = \"50 us\" }");
      check_keys(switch_keys, own->key, {"look", "late", "stalls"});
      read_loop(*own, switch_keys, experiment.machines.network_switch);
    }
  }

  void read_loop(const Item& item, const toml::table& keys, fabric::LoopModel& loop) const {
    const Item look = required(item, keys, "look", "\"50 us\"");
    loop.nap = above_zero(look, "50 us");
    if (loop.nap < Nanos(1'000))
      fail(look, fmt::format("{} is out of range", to_text(loop.nap)),
           "write 1 us or more, or leave [host_model] out for hosts that never sleep");
    if (const auto late = find(keys, item.key, "late")) {
      constexpr std::string_view example = "late = { least = \"50 us\", mean = \"110 us\" }";
      const auto [least, mean] = two_times(*late, "least", "mean", example);
      loop.late_min = duration(least, "50 us", fabric::kLongestLoopTime);
      loop.late_mean = duration(mean, "110 us", fabric::kLongestLoopTime);
      if (loop.late_mean < loop.late_min)
        fail(mean, fmt::format("the mean, {}, is below the least, {}", to_text(loop.late_mean), to_text(loop.late_min)),
             fmt::format("write {}", example));
    }
    if (const auto stalls = find(keys, item.key, "stalls")) {
      const auto [every, mean] =
          two_times(*stalls, "every", "mean", "stalls = { every = \"200 ms\", mean = \"2 ms\" }");
      loop.stall_every = above_zero(every, "200 ms");
      loop.stall_mean = above_zero(mean, "2 ms");
    }
  }

  std::pair<Item, Item> two_times(const Item& item, std::string_view first, std::string_view second,
                                  std::string_view example) const {
    const toml::table& keys = table(item, example);
    check_keys(keys, item.key, {std::string(first), std::string(second)});
    for (const std::string_view key : {first, second})
      if (!find(keys, item.key, key))
        fail(item.line, path(item.key, key), "the key is missing", fmt::format("write {}", example));
    return {*find(keys, item.key, first), *find(keys, item.key, second)};
  }

  Nanos above_zero(const Item& item, std::string_view example) const {
    const Nanos time = duration(item, example, fabric::kLongestLoopTime);
    if (time.count == 0) fail(item, "0 is out of range", fmt::format("write a time above 0, such as \"{}\"", example));
    return time;
  }

  void read_network(const Item& item, Experiment& experiment) const {
    if (!datapath_kind(experiment.datapath).topologies)
      fail(item, fmt::format("datapath {} has one switch and no topology", experiment.datapath), "use datapath sim");
    fabric::SwitchedNetworkConfig& topology = experiment.topology.emplace(read_topology(item));
    topology.seed = experiment.seed;
    experiment.bottleneck.rate = topology.host_rate();
    experiment.bottleneck.delay = topology.topology->delay(topology.topology->out(0).front());
    experiment.bottleneck.buffer_bytes = topology.memory.bytes == 0 ? topology.buffer_bytes : topology.memory.bytes;
    experiment.bottleneck.ecn = topology.ecn;
  }

  // Checks the network as a whole, with priority queues if a policy needs them.
  void check_topology(const Item& item, const Experiment& experiment) const {
    fabric::SwitchedNetworkConfig network = *experiment.topology;
    if (!first_policy(experiment, &Policy::priorities).empty()) network.classes = kPriorities;
    try {
      fabric::check(network);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, error.what())));
    }
  }

  // If host rates differ, limits each job to the rate of its slowest host.
  static void limit_rates(Experiment& experiment) {
    const Topology& topology = *experiment.topology->topology;
    for (const workload::Placement& placement : workload::place(experiment.jobs, topology.hosts())) {
      Rate slowest = topology.fastest_host();
      for (const workload::WorkerHosts& worker : placement.workers)
        slowest = std::min({slowest, topology.capacity(topology.out(worker.from).front()),
                            topology.capacity(topology.in(worker.to).front())});
      Rate& rate = experiment.jobs[placement.job].rate;
      if (slowest < topology.fastest_host() && (rate.is_zero() || rate > slowest)) rate = slowest;
    }
  }

  // ---- Jobs ----

  void read_jobs(const Item& item, Experiment& experiment) {
    std::vector<Item> items = elements(item, "tables", "[[job]] above each job");
    if (items.empty()) fail(item, "there is no job", "add at least one [[job]]");
    check_number(item, items, kMaxJobs, false, "", fmt::format("write at most {}", kMaxJobs));
    if (experiment.datapath == "ring" && options_.max_ring_jobs)
      check_number(item, items, *options_.max_ring_jobs, true,
                   fmt::format(", but datapath ring has ports for {}", *options_.max_ring_jobs),
                   "take jobs out, or use datapath sim");
    std::map<std::string, std::uint32_t, std::less<>> names;
    std::size_t number = 0;
    std::size_t connections = 0;
    for (Item& item_of_job : items) {
      item_of_job.key = fmt::format("job[{}]", ++number);
      workload::Job job = read_job(item_of_job, experiment.warnings);
      read_hosts(item_of_job, experiment.topology, job);
      if (job.programs) check_replay(item_of_job, experiment, job);
      const std::size_t pairs = job.pattern    ? complete_pattern(item_of_job, *item_of_job.node->as_table(), job)
                                : job.programs ? pairs_of(*job.programs)
                                               : std::max<std::size_t>(job.hosts.size(), 1);
      const Item name = *find(*item_of_job.node->as_table(), item_of_job.key, "name");
      for (workload::Job& copy : copies_of(item_of_job, std::move(job))) {
        const auto [first, is_new] = names.try_emplace(copy.name, name.line);
        if (!is_new)
          fail(name,
               first->second < kFirstOverrideLine
                   ? fmt::format("{} is the name of the job of line {} too", in_quotes(copy.name), first->second)
                   : fmt::format("{} is the name of another job too", in_quotes(copy.name)),
               "give each job a name of its own");
        connections += pairs * copy.flows;
        if (connections > kMaxConnections)
          fail(item_of_job, fmt::format("the jobs up to this one have more than {} connections", kMaxConnections),
               "lower count, hosts or flows");
        experiment.jobs.push_back(std::move(copy));
        experiment.places.push_back(fmt::format("{}: {}", place(item_of_job.line), item_of_job.key));
        numbers_.push_back(number);
      }
    }
  }

  // Refuses a replay with more ranks than hosts. Each rank needs a host of the topology, or one side of the bottleneck.
  void check_replay(const Item& item, const Experiment& experiment, const workload::Job& job) const {
    const Item replay = *find(*item.node->as_table(), item.key, "replay");
    const std::size_t ranks = job.programs->ranks.size();
    if (!experiment.topology) {
      if (ranks != 2)
        fail(replay, fmt::format("{} ranks are replayed, but a bottleneck has hosts for 2 ranks of a job", ranks),
             "use a [topology], or choose two with ranks = \"0-1\"");
      if (experiment.datapath == "flow")
        fail(replay, "datapath flow can replay traces only on a topology", "use a [topology], or datapath sim");
      return;
    }
    if (job.hosts.size() != ranks)
      fail(replay, fmt::format("{} ranks are replayed, but the job has {} hosts", ranks, job.hosts.size()),
           "write a host for each rank, such as hosts = [0, 1]");
  }

  // Returns the number of pairs of ranks that exchange data.
  static std::size_t pairs_of(const workload::Programs& programs) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const workload::RankProgram& program : programs.ranks)
      for (const workload::Operation& operation : program.operations)
        if (operation.communicates() && operation.peer > program.rank) pairs.emplace(program.rank, operation.peer);
    return pairs.size();
  }

  // Refuses more than `max` jobs, including copies, before any copy is made. The error names the job that exceeds the
  // limit.
  void check_number(const Item& item, const std::vector<Item>& jobs, std::size_t max, bool at_job,
                    std::string_view limit, std::string_view cure) const {
    std::size_t total = 0;
    std::uint32_t line = 0;
    for (const Item& job : jobs) {
      const toml::table* keys = job.node->as_table();
      const auto* count = keys != nullptr ? keys->get_as<std::int64_t>("count") : nullptr;
      // An invalid count is refused when the job is read.
      total += count != nullptr ? static_cast<std::size_t>(std::clamp<std::int64_t>(count->get(), 1, kMaxJobs + 1)) : 1;
      if (total > max && line == 0) line = at_job || count != nullptr ? job.line : item.line;
    }
    if (total > max) fail(line, item.key, fmt::format("there are {} jobs{}", total, limit), cure);
  }

  // Returns the jobs of an entry: one job, or `count` jobs with different names and start times.
  std::vector<workload::Job> copies_of(const Item& item, workload::Job job) const {
    const toml::table& keys = *item.node->as_table();
    const auto count = find(keys, item.key, "count");
    const auto step = find(keys, item.key, "start_step");
    const std::size_t copies =
        count ? static_cast<std::size_t>(whole(*count, 1, static_cast<std::int64_t>(kMaxJobs))) : 1;
    if (step && !count) fail(*step, "the job has no count", "add count = 2 or more, or leave start_step out");
    if (copies == 1) {
      if (step) static_cast<void>(duration(*step, "3 ms", kMaxCompute));
      return {std::move(job)};
    }
    const Nanos apart = step ? duration(*step, "3 ms", kMaxCompute) : Nanos();
    if (job.start + apart * static_cast<std::int64_t>(copies - 1) > kMaxCompute)
      fail(*step, fmt::format("the last of {} jobs starts after more than {}", copies, to_text(kMaxCompute)),
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

  static const std::vector<std::string>& job_keys() {
    static const std::vector<std::string> keys = [] {
      std::vector<std::string> all = other_keys_of_jobs();
      for (std::string& key : file_keys<workload::Job>()) all.push_back(std::move(key));
      return all;
    }();
    return keys;
  }

  workload::Job read_job(const Item& item, std::vector<std::string>& warnings) const {
    const toml::table& keys = table(item, "[[job]] above each job");
    check_keys(keys, item.key, job_keys());
    workload::Job job;
    job.name = name_text(required(item, keys, "name", "\"vgg19\""));
    read_keys(item, keys, job);
    if (const auto value = find(keys, item.key, "cc")) {
      job.cc = algorithm(*value, "cubic");
      check_needs(job.cc, value, ecn_);
    }
    read_iteration(item, keys, job, warnings);
    for (const std::string_view key : {"pause", "change"})
      if (const auto value = find(keys, item.key, key); value && job.compute_per_iteration().count == 0)
        fail(*value, "the job computes nothing, so nothing can take longer",
             "add compute = \"150 ms\" to the job, or leave the key out");
    return job;
  }

  void read_hosts(const Item& item, const std::optional<fabric::SwitchedNetworkConfig>& topology,
                  workload::Job& job) const {
    const auto hosts = find(*item.node->as_table(), item.key, "hosts");
    if (!hosts) return;
    if (!topology) fail(*hosts, "a bottleneck has no hosts to choose from", "leave the key out, or use a [topology]");
    const std::vector<Item> entries = elements(*hosts, "host numbers", "hosts = [0, 4, 8]");
    if (entries.size() < 2)
      fail(*hosts, "a ring has at least two workers", "write at least two hosts, or leave the key out");
    std::vector<bool> taken(topology->hosts());
    for (const Item& entry : entries) {
      const std::uint32_t host = host_of(entry, *topology->topology);
      if (taken[host]) fail(entry, fmt::format("host {} appears twice", host), "write each host once");
      taken[host] = true;
      job.hosts.push_back(host);
    }
  }

  std::uint32_t host_of(const Item& item, const Topology& topology) const {
    if (!item.node->is_string()) return count(item, 0, topology.hosts() - 1);
    return at(item, [&] { return topology.find_host(text(item, "host 0")); });
  }

  static void warn_of_equal_priorities(Experiment& experiment) {
    const auto& jobs = experiment.jobs;
    const bool equal =
        std::ranges::all_of(jobs, [&](const workload::Job& job) { return job.priority == jobs.front().priority; });
    const std::string policy = first_policy(experiment, &Policy::priorities);
    if (equal && jobs.size() > 1 && !policy.empty())
      experiment.warnings.push_back(fmt::format(
          "all jobs have the same priority: under policy {} they share as under {}; give them different priorities",
          policy, kBaselinePolicy));
  }

  // Warns if jobs need more than the capacity of a link, because no order of bursts can then avoid slow-downs.
  static void warn_if_overbooked(Experiment& experiment) {
    double needed = 0;
    if (experiment.topology) {
      // Considers only links of hosts, because the load of links between switches depends on the paths of the flows.
      std::vector<double> of_host(std::size_t{2} * experiment.topology->hosts());
      for (const workload::Placement& placement : workload::place(experiment.jobs, experiment.topology->hosts())) {
        // The phases of a parameter-server job describe the servers. Workers send less, so this job is not counted.
        const auto& pattern = experiment.jobs[placement.job].pattern;
        if (pattern && pattern->kind == workload::Pattern::Kind::parameter_server) continue;
        const double duty =
            workload::ideal_iteration(experiment.jobs[placement.job], experiment.bottleneck.rate).duty_cycle();
        for (const workload::WorkerHosts& worker : placement.workers) {
          of_host[std::size_t{2} * worker.from] += duty;
          of_host[std::size_t{2} * worker.to + 1] += duty;
        }
      }
      const auto fullest = std::ranges::max_element(of_host);
      if (*fullest > 1)
        experiment.warnings.push_back(fmt::format(
            "the jobs together need {:.0f}% of the link of host {}: they slow each other down under every policy",
            *fullest * 100, (fullest - of_host.begin()) / 2));
      return;
    }
    for (const workload::Job& job : experiment.jobs)
      needed += workload::ideal_iteration(job, experiment.bottleneck.rate).duty_cycle();
    if (needed > 1)
      experiment.warnings.push_back(fmt::format(
          "the jobs together need {:.0f}% of the link: they slow each other down under every policy", needed * 100));
  }

  // Refuses experiments whose times would exceed the range of a result file.
  void check_length(const toml::table& root, const Experiment& experiment) const {
    for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
      const workload::Job& job = experiment.jobs[i];
      // Mean factor by which stragglers prolong an iteration.
      const double straggling = 1 + job.straggler.probability * (job.straggler.factor - 1);
      const std::uint32_t iterations = job.iterations > 0 ? job.iterations : experiment.iterations;
      const double changing = std::max(1.0, job.change.compute_scale);
      double iteration = 0;
      for (const workload::Phase& phase : job.phases) {
        Rate rate = experiment.bottleneck.rate;
        for (const Rate other : {job.rate, phase.rate})
          if (!other.is_zero()) rate = std::min(rate, other);
        iteration += static_cast<double>(phase.compute.count) * straggling * changing +
                     static_cast<double>(phase.bytes) * 8e9 / static_cast<double>(rate.bits_per_second);
      }
      const double all =
          static_cast<double>((job.start + job.start_jitter + job.pause.time).count) + iteration * iterations;
      if (all <= static_cast<double>(kLongestRun.count)) continue;
      const std::string cause =
          fmt::format("{} iterations of job[{}] take {:.6g} days or more", iterations, numbers_[i], all / 86'400e9);
      const std::string cure =
          fmt::format("lower them, or what an iteration computes and sends, for at most {:.0f} days",
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

  bool ecn_ = false;  // whether the shared link marks packets

  std::vector<std::size_t> numbers_;  // by index in `Experiment::jobs`: the job's number in the file, from 1
};

}  // namespace

Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options) {
  return load_as(path, kExperimentFile, {FileKind::experiment}, [&](const std::string& text, const std::string& file) {
    return parse_experiment(text, file, options);
  });
}

namespace {

/// Returns the shared objects of the algorithms that jobs use, without duplicates.
std::vector<std::filesystem::path> libraries_of(const Experiment& experiment) {
  std::vector<std::filesystem::path> files;
  const auto add = [&](const std::string& name) {
    const std::filesystem::path file = cc::library_file(cc::find_algorithm(name));
    if (!file.empty() && std::ranges::find(files, file) == files.end()) files.push_back(file);
  };
  add(experiment.cc);
  for (const workload::Job& job : experiment.jobs)
    if (!job.cc.empty()) add(job.cc);
  return files;
}

// Returns a hash of the experiment. For settings that the command line can override, the hash covers the value in use;
// for all other keys, the text in the file.
std::string fingerprint_of(const Experiment& experiment, toml::table root) {
  for (const std::string_view key : {"name", "seed", "datapath", "iterations", "cc", "balance", "paths", "policies"})
    root.erase(key);
  Fingerprint result;
  result.add(fmt::format("{} {} {} {}\n{}\n", experiment.datapath, experiment.iterations, experiment.cc,
                         joined(experiment.policies), to_toml(root)));
  if (experiment.balance != balancers().front().name)
    result.add(fmt::format("balance {} {}\n", experiment.balance, experiment.paths));
  // Adds the phases and programs of jobs, because those from traces are in separate files.
  for (const workload::Job& job : experiment.jobs)
    for (const workload::Phase& phase : job.phases)
      result.add(fmt::format("{} {} {} {} {}\n", phase.kind == workload::Phase::Kind::communicate, phase.compute.count,
                             phase.bytes, phase.rate.bits_per_second, phase.overlap));
  for (const workload::Job& job : experiment.jobs)
    if (job.programs)
      for (const workload::RankProgram& program : job.programs->ranks) {
        result.add(fmt::format("rank {} {}\n", program.rank, program.ranks));
        for (const workload::Operation& operation : program.operations) {
          result.add(fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(operation.kind), operation.reduce,
                                 operation.barrier, operation.peer, operation.bytes, operation.offset, operation.tag,
                                 operation.compute.count, operation.rate.bits_per_second));
          for (std::uint32_t i = 0; i < operation.waits; ++i)
            result.add(fmt::format(" {}", program.waits[operation.first_wait + i]));
          result.add("\n");
        }
      }
  // Adds the code of algorithms in shared objects, which are separate files.
  for (const std::filesystem::path& library : libraries_of(experiment))
    result.add(read_text_file(library, library.string(), kLibraryFile));
  // Adds the links of a topology with kind = "file", because they are in a separate file.
  const toml::node_view kind = root["topology"]["kind"];
  if (experiment.topology && kind.value_or(std::string_view()) == "file") {
    const Topology& topology = *experiment.topology->topology;
    for (Topology::Link link = 0; link < topology.links(); ++link)
      result.add(fmt::format("{} {} {}\n", topology.link_name(link), topology.capacity(link).bits_per_second,
                             topology.delay(link).count));
  }
  return result.text();
}

}  // namespace

Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options) {
  toml::table root = parse_toml(text, file, "docs/reference/experiment-file.md");
  apply_overrides(root, options.overrides);
  Experiment experiment = Reader(file, options).read(root);
  experiment.fingerprint = fingerprint_of(experiment, std::move(root));
  return experiment;
}

}  // namespace mltcp::experiment
