// Who has an address: question and answer by which a host finds the queue pair of a peer's shard. Sans-IO: datagrams
// in, datagrams out, time is an argument.
//
// Packets to a queue pair need its number and its key (Q_Key), which only its owner knows. It is asked by a UDP
// datagram of the kernel's to the very IP address and port that the shard has, so that it reaches whoever the network
// takes for that address: the answer is worth as much as one of ARP. And only who sees the question can answer it: it
// carries 64 random bits. The address of the answer is the one that was asked, or it is dropped. An answer is as long
// as a question, and there are at most so many a second, so that nothing is gained by asking in another's name.
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
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
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
  std::uint32_t most_peers = 4096;
  Nanos first_retry{50'000'000};  ///< doubled by each question without an answer
  std::uint32_t most_questions = 5;
  Nanos unreachable_for{1'000'000'000};  ///< nobody is asked again so soon after the last question in vain
  Nanos fresh_for{1'000'000'000};
  std::uint32_t answers_per_second = 4096;
};

struct ResolutionCounters {
  std::uint64_t questions = 0;
  std::uint64_t answers = 0;      ///< sent
  std::uint64_t unanswered = 0;   ///< questions beyond answers_per_second
  std::uint64_t learnt = 0;       ///< peers that were found, or found anew with another queue pair
  std::uint64_t unreachable = 0;  ///< peers that did not answer
  std::uint64_t unasked = 0;      ///< answers that nobody had asked for
  std::uint64_t malformed = 0;    ///< datagrams that are neither
  std::uint64_t table_full = 0;   ///< peers that could not be asked for
};

class Resolution {
 public:
  static constexpr std::size_t datagram_bytes = 32;
  using Datagram = std::array<std::byte, datagram_bytes>;
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
  /// Addresses that became unreachable since the last call.
  std::vector<Address> take_unreachable() { return std::exchange(lost_, {}); }

  [[nodiscard]] const ResolutionCounters& counters() const { return counters_; }

 private:
  struct Peer {
    State state = State::asked;
    RemoteQueue queue;
    std::uint64_t nonce = 0;      ///< of the question that is open
    std::uint16_t shard = 0;      ///< which asks
    std::uint32_t questions = 0;  ///< without an answer
    Nanos due = Nanos::never();   ///< of the next question, or of giving up
    Nanos known_at{};             ///< the latest answer
    Nanos used_at{};
  };

  Peer* peer_of(const Address& address, Nanos now);
  void ask(Peer& peer, std::uint16_t shard, Nanos now);
  bool may_answer(Nanos now);

  const ResolutionConfig config_;
  const std::vector<RemoteQueue> own_;
  const std::function<std::uint64_t()> random_;
  std::unordered_map<Address, Peer, AddressHash> peers_;
  std::deque<Outgoing> answers_;
  std::vector<Address> lost_;
  double allowance_;  ///< of answers
  Nanos allowed_at_{};
  ResolutionCounters counters_;
};

}  // namespace mltcp::rdma
