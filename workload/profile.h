// Measured demand profiles: the rate at which a job sent, over one iteration, as a table of two columns in CSV.
//
//     time_ms,rate_bps      A row holds from its time on, until the time of the next row. The first time is 0; the last
//     0,0                   one is the period, and the rate beside it is that of the next iteration and not used.
//     150,1e9               Lines that begin with # are comments.
//     258,0
//
// What is measured at a port, in a switch's counters or by a host, becomes a job's demand as it is (CASSINI,
// Rajasekaran et al., NSDI 2024, arXiv 2308.00852, section 3, profiles jobs so).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/workload/job.h"

namespace mltcp::workload {

struct Profile {
  struct Step {
    Nanos from;
    Rate rate;  ///< 0: silence
    bool operator==(const Step&) const = default;
  };
  std::string file;         ///< as it was given
  Nanos period;             ///< above 0, at most a day
  std::vector<Step> steps;  ///< the first from 0, ascending, all below `period`; at least one sends
};

/// Most steps of a profile.
inline constexpr std::size_t kMostProfileSteps = 10'000;

/// By its name, which ends in ".csv".
bool is_profile(const std::filesystem::path& path);

/// Reads a profile. Throws InputError "FILE:LINE: COLUMN: cause; cure".
Profile load_profile(const std::filesystem::path& path);
/// The same from text; `file` stands for it in messages.
Profile parse_profile(std::string_view text, const std::string& file);

/// The iteration as phases, which alone on a link that is fast enough take as long as the profile and send what it
/// says: silence becomes compute time, each step a communication of that rate. What is less than a byte is sent with
/// the next step. Throws InputError where that leaves nothing to send.
std::vector<Phase> to_phases(const Profile& profile);

/// For people: the period, what is sent in it and how long that takes, and its bursts, which are neighbouring steps
/// that send; and the same alone on a link of rate `link`. Throws as to_phases() does.
std::string describe(const Profile& profile, Rate link);

}  // namespace mltcp::workload
