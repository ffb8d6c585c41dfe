// Tests networks with named hosts.
#include "mltcp/lab/experiment/files/topology_file.h"
#include "../../temporary_folder.h"

#include <utility>

#include "../../message_of.h"

namespace mltcp::experiment::topology_file_test {
namespace {

const std::string switched = "[topology]\nkind = \"single-switch\"\nhosts = 3\nhost_rate = \"10 Gbps\"\n";

const std::string slurm = "[topology]\nkind = \"slurm\"\nfile = \"none.conf\"\nhost_rate = \"10 Gbps\"\n";

TEST(topology_file, slurm__gives_hosts_and_switches_and_the_file_their_rates) {
  const TemporaryFolder folder;
  folder.write("topology.conf",
               "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-6]\nSwitchName=s3 Switches=s[1-2]\n");
  folder.write("t.toml",
               "[topology]\nkind = \"slurm\"\nfile = \"topology.conf\"\nhost_rate = \"100 Gbps\"\n"
               "oversubscription = 2\n");
  const TopologyFile read = load_topology(folder / "t.toml");
  EXPECT_THAT(read.host_names, ElementsAre("n1", "n2", "n3", "n4", "n5", "n6"));
  EXPECT_EQ(read.topology->racks(), 2U);
  EXPECT_EQ(read.topology->capacity(read.topology->find_link("n1 -> s1")), Rate::from_gbps(100));
  EXPECT_EQ(read.topology->capacity(read.topology->find_link("s1 -> s3")), Rate::from_gbps(200));
  EXPECT_EQ(read.topology->capacity(read.topology->find_link("s3 -> s2")), Rate::from_gbps(100));
  EXPECT_EQ(read.topology->oversubscription(), 2);
  EXPECT_THAT(refusal_of([&] { load_topology(folder / "topology.conf"); }),
              HasAll("this is Slurm's description of a network, but a topology file is expected", "kind = \"slurm\""));
}

TEST(topology_file, hosts__have_the_names_that_the_file_gives_or_the_topologys) {
  const TopologyFile named = parse_topology("hosts = [\"a\", \"node[08-09]\"]\n" + switched, "t.toml");
  EXPECT_THAT(named.host_names, ElementsAre("a", "node08", "node09"));
  EXPECT_EQ(named.topology->hosts(), 3U);
  EXPECT_EQ(named.file, "t.toml");
  EXPECT_THAT(parse_topology(switched, "t.toml").host_names, ElementsAre("host 0", "host 1", "host 2"));
}

TEST(topology_file, bad_input__is_refused_with_line_and_key) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "t.toml:1: topology: the file is empty"},
      {"hosts = [\"a\"]", "t.toml:1: topology: the table is missing"},
      {"host = 1\n" + switched, "t.toml:1: host: unknown key; did you mean \"hosts\"?"},
      {"hosts = 1\n" + switched, "t.toml:1: hosts: an array of names is expected"},
      {"hosts = [1]\n" + switched, "t.toml:1: hosts: "},
      {"hosts = [\"a\", \"b\"]\n" + switched, "there are 2 names, but the topology has 3 hosts"},
      {"hosts = [\"a\", \"b\", \"a\"]\n" + switched, "\"a\" appears twice"},
      {"hosts = [\"a\", \"b\", \"\"]\n" + switched, "there is an empty name"},
      {"hosts = [\"a\", \"b\", \"c\\n\"]\n" + switched, "is not a name of a host"},
      {"hosts = [\"a\", \"n[1-\"]\n" + switched, "t.toml:1: hosts: a bracket is not opened or not closed"},
      {"hosts = [\"a,b,\"]\n" + switched, "t.toml:1: hosts: there is an empty name"},
      {"[bottleneck]\nrate = \"1 Gbps\"\n", "the key belongs to an experiment"},
      {"[topology]\nkind = \"moon\"\n", "\"moon\" is not known"},
      {slurm, "t.toml:1: topology.oversubscription: Slurm's file has no rates of links; write oversubscription = 1"},
      {slurm + "uplink_rate = \"1 Gbps\"\noversubscription = 2\n",
       "t.toml:6: topology.oversubscription: uplink_rate is given too"},
      {slurm + "oversubscription = 0\n", "t.toml:5: topology.oversubscription: 0 is out of range"},
      {slurm + "oversubscription = 2\n", "t.toml:3: topology.file: none.conf: there is no such file"},
  };
  for (const auto& [text, says] : cases)
    EXPECT_THAT(refusal_of([&, &file = text] { parse_topology(file, "t.toml"); }), HasSubstr(says)) << text;
}

}  // namespace
}  // namespace mltcp::experiment::topology_file_test
