// Writes the results of soak tests as JSON, with schema docs/schema/soak-1.schema.json.
#include <nlohmann/json.hpp>

#include "mltcp/lab/experiment/soak/soak.h"

namespace mltcp::experiment {

nlohmann::ordered_json to_json(const SoakSettings& settings, const SoakResults& results) {
  using OrderedJson = nlohmann::ordered_json;
  const TrafficCounts& counts = results.counts;
  const FaultCounts& faults = counts.faults;
  OrderedJson failures = OrderedJson::array();
  for (const SoakFailure& failure : results.failures)
    failures.push_back(
        {{"round", failure.round}, {"what", failure.what}, {"state", failure.state}, {"replay", failure.replay}});
  OrderedJson set{{"datapath", settings.datapath}, {"seed", settings.seed}, {"first_round", settings.first_round}};
  for (const SoakPort& port : settings.ports) set["ports"].push_back({{"device", port.device}, {"ip", port.ip}});
  return {{"schema", "mltcp.soak/1"},
          {"settings", std::move(set)},
          {"rounds", results.rounds},
          {"time_ns", results.time.count},
          {"traffic_time_ns", results.traffic_time.count},
          {"connections", counts.connections},
          {"refused_connections", counts.refused},
          {"messages", counts.messages},
          {"bytes_verified", counts.bytes},
          {"operations", counts.operations},
          {"restarts", counts.restarts},
          {"stand_stills", counts.stand_stills},
          {"key_epochs", faults.epochs},
          {"payloads_read_in_place", faults.kept},
          {"packets_received", faults.received},
          {"faults",
           {{"lost", faults.lost},
            {"doubled", faults.doubled},
            {"damaged", faults.damaged},
            {"marked", faults.marked},
            {"delayed", faults.delayed},
            {"forged", faults.forged},
            {"full", faults.refused}}},
          {"ended_by", results.ended_by},
          {"failures", std::move(failures)}};
}

}  // namespace mltcp::experiment
