// The one door through which programs use the transport: training runtimes, tools, other languages. An endpoint owns a
// datapath and one or more shards on it, drives them with threads of its own or with the program's, and is safe to call
// from any thread.
//
//   Endpoint endpoint({.datapath = {.device = "udp:"}, .address = Address::parse("10.0.0.1")});
//   publish(endpoint.address().bytes());                             // as the program likes
//   ConnectionHandle peer = 0;
//   endpoint.connect(blob_of_peer, {.kind = ConnectionKind::tagged}, peer);
//   OperationHandle operation = 0;
//   endpoint.send_tagged(peer, gradient, 7, {}, operation);          // `gradient` is kept until it has ended
//   Completion end;
//   endpoint.wait(operation, end, Nanos::from_seconds(10));
//
// Set-up (the constructor, make_queue()) throws InputError or RunError, one line "cause; cure". Everything else is
// noexcept and returns a Code.
//
// Threads. All functions may be called from any thread at any time, but for the destructor, which is called once nobody
// else calls, except from a callback. An operation is posted through a bounded lock-free queue to the shard that its
// connection is on, or in place where the calling thread drives that shard or nobody does. Operations that one thread
// posts on a connection keep their order. Nothing on these ways allocates, locks or writes a log.
//
// Memory. A message's bytes and a buffer are the program's again when their operation has ended, and not before.
//
// Order. On an ordered connection the n-th send lands in the n-th receive; ends are told as they come, which after a
// loss may be in another order. By tag, a message goes to the earliest posted receive that it fits, a receive takes the
// earliest message that fits it, and messages of one connection that fit the same receive match in the order in which
// they were sent (MPI 4.1, section 3.5).
//
// Unexpected messages, which came before a receive asked for them: those up to eager_limit are held here, longer ones
// are announced here and wait at their sender. Each connection may have `unexpected_messages` of both together; beyond,
// its sender holds messages back, in order, and send_tagged() still takes them, as far as max_operations goes.
//
// Ends. Whatever dies, every operation ends: with its connection, within about peer_timeout after the peer was last
// heard. A program that waits for a live peer to post or to send waits as long as it says in PostOptions::time_limit.
//
// After fork(2) the child can use none of it: every call returns Code::forked, and the destructor does nothing, since
// threads, sockets and devices stay the parent's. The child opens an endpoint of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/address.h"
#include "mltcp/endpoint/completion_queue.h"
#include "mltcp/endpoint/result.h"
#include "mltcp/endpoint/types.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp {
struct JobClaim;
}  // namespace mltcp

namespace mltcp::endpoint {

class Core;

class Endpoint {
 public:
  /// Opens the datapath and is ready for others' connections when it returns. The kinds of datapaths that the program
  /// links are registered before (transport/host_datapath.h). Throws InputError for what is wrong with `config`,
  /// RunError for what is wrong with the machine.
  ///
  /// Any number of endpoints may be open in a process, those on DPDK on a device each: the first of these starts it, on
  /// a thread of its own, and it stays for the next until the process ends. Its memory is what the first asks for
  /// (HostDatapathConfig::memory_mb), by default with room for seven like it, and grows only in huge pages. An endpoint
  /// that contradicts this, or wants a device that another has, is refused with a RunError that says so.
  explicit Endpoint(const EndpointConfig& config);
  /// As close(), and waits for its threads. From a callback it waits for nothing: what is left to do is done when the
  /// callback has returned. Queues may live on.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// What others connect by. Constant.
  [[nodiscard]] const EndpointAddress& address() const noexcept;
  [[nodiscard]] const EndpointConfig& config() const noexcept;
  /// The datapath's, for people.
  [[nodiscard]] const std::string& description() const noexcept;

  /// Ends all connections at once, as abort(), and with them all operations, with Code::destroyed: callbacks are
  /// called, queues filled, waiters woken, on the driving threads or, where the caller drives, in here. Then every call
  /// returns Code::destroyed. Waits for that, 1 s at most; not from a callback, from where it goes on afterwards. May
  /// be called again.
  Code close() noexcept;

  // ---- Driving ------------------------------------------------------------------------------------------------------

  /// With Driving::caller: a round of all shards that nobody else drives just now. Returns how many operations ended
  /// and events happened in it; 0 from a callback, after close(), in a fork, or with Driving::threads. It does not
  /// wait.
  std::size_t progress() noexcept;
  /// With Driving::caller, for epoll: becomes readable when progress() has something to do, once arm() has been called
  /// and has returned Code::nothing. -1 where the datapath can't tell of packets, or with Driving::threads: there the
  /// queues' files tell.
  [[nodiscard]] int file() const noexcept;
  /// Code::nothing: sleep now, file() will tell. Code::ok: call progress() first. unsupported where file() is -1. The
  /// thread that arms is the one that sleeps and calls progress() next.
  Code arm() noexcept;

  // ---- Connections --------------------------------------------------------------------------------------------------

  /// Begins to connect; Completion::connected, with `options.post` as for any operation. `handle` may be posted on at
  /// once. Code::bad_address, version, no_room, queue_full. With neither `operation` nor callback nor queue a failure
  /// is told by the event `closed`.
  Code connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
               OperationHandle* operation = nullptr) noexcept;
  /// Takes no more operations; ends when all that was sent is in the peer's buffers, or held by the peer. Of the peer's
  /// sends those end with Code::ok whose messages had come by then, in the order in which they were sent up to the
  /// first that had not come whole, and the others with Code::closed: what was delivered is acknowledged before the
  /// close or with it, whatever is lost, and what comes later is not taken. Receives that are outstanding end with
  /// Code::closed; those from any connection stay. The event `closed` is the last. Unexpected messages that this end
  /// holds of it are dropped. Ends what the peer does not take in time only with abort().
  Code close(ConnectionHandle connection) noexcept;
  /// Ends it at once: all its operations end with Code::aborted, here and at the peer.
  Code abort(ConnectionHandle connection) noexcept;
  /// How it has ended, or is ending: Code::ok, with what what is posted on it gets. Code::nothing while it may be
  /// posted on; unknown. Waits for nothing.
  ///
  /// A connection that has ended keeps its handle, with the code and cause of its end, until close() or abort(), which
  /// return Code::ok, and otherwise until its place in the table is needed: at least max_connections others have come
  /// after it. What is posted on it meanwhile gets that code: the call returns it, or, where messages are still held to
  /// be received by tag or a thread was faster, the operation ends with it and the cause.
  Code how_ended(ConnectionHandle connection, Code& code, Cause& cause) const noexcept;
  /// A look at another shard's connection may wait for that shard: not from a callback of another shard.
  Code report(ConnectionHandle connection, ConnectionReport& out) noexcept;
  /// The peer's address, as it introduced itself: also in a callback. Code::nothing before it has.
  Code peer(ConnectionHandle connection, EndpointAddress& out) noexcept;

  // ---- Ordered messages ---------------------------------------------------------------------------------------------

  /// 0 bytes to 4 GiB, zero-copy. Held back until the peer has posted its buffer. Code::queue_full, unknown, too_long,
  /// unsupported (a tagged connection), invalid (no bytes where there should be some, or options); closed, aborted,
  /// unreachable or what else the connection has ended with.
  /// Where as many are under way as ConnectionConfig::max_sends says, further ones wait here.
  Code send(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
            const PostOptions& options, OperationHandle& operation) noexcept;
  /// Codes as send().
  Code receive(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, const PostOptions& options,
               OperationHandle& operation) noexcept;

  // ---- Messages by tag ----------------------------------------------------------------------------------------------

  /// 0 bytes to 4 GiB. Up to eager_limit of both ends, whichever is less, the bytes are copied and go at once;
  /// longer ones go zero-copy when a receive has matched. Codes as send().
  Code send_tagged(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
                   const PostOptions& options, OperationHandle& operation) noexcept;
  /// For the earliest message with (its tag & mask) == (tag & mask), of `connection` or of kAnyConnection. A longer
  /// message ends it with Code::truncated and the beginning in the buffer.
  Code receive_tagged(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, std::uint64_t mask,
                      const PostOptions& options, OperationHandle& operation) noexcept;
  /// Looks for the earliest unexpected message that such a receive would take now; ends at once, with its tag, length
  /// and connection, or with Code::nothing. Take::yes takes it out of matching: Completion::message is for
  /// receive_message() alone, and counts against the connection's unexpected messages until then (MPI_Mprobe).
  Code peek(ConnectionHandle connection, std::uint64_t tag, std::uint64_t mask, Take take, const PostOptions& options,
            OperationHandle& operation) noexcept;
  /// Receives a message that peek() has taken, as receive_tagged(). An empty buffer drops it. Code::unknown if it was
  /// received before; of one whose connection has ended the operation does, with the connection's code.
  Code receive_message(MessageHandle message, std::span<std::byte> buffer, const PostOptions& options,
                       OperationHandle& operation) noexcept;

  // ---- Operations ---------------------------------------------------------------------------------------------------

  /// Asks for its end before its time. Code::ok: it was asked, and its completion tells which: Code::cancelled, with
  /// the message or the place in the queue as if it had never been posted, or as it would have ended anyway, because it
  /// was too late: an ordered message of which bytes have been sent, or have come; by tag, a message that has been sent
  /// or matched. Code::unknown: it has ended. Code::too_late, where the calling thread drives and so knows at once.
  /// Ordered receives: the peer may have been promised the buffer, as in transport/shard.h.
  Code cancel(OperationHandle operation) noexcept;
  /// Of operations without callback and queue. Waits for the end, for `limit`: 0 is one look, never() as long as it
  /// takes, negative is Code::invalid. Code::ok: `out` says how it ended, and the handle is gone. timed_out: it goes
  /// on. unknown; unsupported if it has a callback or a queue, or from a callback unless `limit` is 0; forked. One
  /// thread waits for an operation. Where the caller drives it drives meanwhile.
  Code wait(OperationHandle operation, Completion& out, Nanos limit) noexcept;
  /// One look, as wait() with 0, but drives nothing.
  Code test(OperationHandle operation, Completion& out) noexcept;
  /// Of such operations: nobody will ask how it ends.
  Code forget(OperationHandle operation) noexcept;

  /// A queue of `places` completions, 1 to 2^20. Throws InputError, RunError.
  std::unique_ptr<CompletionQueue> make_queue(std::uint32_t places);
  /// That of events, unless event_callback is set.
  [[nodiscard]] CompletionQueue& events() noexcept;

  // ---- Jobs ---------------------------------------------------------------------------------------------------------
  // A job spans the shards. These calls, but for begin_iteration() and end_iteration(), wait for the other shards'
  // threads, a millisecond at most where these are not kept: not from callbacks (Code::unsupported).

  /// Code::no_room, invalid.
  Code create_job(const JobOptions& options, JobHandle& job) noexcept;
  /// Its connections go on without a job.
  Code remove_job(JobHandle job) noexcept;
  /// What is sent on the connection from now on is the job's; a connection that is not open yet is attached as it
  /// opens.
  Code attach(ConnectionHandle connection, JobHandle job) noexcept;
  /// The next iteration begins and will send `bytes` on all of the job's connections together; 0: not known. Each shard
  /// follows its own part: in the ratio of the bytes posted on it in the iteration before, and in the first iteration
  /// of the connections attached. Does not wait: takes effect before what this thread posts afterwards.
  /// Code::queue_full.
  Code begin_iteration(JobHandle job, Bytes bytes, Beginning beginning = Beginning::known) noexcept;
  /// Iterations of a job with JobOptions::learn_iterations are found in the traffic again, until the next
  /// begin_iteration() that names a size. Does not wait. Code::queue_full.
  Code learn_iterations(JobHandle job) noexcept;
  /// The job has sent what it wanted to, and computes: for report(). Does not wait.
  Code end_iteration(JobHandle job) noexcept;
  /// On every shard. `state` as transport/phase_gate.h has it. Times are those of now().
  Code set_plan(JobHandle job, const PhasePlan& plan, PlanState& state) noexcept;
  Code clear_plan(JobHandle job) noexcept;
  Code set_job_rate(JobHandle job, Rate rate) noexcept;
  Code report(JobHandle job, JobReport& out) noexcept;

  // ---- Memory, time, counters ---------------------------------------------------------------------------------------

  /// Has the datapath's devices read `memory`, whole pages, so that messages in it are sent without a copy; of a
  /// datapath that reads as the CPU does nothing is done. `memory` outlives the registration, and that the messages in
  /// it. Code::invalid, no_room, failed; failure() says why.
  Code register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept;
  Code unregister_memory(MemoryHandle handle) noexcept;

  /// The datapath's clock, in nanoseconds.
  [[nodiscard]] Nanos now() const noexcept;
  /// Waits as report(ConnectionHandle) does.
  Code report(EndpointReport& out) noexcept;
  /// What received packets have claimed of their senders' jobs (transport/job_claims.h) since this endpoint was opened,
  /// those with the most bytes first. Waits as report(JobHandle) does. Code::no_room: no memory; unsupported from a
  /// callback.
  Code report(std::vector<JobClaim>& out) noexcept;
  /// What went wrong last where a code was Code::failed, or an address was no good; empty if nothing did. Any thread.
  [[nodiscard]] std::string failure() const;
  /// While its own port carries nothing: "cause; cure" for people, such as where a peer is no longer heard. Empty while
  /// it does, after close(), and where the datapath can't tell. Waits as report(ConnectionHandle) does.
  [[nodiscard]] std::string why_link_is_down() const noexcept;
  /// For whoever has heard nothing of `peer` (HostDatapath::why_silent).
  [[nodiscard]] std::string why_silent(const Address& peer) const noexcept;

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<CompletionQueue> events_;
};

}  // namespace mltcp::endpoint
