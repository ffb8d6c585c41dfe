// Tests the allocations of endpoints. After a warm-up, nothing is allocated between the post and the end of an
// operation. If memory runs out during set-up, the error names the setting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../count_allocations.h"
#include "endpoint_pair.h"
#include "mltcp/base/error.h"

namespace mltcp::endpoint::allocation_test {
namespace {

using namespace testing_pair;
using testing::HasSubstr;

class AllocationTest : public EndpointPair {
 protected:
  /// Excludes the allocations of the simulated network from the count.
  void leave_out_the_network() {
    network->on_work = [this](bool begins) {
      if (begins) was_counting = counting.exchange(false);
      if (!begins) counting = was_counting;
    };
  }
  static void on_end(void* context, const Completion& completion) noexcept {
    auto& left = *static_cast<std::size_t*>(context);
    if (completion.code == Code::ok) --left;
  }
  bool was_counting = false;
};

TEST_F(AllocationTest, messages__are_posted_carried_and_told_without_any) {
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    // check_peer withholds some packets, which are then recovered as if lost. The first loss in each message allocates
    // memory.
    EndpointConfig a = config(1);
    EndpointConfig b = config(2);
    a.connection.check_peer = b.connection.check_peer = false;
    open(a, b);
    connect(kind);
    JobHandle job = 0;
    ASSERT_EQ(left->create_job({}, job), Code::ok);
    ASSERT_EQ(left->attach(here, job), Code::ok);
    const auto queue = right->make_queue(64);
    leave_out_the_network();
    const bool ordered = kind == ConnectionKind::ordered;
    const std::vector<std::size_t> lengths{0, 100, 1024, 1025, 20'000};
    const ByteVector message = bytes_of(20'000);
    std::vector<ByteVector> buffers(lengths.size(), ByteVector(20'000));
    std::vector<OperationHandle> waited(lengths.size());
    std::vector<Completion> ends(64);
    std::size_t unsent = 0;
    const auto round = [&](std::size_t number) {
      const bool early = number % 2 == 0;  // in odd rounds, tagged messages arrive before their receives are posted
      const auto receive_all = [&] {
        for (ByteVector& buffer : buffers) {
          OperationHandle operation = 0;
          const PostOptions options{.queue = queue.get(), .time_limit = 30_s};
          const Code code = ordered ? right->receive(there, buffer, 1, options, operation)
                                    : right->receive_tagged(number % 3 == 0 ? kAnyConnection : there, buffer, 1,
                                                            number % 4 < 2 ? kWholeTag : 0xFF, options, operation);
          if (code != Code::ok) ADD_FAILURE() << code;
        }
      };
      if (ordered || early) receive_all();
      left->begin_iteration(job, 20'000);
      unsent = lengths.size();
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        OperationHandle operation = 0;
        const PostOptions options{.callback = i % 2 == 0 ? on_end : nullptr, .context = &unsent, .time_limit = 30_s};
        const auto bytes = std::span(message).first(lengths[i]);
        const Code code = ordered ? left->send(here, bytes, 1, options, operation)
                                  : left->send_tagged(here, bytes, 1, options, operation);
        if (code != Code::ok) ADD_FAILURE() << code;
        waited[i] = options.callback == nullptr ? operation : 0;
      }
      if (!ordered && !early) {
        for (int i = 0; i < 50; ++i) step();
        receive_all();
      }
      std::size_t received = 0;
      for (int i = 0; i < 5000 && (unsent > 0 || received < lengths.size()); ++i) {
        step();
        received += queue->poll(ends);
        for (OperationHandle& operation : waited) {
          Completion end;
          if (operation == 0 || left->test(operation, end) != Code::ok) continue;
          if (end.code == Code::ok) --unsent;
          operation = 0;
        }
      }
      if (unsent > 0 || received < lengths.size()) ADD_FAILURE() << "round " << number << " has not ended";
    };
    for (std::size_t number = 0; number < 240; ++number) round(number);  // warm-up, after which no ring grows
    allocations = 0;
    counting = true;
    for (std::size_t number = 0; number < 60; ++number) round(number);
    counting = false;
    EXPECT_EQ(allocations, 0U) << (ordered ? "ordered" : "tagged");
    network->on_work = nullptr;
    left.reset();
    right.reset();
  }
}

TEST_F(AllocationTest, set_up__names_the_setting_that_asks_for_more_memory_than_there_is) {
  const auto error_of = [](const EndpointConfig& config, std::size_t longest) -> std::string {
    longest_allocation = longest;
    std::string text;
    try {
      const Endpoint endpoint(config);
    } catch (const RunError& error) {
      text = error.what();
    }
    longest_allocation = ~std::size_t{0};
    return text;
  };
  for (const Driving driving : {Driving::threads, Driving::caller}) {
    EndpointConfig much = config(1);
    much.driving = driving;
    much.max_operations = 100'000;
    much.shards = 2;
    EXPECT_EQ(error_of(much, ~std::size_t{0}), "");
    EXPECT_THAT(
        error_of(much, 10'000'000),
        testing::MatchesRegex("out of memory: with 2 shards max_operations of 100000 needs about 1[0-9][0-9]\\.[0-9] "
                              "MB, and max_connections of 8 needs [0-9]\\.[0-9] MB; lower the first, or free memory"));
    much.max_operations = 100;
    much.max_connections = 65'536;
    EXPECT_THAT(error_of(much, 10'000'000), HasSubstr("out of memory: with 2 shards max_connections of 65536 needs"));
  }
}

}  // namespace
}  // namespace mltcp::endpoint::allocation_test
