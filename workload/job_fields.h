// The fields of jobs and their phases (see base/fields.h), named as the keys of experiment files where there are such.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/workload/job.h"
#include "mltcp/workload/rank_program_fields.h"

namespace mltcp::workload {

constexpr auto fields_of(const Phase* /*type*/) {
  return list_of<Phase>(field("kind", &Phase::kind), field("compute", &Phase::compute), field("bytes", &Phase::bytes),
                        field("rate", &Phase::rate), field("overlap", &Phase::overlap),
                        left_out(&Phase::label));  // for people, and long
}
/// The highest value.
constexpr Phase::Kind last_of(Phase::Kind /*type*/) { return Phase::Kind::communicate; }

constexpr auto fields_of(const Job::Straggler* /*type*/) {
  return list_of<Job::Straggler>(field("probability", &Job::Straggler::probability),
                                 field("factor", &Job::Straggler::factor));
}

constexpr auto fields_of(const Job::Pause* /*type*/) {
  return list_of<Job::Pause>(field("iteration", &Job::Pause::iteration), field("time", &Job::Pause::time));
}

constexpr auto fields_of(const Job::Change* /*type*/) {
  return list_of<Job::Change>(field("iteration", &Job::Change::iteration),
                              field("compute_scale", &Job::Change::compute_scale));
}

constexpr auto fields_of(const Job* /*type*/) {
  return list_of<Job>(field("name", &Job::name), field("phases", &Job::phases), field("flows", &Job::flows),
                      field("start", &Job::start), field("start_jitter", &Job::start_jitter),
                      field("jitter", &Job::jitter), field("straggler", &Job::straggler), field("pause", &Job::pause),
                      field("change", &Job::change), field("weight", &Job::weight), field("rate", &Job::rate),
                      field("iterations", &Job::iterations), field("cc", &Job::cc), field("unaware", &Job::unaware),
                      field("hosts", &Job::hosts), field("pattern", &Job::pattern), field("priority", &Job::priority));
}

}  // namespace mltcp::workload
