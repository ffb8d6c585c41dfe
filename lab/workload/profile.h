// Measured demand profiles: the rate at which a job sent during one iteration, as a CSV table of two columns.
//
//     time_ms,rate_bps      A row is valid from its time until the time of the next row. The first time is 0. The last
//     0,0                   time is the period; the rate of the last row belongs to the next iteration and is not used.
//     150,1e9               Lines that begin with # are comments.
//     258,0
//
// Measurements at a port, from a switch's counters or by a host, become a job's demand without conversion. The method
// is that of CASSINI (Rajasekaran et al., NSDI 2024, arXiv 2308.00852, section 3).
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
    Rate rate;  ///< 0 if the job sends nothing
    bool operator==(const Step&) const = default;
  };
  std::string file;         ///< path of the file, as the caller gave it
  Nanos period;             ///< length of an iteration; above 0, at most a day
  std::vector<Step> steps;  ///< in ascending order, from time 0 to before `period`; at least one rate is above 0
};

/// Maximum number of steps of a profile.
inline constexpr std::size_t kMaxProfileSteps = 10'000;

/// Returns whether the first line that is not a comment looks like the header of a profile. A comma and one
/// recognisable column name, of times or of rates, are enough.
bool is_profile(std::string_view text);

/// Reads a profile from a file. Throws InputError "FILE:LINE: COLUMN: cause; cure".
Profile load_profile(const std::filesystem::path& path);
/// Parses a profile; `file` is its name for messages. Throws InputError as load_profile() does.
Profile parse_profile(std::string_view text, const std::string& file);

/// Returns the iteration as phases. On a sufficiently fast link without other traffic, these phases take as long and
/// send as much as the profile. A step without traffic becomes compute time. Any other step becomes a communication at
/// its rate. Fractions of a byte are carried over to the next step. Throws InputError if less than one byte is sent.
std::vector<Phase> to_phases(const Profile& profile);

/// Returns a description for people: the period, the bytes and sending time in a period, and the bursts (adjacent steps
/// that send). It also states the iteration time of the job on a link of rate `link` without other traffic. Throws if
/// to_phases() does.
std::string describe(const Profile& profile, Rate link);

}  // namespace mltcp::workload
