// Tests tables of jobs that ran on clusters: the values read, and the jobs that are left out and reported.
#include "mltcp/lab/workload/traces/job_table.h"

#include "../../message_of.h"

namespace mltcp::workload {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr Nanos kJune(1'590'969'600 * kSecond);  // 2020-06-01

const std::string head =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n";

/// Returns a row of a Helios table. Times without a date are on the first of June 2020.
std::string helios_row(const std::string& gpus, const std::string& submit, const std::string& start,
                       const std::string& end, const std::string& state = "COMPLETED", const std::string& vc = "vcA") {
  const auto time = [](const std::string& text) { return text.size() == 8 ? "2020-06-01 " + text : text; };
  return "1,uA," + vc + "," + gpus + ",4,1," + state + "," + time(submit) + "," + time(start) + "," + time(end) +
         ",9,0\n";
}

std::string philly_job(const std::string& attempts, const std::string& status = "Pass") {
  return R"({"status": ")" + status + R"(", "vc": "a", "jobid": "j", "attempts": [)" + attempts +
         R"(], "submitted_time": "2020-06-01 00:00:10", "user": "u"})";
}

std::string attempt(const std::string& start, const std::string& end, const std::string& gpus = R"(["gpu0", "gpu1"])") {
  const auto time = [](const std::string& text) { return text == "null" ? text : "\"2020-06-01 " + text + "\""; };
  return R"({"start_time": )" + time(start) + R"(, "end_time": )" + time(end) +
         R"(, "detail": [{"ip": "m1", "gpus": )" + gpus + R"(}, {"ip": "m2", "gpus": ["gpu0"]}]})";
}

std::vector<std::string> jobs(const JobTable& table) {
  std::vector<std::string> result;
  for (const JobTable::Row& job : table.jobs)
    result.push_back(std::to_string((job.submitted - kJune).count / kSecond) + " " +
                     std::to_string(job.ran.count / kSecond) + " " + std::to_string(job.gpus));
  return result;
}

TEST(job_table, time_of_table__is_a_day_or_a_second_of_this_century) {
  EXPECT_EQ(time_of_table("2020-06-01"), kJune);
  EXPECT_EQ(time_of_table("2020-06-01 01:02:03"), kJune + Nanos(3'723 * kSecond));
  EXPECT_EQ(time_of_table("2000-02-29 00:00:00"), Nanos(951'782'400 * kSecond));
  EXPECT_EQ(time_of_table("2099-12-31 23:59:59"), Nanos(4'102'444'799 * kSecond));
  for (const char* text :
       {"", "None", "nan", "1970-01-01 00:00:00", "1999-12-31 23:59:59", "2100-01-01 00:00:00", "2020-13-01 00:00:00",
        "2021-02-29 00:00:00", "2020-06-01 24:00:00", "2020-06-01 00:60:00", "2020-06-01 00:00:60",
        "2020-06-01T00:00:00", "2020-06-01 00:00:0", "2020-06-01 00:00:00 PDT", "2020-6-1", "-020-06-01", "9999999999"})
    EXPECT_EQ(time_of_table(text), std::nullopt) << text;
}

TEST(job_table, helios__has_what_ran_on_gpus_by_time_of_submission) {
  const std::string text = head + helios_row("8", "00:00:20", "00:00:30", "00:01:40") +
                           helios_row("12.0", "00:00:10", "00:00:10", "00:00:11");
  EXPECT_TRUE(is_job_table(text));
  const JobTable table = parse_job_table(text, "t.csv", {});
  EXPECT_THAT(jobs(table), ElementsAre("10 1 12", "20 70 8"));
  EXPECT_THAT(table.warnings, IsEmpty());
}

TEST(job_table, helios__counts_what_is_left_out_by_reason) {
  const std::string text =
      head + helios_row("1", "00:00:10", "00:00:10", "00:00:11") + helios_row("0", "00:00:10", "00:00:10", "00:00:11") +
      helios_row("nan", "00:00:10", "00:00:10", "00:00:11") + helios_row("1.5", "00:00:10", "00:00:10", "00:00:11") +
      helios_row("-1", "00:00:10", "00:00:10", "00:00:11") + helios_row("1e9", "00:00:10", "00:00:10", "00:00:11") +
      helios_row("1", "00:00:10", "None", "00:00:11") + helios_row("1", "00:00:10", "00:00:10", "") +
      helios_row("1", "00:00:10", "00:00:11", "00:00:10") + helios_row("1", "00:00:10", "00:00:10", "00:00:10") +
      helios_row("1", "1970-01-01 00:00:00", "00:00:10", "00:00:11") +
      helios_row("1", "00:00:10", "2100-01-01 00:00:00", "00:00:11") + helios_row("1", "nan", "00:00:10", "00:00:11") +
      helios_row("1", "00:00:10", "00:00:10", "2050-01-01 00:00:00") +
      helios_row("1", "00:00:10", "00:00:10", "00:00:11", "FAILED") +
      helios_row("1", "00:00:10", "00:00:10", "00:00:11", "CANCELLED");
  const JobTable table = parse_job_table(text, "t.csv", {});
  EXPECT_THAT(table.jobs, SizeIs(3));
  EXPECT_THAT(
      table.warnings,
      ElementsAre(
          "t.csv: 13 of 16 jobs are left out: no time of submission from 2000 to 2099 (2, first line 12), no number of "
          "GPUs (4, first line 4), no GPU (1, first line 3), never started (1, first line 8), not ended (1, first "
          "line 9), a time that is none from 2000 to 2099 (1, first line 13), ends before it starts (1, first line "
          "10), ran for no time (1, first line 11), ran for more than a year (1, first line 15)",
          "t.csv: 2 of 3 jobs did not end as COMPLETED; they are kept, as they held their GPUs until they ended; "
          "choose by states = [\"COMPLETED\"]"));
}

TEST(job_table, helios__is_of_the_jobs_that_were_chosen) {
  const std::string text = head + helios_row("1", "00:00:10", "00:00:10", "00:00:11") +
                           helios_row("2", "00:00:20", "00:00:20", "00:00:21", "FAILED") +
                           helios_row("3", "00:00:30", "00:00:30", "00:00:31", "COMPLETED", "vcB") +
                           helios_row("4", "00:00:40", "00:00:40", "00:00:41");
  JobTableOptions options;
  options.from = kJune + Nanos(20 * kSecond);
  options.to = kJune + Nanos(40 * kSecond);
  JobTable table = parse_job_table(text, "t.csv", options);
  EXPECT_THAT(jobs(table), ElementsAre("20 1 2", "30 1 3"));
  EXPECT_THAT(table.warnings, ElementsAre(HasSubstr("submitted outside from and to (2, first line 2)"),
                                          HasSubstr("1 of 2 jobs did not end as COMPLETED")));
  options.vcs = {"vcB", "vcC"};
  EXPECT_THAT(jobs(parse_job_table(text, "t.csv", options)), ElementsAre("30 1 3"));
  options = {};
  options.states = {"FAILED"};
  table = parse_job_table(text, "t.csv", options);
  EXPECT_THAT(jobs(table), ElementsAre("20 1 2"));
  EXPECT_THAT(table.warnings, ElementsAre("t.csv: 3 of 4 jobs are left out: other state (3, first line 2)"));
}

TEST(job_table, philly__has_the_time_of_all_attempts_and_the_gpus_of_the_longest) {
  const std::string text =
      "[" + philly_job(attempt("00:00:20", "00:00:30")) + ",\n" +
      philly_job(attempt("00:00:20", "00:00:30") + "," + attempt("00:01:00", "00:01:20", "[]"), "Killed") + "," +
      philly_job(attempt("00:00:20", "00:00:25") + "," + attempt("00:00:26", "null"), "Failed") + "]";
  EXPECT_TRUE(is_job_table(text));
  const JobTable table = parse_job_table(text, "t", {});
  EXPECT_THAT(jobs(table), ElementsAre("10 10 3", "10 30 1", "10 5 3"));
  EXPECT_THAT(table.warnings,
              ElementsAre(HasSubstr("t: 2 of 3 jobs did not end as Pass"),
                          "t: 1 attempt of kept jobs without a possible start or end: they add no time",
                          "t: 1 job with different numbers of GPUs in its attempts: that of the longest is taken"));
}

TEST(job_table, philly__counts_what_is_left_out_by_reason) {
  const std::string text =
      "[" + philly_job(attempt("00:00:20", "00:00:30")) + "," + philly_job("") + "," +
      philly_job(attempt("null", "00:00:30")) + "," + philly_job(attempt("00:00:20", "null")) + "," +
      philly_job(attempt("00:00:20", "00:00:10")) + "," +
      philly_job(R"({"start_time": "2020-06-01 00:00:20", "end_time": "2020-06-01 00:00:21", "detail": []})") + "," +
      R"({"status": "Pass", "attempts": [], "submitted_time": null})" + "]";
  const JobTable table = parse_job_table(text, "t", {});
  EXPECT_THAT(table.jobs, SizeIs(1));
  EXPECT_THAT(
      table.warnings,
      ElementsAre(
          "t: 6 of 7 jobs are left out: no time of submission from 2000 to 2099 (1, first job 7), no GPU (1, first "
          "job 6), never started (2, first job 2), not ended (1, first job 4), ends before it starts (1, "
          "first job 5)"));
}

TEST(job_table, bad_input__is_refused) {
  const auto says = [](const std::string& text) { return refusal_of([&] { return parse_job_table(text, "t", {}); }); };
  EXPECT_THAT(says("job_id,gpu_num,submit_time\n"), HasSubstr("t:1: columns: \"start_time\" is missing"));
  EXPECT_THAT(says("gpu_num,gpus\n"), HasSubstr("t:1: columns: \"gpus\" is not known; the columns are submit_time"));
  EXPECT_THAT(says(head + "1,2\n"), HasSubstr("t:2: columns: the line has 2 fields"));
  EXPECT_THAT(says(head), HasSubstr("t: no job is left of 0; give a table of jobs that ran on GPUs"));
  EXPECT_THAT(says(head + helios_row("0", "00:00:10", "00:00:10", "00:00:11")),
              HasSubstr("t: no job is left of 1: no GPU (1, first line 2); "));
  EXPECT_THAT(says("[{\"a\": 1}]"), HasSubstr("t: element 1, byte 1: this is not a job with attempts"));
  EXPECT_THAT(says("[1]"), HasSubstr("this is not a job with attempts"));
  EXPECT_THAT(says("[" + philly_job(attempt("00:00:20", "00:00:30"))), HasSubstr("the file is cut off"));
  EXPECT_THAT(says("[" + std::string(100'000, '[')), HasSubstr("values are nested more than 64 deep"));
  std::string many = attempt("00:00:20", "00:00:30");
  for (int i = 0; i < 100; ++i) many += "," + attempt("00:00:20", "00:00:30");
  EXPECT_THAT(says("[" + philly_job(many) + "]"),
              HasSubstr("no job is left of 1: more than 100 attempts (1, first job 1)"));
  EXPECT_FALSE(is_job_table(""));
  EXPECT_FALSE(is_job_table("# gpu_num"));
  EXPECT_TRUE(is_job_table("# jobs of a month\n\n" + std::string(head)));
  EXPECT_FALSE(is_job_table("arrival,job,workers,iterations\n"));
}

}  // namespace
}  // namespace mltcp::workload
