// Tests the scheduler service: arrivals, departures, plans, restarts, and calls from many threads.
#include "mltcp/scheduler/service/scheduler_service.h"

#include <chrono>
#include <set>
#include <thread>

#include "../matchers.h"
#include "services.h"

namespace mltcp::service {
namespace {

using namespace testing_services;

SchedulerService fresh_service() { return {two_racks(), options_in({})}; }

TEST(scheduler_service, arrive__gives_a_number_hosts_and_absolute_slots) {
  SchedulerService service = fresh_service();
  const Arrival first = service.arrive(job("first"), {"a1", "b1"});
  EXPECT_EQ(first.plan.id, "first");
  EXPECT_EQ(first.plan.number, 1U);
  EXPECT_THAT(first.plan.hosts, ElementsAre("a1", "b1"));
  EXPECT_FALSE(first.plan.slots);
  EXPECT_THAT(first.plan.reason, HasSubstr("it shares no link with another job"));
  EXPECT_FALSE(first.known);
  EXPECT_EQ(first.plan.revision, 1U);

  // The second job shares both uplinks with the first job. Both jobs now have slots that do not overlap.
  const Arrival second = service.arrive(job("second"), {"a2", "b2"});
  EXPECT_EQ(second.plan.number, 2U);
  EXPECT_TRUE(second.plan.slots) << second.plan.reason;
  EXPECT_EQ(second.plan.reason, "");
  EXPECT_EQ(second.plan.score, 1);
  EXPECT_EQ(second.plan.slot_period, 100_ms);
  ASSERT_THAT(second.moves, SizeIs(1));
  EXPECT_EQ(second.moves[0].id, "first");
  EXPECT_TRUE(second.moves[0].slots);
  EXPECT_EQ(second.moves[0].revision, 2U);
  EXPECT_EQ(service.plan("first"), second.moves[0]);
  for (const JobPlan& plan : service.plans()) {
    EXPECT_EQ(plan.first_send, 60_ms);
    EXPECT_EQ(plan.slot_unix_ns, kEpoch + plan.time_shift.count + plan.first_send.count);
  }
  // The period is 100 ms and the bursts of 40 ms do not overlap, so the shifts differ by 40 to 60 ms.
  const Nanos apart = modulo(service.plan("second").time_shift - service.plan("first").time_shift, 100_ms);
  EXPECT_GE(apart, 40_ms);
  EXPECT_LE(apart, 60_ms);
}

TEST(scheduler_service, arrive__without_hosts_takes_those_that_fit_best) {
  SchedulerService service = fresh_service();
  // Job "wide" fills both uplinks.
  service.arrive(job("wide", 100_ms, 90_ms), {"a1", "b1"});
  const Arrival arrival = service.arrive(job("new", 100_ms, 50_ms, 4));
  const std::set<std::string> racks{arrival.plan.hosts[0].substr(0, 1), arrival.plan.hosts[3].substr(0, 1)};
  EXPECT_THAT(racks, SizeIs(1)) << "it stays in one rack, where it meets nobody";
  EXPECT_EQ(service.free_slots().size(), 8U);
  std::uint32_t free = 0;
  for (const std::uint32_t slots : service.free_slots()) free += slots;
  EXPECT_EQ(free, 8U * 4 - 2 - 4);
}

TEST(scheduler_service, arrive__where_no_slots_are_worth_it_says_why) {
  SchedulerService service = fresh_service();
  service.arrive(job("first", 100_ms, 90_ms), {"a1", "b1"});
  const Arrival second = service.arrive(job("second", 100_ms, 90_ms), {"a2", "b2"});
  EXPECT_FALSE(second.plan.slots);
  EXPECT_THAT(second.plan.reason, HasAll("jobs collide", "below 0.98", "leaf 0 -> spine 0"));
  ASSERT_THAT(second.moves, SizeIs(1)) << "the first one had no slots and has none, for another reason";
  EXPECT_FALSE(second.moves[0].slots);
  EXPECT_EQ(second.moves[0].revision, 2U);
  EXPECT_EQ(second.moves[0].reason, second.plan.reason);
}

TEST(scheduler_service, arrive__again_changes_nothing) {
  SchedulerService service = fresh_service();
  const Arrival first = service.arrive(job("one"), {"a1", "b1"});
  const Arrival again = service.arrive(job("one"), {"a1", "b1"});
  EXPECT_TRUE(again.known);
  EXPECT_EQ(again.plan, first.plan);
  JobRequest elsewhere = job("one");
  elsewhere.allowed_hosts = {"a4", "b4"};
  EXPECT_TRUE(service.arrive(elsewhere).known) << "wherever it is";
  EXPECT_EQ(service.revision(), 1U);
  EXPECT_THAT(refusal_of<Conflict>([&] {
                service.arrive(job("one", 100_ms, 30_ms), {"a1", "b1"});
              }),
              HasSubstr("job \"one\" runs already and differs from this one"));
  EXPECT_THAT(refusal_of<Conflict>([&] { service.arrive(job("one"), {"a1", "b2"}); }), HasSubstr("on other hosts"));
  EXPECT_THAT(service.jobs(), SizeIs(1));
}

TEST(scheduler_service, depart__frees_slots_and_tells_who_is_free_of_theirs) {
  SchedulerService service = fresh_service();
  service.arrive(job("first"), {"a1", "b1"});
  service.arrive(job("second"), {"a2", "b2"});
  const std::vector<JobPlan> changed = service.depart("first");
  ASSERT_THAT(changed, SizeIs(1));
  EXPECT_EQ(changed[0].id, "second");
  EXPECT_FALSE(changed[0].slots);
  EXPECT_EQ(changed[0].revision, 3U);
  EXPECT_EQ(service.free_slots()[0], 4U);
  EXPECT_THAT(refusal_of<NotFound>([&] { service.depart("first"); }), HasSubstr("no job \"first\" runs"));
  EXPECT_THAT(refusal_of<NotFound>([&] { return service.plan("first"); }), HasSubstr("no job"));
  // Numbers of departed jobs are reused as late as possible.
  EXPECT_EQ(service.arrive(job("third"), {"a1", "b1"}).plan.number, 3U);
}

TEST(scheduler_service, rank__orders_by_what_would_follow_and_changes_nothing) {
  SchedulerService service = fresh_service();
  service.arrive(job("wide", 100_ms, 80_ms), {"a1", "b1"});
  const std::vector<JobPlan> before = service.plans();
  const std::vector<RankedPlacement> ranked =
      service.rank(job("new", 100_ms, 50_ms), {{"a2", "b2"}, {"a2", "a3"}, {"a1", "a1"}});
  ASSERT_THAT(ranked, SizeIs(3));
  EXPECT_THAT(ranked[0].hosts, ElementsAre("a2", "a3"));
  EXPECT_EQ(ranked[0].kind, "given");
  EXPECT_EQ(ranked[0].score, 1);
  EXPECT_EQ(ranked[0].excess, 0);
  EXPECT_FALSE(ranked[0].worst_link);
  EXPECT_THAT(ranked[2].hosts, ElementsAre("a2", "b2"));
  EXPECT_LT(ranked[2].score, 1);
  EXPECT_GT(ranked[2].excess, 0);
  EXPECT_THAT(ranked[2].worst_link->name, HasSubstr("leaf 0 -> spine 0"));
  EXPECT_LT(ranked[2].worst_link->score, 0.9);
  EXPECT_GE(ranked[2].upper_bound, ranked[2].score);
  EXPECT_EQ(service.plans(), before);
  EXPECT_EQ(service.revision(), 1U);
  EXPECT_THAT(service.rank(job("new"), 5), SizeIs(::testing::Ge(2U)));
  EXPECT_THAT(refusal_of<Conflict>([&] { return service.rank(job("wide"), 5); }), HasSubstr("runs already"));
}

TEST(scheduler_service, rank__keeps_to_hosts_that_are_allowed) {
  SchedulerService service = fresh_service();
  JobRequest request = job("new", 100_ms, 40_ms, 4);
  request.allowed_hosts = {"a2", "b2", "b3"};
  request.max_per_host = 2;
  for (const RankedPlacement& placement : service.rank(request, 10)) {
    std::map<std::string, int> workers;
    for (const std::string& host : placement.hosts) ++workers[host];
    for (const auto& [host, count] : workers) {
      EXPECT_THAT(request.allowed_hosts, Contains(host));
      EXPECT_LE(count, 2);
    }
  }
  request.workers = 7;
  EXPECT_THAT(refusal_of<Conflict>([&] { return service.rank(request, 10); }),
              HasSubstr("has 7 workers and there is room for 6"));
}

TEST(scheduler_service, arrive__refuses_hosts_without_room_unless_the_manager_knows_better) {
  SchedulerService service = fresh_service();
  service.arrive(job("one", 100_ms, 40_ms, 4), {"a1", "a1", "a1", "a1"});
  EXPECT_THAT(refusal_of<Conflict>([&] {
                service.arrive(job("two"), {"a1", "b1"});
              }),
              HasSubstr("host \"a1\" has no room for that many workers, with 4 slots"));
  EXPECT_EQ(service.revision(), 1U);
  service.arrive(job("two"), {"a1", "b1"}, SchedulerService::Capacity::assumed);
  EXPECT_EQ(service.free_slots()[0], 0U);
  service.depart("one");
  EXPECT_EQ(service.free_slots()[0], 3U);
}

TEST(scheduler_service, bad_input__is_refused_with_one_line_and_changes_nothing) {
  SchedulerService service = fresh_service();
  service.arrive(job("there"), {"a1", "b1"});
  struct Case {
    std::function<void(JobRequest&)> change;
    std::vector<std::string> hosts;
    std::string says;
  };
  const std::vector<Case> cases{
      {[](JobRequest& r) { r.id = ""; }, {"a1", "b1"}, "\"\" is no id of a job"},
      {[](JobRequest& r) { r.id = "two words"; }, {"a1", "b1"}, "is no id of a job"},
      {[](JobRequest& r) { r.id = std::string(129, 'x'); }, {"a1", "b1"}, "is no id of a job"},
      {[](JobRequest& r) { r.id = "new\nline"; }, {"a1", "b1"}, "is no id of a job"},
      {[](JobRequest& r) { r.name = "a\nb"; }, {"a1", "b1"}, "is no name"},
      {[](JobRequest& r) { r.name = "\xff"; }, {"a1", "b1"}, "is no name"},
      {[](JobRequest& r) { r.workers = 0; }, {}, "it has 0 workers"},
      {[](JobRequest& r) { r.workers = 65'537; }, {}, "it has 65537 workers"},
      {[](JobRequest& r) { r.flows = 0; }, {}, "it has 0 flows"},
      {[](JobRequest& r) { r.flows = 1025; }, {}, "it has 1025 flows"},
      {[](JobRequest& r) { r.demand.period = 0_ns; }, {}, "job \"new\": "},
      {[](JobRequest& r) { r.demand.bursts.clear(); }, {}, "it sends nothing"},
      {[](JobRequest& r) { r.demand.bursts[0].to = r.demand.period + 1_ns; }, {}, "job \"new\": "},
      {[](JobRequest&) {}, {"a1"}, "1 host named for 2 workers"},
      {[](JobRequest&) {}, {"a1", "a9"}, "no host is called \"a9\""},
      {[](JobRequest& r) { r.allowed_hosts = {"nowhere"}; }, {}, "no host is called \"nowhere\""},
  };
  for (const Case& bad : cases) {
    JobRequest request = job("new");
    bad.change(request);
    EXPECT_THAT(refusal_of([&] { service.arrive(request, bad.hosts); }), HasSubstr(bad.says));
  }
  EXPECT_THAT(refusal_of([&] { return service.rank(job("new"), 0); }), HasSubstr("candidates is 0"));
  EXPECT_THAT(service.jobs(), SizeIs(1));
  EXPECT_EQ(service.revision(), 1U);
}

TEST(scheduler_service, periods_that_go_with_no_others__are_a_conflict) {
  SchedulerService service = fresh_service();
  service.arrive(job("slow", Nanos(40'000'000'000'000), Nanos(20'000'000'000'000)), {"a1", "b1"});
  const std::string says = refusal_of<Conflict>([&] { service.arrive(job("fast", 100_us, 50_us), {"a2", "b2"}); });
  EXPECT_THAT(says, HasSubstr("bursts"));
  EXPECT_THAT(service.jobs(), SizeIs(1));
  service.arrive(job("fast", 100_us, 50_us), {"a2", "a3"});
}

TEST(scheduler_service, restart__gives_the_same_jobs_and_plans) {
  const TemporaryFolder folder;
  std::vector<RunningJob> before;
  std::uint64_t revision = 0;
  {
    SchedulerService service(two_racks(), options_in(folder / "state"));
    service.arrive(job("first"), {"a1", "b1"});
    service.arrive(job("gone"), {"a3", "b3"});
    service.arrive(job("second", 120_ms, 50_ms), {"a2", "b2"});
    service.arrive(job("third", 100_ms, 10_ms, 3));
    service.depart("gone");
    before = service.jobs();
    revision = service.revision();
  }
  std::vector<std::string> lines;
  ServiceOptions options = options_in(folder / "state");
  // the service ignores this value, because another epoch is already stored
  options.epoch_unix_ns = kEpoch + 12345;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  SchedulerService service(two_racks(), options);
  EXPECT_EQ(service.epoch_unix_ns(), kEpoch);
  EXPECT_EQ(service.revision(), revision);
  const std::vector<RunningJob> after = service.jobs();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].request, before[i].request);
    EXPECT_EQ(after[i].plan, before[i].plan) << after[i].plan.id;
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("3 jobs restored")));
  // The restored service continues with the next number and revision.
  EXPECT_EQ(service.arrive(job("fourth"), {"a4", "b4"}).plan.number, 5U);
  EXPECT_EQ(service.revision(), revision + 1);
}

TEST(scheduler_service, restart__on_a_topology_with_room_gives_changed_plans_a_revision) {
  const TemporaryFolder folder;
  JobPlan before;
  {
    SchedulerService service(two_racks(), options_in(folder / "state"));
    service.arrive(job("first"), {"a1", "b1"});
    service.arrive(job("second"), {"a2", "b2"});
    before = service.plan("first");
    EXPECT_TRUE(before.slots);
  }
  const auto roomy = [] { return Topology::leaf_spine({2, 1, 4, Rate::from_gbps(10), Rate::from_gbps(100)}); };
  std::uint64_t revision = 0;
  for (int restarts = 0; restarts < 2; ++restarts) {
    SchedulerService service(roomy(), options_in(folder / "state"));
    EXPECT_FALSE(service.plan("first").slots);
    EXPECT_EQ(service.plan("first").revision, before.revision + 1) << "once";
    revision = service.revision();
    EXPECT_EQ(revision, before.revision + 1);
  }
  SchedulerService service(two_racks(), options_in(folder / "state"));
  EXPECT_TRUE(service.plan("first").slots);
  EXPECT_EQ(service.plan("first").revision, revision + 1);
}

// A full search would take more than a minute for each arrival.
TEST(scheduler_service, arrive__beside_a_job_with_much_longer_iterations_is_a_conflict_at_once) {
  SchedulerService service(two_racks(), options_in({}));
  service.arrive(job("long", 3600_s, 1800_s), {"a1", "b1"});
  const auto begin = std::chrono::steady_clock::now();
  const JobRequest fast = job("fast", 100_us, 60_us);
  EXPECT_THAT(refusal_of<Conflict>([&] { service.arrive(fast, {"a2", "b2"}); }), HasSubstr("more than 100000"));
  EXPECT_EQ(service.arrive(fast).plan.hosts.size(), 2U) << "there is room where they don't meet";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(refusal_of([&] { service.arrive(job("faster", 99_us, 50_us)); }),
              HasSubstr("give one of 100000 ns or more"));
}

TEST(scheduler_service, restart__on_a_topology_without_a_host_is_refused) {
  const TemporaryFolder folder;
  {
    SchedulerService service(two_racks(), options_in(folder / "state"));
    service.arrive(job("first"), {"a1", "b1"});
  }
  ServiceOptions options = options_in(folder / "state");
  options.host_names[4] = "renamed";
  EXPECT_THAT(refusal_of([&] { const SchedulerService service(two_racks(), options); }),
              HasSubstr("job \"first\" runs on host \"b1\", which the topology lacks"));
}

TEST(scheduler_service, options_out_of_range__are_refused) {
  const auto refused = [](const std::function<void(ServiceOptions&)>& change) {
    ServiceOptions options = options_in({});
    change(options);
    return refusal_of([&] { const SchedulerService service(two_racks(), options); });
  };
  EXPECT_THAT(refused([](ServiceOptions& o) { o.slots_per_host = 0; }), HasSubstr("slots_per_host is 0"));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.candidates = 1001; }), HasSubstr("candidates is 1001"));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.max_jobs = 0; }), HasSubstr("max_jobs is 0"));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.epoch_unix_ns = -1; }), HasSubstr("epoch_unix_ns is -1"));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.host_names.pop_back(); }), HasSubstr("7 names and the topology has 8"));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.host_names[1] = "a1"; }), HasSubstr("two hosts are called \"a1\""));
  EXPECT_THAT(refused([](ServiceOptions& o) { o.cluster.join_threshold = -1; }), HasSubstr("join_threshold"));
}

TEST(scheduler_service, most_jobs__is_kept) {
  ServiceOptions options = options_in({});
  options.max_jobs = 1;
  SchedulerService service(two_racks(), options);
  service.arrive(job("one"));
  EXPECT_THAT(refusal_of<Conflict>([&] { service.arrive(job("two")); }), HasSubstr("1 job run, which is the limit"));
}

// Eight threads call the service at once. ThreadSanitizer checks this test in its preset.
TEST(scheduler_service, threads__arrive_ask_and_depart_at_once) {
  const TemporaryFolder folder;
  constexpr int rounds = 6;
  std::vector<RunningJob> before;
  {
    ServiceOptions options = options_in(folder / "state");
    options.slots_per_host = 64;
    SchedulerService service(two_racks(), options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) {
          const std::string id = "job-" + std::to_string(t) + "-" + std::to_string(i);
          const JobRequest request = job(id, Nanos(100'000'000 + 20'000'000 * (t % 2)), 10_ms);
          if (t == 0) static_cast<void>(service.rank(request, 2));
          const Arrival arrival =
              service.arrive(request, {eight_names()[static_cast<std::size_t>(t)], i % 2 == 0 ? "b4" : "a1"});
          EXPECT_EQ(service.plan(id).number, arrival.plan.number);
          static_cast<void>(service.revision());
          static_cast<void>(service.plans());
          if (i % 3 != 0) service.depart(id);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(service.revision(), 8U * (rounds + 2 * rounds / 3));
    before = service.jobs();
    ASSERT_THAT(before, SizeIs(8 * rounds / 3));
    std::set<std::uint32_t> numbers;
    for (const RunningJob& one : before) EXPECT_TRUE(numbers.insert(one.plan.number).second);
  }
  const SchedulerService service(two_racks(), [&] {
    ServiceOptions options = options_in(folder / "state");
    options.slots_per_host = 64;
    return options;
  }());
  const std::vector<RunningJob> after = service.jobs();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].plan, before[i].plan);
}

}  // namespace
}  // namespace mltcp::service
