// A network in virtual time: hosts, switches and links that carry the packets of real endpoints.
//
// A host runs any attached Pollable, normally a shard of the transport. A switch forwards by a table from destination
// host to link. Time jumps from event to event, so the cost depends on the number of packets and not on the simulated
// time. Equal inputs give bit-identical results on every machine.
//
// Order of events. At each instant, the network first processes all deliveries of links, in order of the links'
// creation. Then it polls the hosts that are due, in order of the hosts' creation. A packet that a poll sends arrives
// after the time of the poll. So all packets that reach a host at one instant are available in the host's first poll at
// this instant.
//
// A host is polled when a Pollable is attached, when packets have arrived, at the deadline that its last poll returned,
// on wake(), and when a transmit queue that has refused packets has room for a full burst again. A host is polled again
// at the same instant, after the other hosts that are due, in two cases: if its deadline is not after now(), or if its
// poll received only some of the packets that had arrived. run() throws RunError with the name of the host if the host
// is polled `kMaxIdlePolls` times at one instant without receiving or sending a packet.
//
// If polling loops are modelled (loop_model.h), a host is not polled at these times, but when the loop of its machine
// next runs.
//
// Several paths. If a switch has several links toward a destination, these links form a group (equal-cost multi-path,
// RFC 2992). The switch picks a link by a hash of both addresses, of the packet's destination connection, and of its
// path value. The last two replace the UDP source port, which real networks use. So packets of one direction of a
// connection with one path value stay on one path. Each switch hashes with a different seed, because with equal seeds
// all switches would make the same choice.
//
// Links are fabric::Link or, on request, the slower fabric::PriorityLink with priority classes, memory that the links
// of a switch share, and pauses (PFC). A pause takes effect at the sender of a link after the time in which a frame of
// 64 bytes travels back: the link's delay and the frame's serialisation time. Other packets do not delay this frame.
//
// fabric::Link decides about faults and marks. The network flips one random bit of the real bytes of a corrupted
// packet, copies a duplicated packet, and sets CE in a marked packet.
//
// A network is single-threaded. Several networks may run in different threads.
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
  std::uint32_t mtu = 1500;  ///< maximum size of an IP packet in bytes, 576 to 9000
  /// Whether hosts accept virtual payloads (see TxPacket::payload).
  bool virtual_payload = false;
  /// Maximum number of packets in the transmit queue of a host, waiting or being sent; 32 or more. If the queue is
  /// full, send() accepts no more packets.
  std::uint32_t transmit_queue_packets = 1024;
  /// Model of the polling loops of hosts, and of switches for which set_loop() is called. If it is off, packets are
  /// processed at once. This model cannot be combined with links of several classes.
  fabric::MachineModel machines;
};

/// Counters since the network was created.
struct NetworkCounters {
  std::uint64_t packet_hops = 0;  ///< number of deliveries by links
  /// Packets that send() accepted. They include packets that send() dropped because they were invalid or had no
  /// destination.
  std::uint64_t sent_packets = 0;
  /// Packets dropped because no host has the destination address, or no route leads to the host.
  std::uint64_t unknown_destination = 0;
  /// Packets dropped because they exceed the maximum length, or because they have a virtual payload without
  /// NetworkOptions::virtual_payload.
  std::uint64_t invalid_packets = 0;
  std::uint64_t unattached_host = 0;   ///< packets dropped on arrival because no Pollable is attached to the host
  std::uint64_t received_packets = 0;  ///< packets that receive() returned
};

/// Returns the hash of a flow from `source` to connection `connection` at `destination` with a path value. A group of
/// links uses the hash to pick a link.
std::uint64_t flow_hash(const Address& source, const Address& destination, std::uint32_t connection,
                        std::uint8_t path = 0);
/// Returns the index of the link that a group with `seed` and `links` links, 1 or more, picks for a flow.
std::size_t pick_link(std::uint64_t flow_hash, std::uint64_t seed, std::size_t links);

class Network;

/// A host: the datapath of the Pollable attached to it. A host has one address and sends on one link. Hosts that share
/// a link are ports of one machine.
class Host final : public PacketIo {
 public:
  Host(Network& network, std::uint32_t number, const Address& address)
      : network_(network), number_(number), address_(address) {}
  ~Host() override = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const Address& address() const { return address_; }
  /// Returns the number of the host, in order of creation, from 0.
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
  // Linked lists of packets (see Packet::next).
  Packet* arrived_ = nullptr;
  Packet* arrived_last_ = nullptr;
  Packet* lent_ = nullptr;  // packets lent to the Pollable by the last receive()
  Nanos deadline_ = Nanos::never();
  // when the transmit queue, which has refused packets, will have room again; never() if not known or not full
  Nanos queue_free_at_ = Nanos::never();
  // How the length of the transmit queue is determined. link: the link counts packets, because only this host sends on
  // it. departures: the host stores the departure time of each packet, because several hosts share the link. packets:
  // the host counts its packets, because departure times are not known in advance.
  enum class Counting : std::uint8_t { link, departures, packets };
  Counting counting_ = Counting::link;
  // With Counting::packets: whether the transmit queue has refused packets since it last had room.
  bool refused_ = false;
  std::size_t waiting_ = 0;
  GrowableRing<Nanos> departures_;
  bool woken_ = false;
  bool active_ = false;  // whether a packet was received or sent during the current poll
  std::uint32_t machine_ = kNoMachine;
  Nanos polled_at_ = Nanos(-1);  // time of the last poll, if loops are modelled
  std::uint32_t idle_polls_ = 0;
  Nanos idle_since_ = Nanos(-1);
  Address address_;
};

class Network {
 public:
  /// Number of consecutive polls of a host, at one instant and without receiving or sending a packet, at which run()
  /// throws.
  static constexpr std::uint32_t kMaxIdlePolls = 10'000;

  using Switch = std::uint32_t;
  using LinkId = std::uint32_t;
  using Group = std::uint32_t;

  /// Throws InputError if an option is out of range.
  explicit Network(const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Set-up. Hosts, switches, links and groups exist as long as the network. All functions throw InputError for invalid
  // arguments.

  /// Adds a host. No other host may have the same address. The reference stays valid.
  Host& add_host(const Address& address);
  Switch add_switch();
  /// Adds a switch whose outgoing links share a memory. Create these links by add_priority_link(). With PFC, create the
  /// incoming links by add_priority_link() as well.
  Switch add_switch(const fabric::SwitchMemoryConfig& memory);
  /// Makes `host` and `other` ports of one machine. If loops are modelled, one loop then polls both.
  void share_loop(Host& host, const Host& other);
  /// If loops are modelled, adds a loop that forwards the packets of switch `at`. `outgoing` are the switch's outgoing
  /// links. Must be called after all links from and to the switch exist. All these links must have one class.
  void set_loop(Switch at, std::span<const LinkId> outgoing);
  /// Creates the link on which `host` sends, to switch `far_end`. A host has exactly one such link.
  LinkId connect(Host& host, Switch far_end, const fabric::LinkConfig& config);
  /// Makes `host` send on an existing link, which several hosts may share. Each host has a separate transmit queue.
  /// Packets leave in the order in which the hosts sent them.
  void connect(Host& host, LinkId link);
  /// Creates a link from a switch to switch `far_end`, with one queue. Packets enter the link by a route.
  LinkId add_link(Switch far_end, const fabric::LinkConfig& config);
  /// Creates a link to switch `to` with a queue for each of `classes` (see fabric::PriorityLink). The sender of the
  /// link is switch `from`. If `from` is empty, the senders are the hosts that connect() joins to the link. If `to` has
  /// a memory with PFC, `headroom` bytes are reserved in this memory for each class.
  LinkId add_priority_link(std::optional<Switch> from, Switch to, const fabric::LinkConfig& config,
                           std::uint32_t classes, Bytes headroom = 0);
  /// Makes switch `at` forward packets for `destination` on `link`.
  void route(Switch at, const Host& destination, LinkId link);
  /// Creates a group of one or more links. A switch distributes flows over these links by a hash with `seed`.
  Group add_group(std::span<const LinkId> links, std::uint64_t seed);
  /// Makes switch `at` forward packets for `destination` on a link of `group`.
  void route_group(Switch at, const Host& destination, Group group);
  /// Makes switch `at` deliver packets for `destination` to this host.
  void route_to_host(Switch at, const Host& destination);
  /// Counts the bytes of each job over `link` in `meter`: wire bytes of packets with a job tag (wire::peek_job_tag),
  /// when they leave the queue. The caller owns the meter, which must outlive the network's runs.
  void meter(LinkId link, fabric::UsageMeter* meter);

  /// Attaches `pollable` to `host` and replaces the host's previous Pollable, if there is one. `pollable` is first
  /// polled at now(). It must stay valid until it is detached or the network no longer runs.
  void attach(Host& host, Pollable& pollable);
  /// Removes the host's Pollable. From now() on, packets for the host are dropped, including those that have arrived
  /// but were not received.
  void detach(Host& host);
  /// Polls `host` at now(), because of an external event. May be called from within the poll of any host. Does nothing
  /// if no Pollable is attached.
  void wake(Host& host);

  // Running. run() and run_until() throw RunError if a host makes no progress, and pass on exceptions of a Pollable.

  /// Processes all events up to and including `until`. Calls `stop`, unless it is empty, after every poll of a host,
  /// and ends the run if `stop` returns true. Returns whether `stop` ended the run. Afterwards now() is the time of the
  /// poll after which `stop` returned true. If there was none, now() is `until` or, if `until` is Nanos::never(), the
  /// time of the last event.
  bool run(Nanos until, const std::function<bool()>& stop);
  void run_until(Nanos until) { run(until, nullptr); }

  /// Returns the virtual time. It starts at 0 and never decreases.
  [[nodiscard]] Nanos now() const { return now_; }
  /// Returns the time of the next event; never() if there is none.
  [[nodiscard]] Nanos next_event() const { return events_.empty() ? Nanos::never() : events_.time(); }
  [[nodiscard]] const NetworkCounters& counters() const { return counters_; }
  [[nodiscard]] const fabric::LinkCounters& link_counters(LinkId id) const {
    return links_[id].priority ? links_[id].priority->counters() : links_[id].link.counters();
  }
  [[nodiscard]] const fabric::LinkConfig& link_config(LinkId id) const { return links_[id].link.config(); }
  /// Returns a link that add_priority_link() created, for reading its queues.
  [[nodiscard]] const fabric::PriorityLink& priority_link(LinkId id) const { return *links_[id].priority; }
  /// Returns the bytes of all classes that wait for a link or are being sent on it at now().
  [[nodiscard]] Bytes queue_bytes(LinkId id) const;
  /// Returns the shared memory of a switch, which must have been created with a memory.
  [[nodiscard]] const fabric::SwitchMemory& memory(Switch at) const { return *nodes_[at].memory; }
  /// Returns a link with one class, for reading its counters and its queue. Only the network may offer packets to it or
  /// take packets from it.
  [[nodiscard]] fabric::Link& link(LinkId id) { return links_[id].link; }
  [[nodiscard]] const fabric::Link& link(LinkId id) const { return links_[id].link; }
  /// Returns the link on which `host` sends.
  [[nodiscard]] fabric::Link& uplink(const Host& host) { return links_[host.uplink_].link; }
  /// Returns the number of packets that are on links, or that hosts have received and not yet released.
  [[nodiscard]] std::size_t packets_inside() const { return pool_.alive(); }
  /// Returns the bytes of memory allocated for packets. It grows to the maximum needed so far.
  [[nodiscard]] std::size_t packet_memory_bytes() const { return pool_.memory_bytes(); }

 private:
  friend class Host;
  static constexpr std::uint32_t kNoRoute = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoLoop = 0xFFFFFFFF;
  // entry of Node::next for a host to which the switch delivers directly
  static constexpr std::uint32_t kHere = 0xFFFFFFFE;
  // Entries of Node::next from this number on are groups. Lower entries are links.
  static constexpr std::uint32_t kFirstGroup = 0x80000000;

  struct Node {
    // Routing table by destination host: number of a link or group, `kHere` or `kNoRoute`.
    std::vector<std::uint32_t> next;
    std::unique_ptr<fabric::SwitchMemory> memory;
    // numbers of the switch's incoming links, in the order of the links' ingress numbers in `memory`
    std::vector<std::uint32_t> incoming;
    std::uint32_t loop = kNoLoop;  // index of the switch's loop in switch_loops_
  };
  /// The polling loop of a switch, if loops are modelled.
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
  /// The polling loop of a machine with one or more hosts, if loops are modelled.
  struct Machine {
    Lateness lateness;
    std::vector<std::uint32_t> hosts;
    Nanos polled_at = Nanos(-1);
    Nanos busy_at = Nanos(-1'000'000'000);  ///< when the loop last moved a packet
    /// The loop polls continuously before this time, and sleeps or blocks after it.
    Nanos asleep_from{};
    /// Whether the loop blocks until a packet arrives or until `look`, instead of sleeping at most `nap`.
    bool waits = false;
    Nanos late{};                 ///< time by which the current sleep ends late; below 0: not drawn yet
    Nanos look = Nanos::never();  ///< time of the next poll
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
    std::unique_ptr<fabric::PriorityLink> priority;  // link with priority classes; if null, `link` is used
    // Switch that sends on a priority link; kNoSwitch if hosts send on it.
    Switch near_end = kNoSwitch;
    std::uint32_t ingress = fabric::SwitchMemory::kNoIngress;  // ingress number of the link in the memory of `far_end`
    std::uint32_t near_loop = kNoLoop;                         // index of the sending switch's loop in switch_loops_
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
  static void trim(Packet* packet, std::uint32_t bytes);
  [[nodiscard]] LinkId pick(const LinkGroup& group, Packet* packet) const;
  std::size_t transmit_queue(Host& host);
  Nanos time_of_free_place(Host& host);
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
  EventQueue events_;  // event sources: links by number, hosts from EventQueue::kSecond on
  PacketPool pool_;
  std::vector<LinkState> links_;
  std::vector<Node> nodes_;
  std::vector<LinkGroup> groups_;
  std::deque<Host> hosts_;
  std::vector<Machine> machines_;  // polling loops of hosts; empty if loops are not modelled
  std::vector<SwitchLoop> switch_loops_;
  std::vector<std::uint64_t> address_hashes_;  // hashes of the addresses of hosts_
  std::vector<std::uint32_t> table_;           // open-addressing hash table of hosts by address, at most half full
};

}  // namespace mltcp::sim
