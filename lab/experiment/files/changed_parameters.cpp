// Lists changed parameters of congestion control (see changed_parameters.h).
#include "mltcp/lab/experiment/files/changed_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "mltcp/cc/registry.h"
#include "mltcp/cc/turns.h"

namespace mltcp::experiment {

std::map<std::string, std::string> changed_parameters(const Experiment& experiment, bool iteration_aware) {
  const auto used = [&](std::string_view name) {
    return std::ranges::any_of(
        experiment.jobs, [&](const workload::Job& job) { return (job.cc.empty() ? experiment.cc : job.cc) == name; });
  };
  std::map<std::string, std::string> changed;
  const auto add = [&](const cc::ParameterTable& table) {
    for (const cc::Parameter& parameter : table.parameters)
      if (const cc::ParameterValue value = experiment.parameters.get(table, parameter); value != parameter.by_default)
        changed[fmt::format("{}.{}", table.name, parameter.name)] = cc::value_text(value);
  };
  for (const cc::AlgorithmTable* algorithm : cc::algorithms())
    if (used(algorithm->name)) add(*algorithm);
  if (iteration_aware) add(cc::find_parameters(cc::Turns::name));
  return changed;
}

}  // namespace mltcp::experiment
