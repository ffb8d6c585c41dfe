// Who has an address: question and answer by which a host finds the queue pair of a peer's shard. Sans-IO: datagrams
// in, datagrams out, time is an argument.
//
// Packets to a queue pair need its number and its key (Q_Key), which only its owner knows. It is asked by a UDP
// datagram of the kernel's to the very IP address and port that the shard has, so that it reaches whoever the network
// takes for that address: the answer is worth as much as one of ARP. And only who sees the question can answer it: it
// carries 64 random bits, and is answered once. The address of the answer is the one that was asked, or it is dropped.
//
// Who asks in another's name sends him no more than it costs: an answer is as long as a question, and one IP address is
// sent at most so many a second. Addresses have buckets for that, by a hash that nobody else knows: a flood from one
// leaves the answers to others as they are, but for the few of the same bucket. Whom a flood is forged in the name of
// shares his answers with it, since nothing in a question proves who asks.
//
// Packets in the names of thousands, whom the transport would answer, have each of them asked once, and again only
// within what is allowed for all together. Of the table of peers those that have not answered yet take a quarter where
// there are others, the oldest of them making room for the next. So of those who have answered three quarters of the
// table stay, the ones used last; another keeps the routes there are to him, and is asked as a stranger.
//
//   0 "MLVB", 4 version, 5 kind (1 question, 2 answer), 6 longest message in bytes that the queue pair takes,
//   8 nonce, 16 number of the queue pair, 20 its key, 24 local identifier (InfiniBand), 26 zeros up to 32
//
// In network byte order; all but the nonce are zeros in a question. An address that is in use is asked again each
// `fresh_for`, so that a peer which has started anew is found by its new queue pair. Without an answer the known one
// stays: whether a peer is alive is the transport's to find out.
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

/// What packets to a shard need.
struct RemoteQueue {
  std::uint32_t number = 0;   ///< 24 bits, not 0
  std::uint32_t key = 0;      ///< Q_Key
  std::uint16_t lid = 0;      ///< InfiniBand: where its port is in the subnet
  std::uint16_t longest = 0;  ///< bytes of a message that it takes, our shim included

  bool operator==(const RemoteQueue&) const = default;
};

struct ResolutionConfig {
  std::uint32_t max_peers = 4096;
  Nanos first_retry{50'000'000};  ///< doubled by each question without an answer
  std::uint32_t max_questions = 5;
  Nanos unreachable_for{1'000'000'000};  ///< nobody is asked again so soon after the last question in vain
  Nanos fresh_for{1'000'000'000};
  std::uint32_t answers_per_second = 1024;  ///< to one IP address
  std::uint32_t repeats_per_second = 4096;  ///< of questions, all peers together
};

struct ResolutionCounters {
  std::uint64_t questions = 0;
  std::uint64_t answers = 0;      ///< sent
  std::uint64_t unanswered = 0;   ///< questions beyond answers_per_second
  std::uint64_t learnt = 0;       ///< peers that were found, or found anew with another queue pair
  std::uint64_t unreachable = 0;  ///< peers that did not answer
  std::uint64_t unasked = 0;      ///< answers that nobody had asked for
  std::uint64_t malformed = 0;    ///< datagrams that are neither
  std::uint64_t unrepeated = 0;   ///< questions beyond repeats_per_second
  std::uint64_t displaced = 0;    ///< peers that had not answered yet and made room for others
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
  /// Of one of the shards, to be sent from its address.
  struct Outgoing {
    std::uint16_t shard = 0;
    Address to;
    Datagram bytes{};
  };

  /// `own`: the queue pairs of the shards. `random`: numbers that nobody can guess.
  Resolution(const ResolutionConfig& config, std::vector<RemoteQueue> own, std::function<std::uint64_t()> random);

  /// The queue pair at `address`. Unless it is known and fresh, a question from `shard` becomes due in next().
  Found find(std::uint16_t shard, const Address& address, Nanos now);
  /// What has come to a shard's address. True if find() of `from` may have changed by it.
  bool receive(std::uint16_t shard, const Address& from, std::span<const std::byte> bytes, Nanos now);
  /// The next datagram that is due; false if there is none. Call it after find(), receive() and at deadline().
  bool next(Outgoing& out, Nanos now);
  /// When next() becomes due by itself, or a peer becomes unreachable; never() if not at all.
  [[nodiscard]] Nanos deadline() const;
  /// What is known of `address` is of no use: as if it had not answered.
  void give_up(const Address& address, Nanos now);
  /// Addresses that became unreachable since the last call, or are no longer asked.
  std::vector<Address> take_unreachable() { return std::exchange(lost_, {}); }

  [[nodiscard]] const ResolutionCounters& counters() const { return counters_; }

 private:
  struct Peer {
    State state = State::asked;
    RemoteQueue queue;
    std::uint64_t nonce = 0;      ///< of the question that is open
    std::uint16_t shard = 0;      ///< which asks
    std::uint32_t questions = 0;  ///< without an answer
    Nanos due = Nanos::never();   ///< of the next question, or of giving up; unreachable: of the time when it ends
    Nanos known_at{};             ///< the latest answer
    Nanos used_at{};              ///< asked: since when
  };
  using Peers = std::unordered_map<Address, Peer, KeyedHash>;
  using Entry = Peers::value_type;
  using ByTime = std::set<std::pair<Nanos, Address>>;

  /// As many events as a second allows, saved up for a second at most.
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
  ByTime due_;                    ///< those that next() has to look at
  std::array<ByTime, 3> by_use_;  ///< all peers, of each state
  std::deque<Outgoing> answers_;
  std::vector<Address> lost_;
  std::vector<Allowance> answering_;  ///< by the asker's IP address
  Allowance repeating_;
  ResolutionCounters counters_;
};

}  // namespace mltcp::rdma
