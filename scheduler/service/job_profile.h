// Profiles of jobs: the work of an iteration in JSON or TOML, given by managers, converted to the scheduler's demand.
//
// JSON, one of:
//   {"compute_ns": 150000000, "communicate_bytes": 13500000}
//   {"phases": [{"compute_ns": ...}, {"communicate_bytes": ..., "rate_bps": ..., "overlap": true}, ...]}
//   {"toml": "[[job]]\n..."}                  a job of an experiment file, as `mltcp inspect --toml` prints it
//   {"trace": {"text": "...", ...}}           a trace layer by layer, with workers, network, ... as in experiment files
//   {"csv": "time_ms,rate_bps\n0,0\n..."}     a profile measured at a port
// and in each of them "rate_bps" (maximum sending rate of a worker; default: the hosts' rate), "period_ns" (a measured
// iteration of the job alone; default: computed, with bytes / rate as the time to send) and "flows" (the job's
// connections from a worker to the next).
//
// Texts come from unknown peers: nothing in them makes the service read a file or load a library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp {
class JsonObject;
}

namespace mltcp::service {

/// Maximum length of a profile's text.
inline constexpr std::size_t kMaxProfileBytes = 1U << 20;

// Limits of a job's demand, which bound the scheduler's time for an arrival.
/// Minimum time of an iteration.
inline constexpr Nanos kShortestIteration(100'000);
/// Maximum bursts of an iteration; adjacent bursts of a profile with more are joined.
inline constexpr std::size_t kMaxDemandBursts = 64;

struct JobProfile {
  workload::Job job;  ///< its phases; rate 0: the hosts' rate
  Nanos period;       ///< of an iteration alone; 0: computed
};

/// Reads a profile from JSON. Throws InputError "WHERE: KEY: cause; cure", in one line; `where` is e.g. "profile".
JobProfile profile_from_json(std::string_view text, const std::string& where);
/// The same for a part of a document.
JobProfile profile_from_json(const JsonObject& json);
/// Reads a job from TOML: one [[job]], or only its keys.
JobProfile profile_from_toml(std::string_view text, const std::string& where);
/// Reads either, distinguished by the first character: JSON begins with a brace.
JobProfile profile_from_text(std::string_view text, const std::string& where);

/// The demand of one worker, for JobRequest::demand. `host_rate` is the rate of the hosts' links
/// (Topology::fastest_host()). Throws InputError if the iteration does not fit in the given period, and for iterations
/// below kShortestIteration.
scheduler::Demand demand_of(const JobProfile& profile, Rate host_rate);

}  // namespace mltcp::service
