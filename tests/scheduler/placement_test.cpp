// Tests free slots and the generator of placements.
#include "mltcp/scheduler/placement.h"

#include <map>
#include <set>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::scheduler::placement_test {
namespace {

using namespace literals;

constexpr Rate kRate(10'000'000'000);
const Demand half_up{100_ms, {{0_ms, 50_ms, kRate}}};

std::set<std::uint32_t> racks(const Topology& topology, const WorkerPlacement& placement) {
  std::set<std::uint32_t> result;
  for (const Topology::Host host : placement.workers) result.insert(topology.rack(host));
  return result;
}

TEST(occupancy, take__and_release_count_slots) {
  Occupancy occupancy(3, 2);
  EXPECT_EQ(occupancy.free(), 6U);
  occupancy.take("a", std::vector<Topology::Host>{0, 0, 1});
  EXPECT_EQ(occupancy.free(0), 0U);
  EXPECT_EQ(occupancy.free(1), 1U);
  EXPECT_EQ(occupancy.free(), 3U);
  occupancy.release("a");
  EXPECT_EQ(occupancy.free(), 6U);
}

TEST(occupancy, take__one_job_a_host_leaves_no_room_beside_it) {
  Occupancy occupancy(2, 4, false);
  occupancy.take("a", std::vector<Topology::Host>{0});
  EXPECT_EQ(occupancy.free(0), 0U);
  EXPECT_EQ(occupancy.free(), 4U);
  EXPECT_THROW(occupancy.take("b", std::vector<Topology::Host>{0}), InputError);
  occupancy.release("a");
  EXPECT_EQ(occupancy.free(0), 4U);
}

TEST(occupancy, bad_input__has_one_clear_error_and_changes_nothing) {
  Occupancy occupancy(2, 2);
  occupancy.take("a", std::vector<Topology::Host>{0});
  const auto error = [&](const std::string& job, const std::vector<Topology::Host>& workers) {
    return refusal_of([&] { occupancy.take(job, workers); });
  };
  EXPECT_EQ(error("a", {1}), "job \"a\" has slots already; release them first");
  EXPECT_EQ(error("b", {}), "job \"b\" has no workers; give it one or more");
  EXPECT_EQ(error("b", {1, 2}), "job \"b\": there is no host 2; the cluster has hosts 0 to 1");
  EXPECT_EQ(error("b", {1, 0, 0}), "job \"b\": host 0 has room for 1 of its workers, not for more; choose another");
  EXPECT_EQ(message_of<InputError>([&] { occupancy.release("b"); }), "job \"b\" has no slots to release");
  EXPECT_EQ(occupancy.free(), 3U);
  EXPECT_THROW(Occupancy(0, 1), InputError);
  EXPECT_THROW(Occupancy(1, 0), InputError);
}

TEST(placement, locality__takes_the_fullest_rack_that_holds_the_job) {
  const Topology topology = Topology::leaf_spine({3, 2, 4, kRate, kRate});
  Cluster cluster(topology);
  Occupancy occupancy(12, 1);
  occupancy.take("a", std::vector<Topology::Host>{4});         // rack 1 has 3 free hosts
  occupancy.take("b", std::vector<Topology::Host>{8, 9, 10});  // rack 2 has 1 free host
  const auto placements = generate_placements(cluster, occupancy, half_up, 3);
  EXPECT_EQ(placements[0].kind, PlacementKind::locality);
  EXPECT_THAT(placements[0].workers, ElementsAre(5, 6, 7));
}

TEST(placement, locality__spreads_a_large_job_over_the_fewest_racks) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, kRate, kRate});
  Cluster cluster(topology);
  Occupancy occupancy(16, 1);
  occupancy.take("a", std::vector<Topology::Host>{0, 1});     // rack 0 has 2 free hosts
  occupancy.take("b", std::vector<Topology::Host>{4, 5, 6});  // rack 1 has 1 free host
  const auto placements = generate_placements(cluster, occupancy, half_up, 6);
  // One whole rack holds four workers. The other two workers fill the rest of rack 0.
  EXPECT_EQ(racks(topology, placements[0]), (std::set<std::uint32_t>{0, 2}));
}

TEST(placement, locality__takes_few_hosts) {
  Cluster cluster(Topology::single_switch(4, kRate));
  Occupancy occupancy(4, 4);
  occupancy.take("a", std::vector<Topology::Host>{0, 0, 1});
  const auto placements = generate_placements(cluster, occupancy, half_up, 5);
  EXPECT_THAT(placements[0].workers, ElementsAre(2, 2, 2, 2, 3));
}

TEST(placement, slots_per_worker__are_of_hosts_of_their_own_the_fullest_first) {
  Cluster cluster(Topology::leaf_spine({2, 1, 3, kRate, kRate}));
  Occupancy occupancy(6, 4);
  occupancy.take("a", std::vector<Topology::Host>{1, 1, 2, 3, 3, 3});  // free slots of hosts 0 to 5: 4, 2, 3, 1, 4, 4
  const auto first = [&](std::uint32_t workers, std::uint32_t slots) {
    return generate_placements(cluster, occupancy, half_up, workers, {.slots_per_worker = slots})[0].workers;
  };
  EXPECT_THAT(first(1, 1), ElementsAre(1));
  EXPECT_THAT(first(1, 2), ElementsAre(4));  // host 4, because rack 1 has fewer hosts with two free slots than rack 0
  EXPECT_THAT(first(2, 3), ElementsAre(2, 0));
  EXPECT_THAT(first(3, 2), ElementsAre(1, 2, 0));
  EXPECT_THAT(first(3, 4), ElementsAre(4, 5, 0));  // rack 1 first, because more of its hosts have four free slots
  EXPECT_EQ(occupancy.free_places(4), 3U);
  EXPECT_EQ(occupancy.free_places(2), 5U);
  const GeneratorOptions random{.locality = false, .compatible = false, .slots_per_worker = 4};
  EXPECT_THAT(generate_placements(cluster, occupancy, half_up, 3, random)[0].workers, ElementsAre(0, 4, 5));
  EXPECT_EQ(refusal_of([&] { generate_placements(cluster, occupancy, half_up, 4, {.slots_per_worker = 4}); }),
            "a job needs 4 hosts with 4 free slots each and there are 3; wait for others to leave, or make it smaller");
}

TEST(placement, compatible__goes_beside_jobs_that_fit) {
  // In each rack, a running job uses half of the hosts. In racks 0 and 1, job "busy" fills the uplinks. In racks 2 and
  // 3, job "calm" leaves room on the uplinks.
  const Topology topology = Topology::leaf_spine({4, 1, 4, kRate, kRate});
  Cluster cluster(topology);
  Occupancy occupancy(16, 1);
  const std::vector<Topology::Host> busy{0, 1, 4, 5};
  const std::vector<Topology::Host> calm{8, 9, 12, 13};
  const Demand high{100_ms, {{0_ms, 90_ms, kRate}}};
  const Demand low{100_ms, {{0_ms, 20_ms, kRate}}};
  cluster.join({"busy", high, ring(busy)});
  cluster.join({"calm", low, ring(calm)});
  occupancy.take("busy", busy);
  occupancy.take("calm", calm);
  GeneratorOptions options;
  options.locality = options.random = false;
  options.candidates = 1;
  const auto placements = generate_placements(cluster, occupancy, half_up, 4, options);
  ASSERT_EQ(placements.size(), 1U);
  EXPECT_EQ(racks(topology, placements[0]), (std::set<std::uint32_t>{2, 3}));
  options.locality = true;
  options.compatible = false;
  EXPECT_EQ(racks(topology, generate_placements(cluster, occupancy, half_up, 4, options)[0]),
            (std::set<std::uint32_t>{0, 1}));
}

TEST(placement, generate__candidates_are_distinct_and_fit_whatever_is_taken) {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    const Topology topology = Topology::leaf_spine({4, 2, 4, kRate, kRate});
    Cluster cluster(topology);
    const auto slots = static_cast<std::uint32_t>(1 + random.below(4));
    Occupancy occupancy(16, slots, random.chance(0.5));
    for (int job = 0; job < 6; ++job) {
      const auto host = static_cast<Topology::Host>(random.below(16));
      if (occupancy.free(host) > 0) {
        occupancy.take("job " + std::to_string(job), std::vector<Topology::Host>{host});
      }
    }
    const auto workers = static_cast<std::uint32_t>(1 + random.below(occupancy.free()));
    GeneratorOptions options;
    options.seed = random.next();
    const auto placements = generate_placements(cluster, occupancy, half_up, workers, options);
    EXPECT_GE(placements.size(), 1U);
    EXPECT_LE(placements.size(), 10U);
    std::set<std::vector<Topology::Host>> distinct;
    for (const WorkerPlacement& placement : placements) {
      EXPECT_EQ(placement.workers.size(), workers);
      EXPECT_TRUE(distinct.insert(placement.workers).second);
      std::map<Topology::Host, std::uint32_t> on;
      for (const Topology::Host host : placement.workers) ++on[host];
      for (const auto& [host, count] : on) EXPECT_LE(count, occupancy.free(host));
      // The ring of workers leaves each host and each rack only once, so it crosses as few links as possible.
      std::size_t changes = 0;
      for (std::size_t i = 0; i + 1 < placement.workers.size(); ++i)
        changes += placement.workers[i] != placement.workers[i + 1] ? 1U : 0U;
      EXPECT_EQ(changes, on.size() - 1);
      Occupancy copy = occupancy;
      copy.take("new", placement.workers);
    }
    const auto again = generate_placements(cluster, occupancy, half_up, workers, options);
    ASSERT_EQ(again.size(), placements.size());
    for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].workers, placements[i].workers);
  }
}

TEST(placement, generate__finds_ten_where_there_are_many) {
  Cluster cluster(Topology::leaf_spine({8, 2, 8, kRate, kRate}));
  const Occupancy occupancy(64, 2);
  const auto placements = generate_placements(cluster, occupancy, half_up, 5);
  ASSERT_EQ(placements.size(), 10U);
  std::set<PlacementKind> kinds;
  for (const WorkerPlacement& placement : placements) kinds.insert(placement.kind);
  EXPECT_EQ(kinds.size(), 2U + (placements[1].kind == PlacementKind::compatible ? 1 : 0));
}

TEST(placement, generate__a_full_cluster_has_one_placement_left) {
  Cluster cluster(Topology::single_switch(3, kRate));
  const Occupancy occupancy(3, 2);
  EXPECT_EQ(generate_placements(cluster, occupancy, half_up, 6).size(), 1U);
}

TEST(placement, generate__bad_input_has_one_clear_error) {
  Cluster cluster(Topology::single_switch(3, kRate));
  const Occupancy occupancy(3, 2);
  const auto error = [&](const Occupancy& slots, std::uint32_t workers, const GeneratorOptions& options) {
    return refusal_of([&] { generate_placements(cluster, slots, half_up, workers, options); });
  };
  EXPECT_EQ(error(occupancy, 7, {}),
            "a job needs 7 slots and 6 are free; wait for others to leave, or make it smaller");
  EXPECT_EQ(error(occupancy, 0, {}), "a job has no workers; give it one or more");
  EXPECT_EQ(error(Occupancy(4, 2), 1, {}),
            "slots are given for 4 hosts, and the network has 3; give the slots of each host");
  EXPECT_EQ(error(occupancy, 1, {.candidates = 0}),
            "no candidates are asked for; ask for one or more, of one kind at least");
  EXPECT_EQ(error(occupancy, 1, {.candidates = 1U << 30}),
            "1073741824 candidates are asked for; ask for at most 1000000");
}

}  // namespace
}  // namespace mltcp::scheduler::placement_test
