// Tests the repair of slots: the new slot of a late job, and how far the repair moves other jobs.
#include "mltcp/scheduler/repair.h"

#include <gtest/gtest.h>

#include <string>

namespace mltcp::scheduler {
namespace {

using namespace literals;

/// A problem with jobs that send at the rate of their links at the end of each iteration.
struct Setting {
  Problem problem;
  Slots slots;
  std::vector<Nanos> shifts;

  explicit Setting(std::size_t links = 1) {
    for (std::size_t i = 0; i < links; ++i)
      problem.links.push_back({"link " + std::to_string(i), Rate(1'000'000'000), {}});
    slots.perimeter = 100_ms;
  }
  /// Adds a job that sends for `up` in every period of 100 ms. Its first burst begins at `at`.
  void add(Nanos at, Nanos up, const std::vector<std::size_t>& links = {0}, Rate rate = Rate(1'000'000'000)) {
    const Demand demand{100_ms, {{100_ms - up, 100_ms, rate}}};
    const auto job = static_cast<std::uint32_t>(problem.jobs.size());
    problem.jobs.push_back({"job " + std::to_string(job), 100_ms, {}});
    for (const std::size_t link : links) problem.links[link].uses.push_back({job, demand});
    slots.repetitions.push_back(1);
    slots.periods.push_back(100_ms);
    shifts.push_back(at - (100_ms - up));
  }
  [[nodiscard]] Timetable timetable() const { return {problem, slots}; }
  [[nodiscard]] Repair repair(std::uint32_t late, Nanos now) const { return timetable().repair(shifts, late, now); }
};

/// Returns six jobs that send for 15 ms each, with gaps of 1.667 ms.
Setting six() {
  Setting setting;
  for (int i = 0; i < 6; ++i) setting.add(Nanos(100'000'000 / 6 * i), 15_ms);
  return setting;
}

/// Expects two times to differ by at most 500 ns.
void expect_near(Nanos actual, Nanos expected, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(actual.count), static_cast<double>(expected.count), 500) << what;
}

TEST(Repair, room_behind__is_the_gap_to_the_next_job) {
  const Setting setting = six();
  const Timetable timetable = setting.timetable();
  for (std::uint32_t job = 0; job < 6; ++job) {
    // Bursts may overlap by 0.2% of a slot, so the margin is a little longer than the gap of 1.667 ms.
    const Nanos margin = timetable.margin_behind(setting.shifts, job, 5_ms);
    EXPECT_GE(margin, 1'666'000_ns) << job;
    EXPECT_LE(margin, 1'900'000_ns) << job;
  }
  Setting pair;
  pair.add(0_ms, 30_ms);
  pair.add(50_ms, 30_ms);
  EXPECT_EQ(pair.timetable().margin_behind(pair.shifts, 0, 5_ms), 5_ms) << "more than is asked for";
}

TEST(Repair, room_behind__counts_of_an_overlap_what_is_beyond_the_capacity) {
  const auto beyond_the_gap = [](Rate rate) {
    Setting pair;
    pair.add(0_ms, 30_ms, {0}, rate);
    pair.add(40_ms, 30_ms, {0}, rate);
    return (pair.timetable().margin_behind(pair.shifts, 0, 20_ms) - 10_ms).seconds();
  };
  const double alone_full = beyond_the_gap(Rate(1'000'000'000));
  EXPECT_GT(alone_full, 0);
  EXPECT_NEAR(beyond_the_gap(Rate(600'000'000)) / alone_full, 5, 0.2) << "both are a fifth too much";
}

TEST(Repair, late_job__goes_at_once_and_the_next_ones_make_way_by_what_it_takes) {
  const Setting setting = six();
  const Repair repair = setting.repair(2, setting.shifts[2] + 85_ms + 6_ms);
  EXPECT_EQ(repair.wait, 0_ms);
  expect_near(repair.delays[2], 6_ms, "itself");
  // Each following job is delayed by one gap less than the job before it.
  const Nanos gap = 100_ms / 6 - 15_ms;
  expect_near(repair.delays[3], 6_ms - gap, "the next");
  expect_near(repair.delays[4], 6_ms - gap * 2, "the one after it");
  expect_near(repair.delays[5], 6_ms - gap * 3, "and the third");
  EXPECT_EQ(repair.delays[0], 0_ms);
  EXPECT_EQ(repair.delays[1], 0_ms);
  expect_near(repair.cost, (6_ms - gap * 2) * 3, "far less than the 94 ms to the next slot");
}

// The first bytes of the job use no link of other jobs, but the job's slot begins with these bytes.
TEST(Repair, job_that_is_held_before_its_burst__is_late_for_its_slot_and_not_for_the_burst) {
  Setting setting;
  setting.add(0_ms, 30_ms);
  setting.add(50_ms, 30_ms);
  const std::vector<Nanos> held{40_ms, 70_ms};  // job 0 is held 30 ms before its burst
  const Timetable timetable(setting.problem, setting.slots, held);
  EXPECT_EQ(timetable.held(0), 40_ms);
  for (const Nanos late : {10_ms, 25_ms}) {
    const Nanos slot = setting.shifts[0] + 40_ms;
    const Repair repair = timetable.repair(setting.shifts, 0, slot + late);
    EXPECT_LE(repair.wait, 20_ms) << "and not nearly a period";
    expect_near(repair.delays[0], late + repair.wait, "from its slot");
    // The burst of the late job begins 30 ms after its release.
    const Nanos burst = slot + late + repair.wait + 30_ms;
    const Nanos other = setting.shifts[1] + repair.delays[1] + 70_ms;
    EXPECT_GE(modulo(other - burst, 100_ms), 30_ms - 1_us) << late.millis();
    EXPECT_GE(modulo(burst - other, 100_ms), 30_ms - 1_us) << late.millis();
  }
}

TEST(Repair, late_job__waits_for_a_burst_that_has_begun) {
  Setting setting;
  setting.add(0_ms, 30_ms);
  setting.add(40_ms, 30_ms);
  // Job 0 is 45 ms late. Job 1 sends until 70 ms, and again from 140 ms on.
  const Repair repair = setting.repair(0, 45_ms);
  EXPECT_EQ(repair.wait, 25_ms);
  EXPECT_EQ(repair.delays[0], 70_ms);
  EXPECT_EQ(repair.delays[1], 0_ms);
  EXPECT_EQ(repair.cost, 25_ms);
}

TEST(Repair, burst_that_has_begun__is_not_moved_although_that_would_cost_less) {
  Setting setting;
  setting.add(0_ms, 10_ms);
  setting.add(40_ms, 50_ms);
  const Repair repair = setting.repair(0, 45_ms);
  EXPECT_EQ(repair.wait, 45_ms) << "and not 15 ms for the other one";
  EXPECT_EQ(repair.delays[1], 0_ms);
}

TEST(Repair, late_job__takes_its_next_slot_where_nothing_else_costs_less) {
  Setting full;
  for (int i = 0; i < 4; ++i) full.add(Nanos(25'000'000) * i, 25_ms);
  // After 15 ms, the current burst ends and the late job could send, but would delay the next job by 25 ms. It costs no
  // more to wait 40 ms for the late job's own slot.
  const Repair repair = full.repair(2, 50_ms + 60_ms);
  EXPECT_EQ(repair.delays, std::vector<Nanos>(4));
  EXPECT_EQ(repair.wait, 40_ms);
  EXPECT_EQ(repair.cost, 40_ms);
}

TEST(Repair, slots__still_keep_all_jobs_apart) {
  const Setting setting = six();
  for (int late = 1; late < 100; ++late) {
    Setting after = setting;
    const Repair repair = setting.repair(4, setting.shifts[4] + 85_ms + Nanos(1'000'000) * late);
    EXPECT_LE(repair.cost, 100_ms - Nanos(1'000'000) * late) << "never dearer than the next slot";
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_GE(repair.delays[i], 0_ms);
      after.shifts[i] += repair.delays[i];
    }
    std::vector<Nanos> shifts;
    for (const Nanos shift : after.shifts)
      shifts.push_back(Nanos(((shift.count % 100'000'000) + 100'000'000) % 100'000'000));
    EXPECT_GE(evaluate(after.problem, after.slots, shifts).score, 0.98) << late;
  }
}

TEST(Repair, jobs_on_other_links__make_no_way) {
  Setting setting(2);
  setting.add(0_ms, 40_ms, {0});
  setting.add(50_ms, 40_ms, {0, 1});
  setting.add(0_ms, 40_ms, {1});
  // Job 0 moves by 20 ms and job 1 by 10 ms. Job 2 uses only link 1, where it has enough room.
  const Repair repair = setting.repair(0, 20_ms);
  EXPECT_EQ(repair.wait, 0_ms);
  EXPECT_EQ(repair.delays[0], 20_ms);
  EXPECT_EQ(repair.delays[1], 10_ms);
  EXPECT_EQ(repair.delays[2], 0_ms);
}

/// Four jobs with many bursts on several links. Their periods have no short common multiple.
struct Bursty {
  Problem problem;
  Slots slots;
  std::vector<Nanos> shifts;

  Bursty() {
    for (int link = 0; link < 8; ++link)
      problem.links.push_back({"link " + std::to_string(link), Rate(1'000'000'000), {}});
    const std::vector<std::uint32_t> repetitions{29, 23, 26, 44};
    slots.perimeter = Nanos(29LL * 23 * 26 * 44 * 1'500);
    for (std::uint32_t job = 0; job < repetitions.size(); ++job) {
      const Nanos period = slots.perimeter / repetitions[job];
      problem.jobs.push_back({"job " + std::to_string(job), period, {}});
      slots.repetitions.push_back(repetitions[job]);
      slots.periods.push_back(period);
      shifts.push_back(period / 7 * (job + 1));
      for (int link = 0; link < 8; ++link) {
        Demand demand{period, {}};
        for (int burst = 0; burst < 8; ++burst) {
          const Nanos from = period / 10 * burst + Nanos(10'000 * (link + 1));
          demand.bursts.push_back({from, from + period / 25, Rate(900'000'000)});
        }
        problem.links[static_cast<std::size_t>(link)].uses.push_back({job, demand});
      }
    }
  }
};

TEST(Repair, many_bursts_on_many_links__take_a_bounded_amount_of_work) {
  const Bursty bursty;
  const Timetable timetable(bursty.problem, bursty.slots);
  for (std::uint32_t late = 0; late < 4; ++late) {
    const Nanos slot = bursty.shifts[late] + timetable.held(late);
    for (const std::int64_t part : {20, 5, 2}) {
      const Repair repair = timetable.repair(bursty.shifts, late, slot + bursty.slots.periods[late] / part);
      EXPECT_TRUE(repair.complete);
      EXPECT_GT(repair.work, 10'000U);
      EXPECT_LT(repair.work, 5'000'000U) << "job " << late << ", a " << part << "th late";
      EXPECT_LE(repair.cost, bursty.slots.periods[late]);
    }
  }
}

}  // namespace
}  // namespace mltcp::scheduler
