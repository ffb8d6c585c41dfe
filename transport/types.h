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
  truncated,  ///< the received message was longer than the buffer, which contains its beginning
  closed,     ///< the connection was closed before the operation could finish
  refused,    ///< the peer does not listen
  full,       ///< the peer has reached a limit of its connections
  /// An end got no reply for give_up_after, or no packet for idle_limit (ConnectionConfig). Or the peer does not know
  /// the connection, for example after a restart.
  unreachable,
  aborted,    ///< abort() was called at this end or at the peer
  version,    ///< the ends have no protocol version in common, or the peer did not choose the highest common one
  timed_out,  ///< the operation was not complete at its deadline
  violation,  ///< an end acknowledged data that its peer never sent: the end cheats, or an attacker forged packets
  no_key,     ///< the ends have no common key: only one has a key, or their keys differ
};

/// Returns the name of the status, such as "truncated".
std::string to_text(Status status);

/// The result of posting an operation (send or receive).
enum class PostResult : std::uint8_t {
  ok,
  queue_full,  ///< max_sends, max_receives or max_completions is reached: take completions, then retry
  closed,      ///< the connection is unknown or closing
  too_long,    ///< the message is longer than 4 GiB
  invalid,     ///< the buffer is null on a datapath that needs real bytes
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
  std::uint64_t tag = 0;  ///< the tag that was passed to send() or receive()
  Bytes bytes = 0;        ///< length of the message
  // The job tag in the message's last packet; only for Kind::received.
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
};

struct ConnectionConfig {
  std::string congestion_control = "reno";
  std::shared_ptr<const cc::Parameters> parameters;  ///< parameters of congestion_control; null for the defaults
  bool ecn = false;                                  ///< send ECN-capable packets
  /// Verify the peer's reports instead of trusting them.
  /// - Marks: this end marks one of every few hundred packets itself. If the peer does not report these marks, ECN
  ///   counts as not working for a while, and an algorithm that needs ECN treats long round-trip times as marks.
  ///   Connections with keys send no packets of this kind, because the ECN field is not sealed and a third party could
  ///   clear it.
  /// - Losses: the data of about one packet in 1500 is sent a round trip late, under another packet number. With keys,
  ///   the connection ends with Status::violation if the peer acknowledges a number that was not sent. Without keys,
  ///   it ends when the peer does so for the second time.
  /// - Delays: algorithms that use the peer's delay request acknowledgements at once on slow flows, and count the whole
  ///   round-trip time as the path's.
  bool check_peer = false;
  /// Protect payloads with CRC-32C, not only headers; the UDP checksum always covers both.
  bool full_integrity = false;
  bool pack_messages = true;                    ///< several short messages may share a packet
  std::uint32_t max_sends = 1024;               ///< maximum number of incomplete sends, 1 to 65536
  std::uint32_t max_receives = 1024;            ///< maximum number of incomplete receives, 1 to 65536
  std::uint32_t max_packets_in_flight = 16384;  ///< 16 to 2^20; limits the memory for loss recovery
  Rate max_rate;                                ///< bits on the wire, headers included; 0 = unlimited
  Nanos pacing_quantum{10'000};      ///< maximum delay of paced packets, so that several leave together; 0 for no delay
  Nanos initial_rtt{1'000'000};      ///< round-trip time assumed until the first sample
  Nanos max_ack_delay{100'000};      ///< maximum delay of an acknowledgement
  Nanos timer_granularity{200'000};  ///< lower bound of the loss and probe timers (kGranularity, RFC 9002)
  /// An end treats the peer as unreachable after this time without progress while packets are in flight.
  Nanos give_up_after{30'000'000'000};
  /// An end sends a PING after this time without a packet from the peer. With PINGs an end that only receives detects a
  /// dead peer after keep_alive + give_up_after, or after idle_limit if that is shorter. With 0, the default, an end
  /// sends no PINGs, so that idle connections send nothing. 5 to 30 s are recommended if peers may fail without notice.
  Nanos keep_alive;
  /// A connection ends with Status::unreachable at both ends after this time without a packet. With 0, the default,
  /// there is no limit. If keep_alive is set, it must be shorter than idle_limit, and only connections to dead peers
  /// end. Without keep_alive all idle connections end.
  Nanos idle_limit;
  std::uint32_t ack_every = 2;  ///< packets per acknowledgement, unless the sender asks for fewer acknowledgements
  bool adapt_ack_ratio = true;  ///< request fewer acknowledgements at high rates, except for connections of a job
  std::uint8_t priority = 0;    ///< priority of every packet, 0 to 7, see TxPacket::priority
  /// Send credit (newly posted buffers) inside acknowledgements if possible, instead of in CREDIT frames.
  bool credit_in_acks = true;
  /// Delay the acknowledgement of a message's last packet until the next poll(), so that the program's reply, or the
  /// credit of its next buffer, can travel in the same packet. Meanwhile poll() returns the current time, so that the
  /// program calls it again at once. A program that computes for long between polls must set this to false, because
  /// otherwise the sender would time out.
  bool await_answer = true;
  /// How packets are distributed over the path values of the datapath (balancers.h). "one": all packets have value 0.
  std::string balance = "one";
  /// Number of path values, 1 to kMaxPaths and at most the datapath's; 1 with balance "one". 0: 1 with balance "one",
  /// otherwise 128, or all values of the datapath if it has fewer.
  std::uint32_t paths = 0;
  /// Keys of jobs. All must come from one function, such as packet_key() (transport/security/packet_key.h). connect()
  /// accepts at most one key, and seals packets with it. A shard that listens with keys accepts only peers that have
  /// one of them; a shard that listens without keys accepts only peers without a key.
  std::vector<std::shared_ptr<const PacketKey>> keys{};

  bool operator==(const ConnectionConfig&) const = default;
};

/// The counters that a connection increments itself. ConnectionStats contains all statistics.
struct ConnectionCounters {
  /// Sent packets that carried data of a lost packet, or data that check_peer had delayed.
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t duplicate_packets = 0;  ///< packets whose number had been received before
  /// Duplicates whose contents differ from the first packet with that number: one of the two was forged, or belongs to
  /// an earlier connection with the same id.
  std::uint64_t conflicting_packets = 0;
  /// Messages retransmitted completely because the peer had acknowledged data that it did not have.
  std::uint32_t repaired_messages = 0;
  /// Number of times that no packet was delivered for three probe timeouts (RFC 9002 section 7.6).
  std::uint32_t persistent_congestions = 0;
  std::uint64_t congestion_events = 0;
  std::uint64_t ce_packets = 0;  ///< sent packets that arrived with a CE mark
};

struct ConnectionStats : ConnectionCounters {
  std::uint64_t packets_sent = 0;
  Bytes bytes_sent = 0;  ///< UDP payload bytes
  std::uint64_t packets_received = 0;
  std::uint64_t messages_received = 0;  ///< complete messages, counted in order up to the first incomplete one
  Bytes end_of_next = 0;  ///< offset after the last received byte of the first incomplete message; 0 if none
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
  /// Time until which data waits for the pacer or the phase gate; never() if no data waits.
  Nanos held_until = Nanos::never();
  Nanos due = Nanos::never();  ///< time at which the connection's next timer expires; never() if none is set
};

/// A shard's counters; docs/reference/limits.md has a table of them. The counters from `truncated_packets` to
/// `forged_resets` count received packets that were dropped. Each packet counts once, with one exception: data without
/// a buffer counts once for each piece in a packet.
struct ShardStats {
  std::uint64_t packets_received = 0;   ///< all received packets, also those that were dropped
  std::uint64_t packets_sent = 0;       ///< packets sent by connections, and answers to packets without a connection
  std::uint64_t truncated_packets = 0;  ///< packets shorter than a header, or than their header states
  std::uint64_t foreign_packets = 0;    ///< packets of other protocols
  std::uint64_t corrupted_packets = 0;  ///< packets with a wrong checksum
  std::uint64_t trimmed_packets = 0;    ///< packets without their end, which a switch has removed
  /// Packets with invalid contents or two ACKs, and packets to connection 0 that are not a plain CONNECT or RESET.
  std::uint64_t malformed_packets = 0;
  /// Packets to connections that do not exist (any more), or from another address than the peer's.
  std::uint64_t unknown_connection = 0;
  std::uint64_t beyond_credit = 0;  ///< data without a receive buffer: never credited, or its receive has timed out
  /// Data that would leave a gap ("hole") in a message beyond reassembly_bytes, or too many gaps in one message.
  std::uint64_t beyond_holes = 0;
  /// Packets to a connection with a wrong tag, or not sealed by its peer. Sealed ACCEPTs beyond the number that a
  /// connection tries to open. This end's own sealed CONNECT, if an attacker sends it back.
  std::uint64_t forged_packets = 0;
  std::uint64_t replayed_packets = 0;  ///< sealed packets that had arrived before, or are too old for this check
  /// RESETs with a wrong tag, for connections that do not exist, or for a sealed connection whose peer then answered.
  std::uint64_t forged_resets = 0;
  /// CONNECTs answered with CLOSE, because there is no listener, no free slot, no common key or no common version.
  std::uint64_t refused_connects = 0;
  std::uint64_t retries_sent = 0;  ///< CONNECTs answered with RETRY; a real client repeats its CONNECT with a cookie
  std::uint64_t cookies_accepted = 0;  ///< connections whose peer has proven its address by a cookie
  /// Half-open connections that ended because the peer did not answer in time, or because another connection got their
  /// slot.
  std::uint64_t unproven_ended = 0;
  std::uint64_t resets_sent = 0;      ///< packets to unknown connections that were answered with RESET
  std::uint64_t resets_withheld = 0;  ///< packets to unknown connections beyond resets_per_second, not answered
  std::uint64_t resets_taken = 0;     ///< connections that ended because of the peer's RESET
  std::uint64_t downgrades = 0;       ///< ACCEPTs that chose another version than the highest common one
  std::uint64_t violations = 0;       ///< connections ended because the peer acknowledged data that was never sent
  /// CONNECTs that were ignored and connect()s that were delayed, after a recent violation at their address.
  std::uint64_t held_off = 0;
  std::uint64_t black_holes = 0;       ///< paths that drop long packets; their connections continue with shorter ones
  std::uint64_t size_probes_sent = 0;  ///< packets that test which packet size a path carries
  std::uint64_t size_probes_lost = 0;  ///< size probes that were lost
  /// Slots, out of max_connections, that are now used by connections, or by ended connections that still notify their
  /// peer.
  std::uint32_t connections = 0;
  /// Connections that had ended by the last poll(), but whose `closed` waits until the datapath has read their data.
  std::uint32_t ends_held = 0;
  std::uint32_t half_open = 0;   ///< current half-open connections that were accepted without a cookie
  std::uint64_t hole_bytes = 0;  ///< current memory, in bytes, of gaps beyond the first 8 of each message

  /// Returns the number of packets that were damaged or belong to another protocol.
  [[nodiscard]] std::uint64_t rejected_packets() const {
    return truncated_packets + foreign_packets + corrupted_packets + malformed_packets;
  }
};

struct ShardConfig {
  std::uint32_t max_connections = 1024;  ///< 1 to 2^20 - 1
  /// Number of slots, out of max_connections, that only connect() may use. If no more slots than this are free, peers
  /// that connect are refused with Status::full. 0 to max_connections.
  std::uint32_t kept_for_connect = 0;
  /// Maximum number of accepted connections whose peers have not proven their addresses yet. Further peers must first
  /// return a cookie; no state is stored for them until then. If 0, all peers must return a cookie. Without a value,
  /// the maximum is a quarter of max_connections, at least 1. Connections opened with a cookie do not count, although
  /// they are also half open until the peer answers.
  std::optional<std::uint32_t> max_half_open = std::nullopt;
  /// Maximum number of accepted connections from one IP address; an IPv6 subnet of 64 bits counts as one address.
  /// Further connections are refused with Status::full. A connection counts only if its peer has proven that it
  /// receives at the address, because others can forge the address. Connections of a crashed peer count until
  /// idle_limit ends them. 1 or more; no limit without a value.
  std::optional<std::uint32_t> max_accepted_per_address = std::nullopt;
  /// Maximum number of RESETs that are sent per second; 0 for none. A RESET answers a packet to an unknown connection.
  /// It notifies the peer that this end has restarted.
  std::uint32_t resets_per_second = 1000;
  /// The address at which peers reach this shard. An attacker on the path could send a CONNECT of this shard back, to
  /// connect the shard with itself. With keys the shard therefore refuses its own CONNECT, unless it was sent to this
  /// address. Without a value the shard always refuses its own CONNECT.
  std::optional<Address> own_address = std::nullopt;
  /// Maximum memory in bytes for the gaps ("holes") in partly received messages of all connections together. The first
  /// 8 gaps of each message do not count. One connection may use half of the memory that all other connections leave
  /// free. A packet that would leave a gap beyond the maximum is dropped, and the peer retransmits it.
  Bytes reassembly_bytes = Bytes{4} << 20;
  std::uint32_t max_jobs = 64;
  /// Maximum number of completions not yet taken; at this limit, posting returns queue_full.
  std::uint32_t max_completions = 1 << 16;
  /// Maximum number of simultaneous sends whose buffers the datapath reads directly (zero copy); further sends are
  /// copied. 0 to 65535; 0 if all are to be copied.
  std::uint32_t max_zero_copy_sends = 1024;
  /// Prefetch the connections of a received burst into the CPU cache before processing it.
  bool prefetch = true;
  /// Sum up what received packets claim about their senders' jobs, for Shard::job_claims().
  bool count_job_claims = false;
  /// Seed of connection ids, tags, cookies and skipped packet numbers, for reproducible simulations and tests. Without
  /// a seed these values come from the system's random numbers and cannot be guessed. With a seed, the first id of each
  /// slot contains 12 bits that depend on the seed, see Shard::first_connections().
  std::optional<std::uint64_t> seed = std::nullopt;
};

struct JobConfig {
  std::uint32_t number = 0;       ///< chosen by the caller; sent in data packets and shown in the peer's completions
  cc::Augmentation augmentation;  ///< MLTCP: scales the congestion window's increase step
  Rate max_rate;                  ///< limit for all connections of the job together, bits on the wire; 0 = unlimited
  /// Maximum time, 0 to 1 s, for which packets that max_rate delays are collected, so that they leave together with
  /// fewer wake-ups.
  Nanos pacing_quantum{0};
  /// Maximum delay, 0 to 1 s, that a late poll() makes up for: it may send at once the bytes that max_rate allowed
  /// during the delay, in addition to the burst of four packets that is always allowed. The link's queue must have room
  /// for the burst.
  Nanos catch_up{0};
  /// Learn the iteration boundaries from the job's traffic (cc/iteration_learner.h) until begin_iteration() states a
  /// size.
  bool learn_iterations = false;
  /// Parameters of policy `turns` (cc/turns.h); null: the defaults.
  std::shared_ptr<const cc::Parameters> parameters{};
};

}  // namespace mltcp
