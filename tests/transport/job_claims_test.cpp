// Tests transport/job_claims.cpp: the sums of honest jobs and of jobs that state false progress, the count of
// iterations, and bounds.
#include "mltcp/transport/job_claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp {
namespace {

using Packets = std::vector<wire::JobTag>;

constexpr Bytes kPacketBytes = 1000;
constexpr std::uint32_t kPacketsPerIteration = 500;

/// Returns the packets of `count` iterations with 500 packets each. The job states `stated` times the real size of its
/// iterations. `in_flight` packets are always in flight.
Packets iterations(std::uint32_t first, std::uint32_t count, double stated = 1.0, std::uint32_t in_flight = 0,
                   std::uint32_t job = 7) {
  Packets packets;
  for (std::uint32_t iteration = first; iteration < first + count; ++iteration)
    for (std::uint32_t sent = 0; sent < kPacketsPerIteration; ++sent) {
      const double delivered = sent > in_flight ? sent - in_flight : 0;
      const double ratio = std::min(1.0, delivered / (stated * kPacketsPerIteration));
      packets.push_back(
          {job, static_cast<std::uint16_t>(iteration), static_cast<std::uint16_t>(std::floor(ratio * 65535))});
    }
  return packets;
}

JobClaims claims_of(const Packets& packets, Bytes bytes = kPacketBytes) {
  JobClaims claims;
  for (const wire::JobTag& tag : packets) claims.add(tag, bytes);
  return claims;
}

JobClaim only(const JobClaims& claims) {
  const std::vector<JobClaim> all = claims.report();
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? JobClaim{} : all.front();
}

TEST(JobClaims, add__sums_an_honest_job) {
  const JobClaim claim = only(claims_of(iterations(1, 20)));
  EXPECT_EQ(claim.job, 7U);
  EXPECT_EQ(claim.iterations, 20U);
  EXPECT_EQ(claim.packets, 20U * kPacketsPerIteration);
  EXPECT_EQ(claim.bytes, 20U * kPacketsPerIteration * kPacketBytes);
  EXPECT_EQ(claim.bytes_per_iteration(), kPacketsPerIteration * kPacketBytes);
  EXPECT_EQ(claim.bytes_at_end, 0U);
  EXPECT_NEAR(claim.mean_progress(), 0.5, 0.002);
  EXPECT_EQ(claim.verdict(), ClaimVerdict::consistent);
  EXPECT_FALSE(claim.is_overstated());
}

TEST(JobClaims, verdict__passes_an_honest_job_whose_iterations_are_in_flight) {
  for (const std::uint32_t in_flight : {1U, 50U, 250U, 499U}) {
    const JobClaim claim = only(claims_of(iterations(1, 20, 1.0, in_flight)));
    const double share = in_flight / static_cast<double>(kPacketsPerIteration);
    EXPECT_NEAR(claim.mean_progress(), (1 - share) * (1 - share) / 2, 0.003) << in_flight;
    EXPECT_EQ(claim.bytes_at_end, 0U);
    // If 499 packets are in flight, the job sends the last packets of an iteration before the first packet has arrived.
    // So even the last packets state no progress.
    EXPECT_EQ(claim.verdict(), in_flight < 499 ? ClaimVerdict::consistent : ClaimVerdict::unstated) << in_flight;
  }
}

TEST(JobClaims, verdict__finds_who_states_half_of_what_it_sends) {
  const JobClaim half = only(claims_of(iterations(1, 20, 0.5)));
  EXPECT_NEAR(half.share_at_end(), 0.5, 0.003);
  EXPECT_NEAR(half.mean_progress(), 0.75, 0.003);
  EXPECT_EQ(half.verdict(), ClaimVerdict::understated);
  EXPECT_TRUE(half.is_overstated());
  // The limit is 4/5 of the real size.
  EXPECT_EQ(only(claims_of(iterations(1, 20, 0.79))).verdict(), ClaimVerdict::understated);
  EXPECT_EQ(only(claims_of(iterations(1, 20, 0.81))).verdict(), ClaimVerdict::consistent);
  // A learned size may be too small by 1/32.
  EXPECT_EQ(only(claims_of(iterations(1, 20, 31.0 / 32))).verdict(), ClaimVerdict::consistent);
}

TEST(JobClaims, verdict__finds_who_claims_to_be_far_along) {
  Packets packets = iterations(1, 20);
  for (wire::JobTag& tag : packets) tag.progress = 58'982;  // 0.9
  const JobClaim claim = only(claims_of(packets));
  EXPECT_NEAR(claim.mean_progress(), 0.9, 1e-4);
  EXPECT_EQ(claim.bytes_at_end, 0U);
  EXPECT_EQ(claim.verdict(), ClaimVerdict::ahead);
  EXPECT_TRUE(claim.is_overstated());
}

TEST(JobClaims, verdict__says_nothing_of_a_job_without_sizes) {
  Packets packets = iterations(1, 20);
  for (wire::JobTag& tag : packets) tag.progress = 0;
  const JobClaim claim = only(claims_of(packets));
  EXPECT_EQ(claim.mean_progress(), 0);
  EXPECT_EQ(claim.verdict(), ClaimVerdict::unstated);
  EXPECT_FALSE(claim.is_overstated());
  EXPECT_EQ(JobClaim{}.verdict(), ClaimVerdict::unstated);
  EXPECT_EQ(JobClaim{}.mean_progress(), 0);
  EXPECT_EQ(JobClaim{}.bytes_per_iteration(), 0);
}

TEST(JobClaims, verdict__does_not_come_too_early) {
  EXPECT_EQ(only(claims_of(iterations(1, 7, 0.5))).verdict(), ClaimVerdict::too_few);
  EXPECT_EQ(only(claims_of(iterations(1, 8, 0.5))).verdict(), ClaimVerdict::understated);
  // An observer that starts in the middle of an iteration computes a mean progress above 1/2 for a while.
  for (std::uint32_t missed = 0; missed < kPacketsPerIteration; missed += 50) {
    const Packets packets = iterations(1, 8);
    JobClaims claims;
    for (std::size_t i = missed; i < packets.size(); ++i) {
      claims.add(packets[i], kPacketBytes);
      EXPECT_FALSE(only(claims).is_overstated()) << "from " << missed << " to " << i;
      if (only(claims).verdict() == ClaimVerdict::consistent) {
        EXPECT_LT(only(claims).mean_progress(), 0.52) << missed;
      }
    }
  }
}

TEST(JobClaims, add__counts_iterations_over_the_wrap) {
  const JobClaim claim = only(claims_of(iterations(65'530, 12, 0.5)));
  EXPECT_EQ(claim.iterations, 12U);
  EXPECT_EQ(only(claims_of(iterations(0, 70'000 / 100, 1.0))).iterations, 700U);
  JobClaims long_lived;
  for (std::uint32_t iteration = 0; iteration < 200'000; ++iteration)
    long_lived.add({1, static_cast<std::uint16_t>(iteration), 30'000}, 1);
  EXPECT_EQ(only(long_lived).iterations, 200'000U);
}

TEST(JobClaims, add__takes_packets_in_any_order) {
  // Each packet arrives up to 600 packets late, which is more than an iteration (500 packets).
  Packets packets = iterations(65'526, 20, 0.5, 20);
  const JobClaim before = only(claims_of(packets));
  Random random(1);
  std::vector<std::pair<std::uint64_t, wire::JobTag>> late;
  for (std::size_t i = 0; i < packets.size(); ++i) late.emplace_back(i + random.next() % 600, packets[i]);
  std::ranges::stable_sort(late, {}, &std::pair<std::uint64_t, wire::JobTag>::first);
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i] = late[i].second;
  const JobClaim claim = only(claims_of(packets));
  EXPECT_EQ(claim.iterations, 20U);
  EXPECT_EQ(claim.bytes_at_end, before.bytes_at_end);
  EXPECT_NEAR(claim.mean_progress(), before.mean_progress(), 1e-12);
}

TEST(JobClaims, add__counts_retransmissions_where_they_are_sent) {
  // After every twentieth packet, the job retransmits an older packet, which states the progress at the time of the
  // retransmission.
  Packets packets;
  for (const wire::JobTag& tag : iterations(1, 20)) {
    packets.push_back(tag);
    if (packets.size() % 20 == 0 && packets.size() > 30) packets.push_back(packets.back());
  }
  const JobClaim claim = only(claims_of(packets));
  EXPECT_NEAR(claim.mean_progress(), 0.5, 0.005);
  EXPECT_EQ(claim.verdict(), ClaimVerdict::consistent);
}

TEST(JobClaims, add__counts_workers_that_are_iterations_apart_once) {
  const Packets packets = iterations(1, 40);
  JobClaims claims;
  for (std::size_t i = 0; i < packets.size(); ++i)
    for (const std::uint32_t behind : {0U, 1U, 2U, 16U}) {  // the lag of each worker, in iterations
      const std::size_t lag = std::size_t{behind} * kPacketsPerIteration;
      if (i >= lag) claims.add(packets[i - lag], kPacketBytes);
    }
  EXPECT_EQ(only(claims).iterations, 40U);
  EXPECT_EQ(only(claims).verdict(), ClaimVerdict::consistent);
}

TEST(JobClaims, add__follows_workers_that_count_for_themselves) {
  // Four workers have unrelated iteration numbers and send packets in turn. The count includes the iterations of all
  // workers.
  JobClaims claims;
  std::vector<Packets> workers;
  for (const std::uint32_t first : {3U, 1'000U, 33'000U, 65'500U}) workers.push_back(iterations(first, 40));
  for (std::size_t i = 0; i < workers[0].size(); ++i)
    for (const Packets& worker : workers) claims.add(worker[i], kPacketBytes);
  EXPECT_EQ(only(claims).iterations, 160U);
  // After a restart, a job counts its iterations from 1 again.
  JobClaims restarted = claims_of(iterations(1, 100));
  for (const wire::JobTag& tag : iterations(1, 50)) restarted.add(tag, kPacketBytes);
  EXPECT_EQ(only(restarted).iterations, 150U);
}

TEST(JobClaims, report__names_the_largest_jobs_first) {
  JobClaims claims;
  for (std::uint32_t job = 0; job < 100; ++job) claims.add({job, 1, 0}, job % 10);
  const std::vector<JobClaim> top = claims.report();
  ASSERT_EQ(top.size(), 100U);
  EXPECT_EQ(top[0].job, 9U);
  EXPECT_EQ(top[9].job, 99U);
  EXPECT_EQ(top[10].job, 8U);
  EXPECT_TRUE(JobClaims().report().empty());
  std::vector<JobClaim> list;
  list.reserve(4);
  const std::size_t places = list.capacity();
  claims.append_to(list);
  ASSERT_EQ(list.size(), places) << "no more than there is room for";
  EXPECT_EQ(list[1].job, 1U);
}

TEST(JobClaim, add_up__joins_what_is_of_one_job) {
  std::vector<JobClaim> claims;
  for (const std::uint32_t job : {3U, 1U, 3U, 2U, 1U, 3U}) claims.push_back({.job = job, .packets = 1, .bytes = 10});
  add_up(claims);
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(claims[0].job, 3U);
  EXPECT_EQ(claims[0].packets, 3U);
  EXPECT_EQ(claims[1].job, 1U);
  EXPECT_EQ(claims[1].bytes, 20U);
  EXPECT_EQ(claims[2].job, 2U);
}

TEST(JobClaims, add__keeps_jobs_apart_that_share_a_place_in_its_cache) {
  JobClaims claims;
  for (std::uint32_t i = 0; i < 300; ++i) claims.add({i % 3 * 16, 1, 65'535}, 1 + i % 3);
  const std::vector<JobClaim> all = claims.report();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(std::pair(all[0].job, all[0].bytes), std::pair(32U, Bytes{300}));
  EXPECT_EQ(std::pair(all[2].job, all[2].bytes), std::pair(0U, Bytes{100}));
}

TEST(JobClaims, add__is_bounded_whatever_the_numbers) {
  JobClaims claims;
  Random random(3);
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    const std::uint64_t drawn = random.next();
    const Bytes bytes = drawn >> 48;
    claims.add({static_cast<std::uint32_t>(drawn), static_cast<std::uint16_t>(drawn >> 8),
                static_cast<std::uint16_t>(drawn >> 24)},
               bytes);
    sum += bytes;
  }
  const std::vector<JobClaim> all = claims.report();
  ASSERT_EQ(all.size(), JobClaims::kMaxJobs + 1);
  EXPECT_EQ(all.front().job, JobClaims::kOtherJobs) << "those that have lost their places are counted together";
  Bytes counted = 0;
  std::uint64_t packets = 0;
  for (const JobClaim& claim : all) {
    counted += claim.bytes;
    packets += claim.packets;
    EXPECT_GE(claim.mean_progress(), 0.0);
    EXPECT_LE(claim.mean_progress(), 1.0);
    EXPECT_LE(claim.iterations, claim.packets);
    EXPECT_LE(claim.bytes_at_end, claim.bytes);
  }
  EXPECT_EQ(counted, sum);
  EXPECT_EQ(packets, 50'000U);
  // A job with an entry in the table keeps it. A job whose number is kOtherJobs is counted among the other jobs.
  claims.add({all[1].job, 1, 0}, 1'000'000'000);
  EXPECT_EQ(claims.report()[0].bytes + claims.report()[1].bytes, all[0].bytes + all[1].bytes + 1'000'000'000);
  claims.add({JobClaims::kOtherJobs, 1, 0}, 1);
  EXPECT_EQ(claims.report().size(), JobClaims::kMaxJobs + 1);
}

TEST(JobClaims, add__finds_an_overstating_job_that_comes_after_forged_jobs_and_among_them) {
  JobClaims claims;
  const Packets early = iterations(1, 20, 1.0, 0, 1'000'000);
  for (const wire::JobTag& tag : early) claims.add(tag, kPacketBytes);
  std::uint32_t forged = 2'000'000;
  for (std::size_t i = 0; i < 10 * JobClaims::kMaxJobs; ++i) claims.add({forged++, 1, 65'535}, 1400);
  // Two forged packets follow each packet of the overstating job, and 2000 follow each of its iterations.
  std::size_t sent = 0;
  for (const wire::JobTag& tag : iterations(1, 20, 0.5, 0, 7)) {
    claims.add(tag, kPacketBytes);
    const int between = ++sent % kPacketsPerIteration == 0 ? 2000 : 2;
    for (int i = 0; i < between; ++i) claims.add({forged++, 1, 65'535}, 1400);
  }
  const std::vector<JobClaim> all = claims.report();
  ASSERT_EQ(all.size(), JobClaims::kMaxJobs + 1);
  EXPECT_EQ(all[0].job, JobClaims::kOtherJobs);
  for (const std::size_t place : {std::size_t{1}, std::size_t{2}}) {
    EXPECT_TRUE(all[place].job == 7 || all[place].job == 1'000'000) << all[place].job;
    EXPECT_EQ(all[place].iterations, 20U);
    EXPECT_EQ(all[place].bytes, 20U * kPacketsPerIteration * kPacketBytes) << "nothing of whom it has replaced";
    EXPECT_EQ(all[place].verdict(), all[place].job == 7 ? ClaimVerdict::understated : ClaimVerdict::consistent);
  }
}

TEST(JobClaims, add__gives_the_place_of_the_least) {
  JobClaims claims;
  for (std::uint32_t job = 0; job < JobClaims::kMaxJobs; ++job) claims.add({job, 1, 0}, 100 + job);
  JobClaims same = claims;
  for (JobClaims* const each : {&claims, &same}) {
    each->add({0, 1, 0}, 50);      // job 0 has 150 bytes now, so job 1 has the fewest
    each->add({9'999, 1, 0}, 10);  // replaces job 1 and has 101 + 10 bytes
    each->add({9'998, 1, 0}, 10);  // replaces job 2 and has 102 + 10 bytes
    each->add({1, 1, 0}, 5);       // job 1 gets a new entry
  }
  const auto bytes_of = [&](std::uint32_t job) {
    for (const JobClaim& claim : claims.report())
      if (claim.job == job) return claim.bytes;
    return Bytes{0};
  };
  EXPECT_EQ(bytes_of(0), 150U);
  EXPECT_EQ(bytes_of(1), 5U);
  EXPECT_EQ(bytes_of(2), 0U);
  EXPECT_EQ(bytes_of(3), 0U);
  EXPECT_EQ(bytes_of(4), 104U);
  EXPECT_EQ(bytes_of(9'999), 10U);
  EXPECT_EQ(bytes_of(9'998), 10U);
  EXPECT_EQ(bytes_of(JobClaims::kOtherJobs), 101U + 102 + 103);
  EXPECT_EQ(same.report().size(), claims.report().size());
}

TEST(JobClaims, add__stays_exact_enough_for_months) {
  JobClaims claims;
  for (std::uint32_t i = 0; i < 10'000; ++i) claims.add({1, 1, 0}, Bytes{1} << 50);
  for (std::uint32_t i = 0; i < 1'000; ++i) claims.add({1, 2, 65'535}, 1500);
  EXPECT_EQ(only(claims).bytes_at_end, 1'500'000U);
  EXPECT_EQ(only(claims).bytes, (Bytes{10'000} << 50) + 1'500'000);
}

TEST(JobClaims, copy__has_sums_of_its_own) {
  JobClaims claims = claims_of(iterations(1, 10));
  JobClaims copy = claims;
  copy.add({7, 11, 0}, 1);
  EXPECT_EQ(only(copy).packets, only(claims).packets + 1);
  claims = copy;
  claims.add({7, 11, 0}, 1);
  EXPECT_EQ(only(claims).packets, only(copy).packets + 1);
}

TEST(JobClaim, add__joins_the_shards_of_a_job) {
  JobClaim sum = only(claims_of(iterations(1, 10, 0.5)));
  sum += only(claims_of(iterations(1, 12, 1.0), 3 * kPacketBytes));
  EXPECT_EQ(sum.iterations, 12U);
  EXPECT_EQ(sum.packets, 22U * kPacketsPerIteration);
  EXPECT_EQ(sum.bytes, (10U + 36U) * kPacketsPerIteration * kPacketBytes);
  EXPECT_NEAR(sum.mean_progress(), (10 * 0.75 + 36 * 0.5) / 46, 0.003);
  EXPECT_NEAR(sum.share_at_end(), 5.0 / 46, 0.002);
}

TEST(JobClaim, name_of__is_its_number) {
  EXPECT_EQ(name_of({.job = 7}), "7");
  EXPECT_EQ(name_of({.job = JobClaims::kOtherJobs}), "others");
}

TEST(ClaimVerdict, to_text__names_each) {
  EXPECT_EQ(to_text(ClaimVerdict::too_few), "too few iterations");
  EXPECT_EQ(to_text(ClaimVerdict::unstated), "unstated");
  EXPECT_EQ(to_text(ClaimVerdict::consistent), "consistent");
  EXPECT_EQ(to_text(ClaimVerdict::understated), "understated");
  EXPECT_EQ(to_text(ClaimVerdict::ahead), "ahead");
}

}  // namespace
}  // namespace mltcp
