// Connects the scheduler's service to Slurm: watches Slurm's jobs and acts on those that plugins/slurm/job_submit.lua
// has marked and held. Slurm remains the manager and decides which jobs run.
//
//   held            the service ranks placements on Slurm's free nodes, takes the best, writes its nodes (ReqNodeList)
//                   and the plan (AdminComment) into the job, and releases it
//   does not start  after `start_patience` it is held and placed again, on other nodes if possible; then Slurm decides
//   no room         after `longest_hold` it is released without nodes, and waits in Slurm's queue like any other job;
//                   the same if it cannot be placed for another reason, such as a disk that cannot be written
//   starts          on other nodes than planned, or without a plan: it arrives there and gets its plan then; its tasks
//                   wait a moment for it (spank_mltcp.c)
//   ends            it departs
//
// Each step compares Slurm's state with the service's and corrects the difference, so missed events do not matter:
// after a restart of either, the first step finds jobs that have ended, started or come meanwhile. Plans that changed
// because other jobs came or went are written to their jobs' comments; tasks that start later get them.
//
// Jobs that their users hold (SlurmMark::held) are left alone until they are released.
//
// Each step refreshes a heartbeat file, which allows job_submit.lua to hold jobs; not while the service cannot write
// its journal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/scheduler_service.h"
#include "mltcp/scheduler/service/slurm_client.h"
#include "mltcp/scheduler/service/slurm_mark.h"

namespace mltcp::service {

struct SlurmDriverOptions {
  Nanos interval = Nanos(2'000'000'000);         ///< between steps, 100 ms to 1 h
  Nanos start_patience = Nanos(60'000'000'000);  ///< for a released job to start
  Nanos longest_hold = Nanos(60'000'000'000);    ///< of a job for which there is no room
  std::uint32_t candidates = 10;                 ///< placements compared for a job, 1 to 1000
  std::filesystem::path heartbeat{};             ///< empty: none
  /// Called with one line per event, by the thread that steps.
  std::function<void(const std::string& line)> log{};
};

class SlurmDriver {
 public:
  /// Both must outlive it. Throws InputError for options out of range.
  SlurmDriver(SchedulerService& service, SlurmControl& slurm, SlurmDriverOptions options);
  ~SlurmDriver();
  SlurmDriver(const SlurmDriver&) = delete;
  SlurmDriver& operator=(const SlurmDriver&) = delete;

  /// Queries Slurm once and acts. `now` is from a monotonic clock, `unix_s` is Unix time. Does not throw: problems are
  /// logged once.
  void step(Nanos now, std::int64_t unix_s);

  /// Calls step() at the interval in a separate thread until stop(), which removes the heartbeat file: jobs submitted
  /// later are not held.
  void start();
  void stop();

  /// The service's id of a Slurm job: "slurm-17-1764063600".
  static std::string id_of(const SlurmJob& job);

 private:
  class Ticker;
  /// State of a job that neither Slurm nor the service has; lost at a restart.
  struct Memory {
    Nanos since;                      ///< when it was first seen held, or was released
    bool released = false;            ///< by this driver
    bool handed_back = false;         ///< Slurm decides where it runs
    std::uint32_t placements = 0;     ///< unsuccessful placements
    std::set<std::string> avoided{};  ///< nodes where it did not start
    std::string trouble{};            ///< last problem logged
    bool refused = false;             ///< its comment could not be written
    std::uint32_t missed = 0;         ///< steps in which Slurm did not know it
  };
  struct Seen {
    SlurmJob job;
    SlurmMark mark;
    std::string id;
  };
  struct Choice {
    std::vector<std::string> hosts;  ///< empty: none, for the reason below
    std::string waits_for;           ///< something that may become available,
    std::string never;               ///< or why it will never be possible
    bool by_slurm = false;           ///< only Slurm can evaluate the job's constraints
  };
  using Plans = std::map<std::string, JobPlan>;

  [[nodiscard]] Plans plans() const;
  [[nodiscard]] std::optional<JobPlan> find_plan(const std::string& id) const;
  void depart_ended(const std::vector<SlurmJob>& jobs);
  void arrive_where_it_runs(Seen& seen);
  void refuse_part(Seen& seen);
  void look_at_pending(Seen& seen, Nanos now);
  void place(Seen& seen, Nanos now);
  [[nodiscard]] Choice choose(const Seen& seen, const JobRequest& request);
  [[nodiscard]] JobRequest request_of(const Seen& seen) const;
  void hand_back(Seen& seen, const std::string& reason);
  void write_plan(Seen& seen, const Plans& plans);
  void depart(const std::string& id);
  void refresh_heartbeat();
  /// unix_s of step(), plus the time since.
  [[nodiscard]] std::int64_t unix_now() const;
  void tell(const std::string& line) const;
  void tell_once(const Seen& seen, const std::string& trouble);
  /// Runs `work`; logs an exception once per job. False if it threw.
  bool attempt(const Seen& seen, const std::function<void()>& work);

  SchedulerService& service_;
  SlurmControl& slurm_;
  SlurmDriverOptions options_;
  std::map<std::string, Memory> memory_;
  std::set<std::string> hosts_;  ///< the service's hosts
  // State of this step.
  std::vector<SlurmNode> nodes_;
  bool nodes_known_ = false;
  std::map<std::string, std::uint32_t> promised_;  ///< CPUs of nodes reserved for released jobs that have not started
  std::string trouble_;                            ///< logged problem with Slurm; empty: it answers
  std::string heartbeat_trouble_;
  std::int64_t unix_s_ = 0;                          ///< when the step began
  std::chrono::steady_clock::time_point begun_;      ///< the same
  std::chrono::steady_clock::time_point refreshed_;  ///< when the heartbeat was last refreshed
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace mltcp::service
