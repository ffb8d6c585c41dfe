// Lists changed parameters of congestion control (see changed_parameters.h).
#include "mltcp/lab/experiment/files/changed_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "mltcp/cc/registry.h"

namespace mltcp::experiment {

std::map<std::string, std::string> changed_parameters(const Experiment& experiment) {
  const auto used = [&](std::string_view name) {
    return std::ranges::any_of(
        experiment.jobs, [&](const workload::Job& job) { return (job.cc.empty() ? experiment.cc : job.cc) == name; });
  };
  std::map<std::string, std::string> changed;
  for (const cc::AlgorithmTable* algorithm : cc::algorithms())
    for (const cc::Parameter& parameter : algorithm->parameters)
      if (const cc::ParameterValue value = experiment.parameters.get(*algorithm, parameter);
          value != parameter.by_default && used(algorithm->name))
        changed[fmt::format("{}.{}", algorithm->name, parameter.name)] = cc::value_text(value);
  return changed;
}

}  // namespace mltcp::experiment
