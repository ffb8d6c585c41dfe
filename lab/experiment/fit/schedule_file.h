// Reads the files "mltcp.schedule/1" that `mltcp schedule --json FILE` writes, so that they can be rendered as a page.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/lab/experiment/fit/compatibility.h"

namespace mltcp::experiment {

/// Returns the schedule in a file, as render_schedule() needs it. The network and each job's first_send are not in the
/// file and are not set. Unaware jobs come last. Messages name `file`. Throws InputError with one line that names file,
/// position, cause and cure.
ScheduleResult parse_schedule(std::string_view text, const std::string& file);

}  // namespace mltcp::experiment
