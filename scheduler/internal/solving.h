// Internal interface between the parts of the solver.
#pragma once

#include <vector>

#include "mltcp/scheduler/internal/search.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::internal {

/// Throws InputError for options out of range.
void check(const SolveOptions& options);

/// Throws InputError for slots that do not fit the problem.
void check(const Problem& problem, const Slots& slots);

/// Maximum bursts of a link's jobs on a perimeter; each takes about 100 bytes during a search.
inline constexpr double kMaxBursts = 1'000'000;
double bursts_on(const Problem::Link& link, const Slots& slots, std::int64_t perimeter);
/// Throws InputError that names the link if there are more.
void check_size(const Problem::Link& link, const Slots& slots, std::int64_t perimeter);

/// evaluate() without checks. With `scores_only`, links have neither margin nor drift_score.
Solution evaluated(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                   const SolveOptions& options, bool scores_only = false);

/// All slots worth considering, by perimeter, each with less stretch than those before it. At least one.
std::vector<Slots> slots_front(const std::vector<Nanos>& periods, const SolveOptions& options);

/// The least common multiple of the slot periods of these jobs.
std::int64_t perimeter_of(const Slots& slots, const std::vector<std::uint32_t>& jobs);

}  // namespace mltcp::scheduler::internal
