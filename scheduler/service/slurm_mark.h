// The mark in the AdminComment of a Slurm job: the submitter's profile and the job's plan. plugins/slurm/job_submit.lua
// and the driver write marks. The driver, and plugins/slurm/spank_mltcp.c on the nodes, read them:
//
//   mltcp:{"profile":{...},"plan":{"number":3,"hosts":["n0","n1"],"slot_unix_ns":...,"slot_period_ns":...,
//          "time_shift_ns":...,"score":1,"revision":17}}
//
// A plan without slots contains "reason" instead of the times. If the job will never have a plan, the mark contains
// "reason" instead of "plan". The driver preserves the text before and after the mark. Only reasons contain spaces, and
// no string contains braces or escapes, so that a reader in C needs no JSON parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/scheduler/service/job_profile.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

struct SlurmPlan {
  std::uint32_t number = 0;
  std::vector<std::string> hosts;
  bool slots = false;
  std::string reason{};
  std::int64_t slot_unix_ns = 0;
  std::int64_t slot_period_ns = 0;
  std::int64_t time_shift_ns = 0;
  double score = 1;
  std::uint64_t revision = 0;
  bool operator==(const SlurmPlan&) const = default;
};

struct SlurmMark {
  std::string before;                    ///< text of the comment before the mark
  std::string behind;                    //
  std::string profile;                   ///< the profile as JSON, for profile_from_text()
  std::string reason;                    ///< why there will be no plan; empty if there is or will be one
  bool held = false;                     ///< whether the user has held the job (sbatch -H) and must release it
  std::vector<std::string> asked_nodes;  ///< nodes that the user required, if a placement has replaced them
  using Plan = SlurmPlan;
  std::optional<Plan> plan;

  bool operator==(const SlurmMark&) const = default;
};

/// Returns whether `id` has the form of SlurmDriver::id_of(), e.g. "slurm-17-1764063600". Only the driver may use ids
/// of this form. It assumes that a job with an id of this form has ended if Slurm does not know the job.
bool is_slurm_id(std::string_view id);

/// Returns nothing if the comment contains no mark, or an invalid one.
std::optional<SlurmMark> parse_mark(std::string_view comment);
/// Returns the whole comment: the mark and the text around it.
std::string to_text(const SlurmMark& mark);
SlurmMark::Plan to_mark(const JobPlan& plan);

/// Returns a profile as one line of JSON, in the form that `mltcp profile` prints and job_submit.lua writes.
std::string to_line(const JobProfile& profile);

}  // namespace mltcp::service
