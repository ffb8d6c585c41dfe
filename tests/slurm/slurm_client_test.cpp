#include "mltcp/scheduler/service/slurm_client.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <string>

#include "../message_of.h"
#include "../temporary_folder.h"

namespace mltcp::service {
namespace {

using namespace literals;

constexpr const char* kRunning =
    "17\x1fN/A\x1f"
    "1764063600\x1fR\x1f"
    "4294901759\x1fNone\x1f"
    "2\x1f"
    "8\x1f"
    "1\x1fOK\x1fn[0-1]\x1f\x1flab\x1f(null)\x1f"
    "alice\x1f"
    "N/A\x1fmltcp:{\"profile\":{}}\x1f";

std::string with(std::size_t field, const std::string& value) {
  std::string line = kRunning;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < field; ++i) begin = line.find('\x1f', begin) + 1;
  return line.replace(begin, line.find('\x1f', begin) - begin, value);
}

TEST(slurm_jobs, a_line__is_a_job) {
  const auto jobs = parse_jobs(std::string(kRunning) + "\n");
  ASSERT_EQ(jobs.size(), 1U);
  SlurmJob expected;
  expected.id = 17;
  expected.submitted = 1764063600;
  expected.state = SlurmJob::State::running;
  expected.node_count = 2;
  expected.cpus_per_node = 4;
  expected.nodes = {"n0", "n1"};
  expected.partition = "lab";
  expected.user = "alice";
  expected.admin_comment = "mltcp:{\"profile\":{}}";
  EXPECT_EQ(jobs[0], expected);
}

TEST(slurm_jobs, nodes__are_those_of_the_list_in_its_order) {
  const auto nodes = [](const std::string& list) { return parse_jobs(with(10, list)).at(0).nodes; };
  EXPECT_THAT(nodes("r[1-2]n[3,4]"), ElementsAre("r1n3", "r1n4", "r2n3", "r2n4"));
  EXPECT_THAT(nodes("n-[1764063600-1764063601]"), ElementsAre("n-1764063600", "n-1764063601"));
  for (const char* const none : {"", "(null)", "None assigned"}) EXPECT_THAT(nodes(none), IsEmpty()) << none;
  EXPECT_EQ(nodes("n[0-65535]").size(), 65'536U);
  EXPECT_THROW(nodes("n[0-65535],x"), SlurmError);
}

TEST(slurm_jobs, states_and_holds__are_told_apart) {
  using State = SlurmJob::State;
  for (const auto& [code, state] : {std::pair{"PD", State::pending},
                                    {"R", State::running},
                                    {"CF", State::running},
                                    {"S", State::running},
                                    {"CG", State::ended},
                                    {"CD", State::ended},
                                    {"TO", State::ended},
                                    {"NF", State::ended},
                                    {"RQ", State::pending}})
    EXPECT_EQ(parse_jobs(with(3, code)).at(0).state, state) << code;
  std::string held = with(3, "PD");
  held.replace(held.find("4294901759"), 10, "0");
  EXPECT_TRUE(parse_jobs(held).at(0).held);
  EXPECT_FALSE(parse_jobs(held).at(0).held_by_administrator);
  held.replace(held.find("None"), 4, "JobHeldAdmin");
  EXPECT_TRUE(parse_jobs(held).at(0).held_by_administrator);
  EXPECT_FALSE(parse_jobs(with(4, "0")).at(0).held) << "it runs";
  EXPECT_TRUE(parse_jobs(with(1, "1-3")).at(0).in_array);
  EXPECT_FALSE(parse_jobs(with(15, "0")).at(0).in_het_job);
  EXPECT_TRUE(parse_jobs(with(15, "17")).at(0).in_het_job);
  EXPECT_TRUE(parse_jobs(with(9, "NO")).at(0).whole_nodes);
  EXPECT_EQ(parse_jobs(with(7, "1")).at(0).cpus_per_node, 1U);
  EXPECT_EQ(parse_jobs(with(6, "2-4")).at(0).node_count, 2U);
  EXPECT_EQ(parse_jobs(with(7, "3K")).at(0).cpus_per_node, 1500U);
}

TEST(slurm_jobs, a_comment_of_several_lines__stays_with_its_job) {
  const std::string second = with(0, "18");
  const auto jobs = parse_jobs(with(16, "site\nmltcp:{\x1f}\n19") + "\n" + second + "\n");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].admin_comment, "site\nmltcp:{\x1f}\n19");
  EXPECT_EQ(jobs[1].id, 18U);
}

TEST(slurm_jobs, nodes_that_they_must_not_have__are_those_of_their_number) {
  auto jobs = parse_jobs(std::string(kRunning) + "\n" + with(0, "18"));
  parse_barred_nodes("18\x1fn[1-2]\n19\x1fx\n\n17\x1f(null)\n", jobs);
  EXPECT_THAT(jobs[0].barred_nodes, IsEmpty());
  EXPECT_THAT(jobs[1].barred_nodes, ElementsAre("n1", "n2"));
  for (const char* line : {"18", "x\x1fn1", "18\x1fn[", "18\x1fn1\x1f"})
    EXPECT_THROW(parse_barred_nodes(line, jobs), SlurmError) << line;
}

TEST(slurm_jobs, what_is_not_understood__is_quoted) {
  for (const auto& [line, what] : {std::pair{with(0, "x"), "squeue prints"},
                                   {with(2, "Unknown"), "time of submission"},
                                   {with(6, ""), "number of nodes"},
                                   {with(10, "n["), "list of nodes"},
                                   {std::string("slurm_load_jobs error"), "slurm_load_jobs error"}}) {
    EXPECT_THAT(message_of<SlurmError>([&] { parse_jobs(line); }), HasSubstr(what)) << line;
  }
}

TEST(slurm_nodes, states__say_whether_jobs_can_start) {
  const auto node = [](const std::string& state) {
    return parse_nodes(fmt::format("n0\x1f{}\x1f"
                                   "2/6/0/8\x1flab\x1f"
                                   "ib,a100\n",
                                   state))
        .at(0);
  };
  EXPECT_EQ(node("mix").free_cpus, 6U);
  EXPECT_FALSE(node("mix").idle);
  EXPECT_TRUE(node("idle").idle);
  EXPECT_THAT(node("idle").features, ElementsAre("ib", "a100"));
  EXPECT_TRUE(node("idle~").takes_jobs) << "it is started for a job";
  for (const char* state : {"idle*", "mix$", "idle@", "drain", "drng", "down", "alloc", "idle^", "idle!", "resv"}) {
    EXPECT_FALSE(node(state).takes_jobs) << state;
    EXPECT_EQ(node(state).free_cpus, 0U) << state;
  }
  EXPECT_THROW(parse_nodes("n0\x1fidle\n"), SlurmError);
  EXPECT_THROW(parse_nodes("n0\x1fidle\x1f"
                           "1/2/3\x1flab\x1f\n"),
               SlurmError);
}

/// The test's scripts replace Slurm's programs.
class slurm_programs : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& script) const {
    folder_.write(name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] SlurmPrograms programs(Nanos limit = 5_s, std::size_t max = 1 << 20) const {
    return SlurmPrograms({.folder = folder_.path(), .limit = limit, .max_output = max});
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(folder_.path() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  TemporaryFolder folder_;
};

TEST_F(slurm_programs, squeue__is_asked_in_a_form_of_its_own) {
  setenv("SQUEUE_STATES", "COMPLETED", 1);
  setenv("SLURM_TIME_FORMAT", "relative", 1);
  write("squeue", fmt::format("env > {0}/env; printf '%s\\n' \"$@\" > {0}/words; printf '%s\\n' '{1}'",
                              folder_.path().string(), kRunning));
  EXPECT_EQ(programs().jobs().at(0).id, 17U);
  EXPECT_THAT(content("words"), HasAll("--states=all\n", "JobID:\x1f,ArrayTaskID:\x1f,"));
  EXPECT_THAT(content("env"), HasSubstr("SLURM_TIME_FORMAT=%s\n"));
  EXPECT_THAT(content("env"), Not(HasSubstr("SQUEUE_")));
  unsetenv("SQUEUE_STATES");
  unsetenv("SLURM_TIME_FORMAT");
}

TEST_F(slurm_programs, scontrol__gets_each_value_as_one_word) {
  write("scontrol", fmt::format("printf '<%s>' \"$@\" >> {}/words", folder_.path().string()));
  auto slurm = programs();
  slurm.set_nodes(17, "it's \"mine\" mltcp:{\"a\":[1,2]}", {"n0", "n2"});
  slurm.set_nodes(17, "x", {});
  slurm.release(17);
  slurm.hold(18);
  EXPECT_EQ(content("words"),
            "<update><JobId=17><AdminComment=it's \"mine\" mltcp:{\"a\":[1,2]}><ReqNodeList=n0,n2>"
            "<update><JobId=17><AdminComment=x><ReqNodeList=><release><17><uhold><18>");
}

TEST_F(slurm_programs, failures__are_one_line) {
  const auto said = [](const auto& work) { return message_of<SlurmError>(work); };
  EXPECT_THAT(said([&] { programs().jobs(); }), HasSubstr("squeue can't be run: No such file"));
  write("squeue", "echo first >&2; echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(said([&] { programs().jobs(); }),
            "squeue fails: slurm_load_jobs error: Unable to contact slurm controller");
  write("squeue", "exit 3");
  EXPECT_EQ(said([&] { programs().jobs(); }), "squeue fails");
  write("squeue", "yes");
  EXPECT_EQ(said([&] { programs(5_s, 100'000).jobs(); }), "squeue prints more than it should");
}

TEST_F(slurm_programs, one_that_does_not_end__is_ended) {
  write("squeue", "exec sleep 100");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THROW(programs(100_ms).jobs(), SlurmError);
  // A program that closes its output does not escape the time limit.
  write("squeue", "exec sleep 100 >&- 2>&-");
  EXPECT_THROW(programs(100_ms).jobs(), SlurmError);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

}  // namespace
}  // namespace mltcp::service
