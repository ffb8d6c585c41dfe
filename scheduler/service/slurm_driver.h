// The scheduler's service beside Slurm: it watches Slurm's jobs and acts on those that plugins/slurm/job_submit.lua has
// marked and held. Slurm stays the manager; what it says runs, runs.
//
//   held          the service ranks placements on nodes that Slurm has free, takes the best, writes its nodes
//   (ReqNodeList)
//                 and the plan (AdminComment) into the job, and releases it
//   does not start  after `start_patience` it is held and placed anew, on others if there are; then Slurm decides
//   no room       after `longest_hold` it is released without nodes, and waits in Slurm's queue like any other; so is
//                 one that can't be placed for another reason, such as a disk that can't be written
//   starts        on other nodes than planned, or without a plan: it arrives there, and gets its plan then, for which
//                 its tasks wait a moment (spank_mltcp.c)
//   ends          it departs
//
// A step compares what Slurm says with what the service knows and mends the difference, so that it does not matter what
// was missed: after a restart of either, the first step finds jobs that have ended, started or come meanwhile. Plans
// that changed since, because others came or went, are written into their jobs' comments; tasks started from then on
// get them.
//
// Jobs that their users hold (SlurmMark::held) are left alone until they are released.
//
// Each step refreshes a heartbeat file, by which job_submit.lua knows that jobs may be held; not while the service
// can't keep what it promises.
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
  Nanos start_patience = Nanos(60'000'000'000);  ///< for a job that was released to start
  Nanos longest_hold = Nanos(60'000'000'000);    ///< of a job that there is no room for
  std::uint32_t candidates = 10;                 ///< placements compared for a job, 1 to 1000
  std::filesystem::path heartbeat{};             ///< empty: none
  /// Called with one line per event, by the thread that steps.
  std::function<void(const std::string& line)> log{};
};

class SlurmDriver {
 public:
  /// Both outlive it. Throws InputError for options out of range.
  SlurmDriver(SchedulerService& service, SlurmControl& slurm, SlurmDriverOptions options);
  ~SlurmDriver();
  SlurmDriver(const SlurmDriver&) = delete;
  SlurmDriver& operator=(const SlurmDriver&) = delete;

  /// One look at Slurm and what follows from it. `now` is on a clock that never goes back, `unix_s` the time of day.
  /// Does not throw: trouble is told to the log, once.
  void step(Nanos now, std::int64_t unix_s);

  /// Steps at the interval in a thread of its own, until stop(), which removes the heartbeat file: jobs submitted from
  /// then on are not held.
  void start();
  void stop();

  /// The service's id of a job of Slurm's: "slurm-17-1764063600".
  static std::string id_of(const SlurmJob& job);

 private:
  class Ticker;
  /// What is known of a job besides what Slurm and the service say; lost with a restart.
  struct Memory {
    Nanos since;                      ///< held: when it was first seen so; released: the same
    bool released = false;            ///< by this driver
    bool handed_back = false;         ///< Slurm decides where it runs
    std::uint32_t placements = 0;     ///< that came to nothing
    std::set<std::string> avoided{};  ///< nodes on which it did not start
    std::string trouble{};            ///< that was told last
    bool refused = false;             ///< its comment could not be written
    std::uint32_t missed = 0;         ///< looks at which Slurm did not know it
  };
  struct Seen {
    SlurmJob job;
    SlurmMark mark;
    std::string id;
  };
  struct Choice {
    std::vector<std::string> hosts;  ///< empty: none, because of
    std::string waits_for;           ///< what may come,
    std::string never;               ///< or what won't
    bool by_slurm = false;           ///< which alone knows what the job asks for
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
  /// As step() was told, and what has passed since.
  [[nodiscard]] std::int64_t unix_now() const;
  void tell(const std::string& line) const;
  void tell_once(const Seen& seen, const std::string& trouble);
  /// Runs it; what it throws is told once, for that job. False: it threw.
  bool attempt(const Seen& seen, const std::function<void()>& work);

  SchedulerService& service_;
  SlurmControl& slurm_;
  SlurmDriverOptions options_;
  std::map<std::string, Memory> memory_;
  std::set<std::string> hosts_;  ///< that the service knows
  // Of this step.
  std::vector<SlurmNode> nodes_;
  bool nodes_known_ = false;
  std::map<std::string, std::uint32_t> promised_;  ///< CPUs of nodes, to jobs that were released and have not started
  std::string trouble_;                            ///< with Slurm, that was told; empty: it answers
  std::string heartbeat_trouble_;
  std::int64_t unix_s_ = 0;                          ///< when the step began
  std::chrono::steady_clock::time_point begun_;      ///< the same
  std::chrono::steady_clock::time_point refreshed_;  ///< the heartbeat, last
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace mltcp::service
