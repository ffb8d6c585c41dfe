// Tests the ways to drive an endpoint and to wake its threads: threads of the endpoint, the caller by progress(), files
// and queues, and forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "endpoint_pair.h"

namespace mltcp::endpoint::driving_test {
namespace {

using namespace testing_pair;

bool is_readable(int file, int millis = 0) {
  pollfd one{file, POLLIN, 0};
  return ::poll(&one, 1, millis) == 1;
}

Nanos cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return Nanos(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

/// Two endpoints in real time. The endpoint `right` has its own threads.
class RealTimeTest : public testing::Test {
 protected:
  explicit RealTimeTest(Driving driving) {
    loop_network::register_datapath();
    static int number = 0;
    const std::string name = "real" + std::to_string(++number);
    network = loop_network::Network::make(name, false);
    EndpointConfig config = caller_config(name, 1);
    config.driving = driving;
    config.idle = Idle::sleep;
    config.shards = driving == Driving::threads ? 2 : 1;
    config.peer_timeout = 10_s;
    left = std::make_unique<Endpoint>(config);
    config.address = Address::v4(0x0A000002, 50'000);
    config.seed = 2;
    config.driving = Driving::threads;
    right = std::make_unique<Endpoint>(config);
  }
  void connect(ConnectionKind kind = ConnectionKind::ordered) {
    here = connection_to(right->address().bytes(), *left, kind);
    there = next_event(*right).connection;
  }

  std::shared_ptr<loop_network::Network> network;
  std::unique_ptr<Endpoint> left;
  std::unique_ptr<Endpoint> right;
  ConnectionHandle here = 0;
  ConnectionHandle there = 0;
};

class ThreadsTest : public RealTimeTest {
 protected:
  ThreadsTest() : RealTimeTest(Driving::threads) {}
};

TEST_F(ThreadsTest, own_port__is_asked_by_who_drives_it) {
  network->why_link_is_down = "the cable is out; put it in";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(left->why_link_is_down(), "the cable is out; put it in");
}

TEST_F(ThreadsTest, wait__returns_when_the_operation_has_ended) {
  connect(ConnectionKind::ordered);
  const ByteVector message = bytes_of(100'000);
  for (int i = 0; i < 100; ++i) {
    ByteVector buffer(100'000);
    OperationHandle receiving = 0;
    OperationHandle sending = 0;
    ASSERT_EQ(right->receive(there, buffer, 0, {}, receiving), Code::ok);
    ASSERT_EQ(left->send(here, message, 0, {}, sending), Code::ok);
    Completion end;
    ASSERT_EQ(right->wait(receiving, end, kPatience), Code::ok);
    EXPECT_EQ(end.code, Code::ok);
    EXPECT_EQ(buffer, message);
    ASSERT_EQ(left->wait(sending, end, kPatience), Code::ok);
  }
  OperationHandle never = 0;
  ByteVector buffer(1);
  ASSERT_EQ(left->receive(here, buffer, 0, {}, never), Code::ok);
  Completion end;
  EXPECT_EQ(left->wait(never, end, 0_ns), Code::timed_out);
  EXPECT_EQ(left->wait(never, end, 2_ms), Code::timed_out);
  EXPECT_EQ(left->wait(never, end, Nanos(-5)), Code::invalid);
  EXPECT_EQ(left->progress(), 0U);
  EXPECT_EQ(left->file(), -1);
  EXPECT_EQ(left->arm(), Code::unsupported);
}

TEST_F(ThreadsTest, queue__collects_ends_and_wakes_an_epoll_loop) {
  connect(ConnectionKind::tagged);
  auto queue = right->make_queue(16);
  const int epoll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, queue->file(), &event), 0);
  const ByteVector message = bytes_of(10);
  for (int round = 0; round < 200; ++round) {
    ByteVector buffer(10);
    const OperationHandle receiving =
        receive_tagged(*right, kAnyConnection, buffer, 1, kWholeTag, {.queue = queue.get()});
    ASSERT_EQ(queue->arm(), Code::nothing);
    const OperationHandle sending = send_tagged(*left, here, message, 1);
    ASSERT_EQ(left->forget(sending), Code::ok);
    Completion end;
    while (queue->poll({&end, 1}) == 0) {
      ASSERT_EQ(epoll_wait(epoll, &event, 1, 20'000), 1) << round;
    }
    EXPECT_EQ(end.operation, receiving);
    EXPECT_EQ(buffer, message);
  }
  EXPECT_EQ(queue->arm(), Code::nothing);
  EXPECT_FALSE(is_readable(queue->file()));
  close(epoll);
}

/// A queue may be destroyed as soon as its last completion was taken. At that time, the thread that added this
/// completion may still be waking threads that sleep on the queue. Only sanitizers detect errors here.
TEST_F(ThreadsTest, queue__goes_as_soon_as_its_last_completion_was_taken) {
  connect(ConnectionKind::ordered);
  std::size_t taken = 0;
  for (int i = 0; i < 300; ++i) {
    auto queue = right->make_queue(1);
    ByteVector buffer(10);
    const ByteVector message = bytes_of(10);
    const OperationHandle operation = receive(*right, there, buffer, 0, {.queue = queue.get()});
    const OperationHandle sending = send(*left, here, message);
    Completion end;
    const Nanos begin = right->now();
    while (queue->poll({&end, 1}) == 0 && right->now() - begin < kPatience) continue;
    queue.reset();
    taken += end.code == Code::ok && end.operation == operation ? 1U : 0U;
    ASSERT_EQ(left->wait(sending, end, kPatience), Code::ok);
  }
  EXPECT_EQ(taken, 300U);
}

TEST_F(ThreadsTest, queue__refuses_what_it_has_no_place_for) {
  connect(ConnectionKind::tagged);
  auto queue = left->make_queue(2);
  ByteVector buffer(1);
  OperationHandle operation = 0;
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(left->receive_tagged(here, buffer, 1, kWholeTag, {.queue = queue.get()}, operation), Code::ok);
  EXPECT_EQ(left->receive_tagged(here, buffer, 1, kWholeTag, {.queue = queue.get()}, operation), Code::queue_full);
  left->close(here);
  std::array<Completion, 4> ends;
  std::size_t all = 0;
  while (all < 2) {
    std::size_t count = 0;
    ASSERT_EQ(queue->wait(ends, count, kPatience), Code::ok);
    all += count;
  }
  EXPECT_EQ(ends[0].code, Code::closed);
}

TEST_F(ThreadsTest, sleeping__costs_no_processor_time_and_posts_wake) {
  connect(ConnectionKind::ordered);
  // Waits until the last timers of the handshake have expired.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const Nanos before = cpu_time();
  const Nanos begin = monotonic_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double share =
      static_cast<double>((cpu_time() - before).count) / static_cast<double>((monotonic_now() - begin).count);
#if !defined(__SANITIZE_THREAD__)
  EXPECT_LT(share, 0.02) << "two endpoints of two shards in one process";
#endif
  RecordProperty("idle_share", std::to_string(share));
  Completion end;
  ByteVector buffer(1);
  OperationHandle operation = 0;
  // Each post wakes a sleeping thread. If the wake-up were lost, the post would wait for up to 20 ms, which is the
  // longest sleep.
  Nanos longest;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const Nanos posted = monotonic_now();
    ASSERT_EQ(left->receive(here, buffer, 0, {}, operation), Code::ok);
    ASSERT_EQ(left->cancel(operation), Code::ok);
    ASSERT_EQ(left->wait(operation, end, kPatience), Code::ok);
    EXPECT_EQ(end.code, Code::cancelled);
    longest = std::max(longest, monotonic_now() - posted);
  }
  EndpointReport report;
  ASSERT_EQ(left->report(report), Code::ok);
  EXPECT_GE(report.wakeups, 10U) << "they slept, and were woken";
}

TEST_F(ThreadsTest, destructor__in_a_callback_waits_for_nothing) {
  connect(ConnectionKind::ordered);
  struct End {
    std::unique_ptr<Endpoint>* endpoint;
    std::atomic<int> calls{0};
    static void on(void* self, const Completion&) noexcept {
      auto& end = *static_cast<End*>(self);
      end.endpoint->reset();
      ++end.calls;
    }
  };
  End end{&right, {}};
  ByteVector buffer(10);
  OperationHandle operation = 0;
  ASSERT_EQ(right->receive(there, buffer, 0, {.callback = End::on, .context = &end}, operation), Code::ok);
  const ByteVector message = bytes_of(10);
  ASSERT_EQ(left->send(here, message, 0, {}, operation), Code::ok);
  Completion closed;
  std::size_t count = 0;
  ASSERT_EQ(left->events().wait({&closed, 1}, count, kPatience), Code::ok);
  EXPECT_EQ(closed.kind, Completion::Kind::closed);
  while (end.calls == 0) std::this_thread::yield();
}

TEST_F(ThreadsTest, close__wakes_who_waits) {
  connect(ConnectionKind::ordered);
  ByteVector buffer(10);
  const OperationHandle operation = receive(*left, here, buffer);
  std::thread waiter([&] {
    Completion end;
    EXPECT_EQ(left->wait(operation, end, Nanos::never()), Code::ok);
    EXPECT_EQ(end.code, Code::destroyed);
  });
  std::thread queue_waiter([&] {
    Completion end;
    std::size_t count = 0;
    Code code = Code::ok;
    while (code == Code::ok) code = left->events().wait({&end, 1}, count, Nanos::never());
    EXPECT_EQ(code, Code::destroyed);
  });
  EXPECT_EQ(left->close(), Code::ok);
  waiter.join();
  queue_waiter.join();
}

#if !defined(__SANITIZE_THREAD__)  // TSan does not support a fork of a process with threads
TEST_F(ThreadsTest, fork__leaves_the_child_nothing_and_the_parent_whole) {
  connect(ConnectionKind::ordered);
  ByteVector buffer(10);
  const OperationHandle receiving = receive(*right, there, buffer);
  const pid_t child = fork();
  if (child == 0) {
    OperationHandle operation = 0;
    Completion end;
    std::size_t count = 0;
    ConnectionHandle connection = 0;
    JobHandle job = 0;
    EndpointReport report;
    const bool refused = left->send(here, buffer, 0, {}, operation) == Code::forked &&
                         right->cancel(receiving) == Code::forked &&
                         right->wait(receiving, end, 0_ns) == Code::forked && right->close(there) == Code::forked &&
                         left->connect(right->address().bytes(), {}, connection) == Code::forked &&
                         left->create_job({}, job) == Code::forked && left->report(report) == Code::forked &&
                         right->events().wait({&end, 1}, count, 0_ns) == Code::forked &&
                         left->close() == Code::forked && left->progress() == 0;
    left.reset();
    right.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const ByteVector message = bytes_of(10);
  OperationHandle sending = 0;
  Completion end;
  ASSERT_EQ(left->send(here, message, 0, {}, sending), Code::ok);
  ASSERT_EQ(right->wait(receiving, end, kPatience), Code::ok);
  EXPECT_EQ(end.code, Code::ok);
  EXPECT_EQ(buffer, message);
}

TEST_F(ThreadsTest, fork__takes_nothing_from_the_parent_s_queues) {
  connect(ConnectionKind::ordered);
  const auto queue = right->make_queue(4);
  ByteVector buffer(10);
  OperationHandle operation = 0;
  ASSERT_EQ(right->receive(there, buffer, 0, {.queue = queue.get()}, operation), Code::ok);
  ASSERT_EQ(queue->arm(), Code::nothing);
  ASSERT_EQ(left->send(here, buffer, 0, {}, operation), Code::ok);
  pollfd file{queue->file(), POLLIN, 0};
  ASSERT_EQ(poll(&file, 1, 10'000), 1);
  const pid_t child = fork();
  if (child == 0) {
    Completion end;
    _exit(queue->arm() == Code::forked && queue->poll({&end, 1}) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(poll(&file, 1, 0), 1) << "the child has taken what wakes the parent";
  Completion end;
  EXPECT_EQ(queue->poll({&end, 1}), 1U);
}
#endif

TEST_F(ThreadsTest, report__of_a_connection_from_any_thread) {
  connect(ConnectionKind::ordered);
  ConnectionReport report;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(left->report(here, report), Code::ok);
    EXPECT_TRUE(report.open);
    EXPECT_EQ(report.peer, right->address());
  }
  struct Seen {
    Endpoint* endpoint;
    std::atomic<int> own;
    static void on(void* self, const Completion& completion) noexcept {
      auto& seen = *static_cast<Seen*>(self);
      ConnectionReport all;
      OperationHandle operation = 0;
      Completion end;
      std::byte byte{};
      const bool waits = seen.endpoint->receive(completion.connection, {&byte, 1}, 0, {}, operation) == Code::ok &&
                         seen.endpoint->wait(operation, end, 1_ms) != Code::unsupported;
      (void)seen.endpoint->forget(operation);
      seen.own = waits ? 99 : static_cast<int>(seen.endpoint->report(completion.connection, all));
    }
  };
  Seen seen{left.get(), -1};
  ByteVector buffer(1);
  const OperationHandle operation = receive(*left, here, buffer, 0, {.callback = Seen::on, .context = &seen});
  ASSERT_EQ(left->cancel(operation), Code::ok);
  while (seen.own < 0) std::this_thread::yield();
  EXPECT_EQ(seen.own, static_cast<int>(Code::ok)) << "of its own shard also in a callback";
}

class CallerTest : public RealTimeTest {
 protected:
  CallerTest() : RealTimeTest(Driving::caller) {}
};

TEST_F(CallerTest, file__tells_of_packets_posts_and_deadlines) {
  connect();
  const int file = left->file();
  ASSERT_GE(file, 0);
  const auto settle = [&] {
    while (left->arm() == Code::ok) left->progress();
  };
  Completion end;
  std::size_t handled = 0;
  for (int i = 0; i < 50; ++i) {
    ByteVector buffer(10);
    const OperationHandle receiving = receive(*left, here, buffer);
    settle();
    const ByteVector message = bytes_of(10);
    const OperationHandle sending = send(*right, there, message);
    ASSERT_EQ(right->forget(sending), Code::ok);
    while (left->test(receiving, end) == Code::timed_out) {
      ASSERT_TRUE(is_readable(file, 20'000)) << i;
      left->progress();
      settle();
    }
    ++handled;
  }
  EXPECT_EQ(handled, 50U);
  // A post from another thread makes the file readable.
  settle();
  while (is_readable(file, 20)) settle();
  ByteVector buffer(10);
  OperationHandle limited = 0;
  std::thread([&] { EXPECT_EQ(left->receive(here, buffer, 0, {.time_limit = 50_ms}, limited), Code::ok); }).join();
  ASSERT_TRUE(is_readable(file, 20'000));
  // The time limit of the operation also makes the file readable.
  while (left->test(limited, end) == Code::timed_out) {
    left->progress();
    settle();
    if (left->test(limited, end) != Code::timed_out) break;
    ASSERT_TRUE(is_readable(file, 20'000));
  }
  EXPECT_EQ(end.code, Code::timed_out);
}

TEST_F(CallerTest, posts__in_place_come_after_what_waits_in_the_queue) {
  connect();
  struct Posts {
    Endpoint* endpoint;
    ConnectionHandle connection;
    ByteVector first = ByteVector(8, std::byte{1});
    ByteVector second = ByteVector(8, std::byte{2});
    static void on(void* self, const Completion&) noexcept {
      auto& posts = *static_cast<Posts*>(self);
      OperationHandle operation = 0;
      // This thread drives the endpoint, so a post from another thread goes to a queue. The second post, from this
      // thread, must not overtake the queued post.
      std::thread([&] {
        OperationHandle others = 0;
        EXPECT_EQ(posts.endpoint->send(posts.connection, posts.first, 0, {}, others), Code::ok);
      }).join();
      EXPECT_EQ(posts.endpoint->send(posts.connection, posts.second, 0, {}, operation), Code::ok);
    }
  };
  Posts posts{left.get(), here};
  ByteVector a(8);
  ByteVector b(8);
  OperationHandle first = 0;
  OperationHandle second = 0;
  OperationHandle begins = 0;
  ASSERT_EQ(right->receive(there, a, 0, {}, first), Code::ok);
  ASSERT_EQ(right->receive(there, b, 0, {}, second), Code::ok);
  ASSERT_EQ(left->receive(here, {}, 0, {.callback = Posts::on, .context = &posts}, begins), Code::ok);
  ASSERT_EQ(left->cancel(begins), Code::ok);
  Completion end;
  while (right->test(second, end) == Code::timed_out) left->progress();
  EXPECT_EQ(right->wait(first, end, kPatience), Code::ok);
  EXPECT_EQ(a, posts.first);
  EXPECT_EQ(b, posts.second);
}

// The endpoint calls the callback of each accepted post, even if the post came shortly before the close.
TEST_F(CallerTest, posts__beside_the_close_have_their_callbacks_called) {
  EndpointConfig another = left->config();
  another.address = Address::v4(0x0A000009, 50'000);
  for (int round = 0; round < 200; ++round) {
    Endpoint endpoint(another);
    std::atomic<int> taken{0};
    std::atomic<int> reported{0};
    std::atomic<bool> ready{false};
    const PostOptions options{
        .callback = [](void* context, const Completion&) noexcept { ++*static_cast<std::atomic<int>*>(context); },
        .context = &reported};
    std::thread poster([&] {
      ByteVector buffer(10);
      OperationHandle operation = 0;
      Code code = Code::ok;
      while (code != Code::destroyed) {
        code = endpoint.receive_tagged(kAnyConnection, buffer, 1, kWholeTag, options, operation);
        if (code == Code::ok) ++taken;
        ready = true;
      }
    });
    while (!ready) std::this_thread::yield();
    endpoint.close();
    poster.join();
    EXPECT_EQ(reported, taken) << round;
  }
}

TEST_F(CallerTest, posts__from_other_threads_reach_whoever_waits) {
  connect();
  ByteVector buffer(10);
  const OperationHandle receiving = receive(*left, here, buffer);
  const ByteVector message = bytes_of(10);
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    OperationHandle sending = 0;
    Completion end;
    EXPECT_EQ(left->send(here, message, 0, {}, sending), Code::ok);
    EXPECT_EQ(left->wait(sending, end, kPatience), Code::ok) << "while the other drives";
    EXPECT_EQ(end.code, Code::ok);
    send(*right, there, message);
  });
  OperationHandle peers = 0;
  ByteVector peers_buffer(10);
  ASSERT_EQ(right->receive(there, peers_buffer, 0, {}, peers), Code::ok);
  Completion end;
  EXPECT_EQ(left->wait(receiving, end, kPatience), Code::ok);
  EXPECT_EQ(end.code, Code::ok);
  poster.join();
}

/// Returns the maximum number of threads in the network at one time while two threads drive an endpoint of four shards.
int max_at_work(bool hands_over) {
  loop_network::register_datapath();
  const std::string name = hands_over ? "handing" : "apart";
  const auto network = loop_network::Network::make(name, false);
  network->hands_over = hands_over;
  std::atomic<int> inside{0};
  std::atomic<int> max{0};
  std::atomic<std::uint64_t> rounds{0};
  network->on_work = [&](bool begins) {
    if (!begins) {
      --inside;
      return;
    }
    const int now = ++inside;
    int seen = max.load();
    while (now > seen && !max.compare_exchange_weak(seen, now)) continue;
    if (++rounds % 8 == 0) std::this_thread::yield();  // lets the other thread run, even on one CPU
  };
  EndpointConfig config = caller_config(name, 1);
  config.shards = 4;
  Endpoint endpoint(config);
  const auto drive = [&] {
    for (int i = 0; i < 5'000; ++i) endpoint.progress();
  };
  std::thread other(drive);
  drive();
  other.join();
  return max;
}

TEST(Driving, threads_of_the_caller__drive_one_at_a_time_where_shards_hand_packets_over) {
  EXPECT_EQ(max_at_work(false), 2) << "shards of their own are driven side by side";
  EXPECT_EQ(max_at_work(true), 1);
}

}  // namespace
}  // namespace mltcp::endpoint::driving_test
