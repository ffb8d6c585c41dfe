// Reader of the files that `mltcp schedule --json FILE` writes, "mltcp.schedule/1", to render their page later.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/lab/experiment/fit/compatibility.h"

namespace mltcp::experiment {

/// Returns what render_schedule() needs, except for the network and each job's first_send, which are not in the file.
/// Unaware jobs come last. `file` is used in messages. Throws InputError with one line that names file, position, cause
/// and cure.
ScheduleResult parse_schedule(std::string_view text, const std::string& file);

}  // namespace mltcp::experiment
