// Fuzzes the reader of plan files. The target reads a plan, writes it, and reads it again. Both readings must give the
// same plan.
//
// Input: the text of a plan file.
#include "mltcp/lab/experiment/files/plan_file.h"
#include "target.h"

namespace mltcp::fuzz {

void fuzz_plan(Input input) {
  using namespace experiment;
  is_read([&] {
    const std::string text(input.begin(), input.end());
    const PlanFile plan = parse_plan(text, "plan.json");
    require(parse_plan(to_json(plan), "again") == plan, "a plan is not read as it was written");
    for (const PlanFile::PlannedJob& job : plan.jobs)
      for (const Nanos zero : {Nanos(0), Nanos(std::int64_t{1} << 60)}) {
        const PhasePlan slots = slots_of(plan, job, zero);
        require(slots.period == job.period, "slots of another period");
      }
  });
}

}  // namespace mltcp::fuzz
