// An endpoint is a program's access to the transport. It is made for training runtimes, tools, and other languages. An
// endpoint owns a datapath and one or more shards on it. Its own threads or the program's threads drive the shards. Any
// thread may use an endpoint.
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
// Threads. Any thread may call any function at any time, with one exception. The destructor may be called only from a
// callback, or when no other thread is inside a call. An operation goes through a bounded lock-free queue to its
// connection's shard. It is posted directly if the calling thread drives that shard, or if no thread does. Operations
// that one thread posts on a connection keep their order. Posting and completing neither allocate, lock, nor log.
//
// Memory. The program must not change a message or use a buffer until its operation has ended.
//
// Order. On an ordered connection the n-th send arrives in the n-th receive. After a loss, completions may come in
// another order. On a tagged connection a message goes to the earliest posted receive that matches it, and a receive
// takes the earliest message that matches it. If several messages of one connection match the same receive, they are
// received in the order in which they were sent (MPI 4.1, section 3.5).
//
// Unexpected messages arrive before a matching receive is posted. The endpoint stores unexpected messages of up to
// eager_limit bytes. Longer messages are announced and wait at their sender. Each connection has at most
// `unexpected_messages` unexpected messages. Beyond this number the sender holds back further messages, in order.
// send_tagged() accepts messages until max_operations is reached.
//
// Ends. Every operation ends, whatever fails. An operation ends at the latest when its connection ends. If the peer is
// silent, the connection ends about peer_timeout after the peer's last packet. PostOptions::time_limit limits how long
// an operation waits for a live peer to post or send.
//
// Fork. After fork(2) the child cannot use the endpoint, because threads, sockets and devices belong to the parent.
// Every call returns Code::forked, and the destructor does nothing. The child may open a new endpoint.
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
  /// Opens the datapath. Peers can connect when the constructor returns. Before it opens an endpoint, the program must
  /// register the kinds of datapaths that it links (transport/host_datapath.h). Throws InputError if `config` is wrong,
  /// RunError if the machine is not ready.
  ///
  /// A process may open any number of endpoints. On DPDK, each endpoint needs its own device. The first endpoint on
  /// DPDK starts DPDK on a thread that runs until the process ends. DPDK then gets the memory that the first endpoint
  /// requests (HostDatapathConfig::memory_mb). By default this memory is enough for eight endpoints like the first.
  /// Only memory in huge pages can grow later. Throws RunError if an endpoint needs other settings of DPDK, or a device
  /// that is in use.
  explicit Endpoint(const EndpointConfig& config);
  /// Calls close() and waits until the endpoint's threads have ended. If called from a callback, returns without
  /// waiting; the threads then end after the callback has returned. Completion queues may outlive the endpoint.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Returns the address that peers connect to. It never changes.
  [[nodiscard]] const EndpointAddress& address() const noexcept;
  [[nodiscard]] const EndpointConfig& config() const noexcept;
  /// Returns a description of the datapath, for people.
  [[nodiscard]] const std::string& description() const noexcept;

  /// Aborts all connections and ends all operations with Code::destroyed. Then calls callbacks, fills queues and wakes
  /// waiting threads. With Driving::threads the driving threads do this, with Driving::caller this call does it. Later
  /// calls of other functions return Code::destroyed. Waits up to 2 s until this is done. If called from a callback,
  /// returns without waiting. May be called again.
  Code close() noexcept;

  // ---- Driving ----

  /// With Driving::caller, drives once each shard that no other thread is driving. Returns the number of ended
  /// operations and events. Returns 0 from a callback, after close(), in a forked child, or with Driving::threads. Does
  /// not wait.
  std::size_t progress() noexcept;
  /// With Driving::caller, returns a file descriptor for epoll(7). After arm() has returned Code::nothing, the file
  /// becomes readable when progress() has work. Returns -1 if the datapath cannot signal packets, or with
  /// Driving::threads, where programs use the files of the queues.
  [[nodiscard]] int file() const noexcept;
  /// Returns Code::nothing if the caller may sleep on file(), Code::ok if it must call progress() first, and
  /// Code::unsupported if file() is -1. The same thread must call arm(), sleep, and then call progress().
  Code arm() noexcept;

  // ---- Connections ----

  /// Begins to connect. The operation ends with Completion::connected, which is reported as `options.post` specifies.
  /// Operations may be posted on `handle` at once. If there is no `operation`, callback or queue, the event `closed`
  /// reports a failure. On an error, returns Code::bad_address, version, no_room or queue_full.
  Code connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
               OperationHandle* operation = nullptr) noexcept;
  /// Accepts no more operations on the connection, and ends it when the peer has received or stored everything that was
  /// sent. Sends of the peer that have arrived completely by then end with Code::ok, in order up to the first
  /// incomplete one. All other sends of the peer end with Code::closed. Outstanding receives end with Code::closed, but
  /// receives from kAnyConnection stay posted. Unexpected messages of the connection that are stored here are dropped.
  /// The event `closed` comes last. If the peer does not receive a message, only abort() ends the connection.
  Code close(ConnectionHandle connection) noexcept;
  /// Ends the connection at once. All its operations end with Code::aborted, here and at the peer.
  Code abort(ConnectionHandle connection) noexcept;
  /// Returns Code::ok if the connection has ended or is ending, and sets `code` and `cause`. Returns Code::nothing if
  /// it accepts operations, Code::unknown if it does not exist. Does not wait.
  ///
  /// A connection that has ended keeps its handle, code and cause until close() or abort(), which return Code::ok. The
  /// endpoint may forget them earlier if it needs the memory, but only after at least max_connections further
  /// connections. As long as the handle is kept, a call that posts on the connection returns `code`. In two cases the
  /// call succeeds, and the operation ends with `code`: messages to be received by tag are still stored, or the
  /// connection ends while the operation is being posted.
  Code how_ended(ConnectionHandle connection, Code& code, Cause& cause) const noexcept;
  /// May wait for the connection's shard. Returns Code::unsupported from a callback of another shard.
  Code report(ConnectionHandle connection, ConnectionReport& out) noexcept;
  /// Sets `out` to the peer's address, from the peer's introduction. Returns Code::nothing if the introduction has not
  /// arrived yet. May be called from callbacks.
  Code peer(ConnectionHandle connection, EndpointAddress& out) noexcept;

  // ---- Ordered messages ----

  /// Sends a message of 0 bytes to 4 GiB without a copy, once the peer has posted a buffer. If
  /// ConnectionConfig::max_sends sends are under way, the message waits in this endpoint. Returns Code::queue_full,
  /// unknown or too_long, Code::unsupported for a tagged connection, or Code::invalid for a null pointer or wrong
  /// options. If the connection has ended, returns its code, such as closed, aborted or unreachable.
  Code send(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
            const PostOptions& options, OperationHandle& operation) noexcept;
  /// Returns the same codes as send().
  Code receive(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, const PostOptions& options,
               OperationHandle& operation) noexcept;

  // ---- Messages by tag ----

  /// Sends a message of 0 bytes to 4 GiB. If the message is not longer than the smaller eager_limit of both endpoints,
  /// its bytes are copied and sent at once. A longer message is sent without a copy when a receive has matched. Returns
  /// the same codes as send().
  Code send_tagged(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
                   const PostOptions& options, OperationHandle& operation) noexcept;
  /// Receives the earliest message with (its tag & mask) == (tag & mask). The message may come from `connection`, or
  /// from any connection if that is kAnyConnection. If the message is longer than the buffer, the operation ends with
  /// Code::truncated, and the buffer contains the message's beginning.
  Code receive_tagged(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag, std::uint64_t mask,
                      const PostOptions& options, OperationHandle& operation) noexcept;
  /// Finds the earliest unexpected message that receive_tagged() with the same arguments would receive now. The
  /// operation ends at once, with the message's tag, length and connection, or with Code::nothing. After Take::yes,
  /// only receive_message() can receive the message, which Completion::message identifies (as in MPI_Mprobe). Until it
  /// is received, the message counts as an unexpected message of its connection.
  Code peek(ConnectionHandle connection, std::uint64_t tag, std::uint64_t mask, Take take, const PostOptions& options,
            OperationHandle& operation) noexcept;
  /// Receives a message that peek() has taken, as receive_tagged() does. An empty buffer drops the message. The
  /// operation ends with Code::unknown if the message has already been received. If the message's connection has ended,
  /// the operation ends with the connection's code.
  Code receive_message(MessageHandle message, std::span<std::byte> buffer, const PostOptions& options,
                       OperationHandle& operation) noexcept;

  // ---- Operations ----

  /// Requests that an operation ends early. Returns Code::ok if the request was made, Code::unknown if the operation
  /// has ended, and Code::too_late if the operation can no longer be cancelled. Code::too_late is possible only if no
  /// other thread drives the operation's shard. After Code::ok, the operation ends with Code::cancelled, as if it had
  /// never been posted. The request has no effect if bytes of an ordered message have already been sent or received, or
  /// if a tagged message has been sent or matched. An ordered receive may already be promised to the peer, see
  /// transport/shard.h.
  Code cancel(OperationHandle operation) noexcept;
  /// Waits for the end of an operation that has neither callback nor queue, for at most `limit`. If `limit` is 0, does
  /// not wait; never() waits without limit. Only one thread may wait for an operation. With Driving::caller, drives the
  /// shards during the wait. Returns Code::ok if the operation has ended. `out` then describes the end, and the handle
  /// is no longer valid. Returns Code::timed_out if the operation continues, Code::invalid if `limit` is negative,
  /// Code::unknown if there is no such operation, and Code::forked in a forked child. Returns Code::unsupported if the
  /// operation has a callback or a queue, or from a callback if `limit` is above 0.
  Code wait(OperationHandle operation, Completion& out, Nanos limit) noexcept;
  /// Like wait() with a limit of 0, but does not drive shards.
  Code test(OperationHandle operation, Completion& out) noexcept;
  /// Tells the endpoint that the program will not wait for an operation. The operation must have neither callback nor
  /// queue.
  Code forget(OperationHandle operation) noexcept;

  /// Creates a queue for `places` completions, 1 to 2^20. Throws InputError if `places` is out of range. Throws
  /// RunError in a forked child or if the queue cannot be made.
  std::unique_ptr<CompletionQueue> make_queue(std::uint32_t places);
  /// Returns the queue of events. The queue stays empty if EndpointConfig::event_callback is set.
  [[nodiscard]] CompletionQueue& events() noexcept;

  // ---- Jobs ----
  // A job spans all shards. The following calls wait for the threads of other shards, usually for less than a
  // millisecond, and return Code::unsupported from callbacks. The exceptions are attach(), begin_iteration(),
  // learn_iterations() and end_iteration(), which do not wait.

  /// Returns Code::no_room or Code::invalid if the job cannot be created.
  Code create_job(const JobOptions& options, JobHandle& job) noexcept;
  /// Removes a job. Its connections continue without a job.
  Code remove_job(JobHandle job) noexcept;
  /// Makes the connection carry the job's data from now on. The connection may still be connecting.
  Code attach(ConnectionHandle connection, JobHandle job) noexcept;
  /// Begins the next iteration, in which the job will send `bytes` on all its connections together; 0 if the size is
  /// not known. The bytes are divided over the shards in proportion to the bytes posted in the previous iteration. In
  /// the first iteration they are divided in proportion to the attached connections. Takes effect before later posts of
  /// this thread. Does not wait. Returns Code::queue_full if a shard's queue is full.
  Code begin_iteration(JobHandle job, Bytes bytes, Beginning beginning = Beginning::known) noexcept;
  /// Learns iterations from the traffic again, until the next begin_iteration() with a size. For jobs with
  /// JobOptions::learn_iterations. Does not wait. Returns Code::queue_full if a shard's queue is full.
  Code learn_iterations(JobHandle job) noexcept;
  /// Notes that the job has posted all sends of the iteration and now computes. report() shows this. Does not wait.
  Code end_iteration(JobHandle job) noexcept;
  /// Sets the plan on every shard. For `state`, see transport/phase_gate.h. The plan's times are on the clock of now().
  Code set_plan(JobHandle job, const PhasePlan& plan, PlanState& state) noexcept;
  Code clear_plan(JobHandle job) noexcept;
  Code set_job_rate(JobHandle job, Rate rate) noexcept;
  Code report(JobHandle job, JobReport& out) noexcept;

  // ---- Memory, time, counters ----

  /// Lets the datapath's devices read `memory` (whole pages), so that messages in it are sent without a copy. Does
  /// nothing if the CPU reads messages for the datapath. `memory` must outlive the registration, and the registration
  /// must outlive the messages. On an error, returns Code::invalid, no_room or failed, and failure() returns the
  /// reason.
  Code register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept;
  Code unregister_memory(MemoryHandle handle) noexcept;

  /// Returns the time of the datapath's clock in nanoseconds.
  [[nodiscard]] Nanos now() const noexcept;
  /// May wait for shards, as report(ConnectionHandle) does.
  Code report(EndpointReport& out) noexcept;
  /// Sets `out` to the claims about jobs in packets received since this endpoint was opened (transport/job_claims.h).
  /// The claims with the most bytes come first. May wait for shards, as report(JobHandle) does. Returns Code::no_room
  /// if memory is short, Code::unsupported from a callback.
  Code report(std::vector<JobClaim>& out) noexcept;
  /// Returns the reason for the last Code::failed or Code::bad_address; empty if there was none.
  [[nodiscard]] std::string failure() const;
  /// Returns "cause; cure", for people, if this endpoint's own link is down. Returns an empty text if the link is up,
  /// after close(), or if the datapath does not know the link's state. May wait for a shard, as
  /// report(ConnectionHandle) does.
  [[nodiscard]] std::string why_link_is_down() const noexcept;
  /// Returns why no packets arrive from `peer`, as far as this host can know (HostDatapath::why_silent).
  [[nodiscard]] std::string why_silent(const Address& peer) const noexcept;

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<CompletionQueue> events_;
};

}  // namespace mltcp::endpoint
