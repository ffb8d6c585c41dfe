// A network in virtual time: hosts, switches and links that carry the packets of real endpoints.
//
// Hosts run any attached Pollable, normally a shard of the transport; switches forward by a table from destination host
// to link; links are fabric::Link. Time jumps from event to event, so the cost depends on the number of packets and not
// on the simulated time. Equal inputs give bit-identical results on every machine.
//
// Order of events. At each instant, first all deliveries of links are processed (links in order of creation), then the
// hosts that must be polled (in order of creation). A packet sent by a poll arrives later than now, so all packets that
// reach a host at one instant are available in its first poll of that instant.
//
// A host is polled: when a Pollable is attached; when packets have arrived; at the deadline that its last poll
// returned; on wake(); and when its transmit queue, after it has refused packets, has room for a full burst again. If
// the deadline is at or before now, the host is polled again at this instant, after the other hosts that are due. The
// same holds if a poll took some, but not all, of the packets that had arrived. run() throws RunError that names the
// host if it is polled `kMaxIdlePolls` times at one instant without receiving or sending a packet, or if it leaves
// arrived packets unread.
//
// If polling loops are modelled (loop_model.h), a host is polled when its machine's loop runs, that is, later.
//
// Several paths. A switch with several links toward a destination has a group of them (equal-cost multi-path, RFC 2992)
// and picks one by a hash of both addresses and the packet's destination connection, which replaces the UDP source port
// of real networks. So each direction of a connection stays on one path. Each switch hashes with its own seed;
// otherwise all switches would make the same choice.
//
// Links are fabric::Link or, on request, the slower fabric::PriorityLink with priority classes, memory shared by the
// links of a switch, and pauses (PFC). A pause takes effect at the far end of a link when a frame of 64 bytes has
// travelled back: after the link's delay and the frame's serialisation time. Other packets do not delay it.
//
// fabric::Link decides about faults and marks: a corrupted packet has one random bit of its real bytes flipped, a
// duplicate is a separate copy, a marked ECN-capable packet is set to CE.
//
// A network is single-threaded. Several may run in different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/network_config.h"
#include "mltcp/lab/fabric/priority_link.h"
#include "mltcp/lab/fabric/switch_memory.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/lab/sim/event_queue.h"
#include "mltcp/lab/sim/loop_model.h"
#include "mltcp/lab/sim/packet_pool.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::sim {

struct NetworkOptions {
  std::uint32_t mtu = 1500;  ///< IP packet size, 576 to 9000
  /// Hosts accept virtual payloads (see TxPacket::payload).
  bool virtual_payload = false;
  /// Maximum number of packets waiting for, or being sent on, a host's link, 32 or more. send() accepts no more.
  std::uint32_t transmit_queue_packets = 1024;
  /// Model of the polling loops of hosts, and of switches given to set_loop(). Off: packets are processed at once. It
  /// cannot be combined with links of several classes.
  fabric::MachineModel machines;
};

/// Counters since the network was created.
struct NetworkCounters {
  std::uint64_t packet_hops = 0;   ///< deliveries by links
  std::uint64_t sent_packets = 0;  ///< accepted by hosts' send(), including those dropped as invalid or undeliverable
  std::uint64_t unknown_destination = 0;  ///< dropped: no host has the address, or no route leads to it
  /// Dropped: longer than the limits, or virtual without NetworkOptions::virtual_payload.
  std::uint64_t invalid_packets = 0;
  std::uint64_t unattached_host = 0;   ///< dropped on arrival: no Pollable is attached to the host
  std::uint64_t received_packets = 0;  ///< returned by hosts' receive()
};

/// The hash of a flow from `source` to connection `connection` at `destination`; groups pick a link by it.
std::uint64_t flow_hash(const Address& source, const Address& destination, std::uint32_t connection);
/// Index of the link that a group with `seed` and `links` links (above 0) picks for a flow.
std::size_t pick_link(std::uint64_t flow_hash, std::uint64_t seed, std::size_t links);

class Network;

/// A host: the datapath of the Pollable attached to it. It has one address and sends on one link, its own or shared
/// with other hosts, which are then ports of one machine.
class Host final : public PacketIo {
 public:
  Host(Network& network, std::uint32_t number, const Address& address)
      : network_(network), number_(number), address_(address) {}
  ~Host() override = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }
  /// Sequence number among the network's hosts, from 0.
  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] const Limits& limits() const override;
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;

 private:
  friend class Network;
  static constexpr std::uint32_t kNoLink = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoMachine = 0xFFFFFFFF;

  Network& network_;
  std::uint32_t number_;
  std::uint32_t uplink_ = kNoLink;
  Pollable* pollable_ = nullptr;
  // Linked lists, through Packet::next.
  Packet* arrived_ = nullptr;
  Packet* arrived_last_ = nullptr;
  Packet* lent_ = nullptr;  // packets returned by the last receive()
  Nanos deadline_ = Nanos::never();
  Nanos room_at_ = Nanos::never();  // when the full transmit queue, having refused packets, will have room again
  // How the length of the transmit queue is determined: from the link, if it is the host's own; by the departure times
  // recorded here, if the link is shared; by counting packets, if departures are not known in advance.
  enum class Counting : std::uint8_t { link, departures, packets };
  Counting counting_ = Counting::link;
  bool refused_ = false;  // with Counting::packets: the transmit queue has refused packets since it had room
  std::size_t waiting_ = 0;
  GrowableRing<Nanos> departures_;
  bool woken_ = false;
  bool active_ = false;  // a packet was received or sent during the current poll
  std::uint32_t machine_ = kNoMachine;
  Nanos polled_at_ = Nanos(-1);  // only if loops are modelled
  std::uint32_t idle_polls_ = 0;
  Nanos idle_since_ = Nanos(-1);
  Address address_;
};

class Network {
 public:
  /// Maximum number of consecutive idle polls of a host at one instant; then run() throws.
  static constexpr std::uint32_t kMaxIdlePolls = 10'000;

  using Switch = std::uint32_t;
  using LinkId = std::uint32_t;
  using Group = std::uint32_t;

  /// Throws InputError if an option is out of range.
  explicit Network(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Set-up. Everything created here lives as long as the network. All functions throw InputError for invalid arguments.

  /// Adds a host. The address must not be in use. The reference stays valid.
  Host& add_host(const Address& address);
  Switch add_switch();
  /// Adds a switch whose outgoing links share a memory. Create them by add_priority_link(), with PFC the incoming
  /// links, too.
  Switch add_switch(const fabric::SwitchMemoryConfig& memory);
  /// If loops are modelled: one loop polls `host` and `other`, as ports of one machine.
  void share_loop(Host& host, const Host& other);
  /// If loops are modelled: a loop forwards the packets of switch `at`. Call it after all links of the switch exist;
  /// these must have one class. `outgoing`: the switch's outgoing links.
  void set_loop(Switch at, std::span<const LinkId> outgoing);
  /// Creates the link on which `host` sends, to `far_end`. A host has one such link.
  LinkId connect(Host& host, Switch far_end, const fabric::LinkConfig& config);
  /// Makes `host` send on an existing link, which several hosts may share. Each host has its own transmit queue;
  /// packets leave in the order in which they were sent.
  void connect(Host& host, LinkId link);
  /// Creates a link with a queue to `far_end`. Packets enter it by a route.
  LinkId add_link(Switch far_end, const fabric::LinkConfig& config);
  /// Creates a link with a queue for each of `classes` (see fabric::PriorityLink) from switch `from`, or from hosts
  /// that connect() joins to it. If `to` has a memory with PFC, `headroom` bytes are reserved there for each class.
  LinkId add_priority_link(std::optional<Switch> from, Switch to, const fabric::LinkConfig& config,
                           std::uint32_t classes, Bytes headroom = 0);
  /// Forwards packets for `destination` at switch `at` on `link`.
  void route(Switch at, const Host& destination, LinkId link);
  /// Creates a group of one or more links over which flows are spread.
  Group add_group(std::span<const LinkId> links, std::uint64_t seed);
  /// Forwards packets for `destination` at switch `at` on a link of `group`.
  void route_group(Switch at, const Host& destination, Group group);
  /// Delivers packets at switch `at` to `destination`.
  void route_to_host(Switch at, const Host& destination);
  /// Counts each job's bytes over `link`: wire bytes of packets with a job tag (wire::peek_job_tag), at departure. The
  /// meter belongs to the caller and must outlive the network's runs.
  void meter(LinkId link, fabric::UsageMeter* meter);

  /// Runs `pollable` on `host` from now on, in place of any other. It is first polled at now(), and must live until it
  /// is detached or the network no longer runs.
  void attach(Host& host, Pollable& pollable);
  /// Removes the host's Pollable. From now on packets for the host are dropped, including those that have arrived.
  void detach(Host& host);
  /// Polls `host` at now(), for an external event. May be called from within any host's poll. Does nothing if no
  /// Pollable is attached.
  void wake(Host& host);

  // Running. Both functions throw RunError if a host makes no progress, and pass on exceptions of a Pollable.

  /// Processes all events up to and including `until`, or up to the poll after which `stop` returns true. `stop` is
  /// called after every poll of a host, and may be empty. Returns whether `stop` ended the run. Afterwards now() is
  /// `until`, or the time of that poll, or the time of the last event if `until` is Nanos::never().
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }

  /// Virtual time; starts at 0 and never decreases.
  [[nodiscard]] Nanos now() const { return now_; }
  /// Time of the next event; never() if there is none.
  [[nodiscard]] Nanos next_event() const { return events_.empty() ? Nanos::never() : events_.time(); }
  [[nodiscard]] const NetworkCounters& counters() const { return counters_; }
  [[nodiscard]] const fabric::LinkCounters& link_counters(LinkId id) const {
    return links_[id].priority ? links_[id].priority->counters() : links_[id].link.counters();
  }
  [[nodiscard]] const fabric::LinkConfig& link_config(LinkId id) const { return links_[id].link.config(); }
  /// A link that add_priority_link() created, to read its queues.
  [[nodiscard]] const fabric::PriorityLink& priority_link(LinkId id) const { return *links_[id].priority; }
  /// Bytes that wait for a link or are being sent on it at now(), in all classes together.
  [[nodiscard]] Bytes queue_bytes(LinkId id) const;
  /// The memory of a switch that has one.
  [[nodiscard]] const fabric::SwitchMemory& memory(Switch at) const { return *nodes_[at].memory; }
  /// A link with one class, to read its counters and queue. Only the network may offer or take packets.
  [[nodiscard]] fabric::Link& link(LinkId id) { return links_[id].link; }
  [[nodiscard]] const fabric::Link& link(LinkId id) const { return links_[id].link; }
  /// The link on which `host` sends.
  [[nodiscard]] fabric::Link& uplink(const Host& host) { return links_[host.uplink_].link; }
  /// Packets on links, or received by hosts and not yet returned.
  [[nodiscard]] std::size_t packets_inside() const { return pool_.alive(); }
  /// Memory allocated for packets: grows to the maximum needed so far.
  [[nodiscard]] std::size_t packet_memory_bytes() const { return pool_.memory_bytes(); }

 private:
  friend class Host;
  static constexpr std::uint32_t kNoRoute = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoLoop = 0xFFFFFFFF;
  static constexpr std::uint32_t kHere = 0xFFFFFFFE;  // table entry: the packet has arrived
  // Table entries from here on are groups; lower ones are links.
  static constexpr std::uint32_t kFirstGroup = 0x80000000;

  struct Node {
    std::vector<std::uint32_t> next;  // by destination host: a link, a group, `kHere` or `kNoRoute`
    std::unique_ptr<fabric::SwitchMemory> memory;
    std::vector<std::uint32_t> incoming;  // incoming links, by their ingress number in `memory`
    std::uint32_t loop = kNoLoop;         // index in switch_loops_
  };
  /// The polling loop of a switch, if modelled.
  struct SwitchLoop {
    Looks looks;
    std::vector<LinkId> incoming;
    struct Arrival {
      Packet* packet;
      LinkId from;
      Nanos at;
    };
    std::vector<Arrival> arrivals;  // scratch
  };
  /// The polling loop of a machine with one or more hosts, if modelled.
  struct Machine {
    Lateness lateness;
    std::vector<std::uint32_t> hosts;
    Nanos polled_at = Nanos(-1);
    Nanos busy_at = Nanos(-1'000'000'000);  ///< when a packet was last moved
    Nanos asleep_from{};                    ///< until then it polls continuously
    bool waits = false;                     ///< blocks until a packet or `look`, instead of napping
    Nanos late{};                           ///< lateness of its current sleep; below 0: not drawn yet
    Nanos look = Nanos::never();            ///< next time at which it polls
  };
  struct LinkGroup {
    std::vector<LinkId> links;
    std::uint64_t seed = 0;
  };
  static constexpr std::uint32_t kNoSwitch = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoLink = 0xFFFFFFFF;
  struct LinkState {
    LinkState(const fabric::LinkConfig& config, Switch to) : link(config), far_end(to) {}
    fabric::Link link;
    Switch far_end;
    fabric::UsageMeter* meter = nullptr;
    std::unique_ptr<fabric::PriorityLink> priority;            // used instead of `link`
    Switch near_end = kNoSwitch;                               // sender of a priority link; none: hosts
    std::uint32_t ingress = fabric::SwitchMemory::kNoIngress;  // ingress number in the memory of the far end
    std::uint32_t near_loop = kNoLoop;                         // index of the sending switch's loop
  };

  void check_switch(Switch at) const;
  void check_link(LinkId link) const;
  static void check_unconnected(const Host& host);
  void set_next(Switch at, const Host& destination, std::uint32_t next);
  void enter(const Host& host);
  [[nodiscard]] std::uint32_t find_host(const Address& address) const;

  std::size_t send(Host& host, std::span<const TxPacket> packets);
  std::size_t receive(Host& host, std::span<RxPacket> out);
  Nanos launch(LinkId id, Packet* packet, LinkId from, Nanos at);
  void launch_by_class(LinkId id, Packet* packet, LinkId from);
  void deliver(LinkId id);
  void forward(const Node& node, Packet* packet, LinkId from, Nanos at);
  void deliver_by_class(LinkId id);
  void transmit(LinkId id);
  static void count(LinkState& state, Packet* packet, Nanos departure);
  [[nodiscard]] LinkId pick(const LinkGroup& group, Packet* packet) const;
  std::size_t transmit_queue(Host& host);
  Nanos time_of_room(Host& host);
  void arrive(Host& host, Packet* packet);
  void poll(Host& host);
  void schedule(Host& host);
  void schedule(LinkId id);
  void plan(Machine& machine, Host& host);
  void rouse(Machine& machine, bool at_once);
  void deliver_to_loop(const Node& node);
  void free_list(Packet*& list);

  NetworkOptions options_;
  PacketIo::Limits limits_;
  Nanos now_;
  NetworkCounters counters_;
  EventQueue events_;  // links, then from EventQueue::kSecond on hosts
  PacketPool pool_;
  std::vector<LinkState> links_;
  std::vector<Node> nodes_;
  std::vector<LinkGroup> groups_;
  std::deque<Host> hosts_;
  std::vector<Machine> machines_;  // empty unless modelled; host loops
  std::vector<SwitchLoop> switch_loops_;
  std::vector<std::uint64_t> address_hashes_;  // hashes of the addresses of hosts_
  std::vector<std::uint32_t>
      table_;  // hash table of hosts by address: open addressing, a power of two in size, at most half full
};

}  // namespace mltcp::sim
