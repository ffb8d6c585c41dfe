// Drives iterations over packets, on any datapath: for one rank of a job (rank_program.h), or for all workers of a job
// that has phases only. Iterations are described in iteration_engine.h. A send is done when its bytes have been
// acknowledged, a receive when they have arrived.
//
// Within one process (JobDriver), the workers of a job without a pattern go through the same iterations: a phase is
// over for all of them when all of their data has been acknowledged, and their receivers only receive. On hosts, which
// are separate processes, they are ranks that notify each other (phase_program.h).
//
// Two ranks that exchange data share `flows` connections, or one if they only synchronise (a barrier). The lower rank
// opens them. Its first message on each connection identifies the connection by its length, and proves that it is the
// rank's. Any other connection is counted and closed: such unknown peers can occupy only a few entries of the
// connection table and cannot end the job. A rank that finds the table full, or was mistaken for an unknown peer,
// retries. A worker within this process opens its connections to its receiver, which has no unknown peers.
//
// The bytes of an operation are divided evenly among the connections and cut into segments of at most kSegmentBytes.
// Receives are posted ahead up to the end of the next iteration; a rank that is further ahead of another waits. Real
// payloads are generated from the seed, the sender and the segment's number on its connection, and every byte is
// verified on arrival.
//
// Allocates only at set-up, except for error messages.
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

/// Results of one rank for its recorded iterations; vectors are by iteration.
struct RankResult {
  std::vector<Nanos> starts;    ///< on the datapath's clock
  std::vector<Nanos> times;     ///< durations of the iterations
  std::vector<Nanos> computes;  ///< compute times, if they vary; otherwise empty
  /// Time from the end of computing to the end of the iteration, without waits for the slot; empty unless the pattern
  /// is a single collective (workload::bus_factor()).
  std::vector<Nanos> communications;
  bool alone = false;             ///< it communicates with no other rank, so its iterations depend on no other
  Bytes bytes_per_iteration = 0;  ///< sent
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t verified_messages = 0;  ///< segments
  std::uint64_t checksum_errors = 0;
  std::string first_error;  ///< first damaged segment; empty if there is none
  GateStats gate;
  std::vector<OperationTimes> timeline;  ///< IterationEngine::timeline(), on the datapath's clock

  /// Adds the bytes and counters of another rank, or of another worker with the same iterations. Keeps the gate that
  /// waited longer.
  void add(const RankResult& other);
};

/// Merges the results of a job's ranks, in order of rank; at least one. An iteration starts with the first rank that
/// communicates and lasts as long as that of the slowest rank. Times are relative to `epoch`. Includes only iterations
/// that all ranks have recorded.
JobResult merge_ranks(const workload::Job& job, std::span<const RankResult> ranks, Nanos epoch);

/// How long the rank computes before its first send; empty if all of its sends depend on receives. Ranks with a value
/// start an iteration's communication and are held to slots; the others follow.
std::optional<Nanos> time_to_first_send(const workload::RankProgram& program);
/// The minimum over the job's ranks; without ranks, the computation before the first phase that sends.
Nanos time_to_first_send(const workload::Job& job);

/// A connection to another rank has ended before the job did.
struct ConnectionLost : RunError {
  ConnectionLost(const std::string& what, std::uint32_t its_job, std::uint32_t its_peer, bool nothing_came)
      : RunError(what), job(its_job), peer(its_peer), unreachable(nothing_came) {}
  std::uint32_t job;   ///< JobSpec::number
  std::uint32_t peer;  ///< rank at the other end
  bool unreachable;    ///< the peer no longer responded
};

/// The iterations of one rank, or of all workers of a job without a pattern together; at packet and at flow level.
struct Iterations {
  /// `rank` empty: all workers. `spec` must outlive this object.
  Iterations(const JobSpec& spec, std::optional<std::uint32_t> rank);
  Iterations(const Iterations&) = delete;
  Iterations& operator=(const Iterations&) = delete;

  /// Times, and the bytes of one worker.
  [[nodiscard]] RankResult result() const;

  const workload::RankProgram program;
  const workload::RankProgram::Load load;
  const workload::Job job;          ///< for compute times; a pause applies to rank 0 only
  const std::optional<Nanos> lead;  ///< time_to_first_send()
  IterationEngine engine;
};

class RankDriver final : public Pollable {
 public:
  /// The drivers that go through the same iterations.
  class Team;
  /// One end of the traffic of a worker in this process: the worker itself, or its receiver.
  struct Worker {
    std::uint32_t number = 0;
    std::optional<Address> to{};   ///< the receiver's address; empty: this is the receiver
    std::function<void()> wake{};  ///< polls it soon
  };
  struct Progress {
    std::uint64_t iteration = 0;   ///< the current one, from 0
    std::uint32_t operations = 0;  ///< operations per iteration
    std::uint32_t done = 0;        ///< operations done in this iteration
    Bytes sent = 0;                ///< acknowledged, in total
    Bytes received = 0;            ///< in total
    Nanos last;                    ///< duration of the latest recorded iteration; 0 before the first
  };

  /// `spec` and `io` must outlive the driver. `addresses`: of all ranks, including this one. `payload`: from
  /// make_payload(), equal on all hosts, if payloads are real; otherwise null. Starts to connect at `now`. Throws
  /// InputError for an invalid pattern.
  RankDriver(PacketIo& io, const JobSpec& spec, std::uint32_t rank, std::span<const Address> addresses,
             std::shared_ptr<const Payload> payload, Nanos now);
  /// A worker or a receiver of a job that runs within this process.
  RankDriver(PacketIo& io, const JobSpec& spec, Worker worker, std::shared_ptr<Team> team,
             std::shared_ptr<const Payload> payload, Nanos now);
  static std::shared_ptr<const Payload> make_payload(const JobSpec& spec);

  /// Throws ConnectionLost when a connection ends, RunError when a peer's messages do not match the pattern.
  Nanos poll(Nanos now) override;

  [[nodiscard]] bool connected() const { return open_ == connections_; }
  /// Number of connections to other ranks that a rank with this program has.
  static std::size_t connections_of(const JobSpec& spec, const workload::RankProgram& program);
  /// Number of connections to other ranks once connected.
  [[nodiscard]] std::size_t connections() const { return connections_; }
  /// Starts the first iteration at `at`. Call once, when connected, and poll() afterwards.
  void start(Nanos at);
  [[nodiscard]] bool done() const;
  [[nodiscard]] std::size_t recorded() const;
  [[nodiscard]] Progress progress() const;
  /// Whether the rank sends data.
  [[nodiscard]] bool sends() const;
  /// A rank that is not connected yet, if any.
  [[nodiscard]] std::optional<std::uint32_t> unreached() const;
  [[nodiscard]] RankResult result() const;
  /// See JobDriver.
  [[nodiscard]] std::vector<SeriesConnection> flows() const;
  void read_states(std::span<ConnectionState> states) const;
  /// Mean duration of the recorded iterations; 0 before the first.
  [[nodiscard]] Nanos mean_time() const;
  /// The job's progress as congestion control sees it.
  [[nodiscard]] const cc::Augmentation* augmentation() const { return shard_.job_progress(job_id_); }
  [[nodiscard]] const ShardStats& shard_stats() const { return shard_.stats(); }
  /// Calls `visit` for each connection to another rank.
  void visit_connections(const std::function<void(std::uint32_t peer, const ConnectionStats& stats)>& visit) const;
  /// Number of accepted connections that ended or were closed without proving that they belong to a rank.
  [[nodiscard]] std::uint64_t unknown_peers() const { return unknown_peers_; }

  /// Whether the rank can send before it receives anything, and so is held to slots.
  [[nodiscard]] bool begins() const;
  /// Iterations::lead; only if begins().
  [[nodiscard]] Nanos lead() const;
  /// See Shard::set_plan(); call poll() afterwards. `plan` is for the job's first bytes; if this rank computes longer
  /// before its own first bytes, its slots are later by that time. Returns PlanState::active for a rank that is not
  /// held to slots. `job_lead` is time_to_first_send() of the job, computed if not given.
  PlanState set_plan(const PhasePlan& plan, Nanos now, std::optional<Nanos> job_lead = std::nullopt);
  void clear_plan(Nanos now) { shard_.clear_plan(job_id_, now); }
  [[nodiscard]] GateStats gate() const { return shard_.gate_stats(job_id_); }

 private:
  struct Flow {
    ConnectionId connection = 0;        ///< 0: none yet
    bool open = false;                  ///< the first message has been acknowledged, or received
    Nanos connect_at = Nanos::never();  ///< time of the next attempt, after the peer had no room
    std::vector<std::uint32_t> free;    ///< free entries of slots_
    // The next segment to send in this iteration, and the next segment, of any iteration, to post a receive for.
    std::size_t send = 0;
    Bytes send_offset = 0;
    std::uint64_t sent = 0;  ///< segments
    std::uint64_t receive_iteration = 0;
    std::size_t receive = 0;
    Bytes receive_offset = 0;
    std::uint64_t receives = 0;  ///< segments
  };
  /// An accepted connection from a rank's address that has not sent its first message yet.
  struct PendingConnection {
    ConnectionId connection = 0;
    std::uint32_t channel = 0;
  };
  /// State of the communication with another rank.
  struct Channel {
    std::uint32_t peer = 0;
    std::vector<Flow> flows;
    std::vector<std::uint32_t> sends;  ///< operations, in order
    std::vector<std::uint32_t> receives;
    bool open = false;         ///< all of its connections are open
    std::size_t accepted = 0;  ///< connections from lower ranks, including pending ones
  };
  /// The channel of a connection, and its number among the channel's flows.
  struct Place {
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
  };
  /// A receive that may be posted.
  struct Slot {
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
    std::uint32_t operation = 0;
    std::uint64_t iteration = 0;
    std::uint64_t number = 0;  ///< number of the segment on its connection
    Bytes length = 0;
    std::byte* buffer = nullptr;
  };
  static ShardConfig shard_config(const JobSpec& spec, const workload::RankProgram& program);
  void make_channels(std::span<const Address> addresses, Nanos now);
  void make_slots();
  bool take_completions(Nanos now);
  void on_accepted(ConnectionId connection, Nanos now);
  void on_first_message(const Completion& completion, Nanos now);
  /// Number of accepted connections beyond the channel's flows.
  [[nodiscard]] std::size_t excess(const Channel& channel) const {
    return channel.accepted - std::min(channel.accepted, channel.flows.size());
  }
  void limit_pending(Nanos now);
  /// Removes the connection from its channel.
  void drop_pending(std::vector<PendingConnection>::iterator pending);
  /// Ends the connection; if too many connections are ending, the oldest ones are forgotten.
  void leave(ConnectionId connection, Nanos now);
  /// Connects all flows of a channel.
  void connect(std::uint32_t channel, Nanos now);
  void on_ended(const Channel& channel, Flow& flow, const Completion& completion, Nanos now);
  void connect_again(Nanos now);
  void on_open(Channel& channel, Flow& flow);
  void on_received(const Completion& completion);
  void on_sent(Channel& channel, Flow& flow, const Completion& completion);
  /// `bytes`: sent in the iteration; 0: the iteration is not reported.
  void begin_iteration(Bytes bytes);
  /// The operation begins; from now on the job sends at `rate`, if given.
  void send(std::uint32_t operation, std::optional<Rate> rate);
  void on_recorded(Nanos now);
  void post_sends(Channel& channel, Flow& flow);
  void post_receives(Channel& channel, Flow& flow);
  static std::size_t number_of(const Channel& channel, const Flow& flow) {
    return static_cast<std::size_t>(&flow - channel.flows.data());
  }
  /// The part of the operation's bytes that the connection carries.
  [[nodiscard]] static Bytes share_of(const workload::Operation& operation, const Channel& channel, const Flow& flow);
  [[nodiscard]] std::span<const std::byte> bytes_of(std::uint32_t from, std::size_t flow, std::uint64_t number,
                                                    Bytes length) const;
  [[nodiscard]] std::uint64_t retransmitted_packets() const;
  /// An error message with the job's name; if this is a rank, also with this rank and the peer.
  [[nodiscard]] std::string about(const std::string& what, const char* preposition, std::uint32_t peer) const;
  [[noreturn]] void fail(std::uint32_t peer, const std::string& what) const {
    throw RunError(about(what, "from", peer));
  }
  [[noreturn]] void fail_connection(std::uint32_t peer, std::optional<Status> status = std::nullopt) const;

  const JobSpec& spec_;
  const std::uint32_t rank_;
  const bool receiver_;               ///< the receiver of a worker in this process
  const std::function<void()> wake_;  ///< set for a worker in this process that sends
  const std::shared_ptr<Team> team_;
  std::shared_ptr<const Payload> payload_;
  Shard shard_;
  JobId job_id_ = 0;
  std::array<Completion, 32> completions_;

  std::vector<Channel> channels_;
  std::vector<std::uint32_t> channel_of_;  ///< by operation
  std::unordered_map<ConnectionId, Place> places_;
  std::unordered_map<Address, std::uint32_t, AddressHash> channels_at_;
  std::size_t connections_ = 0;  ///< number when all are connected
  std::size_t open_ = 0;
  ConnectionConfig connection_config_;
  std::vector<Address> addresses_;          ///< by channel
  std::vector<PendingConnection> pending_;  ///< oldest first, like leaving_
  std::vector<ConnectionId> leaving_;       ///< ended by this rank; the peers may not know yet
  std::uint64_t unknown_peers_ = 0;
  Nanos give_up_connecting_;
  Nanos connect_at_ = Nanos::never();  ///< earliest retry of a flow
  std::vector<Slot> slots_;
  std::vector<std::byte> buffers_;

  Nanos waited_before_;  ///< time waited for slots when the iteration began
  std::vector<Nanos> communications_;
  Bytes sent_ = 0;
  Bytes received_ = 0;
  std::uint64_t verified_ = 0;
  std::uint64_t errors_ = 0;
  std::string first_error_;
  std::uint64_t retransmitted_packets_ = 0;  ///< as of the end of the last recorded iteration, like the counters below
  GateStats gate_;
};

/// A job within this process, attached to the ends of its workers.
class JobDriver final : public RunningJob {
 public:
  /// Attaches its ranks, or workers and receivers, and starts to connect. Must outlive the network's last run.
  /// `apart`: the workers of a job without a pattern are ranks, as on hosts.
  JobDriver(JobNetwork& network, const JobSpec& spec, bool apart = false);

  /// Whether all connections are open.
  [[nodiscard]] bool connected() const;
  /// `epoch` is the experiment's time 0; the job starts at `epoch` plus its start time. Call once, when connected.
  void start(Nanos epoch);
  [[nodiscard]] bool done() const override;
  /// The minimum over the ranks.
  [[nodiscard]] std::size_t recorded() const override;
  /// Times are the network's. Call set_plan() and clear_plan() only between runs of the network.
  PlanState set_plan(const PhasePlan& plan) override;
  void clear_plan() override;
  [[nodiscard]] PlanState plan_state() const override;
  [[nodiscard]] Nanos adrift_since() const override;
  [[nodiscard]] JobResult result() const override;
  /// Data packets that arrived with a CE mark, as reported by the receivers.
  [[nodiscard]] std::uint64_t marked_packets() const;
  /// The connections on which the job sends; constant once connected.
  [[nodiscard]] std::vector<SeriesConnection> connections() const;
  /// Fills in the state of each of connections(); leaves the state of ended ones as it is.
  void read_states(std::span<ConnectionState> states) const;
  /// The driver of a rank; of a worker if the job has no pattern.
  [[nodiscard]] const RankDriver& rank(std::uint32_t rank) const { return *ranks_[rank]; }

 private:
  [[nodiscard]] JobNetwork::End end(std::uint32_t rank) const;

  JobNetwork& network_;
  const JobSpec spec_;
  std::vector<std::unique_ptr<RankDriver>> ranks_;
  std::vector<std::unique_ptr<RankDriver>> receivers_;  ///< of the workers
  mutable std::size_t done_ranks_ = 0;                  ///< number of leading ranks known to be done
  Nanos epoch_;
};

}  // namespace mltcp::experiment
