// Writes the results of mltcp perf as JSON, with schema docs/schema/perf-1.schema.json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mltcp/lab/experiment/perf/perf.h"

namespace mltcp::experiment {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson to_json(const PerfLatency& latency) {
  return {{"rounds", latency.rounds},    {"min_ns", latency.min.count}, {"mean_ns", latency.mean.count},
          {"p50_ns", latency.p50.count}, {"p99_ns", latency.p99.count}, {"p999_ns", latency.p999.count},
          {"max_ns", latency.max.count}};
}

OrderedJson to_json(const PerfTransfer& transfer) {
  OrderedJson json{{"messages", transfer.messages},
                   {"bytes", transfer.bytes},
                   {"time_ns", transfer.time.count},
                   {"rate_bps", static_cast<std::uint64_t>(transfer.bits_per_second())},
                   {"messages_per_s", transfer.messages_per_second()}};
  if (transfer.intervals.empty()) return json;
  OrderedJson intervals = OrderedJson::array();
  for (const PerfInterval& one : transfer.intervals)
    intervals.push_back({{"begun_ns", one.begun.count}, {"ended_ns", one.ended.count}, {"bytes", one.bytes}});
  json["intervals"] = std::move(intervals);
  return json;
}

}  // namespace

OrderedJson to_json(const PerfResults& results) {
  const PerfSettings& settings = results.settings;
  OrderedJson tests = OrderedJson::array();
  for (const PerfTest test : settings.tests) tests.push_back(to_text(test));
  OrderedJson points = OrderedJson::array();
  for (const PerfPoint& point : results.points) {
    OrderedJson json{{"message_bytes", point.bytes}};
    if (point.latency) json["latency"] = to_json(*point.latency);
    if (point.out) json["out"] = to_json(*point.out);
    if (point.in) json["in"] = to_json(*point.in);
    if (point.both) json["both"] = to_json(*point.both);
    points.push_back(std::move(json));
  }
  OrderedJson json{{"schema", "mltcp.perf/1"},
                   {"settings",
                    {{"tests", std::move(tests)},
                     {"time_ns", settings.time.count},
                     {"limit_ns", settings.limit.count},
                     {"connections", settings.connections},
                     {"depth", settings.depth},
                     {"cc", settings.congestion_control}}},
                   {"client", {{"device", results.client}}},
                   {"server", {{"device", results.server}, {"version", results.server_version}}},
                   {"points", std::move(points)},
                   {"packets_sent", results.packets_sent},
                   {"retransmitted_packets", results.retransmitted_packets},
                   {"packet_bytes", results.packet_bytes},
                   {"agreed_packet_bytes", results.agreed_packet_bytes},
                   {"black_holes", results.packets.black_holes},
                   {"size_probes_sent", results.packets.size_probes_sent},
                   {"size_probes_lost", results.packets.size_probes_lost}};
  if (results.sealed) {
    json["sealed"] = true;
    json["key"] = fmt::format("{:016x}", results.key_id);
  }
  if (results.sealed && !results.encrypted) json["encrypted"] = false;
  if (!results.left_out.empty()) json["left_out_bytes"] = results.left_out;
  return json;
}

}  // namespace mltcp::experiment
