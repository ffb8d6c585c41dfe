// mltcp cluster: reads a cluster file, runs it under each scheme, and prints how the schemes compare.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/cluster_file.h"
#include "mltcp/experiment/cluster_run.h"
#include "output_file.h"
#include "terminal.h"

namespace mltcp::tools {

int cluster(const ClusterArguments& arguments) {
  experiment::ClusterFileOptions options;
  if (arguments.level)
    options.level = *arguments.level == "flow" ? experiment::ClusterExperiment::Level::flow
                                               : experiment::ClusterExperiment::Level::packet;
  options.schemes = arguments.schemes;
  options.seed = arguments.seed;
  options.seeds = arguments.seeds;
  const experiment::ClusterExperiment experiment = experiment::load_cluster(arguments.file, options);
  for (const auto& file : {arguments.json, arguments.markdown})
    if (file) check_writable(*file, arguments.file);
  if (arguments.json == "-" && arguments.markdown == "-")
    throw InputError("--json, --markdown: one of them can have standard output; name a file for the other");
  for (const std::string& warning : experiment.warnings)
    std::fputs(fmt::format("mltcp: warning: {}\n", one_line(warning)).c_str(), stderr);

  ProgressBar bar;
  experiment::ClusterRunSettings settings;
  settings.threads = arguments.threads;
  settings.progress = [&](double fraction) { bar.show(fraction, "of the jobs' work"); };
  const experiment::ClusterResults results = experiment::run_cluster(experiment, settings);
  bar.clear();

  std::FILE* const out = arguments.json == "-" || arguments.markdown == "-" ? stderr : stdout;
  fmt::print(out, "{}\n\n", experiment::headline(results));
  const experiment::Cells cells = experiment::cells_of(results);
  Table table(cells.rows.front(), cells.left);
  for (std::size_t row = 1; row < cells.rows.size(); ++row) table.add(cells.rows[row]);
  fmt::print(out, "{}", table.text());
  if (arguments.json) write_file(*arguments.json, experiment::to_json(results));
  if (arguments.markdown) write_file(*arguments.markdown, experiment::to_markdown(cells));
  return 0;
}

}  // namespace mltcp::tools
