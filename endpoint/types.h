// Values that a program and an endpoint exchange: handles, completions, options, settings, reports.
//
// A handle contains a generation number. After its object is gone, calls with the handle return Code::unknown. The
// handle can name another object only after 2^32 further objects in the same slot. 0 is never a valid handle. For
// connections that have ended see Endpoint::how_ended().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/endpoint/address.h"
#include "mltcp/endpoint/result.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/types.h"

namespace mltcp::endpoint {

class CompletionQueue;

using ConnectionHandle = std::uint64_t;
using OperationHandle = std::uint64_t;
using JobHandle = std::uint64_t;
using MemoryHandle = std::uint64_t;
/// An unexpected message that peek() has taken, so that no receive matches it.
using MessageHandle = std::uint64_t;

/// Stands for any connection in receive_tagged() and peek().
inline constexpr ConnectionHandle kAnyConnection = ~ConnectionHandle{0};
/// A mask that compares every bit of the tag.
inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

/// How messages find their receives. The endpoint that connects chooses the kind.
enum class ConnectionKind : std::uint8_t {
  ordered = 1,  ///< the n-th message sent arrives in the n-th buffer posted, without a copy: send(), receive()
  tagged = 2,   ///< messages match receives by tag: send_tagged(), receive_tagged(), peek()
};

/// Whether peek() takes the message that it finds. No receive matches a message that peek() has taken.
enum class Take : std::uint8_t { no = 0, yes = 1 };

/// The reason behind a Code, which makes the text of a completion more precise.
enum class Cause : std::uint8_t {
  none = 0,
  here,                   ///< this end closed or aborted the connection, or cancelled the operation
  peer,                   ///< the peer closed or aborted the connection, or cancelled the message
  silence,                ///< no packet arrived from the peer
  nobody_listens,         ///< the peer's transport refused the connection
  peer_full,              ///< the peer has no room for another connection
  no_introduction,        ///< the peer's transport answers, but its endpoint does not introduce itself
  other_endpoint,         ///< the endpoint at that address is not the endpoint that the program named
  other_version,          ///< the peer has another version of the transport or of the endpoint's frames
  malformed_frame,        ///< the peer sent an invalid frame
  beyond_credit,          ///< the peer sent more unexpected messages than its credit allows
  unasked,                ///< the peer sent an answer without a request
  wrong_length,           ///< the peer sent a message whose length differs from the announced one
  connections_in_use,     ///< this endpoint already has EndpointConfig::max_connections connections
  end_of_endpoint,        ///< this endpoint was closed
  false_acknowledgement,  ///< one end acknowledged data that its peer had never sent
};

/// The end of an operation, or an event.
struct Completion {
  enum class Kind : std::uint8_t {
    connected = 1,  ///< connect() has succeeded or failed
    accepted = 2,   ///< event: a peer has connected and introduced itself; `connection` is ready for use
    /// the message is in the peer's buffer; a tagged message may also be stored at the peer until a receive matches
    sent = 3,
    received = 4,
    peeked = 5,
    /// event: the connection has ended. This is the last event of each accepted or connected connection. It also
    /// reports a failed connect() that has no operation.
    closed = 6,
  };
  Kind kind = Kind::sent;
  Code code = Code::ok;
  Cause cause = Cause::none;
  ConnectionKind connection_kind = ConnectionKind::ordered;
  /// Kind::received: whether `iteration` and `job` are set. They come from the last packet of the message. A tagged
  /// message of at most eager_limit bytes does not set them.
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
  OperationHandle operation = 0;  ///< 0 for events
  /// connection of the operation; with kAnyConnection, connection of the message, or 0 if there is no message
  ConnectionHandle connection = 0;
  /// ordered: tag that was posted. Tagged: tag of the message, or of the receive if there is no message
  std::uint64_t tag = 0;
  Bytes bytes = 0;            ///< length of the message, even if it is longer than the buffer
  MessageHandle message = 0;  ///< the message that peek() took with Take::yes
  void* context = nullptr;    ///< PostOptions::context of the operation
  Address peer{};             ///< address of shard 0 of the peer's endpoint, if known
};
/// Returns one line with cause and cure, such as "receive of tag 0x7 from 10.0.0.2:62400: ...". Allocates memory.
std::string to_text(const Completion& completion);
/// Returns one line with cause and cure. Allocates memory.
std::string to_text(Code code, Cause cause);

/// Called on the thread that drives the operation's shard. A callback may call every function of the endpoint that does
/// not wait (see the description of each function), including close() and the destructor. The shard does nothing else
/// during the callback, so keep the callback short. A callback must not throw.
using Callback = void (*)(void* context, const Completion& completion) noexcept;

/// How an operation reports its end. If `callback` is not null, it is called. If only `queue` is not null, the
/// completion is added to that queue. If both are null, wait() or test() returns the completion; until then the
/// operation counts towards max_operations.
struct PostOptions {
  Callback callback = nullptr;
  CompletionQueue* queue = nullptr;  ///< queue of the same endpoint; must outlive the operation
  void* context = nullptr;           ///< returned in the completion; the endpoint does not use it
  /// After this time the operation ends with Code::timed_out. Must be above 0; never() means no limit. If bytes of the
  /// message are already being sent, the connection ends as well (transport/shard.h). If no bytes of a tagged message
  /// are being sent yet, the message is withdrawn and the connection continues.
  Nanos time_limit = Nanos::never();
};

struct ConnectOptions {
  ConnectionKind kind = ConnectionKind::ordered;
  PostOptions post{};
};

/// Which threads drive the shards.
enum class Driving : std::uint8_t {
  threads,  ///< threads of the endpoint: one for each shard, or one for all if shards pass packets to each other
  caller,   ///< threads of the program, in progress() and in calls that wait
};

/// Settings of an endpoint. All sizes are fixed when it opens; a call that would exceed a size returns an error code.
struct EndpointConfig {
  /// The datapath: `datapath.device`, such as "udp:eth0", and its settings. The endpoint sets `shards` and `sleeps`.
  HostDatapathConfig datapath{};
  /// This host's IP address, and the UDP port of shard 0. If the port is 0, free ports are used: the kernel chooses
  /// them for kernel sockets, and other datapaths use ports from 49152 on.
  Address address{};
  std::uint32_t prefix_bits = 24;
  Address gateway{};  ///< all zero if there is no gateway
  /// 1 to 256; ordered connections are spread over the shards, and tagged connections use shard 0
  std::uint16_t shards = 1;
  Driving driving = Driving::threads;
  Idle idle = Idle::sleep;  ///< what driving threads and waiting calls do while there is no work
  Nanos spin{};  ///< Idle::sleep: time from the latest packet during which a thread polls before it sleeps; up to 1 s
  bool accepts = true;  ///< whether peers may connect
  /// Settings of every connection: congestion control and its parameters (cc::set_from_text() reads them), priority,
  /// ECN. By default check_peer is true, so a peer's reports of marks and losses are verified. max_sends and
  /// max_receives limit ordered connections. The endpoint derives give_up_after, keep_alive and idle_limit from
  /// peer_timeout.
  ConnectionConfig connection = [] {
    ConnectionConfig config;
    config.check_peer = true;
    return config;
  }();
  /// Idle timeout of a peer, 10 ms to 1 h. If no packet arrives from the peer for this long, its connections and all
  /// their operations end, at the latest after 1.5 times this long. The same limit applies to a connection attempt to
  /// an address where nothing answers.
  Nanos peer_timeout{10'000'000'000};

  // Limits for each shard.
  std::uint32_t max_connections = 256;  ///< 1 to 65536; ordered and tagged connections together
  /// How many connections peers at one IP address may open, so that one host cannot use all of them. An IPv6 subnet of
  /// 64 bits counts as one address, and a tagged connection counts twice. 1 to 2^20; no limit if there is no value.
  std::optional<std::uint32_t> max_accepted_per_address{};
  /// operations that have not ended, or for whose end the program has not waited; 1 to 2^20
  std::uint32_t max_operations = 4096;
  std::uint32_t max_jobs = 64;            ///< 0 to 1024
  std::uint32_t max_memory_regions = 64;  ///< limit for the whole endpoint; 0 to 64

  // Settings of tagged connections. Each needs (2 x control_frames + unexpected_messages) x (eager_limit + 64) bytes of
  // memory. A peer can make this endpoint store at most unexpected_messages x eager_limit bytes.
  Bytes eager_limit = 4096;  ///< bytes, 0 to 32768; longer messages wait at the sender until a receive matches
  std::uint32_t unexpected_messages = 128;  ///< unexpected messages of one connection, stored or announced; 1 to 16384
  std::uint32_t control_frames = 32;        ///< control frames in flight in each direction; 4 to 1024

  /// Called for each event `accepted` or `closed`. If the callback is null, events() returns these events.
  Callback event_callback = nullptr;
  void* event_context = nullptr;

  /// Captures all packets into a pcapng file. The text is "FILE[,snap=BYTES][,size=BYTES][,files=N]" (see
  /// transport/capture/capture_options.h). If it is empty, the value of MLTCP_PCAP applies; if that is empty too,
  /// nothing is captured. The endpoint reads the text only while it opens. (A std::string here would make GCC 12 warn
  /// about programs that use designated initializers.)
  std::string_view capture{};

  /// The job's key (transport/security/job_key.h): the path of a key file, or "fd:N". With a key, packets are encrypted
  /// and authenticated, and only peers with the same key can connect. If `key` is empty, the endpoint uses the key in
  /// `connection.keys`, which holds at most one. If that is empty too, the endpoint uses the key that MLTCP_KEY_FILE
  /// names. Without any key, only peers without a key can connect. The endpoint reads the text only while it opens.
  std::string_view key{};
  /// If true, packets are authenticated but not encrypted, so that others can read them. Both ends must use the same
  /// setting, or they cannot connect. The setting applies to the key of `key` or MLTCP_KEY_FILE. If MLTCP_KEY_FILE
  /// names the key and MLTCP_AUTHENTICATE is 1, false has the same effect as true. A key in `connection.keys` carries
  /// its own setting (security::Protection).
  bool authenticate = false;

  /// Seed of the connection ids, for repeatable tests. Without a value the ids are random.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// How reliably the beginning of an iteration is known.
enum class Beginning : std::uint8_t {
  known,    ///< the program states the beginning, which is the same in all processes of the job
  guessed,  ///< this process recognised the beginning in its own traffic; the plan in JobOptions does not apply yet
};

/// A training job. Its iterations control how fast the congestion windows of its connections grow.
struct JobOptions {
  std::uint32_t number = 0;         ///< chosen by the program; data packets carry it
  cc::Augmentation augmentation{};  ///< plain fairness, a constant weight, or MLTCP's function
  Rate max_rate{};                  ///< limit for the job's connections on one shard together; 0: no limit
  /// If true, iterations are learned from the traffic until begin_iteration() gives a size.
  bool learn_iterations = false;
  /// Applies like a plan of Endpoint::set_plan(), from the first begin_iteration() with a size and Beginning::known.
  /// Times are those of Endpoint::now(). Endpoint::create_job() returns Code::invalid if the plan is out of range.
  std::optional<PhasePlan> plan = std::nullopt;
};

/// State of a job as its congestion control sees it, over all shards. Bytes are those of posted messages, without
/// headers and control frames.
struct JobReport {
  std::uint64_t iteration = 0;      ///< number of the latest iteration, begun or learned; 0 before the first iteration
  Bytes bytes_sent = 0;             ///< bytes delivered in this iteration
  Bytes bytes_per_iteration = 0;    ///< 0 if not known
  double bytes_ratio = 0;           ///< delivered share of the bytes of this iteration, 0 to 1
  double gain = 1;                  ///< gain of the increase step; mean over the shards, weighted by connections
  bool between_iterations = false;  ///< true after end_iteration() until the next iteration begins
  /// state on the first shard where the plan is not active; active if the plan is active on all shards
  PlanState plan = PlanState::none;
  std::uint64_t on_slot = 0;
  std::uint64_t corrections = 0;
  std::uint32_t connections = 0;  ///< number of transport connections; a tagged connection consists of two
  double cwnd_bytes = 0;          ///< sum over the connections
  Rate pacing_rate;               ///< sum over the connections; 0 if they are not paced
  Rate delivery_rate;             ///< sum of the latest samples of all connections
  Nanos smoothed_rtt;             ///< highest value of all connections
  Nanos min_rtt;                  ///< lowest value of all connections
  std::uint64_t packets_sent = 0;
  std::uint64_t marked_packets = 0;  ///< packets with a congestion mark (ECN CE)
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
};

struct ConnectionReport {
  ConnectionKind kind = ConnectionKind::ordered;
  bool open = false;  ///< true from when both ends have introduced themselves until the connection ends
  /// if true, end_code and end_cause are valid; other fields are not valid after the event `closed`
  bool has_ended = false;
  Code end_code = Code::ok;
  Cause end_cause = Cause::none;
  EndpointAddress peer;                   ///< empty until the peer has introduced itself
  std::uint16_t shard = 0;                ///< number of this endpoint's shard
  ConnectionStats transport;              ///< state of the transport connection that carries the data
  std::uint32_t unexpected_messages = 0;  ///< tagged: messages that are stored here until a receive matches
  std::uint32_t held_back = 0;            ///< tagged: sends that wait for credit or for a free control frame
};

/// Counters since the endpoint was opened.
struct EndpointReport {
  std::uint64_t operations = 0;        ///< operations that have ended
  std::uint64_t posts_in_place = 0;    ///< operations posted directly by the driving thread, without the queue
  std::uint64_t connections = 0;       ///< current number of connections
  std::uint64_t broken_protocols = 0;  ///< connections that ended because their peer broke the protocol
  std::uint64_t unintroduced = 0;      ///< peers that connected and did not introduce themselves correctly
  std::uint64_t wakeups = 0;           ///< number of times that posting an operation woke a sleeping thread
  ShardStats packets;                  ///< counters of the transport, summed over all shards
  DatapathLosses losses;
};

}  // namespace mltcp::endpoint
