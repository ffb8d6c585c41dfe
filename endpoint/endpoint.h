// An endpoint is a program's access to the transport: for training runtimes, tools, and other languages. It owns a
// datapath and one or more shards on it, drives them with its own threads or the program's, and is safe to call from
// any thread.
//
//   Endpoint endpoint({.datapath = {.device = "udp:"}, .address = Address::parse("10.0.0.1")});
//   publish(endpoint.address().bytes());                             // by any means: a file, a key-value store, MPI
//   ConnectionHandle peer = 0;
//   endpoint.connect(blob_of_peer, {.kind = ConnectionKind::tagged}, peer);
//   OperationHandle operation = 0;
//   endpoint.send_tagged(peer, gradient, 7, {}, operation);          // keep `gradient` until the operation has ended
//   Completion end;
//   endpoint.wait(operation, end, Nanos::from_seconds(10));
//
// Errors. Set-up (the constructor, make_queue()) throws InputError or RunError with one line "cause; cure". Every other
// function is noexcept and returns a Code.
//
// Threads. Any thread may call any function at any time. The destructor is the exception: call it when no other thread
// is inside a call, or from a callback. An operation goes through a bounded lock-free queue to its connection's shard;
// it is posted directly if the calling thread drives that shard, or if no thread does. Operations that one thread posts
// on a connection keep their order. Posting and completing neither allocate, lock, nor log.
//
// Memory. The program must not change a message or use a buffer until its operation has ended.
//
// Order. On an ordered connection the n-th send arrives in the n-th receive; completions may come in another order
// after a loss. On a tagged connection a message goes to the earliest posted receive that matches it, and a receive
// takes the earliest message that matches it. Messages of one connection that match the same receive are received in
// the order in which they were sent (MPI 4.1, section 3.5).
//
// Unexpected messages arrive before a matching receive is posted. This endpoint stores those of up to eager_limit
// bytes. Longer ones are announced and wait at their sender. A connection has at most `unexpected_messages` of both;
// its sender holds back further messages, in order. send_tagged() accepts messages until max_operations is reached.
//
// Ends. Every operation ends, whatever fails: at the latest with its connection, within about peer_timeout after the
// last packet from the peer. PostOptions::time_limit bounds how long an operation waits for a live peer to post or
// send.
//
// Fork. After fork(2) the child cannot use the endpoint: every call returns Code::forked, and the destructor does
// nothing, because threads, sockets and devices belong to the parent. The child opens an endpoint of its own.
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
  /// Opens the datapath; peers can connect when it returns. Register the kinds of datapaths that the program links
  /// before (transport/host_datapath.h). Throws InputError if `config` is wrong, RunError if the machine is not ready.
  ///
  /// A process may open any number of endpoints; on DPDK, each needs a device of its own. The first endpoint on DPDK
  /// starts DPDK on a thread that stays until the process ends, with the memory that this endpoint requests
  /// (HostDatapathConfig::memory_mb; by default enough for seven more like it). The memory grows only in huge pages.
  /// Throws RunError if an endpoint needs other settings of DPDK, or a device that is in use.
  explicit Endpoint(const EndpointConfig& config);
  /// Calls close() and waits for the endpoint's threads. From a callback it does not wait: the threads finish after the
  /// callback has returned. Completion queues may outlive the endpoint.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The address that peers connect to. Constant.
  [[nodiscard]] const EndpointAddress& address() const noexcept;
  [[nodiscard]] const EndpointConfig& config() const noexcept;
  /// A description of the datapath, for people.
  [[nodiscard]] const std::string& description() const noexcept;

  /// Aborts all connections and ends all operations with Code::destroyed: calls callbacks, fills queues and wakes
  /// waiting threads, on the driving threads, or in this call with Driving::caller. Afterwards every call returns
  /// Code::destroyed. Waits for the end for up to 1 s; from a callback it does not wait. May be called again.
  Code close() noexcept;

  // ---- Driving ------------------------------------------------------------------------------------------------------

  /// With Driving::caller: drives each shard once that no other thread is driving. Returns the number of operations
  /// that ended plus events; 0 from a callback, after close(), in a fork, or with Driving::threads. Does not wait.
  std::size_t progress() noexcept;
  /// With Driving::caller: a file descriptor for epoll. Once arm() has returned Code::nothing, it becomes readable when
  /// progress() has work. -1 if the datapath cannot signal packets, or with Driving::threads (use the queues' files).
  [[nodiscard]] int file() const noexcept;
  /// Code::nothing: the caller may sleep on file(). Code::ok: call progress() first. Code::unsupported: file() is -1.
  /// The same thread must arm, sleep, and then call progress().
  Code arm() noexcept;

  // ---- Connections --------------------------------------------------------------------------------------------------

  /// Begins to connect; ends with Completion::connected, reported as `options.post` says. Operations may be posted on
  /// `handle` at once. Code::bad_address, version, no_room, queue_full. Without `operation`, callback and queue, the
  /// event `closed` reports a failure.
  Code connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
               OperationHandle* operation = nullptr) noexcept;
  /// Accepts no more operations on the connection, and ends it when the peer has received or stored everything that was
  /// sent. The peer's sends that had arrived completely by then, in order up to the first incomplete one, end with
  /// Code::ok, the others with Code::closed. Outstanding receives end with Code::closed; receives from kAnyConnection
  /// stay. Unexpected messages of the connection that are stored here are dropped. The event `closed` comes last. If
  /// the peer does not receive a message, only abort() ends it.
  Code close(ConnectionHandle connection) noexcept;
  /// Ends the connection at once: all its operations end with Code::aborted, here and at the peer.
  Code abort(ConnectionHandle connection) noexcept;
  /// Code::ok: the connection has ended or is ending, with `code` and `cause`. Code::nothing: it accepts operations.
  /// Code::unknown. Does not wait.
  ///
  /// A connection that has ended keeps its handle, code and cause until close() or abort(), which return Code::ok, or
  /// until its place is needed, after at least max_connections later connections. A call that posts on it meanwhile
  /// returns `code`; or the operation ends with it, if messages are still stored to be received by tag, or if the
  /// connection ended while the operation was being posted.
  Code how_ended(ConnectionHandle connection, Code& code, Cause& cause) const noexcept;
  /// May wait for the connection's shard; Code::unsupported from a callback of another shard.
  Code report(ConnectionHandle connection, ConnectionReport& out) noexcept;
  /// The peer's address, from its introduction. Code::nothing before that has arrived. Callbacks may call it.
  Code peer(ConnectionHandle connection, EndpointAddress& out) noexcept;

  // ---- Ordered messages ---------------------------------------------------------------------------------------------

  /// Sends 0 bytes to 4 GiB, zero-copy, once the peer has posted the buffer. Code::queue_full, unknown, too_long,
  /// unsupported (a tagged connection), invalid (a null pointer, or options); or the code with which the connection
  /// ended, such as closed, aborted, unreachable. If ConnectionConfig::max_sends are under way, the message waits here.
  Code send(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
            const PostOptions& options, OperationHandle& operation) noexcept;
  /// Codes as send().
  Code receive(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, const PostOptions& options,
               OperationHandle& operation) noexcept;

  // ---- Messages by tag ----------------------------------------------------------------------------------------------

  /// Sends 0 bytes to 4 GiB. Up to the smaller eager_limit of both ends, the bytes are copied and sent at once; longer
  /// messages are sent zero-copy when a receive has matched. Codes as send().
  Code send_tagged(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
                   const PostOptions& options, OperationHandle& operation) noexcept;
  /// Receives the earliest message with (its tag & mask) == (tag & mask), from `connection` or from any connection
  /// (kAnyConnection). If it is longer than the buffer, the operation ends with Code::truncated, and the buffer holds
  /// its beginning.
  Code receive_tagged(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, std::uint64_t mask,
                      const PostOptions& options, OperationHandle& operation) noexcept;
  /// Finds the earliest unexpected message that such a receive would take now. Ends at once, with its tag, length and
  /// connection, or with Code::nothing. With Take::yes only receive_message() can receive it afterwards, by
  /// Completion::message; until then it counts as an unexpected message of its connection (MPI_Mprobe).
  Code peek(ConnectionHandle connection, std::uint64_t tag, std::uint64_t mask, Take take, const PostOptions& options,
            OperationHandle& operation) noexcept;
  /// Receives a message that peek() has taken, as receive_tagged() does. An empty buffer drops it. Code::unknown if it
  /// was received before. If its connection has ended, the operation ends with the connection's code.
  Code receive_message(MessageHandle message, std::span<std::byte> buffer, const PostOptions& options,
                       OperationHandle& operation) noexcept;

  // ---- Operations ---------------------------------------------------------------------------------------------------

  /// Requests an early end. Code::ok: the request was made. The operation then ends with Code::cancelled, as if it had
  /// never been posted; or as it would have ended anyway, if bytes of an ordered message have already been sent or
  /// received, or if a tagged message has been sent or matched. Code::unknown: it has ended. Code::too_late: it cannot
  /// be cancelled (only if the calling thread drives). An ordered receive may already be promised to the peer, see
  /// transport/shard.h.
  Code cancel(OperationHandle operation) noexcept;
  /// Waits for the end of an operation without callback and queue, for at most `limit`: 0 looks once, never() has no
  /// limit, a negative one is Code::invalid. Code::ok: `out` says how it ended, and the handle is no longer valid.
  /// Code::timed_out: the operation continues. Code::unknown; unsupported if it has a callback or a queue, or from a
  /// callback with a `limit` above 0; forked. Only one thread may wait for an operation. With Driving::caller it drives
  /// the shards meanwhile.
  Code wait(OperationHandle operation, Completion& out, Nanos limit) noexcept;
  /// As wait() with a limit of 0, but does not drive.
  Code test(OperationHandle operation, Completion& out) noexcept;
  /// The program will not wait for this operation, which has neither callback nor queue.
  Code forget(OperationHandle operation) noexcept;

  /// A queue of `places` completions, 1 to 2^20. Throws InputError, RunError.
  std::unique_ptr<CompletionQueue> make_queue(std::uint32_t places);
  /// The queue of events. Empty if EndpointConfig::event_callback is set.
  [[nodiscard]] CompletionQueue& events() noexcept;

  // ---- Jobs ---------------------------------------------------------------------------------------------------------
  // A job spans all shards. These calls wait for the other shards' threads, usually for less than a millisecond, and
  // are Code::unsupported from callbacks; begin_iteration(), learn_iterations() and end_iteration() do not wait.

  /// Code::no_room, invalid.
  Code create_job(const JobOptions& options, JobHandle& job) noexcept;
  /// The job's connections continue without a job.
  Code remove_job(JobHandle job) noexcept;
  /// The connection carries the job's data from now on. It may still be connecting.
  Code attach(ConnectionHandle connection, JobHandle job) noexcept;
  /// Begins the next iteration, in which the job will send `bytes` on all its connections together; 0: not known. The
  /// bytes are divided over the shards like the bytes posted in the previous iteration; in the first iteration, like
  /// the attached connections. Does not wait, and takes effect before later posts of this thread. Code::queue_full.
  Code begin_iteration(JobHandle job, Bytes bytes, Beginning beginning = Beginning::known) noexcept;
  /// For a job with JobOptions::learn_iterations: learns iterations from the traffic again, until the next
  /// begin_iteration() with a size. Does not wait. Code::queue_full.
  Code learn_iterations(JobHandle job) noexcept;
  /// The job has posted all sends of the iteration and computes; shown by report(). Does not wait.
  Code end_iteration(JobHandle job) noexcept;
  /// Sets the plan on every shard; for `state` see transport/phase_gate.h. Times are those of now().
  Code set_plan(JobHandle job, const PhasePlan& plan, PlanState& state) noexcept;
  Code clear_plan(JobHandle job) noexcept;
  Code set_job_rate(JobHandle job, Rate rate) noexcept;
  Code report(JobHandle job, JobReport& out) noexcept;

  // ---- Memory, time, counters ---------------------------------------------------------------------------------------

  /// Lets the datapath's devices read `memory` (whole pages), so that messages in it are sent without a copy. Does
  /// nothing if the CPU reads for the datapath. `memory` must outlive the registration, and the registration the
  /// messages. Code::invalid, no_room, failed; failure() says why.
  Code register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept;
  Code unregister_memory(MemoryHandle handle) noexcept;

  /// The datapath's clock, in nanoseconds.
  [[nodiscard]] Nanos now() const noexcept;
  /// Waits as report(ConnectionHandle) does.
  Code report(EndpointReport& out) noexcept;
  /// The claims about jobs in packets received since this endpoint was opened (transport/job_claims.h), most bytes
  /// first. Waits as report(JobHandle) does. Code::no_room: no memory; unsupported from a callback.
  Code report(std::vector<JobClaim>& out) noexcept;
  /// The reason of the last Code::failed or Code::bad_address; empty if there was none.
  [[nodiscard]] std::string failure() const;
  /// "cause; cure", for people, if this endpoint's own link is down. Empty if it is up, after close(), and if the
  /// datapath does not know. Waits as report(ConnectionHandle) does.
  [[nodiscard]] std::string why_link_is_down() const noexcept;
  /// Why no packets arrive from `peer`, as far as this host can know (HostDatapath::why_silent).
  [[nodiscard]] std::string why_silent(const Address& peer) const noexcept;

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<CompletionQueue> events_;
};

}  // namespace mltcp::endpoint
