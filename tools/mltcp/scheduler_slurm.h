// The options of `mltcp scheduler` for Slurm, and the driver that they configure (scheduler/service/slurm_driver.h).
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
  std::string programs;  ///< folder of Slurm's programs; empty: they are found by PATH
  std::string heartbeat = "/run/mltcp/slurm.heartbeat";
};

void add_slurm_options(Options& options, SlurmArguments& arguments);

/// The connection of the scheduler service to Slurm. The constructor starts it.
class SlurmSide {
 public:
  /// `service` must outlive this object. Throws InputError, which names the option, if a value is invalid.
  SlurmSide(service::SchedulerService& service, const SlurmArguments& arguments,
            std::function<void(const std::string&)> log);

 private:
  service::SlurmPrograms programs_;
  service::SlurmDriver driver_;
};

}  // namespace mltcp::tools
