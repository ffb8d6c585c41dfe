// Derives a run's network and the cost of its iterations (see run_plan.h).
#include "mltcp/lab/experiment/backends/run_plan.h"

#include <algorithm>

#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {

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
