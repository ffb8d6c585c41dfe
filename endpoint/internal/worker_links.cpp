// Connections of a worker, from the hello to the end (see worker.h; frames.h for the frames).
//
// The connecting end sends a hello that names the endpoint it means, and itself. The accepting end checks that it is
// that endpoint, and answers with its own hello. So both ends know each other, and a new process at the same address is
// not mistaken for the old one. A tagged connection consists of two transport connections with the same random token;
// both are answered when both have arrived.
#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/internal/worker.h"

namespace mltcp::endpoint {
namespace {

/// Generation of the place's next connection; differs from that in the face that is left.
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

/// Maximum places that are counted as free but still being freed by other threads.
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

// ---- the table ------------------------------------------------------------------------------------------------------

Link* Worker::reserve_link(ConnectionKind kind, const EndpointAddress& peer, std::uint64_t random,
                           bool tells_failure) noexcept {
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
  link.tells_failure = tells_failure;
  link.peer = peer;
  link.token = random;
  const std::uint32_t generation = next_generation(link);
  link.handle = handle_of(number_, slot, generation);
  link.kind = kind;
  link.face.store(Face::open(generation, kind), std::memory_order_release);
  return &link;
}

/// A place for an incoming connection. It gets a handle, and replaces the face of an earlier connection, only when it
/// is accepted; otherwise a flood of unintroduced connections would erase how others have ended. If too many
/// connections have not introduced themselves, the oldest is dropped: their addresses are unproven, so they must not
/// keep out connections that introduce themselves or begin here. An honest peer needs two round trips; it is dropped
/// only if that many connections arrive within them.
Link* Worker::take_link() noexcept {
  if (unintroduced_.size() + shared_.config->max_connections + kBetweenHands >= links_.size())
    drop_unintroduced(*unintroduced_.first());
  std::uint32_t slot = 0;
  if (!free_links_.pop(slot)) return nullptr;
  return &links_[slot];
}

/// Drops it at once; later completions of its transport are ignored.
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

/// Forgets how a connection has ended, when its handle is no longer needed.
void Worker::forget(ConnectionHandle handle) noexcept {
  const HandleParts parts = parts_of(handle);
  std::uint64_t face = 0;
  Link* const link = parts.shard == number_ ? find_any_thread(parts, face) : nullptr;
  // A thread in connect() may be taking the place.
  if (link != nullptr && (face & Face::kLeft) != 0)
    link->face.compare_exchange_strong(face, Face::none(Face::next(parts.generation)), std::memory_order_acq_rel);
}

void Worker::free_link(Link& link) noexcept {
  link_deadlines_.set(link.slot, Nanos::never());
  const std::uint64_t face = link.face.load(std::memory_order_relaxed);
  const bool is_left = Face::is_some(face) && !link.is_forgotten;
  if (!link.peer.empty()) link.remote = link.peer.base();  // for completions that are still to be delivered
  link.state = Link::State::free;
  link.is_announced = link.closes_here = link.is_forgotten = link.owes_answers_only = false;
  link.connect = nullptr;
  if (unintroduced_.holds(link)) unintroduced_.erase(link);
  link.greeted = {};
  link.tagged.reset();
  if ((face & Face::kLeft) != 0) {
    // The face of an earlier connection: this one was never accepted.
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

/// Changes only what reserve_link() changes, since the driver may read the table meanwhile. Places are reused in the
/// order in which they were freed, so that faces last as long as possible.
void Worker::leave_place(Link& link) noexcept {
  if (link.counted) known_links_.fetch_sub(1, std::memory_order_relaxed);
  if (link.has_event_place) shared_.events->give_back();
  link.is_client = link.tells_failure = link.has_event_place = link.counted = false;
  link.peer = EndpointAddress();
  link.job.store(0, std::memory_order_relaxed);
  free_links_.push(link.slot);
}

// ---- beginning: the connecting end ----------------------------------------------------------------------------------

void Worker::start_connect(Operation& operation) noexcept {
  Link& link = *find(operation.connection);  // its handle was made for this operation
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
    // Only shard 0 matches tags.
    const Address remote = link.kind == ConnectionKind::tagged ? link.peer.base() : link.remote;
    add_route(link, part, shard_->connect(remote, config, now_));
  } catch (const std::exception&) {  // the settings are valid, so there is no room
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

/// Its bytes don't count towards an iteration, even if the connection is attached to a job when it is acknowledged.
bool Worker::send_hello(Link& link, std::uint32_t part, std::uint64_t tag) noexcept {
  return shard_->send(link.transport[part], link.hello_out[part], tag, Nanos::never(), Hello::bytes) == PostResult::ok;
}

void Worker::add_route(Link& link, std::uint32_t part, ConnectionId id) noexcept {
  link.transport[part] = id;
  routes_[id & route_mask_] = {id, link.slot, static_cast<std::uint8_t>(part)};
  ++live_transports_;
  posted_ = true;
}

// ---- beginning: the accepting end -----------------------------------------------------------------------------------

void Worker::on_accepted(ConnectionId id) noexcept {
  const Address* const remote = shard_->remote(id);
  if (remote == nullptr) return;  // its peer has restarted within the same burst
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
  // With another status the connection has ended, which the transport reports next.
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
    verdict = Verdict::malformed;  // it claims to be on another machine
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

/// Control and data of a tagged connection arrive in either order.
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
  bool has_room = known_links_.fetch_add(1, std::memory_order_relaxed) < shared_.config->max_connections;
  link.counted = has_room;
  if (!has_room) known_links_.fetch_sub(1, std::memory_order_relaxed);
  if (has_room && needs_places) {
    has_room = shared_.events->reserve();
    if (has_room && !shared_.events->reserve()) {
      shared_.events->give_back();
      has_room = false;
    }
    link.has_event_place = has_room;
  }
  if (!has_room) {
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
  // If it cannot be sent, the connection has ended, which the transport reports next.
  send_hello(link, part, cookie(Cookie::hello, 0));
  posted_ = true;
}

/// Reports the reason on each of the link's transport connections, and closes them.
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
    if (id != 0) (void)shard_->attach(id, jobs_[job - 1]);  // false: it has ended, which the transport reports next
}

void Worker::begin_iteration(std::uint32_t slot, Bytes bytes, Beginning beginning) noexcept {
  if (jobs_[slot] == kNoJob) return;
  (void)shard_->begin_iteration(jobs_[slot], bytes);  // the job exists
  if (bytes == 0 || !plans_[slot] || beginning == Beginning::guessed) return;
  (void)shard_->set_plan(jobs_[slot], *plans_[slot], shared_.time->now());  // reports show what became of it
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

// ---- the end --------------------------------------------------------------------------------------------------------

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
    // Only answers are left, for which no program waits. An honest peer has buffers for them; others run into the
    // deadline.
    if (tagged->under_way == 0 && tagged->eager_under_way == 0 && !link.owes_answers_only) {
      link.owes_answers_only = true;
      link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout);
    }
    if (!tagged->granted.empty()) return;
    // The peer closes control when it sees data closed, so short messages must have arrived by then.
    if (tagged->free_send_frames.size() < shared_.config->control_frames) return;
  }
  // Data first: when the peer sees control closed, it has received everything.
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
    // The closing end closes control next.
    if (link.state == Link::State::open) {
      link.state = Link::State::closing;
      link.face.store(Face::over(parts_of(link.handle).generation, link.kind, Code::closed, Cause::peer),
                      std::memory_order_release);
    }
    link_deadlines_.set(link.slot, now_ + shared_.config->peer_timeout);
    link.owes_answers_only = true;  // it has its own deadline
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

/// Ends the connection for the program. What the transport still reports is handled until retire().
void Worker::end_link(Link& link, Code code, Cause cause, bool tell_peer) noexcept {
  if (link.state == Link::State::ended || link.state == Link::State::free) return;
  link.state = Link::State::ended;
  link.end_code = code;
  link.end_cause = cause;
  link_deadlines_.set(link.slot, Nanos::never());
  const std::uint64_t face = link.face.load(std::memory_order_relaxed);
  if (Face::is_some(face) && (face & Face::kLeft) == 0)  // not the face that an earlier connection has left
    link.face.store(Face::over(parts_of(link.handle).generation, link.kind, code, cause), std::memory_order_release);
  for (const ConnectionId id : link.transport)
    if (tell_peer && id != 0) shard_->abort(id, now_);
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

/// Call when the transport will report nothing more of the connection.
void Worker::retire(Link& link) noexcept {
  if (link.is_announced || link.tells_failure) {
    event(link, Completion::Kind::closed, link.end_code, link.end_cause);
    link.is_announced = link.tells_failure = false;
    link.has_event_place = false;  // the event uses it now
  }
  if (link.state == Link::State::ended) settle_ended(link);
}

/// Frees the connection, unless unexpected messages of it are still stored.
void Worker::settle_ended(Link& link) noexcept {
  if (!link.is_gone() || link.is_announced || link.tells_failure) return;
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
