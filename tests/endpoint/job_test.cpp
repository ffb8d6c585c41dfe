// Tests jobs over the shards of an endpoint: how the bytes of an iteration are divided, and reports.
#include <gtest/gtest.h>

#include <vector>

#include "endpoint_pair.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::endpoint::job_test {
namespace {

using namespace testing_pair;

class JobTest : public EndpointPair {
 protected:
  JobTest() { open_with("turns.short_round_trips=0"); }  // the bursts of these tests are short
  /// Opens both endpoints. The left one has these parameters, and two shards.
  void open_with(const std::string& parameters) {
    cc::Parameters changed;
    cc::set_from_text(changed, parameters);
    EndpointConfig a = config(1);
    a.shards = 2;
    a.connection.parameters = std::make_shared<const cc::Parameters>(changed);
    left.reset();
    right.reset();
    open(a, config(2));
  }
  /// Opens one connection on each of the two shards.
  void connect_both() {
    for (int i = 0; i < 2; ++i) {
      connect(ConnectionKind::ordered);
      ConnectionReport report;
      ASSERT_EQ(left->report(here, report), Code::ok);
      ours[report.shard] = here;
      theirs[report.shard] = there;
    }
    ASSERT_NE(ours[0], 0U);
    ASSERT_NE(ours[1], 0U);
  }
  void transfer(std::size_t shard, std::size_t bytes) {
    const ByteVector message(bytes);
    ByteVector buffer(bytes);
    const OperationHandle receiving = receive(*right, theirs[shard], buffer);
    const OperationHandle sending = send(*left, ours[shard], message);
    received = end_of(*right, receiving);
    EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  }
  JobHandle create_job(const JobOptions& options) {
    JobHandle job = 0;
    EXPECT_EQ(left->create_job(options, job), Code::ok);
    return job;
  }
  JobReport report(JobHandle job) {
    JobReport all;
    EXPECT_EQ(left->report(job, all), Code::ok);
    return all;
  }
  std::array<ConnectionHandle, 2> ours{};
  std::array<ConnectionHandle, 2> theirs{};
  Completion received;
};

TEST_F(JobTest, iteration__bytes_follow_the_shards_that_send_them) {
  connect_both();
  const JobHandle job = create_job({.number = 7, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  ASSERT_EQ(left->attach(ours[0], job), Code::ok);
  ASSERT_EQ(left->attach(ours[1], job), Code::ok);
  // The bytes of the first iteration are divided by the number of connections, so that each shard gets half.
  ASSERT_EQ(left->begin_iteration(job, 40'000), Code::ok);
  transfer(0, 30'000);
  JobReport all = report(job);
  EXPECT_EQ(all.iteration, 1U);
  EXPECT_EQ(all.bytes_per_iteration, 40'000U);
  EXPECT_EQ(all.bytes_sent, 30'000U);
  EXPECT_DOUBLE_EQ(all.bytes_ratio, 0.75);
  EXPECT_EQ(all.connections, 2U);
  // Shard 0 has sent more than its 20,000 bytes, so its gain is F(1) = 2. Shard 1 has sent nothing, so its gain is F(0)
  // = 0.25.
  EXPECT_NEAR(all.gain, (2.0 + 0.25) / 2, 1e-9);
  EXPECT_GT(all.cwnd_bytes, 0);
  EXPECT_GT(all.packets_sent, 20U);
  EXPECT_GT(all.smoothed_rtt, Nanos());
  EXPECT_TRUE(received.has_job);
  EXPECT_EQ(received.job, 7U);
  transfer(1, 10'000);
  EXPECT_EQ(left->end_iteration(job), Code::ok);
  EXPECT_TRUE(report(job).between_iterations);
  // In the first iteration, the two shards sent bytes in the ratio 3 to 1. The bytes of the second iteration are
  // divided in this ratio, so that both shards finish together.
  ASSERT_EQ(left->begin_iteration(job, 80'000), Code::ok);
  EXPECT_FALSE(report(job).between_iterations);
  transfer(0, 30'000);
  EXPECT_NEAR(report(job).gain, (1.75 * 0.5 + 0.25 + 0.25) / 2, 1e-9) << "of 60'000";
  transfer(1, 10'000);
  all = report(job);
  EXPECT_EQ(all.iteration, 2U);
  EXPECT_DOUBLE_EQ(all.bytes_ratio, 0.5);
  EXPECT_NEAR(all.gain, 1.75 * 0.5 + 0.25, 1e-9) << "on both shards alike";
}

// The attacker states half of the bytes of each iteration. Each shard therefore exceeds its stated part with its second
// message.
TEST_F(JobTest, report__tells_the_receiver_who_states_too_little) {
  connect_both();
  const JobHandle attacker = create_job({.number = 7, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  for (const ConnectionHandle connection : ours) ASSERT_EQ(left->attach(connection, attacker), Code::ok);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(left->begin_iteration(attacker, 40'000), Code::ok);
    for (const std::size_t shard : {0U, 1U, 0U, 1U}) transfer(shard, 20'000);
  }
  const JobHandle honest = create_job({.number = 8, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  for (const ConnectionHandle connection : ours) ASSERT_EQ(left->attach(connection, honest), Code::ok);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(left->begin_iteration(honest, 40'000), Code::ok);
    for (const std::size_t shard : {0U, 1U, 0U, 1U}) transfer(shard, 10'000);
  }
  std::vector<JobClaim> claims;
  ASSERT_EQ(right->report(claims), Code::ok);
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_EQ(claims[0].job, 7U);
  EXPECT_EQ(claims[0].iterations, 10U);
  EXPECT_NEAR(claims[0].share_at_end(), 0.5, 0.01);
  EXPECT_EQ(claims[0].verdict(), ClaimVerdict::understated);
  EXPECT_EQ(claims[1].job, 8U);
  EXPECT_EQ(claims[1].bytes_at_end, 0U);
  EXPECT_EQ(claims[1].verdict(), ClaimVerdict::consistent);
  ASSERT_EQ(left->report(claims), Code::ok);
  EXPECT_TRUE(claims.empty()) << "it has received nothing of a job";
  right->close();
  EXPECT_EQ(right->report(claims), Code::destroyed);
}

TEST_F(JobTest, learn_iterations__forgets_the_size_on_every_shard_until_one_is_named) {
  connect_both();
  const JobHandle job =
      create_job({.number = 7, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}, .learn_iterations = true});
  for (const ConnectionHandle connection : ours) ASSERT_EQ(left->attach(connection, job), Code::ok);
  ASSERT_EQ(left->begin_iteration(job, 40'000), Code::ok);
  transfer(0, 10'000);
  transfer(1, 10'000);
  EXPECT_EQ(report(job).bytes_per_iteration, 40'000U);
  EXPECT_EQ(left->end_iteration(job), Code::ok);
  ASSERT_EQ(left->learn_iterations(job), Code::ok);
  JobReport all = report(job);
  EXPECT_EQ(all.bytes_per_iteration, 0U);
  EXPECT_EQ(all.gain, 1.0) << "on both";
  EXPECT_FALSE(all.between_iterations);
  ASSERT_EQ(left->begin_iteration(job, 60'000), Code::ok);
  all = report(job);
  EXPECT_EQ(all.bytes_per_iteration, 60'000U);
  EXPECT_EQ(all.gain, 0.25);
  ASSERT_EQ(left->remove_job(job), Code::ok);
  EXPECT_EQ(left->learn_iterations(job), Code::unknown);
}

TEST_F(JobTest, create_job__has_the_parameters_of_the_endpoint) {
  const auto gain_in_the_fourth_iteration = [this](const std::string& parameters) {
    ours = theirs = {};
    open_with(parameters);
    connect_both();
    const JobHandle job =
        create_job({.number = 7, .augmentation = cc::Augmentation::mltcp({}), .max_rate = Rate(1'000'000'000)});
    for (const ConnectionHandle connection : ours) EXPECT_EQ(left->attach(connection, job), Code::ok);
    for (int iteration = 0; iteration < 4; ++iteration) {
      EXPECT_EQ(left->begin_iteration(job, 40'000), Code::ok);
      for (const std::size_t shard : {0U, 1U}) transfer(shard, 20'000);
    }
    return report(job).gain;
  };
  EXPECT_NEAR(gain_in_the_fourth_iteration("turns.short_round_trips=0"), 2, 1e-9) << "F(1)";
  EXPECT_EQ(gain_in_the_fourth_iteration("turns.short_round_trips=1000000"), 1) << "every burst is short";
}

TEST_F(JobTest, attach__before_the_connection_is_open_counts_from_the_first_byte) {
  const JobHandle job = create_job({.number = 3, .augmentation = {}, .max_rate = {}});
  OperationHandle operation = 0;
  ASSERT_EQ(left->connect(right->address().bytes(), {.kind = ConnectionKind::tagged, .post = {}}, here, &operation),
            Code::ok);
  ASSERT_EQ(left->attach(here, job), Code::ok);
  ASSERT_EQ(left->begin_iteration(job, 100'000), Code::ok);
  const ByteVector message = bytes_of(50'000);
  const OperationHandle sending = send_tagged(*left, here, message, 1);
  const ConnectionHandle accepted = event(*right).connection;
  ByteVector buffer(50'000);
  const Completion end = end_of(*right, receive_tagged(*right, accepted, buffer, 1));
  EXPECT_TRUE(end.has_job);
  EXPECT_EQ(end.job, 3U);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  const JobReport all = report(job);
  EXPECT_EQ(all.connections, 2U) << "control and data";
  EXPECT_EQ(all.bytes_sent, 50'000U) << "no hello, and no frame";
}

// Two iterations send short, long and empty tagged messages in both directions, under loss. Only the posted bytes
// count.
TEST_F(JobTest, iteration__by_tag_counts_the_bytes_that_were_posted_and_no_others) {
  connect(ConnectionKind::tagged);
  const JobHandle job = create_job({});
  ASSERT_EQ(left->attach(here, job), Code::ok);
  Random random(7);
  network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return random.below(10) == 0; };
  for (int iteration = 0; iteration < 2; ++iteration) {
    ASSERT_EQ(left->begin_iteration(job, 2'000'000), Code::ok);
    Bytes posted = 0;
    for (const std::size_t length : {500'000U, 1U, 0U, 1024U, 1025U, 300U, 20'000U}) {
      const ByteVector message(length);
      ByteVector buffer(length);
      ByteVector back(length);
      const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
      const OperationHandle answer = receive_tagged(*left, here, back, 2);
      const OperationHandle sending = send_tagged(*left, here, message, 1);
      const OperationHandle answering = send_tagged(*right, there, message, 2);
      for (const OperationHandle one : {sending, answer}) EXPECT_EQ(end_of(*left, one, 20_s).code, Code::ok);
      for (const OperationHandle one : {receiving, answering}) EXPECT_EQ(end_of(*right, one, 20_s).code, Code::ok);
      posted += length;
    }
    run_for(10_ms);
    EXPECT_EQ(report(job).bytes_sent, posted);
  }
}

TEST_F(JobTest, handles__of_removed_jobs_are_refused) {
  connect_both();
  JobHandle job = create_job({});
  ASSERT_EQ(left->attach(ours[0], job), Code::ok);
  ASSERT_EQ(left->remove_job(job), Code::ok);
  JobReport all;
  PlanState state = PlanState::none;
  for (const JobHandle handle : {job, JobHandle{0}, JobHandle{1}, ~JobHandle{0}}) {
    EXPECT_EQ(left->attach(ours[0], handle), Code::unknown);
    EXPECT_EQ(left->begin_iteration(handle, 1), Code::unknown);
    EXPECT_EQ(left->end_iteration(handle), Code::unknown);
    EXPECT_EQ(left->report(handle, all), Code::unknown);
    EXPECT_EQ(left->set_plan(handle, {}, state), Code::unknown);
    EXPECT_EQ(left->clear_plan(handle), Code::unknown);
    EXPECT_EQ(left->set_job_rate(handle, {}), Code::unknown);
    EXPECT_EQ(left->remove_job(handle), Code::unknown);
  }
  transfer(0, 1000);
  EXPECT_FALSE(received.has_job);
  std::vector<JobHandle> jobs(64);
  for (JobHandle& one : jobs) EXPECT_EQ(left->create_job({}, one), Code::ok);
  EXPECT_EQ(left->create_job({}, job), Code::no_room);
}

TEST_F(JobTest, plan__that_was_given_with_a_job_waits_for_who_knows_where_iterations_begin) {
  connect_both();
  JobOptions options;
  options.plan = PhasePlan{.slot = left->now() + 10_ms, .period = 1_s, .clock_bound = {}};
  const JobHandle job = create_job(options);
  for (const ConnectionHandle connection : ours) ASSERT_EQ(left->attach(connection, job), Code::ok);
  ASSERT_EQ(left->begin_iteration(job, 5'000, Beginning::guessed), Code::ok);
  EXPECT_EQ(report(job).iteration, 1U);
  EXPECT_EQ(report(job).plan, PlanState::none);
  ASSERT_EQ(left->begin_iteration(job, 5'000), Code::ok);
  EXPECT_EQ(report(job).iteration, 2U);
  EXPECT_EQ(report(job).plan, PlanState::active);
}

TEST_F(JobTest, plan__holds_the_iteration_on_every_shard) {
  connect_both();
  const JobHandle job = create_job({});
  for (const ConnectionHandle connection : ours) ASSERT_EQ(left->attach(connection, job), Code::ok);
  const Nanos slot = left->now() + 50_ms;
  PlanState state = PlanState::none;
  ASSERT_EQ(left->set_plan(job, {.slot = slot, .period = 1_s, .clock_bound = {}}, state), Code::ok);
  EXPECT_EQ(state, PlanState::active);
  ASSERT_EQ(left->begin_iteration(job, 2000), Code::ok);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    transfer(shard, 1000);
    EXPECT_GE(left->now(), slot);
  }
  EXPECT_EQ(report(job).plan, PlanState::active);
  ASSERT_EQ(left->clear_plan(job), Code::ok);
  EXPECT_EQ(report(job).plan, PlanState::removed);
  EXPECT_EQ(left->set_plan(job, {.slot = slot, .period = 0_ns, .clock_bound = {}}, state), Code::ok);
  EXPECT_EQ(state, PlanState::invalid);
  EXPECT_EQ(left->set_job_rate(job, Rate(1'000'000'000)), Code::ok);
}

TEST_F(JobTest, memory__is_registered_where_nothing_has_to_be_done) {
  ByteVector memory(4096);
  MemoryHandle handle = 0;
  ASSERT_EQ(left->register_memory(memory, handle), Code::ok);
  EXPECT_EQ(left->unregister_memory(handle), Code::ok);
  EXPECT_EQ(left->unregister_memory(handle), Code::unknown);
  EXPECT_EQ(left->register_memory({}, handle), Code::invalid);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(left->register_memory(memory, handle), Code::ok);
  EXPECT_EQ(left->register_memory(memory, handle), Code::no_room);
}

}  // namespace
}  // namespace mltcp::endpoint::job_test
