// The options of `mltcp scheduler` for Slurm (see scheduler_slurm.h).
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
  options.add("--slurm-interval", arguments.interval, "Time between queries to Slurm; default \"2 s\"");
  options.add("--slurm-hold", arguments.hold, "Maximum time to hold a job that has no placement; default \"60 s\"");
  options.add("--slurm-patience", arguments.patience,
              "Maximum time for a released job to start at its placement; default \"60 s\"");
  options.add("--slurm-programs", arguments.programs, "Folder of squeue, sinfo and scontrol; default: search PATH");
  options.add("--slurm-heartbeat", arguments.heartbeat,
              "File that shows job_submit.lua that the service is running, so jobs may be held; default "
              "/run/mltcp/slurm.heartbeat");
}

SlurmSide::SlurmSide(service::SchedulerService& service, const SlurmArguments& arguments,
                     std::function<void(const std::string&)> log)
    : programs_({.folder = arguments.programs}),
      driver_(service, programs_, driver_options(arguments, std::move(log))) {
  driver_.start();
}

}  // namespace mltcp::tools
