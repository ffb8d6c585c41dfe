// What a job does in an iteration, as managers tell it: JSON or TOML, turned into the demand that the scheduler needs.
//
// JSON, one of:
//   {"compute_ns": 150000000, "communicate_bytes": 13500000}
//   {"phases": [{"compute_ns": ...}, {"communicate_bytes": ..., "rate_bps": ..., "overlap": true}, ...]}
//   {"toml": "[[job]]\n..."}                  a job of an experiment file, as `mltcp inspect --toml` prints it
//   {"trace": {"text": "...", ...}}           a trace layer by layer, with workers, network, ... as in experiment files
//   {"csv": "time_ms,rate_bps\n0,0\n..."}     a profile measured at a port
// and besides in each of them "rate_bps" (the most that a worker sends; default: the hosts' rate) and "period_ns" (a
// measured iteration of the job alone; default: computed, as if bytes took nothing but bytes / rate), and "flows" (the
// job's connections from a worker to the next).
//
// Texts come from strangers: nothing in them makes the service read a file or load a library.
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

// What a job asks of the scheduler is bounded, so that no arrival takes it long.
/// The least time of an iteration.
inline constexpr Nanos kShortestIteration(100'000);
/// Bursts of an iteration, at most; those of a profile with more are joined with their neighbours.
inline constexpr std::size_t kMaxDemandBursts = 64;

struct JobProfile {
  workload::Job job;  ///< with its phases; rate 0: the hosts' rate
  Nanos period;       ///< of an iteration alone; 0: computed
};

/// Reads a profile of JSON. Throws InputError "WHERE: KEY: cause; cure", in one line; `where` is, for one, "profile".
JobProfile profile_from_json(std::string_view text, const std::string& where);
/// The same of a part of a document.
JobProfile profile_from_json(const JsonObject& json);
/// Reads a job of TOML: one [[job]], or its keys alone.
JobProfile profile_from_toml(std::string_view text, const std::string& where);
/// Either, told apart by the first character: JSON begins with a brace.
JobProfile profile_from_text(std::string_view text, const std::string& where);

/// What one worker of the job sends, for JobRequest::demand. `host_rate` is that of the hosts' links
/// (Topology::fastest_host()). Throws InputError if a period was given in which the iteration doesn't fit, and for
/// iterations below kShortestIteration.
scheduler::Demand demand_of(const JobProfile& profile, Rate host_rate);

}  // namespace mltcp::service
