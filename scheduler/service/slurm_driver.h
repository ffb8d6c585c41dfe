// Connects the scheduler's service to Slurm. It watches Slurm's jobs and acts on those that
// plugins/slurm/job_submit.lua has marked and held. Slurm remains the manager and decides which jobs run.
//
//   job is held      The driver ranks placements on Slurm's free nodes and chooses the best. It writes the nodes
//                    (ReqNodeList) and the plan (AdminComment) into the job, and releases the job.
//   job is released  If the job does not start within `start_patience`, the driver holds it and places it again, on
//                    other nodes if possible. If the job does not start there either, Slurm decides where it runs.
//   no placement     There are too few free nodes, or there is another reason, such as a disk that cannot be written.
//                    After `longest_hold`, or at once if the job can never be placed, the driver releases the job
//                    without nodes. The job then waits in Slurm's queue like any other job.
//   job starts       If the job has no plan, or a plan for other nodes, it arrives in the service with its nodes and
//                    gets a new plan. Its tasks wait a moment for the plan (spank_mltcp.c).
//   job ends         The job departs from the service.
//
// Each step compares the states of Slurm and of the service and corrects the difference, so missed events do not
// matter. After a restart of Slurm or of the service, the first step finds all jobs that arrived, started or ended
// during the restart. If a plan changes because other jobs arrive or depart, the driver writes it to the job's comment.
// Tasks that start after this change get the new plan.
//
// The driver ignores jobs that their users hold (SlurmMark::held) until the users release them.
//
// Each step refreshes a heartbeat file. job_submit.lua holds jobs only while this file is fresh. While the service
// cannot write its journal, the driver does not refresh the file.
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
  Nanos interval = Nanos(2'000'000'000);         ///< time between steps, 100 ms to 1 h
  Nanos start_patience = Nanos(60'000'000'000);  ///< maximum time for a released job to start
  Nanos longest_hold = Nanos(60'000'000'000);    ///< maximum time to hold a job that cannot be placed
  std::uint32_t candidates = 10;                 ///< number of placements to compare for a job, 1 to 1000
  std::filesystem::path heartbeat{};             ///< path of the heartbeat file; if empty, there is no file
  /// Called with one line per event, by the thread that runs step().
  std::function<void(const std::string& line)> log{};
};

class SlurmDriver {
 public:
  /// `service` and `slurm` must outlive the driver. Throws InputError if an option is out of range.
  SlurmDriver(SchedulerService& service, SlurmControl& slurm, SlurmDriverOptions options);
  ~SlurmDriver();
  SlurmDriver(const SlurmDriver&) = delete;
  SlurmDriver& operator=(const SlurmDriver&) = delete;

  /// Queries Slurm once and acts on the result. `now` is from a monotonic clock, `unix_s` is Unix time in seconds. Does
  /// not throw: each problem is logged once.
  void step(Nanos now, std::int64_t unix_s);

  /// Calls step() in a separate thread, every `options.interval`, until stop() is called. stop() removes the heartbeat
  /// file, so that jobs submitted later are not held.
  void start();
  void stop();

  /// Returns the service's id of a Slurm job, e.g. "slurm-17-1764063600" (Slurm's id and the time of submission).
  static std::string id_of(const SlurmJob& job);

 private:
  class Ticker;
  /// State of a job that neither Slurm nor the service stores. It is lost when the service restarts.
  struct Memory {
    Nanos since;                      ///< when the job was first seen, or was last held or released
    bool released = false;            ///< whether this driver has released the job
    bool handed_back = false;         ///< whether Slurm decides where the job runs
    std::uint32_t placements = 0;     ///< number of unsuccessful placements
    std::set<std::string> avoided{};  ///< nodes on which the job did not start
    std::string trouble{};            ///< last problem that was logged for the job
    bool refused = false;             ///< whether the job's comment could not be written
    std::uint32_t missed = 0;         ///< number of consecutive steps in which Slurm did not list the job
  };
  struct Seen {
    SlurmJob job;
    SlurmMark mark;
    std::string id;
  };
  struct Choice {
    std::vector<std::string> hosts;  ///< chosen nodes; empty if none were found
    std::string waits_for;           ///< what the job waits for if it has no nodes yet
    std::string never;               ///< why the job can never be placed; empty if it can
    bool by_slurm = false;           ///< whether only Slurm can evaluate the job's constraints
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
  /// Returns the current Unix time: `unix_s` of step() plus the time since then.
  [[nodiscard]] std::int64_t unix_now() const;
  void log(const std::string& line) const;
  void log_once(const Seen& seen, const std::string& trouble);
  /// Runs `work` and returns true. If `work` throws, logs the exception once per job and returns false.
  bool attempt(const Seen& seen, const std::function<void()>& work);

  SchedulerService& service_;
  SlurmControl& slurm_;
  SlurmDriverOptions options_;
  std::map<std::string, Memory> memory_;
  std::set<std::string> hosts_;  ///< names of the service's hosts
  // State of the current step.
  std::vector<SlurmNode> nodes_;
  bool nodes_known_ = false;
  std::map<std::string, std::uint32_t> promised_;  ///< by node: number of CPUs for released jobs that have not started
  std::string trouble_;                            ///< last logged problem with Slurm; empty if Slurm answers
  std::string heartbeat_trouble_;
  std::int64_t unix_s_ = 0;                          ///< Unix time at which the step began
  std::chrono::steady_clock::time_point begun_;      ///< monotonic time at which the step began
  std::chrono::steady_clock::time_point refreshed_;  ///< when the heartbeat was last refreshed
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace mltcp::service
