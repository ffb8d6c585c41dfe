// The event loop, the hosts' datapath and forwarding (see network.h).
#include "mltcp/lab/sim/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/transport/wire.h"

namespace mltcp::sim {
namespace {

constexpr std::uint32_t kIpUdpBytes = 28;
constexpr std::uint32_t kOverheadBytes = 42;
constexpr std::uint32_t kBurstPackets = 32;
constexpr std::uint32_t kEmptyPlace = 0xFFFFFFFF;

// Parameters of modelled polling loops. They equal those of transport/poll_loop.cpp with Idle::sleep.
constexpr Nanos kAwakeAfterPacket{6'000};  // for this time after the last packet, a loop polls continuously
// If a loop begins to sleep less than this time after the last packet, it sleeps at most `nap`. If not, it blocks.
constexpr Nanos kNapsAfterPacket{200'000};
constexpr Nanos kNotWorthANap{5'000};

const NetworkOptions& checked(const NetworkOptions& options) {
  if (options.mtu < 576 || options.mtu > 9000)
    throw InputError(fmt::format("the MTU is {}; give 576 to 9000 bytes", options.mtu));
  if (options.transmit_queue_packets < kBurstPackets)
    throw InputError(fmt::format("the transmit queue holds {} packets; give at least {}",
                                 options.transmit_queue_packets, kBurstPackets));
  return options;
}

std::uint64_t hash(const Address& address) {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, address.ip.data(), 8);
  std::memcpy(&low, address.ip.data() + 8, 8);
  const std::uint64_t mixed = (high ^ std::rotl(low, 32) ^ address.port) * 0x9E3779B97F4A7C15ULL;
  return mixed ^ (mixed >> 32);
}

std::uint64_t join(std::uint64_t source_hash, std::uint64_t destination_hash, std::uint32_t connection,
                   std::uint8_t path) {
  return source_hash * 3 + destination_hash + (std::uint64_t{connection} << 20) + (std::uint64_t{path} << 52);
}

/// Flips the bit of `packet` that the random number `bits` selects.
void flip(Packet* packet, std::uint64_t bits) {
  packet->corrupted = true;
  if (packet->length == 0) return;
  const auto bit = static_cast<std::size_t>((static_cast<Uint128>(bits) * std::size_t{packet->length} * 8) >> 64);
  packet->data()[bit / 8] ^= std::byte{1} << (bit % 8);
}

}  // namespace

std::uint64_t flow_hash(const Address& source, const Address& destination, std::uint32_t connection,
                        std::uint8_t path) {
  return join(hash(source), hash(destination), connection, path);
}
std::size_t pick_link(std::uint64_t flow_hash, std::uint64_t seed, std::size_t links) {
  return Random(flow_hash ^ seed).below(links);
}

const PacketIo::Limits& Host::limits() const { return network_.limits_; }
std::size_t Host::receive(std::span<RxPacket> out) { return network_.receive(*this, out); }
std::size_t Host::send(std::span<const TxPacket> packets) { return network_.send(*this, packets); }

Network::Network(const NetworkOptions& options) : options_(checked(options)), pool_(options.mtu - kIpUdpBytes) {
  limits_.max_packet_bytes = options.mtu - kIpUdpBytes;
  limits_.overhead_bytes = kOverheadBytes;
  limits_.burst = kBurstPackets;
  limits_.virtual_payload = options.virtual_payload;
  limits_.paths = kMaxPaths;
}

Network::~Network() = default;

// Set-up.

Host& Network::add_host(const Address& address) {
  if (find_host(address) != kEmptyPlace)
    throw InputError(fmt::format("two hosts have the address {}; give each its own", to_text(address)));
  const auto number = static_cast<std::uint32_t>(hosts_.size());
  hosts_.emplace_back(*this, number, address);
  address_hashes_.push_back(hash(address));
  events_.add(EventQueue::kSecond + number);
  if (options_.machines.host.on()) {
    hosts_.back().machine_ = static_cast<std::uint32_t>(machines_.size());
    machines_.push_back(
        {.lateness = {options_.machines.host, Random::stream(options_.machines.seed, number)}, .hosts = {number}});
  }
  if (table_.size() < 2 * hosts_.size()) {
    table_.assign(std::bit_ceil(4 * hosts_.size()), kEmptyPlace);
    for (const Host& host : hosts_) enter(host);
  } else {
    enter(hosts_.back());
  }
  return hosts_.back();
}

void Network::enter(const Host& host) {
  std::size_t place = hash(host.address_);
  while (table_[place & (table_.size() - 1)] != kEmptyPlace) ++place;
  table_[place & (table_.size() - 1)] = host.number_;
}

std::uint32_t Network::find_host(const Address& address) const {
  if (table_.empty()) return kEmptyPlace;
  for (std::size_t place = hash(address);; ++place) {
    const std::uint32_t number = table_[place & (table_.size() - 1)];
    if (number == kEmptyPlace || hosts_[number].address_ == address) return number;
  }
}

Network::Switch Network::add_switch() {
  nodes_.emplace_back();
  return static_cast<Switch>(nodes_.size() - 1);
}

Network::Switch Network::add_switch(const fabric::SwitchMemoryConfig& memory) {
  auto made = std::make_unique<fabric::SwitchMemory>(memory);
  const Switch at = add_switch();
  nodes_[at].memory = std::move(made);
  return at;
}

void Network::check_switch(Switch at) const {
  if (at >= nodes_.size())
    throw InputError(fmt::format("there is no switch {}; the network has {}", at, nodes_.size()));
}

void Network::check_link(LinkId link) const {
  if (link >= links_.size())
    throw InputError(fmt::format("there is no link {}; the network has {}", link, links_.size()));
}

void Network::check_unconnected(const Host& host) {
  if (host.uplink_ != Host::kNoLink)
    throw InputError(fmt::format("host {} has its link already; connect it once", to_text(host.address_)));
}

Network::LinkId Network::add_link(Switch far_end, const fabric::LinkConfig& config) {
  check_switch(far_end);
  const fabric::SwitchMemory* memory = nodes_[far_end].memory.get();
  if (memory != nullptr && memory->config().pfc.enabled)
    throw InputError(fmt::format("switch {} pauses its incoming links; make them priority links", far_end));
  links_.emplace_back(config, far_end);
  const auto id = static_cast<LinkId>(links_.size() - 1);
  events_.add(id);
  return id;
}

Network::LinkId Network::add_priority_link(std::optional<Switch> from, Switch to, const fabric::LinkConfig& config,
                                           std::uint32_t classes, Bytes headroom) {
  check_switch(to);
  if (from) check_switch(*from);
  LinkState state(config, to);
  state.near_end = from.value_or(kNoSwitch);
  state.priority = std::make_unique<fabric::PriorityLink>(config, classes, from ? nodes_[*from].memory.get() : nullptr);
  const auto id = static_cast<LinkId>(links_.size());
  if (nodes_[to].memory != nullptr) {
    state.ingress = nodes_[to].memory->add_ingress(headroom);
    nodes_[to].incoming.push_back(id);
  }
  links_.push_back(std::move(state));
  events_.add(id);
  return id;
}

void Network::share_loop(Host& host, const Host& other) {
  if (host.machine_ == other.machine_) return;
  std::erase(machines_[host.machine_].hosts, host.number_);
  host.machine_ = other.machine_;
  machines_[host.machine_].hosts.push_back(host.number_);
}

void Network::set_loop(Switch at, std::span<const LinkId> outgoing) {
  check_switch(at);
  if (!options_.machines.network_switch.on()) return;
  constexpr std::uint64_t first_stream = std::uint64_t{1} << 32;  // random streams with lower numbers belong to hosts
  SwitchLoop loop{
      .looks = {options_.machines.network_switch, Random::stream(options_.machines.seed, first_stream + at)},
      .incoming = {},
      .arrivals = {}};
  for (LinkId id = 0; id < links_.size(); ++id)
    if (links_[id].far_end == at) loop.incoming.push_back(id);
  nodes_[at].loop = static_cast<std::uint32_t>(switch_loops_.size());
  for (const LinkId id : outgoing) links_[id].near_loop = nodes_[at].loop;
  switch_loops_.push_back(std::move(loop));
}

Network::LinkId Network::connect(Host& host, Switch far_end, const fabric::LinkConfig& config) {
  check_unconnected(host);
  host.uplink_ = add_link(far_end, config);
  return host.uplink_;
}

void Network::connect(Host& host, LinkId link) {
  check_link(link);
  check_unconnected(host);
  host.uplink_ = link;
  host.counting_ = links_[link].priority ? Host::Counting::packets : Host::Counting::departures;
}

void Network::set_next(Switch at, const Host& destination, std::uint32_t next) {
  check_switch(at);
  std::vector<std::uint32_t>& table = nodes_[at].next;
  if (table.size() <= destination.number_) table.resize(destination.number_ + 1, kNoRoute);
  table[destination.number_] = next;
}

void Network::route(Switch at, const Host& destination, LinkId link) {
  check_link(link);
  set_next(at, destination, link);
}

Network::Group Network::add_group(std::span<const LinkId> links, std::uint64_t seed) {
  if (links.empty()) throw InputError("a group has no links; give at least one");
  for (const LinkId link : links) check_link(link);
  groups_.push_back({{links.begin(), links.end()}, seed});
  return static_cast<Group>(groups_.size() - 1);
}

void Network::route_group(Switch at, const Host& destination, Group group) {
  if (group >= groups_.size())
    throw InputError(fmt::format("there is no group {}; the network has {}", group, groups_.size()));
  set_next(at, destination, kFirstGroup + group);
}

void Network::route_to_host(Switch at, const Host& destination) { set_next(at, destination, kHere); }

void Network::meter(LinkId link, fabric::UsageMeter* meter) {
  check_link(link);
  links_[link].meter = meter;
}

void Network::attach(Host& host, Pollable& pollable) {
  host.pollable_ = &pollable;
  host.deadline_ = now_;
  schedule(host);
}

void Network::detach(Host& host) {
  host.pollable_ = nullptr;
  for (const Packet* packet = host.arrived_; packet != nullptr; packet = packet->next) ++counters_.unattached_host;
  free_list(host.arrived_);
  free_list(host.lent_);
  host.deadline_ = host.queue_free_at_ = Nanos::never();
  host.woken_ = false;
  schedule(host);
}

void Network::wake(Host& host) {
  if (host.pollable_ == nullptr) return;
  host.woken_ = true;
  schedule(host);
}

void Network::free_list(Packet*& list) {
  while (list != nullptr) {
    Packet* packet = list;
    list = packet->next;
    pool_.free(packet);
  }
}

// The event loop.

bool Network::run(Nanos until, const std::function<bool()>& stop) {
  const bool stoppable = static_cast<bool>(stop);
  while (!events_.empty() && events_.time() <= until) {
    now_ = events_.time();
    const EventQueue::Source source = events_.source();
    if (source < EventQueue::kSecond) {
      deliver(source);
      continue;
    }
    poll(hosts_[source - EventQueue::kSecond]);
    if (stoppable && stop()) return true;
  }
  if (!until.is_never() && until > now_) now_ = until;
  return false;
}

Bytes Network::queue_bytes(LinkId id) const {
  const LinkState& state = links_[id];
  if (!state.priority) return state.link.queue_bytes_at(now_);
  Bytes bytes = 0;
  for (std::uint32_t priority = 0; priority < state.priority->classes(); ++priority)
    bytes += state.priority->queue_bytes(priority);
  return bytes;
}

/// Processes the deliveries of link `id` at now().
void Network::deliver(LinkId id) {
  LinkState& state = links_[id];
  if (state.priority) [[unlikely]] {
    deliver_by_class(id);
    return;
  }
  const Node& node = nodes_[state.far_end];
  if (node.loop != kNoLoop) [[unlikely]] {
    deliver_to_loop(node);
    return;
  }
  while (const auto delivery = state.link.pop(now_)) forward(node, std::bit_cast<Packet*>(delivery->packet), id, now_);
  schedule(id);
}

/// Processes all packets that have arrived at a switch since its loop last polled. Assumes, as the software switch
/// does, that the frames of each port have arrived evenly spaced since the last poll.
void Network::deliver_to_loop(const Node& node) {
  SwitchLoop& loop = switch_loops_[node.loop];
  const Nanos before = std::min(loop.looks.before(now_), now_);
  loop.arrivals.clear();
  for (const LinkId id : loop.incoming) {
    const std::size_t first = loop.arrivals.size();
    while (const auto delivery = links_[id].link.pop(now_))
      loop.arrivals.push_back({std::bit_cast<Packet*>(delivery->packet), id, {}});
    const auto count = static_cast<std::int64_t>(loop.arrivals.size() - first);
    for (std::int64_t i = 0; i < count; ++i)
      loop.arrivals[first + static_cast<std::size_t>(i)].at = before + (now_ - before) / count * (i + 1);
  }
  std::ranges::stable_sort(loop.arrivals, {}, &SwitchLoop::Arrival::at);
  for (const SwitchLoop::Arrival& arrival : loop.arrivals) forward(node, arrival.packet, arrival.from, arrival.at);
  for (const LinkId id : loop.incoming) schedule(id);
}

/// Forwards a packet that link `from` has delivered to `node` at time `at`.
void Network::forward(const Node& node, Packet* packet, LinkId from, Nanos at) {
  ++counters_.packet_hops;
  const std::uint32_t next = packet->destination < node.next.size() ? node.next[packet->destination] : kNoRoute;
  if (next < kFirstGroup) {
    ++packet->hops;
    launch(next, packet, from, at);
  } else if (next < kHere) {
    ++packet->hops;
    launch(pick(groups_[next - kFirstGroup], packet), packet, from, at);
  } else if (next == kHere) {
    arrive(hosts_[packet->destination], packet);
  } else {
    ++counters_.unknown_destination;
    pool_.free(packet);
  }
}

/// Returns the link of `group` on which the packet's flow is sent.
Network::LinkId Network::pick(const LinkGroup& group, Packet* packet) const {
  const std::uint64_t flow = join(address_hashes_[packet->source], address_hashes_[packet->destination],
                                  wire::peek_connection(packet->bytes()), packet->path);
  return group.links[pick_link(flow, group.seed, group.links.size())];
}

/// Offers `packet`, which link `from` has delivered, to link `id`. Frees the packet if the link does not admit it.
/// Returns the time at which the packet leaves the queue. Returns 0 if link `id` has priority classes, because this
/// time is not known yet.
Nanos Network::launch(LinkId id, Packet* packet, LinkId from, Nanos at) {
  LinkState& state = links_[id];
  if (state.priority) [[unlikely]] {
    launch_by_class(id, packet, from);
    return {};
  }
  const auto admission = state.link.offer(std::bit_cast<fabric::Link::Handle>(packet), packet->wire_bytes,
                                          packet->ecn != Ecn::not_ect, at, packet->trimmed);
  if (admission.trim) [[unlikely]]
    trim(packet, state.link.config().trim_bytes);
  if (state.meter != nullptr && (admission.admitted || admission.lost)) count(state, packet, admission.departure);
  if (!admission.admitted) {
    pool_.free(packet);
    return admission.departure;
  }
  if (admission.mark) packet->ecn = Ecn::ce;
  if (admission.duplicate) state.link.offer_copy(std::bit_cast<fabric::Link::Handle>(pool_.copy(packet)));
  if (admission.corrupt) flip(packet, admission.corrupt_bits);
  schedule(id);
  return admission.departure;
}

/// Shortens a packet to `bytes` on the wire.
void Network::trim(Packet* packet, std::uint32_t bytes) {
  packet->trimmed = true;
  packet->wire_bytes = bytes;
  packet->virtual_bytes = 0;
  packet->length = static_cast<std::uint16_t>(std::min<std::uint32_t>(packet->length, bytes - kOverheadBytes));
}

/// Counts a packet, which leaves the queue at `departure`, in the meter of the link.
void Network::count(LinkState& state, Packet* packet, Nanos departure) {
  if (packet->corrupted) return;
  if (const auto tag = wire::peek_job_tag(packet->bytes())) state.meter->add(tag->job, packet->wire_bytes, departure);
}

// Links with priority classes. The faults of a packet are decided when its transmission starts, not when it enters the
// queue. In all other respects these links behave like links without classes.

void Network::launch_by_class(LinkId id, Packet* packet, LinkId from) {
  LinkState& state = links_[id];
  const std::uint32_t ingress = from == kNoLink ? fabric::SwitchMemory::kNoIngress : links_[from].ingress;
  const auto admission = state.priority->offer(std::bit_cast<fabric::Link::Handle>(packet), packet->wire_bytes,
                                               packet->ecn != Ecn::not_ect, packet->priority, ingress, now_);
  if (!admission.admitted) {
    pool_.free(packet);
  } else {
    if (admission.mark) packet->ecn = Ecn::ce;
    if (state.near_end == kNoSwitch) ++hosts_[packet->source].waiting_;
  }
  transmit(id);
}

void Network::deliver_by_class(LinkId id) {
  LinkState& state = links_[id];
  const Node& node = nodes_[state.far_end];
  while (const auto delivery = state.priority->pop(now_))
    forward(node, std::bit_cast<Packet*>(delivery->packet), id, now_);
  transmit(id);
}

/// Starts all transmissions that are possible on a link at now(). Schedules hosts that wait for room in their transmit
/// queue, and sends pause requests to incoming links.
void Network::transmit(LinkId id) {
  LinkState& state = links_[id];
  while (const auto start = state.priority->start(now_)) {
    auto* packet = std::bit_cast<Packet*>(start->packet);
    const fabric::Link::Admission& admission = start->admission;
    if (state.near_end == kNoSwitch) {
      Host& host = hosts_[packet->source];
      --host.waiting_;
      if (host.refused_ && host.waiting_ + kBurstPackets <= options_.transmit_queue_packets) {
        host.refused_ = false;
        host.queue_free_at_ = now_;
        schedule(host);
      }
    }
    if (state.meter != nullptr) count(state, packet, admission.departure);
    if (!admission.admitted) {
      pool_.free(packet);
      continue;
    }
    if (admission.duplicate) state.priority->offer_copy(std::bit_cast<fabric::Link::Handle>(pool_.copy(packet)));
    if (admission.corrupt) flip(packet, admission.corrupt_bits);
  }
  schedule(id);
  if (state.near_end == kNoSwitch) return;
  const Node& node = nodes_[state.near_end];
  while (node.memory != nullptr && node.memory->has_pauses()) {
    const fabric::SwitchMemory::Pause pause = node.memory->take_pause();
    LinkState& paused = links_[node.incoming[pause.ingress]];
    paused.priority->pause(pause.priority, pause.on, now_ + fabric::pause_time(paused.priority->config()));
    schedule(node.incoming[pause.ingress]);
  }
}

void Network::schedule(LinkId id) {
  const LinkState& state = links_[id];
  Nanos next;
  if (state.priority) [[unlikely]] {
    next = state.priority->next_event();
  } else {
    next = state.link.next_delivery();
    // Prefetches the packet some events before its delivery. If many packets are in flight, the packet is no longer in
    // the CPU cache.
    if (!next.is_never()) __builtin_prefetch(std::bit_cast<const Packet*>(state.link.next_packet()), 1);
  }
  if (!switch_loops_.empty() && !next.is_never()) [[unlikely]] {
    if (state.near_loop != kNoLoop) next = switch_loops_[state.near_loop].looks.at_or_after(next, now_);
    if (const std::uint32_t far = nodes_[state.far_end].loop; far != kNoLoop)
      next = switch_loops_[far].looks.at_or_after(next, now_);
  }
  if (next != events_.time(id)) events_.set(id, next);
}

void Network::arrive(Host& host, Packet* packet) {
  if (host.pollable_ == nullptr) [[unlikely]] {
    ++counters_.unattached_host;
    pool_.free(packet);
    return;
  }
  packet->next = nullptr;
  if (host.arrived_ == nullptr) {
    host.arrived_ = packet;
    if (host.machine_ == Host::kNoMachine) [[likely]]
      events_.set(EventQueue::kSecond + host.number_, now_);
    else
      rouse(machines_[host.machine_], false);
  } else {
    host.arrived_last_->next = packet;
  }
  host.arrived_last_ = packet;
}

// Machines whose polling loops are modelled (see loop_model.h and PollLoop::run()).

/// Schedules the machine's next poll, after `host` has been polled.
void Network::plan(Machine& machine, Host& host) {
  const Nanos nap = options_.machines.host.nap;
  if (machine.polled_at != now_) {
    machine.polled_at = now_;
    machine.late = Nanos(-1);
  }
  host.polled_at_ = now_;
  if (host.active_) machine.busy_at = now_;
  Nanos due = Nanos::never();
  for (const std::uint32_t number : machine.hosts) {
    const Host& other = hosts_[number];
    if (other.polled_at_ != now_) continue;  // this host is due at now(), but has not been polled yet
    due = std::min({due, other.deadline_, other.queue_free_at_});
    if (other.woken_ || other.arrived_ != nullptr) due = now_;
  }
  machine.asleep_from = std::max(now_, machine.busy_at + kAwakeAfterPacket);
  machine.waits = false;
  if (due <= machine.asleep_from + kNotWorthANap) {
    machine.look = std::max(due, now_);
    machine.asleep_from = machine.look;
  } else {
    if (machine.late < Nanos(0)) machine.late = machine.lateness.draw(nap);
    machine.waits = machine.asleep_from - machine.busy_at >= kNapsAfterPacket;
    if (machine.waits)
      machine.look = due.is_never() ? due : due + machine.late;
    else
      machine.look = machine.asleep_from + std::min(due - machine.asleep_from, nap) + machine.late;
  }
  for (const std::uint32_t number : machine.hosts)
    events_.set(EventQueue::kSecond + number, hosts_[number].polled_at_ == now_ ? machine.look : now_);
}

/// Moves the machine's next poll to an earlier time. If `at_once` is true, a poll has been requested for now(). If not,
/// a packet has arrived.
void Network::rouse(Machine& machine, bool at_once) {
  Nanos look = machine.look;
  if (at_once || now_ <= machine.asleep_from)
    look = now_;
  else if (machine.waits)
    look = std::min(look, now_ + machine.late);
  if (look == machine.look) return;
  machine.look = look;
  for (const std::uint32_t number : machine.hosts) events_.set(EventQueue::kSecond + number, look);
}

void Network::poll(Host& host) {
  host.active_ = false;
  host.woken_ = false;
  if (host.queue_free_at_ <= now_) host.queue_free_at_ = Nanos::never();
  host.deadline_ = Nanos::never();
  Nanos deadline;
  if (host.pollable_ == nullptr) [[unlikely]] {
    plan(machines_[host.machine_], host);  // a host without a Pollable is polled only as a part of its machine's loop
    return;
  }
  try {
    deadline = host.pollable_->poll(now_);
  } catch (...) {
    // If the host stayed due at now(), the next run() would poll it again and so might never proceed.
    events_.set(EventQueue::kSecond + host.number_, Nanos::never());
    throw;
  }
  if (host.pollable_ == nullptr) return;                // poll() has detached the Pollable
  host.deadline_ = std::min(host.deadline_, deadline);  // poll() may have attached another Pollable
  if (host.active_ || host.idle_since_ != now_) {
    host.idle_since_ = now_;
    host.idle_polls_ = 0;
  } else if (++host.idle_polls_ >= kMaxIdlePolls) {
    throw RunError(fmt::format("host {} was polled {} times at {} ns without receiving or sending a packet; {}",
                               to_text(host.address_), kMaxIdlePolls, now_.count,
                               host.arrived_ != nullptr
                                   ? "it must take the packets that have arrived"
                                   : "the deadline that it returns must lie after the time of the poll"));
  }
  if (host.machine_ != Host::kNoMachine) [[unlikely]]
    plan(machines_[host.machine_], host);
  else
    schedule(host);
}

void Network::schedule(Host& host) {
  Nanos due = std::min(host.deadline_, host.queue_free_at_);
  if (host.machine_ != Host::kNoMachine) [[unlikely]] {
    rouse(machines_[host.machine_], true);
    return;
  }
  if (host.woken_ || host.arrived_ != nullptr || due < now_) due = now_;
  events_.set(EventQueue::kSecond + host.number_, due);
}

// The hosts' datapath.

/// Returns the number of packets of `host` that are waiting or being sent.
std::size_t Network::transmit_queue(Host& host) {
  if (host.counting_ == Host::Counting::link) return links_[host.uplink_].link.queue_packets(now_);
  while (!host.departures_.empty() && host.departures_.front() <= now_) host.departures_.pop();
  return host.waiting_ + host.departures_.size();
}

/// Returns when the full transmit queue will have room for a burst. Returns never() if this time is not known in
/// advance; transmit() then detects the room.
Nanos Network::time_of_free_place(Host& host) {
  const std::size_t max = options_.transmit_queue_packets - kBurstPackets;
  if (host.counting_ == Host::Counting::link) return links_[host.uplink_].link.time_of_queue(max, now_);
  if (host.counting_ == Host::Counting::packets) {
    host.refused_ = true;
    return Nanos::never();
  }
  const auto& departures = host.departures_;
  return departures.size() <= max ? now_ : departures[departures.end() - max - 1];
}

std::size_t Network::send(Host& host, std::span<const TxPacket> packets) {
  if (host.uplink_ == Host::kNoLink) [[unlikely]] {
    counters_.sent_packets += packets.size();
    counters_.unknown_destination += packets.size();
    return packets.size();
  }
  const std::size_t waiting = transmit_queue(host);
  const std::size_t free =
      options_.transmit_queue_packets - std::min<std::size_t>(waiting, options_.transmit_queue_packets);
  const std::size_t taken = std::min({packets.size(), free, static_cast<std::size_t>(kBurstPackets)});
  for (const TxPacket& out : packets.first(taken)) {
    const bool is_virtual = out.payload.data() == nullptr && !out.payload.empty();
    const std::size_t length = out.header.size() + out.payload.size();
    if (length > limits_.max_packet_bytes || (is_virtual && !options_.virtual_payload)) [[unlikely]] {
      ++counters_.invalid_packets;
      continue;
    }
    const std::uint32_t destination = find_host(*out.destination);
    if (destination == kEmptyPlace) [[unlikely]] {
      ++counters_.unknown_destination;
      continue;
    }
    Packet* packet = pool_.allocate(is_virtual ? out.header.size() : length);
    packet->source = host.number_;
    packet->destination = destination;
    packet->wire_bytes = static_cast<std::uint32_t>(length) + kOverheadBytes;
    packet->virtual_bytes = is_virtual ? static_cast<std::uint32_t>(out.payload.size()) : 0;
    packet->ecn = out.ecn;
    packet->corrupted = packet->trimmed = false;
    packet->priority = out.priority;
    packet->path = out.path;
    packet->hops = 0;
    if (!out.header.empty()) std::memcpy(packet->data(), out.header.data(), out.header.size());
    if (!is_virtual && !out.payload.empty())
      std::memcpy(packet->data() + out.header.size(), out.payload.data(), out.payload.size());
    const Nanos departure = launch(host.uplink_, packet, kNoLink, now_);
    if (host.counting_ == Host::Counting::departures) host.departures_.push(departure);
  }
  counters_.sent_packets += taken;
  host.active_ |= taken > 0;
  if (taken == free && taken < packets.size()) {
    // The host is polled again when there is room for a whole burst. A poll at the departure of each packet would cost
    // more than sending the packet.
    host.queue_free_at_ = time_of_free_place(host);
    if (host.machine_ == Host::kNoMachine) [[likely]]
      schedule(host);
  }
  return taken;
}

std::size_t Network::receive(Host& host, std::span<RxPacket> out) {
  free_list(host.lent_);
  const std::size_t max = std::min(out.size(), static_cast<std::size_t>(kBurstPackets));
  std::size_t count = 0;
  Packet* packet = host.arrived_;
  Packet* last = nullptr;
  for (; packet != nullptr && count < max; packet = packet->next) {
    RxPacket& in = out[count++];
    in.source = hosts_[packet->source].address_;
    in.bytes = packet->bytes();
    in.virtual_bytes = packet->virtual_bytes;
    in.ecn = packet->ecn;
    in.priority = packet->priority;
    in.hops = packet->hops;
    in.is_trimmed = packet->trimmed;
    last = packet;
  }
  if (last == nullptr) return 0;
  host.lent_ = host.arrived_;
  host.arrived_ = packet;
  last->next = nullptr;
  counters_.received_packets += count;
  host.active_ = true;
  return count;
}

}  // namespace mltcp::sim
