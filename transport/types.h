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
/// slot. The other bits are random and new for each connection, so that an attacker cannot guess the id. Slots are
/// reused in the order in which they became free.
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
                ///< peer does not know the connection, for example after a restart
  aborted,      ///< ended by abort(), here or at the peer
  version,      ///< the ends have no protocol version in common, or the peer did not choose the highest common one
  timed_out,    ///< the operation's deadline passed first
  violation,    ///< one end has acknowledged data that the other never sent: it lies, or a third party forged packets
  no_key,       ///< the ends have no key in common: only one has a key, or they have different ones
};

/// The name of the value: "ok", "truncated", ...
std::string to_text(Status status);

/// Whether an operation (send or receive) was accepted.
enum class PostResult : std::uint8_t {
  ok,
  queue_full,  ///< max_sends, max_receives or max_completions is reached: take completions, then retry
  closed,      ///< no such connection, or it is closing
  too_long,    ///< longer than 4 GiB
  invalid,     ///< a null buffer on a datapath that needs real bytes
};

/// A shard's report to the program: an operation has finished, or a connection has changed state.
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
  // Kind::received: the job tag in the message's last packet.
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
};

struct ConnectionConfig {
  std::string congestion_control = "reno";
  std::shared_ptr<const cc::Parameters> parameters;  ///< parameters of congestion_control; null: the defaults
  bool ecn = false;                                  ///< send ECN-capable packets
  /// Verify the peer's reports instead of trusting them.
  /// - Marks: every few hundred packets this end marks some itself. If the peer does not report these marks, ECN counts
  ///   as not working for a while; an algorithm that needs ECN then treats long round-trip times as marks. Connections
  ///   with keys send no such packets, because the ECN field is not sealed and a third party could clear it.
  /// - Losses: the data of about one packet in 1500 is sent a round trip late, under another packet number. The
  ///   connection ends with Status::violation if the peer acknowledges the number that was not sent (without keys, the
  ///   second time).
  /// - Delays: algorithms that use the peer's delay request acknowledgements at once on slow flows, and count the whole
  ///   round-trip time as the path's.
  bool check_peer = false;
  bool full_integrity = false;  ///< CRC-32C over payloads too, not only headers (the UDP checksum always covers both)
  bool pack_messages = true;    ///< several short messages may share a packet
  std::uint32_t max_sends = 1024;               ///< messages posted and not completed, 1 to 65536
  std::uint32_t max_receives = 1024;            ///< buffers posted and not completed, 1 to 65536
  std::uint32_t max_packets_in_flight = 16384;  ///< limits the memory for loss recovery, 16 to 2^20
  Rate max_rate;                                ///< bits on the wire, headers included; 0 = unlimited
  Nanos pacing_quantum{10'000};      ///< maximum delay of paced packets, so that several leave together; 0: no delay
  Nanos initial_rtt{1'000'000};      ///< assumed until the first RTT sample
  Nanos max_ack_delay{100'000};      ///< maximum delay of an acknowledgement
  Nanos timer_granularity{200'000};  ///< lower bound of the loss and probe timers (kGranularity, RFC 9002)
  Nanos give_up_after{
      30'000'000'000};  ///< the peer is unreachable after this time without progress while packets are in flight
  /// An end sends a PING after this time without a packet from the peer, so that an end that only receives detects a
  /// dead peer: after keep_alive + give_up_after, or after idle_limit if that is shorter. 0, the default: no PING, so
  /// idle connections send nothing. Recommended if peers may fail without notice: 5 to 30 s.
  Nanos keep_alive;
  /// A connection ends with Status::unreachable at both ends after this time without a packet. 0, the default: no
  /// limit. With keep_alive, which must be shorter, only connections to dead peers end; without it, all idle ones do.
  Nanos idle_limit;
  std::uint32_t ack_every = 2;  ///< packets per acknowledgement, unless the sender asks for fewer acknowledgements
  bool adapt_ack_ratio = true;  ///< request fewer acknowledgements at high rates; never for connections of a job
  std::uint8_t priority = 0;    ///< priority of every packet, 0 to 7, see TxPacket::priority
  /// Send credit (newly posted buffers) inside acknowledgements if possible, instead of in CREDIT frames.
  bool credit_in_acks = true;
  /// Delay the acknowledgement of a message's last packet until the next poll(), so that the program's reply, or the
  /// credit of its next buffer, can travel in the same packet; poll() then returns the current time, to be called again
  /// at once. Set it to false in a program that computes for long between polls: the sender would time out meanwhile.
  bool await_answer = true;
  /// Keys of jobs (transport/security/packet_key.h), all made by the same function. connect() takes at most one, and
  /// seals packets with it. A shard that listens with keys accepts only peers that have one of them; a shard that
  /// listens without keys accepts only peers without a key.
  std::vector<std::shared_ptr<const PacketKey>> keys{};

  bool operator==(const ConnectionConfig&) const = default;
};

/// The counters that a connection keeps itself; ConnectionStats has all.
struct ConnectionCounters {
  /// Packets that carried data of a lost packet, or of one that check_peer held back.
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t duplicate_packets = 0;  ///< packets whose number had been received before
  /// Duplicates whose contents differ from the first packet with that number: one of the two was forged, or belongs to
  /// an earlier connection with the same id.
  std::uint64_t conflicting_packets = 0;
  /// Messages retransmitted completely because the peer had acknowledged data that it did not have.
  std::uint32_t repaired_messages = 0;
  /// Times without any delivery for three probe timeouts (RFC 9002 section 7.6).
  std::uint32_t persistent_congestions = 0;
  std::uint64_t congestion_events = 0;
  std::uint64_t ce_packets = 0;  ///< sent packets that arrived with a CE mark
};

struct ConnectionStats : ConnectionCounters {
  std::uint64_t packets_sent = 0;
  Bytes bytes_sent = 0;  ///< UDP payload bytes
  std::uint64_t packets_received = 0;
  std::uint64_t messages_received = 0;  ///< complete messages, in order up to the first incomplete one
  Bytes end_of_next = 0;                ///< end of the data that has arrived of that incomplete message
  std::uint64_t lost_packets = 0;
  std::uint64_t spurious_losses = 0;
  std::uint32_t packet_bytes = 0;         ///< current UDP payload of a full packet
  std::uint32_t agreed_packet_bytes = 0;  ///< maximum of packet_bytes that both ends accept; the path may carry less
  Bytes in_flight = 0;
  double cwnd_bytes = 0;
  Rate pacing_rate;
  Rate delivery_rate;        ///< latest sample; 0 before the first
  bool app_limited = false;  ///< delivery_rate was limited by the application, not by the path
  Nanos smoothed_rtt;
  Nanos min_rtt;
  Nanos held_until = Nanos::never();  ///< data waits for the pacer or the phase gate until then; never(): it does not
  Nanos due = Nanos::never();         ///< when the connection's next timer expires; never(): none is set
};

/// A shard's counters; docs/reference/limits.md has their table. Those from `truncated_packets` to `forged_resets`
/// count received packets that were dropped. Each packet counts once, except a packet whose data has no buffer: it
/// counts once for each piece without one.
struct ShardStats {
  std::uint64_t packets_received = 0;   ///< all received packets, also those that were dropped
  std::uint64_t packets_sent = 0;       ///< packets sent by connections, and answers without a connection
  std::uint64_t truncated_packets = 0;  ///< packets shorter than a header, or than their header states
  std::uint64_t foreign_packets = 0;    ///< packets of other protocols
  std::uint64_t corrupted_packets = 0;  ///< packets with a wrong checksum
  /// Packets with invalid contents or two ACKs, and packets to connection 0 that are not a plain CONNECT or RESET.
  std::uint64_t malformed_packets = 0;
  /// Packets to connections that do not exist (any more), or from another address than the peer's.
  std::uint64_t unknown_connection = 0;
  std::uint64_t beyond_credit = 0;  ///< data without a receive buffer: never credited, or its receive has timed out
  /// Data that would leave a gap ("hole") in a message beyond reassembly_bytes, or too many gaps in one message.
  std::uint64_t beyond_holes = 0;
  /// Packets to a connection with a wrong tag, or not sealed by its peer; sealed ACCEPTs beyond the limit of those that
  /// are tried; this end's own sealed CONNECT, sent back to it.
  std::uint64_t forged_packets = 0;
  std::uint64_t replayed_packets = 0;  ///< sealed packets that had arrived before, or are too old to be checked
  /// RESETs for connections that do not exist, with a wrong tag, or for a sealed connection whose peer then answered.
  std::uint64_t forged_resets = 0;
  /// CONNECTs answered with CLOSE: no listener, no room, no key or version in common.
  std::uint64_t refused_connects = 0;
  std::uint64_t retries_sent = 0;      ///< CONNECTs answered with RETRY; a real client repeats them with a cookie
  std::uint64_t cookies_accepted = 0;  ///< connections whose address a cookie has proven
  /// Half-open connections that ended because the peer did not answer in time, or whose place another connection got.
  std::uint64_t unproven_ended = 0;
  std::uint64_t resets_sent = 0;       ///< packets to unknown connections that were answered with RESET
  std::uint64_t resets_withheld = 0;   ///< packets to unknown connections beyond resets_per_second, not answered
  std::uint64_t resets_taken = 0;      ///< connections that ended because of the peer's RESET
  std::uint64_t downgrades = 0;        ///< ACCEPTs with another version than the highest in common
  std::uint64_t violations = 0;        ///< connections ended because the peer acknowledged data that was never sent
  std::uint64_t held_off = 0;          ///< CONNECTs from, and connect()s to, addresses with a recent violation
  std::uint64_t black_holes = 0;       ///< paths that drop long packets; their connections continue with shorter ones
  std::uint64_t size_probes_sent = 0;  ///< packets that test which packet size a path carries
  std::uint64_t size_probes_lost = 0;  ///< size probes that were lost
  /// Places of max_connections in use now, by connections and by ended ones that still notify their peer.
  std::uint32_t connections = 0;
  /// Connections that had ended by the last poll(), but whose `closed` waits until the datapath has read their data.
  std::uint32_t ends_held = 0;
  std::uint32_t half_open = 0;   ///< current half-open connections that were accepted without a cookie
  std::uint64_t hole_bytes = 0;  ///< current memory of gaps beyond the 8 that each message has of its own

  /// Packets that are damaged or of another protocol.
  [[nodiscard]] std::uint64_t rejected_packets() const {
    return truncated_packets + foreign_packets + corrupted_packets + malformed_packets;
  }
};

struct ShardConfig {
  std::uint32_t max_connections = 1024;  ///< 1 to 2^20 - 1
  /// Connections of max_connections that only connect() may use. If no more than this are free, peers that connect are
  /// refused with Status::full. 0 to max_connections.
  std::uint32_t kept_for_connect = 0;
  /// Maximum number of accepted connections whose peers have not proven their addresses yet. Further peers must first
  /// return a cookie; no state is kept for them until then. 0: all peers. Without a value: a quarter of
  /// max_connections, at least 1. Connections opened with a cookie do not count, although they, too, are half open
  /// until the peer answers.
  std::optional<std::uint32_t> max_half_open = std::nullopt;
  /// Maximum number of accepted connections from one IP address; an IPv6 subnet of 64 bits counts as one address.
  /// Further ones are refused with Status::full. Only connections count whose peer has proven that it receives at the
  /// address, because others can forge it. Connections of a crashed peer count until idle_limit ends them. 1 or more;
  /// without a value: no limit.
  std::optional<std::uint32_t> max_accepted_per_address = std::nullopt;
  /// Maximum number of RESETs that are sent per second. A RESET answers a packet to an unknown connection: it notifies
  /// the peer that this end has restarted. 0: none.
  std::uint32_t resets_per_second = 1000;
  /// The address at which peers reach this shard. With keys the shard refuses its own CONNECT when it comes back, so
  /// that an attacker on the path cannot connect it with itself, unless it did connect to this address. Without a
  /// value: it always refuses.
  std::optional<Address> own_address = std::nullopt;
  /// Maximum memory, for all connections together, of the gaps ("holes") in partly received messages, beyond the first
  /// 8 gaps of each message. One connection may take half of what the others have left. A packet that would leave a gap
  /// beyond the maximum is dropped, and the peer retransmits it.
  Bytes reassembly_bytes = Bytes{4} << 20;
  std::uint32_t max_jobs = 64;
  std::uint32_t max_completions = 1 << 16;  ///< completions not yet taken; at this limit, posting returns queue_full
  /// Maximum number of simultaneous sends whose buffers the datapath reads directly (zero copy); further ones are
  /// copied. 0 to 65535; 0 = all are copied.
  std::uint32_t max_zero_copy_sends = 1024;
  /// Prefetch the connections of a received burst into the CPU cache before processing it.
  bool prefetch = true;
  /// Sum the claims of received packets about their jobs: Shard::job_claims().
  bool count_job_claims = false;
  /// Seed of connection ids, tags, cookies and skipped packet numbers, for reproducible simulations and tests. Without
  /// a seed they come from the system's random numbers and cannot be guessed. With a seed, the first id of each slot
  /// contains 12 bits drawn from it, see Shard::first_connections().
  std::optional<std::uint64_t> seed = std::nullopt;
};

struct JobConfig {
  std::uint32_t number = 0;       ///< chosen by the caller; sent in data packets and shown in the peer's completions
  cc::Augmentation augmentation;  ///< MLTCP: scales the congestion window's increase step
  Rate max_rate;                  ///< limit for all connections of the job together, bits on the wire; 0 = unlimited
  /// Maximum time, 0 to 1 s, for which packets that max_rate delays are gathered, to leave together with fewer
  /// wake-ups.
  Nanos pacing_quantum{0};
  /// A late poll() may send at once the bytes that max_rate allowed during the delay, for at most this time, 0 to 1 s,
  /// in addition to the burst of four packets that is always allowed. The link's queue must have room for the burst.
  Nanos catch_up{0};
  /// Learn the iteration boundaries from the job's traffic (cc/iteration_learner.h) until begin_iteration() states a
  /// size.
  bool learn_iterations = false;
};

}  // namespace mltcp
