// Questions and answers by which a host finds the queue pair of a peer's shard. Sans-IO: functions take the time and
// received datagrams as arguments, and return datagrams to send.
//
// To send to a queue pair, a host needs its number and its key (Q_Key), which only the owner knows. The question is a
// UDP datagram to the IP address and port of the shard. The kernel sends it, so it reaches the host to which the
// network assigns that address. An answer is therefore as trustworthy as an ARP reply. Only a host that sees the
// question can answer it, because the question contains 64 random bits. Only one answer is accepted. It must come from
// the address that was asked.
//
// A question with a forged sender is not amplified, because an answer is as long as a question, and each IP address
// gets at most answers_per_second answers. A secret hash assigns addresses to the buckets in which answers are counted.
// A flood from one address affects only the few other addresses in its bucket. If an attacker forges questions in a
// host's name, that host's own questions and the forged questions share one limit of answers, because nothing in a
// question proves the sender.
//
// The transport would answer packets from thousands of forged addresses. Each of these addresses causes one question.
// The number of repeated questions per second is limited for all peers together. If the table is full, peers that have
// not answered occupy at most a quarter of it, and the oldest of them is replaced first. So at least three quarters of
// the table contain the most recently used peers that have answered. A removed peer keeps its existing routes. When it
// is needed again, it is asked like an unknown peer.
//
// Format of a datagram, in network byte order, with the offset of each field:
//
//   0 "MLVB", 4 version, 5 kind (1 question, 2 answer), 6 maximum message length in bytes of the queue pair,
//   8 nonce, 16 number of the queue pair, 20 its key, 24 local identifier (InfiniBand), 26 zeros up to 32
//
// In a question all fields after the kind are zero, except the nonce. An address in use is asked again after each
// `fresh_for`, so that the new queue pair of a restarted peer is found. Without an answer the known queue pair stays in
// use, because the transport detects whether a peer is alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/transport/address.h"

namespace mltcp::rdma {

/// The numbers that a host needs to send packets to a shard.
struct RemoteQueue {
  std::uint32_t number = 0;   ///< number of the queue pair; 24 bits, not 0
  std::uint32_t key = 0;      ///< Q_Key of the queue pair
  std::uint16_t lid = 0;      ///< local identifier of the peer's port in the subnet; only for InfiniBand
  std::uint16_t longest = 0;  ///< maximum message in bytes, including the shim

  bool operator==(const RemoteQueue&) const = default;
};

struct ResolutionConfig {
  std::uint32_t max_peers = 4096;
  Nanos first_retry{50'000'000};  ///< time until a question is repeated; doubled after each question without an answer
  std::uint32_t max_questions = 5;
  Nanos unreachable_for{1'000'000'000};  ///< time for which an unreachable peer is not asked again
  Nanos fresh_for{1'000'000'000};
  std::uint32_t answers_per_second = 1024;  ///< maximum number of answers per second to one IP address
  std::uint32_t repeats_per_second = 4096;  ///< maximum number of repeated questions per second, for all peers together
};

struct ResolutionCounters {
  std::uint64_t questions = 0;
  std::uint64_t answers = 0;      ///< answers sent
  std::uint64_t unanswered = 0;   ///< questions not answered because of answers_per_second
  std::uint64_t learnt = 0;       ///< answers that reported an unknown or changed queue pair
  std::uint64_t unreachable = 0;  ///< peers that did not answer
  std::uint64_t unasked = 0;      ///< answers that match no open question
  std::uint64_t malformed = 0;    ///< datagrams that are neither questions nor answers
  std::uint64_t unrepeated = 0;   ///< questions not repeated because of repeats_per_second
  std::uint64_t displaced = 0;    ///< peers that were removed before they answered, to make room for others
};

class Resolution {
 public:
  static constexpr std::size_t kDatagramBytes = 32;
  using Datagram = std::array<std::byte, kDatagramBytes>;
  enum class State : std::uint8_t { asked, known, unreachable };
  struct Found {
    State state = State::unreachable;
    RemoteQueue queue{};
  };
  /// A datagram to send from the address of `shard`.
  struct Outgoing {
    std::uint16_t shard = 0;
    Address to;
    Datagram bytes{};
  };

  /// `own` contains the queue pair of each shard. `random` must return unpredictable numbers.
  Resolution(const ResolutionConfig& config, std::vector<RemoteQueue> own, std::function<std::uint64_t()> random);

  /// Returns what is known about the queue pair at `address`. A question from `shard` becomes due in next() if the
  /// queue pair is unknown, or was learned more than `fresh_for` ago. An unreachable peer is not asked for
  /// `unreachable_for`.
  Found find(std::uint16_t shard, const Address& address, Nanos now);
  /// Handles a datagram that arrived at a shard's address. Returns true if the result of find() for `from` may have
  /// changed.
  bool receive(std::uint16_t shard, const Address& from, std::span<const std::byte> bytes, Nanos now);
  /// Sets `out` to the next datagram that is due; returns false if there is none. Call until it returns false: after
  /// find(), after receive(), and at deadline().
  bool next(Outgoing& out, Nanos now);
  /// Returns the time at which next() must be called even without new events; never() if no call is needed.
  [[nodiscard]] Nanos deadline() const;
  /// Treats the peer at `address` as unreachable, because its known queue pair is useless.
  void give_up(const Address& address, Nanos now);
  /// Returns the addresses that became unreachable, or were removed before they answered, since the last call.
  std::vector<Address> take_unreachable() { return std::exchange(lost_, {}); }

  [[nodiscard]] const ResolutionCounters& counters() const { return counters_; }

 private:
  struct Peer {
    State state = State::asked;
    RemoteQueue queue;
    std::uint64_t nonce = 0;      ///< random number of the open question
    std::uint16_t shard = 0;      ///< number of the shard that asks
    std::uint32_t questions = 0;  ///< number of questions without an answer
    /// Time of the next question or of giving up. For State::unreachable, the end of that state.
    Nanos due = Nanos::never();
    Nanos known_at{};  ///< time of the latest answer
    Nanos used_at{};   ///< time of the last use; for State::asked, time at which that state began
  };
  using Peers = std::unordered_map<Address, Peer, KeyedHash>;
  using Entry = Peers::value_type;
  using ByTime = std::set<std::pair<Nanos, Address>>;

  /// A rate limit with a burst of up to one second's events.
  class Allowance {
   public:
    bool take(std::uint32_t per_second, Nanos now);

   private:
    double used_ = 0;
    Nanos at_{};
  };
  static constexpr std::size_t kBuckets = 1024;

  Entry& peer_of(const Address& address, Nanos now);
  void make_room();
  void remove(const Address& address);
  void set_unreachable(Entry& entry, Nanos now);
  void ask(Entry& entry, std::uint16_t shard, Nanos now);
  void set_due(Entry& entry, Nanos due);
  void set_state(Entry& entry, State state, Nanos used_at);
  ByTime& peers_in(State state) { return by_use_[static_cast<std::size_t>(state)]; }
  bool may_answer(const Address& to, Nanos now);

  const ResolutionConfig config_;
  const std::vector<RemoteQueue> own_;
  const std::function<std::uint64_t()> random_;
  const KeyedHash hash_;
  Peers peers_;
  ByTime due_;                    ///< entries for next(), ordered by time
  std::array<ByTime, 3> by_use_;  ///< for each state, its peers ordered by last use
  std::deque<Outgoing> answers_;
  std::vector<Address> lost_;
  std::vector<Allowance> answering_;  ///< limits of answers, by a hash of the asker's IP address
  Allowance repeating_;
  ResolutionCounters counters_;
};

}  // namespace mltcp::rdma
