// Runs a sweep on all cores (oneTBB), and records finished runs, so that they are never repeated.
//
// A run is one point with one seed under all policies: single-threaded, in virtual time, and so reproducible on every
// machine. Its record is the file FOLDER/runs/IDENTITY.json, written atomically. The identity is a hash of all that
// determines the result, so no other state is needed: an interrupted sweep continues with the runs that have no record;
// shards of a sweep and different sweeps may share a folder; records may be copied between folders. A record is a
// result file ("mltcp.results/1") with an additional field "sweep" that holds a fingerprint of the rest: damaged
// records are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/sweep/sweep_file.h"

namespace mltcp::experiment {

struct SweepRecord {
  Results results;      ///< without the series of iterations and usage unless requested; empty if the run failed
  std::string failure;  ///< reason of a failure; empty if there was none
  std::string build;    ///< SweepSettings::build of the program that wrote it
  bool full = false;    ///< includes the series
};

/// One run of a sweep.
struct SweepTask {
  std::size_t point = 0;  ///< index into Sweep::points
  std::uint64_t seed = 0;
  std::string identity;  ///< 32 hexadecimal digits
};

/// All runs in the order of points and seeds. Points with identical experiments share their runs, which are listed
/// once.
std::vector<SweepTask> tasks_of(const Sweep& sweep);

std::string identity_of(const SweepPoint& point, std::uint64_t seed);

std::filesystem::path record_path(const std::filesystem::path& folder, std::string_view identity);

/// Removes the series of iterations and usage; keeps what tables need, a few hundred bytes per job.
void drop_series(Results& results);

/// The contents of a record's file. `description` is for people.
std::string record_text(const SweepRecord& record, std::string_view identity, std::string_view description);
/// The record with this identity; empty if there is no valid one.
std::optional<SweepRecord> read_record(const std::filesystem::path& path, std::string_view identity);

/// Runs one experiment; calls `tick` with the fraction done, which may throw to abort the run. Throws RunError or
/// InputError if the run fails.
using Runner = std::function<Results(const Experiment& experiment, const std::function<void(double)>& tick)>;
/// run_experiment() in virtual time.
Results run_in_virtual_time(const Experiment& experiment, const std::function<void(double)>& tick);

struct SweepSettings {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> merge;  ///< folders from which records missing in `folder` are taken
  /// Number of this shard, from 1, of `shards` shards of the sweep. Every run belongs to one shard.
  std::uint32_t shard = 1;
  std::uint32_t shards = 1;
  bool full = false;          ///< keep the series of iterations and usage in records
  bool run = true;            ///< false: only merge
  std::uint32_t threads = 0;  ///< 0: one per core
  std::string build;          ///< identifies the build of the program
  /// Writes a file atomically. Throws RunError. Calls are serialised.
  std::function<void(const std::string& file, const std::string& text)> write;
  Runner runner = run_in_virtual_time;
  std::function<bool()> stop;  ///< polled by any thread; when it returns true, the sweep stops soon
  /// Called with the number of completed runs and of all runs of the shard, and the completed fraction of those that
  /// were missing at the beginning. Calls are serialised.
  std::function<void(std::size_t done, std::size_t all, double fraction)> progress;
};

struct SweepOutcome {
  std::size_t all = 0;     ///< number of runs of the shard
  std::size_t before = 0;  ///< of these, recorded before
  std::size_t ran = 0;     ///< of these, executed now, including failed ones
  bool stopped = false;
  /// Failed runs of the shard, recorded now or before, in the order of tasks_of().
  std::vector<std::pair<SweepTask, std::string>> failures;
};

/// Executes the runs of the shard that have no record. A failed run is recorded as failed, and repeated only by another
/// build of the program. Throws RunError if a record cannot be written or the experiment has changed since the sweep
/// was read.
SweepOutcome run_sweep(const Sweep& sweep, const SweepSettings& settings);

}  // namespace mltcp::experiment
