// The fields of jobs and their phases (see base/fields.h). Fields with a FileKey are keys of experiment files. Fields
// without a FileKey have separate readers and writers.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/lab/workload/file_key.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program_fields.h"

namespace mltcp::workload {

constexpr auto fields_of(const Phase* /*type*/) {
  return list_of<Phase>(field("kind", &Phase::kind), field("compute", &Phase::compute), field("bytes", &Phase::bytes),
                        field("rate", &Phase::rate), field("overlap", &Phase::overlap),
                        left_out(&Phase::label));  // labels are long, and meant for people
}
/// Returns the highest value of the enumeration.
constexpr Phase::Kind last_of(Phase::Kind /*type*/) { return Phase::Kind::communicate; }

constexpr auto fields_of(const Job::Straggler* /*type*/) {
  using T = Job::Straggler;
  return list_of<T>(field("probability", &T::probability, ProbabilityKey{}),
                    field("factor", &T::factor, NumberKey{1, kMaxStraggling, "3.0"}));
}

constexpr auto fields_of(const Job::Pause* /*type*/) {
  using T = Job::Pause;
  return list_of<T>(field("iteration", &T::iteration, WholeKey{0, kMaxIterations - 1}),
                    field("time", &T::time, TimeKey{"130 ms"}));
}

constexpr auto fields_of(const Job::Change* /*type*/) {
  using T = Job::Change;
  return list_of<T>(field("iteration", &T::iteration, WholeKey{0, kMaxIterations - 1}),
                    field("compute_scale", &T::compute_scale, FactorKey{kMaxStraggling}));
}

constexpr auto fields_of(const Job* /*type*/) {
  using T = Job;
  return list_of<T>(
      field("name", &T::name), field("phases", &T::phases), field("flows", &T::flows, WholeKey{1, kMaxFlows}),
      field("start", &T::start, TimeKey{"0 ms"}), field("start_jitter", &T::start_jitter, TimeKey{"5 ms"}),
      field("jitter", &T::jitter, TimeKey{"1 ms"}),
      field("straggler", &T::straggler, TableKey{"straggler = { probability = 0.02, factor = 3.0 }"}),
      field("pause", &T::pause, TableKey{"pause = { iteration = 20, time = \"130 ms\" }"}),
      field("change", &T::change, TableKey{"change = { iteration = 30, compute_scale = 1.1 }"}),
      field("weight", &T::weight, FactorKey{kMaxWeight}), field("priority", &T::priority, WholeKey{0, kMaxPriority}),
      field("rate", &T::rate, RateKey{}), field("iterations", &T::iterations, WholeKey{1, kMaxIterations}),
      field("stop", &T::stop, TruthKey{}), field("unaware", &T::unaware, TruthKey{}), field("cc", &T::cc),
      field("hosts", &T::hosts), field("pattern", &T::pattern),
      left_out(&T::programs),  // programs are too large for a text format
      left_out(&T::timeline));
}

}  // namespace mltcp::workload
