// `mltcp key`: creates the key that the hosts of a job share, or prints the fingerprint of a file's key. The key itself
// is never shown.
#include <fmt/format.h>

#include <string>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::tools {
namespace {

struct KeyArguments {
  std::string file;
  bool show = false;
};

void add_options(Options& options, KeyArguments& arguments) {
  options
      .add("FILE", arguments.file,
           "The new key file, which only its owner can read; with --show, an existing key file, or fd:N")
      .required();
  options.flag("--show", arguments.show, "Print the id of the key in a file; the id reveals nothing about the key");
}

int key(const KeyArguments& arguments) {
  if (arguments.show) {
    fmt::print("{:016x}\n", security::JobKey::from_source(arguments.file).id());
    return 0;
  }
  // Option --key reads these names as a descriptor or standard input, not as a file.
  if (arguments.file.empty() || arguments.file == "-" || arguments.file.starts_with("fd:"))
    throw InputError(fmt::format("{} is not a valid name for a key file; give another{}", in_quotes(arguments.file),
                                 arguments.file.empty()
                                     ? ", e.g. mltcp key job.key"
                                     : fmt::format(", or write it as {}", in_quotes("./" + arguments.file))));
  const security::JobKey made = security::JobKey::generate();
  made.write_file(arguments.file);
  fmt::print("{:016x}\n", made.id());
  return 0;
}

}  // namespace

void add_key_command(CommandLine& line) {
  line.add<KeyArguments>(
      "key", "Create the key that the hosts of a job share, or print the id of a file's key (docs/how-to/keys.md)",
      add_options, key);
}

}  // namespace mltcp::tools
