// The words that a program and the transport exchange: identifiers, settings, completions, counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/transport/address.h"

namespace mltcp {

/// Names a connection of a shard. Never 0; not used again soon after the connection has ended.
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
  unreachable,  ///< nothing came back for ConnectionConfig::give_up_after
  aborted,      ///< ended by abort(), here or at the peer
  version,      ///< the peer speaks another version of the protocol
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
  std::uint32_t ack_every = 2;                  ///< packets per acknowledgement, unless the sender asks for fewer
  bool adapt_ack_ratio = true;                  ///< ask for fewer at high rates, where no job is attached
  std::uint8_t priority = 0;                    ///< of every packet, see TxPacket; 0 to 7
  bool credit_in_acks = true;                   ///< news of posted buffers travels in acknowledgements where it can
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
  std::uint64_t malformed_packets = 0;   ///< checksum right, contents impossible
  std::uint64_t unknown_connection = 0;  ///< for a connection that is not (any more), or from another address
  std::uint64_t beyond_credit = 0;       ///< data that no buffer was promised for
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
  /// Of connection ids and nonces. Where peers of an earlier run of the program may still be there, not always the
  /// same: they would take packets of the new run for the old one's.
  std::uint64_t seed = 1;
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
