// A worker: how it is driven, and how operations begin and end (see worker.h). worker_links.cpp contains connections,
// and worker_tagged.cpp contains tagged messages.
#include "mltcp/endpoint/internal/worker.h"

#include <algorithm>
#include <bit>

namespace mltcp::endpoint {
namespace {

/// Maximum rounds of completions in one poll. In each round callbacks post, the transport sends, and operations end.
constexpr int kRounds = 4;
/// Returns the number of places for connections. It exceeds max_connections, because incoming connections take a place
/// before they have introduced themselves.
std::uint32_t links_for(const EndpointConfig& config) { return config.max_connections * 2 + 16; }

ShardConfig shard_config(const EndpointConfig& config, std::uint32_t number) {
  ShardConfig shard;
  // A tagged connection takes two transport connections, and an ended transport connection answers its peer for a
  // while. Incoming connections leave room for connections that this endpoint opens.
  shard.kept_for_connect = config.max_connections * 2;
  shard.max_connections = links_for(config) + config.max_connections * 2 + shard.kept_for_connect;
  // max_half_open is less than the number of places for unintroduced connections, so that unproven addresses cannot
  // take all places.
  shard.max_half_open = config.max_connections;
  shard.max_accepted_per_address = config.max_accepted_per_address;
  shard.max_jobs = config.max_jobs;
  shard.count_job_claims = true;
  shard.own_address = config.address;
  shard.own_address->port = static_cast<std::uint16_t>(config.address.port + number);
  if (config.seed) shard.seed = *config.seed + number;
  return shard;
}

}  // namespace

Worker::Worker(std::uint32_t number, PacketIo& io, Shared& shared, Wakeup& wakeup, Nanos now)
    : number_(number),
      shared_(shared),
      wakeup_(wakeup),
      commands_(std::size_t{shared.config->max_operations} * 2 + 256),
      operations_(number, shared.config->max_operations),
      free_links_(links_for(*shared.config)),
      shard_(std::make_unique<Shard>(io, shard_config(*shared.config, number))),
      now_(now),
      links_(links_for(*shared.config)),
      jobs_(shared.config->max_jobs, kNoJob),
      plans_(shared.config->max_jobs) {
  const EndpointConfig& config = *shared.config;
  for (std::uint32_t slot = 0; slot < links_.size(); ++slot) {
    links_[slot].slot = slot;
    free_links_.push(slot);
  }
  const std::size_t routes = std::bit_ceil(shard_config(config, number).max_connections);
  routes_.resize(routes);
  route_mask_ = static_cast<std::uint32_t>(routes - 1);
  const std::size_t messages = std::size_t{config.max_connections} * config.unexpected_messages;
  SystemRandom random;
  matcher_.reset(std::bit_ceil(std::size_t{config.max_operations} * 2),
                 std::bit_ceil(std::min<std::size_t>(messages, 1U << 16)), config.seed ? *config.seed : random.next());
  operation_deadlines_.reserve(operations_.count());
  link_deadlines_.reserve(links_.size());
  reports_.reserve(std::size_t{operations_.count()} + std::size_t{2} * links_.size());
  if (config.accepts) shard_->listen(shared.connection);
}

Worker::~Worker() = default;

// An operation needs a place in the ring of free operations, two places in the ring of commands, a deadline, and a
// completion to deliver. The table of connections has twice max_connections entries. The routes and the shard have four
// times max_connections entries.
const Bytes Worker::operation_bytes =
    sizeof(Operation) + sizeof(Report) + 2 * (sizeof(Command) + sizeof(std::size_t)) + 5 * sizeof(std::uint64_t);
const Bytes Worker::connection_bytes = 2 * (sizeof(Link) + 2 * sizeof(Report) + 3 * sizeof(std::uint64_t)) +
                                       4 * (sizeof(Route) + 8 * sizeof(std::uint64_t)) + 4 * sizeof(Completion);

// ---- Driving ----

Nanos Worker::poll(Nanos now) {
  set_now(now);
  if (shard_ == nullptr) return Nanos::never();
  drain();
  Nanos next = shard_->poll(now_);
  posted_ = false;
  for (int round = 0;; ++round) {
    bool any = take_completions();
    if (std::min(operation_deadlines_.next(), link_deadlines_.next()) <= now_) expire();
    if (!reports_.empty()) {
      deliver();
      any = true;
    }
    if (!any && !posted_) break;
    if (round == kRounds) return now;
    posted_ = false;
    // The peer may already have acknowledged data sent in the previous round. With an old `now_`, the round-trip time
    // would be 0.
    set_now(shared_.time->now());
    next = shard_->poll(now_);
  }
  if (commands_.has_some()) return now;
  return std::min({next, operation_deadlines_.next(), link_deadlines_.next()});
}

void Worker::drain() noexcept {
  // The number of commands is limited, because other threads may keep posting.
  Command command;
  for (std::size_t i = 0; i < commands_.capacity() && commands_.pop(command); ++i) run(command);
}

void Worker::run(const Command& command) noexcept {
  // After the shard is destroyed, the worker runs only the commands `start` and `call`.
  if (shard_ == nullptr && command.type != Command::Type::start && command.type != Command::Type::call) return;
  switch (command.type) {
    case Command::Type::start:
      start(operations_.at(command.slot));
      return;
    case Command::Type::cancel:
      cancel(command.argument);
      return;
    case Command::Type::close:
      close(command.argument);
      return;
    case Command::Type::abort:
      abort(command.argument);
      return;
    case Command::Type::begin_iteration:
      begin_iteration(command.slot, command.argument, Beginning::known);
      return;
    case Command::Type::guess_iteration:
      begin_iteration(command.slot, command.argument, Beginning::guessed);
      return;
    case Command::Type::learn_iterations:
      // Cannot fail, because the job exists.
      if (jobs_[command.slot] != kNoJob) (void)shard_->learn_iterations(jobs_[command.slot]);
      return;
    case Command::Type::attach:
      if (Link* const link = find(command.argument); link != nullptr) attach(*link);
      return;
    case Command::Type::call: {
      auto& call = *reinterpret_cast<Call*>(command.argument);
      call.run(call.what);
      shared_.gate->notify([&] { call.done = true; });
      return;
    }
  }
}

bool Worker::take_completions() noexcept {
  std::array<mltcp::Completion, kTaken> taken;
  bool any = false;
  for (;;) {
    const std::size_t count = shard_->take_completions(taken);
    if (count > 1) prefetch_matches(std::span(taken).first(count));
    for (std::size_t i = 0; i < count; ++i) on_completion(taken[i]);
    any = any || count > 0;
    if (count < taken.size()) return any;
  }
}

void Worker::on_completion(const mltcp::Completion& completion) noexcept {
  if (completion.kind == mltcp::Completion::Kind::accepted) {
    on_accepted(completion.connection);
    return;
  }
  Route& route = routes_[completion.connection & route_mask_];
  if (route.id != completion.connection) return;  // the connection was refused at once
  Link& link = links_[route.link];
  const std::uint32_t part = route.part;
  if (completion.kind == mltcp::Completion::Kind::closed) {
    route.id = 0;
    on_transport_closed(link, part, completion.status);
    return;
  }
  if (completion.kind == mltcp::Completion::Kind::connected) return;  // the connection opens when the hello arrives
  const auto what = static_cast<std::uint32_t>(completion.tag);
  switch (static_cast<Cookie>(completion.tag >> 56)) {
    case Cookie::operation:
      on_operation(link, operations_.at(what), completion);
      return;
    case Cookie::hello:
      if (completion.kind == mltcp::Completion::Kind::received) on_hello(link, part, completion);
      return;
    case Cookie::receive_frame:
      on_frame_arrived(link, completion);
      return;
    case Cookie::send_frame:
      on_frame_sent(link, completion);
      return;
    case Cookie::discarded:
      on_discarded(link, completion);
      return;
    case Cookie::none:
      return;
  }
}

void Worker::on_operation(Link& link, Operation& operation, const mltcp::Completion& completion) noexcept {
  operation.has_job = completion.has_job;
  operation.job = completion.job;
  operation.iteration = completion.iteration;
  if (link.kind == ConnectionKind::tagged) {
    on_flowed(link, operation, completion);
    return;
  }
  Cause cause = Cause::none;
  Code code = Code::ok;
  if (completion.status == Status::truncated)
    code = Code::truncated;
  else if (completion.status == Status::timed_out && operation.is_cancelled)
    code = Code::cancelled, cause = Cause::here;
  else if (completion.status == Status::timed_out)
    code = Code::timed_out, cause = Cause::here;
  else if (completion.status != Status::ok)
    code = code_of(link, completion.status, cause);
  operation.message_bytes = completion.bytes;
  operation.link = &link;
  const bool sends = operation.kind == Operation::Kind::send;
  end(operation, code, cause);  // `operation` may be reused after this call
  if (!(sends ? link.sends : link.receives).empty()) flush_ordered(link);
  if (link.state == Link::State::closing) close_when_flushed(link);
}

// ---- Operations ----

void Worker::start(Operation& operation) noexcept {
  operation.link = nullptr;
  operation.message_bytes = 0;
  operation.has_job = false;
  operation.is_cancelled = false;
  operation.ahead = {};
  operation.grant = 0;
  operation.stage = Operation::Stage::queued;
  if (is_ending_) {
    end(operation, Code::destroyed, Cause::end_of_endpoint);
    return;
  }
  if (!operation.time_limit.is_never()) set_deadline(operation, operation.time_limit);
  switch (operation.kind) {
    case Operation::Kind::connect:
      start_connect(operation);
      return;
    case Operation::Kind::send:
    case Operation::Kind::receive:
      start_ordered(operation);
      return;
    case Operation::Kind::send_tagged:
      start_send_tagged(operation);
      return;
    case Operation::Kind::receive_tagged:
      start_receive_tagged(operation);
      return;
    case Operation::Kind::peek:
      start_peek(operation);
      return;
    case Operation::Kind::receive_message:
      start_receive_message(operation);
      return;
  }
}

void Worker::start_ordered(Operation& operation) noexcept {
  Link* const link = find(operation.connection);
  if (link == nullptr || link->state == Link::State::ended || link->state == Link::State::closing) {
    end_posted_late(operation, link);
    return;
  }
  operation.link = link;
  OperationList& waiting = operation.kind == Operation::Kind::send ? link->sends : link->receives;
  if (link->state == Link::State::open && waiting.empty() && post_ordered(*link, operation)) return;
  operation.stage = Operation::Stage::held;
  waiting.push(operation);
}

void Worker::end_posted_late(Operation& operation, Link* link) noexcept {
  operation.link = link;
  if (link != nullptr && link->state == Link::State::ended) {
    end(operation, link->end_code, link->end_cause);
    return;
  }
  std::uint64_t face = 0;
  const bool is_known =
      find_any_thread(parts_of(operation.connection), face) != nullptr && Face::code(face) != Code::ok;
  end(operation, is_known ? Face::code(face) : Code::closed, is_known ? Face::cause(face) : Cause::here);
}

/// Returns false if the transport has no room now, or if the connection has ended, which the transport reports next.
bool Worker::post_ordered(Link& link, Operation& operation) noexcept {
  const bool sends = operation.kind == Operation::Kind::send;
  const ConnectionId id = link.transport[Link::kControl];
  const std::uint64_t tag = cookie(Cookie::operation, operation.slot);
  const PostResult result = sends ? shard_->send(id, {operation.data, operation.length}, tag, operation.time_limit)
                                  : shard_->receive(id, {operation.data, operation.length}, tag, operation.time_limit);
  if (result == PostResult::queue_full || result == PostResult::closed) return false;
  posted_ = true;
  if (result != PostResult::ok) {
    end(operation, Code::too_long, Cause::none);
    return true;
  }
  if (operation.has_deadline) set_deadline(operation, Nanos::never());  // the transport enforces the limit now
  operation.stage = Operation::Stage::flowing;
  return true;
}

void Worker::flush_ordered(Link& link) noexcept {
  if (link.state != Link::State::open && link.state != Link::State::closing) return;
  for (OperationList* list : {&link.sends, &link.receives}) {
    while (Operation* const operation = list->pop()) {
      if (post_ordered(link, *operation)) continue;
      list->push_front(*operation);
      break;
    }
  }
}

void Worker::end(Operation& operation, Code code, Cause cause) noexcept {
  if (operation.has_deadline) set_deadline(operation, Nanos::never());
  Completion completion;
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::connect:
      completion.kind = Completion::Kind::connected;
      break;
    case Kind::send:
    case Kind::send_tagged:
      completion.kind = Completion::Kind::sent;
      completion.bytes = operation.length;
      break;
    case Kind::peek:
      completion.kind = Completion::Kind::peeked;
      completion.bytes = operation.message_bytes;
      completion.message = operation.message;
      break;
    default:
      completion.kind = Completion::Kind::received;
      completion.bytes = operation.message_bytes;
      completion.has_job = operation.has_job;
      if (operation.has_job) {
        completion.job = operation.job;
        completion.iteration = operation.iteration;
      }
  }
  completion.code = code;
  completion.cause = cause;
  completion.operation = operations_.handle(operation);
  completion.connection = operation.connection == kAnyConnection ? 0 : operation.connection;
  completion.tag = operation.tag;
  completion.context = operation.context;
  const Link* const link = operation.link;
  if (link != nullptr) {
    completion.connection = link->handle;
    completion.connection_kind = link->kind;
    completion.peer = link->peer.empty() ? link->remote : link->peer.base();
    if (operation.kind == Kind::receive_tagged || operation.kind == Kind::receive_message ||
        operation.kind == Kind::peek)
      completion.tag = operation.message_tag;
  } else if (std::uint64_t face = 0; operation.connection != kAnyConnection) {
    // A thread in connect() may be reserving this slot, so read only members that the driver writes.
    if (const Link* const left = find_any_thread(parts_of(operation.connection), face); left != nullptr) {
      completion.connection_kind = Face::kind(face);
      completion.peer = left->remote;
    }
  }
  operation.link = nullptr;
  operation.stage = Operation::Stage::ended;
  ++ended_;
  report(operation, completion);
}

void Worker::report(Operation& operation, const Completion& completion) noexcept {
  switch (operation.reporting) {
    case Operation::Reporting::callback:
      reports_.push({completion, operation.callback, &operation});
      return;
    case Operation::Reporting::queue: {
      CompletionRing& queue = *operation.queue;
      operations_.give_back_at_hand(operation);
      queue.push(completion);
      return;
    }
    case Operation::Reporting::handle:
      operation.end = completion;
      report_to_handle(operation);
      return;
  }
}

void Worker::report_to_handle(Operation& operation) noexcept {
  const std::uint64_t generation = std::uint64_t{operation.generation()} << 32;
  const std::uint64_t before = operation.state.exchange(generation | Operation::kDone, std::memory_order_acq_rel);
  const std::uint64_t state = before & 0xFFFFFFFFU;
  if (state == Operation::kForgotten)
    operations_.give_back_at_hand(operation);
  else if (state == Operation::kAwaited)
    shared_.gate->notify();
}

void Worker::event(Link& link, Completion::Kind kind, Code code, Cause cause) noexcept {
  Completion completion;
  completion.kind = kind;
  completion.code = code;
  completion.cause = cause;
  completion.connection = link.handle;
  completion.connection_kind = link.kind;
  completion.peer = link.peer.empty() ? link.remote : link.peer.base();
  completion.context = shared_.config->event_context;
  ++ended_;
  reports_.push({completion, shared_.config->event_callback, nullptr});
}

void Worker::deliver() noexcept {
  const Worker* const outer = calling_back_;
  calling_back_ = this;
  // Completions that callbacks cause are delivered in the next round.
  for (std::size_t left = reports_.size(); left > 0; --left) {
    const Report report = reports_.front();
    reports_.pop();
    if (report.operation != nullptr) operations_.give_back_at_hand(*report.operation);
    if (report.callback != nullptr)
      report.callback(report.completion.context, report.completion);
    else
      shared_.events->push(report.completion);
  }
  calling_back_ = outer;
}

bool Worker::cancel(OperationHandle handle) noexcept {
  Operation* const operation = operations_.find(parts_of(handle));
  if (operation == nullptr || operation->stage == Operation::Stage::ended) return true;
  if (operation->stage == Operation::Stage::announced) {
    take_back(*operation, Code::cancelled);
    return true;
  }
  if (withdraw(*operation, Code::cancelled, Cause::here)) return true;
  if (operation->stage == Operation::Stage::taken_back) return true;
  if (operation->stage != Operation::Stage::flowing || operation->link == nullptr) return false;
  Link& link = *operation->link;
  if (link.kind != ConnectionKind::ordered) return false;
  operation->is_cancelled = true;
  const ConnectionId id = link.transport[Link::kControl];
  const std::uint64_t tag = cookie(Cookie::operation, operation->slot);
  const bool done =
      operation->kind == Operation::Kind::send ? shard_->cancel_send(id, tag) : shard_->cancel_receive(id, tag);
  posted_ = posted_ || done;
  if (!done) operation->is_cancelled = false;
  return done;
}

/// Ends an operation that the peer does not know of yet. If a receive has a grant, asks the peer for the grant first.
/// Returns false if it is too late for both.
bool Worker::withdraw(Operation& operation, Code code, Cause cause) noexcept {
  Link* const link = operation.link;
  switch (operation.stage) {
    case Operation::Stage::held:
      if (operation.kind == Operation::Kind::connect) {
        end_link(*link, code, cause, true);
        return true;
      }
      if (operation.kind == Operation::Kind::receive)
        link->receives.erase(operation);
      else if (operation.kind == Operation::Kind::send_tagged && link->tagged != nullptr)
        link->tagged->held.erase(operation);
      else
        link->sends.erase(operation);
      end(operation, code, cause);
      if (link->state == Link::State::closing) close_when_flushed(*link);
      return true;
    case Operation::Stage::posted:
      if (operation.grant != 0) {
        ask_back(operation);
        return true;
      }
      unpost(operation);
      operation.message_tag = operation.tag;
      end(operation, code, cause);
      return true;
    default:
      return false;
  }
}

// ---- Time limits ----

/// Nanos::never() removes the deadline.
void Worker::set_deadline(Operation& operation, Nanos limit) noexcept {
  operation.has_deadline = !limit.is_never();
  if (operation.has_deadline)
    operation.time_limit = limit > Nanos::never() - now_ ? Nanos::never() - Nanos(1) : now_ + limit;
  operation_deadlines_.set(operation.slot, operation.has_deadline ? operation.time_limit : Nanos::never());
}

void Worker::expire() noexcept {
  while (operation_deadlines_.next() <= now_) {
    Operation& operation = operations_.at(operation_deadlines_.top());
    set_deadline(operation, Nanos::never());
    expire(operation);
  }
  while (link_deadlines_.next() <= now_) {
    Link& link = links_[link_deadlines_.top()];
    link_deadlines_.set(link.slot, Nanos::never());
    if (link.state == Link::State::greeting || link.state == Link::State::unpaired) ++counters_.unintroduced;
    if (link.state == Link::State::ended) {
      for (const ConnectionId id : link.transport)
        if (id != 0) shard_->abort(id, now_);
    } else if (link.state == Link::State::closing) {
      // The deadline of a closing connection has passed. The peer has not received the last answers, or only one of the
      // two transport connections is closed.
      end_link(link, Code::closed, link.closes_here ? Cause::here : Cause::peer, true);
    } else {
      end_link(link, Code::unreachable, Cause::no_introduction, true);
    }
    posted_ = true;
  }
}

void Worker::expire(Operation& operation) noexcept {
  if (operation.ahead.is_withdrawn) {
    expire_withdrawal(operation);
    return;
  }
  if (withdraw(operation, Code::timed_out, Cause::here)) return;
  switch (operation.stage) {
    case Operation::Stage::announced:
    case Operation::Stage::taken_back:
      take_back(operation, Code::timed_out);
      return;
    case Operation::Stage::granted:
    case Operation::Stage::matched:
    case Operation::Stage::flowing: {
      // Some bytes are already sent and cannot be taken back, so the connection ends.
      Link& link = *operation.link;
      operation.is_cancelled = true;
      end_link(link, Code::aborted, Cause::here, true);
      return;
    }
    default:
      return;
  }
}

}  // namespace mltcp::endpoint
