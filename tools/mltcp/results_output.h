// Output of results for people and programs, by `mltcp run` and `mltcp gen`.
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

/// Prints tables and lines to `out` and warnings to standard error, then writes JSON to `json`, if given. `file` is the
/// experiment's. Throws RunError if messages arrived damaged.
void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out);
/// Writes intermediate results to the file `json`, if that is given and replaceable (standard output gets only the
/// final ones). Warns on failure, since the final attempt may succeed.
void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json);
/// Writes the page of `mltcp report` for the results, with charts of `series` if given, and prints its name to `out`.
/// Throws RunError.
void write_report(const experiment::Results& results, const experiment::SeriesFile* series, const std::string& file,
                  std::FILE* out);
/// "two-vgg19: 2 jobs, 60 iterations, reno at 1 Gbps, on sim (virtual time)".
std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath);
/// Runs the experiment with a progress bar, and prints its problems and captures meanwhile. It can be interrupted;
/// intermediate results after each policy are written to `json`. `complete`, if any, adds to the results.
experiment::Results run_and_keep(const experiment::Experiment& experiment, experiment::Datapath& datapath,
                                 experiment::RunOptions options, const Provenance& provenance,
                                 const std::optional<std::string>& json, std::FILE* out,
                                 const std::function<void(experiment::Results&)>& complete = {});

}  // namespace mltcp::tools
