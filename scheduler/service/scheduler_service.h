// The scheduler as a service for cluster managers. Jobs arrive and depart. Each running job has hosts of the topology
// and time slots. The state survives a restart (journal.h). Any thread may call any method. The service contains no
// protocol (see http_server.h, kubernetes.h and others).
//
// A manager calls rank() to find the best hosts for a job, or chooses hosts itself. Then arrive() reserves the hosts,
// adds the job to the Cluster (scheduler/cluster.h) and returns a plan for the job: its number in packets and its
// slots. An arrival may change the slots of other jobs, give them slots, or remove their slots. Every answer contains
// all changed plans. A changed plan has a new revision.
//
// Slots are absolute times, so hosts agree on them without communication: iterations begin at
//   epoch + time_shift + k * slot_period   for whole k,
// in nanoseconds since 1970 (Unix time). The epoch is chosen when the state is created, and does not change. The first
// bytes of an iteration may leave `first_send` after its beginning. Hosts do not send these bytes before that time
// (transport/phase_gate.h). JobPlan::slot_unix_ns is that time for one iteration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/scheduler/cluster.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::service {

// Exceptions of the service. Each has one line "cause; cure". An invalid request, such as one with an unknown host or a
// number out of range, throws InputError (base/error.h). HTTP answers 400 for InputError, 404 for NotFound, 409 for
// Conflict, and 503 for Unavailable.

/// No running job has the requested id.
struct NotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The request is valid, but conflicts with the running jobs: there are too few free worker slots, or another running
/// job has the requested id.
struct Conflict : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The journal cannot be written, so the service cannot store the change. The state has not changed.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Maximum length of ids and names, in bytes.
inline constexpr std::size_t kMaxIdBytes = 128;
inline constexpr std::uint32_t kMaxWorkers = 65'536;
inline constexpr std::uint32_t kMaxFlows = 1024;

/// A job that a manager wants to place.
struct JobRequest {
  std::string id;    ///< unique among running jobs; 1 to kMaxIdBytes printable ASCII characters, no spaces
  std::string name;  ///< name for people; printable UTF-8; may be empty
  /// Total demand of all flows from one worker to the next worker of the ring, see demand_of() in job_profile.h.
  scheduler::Demand demand;
  std::uint32_t flows = 1;    ///< number of connections from each worker to the next, 1 to kMaxFlows
  std::uint32_t workers = 2;  ///< number of workers, which form a ring; 1 to kMaxWorkers
  // The next two members apply only if the service chooses the hosts. They are not stored.

  /// Hosts that the service may choose. If the list is empty, it may choose all hosts.
  std::vector<std::string> allowed_hosts;
  /// Maximum number of workers of the job on one host. 0 means that only the free worker slots of the host limit this
  /// number.
  std::uint32_t max_per_host = 0;

  bool operator==(const JobRequest&) const = default;
};

/// A possible placement of a job, and what would happen if the job arrived there. rank() does not change the slots of
/// running jobs.
struct RankedPlacement {
  std::vector<std::string> hosts;  ///< host of each worker, in the order of the ring
  std::string kind;  ///< "locality", "compatible" or "random" (placement.h); "given" if the caller chose the hosts
  double score = 1;  ///< mean score of all shared links if each job had its best shift; 1 if there is no excess
  double upper_bound = 1;  ///< upper bound of `score` over all shifts
  bool optimal = true;     ///< true if no shifts can give a higher `score`
  // The members below describe the result of arrive() with these hosts. That call may change the slots of running jobs.
  double excess = 0;  ///< sum of 1 - score over all shared links
  /// Sum over all jobs of (slot period / period - 1). Placements are ordered by the sum of excess and stretch.
  double stretch = 0;
  double own_score = 1;  ///< mean score of the links on which the job would compete; 1 if there are none
  struct Worst {
    std::string name;
    double score;
  };
  /// The link with the lowest score, of those on which the job would compete. No value if there are none.
  std::optional<Worst> worst_link;
  Nanos time_shift;
  Nanos slot_period;
  std::uint32_t moves = 0;  ///< number of running jobs whose slots would change
};

/// Where a job runs and when it may send.
struct JobPlan {
  std::string id;
  std::uint32_t number = 0;        ///< number of the job in packets; 1 or more, unique among running jobs
  std::vector<std::string> hosts;  ///< host of each worker, in the order of the ring
  /// True if hosts enforce the slots. If false, only congestion control regulates the job, `reason` states why, and the
  /// slots below serve only the scheduler.
  bool slots = false;
  std::string reason;  ///< one line for people; empty if `slots` is true
  /// A time at which the first bytes of an iteration may leave: epoch + time_shift + first_send.
  std::int64_t slot_unix_ns = 0;
  Nanos slot_period;           ///< time from one slot to the next
  Nanos time_shift;            ///< shift of the beginning of iterations, in [0, slot_period)
  Nanos first_send;            ///< time from the beginning of an iteration to its first bytes
  double score = 1;            ///< mean score of the links on which the job competes; 1 if there are none
  std::uint64_t revision = 0;  ///< service revision when this plan last changed; changes of `score` do not count

  bool operator==(const JobPlan&) const = default;
};

struct RunningJob {
  JobRequest request;
  JobPlan plan;
};

struct Arrival {
  JobPlan plan;
  std::vector<JobPlan> moves;  ///< changed plans of other jobs
  bool known = false;          ///< true if the job was already running, so nothing has changed
};

struct ServiceOptions {
  /// Folder of the journal. The service creates it if it is missing. If the path is empty, nothing is stored.
  std::filesystem::path state;
  std::vector<std::string> host_names;  ///< unique name of each host; if empty, the topology names the hosts
  std::uint32_t slots_per_host = 1;     ///< maximum number of workers on a host, 1 to 1024
  std::uint32_t candidates = 10;        ///< number of placements compared if the service chooses hosts, 1 to 1000
  std::uint32_t max_jobs = 10'000;      ///< maximum number of running jobs
  scheduler::ClusterOptions cluster;    ///< settings of the scheduler; max_bursts 0 means 100,000
  /// Epoch of slots for a new state, in nanoseconds of Unix time, 0 to 2^62. A stored state keeps its epoch.
  std::int64_t epoch_unix_ns = 0;
  /// A monotonic clock, used only to measure the time of planning.
  std::function<Nanos()> clock = monotonic_now;
  /// The service calls this function with one line for each event: arrival, departure, changed plan, error of the
  /// journal. Calls are in the order of events, on the thread that causes the event. The function must not call the
  /// service.
  std::function<void(const std::string& line)> log;
};

/// Operations for which the service computes plans.
enum class Planning : std::uint8_t { arrive, depart, rank };

/// Counters of one kind of planning since the service started. Refused requests, and arrivals of jobs that are already
/// running, do not count.
struct PlanningStats {
  std::uint64_t done = 0;
  Nanos took;  ///< total time, including waits for other planning
  Nanos longest;
};

class SchedulerService {
 public:
  /// Restores the jobs in the state folder, with their numbers, hosts and slots. Throws InputError if an option is out
  /// of range, another service uses the folder, the journal is damaged, or a job uses a host that is not in the
  /// topology. Throws RunError if the folder cannot be written.
  SchedulerService(Topology topology, ServiceOptions options);
  ~SchedulerService();
  SchedulerService(const SchedulerService&) = delete;
  SchedulerService& operator=(const SchedulerService&) = delete;

  /// Returns up to `candidates` placements (1 to 1000), the best first. Changes nothing. Throws InputError if the
  /// request is invalid, and Conflict if there are too few free worker slots or a job with this id is already running.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request, std::uint32_t candidates) const;
  /// Ranks the given placements, each with the host of every worker. Includes placements on hosts without free worker
  /// slots. Throws InputError and Conflict.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request,
                                                  const std::vector<std::vector<std::string>>& placements) const;

  /// The action of arrive() if the chosen hosts have fewer free worker slots than the job needs.
  enum class Capacity : std::uint8_t {
    needed,   ///< arrive() throws Conflict
    assumed,  ///< arrive() uses the hosts, because the job may already run there
  };
  /// Adds a job on `hosts`, which has one host for each worker in the order of the ring. If `hosts` is empty, the
  /// service chooses the hosts with the best score. The arrival is on disk when arrive() returns. If the job is already
  /// running, and `hosts` is empty or contains its current hosts, changes nothing and returns the current plan. Throws
  /// InputError, Conflict and Unavailable; then nothing has changed.
  Arrival arrive(const JobRequest& request, const std::vector<std::string>& hosts = {},
                 Capacity capacity = Capacity::needed);
  /// Removes a job that has ended. Returns the changed plans of other jobs. Throws NotFound and Unavailable.
  std::vector<JobPlan> depart(std::string_view id);
  /// Returns the reason why arrivals and departures would throw Unavailable now; empty if no reason is known.
  [[nodiscard]] std::string trouble();

  /// Returns the plan of a running job. Throws NotFound. Neither plan() nor the functions below wait while the service
  /// computes an arrival.
  [[nodiscard]] JobPlan plan(std::string_view id) const;
  [[nodiscard]] std::vector<RunningJob> jobs() const;  ///< running jobs in the order of arrival
  [[nodiscard]] std::vector<JobPlan> plans() const;    ///< plans of the running jobs in the order of arrival
  /// Returns the revision, which increases with every arrival and departure. A restart does not reset it.
  [[nodiscard]] std::uint64_t revision() const;
  /// Returns the number of free worker slots of each host.
  [[nodiscard]] std::vector<std::uint32_t> free_slots() const;

  /// Returns the counters of one kind of planning, for all sources: HTTP, Kubernetes, Slurm, and expired jobs.
  [[nodiscard]] PlanningStats planning(Planning kind) const;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] const std::vector<std::string>& host_names() const;  ///< name of each host
  /// Returns the host called `name`. Throws InputError that names the host and, if there is one, a similar name.
  [[nodiscard]] Topology::Host find_host(std::string_view name) const;
  [[nodiscard]] std::string link_name(Topology::Link link) const;  ///< name of a link, made from host_names()
  [[nodiscard]] std::uint32_t slots_per_host() const;
  [[nodiscard]] std::int64_t epoch_unix_ns() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::service
