// Tests the variables of the environment, and their effect on a job.
#include "mltcp/endpoint/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../message_of.h"
#include "../temporary_folder.h"
#include "endpoint_pair.h"
#include "mltcp/base/error.h"
#include "mltcp/endpoint/host_addresses.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::endpoint::environment_test {
namespace {

using testing::HasSubstr;
using namespace testing_pair;

std::map<std::string, std::string> variables;

const char* get(const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

Environment environment_of(const std::map<std::string, std::string>& values) {
  variables = values;
  return read_environment(&get);
}

template <typename Call>
std::string refusal(Call call) {
  return message_of<InputError>(call);
}

TEST(EnvironmentTest, empty__leaves_what_is_usual) {
  const Environment found = environment_of({{"MLTCP_DEVICE", ""}, {"MLTCP_CC", " "}});
  EXPECT_EQ(found.device, "");
  EXPECT_EQ(found.address, "");
  EXPECT_EQ(found.cc, "reno");
  EXPECT_EQ(found.job, 0U);
  EXPECT_EQ(found.peer_timeout, Nanos(10'000'000'000));
  EXPECT_TRUE(found.augmentation.iteration_aware());
  EXPECT_DOUBLE_EQ(found.augmentation.gain_at(1), 2.0);  // F1
  EXPECT_FALSE(found.plan.has_value());
  EXPECT_FALSE(found.key.has_value());
  EXPECT_FALSE(found.authenticate);
  EXPECT_FALSE(environment_of({{"MLTCP_AUTHENTICATE", "0"}}).authenticate);
}

TEST(EnvironmentTest, authenticate__is_of_a_key) {
  EXPECT_EQ(refusal([] {
              environment_of({{"MLTCP_AUTHENTICATE", "1"}});
            }),
            "MLTCP_AUTHENTICATE is 1 and MLTCP_KEY_FILE is not set; set both, or neither");
  const TemporaryFolder folder;
  security::JobKey::generate().write_file(folder / "job.key");
  EXPECT_TRUE(
      environment_of({{"MLTCP_AUTHENTICATE", "1"}, {"MLTCP_KEY_FILE", (folder / "job.key").string()}}).authenticate);
}

TEST(EnvironmentTest, all_of_it__is_read) {
  const Environment found = environment_of({{"MLTCP_DEVICE", "udp:eth1"},
                                            {"MLTCP_ADDRESS", " 10.0.0.1\t"},
                                            {"MLTCP_CC", "dctcp"},
                                            {"MLTCP_JOB", "4294967295"},
                                            {"MLTCP_JOB_FUNCTION", "fair"},
                                            {"MLTCP_PEER_TIMEOUT_MS", "3600000"},
                                            {"MLTCP_SLOT_UNIX_NS", "1700000000000000000"},
                                            {"MLTCP_SLOT_PERIOD_NS", "200000000"},
                                            {"MLTCP_CLOCK_BOUND_NS", "250000"}});
  EXPECT_EQ(found.device, "udp:eth1");
  EXPECT_EQ(found.address, "10.0.0.1");
  EXPECT_EQ(found.cc, "dctcp");
  EXPECT_EQ(found.job, 0xFFFF'FFFFU);
  EXPECT_FALSE(found.augmentation.iteration_aware());
  EXPECT_EQ(found.peer_timeout, Nanos(3'600'000'000'000));
  const SharedClockPlan expected{1'700'000'000'000'000'000, Nanos(200'000'000), Nanos(250'000)};
  ASSERT_TRUE(found.plan.has_value());
  EXPECT_EQ(*found.plan, expected);
}

TEST(EnvironmentTest, functions__are_names_polynomials_and_constants) {
  EXPECT_DOUBLE_EQ(environment_of({{"MLTCP_JOB_FUNCTION", "F5"}}).augmentation.gain_at(0), 2.0);
  EXPECT_DOUBLE_EQ(environment_of({{"MLTCP_JOB_FUNCTION", "polynomial 0.5 1 0"}}).augmentation.gain_at(1), 1.5);
  EXPECT_DOUBLE_EQ(environment_of({{"MLTCP_JOB_FUNCTION", "0.5"}}).augmentation.gain_at(1), 0.5);
}

TEST(EnvironmentTest, wrong_values__are_refused_by_name_and_value) {
  const std::vector<std::pair<std::string, std::string>> wrong{{"MLTCP_JOB", "-1"},
                                                               {"MLTCP_JOB", "4294967296"},
                                                               {"MLTCP_PEER_TIMEOUT_MS", "9"},
                                                               {"MLTCP_PEER_TIMEOUT_MS", "1e3"},
                                                               {"MLTCP_JOB_FUNCTION", "F7"},
                                                               {"MLTCP_JOB_FUNCTION", "-1"},
                                                               {"MLTCP_JOB_FUNCTION", "polynomial 1 2"},
                                                               {"MLTCP_CLOCK_BOUND_NS", "soon"},
                                                               {"MLTCP_KEY_FILE", "/nowhere/job.key"},
                                                               {"MLTCP_KEY_FILE", "fd:three"},
                                                               {"MLTCP_AUTHENTICATE", "yes"}};
  for (const auto& one : wrong)
    EXPECT_THAT(refusal([&] { environment_of({one}); }), AllOf(HasSubstr(one.first), HasSubstr(one.second)));
}

TEST(EnvironmentTest, plans__are_whole_and_in_range_or_refused) {
  EXPECT_THAT(refusal([] {
                environment_of({{"MLTCP_SLOT_UNIX_NS", "5"}});
              }),
              HasSubstr("MLTCP_SLOT_PERIOD_NS is not; set both"));
  EXPECT_THAT(refusal([] {
                environment_of({{"MLTCP_SLOT_PERIOD_NS", "5000"}});
              }),
              HasSubstr("MLTCP_SLOT_UNIX_NS is not; set both"));
  const auto with_period = [](const char* period, const char* bound = "") {
    return environment_of(
        {{"MLTCP_SLOT_UNIX_NS", "5"}, {"MLTCP_SLOT_PERIOD_NS", period}, {"MLTCP_CLOCK_BOUND_NS", bound}});
  };
  EXPECT_THAT(refusal([&] { with_period("999"); }), HasSubstr("MLTCP_SLOT_PERIOD_NS is \"999\"; give a number from"));
  EXPECT_THAT(refusal([&] { with_period("3600000000001"); }), HasSubstr("MLTCP_SLOT_PERIOD_NS"));
  EXPECT_THAT(refusal([&] { with_period("100000000", "5000001"); }), HasSubstr("MLTCP_CLOCK_BOUND_NS"));
  // The default clock bound is the smaller of 1 ms and 1% of the period.
  EXPECT_EQ(with_period("200000000").plan->clock_bound, Nanos(1'000'000));
  EXPECT_EQ(with_period("20000000").plan->clock_bound, Nanos(200'000));
  for (const char* period : {"1000", "3600000000000"})
    EXPECT_EQ(objection_to(with_period(period).plan->on(1'700'000'000'000'000'000, Nanos(1))), "");
}

TEST(EnvironmentTest, plan__of_the_shared_clock_is_one_of_the_endpoints_within_a_period) {
  const SharedClockPlan plan{1'700'000'000'000'000'000, Nanos(100), Nanos(1)};
  EXPECT_EQ(plan.on(1'700'000'000'000'000'000, Nanos(7)).slot, Nanos(7)) << "now";
  EXPECT_EQ(plan.on(1'700'000'000'000'000'030, Nanos(7)).slot, Nanos(77)) << "it was 30 ago, so the next is in 70";
  EXPECT_EQ(plan.on(1'699'999'999'999'999'760, Nanos(7)).slot, Nanos(47)) << "it is in 240";
  EXPECT_EQ(plan.on(1'699'999'999'999'999'760, Nanos(7)).period, Nanos(100));
  EXPECT_EQ(plan.on(1'699'999'999'999'999'760, Nanos(7)).clock_bound, Nanos(1));
  // These plans have the largest possible difference between slot and clock.
  const SharedClockPlan last{std::int64_t{1} << 62, Nanos(1000), Nanos()};
  EXPECT_LT(last.on(0, Nanos(5)).slot, Nanos(1005));
  EXPECT_LT((SharedClockPlan{0, Nanos(1000), Nanos()}.on(std::int64_t{1} << 62, Nanos(5)).slot), Nanos(1005));
}

class PlannedJob : public EndpointPair {
 protected:
  PlannedJob() { open(config(1), config(2)); }
};

/// An iteration starts at once if its size is not stated. From the first iteration with a stated size on, iterations
/// wait for their slots.
TEST_F(PlannedJob, iterations__wait_for_the_slots_of_the_environment) {
  connect(ConnectionKind::ordered);
  const SharedClockPlan shared{1'000'000, Nanos(50'000'000), Nanos(500'000)};
  const Nanos begun = left->now();
  JobOptions options;
  options.augmentation = cc::Augmentation::mltcp({});
  options.learn_iterations = true;
  options.plan = shared.on(21'000'000, begun);  // at this time the shared clock is 20 ms after the start of a slot
  JobHandle job = 0;
  ASSERT_EQ(left->create_job(options, job), Code::ok);
  ASSERT_EQ(left->attach(here, job), Code::ok);
  const auto transfer = [&] {
    const ByteVector message(10'000);
    ByteVector buffer(10'000);
    const OperationHandle receiving = receive(*right, there, buffer);
    const OperationHandle sending = send(*left, here, message);
    EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
    EXPECT_EQ(end_of(*left, sending).code, Code::ok);
    return left->now() - begun;
  };
  const auto plan = [&] {
    JobReport report;
    EXPECT_EQ(left->report(job, report), Code::ok);
    return report.plan;
  };
  EXPECT_LT(transfer(), Nanos(15'000'000)) << "nobody has named an iteration";
  ASSERT_EQ(left->begin_iteration(job, 0), Code::ok);
  EXPECT_LT(transfer(), Nanos(15'000'000)) << "its size is not known";
  EXPECT_EQ(plan(), PlanState::none);
  ASSERT_EQ(left->begin_iteration(job, 10'000), Code::ok);
  const Nanos held = transfer();
  EXPECT_GE(held, Nanos(30'000'000));
  EXPECT_LT(held, Nanos(45'000'000));
  EXPECT_EQ(plan(), PlanState::active);
  ASSERT_EQ(left->begin_iteration(job, 10'000), Code::ok);
  EXPECT_GE(transfer(), Nanos(80'000'000));
  // The environment sets the plan only once. The program may clear this plan later.
  EXPECT_EQ(left->clear_plan(job), Code::ok);
  ASSERT_EQ(left->begin_iteration(job, 10'000), Code::ok);
  EXPECT_LT(transfer(), Nanos(115'000'000));
  EXPECT_EQ(plan(), PlanState::removed);
}

/// A plan that the program sets or clears before the first iteration replaces the plan that was given with the job.
TEST_F(PlannedJob, plan__that_the_program_sets_or_clears_replaces_the_one_given_with_the_job) {
  for (const bool sets : {false, true}) {
    JobOptions options;
    options.plan = SharedClockPlan{1'000'000, Nanos(50'000'000), Nanos()}.on(21'000'000, left->now());
    JobHandle job = 0;
    ASSERT_EQ(left->create_job(options, job), Code::ok);
    PlanState state = PlanState::none;
    PhasePlan other;
    other.slot = left->now();
    other.period = Nanos(1'000'000);
    other.valid_until = left->now() + Nanos(1'000'000'000);
    if (sets)
      ASSERT_EQ(left->set_plan(job, other, state), Code::ok);
    else
      ASSERT_EQ(left->clear_plan(job), Code::ok);
    ASSERT_EQ(left->begin_iteration(job, 10'000), Code::ok);
    JobReport report;
    ASSERT_EQ(left->report(job, report), Code::ok);
    EXPECT_EQ(report.plan, sets ? PlanState::active : PlanState::none);
    // With the plan that was given with the job, the state would also be active.
    if (sets) {
      EXPECT_EQ(left->clear_plan(job), Code::ok);
    }
    EXPECT_EQ(left->remove_job(job), Code::ok);
  }
}

TEST_F(PlannedJob, plan__that_can_not_be_is_refused) {
  JobOptions options;
  options.plan = PhasePlan{};
  JobHandle job = 0;
  EXPECT_EQ(left->create_job(options, job), Code::invalid);
  EXPECT_EQ(job, 0U);
}

TEST(HostAddressesTest, interfaces__that_are_not_there_are_refused_with_those_that_are) {
  const std::vector<Interface> host{{"lo", Address::v4(0x7F000001, 0), true},
                                    {"eth0", Address::v4(0x0A000001, 0)},
                                    {"eth0", Address::parse("fd00::1")}};
  EXPECT_EQ(address_of_interface("eth0", host), Address::v4(0x0A000001, 0));
  EXPECT_THAT(refusal([&] { (void)address_of_interface("eth7", host); }),
              AllOf(HasSubstr("no interface \"eth7\""), HasSubstr("lo 127.0.0.1, eth0 10.0.0.1, eth0 [fd00:")));
  // "lo" exists in the kernel, but has no address in the given list.
  EXPECT_THAT(refusal([] { (void)address_of_interface("lo", {}); }),
              AllOf(HasSubstr("has no IP address"), HasSubstr("ip addr add"), HasSubstr("none")));
}

TEST(HostAddressesTest, hosts__are_addresses_or_names) {
  EXPECT_EQ(resolve_host("10.0.0.9"), Address::v4(0x0A000009, 0));
  EXPECT_EQ(resolve_host("10.0.0.9:700"), Address::v4(0x0A000009, 0)) << "of a host, without a port";
  EXPECT_THAT(refusal([] { (void)resolve_host("no.such.host.invalid"); }),
              AllOf(HasSubstr("no.such.host.invalid"), HasSubstr("MLTCP_ADDRESS"), HasSubstr("MLTCP_DEVICE")));
  bool has_loopback = false;
  for (const Interface& one : list_interfaces()) has_loopback |= one.loopback && one.name == "lo";
  EXPECT_TRUE(has_loopback || list_interfaces().empty());
}

}  // namespace
}  // namespace mltcp::endpoint::environment_test
