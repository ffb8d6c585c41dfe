// The transport's public face: a shard is one single-threaded instance of the transport over one datapath queue. It
// owns its connections, jobs, timers and pacing, and does everything inside poll(now): receive, acknowledge, detect
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
// Messages: the n-th message sent on a connection lands in the n-th buffer that the peer posted with receive(), as
// with InfiniBand queue pairs. A sender holds a message back until the peer has posted its buffer ("credit"), so no
// byte is ever buffered twice or dropped for want of room. Messages complete in the order in which they finish.
//
// Time limits: a send or receive may have a deadline, a time like that of poll(). If it is there first, the operation
// completes with Status::timed_out, and its memory is the caller's again. If nothing of its message has been sent, or
// has arrived, it then counts as never posted: later operations take its place, and the connection goes on. If its
// message has begun, the connection ends as by abort(), so that it ends at the peer, too: there is no way to take back
// a part.
//
// Time never falls within a shard: where `now` is earlier than one before, the latest counts. A clock that is set back
// stops a shard's timers until it has caught up. From 0 to 73 years.
//
// Ids: whatever takes the id of a connection or job tells when there is none, in its result. Connections end by
// themselves, so that an id may be unknown that was right: its completion of kind `closed` may not have been taken yet.
//
// Shards share nothing. One shard is used by one thread at a time.
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

class ShardCore;

class Shard final : public Pollable {
 public:
  /// `io` outlives the shard. Throws InputError if `config` is out of range, RunError if the system has no random
  /// numbers and `config` no seed.
  Shard(PacketIo& io, const ShardConfig& config);
  ~Shard() override;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// The ids of the first `config.max_connections` connections of a shard, in the order in which they are made, none
  /// having ended. Networks that spread flows over paths tell them apart by these (wire::peek_connection). Throws
  /// InputError without a seed: then nobody knows.
  static std::vector<ConnectionId> first_connections(const ShardConfig& config);

  /// Accepts connections from now on, each with `config`. Throws InputError if `config` is out of range, or wants what
  /// the datapath doesn't have (PacketIo::Limits), itself or by its congestion control (cc::Capabilities).
  void listen(const ConnectionConfig& config);
  /// Begins to connect; completes with Completion::connected or closed. Sends and receives may be posted at once.
  /// Throws InputError like listen(), RunError if max_connections are open.
  ConnectionId connect(const Address& remote, const ConnectionConfig& config, Nanos now);

  /// Sends `message` (0 bytes to 4 GiB), which the caller keeps unchanged until its completion. `sent` come in the
  /// order of the messages, unless one times out.
  /// PostResult::closed for an unknown connection, as of all that post.
  PostResult send(ConnectionId id, std::span<const std::byte> message, std::uint64_t tag,
                  Nanos deadline = Nanos::never());
  /// Sends `length` bytes that do not exist; only over a datapath with virtual payloads.
  PostResult send_virtual(ConnectionId id, Bytes length, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// A hint, and unknown ids do no harm: the program is about to send on these connections. Worth its cost where there
  /// are many connections, more than the cache holds, and several ids: what sends would wait for one by one is fetched
  /// for all together.
  void prefetch(std::span<const ConnectionId> ids) const;
  /// Provides the buffer for the next message without one. The shard writes to it until its completion. An end that
  /// only receives learns that its peer has died without a word by ConnectionConfig::keep_alive or idle_limit alone.
  PostResult receive(ConnectionId id, std::span<std::byte> buffer, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// The same for a message whose bytes nobody wants; they are counted and dropped.
  PostResult receive_virtual(ConnectionId id, Bytes capacity, std::uint64_t tag, Nanos deadline = Nanos::never());

  /// Ends the send that was posted with `tag`, as if its deadline were there, if nothing of its message has been sent.
  /// False if bytes of it have been, or there is none. It looks through those that wait: they are no more than max_sends.
  bool cancel_send(ConnectionId id, std::uint64_t tag);
  /// Likewise, if nothing of the receive's message has come, nor of a later one.
  bool cancel_receive(ConnectionId id, std::uint64_t tag);

  /// Closes once all posted sends are done. Receives that are outstanding then complete with Status::closed, here
  /// and at the peer, and so do sends of the peer; when both ends close, also sends for which no buffer was posted. A
  /// connection that is not open yet ends at once. False if the connection is unknown: it has ended.
  bool close(ConnectionId id);
  /// Ends the connection at once and tells the peer, if it can. Operations complete with Status::aborted. False if the
  /// connection is unknown: it has ended.
  bool abort(ConnectionId id, Nanos now);

  /// Throws RunError if max_jobs exist.
  JobId add_job(const JobConfig& config);
  /// The job's connections go on without a job. False if the job is unknown.
  bool remove_job(JobId id);
  /// The connection carries data of `job` from now on. False, and nothing is changed, if either is unknown: then what
  /// it sends is of no job, and MLTCP is off for it.
  [[nodiscard]] bool attach(ConnectionId id, JobId job);
  /// The job's next iteration begins now and will send `bytes` (of the application, all connections of the job on
  /// this shard together). From then on nothing is learned any more, unless `bytes` is 0: not known.
  /// False if the job is unknown.
  [[nodiscard]] bool begin_iteration(JobId job, Bytes bytes);
  /// The most that the job's connections send together, on the wire; 0 = unlimited. False if the job is unknown.
  [[nodiscard]] bool set_job_rate(JobId job, Rate rate);
  /// From now on the first bytes of each of the job's iterations wait for a slot of `plan` (phase_gate.h). Only new
  /// data waits: never acknowledgements, control packets or what is sent again, nor what was posted before the
  /// iteration. An iteration that has begun to send goes on. Returns PlanState::active, or why the job has no plan now.
  [[nodiscard]] PlanState set_plan(JobId job, const PhasePlan& plan, Nanos now);
  /// The job sends when it is ready, from now on; what is held goes with the next poll. False if it had no
  /// plan, or is unknown.
  bool clear_plan(JobId job, Nanos now);
  /// All zero, with PlanState::unknown_job, for an unknown job.
  [[nodiscard]] GateStats gate_stats(JobId job) const;
  /// The job's progress and gain, until it is removed; null for an unknown job.
  [[nodiscard]] const cc::Augmentation* job_progress(JobId job) const;

  /// Does all that is due at `at`. Returns when to call again at the latest, whether for the transport or for the
  /// datapath (PacketIo::deadline).
  Nanos poll(Nanos at) override;
  /// Moves completions to `out`, oldest first, and returns how many.
  std::size_t take_completions(std::span<Completion> out);

  /// Until its completion of kind `closed`.
  [[nodiscard]] bool exists(ConnectionId id) const;
  /// Nothing for an unknown connection.
  [[nodiscard]] std::optional<ConnectionStats> stats(ConnectionId id) const;
  /// The peer's address, until the connection ends; null for an unknown connection.
  [[nodiscard]] const Address* remote(ConnectionId id) const;
  [[nodiscard]] const ShardStats& stats() const;

 private:
  std::unique_ptr<ShardCore> core_;
};

}  // namespace mltcp
