// The client of a measurement: decides what is measured, and computes the results (see perf.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/host_datapaths.h"
#include "mltcp/lab/experiment/perf/internal/perf_end.h"
#include "mltcp/lab/experiment/perf/perf.h"

namespace mltcp::experiment {
namespace {

using perf::Json;

constexpr std::array<std::string_view, 4> kTests{"latency", "out", "in", "both"};
constexpr Bytes kUnderWay = 64'000'000;
constexpr std::uint32_t kMaxUnderWay = 4096;
/// Maximum time for the server to open its endpoint, or to report the end of a batch.
constexpr Nanos kAnswer{60'000'000'000};

template <typename Number>
void check_range(std::string_view what, Number value, Number min, Number max) {
  if (value < min || value > max) throw InputError(fmt::format("{} of {}: give {} to {}", what, value, min, max));
}

PerfLatency latency_of(std::vector<Nanos>& rounds) {
  PerfLatency latency;
  if (rounds.empty()) return latency;
  std::ranges::sort(rounds);
  // Returns a nearest-rank percentile of the latency. The argument is in thousandths: 500 is the median. The latency is
  // half of the round-trip time.
  const auto at = [&](std::size_t thousandths) {
    const std::size_t rank = (rounds.size() * thousandths + 999) / 1000;
    return rounds[std::max<std::size_t>(rank, 1) - 1] / 2;
  };
  latency.rounds = rounds.size();
  latency.min = rounds.front() / 2;
  latency.max = rounds.back() / 2;
  latency.p50 = at(500);
  latency.p99 = at(990);
  latency.p999 = at(999);
  const Nanos sum = std::accumulate(rounds.begin(), rounds.end(), Nanos());
  latency.mean = sum / (2 * static_cast<std::int64_t>(rounds.size()));
  return latency;
}

class Client {
 public:
  Client(MessageStream& stream, const PerfSettings& settings, const PerfCallbacks& callbacks)
      : stream_(stream), settings_(settings), callbacks_(callbacks) {}

  PerfResults run(const PerfPlace& place, const std::string& version) {
    PerfResults results;
    results.settings = settings_;
    results.sealed = place.key != nullptr;
    if (results.sealed) results.key_id = place.key->id();
    results.encrypted = results.sealed && place.protection == security::Protection::encrypt;
    perf::send(stream_, {{"opening", true}});
    // Opens the client's endpoint first, so that its errors are not attributed to the server.
    end_ = std::make_unique<perf::End>(place, perf::own_ip(stream_.file()), settings_.congestion_control);
    results.client = end_->description();
    Json hello{{"hello", perf::kProtocol}, {"version", version}, {"cc", settings_.congestion_control}};
    if (results.sealed && !results.encrypted) hello["authenticate"] = true;
    perf::send(stream_, hello);
    const Json answer = receive();
    results.server = perf::text_of(answer, "device");
    results.server_version = perf::text_of(answer, "version");
    const std::vector<std::byte> blob = perf::from_hex(perf::text_of(answer, "address"));
    for (std::uint32_t i = 0; i < settings_.connections; ++i) {
      perf::send(stream_, {{"connect", true}});
      end_->connect(blob);
      receive();
    }
    callbacks_.tell(fmt::format("here:  {}\nthere: {}{}", one_line(results.client), one_line(results.server),
                                place.key == nullptr
                                    ? ""
                                    : fmt::format("\n{} with key {:016x}",
                                                  results.encrypted ? "encrypted" : "authenticated", place.key->id())));
    for (const Bytes bytes : lengths_of(settings_)) {
      if (would_take(bytes) > settings_.limit / 2) {
        results.left_out.push_back(bytes);
        continue;
      }
      results.points.push_back(measure(bytes));
      callbacks_.measured(results.points.back());
    }
    end_->add_counters(results);
    perf::send(stream_, {{"bye", true}});
    return results;
  }

 private:
  Json receive(const std::function<void()>& drive = {}) {
    return perf::receive(stream_, kAnswer + settings_.limit, callbacks_.interrupted, drive);
  }

  /// Returns the expected duration of a transfer's shortest batch, at the rate of the latest transfer.
  [[nodiscard]] Nanos would_take(Bytes bytes) const {
    return Nanos::from_seconds(slowest_ * static_cast<double>(bytes) * static_cast<double>(min_messages(bytes)));
  }
  [[nodiscard]] std::uint32_t depth_of(Bytes bytes) const {
    return static_cast<std::uint32_t>(
        std::clamp<Bytes>(kUnderWay / bytes, std::min<Bytes>(2, settings_.depth), settings_.depth));
  }

  /// Returns the number of messages in the shortest batch of a transfer.
  [[nodiscard]] std::uint64_t min_messages(Bytes bytes) const {
    return std::uint64_t{settings_.connections} * depth_of(bytes);
  }

  perf::Outcome batch(PerfTest test, Bytes bytes, std::uint64_t messages) {
    const perf::Batch batch{test, bytes, messages, test == PerfTest::latency ? 1 : depth_of(bytes)};
    perf::send(stream_, perf::to_json(batch));
    end_->reserve(bytes);
    end_->prepare(batch, true);
    // Waits until the server is ready. Does not drive the endpoint meanwhile: run() would count messages that arrive
    // before it starts its clock, but not the time in which they arrive.
    receive();
    perf::Outcome outcome = end_->run(settings_.limit, settings_.every, [&] {
      if (const auto early = stream_.receive()) {
        const Json json = Json::parse(*early, nullptr, false);
        if (json.is_object() && json.contains("error")) throw RunError(one_line(perf::text_of(json, "error", 1000)));
        early_ = *early;
      }
      if (const std::string why = callbacks_.interrupted(); !why.empty()) throw RunError(why);
    });
    // The server may still complete its receives, or wait for acknowledgements from this end.
    if (early_.empty()) receive([&] { end_->drive(); });
    early_.clear();
    return outcome;
  }

  /// Runs batches with more and more messages until a batch takes at least half of PerfSettings::time.
  perf::Outcome grow(PerfTest test, Bytes bytes, std::uint64_t& messages) {
    const std::uint64_t min = test == PerfTest::latency ? 1 : min_messages(bytes);
    messages = bytes >= kUnderWay ? min : std::max<std::uint64_t>(min, test == PerfTest::latency ? 16 : 64);
    for (;;) {
      perf::Outcome outcome = batch(test, bytes, messages);
      const double taken = std::max(outcome.time.seconds(), 1e-6);
      if (test != PerfTest::latency)
        slowest_ = std::max(taken / static_cast<double>(messages) / static_cast<double>(bytes), 1e-13);
      const double wanted = settings_.time.seconds();
      if (taken * 2 >= wanted || messages >= perf::kMaxMessages / 32) return outcome;
      messages = static_cast<std::uint64_t>(static_cast<double>(messages) * std::clamp(wanted / taken, 2.0, 16.0));
    }
  }

  PerfPoint measure(Bytes bytes) {
    PerfPoint point;
    point.bytes = bytes;
    for (const PerfTest test : settings_.tests) {
      std::uint64_t messages = 0;
      perf::Outcome outcome = grow(test, bytes, messages);
      if (test == PerfTest::latency) {
        point.latency = latency_of(outcome.rounds);
        continue;
      }
      PerfTransfer transfer;
      transfer.messages = test == PerfTest::both ? 2 * messages : messages;
      transfer.bytes = transfer.messages * bytes;
      transfer.time = outcome.time;
      transfer.intervals = std::move(outcome.intervals);
      (test == PerfTest::out ? point.out : test == PerfTest::in ? point.in : point.both) = std::move(transfer);
    }
    return point;
  }

  MessageStream& stream_;
  const PerfSettings& settings_;
  const PerfCallbacks& callbacks_;
  std::unique_ptr<perf::End> end_;
  /// The server's message at the end of a batch, if it arrived before this end was done; else empty.
  std::string early_;
  double slowest_ = 0;  ///< seconds per byte in the latest transfer; 0 before the first one
};

}  // namespace

std::string to_text(PerfTest test) { return std::string(kTests.at(static_cast<std::size_t>(test))); }

PerfTest perf_test_of(const std::string& text) {
  for (std::size_t i = 0; i < kTests.size(); ++i)
    if (text == kTests.at(i)) return static_cast<PerfTest>(i);
  throw InputError(fmt::format("{} is not a test; give latency, out, in or both", in_quotes(text)));
}

std::vector<Bytes> lengths_of(const PerfSettings& settings) {
  std::vector<Bytes> lengths;
  for (Bytes bytes = settings.min_bytes; bytes < settings.max_bytes; bytes *= settings.factor) lengths.push_back(bytes);
  lengths.push_back(settings.max_bytes);
  return lengths;
}

void check(const PerfSettings& settings) {
  check_range<Bytes>("messages", settings.min_bytes, 1, perf::kMaxBytes);
  check_range<Bytes>("messages", settings.max_bytes, 1, perf::kMaxBytes);
  if (settings.min_bytes > settings.max_bytes)
    throw InputError(fmt::format("messages from {} to {}: give the shorter first", bytes_to_text(settings.min_bytes),
                                 bytes_to_text(settings.max_bytes)));
  check_range<std::uint32_t>("a factor", settings.factor, 2, 1024);
  check_range<std::uint32_t>("a number of connections", settings.connections, 1, 64);
  check_range<std::uint32_t>("a depth", settings.depth, 1, 1024);
  if (settings.connections * settings.depth > kMaxUnderWay)
    throw InputError(fmt::format("{} connections with {} outstanding messages each: give at most {} messages in total",
                                 settings.connections, settings.depth, kMaxUnderWay));
  const auto check_time = [](std::string_view what, Nanos time, Nanos min) {
    constexpr Nanos max{3'600'000'000'000};
    if (time < min || time > max)
      throw InputError(fmt::format("{} of {}: give {} to 1 h", what, to_text(time), to_text(min)));
  };
  check_time("a time", settings.time, Nanos(10'000'000));
  check_time("a limit", settings.limit, Nanos(10'000'000));
  if (settings.every > Nanos()) check_time("an interval", settings.every, Nanos(1'000'000));
  if (settings.tests.empty()) throw InputError("no test is given; give latency, out, in or both");
  cc::find_algorithm(settings.congestion_control);
}

std::string perf_address(const std::string& text) {
  if (text.starts_with("unix:")) return text;
  const std::size_t colon = text.rfind(':');
  const bool has_port = text.starts_with('[') ? colon != std::string::npos && colon > 0 && text[colon - 1] == ']'
                                              : colon != std::string::npos && text.find(':') == colon;
  if (has_port) return text;
  if (colon != std::string::npos && !text.starts_with('[')) return fmt::format("[{}]:{}", text, kPerfPort);
  return fmt::format("{}:{}", text, kPerfPort);
}

PerfResults run_perf(const std::string& address, Nanos patience, const PerfPlace& place, const PerfSettings& settings,
                     const PerfCallbacks& callbacks, const std::string& version) {
  check(settings);
  register_datapaths_once();
  check(place);
  StreamRole role = perf::kServerRole;
  // The kernel does not have the addresses of ports other than udp: and verbs:. A new user may give such an address as
  // HOST.
  if (!place.device.starts_with("udp:") && !place.device.starts_with("verbs:"))
    role.reached = " through the kernel: HOST is an address of its kernel, not of its port";
  const auto stream =
      MessageStream::connect(parse_stream_address(address), patience, callbacks.interrupted, role, place.key);
  try {
    return Client(*stream, settings, callbacks).run(place, version);
  } catch (const StreamError& error) {
    throw RunError(fmt::format("the server at {} {}", address, perf::why_gone(*stream, error)));
  } catch (const perf::Refused& error) {
    throw RunError(fmt::format("the server at {}: {}", address, error.what()));
  }
}

}  // namespace mltcp::experiment
