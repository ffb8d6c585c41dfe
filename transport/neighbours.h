// Which MAC address an IP address has on an Ethernet segment: the Address Resolution Protocol (RFC 826, with the probes
// and announcements of RFC 5227) for IPv4 and Neighbour Discovery (RFC 4861, its address resolution and unreachability
// detection) for IPv6. Sans-IO: frames in, frames out, time is an argument.
//
// Only what was asked for is learnt, and what an entry says is changed only by an answer to a question or by what the
// protocol allows (RFC 4861 section 7.2.5), so that nobody fills the table or takes over an address unasked. A
// destination outside the own prefix is the gateway's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/encapsulation.h"

namespace mltcp {

struct NeighbourConfig {
  encap::MacAddress mac{};
  Address own;                     ///< the port is not used
  std::uint32_t prefix_bits = 24;  ///< of the segment: 1 to 32 of an IPv4 address, 1 to 128 of an IPv6 address
  Address gateway;                 ///< on the segment; all zero = none, and nobody outside it can be reached
  std::uint16_t vlan = 0;          ///< 802.1Q tag of questions and answers, 1 to 4094; 0 = untagged
  std::uint32_t most_entries = 4096;
  Nanos retry{1'000'000'000};        ///< between questions
  std::uint32_t most_questions = 3;  ///< then the neighbour counts as unreachable until it is asked for again
  Nanos fresh_for{30'000'000'000};   ///< then it is asked again, and used on meanwhile
};

struct NeighbourCounters {
  std::uint64_t questions = 0;    ///< sent
  std::uint64_t answers = 0;      ///< sent
  std::uint64_t learnt = 0;       ///< entries that became known
  std::uint64_t changed = 0;      ///< known ones that got another MAC address
  std::uint64_t conflicts = 0;    ///< somebody else uses our address
  std::uint64_t malformed = 0;    ///< frames of these protocols that are impossible
  std::uint64_t unreachable = 0;  ///< neighbours that did not answer
  std::uint64_t table_full = 0;
};

class Neighbours {
 public:
  static constexpr std::size_t longest_frame = 128;

  /// Throws InputError for a configuration out of range. Allocates its table here and nothing later.
  explicit Neighbours(const NeighbourConfig& config);
  ~Neighbours();
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

  /// Grows with each entry that became known, changed or became unreachable: who keeps a MAC address looks again then.
  [[nodiscard]] std::uint64_t generation() const;
  [[nodiscard]] const NeighbourCounters& counters() const;
};

}  // namespace mltcp
