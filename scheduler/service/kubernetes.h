// The scheduler's service as an extender of Kubernetes' scheduler: filter and prioritize of
// k8s.io/kube-scheduler/extender/v1 (ExtenderArgs in, ExtenderFilterResult and HostPriorityList out).
//
// A job's pods come one at a time. With the first one the whole job arrives: hosts for all of its pods are chosen among
// the nodes that are feasible for this one, and reserved. Each pod then passes the filter only on its own node. A pod
// without the job annotation passes everywhere.
//
//   mltcp.dev/job       the job; its id is NAMESPACE/JOB
//   mltcp.dev/workers   the number of its pods
//   mltcp.dev/profile   what a pod does in an iteration: JSON or TOML (job_profile.h)
//   batch.kubernetes.io/job-completion-index   (or label apps.kubernetes.io/pod-index) the pod's place in the ring;
//                                              pods without it take places in the order in which they come
//
// An extender does not learn that a pod has been bound or has ended. If not all pods of a job have come within
// `patience`, the job departs again. A complete job stays until it is deleted (DELETE /v1/jobs/ID).
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
  Nanos patience{600'000'000'000};  ///< since the last pod of the job was placed
};

class KubernetesExtender {
 public:
  /// The service must outlive it.
  KubernetesExtender(SchedulerService& service, const KubernetesOptions& options)
      : service_(service), options_(options) {}

  /// Takes ExtenderArgs in JSON and returns an ExtenderFilterResult; its Error reports an invalid pod of a job. Throws
  /// InputError if `args` are no ExtenderArgs. `now` is from a monotonic clock.
  std::string filter(std::string_view args, Nanos now);
  /// Takes the same and returns a HostPriorityList: 10 for the pod's node, 0 for others.
  std::string prioritize(std::string_view args, Nanos now);
  /// Incomplete jobs depart if no pod has come for longer than `patience`.
  void expire(Nanos now);

 private:
  struct Pod {
    std::string uid;
    std::string job;  ///< its id; empty: a pod without the annotation
    std::string workers;
    std::string profile;
    std::optional<std::uint32_t> index;
  };
  struct Args;
  /// A job whose pods are coming.
  struct Group {
    std::vector<std::string> hosts;  ///< by place
    std::vector<std::string> pods;   ///< by place: the uid of its pod; empty: none yet
    /// The service has restarted and does not know which pods came before; perhaps all.
    bool restored = false;
    scheduler::Demand demand;
    std::uint32_t flows = 1;
    Nanos seen;
    [[nodiscard]] bool complete() const;
  };

  [[nodiscard]] static Args read(std::string_view text);
  [[nodiscard]] JobRequest request_of(const Pod& pod, const std::vector<std::string>& nodes) const;
  /// The nodes on which the pod may run. Throws as the service does, and Conflict if none of `nodes` is among them.
  std::vector<std::string> places(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  Group& group_of(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  void expire_locked(Nanos now);

  SchedulerService& service_;
  KubernetesOptions options_;
  std::mutex mutex_;
  std::map<std::string, Group, std::less<>> groups_;  ///< by job id
};

}  // namespace mltcp::service
