// Tests Slurm's lists of hosts and topologies.
#include "mltcp/lab/experiment/files/slurm_topology.h"

#include <utility>

#include "../../message_of.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/host_list.h"

namespace mltcp::experiment::slurm_topology_test {
namespace {

Graph parse(const std::string& text, double oversubscription = 1, Rate uplink = {}) {
  return parse_slurm_topology(text, "t.conf",
                              {.host_rate = Rate::from_gbps(100),
                               .uplink_rate = uplink,
                               .oversubscription = oversubscription,
                               .delay = Nanos(7)});
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { return parse(text); });
}

/// Returns a text for each link, in the first of its two directions: the two nodes and the rate in Gbps, for example
/// "n1 s1 100".
std::vector<std::string> links(const Graph& graph) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < graph.links.size(); i += 2) {
    const Graph::Link& link = graph.links[i];
    EXPECT_EQ(link.from, graph.links[i + 1].to);
    EXPECT_EQ(link.to, graph.links[i + 1].from);
    EXPECT_EQ(link.capacity, graph.links[i + 1].capacity);
    EXPECT_EQ(link.delay, Nanos(7));
    result.push_back(link.from + " " + link.to + " " + std::to_string(link.capacity.bits_per_second / 1'000'000'000));
  }
  return result;
}

std::vector<std::string> hosts(const Graph& graph) {
  std::vector<std::string> result;
  for (const Graph::Node& node : graph.nodes)
    if (node.host) result.push_back(node.name);
  return result;
}

TEST(host_list, expand_hosts__counts_with_the_digits_that_it_was_given) {
  EXPECT_THAT(expand_hosts("node", 10), ElementsAre("node"));
  EXPECT_THAT(expand_hosts("n[9-11]", 10), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(expand_hosts("n[009-011].x", 10), ElementsAre("n009.x", "n010.x", "n011.x"));
  EXPECT_THAT(expand_hosts("n[1,3-4,07]", 10), ElementsAre("n1", "n3", "n4", "n07"));
  EXPECT_THAT(expand_hosts("a, b[1-2] ,c-1", 10), ElementsAre("a", "b1", "b2", "c-1"));
  EXPECT_THAT(expand_hosts("r[1-2]n[08-09]-x[3]", 10), ElementsAre("r1n08-x3", "r1n09-x3", "r2n08-x3", "r2n09-x3"));
  EXPECT_THAT(expand_hosts("n[1-10]", 10), SizeIs(10));
}

TEST(host_list, expand_hosts__refuses_what_is_no_list_or_too_long_before_it_makes_it) {
  const std::string longest(128, 'x');
  EXPECT_THAT(expand_hosts(longest, 1), ElementsAre(longest));
  for (const auto& [text, says] :
       std::vector<std::pair<std::string, std::string>>{{"n[1-11]", "more than 10 names"},
                                                        {"n[1-5,1-6]", "more than 10 names"},
                                                        {"a,n[1-5],m[1-5]", "more than 10 names"},
                                                        {"n[1-3][1-4]", "more than 10 names"},
                                                        {"n[0-999999999]", "more than 10 names"},
                                                        {"n[0-999999999][0-999999999]", "more than 10 names"},
                                                        {"n[1-3", "a bracket is not opened or not closed"},
                                                        {"n1-3]", "a bracket is not opened or not closed"},
                                                        {"n[1[2-3]]", "a bracket is not opened or not closed"},
                                                        {"n[[0]]", "a bracket is not opened or not closed"},
                                                        {"n[]", "there is no number"},
                                                        {"n[a]", "there is no number"},
                                                        {"n[1-]", "there is no number"},
                                                        {"n[1,]", "there is no number"},
                                                        {"n[-1]", "there is no number"},
                                                        {"n[99999999999]", "there is no number"},
                                                        {"n[3-1]", "ends below its start"},
                                                        {"", "an empty name"},
                                                        {"a,,b", "an empty name"},
                                                        {longest + "x", "more than 128 bytes"},
                                                        {longest + "[1]", "more than 128 bytes"}})
    EXPECT_THAT(refusal_of([&, &name = text] { return expand_hosts(name, 10); }), HasSubstr(says)) << text;
}

TEST(slurm_topology, tree__has_the_hosts_and_switches_of_its_lines) {
  const Graph graph = parse(
      "# all of it\n"
      "SwitchName=s1 Nodes=n[01-03],x LinkSpeed=100Gb/s  # a comment\r\n"
      "\n"
      "switchname = s2 NODES=\"n[04-05]\"\n"
      "SwitchName=top \\\n"
      "  SWITCHES=s[1-2] \\\n"
      "\n",
      2);
  EXPECT_THAT(hosts(graph), ElementsAre("n01", "n02", "n03", "x", "n04", "n05"));
  // The uplink of a switch has half of the total rate of the switch's downlinks.
  EXPECT_THAT(links(graph), ElementsAre("n01 s1 100", "n02 s1 100", "n03 s1 100", "x s1 100", "n04 s2 100",
                                        "n05 s2 100", "s1 top 200", "s2 top 100"));
  EXPECT_EQ(Topology(graph).oversubscription(), 2);
}

TEST(slurm_topology, tree__may_be_of_any_depth_in_any_order) {
  const std::string text =
      "SwitchName=core Switches=pod[1-2]\nSwitchName=pod1 Switches=a,b\nSwitchName=pod2 Switches=c\n"
      "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=c Nodes=n[9-12]\n";
  EXPECT_THAT(links(parse(text, 2)),
              testing::IsSupersetOf({"a pod1 200", "b pod1 200", "c pod2 200", "pod1 core 200", "pod2 core 100"}));
  EXPECT_THAT(links(parse(text, 1, Rate::from_gbps(50))),
              testing::IsSupersetOf({"a pod1 50", "b pod1 50", "c pod2 50", "pod1 core 50", "pod2 core 50"}));
  const Topology topology(parse(text));
  EXPECT_EQ(topology.hosts(), 12U);
  EXPECT_EQ(topology.racks(), 3U);
  EXPECT_EQ(topology.path(0, 11, 0).size(), 6U);
  // A chain of switches does not cause a deep recursion.
  std::string chain = "SwitchName=s0 Nodes=n[1-2]\n";
  for (int i = 1; i < 20'000; ++i)
    chain += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i - 1) + "\n";
  EXPECT_THAT(parse(chain).links, SizeIs(2 * (2 + 19'999)));
}

TEST(slurm_topology, tree__shares_what_goes_up_between_several_switches_above) {
  const Graph graph = parse(
      "SwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[5-8]\nSwitchName=spine1 Switches=l[1-2]\n"
      "SwitchName=spine2 Switches=l[1-2]\n");
  EXPECT_THAT(links(graph),
              testing::IsSupersetOf({"l1 spine1 200", "l1 spine2 200", "l2 spine1 200", "l2 spine2 200"}));
  EXPECT_TRUE(Topology(graph).has_choices());
}

TEST(slurm_topology, blocks__are_switches_below_one_more) {
  const Graph graph = parse("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n");
  EXPECT_THAT(links(graph), ElementsAre("n1 b1 100", "n2 b1 100", "n3 b2 100", "n4 b2 100", "b1 above the blocks 200",
                                        "b2 above the blocks 200"));
  EXPECT_THAT(links(parse("BlockName=b1 Nodes=n[1-2]\n")), ElementsAre("n1 b1 100", "n2 b1 100"));
}

TEST(slurm_topology, yaml__has_one_topology_or_a_default) {
  const std::string tree =
      "---\n- topology: t1\n  cluster_default: true\n  tree:\n    switches:\n"
      "      - switch: s[1]   # why?\n        nodes: n[1-2]\n      - switch: s2\n        nodes: n[3-4]\n        "
      "children:\n"
      "      - switch: top\n        children: s[1-2]\n        nodes: null\n";
  const std::string blocks =
      "- topology: t2\n  block:\n    block_sizes:\n      - 2\n      - 4\n    blocks:\n      - block: b1\n"
      "        nodes: n[1-2]\n      - block: b2\n        nodes: n[3-4]\n";
  EXPECT_THAT(links(parse(tree)),
              ElementsAre("n1 s1 100", "n2 s1 100", "n3 s2 100", "n4 s2 100", "s1 top 200", "s2 top 200"));
  EXPECT_THAT(links(parse(tree + blocks)), SizeIs(6));
  EXPECT_THAT(links(parse(blocks)), Contains("b2 above the blocks 200"));
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"- topology: a\n  flat: true\n", "t.conf:1: topology: the topology has neither tree nor block"},
           {blocks + blocks, "t.conf:1: cluster_default: none of 2 topologies is the cluster's default"},
           {"- a\n", "t.conf:1: topology: a topology is a map"},
           {"- topology: a\n  tree:\n    switches: 3\n", "t.conf:3: switch: a list is expected"},
           {"- topology: a\n  tree:\n    switches:\n      - switch: a\n        nodes: [1, 2]\n",
            "not a valid topology.yaml"},
           {"- topology: a\n  tree:\n    switches:\n      - switch: s1\n        node: n1\n",
            "t.conf:4: node: the key is not known"},
           {"- topology: a\n  tree:\n    switches:\n      - switch: s1\n        children: s2\n",
            "t.conf:4: Switches: there is no switch \"s2\""},
           {"- topology: a\n  tree:\n    switches:\n      - switch: s1\n        nodes: n1\n        nodes: n2\n",
            "t.conf:6: nodes: the key appears twice; keep one"},
           {"- topology: a\n  tree:\n    switches:\n      - switch: s1\n        nodes:\n",
            "t.conf:4: SwitchName: \"s1\" has nothing below it"},
           {"- topology: a\n  tree:\n    switches:\n      - switch:\n        nodes: n1\n",
            "t.conf:4: SwitchName: there is an empty name"},
           {"- [", "not a valid topology.yaml"},
           {"- &t\n  topology: a\n- *t\n",
            "t.conf:3: topology: not a valid topology.yaml: it has an alias (*NAME) instead of"},
           {std::string(1U << 20U, '-'), "t.conf:1: topology: a list of topologies is expected"},
           {"- " + std::string(1U << 19U, '['), "not a valid topology.yaml"},
           {"-" + std::string(2U << 20U, ' '), "more than 1048576 bytes"}})
    EXPECT_THAT(refusal(text), HasSubstr(says)) << text.substr(0, 80);
  std::string nested;
  for (int i = 0; i < 400'000; ++i) nested += "- ";
  EXPECT_THAT(refusal(nested), StartsWith("t.conf:1: topology: "));
}

TEST(slurm_topology, bad_input__is_refused_with_line_and_key) {
  const std::string two = "SwitchName=a Nodes=n[1-2]\n";
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "t.conf:1: SwitchName: there is no switch and no block; give Slurm's topology.conf or topology.yaml"},
           {"# nothing\n", "t.conf:1: SwitchName: there is no switch"},
           {"SwitchName=a Nodes=n1\n", "t.conf:1: Nodes: there are fewer than two hosts"},
           {two + "SwitchName=b Nodes=n2,n3\n", "t.conf:2: Nodes: \"n2\" is on the switch of line 1 already"},
           {two + "SwitchName=b Nodes=n3,n3\n", "t.conf:2: Nodes: \"n3\" is on the switch of line 2 already"},
           {two + "SwitchName=a Nodes=n3\n", "t.conf:2: SwitchName: \"a\" is in line 1 too"},
           {two + "SwitchName=n1 Nodes=n3\n", "t.conf:2: SwitchName: \"n1\" is the name of a host in line 1 too"},
           {two + "\nSwitchName=b Nodes=n[3-4]\n",
            "t.conf:3: SwitchName: no switch connects \"a\" and \"b\", so no job can use both; add one, such as "
            "SwitchName=top Switches=a,b, or write a file for each part"},
           {two + "SwitchName=b Switches=a,c\n", "t.conf:2: Switches: there is no switch \"c\""},
           {two + "SwitchName=b Switches=a,a\n", "t.conf:2: Switches: \"a\" appears twice"},
           {two + "SwitchName=b Switches=a,c\nSwitchName=c Switches=d\nSwitchName=d Switches=c\n",
            " is above itself; leave out the switches above it"},
           {two + "SwitchName=b Switches=a,b\n", "t.conf:2: Switches: \"b\" is above itself"},
           {"SwitchName=a Switches=a Nodes=n[1-2]\n", "t.conf:1: Switches: \"a\" is above itself"},
           {two + "SwitchName=b\n", "t.conf:2: SwitchName: \"b\" has nothing below it"},
           {two + "SwitchName=b Nodes=\n", "t.conf:2: Nodes: there is an empty name"},
           {two + "SwitchName=b[1-2] Nodes=n3\n", "t.conf:2: SwitchName: the line names 2; write one line for each"},
           {"SwitchName=a Nodes=n[0-999999999]\n", "t.conf:1: Nodes: \"n[0-999999999]\" means more than 65536 names"},
           {"SwitchName=a Nodes=n[0-9\n", "t.conf:1: Nodes: a bracket is not opened or not closed"},
           {"SwitchName=a Nodes=\"n1\n", "t.conf:1: Nodes: the quotation mark is not closed"},
           {"SwitchName=a Nodes=n1 nodes=n2\n", "t.conf:1: nodes: the key appears twice"},
           {"SwitchName=a Nodes=n[1-2] Speed=3\n", "t.conf:1: speed: the key is not known; use SwitchName,"},
           {"SwitchName=a Nodes=n1 n2\n", "t.conf:1: line: \"n2\" is not KEY=VALUE"},
           {"Include other.conf\n", "t.conf:1: Include: other files are not read"},
           {"RingName=r Nodes=n[1-4]\n", "t.conf:1: ringname: a ring has no switches"},
           {"Nodes=n[1-2]\n", "t.conf:1: SwitchName: the key is missing"},
           {two + "BlockName=b Nodes=n3\n", "t.conf:2: BlockName: the file has switches and blocks"},
           {"BlockName=b Nodes=n[1-2] Switches=a\n", "t.conf:1: Switches: a block has only nodes"},
           {"BlockName=b Nodes=n[1-2]\nBlockSizes=x\n", "t.conf:2: BlockSizes: \"x\" is not a list of sizes"},
           {"SwitchName=\x1b[1m Nodes=n[1-2]\n", "t.conf:1: SwitchName: "}})
    EXPECT_THAT(refusal(text), HasSubstr(says)) << text;
  // The error for a cycle names a switch in the cycle, not a switch above it.
  EXPECT_THAT(refusal(two + "SwitchName=b Switches=a,c\nSwitchName=c Switches=d\nSwitchName=d Switches=c\n"),
              AnyOf(StartsWith("t.conf:3: "), StartsWith("t.conf:4: ")));
  // This file has few lines, but each expands to many names.
  std::string large = "SwitchName=a Nodes=n[1-60000]\n";
  for (int i = 0; i < 6; ++i) large += "SwitchName=b" + std::to_string(i) + " Switches=s[1-60000]\n";
  EXPECT_THAT(
      refusal(large),
      HasSubstr("t.conf:5: Switches: more than 262144 hosts and switches are named up to here; give a smaller"));
  // The rate of this link would exceed the maximum.
  EXPECT_THAT(refusal("SwitchName=a Nodes=n[1-2000]\nSwitchName=b Switches=a\n"),
              HasSubstr("t.conf:1: SwitchName: the link from \"a\" to \"b\" would have 200 Tbps; lower host_rate or "
                        "raise oversubscription so that it has at most 100 Tbps"));
}

TEST(slurm_topology, kind_of__knows_its_files) {
  EXPECT_EQ(kind_of("# x\nswitchname=a Nodes=b\n"), FileKind::slurm_topology);
  EXPECT_EQ(kind_of("BlockName=a Nodes=b\n"), FileKind::slurm_topology);
  EXPECT_EQ(kind_of("- topology: a\n"), FileKind::slurm_topology);
  EXPECT_EQ(kind_of("job_id,gpu_num,submit_time\n"), FileKind::job_table);
  EXPECT_EQ(kind_of("[\n {\"status\": \"Pass\", \"attempts\": []}]"), FileKind::job_table);
  EXPECT_EQ(kind_of("[[job]]\nname = \"attempts\"\n"), FileKind::experiment);
}

}  // namespace
}  // namespace mltcp::experiment::slurm_topology_test
