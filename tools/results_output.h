// What was measured, for people and for programs: of `mltcp run` and `mltcp gen`.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::tools {

/// What was measured, as tables and lines on `out`, and with warnings on standard error; then as JSON to `json`, if it
/// is given. `file` is the experiment's. Throws RunError where messages arrived damaged.
void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out);
/// Keeps what there is so far in the file `json`, if one is given that can be replaced: standard output gets it once,
/// in the end. Warns where that fails: in the end it may not.
void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json);
/// "two-vgg19: 2 jobs, 60 iterations, reno at 1 Gbps, on sim (virtual time)".
std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath);

}  // namespace mltcp::tools
