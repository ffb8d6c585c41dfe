// The service's HTTP interface, version 1, independent of the HTTP server: requests in, status and JSON out.
// docs/reference/scheduler-api.md describes it. Thread-safe.
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
  std::string method;                                     ///< "GET", "POST", "DELETE"
  std::vector<std::string> path;                          ///< its parts, decoded: "/v1/jobs/a%2Fb" is v1, jobs, a/b
  std::map<std::string, std::string, std::less<>> query;  ///< decoded parameters
  std::string body;
};

/// The request for an HTTP target, such as "/v1/jobs/a%2Fb/plan?after=1".
ApiRequest request_of(std::string method, std::string_view target, std::string body);

struct ApiAnswer {
  int status = 200;
  std::string body;  ///< one line of JSON, or of type `type`, with a line end
  /// The plan has not changed yet: ask again when it may have changed, or after `timeout` at the latest, with may_wait
  /// false. The answer itself is complete and valid.
  struct Wait {
    std::string job;
    std::uint64_t after = 0;
    Nanos timeout;
  };
  std::optional<Wait> wait;
  const char* type = "application/json";
};

/// Longest wait_ms of GET /v1/jobs/ID/plan.
inline constexpr Nanos kLongestWait(300'000'000'000);
/// Maximum length of a body.
inline constexpr std::size_t kMaxBodyBytes = 4U << 20;
/// Limits of bodies, which may be lists of Kubernetes' nodes.
inline constexpr JsonLimits kBodyLimits{40, 1'000'000};

class Api {
 public:
  /// Both must outlive it.
  Api(SchedulerService& service, KubernetesExtender& kubernetes) : service_(service), kubernetes_(kubernetes) {}

  /// Never throws. `now` is from any monotonic clock.
  [[nodiscard]] ApiAnswer answer(const ApiRequest& request, Nanos now, bool may_wait = true);
  /// The body of all error answers: {"error": message}.
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
