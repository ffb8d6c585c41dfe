// Reader of experiment files: TOML that defines jobs, links and policies. docs/reference/experiment-file.md lists all
// keys with units, defaults and ranges.
//
// Invalid input throws InputError with one line, "FILE:LINE: KEY: cause; cure". KEY is a dotted path. The keys of a job
// begin with job[N], where N is the job's number in the file, from 1. The error for an unknown key names the most
// similar known key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// A value that overrides a value in the file, or adds one.
struct Override {
  std::string key;     ///< key path in the file: "cc", "bottleneck.buffer", "job[2].start", "job[*].jitter"
  std::string value;   ///< one line of TOML: "\"75 kB\"", "2", "{ kmin = \"60 kB\" }"
  std::string origin;  ///< position for messages, such as "sweep.toml:7" or "--vary"
  /// Folder from which relative paths of shared objects in `value` start; empty for the current folder.
  std::filesystem::path folder{};
};

/// The datapaths that the caller supports, and settings on the command line that override the file's settings.
struct FileOptions {
  /// Names of the supported datapaths. If the file names a different one, the error lists these. Empty if all datapaths
  /// are supported.
  std::vector<std::string> datapaths{"sim"};
  /// Maximum number of jobs on datapath ring, which needs ports for each job. Empty if only the file format limits the
  /// number.
  std::optional<std::size_t> max_ring_jobs;

  /// Whether to refuse real-time datapaths.
  bool virtual_time_only = false;

  /// Overrides, applied in this order before the file is validated.
  std::vector<Override> overrides;
  /// The fields below override keys of the file. Messages about them name the option, such as --datapath, instead of
  /// file and line.
  std::optional<std::string> datapath;
  std::optional<std::string> cc;
  std::optional<std::string> balance;
  std::optional<std::uint32_t> paths;
  std::vector<std::string> policy;  ///< empty if the file's policies apply
  std::optional<std::uint32_t> iterations;
  std::optional<std::uint64_t> seed;
};

/// Returns "cause; cure" if `name` is not allowed for an experiment or a job; empty if it is allowed.
std::string objection_to_name(std::string_view name);

/// Reads an experiment file and the traces that it names. Throws InputError for invalid files.
Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options = {});
/// Parses the text of an experiment file. Messages name `file`; relative paths in `text` start from the folder of
/// `file`.
Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options = {});

}  // namespace mltcp::experiment
