// The public class Endpoint (see endpoint.h); its implementation is in internal/core.h.
#include "mltcp/endpoint/endpoint.h"

#include <fmt/format.h>

#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/internal/core.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::endpoint {
namespace {

std::byte* writable(std::span<const std::byte> bytes) { return const_cast<std::byte*>(bytes.data()); }

}  // namespace

Endpoint::Endpoint(const EndpointConfig& config)
    : core_(Core::open(config)), events_(new CompletionQueue(core_, core_->events())) {}

Endpoint::~Endpoint() {
  if (core_->is_forked()) {
    // Threads and devices belong to the parent process, so touch and free nothing.
    new std::shared_ptr<Core>(core_);
    return;
  }
  core_->close(true);
  core_->join();
}

const EndpointAddress& Endpoint::address() const noexcept { return core_->address(); }
const EndpointConfig& Endpoint::config() const noexcept { return core_->config(); }
const std::string& Endpoint::description() const noexcept { return core_->description(); }

// A callback may destroy the endpoint, so these functions hold a reference to the core.
Code Endpoint::close() noexcept { return std::shared_ptr<Core>(core_)->close(true); }
std::size_t Endpoint::progress() noexcept { return std::shared_ptr<Core>(core_)->progress(); }
Code Endpoint::arm() noexcept { return std::shared_ptr<Core>(core_)->arm(); }
Code Endpoint::wait(OperationHandle operation, Completion& out, Nanos limit) noexcept {
  return std::shared_ptr<Core>(core_)->wait(operation, out, limit);
}
int Endpoint::file() const noexcept { return core_->file(); }

Code Endpoint::connect(std::span<const std::byte> blob, const ConnectOptions& options, ConnectionHandle& handle,
                       OperationHandle* operation) noexcept {
  return core_->connect(blob, options, handle, operation);
}
Code Endpoint::close(ConnectionHandle connection) noexcept { return core_->command(Command::Type::close, connection); }
Code Endpoint::abort(ConnectionHandle connection) noexcept { return core_->command(Command::Type::abort, connection); }
Code Endpoint::report(ConnectionHandle connection, ConnectionReport& out) noexcept {
  return core_->report(connection, out);
}
Code Endpoint::how_ended(ConnectionHandle connection, Code& code, Cause& cause) const noexcept {
  return core_->how_ended(connection, code, cause);
}
Code Endpoint::peer(ConnectionHandle connection, EndpointAddress& out) noexcept { return core_->peer(connection, out); }

Code Endpoint::send(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
                    const PostOptions& options, OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::send;
  request.connection = connection;
  request.data = writable(message);
  request.length = message.size();
  request.tag = tag;
  return core_->post(request, options, operation);
}
Code Endpoint::receive(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag,
                       const PostOptions& options, OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::receive;
  request.connection = connection;
  request.data = buffer.data();
  request.length = buffer.size();
  request.tag = tag;
  return core_->post(request, options, operation);
}
Code Endpoint::send_tagged(ConnectionHandle connection, std::span<const std::byte> message, std::uint64_t tag,
                           const PostOptions& options, OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::send_tagged;
  request.connection = connection;
  request.data = writable(message);
  request.length = message.size();
  request.tag = tag;
  return core_->post(request, options, operation);
}
Code Endpoint::receive_tagged(ConnectionHandle connection, std::span<std::byte> buffer, std::uint64_t tag,
                              std::uint64_t mask, const PostOptions& options, OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::receive_tagged;
  request.connection = connection;
  request.data = buffer.data();
  request.length = buffer.size();
  request.tag = tag;
  request.mask = mask;
  return core_->post(request, options, operation);
}
Code Endpoint::peek(ConnectionHandle connection, std::uint64_t tag, std::uint64_t mask, Take take,
                    const PostOptions& options, OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::peek;
  request.connection = connection;
  request.tag = tag;
  request.mask = mask;
  request.take = take;
  return core_->post(request, options, operation);
}
Code Endpoint::receive_message(MessageHandle message, std::span<std::byte> buffer, const PostOptions& options,
                               OperationHandle& operation) noexcept {
  Request request;
  request.kind = Operation::Kind::receive_message;
  request.data = buffer.data();
  request.length = buffer.size();
  request.message = message;
  return core_->post(request, options, operation);
}

Code Endpoint::cancel(OperationHandle operation) noexcept { return core_->cancel(operation); }
Code Endpoint::test(OperationHandle operation, Completion& out) noexcept { return core_->test(operation, out); }
Code Endpoint::forget(OperationHandle operation) noexcept { return core_->forget(operation); }

std::unique_ptr<CompletionQueue> Endpoint::make_queue(std::uint32_t places) {
  if (core_->is_forked()) throw RunError(std::string(to_text(Code::forked)));
  if (places < 1 || places > 1U << 20)
    throw InputError(fmt::format("a queue of {} completions; give a size from 1 to {}", places, 1U << 20));
  return std::unique_ptr<CompletionQueue>(new CompletionQueue(core_, std::make_unique<CompletionRing>(places)));
}
CompletionQueue& Endpoint::events() noexcept { return *events_; }

Code Endpoint::create_job(const JobOptions& options, JobHandle& job) noexcept {
  return core_->create_job(options, job);
}
Code Endpoint::remove_job(JobHandle job) noexcept { return core_->remove_job(job); }
Code Endpoint::attach(ConnectionHandle connection, JobHandle job) noexcept { return core_->attach(connection, job); }
Code Endpoint::begin_iteration(JobHandle job, Bytes bytes, Beginning beginning) noexcept {
  return core_->begin_iteration(job, bytes, beginning);
}
Code Endpoint::learn_iterations(JobHandle job) noexcept { return core_->learn_iterations(job); }
Code Endpoint::end_iteration(JobHandle job) noexcept { return core_->end_iteration(job); }
Code Endpoint::set_plan(JobHandle job, const PhasePlan& plan, PlanState& state) noexcept {
  return core_->set_plan(job, plan, state);
}
Code Endpoint::clear_plan(JobHandle job) noexcept { return core_->clear_plan(job); }
Code Endpoint::set_job_rate(JobHandle job, Rate rate) noexcept { return core_->set_job_rate(job, rate); }
Code Endpoint::report(JobHandle job, JobReport& out) noexcept { return core_->report(job, out); }

Code Endpoint::register_memory(std::span<std::byte> memory, MemoryHandle& handle) noexcept {
  return core_->register_memory(memory, handle);
}
Code Endpoint::unregister_memory(MemoryHandle handle) noexcept { return core_->unregister_memory(handle); }
Nanos Endpoint::now() const noexcept { return core_->now(); }
Code Endpoint::report(EndpointReport& out) noexcept { return core_->report(out); }
Code Endpoint::report(std::vector<JobClaim>& out) noexcept { return core_->report(out); }
std::string Endpoint::why_link_is_down() const noexcept { return core_->why_link_is_down(); }
std::string Endpoint::why_silent(const Address& peer) const noexcept {
  return core_->ask([&](const HostDatapath& datapath) { return datapath.why_silent(peer); });
}
std::string Endpoint::failure() const { return core_->failure(); }

}  // namespace mltcp::endpoint
