// `mltcp profile`: prints a job's profile as one line of JSON, for the scheduler service and cluster managers. Slurm's
// plug-in runs it when a user submits a job.
#include <fmt/format.h>

#include <string>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/scheduler/service/job_profile.h"
#include "mltcp/scheduler/service/slurm_mark.h"

namespace mltcp::tools {
namespace {

struct ProfileArguments {
  std::string file;
};

void add_options(Options& options, ProfileArguments& arguments) {
  options
      .add("FILE", arguments.file, "A job: TOML that mltcp inspect --toml prints, or JSON that mltcp scheduler accepts")
      .required();
}

int print(const ProfileArguments& arguments) {
  constexpr TextFile kind{"a job's profile", service::kMaxProfileBytes};
  const std::string text = read_text_file(arguments.file, arguments.file, kind);
  try {
    fmt::print("{}\n", service::to_line(service::profile_from_text(text, arguments.file)));
  } catch (const InputError&) {
    experiment::refuse_other_kind(text, arguments.file, kind.what, {experiment::FileKind::experiment});
    throw;
  }
  return 0;
}

}  // namespace

void add_profile_command(CommandLine& line) {
  line.add<ProfileArguments>("profile",
                             "Print a job's profile as one line of JSON, for schedulers (docs/how-to/slurm.md)",
                             add_options, print);
}

}  // namespace mltcp::tools
