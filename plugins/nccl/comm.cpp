#include "mltcp/plugins/nccl/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "mltcp/plugins/nccl/device.h"
#include "mltcp/plugins/nccl/log.h"

namespace mltcp::nccl {

using endpoint::Code;
using endpoint::Completion;
using State = Request::State;

Result result_of(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return Result::success;
    case Code::truncated:
    case Code::too_long:
    case Code::forked:
    case Code::version:
    case Code::no_key:
      return Result::invalid_usage;
    case Code::closed:
    case Code::refused:
    case Code::unreachable:
    case Code::aborted:
    case Code::wrong_peer:
    case Code::protocol:
      return Result::remote_error;
    default:
      return Result::system_error;
  }
}

Comm::Comm(Device& device, endpoint::Endpoint& endpoint, Direction direction)
    : device_(device), endpoint_(endpoint), direction_(direction) {
  for (Request& request : requests_) request.comm = this;
  connecting_.comm = this;
  greeting_.comm = this;
  welcome_.comm = this;
}

void Comm::on_end(void* context, const Completion& end) noexcept {
  Request& request = *static_cast<Request*>(context);
  if (end.code == Code::ok) {
    request.end.code = Code::ok;
    request.end.bytes = end.bytes;
  } else {
    request.end = end;
  }
  request.state.store(State::done, std::memory_order_release);  // NCCL may free the request from now on
}

void Comm::end_at_once(Request& request, Code code, Bytes bytes) const noexcept {
  request.end = {};
  request.end.kind = direction_ == Direction::send ? Completion::Kind::sent : Completion::Kind::received;
  request.end.code = code;
  request.end.bytes = bytes;
  request.end.peer = peer_.base();
  request.state.store(State::done, std::memory_order_relaxed);
}

void Comm::connect(const endpoint::EndpointAddress& peer, std::uint64_t token) noexcept {
  peer_ = peer;
  token_ = token;
  write_hello(hello_, token);
  endpoint::ConnectOptions options;
  options.post = {.callback = &on_end, .context = &connecting_};
  connecting_.state.store(State::pending, std::memory_order_relaxed);
  Code code = endpoint_.connect(peer.bytes(), options, connection_);
  if (code != Code::ok) return end_at_once(connecting_, code, 0);
  endpoint::OperationHandle operation = 0;
  greeting_.state.store(State::pending, std::memory_order_relaxed);
  code = endpoint_.send(connection_, hello_, 0, {.callback = &on_end, .context = &greeting_}, operation);
  if (code != Code::ok) end_at_once(greeting_, code, kHelloBytes);
  welcome_.state.store(State::pending, std::memory_order_relaxed);
  code = endpoint_.receive(connection_, answer_, 0, {.callback = &on_end, .context = &welcome_}, operation);
  if (code != Code::ok) end_at_once(welcome_, code, 0);
}

const Completion* Comm::connected() const noexcept {
  if (connecting_.state.load(std::memory_order_acquire) != State::done) return nullptr;
  if (connecting_.end.code != Code::ok) return &connecting_.end;
  if (greeting_.state.load(std::memory_order_acquire) != State::done) return nullptr;
  if (greeting_.end.code != Code::ok) return &greeting_.end;
  return welcome_.state.load(std::memory_order_acquire) == State::done ? &welcome_.end : nullptr;
}

Result Comm::post(std::span<std::byte> bytes, void** request) noexcept {
  *request = nullptr;
  Request* place = nullptr;
  for (std::uint32_t i = 0; i < requests_.size() && place == nullptr; ++i) {
    Request& one = requests_[(next_ + i) % requests_.size()];
    if (one.state.load(std::memory_order_relaxed) == State::free) {
      place = &one;
      next_ = (next_ + i + 1) % kRequests;
    }
  }
  if (place == nullptr) return Result::success;
  place->state.store(State::pending, std::memory_order_relaxed);
  const endpoint::PostOptions options{.callback = &on_end, .context = place};
  endpoint::OperationHandle operation = 0;
  const Code code = direction_ == Direction::send ? endpoint_.send(connection_, bytes, 0, options, operation)
                                                  : endpoint_.receive(connection_, bytes, 0, options, operation);
  if (code == Code::queue_full) {
    place->state.store(State::free, std::memory_order_relaxed);
    return Result::success;
  }
  if (code == Code::ok) {
    if (direction_ == Direction::send) device_.count(bytes.size());
  } else {
    // If the connection has ended, its handle may already be invalid. test() reports the end of the connection, because
    // NCCL would treat an error of isend() as an error of NCCL.
    end_at_once(*place, code == Code::unknown ? Code::closed : code, bytes.size());
  }
  *request = place;
  return Result::success;
}

Result Comm::test(Request& request, int* done, int* sizes) noexcept {
  const State state = request.state.load(std::memory_order_acquire);
  *done = 0;
  if (state == State::pending) return Result::success;
  if (state == State::free) return Result::internal_error;
  const Code code = request.end.code;
  if (code != Code::ok) request.comm->fail(request);
  if (code == Code::ok) {
    *done = 1;
    if (sizes != nullptr) *sizes = static_cast<int>(request.end.bytes);
  }
  request.state.store(State::free, std::memory_order_relaxed);
  return result_of(code);
}

void Comm::fail(const Request& request) noexcept {
  if (reported_failure_) return;
  reported_failure_ = true;
  try {
    log_warning(endpoint::to_text(request.end));
  } catch (...) {  // there is no memory for the log line
  }
}

bool Comm::any_pending() const noexcept {
  const auto pending = [](const Request& one) { return one.state.load(std::memory_order_acquire) == State::pending; };
  return std::ranges::any_of(requests_, pending) || pending(connecting_) || pending(greeting_) || pending(welcome_);
}

bool Comm::wait_for_ends(Nanos limit) const noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limit.count);
  while (any_pending()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

bool Comm::close() noexcept {
  if (connection_ == 0) return true;
  // A receiver acknowledges arrived messages before the connection ends, so that the peer's sends succeed. Receive
  // requests without a message end at once. A sender with pending messages could wait for ever, so it aborts the
  // connection.
  if (direction_ == Direction::receive || !any_pending()) {
    device_.linger(connection_);
    // If the peer closed the connection, the event may have come before linger(). In that case no further event comes.
    endpoint::ConnectionReport report;
    if (endpoint_.close(connection_) != Code::ok || endpoint_.report(connection_, report) == Code::unknown)
      device_.forget(connection_);
    if (wait_for_ends(Nanos(100'000'000))) return true;
  }
  endpoint_.abort(connection_);
  return wait_for_ends(Nanos(5'000'000'000));
}

}  // namespace mltcp::nccl
