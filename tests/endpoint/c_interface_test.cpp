// Tests that every function of the C interface (endpoint/mltcp.h) works over UDP sockets of the loopback, and the
// errors for wrong calls. Other tests cover the behaviour of endpoints.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "../temporary_folder.h"
#include "c_pair.h"
#include "mltcp/endpoint/address.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::c_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// ---- What works ----

TEST(CVersion, tells__the_interface_and_the_project) {
  EXPECT_EQ(mltcp_version(), (1U << 16) + 4);
  EXPECT_EQ(mltcp_version(), static_cast<std::uint32_t>(MLTCP_VERSION));
  EXPECT_THAT(mltcp_version_text(), HasSubstr("interface 1.4"));
  EXPECT_THAT(mltcp_device_forms(), HasSubstr("udp:"));
}

TEST(CCodes, all__have_names_and_texts) {
  for (mltcp_code code = MLTCP_OK; code <= MLTCP_NO_KEY; ++code) {
    EXPECT_STRNE(mltcp_code_name(code), "unknown code") << code;
    EXPECT_STRNE(mltcp_code_text(code), "") << code;
  }
  EXPECT_STREQ(mltcp_code_name(MLTCP_TIMED_OUT), "timed_out");
  for (const mltcp_code code : {-1, MLTCP_NO_KEY + 1, 255, 256, INT32_MIN, INT32_MAX}) {
    EXPECT_STREQ(mltcp_code_name(code), "unknown code") << code;
    EXPECT_STRNE(mltcp_code_text(code), "") << code;
  }
}

TEST_F(CInterface, ordered__messages_land_in_their_buffers) {
  open_and_connect(MLTCP_ORDERED);
  const auto message = bytes_of(300'000);
  std::vector<unsigned char> buffer(message.size());
  mltcp_operation sending = 0;
  mltcp_operation receiving = 0;
  ASSERT_EQ(mltcp_send(left, here, message.data(), message.size(), 7, nullptr, &sending), MLTCP_OK);
  ASSERT_EQ(mltcp_receive(right, there, buffer.data(), buffer.size(), 8, nullptr, &receiving), MLTCP_OK);
  const mltcp_completion received = end_of(right, receiving);
  EXPECT_EQ(received.code, MLTCP_OK) << text_of(received);
  EXPECT_EQ(received.kind, MLTCP_RECEIVED);
  EXPECT_EQ(received.connection_kind, MLTCP_ORDERED);
  EXPECT_EQ(received.bytes, message.size());
  EXPECT_EQ(received.tag, 8U);
  EXPECT_EQ(received.operation, receiving);
  EXPECT_EQ(received.connection, there);
  EXPECT_NE(received.peer_port, 0);
  EXPECT_EQ(buffer, message);
  const mltcp_completion sent = end_of(left, sending);
  EXPECT_EQ(sent.code, MLTCP_OK) << text_of(sent);
  EXPECT_EQ(sent.kind, MLTCP_SENT);
  EXPECT_EQ(sent.tag, 7U);
}

TEST_F(CInterface, tagged__messages_find_their_receives) {
  open_and_connect(MLTCP_TAGGED);
  std::array<mltcp_operation, 4> sends{};
  std::array<std::vector<unsigned char>, 4> messages;
  for (unsigned i = 0; i < 4; ++i) {
    messages[i] = bytes_of(i * 30'000, i);
    ASSERT_EQ(mltcp_send_tagged(left, here, messages[i].data(), messages[i].size(), i, nullptr, &sends[i]), MLTCP_OK);
  }
  for (unsigned i = 4; i-- > 0;) {
    std::vector<unsigned char> buffer(100'000);
    mltcp_operation receiving = 0;
    ASSERT_EQ(mltcp_receive_tagged(right, MLTCP_ANY_CONNECTION, buffer.data(), buffer.size(), i, MLTCP_WHOLE_TAG,
                                   nullptr, &receiving),
              MLTCP_OK);
    const mltcp_completion end = end_of(right, receiving);
    ASSERT_EQ(end.code, MLTCP_OK) << text_of(end);
    EXPECT_EQ(end.connection, there);
    EXPECT_EQ(end.tag, i);
    buffer.resize(end.bytes);
    EXPECT_EQ(buffer, messages[i]);
  }
  for (const mltcp_operation sending : sends) EXPECT_EQ(end_of(left, sending).code, MLTCP_OK);
}

TEST_F(CInterface, peek__looks_and_takes) {
  open_and_connect(MLTCP_TAGGED);
  const auto message = bytes_of(100);
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_peek(right, there, 5, MLTCP_WHOLE_TAG, 1, nullptr, &operation), MLTCP_OK);
  EXPECT_EQ(end_of(right, operation).code, MLTCP_NOTHING);
  ASSERT_EQ(mltcp_send_tagged(left, here, message.data(), message.size(), 5, nullptr, &operation), MLTCP_OK);
  ASSERT_EQ(end_of(left, operation).code, MLTCP_OK);
  ASSERT_EQ(mltcp_peek(right, MLTCP_ANY_CONNECTION, 0, 0, 0, nullptr, &operation), MLTCP_OK);
  mltcp_completion seen = end_of(right, operation);
  EXPECT_EQ(seen.code, MLTCP_OK);
  EXPECT_EQ(seen.bytes, 100U);
  EXPECT_EQ(seen.tag, 5U);
  EXPECT_EQ(seen.message, 0U);
  ASSERT_EQ(mltcp_peek(right, there, 5, MLTCP_WHOLE_TAG, 1, nullptr, &operation), MLTCP_OK);
  seen = end_of(right, operation);
  ASSERT_NE(seen.message, 0U);
  std::vector<unsigned char> buffer(40);
  ASSERT_EQ(mltcp_receive_message(right, seen.message, buffer.data(), buffer.size(), nullptr, &operation), MLTCP_OK);
  const mltcp_completion end = end_of(right, operation);
  EXPECT_EQ(end.code, MLTCP_TRUNCATED);
  EXPECT_EQ(end.bytes, 100U);
  EXPECT_EQ(std::memcmp(buffer.data(), message.data(), buffer.size()), 0);
  EXPECT_EQ(mltcp_peek(right, there, 5, MLTCP_WHOLE_TAG, 2, nullptr, &operation), MLTCP_INVALID);
}

struct Calls {
  std::atomic<int> count{0};
  std::atomic<std::uint64_t> bytes{0};
  static void on_end(void* context, const mltcp_completion* completion) {
    auto* const calls = static_cast<Calls*>(context);
    calls->bytes += completion->bytes;
    EXPECT_EQ(completion->context, context);
    EXPECT_EQ(completion->struct_size, sizeof *completion);
    ++calls->count;
  }
};
bool wait_until(const std::atomic<int>& count, int wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kPatience);
  while (count < wanted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return count >= wanted;
}

TEST_F(CInterface, callbacks__are_called_with_their_own_context_once_each) {
  open_and_connect(MLTCP_ORDERED);
  std::array<Calls, 2> calls;
  mltcp_post_options options = post_options();
  options.callback = Calls::on_end;
  constexpr int kMessages = 200;  // more than the maximum number of operations
  std::array<unsigned char, 100> buffer{};
  for (int i = 0; i < kMessages; ++i) {
    options.context = &calls[0];
    mltcp_code code = MLTCP_QUEUE_FULL;
    while ((code = mltcp_send(left, here, "hello", 5, 0, &options, nullptr)) == MLTCP_QUEUE_FULL)
      std::this_thread::yield();
    ASSERT_EQ(code, MLTCP_OK) << mltcp_last_error();
    options.context = &calls[1];
    while ((code = mltcp_receive(right, there, buffer.data(), buffer.size(), 0, &options, nullptr)) == MLTCP_QUEUE_FULL)
      std::this_thread::yield();
    ASSERT_EQ(code, MLTCP_OK) << mltcp_last_error();
  }
  for (const Calls& each : calls) {
    EXPECT_TRUE(wait_until(each.count, kMessages));
    EXPECT_EQ(each.bytes, 5U * kMessages);
  }
}

TEST_F(CInterface, event_callback__tells_of_connections) {
  static std::atomic<int> accepted;
  static std::atomic<int> ended;
  accepted = ended = 0;
  mltcp_endpoint_options options = options_of();
  int place = 0;
  options.event_callback = [](void* context, const mltcp_completion* event) {
    EXPECT_EQ(event->context, context);
    if (event->kind == MLTCP_ACCEPTED) ++accepted;
    if (event->kind == MLTCP_ENDED) ++ended;
    ++*static_cast<int*>(context);
  };
  options.event_context = &place;
  left = open(options_of());
  right = open(options);
  const Blob blob = blob_of(right);
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_connect(left, blob.bytes, blob.size, MLTCP_ORDERED, nullptr, &here, &operation), MLTCP_OK);
  EXPECT_EQ(end_of(left, operation).code, MLTCP_OK);
  EXPECT_TRUE(wait_until(accepted, 1));
  mltcp_connection none = 1;
  EXPECT_EQ(mltcp_accept(right, &none, nullptr, 0), MLTCP_UNSUPPORTED) << "events are told elsewhere";
  EXPECT_EQ(none, 0U);
  ASSERT_EQ(mltcp_abort(left, here), MLTCP_OK);
  EXPECT_TRUE(wait_until(ended, 1));
  EXPECT_EQ(mltcp_endpoint_destroy(right), MLTCP_OK);
  right = nullptr;
  EXPECT_EQ(place, 2);
}

TEST_F(CInterface, queue__tells_by_its_file) {
  open_and_connect(MLTCP_ORDERED);
  mltcp_queue* queue = nullptr;
  ASSERT_EQ(mltcp_queue_create(right, 40, &queue), MLTCP_OK);
  mltcp_post_options options = post_options();
  options.queue = queue;
  std::array<unsigned char, 8> buffer{};
  for (std::uintptr_t i = 0; i < 40; ++i) {
    options.context = reinterpret_cast<void*>(i);
    ASSERT_EQ(mltcp_receive(right, there, buffer.data(), buffer.size(), i, &options, nullptr), MLTCP_OK);
  }
  EXPECT_EQ(mltcp_receive(right, there, buffer.data(), buffer.size(), 40, &options, nullptr), MLTCP_QUEUE_FULL);
  int file = -1;
  ASSERT_EQ(mltcp_queue_file(queue, &file), MLTCP_OK);
  ASSERT_EQ(mltcp_queue_arm(queue), MLTCP_NOTHING);
  pollfd one{file, POLLIN, 0};
  EXPECT_EQ(poll(&one, 1, 0), 0);
  for (int i = 0; i < 40; ++i) {
    mltcp_operation operation = 0;
    ASSERT_EQ(mltcp_send(left, here, "x", 1, 0, nullptr, &operation), MLTCP_OK);
    mltcp_forget(left, operation);
  }
  EXPECT_EQ(poll(&one, 1, 10'000), 1);
  std::array<mltcp_completion, 50> ends{};
  ends[0].struct_size = sizeof ends[0];
  std::size_t all = 0;
  while (all < 40) {
    std::size_t count = 0;
    ASSERT_EQ(mltcp_queue_wait(queue, ends.data(), ends.size(), &count, kPatience), MLTCP_OK) << mltcp_last_error();
    ASSERT_GT(count, 0U);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(ends[i].struct_size, sizeof ends[i]);
      EXPECT_EQ(ends[i].context, reinterpret_cast<void*>(all + i));
      EXPECT_EQ(ends[i].tag, all + i);
    }
    all += count;
  }
  std::size_t count = 1;
  EXPECT_EQ(mltcp_queue_poll(queue, ends.data(), ends.size(), &count), MLTCP_OK);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(mltcp_queue_wait(queue, ends.data(), ends.size(), &count, 0), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_queue_wait(queue, ends.data(), ends.size(), &count, -1), MLTCP_INVALID);
  EXPECT_EQ(mltcp_queue_poll(queue, ends.data(), 0, &count), MLTCP_INVALID);
  EXPECT_EQ(mltcp_queue_destroy(queue), MLTCP_OK);
}

TEST_F(CInterface, driven_by_the_caller__progress_and_files_do) {
  open_both(options_of(MLTCP_DRIVEN_BY_CALLER));
  const Blob blob = blob_of(right);
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_connect(left, blob.bytes, blob.size, MLTCP_TAGGED, nullptr, &here, &operation), MLTCP_OK);
  int file = -1;
  ASSERT_EQ(mltcp_endpoint_file(right, &file), MLTCP_OK) << mltcp_last_error();
  bool has_slept = false;
  mltcp_completion end = empty_completion();
  for (int i = 0; i < 100'000 && mltcp_test(left, operation, &end) == MLTCP_TIMED_OUT; ++i) {
    ASSERT_EQ(mltcp_progress(left, nullptr), MLTCP_OK);
    const mltcp_code armed = mltcp_endpoint_arm(right);
    if (armed == MLTCP_NOTHING) {
      pollfd one{file, POLLIN, 0};
      has_slept = poll(&one, 1, 1) == 0 || has_slept;
    } else {
      ASSERT_EQ(armed, MLTCP_OK);
    }
    std::size_t ended = 0;
    ASSERT_EQ(mltcp_progress(right, &ended), MLTCP_OK);
  }
  EXPECT_EQ(end.code, MLTCP_OK) << text_of(end);
  mltcp_connection connection = 0;
  EXPECT_EQ(mltcp_accept(right, &connection, nullptr, kPatience), MLTCP_OK);
}

TEST_F(CInterface, driven_by_threads__there_is_nothing_to_drive) {
  open_both(options_of());
  EXPECT_EQ(mltcp_progress(left, nullptr), MLTCP_UNSUPPORTED);
  int file = 0;
  EXPECT_EQ(mltcp_endpoint_file(left, &file), MLTCP_UNSUPPORTED);
  EXPECT_EQ(file, -1);
  EXPECT_EQ(mltcp_endpoint_arm(left), MLTCP_UNSUPPORTED);
}

TEST_F(CInterface, cancel_and_limits__end_operations) {
  open_and_connect(MLTCP_TAGGED);
  std::array<unsigned char, 8> buffer{};
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_receive_tagged(right, there, buffer.data(), 8, 1, MLTCP_WHOLE_TAG, nullptr, &operation), MLTCP_OK);
  mltcp_completion end = empty_completion();
  EXPECT_EQ(mltcp_test(right, operation, &end), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_wait(right, operation, &end, 0), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_wait(right, operation, &end, 5 * kMillisecond), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_wait(right, operation, &end, -1), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("negative"));
  EXPECT_EQ(mltcp_wait(right, operation, &end, INT64_MIN), MLTCP_INVALID);
  EXPECT_EQ(mltcp_cancel(right, operation), MLTCP_OK);
  EXPECT_EQ(end_of(right, operation).code, MLTCP_CANCELLED);
  EXPECT_EQ(mltcp_cancel(right, operation), MLTCP_UNKNOWN);
  EXPECT_EQ(mltcp_wait(right, operation, &end, 0), MLTCP_UNKNOWN);
  EXPECT_EQ(mltcp_forget(right, operation), MLTCP_UNKNOWN);
  mltcp_post_options options = post_options();
  options.time_limit_ns = 10 * kMillisecond;
  ASSERT_EQ(mltcp_receive_tagged(right, there, buffer.data(), 8, 1, MLTCP_WHOLE_TAG, &options, &operation), MLTCP_OK);
  EXPECT_EQ(end_of(right, operation).code, MLTCP_TIMED_OUT);
  options.time_limit_ns = -1;
  EXPECT_EQ(mltcp_receive_tagged(right, there, buffer.data(), 8, 1, MLTCP_WHOLE_TAG, &options, &operation),
            MLTCP_INVALID);
  EXPECT_EQ(operation, 0U);
  mltcp_connection none = 0;
  EXPECT_EQ(mltcp_accept(right, &none, nullptr, 0), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_accept(right, &none, nullptr, 5 * kMillisecond), MLTCP_TIMED_OUT);
  EXPECT_EQ(mltcp_accept(right, &none, nullptr, -5), MLTCP_INVALID);
}

TEST_F(CInterface, waiting_in_a_callback__is_refused) {
  open_and_connect(MLTCP_ORDERED);
  struct Inside {
    mltcp_endpoint* endpoint;
    mltcp_operation other = 0;
    std::atomic<int> code{-1};
    std::atomic<int> posted{-1};
    std::atomic<int> done{0};
    std::array<unsigned char, 8> buffer{};
    mltcp_connection connection = 0;
  } inside{.endpoint = right};
  inside.connection = there;
  ASSERT_EQ(mltcp_receive(right, there, inside.buffer.data(), 1, 0, nullptr, &inside.other), MLTCP_OK);
  mltcp_post_options options = post_options();
  options.time_limit_ns = 20 * kMillisecond;
  options.context = &inside;
  options.callback = [](void* context, const mltcp_completion*) {
    auto* const own = static_cast<Inside*>(context);
    mltcp_operation operation = 0;
    own->posted = mltcp_receive(own->endpoint, own->connection, own->buffer.data(), 1, 0, nullptr, &operation);
    own->code = mltcp_wait(own->endpoint, own->other, nullptr, kPatience);
    own->done = 1;
  };
  ASSERT_EQ(mltcp_receive(right, there, inside.buffer.data(), 1, 0, &options, nullptr), MLTCP_OK);
  EXPECT_TRUE(wait_until(inside.done, 1));
  EXPECT_EQ(inside.code, MLTCP_UNSUPPORTED);
  EXPECT_EQ(inside.posted, MLTCP_OK);
}

TEST_F(CInterface, jobs__follow_their_iterations) {
  open_and_connect(MLTCP_ORDERED);
  mltcp_job_options options;
  mltcp_job_options_init(&options);
  options.number = 9;
  options.function = "F1";
  mltcp_job job = 0;
  ASSERT_EQ(mltcp_job_create(left, &options, &job), MLTCP_OK) << mltcp_last_error();
  ASSERT_EQ(mltcp_job_attach(left, job, here), MLTCP_OK);
  const auto message = bytes_of(100'000);
  ASSERT_EQ(mltcp_job_begin_iteration(left, job, 2 * message.size()), MLTCP_OK);
  std::vector<unsigned char> buffer(message.size());
  mltcp_operation sending = 0;
  mltcp_operation receiving = 0;
  ASSERT_EQ(mltcp_receive(right, there, buffer.data(), buffer.size(), 0, nullptr, &receiving), MLTCP_OK);
  ASSERT_EQ(mltcp_send(left, here, message.data(), message.size(), 0, nullptr, &sending), MLTCP_OK);
  const mltcp_completion received = end_of(right, receiving);
  EXPECT_EQ(received.has_job, 1);
  EXPECT_EQ(received.job, 9U);
  EXPECT_EQ(end_of(left, sending).code, MLTCP_OK);
  mltcp_job_report report;
  mltcp_job_report_init(&report);
  ASSERT_EQ(mltcp_report_job(left, job, &report), MLTCP_OK) << mltcp_last_error();
  EXPECT_EQ(report.iteration, 1U);
  EXPECT_EQ(report.bytes_per_iteration, 2 * message.size());
  EXPECT_DOUBLE_EQ(report.bytes_ratio, 0.5);
  EXPECT_DOUBLE_EQ(report.gain, 1.75 * 0.5 + 0.25);
  EXPECT_EQ(mltcp_job_end_iteration(left, job), MLTCP_OK);
  EXPECT_EQ(mltcp_job_set_rate(left, job, 1'000'000'000), MLTCP_OK);
  mltcp_job_plan plan;
  mltcp_job_plan_init(&plan);
  std::int32_t state = -1;
  EXPECT_EQ(mltcp_job_set_plan(left, job, &plan, &state), MLTCP_INVALID) << "it has no period";
  EXPECT_STRNE(mltcp_last_error(), mltcp_code_text(MLTCP_INVALID)) << "says what is wrong with it";
  ASSERT_EQ(mltcp_now(left, &plan.slot_ns), MLTCP_OK);
  plan.period_ns = 100 * kMillisecond;
  EXPECT_EQ(mltcp_job_set_plan(left, job, &plan, &state), MLTCP_OK) << mltcp_last_error();
  EXPECT_EQ(state, MLTCP_PLAN_ACTIVE);
  EXPECT_EQ(mltcp_job_clear_plan(left, job), MLTCP_OK);
  const mltcp_job_plan before = plan;
  EXPECT_EQ(mltcp_plan_from_environment(left, &plan), MLTCP_NOTHING);
  EXPECT_EQ(plan.period_ns, before.period_ns);
  setenv("MLTCP_SLOT_UNIX_NS", "1700000000000000000", 1);
  EXPECT_EQ(mltcp_plan_from_environment(left, &plan), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("MLTCP_SLOT_PERIOD_NS is not"));
  setenv("MLTCP_SLOT_PERIOD_NS", "40000000", 1);
  std::int64_t now = 0;
  ASSERT_EQ(mltcp_now(left, &now), MLTCP_OK);
  EXPECT_EQ(mltcp_plan_from_environment(left, &plan), MLTCP_OK) << mltcp_last_error();
  for (const char* name : {"MLTCP_SLOT_UNIX_NS", "MLTCP_SLOT_PERIOD_NS"}) unsetenv(name);
  EXPECT_EQ(plan.period_ns, 40 * kMillisecond);
  EXPECT_EQ(plan.clock_bound_ns, 400'000);
  EXPECT_GE(plan.slot_ns, now);
  EXPECT_EQ(mltcp_job_set_plan(left, job, &plan, &state), MLTCP_OK) << mltcp_last_error();
  EXPECT_EQ(state, MLTCP_PLAN_ACTIVE);
  EXPECT_EQ(mltcp_job_remove(left, job), MLTCP_OK);
  EXPECT_EQ(mltcp_job_remove(left, job), MLTCP_UNKNOWN);
  EXPECT_EQ(mltcp_job_begin_iteration(left, job, 1), MLTCP_UNKNOWN);
  EXPECT_EQ(mltcp_report_job(left, job, &report), MLTCP_UNKNOWN);
}

TEST_F(CInterface, jobs__bad_options_are_told) {
  open_both(options_of());
  mltcp_job job = 1;
  mltcp_job_options options;
  mltcp_job_options_init(&options);
  options.function = "F9";
  EXPECT_EQ(mltcp_job_create(left, &options, &job), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("F9"));
  EXPECT_EQ(job, 0U);
  options.weight = 2;
  EXPECT_EQ(mltcp_job_create(left, &options, &job), MLTCP_INVALID);
  options.function = nullptr;
  options.weight = -1;
  EXPECT_EQ(mltcp_job_create(left, &options, &job), MLTCP_INVALID);
  options.weight = 2;
  EXPECT_EQ(mltcp_job_create(left, &options, &job), MLTCP_OK) << mltcp_last_error();
  EXPECT_EQ(mltcp_job_create(left, nullptr, &job), MLTCP_OK) << mltcp_last_error();
  options.weight = 0;
  options.function = "turns F2";
  EXPECT_EQ(mltcp_job_create(left, &options, &job), MLTCP_OK) << mltcp_last_error();
}

TEST_F(CInterface, reports__count) {
  open_and_connect(MLTCP_ORDERED);
  mltcp_connection_report connection;
  mltcp_connection_report_init(&connection);
  ASSERT_EQ(mltcp_report_connection(left, here, &connection), MLTCP_OK);
  EXPECT_EQ(connection.kind, MLTCP_ORDERED);
  EXPECT_EQ(connection.open, 1U);
  EXPECT_GT(connection.packets_sent, 0U);
  EXPECT_GE(connection.packet_bytes, 472U);
  EXPECT_EQ(connection.agreed_packet_bytes, connection.packet_bytes);
  mltcp_endpoint_report endpoint;
  mltcp_endpoint_report_init(&endpoint);
  ASSERT_EQ(mltcp_report_endpoint(left, &endpoint), MLTCP_OK);
  EXPECT_EQ(endpoint.connections, 1U);
  EXPECT_GT(endpoint.packets_received, 0U);
  EXPECT_EQ(endpoint.forged_packets + endpoint.resets_sent + endpoint.violations, 0U);
  EXPECT_EQ(endpoint.black_holes + endpoint.size_probes_sent + endpoint.size_probes_lost, 0U);
  EXPECT_EQ(mltcp_report_connection(left, there ^ 0xFFFF, &connection), MLTCP_UNKNOWN);
  Blob peer;
  ASSERT_EQ(mltcp_peer(left, here, peer.bytes, &peer.size), MLTCP_OK);
  const Blob blob = blob_of(right);
  EXPECT_EQ(peer.size, blob.size);
  EXPECT_EQ(std::memcmp(peer.bytes, blob.bytes, blob.size), 0);
  char text[200];
  EXPECT_EQ(mltcp_endpoint_description(left, text, sizeof text), MLTCP_OK);
  EXPECT_THAT(text, StartsWith("udp:"));
  EXPECT_EQ(mltcp_endpoint_description(left, text, 5), MLTCP_TOO_LONG);
  EXPECT_STREQ(text, "udp:");
  EXPECT_EQ(mltcp_endpoint_failure(left, text, sizeof text), MLTCP_OK);
  EXPECT_STREQ(text, "");
}

TEST_F(CInterface, memory__is_registered) {
  open_both(options_of());
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  mltcp_memory handle = 0;
  ASSERT_EQ(mltcp_memory_register(left, memory, page, &handle), MLTCP_OK) << mltcp_last_error();
  EXPECT_EQ(mltcp_memory_unregister(left, handle), MLTCP_OK);
  EXPECT_EQ(mltcp_memory_unregister(left, handle), MLTCP_UNKNOWN);
  EXPECT_EQ(mltcp_memory_register(left, memory, 0, &handle), MLTCP_INVALID);
  munmap(memory, page);
}

TEST(CAddress, hex__is_read_back) {
  mltcp_endpoint* const endpoint = open(options_of());
  const Blob blob = blob_of(endpoint);
  char hex[MLTCP_ADDRESS_HEX_BYTES];
  ASSERT_EQ(mltcp_address_to_hex(blob.bytes, blob.size, hex, sizeof hex), MLTCP_OK);
  EXPECT_EQ(std::strlen(hex), 2 * blob.size);
  Blob back;
  ASSERT_EQ(mltcp_address_from_hex(hex, back.bytes, &back.size), MLTCP_OK);
  EXPECT_EQ(back.size, blob.size);
  EXPECT_EQ(std::memcmp(back.bytes, blob.bytes, blob.size), 0);
  char text[100];
  ASSERT_EQ(mltcp_address_text(blob.bytes, blob.size, text, sizeof text), MLTCP_OK);
  EXPECT_THAT(text, StartsWith("127.0.0.1:"));
  back.size = 3;
  EXPECT_EQ(mltcp_address_from_hex(hex, back.bytes, &back.size), MLTCP_TOO_LONG);
  EXPECT_EQ(mltcp_address_from_hex("abc", back.bytes, &back.size), MLTCP_BAD_ADDRESS);
  back.size = sizeof back.bytes;
  EXPECT_EQ(mltcp_address_from_hex("xy", back.bytes, &back.size), MLTCP_BAD_ADDRESS);
  EXPECT_EQ(back.size, 0U);
  EXPECT_EQ(mltcp_address_to_hex(blob.bytes, blob.size, hex, 10), MLTCP_TOO_LONG);
  EXPECT_EQ(mltcp_address_to_hex(blob.bytes, 65, hex, sizeof hex), MLTCP_BAD_ADDRESS);
  back.size = 5;
  EXPECT_EQ(mltcp_endpoint_address(endpoint, back.bytes, &back.size), MLTCP_TOO_LONG);
  mltcp_endpoint_destroy(endpoint);
}

// The error contains the code, the cause and the cure with which the connection ended.
TEST_F(CInterface, post__on_what_has_ended_says_why) {
  open_and_connect(MLTCP_TAGGED);
  unsigned char bytes[8] = {};
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_receive_tagged(left, here, bytes, sizeof bytes, 1, MLTCP_WHOLE_TAG, nullptr, &operation), MLTCP_OK);
  ASSERT_EQ(mltcp_abort(right, there), MLTCP_OK);
  const mltcp_completion end = end_of(left, operation);
  EXPECT_EQ(end.code, MLTCP_ABORTED) << text_of(end);
  const std::string why = "the connection was aborted; connect again (by the peer)";
  EXPECT_THAT(text_of(end), HasSubstr(why));
  EXPECT_EQ(mltcp_send_tagged(left, here, bytes, sizeof bytes, 1, nullptr, &operation), MLTCP_ABORTED);
  EXPECT_EQ(mltcp_last_error(), why);
  mltcp_connection_report report;
  mltcp_connection_report_init(&report);
  EXPECT_EQ(mltcp_report_connection(left, here, &report), MLTCP_OK);
  EXPECT_EQ(report.has_ended, 1U);
  EXPECT_EQ(report.end_code, MLTCP_ABORTED);
  report.end_code = 77;
  report.struct_size = offsetof(mltcp_connection_report, has_ended);
  EXPECT_EQ(mltcp_report_connection(left, here, &report), MLTCP_OK);
  EXPECT_EQ(report.end_code, 77) << "a program of version 1.0 has no such member";
  EXPECT_EQ(mltcp_close(left, here), MLTCP_OK);
}

TEST_F(CInterface, connect__without_an_operation_reports_by_an_event_and_by_what_is_posted) {
  open_both(options_of());
  Blob blob = blob_of(right);
  mltcp_endpoint_destroy(right);
  right = nullptr;
  ASSERT_EQ(mltcp_connect(left, blob.bytes, blob.size, MLTCP_ORDERED, nullptr, &here, nullptr), MLTCP_OK);
  mltcp_queue* events = nullptr;
  ASSERT_EQ(mltcp_endpoint_events(left, &events), MLTCP_OK);
  mltcp_completion end = empty_completion();
  size_t count = 0;
  ASSERT_EQ(mltcp_queue_wait(events, &end, 1, &count, kPatience), MLTCP_OK);
  EXPECT_EQ(end.kind, MLTCP_ENDED);
  EXPECT_EQ(end.connection, here);
  EXPECT_NE(end.code, MLTCP_OK);
  mltcp_operation operation = 0;
  EXPECT_EQ(mltcp_send(left, here, "x", 1, 0, nullptr, &operation), end.code);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("("));
}

TEST(COptions, parameters__are_those_of_the_registry) {
  mltcp_endpoint_options options = options_of();
  mltcp_endpoint* endpoint = nullptr;
  options.congestion_control = "swift";
  options.parameters = "swift.base_target=40 us, swift.beta=1.5";
  EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID);
  EXPECT_STREQ(mltcp_last_error(), "swift beta of 1.5 is out of range; give a value above 0 and at most 1");
  options.parameters = "turns.hold_rate=0.9";
  EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("turns hold_rate of 0.9 is out of range"));
  options.parameters = "turn.hold_rate=0.1";
  EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("did you mean \"turns\"?"));
  options.struct_size = offsetof(mltcp_endpoint_options, parameters);
  expect_opens(options);  // the struct of version 1.0 does not have this member
  options.struct_size = sizeof options;
  options.parameters = "swift.base_target=40 us, swift.beta=0.7";
  expect_opens(options);
}

// ---- Keys ----

class CKeys : public CInterface {
 protected:
  /// These two functions return options with a key, which is given as a file or as a value.
  static mltcp_endpoint_options keyed(const std::string& file) {
    mltcp_endpoint_options options = options_of();
    options.key = file.c_str();
    return options;
  }
  static mltcp_endpoint_options keyed(const security::JobKey& key) {
    mltcp_endpoint_options options = options_of();
    options.key_bytes = key.secret().bytes().data();
    return options;
  }
  static std::string refusal(const mltcp_endpoint_options& options) {
    mltcp_endpoint* endpoint = nullptr;
    EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID);
    return mltcp_last_error();
  }

  TemporaryFolder folder;
};

TEST_F(CKeys, same__connects_and_another_or_none_is_told_in_time) {
  const security::JobKey key = security::JobKey::generate();
  const security::JobKey other = security::JobKey::generate();
  const std::string file = folder / "job.key";
  key.write_file(file);
  right = c_test::open(keyed(file));
  left = c_test::open(keyed(key));
  connect(MLTCP_TAGGED);
  const auto message = bytes_of(100'000);
  std::vector<unsigned char> buffer(message.size());
  mltcp_operation receiving = 0;
  mltcp_operation sending = 0;
  ASSERT_EQ(mltcp_receive_tagged(right, there, buffer.data(), buffer.size(), 1, MLTCP_WHOLE_TAG, nullptr, &receiving),
            MLTCP_OK);
  ASSERT_EQ(mltcp_send_tagged(left, here, message.data(), message.size(), 1, nullptr, &sending), MLTCP_OK);
  EXPECT_EQ(end_of(right, receiving).code, MLTCP_OK);
  EXPECT_EQ(end_of(left, sending).code, MLTCP_OK);
  EXPECT_EQ(buffer, message);
  const Blob blob = blob_of(right);
  for (const mltcp_endpoint_options& options : {options_of(), keyed(other)}) {
    mltcp_endpoint* const unknown_peer = c_test::open(options);
    const mltcp_completion end = connect_to(unknown_peer, blob.span(), MLTCP_ORDERED);
    EXPECT_EQ(end.code, MLTCP_NO_KEY) << text_of(end);
    EXPECT_THAT(text_of(end), HasSubstr("give both the same key file"));
    EXPECT_EQ(mltcp_endpoint_destroy(unknown_peer), MLTCP_OK);
  }
}

TEST_F(CKeys, authenticate__is_for_both_or_for_none) {
  const security::JobKey key = security::JobKey::generate();
  const std::string file = folder / "job.key";
  key.write_file(file);
  mltcp_endpoint_options options = keyed(file);
  options.authenticate = 1;
  right = c_test::open(options);
  options = keyed(key);
  options.authenticate = 1;
  left = c_test::open(options);
  connect(MLTCP_ORDERED);
  mltcp_endpoint* const unknown_peer = c_test::open(keyed(key));
  const mltcp_completion end = connect_to(unknown_peer, blob_of(right).span(), MLTCP_ORDERED);
  EXPECT_EQ(end.code, MLTCP_NO_KEY) << text_of(end);
  EXPECT_EQ(mltcp_endpoint_destroy(unknown_peer), MLTCP_OK);
  options.authenticate = 2;
  EXPECT_THAT(refusal(options), HasSubstr("authenticate is 2; give a value from 0 to 1"));
  options = options_of();
  options.authenticate = 1;
  EXPECT_THAT(refusal(options), HasSubstr("authenticate: there is no key"));
  // The struct of version 1.3 does not have this member.
  options.struct_size = offsetof(mltcp_endpoint_options, authenticate);
  expect_opens(options);
}

TEST_F(CKeys, what_is_none__is_refused_by_name) {
  const security::JobKey key = security::JobKey::generate();
  const std::string file = folder / "job.key";
  key.write_file(file);
  mltcp_endpoint_options options = keyed(file);
  options.key_bytes = key.secret().bytes().data();
  EXPECT_EQ(refusal(options), "key and key_bytes are both given; give one of them");
  EXPECT_THAT(refusal(keyed(std::string())), HasSubstr("key is empty"));
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_THAT(refusal(keyed(file)), HasSubstr(file + ": users other than its owner may use this key file (mode 0644)"));
  // The struct of version 1.2 does not have these members.
  options.struct_size = offsetof(mltcp_endpoint_options, key);
  expect_opens(options);
}

}  // namespace
}  // namespace mltcp::c_test
