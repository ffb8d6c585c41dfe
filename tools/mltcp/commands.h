// The subcommands of `mltcp`. Each subcommand has its options in its own source file, writes results to standard
// output, and returns the exit status: 0 for success, or 1 if the work failed. Subcommands throw InputError or RunError
// on errors.
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
/// Adds `mltcp help`, which describes all commands that `line` contains when `mltcp help` runs.
void add_help_command(CommandLine& line);

}  // namespace mltcp::tools
