// Which MAC address an IP address has on an Ethernet segment: the Address Resolution Protocol (RFC 826, with the probes
// and announcements of RFC 5227) for IPv4 and Neighbour Discovery (RFC 4861, its address resolution and unreachability
// detection) for IPv6. Sans-IO: frames in, frames out, time is an argument.
//
// Only what was asked for is learnt, and what an entry says is changed only by an answer to a question or by what the
// protocol allows (RFC 826 "Packet Reception", RFC 4861 sections 7.2.3 and 7.2.5), so that nobody fills the table or
// takes over an address unasked. A destination outside the own prefix is the gateway's. Neither protocol knows who
// speaks: whoever can send on the segment can answer in another's place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/deadline_heap.h"

namespace mltcp {

struct NeighbourConfig {
  encap::MacAddress mac{};
  Address own;                     ///< the port is not used
  std::uint32_t prefix_bits = 24;  ///< of the segment: 1 to 32 of an IPv4 address, 1 to 128 of an IPv6 address
  /// On the segment: of the prefix, link-local (IPv6), or any if the prefix is one address. All zero = none, and nobody
  /// outside can be reached.
  Address gateway;
  /// 802.1Q tag of questions and answers, 1 to 4094, without which nothing is heard; 0 = untagged, and all are heard.
  std::uint16_t vlan = 0;
  std::uint32_t most_entries = 4096;  ///< 1 to 1 048 576
  Nanos retry{1'000'000'000};         ///< between questions, above 0 and at most a day
  std::uint32_t most_questions = 3;   ///< 1 to 255; then the neighbour counts as unreachable for another `retry`
  Nanos fresh_for{30'000'000'000};    ///< then it is asked again, and used on meanwhile; at most a day
};

struct NeighbourCounters {
  std::uint64_t questions = 0;    ///< sent
  std::uint64_t answers = 0;      ///< sent
  std::uint64_t learnt = 0;       ///< entries that became known
  std::uint64_t changed = 0;      ///< known ones that got another MAC address
  std::uint64_t conflicts = 0;    ///< frames of somebody else who uses our address
  std::uint64_t malformed = 0;    ///< frames of these protocols that are impossible
  std::uint64_t unreachable = 0;  ///< neighbours that did not answer
  /// A neighbour made room for another, or a neighbour or an answer found none.
  std::uint64_t table_full = 0;
  std::uint64_t announcements = 0;  ///< sent
};

class Neighbours {
 public:
  static constexpr std::size_t longest_frame = 128;

  /// Throws InputError for a configuration out of range. Allocates its table here and nothing later.
  explicit Neighbours(const NeighbourConfig& config);
  ~Neighbours() = default;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  enum class State : std::uint8_t {
    known,        ///< `mac` is where to send
    asked,        ///< not known yet: a question is on its way, or becomes due now
    unreachable,  ///< no route, or nobody answered lately
  };
  struct Found {
    State state = State::unreachable;
    encap::MacAddress mac{};
  };
  /// Where packets to `destination` go. Asks for what is not known or no longer fresh: frame() has the question.
  /// Unreachable without a question are the own address, those of the other IP version, broadcast, multicast, loopback
  /// and unspecified ones, and a neighbour for which a full table has no room as all in it are being asked for.
  Found find(const Address& destination, Nanos now);

  /// Takes a frame, with or without 802.1Q tag, that no transport could use. True if it was one of these protocols,
  /// whatever became of it.
  bool receive(std::span<const std::byte> frame, Nanos now);

  /// Writes the next frame that is due into `out`, of at least longest_frame bytes, and returns its length; 0 if none
  /// is. To be called until then after receive(), after find() of something that is not known, and at deadline().
  std::size_t frame(std::span<std::byte> out, Nanos now);
  /// When frame() or the state of an entry changes by itself; Nanos::never() if not at all.
  [[nodiscard]] Nanos deadline() const;

  /// Has the own address announced (a gratuitous ARP or an unsolicited advertisement) by the next frame().
  void announce();

  /// Grows with each entry that became known, changed, is no longer fresh, became unreachable or may be asked for again
  /// after that: who keeps what find() said looks again then.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] const NeighbourCounters& counters() const { return counters_; }

 private:
  using Ip = std::array<std::uint8_t, 16>;
  /// RFC 4861 section 7.3.2 and RFC 7048: unknown and asked for; fresh; no longer fresh; that and asked again;
  /// unanswered.
  enum class Phase : std::uint8_t { incomplete, reachable, stale, probe, unreachable };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Entry {
    Ip ip{};
    encap::MacAddress mac{};
    Phase phase = Phase::incomplete;
    std::uint8_t questions = 0;  ///< since it is asked for
    bool was_asked = false;      ///< asked_at holds
    std::uint32_t next = none;   ///< of the same bucket, or free
    std::uint32_t newer = none;  ///< neighbours in a list by use
    std::uint32_t older = none;
    Nanos at{};  ///< when it becomes stale, is asked again or given up, or forgotten; never() if not by itself
    Nanos asked_at{};
  };
  struct Answer {
    Ip ip{};
    encap::MacAddress mac{};
  };

  [[nodiscard]] std::uint32_t known_list() const { return config_.most_entries; }
  [[nodiscard]] std::uint32_t unreachable_list() const { return config_.most_entries + 1; }
  [[nodiscard]] std::optional<Ip> next_hop(const Address& destination) const;
  [[nodiscard]] std::uint32_t lookup(const Ip& ip) const;
  [[nodiscard]] std::size_t bucket_of(const Ip& ip) const;
  std::uint32_t insert(const Ip& ip);
  void erase(std::uint32_t id);
  void unlink(std::uint32_t id);
  void link(std::uint32_t id, std::uint32_t list);
  void schedule(std::uint32_t id, Nanos at);
  void ask(std::uint32_t id, Phase phase, Nanos now);
  void set_fresh(std::uint32_t id, bool fresh, Nanos now);
  void learn(const Ip& ip, const encap::MacAddress* mac, bool override_known, bool confirmed, Nanos now);
  void answer(const Ip& ip, const encap::MacAddress& mac);
  void on_conflict(Nanos now);
  bool receive_arp(std::span<const std::byte> packet, Nanos now);
  bool receive_discovery(std::span<const std::byte> packet, const encap::MacAddress& source, Nanos now);
  std::byte* write_ethernet(std::byte* out, const encap::MacAddress& destination, std::uint16_t ether_type) const;
  std::size_t write_arp(std::byte* out, const encap::MacAddress& destination, std::uint16_t operation,
                        const encap::MacAddress& target_mac, const Ip& target) const;
  std::size_t write_discovery(std::byte* out, const encap::MacAddress& destination_mac, const Ip& destination,
                              bool advertisement, bool solicited, const Ip& target) const;

  NeighbourConfig config_;
  Ip own_{};
  bool v4_ = false;
  Ip mask_{};  ///< of the prefix, an IPv4 one as that of mapped addresses
  NeighbourCounters counters_;
  std::uint64_t generation_ = 0;
  std::vector<Entry> entries_;          ///< and the heads of the two lists after the last
  std::vector<std::uint32_t> buckets_;  ///< a power of two of them, each the first entry of a chain
  std::uint32_t free_ = none;
  DeadlineHeap timers_;
  std::array<Answer, 32> answers_{};  ///< a ring; a segment asks for one host a few times a second at most
  std::size_t first_answer_ = 0;
  std::size_t answer_count_ = 0;
  bool announce_ = false;
  bool defended_ = false;
  Nanos defended_at_{};
  Nanos latest_{};  ///< the last time that was seen
};

}  // namespace mltcp
