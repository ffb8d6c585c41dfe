#include "mltcp/lab/experiment/soak/soak.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/soak/internal/soak_network.h"

namespace mltcp::experiment {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStuckAfter{120};
constexpr int kFailed = 1;

/// Ends the process with a message if there is no heartbeat for too long, because a thread that hangs cannot report its
/// state.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }
  void begin(std::string replay) {
    const std::lock_guard lock(mutex_);
    replay_ = std::move(replay);
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    std::uint64_t before = 0;
    while (!wake_.wait_for(lock, kStuckAfter, [this] { return ends_; })) {
      const std::uint64_t beats = beats_.load(std::memory_order_relaxed);
      if (beats == before) {
        std::fputs(
            fmt::format("mltcp: a call has not returned for {} s; repeat it with: {}\n", kStuckAfter.count(), replay_)
                .c_str(),
            stderr);
        _exit(kFailed);
      }
      before = beats;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string replay_;
  bool ends_ = false;
  std::atomic<std::uint64_t> beats_{1};
  std::thread thread_;
};

std::unique_ptr<SoakNetworks> make_networks(const SoakSettings& settings) {
  if (settings.datapath == "sim") return make_sim_networks();
  if (settings.datapath == "ring") return make_ring_networks(settings.cores);
  if (settings.datapath == "udp") return make_udp_networks();
  if (settings.datapath == "ports") return make_port_networks(settings.ports);
  throw InputError(fmt::format("\"{}\" is not a datapath of soak tests; choose one of {}", settings.datapath,
                               fmt::join(soak_datapaths(), ", ")));
}

Nanos since(Clock::time_point begun) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count());
}

}  // namespace

const std::vector<std::string>& soak_datapaths() {
  static const std::vector<std::string> names{"sim", "ring", "udp", "ports"};
  return names;
}

std::string replay_command(const SoakSettings& settings, std::uint64_t round) {
  std::string where;
  for (const SoakPort& port : settings.ports) where += fmt::format(" --port {} --ip {}", port.device, port.ip);
  return fmt::format("mltcp soak --datapath {}{} --seed {} --round {}", settings.datapath, where, settings.seed, round);
}

SoakResults run_soak(const SoakSettings& settings, const SoakCallbacks& callbacks) {
  if (settings.duration.count <= 0) throw InputError("the duration is 0; give more, such as 20s");
  const std::unique_ptr<SoakNetworks> networks = make_networks(settings);
  const Clock::time_point begun = Clock::now();
  SoakResults results;
  Watchdog watchdog;
  const auto is_time = [&] {
    if (callbacks.interrupted && results.ended_by.empty()) results.ended_by = callbacks.interrupted();
    return !results.ended_by.empty() || (!settings.rounds && since(begun) >= settings.duration);
  };
  for (std::uint64_t round = settings.first_round; results.failures.empty(); ++round) {
    if (settings.rounds && results.rounds == *settings.rounds) break;
    if (results.rounds > 0 && is_time()) break;
    watchdog.begin(replay_command(settings, round));
    Random random = Random::stream(settings.seed, round);
    // Most rounds are short, since most errors are at beginnings and ends of connections. Some rounds are long.
    const double max = networks->real_time() ? 20e9 : 2e9;
    const Nanos busy(static_cast<std::int64_t>(20e6 * std::pow(max / 20e6, random.uniform() * random.uniform())));
    const std::unique_ptr<SoakNetwork> network = networks->make(random);
    Traffic traffic(
        {.seed = random.next(), .busy = busy, .real_time = networks->real_time(), .two_sides = networks->two_sides()},
        network->places());
    const auto fail = [&](std::string what) {
      if (const std::string why = network->why_silent(); !why.empty()) what += "; state: " + why;
      results.failures.push_back({round, what, traffic.state(), replay_command(settings, round)});
    };
    std::uint64_t asked = 0;
    try {
      network->run(traffic, [&] {
        watchdog.beat();
        if (++asked % 256 == 0 && is_time()) traffic.end_soon();
        return traffic.is_over();
      });
      if (!traffic.is_over()) fail("nothing is left to happen before all connections have ended");
    } catch (const Violation& violation) {
      fail(violation.what);
    } catch (const std::exception& error) {  // thrown by the running network, for example if a host is polled for ever
      fail(error.what());
    }
    ++results.rounds;
    results.traffic_time += network->now();
    results.counts.add(traffic.counts());
    results.time = since(begun);
    if (callbacks.progress) callbacks.progress(results);
  }
  results.time = since(begun);
  return results;
}

}  // namespace mltcp::experiment
