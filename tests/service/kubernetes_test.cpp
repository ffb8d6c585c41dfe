// Tests the scheduler extender with requests as Kubernetes' scheduler sends them (k8s.io/kube-scheduler/extender/v1).
#include "mltcp/scheduler/service/kubernetes.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "../matchers.h"
#include "services.h"

namespace mltcp::service::kubernetes_test {
namespace {

using namespace testing_services;
using Json = nlohmann::json;

/// Returns a pod in the format of the Kubernetes API server. The pod has the fields that the extender reads, and some
/// fields that it ignores.
Json pod(const std::string& uid, const std::string& job = "", const std::string& workers = "2",
         const std::string& profile = R"({"compute_ns": 60000000, "communicate_bytes": 50000000})") {
  Json metadata{{"name", "pod-" + uid}, {"namespace", "ml"}, {"uid", uid}, {"labels", {{"app", "train"}}}};
  if (!job.empty())
    metadata["annotations"] = {
        {"mltcp.dev/job", job}, {"mltcp.dev/workers", workers}, {"mltcp.dev/profile", profile}, {"other", "x"}};
  return {{"metadata", metadata},
          {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}},
          {"status", Json::object()}};
}

class kubernetes : public ::testing::Test {
 protected:
  static std::string args(const Json& of_pod, const std::vector<std::string>& nodes) {
    return Json{{"Pod", of_pod}, {"Nodes", nullptr}, {"NodeNames", nodes}}.dump();
  }
  Json filter(const Json& of_pod, const std::vector<std::string>& nodes = eight_names()) {
    Json result = Json::parse(extender_.filter(args(of_pod, nodes), now_));
    for (const char* const key : {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"})
      EXPECT_TRUE(result.contains(key)) << key;
    return result;
  }
  std::string node(const Json& of_pod, const std::vector<std::string>& nodes = eight_names()) {
    const Json result = filter(of_pod, nodes);
    EXPECT_EQ(result["Error"], "");
    EXPECT_THAT(result["NodeNames"], SizeIs(1)) << result;
    EXPECT_THAT(result["FailedNodes"], SizeIs(nodes.size() - 1));
    return result["NodeNames"].empty() ? "" : result["NodeNames"][0].get<std::string>();
  }

  ServiceOptions options() const {
    ServiceOptions options = options_in({});
    options.slots_per_host = 1;
    return options;
  }
  SchedulerService service_{two_racks(), options()};
  KubernetesExtender extender_{service_, {.patience = 600_s}};
  Nanos now_ = 1_s;
};

TEST_F(kubernetes, pod_without_annotations__passes_untouched) {
  const Json result = filter(pod("1"), {"a1", "elsewhere"});
  EXPECT_EQ(result["NodeNames"], (Json{"a1", "elsewhere"}));
  EXPECT_EQ(result["Nodes"], nullptr);
  EXPECT_THAT(result["FailedNodes"], IsEmpty());
  EXPECT_EQ(result["Error"], "");
  EXPECT_EQ(Json::parse(extender_.prioritize(args(pod("1"), {"a1"}), now_)), (Json{{{"Host", "a1"}, {"Score", 0}}}));
  EXPECT_EQ(service_.revision(), 0U);
}

TEST_F(kubernetes, pods_of_a_job__come_one_at_a_time_and_get_its_places) {
  const std::string first = node(pod("u1", "train"));
  const JobPlan plan = service_.plan("ml/train");
  ASSERT_THAT(plan.hosts, SizeIs(2));
  EXPECT_EQ(first, plan.hosts[0]);
  EXPECT_EQ(node(pod("u1", "train")), first) << "asked again";
  const std::string second = node(pod("u2", "train"));
  EXPECT_EQ(second, plan.hosts[1]);
  EXPECT_NE(first, second);
  EXPECT_EQ(service_.revision(), 1U) << "one job";

  const Json scores = Json::parse(
      extender_.prioritize(args(pod("u2", "train"), {"a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"}), now_));
  ASSERT_THAT(scores, SizeIs(8));
  for (const Json& one : scores) EXPECT_EQ(one["Score"], one["Host"] == second ? 10 : 0) << one;
}

TEST_F(kubernetes, pods_with_an_index__get_the_place_in_the_ring) {
  Json second = pod("u2", "train");
  second["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "1";
  Json first = pod("u1", "train");
  first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = "0";
  const std::string second_node = node(second);
  const std::vector<std::string> hosts = service_.plan("ml/train").hosts;
  EXPECT_EQ(second_node, hosts[1]);
  EXPECT_EQ(node(first), hosts[0]);
  Json replaced = second;
  replaced["metadata"]["uid"] = "u3";
  EXPECT_EQ(node(replaced), service_.plan("ml/train").hosts[1]);
}

TEST_F(kubernetes, nodes__are_given_back_as_they_were) {
  Json items = Json::array();
  for (const std::string& name : eight_names())
    items.push_back({{"metadata", {{"name", name}, {"labels", {{"x", "y"}}}}}, {"spec", {{"podCIDR", "10.0.0.0/24"}}}});
  const Json asked{{"Pod", pod("u1", "train")},
                   {"Nodes", {{"metadata", {{"resourceVersion", "5"}}}, {"items", items}}},
                   {"NodeNames", nullptr}};
  const Json result = Json::parse(extender_.filter(asked.dump(), now_));
  EXPECT_EQ(result["NodeNames"], nullptr);
  EXPECT_EQ(result["Nodes"]["metadata"]["resourceVersion"], "5");
  ASSERT_THAT(result["Nodes"]["items"], SizeIs(1));
  const Json& kept = result["Nodes"]["items"][0];
  EXPECT_EQ(kept["metadata"]["name"], service_.plan("ml/train").hosts[0]);
  EXPECT_EQ(kept["spec"]["podCIDR"], "10.0.0.0/24");
}

TEST_F(kubernetes, hosts__are_chosen_among_the_feasible_nodes) {
  const std::vector<std::string> nodes{"a3", "b2", "unknown"};
  EXPECT_THAT(nodes, Contains(node(pod("u1", "train"), nodes)));
  EXPECT_THAT(service_.plan("ml/train").hosts, UnorderedElementsAre("a3", "b2"));
  const Json result = filter(pod("u2", "train"), {"a4"});
  EXPECT_THAT(result["NodeNames"], IsEmpty());
  EXPECT_THAT(result["FailedNodes"]["a4"].get<std::string>(), HasSubstr("has its place on node"));
  EXPECT_EQ(result["Error"], "");
}

TEST_F(kubernetes, job_without_room__fails_on_every_node_and_is_placed_later) {
  service_.arrive(job("big", 100_ms, 10_ms, 7));
  const Json result = filter(pod("u1", "train"));
  EXPECT_THAT(result["NodeNames"], IsEmpty());
  EXPECT_THAT(result["FailedNodes"], SizeIs(8));
  EXPECT_THAT(result["FailedNodes"]["a1"].get<std::string>(), HasSubstr("room for 1"));
  service_.depart("big");
  node(pod("u1", "train"));
}

TEST_F(kubernetes, bad_annotations__are_an_error_of_the_pod) {
  const auto error = [&](const Json& of_pod) {
    const Json result = filter(of_pod);
    EXPECT_THAT(result["NodeNames"], IsEmpty());
    return result["Error"].get<std::string>();
  };
  EXPECT_THAT(error(pod("u", "train", "none")),
              HasSubstr("annotation mltcp.dev/workers of a pod of job \"ml/train\" is \"none\""));
  EXPECT_THAT(error(pod("u", "train", "0")), HasSubstr("mltcp.dev/workers"));
  EXPECT_THAT(error(pod("u", "train", "2", "")), HasSubstr("has no annotation mltcp.dev/profile"));
  EXPECT_THAT(error(pod("u", "train", "2", "{}")), HasSubstr("annotation mltcp.dev/profile: it is no profile"));
  EXPECT_THAT(error(pod("u", "tr ain")), HasSubstr("is no id of a job"));
  Json indexed = pod("u", "train");
  indexed["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = "2";
  EXPECT_THAT(error(indexed), HasSubstr("has index 2 and the job 2 pods"));
  EXPECT_EQ(service_.revision(), 0U);
  node(pod("u1", "train"));
  const Json result = filter(pod("u2", "train", "3"));
  EXPECT_THAT(result["FailedNodes"]["a1"].get<std::string>(), HasSubstr("one of its pods has the annotation 3"));
}

TEST_F(kubernetes, pods_with_another_profile__do_not_join_their_job) {
  const std::string other = R"({"compute_ns": 60000000, "communicate_bytes": 60000000})";
  node(pod("u1", "train"));
  EXPECT_THAT(filter(pod("u2", "train", "2", other))["FailedNodes"]["a1"].get<std::string>(),
              HasSubstr("differs from that of one of its pods"));
  KubernetesExtender anew(service_, {.patience = 600_s});
  const Json result = Json::parse(anew.filter(args(pod("u2", "train", "2", other), eight_names()), now_));
  EXPECT_THAT(result["FailedNodes"]["a1"].get<std::string>(), HasSubstr("runs already, with another profile"));
  node(pod("u2", "train"));
}

TEST_F(kubernetes, bad_arguments__are_refused) {
  const auto refused = [&](const std::string& text) { return refusal_of([&] { extender_.filter(text, now_); }); };
  EXPECT_THAT(refused(""), HasSubstr("ExtenderArgs: not JSON"));
  EXPECT_THAT(refused("{}"), HasSubstr("Pod is missing"));
  EXPECT_THAT(refused(R"({"Pod": 1})"), HasSubstr("Pod is not an object"));
  EXPECT_THAT(refused(R"({"Pod": {}})"), HasSubstr("Pod.metadata is missing"));
  EXPECT_THAT(refused(R"({"Pod": {"metadata": {}}})"), HasSubstr("NodeNames is missing"));
  EXPECT_THAT(refused(R"({"Pod": {"metadata": {}}, "NodeNames": [1]})"), HasSubstr("NodeNames[0] is not a text"));
  EXPECT_THAT(refused(R"({"Pod": {"metadata": {}}, "Nodes": {"items": [{}]}})"), HasSubstr("metadata"));
  EXPECT_THAT(refused(R"({"Pod": {"metadata": {"annotations": {"mltcp.dev/job": 5}}}, "NodeNames": []})"),
              HasSubstr("mltcp.dev/job is not a text"));
}

TEST_F(kubernetes, nodes_that_do_not_pass__are_all_named_in_a_time_that_grows_as_they_do) {
  const auto time_for = [&](int more) {
    std::vector<std::string> nodes = eight_names();
    for (int i = 0; i < more; ++i) nodes.push_back("other-" + std::to_string(i));
    auto min = std::chrono::steady_clock::duration::max();
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      node(pod("u1", "train"), nodes);
      min = std::min(min, std::chrono::steady_clock::now() - begin);
    }
    return min;
  };
  const auto few = time_for(4'000);
  EXPECT_LT(time_for(32'000), 24 * few) << "8 times as many; 64 times if each is looked for among all";
}

TEST_F(kubernetes, job_that_is_never_complete__departs) {
  node(pod("u1", "train"));
  now_ += 600_s;
  extender_.expire(now_);
  EXPECT_THAT(service_.jobs(), SizeIs(1));
  now_ += 1_ns;
  extender_.expire(now_);
  EXPECT_THAT(service_.jobs(), IsEmpty());
}

TEST_F(kubernetes, job_that_is_complete__stays_until_it_is_deleted) {
  node(pod("u1", "train"));
  node(pod("u2", "train"));
  now_ += 100'000_s;
  extender_.expire(now_);
  EXPECT_THAT(service_.jobs(), SizeIs(1));
  // The request does not name the pod that a new pod replaces, so the new pod may use any node of the job.
  EXPECT_THAT(filter(pod("u3", "train"))["NodeNames"], SizeIs(2));
  service_.depart("ml/train");
  node(pod("u1", "train"));
  EXPECT_EQ(service_.plan("ml/train").revision, 3U) << "placed anew";
}

TEST_F(kubernetes, after_a_restart__pods_go_where_their_job_is) {
  node(pod("u1", "train"));
  KubernetesExtender again(service_, {});
  const Json result = Json::parse(again.filter(args(pod("u2", "train"), eight_names()), now_));
  EXPECT_THAT(result["NodeNames"], SizeIs(2)) << "it isn't known which of the two came before";
  Json indexed = pod("u2", "train");
  indexed["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = "1";
  EXPECT_EQ(Json::parse(again.filter(args(indexed, eight_names()), now_))["NodeNames"],
            (Json{service_.plan("ml/train").hosts[1]}));
}

}  // namespace
}  // namespace mltcp::service::kubernetes_test
