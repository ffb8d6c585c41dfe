// Reader of sweeps: a grid of experiments, which differ from one experiment file in some of its keys. Every key of a
// sweep file: docs/sweep.md.
//
// A sweep has points, each a set of values in place of the experiment's, and seeds, with each of which every point is
// run. The points are the cases of the file times all combinations of the values that vary, the last one fastest.
// What can't be used is refused by an InputError "FILE:LINE: KEY: cause; cure", as in experiment files; values of the
// command line have "--vary" in place of file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/experiment/files/experiment_file.h"

namespace mltcp::experiment {

struct SweepPoint {
  std::vector<std::string> values;  ///< as people read them, one for each of Sweep::factors
  std::vector<Override> overrides;
  std::string fingerprint;  ///< Experiment::fingerprint
};

struct Sweep {
  std::string name;
  std::string file;  ///< the experiment's
  std::string text;  ///< the experiment file
  /// What differs from point to point, also where it has one value only: "case" if there are cases, then paths of
  /// keys.
  std::vector<std::string> factors;
  std::vector<SweepPoint> points;    ///< at least one
  std::vector<std::uint64_t> seeds;  ///< at least one, each once
  FileOptions options;               ///< of every experiment; the point's overrides come on top, and the seed
  std::vector<std::string> warnings;
};

struct SweepOptions {
  FileOptions files;  ///< what this version has
  /// "KEY=VALUE,VALUE": further keys that vary, or other values for one that varies in the file. A value is what
  /// TOML reads it as, or else a text; commas inside brackets and quotes belong to it.
  std::vector<std::string> vary;
  std::optional<std::uint32_t> seeds;  ///< how many, instead of the file's
  std::vector<std::string> policies;   ///< instead of the file's
};

inline constexpr std::size_t kMostSweepRuns = 1'000'000;

/// Reads a sweep file, or an experiment file that options vary, and checks the experiment of every point. Throws
/// InputError.
Sweep load_sweep(const std::filesystem::path& path, const SweepOptions& options);

/// The experiment of a point with a seed; reads its traces. Throws InputError.
Experiment experiment_of(const Sweep& sweep, const SweepPoint& point, std::uint64_t seed);

/// "cc = cubic, bottleneck.buffer = 75 kB"; "the only point" when nothing varies.
std::string describe(const Sweep& sweep, const SweepPoint& point);

}  // namespace mltcp::experiment
