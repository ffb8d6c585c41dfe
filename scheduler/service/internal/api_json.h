// The JSON of the interface: jobs in, plans and placements out. Not installed.
#pragma once

#include <string>

#include "mltcp/scheduler/service/internal/json_reader.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

/// Of request bodies, which may be lists of Kubernetes' nodes.
inline constexpr JsonLimits kBodyLimits{40, 1'000'000};

/// A job of JSON: {"id", "name", "workers", "profile", ...}; `reader` may have other keys, which are not looked at.
JobRequest request_from(const JsonReader& reader, Rate host_rate);

Json to_json(const JobPlan& plan);
Json to_json(const RunningJob& job);
Json to_json(const RankedPlacement& placement);
template <typename Item>
Json list_to_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}
/// On one line, with its end.
std::string to_text(const Json& json);

}  // namespace mltcp::service
