// Tests plan files: the values read, that every refusal names its field, and how a watcher handles a file that changes.
#include "mltcp/lab/experiment/files/plan_file.h"
#include "../../temporary_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../../damaged.h"
#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment {
namespace {

PlanFile some_plan(std::uint64_t serial = 1) {
  PlanFile plan;
  plan.serial = serial;
  plan.epoch = Nanos(500);
  plan.valid_until = Nanos(90'000'000'000);
  plan.clock_bound = Nanos(10'000);
  plan.tolerance = 0.04;
  plan.correction = PhasePlan::Correction::gradual;
  plan.gradual_step = 0.2;
  plan.jobs = {{"a", Nanos(100'000'000), Nanos(20'000'000)}, {"b \"ü\"", Nanos(50'000'000), Nanos(0)}};
  return plan;
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_plan(text, "p.json"); });
}

/// Returns the plan's text with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_json(some_plan());
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

testing::Matcher<std::string> error_at(const std::string& field, const std::string& cause) {
  return AllOf(StartsWith("p.json: " + field), HasSubstr(cause), HasSubstr("; "), Not(HasSubstr("\n")));
}

class PlanFiles : public testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "plan.json";
};

TEST(PlanFile, round_trip__keeps_everything) {
  EXPECT_EQ(parse_plan(to_json(some_plan()), "p.json"), some_plan());
  PlanFile plan;
  plan.clock = PlanFile::Clock::realtime;
  EXPECT_EQ(parse_plan(to_json(plan), "p.json"), plan);
  Provenance provenance;
  provenance.version = "1.0";
  provenance.files = {{"e.toml", std::string(64, '0'), 2, "\n\n"}};
  EXPECT_NE(to_json(plan, provenance).find("\"version\": \"1.0\""), std::string::npos);
  EXPECT_EQ(parse_plan(to_json(plan, provenance), "p.json"), plan) << "where it comes from is no part of it";
}

TEST(PlanFile, parse__has_defaults) {
  const PlanFile plan = parse_plan(
      R"({"schema": "mltcp.plan/1", "serial": 3, "clock": "experiment", "epoch_ns": 0,
          "jobs": [{"name": "a", "period_ns": 7, "offset_ns": 9}]})",
      "p.json");
  EXPECT_EQ(plan.tolerance, 0.05);
  EXPECT_EQ(plan.correction, PhasePlan::Correction::at_once);
  EXPECT_TRUE(plan.valid_until.is_never());
  EXPECT_EQ(plan.clock_bound, Nanos(0));
}

TEST(PlanFile, slots__are_on_the_readers_clock) {
  const PlanFile plan = some_plan();
  const PhasePlan slots = slots_of(plan, plan.jobs[0], Nanos(1'000'000'000));
  EXPECT_EQ(slots.slot, Nanos(1'020'000'500));
  EXPECT_EQ(slots.period, Nanos(100'000'000));
  EXPECT_EQ(slots.valid_until, Nanos(91'000'000'000));
  EXPECT_EQ(slots.clock_bound, Nanos(10'000));
  EXPECT_EQ(slots.tolerance, 0.04);
  EXPECT_EQ(slots.correction, PhasePlan::Correction::gradual);
  EXPECT_EQ(slots.gradual_step, 0.2);
  PlanFile for_ever = plan;
  for_ever.valid_until = Nanos::never();
  EXPECT_TRUE(slots_of(for_ever, plan.jobs[0], Nanos(5)).valid_until.is_never());
}

TEST(PlanFile, parse__names_file_field_cause_and_cure) {
  EXPECT_THAT(refusal("{"), error_at("not JSON, line 1, column 2: ", "unexpected end"));
  EXPECT_THAT(refusal("{\"serial\": 1,\n x}"), error_at("not JSON, line 2, column 2: ", "invalid literal"));
  EXPECT_THAT(refusal("{\"serial\": 1e999}"), error_at("not JSON, number overflow", "1e999"));
  EXPECT_THAT(refusal("{} {}"), Not(HasSubstr("json.exception")));
  EXPECT_THAT(refusal(changed("{\n      \"name\": \"a\"", "5, {\n      \"name\": \"a\"")),
              error_at("jobs[0] is not an object", "docs/reference/plan-file.md"));
  EXPECT_THAT(refusal("[]"), error_at("it", "is not an object"));
  EXPECT_THAT(refusal(changed("mltcp.plan/1", "mltcp.plan/2")), error_at("schema", "write \"mltcp.plan/1\""));
  EXPECT_THAT(refusal(changed("\"serial\": 1", "\"serial\": -1")), error_at("serial", "whole number from 0 to"));
  EXPECT_THAT(refusal(changed("\"serial\": 1,", "")), error_at("serial", "is missing"));
  EXPECT_THAT(refusal(changed("\"experiment\"", "\"utc\"")), error_at("clock", "\"realtime\""));
  EXPECT_THAT(refusal(changed("\"epoch_ns\": 500", "\"epoch_ns\": 1e3")), error_at("epoch_ns", "whole number"));
  EXPECT_THAT(refusal(changed("\"epoch_ns\": 500", "\"epoch_ns\": 18446744073709551615")),
              error_at("epoch_ns", "whole number from 0 to"));
  EXPECT_THAT(refusal(changed("0.04", "\"much\"")), error_at("tolerance", "is not a number"));
  EXPECT_THAT(refusal(changed("0.04", "0.9")), error_at("job \"a\": ", "tolerance is 0.9"));
  EXPECT_THAT(refusal(changed("\"gradual\"", "\"slow\"")), error_at("correction", "\"at-once\""));
  EXPECT_THAT(refusal(changed("\"clock_bound_ns\": 10000", "\"clock_bound_ns\": 3000000")),
              error_at("job \"b ", "more than the tolerance"));
  EXPECT_THAT(refusal(changed("\"period_ns\": 100000000", "\"period_ns\": 0")),
              error_at("jobs[0].period_ns", "from 1 to"));
  EXPECT_THAT(refusal(changed("\"period_ns\"", "\"perod_ns\"")),
              error_at("jobs[0].perod_ns", "did you mean \"period_ns\"?"));
  EXPECT_THAT(refusal(changed("\"tolerance\"", "\"tolerence\"")), error_at("tolerence", "is not known"));
  EXPECT_THAT(refusal(changed("\"b \\\"ü\\\"\"", "\"a\"")), error_at("jobs[1].name", "the name of an earlier job"));
  EXPECT_THAT(refusal(changed("\"name\": \"a\"", "\"name\": 5")), error_at("jobs[0].name", "is not a text"));
  EXPECT_THAT(refusal(changed("\"serial\": 1,", "\"serial\": 1, \"serial\": 2,")),
              error_at("an object", "twice; give each key once"));
  EXPECT_THAT(refusal(changed("\"period_ns\": 100000000", "\"period_ns\": 100000000, \"period_ns\": 1")),
              error_at("an object", "twice; give each key once"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), error_at("nests", "nests more than 8 levels deep"));
  std::string many = "[0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  EXPECT_THAT(refusal(many), error_at("has more", "has more than 1000000 values"));
}

// Damaged text is either accepted as a plan or refused with one clear line.
TEST(PlanFile, parse__takes_or_refuses_damaged_text) {
  const std::string good = to_json(some_plan());
  Random random(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string error = refusal(damaged(good, random));
    if (error == "no error") continue;
    ++refused;
    ASSERT_THAT(error, AllOf(StartsWith("p.json: "), Not(HasSubstr("\n"))));
  }
  EXPECT_GT(refused, 2000);
}

TEST_F(PlanFiles, write__replaces_and_leaves_nothing_beside) {
  write_plan(some_plan(1), file);
  write_plan(some_plan(2), file);
  EXPECT_EQ(read_plan(file), some_plan(2));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
  const std::filesystem::path other = file.parent_path() / "other";
  std::ofstream(other) << "other";
  std::filesystem::create_symlink(other, file.string() + "." + std::to_string(getpid()));
  write_plan(some_plan(3), file);
  EXPECT_EQ(std::filesystem::file_size(other), 5U) << "nobody can know where it is written first";
  EXPECT_THROW(write_plan(some_plan(), file / "not a folder" / "plan"), RunError);
  EXPECT_THROW(read_plan(file.parent_path() / "none.json"), InputError);
}

TEST_F(PlanFiles, watcher__takes_newer_serials_and_keeps_the_last_good_plan) {
  PlanWatcher watcher(file);
  EXPECT_EQ(watcher.poll(Nanos(0)), PlanWatcher::News::none);
  EXPECT_FALSE(watcher.plan().has_value());
  write_plan(some_plan(4), file);
  EXPECT_EQ(watcher.poll(Nanos(99'999'999)), PlanWatcher::News::none) << "looks every 100 ms";
  EXPECT_EQ(watcher.poll(Nanos(100'000'000)), PlanWatcher::News::plan);
  EXPECT_EQ(watcher.plan()->serial, 4U);
  EXPECT_EQ(watcher.poll(Nanos(200'000'000)), PlanWatcher::News::none);
  EXPECT_THAT(watcher.take_problems(), IsEmpty());

  std::ofstream(file) << "{ broken";
  EXPECT_EQ(watcher.poll(Nanos(300'000'000)), PlanWatcher::News::none);
  EXPECT_EQ(watcher.poll(Nanos(400'000'000)), PlanWatcher::News::none);
  EXPECT_THAT(watcher.take_problems(), ElementsAre(HasSubstr("the plan with serial 4 still applies"))) << "said once";
  EXPECT_EQ(watcher.plan()->serial, 4U);

  PlanFile other = some_plan(4);
  other.jobs[0].offset = Nanos(1);
  write_plan(other, file);
  EXPECT_EQ(watcher.poll(Nanos(500'000'000)), PlanWatcher::News::none);
  EXPECT_THAT(watcher.take_problems(), ElementsAre(HasSubstr("increase serial")));
  other.serial = 5;
  write_plan(other, file);
  EXPECT_EQ(watcher.poll(Nanos(600'000'000)), PlanWatcher::News::plan);
  EXPECT_EQ(watcher.plan()->jobs[0].offset, Nanos(1));

  std::filesystem::remove(file);
  EXPECT_EQ(watcher.poll(Nanos(700'000'000)), PlanWatcher::News::gone);
  EXPECT_FALSE(watcher.plan().has_value());
  EXPECT_EQ(watcher.poll(Nanos(800'000'000)), PlanWatcher::News::none);
  EXPECT_THAT(watcher.take_problems(), ElementsAre(HasSubstr("the file was removed")));
  write_plan(some_plan(2), file);
  EXPECT_EQ(watcher.poll(Nanos(900'000'000)), PlanWatcher::News::plan) << "a new beginning";
}

}  // namespace
}  // namespace mltcp::experiment
