// Computes weighted max-min rates and the events of flows (see flow_network.h).
#include "mltcp/lab/sim/flow_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mltcp/base/error.h"

namespace mltcp::sim {
namespace {

constexpr double kBytesPerNano = 1.0 / 8e9;  // bytes per nanosecond at a rate of 1 bit per second
constexpr double kLastTime = 4e18;           // 127 years in ns; an event after this time happens at this time
// Two levels (rates divided by weights) are considered equal if their ratio is below this, to absorb rounding.
constexpr double kAlike = 1 + 1e-12;

double capacity_of(Rate rate) {
  if (rate.is_zero()) throw InputError("a link of a flow network has no rate; give it one above 0");
  if (rate.bits_per_second > 1'000'000'000'000'000)
    throw InputError(fmt::format("a link of a flow network has {}; give it at most 1000 Tbps", to_text(rate)));
  return static_cast<double>(rate.bits_per_second) * kBytesPerNano;
}

/// Returns the first whole nanosecond at which `amount` bytes have been sent since `now`, at `rate` bytes per
/// nanosecond. Returns kLastTime at most.
Nanos time_after(Nanos now, double amount, double rate) {
  const double wait = std::ceil(std::max(amount, 0.0) / rate);
  const double left = kLastTime - static_cast<double>(now.count);
  return now + Nanos(static_cast<std::int64_t>(std::min(wait, std::max(left, 0.0))));
}

}  // namespace

FlowNetwork::FlowNetwork(const Options& options) : options_(options) {
  if (options.weight_steps < 1 || options.weight_steps > 65536)
    throw InputError(fmt::format("weight_steps of a flow network is {}; give 1 to 65536", options.weight_steps));
}

// Set-up.

void FlowNetwork::check_link(LinkId link) const {
  if (link >= links_.size())
    throw InputError(fmt::format("there is no link {}; the flow network has {}", link, links_.size()));
}

FlowNetwork::LinkId FlowNetwork::add_link(Rate rate) {
  Link link;
  link.capacity = capacity_of(rate);
  link.rate = static_cast<std::int64_t>(rate.bits_per_second);
  links_.push_back(std::move(link));
  return static_cast<LinkId>(links_.size() - 1);
}

void FlowNetwork::set_rate(LinkId id, Rate rate) {
  check_link(id);
  Link& link = links_[id];
  const double capacity = capacity_of(rate);
  if (capacity == link.capacity) return;
  link.capacity = capacity;
  link.rate = static_cast<std::int64_t>(rate.bits_per_second);
  // Only sending flows are members of a link. An idle flow computes its maximum rate when it starts to send.
  for (const Member& member : link.members) {
    Flow& flow = flows_[member.flow];
    for (const PathHop& hop : flow.path) links_[hop.link].demand -= hop.demand;
    set_max(flow);
    for (const PathHop& hop : flow.path) {
      links_[hop.link].demand += hop.demand;
      touch(hop.link);
    }
    changed_flows_.push_back(member.flow);
  }
}

FlowNetwork::GroupId FlowNetwork::add_group(std::uint32_t job, const cc::Augmentation& augmentation) {
  Group group;
  group.job = job;
  group.augmentation = augmentation;
  if (free_groups_.empty()) {
    groups_.emplace_back();
    free_groups_.push_back(static_cast<GroupId>(groups_.size() - 1));
    events_.add(EventQueue::kSecond + free_groups_.back());
  }
  const GroupId id = free_groups_.back();
  free_groups_.pop_back();
  groups_[id] = std::move(group);
  find_gain(groups_[id]);
  return id;
}

FlowNetwork::FlowId FlowNetwork::add_flow(GroupId group, std::span<const Hop> path, std::uint32_t connections) {
  if (group >= groups_.size() || groups_[group].removed)
    throw InputError(fmt::format("there is no group {} of flows; add it first", group));
  if (connections == 0) throw InputError("a flow has no connections; give 1 or more");
  if (path.empty()) throw InputError("a flow has no path; name at least one link");
  Flow flow;
  flow.group = group;
  flow.connections = connections;
  for (const Hop& hop : path) {
    check_link(hop.link);
    if (!(hop.wire_bytes_per_byte > 0) || !std::isfinite(hop.wire_bytes_per_byte))
      throw InputError(
          fmt::format("a byte of a flow takes {} bytes of a link; give more than 0", hop.wire_bytes_per_byte));
    for (const PathHop& before : flow.path)
      if (before.link == hop.link) throw InputError(fmt::format("link {} is twice on a path; name it once", hop.link));
    flow.path.push_back({.link = hop.link, .cost = hop.wire_bytes_per_byte});
  }
  if (free_flows_.empty()) {
    flows_.emplace_back();
    free_flows_.push_back(static_cast<FlowId>(flows_.size() - 1));
    events_.add(free_flows_.back());
  }
  const FlowId id = free_flows_.back();
  free_flows_.pop_back();
  flow.visit = flows_[id].visit;
  flows_[id] = std::move(flow);
  groups_[group].flows.push_back(id);
  return id;
}

void FlowNetwork::remove_group(GroupId id) {
  if (id >= groups_.size() || groups_[id].removed)
    throw InputError(fmt::format("there is no group {} of flows to remove", id));
  for (const FlowId flow : groups_[id].flows) {
    if (flows_[flow].state == State::sending) leave(flow);
    events_.set(flow, Nanos::never());
    flows_[flow].queue.clear();
    flows_[flow].state = State::removed;
    free_flows_.push_back(flow);
  }
  events_.set(EventQueue::kSecond + id, Nanos::never());
  groups_[id].removed = true;
  groups_[id].flows.clear();
  free_groups_.push_back(id);
}

void FlowNetwork::meter(LinkId link, fabric::UsageMeter* meter) {
  check_link(link);
  for (const Member& member : links_[link].members) settle(flows_[member.flow]);
  links_[link].meter = meter;
}

// Traffic.

void FlowNetwork::begin_iteration(GroupId id, Bytes bytes) {
  Group& group = groups_[id];
  settle(group);
  group.bytes_per_iteration = bytes;
  group.sent = 0;
  find_gain(group);
  events_.set(EventQueue::kSecond + id, Nanos::never());
  if (group.augmentation.iteration_aware())
    changed_flows_.insert(changed_flows_.end(), group.senders.begin(), group.senders.end());
}

void FlowNetwork::send(FlowId id, Bytes bytes, std::uint64_t tag, Nanos not_before) {
  Flow& flow = flows_[id];
  flow.queue.push_back({bytes, tag});
  if (flow.state != State::idle) return;
  if (not_before > now_) {
    flow.state = State::waiting;
    events_.set(id, not_before);
  } else {
    enter(id);
  }
}

/// Computes the maximum rate of the flow's path. The flow counts with this rate in the demand on each link of its path.
void FlowNetwork::set_max(Flow& flow) {
  flow.max = std::numeric_limits<double>::infinity();
  for (const PathHop& hop : flow.path) flow.max = std::min(flow.max, links_[hop.link].capacity / hop.cost);
  for (PathHop& hop : flow.path)
    hop.demand = static_cast<std::int64_t>(std::llround(flow.max * hop.cost / kBytesPerNano));
}

/// Makes the flow start to send.
void FlowNetwork::enter(FlowId id) {
  Flow& flow = flows_[id];
  Group& group = groups_[flow.group];
  ++counters_.events;
  set_max(flow);
  for (std::uint32_t i = 0; i < flow.path.size(); ++i) {
    PathHop& hop = flow.path[i];
    Link& link = links_[hop.link];
    hop.place = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back({id, i});
    link.demand += hop.demand;
    touch(hop.link);
  }
  flow.place = static_cast<std::uint32_t>(group.senders.size());
  group.senders.push_back(id);
  flow.state = State::sending;
  flow.left = static_cast<double>(flow.queue.front().bytes);
  flow.rate = 0;
  flow.settled = now_;
  changed_flows_.push_back(id);
}

/// Makes the flow stop sending.
void FlowNetwork::leave(FlowId id) {
  Flow& flow = flows_[id];
  ++counters_.events;
  settle(flow);
  for (const PathHop& hop : flow.path) {
    Link& link = links_[hop.link];
    const Member last = link.members.back();
    link.members[hop.place] = last;
    flows_[last.flow].path[last.hop].place = hop.place;
    link.members.pop_back();
    link.demand -= hop.demand;
    touch(hop.link);
  }
  std::vector<FlowId>& senders = groups_[flow.group].senders;
  senders[flow.place] = senders.back();
  flows_[senders.back()].place = flow.place;
  senders.pop_back();
  flow.state = State::idle;
  flow.rate = 0;
  flow.contended = false;
}

/// Accounts for the bytes that the flow has sent since it was last settled.
void FlowNetwork::settle(Flow& flow) {
  if (flow.state != State::sending || flow.settled == now_) return;
  const double bytes = std::min(flow.left, flow.rate * static_cast<double>((now_ - flow.settled).count));
  for (PathHop& hop : flow.path) {
    Link& link = links_[hop.link];
    const double wire_bytes = bytes * hop.cost;
    link.use.wire_bytes += wire_bytes;
    if (link.contended) link.use.contended_wire_bytes += wire_bytes;
    if (link.meter != nullptr) update_meter(link, flow, hop, wire_bytes);
  }
  flow.left -= bytes;
  groups_[flow.group].sent += bytes;
  flow.settled = now_;
}

/// Distributes `wire_bytes`, which the flow has sent since it was last settled, over the bins of the link's meter.
void FlowNetwork::update_meter(const Link& link, const Flow& flow, PathHop& hop, double wire_bytes) const {
  const auto duration = static_cast<double>((now_ - flow.settled).count);
  const std::uint32_t job = groups_[flow.group].job;
  for (Nanos from = flow.settled; from < now_;) {
    const Nanos bin = link.meter->bin();
    const Nanos to = std::min(now_, Nanos((from.count / bin.count + 1) * bin.count));
    hop.metered += wire_bytes * (static_cast<double>((to - from).count) / duration);
    const auto whole = static_cast<Bytes>(hop.metered);
    if (whole > 0) link.meter->add(job, whole, from);
    hop.metered -= static_cast<double>(whole);
    from = to;
  }
}

void FlowNetwork::settle(Group& group) {
  for (const FlowId id : group.senders) settle(flows_[id]);
}

/// Updates the group's step of progress and the gain in this step. The group's flows must be settled.
void FlowNetwork::find_gain(Group& group) {
  group.step = 0;
  group.gain = 1;
  if (group.bytes_per_iteration == 0 && group.augmentation.iteration_aware()) return;
  const double steps = options_.weight_steps;
  if (group.bytes_per_iteration > 0) {
    const double progress = group.sent / static_cast<double>(group.bytes_per_iteration) * steps;
    // The computed progress of a group that has just reached a step may be slightly below the step because of rounding.
    group.step = static_cast<std::uint32_t>(std::min(progress + 1e-9, steps - 1));
  }
  group.gain = group.augmentation.gain_at((group.step + 0.5) / steps);
}

// Time.

void FlowNetwork::update() {
  while (!changed_flows_.empty() || !changed_links_.empty()) allocate();
}

Nanos FlowNetwork::next_event() {
  update();
  return events_.empty() ? Nanos::never() : events_.time();
}

void FlowNetwork::advance(Nanos time) {
  update();
  finished_.clear();
  now_ = time;
  while (!events_.empty() && events_.time() <= now_) {
    const EventQueue::Source source = events_.source();
    events_.set(source, Nanos::never());
    if (source >= EventQueue::kSecond) {
      const GroupId id = source - EventQueue::kSecond;
      ++counters_.events;
      changed_flows_.insert(changed_flows_.end(), groups_[id].senders.begin(), groups_[id].senders.end());
      continue;
    }
    Flow& flow = flows_[source];
    if (flow.state == State::waiting) {
      flow.state = State::idle;
      enter(source);
      continue;
    }
    settle(flow);
    groups_[flow.group].sent += flow.left;  // flow.left should be 0 here and differs only by rounding
    flow.left = 0;
    finished_.push_back({source, flow.queue.front().tag, flow.queue.front().bytes});
    flow.queue.pop_front();
    if (flow.queue.empty()) {
      leave(source);
    } else {
      flow.left = static_cast<double>(flow.queue.front().bytes);
      events_.set(source, time_after(now_, flow.left, flow.rate));
    }
  }
}

// Rates.

/// Settles a flow that is sending, and adds it to the component whose rates are recomputed.
void FlowNetwork::visit(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.visit == visit_ || flow.state != State::sending) return;
  flow.visit = visit_;
  settle(flow);
  component_.push_back(id);
  for (const PathHop& hop : flow.path) visit_link(hop.link);
  Group& group = groups_[flow.group];
  if (group.visit == visit_) return;
  group.visit = visit_;
  component_groups_.push_back(flow.group);
}

void FlowNetwork::visit_link(LinkId id) {
  Link& link = links_[id];
  if (link.visit == visit_ || (!link.tight && link.demand <= link.rate)) return;
  link.visit = visit_;
  component_links_.push_back(id);
}

void FlowNetwork::allocate() {
  ++visit_;
  component_.clear();
  component_links_.clear();
  component_groups_.clear();
  for (const FlowId id : changed_flows_) visit(id);
  for (const LinkId id : changed_links_) visit_link(id);
  changed_flows_.clear();
  changed_links_.clear();
  for (std::size_t next = 0; next < component_links_.size(); ++next)
    for (const Member& member : links_[component_links_[next]].members) visit(member.flow);
  ++counters_.allocations;
  counters_.allocated_flows += component_.size();

  for (const GroupId id : component_groups_) {
    if (!groups_[id].augmentation.iteration_aware()) continue;
    settle(groups_[id]);
    const double before = groups_[id].gain;
    find_gain(groups_[id]);
    // If the gain has changed, recompute the rates of the group's flows outside this component as well.
    if (groups_[id].gain != before)
      for (const FlowId flow : groups_[id].senders)
        if (flows_[flow].visit != visit_ && flows_[flow].contended) changed_flows_.push_back(flow);
  }
  for (const LinkId id : component_links_) judge(links_[id]);
  rates_before_.clear();
  for (const FlowId id : component_) {
    Flow& flow = flows_[id];
    rates_before_.push_back(flow.rate);
    flow.weight = flow.connections * groups_[flow.group].gain;
    flow.frozen = false;
    flow.contended = false;
    for (const PathHop& hop : flow.path) flow.contended |= links_[hop.link].contended;
  }
  fill();
  for (std::size_t i = 0; i < component_.size(); ++i) {
    const Flow& flow = flows_[component_[i]];
    if (flow.rate != rates_before_[i]) events_.set(component_[i], time_after(now_, flow.left, flow.rate));
  }
  for (const GroupId id : component_groups_) schedule_gain(id);
}

/// Determines whether the link is tight (its demand exceeds its rate) and whether it is contended. Updates the time for
/// which it has been contended.
void FlowNetwork::judge(Link& link) {
  link.tight = link.demand > link.rate;
  bool contended = false;
  if (link.tight)
    for (const Member& member : link.members)
      contended |= flows_[member.flow].group != flows_[link.members.front().flow].group;
  if (contended && !link.contended) link.contended_since = now_;
  if (!contended && link.contended) link.use.contended += now_ - link.contended_since;
  link.contended = contended;
}

void FlowNetwork::push(double level, std::uint32_t source) {
  heap_.push_back({level, source});
  std::push_heap(heap_.begin(), heap_.end(), [](const Level& a, const Level& b) {
    return a.level != b.level ? a.level > b.level : a.source > b.source;
  });
}

/// Progressive filling: the rates of all flows of the component increase in proportion to their weights. The rate of a
/// flow stops increasing when a link of its path is full, or at the maximum rate of the path.
void FlowNetwork::fill() {
  constexpr std::uint32_t flows_from = EventQueue::kSecond;
  const auto later = [](const Level& a, const Level& b) {
    return a.level != b.level ? a.level > b.level : a.source > b.source;
  };
  heap_.clear();
  for (const LinkId id : component_links_) {
    Link& link = links_[id];
    if (!link.tight) continue;
    link.left = link.capacity;
    link.unfrozen = link.members.size();
    link.weight = 0;
    for (const Member& member : link.members)
      link.weight += flows_[member.flow].weight * flows_[member.flow].path[member.hop].cost;
    heap_.push_back({link.left / link.weight, id});
  }
  for (const FlowId id : component_) {
    Flow& flow = flows_[id];
    bool held = false;  // whether a tight link has no more capacity than the flow needs at the maximum rate of its path
    bool free = true;
    for (const PathHop& hop : flow.path) {
      const Link& link = links_[hop.link];
      if (!link.tight) continue;
      free = false;
      held |= link.capacity <= flow.max * hop.cost * kAlike;
    }
    if (free)
      freeze(flow, flow.max);
    else if (!held)
      heap_.push_back({flow.max / flow.weight, flows_from + id});
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  double level = 0;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Level next = heap_.back();
    heap_.pop_back();
    if (next.source >= flows_from) {
      Flow& flow = flows_[next.source - flows_from];
      if (flow.frozen) continue;
      level = std::max(level, next.level);
      freeze(flow, flow.max);
      continue;
    }
    Link& link = links_[next.source];
    if (link.unfrozen == 0) continue;
    const double at = std::max(link.left, 0.0) / link.weight;
    // some flows of the link have stopped increasing, so the link fills up later than estimated
    if (at > next.level * kAlike) {
      push(at, next.source);
      continue;
    }
    level = std::max(level, at);
    for (const Member& member : link.members) {
      Flow& flow = flows_[member.flow];
      if (!flow.frozen) freeze(flow, std::min(flow.max, flow.weight * level));
    }
  }
}

void FlowNetwork::freeze(Flow& flow, double rate) {
  flow.frozen = true;
  flow.rate = rate;
  for (const PathHop& hop : flow.path) {
    Link& link = links_[hop.link];
    if (!link.tight) continue;
    link.left -= rate * hop.cost;
    link.weight -= flow.weight * hop.cost;
    --link.unfrozen;
  }
}

/// Schedules the next change of the group's gain, if a contended flow of the group is sending.
void FlowNetwork::schedule_gain(GroupId id) {
  Group& group = groups_[id];
  Nanos at = Nanos::never();
  if (group.augmentation.iteration_aware() && group.bytes_per_iteration > 0 && group.step + 1 < options_.weight_steps) {
    double rate = 0;
    bool contended = false;
    for (const FlowId flow : group.senders) {
      rate += flows_[flow].rate;
      contended |= flows_[flow].contended;
    }
    const double goal = static_cast<double>(group.bytes_per_iteration) * (group.step + 1) / options_.weight_steps;
    if (contended) at = std::max(time_after(now_, goal - group.sent, rate), now_ + Nanos(1));
  }
  events_.set(EventQueue::kSecond + id, at);
}

// State.

double FlowNetwork::bytes_per_second(FlowId flow) {
  update();
  return flows_[flow].rate * 1e9;
}

double FlowNetwork::bytes_ratio(GroupId id) {
  Group& group = groups_[id];
  settle(group);
  if (group.bytes_per_iteration == 0) return 0;
  return std::min(1.0, group.sent / static_cast<double>(group.bytes_per_iteration));
}

FlowNetwork::LinkUse FlowNetwork::use(LinkId id) {
  Link& link = links_[id];
  for (const Member& member : link.members) settle(flows_[member.flow]);
  LinkUse use = link.use;
  if (link.contended) use.contended += now_ - link.contended_since;
  return use;
}

/// Returns the bytes that the flow has sent since it was last settled, as of `time`.
double FlowNetwork::unsettled_at(const Flow& flow, Nanos time) {
  if (flow.state != State::sending) return 0;
  return std::min(flow.left, flow.rate * static_cast<double>((time - flow.settled).count));
}

double FlowNetwork::bytes_ratio_at(GroupId id, Nanos time) const {
  const Group& group = groups_[id];
  if (group.bytes_per_iteration == 0) return 0;
  double sent = group.sent;
  for (const FlowId flow : group.senders) sent += unsettled_at(flows_[flow], time);
  return std::min(1.0, sent / static_cast<double>(group.bytes_per_iteration));
}

double FlowNetwork::wire_bytes_at(LinkId id, Nanos time) const {
  const Link& link = links_[id];
  double bytes = link.use.wire_bytes;
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.flow];
    bytes += unsettled_at(flow, time) * flow.path[member.hop].cost;
  }
  return bytes;
}

double FlowNetwork::sent_at(FlowId id, Nanos time) const {
  const Flow& flow = flows_[id];
  if (flow.state != State::sending) return 0;
  return static_cast<double>(flow.queue.front().bytes) - flow.left + unsettled_at(flow, time);
}

}  // namespace mltcp::sim
