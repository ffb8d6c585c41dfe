// The neighbour table, which maps IP addresses on an Ethernet segment to MAC addresses: by the Address Resolution
// Protocol (RFC 826, with the probes and announcements of RFC 5227) for IPv4, and by Neighbour Discovery (RFC 4861,
// address resolution and neighbour unreachability detection) for IPv6. Performs no I/O: frames and the time are passed
// as arguments.
//
// Only requested addresses are learnt. Entries change only by a reply to a request, or as the protocol allows (RFC 826
// "Packet Reception", RFC 4861 sections 7.2.3 and 7.2.5). So unsolicited frames can neither fill the table nor take
// over an address. Packets to destinations outside this host's prefix go to the gateway's MAC address. Neither protocol
// is authenticated: any host on the segment can reply in the name of another host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/siphash.h"
#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/deadline_heap.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp {

struct NeighbourConfig {
  encap::MacAddress mac{};
  Address own;                     ///< own IP address; the port is not used
  std::uint32_t prefix_bits = 24;  ///< prefix length of the segment: 1 to 32 for IPv4, 1 to 128 for IPv6
  /// IP address of a router on the segment. If the prefix contains several addresses, the router's address must be in
  /// the prefix or link-local (IPv6). All zeros if there is no router; packets then only reach hosts on the segment.
  Address gateway;
  /// VLAN in the 802.1Q tag of sent frames, 1 to 4094. Frames received from other VLANs are then ignored. 0 if sent
  /// frames have no tag; received frames are then accepted with any tag.
  std::uint16_t vlan = 0;
  std::uint32_t max_entries = 4096;  ///< maximum number of entries, 1 to 1 048 576
  Nanos retry{1'000'000'000};        ///< interval between requests; above 0, at most a day
  /// Maximum number of requests, 1 to 255. If no request is answered, the neighbour then counts as unreachable for the
  /// time `retry`.
  std::uint32_t max_questions = 3;
  /// Time after which the address of an entry in use is requested again; at most a day.
  Nanos fresh_for{30'000'000'000};
};

struct NeighbourCounters {
  std::uint64_t questions = 0;    ///< ARP requests and Neighbour Solicitations sent
  std::uint64_t answers = 0;      ///< replies and solicited advertisements sent
  std::uint64_t learnt = 0;       ///< entries that were resolved
  std::uint64_t changed = 0;      ///< resolved entries whose MAC address changed
  std::uint64_t conflicts = 0;    ///< frames of another host that uses this host's address
  std::uint64_t malformed = 0;    ///< invalid frames of ARP or Neighbour Discovery
  std::uint64_t unreachable = 0;  ///< neighbours that did not reply
  /// Evicted entries, and entries or replies for which there was no space.
  std::uint64_t table_full = 0;
  std::uint64_t announcements = 0;  ///< gratuitous ARPs and unsolicited advertisements sent
};

class Neighbours {
 public:
  static constexpr std::size_t kLongestFrame = 128;

  /// Throws InputError if `config` is out of range. The constructor allocates all memory.
  explicit Neighbours(const NeighbourConfig& config);
  ~Neighbours() = default;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  enum class State : std::uint8_t {
    known,        ///< resolved to `mac`
    asked,        ///< not resolved yet; a request has been sent or is due now
    unreachable,  ///< there is no route, or the next hop has not replied recently
  };
  struct Found {
    State state = State::unreachable;
    encap::MacAddress mac{};
  };
  /// Returns the state of the next hop for packets to `destination`. If the next hop is not resolved or no longer
  /// fresh, a request becomes due in frame(). The following are unreachable without a request: this host's address;
  /// addresses of an IP version that this host does not use; broadcast, multicast, loopback and unspecified addresses;
  /// neighbours that do not fit into the table because all entries are being resolved.
  Found find(const Address& destination, Nanos now);

  /// Processes a received frame that is not for the transport, with or without 802.1Q tag. Returns true if it is a
  /// frame of ARP or Neighbour Discovery, even if it was ignored.
  bool receive(std::span<const std::byte> frame, Nanos now);

  /// Writes the next frame that is due into `out`, which must have at least kLongestFrame bytes. Returns the length of
  /// the frame; 0 if none is due. Call frame() until it returns 0: after receive(), after find() of an unresolved
  /// address, and at deadline().
  std::size_t frame(std::span<std::byte> out, Nanos now);
  /// Returns the time at which a frame becomes due or an entry changes its state without another call; Nanos::never()
  /// if there is no such time.
  [[nodiscard]] Nanos deadline() const;

  /// Makes the next frame() announce this host's address, by a gratuitous ARP or an unsolicited advertisement.
  void announce();

  /// Returns a number that changes whenever an entry is resolved, changes, becomes stale, becomes unreachable, or may
  /// be requested again after being unreachable. Cached results of find() are then out of date.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] const NeighbourCounters& counters() const { return counters_; }

 private:
  using Ip = std::array<std::uint8_t, 16>;
  /// The phases of an entry (RFC 4861 section 7.3.2 and RFC 7048), in this order: unresolved and requested; fresh; no
  /// longer fresh; no longer fresh and requested; no reply.
  enum class Phase : std::uint8_t { incomplete, reachable, stale, probe, unreachable };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Entry {
    Ip ip{};
    encap::MacAddress mac{};
    Phase phase = Phase::incomplete;
    std::uint8_t questions = 0;   ///< number of requests since the entry was last resolved
    bool was_asked = false;       ///< whether asked_at is valid
    std::uint32_t next = kNone;   ///< next entry in the hash bucket, or in the free list
    std::uint32_t newer = kNone;  ///< next newer entry in the LRU list
    std::uint32_t older = kNone;
    /// Time when the entry becomes stale, is requested again, given up or removed; never() if there is none.
    Nanos at{};
    Nanos asked_at{};
  };
  struct Answer {
    Ip ip{};
    encap::MacAddress mac{};
  };

  [[nodiscard]] std::uint32_t known_list() const { return config_.max_entries; }
  [[nodiscard]] std::uint32_t unreachable_list() const { return config_.max_entries + 1; }
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
  Ip mask_{};  ///< mask of the prefix; for IPv4 in the IPv4-mapped form
  NeighbourCounters counters_;
  std::uint64_t generation_ = 0;
  std::vector<Entry> entries_;          ///< all entries, followed by the sentinels of the two LRU lists
  std::vector<std::uint32_t> buckets_;  ///< hash table: the first entry of each chain; the size is a power of two
  /// Key of the hash table. Unauthenticated peers can choose the addresses that are looked up, but without the key they
  /// cannot choose the chains.
  SipKey key_{};
  std::uint32_t free_ = kNone;
  DeadlineHeap timers_;
  std::array<Answer, 32> answers_{};  ///< ring of pending replies; requests for this host's address are rare
  std::size_t first_answer_ = 0;
  std::size_t answer_count_ = 0;
  bool announce_ = false;
  bool defended_ = false;
  Nanos defended_at_{};
  Nanos latest_{};  ///< latest time that was passed to a function
};

}  // namespace mltcp
