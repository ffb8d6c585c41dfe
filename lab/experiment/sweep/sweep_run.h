// Runs a sweep on all cores (oneTBB), and records finished runs, so that they are never repeated.
//
// A run is one point with one seed under all policies. It is single-threaded and in virtual time, and therefore
// reproducible on every machine. Its record is the file FOLDER/runs/IDENTITY.json, written atomically. The identity is
// a hash of everything that determines the result, so no other state is needed. An interrupted sweep continues with the
// runs that have no record. Different sweeps, and shards of a sweep, may share a folder. Records may be copied between
// folders. A record is a result file ("mltcp.results/1") with an additional field "sweep", which contains a checksum of
// the rest, so that damaged records are ignored.
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
  Results results;      ///< without the series of iterations and usage unless `full`; empty if the run failed
  std::string failure;  ///< reason of the failure; empty if the run succeeded
  std::string build;    ///< SweepSettings::build of the program that wrote the record
  bool full = false;    ///< true if the results include the series
};

/// One run of a sweep.
struct SweepTask {
  std::size_t point = 0;  ///< index into Sweep::points
  std::uint64_t seed = 0;
  std::string identity;  ///< 32 hexadecimal digits
};

/// Returns all runs, in the order of points and seeds. Points with identical experiments share their runs, which are
/// listed once.
std::vector<SweepTask> tasks_of(const Sweep& sweep);

std::string identity_of(const SweepPoint& point, std::uint64_t seed);

std::filesystem::path record_path(const std::filesystem::path& folder, std::string_view identity);

/// Removes the series of iterations and usage. Keeps what tables need, a few hundred bytes per job.
void drop_series(Results& results);

/// Returns the contents of a record's file. `description` is for people.
std::string record_text(const SweepRecord& record, std::string_view identity, std::string_view description);
/// Returns the record with this identity, or nullopt if the file does not contain a valid record with this identity.
std::optional<SweepRecord> read_record(const std::filesystem::path& path, std::string_view identity);

/// Runs one experiment and calls `tick` with the fraction done. `tick` may throw to abort the run. Throws RunError or
/// InputError if the run fails.
using Runner = std::function<Results(const Experiment& experiment, const std::function<void(double)>& tick)>;
/// Calls run_experiment() in virtual time.
Results run_in_virtual_time(const Experiment& experiment, const std::function<void(double)>& tick);

struct SweepSettings {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> merge;  ///< folders from which records missing in `folder` are taken
  /// Number of this shard, from 1 to `shards`. Every run of the sweep belongs to one shard.
  std::uint32_t shard = 1;
  std::uint32_t shards = 1;
  bool full = false;          ///< true to keep the series of iterations and usage in records
  bool run = true;            ///< false to only merge records
  std::uint32_t threads = 0;  ///< number of threads; 0 for one per core
  std::string build;          ///< identifies the build of the program
  /// Writes a file atomically. Throws RunError. Calls are serialised.
  std::function<void(const std::string& file, const std::string& text)> write;
  Runner runner = run_in_virtual_time;
  std::function<bool()> stop;  ///< polled by any thread; when it returns true, the sweep stops soon
  /// Called with the number of completed runs, the number of all runs of the shard, and the completed fraction of the
  /// runs that were missing at the beginning. Calls are serialised.
  std::function<void(std::size_t done, std::size_t all, double fraction)> progress;
};

struct SweepOutcome {
  std::size_t all = 0;     ///< number of runs of the shard
  std::size_t before = 0;  ///< number of the shard's runs that were recorded before this call
  std::size_t ran = 0;     ///< number of the shard's runs that this call has executed, including failed ones
  bool stopped = false;
  /// Failed runs of the shard, whether recorded now or before, in the order of tasks_of().
  std::vector<std::pair<SweepTask, std::string>> failures;
};

/// Executes the runs of the shard that have no record. A failed run is recorded as failed, and repeated only by another
/// build of the program. Throws RunError if a record cannot be written or the experiment has changed since the sweep
/// was read.
SweepOutcome run_sweep(const Sweep& sweep, const SweepSettings& settings);

}  // namespace mltcp::experiment
