// Runs MLTCP in the comparison with ns-3 (see bench/ns3/compare and docs/explanation/ns3.md). Training jobs, or bulk
// flows as jobs that never end, run over a dumbbell of three hops, in virtual time. peer.cpp builds the same dumbbell
// in ns-3. Both programs have the same options and write JSON of the same form.
//
//   left i --access--> [1] ==bottleneck==> [2] --access--> right i        and the same in reverse
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/sim/network.h"
#include "mltcp/transport/wire.h"

namespace {

using namespace mltcp;

constexpr Nanos kBin{1'000'000};
constexpr std::size_t kMaxBins = 1 << 20;
constexpr Bytes kEndless = Bytes{1} << 50;

struct Options {
  std::string cc = "reno";
  double rate_mbps = 1000;
  double delay_us = 10;
  double access_delay_us = 5;
  Bytes buffer_bytes = 75'000;
  Bytes ecn_bytes = 0;
  std::vector<double> starts_ms{0};
  double compute_ms = 0;
  Bytes packets = 0;
  std::uint32_t iterations = 0;
  double duration_ms = 1000;
  double sample_us = 20;
  double cubic_c = cc::CubicParameters{}.c;
};

Nanos nanos(double value, double unit) { return Nanos(std::llround(value * unit)); }

/// Like sim::Dumbbell, but each host receives on its own link, as in ns-3.
class ThreeHops final : public experiment::JobNetwork {
 public:
  ThreeHops(const Options& options, std::uint32_t pairs) : network_(network_options()), usage_(kBin, kMaxBins) {
    const Rate rate(static_cast<std::uint64_t>(options.rate_mbps * 1e6));
    fabric::LinkConfig access;
    access.rate = Rate(rate.bits_per_second * 10);
    access.delay = nanos(options.access_delay_us, 1e3);
    access.buffer_bytes = 0;
    fabric::LinkConfig shared;
    shared.rate = rate;
    shared.delay = nanos(options.delay_us, 1e3);
    shared.buffer_bytes = options.buffer_bytes;
    fabric::LinkConfig reverse = shared;
    shared.ecn = {.enabled = options.ecn_bytes > 0, .kmin_bytes = options.ecn_bytes, .kmax_bytes = options.ecn_bytes};

    const sim::Network::Switch left = network_.add_switch();
    const sim::Network::Switch right = network_.add_switch();
    bottleneck_ = network_.add_link(right, shared);
    const sim::Network::LinkId back = network_.add_link(left, reverse);
    network_.meter(bottleneck_, &usage_);
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      add_host(Side::sender, pair, left, right, back, access);
      add_host(Side::receiver, pair, right, left, bottleneck_, access);
    }
  }

  PacketIo& host(const End& end) override { return at(end); }
  const Address& address(const End& end) override { return at(end).address(); }
  void attach(const End& end, Pollable& pollable) override { network_.attach(at(end), pollable); }
  void wake(const End& end) override { network_.wake(at(end)); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override {
    return {{"bottleneck", &bottleneck().config(), &bottleneck().counters(), &usage_}};
  }
  [[nodiscard]] const fabric::Link& bottleneck() const { return network_.link(bottleneck_); }
  [[nodiscard]] const fabric::UsageMeter& usage() const { return usage_; }
  [[nodiscard]] std::optional<experiment::Stalls> stalls() const override { return std::nullopt; }

  [[nodiscard]] Bytes bottleneck_queue() { return network_.link(bottleneck_).queue_bytes(network_.now()); }
  [[nodiscard]] std::uint64_t packet_hops() const { return network_.counters().packet_hops; }

 private:
  static sim::NetworkOptions network_options() {
    sim::NetworkOptions options;
    options.virtual_payload = true;
    return options;
  }
  sim::Host& at(const End& end) { return *hosts_[end.side == Side::sender ? 0 : 1][end.job]; }

  /// Adds a host at switch `here`. Hosts at switch `there` reach it through the link `shared`.
  void add_host(Side side, std::uint32_t pair, sim::Network::Switch here, sim::Network::Switch there,
                sim::Network::LinkId shared, const fabric::LinkConfig& access) {
    const std::uint32_t number = side == Side::sender ? 1 : 2;
    sim::Host& host = network_.add_host(Address::v4(fabric::host_ip(number, pair), 4793));
    network_.connect(host, here, access);
    const sim::Network::Switch end = network_.add_switch();
    network_.route(there, host, shared);
    network_.route(here, host, network_.add_link(end, access));
    network_.route_to_host(end, host);
    hosts_[number - 1].push_back(&host);
  }

  sim::Network network_;
  std::array<std::vector<sim::Host*>, 2> hosts_;
  sim::Network::LinkId bottleneck_ = 0;
  fabric::UsageMeter usage_;
};

/// Returns the payload of a full packet: its size without the headers of the packet and of the DATA frame.
Bytes payload_bytes(ThreeHops& network) {
  return network.host({}).limits().max_packet_bytes - wire::kHeaderBytes - wire::kDataFrameBytes;
}

std::vector<std::unique_ptr<experiment::JobDriver>> make_jobs(const Options& options, ThreeHops& network) {
  const auto parameters = std::make_shared<cc::Parameters>();
  parameters->edit<cc::Cubic>().c = options.cubic_c;
  parameters->validate(options.cc);
  std::vector<std::unique_ptr<experiment::JobDriver>> jobs;
  for (std::uint32_t number = 0; number < options.starts_ms.size(); ++number) {
    experiment::JobSpec settings;
    settings.job.name = std::to_string(number);
    settings.job.start = nanos(options.starts_ms[number], 1e6);
    settings.job.rate = Rate(static_cast<std::uint64_t>(options.rate_mbps * 1e7));
    if (options.compute_ms > 0) {
      workload::Phase& compute = settings.job.phases.emplace_back();
      compute.kind = workload::Phase::Kind::compute;
      compute.compute = nanos(options.compute_ms, 1e6);
    }
    workload::Phase& burst = settings.job.phases.emplace_back();
    burst.kind = workload::Phase::Kind::communicate;
    burst.bytes = options.packets == 0 ? kEndless : options.packets * payload_bytes(network);
    settings.number = number;
    settings.iterations = options.packets == 0 ? 1 : options.iterations;
    settings.connection.congestion_control = options.cc;
    settings.connection.ecn = options.ecn_bytes > 0;
    settings.connection.parameters = parameters;
    settings.connection.initial_rtt =
        std::max(Nanos(1'000'000), nanos(2 * options.delay_us + 4 * options.access_delay_us, 1e3));
    jobs.push_back(std::make_unique<experiment::JobDriver>(network, settings));
  }
  return jobs;
}

nlohmann::json run(const Options& options) {
  ThreeHops network(options, static_cast<std::uint32_t>(options.starts_ms.size()));
  const auto jobs = make_jobs(options, network);
  const auto all = [&](auto&& predicate) { return std::all_of(jobs.begin(), jobs.end(), predicate); };
  network.run(Nanos(60'000'000'000), [&] { return all([](const auto& job) { return job->connected(); }); });
  const Nanos epoch((network.now().count / kBin.count + 2) * kBin.count);
  for (const auto& job : jobs) job->start(epoch);
  network.run(epoch - Nanos(1), nullptr);

  const std::uint64_t hops_before = network.packet_hops();
  std::vector<Bytes> queue;
  std::vector<std::pair<std::int64_t, std::uint64_t>> drops;
  const fabric::LinkCounters& counters = network.bottleneck().counters();
  std::uint64_t dropped = counters.dropped_packets;
  const Nanos sample = options.sample_us > 0 ? nanos(options.sample_us, 1e3) : Nanos(50'000'000);
  const Nanos end = options.packets > 0 ? Nanos::never() : epoch + nanos(options.duration_ms, 1e6);
  const auto done = [&] { return options.packets > 0 && all([](const auto& job) { return job->done(); }); };
  const std::clock_t began = std::clock();
  for (Nanos at = epoch; at < end && !done(); at += sample) {
    network.run(at, nullptr);
    if (options.sample_us > 0) queue.push_back(network.bottleneck_queue());
    if (counters.dropped_packets > dropped) drops.emplace_back((at - epoch).count, counters.dropped_packets - dropped);
    dropped = counters.dropped_packets;
  }
  const double cpu = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;

  nlohmann::json result{{"simulator", "mltcp"},
                        {"packet_payload_bytes", payload_bytes(network)},
                        {"duration_ns", (network.now() - epoch).count},
                        {"bin_ns", kBin.count},
                        {"sample_ns", sample.count},
                        {"queue_bytes", queue},
                        {"drops", drops},
                        {"dropped_packets", counters.dropped_packets},
                        {"marked_packets", counters.marked_packets},
                        {"packet_hops", network.packet_hops() - hops_before},
                        {"cpu_s", cpu}};
  for (std::uint32_t number = 0; number < jobs.size(); ++number) {
    const experiment::JobResult job = jobs[number]->result();
    std::vector<std::int64_t> iterations;
    for (const Nanos time : job.iterations) iterations.push_back(time.count);
    const auto series = network.usage().jobs().find(number);
    std::vector<Bytes> bins;
    const auto first = static_cast<std::size_t>(epoch.count / kBin.count);
    if (series != network.usage().jobs().end() && series->second.size() > first)
      bins.assign(series->second.begin() + static_cast<std::ptrdiff_t>(first), series->second.end());
    result["flows"].push_back(
        {{"start_ns", nanos(options.starts_ms[number], 1e6).count},
         {"delivered_bytes", options.packets == 0 ? jobs[number]->rank(0).progress().sent : job.bytes},
         {"retransmitted_packets", job.retransmitted_packets},
         {"iteration_ns", iterations},
         {"bins", bins}});
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The dumbbell of the comparison with ns-3, in the simulator of MLTCP; writes JSON");
  Options options;
  app.add_option("--cc", options.cc, "congestion control");
  app.add_option("--rate-mbps", options.rate_mbps, "of the bottleneck; access links have ten times as much");
  app.add_option("--delay-us", options.delay_us, "of the bottleneck, one way");
  app.add_option("--access-delay-us", options.access_delay_us, "of each access link, one way");
  app.add_option("--buffer", options.buffer_bytes, "bytes of the bottleneck's buffer, the packet being sent included");
  app.add_option("--ecn", options.ecn_bytes, "packets that find more bytes than this are marked; 0: no ECN");
  app.add_option("--starts-ms", options.starts_ms, "start of each flow or job")->delimiter(',');
  app.add_option("--compute-ms", options.compute_ms, "before each burst of a job");
  app.add_option("--packets", options.packets, "full packets of payload in each burst of a job; 0: bulk flows");
  app.add_option("--iterations", options.iterations, "of each job");
  app.add_option("--duration-ms", options.duration_ms, "of bulk flows");
  app.add_option("--sample-us", options.sample_us, "interval of the queue's samples; 0: none");
  app.add_option("--cubic-c", options.cubic_c, "CUBIC's C, in packets / s^3");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << run(options) << '\n';
  } catch (const std::exception& error) {
    std::cerr << "ns3_ours: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
