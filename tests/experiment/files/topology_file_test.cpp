// Networks with the names of their hosts.
#include "mltcp/experiment/files/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "mltcp/base/error.h"

namespace mltcp::experiment::topology_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  return "no error";
}

const std::string switched = "[topology]\nkind = \"single-switch\"\nhosts = 3\nhost_rate = \"10 Gbps\"\n";

TEST(topology_file, hosts__have_the_names_that_the_file_gives_or_the_topologys) {
  const TopologyFile named = parse_topology("hosts = [\"a\", \"node[08-09]\"]\n" + switched, "t.toml");
  EXPECT_THAT(named.host_names, ElementsAre("a", "node08", "node09"));
  EXPECT_EQ(named.topology->hosts(), 3U);
  EXPECT_EQ(named.file, "t.toml");
  EXPECT_THAT(parse_topology(switched, "t.toml").host_names, ElementsAre("host 0", "host 1", "host 2"));
}

TEST(topology_file, expand_names__counts_with_the_digits_that_it_was_given) {
  EXPECT_THAT(expand_names("node", 10), ElementsAre("node"));
  EXPECT_THAT(expand_names("n[9-11]", 10), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(expand_names("n[009-011].x", 10), ElementsAre("n009.x", "n010.x", "n011.x"));
  EXPECT_THAT(expand_names("n[1,3-4,7]", 10), ElementsAre("n1", "n3", "n4", "n7"));
  EXPECT_THAT(expand_names("n[1-10]", 10), SizeIs(10));
  for (const auto& [text, says] :
       std::vector<std::pair<std::string, std::string>>{{"n[1-11]", "more than 10 names"},
                                                        {"n[1-5,1-6]", "more than 10 names"},
                                                        {"n[0-999999999]", "more than 10 names"},
                                                        {"n[1-3", "the bracket is not closed"},
                                                        {"n[]", "there is no number"},
                                                        {"n[a]", "there is no number"},
                                                        {"n[1-]", "there is no number"},
                                                        {"n[1,]", "there is no number"},
                                                        {"n[-1]", "there is no number"},
                                                        {"n[9999999999]", "there is no number"},
                                                        {"n[3-1]", "runs backwards"},
                                                        {"n[1][2]", "more than one range"}})
    EXPECT_THAT(refusal([&, &name = text] { expand_names(name, 10); }), HasSubstr(says)) << text;
}

TEST(topology_file, bad_input__is_refused_with_line_and_key) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "t.toml:1: topology: the file is empty"},
      {"hosts = [\"a\"]", "t.toml:1: topology: the table is missing"},
      {"host = 1\n" + switched, "t.toml:1: host: unknown key; did you mean \"hosts\"?"},
      {"hosts = 1\n" + switched, "t.toml:1: hosts: an array of names is expected"},
      {"hosts = [1]\n" + switched, "t.toml:1: hosts: "},
      {"hosts = [\"a\", \"b\"]\n" + switched, "there are 2 names and the topology has 3 hosts"},
      {"hosts = [\"a\", \"b\", \"a\"]\n" + switched, "\"a\" stands there twice"},
      {"hosts = [\"a\", \"b\", \"\"]\n" + switched, "\"\" is no name of a host"},
      {"hosts = [\"a\", \"b\", \"c\\n\"]\n" + switched, "is no name of a host"},
      {"hosts = [\"a\", \"n[1-\"]\n" + switched, "t.toml:1: hosts: the bracket is not closed"},
      {"[bottleneck]\nrate = \"1 Gbps\"\n", "it is one of an experiment"},
      {"[topology]\nkind = \"moon\"\n", "\"moon\" is not known"},
  };
  for (const auto& [text, says] : cases)
    EXPECT_THAT(refusal([&, &file = text] { parse_topology(file, "t.toml"); }), HasSubstr(says)) << text;
}

}  // namespace
}  // namespace mltcp::experiment::topology_file_test
