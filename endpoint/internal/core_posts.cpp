// How operations reach a worker, and how waiting threads learn that operations have ended (see core.h).
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <vector>

#include "mltcp/endpoint/internal/core.h"
#include "mltcp/endpoint/internal/core_waiting.h"
#include "mltcp/transport/counters.h"
#include "mltcp/transport/job_claims.h"
#include "mltcp/transport/wire.h"

namespace mltcp::endpoint {
namespace {

constexpr std::uint64_t kStateMask = 0xFFFFFFFFU;
constexpr std::uint64_t kTaken = 5;  ///< the thread that called test() or wait() has taken the result
/// Interval at which a thread that waits for a queue checks whether the endpoint still exists.
constexpr Nanos kLookAgain{100'000'000};

ConnectionKind kind_of(Operation::Kind kind) {
  return kind == Operation::Kind::send || kind == Operation::Kind::receive ? ConnectionKind::ordered
                                                                           : ConnectionKind::tagged;
}

}  // namespace

// ---- Posting ----

bool Core::enter_place(Worker& worker) noexcept {
  if (!worker.is_calling_back()) {
    if (config_.driving == Driving::threads || !worker.enter()) return false;
  }
  if (worker.has_commands()) worker.drain();
  return true;
}

void Core::leave_place(Worker& worker) noexcept {
  if (worker.is_calling_back()) return;
  worker.leave();
  // No fence is needed. The sleeper arms first and then enters this worker, and only one thread can be in the worker.
  // So either this thread sees the arming, or the sleeper sees what this thread has posted.
  worker.wakeup().wake_unfenced();
}

Code Core::submit(Worker& worker, Operation& operation, bool in_place) noexcept {
  if (in_place) {
    worker.count_in_place();
    worker.start(operation);
    return Code::ok;
  }
  const bool pushed = worker.push({Command::Type::start, operation.slot, 0});
  if (pushed && shared_.closing.load(std::memory_order_relaxed)) settle(worker);
  return pushed ? Code::ok : Code::queue_full;
}

Code Core::place(Worker& worker, const Request& request, const PostOptions& options, OperationHandle& handle) noexcept {
  CompletionRing* const queue =
      options.callback == nullptr && options.queue != nullptr ? &options.queue->ring() : nullptr;
  if (queue != nullptr && !queue->reserve()) return Code::queue_full;
  const bool in_place = enter_place(worker);
  OperationPool& operations = worker.operations();
  Operation* const operation = in_place ? operations.take_at_hand() : operations.take();
  if (operation == nullptr) {
    if (in_place) leave_place(worker);
    if (queue != nullptr) queue->give_back();
    return Code::queue_full;
  }
  operation->kind = request.kind;
  operation->take = request.take;
  operation->reporting = options.callback != nullptr ? Operation::Reporting::callback
                         : queue != nullptr          ? Operation::Reporting::queue
                                                     : Operation::Reporting::handle;
  operation->data = request.data;
  operation->length = request.length;
  operation->tag = request.tag;
  operation->mask = request.mask;
  operation->connection = request.connection;
  operation->message = request.message;
  operation->callback = options.callback;
  operation->context = options.context;
  operation->queue = queue;
  operation->time_limit = options.time_limit;
  operation->state.store(std::uint64_t{operation->generation()} << 32 | Operation::kPending, std::memory_order_release);
  handle = operations.handle(*operation);
  if (in_place && !options.time_limit.is_never()) worker.set_now(now());
  const Code code = submit(worker, *operation, in_place);
  if (code != Code::ok) {
    operations.give_back(*operation);
    handle = 0;
    if (queue != nullptr) queue->give_back();
  }
  if (!in_place) return code;
  // If the endpoint was closed meanwhile, no thread drives the worker, so deliver the end here. A callback may destroy
  // the endpoint, so hold a reference.
  const std::shared_ptr<Core> self = worker.has_shard() ? nullptr : shared_from_this();
  if (self != nullptr && !worker.is_calling_back()) worker.deliver();
  leave_place(worker);
  return code;
}

Code Core::may_post(const Request& request, Worker*& worker) noexcept {
  if (request.data == nullptr && request.length > 0) return Code::invalid;
  if (request.length > wire::kMaxMessageBytes) return Code::too_long;
  using Kind = Operation::Kind;
  const bool by_tag = kind_of(request.kind) == ConnectionKind::tagged;
  if (request.kind == Kind::receive_message || (by_tag && request.connection == kAnyConnection)) {
    if (request.kind == Kind::send_tagged) return Code::unknown;
    worker = workers_[0].get();
    return Code::ok;
  }
  const HandleParts parts = parts_of(request.connection);
  worker = worker_of(parts);
  std::uint64_t face = 0;
  const Link* const link = worker != nullptr ? worker->find_any_thread(parts, face) : nullptr;
  if (link == nullptr) return Code::unknown;
  if (Face::kind(face) != kind_of(request.kind)) return Code::unsupported;
  // Messages of an ended connection may still be stored here.
  const bool may_hold =
      (face & Face::kLeft) == 0 && (request.kind == Kind::receive_tagged || request.kind == Kind::peek);
  if ((face & Face::kMayPost) == 0 && !may_hold) return Face::code(face);
  if (request.kind == Kind::send || request.kind == Kind::send_tagged) count_posted(*link, parts.shard, request.length);
  return Code::ok;
}

Code Core::post(const Request& request, const PostOptions& options, OperationHandle& handle) noexcept {
  handle = 0;
  if (const Code code = usable(); code != Code::ok) return code;
  if (options.time_limit <= Nanos()) return Code::invalid;
  Worker* worker = nullptr;
  if (const Code code = may_post(request, worker); code != Code::ok) return code;
  return place(*worker, request, options, handle);
}

Code Core::connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
                   OperationHandle* operation) noexcept {
  handle = 0;
  OperationHandle posted = 0;
  if (operation == nullptr) operation = &posted;
  *operation = 0;
  if (const Code code = usable(); code != Code::ok) return code;
  if (options.post.time_limit <= Nanos()) return Code::invalid;
  if (options.kind != ConnectionKind::ordered && options.kind != ConnectionKind::tagged) return Code::invalid;
  EndpointAddress peer;
  try {
    std::string why;
    if (const Code code = EndpointAddress::parse(blob, peer, &why); code != Code::ok) {
      set_failure(why);
      return code;
    }
    if (peer.base().is_v4() != shared_.address.base().is_v4()) {
      set_failure(
          fmt::format("the peer is at {}, but this endpoint at {}: one has IPv4 and the other IPv6; give both IPv4 or "
                      "both IPv6 addresses",
                      to_text(peer.base()), to_text(shared_.address.base())));
      return Code::bad_address;
    }
  } catch (const std::exception&) {
    return Code::no_room;
  }
  const std::uint64_t turn = next_shard_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t shard = options.kind == ConnectionKind::tagged ? 0 : turn % workers_.size();
  Worker& worker = *workers_[shard];
  // The token must be unpredictable. Its upper half depends on `turn` and selects the peer's shard, so that connections
  // spread over all pairs of shards.
  std::uint64_t random = (turn + 1) * 0x9E3779B97F4A7C15ULL ^ random_;
  random = (random ^ (random >> 31)) * 0xBF58476D1CE4E5B9ULL;
  const std::uint64_t token = ((turn / workers_.size() + turn) << 32) | static_cast<std::uint32_t>(random >> 16);
  const bool nobody_asks = operation == &posted && options.post.callback == nullptr && options.post.queue == nullptr;
  Link* const link = worker.reserve_link(options.kind, peer, token, nobody_asks);
  if (link == nullptr) return Code::no_room;
  handle = link->handle;
  Request request;
  request.kind = Operation::Kind::connect;
  request.connection = handle;
  const Code code = place(worker, request, options.post, *operation);
  if (code != Code::ok) {
    worker.unreserve_link(*link);
    handle = 0;
  } else if (nobody_asks) {
    forget(posted);  // no other thread has the handle of the operation
  }
  return code;
}

Code Core::command(Command::Type type, std::uint64_t handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  const HandleParts parts = parts_of(handle);
  Worker* const worker = worker_of(parts);
  std::uint64_t face = 0;
  if (worker == nullptr || worker->find_any_thread(parts, face) == nullptr) return Code::unknown;
  if (!enter_place(*worker)) return worker->push({type, 0, handle}) ? Code::ok : Code::queue_full;
  switch (type) {
    case Command::Type::close:
      worker->close(handle);
      break;
    case Command::Type::abort:
      worker->abort(handle);
      break;
    default:
      if (Link* const link = worker->find(handle); link != nullptr) worker->attach(*link);
  }
  leave_place(*worker);
  return Code::ok;
}

// ---- Ends ----

Code Core::cancel(OperationHandle handle) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  const HandleParts parts = parts_of(handle);
  Worker* const worker = worker_of(parts);
  const Operation* const operation = worker != nullptr ? worker->operations().find(parts) : nullptr;
  if (operation == nullptr || (operation->state.load(std::memory_order_acquire) & kStateMask) == Operation::kDone)
    return Code::unknown;
  if (!enter_place(*worker)) return worker->push({Command::Type::cancel, 0, handle}) ? Code::ok : Code::queue_full;
  const bool in_time = worker->cancel(handle);
  leave_place(*worker);
  return in_time ? Code::ok : Code::too_late;
}

Operation* Core::find_waitable(OperationHandle handle, Worker*& worker, Code& code) noexcept {
  code = Code::unknown;
  if (is_forked()) {
    code = Code::forked;
    return nullptr;
  }
  const HandleParts parts = parts_of(handle);
  worker = worker_of(parts);
  Operation* const operation = worker != nullptr ? worker->operations().find(parts) : nullptr;
  if (operation == nullptr) return nullptr;
  if (operation->reporting == Operation::Reporting::handle) return operation;
  code = Code::unsupported;
  return nullptr;
}

/// Returns Code::timed_out if the operation has not ended.
Code Core::claim(Worker& worker, Operation& operation, std::uint32_t generation, Completion& out) noexcept {
  const std::uint64_t above = std::uint64_t{generation} << 32;
  std::uint64_t expected = above | Operation::kDone;
  if (!operation.state.compare_exchange_strong(expected, above | kTaken, std::memory_order_acq_rel))
    return expected >> 32 == generation && (expected & kStateMask) != kTaken ? Code::timed_out : Code::unknown;
  out = operation.end;
  worker.operations().give_back(operation);
  return Code::ok;
}

Code Core::test(OperationHandle handle, Completion& out) noexcept {
  Code code = Code::ok;
  Worker* worker = nullptr;
  Operation* const operation = find_waitable(handle, worker, code);
  return operation == nullptr ? code : claim(*worker, *operation, parts_of(handle).generation, out);
}

Code Core::wait(OperationHandle handle, Completion& out, Nanos limit) noexcept {
  if (limit < Nanos()) return Code::invalid;
  Code code = Code::ok;
  Worker* worker = nullptr;
  Operation* const operation = find_waitable(handle, worker, code);
  if (operation == nullptr) return code;
  const std::uint32_t generation = parts_of(handle).generation;
  code = claim(*worker, *operation, generation, out);
  if (code != Code::timed_out) return code;
  if (Worker::in_callback()) return limit == Nanos() ? Code::timed_out : Code::unsupported;
  if (limit == Nanos()) {
    progress();
    return claim(*worker, *operation, generation, out);
  }
  const std::uint64_t above = std::uint64_t{generation} << 32;
  std::uint64_t expected = above | Operation::kPending;
  operation->state.compare_exchange_strong(expected, above | Operation::kAwaited, std::memory_order_acq_rel);
  wait_for(limit, [&] {
    return operation->state.load(std::memory_order_acquire) != (above | Operation::kAwaited) ||
           finished_.load(std::memory_order_acquire);
  });
  expected = above | Operation::kAwaited;
  operation->state.compare_exchange_strong(expected, above | Operation::kPending, std::memory_order_acq_rel);
  code = claim(*worker, *operation, generation, out);
  return code == Code::timed_out && finished_.load(std::memory_order_acquire) ? Code::destroyed : code;
}

Code Core::forget(OperationHandle handle) noexcept {
  Code code = Code::ok;
  Worker* worker = nullptr;
  Operation* const operation = find_waitable(handle, worker, code);
  if (operation == nullptr) return code;
  const std::uint64_t above = std::uint64_t{parts_of(handle).generation} << 32;
  std::uint64_t expected = above | Operation::kPending;
  if (operation->state.compare_exchange_strong(expected, above | Operation::kForgotten, std::memory_order_acq_rel))
    return Code::ok;
  Completion end;
  return claim(*worker, *operation, parts_of(handle).generation, end);
}

Code Core::wait(CompletionRing& ring, std::span<Completion> out, std::size_t& count, Nanos limit) noexcept {
  count = 0;
  if (limit < Nanos() || out.empty()) return Code::invalid;
  if (is_forked()) return Code::forked;
  const auto take = [&] {
    while (count < out.size() && ring.pop(out[count])) ++count;
    if (count > 0 && ring.has_some()) ring.wakeup().wake();  // wakes other waiting threads
    return count > 0;
  };
  if (take()) return Code::ok;
  if (Worker::in_callback()) return limit == Nanos() ? Code::timed_out : Code::unsupported;
  const auto over = [&] { return finished_.load(std::memory_order_acquire); };
  if (config_.driving == Driving::caller) {
    if (limit == Nanos())
      progress();
    else
      wait_for(limit, [&] { return ring.has_some() || over(); });
    if (take()) return Code::ok;
    return over() ? Code::destroyed : Code::timed_out;
  }
  const Nanos start = monotonic_now();
  const Nanos end = limit > Nanos::never() - start ? Nanos::never() : start + limit;
  for (;;) {
    ring.wakeup().disarm();
    ring.wakeup().arm();
    const bool is_over = over();
    if (take()) return Code::ok;
    const Nanos left = end - monotonic_now();
    if (is_over) return Code::destroyed;
    if (left <= Nanos()) return Code::timed_out;
    pollfd file{ring.wakeup().file(), POLLIN, 0};
    const timespec max{0, static_cast<long>(std::min(left, kLookAgain).count)};
    ppoll(&file, 1, &max, nullptr);
  }
}

// ---- Reports ----

Code Core::ask(Worker& worker, Call& call) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  const auto here = [&] {
    if (worker.has_commands()) worker.drain();
    call.run(call.what);
  };
  if (worker.is_calling_back()) {
    here();
    return Code::ok;
  }
  if (worker.enter()) {
    here();
    leave_place(worker);
    return Code::ok;
  }
  if (Worker::in_callback()) return Code::unsupported;
  const Command command{Command::Type::call, 0, reinterpret_cast<std::uint64_t>(&call)};
  while (!worker.push(command)) std::this_thread::yield();
  for (;;) {
    if (gate_.wait(Nanos(1'000'000), [&] { return call.done; })) return Code::ok;
    if (!worker.enter()) continue;  // the driver will run the command
    worker.drain();
    leave_place(worker);
  }
}

Code Core::report(ConnectionHandle connection, ConnectionReport& out) noexcept {
  const HandleParts parts = parts_of(connection);
  Worker* const worker = worker_of(parts);
  if (worker == nullptr) return Code::unknown;
  Code code = Code::unknown;
  const Code asked = on_worker(*worker, [&]() noexcept {
    if (!worker->has_shard()) return;
    const Link* const link = worker->find(connection);
    std::uint64_t face = 0;
    if (link == nullptr && worker->find_any_thread(parts, face) == nullptr) return;
    code = Code::ok;
    out = {};
    out.shard = static_cast<std::uint16_t>(parts.shard);
    if (link == nullptr) {
      out.kind = Face::kind(face);
      out.has_ended = true;
      out.end_code = Face::code(face);
      out.end_cause = Face::cause(face);
      return;
    }
    out.has_ended = link->state == Link::State::ended;
    out.end_code = link->end_code;
    out.end_cause = link->end_cause;
    out.kind = link->kind;
    out.open = link->state == Link::State::open;
    if (!link->is_client || link->greeted[0]) out.peer = link->peer;
    const ConnectionId id = link->transport[link->kind == ConnectionKind::tagged ? Link::kData : Link::kControl];
    if (id != 0) out.transport = worker->shard().stats(id).value_or(ConnectionStats());
    if (link->tagged == nullptr) return;
    out.unexpected_messages = static_cast<std::uint32_t>(link->tagged->unexpected.size());
    out.held_back = static_cast<std::uint32_t>(link->tagged->held.size());
  });
  return asked != Code::ok ? asked : code;
}

Code Core::how_ended(ConnectionHandle connection, Code& end_code, Cause& end_cause) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  const HandleParts parts = parts_of(connection);
  Worker* const worker = worker_of(parts);
  std::uint64_t face = 0;
  if (worker == nullptr || worker->find_any_thread(parts, face) == nullptr) return Code::unknown;
  if ((face & Face::kMayPost) != 0) return Code::nothing;
  end_code = Face::code(face);
  end_cause = Face::cause(face);
  return Code::ok;
}

Code Core::peer(ConnectionHandle connection, EndpointAddress& out) noexcept {
  ConnectionReport all;
  const Code code = report(connection, all);
  if (code != Code::ok) return code;
  if (all.peer.empty()) return all.has_ended ? all.end_code : Code::nothing;
  out = all.peer;
  return Code::ok;
}

std::string Core::ask(const std::function<std::string(const HostDatapath&)>& what) noexcept {
  std::string why;
  if (usable() != Code::ok) return why;
  Worker& first = *workers_.front();
  on_worker(first, [&]() noexcept {
    if (first.has_shard() && datapath_ != nullptr) why = what(*datapath_);
  });
  return why;
}

Code Core::report(std::vector<JobClaim>& out) noexcept {
  out.clear();
  if (const Code code = usable(); code != Code::ok) return code;
  if (Worker::in_callback()) return Code::unsupported;
  try {
    for (const auto& worker : workers_) {
      out.reserve(out.size() + JobClaims::kMaxJobs + 1);  // so that the driver does not allocate
      const Code code = on_worker(*worker, [&]() noexcept {
        if (worker->has_shard()) worker->shard().job_claims()->append_to(out);
      });
      if (code != Code::ok) return code;
    }
    add_up(out);
    return Code::ok;
  } catch (const std::bad_alloc&) {
    return Code::no_room;
  }
}

Code Core::report(EndpointReport& out) noexcept {
  if (const Code code = usable(); code != Code::ok) return code;
  out = {};
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    const Code code = on_worker(worker, [&]() noexcept {
      if (!worker.has_shard()) return;
      out.operations += worker.ended();
      out.posts_in_place += worker.in_place();
      out.broken_protocols += worker.counters().broken_protocols;
      out.unintroduced += worker.counters().unintroduced;
      for (const Link& link : worker.links())
        if (link.is_announced) ++out.connections;
      add_up(out.packets, worker.shard().stats());
      if (i == 0 && datapath_ != nullptr) out.losses = datapath_->losses();
    });
    if (code != Code::ok) return code;
    out.wakeups += worker.wakeups();
  }
  return Code::ok;
}

}  // namespace mltcp::endpoint
