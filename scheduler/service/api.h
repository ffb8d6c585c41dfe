// Version 1 of the HTTP interface of the service (docs/reference/scheduler-api.md), without the HTTP server: converts a
// request to a status and a JSON body. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json.h"
#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/kubernetes.h"
#include "mltcp/scheduler/service/metrics.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

struct ApiRequest {
  std::string method;                                     ///< "GET", "POST" or "DELETE"
  std::vector<std::string> path;                          ///< decoded parts: "/v1/jobs/a%2Fb" has v1, jobs, a/b
  std::map<std::string, std::string, std::less<>> query;  ///< decoded parameters
  std::string body;
};

/// Returns the request for an HTTP target, such as "/v1/jobs/a%2Fb/plan?after=1".
ApiRequest request_of(std::string method, std::string_view target, std::string body);

struct ApiAnswer {
  int status = 200;
  std::string body;  ///< `type` is the media type; JSON is one line and ends with a newline
  /// Set if the client waits for a new plan of `job`, and the revision of the plan is not above `after` yet. The server
  /// should repeat the request with may_wait false when the revision is above `after`, at the latest when `timeout` has
  /// passed. The server may also send this answer at once, because the answer is complete.
  struct Wait {
    std::string job;
    std::uint64_t after = 0;
    Nanos timeout;
  };
  std::optional<Wait> wait;
  const char* type = "application/json";
};

/// Maximum of wait_ms in GET /v1/jobs/ID/plan: 300 s.
inline constexpr Nanos kLongestWait(300'000'000'000);
/// Maximum length of a request body, in bytes.
inline constexpr std::size_t kMaxBodyBytes = 4U << 20;
/// Limits of the JSON in a body. They are high because a body may list all nodes of a Kubernetes cluster.
inline constexpr JsonLimits kBodyLimits{40, 1'000'000};

class Api {
 public:
  /// `service` and `kubernetes` must outlive this object.
  Api(SchedulerService& service, KubernetesExtender& kubernetes) : service_(service), kubernetes_(kubernetes) {}

  /// Returns the answer to a request. Errors are answers, not exceptions. `now` may come from any monotonic clock. Sets
  /// ApiAnswer::wait only if `may_wait` is true.
  [[nodiscard]] ApiAnswer answer(const ApiRequest& request, Nanos now, bool may_wait = true);
  /// Returns the body of an error answer: {"error": message}.
  [[nodiscard]] static std::string error_body(std::string_view message);

 private:
  [[nodiscard]] ApiAnswer answered(const ApiRequest& request, Nanos now, bool may_wait);
  [[nodiscard]] ApiAnswer routed(const ApiRequest& request, Nanos now, bool may_wait);
  [[nodiscard]] ApiAnswer arrive(const ApiRequest& request);
  [[nodiscard]] ApiAnswer rank(const ApiRequest& request);
  [[nodiscard]] ApiAnswer plan(const std::string& id, const ApiRequest& request, bool may_wait);

  SchedulerService& service_;
  KubernetesExtender& kubernetes_;
  ServiceMetrics metrics_;
};

}  // namespace mltcp::service
