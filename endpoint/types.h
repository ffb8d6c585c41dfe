// Values that a program and an endpoint exchange: handles, completions, options, settings, reports.
//
// A handle contains a generation number: after its object is gone, it names nothing (except after 2^32 further objects
// at the same place), and calls with it return Code::unknown. 0 is never a handle. For connections that have ended see
// Endpoint::how_ended().
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

/// Any connection; for receive_tagged() and peek().
inline constexpr ConnectionHandle kAnyConnection = ~ConnectionHandle{0};
/// A mask that compares every bit of the tag.
inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

/// How messages find receives. The end that connects chooses.
enum class ConnectionKind : std::uint8_t {
  ordered = 1,  ///< the n-th message sent arrives in the n-th buffer posted, without a copy: send(), receive()
  tagged = 2,   ///< messages match receives by tag: send_tagged(), receive_tagged(), peek()
};

/// Whether peek() takes the message that it finds, so that no receive matches it.
enum class Take : std::uint8_t { no = 0, yes = 1 };

/// Details of a Code, for the text of a completion.
enum class Cause : std::uint8_t {
  none = 0,
  here,                   ///< this end closed, aborted or cancelled
  peer,                   ///< the peer closed, aborted or cancelled
  silence,                ///< no packet arrived from the peer
  nobody_listens,         ///< the peer's transport refused
  peer_full,              ///< the peer has no room for a connection
  no_introduction,        ///< the peer's transport answers, but its endpoint does not introduce itself
  other_endpoint,         ///< the endpoint at that address is not the one that the address names
  other_version,          ///< the peer has another version of the transport or of the endpoint's frames
  malformed_frame,        ///< the peer sent an invalid frame
  beyond_credit,          ///< the peer sent more unexpected messages than its credit allows
  unasked,                ///< the peer sent an answer without a request
  wrong_length,           ///< the peer sent a message whose length differs from the announced one
  connections_in_use,     ///< this endpoint has EndpointConfig::max_connections connections
  end_of_endpoint,        ///< this endpoint was closed
  false_acknowledgement,  ///< one end acknowledged data that the other had never sent
};

/// The end of an operation, or an event.
struct Completion {
  enum class Kind : std::uint8_t {
    connected = 1,  ///< connect() has succeeded or failed
    accepted = 2,   ///< event: a peer has connected and introduced itself; `connection` is ready for use
    sent = 3,       ///< the message is in the peer's buffer; a tagged one may be stored at the peer for a receive
    received = 4,
    peeked = 5,
    closed = 6,  ///< event: the connection has ended. The last event of each connection that was accepted or connected,
                 ///< and of each that failed to connect without an operation to report it
  };
  Kind kind = Kind::sent;
  Code code = Code::ok;
  Cause cause = Cause::none;
  ConnectionKind connection_kind = ConnectionKind::ordered;
  /// Kind::received: `iteration` and `job` are set, from the last packet of the message (ordered messages, and tagged
  /// ones longer than eager_limit).
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
  OperationHandle operation = 0;    ///< 0 for events
  ConnectionHandle connection = 0;  ///< for kAnyConnection: the message's connection, 0 without a message
  std::uint64_t tag = 0;            ///< ordered: as posted. Tagged: the message's, or the receive's without a message
  Bytes bytes = 0;                  ///< length of the message, even if it is longer than the buffer
  MessageHandle message = 0;        ///< peek() with Take::yes
  void* context = nullptr;          ///< as posted
  Address peer{};                   ///< shard 0 of the peer's endpoint, if known
};
/// One line, such as "receive of tag 0x7 from 10.0.0.2:62400: " with cause and cure. Allocates.
std::string to_text(const Completion& completion);
/// One line with cause and cure. Allocates.
std::string to_text(Code code, Cause cause);

/// Called on the thread that drives the operation's shard. It may call every function of the endpoint that does not
/// wait (see each), including close() and the destructor. The shard does nothing else meanwhile, so keep it short. It
/// must not throw.
using Callback = void (*)(void* context, const Completion& completion) noexcept;

/// How an operation reports its end: by `callback` if it is not null, else in `queue` if it is not null, else to wait()
/// or test(); until one of these returns its end, it counts towards max_operations.
struct PostOptions {
  Callback callback = nullptr;
  CompletionQueue* queue = nullptr;  ///< of the same endpoint; must outlive the operation
  void* context = nullptr;           ///< returned in the completion; the endpoint does not use it
  /// After this time the operation ends with Code::timed_out. Above 0; never(): no limit. If bytes of the message are
  /// already being sent, its connection ends, too (transport/shard.h). A tagged message that is held back or announced
  /// is withdrawn, and the connection continues.
  Nanos time_limit = Nanos::never();
};

struct ConnectOptions {
  ConnectionKind kind = ConnectionKind::ordered;
  PostOptions post{};
};

/// Which threads drive the shards.
enum class Driving : std::uint8_t {
  threads,  ///< the endpoint's own: one for each shard, or one for all if shards pass packets to each other
  caller,   ///< the program's, in progress() and in calls that wait
};

/// All sizes are fixed when the endpoint opens; a call that would exceed one returns a code.
struct EndpointConfig {
  /// The datapath: `datapath.device`, such as "udp:eth0", and its settings. The endpoint sets `shards` and `sleeps`.
  HostDatapathConfig datapath{};
  /// This host's IP address, and the UDP port of shard 0. Port 0: free ports, chosen by the kernel for kernel sockets,
  /// else from 49152 on.
  Address address{};
  std::uint32_t prefix_bits = 24;
  Address gateway{};         ///< all zero: none
  std::uint16_t shards = 1;  ///< 1 to 256. Ordered connections are spread over them; tagged ones all use shard 0
  Driving driving = Driving::threads;
  Idle idle = Idle::sleep;  ///< for the driving threads, and for calls that wait
  Nanos spin{};             ///< Idle::sleep: polls for this long after the latest packet before it sleeps; up to 1 s
  bool accepts = true;      ///< peers may connect
  /// Settings of every connection: congestion control and its parameters (cc::set_from_text() reads them), priority,
  /// ECN. check_peer is true: a peer's reports of marks and losses are verified. max_sends and max_receives bound
  /// ordered connections. The endpoint derives give_up_after, keep_alive and idle_limit from peer_timeout.
  ConnectionConfig connection = [] {
    ConnectionConfig config;
    config.check_peer = true;
    return config;
  }();
  /// If no packet arrives from a peer for this long, or for up to half as long again, its connections end, and with
  /// them all their operations; so does connecting to an address where nothing answers. 10 ms to 1 h.
  Nanos peer_timeout{10'000'000'000};

  // Bounds for each shard.
  std::uint32_t max_connections = 256;  ///< 1 to 65536, of both kinds together
  /// How many connections peers at one IP address may open, so that one host cannot use all of them. An IPv6 subnet of
  /// 64 bits counts as one address; a tagged connection counts twice. 1 to 2^20; without a value: no limit.
  std::optional<std::uint32_t> max_accepted_per_address{};
  std::uint32_t max_operations = 4096;    ///< operations that have not ended, or not been waited for; 1 to 2^20
  std::uint32_t max_jobs = 64;            ///< 0 to 1024
  std::uint32_t max_memory_regions = 64;  ///< for the whole endpoint, 0 to 64

  // Tagged connections. Each needs (2 x control_frames + unexpected_messages) x (eager_limit + 64) bytes of memory: a
  // peer can make this endpoint store unexpected_messages x eager_limit bytes, and no more.
  Bytes eager_limit = 4096;                 ///< longer messages wait at the sender for their receive; 0 to 32768
  std::uint32_t unexpected_messages = 128;  ///< stored or announced for one connection; 1 to 16384
  std::uint32_t control_frames = 32;        ///< in flight in each direction, 4 to 1024

  /// Receives the events `accepted` and `closed`. Null: they are in events().
  Callback event_callback = nullptr;
  void* event_context = nullptr;

  /// Captures all packets into a pcapng file: "FILE[,snap=BYTES][,size=BYTES][,files=N]", as
  /// transport/capture/capture_options.h reads it. Empty: the value of MLTCP_PCAP, or no capture. Read while the
  /// endpoint opens. (A std::string here would make GCC 12 warn about programs that use designated initializers.)
  std::string_view capture{};

  /// The job's key (transport/security/job_key.h): a file or "fd:N". Packets are then encrypted and authenticated, and
  /// only peers with the same key can connect. Empty: the key in `connection.keys` (at most one), else that of
  /// MLTCP_KEY_FILE, else none: then only peers without a key can connect. Read while the endpoint opens.
  std::string_view key{};
  /// With the key of `key` or MLTCP_KEY_FILE: authenticate packets, but do not encrypt them, so that others can read
  /// them. Both ends must agree, or they cannot connect. False has the same effect as true if MLTCP_KEY_FILE names the
  /// key and MLTCP_AUTHENTICATE is 1. A key in `connection.keys` carries its own setting (security::Protection).
  bool authenticate = false;

  /// Seed of connection ids, for repeatable tests.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// How reliably the beginning of an iteration is known.
enum class Beginning : std::uint8_t {
  known,    ///< the program states it, and the job's other processes agree
  guessed,  ///< this process recognised it in its own traffic: a plan given with the job does not apply yet
};

/// A training job. Its iterations control how fast the congestion windows of its connections grow.
struct JobOptions {
  std::uint32_t number = 0;         ///< chosen by the program; data packets carry it
  cc::Augmentation augmentation{};  ///< plain fairness, a constant weight, or MLTCP's function
  Rate max_rate{};                  ///< of the job's connections on one shard together; 0: no limit
  /// Learn iterations from the traffic until begin_iteration() gives a size.
  bool learn_iterations = false;
  /// Applies as Endpoint::set_plan() does, from the first begin_iteration() with a size and Beginning::known. Times are
  /// those of Endpoint::now(). Code::invalid if out of range.
  std::optional<PhasePlan> plan = std::nullopt;
};

/// A job as its congestion control sees it, over all shards. Bytes are those of posted messages, without headers and
/// control frames.
struct JobReport {
  std::uint64_t iteration = 0;       ///< begun or learned; 0 before the first
  Bytes bytes_sent = 0;              ///< delivered in this iteration
  Bytes bytes_per_iteration = 0;     ///< 0: not known
  double bytes_ratio = 0;            ///< 0 to 1
  double gain = 1;                   ///< of the increase step; mean over the shards, weighted by connections
  bool between_iterations = false;   ///< end_iteration() was called
  PlanState plan = PlanState::none;  ///< of the first shard whose plan is not active, else of all shards
  std::uint64_t on_slot = 0;
  std::uint64_t corrections = 0;
  std::uint32_t connections = 0;  ///< of the transport: a tagged connection has two
  double cwnd_bytes = 0;          ///< sum
  Rate pacing_rate;               ///< sum; 0: not paced
  Rate delivery_rate;             ///< sum of the latest samples
  Nanos smoothed_rtt;             ///< highest
  Nanos min_rtt;                  ///< lowest
  std::uint64_t packets_sent = 0;
  std::uint64_t marked_packets = 0;  ///< CE
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
};

struct ConnectionReport {
  ConnectionKind kind = ConnectionKind::ordered;
  bool open = false;       ///< both ends have introduced themselves, and it has not ended
  bool has_ended = false;  ///< see end_code and end_cause; the other fields are not valid after the event `closed`
  Code end_code = Code::ok;
  Cause end_cause = Cause::none;
  EndpointAddress peer;                   ///< empty until the peer has introduced itself
  std::uint16_t shard = 0;                ///< of this endpoint
  ConnectionStats transport;              ///< of the transport's connection that carries the data
  std::uint32_t unexpected_messages = 0;  ///< tagged: stored here for a later receive
  std::uint32_t held_back = 0;            ///< tagged: sends that wait for credit or control frames
};

/// Counters since the endpoint was opened.
struct EndpointReport {
  std::uint64_t operations = 0;        ///< that have ended
  std::uint64_t posts_in_place = 0;    ///< posted directly by the driving thread, without the queue
  std::uint64_t connections = 0;       ///< current number
  std::uint64_t broken_protocols = 0;  ///< connections that ended because their peer broke the protocol
  std::uint64_t unintroduced = 0;      ///< peers that connected and did not introduce themselves correctly
  std::uint64_t wakeups = 0;           ///< sleeping threads that a post woke
  ShardStats packets;                  ///< sum over all shards
  DatapathLosses losses;
};

}  // namespace mltcp::endpoint
