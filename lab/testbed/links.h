// Adds the links of a testbed to the results and the series of an experiment, from what the switches counted during a
// run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

/// Adds `links` and `bottleneck` to `run`, a run in mltcp.results/1 with begun_ns and ended_ns. `links` are the outputs
/// of the switches during the run. `bottleneck` is the most used output that has a rate. `switches` contains the
/// counters of each switch (mltcp.switch/1 with a series) and its `number` in the layout. Throws RunError that names a
/// switch whose counters are invalid.
void add_links(nlohmann::ordered_json& run, const TestbedLayout& layout, const nlohmann::ordered_json& switches);

/// Adds the links that sent something during `run` to its series, at the times of the series. `switches` contains the
/// counters of each switch and its `number` in the layout. Throws RunError.
void add_links(experiment::RunSeries& series, const nlohmann::ordered_json& run, const TestbedLayout& layout,
               const nlohmann::ordered_json& switches);

}  // namespace mltcp::testbed
