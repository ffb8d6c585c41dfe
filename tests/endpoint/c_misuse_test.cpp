// Tests the errors of the C interface for wrong calls: null pointers, sizes of structs, invalid blobs, old handles,
// forks, and lack of memory. Every error is a code and a line of text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>
#include <vector>

#include "c_pair.h"
#include "mltcp/endpoint/address.h"

namespace mltcp::c_test {
namespace {

using testing::HasSubstr;

// ---- Structs ----

/// A struct of a later version, with additional members at its end.
template <typename Struct>
struct Newer {
  Struct known{};
  std::uint64_t more[2] = {};
  Newer() { known.struct_size = sizeof(Newer); }
};

TEST(CStructs, sizes_that_none_has__are_refused) {
  mltcp_endpoint* endpoint = nullptr;
  for (const std::uint32_t size : {0U, 1U, 4U, 7U, 9U, 100U, 4104U, 1U << 31, UINT32_MAX}) {
    mltcp_endpoint_options options = options_of();
    options.struct_size = size;
    EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID) << size;
    EXPECT_THAT(mltcp_last_error(), HasSubstr("struct_size")) << size;
    EXPECT_EQ(endpoint, nullptr);
  }
  mltcp_endpoint_options options;
  for (const std::size_t size : {std::size_t{0}, std::size_t{12}, std::size_t{1} << 32, SIZE_MAX})
    EXPECT_EQ(mltcp_endpoint_options_init_sized(&options, size), MLTCP_INVALID) << size;
}

TEST(CStructs, an_older_programs__lacks_what_is_at_its_default) {
  struct {
    mltcp_endpoint_options options;
    std::uint64_t guard = 0xABABABABABABABAB;
  } older;
  std::memset(&older.options, 0xFF, sizeof older.options);
  constexpr std::size_t kOld = offsetof(mltcp_endpoint_options, prefix_bits) + 8;
  ASSERT_EQ(mltcp_endpoint_options_init_sized(&older.options, kOld), MLTCP_OK);
  EXPECT_EQ(older.options.struct_size, kOld);
  EXPECT_EQ(older.options.max_operations, UINT32_MAX) << "is not touched";
  older.options.address = "127.0.0.1";
  mltcp_endpoint* endpoint = nullptr;
  EXPECT_EQ(mltcp_endpoint_open(&older.options, &endpoint), MLTCP_OK) << mltcp_last_error();
  mltcp_endpoint_destroy(endpoint);
  EXPECT_EQ(older.guard, 0xABABABABABABABAB);
}

TEST(CStructs, a_newer_programs__is_read_if_it_says_nothing_new) {
  Newer<mltcp_endpoint_options> newer;
  newer.more[0] = newer.more[1] = ~std::uint64_t{0};
  ASSERT_EQ(mltcp_endpoint_options_init_sized(&newer.known, sizeof newer), MLTCP_OK);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.more[0], 0U);
  EXPECT_EQ(newer.more[1], 0U);
  newer.known.address = "127.0.0.1";
  mltcp_endpoint* endpoint = nullptr;
  ASSERT_EQ(mltcp_endpoint_open(&newer.known, &endpoint), MLTCP_OK) << mltcp_last_error();
  mltcp_endpoint_destroy(endpoint);
  newer.more[1] = 1;
  EXPECT_EQ(mltcp_endpoint_open(&newer.known, &endpoint), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("newer library"));
}

TEST_F(CInterface, structs_that_are_written__keep_their_sizes) {
  open_and_connect(MLTCP_ORDERED);
  Newer<mltcp_connection_report> newer;
  newer.more[1] = 5;
  ASSERT_EQ(mltcp_report_connection(left, here, &newer.known), MLTCP_OK);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.more[1], 0U);
  EXPECT_EQ(newer.known.open, 1U);
  mltcp_connection_report older;
  std::memset(&older, 0x55, sizeof older);
  older.struct_size = 16;
  ASSERT_EQ(mltcp_report_connection(left, here, &older), MLTCP_OK);
  EXPECT_EQ(older.struct_size, 16U);
  EXPECT_EQ(older.open, 1U);
  EXPECT_EQ(older.unexpected_messages, 0x55555555U) << "is not touched";
  // The distance between completions in an array is the size of the program's struct.
  std::array<Newer<mltcp_completion>, 4> ends;
  mltcp_queue* queue = nullptr;
  ASSERT_EQ(mltcp_queue_create(left, 4, &queue), MLTCP_OK);
  mltcp_post_options options = post_options();
  options.queue = queue;
  options.time_limit_ns = kMillisecond;
  unsigned char buffer = 0;
  for (std::uint64_t tag = 0; tag < 3; ++tag)
    ASSERT_EQ(mltcp_receive(left, here, &buffer, 1, tag, &options, nullptr), MLTCP_OK);
  for (std::size_t all = 0; all < 3;) {
    std::size_t count = 0;
    ASSERT_EQ(mltcp_queue_wait(queue, &ends[all].known, ends.size() - all, &count, kPatience), MLTCP_OK);
    all += count;
  }
  std::uint64_t tags = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ends[i].known.struct_size, sizeof ends[i]);
    EXPECT_EQ(ends[i].known.code, MLTCP_TIMED_OUT);
    tags |= 1U << ends[i].known.tag;
  }
  EXPECT_EQ(tags, 7U);
  ends[0].known.struct_size = 3;
  std::size_t count = 0;
  EXPECT_EQ(mltcp_queue_poll(queue, &ends[0].known, 1, &count), MLTCP_INVALID);
  mltcp_queue_destroy(queue);
}

TEST_F(CInterface, a_completion_of_a_wrong_size__leaves_the_operation_as_it_is) {
  open_and_connect(MLTCP_ORDERED);
  unsigned char buffer = 0;
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_receive(left, here, &buffer, 1, 0, nullptr, &operation), MLTCP_OK);
  ASSERT_EQ(mltcp_cancel(left, operation), MLTCP_OK);
  mltcp_completion end;
  std::memset(&end, 0, sizeof end);
  EXPECT_EQ(mltcp_wait(left, operation, &end, kPatience), MLTCP_INVALID);
  EXPECT_EQ(mltcp_test(left, operation, &end), MLTCP_INVALID);
  EXPECT_EQ(end_of(left, operation).code, MLTCP_CANCELLED);
  mltcp_post_options options = post_options();
  options.struct_size = 5;
  EXPECT_EQ(mltcp_receive(left, here, &buffer, 1, 0, &options, &operation), MLTCP_INVALID);
}

// ---- Null pointers, and what is out of range ----

TEST_F(CInterface, null_pointers__are_invalid) {
  open_and_connect(MLTCP_ORDERED);
  mltcp_operation op = 0;
  mltcp_completion end = empty_completion();
  unsigned char byte = 0;
  std::size_t size = 64;
  mltcp_queue* queue = nullptr;
  const Blob blob = blob_of(right);
  const std::vector<mltcp_code> codes{
      mltcp_endpoint_open(nullptr, nullptr),
      mltcp_endpoint_options_init_sized(nullptr, sizeof(mltcp_endpoint_options)),
      mltcp_endpoint_close(nullptr),
      mltcp_endpoint_address(nullptr, &byte, &size),
      mltcp_endpoint_address(left, nullptr, &size),
      mltcp_endpoint_address(left, &byte, nullptr),
      mltcp_address_to_hex(nullptr, 1, reinterpret_cast<char*>(&byte), 1),
      mltcp_address_to_hex(&byte, 1, nullptr, 1),
      mltcp_address_from_hex(nullptr, &byte, &size),
      mltcp_address_from_hex("00", nullptr, &size),
      mltcp_address_from_hex("00", &byte, nullptr),
      mltcp_address_text(nullptr, 48, reinterpret_cast<char*>(&byte), 1),
      mltcp_address_text(blob.bytes, blob.size, nullptr, 1),
      mltcp_endpoint_description(left, nullptr, 4),
      mltcp_endpoint_failure(nullptr, reinterpret_cast<char*>(&byte), 1),
      mltcp_now(left, nullptr),
      mltcp_progress(nullptr, nullptr),
      mltcp_endpoint_file(left, nullptr),
      mltcp_endpoint_arm(nullptr),
      mltcp_connect(nullptr, blob.bytes, blob.size, MLTCP_ORDERED, nullptr, &here, nullptr),
      mltcp_connect(left, nullptr, blob.size, MLTCP_ORDERED, nullptr, &op, nullptr),
      mltcp_connect(left, blob.bytes, blob.size, MLTCP_ORDERED, nullptr, nullptr, nullptr),
      mltcp_connect(left, blob.bytes, blob.size, 3, nullptr, &op, nullptr),
      mltcp_accept(left, nullptr, nullptr, 0),
      mltcp_accept(nullptr, &op, nullptr, 0),
      mltcp_close(nullptr, here),
      mltcp_abort(nullptr, here),
      mltcp_peer(left, here, nullptr, &size),
      mltcp_peer(left, here, &byte, nullptr),
      mltcp_send(nullptr, here, &byte, 1, 0, nullptr, &op),
      mltcp_send(left, here, nullptr, 1, 0, nullptr, &op),
      mltcp_send(left, here, &byte, 1, 0, nullptr, nullptr),
      mltcp_receive(left, here, nullptr, 1, 0, nullptr, &op),
      mltcp_receive_tagged(left, MLTCP_ANY_CONNECTION, nullptr, 1, 0, 0, nullptr, &op),
      mltcp_peek(left, MLTCP_ANY_CONNECTION, 0, 0, 0, nullptr, nullptr),
      mltcp_cancel(nullptr, 1),
      mltcp_wait(nullptr, 1, &end, 0),
      mltcp_test(nullptr, 1, &end),
      mltcp_forget(nullptr, 1),
      mltcp_completion_text(nullptr, reinterpret_cast<char*>(&byte), 1),
      mltcp_completion_text(&end, nullptr, 1),
      mltcp_queue_create(nullptr, 1, &queue),
      mltcp_queue_create(left, 1, nullptr),
      mltcp_queue_create(left, 0, &queue),
      mltcp_queue_create(left, (1U << 20) + 1, &queue),
      mltcp_endpoint_events(left, nullptr),
      mltcp_queue_poll(nullptr, &end, 1, &size),
      mltcp_queue_poll(queue, &end, 1, nullptr),
      mltcp_queue_wait(nullptr, &end, 1, &size, 0),
      mltcp_queue_file(nullptr, nullptr),
      mltcp_queue_arm(nullptr),
      mltcp_job_create(left, nullptr, nullptr),
      mltcp_job_create(nullptr, nullptr, &op),
      mltcp_job_set_plan(left, 1, nullptr, nullptr),
      mltcp_report_job(left, 1, nullptr),
      mltcp_report_connection(left, here, nullptr),
      mltcp_report_endpoint(left, nullptr),
      mltcp_memory_register(left, nullptr, 4096, &op),
      mltcp_memory_register(left, &byte, 4096, nullptr),
      mltcp_memory_unregister(nullptr, 1),
  };
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], MLTCP_INVALID) << "call " << i;
  EXPECT_EQ(mltcp_endpoint_destroy(nullptr), MLTCP_OK);
  EXPECT_EQ(mltcp_queue_destroy(nullptr), MLTCP_OK);
  EXPECT_EQ(mltcp_wait(left, 1, nullptr, 0), MLTCP_UNKNOWN) << "nobody wants to know how it ended";
}

TEST(COptions, what_is_out_of_range__is_told_by_name) {
  struct Case {
    void (*set)(mltcp_endpoint_options&);
    const char* name;
  };
  const std::vector<Case> cases{
      {[](auto& o) { o.driving = 2; }, "driving"},
      {[](auto& o) { o.idle = -1; }, "idle"},
      {[](auto& o) { o.shards = 0; }, "shards"},
      {[](auto& o) { o.shards = 65'537; }, "shards"},
      {[](auto& o) { o.accepts = 7; }, "accepts"},
      {[](auto& o) { o.ecn = 2; }, "ecn"},
      {[](auto& o) { o.priority = 8; }, "priority"},
      {[](auto& o) { o.queues = 70'000; }, "queues"},
      {[](auto& o) { o.max_sends = 0; }, "max_sends"},
      {[](auto& o) { o.max_receives = 1U << 30; }, "max_receives"},
      {[](auto& o) { o.max_connections = 0; }, "max_connections"},
      {[](auto& o) { o.max_operations = 0; }, "max_operations"},
      {[](auto& o) { o.eager_limit = 1 << 20; }, "eager_limit"},
      {[](auto& o) { o.peer_timeout_ns = 1; }, "peer_timeout"},
      {[](auto& o) { o.peer_timeout_ns = -1; }, "peer_timeout"},
      {[](auto& o) { o.address = nullptr; }, "address"},
      {[](auto& o) { o.address = ""; }, "address"},
      {[](auto& o) { o.address = "host.example"; }, "host.example"},
      {[](auto& o) { o.address = "192.0.2.1"; }, "192.0.2.1"},
      {[](auto& o) { o.address = "0.0.0.0"; }, "address"},
      {[](auto& o) { o.device = "carrier-pigeon:7"; }, "carrier-pigeon"},
      {[](auto& o) { o.congestion_control = "hope"; }, "hope"},
      {[](auto& o) { o.congestion_control = "./none.so:x"; }, "none.so"},
      {[](auto& o) { o.gateway = "nowhere"; }, "nowhere"},
  };
  for (const Case& one : cases) {
    mltcp_endpoint_options options = options_of();
    one.set(options);
    mltcp_endpoint* endpoint = nullptr;
    EXPECT_EQ(mltcp_endpoint_open(&options, &endpoint), MLTCP_INVALID) << one.name;
    EXPECT_THAT(mltcp_last_error(), HasSubstr(one.name));
    EXPECT_EQ(endpoint, nullptr) << one.name;
  }
  // The device's name contains the address.
  mltcp_endpoint_options options = options_of();
  options.device = "udp:127.0.0.1";
  options.address = nullptr;
  mltcp_endpoint* const endpoint = open(options);
  ASSERT_NE(endpoint, nullptr);
  mltcp_endpoint_destroy(endpoint);
}

TEST(COptions, a_port_that_is_in_use__is_told) {
  mltcp_endpoint* const first = open(options_of());
  const Blob blob = blob_of(first);
  char text[100];
  ASSERT_EQ(mltcp_address_text(blob.bytes, blob.size, text, sizeof text), MLTCP_OK);
  const std::string place = std::string(text).substr(0, std::string(text).find(' '));
  mltcp_endpoint_options options = options_of();
  options.address = place.c_str();
  mltcp_endpoint* second = nullptr;
  EXPECT_EQ(mltcp_endpoint_open(&options, &second), MLTCP_INVALID);
  EXPECT_THAT(mltcp_last_error(), HasSubstr(place.substr(place.find(':') + 1)));
  EXPECT_EQ(second, nullptr);
  ASSERT_EQ(mltcp_endpoint_destroy(first), MLTCP_OK);
  second = open(options);
  EXPECT_NE(second, nullptr) << "it is free again";
  mltcp_endpoint_destroy(second);
}

// ---- Addresses ----

TEST_F(CInterface, blobs_that_are_none__are_refused) {
  open_both(options_of());
  const Blob blob = blob_of(right);
  for (std::size_t size = 0; size < blob.size; ++size) {
    mltcp_connection connection = 1;
    mltcp_operation operation = 1;
    EXPECT_EQ(mltcp_connect(left, blob.bytes, size, MLTCP_ORDERED, nullptr, &connection, &operation),
              MLTCP_BAD_ADDRESS);
    EXPECT_EQ(connection, 0U);
    EXPECT_EQ(operation, 0U);
    EXPECT_THAT(mltcp_last_error(), HasSubstr(std::to_string(size) + " bytes")) << "says more than the code";
  }
  for (std::size_t i = 0; i < blob.size; ++i) {
    Blob other = blob;
    other.bytes[i] ^= 0x10;
    const mltcp_code code = mltcp_connect(left, other.bytes, other.size, MLTCP_ORDERED, nullptr, &here, nullptr);
    EXPECT_EQ(code, i == 4 ? MLTCP_WRONG_VERSION : MLTCP_BAD_ADDRESS) << "byte " << i;
  }
  char text[64];
  EXPECT_EQ(mltcp_address_text(blob.bytes, 20, text, sizeof text), MLTCP_BAD_ADDRESS);
}

std::span<const unsigned char> bytes_of(const endpoint::EndpointAddress& address) {
  return {reinterpret_cast<const unsigned char*>(address.bytes().data()), address.bytes().size()};
}

TEST_F(CInterface, no_peer__is_unreachable_within_peer_timeout) {
  open_both(options_of());
  // No endpoint listens at these addresses. 127.0.0.2 also belongs to this machine.
  for (const char* const place : {"127.0.0.2:9", "127.0.0.1:9"}) {
    const endpoint::EndpointAddress address(Address::parse(place), 1, {1, 2, 3});
    const auto begun = std::chrono::steady_clock::now();
    const mltcp_completion end = connect_to(left, bytes_of(address));
    EXPECT_EQ(end.code, MLTCP_UNREACHABLE) << place << text_of(end);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
    EXPECT_THAT(text_of(end), HasSubstr(place));
  }
}

TEST_F(CInterface, an_endpoint_that_was_started_anew__is_another) {
  open_both(options_of());
  const Blob blob = blob_of(right);
  endpoint::EndpointAddress address;
  ASSERT_EQ(endpoint::EndpointAddress::parse(std::as_bytes(blob.span()), address), endpoint::Code::ok);
  const endpoint::EndpointAddress earlier(address.base(), 1, {1, 2, 3});
  EXPECT_EQ(connect_to(left, bytes_of(earlier)).code, MLTCP_WRONG_PEER);
  mltcp_endpoint_options options = options_of();
  options.accepts = 0;
  mltcp_endpoint_destroy(right);
  right = open(options);
  const Blob deaf = blob_of(right);
  EXPECT_EQ(connect_to(left, deaf.span()).code, MLTCP_REFUSED);
  mltcp_connection none = 0;
  EXPECT_EQ(mltcp_accept(right, &none, nullptr, 0), MLTCP_UNSUPPORTED);
}

// ---- Handles that are gone ----

TEST_F(CInterface, after_close__operations_have_ended_and_calls_say_so) {
  open_and_connect(MLTCP_TAGGED);
  unsigned char buffer = 0;
  mltcp_operation operation = 0;
  ASSERT_EQ(mltcp_receive_tagged(right, there, &buffer, 1, 0, 0, nullptr, &operation), MLTCP_OK);
  ASSERT_EQ(mltcp_endpoint_close(right), MLTCP_OK);
  EXPECT_EQ(end_of(right, operation).code, MLTCP_DESTROYED);
  EXPECT_EQ(mltcp_receive_tagged(right, there, &buffer, 1, 0, 0, nullptr, &operation), MLTCP_DESTROYED);
  EXPECT_EQ(mltcp_endpoint_close(right), MLTCP_OK);
  mltcp_connection none = 0;
  EXPECT_NE(mltcp_accept(right, &none, nullptr, kPatience), MLTCP_OK);
}

TEST(CHandles, after_destroy__calls_say_so) {
  mltcp_endpoint* const endpoint = open(options_of());
  mltcp_queue* queue = nullptr;
  mltcp_queue* events = nullptr;
  ASSERT_EQ(mltcp_queue_create(endpoint, 8, &queue), MLTCP_OK);
  ASSERT_EQ(mltcp_endpoint_events(endpoint, &events), MLTCP_OK);
  EXPECT_EQ(mltcp_queue_destroy(events), MLTCP_INVALID) << "it is the endpoint's";
  ASSERT_EQ(mltcp_endpoint_destroy(endpoint), MLTCP_OK);
  EXPECT_EQ(mltcp_endpoint_destroy(endpoint), MLTCP_DESTROYED);
  EXPECT_EQ(mltcp_endpoint_close(endpoint), MLTCP_DESTROYED);
  unsigned char byte = 0;
  mltcp_operation operation = 1;
  EXPECT_EQ(mltcp_send(endpoint, 1, &byte, 1, 0, nullptr, &operation), MLTCP_DESTROYED);
  EXPECT_EQ(operation, 0U);
  EXPECT_EQ(mltcp_wait(endpoint, 1, nullptr, MLTCP_FOREVER), MLTCP_DESTROYED);
  EXPECT_THAT(mltcp_last_error(), HasSubstr("destroyed"));
  EXPECT_EQ(mltcp_progress(endpoint, nullptr), MLTCP_DESTROYED);
  mltcp_completion end = empty_completion();
  std::size_t count = 0;
  EXPECT_EQ(mltcp_queue_poll(events, &end, 1, &count), MLTCP_DESTROYED);
  EXPECT_EQ(mltcp_queue_poll(queue, &end, 1, &count), MLTCP_OK) << "it lives on";
  EXPECT_EQ(mltcp_queue_wait(queue, &end, 1, &count, MLTCP_FOREVER), MLTCP_DESTROYED) << "nothing comes any more";
  EXPECT_EQ(mltcp_queue_destroy(queue), MLTCP_OK);
  EXPECT_EQ(mltcp_queue_destroy(queue), MLTCP_DESTROYED);
  EXPECT_EQ(mltcp_queue_arm(queue), MLTCP_DESTROYED);
  int file = 0;
  EXPECT_EQ(mltcp_queue_file(queue, &file), MLTCP_DESTROYED);
}

TEST_F(CInterface, a_queue_of_another_endpoint_or_of_none__is_refused) {
  open_and_connect(MLTCP_ORDERED);
  mltcp_queue* queue = nullptr;
  ASSERT_EQ(mltcp_queue_create(right, 8, &queue), MLTCP_OK);
  mltcp_post_options options = post_options();
  options.queue = queue;
  unsigned char byte = 0;
  EXPECT_EQ(mltcp_receive(left, here, &byte, 1, 0, &options, nullptr), MLTCP_INVALID);
  ASSERT_EQ(mltcp_queue_destroy(queue), MLTCP_OK);
  EXPECT_EQ(mltcp_receive(right, there, &byte, 1, 0, &options, nullptr), MLTCP_DESTROYED);
}

TEST_F(CInterface, destroy_in_a_callback__is_fine) {
  open_and_connect(MLTCP_ORDERED);
  struct Place {
    mltcp_endpoint* endpoint;
    std::atomic<int> calls{0};
    std::atomic<int> code{-1};
  } place{.endpoint = right};
  mltcp_post_options options = post_options();
  options.context = &place;
  options.callback = [](void* context, const mltcp_completion*) {
    auto* const own = static_cast<Place*>(context);
    if (own->calls++ == 0) own->code = mltcp_endpoint_destroy(own->endpoint);
  };
  unsigned char buffer[2] = {};
  ASSERT_EQ(mltcp_receive(right, there, buffer, 1, 0, &options, nullptr), MLTCP_OK);
  ASSERT_EQ(mltcp_receive(right, there, buffer + 1, 1, 0, &options, nullptr), MLTCP_OK);
  mltcp_operation sending = 0;
  ASSERT_EQ(mltcp_send(left, here, "x", 1, 0, nullptr, &sending), MLTCP_OK);
  for (int i = 0; i < 20'000 && place.calls < 2; ++i) usleep(1000);
  EXPECT_EQ(place.calls, 2) << "the other one is told, too";
  EXPECT_EQ(place.code, MLTCP_OK);
  right = nullptr;
  end_of(left, sending);
}

// ---- Forks, and memory ----

/// Runs `body` in a forked process and returns the result of `body`. Returns more than 255 if a signal killed the
/// process.
template <typename Body>
int in_fork(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255 + WTERMSIG(status);
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not support a fork of a process with threads
TEST_F(CInterface, in_a_fork__nothing_works_and_the_parent_goes_on) {
  open_and_connect(MLTCP_ORDERED);
  unsigned char byte = 0;
  mltcp_operation receiving = 0;
  ASSERT_EQ(mltcp_receive(right, there, &byte, 1, 0, nullptr, &receiving), MLTCP_OK);
  const int wrong = in_fork([&] {
    mltcp_operation operation = 0;
    mltcp_completion end = empty_completion();
    mltcp_queue* queue = nullptr;
    if (mltcp_send(left, here, "x", 1, 0, nullptr, &operation) != MLTCP_FORKED) return 1;
    if (mltcp_wait(right, receiving, &end, MLTCP_FOREVER) != MLTCP_FORKED) return 2;
    if (mltcp_connect(left, &byte, 1, MLTCP_ORDERED, nullptr, &here, nullptr) == MLTCP_OK) return 3;
    if (mltcp_accept(right, &here, nullptr, MLTCP_FOREVER) != MLTCP_FORKED) return 4;
    if (mltcp_endpoint_close(left) != MLTCP_FORKED) return 5;
    if (mltcp_queue_create(left, 8, &queue) == MLTCP_OK) return 6;
    if (mltcp_endpoint_destroy(left) != MLTCP_OK || mltcp_endpoint_destroy(right) != MLTCP_OK) return 7;
    mltcp_endpoint* const own = open(options_of());
    return own != nullptr && mltcp_endpoint_destroy(own) == MLTCP_OK ? 0 : 8;
  });
  EXPECT_EQ(wrong, 0);
  mltcp_operation sending = 0;
  ASSERT_EQ(mltcp_send(left, here, "y", 1, 0, nullptr, &sending), MLTCP_OK);
  EXPECT_EQ(end_of(right, receiving).code, MLTCP_OK);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(end_of(left, sending).code, MLTCP_OK);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CMemory, where_it_runs_out__a_code_says_so) {
  for (const int driving : {MLTCP_DRIVEN_BY_CALLER, MLTCP_DRIVEN_BY_THREADS}) {
    const int wrong = in_fork([&] {
      std::ifstream statm("/proc/self/statm");
      std::uint64_t pages = 0;
      statm >> pages;
      const rlimit limit{pages * 4096 + (std::uint64_t{64} << 20), RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &limit);
      mltcp_endpoint_options options = options_of(driving);
      options.max_operations = 1 << 20;
      mltcp_endpoint* endpoint = nullptr;
      if (mltcp_endpoint_open(&options, &endpoint) != MLTCP_FAILED) return 1;
      if (endpoint != nullptr || *mltcp_last_error() == '\0') return 2;
      if (driving == MLTCP_DRIVEN_BY_CALLER && std::strstr(mltcp_last_error(), "memory") == nullptr) return 5;
      options = options_of(driving);
      if (mltcp_endpoint_open(&options, &endpoint) != MLTCP_OK) return 3;  // now there is enough memory
      return mltcp_endpoint_destroy(endpoint) == MLTCP_OK ? 0 : 4;
    });
    EXPECT_EQ(wrong, 0) << driving;
  }
}
#endif

TEST(CErrors, each_thread__has_its_own) {
  EXPECT_EQ(mltcp_endpoint_close(nullptr), MLTCP_INVALID);
  const std::string here = mltcp_last_error();
  EXPECT_THAT(here, HasSubstr("endpoint"));
  std::string there = "?";
  std::thread([&] { there = mltcp_last_error(); }).join();
  EXPECT_EQ(there, "");
  EXPECT_EQ(mltcp_last_error(), here);
}

}  // namespace
}  // namespace mltcp::c_test
