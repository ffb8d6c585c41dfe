// Makes the service an extender of the Kubernetes scheduler. Implements the calls filter and prioritize of
// k8s.io/kube-scheduler/extender/v1, which receive ExtenderArgs and return ExtenderFilterResult and HostPriorityList.
//
// Kubernetes schedules the pods of a job one at a time. At the first pod, the whole job arrives at the service, which
// reserves nodes for all pods of the job. The service chooses these nodes among those that are feasible for the first
// pod. Each pod then passes the filter only on its own node. A pod without the job annotation passes on all nodes.
// Annotations:
//
//   mltcp.dev/job       the name of the job; its id is NAMESPACE/JOB
//   mltcp.dev/workers   the number of pods of the job
//   mltcp.dev/profile   what a pod does in an iteration: JSON or TOML (job_profile.h)
//   batch.kubernetes.io/job-completion-index   (or label apps.kubernetes.io/pod-index) the position of the pod in the
//                                              ring; default: the order in which Kubernetes schedules the pods
//
// Kubernetes does not tell an extender that a pod was bound or has ended. If a job is incomplete and no new pod is
// placed within `patience`, the job departs. A complete job stays until a client deletes it (DELETE /v1/jobs/ID).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

struct KubernetesOptions {
  Nanos patience{600'000'000'000};  ///< time after the last placed pod until an incomplete job departs
};

class KubernetesExtender {
 public:
  /// `service` must outlive this object.
  KubernetesExtender(SchedulerService& service, const KubernetesOptions& options)
      : service_(service), options_(options) {}

  /// Returns the ExtenderFilterResult for ExtenderArgs, both in JSON. If a pod of a job is invalid, the result contains
  /// an Error. Throws InputError if `args` is not an ExtenderArgs. `now` is the time of any monotonic clock.
  std::string filter(std::string_view args, Nanos now);
  /// Returns the HostPriorityList for ExtenderArgs, both in JSON: 10 for the node of the pod, 0 for all other nodes.
  /// Throws InputError if `args` is not an ExtenderArgs.
  std::string prioritize(std::string_view args, Nanos now);
  /// Removes incomplete jobs if none of their pods was placed for longer than `patience`.
  void expire(Nanos now);

 private:
  struct Pod {
    std::string uid;
    std::string job;  ///< job id; empty if the pod has no job annotation
    std::string workers;
    std::string profile;
    std::optional<std::uint32_t> index;
  };
  struct Args;
  /// A job and its pods that have been placed so far.
  struct Group {
    std::vector<std::string> hosts;  ///< node of each position in the ring
    std::vector<std::string> pods;   ///< uid of the pod at each position; empty if there is none yet
    /// True if the service has restarted since the job arrived. The pods placed before the restart are not known.
    bool restored = false;
    scheduler::Demand demand;
    std::uint32_t flows = 1;
    Nanos seen;
    [[nodiscard]] bool complete() const;
  };

  [[nodiscard]] static Args read(std::string_view text);
  [[nodiscard]] JobRequest request_of(const Pod& pod, const std::vector<std::string>& nodes) const;
  /// Returns the nodes on which the pod may run. Throws like SchedulerService::arrive(), and throws Conflict if none of
  /// these nodes is in `nodes`.
  std::vector<std::string> places(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  Group& group_of(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  void expire_locked(Nanos now);

  SchedulerService& service_;
  KubernetesOptions options_;
  std::mutex mutex_;
  std::map<std::string, Group, std::less<>> groups_;  ///< groups by job id
};

}  // namespace mltcp::service
