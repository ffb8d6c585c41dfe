// Options of `mltcp run` and `mltcp gen` that replace settings of the experiment's file, and parts that other commands
// share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::tools {

/// The features that this build can run.
experiment::FileOptions file_options();

struct ExperimentArguments {
  std::string file;
  experiment::FileOptions options = file_options();
};

/// Adds --cc, --policy, --iterations and --seed. `cc_reference` follows the names of algorithms: " (docs/...)", or
/// nothing.
void add_experiment_options(Options& options, ExperimentArguments& arguments, const std::string& cc_reference);

/// Adds --seed, a number as in experiment files. CLI11's own parser would turn too large a number into the largest one.
void add_seed(Options& options, std::optional<std::uint64_t>& seed, const std::string& help);

/// The experiment of the file, with the options' settings. Throws InputError.
experiment::Experiment load_experiment(const ExperimentArguments& arguments);
/// Likewise, with the features of hosts.
experiment::Experiment load_for_hosts(ExperimentArguments arguments);

}  // namespace mltcp::tools
