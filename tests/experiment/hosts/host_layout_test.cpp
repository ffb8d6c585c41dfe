// Tests the hosts of an experiment and the ranks on each host.
#include "mltcp/lab/experiment/hosts/host_layout.h"

#include <gtest/gtest.h>
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment {
namespace {

using Numbers = std::vector<std::uint32_t>;

Experiment parse(const std::string& text) { return parse_experiment(text, "x.toml"); }

TEST(host_layout, bottleneck__has_a_sender_a_job_and_one_receiver) {
  const Experiment experiment = parse(R"(
    [bottleneck]
    rate = "1 Gbps"
    [[job]]
    name = "a"
    compute = "1 ms"
    communicate = "1 MB"
    count = 3
  )");
  const HostLayout layout = host_layout(experiment);
  EXPECT_EQ(layout.jobs, (std::vector<Numbers>{{0, 3}, {1, 3}, {2, 3}}));
  EXPECT_EQ(layout.hosts, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(layout.ranks_of(1), (std::vector<HostLayout::Rank>{{1, 0}}));
  EXPECT_EQ(layout.ranks_of(3), (std::vector<HostLayout::Rank>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(layout.ranks_of(4), std::vector<HostLayout::Rank>());
  EXPECT_EQ(describe_host(experiment, layout, 0), "host 0 (sends for \"a-1\")");
  EXPECT_EQ(roles_of(experiment, layout, 0), "sends for \"a-1\"");
  EXPECT_EQ(describe_host(experiment, layout, 3),
            "host 3 (receives for \"a-1\", receives for \"a-2\", receives for \"a-3\")");
}

TEST(host_layout, topology__has_ranks_where_jobs_say_and_only_those_hosts) {
  const Experiment experiment = parse(R"(
    [topology]
    kind = "single-switch"
    hosts = 12
    host_rate = "1 Gbps"
    [[job]]
    name = "ring"
    compute = "1 ms"
    communicate = "1 MB"
    hosts = [5, 2]
    [[job]]
    name = "plain"
    compute = "1 ms"
    communicate = "1 MB"
    [[job]]
    name = "pattern"
    pattern = "all-reduce"
    size = "1 MB"
    hosts = [2, 7, 1]
  )");
  const HostLayout layout = host_layout(experiment);
  EXPECT_EQ(layout.jobs, (std::vector<Numbers>{{5, 2}, {0, 6}, {2, 7, 1}}));
  EXPECT_EQ(layout.hosts, (Numbers{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(layout.ranks_of(2), (std::vector<HostLayout::Rank>{{0, 1}, {2, 0}}));
  EXPECT_EQ(describe_host(experiment, layout, 2), "host 2 (rank 1 of \"ring\", rank 0 of \"pattern\")");
}

}  // namespace
}  // namespace mltcp::experiment
