// Slurm's options (see scheduler_slurm.h).
#include "scheduler_slurm.h"

#include <utility>

#include "option_values.h"

namespace mltcp::tools {
namespace {

service::SlurmDriverOptions driver_options(const SlurmArguments& arguments,
                                           std::function<void(const std::string&)> log) {
  service::SlurmDriverOptions options;
  options.interval = of_option("--slurm-interval", arguments.interval, parse_duration);
  options.start_patience = of_option("--slurm-patience", arguments.patience, parse_duration);
  options.longest_hold = of_option("--slurm-hold", arguments.hold, parse_duration);
  options.heartbeat = arguments.heartbeat;
  options.log = std::move(log);
  return options;
}

}  // namespace

void add_slurm_options(Options& options, SlurmArguments& arguments) {
  options.flag("--slurm", arguments.slurm, "Place the jobs of Slurm that name a profile (docs/how-to/slurm.md)");
  options.add("--slurm-interval", arguments.interval, "How often Slurm is looked at; default \"2 s\"");
  options.add("--slurm-hold", arguments.hold, "How long a job is held for lack of room; default \"60 s\"");
  options.add("--slurm-patience", arguments.patience,
              "How long a released job may take to start where it was placed; default \"60 s\"");
  options.add("--slurm-programs", arguments.programs, "Folder of squeue, sinfo and scontrol; default: PATH");
  options.add("--slurm-heartbeat", arguments.heartbeat,
              "File by which job_submit.lua knows that jobs may be held; default /run/mltcp/slurm.heartbeat");
}

SlurmSide::SlurmSide(service::SchedulerService& service, const SlurmArguments& arguments,
                     std::function<void(const std::string&)> log)
    : programs_({.folder = arguments.programs}),
      driver_(service, programs_, driver_options(arguments, std::move(log))) {
  driver_.start();
}

}  // namespace mltcp::tools
