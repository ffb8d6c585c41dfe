// Measures goodput under loss, reordering and incast, with each algorithm. Runs in virtual time: the same options give
// the same results.
//
//   loss_bench loss --rate 1 --rtt 10          goodput of one flow against random loss in both directions
//   loss_bench reordering --rate 1 --rtt 10    goodput of one flow when packets are held back, so that later ones
//                                              overtake them
//   loss_bench incast --rate 1 --rtt 0.1       2 to 64 flows that begin at the same time, into a small buffer
//   loss_bench neighbours --rate 1 --rtt 0.1   the share of each algorithm on a link with Reno or CUBIC
//
// Rates are in Gbit/s, round-trip times of the empty network in ms. Tables are Markdown. Goodput is in percent of the
// message bytes that a full link carries.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "../tests/sim/duel.h"
#include "mltcp/cc/swift.h"

namespace {

using namespace mltcp;
using sim::Duel;
using sim::DuelConfig;
using sim::DuelFlow;

const std::vector<std::string> all_algorithms{"reno", "cubic", "dctcp", "swift", "dcqcn"};
constexpr double kPayloadShare = 1424.0 / 1514;  // share of payload in a full packet on the wire
constexpr Bytes kPacketBytes = 1514;

struct Options {
  double gbps = 1;
  double rtt_ms = 10;
  double seconds = 2;
  double loss = 0;  ///< percentage of lost packets, in addition to reordering
  std::vector<std::string> algorithms = all_algorithms;
  std::uint64_t seed = 1;
};

/// Returns a link. Its buffer holds what the link sends in two round trips, but at least 250 kB. The link marks packets
/// if its queue is longer than a sixth of the bytes of one round trip (RFC 8257 requires at least a seventh).
DuelConfig link_of(const Options& options) {
  DuelConfig config;
  config.rate = Rate(static_cast<std::uint64_t>(options.gbps * 1e9));
  // A round trip crosses two hops in each direction.
  config.delay = Nanos(static_cast<std::int64_t>(options.rtt_ms * 1e6 / 4));
  const Bytes in_a_round_trip = config.rate.bytes_in(config.delay * 4);
  config.buffer = std::max<Bytes>(2 * in_a_round_trip, 250'000);
  config.ecn_threshold = std::max<Bytes>(in_a_round_trip / 6, options.gbps > 5 ? 90'000 : 30'000);
  config.message_bytes = 256 * 1024;
  config.messages = static_cast<int>(4 * in_a_round_trip / config.message_bytes) + 16;
  config.faults.loss = options.loss;
  config.seed = options.seed;
  // Swift has no slow start. This step lets it reach the link's rate within a hundred round trips.
  cc::Parameters parameters;
  parameters.edit<cc::Swift>().base_target = config.delay * 8;
  parameters.edit<cc::Swift>().additive_increase =
      std::max(1.0, static_cast<double>(in_a_round_trip) / kPacketBytes / 100);
  parameters.edit<cc::Swift>().max_window = 100'000;
  config.parameters = std::make_shared<const cc::Parameters>(parameters);
  return config;
}

struct Span {
  Nanos begin;
  Nanos end;
};
/// Returns the measured time span. It begins after 200 round trips, but not before 0.5 s, and lasts for `seconds`.
Span measured(const Options& options, const DuelConfig& config) {
  const auto whole = [&](double seconds) {
    return config.interval * static_cast<std::int64_t>(std::ceil(seconds / config.interval.seconds()));
  };
  const double begin = std::max(0.5, 200 * options.rtt_ms * 1e-3);
  return {whole(begin), whole(begin) + whole(options.seconds)};
}

double goodput(const Options& options, const DuelConfig& config, const std::string& cc) {
  Duel duel(config, {{.cc = cc}});
  const Span span = measured(options, config);
  duel.run_until(span.end);
  return 100 * duel.utilization(span.begin, span.end) / kPayloadShare;
}

std::string percent(double share) { return share == 0 ? "0" : fmt::format("{}%", share * 100); }

void print_row(const std::string& first, const std::vector<std::string>& cells) {
  fmt::print("| {} | {} |\n", first, fmt::join(cells, " | "));
  std::fflush(stdout);
}
void print_head(const std::string& first, const std::vector<std::string>& cells) {
  print_row(first, cells);
  fmt::print("|---|{}\n", fmt::join(std::vector<std::string>(cells.size(), "---:|"), ""));
}

void loss_table(const Options& options) {
  const std::vector<double> losses{0, 0.0001, 0.001, 0.01, 0.03};
  std::vector<std::string> names;
  for (const double loss : losses) names.push_back(percent(loss));
  print_head("loss", names);
  for (const std::string& cc : options.algorithms) {
    std::vector<std::string> cells;
    for (const double loss : losses) {
      DuelConfig config = link_of(options);
      config.faults.loss = loss;
      cells.push_back(fmt::format("{:.1f}", goodput(options, config, cc)));
    }
    print_row(cc, cells);
  }
}

void reordering_table(const Options& options) {
  const std::vector<double> shares{0.01, 0.05, 0.2, 0.5};
  const std::vector<std::pair<std::string, Nanos>> delays{
      {"0.1 ms", Nanos(100'000)}, {"1 ms", Nanos(1'000'000)}, {"5 ms", Nanos(5'000'000)}};
  std::vector<std::string> names;
  for (const auto& [name, delay] : delays)
    for (const double share : shares) names.push_back(percent(share) + " by " + name);
  print_head("held back", names);
  for (const std::string& cc : options.algorithms) {
    std::vector<std::string> cells;
    for (const auto& [name, delay] : delays) {
      for (const double share : shares) {
        DuelConfig config = link_of(options);
        config.faults.reordering = share;
        config.faults.reorder_delay = delay;
        cells.push_back(fmt::format("{:.1f}", goodput(options, config, cc)));
      }
    }
    print_row(cc, cells);
  }
}

/// Prints the table for incast. All flows begin at the same time, with enough data for one second of the link. The
/// buffer has 100 kB, with marks above 30 kB or without marks.
void incast_table(const Options& options) {
  const std::vector<std::size_t> counts{2, 8, 16, 32, 64};
  std::vector<std::string> names;
  for (const std::size_t count : counts) names.push_back(fmt::format("{} flows", count));
  for (const bool marks : {true, false}) {
    fmt::print(
        "{}100 kB of buffer, {}; in each cell: goodput until the last has ended, packets sent again (percent), "
        "bytes of the slowest flow, divided by the mean, after half of the time\n\n",
        marks ? "" : "\n", marks ? "marked above 30 kB" : "without marks");
    print_head("algorithm", names);
    for (const std::string& cc : options.algorithms) {
      std::vector<std::string> cells;
      for (const std::size_t count : counts) {
        DuelConfig config = link_of(options);
        config.buffer = 100'000;
        config.ecn_threshold = marks ? 30'000 : 0;
        config.ecn_capable = true;
        const Bytes each = config.rate.bytes_in(Nanos(1'000'000'000)) / count;
        Duel duel(config, std::vector<DuelFlow>(count, DuelFlow{.cc = cc, .bytes = each}));
        const auto done = [&] {
          for (std::size_t i = 0; i < count; ++i)
            if (duel.finished(i).is_never()) return false;
          return true;
        };
        Nanos now;
        while (!done() && now < Nanos(60'000'000'000)) duel.run_until(now += config.interval * 10);
        Nanos last;
        std::uint64_t again = 0;
        std::uint64_t sent = 0;
        Bytes min = ~Bytes{0};
        Bytes all = 0;
        for (std::size_t i = 0; i < count; ++i) {
          last = std::max(last, duel.finished(i).is_never() ? now : duel.finished(i));
          again += duel.stats(i).retransmitted_packets;
          sent += duel.stats(i).packets_sent;
          const Bytes half = duel.delivered(i, Nanos(0), Nanos(500'000'000));
          min = std::min(min, half);
          all += half;
        }
        cells.push_back(fmt::format("{:.1f} {:.2f} {:.2f}", 100 / kPayloadShare / last.seconds(),
                                    100.0 * static_cast<double>(again) / static_cast<double>(sent),
                                    static_cast<double>(min * count) / static_cast<double>(all)));
      }
      print_row(cc, cells);
    }
  }
}

/// Prints the share of a flow that competes with one flow of Reno or CUBIC. The link has the buffer of link_of(), or a
/// small buffer for the bytes of a tenth of a round trip.
void neighbours_table(const Options& options) {
  struct Kind {
    std::string name;
    double buffer;  ///< as a multiple of the buffer of link_of()
    double threshold;
  };
  const std::vector<Kind> kinds{{"marks", 1, 1}, {"no marks", 1, 0}, {"no marks, small buffer", 0.05, 0}};
  std::vector<std::string> names;
  for (const Kind& kind : kinds)
    for (const char* other : {"reno", "cubic"}) names.push_back(fmt::format("{}: beside {}", kind.name, other));
  print_head("share", names);
  for (const std::string& cc : options.algorithms) {
    std::vector<std::string> cells;
    for (const Kind& kind : kinds) {
      for (const char* other : {"reno", "cubic"}) {
        DuelConfig config = link_of(options);
        config.buffer = std::max<Bytes>(static_cast<Bytes>(static_cast<double>(config.buffer) * kind.buffer), 15'140);
        config.ecn_threshold = kind.threshold > 0 ? config.ecn_threshold : 0;
        config.ecn_capable = true;
        Duel duel(config, {{.cc = cc}, {.cc = other}});
        const Span span = measured(options, config);
        duel.run_until(span.end);
        cells.push_back(fmt::format("{:.2f} of {:.1f}, {:.2f}% lost", duel.share(0, span.begin, span.end),
                                    100 * duel.utilization(span.begin, span.end) / kPayloadShare,
                                    100.0 * static_cast<double>(duel.bottleneck().dropped_packets) /
                                        static_cast<double>(duel.bottleneck().offered_packets)));
      }
    }
    print_row(cc, cells);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What loss, reordering and incast leave of a link, in virtual time");
  const auto add = [&](const char* name, const char* help, void (*run)(const Options&)) {
    CLI::App* const command = app.add_subcommand(name, help);
    command->fallthrough();
    command->callback([&options, run] { run(options); });
  };
  app.add_option("--rate", options.gbps, "of the link, Gbit/s")->check(CLI::Range(0.01, 400.0));
  app.add_option("--rtt", options.rtt_ms, "round trip of the empty network, ms")->check(CLI::Range(0.004, 1000.0));
  app.add_option("--seconds", options.seconds, "of virtual time that are measured")->check(CLI::Range(0.01, 1000.0));
  app.add_option("--loss", options.loss, "at random, beside what the table varies")->check(CLI::Range(0.0, 1.0));
  app.add_option("--cc", options.algorithms, "algorithms")->delimiter(',');
  app.add_option("--seed", options.seed, "of the link's random numbers");
  app.require_subcommand(1);
  add("loss", "goodput against random loss", loss_table);
  add("reordering", "goodput against packets held back", reordering_table);
  add("incast", "many flows that begin at once", incast_table);
  add("neighbours", "shares beside Reno and CUBIC", neighbours_table);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "loss_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
