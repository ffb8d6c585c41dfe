// Reads traces for commands (see trace_files.h).
#include "mltcp/lab/experiment/files/trace_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/workload/profile.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kTrace{"a trace", std::size_t{1} << 30};

/// Reads a trace again so that the FileObserver sees it, because traces are streamed. Does nothing without a
/// FileObserver, for pipes, and for files that are too large.
void show(const std::filesystem::path& path) {
  std::error_code error;
  if (!FileObserver::exists() || !std::filesystem::is_regular_file(path, error)) return;
  try {
    static_cast<void>(read_text_file(path, path.string(), kTrace));
  } catch (const InputError&) {
    return;
  }
}

void show(std::span<const std::filesystem::path> paths) {
  for (const std::filesystem::path& path : paths) {
    std::set<std::filesystem::path> files{path};
    std::error_code error;
    std::filesystem::directory_iterator entry(path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      files.insert(entry->path());
    for (const std::filesystem::path& file : files) show(file);
  }
}

}  // namespace

workload::ExecutionGraph read_job_traces(std::span<const std::filesystem::path> paths,
                                         const workload::TraceOptions& options) {
  try {
    workload::ExecutionGraph graph = workload::read_traces(paths, options);
    show(paths);
    return graph;
  } catch (const InputError&) {
    for (const std::filesystem::path& path : paths) {
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;  // a pipe cannot be read again
      std::string text;
      try {
        text = read_text_file(path, path.string(), kTrace);
      } catch (const InputError&) {
        continue;  // the error of read_traces() is reported
      }
      const bool profiles = !options.also_known.empty() && paths.size() == 1;
      refuse_known_kind(text, path.string(), profiles ? "a trace or a demand profile" : kTrace.what, {FileKind::trace});
    }
    throw;
  }
}

workload::GraphSummary summarise_job_traces(std::span<const std::filesystem::path> paths,
                                            const workload::TraceView& view) {
  return workload::summary_of(read_job_traces(paths, workload::options_of(view)), view);
}

bool is_measured_profile(const std::filesystem::path& file) {
  std::error_code error;
  // Pipes are not inspected, because their data can be read only once.
  if (!std::filesystem::is_regular_file(file, error) || workload::format_of(file) != nullptr) return false;
  constexpr TextFile kind{"a trace or a demand profile", std::size_t{1} << 30};
  return workload::is_profile(read_text_file(file, file.string(), kind));
}

std::string job_name_of(const std::filesystem::path& file) {
  constexpr std::array endings{".gz", ".zst", ".xz",  ".bz2", ".tgz",    ".tar", ".json", ".jsonl",
                               ".et", ".txt", ".log", ".csv", ".sqlite", ".cm",  ".dat",  ".toml"};
  const std::filesystem::path path = file.has_filename() ? file : file.parent_path();
  std::filesystem::path name = path.filename();
  while (std::ranges::find(endings, name.extension().string()) != endings.end()) name = name.stem();
  const std::string last = name.extension().string();
  const std::string before = name.stem().string();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // A number at the end is a rank, unless it is part of a version such as "0.0.4".
  if (last.size() > 1 && std::all_of(last.begin() + 1, last.end(), is_digit) && !is_digit(before.back())) name = before;
  const std::string result = name.string();
  return objection_to_name(result).empty() ? result : "trace";
}

}  // namespace mltcp::experiment
