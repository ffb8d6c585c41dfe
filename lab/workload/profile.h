// Measured demand profiles: the rate at which a job sent during one iteration, as a CSV table of two columns.
//
//     time_ms,rate_bps      A row holds from its time on, until the time of the next row. The first time is 0; the last
//     0,0                   one is the period, and the rate beside it is that of the next iteration and not used.
//     150,1e9               Lines that begin with # are comments.
//     258,0
//
// Measurements at a port, of a switch's counters or by a host, become a job's demand without conversion (profiled as in
// CASSINI, Rajasekaran et al., NSDI 2024, arXiv 2308.00852, section 3).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

struct Profile {
  struct Step {
    Nanos from;
    Rate rate;  ///< 0: silence
    bool operator==(const Step&) const = default;
  };
  std::string file;         ///< path as given
  Nanos period;             ///< above 0, at most a day
  std::vector<Step> steps;  ///< the first at 0, ascending, all below `period`; at least one rate above 0
};

/// Maximum number of steps of a profile.
inline constexpr std::size_t kMaxProfileSteps = 10'000;

/// Whether the first line that is no comment names a column of times or of rates, even if the other one is wrong.
bool is_profile(std::string_view text);

/// Reads a profile. Throws InputError "FILE:LINE: COLUMN: cause; cure".
Profile load_profile(const std::filesystem::path& path);
/// The same from text; `file` is used in messages.
Profile parse_profile(std::string_view text, const std::string& file);

/// The iteration as phases which, alone on a sufficiently fast link, take as long and send as much as the profile:
/// silence becomes compute time, each step a communication at its rate. Fractions of a byte are carried over to the
/// next step. Throws InputError if nothing is left to send.
std::vector<Phase> to_phases(const Profile& profile);

/// For people: the period, bytes and sending time per period, and bursts (adjacent sending steps); and the same alone
/// on a link of rate `link`. Throws like to_phases().
std::string describe(const Profile& profile, Rate link);

}  // namespace mltcp::workload
