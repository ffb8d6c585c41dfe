// Options of `mltcp run` and `mltcp gen` that replace settings of the experiment file. Other commands use some of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::tools {

/// Returns the features that this build can run.
experiment::FileOptions file_options();

struct ExperimentArguments {
  std::string file;
  experiment::FileOptions options = file_options();
};

/// Adds --cc, --policy, --iterations and --seed. The help of --cc lists the algorithms, followed by `cc_reference`,
/// which names a document in brackets, or is empty.
void add_experiment_options(Options& options, ExperimentArguments& arguments, const std::string& cc_reference);

/// Adds --seed, a number in the range of experiment files. CLI11's own parser would replace a number that is too large
/// by the largest possible number.
void add_seed(Options& options, std::optional<std::uint64_t>& seed, const std::string& help);

/// Returns the experiment of the file, changed by the given options. Throws InputError.
experiment::Experiment load_experiment(const ExperimentArguments& arguments);
/// Returns the experiment of the file, changed by the given options, with datapath "hosts". Throws InputError.
experiment::Experiment load_for_hosts(ExperimentArguments arguments);

}  // namespace mltcp::tools
