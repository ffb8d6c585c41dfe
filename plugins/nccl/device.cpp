#include "mltcp/plugins/nccl/device.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/plugins/nccl/log.h"

namespace mltcp::nccl {

using endpoint::Code;
using endpoint::Completion;
using endpoint::ConnectionHandle;
using endpoint::Endpoint;

Device::Device(const DevicePlan& plan, const Settings& settings)
    : plan_(plan), settings_(settings), pci_(pci_path(plan.interface)), speed_(speed_mbps(plan.interface)) {}

Device::~Device() {
  std::unique_ptr<Endpoint> gone;
  const std::lock_guard lock(guard_);
  gone = std::move(endpoint_);
}

endpoint::EndpointConfig Device::config() const {
  endpoint::EndpointConfig config;
  config.datapath.device = plan_.device;
  config.address = plan_.address;
  config.connection.congestion_control = settings_.cc;
  config.connection.max_sends = 2 * kRequests;
  config.connection.max_receives = 2 * kRequests;
  config.peer_timeout = settings_.peer_timeout;
  config.max_connections = kMaxComms;
  config.max_operations = kMaxComms * (kRequests / 2);
  config.max_jobs = 1;
  config.event_callback = &on_event;
  return config;
}

void Device::open() {
  // The lock is held while the endpoint is created, because the endpoint's thread may report a connection before the
  // constructor returns.
  const std::lock_guard lock(guard_);
  if (endpoint_ != nullptr) return;
  endpoint::EndpointConfig wanted = config();
  wanted.event_context = this;
  auto made = std::make_unique<Endpoint>(wanted);
  endpoint::JobOptions job;
  job.number = settings_.job;
  job.augmentation = settings_.augmentation;
  job.learn_iterations = true;
  if (settings_.plan) job.plan = endpoint::on_clock_of(*made, *settings_.plan);
  if (const Code code = made->create_job(job, job_); code != Code::ok)
    throw RunError(fmt::format("the job cannot be created: {}", endpoint::to_text(code)));
  endpoint_ = std::move(made);
}

void Device::close() noexcept {
  wait_for_lingering(Nanos(1'000'000'000));
  std::unique_ptr<Endpoint> gone;
  {
    const std::lock_guard lock(guard_);
    if (comms_ > 0 || !listeners_.empty() || !attempts_.empty()) return;
    gone = std::move(endpoint_);
  }
  // The endpoint is destroyed here, without the lock, because its thread ends the remaining operations and calls back.
}

void Device::linger(ConnectionHandle connection) noexcept {
  const std::lock_guard lock(guard_);
  lingering_.insert(connection);
}

void Device::forget(ConnectionHandle connection) noexcept {
  const std::lock_guard lock(guard_);
  lingering_.erase(connection);
}

void Device::wait_for_lingering(Nanos limit) noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limit.count);
  while (std::chrono::steady_clock::now() < end) {
    {
      const std::lock_guard lock(guard_);
      if (lingering_.empty()) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// ---- Incoming connections ----

void Device::on_event(void* context, const Completion& event) noexcept {
  Device& device = *static_cast<Device*>(context);
  if (event.kind == Completion::Kind::accepted) device.take(event.connection);
  if (event.kind == Completion::Kind::closed) device.forget(event.connection);
}

void Device::take(ConnectionHandle connection) noexcept {
  Endpoint* endpoint = nullptr;
  Introduction* introduction = nullptr;
  try {
    auto made = std::make_unique<Introduction>();
    made->device = this;
    made->connection = connection;
    const std::lock_guard lock(guard_);
    endpoint = endpoint_.get();
    introduction = made.get();
    if (endpoint != nullptr) introductions_[connection] = std::move(made);
  } catch (const std::bad_alloc&) {
    return;  // no hello is received, so the connection waits until its time limit
  }
  if (endpoint == nullptr) return;
  endpoint::OperationHandle operation = 0;
  const endpoint::PostOptions options{
      .callback = &on_hello, .context = introduction, .time_limit = settings_.peer_timeout};
  if (endpoint->receive(connection, introduction->hello, 0, options, operation) == Code::ok) return;
  endpoint->abort(connection);
  const std::lock_guard lock(guard_);
  introductions_.erase(connection);
}

void Device::on_hello(void* context, const Completion& end) noexcept {
  const Introduction& introduction = *static_cast<Introduction*>(context);
  introduction.device->introduce(introduction, end);
}

void Device::introduce(const Introduction& introduction, const Completion& end) noexcept {
  std::uint64_t token = 0;
  const bool understood = end.code == Code::ok && end.bytes == kHelloBytes && read_hello(introduction.hello, token);
  const ConnectionHandle connection = introduction.connection;
  Endpoint* endpoint = nullptr;
  bool taken = false;
  {
    const std::lock_guard lock(guard_);
    introductions_.erase(connection);
    endpoint = endpoint_.get();
    if (const auto found = listeners_.find(token); understood && found != listeners_.end()) {
      found->second->ready.push_back(connection);
      taken = true;
    }
  }
  if (endpoint == nullptr) return;
  static constexpr std::array kWelcome{std::byte{1}};
  endpoint::OperationHandle operation = 0;
  if (!taken)
    endpoint->abort(connection);
  else if (endpoint->send(connection, kWelcome, 0, {}, operation) == Code::ok)
    endpoint->forget(operation);
}

Result Device::listen(std::span<std::byte, kHandleBytes> handle, Listener** out) {
  open();
  auto listener = std::make_unique<Listener>();
  listener->device = this;
  // The token must be unpredictable: a process that knows the token is accepted as a peer.
  listener->token = SystemRandom().next();
  *out = listener.get();
  const std::lock_guard lock(guard_);
  write_handle(handle, endpoint_->address(), listener->token);
  listeners_[listener->token] = std::move(listener);
  return Result::success;
}

void Device::close_listen(Listener* listener) noexcept {
  std::unique_ptr<Listener> gone;
  Endpoint* endpoint = nullptr;
  {
    const std::lock_guard lock(guard_);
    const auto found = listeners_.find(listener->token);
    if (found == listeners_.end()) return;
    gone = std::move(found->second);
    listeners_.erase(found);
    endpoint = endpoint_.get();
  }
  for (const ConnectionHandle connection : gone->ready) endpoint->abort(connection);
}

Result Device::accept(Listener& listener, Comm** out) {
  *out = nullptr;
  ConnectionHandle connection = 0;
  Endpoint* endpoint = nullptr;
  {
    const std::lock_guard lock(guard_);
    if (listener.ready.empty()) return Result::success;
    endpoint = endpoint_.get();
    connection = listener.ready.front();
  }
  auto comm = std::make_unique<Comm>(*this, *endpoint, Direction::receive);
  comm->accepted(connection);
  {
    const std::lock_guard lock(guard_);
    listener.ready.pop_front();
    ++comms_;
  }
  *out = comm.release();
  if (settings_.verbose) log_info(fmt::format("{} accepted a connection", plan_.name));
  return Result::success;
}

// ---- Outgoing connections ----

Result Device::begin(std::span<std::byte, kHandleBytes> handle, const endpoint::EndpointAddress& peer,
                     std::uint64_t token) {
  open();
  auto comm = std::make_unique<Comm>(*this, *endpoint_, Direction::send);
  comm->connect(peer, token);
  if (comm->connection() != 0) endpoint_->attach(comm->connection(), job_);
  const std::lock_guard lock(guard_);
  note_attempt(handle, next_attempt_);
  attempts_[next_attempt_++] = std::move(comm);
  return Result::success;
}

Result Device::connect(std::span<std::byte, kHandleBytes> handle, Comm** out) {
  *out = nullptr;
  endpoint::EndpointAddress peer;
  std::uint64_t token = 0;
  if (const char* const why = read_handle(handle, peer, token); why != nullptr) {
    log_warning(why);
    return Result::invalid_usage;
  }
  std::unique_ptr<Comm> comm;
  {
    const std::lock_guard lock(guard_);
    const auto found = attempts_.find(attempt_in(handle));
    if (found != attempts_.end() && found->second->is_to(peer, token)) {
      if (found->second->connected() == nullptr) return Result::success;
      comm = std::move(found->second);
      attempts_.erase(found);
      note_attempt(handle, 0);
    }
  }
  if (comm == nullptr) return begin(handle, peer, token);
  const Completion end = *comm->connected();
  if (end.code != Code::ok) {
    log_warning(fmt::format("{} can't connect to {}: {}", plan_.name, to_text(peer.base()), endpoint::to_text(end)));
    if (!comm->close()) comm.release();
    return result_of(end.code);
  }
  if (settings_.verbose) log_info(fmt::format("{} connected to {}", plan_.name, to_text(peer.base())));
  const std::lock_guard lock(guard_);
  ++comms_;
  *out = comm.release();
  return Result::success;
}

void Device::close_comm(Comm* comm) noexcept {
  std::unique_ptr<Comm> gone(comm);
  if (!gone->close()) {
    // The endpoint's thread still writes to the communicator's memory, so the memory is not freed.
    gone.release();
    return;
  }
  const std::lock_guard lock(guard_);
  --comms_;
}

void Device::mark_iteration(endpoint::CollectiveSequence::Step step) noexcept {
  Endpoint* endpoint = nullptr;
  {
    const std::lock_guard lock(guard_);
    endpoint = endpoint_.get();
  }
  const std::uint64_t posted = posted_.load(std::memory_order_relaxed);
  const std::uint64_t bytes = posted - marked_.exchange(posted, std::memory_order_relaxed);
  if (endpoint == nullptr || step == endpoint::CollectiveSequence::Step::candidate) return;
  const bool begins = step == endpoint::CollectiveSequence::Step::begins;
  if (settings_.verbose) {
    try {
      log_info(begins ? fmt::format("an iteration begins; the one before sent {} bytes", bytes)
                      : "iterations are not known any more: the job's collectives have changed");
    } catch (...) {  // there is no memory for the log line
    }
  }
  if (begins)
    (void)endpoint->begin_iteration(job_, bytes);
  else
    (void)endpoint->learn_iterations(job_);
}

}  // namespace mltcp::nccl
