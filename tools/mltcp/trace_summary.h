// Traces as the commands that look at one rank of a job read them, mltcp inspect and mltcp advise: by one reader for
// each format, so that they say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/schedule.h"

namespace mltcp::tools {

struct TraceRequest {
  std::vector<std::string> files;     ///< of one job
  std::uint32_t ranks = 0;            ///< of the job; 0: as the trace tells
  std::optional<std::uint32_t> rank;  ///< whose view it is; default: the first that has a trace
  Rate link{100'000'000'000};
  double compute_scale = 1;
  double bytes_scale = 1;
  // Of traces in 12 columns alone:
  std::uint32_t workers = 0;                 ///< that reduce weight gradients; 0: as the trace tells
  std::optional<workload::Network> network;  ///< see TraceOptions::network
  /// See TraceOptions::also_known.
  std::string_view also_known = "measured profile (columns time_ms,rate_bps)";
};

/// Throws InputError "FILE: cause; cure", also for options that the format has no use for.
workload::GraphSummary summarise_traces(const TraceRequest& request);

/// Whether a file is a measured profile, by how it begins.
bool is_measured_profile(const std::string& file);

}  // namespace mltcp::tools
