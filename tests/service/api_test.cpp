// Tests the handlers of the HTTP API by direct calls, without HTTP.
#include "mltcp/scheduler/service/api.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "../matchers.h"
#include "services.h"

namespace mltcp::service::api_test {
namespace {

using namespace testing_services;
using Json = nlohmann::json;

const std::string profile = R"("profile": {"compute_ns": 60000000, "communicate_bytes": 50000000})";

class api : public ::testing::Test {
 protected:
  std::pair<int, Json> ask(const std::string& method, const std::vector<std::string>& path,
                           const std::string& body = "",
                           const std::map<std::string, std::string, std::less<>>& query = {}) {
    const ApiAnswer answer = api_.answer({method, path, query, body}, 0_ns);
    EXPECT_EQ(answer.body.back(), '\n');
    EXPECT_EQ(std::count(answer.body.begin(), answer.body.end(), '\n'), 1) << "one line";
    return {answer.status, Json::parse(answer.body)};
  }
  std::string error(int status, const std::string& method, const std::vector<std::string>& path,
                    const std::string& body = "", const std::map<std::string, std::string, std::less<>>& query = {}) {
    const auto [got, json] = ask(method, path, body, query);
    EXPECT_EQ(got, status) << json;
    EXPECT_THAT(json, SizeIs(1));
    return json.at("error");
  }

  Nanos time_;  ///< time of the service's clock, which advances by a millisecond with each reading
  SchedulerService service_{two_racks(), [this] {
                              ServiceOptions options = options_in({});
                              options.clock = [this] { return time_ += 1_ms; };
                              return options;
                            }()};
  [[nodiscard]] std::string metrics() {
    const ApiAnswer answer = api_.answer({"GET", {"metrics"}, {}, ""}, 0_ns);
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.type, StartsWith("text/plain"));
    return answer.body;
  }

  KubernetesExtender kubernetes_{service_, {}};
  Api api_{service_, kubernetes_};
};

TEST_F(api, job__comes_is_told_and_goes) {
  const auto [created, arrival] =
      ask("POST", {"v1", "jobs"}, R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}");
  EXPECT_EQ(created, 201);
  const Json& plan = arrival["plan"];
  EXPECT_EQ(plan["id"], "j1");
  EXPECT_EQ(plan["number"], 1);
  EXPECT_EQ(plan["hosts"], (Json{"a1", "b1"}));
  EXPECT_EQ(plan["slots"], false);
  EXPECT_THAT(plan["reason"].get<std::string>(), HasSubstr("no link with another job"));
  EXPECT_EQ(plan["slot_period_ns"], 100'000'000);
  EXPECT_EQ(plan["first_send_ns"], 60'000'000);
  EXPECT_EQ(plan["slot_unix_ns"], kEpoch + 60'000'000);
  EXPECT_EQ(plan["revision"], 1);
  EXPECT_EQ(arrival["moves"], Json::array());

  const auto [again, same] =
      ask("POST", {"v1", "jobs"}, R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}");
  EXPECT_EQ(again, 200);
  EXPECT_EQ(same["plan"], plan);

  const auto [second, moved] =
      ask("POST", {"v1", "jobs"},
          R"({"id": "j2", "name": "x", "workers": 2, "hosts": ["a2", "b2"], )"
          R"("profile": {"toml": "name = \"vgg\"\ncompute = \"60 ms\"\ncommunicate = \"50 MB\""}})");
  EXPECT_EQ(second, 201);
  EXPECT_EQ(moved["plan"]["slots"], true);
  EXPECT_FALSE(moved["plan"].contains("reason"));
  ASSERT_THAT(moved["moves"], SizeIs(1));
  EXPECT_EQ(moved["moves"][0]["id"], "j1");

  const Json jobs = ask("GET", {"v1", "jobs"}).second["jobs"];
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[1]["name"], "x");
  EXPECT_EQ(jobs[1]["demand"],
            (Json{{"period_ns", 100'000'000},
                  {"bursts", {{{"from_ns", 60'000'000}, {"to_ns", 100'000'000}, {"rate_bps", 10'000'000'000}}}}}));
  EXPECT_EQ(ask("GET", {"v1", "jobs", "j2"}).second, jobs[1]);
  EXPECT_EQ(ask("GET", {"v1", "jobs", "j2", "plan"}).second, jobs[1]["plan"]);
  EXPECT_EQ(ask("GET", {"v1", "plans"}).second["plans"][1], jobs[1]["plan"]);
  const Json health = ask("GET", {"v1", "health"}).second;
  EXPECT_EQ(health, (Json{{"status", "ok"}, {"jobs", 2}, {"revision", 2}, {"epoch_unix_ns", kEpoch}}));

  const auto [gone, departure] = ask("DELETE", {"v1", "jobs", "j1"});
  EXPECT_EQ(gone, 200);
  EXPECT_EQ(departure["id"], "j1");
  EXPECT_EQ(departure["moves"][0]["slots"], false);
  EXPECT_THAT(error(404, "DELETE", {"v1", "jobs", "j1"}), HasSubstr("no job \"j1\" runs"));
  EXPECT_THAT(error(404, "GET", {"v1", "jobs", "j1"}), HasSubstr("no job \"j1\" runs"));
  EXPECT_THAT(error(404, "GET", {"v1", "jobs", "j1", "plan"}), HasSubstr("no job \"j1\" runs"));
}

TEST_F(api, metrics__count_jobs_plans_and_what_was_refused) {
  EXPECT_THAT(metrics(), HasAll("\nmltcp_scheduler_jobs 0\n", "# TYPE mltcp_scheduler_requests_total counter\n",
                                "\nmltcp_scheduler_plans_total{operation=\"arrive\"} 0\n"));
  ask("POST", {"v1", "jobs"}, R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}");
  ask("POST", {"v1", "jobs"}, R"({"id": "j2", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}");
  // A repeated request for the known job j2 does not count as an arrival. Job "by-slurm" counts, although it arrives
  // without an HTTP request.
  ask("POST", {"v1", "jobs"}, R"({"id": "j2", "workers": 2, "hosts": ["a1", "b1"], )" + profile + "}");
  JobRequest other = service_.jobs().front().request;
  other.id = "by-slurm";
  service_.arrive(other);
  service_.depart("by-slurm");
  ask("POST", {"v1", "placements"}, R"({"id": "j3", "workers": 2, )" + profile + "}");
  ask("DELETE", {"v1", "jobs", "j1"});
  ask("DELETE", {"v1", "jobs", "j1"});
  ask("POST", {"v1", "jobs"}, "{}");
  const std::string text = metrics();
  for (const char* const line :
       {"jobs 1", "jobs_with_slots 0", "hosts 8", "free_slots 30", "revision 5", "plans_total{operation=\"arrive\"} 3",
        "plans_total{operation=\"depart\"} 2", "plans_total{operation=\"rank\"} 1",
        "planning_seconds_total{operation=\"arrive\"} 0.003", "longest_planning_seconds{operation=\"arrive\"} 0.001",
        "requests_total{status=\"200\"} 4", "requests_total{status=\"201\"} 2", "requests_total{status=\"404\"} 1",
        "requests_total{status=\"400\"} 1"})
    EXPECT_THAT(text, HasSubstr(fmt::format("\nmltcp_scheduler_{}\n", line)));
  EXPECT_EQ(error(405, "POST", {"metrics"}), "\"POST\" is not for \"/metrics\"; use GET");
}

TEST_F(api, placements__are_ranked_and_nothing_changes) {
  ask("POST", {"v1", "jobs"},
      R"({"id": "j1", "workers": 2, "hosts": ["a1", "b1"], )"
      R"("profile": {"compute_ns": 20000000, "communicate_bytes": 100000000}})");
  const auto [status, ranked] =
      ask("POST", {"v1", "placements"},
          R"({"id": "j2", "workers": 2, "placements": [{"hosts": ["a2", "b2"]}, {"hosts": ["a2", "a3"]}], )" + profile +
              "}");
  EXPECT_EQ(status, 200) << ranked;
  ASSERT_THAT(ranked["placements"], SizeIs(2));
  EXPECT_EQ(ranked["placements"][0]["hosts"], (Json{"a2", "a3"}));
  EXPECT_EQ(ranked["placements"][0]["score"], 1);
  EXPECT_FALSE(ranked["placements"][0].contains("worst_link"));
  const Json& worse = ranked["placements"][1];
  for (const char* const key : {"kind", "score", "upper_bound", "optimal", "excess", "stretch", "own_score",
                                "worst_link", "time_shift_ns", "slot_period_ns", "moves"})
    EXPECT_TRUE(worse.contains(key)) << key;
  EXPECT_THAT(ask("POST", {"v1", "placements"}, R"({"id": "j2", "workers": 2, "candidates": 3, )" + profile + "}")
                  .second["placements"],
              SizeIs(3));
  EXPECT_EQ(service_.revision(), 1U);
}

TEST_F(api, topology__tells_hosts_and_their_room) {
  service_.arrive(job("one"), {"a1", "b1"});
  const Json topology = ask("GET", {"v1", "topology"}).second;
  EXPECT_EQ(topology["slots_per_host"], 4);
  EXPECT_EQ(topology["racks"], 2);
  ASSERT_THAT(topology["hosts"], SizeIs(8));
  EXPECT_EQ(topology["hosts"][0], (Json{{"name", "a1"}, {"rack", 0}, {"free_slots", 3}}));
}

TEST_F(api, bad_requests__get_a_status_and_one_line) {
  service_.arrive(job("there", 100_ms, 40_ms), {"a1", "b1"});
  const auto post = [&](int status, const std::string& body) { return error(status, "POST", {"v1", "jobs"}, body); };
  EXPECT_THAT(post(400, ""), HasSubstr("body: not JSON"));
  EXPECT_THAT(post(400, "{"), HasSubstr("body: not JSON"));
  EXPECT_THAT(post(400, "nul"), HasSubstr("body: not JSON"));
  EXPECT_THAT(post(400, "\"\xff\""), HasSubstr("body: not JSON"));
  EXPECT_THAT(post(400, std::string(100'000, '[')), HasSubstr("nests more than 40 levels deep"));
  EXPECT_THAT(post(400, "[" + std::string(1'000'001, ',') + "]"), HasSubstr("has more than 1000000 values"));
  EXPECT_THAT(post(400, "{}"), HasSubstr("body: id is missing; docs/reference/scheduler-api.md"));
  EXPECT_THAT(post(400, R"({"id": 5, "workers": 2, "profile": {}})"), HasSubstr("body: id is not a text"));
  EXPECT_THAT(post(400, R"({"id": "x", "profile": {}})"), HasSubstr("body: workers is missing"));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2})"), HasSubstr("body: profile is missing"));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2, "profile": 1})"), HasSubstr("body: profile is not an object"));
  EXPECT_THAT(post(400, R"({"id": "x", "worker": 2})"), HasSubstr("did you mean \"workers\"?"));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2, "hosts": [], )" + profile + "}"),
              HasSubstr("hosts is empty; name the host of every worker"));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2, "hosts": [1, 2], )" + profile + "}"),
              HasSubstr("hosts[0] is not a text"));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2, "hosts": ["a1", "zz"], )" + profile + "}"),
              HasSubstr("no host is called \"zz\""));
  EXPECT_THAT(post(400, R"({"id": "x", "workers": 2, "assume_room": true, )" + profile + "}"),
              HasSubstr("give hosts, too"));
  EXPECT_THAT(post(400, R"({"id": "slurm-17-1764063600", "workers": 2, )" + profile + "}"),
              HasSubstr("body: id has the form of Slurm's jobs"));
  EXPECT_THAT(post(400, R"({"id": "a b", "workers": 2, )" + profile + "}"), HasSubstr("is no id of a job"));
  EXPECT_THAT(post(409, R"({"id": "x", "workers": 33, )" + profile + "}"), HasSubstr("there is room for 30"));
  EXPECT_THAT(post(409, R"({"id": "there", "workers": 3, )" + profile + "}"), HasSubstr("runs already"));
  EXPECT_THAT(
      error(400, "POST", {"v1", "placements"}, R"({"id": "x", "workers": 2, "candidates": 0, )" + profile + "}"),
      HasSubstr("candidates is not a whole number from 1 to 1000"));
  EXPECT_THAT(error(400, "POST", {"v1", "placements"},
                    R"({"id": "x", "workers": 2, "candidates": 5, "placements": [], )" + profile + "}"),
              HasSubstr("give one of the two"));

  EXPECT_THAT(error(404, "GET", {}), HasSubstr("there is nothing at \"/\""));
  EXPECT_THAT(error(404, "GET", {"v2", "jobs"}), HasSubstr("\"/v2/jobs\""));
  EXPECT_THAT(error(404, "GET", {"v1", "jobs", ""}), HasSubstr("no job \"\""));
  EXPECT_THAT(error(405, "DELETE", {"v1", "jobs"}), HasSubstr("use GET, POST"));
  EXPECT_THAT(error(405, "POST", {"v1", "health"}), HasSubstr("use GET"));
  EXPECT_THAT(error(405, "GET", {"kubernetes", "filter"}), HasSubstr("use POST"));
  EXPECT_THAT(error(400, "GET", {"v1", "jobs"}, "", {{"x", "1"}}), HasSubstr("parameter \"x\" is not known"));
  EXPECT_THAT(error(400, "GET", {"v1", "jobs", "there", "plan"}, "", {{"after", "-1"}}),
              HasSubstr("parameter after: \"-1\" is out of range"));
  EXPECT_THAT(error(400, "GET", {"v1", "jobs", "there", "plan"}, "", {{"wait_ms", "300001"}}),
              HasSubstr("from 0 to 300000"));
  EXPECT_EQ(service_.revision(), 1U) << "and nothing has changed";
}

// Each of these requests would take more than a minute if the time grew with the square of the request's length.
TEST_F(api, long_requests__take_time_in_proportion) {
  std::string members = "{\"0\": 0";
  for (int i = 1; i < 200'000; ++i) members += fmt::format(",\"{}\":0", i);
  EXPECT_THAT(error(400, "POST", {"v1", "jobs"}, members + "}"), HasSubstr("body: 0 is not known"));
  std::string objects = "{\"id\": [{}";
  for (int i = 1; i < 400'000; ++i) objects += ",{}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error(400, "POST", {"v1", "jobs"}, objects + "]}"), HasSubstr("body: id is not a text"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(api, plan__is_waited_for_until_it_changes) {
  service_.arrive(job("one"), {"a1", "b1"});
  const ApiRequest request{"GET", {"v1", "jobs", "one", "plan"}, {{"after", "1"}, {"wait_ms", "100"}}, ""};
  EXPECT_TRUE(api_.answer(request, 0_ns).wait);
  EXPECT_FALSE(api_.answer(request, 0_ns, false).wait);
  service_.arrive(job("two"), {"a2", "b2"});
  EXPECT_FALSE(api_.answer(request, 0_ns).wait) << "it is there";
}

TEST_F(api, target__is_decoded_part_by_part) {
  const auto ask_for = [&](const std::string& method, const std::string& target) {
    const ApiAnswer answer = api_.answer(request_of(method, target, ""), 0_ns);
    return std::pair(answer.status, Json::parse(answer.body));
  };
  service_.arrive(job("default/train"), {"a1", "b1"});
  EXPECT_EQ(ask_for("GET", "/v1/jobs/default%2Ftrain").second["id"], "default/train");
  EXPECT_EQ(ask_for("GET", "/v1/jobs/default%2Ftrain/plan?after=0").second["number"], 1);
  EXPECT_EQ(ask_for("GET", "/v1/jobs/default%2Ftrain/plan?after=x").first, 400);
  EXPECT_EQ(ask_for("GET", "/v1/jobs/default%2Ftrain/plan?x").first, 400);
  EXPECT_EQ(ask_for("GET", "/v1/jobs/default/train").first, 404);
  EXPECT_EQ(ask_for("DELETE", "/v1/jobs/default%2Ftrain").first, 200);
  for (const std::string path : {"", "/", "/%00", "/%", "/%zz", "/%ff%fe", "/v1/jobs/%0a%0d", "//", "/v1//jobs",
                                 "/../v1/jobs", "v1", "http://x/v1/jobs"})
    EXPECT_EQ(ask_for("GET", path).first, 404) << path;
}

}  // namespace
}  // namespace mltcp::service::api_test
