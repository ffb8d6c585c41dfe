// Keeps the service's jobs consistent with Slurm's jobs (see slurm_driver.h).
#include "mltcp/scheduler/service/slurm_driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"

namespace mltcp::service {
namespace {

constexpr std::uint32_t kMaxPlacements = 2;  // number of failed placements after which Slurm chooses the nodes
constexpr std::uint32_t kLooksForAbsence = 2;
// Number of placements to rank for a job that requires nodes, because only some contain those nodes.
constexpr std::uint32_t kCandidatesWithAsked = 50;
constexpr std::chrono::seconds kBetweenHeartbeats(1);

bool same_hosts(std::vector<std::string> a, std::vector<std::string> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns whether two plans are the same for a job's tasks. Ignores the score, which changes when other jobs arrive.
bool same_slots(SlurmMark::Plan a, const SlurmMark::Plan& b) {
  a.score = b.score;
  return a == b;
}

/// Returns whether a constraint is empty or the name of one feature, and not an expression.
bool is_name(const std::string& features) { return features.find_first_of("&|*[]()!,") == std::string::npos; }

}  // namespace

class SlurmDriver::Ticker {
 public:
  explicit Ticker(SlurmDriver& driver)
      : thread_([&driver, this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            const auto unix = std::chrono::system_clock::now().time_since_epoch();
            driver.step(Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()),
                        std::chrono::duration_cast<std::chrono::seconds>(unix).count());
            std::unique_lock lock(mutex_);
            woken_.wait_for(lock, stop, std::chrono::nanoseconds(driver.options_.interval.count), [] { return false; });
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // the last member, so that the thread ends before the members that it uses
};

SlurmDriver::SlurmDriver(SchedulerService& service, SlurmControl& slurm, SlurmDriverOptions options)
    : service_(service), slurm_(slurm), options_(std::move(options)) {
  using namespace literals;
  if (options_.interval < 100_ms || options_.interval > 3600_s)
    throw InputError("the interval between queries of Slurm is out of range; give 100 ms to 1 h");
  if (options_.start_patience < 0_s || options_.longest_hold < 0_s)
    throw InputError("the time for which Slurm jobs wait is below 0; give 0 or more");
  if (options_.candidates < 1 || options_.candidates > 1000)
    throw InputError("the number of placements to compare is out of range; give 1 to 1000");
  hosts_.insert(service_.host_names().begin(), service_.host_names().end());
}

SlurmDriver::~SlurmDriver() { stop(); }

void SlurmDriver::start() { ticker_ = std::make_unique<Ticker>(*this); }

void SlurmDriver::stop() {
  if (ticker_ == nullptr) return;
  stopping_ = true;  // a running step ends early, before it has run Slurm's programs for all jobs
  ticker_.reset();
  std::error_code unimportant;
  if (!options_.heartbeat.empty()) std::filesystem::remove(options_.heartbeat, unimportant);
}

std::string SlurmDriver::id_of(const SlurmJob& job) { return fmt::format("slurm-{}-{}", job.id, job.submitted); }

void SlurmDriver::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void SlurmDriver::log_once(const Seen& seen, const std::string& trouble) {
  std::string& last_trouble = memory_[seen.id].trouble;
  if (last_trouble == trouble) return;
  last_trouble = trouble;
  log(fmt::format("slurm: job {}: {}", seen.job.id, trouble));
}

bool SlurmDriver::attempt(const Seen& seen, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    log_once(seen, error.what());
    return false;
  }
}

std::optional<JobPlan> SlurmDriver::find_plan(const std::string& id) const {
  try {
    return service_.plan(id);
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

SlurmDriver::Plans SlurmDriver::plans() const {
  Plans found;
  for (JobPlan& plan : service_.plans())
    if (is_slurm_id(plan.id)) found.emplace(plan.id, std::move(plan));
  return found;
}

void SlurmDriver::step(Nanos now, std::int64_t unix_s) {
  unix_s_ = unix_s;
  begun_ = std::chrono::steady_clock::now();
  std::vector<SlurmJob> jobs;
  try {
    jobs = slurm_.jobs();
  } catch (const std::exception& error) {
    if (trouble_.empty()) log(fmt::format("slurm: {}; jobs stay as they are until it answers again", error.what()));
    trouble_ = error.what();
    return;
  }
  if (!trouble_.empty()) log("slurm: it answers again");
  trouble_.clear();
  nodes_known_ = false;
  promised_.clear();
  std::ranges::sort(jobs, [](const SlurmJob& a, const SlurmJob& b) {
    return std::pair(a.submitted, a.id) < std::pair(b.submitted, b.id);
  });
  try {
    depart_ended(jobs);
  } catch (const std::exception& error) {
    log(fmt::format("slurm: {}", error.what()));  // the next step looks for ended jobs again
  }
  std::vector<Seen> marked;
  for (SlurmJob& job : jobs) {
    if (job.in_array || job.state == SlurmJob::State::ended) continue;
    auto mark = parse_mark(job.admin_comment);
    if (!mark) continue;
    std::string id = id_of(job);
    memory_.try_emplace(id, Memory{.since = now});
    marked.push_back({std::move(job), std::move(*mark), std::move(id)});
    if (!marked.back().job.in_het_job) continue;
    refuse_part(marked.back());
    marked.pop_back();
  }
  // A job may need a search and programs of Slurm. All jobs together may take longer than the heartbeat is valid, so
  // refresh the heartbeat between jobs.
  const auto one_by_one = [&](SlurmJob::State state, const auto& work) {
    for (Seen& seen : marked) {
      if (stopping_) return;
      if (seen.job.state != state) continue;
      work(seen);
      if (std::chrono::steady_clock::now() - refreshed_ >= kBetweenHeartbeats) refresh_heartbeat();
    }
  };
  one_by_one(SlurmJob::State::running, [&](Seen& seen) { arrive_where_it_runs(seen); });
  const Plans before = plans();
  for (const Seen& seen : marked) {
    const auto plan = before.find(seen.id);
    if (plan == before.end() || seen.job.state != SlurmJob::State::pending || seen.job.held) continue;
    for (const std::string& host : plan->second.hosts) promised_[host] += seen.job.cpus_per_node;
  }
  one_by_one(SlurmJob::State::pending, [&](Seen& seen) { look_at_pending(seen, now); });
  const Plans after = plans();
  for (Seen& seen : marked)
    if (!stopping_) write_plan(seen, after);
  refresh_heartbeat();
}

std::int64_t SlurmDriver::unix_now() const {
  return unix_s_ + std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun_).count();
}

void SlurmDriver::refuse_part(Seen& seen) {
  const bool ours =
      seen.job.held && !seen.job.held_by_administrator && !seen.mark.held && !memory_[seen.id].handed_back;
  if (!seen.mark.reason.empty() && !ours) return;
  attempt(seen, [&] { hand_back(seen, "heterogeneous jobs are not placed; submit their parts one by one"); });
}

void SlurmDriver::depart_ended(const std::vector<SlurmJob>& jobs) {
  std::set<std::string> alive;
  std::set<std::string> ended;
  for (const SlurmJob& job : jobs) (job.state == SlurmJob::State::ended ? ended : alive).insert(id_of(job));
  for (const auto& [id, plan] : plans()) {
    Memory& memory = memory_[id];
    // Slurm forgets ended jobs after a while, so a missing job has ended. If a job is missing from only one query, this
    // query may have failed.
    memory.missed = alive.contains(id) ? 0 : memory.missed + 1;
    if (ended.contains(id) || memory.missed >= kLooksForAbsence) depart(id);
  }
  const Plans left = plans();
  std::erase_if(memory_,
                [&](const auto& entry) { return !alive.contains(entry.first) && !left.contains(entry.first); });
}

void SlurmDriver::depart(const std::string& id) {
  try {
    service_.depart(id);
  } catch (const NotFound&) {  // another request has already removed the job
  }
}

JobRequest SlurmDriver::request_of(const Seen& seen) const {
  JobRequest request;
  request.id = seen.id;
  request.name = fmt::format("job {} of {}", seen.job.id, seen.job.user);
  const JobProfile profile = profile_from_text(seen.mark.profile, "profile");
  request.demand = demand_of(profile, service_.topology().fastest_host());
  request.flows = profile.job.flows;
  // Once the job runs, the number of its allocated nodes counts.
  request.workers = static_cast<std::uint32_t>(seen.job.nodes.empty() ? seen.job.node_count : seen.job.nodes.size());
  request.max_per_host = 1;
  return request;
}

void SlurmDriver::arrive_where_it_runs(Seen& seen) {
  const SlurmJob& job = seen.job;
  if (job.nodes.empty()) return;
  const auto plan = find_plan(seen.id);
  if (plan && same_hosts(plan->hosts, job.nodes)) return;
  attempt(seen, [&] {
    if (plan) {
      log(fmt::format("slurm: job {} has started on {} and not on {}", job.id, fmt::join(job.nodes, " "),
                      fmt::join(plan->hosts, " ")));
      depart(seen.id);
    }
    try {
      for (const std::string& node : job.nodes)
        if (!hosts_.contains(node))
          throw InputError(fmt::format("node {} is not in the scheduler's topology; name it there", node));
      service_.arrive(request_of(seen), job.nodes, SchedulerService::Capacity::assumed);
    } catch (const std::exception& error) {
      // Write the reason to the comment, so that the job's tasks do not wait for a plan. A later plan replaces the
      // reason.
      SlurmMark wanted = seen.mark;
      wanted.plan.reset();
      wanted.reason = error.what();
      if (to_text(wanted) != job.admin_comment) {
        seen.mark = wanted;
        slurm_.set_comment(job.id, to_text(wanted));
      }
      throw;
    }
  });
}

void SlurmDriver::look_at_pending(Seen& seen, Nanos now) {
  Memory& memory = memory_[seen.id];
  const auto plan = find_plan(seen.id);
  if (seen.job.held) {
    if (seen.mark.held && !plan) return;
    // A job that was held again after its release, or by an administrator, stays held.
    if (seen.job.held_by_administrator || memory.released || memory.handed_back) {
      attempt(seen, [&] {
        if (plan) depart(seen.id);
        if (!seen.mark.plan) return;
        seen.mark.plan.reset();
        slurm_.set_nodes(seen.job.id, to_text(seen.mark), seen.mark.asked_nodes);
      });
      memory.released = false;
      memory.handed_back = true;
      return;
    }
    place(seen, now);
    return;
  }
  if (!plan) {
    // The service does not know the job, e.g. because it lost its state. If the comment contains a plan, restore the
    // job from that plan. All other jobs start without a plan.
    if (seen.mark.plan && seen.mark.reason.empty())
      attempt(seen, [&] {
        service_.arrive(request_of(seen), seen.mark.plan->hosts, SchedulerService::Capacity::assumed);
        memory = {.since = now, .released = true};
      });
    return;
  }
  if (!memory.released) {  // the job was released before the service restarted
    memory.released = true;
    memory.since = now;
  }
  if (now - memory.since < options_.start_patience) return;
  attempt(seen, [&] {
    ++memory.placements;
    const std::vector<std::string> hosts = plan->hosts;
    memory.avoided.insert(hosts.begin(), hosts.end());
    memory.released = false;
    memory.since = now;
    if (memory.placements >= kMaxPlacements) {
      log(fmt::format("slurm: job {} has not started on {} within {}; Slurm decides where it starts", seen.job.id,
                      fmt::join(hosts, " "), to_text(options_.start_patience)));
      hand_back(seen, "");
    } else {
      log(fmt::format("slurm: job {} has not started on {} within {}; it is placed again", seen.job.id,
                      fmt::join(hosts, " "), to_text(options_.start_patience)));
      slurm_.hold(seen.job.id);  // the next step places the job again
      depart(seen.id);
    }
  });
}

void SlurmDriver::place(Seen& seen, Nanos now) {
  Memory& memory = memory_[seen.id];
  attempt(seen, [&] {
    // A plan already exists if the service ended before it released the job.
    const auto plan = find_plan(seen.id);
    std::vector<std::string> hosts = plan ? plan->hosts : std::vector<std::string>();
    if (hosts.empty()) {
      JobRequest request;
      Choice choice;
      std::string trouble;
      try {
        request = request_of(seen);
        choice = choose(seen, request);
        if (!choice.hosts.empty()) service_.arrive(request, choice.hosts, SchedulerService::Capacity::assumed);
      } catch (const InputError& error) {
        choice.never = error.what();
      } catch (const std::exception& error) {  // the cause is temporary, e.g. another job, the disk or Slurm
        trouble = error.what();
      }
      if (!trouble.empty()) {
        if (now - memory.since < options_.longest_hold) return log_once(seen, trouble);
        return hand_back(seen, trouble);
      }
      if (!choice.never.empty()) return hand_back(seen, choice.never);
      if (choice.hosts.empty()) {
        if (!choice.by_slurm && now - memory.since < options_.longest_hold)
          return log_once(seen, fmt::format("waits for {}", choice.waits_for));
        log(fmt::format("slurm: job {} needs {}; Slurm decides where it starts, and when", seen.job.id,
                        choice.waits_for));
        return hand_back(seen, "");
      }
      hosts = std::move(choice.hosts);
    }
    const JobPlan now_planned = service_.plan(seen.id);
    if (!seen.mark.plan && !seen.job.asked_nodes.empty()) seen.mark.asked_nodes = seen.job.asked_nodes;
    seen.mark.plan = to_mark(now_planned);
    seen.mark.reason.clear();
    try {
      slurm_.set_nodes(seen.job.id, to_text(seen.mark), hosts);
    } catch (const SlurmError& error) {
      // Drop the plan. The next step places the job again. After kMaxPlacements failures, Slurm chooses the nodes.
      depart(seen.id);
      seen.mark.plan.reset();
      if (++memory.placements < kMaxPlacements) throw;
      log_once(seen, error.what());
      return hand_back(seen, "");
    }
    slurm_.release(seen.job.id);
    memory.released = true;
    memory.since = now;
    memory.trouble.clear();
    for (const std::string& host : hosts) promised_[host] += seen.job.cpus_per_node;
    log(fmt::format(
        "slurm: job {} released on {}, score {:.3f}, {}", seen.job.id, fmt::join(hosts, " "), now_planned.score,
        now_planned.slots
            ? fmt::format("shift {} of {}", to_text(now_planned.time_shift), to_text(now_planned.slot_period))
            : fmt::format("no slots: {}", now_planned.reason)));
  });
}

SlurmDriver::Choice SlurmDriver::choose(const Seen& seen, const JobRequest& request) {
  const SlurmJob& job = seen.job;
  const std::vector<std::string>& asked = seen.mark.plan ? seen.mark.asked_nodes : job.asked_nodes;
  Choice choice;
  if (!is_name(job.features)) {
    choice.by_slurm = true;
    choice.waits_for = fmt::format("nodes by the constraint {}", job.features);
    return choice;
  }
  if (!nodes_known_) {
    nodes_ = slurm_.nodes();
    nodes_known_ = true;
  }
  std::vector<std::string> partitions;
  for (std::size_t begin = 0; begin <= job.partition.size();) {
    const std::size_t end = std::min(job.partition.find(',', begin), job.partition.size());
    partitions.push_back(job.partition.substr(begin, end - begin));
    begin = end + 1;
  }
  std::size_t max_known = 0;
  for (const std::string& partition : partitions) {
    std::size_t known = 0;
    std::vector<std::string> free;
    std::vector<std::string> not_avoided;
    const std::set<std::string>& avoided = memory_[seen.id].avoided;
    for (const SlurmNode& node : nodes_) {
      if (node.partition != partition || !hosts_.contains(node.name)) continue;
      if (!job.features.empty() && !has(node.features, job.features)) continue;
      if (has(job.barred_nodes, node.name)) continue;
      ++known;
      const auto promised = promised_.find(node.name);
      const std::uint32_t taken = promised != promised_.end() ? promised->second : 0;
      if (!node.takes_jobs || node.free_cpus < taken + job.cpus_per_node) continue;
      if (job.whole_nodes && (!node.idle || taken > 0)) continue;
      free.push_back(node.name);
      if (!avoided.contains(node.name)) not_avoided.push_back(node.name);
    }
    max_known = std::max(max_known, known);
    if (free.size() < request.workers) continue;
    if (std::ranges::any_of(asked, [&](const std::string& node) { return !has(free, node); })) continue;
    if (asked.size() >= request.workers) {
      choice.hosts = asked;
      return choice;
    }
    JobRequest asking = request;
    asking.allowed_hosts = not_avoided.size() >= request.workers ? not_avoided : free;
    try {
      for (const RankedPlacement& placement :
           service_.rank(asking, asked.empty() ? options_.candidates : kCandidatesWithAsked))
        if (std::ranges::all_of(asked, [&](const auto& node) { return has(placement.hosts, node); })) {
          choice.hosts = placement.hosts;
          return choice;
        }
    } catch (const Conflict&) {
      continue;  // the service has no free slots on these hosts
    }
  }
  if (max_known < request.workers)
    choice.never = fmt::format("the scheduler's topology has {} of the {} nodes that it needs in partition {}",
                               max_known, request.workers, job.partition);
  choice.waits_for = fmt::format("{} free nodes in partition {}", request.workers, job.partition);
  return choice;
}

void SlurmDriver::hand_back(Seen& seen, const std::string& reason) {
  Memory& memory = memory_[seen.id];
  attempt(seen, [&] { depart(seen.id); });  // if this fails, arrive_where_it_runs() moves the job once it runs
  const bool had_nodes = seen.mark.plan.has_value();
  seen.mark.plan.reset();
  seen.mark.reason = reason;
  if (had_nodes)
    slurm_.set_nodes(seen.job.id, to_text(seen.mark), seen.mark.asked_nodes);
  else if (!reason.empty())
    slurm_.set_comment(seen.job.id, to_text(seen.mark));
  if (seen.job.held && !seen.mark.held) slurm_.release(seen.job.id);
  memory.handed_back = true;
  if (!reason.empty()) log(fmt::format("slurm: job {} runs without time slots: {}", seen.job.id, reason));
}

void SlurmDriver::write_plan(Seen& seen, const Plans& plans) {
  const auto plan = plans.find(seen.id);
  if (plan == plans.end()) return;
  const SlurmMark::Plan wanted = to_mark(plan->second);
  if (seen.mark.plan && same_slots(*seen.mark.plan, wanted) && seen.mark.reason.empty()) return;
  seen.mark.plan = wanted;
  seen.mark.reason.clear();
  try {
    slurm_.set_comment(seen.job.id, to_text(seen.mark));
    memory_[seen.id].refused = false;
  } catch (const SlurmError& error) {
    // The job may have ended since the query, so log the error only if it occurs again.
    if (std::exchange(memory_[seen.id].refused, true)) log_once(seen, error.what());
  }
}

void SlurmDriver::refresh_heartbeat() {
  if (options_.heartbeat.empty()) return;
  refreshed_ = std::chrono::steady_clock::now();
  if (const std::string wrong = service_.trouble(); !wrong.empty()) {
    // Let the heartbeat expire, so that job_submit.lua does not hold new jobs.
    if (wrong != heartbeat_trouble_) log(fmt::format("slurm: the heartbeat is not refreshed: {}", wrong));
    heartbeat_trouble_ = wrong;
    return;
  }
  // The heartbeat is valid for three intervals plus 15 s, because each step may wait for Slurm's programs.
  const std::int64_t holds = 3 * (options_.interval.count / 1'000'000'000) + 15;
  std::error_code problem;
  std::filesystem::create_directories(options_.heartbeat.parent_path(), problem);
  const int error = replace_file(options_.heartbeat, fmt::format("{} {}\n", unix_now(), holds));
  const std::string trouble = error == 0 ? "" : fmt::format("cannot be written ({})", std::strerror(error));
  if (trouble != heartbeat_trouble_ && !trouble.empty())
    log(fmt::format("slurm: heartbeat {}: {}; without it jobs are not held, and not placed",
                    options_.heartbeat.string(), trouble));
  heartbeat_trouble_ = trouble;
}

}  // namespace mltcp::service
