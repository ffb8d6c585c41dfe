// Runs a sweep on all cores (oneTBB), and keeps what is finished so that it is never run again.
//
// A run is one point with one seed, under all policies: single-threaded, in virtual time, and so the same on every
// machine. Its record is the file FOLDER/runs/IDENTITY.json, put there complete or not at all. The identity follows
// from all that decides the result, so nothing else has to be remembered: a sweep that was interrupted runs what has no
// record; shards of a sweep and different sweeps may share a folder; records may be copied from folder to folder. A
// record is a result file ("mltcp.results/1") with a field "sweep" more, which holds a fingerprint of all the rest: one
// that is damaged does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/experiment/results/results.h"
#include "mltcp/experiment/sweep/sweep_file.h"

namespace mltcp::experiment {

struct SweepRecord {
  Results results;      ///< without the series of iterations and usage, unless they were asked for; empty if it failed
  std::string failure;  ///< why it failed; empty if it did not
  std::string build;    ///< SweepSettings::build of the program that made it
  bool full = false;    ///< with the series
};

/// One run of a sweep.
struct SweepTask {
  std::size_t point = 0;  ///< index into Sweep::points
  std::uint64_t seed = 0;
  std::string identity;  ///< 32 hexadecimal digits
};

/// All runs in the order of points and seeds. Points that come to the same experiment share their runs, which stand
/// here once.
std::vector<SweepTask> tasks_of(const Sweep& sweep);

std::string identity_of(const SweepPoint& point, std::uint64_t seed);

std::filesystem::path record_path(const std::filesystem::path& folder, std::string_view identity);

/// Leaves what tables are made of, some hundred bytes a job: no series of iterations and usage.
void drop_series(Results& results);

/// The text of a record's file. `description` is for people.
std::string record_text(const SweepRecord& record, std::string_view identity, std::string_view description);
/// The record with this identity, or nothing when there is none that can be trusted.
std::optional<SweepRecord> read_record(const std::filesystem::path& path, std::string_view identity);

/// Runs one experiment; calls `tick` with the fraction done, now and then, which may throw to give the run up. Throws
/// RunError or InputError when the run fails.
using Runner = std::function<Results(const Experiment& experiment, const std::function<void(double)>& tick)>;
/// run_experiment() in virtual time.
Results run_in_virtual_time(const Experiment& experiment, const std::function<void(double)>& tick);

struct SweepSettings {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> merge;  ///< folders whose records are taken where `folder` has none
  /// Of this many shards, all of the same sweep, the number of this one, from 1. A run belongs to one of them.
  std::uint32_t shard = 1;
  std::uint32_t shards = 1;
  bool full = false;          ///< keep the series of iterations and usage
  bool run = true;            ///< else only merge
  std::uint32_t threads = 0;  ///< 0: one a core
  std::string build;          ///< tells this program from another build of it
  /// Writes a file complete or not at all. Throws RunError. Not called by two threads at a time.
  std::function<void(const std::string& file, const std::string& text)> write;
  Runner runner = run_in_virtual_time;
  std::function<bool()> stop;  ///< asked now and then, by any thread: when true, the sweep stops soon
  /// Told of the shard's runs how many there are, how many are done, and the fraction of those that were to be done
  /// when it began. Not called by two threads at a time.
  std::function<void(std::size_t done, std::size_t all, double fraction)> progress;
};

struct SweepOutcome {
  std::size_t all = 0;     ///< runs of the shard
  std::size_t before = 0;  ///< of these, done before
  std::size_t ran = 0;     ///< done now, failed ones included
  bool stopped = false;
  /// Of the shard, failed now or before, in the order of tasks_of().
  std::vector<std::pair<SweepTask, std::string>> failures;
};

/// Does the runs of the shard that have no record yet. A run that fails is recorded as failed, and tried again only by
/// another build of the program. Throws RunError when a record can't be written or the experiment has changed since
/// the sweep was read.
SweepOutcome run_sweep(const Sweep& sweep, const SweepSettings& settings);

}  // namespace mltcp::experiment
