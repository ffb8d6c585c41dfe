// The links of a testbed in the results of an experiment and in its series: what its switches counted while a run took
// place.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

/// Gives `run`, of mltcp.results/1 with begun_ns and ended_ns, `links`, the outputs of the switches in its time, and
/// `bottleneck`, that with a rate which was used most. `switches` has what each of them counted (mltcp.switch/1 with a
/// series), and its `number` in the layout. Throws RunError that names a switch whose counters can't be.
void add_links(nlohmann::ordered_json& run, const TestbedLayout& layout, const nlohmann::ordered_json& switches);

/// Adds the links that carried something to the series of `run`, in its rows. `switches` as above. Throws RunError.
void add_links(experiment::RunSeries& series, const nlohmann::ordered_json& run, const TestbedLayout& layout,
               const nlohmann::ordered_json& switches);

}  // namespace mltcp::testbed
