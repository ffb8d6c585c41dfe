// See perf_end.h.
#include "mltcp/lab/experiment/perf/internal/perf_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::experiment::perf {
namespace {

using endpoint::Code;
using endpoint::Completion;

constexpr Nanos kLook{100'000'000};
constexpr std::uint32_t kMaxConnections = 64;
constexpr std::size_t kMaxRounds = 1 << 20;
constexpr std::size_t kMaxIntervals = 10'000;
constexpr const char* kSeeUdp =
    "check that its process runs, and that firewalls and links let UDP pass between the two hosts";

/// Returns whether `device` is a port with an IP address that the kernel does not have.
bool has_own_address(const std::string& device) {
  const auto& kinds = host_datapaths();
  return std::ranges::any_of(kinds, [&](const auto& kind) { return kind.takes(device); }) &&
         !device.starts_with("udp:") && device != "verbs" && !device.starts_with("verbs:");
}

endpoint::EndpointConfig config_of(const PerfPlace& place, const std::string& fallback_ip,
                                   const std::string& congestion_control) {
  endpoint::EndpointConfig config;
  config.datapath.device = place.device;
  config.datapath.mtu = place.mtu;
  config.datapath.cores = place.cores;
  config.datapath.memory_mb = place.memory_mb;
  const std::string& ip = place.ip.empty() ? fallback_ip : place.ip;
  if (ip.find('/') != std::string::npos || has_own_address(place.device)) {
    const AddressPrefix prefix = AddressPrefix::parse(ip);
    config.address = prefix.address;
    config.prefix_bits = prefix.bits;
  } else {
    config.address = Address::parse(ip);
  }
  config.address.port = place.udp_port;
  if (!place.gateway.empty()) config.gateway = Address::parse(place.gateway);
  config.driving = endpoint::Driving::caller;
  config.idle = place.idle;
  config.max_connections = kMaxConnections;
  config.max_operations = 1U << 14;
  config.connection.max_sends = config.connection.max_receives = 2048;
  config.connection.congestion_control = congestion_control;
  config.connection.ecn = cc::find_algorithm(congestion_control).capabilities.needs_ecn;
  if (place.key != nullptr) config.connection.keys = {security::packet_key(*place.key, place.protection)};
  return config;
}

void must(const char* what, Code code) {
  if (code != Code::ok) throw RunError(fmt::format("{}: {}", what, endpoint::to_text(code)));
}

}  // namespace
}  // namespace mltcp::experiment::perf

namespace mltcp::experiment {
namespace {

struct Trial {
  HostDatapathConfig datapath;
  HostPlace host;
};

/// Checks the settings of `place` that can be checked before the other process connects. Returns the configuration to
/// try out.
Trial trial_of(const PerfPlace& place) {
  if (place.ip.empty() && perf::has_own_address(place.device))
    throw InputError(fmt::format("port {} does not use an address of the kernel; give it one, such as --ip 10.0.0.1/24",
                                 in_quotes(place.device)));
  const endpoint::EndpointConfig config = perf::config_of(place, "0.0.0.0", "reno");
  Trial trial{config.datapath, {config.address, config.prefix_bits, config.gateway}};
  trial.datapath.sleeps = place.idle == Idle::sleep;
  Address& address = trial.host.address;
  if (place.ip.empty()) {
    // The device uses an IP address of the kernel. The interface with this address, and thus the MTU, is not known yet.
    trial.datapath.mtu = 0;
    address.port = 0;
  }
  if (address.port != 0) {
    check_host_datapath(trial.datapath, trial.host);
    return trial;
  }
  // Tries several UDP ports, since some may be in use.
  constexpr std::uint16_t first = 49152;
  constexpr std::uint16_t step = 1009;
  constexpr int tries = 8;
  for (int i = 0;; ++i) {
    address.port = static_cast<std::uint16_t>(first + i * step);
    try {
      check_host_datapath(trial.datapath, trial.host);
      return trial;
    } catch (const std::exception&) {
      if (i + 1 == tries) throw;
    }
  }
}

}  // namespace

void check(const PerfPlace& place) { trial_of(place); }

void try_out(const PerfPlace& place) {
  const Trial trial = trial_of(place);
  open_host_datapath(trial.datapath)->take_place(trial.host);
}

}  // namespace mltcp::experiment

namespace mltcp::experiment::perf {

End::End(const PerfPlace& place, const std::string& fallback_ip, const std::string& congestion_control)
    : congestion_control_(congestion_control),
      endpoint_(config_of(place, fallback_ip, congestion_control)),
      queue_(endpoint_.make_queue(1U << 14)) {}

void End::connect(std::span<const std::byte> blob) {
  endpoint::ConnectionHandle connection = 0;
  endpoint::OperationHandle operation = 0;
  must("connecting", endpoint_.connect(blob, {.kind = endpoint::ConnectionKind::ordered}, connection, &operation));
  Completion end;
  must("connecting", endpoint_.wait(operation, end, Nanos(30'000'000'000)));
  if (end.code != Code::ok) throw RunError(why(end));
  flows_.push_back({this, connection});
}

void End::accept(Nanos limit, const std::function<void()>& look) {
  const Nanos end = monotonic_now() + limit;
  for (;;) {
    Completion event;
    std::size_t count = 0;
    const Code code = endpoint_.events().wait({&event, 1}, count, kLook);
    if (code == Code::ok && event.kind == Completion::Kind::accepted) {
      flows_.push_back({this, event.connection});
      return;
    }
    if (code != Code::ok && code != Code::timed_out) must("waiting for the client's endpoint", code);
    if (monotonic_now() >= end) throw RunError(silent("the client's endpoint does not connect", kSeeUdp));
    look();
  }
}

void End::reserve(Bytes bytes) {
  if (out_.size() >= bytes) return;
  // All buffers contain zeros, since the contents of messages do not matter.
  out_.resize(bytes);
  in_.resize(bytes);
}

void End::prepare(const Batch& batch, bool is_client) {
  batch_ = batch;
  is_client_ = is_client;
  outcome_ = {};
  const bool ping = batch.test == PerfTest::latency;
  const bool sends = ping || batch.test == PerfTest::both || (batch.test == PerfTest::out) == is_client;
  const bool receives = ping || batch.test == PerfTest::both || (batch.test == PerfTest::out) != is_client;
  const std::size_t used = ping ? 1 : flows_.size();
  sending_ = sends ? batch.messages : 0;
  receiving_ = receives ? batch.messages : 0;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    const std::uint64_t share = i < used ? batch.messages / used + (i < batch.messages % used ? 1 : 0) : 0;
    flow.to_send = sends ? share : 0;
    flow.to_receive = receives ? share : 0;
    for (std::uint32_t posted = 0; posted < batch.depth && flow.to_receive > 0; ++posted) post_receive(flow);
  }
  if (ping && is_client) outcome_.rounds.reserve(std::min<std::size_t>(batch.messages, kMaxRounds));
}

Outcome End::run(Nanos limit, Nanos every, const std::function<void()>& look) {
  begun_ = monotonic_now();
  every_ = every;
  interval_ = {};
  round_begun_ = begun_;
  const bool ping = batch_.test == PerfTest::latency;
  for (Flow& flow : flows_)
    for (std::uint32_t posted = 0; posted < (ping ? 1 : batch_.depth) && flow.to_send > 0 && (!ping || is_client_);
         ++posted)
      post_send(flow);
  std::array<Completion, 64> ends;
  Nanos looked = begun_;
  while (!is_over()) {
    std::size_t count = 0;
    const Code code = queue_->wait(ends, count, kLook);
    if (code != Code::ok && code != Code::timed_out) must("waiting", code);
    for (std::size_t i = 0; i < count; ++i) on_end(ends[i]);
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    const Nanos now = monotonic_now();
    if (every_ > Nanos()) on_interval(now, false);
    if (now - looked < kLook) continue;
    looked = now;
    if (now - begun_ > limit)
      throw RunError(
          silent(fmt::format("{} of {} did not arrive within {}", batch_.messages == 1 ? "a message" : "messages",
                             bytes_to_text(batch_.bytes), to_text(limit)),
                 "measure shorter messages (--max), or give more time (--limit)"));
    look();
  }
  const Nanos now = monotonic_now();
  if (every_ > Nanos()) on_interval(now, true);
  outcome_.time = now - begun_;
  return std::move(outcome_);
}

void End::add_counters(PerfResults& results) {
  for (const Flow& flow : flows_) {
    endpoint::ConnectionReport report;
    if (endpoint_.report(flow.connection, report) != Code::ok) continue;
    results.packets_sent += report.transport.packets_sent;
    results.retransmitted_packets += report.transport.retransmitted_packets;
    if (results.packet_bytes != 0 && results.packet_bytes <= report.transport.packet_bytes) continue;
    results.packet_bytes = report.transport.packet_bytes;
    results.agreed_packet_bytes = report.transport.agreed_packet_bytes;
  }
  endpoint::EndpointReport report;
  if (endpoint_.report(report) == Code::ok) results.packets = report.packets;
}

void End::post_send(Flow& flow) {
  --flow.to_send;
  endpoint::OperationHandle operation = 0;
  const endpoint::PostOptions options = post_options(flow, flow.to_send);
  must("sending", endpoint_.send(flow.connection, std::span(out_).first(batch_.bytes), 0, options, operation));
}

void End::post_receive(Flow& flow) {
  --flow.to_receive;
  endpoint::OperationHandle operation = 0;
  const endpoint::PostOptions options = post_options(flow, flow.to_receive);
  must("receiving", endpoint_.receive(flow.connection, std::span(in_).first(batch_.bytes), 0, options, operation));
}

// In the latency test, a callback posts each answer, so that the answer carries the acknowledgement of the message
// before it. If run() posted the answer, the acknowledgement would already have left. The last completions of a batch
// go to the queue, because run() waits on the queue.
endpoint::PostOptions End::post_options(Flow& flow, std::uint64_t left) {
  if (batch_.test == PerfTest::latency && left > 0) return {.callback = &on_answer, .context = &flow};
  return {.queue = queue_.get(), .context = &flow};
}

void End::on_answer(void* flow, const Completion& end) noexcept {
  End& self = *static_cast<Flow*>(flow)->end;
  try {
    self.on_end(end);
  } catch (...) {
    if (self.failure_ == nullptr) self.failure_ = std::current_exception();
  }
}

void End::on_end(const Completion& end) {
  if (end.code != Code::ok) throw RunError(why(end));
  Flow& flow = *static_cast<Flow*>(end.context);
  const bool ping = batch_.test == PerfTest::latency;
  interval_.bytes += end.bytes;
  if (end.kind == Completion::Kind::sent) {
    --sending_;
    if (!ping && flow.to_send > 0) post_send(flow);
    return;
  }
  --receiving_;
  if (flow.to_receive > 0) post_receive(flow);
  if (!ping) return;
  if (is_client_) {
    const Nanos now = monotonic_now();
    if (outcome_.rounds.size() < kMaxRounds) outcome_.rounds.push_back(now - round_begun_);
    round_begun_ = now;
  }
  if (flow.to_send > 0) post_send(flow);
}

std::string End::why(const Completion& end) const {
  if (end.code != Code::unreachable) return endpoint::to_text(end);
  return silent(fmt::format("nothing was received from the other end, {}, for {}", to_text(end.peer),
                            to_text(endpoint_.config().peer_timeout)),
                kSeeUdp, &end.peer);
}

std::string End::silent(const std::string& what, const std::string& cure, const Address* peer) const {
  const std::string down = peer == nullptr ? endpoint_.why_link_is_down() : endpoint_.why_silent(*peer);
  return down.empty() ? fmt::format("{}; {}", what, cure) : fmt::format("{}: {}", what, down);
}

void End::on_interval(Nanos now, bool is_last) {
  const Nanos passed = now - begun_;
  if (passed - interval_.begun < every_ && !is_last) return;
  if (outcome_.intervals.size() == kMaxIntervals) return;
  interval_.ended = passed;
  if (interval_.ended > interval_.begun) outcome_.intervals.push_back(interval_);
  interval_ = {passed, passed, 0};
}

}  // namespace mltcp::experiment::perf
