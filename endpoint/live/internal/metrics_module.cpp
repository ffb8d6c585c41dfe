// Module that serves metrics. It converts each snapshot to metric families of Prometheus. prometheus-cpp writes them as
// text, and GNU libmicrohttpd serves the text on one thread. Names follow prometheus.io/docs/practices/naming.
//
// Any client that can reach the port is served, so all resources are bounded. A connection carries one request without
// a body, of at most 16 kB, and lasts at most 5 s. There are at most 4 connections per address and 32 in total.
// Above these limits, a new connection closes the oldest one. Snapshots are taken at most every 100 ms.
#include "mltcp/endpoint/live/internal/metrics_module.h"

#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/endpoint/live/snapshot_fields.h"

namespace {

using namespace mltcp::live;
using mltcp::monotonic_now;
using mltcp::Nanos;
using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr std::size_t kLongestLabel = 64;
using Labels = std::vector<ClientMetric::Label>;

std::string label(const std::string& text) {
  std::size_t size = std::min(text.size(), kLongestLabel);
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

/// Collects rows by metric family, whether they describe a job, a port or anything else.
class Families {
 public:
  void add(const std::string& name, const char* help, Labels labels, double value) {
    const auto [found, is_new] = places_.emplace(name, families_.size());
    if (is_new) {
      MetricFamily& family = families_.emplace_back();
      family.name = name;
      family.help = help;
      family.type = mltcp::is_counter(name) ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    }
    ClientMetric& metric = families_[found->second].metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  /// Adds those members of the row that its list of fields marks as metrics.
  template <mltcp::HasFields Row>
  void add_row(const std::string& family, const Row& row, const Labels& labels) {
    mltcp::for_each_field<Row>([&](const auto& entry) {
      const auto& member = row.*(entry.member);
      if constexpr (mltcp::HasFields<std::remove_cvref_t<decltype(member)>>)
        add_row(family, member, labels);
      else if constexpr (mltcp::kIsMetric<decltype(entry)>)
        if (entry.about.name != nullptr)
          add("mltcp_" + family + "_" + entry.about.name, entry.about.help, labels, number_of(member));
    });
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  /// Converts to the base units of Prometheus: seconds and bytes per second.
  static double number_of(Nanos time) { return time.seconds(); }
  static double number_of(mltcp::Rate rate) { return static_cast<double>(rate.bits_per_second) / 8; }
  template <typename Number>
  static double number_of(Number number) {
    return static_cast<double>(number);
  }

  std::map<std::string, std::size_t> places_;
  std::vector<MetricFamily> families_;
};

class Collector final : public prometheus::Collectable {
 public:
  Collector(MltcpMetricsLook look, void* context) : look_(look), context_(context) {}

  [[nodiscard]] std::vector<MetricFamily> Collect() const override {
    Families families;
    const std::unique_ptr<char, decltype(&std::free)> text(look_(context_), &std::free);
    if (text != nullptr) {
      try {
        add(families, snapshot_from(text.get()));
      } catch (const mltcp::InputError&) {  // a snapshot of another version is skipped
      }
    }
    families.add("mltcp_answers", "1 if the process has shown its counters in time.", {}, text != nullptr ? 1 : 0);
    return families.take();
  }

 private:
  static void add(Families& families, const Snapshot& snapshot) {
    families.add("mltcp_process_info", "Kind and version of this process.",
                 {{"kind", label(snapshot.kind)}, {"name", label(snapshot.name)}, {"policy", label(snapshot.policy)}},
                 1);
    families.add_row("process", snapshot, {});
    for (const JobView& job : snapshot.jobs)
      families.add_row("job", job, {{"job", label(job.name)}, {"rank", std::to_string(job.rank)}});
    std::map<std::string, ConnectionSums> sums;
    for (const ConnectionView& connection : snapshot.connections) {
      ConnectionSums& sum = sums[label(connection.job)];
      ++sum.open;
      add_up(sum.transport, connection.transport);
      if (connection.transport.packet_bytes < connection.transport.agreed_packet_bytes) ++sum.shortened;
    }
    for (const auto& [job, sum] : sums) families.add_row("connections", sum, {{"job", job}});
    for (const PortView& port : snapshot.ports) families.add_row("port", port, {{"port", label(port.name)}});
    for (const ClaimView& claim : snapshot.claims) families.add_row("claims", claim, {{"job", label(claim.job)}});
  }

  const MltcpMetricsLook look_;
  void* const context_;
};

/// Returns the descriptor of a listening socket. Throws std::runtime_error on failure.
int listen_at(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    throw std::runtime_error(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, &freeaddrinfo);
  const int file = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (file >= 0 && setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(file, address->ai_addr, address->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0)
    return file;
  const int error = errno;
  if (file >= 0) close(file);
  throw std::runtime_error(std::strerror(error));
}

struct ResponseDeleter {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using Response = std::unique_ptr<MHD_Response, ResponseDeleter>;

/// Returns a response after which the server closes the connection.
Response response_of(std::string_view text, const char* header = nullptr, const char* value = nullptr) {
  // The const_cast is safe, because the library copies the text and does not change it.
  Response response(
      MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
  if (response == nullptr) throw std::bad_alloc();
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONNECTION, "close");
  if (header != nullptr) MHD_add_response_header(response.get(), header, value);
  return response;
}

/// HTTP server on one thread, which drives libmicrohttpd and shuts down sockets itself. libmicrohttpd limits only the
/// time without traffic, and refuses new connections above its limits. With these limits alone, a client that sends a
/// byte now and then could stay, and keep out other clients at its address.
class Server {
 public:
  Server(const std::string& host, int port, MltcpMetricsLook look, void* context) : collector_(look, context) {
    const int file = listen_at(host, port);  // the library owns the socket from now on
    daemon_ =
        MHD_start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr, &Server::on_request, this, MHD_OPTION_LISTEN_SOCKET, file,
                         MHD_OPTION_NOTIFY_CONNECTION, &Server::on_connection, this, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         kRequestBytes, MHD_OPTION_CONNECTION_LIMIT, kMaxConnections + kGivingWay,
                         MHD_OPTION_CONNECTION_TIMEOUT, unsigned{kLimit.count / 1'000'000'000}, MHD_OPTION_END);
    if (daemon_ == nullptr) {
      close(file);
      throw std::runtime_error("libmicrohttpd cannot start");
    }
    stop_ = eventfd(0, EFD_CLOEXEC);
    if (stop_ < 0) {
      MHD_stop_daemon(daemon_);
      throw std::runtime_error(std::strerror(errno));
    }
    // Block all signals in the server's thread, because they are for the program's own threads. This includes SIGPIPE.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Server() {
    eventfd_write(stop_, 1);
    thread_.join();
    MHD_stop_daemon(daemon_);
    close(stop_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  static constexpr std::size_t kRequestBytes = 16'384;  ///< memory for a request line and its headers
  static constexpr unsigned kMaxConnections = 32;
  static constexpr unsigned kMaxOfAddress = 4;
  static constexpr unsigned kGivingWay = 32;  ///< maximum sockets that are shut down but not closed yet
  static constexpr Nanos kLimit{5'000'000'000};
  static constexpr Nanos kFresh{100'000'000};

  struct Visitor {
    int file;
    mltcp::IpBytes address;
    Nanos until;
    bool is_shut = false;
  };

  void serve() {
    const int events = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    for (;;) {
      Nanos wait = Nanos::never();
      for (Visitor& visitor : visitors_) {
        if (visitor.is_shut) continue;
        wait = visitor.until - monotonic_now();
        if (wait > Nanos()) break;  // `visitors_` is ordered by time
        shut(visitor);
      }
      MHD_UNSIGNED_LONG_LONG library_ms = 0;
      int ms = wait.is_never() ? -1 : static_cast<int>(std::max<std::int64_t>(wait.count / 1'000'000 + 1, 0));
      if (MHD_get_timeout(daemon_, &library_ms) == MHD_YES && (ms < 0 || library_ms < static_cast<unsigned>(ms)))
        ms = static_cast<int>(library_ms);
      std::array<pollfd, 2> files{pollfd{events, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
      poll(files.data(), files.size(), ms);
      if (files[1].revents != 0) return;
      MHD_run(daemon_);
    }
  }

  static void shut(Visitor& visitor) {
    visitor.is_shut = true;
    shutdown(visitor.file, SHUT_RDWR);  // the library notices the shutdown and closes the socket
  }

  /// Closes the oldest connection of the address if the address has kMaxOfAddress connections. Closes the oldest of all
  /// connections if there are kMaxConnections in total.
  void make_room(const mltcp::IpBytes& address) {
    const auto give_way = [&](unsigned max, auto&& is_one) {
      const auto is_open = [&](const Visitor& visitor) { return !visitor.is_shut && is_one(visitor); };
      if (std::count_if(visitors_.begin(), visitors_.end(), is_open) >= max)
        shut(*std::find_if(visitors_.begin(), visitors_.end(), is_open));
    };
    give_way(kMaxOfAddress, [&](const Visitor& visitor) { return visitor.address == address; });
    give_way(kMaxConnections, [](const Visitor&) { return true; });
  }

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) {
    Server& server = *static_cast<Server*>(self);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      server.visitors_.remove_if([&](const Visitor& visitor) { return &visitor == *context; });
      return;
    }
    Visitor visitor{};
    visitor.file = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    visitor.until = monotonic_now() + kLimit;
    visitor.address =
        mltcp::ip_of(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr).value();
    server.make_room(visitor.address);
    *context = &server.visitors_.emplace_back(visitor);
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char* /*version*/, const char* /*upload*/, std::size_t* /*upload_size*/,
                               void** /*context*/) {
    const auto header = [&](const char* name) {
      return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    };
    const auto answer = [&](unsigned status, const Response& response) {
      return MHD_queue_response(connection, status, response.get());
    };
    try {
      // A response that is queued before the request's body arrives stops the library from reading the body.
      if (std::string_view(method) != MHD_HTTP_METHOD_GET)
        return answer(MHD_HTTP_METHOD_NOT_ALLOWED, response_of("", MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET));
      if (header(MHD_HTTP_HEADER_CONTENT_LENGTH) != nullptr || header(MHD_HTTP_HEADER_TRANSFER_ENCODING) != nullptr)
        return answer(MHD_HTTP_CONTENT_TOO_LARGE, response_of(""));
      if (std::string_view(path) != "/metrics") return answer(MHD_HTTP_NOT_FOUND, response_of(""));
      return answer(MHD_HTTP_OK, static_cast<Server*>(self)->metrics());
    } catch (const std::exception&) {
      return MHD_NO;
    }
  }

  const Response& metrics() {
    if (metrics_ == nullptr || monotonic_now() >= fresh_until_) {
      metrics_ = response_of(prometheus::TextSerializer().Serialize(collector_.Collect()), MHD_HTTP_HEADER_CONTENT_TYPE,
                             "text/plain; version=0.0.4; charset=utf-8");
      // kFresh begins here, because taking the snapshot may last longer than kFresh
      fresh_until_ = monotonic_now() + kFresh;
    }
    return metrics_;
  }

  const Collector collector_;
  MHD_Daemon* daemon_ = nullptr;
  int stop_ = -1;
  std::list<Visitor> visitors_;  ///< in the order in which they connected
  Response metrics_;
  Nanos fresh_until_;
  std::thread thread_;
};

}  // namespace

void* mltcp_metrics_start(const char* host, int port, MltcpMetricsLook look, void* context, char* error,
                          unsigned long error_bytes) {
  try {
    return new Server(host, port, look, context);
  } catch (const std::exception& what) {
    std::snprintf(error, error_bytes, "%s", what.what());
    return nullptr;
  }
}

void mltcp_metrics_stop(void* server) { delete static_cast<Server*>(server); }
