// Tests the restoration of a cluster to its former state, and previews of a join.
#include "clusters.h"

namespace mltcp::scheduler {
namespace {

using namespace testing_clusters;

std::vector<PlacedJob> placed(const Cluster& cluster) {
  std::vector<PlacedJob> jobs;
  for (std::size_t i = 0; i < cluster.jobs(); ++i)
    jobs.push_back({cluster.job(i), cluster.solution().jobs[i].slot_period, cluster.solution().jobs[i].time_shift});
  return jobs;
}

Topology racks() { return Topology::leaf_spine({4, 2, 6, Rate::from_gbps(10), Rate::from_gbps(10)}); }

/// Returns a cluster after joins and leaves. Its slots therefore differ from the slots that a new schedule would give.
Cluster with_a_history(std::uint64_t seed) {
  Cluster cluster(racks(), {.solve = little_work()});
  const std::vector<ClusterJob> jobs = mixed_jobs(cluster.topology().hosts(), 12, seed);
  for (const ClusterJob& job : jobs) cluster.join(job);
  for (const std::size_t gone : {1U, 4U, 9U}) cluster.leave(jobs[gone].name);
  return cluster;
}

TEST(cluster, restore__gives_the_same_jobs_slots_and_scores) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Cluster before = with_a_history(seed);
    Cluster after(racks(), {.solve = little_work()});
    after.restore(placed(before));
    ASSERT_EQ(after.jobs(), before.jobs());
    const ClusterSolution& a = before.solution();
    const ClusterSolution& b = after.solution();
    for (std::size_t i = 0; i < a.jobs.size(); ++i) {
      EXPECT_EQ(a.jobs[i].name, b.jobs[i].name);
      EXPECT_EQ(a.jobs[i].time_shift, b.jobs[i].time_shift);
      EXPECT_EQ(a.jobs[i].slot_period, b.jobs[i].slot_period);
      EXPECT_EQ(a.components[a.jobs[i].component].within_limit, b.components[b.jobs[i].component].within_limit);
    }
    EXPECT_EQ(a.score, b.score);
    expect_consistent(after);
  }
}

TEST(cluster, restore__is_followed_by_what_would_have_followed) {
  Cluster before = with_a_history(7);
  Cluster after(racks(), {.solve = little_work()});
  after.restore(placed(before));
  std::vector<ClusterJob> more = mixed_jobs(before.topology().hosts(), 4, 99);
  for (ClusterJob& job : more) {
    job.name += " later";
    const Joined a = before.join(job);
    const Joined b = after.join(job);
    EXPECT_EQ(a.time_shift, b.time_shift);
    EXPECT_EQ(a.slot_period, b.slot_period);
    EXPECT_EQ(a.moves.size(), b.moves.size());
  }
  const std::string gone = before.job(0).name;
  EXPECT_EQ(before.leave(gone).size(), after.leave(gone).size());
  EXPECT_EQ(shifts_of(before.solution()), shifts_of(after.solution()));
}

TEST(cluster, restore__refuses_slots_that_are_none_and_changes_nothing) {
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("stays", 12_ns, 4_ns, 10, {0})});
  const auto restored = [&](Nanos period, Nanos shift) {
    return refusal_of([&] { cluster.restore({{job_on("a", 12_ns, 4_ns, 10, {0}), period, shift}}); });
  };
  EXPECT_THAT(restored(11_ns, 0_ns), HasSubstr("slots of job \"a\" last 11 ns; give its period, 12 ns, or longer"));
  EXPECT_THAT(restored(Nanos((std::int64_t{1} << 53) + 1), 0_ns), HasSubstr("slots of job \"a\" last"));
  EXPECT_THAT(restored(12_ns, 12_ns), HasSubstr("job \"a\" is shifted by 12 ns"));
  EXPECT_THAT(restored(12_ns, Nanos(-1)), HasSubstr("job \"a\" is shifted by"));
  const Nanos odd((std::int64_t{1} << 40) + 1);
  EXPECT_THAT(
      refusal_of([&] {
        cluster.restore({{job_on("a", Nanos(std::int64_t{1} << 40), 4_ns, 10, {0}), Nanos(std::int64_t{1} << 40), 0_ns},
                         {job_on("b", odd, 4_ns, 10, {0}), odd, 0_ns}});
      }),
      HasSubstr("have no common multiple"));
  EXPECT_THAT(refusal_of([&] {
                cluster.restore({{job_on("a", 12_ns, 4_ns, 10, {0}), 12_ns, 0_ns},
                                 {job_on("a", 12_ns, 4_ns, 10, {0}), 12_ns, 0_ns}});
              }),
              HasSubstr("two jobs are called \"a\""));
  ASSERT_EQ(cluster.jobs(), 1U);
  EXPECT_EQ(cluster.job(0).name, "stays");
  EXPECT_EQ(cluster.solution().jobs.size(), 1U);
  EXPECT_EQ(cluster.restore({{job_on("a", 12_ns, 4_ns, 10, {0}), 12_ns, 11_ns}}).jobs[0].time_shift, 11_ns);
  EXPECT_TRUE(cluster.restore({}).jobs.empty());
}

TEST(cluster, preview__tells_what_join_does_and_does_nothing) {
  Cluster cluster = with_a_history(3);
  const ClusterSolution before = cluster.solution();
  ClusterJob job = mixed_jobs(cluster.topology().hosts(), 1, 31).front();
  job.name = "new";
  const Preview preview = cluster.preview(job);
  expect_same(before, cluster.solution());
  ASSERT_EQ(cluster.jobs(), before.jobs.size());
  ASSERT_EQ(preview.solution.jobs.size(), before.jobs.size() + 1);
  EXPECT_EQ(preview.solution.jobs.back().name, "new");
  const Joined joined = cluster.join(job);
  EXPECT_EQ(joined.time_shift, preview.joined.time_shift);
  EXPECT_EQ(joined.slot_period, preview.joined.slot_period);
  EXPECT_EQ(joined.score, preview.joined.score);
  EXPECT_EQ(joined.moves.size(), preview.joined.moves.size());
  expect_same(preview.solution, cluster.solution());
  EXPECT_THAT(refusal_of([&] { static_cast<void>(cluster.preview(job)); }), HasSubstr("two jobs are called \"new\""));
}

}  // namespace
}  // namespace mltcp::scheduler
