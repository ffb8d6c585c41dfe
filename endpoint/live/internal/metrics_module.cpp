// The module for metrics: snapshots as families of Prometheus, made for each request, written by prometheus-cpp,
// served by cpp-httplib. Names follow prometheus.io/docs/practices/naming.
#include "mltcp/endpoint/live/internal/metrics_module.h"

#include <httplib.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/endpoint/live/snapshot_fields.h"

namespace {

using namespace mltcp::live;
using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr std::size_t kLongestLabel = 64;
using Labels = std::vector<ClientMetric::Label>;

std::string label(const std::string& text) {
  std::size_t size = std::min(text.size(), kLongestLabel);
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

/// All of one family's rows are together, whatever they are of.
class Families {
 public:
  void add(const std::string& name, MetricType type, const char* help, Labels labels, double value) {
    const auto [found, is_new] = places_.emplace(name, families_.size());
    if (is_new) {
      MetricFamily& family = families_.emplace_back();
      family.name = name;
      family.help = help;
      family.type = type == MetricType::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    }
    ClientMetric& metric = families_[found->second].metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  /// Those members of the row that its list of fields has as metrics.
  template <typename Row>
  void add_row(const std::string& family, const Row& row, const Labels& labels) {
    mltcp::for_each_field<Row>([&](const auto& entry) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(entry.about)>, Metric>)
        add("mltcp_" + family + "_" + entry.about.name, entry.about.type, entry.about.help, labels,
            static_cast<double>(row.*(entry.member)));
    });
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<MetricFamily> families_;
};

/// Connections come and go, and may be thousands: what is told of them are sums, by job.
struct Sums {
  double connections = 0;
  double cwnd_bytes = 0;
  double in_flight_bytes = 0;
  double longest_rtt_seconds = 0;
  double delivery_bytes_per_second = 0;
  double sent_bytes = 0;
  double sent_packets = 0;
  double received_packets = 0;
  double retransmitted_packets = 0;
  double lost_packets = 0;
  double marked_packets = 0;
  double shortened = 0;
};

void add_connections(Families& families, const Snapshot& snapshot) {
  std::map<std::string, Sums> all;
  for (const ConnectionView& connection : snapshot.connections) {
    Sums& sums = all[label(connection.job)];
    ++sums.connections;
    sums.cwnd_bytes += connection.cwnd_bytes;
    sums.in_flight_bytes += static_cast<double>(connection.in_flight_bytes);
    sums.longest_rtt_seconds = std::max(sums.longest_rtt_seconds, connection.rtt_seconds);
    sums.delivery_bytes_per_second += connection.delivery_bps / 8;
    sums.sent_bytes += static_cast<double>(connection.sent_bytes);
    sums.sent_packets += static_cast<double>(connection.sent_packets);
    sums.received_packets += static_cast<double>(connection.received_packets);
    sums.retransmitted_packets += static_cast<double>(connection.retransmitted_packets);
    sums.lost_packets += static_cast<double>(connection.lost_packets);
    sums.marked_packets += static_cast<double>(connection.marked_packets);
    if (connection.packet_bytes < connection.agreed_packet_bytes) ++sums.shortened;
  }
  for (const auto& [job, sums] : all) {
    const auto add = [&, name = job](const char* metric, MetricType type, const char* help, double value) {
      families.add(std::string("mltcp_connections_") + metric, type, help, {{"job", name}}, value);
    };
    add("open", MetricType::gauge, "Connections of this process.", sums.connections);
    add("congestion_window_bytes", MetricType::gauge, "Congestion windows, all connections together.", sums.cwnd_bytes);
    add("in_flight_bytes", MetricType::gauge, "Bytes on their way, all connections together.", sums.in_flight_bytes);
    add("longest_round_trip_seconds", MetricType::gauge, "The longest smoothed round-trip time.",
        sums.longest_rtt_seconds);
    add("delivery_bytes_per_second", MetricType::gauge, "Latest samples of the delivery rate, all together.",
        sums.delivery_bytes_per_second);
    add("sent_bytes_total", MetricType::counter, "Bytes of UDP payloads that were sent.", sums.sent_bytes);
    add("sent_packets_total", MetricType::counter, "Packets that were sent.", sums.sent_packets);
    add("received_packets_total", MetricType::counter, "Packets that were received.", sums.received_packets);
    add("retransmitted_packets_total", MetricType::counter, "Packets that carried data once more.",
        sums.retransmitted_packets);
    add("lost_packets_total", MetricType::counter, "Packets that were found lost.", sums.lost_packets);
    add("marked_packets_total", MetricType::counter, "Packets that arrived with a CE mark.", sums.marked_packets);
    add("shortened", MetricType::gauge, "Connections whose path carries shorter packets only than their ends do.",
        sums.shortened);
  }
}

class Collector final : public prometheus::Collectable {
 public:
  Collector(MltcpMetricsLook look, void* context) : look_(look), context_(context) {}

  [[nodiscard]] std::vector<MetricFamily> Collect() const override {
    Families families;
    const std::unique_ptr<char, decltype(&std::free)> text(look_(context_), &std::free);
    if (text != nullptr) {
      try {
        add(families, snapshot_from(text.get()));
      } catch (const mltcp::InputError&) {  // of another version: as if there were none
      }
    }
    families.add("mltcp_answers", MetricType::gauge, "1 if the process has shown its counters in time.", {},
                 text != nullptr ? 1 : 0);
    return families.take();
  }

 private:
  static void add(Families& families, const Snapshot& snapshot) {
    families.add("mltcp_process_info", MetricType::gauge, "What this process is.",
                 {{"kind", label(snapshot.kind)}, {"name", label(snapshot.name)}, {"policy", label(snapshot.policy)}},
                 1);
    families.add("mltcp_process_up_seconds", MetricType::gauge, "For how long it has been running.", {},
                 snapshot.up_seconds);
    families.add("mltcp_process_rows_left_out", MetricType::gauge,
                 "Jobs, connections, ports and claims beyond those that are shown.", {},
                 static_cast<double>(snapshot.left_out));
    for (const JobView& job : snapshot.jobs)
      families.add_row("job", job, {{"job", label(job.name)}, {"rank", std::to_string(job.rank)}});
    add_connections(families, snapshot);
    for (const PortView& port : snapshot.ports) families.add_row("port", port, {{"port", label(port.name)}});
    for (const ClaimView& claim : snapshot.claims) families.add_row("claims", claim, {{"job", label(claim.job)}});
  }

  const MltcpMetricsLook look_;
  void* const context_;
};

/// The exposer of prometheus-cpp is another library's server, whose threads have stacks of 100 kB: too few where a
/// program has much memory that is local to threads, as with DPDK.
class Server {
 public:
  Server(const std::string& host, int port, MltcpMetricsLook look, void* context) : collector_(look, context) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(0);
    server_.set_socket_options([](int file) {
      const int on = 1;
      setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port belongs to one of them
    });
    server_.set_read_timeout(kPatienceSeconds);
    server_.set_write_timeout(kPatienceSeconds);
    server_.Get("/metrics", [this](const httplib::Request& /*request*/, httplib::Response& response) {
      response.set_content(prometheus::TextSerializer().Serialize(collector_.Collect()),
                           "text/plain; version=0.0.4; charset=utf-8");
    });
    if (!server_.bind_to_port(host, port)) throw std::runtime_error("it can't be bound to");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // else nothing would stop it
  }
  ~Server() {
    server_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  static constexpr std::size_t kThreads = 2;
  static constexpr time_t kPatienceSeconds = 5;
  const Collector collector_;
  httplib::Server server_;
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
