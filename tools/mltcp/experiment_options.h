// What the command line says of an experiment, in place of its file: of `mltcp run` and `mltcp gen`; and what other
// commands share of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::tools {

/// What this build can run.
experiment::FileOptions file_options();

struct ExperimentArguments {
  std::string file;
  experiment::FileOptions options = file_options();
};

/// --cc, --policy, --iterations and --seed. `cc_reference` stands behind the names of algorithms: " (docs/...)", or
/// nothing.
void add_experiment_options(Options& options, ExperimentArguments& arguments, const std::string& cc_reference);

/// --seed, a number as in experiment files: the parser of options would take what is too large for the largest there
/// is.
void add_seed(Options& options, std::optional<std::uint64_t>& seed, const std::string& help);

/// The experiment of the file, with what stands in place of it. Throws InputError.
experiment::Experiment load_experiment(const ExperimentArguments& arguments);
/// The same, with what hosts can do.
experiment::Experiment load_for_hosts(ExperimentArguments arguments);

}  // namespace mltcp::tools
