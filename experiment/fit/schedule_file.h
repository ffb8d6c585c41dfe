// Reading of what `mltcp schedule --json FILE` wrote, "mltcp.schedule/1", so that its page can be made later.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/experiment/fit/compatibility.h"

namespace mltcp::experiment {

/// What render_schedule() needs: all but the network, which the file doesn't hold, and each job's first_send. Jobs that
/// are unaware come last. `file` stands for the file in messages. Throws InputError, in one line that names file,
/// place, what is wrong and the cure.
ScheduleResult parse_schedule(std::string_view text, const std::string& file);

}  // namespace mltcp::experiment
