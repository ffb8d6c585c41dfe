// Tests the affinity graph: its vertices, components and loops.
#include "mltcp/scheduler/affinity.h"

#include <algorithm>
#include <queue>
#include <set>

#include "../matchers.h"
#include "mltcp/base/random.h"

namespace mltcp::scheduler {
namespace {

/// Returns one link for each entry of `jobs`. Each job in the entry has one flow on the link. All capacities differ, so
/// that no two links are alike.
std::vector<UsedLink> links(const std::vector<std::vector<std::uint32_t>>& jobs) {
  std::vector<UsedLink> result;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    UsedLink link{i, Rate(1 + i), {}};
    for (const std::uint32_t job : jobs[i]) link.uses.push_back({job, 1});
    result.push_back(link);
  }
  return result;
}

AffinityGraph graph_of(const std::vector<std::vector<std::uint32_t>>& jobs, std::size_t count) {
  const std::vector<UsedLink> used = links(jobs);
  const std::vector<Rate> peaks(count, Rate(1'000));
  return affinity_graph(used, peaks);
}

TEST(affinity, competes__only_where_peaks_together_exceed_the_capacity) {
  const std::vector<Rate> peaks{Rate(40), Rate(20)};
  EXPECT_FALSE(competes({0, Rate(60), {{0, 1}, {1, 1}}}, peaks));
  EXPECT_TRUE(competes({0, Rate(59), {{0, 1}, {1, 1}}}, peaks));
  EXPECT_TRUE(competes({0, Rate(60), {{0, 1}, {1, 2}}}, peaks));
  EXPECT_FALSE(competes({0, Rate(30), {{0, 1}}}, peaks));
}

TEST(affinity, graph__jobs_without_competition_are_components_without_groups) {
  const AffinityGraph graph = graph_of({{0, 2}}, 4);
  ASSERT_EQ(graph.components.size(), 3U);
  EXPECT_THAT(graph.components[0].jobs, ElementsAre(0, 2));
  EXPECT_THAT(graph.components[1].jobs, ElementsAre(1));
  EXPECT_TRUE(graph.components[1].groups.empty());
  EXPECT_THAT(graph.component_of, ElementsAre(0, 1, 0, 2));
}

TEST(affinity, graph__tree_has_a_group_for_each_link) {
  const AffinityGraph graph = graph_of({{0, 1}, {1, 2, 3}, {3, 4}}, 5);
  ASSERT_EQ(graph.components.size(), 1U);
  EXPECT_EQ(graph.components[0].loops, 0U);
  EXPECT_EQ(graph.groups.size(), 3U);
  EXPECT_THAT(graph.groups[1].jobs, ElementsAre(1, 2, 3));
}

TEST(affinity, graph__two_links_with_the_same_two_jobs_are_a_loop) {
  const AffinityGraph graph = graph_of({{0, 1}, {0, 1}}, 2);
  ASSERT_EQ(graph.groups.size(), 1U);
  EXPECT_EQ(graph.groups[0].loops, 1U);
}

TEST(affinity, graph__links_that_are_alike_are_one_vertex_and_no_loop) {
  std::vector<UsedLink> used = links({{0, 1}, {0, 1}, {0, 1}});
  for (UsedLink& link : used) link.capacity = Rate(1);
  const std::vector<Rate> peaks(2, Rate(1'000));
  EXPECT_THAT(affinity_graph(used, peaks).vertices.at(0).links, ElementsAre(0, 1, 2));
  EXPECT_EQ(affinity_graph(used, peaks).components[0].loops, 0U);
  used[1].uses[0].flows = 2;
  const AffinityGraph graph = affinity_graph(used, peaks);
  EXPECT_EQ(graph.vertices.size(), 2U);
  EXPECT_THAT(graph.vertices[0].links, ElementsAre(0, 2));
  EXPECT_EQ(graph.components[0].loops, 1U);
}

TEST(affinity, graph__loops_that_meet_in_a_job_are_two_groups) {
  // Three links connect jobs 0, 1 and 2 to a triangle. Three other links connect jobs 2, 3 and 4 to a second triangle.
  const AffinityGraph graph = graph_of({{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4}, {2, 4}}, 5);
  ASSERT_EQ(graph.groups.size(), 2U);
  EXPECT_THAT(graph.groups[0].vertices, ElementsAre(0, 1, 2));
  EXPECT_THAT(graph.groups[1].jobs, ElementsAre(2, 3, 4));
  EXPECT_EQ(graph.components[0].loops, 2U);
}

TEST(affinity, graph__loops_that_meet_in_a_link_are_one_group) {
  // All four jobs use link 0. Jobs 0 and 1 also meet on link 1, jobs 2 and 3 on link 2.
  const AffinityGraph graph = graph_of({{0, 1, 2, 3}, {0, 1}, {2, 3}}, 4);
  ASSERT_EQ(graph.groups.size(), 1U);
  EXPECT_EQ(graph.groups[0].loops, 2U);
}

TEST(affinity, graph__a_link_that_hangs_on_a_loop_by_a_job_is_a_group_of_its_own) {
  const AffinityGraph graph = graph_of({{0, 1}, {0, 1}, {1, 2}}, 3);
  ASSERT_EQ(graph.groups.size(), 2U);
  EXPECT_THAT(graph.groups[0].vertices, ElementsAre(0, 1));
  EXPECT_THAT(graph.groups[1].vertices, ElementsAre(2));
}

/// Returns whether a path leads from job `first` to vertex `to` without vertex `avoided`.
bool reaches(const AffinityGraph& graph, std::uint32_t first, std::uint32_t avoided, std::uint32_t to) {
  std::queue<std::uint32_t> open;
  std::set<std::uint32_t> seen{first};
  open.push(first);
  while (!open.empty()) {
    const std::uint32_t job = open.front();
    open.pop();
    for (std::uint32_t v = 0; v < graph.vertices.size(); ++v) {
      const auto& on = graph.vertices[v].uses;
      if (v == avoided || std::none_of(on.begin(), on.end(), [&](const LinkUse& u) { return u.job == job; })) continue;
      if (v == to) return true;
      for (const LinkUse& next : on) {
        if (seen.insert(next.job).second) open.push(next.job);
      }
    }
  }
  return false;
}

/// Checks what affinity.h states about groups, on random graphs: groups and jobs form a forest, and no group can be
/// split.
TEST(affinity, graph__random_groups_meet_without_loops_and_are_least) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const auto jobs = static_cast<std::uint32_t>(2 + random.below(8));
    std::vector<std::vector<std::uint32_t>> uses(1 + random.below(8));
    for (auto& link : uses) {
      std::set<std::uint32_t> some;
      for (std::uint64_t i = 0; i < 2 + random.below(2); ++i)
        some.insert(static_cast<std::uint32_t>(random.below(jobs)));
      link.assign(some.begin(), some.end());
    }
    const AffinityGraph graph = graph_of(uses, jobs);

    std::size_t edges = 0;
    for (const auto& group : graph.groups) edges += group.jobs.size();
    EXPECT_EQ(edges + graph.components.size(), jobs + graph.groups.size()) << "round " << round;

    // In a group of several links, two neighbouring links are always on a loop. If one of their common jobs is removed,
    // the two links are still connected within the group.
    for (const auto& group : graph.groups) {
      if (group.vertices.size() == 1) {
        EXPECT_EQ(group.loops, 0U);
        continue;
      }
      EXPECT_GT(group.loops, 0U);
      std::set<std::uint32_t> joined{group.vertices[0]};
      for (bool grew = true; grew;) {
        grew = false;
        for (const std::uint32_t a : group.vertices) {
          if (joined.contains(a)) continue;
          for (const std::uint32_t b : std::set<std::uint32_t>(joined)) {
            // Links a and b are on a loop if two paths lead from a to b through different jobs of a.
            int ways = 0;
            for (const LinkUse& via : graph.vertices[a].uses) {
              ways += reaches(graph, via.job, a, b) ? 1 : 0;
            }
            if (ways >= 2 && joined.insert(a).second) grew = true;
          }
        }
      }
      EXPECT_EQ(joined.size(), group.vertices.size()) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace mltcp::scheduler
