// The scheduler as a service for cluster managers: jobs arrive and depart, each with a place on the topology's hosts
// and slots in time, and everything that was answered survives a restart (journal.h). Any thread may call any method;
// there is no protocol in it (http_server.h, kubernetes.h and others bring one), and no clock: times are arguments.
//
// A manager asks rank() where a job would fit best, or decides by itself; arrive() then takes the hosts, joins the job
// to the scheduler's Cluster (scheduler/cluster.h) and gives it a plan: its number in packets and its slots. Other jobs
// may get new slots by that, and get or lose slots at all; whose plan has changed is part of every answer, and has a
// new revision.
//
// Slots are absolute, so that hosts agree on them without talking: iterations begin at
//   epoch + time_shift + k * slot_period   for whole k,
// in nanoseconds since 1970 (Unix time). The epoch is chosen when the state is created and stays. What a host is held
// to is the time at which its first bytes of an iteration may leave (transport/phase_gate.h), `first_send` later:
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

// What can go wrong, each with one line for people, "cause; cure". A request that can't be granted as it stands
// (unknown host, not a profile, a number out of range) is an InputError (base/error.h). HTTP says 400, 404, 409 and
// 503.

/// No job has this id.
struct NotFound : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Valid, but not with the jobs that run: no room, or the id is another job's.
struct Conflict : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The service can't keep what it would promise: the journal can't be written. Nothing has changed.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Maximum bytes of ids and names.
inline constexpr std::size_t kMaxIdBytes = 128;
inline constexpr std::uint32_t kMaxWorkers = 65'536;
inline constexpr std::uint32_t kMaxFlows = 1024;

/// A job that asks for a place.
struct JobRequest {
  std::string id;    ///< the manager's, unique among running jobs: 1 to kMaxIdBytes printable ASCII, no spaces
  std::string name;  ///< for people; printable UTF-8; may be empty
  /// What one worker sends to the next of the ring, all of its flows together; see demand_of() in job_profile.h.
  scheduler::Demand demand;
  std::uint32_t flows = 1;    ///< parallel connections from a worker to the next, 1 to kMaxFlows
  std::uint32_t workers = 2;  ///< 1 to kMaxWorkers, in a ring
  // For the choice of hosts alone, and not kept: a caller that names hosts has chosen already.
  /// Hosts that may be taken; empty: all.
  std::vector<std::string> allowed_hosts;
  std::uint32_t max_per_host = 0;  ///< maximum number of its workers on one host; 0: as many as the host has slots

  bool operator==(const JobRequest&) const = default;
};

/// A possible placement of a job, with what would follow from it. Jobs that run are not moved by asking.
struct RankedPlacement {
  std::vector<std::string> hosts;  ///< of the workers, in the order of the ring
  std::string kind;                ///< how it was found: "locality", "compatible", "random", or "given" by the caller
  double score = 1;        ///< mean over all shared links, with the best shifts that all jobs could have; 1: no excess
  double upper_bound = 1;  ///< of that score, with any shifts
  bool optimal = true;     ///< score is proven to be the best
  // If the job arrived there now, with jobs that run moved no more than arrive() does:
  double excess = 0;  ///< sum of 1 - score over all shared links
  /// Sum over all jobs of what their slots are longer than their periods, as shares of these. Placements are ordered by
  /// excess and this together.
  double stretch = 0;
  double own_score = 1;  ///< mean over the links on which it would compete; 1 without
  struct Worst {
    std::string name;
    double score;
  };
  std::optional<Worst> worst_link;  ///< the one with the lowest score of them; nothing: it would compete on none
  Nanos time_shift;
  Nanos slot_period;
  std::uint32_t moves = 0;  ///< number of other jobs that would get another slot
};

/// Where a job runs and when it may send.
struct JobPlan {
  std::string id;
  std::uint32_t number = 0;  ///< the job's number in packets (transport/types.h): 1 or more, no other running job's
  std::vector<std::string> hosts;  ///< of the workers, in the order of the ring
  /// Whether the job is to be held to slots. If not, it runs by congestion control alone, and `reason` says why; the
  /// slots below are then those that it has in the scheduler's books.
  bool slots = false;
  std::string reason;  ///< one line; empty with slots
  std::int64_t slot_unix_ns =
      0;              ///< a time at which first bytes of an iteration may leave: epoch + time_shift + first_send
  Nanos slot_period;  ///< between such times
  Nanos time_shift;   ///< of the beginning of iterations, in [0, slot_period)
  Nanos first_send;   ///< from there to the first bytes: the computation before
  double score = 1;   ///< mean over the links on which it competes; 1 without
  std::uint64_t revision = 0;  ///< of the last change of this plan, of all but its score

  bool operator==(const JobPlan&) const = default;
};

struct RunningJob {
  JobRequest request;
  JobPlan plan;
};

struct Arrival {
  JobPlan plan;
  std::vector<JobPlan> moves;  ///< of other jobs, those that changed
  bool known = false;          ///< the job was there already, and nothing has changed
};

struct ServiceOptions {
  /// Folder of the journal, created if missing. Empty: nothing is kept.
  std::filesystem::path state;
  std::vector<std::string> host_names;  ///< by host; unique; empty: the topology's
  std::uint32_t slots_per_host = 1;     ///< workers that fit on a host, 1 to 1024
  std::uint32_t candidates = 10;        ///< placements compared for a job that comes without hosts, 1 to 1000
  std::uint32_t max_jobs = 10'000;      ///< that run at a time
  scheduler::ClusterOptions cluster;    ///< with max_bursts 0 that is 100,000
  /// Epoch of slots if no state is there yet, in Unix time; 0 to 2^62.
  std::int64_t epoch_unix_ns = 0;
  /// Any that is monotonic: by it planning is timed.
  std::function<Nanos()> clock = monotonic_now;
  /// Called with one line per event (arrival, departure, changed plan, trouble with the journal), by the thread that
  /// caused it, in order; must not call the service.
  std::function<void(const std::string& line)> log;
};

/// What takes the planner's time.
enum class Planning : std::uint8_t { arrive, depart, rank };

/// Of one kind, since the service started: what was done, and not refused, or known already.
struct PlanningStats {
  std::uint64_t done = 0;
  Nanos took;  ///< waits for each other included
  Nanos longest;
};

class SchedulerService {
 public:
  /// Restores what the state folder holds: the same jobs, numbers, hosts and slots. Throws InputError for options out
  /// of range, a folder in use by another service, a damaged journal, or jobs on hosts that the topology lacks;
  /// RunError if the folder can't be written.
  SchedulerService(Topology topology, ServiceOptions options);
  ~SchedulerService();
  SchedulerService(const SchedulerService&) = delete;
  SchedulerService& operator=(const SchedulerService&) = delete;

  /// Up to `candidates` placements, 1 to 1000, best first. Changes nothing. Throws InputError; Conflict if there is no
  /// room, or if a job with this id runs.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request, std::uint32_t candidates) const;
  /// The same for placements that the caller names, each with the host of every worker; all are ranked, those without
  /// room, too.
  [[nodiscard]] std::vector<RankedPlacement> rank(const JobRequest& request,
                                                  const std::vector<std::vector<std::string>>& placements) const;

  /// What is to be done where named hosts have fewer free slots than the job takes.
  enum class Room : std::uint8_t {
    needed,   ///< refuse, by Conflict
    assumed,  ///< take them all the same: the manager knows better, as of jobs that it says run already
  };
  /// A job arrives, on `hosts` (one per worker, in the order of the ring), or, if empty, on those with the best score.
  /// When this returns, it has been written to disk. The same request again changes nothing and returns the plan as it
  /// is, whatever the hosts were if none are named now. Throws InputError, Conflict and Unavailable; then nothing has
  /// changed.
  Arrival arrive(const JobRequest& request, const std::vector<std::string>& hosts = {}, Room room = Room::needed);
  /// A job has ended. Returns the plans of others that changed. Throws NotFound and Unavailable.
  std::vector<JobPlan> depart(std::string_view id);
  /// Why arrivals and departures are Unavailable now; empty: they are not, as far as can be told without one.
  [[nodiscard]] std::string trouble();

  /// Throws NotFound. These and the following never wait for an arrival that is being computed.
  [[nodiscard]] JobPlan plan(std::string_view id) const;
  [[nodiscard]] std::vector<RunningJob> jobs() const;  ///< in the order of their arrivals
  [[nodiscard]] std::vector<JobPlan> plans() const;    ///< the same
  /// Increases with every arrival and departure, and over restarts.
  [[nodiscard]] std::uint64_t revision() const;
  /// Free slots of each host, by host.
  [[nodiscard]] std::vector<std::uint32_t> free_slots() const;

  /// Whoever asked for it: a request, Kubernetes, Slurm, or a job that is gone.
  [[nodiscard]] PlanningStats planning(Planning kind) const;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] const std::vector<std::string>& host_names() const;  ///< by host
  /// Throws InputError that names the host and one that is called nearly so.
  [[nodiscard]] Topology::Host find_host(std::string_view name) const;
  [[nodiscard]] std::string link_name(Topology::Link link) const;  ///< with the hosts' names
  [[nodiscard]] std::uint32_t slots_per_host() const;
  [[nodiscard]] std::int64_t epoch_unix_ns() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::service
