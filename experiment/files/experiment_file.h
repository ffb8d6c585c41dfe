// Reader of experiment files: the TOML that says which jobs share which link under which policies. Every key, its
// unit, default and range: docs/experiment-file.md.
//
// Whatever can't be used is refused by an InputError in one line, "FILE:LINE: KEY: cause; cure". KEY is written with
// dots; a job's keys begin with job[N], the N-th of the file from 1 on. An unknown key is an error that names the
// nearest known one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/experiment/files/experiment.h"

namespace mltcp::experiment {

/// A value that is taken instead of the file's, whether it has one or not.
struct Override {
  std::string key;                 ///< its path in the file: "cc", "bottleneck.buffer", "job[2].start", "job[*].jitter"
  std::string value;               ///< as TOML, of one line: "\"75 kB\"", "2", "{ kmin = \"60 kB\" }"
  std::string origin;              ///< stands in messages for file and line: "sweep.toml:7", "--vary"
  std::filesystem::path folder{};  ///< to which a shared object that it names is relative; empty: the current one
};

/// What the caller can run, and what the command line sets in place of the file.
struct FileOptions {
  /// What this version has. A known value that isn't among these is refused with a line that lists them. Empty:
  /// everything the format knows.
  std::vector<std::string> datapaths{"sim"};
  /// Most jobs of datapath ring, which needs ports for each. Empty: as many as the format knows.
  std::optional<std::size_t> most_ring_jobs;

  /// Refuses datapaths that take the machine's time.
  bool virtual_time_only = false;

  /// Applied in this order to what was read, before anything is looked at.
  std::vector<Override> overrides;
  /// Taken instead of the file's key; messages name the option (--datapath and so on) instead of file and line.
  std::optional<std::string> datapath;
  std::optional<std::string> cc;
  std::vector<std::string> policy;  ///< empty: the file's
  std::optional<std::uint32_t> iterations;
  std::optional<std::uint64_t> seed;
};

/// What is wrong with the name of an experiment or a job, as "cause; cure"; empty when it will do.
std::string objection_to_name(std::string_view name);

/// Reads an experiment file and the traces it names. Throws InputError.
Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options = {});
/// The same from memory; `file` stands in messages, and traces are looked for in its folder.
Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options = {});

}  // namespace mltcp::experiment
