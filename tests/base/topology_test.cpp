// Tests networks as graphs, and their paths.
#include "mltcp/base/topology.h"

#include <functional>
#include <set>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp {
namespace {

constexpr Rate kRate(1'000'000'000);

std::vector<std::string> names(const Topology& topology, const std::vector<Topology::Link>& path) {
  std::vector<std::string> result;
  result.reserve(path.size());
  for (const Topology::Link link : path) result.push_back(topology.link_name(link));
  return result;
}

/// Returns a network with two switches, a host on each, and links between the switches in both directions.
Graph two_switches() {
  return {{{"s"}, {"a", true}, {"t"}, {"b", true}},
          {{"a", "s", kRate},
           {"s", "a", kRate},
           {"b", "t", kRate},
           {"t", "b", kRate},
           {"s", "t", Rate(500), "there"},
           {"t", "s", kRate}}};
}

TEST(topology, leaf_spine__names_links_as_the_simulator) {
  const Topology topology = Topology::leaf_spine({3, 2, 4, Rate(50), Rate(25)});
  EXPECT_EQ(topology.hosts(), 12U);
  EXPECT_EQ(topology.links(), 2U * (12 + 6));
  EXPECT_EQ(topology.racks(), 3U);
  EXPECT_EQ(topology.rack(7), 1U);
  EXPECT_EQ(topology.link_name(0), "host 0 -> leaf 0");
  EXPECT_EQ(topology.link_name(12), "leaf 0 -> spine 0");
  EXPECT_EQ(topology.link_name(18), "leaf 0 -> host 0");
  EXPECT_EQ(topology.link_name(35), "spine 1 -> leaf 2");
  EXPECT_EQ(topology.capacity(0), Rate(50));
  EXPECT_EQ(topology.capacity(13), Rate(25));
  EXPECT_EQ(topology.find_host("host 7"), 7U);
  EXPECT_EQ(topology.find_link("spine 1 -> leaf 2"), 35U);
}

TEST(topology, leaf_spine__paths_take_two_hops_within_a_leaf_and_four_beyond) {
  const Topology topology = Topology::leaf_spine({3, 2, 4, kRate, {}});
  EXPECT_THAT(names(topology, topology.path(1, 3, 9)), ElementsAre("host 1 -> leaf 0", "leaf 0 -> host 3"));
  EXPECT_TRUE(topology.path(5, 5, 9).empty());
  std::set<std::string> spines;
  for (std::uint64_t key = 0; key < 64; ++key) {
    const auto path = topology.path(1, 10, key);
    topology.check_path(1, 10, path);
    EXPECT_EQ(path.size(), 4U);
    EXPECT_EQ(path, topology.path(1, 10, key));
    spines.insert(topology.link_name(path[1]));
  }
  EXPECT_THAT(spines, ElementsAre("leaf 0 -> spine 0", "leaf 0 -> spine 1"));
}

TEST(topology, leaf_spine__flows_spread_evenly_over_spines) {
  const Topology topology = Topology::leaf_spine({2, 4, 1, kRate, {}});
  std::vector<int> flows(topology.links());
  for (std::uint64_t key = 0; key < 4000; ++key)
    for (const Topology::Link link : topology.path(0, 1, key)) ++flows[link];
  for (int spine = 0; spine < 4; ++spine) {
    EXPECT_NEAR(flows[topology.find_link("leaf 0 -> spine " + std::to_string(spine))], 1000, 100);
  }
}

TEST(topology, fat_tree__of_four_ports_has_sixteen_hosts_and_four_paths_between_pods) {
  const Topology topology = Topology::fat_tree(4, kRate);
  EXPECT_EQ(topology.hosts(), 16U);
  EXPECT_EQ(topology.links(), 2U * 48);
  EXPECT_EQ(topology.racks(), 8U);
  std::set<std::vector<Topology::Link>> paths;
  for (std::uint64_t key = 0; key < 100; ++key) paths.insert(topology.path(0, 15, key));
  EXPECT_EQ(paths.size(), 4U);
  for (const auto& path : paths) EXPECT_EQ(path.size(), 6U);
  EXPECT_EQ(topology.path(0, 1, 5).size(), 2U);
  EXPECT_EQ(topology.path(0, 2, 5).size(), 4U);
  for (Topology::Host from = 0; from < 16; ++from)
    for (Topology::Host to = 0; to < 16; ++to)
      topology.check_path(from, to, topology.path(from, to, std::uint64_t{from} * to));
}

TEST(topology, single_switch__is_one_rack) {
  const Topology topology = Topology::single_switch(5, kRate);
  EXPECT_EQ(topology.racks(), 1U);
  EXPECT_THAT(names(topology, topology.path(4, 0, 1)), ElementsAre("host 4 -> switch 0", "switch 0 -> host 0"));
}

TEST(topology, graph__takes_names_and_capacities_and_numbers_hosts_first) {
  const Topology topology(two_switches());
  EXPECT_EQ(topology.host_name(1), "b");
  EXPECT_EQ(topology.capacity(topology.find_link("there")), Rate(500));
  EXPECT_THAT(names(topology, topology.path(0, 1, 1)), ElementsAre("a -> s", "there", "t -> b"));
}

TEST(topology, graph__hosts_side_by_side_need_no_switch_and_do_not_forward) {
  const Graph graph{{{"a", true}, {"b", true}, {"c", true}},
                    {{"a", "b", kRate}, {"b", "a", kRate}, {"b", "c", kRate}, {"c", "b", kRate}}};
  const Topology topology(graph);
  EXPECT_THAT(names(topology, topology.path(0, 1, 1)), ElementsAre("a -> b"));
  EXPECT_THAT(refusal_of([&] { return topology.path(0, 2, 1); }), HasSubstr("no path leads from \"a\" to \"c\""));
}

TEST(topology, graph__host_on_two_switches_is_reached_over_both) {
  const Graph graph{{{"a", true}, {"b", true}, {"s"}, {"t"}},
                    {{"a", "s", kRate},
                     {"s", "a", kRate},
                     {"a", "t", kRate},
                     {"t", "a", kRate},
                     {"b", "s", kRate},
                     {"s", "b", kRate},
                     {"b", "t", kRate},
                     {"t", "b", kRate}}};
  const Topology topology(graph);
  EXPECT_EQ(topology.racks(), 1U);
  std::set<std::vector<Topology::Link>> paths;
  for (std::uint64_t key = 0; key < 32; ++key) paths.insert(topology.path(0, 1, key));
  EXPECT_EQ(paths.size(), 2U);
}

TEST(topology, graph__refuses_what_is_wrong_with_one_clear_error) {
  const auto error_with = [](const std::function<void(Graph&)>& change) {
    Graph graph = two_switches();
    change(graph);
    return refusal_of([&] { Topology{graph}; });
  };
  EXPECT_EQ(error_with([](Graph&) {}), "no error");
  EXPECT_EQ(error_with([](Graph& g) { g.nodes = {{"s"}, {"t"}}; }), "the network has 0 hosts; give 1 to 65536");
  EXPECT_EQ(error_with([](Graph& g) { g.nodes[2].name = "s"; }),
            "two nodes are called \"s\"; give every node a name of its own");
  EXPECT_EQ(error_with([](Graph& g) { g.nodes[2].name = ""; }), "a node has no name; give every node one of its own");
  EXPECT_EQ(error_with([](Graph& g) { g.links[0].to = "x"; }),
            "link \"a -> x\" leads from or to \"x\", which is no node; add the node or correct the link");
  EXPECT_EQ(error_with([](Graph& g) { g.links[0].to = "a"; }),
            "link \"a -> a\" leads from a node to itself; leave it out");
  EXPECT_EQ(error_with([](Graph& g) { g.links[4].capacity = Rate(0); }),
            "link \"there\" has a capacity of 0 bps; give it a rate above 0 and at most 100 Tbps");
  EXPECT_EQ(error_with([](Graph& g) { g.links[4].capacity = Rate(100'000'000'000'001); }),
            "link \"there\" has a capacity of 100000000000.001 kbps; give it a rate above 0 and at most 100 Tbps");
  EXPECT_EQ(error_with([](Graph& g) {
              g.links.push_back({"a", "s", kRate});
            }),
            "two links are called \"a -> s\"; give each a name of its own");
  EXPECT_EQ(error_with([](Graph& g) { g.links.resize(4); }),
            "\"a\" and \"b\" are in parts of the network that no link joins; add links between them");
  EXPECT_EQ(error_with([](Graph& g) {
              g.nodes.push_back({"c", true});
            }),
            "no link leads from \"c\"; every host needs one in each direction");
  EXPECT_EQ(error_with([](Graph& g) { g.links.erase(g.links.begin()); }),
            "no link leads from \"a\"; every host needs one in each direction");
}

TEST(topology, path__no_way_in_one_direction_names_both_hosts) {
  Graph graph = two_switches();
  graph.links.pop_back();
  const Topology topology(graph);
  EXPECT_EQ(topology.path(0, 1, 1).size(), 3U);
  EXPECT_EQ(refusal_of([&] { return topology.path(1, 0, 1); }),
            "no path leads from \"b\" to \"a\"; add links in this direction");
  EXPECT_EQ(refusal_of([&] { return topology.path(1, 2, 1); }), "there is no host 2; the network has hosts 0 to 1");
}

TEST(topology, check_path__refuses_paths_that_do_not_lead_there) {
  const Topology topology = Topology::leaf_spine({2, 1, 1, kRate, {}});
  auto path = topology.path(0, 1, 1);
  const auto error = [&] { return message_of<InputError>([&] { topology.check_path(0, 1, path); }); };
  EXPECT_EQ(error(), "no error");
  path.pop_back();
  EXPECT_EQ(error(), "the path from \"host 0\" to \"host 1\" ends at \"leaf 1\"; end it at its destination");
  path.erase(path.begin() + 1);
  EXPECT_THAT(error(), HasSubstr("reaches \"leaf 0\" and then takes link \"spine 0 -> leaf 1\""));
  path = {99};
  EXPECT_THAT(error(), HasSubstr("has a link 99, but links are 0 to 7"));
}

TEST(topology, builders__refuse_shapes_out_of_range) {
  EXPECT_THROW(Topology::leaf_spine({0, 1, 1, kRate, {}}), InputError);
  EXPECT_THROW(Topology::leaf_spine({2, 0, 1, kRate, {}}), InputError);
  EXPECT_NO_THROW(Topology::leaf_spine({1, 0, 2, kRate, {}}));
  EXPECT_THROW(Topology::leaf_spine({2, 2, 2, Rate(0), {}}), InputError);
  EXPECT_THROW(Topology::fat_tree(5, kRate), InputError);
  EXPECT_THROW(Topology::single_switch(0, kRate), InputError);
  EXPECT_EQ(refusal_of([] { return Topology::single_switch(2, kRate).find_link("x"); }),
            "there is no link \"x\"; the first link is \"host 0 -> switch 0\"");
  EXPECT_EQ(refusal_of([] { return Topology::single_switch(2, kRate).find_host("switch 0"); }),
            "there is no host \"switch 0\"; the first host is \"host 0\"");
}

TEST(topology, longest_delay__is_that_of_the_longest_shortest_path) {
  const Nanos us(1'000);
  EXPECT_EQ(Topology::single_switch(3, kRate, us).longest_delay(), us * 2);
  EXPECT_EQ(Topology::leaf_spine({3, 2, 2, kRate, kRate, us}).longest_delay(), us * 4);
  EXPECT_EQ(Topology::leaf_spine({1, 2, 2, kRate, kRate, us}).longest_delay(), us * 2);
  EXPECT_EQ(Topology::fat_tree(4, kRate, us).longest_delay(), us * 6);
  // Each path from "a" to "b" leads over t, u or v. The path over v has the most hops. The paths over t and u have
  // equally many hops, and the path over t has the longer delay.
  Graph graph{{{"a", true}, {"b", true}, {"r"}, {"s"}, {"t"}, {"u"}, {"v"}, {"w"}}, {}};
  const auto cable = [&](const char* from, const char* to, std::int64_t delay) {
    graph.links.push_back({from, to, kRate, {}, us * delay});
    graph.links.push_back({to, from, kRate, {}, us * delay});
  };
  cable("a", "r", 2);
  cable("s", "b", 2);
  cable("r", "u", 1);
  cable("u", "s", 1);
  cable("r", "t", 10);
  cable("t", "s", 20);
  cable("r", "v", 100);
  cable("v", "w", 100);
  cable("w", "s", 100);
  EXPECT_EQ(Topology(graph).longest_delay(), us * 34);
}

TEST(topology, has_choices__where_flows_have_several_ways) {
  EXPECT_FALSE(Topology::single_switch(3, kRate).has_choices());
  EXPECT_FALSE(Topology::leaf_spine({3, 1, 2, kRate}).has_choices());
  EXPECT_TRUE(Topology::leaf_spine({3, 2, 2, kRate}).has_choices());
  EXPECT_TRUE(Topology::fat_tree(4, kRate).has_choices());
  EXPECT_FALSE(Topology::fat_tree(2, kRate).has_choices());
  EXPECT_FALSE(Topology(two_switches()).has_choices());
  Graph graph = two_switches();
  graph.links.push_back({"s", "t", kRate, "another"});
  EXPECT_TRUE(Topology(graph).has_choices());
}

TEST(topology, oversubscription__is_that_of_the_fullest_rack) {
  EXPECT_EQ(Topology::single_switch(3, kRate).oversubscription(), 1);
  EXPECT_EQ(Topology::leaf_spine({3, 2, 4, Rate(50), Rate(25)}).oversubscription(), 4);
  EXPECT_EQ(Topology::fat_tree(4, kRate).oversubscription(), 1);
  EXPECT_EQ(Topology(two_switches()).oversubscription(), 2'000'000);
}

TEST(topology, check_all_paths__names_two_hosts_without_one) {
  EXPECT_EQ(refusal_of([] { Topology(two_switches()).check_all_paths(); }), "no error");
  EXPECT_EQ(refusal_of([] { Topology::leaf_spine({3, 2, 2, kRate}).check_all_paths(); }), "no error");
  Graph graph = two_switches();
  graph.links.pop_back();
  EXPECT_EQ(refusal_of([&] { Topology(graph).check_all_paths(); }),
            "no path leads from \"b\" to \"a\"; add links in this direction");
  // Host "a" sends to "s" and receives from "t", and no path leads from "s" to "t".
  const Graph circle{{{"a", true}, {"b", true}, {"s"}, {"t"}},
                     {{"a", "s", kRate}, {"t", "a", kRate}, {"b", "s", kRate}, {"s", "b", kRate}, {"t", "s", kRate}}};
  EXPECT_EQ(refusal_of([&] { Topology(circle).check_all_paths(); }),
            "no path leads from \"b\" to \"a\"; add links in this direction");
  const Graph side_by_side{{{"a", true}, {"b", true}, {"c", true}},
                           {{"a", "b", kRate}, {"b", "a", kRate}, {"b", "c", kRate}, {"c", "b", kRate}}};
  EXPECT_EQ(refusal_of([&] { Topology(side_by_side).check_all_paths(); }),
            "no path leads from \"a\" to \"c\"; add links in this direction");
}

// Networks above the limits would need too much memory or time, and are refused before they are built.
TEST(topology, limits__are_checked_up_front) {
  const auto refused = [](const std::function<Topology()>& make) { return refusal_of([&] { return make(); }); };
  EXPECT_EQ(refused([] { return Topology::single_switch(1'000'000, kRate); }),
            "the network has 1000000 hosts; give 1 to 65536");
  EXPECT_EQ(refused([] { return Topology::fat_tree(128, kRate); }),
            "a fat tree has switches with 128 ports; give an even number from 2 to 64");
  EXPECT_EQ(refused([] {
              return Topology::leaf_spine({4096, 4, 256, kRate});
            }),
            "the network has 4096 leaves; give 1 to 1024");
  EXPECT_EQ(refused([] {
              return Topology::leaf_spine({1024, 4, 1024, kRate});
            }),
            "the network has 1048576 hosts; give 1 to 65536");
  EXPECT_EQ(Topology::single_switch(Topology::kMaxHosts, kRate).hosts(), 65536U);

  // The network is a row of 10,000 switches with a host on each.
  Graph row;
  for (int i = 0; i < 10'000; ++i) {
    const std::string number = std::to_string(i);
    row.nodes.push_back({"h" + number, true});
    row.nodes.push_back({"s" + number});
    row.links.push_back({"h" + number, "s" + number, kRate});
    row.links.push_back({"s" + number, "h" + number, kRate});
    if (i == 0) continue;
    row.links.push_back({"s" + number, "s" + std::to_string(i - 1), kRate});
    row.links.push_back({"s" + std::to_string(i - 1), "s" + number, kRate});
  }
  EXPECT_EQ(
      refused([&] { return Topology(row); }),
      "the network has 10000 switches and 19998 links between them for 10000 racks of hosts, too many to find the "
      "shortest paths; make it smaller, or put more hosts on each switch");
  Graph switches{{{"h", true}}, {}};
  for (std::uint32_t i = 0; i <= Topology::kMaxSwitches; ++i) switches.nodes.push_back({std::to_string(i)});
  EXPECT_EQ(refused([&] { return Topology(switches); }), "the network has 65537 switches; give 0 to 65536");
  Graph links = two_switches();
  links.links.resize(Topology::kMaxLinks + 1);
  EXPECT_EQ(refused([&] { return Topology(links); }),
            "the network has 4194305 links, one direction each; give 0 to 4194304");
}

}  // namespace
}  // namespace mltcp
