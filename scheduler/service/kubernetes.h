// The scheduler's service as an extender of Kubernetes' scheduler: filter and prioritize of
// k8s.io/kube-scheduler/extender/v1 (ExtenderArgs in, ExtenderFilterResult and HostPriorityList out).
//
// A job's pods come one at a time. The first one makes the whole job arrive: hosts for all of its pods are chosen among
// the nodes that are feasible for this one, and kept for the others. Each pod then passes on its own node alone. A pod
// without the job annotation passes everywhere, untouched.
//
//   mltcp.dev/job       the job; its id is NAMESPACE/JOB
//   mltcp.dev/workers   the number of its pods
//   mltcp.dev/profile   what a pod does in an iteration: JSON or TOML (job_profile.h)
//   batch.kubernetes.io/job-completion-index   (or label apps.kubernetes.io/pod-index) the pod's place in the ring, if
//   it
//                                              has one; otherwise pods take the places in the order in which they come
//
// That a pod has been bound, or has ended, an extender is not told. A job of which not all pods have come within
// `patience` departs again. One that is complete stays until somebody deletes it (DELETE /v1/jobs/ID).
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
  Nanos patience{600'000'000'000};  ///< since a pod of the job found its place last
};

class KubernetesExtender {
 public:
  /// The service must outlive it.
  KubernetesExtender(SchedulerService& service, const KubernetesOptions& options)
      : service_(service), options_(options) {}

  /// ExtenderArgs in JSON; returns an ExtenderFilterResult, in which Error says what is wrong with a pod of ours.
  /// Throws InputError if these are no ExtenderArgs. `now` is of a monotonic clock.
  std::string filter(std::string_view args, Nanos now);
  /// The same; returns a HostPriorityList: 10 for the pod's node, 0 for others.
  std::string prioritize(std::string_view args, Nanos now);
  /// Jobs that are not complete and whose pods have not come for long depart.
  void expire(Nanos now);

 private:
  struct Pod {
    std::string uid;
    std::string job;  ///< its id; empty: not ours
    std::string workers;
    std::string profile;
    std::optional<std::uint32_t> index;
  };
  struct Args;
  /// A job whose pods are coming.
  struct Group {
    std::vector<std::string> hosts;  ///< by place
    std::vector<std::string> pods;   ///< by place: the uid of the pod that came for it; empty: none yet
    /// The service was started anew and does not know which of them came before: all may have.
    bool restored = false;
    scheduler::Demand demand;
    std::uint32_t flows = 1;
    Nanos seen;
    [[nodiscard]] bool complete() const;
  };

  [[nodiscard]] static Args read(std::string_view text);
  [[nodiscard]] JobRequest request_of(const Pod& pod, const std::vector<std::string>& nodes) const;
  /// The nodes on which the pod may be; throws what the service throws, and Conflict if none of `nodes` is among them.
  std::vector<std::string> places(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  Group& group_of(const Pod& pod, const std::vector<std::string>& nodes, Nanos now);
  void expire_locked(Nanos now);

  SchedulerService& service_;
  KubernetesOptions options_;
  std::mutex mutex_;
  std::map<std::string, Group, std::less<>> groups_;  ///< by id of the job
};

}  // namespace mltcp::service
