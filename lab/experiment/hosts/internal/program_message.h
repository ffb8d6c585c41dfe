// The program of a rank as a message from the coordinator to the host on which it lives: {type: "program", run, job,
// rank, ranks, kinds, ...}, before the run's set-up. What host and coordinator have in common by a pattern or phases
// isn't sent. Not installed.
//
// Operations are columns: a letter each in "kinds", numbers of those that have them in lists. Offsets stay behind, as
// no driver looks at them, and programs whose sends have rates of their own can't be sent.
#pragma once

#include <nlohmann/json.hpp>

#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::experiment::protocol {

/// Of a rank; the message's other limits (kLimits) hold, too.
inline constexpr std::size_t kMaxSentOperations = 500'000;
inline constexpr std::size_t kMaxSentWaits = 2'000'000;

/// The fields of a message. Throws InputError "cause; cure" for a program above the limits, or one that can't be sent.
nlohmann::json to_json(const workload::RankProgram& program);

/// Throws nlohmann::json::exception or InputError for what is no program, or can't be run: waits for later operations,
/// peers that there are none of, messages without bytes, times that can't be.
workload::RankProgram program_from(const nlohmann::json& json);

}  // namespace mltcp::experiment::protocol
