// Runs a sweep (see sweep_run.h).
#include "mltcp/lab/experiment/sweep/sweep_run.h"

#include <fmt/format.h>

#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/json.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::ordered_json;

// Increase the number when results are computed or recorded differently, so that older records are no longer found.
constexpr std::string_view kRecordSchema = "mltcp.sweep-run/1";
constexpr TextFile kRecordFile{"a record of a sweep", std::size_t{1} << 30};
constexpr JsonLimits kRecordLimits{.depth = 64, .values = 32'000'000};

struct Stopped {};  // thrown to abort a run

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string checksum_of(const Json& record) { return Fingerprint().add(dumped(record)).text(); }

}  // namespace

void drop_series(Results& results) {
  for (Run& run : results.runs) {
    run.bottleneck.usage = {};
    for (JobResult& job : run.jobs) {
      job.starts.clear();
      job.iterations.clear();
      job.iteration_compute.clear();
      job.ranks.clear();
    }
  }
}

std::string identity_of(const SweepPoint& point, std::uint64_t seed) {
  return Fingerprint().add(fmt::format("{} {} {}", kRecordSchema, point.fingerprint, seed)).text();
}

std::vector<SweepTask> tasks_of(const Sweep& sweep) {
  std::vector<SweepTask> tasks;
  std::unordered_set<std::string> known;
  for (std::size_t point = 0; point < sweep.points.size(); ++point)
    for (const std::uint64_t seed : sweep.seeds) {
      SweepTask task{point, seed, identity_of(sweep.points[point], seed)};
      if (known.insert(task.identity).second) tasks.push_back(std::move(task));
    }
  return tasks;
}

std::filesystem::path record_path(const std::filesystem::path& folder, std::string_view identity) {
  return folder / "runs" / fmt::format("{}.json", identity);
}

std::string record_text(const SweepRecord& record, std::string_view identity, std::string_view description) {
  std::ostringstream results;
  write_json(record.results, results);
  Json json = Json::parse(results.str());
  Json sweep;
  sweep["schema"] = kRecordSchema;
  sweep["identity"] = identity;
  sweep["point"] = description;
  sweep["build"] = record.build;
  sweep["full"] = record.full;
  if (!record.failure.empty()) sweep["failure"] = record.failure;
  json["sweep"] = std::move(sweep);
  json["sweep"]["checksum"] = checksum_of(json);
  return dumped(json) + "\n";
}

std::optional<SweepRecord> read_record(const std::filesystem::path& path, std::string_view identity) {
  try {
    const std::string text = read_text_file(path, path.string(), kRecordFile);
    // Records nest a few levels. Text that nests deeper might not be serialisable for its checksum.
    if (!beyond_limits(text, kRecordLimits).empty()) return std::nullopt;
    Json json = Json::parse(text);
    Json& sweep = json.at("sweep");
    const auto checksum = sweep.at("checksum").get<std::string>();
    sweep.erase("checksum");
    if (sweep.at("schema") != kRecordSchema || sweep.at("identity") != identity || checksum != checksum_of(json))
      return std::nullopt;
    SweepRecord record;
    record.build = sweep.at("build").get<std::string>();
    record.full = sweep.at("full").get<bool>();
    record.failure = sweep.value("failure", "");
    record.results = parse_json(text, path.string());
    return record;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const InputError&) {  // there is no file, or it is not a record
    return std::nullopt;
  }
}

Results run_in_virtual_time(const Experiment& experiment, const std::function<void(double)>& tick) {
  const std::unique_ptr<Datapath> datapath = experiment.datapath == "flow" ? make_flow_datapath() : make_sim_datapath();
  return run_experiment(experiment, *datapath, [&](double fraction, const std::string& /*what*/) { tick(fraction); });
}

namespace {

/// One call of run_sweep().
class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const SweepSettings& settings) : sweep_(sweep), settings_(settings) {
    std::vector<SweepTask> all = tasks_of(sweep);
    for (std::size_t i = settings.shard - 1; i < all.size(); i += settings.shards) tasks_.push_back(std::move(all[i]));
    failures_.resize(tasks_.size());
    outcome_.all = tasks_.size();
  }

  SweepOutcome run() {
    look_for_records();
    outcome_.before = tasks_.size() - to_do_.size();
    outcome_.stopped = stopped();
    if (settings_.run && !outcome_.stopped) {
      tell();
      in_parallel(settings_.threads, to_do_.size(),
                  [&](std::size_t i, oneapi::tbb::task_group_context& context) { run_task(to_do_[i], context); });
      outcome_.stopped = stopped() && outcome_.before + outcome_.ran < outcome_.all;
    }
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (!failures_[i].empty()) outcome_.failures.emplace_back(tasks_[i], failures_[i]);
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool stopped() const { return settings_.stop && settings_.stop(); }
  void write(const SweepTask& task, const std::string& text) {
    const std::lock_guard lock(mutex_);
    settings_.write(record_path(settings_.folder, task.identity).string(), text);
  }
  /// Reports the progress. The caller must lock the mutex, or call it before runs begin.
  void tell() const {
    if (settings_.progress)
      settings_.progress(outcome_.before + outcome_.ran, outcome_.all,
                         to_do_.empty() ? 1.0 : fractions_ / static_cast<double>(to_do_.size()));
  }

  /// Reads existing records, including those in folders to merge, and lists the missing runs.
  void look_for_records() {
    const auto counts = [&](const std::optional<SweepRecord>& record) {
      return record && (record->failure.empty() ? record->full || !settings_.full : record->build == settings_.build);
    };
    std::vector<char> there(tasks_.size());
    in_parallel(settings_.threads, tasks_.size(), [&](std::size_t i) {
      if (stopped()) return;
      const std::string& identity = tasks_[i].identity;
      std::optional<SweepRecord> record = read_record(record_path(settings_.folder, identity), identity);
      for (const std::filesystem::path& other : settings_.merge) {
        if (counts(record)) break;
        const std::filesystem::path path = record_path(other, identity);
        record = read_record(path, identity);
        if (counts(record)) write(tasks_[i], read_text_file(path, path.string(), kRecordFile));
      }
      there[i] = counts(record) ? 1 : 0;
      if (there[i] != 0) failures_[i] = record->failure;
    });
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (there[i] == 0) to_do_.push_back(i);
  }

  void run_task(std::size_t number, oneapi::tbb::task_group_context& context) {
    const SweepTask& task = tasks_[number];
    const auto check = [&] {
      if (stopped()) context.cancel_group_execution();
      if (context.is_group_execution_cancelled()) throw Stopped();
    };
    double reported = 0;
    const auto tick = [&](double fraction) {
      check();
      const std::lock_guard lock(mutex_);
      fractions_ += fraction - reported;
      reported = fraction;
      tell();
    };
    try {
      check();
      SweepRecord record = recorded(task, tick);
      if (record.failure.empty() && !settings_.full) drop_series(record.results);
      const std::string what = describe(sweep_, sweep_.points[task.point]);
      write(task, record_text(record, task.identity, fmt::format("{}, seed {}", what, task.seed)));
      failures_[number] = std::move(record.failure);
      const std::lock_guard lock(mutex_);
      fractions_ += 1 - reported;
      ++outcome_.ran;
      tell();
    } catch (const Stopped&) {
      // An aborted run has no record.
    }
  }

  /// Runs the task; a failure of its experiment becomes part of the record.
  SweepRecord recorded(const SweepTask& task, const std::function<void(double)>& tick) {
    SweepRecord record;
    record.build = settings_.build;
    record.full = settings_.full;
    const SweepPoint& point = sweep_.points[task.point];
    try {
      const Experiment experiment = experiment_of(sweep_, point, task.seed);
      if (experiment.fingerprint != point.fingerprint)
        throw RunError(
            fmt::format("{}: a file that it names changed during the sweep; start the sweep again", sweep_.file));
      try {
        record.results = settings_.runner(experiment, tick);
      } catch (const RunError& error) {
        record.failure = one_line(error.what());
      } catch (const InputError& error) {
        record.failure = one_line(error.what());
      }
    } catch (const std::bad_alloc&) {
      throw RunError("out of memory; run fewer at a time with --threads, or smaller experiments");
    }
    return record;
  }

  const Sweep& sweep_;
  const SweepSettings& settings_;
  std::vector<SweepTask> tasks_;
  std::vector<std::string> failures_;  ///< reason of failure of each task; empty if there is none
  std::vector<std::size_t> to_do_;     ///< tasks
  SweepOutcome outcome_;
  std::mutex mutex_;      ///< protects outcome_.ran and fractions_; serialises writing and `progress` calls
  double fractions_ = 0;  ///< sum of the completed fractions of the missing runs
};

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const SweepSettings& settings) { return SweepRunner(sweep, settings).run(); }

}  // namespace mltcp::experiment
