// `mltcp sweep`: reads a sweep, runs all points that have no record yet, and prints a table of all points.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/results/table.h"
#include "mltcp/lab/experiment/sweep/sweep_file.h"
#include "mltcp/lab/experiment/sweep/sweep_run.h"
#include "mltcp/lab/experiment/sweep/sweep_table.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct SweepArguments {
  std::string file;
  experiment::SweepOptions given;     ///< given options, without what the program supports
  std::optional<std::string> output;  ///< folder for the records
  std::optional<std::string> shard;   ///< "i/n" or "auto"
  std::vector<std::string> merge;     ///< folders of records to merge
  std::uint32_t threads = 0;          ///< number of threads; 0: one per core
  bool full = false;                  ///< store the series of all iterations in the records
  bool no_run = false;                ///< only show existing records, without running points
  std::optional<std::string> json;    ///< file for the table as JSON, or "-" for standard output
  std::optional<std::string> markdown;
  std::optional<std::string> csv;
};

void add_options(Options& options, SweepArguments& arguments) {
  options.add("FILE.toml", arguments.file, "A sweep file, or an experiment file whose keys --vary changes").required();
  options.add_each("--vary", arguments.given.vary,
                   "A key of the experiment and its values, e.g. cc=reno,cubic or 'bottleneck.buffer=75 kB,250 kB' or "
                   "'job[*].jitter=0 ms,2 ms'; give the option once per key");
  options.add("--seeds", arguments.given.seeds, "Number of seeds for each point, beginning with the experiment's seed")
      .check(whole(1, 100'000));
  options
      .add_list("--policy", arguments.given.policies,
                "Policies, separated by commas, e.g. fair,mltcp; default: the file's")
      .suggest(experiment::policy_names());
  options.add("-o,--output", arguments.output,
              "Folder that keeps finished runs, which are not run again; default: the file's name with .sweep");
  options.add("--shard", arguments.shard, "Do only part I of N, e.g. 2/8; auto: as the Slurm or MPI launcher states");
  options.add_each("--merge", arguments.merge, "Also use the finished runs in this folder; may be repeated");
  options.flag("--no-run", arguments.no_run, "Start no runs, and print the table of the finished ones");
  options.add("--threads", arguments.threads, "Runs at a time; default: one per core").check(whole(1, 10'000));
  options.flag("--full", arguments.full, "Keep the time of every iteration, so that mltcp report can draw a run");
  options.add("--json", arguments.json, "Write the table to this file as JSON; - is standard output");
  options.add("--markdown", arguments.markdown, "Write the table to this file as Markdown; - is standard output");
  options.add("--csv", arguments.csv, "Write the table with all numbers to this file as CSV; - is standard output");
}

// ---- Shards ----

struct Shard {
  std::uint32_t number = 1;  // counted from 1
  std::uint32_t of = 1;
};

std::optional<std::uint32_t> variable(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no other threads exist yet
  if (text == nullptr) return std::nullopt;
  const auto value = number_from<std::uint32_t>(text);
  if (!value)
    throw InputError(
        fmt::format("--shard auto: {} is {}, which is not a number; write --shard i/n", name, in_quotes(text)));
  return value;
}

// Returns the shard that the variables of a launcher give. An MPI launcher or a Slurm step gives the number of this
// process and the number of processes. A Slurm job array multiplies the number of shards by its number of tasks. MPI's
// variables come first, because an MPI launcher may itself run inside a Slurm step.
Shard shard_of_launcher() {
  struct Launcher {
    const char* rank;
    const char* size;
  };
  std::optional<Shard> found;
  for (const Launcher& launcher :
       {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Launcher{"PMI_RANK", "PMI_SIZE"},
        Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    const auto rank = variable(launcher.rank);
    const auto size = variable(launcher.size);
    if (!rank || !size) continue;
    if (*rank >= *size)
      throw InputError(fmt::format("--shard auto: {} is {}, but {} is {}; write --shard i/n", launcher.rank, *rank,
                                   launcher.size, *size));
    found = Shard{*rank + 1, *size};
    break;
  }
  if (const auto task = variable("SLURM_ARRAY_TASK_ID")) {
    const auto count = variable("SLURM_ARRAY_TASK_COUNT");
    const std::uint32_t first = variable("SLURM_ARRAY_TASK_MIN").value_or(0);
    const std::uint32_t step = std::max(variable("SLURM_ARRAY_TASK_STEP").value_or(1), 1U);
    const std::uint32_t number = *task >= first ? (*task - first) / step : 0;
    if (!count || *task < first || (*task - first) % step != 0 || number >= *count)
      throw InputError("--shard auto: the Slurm job array has gaps; write --array=1-N, or --shard i/n");
    const Shard inner = found.value_or(Shard());
    found = Shard{number * inner.of + inner.number, *count * inner.of};
  }
  if (!found)
    throw InputError(
        "--shard auto: no launcher has set the number of this process (OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, "
        "SLURM_ARRAY_TASK_ID); write --shard i/n");
  return *found;
}

Shard shard_from(const std::string& text) {
  if (text == "auto") return shard_of_launcher();
  const std::size_t slash = text.find('/');
  const auto number = number_from<std::uint32_t>(text.substr(0, slash));
  const auto of = slash == std::string::npos ? std::nullopt : number_from<std::uint32_t>(text.substr(slash + 1));
  if (!number || !of || *number < 1 || *number > *of)
    throw InputError(
        fmt::format("--shard {}: is not i/n with i from 1 to n; write e.g. 2/8, or auto", in_quotes(text)));
  return {*number, *of};
}

// ---- The command ----

// Returns a fingerprint of this program. Another build might measure other values, so records are valid for one build.
std::string build_of_this_program() {
  return Fingerprint().add(read_text_file("/proc/self/exe", "/proc/self/exe", {"this program", 1U << 30U})).text();
}

std::string default_folder(const std::string& file) {
  std::filesystem::path folder = file;
  if (folder.extension() == ".toml") return folder.replace_extension(".sweep").string();
  return file + ".sweep";
}

void make_folder(const std::string& folder) {
  refuse_planted_links(folder);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder) / "runs", error);
  if (error)
    throw InputError(
        fmt::format("--output {}: the folder cannot be created ({}); name another one", folder, error.message()));
  if (access((std::filesystem::path(folder) / "runs").c_str(), W_OK | X_OK) != 0)
    throw InputError(fmt::format("--output {}: the folder cannot be written; check its permissions", folder));
}

void print_table(const experiment::Sweep& sweep, const experiment::SweepTable& table, std::FILE* out) {
  const experiment::Cells cells = experiment::cells_of(sweep, table);
  if (cells.rows.size() < 2) return;
  Table text(cells.rows.front(), cells.left);
  std::size_t row = 1;
  bool first = true;
  for (const experiment::SweepTable::Point& point : table.points) {
    // A blank line separates the points, if they have several policies each.
    if (!first && point.rows.size() > 1) text.gap();
    for (std::size_t i = 0; i < point.rows.size(); ++i) text.add(cells.rows[row++]);
    first = first && point.rows.empty();
  }
  fmt::print(out, "{}", text.text());
}

void warn_of(const experiment::Sweep& sweep, const experiment::SweepTable& table) {
  std::size_t same = 0;
  std::string which;
  for (std::size_t p = 0; p < table.points.size(); ++p) {
    const auto& rows = table.points[p].rows;
    if (rows.empty() || !std::ranges::all_of(rows, [](const auto& row) { return row.same; })) continue;
    if (same++ == 0) which = experiment::describe(sweep, sweep.points[p]);
  }
  if (same > 0)
    print_warning(
        fmt::format("{} of {} have the same result with every seed, as nothing in them is random ({}); give the jobs a "
                    "start_jitter or a jitter",
                    same, plural(table.points.size(), "point"), which));
  if (table.other_builds > 0)
    print_warning(
        fmt::format("{} of the runs were made by another build of mltcp; for runs of this build alone, name a new "
                    "folder with -o",
                    table.other_builds));
}

experiment::Sweep load(const SweepArguments& arguments) {
  experiment::SweepOptions options = arguments.given;
  options.files = file_options();
  return experiment::load_sweep(arguments.file, options);
}

experiment::SweepSettings settings_of(const SweepArguments& arguments, const Shard& shard) {
  experiment::SweepSettings settings;
  const std::string folder = arguments.output.value_or(default_folder(arguments.file));
  if (folder.empty()) throw InputError("--output: the name is empty; name a folder");
  for (const std::string& other : arguments.merge) {
    if (!std::filesystem::is_directory(std::filesystem::path(other) / "runs"))
      throw InputError(fmt::format("--merge {}: there is no folder runs in it; name a folder that mltcp sweep -o made",
                                   in_quotes(other)));
    settings.merge.emplace_back(other);
  }
  make_folder(folder);
  settings.folder = folder;
  settings.shard = shard.number;
  settings.shards = shard.of;
  settings.full = arguments.full;
  settings.run = !arguments.no_run;
  settings.threads = arguments.threads;
  settings.build = build_of_this_program();
  settings.write = write_file;
  settings.stop = EndOnSignal::came;
  return settings;
}

/// Runs all points that have no record yet, and shows a progress bar.
experiment::SweepOutcome run_missing(const experiment::Sweep& sweep, experiment::SweepSettings settings,
                                     std::FILE* out) {
  ProgressBar bar;
  settings.progress = [&](std::size_t done, std::size_t all, double fraction) {
    bar.show(fraction, fmt::format("{} of {} runs", done, all));
  };
  experiment::SweepOutcome outcome;
  {
    const EndOnSignal signals;
    outcome = experiment::run_sweep(sweep, settings);
  }
  bar.clear();
  if (outcome.stopped)
    throw RunError(fmt::format("stopped with {} of {} done; to continue, run the same command again",
                               outcome.before + outcome.ran, plural(outcome.all, "run")));
  if (settings.run)
    fmt::print(out, "{} done{}\n", plural(outcome.all, "run"),
               outcome.before > 0 ? fmt::format(", {} of them before", outcome.before) : "");
  return outcome;
}

void print_and_write(const SweepArguments& arguments, const experiment::Sweep& sweep,
                     const experiment::SweepTable& table, const Provenance& provenance, std::FILE* out) {
  std::fputs("\n", out);
  print_table(sweep, table, out);
  warn_of(sweep, table);
  if (arguments.json) write_file(*arguments.json, experiment::to_json(sweep, table, provenance));
  if (arguments.markdown) write_file(*arguments.markdown, experiment::to_markdown(experiment::cells_of(sweep, table)));
  if (arguments.csv) write_file(*arguments.csv, experiment::to_csv(sweep, table));
}

/// Prints failed runs. Throws RunError if there are any, or if records for the table are missing.
void judge(const experiment::Sweep& sweep, const experiment::SweepOutcome& outcome, std::size_t missing) {
  for (const auto& [task, reason] : outcome.failures)
    std::fputs(
        fmt::format("mltcp: failed: {}\n",
                    one_line(fmt::format("{}, seed {}: {}", experiment::describe(sweep, sweep.points[task.point]),
                                         task.seed, reason)))
            .c_str(),
        stderr);
  if (!outcome.failures.empty()) throw RunError(fmt::format("{} failed", plural(outcome.failures.size(), "run")));
  if (missing > 0)
    throw RunError(fmt::format("{} missing; to run them, run the same command without --no-run",
                               missing == 1 ? "1 run is" : fmt::format("{} runs are", missing)));
}

int sweep(const SweepArguments& arguments) {
  // Check all options before the first run.
  const Shard shard = arguments.shard ? shard_from(*arguments.shard) : Shard();
  const Outputs outputs({{"--json", arguments.json}, {"--markdown", arguments.markdown}, {"--csv", arguments.csv}});
  if ((arguments.json || arguments.markdown || arguments.csv) && arguments.shard && shard.of > 1)
    throw InputError(
        "--json, --markdown, --csv: a shard has no table; leave these out, and run without --shard when all shards are "
        "done");
  std::optional<FilesRead> files(std::in_place);
  const experiment::Sweep sweep = load(arguments);
  const Provenance provenance = provenance_of(*files);
  files.reset();  // forget the files read so far: from here on only records are read
  outputs.check(arguments.file);
  const experiment::SweepSettings settings = settings_of(arguments, shard);
  print_warnings(sweep.warnings);

  std::FILE* const out = outputs.text();
  const std::size_t runs = experiment::tasks_of(sweep).size();
  fmt::print(out, "{}: {} with {}, {}{}, in {}\n", sweep.name, plural(sweep.points.size(), "point"),
             plural(sweep.seeds.size(), "seed"), plural(runs, "run"),
             shard.of > 1 ? fmt::format(", shard {} of {}", shard.number, shard.of) : "", settings.folder.string());
  std::fflush(out);
  const experiment::SweepOutcome outcome = run_missing(sweep, settings, out);
  std::size_t missing = 0;
  if (shard.of > 1) {
    fmt::print(out, "for the table, run without --shard when all shards are done\n");
  } else {
    const experiment::SweepTable table = experiment::tabulate(sweep, settings.folder, settings.build);
    missing = table.missing;
    print_and_write(arguments, sweep, table, provenance, out);
  }
  judge(sweep, outcome, missing);
  return 0;
}

}  // namespace

void add_sweep_command(CommandLine& line) {
  line.add<SweepArguments>(
      "sweep",
      "Run a grid of experiments with many seeds on all cores, and print a table of results (docs/how-to/sweep.md)",
      add_options, sweep);
}

}  // namespace mltcp::tools
