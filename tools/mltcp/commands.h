// The subcommands of `mltcp`, each with its options in a file of its own. They write results to standard output, throw
// InputError or RunError on errors, and return the exit status: success, or work that failed.
#pragma once

namespace mltcp::tools {

class CommandLine;

void add_run_command(CommandLine& line);
void add_sweep_command(CommandLine& line);
void add_schedule_command(CommandLine& line);
void add_advise_command(CommandLine& line);
void add_cluster_command(CommandLine& line);
void add_inspect_command(CommandLine& line);
void add_profile_command(CommandLine& line);
void add_replay_command(CommandLine& line);
void add_report_command(CommandLine& line);
void add_switch_command(CommandLine& line);
void add_gen_command(CommandLine& line);
void add_testbed_command(CommandLine& line);
void add_perf_command(CommandLine& line);
void add_soak_command(CommandLine& line);
void add_key_command(CommandLine& line);
void add_top_command(CommandLine& line);
void add_scheduler_command(CommandLine& line);
void add_kernel_command(CommandLine& line);
void add_algorithms_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
/// Describes all commands that `line` has when it runs.
void add_help_command(CommandLine& line);

}  // namespace mltcp::tools
