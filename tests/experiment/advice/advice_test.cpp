// Tests advice: predictions and recommendations for jobs with known answers.
#include "mltcp/lab/experiment/advice/advice.h"

#include <nlohmann/json.hpp>
#include <string>

#include "../../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment {
namespace {

std::string job(const std::string& name, const std::string& compute, const std::string& communicate) {
  return "[[job]]\nname = \"" + name + "\"\ncompute = \"" + compute + "\"\ncommunicate = \"" + communicate + "\"\n";
}

Experiment experiment(const std::string& jobs, const std::string& network = "rate = \"1 Gbps\"") {
  return parse_experiment("[bottleneck]\n" + network + "\ndelay = \"10 us\"\nbuffer = \"75 kB\"\n" + jobs, "test.toml");
}

AdviceOptions by_flows() {
  AdviceOptions options;
  options.level = AdviceOptions::Level::flow;
  return options;
}

const Advice::Policy& policy(const Advice& advice, const std::string& name) {
  for (const Advice::Policy& each : advice.policies)
    if (each.name == name) return each;
  throw std::runtime_error("no policy " + name);
}

std::string refusal(const Experiment& of, const AdviceOptions& options) {
  return refusal_of([&] { return advise(of, options); });
}

TEST(Advice, jobs_that_collide__are_told_to_take_mltcp) {
  // Bursts take 43.2 ms and the period is 103.2 ms. In the fluid limit, the start times are uniform in the period. In
  // 84% of all cases, the jobs start within a burst of each other. They then always overlap, by half a burst on
  // average.
  const Advice advice = advise(experiment(job("a", "60 ms", "5.4 MB") + job("b", "60 ms", "5.4 MB")), by_flows());
  ASSERT_EQ(advice.policies.size(), 4U);
  const Advice::Policy& fair = policy(advice, "fair");
  const double share = advice.jobs[0].busy;
  EXPECT_NEAR(share, 43.2 / 103.2, 0.001);
  EXPECT_NEAR(fair.mean(), 1 + share * share, 0.02);
  EXPECT_FALSE(fair.packets);
  EXPECT_GT(fair.jobs[0].worst, 1.3);
  EXPECT_LT(fair.jobs[0].best, 1.02);
  EXPECT_LT(policy(advice, "mltcp").mean(), 1.02);
  EXPECT_LT(policy(advice, "schedule").mean(), 1.02);
  EXPECT_EQ(advice.recommended, "mltcp");
  EXPECT_NE(advice.sentence.find("Use mltcp: 1.0"), std::string::npos) << advice.sentence;
  EXPECT_EQ(advice.score, 1);
  EXPECT_TRUE(advice.proven);
  EXPECT_TRUE(advice.pairs.empty()) << "both are the pair";
}

TEST(Advice, jobs_that_need_little__are_told_that_nothing_is_needed) {
  const Advice advice = advise(experiment(job("a", "95 ms", "100 kB") + job("b", "95 ms", "100 kB")), by_flows());
  EXPECT_EQ(advice.recommended, "fair");
  EXPECT_NE(advice.sentence.find("nothing needs to change"), std::string::npos) << advice.sentence;
}

TEST(Advice, those_that_suffer__are_not_lost_in_the_mean) {
  // Two of six jobs collide. The other four jobs hardly send.
  std::string jobs = job("a", "60 ms", "1.9 MB") + job("b", "60 ms", "1.9 MB");
  for (const char* name : {"c", "d", "e", "f"}) jobs += job(name, "75.2 ms", "10 kB");
  const Advice advice = advise(experiment(jobs), by_flows());
  const Advice::Policy& fair = policy(advice, "fair");
  ASSERT_GT(fair.jobs[0].mean, 1.025);
  ASSERT_LT(fair.mean(), 1.02);
  EXPECT_EQ(advice.sentence.find("do not slow each other down"), std::string::npos) << advice.sentence;
  EXPECT_NE(advice.sentence.find("(\"a\" 1.0"), std::string::npos) << advice.sentence;
}

TEST(Advice, jobs_that_do_not_fit__are_told_whom_to_move) {
  // The two small jobs are compatible. The large job sends nearly always.
  const Advice advice = advise(
      experiment(job("small", "90 ms", "1.2 MB") + job("large", "1 ms", "12 MB") + job("tiny", "90 ms", "1.2 MB")),
      by_flows());
  ASSERT_EQ(advice.pairs.size(), 3U);
  EXPECT_LT(advice.score, 0.95);
  EXPECT_NE(advice.sentence.find("move \"large\" elsewhere"), std::string::npos) << advice.sentence;
  for (const Advice::Pair& pair : advice.pairs) {
    const bool good = pair.a == 0 && pair.b == 2;
    EXPECT_EQ(pair.score == 1, good) << pair.a << pair.b;
    EXPECT_LE(pair.score, pair.upper_bound);
    EXPECT_GT(pair.fair, good ? 1 : 1.04);
  }
}

TEST(Advice, one_job__has_no_competitor) {
  const Advice advice = advise(experiment(job("a", "60 ms", "5.4 MB")), by_flows());
  EXPECT_EQ(advice.recommended, "fair");
  EXPECT_NEAR(policy(advice, "fair").mean(), 1, 0.001);
}

TEST(Advice, one_job__is_run_from_one_start) {
  EXPECT_EQ(advise(experiment(job("a", "60 ms", "5.4 MB")), by_flows()).starts, 1U);
  EXPECT_EQ(advise(experiment(job("a", "60 ms", "5.4 MB") + job("b", "60 ms", "5.4 MB")), by_flows()).starts,
            kAdviceStarts);
}

TEST(Advice, small_messages__cost_packets_of_their_own) {
  Experiment one = experiment(job("a", "60 ms", "5.4 MB"));
  const workload::Phase send = {workload::Phase::Kind::communicate, {}, 1, {}, true, {}};
  one.jobs[0].phases.assign(1000, send);
  EXPECT_EQ(packets_of(one, 40), 40U * 1000 * 4);
}

TEST(Advice, an_iteration_of_very_many_phases__is_run_as_fewer) {
  Experiment one = experiment(job("a", "60 ms", "5.4 MB"));
  std::vector<workload::Phase>& phases = one.jobs[0].phases;
  const std::vector<workload::Phase> pair = phases;
  while (phases.size() < 2 * kMaxAdvicePhases) phases.insert(phases.end(), pair.begin(), pair.end());
  AdviceOptions options = by_flows();
  options.starts = 1;
  options.iterations = 2;
  const Advice advice = advise(one, options);
  ASSERT_FALSE(advice.warnings.empty());
  EXPECT_EQ(advice.warnings[0],
            "job \"a\": its iteration has 12000 phases and is simulated with 6000, each of which combines several; to "
            "simulate all phases, use mltcp run");
  EXPECT_NEAR(advice.jobs[0].busy, 43.2 / 103.2, 0.001) << "as much is computed and sent";
}

TEST(Advice, work_beyond_what_is_usual__is_less_or_refused) {
  const Experiment three =
      experiment(job("a", "60 ms", "2 MB") + job("b", "60 ms", "2 MB") + job("c", "60 ms", "2 MB"));
  AdviceOptions options = by_flows();
  options.max_work = 12 * flow_work_of(three, kAdviceIterations);
  const Advice advice = advise(three, options);
  EXPECT_LT(advice.starts, kAdviceStarts);
  EXPECT_EQ(advice.iterations, kAdviceIterations);
  bool warned = false;
  for (const std::string& warning : advice.warnings)
    warned |= warning.find("only; give --starts and --iterations to run more") != std::string::npos;
  EXPECT_TRUE(warned);
  options.max_work = flow_work_of(three, 8);
  const std::string refused = refusal(three, options);
  EXPECT_NE(refused.find("advice on 3 jobs would take"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--starts 1 --iterations 8"), std::string::npos) << refused;
  options.starts = 1;
  options.iterations = 8;
  EXPECT_EQ(advise(three, options).iterations, 8U) << "who asks for it gets it";
}

TEST(Advice, slots__of_many_bursts_of_many_jobs_are_not_looked_for) {
  Experiment three = experiment(job("a", "1 ms", "20 kB") + job("b", "60 ms", "2 MB") + job("c", "60 ms", "2 MB"));
  std::vector<workload::Phase>& phases = three.jobs[0].phases;
  const std::vector<workload::Phase> pair = phases;
  while (phases.size() < 500) phases.insert(phases.end(), pair.begin(), pair.end());
  AdviceOptions options = by_flows();
  options.starts = 1;
  options.iterations = 2;
  const Advice advice = advise(three, options);
  EXPECT_EQ(advice.policies.size(), 2U);
  EXPECT_NE(advice.warnings.back().find("no schedule: iterations of the 3 jobs have 252 bursts"), std::string::npos)
      << advice.warnings.back();
}

TEST(Advice, levels__are_as_asked_for_and_agree) {
  const Experiment pair = experiment(job("a", "20 ms", "1 MB") + job("b", "20 ms", "1 MB"));
  AdviceOptions options;
  options.starts = 4;
  options.iterations = 20;
  const Advice automatic = advise(pair, options);
  EXPECT_TRUE(policy(automatic, "fair").packets) << "few packets";
  EXPECT_TRUE(policy(automatic, "mltcp").packets);
  EXPECT_TRUE(policy(automatic, "schedule").packets);
  EXPECT_LT(policy(automatic, "turns").mean(), 1.05);
  options.level = AdviceOptions::Level::packet;
  EXPECT_EQ(to_json(advise(pair, options)), to_json(automatic));
  options.level = AdviceOptions::Level::flow;
  const Advice flows = advise(pair, options);
  EXPECT_FALSE(policy(flows, "schedule").packets);
  EXPECT_NEAR(policy(flows, "schedule").mean(), policy(automatic, "schedule").mean(), 0.01);
  EXPECT_EQ(flows.policies.size() + 1, automatic.policies.size()) << "flows do not show the queues that turns need";
  // Simulating this many packets would take hours.
  const Experiment large = experiment(job("a", "20 s", "1 TB") + job("b", "20 s", "1 TB"), "rate = \"400 Gbps\"");
  EXPECT_GT(packets_of(large, 1), 1'000'000'000U);
  EXPECT_FALSE(policy(advise(large, AdviceOptions{}), "fair").packets);
}

TEST(Advice, schedules__are_simulated_as_flows_if_packets_are_too_many_unless_traffic_follows_no_slots) {
  Experiment pair = experiment(job("a", "20 ms", "1 MB") + job("b", "20 ms", "1 MB"));
  AdviceOptions options;
  options.starts = 1;
  options.iterations = 8;
  options.max_packets = 5 * packets_of(pair, 8);
  EXPECT_TRUE(policy(advise(pair, options), "schedule").packets);
  --options.max_packets;
  const Advice part = advise(pair, options);
  EXPECT_TRUE(policy(part, "turns").packets);
  EXPECT_FALSE(policy(part, "schedule").packets);
  options.max_packets = 3 * packets_of(pair, 8) - 1;
  EXPECT_FALSE(policy(advise(pair, options), "fair").packets);
  pair.jobs[1].unaware = true;
  options.max_packets = 5 * packets_of(pair, 8) - 1;
  const Advice legacy = advise(pair, options);
  EXPECT_FALSE(policy(legacy, "fair").packets);
  EXPECT_THAT(legacy.warnings, testing::Contains(testing::HasSubstr("legacy traffic")));
}

TEST(Advice, policies_that_slow_a_job_down__are_not_recommended) {
  // Short legacy transfers fill a fifth of the link. MLTCP takes it from them.
  const Experiment both = parse_experiment(R"(cc = "dcqcn"
[bottleneck]
rate = "100 Gbps"
delay = "2 us"
buffer = "4 MB"
mtu = 9000
ecn = { kmin = "100 kB", kmax = "400 kB", pmax = 0.2 }
[[job]]
name = "a"
compute = "4 ms"
communicate = "24 MB"
[[job]]
name = "b"
compute = "4 ms"
communicate = "24 MB"
[[job]]
name = "legacy"
compute = "0.8 ms"
communicate = "2.4 MB"
unaware = true
jitter = "0.3 ms"
)",
                                           "legacy.toml");
  AdviceOptions options;
  options.starts = 2;
  options.iterations = 60;
  const Advice advice = advise(both, options);
  const Advice::Policy& fair = policy(advice, "fair");
  const Advice::Policy& mltcp = policy(advice, "mltcp");
  ASSERT_GT(mltcp.jobs[2].mean, 1.05 * fair.jobs[2].mean);
  ASSERT_LT(mltcp.mean(), fair.mean() - 0.02);
  EXPECT_NE(advice.recommended, "mltcp");
  EXPECT_NE(advice.sentence.find("slows \"legacy\" down from "), std::string::npos) << advice.sentence;
  const Advice flows = advise(both, by_flows());
  EXPECT_NE(flows.warnings.back().find("give --level packet"), std::string::npos);
}

TEST(Advice, is_the_same__on_any_number_of_threads) {
  const Experiment jobs =
      experiment(job("a", "60 ms", "5.4 MB") + job("b", "50 ms", "2 MB") + job("c", "70 ms", "1 MB"));
  AdviceOptions options = by_flows();
  options.threads = 1;
  const std::string one = to_json(advise(jobs, options));
  options.threads = 3;
  EXPECT_EQ(to_json(advise(jobs, options)), one);
}

TEST(Advice, mean_over_even_starts__varies_less_than_over_random_ones) {
  const Experiment three =
      experiment(job("a", "70 ms", "3 MB") + job("b", "70 ms", "3 MB") + job("c", "70 ms", "3 MB"));
  AdviceOptions options = by_flows();
  options.jitter = 0;
  options.starts = 400;
  options.iterations = 4;
  const double reference = policy(advise(three, options), "fair").mean();
  for (const std::uint32_t starts : {8U, 16U, 32U}) {
    options.starts = starts;
    EXPECT_NEAR(policy(advise(three, options), "fair").mean(), reference, 0.03) << starts;
  }
}

TEST(Advice, a_user_who_stops__is_obeyed) {
  AdviceOptions options = by_flows();
  options.stop = [] { return true; };
  EXPECT_THROW((void)advise(experiment(job("a", "60 ms", "5.4 MB")), options), RunError);
}

TEST(Advice, options_out_of_range__are_refused) {
  const Experiment one = experiment(job("a", "60 ms", "5.4 MB"));
  AdviceOptions options = by_flows();
  options.starts = 0;
  EXPECT_EQ(refusal(one, options), "advice: the number of starts is out of range; it is 1 to 1000");
  options = by_flows();
  options.iterations = 1;
  EXPECT_EQ(refusal(one, options), "advice: the number of iterations is out of range; it is 2 to 1000000");
  options = by_flows();
  options.jitter = -0.1;
  EXPECT_NE(refusal(one, options).find("jitter is out of range"), std::string::npos);
}

TEST(Advice, as_json__says_all) {
  const Advice advice = advise(
      experiment(job("a", "60 ms", "5.4 MB") + job("b", "60 ms", "5.4 MB") + job("c", "90 ms", "1 MB")), by_flows());
  const auto json = nlohmann::json::parse(to_json(advice));
  EXPECT_EQ(json["schema"], "mltcp.advice/1");
  EXPECT_EQ(json["policies"].size(), 4U);
  EXPECT_EQ(json["policies"][1]["policy"], "mltcp");
  EXPECT_EQ(json["policies"][1]["datapath"], "flow");
  EXPECT_EQ(json["policies"][1]["jobs"][2]["name"], "c");
  EXPECT_EQ(json["policies"][1]["jobs"][2]["slowdown"], advice.policies[1].jobs[2].mean);
  EXPECT_EQ(json["pairs"][1]["jobs"], (nlohmann::json{"a", "c"}));
  EXPECT_EQ(json["jobs"][0]["isolated_ns"], advice.jobs[0].isolated.count);
  EXPECT_EQ(json["recommended"], advice.recommended);
}

}  // namespace
}  // namespace mltcp::experiment
