// Drives the iterations of one rank of a job (rank_program.h), or of all workers of a job without a pattern. Works at
// packet level on any datapath. iteration_engine.h describes iterations. A send is done when its bytes have been
// acknowledged, a receive when its bytes have arrived.
//
// Within one process (JobDriver), the workers of a job without a pattern go through the same iterations. A phase ends
// for all workers when all data of all workers has been acknowledged. The receivers of the workers only receive. On
// hosts, workers are ranks in separate processes, which notify each other (phase_program.h).
//
// Two ranks that exchange data share `flows` connections. Two ranks that only synchronise (barriers) share one
// connection. The rank with the lower number opens the connections. Its first message on each connection identifies the
// connection by its length, and proves that the connection belongs to the rank. The rank with the higher number counts
// and closes all other connections. These unknown peers can occupy only a few entries of the connection table and
// cannot end the job. A rank retries if the peer's table is full, or if the peer mistakes the rank for an unknown peer.
// A worker within this process opens its connections to its receiver, which has no unknown peers.
//
// The bytes of an operation are divided evenly among the connections, and into segments of at most kSegmentBytes. A
// rank posts receives up to the end of the next iteration; a peer that is further ahead must wait. Real payloads are
// generated from the seed, the sender and the segment's number on its connection. The receiver verifies every byte.
//
// Allocates memory only at set-up, except for error messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/engine/iteration_engine.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/engine/payload.h"
#include "mltcp/lab/experiment/engine/running_job.h"
#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/lab/workload/rank_program.h"
#include "mltcp/transport/shard.h"

namespace mltcp::experiment {

/// Results of one rank. Each vector has one entry per recorded iteration.
struct RankResult {
  std::vector<Nanos> starts;    ///< start times on the datapath's clock
  std::vector<Nanos> times;     ///< durations of the iterations
  std::vector<Nanos> computes;  ///< compute times; empty if they do not vary
  /// Times from the end of computing to the end of the iteration, without waits for slots. Empty unless the pattern is
  /// a single collective (workload::bus_factor()).
  std::vector<Nanos> communications;
  bool alone = false;  ///< whether the rank communicates with no other rank, so that its iterations are independent
  Bytes bytes_per_iteration = 0;  ///< bytes sent per iteration
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t verified_messages = 0;  ///< number of verified segments
  std::uint64_t checksum_errors = 0;
  std::string first_error;  ///< describes the first damaged segment; empty if no segment was damaged
  GateStats gate;
  std::vector<OperationTimes> timeline;  ///< IterationEngine::timeline(), on the datapath's clock

  /// Adds the bytes and counters of another rank, or of another worker with the same iterations. Keeps the statistics
  /// of the gate that has waited longer.
  void add(const RankResult& other);
};

/// Merges the results of a job's ranks. `ranks` is in the order of the ranks and not empty. An iteration starts when
/// the first rank that communicates starts it, and lasts as long as on the slowest rank. Times are relative to `epoch`.
/// Includes only iterations that all ranks have recorded.
JobResult merge_ranks(const workload::Job& job, std::span<const RankResult> ranks, Nanos epoch);

/// Returns how long the rank computes before its first send. Empty if all sends depend on receives. Ranks with a value
/// start the communication of an iteration and are held to slots. Ranks without a value follow them.
std::optional<Nanos> time_to_first_send(const workload::RankProgram& program);
/// Returns the minimum time to the first send over the job's ranks. For a job without ranks, returns the duration of
/// computation before the first phase that sends.
Nanos time_to_first_send(const workload::Job& job);

/// Thrown if a connection to another rank ends before the job is done.
struct ConnectionLost : RunError {
  ConnectionLost(const std::string& what, std::uint32_t its_job, std::uint32_t its_peer, bool nothing_came)
      : RunError(what), job(its_job), peer(its_peer), unreachable(nothing_came) {}
  std::uint32_t job;   ///< JobSpec::number
  std::uint32_t peer;  ///< number of the peer rank
  bool unreachable;    ///< whether the peer stopped responding
};

/// The iterations of one rank, or the common iterations of all workers of a job without a pattern. Used at both packet
/// level and flow level.
struct Iterations {
  /// If `rank` is empty, the object is for all workers. `spec` must outlive this object.
  Iterations(const JobSpec& spec, std::optional<std::uint32_t> rank);
  Iterations(const Iterations&) = delete;
  Iterations& operator=(const Iterations&) = delete;

  /// Returns the times, and the bytes per iteration of the rank or of one worker.
  [[nodiscard]] RankResult result() const;

  const workload::RankProgram program;
  const workload::RankProgram::Load load;
  const workload::Job job;  ///< the job from which compute times are drawn; only rank 0 includes the job's pause
  const std::optional<Nanos> lead;  ///< see time_to_first_send()
  IterationEngine engine;
};

class RankDriver final : public Pollable {
 public:
  /// Drivers with common iterations.
  class Team;
  /// A worker in this process, or the receiver of its traffic.
  struct Worker {
    std::uint32_t number = 0;
    std::optional<Address> to{};   ///< address of the receiver; empty if this object is the receiver
    std::function<void()> wake{};  ///< makes the network poll this driver soon
  };
  struct Progress {
    std::uint64_t iteration = 0;   ///< number of the current iteration, from 0
    std::uint32_t operations = 0;  ///< operations per iteration
    std::uint32_t done = 0;        ///< operations done in this iteration
    Bytes sent = 0;                ///< acknowledged bytes in total
    Bytes received = 0;            ///< received bytes in total
    Nanos last;                    ///< duration of the latest recorded iteration; 0 if none is recorded
  };

  /// Creates a driver for rank `rank`, which starts to connect at `now`. `spec` and `io` must outlive the driver.
  /// `addresses` contains the addresses of all ranks, including this one. `payload` is a result of make_payload(),
  /// equal on all hosts; null if payloads are not real. Throws InputError for an invalid pattern.
  RankDriver(PacketIo& io, const JobSpec& spec, std::uint32_t rank, std::span<const Address> addresses,
             std::shared_ptr<const Payload> payload, Nanos now);
  /// Creates a driver for a worker, or for its receiver, of a job that runs within this process.
  RankDriver(PacketIo& io, const JobSpec& spec, Worker worker, std::shared_ptr<Team> team,
             std::shared_ptr<const Payload> payload, Nanos now);
  static std::shared_ptr<const Payload> make_payload(const JobSpec& spec);

  /// Advances the rank. Throws ConnectionLost if a connection ends, RunError if a peer's messages do not match the
  /// pattern.
  Nanos poll(Nanos now) override;

  [[nodiscard]] bool connected() const { return open_ == connections_; }
  /// Returns how many connections to other ranks a rank with program `program` needs.
  static std::size_t connections_of(const JobSpec& spec, const workload::RankProgram& program);
  /// Returns how many connections to other ranks this rank needs.
  [[nodiscard]] std::size_t connections() const { return connections_; }
  /// Sets the time of the first iteration. Call once, when connected, and poll() afterwards.
  void start(Nanos at);
  [[nodiscard]] bool done() const;
  [[nodiscard]] std::size_t recorded() const;
  [[nodiscard]] Progress progress() const;
  /// Returns whether the rank sends data.
  [[nodiscard]] bool sends() const;
  /// Returns a peer rank that is not connected yet; empty if all are connected.
  [[nodiscard]] std::optional<std::uint32_t> unreached() const;
  [[nodiscard]] RankResult result() const;
  /// See JobDriver::connections().
  [[nodiscard]] std::vector<SeriesConnection> flows() const;
  void read_states(std::span<ConnectionState> states) const;
  /// Returns the mean duration of the recorded iterations; 0 if none is recorded.
  [[nodiscard]] Nanos mean_time() const;
  /// Returns the job's progress that congestion control uses; null if unknown.
  [[nodiscard]] const cc::Augmentation* augmentation() const { return shard_.job_progress(job_id_); }
  [[nodiscard]] double gain() const { return shard_.job_gain(job_id_); }
  [[nodiscard]] const ShardStats& shard_stats() const { return shard_.stats(); }
  /// Calls `visit` for each connection to another rank.
  void visit_connections(const std::function<void(std::uint32_t peer, const ConnectionStats& stats)>& visit) const;
  /// Returns the number of accepted connections that ended, or were closed, without a proof that they belong to a rank.
  [[nodiscard]] std::uint64_t unknown_peers() const { return unknown_peers_; }

  /// Returns whether the rank can send before it receives anything. Such ranks are held to slots.
  [[nodiscard]] bool begins() const;
  /// Returns Iterations::lead. Requires begins().
  [[nodiscard]] Nanos lead() const;
  /// Sets a plan, see Shard::set_plan(). Call poll() afterwards. `plan` gives the times of the job's first bytes. If
  /// this rank computes longer than `job_lead` before its own first bytes, its slots are later by the difference.
  /// `job_lead` is time_to_first_send() of the job; computed if empty. Returns PlanState::active for a rank that is not
  /// held to slots.
  PlanState set_plan(const PhasePlan& plan, Nanos now, std::optional<Nanos> job_lead = std::nullopt);
  void clear_plan(Nanos now) { shard_.clear_plan(job_id_, now); }
  [[nodiscard]] GateStats gate() const { return shard_.gate_stats(job_id_); }

 private:
  struct Flow {
    ConnectionId connection = 0;        ///< 0 if there is no connection yet
    bool open = false;                  ///< whether the first message has been acknowledged or received
    Nanos connect_at = Nanos::never();  ///< time of the next attempt to connect; never() if none is due
    std::vector<std::uint32_t> free;    ///< unused entries of `slots_`
    // Position of the next segment to send in this iteration, and position of the next segment to post a receive for.
    std::size_t send = 0;
    Bytes send_offset = 0;
    std::uint64_t sent = 0;  ///< number of segments sent
    std::uint64_t receive_iteration = 0;
    std::size_t receive = 0;
    Bytes receive_offset = 0;
    std::uint64_t receives = 0;  ///< number of segments for which receives have been posted
  };
  /// An accepted connection from the address of a rank. Its first message has not arrived yet.
  struct PendingConnection {
    ConnectionId connection = 0;
    std::uint32_t channel = 0;
  };
  /// State of the communication with a peer rank, or with a worker's receiver.
  struct Channel {
    std::uint32_t peer = 0;
    std::vector<Flow> flows;
    std::vector<std::uint32_t> sends;  ///< send operations, in order
    std::vector<std::uint32_t> receives;
    bool open = false;         ///< whether all connections of the channel are open
    std::size_t accepted = 0;  ///< number of accepted connections, including pending ones
  };
  /// Identifies a connection by its channel and its index in Channel::flows.
  struct Place {
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
  };
  /// A receive that is posted or can be posted.
  struct Slot {
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
    std::uint32_t operation = 0;
    std::uint64_t iteration = 0;
    std::uint64_t number = 0;  ///< number of the segment on its connection, from 0
    Bytes length = 0;
    std::byte* buffer = nullptr;
  };
  static ShardConfig shard_config(const JobSpec& spec, const workload::RankProgram& program);
  void make_channels(std::span<const Address> addresses, Nanos now);
  void make_slots();
  bool take_completions(Nanos now);
  void on_accepted(ConnectionId connection, Nanos now);
  void on_first_message(const Completion& completion, Nanos now);
  /// Returns by how many accepted connections exceed the number that the channel needs.
  [[nodiscard]] std::size_t excess(const Channel& channel) const {
    return channel.accepted - std::min(channel.accepted, channel.flows.size());
  }
  void limit_pending(Nanos now);
  /// Removes a pending connection from its channel.
  void drop_pending(std::vector<PendingConnection>::iterator pending);
  /// Ends the connection. If too many connections are ending, aborts the oldest one.
  void leave(ConnectionId connection, Nanos now);
  /// Opens all connections of a channel.
  void connect(std::uint32_t channel, Nanos now);
  void on_ended(const Channel& channel, Flow& flow, const Completion& completion, Nanos now);
  void connect_again(Nanos now);
  void on_open(Channel& channel, Flow& flow);
  void on_received(const Completion& completion);
  void on_sent(Channel& channel, Flow& flow, const Completion& completion);
  /// Begins an iteration in which the rank sends `bytes`. If `bytes` is 0, the transport is not notified.
  void begin_iteration(Bytes bytes);
  /// Begins a send operation. Limits the job to `rate` from now on, if `rate` is given.
  void send(std::uint32_t operation, std::optional<Rate> rate);
  void on_recorded(Nanos now);
  void post_sends(Channel& channel, Flow& flow);
  void post_receives(Channel& channel, Flow& flow);
  static std::size_t number_of(const Channel& channel, const Flow& flow) {
    return static_cast<std::size_t>(&flow - channel.flows.data());
  }
  /// Returns how many bytes of the operation the connection carries.
  [[nodiscard]] static Bytes share_of(const workload::Operation& operation, const Channel& channel, const Flow& flow);
  [[nodiscard]] std::span<const std::byte> bytes_of(std::uint32_t from, std::size_t flow, std::uint64_t number,
                                                    Bytes length) const;
  [[nodiscard]] std::uint64_t retransmitted_packets() const;
  /// Returns an error message with the job's name and, if this driver is a rank, with the numbers of this rank and of
  /// the peer.
  [[nodiscard]] std::string about(const std::string& what, const char* preposition, std::uint32_t peer) const;
  [[noreturn]] void fail(std::uint32_t peer, const std::string& what) const {
    throw RunError(about(what, "from", peer));
  }
  [[noreturn]] void fail_connection(std::uint32_t peer, std::optional<Status> status = std::nullopt) const;

  const JobSpec& spec_;
  const std::uint32_t rank_;
  const bool receiver_;               ///< whether this driver is the receiver of a worker in this process
  const std::function<void()> wake_;  ///< set only for a sending worker in this process
  const std::shared_ptr<Team> team_;
  std::shared_ptr<const Payload> payload_;
  Shard shard_;
  JobId job_id_ = 0;
  std::array<Completion, 32> completions_;

  std::vector<Channel> channels_;
  std::vector<std::uint32_t> channel_of_;  ///< channel number by operation
  std::unordered_map<ConnectionId, Place> places_;
  std::unordered_map<Address, std::uint32_t, AddressHash> channels_at_;
  std::size_t connections_ = 0;  ///< number of connections when all are connected
  std::size_t open_ = 0;
  ConnectionConfig connection_config_;
  std::vector<Address> addresses_;          ///< address of the peer, by channel
  std::vector<PendingConnection> pending_;  ///< pending connections, oldest first
  /// Connections that this rank has ended but whose peers may not know it yet; oldest first.
  std::vector<ConnectionId> leaving_;
  std::uint64_t unknown_peers_ = 0;
  Nanos give_up_connecting_;
  Nanos connect_at_ = Nanos::never();  ///< earliest Flow::connect_at
  std::vector<Slot> slots_;
  std::vector<std::byte> buffers_;

  Nanos waited_before_;  ///< total time waited for slots when the iteration began
  std::vector<Nanos> communications_;
  Bytes sent_ = 0;
  Bytes received_ = 0;
  std::uint64_t verified_ = 0;
  std::uint64_t errors_ = 0;
  std::string first_error_;
  /// Number of retransmitted packets when the last iteration to record ended. `gate_` is from the same time.
  std::uint64_t retransmitted_packets_ = 0;
  GateStats gate_;
};

/// A job that runs within this process, attached to the hosts of its workers.
class JobDriver final : public RunningJob {
 public:
  /// Attaches ranks, or workers and receivers, to `network` and starts to connect. The driver must outlive the
  /// network's last run. With `apart`, the workers of a job without a pattern are ranks, as in runs on hosts.
  JobDriver(JobNetwork& network, const JobSpec& spec, bool apart = false);

  /// Returns whether all connections are open.
  [[nodiscard]] bool connected() const;
  /// Starts the job at `epoch`, the experiment's time 0, plus the job's start time. Call once, when connected.
  void start(Nanos epoch);
  [[nodiscard]] bool done() const override;
  /// Returns the number of iterations that all ranks have recorded.
  [[nodiscard]] std::size_t recorded() const override;
  /// Times are on the network's clock. Call set_plan() and clear_plan() only between runs of the network.
  PlanState set_plan(const PhasePlan& plan) override;
  void clear_plan() override;
  [[nodiscard]] PlanState plan_state() const override;
  [[nodiscard]] Nanos adrift_since() const override;
  [[nodiscard]] JobResult result() const override;
  /// Returns how many data packets arrived with a congestion mark (ECN CE), as receivers reported.
  [[nodiscard]] std::uint64_t marked_packets() const;
  /// Returns the connections on which the job sends; constant once connected.
  [[nodiscard]] std::vector<SeriesConnection> connections() const;
  /// Fills in the states of the connections, in the order of connections(). Does not change the states of connections
  /// that have ended.
  void read_states(std::span<ConnectionState> states) const;
  /// Returns the driver of a rank, or of a worker if the job has no pattern.
  [[nodiscard]] const RankDriver& rank(std::uint32_t rank) const { return *ranks_[rank]; }

 private:
  [[nodiscard]] JobNetwork::End end(std::uint32_t rank) const;

  JobNetwork& network_;
  const JobSpec spec_;
  std::vector<std::unique_ptr<RankDriver>> ranks_;
  std::vector<std::unique_ptr<RankDriver>> receivers_;  ///< receivers of the workers
  /// Number of ranks, counted from rank 0 without gaps, that are known to be done.
  mutable std::size_t done_ranks_ = 0;
  Nanos epoch_;
};

}  // namespace mltcp::experiment
