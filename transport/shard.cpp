// The public interface of the transport (see shard.h); the implementation is in internal/shard_core.h.
#include "mltcp/transport/shard.h"

#include <utility>

#include "mltcp/transport/internal/shard_core.h"

namespace mltcp {

using transport::Connection;
using transport::JobState;
using transport::ShardCore;

namespace {

/// Returns the result of a send that the datapath cannot carry: `closed` if the connection is unknown, else `invalid`.
PostResult refuse(const ShardCore& core, ConnectionId id) {
  return core.find(id) == nullptr ? PostResult::closed : PostResult::invalid;
}

}  // namespace

std::string to_text(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::truncated:
      return "truncated";
    case Status::closed:
      return "closed";
    case Status::refused:
      return "refused";
    case Status::full:
      return "full";
    case Status::unreachable:
      return "unreachable";
    case Status::aborted:
      return "aborted";
    case Status::version:
      return "version";
    case Status::timed_out:
      return "timed out";
    case Status::violation:
      return "violation";
    case Status::no_key:
      return "no key in common";
  }
  return "unknown";
}

Shard::Shard(PacketIo& io, const ShardConfig& config) : core_(std::make_unique<ShardCore>(io, config)) {}
Shard::~Shard() = default;

std::vector<ConnectionId> Shard::first_connections(const ShardConfig& config) {
  return ShardCore::first_connections(config);
}

void Shard::listen(const ConnectionConfig& config) { core_->listen(config); }
ConnectionId Shard::connect(const Address& remote, const ConnectionConfig& config, Nanos now) {
  return core_->connect(remote, config, now);
}

PostResult Shard::send(ConnectionId id, std::span<const std::byte> message, std::uint64_t tag, Nanos deadline,
                       std::uint8_t uncharged) {
  if (message.data() == nullptr && !message.empty()) return refuse(*core_, id);
  return core_->send(id, message.data(), message.size(), tag, deadline, uncharged);
}
PostResult Shard::send_virtual(ConnectionId id, Bytes length, std::uint64_t tag, Nanos deadline) {
  if (!core_->has_virtual_payloads()) return refuse(*core_, id);
  return core_->send(id, nullptr, length, tag, deadline);
}
PostResult Shard::receive(ConnectionId id, std::span<std::byte> buffer, std::uint64_t tag, Nanos deadline) {
  if (buffer.data() == nullptr && !buffer.empty()) return PostResult::invalid;
  return core_->receive(id, buffer.data(), buffer.size(), tag, deadline);
}
PostResult Shard::receive_virtual(ConnectionId id, Bytes capacity, std::uint64_t tag, Nanos deadline) {
  return core_->receive(id, nullptr, capacity, tag, deadline);
}
void Shard::prefetch(std::span<const ConnectionId> ids) const { core_->prefetch(ids); }

bool Shard::cancel_send(ConnectionId id, std::uint64_t tag) { return core_->cancel(id, tag, true); }
bool Shard::cancel_receive(ConnectionId id, std::uint64_t tag) { return core_->cancel(id, tag, false); }
bool Shard::discard_receive(ConnectionId id, std::uint64_t tag, std::uint64_t new_tag) {
  return core_->discard_receive(id, tag, new_tag);
}

bool Shard::close(ConnectionId id) { return core_->close(id); }
bool Shard::abort(ConnectionId id, Nanos now) { return core_->abort(id, now); }

JobId Shard::add_job(const JobConfig& config) { return core_->add_job(config); }
bool Shard::remove_job(JobId id) { return core_->remove_job(id); }
bool Shard::attach(ConnectionId id, JobId job) { return core_->attach(id, job); }
bool Shard::begin_iteration(JobId job, Bytes bytes) { return core_->begin_iteration(job, bytes); }
bool Shard::learn_iterations(JobId job) { return core_->learn_iterations(job); }
bool Shard::set_job_rate(JobId job, Rate rate) { return core_->set_job_rate(job, rate); }
PlanState Shard::set_plan(JobId job, const PhasePlan& plan, Nanos now) { return core_->set_plan(job, plan, now); }
bool Shard::clear_plan(JobId job, Nanos now) { return core_->clear_plan(job, now); }

GateStats Shard::gate_stats(JobId job) const {
  if (const JobState* state = std::as_const(*core_).find_job(job)) return state->gate.stats();
  GateStats unknown;
  unknown.state = PlanState::unknown_job;
  return unknown;
}

const cc::Augmentation* Shard::job_progress(JobId job) const {
  const JobState* state = std::as_const(*core_).find_job(job);
  return state == nullptr ? nullptr : &state->augmentation;
}

double Shard::job_gain(JobId job) const {
  const JobState* state = std::as_const(*core_).find_job(job);
  return state == nullptr ? 1 : state->gain();
}

Nanos Shard::poll(Nanos at) { return core_->poll(at); }
std::size_t Shard::take_completions(std::span<Completion> out) { return core_->take_completions(out); }

bool Shard::exists(ConnectionId id) const { return core_->find_alive(id) != nullptr; }

std::optional<ConnectionStats> Shard::stats(ConnectionId id) const {
  const Connection* connection = core_->find(id);
  if (connection == nullptr) return std::nullopt;
  return connection->stats();
}

const Address* Shard::remote(ConnectionId id) const {
  const Connection* connection = core_->find(id);
  return connection != nullptr ? &connection->remote() : nullptr;
}

const ShardStats& Shard::stats() const { return core_->stats(); }
const JobClaims* Shard::job_claims() const { return core_->job_claims(); }

}  // namespace mltcp
