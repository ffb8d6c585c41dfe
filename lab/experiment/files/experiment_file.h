// Reader of experiment files: TOML that defines jobs, links and policies. All keys with units, defaults and ranges:
// docs/reference/experiment-file.md.
//
// Invalid input throws InputError with one line, "FILE:LINE: KEY: cause; cure". KEY is dotted; a job's keys begin with
// job[N], where N is the job's number in the file, from 1. The error for an unknown key names the nearest known one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// A value that overrides or adds to the file's.
struct Override {
  std::string key;                 ///< key path in the file: "cc", "bottleneck.buffer", "job[2].start", "job[*].jitter"
  std::string value;               ///< one line of TOML: "\"75 kB\"", "2", "{ kmin = \"60 kB\" }"
  std::string origin;              ///< for messages, in place of file and line: "sweep.toml:7", "--vary"
  std::filesystem::path folder{};  ///< base of relative paths of shared objects in `value`; empty: the current folder
};

/// The datapaths that the caller supports, and settings of the command line that override the file's.
struct FileOptions {
  /// Supported datapaths. Others are refused with an error that lists these. Empty: all datapaths of the format.
  std::vector<std::string> datapaths{"sim"};
  /// Maximum number of jobs on datapath ring, which needs ports for each job. Empty: only the format's limit.
  std::optional<std::size_t> max_ring_jobs;

  /// Refuse real-time datapaths.
  bool virtual_time_only = false;

  /// Applied in this order before anything is validated.
  std::vector<Override> overrides;
  /// Overrides the file's key; messages name the option (--datapath and so on) instead of file and line.
  std::optional<std::string> datapath;
  std::optional<std::string> cc;
  std::vector<std::string> policy;  ///< empty: the file's policies
  std::optional<std::uint32_t> iterations;
  std::optional<std::uint64_t> seed;
};

/// "cause; cure" if the name is not allowed for an experiment or job; empty if it is.
std::string objection_to_name(std::string_view name);

/// Reads an experiment file and the traces it refers to. Throws InputError.
Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options = {});
/// The same from memory; `file` is used in messages, and its folder is the base of relative paths.
Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options = {});

}  // namespace mltcp::experiment
