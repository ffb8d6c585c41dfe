// The program of a rank as a message from the coordinator to the rank's host: {type: "program", run, job, rank, ranks,
// kinds, ...}, sent before the run's set-up. Programs that the host can derive from a pattern or phases are not sent.
// Not installed.
//
// Operations are columns: one letter per operation in "kinds", and lists with the numbers of those operations that have
// them. Offsets are not sent, as no driver uses them. Programs whose sends have rates of their own can't be sent.
#pragma once

#include <nlohmann/json.hpp>

#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::experiment::protocol {

/// Limits for one rank; the limits of any message (kLimits) apply, too.
inline constexpr std::size_t kMaxSentOperations = 500'000;
inline constexpr std::size_t kMaxSentWaits = 2'000'000;

/// The fields of a message. Throws InputError "cause; cure" for a program that exceeds the limits or can't be sent.
nlohmann::json to_json(const workload::RankProgram& program);

/// Throws nlohmann::json::exception or InputError for an invalid program, also for one with waits for later operations,
/// unknown peers, messages without bytes, or impossible times.
workload::RankProgram program_from(const nlohmann::json& json);

}  // namespace mltcp::experiment::protocol
