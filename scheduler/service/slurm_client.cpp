// Runs the programs of Slurm and parses their output (see slurm_client.h).
#include "mltcp/scheduler/service/slurm_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/files/host_list.h"

extern "C" {
extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to programs
}

namespace mltcp::service {
namespace {

using std::chrono::steady_clock;

// Separates the fields of a line. Names in Slurm do not contain this character.
constexpr char kSeparator = '\x1f';

// The columns requested from squeue, in this order.
enum JobField : std::size_t {
  job_id,
  array_task,
  submit_time,
  state_code,
  priority,
  reason,
  node_count,
  cpu_count,
  min_cpus,
  sharing,
  node_list,
  asked_list,
  partition,
  feature_list,
  user_name,
  het_job,
  admin_comment,
  job_fields
};
constexpr std::array<std::string_view, job_fields> kJobColumns{
    "JobID",     "ArrayTaskID", "SubmitTime", "StateCompact",  "PriorityLong", "Reason",
    "NumNodes",  "NumCPUs",     "MinCpus",    "OverSubscribe", "NodeList",     "ReqNodes",
    "Partition", "Feature",     "UserName",   "HetJobID",      "admin_comment"};

enum NodeField : std::size_t { node_name, node_state, node_cpus, node_partition, node_features, node_fields };

/// Parses a number such as "2", "3K" or "2-4". For a range, returns the minimum. Returns no value if the text is
/// invalid.
std::optional<std::uint32_t> count(std::string_view text) {
  text = text.substr(0, text.find('-'));
  std::uint64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? 1'000 : 1'000'000;
    text.remove_suffix(1);
  }
  const auto value = number_from<std::uint32_t>(text);
  if (!value || *value * unit > 1'000'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(*value * unit);
}

std::string present(std::string_view text) {
  return text == "(null)" || text == "N/A" ? std::string() : std::string(text);
}

/// Parses a list of nodes. Returns no value if the list is invalid.
std::optional<std::vector<std::string>> hosts_in(std::string_view list) {
  constexpr std::size_t max = 65'536;
  if (list.empty() || list == "(null)" || list == "None assigned") return std::vector<std::string>();
  try {
    return experiment::expand_hosts(list, max);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

SlurmJob::State state_of(std::string_view code) {
  // Codes of ended jobs: boot fail, cancelled, completed, completing, deadline, failed, node fail, out of memory,
  // preempted, revoked, timeout. A completing job counts as ended, because its tasks have ended.
  constexpr std::array ended{"BF", "CA", "CD", "CG", "DL", "F", "NF", "OOM", "PR", "RV", "TO"};
  if (std::ranges::find(ended, code) != ended.end()) return SlurmJob::State::ended;
  // Codes of pending jobs: pending, held because its reservation was deleted, three forms of requeued, special exit.
  constexpr std::array pending{"PD", "RD", "RH", "RF", "RQ", "SE"};
  return std::ranges::find(pending, code) != pending.end() ? SlurmJob::State::pending : SlurmJob::State::running;
}

SlurmJob parse_job(std::string_view line) {
  const auto refuse = [&](std::string_view what) {
    return SlurmError(fmt::format("squeue prints {}, of which {} can't be read", in_quotes(line), what));
  };
  // The comment is the last field, because it may contain any text.
  std::array<std::string_view, job_fields> fields;
  for (std::size_t i = 0; i < job_fields; ++i) {
    const std::size_t end = i + 1 < job_fields ? line.find(kSeparator) : line.rfind(kSeparator);
    if (end == std::string_view::npos) throw refuse("the number of fields");
    fields[i] = line.substr(0, end);
    line.remove_prefix(end + 1);
  }
  line = fields[job_id];
  SlurmJob job;
  const auto id = number_from<std::uint32_t>(fields[job_id]);
  const auto submitted = number_from<std::int64_t>(fields[submit_time]);
  const auto nodes = count(fields[node_count]);
  const auto cpus = count(fields[cpu_count]);
  const auto min = count(fields[min_cpus]);
  if (!id) throw refuse("the number of a job");
  if (!submitted) throw refuse("the time of submission");
  if (!nodes || !cpus || !min) throw refuse("a number of nodes or CPUs");
  job.id = *id;
  job.submitted = *submitted;
  job.in_array = !present(fields[array_task]).empty();
  // Jobs that are not heterogeneous have "0" or "N/A" here, depending on the version.
  job.in_het_job = !present(fields[het_job]).empty() && fields[het_job] != "0";
  job.state = state_of(fields[state_code]);
  job.held = job.state == SlurmJob::State::pending && fields[priority] == "0";
  job.held_by_administrator = job.held && fields[reason] == "JobHeldAdmin";
  job.whole_nodes = fields[sharing] == "NO";
  job.node_count = std::max(1U, *nodes);
  job.cpus_per_node = std::max({1U, *min, (*cpus + job.node_count - 1) / job.node_count});
  for (const auto& [field, list] : {std::pair{node_list, &job.nodes}, {asked_list, &job.asked_nodes}}) {
    auto names = hosts_in(fields[field]);
    if (!names) throw refuse("a list of nodes");
    *list = std::move(*names);
  }
  job.partition = fields[partition];
  job.features = present(fields[feature_list]);
  job.user = fields[user_name];
  job.admin_comment = present(fields[admin_comment]);
  return job;
}

/// Returns the last line of `text` that is not empty, with at most 300 bytes, in the form of one_line().
std::string last_words(std::string_view text) {
  text = trimmed(text.substr(0, text.find_last_not_of("\r\n \t") + 1));
  if (const std::size_t begin = text.rfind('\n'); begin != std::string_view::npos) text.remove_prefix(begin + 1);
  return one_line(text.substr(0, 300));
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw SlurmError(fmt::format("no pipe can be made: {}", strerror(errno)));
  }
  ~Pipe() {
    shut(0);
    shut(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void shut(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

/// Returns the environment for the programs of Slurm: the variables of the service, except those that change the
/// output.
std::vector<std::string> program_environment() {
  std::vector<std::string> kept{"SLURM_TIME_FORMAT=%s", "LC_ALL=C"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool of_slurm = text.starts_with("SQUEUE_") || text.starts_with("SINFO_") || text.starts_with("SCONTROL_") ||
                          text.starts_with("SLURM_CLUSTERS=") || text.starts_with("SLURM_TIME_FORMAT=") ||
                          text.starts_with("SLURM_BITSTR_LEN=") || text.starts_with("LC_ALL=");
    if (!of_slurm) kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::vector<SlurmJob> parse_jobs(std::string_view output) {
  std::vector<SlurmJob> jobs;
  // A comment may contain line ends. So a line that does not begin a job continues the previous line.
  std::string whole;
  const auto begins = [](std::string_view line) {
    const std::size_t end = line.find(kSeparator);
    return end != std::string_view::npos && number_from<std::uint32_t>(line.substr(0, end)) &&
           static_cast<std::size_t>(std::ranges::count(line, kSeparator)) >= job_fields - 1;
  };
  for (const std::string_view line : parts_of(output, '\n')) {
    if (begins(line)) {
      if (!whole.empty()) jobs.push_back(parse_job(whole));
      whole = line;
    } else if (!whole.empty()) {
      whole += '\n';
      whole += line;
    } else if (!trimmed(line).empty()) {
      throw SlurmError(fmt::format("squeue prints {}, which can't be read", in_quotes(line)));
    }
  }
  if (!whole.empty()) jobs.push_back(parse_job(whole));
  return jobs;
}

void parse_barred_nodes(std::string_view output, std::vector<SlurmJob>& jobs) {
  for (const std::string_view line : parts_of(output, '\n')) {
    if (trimmed(line).empty()) continue;
    const auto fields = parts_of(line, kSeparator);
    const auto id = number_from<std::uint32_t>(fields[0]);
    auto names = fields.size() == 2 ? hosts_in(fields[1]) : std::nullopt;
    if (!id || !names) throw SlurmError(fmt::format("squeue prints {}, which can't be read", in_quotes(line)));
    for (SlurmJob& job : jobs)
      if (job.id == *id) job.barred_nodes = *names;
  }
}

std::vector<SlurmNode> parse_nodes(std::string_view output) {
  std::vector<SlurmNode> nodes;
  for (const std::string_view line : parts_of(output, '\n')) {
    if (trimmed(line).empty()) continue;
    const auto fields = parts_of(line, kSeparator);
    const auto cpus = fields.size() == node_fields ? parts_of(fields[node_cpus], '/') : std::vector<std::string_view>();
    // The field has four numbers of CPUs: allocated, idle, other, total.
    const auto free = cpus.size() == 4 ? count(cpus[1]) : std::nullopt;
    if (!free) throw SlurmError(fmt::format("sinfo prints {}, which can't be read", in_quotes(line)));
    const std::string_view state = fields[node_state];
    const std::string_view word = state.substr(0, state.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    SlurmNode node;
    node.name = fields[node_name];
    node.partition = fields[node_partition];
    node.idle = word == "idle";
    // A character after the state means: * the node does not answer, $ maintenance, @ or ^ about to reboot, ! powering
    // down. A node that is powered off (~) can get jobs, because Slurm starts it for a job.
    node.takes_jobs = (word == "idle" || word == "mix") && state.find_first_of("*$@^!") == std::string_view::npos;
    node.free_cpus = node.takes_jobs ? *free : 0;
    if (const std::string features = present(fields[node_features]); !features.empty())
      for (const std::string_view feature : parts_of(features, ',')) node.features.emplace_back(feature);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string SlurmPrograms::run(const std::string& program, const std::vector<std::string>& arguments) const {
  const std::string path = options_.folder.empty() ? program : (options_.folder / program).string();
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = program_environment();
  Pipe output;
  Pipe errors;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  // The program starts with no signals blocked, even if the calling thread blocks signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int problem =
      posix_spawnp(&process, path.c_str(), &actions, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw SlurmError(
        fmt::format("{} can't be run: {}; install Slurm's clients, or give their folder by --slurm-programs", path,
                    strerror(problem)));
  output.shut(1);
  errors.shut(1);
  const auto until = steady_clock::now() + std::chrono::nanoseconds(options_.limit.count);
  std::string text;
  std::string complaint;
  std::string trouble;
  std::array<char, 65'536> piece{};
  while (output.ends[0] >= 0 || errors.ends[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now()).count();
    std::array watched{pollfd{output.ends[0], POLLIN, 0}, pollfd{errors.ends[0], POLLIN, 0}};
    const int ready = left > 0 ? poll(watched.data(), watched.size(), static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      trouble = fmt::format("does not end within {}", to_text(options_.limit));
      break;
    }
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents == 0) continue;
      Pipe& pipe = i == 0 ? output : errors;
      const ssize_t got = read(pipe.ends[0], piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        pipe.shut(0);
      } else {
        std::string& to = i == 0 ? text : complaint;
        if (to.size() + static_cast<std::size_t>(got) <= options_.max_output)
          to.append(piece.data(), static_cast<std::size_t>(got));
        else
          trouble = "prints more than it should";
      }
    }
    if (!trouble.empty()) break;
  }
  if (!trouble.empty()) kill(process, SIGKILL);
  int status = 0;
  // The program has closed its output, so it ends soon. The time limit includes this wait.
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (trouble.empty() && steady_clock::now() > until) {
      trouble = fmt::format("does not end within {}", to_text(options_.limit));
      kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!trouble.empty()) throw SlurmError(fmt::format("{} {}", program, trouble));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string said = last_words(complaint);
    throw SlurmError(said.empty() ? fmt::format("{} fails", program) : fmt::format("{} fails: {}", program, said));
  }
  return text;
}

std::vector<SlurmJob> SlurmPrograms::jobs() {
  // In "NAME:SUFFIX" the suffix ends the field, so that squeue does not cut or pad the field.
  std::string format;
  for (const std::string_view column : kJobColumns) format += fmt::format("{}:{},", column, kSeparator);
  format.pop_back();
  std::vector<SlurmJob> jobs = parse_jobs(run("squeue", {"--noheader", "--all", "--states=all", "--Format=" + format}));
  if (std::ranges::none_of(jobs, [](const SlurmJob& job) { return job.held; })) return jobs;
  // In version 22.05, the column ExcNodes of --Format is empty. The older option --format prints the excluded nodes.
  parse_barred_nodes(
      run("squeue", {"--noheader", "--all", "--states=PENDING", fmt::format("--format=%A{}%x", kSeparator)}), jobs);
  return jobs;
}

std::vector<SlurmNode> SlurmPrograms::nodes() {
  return parse_nodes(
      run("sinfo", {"--noheader", "--all", "--Node", fmt::format("--format=%N{0}%t{0}%C{0}%R{0}%f", kSeparator)}));
}

void SlurmPrograms::set_comment(std::uint32_t job, const std::string& comment) {
  run("scontrol", {"update", fmt::format("JobId={}", job), "AdminComment=" + comment});
}

void SlurmPrograms::set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) {
  run("scontrol", {"update", fmt::format("JobId={}", job), "AdminComment=" + comment,
                   fmt::format("ReqNodeList={}", fmt::join(nodes, ","))});
}

void SlurmPrograms::release(std::uint32_t job) { run("scontrol", {"release", fmt::format("{}", job)}); }

void SlurmPrograms::hold(std::uint32_t job) { run("scontrol", {"uhold", fmt::format("{}", job)}); }

}  // namespace mltcp::service
