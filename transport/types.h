// The words that a program and the transport exchange: identifiers, settings, completions, counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/transport/address.h"

namespace mltcp {

/// Names a connection of a shard. Never 0, and nobody can foresee it: the slot of the connection in as few of its
/// lowest bits as max_connections needs, the others random, anew for each connection. Slots are used again in the order
/// in which they became free.
using ConnectionId = std::uint32_t;
/// Names a job of a shard.
using JobId = std::uint32_t;

/// How an operation ended.
enum class Status : std::uint8_t {
  ok,
  truncated,    ///< received, but longer than the buffer: the buffer holds the beginning
  closed,       ///< the connection was closed before the operation could finish
  refused,      ///< the peer does not listen
  full,         ///< the peer has no room for another connection
  unreachable,  ///< nothing came back for ConnectionConfig::give_up_after, or was heard for idle_limit, here or there
  aborted,      ///< ended by abort(), here or at the peer
  version,      ///< the peer speaks another version of the protocol
  timed_out,    ///< the operation's deadline was there first
};

/// "ok", "truncated", ...
std::string to_text(Status status);

/// Whether an operation was taken.
enum class PostResult : std::uint8_t {
  ok,
  queue_full,  ///< max_sends or max_receives are reached, or max_completions wait: take completions, post again
  closed,      ///< no such connection, or it is closing
  too_long,    ///< above 4 GiB
  invalid,     ///< no bytes where the datapath needs some
};

/// Something ended or happened.
struct Completion {
  enum class Kind : std::uint8_t {
    connected,  ///< connect() succeeded
    accepted,   ///< a listening shard has a new connection
    sent,       ///< every byte of a message is in the peer's buffer (status ok), or it won't be
    received,   ///< a receive has its message
    closed,     ///< the connection is over; its id is invalid from here on. Always its last completion
  };
  Kind kind = Kind::sent;
  Status status = Status::ok;
  ConnectionId connection = 0;
  std::uint64_t tag = 0;  ///< as posted (sent, received)
  Bytes bytes = 0;        ///< length of the message
  // received: whose data the last packet of the message said it was.
  bool has_job = false;
  std::uint16_t iteration = 0;
  std::uint32_t job = 0;
};

struct ConnectionConfig {
  std::string congestion_control = "reno";
  std::shared_ptr<const cc::Parameters> parameters;  ///< of the algorithm; null: the defaults
  bool ecn = false;                                  ///< send ECN-capable packets
  bool full_integrity = false;     ///< CRC-32C over the payload too, not only the headers (UDP's sum covers it anyway)
  bool pack_messages = true;       ///< several short messages may share a packet
  std::uint32_t max_sends = 1024;  ///< messages posted and not completed, 1 to 65536
  std::uint32_t max_receives = 1024;            ///< likewise
  std::uint32_t max_packets_in_flight = 16384;  ///< bounds memory for loss recovery, 16 to 2^20
  Rate max_rate;                                ///< on the wire; 0 = unlimited
  Nanos pacing_quantum{10'000};                 ///< paced packets may be gathered so long and leave together; 0: no
  Nanos initial_rtt{1'000'000};                 ///< assumed until measured
  Nanos max_ack_delay{100'000};                 ///< an acknowledgement is held back no longer
  Nanos timer_granularity{200'000};             ///< below this, timers do not judge a packet late
  Nanos give_up_after{30'000'000'000};          ///< without any progress although packets are outstanding
  /// An end that has heard nothing for so long asks its peer whether it is there (PING), so that one that only waits to
  /// receive learns of a peer that died without a word: after keep_alive and give_up_after, or idle_limit if that is
  /// shorter. 0, the default: never, so that connections which idle send nothing. Where peers may vanish, 5 to 30 s.
  Nanos keep_alive;
  /// A connection that has heard nothing at all for so long ends with Status::unreachable, and tells its peer, which
  /// ends with the same. 0, the default: no limit. Above keep_alive, if that is set: then only a peer that is gone
  /// reaches it; otherwise whoever has nothing to say for so long.
  Nanos idle_limit;
  std::uint32_t ack_every = 2;  ///< packets per acknowledgement, unless the sender asks for fewer
  bool adapt_ack_ratio = true;  ///< ask for fewer at high rates, where no job is attached
  std::uint8_t priority = 0;    ///< of every packet, see TxPacket; 0 to 7
  bool credit_in_acks = true;   ///< news of posted buffers travels in acknowledgements where it can
  /// What ends a message is acknowledged by the next poll(), so that the program's answer, or the buffer that it posts
  /// now, travels in the same packet. poll() asks to be called again at once for that; a program that leaves its shard
  /// alone at such times, to compute for instance, keeps the sender waiting, who in the end gives it up: false then.
  bool await_answer = true;

  bool operator==(const ConnectionConfig&) const = default;
};

struct ConnectionStats {
  std::uint64_t packets_sent = 0;
  Bytes bytes_sent = 0;  ///< UDP payloads
  std::uint64_t packets_received = 0;
  std::uint64_t retransmitted_packets = 0;  ///< packets that carried data once more
  std::uint64_t lost_packets = 0;
  std::uint64_t spurious_losses = 0;
  std::uint64_t duplicate_packets = 0;  ///< received again
  /// Of them, those that said something else than the packet of their number before: one of the two was forged, or of
  /// an earlier connection with the same id.
  std::uint64_t conflicting_packets = 0;
  std::uint64_t repaired_messages = 0;  ///< sent again whole, as the peer had acknowledged what it did not have
  std::uint64_t congestion_events = 0;
  std::uint64_t persistent_congestions = 0;  ///< nothing got through for three probe timeouts (RFC 9002 7.6)
  std::uint64_t ce_packets = 0;              ///< of ours, that arrived marked
  Bytes in_flight = 0;
  double cwnd_bytes = 0;
  Rate pacing_rate;
  Rate delivery_rate;        ///< latest sample; 0 before the first
  bool app_limited = false;  ///< ... which shows what the application sent, and not what the path can carry
  Nanos smoothed_rtt;
  Nanos min_rtt;
};

/// What a shard counted and dropped.
struct ShardStats {
  std::uint64_t packets_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t truncated_packets = 0;
  std::uint64_t foreign_packets = 0;     ///< not of this protocol
  std::uint64_t corrupted_packets = 0;   ///< checksum wrong
  std::uint64_t malformed_packets = 0;   ///< checksum right, contents impossible or not to be believed
  std::uint64_t unknown_connection = 0;  ///< for a connection that is not (any more), or from another address
  std::uint64_t beyond_credit = 0;       ///< data for which there is no buffer, promised or timed out meanwhile
  std::uint64_t refused_connects = 0;
};

struct ShardConfig {
  std::uint32_t max_connections = 1024;  ///< 1 to 2^20 - 1
  std::uint32_t max_jobs = 64;
  std::uint32_t max_completions = 1 << 16;  ///< not taken; posting waits beyond
  /// Sends whose bytes a datapath may read where they lie, at once; further ones are copied. 0 to 65535; 0 = all.
  std::uint32_t max_zero_copy_sends = 1024;
  /// The connections of a burst of packets are brought to the cache together before the first is worked on.
  bool prefetch = true;
  /// Of connection ids and nonces, for simulations and tests, which are to be the same every time. Without one they
  /// come from the system's random numbers: peers of an earlier run of the program, and others, must not know them.
  /// With one, the first id of each slot has 12 bits of it, see Shard::first_connections().
  std::optional<std::uint64_t> seed = std::nullopt;
};

struct JobConfig {
  std::uint32_t number = 0;  ///< of the caller's choice; carried in data packets, and shown by the peer's completions
  cc::Augmentation augmentation;  ///< gain of the increase step
  Rate max_rate;                  ///< all connections of the job together, on the wire; 0 = unlimited
  /// Packets that max_rate holds back may be gathered so long and leave together, 0 to 1 s: fewer wake-ups.
  Nanos pacing_quantum{0};
  /// A poll that comes late makes up for at most so much of max_rate at once, 0 to 1 s, beyond the four packets that
  /// may always leave together. The queue of the link must have the room.
  Nanos catch_up{0};
  /// Finds the iterations in the job's traffic, until begin_iteration() names a size (cc/iteration_learner.h).
  bool learn_iterations = false;
};

}  // namespace mltcp
