// Reader of cluster files (see cluster_file.h).
#include "mltcp/lab/experiment/cluster/cluster_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/settings_reader.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/models.h"
#include "mltcp/lab/workload/traces/job_table.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kClusterFile{"a cluster file", 64U << 20};
constexpr TextFile kArrivalFile{"a file of arrivals, or a table of jobs", 512U << 20};
constexpr std::int64_t kMaxJobs = 20'000;  // maximum number of arriving jobs; each job uses two UDP port numbers
constexpr std::size_t kMaxChoices = 1000;
constexpr std::int64_t kMaxBatch = 1'000'000;
constexpr std::int64_t kMaxSeeds = 1000;
constexpr std::int64_t kMaxCandidates = 1000;
constexpr double kMaxLoad = 100;
constexpr std::int64_t kMaxGpusPerHost = 1024;
// Keys of [arrivals] that apply only to tables of jobs.
constexpr std::array<std::string_view, 6> kTableKeys{"gpus_per_host", "length_scale", "from", "to", "vc", "states"};
constexpr double kMaxJitter = 1;
constexpr double kMaxTflops = 1e6;
// If an up phase has fewer round trips than this, random effects dominate the effect of MLTCP's function F
// (docs/reference/tables/small-bursts.md).
constexpr double kRoundTripsToReact = 300;

/// Defaults for all types of jobs in a file.
struct TypeDefaults {
  std::vector<std::uint32_t> workers;
  std::pair<std::uint32_t, std::uint32_t> iterations{0, 0};
  double jitter = 0;
  std::uint32_t flows = 1;
};

class ClusterReader : public SettingsReader {
 public:
  ClusterReader(std::string file, const ClusterFileOptions& options)
      : SettingsReader(std::move(file), no_options()), options_(options) {}

  ClusterExperiment read(const toml::table& root) {
    if (root.empty()) fail(1, "cluster", "the file is empty", "describe a topology, arrivals and at least one type");
    load_algorithms(root, "type");
    check_keys(root, "", with_parameters(top_level_keys()));
    experiment_.file = file_;
    experiment_.name = one_line(std::filesystem::path(file_).stem().string());
    if (const auto item = find(root, "", "name")) experiment_.name = name_text(*item);
    read_top(root);
    read_schemes(root);
    if (const auto item = find(root, "", "mltcp")) {
      read_mltcp(*item, experiment_.mltcp);
      check_mltcp(*item);
    }
    read_parameters(root, experiment_.parameters);
    const auto topology = find(root, "", "topology");
    if (!topology)
      fail(1, "topology", "the table is missing", "add [topology] with kind = \"leaf-spine\" and its rates");
    experiment_.topology = read_topology(*topology, experiment_.rate_scale);
    check_hosts(*topology);
    at(*topology, [&] { fabric::check(experiment_.topology); });
    const auto cc = find(root, "", "cc");
    check_needs(experiment_.cc, cc ? cc : topology, has_marks());
    if (const auto item = find(root, "", "schedule")) read_schedule(*item, experiment_.schedule);
    if (const auto item = find(root, "", "gpu")) read_gpu(*item);

    const auto arrivals = find(root, "", "arrivals");
    if (!arrivals)
      fail(1, "arrivals", "the table is missing", "add [arrivals] with jobs = 40 and load = 0.9, or a file");
    const auto list = find(root, "", "type");
    const TypeDefaults defaults = read_defaults(*arrivals);
    if (list) read_types(*list, defaults);
    read_arrivals(*arrivals, defaults);
    check_work(list ? *list : *arrivals);
    warn();
    return std::move(experiment_);
  }

 private:
  static const FileOptions& no_options() {
    static const FileOptions options;
    return options;
  }
  static const std::vector<std::string>& top_level_keys() {
    static const std::vector<std::string> keys{
        "name",    "level",    "seed",     "seeds",      "time_scale", "rate_scale",       "cc",
        "schemes", "mltcp",    "schedule", "candidates", "min_score",  "max_slot_stretch", "gpu",
        "type",    "topology", "arrivals"};
    return keys;
  }
  [[nodiscard]] std::string hint(std::string_view prefix, std::string_view key) const override {
    if (prefix.empty() && (key == "job" || key == "bottleneck" || key == "policies" || key == "datapath"))
      return "the key belongs to an experiment file: use mltcp run";
    if (!prefix.empty() && contains(with_parameters(top_level_keys()), key))
      return "the key belongs to the top level: write it above the first [table] of the file";
    return {};
  }

  // At flow level there are no packets to mark, so algorithms that need marks are allowed.
  [[nodiscard]] bool has_marks() const {
    return experiment_.topology.ecn.enabled || experiment_.level == ClusterExperiment::Level::flow;
  }

  // The rate of a job must not depend on its placement, so all hosts need the same rate.
  void check_hosts(const Item& item) const {
    const Topology& topology = *experiment_.topology.topology;
    for (Topology::Host host = 0; host < topology.hosts(); ++host)
      for (const auto& links : {topology.out(host), topology.in(host)})
        for (const Topology::Link link : links)
          if (topology.capacity(link) != topology.fastest_host())
            fail(item,
                 fmt::format("link {} is slower than the link of another host", in_quotes(topology.link_name(link))),
                 "give all hosts of the cluster links of the same rate");
  }

  void read_top(const toml::table& root) {
    using Level = ClusterExperiment::Level;
    if (const auto item = find(root, "", "level"))
      experiment_.level = one_of<Level>(*item, {{"packet", Level::packet}, {"flow", Level::flow}});
    if (options_.level) experiment_.level = *options_.level;
    if (const auto item = find(root, "", "seed"))
      experiment_.seed = static_cast<std::uint64_t>(whole(*item, 0, std::numeric_limits<std::int64_t>::max()));
    if (options_.seed) experiment_.seed = *options_.seed;
    if (const auto item = find(root, "", "seeds")) experiment_.seeds = count(*item, 1, kMaxSeeds);
    if (options_.seeds) experiment_.seeds = *options_.seeds;
    if (const auto item = find(root, "", "time_scale")) experiment_.time_scale = factor(*item, 1);
    if (const auto item = find(root, "", "rate_scale")) experiment_.rate_scale = factor(*item, 1);
    if (const auto item = find(root, "", "candidates")) experiment_.candidates = count(*item, 1, kMaxCandidates);
    if (const auto item = find(root, "", "min_score")) experiment_.min_score = share(*item, 1);
    if (const auto item = find(root, "", "max_slot_stretch")) experiment_.max_slot_stretch = share(*item, 1);
    if (const auto item = find(root, "", "cc")) experiment_.cc = algorithm(*item, "dctcp");
  }

  void read_schemes(const toml::table& root) {
    for (const std::string& name : words(root, "schemes", "[\"locality\", \"compatible+schedule\"]", "--scheme",
                                         options_.schemes, default_schemes(), objection_to_scheme))
      experiment_.schemes.push_back(scheme_from(name));
  }

  double share(const Item& item, double max) const {
    const double result = decimal(item, "0.05");
    if (result < 0 || result > max)
      fail(item, fmt::format("{} is out of range", result), fmt::format("write a number from 0 to {}", max));
    return result;
  }

  void check_mltcp(const Item& item) const {
    const toml::table& keys = *item.node->as_table();
    const bool scheduled =
        std::ranges::any_of(experiment_.schemes, [](const Scheme& scheme) { return scheme.policy->slots; });
    if (experiment_.mltcp.learn_iterations && scheduled)
      fail(*find(keys, item.key, "iterations"), "a schedule needs jobs that announce their iterations",
           "write \"exact\"");
    if (experiment_.level == ClusterExperiment::Level::packet) return;
    if (experiment_.mltcp.learn_iterations)
      fail(*find(keys, item.key, "iterations"), "level flow has no packets to learn from", "write \"exact\"");
    if (experiment_.mltcp.scale_decrease)
      fail(*find(keys, item.key, "decrease"), "level flow has no congestion windows to decrease", "leave it out");
  }

  void read_gpu(const Item& item) {
    const toml::table& keys = table(item, "[gpu] and below it tflops = 156");
    check_keys(keys, item.key, {"tflops", "utilisation", "bytes_per_parameter"});
    if (const auto value = find(keys, item.key, "tflops")) {
      const double tflops = factor(*value, kMaxTflops);
      if (tflops < 1e-3) fail(*value, fmt::format("{} is out of range", tflops), "write 0.001 or more");
      gpu_.peak_flops = tflops * 1e12;
    }
    if (const auto value = find(keys, item.key, "utilisation")) gpu_.utilisation = factor(*value, 1);
    if (const auto value = find(keys, item.key, "bytes_per_parameter")) gpu_.bytes_per_parameter = factor(*value, 16);
  }

  // ---- Types ----

  /// Returns a list of numbers, written as an array or as a single whole number.
  std::vector<std::uint32_t> numbers(const Item& item, std::int64_t min, std::int64_t max) const {
    if (!item.node->is_array()) return {count(item, min, max)};
    const std::vector<Item> list = elements(item, "numbers", "numbers");
    if (list.empty() || list.size() > kMaxChoices)
      fail(item, fmt::format("the list has {} numbers", list.size()), fmt::format("write 1 to {}", kMaxChoices));
    std::vector<std::uint32_t> result;
    for (const Item& number : list) result.push_back(count(number, min, max));
    return result;
  }

  std::vector<std::uint32_t> workers(const Item& item) const {
    const auto hosts = static_cast<std::int64_t>(experiment_.topology.hosts());
    return numbers(item, 2, hosts);
  }

  std::pair<std::uint32_t, std::uint32_t> iterations(const Item& item) const {
    const std::vector<std::uint32_t> range = numbers(item, 1, kMaxIterations);
    if (range.size() > 2 || range.front() > range.back())
      fail(item, "it is neither a number nor a range", "write iterations = 500, or iterations = [200, 1000]");
    return {range.front(), range.back()};
  }

  TypeDefaults read_defaults(const Item& item) const {
    const toml::table& keys = table(item, "[arrivals] and below it jobs = 40");
    check_keys(keys, item.key,
               {"jobs", "load", "every", "at_start", "file", "workers", "iterations", "jitter", "flows",
                "gpus_per_host", "length_scale", "from", "to", "vc", "states"});
    TypeDefaults result;
    if (const auto value = find(keys, item.key, "workers")) result.workers = workers(*value);
    if (const auto value = find(keys, item.key, "iterations")) result.iterations = iterations(*value);
    if (const auto value = find(keys, item.key, "jitter")) result.jitter = share(*value, kMaxJitter);
    if (const auto value = find(keys, item.key, "flows")) result.flows = count(*value, 1, kMaxFlows);
    return result;
  }

  /// Describes how the jobs of a type are made: from a model, a trace or fixed phases.
  struct Maker {
    Item item;  ///< the type's position in the file, for error messages
    const workload::Model* model = nullptr;
    std::filesystem::path trace;  ///< path of the trace; used only if `model` is null
    TraceKeys trace_keys;
    /// The phases of a type without model and trace. All other settings of this job apply to every job of the type.
    workload::Job fixed;
    double jitter = 0;
  };

  void read_types(const Item& item, const TypeDefaults& defaults) {
    const toml::array* list = item.node->as_array();
    if (list == nullptr || list->empty())
      fail(item, "an array of tables is expected", "write [[type]] above each type of job");
    std::size_t number = 0;
    for (const toml::node& node : *list)
      read_type({&node, fmt::format("type[{}]", ++number), line_of(node, item.line)}, defaults);
  }

  void read_type(const Item& item, const TypeDefaults& defaults) {
    const toml::table& keys = table(item, "[[type]] above each type of job");
    check_keys(
        keys, item.key,
        {"name", "model", "trace", "profile", "compute", "communicate", "phases", "workers", "batch", "iterations",
         "weight", "jitter", "straggler", "flows", "cc", "network", "gather_size", "compute_scale", "bytes_scale"});
    JobType type;
    Maker maker;
    maker.item = item;
    const auto model = find(keys, item.key, "model");
    const auto trace = find(keys, item.key, "trace");
    const auto name = find(keys, item.key, "name");
    if (model && trace) fail(*trace, "the type has a model too", "keep one of the two");
    if (model) {
      refuse_besides("model", keys, item, {"profile", "compute", "communicate", "phases"});
      use_model(*model, text(*model, "VGG16"), type, maker);
    } else if (trace) {
      refuse_besides("trace", keys, item, {"profile", "compute", "communicate", "phases"});
      use_trace(*trace, named_file(*trace, kTraceExample), type, maker);
      maker.trace_keys = read_trace_keys(item, keys);
    } else {
      static_cast<void>(required(item, keys, "name", "\"vgg19\""));
      if (const auto phases = find(keys, item.key, "phases")) {
        refuse_besides("phases", keys, item, {"profile", "compute", "communicate"});
        read_phases(*phases, maker.fixed);
      } else if (const auto profile = find(keys, item.key, "profile")) {
        refuse_besides("profile", keys, item, {"compute", "communicate"});
        read_profile(*profile, maker.fixed);
      } else {
        read_simple(item, keys, maker.fixed);
      }
      type.source = "phases";
    }
    if (!trace)
      for (const std::string_view key : {"network", "gather_size", "compute_scale", "bytes_scale"})
        if (const auto value = find(keys, item.key, key))
          fail(*value, "the key belongs to a trace, but the type has none",
               "add trace = \"FILE\" or leave the key out");
    if (name) type.name = name_text(*name);

    if (const auto value = find(keys, item.key, "weight")) type.choices.weight = factor(*value, kMaxWeight);
    type.choices.workers = defaults.workers;
    if (const auto value = find(keys, item.key, "workers")) type.choices.workers = workers(*value);
    if (const auto value = find(keys, item.key, "batch")) {
      if (!model) fail(*value, "only a model has a batch", "leave it out");
      type.choices.batches = numbers(*value, 1, kMaxBatch);
    }
    auto range = defaults.iterations;
    if (const auto value = find(keys, item.key, "iterations")) range = iterations(*value);
    std::tie(type.choices.min_iterations, type.choices.max_iterations) = range;
    maker.jitter = defaults.jitter;
    if (const auto value = find(keys, item.key, "jitter")) maker.jitter = share(*value, kMaxJitter);
    read_key(item, keys, &workload::Job::straggler, maker.fixed);
    maker.fixed.flows = defaults.flows;
    read_key(item, keys, &workload::Job::flows, maker.fixed);
    if (const auto value = find(keys, item.key, "cc")) {
      type.cc = algorithm(*value, "dctcp");
      check_needs(type.cc, value, has_marks());
    }
    add_type(std::move(type), std::move(maker));
  }

  void refuse_besides(std::string_view what, const toml::table& keys, const Item& item,
                      std::initializer_list<std::string_view> others) const {
    for (const std::string_view other : others)
      if (const auto value = find(keys, item.key, other))
        fail(*value, fmt::format("the type has {} too", what == "phases" ? "phases" : fmt::format("a {}", what)),
             "keep one of the two");
  }

  void use_model(const Item& item, const std::string& name, JobType& type, Maker& maker) const {
    maker.model = at(item, [&] { return &workload::find_model(name); });
    type.name = maker.model->name;
    type.source = fmt::format("model {}", maker.model->name);
  }

  static void use_trace(const Item& item, const std::filesystem::path& path, JobType& type, Maker& maker) {
    maker.item = item;
    maker.trace = path;
    type.name = one_line(path.stem().string());
    type.source = one_line(fmt::format("trace {}", path.filename().string()));
  }

  void add_type(JobType type, Maker maker) {
    for (const JobType& other : experiment_.types)
      if (other.name == type.name)
        fail(maker.item, fmt::format("{} is the name of another type too", in_quotes(type.name)),
             "give each type a name of its own");
    experiment_.types.push_back(std::move(type));
    makers_.push_back(std::move(maker));
  }

  /// Makes the job of type number `index` with `workers` workers and batch size `batch`, unless this job exists
  /// already.
  void make(std::uint32_t index, std::uint32_t workers, std::uint32_t batch) {
    JobType& type = experiment_.types[index];
    const Maker& maker = makers_[index];
    const auto [made, is_new] = type.jobs.try_emplace({workers, batch});
    if (!is_new) return;
    workload::Job& job = made->second;
    job = maker.fixed;
    job.name = type.name;
    if (maker.model != nullptr) {
      workload::ModelOptions options = gpu_;
      options.workers = workers;
      options.batch = batch;
      job.phases = at(maker.item, [&] { return workload::make_job(*maker.model, options).phases; });
    } else if (!maker.trace.empty()) {
      TraceKeys beside = maker.trace_keys;
      beside.view.workers = workers;
      std::vector<std::string> warnings;
      job.phases = load_phases(maker.item, maker.trace, beside, type.name, warnings);
      if (type.jobs.size() == 1)
        experiment_.warnings.insert(experiment_.warnings.end(), warnings.begin(), warnings.end());
    }
    check_iteration(maker.item, !maker.trace.empty(), job);
    for (workload::Phase& phase : job.phases) {
      phase.compute = scaled(phase.compute);
      if (phase.bytes > 0)
        phase.bytes =
            std::max<Bytes>(1, static_cast<Bytes>(std::llround(static_cast<double>(phase.bytes) *
                                                               experiment_.time_scale * experiment_.rate_scale)));
      phase.rate = Rate(static_cast<std::uint64_t>(
          std::round(static_cast<double>(phase.rate.bits_per_second) * experiment_.rate_scale)));
    }
    job.rate = experiment_.topology.host_rate();
    job.jitter = Nanos(std::llround(static_cast<double>(job.compute_per_iteration().count) * maker.jitter));
  }

  [[nodiscard]] Nanos scaled(Nanos time) const {
    return Nanos(std::llround(static_cast<double>(time.count) * experiment_.time_scale));
  }

  // ---- Arrivals ----

  void read_arrivals(const Item& item, const TypeDefaults& defaults) {
    const toml::table& keys = *item.node->as_table();
    const auto file = find(keys, item.key, "file");
    const auto jobs = find(keys, item.key, "jobs");
    const auto load = find(keys, item.key, "load");
    const auto every = find(keys, item.key, "every");
    const auto at_start = find(keys, item.key, "at_start");
    if (file) {
      for (const auto& other : {jobs, load, every, at_start})
        if (other) fail(*other, "the arrivals come from a file", "leave it out, or leave file out");
      read_file(item, *file, defaults);
      return;
    }
    refuse_table_keys(item);
    if (experiment_.types.empty())
      fail(item.line, "type", "there is no type of job", "add at least one [[type]], or a file of arrivals");
    if (!jobs) fail(item.line, path(item.key, "jobs"), "the key is missing", "write jobs = 40, or file = \"FILE.csv\"");
    experiment_.arriving = count(*jobs, 1, kMaxJobs);
    if (at_start) experiment_.at_start = count(*at_start, 0, experiment_.arriving);
    for (std::uint32_t i = 0; i < experiment_.types.size(); ++i) {
      const workload::TypeChoices& choices = experiment_.types[i].choices;
      const Item& type = makers_[i].item;
      if (choices.workers.empty())
        fail(type.line, path(type.key, "workers"), "the key is missing",
             "write workers = [2, 4, 8] here or in [arrivals]");
      if (choices.min_iterations == 0)
        fail(type.line, path(type.key, "iterations"), "the key is missing",
             "write iterations = [200, 1000] here or in [arrivals]");
      for (const std::uint32_t workers : choices.workers)
        for (const std::uint32_t batch : choices.batches) make(i, workers, batch);
    }
    if (load && every) fail(*every, "load is given too", "keep one of the two");
    const double gaps = experiment_.arriving - experiment_.at_start;
    if (experiment_.at_start == experiment_.arriving) {
      for (const auto& other : {load, every})
        if (other) fail(*other, "all jobs arrive at the start", "leave it out");
      return;
    }
    if (!load && !every)
      fail(item.line, path(item.key, "load"), "the key is missing", "write load = 0.9, or every = \"10 s\"");
    if (every) {
      experiment_.gap = scaled(duration(*every, "10 s", kMaxCompute));
      if (experiment_.gap.count == 0) fail(*every, "it is 0", "write a time above 0, or use at_start");
      if (static_cast<double>(experiment_.gap.count) * gaps > static_cast<double>(kLongestRun.count))
        fail(*every,
             fmt::format("the last job would arrive after {:.3g} days", experiment_.gap.seconds() * gaps / 86'400),
             "write a shorter time, or fewer jobs");
    } else {
      experiment_.load = factor(*load, kMaxLoad);
      const double gap = mean_work() / (experiment_.load * experiment_.topology.hosts());
      if (gap * gaps > static_cast<double>(kLongestRun.count) || gap < 1)
        fail(*load,
             fmt::format("a job would arrive every {:.3g} s, the last after {:.3g} days", gap * 1e-9,
                         gap * gaps / 86'400e9),
             "write a load nearer to 1, or fewer jobs");
      experiment_.gap = Nanos(std::llround(gap));
    }
  }

  /// Returns the mean work of a job in isolation: duration in nanoseconds * number of hosts.
  [[nodiscard]] double mean_work() const {
    double weights = 0;
    double sum = 0;
    for (const JobType& type : experiment_.types) {
      const workload::TypeChoices& choices = type.choices;
      double work = 0;
      for (const std::uint32_t workers : choices.workers)
        for (const std::uint32_t batch : choices.batches)
          work += static_cast<double>(alone(type.jobs.at({workers, batch})).count) * workers;
      work /= static_cast<double>(choices.workers.size() * choices.batches.size());
      sum += type.choices.weight * work * choices.mean_iterations();
      weights += type.choices.weight;
    }
    return sum / weights;
  }

  [[nodiscard]] Nanos alone(const workload::Job& job) const {
    return workload::ideal_iteration(job, experiment_.topology.host_rate()).length;
  }

  void read_file(const Item& arrivals, const Item& item, const TypeDefaults& defaults) {
    const std::filesystem::path path = named_file(item, "arrivals.csv");
    const auto reading = [&](const auto& read) { return at(item, read); };
    const std::string text = reading([&] { return read_text_file(path, path.string(), kArrivalFile); });
    if (workload::is_job_table(text)) {
      const workload::JobTableOptions options = table_options(arrivals);
      read_table(arrivals, item, reading([&] { return workload::parse_job_table(text, path.string(), options); }));
    } else {
      refuse_table_keys(arrivals);
      read_listed(item, path, reading([&] { return workload::parse_arrivals(text, path.string()); }), defaults);
    }
  }

  void refuse_table_keys(const Item& item) const {
    for (const std::string_view key : kTableKeys)
      if (const auto value = find(*item.node->as_table(), item.key, key))
        fail(*value, "the key belongs to a table of jobs of Helios or Philly",
             "name such a table with file, or leave the key out");
  }

  [[nodiscard]] std::optional<Nanos> time_of_table(const Item& item, std::string_view key) const {
    const auto value = find(*item.node->as_table(), item.key, key);
    if (!value) return std::nullopt;
    const std::string& written = text(*value, "2020-06-01 12:00:00");
    const std::optional<Nanos> time = workload::time_of_table(written);
    if (!time)
      fail(*value, fmt::format("{} is not a time in the years 2000 to 2099", in_quotes(written)),
           "write \"2020-06-01 12:00:00\", or only the day");
    return time;
  }

  /// Returns a list of texts, written as an array or as a single text.
  [[nodiscard]] std::vector<std::string> texts(const Item& item, std::string_view example) const {
    if (!item.node->is_array()) return {text(item, example)};
    std::vector<std::string> result;
    for (const Item& entry : elements(item, "texts", example)) result.push_back(text(entry, example));
    return result;
  }

  [[nodiscard]] workload::JobTableOptions table_options(const Item& item) const {
    const toml::table& keys = *item.node->as_table();
    workload::JobTableOptions options;
    options.from = time_of_table(item, "from");
    options.to = time_of_table(item, "to");
    if (options.from && options.to && *options.from >= *options.to)
      fail(*find(keys, item.key, "to"), "the time is not after from", "write a later time");
    if (const auto vc = find(keys, item.key, "vc")) options.vcs = texts(*vc, "vcJkd");
    if (const auto states = find(keys, item.key, "states")) options.states = texts(*states, "COMPLETED");
    return options;
  }

  /// Reads a table of jobs. The jobs' types are drawn at random. The number of iterations of each job follows from the
  /// job's duration in the table.
  void read_table(const Item& arrivals, const Item& item, workload::JobTable table) {
    const toml::table& keys = *arrivals.node->as_table();
    const auto per_host = count(required(arrivals, keys, "gpus_per_host", "8"), 1, kMaxGpusPerHost);
    const auto scale = find(keys, arrivals.key, "length_scale");
    const double shorter = (scale ? factor(*scale, 1) : 1) * experiment_.time_scale;
    if (experiment_.types.empty())
      fail(item, "the table does not say what jobs compute and send", "add [[type]]s to draw from");
    for (const JobType& type : experiment_.types)
      if (!type.choices.workers.empty() || type.choices.min_iterations > 0)
        fail(item,
             fmt::format("type {} has workers or iterations, but they follow from the table", in_quotes(type.name)),
             "leave them out here and in [[type]]");
    std::size_t too_large = 0;
    for (const workload::JobTable::Row& row : table.jobs) {
      workload::Arrival job;
      job.gpus = row.gpus;
      job.workers = (row.gpus + per_host - 1) / per_host;
      if (job.workers > experiment_.topology.hosts()) {
        ++too_large;
        continue;
      }
      const auto times = [&](Nanos time) { return static_cast<double>(time.count) * shorter; };
      const double at = times(row.submitted - table.jobs.front().submitted);
      if (at > static_cast<double>(kLongestRun.count) || times(row.ran) > static_cast<double>(kLongestRun.count))
        fail(item, "the table covers more than 104 days", "set from and to, or lower length_scale");
      job.at = Nanos(std::llround(at));
      job.length = Nanos(std::max<std::int64_t>(1, std::llround(times(row.ran))));
      experiment_.listed.push_back(job);
    }
    experiment_.gpus_per_host = per_host;
    experiment_.types_are_drawn = true;
    experiment_.warnings.insert(experiment_.warnings.end(), table.warnings.begin(), table.warnings.end());
    if (too_large > 0)
      experiment_.warnings.push_back(one_line(
          fmt::format("{}: {} of {} jobs are left out: they need more than the {} hosts of the topology",
                      named_file(item, "").string(), too_large, table.jobs.size(), experiment_.topology.hosts())));
    if (experiment_.listed.empty() || experiment_.listed.size() > static_cast<std::size_t>(kMaxJobs))
      fail(item, fmt::format("{} of {} jobs fit into the topology", experiment_.listed.size(), table.jobs.size()),
           fmt::format("set from, to and vc so that 1 to {} do", kMaxJobs));
    const Nanos first = experiment_.listed.front().at;
    std::map<std::uint32_t, Nanos> longest;  // duration of the longest job, by number of hosts
    for (workload::Arrival& job : experiment_.listed) {
      job.at = job.at - first;
      longest[job.workers] = std::max(longest[job.workers], job.length);
    }
    for (std::uint32_t i = 0; i < experiment_.types.size(); ++i)
      for (const auto& [workers, length] : longest)
        for (const std::uint32_t batch : experiment_.types[i].choices.batches)
          if (workers > 1) {
            make(i, workers, batch);
            const Nanos once = alone(experiment_.types[i].jobs.at({workers, batch}));
            if (length.count / once.count >= kMaxIterations)
              fail(item,
                   fmt::format("a job of {} hosts runs for {:.3g} s, but an iteration of type {} takes only {}",
                               workers, length.seconds(), in_quotes(experiment_.types[i].name), to_text(once)),
                   fmt::format("lower length_scale so that the job has at most {} iterations", kMaxIterations));
          }
  }

  void read_listed(const Item& item, const std::filesystem::path& path, const workload::ArrivalFile& file,
                   const TypeDefaults& defaults) {
    if (file.rows.size() > static_cast<std::size_t>(kMaxJobs))
      fail(item, fmt::format("{} jobs arrive", file.rows.size()), fmt::format("list at most {}", kMaxJobs));
    std::vector<std::uint32_t> types(file.jobs.size());
    std::vector<bool> known(file.jobs.size());
    for (const workload::ArrivalFile::Row& row : file.rows) {
      const auto refuse = [&](std::string_view column, std::string_view wrong) {
        throw InputError(one_line(fmt::format("{}:{}: {}: {}", path.string(), row.line, column, wrong)));
      };
      std::uint32_t& type = types[row.arrival.type];
      if (!known[row.arrival.type]) {
        try {
          type = type_called({item.node, item.key, item.line, fmt::format("{}:{}: job", path.string(), row.line)},
                             file.jobs[row.arrival.type], path, defaults);
        } catch (const InputError& error) {
          refuse("job", error.what());
        }
        known[row.arrival.type] = true;
      }
      if (row.arrival.workers > experiment_.topology.hosts())
        refuse("workers", fmt::format("{} workers do not fit on {} hosts; write fewer workers, or a larger topology",
                                      row.arrival.workers, experiment_.topology.hosts()));
      if (row.arrival.batch > 0 && makers_[type].model == nullptr)
        refuse("batch", "only a model has a batch; leave it out");
      // If a type is defined only by the arrivals file, error messages name the line in that file.
      if (std::string& place = makers_[type].item.elsewhere; !place.empty())
        place = fmt::format("{}:{}: job", path.string(), row.line);
      make(type, row.arrival.workers, row.arrival.batch);
      workload::Arrival arrival = row.arrival;
      arrival.type = type;
      arrival.at = scaled(arrival.at);
      experiment_.listed.push_back(arrival);
    }
  }

  /// Returns the index of the type with this name: a [[type]] if there is one, or a new type from a model or a trace.
  /// Error messages refer to `item`.
  std::uint32_t type_called(const Item& item, const std::string& name, const std::filesystem::path& csv,
                            const TypeDefaults& defaults) {
    const auto& types = experiment_.types;
    const auto named = [&](std::string_view wanted) { return std::ranges::find(types, wanted, &JobType::name); };
    if (const auto at = named(name); at != types.end()) return static_cast<std::uint32_t>(at - types.begin());
    JobType type;
    Maker maker;
    maker.item = item;
    maker.jitter = defaults.jitter;
    maker.fixed.flows = defaults.flows;
    const std::filesystem::path trace = csv.parent_path() / name;
    if (name.find_first_of("./") != std::string::npos) {
      use_trace(item, trace, type, maker);
      type.name = name;
    } else {
      try {
        maker.model = &workload::find_model(name);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}, or give a [[type]] this name, or write the path of a trace", error.what()));
      }
      // The case of a model's name is ignored. A [[type]] with the model's name has priority over the model.
      if (const auto at = named(maker.model->name); at != types.end())
        return static_cast<std::uint32_t>(at - types.begin());
      type.name = maker.model->name;
      type.source = fmt::format("model {}", maker.model->name);
    }
    const std::string wrong = objection_to_name(type.name);
    if (!wrong.empty()) throw InputError(wrong);
    add_type(std::move(type), std::move(maker));
    return static_cast<std::uint32_t>(experiment_.types.size() - 1);
  }

  // ---- Checks of the whole file ----

  void check_work(const Item& item) const {
    const auto too_long = [&](const JobType& type, const workload::Job& job, std::uint32_t iterations) {
      const double all = static_cast<double>(alone(job).count) * iterations;
      if (all <= static_cast<double>(kLongestRun.count)) return;
      fail(item, fmt::format("a job of type {} runs for {:.6g} days", in_quotes(type.name), all / 86'400e9),
           fmt::format("lower its iterations, or what an iteration computes and sends, for at most {:.0f} days",
                       static_cast<double>(kLongestRun.count) / 86'400e9));
    };
    for (const JobType& type : experiment_.types)
      for (const auto& [key, job] : type.jobs) too_long(type, job, type.choices.max_iterations);
    if (experiment_.types_are_drawn) return;
    for (const workload::Arrival& arrival : experiment_.listed) {
      const JobType& type = experiment_.types[arrival.type];
      too_long(type, type.jobs.at({arrival.workers, arrival.batch}), arrival.iterations);
    }
  }

  void warn() {
    const fabric::SwitchedNetworkConfig& topology = experiment_.topology;
    const bool packets = experiment_.level == ClusterExperiment::Level::packet;
    if (!packets) return;
    const Nanos round_trip = topology.round_trip_delay() + topology.host_rate().time_for(topology.mtu) * 4;
    for (const JobType& type : experiment_.types)
      for (const auto& [key, job] : type.jobs) {
        const auto sending = workload::ideal_iteration(job, topology.host_rate()).sending;
        if (static_cast<double>(sending.count) >= kRoundTripsToReact * static_cast<double>(round_trip.count)) continue;
        experiment_.warnings.push_back(fmt::format(
            "jobs of type {} send for {} an iteration, which is {:.0f} round trips: too few for congestion control to "
            "settle, so its noise decides which job is faster; raise time_scale until they are {:.0f} or more",
            in_quotes(type.name), to_text(sending),
            static_cast<double>(sending.count) / static_cast<double>(round_trip.count), kRoundTripsToReact));
        break;
      }
  }

  const ClusterFileOptions& options_;
  ClusterExperiment experiment_;
  std::vector<Maker> makers_;  ///< by type
  workload::ModelOptions gpu_;
};

struct NamedPlacement {
  std::string_view name;
  Scheme::Placement placement;
};
constexpr std::array kPlacements{NamedPlacement{"random", Scheme::Placement::random},
                                 NamedPlacement{"locality", Scheme::Placement::locality},
                                 NamedPlacement{"compatible", Scheme::Placement::compatible}};
constexpr std::string_view kIdeal = "ideal";
/// The policies that a scheme may add to a placement, in this order.
constexpr std::array<std::string_view, 2> kAdded{"schedule", "mltcp"};

/// Returns the policy that combines all policies in `added`; the baseline if `added` is empty.
const Policy& policy_with(const std::vector<const Policy*>& added) {
  const auto any = [&](bool Policy::*what) {
    return std::ranges::any_of(added, [&](const Policy* one) { return one->*what; });
  };
  const auto all = policies();
  return *std::ranges::find_if(all, [&](const Policy& policy) {
    return policy.slots == any(&Policy::slots) && policy.interleaves == any(&Policy::interleaves) &&
           !policy.priorities && !policy.turns;
  });
}

std::optional<Scheme> parsed_scheme(std::string_view text) {
  Scheme scheme;
  scheme.name = text;
  scheme.policy = &policy_with({});
  if (text == kIdeal) {
    scheme.placement = Scheme::Placement::ideal;
    return scheme;
  }
  const std::string_view first = text.substr(0, text.find('+'));
  const auto* const known = std::ranges::find(kPlacements, first, &NamedPlacement::name);
  if (known == kPlacements.end()) return std::nullopt;
  scheme.placement = known->placement;
  std::vector<const Policy*> added;
  text.remove_prefix(first.size());
  for (const std::string_view name : kAdded)
    if (text.starts_with('+') && text.substr(1).starts_with(name)) {
      added.push_back(&policy_named(name));
      text.remove_prefix(1 + name.size());
    }
  if (!text.empty()) return std::nullopt;
  scheme.policy = &policy_with(added);
  return scheme;
}

}  // namespace

std::string objection_to_scheme(std::string_view text) {
  if (parsed_scheme(text)) return {};
  return fmt::format(
      "{} is not a scheme; write random, locality or compatible, with +{}, +{} or +{} after it if you like, or write "
      "{}",
      in_quotes(text), kAdded[0], kAdded[1], fmt::join(kAdded, "+"), kIdeal);
}

Scheme scheme_from(std::string_view text) { return parsed_scheme(text).value(); }

const std::vector<std::string>& default_schemes() {
  static const std::vector<std::string> names{"locality", "compatible", "compatible+schedule", "locality+mltcp",
                                              "ideal"};
  return names;
}

std::string_view to_text(ClusterExperiment::Level level) {
  return level == ClusterExperiment::Level::packet ? "packet" : "flow";
}

std::vector<workload::Arrival> arrivals_of(const ClusterExperiment& experiment, std::uint64_t seed) {
  if (experiment.arriving == 0 && !experiment.types_are_drawn) return experiment.listed;
  std::vector<workload::TypeChoices> mix;
  for (const JobType& type : experiment.types) mix.push_back(type.choices);
  if (experiment.types_are_drawn) {
    std::vector<workload::Arrival> jobs = experiment.listed;
    workload::draw_types(mix, seed, jobs);
    for (workload::Arrival& job : jobs) {
      job.iterations = 0;
      if (job.workers == 1) continue;
      const workload::Job& kind = experiment.types[job.type].jobs.at({job.workers, job.batch});
      const Nanos once = workload::ideal_iteration(kind, experiment.topology.host_rate()).length;
      job.iterations =
          static_cast<std::uint32_t>(std::max<std::int64_t>(1, (job.length.count + once.count / 2) / once.count));
    }
    return jobs;
  }
  return workload::draw_arrivals(mix, experiment.arriving, experiment.at_start, experiment.gap, seed);
}

ClusterExperiment load_cluster(const std::filesystem::path& path, const ClusterFileOptions& options) {
  return load_as(path, kClusterFile, {FileKind::cluster},
                 [&](const std::string& text, const std::string& file) { return parse_cluster(text, file, options); });
}

ClusterExperiment parse_cluster(std::string_view text, const std::string& file, const ClusterFileOptions& options) {
  return ClusterReader(file, options).read(parse_toml(text, file, "docs/reference/cluster-file.md"));
}

}  // namespace mltcp::experiment
