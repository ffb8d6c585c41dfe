// Functions that the source files of the solver share.
#pragma once

#include <vector>

#include "mltcp/scheduler/internal/search.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::internal {

/// Throws InputError if an option is out of range.
void check(const SolveOptions& options);

/// Throws InputError if `slots` do not fit the jobs of the problem.
void check(const Problem& problem, const Slots& slots);

/// Maximum number of bursts of all jobs of a link on its perimeter. Each burst needs about 100 bytes during a search.
inline constexpr double kMaxBursts = 1'000'000;
double bursts_on(const Problem::Link& link, const Slots& slots, std::int64_t perimeter);
/// Throws InputError that names the link if it has more than kMaxBursts bursts on the perimeter.
void check_size(const Problem::Link& link, const Slots& slots, std::int64_t perimeter);

/// Does the same as evaluate(), without checking the arguments. If `scores_only` is true, does not compute margins and
/// drift scores.
Solution evaluated(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                   const SolveOptions& options, bool scores_only = false);

/// Returns all slots worth considering, at least one, in ascending order of perimeter. Each has less stretch than all
/// slots with a shorter perimeter.
std::vector<Slots> slots_front(const std::vector<Nanos>& periods, const SolveOptions& options);

/// Returns the least common multiple of the slot periods of `jobs`.
std::int64_t perimeter_of(const Slots& slots, const std::vector<std::uint32_t>& jobs);

}  // namespace mltcp::scheduler::internal
