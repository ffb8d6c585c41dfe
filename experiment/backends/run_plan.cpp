// What one run is to do (see run_plan.h).
#include "mltcp/experiment/backends/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/workload/inspection.h"

namespace mltcp::experiment {

cc::Augmentation augmentation_of(const std::string& policy, const Experiment& experiment, const workload::Job& job) {
  if (job.unaware) return {};
  if (policy == "static") return cc::Augmentation::constant(job.weight);
  if (policy == "mltcp" || policy == "mltcp+schedule") {
    cc::Augmentation augmentation = cc::Augmentation::mltcp(experiment.mltcp.function);
    augmentation.scale_decrease(experiment.mltcp.scale_decrease);
    return augmentation;
  }
  if (policy == "fair" || policy == "priority" || policy == "schedule") return {};
  throw InputError(fmt::format("policy \"{}\" can't be run by this version", policy));
}

fabric::DumbbellConfig network_of(const Experiment& experiment) {
  fabric::DumbbellConfig network;
  network.pairs = static_cast<std::uint32_t>(experiment.jobs.size());
  network.bottleneck = experiment.bottleneck;
  network.mtu = experiment.mtu;
  network.bottleneck.seed = experiment.seed;
  network.reverse = network.bottleneck;
  network.access_delay = experiment.bottleneck.delay;
  return network;
}

double work_of(const workload::Job& job, const Experiment& experiment, bool real_time) {
  const double work = real_time
                          ? static_cast<double>(workload::ideal_iteration(job, experiment.bottleneck.rate).length.count)
                          : static_cast<double>(job.bytes_per_iteration());
  return std::max(work, 1.0);
}

}  // namespace mltcp::experiment
