// Options that replace settings of an experiment (see experiment_options.h).
#include "experiment_options.h"

#include <fmt/format.h>

#include "algorithm_lists.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/transport/balancers.h"
#include "mltcp/transport/packet_io.h"
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
      .add("--cc", arguments.options.cc,
           fmt::format("Congestion control: {}{}; default: the file's, or reno", algorithm_choices(), cc_reference))
      .suggest(algorithm_names());
  std::vector<std::string> balancer_names;
  for (const BalancerTable& balancer : balancers()) balancer_names.emplace_back(balancer.name);
  options
      .add("--balance", arguments.options.balance,
           fmt::format("How packets are spread over paths: {}; default: the file's, or {}",
                       fmt::join(balancer_names, ", "), balancer_names.front()))
      .suggest(balancer_names);
  options.add("--paths", arguments.options.paths, "Path values of each connection; default: the file's, or 128")
      .check(whole(1, kMaxPaths));
  options
      .add_list("--policy", arguments.options.policy,
                "Policies, separated by commas, e.g. fair,mltcp; default: the file's, or fair,mltcp")
      .suggest(experiment::policy_names());
  options.add("--iterations", arguments.options.iterations, "Iterations per job; default: the file's, or 50")
      .check(whole(1, 1'000'000));
  add_seed(options, arguments.options.seed, "Seed of all random values, 0 to 2^63 - 1; default: the file's, or 1");
}

void add_seed(Options& options, std::optional<std::uint64_t>& seed, const std::string& help) {
  const auto take = [&seed](const std::string& text) {
    seed = number_from<std::uint64_t>(text, 0, INT64_MAX);
    return seed ? std::string() : in_quotes(text) + " is not a whole number from 0 to 2^63 - 1";
  };
  options.add_read("--seed", take, help);
}

experiment::Experiment load_experiment(const ExperimentArguments& arguments) {
  return experiment::load_experiment(arguments.file, arguments.options);
}

experiment::Experiment load_for_hosts(ExperimentArguments arguments) {
  arguments.options.datapath = "sim";  // sim supports every feature of datapath "hosts"
  experiment::Experiment experiment = load_experiment(arguments);
  experiment.datapath = "hosts";
  return experiment;
}

}  // namespace mltcp::tools
