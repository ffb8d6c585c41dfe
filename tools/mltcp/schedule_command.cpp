// `mltcp schedule`: shows which jobs fit together on the links that they share, and when each job should begin.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numbers>

#include "command_line.h"
#include "commands.h"
#include "experiment_options.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/fit/compatibility.h"
#include "mltcp/lab/experiment/report/schedule_report.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct ScheduleArguments {
  std::string file;
  bool measure = false;      ///< measure demands by simulation instead of computing them
  std::uint32_t angles = 0;  ///< scheduler::SolveOptions explains this option and the next four
  /// Share of a period, as are `drift` and `slack`. If the option is not given, the value in the file applies.
  std::optional<double> max_stretch;
  std::optional<double> drift;
  /// If neither the option nor the file gives a value: what a plan needs, or 0 without --plan.
  std::optional<double> slack;
  std::uint32_t max_repetitions = 32;
  std::optional<std::string> json;  ///< file for the schedule as JSON, or "-" for standard output
  std::optional<std::string> report;
  std::optional<std::string> plan;
};

void add_options(Options& options, ScheduleArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.file, "The experiment (docs/reference/experiment-file.md)").required();
  options.flag("--measure", arguments.measure,
               "Measure demands and periods by simulating each job alone; default: ideal ones, bytes / rate");
  options
      .add("--angles", arguments.angles,
           "Number of rotation angles per turn, e.g. 72 for steps of 5 degrees; 0: any nanosecond; default 0")
      .check(whole(0, 1'000'000));
  options
      .add("--max-stretch", arguments.max_stretch,
           "Maximum share by which a slot is longer than the job's iteration; default: the file's, or 0.02")
      .check(share(1));
  options
      .add("--max-repetitions", arguments.max_repetitions,
           "Maximum length of the perimeter, as a multiple of the longest iteration; default 32")
      .check(whole(1, 10'000));
  options
      .add("--drift", arguments.drift,
           "Deviation from the slots, as a share of the period, for which a schedule's score is also computed; "
           "default: the file's tolerance, or 0.05")
      .check(share(0.5));
  options
      .add("--slack", arguments.slack,
           "Share by which every slot is longer, so that late jobs can catch up; default: the file's, or 0; with "
           "--plan, the share that the jobs' jitter needs and their room allows (docs/explanation/plans.md)")
      .check(share(1));
  options.add("--json", arguments.json, "Write the schedule to this file; - is standard output");
  options.add("--report", arguments.report,
              "Write a self-contained HTML page of the schedule to this file; - is standard output");
  options.add("--plan", arguments.plan,
              "With --measure: write the slots to this file, as a plan for mltcp run --plan (docs/how-to/plan.md); - "
              "is standard output");
}

using experiment::ScheduleResult;

constexpr std::size_t kLinksShown = 20;
constexpr std::size_t kVerdictsShown = 5;

std::string exact_millis(Nanos time) { return fmt::format("{:.3f}", time.millis()); }

std::string link_table(const ScheduleResult& schedule, const std::vector<std::size_t>& order) {
  Table table({"link", "jobs", "score", "bound", "", "unshifted", "if drifting", "margin ms", "perimeter ms"}, 1);
  for (std::size_t i = 0; i < std::min(order.size(), kLinksShown); ++i) {
    const ScheduleResult::Link& link = schedule.links[order[i]];
    const scheduler::LinkSolution& solution = link.solution;
    const std::string none = "-";
    table.add({one_line(link.name), std::to_string(link.uses.size()), experiment::score_text(solution.score),
               experiment::score_text(solution.upper_bound), solution.optimal ? "proven" : "not proven",
               experiment::score_text(link.unshifted_score), experiment::score_text(solution.drift_score),
               link.competed ? exact_millis(solution.margin) : none,
               link.competed ? exact_millis(solution.perimeter) : none});
  }
  std::string text = table.text();
  if (order.size() > kLinksShown)
    text += fmt::format("and {} with better scores; all are in --json and --report\n", order.size() - kLinksShown);
  return text;
}

std::string job_table(const ScheduleResult& schedule) {
  // If there is only one link, show the rotations in the table of the jobs.
  const ScheduleResult::Link* const only =
      schedule.links.size() == 1 && schedule.links[0].competed ? &schedule.links.front() : nullptr;
  std::vector<std::string> header{"job", "period ms", "slot ms", "stretch"};
  if (only != nullptr) header.insert(header.end(), {"repetitions", "rotation deg"});
  header.emplace_back("time shift ms");
  Table table(std::move(header), 1);
  for (std::uint32_t number = 0; number < schedule.jobs.size(); ++number) {
    const ScheduleResult::ScheduledJob& job = schedule.jobs[number];
    if (job.unaware) continue;
    std::vector<std::string> row{one_line(job.name), exact_millis(job.period), exact_millis(job.slot_period),
                                 fmt::format("{:.2f}%", 100 * job.stretch())};
    if (only != nullptr) {
      const auto use = std::ranges::find_if(only->uses, [&](const auto& u) { return u.job == number; });
      row.push_back(std::to_string(use->repetitions));
      row.push_back(fmt::format("{:.1f}", use->rotation * 180 / std::numbers::pi));
    }
    row.push_back(exact_millis(job.time_shift));
    table.add(std::move(row));
  }
  return table.text();
}

// Returns a warning for users of the plan; empty if none is needed.
std::string objection_to(const ScheduleResult& schedule) {
  bool competed = false;
  const ScheduleResult::Link* worst = nullptr;  // the worst of the links with slots in the plan
  for (const ScheduleResult::Link& link : schedule.links) {
    if (!link.competed) continue;
    competed = true;
    if (!schedule.components[link.component].within_limit) continue;
    if (worst == nullptr || link.solution.score < worst->solution.score) worst = &link;
  }
  if (!competed) return "the plan is empty, as the jobs share no link; no job needs slots";
  const std::string help = experiment::help_of(schedule);
  const std::string cure = help.empty() ? "move or leave out a job" : "write it with " + help;
  if (worst == nullptr)
    return fmt::format("the plan is empty, as no slots avoid contention between jobs that share a link; {}", cure);
  constexpr double nearly_fit = 0.99;  // less than 1, because the edges of measured bursts are not exact
  if (worst->solution.score >= nearly_fit) return {};
  return fmt::format(
      "the plan has slots for jobs that do not fit: link {} scores {}, and slots that overlap mostly cost more than "
      "they save; {}",
      in_quotes(worst->name), experiment::score_text(worst->solution.score), cure);
}

void print(const ScheduleResult& schedule, std::FILE* out) {
  const std::vector<std::size_t> order = experiment::worst_first(schedule);
  if (order.empty()) {
    fmt::print(out, "no link is used by two jobs, so jobs can start at any time\n");
  } else {
    fmt::print(out, "{}\n", link_table(schedule, order));
    for (std::size_t i = 0; i < std::min(order.size(), kVerdictsShown); ++i) {
      const ScheduleResult::Link& link = schedule.links[order[i]];
      fmt::print(out, "{}: {}\n", one_line(link.name), one_line(experiment::verdict(schedule, link)));
    }
    if (order.size() > 1)
      fmt::print(out, "{}: mean score {}, {}\n", plural(order.size(), "link"), experiment::score_text(schedule.score),
                 schedule.optimal ? "proven to be the best in these slots"
                                  : fmt::format("no shifts in these slots give more than {}",
                                                experiment::score_text(schedule.upper_bound)));
    if (schedule.loops > 0)
      fmt::print(out, "{} of jobs and links, solved jointly: they cost {} of the sum of scores\n",
                 plural(schedule.loops, "loop"), experiment::score_text(schedule.lost));
  }
  fmt::print(out, "\n{}", job_table(schedule));
}

int schedule(const ScheduleArguments& arguments) {
  const Outputs outputs({{"--json", arguments.json}, {"--report", arguments.report}, {"--plan", arguments.plan}});
  const FilesRead files;
  const experiment::Experiment experiment = experiment::load_experiment(arguments.file, file_options());
  outputs.check(arguments.file);

  experiment::ScheduleOptions options;
  options.solve.angles = arguments.angles;
  options.solve.max_stretch = arguments.max_stretch.value_or(experiment.schedule.max_stretch);
  options.solve.max_repetitions = arguments.max_repetitions;
  options.solve.drift = arguments.drift.value_or(experiment.schedule.tolerance);
  options.solve.slack = arguments.slack.value_or(experiment.schedule.slack.value_or(0));
  options.solve.seed = experiment.seed;
  // A plan needs measured periods. Slots from ideal periods would be shorter than the iterations of real jobs.
  options.measure = arguments.measure || arguments.plan;
  options.add_margin = arguments.plan && !arguments.slack && !experiment.schedule.slack;
  if (arguments.plan && experiment.mltcp.learn_iterations)
    throw InputError(
        fmt::format("--plan: the jobs of {} do not report the start of their iterations to the transport, so they "
                    "cannot follow a plan; write iterations = \"exact\" in [mltcp], or leave out --plan",
                    in_quotes(arguments.file)));
  const Provenance provenance = provenance_of(files);
  ProgressBar bar;
  options.progress = [&](double fraction, const std::string& what) { bar.show(fraction, what); };
  ScheduleResult result = experiment::make_schedule(experiment, options);
  result.provenance = provenance;
  bar.clear();

  print_warnings(experiment.warnings);
  print_warnings(result.warnings);
  std::FILE* const out = outputs.text();
  fmt::print(out, "{}: {} on {}, {} demand\n\n", one_line(result.experiment), plural(result.jobs.size(), "job"),
             result.topology ? fmt::format("{} with {}", plural(result.topology->hosts(), "host"),
                                           plural(result.links.size(), "shared link"))
                             : fmt::format("a link of {}", to_text(experiment.bottleneck.rate)),
             result.measured ? "measured" : "ideal");
  print(result, out);
  if (arguments.json) write_file(*arguments.json, experiment::to_json(result));
  if (arguments.plan) {
    const experiment::PlanFile plan = experiment::plan_of(result, experiment.schedule);
    if (const std::string wrong = objection_to(result); !wrong.empty()) print_warning(wrong);
    write_file(*arguments.plan, experiment::to_json(plan, provenance));
  }
  if (arguments.report) {
    write_file(*arguments.report, experiment::render_schedule(result));
    if (*arguments.report != "-") fmt::print(out, "\n{}\n", one_line(*arguments.report));
  }
  return 0;
}

}  // namespace

void add_schedule_command(CommandLine& line) {
  line.add<ScheduleArguments>("schedule",
                              "Compute how well jobs fit together on shared links: score, rotation and time shift of "
                              "each job (docs/explanation/scheduler.md)",
                              add_options, schedule);
}

}  // namespace mltcp::tools
