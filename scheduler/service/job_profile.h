// Reads job profiles, which cluster managers send in JSON or TOML. A profile describes the work of one iteration. It is
// converted to a demand for the scheduler.
//
// A profile in JSON is one of:
//   {"compute_ns": 150000000, "communicate_bytes": 13500000}
//   {"phases": [{"compute_ns": ...}, {"communicate_bytes": ..., "rate_bps": ..., "overlap": true}, ...]}
//   {"toml": "[[job]]\n..."}                  a job of an experiment file, as `mltcp inspect --toml` prints it
//   {"trace": {"text": "...", ...}}           a trace by layers; keys as in experiment files (workers, network, ...)
//   {"csv": "time_ms,rate_bps\n0,0\n..."}     a profile measured at a port
// Each of these may also have the following keys:
//   "rate_bps"    maximum sending rate of a worker; default: the rate of the hosts
//   "period_ns"   measured time of an iteration without other jobs; default: computed; sending takes bytes / rate
//   "flows"       number of connections from each worker to the next
//
// Profiles come from unknown peers. Nothing in a profile makes the service read a file or load a library.
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

/// Maximum length of the text of a profile, in bytes.
inline constexpr std::size_t kMaxProfileBytes = 1U << 20;

// The next two constants limit the time that the scheduler needs when a job arrives.

/// Minimum time of an iteration: 100 us.
inline constexpr Nanos kShortestIteration(100'000);
/// Maximum number of bursts in an iteration. If a profile has more, adjacent bursts are joined.
inline constexpr std::size_t kMaxDemandBursts = 64;

struct JobProfile {
  workload::Job job;  ///< the phases of an iteration; rate 0 means the rate of the hosts
  Nanos period;       ///< measured time of an iteration without other jobs; 0 if it should be computed
};

/// Reads a profile from JSON. Throws InputError with one line that begins with `where`, such as "profile", and names
/// the wrong key.
JobProfile profile_from_json(std::string_view text, const std::string& where);
/// Reads a profile from an object of a JSON document. Throws InputError.
JobProfile profile_from_json(const JsonObject& json);
/// Reads a profile from TOML: one [[job]] table, or only its keys. Throws InputError.
JobProfile profile_from_toml(std::string_view text, const std::string& where);
/// Reads a profile from JSON if the text begins with a brace, else from TOML. Throws InputError.
JobProfile profile_from_text(std::string_view text, const std::string& where);

/// Returns the demand of one worker, for JobRequest::demand. `host_rate` is the rate of the links of the hosts
/// (Topology::fastest_host()). Throws InputError if the computed iteration is longer than the measured period, or if an
/// iteration is shorter than kShortestIteration.
scheduler::Demand demand_of(const JobProfile& profile, Rate host_rate);

}  // namespace mltcp::service
