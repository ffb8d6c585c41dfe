// A network in virtual time: hosts, switches and links that carry the packets of real endpoints.
//
// Hosts run what is attached to them, any Pollable, normally a shard of the transport; switches forward by a table
// from destination host to link; links are fabric::Link. Time is a number that jumps from event to event, so a
// second of a fast network takes as long as its packets take to process, and the same inputs give the same result,
// bit for bit, on every machine.
//
// Order of events. At each instant, first everything that links deliver is moved on (links in the order in which
// they were made), then the hosts that have a reason are polled (in the order in which they were made). A packet
// that a poll sends arrives later than now, so all packets that reach a host at one instant are there in its first
// poll of that instant.
//
// When a host is polled: when it is attached; when packets have arrived; when the deadline that its last poll
// returned has come; when wake() asks for it; and when its transmit queue, having refused packets, has room for a
// full burst again. A deadline at or before now means: again at this instant, after the other hosts that are due.
// So does a poll that took some, but not all, of the packets that had arrived. A host that is polled
// `max_idle_polls` times at one instant without a packet received or sent in between makes no progress: run() throws
// RunError, which names the host. So does a host that leaves arrived packets lying.
//
// Where loops are modelled (loop_model.h) a host is polled when its machine looks, which is later: reasons wait for
// that.
//
// Several paths. Where a switch has several links toward a destination, a group of them (equal-cost multi-path, RFC
// 2992), a hash of what tells flows apart picks one: both addresses and the packet's destination connection, which
// stand for the UDP source port of real networks. So each direction of a connection keeps to one path, and each switch
// hashes with a seed of its own, or all would make the same choice.
//
// Links are fabric::Link, or, where it is asked for, fabric::PriorityLink, slower and with more to it: classes of
// packets, a memory that the links of a switch share, and pauses (PFC). A pause acts on the far end of a link when a
// frame of 64 bytes has travelled back over it: after its delay and the frame's time at its rate. Other packets do not
// hold it up.
//
// Faults on links act on packets as fabric::Link decides: a corrupted packet has one random bit of its existing
// bytes flipped, a duplicate is a copy of its own, an ECN-capable packet is set to CE when it is marked.
//
// One network is single-threaded. Several can run in threads of their own.
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
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/priority_link.h"
#include "mltcp/fabric/switch_memory.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/sim/event_queue.h"
#include "mltcp/sim/loop_model.h"
#include "mltcp/sim/packet_pool.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::sim {

struct NetworkOptions {
  std::uint32_t mtu = 1500;  ///< IP packet size, 576 to 9000
  /// Hosts accept packets whose payload is only a length (see TxPacket::payload).
  bool virtual_payload = false;
  /// Most packets that wait for, or are on, the link of a host; 32 or more. A host's send() then takes no more.
  std::uint32_t transmit_queue_packets = 1024;
  /// How hosts, and the switches for which set_loop() asks, look after packets; off: at once. Not with links of
  /// classes.
  MachineModel machines;
};

/// What a network counted since it was made.
struct NetworkCounters {
  std::uint64_t packet_hops = 0;          ///< packets that came out of a link
  std::uint64_t sent_packets = 0;         ///< taken by the send() of hosts, among them those of the next three
  std::uint64_t unknown_destination = 0;  ///< dropped: no host has the address, or no route leads to it
  std::uint64_t invalid_packets = 0;      ///< dropped: longer than the limits say, or virtual where that isn't allowed
  std::uint64_t unattached_host = 0;      ///< dropped on arrival: nothing is attached to the host
  std::uint64_t received_packets = 0;     ///< handed to hosts by receive()
};

/// The hash of a flow, from `source` to connection `connection` at `destination`, by which groups pick a link.
std::uint64_t flow_hash(const Address& source, const Address& destination, std::uint32_t connection);
/// Which of `links` links, above 0, a group with `seed` picks for a flow.
std::size_t pick_link(std::uint64_t flow_hash, std::uint64_t seed, std::size_t links);

class Network;

/// A host: the datapath of what is attached to it. It has one address, and sends on one link, of its own or shared with
/// other hosts, which then are ports of one machine.
class Host final : public PacketIo {
 public:
  Host(Network& network, std::uint32_t number, const Address& address)
      : network_(network), number_(number), address_(address) {}
  ~Host() override = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }
  /// Counts from 0 in the order in which the network's hosts were made.
  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] const Limits& limits() const override;
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;

 private:
  friend class Network;
  static constexpr std::uint32_t no_link = 0xFFFFFFFF;
  static constexpr std::uint32_t no_machine = 0xFFFFFFFF;

  Network& network_;
  std::uint32_t number_;
  std::uint32_t uplink_ = no_link;
  Pollable* pollable_ = nullptr;
  // Lists linked through Packet::next.
  Packet* arrived_ = nullptr;
  Packet* arrived_last_ = nullptr;
  Packet* lent_ = nullptr;  // what the latest receive() returned
  Nanos deadline_ = Nanos::never();
  Nanos room_at_ = Nanos::never();  // when the transmit queue, having refused packets, has room again
  // How many packets wait is asked of the link if the host has one of its own. Where it shares one, it keeps their
  // departures itself, those gone by included until somebody asks; where departures aren't known, it counts.
  enum class Counting : std::uint8_t { link, departures, packets };
  Counting counting_ = Counting::link;
  bool refused_ = false;  // with Counting::packets: the transmit queue has refused packets since it had room
  std::size_t waiting_ = 0;
  GrowableRing<Nanos> departures_;
  bool woken_ = false;
  bool active_ = false;  // a packet was received or sent in the present poll
  std::uint32_t machine_ = no_machine;
  Nanos polled_at_ = Nanos(-1);  // where a machine is modelled
  std::uint32_t idle_polls_ = 0;
  Nanos idle_since_ = Nanos(-1);
  Address address_;
};

class Network {
 public:
  /// Polls of a host at one instant without a packet before run() gives up.
  static constexpr std::uint32_t max_idle_polls = 10'000;

  using Switch = std::uint32_t;
  using LinkId = std::uint32_t;
  using Group = std::uint32_t;

  /// Throws InputError if an option is out of range.
  explicit Network(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Set-up. What is made here lives as long as the network. Each throws InputError for bad input.

  /// The address must be new. The reference stays valid.
  Host& add_host(const Address& address);
  Switch add_switch();
  /// A switch whose outgoing links, made by add_priority_link() afterwards, share a memory. With PFC, its incoming
  /// links are made so, too.
  Switch add_switch(const fabric::SwitchMemoryConfig& memory);
  /// Has one loop look after `host` and `other`, as ports of one machine, where loops are modelled.
  void share_loop(Host& host, const Host& other);
  /// Has a loop look after the switch `at`, whose outgoing links are `outgoing`, where loops are modelled. After all
  /// its links are made; these have one class.
  void set_loop(Switch at, std::span<const LinkId> outgoing);
  /// The link on which `host` sends, to `far_end`. One per host.
  LinkId connect(Host& host, Switch far_end, const fabric::LinkConfig& config);
  /// Lets `host` send on `link`, which is there already and which several hosts may share. Each has a transmit queue of
  /// its own; their packets leave in the order in which they were sent.
  void connect(Host& host, LinkId link);
  /// A link with its queue, whose far end is `far_end`. Packets enter it where a route leads to it.
  LinkId add_link(Switch far_end, const fabric::LinkConfig& config);
  /// A link with a queue for each of `classes` (see fabric::PriorityLink) from switch `from`, or from hosts, with which
  /// connect() joins it. Where `to` has a memory with PFC, it keeps for each class of this link `headroom`.
  LinkId add_priority_link(std::optional<Switch> from, Switch to, const fabric::LinkConfig& config,
                           std::uint32_t classes, Bytes headroom = 0);
  /// What arrives over a link of `config` after its far end has decided to pause it, and has to be kept: the packets of
  /// up to `frame_bytes` that are under way until the pause acts, the one being sent then, and the one that was too
  /// many.
  static Bytes pfc_headroom(const fabric::LinkConfig& config, std::uint32_t frame_bytes);
  /// Packets for `destination` that reach `at` go to `link` next.
  void route(Switch at, const Host& destination, LinkId link);
  /// Links, at least one, among which flows are spread.
  Group add_group(std::span<const LinkId> links, std::uint64_t seed);
  /// Packets for `destination` that reach `at` go to one of the links of `group` next.
  void route_group(Switch at, const Host& destination, Group group);
  /// Packets for `destination` that reach `at` have arrived.
  void route_to_host(Switch at, const Host& destination);
  /// Counts what each job sends over `link`: bytes on the wire of packets that carry a job tag
  /// (wire::peek_job_tag), at their departure. The meter is the caller's and outlives the network's runs.
  void meter(LinkId link, fabric::UsageMeter* meter);

  /// Runs `pollable` on `host` from now on, instead of what was attached before. It is polled for the first time at
  /// now(). The caller keeps it alive until it is detached or the network is no longer run.
  void attach(Host& host, Pollable& pollable);
  /// Packets for the host are dropped from now on, those that had arrived included.
  void detach(Host& host);
  /// Polls `host` at now(), for a stimulus from outside the network. May be called from within a poll, for any host.
  /// Does nothing if nothing is attached.
  void wake(Host& host);

  // Running. Both throw RunError when a host makes no progress, and pass on what a Pollable throws.

  /// Processes all events up to `until`, inclusive, or up to the poll after which `stop` is true: it is asked after
  /// every poll of a host, and not at all if it is empty. Returns whether it stopped the run. Afterwards now() is
  /// `until`, or the time of that poll, or for Nanos::never() the time of the last event there was.
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }

  /// Virtual time; starts at 0 and never goes back.
  [[nodiscard]] Nanos now() const { return now_; }
  /// When the next event is; never() if nothing will ever happen by itself.
  [[nodiscard]] Nanos next_event() const { return events_.empty() ? Nanos::never() : events_.time(); }
  [[nodiscard]] const NetworkCounters& counters() const { return counters_; }
  [[nodiscard]] const fabric::LinkCounters& link_counters(LinkId id) const {
    return links_[id].priority ? links_[id].priority->counters() : links_[id].link.counters();
  }
  [[nodiscard]] const fabric::LinkConfig& link_config(LinkId id) const { return links_[id].link.config(); }
  /// The link of add_priority_link(); for its queues.
  [[nodiscard]] const fabric::PriorityLink& priority_link(LinkId id) const { return *links_[id].priority; }
  /// The memory of a switch that has one.
  [[nodiscard]] const fabric::SwitchMemory& memory(Switch at) const { return *nodes_[at].memory; }
  /// A link without classes, for its counters and queue. Offering or taking packets is the network's business.
  [[nodiscard]] fabric::Link& link(LinkId id) { return links_[id].link; }
  [[nodiscard]] const fabric::Link& link(LinkId id) const { return links_[id].link; }
  /// The link on which `host` sends.
  [[nodiscard]] fabric::Link& uplink(const Host& host) { return links_[host.uplink_].link; }
  /// Packets on links, and arrived at hosts but not given back yet.
  [[nodiscard]] std::size_t packets_inside() const { return pool_.alive(); }
  /// Memory that holds packets: grows to what the busiest moment needed.
  [[nodiscard]] std::size_t packet_memory_bytes() const { return pool_.memory_bytes(); }

 private:
  friend class Host;
  static constexpr std::uint32_t no_route = 0xFFFFFFFF;
  static constexpr std::uint32_t no_loop = 0xFFFFFFFF;
  static constexpr std::uint32_t here = 0xFFFFFFFE;         // the packet has arrived
  static constexpr std::uint32_t first_group = 0x80000000;  // from here on groups, below links

  struct Node {
    std::vector<std::uint32_t> next;  // by destination host: a link, a group, `here` or `no_route`
    std::unique_ptr<fabric::SwitchMemory> memory;
    std::vector<std::uint32_t> incoming;  // links, by their number in `memory`
    std::uint32_t loop = no_loop;         // of switch_loops_
  };
  /// The loop of a switch, where those are modelled.
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
  /// The loop that looks after hosts of one machine, where those are modelled.
  struct Machine {
    Lateness lateness;
    std::vector<std::uint32_t> hosts;
    Nanos polled_at = Nanos(-1);
    Nanos busy_at = Nanos(-1'000'000'000);  ///< a packet moved
    Nanos asleep_from{};                    ///< until then it sees everything at once
    bool waits = false;                     ///< for a packet or `look`, and does not nap
    Nanos late{};                           ///< by which its present sleep ends late; below 0: not drawn yet
    Nanos look = Nanos::never();            ///< the next
  };
  struct LinkGroup {
    std::vector<LinkId> links;
    std::uint64_t seed = 0;
  };
  static constexpr std::uint32_t no_switch = 0xFFFFFFFF;
  static constexpr std::uint32_t no_link = 0xFFFFFFFF;
  struct LinkState {
    LinkState(const fabric::LinkConfig& config, Switch to) : link(config), far_end(to) {}
    fabric::Link link;
    Switch far_end;
    fabric::UsageMeter* meter = nullptr;
    std::unique_ptr<fabric::PriorityLink> priority;            // in place of `link`
    Switch near_end = no_switch;                               // of a priority link; none: hosts
    std::uint32_t ingress = fabric::SwitchMemory::no_ingress;  // in the memory of the far end
    std::uint32_t near_loop = no_loop;                         // of the switch that sends on it
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
  EventQueue events_;  // links, then from EventQueue::second on hosts
  PacketPool pool_;
  std::vector<LinkState> links_;
  std::vector<Node> nodes_;
  std::vector<LinkGroup> groups_;
  std::deque<Host> hosts_;
  std::vector<Machine> machines_;  // empty unless modelled, like the next
  std::vector<SwitchLoop> switch_loops_;
  std::vector<std::uint64_t> address_hashes_;  // of hosts_
  std::vector<std::uint32_t> table_;           // hosts by address: open addressing, a power of two at most half full
};

}  // namespace mltcp::sim
