// Makes an experiment from recorded traces (see replay_experiment.h).
#include "mltcp/lab/experiment/replay/replay_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/trace_files.h"

namespace mltcp::experiment {
namespace {

/// Maximum number of operations in a job's timelines: the sum over all ranks and all iterations with timelines.
constexpr std::uint64_t kMaxTimes = 4'000'000;

bool names_a_job(const std::string& word) {
  std::error_code problem;
  return word.find('=') != std::string::npos && !std::filesystem::exists(word, problem);
}

std::uint32_t ranks_of(const workload::Job& job) { return static_cast<std::uint32_t>(job.programs->ranks.size()); }

void make_network(const ReplayNetwork& wanted, Experiment& experiment) {
  experiment.bottleneck.rate = wanted.rate;
  experiment.bottleneck.delay = wanted.delay;
  experiment.bottleneck.buffer_bytes = wanted.buffer;
  experiment.bottleneck.ecn = wanted.ecn;
  experiment.mtu = wanted.mtu;
  if (wanted.dumbbell) return;
  std::uint32_t ranks = 2;
  for (const workload::Job& job : experiment.jobs) ranks = std::max(ranks, ranks_of(job));
  fabric::SwitchedNetworkConfig& network = experiment.topology.emplace();
  const auto jobs = static_cast<std::uint32_t>(experiment.jobs.size());
  if (jobs == 1) {
    network.topology = std::make_shared<const Topology>(Topology::single_switch(ranks, wanted.rate, wanted.delay));
  } else {
    LeafSpineShape shape;
    shape.leaves = ranks;
    shape.spines = 1;
    shape.hosts_per_leaf = jobs;
    shape.host_rate = wanted.rate;
    shape.delay = wanted.delay;
    network.topology = std::make_shared<const Topology>(Topology::leaf_spine(shape));
  }
  network.buffer_bytes = wanted.buffer;
  network.ecn = wanted.ecn;
  network.mtu = wanted.mtu;
  network.seed = experiment.seed;
  fabric::check(network);
}

/// Assigns hosts to the ranks of job `number`. With n jobs, rank r of job j is on host r * n + j. A dumbbell needs no
/// assignment, since a job's two ranks are at its two sides.
void place(std::uint32_t number, Experiment& experiment, const std::string& file) {
  workload::Job& job = experiment.jobs[number];
  const std::uint32_t ranks = ranks_of(job);
  const auto jobs = static_cast<std::uint32_t>(experiment.jobs.size());
  if (!experiment.topology) {
    if (ranks != 2)
      throw InputError(fmt::format(
          "{}: {} ranks are replayed, but a dumbbell has hosts for only 2 ranks of a job; give --ranks, or a topology",
          file, ranks));
    return;
  }
  if (std::uint64_t{ranks} * jobs > experiment.topology->hosts())
    throw InputError(fmt::format(
        "{}: {} ranks of each of {} do not fit on the topology's {} hosts; give --ranks, or a larger topology", file,
        ranks, plural(jobs, "job"), experiment.topology->hosts()));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) job.hosts.push_back(rank * jobs + number);
}

}  // namespace

ReplayJob parse_replay_job(const std::string& word) {
  const auto refuse = [&](std::string_view why) {
    throw InputError(fmt::format("{} {}; write NAME=TRACE[,TRACE...][@START], such as a=rank0.json,rank1.json@100ms",
                                 in_quotes(word), why));
  };
  ReplayJob job;
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) refuse("names no job");
  job.name = word.substr(0, equals);
  if (const std::string wrong = objection_to_name(job.name); !wrong.empty())
    throw InputError(fmt::format("{}: its name {}", in_quotes(word), wrong));
  std::string files = word.substr(equals + 1);
  if (const std::size_t at = files.rfind('@'); at != std::string::npos) {
    try {
      job.start = parse_duration(files.substr(at + 1));
    } catch (const InputError& error) {
      refuse(fmt::format("has a start that is not a time ({})", error.what()));
    }
    files.resize(at);
  }
  for (const std::string_view file : parts_of(files, ',')) {
    if (file.empty()) refuse("names an empty file");
    job.files.emplace_back(file);
  }
  return job;
}

std::vector<ReplayJob> parse_replay_jobs(const std::vector<std::string>& words) {
  std::vector<ReplayJob> jobs;
  const auto named = static_cast<std::size_t>(std::ranges::count_if(words, names_a_job));
  if (named == 0) {
    ReplayJob& job = jobs.emplace_back();
    for (const std::string& word : words) job.files.emplace_back(word);
    if (!words.empty()) job.name = job_name_of(words.front());
    return jobs;
  }
  if (named < words.size())
    throw InputError(fmt::format("{} names no job, but {} does; name all jobs, such as a=TRACE b=TRACE, or none",
                                 in_quotes(*std::ranges::find_if_not(words, names_a_job)),
                                 in_quotes(*std::ranges::find_if(words, names_a_job))));
  std::set<std::string> names;
  for (const std::string& word : words) {
    jobs.push_back(parse_replay_job(word));
    if (!names.insert(jobs.back().name).second)
      throw InputError(fmt::format("two jobs are called {}; give each a name of its own", in_quotes(jobs.back().name)));
  }
  return jobs;
}

Replay make_replay(const ReplayRequest& request, Experiment settings, bool own_network) {
  Replay replay;
  replay.experiment = std::move(settings);
  Experiment& experiment = replay.experiment;
  experiment.jobs.clear();
  experiment.places.clear();
  experiment.warnings.clear();
  for (std::size_t i = 0; i < request.jobs.size(); ++i) {
    const ReplayJob& wanted = request.jobs[i];
    // Jobs with the same traces share their programs.
    const auto first = std::ranges::find(request.jobs, wanted.files, &ReplayJob::files);
    if (const auto same = static_cast<std::size_t>(first - request.jobs.begin()); same < i) {
      workload::Job job = experiment.jobs[same];
      job.name = wanted.name;
      job.start = wanted.start;
      experiment.jobs.push_back(std::move(job));
      replay.traces.push_back(ReplayedTrace(replay.traces[same]));
      continue;
    }
    workload::TraceOptions options;
    options.ranks = request.trace_ranks;
    auto graph = std::make_shared<const workload::ExecutionGraph>(read_job_traces(wanted.files, options));
    workload::GraphOptions own = request.graph;
    own.steps = request.steps.of(*graph);
    if (own_network) own.rate = request.network.rate;
    workload::GraphPrograms programs = workload::graph_programs(*graph, own);
    workload::Job job = workload::replayed_job(wanted.name, programs);
    job.start = wanted.start;
    job.flows = request.flows;
    std::uint64_t operations = 0;
    for (const workload::RankProgram& program : programs.ranks) operations += program.operations.size();
    job.timeline = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kMaxTimes / std::max<std::uint64_t>(operations, 1), 1, experiment.iterations));
    experiment.jobs.push_back(std::move(job));
    replay.traces.push_back({std::move(graph), std::move(programs)});
  }
  if (own_network) make_network(request.network, experiment);
  for (std::uint32_t i = 0; i < experiment.jobs.size(); ++i)
    place(i, experiment, request.jobs[i].files.front().string());
  return replay;
}

std::vector<std::string> warnings_of_ties(const Experiment& experiment) {
  constexpr std::size_t max = 4;  // maximum number of names in a warning
  const std::vector<workload::Job>& jobs = experiment.jobs;
  std::vector<std::string> warnings;
  std::vector<bool> named(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> names;
    for (std::size_t j = i; j < jobs.size() && !named[i]; ++j)
      if (!named[j] && jobs[i].start == jobs[j].start && alike(jobs[i], jobs[j]))
        names.push_back(in_quotes(jobs[j].name));
    for (std::size_t j = i + 1; j < jobs.size(); ++j)
      named[j] = named[j] || (jobs[i].start == jobs[j].start && alike(jobs[i], jobs[j]));
    if (names.size() < 2) continue;
    const std::size_t more = names.size() - std::min(names.size(), max);
    names.resize(names.size() - more);
    warnings.push_back(
        fmt::format("jobs {}{} are alike and start together, so they may behave the same for ever; give them different "
                    "starts, such as {}=TRACE@50ms",
                    fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "", jobs[i].name));
  }
  return warnings;
}

}  // namespace mltcp::experiment
