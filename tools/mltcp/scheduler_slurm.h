// The options of `mltcp scheduler` for Slurm (scheduler/service/slurm_driver.h), and the driver that they describe.
#pragma once

#include <functional>
#include <string>

#include "command_line.h"
#include "mltcp/scheduler/service/scheduler_service.h"
#include "mltcp/scheduler/service/slurm_client.h"
#include "mltcp/scheduler/service/slurm_driver.h"

namespace mltcp::tools {

struct SlurmArguments {
  bool slurm = false;
  std::string interval = "2 s";
  std::string patience = "60 s";
  std::string hold = "60 s";
  std::string programs;  ///< folder; empty: PATH
  std::string heartbeat = "/run/mltcp/slurm.heartbeat";
};

void add_slurm_options(Options& options, SlurmArguments& arguments);

/// The service's connection to Slurm; starts with its construction.
class SlurmSide {
 public:
  /// The service must outlive it. Throws InputError that names the option.
  SlurmSide(service::SchedulerService& service, const SlurmArguments& arguments,
            std::function<void(const std::string&)> log);

 private:
  service::SlurmPrograms programs_;
  service::SlurmDriver driver_;
};

}  // namespace mltcp::tools
