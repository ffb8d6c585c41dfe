// The program `mltcp`: reads the command line, calls the command, and converts an exception to a one-line message and
// an exit status. Status 0: success; 1: the work failed; 2: wrong usage or bad input.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "provenance.h"
#include "terminal.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

constexpr const char* kFooter =
    "Exit status: 0 success, 1 the work failed, 2 wrong usage or bad input."
#if !MLTCP_HAS_LAB
    "\nBuilt without the lab: no experiments, traces, scheduler or traffic."
#endif
#if !MLTCP_HAS_DPDK && MLTCP_HAS_LAB
    "\nBuilt without DPDK: no datapath ring, switch or testbed; gen --join has only ports udp:."
#endif
    ;

int complain(int status, const std::string& message) {
  mltcp::tools::print_error(message);
  return status;
}

// Adds all commands, reads the command line, and runs the command.
int dispatch(int argc, char** argv) {
  using namespace mltcp::tools;
  CommandLine line("MLTCP: congestion control that interleaves the bursts of training jobs on a shared network.",
                   kFooter, version_text);
  for (const auto add_command : {
#if MLTCP_HAS_LAB
         add_run_command, add_sweep_command, add_schedule_command, add_advise_command, add_cluster_command,
             add_inspect_command, add_profile_command, add_replay_command, add_report_command, add_switch_command,
             add_gen_command, add_testbed_command, add_scheduler_command, add_perf_command, add_soak_command,
#endif
             add_key_command, add_top_command, add_kernel_command, add_algorithms_command, add_doctor_command,
             add_help_command
       })
    add_command(line);
  return line.run(argc, argv);
}

// Calls dispatch(), and converts an exception to a one-line message and an exit status.
int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const mltcp::InputError& error) {
    return complain(kBadInput, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kFailed, "out of memory; run fewer jobs or iterations, or use a smaller network");
  } catch (const std::exception& error) {
    return complain(kFailed, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = guarded(argc, argv);
  // Standard output is buffered, so a write error may appear only here.
  errno = 0;
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && status == 0)
    return complain(kFailed, fmt::format("standard output cannot be written: {}",
                                         errno != 0 ? std::strerror(errno) : "an earlier part was lost"));
  return status;
}
