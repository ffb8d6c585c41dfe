// Tests networks given as lists of links.
#include "mltcp/lab/experiment/files/links_file.h"

#include "../../message_of.h"

namespace mltcp::experiment::links_file_test {
namespace {

const LinksFileOptions kHosts{{"h*", "store"}, Nanos(1'000)};

Graph parse(const std::string& text) { return parse_links(text, "net.csv", kHosts); }

std::string refusal(const std::string& text) {
  return refusal_of([&] { return parse(text); });
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const Graph::Link& link : graph.links) result.push_back(link.from + " -> " + link.to);
  return result;
}

TEST(LinksFile, parse__reads_columns_in_any_order_and_both_directions) {
  const Graph graph = parse(
      "\xef\xbb\xbf# a comment\r\n\r\n"
      "rate, direction ,to,from,delay  # more\r\n"
      "10 Gbps,,s 1,h1,\r\n"
      "1 Gbps,both,store,s 1,2 us\r\n"
      "40 Gbps,one-way,t,s 1,3 ms\r\n");
  EXPECT_THAT(names(graph), ElementsAre("h1 -> s 1", "s 1 -> h1", "s 1 -> store", "store -> s 1", "s 1 -> t"));
  std::vector<std::string> hosts;
  std::vector<std::string> switches;
  for (const Graph::Node& node : graph.nodes) (node.host ? hosts : switches).push_back(node.name);
  EXPECT_THAT(hosts, ElementsAre("h1", "store"));
  EXPECT_THAT(switches, ElementsAre("s 1", "t"));
  EXPECT_EQ(graph.links[1].capacity, Rate::from_gbps(10));
  EXPECT_EQ(graph.links[1].delay, Nanos(1'000));
  EXPECT_EQ(graph.links[3].capacity, Rate::from_gbps(1));
  EXPECT_EQ(graph.links[3].delay, Nanos(2'000));
  EXPECT_EQ(graph.links[4].delay, Nanos(3'000'000));
}

TEST(LinksFile, parse__directions_may_differ) {
  const Graph graph =
      parse("from,to,rate,direction\nh1,s,1 Gbps,\ns,t,1 Gbps,one-way\nt,s,2 Gbps,one-way\nh2,t,1 Gbps,\n");
  EXPECT_EQ(graph.links[3].capacity, Rate::from_gbps(2));
  EXPECT_EQ(Topology(graph).path(0, 1, 1).size(), 3U);
}

TEST(LinksFile, parse__names_file_line_and_column) {
  const std::string head = "from,to,rate,delay,direction\n";
  EXPECT_EQ(refusal(head + "h1,s,1 Gbps,,\n"), "no error");
  EXPECT_EQ(refusal(""), "net.csv:1: columns: the file is empty; begin it with from,to,rate");
  EXPECT_EQ(refusal(head), "net.csv:1: from: there is no link; add a line such as host-1,switch-1,100 Gbps");
  EXPECT_EQ(refusal("from,to,speed\n"),
            "net.csv:1: columns: \"speed\" is not known; the columns are from, to, rate, delay and direction");
  EXPECT_EQ(refusal("from,to,to\n"), "net.csv:1: columns: \"to\" appears twice; keep one of them");
  EXPECT_EQ(refusal("\n\nfrom,to\n"), "net.csv:3: columns: \"rate\" is missing; add the column");
  EXPECT_EQ(
      refusal(head + "h1,s,1 Gbps\n"),
      "net.csv:2: columns: the line has 3 fields and the first one 5 columns; write a field for each, separated by "
      "commas");
  EXPECT_THAT(refusal(head + "h1,s,10,,\n"),
              StartsWith("net.csv:2: rate: \"10\" is not a rate: the unit is missing; "));
  EXPECT_THAT(refusal(head + "h1,s,,,\n"), StartsWith("net.csv:2: rate: "));
  EXPECT_EQ(refusal(head + "h1,s,999 bps,,\n"), "net.csv:2: rate: 999 bps is out of range; write 1 kbps to 100 Tbps");
  EXPECT_THAT(refusal(head + "h1,s,101 Tbps,,\n"), StartsWith("net.csv:2: rate: 101 Tbps is out of range; "));
  EXPECT_THAT(refusal(head + "h1,s,1 Gbps,-1 us,\n"), StartsWith("net.csv:2: delay: "));
  EXPECT_EQ(refusal(head + "h1,s,1 Gbps,11 s,\n"), "net.csv:2: delay: 11 s is too long; write at most 10 s");
  EXPECT_EQ(refusal(head + "h1,s,1 Gbps,,up\n"), "net.csv:2: direction: \"up\" is not known; write both or one-way");
  EXPECT_EQ(refusal(head + "h1,,1 Gbps,,\n"), "net.csv:2: to: the name is empty; write the name of a host or a switch");
  EXPECT_EQ(refusal(head + "h1," + std::string(101, 's') + ",1 Gbps,,\n"),
            "net.csv:2: to: the name has 101 bytes; write at most 100");
  EXPECT_THAT(refusal(head + "h\x01,s,1 Gbps,,\n"), StartsWith("net.csv:2: from: the name has control characters"));
  EXPECT_EQ(refusal(head + "s,s,1 Gbps,,\n"), "net.csv:2: to: the link leads from \"s\" to itself; leave it out");
}

TEST(LinksFile, parse__refuses_links_that_are_there_twice_and_hosts_with_several) {
  const std::string head = "from,to,rate,direction\n";
  const std::string twice =
      "net.csv:3: from: the link from \"t\" to \"s\" is in line 2 too; keep one; write parallel cables as one link "
      "with their total rate";
  EXPECT_EQ(refusal(head + "s,t,1 Gbps,\nt,s,1 Gbps,\n"), twice);
  EXPECT_EQ(refusal(head + "s,t,1 Gbps,\nt,s,1 Gbps,one-way\n"), twice);
  EXPECT_EQ(refusal(head + "s,t,1 Gbps,one-way\nt,s,1 Gbps,one-way\n"), "no error");
  const std::string several =
      "net.csv:3: from: host \"h1\" has a link in line 2 already; a host has one link: write one link with the total "
      "rate, or several hosts";
  EXPECT_EQ(refusal(head + "h1,s,1 Gbps,\nh1,t,1 Gbps,\n"), several);
  EXPECT_EQ(refusal(head + "s,h1,1 Gbps,one-way\nt,h1,1 Gbps,one-way\n"), several);
  EXPECT_EQ(refusal(head + "s,h1,1 Gbps,one-way\nh1,t,1 Gbps,one-way\n"), "no error");
}

TEST(LinksFile, matches__as_a_shell) {
  EXPECT_TRUE(matches("gpu-*", "gpu-12"));
  EXPECT_TRUE(matches("rack[0-3]/*", "rack2/gpu 1"));
  EXPECT_FALSE(matches("gpu-?", "gpu-12"));
  EXPECT_FALSE(matches("gpu", "gpu-1"));
}

}  // namespace
}  // namespace mltcp::experiment::links_file_test
