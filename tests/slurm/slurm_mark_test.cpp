#include "mltcp/scheduler/service/slurm_mark.h"

#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::service {
namespace {

using namespace literals;

const std::string profile = R"({"compute_ns":150000000,"communicate_bytes":13500000})";

TEST(slurm_mark, as_job_submit_writes_it__is_read) {
  const auto mark = parse_mark("mltcp:{\"profile\":" + profile + "}");
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->profile, profile);
  EXPECT_FALSE(mark->plan);
  EXPECT_EQ(mark->reason, "");
  EXPECT_EQ(parse_mark("mltcp:{\"profile\":" + profile + ",\"reason\":\"it does not run\"}")->reason,
            "it does not run");
}

TEST(slurm_mark, with_all_that_it_may_have__comes_back) {
  SlurmMark mark;
  mark.before = "site: {braces} ";
  mark.behind = " and \"more\"";
  mark.profile = profile;
  mark.asked_nodes = {"n0", "n7"};
  JobPlan plan;
  plan.number = 3;
  plan.hosts = {"n0", "n2"};
  plan.slots = true;
  plan.slot_unix_ns = 1'764'063'600'123'456'789;
  plan.slot_period = 200_ms;
  plan.time_shift = 5_ms;
  plan.score = 0.875;
  plan.revision = 17;
  mark.plan = to_mark(plan);
  const auto read = parse_mark(to_text(mark));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, mark);
  EXPECT_THAT(to_text(mark), HasSubstr("\"plan\":{\"number\":3,\"hosts\":[\"n0\",\"n2\"],\"slot_unix_ns\":"
                                       "1764063600123456789,\"slot_period_ns\":200000000,\"time_shift_ns\":5000000,"));
}

TEST(slurm_mark, a_plan_without_slots__says_why_in_what_a_reader_in_c_takes) {
  SlurmMark mark;
  mark.profile = profile;
  JobPlan plan;
  plan.number = 4;
  plan.reason = "the link \"a\\b\" {x}\nscores 0.9";
  mark.plan = to_mark(plan);
  const std::string text = to_text(mark);
  EXPECT_THAT(text, HasSubstr("\"reason\":\"the link 'a/b' (x)?scores 0.9\""));
  EXPECT_THAT(text, Not(HasSubstr("slot_unix_ns")));
  EXPECT_EQ(*parse_mark(text), mark);
  plan.reason.clear();
  EXPECT_FALSE(to_mark(plan).reason.empty());
}

TEST(slurm_mark, held__comes_back) {
  const std::string text = R"(mltcp:{"profile":{"communicate_bytes":1},"held":true})";
  const auto mark = parse_mark(text);
  ASSERT_TRUE(mark);
  EXPECT_TRUE(mark->held);
  EXPECT_EQ(to_text(*mark), text);
}

TEST(slurm_mark, what_is_none__is_left_alone) {
  for (const std::string& comment :
       {std::string(), std::string("mltcp"), std::string("mltcp:{"), std::string("mltcp:{}"), "mltcp:" + profile,
        std::string("mltcp:{\"profile\":{}"), std::string("mltcp:{\"profile\":{},\"plan\":{\"number\":-1}}"),
        std::string("mltcp:{\"profile\":{},\"plan\":[]}"), std::string("mltcp:{\"profile\":{},\"reason\":4}"),
        std::string("mltcp:{\"profile\":1e999}"),
        "mltcp:{\"profile\":" + std::string(50, '[') + std::string(50, ']') + "}",
        "mltcp:{\"profile\":\"" + std::string(1 << 20, 'x') + "\"}"})
    EXPECT_FALSE(parse_mark(comment)) << comment.substr(0, 100);
}

TEST(profile_line, what_mltcp_profile_prints__is_read_as_the_same) {
  const JobProfile toml = profile_from_text(
      "[[job]]\nname = \"a\"\nphases = [ { compute = \"20 ms\" }, { communicate = \"5 MB\", rate = \"500 Mbps\" }, "
      "{ communicate = \"9 MB\" } ]\nflows = 4\nrate = \"1 Gbps\"\n",
      "a.toml");
  const std::string line = to_line(toml);
  EXPECT_EQ(line, R"({"phases":[{"compute_ns":20000000},{"communicate_bytes":5000000,"rate_bps":500000000},)"
                  R"({"communicate_bytes":9000000}],"rate_bps":1000000000,"flows":4})");
  const JobProfile again = profile_from_text(line, "line");
  EXPECT_EQ(to_line(again), line);
  EXPECT_EQ(demand_of(again, Rate::from_gbps(10)), demand_of(toml, Rate::from_gbps(10)));
}

TEST(profile_line, iterations_that_are_too_short__are_refused_in_a_line) {
  const JobProfile brief = profile_from_text(R"({"communicate_bytes":1,"period_ns":1000})", "f");
  EXPECT_THAT(message_of<InputError>([&] { return to_line(brief); }), HasSubstr("give 100000 ns or more"));
}

TEST(profile_line, bad_ones__are_refused_in_a_line) {
  for (const auto& [text, what] : {std::pair{"{\"compute_ns\":1,\"communicate_bytes\":1,\"flows\":0}",
                                             "p: flows is not a whole number from 1 to 1024: 0; docs/"},
                                   {"{\"compute_ns\":1,\"communicate_bytes\":1,\"flows\":1e3}",
                                    "p: flows is not a whole number from 1 to 1024: 1000.0; docs/"},
                                   {"{\"flows\":2}", "p"},
                                   {"{\"flows\":2", "p"},
                                   {"name = 3", "p"}}) {
    const std::string said = message_of<InputError>([&] { profile_from_text(text, "p"); });
    EXPECT_THAT(said, HasSubstr(what)) << text;
    EXPECT_THAT(said, Not(HasSubstr("\n"))) << text;
  }
}

}  // namespace
}  // namespace mltcp::service
