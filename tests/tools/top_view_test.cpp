// Tests the text view of `mltcp top`: it fits the terminal, shows rates between two samples, and sorts.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tools/mltcp/top_view.h"

namespace mltcp::tools {
namespace {

TopProcess process(int jobs, int connections, int ports) {
  TopProcess process;
  live::Snapshot& now = process.now;
  now.kind = "gen";
  now.name = "host 0 at 10.0.0.1/24";
  now.pid = 4711;
  now.up_seconds = 72;
  now.policy = "mltcp";
  for (int i = 0; i < jobs; ++i) {
    live::JobView& job = now.jobs.emplace_back();
    job.name = "job-" + std::to_string(i);
    job.iteration = 5;
    job.iterations = 60;
    job.last_seconds = 0.261;
    job.sent_bytes = 2'000'000 + 1'000'000U * static_cast<unsigned>(i);
  }
  for (int i = 0; i < connections; ++i) {
    live::ConnectionView& connection = now.connections.emplace_back();
    connection.peer = "10.0.0." + std::to_string(i) + ":62400";
    connection.job = "job-0";
    connection.transport.retransmitted_packets = static_cast<std::uint64_t>((i * 7) % 5);
    connection.transport.bytes_sent = 1000;
  }
  for (int i = 0; i < ports; ++i) {
    live::PortView& port = now.ports.emplace_back();
    port.name = "af_packet:a-rather-long-interface-name-" + std::to_string(i);
    port.sent_packets = 500'000;
    port.sent_bytes = 700'000'000;
  }
  return process;
}

/// Adds a sample from one second earlier, when the ports had sent nothing and each job had sent 1 MB.
TopProcess with_rates(TopProcess process) {
  process.before = process.now;
  process.before->up_seconds -= 1;
  for (auto& job : process.before->jobs) job.sent_bytes = 1'000'000;
  for (auto& port : process.before->ports) port.sent_packets = port.sent_bytes = 0;
  return process;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines(text))
    if (line.find(part) != std::string::npos) return line;
  return "";
}

TEST(TopScreen, nothing_runs__says_so) {
  const std::string text = top_screen({}, {}, {});
  EXPECT_NE(text.find("no MLTCP process"), std::string::npos);
  EXPECT_NE(text.find("q quit"), std::string::npos);
}

TEST(TopScreen, any_size__never_beyond_it) {
  for (const std::size_t columns : {20U, 40U, 80U, 200U})
    for (const std::size_t rows : {4U, 8U, 24U, 50U})
      for (const int many : {1, 3, 40}) {
        const std::string text =
            top_screen({with_rates(process(many, many, many)), process(many, many, many)},
                       {"/run/user/0/mltcp/gen-1.sock: it did not answer in time"}, {.columns = columns, .rows = rows});
        EXPECT_LE(lines(text).size(), rows) << columns << " " << rows << " " << many;
        for (const std::string& line : lines(text)) EXPECT_LE(line.size(), columns);
        EXPECT_TRUE(text.ends_with("\n"));
      }
}

TEST(TopScreen, an_ordinary_one__fits_80_by_24_with_nothing_left_out) {
  const std::string text = top_screen({with_rates(process(2, 4, 2))}, {}, {});
  EXPECT_EQ(text.find("more"), std::string::npos) << text;
  for (const char* const part : {"gen host 0 at 10.0.0.1/24", "4711", "0:01:12", "mltcp", "job-0", "5/60", "261.0",
                                 "10.0.0.3:62400", "af_packet:", "up", "q quit"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TopScreen, too_many_rows__says_how_many_more) {
  const std::string text = top_screen({process(40, 40, 0)}, {}, {});
  EXPECT_NE(line_with(text, "more"), "");
  EXPECT_EQ(lines(text).size(), 24U);
}

TEST(TopScreen, rates__of_what_was_counted_between_two_looks) {
  const std::string text = top_screen({with_rates(process(2, 0, 1))}, {}, {.columns = 160, .rows = 0});
  EXPECT_NE(line_with(text, "job-0").find(" 8.00 "), std::string::npos) << text;
  EXPECT_NE(line_with(text, "job-1").find(" 16.00 "), std::string::npos) << text;
  EXPECT_NE(line_with(text, "af_packet").find("5600.0"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "af_packet").find("500k"), std::string::npos) << text;
}

TEST(TopScreen, counter_that_began_anew__no_rate) {
  TopProcess one = with_rates(process(1, 0, 0));
  one.before->jobs[0].sent_bytes = 1'000'000'000;
  EXPECT_NE(line_with(top_screen({one}, {}, {}), "job-0").find(" 0.00 "), std::string::npos);
}

TEST(TopScreen, sort__by_rate_retransmits_and_name) {
  const auto first = [](TopSort sort) {
    const std::string text = top_screen({with_rates(process(3, 5, 0))}, {}, {.columns = 160, .rows = 0, .sort = sort});
    return std::pair(line_with(text, "job-").substr(0, 5), line_with(text, "10.0.0.").substr(0, 8));
  };
  EXPECT_EQ(first(TopSort::rate).first, "job-2");
  EXPECT_EQ(first(TopSort::name).first, "job-0");
  const std::string text =
      top_screen({process(0, 5, 0)}, {}, {.columns = 160, .rows = 0, .sort = TopSort::retransmits});
  // the first connection has 4 retransmissions, the second one has 0
  EXPECT_LT(text.find("10.0.0.2:62400"), text.find("10.0.0.0:62400"));
}

TEST(TopScreen, colours__only_where_wanted) {
  TopProcess one = process(0, 0, 1);
  one.now.ports[0].is_up = false;
  EXPECT_EQ(top_screen({one}, {}, {}).find('\x1b'), std::string::npos);
  const std::string text = top_screen({one}, {}, {.has_colours = true});
  EXPECT_NE(text.find("\x1b[31m"), std::string::npos);
}

TEST(TopScreen, claims__are_shown_with_their_verdict) {
  TopProcess one = process(0, 0, 0);
  for (const char* const job : {"7", "8"}) {
    live::ClaimView& claim = one.now.claims.emplace_back();
    claim.job = job;
    claim.iterations = 60;
    claim.bytes = 2'000'000;
    claim.bytes_at_end = claim.job == "7" ? 1'000'000 : 0;
    claim.mean_progress = claim.job == "7" ? 0.75 : 0.5;
    claim.verdict = claim.job == "7" ? "understated" : "consistent";
    claim.is_overstated = claim.job == "7";
  }
  one.before = one.now;
  one.before->up_seconds -= 1;
  one.before->claims[0].bytes -= 1'000'000;
  const std::string text = top_screen({one}, {}, {.columns = 100, .rows = 0, .has_colours = true});
  const std::string line = line_with(text, "understated");
  for (const char* const part : {"\x1b[31m", "7 ", " 60 ", "gen 4711", "8.00", "50.0%", "0.75"})
    EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(line_with(text, "consistent").find("\x1b[31m"), std::string::npos);
}

TEST(TopSort, keys__go_round) {
  TopSort sort = TopSort::rate;
  for (int i = 0; i < 3; ++i) sort = next(sort);
  EXPECT_EQ(sort, TopSort::rate);
}

}  // namespace
}  // namespace mltcp::tools
