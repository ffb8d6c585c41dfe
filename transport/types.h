// Public types of the transport: identifiers, settings, completions and statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_seal.h"

namespace mltcp {

/// Identifies a connection of a shard; never 0. The low bits, as many as max_connections needs, are the connection's
/// slot; the other bits are random and drawn anew for each connection, so that an attacker cannot guess the id. Slots
/// are reused in the order in which they became free.
using ConnectionId = std::uint32_t;
/// Identifies a job of a shard.
using JobId = std::uint32_t;

/// How an operation ended.
enum class Status : std::uint8_t {
  ok,
  truncated,    ///< received, but longer than the buffer: the buffer holds the beginning
  closed,       ///< the connection was closed before the operation could finish
  refused,      ///< the peer does not listen
  full,         ///< the peer has no room for another connection
  unreachable,  ///< no reply for give_up_after, or no packet for idle_limit (ConnectionConfig), at either end; or the
                ///< peer knows nothing of the connection (any more)
  aborted,      ///< ended by abort(), here or at the peer
  version,      ///< the peer speaks no version of the protocol that this end does, or was made to choose a lesser one
  timed_out,    ///< the operation's deadline passed first
  violation,    ///< an end has acknowledged what the other never sent, or hidden marks: a liar, or somebody in its name
  no_key,       ///< the ends have no key in common: one has none, or another one
};

/// "ok", "truncated", ...
std::string to_text(Status status);

/// Whether an operation (send or receive) was accepted.
enum class PostResult : std::uint8_t {
  ok,
  queue_full,  ///< max_sends, max_receives or max_completions is reached: take completions, then retry
  closed,      ///< no such connection, or it is closing
  too_long,    ///< longer than 4 GiB
  invalid,     ///< a null buffer on a datapath that needs real bytes
};

/// What a shard reports to the program: an operation has finished, or a connection has changed state.
struct Completion {
  enum class Kind : std::uint8_t {
    connected,  ///< connect() succeeded
    accepted,   ///< a listening shard has a new connection
    sent,       ///< the whole message is in the peer's buffer (status ok), or the send has failed (other status)
    received,   ///< a posted receive has finished
    closed,     ///< the connection has ended and its id is invalid; always its last completion
  };
  Kind kind = Kind::sent;
  Status status = Status::ok;
  ConnectionId connection = 0;
  std::uint64_t tag = 0;  ///< as passed to send() or receive()
  Bytes bytes = 0;        ///< length of the message
  // For `received`: the job tag in the message's last packet.
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
};

struct ConnectionConfig {
  std::string congestion_control = "reno";
  std::shared_ptr<const cc::Parameters> parameters;  ///< of the congestion control algorithm; null: the defaults
  bool ecn = false;                                  ///< send ECN-capable packets
  /// Do not trust the peer's word. Marks: mark a packet in some hundreds here, take ECN for not working when that is
  /// hidden, and go by round trips where it does not and the algorithm needs it. (No packet of connections with keys is
  /// marked: nobody seals the field, and another could clear it on the way.) Losses: send a packet in some thousand a
  /// round trip late, under another number, and end with Status::violation when the first is acknowledged. Delays:
  /// algorithms that go by them ask for acknowledgements at once, and count all delay as the path's.
  bool check_peer = false;
  bool full_integrity = false;  ///< CRC-32C over payloads too, not only headers (the UDP checksum covers both anyway)
  bool pack_messages = true;    ///< several short messages may share a packet
  std::uint32_t max_sends = 1024;               ///< messages posted and not completed, 1 to 65536
  std::uint32_t max_receives = 1024;            ///< buffers posted and not completed, 1 to 65536
  std::uint32_t max_packets_in_flight = 16384;  ///< bounds the memory for loss recovery, 16 to 2^20
  Rate max_rate;                                ///< bits on the wire, headers included; 0 = unlimited
  Nanos pacing_quantum{10'000};      ///< paced packets may be delayed up to this, to leave as one batch; 0: never
  Nanos initial_rtt{1'000'000};      ///< assumed until the first RTT sample
  Nanos max_ack_delay{100'000};      ///< maximum delay of an acknowledgement
  Nanos timer_granularity{200'000};  ///< lower bound of the loss and probe timers (kGranularity, RFC 9002)
  Nanos give_up_after{
      30'000'000'000};  ///< the peer is unreachable after so long without progress while packets are in flight
  /// After so long without a packet from the peer, an end sends a PING, so that an end that only receives notices a
  /// peer that has died silently: after keep_alive + give_up_after, or after idle_limit if that is shorter. 0, the
  /// default: never, so idle connections send nothing. Recommended where peers may vanish: 5 to 30 s.
  Nanos keep_alive;
  /// A connection on which no packet arrives for so long ends with Status::unreachable at both ends. 0, the default: no
  /// limit. With keep_alive set, which must be shorter, only a dead peer lets it expire; without, any idle connection
  /// does.
  Nanos idle_limit;
  std::uint32_t ack_every = 2;  ///< packets per acknowledgement, unless the sender asks for fewer acknowledgements
  bool adapt_ack_ratio = true;  ///< ask for fewer acknowledgements at high rates; never for connections of a job
  std::uint8_t priority = 0;    ///< of every packet, 0 to 7, see TxPacket::priority
  bool credit_in_acks =
      true;  ///< send credit (newly posted buffers) inside acknowledgements where possible, instead of in CREDIT frames
  /// Delay the acknowledgement of a message's last packet until the next poll(), so that the program's reply, or the
  /// credit of its next buffer, can travel in the same packet; poll() asks to be called again at once for that. Set to
  /// false in a program that computes for long between polls: the sender would time out meanwhile.
  bool await_answer = true;
  /// Keys of jobs (transport/security/packet_key.h), all made by one function. connect() takes one at most: packets are
  /// sealed with it. A shard that listens with keys accepts only who has one of them, and without keys only who has
  /// none.
  std::vector<std::shared_ptr<const PacketKey>> keys{};

  bool operator==(const ConnectionConfig&) const = default;
};

/// What a connection counts by itself.
struct ConnectionCounters {
  std::uint64_t retransmitted_packets = 0;  ///< packets that carried data of one lost, or held back by check_peer
  std::uint64_t duplicate_packets = 0;      ///< packets whose number had been received before
  /// Duplicates whose contents differ from the first packet with that number: one of the two was forged, or belongs to
  /// an earlier connection with the same id.
  std::uint64_t conflicting_packets = 0;
  /// Messages retransmitted in full, as the peer had acknowledged data that it did not have.
  std::uint32_t repaired_messages = 0;
  std::uint32_t persistent_congestions = 0;  ///< nothing was delivered for three probe timeouts (RFC 9002 section 7.6)
  std::uint64_t congestion_events = 0;
  std::uint64_t ce_packets = 0;  ///< sent packets that arrived with a CE mark
};

struct ConnectionStats : ConnectionCounters {
  std::uint64_t packets_sent = 0;
  Bytes bytes_sent = 0;  ///< UDP payload bytes
  std::uint64_t packets_received = 0;
  std::uint64_t messages_received = 0;  ///< that are whole, in order up to the first that is not
  Bytes end_of_next = 0;                ///< how far that one has come
  std::uint64_t lost_packets = 0;
  std::uint64_t spurious_losses = 0;
  std::uint32_t packet_bytes = 0;         ///< of a full packet now: of its UDP payload
  std::uint32_t agreed_packet_bytes = 0;  ///< what both ends accept; above packet_bytes where the path carries less
  Bytes in_flight = 0;
  double cwnd_bytes = 0;
  Rate pacing_rate;
  Rate delivery_rate;        ///< latest sample; 0 before the first
  bool app_limited = false;  ///< delivery_rate was limited by the application, not by the path
  Nanos smoothed_rtt;
  Nanos min_rtt;
  Nanos held_until = Nanos::never();  ///< data waits for the pacer or the phase gate until then; never() if for neither
  Nanos due = Nanos::never();         ///< when the connection acts though nothing comes; never() if it does not
};

/// A shard's counters, of which docs/explanation/transport.md has the table. Those from `truncated_packets` to
/// `forged_resets` count received packets that were dropped, each by one of them (a packet whose data has no buffer
/// counts once for each such piece).
struct ShardStats {
  std::uint64_t packets_received = 0;   ///< dropped ones, too
  std::uint64_t packets_sent = 0;       ///< by all connections, and answers without one
  std::uint64_t truncated_packets = 0;  ///< shorter than they say
  std::uint64_t foreign_packets = 0;    ///< not packets of this protocol
  std::uint64_t corrupted_packets = 0;  ///< wrong checksum
  std::uint64_t malformed_packets = 0;  ///< impossible contents, two ACKs, or more than CONNECT to connection 0
  /// No such connection (any more), or sent from another address than its peer's.
  std::uint64_t unknown_connection = 0;
  std::uint64_t beyond_credit = 0;  ///< data without a receive buffer: never credited, or its receive has timed out
  std::uint64_t beyond_holes = 0;   ///< data that would leave a hole beyond reassembly_bytes, or too many in a message
  /// Right connection, wrong tag, or not sealed by its peer; a sealed ACCEPT beyond those that are tried; this end's
  /// own CONNECT, sealed, that was turned back.
  std::uint64_t forged_packets = 0;
  std::uint64_t replayed_packets = 0;  ///< sealed with the connection's key, and had come before, or may have
  /// RESET of a connection that is not there, or with a wrong tag, or of a sealed one whose peer then answered.
  std::uint64_t forged_resets = 0;
  std::uint64_t refused_connects = 0;  ///< CONNECTs answered with CLOSE: nobody listens, no room, no version in common
  std::uint64_t retries_sent = 0;  ///< CONNECTs answered with RETRY: they come again with a cookie, if they are true
  std::uint64_t cookies_accepted = 0;  ///< connections whose address a cookie has proven
  /// Half-open connections whose peers did not answer in time, or whose places others got.
  std::uint64_t unproven_ended = 0;
  std::uint64_t resets_sent = 0;      ///< packets of unknown connections that were answered with RESET
  std::uint64_t resets_withheld = 0;  ///< those that were not, beyond resets_per_second
  std::uint64_t resets_taken = 0;     ///< connections here that a peer's RESET has ended
  std::uint64_t downgrades = 0;       ///< ACCEPTs with another version than the highest in common
  std::uint64_t violations = 0;       ///< connections ended since their peer acknowledged what was never sent
  std::uint64_t held_off = 0;         ///< CONNECTs from, and connect()s to, addresses where that was so lately
  std::uint64_t black_holes = 0;      ///< paths found to drop long packets, whose connections went on with shorter ones
  std::uint64_t size_probes_sent = 0;  ///< packets that tried how long packets a path carries
  std::uint64_t size_probes_lost = 0;  ///< of those
  /// Places taken now, of max_connections: by connections, and by those that have ended and still tell their peer.
  std::uint32_t connections = 0;
  /// Connections that had ended by the last poll(), which is told when the datapath has read what they sent.
  std::uint32_t ends_held = 0;
  std::uint32_t half_open = 0;   ///< half-open connections now that no cookie has opened
  std::uint64_t hole_bytes = 0;  ///< memory now that holes take beyond what each message has of its own

  /// Packets that are none of this protocol, or damaged.
  [[nodiscard]] std::uint64_t rejected_packets() const {
    return truncated_packets + foreign_packets + corrupted_packets + malformed_packets;
  }
};

struct ShardConfig {
  std::uint32_t max_connections = 1024;  ///< 1 to 2^20 - 1
  /// Of these, how many are for connect() alone, so that others who connect cannot take them: where no more than so
  /// many are free, they are refused with Status::full. 0 to max_connections.
  std::uint32_t kept_for_connect = 0;
  /// So many accepted connections may wait for proof of their address; while there are as many, who connects is asked
  /// to bring a cookie back first, and nothing is kept of it until then. 0: always. Without a value: a quarter of
  /// max_connections, at least 1. Connections that a cookie has opened are half open, too, until their peer answers.
  std::optional<std::uint32_t> max_half_open = std::nullopt;
  /// So many accepted connections may one address have, an IPv6 subnet of 64 bits counting as one, once it has proven
  /// that it receives there; further ones are refused with Status::full. Those that wait for proof don't count: others
  /// may send in its name. A crashed peer's do, until idle_limit ends them. 1 or more; without a value: any number.
  std::optional<std::uint32_t> max_accepted_per_address = std::nullopt;
  /// Packets of unknown connections that are answered with RESET, which tells a peer that this end has been restarted.
  /// 0: none.
  std::uint32_t resets_per_second = 1000;
  /// Where others find this shard. With keys it refuses its own CONNECT when that comes back, as somebody on the path
  /// could have it connect with itself so, unless it was to this address that it connected. Without a value: always.
  std::optional<Address> own_address = std::nullopt;
  /// Bound of the memory that all connections' holes in partly received messages take, beyond what each message has of
  /// its own (8 holes); one connection may take half of what the others have left. A packet that would leave a hole
  /// beyond it is dropped, and comes again.
  Bytes reassembly_bytes = Bytes{4} << 20;
  std::uint32_t max_jobs = 64;
  std::uint32_t max_completions = 1 << 16;  ///< completions not yet taken; at this limit, posting returns queue_full
  /// Sends that may be in progress at once with the datapath reading the user's buffer (zero copy); further ones are
  /// copied. 0 to 65535; 0 = all are copied.
  std::uint32_t max_zero_copy_sends = 1024;
  /// Prefetch into the CPU cache the connections of a received burst before processing it.
  bool prefetch = true;
  /// Sum what received packets claim of their jobs: Shard::job_claims().
  bool count_job_claims = false;
  /// Seed of connection ids, tags, cookies and skipped packet numbers, for reproducible simulations and tests. Without
  /// a seed they come from the system's random numbers, so that nobody can guess them. With a seed, 12 bits of it go
  /// into the first id of each slot, see Shard::first_connections().
  std::optional<std::uint64_t> seed = std::nullopt;
};

struct JobConfig {
  std::uint32_t number = 0;       ///< chosen by the caller; sent in data packets and shown in the peer's completions
  cc::Augmentation augmentation;  ///< MLTCP: scales the congestion window's increase step
  Rate max_rate;                  ///< of all connections of the job together, bits on the wire; 0 = unlimited
  /// Packets that max_rate delays may be gathered for up to this time and leave together, 0 to 1 s: fewer wake-ups.
  Nanos pacing_quantum{0};
  /// A poll() that comes late may send at once what max_rate allowed during the delay, up to this time's worth, 0 to 1
  /// s, besides the burst of four packets that is always allowed. The link's queue must have room for the burst.
  Nanos catch_up{0};
  /// Learn the iteration boundaries from the job's traffic (cc/iteration_learner.h) until begin_iteration() states a
  /// size.
  bool learn_iterations = false;
};

}  // namespace mltcp
