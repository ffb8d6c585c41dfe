// The words that a program and an endpoint exchange: handles, completions, options, settings, reports.
//
// Handles are numbers that carry a generation: one whose object is gone names nothing ever after (but for one in 2^32
// objects at the same place), and calls with it return Code::unknown. 0 is never a handle. Of a connection that has
// ended see Endpoint::how_ended().
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
/// An unexpected message that peek() has taken out of matching.
using MessageHandle = std::uint64_t;

/// In place of a connection, of receives by tag and of peek(): whichever.
inline constexpr ConnectionHandle kAnyConnection = ~ConnectionHandle{0};
/// Every bit of the tag counts.
inline constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

/// What a connection carries, chosen by the end that connects.
enum class ConnectionKind : std::uint8_t {
  ordered = 1,  ///< the n-th message sent lands in the n-th buffer posted, in place: send(), receive()
  tagged = 2,   ///< messages find buffers by tag: send_tagged(), receive_tagged(), peek()
};

/// Whether peek() takes the message that it finds out of matching.
enum class Take : std::uint8_t { no = 0, yes = 1 };

/// Why, beyond the code: what the text of a completion says.
enum class Cause : std::uint8_t {
  none = 0,
  here,             ///< this end closed, aborted or cancelled
  peer,             ///< the peer did
  silence,          ///< nothing was heard of the peer
  nobody_listens,   ///< the peer's transport refused
  peer_full,        ///< the peer has no room for a connection
  no_introduction,  ///< the peer's transport answers, but its endpoint doesn't introduce itself
  other_endpoint,   ///< another endpoint than the one named, or it was named by another's address
  other_version,    ///< of the transport or of the endpoint's frames
  malformed_frame,  ///< a frame of the peer's that can't be
  beyond_credit,    ///< the peer sent more unexpected messages than it was allowed, or took more credit than there is
  unasked,          ///< the peer answered what nobody had asked
  wrong_length,     ///< the peer sent another length than it had announced
  connections_in_use,     ///< here: EndpointConfig::max_connections
  end_of_endpoint,        ///< this endpoint was closed
  false_acknowledgement,  ///< an end acknowledged what the other had never sent
};

/// Something ended or happened.
struct Completion {
  enum class Kind : std::uint8_t {
    connected = 1,  ///< connect(): both ends know each other, or it failed
    accepted = 2,   ///< event: a peer has connected and introduced itself; `connection` is ready for use
    sent = 3,       ///< ordered: in the peer's buffer. By tag: in the peer's buffer, or held by the peer for a receive
    received = 4,
    peeked = 5,
    closed = 6,  ///< event: the connection is over. The last of each that was accepted or connected, and of those that
                 ///< could not connect and have no operation to tell of that
  };
  Kind kind = Kind::sent;
  Code code = Code::ok;
  Cause cause = Cause::none;
  ConnectionKind connection_kind = ConnectionKind::ordered;
  /// received: whose data the last packet of the message said it was (ordered messages, and long ones by tag).
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
  OperationHandle operation = 0;    ///< 0 of events
  ConnectionHandle connection = 0;  ///< of receives from any: that of the message, 0 if there was none
  std::uint64_t tag = 0;            ///< ordered: as posted. By tag: the message's, or that of the receive if none came
  Bytes bytes = 0;                  ///< length of the message, also where it is longer than the buffer
  MessageHandle message = 0;        ///< peeked with Take::yes
  void* context = nullptr;          ///< as posted
  Address peer{};                   ///< shard 0 of the peer's endpoint, as far as known
};
/// "receive of tag 0x7 from 10.0.0.2:62400: the peer was not heard for its time limit; see that its process runs" in
/// one line. Allocates.
std::string to_text(const Completion& completion);
/// "the connection was ended at once; connect again (by the peer)". Allocates.
std::string to_text(Code code, Cause cause);

/// Called on the thread that drives the operation's shard. It may call everything of the endpoint, close() and the
/// destructor included, but for what waits (Endpoint says so at each); it should be short, since its shard stands still
/// meanwhile, and must not throw.
using Callback = void (*)(void* context, const Completion& completion) noexcept;

/// How an operation tells of its end: by `callback` if it is not null, else through `queue` if that is not null, and
/// otherwise to who asks by wait() or test(), until when its handle keeps one of max_operations occupied.
struct PostOptions {
  Callback callback = nullptr;
  CompletionQueue* queue = nullptr;  ///< of the same endpoint; outlives the operation
  void* context = nullptr;           ///< handed back; the endpoint does not look at it
  /// Ends with Code::timed_out if it has not before; above 0, never(): no limit. What has begun then: of ordered
  /// messages see transport/shard.h, the connection ends. By tag: a message that is held back or announced is taken
  /// back, the connection goes on; while its bytes are on their way the connection ends.
  Nanos time_limit = Nanos::never();
};

struct ConnectOptions {
  ConnectionKind kind = ConnectionKind::ordered;
  PostOptions post{};
};

/// Who drives the shards.
enum class Driving : std::uint8_t {
  threads,  ///< threads of the endpoint's own, one a shard; one for all where shards hand packets to each other
  caller,   ///< the program, by progress(), or by what waits
};

/// Sizes are fixed at set-up: beyond them calls say so, and nothing grows.
struct EndpointConfig {
  /// Which datapath: `datapath.device`, such as "udp:eth0", and what it needs. `shards` and `sleeps` are filled in.
  HostDatapathConfig datapath{};
  /// The own IP address on the network, and the UDP port of shard 0; port 0: some that are free, which the kernel
  /// chooses where it has the sockets; else from 49152 on.
  Address address{};
  std::uint32_t prefix_bits = 24;
  Address gateway{};         ///< all zero: none
  std::uint16_t shards = 1;  ///< 1 to 256. Ordered connections are spread over them; by tag all are of shard 0
  Driving driving = Driving::threads;
  Idle idle = Idle::sleep;  ///< of the threads, and of what waits
  Nanos spin{};             ///< Idle::sleep: after the latest packet it looks for so long before it sleeps; up to 1 s
  bool accepts = true;      ///< others may connect
  /// Of every connection: congestion control and its parameters (cc::set_from_text() reads them), priority, ECN, whose
  /// peers are not trusted to report marks and losses unless the program sets check_peer = false.
  /// max_sends and max_receives bound ordered connections; give_up_after, keep_alive and idle_limit follow from
  /// peer_timeout.
  ConnectionConfig connection = [] {
    ConnectionConfig config;
    config.check_peer = true;
    return config;
  }();
  /// A peer that was not heard for so long is gone: everything outstanding with it ends, and connecting to nobody does.
  /// It may take half as long again. 10 ms to 1 h.
  Nanos peer_timeout{10'000'000'000};

  // Bounds, each shard's.
  std::uint32_t max_connections = 256;  ///< 1 to 65536, of both kinds
  /// Of those that others open, so many from one address, an IPv6 subnet of 64 bits counting as one: one host that may
  /// connect can't keep out all others. One by tag takes two. 1 to 2^20; without a value: any number.
  std::optional<std::uint32_t> max_accepted_per_address{};
  std::uint32_t max_operations = 4096;    ///< posted and not ended (or not waited for), 1 to 2^20
  std::uint32_t max_jobs = 64;            ///< 0 to 1024
  std::uint32_t max_memory_regions = 64;  ///< of the endpoint, 0 to 64

  // By tag. Memory of a tagged connection: (2 x control_frames + unexpected_messages) x (eager_limit + 64) bytes, so
  // that the peer can have this endpoint hold unexpected_messages x eager_limit bytes and no more.
  Bytes eager_limit = 4096;                 ///< longer messages wait at the sender for their receive; 0 to 32768
  std::uint32_t unexpected_messages = 128;  ///< of a connection, that no receive has asked for; 1 to 16384
  std::uint32_t control_frames = 32;        ///< under way each way, 4 to 1024

  /// Of events: accepted and closed. If `event_callback` is null they are in events().
  Callback event_callback = nullptr;
  void* event_context = nullptr;

  /// Of what goes through the datapath, to a pcapng file: "FILE[,snap=BYTES][,size=BYTES][,files=N]", as
  /// transport/capture/capture_options.h reads it. Empty: what MLTCP_PCAP says, or nothing. The text is the caller's
  /// and is read while the endpoint opens. (Another std::string here would have GCC 12 warn of every program that names
  /// members.)
  std::string_view capture{};

  /// The key of the job (transport/security/job_key.h), as a file or "fd:N": this endpoint's packets are sealed, and it
  /// accepts and reaches only peers that have the same key. Empty: what `connection.keys` has, which is then one at
  /// most; or else what MLTCP_KEY_FILE says, or none: then it accepts and reaches only peers without a key. The text is
  /// the caller's and is read while the endpoint opens.
  std::string_view key{};
  /// With the key that `key` or MLTCP_KEY_FILE names, packets are authenticated and not encrypted: who sees them can
  /// read them. At both ends, or else they have no key in common. False: so it is only where MLTCP_KEY_FILE names the
  /// key and MLTCP_AUTHENTICATE is 1. A key of `connection.keys` says it itself (security::Protection).
  bool authenticate = false;

  /// Of connection ids, for tests that are to be the same every time.
  std::optional<std::uint64_t> seed = std::nullopt;
};

/// How well who begins an iteration knows that it begins.
enum class Beginning : std::uint8_t {
  known,    ///< the program says so, as the job's other processes do
  guessed,  ///< recognised in the traffic, by this process alone: a plan that was given with the job does not count yet
};

/// A training job whose connections' increase step follows its iterations.
struct JobOptions {
  std::uint32_t number = 0;         ///< of the program's choice; carried in data packets
  cc::Augmentation augmentation{};  ///< plain fairness, a constant weight, or MLTCP's function
  Rate max_rate{};                  ///< of each shard's connections together; 0: no limit
  /// Iterations are found in the traffic until begin_iteration() names a size.
  bool learn_iterations = false;
  /// As by Endpoint::set_plan() as soon as begin_iteration() of Beginning::known names a size, that iteration included.
  /// Times are those of Endpoint::now(). One that is out of range is Code::invalid.
  std::optional<PhasePlan> plan = std::nullopt;
};

/// What the congestion control sees of a job, all shards together. Bytes are those of messages, as they were posted:
/// what the endpoints say to each other beside them does not count.
struct JobReport {
  std::uint64_t iteration = 0;       ///< begun, or found; 0 before the first
  Bytes bytes_sent = 0;              ///< delivered in it
  Bytes bytes_per_iteration = 0;     ///< 0: not known
  double bytes_ratio = 0;            ///< 0 to 1
  double gain = 1;                   ///< of the increase step; of several shards, the mean by their connections
  bool between_iterations = false;   ///< end_iteration() was called
  PlanState plan = PlanState::none;  ///< of the first shard that has one that is not active, else of all
  std::uint64_t on_slot = 0;
  std::uint64_t corrections = 0;
  std::uint32_t connections = 0;  ///< transport's: two for each tagged one
  double cwnd_bytes = 0;          ///< sum
  Rate pacing_rate;               ///< sum; 0: not paced
  Rate delivery_rate;             ///< sum of the latest samples
  Nanos smoothed_rtt;             ///< highest
  Nanos min_rtt;                  ///< least
  std::uint64_t packets_sent = 0;
  std::uint64_t marked_packets = 0;  ///< CE
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
};

struct ConnectionReport {
  ConnectionKind kind = ConnectionKind::ordered;
  bool open = false;       ///< both ends know each other, and it has not ended
  bool has_ended = false;  ///< and how: then nothing else counts once the event `closed` was told
  Code end_code = Code::ok;
  Cause end_cause = Cause::none;
  EndpointAddress peer;                   ///< empty until the peer has introduced itself
  std::uint16_t shard = 0;                ///< here
  ConnectionStats transport;              ///< of what carries the data
  std::uint32_t unexpected_messages = 0;  ///< by tag: held here, and not taken
  std::uint32_t held_back = 0;            ///< by tag: sends that wait for credit or frames
};

/// Counted since the endpoint was opened.
struct EndpointReport {
  std::uint64_t operations = 0;        ///< that have ended
  std::uint64_t posts_in_place = 0;    ///< posted on the thread that drives, without the queue
  std::uint64_t connections = 0;       ///< that are there
  std::uint64_t broken_protocols = 0;  ///< connections that were ended for what their peer said
  std::uint64_t strangers = 0;         ///< that connected and did not introduce themselves as they should
  std::uint64_t wakeups = 0;           ///< of threads that slept, by posts
  ShardStats packets;                  ///< all shards'
  DatapathLosses losses;
};

}  // namespace mltcp::endpoint
