// Adds the links of a testbed to the results and the series of an experiment, from the counters of the switches during
// a run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

/// Adds the keys `links` and `bottleneck` to `run`, which is a run in mltcp.results/1 with begun_ns and ended_ns.
/// `links` contains the outputs of the switches during the run. `bottleneck` is the output with the highest utilization
/// among the outputs with a rate limit. `switches` contains the counters of each switch (mltcp.switch/1 with a series)
/// and its `number` in the layout. Throws RunError that names a switch whose counters are invalid.
void add_links(nlohmann::ordered_json& run, const TestbedLayout& layout, const nlohmann::ordered_json& switches);

/// Adds the links that sent data during `run` to `series`, the series of this run. `switches` contains the counters of
/// each switch and its `number` in the layout. Throws RunError that names a switch whose counters are invalid.
void add_links(experiment::RunSeries& series, const nlohmann::ordered_json& run, const TestbedLayout& layout,
               const nlohmann::ordered_json& switches);

}  // namespace mltcp::testbed
