// The transport's public interface. A shard is one single-threaded instance of the transport on one datapath queue. It
// owns its connections, jobs, timers and pacing, and does all its work inside poll(now): receive, acknowledge, detect
// losses, and send. It never blocks, starts no thread and reads no clock.
//
//   Shard shard(io, ShardConfig{});
//   ConnectionId c = shard.connect(peer, ConnectionConfig{}, now);
//   JobId job = shard.add_job({.number = 7, .augmentation = cc::Augmentation::mltcp({})});
//   if (!shard.attach(c, job)) ...                   // false: no such connection or job
//   if (!shard.begin_iteration(job, gradient.size())) ...
//   shard.send(c, gradient, tag);                    // do not change `gradient` until its completion
//   for (;;) { shard.poll(now()); n = shard.take_completions(out); ... }
//
// Messages: the n-th message sent on a connection is written to the n-th buffer that the peer posted with receive(), as
// with InfiniBand queue pairs. A sender holds back a message until the peer has granted credit for the message, that
// is, has posted the buffer of the message. So no data is buffered twice, or dropped for lack of a buffer. Messages may
// complete in any order.
//
// Deadlines: a send or receive may have a deadline, on the clock of poll(). When the deadline passes, the operation
// completes with Status::timed_out, and the caller may use its memory again. If no byte of its message has been sent or
// received yet, the operation counts as never posted: later operations take its place, and the connection continues.
// Otherwise the connection is aborted at both ends, because part of a message cannot be withdrawn.
//
// Time is monotonic within a shard: if `now` is less than in an earlier call, the latest value is used instead. A clock
// that is set back therefore stops the shard's timers until it has caught up. `now` ranges from 0 to 73 years.
//
// Ids: every function that takes a connection or job id returns a value that reports an unknown id. An id may become
// unknown at any poll(), because connections also end by themselves (Completion::Kind::closed).
//
// Shards share no state. One thread at a time may use a shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/pollable.h"
#include "mltcp/transport/types.h"

namespace mltcp {

class JobClaims;
namespace transport {
class ShardCore;
}

class Shard final : public Pollable {
 public:
  /// `io` must outlive the shard. Throws InputError if `config` is out of range; RunError if `config` has no seed and
  /// the system has no random numbers.
  Shard(PacketIo& io, const ShardConfig& config);
  ~Shard() override;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// Returns the ids that the first `config.max_connections` connections of a shard will get, in order, if no
  /// connection ends before the last of them begins. A simulated network that hashes flows onto paths by connection id
  /// needs these ids (wire::peek_connection). Throws InputError if `config` has no seed, because ids are then
  /// unpredictable.
  static std::vector<ConnectionId> first_connections(const ShardConfig& config);

  /// Accepts connections from now on, each with settings `config`. Throws InputError if `config` is out of range, or if
  /// `config` or its congestion control needs a feature that the datapath lacks (PacketIo::Limits, cc::Capabilities).
  void listen(const ConnectionConfig& config);
  /// Starts to connect to `remote`. The completion `connected` or `closed` reports the result. Sends and receives may
  /// be posted at once. Throws InputError like listen(). Throws RunError if max_connections connections are open or
  /// have only just ended.
  ConnectionId connect(const Address& remote, const ConnectionConfig& config, Nanos now);

  /// Sends `message` (0 bytes to 4 GiB), which the caller owns and must not change until its completion. Sends complete
  /// in order, except those that time out, and those that have no buffer when both ends close. Returns
  /// PostResult::closed for an unknown connection, like all functions that post. `uncharged` bytes of the message (e.g.
  /// an application header) are not counted towards the job's iteration.
  PostResult send(ConnectionId id, std::span<const std::byte> message, std::uint64_t tag,
                  Nanos deadline = Nanos::never(), std::uint8_t uncharged = 0);
  /// Sends a virtual message of `length` bytes without contents; only on a datapath with virtual payloads.
  PostResult send_virtual(ConnectionId id, Bytes length, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// Hint that the program is about to send on these connections: prefetches their state into the CPU cache. This helps
  /// if `ids` contains several connections and the shard has more connections than fit in the cache. Ignores unknown
  /// ids.
  void prefetch(std::span<const ConnectionId> ids) const;
  /// Posts the buffer for the next message without a buffer. The shard writes to it until the receive completes. An end
  /// that only receives detects a dead peer only if ConnectionConfig::keep_alive or idle_limit is set.
  PostResult receive(ConnectionId id, std::span<std::byte> buffer, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// Posts a receive of up to `capacity` bytes whose contents are counted and discarded.
  PostResult receive_virtual(ConnectionId id, Bytes capacity, std::uint64_t tag, Nanos deadline = Nanos::never());

  /// Ends the send that was posted with `tag`, as if its deadline had passed. Returns false, and does not end it, if a
  /// byte of the message has been sent. Returns false also if no waiting send has this tag. Searches the waiting sends,
  /// at most max_sends.
  bool cancel_send(ConnectionId id, std::uint64_t tag);
  /// Ends the receive that was posted with `tag`, as if its deadline had passed. Returns false, and does not end it, if
  /// a byte of its message or of a later message has arrived. Returns false also if no receive has this tag.
  bool cancel_receive(ConnectionId id, std::uint64_t tag);
  /// Releases the buffer of the receive that was posted with `tag`, so that the program may use the buffer at once. The
  /// receive stays in the queue, discards its message, and completes with `new_tag`. Returns false, and does not
  /// release the buffer, if a byte of the message has arrived. Returns false also if no receive has this tag.
  bool discard_receive(ConnectionId id, std::uint64_t tag, std::uint64_t new_tag);

  /// Closes the connection once all posted sends are complete. Outstanding receives at both ends and the peer's sends
  /// then complete with Status::closed. If both ends close, sends for which the peer has posted no buffer also complete
  /// with Status::closed. A connection that is not open yet ends at once. The CLOSE packet reports which messages this
  /// end had received when it sent CLOSE: the peer's sends up to the first incomplete message complete with Status::ok,
  /// and later data is not accepted. Returns false if the connection is unknown, that is, has ended.
  bool close(ConnectionId id);
  /// Ends the connection at once and notifies the peer if possible. Outstanding operations complete with
  /// Status::aborted. If the connection has already ended and occupies its slot only to notify the peer, frees the slot
  /// at once. Returns false if the connection is unknown and occupies no slot.
  bool abort(ConnectionId id, Nanos now);

  /// Adds a job. Throws RunError if max_jobs exist already, InputError if its parameters are invalid.
  JobId add_job(const JobConfig& config);
  /// Removes a job. Its connections stay open, without a job. Returns false if the job is unknown.
  bool remove_job(JobId id);
  /// From now on the connection sends data of `job`. If either id is unknown, returns false and changes nothing. A
  /// connection without a job sends without MLTCP.
  [[nodiscard]] bool attach(ConnectionId id, JobId job);
  /// Begins the job's next iteration, in which the job will send `bytes` of application data over all its connections
  /// on this shard. `bytes` is 0 if the size is unknown. Ends the learning of iterations (JobConfig::learn_iterations)
  /// unless `bytes` is 0. Returns false if the job is unknown.
  [[nodiscard]] bool begin_iteration(JobId job, Bytes bytes);
  /// States that the program stops calling begin_iteration(), for good or for some time. Iterations of a job with
  /// JobConfig::learn_iterations are learned from the traffic again. Other jobs have no iterations until the next
  /// begin_iteration(). A phase plan stays set, but holds back no data until then. Returns false if the job is unknown.
  [[nodiscard]] bool learn_iterations(JobId job);
  /// Sets the maximum rate of the job's connections together, in bits on the wire; 0 = unlimited. Returns false if the
  /// job is unknown.
  [[nodiscard]] bool set_job_rate(JobId job, Rate rate);
  /// From now on the first bytes of each of the job's iterations wait for a slot of `plan` (phase_gate.h). Only new
  /// data waits. Acknowledgements, control packets, retransmissions, messages posted before the iteration, and an
  /// iteration that has begun to send do not wait. Returns PlanState::active, or the reason why the job has no plan.
  [[nodiscard]] PlanState set_plan(JobId job, const PhasePlan& plan, Nanos now);
  /// Removes the job's plan. The next poll() sends the data that was held. Returns false if the job had no plan or is
  /// unknown.
  bool clear_plan(JobId job, Nanos now);
  /// Returns the statistics of the job's phase gate; all zero, with PlanState::unknown_job, if the job is unknown.
  [[nodiscard]] GateStats gate_stats(JobId job) const;
  /// Returns the job's progress within its iteration, valid until the job is removed. Null if the job is unknown.
  [[nodiscard]] const cc::Augmentation* job_progress(JobId job) const;
  /// Returns the gain of the job's flows: that of its augmentation, but 1 while the job's bursts are short, and at
  /// least `overtaking_gain` in a burst that overtakes (cc/turns.h). 1 if the job is unknown.
  [[nodiscard]] double job_gain(JobId job) const;

  /// Does all work that is due at `at`. Returns the latest time for the next call, which includes the datapath's
  /// deadline (PacketIo::deadline).
  Nanos poll(Nanos at) override;
  /// Moves completions to `out`, oldest first, and returns their number.
  std::size_t take_completions(std::span<Completion> out);

  /// Returns whether the connection has not ended. After its end, the completion `closed` may be delayed until the
  /// datapath has read the data that the connection sent (ShardStats::ends_held).
  [[nodiscard]] bool exists(ConnectionId id) const;
  /// Returns the connection's statistics. Empty if the connection is unknown, that is, has ended and no longer occupies
  /// a slot to notify its peer.
  [[nodiscard]] std::optional<ConnectionStats> stats(ConnectionId id) const;
  /// Returns the peer's address, valid until the next call of any other function. Null if the connection is unknown, as
  /// for stats().
  [[nodiscard]] const Address* remote(ConnectionId id) const;
  [[nodiscard]] const ShardStats& stats() const;
  /// Returns sums of what received packets claim about their senders' jobs (transport/job_claims.h). The object exists
  /// as long as the shard. Null without ShardConfig::count_job_claims. Packets with a wrong connection tag or a wrong
  /// key are not counted.
  [[nodiscard]] const JobClaims* job_claims() const;

 private:
  std::unique_ptr<transport::ShardCore> core_;
};

}  // namespace mltcp
