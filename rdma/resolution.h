// Questions and answers by which a host finds the queue pair of a peer's shard. Sans-IO: datagrams in, datagrams out,
// time is an argument.
//
// Packets to a queue pair need its number and its key (Q_Key), which only its owner knows. The question is a UDP
// datagram of the kernel to the IP address and port of the shard, so it reaches the host that the network takes for
// that address: an answer is as trustworthy as one of ARP. Only a host that sees the question can answer it, because it
// contains 64 random bits and accepts one answer. The answer must come from the address that was asked.
//
// A question with a forged sender is not amplified: an answer is as long as a question, and each IP address gets at
// most answers_per_second. This is counted in buckets by a secret hash: a flood from one address affects only the few
// others in the same bucket. If a flood is forged in a host's name, that host shares its answers with the flood, since
// nothing in a question proves the sender.
//
// Packets from thousands of forged addresses, which the transport would answer, cause one question each; repeated
// questions have a limit for all peers together. Peers that have not answered take at most a quarter of the table if
// others need it; the oldest of them is replaced first. So at least three quarters of the table keep the most recently
// used peers that have answered. A peer that is removed keeps its existing routes, and is asked as an unknown one
// later.
//
//   0 "MLVB", 4 version, 5 kind (1 question, 2 answer), 6 maximum message length in bytes of the queue pair,
//   8 nonce, 16 number of the queue pair, 20 its key, 24 local identifier (InfiniBand), 26 zeros up to 32
//
// In network byte order; in a question all fields after the kind but the nonce are zero. An address in use is asked
// again each `fresh_for`, so that the new queue pair of a restarted peer is found. Without an answer the known one
// stays: the transport detects whether a peer is alive.
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

/// What is needed to send packets to a shard.
struct RemoteQueue {
  std::uint32_t number = 0;   ///< 24 bits, not 0
  std::uint32_t key = 0;      ///< Q_Key
  std::uint16_t lid = 0;      ///< InfiniBand: local identifier of its port in the subnet
  std::uint16_t longest = 0;  ///< maximum message in bytes, including the shim

  bool operator==(const RemoteQueue&) const = default;
};

struct ResolutionConfig {
  std::uint32_t max_peers = 4096;
  Nanos first_retry{50'000'000};  ///< doubled after each question without an answer
  std::uint32_t max_questions = 5;
  Nanos unreachable_for{1'000'000'000};  ///< after the last question, before an unreachable peer is asked again
  Nanos fresh_for{1'000'000'000};
  std::uint32_t answers_per_second = 1024;  ///< maximum to one IP address
  std::uint32_t repeats_per_second = 4096;  ///< maximum repeated questions, for all peers together
};

struct ResolutionCounters {
  std::uint64_t questions = 0;
  std::uint64_t answers = 0;      ///< sent
  std::uint64_t unanswered = 0;   ///< questions beyond answers_per_second
  std::uint64_t learnt = 0;       ///< peers found, or found with another queue pair
  std::uint64_t unreachable = 0;  ///< peers that did not answer
  std::uint64_t unasked = 0;      ///< answers without a question
  std::uint64_t malformed = 0;    ///< datagrams that are neither questions nor answers
  std::uint64_t unrepeated = 0;   ///< questions beyond repeats_per_second
  std::uint64_t displaced = 0;    ///< unanswered peers that were removed to make room for others
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

  /// `own`: the shards' queue pairs. `random`: returns unpredictable numbers.
  Resolution(const ResolutionConfig& config, std::vector<RemoteQueue> own, std::function<std::uint64_t()> random);

  /// The queue pair at `address`. Unless it is known and fresh, a question from `shard` becomes due in next().
  Found find(std::uint16_t shard, const Address& address, Nanos now);
  /// Handles a datagram that arrived at a shard's address. True if find() of `from` may have changed.
  bool receive(std::uint16_t shard, const Address& from, std::span<const std::byte> bytes, Nanos now);
  /// The next datagram that is due; false if there is none. Call it after find(), receive() and at deadline().
  bool next(Outgoing& out, Nanos now);
  /// When to call next() again by itself; never() if not at all.
  [[nodiscard]] Nanos deadline() const;
  /// The known queue pair of `address` is useless: treats the peer as unreachable.
  void give_up(const Address& address, Nanos now);
  /// Addresses that became unreachable or were removed unanswered since the last call.
  std::vector<Address> take_unreachable() { return std::exchange(lost_, {}); }

  [[nodiscard]] const ResolutionCounters& counters() const { return counters_; }

 private:
  struct Peer {
    State state = State::asked;
    RemoteQueue queue;
    std::uint64_t nonce = 0;      ///< of the open question
    std::uint16_t shard = 0;      ///< that asks
    std::uint32_t questions = 0;  ///< without an answer
    Nanos due = Nanos::never();   ///< time of the next question or of giving up; unreachable: when that state ends
    Nanos known_at{};             ///< time of the latest answer
    Nanos used_at{};              ///< time of the last use; asked: of the beginning
  };
  using Peers = std::unordered_map<Address, Peer, KeyedHash>;
  using Entry = Peers::value_type;
  using ByTime = std::set<std::pair<Nanos, Address>>;

  /// Rate limit; at most the events of one second accumulate.
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
  ByTime due_;                    ///< entries for next(), by time
  std::array<ByTime, 3> by_use_;  ///< all peers by last use, for each state
  std::deque<Outgoing> answers_;
  std::vector<Address> lost_;
  std::vector<Allowance> answering_;  ///< by a hash of the asker's IP address
  Allowance repeating_;
  ResolutionCounters counters_;
};

}  // namespace mltcp::rdma
