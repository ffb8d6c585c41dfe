// Tests how the service reads job profiles, which come from untrusted senders.
#include "mltcp/scheduler/service/job_profile.h"

#include "../matchers.h"
#include "../workload/phases.h"
#include "mltcp/lab/workload/inspection.h"
#include "services.h"

namespace mltcp::service::job_profile_test {
namespace {

using namespace testing_services;
using scheduler::Burst;
using scheduler::Demand;

constexpr Rate kTenGbps(10'000'000'000);

Demand demand_from(const std::string& json) { return demand_of(profile_from_json(json, "profile"), kTenGbps); }

TEST(job_profile, compute_and_communicate__become_a_burst_behind_a_silence) {
  // 12.5 MB take 10 ms at 10 Gbps.
  EXPECT_EQ(demand_from(R"({"compute_ns": 30000000, "communicate_bytes": 12500000})"),
            (Demand{40_ms, {{30_ms, 40_ms, kTenGbps}}}));
  EXPECT_EQ(demand_from(R"({"communicate_bytes": 12500000})"), (Demand{10_ms, {{0_ms, 10_ms, kTenGbps}}}));
  EXPECT_EQ(demand_from(R"({"communicate_bytes": 12500000, "rate_bps": 1000000000})"),
            (Demand{100_ms, {{0_ms, 100_ms, Rate(1'000'000'000)}}}));
  EXPECT_EQ(demand_from(R"({"communicate_bytes": 12500000, "rate_bps": 90000000000})").bursts[0].rate, kTenGbps)
      << "no faster than its hosts";
}

TEST(job_profile, phases__keep_their_order_and_rates) {
  const Demand demand = demand_from(
      R"({"phases": [{"compute_ns": 5000000}, {"communicate_bytes": 12500000}, {"compute_ns": 5000000},
                     {"communicate_bytes": 1250000, "rate_bps": 1000000000}]})");
  EXPECT_EQ(demand.period, 30_ms);
  EXPECT_EQ(demand.bursts, (std::vector<Burst>{{5_ms, 15_ms, kTenGbps}, {20_ms, 30_ms, Rate(1'000'000'000)}}));
}

TEST(job_profile, period__of_a_measured_iteration_stretches_it) {
  EXPECT_EQ(demand_from(R"({"compute_ns": 30000000, "communicate_bytes": 12500000, "period_ns": 80000000})"),
            (Demand{80_ms, {{60_ms, 80_ms, kTenGbps}}}));
  EXPECT_THAT(refusal_of([] {
                demand_from(R"({"compute_ns": 30000000, "communicate_bytes": 12500000, "period_ns": 39999999})");
              }),
              HasSubstr("does not fit"));
}

TEST(job_profile, bursts_and_iterations__are_bounded) {
  std::string phases;
  for (int i = 0; i < 1000; ++i)
    phases += R"({"compute_ns": 100000}, {"communicate_bytes": )" + std::to_string(10'000 + i) + "},";
  phases.pop_back();
  const scheduler::Demand demand = demand_from("{\"phases\": [" + phases + "]}");
  EXPECT_EQ(demand.bursts.size(), kMaxDemandBursts);
  for (const char* const more : {R"("period_ns": 99999)", R"("rate_bps": 1000000000)"})
    EXPECT_THAT(
        refusal_of([&] { static_cast<void>(demand_from("{\"communicate_bytes\": 10, " + std::string(more) + "}")); }),
        HasSubstr("give one of 100000 ns or more"));
}

TEST(job_profile, toml__as_inspect_prints_it_is_the_job) {
  workload::Job written;
  written.name = "vgg";
  written.phases = {workload::computes(30_ms), workload::sends(12'500'000)};
  written.phases[1].label = "conv1 ]]";
  written.rate = Rate(5'000'000'000);
  const std::string toml = workload::to_toml(written);
  const JobProfile read = profile_from_text(toml, "profile");
  EXPECT_EQ(read.job.name, "vgg");
  EXPECT_EQ(read.job.rate, written.rate);
  EXPECT_EQ(demand_of(read, kTenGbps), (Demand{50_ms, {{30_ms, 50_ms, Rate(5'000'000'000)}}}));
  EXPECT_EQ(demand_of(profile_from_text("compute = \"30 ms\"\ncommunicate = \"12.5 MB\"", "profile"), kTenGbps),
            (Demand{40_ms, {{30_ms, 40_ms, kTenGbps}}}))
      << "its keys alone";
}

TEST(job_profile, traces_and_csv__are_read_from_their_text) {
  const std::string layers =
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 1\\n1\\n"
      "one -1 5000 NONE 0 5000 NONE 0 5000 ALLREDUCE 8388608 10\\n";
  const Demand traced = demand_from(R"({"trace": {"text": ")" + layers + R"(", "workers": 4}})");
  // In a ring of four, each rank sends 2 * 3/4 of the 8388608 bytes.
  EXPECT_NEAR(scheduler::bits(traced), 8.0 * 8'388'608 * 1.5, 64);
  // In this recording, two ranks run an all-reduce once in 2 ms. Each rank sends as many bytes as its buffer has.
  const Demand recorded = demand_from(
      R"({"trace": {"text": "{\"traceEvents\": [)"
      R"({\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"ts\": 1000, \"dur\": 2000},)"
      R"({\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce(x)\", \"tid\": 7, \"ts\": 2000,)"
      R"( \"dur\": 500, \"args\": {\"Collective name\": \"allreduce\", \"In msg nelems\": 250000,)"
      R"( \"Group size\": 2, \"dtype\": \"Float\"}}]}"}})");
  EXPECT_NEAR(scheduler::bits(recorded), 8e6, 64);
  const Demand measured = demand_from(R"({"csv": "time_ms,rate_bps\n0,0\n150,1e9\n258,0\n"})");
  EXPECT_EQ(measured.period, 258_ms);
  EXPECT_EQ(measured.bursts, (std::vector<Burst>{{150_ms, 258_ms, Rate(1'000'000'000)}}));
}

TEST(job_profile, bad_input__is_refused_with_one_line) {
  const std::string many(10'001, 'x');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "profile: not JSON"},
      {"[]", "profile: it is not an object"},
      {"{", "profile: not JSON"},
      {"{\"compute_ns\": 1e400, \"communicate_bytes\": 1}", "profile: not JSON"},
      {"{\"a\xff\": 1}", "profile: not JSON"},
      {"{}", "it is no profile of a job; give compute_ns"},
      {R"({"compute_ns": 5})", "it is no profile of a job; give compute_ns"},
      {R"({"communicate_bytes": 0})", "communicate_bytes is not a whole number from 1 to"},
      {R"({"communicate_bytes": -1})", "is not a whole number from 1 to"},
      {R"({"communicate_bytes": 1.5})", "is not a whole number from 1 to"},
      {R"({"communicate_bytes": "12"})", "is not a whole number from 1 to"},
      {R"({"communicate_bytes": 18446744073709551616})", "is not a whole number from 1 to"},
      {R"({"communicate_bytes": 1, "compute_ns": 86400000000001})", "is not a whole number from 0 to"},
      {R"({"communicate_bytes": 1, "compute": 5})", "compute is not known; the keys here are compute_ns, "},
      {R"({"communicate_bytes": 1, "compute_n": 5})", "compute_n is not known; did you mean \"compute_ns\"?"},
      {R"({"communicate_bytes": 1, "communicate_bytes": 2})",
       "the key \"communicate_bytes\" twice; give each key once"},
      {R"({"communicate_bytes": 1, "phases": []})", "phases can't be given together with communicate_bytes; keep one"},
      {R"({"communicate_bytes": 1, "rate_bps": 0})", "rate_bps is not a whole number from 1 to"},
      {R"({"phases": []})", "the job sends nothing"},
      {R"({"phases": [1]})", "phases[0] is not an object"},
      {R"({"phases": [{}]})", "phases[0] needs compute_ns or communicate_bytes, and not both; give one of the two"},
      {R"({"phases": [{"compute_ns": 1, "rate_bps": 5}]})", "rate_bps applies to communication"},
      {R"({"phases": [{"communicate_bytes": 1, "overlap": 1}]})", "overlap is not true or false"},
      {R"({"phases": [[[[[[[[[]]]]]]]]]})", "nests more than 8 levels deep"},
      {R"({"toml": 5})", "toml is not a text"},
      {R"({"toml": ""})", "toml:1: job: the text is empty"},
      {R"({"toml": "name = "})", "profile: toml:1"},
      {R"({"toml": "[[job]]\n[[job]]\n"})", "there are 2 jobs"},
      {R"({"toml": "trace = \"/etc/passwd\""})", "files are not read here"},
      {R"({"toml": "profile = \"/etc/passwd\""})", "files are not read here"},
      {R"({"toml": "cc = \"/tmp/evil.so\"\ncommunicate = \"1 MB\""})", "the program chooses its congestion control"},
      {R"({"toml": "pattern = \"all-reduce\""})", "write the phases of one worker"},
      {R"({"toml": "hosts = [1, 2]\ncommunicate = \"1 MB\""})", "hosts are chosen"},
      {R"({"toml": "compute = \"1 ms\""})", "the key is missing, so the job sends nothing"},
      {R"({"trace": {"text": ""}})", "profile: trace.text"},
      {R"({"trace": {"text": "x", "workers": 1}})", "workers is not a whole number from 2 to"},
      {R"({"trace": {"text": "x", "network": "moon"}})", "network is not known"},
      {R"({"trace": {"text": "x", "bytes_scale": 0}})", "bytes_scale is not a number from"},
      {R"({"trace": {"text": "{\"traceEvents\": []}"}})", "profile: trace.text"},
      {R"({"trace": {"text": "Nodes 2\nConnections 1\n0->1 start 0 size 9\n", "network": "all"}})",
       "profile: trace.network does not apply to a trace that records the sent bytes; leave it out"},
      {R"({"csv": "nonsense"})", "profile: csv"},
      {R"({"toml": ")" + many + "\"}", "profile: toml"},
  };
  for (const auto& [json, says] : cases)
    EXPECT_THAT(refusal_of([&, &text = json] { return demand_from(text); }), HasSubstr(says)) << json.substr(0, 80);
  EXPECT_THAT(
      refusal_of([] { static_cast<void>(profile_from_text(std::string(kMaxProfileBytes + 1, '#'), "profile")); }),
      HasSubstr("give at most 1048576"));
}

}  // namespace
}  // namespace mltcp::service::job_profile_test
