// Tests snapshots that pass between a thread that must not wait and threads that may wait.
#include "mltcp/endpoint/live/exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "some_snapshot.h"

namespace mltcp::live {
namespace {

TEST(Exchange, no_request__nothing_to_do) {
  const Exchange exchange;
  EXPECT_FALSE(exchange.is_asked());
}

TEST(Exchange, no_answer__none_in_time_and_the_next_gets_a_new_one) {
  Exchange exchange;
  EXPECT_FALSE(exchange.ask(Nanos(2'000'000)).has_value());
  EXPECT_TRUE(exchange.is_asked());
  Snapshot late;
  late.name = "late";
  exchange.publish(std::move(late));
  std::atomic<bool> ended = false;
  std::thread looks([&] {
    while (!ended)
      if (exchange.is_asked()) exchange.publish(test::some_snapshot());
  });
  const auto got = exchange.ask(Nanos(10'000'000'000));
  ended = true;
  looks.join();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->name, "host 1 at 10.0.0.2/24");
}

TEST(Exchange, several_ask__each_gets_one) {
  Exchange exchange;
  std::atomic<bool> ended = false;
  std::thread looks([&] {
    while (!ended)
      if (exchange.is_asked()) exchange.publish(test::some_snapshot());
  });
  std::vector<std::thread> askers;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 4; ++i)
    askers.emplace_back([&] {
      for (int n = 0; n < 5; ++n)
        if (const auto got = exchange.ask(Nanos(10'000'000'000)); got && got->pid == 4242) ++answers;
    });
  for (std::thread& asker : askers) asker.join();
  ended = true;
  looks.join();
  EXPECT_EQ(answers, 20);
}

}  // namespace
}  // namespace mltcp::live
