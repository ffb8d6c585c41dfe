// The transport's public interface. A shard is one single-threaded instance of the transport on one datapath queue. It
// owns its connections, jobs, timers and pacing, and does all its work inside poll(now): receive, acknowledge, detect
// losses, send. It never blocks, starts no thread and reads no clock.
//
//   Shard shard(io, ShardConfig{});
//   ConnectionId c = shard.connect(peer, ConnectionConfig{}, now);
//   JobId job = shard.add_job({.number = 7, .augmentation = cc::Augmentation::mltcp({})});
//   if (!shard.attach(c, job)) ...                   // false: no such connection or job
//   if (!shard.begin_iteration(job, gradient.size())) ...
//   shard.send(c, gradient, tag);                    // `gradient` stays untouched until its completion
//   for (;;) { shard.poll(now()); n = shard.take_completions(out); ... }
//
// Messages: the n-th message sent on a connection is written to the n-th buffer that the peer posted with receive(), as
// with InfiniBand queue pairs. A sender holds a message back until the peer has granted credit for it, that is, has
// posted its buffer; so no data is buffered twice or dropped for lack of a buffer. Messages may complete in any order.
//
// Deadlines: a send or receive may have a deadline, on the clock of poll(). When it passes, the operation completes
// with Status::timed_out and its memory is the caller's again. If no byte of its message has been sent or received yet,
// the operation counts as never posted: later operations take its place and the connection goes on. Otherwise the
// connection is aborted, at the peer too, since part of a message cannot be taken back.
//
// Time is monotonic within a shard: if `now` is less than in an earlier call, the latest value is used instead, so a
// clock that is set back stops the shard's timers until it has caught up. Range: 0 to 73 years.
//
// Ids: every function that takes a connection or job id reports an unknown one by its result. An id may become unknown
// at any poll(), as connections also end by themselves (Completion::Kind::closed).
//
// Shards share nothing. A shard may be used by one thread at a time.
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

  /// The ids that the first `config.max_connections` connections of a shard will get, in order, as long as none has
  /// ended. For networks that hash flows onto paths by connection id (wire::peek_connection). Throws InputError if
  /// `config` has no seed, since ids are then unpredictable.
  static std::vector<ConnectionId> first_connections(const ShardConfig& config);

  /// Accepts connections from now on, each with settings `config`. Throws InputError if `config` is out of range, or if
  /// it or its congestion control needs what the datapath lacks (PacketIo::Limits, cc::Capabilities).
  void listen(const ConnectionConfig& config);
  /// Starts to connect to `remote`; the result follows as a completion, `connected` or `closed`. Sends and receives may
  /// be posted at once. Throws InputError like listen(); RunError if max_connections are open, or have ended just now.
  ConnectionId connect(const Address& remote, const ConnectionConfig& config, Nanos now);

  /// Sends `message` (0 bytes to 4 GiB), which the caller owns and must not change until its completion. Sends complete
  /// in order, except those that time out, and those that have no buffer as both ends close. Returns PostResult::closed
  /// for an unknown connection, like all functions that post. So many of its bytes, as `uncharged` says, don't count as
  /// its job's: a header of the program's.
  PostResult send(ConnectionId id, std::span<const std::byte> message, std::uint64_t tag,
                  Nanos deadline = Nanos::never(), std::uint8_t uncharged = 0);
  /// Sends a virtual message of `length` bytes without contents; only on a datapath with virtual payloads.
  PostResult send_virtual(ConnectionId id, Bytes length, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// Hint that the program is about to send on these connections: prefetches their state into the CPU cache, which pays
  /// off if there are more connections than the cache holds and `ids` has several. Unknown ids are ignored.
  void prefetch(std::span<const ConnectionId> ids) const;
  /// Posts the buffer for the next message that has none. The shard writes to it until its completion. An end that only
  /// receives notices a dead peer only if ConnectionConfig::keep_alive or idle_limit is set.
  PostResult receive(ConnectionId id, std::span<std::byte> buffer, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// Posts a receive of up to `capacity` bytes whose contents are counted and discarded.
  PostResult receive_virtual(ConnectionId id, Bytes capacity, std::uint64_t tag, Nanos deadline = Nanos::never());

  /// Ends the send that was posted with `tag`, as if its deadline were there, if nothing of its message has been sent.
  /// False if bytes of it have been, or there is none. It looks through those that wait: they are no more than
  /// max_sends.
  bool cancel_send(ConnectionId id, std::uint64_t tag);
  /// Likewise, if nothing of the receive's message has come, nor of a later one.
  bool cancel_receive(ConnectionId id, std::uint64_t tag);
  /// Gives the buffer of the receive that was posted with `tag` back to the program now, if nothing of its message has
  /// come. The receive keeps its place among the others, discards its message, and completes with `new_tag`. False if
  /// something has come, or there is none.
  bool discard_receive(ConnectionId id, std::uint64_t tag, std::uint64_t new_tag);

  /// Closes the connection once all posted sends are complete. Then outstanding receives at both ends and the peer's
  /// sends complete with Status::closed; if both ends close, so do sends for which the peer has posted no buffer. A
  /// connection that is not open yet ends at once. What this end had in its buffers when it sent its CLOSE the peer is
  /// told with it: those sends of the peer's complete with Status::ok, in order up to the first message that is not
  /// whole, and nothing that comes later is taken. False if the connection is unknown, that is, has ended.
  bool close(ConnectionId id);
  /// Ends the connection at once and tells the peer if possible. Outstanding operations complete with Status::aborted.
  /// One that has ended by itself, or has told its peer so, gives its place up at once. False if it has none any more.
  bool abort(ConnectionId id, Nanos now);

  /// Throws RunError if max_jobs exist already.
  JobId add_job(const JobConfig& config);
  /// Its connections stay open, without a job. False if the job is unknown.
  bool remove_job(JobId id);
  /// From now on the connection sends data of `job`. If either id is unknown, returns false and changes nothing: the
  /// connection then sends without a job, that is, without MLTCP.
  [[nodiscard]] bool attach(ConnectionId id, JobId job);
  /// The job's next iteration begins now and will send `bytes` of application data over all its connections on this
  /// shard. Ends the learning of iterations (JobConfig::learn_iterations) unless `bytes` is 0, which means unknown.
  /// False if the job is unknown.
  [[nodiscard]] bool begin_iteration(JobId job, Bytes bytes);
  /// begin_iteration() is not called any more, or not for now: iterations of a job with JobConfig::learn_iterations are
  /// found in the traffic again. Other jobs have none until the next begin_iteration(). A plan stays, and holds nothing
  /// until then. False: no such job.
  [[nodiscard]] bool learn_iterations(JobId job);
  /// Sets the maximum rate of all the job's connections together, in bits on the wire; 0 = unlimited. False if the job
  /// is unknown.
  [[nodiscard]] bool set_job_rate(JobId job, Rate rate);
  /// From now on the first bytes of each of the job's iterations wait for a slot of `plan` (phase_gate.h). Only new
  /// data waits; acknowledgements, control packets, retransmissions and messages posted before the iteration do not,
  /// nor does an iteration that has begun to send. Returns PlanState::active, or why the job has no plan now.
  [[nodiscard]] PlanState set_plan(JobId job, const PhasePlan& plan, Nanos now);
  /// Removes the job's plan; data that was held is sent by the next poll(). False if it had no plan or is unknown.
  bool clear_plan(JobId job, Nanos now);
  /// All zero, with PlanState::unknown_job, if the job is unknown.
  [[nodiscard]] GateStats gate_stats(JobId job) const;
  /// The job's progress within its iteration and its gain; valid until the job is removed. Null if the job is unknown.
  [[nodiscard]] const cc::Augmentation* job_progress(JobId job) const;

  /// Does all work that is due at `at`. Returns the latest time for the next call, for both the transport and the
  /// datapath (PacketIo::deadline).
  Nanos poll(Nanos at) override;
  /// Moves completions to `out`, oldest first, and returns their number.
  std::size_t take_completions(std::span<Completion> out);

  /// Whether the connection has not ended. Its completion of kind `closed` may come later than that: when the datapath
  /// has read what it sent (ShardStats::ends_held).
  [[nodiscard]] bool exists(ConnectionId id) const;
  /// Empty if the connection is unknown: once it has ended, and no longer tells its peer so.
  [[nodiscard]] std::optional<ConnectionStats> stats(ConnectionId id) const;
  /// The peer's address, valid until the next call of any other function; null if the connection is unknown, as for
  /// stats().
  [[nodiscard]] const Address* remote(ConnectionId id) const;
  [[nodiscard]] const ShardStats& stats() const;
  /// What packets that were received have claimed of their senders' jobs (transport/job_claims.h), valid as long as the
  /// shard; null without ShardConfig::count_job_claims. Packets count once their connection's tag or key has vouched
  /// for them.
  [[nodiscard]] const JobClaims* job_claims() const;

 private:
  std::unique_ptr<transport::ShardCore> core_;
};

}  // namespace mltcp
