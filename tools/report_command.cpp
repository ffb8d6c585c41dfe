// mltcp report: pages and pictures of result files.
#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/experiment/report.h"
#include "mltcp/experiment/report_picture.h"
#include "mltcp/experiment/results.h"
#include "output_file.h"

namespace mltcp::tools {

int report(const ReportArguments& arguments) {
  std::filesystem::path page = arguments.results.front();
  if (page.extension() == ".json")
    page.replace_extension(".html");
  else
    page += ".html";
  if (arguments.output) page = *arguments.output;
  if (page.empty()) throw InputError("--output: the name is empty; name a file, or - for standard output");
  const experiment::Results results = experiment::read_json(arguments.results.front());
  if (arguments.svg) {
    check_writable(*arguments.svg, arguments.results.front());
    write_file(*arguments.svg, experiment::render_picture(results, {arguments.chart, arguments.policies}));
    return 0;
  }
  const std::string text = experiment::render_report(results);
  check_writable(page.string(), arguments.results.front());
  write_file(page.string(), text);
  if (page != "-") fmt::print("{}\n", page.string());
  return 0;
}

}  // namespace mltcp::tools
