// Tests demand profiles: the values read, one clear error message for each invalid input, and the resulting phases.
#include "mltcp/lab/workload/profile.h"

#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::workload::profile_test {
namespace {

using namespace literals;

constexpr Rate kGbps(1'000'000'000);

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_profile(text, "p.csv"); });
}

auto error_at(int line, const std::string& column, const std::string& cause) {
  return AllOf(StartsWith("p.csv:" + std::to_string(line) + ": " + column + ": "), HasSubstr(cause), HasSubstr("; "));
}

TEST(Profile, parse__reads_steps_and_period) {
  const Profile profile =
      parse_profile("# measured\ntime_ms,rate_bps\n0,0\n\n150 , 1e9\r\n200.5,500000000\n258,0\n", "p");
  EXPECT_EQ(profile.period, 258_ms);
  using Step = Profile::Step;
  EXPECT_THAT(profile.steps, ElementsAre(Step{0_ms, Rate()}, Step{150_ms, kGbps}, Step{200'500_us, Rate(500'000'000)}));
  for (const auto& [unit, period] : {std::pair("ns", 20_ns), std::pair("us", 20_us), std::pair("s", 20_s)})
    EXPECT_EQ(parse_profile(std::string("\xef\xbb\xbftime_") + unit + ",rate_bps\n0,1e9\n20,0", "p").period, period);
}

TEST(Profile, parse__refuses_with_line_and_column) {
  const std::string head = "time_ms,rate_bps\n";
  EXPECT_THAT(refusal(""), error_at(1, "header", "the file is empty"));
  EXPECT_THAT(refusal("0,0\n5,1e9\n9,0\n"), error_at(1, "header", "\"0\" is not a time with its unit"));
  EXPECT_THAT(refusal("time,rate_bps\n"), error_at(1, "header", "not a time with its unit"));
  EXPECT_THAT(refusal("time_ms,rate_gbps\n"), error_at(1, "header", "\"rate_gbps\" is not a rate in bits per second"));
  EXPECT_THAT(refusal(head), error_at(1, "time", "there is one row or none"));
  EXPECT_THAT(refusal(head + "0,1e9\n"), error_at(2, "time", "there is one row or none"));
  EXPECT_THAT(refusal(head + "0;1e9\n"), error_at(2, "row", "not have two columns"));
  EXPECT_THAT(refusal(head + "0,1e9,3\n"), error_at(2, "row", "not have two columns"));
  EXPECT_THAT(refusal(head + "1,1e9\n2,0\n"), error_at(2, "time", "the first is \"1\""));
  EXPECT_THAT(refusal(head + "0,0\n20,1e9\n10,0\n"), error_at(4, "time", "\"10\" is not after the row before it"));
  EXPECT_THAT(refusal(head + "0,0\n20,1e9\n20,0\n"), error_at(4, "time", "not after the row before it"));
  EXPECT_THAT(refusal(head + "0,0\n20,1e9\n20.0000001,0\n"), error_at(4, "time", "to the nanosecond"));
  EXPECT_THAT(refusal(head + "0,0\n-20,1e9\n"), error_at(3, "time", "-20 is below 0"));
  EXPECT_THAT(refusal(head + "0,0\n20,-1e9\n30,0\n"), error_at(3, "rate", "is below 0"));
  EXPECT_THAT(refusal(head + "0,0\n20,nan\n30,0\n"), error_at(3, "rate", "\"nan\" is not a number"));
  EXPECT_THAT(refusal(head + "0,0\ninf,5e8\n30,0\n"), error_at(3, "time", "\"inf\" is not a number"));
  EXPECT_THAT(refusal(head + "0,0\n20,1 Gbps\n30,0\n"), error_at(3, "rate", "\"1 Gbps\" is not a number"));
  EXPECT_THAT(refusal(head + "0 ms,0\n"), error_at(2, "time", "\"0 ms\" is not a number; write only a decimal number"));
  EXPECT_THAT(refusal(head + "0,0\n20,\n30,0\n"), error_at(3, "rate", "\"\" is not a number"));
  EXPECT_THAT(refusal(head + "0,0\n20,1e400\n30,0\n"), error_at(3, "rate", "is not a number"));
  EXPECT_THAT(refusal(head + "0,0\n20,2e14\n30,0\n"), error_at(3, "rate", "200000000000000 is out of range"));
  EXPECT_THAT(refusal(head + "0,0\n20,999\n30,0\n"), error_at(3, "rate", "999 is out of range"));
  EXPECT_THAT(refusal(head + "0,1e9\n86400001,0\n"), error_at(3, "time", "more than a day"));
  EXPECT_THAT(refusal(head + "0,0\n20,0\n30,1e9\n"), error_at(4, "rate", "no traffic before the last row"));
  std::string many = head;
  for (std::size_t i = 0; i <= kMaxProfileSteps; ++i) many += std::to_string(i) + ",1e9\n";
  EXPECT_EQ(parse_profile(many, "p").steps.size(), kMaxProfileSteps);
  many += std::to_string(kMaxProfileSteps + 1) + ",0\n";
  EXPECT_THAT(refusal(many), error_at(kMaxProfileSteps + 3, "row", "more than 10000"));
  EXPECT_THROW(load_profile("no-such.csv"), InputError);
}

TEST(Profile, to_phases__alone_give_the_profile_back) {
  const Profile profile =
      parse_profile("time_ms,rate_bps\n0,2e8\n10,0\n70,3e8\n90,0\n130,5e8\n140,9.5e8\n200,0\n210,0\n", "p");
  const std::vector<Phase> phases = to_phases(profile);
  EXPECT_EQ(ideal_iteration(phases, kGbps).length, 210_ms);
  EXPECT_THAT(ideal_transfers(phases, kGbps),
              ElementsAre(Transfer{0_ms, 10_ms, Rate(200'000'000)}, Transfer{70_ms, 90_ms, Rate(300'000'000)},
                          Transfer{130_ms, 140_ms, Rate(500'000'000)}, Transfer{140_ms, 200_ms, Rate(950'000'000)}));
  // On a link of 475 Mbps, the two fast transfers and the iteration take longer than in the profile.
  EXPECT_EQ(ideal_iteration(phases, Rate(475'000'000)).length, Nanos(210'000'000 + 60'000'000 + 526'316));
}

TEST(Profile, to_phases__lose_no_bits) {
  // Each step has 10 bits: one byte is sent at once, and the 2 remaining bits are added to a later step.
  std::string text = "time_us,rate_bps\n";
  for (int i = 0; i <= 400; ++i) text += std::to_string(10 * i) + (i % 2 == 0 ? ",1e6\n" : ",1000001\n");
  Job job;
  job.phases = to_phases(parse_profile(text, "p"));
  EXPECT_EQ(job.bytes_per_iteration(), 500U);
  EXPECT_THROW(to_phases(parse_profile("time_ns,rate_bps\n0,1e9\n7,0\n", "p")), InputError);
}

TEST(Profile, describe__says_what_it_takes_and_lists_bursts) {
  const Profile profile = parse_profile("time_ms,rate_bps\n0,2e8\n10,4e8\n20,0\n70,8e8\n80,0\n100,0\n", "p.csv");
  const std::string text = describe(profile, Rate(400'000'000));
  EXPECT_THAT(text, HasAll("p.csv: measured profile of one iteration, 5 steps\n",
                           "an iteration takes 100.000 ms and sends 1.750 MB for 30.0% of them, in 2 bursts at up to "
                           "800 Mbps\n",
                           "alone on 400 Mbps it takes 110.000 ms and sends for 36.4% of them\n",
                           "at     0.000 ms for    20.000 ms  750.000 kB, at 300.000 Mbps on average and up to "
                           "400.000 Mbps\n",
                           "at    70.000 ms for    10.000 ms    1.000 MB, at 800.000 Mbps on average and up to "
                           "800.000 Mbps\n"));
}

TEST(Profile, load__the_example) {
  const Profile profile = load_profile(MLTCP_EXAMPLES "/traces/bert-like.csv");
  EXPECT_EQ(profile.period, 210_ms);
  Job job;
  job.phases = to_phases(profile);
  EXPECT_EQ(job.bytes_per_iteration(), 8'875'000U);
}

}  // namespace
}  // namespace mltcp::workload::profile_test
