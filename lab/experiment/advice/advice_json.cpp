// Converts advice to JSON, "mltcp.advice/1" (see advice.h).
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/advice/advice.h"

namespace mltcp::experiment {

using nlohmann::ordered_json;

std::string to_json(const Advice& advice) {
  ordered_json jobs = ordered_json::array();
  for (const Advice::AdvisedJob& job : advice.jobs) {
    ordered_json entry{{"name", job.name}, {"isolated_ns", job.isolated.count}, {"busy", job.busy}};
    if (job.period)
      entry["period"] = {{"length_ns", job.period->length.count},
                         {"found", job.period->found},
                         {"confidence", job.period->confidence}};
    jobs.push_back(std::move(entry));
  }
  ordered_json policies = ordered_json::array();
  for (const Advice::Policy& policy : advice.policies) {
    ordered_json predictions = ordered_json::array();
    for (std::size_t i = 0; i < policy.jobs.size(); ++i)
      predictions.push_back({{"name", advice.jobs[i].name},
                             {"slowdown", policy.jobs[i].mean},
                             {"second_half_slowdown", policy.jobs[i].later},
                             {"best_slowdown", policy.jobs[i].best},
                             {"worst_slowdown", policy.jobs[i].worst}});
    policies.push_back({{"policy", policy.name},
                        {"datapath", policy.packets ? "sim" : "flow"},
                        {"slowdown", policy.mean()},
                        {"jobs", std::move(predictions)}});
  }
  ordered_json json{{"schema", kAdviceSchema},
                    {"experiment", advice.experiment},
                    {"cc", advice.cc},
                    {"starts", advice.starts},
                    {"iterations", advice.iterations},
                    {"score", advice.score},
                    {"upper_bound", advice.upper_bound},
                    {"optimal", advice.proven},
                    {"recommended", advice.recommended.empty() ? ordered_json() : ordered_json(advice.recommended)},
                    {"sentence", advice.sentence},
                    {"jobs", std::move(jobs)},
                    {"policies", std::move(policies)}};
  if (!advice.pairs.empty()) {
    ordered_json& pairs = json["pairs"] = ordered_json::array();
    for (const Advice::Pair& pair : advice.pairs)
      pairs.push_back({{"jobs", {advice.jobs[pair.a].name, advice.jobs[pair.b].name}},
                       {"score", pair.score},
                       {"upper_bound", pair.upper_bound},
                       {"fair_slowdown", pair.fair},
                       {"mltcp_slowdown", pair.mltcp}});
  }
  json["warnings"] = advice.warnings;
  if (advice.provenance) json["provenance"] = to_json(*advice.provenance);
  return json_text(json, 2);
}

}  // namespace mltcp::experiment
