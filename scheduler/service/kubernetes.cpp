// Implements the extender of the Kubernetes scheduler (see kubernetes.h).
#include "mltcp/scheduler/service/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/scheduler/service/api.h"
#include "mltcp/scheduler/service/job_profile.h"

namespace mltcp::service {
namespace {

constexpr std::string_view kJobKey = "mltcp.dev/job";
constexpr std::string_view kWorkersKey = "mltcp.dev/workers";
constexpr std::string_view kProfileKey = "mltcp.dev/profile";
constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kPodIndex = "apps.kubernetes.io/pod-index";
constexpr int kHighestScore = 10;  // MaxExtenderPriority
constexpr std::size_t kMaxNodes = 65'536;

/// Returns the text `key` of the object `texts` in `metadata`; an empty text if it is missing.
std::string text_in(const JsonObject& metadata, std::string_view texts, std::string_view key) {
  return metadata.has(texts) && !metadata.is_null(texts) ? metadata.object(texts).later_text(key) : std::string();
}

}  // namespace

struct KubernetesExtender::Args {
  Pod pod;
  std::vector<std::string> nodes;  ///< names of the nodes
  /// The node objects of the request; no value if the request contains only names.
  std::optional<nlohmann::json> given;
};

bool KubernetesExtender::Group::complete() const {
  return restored || std::ranges::none_of(pods, [](const std::string& pod) { return pod.empty(); });
}

KubernetesExtender::Args KubernetesExtender::read(std::string_view text) {
  const std::string name = "ExtenderArgs";
  const std::string cure = "give them as kube-scheduler does (extender/v1)";
  nlohmann::json json = parsed(text, name, cure, kBodyLimits);
  const JsonObject root(json, name, cure, "");
  Args args;
  const JsonObject metadata = root.object("Pod").object("metadata");
  args.pod.uid = metadata.later_text("uid");
  const std::string job = text_in(metadata, "annotations", kJobKey);
  args.pod.workers = text_in(metadata, "annotations", kWorkersKey);
  args.pod.profile = text_in(metadata, "annotations", kProfileKey);
  if (!job.empty())
    args.pod.job = fmt::format(
        "{}/{}", metadata.is_null("namespace") || !metadata.has("namespace") ? "default" : metadata.text("namespace"),
        job);
  for (const auto& [list, key] : {std::pair{"annotations", kCompletionIndex}, std::pair{"labels", kPodIndex}})
    if (const std::string index = text_in(metadata, list, key); !index.empty())
      args.pod.index = number_from<std::uint32_t>(index);
  if (root.has("NodeNames") && !root.is_null("NodeNames")) {
    args.nodes = root.texts("NodeNames", kMaxNodes);
    return args;
  }
  if (!root.has("Nodes") || root.is_null("Nodes"))
    root.refuse("NodeNames", "is missing, and so is Nodes", "give one of the two");
  const JsonObject nodes = root.object("Nodes");
  const std::string_view items = nodes.has("items") ? "items" : "Items";
  if (nodes.has(items) && !nodes.is_null(items))
    for (const JsonObject& node : nodes.objects(items, kMaxNodes))
      args.nodes.push_back(node.object("metadata").text("name"));
  args.given = std::move(json["Nodes"]);
  return args;
}

JobRequest KubernetesExtender::request_of(const Pod& pod, const std::vector<std::string>& nodes) const {
  JobRequest request;
  request.id = pod.job;
  const auto workers = number_from<std::uint32_t>(pod.workers);
  if (!workers || *workers < 1 || *workers > kMaxWorkers)
    throw InputError(fmt::format("annotation {} of a pod of job {} is {}; write the number of its pods, 1 to {}",
                                 kWorkersKey, in_quotes(pod.job), in_quotes(pod.workers), kMaxWorkers));
  if (pod.index && *pod.index >= *workers)
    throw InputError(
        fmt::format("a pod of job {} has index {} and the job {}; write as many as there are in annotation {}",
                    in_quotes(pod.job), *pod.index, plural(*workers, "pod"), kWorkersKey));
  request.workers = *workers;
  if (pod.profile.empty())
    throw InputError(fmt::format("a pod of job {} has no annotation {}; write what it does in an iteration",
                                 in_quotes(pod.job), kProfileKey));
  const JobProfile profile = profile_from_text(pod.profile, fmt::format("annotation {}", kProfileKey));
  request.demand = demand_of(profile, service_.topology().fastest_host());
  request.flows = std::max<std::uint32_t>(1, profile.job.flows);
  request.name = profile.job.name;
  const std::set<std::string> known(service_.host_names().begin(), service_.host_names().end());
  for (const std::string& node : nodes)
    if (known.contains(node)) request.allowed_hosts.push_back(node);
  if (request.allowed_hosts.empty())
    throw Conflict(fmt::format("none of {} is a host of the topology; name the topology's hosts as Kubernetes does",
                               plural(nodes.size(), "node")));
  return request;
}

KubernetesExtender::Group& KubernetesExtender::group_of(const Pod& pod, const std::vector<std::string>& nodes,
                                                        Nanos now) {
  // The annotations of every pod are checked, because a pod whose annotations differ from those of its job must not get
  // a position.
  JobRequest request = request_of(pod, nodes);
  const auto known = groups_.find(pod.job);
  try {
    const JobPlan plan = service_.plan(pod.job);
    if (known != groups_.end()) {
      if (known->second.hosts.size() != request.workers)
        throw Conflict(fmt::format(
            "job {} has {}, and one of its pods has the annotation {}; give all of them the same annotations",
            in_quotes(pod.job), plural(known->second.hosts.size(), "pod"), request.workers));
      if (known->second.demand != request.demand || known->second.flows != request.flows)
        throw Conflict(fmt::format(
            "the profile of job {} differs from that of one of its pods; give all of them the same annotations",
            in_quotes(pod.job)));
      return known->second;
    }
    Group group;
    group.hosts = plan.hosts;
    group.pods.resize(plan.hosts.size());
    group.restored = true;
    group.seen = now;
    for (const RunningJob& job : service_.jobs()) {
      if (job.request.id != pod.job) continue;
      group.demand = job.request.demand;
      group.flows = job.request.flows;
    }
    if (group.hosts.size() != request.workers)
      throw Conflict(fmt::format("job {} runs already, with {}; delete it, or give the new one another name",
                                 in_quotes(pod.job), plural(group.hosts.size(), "worker")));
    if (group.demand != request.demand || group.flows != request.flows)
      throw Conflict(
          fmt::format("job {} runs already, with another profile; delete it, or give the new one another "
                      "name",
                      in_quotes(pod.job)));
    return groups_[pod.job] = std::move(group);
  } catch (const NotFound&) {
    // The job was deleted, or never existed.
    if (known != groups_.end()) groups_.erase(known);
  }
  Group group;
  group.hosts = service_.arrive(request).plan.hosts;
  group.pods.resize(group.hosts.size());
  group.seen = now;
  group.demand = request.demand;
  group.flows = request.flows;
  return groups_[pod.job] = std::move(group);
}

std::vector<std::string> KubernetesExtender::places(const Pod& pod, const std::vector<std::string>& nodes, Nanos now) {
  Group& group = group_of(pod, nodes, now);
  const std::set<std::string_view> feasible(nodes.begin(), nodes.end());
  const auto index_of = [&](const auto& wanted) {
    for (std::size_t i = 0; i < group.pods.size(); ++i)
      if (wanted(i)) return i;
    return group.pods.size();
  };
  std::size_t place = group.pods.size();
  if (pod.index) {
    place = *pod.index;
  } else {
    if (!pod.uid.empty()) place = index_of([&](std::size_t i) { return group.pods[i] == pod.uid; });
    if (place == group.pods.size())
      place = index_of([&](std::size_t i) { return group.pods[i].empty() && feasible.contains(group.hosts[i]); });
  }
  if (place == group.pods.size() || (group.restored && !pod.index)) {
    // All positions are in use, so this pod replaces a pod that has ended. The position of that pod is not known.
    std::vector<std::string> all;
    const std::set<std::string_view> own(group.hosts.begin(), group.hosts.end());
    for (const std::string& node : nodes)
      if (own.contains(node)) all.push_back(node);
    if (!all.empty()) {
      group.seen = now;
      return all;
    }
  } else if (feasible.contains(group.hosts[place])) {
    group.seen = now;
    group.pods[place] = pod.uid.empty() ? "?" : pod.uid;
    return {group.hosts[place]};
  }
  const std::string wanted = place < group.pods.size() ? group.hosts[place] : group.hosts.front();
  throw Conflict(
      fmt::format("job {} has its place on node {}, which is not feasible for the pod; wait, or delete the job so that "
                  "it is placed again",
                  in_quotes(pod.job), in_quotes(wanted)));
}

std::string KubernetesExtender::filter(std::string_view text, Nanos now) {
  Args args = read(text);
  const std::scoped_lock lock(mutex_);
  expire_locked(now);
  std::vector<std::string> passing = args.nodes;
  nlohmann::json failed = nlohmann::json::object();
  std::string error;
  if (!args.pod.job.empty()) {
    std::string why = fmt::format("job {} has its place on another node", in_quotes(args.pod.job));
    try {
      passing = places(args.pod, args.nodes, now);
    } catch (const InputError& wrong) {
      error = wrong.what();
    } catch (const Unavailable& wrong) {
      error = wrong.what();
    } catch (const Conflict& wrong) {
      // The conflict is temporary, because another pod may end or a node may be added.
      passing.clear();
      why = wrong.what();
    }
    if (error.empty()) {
      const std::set<std::string> kept(passing.begin(), passing.end());
      for (const std::string& node : args.nodes)
        if (!kept.contains(node)) failed[node] = why;
    } else {
      passing.clear();
    }
  }
  nlohmann::json result = nlohmann::json::object();
  if (args.given) {
    const std::set<std::string> kept(passing.begin(), passing.end());
    const std::string_view items = args.given->contains("items") ? "items" : "Items";
    nlohmann::json nodes = nlohmann::json::array();
    if (const auto all = args.given->find(items); all != args.given->end() && all->is_array())
      for (nlohmann::json& node : *all)
        if (kept.contains(node["metadata"]["name"].get<std::string>())) nodes.push_back(std::move(node));
    (*args.given)["items"] = std::move(nodes);
    result["Nodes"] = std::move(*args.given);
    result["NodeNames"] = nullptr;
  } else {
    result["Nodes"] = nullptr;
    result["NodeNames"] = passing;
  }
  result["FailedNodes"] = std::move(failed);
  result["FailedAndUnresolvableNodes"] = nlohmann::json::object();
  result["Error"] = one_line(error);
  return json_text(result);
}

std::string KubernetesExtender::prioritize(std::string_view text, Nanos now) {
  const Args args = read(text);
  const std::scoped_lock lock(mutex_);
  expire_locked(now);
  std::set<std::string> best;
  if (!args.pod.job.empty()) {
    try {
      for (std::string& node : places(args.pod, args.nodes, now)) best.insert(std::move(node));
    } catch (const Conflict&) {
      // On a conflict, no node is preferred.
    }
  }
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& node : args.nodes)
    list.push_back({{"Host", node}, {"Score", best.contains(node) ? kHighestScore : 0}});
  return json_text(list);
}

void KubernetesExtender::expire(Nanos now) {
  const std::scoped_lock lock(mutex_);
  expire_locked(now);
}

void KubernetesExtender::expire_locked(Nanos now) {
  for (auto entry = groups_.begin(); entry != groups_.end();) {
    const auto& [id, group] = *entry;
    if (now - group.seen <= options_.patience) {
      ++entry;
      continue;
    }
    if (!group.complete()) {
      try {
        service_.depart(id);
      } catch (const NotFound&) {
        // A client has deleted the job.
      } catch (const std::exception&) {
        // For example, the disk is full. A later call of expire() tries again.
        ++entry;
        continue;
      }
    }
    entry = groups_.erase(entry);
  }
}

}  // namespace mltcp::service
