// The rank driver: lives through the iterations of one rank of a job with a pattern of communication (rank_program.h),
// over any datapath, as iteration_engine.h says. A send is done when its bytes have been delivered, a receive when they
// have arrived.
//
// A job without a pattern has ranks too (phase_program.h), for datapaths whose hosts are separate processes. As with
// the job driver, all of them then compute equally long, and a phase is over for all of them together.
//
// Two ranks that exchange data share connections, `flows` of them, or one if all they tell each other is where they are
// (a barrier). The lower rank opens them; its first message on
// each tells by its length which one it is: the proof that it is the rank's. Whatever else connects is a stranger, who
// is counted and turned away, has little room in the table of connections, and can't end the job; a rank that finds the
// table full, or that was taken for a stranger, tries again. Messages are cut into segments of at most
// kSegmentBytes, which take the connections in turns. Receives are posted ahead, up to the end of the next
// iteration: a rank that is ahead of another waits for it there. Where payloads are real, what a segment holds follows
// from seed, sender, tag, iteration and offset, and every byte that arrives is compared with that.
//
// After set-up nothing is allocated but for error messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/experiment/engine/iteration_engine.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/experiment/engine/payload.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/transport/shard.h"
#include "mltcp/workload/rank_program.h"

namespace mltcp::experiment {

/// What one rank did in its recorded iterations, each vector by iteration.
struct RankResult {
  std::vector<Nanos> starts;    ///< in the datapath's time
  std::vector<Nanos> times;     ///< how long each took
  std::vector<Nanos> computes;  ///< how long it computed in each, where that varies; empty otherwise
  /// From when it had computed to the end of each, without waits for its slot; empty where the pattern isn't one
  /// collective (workload::bus_factor()).
  std::vector<Nanos> communications;
  Bytes bytes_per_iteration = 0;  ///< sent
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t verified_messages = 0;  ///< segments
  std::uint64_t checksum_errors = 0;
  std::string first_error;  ///< which segment was damaged first; empty without
  GateStats gate;
};

/// The job's result from those of its ranks: an iteration starts with the first rank and takes as long as with the
/// slowest one. Times are counted from `epoch`. Only what all ranks have recorded counts. At least one rank, in order.
JobResult merge_ranks(const workload::Job& job, std::span<const RankResult> ranks, Nanos epoch);

/// How long the rank computes before its first bytes; none if they wait for what others send. Ranks of the first kind
/// begin an iteration's communication, and are held to slots; the others follow from them.
std::optional<Nanos> time_to_first_send(const workload::RankProgram& program);
/// The least of a job's ranks, or of its phases.
Nanos time_to_first_send(const workload::Job& job);

/// A connection to another rank has ended before its job did.
struct ConnectionLost : RunError {
  ConnectionLost(const std::string& what, std::uint32_t its_job, std::uint32_t its_peer, bool nothing_came)
      : RunError(what), job(its_job), peer(its_peer), unreachable(nothing_came) {}
  std::uint32_t job;   ///< JobSpec::number
  std::uint32_t peer;  ///< rank at the other end
  bool unreachable;    ///< nothing came from there any more
};

class RankDriver final : public Pollable, private IterationEngine::Carrier {
 public:
  struct Progress {
    std::uint64_t iteration = 0;   ///< that it is in, from 0
    std::uint32_t operations = 0;  ///< of an iteration
    std::uint32_t done = 0;        ///< of them, in this iteration
    Bytes sent = 0;                ///< in all; delivered
    Bytes received = 0;            ///< in all
    Nanos last;                    ///< how long the latest recorded iteration took; 0 before
  };

  /// `spec` outlives the driver, and `io` too; `addresses` are those of all ranks, each its own. `payload` of
  /// make_payload() where payloads are real, the same on all hosts, otherwise null. Begins to connect at `now`. Throws
  /// InputError for a pattern that makes no sense.
  RankDriver(PacketIo& io, const JobSpec& spec, std::uint32_t rank, std::span<const Address> addresses,
             std::shared_ptr<const Payload> payload, Nanos now);
  static std::shared_ptr<const Payload> make_payload(const JobSpec& spec);

  /// Throws ConnectionLost when a connection ends, RunError when a peer sends other messages than the pattern says.
  Nanos poll(Nanos now) override;

  [[nodiscard]] bool connected() const { return open_ == connections_; }
  /// To other ranks, when it is connected.
  [[nodiscard]] std::size_t connections() const { return connections_; }
  /// Its first iteration begins at `at`. Once, when connected; it wants to be polled then.
  void start(Nanos at);
  [[nodiscard]] bool done() const { return engine_.done(); }
  [[nodiscard]] std::size_t recorded() const { return engine_.recorded(); }
  [[nodiscard]] Progress progress() const;
  /// A rank that is not connected yet, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> unreached() const;
  [[nodiscard]] RankResult result() const;
  /// Connections that were accepted, and ended or were dropped before they proved to be a rank's.
  [[nodiscard]] std::uint64_t strangers() const { return strangers_; }

  /// It sends before it has received anything: it takes slots.
  [[nodiscard]] bool begins() const { return lead_.has_value(); }
  /// See Shard::set_plan(); like the next, it wants to be polled then. `plan` is of the job's first bytes, and this
  /// rank's slots as much later as it computes longer before its own. Nothing but PlanState::active for a rank that
  /// doesn't begin. `job_lead` is time_to_first_send() of the job, which is found out unless it is given.
  PlanState set_plan(const PhasePlan& plan, Nanos now, std::optional<Nanos> job_lead = std::nullopt);
  void clear_plan(Nanos now) { shard_.clear_plan(job_id_, now); }
  [[nodiscard]] GateStats gate() const { return shard_.gate_stats(job_id_); }

 private:
  struct Flow {
    ConnectionId connection = 0;        ///< 0: not there yet
    bool open = false;                  ///< the first message has come, or has arrived
    Nanos connect_at = Nanos::never();  ///< again, as the peer had no room
    std::vector<std::uint32_t> free;
  };
  /// An accepted connection from the address of a rank, which has said nothing yet.
  struct Guest {
    ConnectionId connection = 0;
    std::uint32_t channel = 0;
  };
  /// What goes between this rank and another.
  struct Channel {
    std::uint32_t peer = 0;
    std::vector<Flow> flows;
    std::vector<std::uint32_t> sends;  ///< operations, in order, like the next
    std::vector<std::uint32_t> receives;
    bool open = false;         ///< all connections are
    std::size_t accepted = 0;  ///< connections, with those that are guests; of ranks below
    // The next segment to send, in this iteration, and the next one to post a receive for, in any.
    std::size_t send = 0;
    Bytes send_offset = 0;
    std::size_t send_flow = 0;
    std::uint64_t receive_iteration = 0;
    std::size_t receive = 0;
    Bytes receive_offset = 0;
    std::size_t receive_flow = 0;
  };
  /// A receive that may be posted.
  struct Slot {
    std::uint32_t channel = 0;
    std::uint32_t flow = 0;
    std::uint32_t operation = 0;
    std::uint64_t iteration = 0;
    Bytes offset = 0;
    Bytes length = 0;
    std::byte* buffer = nullptr;
  };
  static ShardConfig shard_config(const JobSpec& spec, const workload::RankProgram& program);
  void make_channels(std::span<const Address> addresses, Nanos now);
  void make_slots();
  bool take_completions(Nanos now);
  void on_accepted(ConnectionId connection, Nanos now);
  void on_guest(const Completion& completion, Nanos now);
  /// More than its channel has flows.
  [[nodiscard]] std::size_t excess(const Channel& channel) const {
    return channel.accepted - std::min(channel.accepted, channel.flows.size());
  }
  void limit_guests(Nanos now);
  /// Gives up its place in the channel.
  void drop_guest(std::vector<Guest>::iterator guest);
  /// The connection ends; those that take longest are forgotten before that, where there are many.
  void leave(ConnectionId connection, Nanos now);
  void on_ended(Channel& channel, const Completion& completion, Nanos now);
  void connect_again(Nanos now);
  void on_open(Channel& channel, Flow& flow);
  /// Of the flow that the connection is.
  static std::size_t number_of(const Channel& channel, ConnectionId connection);
  void on_received(const Completion& completion);
  void on_sent(const Completion& completion);
  bool advance(Nanos now);
  void begin_iteration(Nanos now) override;
  void begin(std::uint32_t operation, Nanos now) override;
  void on_recorded(Nanos now);
  void post_sends(Channel& channel);
  void post_receives(Channel& channel);
  [[nodiscard]] std::span<const std::byte> bytes_of(std::uint32_t from, std::uint64_t tag, std::uint64_t iteration,
                                                    Bytes offset, Bytes length) const;
  [[nodiscard]] std::uint64_t retransmitted_packets() const;
  [[nodiscard]] std::string about(std::uint32_t peer, const std::string& what) const;
  [[noreturn]] void fail(std::uint32_t peer, const std::string& what) const { throw RunError(about(peer, what)); }
  [[noreturn]] void fail_connection(std::uint32_t peer, std::optional<Status> status = std::nullopt) const;

  const JobSpec& spec_;
  const std::uint32_t rank_;
  const workload::RankProgram program_;
  const workload::RankProgram::Load load_;
  const workload::Job job_;          ///< what its compute times are drawn for
  const std::optional<Nanos> lead_;  ///< time_to_first_send()
  const bool own_rates_;             ///< some sends have a rate of their own
  const bool collective_;            ///< all that it sends is one collective's, after all that it computes
  IterationEngine engine_;
  std::shared_ptr<const Payload> payload_;
  Shard shard_;
  JobId job_id_ = 0;
  std::array<Completion, 32> completions_;

  std::vector<Channel> channels_;
  std::vector<std::uint32_t> channel_of_;  ///< by operation that sends or receives
  std::unordered_map<ConnectionId, std::uint32_t> channels_of_;
  std::unordered_map<Address, std::uint32_t, AddressHash> channels_at_;
  std::size_t connections_ = 0;  ///< that there will be
  std::size_t open_ = 0;
  ConnectionConfig connection_config_;
  std::vector<Address> addresses_;     ///< by channel
  std::vector<Guest> guests_;          ///< the oldest first, like the next
  std::vector<ConnectionId> leaving_;  ///< ended here; their peers may not know yet
  std::uint64_t strangers_ = 0;
  Nanos give_up_connecting_;
  Nanos connect_at_ = Nanos::never();  ///< the first flow that connects again
  std::vector<Slot> slots_;
  std::vector<std::byte> buffers_;

  std::array<std::vector<Bytes>, 2> undelivered_;  ///< by iteration modulo 2 and operation: it's not done before
  Nanos waited_before_;                            ///< for slots, when the iteration began
  std::vector<Nanos> communications_;
  Bytes sent_ = 0;
  Bytes received_ = 0;
  std::uint64_t verified_ = 0;
  std::uint64_t errors_ = 0;
  std::string first_error_;
  std::uint64_t retransmitted_packets_ = 0;  ///< when the last recorded iteration ended, like the next
  GateStats gate_;
};

/// All ranks of a job, on the senders' ends of its workers.
class RankJob final : public DrivenJob {
 public:
  /// Attaches its ranks and begins to connect. Lives as long as the network is run.
  RankJob(JobNetwork& network, const JobSpec& spec);

  [[nodiscard]] bool connected() const override;
  void start(Nanos epoch) override;
  [[nodiscard]] bool done() const override;
  /// By the rank that has least.
  [[nodiscard]] std::size_t recorded() const override;
  PlanState set_plan(const PhasePlan& plan) override;
  void clear_plan() override;
  [[nodiscard]] PlanState plan_state() const override;
  [[nodiscard]] Nanos adrift_since() const override;
  [[nodiscard]] JobResult result() const override;
  [[nodiscard]] const RankDriver& rank(std::uint32_t rank) const { return *ranks_[rank]; }

 private:
  [[nodiscard]] JobNetwork::End end(std::uint32_t rank) const { return {JobNetwork::Side::sender, spec_.number, rank}; }

  JobNetwork& network_;
  const JobSpec spec_;
  std::vector<std::unique_ptr<RankDriver>> ranks_;
  std::optional<Nanos> lead_;  ///< time_to_first_send() of the job, once it is wanted
  Nanos epoch_;
};

}  // namespace mltcp::experiment
