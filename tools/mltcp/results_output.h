// Prints and writes results of `mltcp run` and `mltcp gen`, for people and for programs.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/lab/experiment/series/series_file.h"

namespace mltcp::tools {

/// Prints tables and lines to `out` and warnings to standard error. If `json` is given, also writes the results to that
/// file as JSON. `file` is the name of the experiment file. Throws RunError if messages arrived damaged.
void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out);
/// Writes intermediate results to the file `json`, if it is given and replaceable. Standard output is not replaceable
/// and gets only the final results. On failure prints a warning, because writing the final results may succeed.
void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json);
/// Writes the results as the page `file` of `mltcp report`, with charts of `series` unless it is null, and prints the
/// name of the page to `out`. Throws RunError on failure.
void write_report(const experiment::Results& results, const experiment::SeriesFile* series, const std::string& file,
                  std::FILE* out);
/// Returns a line such as "two-vgg19: 2 jobs, 60 iterations, reno at 1 Gbps, on sim (virtual time)".
std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath);
/// Runs the experiment with a progress bar, and prints its problems and captures while it runs. A signal can interrupt
/// it. Writes intermediate results to `json` after each policy. `complete`, if given, may add to the results before
/// each write and before they are returned.
experiment::Results run_and_keep(const experiment::Experiment& experiment, experiment::Datapath& datapath,
                                 experiment::RunOptions options, const Provenance& provenance,
                                 const std::optional<std::string>& json, std::FILE* out,
                                 const std::function<void(experiment::Results&)>& complete = {});

}  // namespace mltcp::tools
