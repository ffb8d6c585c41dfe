#include "mltcp/scheduler/service/slurm_driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../matchers.h"
#include "../temporary_folder.h"

namespace mltcp::service {
namespace {

using namespace literals;
using State = SlurmJob::State;

/// A simulated Slurm for the driver. The test sets the jobs and nodes, and the simulation records the driver's
/// commands.
class FakeSlurm : public SlurmControl {
 public:
  explicit FakeSlurm(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      nodes_of_it.push_back({.name = fmt::format("n{}", i),
                             .partition = "lab",
                             .takes_jobs = true,
                             .idle = true,
                             .free_cpus = 4,
                             .features = {}});
  }
  std::vector<SlurmJob> jobs() override {
    if (down) throw SlurmError("squeue fails: Unable to contact slurm controller");
    std::vector<SlurmJob> all;
    for (const auto& [id, job] : table) all.push_back(job);
    return all;
  }
  std::vector<SlurmNode> nodes() override { return nodes_of_it; }
  void set_comment(std::uint32_t job, const std::string& comment) override {
    commands.push_back(fmt::format("comment {}", job));
    table.at(job).admin_comment = comment;
  }
  void set_nodes(std::uint32_t job, const std::string& comment, const std::vector<std::string>& nodes) override {
    if (refuses_nodes) throw SlurmError("scontrol fails: Requested node configuration is not available");
    commands.push_back(fmt::format("nodes {} {}", job, fmt::join(nodes, ",")));
    table.at(job).admin_comment = comment;
    table.at(job).asked_nodes = nodes;
  }
  void release(std::uint32_t job) override {
    if (refuses_release) throw SlurmError("scontrol fails: Unable to contact slurm controller");
    commands.push_back(fmt::format("release {}", job));
    table.at(job).held = false;
  }
  void hold(std::uint32_t job) override {
    commands.push_back(fmt::format("hold {}", job));
    table.at(job).held = true;
  }

  /// Adds a job in the state in which job_submit.lua leaves it.
  SlurmJob& submit(std::uint32_t id, std::uint32_t nodes = 2, const std::string& more = "") {
    SlurmJob job;
    job.id = id;
    job.submitted = 1'764'063'600 + id;
    job.held = more.empty();
    job.node_count = nodes;
    job.partition = "lab";
    job.user = "alice";
    job.admin_comment =
        R"(mltcp:{"profile":{"compute_ns":150000000,"communicate_bytes":13500000,"rate_bps":1000000000})" + more + "}";
    return table[id] = job;
  }
  void start(std::uint32_t id, const std::vector<std::string>& nodes) {
    table.at(id).state = State::running;
    table.at(id).nodes = nodes;
    for (SlurmNode& node : nodes_of_it)
      if (std::find(nodes.begin(), nodes.end(), node.name) != nodes.end()) {
        node.free_cpus -= table.at(id).cpus_per_node;
        node.idle = false;
      }
  }

  std::map<std::uint32_t, SlurmJob> table;
  std::vector<SlurmNode> nodes_of_it;
  std::vector<std::string> commands;
  bool down = false;
  bool refuses_nodes = false;
  bool refuses_release = false;
};

class slurm_driver : public ::testing::Test {
 protected:
  void SetUp() override { restart(); }
  /// Restarts the service and the driver from their stored state.
  void restart() {
    driver_.reset();
    service_.reset();
    ServiceOptions options;
    options.state = folder_ / "state";
    options.host_names = {"n0", "n1", "n2", "n3"};
    options.slots_per_host = 4;
    options.epoch_unix_ns = 1'764'000'000'000'000'000;
    service_ = std::make_unique<SchedulerService>(Topology::single_switch(4, Rate::from_gbps(1)), options);
    SlurmDriverOptions driver;
    driver.heartbeat = folder_ / "run/heartbeat";
    driver.log = [this](const std::string& line) { log_.push_back(line); };
    driver_ = std::make_unique<SlurmDriver>(*service_, slurm_, driver);
  }
  void step(Nanos pause = 2_s) {
    now_ += pause;
    driver_->step(now_, 1'764'063'600 + now_.count / 1'000'000'000);
  }
  std::vector<std::string> commands() { return std::exchange(slurm_.commands, {}); }
  [[nodiscard]] SlurmMark mark(std::uint32_t job) const {
    return parse_mark(slurm_.table.at(job).admin_comment).value_or(SlurmMark());
  }
  [[nodiscard]] std::vector<std::string> known() const {
    std::vector<std::string> ids;
    for (const JobPlan& plan : service_->plans()) ids.push_back(plan.id);
    return ids;
  }
  [[nodiscard]] JobPlan plan(std::uint32_t job) const {
    return service_->plan(SlurmDriver::id_of(slurm_.table.at(job)));
  }
  [[nodiscard]] std::vector<std::string> placed_on(std::uint32_t job) const {
    auto nodes = slurm_.table.at(job).asked_nodes;
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  TemporaryFolder folder_;
  FakeSlurm slurm_{4};
  std::unique_ptr<SchedulerService> service_;
  std::unique_ptr<SlurmDriver> driver_;
  std::vector<std::string> log_;
  Nanos now_;
};

TEST_F(slurm_driver, a_held_job__gets_nodes_and_a_plan_before_it_is_released) {
  slurm_.submit(17);
  step();
  ASSERT_THAT(slurm_.commands, ElementsAre(HasSubstr("nodes 17 n"), "release 17"));
  const JobPlan plan_now = plan(17);
  EXPECT_EQ(slurm_.table[17].asked_nodes, plan_now.hosts);
  EXPECT_EQ(plan_now.hosts.size(), 2U);
  EXPECT_EQ(mark(17).plan, to_mark(plan_now));
  EXPECT_EQ(known(), std::vector<std::string>{"slurm-17-1764063617"});
  commands();
  step();
  EXPECT_THAT(commands(), IsEmpty()) << "nothing has changed";
}

TEST_F(slurm_driver, jobs_without_a_mark_or_in_arrays__are_left_alone) {
  slurm_.submit(1).admin_comment = "site: gold";
  slurm_.submit(2).in_array = true;
  step();
  EXPECT_THAT(commands(), IsEmpty());
  EXPECT_THAT(known(), IsEmpty());
}

TEST_F(slurm_driver, jobs_that_go_together__share_a_link_in_slots_of_their_own) {
  slurm_.nodes_of_it.resize(2);
  for (const std::uint32_t id : {1U, 2U}) slurm_.submit(id);
  step();
  EXPECT_EQ(placed_on(1), placed_on(2));
  ASSERT_TRUE(mark(1).plan->slots);
  ASSERT_TRUE(mark(2).plan->slots);
  EXPECT_NE(mark(1).plan->time_shift_ns, mark(2).plan->time_shift_ns);
  EXPECT_NE(mark(1).plan->number, mark(2).plan->number);
  EXPECT_EQ(mark(2).plan->score, 1);
}

TEST_F(slurm_driver, comments__follow_plans_that_change) {
  slurm_.submit(1);
  step();
  slurm_.start(1, slurm_.table[1].asked_nodes);
  // The second job fits into the pauses of the first job only if the periods of both jobs change.
  SlurmJob& second = slurm_.submit(2);
  second.admin_comment =
      R"(mltcp:{"profile":{"compute_ns":165000000,"communicate_bytes":13500000,"rate_bps":1000000000}})";
  second.asked_nodes = slurm_.table[1].nodes;
  step();
  EXPECT_EQ(mark(1).plan, to_mark(plan(1)));
  EXPECT_EQ(mark(2).plan, to_mark(plan(2)));
  slurm_.table[2].state = State::ended;
  step();
  EXPECT_EQ(mark(1).plan, to_mark(plan(1)));
}

TEST_F(slurm_driver, a_job_that_ends__departs) {
  slurm_.submit(1);
  slurm_.submit(2);
  step();
  slurm_.table[1].state = State::ended;
  step();
  EXPECT_EQ(known().size(), 1U);
  // Slurm no longer lists the job. The driver treats a job as ended only if the job is missing in two consecutive
  // steps.
  const SlurmJob second = slurm_.table[2];
  slurm_.table.erase(2);
  step();
  EXPECT_EQ(known().size(), 1U);
  slurm_.table[2] = second;
  step();
  slurm_.table.erase(2);
  step();
  EXPECT_EQ(known().size(), 1U);
  step();
  EXPECT_THAT(known(), IsEmpty());
}

TEST_F(slurm_driver, others_jobs_in_the_service__are_not_its_business) {
  JobRequest other;
  other.demand = {200_ms, {{0_ms, 50_ms, Rate::from_gbps(1)}}};
  const std::vector<std::string> ids{"somebody-else", "slurm-lab", "slurm-1-", "slurm--1", "slurm-1-2-3", "slurm-1-x"};
  for (const std::string& id : ids) {
    other.id = id;
    service_->arrive(other);
  }
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(known(), ids);
}

TEST_F(slurm_driver, a_number_that_is_used_again__is_another_job) {
  slurm_.submit(1);
  step();
  slurm_.table[1] = SlurmJob();
  slurm_.submit(1).submitted += 1000;
  step();
  step();
  EXPECT_THAT(known(), ElementsAre(SlurmDriver::id_of(slurm_.table[1])));
}

TEST_F(slurm_driver, after_a_restart__no_job_is_lost_and_none_is_there_twice) {
  for (const std::uint32_t id : {1U, 2U, 3U, 4U}) slurm_.submit(id);
  step();
  const JobPlan first = plan(1);
  slurm_.start(1, slurm_.table[1].asked_nodes);
  slurm_.start(2, slurm_.table[2].asked_nodes);
  commands();
  // While the service is down, job 2 ends, job 3 starts, job 5 arrives, and job 6 is submitted and starts without a
  // hold.
  slurm_.table[2].state = State::ended;
  slurm_.start(3, slurm_.table[3].asked_nodes);
  slurm_.submit(5);
  slurm_.submit(6, 2, R"(,"reason":"the service does not run")");
  slurm_.start(6, {"n2", "n3"});
  restart();
  EXPECT_EQ(known().size(), 4U);
  EXPECT_EQ(plan(1), first);
  step();
  EXPECT_THAT(known(), UnorderedElementsAre("slurm-1-1764063601", "slurm-3-1764063603", "slurm-4-1764063604",
                                            "slurm-5-1764063605", "slurm-6-1764063606"));
  EXPECT_EQ(mark(6).reason, "");
  EXPECT_EQ(mark(6).plan, to_mark(plan(6)));
  EXPECT_THAT(commands(), Contains("release 5"));
  for (const std::uint32_t id : {1U, 3U, 4U, 5U, 6U}) EXPECT_EQ(mark(id).plan, to_mark(plan(id))) << id;
  step();
  EXPECT_THAT(commands(), IsEmpty());
}

TEST_F(slurm_driver, ended_between_arrival_and_release__it_releases_the_job_where_it_was_placed) {
  slurm_.submit(1);
  slurm_.refuses_release = true;
  step();
  const JobPlan placed = plan(1);
  EXPECT_TRUE(slurm_.table[1].held);
  restart();
  slurm_.refuses_release = false;
  step();
  EXPECT_FALSE(slurm_.table[1].held);
  EXPECT_EQ(plan(1), placed);
  EXPECT_EQ(slurm_.table[1].asked_nodes, placed.hosts);
}

TEST_F(slurm_driver, a_service_without_its_state__takes_jobs_from_their_comments) {
  slurm_.submit(1);
  step();
  const auto hosts = plan(1).hosts;
  driver_.reset();
  service_.reset();
  std::filesystem::remove_all(folder_ / "state");
  restart();
  step();
  EXPECT_EQ(plan(1).hosts, hosts);
  EXPECT_EQ(mark(1).plan, to_mark(plan(1)));
}

TEST_F(slurm_driver, slurm_that_is_down__is_told_once_and_waited_for) {
  slurm_.submit(1);
  step();
  slurm_.down = true;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(std::count_if(log_.begin(), log_.end(),
                          [](const auto& line) { return line.find("Unable to contact") != std::string::npos; }),
            1);
  EXPECT_EQ(known().size(), 1U) << "nothing is known of its jobs";
  slurm_.down = false;
  slurm_.submit(2);
  step();
  EXPECT_FALSE(slurm_.table[2].held);
  EXPECT_EQ(known().size(), 2U);
  EXPECT_THAT(log_, Contains(HasSubstr("answers again")));
}

TEST_F(slurm_driver, a_job_that_does_not_start__is_placed_elsewhere_and_then_left_to_slurm) {
  slurm_.submit(1);
  step();
  const auto first = placed_on(1);
  step(59_s);
  EXPECT_THAT(commands(), Not(Contains("hold 1")));
  step(1_s);
  EXPECT_THAT(commands(), ElementsAre("hold 1"));
  EXPECT_THAT(known(), IsEmpty());
  step();
  const auto second = placed_on(1);
  EXPECT_FALSE(slurm_.table[1].held);
  for (const auto& node : first) EXPECT_THAT(second, Not(Contains(node)));
  commands();
  step(60_s);
  EXPECT_THAT(commands(), ElementsAre("nodes 1 ")) << "any nodes";
  EXPECT_FALSE(mark(1).plan);
  EXPECT_EQ(mark(1).reason, "") << "its tasks wait for a plan";
  EXPECT_FALSE(slurm_.table[1].held);
  slurm_.start(1, {"n0", "n3"});
  step();
  EXPECT_THAT(plan(1).hosts, ElementsAre("n0", "n3"));
  EXPECT_EQ(mark(1).plan, to_mark(plan(1)));
}

TEST_F(slurm_driver, a_job_without_room__is_held_for_a_while_and_then_queued_by_slurm) {
  for (SlurmNode& node : slurm_.nodes_of_it) node.free_cpus = 0;
  slurm_.submit(1);
  step();
  step();
  EXPECT_THAT(commands(), IsEmpty());
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "slurm: job 1: waits for 2 free nodes in partition lab"), 1);
  step(58_s);
  EXPECT_THAT(commands(), ElementsAre("release 1"));
  slurm_.start(1, {"n0", "n1"});
  step();
  EXPECT_TRUE(mark(1).plan);
}

TEST_F(slurm_driver, room__counts_what_released_jobs_will_take) {
  slurm_.nodes_of_it.resize(2);
  slurm_.submit(1).cpus_per_node = 3;
  slurm_.submit(2).cpus_per_node = 3;
  slurm_.submit(3).cpus_per_node = 1;
  step();
  EXPECT_FALSE(slurm_.table[1].held);
  EXPECT_TRUE(slurm_.table[2].held);
  EXPECT_FALSE(slurm_.table[3].held);
  step();
  EXPECT_TRUE(slurm_.table[2].held);
  slurm_.table[1].state = State::ended;
  step();
  EXPECT_FALSE(slurm_.table[2].held);
}

TEST_F(slurm_driver, nodes__are_those_that_the_job_may_have) {
  slurm_.nodes_of_it[0].features = {"a100"};
  slurm_.nodes_of_it[2].features = {"ib", "a100"};
  slurm_.nodes_of_it[1].takes_jobs = false;
  slurm_.submit(1).features = "a100";
  slurm_.submit(2).barred_nodes = {"n0"};
  slurm_.submit(3).asked_nodes = {"n3"};
  slurm_.submit(4).asked_nodes = {"n0", "n2"};
  step();
  EXPECT_THAT(placed_on(1), ElementsAre("n0", "n2"));
  EXPECT_THAT(placed_on(2), ElementsAre("n2", "n3"));
  EXPECT_THAT(placed_on(3), Contains("n3"));
  EXPECT_EQ(placed_on(3).size(), 2U);
  EXPECT_THAT(placed_on(4), ElementsAre("n0", "n2"));
  // The driver restores the nodes that the user requested. Then Slurm, not the driver, places the job.
  step(60_s);
  step();
  step(60_s);
  EXPECT_THAT(placed_on(3), ElementsAre("n3"));
}

TEST_F(slurm_driver, a_job_that_wants_nodes_for_itself__gets_idle_ones) {
  slurm_.submit(1);
  step();
  slurm_.start(1, slurm_.table[1].asked_nodes);
  slurm_.submit(2).whole_nodes = true;
  step();
  for (const auto& node : slurm_.table[1].nodes) EXPECT_THAT(placed_on(2), Not(Contains(node)));
}

TEST_F(slurm_driver, a_constraint_that_slurm_alone_understands__is_left_to_it) {
  slurm_.submit(1).features = "[rack1|rack2]";
  step();
  EXPECT_THAT(commands(), ElementsAre("release 1"));
}

TEST_F(slurm_driver, nodes_that_the_topology_lacks__are_said_in_the_comment) {
  slurm_.submit(1, 5);
  step();
  EXPECT_THAT(mark(1).reason, HasSubstr("the scheduler's topology has 4 of the 5 nodes"));
  EXPECT_FALSE(slurm_.table[1].held);
  commands();
  slurm_.start(1, {"n0", "n1", "n2", "n3", "gpu7"});
  step();
  EXPECT_THAT(mark(1).reason, HasSubstr("node gpu7 is not in the scheduler's topology"));
  EXPECT_THAT(commands(), ElementsAre("comment 1"));
  step();
  EXPECT_THAT(commands(), IsEmpty());
}

TEST_F(slurm_driver, a_profile_that_is_none__runs_without_slots) {
  slurm_.submit(1).admin_comment = "mltcp:{\"profile\":{\"compute_ns\":1}}";
  step();
  EXPECT_FALSE(slurm_.table[1].held);
  EXPECT_FALSE(mark(1).reason.empty());
}

TEST_F(slurm_driver, a_job_that_starts_elsewhere__is_moved_there) {
  slurm_.submit(1);
  step();
  std::vector<std::string> others;
  for (const SlurmNode& node : slurm_.nodes_of_it)
    if (const auto& asked = slurm_.table[1].asked_nodes;
        std::find(asked.begin(), asked.end(), node.name) == asked.end())
      others.push_back(node.name);
  slurm_.start(1, others);
  step();
  EXPECT_EQ(plan(1).hosts, others);
  EXPECT_EQ(mark(1).plan, to_mark(plan(1)));
  EXPECT_EQ(known().size(), 1U);
}

TEST_F(slurm_driver, whoever_holds_a_job__has_it_held) {
  slurm_.submit(1);
  slurm_.submit(2).held_by_administrator = true;
  step();
  EXPECT_TRUE(slurm_.table[2].held);
  slurm_.table[1].held = true;  // the user holds the job after the driver released it
  commands();
  step();
  EXPECT_TRUE(slurm_.table[1].held);
  EXPECT_FALSE(mark(1).plan);
  EXPECT_THAT(known(), IsEmpty());
  step();
  EXPECT_TRUE(slurm_.table[1].held);
  slurm_.table[1].held = false;
  slurm_.start(1, {"n0", "n1"});
  step();
  EXPECT_TRUE(mark(1).plan);
}

TEST_F(slurm_driver, a_job_that_its_user_has_held__is_theirs_to_release) {
  slurm_.submit(1, 2, R"(,"held":true)").held = true;
  for (int i = 0; i < 3; ++i) step(60_s);
  EXPECT_THAT(commands(), IsEmpty());
  EXPECT_THAT(known(), IsEmpty());
  slurm_.table[1].held = false;
  slurm_.start(1, {"n0", "n1"});
  step();
  EXPECT_EQ(plan(1).hosts, (std::vector<std::string>{"n0", "n1"}));
  EXPECT_TRUE(mark(1).plan);
  EXPECT_TRUE(mark(1).held);
}

TEST_F(slurm_driver, parts_of_heterogeneous_jobs__are_released_with_the_reason) {
  slurm_.submit(1).in_het_job = true;
  slurm_.submit(2, 2, R"(,"held":true)").in_het_job = true;
  slurm_.table[2].held = true;
  step();
  EXPECT_FALSE(slurm_.table[1].held);
  EXPECT_TRUE(slurm_.table[2].held) << "by its user";
  EXPECT_THAT(mark(1).reason, HasSubstr("heterogeneous jobs are not placed"));
  EXPECT_THAT(mark(2).reason, HasSubstr("heterogeneous jobs are not placed"));
  EXPECT_THAT(known(), IsEmpty());
  commands();
  step();
  EXPECT_THAT(commands(), IsEmpty());
}

TEST_F(slurm_driver, a_state_that_cannot_be_written__holds_no_job_for_ever) {
  step();
  std::filesystem::remove(folder_ / "run/heartbeat");
  std::filesystem::rename(folder_ / "state/journal.jsonl", folder_ / "elsewhere");
  slurm_.submit(1);
  step();
  EXPECT_TRUE(slurm_.table[1].held);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/heartbeat")) << "jobs that come now are better not held";
  EXPECT_THAT(log_, Contains(HasSubstr("the heartbeat is not refreshed")));
  step(60_s);
  EXPECT_FALSE(slurm_.table[1].held);
  EXPECT_THAT(mark(1).reason, HasSubstr("removed or replaced"));
  slurm_.submit(2, 2, R"(,"reason":"the scheduler's service does not answer")");
  slurm_.start(2, {"n2", "n3"});
  step();
  EXPECT_THAT(mark(2).reason, HasSubstr("removed or replaced"));
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "state/journal.jsonl");
  step();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/heartbeat"));
  EXPECT_TRUE(mark(2).plan) << "which takes the place of the reason";
  EXPECT_THAT(mark(2).reason, IsEmpty());
}

TEST_F(slurm_driver, nodes_that_slurm_refuses__are_tried_once_more) {
  slurm_.submit(1);
  slurm_.refuses_nodes = true;
  step();
  EXPECT_TRUE(slurm_.table[1].held);
  EXPECT_THAT(known(), IsEmpty());
  step();
  EXPECT_FALSE(slurm_.table[1].held) << "Slurm decides";
  EXPECT_THAT(log_, Contains(HasSubstr("Requested node configuration")));
}

TEST_F(slurm_driver, the_heartbeat__says_when_and_for_how_long) {
  step();
  std::ifstream file(folder_ / "run/heartbeat");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "1764063602 21");
  slurm_.down = true;
  std::filesystem::remove(folder_ / "run/heartbeat");
  step();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/heartbeat")) << "jobs that are held would stay so";
}

TEST_F(slurm_driver, a_thread_of_its_own__leaves_no_heartbeat) {
  driver_->start();
  driver_->stop();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/heartbeat"));
}

TEST(slurm_driver_options, out_of_range__are_refused) {
  ServiceOptions options;
  SchedulerService service(Topology::single_switch(4, Rate::from_gbps(1)), options);
  FakeSlurm slurm(4);
  EXPECT_ANY_THROW(SlurmDriver(service, slurm, {.interval = 1_ms}));
  EXPECT_ANY_THROW(SlurmDriver(service, slurm, {.candidates = 0}));
  EXPECT_ANY_THROW(SlurmDriver(service, slurm, {.longest_hold = Nanos(-1)}));
}

}  // namespace
}  // namespace mltcp::service
