// What the command line says of an experiment (see experiment_options.h).
#include "experiment_options.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "algorithm_lists.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/policy.h"
#if MLTCP_HAS_DPDK
#include "mltcp/lab/realtime/ring_dumbbell.h"
#endif

namespace mltcp::tools {

experiment::FileOptions file_options() {
  experiment::FileOptions options;
  options.datapaths = experiment::available_datapaths();
#if MLTCP_HAS_DPDK
  options.max_ring_jobs = realtime::RingDumbbell::max_pairs();
#endif
  return options;
}

void add_experiment_options(Options& options, ExperimentArguments& arguments, const std::string& cc_reference) {
  options
      .add("--cc", arguments.cc,
           fmt::format("Congestion control: {}{}; default: the file's, or reno", algorithm_choices(), cc_reference))
      .suggest(algorithm_names());
  options
      .add_list("--policy", arguments.policies,
                "Policies, several as in fair,mltcp; default: the file's, or fair,mltcp")
      .suggest(experiment::policy_names());
  options.add("--iterations", arguments.iterations, "Iterations per job; default: the file's, or 50")
      .check(whole(1, 1'000'000));
  add_seed(options, arguments.seed, "Seed of everything random, 0 to 2^63 - 1; default: the file's, or 1");
}

void add_seed(Options& options, std::optional<std::uint64_t>& seed, const std::string& help) {
  const auto take = [&seed](const std::string& text) {
    std::int64_t value = -1;
    const char* const end = text.data() + text.size();
    const auto [at, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || at != end || value < 0)
      return in_quotes(text) + " is not a whole number from 0 to 2^63 - 1";
    seed = static_cast<std::uint64_t>(value);
    return std::string();
  };
  options.add("--seed", take, help);
}

experiment::Experiment load_experiment(const ExperimentArguments& arguments) {
  experiment::FileOptions options = file_options();
  options.datapath = arguments.datapath;
  options.cc = arguments.cc;
  options.policy = arguments.policies;
  options.iterations = arguments.iterations;
  options.seed = arguments.seed;
  return experiment::load_experiment(arguments.file, options);
}

}  // namespace mltcp::tools
