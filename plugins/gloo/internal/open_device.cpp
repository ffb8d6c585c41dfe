#include "mltcp/plugins/gloo/internal/open_device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <set>

#include "gloo/common/error.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/plugins/gloo/internal/context.h"
#include "mltcp/plugins/gloo/internal/pair.h"

namespace gloo::transport::mltcp {

void register_datapaths_once();  // cmake/datapaths.cpp.in

namespace ep = ::mltcp::endpoint;
namespace {

constexpr std::uint32_t kMostConnections = 1024;
constexpr std::uint32_t kMostOperations = 32'768;

/// The first address that `name` stands for; throws InvalidOperationException.
::mltcp::Address resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(name.c_str(), nullptr, &hints, &found); code != 0)
    throw InvalidOperationException(
        "host \"" + name + "\": " + gai_strerror(code) +
        "; give this host's IP address (MLTCP_ADDRESS), or its interface (MLTCP_DEVICE=udp:IFACE)");
  std::array<char, 64> text{};
  getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return ::mltcp::Address::parse(text.data());
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// The first address of interface `name`, of IPv4 if it has one; throws InvalidOperationException.
::mltcp::Address address_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) throw IoException("MLTCP: this machine doesn't tell its interfaces; give MLTCP_ADDRESS");
  std::string found;
  std::set<std::string> names;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    names.insert(each->ifa_name);
    if (each->ifa_addr == nullptr || name != each->ifa_name) continue;
    const int family = each->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || (!found.empty() && family == AF_INET6)) continue;
    std::array<char, 64> text{};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(each->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::strchr(text.data(), '%') != nullptr) continue;  // of the link alone
    if (found.empty() || found.find(':') != std::string::npos) found = text.data();
  }
  freeifaddrs(all);
  if (!found.empty()) return ::mltcp::Address::parse(found);
  if (names.contains(name))
    throw InvalidOperationException("MLTCP: interface " + name +
                                    " has no IP address; give it one: ip addr add ADDRESS/24 dev " + name);
  std::string list;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  throw InvalidOperationException("MLTCP: this machine has no interface " + name + ", but " + list +
                                  "; name one of these (MLTCP_DEVICE=udp:IFACE)");
}

/// The host's address as the settings say or imply it.
::mltcp::Address address_for(const attr& settings) {
  if (!settings.hostname.empty()) return resolve(settings.hostname);
  const auto colon = settings.device.find(':');
  const std::string place = colon == std::string::npos ? std::string() : settings.device.substr(colon + 1);
  if (place.empty()) return resolve(host_name());
  std::array<std::byte, sizeof(in6_addr)> binary{};
  if (inet_pton(AF_INET, place.c_str(), binary.data()) == 1 || inet_pton(AF_INET6, place.c_str(), binary.data()) == 1)
    return ::mltcp::Address::parse(place);
  if (settings.device.starts_with("udp:") || settings.device.starts_with("af_packet:"))
    return address_of_interface(place);
  throw InvalidOperationException("MLTCP: port " + settings.device +
                                  " doesn't say which address this host has; give it (MLTCP_ADDRESS)");
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
  config.max_connections = kMostConnections;
  config.max_operations = kMostOperations;
  config.eager_limit = kFrameBytes;
  config.unexpected_messages = 64;
  config.control_frames = 16;
  return config;
}

void check(ep::Code code, const char* what) {
  if (code != ep::Code::ok) throw IoException(std::string("MLTCP: ") + what + ": " + std::string(to_text(code)));
}

std::uint64_t number_from(const char* text, const char* name, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  bool good = *text != '\0';
  for (const char* digit = text; *digit != '\0' && good; ++digit) {
    good = *digit >= '0' && *digit <= '9' && value <= most;
    if (good) value = value * 10 + static_cast<std::uint64_t>(*digit - '0');
  }
  if (good && value >= least && value <= most) return value;
  throw InvalidOperationException("MLTCP: " + std::string(name) + "=" + text + " is no number from " +
                                  std::to_string(least) + " to " + std::to_string(most) +
                                  "; give one, or leave it out");
}

int speed_of(const std::string& device) {
  const auto colon = device.find(':');
  if (colon == std::string::npos) return 0;
  std::ifstream file("/sys/class/net/" + device.substr(colon + 1) + "/speed");
  int mbps = 0;
  return file >> mbps && mbps > 0 ? mbps : 0;
}

}  // namespace

attr with_environment(attr given, const char* (*get)(const char* name)) {
  const auto text = [&](std::string& field, const char* name, const char* otherwise) {
    if (!field.empty()) return;
    const char* const value = get(name);
    field = value != nullptr && *value != '\0' ? value : otherwise;
  };
  if (!given.iface.empty()) {
    const std::string device = "udp:" + given.iface;
    if (!given.device.empty() && given.device != "udp:" && given.device != device)
      throw InvalidOperationException("MLTCP: the device is \"" + given.device + "\" and the interface \"" +
                                      given.iface + "\"; give one of the two");
    given.device = device;
  }
  text(given.device, "MLTCP_DEVICE", "udp:");
  text(given.hostname, "MLTCP_ADDRESS", "");
  text(given.cc, "MLTCP_CC", "reno");
  text(given.job_function, "MLTCP_JOB_FUNCTION", "F1");
  if (const char* value = get("MLTCP_JOB"); given.job == 0 && value != nullptr)
    given.job = static_cast<std::uint32_t>(number_from(value, "MLTCP_JOB", 0, 0xFFFFFFFFU));
  if (given.peer_timeout.count() == 0) {
    const char* const value = get("MLTCP_PEER_TIMEOUT_MS");
    given.peer_timeout = std::chrono::milliseconds(
        value != nullptr ? number_from(value, "MLTCP_PEER_TIMEOUT_MS", 10, 3'600'000) : 10'000);
  }
  if (const char* value = get("MLTCP_SPIN_US"); given.spin.count() == 0 && value != nullptr)
    given.spin = std::chrono::microseconds(number_from(value, "MLTCP_SPIN_US", 0, 1'000'000));
  return given;
}

OpenDevice::OpenDevice(const attr& settings) : speed_mbps_(speed_of(settings.device)) {
  register_datapaths_once();
  ep::EndpointConfig config = config_for(settings);
  config.event_callback = &OpenDevice::on_event;
  config.event_context = this;
  // Before there is an endpoint, so that a wrong function opens nothing.
  const auto augmentation = ::mltcp::cc::Augmentation::read(settings.job_function);
  {
    const std::lock_guard lock(guard_);  // events wait until the endpoint is here
    endpoint_ = std::make_unique<ep::Endpoint>(config);
  }
  ep::JobOptions job;
  job.number = settings.job;
  job.augmentation = augmentation;
  job.learn_iterations = augmentation.iteration_aware();
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
  check(endpoint_->begin_iteration(job_, bytes), "beginIteration");
}

void OpenDevice::endIteration() { check(endpoint_->end_iteration(job_), "endIteration"); }

JobState OpenDevice::jobState() const {
  ep::JobReport report;
  check(endpoint_->report(job_, report), "jobState");
  return {report.iteration,   report.bytes_sent, report.bytes_per_iteration,
          report.bytes_ratio, report.gain,       report.connections};
}

void OpenDevice::add_pair(Pair& pair) { pairs_[pair.id()] = &pair; }

void OpenDevice::remove_pair(Pair& pair, ep::ConnectionHandle connection) {
  const std::lock_guard lock(guard_);
  pairs_.erase(pair.id());
  if (connection != 0) connections_.erase(connection);
}

void OpenDevice::attach(ep::ConnectionHandle connection) {
  // Of a connection that has ended meanwhile its operations tell.
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
  auto stranger = std::make_unique<Stranger>();
  stranger->device = this;
  stranger->connection = connection;
  ep::PostOptions options;
  options.callback = &OpenDevice::on_hello;
  options.context = stranger.get();
  options.time_limit = endpoint_->config().peer_timeout;
  ep::OperationHandle operation = 0;
  if (endpoint_->receive_tagged(connection, stranger->bytes, kHelloTag, ep::kWholeTag, options, operation) ==
      ep::Code::ok) {
    strangers_[connection] = std::move(stranger);
  } else {
    endpoint_->abort(connection);
  }
}

void OpenDevice::on_hello(void* context, const ep::Completion& completion) noexcept {
  auto& stranger = *static_cast<Stranger*>(context);
  OpenDevice& device = *stranger.device;
  const std::lock_guard lock(device.guard_);
  const ep::ConnectionHandle connection = stranger.connection;
  const auto hello = parse_hello(std::span(stranger.bytes).first(std::min<std::size_t>(completion.bytes, kHelloBytes)));
  device.strangers_.erase(connection);  // the stranger is gone
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
