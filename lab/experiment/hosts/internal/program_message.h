// The program of a rank as a message from the coordinator to the rank's host: {type: "program", run, job, rank, ranks,
// kinds, ...}. The coordinator sends it before the run's set-up. Programs that a host can derive from a pattern or
// phases are not sent. Not installed.
//
// A message stores operations as columns: "kinds" has one letter per operation, and each other list has numbers for
// those operations that need them. Offsets are not sent, because drivers do not use them. A program that sets the rates
// of individual sends cannot be sent.
#pragma once

#include <nlohmann/json.hpp>

#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::experiment::protocol {

/// Limits for the program of one rank. The limits of messages (kLimits) apply in addition.
inline constexpr std::size_t kMaxSentOperations = 500'000;
inline constexpr std::size_t kMaxSentWaits = 2'000'000;

/// Returns the fields of a message. Throws InputError "cause; cure" for a program that exceeds the limits or cannot be
/// sent.
nlohmann::json to_json(const workload::RankProgram& program);

/// Reads a program. Throws nlohmann::json::exception or InputError for an invalid program. Programs are also invalid if
/// an operation waits for a later operation, or if there are unknown peers, messages without bytes, or impossible
/// times.
workload::RankProgram program_from(const nlohmann::json& json);

}  // namespace mltcp::experiment::protocol
