// The part of a worker that opens and ends connections (see worker.h; frames.h defines the frames).
//
// The connecting endpoint sends a hello with its own address and the id of the endpoint that it wants to reach. The
// accepting endpoint compares this id with its own id, and answers with its own hello. So each endpoint knows its peer,
// and a new process at an old address is not mistaken for the old process. A tagged connection consists of two
// transport connections whose hellos contain the same random token. The accepting endpoint answers both hellos when
// both have arrived.
#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/internal/worker.h"

namespace mltcp::endpoint {
namespace {

/// Returns the generation number for the next connection in this slot of the table. It differs from the generation of
/// an ended connection whose face (see Face in link.h) is still stored.
std::uint32_t next_generation(const Link& link) {
  const std::uint64_t face = link.face.load(std::memory_order_relaxed);
  return Face::is_some(face) ? Face::next(Face::generation(face)) : Face::generation(face);
}

Code code_of(Verdict verdict, Cause& cause) {
  switch (verdict) {
    case Verdict::wrong_peer:
      cause = Cause::other_endpoint;
      return Code::wrong_peer;
    case Verdict::version:
      cause = Cause::other_version;
      return Code::version;
    case Verdict::no_room:
      cause = Cause::peer_full;
      return Code::refused;
    case Verdict::refused:
      cause = Cause::nobody_listens;
      return Code::refused;
    default:
      cause = Cause::malformed_frame;
      return Code::protocol;
  }
}

/// Maximum number of slots that other threads count as free but have not yet returned to the list of free slots.
constexpr std::size_t kBetweenHands = 8;

bool is_shard_of(const EndpointAddress& endpoint, const Address& address) {
  return endpoint.base().ip == address.ip && address.port >= endpoint.base().port &&
         address.port - endpoint.base().port < endpoint.shards();
}

}  // namespace

Code Worker::code_of(Status status, bool was_open, Cause& cause) {
  switch (status) {
    case Status::refused:
      cause = Cause::nobody_listens;
      return Code::refused;
    case Status::full:
      cause = Cause::peer_full;
      return Code::refused;
    case Status::unreachable:
      cause = Cause::silence;
      return Code::unreachable;
    case Status::version:
      cause = Cause::other_version;
      return Code::version;
    case Status::no_key:
      cause = Cause::none;
      return Code::no_key;
    case Status::violation:
      cause = Cause::false_acknowledgement;
      return Code::protocol;
    case Status::aborted:
      cause = Cause::peer;
      return was_open ? Code::aborted : Code::refused;
    default:
      cause = Cause::peer;
      return Code::closed;
  }
}

Code Worker::code_of(const Link& link, Status status, Cause& cause) {
  if (link.state == Link::State::ended) {
    cause = link.end_cause;
    return link.end_code;
  }
  const Code code = code_of(status, true, cause);
  if (code == Code::closed && link.closes_here) cause = Cause::here;
  return code;
}

// ---- The table of connections ----

Link* Worker::reserve_link(ConnectionKind kind, const EndpointAddress& peer, std::uint64_t random,
                           bool reports_failure) noexcept {
  if (known_links_.fetch_add(1, std::memory_order_relaxed) >= shared_.config->max_connections) {
    known_links_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  const bool needs_place = shared_.config->event_callback == nullptr;
  std::uint32_t slot = 0;
  if (needs_place && !shared_.events->reserve()) {
    known_links_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (!free_links_.pop(slot)) {
    if (needs_place) shared_.events->give_back();
    known_links_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  Link& link = links_[slot];
  link.counted = true;
  link.has_event_place = needs_place;
  link.is_client = true;
  link.reports_failure = reports_failure;
  link.peer = peer;
  link.token = random;
  const std::uint32_t generation = next_generation(link);
  link.handle = handle_of(number_, slot, generation);
  link.kind = kind;
  link.face.store(Face::open(generation, kind), std::memory_order_release);
  return &link;
}

/// Takes a free slot of the table for an incoming connection. Returns null if no slot is free. The connection gets a
/// handle only when it is accepted. Until then the slot keeps the face of its earlier connection, because a flood of
/// unintroduced connections must not erase how other connections ended. If too many connections have not introduced
/// themselves, the oldest of them is dropped. Their addresses are unproven, so they must not block connections that
/// introduce themselves or that this endpoint opens. An honest peer introduces itself within two round trips. Its
/// connection is dropped only if unintroduced connections fill the table in that time.
Link* Worker::take_link() noexcept {
  if (unintroduced_.size() + shared_.config->max_connections + kBetweenHands >= links_.size())
    drop_unintroduced(*unintroduced_.first());
  std::uint32_t slot = 0;
  if (!free_links_.pop(slot)) return nullptr;
  return &links_[slot];
}

/// Drops an unintroduced connection at once. Later completions of its transport connections are ignored.
void Worker::drop_unintroduced(Link& link) noexcept {
  ++counters_.unintroduced;
  for (ConnectionId& id : link.transport) {
    if (id == 0) continue;
    routes_[id & route_mask_] = {};
    --live_transports_;
    shard_->abort(id, now_);
    id = 0;
  }
  posted_ = true;
  free_link(link);
}

Link* Worker::find(ConnectionHandle handle) noexcept {
  const HandleParts parts = parts_of(handle);
  if (parts.shard != number_) return nullptr;
  std::uint64_t face = 0;
  Link* const link = find_any_thread(parts, face);
  return link != nullptr && (face & Face::kLeft) == 0 ? link : nullptr;
}

/// Forgets how the connection of `handle` has ended. The program no longer needs this handle.
void Worker::forget(ConnectionHandle handle) noexcept {
  const HandleParts parts = parts_of(handle);
  std::uint64_t face = 0;
  Link* const link = parts.shard == number_ ? find_any_thread(parts, face) : nullptr;
  // Compare and exchange, because a thread in connect() may be reusing the slot at the same time.
  if (link != nullptr && (face & Face::kLeft) != 0)
    link->face.compare_exchange_strong(face, Face::none(Face::next(parts.generation)), std::memory_order_acq_rel);
}

void Worker::free_link(Link& link) noexcept {
  link_deadlines_.set(link.slot, Nanos::never());
  const std::uint64_t face = link.face.load(std::memory_order_relaxed);
  const bool is_left = Face::is_some(face) && !link.is_forgotten;
  // remote address for completions that are still to be delivered
  if (!link.peer.empty()) link.remote = link.peer.base();
  link.state = Link::State::free;
  link.is_announced = link.closes_here = link.is_forgotten = link.owes_answers_only = false;
  link.connect = nullptr;
  if (unintroduced_.holds(link)) unintroduced_.erase(link);
  link.greeted = {};
  link.tagged.reset();
  if ((face & Face::kLeft) != 0) {
    // The face belongs to an earlier connection, because the freed connection was never accepted. The face stays
    // unchanged.
  } else if (is_left) {
    const std::uint64_t over = Face::over(Face::generation(face), link.kind, link.end_code, link.end_cause);
    link.face.store(over | Face::kLeft, std::memory_order_release);
  } else {
    link.face.store(Face::none(Face::next(Face::generation(face))), std::memory_order_release);
  }
  link.end_code = Code::ok;
  link.end_cause = Cause::none;
  leave_place(link);
}

void Worker::unreserve_link(Link& link) noexcept {
  const std::uint32_t generation = Face::generation(link.face.load(std::memory_order_relaxed));
  link.face.store(Face::none(Face::next(generation)), std::memory_order_release);
  leave_place(link);
}

/// Changes only members that reserve_link() changes, since the driving thread may read the table meanwhile. Slots are
/// reused in the order in which they were freed, so that each face stays readable as long as possible.
void Worker::leave_place(Link& link) noexcept {
  if (link.counted) known_links_.fetch_sub(1, std::memory_order_relaxed);
  if (link.has_event_place) shared_.events->give_back();
  link.is_client = link.reports_failure = link.has_event_place = link.counted = false;
  link.peer = EndpointAddress();
  link.job.store(0, std::memory_order_relaxed);
  free_links_.push(link.slot);
}

// ---- Opening a connection: the connecting side ----

void Worker::start_connect(Operation& operation) noexcept {
  Link& link = *find(operation.connection);  // the handle was made for this operation, so it is valid
  operation.link = &link;
  operation.stage = Operation::Stage::held;
  link.connect = &operation;
  link.state = Link::State::connecting;
  link.remote = link.peer.of_shard(link.token >> 32);
  link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout + shared_.config->peer_timeout / 2);
  const std::uint32_t parts = link.kind == ConnectionKind::tagged ? 2 : 1;
  for (std::uint32_t part = 0; part < parts; ++part) {
    if (open_transport(link, part)) continue;
    end_link(link, Code::no_room, Cause::connections_in_use, true);
    return;
  }
}

bool Worker::open_transport(Link& link, std::uint32_t part) noexcept {
  ConnectionConfig config = shared_.connection;
  try {
    // Only shard 0 matches tags, so a tagged connection goes to shard 0 of the peer.
    const Address remote = link.kind == ConnectionKind::tagged ? link.peer.base() : link.remote;
    add_route(link, part, shard_->connect(remote, config, now_));
  } catch (const std::exception&) {  // the settings are valid, so the transport has no free connection
    return false;
  }
  return exchange_hellos(link, part, hello_of(link, part));
}

Hello Worker::hello_of(const Link& link, std::uint32_t part) const noexcept {
  Hello hello;
  hello.kind = link.kind;
  hello.is_data = part == Link::kData;
  hello.token = link.token;
  hello.meant = link.peer.id();
  hello.eager_limit = static_cast<std::uint32_t>(shared_.config->eager_limit);
  hello.unexpected_messages = shared_.config->unexpected_messages;
  hello.from = shared_.address;
  return hello;
}

bool Worker::exchange_hellos(Link& link, std::uint32_t part, const Hello& hello) noexcept {
  const std::uint64_t tag = cookie(Cookie::hello, 0);
  write(hello, link.hello_out[part]);
  posted_ = true;
  return shard_->receive(link.transport[part], link.hello_in[part], tag) == PostResult::ok &&
         send_hello(link, part, tag);
}

/// Sends a hello. Its bytes do not count towards a job's iteration, even if the connection is attached to a job before
/// the hello is acknowledged.
bool Worker::send_hello(Link& link, std::uint32_t part, std::uint64_t tag) noexcept {
  return shard_->send(link.transport[part], link.hello_out[part], tag, Nanos::never(), Hello::bytes) == PostResult::ok;
}

void Worker::add_route(Link& link, std::uint32_t part, ConnectionId id) noexcept {
  link.transport[part] = id;
  routes_[id & route_mask_] = {id, link.slot, static_cast<std::uint8_t>(part)};
  ++live_transports_;
  posted_ = true;
}

// ---- Opening a connection: the accepting side ----

void Worker::on_accepted(ConnectionId id) noexcept {
  const Address* const remote = shard_->remote(id);
  if (remote == nullptr) return;  // the connection is gone, because its peer has restarted within the same burst
  Link* const link = is_ending_ ? nullptr : take_link();
  if (link == nullptr) {
    ++counters_.unintroduced;
    shard_->abort(id, now_);
    posted_ = true;
    return;
  }
  unintroduced_.push(*link);
  link->state = Link::State::greeting;
  link->remote = *remote;
  add_route(*link, Link::kControl, id);
  link_deadlines_.set(link->slot, now_ + shared_.config->peer_timeout);
  shard_->receive(id, link->hello_in[Link::kControl], cookie(Cookie::hello, 0));
}

void Worker::on_hello(Link& link, std::uint32_t part, const mltcp::Completion& completion) noexcept {
  // With any status other than ok and truncated, the connection has ended. The transport reports the end next.
  const bool came = completion.status == Status::ok || completion.status == Status::truncated;
  if (!came || link.greeted[part]) return;
  Hello hello;
  Verdict verdict = Verdict::malformed;
  if (completion.bytes <= Hello::bytes)
    verdict = parse(std::span(link.hello_in[part]).first(static_cast<std::size_t>(completion.bytes)), hello);
  if (link.state == Link::State::greeting)
    on_question(link, hello, verdict);
  else if (link.state == Link::State::connecting)
    on_answer(link, part, hello, verdict);
}

void Worker::on_question(Link& link, const Hello& hello, Verdict verdict) noexcept {
  if (verdict == Verdict::fine && (hello.verdict != Verdict::fine || !is_shard_of(hello.from, link.remote)))
    // the hello is a refusal, or gives an address that differs from the source of its packets
    verdict = Verdict::malformed;
  if (verdict == Verdict::fine && hello.meant != shared_.address.id()) verdict = Verdict::wrong_peer;
  if (verdict == Verdict::fine && hello.kind == ConnectionKind::tagged && number_ != 0) verdict = Verdict::malformed;
  if (verdict != Verdict::fine) {
    turn_away(link, verdict);
    return;
  }
  link.greeted[Link::kControl] = true;
  link.kind = hello.kind;
  link.peer = hello.from;
  link.token = hello.token;
  link.peers_eager_limit = hello.eager_limit;
  link.peers_window = hello.unexpected_messages;
  if (hello.kind == ConnectionKind::ordered)
    accept(link, hello);
  else
    pair(link, hello);
}

/// Matches the two transport connections of a tagged connection, which arrive in either order.
void Worker::pair(Link& link, const Hello& hello) noexcept {
  link.state = Link::State::unpaired;
  link.unpaired_data = hello.is_data;
  for (Link& other : links_) {
    if (other.state != Link::State::unpaired || &other == &link || other.token != link.token ||
        other.unpaired_data == link.unpaired_data || !(other.peer == link.peer))
      continue;
    Link& main = hello.is_data ? other : link;
    Link& second = hello.is_data ? link : other;
    main.transport[Link::kData] = second.transport[Link::kControl];
    routes_[main.transport[Link::kData] & route_mask_] = {main.transport[Link::kData], main.slot, Link::kData};
    main.greeted[Link::kData] = true;
    second.transport[Link::kControl] = 0;
    free_link(second);
    accept(main, hello);
    return;
  }
}

void Worker::accept(Link& link, const Hello& hello) noexcept {
  const bool needs_places = shared_.config->event_callback == nullptr;
  bool has_space = known_links_.fetch_add(1, std::memory_order_relaxed) < shared_.config->max_connections;
  link.counted = has_space;
  if (!has_space) known_links_.fetch_sub(1, std::memory_order_relaxed);
  if (has_space && needs_places) {
    has_space = shared_.events->reserve();
    if (has_space && !shared_.events->reserve()) {
      shared_.events->give_back();
      has_space = false;
    }
    link.has_event_place = has_space;
  }
  if (!has_space) {
    turn_away(link, Verdict::no_room);
    return;
  }
  const std::uint32_t generation = next_generation(link);
  link.handle = handle_of(number_, link.slot, generation);
  link.face.store(Face::open(generation, hello.kind), std::memory_order_release);
  answer(link, Link::kControl);
  if (hello.kind == ConnectionKind::tagged) answer(link, Link::kData);
  unintroduced_.erase(link);
  event(link, Completion::Kind::accepted, Code::ok, Cause::none);
  open(link);
}

void Worker::answer(Link& link, std::uint32_t part) noexcept {
  write(hello_of(link, part), link.hello_out[part]);
  // If the hello cannot be sent, the connection has ended. The transport reports the end next.
  send_hello(link, part, cookie(Cookie::hello, 0));
  posted_ = true;
}

/// Sends the reason for a refusal on each of the link's transport connections, and closes them.
void Worker::turn_away(Link& link, Verdict verdict) noexcept {
  ++counters_.unintroduced;
  Hello hello;
  hello.kind = link.kind;
  hello.verdict = verdict;
  hello.token = link.token;
  link.state = Link::State::ended;
  for (std::uint32_t part = 0; part < 2; ++part) {
    if (link.transport[part] == 0) continue;
    hello.is_data = part == Link::kData && link.kind == ConnectionKind::tagged;
    write(hello, link.hello_out[part]);
    send_hello(link, part, cookie(Cookie::none, 0));
    shard_->close(link.transport[part]);
  }
  link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout);
  posted_ = true;
}

void Worker::on_answer(Link& link, std::uint32_t part, const Hello& hello, Verdict verdict) noexcept {
  Cause cause = Cause::none;
  if (verdict == Verdict::fine) verdict = hello.verdict;
  if (verdict == Verdict::fine && (hello.kind != link.kind || hello.is_data != (part == Link::kData) ||
                                   hello.token != link.token || hello.meant != shared_.address.id()))
    verdict = Verdict::malformed;
  if (verdict == Verdict::fine && hello.from.id() != link.peer.id()) verdict = Verdict::wrong_peer;
  if (verdict != Verdict::fine) {
    const Code code = endpoint::code_of(verdict, cause);
    if (code == Code::protocol) ++counters_.broken_protocols;
    end_link(link, code, cause, true);
    return;
  }
  link.greeted[part] = true;
  if (part == Link::kControl) {
    link.peers_eager_limit = hello.eager_limit;
    link.peers_window = hello.unexpected_messages;
  }
  if (!link.greeted[Link::kControl] || (link.kind == ConnectionKind::tagged && !link.greeted[Link::kData])) return;
  open(link);
}

void Worker::open(Link& link) noexcept {
  link.state = Link::State::open;
  link.is_announced = true;
  link_deadlines_.set(link.slot, Nanos::never());
  if (link.job.load(std::memory_order_relaxed) != 0) attach(link);
  if (link.connect != nullptr) {
    Operation& operation = *link.connect;
    link.connect = nullptr;
    end(operation, Code::ok, Cause::none);
  }
  if (link.kind == ConnectionKind::tagged)
    begin_tagged(link);
  else
    flush_ordered(link);
}

void Worker::attach(Link& link) noexcept {
  const std::uint32_t job = link.job.load(std::memory_order_relaxed);
  if (job == 0 || jobs_[job - 1] == kNoJob) return;
  for (const ConnectionId id : link.transport)
    // attach() returns false if the transport connection has ended, which the transport reports next.
    if (id != 0) (void)shard_->attach(id, jobs_[job - 1]);
}

void Worker::begin_iteration(std::uint32_t slot, Bytes bytes, Beginning beginning) noexcept {
  if (jobs_[slot] == kNoJob) return;
  (void)shard_->begin_iteration(jobs_[slot], bytes);  // cannot fail, because the job exists
  if (bytes == 0 || !plans_[slot] || beginning == Beginning::guessed) return;
  (void)shard_->set_plan(jobs_[slot], *plans_[slot], shared_.time->now());  // reports show the plan's state
  plans_[slot].reset();
}

void Worker::forget_job(std::uint32_t slot) noexcept {
  for (Link& link : links_)
    if (link.job.load(std::memory_order_relaxed) == slot + 1) link.job.store(0, std::memory_order_relaxed);
}

void Worker::add_to(JobReport& report, std::uint32_t slot) const noexcept {
  for (const Link& link : links_) {
    if (link.job.load(std::memory_order_relaxed) != slot + 1) continue;
    for (const ConnectionId id : link.transport) {
      const auto stats = id != 0 ? shard_->stats(id) : std::nullopt;
      if (!stats) continue;
      const bool first = report.connections++ == 0;
      report.cwnd_bytes += stats->cwnd_bytes;
      report.pacing_rate = Rate(report.pacing_rate.bits_per_second + stats->pacing_rate.bits_per_second);
      report.delivery_rate = Rate(report.delivery_rate.bits_per_second + stats->delivery_rate.bits_per_second);
      report.smoothed_rtt = std::max(report.smoothed_rtt, stats->smoothed_rtt);
      report.min_rtt = first ? stats->min_rtt : std::min(report.min_rtt, stats->min_rtt);
      report.packets_sent += stats->packets_sent;
      report.marked_packets += stats->ce_packets;
      report.lost_packets += stats->lost_packets;
      report.retransmitted_packets += stats->retransmitted_packets;
    }
  }
}

// ---- Ending a connection ----

void Worker::close(ConnectionHandle handle) noexcept {
  Link* const link = find(handle);
  if (link == nullptr) {
    forget(handle);
    return;
  }
  switch (link->state) {
    case Link::State::open:
      link->face.store(Face::over(parts_of(handle).generation, link->kind, Code::closed, Cause::here),
                       std::memory_order_release);
      link->state = Link::State::closing;
      link->closes_here = true;
      close_when_flushed(*link);
      return;
    case Link::State::ended:
      link->is_forgotten = true;
      drop_messages(*link, true);
      return;
    case Link::State::closing:
      link->closes_here = true;
      return;
    case Link::State::free:
      return;
    default:
      end_link(*link, Code::closed, Cause::here, true);
  }
}

void Worker::close_when_flushed(Link& link) noexcept {
  if (!link.sends.empty()) return;
  if (Tagged* const tagged = link.tagged.get(); tagged != nullptr) {
    if (!tagged->held.empty() || !tagged->announced.empty()) return;
    // The program's own sends have ended. Only answers to the peer remain. An honest peer has posted buffers for them;
    // for any other peer, the deadline ends the connection.
    if (tagged->under_way == 0 && tagged->eager_under_way == 0 && !link.owes_answers_only) {
      link.owes_answers_only = true;
      link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout);
    }
    if (!tagged->granted.empty()) return;
    // The peer closes its control connection when it sees the data connection closed. Eager messages must have arrived
    // by then, so wait until no control frame is in flight.
    if (tagged->free_send_frames.size() < shared_.config->control_frames) return;
  }
  // The data connection is closed first. So a peer that sees the control connection closed has received everything.
  shard_->close(link.transport[link.transport[Link::kData] != 0 ? Link::kData : Link::kControl]);
  posted_ = true;
}

void Worker::abort(ConnectionHandle handle) noexcept {
  Link* const link = find(handle);
  if (link == nullptr || link->state == Link::State::ended)
    close(handle);
  else if (link->state != Link::State::free)
    end_link(*link, Code::aborted, Cause::here, true);
}

void Worker::on_transport_closed(Link& link, std::uint32_t part, Status status) noexcept {
  link.transport[part] = 0;
  --live_transports_;
  const bool is_open = link.state == Link::State::open || link.state == Link::State::closing;
  if (is_open && part == Link::kData && !link.is_gone() && (status == Status::ok || status == Status::closed)) {
    // The data connection is closed. close_when_flushed() closes the control connection next.
    if (link.state == Link::State::open) {
      link.state = Link::State::closing;
      link.face.store(Face::over(parts_of(link.handle).generation, link.kind, Code::closed, Cause::peer),
                      std::memory_order_release);
    }
    link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout);
    link.owes_answers_only = true;  // close_when_flushed() must not set the deadline again
    close_when_flushed(link);
    return;
  }
  if (link.state != Link::State::ended && link.state != Link::State::free) {
    Cause cause = Cause::none;
    Code code = code_of(status, link.is_announced, cause);
    if (code == Code::closed && link.closes_here) cause = Cause::here;
    if (code == Code::closed && !link.is_announced) code = Code::refused;
    end_link(link, code, cause, true);
    return;
  }
  if (link.is_gone()) retire(link);
}

/// Ends the connection for the program. Until retire(), the worker still handles what the transport reports.
void Worker::end_link(Link& link, Code code, Cause cause, bool notify_peer) noexcept {
  if (link.state == Link::State::ended || link.state == Link::State::free) return;
  link.state = Link::State::ended;
  link.end_code = code;
  link.end_cause = cause;
  link_deadlines_.set(link.slot, Nanos::never());
  const std::uint64_t face = link.face.load(std::memory_order_relaxed);
  // kLeft: the face belongs to an earlier connection and stays unchanged
  if (Face::is_some(face) && (face & Face::kLeft) == 0)
    link.face.store(Face::over(parts_of(link.handle).generation, link.kind, code, cause), std::memory_order_release);
  for (const ConnectionId id : link.transport)
    if (notify_peer && id != 0) shard_->abort(id, now_);
  posted_ = true;
  end_operations(link);
  if (link.is_gone()) retire(link);
}

void Worker::end_operations(Link& link) noexcept {
  const auto end_one = [&](Operation& operation) {
    if (operation.is_cancelled)
      end(operation, operation.stage == Operation::Stage::taken_back ? Code::cancelled : Code::timed_out, Cause::here);
    else
      end(operation, link.end_code, link.end_cause);
  };
  const auto end_all_of = [&](OperationList& list) {
    while (Operation* const operation = list.pop()) {
      end_one(*operation);
    }
  };
  if (link.connect != nullptr) {
    Operation& operation = *link.connect;
    link.connect = nullptr;
    end_one(operation);
  }
  end_all_of(link.sends);
  end_all_of(link.receives);
  if (link.posted_receives > 0) end_posted(&link, link.end_code, link.end_cause);
  if (link.tagged == nullptr) return;
  Tagged& tagged = *link.tagged;
  end_all_of(tagged.held);
  end_all_of(tagged.announced);
  end_all_of(tagged.matched);
  for (; !tagged.granted.empty(); tagged.granted.pop())
    if (Operation* const operation = tagged.granted.front().send; operation != nullptr) {
      if (tagged.sent_ahead.holds(*operation)) tagged.sent_ahead.erase(*operation);
      end_one(*operation);
    }
  drop_messages(link, false);
}

/// Called when the transport will report nothing more about the connection.
void Worker::retire(Link& link) noexcept {
  if (link.is_announced || link.reports_failure) {
    event(link, Completion::Kind::closed, link.end_code, link.end_cause);
    link.is_announced = link.reports_failure = false;
    link.has_event_place = false;  // the event now occupies the reserved place in the queue
  }
  if (link.state == Link::State::ended) settle_ended(link);
}

/// Frees the link of an ended connection, unless some of its unexpected messages are still stored.
void Worker::settle_ended(Link& link) noexcept {
  if (!link.is_gone() || link.is_announced || link.reports_failure) return;
  if (link.tagged != nullptr && !link.tagged->unexpected.empty()) return;
  free_link(link);
}

void Worker::end_all() noexcept {
  if (is_ending_) return;
  is_ending_ = true;
  for (Link& link : links_) {
    if (link.state == Link::State::free) continue;
    if (link.state == Link::State::ended) {
      for (const ConnectionId id : link.transport)
        if (id != 0) shard_->abort(id, now_);
      drop_messages(link, true);
    } else {
      end_link(link, Code::destroyed, Cause::end_of_endpoint, true);
    }
  }
  end_posted(nullptr, Code::destroyed, Cause::end_of_endpoint);
  drain();
  posted_ = true;
}

}  // namespace mltcp::endpoint
