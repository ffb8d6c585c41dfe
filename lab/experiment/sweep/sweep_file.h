// Reader of sweep files: a grid of experiments that vary some keys of one experiment file. All keys:
// docs/reference/sweep-file.md.
//
// A sweep has points, each a set of values that override the experiment's, and seeds; every point is run with every
// seed. The points are the file's cases times all combinations of the varied values, with the last one varying fastest.
// Invalid input throws InputError "FILE:LINE: KEY: cause; cure", as in experiment files; for values of the command
// line, "--vary" takes the place of file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment {

struct SweepPoint {
  std::vector<std::string> values;  ///< for people, one for each of Sweep::factors
  std::vector<Override> overrides;
  std::string fingerprint;  ///< Experiment::fingerprint
};

struct Sweep {
  std::string name;
  std::string file;  ///< path of the experiment file
  std::string text;  ///< contents of the experiment file
  /// What varies between points, also if it has a single value: "case" if there are cases, then key paths.
  std::vector<std::string> factors;
  std::vector<SweepPoint> points;    ///< at least one
  std::vector<std::uint64_t> seeds;  ///< at least one, without duplicates
  FileOptions options;               ///< for every experiment, to which the point's overrides and the seed are added
  std::vector<std::string> warnings;
};

struct SweepOptions {
  FileOptions files;  ///< what the caller supports
  /// "KEY=VALUE,VALUE": further keys to vary, or other values for a key that the file varies. A value is parsed as
  /// TOML, or else taken as text; commas inside brackets and quotes belong to the value.
  std::vector<std::string> vary;
  std::optional<std::uint32_t> seeds;  ///< number of seeds; empty: the file's
  std::vector<std::string> policies;   ///< empty: the file's
};

inline constexpr std::size_t kMaxSweepRuns = 1'000'000;

/// Reads a sweep file, or an experiment file to be varied by the options, and validates the experiment of every point.
/// Throws InputError.
Sweep load_sweep(const std::filesystem::path& path, const SweepOptions& options);

/// The experiment of a point with a seed, including its traces. Throws InputError.
Experiment experiment_of(const Sweep& sweep, const SweepPoint& point, std::uint64_t seed);

/// For people: "cc = cubic, bottleneck.buffer = 75 kB"; "the only point" if nothing varies.
std::string describe(const Sweep& sweep, const SweepPoint& point);

}  // namespace mltcp::experiment
