#include "mltcp/plugins/gloo/internal/open_device.h"

#include "gloo/common/error.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/endpoint/host_addresses.h"
#include "mltcp/plugins/gloo/internal/context.h"
#include "mltcp/plugins/gloo/internal/pair.h"

namespace gloo::transport::mltcp {

void register_datapaths_once();  // cmake/datapaths.cpp.in

namespace ep = ::mltcp::endpoint;
namespace {

constexpr std::uint32_t kMaxConnections = 1024;
constexpr std::uint32_t kMaxOperations = 32'768;

/// Returns the host's address, which is given in the settings or derived from them. Throws InputError or RunError.
::mltcp::Address address_for(const attr& settings) {
  if (!settings.hostname.empty()) return ep::resolve_host(settings.hostname);
  const auto colon = settings.device.find(':');
  const std::string place = colon == std::string::npos ? std::string() : settings.device.substr(colon + 1);
  if (place.empty()) return ep::resolve_host(ep::host_name());
  try {
    ::mltcp::Address address = ::mltcp::Address::parse(place);
    address.port = 0;
    return address;
  } catch (const ::mltcp::InputError&) {
  }
  if (settings.device.starts_with("udp:") || settings.device.starts_with("af_packet:"))
    return ep::address_of_interface(place, ep::list_interfaces());
  throw ::mltcp::InputError(
      "port \"" + settings.device +
      "\" does not give this host's address; write udp:IFACE or udp:IP, or also set MLTCP_ADDRESS");
}

ep::EndpointConfig config_for(const attr& settings) {
  ep::EndpointConfig config;
  config.datapath.device = settings.device;
  config.address = address_for(settings);
  config.driving = ep::Driving::threads;
  config.idle = ::mltcp::Idle::sleep;
  const auto& algorithm = ::mltcp::cc::algorithm_from(settings.cc);
  config.connection.congestion_control = algorithm.name;
  config.connection.ecn = algorithm.capabilities.needs_ecn;
  config.peer_timeout = ::mltcp::Nanos(std::chrono::nanoseconds(settings.peer_timeout).count());
  config.spin = ::mltcp::Nanos(std::chrono::nanoseconds(settings.spin).count());
  config.max_connections = kMaxConnections;
  config.max_operations = kMaxOperations;
  config.eager_limit = kFrameBytes;
  config.unexpected_messages = 64;
  config.control_frames = 16;
  return config;
}

void check(ep::Code code, const char* what) {
  if (code != ep::Code::ok) throw IoException(std::string("MLTCP: ") + what + ": " + std::string(to_text(code)));
}

int speed_of(const std::string& device) {
  const auto colon = device.find(':');
  return colon == std::string::npos ? 0 : ep::speed_mbps(device.substr(colon + 1));
}

}  // namespace

attr with_environment(attr given, const ep::Environment& environment) {
  const auto text = [](std::string& field, const std::string& value, const char* otherwise) {
    if (field.empty()) field = value.empty() ? otherwise : value;
  };
  if (!given.iface.empty()) {
    const std::string device = "udp:" + given.iface;
    if (!given.device.empty() && given.device != "udp:" && given.device != device)
      throw ::mltcp::InputError("the device is \"" + given.device + "\" and the interface \"" + given.iface +
                                "\"; give one of the two");
    given.device = device;
  }
  text(given.device, environment.device, "udp:");
  text(given.hostname, environment.address, "");
  text(given.cc, environment.cc, "");
  text(given.job_function, environment.job_function, "");
  if (given.job == 0) given.job = environment.job;
  if (given.peer_timeout.count() == 0)
    given.peer_timeout = std::chrono::milliseconds(environment.peer_timeout.count / 1'000'000);
  if (given.spin.count() == 0) given.spin = std::chrono::microseconds(environment.spin.count / 1'000);
  return given;
}

OpenDevice::OpenDevice(const attr& settings, const std::optional<ep::SharedClockPlan>& plan)
    : speed_mbps_(speed_of(settings.device)) {
  register_datapaths_once();
  ep::EndpointConfig config = config_for(settings);
  config.event_callback = &OpenDevice::on_event;
  config.event_context = this;
  // Reads the function first, so that an invalid function throws before the endpoint opens.
  const auto augmentation = ::mltcp::cc::Augmentation::read(settings.job_function);
  {
    const std::lock_guard lock(guard_);  // events wait until endpoint_ is set
    endpoint_ = std::make_unique<ep::Endpoint>(config);
  }
  ep::JobOptions job;
  job.number = settings.job;
  job.augmentation = augmentation;
  job.learn_iterations = augmentation.iteration_aware();
  if (plan) job.plan = ep::on_clock_of(*endpoint_, *plan);
  if (job.learn_iterations) iterations_by_ = IterationsBy::traffic;
  check(endpoint_->create_job(job, job_), "the job of the device");
}

OpenDevice::~OpenDevice() { endpoint_->close(); }

std::string OpenDevice::str() const {
  return "mltcp, " + to_text(endpoint_->address()) + ", " + endpoint_->description();
}

std::shared_ptr<::gloo::transport::Context> OpenDevice::createContext(int rank, int size) {
  return std::make_shared<Context>(shared_from_this(), rank, size);
}

void OpenDevice::beginIteration(std::uint64_t bytes) {
  const std::lock_guard lock(iterations_guard_);
  if (bytes > 0) iterations_by_ = IterationsBy::program;
  check(endpoint_->begin_iteration(job_, bytes), "beginIteration");
}

void OpenDevice::endIteration() { check(endpoint_->end_iteration(job_), "endIteration"); }

void OpenDevice::beginIterationByHook(std::uint64_t expected) {
  const std::lock_guard lock(iterations_guard_);
  if (iterations_by_ == IterationsBy::program || iterations_by_ == IterationsBy::none) return;
  iterations_by_ = IterationsBy::hook;
  hook_began_ = true;
  posted_at_begin_ = posted_;
  // A full queue is ignored, as in on_send(). A missed iteration must not end the backward pass that calls this
  // function.
  const ep::Code code = endpoint_->begin_iteration(job_, hook_bytes_ > 0 ? hook_bytes_ : expected);
  if (code != ep::Code::queue_full) check(code, "beginIterationByHook");
}

void OpenDevice::endIterationByHook() {
  const std::lock_guard lock(iterations_guard_);
  if (!hook_began_ || iterations_by_ != IterationsBy::hook) return;
  hook_began_ = false;
  hook_bytes_ = posted_ - posted_at_begin_;
  check(endpoint_->end_iteration(job_), "endIterationByHook");
}

void OpenDevice::on_send(std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(iterations_guard_);
  posted_ += bytes;
  if (iterations_by_ != IterationsBy::traffic && iterations_by_ != IterationsBy::collectives) return;
  using Advice = CollectiveIterations::Advice;
  const Advice advice = collectives_.on_send(endpoint_->now().count, group, slot, buffer, bytes);
  // Errors are ignored. An endpoint without room for this command has no room for the send either, and a missed
  // iteration is harmless.
  if (advice.kind == Advice::Kind::begin) {
    iterations_by_ = IterationsBy::collectives;
    // Each rank assumes that its own longest silence separates iterations, so ranks may differ. Beginning::guessed
    // prevents a plan from using this beginning.
    (void)endpoint_->begin_iteration(job_, advice.bytes, ep::Beginning::guessed);
  } else if (advice.kind == Advice::Kind::learn && iterations_by_ == IterationsBy::collectives) {
    iterations_by_ = IterationsBy::traffic;
    (void)endpoint_->learn_iterations(job_);
  }
  if (advice.ends) (void)endpoint_->end_iteration(job_);
}

JobState OpenDevice::jobState() const {
  ep::JobReport report;
  check(endpoint_->report(job_, report), "jobState");
  const std::lock_guard lock(iterations_guard_);
  return {.iteration = report.iteration,
          .bytes_sent = report.bytes_sent,
          .bytes_per_iteration = report.bytes_per_iteration,
          .bytes_ratio = report.bytes_ratio,
          .gain = report.gain,
          .connections = report.connections,
          .iterations_by = iterations_by_,
          .bytes_posted = posted_,
          .packets_sent = report.packets_sent,
          .lost_packets = report.lost_packets,
          .retransmitted_packets = report.retransmitted_packets,
          .smoothed_rtt_ns = report.smoothed_rtt.count};
}

void OpenDevice::add_pair(Pair& pair) { pairs_[pair.id()] = &pair; }

void OpenDevice::remove_pair(Pair& pair, ep::ConnectionHandle connection) {
  const std::lock_guard lock(guard_);
  pairs_.erase(pair.id());
  if (connection != 0) connections_.erase(connection);
}

void OpenDevice::attach(ep::ConnectionHandle connection) {
  // If the connection has ended meanwhile, its operations report the end.
  (void)endpoint_->attach(connection, job_);
}

void OpenDevice::on_event(void* context, const ep::Completion& event) noexcept {
  auto& device = *static_cast<OpenDevice*>(context);
  const std::lock_guard lock(device.guard_);
  if (event.kind == ep::Completion::Kind::accepted) {
    device.accept(event.connection);
    return;
  }
  const auto found = device.connections_.find(event.connection);
  if (found == device.connections_.end()) return;
  const std::lock_guard context_lock(found->second->context().mutex());
  found->second->on_closed(event);
}

void OpenDevice::accept(ep::ConnectionHandle connection) {
  auto introduction = std::make_unique<Introduction>();
  introduction->device = this;
  introduction->connection = connection;
  ep::PostOptions options;
  options.callback = &OpenDevice::on_hello;
  options.context = introduction.get();
  options.time_limit = endpoint_->config().peer_timeout;
  ep::OperationHandle operation = 0;
  if (endpoint_->receive_tagged(connection, introduction->bytes, kHelloTag, ep::kWholeTag, options, operation) ==
      ep::Code::ok) {
    introductions_[connection] = std::move(introduction);
  } else {
    endpoint_->abort(connection);
  }
}

void OpenDevice::on_hello(void* context, const ep::Completion& completion) noexcept {
  auto& introduction = *static_cast<Introduction*>(context);
  OpenDevice& device = *introduction.device;
  const std::lock_guard lock(device.guard_);
  const ep::ConnectionHandle connection = introduction.connection;
  const auto hello =
      parse_hello(std::span(introduction.bytes).first(std::min<std::size_t>(completion.bytes, kHelloBytes)));
  device.introductions_.erase(connection);  // `introduction` is destroyed here
  const auto found = completion.code == ep::Code::ok && hello ? device.pairs_.find(hello->to) : device.pairs_.end();
  if (found != device.pairs_.end()) {
    const std::lock_guard context_lock(found->second->context().mutex());
    if (found->second->adopt(connection, *hello)) {
      device.connections_[connection] = found->second;
      return;
    }
  }
  device.endpoint_->abort(connection);
}

}  // namespace gloo::transport::mltcp
