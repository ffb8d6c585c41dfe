// The scheduler as a service for cluster managers: jobs arrive and depart, each with a place on the topology's hosts
// and time slots. All answers survive a restart (journal.h). Any thread may call any method. It has no protocol (see
// http_server.h, kubernetes.h and others) and no clock: times are arguments.
//
// A manager calls rank() to find where a job fits best, or decides itself. arrive() then takes the hosts, adds the job
// to the scheduler's Cluster (scheduler/cluster.h) and gives it a plan: its number in packets and its slots. This may
// change the slots of other jobs, or give or remove slots. Every answer contains the changed plans, which have a new
// revision.
//
// Slots are absolute times, so hosts agree on them without communication: iterations begin at
//   epoch + time_shift + k * slot_period   for whole k,
// in nanoseconds since 1970 (Unix time). The epoch is chosen when the state is created, and does not change. Hosts
// enforce the time at which the first bytes of an iteration may leave (transport/phase_gate.h), `first_send` later:
// JobPlan::slot_unix_ns is such a time.
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

// Errors, each with one line "cause; cure". An invalid request (unknown host, not a profile, a number out of range)
// throws InputError (base/error.h). In HTTP: 400 for InputError, then 404, 409 and 503.

/// No job has this id.
struct NotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Valid, but in conflict with the running jobs: no room, or another job has the id.
struct Conflict : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The journal cannot be written, so the service cannot guarantee an answer. Nothing has changed.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Maximum bytes of ids and names.
inline constexpr std::size_t kMaxIdBytes = 128;
inline constexpr std::uint32_t kMaxWorkers = 65'536;
inline constexpr std::uint32_t kMaxFlows = 1024;

/// A request to place a job.
struct JobRequest {
  std::string id;    ///< the manager's, unique among running jobs: 1 to kMaxIdBytes printable ASCII, no spaces
  std::string name;  ///< for people; printable UTF-8; may be empty
  /// Demand from one worker to the next of the ring, all of its flows together; see demand_of() in job_profile.h.
  scheduler::Demand demand;
  std::uint32_t flows = 1;    ///< parallel connections from a worker to the next, 1 to kMaxFlows
  std::uint32_t workers = 2;  ///< 1 to kMaxWorkers, in a ring
  // Only for the choice of hosts, and not stored: unused if the caller names the hosts.
  /// Hosts that may be taken; empty: all.
  std::vector<std::string> allowed_hosts;
  std::uint32_t max_per_host = 0;  ///< maximum number of its workers on one host; 0: as many as the host has slots

  bool operator==(const JobRequest&) const = default;
};

/// A possible placement of a job, with its consequences. Ranking does not move running jobs.
struct RankedPlacement {
  std::vector<std::string> hosts;  ///< of the workers, in the order of the ring
  std::string kind;                ///< how it was found: "locality", "compatible", "random", or "given" by the caller
  double score = 1;                ///< mean over all shared links, with the best shifts of all jobs; 1: no excess
  double upper_bound = 1;          ///< upper bound of that score with any shifts
  bool optimal = true;             ///< the score is proven to be optimal
  // If the job arrived there now, and running jobs moved as by arrive():
  double excess = 0;  ///< sum of 1 - score over all shared links
  /// Sum over all jobs of (slot period / period - 1). Placements are ordered by the sum of excess and stretch.
  double stretch = 0;
  double own_score = 1;  ///< mean over the links on which it would compete; 1 if there are none
  struct Worst {
    std::string name;
    double score;
  };
  std::optional<Worst> worst_link;  ///< the link with the lowest score of these; empty: it would compete on none
  Nanos time_shift;
  Nanos slot_period;
  std::uint32_t moves = 0;  ///< number of other jobs that would get another slot
};

/// Where a job runs and when it may send.
struct JobPlan {
  std::string id;
  std::uint32_t number = 0;  ///< the job's number in packets (transport/types.h): 1 or more, unique among running jobs
  std::vector<std::string> hosts;  ///< of the workers, in the order of the ring
  /// Whether hosts enforce the slots. If not, the job runs by congestion control alone, and `reason` says why; the
  /// slots below are then only the scheduler's internal ones.
  bool slots = false;
  std::string reason;  ///< one line; empty with slots
  /// A time at which the first bytes of an iteration may leave: epoch + time_shift + first_send.
  std::int64_t slot_unix_ns = 0;
  Nanos slot_period;           ///< between such times
  Nanos time_shift;            ///< for the beginning of iterations, in [0, slot_period)
  Nanos first_send;            ///< from the beginning to the first bytes: computation
  double score = 1;            ///< mean over the links on which it competes; 1 if none
  std::uint64_t revision = 0;  ///< revision of the last change of this plan, other than its score

  bool operator==(const JobPlan&) const = default;
};

struct RunningJob {
  JobRequest request;
  JobPlan plan;
};

struct Arrival {
  JobPlan plan;
  std::vector<JobPlan> moves;  ///< changed plans of other jobs
  bool known = false;          ///< the job had arrived before; nothing has changed
};

struct ServiceOptions {
  /// Folder of the journal, created if missing. Empty: nothing is stored.
  std::filesystem::path state;
  std::vector<std::string> host_names;  ///< by host; unique; empty: the topology's
  std::uint32_t slots_per_host = 1;     ///< workers that fit on a host, 1 to 1024
  std::uint32_t candidates = 10;        ///< placements compared for a job without given hosts, 1 to 1000
  std::uint32_t max_jobs = 10'000;      ///< maximum running jobs
  scheduler::ClusterOptions cluster;    ///< max_bursts 0 means 100,000
  /// Epoch of slots for a new state, in Unix time; 0 to 2^62.
  std::int64_t epoch_unix_ns = 0;
  /// Any monotonic clock, to measure the time of planning.
  std::function<Nanos()> clock = monotonic_now;
  /// Called with one line per event (arrival, departure, changed plan, error of the journal), by the thread that caused
  /// it, in order; must not call the service.
  std::function<void(const std::string& line)> log;
};

/// Kinds of planning.
enum class Planning : std::uint8_t { arrive, depart, rank };

/// Planning of one kind since the service started, without refused requests and known jobs.
struct PlanningStats {
  std::uint64_t done = 0;
  Nanos took;  ///< including waits for other planning
  Nanos longest;
};

class SchedulerService {
 public:
  /// Restores the jobs in the state folder, with their numbers, hosts and slots. Throws InputError for options out of
  /// range, a folder in use by another service, a damaged journal, or jobs on hosts that the topology lacks; RunError
  /// if the folder cannot be written.
  SchedulerService(Topology topology, ServiceOptions options);
  ~SchedulerService();
  SchedulerService(const SchedulerService&) = delete;
  SchedulerService& operator=(const SchedulerService&) = delete;

  /// Up to `candidates` placements, 1 to 1000, best first. Changes nothing. Throws InputError; Conflict if there is no
  /// room, or if a job with this id runs.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request, std::uint32_t candidates) const;
  /// The same for given placements, each with the host of every worker. All are ranked, also those without room.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request,
                                                  const std::vector<std::vector<std::string>>& placements) const;

  /// What to do if named hosts have fewer free slots than the job needs.
  enum class Room : std::uint8_t {
    needed,   ///< throw Conflict
    assumed,  ///< use them anyway: the manager knows better, e.g. the job already runs there
  };
  /// A job arrives on `hosts` (one per worker, in the order of the ring), or, if empty, on the hosts with the best
  /// score. The arrival is on disk when this returns. Repeating the request changes nothing and returns the current
  /// plan; without `hosts`, on any hosts. Throws InputError, Conflict and Unavailable; then nothing has changed.
  Arrival arrive(const JobRequest& request, const std::vector<std::string>& hosts = {}, Room room = Room::needed);
  /// A job has ended. Returns the plans of others that changed. Throws NotFound and Unavailable.
  std::vector<JobPlan> depart(std::string_view id);
  /// Why arrivals and departures would throw Unavailable now; empty if no reason is known.
  [[nodiscard]] std::string trouble();

  /// Throws NotFound. This and the following functions never wait for an arrival that is being computed.
  [[nodiscard]] JobPlan plan(std::string_view id) const;
  [[nodiscard]] std::vector<RunningJob> jobs() const;  ///< in the order of their arrivals
  [[nodiscard]] std::vector<JobPlan> plans() const;    ///< the same
  /// Increases with every arrival and departure, also across restarts.
  [[nodiscard]] std::uint64_t revision() const;
  /// Free slots of each host, by host.
  [[nodiscard]] std::vector<std::uint32_t> free_slots() const;

  /// Includes all sources: requests, Kubernetes, Slurm, and jobs that have expired.
  [[nodiscard]] PlanningStats planning(Planning kind) const;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] const std::vector<std::string>& host_names() const;  ///< by host
  /// Throws InputError that names the host and one with a similar name.
  [[nodiscard]] Topology::Host find_host(std::string_view name) const;
  [[nodiscard]] std::string link_name(Topology::Link link) const;  ///< with the hosts' names
  [[nodiscard]] std::uint32_t slots_per_host() const;
  [[nodiscard]] std::int64_t epoch_unix_ns() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::service
