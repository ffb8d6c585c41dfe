// Reads sweep files: a grid of experiments that vary some keys of one experiment file. docs/reference/sweep-file.md
// describes all keys.
//
// A sweep has points and seeds. A point is a set of values that override those of the experiment. Every point is run
// with every seed. The points are the file's cases times all combinations of the varied values; the last key varies
// fastest. Invalid input throws InputError "FILE:LINE: KEY: cause; remedy", as in experiment files. For values of the
// command line, "--vary" takes the place of file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment {

struct SweepPoint {
  std::vector<std::string> values;  ///< one value for each of Sweep::factors, for people
  std::vector<Override> overrides;
  std::string fingerprint;  ///< Experiment::fingerprint
};

struct Sweep {
  std::string name;
  std::string file;  ///< path of the experiment file
  std::string text;  ///< contents of the experiment file
  /// Names of what varies between points, including a key with a single value: "case" if there are cases, then key
  /// paths.
  std::vector<std::string> factors;
  std::vector<SweepPoint> points;    ///< at least one
  std::vector<std::uint64_t> seeds;  ///< at least one, without duplicates
  FileOptions options;               ///< options of every experiment; the point's overrides and the seed are added
  std::vector<std::string> warnings;
};

struct SweepOptions {
  FileOptions files;  ///< options for reading experiments: what the caller supports
  /// "KEY=VALUE,VALUE": additional keys to vary, or other values for a key that the file varies. A value that is not
  /// valid TOML is treated as text. Commas inside brackets and quotes belong to the value.
  std::vector<std::string> vary;
  std::optional<std::uint32_t> seeds;  ///< number of seeds; empty to use those of the file
  std::vector<std::string> policies;   ///< policies to run; empty to use those of the file
};

inline constexpr std::size_t kMaxSweepRuns = 1'000'000;

/// Reads a sweep file, or an experiment file to be varied by the options, and validates the experiment of every point.
/// Throws InputError if a file, an option or an experiment is invalid.
Sweep load_sweep(const std::filesystem::path& path, const SweepOptions& options);

/// Returns the experiment of a point with a seed, including its traces. Throws InputError if the experiment is invalid.
Experiment experiment_of(const Sweep& sweep, const SweepPoint& point, std::uint64_t seed);

/// Returns a description for people, such as "cc = cubic, bottleneck.buffer = 75 kB", or "the only point" if nothing
/// varies.
std::string describe(const Sweep& sweep, const SweepPoint& point);

}  // namespace mltcp::experiment
