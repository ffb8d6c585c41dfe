// Tests pairs and buffers as Gloo's interface defines them. Tests of behaviour that both transports share also run over
// Gloo's own TCP.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <numeric>
#include <random>

#include "gloo_group.h"

namespace mltcp::gloo_testing::semantics {
namespace {

using testing::HasSubstr;
using Ints = std::vector<int>;

class GlooBoth : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(transports, GlooBoth, testing::Values(Transport::tcp, Transport::mltcp),
                         [](const auto& tested) { return tested.param == Transport::tcp ? "tcp" : "mltcp"; });

Ints numbered(std::size_t count, int first) {
  Ints out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// Sends one number from each rank to the other rank, so that both ranks wait for each other.
void meet(const ContextPointer& context, int rank, std::uint64_t slot = 999'999) {
  int in = 0;
  int out = rank;
  auto sends = context->createUnboundBuffer(&out, sizeof out);
  auto receives = context->createUnboundBuffer(&in, sizeof in);
  const int peer = 1 - rank;
  receives->recv(peer, slot);
  sends->send(peer, slot);
  sends->waitSend();
  receives->waitRecv();
  EXPECT_EQ(in, peer);
}

TEST_P(GlooBoth, unbound_buffer__counts_operations_under_way) {
  run_ranks(2, GetParam(), [](const ContextPointer& context, int rank) {
    constexpr std::size_t parts = 20;
    Ints data = rank == 0 ? numbered(parts * 1000, 5) : Ints(parts * 1000);
    auto buffer = context->createUnboundBuffer(data.data(), data.size() * sizeof(int));
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t bytes = 1000 * sizeof(int);
      if (rank == 0) buffer->send(1, part, part * bytes, bytes);
      if (rank == 1) buffer->recv(0, parts - 1 - part, (parts - 1 - part) * bytes, bytes);
    }
    for (std::size_t part = 0; part < parts; ++part) {
      int peer = -1;
      EXPECT_TRUE(rank == 0 ? buffer->waitSend(&peer) : buffer->waitRecv(&peer));
      EXPECT_EQ(peer, 1 - rank);
    }
    EXPECT_EQ(data, numbered(parts * 1000, 5));
  });
}

TEST_P(GlooBoth, sends_on_a_slot__match_receives_in_order) {
  run_ranks(2, GetParam(), [](const ContextPointer& context, int rank) {
    Ints data = rank == 0 ? numbered(100, 1) : Ints(100);
    auto buffer = context->createUnboundBuffer(data.data(), data.size() * sizeof(int));
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (rank == 0) buffer->send(1, 7, i * sizeof(int), sizeof(int));
      if (rank == 1) buffer->recv(0, 7, i * sizeof(int), sizeof(int));
    }
    for (std::size_t i = 0; i < data.size(); ++i) EXPECT_TRUE(rank == 0 ? buffer->waitSend() : buffer->waitRecv());
    EXPECT_EQ(data, numbered(100, 1));
  });
}

TEST_P(GlooBoth, send__is_over_when_a_receive_was_posted_and_not_before) {
  run_ranks(2, GetParam(), [](const ContextPointer& context, int rank) {
    int value = rank == 0 ? 77 : 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 0) {
      buffer->send(1, 3);
      meet(context, rank);  // the peer has posted no receive for this send yet
      buffer->abortWaitSend();
      EXPECT_FALSE(buffer->waitSend());
      meet(context, rank, 1000);
      EXPECT_TRUE(buffer->waitSend());
    } else {
      meet(context, rank);
      meet(context, rank, 1000);
      buffer->recv(0, 3);
      EXPECT_TRUE(buffer->waitRecv());
      EXPECT_EQ(value, 77);
    }
  });
}

TEST_P(GlooBoth, abort__ends_a_wait_and_not_the_operation) {
  run_ranks(2, GetParam(), [](const ContextPointer& context, int rank) {
    int value = rank == 0 ? 5 : 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 1) {
      buffer->recv(0, 1);
      std::thread aborts([&] { buffer->abortWaitRecv(); });
      EXPECT_FALSE(buffer->waitRecv());
      aborts.join();
    }
    meet(context, rank);
    if (rank == 0) buffer->send(1, 1);
    EXPECT_TRUE(rank == 0 ? buffer->waitSend() : buffer->waitRecv());
    EXPECT_EQ(value, 5);
  });
}

TEST_P(GlooBoth, receive_from_any__takes_one_message_of_one_of_the_ranks) {
  run_ranks(4, GetParam(), [](const ContextPointer& context, int rank) {
    int value = rank;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank > 0) {
      for (int i = 0; i < 10; ++i) {
        buffer->send(0, 4);
        buffer->waitSend();
      }
      return meet(context, 1, 50 + static_cast<std::uint64_t>(rank)), void();
    }
    std::map<int, int> seen;
    for (int i = 0; i < 20; ++i) {
      int source = -1;
      buffer->recv(std::vector<int>{1, 3}, 4);
      buffer->waitRecv(&source);
      EXPECT_EQ(value, source);
      ++seen[source];
    }
    EXPECT_EQ(seen, (std::map<int, int>{{1, 10}, {3, 10}}));
    for (int i = 0; i < 10; ++i) {
      buffer->recv(std::vector<int>{1, 2, 3}, 4);
      buffer->waitRecv();
      EXPECT_EQ(value, 2);
    }
    for (int peer = 1; peer < 4; ++peer) {
      int in = 0;
      int out = 0;
      auto sends = context->createUnboundBuffer(&out, sizeof out);
      auto receives = context->createUnboundBuffer(&in, sizeof in);
      receives->recv(peer, 50 + static_cast<std::uint64_t>(peer));
      sends->send(peer, 50 + static_cast<std::uint64_t>(peer));
      sends->waitSend();
      receives->waitRecv();
    }
  });
}

TEST(Gloo, receive_from_any__lets_no_rank_wait_behind_later_sends_of_another) {
  run_ranks(3, Transport::mltcp, [](const ContextPointer& context, int rank) {
    int value = rank;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 0) {
      const auto take = [&](std::vector<int> ranks) {
        buffer->recv(std::move(ranks), 4);
        int source = -1;
        buffer->waitRecv(&source);
        return source;
      };
      for (int i = 0; i < 5; ++i) take({2});
      auto token = context->createUnboundBuffer(&value, sizeof value);
      for (int peer : {2, 1}) {  // both peers have already sent, rank 2 first
        token->recv(peer, 5);
        token->send(peer, 6);
        token->waitSend();
        token->waitRecv();
      }
      EXPECT_EQ(take({1, 2}), 2);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(take({1, 2}), 1);
      return;
    }
    if (rank == 2)
      for (int i = 0; i < 5; ++i) {
        buffer->send(0, 4);
        buffer->waitSend();
      }
    int go = 0;
    auto token = context->createUnboundBuffer(&go, sizeof go);
    token->recv(0, 6);
    token->waitRecv();
    const int sends = rank == 2 ? 1 : 3;
    for (int i = 0; i < sends; ++i) buffer->send(0, 4);
    token->send(0, 5);
    for (int i = 0; i < sends; ++i) buffer->waitSend();
    token->waitSend();
  });
}

TEST(Gloo, pairs_that_are_closed_here__end_what_waits_for_them) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    meet(context, rank);
    int value = 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 1) {
      EXPECT_EQ(thrown_by([&] {
                  buffer->recv(0, 4);
                  buffer->waitRecv();
                }).type,
                "IoException");
      return;
    }
    buffer->recv(std::vector<int>{1}, 4);
    context->closeConnections();
    const Thrown ended = thrown_by([&] { buffer->waitRecv(); });
    EXPECT_EQ(ended.type, "IoException");
    EXPECT_THAT(ended.text, HasSubstr("closed"));
  });
}

TEST(Gloo, receive_from_any__finds_a_send_behind_one_that_was_never_announced) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    int value = rank == 1 ? 7 : 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 0) buffer->recv(1, 4);
    meet(context, rank);  // after this, the sender knows of the receive
    if (rank == 1) buffer->send(0, 4);
    EXPECT_TRUE(rank == 1 ? buffer->waitSend() : buffer->waitRecv());
    if (rank == 1) buffer->send(0, 4);
    if (rank == 0) buffer->recv(std::vector<int>{1}, 4);
    EXPECT_TRUE(rank == 1 ? buffer->waitSend(5s) : buffer->waitRecv(5s));
    EXPECT_EQ(value, 7);
  });
}

TEST(Gloo, short_bound_send__does_not_overtake_a_long_one) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    Ints data(500'000, rank == 0 ? 1 : 0);
    int late = 2;
    auto& pair = context->getPair(1 - rank);
    if (rank == 0) {
      auto long_one = pair->createSendBuffer(1, data.data(), data.size() * sizeof(int));
      auto short_one = pair->createSendBuffer(1, &late, sizeof late);
      meet(context, rank);
      long_one->send();
      short_one->send();
      long_one->waitSend();
      short_one->waitSend();
      meet(context, rank, 1);
    } else {
      auto receives = pair->createRecvBuffer(1, data.data(), data.size() * sizeof(int));
      meet(context, rank);
      receives->waitRecv();
      receives->waitRecv();
      EXPECT_EQ(data.front(), 2);
      EXPECT_EQ(data.back(), 1);
      meet(context, rank, 1);
    }
  });
}

/// Uses the same slot at random for long and short messages, and for receives from one rank and from any rank.
TEST(Gloo, receives_of_both_kinds__take_each_message_once) {
  constexpr int messages = 300;
  run_ranks(3, Transport::mltcp, [](const ContextPointer& context, int rank) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    if (rank > 0) {
      Ints data(3000, rank);
      auto buffer = context->createUnboundBuffer(data.data(), data.size() * sizeof(int));
      int under_way = 0;
      for (int i = 0; i < messages; ++i) {
        buffer->send(0, 9, 0, (random() % 2 == 0 ? 3000 : 10) * sizeof(int));
        if (++under_way == 8) {
          buffer->waitSend();
          --under_way;
        }
      }
      for (; under_way > 0; --under_way) buffer->waitSend();
      return;
    }
    std::array<int, 3> left{0, messages, messages};
    Ints data(3000);
    auto buffer = context->createUnboundBuffer(data.data(), data.size() * sizeof(int));
    while (left[1] + left[2] > 0) {
      int source = static_cast<int>(1 + random() % 2);
      const bool any = random() % 2 == 0 && left[1] > 0 && left[2] > 0;
      if (!any && left[static_cast<std::size_t>(source)] == 0) continue;
      if (any) {
        buffer->recv(std::vector<int>{1, 2}, 9);
      } else {
        buffer->recv(source, 9);
      }
      ASSERT_TRUE(buffer->waitRecv(&source));
      ASSERT_EQ(data[0], source);
      --left[static_cast<std::size_t>(source)];
    }
  });
}

TEST_P(GlooBoth, bound_buffers__are_written_at_the_offset_and_tell_once_a_send) {
  // Over Gloo's TCP, a send for which the peer has no buffer blocks the pair. Messages that coordinate this test would
  // then not arrive either.
  const bool early = GetParam() == Transport::mltcp;
  run_ranks(2, GetParam(), [&](const ContextPointer& context, int rank) {
    Ints out = numbered(4000, 100 * rank);
    Ints in(4000, -1);
    auto& pair = context->getPair(1 - rank);
    auto sends = pair->createSendBuffer(5, out.data(), out.size() * sizeof(int));
    const auto send_both = [&] {
      if (rank != 0) return;
      sends->send(0, 10 * sizeof(int), 20 * sizeof(int));
      sends->send(10 * sizeof(int), 3000 * sizeof(int), 30 * sizeof(int));
    };
    if (early) send_both();
    meet(context, rank);
    auto receives = pair->createRecvBuffer(5, in.data(), in.size() * sizeof(int));
    meet(context, rank, 1001);
    if (!early) send_both();
    if (rank == 0) {
      sends->waitSend();
      sends->waitSend();
    } else {
      receives->waitRecv();
      receives->waitRecv();
      EXPECT_EQ(in[19], -1);
      EXPECT_EQ(Ints(in.begin() + 20, in.begin() + 3030), numbered(3010, 0));
      EXPECT_EQ(in[3030], -1);
    }
    meet(context, rank, 1002);
    pair->setSync(true, true);
    sends->send();
    sends->waitSend();
    receives->waitRecv();
    EXPECT_EQ(in, numbered(4000, 100 * (1 - rank)));
  });
}

TEST(Gloo, empty_messages__arrive) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    auto buffer = context->createUnboundBuffer(nullptr, 0);
    if (rank == 0) buffer->send(1, 2);
    if (rank == 1) buffer->recv(0, 2);
    EXPECT_TRUE(rank == 0 ? buffer->waitSend() : buffer->waitRecv());
    meet(context, rank);
  });
}

TEST(Gloo, timeout__is_an_io_exception_that_names_rank_slot_and_peer_and_closes_the_pairs) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    int value = 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 0) {
      buffer->recv(1, 41);
      const Thrown late = thrown_by([&] { buffer->waitRecv(std::chrono::milliseconds(50)); });
      EXPECT_EQ(late.type, "IoException");
      EXPECT_THAT(late.text, HasSubstr("MLTCP, rank 0: Timed out waiting 50 ms for a receive with rank 1 (127.0.0.1:"));
      EXPECT_THAT(late.text, HasSubstr("on slot 41; "));
      EXPECT_EQ(thrown_by([&] { buffer->send(1, 1); }).type, "IoException");
    } else {
      const Thrown ended = thrown_by([&] {
        buffer->recv(0, 42);  // recv() throws this exception if the pair has already ended
        buffer->waitRecv();
      });
      EXPECT_EQ(ended.type, "IoException");
      EXPECT_THAT(ended.text, HasSubstr("MLTCP, rank 1: rank 0 (127.0.0.1:"));
      EXPECT_THAT(ended.text, HasSubstr("Timed out waiting 50 ms"));
    }
  });
}

TEST(Gloo, timeout_of_the_context__counts_where_a_wait_names_none) {
  run_ranks(
      2, Transport::mltcp,
      [](const ContextPointer& context, int rank) {
        int value = 0;
        auto buffer = context->createUnboundBuffer(&value, sizeof value);
        meet(context, rank);
        if (rank == 1) {
          const Thrown ended = thrown_by([&] {
            buffer->recv(0, 7);
            buffer->waitRecv(20s);
          });
          EXPECT_THAT(ended.text, HasSubstr("Timed out waiting 1500 ms"));
          return;
        }
        buffer->recv(std::vector<int>{1}, 6);
        const Thrown late = thrown_by([&] { buffer->waitRecv(); });
        EXPECT_EQ(late.type, "IoException");
        EXPECT_THAT(late.text, HasSubstr("Timed out waiting 1500 ms for a receive from any of ranks 1 on slot 6"));
        auto bound = thrown_by([&] { context->getPair(1)->createRecvBuffer(1, &value, sizeof value)->waitRecv(); });
        EXPECT_EQ(bound.type, "IoException");
      },
      nullptr, 1500ms);
}

TEST(Gloo, peer_that_leaves__ends_what_waits_for_it_with_its_name) {
  run_ranks(3, Transport::mltcp, [](const ContextPointer& context, int rank) {
    int value = 0;
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    ::gloo::BarrierOptions all(context);
    ::gloo::barrier(all);  // after this, all ranks are connected
    if (rank == 2) return;
    const Thrown ended = thrown_by([&] {
      buffer->recv(2, 1);  // recv() throws this exception if the pair has already ended
      buffer->waitRecv();
    });
    EXPECT_EQ(ended.type, "IoException");
    EXPECT_THAT(ended.text, HasSubstr("MLTCP, rank " + std::to_string(rank) + ": rank 2 (127.0.0.1:"));
    EXPECT_THAT(ended.text, HasSubstr("it has ended, or left the group; for the reason, see its own log"));
    meet(context, rank);  // the remaining ranks can still communicate
  });
}

TEST(Gloo, longer_message__fails_its_receive_and_nothing_else) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    Ints data(2);
    auto buffer = context->createUnboundBuffer(data.data(), 2 * sizeof(int));
    if (rank == 0) {
      buffer->send(1, 1);
      buffer->waitSend();
    } else {
      buffer->recv(0, 1, 0, sizeof(int));
      const Thrown longer = thrown_by([&] { buffer->waitRecv(); });
      EXPECT_EQ(longer.type, "IoException");
      EXPECT_THAT(longer.text, HasSubstr("sent 8 bytes on slot 1 for a receive of 4"));
    }
    meet(context, rank);
  });
}

TEST(Gloo, buffer_that_goes__takes_its_operations_with_it) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    Ints data(5000, rank == 0 ? 1 : 0);  // so long that a send ends only after the peer has posted a receive
    const std::size_t bytes = data.size() * sizeof(int);
    auto buffer = context->createUnboundBuffer(data.data(), bytes);
    if (rank == 1) {
      Ints lost(5000);
      auto goes = context->createUnboundBuffer(lost.data(), bytes);
      goes->recv(0, 1);  // receives the first message
      goes->recv(std::vector<int>{0}, 2);
      goes->send(0, 3);
      goes.reset();
      meet(context, rank);
      EXPECT_EQ(lost, Ints(5000));
      buffer->recv(0, 1);
      EXPECT_TRUE(buffer->waitRecv(5s));
      EXPECT_EQ(data, Ints(5000, 2));
      data.assign(5000, 30);
      buffer->send(0, 3);
      buffer->waitSend();
    } else {
      meet(context, rank);
      buffer->send(1, 1);
      EXPECT_TRUE(buffer->waitSend(5s));
      data.assign(5000, 2);
      buffer->send(1, 1);
      buffer->waitSend();
      buffer->recv(1, 3);
      buffer->waitRecv();
      EXPECT_EQ(data, Ints(5000, 30));
    }
  });
}

TEST(Gloo, bound_send_beyond_its_buffer__fails_with_both_sizes) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    Ints data(1000);
    auto& pair = context->getPair(1 - rank);
    if (rank == 0) {
      auto sends = pair->createSendBuffer(1, data.data(), 4000);
      sends->send(0, 4000, 4);
      EXPECT_EQ(thrown_by([&] { sends->waitSend(); }).type, "IoException");
      EXPECT_EQ(thrown_by([&] { sends->send(0, 5000, 0); }).type, "EnforceNotMet");
    } else {
      auto receives = pair->createRecvBuffer(1, data.data(), 4000);
      const Thrown beyond = thrown_by([&] { receives->waitRecv(); });
      EXPECT_EQ(beyond.type, "IoException");
      EXPECT_THAT(beyond.text, HasSubstr("4000 bytes to offset 4 of the buffer on slot 1, which has 4000"));
    }
  });
}

TEST(Gloo, device__serves_several_contexts_and_ranks) {
  const auto device = open_device(Transport::mltcp);
  ::gloo::rendezvous::HashStore store;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      ::gloo::rendezvous::PrefixStore first("first", store);
      ::gloo::rendezvous::PrefixStore second("second", store);
      const auto one = connect(device, first, rank, 2);
      const auto other = connect(device, second, rank, 2);
      Ints in(2);
      Ints out{10 + rank, 20 + rank};
      std::array<std::unique_ptr<::gloo::transport::UnboundBuffer>, 4> buffers{
          one->createUnboundBuffer(&out[0], sizeof(int)), other->createUnboundBuffer(&out[1], sizeof(int)),
          one->createUnboundBuffer(&in[0], sizeof(int)), other->createUnboundBuffer(&in[1], sizeof(int))};
      buffers[1]->send(1 - rank, 8);  // sends for the second context first, on the same slot
      buffers[0]->send(1 - rank, 8);
      buffers[2]->recv(1 - rank, 8);
      buffers[3]->recv(1 - rank, 8);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(i < 2 ? buffers[i]->waitSend() : buffers[i]->waitRecv());
      EXPECT_EQ(in, (Ints{10 + 1 - rank, 20 + 1 - rank}));
      meet(one, rank);
    });
  for (std::thread& rank : ranks) rank.join();
}

TEST(Gloo, iterations__are_the_devices_job) {
  const auto device = over_mltcp::CreateDevice(loopback());
  run_ranks(
      2, Transport::mltcp,
      [&](const ContextPointer& context, int rank) {
        meet(context, rank);
        if (rank == 0) device->beginIteration(4'000'000);
        meet(context, rank, 5);
        if (rank == 0) {
          std::vector<char> data(2'000'000);
          auto buffer = context->createUnboundBuffer(data.data(), data.size());
          buffer->send(1, 6);
          buffer->waitSend();
          const over_mltcp::JobState state = device->jobState();
          EXPECT_EQ(state.iteration, 1U);
          EXPECT_EQ(state.bytes_per_iteration, 4'000'000U);
          EXPECT_NEAR(state.bytes_ratio, 0.5, 0.05);
          EXPECT_NEAR(state.gain, 0.25 + 1.75 * state.bytes_ratio, 1e-6);
          EXPECT_GE(state.connections, 2U);
          device->endIteration();
        } else {
          std::vector<char> data(2'000'000);
          auto buffer = context->createUnboundBuffer(data.data(), data.size());
          buffer->recv(0, 6);
          buffer->waitRecv();
        }
        meet(context, rank, 7);
      },
      device);
}

TEST(Gloo, iterations__are_found_in_collectives_until_these_do_not_repeat) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int) {
    const auto device = std::dynamic_pointer_cast<over_mltcp::Device>(context->getDevice());
    ASSERT_NE(device, nullptr);
    std::uint32_t tag = 0;
    std::uint64_t begun = 0;
    const auto reduce = [&](std::size_t count) {
      std::vector<float> data(count);
      ::gloo::AllreduceOptions options(context);
      options.setTag(tag++);
      options.setOutput(data.data(), data.size());
      options.setReduceFunction(
          [](void* c, const void* a, const void* b, std::size_t n) { ::gloo::sum<float>(c, a, b, n); });
      ::gloo::allreduce(options);
    };
    EXPECT_EQ(device->jobState().iterations_by, over_mltcp::IterationsBy::traffic);
    for (int step = 0; step < 12; ++step) {
      for (const std::size_t count : {250'000U, 1'000'000U, 600'000U}) reduce(count);
      const over_mltcp::JobState state = device->jobState();
      if (state.iterations_by != over_mltcp::IterationsBy::collectives) continue;
      EXPECT_EQ(state.bytes_per_iteration, 4U * 1'850'000U) << "each rank of two sends all once";
      EXPECT_GE(state.iteration, begun);
      begun = state.iteration;
    }
    EXPECT_GT(begun, 0U);
    EXPECT_EQ(device->jobState().bytes_posted, 12U * 4U * 1'850'000U);
    for (int i = 0; i < 3; ++i) reduce(777'777U);
    EXPECT_EQ(device->jobState().iterations_by, over_mltcp::IterationsBy::traffic);
    // If a hook marks iterations, collectives are ignored. If the program marks iterations, the hook is ignored.
    device->beginIterationByHook(1'000'000);
    EXPECT_EQ(device->jobState().iterations_by, over_mltcp::IterationsBy::hook);
    EXPECT_EQ(device->jobState().bytes_per_iteration, 1'000'000U) << "as expected";
    reduce(500'000U);
    device->endIterationByHook();
    device->beginIterationByHook(1'000'000);
    EXPECT_EQ(device->jobState().bytes_per_iteration, 2'000'000U) << "as counted";
    device->beginIteration(3'000'000);
    device->beginIterationByHook(1'000'000);
    EXPECT_EQ(device->jobState().iterations_by, over_mltcp::IterationsBy::program);
    EXPECT_EQ(device->jobState().bytes_per_iteration, 3'000'000U);
  });
}

// ---- Set-up ----

TEST(Gloo, addresses__are_of_one_size_and_short) {
  const auto device = open_device(Transport::mltcp);
  const auto context = device->createContext(0, 3);
  const auto first = context->createPair(1)->address().bytes();
  const auto second = context->createPair(2)->address().bytes();
  EXPECT_EQ(first.size(), second.size());
  EXPECT_LE(first.size(), std::size_t{::gloo::transport::Address::kMaxByteSize});
  EXPECT_NE(first, second);
  EXPECT_THAT(context->getPair(1)->address().str(), HasSubstr("mltcp, rank 0 at 127.0.0.1:"));
}

TEST(Gloo, wrong_addresses__are_refused_with_cause_and_cure) {
  const auto device = open_device(Transport::mltcp);
  const auto context = device->createContext(0, 3);
  context->setTimeout(200ms);
  auto& pair = context->createPair(1);
  const auto refused = [&](const std::vector<char>& bytes) { return thrown_by([&] { pair->connect(bytes); }); };
  EXPECT_THAT(refused({}).text, HasSubstr("not from the MLTCP transport; give all ranks the same transport"));
  EXPECT_THAT(refused(std::vector<char>(140)).text, HasSubstr("not from the MLTCP transport"));
  EXPECT_THAT(refused(pair->address().bytes()).text, HasSubstr("is that of rank 0"));
  auto other_version = pair->address().bytes();
  other_version[23] = 1;
  EXPECT_THAT(refused(other_version).text, HasSubstr("install the same Gloo on all hosts"));
  EXPECT_EQ(refused(other_version).type, "InvalidOperationException");

  const auto peer = device->createContext(1, 3);
  // The peer never connects, or ignores the caller.
  const Thrown late = refused(peer->createPair(0)->address().bytes());
  if (!late.type.empty()) {
    EXPECT_EQ(late.type, "IoException");
    EXPECT_THAT(late.text, HasSubstr("rank 1 (127.0.0.1:"));
  }
}

TEST(Gloo, wrong_settings__are_refused_with_cause_and_cure) {
  const auto refused = [](const std::function<void(over_mltcp::attr&)>& change) {
    over_mltcp::attr attributes = loopback();
    change(attributes);
    const Thrown thrown = thrown_by([&] { (void)over_mltcp::CreateDevice(attributes); });
    EXPECT_EQ(thrown.type, "InvalidOperationException") << thrown.text;
    EXPECT_THAT(thrown.text, testing::Not(HasSubstr("\n")));
    EXPECT_THAT(thrown.text, HasSubstr("; "));
    return thrown.text;
  };
  EXPECT_THAT(refused([](auto& a) { a.iface = "eth99", a.device = "", a.hostname = ""; }), HasSubstr("eth99"));
  EXPECT_THAT(refused([](auto& a) { a.iface = "lo", a.device = "udp:eth99"; }), HasSubstr("give one of the two"));
  EXPECT_THAT(refused([](auto& a) { a.device = "tcp:lo"; }), HasSubstr("tcp:lo"));
  EXPECT_THAT(refused([](auto& a) { a.hostname = "192.0.2.7"; }), HasSubstr("192.0.2.7"));
  EXPECT_THAT(refused([](auto& a) { a.cc = "vegas"; }), HasSubstr("vegas"));
  EXPECT_THAT(refused([](auto& a) { a.job_function = "F7"; }), HasSubstr("F7"));
  EXPECT_THAT(refused([](auto& a) { a.peer_timeout = 1ms; }), HasSubstr("peer_timeout"));
  EXPECT_THAT(refused([](auto& a) { a.spin = 2s; }), HasSubstr("spin"));
}

TEST(Gloo, other_headers__are_refused) {
  over_mltcp::GlooLayout layout;
  layout.pair += 8;
  const Thrown thrown = thrown_by([&] { (void)over_mltcp::CreateDeviceFor(layout, loopback()); });
  EXPECT_EQ(thrown.type, "InvalidOperationException");
  EXPECT_THAT(thrown.text, HasSubstr("build both with the same headers of Gloo"));
}

TEST(Gloo, environment__fills_what_is_left_out) {
  setenv("MLTCP_ADDRESS", "127.0.0.1", 1);
  setenv("MLTCP_PEER_TIMEOUT_MS", "soon", 1);
  const Thrown thrown = thrown_by([] { (void)over_mltcp::CreateDevice(); });
  setenv("MLTCP_PEER_TIMEOUT_MS", "2000", 1);
  setenv("MLTCP_CC", "dctcp", 1);
  const auto device = over_mltcp::CreateDevice();
  for (const char* name : {"MLTCP_ADDRESS", "MLTCP_PEER_TIMEOUT_MS", "MLTCP_CC"}) unsetenv(name);
  EXPECT_THAT(thrown.text, HasSubstr("MLTCP_PEER_TIMEOUT_MS is \"soon\"; give a number from 10 to 3600000"));
  EXPECT_THAT(device->str(), HasSubstr("mltcp, 127.0.0.1:"));
}

TEST(Gloo, messages__above_4_GiB_are_refused_and_the_pair_goes_on) {
  run_ranks(2, Transport::mltcp, [](const ContextPointer& context, int rank) {
    meet(context, rank);
    constexpr std::size_t four = std::size_t{4} << 30;
    int value = rank + 3;
    // The stated length is longer than `value`. This does no harm, because refused operations neither read nor write
    // memory.
    auto lengthy = context->createUnboundBuffer(&value, four + 1);
    for (const Thrown& thrown :
         {thrown_by([&] { lengthy->send(1 - rank, 1); }), thrown_by([&] { lengthy->recv(1 - rank, 1); }),
          thrown_by([&] { lengthy->recv(std::vector<int>{1 - rank}, 1); })}) {
      EXPECT_EQ(thrown.type, "EnforceNotMet");
      EXPECT_THAT(thrown.text, HasSubstr("4294967297 bytes exceed the 4294967296 (4 GiB)"));
      EXPECT_THAT(thrown.text, HasSubstr("; send and receive them in parts"));
    }
    auto bound = context->getPair(1 - rank)->createSendBuffer(1, &value, four + 1);
    EXPECT_EQ(thrown_by([&] { bound->send(); }).type, "EnforceNotMet");
    auto buffer = context->createUnboundBuffer(&value, sizeof value);
    if (rank == 0) {
      buffer->send(1, 2);
      EXPECT_TRUE(buffer->waitSend());
    } else {
      buffer->recv(0, 2);
      EXPECT_TRUE(buffer->waitRecv());
    }
    EXPECT_EQ(value, 3);
  });
}

TEST(Gloo, waits_that_spin__end_and_time_out_as_others) {
  over_mltcp::attr attributes = loopback();
  attributes.spin = 2ms;
  const auto device = over_mltcp::CreateDevice(attributes);
  run_ranks(
      2, Transport::mltcp,
      [](const ContextPointer& context, int rank) {
        Ints data(20'000, rank);
        auto buffer = context->createUnboundBuffer(data.data(), data.size() * sizeof(int));
        for (int round = 0; round < 20; ++round) {
          if ((round + rank) % 2 == 0) {
            buffer->send(1 - rank, 1);
            EXPECT_TRUE(buffer->waitSend());
          } else {
            buffer->recv(1 - rank, 1);
            EXPECT_TRUE(buffer->waitRecv());
          }
        }
        meet(context, rank);
        const auto waits = [&](std::chrono::milliseconds limit) {
          return thrown_by([&] {
                   buffer->recv(1 - rank, 9);
                   buffer->waitRecv(limit);
                 })
              .text;
        };
        if (rank == 0) {
          EXPECT_THAT(waits(1ms), HasSubstr("Timed out waiting 1 ms"));
        } else {
          EXPECT_NE(waits(10s), "");  // the wait of rank 0 times out and ends the pair
        }
      },
      device);
}

TEST(Gloo, operation_without_a_pair__is_refused) {
  const auto device = open_device(Transport::mltcp);
  const auto context = device->createContext(0, 2);
  int value = 0;
  auto buffer = context->createUnboundBuffer(&value, sizeof value);
  EXPECT_THAT(thrown_by([&] { buffer->send(1, 1); }).text, HasSubstr("has no pair with rank 1"));
  context->createPair(1);
  EXPECT_THAT(thrown_by([&] { buffer->send(1, 1); }).text, HasSubstr("is not connected to rank 1"));
  EXPECT_THAT(thrown_by([&] { buffer->send(1, 1, 5); }).text, HasSubstr("offset 5 is beyond the buffer of 4 bytes"));
  EXPECT_THAT(thrown_by([&] { buffer->recv(std::vector<int>(), 1); }).text, HasSubstr("names no ranks"));
  EXPECT_EQ(thrown_by([&] { buffer->send(1, 1, 0, 8); }).type, "EnforceNotMet");
}

}  // namespace
}  // namespace mltcp::gloo_testing::semantics
